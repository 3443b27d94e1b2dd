"""Sentences about the changes from one audit to another: what is better or worse, and for which groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from portrayal.report.tables.layout import format_number, is_too_few
from portrayal.results import NOTHING_DIFFERS, Measurement, Results, split_cautions

ALPHA = 0.05  # for p corrected over all tested rows (Holm)
COUNT_UNIT = "count"
BETTER, WORSE, DIFFERENT, NOT_SIGNIFICANT = "better", "worse", "different", "not significant"


def verdict(m: Measurement) -> str:
    """The verdict on a difference: better, worse, different, not significant, or that nothing differs.

    "different" is for terms without a direction. The verdict is empty if the difference is undefined or not tested.
    """
    if m.value is None:
        return ""
    if (m.reason or "").startswith(NOTHING_DIFFERS):
        return NOTHING_DIFFERS
    if m.q is None:
        return ""
    if m.q >= ALPHA or m.value == 0:
        return NOT_SIGNIFICANT
    if m.better not in ("lower", "higher"):
        return DIFFERENT
    return BETTER if (m.value > 0) == (m.better == "higher") else WORSE


def changed_rows(differences: Results) -> list[Measurement]:
    """The rows with a significant change after correction over all rows (Holm)."""
    return [m for m in differences.measurements if verdict(m) in (BETTER, WORSE, DIFFERENT)]


def change_sentences(differences: Results) -> list[str]:
    """A sentence for each metric, attribute and system. Those with groups in opposite directions come first.

    >>> rose = Measurement("lic", "lic", system="oscar", attribute="gender", value=2.0, low=1.0, high=3.0, q=0.01,
    ...                    better="lower", unit="percent", settings={"first": 3.9, "second": 5.9, "paired": True})
    >>> change_sentences(Results((rose,)))
    ['lic by gender, oscar: lic rose from 3.9 to 5.9, which is worse (+2.0, 95 % CI [1.0, 3.0], paired).']
    """
    labels = row_labels(differences.measurements)

    def label(m: Measurement) -> str:
        return labels[m.id]

    rows_by_metric: dict[tuple[str, str | None, str | None], list[Measurement]] = {}
    for m in changed_rows(differences):
        rows_by_metric.setdefault((m.metric, m.attribute, m.system), []).append(m)
    keys_with_share = {
        (metric_key, label(m))
        for metric_key, rows in rows_by_metric.items()
        for m in rows
        if m.unit != COUNT_UNIT
    }
    mixed_sentences: list[str] = []
    other_sentences: list[str] = []
    for metric_key, rows in rows_by_metric.items():
        metric, attribute, system = metric_key
        attribute_text = f" by {attribute}" if attribute else ""
        # A count repeats what its share says.
        rows = [m for m in rows if m.unit != COUNT_UNIT or (metric_key, label(m)) not in keys_with_share]
        rows_by_label = {
            term: [m for m in rows if label(m) == term] for term in dict.fromkeys(map(label, rows))
        }
        # Some groups are better off and others worse off: by one term, or else by several terms together.
        mixed_within_term = {
            term: term_rows for term, term_rows in rows_by_label.items() if differs_in_direction(term_rows)
        }
        mixed_across_terms = rows_by_label if not mixed_within_term and differs_in_direction(rows) else {}
        if mixed_rows := mixed_within_term or mixed_across_terms:
            term = max(mixed_rows, key=lambda name: _largest_worsening(mixed_rows[name]))
            summaries = [
                f"{_summary(term_rows)} by {name}"
                for name, term_rows in mixed_across_terms.items()
                if _direction_note(term_rows)
            ]
            text = ", ".join(summaries) or _summary(mixed_within_term[term])
            text += f": {_describe_rows(sorted(rows_by_label[term], key=_worst_first_key), labels)}"
        else:
            term = label(min(rows, key=lambda m: (m.group is not None, verdict(m) == DIFFERENT)))
            text = _describe_rows(
                sorted(rows_by_label[term], key=lambda m: (m.group is not None, -_standardized_change(m))),
                labels,
            )
        notes_by_label = {
            name: _direction_note(term_rows) for name, term_rows in rows_by_label.items() if name != term
        }
        other_labels = [
            f"{name}{note}"
            for name, note in sorted(notes_by_label.items(), key=lambda label_and_note: not label_and_note[1])
        ]
        other_text = f"; also {', '.join(other_labels)}" if other_labels else ""
        caution_text = " (See the cautions below its table.)" if any(m.caution for m in rows) else ""
        (mixed_sentences if mixed_rows else other_sentences).append(
            f"{metric}{attribute_text}, {system}: {text}{other_text}.{caution_text}"
        )
    return [*mixed_sentences, *other_sentences]


def differs_in_direction(rows: Sequence[Measurement]) -> bool:
    """Whether a group is worse off while another one, or all groups together, are better off."""
    is_worse_for_group = any(verdict(m) == WORSE and m.group is not None for m in rows)
    return is_worse_for_group and any(verdict(m) == BETTER for m in rows)


def count_changes(differences: Results) -> tuple[int, int, int]:
    """The numbers of rows with a significant change, without a significant change, and without a test."""
    verdicts = [verdict(m) for m in differences.measurements]
    n_unchanged, n_undefined = (
        verdicts.count(NOT_SIGNIFICANT) + verdicts.count(NOTHING_DIFFERS),
        verdicts.count(""),
    )
    return len(verdicts) - n_unchanged - n_undefined, n_unchanged, n_undefined


def caution_notes(rows: Sequence[Measurement]) -> list[str]:
    """A note for each caution, with the rows that have it."""
    defined_rows = [m for m in rows if m.value is not None]
    return [
        f"Caution ({row_text}): {text}"
        for text, row_text in _group_by_text(defined_rows, lambda m: split_cautions(m.caution))
    ]


def reason_notes(rows: Sequence[Measurement]) -> list[str]:
    """A note for each reason of missing values and tests, with the rows that have it."""

    def get_reasons(m: Measurement) -> list[str]:
        text = (m.reason or "").removeprefix(NOTHING_DIFFERS).removeprefix("; ")  # the table has it
        return [("† " if is_too_few(m) else "") + text[0].upper() + text[1:]] if text else []

    return [f"{text} ({row_text})." for text, row_text in _group_by_text(rows, get_reasons)]


def _group_by_text(
    rows: Sequence[Measurement], get_texts: Callable[[Measurement], Sequence[str]]
) -> list[tuple[str, str]]:
    """Each text once, with the rows that have it; with their systems unless it has the same rows of all systems."""
    names = row_labels(rows)
    ids_by_text: dict[str, set[str]] = {}
    for m in rows:
        for text in get_texts(m):
            ids_by_text.setdefault(text, set()).add(m.id)
    systems = dict.fromkeys(m.system for m in rows)
    notes = []
    for text, ids in ids_by_text.items():
        systems_by_rows_text: dict[str, list[str]] = {}
        for system in systems:
            system_rows = [m for m in rows if m.system == system]
            if matching_rows := [m for m in system_rows if m.id in ids]:
                systems_by_rows_text.setdefault(_rows_text(matching_rows, system_rows, names), []).append(
                    str(system)
                )
        if [len(names) for names in systems_by_rows_text.values()] == [len(systems)]:
            notes.append((text, next(iter(systems_by_rows_text))))
        else:
            notes.append(
                (
                    text,
                    "; ".join(
                        f"{rows_text} of {', '.join(names)}"
                        for rows_text, names in systems_by_rows_text.items()
                    ),
                )
            )
    return notes


def _rows_text(
    selected: Sequence[Measurement], rows: Sequence[Measurement], labels: Mapping[str, str]
) -> str:
    """The selected rows of a system in words: a term without its groups if all rows of the term are selected."""
    if len(selected) == len(rows) and len({labels[m.id] for m in rows}) > 1:
        return "all rows"
    groups_by_label: dict[str, dict[str, None]] = {}
    for m in selected:
        groups_by_label.setdefault(labels[m.id], {})[m.group or "all"] = None
    labels_by_suffix: dict[str, list[str]] = {}
    for label, groups in groups_by_label.items():
        is_complete = groups.keys() == {m.group or "all" for m in rows if labels[m.id] == label}
        labels_by_suffix.setdefault("" if is_complete else f" for {' and '.join(groups)}", []).append(label)
    return "; ".join(f"{', '.join(labels)}{suffix}" for suffix, labels in labels_by_suffix.items())


def _largest_worsening(rows: Sequence[Measurement]) -> float:
    """The largest standardized change for the worse; -1 if there is none."""
    return max((_standardized_change(m) for m in rows if verdict(m) == WORSE), default=-1.0)


def _worst_first_key(m: Measurement) -> tuple[int, bool, float]:
    """The sort key that puts worse rows first, then groups, then large changes."""
    return (WORSE, BETTER, DIFFERENT).index(verdict(m)), m.group is None, -_standardized_change(m)


def _direction_note(rows: Sequence[Measurement]) -> str:
    """The summary of a term in brackets; empty if none of its rows is better or worse."""
    return f" ({_summary(rows)})" if any(verdict(m) != DIFFERENT for m in rows) else ""


def _summary(rows: Sequence[Measurement]) -> str:
    """For which groups a term is worse, better or different, such as "worse for male, better for female"."""
    phrases = []
    for direction in (WORSE, BETTER, DIFFERENT):
        groups = [m.group for m in rows if verdict(m) == direction and m.group is not None]
        overall = any(verdict(m) == direction and m.group is None for m in rows)
        if groups:
            phrases.append(
                f"{direction} for {' and '.join(groups)}" + (" and over all groups" if overall else "")
            )
        elif overall:
            phrases.append(f"{direction} over all groups" if any(m.group for m in rows) else direction)
    return ", ".join(phrases)


def _describe_rows(rows: Sequence[Measurement], labels: Mapping[str, str]) -> str:
    """Both values, the difference and its test, for each row of a term."""
    descriptions = []
    for m in rows:
        verb = "rose" if m.value is not None and m.value > 0 else "fell"
        first_value, second_value = (
            format_number(m.settings.get(key), m.unit) for key in ("first", "second")
        )
        verdict_text = f", which is {verdict(m)}" if verdict(m) in (BETTER, WORSE) else ""
        paired_text = "paired" if m.settings.get("paired") else "not paired"
        group_text = f" for {m.group}" if m.group else " over all groups" if len(rows) > 1 else ""
        descriptions.append(
            f"{labels[m.id]}{group_text} {verb} from {first_value} to {second_value}{verdict_text} "
            f"({format_difference(m)}, {paired_text})"
        )
    return "; ".join(descriptions)


def format_difference(m: Measurement) -> str:
    """A difference with its sign and confidence interval."""
    if m.value is None:
        return format_number(None, m.unit)
    value_text = f"{'+' if m.value > 0 else ''}{format_number(m.value, m.unit)}"
    if m.low is None or m.high is None:
        return value_text
    return f"{value_text}, 95 % CI [{format_number(m.low, m.unit)}, {format_number(m.high, m.unit)}]"


# Settings that the comparison of two audits adds to rows.
_COMPARISON_SETTINGS = ("comparison", "first", "second", "paired", "mde", "test")


def row_labels(rows: Sequence[Measurement]) -> dict[str, str]:
    """The label of each row by id: its term, and the settings that distinguish rows of the term.

    >>> a, b = (Measurement("lic", "lic", value=1.0, settings={"folds": 10, "split": split}) for split in ("x", "y"))
    >>> row_labels([a])[a.id], row_labels([a, b])[b.id]
    ('lic', 'lic split y')
    """
    rows_by_term: dict[tuple[str, str], list[Measurement]] = {}
    for m in rows:
        rows_by_term.setdefault((m.metric, m.term), []).append(m)
    labels = {}
    for (_, term), term_rows in rows_by_term.items():
        distinguishing_settings: list[str] = []
        for name in dict.fromkeys(
            name for m in term_rows for name in m.settings if name not in _COMPARISON_SETTINGS
        ):
            if _count_distinct(term_rows, [*distinguishing_settings, name]) > _count_distinct(
                term_rows, distinguishing_settings
            ):
                distinguishing_settings.append(name)
        for m in term_rows:
            labels[m.id] = " ".join(
                [term, *(f"{name} {m.settings.get(name)}" for name in distinguishing_settings)]
            )
    return labels


def _count_distinct(rows: Sequence[Measurement], setting_names: Sequence[str]) -> int:
    """The number of rows that these settings distinguish."""
    keys = (
        (m.system, m.attribute, m.group, m.unit, *(str(m.settings.get(name)) for name in setting_names))
        for m in rows
    )
    return len(set(keys))


def _standardized_change(m: Measurement) -> float:
    """The absolute change in standard errors, which is comparable across units."""
    return abs(m.value or 0.0) / m.se_data if m.se_data else 0.0
