"""Word lists as data: the words that name each group, their source, and their counterparts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from portrayal.documents import DocumentError, parse_toml
from portrayal.errors import InputError, PortrayalError, Problem, shown, unknown_name
from portrayal.lexicon.aliases import alias_problems, group_keys, name_key
from portrayal.lexicon.tokens import tokenize

_KEYS = {
    "name", "attribute", "source", "licence", "version", "note",
    "groups", "neutral", "swap", "plain", "stand_in", "mask_also", "before_person", "not_naming", "hide",
    "language", "aliases", "group_aliases",
    "also_naming", "also_naming_as", "as_listed",
}  # fmt: skip
_LISTS = ("neutral", "mask_also", "before_person")
# Part of the digest only where a lexicon uses them, so that the digests of older lists stay the same.
_OPTIONAL_DIGEST_LISTS = ("not_naming",)
_TABLES = ("swap", "plain")
ENGLISH = "en"  # default language of a lexicon
_IDENTITY_LISTS = ("age", "ethnicity", "gender", "nationality", "politics", "religion")  # of `words/identity`
# Version of the mention rules (`non_mentions`, `negation`). It is part of the digest of every list that uses them.
_MENTION_RULES_VERSION = "mentions-2"
NEUTRAL = "neutral"  # name in result rows for words and captions about a person that name no group


@dataclass(frozen=True, eq=False)  # compared by identity: cached values are keyed by it
class Lexicon:
    """The words that name the groups of one attribute.

    Parameters
    ----------
    name : str
        Name of the lexicon.
    attribute : str or None
        Attribute whose groups the words name.
    groups : mapping of str to tuple of str
        Words that name each group. A mask hides them.
    neutral : tuple of str
        Words for people that name no group.
    swap : mapping of str to tuple of str
        Counterparts of a word in other groups.
    plain : mapping of str to tuple of str
        Equivalents of a word that name no group. "" means that the word can be left out. Where "" stands beside another
        word, it is used where the word modifies what follows ("a male player").
    stand_in : mapping of str to str
        The representative word or phrase of a group, or of anybody (`neutral`), for generated sentences. Default: the
        first listed word.
    mask_also : tuple of str
        Words that are masked with the group words but name no group.
    before_person : tuple of str
        Words that name their group only before a word for a person ("a black man", not "a black dog").
    not_naming : tuple of str
        Phrases that contain a listed word and name nobody ("french fries"). A mask still hides the word.
    hide : bool
        False where the studies that the words come from leave them visible when they measure leakage.
    language : str
        Language of the words.
    aliases : tuple of str
        Other names of the attribute (sex).
    group_aliases : mapping of str to tuple of str
        Other names of its groups in label tables (M). Aliases are not searched for in captions, so they are not part of
        the digest.
    also_naming : mapping of str to tuple of str
        Words that name a group but are not masked, so that a published list masks exactly its own words. A file may
        name an identity list instead; `also_naming_as` maps the groups of that list to the lexicon's groups.
    as_listed : bool
        If true, a word names its group wherever it stands, as in published counts. If false, a word names nobody where
        the caption negates it or where it refers to a thing ("no man", "cowboy hat").
    """

    name: str
    attribute: str | None
    groups: Mapping[str, tuple[str, ...]]
    neutral: tuple[str, ...] = ()
    swap: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plain: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stand_in: Mapping[str, str] = field(default_factory=dict)
    mask_also: tuple[str, ...] = ()
    before_person: tuple[str, ...] = ()
    not_naming: tuple[str, ...] = ()
    source: str | None = None
    licence: str | None = None
    version: str | None = None
    note: str | None = None
    hide: bool = True
    language: str = ENGLISH
    aliases: tuple[str, ...] = ()
    group_aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    also_naming: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    as_listed: bool = False

    @property
    def uses_mention_rules(self) -> bool:
        """Whether the mention rules apply. They are English, and published counts (`as_listed`) do not use them."""
        return not self.as_listed and self.language == ENGLISH

    @cached_property
    def naming_words(self) -> dict[str, tuple[str, ...]]:
        """The words that name each group, masked or not."""
        return {
            group: tuple(dict.fromkeys((*words, *self.also_naming.get(group, ()))))
            for group, words in self.groups.items()
        }

    @cached_property
    def digest(self) -> str:
        """Hash of the words, which distinguishes lists of the same name in results."""
        if not self.uses_mention_rules and not self.also_naming:
            return _digest(self._hidden_content)
        rules = _MENTION_RULES_VERSION if self.uses_mention_rules else ""
        also_naming = {group: list(words) for group, words in self.also_naming.items()}
        return _digest(
            [
                *self._hidden_content,
                rules,
                also_naming,
                list(self.before_person),
                {**self.swap},
                {**self.plain},
            ]
        )

    @property
    def _hidden_content(self) -> list[Any]:
        """The digest's input, without the words that name groups and are not masked."""
        hidden = {word for words in self.groups.values() for word in words}
        naming_only = {word for words in self.also_naming.values() for word in words} - hidden
        swap, plain = (
            {word: others for word, others in table.items() if word not in naming_only}
            for table in (self.swap, self.plain)
        )
        lists = {key: [word for word in getattr(self, key) if word not in naming_only] for key in _LISTS}
        return [
            {group: list(listed) for group, listed in self.groups.items()},
            {word: list(others) for word, others in swap.items()},
            *lists.values(),
            *([plain, {**self.stand_in}] if plain or self.stand_in else []),
            *({key: list(getattr(self, key))} for key in _OPTIONAL_DIGEST_LISTS if getattr(self, key)),
        ]

    def word_for(self, group: str) -> str | None:
        """The representative word or phrase of a group, or of anybody (`neutral`); None if the lexicon has none.

        >>> load_lexicon("gender").word_for("female"), load_lexicon("gender").word_for(NEUTRAL)
        ('woman', 'person')
        """
        listed = self.neutral if group == NEUTRAL else self.groups.get(group, ())
        return self.stand_in.get(group) or (listed[0] if listed else None)

    @property
    def label(self) -> str:
        """Label in result settings where the lexicon is used to find mentions."""
        return "@".join(filter(None, (self.name, self.version, self.digest)))

    @cached_property
    def groups_by_name(self) -> Mapping[str, str]:
        """Mapping of each group name and alias (as `name_key`) to its group."""
        return group_keys(self.groups, self.group_aliases)

    def matches_attribute(self, attribute: str) -> bool:
        """Whether the name is the lexicon's attribute or one of its aliases, ignoring case.

        >>> load_lexicon("gender").matches_attribute("Sex")
        True
        """
        own = (self.attribute or self.name, *self.aliases)
        return name_key(attribute) in map(name_key, own)

    @property
    def mask_label(self) -> str:
        """Label in result settings where the lexicon masks words. It does not depend on the mention rules."""
        return "@".join(filter(None, (self.name, self.version, _digest(self._hidden_content))))


