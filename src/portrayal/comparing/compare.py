"""Comparison of two results: differences, their intervals and significance tests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.comparing.outcomes import Outcomes, discordant_counts
from portrayal.comparing.paired_error import joint_error
from portrayal.comparing.sizes import images_of, size_caution
from portrayal.errors import PortrayalError
from portrayal.provenance import command_line, provenance
from portrayal.results import (
    HUMAN,
    NOTHING_DIFFERS,
    TOO_FEW_REASON,
    Measurement,
    Results,
    join_cautions,
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

RowKey = tuple[Any, ...]


def compare(first: Results, second: Results, names: tuple[str, str] = ("first", "second")) -> Results:
    """Return the differences second - first for every headline and group row that both results have.

    p values are corrected by Holm over all tested rows. If both audits resampled the same images in the same bootstrap
    resamples, the difference is paired. If a row is a share of the same images on both sides, McNemar's test replaces
    the resamples. If each side has a single system, the two are compared whatever their names. Human captions are not
    compared. Rows with too few images are shown and not tested, as in an audit. Cautions of either audit are kept.

    Parameters
    ----------
    first, second : Results
    names : pair of str
        Names of the two sides in the provenance and in error messages.

    Returns
    -------
    Results
        Measurements whose values are differences; their settings hold both values (`first`, `second`), `paired`,
        `mde` (the minimum detectable effect) and `test`.

    Examples
    --------
    >>> old, new = (Measurement("error", "error", system="oscar", value=value) for value in (0.25, 0.125))
    >>> compare(Results((old,)), Results((new,))).measurements[0].value
    -0.125
    """
    started = time.time()
    ignore_system = _single_systems_differ(first, second)
    first_rows = {_key(m, ignore_system): m for m in first.measurements if _comparable(m)}
    second_rows = {_key(m, ignore_system): m for m in second.measurements if _comparable(m)}
    shared = [key for key in first_rows if key in second_rows]
    if not shared:
        raise PortrayalError(
            f"{names[0]} and {names[1]} share no row to compare: they need the same metric, term, system, group "
            "and settings."
        )
    replicates = (_replicates(first), _replicates(second))
    errors = {
        key: joint_error(first, first_rows[key], second, second_rows[key])
        for key in shared
        if first_rows[key].id in replicates[0] and second_rows[key].id in replicates[1]
    }
    outcomes = (
        Outcomes(first, [first_rows[key] for key in shared]),
        Outcomes(second, [second_rows[key] for key in shared]),
    )
    cards = {**_cards(first), **_cards(second)}
    images = (images_of(first), images_of(second))
    rows = []
    for key in shared:
        a, b = first_rows[key], second_rows[key]
        discordant = discordant_counts(outcomes[0], a, outcomes[1], b)
        row = _difference(a, b, replicates, errors.get(key), discordant)
        sizes = size_caution(cards, a, b, images) if row.value is not None else None
        if sizes is not None:
            row = replace(row, p=None, better=None, caution=join_cautions([sizes, row.caution]))
        rows.append(row)
    measurements = tuple(replace(row, q=q) for row, q in zip(rows, _holm_corrected(rows), strict=True))
    origin = provenance(
        command=command_line(),
        seed=None,
        started=started,
        study={"digest": "", "first": _study_digest(first), "second": _study_digest(second)},
        cards=cards,
        compared=list(names),
        same_images=_same_images(first, second),
        only_first=len(first_rows) - len(shared),
        only_second=len(second_rows) - len(shared),
    )
    return Results(measurements, provenance=origin)


def _same_images(first: Results, second: Results) -> bool | None:
    """Return whether both audits have the same images; None if one of them does not record its images."""
    sets = [_as_mapping(results.provenance.get("study")).get("image_set") for results in (first, second)]
    return None if None in sets else sets[0] == sets[1]


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _comparable(m: Measurement) -> bool:
    return m.item is None and m.system != HUMAN


def _systems(results: Results) -> set[str | None]:
    return {m.system for m in results.measurements if _comparable(m)}


def _single_systems_differ(first: Results, second: Results) -> bool:
    first_systems, second_systems = _systems(first), _systems(second)
    return len(first_systems) == len(second_systems) == 1 and first_systems != second_systems


def _key(m: Measurement, ignore_system: bool) -> RowKey:
    settings = tuple(sorted((name, str(value)) for name, value in m.settings.items()))
    return (m.metric, m.term, m.attribute, m.group, m.unit, settings, None if ignore_system else m.system)


def _replicates(results: Results) -> dict[str, tuple[str, NDArray[np.float64]]]:
    return {
        identifier: (
            sample,
            np.array([np.nan if value is None else value for value in values], dtype=np.float64),
        )
        for identifier, sample, values in results.replicates.iter_rows()
        if values is not None
    }


def _difference(
    a: Measurement,
    b: Measurement,
    replicates: tuple[dict[str, Any], dict[str, Any]],
    error: float | None,
    discordant: tuple[int, int] | None,
) -> Measurement:
    if a.value is None or b.value is None:
        side, undefined = ("first", a) if a.value is None else ("second", b)
        return _row(a, b, None, None, f"undefined in the {side}: {undefined.reason}")
    if not math.isfinite(b.value - a.value):
        return _row(a, b, None, None, "the difference is larger than numbers can be")
    if discordant is not None and a.n:
        return _row(a, b, mcnemar_difference(*discordant, a.n), True, None)
    first_replicates, second_replicates = replicates[0].get(a.id), replicates[1].get(b.id)
    errors = (_total_error(a), _total_error(b))
    first_interval, second_interval = _interval(a), _interval(b)
    constant = a.value != b.value and (
        _never_varies(first_replicates, a) or _never_varies(second_replicates, b)
    )
    if constant and first_interval is not None and second_interval is not None:
        return _row(a, b, interval_difference(first_interval, second_interval), False, None)
    if (
        first_replicates is not None
        and second_replicates is not None
        and first_replicates[0] == second_replicates[0]
        and len(first_replicates[1]) == len(second_replicates[1])
    ):
        joint = None if error is None else math.hypot(error, _seed_error(a), _seed_error(b))
        paired = paired_difference(a.value, b.value, first_replicates[1], second_replicates[1], errors, joint)
        return _row(a, b, paired, True, None)
    return _row(a, b, unpaired_difference(a.value, b.value, *errors), False, None)


def _interval(m: Measurement) -> Interval | None:
    if m.value is None or m.low is None or m.high is None or not m.low <= m.value <= m.high:
        return None
    return Interval(m.value, m.low, m.high)


def _never_varies(replicates: tuple[str, NDArray[np.float64]] | None, m: Measurement) -> bool:
    """Return whether all resamples of a number are equal, although its interval is not a single point."""
    if m.low is None or m.high is None or m.low == m.high:
        return False
    if replicates is None:
        return m.se_data == 0
    finite = replicates[1][np.isfinite(replicates[1])]
    return bool(len(finite)) and bool(np.ptp(finite) == 0)


def _seed_error(m: Measurement) -> float:
    """Return the standard error of a mean over seeds; it is large for trained networks."""
    repeats = m.settings.get("repeats")
    return m.std_seed / math.sqrt(repeats) if m.std_seed and isinstance(repeats, int) and repeats > 0 else 0.0


def _total_error(m: Measurement) -> float | None:
    """Return the standard error over data and seeds."""
    return None if m.se_data is None else math.hypot(m.se_data, _seed_error(m))


def _holm_corrected(rows: Sequence[Measurement]) -> list[float | None]:
    """Return Holm-corrected p values. An overall row that equals a group's row (as with two groups) is one test."""
    groups = {_row_identity(row): position for position, row in enumerate(rows) if row.group is not None}
    same = [groups.get(_row_identity(row)) if row.group is None else None for row in rows]
    corrected = holm([row.p if position is None else None for row, position in zip(rows, same, strict=True)])
    return [
        q if position is None else corrected[position] for q, position in zip(corrected, same, strict=True)
    ]


