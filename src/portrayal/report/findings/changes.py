"""Sentences about the changes from one audit to another: for which groups they are better or worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from portrayal.report.tables.layout import format_number, is_too_few
from portrayal.results import NOTHING_DIFFERS, Measurement, Results, split_cautions

SIGNIFICANT = 0.05  # for p corrected over all tested rows (Holm)
COUNT = "count"
BETTER, WORSE, DIFFERENT, SAME = "better", "worse", "different", "not significant"


def verdict(m: Measurement) -> str:
    """The verdict on a difference: better, worse, different (for terms without a direction), not significant, or that
    nothing differs.

    Empty if the difference is undefined or was not tested.
    """
    if m.value is None:
        return ""
    if (m.reason or "").startswith(NOTHING_DIFFERS):
        return NOTHING_DIFFERS
    if m.q is None:
        return ""
    if m.q >= SIGNIFICANT or m.value == 0:
        return SAME
    if m.better not in ("lower", "higher"):
        return DIFFERENT
    return BETTER if (m.value > 0) == (m.better == "higher") else WORSE


def changed_rows(differences: Results) -> list[Measurement]:
    """The rows with a significant change after correction over all rows (Holm)."""
    return [m for m in differences.measurements if verdict(m) in (BETTER, WORSE, DIFFERENT)]


def change_sentences(differences: Results) -> list[str]:
    """A sentence for each metric, attribute and system; first those with groups in opposite directions.

    >>> rose = Measurement("lic", "lic", system="oscar", attribute="gender", value=2.0, low=1.0, high=3.0, q=0.01,
    ...                    better="lower", unit="percent", settings={"first": 3.9, "second": 5.9, "paired": True})
    >>> change_sentences(Results((rose,)))
    ['lic by gender, oscar: lic rose from 3.9 to 5.9, which is worse (+2.0, 95 % CI [1.0, 3.0], paired).']
    """
    names = row_labels(differences.measurements)

    def label(m: Measurement) -> str:
        return names[m.id]

    rows_by_metric: dict[tuple[str, str | None, str | None], list[Measurement]] = {}
    for m in changed_rows(differences):
        rows_by_metric.setdefault((m.metric, m.attribute, m.system), []).append(m)
    shares = {(key, label(m)) for key, rows in rows_by_metric.items() for m in rows if m.unit != COUNT}
    mixed: list[str] = []
    others: list[str] = []
    for key, rows in rows_by_metric.items():
        metric, attribute, system = key
        by = f" by {attribute}" if attribute else ""
        # A count repeats what its share says.
        rows = [m for m in rows if m.unit != COUNT or (key, label(m)) not in shares]
        terms = {term: [m for m in rows if label(m) == term] for term in dict.fromkeys(map(label, rows))}
        # Better for one group and worse for another: by one term, or else by all terms together.
        split = {term: own_rows for term, own_rows in terms.items() if differs_in_direction(own_rows)}
        together = terms if not split and differs_in_direction(rows) else {}
        if mixed_terms := split or together:
            term = max(mixed_terms, key=lambda name: _largest_worsening(mixed_terms[name]))
            parts = [
                f"{_summary(own_rows)} by {name}"
                for name, own_rows in together.items()
                if _direction_note(own_rows)
            ]
            text = ", ".join(parts) or _summary(split[term])
            text += f": {_full_text(sorted(terms[term], key=_worst_first_key), names)}"
        else:
            term = label(min(rows, key=lambda m: (m.group is not None, verdict(m) == DIFFERENT)))
            text = _full_text(
                sorted(terms[term], key=lambda m: (m.group is not None, -_effect_size(m))), names
            )
        other_terms = {name: _direction_note(own_rows) for name, own_rows in terms.items() if name != term}
        more = [
            f"{name}{called}" for name, called in sorted(other_terms.items(), key=lambda entry: not entry[1])
        ]
        also = f"; also {', '.join(more)}" if more else ""
        caution = " (See the cautions below its table.)" if any(m.caution for m in rows) else ""
        (mixed if mixed_terms else others).append(f"{metric}{by}, {system}: {text}{also}.{caution}")
    return [*mixed, *others]


def differs_in_direction(rows: Sequence[Measurement]) -> bool:
    """Whether a group is worse off while another one, or all groups together, are better off."""
    worse = any(verdict(m) == WORSE and m.group is not None for m in rows)
    return worse and any(verdict(m) == BETTER for m in rows)


def count_changes(differences: Results) -> tuple[int, int, int]:
    """The numbers of rows with a significant change, without one, and without a test."""
    verdicts = [verdict(m) for m in differences.measurements]
    same, undefined = verdicts.count(SAME) + verdicts.count(NOTHING_DIFFERS), verdicts.count("")
    return len(verdicts) - same - undefined, same, undefined


def caution_notes(rows: Sequence[Measurement]) -> list[str]:
    """Each caution once, after its terms."""
    known = [m for m in rows if m.value is not None]
    return [
        f"Caution ({about}): {text}"
        for text, about in _group_by_text(known, lambda m: split_cautions(m.caution))
    ]


def reason_notes(rows: Sequence[Measurement]) -> list[str]:
    """The reasons for missing values and tests, each once, before its terms."""

    def reasons(m: Measurement) -> list[str]:
        text = (m.reason or "").removeprefix(NOTHING_DIFFERS).removeprefix("; ")  # the table has it
        return [("† " if is_too_few(m) else "") + text[0].upper() + text[1:]] if text else []

    return [f"{text} ({about})." for text, about in _group_by_text(rows, reasons)]


def _group_by_text(
    rows: Sequence[Measurement], texts_of: Callable[[Measurement], Sequence[str]]
) -> list[tuple[str, str]]:
    """Each text once with its rows, and with systems unless it holds for the same rows of all systems."""
    names = row_labels(rows)
    ids_by_text: dict[str, set[str]] = {}
    for m in rows:
        for text in texts_of(m):
            ids_by_text.setdefault(text, set()).add(m.id)
    systems = dict.fromkeys(m.system for m in rows)
    grouped = []
    for text, ids in ids_by_text.items():
        systems_of: dict[str, list[str]] = {}
        for system in systems:
            own = [m for m in rows if m.system == system]
            if matching := [m for m in own if m.id in ids]:
                systems_of.setdefault(_rows_text(matching, own, names), []).append(str(system))
        if [len(names) for names in systems_of.values()] == [len(systems)]:
            grouped.append((text, next(iter(systems_of))))
        else:
            grouped.append(
                (text, "; ".join(f"{terms} of {', '.join(names)}" for terms, names in systems_of.items()))
            )
    return grouped


def _rows_text(selected: Sequence[Measurement], rows: Sequence[Measurement], names: Mapping[str, str]) -> str:
    """The selected rows of a system in few words: the term alone if all of its rows are selected."""
    if len(selected) == len(rows) and len({names[m.id] for m in rows}) > 1:
        return "all rows"
    terms: dict[str, dict[str, None]] = {}
    for m in selected:
        terms.setdefault(names[m.id], {})[m.group or "all"] = None
    terms_by_suffix: dict[str, list[str]] = {}
    for term, groups in terms.items():
        complete = groups.keys() == {m.group or "all" for m in rows if names[m.id] == term}
        terms_by_suffix.setdefault("" if complete else f" for {' and '.join(groups)}", []).append(term)
    return "; ".join(f"{', '.join(names)}{suffix}" for suffix, names in terms_by_suffix.items())


def _largest_worsening(rows: Sequence[Measurement]) -> float:
    return max((_effect_size(m) for m in rows if verdict(m) == WORSE), default=-1.0)


def _worst_first_key(m: Measurement) -> tuple[int, bool, float]:
    return (WORSE, BETTER, DIFFERENT).index(verdict(m)), m.group is None, -_effect_size(m)


def _direction_note(rows: Sequence[Measurement]) -> str:
    """The groups for which a term is better or worse, in brackets; empty if it only differs."""
    return f" ({_summary(rows)})" if any(verdict(m) != DIFFERENT for m in rows) else ""


def _summary(rows: Sequence[Measurement]) -> str:
    """The groups that the rows of a term are better and worse for, such as "worse for male, better for female"."""
    parts = []
    for word in (WORSE, BETTER, DIFFERENT):
        groups = [m.group for m in rows if verdict(m) == word and m.group is not None]
        overall = any(verdict(m) == word and m.group is None for m in rows)
        if groups:
            parts.append(f"{word} for {' and '.join(groups)}" + (" and over all groups" if overall else ""))
        elif overall:
            parts.append(f"{word} over all groups" if any(m.group for m in rows) else word)
    return ", ".join(parts)


def _full_text(rows: Sequence[Measurement], names: Mapping[str, str]) -> str:
    """The rows of one term with both values and the test."""
    parts = []
    for m in rows:
        verb = "rose" if m.value is not None and m.value > 0 else "fell"
        first, second = (format_number(m.settings.get(name), m.unit) for name in ("first", "second"))
        direction = f", which is {verdict(m)}" if verdict(m) in (BETTER, WORSE) else ""
        paired = "paired" if m.settings.get("paired") else "not paired"
        scope = f" for {m.group}" if m.group else " over all groups" if len(rows) > 1 else ""
        parts.append(
            f"{names[m.id]}{scope} {verb} from {first} to {second}{direction} ({format_difference(m)}, {paired})"
        )
    return "; ".join(parts)


def format_difference(m: Measurement) -> str:
    """A difference with its sign and confidence interval."""
    if m.value is None:
        return format_number(None, m.unit)
    value = f"{'+' if m.value > 0 else ''}{format_number(m.value, m.unit)}"
    if m.low is None or m.high is None:
        return value
    return f"{value}, 95 % CI [{format_number(m.low, m.unit)}, {format_number(m.high, m.unit)}]"


# The settings that a comparison adds.
_COMPARISON_SETTINGS = ("comparison", "first", "second", "paired", "detectable", "test")


def row_labels(rows: Sequence[Measurement]) -> dict[str, str]:
    """By id, the term with the settings that distinguish its rows.

    >>> a, b = (Measurement("lic", "lic", value=1.0, settings={"folds": 10, "split": split}) for split in ("x", "y"))
    >>> row_labels([a])[a.id], row_labels([a, b])[b.id]
    ('lic', 'lic split y')
    """
    terms: dict[tuple[str, str], list[Measurement]] = {}
    for m in rows:
        terms.setdefault((m.metric, m.term), []).append(m)
    named = {}
    for (_, term), same_term in terms.items():
        distinguishing: list[str] = []
        for name in dict.fromkeys(
            name for m in same_term for name in m.settings if name not in _COMPARISON_SETTINGS
        ):
            if _count_distinct(same_term, [*distinguishing, name]) > _count_distinct(
                same_term, distinguishing
            ):
                distinguishing.append(name)
        for m in same_term:
            named[m.id] = " ".join([term, *(f"{name} {m.settings.get(name)}" for name in distinguishing)])
    return named


def _count_distinct(rows: Sequence[Measurement], names: Sequence[str]) -> int:
    """The number of rows that these settings distinguish."""
    keys = (
        (m.system, m.attribute, m.group, m.unit, *(str(m.settings.get(name)) for name in names)) for m in rows
    )
    return len(set(keys))


def _effect_size(m: Measurement) -> float:
    """The absolute change in standard errors, by which terms of all units can be ranked."""
    return abs(m.value or 0.0) / m.se_data if m.se_data else 0.0