def _digest(words: list[Any]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:8]


def load_lexicon(name_or_path: str | Path | Lexicon) -> Lexicon:
    """Load a shipped lexicon by name, or a user's lexicon by path.

    Parameters
    ----------
    name_or_path : str, Path or Lexicon
        Name of a shipped lexicon, path of a TOML file, or a lexicon, which is returned as it is.

    Returns
    -------
    Lexicon
    """
    if isinstance(name_or_path, Lexicon):
        return name_or_path
    shipped = _shipped()
    if str(name_or_path) in shipped:
        return shipped[str(name_or_path)]
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.exists():
        return read_lexicon(path)
    raise unknown_name("lexicon", str(name_or_path), shipped)


def shipped_lexicons() -> list[Lexicon]:
    """All lexicons of the package, ordered by file name."""
    return list(_shipped().values())


def read_lexicon(path: Path) -> Lexicon:
    """Read a lexicon file. One error lists all its problems."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise PortrayalError(f"There is no lexicon file {path}.") from None
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "UTF-8 text", "other bytes")]) from None
    return parse_lexicon(text, str(path))


@cache
def load_identity_list(name: str) -> Lexicon:
    """Load a list of identity words by its file name: gender, age, people."""
    file = resources.files("portrayal.lexicon") / "words" / "identity" / f"{name}.toml"
    return parse_lexicon(file.read_text(encoding="utf-8"), file.name)


@cache
def _shipped() -> dict[str, Lexicon]:
    folder = resources.files("portrayal.lexicon") / "words"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name
    )
    lexicons = [parse_lexicon(file.read_text(encoding="utf-8"), file.name) for file in files]
    return {lexicon.name: lexicon for lexicon in lexicons}


def parse_lexicon(text: str, file: str) -> Lexicon:
    """Parse the text of a lexicon file. `file` is its name in error messages."""
    try:
        data = parse_toml(text)
    except DocumentError as error:
        raise InputError([Problem(file, "TOML", error.found)]) from None
    problems = list(_problems(data, file))
    if problems:
        raise InputError(problems)
    swap, plain = (
        {
            word.lower(): tuple(other.lower() for other in ([others] if isinstance(others, str) else others))
            for word, others in data.get(table, {}).items()
        }
        for table in _TABLES
    )
    return Lexicon(
        name=data["name"],
        attribute=data.get("attribute"),
        groups={group: _lowercase(words) for group, words in data.get("groups", {}).items()},
        swap=swap,
        plain=plain,
        stand_in={group: word.lower() for group, word in data.get("stand_in", {}).items()},
        neutral=_lowercase(data.get("neutral", [])),
        mask_also=_lowercase(data.get("mask_also", [])),
        before_person=_before_person(data),
        not_naming=_lowercase(data.get("not_naming", [])),
        source=data.get("source"),
        licence=data.get("licence"),
        version=None if data.get("version") is None else str(data["version"]),
        note=data.get("note"),
        hide=data.get("hide", True),
        language=data.get("language", ENGLISH).lower(),
        aliases=tuple(data.get("aliases", ())),
        group_aliases={group: tuple(names) for group, names in data.get("group_aliases", {}).items()},
        also_naming=_also_naming(data),
        as_listed=data.get("as_listed", False),
    )


def _also_naming(data: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The `also_naming` words by group, listed in the file or taken from the identity list that it names."""
    also_naming = data.get("also_naming", {})
    if isinstance(also_naming, str):
        group_map = data.get("also_naming_as", {})
        words_by_group: dict[str, list[str]] = {}
        for group, words in load_identity_list(also_naming).groups.items():
            words_by_group.setdefault(group_map.get(group, group), []).extend(words)
        group_of_word = {
            word.strip().lower(): group for group, words in data.get("groups", {}).items() for word in words
        }
        also_naming = {
            group: [word for word in words if group_of_word.get(word, group) == group]
            for group, words in words_by_group.items()
        }
    return {
        group: _lowercase(words) for group, words in also_naming.items() if group in data.get("groups", {})
    }


