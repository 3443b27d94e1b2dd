"""Object labels: annotated instances, words found in captions, and images annotated as empty."""

from __future__ import annotations

import json

import polars as pl
import pytest

import portrayal
from portrayal.metrics.harms.image_records import iter_image_records
from portrayal.metrics.shared.caption_mentions import labelled_images, labelled_objects
from portrayal.metrics.shared.object_labels import caption_word_caution
from portrayal.study import Study, read_study

INSTANCES = {
    "images": [{"id": image, "width": 100, "height": 100} for image in (1, 2, 3)],
    "categories": [{"id": 18, "name": "dog"}, {"id": 44, "name": "cup"}],
    "annotations": [
        {"id": 7, "image_id": 1, "category_id": 18, "bbox": [0, 0, 50, 50], "iscrowd": 0},
        {"id": 8, "image_id": 1, "category_id": 18, "bbox": [50, 50, 50, 50], "iscrowd": 0},
        {"id": 9, "image_id": 2, "category_id": 44, "bbox": [0, 0, 10, 10], "iscrowd": 0},
    ],
}
CAPTIONS = [{"image_id": image, "caption": "a dog"} for image in (1, 2, 3)]


@pytest.fixture
def imported(tmp_path, command):
    """Import captions of three images with a file of objects: (exit code, output, errors, folder of the study)."""

    def run(objects, *options, name="o.json"):
        (tmp_path / "c.json").write_text(json.dumps(CAPTIONS))
        (tmp_path / name).write_text(objects if isinstance(objects, str) else json.dumps(objects))
        out = tmp_path / "study"
        arguments = (
            "import",
            "coco",
            tmp_path / "c.json",
            "--objects",
            tmp_path / name,
            *options,
            "--out",
            out,
        )
        return (*command(*arguments), out)

    return run


def chair(study, **options):
    rows = portrayal.metrics.quality(study, bootstrap=20, **options).measurements
    return {m.term: m for m in rows if m.group is None and m.system != "human"}


def test_instances_of_coco_are_read(imported):
    code, out, _, folder = imported(INSTANCES)
    assert code == 0
    assert "3 labels of 2 kinds in 2 images by human; nothing in 1 annotated images" in out
    study = read_study(folder)
    assert study.objects.select("image_id", "label", "kind", "source").rows() == [
        ("1", "dog", "object", "human"),
        ("1", "dog", "object", "human"),
        ("2", "cup", "object", "human"),
        ("3", None, "none", "human"),
    ]
    assert study.objects["x"].to_list() == [0.0, 0.5, 0.0, None]


def test_an_image_without_objects_counts_as_labelled(imported):
    """An empty list is a label without objects; an image that is not listed has no label."""
    code, out, _, folder = imported({"1": ["dog"], "3": []})
    assert code == 0
    assert "Caution: 1 of 3 captioned images have no object label" in " ".join(out.split())
    study = read_study(folder)
    assert labelled_images(study) == {"1", "3"}
    measurements = chair(study)
    assert measurements["chair-s"].n == 2
    assert (
        measurements["chair-s"].value == 0.5
    )  # the caption of image 3 hallucinates a dog; image 2 has no label
    assert [scene.labels for scene in iter_image_records(study, "c", "gender")] == [("dog",), None, ()]


def test_words_of_captions_are_never_ground_truth(imported, command):
    code, _, _, folder = imported({"1": ["dog"], "2": ["cup"]}, "--objects-source", "captions")
    assert code == 0
    study = read_study(folder)
    assert set(study.objects["source"]) == {"captions"}
    assert labelled_objects(study)[1] is None
    assert study.labellers == ()
    assert chair(study)["chair-s"].value is None
    stdout = command("check-study", folder)[1]
    assert "words found in captions (source 'captions'), which are no ground truth" in " ".join(
        stdout.split()
    )


def test_human_labels_take_precedence_over_words_of_captions(imported):
    """With both, words of captions add neither ground truth nor object labels."""
    table = "image_id,label,source\n1,dog,human\n2,cat,human\n3,cat,human\n2,dog,captions\n3,dog,captions\n"
    study = read_study(imported(table, name="o.csv")[-1])
    measurement = chair(study)["chair-s"]
    assert (measurement.value, measurement.settings["objects"]) == (pytest.approx(2 / 3), "human")


