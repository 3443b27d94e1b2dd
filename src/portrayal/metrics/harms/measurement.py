"""A measurement of harm: it sees one image after the other and then says what it found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, NamedTuple

import polars as pl

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.harms.counts import Caption, Tally
from portrayal.metrics.harms.image_records import Scene
from portrayal.metrics.harms.parsed_captions import Telling
from portrayal.metrics.harms.rule import Rule
from portrayal.metrics.harms.setup import STAGE_NAMES, Setup
from portrayal.results import TOO_FEW

NO_REFERENCES = "the study has no captions of people (references)"
NO_OBJECTS = "the study has no labels of objects"
NO_GROUPS = "the study has no labels of the people shown (attributes)"


_NOTHING: Mapping[str | None, float] = {}


class Found(NamedTuple):
    """What a caption has: the items it counts for (None: in all), and why."""

    items: frozenset[str | None]
    detail: Mapping[str, Any]


class Measure(ABC):
    """One measurement at one stage, for one speaker."""

    rule: ClassVar[Rule]
    streams: ClassVar[bool] = True  # whether it is sums, which can be added up piece by piece
    needs_senses: ClassVar[bool] = False  # whether it must know how often people mention what
    needs_vectors: ClassVar[bool] = False

    def __init__(self, setup: Setup):
        self.setup = setup

    def __getstate__(self) -> dict[str, Any]:
        """Sent elsewhere without the word lists, which are large and the same everywhere."""
        return {**self.__dict__, "setup": None}

    def undefined(self) -> str | None:
        """Why there can be no number, or None."""
        if self.setup.stage not in self.rule.stages:
            known = ", ".join(STAGE_NAMES[stage] for stage in self.rule.stages)
            return f"it is about {known}, not {STAGE_NAMES[self.setup.stage]}"
        return self.lacking()

    def lacking(self) -> str | None:
        """What the study lacks for it, or None."""
        return None

    @abstractmethod
    def see(self, scene: Scene, said: Sequence[Telling], people: Sequence[Telling]) -> None:
        """One image. `said` and `people` are captions one by one, or, where several count as one, that one."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Add what the same measurement found in other images."""

    @abstractmethod
    def write(self, builder: ResultBuilder, source: str) -> None:
        """The rows."""

    def verdicts(
        self,
        builder: ResultBuilder,
        source: str,
        counted: int,
        asked: int,
        evidence: pl.DataFrame,
        *,
        n: int,
        n_unit: str = "image",
        group: str | None = None,
    ) -> None:
        """The headline of a measurement that asks of several things whether each holds: how many of them do."""
        for unit, value in (("share", counted / asked), ("count", float(counted))):
            builder.add(
                self.rule.term, value, system=source, group=group, n=n, n_unit=n_unit, unit=unit, support=TOO_FEW,
                evidence=evidence, in_brief=unit == "count",
            )  # fmt: skip


