"""Evaluation of rules: a verdict for each row that a rule matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from portrayal.errors import PortrayalError, find_name
from portrayal.gating.labels import label_text, row_labels
from portrayal.gating.names import Catalogue, KnownNames, RowSelection, skipped_metrics
from portrayal.gating.rules import BOUNDS, Rule
from portrayal.results import HUMAN, NOTHING_DIFFERS, Measurement, Results


@dataclass(frozen=True)
class Verdict:
    """The outcome of one rule on one row; `row` is None if no row matches.

    `label` identifies the row; `on` names the number that was checked: value, low or high.
    """

    rule: Rule
    row: Measurement | None
    passed: bool
    sentence: str
    on: str = "value"
    label: dict[str, str] = field(default_factory=dict)

    @property
    def number(self) -> float | None:
        """The number that was checked."""
        number: float | None = None if self.row is None else getattr(self.row, self.on)
        return number


def evaluate(
    results: Results,
    rules: Sequence[Rule],
    on: str = "value",
    allow_undefined: bool = False,
    catalogue: Catalogue | None = None,
) -> list[Verdict]:
    """Check every row that a rule matches. A rule that matches no row, or meets an undefined number, fails.

    Parameters
    ----------
    results : Results
    rules : sequence of Rule
    on : {"value", "low", "high"}
        The number to check, for rules without their own `on`.
    allow_undefined : bool
        Pass undefined numbers and rules that match no row, for rules without their own `allow_undefined`.
    catalogue : mapping, optional
        Metrics and their terms that rules may name although these results have no such row.

    Returns
    -------
    list of Verdict

    Raises
    ------
    PortrayalError
        If a rule names something unknown.
    """
    on = find_name("bound", on, BOUNDS)
    rules = list(dict.fromkeys(rules))
    names = KnownNames(results, catalogue)
    selections: list[RowSelection] = []
    errors: list[str] = []
    for rule in rules:
        try:
            selections.append(names.select(rule, _allows_undefined(rule, allow_undefined)))
        except PortrayalError as error:
            errors.append(str(error))
    if errors:
        raise PortrayalError("\n".join(errors))
    verdicts: list[Verdict] = []
    for rule, selection in zip(rules, selections, strict=True):
        bound, undefined_passes = rule.on or on, _allows_undefined(rule, allow_undefined)
        rows = [m for m in results.measurements if selection.matches(m)]
        if not rows:
            sentence = f"no row matches: {_no_row_reason(selection, rule, results)}"
            verdicts.append(Verdict(rule, None, undefined_passes, sentence, bound))
        verdicts += [
            _evaluate_row(rule, m, bound, undefined_passes, label)
            for m, label in zip(rows, row_labels(rows), strict=True)
        ]
    return verdicts


def row_label(verdict: Verdict) -> str:
    """Return the label of a verdict's row as text."""
    return label_text(verdict.label)


def _allows_undefined(rule: Rule, allow_undefined: bool) -> bool:
    return allow_undefined if rule.allow_undefined is None else rule.allow_undefined


def _evaluate_row(
    rule: Rule, m: Measurement, on: str, allow_undefined: bool, label: dict[str, str]
) -> Verdict:
    number = getattr(m, on)
    if number is None and (m.reason or "").startswith(NOTHING_DIFFERS):
        number, on = m.value, "value"  # equal resamples give no bound, and nothing got worse
    if number is None:
        reason = m.reason if m.value is None else f"it has no bound '{on}'"
        return Verdict(rule, m, allow_undefined, f"undefined: {reason}", on, label)
    bound_name = on if on != "value" else "it"
    note = f" ({m.reason})" if m.reason else ""
    return Verdict(rule, m, rule.is_satisfied_by(number), f"{bound_name} is {number:.6g}{note}", on, label)


def _no_row_reason(selection: RowSelection, rule: Rule, results: Results) -> str:
    """Return why no row matches although every name is known."""
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
    scope = "both of the compared results" if results.provenance.get("compared") else "these results"
    if not rows:
        metrics = ", ".join(dict.fromkeys(m.metric for m in results.measurements)) or "nothing"
        return f"'{selection.metric}' has no row in {scope}, which hold {metrics}."
    rows = [m for m in rows if m.term == selection.term]
    if not rows:
        return f"'{selection.metric}' has no row of '{selection.term}' in {scope}."
    if all(m.system == HUMAN for m in rows):
        return f"only human captions have one; @system={HUMAN} asks for it."
    selectors = dict(rule.where)
    unmatched = [name for name in selectors if any(selection.matches(m, without=name) for m in rows)]
    if unmatched:
        alternatives = " or ".join(f"without {name}={selectors[name]}" for name in unmatched)
        return f"each name is known, but no row has all of them; there are rows {alternatives}."
    return "each name is known, but no row has all of them."
