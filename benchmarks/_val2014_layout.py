"""Rows of measurements as the Markdown tables of the docs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
_STYLE = {"human": "people"}
_CANNOT = "–"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def pick(rows: Sequence[Row], term: str, system: str, **fields: Any) -> Row | None:
    """The row of a term and system; group and item are null unless given, settings count where given."""
    settings = fields.pop("settings", {})
    wanted = {"group": None, "item": None, **fields}
    found = [
        row
        for row in rows
        if row["term"] == term
        and row["system"] == system
        and all(row[name] == value for name, value in wanted.items())
        and all(row["settings"].get(name) == value for name, value in settings.items())
    ]
    return found[0] if found else None


def number(row: Row | None, digits: int = 3, interval: bool = False, signed: bool = False) -> str:
    if row is None or row["value"] is None:
        return _CANNOT

    def told(value: float) -> str:
        text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
        return text.replace("0.", ".", 1) if abs(value) < 1 and digits > 1 else text

    text = told(row["value"])
    if interval and row["low"] is not None:
        text += f" [{told(row['low'])}, {told(row['high'])}]"
    return text


def quality(rows: Sequence[Row], sources: Sequence[str]) -> str:
    gender = [row for row in rows if row["attribute"] == "gender"]
    race = [row for row in rows if row["attribute"] == "race"]
    header = ["system", "BLEU-4", "CIDEr", "CHAIR-i", "CHAIR-s", "women", "men", "CHAIR-s gap", "p"]
    table, skin, cider = [], [], []
    for source in sources:
        gap = pick(gender, "chair-s-gap", source)
        table.append(
            [
                _STYLE.get(source, source),
                *(number(pick(gender, term, source)) for term in ("bleu-4", "cider", "chair-i", "chair-s")),
                *(number(pick(gender, "chair-s", source, group=group)) for group in ("female", "male")),
                number(gap, interval=True),
                _CANNOT if gap is None or gap["p"] is None else f"{gap['p']:.3f}"[1:],
            ]
        )
        tone = pick(race, "chair-s-gap", source)
        skin.append([source, number(tone, interval=True), str(tone and tone["p"])])
        cider.append([source, *(number(pick(gender, "cider", source, group=g)) for g in ("female", "male"))])
    n = pick(gender, "chair-s", sources[0])
    return "\n\n".join(
        [
            f"n of chair-s: {n and n['n']}",
            markdown(header, table),
            "By skin tone:",
            markdown(["system", "CHAIR-s gap", "p"], skin),
            "CIDEr:",
            markdown(["system", "women", "men"], cider),
        ]
    )


def synonyms(rows: Sequence[Row], sources: Sequence[str]) -> str:
    table = []
    for source in sources:
        for truth in ("both", "labels"):
            some = [row for row in rows if row["settings"].get("truth") == truth]
            table.append(
                [
                    source,
                    truth,
                    *(number(pick(some, term, source)) for term in ("chair-i", "chair-s")),
                    *(number(pick(some, "chair-s", source, group=group)) for group in ("female", "male")),
                    number(pick(some, "chair-s-gap", source), interval=True),
                ]
            )
    return markdown(["system", "truth", "CHAIR-i", "CHAIR-s", "women", "men", "CHAIR-s gap"], table)


def leakage(rows: Sequence[Row], sources: Sequence[str]) -> str:
    usual = [row for row in rows if row["settings"].get("mistakes") == "label"]
    terms = ("on-outputs", "on-truth", "difference", "predictability", "on-labels", "f1")
    header = ["system", "on-outputs", "on-truth", "difference", "predictability", "labels as they are", "F1"]
    table = [
        [
            _STYLE.get(source, source),
            *(number(pick(usual, term, source), interval=term == "difference") for term in terms),
        ]
        for source in sources
    ]
    other = []
    for source in sources:
        made = [
            [row for row in rows if row["settings"].get("mistakes") == how]
            for how in ("label", "overall", "flip")
        ]
        other.append([source, *(number(pick(some, "difference", source), interval=True) for some in made)])
    counted = ", ".join(f"{s}: {(pick(usual, 'on-outputs', s) or {}).get('n')}" for s in sources)
    return "\n\n".join(
        [
            f"n {counted}",
            markdown(header, table),
            "Difference by --mistakes:",
            markdown(["system", "label", "overall", "flip"], other),
        ]
    )


def terms(rows: Sequence[Row], sources: Sequence[str]) -> str:
    """All headline rows of a metric, a column a term."""
    names = list(dict.fromkeys(row["term"] for row in rows if row["group"] is None and row["item"] is None))
    table = [
        [
            _STYLE.get(source, source),
            *(number(pick(rows, name, source), interval=True, signed=True) for name in names),
        ]
        for source in sources
    ]
    return markdown(["system", *names], table)


def harms(rows: Sequence[Row], sources: Sequence[str]) -> str:
    gender = [row for row in rows if row["attribute"] == "gender"]
    names = list(dict.fromkeys(row["term"] for row in gender))
    stage = {source: "3" if source == "human" else "4" for source in sources}
    parts = []
    for attribute in ("gender", "race"):
        some = [row for row in rows if row["attribute"] == attribute]
        table = [[name, *(_count(some, name, source, stage[source]) for source in sources)] for name in names]
        parts += [f"{attribute}:", markdown(["measurement", *sources], table)]
    axes = ("gender", "age", "ethnicity", "norp")
    told = []
    for axis in axes:
        for which in ("4", "4-without-3"):
            cells = [
                _count(
                    gender,
                    "self-identification.identity-words",
                    source,
                    "3" if source == "human" else which,
                    axis,
                )
                for source in sources
            ]
            told.append([f"{axis} ({which})", *cells])
    for axis in axes:
        cells = [
            _count(gender, "erasure.group-not-mentioned", source, stage[source], axis) for source in sources
        ]
        told.append([f"{axis}, not mentioned", *cells])
    parts += [
        "Axes:",
        markdown(["axis", *sources], told),
        "Largest by item:",
        _largest(gender, sources, stage),
    ]
    return "\n\n".join(parts)


def _count(rows: Sequence[Row], term: str, source: str, stage: str, item: str | None = None) -> str:
    some = [row for row in rows if row["settings"].get("stage") == stage]
    count = pick(some, term, source, item=item, unit="count")
    share = pick(some, term, source, item=item, unit="share")
    if count is None and share is None:
        other = pick(some, term, source, item=item)
        return number(other, interval=True) if other else ""
    cells = []
    if count is not None and count["value"] is not None:
        cells.append(f"{count['value']:,.0f} of {count['n']:,}")
    if share is not None and share["value"] is not None:
        cells.append(f"({100 * share['value']:.1f})")
    return " ".join(cells) or _CANNOT


def _largest(rows: Sequence[Row], sources: Sequence[str], stage: dict[str, str]) -> str:
    """Rows with an item that texts quote: the eight largest of each term and system."""
    lines = []
    for source in sources:
        some = [
            row
            for row in rows
            if row["system"] == source
            and row["settings"].get("stage") in (stage[source], "1")
            and row["item"] is not None
            and row["value"] is not None
            and row["term"].startswith(("stereotyping.", "erasure.misnaming"))
        ]
        for key in dict.fromkeys((row["term"], row["unit"], row["settings"].get("stage")) for row in some):
            mine = [row for row in some if (row["term"], row["unit"], row["settings"].get("stage")) == key]
            mine.sort(key=lambda row: -abs(row["value"]))
            told = ", ".join(
                f"{row['item']}{'' if row['group'] is None else '/' + row['group']} {row['value']:.3f}"
                f"{'' if row['p'] is None else ' p ' + format(row['p'], '.3f')}"
                for row in mine[:8]
            )
            lines.append(f"- {source}, {key[0]} ({key[1]}, stage {key[2]}): {told}")
    return "\n".join(lines)


def mitigation(rows: Sequence[Row], systems: Sequence[str]) -> str:
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
            some = [row for row in rows if row["metric"] == metric and row["unit"] != "count"]
            cells.append(number(pick(some, term, system), 1 if metric == "lic" else 3, interval=True))
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
        if row["metric"] == "remedy" and row["value"] is not None and row["group"] is None
    ]
    return "\n\n".join(
        [
            markdown(["system", *columns], table),
            "Rows of `remedy`:",
            markdown(["system", "term", "item", "group", "value"], changes),
        ]
    )