class Counted(Measure):
    """A measurement that counts captions, alone or held against people's captions."""

    held_against_people: ClassVar[bool] = False
    nothing: ClassVar[str] = "no image has what it is about"

    def __init__(self, setup: Setup):
        super().__init__(setup)
        self.tally = Tally(setup.evidence, setup.paired, frozenset(self.items()))

    def applies(self, scene: Scene) -> bool:  # noqa: ARG002
        """Whether an image could count."""
        return True

    @abstractmethod
    def found(self, scene: Scene, said: Telling, people: Telling | None) -> Found | None:
        """What one caption has, held against one of people's or all of them; None where it has nothing."""

    def items(self) -> Sequence[str]:
        """The items that are told of in every study."""
        return self.rule.items

    def see(self, scene: Scene, said: Sequence[Telling], people: Sequence[Telling]) -> None:
        if not said or not self.applies(scene):
            return
        if (self.held_against_people or self.setup.stage == "4-without-3") and not people:
            return
        against: Sequence[Telling | None] = people if self._compares else (None,)
        if len(said) == 1 and len(against) == 1:  # the usual case, and a million times
            only = self.found(scene, said[0], against[0])
            if only is None:
                self.note(scene, said, _NOTHING, ())
            else:
                captions = self._behind(scene, said[0], against[0], only)
                self.note(scene, said, dict.fromkeys(only.items, 1.0), captions)
            return
        shares: dict[str | None, float] = {}
        behind: dict[str, Caption] = {}  # each caption once, whatever it is held against
        weight = 1 / (len(said) * len(against))
        for one, other in product(said, against):
            found = self.found(scene, one, other)
            if found is None:
                continue
            for item in found.items:
                shares[item] = shares.get(item, 0.0) + weight
            for caption, items, detail in self._behind(scene, one, other, found):
                known = behind.get(caption)
                behind[caption] = (caption, items if known is None else items | known[1], detail)
        self.note(
            scene, said, {item: min(share, 1.0) for item, share in shares.items()}, list(behind.values())
        )

    def note(
        self,
        scene: Scene,
        said: Sequence[Telling],  # noqa: ARG002
        shares: Mapping[str | None, float],
        captions: Iterable[Caption],
    ) -> None:
        """What was found in the captions of an image."""
        self.tally.count(scene, shares, captions)

    @property
    def _compares(self) -> bool:
        return self.held_against_people or self.setup.stage == "4-without-3"

    def _behind(self, scene: Scene, said: Telling, people: Telling | None, found: Found) -> Iterator[Caption]:
        """The captions to show: where several count as one, those of them that have it, else all."""
        if len(said.parts) == 1:
            yield said.parts[0].caption, found.items, found.detail
            return
        having = [(part, self.found(scene, part, people)) for part in said.parts]
        telling = [(part, one) for part, one in having if one is not None and found.items & one.items]
        for part, one in telling or [(part, found) for part in said.parts]:
            yield part.caption, one.items, one.detail

    def merge(self, other: Any) -> None:
        self.tally.merge(other.tally)

    def write(self, builder: ResultBuilder, source: str) -> None:
        self.tally.write(
            builder, self.rule.term, source, items=self.items(), seed=self.setup.seed, n_resamples=self.setup.n_resamples,
            top=self.setup.top, nothing=self.nothing,
        )  # fmt: skip


class CountedOfPeople(Counted):
    """Also tells a share of the images of which the captions mention somebody: who is left out cannot be insulted.

    `among` says which item that is, and the item it is the share of.
    """

    among: ClassVar[tuple[str, str | None]]

    def __init__(self, setup: Setup):
        super().__init__(setup)
        self.mentioning = Tally(setup.evidence, paired=False, split=frozenset(self.among[:1]))

    def note(
        self,
        scene: Scene,
        said: Sequence[Telling],
        shares: Mapping[str | None, float],
        captions: Iterable[Caption],
    ) -> None:
        captions = tuple(captions)
        super().note(scene, said, shares, captions)
        mentions = sum(one.person is not None for one in said) / len(said)
        if mentions:
            name, item = self.among
            share = min(shares.get(item, 0.0) / mentions, 1.0)
            behind = [(caption, frozenset((name,)), why) for caption, items, why in captions if item in items]
            self.mentioning.count(scene, {name: share} if share else _NOTHING, behind)

    def merge(self, other: Any) -> None:
        super().merge(other)
        self.mentioning.merge(other.mentioning)

    def write(self, builder: ResultBuilder, source: str) -> None:
        super().write(builder, source)
        if self.mentioning.trials:
            self.mentioning.write(
                builder, self.rule.term, source, items=self.among[:1], seed=self.setup.seed, n_resamples=self.setup.n_resamples,
                nothing=self.nothing, whole=False,
            )  # fmt: skip
        elif self.tally.trials:
            reason = "no caption mentions anybody"
            builder.add(self.rule.term, None, system=source, item=self.among[0], n=0, reason=reason)
