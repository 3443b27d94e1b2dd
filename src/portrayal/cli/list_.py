"""portrayal list"""

from __future__ import annotations

import click

from portrayal.cli.console import show_table
from portrayal.lexicon import shipped_lexicons
from portrayal.metrics import METRICS
from portrayal.study.importers import IMPORTERS


@click.command("list")
@click.argument("what", type=click.Choice(["metrics", "lexicons", "importers"]))
def command(what: str) -> None:
    """List the metrics, lexicons or importers that are there."""
    if what == "metrics":
        rows = [[m.name, m.card.question, ", ".join(m.card.needs)] for m in METRICS.values()]
        show_table(["metric", "question", "needs"], rows)
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
        show_table(["lexicon", "attribute", "words", "source"], rows)
    else:
        show_table(["importer", "reads"], [[name, text] for name, (_, text) in IMPORTERS.items()])
