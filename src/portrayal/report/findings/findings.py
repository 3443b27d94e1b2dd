"""The conclusions of an audit as sentences: findings, observations, and inconclusive comparisons.

Sentences are filled from the statements of metrics' cards and from rows of results. A finding is a difference that is
large enough and significant after correction for all comparisons that could have become findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portrayal.questions import QUESTIONS, Question, question_of
from portrayal.report.findings.comparisons import ALPHA, ComparedStatement, Estimates, compare_statement
from portrayal.report.findings.numbers import add_brackets, numbers_text
from portrayal.report.findings.wording import format_level, format_level_ci
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

FINDING, SUGGESTIVE, OBSERVATION, AS_HUMAN, INCONCLUSIVE, TOO_FEW, UNDEFINED, NOT_COMPARABLE = (
    "finding", "suggestive", "observed", "as human captions", "inconclusive", "too few", "undefined", "not comparable",
)  # fmt: skip
STATES = (FINDING, SUGGESTIVE, OBSERVATION, AS_HUMAN, INCONCLUSIVE, TOO_FEW, UNDEFINED, NOT_COMPARABLE)
# Topics of the cautions that decide whether a comparison is valid.
_LENGTH_TOPIC, _REFERENCES_TOPIC, _OTHER_IMAGES_TOPIC = (
    "length",
    "references",
    "other images",
)
_MAX_ITEMS_PER_GROUP = 3  # in one sentence


@dataclass(frozen=True)
class Conclusion:
    """A sentence, its state, and the row that it states.

    `group` is the worse-off group if the sentence compares groups. `side` is "more" or "less" if the difference is
    significant, else None.
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
    """All sentences in the order of the questions, findings first.

    `n_comparisons` is the number of comparisons that the p values of findings are corrected for.
    """

    sentences: tuple[Conclusion, ...]
    n_comparisons: int

    def by_question(self) -> list[tuple[Question, list[Conclusion]]]:
        """Each question that has sentences, with these."""
        return [
            (question, question_sentences)
            for question in QUESTIONS
            if (
                question_sentences := [
                    conclusion for conclusion in self.sentences if conclusion.question == question.name
                ]
            )
        ]

    @property
    def systems_without_finding(self) -> list[str]:
        """The systems with sentences but no finding."""
        systems = dict.fromkeys(
            conclusion.system for conclusion in self.sentences if conclusion.system is not None
        )
        return [
            system for system in systems if all(conclusion.system != system for conclusion in self.findings)
        ]

    @property
    def attributes_without_finding(self) -> list[str]:
        """The attributes with sentences but no finding."""
        attributes_with_finding = {conclusion.attribute for conclusion in self.findings}
        attributes = dict.fromkeys(
            conclusion.attribute for conclusion in self.sentences if conclusion.attribute is not None
        )
        return [attribute for attribute in attributes if attribute not in attributes_with_finding]

    @property
    def findings(self) -> list[Conclusion]:
        """The sentences that are findings."""
        return [conclusion for conclusion in self.sentences if conclusion.state == FINDING]


