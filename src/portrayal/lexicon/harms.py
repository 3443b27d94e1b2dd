"""Word lists for harms that captions can do: words that demean, that guess what is not seen, that frame a picture.

Each list is a file of its own, and each can be exchanged for one of the user's. What settings call it (`label`)
changes when its words do.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from portrayal.errors import InputError, PortrayalError, Problem, shown
from portrayal.lexicon.objects import plural
from portrayal.lexicon.people import is_person
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize

if TYPE_CHECKING:
    from portrayal.lexicon.wordnet.grammar import Word

ANY = "*"  # any attribute, any group
_ABOUT = {"name", "version", "source", "licence", "note"}
_PARTS = ("noun", "verb", "adjective", "adverb")
_PLURAL, _ADJECTIVE = "plural", "adjective"
_Made = TypeVar("_Made")


# The grammar by which an adjective is told from a noun: what may stand before it, and what shows that no noun follows.
_ARTICLES = frozenset(("a", "an"))
_COUNTING = frozenset(
    "one two three four five six seven eight nine ten some several many few both these those this that another each "
    "every any".split()
)
_OF_MANY = frozenset("group groups crowd crowds bunch couple pair lot lots number handful".split())
_ALSO = frozenset(
    "young younger old older middle-aged teenage adult little tall short thin male female poor lone single african "
    "american african-american european indian mexican latino latina".split()
)
_STEPS_BACK = 2  # how many words such as "young" may stand between the article and the adjective
_END = frozenset((".", "!", "?", ";", ":", ")", '"', ".."))
_AND = frozenset(("and", "or", "&"))
_SOMEWHERE = frozenset("in on at near by behind beside inside outside under from next".split())
_BEHIND = _SOMEWHERE | frozenset(
    "with across along against among around over through toward towards during into onto up down within without "
    "before after beneath between to for while as".split()
)
_WHO = frozenset("who whose whom is are was were has have had".split())
# What animals do not do: "a black laying on a car" is a cat, with the word left out.
_ONLY_PEOPLE = frozenset(
    "cooking dancing dressed holding jogging making performing pointing posing reading selling singing smiling smoking "
    "talking using waving wearing working wears holds talks smiles".split()
)
_DOING = _ONLY_PEOPLE | frozenset(
    """
    being carrying celebrating climbing crossing crouching doing drinking eating enjoying exercising gathered getting
    giving having jumping kneeling laughing laying leaning looking lying playing pulling pushing reaching relaxing
    resting riding running seated sitting sleeping squatting standing staring taking trying waiting walking watching
    carries checks crosses dances does drinks eats enjoys gets leans lies lives looks makes performs plays poses pushes
    reaches reads rests rides runs sells shows sings sits sleeps stands takes teaches uses waits walks watches works
    """.split()
)
_MANY_DO = frozenset("dance eat gather live protest sit sleep stand wait walk work".split())
_GO_ON = (
    _BEHIND
    | _ARTICLES
    | _COUNTING
    | frozenset("the his her its their and of out alone together there".split())
)
_BETWEEN = frozenset((",", "and", "looking", "very", "-"))  # an adjective and what it describes
_IS = frozenset("is are was were be being been looks look looking acting called".split())
# Before a colour as a noun there may be a person only where a person could be named ("a photo of a black in a suit").
_NAMING = frozenset((",", ".", ";", ":", "of", "by", "and", "while", "as", "where", "behind", "beside", "to"))


class Listing(NamedTuple):
    """How surely a word demeans: by all senses it has, by its most common one, by any of them."""

    lower: bool
    best: bool
    upper: bool


@dataclass(frozen=True, eq=False)
class Demeaning:
    """Words that demean people, by WordNet's senses. `too_common` ones are not listed: captions mean other things."""

    listings: Mapping[tuple[str, str], Listing]  # by lemma and part of speech
    too_common: frozenset[str]
    label: str

    def senses(self, lemma: str, part: str) -> Listing | None:
        """How a word is listed as a part of speech; None where it is not.

        >>> words = demeaning_words()
        >>> words.senses("idiot", "noun"), words.senses("idiot", "verb")
        (Listing(lower=True, best=True, upper=True), None)
        >>> words.senses("dumb", "adjective"), words.senses("bitch", "noun")
        (Listing(lower=False, best=True, upper=True), Listing(lower=False, best=False, upper=True))
        """
        return self.listings.get((lemma, part))

    def find(self, tokens: Sequence[str], words: Iterable[Word]) -> list[tuple[str, Listing]]:
        """The listed words of a caption, given its tokens and its content words.

        Words of several tokens come first, whether or not WordNet joins them. A participle that is listed as an
        adjective counts where grammar takes it for a verb: who is called retarded is not being held up.

        An adjective counts when it is said of a person: in front of a word for one, or after it and a form of be. A
        noun does not count in front of another noun that is no person: a redneck shot glass demeans nobody.

        >>> from portrayal.lexicon.wordnet.grammar import content_words
        >>> for caption in ("a crippled man called a son of a bitch", "a fat cat", "the man is ugly", "a dunce hat"):
        ...     tokens = tokenize(caption)
        ...     print([word for word, _ in demeaning_words().find(tokens, content_words(tokens))])
        ['son of a bitch', 'crippled']
        []
        ['ugly']
        []
        """
        words = list(words)
        found = []
        taken: set[int] = set()
        for start, length, _, word in self._joined.find(tokens):
            found.append((word, self.listings[word, "noun"]))
            taken.update(range(start, start + length))
        for place, one in enumerate(words):
            if one.start in taken:
                continue
            word, listing = one.lemma, self.senses(one.lemma, one.part)
            describes = one.part == "adjective"
            if listing is None and one.part == "verb":
                word, describes = tokens[one.start], True
                listing = self.senses(word, "adjective")
            if listing is None:
                continue
            if (_of_person if describes else _is_no_modifier)(place, tokens, words):
                found.append((word, listing))
        return found

    @cached_property
    def _joined(self) -> PhraseTable:
        several = [word for word, part in self.listings if part == "noun" and len(tokenize(word)) > 1]
        return PhraseTable((form, word) for word in several for form in (word, plural(word)))


