"""Two results side by side: what differs, by how much, and how sure that is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.comparing.outcomes import Outcomes, only_on_one_side
from portrayal.comparing.paired_error import joint_error
from portrayal.comparing.sizes import caution_about_sizes, images_of
from portrayal.errors import PortrayalError
from portrayal.results import (
    HUMAN,
    NOTHING_DIFFERS,
    TOO_FEW_REASON,
    Measurement,
    Results,
    command_line,
    join_cautions,
    provenance,
    split_cautions,
)
from portrayal.stats import (
    Difference,
    Interval,
    holm,
    interval_difference,
    mcnemar_difference,
    paired_difference,
    unpaired_difference,
)

Key = tuple[Any, ...]


def compare(first: Results, second: Results, names: tuple[str, str] = ("first", "second")) -> Results:
    """second - first for every headline and group row that both have; p corrected by Holm over all that are tested.

    Where both audits drew the same images in the same draws, the difference is paired. Where every image counts or
    does not, on the same images, McNemar's test takes the place of resamples. Where each speaks of one system only,
    those two are compared whatever they are called. People's captions are not compared with themselves. What rests on
    too few images is shown and not tested, as in an audit. What either audit cautions about, this does too.
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
    outcomes = (
        Outcomes(first, [ours[key] for key in shared]),
        Outcomes(second, [theirs[key] for key in shared]),
    )
    cards = {**_cards(first), **_cards(second)}
    images = (images_of(first), images_of(second))
    rows = []
    for key in shared:
        a, b = ours[key], theirs[key]
        apart = only_on_one_side(outcomes[0], a, outcomes[1], b)
        row = _difference(a, b, draws, errors.get(key), apart)
        sizes = caution_about_sizes(cards, a, b, images) if row.value is not None else None
        if sizes is not None:
            row = replace(row, p=None, better=None, caution=join_cautions([sizes, row.caution]))
        rows.append(row)
    measurements = tuple(replace(row, q=q) for row, q in zip(rows, _corrected(rows), strict=True))
    origin = provenance(
        command=command_line(),
        seed=None,
        started=started,
        study={"digest": "", "first": _study(first), "second": _study(second)},
        cards=cards,
        compared=list(names),
        same_images=_same_images(first, second),
        only_first=len(ours) - len(shared),
        only_second=len(theirs) - len(shared),
    )
    return Results(measurements, provenance=origin)


def _same_images(first: Results, second: Results) -> bool | None:
    """None where an audit does not say which images it has."""
    sets = [_object(results.provenance.get("study")).get("image_set") for results in (first, second)]
    return None if None in sets else sets[0] == sets[1]


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


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
        if draws is not None
    }


def _difference(
    a: Measurement,
    b: Measurement,
    draws: tuple[dict[str, Any], dict[str, Any]],
    error: float | None,
    apart: tuple[int, int] | None,
) -> Measurement:
    if a.value is None or b.value is None:
        which, undefined = ("first", a) if a.value is None else ("second", b)
        return _row(a, b, None, None, f"undefined in the {which}: {undefined.reason}")
    if not math.isfinite(b.value - a.value):
        return _row(a, b, None, None, "the difference is larger than numbers can be")
    if apart is not None and a.n:
        return _row(a, b, mcnemar_difference(*apart, a.n), True, None)
    mine, other = draws[0].get(a.id), draws[1].get(b.id)
    errors = (_whole_error(a), _whole_error(b))
    ours, theirs = _interval(a), _interval(b)
    still = a.value != b.value and (_never_varies(mine, a) or _never_varies(other, b))
    if still and ours is not None and theirs is not None:
        return _row(a, b, interval_difference(ours, theirs), False, None)
    if mine is not None and other is not None and mine[0] == other[0] and len(mine[1]) == len(other[1]):
        joint = None if error is None else math.hypot(error, _seed_error(a), _seed_error(b))
        found = paired_difference(a.value, b.value, mine[1], other[1], errors, joint)
        return _row(a, b, found, True, None)
    return _row(a, b, unpaired_difference(a.value, b.value, *errors), False, None)


def _interval(m: Measurement) -> Interval | None:
    if m.value is None or m.low is None or m.high is None or not m.low <= m.value <= m.high:
        return None
    return Interval(m.value, m.low, m.high)


