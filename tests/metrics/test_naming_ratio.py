"""The naming ratio: by hand and against a second implementation."""

from __future__ import annotations

import polars as pl
import pytest

import portrayal
from portrayal.metrics.naming_ratio import naming_ratio
from portrayal.study import Study

CAPTIONS = [("1", "a man"), ("2", "a man"), ("3", "a woman"), ("4", "a man and a woman"), ("9", "a man")]
REFERENCES = [
    ("1", "a man"), ("1", "a man"), ("1", "a person"),
    ("2", "a person"),
    ("3", "a woman"), ("3", "a man"),
    ("4", "a woman"),
]  # fmt: skip


def study() -> Study:
    captions = pl.DataFrame(CAPTIONS, schema=["image_id", "caption"], orient="row").with_columns(
        system=pl.lit("s")
    )
    references = pl.DataFrame(REFERENCES, schema=["image_id", "caption"], orient="row")
    return Study.from_frames(captions=captions, references=references)


def ratios(**options) -> dict[str | None, float | None]:
    return {m.group: m.value for m in naming_ratio(study(), attribute="gender", **options).measurements}


def test_by_hand():
    # On images 1 to 4 the system names men in 1, 2, 4 and women in 3, 4. Humans: men 2/3 + 0 + 1/2 + 0,
    # women 0 + 0 + 1/2 + 1; any group 2/3 + 0 + 1 + 1.
    assert ratios() == pytest.approx({"male": 3 / (7 / 6), "female": 2 / 1.5, None: 4 / (8 / 3)})


def test_any_and_majority():
    # any: men on 1 and 3, women on 3 and 4; majority (over half): men on 1, women on 4
    assert ratios(human="any") == pytest.approx({"male": 3 / 2, "female": 2 / 2, None: 4 / 3})
    assert ratios(human="majority") == pytest.approx({"male": 3 / 1, "female": 2 / 1, None: 4 / 3})


@pytest.mark.parametrize("n", [2, 18, 22, 36, 50])
def test_half_of_the_references_is_no_majority(n):
    references = pl.DataFrame({"image_id": ["1"] * n, "caption": ["a man", "a person"] * (n // 2)})
    captions = pl.DataFrame({"image_id": ["1"], "system": ["s"], "caption": ["a man"]})
    half_study = Study.from_frames(captions=captions, references=references)
    rows = naming_ratio(half_study, attribute="gender", human="majority").measurements
    assert all(m.value is None for m in rows)


def test_only_images_with_both_sources_count():
    results = naming_ratio(study(), attribute="gender")
    assert {m.n for m in results.measurements} == {4}
    assert "9" not in results.evidence["image_id"].to_list()


def test_a_group_without_human_mentions_is_undefined():
    captions = pl.DataFrame({"image_id": ["1"], "system": ["s"], "caption": ["a man"]})
    references = pl.DataFrame({"image_id": ["1"], "caption": ["a woman"]})
    rows = naming_ratio(
        Study.from_frames(captions=captions, references=references), attribute="gender"
    ).measurements
    male = next(m for m in rows if m.group == "male")
    assert (male.value, male.reason) == (None, "no person names male on these images")


def test_a_system_that_never_names_a_group_has_a_wilson_upper_bound():
    """Every resample gives 0. By hand: Wilson's upper bound of 0 of 60 is z^2 / (60 + z^2) = .0602, and references
    name women on half of the images: the ratio reaches as far as .0602 / .5 = .1204."""
    image_ids = [str(n) for n in range(60)]
    male_study = Study.from_frames(
        captions=pl.DataFrame({"image_id": image_ids, "system": ["s"] * 60, "caption": ["a man"] * 60}),
        references=pl.DataFrame({"image_id": image_ids, "caption": ["a man", "a woman"] * 30}),
    )
    female = next(m for m in naming_ratio(male_study, attribute="gender").measurements if m.group == "female")
    assert (female.value, female.low) == (0.0, 0.0)
    assert female.high == pytest.approx(0.1204, abs=1e-3)
    assert female.p < 1e-4


def test_a_system_that_copies_the_references_has_ratio_1():
    references = pl.DataFrame({"image_id": [str(n) for n in range(80)], "caption": ["a man", "a woman"] * 40})
    copied = Study.from_frames(captions=references.with_columns(system=pl.lit("s")), references=references)
    for m in naming_ratio(copied, attribute="gender").measurements:
        assert (m.value, m.low, m.high, m.p) == (1.0, 1.0, 1.0, 1.0)


def test_real_ratios_agree_with_a_second_implementation(lic_gender):
    real = portrayal.read_study(lic_gender)
    lexicon = {w: g for g, words in portrayal.lexicon.load_lexicon("gender").groups.items() for w in words}

    def names(caption: str) -> set[str]:
        cleaned = "".join(c if c.isalnum() or c == "-" else " " for c in caption.lower())
        return {lexicon[word] for word in cleaned.split() if word in lexicon}

    human_groups: dict[str, list[set[str]]] = {}
    for image, caption in real.references.iter_rows():
        human_groups.setdefault(image, []).append(names(caption))
    system_groups = {
        i: names(c)
        for i, c in real.captions.filter(pl.col("system") == "oscar")
        .select("image_id", "caption")
        .iter_rows()
    }
    for m in naming_ratio(
        real, attribute="gender", systems=["oscar"], bootstrap=20, lexicon="gender-lic"
    ).measurements:
        if m.group is not None:
            numerator = sum(
                m.group in groups for image, groups in system_groups.items() if image in human_groups
            )
            denominator = sum(
                sum(m.group in groups for groups in image_groups) / len(image_groups)
                for image, image_groups in human_groups.items()
                if image in system_groups
            )
            assert m.value == pytest.approx(
                numerator / denominator, rel=2e-3
            )  # hyphens and clitics differ in a few captions
