"""Amplification of the associations of groups and objects in captions, compared with the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from scipy import sparse

from portrayal.errors import Undefined
from portrayal.metrics.amplification.card import CARD
from portrayal.metrics.amplification.counts import AssociationCounts, count_associations, count_objects
from portrayal.metrics.amplification.formulas import (
    Array,
    a_to_t,
    association_sign,
    attribute_to_task,
    ba,
    bias_amplification,
    biased_toward,
    effective_count,
    nan_mean,
    nan_std,
    rescale_predicted,
    sampling_error,
    share_changes,
    t_to_a,
    task_to_attribute,
)
from portrayal.metrics.base.options import Bootstrap, Synonyms, Words
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import (
    CaptionMentions,
    choose_lexicon,
    find_mentions,
    labelled_images,
    labelled_objects,
    lexicon_names,
    object_finder,
    without_people,
)
from portrayal.results import TOO_FEW
from portrayal.stats import RESAMPLES, Estimate, bootstrap, bootstrap_p, column_sums, resampler
from portrayal.study import Study

__all__ = ["amplification", "attribute_to_task", "bias_amplification", "task_to_attribute"]


@metric(CARD)
def amplification(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    lexicon: Words = None,
    rows: Annotated[
        Literal["intersection", "union"],
        "Images that decide the sign of an association: labelled with a group and an object, or with either.",
    ] = "intersection",
    ties: Annotated[
        Literal["negative", "drop"],
        "A pair exactly as common as expected by chance: counted as a negative association, or dropped.",
    ] = "negative",
    images: Annotated[
        Literal["named", "all"],
        "Labels that shares of named groups (ba, t-to-a, multi) are compared with: of the images whose captions name "
        "exactly one group, or of all labelled images, as published.",
    ] = "named",
    set_minimum: Annotated[
        int, "Minimum number of labelled images with a set of objects, for multi.", 1
    ] = TOO_FEW,
    synonyms: Synonyms = None,
) -> ResultBuilder:
    """Bias amplification of every source, compared with the labels.

    >>> import numpy as np
    >>> from portrayal.metrics.amplification.metric import bias_amplification
    >>> truth = np.array([[30, 10], [10, 30]])
    >>> round(bias_amplification(truth, np.array([[15, 10], [25, 30]])), 6)
    -0.177273
    """
    words = choose_lexicon(lexicon, attribute)
    names = lexicon_names(study.groups(attribute), words, attribute)
    groups = [group for group, lexicon_name in names.items() if lexicon_name is not None]
    if len(groups) < 2:
        raise Undefined(
            f"Amplification needs two groups of '{attribute}' that the lexicon '{words.name}' names."
        )
    all_labels, source = labelled_objects(study)
    object_labels = without_people(all_labels)
    labels = sorted(set(object_labels["label"]))
    if not labels:
        raise Undefined("Amplification needs labelled objects other than people.")
    finder, other_words = object_finder(labels, synonyms)
    preconditions_met()
    builder = ResultBuilder(
        CARD,
        attribute,
        {
            "lexicon": words.label,
            "rows": rows,
            "ties": ties,
            "images": images,
            "set_minimum": set_minimum,
            "source": source,
            "synonyms": other_words,
        },
    )
    truth = dict(study.labels(attribute).iter_rows())
    annotated = labelled_images(study)  # the objects of other images are unknown
    for source in sources:
        mentions = find_mentions(study, source, words)
        unlabelled = (
            [image for image in mentions.images if truth.get(image) not in groups] if rows == "union" else []
        )
        mentions = mentions.only(
            [image for image in mentions.images if truth.get(image) in groups and image in annotated]
        )
        counts = count_associations(
            object_labels,
            mentions,
            [truth[image] for image in mentions.images],
            groups,
            names,
            labels,
            finder,
            set_minimum,
            images,
        )
        unlabelled_counts = count_objects(object_labels, unlabelled, labels)
        _measure(builder, source, mentions, counts, rows, unlabelled_counts, ties, images, seed, bootstrap)
    return builder


def _measure(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    counts: AssociationCounts,
    rows: str,
    unlabelled_counts: tuple[Array, int],
    ties: str,
    compared_with: str,
    seed: int,
    n_resamples: int,
) -> None:
    images = len(mentions.images)
    resamples = resampler(mentions.images, seed, n_resamples)
    blocks = [
        counts.truth,
        counts.compared,
        counts.named_objects,
        counts.named_groups,
        counts.named_both,
        counts.group,
        counts.with_object,
    ]
    columns = sparse.hstack([*blocks, counts.sets_compared, counts.sets_named], format="csr")
    edges = np.cumsum([block.shape[1] for block in (*blocks, counts.sets_compared, counts.sets_named)])[:-1]

    def table(part: Array) -> Array:
        return part.reshape(len(part), counts.n_groups, -1).transpose(0, 2, 1)

    # The sign of an association is taken from the labels once. A new sign in every resample would count the noise of
    # the labels twice and bias every resample downwards. All labelled images decide it, so that it is the same for
    # every system that captions them.
    truth, _, _, _, _, group_counts, with_object, _, _ = np.split(column_sums(columns)[None], edges, axis=1)
    images_by_group = with_object if rows == "intersection" else group_counts
    sign = association_sign(
        table(truth),
        table(truth).sum(axis=2) + unlabelled_counts[0],
        images_by_group,
        images_by_group.sum(axis=1) + unlabelled_counts[1],
        ties,
    )
    biased, sets_biased = (
        biased_toward(table(truth)),
        biased_toward(table(column_sums(counts.sets_truth)[None])),
    )

    def statistic(totals: Array) -> Array:
        truth, compared, objects, groups, both, group_counts, _, sets, sets_named = np.split(
            totals, edges, axis=1
        )
        change = share_changes(table(sets), table(sets_named), sets_biased)
        flat = change.reshape(len(totals), -1)
        return np.column_stack(
            [
                ba(table(compared), table(both), biased),
                a_to_t(table(truth), table(objects), group_counts, sign),
                a_to_t(table(truth), rescale_predicted(table(objects), table(truth)), group_counts, sign),
                t_to_a(table(compared), table(groups), sign),
                nan_mean(np.abs(change).sum(axis=2)),
                nan_mean(change.sum(axis=2)),
                nan_mean((flat - nan_mean(flat)[:, None]) ** 2),
            ]
        )

    def floor() -> float | None:
        """Expected value of multi under noise alone: a mean of absolute values is above 0 without any change."""
        totals = resamples.totals(sparse.hstack([counts.sets_compared, counts.sets_named], format="csr"))
        before, after = np.split(totals, 2, axis=1)
        resampled_std = nan_std(share_changes(table(before), table(after), sets_biased))
        labelled = table(column_sums(counts.sets_compared)[None])[0]
        part = counts.sets_any_group
        n_effective = effective_count(column_sums(part), column_sums(part.multiply(part)))
        sampling_std = np.where(sets_biased[0], sampling_error(labelled, n_effective), 0.0)
        noise = np.sqrt(2 / np.pi) * np.where(
            np.isnan(resampled_std), np.nan, np.fmax(resampled_std, sampling_std)
        )
        estimates = nan_mean(noise.sum(axis=1)[None])[0]
        return float(estimates) if np.isfinite(estimates) else None

    names_one = mentions.n_groups == 1
    reason = None if images else "no captioned image with a label"
    estimates = dict.fromkeys((term.name for term in CARD.terms), Estimate.of(None))
    if images:
        order = ("ba", "a-to-t", "a-to-t-named", "t-to-a", "multi", "multi-signed", "multi-variance")
        estimates |= dict(zip(order, bootstrap(columns, statistic, resamples), strict=True))
        # Noise only increases these two, so their resamples lie above the estimate.
        centred = bootstrap(columns, statistic, resamples, method="centred")
        estimates |= {
            "multi": centred[order.index("multi")].at_least(0),
            "multi-variance": centred[order.index("multi-variance")].at_least(0),
            "multi-floor": Estimate.of(floor()),
        }
        multi, noise = estimates["multi"], estimates["multi-floor"]
        if multi.value is not None and noise.value is not None:
            estimates["multi-excess"] = multi.shifted(-noise.value)
    for term in CARD.terms:
        estimate = estimates[term.name]
        signed = term.name in ("ba", "a-to-t", "a-to-t-named", "t-to-a", "multi-signed")
        undefined_reason = (
            None if estimate.value is not None else reason or "no object, or set, is both labelled and named"
        )
        builder.add(
            term.name,
            estimate,
            system=source,
            n=images if compared_with == "all" or term.name.startswith("a-to-t") else counts.n_naming,
            reason=undefined_reason,
            ideal=estimates["multi-floor"].value if term.name == "multi" else None,
            p=bootstrap_p(estimate.replicates) if signed and undefined_reason is None else None,
            evidence=mentions.evidence(
                np.ones(len(names_one), dtype=bool) if term.name.startswith("a-to-t") else names_one
            ),
            resampler=resamples,
        )
