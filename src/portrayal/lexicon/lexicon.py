"""Word lists as data: which words name which group, where they come from, and how they swap."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from portrayal.documents import Unreadable, parse_toml
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
_LATER_LISTS = ("not_naming",)  # in the digest only where they are used, so that older lists keep theirs
_TABLES = ("swap", "plain")
ENGLISH = "en"  # the language of a lexicon that names none
_SOCIAL_LISTS = ("age", "ethnicity", "gender", "nationality", "politics", "religion")  # of `words/identity`
# How mentions are read (`nobody`, `absence`). It changes when the rules do, and the digest of every list with it.
_RULES = "mentions-2"
NEUTRAL = "neutral"  # what rows call words and captions that are about a person, and name no group


@dataclass(frozen=True, eq=False)  # compared by identity: what is derived from it is cached by it
class Lexicon:
    """The words that name the groups of one attribute.

    `neutral` words are for people without naming a group. `mask_also` words are hidden with the group
    words but name no group. `before_person` words name their group only in front of a word for a person
    ("a black man", not "a black dog"). `not_naming` phrases hold a listed word and name nobody ("french fries");
    a mask hides the word all the same. `swap` pairs a word with its counterparts in other groups, `plain` with a word
    that names no group ("" where it can be left out; beside another word, where it describes what follows: "a male
    player"); `stand_in` is the one word or phrase for a group, or for anybody (`neutral`), where a sentence needs one:
    by default the first that is listed. `hide` is false where the studies that the words come from leave them visible
    when they ask what captions give away. `language` is the language of the words; `aliases` are other names of the
    attribute (sex), `group_aliases` other names of its groups in tables of labels (M). No alias is looked for in
    captions, so aliases are no part of the digest.

    To hide words and to name groups are two things. `also_naming` words name a group and are not hidden, so that a
    published list hides what it hid; they may be those of a list of social groups (`also_naming_as` maps its groups to
    the lexicon's). A word of any list names nobody where the caption says that nobody is there, or speaks of a thing
    ("no man", "cowboy hat"); with `as_listed` it names its group wherever it stands, as published counts do.
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
    def reads_english_mentions(self) -> bool:
        """Whether the rules for words that name nobody apply: they are English, and published counts know none."""
        return not self.as_listed and self.language == ENGLISH

    @cached_property
    def naming(self) -> dict[str, tuple[str, ...]]:
        """The words that name each group, whether or not a mask hides them."""
        return {
            group: tuple(dict.fromkeys((*words, *self.also_naming.get(group, ()))))
            for group, words in self.groups.items()
        }

    @cached_property
    def digest(self) -> str:
        """Changes when the words do, so that results tell one list from another of the same name."""
        if not self.reads_english_mentions and not self.also_naming:
            return _digest(self._listed)
        rules = _RULES if self.reads_english_mentions else ""
        more = {group: list(words) for group, words in self.also_naming.items()}
        return _digest([*self._listed, rules, more, list(self.before_person), {**self.swap}, {**self.plain}])

    @property
    def _listed(self) -> list[Any]:
        """What is listed here, without the words that name groups and are not hidden."""
        hidden = {word for words in self.groups.values() for word in words}
        also = {word for words in self.also_naming.values() for word in words} - hidden
        swap, plain = (
            {word: others for word, others in table.items() if word not in also}
            for table in (self.swap, self.plain)
        )
        lists = {key: [word for word in getattr(self, key) if word not in also] for key in _LISTS}
        return [
            {group: list(listed) for group, listed in self.groups.items()},
            {word: list(others) for word, others in swap.items()},
            *lists.values(),
            *([plain, {**self.stand_in}] if plain or self.stand_in else []),
            *({key: list(getattr(self, key))} for key in _LATER_LISTS if getattr(self, key)),
        ]

    def standing_for(self, group: str) -> str | None:
        """The one word or phrase for a group, or for anybody (`neutral`); None where the lexicon has none.

        >>> load_lexicon("gender").standing_for("female"), load_lexicon("gender").standing_for(NEUTRAL)
        ('woman', 'person')
        """
        listed = self.neutral if group == NEUTRAL else self.groups.get(group, ())
        return self.stand_in.get(group) or (listed[0] if listed else None)

    @property
    def label(self) -> str:
        """How settings name it, where it names groups."""
        return "@".join(filter(None, (self.name, self.version, self.digest)))

    @cached_property
    def names_of_groups(self) -> Mapping[str, str]:
        """The key of every name of a group, alias or not (see `name_key`), with the group."""
        return group_keys(self.groups, self.group_aliases)

    def is_about(self, attribute: str) -> bool:
        """Whether an attribute of this name is the lexicon's, whatever the case and by any of its names.

        >>> load_lexicon("gender").is_about("Sex")
        True
        """
        own = (self.attribute or self.name, *self.aliases)
        return name_key(attribute) in map(name_key, own)

    @property
    def mask_label(self) -> str:
        """How settings name it, where it hides words: how mentions are read is no part of that."""
        return "@".join(filter(None, (self.name, self.version, _digest(self._listed))))


def _digest(words: list[Any]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:8]


def load_lexicon(name_or_path: str | Path | Lexicon) -> Lexicon:
    """A shipped lexicon by name, or one of the user's by path."""
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
    return list(_shipped().values())


def read_lexicon(path: Path) -> Lexicon:
    """Read a lexicon file; what is wrong with it is told all at once."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise PortrayalError(f"There is no lexicon file {path}.") from None
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "UTF-8 text", "other bytes")]) from None
    return parse_lexicon(text, str(path))


@cache
def load_listed(name: str) -> Lexicon:
    """One of the lists of words for social groups, by its file's name: gender, age, people."""
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
    """A lexicon from the text of its file; the name of the file stands in what is wrong with it."""
    try:
        data = parse_toml(text)
    except Unreadable as error:
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
        groups={group: _lower(words) for group, words in data.get("groups", {}).items()},
        swap=swap,
        plain=plain,
        stand_in={group: word.lower() for group, word in data.get("stand_in", {}).items()},
        neutral=_lower(data.get("neutral", [])),
        mask_also=_lower(data.get("mask_also", [])),
        before_person=_before_person(data),
        not_naming=_lower(data.get("not_naming", [])),
        source=data.get("source"),
        licence=data.get("licence"),
        version=None if data.get("version") is None else str(data["version"]),
        note=data.get("note"),
        hide=data.get("hide", True),
        language=data.get("language", ENGLISH).lower(),
        aliases=tuple(data.get("aliases", ())),
        group_aliases={group: tuple(names) for group, names in data.get("group_aliases", {}).items()},
        also_naming=_also(data),
        as_listed=data.get("as_listed", False),
    )


def _also(data: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """More words for the groups, listed here or in the list of social groups that is named."""
    more = data.get("also_naming", {})
    if isinstance(more, str):
        own_group = data.get("also_naming_as", {})
        listed: dict[str, list[str]] = {}
        for group, words in load_listed(more).groups.items():
            listed.setdefault(own_group.get(group, group), []).extend(words)
        own = {
            word.strip().lower(): group for group, words in data.get("groups", {}).items() for word in words
        }
        more = {
            group: [word for word in words if own.get(word, group) == group]
            for group, words in listed.items()
        }
    return {group: _lower(words) for group, words in more.items() if group in data.get("groups", {})}


def _before_person(data: dict[str, Any]) -> tuple[str, ...]:
    """Words that name their group only before a person: those listed here, and those of the list in `also_naming`."""
    own, more = data.get("before_person", []), data.get("also_naming")
    if isinstance(more, str):
        anywhere = {word for words in data.get("groups", {}).values() for word in words} - set(own)
        own = [*own, *(word for word in load_listed(more).before_person if word not in anywhere)]
    return _lower(own)


def _lower(words: list[str]) -> tuple[str, ...]:
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
            file, "groups of people", f"a group called '{NEUTRAL}', which words that name no group go by"
        )
    if not groups and not data.get("neutral"):
        yield Problem(file, "a table [groups] with one list of words per group", "none")
    lists = {f"group '{group}'": words for group, words in groups.items()}
    lists |= {key: data[key] for key in (*_LISTS, *_LATER_LISTS) if key in data}
    yield from _list_problems(lists, file)
    more = data.get("also_naming", {})
    if isinstance(more, str):
        if more not in _SOCIAL_LISTS:
            yield Problem(file, f"also_naming as one of {', '.join(_SOCIAL_LISTS)}, or a table", repr(more))
        more = {}
    if not isinstance(more, dict) or not set(more) <= set(groups):
        yield Problem(file, f"a table [also_naming] for {', '.join(groups) or 'the groups'}", shown(more))
        more = {}
    lists = {f"also_naming for '{group}'": words for group, words in more.items()}
    yield from _list_problems(lists, file)
    yield from _renaming_problems(data, groups, file)
    yield from _shared_words((*groups.items(), *more.items()), data.get("not_naming", []), file)
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
    """Of the list of social groups in `also_naming`: each of its groups that is renamed is there, and one is shared."""
    renamed, more = data.get("also_naming_as", {}), data.get("also_naming")
    good = isinstance(renamed, dict) and all(isinstance(group, str) for group in renamed.values())
    if not good or not set(renamed.values()) <= set(groups):
        known = ", ".join(groups) or "the groups"
        yield Problem(file, f"a table [also_naming_as] of a listed group = one of {known}", shown(renamed))
        return
    if not isinstance(more, str):
        if renamed:
            yield Problem(file, "also_naming as the name of a list beside [also_naming_as]", shown(more))
        return
    if more not in _SOCIAL_LISTS:
        return
    listed = load_listed(more).groups
    for group in renamed:
        if group not in listed:
            yield Problem(file, f"[also_naming_as] for {', '.join(listed)}", repr(group))
    if groups and not {renamed.get(group, group) for group in listed} & set(groups):
        yield Problem(
            file,
            f"[also_naming_as] that says which groups the words of {', '.join(listed)} name",
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
    """Of a table of words and what may stand in their place."""
    if not isinstance(table, dict):
        yield Problem(file, f"a table [{name}] of word = counterpart", shown(table))
        return
    for word, others in table.items():
        several = [others] if isinstance(others, str) else others
        good = isinstance(several, list) and several and all(isinstance(other, str) for other in several)
        if not good or (name == "swap" and not all(other.strip() for other in several)):
            yield Problem(file, f"the counterpart of '{word}' as a word or a list of words", shown(others))


def _shared_words(groups: Iterable[tuple[str, Any]], not_naming: Any, file: str) -> Iterator[Problem]:
    """A word that names two groups names neither; nor does one that names nobody name a group."""
    owner: dict[str, str] = {}
    for group, words in (*groups, ("not_naming", not_naming)):
        for word in words if isinstance(words, list) else ():
            if isinstance(word, str) and owner.setdefault(word.strip().lower(), group) != group:
                yield Problem(
                    file,
                    "each word in one group",
                    f"{word!r} in '{owner[word.strip().lower()]}' and '{group}'",
                )
