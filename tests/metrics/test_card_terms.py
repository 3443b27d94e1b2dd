"""Cards name terms in several places: all of them are terms of the card."""

from __future__ import annotations

import pytest

from portrayal.metrics import CARDS, METRICS, Card, find_metric
from portrayal.mitigate.captions import CARD as CAPTION_MITIGATION
from portrayal.mitigate.card import CARD as MITIGATION

ALL_CARDS = [*CARDS.values(), MITIGATION, CAPTION_MITIGATION]


def named_terms(card: Card) -> list[str]:
    names = [*card.headline, *(card.side_by_side or ())]
    names += card.trade_off.terms if card.trade_off is not None else ()
    if card.before_after is not None:
        described = card.before_after
        names += [*described.terms, *described.printed, *described.printed_by_group]
    return names


@pytest.mark.parametrize("card", ALL_CARDS, ids=lambda card: card.name)
def test_every_named_term_is_a_term_of_the_card(card):
    assert set(named_terms(card)) <= {term.name for term in card.terms}


def test_terms_printed_by_group_are_printed():
    described = [card.before_after for card in ALL_CARDS if card.before_after is not None]
    assert len(described) == 4
    for description in described:
        assert description.printed_terms
        assert set(description.printed_by_group) <= set(description.printed_terms)


def test_options_before_and_after_are_options_of_the_metric():
    for metric in METRICS.values():
        description = metric.card.before_after
        if description is not None:
            names = {*description.options, *description.offered_options}
            assert names <= set(find_metric(metric.name).options), metric.name


def test_ranks_before_and_after_differ():
    ranks = [card.before_after.order for card in ALL_CARDS if card.before_after is not None]
    assert len(set(ranks)) == len(ranks)
