"""Does a vision-language model find the caption of a picture, and the picture of a caption, as well for everyone?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from portrayal.errors import Undefined
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.retrieval.recall.measurements import TOPS, Rows
from portrayal.metrics.retrieval.recall.search import check_pool, search
from portrayal.metrics.shared.language_scores.options import Device
from portrayal.models.masked_vlm.retrieval import Model
from portrayal.stats import RESAMPLES
from portrayal.study import Study

CAPTIONS = 5  # of a picture, as published evaluations take of COCO and Flickr30k
RERANK = 128  # as ALBEF's evaluation has it for Flickr30k (k_test)

CARD = Card(
    name="retrieval-recall",
    title="Finding captions and pictures (recall)",
    question="How often does a vision-language model find the right caption for a picture, and the right picture for "
    "a caption, and is it as often for every group?",
    formula=(
        "All pictures that have a caption of people are searched by all their captions, and the other way round. "
        "tr@k (text retrieval): the share of pictures of which one of their own captions is among the k best scored "
        "of all captions. ir@k (image retrieval): the share of captions whose own picture is among the k best scored "
        "of all pictures. Where scores are equal it is the expected share if these came in random order: of a block "
        "of t equal scores, o of them its own, in which the first k have s places, 1 - C(t - o, s) / C(t, s). So a "
        "model that cannot tell anything apart has what chance has: k / pictures for ir@k. "
        "Scores: a model that reads pictures and texts apart compares them all (cosine), and the first --rerank of "
        "each search are put in order anew by how likely its matching head finds that they belong together; the "
        "others follow. A model without such vectors is asked about every pair by its matching head. "
        "Rows by group: searches by the pictures of a group (tr) or by their captions (ir), among all captions and "
        "pictures. Intervals are over pictures."
    ),
    range="0 to 1; what chance gives stands beside each number.",
    needs=("references", "pictures", "model"),
    uses=("attributes",),
    paper=(
        "Recall@k of image-caption retrieval: Hodosh, Young and Hockenmaier, JAIR 2013; Karpathy and Fei-Fei, CVPR "
        "2015. First by likeness, then by matching: Li et al., Align before Fuse (ALBEF), NeurIPS 2021."
    ),
    caveats=(
        "Recall is higher where there is less to choose from: compare models on the same pictures and captions only, "
        "and published numbers on the published test set with --captions 5.",
        "Another caption may fit a picture as well as its own; it counts as a miss. Captions that read the same are "
        "different captions that share their places.",
        "A group may be harder to find because its pictures are more alike, not because the model knows it less.",
        "Pairs are ordered by the logit of a match, as the code of ALBEF and TCL does. Captions longer than the model "
        "reads are cut and counted.",
        "Intervals say how far other pictures that search the same set would differ, not how another set would.",
        "It measures a model and not captions: no dial of the lab's captioners moves it, so it has no curve there.",
    ),
    terms=(
        *(Term(f"tr@{k}", f"pictures with a caption of theirs among the first {k}" if k > 1 else
               "pictures with a caption of theirs in the first place", "share", "higher", 1.0, depends_on_n="searched")
          for k in TOPS),
        *(Term(f"ir@{k}", f"captions with their picture among the first {k}" if k > 1 else
               "captions with their picture in the first place", "share", "higher", 1.0, depends_on_n="searched")
          for k in TOPS),
    ),
)  # fmt: skip


@metric(
    CARD,
    slow=True,
    at_once=lambda _: True,
    every_attribute=True,
    voices=lambda _, options: (_named(options["model"]),) if options.get("model") else (),
)
def retrieval_recall(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],  # noqa: ARG001 (the model is the only one)
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    model: Annotated[
        str | Model | None,
        "The vision-language model: lab-dual or lab-single, a file of ALBEF or TCL, a folder (portrayal lab train "
        "writes one), or a ViLT of Transformers.",
    ] = None,
    captions: Annotated[int, "Captions taken of each picture, its first ones; 0: all.", 0] = CAPTIONS,
    images: Annotated[int, "Pictures taken, by lot, the same whatever else the study holds; 0: all.", 0] = 0,
    rerank: Annotated[
        int,
        "How many of the first that are found by likeness are put in order by the matching head; 0: none.",
        0,
    ] = RERANK,
    device: Device = "auto",
    skip_bad: Annotated[bool, "Leave out pictures that cannot be read, and say how many."] = False,
) -> ResultBuilder:
    """TR@k and IR@k of one model, for all pictures and by group.

    >>> import pathlib, tempfile, portrayal
    >>> from portrayal.lab.folder import Recipe, write_lab
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = write_lab(Recipe(scenes=6, pictures=64), pathlib.Path(folder) / "lab")
    ...     found = portrayal.metrics.retrieval_recall(study, attribute="gender", model="lab-dual", bootstrap=20)
    >>> next((m.system, m.value, m.n) for m in found.measurements if m.term == "ir@10")  # among six pictures
    ('lab-dual', 1.0, 30)
    """
    if model is None:
        raise Undefined("The metric 'retrieval-recall' asks a model; name one with --model.")
    check_pool(study)
    preconditions_met()
    searched = search(study, model, captions, images, rerank, device, skip_bad)
    labels = dict(study.labels(attribute).iter_rows()) if study.has_attribute(attribute) else {}
    settings = {
        "by": searched.found.by,
        "rerank": searched.found.rerank,
        "captions": captions or "all",
        "images": images or "all",
    }
    builder = ResultBuilder(CARD, attribute, settings)
    Rows(builder, searched, labels, seed, bootstrap).write()
    return builder


def _named(model: str | Model) -> str:
    return model if isinstance(model, str) else model.name
