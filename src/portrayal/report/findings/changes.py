"""What changed from one audit to another, in sentences: for whom it is better, and for whom worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from portrayal.report.tables.layout import is_too_few, number
from portrayal.results import NOTHING_DIFFERS, Measurement, Results, split_cautions

SIGNIFICANT = 0.05  # of p as corrected over all rows that are tested (Holm)
COUNT = "count"
BETTER, WORSE, DIFFERENT, SAME = "better", "worse", "different", "not significant"


def verdict(m: Measurement) -> str:
    """What to call a difference: better, worse, different where neither end is good in itself, not significant, or
    that nothing differs.

    Nothing where it is undefined or has not been tested.
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


def moved(differences: Results) -> list[Measurement]:
    """The rows, of everybody and of groups, that moved further than chance explains once all are counted (Holm)."""
    return [m for m in differences.measurements if verdict(m) in (BETTER, WORSE, DIFFERENT)]


def sentences(differences: Results) -> list[str]:
    """One for each metric, attribute and system; first those that are better for one group and worse for another.

    >>> rose = Measurement("lic", "lic", system="oscar", attribute="gender", value=2.0, low=1.0, high=3.0, q=0.01,
    ...                    better="lower", unit="percent", settings={"first": 3.9, "second": 5.9, "paired": True})
    >>> sentences(Results((rose,)))
    ['lic by gender, oscar: lic rose from 3.9 to 5.9, which is worse (+2.0, 95 % CI [1.0, 3.0], paired).']
    """
    names = labels(differences.measurements)

    def label(m: Measurement) -> str:
        return names[m.id]

    found: dict[tuple[str, str | None, str | None], list[Measurement]] = {}
    for m in moved(differences):
        found.setdefault((m.metric, m.attribute, m.system), []).append(m)
    shares = {(key, label(m)) for key, rows in found.items() for m in rows if m.unit != COUNT}
    divided: list[str] = []
    others: list[str] = []
    for key, rows in found.items():
        metric, attribute, system = key
        by = f" by {attribute}" if attribute else ""
        # A count that comes with its share says the same again.
        rows = [m for m in rows if m.unit != COUNT or (key, label(m)) not in shares]
        terms = {term: [m for m in rows if label(m) == term] for term in dict.fromkeys(map(label, rows))}
        # Better for one group and worse for another: by one term, or else by terms together.
        split = {term: some for term, some in terms.items() if divides(some)}
        together = terms if not split and divides(rows) else {}
        if either := split or together:
            term = max(either, key=lambda name: _most_worse(either[name]))
            sides = [f"{_summary(some)} by {name}" for name, some in together.items() if _called(some)]
            text = ", ".join(sides) or _summary(split[term])
            text += f": {_told(sorted(terms[term], key=_worst_first), names)}"
        else:
            term = label(min(rows, key=lambda m: (m.group is not None, verdict(m) == DIFFERENT)))
            text = _told(sorted(terms[term], key=lambda m: (m.group is not None, -_size(m))), names)
        left = {name: _called(some) for name, some in terms.items() if name != term}
        more = [f"{name}{called}" for name, called in sorted(left.items(), key=lambda entry: not entry[1])]
        also = f"; also {', '.join(more)}" if more else ""
        caution = " (See the cautions below its table.)" if any(m.caution for m in rows) else ""
        (divided if either else others).append(f"{metric}{by}, {system}: {text}{also}.{caution}")
    return [*divided, *others]


def divides(rows: Sequence[Measurement]) -> bool:
    """Whether a group is worse off while another, or everybody together, is better off."""
    worse = any(verdict(m) == WORSE and m.group is not None for m in rows)
    return worse and any(verdict(m) == BETTER for m in rows)


def counts(differences: Results) -> tuple[int, int, int]:
    """How many rows changed, how many did not, or not significantly, and how many cannot be told."""
    named = [verdict(m) for m in differences.measurements]
    same, open_ = named.count(SAME) + named.count(NOTHING_DIFFERS), named.count("")
    return len(named) - same - open_, same, open_


def cautions(rows: Sequence[Measurement]) -> list[str]:
    """Each caution once, after the terms that it holds for."""
    known = [m for m in rows if m.value is not None]
    return [
        f"Caution ({about}): {text}" for text, about in _by_text(known, lambda m: split_cautions(m.caution))
    ]


def notes(rows: Sequence[Measurement]) -> list[str]:
    """Why rows have no value or no test, each reason once, before the terms that it holds for."""

    def told(m: Measurement) -> list[str]:
        text = (m.reason or "").removeprefix(NOTHING_DIFFERS).removeprefix("; ")  # the table says that
        return [("† " if is_too_few(m) else "") + text[0].upper() + text[1:]] if text else []

    return [f"{text} ({about})." for text, about in _by_text(rows, told)]


