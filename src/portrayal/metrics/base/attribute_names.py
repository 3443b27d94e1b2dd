"""Resolution of an attribute name typed by a user to the name that the study has."""

from __future__ import annotations

from collections.abc import Iterable

from portrayal.errors import PortrayalError
from portrayal.lexicon import canonical_name, name_key
from portrayal.study import COMBINED


def resolve_attribute(attribute: str, known_attributes: Iterable[str]) -> str:
    """The study's name for an attribute: an exact match, else a match without case, else a synonym.

    The parts of a combined attribute are resolved one by one. A name without a match is returned unchanged, so that
    the code that needs its labels can report it.

    >>> resolve_attribute("gender+Age", ["Sex", "age"]), resolve_attribute("hair", ["Sex"])
    ('Sex+age', 'hair')
    """
    names = tuple(known_attributes)
    if attribute in names:
        return attribute
    return COMBINED.join(_resolve_part(part, names) for part in attribute.split(COMBINED))


def _resolve_part(attribute: str, names: tuple[str, ...]) -> str:
    if attribute in names:
        return attribute
    for key in (name_key, lambda name: name_key(canonical_name(name))):
        matches = [name for name in names if key(name) == key(attribute)]
        if len(matches) > 1:
            raise PortrayalError(
                f"The attribute '{attribute}' can be {' or '.join(map(repr, matches))} of this study; name one of them."
            )
        if matches:
            return matches[0]
    return attribute