def test_the_source_is_a_models_name_where_it_is_given(imported):
    assert imported({"1": ["dog"]}, "--objects-source", "yolo")[0] == 0
    assert read_study(imported({"1": ["dog"]}, "--objects-source", "yolo")[-1]).labellers == ("yolo",)


@pytest.mark.parametrize(
    ("table", "options", "sentence"),
    [
        (
            "image_id,label,source\n1,dog,human\n",
            ("--objects-source", "captions"),
            "no column 'source' where",
        ),
        (
            "image_id,label,kind\n1,dog,none\n",
            (),
            "line 2: expected no label in a row of the kind 'none', found",
        ),
        ("image_id,label,kind\n1,,object\n", (), "line 2: expected a label as text, found nothing"),
        ("image_id,label\n1,dog\n", ("--objects-source", " "), "--objects-source NAME says who labelled"),
    ],
)
def test_bad_sources_and_labels_have_their_message(imported, table, options, sentence):
    code, _, err, folder = imported(table, *options, name="o.csv")
    assert (code, folder.exists()) == (2, False)
    assert sentence in " ".join(err.split())


def test_a_table_of_a_model_needs_another_name_than_captions(imported):
    code, _, err, _ = imported("image_id,label,confidence\n1,dog,0.9\n", name="captions.csv")
    assert code == 2
    assert "expected the model's name, in a column 'source' or as --objects-source NAME" in " ".join(
        err.split()
    )


def study_with_dogs(dogs_per_image: list[int]) -> Study:
    """Images of a dog with five references each, of which the given number names the dog."""
    images = [str(number) for number in range(len(dogs_per_image))]
    references = [
        (image, "a dog" if number < n_dogs else "an animal")
        for image, n_dogs in zip(images, dogs_per_image, strict=True)
        for number in range(5)
    ]
    return Study.from_frames(
        captions=pl.DataFrame({"image_id": images, "system": "s", "caption": "a dog"}),
        references=pl.DataFrame(references, schema=["image_id", "caption"], orient="row"),
        objects=pl.DataFrame({"image_id": images, "label": "dog"}),
    )


def test_labels_that_seem_to_be_words_of_captions_get_a_caution(tmp_path, command):
    """Many labels are named by one reference and none by no reference: a count that is cut off at 1."""
    study = study_with_dogs([1] * 60 + [5] * 40)
    assert caption_word_caution(study).startswith(
        "100.0 % of the human object labels stand in one of the image's own"
    )
    portrayal.study.write_study(study, tmp_path / "words")
    assert "Caution: 100.0 % of the human object labels" in command("check-study", tmp_path / "words")[1]
    # Annotations: some objects are named by no reference, or every reference names the object.
    assert caption_word_caution(study_with_dogs([0] * 40 + [1] * 60 + [5] * 40)) is None
    assert caption_word_caution(study_with_dogs([5] * 200)) is None


def test_only_the_caption_based_labels_of_coco_get_a_caution(shared):
    """The first 400 images with five references."""
    lines = (shared / "coco" / "human_captions_val2014.jsonl").read_text(encoding="utf-8").splitlines()
    image_rows = [row for row in map(json.loads, lines) if len(row["captions"]) >= 5][:400]
    ids = [str(row["img_id"]) for row in image_rows]
    references = [(str(row["img_id"]), caption) for row in image_rows for caption in row["captions"]]
    caution_by_file = {}
    for name in ("instance", "object"):
        labels = json.loads((shared / "coco" / f"{name}_labels_val2014.json").read_text())
        study = Study.from_frames(
            references=pl.DataFrame(references, schema=["image_id", "caption"], orient="row"),
            objects=pl.DataFrame({"image_id": ids, "labels": [labels[image] for image in ids]}),
        )
        caution_by_file[name] = caption_word_caution(study)
    assert caution_by_file["instance"] is None
    assert "they look like words of captions" in caution_by_file["object"]


