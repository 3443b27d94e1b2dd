"""The numbers in a sentence: both sides of a comparison, their difference, its interval, and what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence

from portrayal.report.findings.comparisons import ALPHA, Compared
from portrayal.report.findings.wording import interval, level, own_interval, signed
from portrayal.report.tables.layout import is_too_few, settings_text
from portrayal.report.tables.table import probability
from portrayal.results import Measurement
from portrayal.statements import GROUPS, IDEAL, ZERO


def numbers(compared: Compared) -> str:
    """The numbers of a sentence: both sides of the comparison, their difference, and its interval."""
    row, versus, gap = compared.row, compared.versus, compared.gap
    if versus is None:  # against the ideal
        zero = not row.ideal
        text = signed(row, row.value or 0.0) if zero else level(row, row.value)
        text += bracket(_interval_text(compared) if zero else own_interval(row)) or ", without an interval"
        if row.ideal not in (None, 0.0, 1.0):  # a level of chance, which is another in every study
            text += f", where chance gives {level(row, row.ideal)}"
        for human in compared.human:
            own = signed(human, human.value or 0.0) if zero else level(human, human.value)
            text += f"; human captions {own}{_beyond_human(compared)}"
    else:
        names = (
            (f" for {row.group}", f"{{}} for {versus.group}")
            if compared.statement.against == GROUPS
            else ("", "human captions {}")
        )
        text = f"{level(row, row.value)}{names[0]}, {names[1].format(level(versus, versus.value))}"
        if gap is not None:
            of_all = (
                f", holding for all {compared.pairs} pairs of groups at once" if compared.pairs > 1 else ""
            )
            text += f"; difference {signed(row, gap.value)} ({interval(row, gap)}{of_all})"
        text += _left_out(compared.left_out)
        if compared.human:
            first, second = (level(m, m.value) for m in compared.human)
            text += f"; human captions {first} and {second}{_beyond_human(compared)}"
    if compared.human_left_out:
        few = any(map(is_too_few, compared.human_left_out))
        why = "too few to compare" if few else "undefined"
        text += f"; human captions {why}"
    return text + _own_p(compared) + _beside(compared) + _other_settings(compared)


def _left_out(rows: Sequence[Measurement]) -> str:
    """Groups that are not compared: one of them may be worse off than those that are."""
    few = [str(m.group) for m in rows if is_too_few(m)]
    open_ = [str(m.group) for m in rows if not is_too_few(m)]
    text = f"; {_listed(few)} left out, with too few images" if few else ""
    return text + (f"; {_listed(open_)} left out, without an interval" if open_ else "")


def _own_p(compared: Compared) -> str:
    """The p of a test that the interval does not show: permutations may say what resamples do not."""
    gap, p = compared.gap, compared.p_itself
    hidden = gap is not None and (gap.low > 0 or gap.high < 0) and p is not None and p >= ALPHA
    return f"; p {probability(p)}" if hidden else ""


def _beyond_human(compared: Compared) -> str:
    """How far it is from human captions, where one of both is clear: the difference itself, or that it is not theirs.

    Where the two are as clear as they can be, the number would say nothing more.
    """
    gap, beyond = compared.gap, compared.beyond_human
    if gap is None or beyond is None:
        return ""
    if gap.low > 0 or gap.high < 0:
        informative = beyond.p() >= ALPHA / 100
    else:
        informative = beyond.p() < ALPHA
    if not informative:
        return ""
    return f", {signed(compared.row, beyond.value)} beyond them ({interval(compared.row, beyond)})"


def _interval_text(compared: Compared) -> str:
    return "" if compared.gap is None else interval(compared.row, compared.gap)


def bracket(text: str) -> str:
    return f" ({text})" if text else ""


def _beside(compared: Compared) -> str:
    """How the other terms of the same question stand to the first: which agree, and which are the other way."""
    gap = compared.gap
    lead = 0 if gap is None else 1 if gap.low > 0 else -1 if gap.high < 0 else 0
    agree, parts, unsure = [], [], []
    for m in compared.beside:
        side = _side_of(m)
        if side is None or m.value is None:
            continue
        if side == 0:
            unsure.append(m.term)
        elif side == lead:
            agree.append(m.term)
        else:
            what = f" ({compared.meanings[m.term]})" if m.term in compared.meanings else ""
            way = " is the other way," if lead else ""
            parts.append(f"{m.term}{what}{way} {signed(m, m.value)} ({own_points(m)})")
    if agree:
        parts.insert(0, f"{_listed(agree)} {'agrees' if len(agree) == 1 else 'agree'}")
    if unsure:
        parts.append(f"{_listed(unsure)} not significant")
    return f"; {'; '.join(parts)}" if parts else ""


def own_points(m: Measurement) -> str:
    """The confidence interval of a number that is itself a difference."""
    low, high = (
        signed(m, bound).removeprefix("+").removesuffix(" points") for bound in (m.low or 0.0, m.high or 0.0)
    )
    return f"95 % CI [{low}, {high}]"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _other_settings(compared: Compared) -> str:
    """The same number under other settings, where they put it on another side of the ideal."""
    if compared.statement.against not in (IDEAL, ZERO):
        return ""
    row, own = compared.row, _side_of(compared.row)
    parts = []
    for m in compared.others:
        side = _side_of(m)
        if m.value is None or side is None or side == own:
            continue
        differing = {name: value for name, value in m.settings.items() if row.settings.get(name) != value}
        shown = {name: value for name, value in differing.items() if isinstance(value, str | int | float)}
        parts.append(
            f"{signed(m, m.value)} ({own_points(m)}) with {settings_text(shown) or 'other settings'}"
        )
    return f"; {_listed(parts)}" if parts else ""


def _side_of(m: Measurement) -> int | None:
    """1 where the interval lies above the ideal, -1 below, 0 across; None where nothing can be said."""
    if m.value is None or m.low is None or m.high is None or is_too_few(m):
        return None
    ideal = m.ideal or 0.0
    return 1 if m.low > ideal else -1 if m.high < ideal else 0