def _never_varies(draws: tuple[str, NDArray[np.float64]] | None, m: Measurement) -> bool:
    """Whether all resamples of a number are alike, though its interval says that other images would differ."""
    if m.low is None or m.high is None or m.low == m.high:
        return False
    if draws is None:
        return m.se_data == 0
    known = draws[1][np.isfinite(draws[1])]
    return bool(len(known)) and bool(np.ptp(known) == 0)


def _seed_error(m: Measurement) -> float:
    """How far a mean over seeds would move with other seeds: large where networks are trained."""
    repeats = m.settings.get("repeats")
    return m.std_seed / math.sqrt(repeats) if m.std_seed and isinstance(repeats, int) and repeats > 0 else 0.0


def _whole_error(m: Measurement) -> float | None:
    """For other data and other seeds."""
    return None if m.se_data is None else math.hypot(m.se_data, _seed_error(m))


def _corrected(rows: Sequence[Measurement]) -> list[float | None]:
    """q by Holm. A number of all people that is a group's own, as where there are two groups, is one test, not two."""
    groups = {_number(row): place for place, row in enumerate(rows) if row.group is not None}
    same = [groups.get(_number(row)) if row.group is None else None for row in rows]
    corrected = holm([row.p if place is None else None for row, place in zip(rows, same, strict=True)])
    return [q if place is None else corrected[place] for q, place in zip(corrected, same, strict=True)]


def _number(row: Measurement) -> Key:
    """What a row says, whoever it is about: rows that agree in all of it are of one number."""
    settings = tuple(sorted((name, str(value)) for name, value in row.settings.items()))
    about = (row.metric, row.term, row.system, row.attribute, row.unit, settings)
    return (*about, row.value, row.low, row.high, row.se_data, row.p, row.n)


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
        "test": None if found is None else found.test,
    }
    reason = reason or _reason(a, b, found)
    tested = found is not None and not (reason or "").startswith(TOO_FEW_REASON)
    cautions = _of_either(a, b, lambda m: split_cautions(m.caution), "In the {side}: {text}") if found else []
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
        p=found.p if found is not None and tested else None,
        ideal=None,
        better=_better(a, b) if tested else None,
        unit=a.unit,
        reason=reason,
        caution=join_cautions(cautions),
        id=named.id,
        settings=settings,
    )


def _reason(a: Measurement, b: Measurement, found: Difference | None) -> str | None:
    """Why a difference is not tested, and what either side says of its value: what is too few comes first."""
    told = _of_either(a, b, lambda m: [m.reason] if m.reason else [], "{text}, in the {side}")
    told.sort(key=lambda text: not text.startswith(TOO_FEW_REASON))
    few = bool(told) and told[0].startswith(TOO_FEW_REASON)
    if not few and found is not None and found.test is not None and found.p is None and found.value == 0:
        told.insert(0, NOTHING_DIFFERS)
    return "; ".join(told) or None


def _of_either(
    a: Measurement, b: Measurement, texts_of: Callable[[Measurement], Sequence[str]], one_sided: str
) -> list[str]:
    """What is said of both sides, then what is said of one, with the side: two versions may have the same name."""
    ours, theirs = texts_of(a), texts_of(b)
    both = [text for text in ours if text in theirs]
    sides = (("first", ours), ("second", theirs))
    return both + [
        one_sided.format(side=side, text=text) for side, texts in sides for text in texts if text not in both
    ]


def _better(a: Measurement, b: Measurement) -> str | None:
    """Which way is better; where it is closer to an ideal, the way to it from the side that both lie on."""
    if a.better != "closer":
        return a.better if a.better in ("lower", "higher") else None
    if a.value is None or b.value is None or a.ideal is None or a.ideal != b.ideal:
        return None
    if max(a.value, b.value) <= a.ideal:
        return "higher"
    return "lower" if min(a.value, b.value) >= a.ideal else None


def _study(results: Results) -> object:
    study = results.provenance.get("study")
    return study.get("digest") if isinstance(study, dict) else None


def _cards(results: Results) -> dict[str, Any]:
    cards = results.provenance.get("cards")
    return cards if isinstance(cards, dict) else {}
