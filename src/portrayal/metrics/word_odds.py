"""Weighted log-odds of words by group: which words captions use more for one group than for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.options import Bootstrap
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import CaptionMentions, find_mentions
from portrayal.metrics.shared.classifier.corpus_builder import all_captions
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.results import TOO_FEW
from portrayal.statements import ITEMS, Statement
from portrayal.stats import RESAMPLES, benjamini_hochberg, bootstrap, permutation_p, permutations, resampler
from portrayal.study import Study

Array = NDArray[np.float64]
# For attributes without a word list.
_EMPTY_LEXICON = Lexicon("none", None, {})

CARD = Card(
    name="word-odds",
    answers="associations",
    title="Words associated with a group",
    question="Which words do captions use more for one group than for the others?",
    formula=(
        "Weighted log-odds with an informative Dirichlet prior: for word w, group g against all others, "
        "delta = log((y_g + a_w) / (n_g + a - y_g - a_w)) - log((y_r + a_w) / (n_r + a - y_r - a_w)), "
        "z = delta / sqrt(1 / (y_g + a_w) + 1 / (y_r + a_w)). The prior a_w is the word's share of all words of "
        "the source, times `prior` words. An image with several captions counts once. For all people and words, "
        "z is the largest absolute z of any word, and its p tests whether any word is associated with a group. "
        "p: how often a word's z is as large when the groups of the images are permuted; q corrects for "
        "the number of words."
    ),
    range="Any number; 0 where a word is used equally. |z| above 2 is rare by chance for a single word.",
    needs=("captions", "attributes"),
    paper="Monroe, Colaresi and Quinn, Fightin' Words, Political Analysis 2008.",
    caveats=(
        "Words differ because the images do: compare a system with human captions of the same images.",
        f"Words in fewer than {TOO_FEW} images of the source are not listed.",
        "Words that name the group itself are masked first, unless --no-mask is given.",
    ),
    terms=(
        Term(
            "z",
            "how much more a word is used for this group than for the others",
            "z",
            None,
            0.0,
            depends_on_n=True,
        ),
    ),
    statements=(
        Statement(
            "z",
            ITEMS,
            "Words that go with a group of {attribute} in captions of {system}",
            "any word goes with a group of {attribute} in captions of {system}",
            findings=(),
        ),
    ),
    responds_to={"z": "data-bias"},
    should_ignore=("neutral", "wrong-group", "hallucination", "length", "vocabulary", "repetition"),
)


@metric(CARD)
def word_odds(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    lexicon: Annotated[str | Lexicon | None, "Words to mask: a shipped list or a TOML file."] = None,
    mask: Annotated[bool, "Mask the words that name the group."] = True,
    prior: Annotated[float, "Weight of the prior, as a number of words.", 0.001] = 500.0,
) -> ResultBuilder:
    """z of every word that is common enough, per group and source.

    >>> import numpy as np
    >>> from portrayal.metrics.word_odds import log_odds
    >>> log_odds(np.array([[8.0, 2.0]]), np.array([100.0, 100.0]), np.array([0.05]), prior=100.0).round(2).tolist()
    [[1.39, -1.39]]
    """
    groups = study.groups(attribute)
    if len(groups) < 2:
        raise Undefined(f"Words can only be compared between groups, and '{attribute}' has {len(groups)}.")
    masked_words = Mask.for_attribute(attribute, lexicon, None if mask else False, always=True)
    masked_words = masked_words.checked(all_captions(study))
    preconditions_met()
    settings = {"mask": masked_words.label, "prior": prior}
    builder = ResultBuilder(CARD, attribute, settings, caution=masked_words.caution)
    truth = dict(study.labels(attribute).iter_rows())
    for source in sources:
        mentions = find_mentions(
            study, source, masked_words.lists[0][0] if masked_words.lists else _EMPTY_LEXICON
        )
        mentions = mentions.only([image for image in mentions.images if image in truth])
        group_index = [groups.index(truth[image]) for image in mentions.images]
        _measure(
            builder,
            source,
            mentions,
            np.array(group_index, dtype=np.int64),
            groups,
            masked_words,
            prior,
            seed,
            bootstrap,
        )
    return builder


def log_odds(counts: Array, totals: Array, background: Array, prior: float) -> Array:
    """z of each word for each group against all other groups (Monroe et al. 2008).

    Parameters
    ----------
    counts
        Count of each word in each group: (words, groups).
    totals
        Number of words of each group.
    background
        Share of each word among all words.
    prior
        Weight of the prior, as a number of words.
    """
    z: Array = _z_scores(counts[None], totals[None], background[None], prior)[0]
    return z


def _z_scores(counts: Array, totals: Array, background: Array, prior: float) -> Array:
    """`log_odds` with a leading axis of resamples in every array."""
    weight = (prior * background)[:, :, None]
    rest = counts.sum(axis=2, keepdims=True) - counts
    others = totals.sum(axis=1, keepdims=True) - totals
    with np.errstate(divide="ignore", invalid="ignore"):
        group_log_odds = np.log((counts + weight) / (totals[:, None, :] + prior - counts - weight))
        rest_log_odds = np.log((rest + weight) / (others[:, None, :] + prior - rest - weight))
        z: Array = (group_log_odds - rest_log_odds) / np.sqrt(1 / (counts + weight) + 1 / (rest + weight))
    return np.where(np.isfinite(z), z, np.nan)


def _measure(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    group_of: NDArray[np.int64],
    groups: tuple[str, ...],
    masked_words: Mask,
    prior: float,
    seed: int,
    n_resamples: int,
) -> None:
    words, word_counts, images_with, captions_with = _count_words(mentions, masked_words)
    all_words = word_counts.sum(axis=1)  # rare words count in the totals, though they are not listed
    kept = np.flatnonzero(images_with >= TOO_FEW)
    if not len(kept):
        reason = f"no word is used in {TOO_FEW} labelled images"
        builder.add("z", None, system=source, n=len(mentions.images), reason=reason)
        return
    common = word_counts[:, kept]
    group_indicator = np.eye(len(groups))[group_of]
    width, count = len(kept), len(groups)
    columns = sparse.hstack(
        [
            *(common.multiply(group_indicator[:, [g]]).tocsr() for g in range(count)),
            sparse.csr_array(np.asarray(all_words).reshape(-1, 1) * group_indicator),
        ],
        format="csr",
    )

    def statistic(totals: Array) -> Array:
        table = totals[:, : width * count].reshape(len(totals), count, width).transpose(0, 2, 1)
        per_group = totals[:, width * count :]
        share = table.sum(axis=2) / np.maximum(per_group.sum(axis=1, keepdims=True), 1e-12)
        z = _z_scores(table, per_group, share, prior)
        strongest = np.nanmax(np.abs(z).reshape(len(totals), -1), axis=1, initial=0.0)
        return np.column_stack([z.transpose(0, 2, 1).reshape(len(totals), -1), strongest])

    resamples = resampler(mentions.images, seed, n_resamples)
    *estimates, _ = bootstrap(columns, statistic, resamples)
    # Noise only increases a maximum over words.
    strongest = bootstrap(columns, lambda totals: statistic(totals)[:, -1], resamples, method="centred")[
        0
    ].at_least(0)
    words_by_image, length = common.T.tocsr(), np.asarray(all_words).reshape(-1)

    def abs_z(order: NDArray[np.int64]) -> Array:
        permuted_groups = group_indicator[order]
        table, per_group = words_by_image @ permuted_groups, length @ permuted_groups
        share = table.sum(axis=1) / max(per_group.sum(), 1e-12)
        z = np.abs(log_odds(table, per_group, share, prior)).T.reshape(-1)
        return np.append(z, np.nanmax(z, initial=0.0))

    null = permutations(abs_z, len(group_indicator), seed, n_resamples)
    p = permutation_p(abs_z(np.arange(len(group_indicator))), null)
    observed = np.nan_to_num(
        np.abs([m.value if m.value is not None else np.nan for m in estimates]), nan=-1.0
    )
    top = int(observed.argmax())

    def captions(index: int) -> pl.DataFrame:
        uses_word = np.zeros(len(mentions.captions), dtype=bool)
        uses_word[captions_with[words[kept[index % width]]]] = True
        of_group = uses_word & (group_of == index // width)[mentions.image_index]
        # The number of a word that is not used for this group comes from its use for the others.
        return mentions.evidence(of_group if of_group.any() else uses_word)

    builder.add(
        "z",
        strongest,
        system=source,
        n=len(mentions.images),
        p=float(p[-1]),
        evidence=captions(top),
        resampler=resamples,
    )
    for g, group in enumerate(groups):
        group_images = int(np.sum(group_of == g))
        enough = group_images >= TOO_FEW  # a group with few images is not compared
        group_p = [
            float(value) if enough and np.isfinite(value) else None
            for value in p[g * width : (g + 1) * width]
        ]
        q = benjamini_hochberg(group_p)
        for word_number, word in enumerate(kept):
            index = g * width + word_number
            builder.add(
                "z",
                estimates[index],
                system=source,
                group=group,
                item=words[word],
                n=int(images_with[word]),
                reason=None if estimates[index].value is not None else "the word is used for one group only",
                support=min(int(images_with[word]), group_images),
                p=group_p[word_number],
                q=q[word_number],
                evidence=captions(index),
            )


def _count_words(
    mentions: CaptionMentions, masked_words: Mask
) -> tuple[list[str], sparse.csr_array, NDArray[np.int64], dict[str, list[int]]]:
    """The words, their count per image, the number of images with each, and the captions with each."""
    captions_with: dict[str, list[int]] = {}
    tokens_of: list[list[str]] = []
    for number, caption_tokens in enumerate(masked_words.apply(mentions.captions)):
        tokens = [
            token for token in caption_tokens if token not in masked_words.tokens and token[0].isalnum()
        ]
        tokens_of.append(tokens)
        for token in dict.fromkeys(tokens):
            captions_with.setdefault(token, []).append(number)
    words = sorted(captions_with)  # sorted, so that results do not depend on the order of captions
    index = {word: column for column, word in enumerate(words)}
    columns = np.array([index[token] for tokens in tokens_of for token in tokens], dtype=np.int64)
    repeats = [len(tokens) for tokens in tokens_of]
    entries = (np.repeat(mentions.weight, repeats), (np.repeat(mentions.image_index, repeats), columns))
    word_counts = sparse.csr_array(entries, shape=(len(mentions.images), len(words)))
    return words, word_counts, np.asarray((word_counts > 0).sum(axis=0)).reshape(-1), captions_with
