"""The card of retrieval skew: how groups are spread over the top of ranked lists."""

from __future__ import annotations

from portrayal.metrics.base.card import Card, Term
from portrayal.statements import IDEAL, Statement

CARD = Card(
    name="retrieval-skew",
    answers="associations",
    title="Groups at the top of ranked lists",
    question="Which groups of people are at the top of ranked search results, and which are not?",
    formula=(
        "Among the people of known group in the top k of a query's list, share_g is the share of a "
        "group, ref_g its share in the reference (--reference). "
        "bias@k of a group = (N_g - N_others) / (N_g + N_others) = 2 share_g - 1, and its ideal is 2 ref_g - 1; for "
        "all groups it is the sum over groups of |share_g - ref_g|, which for two groups is how far the bias is from "
        "its ideal. skew@k of a group = ln(share_g / ref_g); over several queries, of its mean share and mean "
        "reference. maxskew = the largest skew@k of any group. "
        "ndkl = (1 / Z) sum over places i of KL(D_i || ref) / log2(i + 1), Z = sum of 1 / log2(i + 1), where D_i are "
        "the shares from the top to place i, over the whole list or to --depth; it does not depend on k. "
        "For all queries each is the mean over queries. "
        "Tied items share their ranks: each counts in every top k with the same fraction. "
        "Intervals are over queries. p and the ideal of bias@k for all groups, maxskew and ndkl come from permutation: "
        "with reference 'list' the groups of a list are permuted over its items; with other references each person's "
        "group is drawn from the reference shares."
    ),
    range=(
        "bias@k: -1 (nobody of the group) to 1 (nobody else); for all groups 0 (as the reference) to 2. skew@k: any "
        "number; 0 as the reference, minus infinity (undefined) where the group is absent. maxskew, ndkl: 0 and up."
    ),
    needs=("rankings", "attributes"),
    paper=(
        "Wang, Liu and Wang, Are Gender-Neutral Queries Really Gender-Neutral?, EMNLP 2021 (Bias@K); Geyik, Ambler "
        "and Kenthapadi, Fairness-Aware Ranking in Search & Recommendation Systems, KDD 2019 (Skew@k, MaxSkew, NDKL)."
    ),
    caveats=(
        "Everything depends on the reference, which is a choice: 'list' asks whether the top is like the whole list, "
        "'study' whether it is like the study's images, 'equal' whether all groups have the same share. None of them "
        "defines fairness.",
        "With 'list', a group missing from the whole list is not noticed, and a list of at most k items equals its own "
        "top: give lists much longer than k.",
        "A small k is noisy: compare bias@k for all groups, maxskew and ndkl with their ideal, the value expected by "
        "chance, not with 0.",
        "A query whose top holds nobody of known group is left out; Wang, Liu and Wang count it as 0.",
        "Where a group is absent from a top its skew@k is minus infinity and undefined. Over several queries it is "
        "computed from the mean shares, so that such queries count; the mean of the queries' skews would leave out "
        "the worst.",
        "Intervals describe other queries of the same kind; with a handful of queries they are uncertain themselves.",
        "Items without a label keep their rank but count for no group.",
        "A group's label is the annotators' perception, not the person's self-identification.",
    ),
    terms=(
        Term(
            "bias@k",
            "the group against all others in the top k (ideal: as the reference); for all groups, the distance of "
            "their shares from the reference (ideal: as by chance)",
            "share",
            "closer",
        ),
        Term(
            "skew@k",
            "logarithm of the group's share of the top k over its share in the reference",
            "log ratio",
            "closer",
            0.0,
        ),
        Term(
            "maxskew",
            "the largest skew@k of any group (ideal: as by chance)",
            "log ratio",
            "lower",
            depends_on_n="searched",
        ),
        Term(
            "ndkl",
            "divergence from the reference over all ranks, discounted by rank (ideal: as by chance)",
            "nats",
            "lower",
            depends_on_n="searched",
        ),
    ),
    statements=(
        Statement(
            "maxskew",
            IDEAL,
            "When searched ({n} queries), {system} ranks one group first more often than its share, beyond "
            "chance{mostly} (maxskew, mean of a natural logarithm over queries: .69 is twice its share)",
            "{system} ranks one group of {attribute} first more often than its share, beyond chance (maxskew)",
            "{system} ranks the groups of {attribute} closer to their shares than chance does (maxskew)",
            group_term="skew@k",
        ),
    ),
    responds_to=dict.fromkeys(("bias@k", "bias@k@one", "skew@k@one", "maxskew", "ndkl"), "ranking-lean@one"),
    should_ignore=(
        "guessed-group",
        "wrong-group",
        "neutral",
        "hallucination",
        "erasure",
        "length",
        "vocabulary",
    ),
)
