"""What an audit may conclude, in sentences: findings, observations, and what stays open.

Every sentence is made from a metric's card (its statements) and from rows of the results. A finding is a difference
that matters and that is significant after correction for all comparisons that could have become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portrayal.report.findings.comparisons import ALPHA, Compared, Numbers, compare_all
from portrayal.report.findings.numbers import bracket, numbers
from portrayal.report.findings.questions import OTHER, QUESTIONS, Question, question_of
from portrayal.report.findings.wording import level, own_interval
from portrayal.report.tables.layout import caution_sentences, is_too_few
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
_LENGTH, _REFERENCES, _OTHER_IMAGES = "length", "references", "other images"  # what cautions are about
_MOST_ITEMS = 3  # words or objects of a group in one sentence


@dataclass(frozen=True)
class Conclusion:
    """One sentence, how sure it is, and the row it rests on.

    `group` is the group that is worse off, where the sentence is about groups; `side` is "more" or "less" where the
    difference is significant.
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
    """All sentences in the order of the questions, findings first; and how many comparisons were corrected for."""

    sentences: tuple[Conclusion, ...]
    comparisons: int

    def by_question(self) -> list[tuple[Question, list[Conclusion]]]:
        return [
            (question, own)
            for question in (*QUESTIONS, OTHER)
            if (own := [one for one in self.sentences if one.question == question.name])
        ]

    @property
    def without_finding(self) -> list[str]:
        """The systems that something was tested of and nothing was found."""
        named = dict.fromkeys(one.system for one in self.sentences if one.system is not None)
        return [system for system in named if all(one.system != system for one in self.findings)]

    @property
    def attributes_without_finding(self) -> list[str]:
        """The attributes that something was tested of and nothing was found, where another one has a finding."""
        found = {one.attribute for one in self.findings}
        named = dict.fromkeys(one.attribute for one in self.sentences if one.attribute is not None)
        return [attribute for attribute in named if attribute not in found]

    @property
    def findings(self) -> list[Conclusion]:
        return [one for one in self.sentences if one.state == FINDING]


def conclusions(results: Results) -> Conclusions:
    """Every sentence that the cards in the results allow."""
    if (
        "compared" in results.provenance
    ):  # rows of a comparison are differences, which have sentences of their own
        return Conclusions((), 0)
    known = _cards(results.provenance)
    numbers_of = Numbers(results)
    compared: list[Compared] = []
    listed: list[Conclusion] = []
    for metric in dict.fromkeys(m.metric for m in results.measurements):
        rows = [m for m in results.measurements if m.metric == metric]
        for statement in statements_of(known.get(metric)):
            if statement.against == ITEMS:
                listed += _of_items(statement, rows, results.provenance)
            else:
                meanings = _meanings(known.get(metric))
                all_of = compare_all(statement, metric, rows, numbers_of)
                compared += [replace(one, meanings=meanings) for one in all_of]
    origin = results.provenance
    open_ = [one.p if _why_not_comparable(one, origin) is None else None for one in compared]
    # What may become a finding is corrected for all that might have, and what is only observed for all of that kind.
    may_be = [bool(one.statement.findings) for one in compared]
    families = {
        kind: [p if own == kind else None for p, own in zip(open_, may_be, strict=True)]
        for kind in (True, False)
    }
    counts = {kind: sum(p is not None for p in family) for kind, family in families.items()}
    corrected = {kind: holm(family) for kind, family in families.items()}
    comparisons = counts[True]
    made = [
        (one, _conclude(one, corrected[kind][place], counts[kind], results.measurements, origin))
        for place, (one, kind) in enumerate(zip(compared, may_be, strict=True))
    ]
    order = [question.name for question in (*QUESTIONS, OTHER)]
    kept = sorted(
        _chosen(made), key=lambda pair: (order.index(pair[1].question), STATES.index(pair[1].state))
    )
    sentences = [conclusion for _, conclusion in _worst_first(kept)]
    sentences = sorted(
        [*sentences, *listed], key=lambda one: (order.index(one.question), STATES.index(one.state))
    )
    # A number of two attributes may give the same words.
    first = {sentence.text: sentence for sentence in reversed(sentences)}
    return Conclusions(
        tuple(first[text] for text in dict.fromkeys(one.text for one in sentences)), comparisons
    )


def _cards(origin: Mapping[str, Any]) -> Mapping[str, Any]:
    cards = origin.get("cards")
    return cards if isinstance(cards, Mapping) else {}


