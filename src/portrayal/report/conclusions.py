"""What an audit may conclude, in sentences: findings, observations, and what stays open.

Every sentence is made from a metric's card (its statements) and from rows of the results. A finding is a difference
that matters and that is significant after correction for all comparisons that could have become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portrayal.report.comparisons import ALPHA, Compared, compare_all
from portrayal.report.layout import caution_sentences, is_too_few
from portrayal.report.questions import OTHER, QUESTIONS, Question, question_of
from portrayal.report.wording import interval, level, own_interval, signed
from portrayal.results import HUMAN, Measurement, Results, split_cautions
from portrayal.statements import (
    GROUPS,
    IDEAL,
    ITEMS,
    LESS,
    MORE,
    Statement,
    fill,
    statements_of,
)
from portrayal.stats import holm

FINDING, SUGGESTIVE, OBSERVED, AS_HUMAN, INCONCLUSIVE, TOO_FEW, UNDEFINED = (
    "finding", "suggestive", "observed", "as human captions", "inconclusive", "too few", "undefined",
)  # fmt: skip
STATES = (FINDING, SUGGESTIVE, OBSERVED, AS_HUMAN, INCONCLUSIVE, TOO_FEW, UNDEFINED)
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
    def findings(self) -> list[Conclusion]:
        return [one for one in self.sentences if one.state == FINDING]


def conclusions(results: Results) -> Conclusions:
    """Every sentence that the cards in the results allow."""
    known = _cards(results.provenance)
    compared: list[Compared] = []
    listed: list[Conclusion] = []
    for metric in dict.fromkeys(m.metric for m in results.measurements):
        rows = [m for m in results.measurements if m.metric == metric]
        for statement in statements_of(known.get(metric)):
            if statement.against == ITEMS:
                listed += _of_items(statement, rows, results.provenance)
            else:
                compared += compare_all(statement, metric, rows)
    tested = [one.p if one.statement.findings else None for one in compared]
    corrected = holm(tested)
    comparisons = sum(p is not None for p in tested)
    made = [
        (one, _conclude(one, q, comparisons, results.measurements, results.provenance))
        for one, q in zip(compared, corrected, strict=True)
    ]
    order = [question.name for question in (*QUESTIONS, OTHER)]
    kept = sorted(
        _chosen(made), key=lambda pair: (order.index(pair[1].question), STATES.index(pair[1].state))
    )
    sentences = [conclusion for _, conclusion in _worst_first(kept)]
    sentences = sorted(
        [*sentences, *listed], key=lambda one: (order.index(one.question), STATES.index(one.state))
    )
    return Conclusions(tuple(sentences), comparisons)


def _cards(origin: Mapping[str, Any]) -> Mapping[str, Any]:
    cards = origin.get("cards")
    return cards if isinstance(cards, Mapping) else {}


def _chosen(made: Sequence[tuple[Compared, Conclusion]]) -> list[tuple[Compared, Conclusion]]:
    """Of statements that answer one question together, the first that is a finding, else the first."""
    groups: dict[tuple[Any, ...], list[tuple[Compared, Conclusion]]] = {}
    for number, pair in enumerate(made):
        choice = pair[0].statement.choice
        row = pair[0].row
        key = (row.metric, choice, row.system, row.attribute, str(row.settings)) if choice else (number,)
        groups.setdefault(key, []).append(pair)
    return [next((pair for pair in pairs if pair[1].state == FINDING), pairs[0]) for pairs in groups.values()]


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
    if is_too_few(row):
        return _conclusion(compared, TOO_FEW, f"Too few images: {whether}: {row.reason}", None, origin)
    numbers = _numbers(compared)
    apart = gap is not None and (gap.low > 0 or gap.high < 0)
    side = None if gap is None or not apart else MORE if gap.value > 0 else LESS
    explained = _explained_by_control(compared, rows) if side == MORE else None
    if explained is not None:
        return _conclusion(compared, INCONCLUSIVE, f"{explained}: {numbers}", None, origin)
    alone = apart and compared.p is not None and compared.p < ALPHA
    is_finding = (MORE if statement.against == GROUPS else side) in statement.findings
    sure = alone and q is not None and q <= ALPHA if is_finding else alone
    sentence = (
        (statement.more if side == MORE or statement.against == GROUPS else statement.less) if side else ""
    )
    if not sure and alone and _matters(compared):
        kind = f"Suggestive, not significant after correction for {comparisons} comparisons"
        return _conclusion(compared, SUGGESTIVE, f"{kind}: {whether}: {numbers}", None, origin)
    if not sure and apart and compared.human and not alone:
        text = f"Not beyond human captions: {whether}: {numbers}"
        return _conclusion(compared, AS_HUMAN, text, None, origin)
    if not sure:
        kind = "Not significant" if gap is not None else "Inconclusive"
        return _conclusion(compared, INCONCLUSIVE, f"{kind}: {whether}: {numbers}", None, origin)
    text = f"{fill(sentence, compared.values)}: {numbers}"
    if not is_finding:
        note = f" ({statement.note})" if statement.note else ""
        return _conclusion(compared, OBSERVED, f"{text}{note}", side, origin)
    if not _matters(compared):
        return _conclusion(compared, OBSERVED, f"{text} (too small to count as a finding)", side, origin)
    return _conclusion(compared, FINDING, text, side, origin)


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
    return f"{fill(words, compared.values)} ({left.term} {value}{_bracket(own_interval(left))})"


def _numbers(compared: Compared) -> str:
    """The numbers of a sentence: both sides of the comparison, their difference, and its interval."""
    row, versus, gap = compared.row, compared.versus, compared.gap
    if versus is None:  # against the ideal
        zero = not row.ideal
        text = signed(row, row.value or 0.0) if zero else level(row, row.value)
        text += _bracket(_interval_text(compared) if zero else own_interval(row)) or ", without an interval"
        if row.ideal not in (None, 0.0, 1.0):  # a level of chance, which is another in every study
            text += f", against {level(row, row.ideal)}"
        for human in compared.human:
            own = signed(human, human.value or 0.0) if zero else level(human, human.value)
            text += f"; human captions {own}{_beyond_human(compared)}"
    else:
        names = (
            (f" for {row.group}", f"{{}} for {versus.group}")
            if compared.statement.against == GROUPS
            else ("", "human captions {}")
        )
        text = f"{level(row, row.value)}{names[0]}, {names[1].format(level(versus, versus.value))}"
        if gap is not None:
            text += f"; difference {signed(row, gap.value)} ({interval(row, gap)})"
        if compared.human:
            first, second = (level(m, m.value) for m in compared.human)
            text += f"; human captions {first} and {second}{_beyond_human(compared)}"
    return text + _beside(compared) + _other_settings(compared)


def _beyond_human(compared: Compared) -> str:
    """How far it is from human captions, where that decides: the difference itself is clear and theirs is near."""
    gap, beyond = compared.gap, compared.beyond_human
    if gap is None or beyond is None or not (gap.low > 0 or gap.high < 0) or beyond.p() < ALPHA / 100:
        return ""
    return f", {signed(compared.row, beyond.value)} beyond them ({interval(compared.row, beyond)})"


def _interval_text(compared: Compared) -> str:
    return "" if compared.gap is None else interval(compared.row, compared.gap)


def _bracket(text: str) -> str:
    return f" ({text})" if text else ""


def _beside(compared: Compared) -> str:
    """How the other terms of the same question stand to the first: which agree, and which are the other way."""
    gap = compared.gap
    lead = 0 if gap is None else 1 if gap.low > 0 else -1 if gap.high < 0 else 0
    agree, parts, unsure = [], [], []
    for m in compared.beside:
        side = _side_of(m)
        if side is None or m.value is None:
            continue
        if side == 0:
            unsure.append(m.term)
        elif side == lead:
            agree.append(m.term)
        else:
            what = "is the other way, " if lead else ""
            parts.append(f"{m.term} {what}{signed(m, m.value)} ({own_points(m)})")
    if agree:
        parts.insert(0, f"{_listed(agree)} {'agrees' if len(agree) == 1 else 'agree'}")
    if unsure:
        parts.append(f"{_listed(unsure)} not significant")
    return f"; {'; '.join(parts)}" if parts else ""


def own_points(m: Measurement) -> str:
    """The confidence interval of a number that is itself a difference."""
    low, high = (
        signed(m, bound).removeprefix("+").removesuffix(" points") for bound in (m.low or 0.0, m.high or 0.0)
    )
    return f"95 % CI [{low}, {high}]"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _other_settings(compared: Compared) -> str:
    if not compared.others or compared.statement.against != IDEAL:
        return ""
    own = _side_of(compared.row)
    sides = [side for m in compared.others if (side := _side_of(m)) is not None]
    differ = sum(side != own for side in sides)
    return f"; {differ} of {len(compared.others)} other settings say otherwise" if differ else ""


def _side_of(m: Measurement) -> int | None:
    """1 where the interval lies above the ideal, -1 below, 0 across; None where nothing can be said."""
    if m.value is None or m.low is None or m.high is None or is_too_few(m):
        return None
    ideal = m.ideal or 0.0
    return 1 if m.low > ideal else -1 if m.high < ideal else 0


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