def _of_person(place: int, tokens: Sequence[str], words: Sequence[Word]) -> bool:
    """Whether an adjective is said of a person."""
    own = words[place]
    end = own.start + own.length
    for other in words[place + 1 :]:  # what follows it, other adjectives and commas between
        if any(token not in _BETWEEN for token in tokens[end : other.start]):
            break
        if other.part == "noun":
            following = next((word for word in words if word.start == other.start + other.length), None)
            # "a fat girl friend", but not "an ugly baby giraffe"
            return is_person(following if following is not None and following.part == "noun" else other)
        end = other.start + other.length
    if end == own.start + own.length and _IS.isdisjoint(tokens[max(0, own.start - 2) : own.start]):
        return False
    before = [word for word in words[:place] if word.part == "noun"]
    return bool(before) and is_person(before[-1])


def _is_no_modifier(place: int, tokens: Sequence[str], words: Sequence[Word]) -> bool:  # noqa: ARG001
    """Whether a noun stands for itself: not in front of another noun, unless that is a person."""
    own = words[place]
    following = next((word for word in words[place + 1 :] if word.start == own.start + own.length), None)
    return following is None or following.part != "noun" or is_person(following)


@dataclass(frozen=True)
class Pair:
    """Words that demean a group in context; `unless_seen` ones only where the thing itself is not in the picture."""

    attributes: frozenset[str]
    groups: frozenset[str]
    words: frozenset[str]
    unless_seen: bool
    why: str

    def about(self, person: Mapping[str, str]) -> bool:
        """Whether a person, as attributes and groups tell, belongs to the groups this is about.

        >>> [pair.about({"skin": "Dark"}) for pair in in_context() if "monkey" in pair.words]
        [True]
        """
        return any(
            not self.attributes.isdisjoint((attribute.strip().casefold(), ANY))
            and not self.groups.isdisjoint((group.strip().casefold(), ANY))
            for attribute, group in person.items()
        )


