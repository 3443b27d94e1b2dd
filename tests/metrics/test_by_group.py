"""Rows by group from counts per caption: by hand, for one attribute and for a crossing of two."""

from __future__ import annotations

import polars as pl
import pytest

from portrayal.metrics import Card, ResultBuilder, Share, Term, measure_by_group
from portrayal.stats import wilson
from portrayal.study import Study

CARD = Card(
    name="hats", title="Hats", question="How often is there a hat?", formula="hats / captions", range="0 to 1",
    needs=("captions",), paper="none", caveats=(),
    terms=(
        Term("hats", "captions with a hat", "share"),
        Term("hats-gap", "largest difference", "share", "lower", 0.0),
        Term("length", "mean letters", "letters"),
    ),
)  # fmt: skip


def study_of(captions: list[tuple[str, str, str, str]]) -> Study:
    """Rows of image, caption, gender and age."""
    images = list(dict.fromkeys((image, gender, age) for image, _, gender, age in captions))
    return Study.from_frames(
        captions=pl.DataFrame(
            {
                "image_id": [image for image, *_ in captions],
                "system": "s",
                "caption": [caption for _, caption, *_ in captions],
                "sample": range(len(captions)),
            }
        ),
        attributes=pl.DataFrame(images, schema=["image_id", "gender", "age"], orient="row"),
    )


def measure(study: Study, attribute: str | None) -> ResultBuilder:
    captions = study.captions_of("s").select(
        "image_id",
        "caption",
        hat=pl.col("caption").str.contains("hat"),
        captions=1,
        letters=pl.col("caption").str.len_chars(),
    )
    builder = ResultBuilder(CARD, attribute, {})
    terms = {"hats": Share("hat", "captions"), "length": lambda sums: sums["letters"] / sums["captions"]}
    measure_by_group(builder, study, captions, terms, source="s", bootstrap=40)
    return builder


def values(builder: ResultBuilder, term: str) -> dict[str | None, float | None]:
    return {m.group: m.value for m in builder.measurements if m.term == term}


def forty_images() -> Study:
    """Of each gender 40 images; a hat on 30 women and 10 men. Half of each are young."""
    rows = [
        (f"{gender}{n:02}", "a hat" if n < hats else "a coat", gender, "young" if n % 2 else "old")
        for gender, hats in (("female", 30), ("male", 10))
        for n in range(40)
    ]
    return study_of(rows)


def test_shares_by_hand():
    builder = measure(forty_images(), "gender")
    assert values(builder, "hats") == {None: 0.5, "female": 0.75, "male": 0.25}
    assert values(builder, "length") == {None: 5.5, "female": 5.25, "male": 5.75}
    (gap,) = (m for m in builder.measurements if m.term == "hats-gap")
    assert (gap.value, gap.n, gap.group) == (0.5, 80, None)
    assert gap.p < 0.05
    assert {m.n for m in builder.measurements if m.group == "female"} == {40}


def test_a_share_has_wilsons_interval():
    (row,) = (
        m for m in measure(forty_images(), "gender").measurements if m.group == "male" and m.term == "hats"
    )
    assert (row.low, row.high) == pytest.approx(wilson(10, 40))


def test_groups_of_two_attributes():
    builder = measure(forty_images(), "gender+age")
    assert values(builder, "hats") == {
        None: 0.5, "female+old": 0.75, "female+young": 0.75, "male+old": 0.25, "male+young": 0.25,
    }  # fmt: skip
    (gap,) = (m for m in builder.measurements if m.term == "hats-gap")
    assert gap.value is None
    assert gap.reason == "fewer than two groups have 30 images to compare"


def test_captions_of_an_image_count_together():
    study = study_of(
        [("1", "a hat", "female", "old"), ("1", "a coat", "female", "old"), ("2", "a hat", "male", "old")]
    )
    builder = measure(study, "gender")
    assert values(builder, "hats") == {None: pytest.approx(2 / 3), "female": 0.5, "male": 1.0}
    assert {m.n for m in builder.measurements if m.term == "hats" and m.group is None} == {2}


def test_evidence_of_a_share_are_its_captions():
    builder = measure(forty_images(), "gender")
    results = builder.results()
    (row,) = (m for m in results.measurements if m.group == "male" and m.term == "hats")
    assert set(results.evidence_of(row)["caption"]) == {"a hat"}
    assert results.evidence_of(row).height == 10


def test_without_labels_there_are_only_rows_of_all_images():
    assert values(measure(forty_images(), None), "hats") == {None: 0.5}
    assert "hats-gap" not in {m.term for m in measure(forty_images(), None).measurements}


def test_a_source_without_captions_has_a_reason():
    builder = ResultBuilder(CARD, "gender", {})
    captions = pl.DataFrame({"image_id": [], "caption": [], "hat": [], "captions": []})
    measure_by_group(builder, forty_images(), captions, {"hats": Share("hat", "captions")}, source="t")
    assert [(m.value, m.reason) for m in builder.measurements] == [(None, "'t' has no captions")]
