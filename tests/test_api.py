"""The Python API: names, selections of results, views in notebooks, gates, and frames as studies."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys

import altair
import pandas as pd
import polars as pl
import pytest

import portrayal
from portrayal.errors import PortrayalError
from portrayal.gating import parse_rule
from portrayal.lab import make_study
from portrayal.metrics import error
from portrayal.results import EVIDENCE_SCHEMA, REPLICATES_SCHEMA, Measurement, Results

NAMES = (
    "Measurement", "Results", "Study", "audit", "compare", "counterbias", "gate", "lab", "load_results", "metrics",
    "mitigate", "read_study", "score",
)  # fmt: skip
HOSTILE = "<script>alert(1)</script>"


def row(term="wrong", system="a", group=None, value=0.2, metric="naming", **more):
    about = {"attribute": "gender", "unit": "share", "n": 400, "n_unit": "image", "low": 0.1, "high": 0.3}
    return Measurement(metric=metric, term=term, system=system, group=group, value=value, **(about | more))


def undefined(**names):
    return row(value=None, low=None, high=None, reason="no caption names anybody", **names)


# Two metrics: the card of `naming` has a statement about `wrong`, `words` has the term `words`.
ROWS = (
    row("right", "a", value=0.7),
    row("wrong", "a"),
    row("wrong", "a", group="female", value=0.3),
    row("wrong", "a", group="male", value=0.1),
    undefined(term="wrong", system="b"),
    row("wrong", "human", value=0.05, low=0.04, high=0.06),
    row("count", "a", metric="words", unit="count", value=9.0),
    row("words", "a", metric="words", value=4.0, unit="z", settings={"split": "paper"}),
    row("words", "a", metric="words", value=5.0, unit="z", settings={"split": "random"}),
    row("words", "a", metric="words", value=1.0, unit="z", item="cooking", settings={"split": "paper"}),
)
CARDS = {
    "naming": {
        "terms": [{"name": "right", "unit": "share"}, {"name": "wrong", "unit": "share", "better": "lower"}],
        "statements": [{"term": "wrong", "more": "{system} errs", "against": "ideal", "settings": {}}],
    },
    "words": {"terms": [{"name": "count", "unit": "count"}, {"name": "words", "unit": "z"}]},
}


def frames(rows):
    """One caption and one list of replicates for each row."""
    evidence = [
        {"id": m.id, "image_id": "1", "system": m.system, "caption": m.term, "detail": None} for m in rows
    ]
    replicates = [{"id": m.id, "sample": "s", "replicates": [1.0]} for m in rows]
    return pl.DataFrame(evidence, schema=EVIDENCE_SCHEMA), pl.DataFrame(replicates, schema=REPLICATES_SCHEMA)


@pytest.fixture
def results():
    evidence, replicates = frames(ROWS)
    origin = {"study": {"name": "photos", "systems": ["a", "b"]}, "cards": CARDS, "seed": 0}
    return Results(ROWS, evidence, replicates, origin)


@pytest.fixture(scope="module")
def audited():
    return portrayal.audit(make_study(scenes=60, seed=1), metrics=["error", "word-odds"], quick=True)


# -- the package ------------------------------------------------------------------------------------------------------


def test_dir_lists_the_api():
    assert set(NAMES) <= set(dir(portrayal)) == {*portrayal.__all__}
    for name in NAMES:
        assert getattr(portrayal, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'adit'"):
        portrayal.adit  # noqa: B018


@pytest.mark.parametrize("code", ["dir(portrayal)", "portrayal.mitigate", "dir(portrayal.mitigate)"])
def test_names_need_no_polars_until_they_are_used(code):
    code = f"import sys; sys.modules['polars'] = None; import portrayal; {code}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_packages_are_reached_without_an_import():
    code = "import portrayal; portrayal.lab.make_study; portrayal.mitigate.mitigate_captions; portrayal.metrics.lic"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["audit", "score", "compare", "gate", "load_results", "read_study"])
def test_functions_are_documented(name):
    function = getattr(portrayal, name)
    for section in ("Parameters", "Returns", "Examples"):
        assert f"{section}\n" in inspect.getdoc(function), section
    assert all(p.annotation is not p.empty for p in inspect.signature(function).parameters.values())


def test_mitigate_offers_both_ways():
    names = (
        "mitigate_captions",
        "compare_methods",
        "lab_comparison",
        "study_comparison",
        "ComparisonOptions",
    )
    assert set(names) <= set(dir(portrayal.mitigate))
    assert portrayal.mitigate.mitigate_captions.__module__ == "portrayal.mitigate.captions.mitigation"
    with pytest.raises(AttributeError):
        portrayal.mitigate.compere  # noqa: B018


def test_a_submodule_does_not_replace_a_function_of_the_same_name():
    importlib.import_module("portrayal.metrics.counterbias.metric")
    assert callable(portrayal.counterbias)
    importlib.import_module("portrayal.gating.gate")
    assert callable(portrayal.gate)
    assert callable(portrayal.gating.gate)


def test_score_takes_a_name_or_a_metric():
    study = make_study(scenes=30, seed=1)
    by_name = portrayal.score(study, "ERROR", attribute="gender", bootstrap=20)
    assert (
        by_name.measurements == portrayal.score(study, error, attribute="gender", bootstrap=20).measurements
    )
    with pytest.raises(PortrayalError, match=r"Unknown metric 'eror'\. Did you mean 'error'"):
        portrayal.score(study, "eror")


def test_load_results_reads_what_was_saved(results, tmp_path):
    results.save(tmp_path)
    assert portrayal.load_results(tmp_path).measurements == ROWS
    assert portrayal.load_results(str(tmp_path / "results.json")).measurements == ROWS


# -- selections -------------------------------------------------------------------------------------------------------


def terms(selected):
    return [(m.term, m.system, m.group) for m in selected.measurements]


def test_filter_by_one_value(results):
    assert terms(results.filter(term="right")) == [("right", "a", None)]


def test_filter_by_several_values_and_fields(results):
    kept = results.filter(metric="naming", term="wrong", group=["male", "female"])
    assert terms(kept) == [("wrong", "a", "female"), ("wrong", "a", "male")]


def test_filter_by_none_keeps_rows_about_all_people(results):
    assert terms(results.filter(term="wrong", group=None, system=["a", "b"])) == [
        ("wrong", "a", None),
        ("wrong", "b", None),
    ]
    assert len(results.filter(term="wrong", group=[None, "male"], system="a").measurements) == 2


def test_filter_by_a_setting(results):
    assert [m.value for m in results.filter(split="random").measurements] == [5.0]
    assert len(results.filter(split=None).measurements) == 7


def test_filter_ignores_case_where_it_can(results):
    assert results.filter(system="A").measurements == results.filter(system="a").measurements


def test_filter_keeps_what_belongs_to_its_rows(results):
    kept = results.filter(term="right")
    assert kept.evidence["caption"].to_list() == ["right"]
    assert kept.replicates["id"].to_list() == [ROWS[0].id]
    assert kept.provenance["study"] == results.provenance["study"]


def test_filter_of_nothing_keeps_everything(results):
    assert results.filter().measurements == ROWS


def test_rows_that_no_name_forbids_may_be_none(results):
    assert results.filter(metric="words", group="male").measurements == ()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"metrc": "naming"}, "Unknown field of a measurement 'metrc'. Did you mean 'metric'"),
        ({"metric": "namin"}, "Unknown metric 'namin'. Did you mean 'naming'\\? Available: naming, words"),
        ({"group": ["male", "femal"]}, "Unknown group 'femal'. Did you mean 'female'"),
        ({"attribute": None}, "Unknown attribute 'None'. Available: gender"),
        ({"split": "papr"}, "Unknown split 'papr'. Did you mean 'paper'"),
        ({"n": 3}, "Unknown n '3'. Available: 400"),
    ],
)
def test_filter_names_what_it_does_not_know(results, fields, sentence):
    with pytest.raises(PortrayalError, match=sentence):
        results.filter(**fields)


def test_the_headline_has_one_row_for_each_metric_attribute_and_system(results):
    assert [(m.metric, m.term, m.system, m.value) for m in results.headline().measurements] == [
        ("naming", "wrong", "a", 0.2),  # the term of the card's statement
        ("naming", "wrong", "b", None),
        ("naming", "wrong", "human", 0.05),
        ("words", "words", "a", 4.0),  # the term with the metric's name; the first setting
    ]


def test_an_undefined_headline_keeps_its_reason(results):
    (b,) = results.headline().to_polars().filter(system="b").to_dicts()
    assert (b["value"], b["reason"]) == (None, "no caption names anybody")


def test_the_headline_prefers_settings_and_unit_of_the_card():
    settings = ({"stage": "3"}, {"stage": "4"})
    rows = [
        row(value=v, unit=unit, settings=s) for s in settings for unit, v in (("count", 8.0), ("share", 0.1))
    ]
    card = {
        "terms": [{"name": "wrong", "unit": "share"}],
        "statements": [{"term": "wrong", "settings": {"stage": "4"}}],
    }
    (m,) = Results(tuple(rows), provenance={"cards": {"naming": card}}).headline().measurements
    assert (m.settings, m.unit) == ({"stage": "4"}, "share")


@pytest.mark.parametrize("cards", [None, [], {"naming": 3}, {"naming": {"terms": 1, "statements": [2, {}]}}])
def test_the_headline_of_foreign_results_is_their_first_term(cards):
    found = Results(ROWS, provenance={"cards": cards}).headline().measurements
    assert [m.term for m in found if m.metric == "naming"] == ["right"]


def test_a_selection_states_no_findings(audited):
    """Findings are corrected for all comparisons, which a selection does not have."""
    from portrayal.report.findings.findings import conclusions

    assert conclusions(audited).sentences
    assert not conclusions(audited.filter(metric="error")).sentences
    assert audited.filter(metric="error", group=None).provenance["selection"] == [
        "metric: error",
        "group: all",
    ]


def test_a_selection_can_be_saved(results, tmp_path):
    results.filter(system=["a", "b"], group=None).filter(metric="naming").save(tmp_path)
    loaded = portrayal.load_results(tmp_path)
    assert loaded.provenance["selection"] == ["system: a, b", "group: all", "metric: naming"]


# -- frames -----------------------------------------------------------------------------------------------------------


def test_frames_of_results(results):
    assert results.to_polars()["term"].to_list() == [m.term for m in ROWS]
    pandas_frame = results.to_pandas()
    assert isinstance(pandas_frame, pd.DataFrame)
    assert pandas_frame.shape == results.to_polars().shape


CAPTIONS = {"image_id": ["1", "2"], "system": ["a", "a"], "caption": ["a man", "a cat"]}


class ArrowTable:
    """A table of another library, which only speaks Arrow."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "make", [pl.DataFrame, pl.LazyFrame, pd.DataFrame, lambda columns: ArrowTable(pl.DataFrame(columns))]
)
def test_studies_from_frames_of_several_libraries(make):
    study = portrayal.Study.from_frames(captions=make(CAPTIONS))
    assert study.captions.to_dict(as_series=False) == CAPTIONS | {"sample": [0, 0]}


