"""The metric on captions that are counted by hand."""

import polars as pl
import pytest
from hedging import hedging

from portrayal import Study


@pytest.fixture
def study():
    captions = ["maybe a doctor", "a nurse", "she seems happy", "a man", "a man", "a man runs"]
    genders = ["female", "female", "female", "male", "male", "male"]
    images = list(range(6))
    return Study.from_frames(
        captions=pl.DataFrame({"image_id": images, "system": "s", "caption": captions}),
        attributes=pl.DataFrame({"image_id": images, "gender": genders}),
    )


def test_shares_by_hand(study):
    rows = {(m.term, m.group): m.value for m in hedging(study, bootstrap=20).measurements}
    assert rows["hedging", None] == pytest.approx(2 / 6)
    assert rows["hedging", "female"] == pytest.approx(2 / 3)
    assert rows["hedging", "male"] == 0


def test_too_few_images_have_no_gap(study):
    (gap,) = (m for m in hedging(study, bootstrap=20).measurements if m.term == "hedging-gap")
    assert gap.value is None
    assert "fewer than two groups have 30 images" in gap.reason
