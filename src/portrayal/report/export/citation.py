"""BibTeX entries for this program and for the papers of the metrics in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portrayal import __version__
from portrayal.report.cards import metric_cards
from portrayal.report.export.slugs import slugs
from portrayal.report.tables.latex import escape
from portrayal.results import Results

# As in CITATION.cff, which an installed package does not have. A test compares them.
TITLE = "Portrayal: auditing how captioners and vision-language models portray people"
AUTHORS = ("The Portrayal authors",)


def software_entry(version: str = __version__) -> str:
    """The entry of the program in this version."""
    authors = " and ".join(f"{{{_text(name)}}}" for name in AUTHORS)  # BibTeX does not split a name in braces
    fields = {"title": f"{{{_text(TITLE)}}}", "author": authors, "note": f"Version {_text(version)}"}
    return _entry("portrayal", fields)


def paper_entries(cards: Mapping[str, Any]) -> list[str]:
    """An entry for each paper in the cards, with the text of the card as a note."""
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
    """The entries of the program and of the papers of all metrics in the results, or of those given."""
    cards = metric_cards(results)
    used = dict.fromkeys(m.metric for m in results.measurements) if metrics is None else metrics
    version = results.provenance.get("version")
    first = software_entry(version) if isinstance(version, str) and version else software_entry()
    return "\n".join([first, *paper_entries({name: cards[name] for name in used if name in cards})])


def _entry(key: str, fields: Mapping[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{key},", *lines, "}"]) + "\n"


def _text(text: str) -> str:
    return escape(text, keep_unicode=True)
