"""How to cite: BibTeX entries for this program and for the papers of the metrics that were used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portrayal import __version__
from portrayal.report.export.slugs import slugs
from portrayal.report.tables.latex import escape
from portrayal.results import Results

# As in CITATION.cff, which an installed package does not have; a test holds them equal.
TITLE = "Portrayal: auditing how captioners and vision-language models portray people"
AUTHORS = ("The Portrayal authors",)


def tool(version: str = __version__) -> str:
    """The entry for the program, in the version that made the numbers."""
    authors = " and ".join(f"{{{_text(name)}}}" for name in AUTHORS)  # a name in braces is not taken apart
    fields = {"title": f"{{{_text(TITLE)}}}", "author": authors, "note": f"Version {_text(version)}"}
    return _entry("portrayal", fields)


def papers(cards: Mapping[str, Any]) -> list[str]:
    """An entry for each paper that cards name, once; the text of a card is kept as it is, as a note."""
    metrics: dict[str, str] = {}
    for name, card in cards.items():
        paper = card.get("paper") if isinstance(card, Mapping) else None
        if isinstance(paper, str) and paper.strip():
            metrics.setdefault(paper.strip(), str(name))
    keys = slugs(list(metrics.values()))
    return [
        _entry(f"portrayal-{key}", {"key": _text(name), "note": _text(paper)})
        for key, (paper, name) in zip(keys, metrics.items(), strict=True)
    ]


def bibtex(results: Results, metrics: Mapping[str, Any] | None = None) -> str:
    """Entries for what stands behind these results, or behind some of their metrics: the program comes first."""
    cards = cards_of(results)
    used = dict.fromkeys(m.metric for m in results.measurements) if metrics is None else metrics
    version = results.provenance.get("version")
    first = tool(version) if isinstance(version, str) and version else tool()
    return "\n".join([first, *papers({name: cards[name] for name in used if name in cards})])


def cards_of(results: Results) -> dict[str, Any]:
    """The cards of metrics that results carry; those from elsewhere may have none."""
    found = results.provenance.get("cards")
    return (
        {name: card for name, card in found.items() if isinstance(card, Mapping)}
        if isinstance(found, Mapping)
        else {}
    )


def _entry(key: str, fields: Mapping[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{key},", *lines, "}"]) + "\n"


def _text(text: str) -> str:
    return escape(text, keep=True)
