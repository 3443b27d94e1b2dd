"""Co-occurrence of objects with the groups that captions name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.options import Bootstrap, ItemNames, Synonyms, Words, unique_names
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import (
    CaptionMentions,
    choose_lexicon,
    find_mentions,
    labelled_objects,
    without_people,
)
from portrayal.metrics.shared.object_cooccurrence import ObjectMatcher, permutation_p_values
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
    answers="associations",
    title="Co-occurrence of objects and groups",
    question="When a caption names a group and the image holds an object, which group is it?",
    formula=(
        "count(o, g): captions naming group g in images holding object o. "
        "bias(o, g) = count(o, g) / sum over groups of count(o, g'). "
        "overall(g) is the same over all captions that name a group; for all people it is the largest of these "
        "shares. An image with several captions counts once. "
        "p: how often an object's share is as far from the overall one when the groups that captions name are permuted "
        "among the images with a caption that names a group; q corrects for the number of objects."
    ),
    range="bias, overall: 0 to 1; 1 / number of groups where all are named equally often. count: 0 and up.",
    needs=("captions",),
    caution_terms={UNANNOTATED: ("bias", "count")},
    paper=(
        "Zhao, Wang, Yatskar, Ordonez and Chang, Men Also Like Shopping, EMNLP 2017; "
        "as object gender co-occurrence in Sabir and Padro, 2023."
    ),
    caveats=(
        "It describes captions, and with them the images: in a study with more men than women every object is "
        "associated "
        "with men. Compare an object with the overall share, and a system with human captions of the same images.",
        "A caption naming several groups counts for none of them (both='neither') or for each (both='each').",
        "Objects are human labels, or, where there are none, the labels of all models together.",
        f"An object that co-occurs with a group in fewer than {TOO_FEW} images is shown, but neither tested nor "
        "ranked.",
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
        Literal["neither", "each"],
        "Whether a caption that names several groups counts for neither or for each of them.",
    ] = "neither",
    objects: Annotated[
        Literal["labels", "words"], "Objects from the labels of the study, or from the words of each caption."
    ] = "labels",
    item: ItemNames = (),
    synonyms: Synonyms = None,
) -> ResultBuilder:
    """Counts, shares of each object and overall shares, for every source.

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
    object_labels, source = labelled_objects(study)
    # People are counted as objects only where the user names them.
    if not unique_names(item):
        object_labels = without_people(object_labels)
    labels_by_image: dict[str, list[str]] = {}
    for image, label in object_labels.select("image_id", "label").iter_rows():
        labels_by_image.setdefault(image, []).append(label)
    matcher = ObjectMatcher.create(labels_by_image, objects, unique_names(item), synonyms)
    preconditions_met()
    settings = {
        "lexicon": words.label,
        "both": both,
        "objects": matcher.method,
        "source": source,
        "synonyms": matcher.synonyms,
    }
    builder = ResultBuilder(CARD, attribute, settings)
    for source in sources:
        mentions = find_mentions(study, source, words)
        group_counts = _group_counts(mentions, both)
        cooccurring = matcher.cooccurring(mentions)
        _measure_groups(builder, source, mentions, group_counts, seed, bootstrap)
        _measure_objects(
            builder, source, mentions, group_counts, cooccurring, matcher.labels, seed, bootstrap
        )
    return builder


def _group_counts(mentions: CaptionMentions, both: str) -> NDArray[np.float64]:
    """The weight of each caption for each group: (captions, groups)."""
    counts = mentions.named.astype(np.float64)
    if both == "neither":
        counts[mentions.n_groups > 1] = 0
    return counts