def _row_identity(row: Measurement) -> RowKey:
    """Return all fields of a row except its group: rows that agree in them hold the same number."""
    settings = tuple(sorted((name, str(value)) for name, value in row.settings.items()))
    identity = (row.metric, row.term, row.system, row.attribute, row.unit, settings)
    return (*identity, row.value, row.low, row.high, row.se_data, row.p, row.n)


def _row(
    a: Measurement, b: Measurement, difference: Difference | None, paired: bool | None, reason: str | None
) -> Measurement:
    row_settings = {**a.settings, "comparison": "second - first"}
    # The settings hold measured values too, but the id must not depend on them.
    settings: Mapping[str, Any] = {
        **row_settings,
        "first": a.value,
        "second": b.value,
        "paired": paired if difference is not None and difference.se is not None else None,
        "mde": None if difference is None else difference.mde,
        "test": None if difference is None else difference.test,
    }
    reason = reason or _reason(a, b, difference)
    tested = difference is not None and not (reason or "").startswith(TOO_FEW_REASON)
    cautions = (
        _combine_texts(a, b, lambda m: split_cautions(m.caution), "In the {side}: {text}")
        if difference
        else []
    )
    system = a.system if a.system == b.system else f"{a.system} → {b.system}"
    identified = Measurement(
        a.metric,
        a.term,
        system=system,
        attribute=a.attribute,
        group=a.group,
        unit=a.unit,
        settings=row_settings,
    )
    return Measurement(
        metric=a.metric,
        term=a.term,
        system=system,
        attribute=a.attribute,
        group=a.group,
        value=None if difference is None else difference.value,
        low=None if difference is None else difference.low,
        high=None if difference is None else difference.high,
        se_data=None if difference is None else difference.se,
        n=min(a.n, b.n) if a.n is not None and b.n is not None else None,
        n_unit=a.n_unit,
        p=difference.p if difference is not None and tested else None,
        ideal=None,
        better=_better(a, b) if tested else None,
        unit=a.unit,
        reason=reason,
        caution=join_cautions(cautions),
        id=identified.id,
        settings=settings,
    )


