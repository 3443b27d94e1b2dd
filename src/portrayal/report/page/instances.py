"""One person changed at a time: the picture, the picture a model takes for somebody else, and what it then says."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from portrayal.documents import json_object
from portrayal.report.charts.counterbias_data import BOTH, LANGUAGE, METRIC, VISUAL, groups_of, sides
from portrayal.results import EVIDENCE_SCHEMA, Results

MOST = 24
COUNTERFACTUAL, DIFFERENCE = "counterfactual", "difference"  # how the names of such pictures end


@dataclass(frozen=True)
class Instance:
    """An image, what a model says before and after, and the pictures. What is None was not measured."""

    image: str
    system: str
    attack: str  # how its counterfactual was made
    toward: str  # the group to which a positive bias leans
    concept: str
    group: str
    text: str
    target: tuple[float | None, float | None]  # P(T) before and after
    placebo: float | None  # P(T) after an attack of the same size at something else
    present: tuple[float | None, float | None]  # P(B) before and after
    biases: Mapping[str, float | None]  # percent
    defined: bool
    counterfactual: str
    difference: str | None

    @property
    def size(self) -> float:
        """How far it leans, whichever way; what is undefined leans least."""
        value = self.biases[BOTH]
        return -1.0 if value is None else abs(value)


def instances(results: Results) -> list[Instance]:
    """Some of those that have a counterfactual picture, spread over concepts, groups and models.

    Within a concept the largest biases come first: they are there to be looked at, not to stand for the others.
    """
    drawn = _drawn(results)
    told = [
        m for m in results.measurements
        if m.metric == METRIC and m.term == BOTH and m.item is not None and m.group is None
    ]  # fmt: skip
    toward = {m.id: sides(groups_of(m))[0] for m in told}
    attack = {m.id: str(m.settings.get("attack")) for m in told}
    if not drawn or not toward:
        return []
    key = pl.format("{}#{}#{}", "image_id", "system", "attack")
    rows = (
        results.evidence.filter(pl.col("id").is_in(list(toward)))
        .with_columns(attack=pl.col("id").replace_strict(attack, return_dtype=pl.String))
        .filter(pl.format("{}#" + COUNTERFACTUAL, key).is_in(list(drawn)))
        .unique(["image_id", "system", "attack"], keep="first", maintain_order=True)
    )
    found = []
    for identifier, image, system, text, detail in rows.select(list(EVIDENCE_SCHEMA)).iter_rows():
        about = json_object(detail)
        if about:
            of = (image, system, attack[identifier], toward[identifier])
            found.append(_instance(of, text or "", about, drawn))
    return _spread(found)


def is_made() -> pl.Expr:
    """Whether a picture is one that an attack made, not one that captions are about."""
    return pl.col("image_id").str.contains(f"#({COUNTERFACTUAL}|{DIFFERENCE})$")


def _drawn(results: Results) -> dict[str, bytes]:
    return dict(results.pictures.drop_nulls().filter(is_made()).iter_rows())


def _instance(
    of: tuple[str, str, str, str], text: str, about: Mapping[str, Any], drawn: Mapping[str, bytes]
) -> Instance:
    key = "#".join(of[:3])
    target, present = _inner(about, "target"), _inner(about, "present")
    difference = drawn.get(f"{key}#{DIFFERENCE}")
    return Instance(
        *of,
        str(about.get("concept") or ""),
        str(about.get("group") or ""),
        text,
        (_number(target.get("factual")), _number(target.get("counterfactual"))),
        _number(target.get("placebo")),
        (_number(present.get("factual")), _number(present.get("counterfactual"))),
        {term: _number(about.get(term)) for term in (BOTH, VISUAL, LANGUAGE)},
        about.get("defined") is not False,
        base64.b64encode(drawn[f"{key}#{COUNTERFACTUAL}"]).decode(),
        None if difference is None else base64.b64encode(difference).decode(),
    )


def _spread(found: Sequence[Instance]) -> list[Instance]:
    """Turn by turn one of each concept, each time of another group and model."""
    names = sorted({one.concept for one in found})
    step = max(1, len(names) // MOST)
    lanes = sorted({(one.group, one.system, one.attack) for one in found})
    queues = [
        _queue([one for one in found if one.concept == name], lanes, n)
        for n, name in enumerate(names[step // 2 :: step][:MOST])
    ]
    turns = [
        queue[turn]
        for turn in range(max(map(len, queues), default=0))
        for queue in queues
        if turn < len(queue)
    ]
    return sorted(turns[:MOST], key=lambda one: (one.concept, -one.size))


def _queue(found: Sequence[Instance], lanes: Sequence[tuple[str, str, str]], start: int) -> list[Instance]:
    """Those of one concept, lane by lane from the one at `start`, the largest of each lane first."""
    by_lane = [
        sorted(
            (one for one in found if (one.group, one.system, one.attack) == lane), key=lambda one: -one.size
        )
        for lane in [*lanes[start % len(lanes) :], *lanes[: start % len(lanes)]]
    ]
    return [lane[turn] for turn in range(max(map(len, by_lane))) for lane in by_lane if turn < len(lane)]


def _inner(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = about.get(name)
    return inner if isinstance(inner, dict) else {}


def _number(value: object) -> float | None:
    """Evidence may come from elsewhere: only a finite number is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number that no float can hold
        return None