def conclusions(results: Results) -> Conclusions:
    """The sentences about results, as the metrics' cards define them; none for a comparison of two audits."""
    # The rows of a comparison are differences, whose sentences are in `changes`. A selection lacks the comparisons that
    # findings are corrected for.
    if "compared" in results.provenance or results.conditions:
        return Conclusions((), 0)
    cards = _metric_cards(results.provenance)
    estimates = Estimates(results)
    comparisons: list[ComparedStatement] = []
    item_sentences: list[Conclusion] = []
    for metric in dict.fromkeys(m.metric for m in results.measurements):
        rows = [m for m in results.measurements if m.metric == metric]
        for statement in statements_of(cards.get(metric)):
            if statement.against == ITEMS:
                item_sentences += _item_conclusions(statement, rows, results.provenance)
            else:
                meanings = _term_meanings(cards.get(metric))
                statement_comparisons = compare_statement(statement, metric, rows, estimates)
                comparisons += [
                    replace(comparison, meanings=meanings) for comparison in statement_comparisons
                ]
    provenance = results.provenance
    p_values = [
        comparison.p if _why_not_comparable(comparison, provenance) is None else None
        for comparison in comparisons
    ]
    # Two families for Holm's correction: comparisons that can become findings, and those that are observations only.
    can_be_finding = [bool(comparison.statement.findings) for comparison in comparisons]
    families = {
        family_is_candidate: [
            p if is_candidate == family_is_candidate else None
            for p, is_candidate in zip(p_values, can_be_finding, strict=True)
        ]
        for family_is_candidate in (True, False)
    }
    family_sizes = {
        is_candidate: sum(p is not None for p in family) for is_candidate, family in families.items()
    }
    corrected_p = {is_candidate: holm(family) for is_candidate, family in families.items()}
    n_comparisons = family_sizes[True]
    pairs = [
        (
            comparison,
            _conclude(
                comparison,
                corrected_p[is_candidate][index],
                family_sizes[is_candidate],
                results.measurements,
                provenance,
            ),
        )
        for index, (comparison, is_candidate) in enumerate(zip(comparisons, can_be_finding, strict=True))
    ]
    question_order = [question.name for question in QUESTIONS]
    sorted_pairs = sorted(
        _best_alternatives(pairs),
        key=lambda pair: (question_order.index(pair[1].question), STATES.index(pair[1].state)),
    )
    sentences = [conclusion for _, conclusion in _sort_by_difference(sorted_pairs)]
    sentences = sorted(
        [*sentences, *item_sentences],
        key=lambda conclusion: (question_order.index(conclusion.question), STATES.index(conclusion.state)),
    )
    # The same sentence may come from two attributes. It is kept once.
    conclusion_by_text = {conclusion.text: conclusion for conclusion in reversed(sentences)}
    return Conclusions(
        tuple(
            conclusion_by_text[text] for text in dict.fromkeys(conclusion.text for conclusion in sentences)
        ),
        n_comparisons,
    )


def _metric_cards(provenance: Mapping[str, Any]) -> Mapping[str, Any]:
    cards = provenance.get("cards")
    return cards if isinstance(cards, Mapping) else {}


def _best_alternatives(
    pairs: Sequence[tuple[ComparedStatement, Conclusion]],
) -> list[tuple[ComparedStatement, Conclusion]]:
    """One pair for each set of alternative statements, which share `choice`: the first with the best state."""
    pairs_by_key: dict[tuple[Any, ...], list[tuple[ComparedStatement, Conclusion]]] = {}
    for index, pair in enumerate(pairs):
        choice = pair[0].statement.choice
        row = pair[0].row
        key = (row.metric, choice, row.system, row.attribute, str(row.settings)) if choice else (index,)
        pairs_by_key.setdefault(key, []).append(pair)
    return [min(pairs, key=lambda pair: STATES.index(pair[1].state)) for pairs in pairs_by_key.values()]


def _sort_by_difference(
    pairs: Iterable[tuple[ComparedStatement, Conclusion]],
) -> list[tuple[ComparedStatement, Conclusion]]:
    """The pairs with those of one statement next to each other, the largest difference first.

    Only pairs of the same question and state change places. Statements keep the order of their first pair.
    """
    pair_list = list(pairs)
    first_index: dict[tuple[Any, ...], int] = {}
    for index, (comparison, conclusion) in enumerate(pair_list):
        first_index.setdefault((conclusion.question, conclusion.state, id(comparison.statement)), index)

    def sort_key(pair: tuple[ComparedStatement, Conclusion]) -> tuple[Any, ...]:
        comparison, conclusion = pair
        absolute_difference = 0.0 if comparison.difference is None else abs(comparison.difference.value)
        return (
            first_index[(conclusion.question, conclusion.state, id(comparison.statement))],
            -absolute_difference,
        )

    return sorted(pair_list, key=sort_key)


