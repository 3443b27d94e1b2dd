"""Proposing pictures: a caption names one group, speaks of one person, and says one thing of a kind of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from portrayal.counterfactual.concepts import KINDS
from portrayal.errors import PortrayalError
from portrayal.lexicon import Finder, Lexicon, Mention, load_lexicon, tokenize
from portrayal.lexicon.tokens import TOKEN
from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.results import HUMAN
from portrayal.study import Study
from portrayal.vl_bias.concept_forms import (
    PRONOUNS,
    Forms,
    is_activity,
    listed,
    names_concept,
    of_concept,
    words,
)
from portrayal.vl_bias.predicates import person_does, person_is
from portrayal.vl_bias.subject import only_person, several_people, subject


@dataclass(frozen=True)
class Candidate:
    """A picture that may show a group with a concept, and what the captions say."""

    image: str
    group: str
    concept: str
    kind: str
    saying: int  # captions of the image that say so
    captions: int  # captions the image has
    caption: str  # the first that says so


def mine(
    study: Study,
    *,
    lexicon: Lexicon | str = "gender",
    concepts: Mapping[str, Sequence[str]] = KINDS,
    least: int = 1,
    source: str = HUMAN,
) -> list[Candidate]:
    """What the captions propose, in the order of the concepts, then of the groups, then of the images' names.

    An image is left out where its captions name several groups, or count people, or name a group in the plural. A
    posture is left out where as many captions say another. `least` is how many captions of an image must say the same.
    A concept that ends in "ing" is something that a person does, any other something that a person is.

    >>> import polars as pl
    >>> said = {"image_id": [1, 2], "caption": ["a woman is cooking", "a man with a cooking pot"]}
    >>> [(one.image, one.group, one.concept) for one in mine(Study.from_frames(references=pl.DataFrame(said)))]
    [('1', 'female', 'cooking')]
    """
    if least < 1:
        raise PortrayalError(f"The 'least' parameter of mine must be 1 or more. Got {least} instead.")
    miner = _Miner(load_lexicon(lexicon), concepts)
    captions: dict[str, list[str]] = {}
    for image, caption in study.spoken(source).select("image_id", "caption").iter_rows():
        captions.setdefault(image, []).append(caption)
    found = [one for image, texts in captions.items() for one in miner.of_image(image, texts)]
    return sorted((one for one in found if one.saying >= least), key=miner.place)


def counts(candidates: Iterable[Candidate]) -> dict[tuple[str, str, str], int]:
    """How many there are of each kind, concept and group, in the order in which they come."""
    return dict(Counter((one.kind, one.concept, one.group) for one in candidates))


class _Miner:
    """The words of one search."""

    def __init__(self, lexicon: Lexicon, concepts: Mapping[str, Sequence[str]]):
        self._finder = Finder(lexicon)
        self._concepts = concepts
        self._forms = Forms(concept for some in concepts.values() for concept in some)
        self._kinds = {kind: place for place, kind in enumerate(concepts)}
        self._places = {
            (kind, concept): place for kind, some in concepts.items() for place, concept in enumerate(some)
        }
        self._groups = {group: place for place, group in enumerate(lexicon.groups)}

    def place(self, one: Candidate) -> tuple[int, int, int, str]:
        """Where a candidate stands among the others."""
        concept = self._places[one.kind, one.concept]
        return self._kinds[one.kind], concept, self._groups[one.group], one.image

    def of_image(self, image: str, captions: Sequence[str]) -> Iterator[Candidate]:
        named = [self._finder.mentions(caption) for caption in captions]
        groups = {mention.group for mentions in named for mention in mentions}
        # "his" alone may be said of anybody
        if len(groups) != 1 or all(mention.word in PRONOUNS for mentions in named for mention in mentions):
            return
        if any(several_people(caption, mentions) for caption, mentions in zip(captions, named, strict=True)):
            return
        saying: dict[tuple[str, str], list[str]] = {}
        for caption, mentions in zip(captions, named, strict=True):
            for said in self._said(caption, mentions):
                saying.setdefault(said, []).append(caption)
        (group,) = groups
        for (kind, concept), texts in saying.items():
            if not _in_doubt(concept, captions):
                yield Candidate(image, group, concept, kind, len(texts), len(captions), texts[0])

    def _said(self, caption: str, mentions: Sequence[Mention]) -> Iterator[tuple[str, str]]:
        """(kind, concept) for each kind of which the caption says one concept, and says it of the person."""
        lowered = caption.lower()
        if not mentions or len(lowered) != len(
            caption
        ):  # a few letters change their length, and so all places
            return
        spans = list(TOKEN.finditer(lowered))
        tokens = [span.group() for span in spans]
        if listed("unreal") & {*tokens} or not any(token in self._forms for token in tokens):
            return
        content = content_words(tokens)
        starts = {span.start(): place for place, span in enumerate(spans)}
        places = [starts[mention.start] for mention in mentions]
        person = only_person(tokens, content, places)
        only_pronouns = all(mention.word in PRONOUNS for mention in mentions)
        for kind, concepts in self._concepts.items():
            here = [concept for concept in concepts if names_concept(concept, tokens, content)]
            if len(here) != 1:
                continue
            (concept,) = here
            if is_activity(concept):
                said = person is not None and person_does(concept, person, tokens, content)
            else:  # "a farmer on his tractor" says whom, too
                somebody = subject(tokens, content) if only_pronouns else person
                said = somebody is not None and person_is(concept, somebody, tokens, content)
            if said:
                yield kind, concept


def _in_doubt(concept: str, captions: Sequence[str]) -> bool:
    """Whether as many captions say that the person sits as that they stand."""
    if concept not in words()["postures"]:
        return False
    spoken = [frozenset(tokenize(caption)) for caption in captions]
    saying = {
        posture: sum(bool(of_concept("postures", posture) & tokens) for tokens in spoken)
        for posture in words()["postures"]
    }
    return any(number >= saying[concept] for posture, number in saying.items() if posture != concept)