def test_arrow_tables_have_rows_with_problems():
    attributes = pl.DataFrame({"image_id": ["1", None], "gender": ["male", "female"]})
    with pytest.raises(PortrayalError, match="<attributes>, row 2"):
        portrayal.Study.from_frames(attributes=ArrowTable(attributes))


@pytest.mark.parametrize("frame", [CAPTIONS, [("1", "a man")], "captions.csv"])
def test_other_tables_are_refused_by_name(frame):
    with pytest.raises(PortrayalError, match="<captions>: expected a polars, pandas or Arrow table, found"):
        portrayal.Study.from_frames(captions=frame)


# -- views ------------------------------------------------------------------------------------------------------------


def test_short_texts(results):
    assert repr(results) == "<Results of 'photos': 10 measurements of 2 metrics; a, b, human>"
    assert repr(Results(())) == "<Results: 0 measurements>"
    many = Results(tuple(row(system=f"s{n}") for n in range(30)))
    assert repr(many) == "<Results: 30 measurements of 1 metric; s0, s1, s2, s3, s4, s5 and 24 more>"
    study = portrayal.Study.from_frames(
        name="photos",
        captions=pl.DataFrame(CAPTIONS),
        references=pl.DataFrame({"image_id": ["1"], "caption": ["a boy"]}),
        attributes=pl.DataFrame({"image_id": ["1", "2", "3"], "gender": ["male", "male", "female"]}),
    )
    assert (
        repr(study)
        == "<Study 'photos': 3 images; 2 captions of a; 1 human caption; gender: female 1, male 2>"
    )
    assert "\x1b" not in repr(Results((row(system="\x1b[2J"),)))
    assert repr(portrayal.Study()) == "<Study 'study': 0 images>"