class Pairs(tuple[Pair, ...]):
    """The pairs of one file."""

    label: str

    def __new__(cls, pairs: Iterable[Pair] = (), label: str = "") -> Pairs:
        made = super().__new__(cls, pairs)
        made.label = label
        return made


class Words(frozenset[str]):
    """The words of one file."""

    label: str

    def __new__(cls, words: Iterable[str] = (), label: str = "") -> Words:
        made = super().__new__(cls, words)
        made.label = label
        return made


@dataclass(frozen=True, eq=False)
class NotImageable(Mapping[str, frozenset[str]]):
    """What a picture cannot show: words by kind. A kind may be of one part of speech."""

    kinds: Mapping[str, frozenset[str]]
    parts: Mapping[str, str]
    label: str

    def kind(self, lemma: str, part: str | None = None) -> str | None:
        """The kind of a word; None where a picture may show it. Without a part of speech, of any.

        >>> words = not_imageable()
        >>> words.kind("happy"), words.kind("love", "verb"), words.kind("love", "noun"), words.kind("red")
        ('mood', 'verbs', None, None)
        """
        for kind, words in self.kinds.items():
            if lemma in words and part in (None, self.parts.get(kind, part)):
                return kind
        return None

    def __getitem__(self, kind: str) -> frozenset[str]:
        return self.kinds[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)


@dataclass(frozen=True, eq=False)
class AdjectivesAsNouns:
    """Adjectives of identity, and how to tell that one stands as a noun.

    `singular` ones do after an article or a number and before nothing that they could describe, `plural` ones always,
    those in `the` stand for a whole group. `colours` may be of things, and count as people more rarely; `beside` are
    colours in the plural beside which others are colours too. `not_naming` phrases name nobody.
    """

    singular: tuple[str, ...]
    plural: tuple[str, ...]
    the: tuple[str, ...]
    colours: frozenset[str]
    beside: frozenset[str]
    not_naming: tuple[str, ...]
    label: str

    def find(self, tokens: Sequence[str]) -> list[tuple[int, str]]:
        """Where such an adjective is a noun, in a caption's tokens: the first token, and the words.

        >>> words = adjectives_as_nouns()
        >>> words.find(tokenize("An elderly in a wheelchair and two blacks on a bench"))
        [(0, 'an elderly'), (7, 'blacks')]
        >>> words.find(tokenize("an elderly man in a black and white photo of the white of an egg"))
        []
        """
        if self._words.isdisjoint(tokens):  # most captions end here
            return []
        found = []
        for start, length, phrase, kind in self._table.find(tokens):
            end = start + length
            if kind == _PLURAL:
                if phrase not in self.colours or self._of_people(tokens, start, end):
                    found.append((start, phrase))
            elif kind == _ADJECTIVE:
                first = self._first(tokens, start, phrase)
                if first is not None and self._stands_alone(tokens, first, end, phrase in self.colours):
                    found.append((first, " ".join(tokens[first:end])))
        return found

    def _of_people(self, tokens: Sequence[str], start: int, end: int) -> bool:
        """Whether colours in the plural are people: two blacks, but not sailor whites, nor blues and whites."""
        before = tokens[start - 1] if start else ","
        alone = self.beside.isdisjoint(tokens[max(0, start - 2) : end + 2])
        return alone and (before in _NAMING or before in _COUNTING or before in ("the", "with", "young"))

    def _first(self, tokens: Sequence[str], start: int, phrase: str) -> int | None:
        """Where the words begin that make a noun of an adjective; None where there are none."""
        first = start - 1
        while first > 0 and start - first <= _STEPS_BACK and tokens[first] in _ALSO:
            first -= 1
        if first < 0:
            return None
        word = tokens[first]
        before = tokens[first - 1] if first else ","
        if phrase in self.colours:
            return first if word in _ARTICLES and before in _NAMING else None
        if word in _ARTICLES or word in _COUNTING:
            return first if phrase in self._singular else None
        if word == "the":
            return first
        return first + 1 if word == "of" and before in _OF_MANY else None

    def _stands_alone(self, tokens: Sequence[str], first: int, end: int, colour: bool) -> bool:
        """Whether nothing follows that the adjective could describe."""
        after, second, third = (*tokens[end : end + 3], "", "", "")[:3]
        if after in ("", *_END):
            return not colour  # "a white." is a slip, or a wine
        if after in _WHO:
            return True
        # "an elderly walking with a cane", not "an elderly looking man"; "the elderly dance", not "an elderly dance"
        do = _ONLY_PEOPLE if colour else _DOING if tokens[first] in _ARTICLES else _DOING | _MANY_DO
        if after in do:
            return second in _GO_ON or second in _END or not second
        if colour:
            there = after in _SOMEWHERE and second not in self.colours
            return there or (after == "with" and second in _ARTICLES)
        if after in _AND:
            if second in self._words:  # "the elderly and disabled"
                return self._stands_alone(tokens, first, end + 2, colour)
            return second in (*_ARTICLES, "the", "those") and third not in self._words and third not in _ALSO
        return after in _BEHIND or after == "'s"

    @cached_property
    def _singular(self) -> frozenset[str]:
        return frozenset(self.singular)

    @cached_property
    def _words(self) -> frozenset[str]:
        """The last words of all phrases: without one of them, nothing is found."""
        return frozenset(tokenize(word)[-1] for word in (*self.singular, *self.plural, *self.the))

    @cached_property
    def _table(self) -> PhraseTable:
        kinds = ((self.not_naming, ""), (self.plural, _PLURAL), ((*self.singular, *self.the), _ADJECTIVE))
        return PhraseTable((word, kind) for words, kind in kinds for word in words)


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """The category of each label of an object, each adjective and each verb."""

    objects: Mapping[str, str]
    attributes: Mapping[str, str]
    relations: Mapping[str, str]
    label: str


