"""The captions that a guesser reads: a system's, and people's of the same images in the system's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from portrayal.errors import Undefined
from portrayal.metrics.shared.classifier.corpus import Corpus, Words
from portrayal.metrics.shared.classifier.masking import Mask, within_vocabulary
from portrayal.results import HUMAN
from portrayal.study import Study

VOCABULARIES = ("system", "observed", "common", "none")
_TRACE = 0.01
REFERENCES = 5  # of people's captions of an image, where there are as many


@dataclass(frozen=True)
class Reader:
    """Reads the captions of labelled images, in the order of the images' names or of the captions."""

    study: Study
    truth: Mapping[str, int]  # image -> group
    mask: Mask
    in_order: bool  # of the captions, as the published split has it

    def of_system(self, system: str, seeds: Sequence[int]) -> list[Corpus]:
        """One caption for each labelled image and seed; where a system has several of an image, one at random."""
        told = told_by(self.study, system)
        images = [image for image in told if image in self.truth]
        if not self.in_order:
            images.sort()
        if not images:
            raise Undefined("no captioned image has a label")
        if all(len(told[image]) == 1 for image in images):
            return [self._corpus(images, [told[image][0] for image in images])] * len(seeds)
        return [self._corpus(images, self._drawn(told, images, seed, 1)[0]) for seed in seeds]

    def of_people(
        self, images: Sequence[str], seeds: Sequence[int], count: int, vocabulary: set[str] | None
    ) -> list[list[Corpus]]:
        """For each seed the captions that people gave to these images, in the words of a vocabulary.

        In the order of the captions: every position, the same for each seed. Else one at random: without replacement
        from one seed to the next, as long as there are as many.
        """
        told = told_by(self.study, HUMAN)
        if self.in_order:
            positions = [[told[image][place] for image in images] for place in range(count)]
            whole = [self._corpus(images, captions, vocabulary) for captions in positions]
            return [whole] * len(seeds)
        made: list[list[Corpus]] = []
        for start in range(0, len(seeds), count):
            drawn = self._drawn(told, images, seeds[start], min(count, len(seeds) - start))
            made += [[self._corpus(images, captions, vocabulary)] for captions in drawn]
        return made

    def vocabulary(self, system: str, rule: str) -> set[str] | None:
        """The words that people's captions are told in; None: all of them."""
        if rule == "none":
            return None
        listed = {word.lower() for word in self.study.vocabularies.get(system, ())}
        if rule == "system":
            if not listed:
                raise Undefined(
                    f"the study has no vocabulary of '{system}'; 'observed' takes the words it uses"
                )
            return listed | self.mask.tokens
        spoken = self.study.spoken(system)["caption"].to_list()
        observed = {word for words in self._read(spoken) for word in words}
        if rule == "observed":
            return observed | self.mask.tokens
        # Ties in how often people say a word are broken by the alphabet.
        people = Counter(word for words in self._read(self._people()) for word in words)
        ranked = sorted(people, key=lambda word: (-people[word], word))
        return set(ranked[: len(listed or observed)]) | self.mask.tokens

    def lacking(self, corpus: Corpus, vocabulary: set[str] | None) -> str | None:
        """What a vocabulary takes from people's captions and leaves in the system's, where that is more than a trace.

        The published vocabularies were made of captions whose gender words were hidden; where they are not, people
        lose "man" and "woman" and the system keeps them.
        """
        if vocabulary is None:
            return None
        said = Counter(word for words in corpus.words for word in words)
        missing = Counter({word: count for word, count in said.items() if word not in vocabulary})
        share = missing.total() / max(said.total(), 1)
        if share < _TRACE:
            return None
        listed = ", ".join(word for word, _ in missing.most_common(3))
        return (
            f"{share:.0%} of the words the system says are not in its vocabulary ({listed}): people's captions lose "
            "them, its own keep them; 'observed' treats both alike"
        )

    def references(self) -> Counter[str]:
        """How many captions people gave to each labelled image."""
        counts = Counter(self.study.references["image_id"].to_list())
        return Counter({image: count for image, count in counts.items() if image in self.truth})

    def _people(self) -> list[str]:
        frame = self.study.references
        return [caption for image, caption in frame.iter_rows() if image in self.truth]

    @staticmethod
    def _drawn(
        told: Mapping[str, Sequence[str]], images: Sequence[str], seed: int, count: int
    ) -> list[list[str]]:
        """So many captions of each image, none twice while there are enough."""
        chance = np.random.default_rng([seed, 3])
        drawn = []
        for image in images:
            order = chance.permutation(len(told[image]))
            drawn.append([told[image][order[number % len(order)]] for number in range(count)])
        return [list(captions) for captions in zip(*drawn, strict=True)]

    def _read(self, captions: Sequence[str]) -> list[Words]:
        known = _known(self.study, self.mask)
        new = list(dict.fromkeys(caption for caption in captions if caption not in known))
        known.update(zip(new, self.mask.read(new), strict=True))
        return [known[caption] for caption in captions]

    def _corpus(
        self, images: Sequence[str], captions: Sequence[str], vocabulary: set[str] | None = None
    ) -> Corpus:
        words = self._read(captions)
        if vocabulary is not None:
            words = within_vocabulary(words, vocabulary)
        group = np.array([self.truth[image] for image in images], dtype=np.int64)
        return Corpus(tuple(images), group, tuple(captions), tuple(words))


def usual_vocabulary(study: Study, system: str) -> str:
    """The rule where none is asked for."""
    return "system" if study.vocabularies.get(system) else "observed"


def captions_of(study: Study) -> Iterator[str]:
    """Every caption of a study, of systems and of people."""
    for frame in (study.captions, study.references):
        yield from frame["caption"]


@lru_cache(maxsize=16)
def told_by(study: Study, source: str) -> dict[str, list[str]]:
    """The captions of each image by their numbers, whatever the order of rows; images in the order of the file."""
    told: dict[str, list[str]] = {}
    for image, _, caption in study.spoken(source).sort("sample", maintain_order=True).iter_rows():
        told.setdefault(image, []).append(caption)
    return told


@lru_cache(maxsize=4)
def _known(study: Study, mask: Mask) -> dict[str, Words]:  # noqa: ARG001
    """What captions of a study read like: those of people are read once for all systems."""
    return {}
