"""Make the parts of the documentation that the code already knows: `make docs`. A test keeps them true."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from portrayal.cli.main import COMMANDS, cli
from portrayal.lexicon import shipped_lexicons
from portrayal.metrics import METRICS

HERE = Path(__file__).parent
MADE = "<!-- Made by `make docs`; edit the code it is made from. -->\n"


def metrics() -> str:
    parts = ["# Metrics\n", MADE]
    for metric in METRICS.values():
        card = metric.card
        parts += [f"## {card.name}\n", f"*{card.title}.* {card.question}\n", f"**Formula.** {card.formula}\n"]
        parts += [f"**Range.** {card.range}\n", f"**Needs.** {', '.join(card.needs)}.\n"]
        lines = ["| term | what it is | unit | better | ideal |", "|---|---|---|---|---|"]
        for term in card.terms:
            ideal = "" if term.ideal is None else f"{term.ideal:g}"
            lines.append(f"| `{term.name}` | {term.meaning} | {term.unit} | {term.better or ''} | {ideal} |")
        parts += ["\n".join(lines) + "\n", "**What it cannot say.**\n"]
        parts += ["\n".join(f"- {caveat}" for caveat in card.caveats) + "\n", f"**Source.** {card.paper}\n"]
    return "\n".join(parts)


def lexicons() -> str:
    parts = ["# Lexicons\n", MADE]
    for lexicon in shipped_lexicons():
        parts += [f"## {lexicon.name}\n", f"{lexicon.note}\n"]
        parts += [f"Version {lexicon.version}, licence {lexicon.licence}. {lexicon.source}\n"]
        for group, words in lexicon.groups.items():
            parts.append(f"- **{group}**: {', '.join(words)}")
        for what, words in (
            ("neutral", lexicon.neutral),
            ("hidden by a mask, naming no group", lexicon.mask_also),
            ("only before a word for a person", lexicon.before_person),
        ):
            if words:
                parts.append(f"- {what}: {', '.join(words)}")
        parts.append("")
    return "\n".join(parts)


def commands() -> str:
    parts = ["# Commands\n", MADE, "```text", _help(cli, "portrayal"), "```\n"]
    for name, (module, _) in COMMANDS.items():
        command = importlib.import_module(f"portrayal.cli.{module}").command
        parts += [f"## portrayal {name}\n", "```text", _help(command, f"portrayal {name}"), "```\n"]
        inner = command.commands if isinstance(command, click.Group) else {}
        for part, made in inner.items():
            parts += [
                f"### portrayal {name} {part}\n",
                "```text",
                _help(made, f"portrayal {name} {part}"),
                "```\n",
            ]
    for metric in METRICS:
        group = importlib.import_module("portrayal.cli.score").command
        parts += [f"## portrayal score {metric}\n", "```text"]
        made = group.get_command(click.Context(group), metric)
        parts += [_help(made, f"portrayal score {metric}"), "```\n"]
    return "\n".join(parts)


def _help(command: click.Command, name: str) -> str:
    settings = cli.context_settings  # a command that was run before has them; one that was not must too
    return command.get_help(
        click.Context(command, info_name=name, terminal_width=100, max_content_width=100, **settings)
    )


PAGES = {"metrics.md": metrics, "lexicons.md": lexicons, "commands.md": commands}


if __name__ == "__main__":
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")