def _reason(a: Measurement, b: Measurement, difference: Difference | None) -> str | None:
    """Return why a difference is not tested, with the reasons of either side; too little data comes first."""
    reasons = _combine_texts(a, b, lambda m: [m.reason] if m.reason else [], "{text}, in the {side}")
    reasons.sort(key=lambda text: not text.startswith(TOO_FEW_REASON))
    too_few = bool(reasons) and reasons[0].startswith(TOO_FEW_REASON)
    if (
        not too_few
        and difference is not None
        and difference.test is not None
        and difference.p is None
        and difference.value == 0
    ):
        reasons.insert(0, NOTHING_DIFFERS)
    return "; ".join(reasons) or None


def _combine_texts(
    a: Measurement, b: Measurement, texts_of: Callable[[Measurement], Sequence[str]], one_sided: str
) -> list[str]:
    """Return texts common to both sides, then texts of one side with its side, since both may have the same name."""
    first_texts, second_texts = texts_of(a), texts_of(b)
    both = [text for text in first_texts if text in second_texts]
    sides = (("first", first_texts), ("second", second_texts))
    return both + [
        one_sided.format(side=side, text=text) for side, texts in sides for text in texts if text not in both
    ]


def _better(a: Measurement, b: Measurement) -> str | None:
    """Return which direction is better; for "closer", the direction toward the ideal if both lie on one side of it."""
    if a.better != "closer":
        return a.better if a.better in ("lower", "higher") else None
    if a.value is None or b.value is None or a.ideal is None or a.ideal != b.ideal:
        return None
    if max(a.value, b.value) <= a.ideal:
        return "higher"
    return "lower" if min(a.value, b.value) >= a.ideal else None


def _study_digest(results: Results) -> object:
    study = results.provenance.get("study")
    return study.get("digest") if isinstance(study, dict) else None


def _cards(results: Results) -> dict[str, Any]:
    cards = results.provenance.get("cards")
    return cards if isinstance(cards, dict) else {}
