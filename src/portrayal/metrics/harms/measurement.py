"""Base classes of the measurements: images are added one by one, then the rows are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, NamedTuple

import polars as pl

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.harms.counts import CaptionCounts, CountedCaption
from portrayal.metrics.harms.image_records import ImageRecord
from portrayal.metrics.harms.measurement_card import MeasurementCard
from portrayal.metrics.harms.parsed_captions import Parsed
from portrayal.metrics.harms.settings import STAGE_NAMES, HarmSettings
from portrayal.results import TOO_FEW

NO_REFERENCES = "the study has no human captions (references)"
NO_OBJECTS = "the study has no labels of objects"
NO_GROUPS = "the study has no labels of the people shown (attributes)"


_NO_SHARES: Mapping[str | None, float] = {}


class CaptionMatch(NamedTuple):
    """Why a caption counts: the items it counts for (None: in all), and the evidence detail."""

    items: frozenset[str | None]
    detail: Mapping[str, Any]


class HarmMeasurement(ABC):
    """One measurement of one source at one stage."""

    card: ClassVar[MeasurementCard]
    additive: ClassVar[bool] = True  # whether counts of parts of a study can be added up
    needs_senses: ClassVar[bool] = False  # whether it needs the number of images that mention each sense
    needs_vectors: ClassVar[bool] = False

    def __init__(self, settings: HarmSettings):
        self.settings = settings

    def __getstate__(self) -> dict[str, Any]:
        """Pickled without the settings: word lists are large, and the receiving process has them."""
        return {**self.__dict__, "settings": None}

    def undefined_reason(self) -> str | None:
        """Why the measurement is undefined at this stage of this study; None if it is defined."""
        if self.settings.stage not in self.card.stages:
            known = ", ".join(STAGE_NAMES[stage] for stage in self.card.stages)
            return f"it is about {known}, not {STAGE_NAMES[self.settings.stage]}"
        return self.missing_data()

    def missing_data(self) -> str | None:
        """What the study lacks for the measurement; None if it lacks nothing."""
        return None

    @abstractmethod
    def add_image(self, record: ImageRecord, parsed: Sequence[Parsed], human: Sequence[Parsed]) -> None:
        """Add one image.

        Parameters
        ----------
        record
            What the study holds about the image.
        parsed
            Captions of the source.
        human
            Human captions to compare with; with reference=any, several are merged into one.
        """

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Add the counts of the same measurement over other images."""

    @abstractmethod
    def write(self, builder: ResultBuilder, source: str) -> None:
        """Add the rows of the results."""

    def write_headline(
        self,
        builder: ResultBuilder,
        source: str,
        n_significant: int,
        n_tested: int,
        evidence: pl.DataFrame,
        *,
        n: int,
        n_unit: str = "image",
        group: str | None = None,
    ) -> None:
        """Add the headline of a measurement that tests several things: how many tests are significant."""
        for unit, value in (("share", n_significant / n_tested), ("count", float(n_significant))):
            builder.add(
                self.card.term, value, system=source, group=group, n=n, n_unit=n_unit, unit=unit, support=TOO_FEW,
                evidence=evidence, in_brief=unit == "count",
            )  # fmt: skip


