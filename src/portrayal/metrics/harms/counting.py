"""Run all measurements in one pass over the images of a study."""

from __future__ import annotations

import gc
import heapq
from collections.abc import Iterator, Sequence

from portrayal.metrics.harms.image_records import ImageRecord, iter_image_records
from portrayal.metrics.harms.measurement import HarmMeasurement
from portrayal.metrics.harms.parsed_captions import Parsed, ParsedCaption, ParsedCaptions
from portrayal.metrics.harms.settings import HarmSettings, Reference, Stage
from portrayal.metrics.harms.survey import Survey
from portrayal.results import HUMAN
from portrayal.study import Study


def count_images(
    study: Study, settings: HarmSettings, selected: Sequence[type[HarmMeasurement]], sources: Sequence[str]
) -> dict[str, list[HarmMeasurement]]:
    """The selected measurements of each source, after all images were added."""
    measurements = {source: [kind(settings) for kind in selected] for source in sources}
    defined = {
        source: [measurement for measurement in of_source if measurement.undefined_reason() is None]
        for source, of_source in measurements.items()
    }
    # Word lists are large and live long: without this, garbage collection of them takes a third of the time.
    gc.freeze()
    try:
        for source, record in _all_records(study, settings, [name for name in sources if defined[name]]):
            parsed, human = parse_record(settings, record)
            for measurement in defined[source]:
                measurement.add_image(record, parsed, human)
    finally:
        gc.unfreeze()
    return measurements


def _all_records(
    study: Study, settings: HarmSettings, sources: Sequence[str]
) -> Iterator[tuple[str, ImageRecord]]:
    """Yield (source, record), sorted by image, so that human captions of an image are parsed once for all sources."""

    def of(source: str) -> Iterator[tuple[str, ImageRecord]]:
        return ((source, record) for record in iter_image_records(study, source, settings.attribute))

    return heapq.merge(*(of(source) for source in sources), key=lambda entry: entry[1].image_id)


def parse_record(settings: HarmSettings, record: ImageRecord) -> tuple[Sequence[Parsed], Sequence[Parsed]]:
    """The parsed captions of the source, and the human captions to compare them with.

    With reference=any, several human captions are merged into one.
    """
    human = settings.word_lists.parse_all(record.human_captions)
    parsed = human if settings.stage in ("1", "3") else settings.word_lists.parse_all(record.captions)
    return parsed, _merged(human, settings.reference)


def _merged(captions: Sequence[ParsedCaption], reference: Reference) -> Sequence[Parsed]:
    if reference == "any" and len(captions) > 1:
        return [ParsedCaptions(captions)]
    return captions


def sources_of(stage: Stage, sources: Sequence[str], survey: Survey) -> list[str]:
    """The sources that a stage measures: `human` at stages 1 and 3, if there are references; else the systems."""
    if stage in ("1", "3"):
        return [HUMAN] if HUMAN in sources and survey.images_with_references else []
    return [source for source in sources if source != HUMAN]
