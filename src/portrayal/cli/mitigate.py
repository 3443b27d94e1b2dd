"""portrayal mitigate"""

from __future__ import annotations

import importlib

import click

from portrayal.errors import unknown_name
from portrayal.mitigate.methods import METHODS

# name -> (module, the command in it, one line of help); loaded when it is called.
COMMANDS = {
    **{
        name: ("mitigate_models", name, f"{method.description[0].upper()}{method.description[1:]}.")
        for name, method in METHODS.items()
    },
    "compare": (
        "mitigate_models",
        "compare",
        "Train with several methods, and measure the remaining bias and the cost.",
    ),
    "captions": (
        "mitigate_captions",
        "captions",
        "Rewrite captions with neutral words or balance images, without training a model.",
    ),
}


class _Methods(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            raise unknown_name("method", cmd_name, COMMANDS)
        module, name, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f"portrayal.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group("mitigate", cls=_Methods)
def command() -> None:
    """Mitigate bias: apply a method, measure before and after, and show its cost."""
