"""Which lexicon a study's attributes use, what that means, and what their labels mean by its aliases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon, find_lexicon, load_lexicon, name_key
from portrayal.metrics.shared.caption_language import cautions, unread
from portrayal.metrics.shared.mentions import lexicon_names, refuse_one_group_twice
from portrayal.study import COMBINED, Study

EXAMPLES = 5  # words of a group that are shown


def aliases(attribute: str, values: Iterable[str]) -> dict[str, str]:
    """The groups that values of an attribute mean by its lexicon; what it does not know is left out.

    >>> aliases("Sex", ["M", "female", "0"])
    {'M': 'male', 'female': 'female'}
    """
    lexicon = find_lexicon(attribute)
    known = {} if lexicon is None else lexicon.names_of_groups
    return {value: known[name_key(value)] for value in values if name_key(value) in known}


def refuse_groups_alike(study: Study, attribute: str) -> None:
    """Two spellings of one group (M and male) are no two groups, whatever is measured of them.

    Words of one group, such as man and boy, may be: nobody says that they are meant alike.
    """
    for name in attribute.split(COMBINED):
        if name in study.attribute_names:
            lexicon = find_lexicon(name)
            meant = {group: _spelled(group, lexicon) for group in study.groups(name)}
            refuse_one_group_twice(meant, name)


def _spelled(group: str, lexicon: Lexicon | None) -> str:
    key = name_key(group)
    named = None if lexicon is None else lexicon.names_of_groups.get(key)
    if lexicon is None or named is None or (key != name_key(named) and key in lexicon.groups[named]):
        return key
    return named


def words_of_groups(
    study: Study, attribute: str, lexicon: str | Lexicon | None = None
) -> dict[str, list[str]]:
    """For each group that a lexicon has words for, the first few: what a reader takes the group's name to mean."""
    words = find_lexicon(attribute) if lexicon is None else load_lexicon(lexicon)
    if words is None:
        return {}
    try:
        names = lexicon_names(study.groups(attribute), words, attribute)
    except Undefined:
        return {}
    return {group: list(words.groups[name][:EXAMPLES]) for group, name in names.items() if name is not None}


def lexicon_remarks(study: Study, given: Mapping[str, str | Lexicon | None] | None = None) -> list[str]:
    """For each attribute which lexicon is used, or that none is; and sources that the lists cannot read.

    `given` has lexicons by attribute, of those that do not use their own.
    """
    remarks = [_remark(study, attribute, (given or {}).get(attribute)) for attribute in study.attribute_names]
    readings = unread(study, study.sources, None) | cautions(study, study.sources, None)
    return [*remarks, *readings.values()]


def _remark(study: Study, attribute: str, given: str | Lexicon | None) -> str:
    lexicon = find_lexicon(attribute) if given is None else load_lexicon(given)
    if lexicon is None:
        return (
            f"{attribute}: no lexicon is used. Metrics that need words for its groups leave it out; give them a list "
            "with --lexicon FILE."
        )
    words = f"{attribute}: the lexicon '{lexicon.name}' ({lexicon.language}) is used"
    try:
        names = lexicon_names(study.groups(attribute), lexicon, attribute)
    except Undefined as reason:
        return f"{words} to hide words, and by no metric that compares captions with labels. {reason}"
    unnamed = [group for group, name in names.items() if name is None]
    missing = f" It has no words for {', '.join(map(repr, unnamed))}." if unnamed else ""
    return f"{words}.{missing}{_visible(lexicon)}"


def _visible(lexicon: Lexicon) -> str:
    return "" if lexicon.hide else " As published, LIC does not hide its words (--mask hides them)."