def _measure_groups(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    group_counts: NDArray[np.float64],
    seed: int,
    n_resamples: int,
) -> None:
    """Add counts and overall shares of each group, whatever the image contains."""
    resamples = resampler(mentions.images, seed, n_resamples)
    per_image = mentions.mean_per_image(group_counts)
    named = np.asarray((group_counts > 0).any(axis=1), dtype=bool)
    names_several = mentions.n_groups > 1
    undefined_reason = None if per_image.any() else "no caption names a group"

    def add(
        term: str, estimate: Estimate | None, mask: NDArray[np.bool_], n: int, group: str | None = None
    ) -> None:
        reason = undefined_reason if term == "overall" else None
        ideal = 1 / len(mentions.groups) if term == "overall" and group is None else None
        builder.add(
            term, estimate, system=source, group=group, n=n, reason=reason, ideal=ideal,
            evidence=mentions.evidence(mask), resampler=resamples,
        )  # fmt: skip

    n_images, n_naming = len(mentions.images), int(np.count_nonzero(per_image.any(axis=1)))
    for term, mask in (("count", named), ("several", names_several)):
        per_image_mask = mentions.mean_per_image(mask.astype(np.float64)[:, None])
        add(term, bootstrap(per_image_mask, _identity, resamples)[0], mask, n_images)
    add("overall", None if undefined_reason else _largest_share(per_image, resamples), named, n_naming)
    counts = bootstrap(per_image, _identity, resamples)
    shares = bootstrap(per_image, _shares, resamples)
    for index, group in enumerate(mentions.groups):
        add("count", counts[index], group_counts[:, index] > 0, n_images, group)
        add(
            "overall",
            None if undefined_reason else shares[index],
            group_counts[:, index] > 0,
            n_naming,
            group,
        )


def _largest_share(per_image: NDArray[np.float64], resamples: Resampler) -> Estimate:
    """The largest share, with the interval of the group that has it.

    Resamples of the maximum are biased upwards: close to equal shares, an interval made of them misses equality far
    too often. With more than two groups the level is raised for the selection (Bonferroni).
    """
    top = int(per_image.sum(axis=0).argmax())
    level = 1 - (1 - LEVEL) / max(per_image.shape[1] - 1, 1)
    return bootstrap(per_image, lambda totals: _shares(totals)[:, top], resamples, level=level)[0]


def _identity(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    return totals


def _shares(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = totals.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = np.divide(totals, sums, out=np.full_like(totals, np.nan), where=sums > 0)
    return shares


def _measure_objects(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    group_counts: NDArray[np.float64],
    cooccurring: sparse.csr_array,
    labels: Sequence[str],
    seed: int,
    n_resamples: int,
) -> None:
    """Add a row per object and group: count, share, interval, and the test against the overall share."""
    if not labels or not len(mentions.captions):
        return
    groups = len(mentions.groups)
    # Per image and (object, group): the captions of the image that name the group, if they co-occur with the object.
    joint_counts = [
        mentions.averaging_matrix @ cooccurring.multiply(group_counts[:, [g]]).tocsr() for g in range(groups)
    ]
    columns = sparse.hstack(joint_counts, format="csr")  # group-major: g * objects + o
    resamples = resampler(mentions.images, seed, n_resamples)

    def shares(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        cube = totals.reshape(len(totals), groups, len(labels))
        sums = cube.sum(axis=1, keepdims=True)
        divided: NDArray[np.float64] = np.divide(cube, sums, out=np.full_like(cube, np.nan), where=sums > 0)
        return divided.reshape(totals.shape)

    bias = bootstrap(columns, shares, resamples)
    count = bootstrap(columns, _identity, resamples)
    present = sum(matrix for matrix in joint_counts)
    n = np.asarray((present > 0).sum(axis=0)).reshape(-1)
    p = permutation_p_values(
        mentions, cooccurring, group_counts, np.ones(len(group_counts)), n, seed, n_resamples
    )
    q = [benjamini_hochberg(list(p[g])) for g in range(groups)]
    by_object = cooccurring.tocsc()  # the columns of which are quick to take
    for index, label in enumerate(labels):
        with_object = np.asarray(by_object[:, [index]].todense()).reshape(-1) > 0
        for g, group in enumerate(mentions.groups):
            column = g * len(labels) + index
            evidence = mentions.evidence(with_object & (group_counts[:, g] > 0))
            undefined_reason = f"no caption names a group together with '{label}'"
            builder.add(
                "bias", bias[column], system=source, group=group, item=label, n=int(n[index]),
                reason=None if n[index] else undefined_reason, p=p[g][index], q=q[g][index], evidence=evidence,
            )  # fmt: skip
            builder.add(
                "count",
                count[column],
                system=source,
                group=group,
                item=label,
                n=int(n[index]),
                evidence=evidence,
            )
