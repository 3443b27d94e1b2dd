"""An attribute as a user names it, found among the attributes of a study."""

from __future__ import annotations

from collections.abc import Iterable

from portrayal.errors import PortrayalError
from portrayal.lexicon import canonical_name, name_key
from portrayal.study import COMBINED


def resolve_attribute(attribute: str, known: Iterable[str]) -> str:
    """The study's name for an attribute: the same one, else in another case, else one that means the same.

    Attributes that are combined are resolved one by one. A name that none matches stays as it is, so that whoever
    needs its labels can say so.

    >>> resolve_attribute("gender+Age", ["Sex", "age"]), resolve_attribute("hair", ["Sex"])
    ('Sex+age', 'hair')
    """
    names = tuple(known)
    if attribute in names:
        return attribute
    return COMBINED.join(_one(part, names) for part in attribute.split(COMBINED))


def _one(attribute: str, names: tuple[str, ...]) -> str:
    if attribute in names:
        return attribute
    for key in (name_key, lambda name: name_key(canonical_name(name))):
        alike = [name for name in names if key(name) == key(attribute)]
        if len(alike) > 1:
            raise PortrayalError(
                f"The attribute '{attribute}' can be {' or '.join(map(repr, alike))} of this study; name one of them."
            )
        if alike:
            return alike[0]
    return attribute
