"""The format of numbers in sentences: shares in percent, their differences in points, confidence intervals."""

from __future__ import annotations

from decimal import Decimal

from portrayal.report.tables.layout import format_number
from portrayal.results import Measurement
from portrayal.stats import Interval

_POINTS = " points"
_ROUNDING_ERROR = 1e-12  # of a difference of equal numbers


def format_share(value: float | None) -> str:
    """A share in percent.

    >>> format_share(0.0142), format_share(0.5), format_share(None)
    ('1.4 %', '50.0 %', '–')
    """
    return format_number(None, None) if value is None else f"{_format_percent(value)} %"


def format_level(m: Measurement, value: float | None) -> str:
    """A value that is no difference, with its unit."""
    if value is None:
        return format_number(None, m.unit)
    if m.unit == "share":
        return format_share(value)
    return format_number(value, m.unit) + (
        " times" if m.unit == "ratio" else " %" if m.unit == "percent" else ""
    )


def format_signed(m: Measurement, value: float) -> str:
    """A difference with its sign and unit."""
    text, unit = _format_change(m, value)
    return f"{'+' if value > _ROUNDING_ERROR else ''}{text}{unit}"


def format_ci(m: Measurement, gap: Interval) -> str:
    """The confidence interval of a difference, without the unit."""
    return f"95 % CI [{_format_change(m, gap.low)[0]}, {_format_change(m, gap.high)[0]}]"


def format_own_ci(m: Measurement) -> str:
    """The confidence interval of a value that is no difference; empty if it has none."""
    if m.low is None or m.high is None:
        return ""
    low, high = (
        format_level(m, bound).removesuffix(" %").removesuffix(" times") for bound in (m.low, m.high)
    )
    return f"95 % CI [{low}, {high}]"


def _format_change(m: Measurement, value: float) -> tuple[str, str]:
    if abs(value) < _ROUNDING_ERROR:
        value = 0.0
    if m.unit == "share":
        return _without_minus_zero(_format_percent(value)), _POINTS
    return _without_minus_zero(format_number(value, m.unit)), _POINTS if m.unit == "percent" else ""


def _format_percent(value: float) -> str:
    """Percent, rounded like the share in a table: as a float, .0375 is smaller than the decimal, 100 times it is not.

    >>> _format_percent(0.0375), f"{0.0375:.3f}"
    ('3.7', '0.037')
    """
    return f"{Decimal(value) * 100:.{_digits(value)}f}"


def _without_minus_zero(text: str) -> str:
    """The number without the sign of a zero.

    >>> _without_minus_zero("-0.00"), _without_minus_zero("-0.01")
    ('0.00', '-0.01')
    """
    return text.removeprefix("-") if not text.strip("-0.") else text


def _digits(value: float) -> int:
    """One decimal, or two for shares below a tenth of a percent."""
    return 1 if value == 0 or abs(value) >= 0.001 else 2