def _chosen(made: Sequence[tuple[Compared, Conclusion]]) -> list[tuple[Compared, Conclusion]]:
    """Of statements that answer one question together, the surest one; of those that are as sure, the first."""
    groups: dict[tuple[Any, ...], list[tuple[Compared, Conclusion]]] = {}
    for number, pair in enumerate(made):
        choice = pair[0].statement.choice
        row = pair[0].row
        key = (row.metric, choice, row.system, row.attribute, str(row.settings)) if choice else (number,)
        groups.setdefault(key, []).append(pair)
    return [min(pairs, key=lambda pair: STATES.index(pair[1].state)) for pairs in groups.values()]


def _worst_first(
    pairs: Iterable[tuple[Compared, Conclusion]],
) -> list[tuple[Compared, Conclusion]]:
    """Within a question and state, sentences of one statement stand together, the largest difference first."""
    listed = list(pairs)
    first: dict[tuple[Any, ...], int] = {}
    for index, (compared, conclusion) in enumerate(listed):
        first.setdefault((conclusion.question, conclusion.state, id(compared.statement)), index)

    def place(pair: tuple[Compared, Conclusion]) -> tuple[Any, ...]:
        compared, conclusion = pair
        size = 0.0 if compared.gap is None else abs(compared.gap.value)
        return (first[(conclusion.question, conclusion.state, id(compared.statement))], -size)

    return sorted(listed, key=place)


def _conclude(
    compared: Compared,
    q: float | None,
    comparisons: int,
    rows: Sequence[Measurement],
    origin: Mapping[str, Any],
) -> Conclusion:
    row, statement, gap = compared.row, compared.statement, compared.gap
    whether = f"whether {fill(statement.question, compared.values)}"
    if row.value is None:
        return _conclusion(
            compared, UNDEFINED, f"Undefined: {whether}: {row.reason}".rstrip("."), None, origin
        )
    few = next((m for m in (row, compared.versus) if m is not None and is_too_few(m)), None)
    if few is not None:
        whose = few.group or ("human captions" if few.system == HUMAN else "")
        number = (few.reason or "").removeprefix(TOO_FEW_REASON).removeprefix(": ")
        text = f"Too few to say {whether} ({f'{whose}: ' if whose else ''}{number})"
        return _conclusion(compared, TOO_FEW, text, None, origin)
    why_not = _why_not_comparable(compared, origin)
    if why_not is not None:
        return _conclusion(
            compared, NOT_COMPARABLE, f"Cannot be compared: {whether}: {why_not}", None, origin
        )
    shown = numbers(compared)
    apart = gap is not None and (gap.low > 0 or gap.high < 0)
    side = None if gap is None or not apart else MORE if gap.value > 0 else LESS
    explained = _explained_by_control(compared, rows) if side == MORE else None
    if explained is not None:
        return _conclusion(compared, INCONCLUSIVE, f"{explained}: {shown}", None, origin)
    itself = apart and compared.p_itself is not None and compared.p_itself < ALPHA
    alone = itself and compared.p is not None and compared.p < ALPHA
    is_finding = (MORE if statement.against == GROUPS else side) in statement.findings
    sure = alone and q is not None and q <= ALPHA
    sentence = (
        (statement.more if side == MORE or statement.against == GROUPS else statement.less) if side else ""
    )
    if not sure and alone:
        family = "comparisons" if statement.findings else "comparisons that are observed only"
        corrected = f"significant after correction for {comparisons} {family}: {whether}: {shown}"
        if is_finding and _matters(compared):
            return _conclusion(compared, SUGGESTIVE, f"Suggestive, not {corrected}", None, origin)
        return _conclusion(compared, INCONCLUSIVE, f"Not {corrected}", None, origin)
    if not sure and itself and compared.human:
        text = f"Not shown to go beyond human captions: {whether}: {shown}"
        return _conclusion(compared, AS_HUMAN, text, None, origin)
    if not sure:
        kind = "Not significant" if gap is not None else "Inconclusive"
        return _conclusion(compared, INCONCLUSIVE, f"{kind}: {whether}: {shown}", None, origin)
    text = f"{fill(sentence, compared.values)}: {shown}"
    if not is_finding:
        note = f" ({statement.note})" if statement.note else ""
        return _conclusion(compared, OBSERVED, f"{text}{note}", side, origin)
    if not _matters(compared):
        return _conclusion(compared, OBSERVED, f"{text} (too small to count as a finding)", side, origin)
    return _conclusion(compared, FINDING, text, side, origin)


