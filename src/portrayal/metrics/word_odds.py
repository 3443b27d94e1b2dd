"""Which words go with which group? An open look at every word captions use."""

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
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.classifier.captions import captions_of
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.metrics.shared.mentions import CaptionMentions, find_mentions
from portrayal.results import TOO_FEW
from portrayal.statements import ITEMS, Statement
from portrayal.stats import RESAMPLES, benjamini_hochberg, bootstrap, permutation_p, permutations, resampler
from portrayal.study import Study

Array = NDArray[np.float64]
_SILENT = Lexicon("none", None, {})  # names nobody: for attributes that no list has words for

CARD = Card(
    name="word-odds",
    title="Words that go with a group",
    question="Which words do captions use more for one group than for the others?",
    formula=(
        "Weighted log-odds with an informative Dirichlet prior: for word w, group g against all others, "
        "delta = log((y_g + a_w) / (n_g + a - y_g - a_w)) - log((y_r + a_w) / (n_r + a - y_r - a_w)), "
        "z = delta / sqrt(1 / (y_g + a_w) + 1 / (y_r + a_w)). The prior a_w is the word's share of everything the "
        "speaker says, times `prior` words. An image with several captions counts once. For all people and words, "
        "z is the largest size of any word's z, and its p asks whether any word goes with a group at all. "
        "p: how often a word's z would be as large if images were dealt to the groups at random; q corrects for "
        "the number of words."
    ),
    range="Any number; 0 where a word is used alike. |z| above 2 is rare by chance for a single word.",
    needs=("captions", "attributes"),
    paper="Monroe, Colaresi and Quinn, Fightin' Words, Political Analysis 2008.",
    caveats=(
        "Words differ because the images do: compare a system with people's captions of the same images.",
        f"Words in fewer than {TOO_FEW} images of the speaker are not listed.",
        "Words that name the group itself are hidden first, unless --no-mask is given.",
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
    lexicon: Annotated[str | Lexicon | None, "Words to hide: a shipped list or a TOML file."] = None,
    mask: Annotated[bool, "Hide the words that name the group."] = True,
    prior: Annotated[float, "Weight of the prior, in words.", 0.001] = 500.0,
) -> ResultBuilder:
    """A z for every word that is common enough, per group and speaker.

    >>> import numpy as np
    >>> from portrayal.metrics.word_odds import log_odds
    >>> log_odds(np.array([[8.0, 2.0]]), np.array([100.0, 100.0]), np.array([0.05]), prior=100.0).round(2).tolist()
    [[1.39, -1.39]]
    """
    groups = study.groups(attribute)
    if len(groups) < 2:
        raise Undefined(f"Words can only be compared between groups, and '{attribute}' has {len(groups)}.")
    hidden = Mask.for_attribute(attribute, lexicon, None if mask else False, always=True)
    hidden = hidden.checked(captions_of(study))
    preconditions_met()
    settings = {"mask": hidden.label, "prior": prior}
    builder = ResultBuilder(CARD, attribute, settings, caution=hidden.visible)
    truth = dict(study.labels(attribute).iter_rows())
    for source in sources:
        mentions = find_mentions(study, source, hidden.lists[0][0] if hidden.lists else _SILENT)
        mentions = mentions.only([image for image in mentions.images if image in truth])
        place = [groups.index(truth[image]) for image in mentions.images]
        _measure(
            builder, source, mentions, np.array(place, dtype=np.int64), groups, hidden, prior, seed, bootstrap
        )
    return builder


def log_odds(counts: Array, totals: Array, background: Array, prior: float) -> Array:
    """z of each word for each group against the rest: counts (words, groups), totals per group, word shares."""
    z: Array = _z(counts[None], totals[None], background[None], prior)[0]
    return z


def _z(counts: Array, totals: Array, background: Array, prior: float) -> Array:
    """(draws, words, groups), (draws, groups), (draws, words) to (draws, words, groups)."""
    weight = (prior * background)[:, :, None]
    rest = counts.sum(axis=2, keepdims=True) - counts
    others = totals.sum(axis=1, keepdims=True) - totals
    with np.errstate(divide="ignore", invalid="ignore"):
        mine = np.log((counts + weight) / (totals[:, None, :] + prior - counts - weight))
        theirs = np.log((rest + weight) / (others[:, None, :] + prior - rest - weight))
        made: Array = (mine - theirs) / np.sqrt(1 / (counts + weight) + 1 / (rest + weight))
    return np.where(np.isfinite(made), made, np.nan)


def _measure(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    group_of: NDArray[np.int64],
    groups: tuple[str, ...],
    hidden: Mask,
    prior: float,
    seed: int,
    n_resamples: int,
) -> None:
    words, said, images_with, captions_with = _count_words(mentions, hidden)
    everything = said.sum(axis=1)  # the rare words of an image are part of what it says, though not listed
    kept = np.flatnonzero(images_with >= TOO_FEW)
    if not len(kept):
        reason = f"no word is used in {TOO_FEW} labelled images"
        builder.add("z", None, system=source, n=len(mentions.images), reason=reason)
        return
    common = said[:, kept]
    shown = np.eye(len(groups))[group_of]
    width, count = len(kept), len(groups)
    columns = sparse.hstack(
        [
            *(common.multiply(shown[:, [g]]).tocsr() for g in range(count)),
            sparse.csr_array(np.asarray(everything).reshape(-1, 1) * shown),
        ],
        format="csr",
    )

    def statistic(totals: Array) -> Array:
        table = totals[:, : width * count].reshape(len(totals), count, width).transpose(0, 2, 1)
        per_group = totals[:, width * count :]
        share = table.sum(axis=2) / np.maximum(per_group.sum(axis=1, keepdims=True), 1e-12)
        z = _z(table, per_group, share, prior)
        strongest = np.nanmax(np.abs(z).reshape(len(totals), -1), axis=1, initial=0.0)
        return np.column_stack([z.transpose(0, 2, 1).reshape(len(totals), -1), strongest])

    draw = resampler(mentions.images, seed, n_resamples)
    *estimates, _ = bootstrap(columns, statistic, draw)
    # A maximum over words only grows with noise.
    strongest = bootstrap(columns, lambda totals: statistic(totals)[:, -1], draw, method="centred")[
        0
    ].at_least(0)
    rows, length = common.T.tocsr(), np.asarray(everything).reshape(-1)

    def size(order: NDArray[np.int64]) -> Array:
        dealt = shown[order]
        table, per_group = rows @ dealt, length @ dealt
        share = table.sum(axis=1) / max(per_group.sum(), 1e-12)
        z = np.abs(log_odds(table, per_group, share, prior)).T.reshape(-1)
        return np.append(z, np.nanmax(z, initial=0.0))

    null = permutations(size, len(shown), seed, n_resamples)
    p = permutation_p(size(np.arange(len(shown))), null)
    sizes = np.nan_to_num(np.abs([m.value if m.value is not None else np.nan for m in estimates]), nan=-1.0)
    top = int(sizes.argmax())

    def captions(place: int) -> pl.DataFrame:
        saying = np.zeros(len(mentions.captions), dtype=bool)
        saying[captions_with[words[kept[place % width]]]] = True
        of_group = saying & (group_of == place // width)[mentions.image]
        # A word that is never said of this group has its number from being said of the others.
        return mentions.evidence(of_group if of_group.any() else saying)

    builder.add(
        "z",
        strongest,
        system=source,
        n=len(mentions.images),
        p=float(p[-1]),
        evidence=captions(top),
        resampler=draw,
    )
    for g, group in enumerate(groups):
        shown_images = int(np.sum(group_of == g))
        enough = shown_images >= TOO_FEW  # a group of a few images is not compared, however common the word
        mine = [
            float(value) if enough and np.isfinite(value) else None
            for value in p[g * width : (g + 1) * width]
        ]
        q = benjamini_hochberg(mine)
        for index, word in enumerate(kept):
            place = g * width + index
            builder.add(
                "z",
                estimates[place],
                system=source,
                group=group,
                item=words[word],
                n=int(images_with[word]),
                reason=None if estimates[place].value is not None else "the word is used for one group only",
                support=min(int(images_with[word]), shown_images),
                p=mine[index],
                q=q[index],
                evidence=captions(place),
            )


def _count_words(
    mentions: CaptionMentions, hidden: Mask
) -> tuple[list[str], sparse.csr_array, NDArray[np.int64], dict[str, list[int]]]:
    """The words used, how often each image uses each, in how many images each is used, and in which captions."""
    captions_with: dict[str, list[int]] = {}
    tokens_of: list[list[str]] = []
    for number, said_words in enumerate(hidden.read(mentions.captions)):
        tokens = [token for token in said_words if token not in hidden.tokens and token[0].isalnum()]
        tokens_of.append(tokens)
        for token in dict.fromkeys(tokens):
            captions_with.setdefault(token, []).append(number)
    words = sorted(captions_with)  # in alphabetical order, so that the order of captions changes nothing
    index = {word: place for place, word in enumerate(words)}
    columns = np.array([index[token] for tokens in tokens_of for token in tokens], dtype=np.int64)
    repeats = [len(tokens) for tokens in tokens_of]
    entries = (np.repeat(mentions.weight, repeats), (np.repeat(mentions.image, repeats), columns))
    said = sparse.csr_array(entries, shape=(len(mentions.images), len(words)))
    return words, said, np.asarray((said > 0).sum(axis=0)).reshape(-1), captions_with
