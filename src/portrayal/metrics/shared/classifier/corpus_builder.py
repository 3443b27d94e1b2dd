"""Corpora for the classifier: a system's captions, and human captions restricted to the system's vocabulary."""

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
_MIN_GAP_SHARE = 0.01
REFERENCES = 5  # human captions used per image, where there are as many


@dataclass(frozen=True)
class CorpusBuilder:
    """Builds corpora from the captions of labelled images, sorted by image name or in the order of the file."""

    study: Study
    group_of: Mapping[str, int]  # image -> index of the group
    mask: Mask
    keep_file_order: bool  # of captions, as the published split does

    def system_corpora(self, system: str, seeds: Sequence[int]) -> list[Corpus]:
        """Return one corpus per seed. An image with several captions gets one of them at random."""
        captions_of = captions_by_image(self.study, system)
        images = [image for image in captions_of if image in self.group_of]
        if not self.keep_file_order:
            images.sort()
        if not images:
            raise Undefined("no captioned image has a label")
        if all(len(captions_of[image]) == 1 for image in images):
            return [self._corpus(images, [captions_of[image][0] for image in images])] * len(seeds)
        return [
            self._corpus(images, self._sample_captions(captions_of, images, seed, 1)[0]) for seed in seeds
        ]

    def human_corpora(
        self, images: Sequence[str], seeds: Sequence[int], count: int, vocabulary: set[str] | None
    ) -> list[list[Corpus]]:
        """Return, for each seed, corpora of human captions of these images, restricted to a vocabulary.

        With `keep_file_order`, one corpus per caption position, the same for each seed. Otherwise one random
        caption per image, drawn without replacement over seeds while an image has enough captions.
        """
        captions_of = captions_by_image(self.study, HUMAN)
        if self.keep_file_order:
            positions = [[captions_of[image][position] for image in images] for position in range(count)]
            repeat = [self._corpus(images, captions, vocabulary) for captions in positions]
            return [repeat] * len(seeds)
        corpora: list[list[Corpus]] = []
        for start in range(0, len(seeds), count):
            samples = self._sample_captions(captions_of, images, seeds[start], min(count, len(seeds) - start))
            corpora += [[self._corpus(images, captions, vocabulary)] for captions in samples]
        return corpora

    def vocabulary(self, system: str, rule: str) -> set[str] | None:
        """Return the vocabulary that human captions are restricted to; None means no restriction."""
        if rule == "none":
            return None
        file_words = {word.lower() for word in self.study.vocabularies.get(system, ())}
        if rule == "system":
            if not file_words:
                raise Undefined(
                    f"the study has no vocabulary of '{system}'; 'observed' takes the words it uses"
                )
            return file_words | self.mask.tokens
        captions = self.study.captions_of(system)["caption"].to_list()
        observed = {word for words in self._masked_words(captions) for word in words}
        if rule == "observed":
            return observed | self.mask.tokens
        # Equally frequent words are ranked alphabetically.
        word_counts = Counter(word for words in self._masked_words(self._human_captions()) for word in words)
        ranked = sorted(word_counts, key=lambda word: (-word_counts[word], word))
        return set(ranked[: len(file_words or observed)]) | self.mask.tokens

    def vocabulary_gap(self, corpus: Corpus, vocabulary: set[str] | None) -> str | None:
        """Return a note on the words that the restriction removes from human captions but not from the
        system's.

        None where they are fewer than 1 % of the system's words. The published vocabularies were made from
        captions with masked gender words. Without masking, human captions lose "man" and "woman" and the
        system's captions keep them.
        """
        if vocabulary is None:
            return None
        word_counts = Counter(word for words in corpus.words for word in words)
        missing = Counter({word: count for word, count in word_counts.items() if word not in vocabulary})
        share = missing.total() / max(word_counts.total(), 1)
        if share < _MIN_GAP_SHARE:
            return None
        listed = ", ".join(word for word, _ in missing.most_common(3))
        return (
            f"{share:.0%} of the system's words are not in its vocabulary ({listed}): human captions lose "
            "them, its own keep them; 'observed' treats both alike"
        )

    def reference_counts(self) -> Counter[str]:
        """Number of human captions of each labelled image."""
        counts = Counter(self.study.references["image_id"].to_list())
        return Counter({image: count for image, count in counts.items() if image in self.group_of})

    def _human_captions(self) -> list[str]:
        frame = self.study.references
        return [caption for image, caption in frame.iter_rows() if image in self.group_of]

    @staticmethod
    def _sample_captions(
        captions_of: Mapping[str, Sequence[str]], images: Sequence[str], seed: int, count: int
    ) -> list[list[str]]:
        """Draw `count` captions of each image, without replacement while there are enough."""
        rng = np.random.default_rng([seed, 3])
        samples = []
        for image in images:
            order = rng.permutation(len(captions_of[image]))
            samples.append([captions_of[image][order[sample % len(order)]] for sample in range(count)])
        return [list(captions) for captions in zip(*samples, strict=True)]

    def _masked_words(self, captions: Sequence[str]) -> list[Words]:
        cache = _masked_cache(self.study, self.mask)
        new = list(dict.fromkeys(caption for caption in captions if caption not in cache))
        cache.update(zip(new, self.mask.apply(new), strict=True))
        return [cache[caption] for caption in captions]

    def _corpus(
        self, images: Sequence[str], captions: Sequence[str], vocabulary: set[str] | None = None
    ) -> Corpus:
        words = self._masked_words(captions)
        if vocabulary is not None:
            words = within_vocabulary(words, vocabulary)
        group = np.array([self.group_of[image] for image in images], dtype=np.int64)
        return Corpus(tuple(images), group, tuple(captions), tuple(words))


def default_vocabulary(study: Study, system: str) -> str:
    """Return the vocabulary rule that is used by default."""
    return "system" if study.vocabularies.get(system) else "observed"


def all_captions(study: Study) -> Iterator[str]:
    """Yield every caption of a study: those of systems and human captions."""
    for frame in (study.captions, study.references):
        yield from frame["caption"]


@lru_cache(maxsize=16)
def captions_by_image(study: Study, source: str) -> dict[str, list[str]]:
    """Captions of each image, sorted by sample number; images are in the order of the file."""
    captions_of: dict[str, list[str]] = {}
    for image, _, caption in study.captions_of(source).sort("sample", maintain_order=True).iter_rows():
        captions_of.setdefault(image, []).append(caption)
    return captions_of


@lru_cache(maxsize=4)
def _masked_cache(study: Study, mask: Mask) -> dict[str, Words]:  # noqa: ARG001
    """Masked words of captions seen so far. Human captions are masked once for all systems."""
    return {}
