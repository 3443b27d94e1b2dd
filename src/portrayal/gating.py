"""Gates: rules that results must keep, for those who ship a system and want to be stopped in time."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from portrayal.errors import PortrayalError, unknown_name
from portrayal.results import Measurement, Results

BOUNDS = ("value", "low", "high")
_FIELDS = ("system", "attribute", "group", "item", "unit")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
# The relation is the last one in the rule, so that names may hold any character but these.
_RULE = re.compile(r"\s*(?P<left>.+?)\s*(?P<relation><=|>=|==|<|>)\s*(?P<limit>[^<>=]+?)\s*")
_SELECTOR = re.compile(r"@(?=\w[\w-]*=)")  # a term may hold an @ (tr@1); a selector's is followed by name=
_HALF_SELECTOR = re.compile(r"@(?:system|attribute|group|item|unit)?\s*$")
_PAIRS = re.compile(r'(?:[^",]|"[^"]*")+')  # separated by commas, but for those between quotation marks
_EVERYONE = ("", "all", "null", "none")  # how a selector asks for the row of all people or items


@dataclass(frozen=True)
class Rule:
    """METRIC:TERM[@name=value,...] RELATION NUMBER."""

    text: str
    metric: str
    term: str
    where: tuple[tuple[str, str], ...]
    relation: str
    limit: float

    def matches(self, m: Measurement) -> bool:
        return m.metric == self.metric and m.term == self.term and all(_fits(m, *pair) for pair in self.where)


@dataclass(frozen=True)
class Verdict:
    """What became of one rule on one row; `row` is None where no row matches."""

    rule: Rule
    row: Measurement | None
    passed: bool
    sentence: str


def parse_rule(text: str) -> Rule:
    """Read a rule.

    >>> rule = parse_rule("retrieval-recall:tr@1@system=oscar,group=female >= 0.5")
    >>> rule.metric, rule.term, rule.where, rule.relation, rule.limit
    ('retrieval-recall', 'tr@1', (('system', 'oscar'), ('group', 'female')), '>=', 0.5)
    """
    expected = 'a rule like "error:error@system=oscar,group=female <= 0.05"'
    found = _RULE.fullmatch(text)
    if found is None:
        raise PortrayalError(f"Expected {expected}. Got {text!r} instead.")
    try:
        limit = float(found["limit"])
    except ValueError:
        raise PortrayalError(
            f"Expected a number after {found['relation']!r}. Got {text!r} instead."
        ) from None
    if limit != limit:
        raise PortrayalError(f"Expected a number after {found['relation']!r}. Got {text!r} instead.")
    name, *selector = _SELECTOR.split(found["left"], maxsplit=1)
    if _HALF_SELECTOR.search(name):
        raise PortrayalError(f"Expected name=value after '@'. Got {text!r} instead.")
    metric, colon, term = name.partition(":")
    if not colon or not metric.strip() or not term.strip():
        raise PortrayalError(f"Expected {expected}. Got {text!r} instead.")
    where = []
    for part in _PAIRS.findall(selector[0]) if selector else []:
        field, equals, value = part.partition("=")
        if not equals:
            raise PortrayalError(f"Expected name=value after '@'. Got {part!r} in {text!r} instead.")
        value = value.strip()
        quoted = len(value) > 1 and value[0] == value[-1] == '"'
        where.append((field.strip(), value[1:-1] if quoted else value))
    return Rule(text.strip(), metric.strip(), term.strip(), tuple(where), found["relation"], limit)


def judge(
    results: Results, rules: Sequence[Rule], on: str = "value", allow_undefined: bool = False
) -> list[Verdict]:
    """Every row that a rule matches must keep it. A rule that matches nothing, or meets an undefined number, fails."""
    if on not in BOUNDS:
        raise unknown_name("bound", on, BOUNDS)
    settings = {name for m in results.measurements for name in m.settings}
    verdicts: list[Verdict] = []
    for rule in rules:
        for field, _ in rule.where:
            if field not in _FIELDS and field not in settings:
                raise unknown_name(f"selector in {rule.text!r}", field, {*_FIELDS, *settings})
        rows = [m for m in results.measurements if rule.matches(m)]
        if not rows:
            verdicts.append(Verdict(rule, None, allow_undefined, "no row matches"))
        verdicts += [_judge_row(rule, m, on, allow_undefined) for m in rows]
    return verdicts


def _judge_row(rule: Rule, m: Measurement, on: str, allow_undefined: bool) -> Verdict:
    number = getattr(m, on)
    if number is None:
        why = m.reason if m.value is None else f"it has no bound '{on}'"
        return Verdict(rule, m, allow_undefined, f"undefined: {why}")
    passed = _COMPARE[rule.relation](number, rule.limit)
    what = on if on != "value" else "it"
    return Verdict(rule, m, passed, f"{what} is {number:.6g}")


def _fits(m: Measurement, field: str, wanted: str) -> bool:
    value = getattr(m, field) if field in _FIELDS else m.settings.get(field)
    if value is None:
        return wanted.lower() in _EVERYONE
    return str(value) == wanted


def about(verdict: Verdict) -> str:
    """Which row a verdict speaks of."""
    m = verdict.row
    if m is None:
        return ""
    parts = {"system": m.system, "attribute": m.attribute, "group": m.group, "item": m.item}
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value is not None)


def as_dicts(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    return [
        {
            "rule": v.rule.text,
            "passed": v.passed,
            "sentence": v.sentence,
            "id": v.row.id if v.row else None,
            **{
                name: getattr(v.row, name) if v.row else None
                for name in (*_FIELDS, "value", "low", "high", "n")
            },
        }
        for v in verdicts
    ]


def as_junit(verdicts: Sequence[Verdict]) -> str:
    """JUnit XML, which build servers show as test results."""
    failed = sum(not v.passed for v in verdicts)
    suite = ElementTree.Element(
        "testsuite", name="portrayal gate", tests=str(len(verdicts)), failures=str(failed)
    )
    for v in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(v.rule.text), name=_xml(about(v) or "no row")
        )
        if not v.passed:
            ElementTree.SubElement(case, "failure", message=_xml(v.sentence))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """XML has no way to write control characters."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
