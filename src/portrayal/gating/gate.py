"""A gate in Python: rules that results must satisfy, and an outcome that is true if they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from portrayal.errors import PortrayalError, counted, on_one_line
from portrayal.gating.evaluation import Verdict, evaluate, row_label
from portrayal.gating.rules import EXAMPLE, Rule, parse_rule
from portrayal.gating.rules_file import read_each, read_rules
from portrayal.notebook_html import MAX_ROWS, render_view
from portrayal.results import Results

RuleSource = Rule | str | Path
_VIEW = """
<p>Gate <b>{{ "passed" if outcome else "failed" }}</b>: {{ summary }}.</p>
<div class="scroll"><table>
<thead><tr><th scope="col">rule</th><th scope="col">row</th><th scope="col">result</th><th></th></tr></thead>
<tbody>
{% for verdict in shown %}
<tr><td>{{ verdict.rule.text }}</td><td>{{ row_label(verdict) }}</td><td>{{ verdict.sentence }}</td>
<td>{% if verdict.passed %}passes{% else %}<b>fails</b>{% endif %}</td></tr>
{% endfor %}
</tbody>
</table></div>
{% if hidden %}<p class="note">{{ hidden | counted("more row") }}: list(outcome).</p>{% endif %}
"""


@dataclass(frozen=True)
class GateResult:
    """The outcome of a gate: true if every row satisfies every rule, and iterable over the verdicts.

    Parameters
    ----------
    verdicts : tuple of Verdict
        A verdict for each row that a rule matches, in the order of the rules.
    """

    verdicts: tuple[Verdict, ...]

    def __bool__(self) -> bool:
        return not self.failures

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The verdicts of the rows that fail."""
        return tuple(verdict for verdict in self.verdicts if not verdict.passed)

    @property
    def _summary(self) -> str:
        rules = {verdict.rule for verdict in self.verdicts}
        held = len(rules - {verdict.rule for verdict in self.failures})
        if held == len(rules):
            return f"{counted(held, 'rule')} hold{'s' if held == 1 else ''}"
        return f"{held} of {counted(len(rules), 'rule')} hold"

    def __repr__(self) -> str:
        first = next((f"; {v.rule.text}: {v.sentence}" for v in self.failures), "")
        return on_one_line(f"<gate {'passed' if self else 'failed'}: {self._summary}{first}>")

    def _repr_html_(self) -> str:
        ordered = sorted(self.verdicts, key=lambda verdict: verdict.passed)
        values = {
            "outcome": self,
            "summary": self._summary,
            "shown": ordered[:MAX_ROWS],
            "hidden": len(ordered) - len(ordered[:MAX_ROWS]),
            "row_label": row_label,
        }
        return render_view(_VIEW, values)


def gate(
    results: Results,
    *rules: RuleSource | Iterable[RuleSource],
    on: str = "value",
    allow_undefined: bool = False,
) -> GateResult:
    """Check results against rules.

    Parameters
    ----------
    results : Results
        Results of an audit, or of a comparison, whose values are differences.
    *rules : str, Rule, Path, or an iterable of these
        Texts such as `"error:error@system=oscar <= 0.05"`, or TOML files of rules.
    on : {"value", "low", "high"}
        The number that must satisfy a rule: the value, or an end of its 95 % CI.
    allow_undefined : bool
        Whether undefined numbers and rules that match no row pass.

    Returns
    -------
    GateResult
        True if all rows satisfy all rules; iterable over the verdicts.

    Raises
    ------
    PortrayalError
        If a rule cannot be parsed or names something unknown.

    Examples
    --------
    >>> from portrayal.results import Measurement
    >>> results = Results((Measurement("error", "error", system="oscar", value=0.08),))
    >>> gate(results, "error:error <= 0.05")
    <gate failed: 0 of 1 rule hold; error:error <= 0.05: it is 0.08>
    >>> bool(gate(results, "error:error <= 0.1"))
    True
    """
    return GateResult(tuple(evaluate(results, _read_all(rules), on, allow_undefined)))


def _read_all(rules: Iterable[RuleSource | Iterable[RuleSource]]) -> list[Rule]:
    read = read_each(_flattened(rules), _read)
    if not read:
        raise PortrayalError(f'There is no rule to check: give one, such as "{EXAMPLE}", or a file of them.')
    return read


def _flattened(rules: Iterable[RuleSource | Iterable[RuleSource]]) -> Iterator[RuleSource]:
    for source in rules:
        if isinstance(source, Rule | str | Path):
            yield source
        else:
            yield from source


def _read(source: RuleSource) -> list[Rule]:
    if isinstance(source, Rule):
        return [source]
    is_file = isinstance(source, Path) or source.endswith(".toml")
    return read_rules(source) if is_file else [parse_rule(str(source))]
