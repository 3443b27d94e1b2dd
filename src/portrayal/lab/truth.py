"""What the truth is: the bias of the best possible guesser, in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from portrayal.lab.world import ATTRIBUTES, LEANING, Cue, Pair, World, chances, place_chances


def optimal_bias(world: World | None = None) -> dict[str, float]:
    """P(activity | picture of the first group) - P(activity | the same picture of the second), for the best guesser.

    Averaged over the pictures of each activity, within each group and then across them. A guesser that knows the
    world exactly still leans where the picture is unclear; this is how much, so a model that leans more has added
    bias of its own. Positive leans to the first group. Signs of gender are taken to be seen.
    """
    world = world or World()
    return best_guess_bias(world.activity_pairs, world.data_bias, world.cue_shares)


def best_guess_bias(pairs: Sequence[Pair], data_bias: float, cues: Mapping[Cue, float]) -> dict[str, float]:
    """The same for any pairs and shares of cues; pairs without places are all in one place."""
    groups = list(ATTRIBUTES[LEANING])[:2]
    prior = chances(pairs, data_bias)
    where = {group: _places(pairs, data_bias, group) for group in groups}
    found = {}
    for pair in pairs:
        for concept in pair.of.values():
            # With a full cue both groups get 1; where it is unclear the other activity of the pair is left.
            unclear = [prior[g][concept] / sum(prior[g][other] for other in pair.of.values()) for g in groups]
            hidden = 0.0
            for shown in groups:  # with no cue at all, the place is what is left to go by
                for place, share in where[shown][concept].items():
                    both = [
                        prior[g][concept] * where[g][concept][place]
                        / sum(prior[g][other] * where[g][other].get(place, 0.0) for other in prior[g])
                        for g in groups
                    ]  # fmt: skip
                    hidden += share * (both[0] - both[1]) / len(groups)
            found[concept] = cues["ambiguous"] * (unclear[0] - unclear[1]) + cues["absent"] * hidden
    return found


def _places(pairs: Sequence[Pair], data_bias: float, group: str) -> dict[str, dict[str, float]]:
    if all(pair.places for pair in pairs):
        return place_chances(pairs, data_bias, group)
    return {concept: {"": 1.0} for pair in pairs for concept in pair.of.values()}
