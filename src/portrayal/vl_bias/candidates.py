"""Mine candidate images: captions that name one group and one person, and one concept of a kind for that person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from portrayal.counterfactual.concepts import CONCEPTS_BY_KIND
from portrayal.errors import PortrayalError
from portrayal.lexicon import Lexicon, Mention, MentionFinder, load_lexicon, tokenize
from portrayal.lexicon.tokens import TOKEN
from portrayal.lexicon.wordnet.grammar import content_words
from portrayal.results import HUMAN
from portrayal.study import Study
from portrayal.vl_bias.concept_forms import (
    PRONOUNS,
    ConceptTokens,
    concept_words,
    is_activity,
    mentions_concept,
    mining_words,
    word_list,
)
from portrayal.vl_bias.predicates import person_does, person_is
from portrayal.vl_bias.subject import only_person, several_people, subject


@dataclass(frozen=True)
class ImageCandidate:
    """An image that may show a group with a concept, and the captions that say so."""

    image: str
    group: str
    concept: str
    kind: str
    saying: int  # captions of the image that say so
    captions: int  # captions the image has
    caption: str  # the first that says so


def mine_candidates(
    study: Study,
    *,
    lexicon: Lexicon | str = "gender",
    concepts: Mapping[str, Sequence[str]] = CONCEPTS_BY_KIND,
    min_captions: int = 1,
    source: str = HUMAN,
) -> list[ImageCandidate]:
    """Mine candidates from the captions of a source, sorted by concept, group and image.

    An image is left out if its captions name several groups, several people, or a group in the plural. A posture is
    left out if as many captions have another posture. A concept that ends in "ing" is something that a person does,
    any other something that a person is.

    Parameters
    ----------
    study
        A study with captions.
    lexicon
        Words that name the groups.
    concepts
        Kind -> concepts; by default those of VL-Bias.
    min_captions
        Number of captions of an image that must agree.
    source
        The source of the captions, by default the human captions.

    Examples
    --------

    >>> import polars as pl
    >>> rows = {"image_id": [1, 2], "caption": ["a woman is cooking", "a man with a cooking pot"]}
    >>> study = Study.from_frames(references=pl.DataFrame(rows))
    >>> [(candidate.image, candidate.group, candidate.concept) for candidate in mine_candidates(study)]
    [('1', 'female', 'cooking')]
    """
    if min_captions < 1:
        raise PortrayalError(
            f"The 'min_captions' parameter of mine_candidates must be 1 or more. Got {min_captions} instead."
        )
    miner = _CandidateMiner(load_lexicon(lexicon), concepts)
    captions: dict[str, list[str]] = {}
    for image, caption in study.captions_of(source).select("image_id", "caption").iter_rows():
        captions.setdefault(image, []).append(caption)
    candidates = [
        candidate for image, texts in captions.items() for candidate in miner.image_candidates(image, texts)
    ]
    agreed = (candidate for candidate in candidates if candidate.saying >= min_captions)
    return sorted(agreed, key=miner.sort_key)


def count_candidates(candidates: Iterable[ImageCandidate]) -> dict[tuple[str, str, str], int]:
    """(kind, concept, group) -> number of candidates, in the order of the candidates."""
    return dict(Counter((candidate.kind, candidate.concept, candidate.group) for candidate in candidates))


class _CandidateMiner:
    """Mines the images of one study."""

    def __init__(self, lexicon: Lexicon, concepts: Mapping[str, Sequence[str]]):
        self._finder = MentionFinder(lexicon)
        self._concepts = concepts
        self._forms = ConceptTokens(concept for listed in concepts.values() for concept in listed)
        self._kinds = {kind: index for index, kind in enumerate(concepts)}
        self._indices = {
            (kind, concept): index
            for kind, listed in concepts.items()
            for index, concept in enumerate(listed)
        }
        self._groups = {group: index for index, group in enumerate(lexicon.groups)}

    def sort_key(self, candidate: ImageCandidate) -> tuple[int, int, int, str]:
        """Sort candidates by kind, concept, group and image."""
        concept = self._indices[candidate.kind, candidate.concept]
        return self._kinds[candidate.kind], concept, self._groups[candidate.group], candidate.image

    def image_candidates(self, image: str, captions: Sequence[str]) -> Iterator[ImageCandidate]:
        named = [self._finder.find(caption) for caption in captions]
        groups = {mention.group for mentions in named for mention in mentions}
        # "his" alone may refer to anybody
        if len(groups) != 1 or all(mention.word in PRONOUNS for mentions in named for mention in mentions):
            return
        if any(several_people(caption, mentions) for caption, mentions in zip(captions, named, strict=True)):
            return
        captions_of: dict[tuple[str, str], list[str]] = {}
        for caption, mentions in zip(captions, named, strict=True):
            for key in self._concepts_of(caption, mentions):
                captions_of.setdefault(key, []).append(caption)
        (group,) = groups
        for (kind, concept), texts in captions_of.items():
            if not _is_disputed_posture(concept, captions):
                yield ImageCandidate(image, group, concept, kind, len(texts), len(captions), texts[0])

    def _concepts_of(self, caption: str, mentions: Sequence[Mention]) -> Iterator[tuple[str, str]]:
        """Yield (kind, concept) for each kind of which the caption has one concept, and has it for the person."""
        lowered = caption.lower()
        # A few letters change their length in lower case, and so all offsets.
        if not mentions or len(lowered) != len(caption):
            return
        spans = list(TOKEN.finditer(lowered))
        tokens = [span.group() for span in spans]
        if word_list("unreal") & {*tokens} or not any(token in self._forms for token in tokens):
            return
        content = content_words(tokens)
        starts = {span.start(): index for index, span in enumerate(spans)}
        named = [starts[mention.start] for mention in mentions]
        person = only_person(tokens, content, named)
        only_pronouns = all(mention.word in PRONOUNS for mention in mentions)
        for kind, concepts in self._concepts.items():
            present = [concept for concept in concepts if mentions_concept(concept, tokens, content)]
            if len(present) != 1:
                continue
            (concept,) = present
            if is_activity(concept):
                matches = person is not None and person_does(concept, person, tokens, content)
            else:  # "a farmer on his tractor" has a person, too
                person_or_subject = subject(tokens, content) if only_pronouns else person
                matches = person_or_subject is not None and person_is(
                    concept, person_or_subject, tokens, content
                )
            if matches:
                yield kind, concept


def _is_disputed_posture(concept: str, captions: Sequence[str]) -> bool:
    """Whether as many captions have another posture as have this one."""
    if concept not in mining_words()["postures"]:
        return False
    token_sets = [frozenset(tokenize(caption)) for caption in captions]
    counts = {
        posture: sum(bool(concept_words("postures", posture) & tokens) for tokens in token_sets)
        for posture in mining_words()["postures"]
    }
    return any(number >= counts[concept] for posture, number in counts.items() if posture != concept)