def test_the_view_of_results_has_headlines(results):
    html = results._repr_html_()
    assert "Results of <b>photos</b>" in html
    assert "10 measurements" in html
    assert "0.200" in html
    assert "[0.100, 0.300]" in html
    assert "no caption names anybody" in html
    assert "<script" not in html


def test_the_view_of_a_small_selection_has_all_rows(results):
    html = results.filter(term="wrong", group=["female", "male"])._repr_html_()
    assert "female" in html
    assert "0.300" in html
    assert "A selection" in html


def test_the_view_says_which_rows_are_about_all_people(results):
    html = results.filter(term="wrong", system="a")._repr_html_()
    assert [html.count(f"<td>{group}</td>") for group in ("all", "female", "male")] == [1, 1, 1]


def test_the_view_is_short_and_says_where_the_rest_is():
    rows = tuple(row("right", metric=f"m{n}") for n in range(40))
    html = Results(rows)._repr_html_()
    assert html.count("<tr>") == 16
    assert "25 more rows: .headline().to_polars()." in html
    wide = Results(tuple(row(system=f"s{n}") for n in range(30)))._repr_html_()
    assert html.count("<th") < 60
    assert "22 more systems" in wide
    with_human = Results((*(row(system=f"s{n}") for n in range(30)), row(system="human")))._repr_html_()
    assert ">human</th>" in with_human


