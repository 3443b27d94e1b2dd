"""LIC: what masked captions still give away about the person shown, and whether people's captions give away as much."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import polars as pl

from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import Lexicon
from portrayal.metrics.card import Card, Term
from portrayal.metrics.findings import Findings
from portrayal.metrics.guessing.contributions import contributions
from portrayal.metrics.guessing.evidence import repeated
from portrayal.metrics.guessing.protocol import PUBLISHED, Readings
from portrayal.metrics.guessing.reading import REFERENCES, Reader, usual_vocabulary
from portrayal.metrics.guessing.setup import MOST_STRENGTH, Setup, variants
from portrayal.metrics.guessing.splits import FOLDS, PAPER_SEEDS, REPEATS, unseen
from portrayal.metrics.guessing.tally import Spread, difference
from portrayal.metrics.guessing.text import Mask
from portrayal.metrics.guessing.voice import ACCURACY, CALIBRATED, CONFIDENCE, Voice
from portrayal.metrics.metric import metric
from portrayal.metrics.options import Draws
from portrayal.results import HUMAN, TOO_FEW
from portrayal.stats import DRAWS, Estimate, benjamini_hochberg, resampler
from portrayal.study import Study

Name = Literal["crossfit", "common", "paper", "paper-unseen"]
NULL = 200  # dealings of labels behind the null of the leak-safe splits
STRENGTH = 0.1
FEW_OF_WORD = 20  # captions kept behind a word
_BESIDE_SCORE = {"lic_m_calibrated": CALIBRATED, "accuracy": ACCURACY, "confidence": CONFIDENCE}

CARD = Card(
    name="lic",
    title="What captions give away (LIC)",
    question="How well can the group of the person shown be guessed from a caption with its group words hidden, and "
    "is it easier than from people's captions of the same images?",
    formula=(
        "A classifier learns to guess the group from captions whose words for it are hidden. A tested caption scores "
        "the confidence in the true group where that is the guess, else 0. lic_m = 100 x the mean over groups of the "
        "groups' mean scores, over the system's captions; lic_d = the same over people's captions of the same images, "
        "in words that the system knows; lic = lic_m_paired - lic_d, both on the images that people described often "
        "enough. null_m and null_d: the same with labels dealt at random. "
        "lic_excess = (lic_m_paired - its null) - (lic_d - null_d). "
        "p of lic_m and lic_d: how often chance labels reach them, (1 + times) / (1 + dealings); of lic and "
        "lic_excess: from the paired bootstrap. word: what a word adds to the log odds of the group, mean over the "
        "group's tested captions that have it."
    ),
    range="lic_m, lic_d: 0 to 100. lic: -100 to 100; above 0 the system gives away more than people do.",
    needs=("captions", "attributes"),
    paper=(
        "Hirota, Nakashima and Garcia, Quantifying Societal Bias Amplification in Image Captioning, CVPR 2022; "
        "reproduced and extended by Türk et al., Exploring the Explainability of Bias in Image Captioning Models, "
        "2023, and by Antequera et al., RELIC, 2023."
    ),
    caveats=(
        "Chance is not 25 (for two groups): a classifier that has learnt nothing is still sure of something. Read "
        "lic_m against its null, and lic_excess rather than lic.",
        "Captions of one system repeat each other. The published split learns and tests the same caption; 'crossfit' "
        "never does. A system that repeats itself looks different under the two, and both are shown.",
        "What gives a group away is not wrong in itself: an activity that the image shows and more of one group do "
        "gives it away too. lic holds the system against people who saw the same images.",
        "It depends on the classifier, the word list and the vocabulary: --sensitivity shows by how much.",
        "The label is what annotators saw, not what the person would say of themselves.",
    ),
    terms=(
        Term("lic_m", "what the system's captions give away (ideal: its null)", "percent", "lower"),
        Term("lic_m_calibrated", "the same by a classifier that is as sure as it is right", "percent", "lower"),
        Term("lic_d", "what people's captions of the same images give away", "percent"),
        Term("lic_m_paired", "lic_m on the images that people described often enough", "percent", "lower"),
        Term("lic", "what the system gives away beyond people", "percent", "lower", 0.0),
        Term("lic_excess", "lic with chance taken off both sides", "percent", "lower", 0.0),
        Term("null_m", "lic_m with labels dealt at random; the interval holds 95 % of the dealings", "percent"),
        Term("null_d", "lic_d with labels dealt at random", "percent"),
        Term("accuracy", "captions whose group is guessed, mean over groups", "percent"),
        Term("confidence", "how sure the classifier is of what it guesses, mean over groups", "percent"),
        Term("duplicates", "captions said of another image too; under a published split, tested ones that were learnt",
             "percent"),
        Term("unseen", "lic_m on the tested captions that were not learnt (n: how many; raw or masked text)", "percent",
             "lower"),
        Term("word", "what the word adds for this group in the captions that have it", "contribution", None, 0.0),
    ),
    responds_to={"lic_m": "data-bias", "lic": "amplification", "lic_excess": "amplification"},
    uses=("references",),
    should_ignore=("wrong-group", "neutral", "hallucination", "length", "vocabulary", "repetition"),
    learns=True,
    lab_notes=dict.fromkeys(
        ("lic", "lic_excess"),
        "a captioner that truthfully names what is shown uses fewer different words for it than five annotators, and "
        "what is said in few words is learnt more easily; dials that change how many different captions there are move "
        "it for the same reason",
    ),
)  # fmt: skip


@metric(
    CARD,
    slow=True,
    audit={"split": ("crossfit", "paper", "paper-unseen")},
    quick={"split": ("crossfit",), "null": 40},
)
def lic(
    study: Study,
    *,
    attribute: str,
    speakers: Sequence[str],
    seed: int = 0,
    draws: Draws = DRAWS,
    classifier: Annotated[Literal["linear"], "What guesses the group."] = "linear",
    split: Annotated[
        tuple[Name, ...],
        "What is learnt and what is tested; give it several times to see them side by side.",
    ] = ("crossfit",),
    vocabulary: Annotated[
        Literal["system", "observed", "common", "none"] | None,
        "The words that people's captions are told in. By default those of the system's vocabulary file, else "
        "those it uses here.",
    ] = None,
    balance: Annotated[
        Literal["weights", "subsample"],
        "How groups of different size count alike; the published split always draws a sample.",
    ] = "weights",
    seeds: Annotated[
        tuple[int, ...] | None,
        "A number for each repeat, separated by commas. By default five repeats; for the published split its ten.",
    ] = None,
    null: Annotated[
        int | None,
        "How often labels are dealt at random to know chance. By default 200; 0 for the published split and with "
        "--sensitivity.",
        0,
    ] = None,
    lexicon: Annotated[str | Lexicon | None, "Words to hide: a shipped list or a TOML file."] = None,
    mask: Annotated[
        bool | None,
        "Hide the words that name the group. By default as the attribute's list says (race words stay); a list that "
        "is named is hidden.",
    ] = None,
    hide: Annotated[
        Literal["replace", "remove"], "Put one token in place of hidden words, or nothing."
    ] = "replace",
    strength: Annotated[
        float, "How freely the classifier learns (inverse regularisation, C).", 1e-6
    ] = STRENGTH,
    folds: Annotated[int, "Parts into which captions are cut, each tested once.", 2] = FOLDS,
    references: Annotated[
        int | None, "People's captions used of each image. By default 5, or what most images have.", 1
    ] = None,
    sensitivity: Annotated[
        bool, "Also change the word list, mask, vocabulary, balance and strength, one at a time."
    ] = False,
) -> Findings:
    """LIC of each system, with its null, its intervals, its reasons, and what it looks like under other settings.

    >>> import polars as pl, portrayal
    >>> n = 200
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(n), "system": ["s"] * n,
    ...                            "caption": [f"a man {'cooks' if i % 2 else 'skis'} {i}" for i in range(n)]}),
    ...     attributes=pl.DataFrame({"image_id": range(n), "gender": ["female", "male"] * (n // 2)}))
    >>> found = portrayal.metrics.lic(study, null=0)
    >>> next(m.value for m in found.measurements if m.term == "accuracy" and m.group is None)
    100.0
    """
    groups = study.groups(attribute)
    if len(groups) < 2:
        raise Undefined(f"A group can only be guessed among several, and '{attribute}' has {len(groups)}.")
    if not strength <= MOST_STRENGTH:
        raise PortrayalError(
            f"The option 'strength' must be {MOST_STRENGTH:g} or less. Got {strength!r} instead."
        )
    splits = dict.fromkeys(_several(split))
    base = Setup(
        split="",
        balance=balance,
        seeds=(),
        folds=folds,
        strength=strength,
        vocabulary=vocabulary,
        mask=Mask.for_attribute(attribute, lexicon, mask, hide == "remove"),
        null=0,
        references=references,
        classifier=classifier,
    )
    truth = {image: groups.index(group) for image, group in study.labels(attribute).iter_rows()}
    findings = Findings(CARD, attribute, {})
    for name in splits:
        published = name in PUBLISHED
        usual_seeds = PAPER_SEEDS if published else tuple(range(REPEATS * seed, REPEATS * (seed + 1)))
        usual_null = 0 if published or sensitivity else NULL
        setup = replace(
            base,
            split=name,
            seeds=tuple(seeds) if seeds else usual_seeds,
            seeds_follow=not seeds and not published,
            null=usual_null if null is None else null,
        )
        for system in speakers:
            if system == HUMAN:  # people's captions are measured in the words of each system
                continue
            usual = usual_vocabulary(study, system)
            cases = [setup, *(variants(setup, study, attribute, usual) if sensitivity else ())]
            for case in cases:
                reader = Reader(study, truth, case.mask, in_order=case.published)
                under = replace(findings, settings=case.settings(case.vocabulary or usual))
                in_full = case is setup and name == next(iter(splits))
                _Case(under, system, case, reader, groups, seed, draws).measure(in_full)
    return findings


def _several(names: str | Sequence[str]) -> Sequence[str]:
    """One name is written without brackets."""
    return (names,) if isinstance(names, str) else names


@dataclass(frozen=True)
class _Case:
    """One system under one setup, and where its rows go."""

    findings: Findings
    system: str
    setup: Setup
    reader: Reader
    groups: tuple[str, ...]
    seed: int
    draws: int

    def measure(self, in_full: bool) -> None:
        """Every row; in full, which is for the first settings asked for, also what each word adds."""
        try:
            corpora = self.reader.of_system(self.system, self.setup.seeds)
            mine = self._voice([[corpus] for corpus in corpora], in_full=True)
        except Undefined as reason:
            self.findings.add("lic_m", None, system=self.system, n=0, reason=str(reason))
            return
        self._system_alone(mine)
        try:
            self._beside_people(mine)
        except Undefined as reason:
            for term in (
                "lic_d",
                "lic_m_paired",
                "lic",
                *(("null_d", "lic_excess") if self.setup.null else ()),
            ):
                self.findings.add(
                    term, None, system=self.system, n=int(mine.tested.sum()), reason=str(reason)
                )
        for term, column in _BESIDE_SCORE.items():
            for group in self._each:
                self._add(term, mine, mine.spread(group, column), group, mine.told.rows(group))
        self._repeats(mine)
        if in_full:
            self._words(mine)

    def _voice(self, readings: Readings, in_full: bool = False) -> Voice:
        """The guesses from these captions; in full with more than their scores."""
        present = np.bincount(readings[0][0].group, minlength=len(self.groups))
        missing = [group for group, count in zip(self.groups, present, strict=True) if not count]
        if missing:
            raise Undefined(f"no captioned image of {' or '.join(missing)}")
        protocol = self.setup.protocol(len(self.groups))
        return Voice(
            protocol,
            readings,
            protocol.guess(readings),
            self.groups,
            self.seed,
            self.draws,
            self.setup.null,
            in_full,
        )

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
        paired, people, note = self._pair(mine)
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
            found = difference(paired.tally, people.tally, group, self.seed, self.draws)
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

    def _pair(self, mine: Voice) -> tuple[Voice, Voice, str | None]:
        """The system and people on the images that people described often enough, and what that leaves out."""
        if not self.reader.study.references.height:
            raise Undefined("the study has no captions of people (references)")
        images = mine.corpus.images
        counts = self.reader.references()
        usual = Counter(counts[image] for image in images if counts[image]).most_common(1)
        if not usual:
            raise Undefined("people described none of the images")
        wanted = self.setup.references or min(REFERENCES, usual[0][0])
        kept = [place for place, image in enumerate(images) if counts[image] >= wanted]
        if not kept:
            raise Undefined(f"people described no image {wanted} times")
        paired, note = mine, None
        if len(kept) < len(images):
            left = f"{len(images) - len(kept):,} of {len(images):,} images"
            note = f"{left} have fewer than {wanted} captions by people and are left out"
            smaller = {id(some[0]): some[0].only(kept) for some in mine.readings}
            paired = self._voice([[smaller[id(some[0])]] for some in mine.readings])
        words = self.reader.vocabulary(self.system, str(self.findings.settings["vocabulary"]))
        note = "; ".join(filter(None, (note, self.reader.lacking(mine.corpus, words)))) or None
        people = self._voice(self.reader.of_people(paired.corpus.images, self.setup.seeds, wanted, words))
        if self.setup.split == "paper-unseen":
            counts_of = [f"{voice.tested.sum():,.0f}" for voice in (paired, people)]
            unlike = (
                f"tested on {counts_of[0]} images for the system and {counts_of[1]} for people, each unseen"
            )
            note = "; ".join(filter(None, (note, unlike)))
        return paired, people, note

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
            guesses = [[some[0].only(which)] for some, which in zip(tested, left, strict=True)]
            part = replace(mine, protocol=everything, guesses=guesses, in_full=False)
            count = round(float(np.mean([which.sum() for which in left])))
            self._add("unseen", part, part.spread(None), None, part.told.rows(), item=item, n=count)

    def _words(self, mine: Voice) -> None:
        guesses = [some[0] for some in mine.guesses]
        if any(one.corpus is not guesses[0].corpus for one in guesses):
            guesses = guesses[:1]  # several captions of an image: each repeat has others
        for number, group in enumerate(self.groups):
            found = contributions(guesses, number, TOO_FEW)
            found = [one for one in found if one.word not in self.setup.mask.tokens]
            q = benjamini_hochberg([one.p if one.captions >= TOO_FEW else None for one in found])
            for one, corrected in zip(found, q, strict=True):
                self.findings.add(
                    "word",
                    Estimate(one.value, one.low, one.high, one.se, np.empty(0)),
                    system=self.system,
                    group=group,
                    item=one.word,
                    n=one.captions,
                    n_unit="caption",
                    std_seed=one.std_seed,
                    p=one.p,
                    q=corrected,
                    evidence=mine.told.rows(number, word=one.word, most=FEW_OF_WORD),
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
        self.findings.add(
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
            resampler=resampler(voice.tally.images, self.seed, self.draws),
        )
