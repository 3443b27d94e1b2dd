"""Cautions appear in check-study, in the terminal, on the page and beside the rows they concern."""

from __future__ import annotations

import polars as pl
import pytest

import portrayal
from portrayal.metrics.base.cautions import study_cautions
from portrayal.study import Study, write_study
from portrayal.study.cautions import cautions

N = 40
IMAGES = [str(number) for number in range(N)]
GENDER = pl.DataFrame({"image_id": IMAGES, "gender": ["male"] * (N - 8) + ["female"] * 8})


def captions(system: str, images: list[str], caption: str = "a man rides a bike") -> pl.DataFrame:
    return pl.DataFrame(
        {"image_id": images, "system": [system] * len(images), "caption": [caption] * len(images)}
    )


def references(per_image: dict[str, int]) -> pl.DataFrame:
    images = [image for image, count in per_image.items() for _ in range(count)]
    return pl.DataFrame(
        {"image_id": images, "caption": [f"a man rides a bike {i}" for i in range(len(images))]}
    )


def even_references(count: int = 5) -> pl.DataFrame:
    return references(dict.fromkeys(IMAGES, count))


def kinds_of_cautions(study: Study) -> list[tuple[str, str | None]]:
    return [(caution.about, caution.system) for caution in cautions(study)]


def test_a_study_without_faults_has_no_cautions():
    only_men = GENDER.with_columns(gender=pl.lit("male"))
    both_systems = pl.concat([captions("a", IMAGES), captions("b", IMAGES)])
    study = Study.from_frames(captions=both_systems, references=even_references(), attributes=only_men)
    assert cautions(study) == ()
    counts = {image: 5 + (number == 3) for number, image in enumerate(IMAGES)}
    assert not kinds_of_cautions(
        Study.from_frames(captions=both_systems, references=references(counts))
    )  # as COCO has them


def test_uneven_references_are_reported_with_their_numbers():
    study = Study.from_frames(
        captions=captions("a", IMAGES), references=references({image: 1 if int(image) < 10 else 5 for image in IMAGES})
    )  # fmt: skip
    assert kinds_of_cautions(study) == [("references", None)]
    assert "(10 images have 1, 30 images have 5)" in cautions(study)[0].sentence
    counts = {image: [1, 2, 2, 3, 4, 7, 0][int(image)] if int(image) < 7 else 5 for image in IMAGES}
    more_uneven = Study.from_frames(captions=captions("a", IMAGES), references=references(counts))
    terms = "(1 image has 1, 2 images have 2, 33 images have 5, 1 image has 7, 2 another number, 1 none)"
    assert terms in cautions(more_uneven)[0].sentence
    rows = portrayal.metrics.quality(study, bootstrap=20).measurements
    assert all("uneven" in (m.caution or "") for m in rows if m.term == "cider" and m.value is not None)
    assert not any(m.caution for m in rows if m.term in ("length", "vocabulary"))


def test_systems_with_as_many_but_different_images():
    both_systems = pl.concat([captions("a", IMAGES[:30]), captions("b", IMAGES[10:])])
    study = Study.from_frames(captions=both_systems)
    assert kinds_of_cautions(study) == [("images", "a"), ("images", "b")]
    assert "(a 30, b 30; 20 by all of them)" in cautions(study)[0].sentence
    assert not cautions(study.select_systems(["a"]))


def test_human_captions_of_other_images():
    """A system of 40 images with references of ten; human captions of images without a system are not read."""
    study = Study.from_frames(
        captions=captions("a", IMAGES), references=references(dict.fromkeys(IMAGES[:10], 5))
    )
    assert ("other images", "a") in kinds_of_cautions(study)
    sentence = next(caution.sentence for caution in cautions(study) if caution.about == "other images")
    assert "Human captions are of 10 images and captions of a of 40 (10 of them the same)" in sentence
    rows = portrayal.metrics.harms(study, measurement="demeaning.words").measurements
    assert {m.system for m in rows if sentence in (m.caution or "")} == {"a"}
    more_references = references(dict.fromkeys([*IMAGES, "100", "101", "102", "103", "104", "105"], 5))
    with_all_images = Study.from_frames(captions=captions("a", IMAGES), references=more_references)
    assert "other images" not in {about for about, _ in kinds_of_cautions(with_all_images)}
    assert set(with_all_images.captions_of("human")["image_id"]) == set(IMAGES)
    references_only = Study.from_frames(references=more_references)
    assert references_only.captions_of("human")["image_id"].n_unique() == 46


def test_long_captions_get_a_caution_beside_cider():
    """One sentence for the system concerned, none for the other, and only where references are compared with."""
    both_systems = pl.concat([captions("short", IMAGES), captions("long", IMAGES, "a man rides a bike " * 8)])
    study = Study.from_frames(captions=both_systems, references=even_references())
    assert kinds_of_cautions(study) == [("length", "long")]
    assert "40.0 words on average and references 6.0" in cautions(study)[0].sentence
    rows = portrayal.metrics.quality(study, bootstrap=20).measurements
    terms = {(m.system, m.term) for m in rows if m.caution}
    assert ("long", "cider") in terms
    assert ("long", "length") not in terms
    assert {system for system, _ in terms} == {"long"}
    rows = portrayal.metrics.harms(study, measurement="demeaning.words").measurements
    assert {m.system for m in rows if m.caution} == {"long"}  # longer captions have more words


