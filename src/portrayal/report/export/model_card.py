"""A part for a model's card on a hub: its numbers as metadata, and a section that says what they are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from portrayal.files import write_text
from portrayal.report.export.citation import bibtex, cards_of
from portrayal.report.export.front_matter import front_matter
from portrayal.report.export.slugs import slug, slugs
from portrayal.report.tables.by_term import GROUPS
from portrayal.report.tables.layout import footnotes, is_too_few, sections, settings_text
from portrayal.report.tables.table import SUMMARY, Section
from portrayal.report.tables.text import about, escape, fenced, grid, paragraph, pipes
from portrayal.results import HUMAN, TOO_FEW, Measurement, Results

CARD_FILE = "model-card.md"
MOST = 24  # lines of a table; a card is an overview
TASK = {"type": "image-to-text", "name": "Portrayal of people"}


def write_cards(results: Results, folder: Path) -> list[Path]:
    """One for each system; people's captions have none."""
    found = systems(results)
    files = [CARD_FILE] if len(found) == 1 else [f"model-card-{name}.md" for name in slugs(found)]
    written = []
    for system, file in zip(found, files, strict=True):
        write_text(folder / file, model_card(results, system))
        written.append(folder / file)
    return written


def systems(results: Results) -> list[str]:
    return list(dict.fromkeys(m.system for m in results.measurements if m.system not in (None, HUMAN)))


def model_card(results: Results, system: str) -> str:
    return _Card.of(results, system).text()