def _conclude(
    comparison: ComparedStatement,
    q: float | None,
    n_comparisons: int,
    rows: Sequence[Measurement],
    provenance: Mapping[str, Any],
) -> Conclusion:
    """The conclusion of one comparison, whose corrected p value is `q`."""
    row, statement, difference = comparison.row, comparison.statement, comparison.difference
    whether = f"whether {fill(statement.question, comparison.placeholder_values)}"
    if row.value is None:
        return _make_conclusion(
            comparison, UNDEFINED, f"Undefined: {whether}: {row.reason}".rstrip("."), None, provenance
        )
    too_few_row = next((m for m in (row, comparison.reference_row) if m is not None and is_too_few(m)), None)
    if too_few_row is not None:
        source_text = too_few_row.group or ("human captions" if too_few_row.system == HUMAN else "")
        count_text = (too_few_row.reason or "").removeprefix(TOO_FEW_REASON).removeprefix(": ")
        text = f"Too few to say {whether} ({f'{source_text}: ' if source_text else ''}{count_text})"
        return _make_conclusion(comparison, TOO_FEW, text, None, provenance)
    reason_not_comparable = _why_not_comparable(comparison, provenance)
    if reason_not_comparable is not None:
        return _make_conclusion(
            comparison,
            NOT_COMPARABLE,
            f"Cannot be compared: {whether}: {reason_not_comparable}",
            None,
            provenance,
        )
    numbers = numbers_text(comparison)
    excludes_zero = difference is not None and (difference.low > 0 or difference.high < 0)
    side = None if difference is None or not excludes_zero else MORE if difference.value > 0 else LESS
    control_sentence = _control_sentence(comparison, rows) if side == MORE else None
    if control_sentence is not None:
        return _make_conclusion(comparison, INCONCLUSIVE, f"{control_sentence}: {numbers}", None, provenance)
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
        not_corrected_text = (
            f"significant after correction for {n_comparisons} {family}: {whether}: {numbers}"
        )
        if is_finding and _is_large_enough(comparison):
            return _make_conclusion(
                comparison, SUGGESTIVE, f"Suggestive, not {not_corrected_text}", None, provenance
            )
        return _make_conclusion(comparison, INCONCLUSIVE, f"Not {not_corrected_text}", None, provenance)
    if not significant_corrected and difference_significant and comparison.human_rows:
        text = f"Not shown to go beyond human captions: {whether}: {numbers}"
        return _make_conclusion(comparison, AS_HUMAN, text, None, provenance)
    if not significant_corrected:
        not_significant_text = "Not significant" if difference is not None else "Inconclusive"
        return _make_conclusion(
            comparison, INCONCLUSIVE, f"{not_significant_text}: {whether}: {numbers}", None, provenance
        )
    text = f"{fill(sentence, comparison.placeholder_values)}: {numbers}"
    if not is_finding:
        note_text = f" ({statement.note})" if statement.note else ""
        return _make_conclusion(comparison, OBSERVATION, f"{text}{note_text}", side, provenance)
    if not _is_large_enough(comparison):
        return _make_conclusion(
            comparison, OBSERVATION, f"{text} (too small to count as a finding)", side, provenance
        )
    return _make_conclusion(comparison, FINDING, text, side, provenance)


def _why_not_comparable(comparison: ComparedStatement, provenance: Mapping[str, Any]) -> str | None:
    """The reason why a comparison is invalid, or None if it is valid.

    It follows from the cautions about the study. Human captions of other images are no valid reference. If captions
    and references differ too much in length, only groups can be compared, and not by scores against references.
    """
    row, against = comparison.row, comparison.statement.against
    cautions = provenance.get("cautions")
    row_cautions = split_cautions(row.caution)
    topics = {
        caution.get("about")
        for caution in (cautions if isinstance(cautions, list) else ())
        if isinstance(caution, Mapping) and caution.get("sentence") in row_cautions
    }
    if against == HUMAN_CAPTIONS and _OTHER_IMAGES_TOPIC in topics:
        return "human captions are of other images"
    caution_terms = _as_mapping(_as_mapping(_metric_cards(provenance).get(row.metric)).get("caution_terms"))
    if _LENGTH_TOPIC in topics and (
        against != GROUPS or row.term in (caution_terms.get(_REFERENCES_TOPIC) or ())
    ):
        return "captions and references differ too much in length"
    return None


def _term_meanings(card: object) -> dict[str, str]:
    terms = _as_mapping(card).get("terms")
    term_cards = [_as_mapping(term) for term in terms] if isinstance(terms, list | tuple) else []
    return {str(term.get("name")): str(term.get("meaning")) for term in term_cards}


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_large_enough(comparison: ComparedStatement) -> bool:
    """Whether a difference is large enough for a finding, absolutely and relative to its reference."""
    statement, row, difference = comparison.statement, comparison.row, comparison.difference
    if difference is None or abs(difference.value) < statement.smallest:
        return False
    reference_value = comparison.reference_row.value if comparison.reference_row is not None else row.ideal
    smaller, larger = sorted((abs(row.value or 0.0), abs(reference_value or 0.0)))
    return smaller == 0 or larger / smaller >= statement.factor