class CaptionCountMeasurement(HarmMeasurement):
    """A measurement that counts captions, by themselves or compared with human captions."""

    compares_with_human: ClassVar[bool] = False
    empty_reason: ClassVar[str] = "the measurement applies to no image"

    def __init__(self, settings: HarmSettings):
        super().__init__(settings)
        self.counts = CaptionCounts(settings.evidence, settings.paired, frozenset(self.items()))

    def applies_to(self, record: ImageRecord) -> bool:  # noqa: ARG002
        """Whether the measurement applies to an image."""
        return True

    @abstractmethod
    def match(self, record: ImageRecord, parsed: Parsed, human: Parsed | None) -> CaptionMatch | None:
        """Why one caption counts, compared with one human caption or with all of them; None if it does not count."""

    def items(self) -> Sequence[str]:
        """The items that have rows in every study."""
        return self.card.items

    def add_image(self, record: ImageRecord, parsed: Sequence[Parsed], human: Sequence[Parsed]) -> None:
        if not parsed or not self.applies_to(record):
            return
        if (self.compares_with_human or self.settings.stage == "4-without-3") and not human:
            return
        references: Sequence[Parsed | None] = human if self._compares else (None,)
        if len(parsed) == 1 and len(references) == 1:  # a fast path for the most frequent case
            match = self.match(record, parsed[0], references[0])
            if match is None:
                self.add_shares(record, parsed, _NO_SHARES, ())
            else:
                captions = self._counted_captions(record, parsed[0], references[0], match)
                self.add_shares(record, parsed, dict.fromkeys(match.items, 1.0), captions)
            return
        shares: dict[str | None, float] = {}
        counted: dict[str, CountedCaption] = {}  # each caption once, with the items of all comparisons
        weight = 1 / (len(parsed) * len(references))
        for caption_parsed, reference in product(parsed, references):
            match = self.match(record, caption_parsed, reference)
            if match is None:
                continue
            for item in match.items:
                shares[item] = shares.get(item, 0.0) + weight
            for caption, items, detail in self._counted_captions(record, caption_parsed, reference, match):
                known = counted.get(caption)
                counted[caption] = (caption, items if known is None else items | known[1], detail)
        self.add_shares(
            record, parsed, {item: min(share, 1.0) for item, share in shares.items()}, list(counted.values())
        )

    def add_shares(
        self,
        record: ImageRecord,
        parsed: Sequence[Parsed],  # noqa: ARG002
        shares: Mapping[str | None, float],
        captions: Iterable[CountedCaption],
    ) -> None:
        """Add the shares of an image's captions that count for each item, with the captions."""
        self.counts.add(record, shares, captions)

    @property
    def _compares(self) -> bool:
        return self.compares_with_human or self.settings.stage == "4-without-3"

    def _counted_captions(
        self, record: ImageRecord, parsed: Parsed, human: Parsed | None, match: CaptionMatch
    ) -> Iterator[CountedCaption]:
        """Yield the captions for the evidence: of merged captions, those that count by themselves, else all."""
        if len(parsed.parts) == 1:
            yield parsed.parts[0].caption, match.items, match.detail
            return
        matches = [(part, self.match(record, part, human)) for part in parsed.parts]
        counting = [(part, own) for part, own in matches if own is not None and match.items & own.items]
        for part, own in counting or [(part, match) for part in parsed.parts]:
            yield part.caption, own.items, own.detail

    def merge(self, other: Any) -> None:
        self.counts.merge(other.counts)

    def write(self, builder: ResultBuilder, source: str) -> None:
        self.counts.write(
            builder, self.card.term, source, items=self.items(), seed=self.settings.seed,
            n_resamples=self.settings.n_resamples, top=self.settings.top, empty_reason=self.empty_reason,
        )  # fmt: skip


class CaptionCountAmongMentions(CaptionCountMeasurement):
    """Also reports the share among images whose captions mention a person: a caption without people cannot demean any.

    `mention_item` is the name of that item, and the item whose share it is (None: in all).
    """

    mention_item: ClassVar[tuple[str, str | None]]

    def __init__(self, settings: HarmSettings):
        super().__init__(settings)
        self.mention_counts = CaptionCounts(
            settings.evidence, paired=False, items_by_group=frozenset(self.mention_item[:1])
        )

    def add_shares(
        self,
        record: ImageRecord,
        parsed: Sequence[Parsed],
        shares: Mapping[str | None, float],
        captions: Iterable[CountedCaption],
    ) -> None:
        captions = tuple(captions)
        super().add_shares(record, parsed, shares, captions)
        mentions = sum(caption.person is not None for caption in parsed) / len(parsed)
        if mentions:
            name, item = self.mention_item
            share = min(shares.get(item, 0.0) / mentions, 1.0)
            counted = [
                (caption, frozenset((name,)), detail) for caption, items, detail in captions if item in items
            ]
            self.mention_counts.add(record, {name: share} if share else _NO_SHARES, counted)

    def merge(self, other: Any) -> None:
        super().merge(other)
        self.mention_counts.merge(other.mention_counts)

    def write(self, builder: ResultBuilder, source: str) -> None:
        super().write(builder, source)
        if self.mention_counts.n_images:
            self.mention_counts.write(
                builder, self.card.term, source, items=self.mention_item[:1], seed=self.settings.seed,
                n_resamples=self.settings.n_resamples, empty_reason=self.empty_reason, overall=False,
            )  # fmt: skip
        elif self.counts.n_images:
            reason = "no caption mentions anybody"
            builder.add(self.card.term, None, system=source, item=self.mention_item[0], n=0, reason=reason)