def _before_person(data: dict[str, Any]) -> tuple[str, ...]:
    """The `before_person` words of the file and of the identity list in `also_naming`."""
    before_person, list_name = data.get("before_person", []), data.get("also_naming")
    if isinstance(list_name, str):
        unconditional = {word for words in data.get("groups", {}).values() for word in words} - set(
            before_person
        )
        before_person = [
            *before_person,
            *(word for word in load_identity_list(list_name).before_person if word not in unconditional),
        ]
    return _lowercase(before_person)


def _lowercase(words: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip().lower() for word in words))


def _problems(data: dict[str, Any], file: str) -> Iterator[Problem]:
    for key in sorted(set(data) - _KEYS):
        yield Problem(file, f"the keys {', '.join(sorted(_KEYS))}", repr(key))
    if not isinstance(data.get("name"), str) or not data["name"].strip():
        yield Problem(file, "a name", shown(data.get("name")))
    for key in ("attribute", "source", "licence", "note"):
        if not isinstance(data.get(key, ""), str):
            yield Problem(file, f"{key} as text", shown(data[key]))
    for key in ("hide", "as_listed"):
        if not isinstance(data.get(key, True), bool):
            yield Problem(file, f"{key} as true or false", shown(data[key]))
    groups = data.get("groups", {})
    if not isinstance(groups, dict):
        yield Problem(file, "a table [groups] with one list of words per group", shown(groups))
        groups = {}
    if NEUTRAL in groups:
        yield Problem(
            file,
            "groups of people",
            f"a group called '{NEUTRAL}', which is the name for words without a group",
        )
    if not groups and not data.get("neutral"):
        yield Problem(file, "a table [groups] with one list of words per group", "none")
    lists = {f"group '{group}'": words for group, words in groups.items()}
    lists |= {key: data[key] for key in (*_LISTS, *_OPTIONAL_DIGEST_LISTS) if key in data}
    yield from _list_problems(lists, file)
    also_naming = data.get("also_naming", {})
    if isinstance(also_naming, str):
        if also_naming not in _IDENTITY_LISTS:
            yield Problem(
                file, f"also_naming as one of {', '.join(_IDENTITY_LISTS)}, or a table", repr(also_naming)
            )
        also_naming = {}
    if not isinstance(also_naming, dict) or not set(also_naming) <= set(groups):
        yield Problem(
            file, f"a table [also_naming] for {', '.join(groups) or 'the groups'}", shown(also_naming)
        )
        also_naming = {}
    lists = {f"also_naming for '{group}'": words for group, words in also_naming.items()}
    yield from _list_problems(lists, file)
    yield from _renaming_problems(data, groups, file)
    yield from _shared_words((*groups.items(), *also_naming.items()), data.get("not_naming", []), file)
    for table in _TABLES:
        yield from _table_problems(data.get(table, {}), table, file)
    yield from alias_problems(data, groups, file)
    stand_in = data.get("stand_in", {})
    if not isinstance(stand_in, dict):
        yield Problem(file, "a table [stand_in] of group = word", shown(stand_in))
        return
    for group, word in stand_in.items():
        if group not in groups and group != NEUTRAL:
            yield Problem(file, f"[stand_in] for {', '.join([*groups, NEUTRAL])}", repr(group))
        if not isinstance(word, str) or not tokenize(word):
            yield Problem(file, f"a word that stands for '{group}'", shown(word))


