"""The page: self-contained, and captions in it are only ever text."""

from __future__ import annotations

import dataclasses
import json
import re

import polars as pl
import pytest
from PIL import Image

import portrayal
from portrayal.lab import make_study
from portrayal.lab.folder import LabRecipe, write_lab
from portrayal.report import write_page
from portrayal.report.page import page
from portrayal.report.page.embedded import unpack_json
from portrayal.report.page.side_by_side import side_by_side
from portrayal.results import Measurement, Results
from portrayal.study.thumbnails import thumbnails
from tests.conftest import small_study
from tests.report.evidence_reader import element, rows_behind

HOSTILE = [
    "<script>window.hacked = 1</script> a man",
    "</script><script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1"> a woman',
    "<!-- a man",
    "]]> \u2028 \u2029 &lt;b&gt; a man",
    "{{ 7 * 7 }} {% raw %} a <man",
]


@pytest.fixture
def hostile_results() -> Results:
    rows = [(f"<b>{n}</b>", "male" if n % 2 else "female", caption) for n, caption in enumerate(HOSTILE)]
    study = small_study(rows, system="<i>sys</i>")
    return portrayal.audit(study)


def test_no_angle_bracket_of_a_caption_stands_raw(hostile_results):
    html = page.render(hostile_results)
    harmless = page.render(portrayal.audit(small_study([("1", "male", "a man"), ("2", "female", "a woman")])))
    tags = re.compile(r"<[a-z!/]+", re.IGNORECASE)
    assert set(tags.findall(html)) <= set(tags.findall(harmless)) | {"<span", "</span", "<p"}
    assert html.count("<script") == harmless.count("<script")
    for caption in HOSTILE:
        assert caption not in html


def test_the_embedded_results_are_the_results(hostile_results):
    html = page.render(hostile_results)
    embedded = element(html, "results")
    names, columns = embedded["measurements"], embedded["measurements"].values()
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    assert embedded | {"measurements": rows} == json.loads(hostile_results.to_json())
    found = rows_behind(element(html, "data"))
    assert {row["caption"] for rows in found.values() for row in rows} == set(HOSTILE)


def test_nothing_is_loaded_from_elsewhere():
    html = page.render(portrayal.audit(make_study(scenes=30), quick=True))
    assert not re.search(r'(?:src|href)\s*=\s*"(?!#|data:)', html)
    assert "url(" not in html
    assert "default-src 'none'" in html


def test_a_scan_is_shown_by_what_stands_out():
    rows = [
        Measurement("word-odds", "z", system="s", group="g", item=f"w{n}", value=n, p=1 / (n + 1))
        for n in range(50)
    ]
    html = page.render(Results(tuple(rows)))
    assert "<td>w49</td>" in html
    assert "<td>w38</td>" in html
    assert "<td>w37</td>" not in html
    assert "38 more rows" in html


def test_a_page_from_a_file_written_by_hand(tmp_path):
    results = Results((Measurement("m", "t", value=0.5), Measurement("m", "u", reason="not there")))
    html = write_page(results, tmp_path).read_text()
    assert "0.500" in html
    assert "Undefined, not there: u." in html


@pytest.mark.parametrize(
    "provenance",
    [
        {"study": "mine"},
        {"study": {"systems": ["a"]}},
        {"cards": None},
        {"cards": {"m": {}}},
        {"skipped": [{"metric": "m"}]},
        {"study": {"groups": {"gender": {"male": 3}}}},
    ],
)
def test_a_page_from_results_that_say_little(provenance):
    assert "0.500" in page.render(Results((Measurement("m", "t", value=0.5),), provenance=provenance))


def test_a_term_in_two_units_has_two_columns():
    results = Results(
        (
            Measurement("harms", "x", value=3, unit="count", n=400),
            Measurement("harms", "x", value=0.25, unit="share", n=400),
        )
    )
    html = page.render(results)
    assert "x (count)" in html
    assert "x (share)" in html
    assert "0.250" in html


@pytest.mark.parametrize("card", [None, {"terms": None, "formula": None, "caveats": None, "parts": None}])
def test_a_card_that_says_nothing_has_a_page(card):
    measured = Measurement("lic", "lic", system="s", value=1.0, low=0.5, high=1.5, n=500, unit="percent")
    assert "What do captions give away" in page.render(
        Results((measured,), provenance={"cards": {"lic": card}})
    )


def test_a_page_promises_to_open_what_it_has(hostile_results):
    promise = 'Every underlined number, and each link "captions", opens {} behind it.'
    assert promise.format("the captions") in page.render(hostile_results)
    asked = dataclasses.replace(
        hostile_results, provenance={"study": {"name": "manifest"}}
    )  # of pictures, say
    assert promise.format("what is") in page.render(asked)
    bare = dataclasses.replace(hostile_results, evidence=hostile_results.evidence.clear())
    assert "Every underlined number" not in page.render(bare)
    assert "evidence.parquet</code>. " not in page.render(bare)


