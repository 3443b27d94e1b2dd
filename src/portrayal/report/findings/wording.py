"""Formats of numbers in sentences: shares in percent, differences in points, and confidence intervals."""

from __future__ import annotations

from decimal import Decimal

from portrayal.report.tables.layout import format_number
from portrayal.results import Measurement
from portrayal.stats import Interval

_POINTS_SUFFIX = " points"
_MAX_ROUNDING_ERROR = 1e-12  # smaller differences come from rounding


def format_share(value: float | None) -> str:
    """A share in percent.

    >>> format_share(0.0142), format_share(0.5), format_share(None)
    ('1.4 %', '50.0 %', '–')
    """
    return format_number(None, None) if value is None else f"{_format_percent(value)} %"


def format_level(m: Measurement, value: float | None) -> str:
    """A value that is not a difference, with its unit."""
    if value is None:
        return format_number(None, m.unit)
    if m.unit == "share":
        return format_share(value)
    return format_number(value, m.unit) + (
        " times" if m.unit == "ratio" else " %" if m.unit == "percent" else ""
    )


def format_signed(m: Measurement, value: float) -> str:
    """A difference with its sign and unit."""
    text, unit = _format_difference(m, value)
    return f"{'+' if value > _MAX_ROUNDING_ERROR else ''}{text}{unit}"


def format_difference_ci(m: Measurement, difference: Interval) -> str:
    """The confidence interval of a difference, without the unit."""
    return (
        f"95 % CI [{_format_difference(m, difference.low)[0]}, {_format_difference(m, difference.high)[0]}]"
    )


def format_level_ci(m: Measurement) -> str:
    """The confidence interval of a value that is not a difference; empty if it has none."""
    if m.low is None or m.high is None:
        return ""
    low, high = (
        format_level(m, bound).removesuffix(" %").removesuffix(" times") for bound in (m.low, m.high)
    )
    return f"95 % CI [{low}, {high}]"


def _format_difference(m: Measurement, value: float) -> tuple[str, str]:
    """A difference without its sign for positive values, and its unit."""
    if abs(value) < _MAX_ROUNDING_ERROR:
        value = 0.0
    if m.unit == "share":
        return _without_minus_zero(_format_percent(value)), _POINTS_SUFFIX
    return _without_minus_zero(format_number(value, m.unit)), _POINTS_SUFFIX if m.unit == "percent" else ""


def _format_percent(value: float) -> str:
    """The share in percent, rounded as the share itself is in tables.

    It is multiplied as a decimal: the float .0375 is slightly smaller than .0375, which 100 times the float is not.

    >>> _format_percent(0.0375), f"{0.0375:.3f}"
    ('3.7', '0.037')
    """
    return f"{Decimal(value) * 100:.{_n_decimals(value)}f}"


def _without_minus_zero(text: str) -> str:
    """The number, without a minus sign if it is zero.

    >>> _without_minus_zero("-0.00"), _without_minus_zero("-0.01")
    ('0.00', '-0.01')
    """
    return text.removeprefix("-") if not text.strip("-0.") else text


def _n_decimals(value: float) -> int:
    """The number of decimals of a percentage: one, or two for shares below a tenth of a percent."""
    return 1 if value == 0 or abs(value) >= 0.001 else 2
