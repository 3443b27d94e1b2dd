"""Numbers as sentences have them: shares in percent, differences of shares in points, intervals in brackets."""

from __future__ import annotations

from decimal import Decimal

from portrayal.report.tables.layout import number
from portrayal.results import Measurement
from portrayal.stats import Interval

_POINTS = " points"
_ROUNDING = 1e-12  # what subtracting equal numbers may leave


def share(value: float | None) -> str:
    """
    >>> share(0.0142), share(0.5), share(None)
    ('1.4 %', '50.0 %', '–')
    """
    return number(None, None) if value is None else f"{_percent(value)} %"


def level(m: Measurement, value: float | None) -> str:
    """A value that stands for itself."""
    if value is None:
        return number(None, m.unit)
    if m.unit == "share":
        return share(value)
    return number(value, m.unit) + (" times" if m.unit == "ratio" else " %" if m.unit == "percent" else "")


def signed(m: Measurement, value: float) -> str:
    """A difference, with its sign and unit."""
    text, unit = _change(m, value)
    return f"{'+' if value > _ROUNDING else ''}{text}{unit}"


def interval(m: Measurement, gap: Interval) -> str:
    """A difference's confidence interval, without the unit, which stands before it."""
    return f"95 % CI [{_change(m, gap.low)[0]}, {_change(m, gap.high)[0]}]"


def own_interval(m: Measurement) -> str:
    """The confidence interval of a value that stands for itself; empty where it has none."""
    if m.low is None or m.high is None:
        return ""
    low, high = (level(m, bound).removesuffix(" %").removesuffix(" times") for bound in (m.low, m.high))
    return f"95 % CI [{low}, {high}]"


def _change(m: Measurement, value: float) -> tuple[str, str]:
    if abs(value) < _ROUNDING:
        value = 0.0
    if m.unit == "share":
        return _without_minus_zero(_percent(value)), _POINTS
    return _without_minus_zero(number(value, m.unit)), _POINTS if m.unit == "percent" else ""


def _percent(value: float) -> str:
    """Rounded as a table rounds the share: in floating point .0375 lies below, and 100 times it does not.

    >>> _percent(0.0375), f"{0.0375:.3f}"
    ('3.7', '0.037')
    """
    return f"{Decimal(value) * 100:.{_digits(value)}f}"


def _without_minus_zero(text: str) -> str:
    """
    >>> _without_minus_zero("-0.00"), _without_minus_zero("-0.01")
    ('0.00', '-0.01')
    """
    return text.removeprefix("-") if not text.strip("-0.") else text


def _digits(value: float) -> int:
    """A tenth of a percent, and a digit more where that would show nothing."""
    return 1 if value == 0 or abs(value) >= 0.001 else 2