@dataclass(frozen=True)
class _Card:
    results: Results  # of the system, and of people
    system: str
    tables: Sequence[Section]  # the headlines
    cards: Mapping[str, Any]
    study: Mapping[str, Any]

    @classmethod
    def of(cls, results: Results, system: str) -> _Card:
        kept = tuple(m for m in results.measurements if m.system in (system, HUMAN))
        mine = replace(results, measurements=kept)
        used = dict.fromkeys(m.metric for m in kept if m.system == system)
        cards = cards_of(results)
        study = results.provenance.get("study")
        return cls(
            mine,
            system,
            [table for table in map(_headlines, sections(mine)) if table.rows and table.metric in used],
            {name: cards.get(name, {}) for name in used},
            study if isinstance(study, Mapping) else {},
        )

    def text(self) -> str:
        parts = [
            ["## Bias and fairness evaluation", ""],
            self._introduction(),
            self._measured(),
            self._numbers(),
            self._caveats(),
            self._skipped(),
            self._again(),
            ["### Citation", "", *fenced(bibtex(self.results, self.cards), "bibtex"), ""],
        ]
        return (
            front_matter(self.metadata(), flat=("args",))
            + "\n"
            + "\n".join(line for part in parts for line in part)
        )

    def metadata(self) -> dict[str, Any]:
        """As the hub reads it. What is undefined or rests on too little is not to be ranked, and stays out."""
        name = str(self.study.get("name") or "study")
        dataset = {"type": slug(name), "name": name}
        if self.study.get("digest"):
            dataset["revision"] = str(self.study["digest"])
        found = {
            "task": TASK,
            "dataset": dataset,
            "metrics": [_metric(m) for m in self.headlines() if m.value is not None and not is_too_few(m)],
        }
        return {"model-index": [{"name": self.system, "results": [found]}]}

    def headlines(self) -> list[Measurement]:
        """The system's own numbers about all people, each once."""
        every = [m for table in self.tables for row in table.rows[:MOST] for m in row.cells.values()]
        return list({m.id: m for m in every if m.system == self.system and m.group is None}.values())

    def _introduction(self) -> list[str]:
        origin, study = self.results.provenance, self.study
        counts = [
            f"{study[name]:,} {name}"
            for name in ("images", "captions", "references", "instances")
            if isinstance(study.get(name), int) and study[name]
        ]
        version = escape(str(origin.get("version") or "(version unknown)"))
        name = escape(str(study.get("name") or "a study without a name"))
        lines = [
            f"{paragraph(self.system)} was measured with Portrayal {version} on {name}"
            + (f": {', '.join(counts)}." if counts else "."),
            "Numbers stand with their intervals where they have one. They say what was measured on this data; they do "
            "not say that a model is fair.",
            "",
        ]
        groups = study.get("groups")
        for attribute, sizes in (groups if isinstance(groups, Mapping) else {}).items():
            if isinstance(sizes, Mapping) and sizes:
                told = ", ".join(f"{group} {size}" for group, size in sizes.items())
                lines.append(f"- Images by {escape(str(attribute))}: {escape(told)}.")
        left_out = study.get("left_out")
        if isinstance(left_out, int) and left_out:
            lines.append(f"- Left out because they could not be used: {left_out:,}.")
        return [*lines, *([""] if lines[-1] else [])]

    def _measured(self) -> list[str]:
        lines = ["### What was measured", ""]
        for name, card in self.cards.items():
            told = ". ".join(str(card[part]).rstrip(".") for part in ("title", "question") if card.get(part))
            end = "" if not told or told.endswith("?") else "."
            lines.append(f"- **{escape(name)}**" + (f": {escape(told)}{end}" if told else ""))
        return [*lines, ""]

    def _numbers(self) -> list[str]:
        lines = ["### Numbers", ""]
        own = [m for m in self.results.measurements if m.system == self.system]
        undefined, few = sum(m.value is None for m in own), sum(map(is_too_few, own))
        lines += [
            f"Numbers about this model: {len(own):,}. Undefined: {undefined:,} (a dash; the reason stands "
            f"below its table). Resting on fewer than {TOO_FEW} images: {few:,} (†). Neither kind is in the metadata. "
            "Shown are the terms of which one end is better, without words, objects and concepts one by one: those "
            "are in the results.",
            "",
        ]
        for table in self.tables:
            shown = replace(table, rows=table.rows[:MOST])
            lines += [f"#### {escape(about(table))}", "", *pipes(*grid(shown, second=False)), ""]
            if len(table.rows) > MOST:
                lines += [f"{len(table.rows) - MOST:,} more lines are in the results.", ""]
            settings = [f"Settings: {settings_text(table.settings)}."] if table.settings else []
            for note in (*table.notes, *footnotes(shown.rows), *settings):
                lines += [paragraph(note), ""]
        return lines

    def _caveats(self) -> list[str]:
        told = [
            f"- {escape(name)}: {escape(str(caveat))}"
            for name, card in self.cards.items()
            for caveat in card.get("caveats") or ()
        ]
        return ["### What the numbers cannot say", "", *told, ""] if told else []

    def _skipped(self) -> list[str]:
        skipped = self.results.provenance.get("skipped")
        told = [
            f"- {' by '.join(escape(str(skip[name])) for name in ('metric', 'attribute') if skip.get(name))}: "
            f"{escape(str(skip.get('reason')))}"
            for skip in (skipped if isinstance(skipped, list | tuple) else ())
            if isinstance(skip, Mapping)
        ]
        return ["### What was not measured", "", *told, ""] if told else []

    def _again(self) -> list[str]:
        origin = self.results.provenance
        known = {
            "Portrayal": origin.get("version"),
            "seed": origin.get("seed"),
            "study": self.study.get("name"),
            "digest of the study": self.study.get("digest"),
            "measured": origin.get("started"),
        }
        told = [f"- {name}: {escape(str(value))}" for name, value in known.items() if value is not None]
        command = str(origin.get("command") or "")
        typed = ["", *fenced(command, "sh")] if command else []
        return ["### How to reproduce", "", *told, *typed, ""]


def _headlines(section: Section) -> Section:
    """Without words, objects or concepts one by one; where a metric has terms of which one end is better, those."""
    if section.by_term and section.part not in (SUMMARY, GROUPS):
        return replace(section, rows=[])
    rows = [row for row in section.rows if row.item is None]
    if section.by_term:
        some = [row for row in rows if any(m.better is not None for m in row.cells.values())]
        return replace(section, rows=some or rows)
    telling = {term for row in rows for term, m in row.cells.items() if m.better is not None}
    terms = [term for term in section.terms if term in telling] or section.terms
    cells = [{term: m for term, m in row.cells.items() if term in terms} for row in rows]
    kept = [replace(row, cells=some) for row, some in zip(rows, cells, strict=True) if some]
    return replace(section, rows=kept, terms=terms)


def _metric(m: Measurement) -> dict[str, Any]:
    by = f" by {m.attribute}" if m.attribute else ""
    told = {
        "term": m.term,
        "attribute": m.attribute,
        "unit": m.unit,
        "low": m.low,
        "high": m.high,
        "n": m.n,
    }
    return {
        "type": m.metric,
        "value": m.value,
        "name": f"{m.metric}: {m.term}{by}",
        "args": {name: value for name, value in told.items() if value is not None}
        | {"settings": dict(m.settings)},
        "verified": False,
    }
