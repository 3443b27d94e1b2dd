"""What an audit found, in plain sentences. Each is made from one number of the results and says how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portrayal.report.layout import is_too_few, number
from portrayal.report.questions import QUESTIONS, Question, question_of
from portrayal.results import HUMAN, Measurement, Results

TOLD, OPEN, TOO_FEW, UNDEFINED = "told", "open", "too few", "undefined"
_MOST_HARMS = 4  # of a system
_MOST_WORDS = 3  # of a group
_SHARES = ("error", "wrong")  # shares whose ideal is 0, and no differences
_POINTS = " points"
_BY_RULE = ("erasure.ignoring",)  # of people's captions it is 0 because of how it is counted
_SURE = 0.05  # false discovery rate


@dataclass(frozen=True)
class Verdict:
    """One sentence, what must be read with it, and the number behind it."""

    question: str
    text: str
    caveat: str | None
    state: str
    id: str


@dataclass(frozen=True)
class _Left:
    """A number that says what of another is left beside damage, and what is said where that is nothing, or open."""

    term: str
    nothing: str
    level: str


@dataclass(frozen=True)
class _Rule:
    """How a headline is read: what is said where its interval lies above its ideal, below it, or across it."""

    metric: str
    term: str
    above: str
    below: str
    level: str
    told: Mapping[str, Any] | None = None  # settings that a row must have
    item: str | None = None  # as far as it goes before a bracket, which tells a setting
    left: _Left | None = None  # what must be left of it to be a finding

    def fits(self, m: Measurement) -> bool:
        item = None if m.item is None else m.item.partition(" (")[0]
        return (m.metric, m.term, item) == (self.metric, self.term, self.item) and all(
            m.settings.get(name) == value for name, value in (self.told or {}).items()
        )


_RULES = (
    _Rule("lic", "lic",
          "Captions of {system} make {attribute} easier to guess than people's do",
          "Captions of {system} make {attribute} harder to guess than people's do",
          "Whether captions of {system} make {attribute} easier to guess than people's do cannot be told"),
    _Rule("leakage", "difference",
          "What {system} names gives {attribute} away more than what is there",
          "What {system} names gives {attribute} away less than what is there",
          "Whether what {system} names gives {attribute} away more than what is there cannot be told"),
    _Rule("amplification", "t-to-a",
          "In captions of {system} things predict {attribute} more than in the images",
          "In captions of {system} things predict {attribute} less than in the images",
          "Whether captions of {system} tie things to {attribute} more than the images do cannot be told"),
    _Rule("naming-ratio", "ratio",
          "Captions of {system} name groups of {attribute} more often than people do",
          "Captions of {system} name groups of {attribute} less often than people do",
          "Captions of {system} name groups of {attribute} about as often as people do"),
    _Rule("retrieval-skew", "maxskew",
          "In lists of {system}, a group of {attribute} is further from its share at the top than chance would put it",
          "In lists of {system}, groups of {attribute} are nearer to their shares at the top than chance would have it",
          "In lists of {system}, groups of {attribute} stand at the top as by chance, as far as can be told"),
    _Rule("counterbias", "excess",
          "When only the person changes, what {system} says of what they do or are changes more than chance would have "
          "it ({kind}, {attack}, in percent)",
          "When only the person changes, what {system} says changes less than chance would have it ({kind}, {attack}, "
          "in percent)",
          "Whether what {system} says changes with the person cannot be told ({kind}, {attack}, in percent)",
          {"of": "b@v-l"},
          left=_Left(
              "corrected",
              "When only the person changes, what {system} says changes no more than when something else is attacked "
              "({kind}, {attack}, in percent)",
              "Whether what {system} says changes more with the person than when something else is attacked cannot be "
              "told ({kind}, {attack}, in percent)",
          )),
    _Rule("quality", "cider-gap",
          "Captions of {system} are more like people's for some groups of {attribute} than for others",
          "Captions of {system} are more like people's for some groups of {attribute} than for others",
          "Whether captions of {system} are better for some groups of {attribute} than for others cannot be told"),
    _Rule("mitigation", "drop",
          "{system} takes bias away that as much training without it leaves ({of}, {kind}, {attack})",
          "{system} leaves more bias than as much training without it ({of}, {kind}, {attack})",
          "Whether {system} takes bias away cannot be told ({of}, {kind}, {attack})",
          {"of": "b@v-l"}),
    *(_Rule("remedy", "change", f"With {{system}}, {what} rises", f"With {{system}}, {what} falls",
            f"Whether {what} changes with {{system}} cannot be told", None, item)
      for item, what in (
          ("lic: lic", "how much easier captions make {attribute} to guess than people's"),
          ("error: wrong", "the share of captions that name the wrong group of {attribute}"),
          ("error: right", "the share of captions that name the right group of {attribute}"),
          ("harms: erasure.group-not-mentioned", "the share of captions without the group that people name"),
          ("quality: cider", "the likeness to people's captions (cider)"),
      )),
)  # fmt: skip


def verdicts(results: Results) -> list[Verdict]:
    """In the order of the questions; of each first what can be told, then what cannot."""
    cards = results.provenance.get("cards")
    known: Mapping[str, Any] = cards if isinstance(cards, Mapping) else {}
    rows = [m for m in results.measurements if m.system not in (None, HUMAN)]
    made = [*_errors(rows, known)]
    for rule in _RULES:
        made += _of_rule(rule, rows, known)
    made += [*_words(rows, known), *_harms(results.measurements, known)]
    order, states = [question.name for question in QUESTIONS], (TOLD, OPEN, TOO_FEW, UNDEFINED)
    return sorted(made, key=lambda one: (order.index(one.question), states.index(one.state)))


def by_question(found: Iterable[Verdict]) -> list[tuple[Question, list[Verdict]]]:
    listed = list(found)
    return [
        (question, some)
        for question in QUESTIONS
        if (some := [one for one in listed if one.question == question.name])
    ]


def _headlines(rows: Sequence[Measurement]) -> list[Measurement]:
    return [m for m in rows if m.group is None and m.item is None]


def _of_rule(rule: _Rule, rows: Sequence[Measurement], cards: Mapping[str, Any]) -> list[Verdict]:
    """A sentence for each system, attribute and case: of several settings the first, and whether others differ."""
    found: dict[tuple[Any, ...], list[Measurement]] = {}
    for m in rows:
        if m.group is not None or not rule.fits(m):
            continue
        case = [m.settings.get(name) for name in ("kind", "attack", "groups")]
        found.setdefault((m.system, m.attribute, str(case)), []).append(m)
    made = []
    for some in found.values():
        left = [_beside(rule, m, rows) for m in some]
        side, *others = (_side(m) if beside is None else 0 for m, beside in zip(some, left, strict=True))
        differ = sum(one not in (side, None) for one in others)
        more = f"; {differ} of {len(others)} other settings say otherwise" if differ else ""
        made.append(_headline(rule, some[0], cards, more, left[0]))
    return made


def _beside(rule: _Rule, m: Measurement, rows: Sequence[Measurement]) -> Measurement | None:
    """The number that says what is left of a finding, where it does not bear it out, nor any of its items does."""
    if rule.left is None or _side(m) != 1:
        return None
    asked = (m.metric, rule.left.term, m.system, m.attribute, None, m.settings)
    left = [
        one
        for one in rows
        if (one.metric, one.term, one.system, one.attribute, one.group, one.settings) == asked
    ]
    whole = next((one for one in left if one.item is None), None)
    borne_out = any(one.item is not None and one.q is not None and one.q < _SURE for one in left)
    return None if whole is None or borne_out or _side(whole) == 1 else whole


def _side(m: Measurement) -> int | None:
    """1 where the interval lies above the ideal, -1 below, 0 across; None where nothing can be told."""
    if m.value is None or m.low is None or m.high is None or is_too_few(m):
        return None
    ideal = m.ideal if m.ideal is not None else 0.0
    return 1 if m.low > ideal else -1 if m.high < ideal else 0


def _headline(
    rule: _Rule, m: Measurement, cards: Mapping[str, Any], more: str, left: Measurement | None
) -> Verdict:
    about = {
        "system": m.system,
        "attribute": m.attribute or "the group",
        **{name: m.settings.get(name, "") for name in ("kind", "attack", "of")},
    }
    side = _side(m)
    said = {1: rule.above, -1: rule.below}.get(side or 0, rule.level).format(**about)
    if left is not None and rule.left is not None:
        side, said = 0, (rule.left.nothing if left.high == 0 else rule.left.level).format(**about)
        more = f"; beside the other attack {_told(left) if left.value is not None else 'undefined'}{more}"
    if m.value is None:
        state, found = UNDEFINED, f"undefined, {m.reason}"
    elif is_too_few(m):
        state, found = TOO_FEW, f"{m.reason} ({_told(m)})"
    else:
        state, found = TOLD if side else OPEN, _told(m)
    return _verdict(m, f"{said}: {found}{more}", cards, state)


def _errors(rows: Sequence[Measurement], cards: Mapping[str, Any]) -> list[Verdict]:
    """How often the wrong group is named, and for whom."""
    made = []
    for m in _headlines(rows):
        if (m.metric, m.term) != ("error", "error"):
            continue
        about = f"Of captions of {m.system} that name one group of {m.attribute}"
        if m.value is None:
            said = f"{about}, the share that is wrong is undefined: {m.reason}"
            made.append(_verdict(m, said, cards, UNDEFINED))
            continue
        told = [_interval(m), *(f"{one.group} {_share(one.value)}" for one in _groups_of(m, rows))]
        said = f"{about}, {_share(m.value)} name the wrong one ({'; '.join(filter(None, told))})"
        few = is_too_few(m)
        made.append(_verdict(m, f"{said}: {m.reason}" if few else said, cards, TOO_FEW if few else TOLD))
    return made


def _groups_of(m: Measurement, rows: Sequence[Measurement]) -> list[Measurement]:
    """The same number of each group."""
    same = (m.metric, m.term, m.system, m.attribute, m.settings)
    return [
        one
        for one in rows
        if (one.metric, one.term, one.system, one.attribute, one.settings) == same
        and one.group is not None
        and one.item is None
        and one.value is not None
    ]


def _words(rows: Sequence[Measurement], cards: Mapping[str, Any]) -> list[Verdict]:
    """The words that go with each group most, where more than chance is behind it."""
    found: dict[tuple[str | None, str | None], list[Measurement]] = {}
    for m in rows:
        if m.metric == "word-odds" and m.term == "z" and m.item is not None and m.value is not None:
            found.setdefault((m.system, m.attribute), []).append(m)
    made = []
    for (system, attribute), words in found.items():
        sure = [m for m in words if m.q is not None and m.q < _SURE and m.value is not None and m.value > 0]
        parts = []
        for group in dict.fromkeys(m.group for m in sure):
            own = sorted((m for m in sure if m.group == group), key=lambda m: -(m.value or 0.0))[:_MOST_WORDS]
            parts.append(f"with {group} {', '.join(str(m.item) for m in own)}")
        if parts:
            said = (
                f"In captions of {system} some words go with a group of {attribute}: most {'; '.join(parts)}"
            )
        else:
            said = (
                f"In captions of {system} no word goes with a group of {attribute} more than chance explains"
            )
        made.append(_verdict((sure or words)[0], said, cards, TOLD if parts else OPEN))
    return made


def _harms(rows: Sequence[Measurement], cards: Mapping[str, Any]) -> list[Verdict]:
    """What is found more often in a system's captions than in people's: a count is the entry to a look."""
    whole = [
        m for m in rows if m.metric == "harms" and m.group is None and m.item is None and m.unit == "share"
    ]
    people: dict[str, Measurement] = {}
    for m in whole:
        if m.system == HUMAN and m.value is not None:
            people.setdefault(m.term, m)
    made = []
    for system in dict.fromkeys(m.system for m in whole if m.system not in (None, HUMAN)):
        once: dict[str, Measurement] = {}  # hardly any depend on the attribute
        for m in whole:
            if m.system == system and m.settings.get("stage") == "4" and m.term not in _BY_RULE:
                once.setdefault(m.term, m)
        more = [(m, people[term]) for term, m in once.items() if term in people and _beyond(m, people[term])]
        more.sort(key=lambda pair: -((pair[0].value or 0.0) - (pair[1].value or 0.0)))
        for m, theirs in more[:_MOST_HARMS]:
            said = f"Of {system}, {_meaning(m, cards)}: {_told(m)}; of people's {_share(theirs.value)}"
            made.append(_verdict(m, said, cards, TOLD))
        if once and not more:
            said = f"Nothing that the rules look for is found more often in captions of {system} than in people's"
            made.append(_verdict(next(iter(once.values())), said, cards, OPEN))
    return made


def _beyond(m: Measurement, theirs: Measurement) -> bool:
    return m.low is not None and theirs.high is not None and m.low > theirs.high


def _verdict(m: Measurement, said: str, cards: Mapping[str, Any], state: str) -> Verdict:
    card = cards.get(m.metric)
    caveats = card.get("caveats") if isinstance(card, Mapping) else None
    caveat = str(caveats[0]) if isinstance(caveats, list | tuple) and caveats else None
    return Verdict(question_of(m.metric).name, f"{said}.", caveat, state, m.id)


def _meaning(m: Measurement, cards: Mapping[str, Any]) -> str:
    card = cards.get(m.metric)
    terms = card.get("terms") if isinstance(card, Mapping) else None
    for term in terms if isinstance(terms, list | tuple) else ():
        if isinstance(term, Mapping) and term.get("name") == m.term:
            return str(term.get("meaning"))
    return m.term


def _told(m: Measurement) -> str:
    """A number with its interval."""
    return f"{_number(m, m.value, signed=True)}, {_interval(m) or 'without an interval'}"


def _interval(m: Measurement) -> str:
    if m.low is None or m.high is None:
        return ""
    return f"95 % interval {_number(m, m.low).removesuffix(_POINTS)} to {_number(m, m.high)}"


def _number(m: Measurement, value: float | None, signed: bool = False) -> str:
    """Shares in percent, and differences of shares in points."""
    if value is None:
        return number(None, m.unit)
    change = m.term == "change"
    sign = "+" if signed and (m.ideal == 0 or change) and value > 0 else ""
    if m.unit == "share" and (change or (m.ideal == 0 and m.better is not None)) and m.term not in _SHARES:
        return f"{sign}{100 * value:.1f}{_POINTS}"
    return _share(value) if m.unit == "share" else f"{sign}{number(value, m.unit)}"


def _share(value: float | None) -> str:
    """
    >>> _share(0.0142), _share(0.5), _share(None)
    ('1.4 %', '50.0 %', '–')
    """
    return number(None, None) if value is None else f"{100 * value:.1f} %"
