"""Page of an audit: self-contained, and with escaped captions."""

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


def test_angle_brackets_in_captions_are_escaped(hostile_results):
    html = page.render(hostile_results)
    harmless_html = page.render(
        portrayal.audit(small_study([("1", "male", "a man"), ("2", "female", "a woman")]))
    )
    tags = re.compile(r"<[a-z!/]+", re.IGNORECASE)
    assert set(tags.findall(html)) <= set(tags.findall(harmless_html)) | {"<span", "</span", "<p"}
    assert html.count("<script") == harmless_html.count("<script")
    for caption in HOSTILE:
        assert caption not in html


def test_embedded_results_equal_the_results(hostile_results):
    html = page.render(hostile_results)
    embedded = element(html, "results")
    names, columns = embedded["measurements"], embedded["measurements"].values()
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    assert embedded | {"measurements": rows} == json.loads(hostile_results.to_json())
    rows_by_id = rows_behind(element(html, "data"))
    assert {row["caption"] for rows in rows_by_id.values() for row in rows} == set(HOSTILE)


def test_page_loads_no_external_resource():
    html = page.render(portrayal.audit(make_study(scenes=30), quick=True))
    assert not re.search(r'(?:src|href)\s*=\s*"(?!#|data:)', html)
    assert "url(" not in html
    assert "default-src 'none'" in html


def test_long_list_of_words_is_cut_to_the_most_significant():
    rows = [
        Measurement("word-odds", "z", system="s", group="g", item=f"w{n}", value=n, p=1 / (n + 1))
        for n in range(50)
    ]
    html = page.render(Results(tuple(rows)))
    assert "<td>w49</td>" in html
    assert "<td>w38</td>" in html
    assert "<td>w37</td>" not in html
    assert "38 more rows" in html


def test_page_of_a_results_file_written_by_hand(tmp_path):
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
def test_page_of_results_with_little_provenance(provenance):
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
def test_page_with_an_empty_card(card):
    measurement = Measurement("lic", "lic", system="s", value=1.0, low=0.5, high=1.5, n=500, unit="percent")
    html = page.render(Results((measurement,), provenance={"cards": {"lic": card}}))
    assert "Further numbers" in html  # the question that a metric answers is in its card


def test_page_says_which_evidence_can_be_opened(hostile_results):
    sentence = 'Every underlined number, and each link "captions", opens {} behind it.'
    assert sentence.format("the captions") in page.render(hostile_results)
    without_systems = dataclasses.replace(
        hostile_results, provenance={"study": {"name": "manifest"}}
    )  # e.g. a study of images
    assert sentence.format("what is") in page.render(without_systems)
    without_evidence = dataclasses.replace(hostile_results, evidence=hostile_results.evidence.clear())
    assert "Every underlined number" not in page.render(without_evidence)
    assert "evidence.parquet</code>. " not in page.render(without_evidence)


def test_a_page_without_measurements():
    assert "No metric could run" in page.render(Results(()))


def test_images_are_shown_with_their_captions(tmp_path, monkeypatch):
    study = write_lab(LabRecipe(scenes=40, image_size=96), tmp_path / "study")
    results = portrayal.audit(study, quick=True, metrics=["error"])
    images = page.thumbnail_images(results)
    assert len(images) == len(set(images)) <= page.MAX_THUMBNAILS
    monkeypatch.setattr(page, "MAX_THUMBNAILS", page.MAX_EXAMPLES + 4)
    captions_behind = results.evidence.with_columns(total=pl.len().over("id"))
    rarest = dict(captions_behind.group_by("image_id").agg(pl.col("total").min()).iter_rows())
    added = page.thumbnail_images(results)[page.MAX_EXAMPLES :]
    assert [rarest[image] <= 2 for image in added] == [
        True
    ] * 4  # images of numbers with little evidence come first
    monkeypatch.undo()
    with_thumbnails = dataclasses.replace(results, thumbnails=thumbnails(study.image_files, images))
    html = page.render(with_thumbnails)
    assert html.count('<img src="data:image/webp;base64,') == page.MAX_EXAMPLES
    assert "<b>stereotyping</b>" in html
    assert "<figure>" not in page.render(results)
    loaded = Results.load(with_thumbnails.save(tmp_path / "audit"))
    assert loaded.thumbnails.equals(with_thumbnails.thumbnails)
    assert page.render(loaded) == html
    empty_thumbnails = with_thumbnails.thumbnails.with_columns(image=pl.lit(None, dtype=pl.Binary()))
    assert "<figure>" not in page.render(dataclasses.replace(results, thumbnails=empty_thumbnails))
    results.save(tmp_path / "audit")  # saving without thumbnails deletes the old ones
    assert not (tmp_path / "audit" / "thumbnails.parquet").exists()
    assert Results.load(tmp_path / "audit").thumbnails.height == 0


def test_captions_of_images_with_thumbnails_are_escaped(tmp_path):
    for number in range(len(HOSTILE)):
        Image.new("RGB", (9, 9)).save(tmp_path / f"{number}.png")
    rows = [(str(n), "male" if n % 2 else "female", caption) for n, caption in enumerate(HOSTILE)]
    results = portrayal.audit(small_study(rows, system="<i>sys</i>"))
    files = {str(n): tmp_path / f"{n}.png" for n in range(len(HOSTILE))}
    with_thumbnails = dataclasses.replace(
        results, thumbnails=thumbnails(files, page.thumbnail_images(results))
    )
    html = page.render(with_thumbnails)
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


def test_side_by_side_section_has_captions_of_the_system_and_of_humans(faithful_lic):
    """Each caption has its prediction. The images are those that both classifiers were tested on."""
    (comparison,) = side_by_side(faithful_lic)
    assert comparison["system"] == "faithful"
    assert comparison["about"] == "gender, linear, crossfit"
    assert len(comparison["images"]) == 6
    for image in comparison["images"]:
        first, *others = image["captions"]
        assert first["source"] == "faithful"
        assert {other["source"] for other in others} == {"human"}
        assert {caption["labelled"] for caption in image["captions"]} == {first["labelled"]}
        assert first["total"] == pytest.approx(
            sum(contribution for _, contribution in first["parts"]), abs=0.01
        )
    html = page.render(faithful_lic)
    assert "Captions side by side" in html
    match = re.search(r'<script type="text/plain" id="compared">(.*?)</script>', html, re.DOTALL)
    assert unpack_json(match.group(1)) == [comparison]


def test_results_without_predictions_have_no_side_by_side_section(faithful_lic):
    without_details = dataclasses.replace(
        faithful_lic, evidence=faithful_lic.evidence.with_columns(detail=pl.lit("not JSON"))
    )
    assert side_by_side(without_details) == []
    assert "Captions side by side" not in page.render(without_details)
    assert side_by_side(dataclasses.replace(faithful_lic, provenance={"cards": "nothing of ours"})) == []


def test_page_lists_the_words_that_name_a_group():
    """The word list of ages uses "old" for every adult; the name alone would be read as elderly."""
    results = portrayal.audit(make_study(120), metrics=["naming-ratio"], quick=True)
    words = results.provenance["study"]["words"]
    assert words["age"]["old"] == ["old", "elderly", "adult", "adults", "elder"]
    html = page.render(results)
    assert "Captions name age by words such as old, elderly, adult, adults, elder (old); " in html
    other = portrayal.audit(
        make_study(120), metrics=["naming-ratio"], attribute="gender", lexicon="man-woman", quick=True
    )
    assert other.provenance["study"]["words"] == {"gender": {"female": ["woman"], "male": ["man"]}}