def _control_sentence(comparison: ComparedStatement, rows: Sequence[Measurement]) -> str | None:
    """The sentence for a number that a control explains or may explain; None if the control does not."""
    statement, remainder_row = comparison.statement, comparison.remainder_row
    if remainder_row is None:
        return None
    key = (
        remainder_row.metric,
        remainder_row.term,
        remainder_row.system,
        remainder_row.attribute,
        remainder_row.group,
        remainder_row.settings,
    )
    item_rows = [
        m
        for m in rows
        if (m.metric, m.term, m.system, m.attribute, m.group, m.settings) == key and m.item is not None
    ]
    is_above_zero = remainder_row.low is not None and remainder_row.low > 0
    if is_above_zero or any(m.q is not None and m.q < ALPHA for m in item_rows):
        return None
    sentence = statement.no_remainder if remainder_row.high == 0 else statement.open_remainder
    value_text = (
        format_level(remainder_row, remainder_row.value) if remainder_row.value is not None else "undefined"
    )
    return (
        f"{fill(sentence, comparison.placeholder_values)} "
        f"({remainder_row.term} {value_text}{add_brackets(format_level_ci(remainder_row))})"
    )


def _item_conclusions(
    statement: Statement, rows: Sequence[Measurement], provenance: Mapping[str, Any]
) -> list[Conclusion]:
    """The sentences about items (words or objects) that are associated with groups, and which of them humans share."""
    rows_by_source: dict[tuple[str | None, str | None], list[Measurement]] = {}
    for m in rows:
        if m.term == statement.term and m.item is not None and m.value is not None:
            rows_by_source.setdefault((m.system, m.attribute), []).append(m)
    item_conclusions = []
    for (system, attribute), item_rows in rows_by_source.items():
        if system in (None, HUMAN):
            continue
        associated_rows = [m for m in item_rows if _is_associated(m)]
        human_associations = {
            (m.item, m.group) for m in rows_by_source.get((HUMAN, attribute), ()) if _is_associated(m)
        }
        placeholder_values = {"system": system, "attribute": attribute or "the group"}
        comparison = ComparedStatement(
            statement, (associated_rows or item_rows)[0], placeholder_values=placeholder_values
        )
        if not associated_rows:
            text = f"Not significant: whether {fill(statement.question, placeholder_values)}"
            item_conclusions.append(_make_conclusion(comparison, INCONCLUSIVE, text, None, provenance))
            continue
        phrases, shared_items = [], []
        for group in dict.fromkeys(m.group for m in associated_rows):
            strongest_rows = sorted(
                (m for m in associated_rows if m.group == group), key=lambda m: -(m.value or 0.0)
            )
            strongest_rows = strongest_rows[:_MAX_ITEMS_PER_GROUP]
            phrases.append(f"with {group} {', '.join(str(m.item) for m in strongest_rows)}")
            shared_items += [str(m.item) for m in strongest_rows if (m.item, m.group) in human_associations]
        text = f"{fill(statement.more, placeholder_values)}: {'; '.join(phrases)}"
        if shared_items:
            text += f" (in human captions too: {', '.join(shared_items)})"
        elif (HUMAN, attribute) in rows_by_source:
            text += " (in human captions none of these)"
        item_conclusions.append(_make_conclusion(comparison, OBSERVATION, text, None, provenance))
    return item_conclusions


def _is_associated(m: Measurement) -> bool:
    """Whether an item is significantly associated with its group."""
    return m.q is not None and m.q < ALPHA and m.value is not None and m.value > 0


def _make_conclusion(
    comparison: ComparedStatement, state: str, text: str, side: str | None, provenance: Mapping[str, Any]
) -> Conclusion:
    """The conclusion with `text` as its sentence, followed by the cautions about its rows."""
    row = comparison.row
    compared_rows = [m for m in (row, comparison.reference_row) if m is not None]
    cautions = dict.fromkeys(caution for m in compared_rows for caution in split_cautions(m.caution))
    cautions_of_study = study_cautions(provenance)
    # Cautions about the whole study are printed once, above all sentences.
    caution_text = "".join(f" Caution: {caution}" for caution in cautions if caution not in cautions_of_study)
    if any(caution in cautions_of_study for caution in cautions):
        caution_text += " (See the cautions about this study.)"
    question = question_of(_metric_cards(provenance).get(row.metric))
    return Conclusion(
        question.name, state, f"{text}.{caution_text}", row.id, row.metric, row.term, row.system,
        row.attribute, comparison.group, side,
    )  # fmt: skip