def demeaning_words(path: str | Path | None = None) -> Demeaning:
    """The shipped words that demean people, or those of a file."""
    return _loaded("demeaning", path, {"words", "too_common"}, _demeaning)


def in_context(path: str | Path | None = None) -> Pairs:
    """The shipped pairs of a group and words that demean it in context, or those of a file."""
    return _loaded("in_context", path, {"pairs"}, _pairs)


def adjectives_as_nouns(path: str | Path | None = None) -> AdjectivesAsNouns:
    """The shipped adjectives of identity that should not be nouns, or those of a file."""
    keys = {"singular", "plural", "the", "colours", "beside", "not_naming"}
    return _loaded("adjective_as_noun", path, keys, _adjectives)


def not_imageable(path: str | Path | None = None) -> NotImageable:
    """The shipped words for what a picture cannot show, or those of a file.

    >>> list(not_imageable())
    ['judgement', 'mood', 'occupation', 'relation', 'verbs']
    """
    return _loaded("not_imageable", path, {"kinds", "parts"}, _not_imageable)


def framing_words(path: str | Path | None = None) -> Words:
    """Words that speak of the picture, of place and of amount, and claim no thing.

    >>> {"photo", "group", "show"} <= framing_words(), "dog" in framing_words()
    (True, False)
    """
    return _loaded("framing", path, {"nouns", "verbs"}, _framing)


def taxonomy(path: str | Path | None = None) -> Taxonomy:
    """The shipped categories of objects, attributes and relations, or those of a file.

    >>> found = taxonomy()
    >>> found.objects["toaster"], found.attributes["elderly"], found.relations["hug"]
    ('appliance', 'age', 'contact')
    """
    return _loaded("taxonomy", path, {"objects", "attributes", "relations"}, _taxonomy)


