"""Which objects go with which group in what captions say?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Items, Synonyms, Words, several
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.cooccurrence import Objects, dealt_p
from portrayal.metrics.shared.mentions import (
    CaptionMentions,
    choose_lexicon,
    find_mentions,
    labelled_objects,
    without_people,
)
from portrayal.results import TOO_FEW
from portrayal.stats import (
    LEVEL,
    RESAMPLES,
    Estimate,
    Resampler,
    benjamini_hochberg,
    bootstrap,
    resampler,
)
from portrayal.study import Study
from portrayal.study.cautions import UNANNOTATED

CARD = Card(
    name="cooccurrence",
    title="Objects and the groups named beside them",
    question="When a caption names a group and the image holds an object, which group is it?",
    formula=(
        "count(o, g): captions naming group g in images holding object o. "
        "bias(o, g) = count(o, g) / sum over groups of count(o, g'). "
        "overall(g) is the same over all captions that name a group; for all people it is the largest of these "
        "shares. An image with several captions counts once. "
        "p: how often an object's share would be as far from the overall one if what captions name were dealt at "
        "random to the images of which a caption names a group; q corrects for the number of objects."
    ),
    range="bias, overall: 0 to 1; 1 / number of groups where all are named equally often. count: 0 and up.",
    needs=("captions",),
    cautioned={UNANNOTATED: ("bias", "count")},
    paper=(
        "Zhao, Wang, Yatskar, Ordonez and Chang, Men Also Like Shopping, EMNLP 2017; "
        "as object gender co-occurrence in Sabir and Padro, 2023."
    ),
    caveats=(
        "It describes captions, and with them the images: in a study with more men than women every object leans "
        "to men. Compare an object with the overall share, and a system with people on the same images.",
        "A caption naming several groups counts for none of them (both='neither') or for each (both='each').",
        "Objects are those that people labelled, or, where people labelled none, those of every model together.",
        f"An object that goes with a group in fewer than {TOO_FEW} images is shown, but neither tested nor ranked.",
    ),
    terms=(
        Term("bias", "share of an object's captions that name this group", "share"),
        Term("overall", "share of all captions naming a group that name this one", "share"),
        Term("count", "captions naming the group, with the object or in all", "count"),
        Term("several", "captions naming several groups", "count"),
    ),
    responds_to={"bias@one": "data-bias", "overall": "wrong-group@one"},
    should_ignore=("neutral", "amplification", "length", "vocabulary", "repetition"),
)


@metric(CARD)
def cooccurrence(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    lexicon: Words = None,
    both: Annotated[
        Literal["neither", "each"], "What a caption naming several groups counts for."
    ] = "neither",
    objects: Annotated[
        Literal["labels", "words"], "Objects from the study's labels, or from the words of each caption."
    ] = "labels",
    item: Items = (),
    synonyms: Synonyms = None,
) -> ResultBuilder:
    """Counts, per-object shares and overall shares for every speaker.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": [1, 2, 3], "system": ["s"] * 3,
    ...                            "caption": ["a man", "a man", "a woman"]}),
    ...     objects=pl.DataFrame({"image_id": [1, 3], "label": ["bat", "bat"]}))
    >>> results = portrayal.metrics.cooccurrence(study, attribute="gender")
    >>> [(m.item, m.value) for m in results.measurements if m.term == "bias" and m.group == "male"]
    [('bat', 0.5)]
    """
    words = choose_lexicon(lexicon, attribute)
    seen, source = labelled_objects(study)
    if not several(item):  # who is asked for by name is counted
        seen = without_people(seen)
    by_image: dict[str, list[str]] = {}
    for image, label in seen.select("image_id", "label").iter_rows():
        by_image.setdefault(image, []).append(label)
    told = Objects.of(by_image, objects, several(item), synonyms)
    preconditions_met()
    settings = {
        "lexicon": words.label,
        "both": both,
        "objects": told.how,
        "source": source,
        "synonyms": told.synonyms,
    }
    builder = ResultBuilder(CARD, attribute, settings)
    for source in sources:
        mentions = find_mentions(study, source, words)
        counted = _counted(mentions, both)
        shown = told.beside(mentions)
        _measure(builder, source, mentions, counted, seed, bootstrap)
        _measure_objects(builder, source, mentions, counted, shown, told.labels, seed, bootstrap)
    return builder


def _counted(mentions: CaptionMentions, both: str) -> NDArray[np.float64]:
    """Per caption, what it counts for each group."""
    counted = mentions.named.astype(np.float64)
    if both == "neither":
        counted[mentions.how_many > 1] = 0
    return counted


def _measure(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    counted: NDArray[np.float64],
    seed: int,
    n_resamples: int,
) -> None:
    """How often each group is named, whatever is in the image."""
    draw = resampler(mentions.images, seed, n_resamples)
    per_image = mentions.share_per_image(counted)
    named = np.asarray((counted > 0).any(axis=1), dtype=bool)
    several = mentions.how_many > 1
    nothing = None if per_image.any() else "no caption names a group"

    def add(
        term: str, estimate: Estimate | None, which: NDArray[np.bool_], n: int, group: str | None = None
    ) -> None:
        undefined = nothing if term == "overall" else None
        ideal = 1 / len(mentions.groups) if term == "overall" and group is None else None
        builder.add(
            term, estimate, system=source, group=group, n=n, reason=undefined, ideal=ideal,
            evidence=mentions.evidence(which), resampler=draw,
        )  # fmt: skip

    images, naming = len(mentions.images), int(np.count_nonzero(per_image.any(axis=1)))
    for term, which in (("count", named), ("several", several)):
        once = mentions.share_per_image(which.astype(np.float64)[:, None])
        add(term, bootstrap(once, _itself, draw)[0], which, images)
    add("overall", None if nothing else _largest_share(per_image, draw), named, naming)
    counts = bootstrap(per_image, _itself, draw)
    shares = bootstrap(per_image, _shares, draw)
    for index, group in enumerate(mentions.groups):
        add("count", counts[index], counted[:, index] > 0, images, group)
        add("overall", None if nothing else shares[index], counted[:, index] > 0, naming, group)


def _largest_share(per_image: NDArray[np.float64], draw: Resampler) -> Estimate:
    """The largest share, with the interval of the group that has it.

    Drawing the maximum itself would not do: close to equal shares its draws pile up on one side, and an interval
    made of them misses equality far too often. With more than two groups the interval is widened for having been
    chosen among them.
    """
    top = int(per_image.sum(axis=0).argmax())
    level = 1 - (1 - LEVEL) / max(per_image.shape[1] - 1, 1)
    return bootstrap(per_image, lambda totals: _shares(totals)[:, top], draw, level=level)[0]


def _itself(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    return totals


def _shares(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = totals.sum(axis=1, keepdims=True)
    made: NDArray[np.float64] = np.divide(totals, sums, out=np.full_like(totals, np.nan), where=sums > 0)
    return made


def _measure_objects(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    counted: NDArray[np.float64],
    shown: sparse.csr_array,
    labels: Sequence[str],
    seed: int,
    n_resamples: int,
) -> None:
    """A row per object and group: count, share, interval, and whether it departs from the overall share."""
    if not labels or not len(mentions.captions):
        return
    groups = len(mentions.groups)
    # Per image and (object, group): the captions of the image that name the group, if it goes with the object.
    together = [mentions.to_image @ shown.multiply(counted[:, [g]]).tocsr() for g in range(groups)]
    columns = sparse.hstack(together, format="csr")  # group-major: g * objects + o
    draw = resampler(mentions.images, seed, n_resamples)

    def shares(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        cube = totals.reshape(len(totals), groups, len(labels))
        sums = cube.sum(axis=1, keepdims=True)
        divided: NDArray[np.float64] = np.divide(cube, sums, out=np.full_like(cube, np.nan), where=sums > 0)
        return divided.reshape(totals.shape)

    bias = bootstrap(columns, shares, draw)
    count = bootstrap(columns, _itself, draw)
    present = sum(matrix for matrix in together)
    n = np.asarray((present > 0).sum(axis=0)).reshape(-1)
    p = dealt_p(mentions, shown, counted, np.ones(len(counted)), n, seed, n_resamples)
    q = [benjamini_hochberg(list(p[g])) for g in range(groups)]
    by_object = shown.tocsc()  # the columns of which are quick to take
    for index, label in enumerate(labels):
        with_object = np.asarray(by_object[:, [index]].todense()).reshape(-1) > 0
        for g, group in enumerate(mentions.groups):
            place = g * len(labels) + index
            evidence = mentions.evidence(with_object & (counted[:, g] > 0))
            about = f"no caption names a group beside '{label}'"
            builder.add(
                "bias", bias[place], system=source, group=group, item=label, n=int(n[index]),
                reason=None if n[index] else about, p=p[g][index], q=q[g][index], evidence=evidence,
            )  # fmt: skip
            builder.add(
                "count",
                count[place],
                system=source,
                group=group,
                item=label,
                n=int(n[index]),
                evidence=evidence,
            )
