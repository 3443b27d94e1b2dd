"""portrayal gate"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from portrayal.cli.console import write_raw
from portrayal.cli.verdicts import print_verdicts
from portrayal.errors import PortrayalError
from portrayal.gating import BOUNDS, EXAMPLE, Rule, as_dicts, as_junit, evaluate, parse_rule, read_rules
from portrayal.gating.rules_file import read_each
from portrayal.results import Results


@click.command("gate")
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("rules", nargs=-1, metavar='["METRIC:TERM[@NAME=VALUE,...] <= X"]...')
@click.option(
    "--rules",
    "files",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="TOML file of rules: [[rule]] tables with check, and optionally on, reason and allow_undefined (repeatable).",
)
@click.option(
    "--on",
    type=click.Choice(BOUNDS),
    default="value",
    show_default=True,
    help="Number that must satisfy a rule: the value, or the low or high end of its 95 % CI. Rules of a file that "
    "set their own `on` keep it.",
)
@click.option(
    "--allow-undefined",
    is_flag=True,
    help="Pass undefined numbers, and rules that match no row, instead of failing.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="Output format; CI servers read junit.",
)
@click.pass_context
def command(
    ctx: click.Context,
    results: Path,
    rules: tuple[str, ...],
    files: tuple[Path, ...],
    on: str,
    allow_undefined: bool,
    style: str,
) -> None:
    """Check RESULTS, a results file or its folder, against rules. Every row that a rule matches must satisfy it.

    \b
    Examples:
      portrayal gate audit "error:error <= 0.05"
      portrayal gate audit "error:wrong@system=oscar,group=female <= 0.05" --on high
      portrayal gate audit --rules rules.toml --format junit > gate.xml

    The relation is one of <=, <, >=, >, ==. Selectors after @ restrict the rule to rows of that system, attribute,
    group, item, unit or setting (split, stage, k); without selectors it applies to all rows. group=all selects the row
    of all people, item=all the row of all words or objects. Human captions are checked only with @system=human. Names
    are not case-sensitive. Put a name with a comma between quotation marks: item="a, b".

    A folder written by `portrayal compare OLD NEW --out DIR` can be checked too: its values are NEW - OLD.

    Exit code 0: all rules pass. 1: a row fails its rule, is undefined, or does not exist. 2: a rule cannot be parsed,
    or names something unknown. Without a rule, the metrics and terms of RESULTS are listed.
    """
    all_rules = _read_all_rules(rules, files)
    loaded = Results.load(results)
    if not all_rules:
        raise PortrayalError(_missing_rule_message(loaded))
    verdicts = evaluate(loaded, all_rules, on, allow_undefined, _catalogue(loaded, all_rules))
    if style == "json":
        write_raw(json.dumps(as_dicts(verdicts), indent=1, ensure_ascii=False) + "\n")
    elif style == "junit":
        write_raw(as_junit(verdicts))
    else:
        print_verdicts(verdicts)
    ctx.exit(0 if all(v.passed for v in verdicts) else 1)


def _read_all_rules(texts: Sequence[str], files: Sequence[Path]) -> list[Rule]:
    """Parse the rules of the command line and of the files; all parse errors are reported at once."""
    sources: list[str | Path] = [*texts, *files]
    return read_each(
        sources, lambda source: [_parse(source)] if isinstance(source, str) else read_rules(source)
    )


def _parse(text: str) -> Rule:
    try:
        return parse_rule(text)
    except PortrayalError as error:
        hint = f" Did you mean --rules {text}?" if text.endswith(".toml") else ""
        raise PortrayalError(f"{error}{hint}") from None


def _missing_rule_message(results: Results) -> str:
    """Return an error message that lists the metrics and terms that a rule can check."""
    terms: dict[str, dict[str, None]] = {}
    for m in results.measurements:
        terms.setdefault(m.metric, {})[m.term] = None
    return "\n".join(
        [
            f'There is no rule to check: give one, such as "{EXAMPLE}", or a file of them with --rules FILE.',
            "These results hold:" if terms else "These results hold no row.",
            *(f"  {metric}: {', '.join(names)}" for metric, names in terms.items()),
        ]
    )


def _catalogue(results: Results, rules: list[Rule]) -> dict[str, list[str]]:
    """Return all metrics with their terms; loaded only if a rule names one that has no row."""
    rows = {(m.metric, m.term) for m in results.measurements}
    if all((rule.metric, rule.term) in rows for rule in rules):
        return {}
    from portrayal.metrics import CARDS

    return {name: [term.name for term in card.terms] for name, card in CARDS.items()}