def test_a_page_without_measurements():
    assert "No metric could run" in page.render(Results(()))


def test_pictures_stand_beside_what_is_said_of_them(tmp_path, monkeypatch):
    study = write_lab(LabRecipe(scenes=40, image_size=96), tmp_path / "study")
    results = portrayal.audit(study, quick=True, metrics=["error"])
    images = page.thumbnail_images(results)
    assert len(images) == len(set(images)) <= page.MAX_THUMBNAILS
    monkeypatch.setattr(page, "MAX_THUMBNAILS", page.MAX_EXAMPLES + 4)
    captions_behind = results.evidence.with_columns(total=pl.len().over("id"))
    rarest = dict(captions_behind.group_by("image_id").agg(pl.col("total").min()).iter_rows())
    added = page.thumbnail_images(results)[page.MAX_EXAMPLES :]
    assert [rarest[image] <= 2 for image in added] == [True] * 4  # what little stands behind comes first
    monkeypatch.undo()
    pictured = dataclasses.replace(results, thumbnails=thumbnails(study.image_files, images))
    html = page.render(pictured)
    assert html.count('<img src="data:image/webp;base64,') == page.MAX_EXAMPLES
    assert "<b>stereotyping</b>" in html
    assert "<figure>" not in page.render(results)
    saved = Results.load(pictured.save(tmp_path / "audit"))
    assert saved.thumbnails.equals(pictured.thumbnails)
    assert page.render(saved) == html
    nothing = pictured.thumbnails.with_columns(image=pl.lit(None, dtype=pl.Binary()))
    assert "<figure>" not in page.render(dataclasses.replace(results, thumbnails=nothing))
    results.save(tmp_path / "audit")  # an audit without pictures keeps none of the old one's
    assert not (tmp_path / "audit" / "thumbnails.parquet").exists()
    assert Results.load(tmp_path / "audit").thumbnails.height == 0


def test_captions_of_pictured_images_are_only_ever_text(tmp_path):
    for number in range(len(HOSTILE)):
        Image.new("RGB", (9, 9)).save(tmp_path / f"{number}.png")
    rows = [(str(n), "male" if n % 2 else "female", caption) for n, caption in enumerate(HOSTILE)]
    results = portrayal.audit(small_study(rows, system="<i>sys</i>"))
    files = {str(n): tmp_path / f"{n}.png" for n in range(len(HOSTILE))}
    pictured = dataclasses.replace(results, thumbnails=thumbnails(files, page.thumbnail_images(results)))
    html = page.render(pictured)
    assert "<figure>" in html
    for caption in HOSTILE:
        assert caption not in html
    assert "<i>sys" not in html


@pytest.fixture(scope="module")
def faithful_lic() -> Results:
    study = make_study(200, 3).select_systems(["faithful"])
    return portrayal.metrics.lic(
        study, attribute="gender", permutations=0, folds=3, seeds=(0, 1), bootstrap=50
    )


def test_one_image_at_a_time_shows_what_a_system_and_people_say_of_it(faithful_lic):
    """Each with the guess made from it; the images are those that both were tested on."""
    (found,) = side_by_side(faithful_lic)
    assert found["system"] == "faithful"
    assert found["about"] == "gender, linear, crossfit"
    assert len(found["images"]) == 6
    for one in found["images"]:
        first, *others = one["captions"]
        assert first["source"] == "faithful"
        assert {other["source"] for other in others} == {"human"}
        assert {said["labelled"] for said in one["captions"]} == {first["labelled"]}
        assert first["total"] == pytest.approx(sum(part for _, part in first["parts"]), abs=0.01)
    html = page.render(faithful_lic)
    assert "Captions side by side" in html
    compared = re.search(r'<script type="text/plain" id="compared">(.*?)</script>', html, re.DOTALL)
    assert unpack_json(compared.group(1)) == [found]


def test_results_without_such_captions_have_no_such_part(faithful_lic):
    bare = dataclasses.replace(
        faithful_lic, evidence=faithful_lic.evidence.with_columns(detail=pl.lit("not JSON"))
    )
    assert side_by_side(bare) == []
    assert "Captions side by side" not in page.render(bare)
    assert side_by_side(dataclasses.replace(faithful_lic, provenance={"cards": "nothing of ours"})) == []


def test_the_page_says_by_which_words_captions_name_a_group():
    """ "Old" is anybody grown up in the list of ages: its name alone would be read as elderly."""
    results = portrayal.audit(make_study(120), metrics=["naming-ratio"], quick=True)
    words = results.provenance["study"]["words"]
    assert words["age"]["old"] == ["old", "elderly", "adult", "adults", "elder"]
    html = page.render(results)
    assert "Captions name age by words such as old, elderly, adult, adults, elder (old); " in html
    other = portrayal.audit(
        make_study(120), metrics=["naming-ratio"], attribute="gender", lexicon="man-woman", quick=True
    )
    assert other.provenance["study"]["words"] == {"gender": {"female": ["woman"], "male": ["man"]}}