def _why_not_comparable(compared: Compared, origin: Mapping[str, Any]) -> str | None:
    """Why a comparison with human captions says nothing, as a caution about the study tells: other images, or length.

    Groups can be compared all the same, but for scores against references where captions are several times as long as
    these: hardly any of the score is left.
    """
    row, against = compared.row, compared.statement.against
    listed = origin.get("cautions")
    own = split_cautions(row.caution)
    about = {
        one.get("about")
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, Mapping) and one.get("sentence") in own
    }
    if against == HUMAN_CAPTIONS and _OTHER_IMAGES in about:
        return "human captions are of other images"
    cautioned = _object(_object(_cards(origin).get(row.metric)).get("cautioned"))
    if _LENGTH in about and (against != GROUPS or row.term in (cautioned.get(_REFERENCES) or ())):
        return "captions and references differ too much in length"
    return None


def _meanings(card: object) -> dict[str, str]:
    terms = _object(card).get("terms")
    listed = [_object(term) for term in terms] if isinstance(terms, list | tuple) else []
    return {str(term.get("name")): str(term.get("meaning")) for term in listed}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _matters(compared: Compared) -> bool:
    """Whether a difference is large enough, by itself and against the value it is compared with."""
    statement, row, gap = compared.statement, compared.row, compared.gap
    if gap is None or abs(gap.value) < statement.smallest:
        return False
    other = compared.versus.value if compared.versus is not None else row.ideal
    low, high = sorted((abs(row.value or 0.0), abs(other or 0.0)))
    return low == 0 or high / low >= statement.factor


def _explained_by_control(compared: Compared, rows: Sequence[Measurement]) -> str | None:
    """What is said where a control leaves nothing of a number, or it stays open; None where the number stands."""
    statement, left = compared.statement, compared.remainder
    if left is None:
        return None
    about = (left.metric, left.term, left.system, left.attribute, left.group, left.settings)
    items = [
        m
        for m in rows
        if (m.metric, m.term, m.system, m.attribute, m.group, m.settings) == about and m.item is not None
    ]
    stands = left.low is not None and left.low > 0
    if stands or any(m.q is not None and m.q < ALPHA for m in items):
        return None
    words = statement.no_remainder if left.high == 0 else statement.open_remainder
    value = level(left, left.value) if left.value is not None else "undefined"
    return f"{fill(words, compared.values)} ({left.term} {value}{bracket(own_interval(left))})"


def _of_items(
    statement: Statement, rows: Sequence[Measurement], origin: Mapping[str, Any]
) -> list[Conclusion]:
    """Which words or objects go with which group, and which of them do in human captions too."""
    scans: dict[tuple[str | None, str | None], list[Measurement]] = {}
    for m in rows:
        if m.term == statement.term and m.item is not None and m.value is not None:
            scans.setdefault((m.system, m.attribute), []).append(m)
    made = []
    for (system, attribute), items in scans.items():
        if system in (None, HUMAN):
            continue
        with_group = [m for m in items if _goes_with(m)]
        shared = {(m.item, m.group) for m in scans.get((HUMAN, attribute), ()) if _goes_with(m)}
        values = {"system": system, "attribute": attribute or "the group"}
        compared = Compared(statement, (with_group or items)[0], values=values)
        if not with_group:
            text = f"Not significant: whether {fill(statement.question, values)}"
            made.append(_conclusion(compared, INCONCLUSIVE, text, None, origin))
            continue
        parts, too = [], []
        for group in dict.fromkeys(m.group for m in with_group):
            own = sorted((m for m in with_group if m.group == group), key=lambda m: -(m.value or 0.0))
            own = own[:_MOST_ITEMS]
            parts.append(f"with {group} {', '.join(str(m.item) for m in own)}")
            too += [str(m.item) for m in own if (m.item, m.group) in shared]
        text = f"{fill(statement.more, values)}: {'; '.join(parts)}"
        if too:
            text += f" (in human captions too: {', '.join(too)})"
        elif (HUMAN, attribute) in scans:
            text += " (in human captions none of these)"
        made.append(_conclusion(compared, OBSERVED, text, None, origin))
    return made


def _goes_with(m: Measurement) -> bool:
    return m.q is not None and m.q < ALPHA and m.value is not None and m.value > 0


def _conclusion(
    compared: Compared, state: str, text: str, side: str | None, origin: Mapping[str, Any]
) -> Conclusion:
    row = compared.row
    rows = [m for m in (row, compared.versus) if m is not None]
    cautions = dict.fromkeys(caution for m in rows for caution in split_cautions(m.caution))
    about_study = caution_sentences(origin)
    # A caution about the whole study stands above all sentences: repeated in each, nobody would read any of them.
    tail = "".join(f" Caution: {caution}" for caution in cautions if caution not in about_study)
    if any(caution in about_study for caution in cautions):
        tail += " (See the cautions about this study.)"
    return Conclusion(
        question_of(row.metric).name, state, f"{text}.{tail}", row.id, row.metric, row.term, row.system,
        row.attribute, compared.group, side,
    )  # fmt: skip
