"""The true bias of the lab's world: the bias of the Bayes-optimal classifier, in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from portrayal.lab.world import (
    ATTRIBUTES,
    BIASED_ATTRIBUTE,
    ActivityPair,
    Cue,
    World,
    concept_probabilities,
    place_probabilities,
)


def optimal_bias(world: World | None = None) -> dict[str, float]:
    """Return P(activity | image of the first group) - P(activity | same image of the second) of the optimal classifier.

    It is averaged over the images of each activity, within each group and then across groups. A classifier that knows
    the world exactly is still biased where the image is unclear; a model with a larger bias has amplified it. Positive
    values are toward the first group. Signs of gender are assumed to be visible.
    """
    world = world or World()
    return bayes_optimal_bias(world.activity_pairs, world.data_bias, world.cue_shares)


def bayes_optimal_bias(
    pairs: Sequence[ActivityPair], data_bias: float, cues: Mapping[Cue, float]
) -> dict[str, float]:
    """Return the bias of the optimal classifier for any pairs and shares of cues; pairs without places share one."""
    groups = list(ATTRIBUTES[BIASED_ATTRIBUTE])[:2]
    prior = concept_probabilities(pairs, data_bias)
    place_shares = {group: _place_shares(pairs, data_bias, group) for group in groups}
    biases = {}
    for pair in pairs:
        for concept in pair.concepts.values():
            # With a full cue both probabilities are 1; with an ambiguous cue, the pair's activities are possible.
            unclear = [
                prior[g][concept] / sum(prior[g][other] for other in pair.concepts.values()) for g in groups
            ]
            hidden = 0.0
            # Without a cue, the place is the only evidence.
            for shown in groups:
                for place, share in place_shares[shown][concept].items():
                    both = [
                        prior[g][concept] * place_shares[g][concept][place]
                        / sum(prior[g][other] * place_shares[g][other].get(place, 0.0) for other in prior[g])
                        for g in groups
                    ]  # fmt: skip
                    hidden += share * (both[0] - both[1]) / len(groups)
            biases[concept] = cues["ambiguous"] * (unclear[0] - unclear[1]) + cues["absent"] * hidden
    return biases


def _place_shares(pairs: Sequence[ActivityPair], data_bias: float, group: str) -> dict[str, dict[str, float]]:
    if all(pair.places for pair in pairs):
        return place_probabilities(pairs, data_bias, group)
    return {concept: {"": 1.0} for pair in pairs for concept in pair.concepts.values()}
