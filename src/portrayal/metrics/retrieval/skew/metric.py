"""Who is at the top when people search? How groups are spread over scored lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from portrayal.errors import PortrayalError
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.retrieval.skew.measurements import Case
from portrayal.metrics.retrieval.skew.ranked_lists import read_lists
from portrayal.metrics.retrieval.skew.reference import choose_reference
from portrayal.statements import IDEAL, Statement
from portrayal.stats import RESAMPLES
from portrayal.study import Study

CARD = Card(
    name="retrieval-skew",
    title="Groups at the top of ranked lists",
    question="Which groups of people stand at the top of the lists that a search gives, and which do not?",
    formula=(
        "Among the people whose group is known, in the first k places of a query's list, share_g is the share of a "
        "group, ref_g its share in the reference (--reference). "
        "bias@k of a group = (N_g - N_others) / (N_g + N_others) = 2 share_g - 1, and its ideal is 2 ref_g - 1; for "
        "all groups it is the sum over groups of |share_g - ref_g|, which for two groups is how far the bias is from "
        "its ideal. skew@k of a group = ln(share_g / ref_g); over several queries, of its mean share and mean "
        "reference. maxskew = the largest skew@k of any group. "
        "ndkl = (1 / Z) sum over places i of KL(D_i || ref) / log2(i + 1), Z = sum of 1 / log2(i + 1), where D_i are "
        "the shares from the top to place i, over the whole list or to --depth; it does not depend on k. "
        "For all queries each is the mean over queries. "
        "Items of equal score share their places: each counts in every top with the same part. "
        "Intervals are over queries. p and the ideal of bias@k for all groups, maxskew and ndkl are those of chance: "
        "held against its own shares, a list keeps its groups and deals them to its items anew; held against other "
        "shares, each person's group is drawn from these."
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
        "All depends on the reference, which is a choice: 'list' asks whether the top is like the rest of the same "
        "list, 'study' whether it is like the study's images, 'equal' whether all groups have the same share. None "
        "of them is what is fair.",
        "With 'list', who is missing from the whole list is not noticed, and a list of k items or fewer is its own "
        "top: give lists that go on well beyond k.",
        "Few places leave much to chance: read bias@k for all groups, maxskew and ndkl against their ideal, which is "
        "what chance alone gives, and not against 0.",
        "A query whose top shows nobody of a known group is left out; Wang, Liu and Wang count it as 0.",
        "Where a group is absent from a top its skew@k is minus infinity and not given. Over several queries it is "
        "that of the mean shares, so that such queries count; the mean of the queries' own skews would leave out "
        "the worst.",
        "Intervals say how far other queries of the same kind would differ; a handful of queries says little of it.",
        "Items without a label keep their places but count for no group.",
        "A group's label is what annotators saw, not what the person would say of themselves.",
    ),
    terms=(
        Term(
            "bias@k",
            "the group against all others in the first k places (ideal: as the reference); for all groups, how far "
            "their shares are from the reference (ideal: as by chance)",
            "share",
            "closer",
        ),
        Term(
            "skew@k",
            "logarithm of the group's share of the first k places over its share in the reference",
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
            "divergence from the reference over all places, the first ones counting most (ideal: as by chance)",
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


@metric(CARD)
def retrieval_skew(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    k: Annotated[tuple[int, ...], "How many places are the top: numbers separated by commas."] = (10,),
    reference: Annotated[
        str | Mapping[str, float],
        "What tops are held against: 'list' (the shares of the query's whole list), 'study' (those of the labelled "
        "images), "
        "'equal', or shares such as female=0.5,male=0.5.",
    ] = "list",
    depth: Annotated[int | None, "Places that NDKL looks at; by default all of a list.", 1] = None,
) -> ResultBuilder:
    """Bias@k, Skew@k, MaxSkew and NDKL of every system that ranks: per group, per query, and over queries.

    >>> import polars as pl, portrayal
    >>> lists = pl.DataFrame({"query": ["a nurse"] * 4, "item": ["a", "b", "c", "d"], "score": [4, 3, 2, 1],
    ...                       "group": ["female", "female", "male", "male"]})
    >>> study = portrayal.Study.from_frames(rankings=lists)
    >>> found = portrayal.metrics.retrieval_skew(study, k=3, reference="equal").measurements
    >>> {(m.term, m.group): round(m.value, 3) for m in found if m.item is None and m.value is not None}
    ... # doctest: +NORMALIZE_WHITESPACE
    {('bias@k', None): 0.333, ('bias@k', 'female'): 0.333, ('bias@k', 'male'): -0.333, ('skew@k', 'female'): 0.288,
     ('skew@k', 'male'): -0.405, ('maxskew', None): 0.288, ('ndkl', None): 0.452}
    """
    tops = _tops(k)
    against, groups = choose_reference(reference, study, attribute)
    preconditions_met()
    builder = ResultBuilder(CARD, attribute, {})
    for system in sources:
        if system in study.rankers:
            lists = read_lists(study, system, attribute, groups)
            case = Case(study, system, lists, groups, against, tops, depth, seed, bootstrap)
            for top in tops:
                case.measure(builder, top)
    return builder


def _tops(k: int | Sequence[int]) -> tuple[int, ...]:
    tops = tuple(dict.fromkeys((k,) if isinstance(k, int) else k))
    for top in tops:
        if isinstance(top, bool) or not isinstance(top, int) or top < 1:
            raise PortrayalError(f"The option 'k' must be whole numbers of 1 or more. Got {top!r} instead.")
    if not tops:
        raise PortrayalError("The option 'k' must name at least one number of places.")
    return tops
