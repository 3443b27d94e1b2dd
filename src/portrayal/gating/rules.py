"""Rules and their syntax: METRIC:TERM[@name=value,...] RELATION NUMBER."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from portrayal.errors import PortrayalError

BOUNDS = ("value", "low", "high")
FIELDS = (
    "system",
    "attribute",
    "group",
    "item",
    "unit",
)  # selectors that are fields of a row; any other selector names a setting
EXAMPLE = "error:error@system=oscar,group=female <= 0.05"
_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
# The relation is the last one in the rule, so that names may hold any character but these.
_RULE = re.compile(r"\s*(?P<left>.+?)\s*(?P<relation><=|>=|==|<|>)\s*(?P<limit>[^<>=]+?)\s*")
# A term may contain an @ (tr@1); the @ of a selector is followed by name=.
_SELECTOR = re.compile(r"\s*@\s*(?=\w[\w-]*\s*=)")
_INCOMPLETE_SELECTOR = re.compile(r"@(?:system|attribute|group|item|unit)?\s*$")
_PAIRS = re.compile(r'(?:[^",]|"[^"]*")+')  # separated by commas outside quotation marks


@dataclass(frozen=True)
class Rule:
    """One rule. `on` and `allow_undefined` are None if the rule does not set them; `origin` is its place in a file."""

    text: str
    metric: str
    term: str
    where: tuple[tuple[str, str], ...]
    relation: str
    limit: float
    on: str | None = None
    reason: str | None = None
    allow_undefined: bool | None = None
    origin: str | None = None

    def is_satisfied_by(self, number: float) -> bool:
        """Return whether a number satisfies the rule."""
        return _RELATIONS[self.relation](number, self.limit)

    def excess(self, number: float) -> float:
        """Return how far a number is beyond the limit; negative if it satisfies the rule."""
        if self.relation == "==":
            return abs(number - self.limit)
        return number - self.limit if self.relation.startswith("<") else self.limit - number

    @property
    def location(self) -> str:
        """How error messages refer to this rule."""
        return f"{self.origin}: {self.text}" if self.origin else f'"{self.text}"'


def parse_rule(text: str) -> Rule:
    """Parse a rule.

    >>> rule = parse_rule("retrieval-recall:tr@1@system=oscar,group=female >= 0.5")
    >>> rule.metric, rule.term, rule.where, rule.relation, rule.limit
    ('retrieval-recall', 'tr@1', (('system', 'oscar'), ('group', 'female')), '>=', 0.5)
    """
    parts = _RULE.fullmatch(text)
    if parts is None:
        raise PortrayalError(f'Expected a rule like "{EXAMPLE}". Got {text!r} instead.')
    limit = _limit(parts["limit"])
    if limit is None:
        hint = " Shares are fractions: 0.05, not 5%." if "%" in parts["limit"] else ""
        raise PortrayalError(f"Expected a number after {parts['relation']!r}. Got {text!r} instead.{hint}")
    name, *selector = _SELECTOR.split(parts["left"], maxsplit=1)
    if _INCOMPLETE_SELECTOR.search(name):
        raise PortrayalError(f"Expected name=value after '@'. Got {text!r} instead.")
    if name.endswith(("=", "!")) and not selector:
        raise PortrayalError(f"Expected one of {', '.join(_RELATIONS)}. Got {text!r} instead.")
    metric, colon, term = name.partition(":")
    if not colon or not metric.strip() or not term.strip():
        raise PortrayalError(f'Expected a rule like "{EXAMPLE}". Got {text!r} instead.')
    where = _selectors(selector[0], text) if selector else {}
    return Rule(text.strip(), metric.strip(), term.strip(), tuple(where.items()), parts["relation"], limit)


def _limit(text: str) -> float | None:
    try:
        limit = float(text)
    except ValueError:
        return None
    return None if limit != limit else limit


def _selectors(selector: str, text: str) -> dict[str, str]:
    where: dict[str, str] = {}
    for part in _PAIRS.findall(selector):
        field, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise PortrayalError(f"Expected name=value after '@'. Got {part!r} in {text!r} instead.")
        if field in where:
            raise PortrayalError(
                f"Expected each name once after '@'. Got {field!r} again in {text!r} instead."
            )
        quoted = len(value) > 1 and value[0] == value[-1] == '"'
        where[field] = value[1:-1] if quoted else value
    return where
