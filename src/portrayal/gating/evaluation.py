"""Results held against rules: a verdict for each row that a rule is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from portrayal.errors import PortrayalError, find_name
from portrayal.gating.labels import as_text, labels
from portrayal.gating.names import Catalogue, Names, Selection, skipped_metrics
from portrayal.gating.rules import BOUNDS, Rule
from portrayal.results import HUMAN, NOTHING_DIFFERS, Measurement, Results


@dataclass(frozen=True)
class Verdict:
    """What became of one rule on one row; `row` is None where no row matches.

    `label` says which row it is; `on` is the number that was held against the rule.
    """

    rule: Rule
    row: Measurement | None
    passed: bool
    sentence: str
    on: str = "value"
    label: dict[str, str] = field(default_factory=dict)

    @property
    def number(self) -> float | None:
        """The number that was held against the rule."""
        number: float | None = None if self.row is None else getattr(self.row, self.on)
        return number


def judge(
    results: Results,
    rules: Sequence[Rule],
    on: str = "value",
    allow_undefined: bool = False,
    catalogue: Catalogue | None = None,
) -> list[Verdict]:
    """Every row that a rule matches must keep it. A rule that matches nothing, or meets an undefined number, fails.

    Raises an error where a rule names something that is not known. `on` and `allow_undefined` are for rules that set
    none of their own; `catalogue` names metrics and their terms that these results need not hold.
    """
    on = find_name("bound", on, BOUNDS)
    rules = list(dict.fromkeys(rules))
    names = Names(results, catalogue)
    selections: list[Selection] = []
    wrong: list[str] = []
    for rule in rules:
        try:
            selections.append(names.select(rule, _allowed(rule, allow_undefined)))
        except PortrayalError as error:
            wrong.append(str(error))
    if wrong:
        raise PortrayalError("\n".join(wrong))
    verdicts: list[Verdict] = []
    for rule, selection in zip(rules, selections, strict=True):
        bound, allowed = rule.on or on, _allowed(rule, allow_undefined)
        rows = [m for m in results.measurements if selection.matches(m)]
        if not rows:
            sentence = f"no row matches: {_why_none(selection, rule, results)}"
            verdicts.append(Verdict(rule, None, allowed, sentence, bound))
        verdicts += [
            _judge_row(rule, m, bound, allowed, label) for m, label in zip(rows, labels(rows), strict=True)
        ]
    return verdicts


def about(verdict: Verdict) -> str:
    """Which row a verdict speaks of."""
    return as_text(verdict.label)


def _allowed(rule: Rule, allow_undefined: bool) -> bool:
    return allow_undefined if rule.allow_undefined is None else rule.allow_undefined


def _judge_row(rule: Rule, m: Measurement, on: str, allow_undefined: bool, label: dict[str, str]) -> Verdict:
    number = getattr(m, on)
    if number is None and (m.reason or "").startswith(NOTHING_DIFFERS):
        number, on = m.value, "value"  # resamples that are all alike have no bound, and nothing got worse
    if number is None:
        why = m.reason if m.value is None else f"it has no bound '{on}'"
        return Verdict(rule, m, allow_undefined, f"undefined: {why}", on, label)
    what = on if on != "value" else "it"
    note = f" ({m.reason})" if m.reason else ""
    return Verdict(rule, m, rule.keeps(number), f"{what} is {number:.6g}{note}", on, label)


def _why_none(selection: Selection, rule: Rule, results: Results) -> str:
    """Why every name is right and yet there is no row."""
    rows = [m for m in results.measurements if m.metric == selection.metric]
    attributes = selection.accepted.get("attribute")
    reasons = [
        skip["reason"]
        for skip in skipped_metrics(results)
        if skip["metric"] == selection.metric
        and (not skip["attribute"] or (skip["attribute"] in attributes if attributes else not rows))
    ]
    if reasons:
        return f"the audit skipped '{selection.metric}'. {' '.join(dict.fromkeys(reasons))}"
    where = "both of the compared results" if results.provenance.get("compared") else "these results"
    if not rows:
        held = ", ".join(dict.fromkeys(m.metric for m in results.measurements)) or "nothing"
        return f"'{selection.metric}' has no row in {where}, which hold {held}."
    rows = [m for m in rows if m.term == selection.term]
    if not rows:
        return f"'{selection.metric}' has no row of '{selection.term}' in {where}."
    if all(m.system == HUMAN for m in rows):
        return f"only human captions have one; @system={HUMAN} asks for it."
    typed = dict(rule.where)
    spare = [name for name in typed if any(selection.matches(m, without=name) for m in rows)]
    if spare:
        told = " or ".join(f"without {name}={typed[name]}" for name in spare)
        return f"each name is known, but no row has all of them; there are rows {told}."
    return "each name is known, but no row has all of them."
