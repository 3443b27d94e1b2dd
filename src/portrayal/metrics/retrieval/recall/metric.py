"""Retrieval recall: does a vision-language model find the right caption or image equally often for every group?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from portrayal.errors import Undefined
from portrayal.metrics.base.options import Bootstrap
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.retrieval.recall.card import CARD
from portrayal.metrics.retrieval.recall.measurements import RetrievalRecallMeasurements
from portrayal.metrics.retrieval.recall.search import check_searchable, search
from portrayal.metrics.shared.language_scores.options import Device
from portrayal.models.masked_vlm.retrieval import RetrievalModel
from portrayal.stats import RESAMPLES
from portrayal.study import Study

CAPTIONS = 5  # per image, as in published evaluations on COCO and Flickr30k
RERANK = 128  # k_test of ALBEF's evaluation on Flickr30k


@metric(
    CARD,
    slow=True,
    sources_together=lambda _: True,
    every_attribute=True,
    measured_sources=lambda _, options: (_model_name(options["model"]),) if options.get("model") else (),
)
def retrieval_recall(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],  # noqa: ARG001 (the model is the only source)
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    model: Annotated[
        str | RetrievalModel | None,
        "The vision-language model: lab-dual or lab-single, a file of ALBEF or TCL, a folder (portrayal lab train "
        "writes one), or a ViLT of Transformers.",
    ] = None,
    captions: Annotated[int, "Captions per image, the first ones; 0: all.", 0] = CAPTIONS,
    images: Annotated[int, "Images to search, sampled by a hash of their names; 0: all.", 0] = 0,
    rerank: Annotated[
        int,
        "Candidates found by cosine similarity that the matching head reranks; 0: none.",
        0,
    ] = RERANK,
    device: Device = "auto",
    skip_bad: Annotated[bool, "Skip images that cannot be read, and report how many."] = False,
) -> ResultBuilder:
    """TR@k and IR@k of one model, overall and by group.

    >>> import pathlib, tempfile, portrayal
    >>> from portrayal.lab.folder import LabRecipe, write_lab
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = write_lab(LabRecipe(scenes=6, image_size=64), pathlib.Path(folder) / "lab")
    ...     results = portrayal.metrics.retrieval_recall(study, attribute="gender", model="lab-dual", bootstrap=20)
    >>> next((m.system, m.value, m.n) for m in results.measurements if m.term == "ir@10")  # among six images
    ('lab-dual', 1.0, 30)
    """
    if model is None:
        raise Undefined("The metric 'retrieval-recall' needs a model: name one with --model.")
    check_searchable(study)
    preconditions_met()
    result = search(study, model, captions, images, rerank, device, skip_bad)
    labels = dict(study.labels(attribute).iter_rows()) if study.has_attribute(attribute) else {}
    settings = {
        "by": result.retrieved.scored_by,
        "rerank": result.retrieved.rerank,
        "captions": captions or "all",
        "images": images or "all",
    }
    builder = ResultBuilder(CARD, attribute, settings)
    RetrievalRecallMeasurements(builder, result, labels, seed, bootstrap).write()
    return builder


def _model_name(model: str | RetrievalModel) -> str:
    return model if isinstance(model, str) else model.name
