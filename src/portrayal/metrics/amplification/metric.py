"""Do captions tie groups and objects together more strongly than the images do?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from scipy import sparse

from portrayal.errors import Undefined
from portrayal.metrics.amplification.counts import TieCounts, count_ties, object_counts
from portrayal.metrics.amplification.formulas import (
    Array,
    a_to_t,
    as_often,
    attribute_to_task,
    ba,
    bias_amplification,
    changes,
    effective_count,
    lean_of,
    leans,
    mean_of_known,
    sampling_error,
    spread_of_known,
    t_to_a,
    task_to_attribute,
)
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Synonyms, Words
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.mentions import (
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
from portrayal.statements import IDEAL, Statement
from portrayal.stats import RESAMPLES, Estimate, bootstrap, bootstrap_p, column_sums, resampler
from portrayal.study import Study

__all__ = ["amplification", "attribute_to_task", "bias_amplification", "task_to_attribute"]

_CHOICE = (
    "it is a mean over the objects that captions name, so saying more or less changes which ones are in it; invented "
    "objects weaken ties; and only ties that the labels show are counted, of which a world without data bias has none"
)
_NOISE = (
    "sets that few captions name change by chance, the more so the fewer captions name a group; in larger studies more "
    "sets become common enough to count, so there is no one true value; and only ties that the labels show count"
)
_LEAN = "weak ties are often read the wrong way round in small studies, which the interval does not cover"

CARD = Card(
    name="amplification",
    title="Ties between groups and objects, made stronger",
    question="Do captions tie groups to objects more strongly than the labels of the same images do?",
    formula=(
        "Truth: the labelled group a and the labelled objects t of an image. Prediction: the one group the caption "
        "names, and the objects it names. "
        "ba = sum over (o, g) with b*(o, g) > 1/|G| of (b~(o, g) - b*(o, g)), divided by the number of objects with a "
        "share on both sides, where b(o, g) is the share of group g among the captions or images with object o. "
        "a-to-t = mean over pairs of y (P(t^|a) - P(t|a)) and t-to-a = mean of y (P(a^|t) - P(a|t)), with y = 1 if "
        "P(a, t) > P(a) P(t) and -1 otherwise, over all labelled images; P(a^|t) is among the captions that name "
        "exactly one group. In ba, t-to-a and multi, b* and P(a|t) are over the same images: an image counts for the "
        "share of its captions that name exactly one group (--images all: every labelled image counts in full, as "
        "published). "
        "a-to-t-named: a-to-t with P(t^|a) P(t) / P(t^) in the place of P(t^|a). "
        "multi: as ba with sets of objects instead of objects, the differences taken without their sign; "
        "multi-signed with it; multi-floor is the multi that noise alone gives, sqrt(2/pi) times the standard error of "
        "each difference (over draws of images, or over captions where few name the set), and multi-excess what is "
        "above it; multi-variance: the variance of the differences over sets and groups."
    ),
    range="-1 to 1; multi and multi-variance: 0 and up. 0 where captions tie as the labels do.",
    needs=("captions", "attributes", "objects"),
    paper=(
        "ba: Zhao et al., EMNLP 2017. a-to-t, t-to-a: Wang and Russakovsky, Directional Bias Amplification, ICML 2021. "
        "multi: Zhao, Andrews and Xiang, Men Also Do Laundry, ICML 2023."
    ),
    caveats=(
        "With --images all, as published, captions that name one group are held against all images: where a caption "
        "names a group depends on what the image shows, so ba, t-to-a and multi then mix who is named wrongly with "
        "who is not named, and even their sign can depend on it.",
        "Captions leave objects unnamed: P(t^|a) is mostly below P(t|a), so a-to-t mixes what is tied with what is "
        "merely not said. a-to-t-named, t-to-a and ba do not: they divide by what was named.",
        "ba counts rare objects as much as common ones; the directional terms do too.",
        "multi is a mean of absolute values, which noise keeps above 0, and so is multi-variance. Read multi-excess "
        "and multi-signed beside them.",
        f"Sets of objects are those of one or two objects in at least {TOO_FEW} labelled images (--set-minimum).",
        "Which way a tie leans is taken from the labels as they are; intervals do not cover its uncertainty.",
        "Labels of people (person, man, rider) are left out. Objects are those people labelled, or, where they "
        "labelled none, models'.",
        "Objects in captions are found by word (the label, its plural, common synonyms), not by meaning.",
    ),
    terms=(
        # A mean over objects: larger studies name more of them, and which way rare ones lean is less often chance.
        Term(
            "ba", "mean growth of the shares that lean to a group", "share", "closer", 0.0, depends_on_n=True
        ),
        Term(
            "a-to-t",
            "how much more the group predicts the objects named than those present",
            "share",
            "closer",
            0.0,
        ),
        Term(
            "a-to-t-named",
            "the same as if every object were named as often as it is labelled",
            "share",
            "closer",
            0.0,
        ),
        Term(
            "t-to-a",
            "how much more the objects predict the group named than the one shown",
            "share",
            "closer",
            0.0,
        ),
        Term(
            "multi",
            "mean size of the change over sets of objects (ideal: its floor)",
            "share",
            "lower",
            depends_on_n=True,
        ),
        Term("multi-signed", "the same with its sign", "share", "closer", 0.0),
        Term(
            "multi-floor", "what multi would be if only noise changed the shares", "share", depends_on_n=True
        ),
        Term("multi-excess", "multi less its floor", "share", "lower", 0.0),
        Term(
            "multi-variance",
            "variance of the change over sets and groups",
            "share",
            "lower",
            depends_on_n=True,
        ),
    ),
    statements=(
        Statement(
            "ba",
            IDEAL,
            "{system} ties objects to {attribute} more strongly than the images do (ba)",
            "{system} ties objects to {attribute} more strongly than the images do (ba)",
            "{system} ties objects to {attribute} less strongly than the images do (ba)",
            smallest=0.005,
            choice="amplification",
            beside=("a-to-t-named", "t-to-a"),
        ),
        Statement(
            "t-to-a",
            IDEAL,
            "{system} takes {attribute} from the objects: they predict the group it names more than the group shown "
            "(t-to-a)",
            "the objects predict the group that {system} names more than the group shown (t-to-a)",
            "The objects predict the group that {system} names less than the group shown (t-to-a)",
            smallest=0.005,
            choice="amplification",
            beside=("ba", "a-to-t-named"),
        ),
    ),
    responds_to={
        **dict.fromkeys(
            ("ba", "a-to-t", "a-to-t-named", "multi", "multi-signed", "multi-excess", "multi-variance"),
            "amplification",
        ),
        "t-to-a": "guessed-group",
    },
    should_ignore=("neutral", "hallucination", "length", "vocabulary", "repetition", "data-bias"),
    lab_notes={
        "ba": _CHOICE,
        "a-to-t": "captions leave things unnamed, so P(t^|a) lies below P(t|a) for every group and a faithful system "
        f"seems to weaken ties; and {_LEAN}. It was made for predicted labels; "
        "read a-to-t-named instead",
        "a-to-t-named": _CHOICE,
        "multi-signed": _CHOICE,
        "multi": _NOISE,
        "multi-excess": _NOISE,
        "multi-variance": _NOISE,
        "t-to-a": f"it counts ties that the labels show, of which a world without data bias has none; and {_LEAN}",
    },
)


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
        "Images that decide which way a tie leans: labelled with a group and an object, or with either.",
    ] = "intersection",
    ties: Annotated[
        Literal["negative", "drop"],
        "A pair exactly as common as chance: counted as leaning away, or left out.",
    ] = "negative",
    images: Annotated[
        Literal["named", "all"],
        "Labels that shares of named groups (ba, t-to-a, multi) are compared with: of the images whose captions name "
        "exactly one group, or of all labelled images, as published.",
    ] = "named",
    set_minimum: Annotated[int, "Labelled images that a set of objects must be in, for multi.", 1] = TOO_FEW,
    synonyms: Synonyms = None,
) -> ResultBuilder:
    """Amplification of every speaker against the labels.

    >>> import numpy as np
    >>> from portrayal.metrics.amplification.metric import bias_amplification
    >>> truth = np.array([[30, 10], [10, 30]])
    >>> round(bias_amplification(truth, np.array([[15, 10], [25, 30]])), 6)
    -0.177273
    """
    words = choose_lexicon(lexicon, attribute)
    names = lexicon_names(study.groups(attribute), words, attribute)
    groups = [group for group, listed in names.items() if listed is not None]
    if len(groups) < 2:
        raise Undefined(
            f"Amplification needs two groups of '{attribute}' that the lexicon '{words.name}' names."
        )
    everything, source = labelled_objects(study)
    seen = without_people(everything)
    labels = sorted(set(seen["label"]))
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
    annotated = labelled_images(study)  # what is in the others is not known
    for source in sources:
        mentions = find_mentions(study, source, words)
        unlabelled = (
            [image for image in mentions.images if truth.get(image) not in groups] if rows == "union" else []
        )
        mentions = mentions.only(
            [image for image in mentions.images if truth.get(image) in groups and image in annotated]
        )
        view = count_ties(
            seen,
            mentions,
            [truth[image] for image in mentions.images],
            groups,
            names,
            labels,
            finder,
            set_minimum,
            images,
        )
        extra = object_counts(seen, unlabelled, labels)
        _measure(builder, source, mentions, view, rows, extra, ties, images, seed, bootstrap)
    return builder


def _measure(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    view: TieCounts,
    rows: str,
    extra: tuple[Array, int],
    ties: str,
    compared_with: str,
    seed: int,
    n_resamples: int,
) -> None:
    images = len(mentions.images)
    draw = resampler(mentions.images, seed, n_resamples)
    blocks = [
        view.truth,
        view.compared,
        view.named_objects,
        view.named_groups,
        view.named_both,
        view.people,
        view.with_object,
    ]
    columns = sparse.hstack([*blocks, view.sets_compared, view.sets_named], format="csr")
    edges = np.cumsum([block.shape[1] for block in (*blocks, view.sets_compared, view.sets_named)])[:-1]

    def table(part: Array) -> Array:
        return part.reshape(len(part), view.groups, -1).transpose(0, 2, 1)

    # Which way a tie leans is read off the labels once. Deciding it anew in every draw would count the noise of
    # the labels twice and pull every draw down: what leans by chance leans back. All labelled images decide it, so
    # that it is the same for every system that captions them.
    truth, _, _, _, _, people, deciding, _, _ = np.split(column_sums(columns)[None], edges, axis=1)
    base = deciding if rows == "intersection" else people
    lean = lean_of(table(truth), table(truth).sum(axis=2) + extra[0], base, base.sum(axis=1) + extra[1], ties)
    leaning, sets_leaning = leans(table(truth)), leans(table(column_sums(view.sets_truth)[None]))

    def statistic(totals: Array) -> Array:
        truth, compared, objects, groups, both, people, _, sets, sets_named = np.split(totals, edges, axis=1)
        change = changes(table(sets), table(sets_named), sets_leaning)
        flat = change.reshape(len(totals), -1)
        return np.column_stack(
            [
                ba(table(compared), table(both), leaning),
                a_to_t(table(truth), table(objects), people, lean),
                a_to_t(table(truth), as_often(table(objects), table(truth)), people, lean),
                t_to_a(table(compared), table(groups), lean),
                mean_of_known(np.abs(change).sum(axis=2)),
                mean_of_known(change.sum(axis=2)),
                mean_of_known((flat - mean_of_known(flat)[:, None]) ** 2),
            ]
        )

    def floor() -> float | None:
        """A mean of absolute values is above 0 without any change: the mean size of each change's own noise."""
        totals = draw.totals(sparse.hstack([view.sets_compared, view.sets_named], format="csr"))
        before, after = np.split(totals, 2, axis=1)
        drawn = spread_of_known(changes(table(before), table(after), sets_leaning))
        labelled = table(column_sums(view.sets_compared)[None])[0]
        part = view.sets_any
        said = effective_count(column_sums(part), column_sums(part.multiply(part)))
        few = np.where(sets_leaning[0], sampling_error(labelled, said), 0.0)
        noise = np.sqrt(2 / np.pi) * np.where(np.isnan(drawn), np.nan, np.fmax(drawn, few))
        found = mean_of_known(noise.sum(axis=1)[None])[0]
        return float(found) if np.isfinite(found) else None

    one = mentions.how_many == 1
    reason = None if images else "no captioned image with a label"
    found = dict.fromkeys((term.name for term in CARD.terms), Estimate.of(None))
    if images:
        order = ("ba", "a-to-t", "a-to-t-named", "t-to-a", "multi", "multi-signed", "multi-variance")
        found |= dict(zip(order, bootstrap(columns, statistic, draw), strict=True))
        # Noise only ever adds to these two, so their draws lie above the value they are drawn around.
        centred = bootstrap(columns, statistic, draw, method="centred")
        found |= {
            "multi": centred[order.index("multi")].at_least(0),
            "multi-variance": centred[order.index("multi-variance")].at_least(0),
            "multi-floor": Estimate.of(floor()),
        }
        multi, noise = found["multi"], found["multi-floor"]
        if multi.value is not None and noise.value is not None:
            found["multi-excess"] = multi.moved(-noise.value)
    for term in CARD.terms:
        estimate = found[term.name]
        signed = term.name in ("ba", "a-to-t", "a-to-t-named", "t-to-a", "multi-signed")
        undefined = (
            None if estimate.value is not None else reason or "no object, or set, is both labelled and named"
        )
        builder.add(
            term.name,
            estimate,
            system=source,
            n=images if compared_with == "all" or term.name.startswith("a-to-t") else view.naming,
            reason=undefined,
            ideal=found["multi-floor"].value if term.name == "multi" else None,
            p=bootstrap_p(estimate.replicates) if signed and undefined is None else None,
            evidence=mentions.evidence(
                np.ones(len(one), dtype=bool) if term.name.startswith("a-to-t") else one
            ),
            resampler=draw,
        )