class _Checked:
    """The content of a file while it is read: what is wrong is collected, and told all at once."""

    def __init__(self, data: dict[str, Any], file: str, keys: set[str]):
        self.data = data
        self.file = file
        self.problems: list[Problem] = []
        for key in sorted(set(data) - keys - _ABOUT):
            self.note(f"the keys {', '.join(sorted(keys | _ABOUT))}", repr(key))
        if not isinstance(data.get("name"), str) or not data["name"].strip():
            self.note("a name", shown(data.get("name")))

    def note(self, expected: str, found: str) -> None:
        self.problems.append(Problem(self.file, expected, found))

    def words(self, what: str, value: Any) -> tuple[str, ...]:
        """A list of words, lower case, each once."""
        if not isinstance(value, list) or not value:
            self.note(f"{what} as a list of words", shown(value))
            return ()
        made: dict[str, None] = {}
        for word in value:
            if not isinstance(word, str) or not tokenize(word):
                self.note(f"words in {what}", shown(word))
            else:
                made[" ".join(word.casefold().split())] = None
        return tuple(made)

    def table(self, key: str) -> dict[str, Any]:
        value = self.data.get(key, {})
        if isinstance(value, dict):
            return value
        self.note(f"a table [{key}]", shown(value))
        return {}

    def lists(self, key: str) -> dict[str, tuple[str, ...]]:
        """A table of lists of words."""
        return {name: self.words(f"'{name}' in [{key}]", value) for name, value in self.table(key).items()}

    @property
    def label(self) -> str:
        words = {key: value for key, value in self.data.items() if key not in _ABOUT}
        digest = hashlib.sha256(json.dumps(words, sort_keys=True, default=str).encode()).hexdigest()[:8]
        version = self.data.get("version")
        return "@".join(filter(None, (self.data["name"], None if version is None else str(version), digest)))


def _loaded(name: str, path: str | Path | None, keys: set[str], make: Callable[[_Checked], _Made]) -> _Made:
    if path is None:
        made: _Made = _shipped(name, frozenset(keys), make)
        return made
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise PortrayalError(f"There is no file {path}.") from None
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "UTF-8 text", "other bytes")]) from None
    return _parsed(text, str(path), keys, make)


@cache
def _shipped(name: str, keys: frozenset[str], make: Callable[[_Checked], Any]) -> Any:
    file = resources.files("portrayal.lexicon") / "words" / "harms" / f"{name}.toml"
    return _parsed(file.read_text(encoding="utf-8"), file.name, set(keys), make)


def _parsed(text: str, file: str, keys: set[str], make: Callable[[_Checked], _Made]) -> _Made:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError([Problem(file, "TOML", str(error))]) from None
    checked = _Checked(data, file, keys)
    if checked.problems:
        raise InputError(checked.problems)
    made = make(checked)
    if checked.problems:
        raise InputError(checked.problems)
    return made


def _demeaning(file: _Checked) -> Demeaning:
    listings: dict[tuple[str, str], Listing] = {}
    listed = file.table("words")
    if not listed:
        file.note("a table [words] of words and their senses", "none")
    for name, entries in listed.items():
        word = " ".join(name.casefold().split())
        for entry in entries if isinstance(entries, list) else [entries]:
            expected = f"'{name}' as {{ part = ..., listed = [...], senses = ... }}"
            if not isinstance(entry, dict) or not _known_senses(entry):
                file.note(expected, shown(entry))
                continue
            part, numbers, senses = entry["part"], entry["listed"], entry["senses"]
            if (word, part) in listings:
                file.note(f"each part of speech of '{name}' once", f"{part} twice")
            if senses:
                listings[word, part] = Listing(len(set(numbers)) == senses, 1 in numbers, True)
                continue
            # WordNet cannot tell the plural of a word that it lacks.
            for form in (word, plural(word)) if part == "noun" else (word,):
                listings[form, part] = Listing(True, True, True)
    too_common = frozenset(
        file.words("too_common", file.data["too_common"]) if "too_common" in file.data else ()
    )
    for word, _ in listings:
        if word in too_common:
            file.note("words either listed or too common", f"{word!r} in both")
    return Demeaning(listings, too_common, file.label)