def test_unlabelled_images_are_left_out():
    """Labels of half of the images: the other half may not enter as images without objects."""
    images = [str(number) for number in range(80)]
    gender = ["male" if number % 2 else "female" for number in range(80)]
    captions = [
        f"a {'man' if g == 'male' else 'woman'} with a {'dog' if g == 'male' else 'cat'}" for g in gender
    ]
    labelled_images = [image for image in images if int(image) < 40]
    tables = {
        "captions": pl.DataFrame({"image_id": images, "system": "s", "caption": captions}),
        "attributes": pl.DataFrame({"image_id": images, "gender": gender}),
        "objects": pl.DataFrame(
            {"image_id": labelled_images, "label": ["dog" if g == "male" else "cat" for g in gender[:40]]}
        ),
    }
    study_of_all, half_tables = Study.from_frames(**tables), {}
    for name in ("captions", "attributes"):
        half_tables[name] = tables[name].filter(pl.col("image_id").is_in(labelled_images))
    half_study = Study.from_frames(**half_tables, objects=tables["objects"])
    for metric, term, options in (("leakage", "f1", {"permutations": 20}), ("amplification", "ba", {})):
        values = [
            next(
                (m.value, m.n)
                for m in getattr(portrayal.metrics, metric)(
                    study, attribute="gender", bootstrap=20, **options
                ).measurements
                if m.term == term and m.group is None and m.item is None
            )
            for study in (study_of_all, half_study)
        ]
        assert values[0] == values[1], metric


def test_instances_of_the_same_label_are_a_single_object_of_the_gender_score():
    from portrayal.metrics.shared.language_scores.visual_context import visual_context

    study = Study.from_frames(
        objects=pl.DataFrame({"image_id": ["1", "1", "1"], "label": ["dog", "dog", "cat"]})
    )
    assert [item.text for item in visual_context(study, 0.5).items_of("1")] == ["cat", "dog"]


@pytest.mark.parametrize("other_spelling", ["Dog", " dog ", "dog\u200b", "DOG"])
def test_spellings_of_a_label_are_the_same_object(other_spelling):
    """With two objects, a caption could name only one spelling and would hallucinate the other."""
    images = [str(number) for number in range(8)]
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": images, "system": ["s"] * 8, "caption": ["a dog"] * 8}),
        objects=pl.DataFrame({"image_id": images, "label": ["dog", other_spelling] * 4}),
    )
    assert set(study.objects["label"]) == {"dog"}
    measurements = portrayal.metrics.quality(study, truth="labels", bootstrap=20).measurements
    assert next(m.value for m in measurements if (m.term, m.group) == ("chair-i", None)) == 0


def test_a_label_of_two_words_may_have_an_underscore():
    images = [str(number) for number in range(4)]
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": images, "system": ["s"] * 4, "caption": ["a hot dog"] * 4}),
        objects=pl.DataFrame({"image_id": images, "label": ["hot_dog", "hot_dog", "hot dog", "cup"]}),
    )
    assert set(study.objects["label"]) == {"hot_dog", "cup"}
    measurements = portrayal.metrics.quality(study, truth="labels", bootstrap=20).measurements
    assert next(m.value for m in measurements if (m.term, m.group) == ("chair-s", None)) == 0.25


def test_rows_that_compare_words_with_labels_have_a_caution_about_unlabelled_images():
    images = [str(number) for number in range(40)]
    study = Study.from_frames(
        captions=pl.DataFrame(
            {"image_id": images, "system": ["s"] * 40, "caption": ["a man with a dog"] * 40}
        ),
        references=pl.DataFrame({"image_id": images, "caption": ["a man"] * 40}),
        objects=pl.DataFrame({"image_id": images[:20], "label": ["dog"] * 20}),
    )
    sentence = "20 of 40 captioned images have no object label"
    terms = ("stereotyping.incorrect-word",)
    harms = portrayal.metrics.harms(study, bootstrap=20, measurement=terms).measurements
    defined = [m for m in harms if m.value is not None and m.settings["stage"] == "4"]
    counts = portrayal.metrics.cooccurrence(study, bootstrap=20).measurements
    defined += [m for m in counts if m.term in ("bias", "count") and m.value is not None]
    assert {m.metric for m in defined} == {"harms", "cooccurrence"}
    assert all(sentence in (m.caution or "") for m in defined)