def _renaming_problems(data: dict[str, Any], groups: dict[str, Any], file: str) -> Iterator[Problem]:
    """Problems with `also_naming_as`: it maps groups of the identity list, and at least one group is shared."""
    group_map, list_name = data.get("also_naming_as", {}), data.get("also_naming")
    valid = isinstance(group_map, dict) and all(isinstance(group, str) for group in group_map.values())
    if not valid or not set(group_map.values()) <= set(groups):
        known = ", ".join(groups) or "the groups"
        yield Problem(file, f"a table [also_naming_as] of a listed group = one of {known}", shown(group_map))
        return
    if not isinstance(list_name, str):
        if group_map:
            yield Problem(file, "also_naming as the name of a list beside [also_naming_as]", shown(list_name))
        return
    if list_name not in _IDENTITY_LISTS:
        return
    list_groups = load_identity_list(list_name).groups
    for group in group_map:
        if group not in list_groups:
            yield Problem(file, f"[also_naming_as] for {', '.join(list_groups)}", repr(group))
    if groups and not {group_map.get(group, group) for group in list_groups} & set(groups):
        yield Problem(
            file,
            f"[also_naming_as] that says which groups the words of {', '.join(list_groups)} name",
            f"the groups {', '.join(groups)}",
        )


def _list_problems(lists: dict[str, Any], file: str) -> Iterator[Problem]:
    for what, words in lists.items():
        if not isinstance(words, list) or not words:
            yield Problem(file, f"{what} as a list of words", shown(words))
            continue
        for word in words:
            if not isinstance(word, str) or not tokenize(word):
                yield Problem(file, f"words in {what}", shown(word))


def _table_problems(table: Any, name: str, file: str) -> Iterator[Problem]:
    """Problems with a table of words and their counterparts."""
    if not isinstance(table, dict):
        yield Problem(file, f"a table [{name}] of word = counterpart", shown(table))
        return
    for word, others in table.items():
        counterparts = [others] if isinstance(others, str) else others
        valid = (
            isinstance(counterparts, list)
            and counterparts
            and all(isinstance(other, str) for other in counterparts)
        )
        if not valid or (name == "swap" and not all(other.strip() for other in counterparts)):
            yield Problem(file, f"the counterpart of '{word}' as a word or a list of words", shown(others))


def _shared_words(groups: Iterable[tuple[str, Any]], not_naming: Any, file: str) -> Iterator[Problem]:
    """Words listed for two groups, or for a group and in `not_naming`."""
    owner: dict[str, str] = {}
    for group, words in (*groups, ("not_naming", not_naming)):
        for word in words if isinstance(words, list) else ():
            if isinstance(word, str) and owner.setdefault(word.strip().lower(), group) != group:
                yield Problem(
                    file,
                    "each word in one group",
                    f"{word!r} in '{owner[word.strip().lower()]}' and '{group}'",
                )
