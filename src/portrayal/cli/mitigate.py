"""portrayal mitigate"""

from __future__ import annotations

import importlib

import click

from portrayal.errors import unknown_name
from portrayal.mitigate.methods import METHODS

# name -> (module, the command in it, one line of help); loaded when it is called.
COMMANDS = {
    **{
        name: ("mitigate_models", name, f"{one.about[0].upper()}{one.about[1:]}.")
        for name, one in METHODS.items()
    },
    "compare": (
        "mitigate_models",
        "compare",
        "Train several methods, and measure what is left and what is lost.",
    ),
    "captions": (
        "mitigate_captions",
        "captions",
        "Rewrite captions or balance images, for those who have no model.",
    ),
}


class _Remedies(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            raise unknown_name("remedy", cmd_name, COMMANDS)
        module, name, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f"portrayal.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group("mitigate", cls=_Remedies)
def command() -> None:
    """Apply a remedy, measure before and after, and show what it costs."""