def test_the_view_states_findings(audited):
    html = audited._repr_html_()
    assert "finding" in html
    assert f"{len(audited.measurements):,} measurements" in html


def test_the_view_shows_cautions():
    html = Results((row(caution="Captions are long."),))._repr_html_()
    assert "Captions are long." in html


def test_the_view_of_a_comparison_counts_changes(audited):
    html = portrayal.compare(
        audited.filter(system="faithful"), audited.filter(system="stereotyping")
    )._repr_html_()
    assert "Comparison" in html
    assert "second − first" in html
    assert "significant" in html


def test_names_in_views_are_text():
    rows = (row(HOSTILE, HOSTILE, metric=HOSTILE, attribute=HOSTILE, unit=HOSTILE, caution=HOSTILE),
            undefined(term="t", system=HOSTILE, group=HOSTILE, item=HOSTILE))  # fmt: skip
    origin = {"study": {"name": HOSTILE}, "cautions": [{"sentence": HOSTILE}], "compared": [HOSTILE, HOSTILE]}
    study = portrayal.Study.from_frames(
        name=HOSTILE,
        captions=pl.DataFrame({"image_id": ["1"], "system": [HOSTILE], "caption": [HOSTILE]}),
        attributes=pl.DataFrame({"image_id": ["1"], HOSTILE: [HOSTILE]}),
    )
    views = [
        Results(rows, provenance=origin),
        study,
        portrayal.gate(Results(rows), f"naming:t@group={HOSTILE} <= 1"),
    ]
    views.append(Results(rows).filter(system=HOSTILE))
    for view in views:
        html = view._repr_html_()
        assert "<script" not in html
        assert "&lt;script&gt;" in html


@pytest.mark.parametrize("origin", [{}, {"study": 3, "cards": 3, "cautions": 3, "compared": 3}])
def test_views_of_foreign_results(origin):
    assert "measurement" in Results(ROWS, provenance=origin)._repr_html_()
    assert Results((), provenance=origin)._repr_html_()
    assert repr(Results(ROWS, provenance=origin))


def test_the_view_of_a_study(results):
    study = make_study(scenes=30, seed=1)
    html = study._repr_html_()
    assert "30 images" in html
    for name in ("faithful", "gender", "female"):
        assert name in html
    assert str(study.group_counts("gender")["female"]) in html