def _known_senses(entry: dict[str, Any]) -> bool:
    """Whether an entry's numbers fit each other: a word that has senses lists some, one that has none always counts."""
    numbers, senses, always = entry.get("listed"), entry.get("senses"), entry.get("always", False)
    if entry.get("part") not in _PARTS or not isinstance(numbers, list) or not isinstance(senses, int):
        return False
    if set(entry) - {"part", "listed", "senses", "always"} or not isinstance(always, bool):
        return False
    if senses == 0:
        return always and not numbers
    return (
        not always and bool(numbers) and all(isinstance(one, int) and 1 <= one <= senses for one in numbers)
    )


def _pairs(file: _Checked) -> Pairs:
    listed = file.data.get("pairs")
    if not isinstance(listed, list) or not listed:
        file.note("a list [[pairs]]", shown(listed))
        return Pairs()
    made = []
    for number, entry in enumerate(listed, 1):
        what = f"pair {number}"
        if not isinstance(entry, dict) or set(entry) - {"attribute", "groups", "words", "unless_seen", "why"}:
            file.note(f"{what} with attribute, groups, words, unless_seen and why", shown(entry))
            continue
        unless_seen, why = entry.get("unless_seen", False), entry.get("why", "")
        if not isinstance(unless_seen, bool) or not isinstance(why, str):
            file.note(f"{what} with unless_seen as true or false and why as text", shown(entry))
            continue
        attributes, groups, words = (
            frozenset(file.words(f"{key} of {what}", entry.get(key)))
            for key in ("attribute", "groups", "words")
        )
        made.append(Pair(attributes, groups, words, unless_seen, why))
    return Pairs(made, file.label)


def _adjectives(file: _Checked) -> AdjectivesAsNouns:
    lists = {
        key: file.words(key, file.data[key]) if key in file.data else ()
        for key in ("singular", "plural", "the", "colours", "beside", "not_naming")
    }
    if not any(lists[key] for key in ("singular", "plural", "the")):
        file.note("lists of words: singular, plural or the", "none")
    return AdjectivesAsNouns(
        lists["singular"], lists["plural"], lists["the"], frozenset(lists["colours"]), frozenset(lists["beside"]),
        lists["not_naming"], file.label,
    )  # fmt: skip


def _not_imageable(file: _Checked) -> NotImageable:
    kinds = {kind: frozenset(words) for kind, words in file.lists("kinds").items()}
    if not kinds:
        file.note("a table [kinds] with one list of words per kind", "none")
    parts = file.table("parts")
    for kind, part in parts.items():
        if kind not in kinds or part not in _PARTS:
            file.note(f"[parts] with one of {', '.join(_PARTS)} for a kind", f"{kind} = {shown(part)}")
    return NotImageable(kinds, parts, file.label)


def _framing(file: _Checked) -> Words:
    lists = [*file.lists("nouns").values(), *file.lists("verbs").values()]
    if not lists:
        file.note("a table [nouns] or [verbs] of lists of words", "none")
    return Words((word for words in lists for word in words), file.label)


def _taxonomy(file: _Checked) -> Taxonomy:
    tables: dict[str, dict[str, str]] = {}
    for key in ("objects", "attributes", "relations"):
        owner: dict[str, str] = {}
        for category, words in file.lists(key).items():
            for word in words:
                if owner.setdefault(word, category) != category:
                    file.note(
                        f"each word of [{key}] in one category",
                        f"{word!r} in '{owner[word]}' and '{category}'",
                    )
        if not owner:
            file.note(f"a table [{key}] with one list of words per category", "none")
        tables[key] = owner
    return Taxonomy(tables["objects"], tables["attributes"], tables["relations"], file.label)
