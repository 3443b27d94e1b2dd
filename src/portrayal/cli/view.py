"""portrayal view"""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from pathlib import Path

import click

from portrayal.cli.console import echo, print_warning
from portrayal.errors import PortrayalError
from portrayal.report.live import Guard, ImageFolder, Routes, ViewServer, is_local
from portrayal.results import open_results
from portrayal.study.image_ids import find_image_files

DEMO_IMAGES = Path("study", "images")  # where the demo stores the images of its study


@click.command("view")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port to serve on. [default: a free one]",
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDR", help="Address to serve on.")
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Allow an address that other machines can reach; the page then needs a token.",
)
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Folder of the study's images, to show them in full size.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def command(
    folder: Path, port: int, host: str, allow_remote: bool, images: Path | None, no_open: bool
) -> None:
    """Serve the results in DIR as a live page on this machine, until Ctrl-C."""
    if not is_local(host) and not allow_remote:
        raise PortrayalError(
            f"On {host or 'every address'} other machines could read these results; "
            "add --allow-remote to permit that."
        )
    answers = Routes(open_results(folder), _find_images(folder, images))
    guard = Guard.for_remote(host, socket.gethostname()) if allow_remote else Guard()
    with ViewServer(answers, host, port, guard) as server:
        echo(f"The live page: {server.address}")
        if guard.token:
            print_warning("Anyone with this address can read the results. The connection is not encrypted.")
        echo("Press Ctrl-C to stop.")
        if not no_open and _has_screen():
            webbrowser.open(server.address)
        server.serve_forever()


def _find_images(folder: Path, images: Path | None) -> ImageFolder:
    image_folder = images or folder / DEMO_IMAGES
    if not image_folder.is_dir():
        return ImageFolder()
    files = find_image_files(image_folder)
    if images is not None and not files:
        raise PortrayalError(f"{images} holds no images.")
    return ImageFolder(image_folder, files)


def _has_screen() -> bool:
    """Return whether a browser would open a window; without a display, Python may start one in the terminal."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("win32", "darwin") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
