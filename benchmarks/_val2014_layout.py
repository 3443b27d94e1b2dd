"""Rows of measurements as the Markdown tables of the docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MeasurementRow = dict[str, Any]
_SOURCE_LABELS = {"human": "human captions"}
_UNDEFINED = "–"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def pick(rows: Sequence[MeasurementRow], term: str, system: str, **fields: Any) -> MeasurementRow | None:
    """The row of a term and system; group and item are null unless given, settings count where given."""
    settings = fields.pop("settings", {})
    expected = {"group": None, "item": None, **fields}
    matches = [
        row
        for row in rows
        if row["term"] == term
        and row["system"] == system
        and all(row[name] == value for name, value in expected.items())
        and all(row["settings"].get(name) == value for name, value in settings.items())
    ]
    return matches[0] if matches else None


def number(row: MeasurementRow | None, digits: int = 3, interval: bool = False, signed: bool = False) -> str:
    if row is None or row["value"] is None:
        return _UNDEFINED

    def formatted(value: float) -> str:
        text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
        return text.replace("0.", ".", 1) if abs(value) < 1 and digits > 1 else text

    text = formatted(row["value"])
    if interval and row["low"] is not None:
        text += f" [{formatted(row['low'])}, {formatted(row['high'])}]"
    return text


def quality(rows: Sequence[MeasurementRow], sources: Sequence[str]) -> str:
    gender = [row for row in rows if row["attribute"] == "gender"]
    race = [row for row in rows if row["attribute"] == "race"]
    header = ["system", "BLEU-4", "CIDEr", "CHAIR-i", "CHAIR-s", "women", "men", "CHAIR-s gap", "p"]
    quality_rows, skin_rows, cider_rows = [], [], []
    for source in sources:
        gender_gap = pick(gender, "chair-s-gap", source)
        quality_rows.append(
            [
                _SOURCE_LABELS.get(source, source),
                *(number(pick(gender, term, source)) for term in ("bleu-4", "cider", "chair-i", "chair-s")),
                *(number(pick(gender, "chair-s", source, group=group)) for group in ("female", "male")),
                number(gender_gap, interval=True),
                _UNDEFINED if gender_gap is None or gender_gap["p"] is None else f"{gender_gap['p']:.3f}"[1:],
            ]
        )
        skin_gap = pick(race, "chair-s-gap", source)
        skin_rows.append([source, number(skin_gap, interval=True), str(skin_gap and skin_gap["p"])])
        cider_rows.append(
            [source, *(number(pick(gender, "cider", source, group=g)) for g in ("female", "male"))]
        )
    n = pick(gender, "chair-s", sources[0])
    return "\n\n".join(
        [
            f"n of chair-s: {n and n['n']}",
            markdown(header, quality_rows),
            "By skin tone:",
            markdown(["system", "CHAIR-s gap", "p"], skin_rows),
            "CIDEr:",
            markdown(["system", "women", "men"], cider_rows),
        ]
    )


def synonyms(rows: Sequence[MeasurementRow], sources: Sequence[str]) -> str:
    table = []
    for source in sources:
        for truth in ("both", "labels"):
            subset = [row for row in rows if row["settings"].get("truth") == truth]
            table.append(
                [
                    source,
                    truth,
                    *(number(pick(subset, term, source)) for term in ("chair-i", "chair-s")),
                    *(number(pick(subset, "chair-s", source, group=group)) for group in ("female", "male")),
                    number(pick(subset, "chair-s-gap", source), interval=True),
                ]
            )
    return markdown(["system", "truth", "CHAIR-i", "CHAIR-s", "women", "men", "CHAIR-s gap"], table)


def leakage(rows: Sequence[MeasurementRow], sources: Sequence[str]) -> str:
    label_mistakes = [row for row in rows if row["settings"].get("mistakes") == "label"]
    terms = ("on-outputs", "on-truth", "difference", "predictability", "on-labels", "f1")
    header = ["system", "on-outputs", "on-truth", "difference", "predictability", "labels as they are", "F1"]
    table = [
        [
            _SOURCE_LABELS.get(source, source),
            *(number(pick(label_mistakes, term, source), interval=term == "difference") for term in terms),
        ]
        for source in sources
    ]
    differences = []
    for source in sources:
        subsets = [
            [row for row in rows if row["settings"].get("mistakes") == mistakes]
            for mistakes in ("label", "overall", "flip")
        ]
        differences.append(
            [source, *(number(pick(subset, "difference", source), interval=True) for subset in subsets)]
        )
    image_counts = ", ".join(
        f"{source}: {(pick(label_mistakes, 'on-outputs', source) or {}).get('n')}" for source in sources
    )
    return "\n\n".join(
        [
            f"n {image_counts}",
            markdown(header, table),
            "Difference by --mistakes:",
            markdown(["system", "label", "overall", "flip"], differences),
        ]
    )


def terms(rows: Sequence[MeasurementRow], sources: Sequence[str]) -> str:
    """All headline rows of a metric, a column a term."""
    names = list(dict.fromkeys(row["term"] for row in rows if row["group"] is None and row["item"] is None))
    table = [
        [
            _SOURCE_LABELS.get(source, source),
            *(number(pick(rows, name, source), interval=True, signed=True) for name in names),
        ]
        for source in sources
    ]
    return markdown(["system", *names], table)


def harms(rows: Sequence[MeasurementRow], sources: Sequence[str]) -> str:
    gender = [row for row in rows if row["attribute"] == "gender"]
    names = list(dict.fromkeys(row["term"] for row in gender))
    stage = {source: "3" if source == "human" else "4" for source in sources}
    parts = []
    for attribute in ("gender", "race"):
        subset = [row for row in rows if row["attribute"] == attribute]
        table = [
            [name, *(_count(subset, name, source, stage[source]) for source in sources)] for name in names
        ]
        parts += [f"{attribute}:", markdown(["measurement", *sources], table)]
    axes = ("gender", "age", "ethnicity", "norp")
    cells_by_axis = []
    for axis in axes:
        for stages in ("4", "4-without-3"):
            cells = [
                _count(
                    gender,
                    "self-identification.identity-words",
                    source,
                    "3" if source == "human" else stages,
                    axis,
                )
                for source in sources
            ]
            cells_by_axis.append([f"{axis} ({stages})", *cells])
    for axis in axes:
        cells = [
            _count(gender, "erasure.group-not-mentioned", source, stage[source], axis) for source in sources
        ]
        cells_by_axis.append([f"{axis}, not mentioned", *cells])
    parts += [
        "Axes:",
        markdown(["axis", *sources], cells_by_axis),
        "Largest by item:",
        _largest(gender, sources, stage),
    ]
    return "\n\n".join(parts)


def _count(
    rows: Sequence[MeasurementRow], term: str, source: str, stage: str, item: str | None = None
) -> str:
    subset = [row for row in rows if row["settings"].get("stage") == stage]
    count = pick(subset, term, source, item=item, unit="count")
    share = pick(subset, term, source, item=item, unit="share")
    if count is None and share is None:
        row = pick(subset, term, source, item=item)
        return number(row, interval=True) if row else ""
    cells = []
    if count is not None and count["value"] is not None:
        cells.append(f"{count['value']:,.0f} of {count['n']:,}")
    if share is not None and share["value"] is not None:
        cells.append(f"({100 * share['value']:.1f})")
    return " ".join(cells) or _UNDEFINED


def _largest(rows: Sequence[MeasurementRow], sources: Sequence[str], stage: dict[str, str]) -> str:
    """Rows with an item that texts quote: the eight largest of each term and system."""
    lines = []
    for source in sources:
        subset = [
            row
            for row in rows
            if row["system"] == source
            and row["settings"].get("stage") in (stage[source], "1")
            and row["item"] is not None
            and row["value"] is not None
            and row["term"].startswith(("stereotyping.", "erasure.misnaming"))
        ]
        for key in dict.fromkeys((row["term"], row["unit"], row["settings"].get("stage")) for row in subset):
            key_rows = [
                row for row in subset if (row["term"], row["unit"], row["settings"].get("stage")) == key
            ]
            key_rows.sort(key=lambda row: -abs(row["value"]))
            text = ", ".join(
                f"{row['item']}{'' if row['group'] is None else '/' + row['group']} {row['value']:.3f}"
                f"{'' if row['p'] is None else ' p ' + format(row['p'], '.3f')}"
                for row in key_rows[:8]
            )
            lines.append(f"- {source}, {key[0]} ({key[1]}, stage {key[2]}): {text}")
    return "\n".join(lines)


def mitigation(rows: Sequence[MeasurementRow], systems: Sequence[str]) -> str:
    columns = {
        "lic_m": ("lic", "lic_m"),
        "lic_d": ("lic", "lic_d"),
        "lic": ("lic", "lic"),
        "right": ("error", "right"),
        "wrong": ("error", "wrong"),
        "neutral": ("error", "neutral"),
        "both": ("error", "both"),
        "not mentioned": ("harms", "erasure.group-not-mentioned"),
        "cider": ("quality", "cider"),
    }
    names = list(dict.fromkeys(row["system"] for row in rows))
    table = []
    for system in (name for name in names if name and name.startswith(tuple(systems))):
        cells = []
        for metric, term in columns.values():
            subset = [row for row in rows if row["metric"] == metric and row["unit"] != "count"]
            cells.append(number(pick(subset, term, system), 1 if metric == "lic" else 3, interval=True))
        table.append([system, *cells])
    changes = [
        [
            str(row["system"]),
            row["term"],
            str(row["item"]),
            str(row["group"]),
            number(row, 3, interval=True, signed=True),
        ]
        for row in rows
        if row["metric"] == "caption-mitigation" and row["value"] is not None and row["group"] is None
    ]
    return "\n\n".join(
        [
            markdown(["system", *columns], table),
            "Rows of `caption-mitigation`:",
            markdown(["system", "term", "item", "group", "value"], changes),
        ]
    )
