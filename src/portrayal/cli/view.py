"""portrayal view"""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from pathlib import Path

import click

from portrayal.cli.console import say, warn
from portrayal.errors import PortrayalError
from portrayal.report.live import Answers, Guard, Images, ViewServer, is_local
from portrayal.results import open_results
from portrayal.study.image_ids import picture_files

BESIDE = Path("study", "images")  # where the demo keeps the pictures of its study


@click.command("view")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="By default one that is free."
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDR", help="The address to serve on."
)
@click.option(
    "--allow-remote", is_flag=True, help="Serve on an address that other machines reach, with a token."
)
@click.option(
    "--images",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="The study's pictures, to be shown in full.",
)
@click.option("--no-open", is_flag=True, help="Open no browser.")
def command(
    folder: Path, port: int, host: str, allow_remote: bool, images: Path | None, no_open: bool
) -> None:
    """Serve the results in DIR as a live page on this machine, until Ctrl-C."""
    if not is_local(host) and not allow_remote:
        raise PortrayalError(
            f"On {host or 'every address'} other machines could ask for these results; "
            "add --allow-remote if that is wanted."
        )
    answers = Answers(open_results(folder), _images(folder, images))
    guard = Guard.for_remote(host, socket.gethostname()) if allow_remote else Guard()
    with ViewServer(answers, host, port, guard) as server:
        say(f"The live page: {server.address}")
        if guard.token:
            warn("Whoever has this address can read the results. What is sent is not encrypted.")
        say("Ctrl-C ends it.")
        if not no_open and _has_screen():
            webbrowser.open(server.address)
        server.serve_forever()


def _images(folder: Path, images: Path | None) -> Images:
    found = images or folder / BESIDE
    if not found.is_dir():
        return Images()
    files = picture_files(found)
    if images is not None and not files:
        raise PortrayalError(f"{images} holds no pictures.")
    return Images(found, files)


def _has_screen() -> bool:
    """Whether a browser would be a window; on a bare terminal Python may start one that takes the terminal."""
    if not sys.stdout.isatty():
        return False
    return sys.platform in ("win32", "darwin") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