# -- charts and pages -------------------------------------------------------------------------------------------------


def test_plot_draws_the_selection(audited):
    chart = audited.plot("error", "wrong", attribute="gender", system=["faithful", "stereotyping"])
    assert isinstance(chart, altair.TopLevelMixin)
    points = [layer for layer in chart.to_dict()["concat"][0]["layer"] if layer["mark"]["type"] == "point"]
    drawn = {(value["by"], value["label"]) for layer in points for value in layer["data"]["values"]}
    groups = ("all", "female", "male")
    assert drawn == {(system, group) for system in ("faithful", "stereotyping") for group in groups}


def test_plot_of_everything_draws_headlines(audited):
    panels = audited.plot().to_dict()["concat"]
    assert 1 < len(panels) <= 12
    titles = [panel["title"]["text"] for panel in panels]
    assert any("error · gender" in title for title in titles)


def test_plots_can_be_drawn(audited, tmp_path):
    audited.plot("error", attribute="gender").save(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_nothing_to_plot_is_an_error(results):
    with pytest.raises(PortrayalError, match="nothing to draw"):
        results.plot(term="right")
    with pytest.raises(PortrayalError, match="Unknown metric 'namin'"):
        results.plot("namin")


def test_to_html_writes_the_page(audited, tmp_path):
    assert audited.to_html(tmp_path) == tmp_path / "index.html"
    page = audited.to_html(tmp_path / "error.html")
    assert page.read_text().startswith("<!doctype html>")
    selected = audited.filter(metric="error").to_html(tmp_path / "part.html").read_text()
    assert "A selection" in selected
    compared = portrayal.compare(audited.filter(system="faithful"), audited.filter(system="cautious"))
    assert "differences" in compared.to_html(tmp_path / "compared.html").read_text().casefold()


# -- gates ------------------------------------------------------------------------------------------------------------

PASSES, FAILS = "naming:wrong@system=a <= 0.3", "naming:wrong@system=a,group=female <= 0.2"


def test_a_gate_is_true_when_all_rules_hold(results):
    assert portrayal.gate(results, PASSES)
    assert not portrayal.gate(results, FAILS)
    assert not portrayal.gate(results, PASSES, FAILS)
    assert not portrayal.gate(results, "naming:wrong@system=b >= 0")  # undefined
    assert portrayal.gate(results, "naming:wrong@system=b >= 0", allow_undefined=True)
    assert not portrayal.gate(results, "naming:wrong@system=human <= 0.055", on="high")


def test_a_gate_takes_rules_in_many_forms(results, tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text(f'[[rule]]\ncheck = "{FAILS}"\n')
    for rules in (
        [PASSES, FAILS],
        (parse_rule(PASSES), parse_rule(FAILS)),
        [PASSES, file],
        [PASSES, str(file)],
    ):
        assert [v.passed for v in portrayal.gate(results, rules)] == [True, True, True, False]
        assert [v.passed for v in portrayal.gate(results, *rules)] == [True, True, True, False]


def test_a_gate_says_what_failed(results):
    outcome = portrayal.gate(results, PASSES, FAILS)
    assert len(outcome) == 4
    (failure,) = outcome.failures
    assert failure.rule.text == FAILS
    assert repr(outcome) == f"<gate failed: 1 of 2 rules hold; {FAILS}: it is 0.3>"
    assert repr(portrayal.gate(results, PASSES)) == "<gate passed: 1 rule holds>"
    html = outcome._repr_html_()
    assert "Gate <b>failed</b>: 1 of 2 rules hold." in html
    assert "it is 0.3" in html


def test_a_gate_without_rules_or_with_bad_ones_is_an_error(results):
    with pytest.raises(PortrayalError, match="no rule"):
        portrayal.gate(results)
    with pytest.raises(PortrayalError, match="Expected a rule like") as caught:
        portrayal.gate(results, "wrong", "right")
    assert str(caught.value).count("Expected a rule like") == 2
    with pytest.raises(PortrayalError, match="Unknown metric 'namin'"):
        portrayal.gate(results, "namin:wrong <= 1")


def test_provenance_of_selections_is_json(results):
    assert json.dumps(results.filter(n=400).provenance)
