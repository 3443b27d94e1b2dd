"""The conclusions of an audit as sentences: findings, observations, and inconclusive comparisons.

Sentences are filled from the statements of metrics' cards and from rows of results. A finding is a difference that is
large enough and significant after correction for all comparisons that could have become findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portrayal.report.findings.comparisons import ALPHA, ComparedStatement, Estimates, compare_statement
from portrayal.report.findings.numbers import in_brackets, numbers_text
from portrayal.report.findings.questions import OTHER, QUESTIONS, Question, question_of
from portrayal.report.findings.wording import format_level, format_own_ci
from portrayal.report.tables.layout import is_too_few, study_cautions
from portrayal.results import HUMAN, TOO_FEW_REASON, Measurement, Results, split_cautions
from portrayal.statements import (
    GROUPS,
    HUMAN_CAPTIONS,
    ITEMS,
    LESS,
    MORE,
    Statement,
    fill,
    statements_of,
)
from portrayal.stats import holm

FINDING, SUGGESTIVE, OBSERVED, AS_HUMAN, INCONCLUSIVE, TOO_FEW, UNDEFINED, NOT_COMPARABLE = (
    "finding", "suggestive", "observed", "as human captions", "inconclusive", "too few", "undefined", "not comparable",
)  # fmt: skip
STATES = (FINDING, SUGGESTIVE, OBSERVED, AS_HUMAN, INCONCLUSIVE, TOO_FEW, UNDEFINED, NOT_COMPARABLE)
LENGTH_CAUTION, REFERENCE_TERMS, OTHER_IMAGES_CAUTION = (
    "length",
    "references",
    "other images",
)  # topics of cautions
_MAX_ITEMS = 3  # of a group in one sentence


@dataclass(frozen=True)
class Conclusion:
    """A sentence, its state, and the row that it rests on.

    `group` is the worse-off group if the sentence is about groups. `side` is "more" or "less" if the difference is
    significant.
    """

    question: str
    state: str
    text: str
    id: str
    metric: str
    term: str
    system: str | None
    attribute: str | None
    group: str | None
    side: str | None


@dataclass(frozen=True)
class Conclusions:
    """All sentences in the order of the questions, findings first; `comparisons` were corrected for."""

    sentences: tuple[Conclusion, ...]
    comparisons: int

    def by_question(self) -> list[tuple[Question, list[Conclusion]]]:
        return [
            (question, own)
            for question in (*QUESTIONS, OTHER)
            if (own := [conclusion for conclusion in self.sentences if conclusion.question == question.name])
        ]

    @property
    def without_finding(self) -> list[str]:
        """The systems with sentences but no finding."""
        named = dict.fromkeys(
            conclusion.system for conclusion in self.sentences if conclusion.system is not None
        )
        return [
            system for system in named if all(conclusion.system != system for conclusion in self.findings)
        ]

    @property
    def attributes_without_finding(self) -> list[str]:
        """The attributes with sentences but no finding."""
        with_finding = {conclusion.attribute for conclusion in self.findings}
        named = dict.fromkeys(
            conclusion.attribute for conclusion in self.sentences if conclusion.attribute is not None
        )
        return [attribute for attribute in named if attribute not in with_finding]

    @property
    def findings(self) -> list[Conclusion]:
        return [conclusion for conclusion in self.sentences if conclusion.state == FINDING]


def conclusions(results: Results) -> Conclusions:
    """All sentences that the cards in the results define."""
    if (
        "compared" in results.provenance
    ):  # rows of a comparison are differences, which have sentences of their own
        return Conclusions((), 0)
    cards = _cards(results.provenance)
    estimates = Estimates(results)
    comparisons: list[ComparedStatement] = []
    item_sentences: list[Conclusion] = []
    for metric in dict.fromkeys(m.metric for m in results.measurements):
        rows = [m for m in results.measurements if m.metric == metric]
        for statement in statements_of(cards.get(metric)):
            if statement.against == ITEMS:
                item_sentences += _item_conclusions(statement, rows, results.provenance)
            else:
                meanings = _meanings(cards.get(metric))
                compared = compare_statement(statement, metric, rows, estimates)
                comparisons += [replace(entry, meanings=meanings) for entry in compared]
    origin = results.provenance
    p_values = [entry.p if _why_not_comparable(entry, origin) is None else None for entry in comparisons]
    # Possible findings are corrected for all possible findings, observations for all observations.
    can_be_finding = [bool(entry.statement.findings) for entry in comparisons]
    families = {
        kind: [p if own == kind else None for p, own in zip(p_values, can_be_finding, strict=True)]
        for kind in (True, False)
    }
    counts = {kind: sum(p is not None for p in family) for kind, family in families.items()}
    corrected = {kind: holm(family) for kind, family in families.items()}
    n_comparisons = counts[True]
    concluded = [
        (entry, _conclude(entry, corrected[kind][index], counts[kind], results.measurements, origin))
        for index, (entry, kind) in enumerate(zip(comparisons, can_be_finding, strict=True))
    ]
    order = [question.name for question in (*QUESTIONS, OTHER)]
    kept = sorted(
        _choose(concluded), key=lambda pair: (order.index(pair[1].question), STATES.index(pair[1].state))
    )
    sentences = [conclusion for _, conclusion in _worst_first(kept)]
    sentences = sorted(
        [*sentences, *item_sentences],
        key=lambda entry: (order.index(entry.question), STATES.index(entry.state)),
    )
    # Numbers of two attributes may give the same sentence.
    by_text = {sentence.text: sentence for sentence in reversed(sentences)}
    return Conclusions(
        tuple(by_text[text] for text in dict.fromkeys(entry.text for entry in sentences)), n_comparisons
    )


def _cards(origin: Mapping[str, Any]) -> Mapping[str, Any]:
    cards = origin.get("cards")
    return cards if isinstance(cards, Mapping) else {}


def _choose(
    concluded: Sequence[tuple[ComparedStatement, Conclusion]],
) -> list[tuple[ComparedStatement, Conclusion]]:
    """Of statements with the same `choice`, the one with the best state; the first of several."""
    groups: dict[tuple[Any, ...], list[tuple[ComparedStatement, Conclusion]]] = {}
    for index, pair in enumerate(concluded):
        choice = pair[0].statement.choice
        row = pair[0].row
        key = (row.metric, choice, row.system, row.attribute, str(row.settings)) if choice else (index,)
        groups.setdefault(key, []).append(pair)
    return [min(pairs, key=lambda pair: STATES.index(pair[1].state)) for pairs in groups.values()]


def _worst_first(
    pairs: Iterable[tuple[ComparedStatement, Conclusion]],
) -> list[tuple[ComparedStatement, Conclusion]]:
    """Within a question and state, the sentences of a statement in order, the largest difference first."""
    ordered = list(pairs)
    first: dict[tuple[Any, ...], int] = {}
    for index, (comparison, conclusion) in enumerate(ordered):
        first.setdefault((conclusion.question, conclusion.state, id(comparison.statement)), index)

    def sort_key(pair: tuple[ComparedStatement, Conclusion]) -> tuple[Any, ...]:
        comparison, conclusion = pair
        size = 0.0 if comparison.difference is None else abs(comparison.difference.value)
        return (first[(conclusion.question, conclusion.state, id(comparison.statement))], -size)

    return sorted(ordered, key=sort_key)


def _conclude(
    comparison: ComparedStatement,
    q: float | None,
    n_comparisons: int,
    rows: Sequence[Measurement],
    origin: Mapping[str, Any],
) -> Conclusion:
    row, statement, difference = comparison.row, comparison.statement, comparison.difference
    whether = f"whether {fill(statement.question, comparison.values)}"
    if row.value is None:
        return _conclusion(
            comparison, UNDEFINED, f"Undefined: {whether}: {row.reason}".rstrip("."), None, origin
        )
    too_few_row = next((m for m in (row, comparison.reference) if m is not None and is_too_few(m)), None)
    if too_few_row is not None:
        whose = too_few_row.group or ("human captions" if too_few_row.system == HUMAN else "")
        number = (too_few_row.reason or "").removeprefix(TOO_FEW_REASON).removeprefix(": ")
        text = f"Too few to say {whether} ({f'{whose}: ' if whose else ''}{number})"
        return _conclusion(comparison, TOO_FEW, text, None, origin)
    why_not = _why_not_comparable(comparison, origin)
    if why_not is not None:
        return _conclusion(
            comparison, NOT_COMPARABLE, f"Cannot be compared: {whether}: {why_not}", None, origin
        )
    values_text = numbers_text(comparison)
    excludes_zero = difference is not None and (difference.low > 0 or difference.high < 0)
    side = None if difference is None or not excludes_zero else MORE if difference.value > 0 else LESS
    explained = _explained_by_control(comparison, rows) if side == MORE else None
    if explained is not None:
        return _conclusion(comparison, INCONCLUSIVE, f"{explained}: {values_text}", None, origin)
    difference_significant = (
        excludes_zero and comparison.p_difference is not None and comparison.p_difference < ALPHA
    )
    significant = difference_significant and comparison.p is not None and comparison.p < ALPHA
    is_finding = (MORE if statement.against == GROUPS else side) in statement.findings
    significant_corrected = significant and q is not None and q <= ALPHA
    sentence = (
        (statement.more if side == MORE or statement.against == GROUPS else statement.less) if side else ""
    )
    if not significant_corrected and significant:
        family = "comparisons" if statement.findings else "comparisons that are observed only"
        corrected = f"significant after correction for {n_comparisons} {family}: {whether}: {values_text}"
        if is_finding and _matters(comparison):
            return _conclusion(comparison, SUGGESTIVE, f"Suggestive, not {corrected}", None, origin)
        return _conclusion(comparison, INCONCLUSIVE, f"Not {corrected}", None, origin)
    if not significant_corrected and difference_significant and comparison.human_rows:
        text = f"Not shown to go beyond human captions: {whether}: {values_text}"
        return _conclusion(comparison, AS_HUMAN, text, None, origin)
    if not significant_corrected:
        kind = "Not significant" if difference is not None else "Inconclusive"
        return _conclusion(comparison, INCONCLUSIVE, f"{kind}: {whether}: {values_text}", None, origin)
    text = f"{fill(sentence, comparison.values)}: {values_text}"
    if not is_finding:
        note = f" ({statement.note})" if statement.note else ""
        return _conclusion(comparison, OBSERVED, f"{text}{note}", side, origin)
    if not _matters(comparison):
        return _conclusion(comparison, OBSERVED, f"{text} (too small to count as a finding)", side, origin)
    return _conclusion(comparison, FINDING, text, side, origin)


def _why_not_comparable(comparison: ComparedStatement, origin: Mapping[str, Any]) -> str | None:
    """The reason why a comparison is invalid, from the cautions about the study: other images, or length; else None.

    Groups can still be compared, except by scores against references if captions are several times as long as these,
    which leaves hardly any score.
    """
    row, against = comparison.row, comparison.statement.against
    cautions = origin.get("cautions")
    row_cautions = split_cautions(row.caution)
    topics = {
        caution.get("about")
        for caution in (cautions if isinstance(cautions, list) else ())
        if isinstance(caution, Mapping) and caution.get("sentence") in row_cautions
    }
    if against == HUMAN_CAPTIONS and OTHER_IMAGES_CAUTION in topics:
        return "human captions are of other images"
    cautioned = _mapping(_mapping(_cards(origin).get(row.metric)).get("caution_terms"))
    if LENGTH_CAUTION in topics and (against != GROUPS or row.term in (cautioned.get(REFERENCE_TERMS) or ())):
        return "captions and references differ too much in length"
    return None


def _meanings(card: object) -> dict[str, str]:
    terms = _mapping(card).get("terms")
    listed = [_mapping(term) for term in terms] if isinstance(terms, list | tuple) else []
    return {str(term.get("name")): str(term.get("meaning")) for term in listed}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _matters(comparison: ComparedStatement) -> bool:
    """Whether a difference is large enough, absolutely and relative to its reference."""
    statement, row, difference = comparison.statement, comparison.row, comparison.difference
    if difference is None or abs(difference.value) < statement.smallest:
        return False
    reference = comparison.reference.value if comparison.reference is not None else row.ideal
    low, high = sorted((abs(row.value or 0.0), abs(reference or 0.0)))
    return low == 0 or high / low >= statement.factor


def _explained_by_control(comparison: ComparedStatement, rows: Sequence[Measurement]) -> str | None:
    """The sentence if a control explains the number or leaves it open; None if the number remains."""
    statement, remainder = comparison.statement, comparison.remainder
    if remainder is None:
        return None
    key = (
        remainder.metric,
        remainder.term,
        remainder.system,
        remainder.attribute,
        remainder.group,
        remainder.settings,
    )
    items = [
        m
        for m in rows
        if (m.metric, m.term, m.system, m.attribute, m.group, m.settings) == key and m.item is not None
    ]
    remains = remainder.low is not None and remainder.low > 0
    if remains or any(m.q is not None and m.q < ALPHA for m in items):
        return None
    sentence = statement.no_remainder if remainder.high == 0 else statement.open_remainder
    value = format_level(remainder, remainder.value) if remainder.value is not None else "undefined"
    return f"{fill(sentence, comparison.values)} ({remainder.term} {value}{in_brackets(format_own_ci(remainder))})"


def _item_conclusions(
    statement: Statement, rows: Sequence[Measurement], origin: Mapping[str, Any]
) -> list[Conclusion]:
    """Sentences about words or objects that are associated with groups, and those that are in human captions too."""
    scans: dict[tuple[str | None, str | None], list[Measurement]] = {}
    for m in rows:
        if m.term == statement.term and m.item is not None and m.value is not None:
            scans.setdefault((m.system, m.attribute), []).append(m)
    concluded = []
    for (system, attribute), items in scans.items():
        if system in (None, HUMAN):
            continue
        associated = [m for m in items if _is_associated(m)]
        shared = {(m.item, m.group) for m in scans.get((HUMAN, attribute), ()) if _is_associated(m)}
        values = {"system": system, "attribute": attribute or "the group"}
        comparison = ComparedStatement(statement, (associated or items)[0], values=values)
        if not associated:
            text = f"Not significant: whether {fill(statement.question, values)}"
            concluded.append(_conclusion(comparison, INCONCLUSIVE, text, None, origin))
            continue
        parts, shared_items = [], []
        for group in dict.fromkeys(m.group for m in associated):
            strongest = sorted((m for m in associated if m.group == group), key=lambda m: -(m.value or 0.0))
            strongest = strongest[:_MAX_ITEMS]
            parts.append(f"with {group} {', '.join(str(m.item) for m in strongest)}")
            shared_items += [str(m.item) for m in strongest if (m.item, m.group) in shared]
        text = f"{fill(statement.more, values)}: {'; '.join(parts)}"
        if shared_items:
            text += f" (in human captions too: {', '.join(shared_items)})"
        elif (HUMAN, attribute) in scans:
            text += " (in human captions none of these)"
        concluded.append(_conclusion(comparison, OBSERVED, text, None, origin))
    return concluded


def _is_associated(m: Measurement) -> bool:
    return m.q is not None and m.q < ALPHA and m.value is not None and m.value > 0


def _conclusion(
    comparison: ComparedStatement, state: str, text: str, side: str | None, origin: Mapping[str, Any]
) -> Conclusion:
    row = comparison.row
    rows = [m for m in (row, comparison.reference) if m is not None]
    cautions = dict.fromkeys(caution for m in rows for caution in split_cautions(m.caution))
    about_study = study_cautions(origin)
    # Cautions about the whole study stand above all sentences, and are not repeated in each.
    tail = "".join(f" Caution: {caution}" for caution in cautions if caution not in about_study)
    if any(caution in about_study for caution in cautions):
        tail += " (See the cautions about this study.)"
    return Conclusion(
        question_of(row.metric).name, state, f"{text}.{tail}", row.id, row.metric, row.term, row.system,
        row.attribute, comparison.group, side,
    )  # fmt: skip
