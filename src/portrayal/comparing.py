"""Two results side by side: what differs, by how much, and how sure that is."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import PortrayalError
from portrayal.results import HUMAN, Measurement, Results, command_line, provenance
from portrayal.stats import (
    Difference,
    holm,
    learning_variance,
    multiway_variance,
    paired_difference,
    sorted_clusters,
    unpaired_difference,
)

Key = tuple[Any, ...]


def compare(first: Results, second: Results, names: tuple[str, str] = ("first", "second")) -> Results:
    """second - first for every headline and group row that both have; p of headlines corrected by Holm.

    Where both audits drew the same images in the same draws, the difference is paired. Where each speaks of one
    system only, those two are compared whatever they are called. People's captions are not compared with
    themselves.
    """
    started = time.time()
    renamed = _one_against_one(first, second)
    ours = {_key(m, renamed): m for m in first.measurements if _comparable(m)}
    theirs = {_key(m, renamed): m for m in second.measurements if _comparable(m)}
    shared = [key for key in ours if key in theirs]
    if not shared:
        raise PortrayalError(
            f"{names[0]} and {names[1]} share no row to compare: they need the same metric, term, system, group "
            "and settings."
        )
    draws = (_draws(first), _draws(second))
    errors = {
        key: joint_error(first, ours[key], second, theirs[key])
        for key in shared
        if ours[key].id in draws[0] and theirs[key].id in draws[1]
    }
    rows = [_difference(ours[key], theirs[key], draws, errors.get(key)) for key in shared]
    headlines = [index for index, row in enumerate(rows) if row.group is None]
    corrected = dict(zip(headlines, holm([rows[index].p for index in headlines]), strict=True))
    measurements = tuple(_with_q(row, corrected.get(index)) for index, row in enumerate(rows))
    origin = provenance(
        command=command_line(),
        seed=None,
        started=started,
        study={"digest": "", "first": _study(first), "second": _study(second)},
        cards={**_cards(first), **_cards(second)},
        compared=list(names),
        only_first=len(ours) - len(shared),
        only_second=len(theirs) - len(shared),
    )
    return Results(measurements, provenance=origin)


def _comparable(m: Measurement) -> bool:
    return m.item is None and m.system != HUMAN


def _systems(results: Results) -> set[str | None]:
    return {m.system for m in results.measurements if _comparable(m)}


def _one_against_one(first: Results, second: Results) -> bool:
    ours, theirs = _systems(first), _systems(second)
    return len(ours) == len(theirs) == 1 and ours != theirs


def _key(m: Measurement, renamed: bool) -> Key:
    settings = tuple(sorted((name, str(value)) for name, value in m.settings.items()))
    return (m.metric, m.term, m.attribute, m.group, m.unit, settings, None if renamed else m.system)


def _draws(results: Results) -> dict[str, tuple[str, NDArray[np.float64]]]:
    return {
        identifier: (sample, np.array([np.nan if draw is None else draw for draw in draws], dtype=np.float64))
        for identifier, sample, draws in results.replicates.iter_rows()
    }


def _difference(
    a: Measurement, b: Measurement, draws: tuple[dict[str, Any], dict[str, Any]], error: float | None
) -> Measurement:
    if a.value is None or b.value is None:
        which, undefined = ("first", a) if a.value is None else ("second", b)
        return _row(a, b, None, None, f"undefined in the {which}: {undefined.reason}")
    mine, other = draws[0].get(a.id), draws[1].get(b.id)
    errors = (_whole_error(a), _whole_error(b))
    if mine is not None and other is not None and mine[0] == other[0]:
        joint = None if error is None else math.hypot(error, _seed_error(a), _seed_error(b))
        found = paired_difference(a.value, b.value, mine[1], other[1], errors, joint)
        return _row(a, b, found, True, None)
    return _row(a, b, unpaired_difference(a.value, b.value, *errors), False, None)


def _seed_error(m: Measurement) -> float:
    """How far a mean over seeds would move with other seeds: large where networks are trained."""
    repeats = m.settings.get("repeats")
    return m.std_seed / math.sqrt(repeats) if m.std_seed and isinstance(repeats, int) and repeats > 0 else 0.0


def _whole_error(m: Measurement) -> float | None:
    """For other data and other seeds."""
    return None if m.se_data is None else math.hypot(m.se_data, _seed_error(m))


def _row(
    a: Measurement, b: Measurement, found: Difference | None, paired: bool | None, reason: str | None
) -> Measurement:
    compared = {**a.settings, "comparison": "second - first"}
    # What was measured stands among the settings, but the id names the row, whatever was measured.
    settings: Mapping[str, Any] = {
        **compared,
        "first": a.value,
        "second": b.value,
        "paired": paired if found is not None and found.se is not None else None,
        "detectable": None if found is None else found.detectable,
    }
    system = a.system if a.system == b.system else f"{a.system} → {b.system}"
    named = Measurement(
        a.metric, a.term, system=system, attribute=a.attribute, group=a.group, unit=a.unit, settings=compared
    )
    return Measurement(
        metric=a.metric,
        term=a.term,
        system=system,
        attribute=a.attribute,
        group=a.group,
        value=None if found is None else found.value,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        se_data=None if found is None else found.se,
        n=min(a.n, b.n) if a.n is not None and b.n is not None else None,
        n_unit=a.n_unit,
        p=None if found is None else found.p,
        ideal=None,
        better=a.better if a.better in ("lower", "higher") else None,
        unit=a.unit,
        reason=reason,
        id=named.id,
        settings=settings,
    )


def _with_q(row: Measurement, q: float | None) -> Measurement:
    return Measurement(**{**row.as_dict(), "q": q})


def _study(results: Results) -> object:
    study = results.provenance.get("study")
    return study.get("digest") if isinstance(study, dict) else None


def _cards(results: Results) -> dict[str, Any]:
    cards = results.provenance.get("cards")
    return cards if isinstance(cards, dict) else {}


@dataclass(frozen=True)
class _Scored:
    """What was found of one image: its group and score, the text it shares with others, and what it adds in all."""

    group: str
    score: float
    text: str
    effect: float
    by_pairs: tuple[float, ...]


def joint_error(first: Results, a: Measurement, second: Results, b: Measurement) -> float | None:
    """The standard error of a difference of mean scores of captions, from the scores themselves.

    Captions of one system that share a text are alike, and so is what the other system says of their images: both
    systems' texts are clusters. What images add by being learnt from is counted as the metric counts it. None where
    the evidence does not hold the score of every image: it does for headlines.
    """
    ours, theirs = _scores(first, a), _scores(second, b)
    if ours is None or theirs is None or set(ours) != set(theirs):
        return None
    images = sorted(ours)
    tested = np.zeros(len(images))
    for scored, sign in ((ours, -1.0), (theirs, 1.0)):
        groups = sorted({one.group for one in scored.values()})
        for group in groups:
            mine = np.array([scored[image].group == group for image in images])
            values = np.array([scored[image].score for image in images])[mine]
            tested[mine] += sign * 100 * (values - values.mean()) / len(values) / len(groups)
    texts = [sorted_clusters([scored[image].text for image in images])[1] for scored in (ours, theirs)]
    whole = np.array([theirs[image].effect - ours[image].effect for image in images])
    pairs = [np.array([scored[image].by_pairs for image in images]) for scored in (ours, theirs)]
    return math.sqrt(
        max(
            multiway_variance(tested, np.arange(len(images)), *texts),
            learning_variance(whole, pairs[1] - pairs[0]),
        )
    )


def _scores(results: Results, m: Measurement) -> dict[str, _Scored] | None:
    """By image, out of a headline's evidence; None where that is not all there is, or of another number."""
    found = results.evidence_of(m)
    if m.group is not None or m.unit != "percent" or m.value is None or found.height != m.n:
        return None
    scored: dict[str, _Scored] = {}
    groups: dict[str, list[float]] = {}
    for image, detail in found.select("image_id", "detail").iter_rows():
        told = json.loads(detail)
        if not isinstance(told, dict) or not {"labelled", "mean score", "effect", "by pairs"} <= set(told):
            return None
        scored[image] = _Scored(
            str(told["labelled"]),
            float(told["mean score"]),
            str(told.get("read", "")) or " ".join(str(word) for word, _ in told.get("parts", ())),
            float(told["effect"]),
            tuple(float(one) for one in told["by pairs"]),
        )
        groups.setdefault(scored[image].group, []).append(scored[image].score)
    mean = 100 * float(np.mean([np.mean(found) for found in groups.values()]))
    return scored if len(scored) == m.n and abs(mean - m.value) < 0.01 else None
