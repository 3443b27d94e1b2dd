"""The rows of LIC: one system under one setup, its captions and people's, and every number that is made of them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from portrayal.errors import Undefined
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.lic.settings import Setup
from portrayal.metrics.shared.classifier.aggregation import Spread, difference
from portrayal.metrics.shared.classifier.captions import REFERENCES, Reader
from portrayal.metrics.shared.classifier.evaluation import ACCURACY, CALIBRATED, CONFIDENCE, Voice
from portrayal.metrics.shared.classifier.evidence import repeated
from portrayal.metrics.shared.classifier.protocol import Protocol, Readings
from portrayal.metrics.shared.classifier.splits import unseen
from portrayal.metrics.shared.classifier.word_attributions import caption_totals, word_attributions
from portrayal.metrics.shared.classifier.word_contributions import Contribution, contributions
from portrayal.models.text_classifiers.tasks import Task
from portrayal.results import TOO_FEW
from portrayal.stats import Estimate, benjamini_hochberg, resampler

FEW_OF_WORD = 20  # captions kept behind a word
_BESIDE_SCORE = {"lic_m_calibrated": CALIBRATED, "accuracy": ACCURACY, "confidence": CONFIDENCE}


@dataclass(frozen=True)
class _Pair:
    """The system and people on the images that people described often enough, and what that leaves out."""

    system: Readings
    people: Readings
    note: str | None


@dataclass(frozen=True, eq=False)
class Case:
    """One system under one setup, and where its rows go."""

    builder: ResultBuilder
    system: str
    setup: Setup
    reader: Reader
    groups: tuple[str, ...]
    seed: int
    n_resamples: int

    @cached_property
    def _protocol(self) -> Protocol:
        return self.setup.protocol(len(self.groups))

    @cached_property
    def _own(self) -> Readings:
        """The system's captions."""
        return self._checked([[corpus] for corpus in self.reader.of_system(self.system, self.setup.seeds)])

    def _checked(self, readings: Readings) -> Readings:
        present = np.bincount(readings[0][0].group, minlength=len(self.groups))
        missing = [group for group, count in zip(self.groups, present, strict=True) if not count]
        if missing:
            raise Undefined(f"no captioned image of {' or '.join(missing)}")
        return readings

    @cached_property
    def _pair(self) -> _Pair:
        if not self.reader.study.references.height:
            raise Undefined("the study has no captions of people (references)")
        images = self._own[0][0].images
        counts = self.reader.references()
        usual = Counter(counts[image] for image in images if counts[image]).most_common(1)
        if not usual:
            raise Undefined("people described none of the images")
        wanted = self.setup.references or min(REFERENCES, usual[0][0])
        kept = [place for place, image in enumerate(images) if counts[image] >= wanted]
        if not kept:
            raise Undefined(f"people described no image {wanted} times")
        paired, note = self._own, None
        if len(kept) < len(images):
            left = f"{len(images) - len(kept):,} of {len(images):,} images"
            note = f"{left} have fewer than {wanted} captions by people and are left out"
            smaller = {id(some[0]): some[0].only(kept) for some in self._own}
            paired = self._checked([[smaller[id(some[0])]] for some in self._own])
        words = self.reader.vocabulary(self.system, str(self.builder.settings["vocabulary"]))
        lacking = self.reader.lacking(self._own[0][0], words)
        people = self.reader.of_people(paired[0][0].images, self.setup.seeds, wanted, words)
        return _Pair(paired, people, "; ".join(filter(None, (note, lacking))) or None)

    def tasks(self) -> list[Task]:
        """All that a neural guesser will have to learn, but for chance."""
        made: list[Task] = []
        try:
            made += self._protocol.tasks(self._own)
            if self._pair.system is not self._own:
                made += self._protocol.tasks(self._pair.system)
            made += self._protocol.tasks(self._pair.people)
        except Undefined:
            pass  # is said where the number would stand
        return made

    def measure(self, in_full: bool) -> None:
        """Every row; in full, which is for the first settings asked for, also what each word adds."""
        try:
            mine = self._voice(self._own, in_full=True)
            _ = mine.tally  # computed on demand: what is undefined is to be known before the first row
        except Undefined as reason:
            self.builder.add("lic_m", None, system=self.system, n=0, reason=str(reason))
            return
        self._system_alone(mine)
        try:
            self._beside_people(mine)
        except Undefined as reason:
            for term in (
                "lic_d",
                "lic_m_paired",
                "lic",
                *(("null_d", "lic_excess") if self.setup.permutations else ()),
            ):
                self.builder.add(term, None, system=self.system, n=int(mine.tested.sum()), reason=str(reason))
        self._beside_score(mine)
        self._repeats(mine)
        if in_full and self.setup.explained:
            self._words(mine)

    def _voice(self, readings: Readings, in_full: bool = False) -> Voice:
        """The guesses from these captions; in full with more than their scores."""
        return Voice(
            self._protocol,
            readings,
            self._protocol.guess(readings),
            self.groups,
            self.seed,
            self.n_resamples,
            self.setup.permutations,
            in_full,
        )

    def _beside_score(self, mine: Voice) -> None:
        for term, column in _BESIDE_SCORE.items():
            if column == CALIBRATED and not self._protocol.calibrates:
                reason = "how sure it should be is known from other seeds only, and there is one"
                self.builder.add(term, None, system=self.system, n=int(mine.tested.sum()), reason=reason)
                continue
            for group in self._each:
                self._add(term, mine, mine.spread(group, column), group, mine.told.rows(group))

    @property
    def _each(self) -> tuple[int | None, ...]:
        """All people, then each group."""
        return (None, *range(len(self.groups)))

    def _system_alone(self, mine: Voice) -> None:
        note = self._cost_of_common_folds(mine)
        for group in self._each:
            self._add(
                "lic_m", mine, mine.spread(group), group, self._scores(mine, group), chance=True, note=note
            )
        self._add_null("null_m", mine)

    def _scores(self, voice: Voice, group: int | None) -> pl.DataFrame:
        """Captions with their scores; of all people every one, so that two systems can be compared by them."""
        if group is not None or self.setup.published:
            return voice.told.rows(group)
        return voice.told.rows(most=None, more=voice.effects())

    def _beside_people(self, mine: Voice) -> None:
        pair, note = self._pair, self._pair.note
        paired = mine if pair.system is self._own else self._voice(pair.system)
        people = self._voice(pair.people)
        if self.setup.split == "paper-unseen":
            counts = [f"{voice.tested.sum():,.0f}" for voice in (paired, people)]
            unlike = f"tested on {counts[0]} images for the system and {counts[1]} for people, each unseen"
            note = "; ".join(filter(None, (note, unlike)))
        for group in self._each:
            self._add(
                "lic_d", people, people.spread(group), group, people.told.rows(group), chance=True, note=note
            )
        self._add_null("null_d", people)
        for group in self._each:
            captions = self._scores(paired, group)
            self._add("lic_m_paired", paired, paired.spread(group), group, captions, chance=True, note=note)
        score = people.tally.mean_by_image()

        def of_people(image: str) -> dict[str, float]:
            return {"people's score": round(score[image], 3)} if image in score else {}

        for group in self._each:
            captions = paired.told.rows(group, more=of_people)
            found = difference(paired.tally, people.tally, group, self.seed, self.n_resamples)
            self._add("lic", paired, found, group, captions, p=found.p, note=note)
            ours, theirs = paired.chance(group), people.chance(group)
            if (
                ours is not None
                and theirs is not None
                and ours.value is not None
                and theirs.value is not None
            ):
                error = math.hypot(paired.chance_error(group), people.chance_error(group))
                excess = found.moved(theirs.value - ours.value, error)
                self._add("lic_excess", paired, excess, group, captions, p=excess.p, note=note)

    def _repeats(self, mine: Voice) -> None:
        """How often captions repeat each other, and what is left where none of the tested ones was learnt."""
        corpus = mine.corpus
        times = corpus.design.times[corpus.design.row]
        captions = repeated(corpus.captions, corpus.images, times)
        if not self.setup.published:
            share = Spread.of([float(np.mean(times > 1))])
            self._add("duplicates", mine, share, None, captions, n=len(times))
            return
        everything = replace(mine.protocol, split="paper")
        tested = mine.guesses if mine.protocol == everything else everything.guess(mine.readings)
        drawn = [everything.splits(some[0], seed)[0]
                 for seed, some in zip(self.setup.seeds, mine.readings, strict=True)]  # fmt: skip
        new = {
            "raw": [
                unseen(some[0].captions, split) for split, some in zip(drawn, mine.readings, strict=True)
            ],
            "masked": [
                unseen(some[0].words, split) for split, some in zip(drawn, mine.readings, strict=True)
            ],
        }
        share = Spread.of([1 - float(part.mean()) for part in new["masked"]])
        self._add("duplicates", mine, share, None, captions, n=len(drawn[0].test))
        for item, left in new.items():
            if not any(which.any() for which in left):
                reason = "every tested caption was learnt too"
                self.builder.add(
                    "unseen", None, system=self.system, item=item, n=0, n_unit="caption", reason=reason
                )
                continue
            guesses = [[some[0].only(which)] for some, which in zip(tested, left, strict=True)]
            part = replace(mine, protocol=everything, guesses=guesses, in_full=False)
            count = round(float(np.mean([which.sum() for which in left])))
            self._add("unseen", part, part.spread(None), None, part.told.rows(), item=item, n=count)

    def _words(self, mine: Voice) -> None:
        """What each word adds: by the weights of a linear guesser, by gradients of a neural one."""
        guesses = [some[0] for some in mine.guesses]
        exact = guesses[0].weights is not None
        if exact and any(one.corpus is not guesses[0].corpus for one in guesses):
            guesses = guesses[:1]  # several captions of an image: each repeat has others
        by_text = self._protocol.clusters == "text"
        if not exact:
            self._totals(mine, by_text)
        for number, group in enumerate(self.groups):
            found = (
                contributions(guesses, number, TOO_FEW)
                if exact
                else word_attributions(guesses, number, TOO_FEW, by_text)
            )
            found = [one for one in found if one.word not in self.setup.mask.tokens]
            q = benjamini_hochberg([one.p if one.captions >= TOO_FEW else None for one in found])
            for one, corrected in zip(found, q, strict=True):
                captions = mine.told.rows(number, word=one.word, most=FEW_OF_WORD)
                self._add_contribution("word", one, group, captions, item=one.word, q=corrected)

    def _totals(self, mine: Voice, by_text: bool) -> None:
        """What the words of a caption add up to, for each group and over groups, as the paper sums them."""
        found = caption_totals([some[0] for some in mine.guesses], len(self.groups), by_text)
        if not found:
            reason = "no caption of one of the groups was guessed right"
            self.builder.add("attribution", None, system=self.system, n=0, reason=reason)
        for one, number in zip(found, (*range(len(self.groups)), None), strict=bool(found)):
            group = None if number is None else self.groups[number]
            self._add_contribution("attribution", one, group, mine.told.rows(number))

    def _add_contribution(
        self,
        term: str,
        one: Contribution,
        group: str | None,
        captions: pl.DataFrame,
        *,
        item: str | None = None,
        q: float | None = None,
    ) -> None:
        self.builder.add(
            term,
            Estimate(one.value, one.low, one.high, one.se, np.empty(0)),
            system=self.system,
            group=group,
            item=item,
            n=one.captions,
            n_unit="caption",
            std_seed=one.std_seed,
            p=one.p,
            q=q,
            evidence=captions,
        )

    def _cost_of_common_folds(self, mine: Voice) -> str | None:
        """Equal captions may not be learnt where one of them is tested."""
        if self.setup.split != "common":
            return None
        parts = mine.protocol.splits(mine.corpus, self.setup.seeds[0])
        tested = sum(len(part.test) for part in parts)
        kept = sum(len(part.train) for part in parts) / sum(tested - len(part.test) for part in parts)
        return f"common folds keep {kept:.0%} of the captions to learn from; the others repeat a tested one"

    def _add_null(self, term: str, voice: Voice) -> None:
        for group in self._each:
            spread = voice.chance(group)
            if spread is not None:
                self._add(term, voice, spread, group, voice.told.rows(group))

    def _add(
        self,
        term: str,
        voice: Voice,
        spread: Spread,
        group: int | None,
        captions: pl.DataFrame | None,
        *,
        item: str | None = None,
        n: int | None = None,
        chance: bool = False,
        p: float | None = None,
        note: str | None = None,
    ) -> None:
        """A row. With `chance` its ideal is its null and its p is held against that; `n` counts captions."""
        images = round(float(voice.tested.sum() if group is None else voice.tested[group]))
        support = round(float(voice.tested.min())) if group is None else images
        if term == "duplicates":
            support = n or 0  # counts captions, whatever was tested
        null = voice.chance(group) if chance else None
        if spread.value is None:
            note = "no caption of one of the groups was tested"
        elif support < TOO_FEW:
            note = None  # that there are too few is said instead
        self.builder.add(
            term,
            spread.estimate,
            system=self.system,
            group=None if group is None else self.groups[group],
            item=item,
            n=images if n is None else n,
            n_unit="image" if n is None else "caption",
            support=support,
            std_seed=spread.std_seed,
            p=voice.p(group) if chance else p,
            ideal=None if null is None else null.value,
            reason=note,
            evidence=captions,
            resampler=resampler(voice.tally.images, self.seed, self.n_resamples),
        )