def _by_text(
    rows: Sequence[Measurement], texts_of: Callable[[Measurement], Sequence[str]]
) -> list[tuple[str, str]]:
    """Each text once, and which rows it holds for; the systems unless it holds for the same rows of all."""
    names = labels(rows)
    concerned: dict[str, set[str]] = {}
    for m in rows:
        for text in texts_of(m):
            concerned.setdefault(text, set()).add(m.id)
    everybody = dict.fromkeys(m.system for m in rows)
    made = []
    for text, ids in concerned.items():
        whose: dict[str, list[str]] = {}
        for system in everybody:
            own = [m for m in rows if m.system == system]
            if some := [m for m in own if m.id in ids]:
                whose.setdefault(_named(some, own, names), []).append(str(system))
        if [len(names) for names in whose.values()] == [len(everybody)]:
            made.append((text, next(iter(whose))))
        else:
            made.append((text, "; ".join(f"{terms} of {', '.join(names)}" for terms, names in whose.items())))
    return made


def _named(some: Sequence[Measurement], rows: Sequence[Measurement], names: Mapping[str, str]) -> str:
    """Some of a system's rows in few words: terms alone where all rows of a term are among them."""
    if len(some) == len(rows) and len({names[m.id] for m in rows}) > 1:
        return "all rows"
    terms: dict[str, dict[str, None]] = {}
    for m in some:
        terms.setdefault(names[m.id], {})[m.group or "all"] = None
    alike: dict[str, list[str]] = {}
    for term, groups in terms.items():
        whole = groups.keys() == {m.group or "all" for m in rows if names[m.id] == term}
        alike.setdefault("" if whole else f" for {' and '.join(groups)}", []).append(term)
    return "; ".join(f"{', '.join(names)}{whom}" for whom, names in alike.items())


def _most_worse(rows: Sequence[Measurement]) -> float:
    return max((_size(m) for m in rows if verdict(m) == WORSE), default=-1.0)


def _worst_first(m: Measurement) -> tuple[int, bool, float]:
    return (WORSE, BETTER, DIFFERENT).index(verdict(m)), m.group is None, -_size(m)


def _called(rows: Sequence[Measurement]) -> str:
    """Of a term that is named in passing: for whom it is better or worse, and nothing where it merely differs."""
    return f" ({_summary(rows)})" if any(verdict(m) != DIFFERENT for m in rows) else ""


def _summary(rows: Sequence[Measurement]) -> str:
    """Who is worse off and who is better off by the rows of one term: "worse for male, better for female"."""
    parts = []
    for word in (WORSE, BETTER, DIFFERENT):
        whom = [m.group for m in rows if verdict(m) == word and m.group is not None]
        overall = any(verdict(m) == word and m.group is None for m in rows)
        if whom:
            parts.append(f"{word} for {' and '.join(whom)}" + (" and over all groups" if overall else ""))
        elif overall:
            parts.append(f"{word} over all groups" if any(m.group for m in rows) else word)
    return ", ".join(parts)


def _told(rows: Sequence[Measurement], names: Mapping[str, str]) -> str:
    """The rows of one term in full, one after the other."""
    parts = []
    for m in rows:
        way = "rose" if m.value is not None and m.value > 0 else "fell"
        first, second = (number(m.settings.get(name), m.unit) for name in ("first", "second"))
        called = f", which is {verdict(m)}" if verdict(m) in (BETTER, WORSE) else ""
        paired = "paired" if m.settings.get("paired") else "not paired"
        whose = f" for {m.group}" if m.group else " over all groups" if len(rows) > 1 else ""
        parts.append(
            f"{names[m.id]}{whose} {way} from {first} to {second}{called} ({difference(m)}, {paired})"
        )
    return "; ".join(parts)


def difference(m: Measurement) -> str:
    """A difference with its sign and interval."""
    if m.value is None:
        return number(None, m.unit)
    value = f"{'+' if m.value > 0 else ''}{number(m.value, m.unit)}"
    if m.low is None or m.high is None:
        return value
    return f"{value}, 95 % CI [{number(m.low, m.unit)}, {number(m.high, m.unit)}]"


_COMPARED = (
    "comparison",
    "first",
    "second",
    "paired",
    "detectable",
    "test",
)  # what a comparison adds to settings


def labels(rows: Sequence[Measurement]) -> dict[str, str]:
    """By id, the term, with the settings that tell rows of one term apart.

    >>> a, b = (Measurement("lic", "lic", value=1.0, settings={"folds": 10, "split": split}) for split in ("x", "y"))
    >>> labels([a])[a.id], labels([a, b])[b.id]
    ('lic', 'lic split y')
    """
    terms: dict[tuple[str, str], list[Measurement]] = {}
    for m in rows:
        terms.setdefault((m.metric, m.term), []).append(m)
    named = {}
    for (_, term), same in terms.items():
        apart: list[str] = []
        for name in dict.fromkeys(name for m in same for name in m.settings if name not in _COMPARED):
            if _count(same, [*apart, name]) > _count(same, apart):
                apart.append(name)
        for m in same:
            named[m.id] = " ".join([term, *(f"{name} {m.settings.get(name)}" for name in apart)])
    return named


def _count(rows: Sequence[Measurement], names: Sequence[str]) -> int:
    """How many rows these settings tell apart."""
    about = (
        (m.system, m.attribute, m.group, m.unit, *(str(m.settings.get(name)) for name in names)) for m in rows
    )
    return len(set(about))


def _size(m: Measurement) -> float:
    """How far it moved in standard errors, so that terms of any unit can be ranked."""
    return abs(m.value or 0.0) / m.se_data if m.se_data else 0.0