def test_long_captions_get_a_caution_beside_chair_s():
    """chair-s is a share of captions and depends on length; chair-i is a share of mentions and does not."""
    long = captions("long", IMAGES, "a man rides a bike past a dog and a car in the long street of a city")
    objects = pl.DataFrame({"image_id": IMAGES, "label": "bicycle", "kind": "object", "source": "human"})
    study = Study.from_frames(captions=long, references=even_references(), objects=objects)
    rows = portrayal.metrics.quality(study, bootstrap=20).measurements
    terms = {m.term for m in rows if m.caution and m.system == "long"}
    assert "chair-s" in terms
    assert "chair-i" not in terms


def test_unlabelled_images_concern_their_attribute_and_no_other():
    labels = GENDER.with_columns(
        gender=pl.when(pl.int_range(N) < 10).then(None).otherwise(pl.lit("male")), age=pl.lit("young")
    )
    study = Study.from_frames(captions=captions("a", IMAGES), attributes=labels)
    assert [caution.attribute for caution in cautions(study)] == ["gender"]
    assert "10 of 40 captioned images (25%) have no label for gender" in cautions(study)[0].sentence
    rows = portrayal.metrics.error(study, bootstrap=20).measurements
    assert {(m.attribute, bool(m.caution)) for m in rows if m.value is not None} == {
        ("gender", True),
        ("age", False),
    }
    assert not any(m.caution for m in portrayal.metrics.cooccurrence(study, bootstrap=20).measurements)


def test_a_small_group_is_reported():
    study = Study.from_frames(captions=captions("a", IMAGES), attributes=GENDER)
    assert [(caution.about, caution.group) for caution in cautions(study)] == [("groups", "female")]


@pytest.fixture(scope="module")
def audit_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cautions")
    long = captions("long", IMAGES, "a man rides a bike " * 8)
    write_study(
        Study.from_frames(captions=long, references=even_references(), attributes=GENDER), folder / "study"
    )
    return folder


def test_cautions_appear_in_every_output(audit_folder, command):
    expected = ["Captions of long have 40.0 words", "The group 'female' of gender has 8 captioned images"]
    _, out, _ = command("check-study", audit_folder / "study")
    assert all(f"Caution: {sentence}" in out for sentence in expected)
    arguments = ["audit", audit_folder / "study", "--quick", "--workers", 1, "--metrics", "quality"]
    _, out, _ = command(*arguments, "--out", audit_folder / "audit")
    assert all(f"Caution: {sentence}" in out for sentence in expected)
    page = (audit_folder / "audit" / "index.html").read_text()
    head = page.partition('id="verdict">Findings<')[0]
    assert all(sentence.replace("'", "&#39;") in head for sentence in expected)
    results = portrayal.Results.load(audit_folder / "audit")
    assert [caution["about"] for caution in results.provenance["cautions"]] == ["length", "groups"]
    cider = next(m for m in results.measurements if (m.term, m.system, m.group) == ("cider", "long", None))
    assert cider.caution.startswith("Captions of long")
    _, out, _ = command("score", "quality", audit_folder / "study", "--bootstrap", 20)
    assert f"Caution: {expected[0]}" in out


def test_truncated_captions_are_reported_beside_their_rows():
    with_long_caption = captions("a", IMAGES).with_columns(
        caption=pl.when(pl.col("image_id") == "3").then(pl.lit("a man " * 3000)).otherwise("caption")
    )
    study = Study.from_frames(
        captions=pl.concat([with_long_caption, captions("b", IMAGES)]), attributes=GENDER
    )
    assert ("truncated", "a") in kinds_of_cautions(study)
    rows = portrayal.metrics.error(study, bootstrap=20).measurements
    truncated_systems = {m.system for m in rows if "only the beginning is read" in (m.caution or "")}
    assert truncated_systems == {"a"}


def test_images_without_object_labels_are_reported_beside_the_rows_that_need_them():
    objects = pl.DataFrame({"image_id": IMAGES[:30], "label": ["bike", "car"] * 15})
    study = Study.from_frames(
        captions=captions("a", IMAGES), references=even_references(), attributes=GENDER, objects=objects
    )
    sentence = "10 of 40 captioned images have no object label"
    assert not any(sentence in caution.sentence for caution in cautions(study))  # finding it needs words
    assert sentence in study_cautions(study)[-1].sentence
    rows = portrayal.metrics.quality(study, bootstrap=20).measurements
    assert {m.term for m in rows if sentence in (m.caution or "")} == {"chair-i", "chair-s"}
    provenance = portrayal.audit(study, metrics=["error"], quick=True).provenance
    assert any(sentence in caution["sentence"] for caution in provenance["cautions"])
