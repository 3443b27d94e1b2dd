"""Which lexicon each attribute of a study uses, and which groups its labels mean by the lexicon's aliases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon, find_lexicon, load_lexicon, name_key
from portrayal.metrics.shared.caption_language import language_cautions, unreadable_sources
from portrayal.metrics.shared.caption_mentions import check_groups_differ, lexicon_names
from portrayal.study import COMBINED, Study

# Number of words of a group that are shown.
EXAMPLE_WORDS = 5


def aliases(attribute: str, values: Iterable[str]) -> dict[str, str]:
    """The lexicon's group for each value of an attribute; values that it does not know are left out.

    >>> aliases("Sex", ["M", "female", "0"])
    {'M': 'male', 'female': 'female'}
    """
    lexicon = find_lexicon(attribute)
    known = {} if lexicon is None else lexicon.groups_by_name
    return {value: known[name_key(value)] for value in values if name_key(value) in known}


def check_distinct_groups(study: Study, attribute: str) -> None:
    """Raise an error where two labels are spellings of one group (M and male).

    Words of one group, such as man and boy, may be labels of different groups.
    """
    for name in attribute.split(COMBINED):
        if name in study.attribute_names:
            lexicon = find_lexicon(name)
            identities = {group: _group_identity(group, lexicon) for group in study.groups(name)}
            check_groups_differ(identities, name)


def _group_identity(group: str, lexicon: Lexicon | None) -> str:
    key = name_key(group)
    lexicon_name = None if lexicon is None else lexicon.groups_by_name.get(key)
    if (
        lexicon is None
        or lexicon_name is None
        or (key != name_key(lexicon_name) and key in lexicon.groups[lexicon_name])
    ):
        return key
    return lexicon_name


def group_words(study: Study, attribute: str, lexicon: str | Lexicon | None = None) -> dict[str, list[str]]:
    """The first few words of each group that the lexicon has words for, as examples of what the group means."""
    words = find_lexicon(attribute) if lexicon is None else load_lexicon(lexicon)
    if words is None:
        return {}
    try:
        names = lexicon_names(study.groups(attribute), words, attribute)
    except Undefined:
        return {}
    return {
        group: list(words.groups[name][:EXAMPLE_WORDS]) for group, name in names.items() if name is not None
    }


def lexicon_remarks(study: Study, lexicons: Mapping[str, str | Lexicon | None] | None = None) -> list[str]:
    """Sentences on the lexicon of each attribute, and on sources that the word lists cannot read.

    `lexicons` has the lexicons of attributes that do not use their default.
    """
    remarks = [
        _attribute_remark(study, attribute, (lexicons or {}).get(attribute))
        for attribute in study.attribute_names
    ]
    language_remarks = unreadable_sources(study, study.sources, None) | language_cautions(
        study, study.sources, None
    )
    return [*remarks, *language_remarks.values()]


def _attribute_remark(study: Study, attribute: str, requested: str | Lexicon | None) -> str:
    lexicon = find_lexicon(attribute) if requested is None else load_lexicon(requested)
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
    return f"{words}.{missing}{_masking_remark(lexicon)}"


def _masking_remark(lexicon: Lexicon) -> str:
    return "" if lexicon.hide else " As published, LIC does not hide its words (--mask hides them)."
