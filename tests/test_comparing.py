"""Comparisons: paired if possible, otherwise marked as unpaired."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import portrayal
from portrayal.comparing import compare, joint_error
from portrayal.errors import PortrayalError
from portrayal.lab import Captioner, make_study
from portrayal.report.findings.changes import change_sentences, row_labels, verdict
from portrayal.results import (
    EVIDENCE_SCHEMA,
    NOTHING_DIFFERS,
    REPLICATES_SCHEMA,
    Measurement,
    Results,
    join_cautions,
    split_cautions,
)
from portrayal.stats import MIN_P, holm


@pytest.fixture(scope="module")
def systems() -> portrayal.Study:
    captioners = [
        Captioner("good", wrong_group={"female": 0.02, "male": 0.02}),
        Captioner("bad", wrong_group={"female": 0.3, "male": 0.02}),
        Captioner("copy", wrong_group={"female": 0.02, "male": 0.02}),
    ]
    return make_study(scenes=600, captioners=captioners)


@pytest.fixture(scope="module")
def audits(systems) -> dict[str, Results]:
    results_by_name = {
        name: portrayal.audit(systems, metrics=["error"], systems=[name]) for name in ("good", "bad")
    }
    results_by_name["other seed"] = portrayal.audit(systems, metrics=["error"], systems=["bad"], seed=1)
    return results_by_name


def row(results: Results, term: str, group: str | None) -> Measurement:
    return next(m for m in results.measurements if (m.term, m.group, m.attribute) == (term, group, "gender"))


def test_two_systems_on_the_same_images_are_paired(audits):
    differences = compare(audits["good"], audits["bad"])
    wrong_row = row(differences, "wrong", "female")
    before, after = row(audits["good"], "wrong", "female"), row(audits["bad"], "wrong", "female")
    assert wrong_row.value == pytest.approx(after.value - before.value)
    assert wrong_row.settings["paired"] is True
    assert wrong_row.system == "good → bad"
    assert wrong_row.low > 0
    assert wrong_row.p < 0.01
    assert wrong_row.settings["mde"] == pytest.approx(2.8 * wrong_row.se_data, rel=0.01)
    wrong_row_of_men = row(differences, "wrong", "male")
    assert wrong_row_of_men.low <= 0 <= wrong_row_of_men.high


def test_holm_is_taken_over_all_rows_that_are_tested(audits):
    """Of everybody and of groups. The ratio of all people repeats that of the rarest group and counts once."""
    differences = compare(audits["good"], audits["bad"]).measurements
    repeated = {m.id: m for m in differences if m.term == "ratio" and m.group is None and m.p is not None}
    tested = [m for m in differences if m.id not in repeated]
    assert [m.q for m in tested] == holm([m.p for m in tested])
    assert repeated
    for m in repeated.values():
        same = [
            other.q
            for other in tested
            if (other.term, other.attribute, other.p) == (m.term, m.attribute, m.p)
        ]
        assert [m.q] == same
    assert any(m.q is not None for m in differences if m.group is not None)


def test_equal_numbers_of_different_groups_are_separate_tests():
    """Two groups with the same numbers are two tests; that of all people, which has another n, is a third."""

    def make_results(value: float) -> Results:
        return Results(
            tuple(
                Measurement("m", "t", system="s", group=group, value=value, se_data=0.1, n=n)
                for group, n in ((None, 200), ("a", 100), ("b", 100))
            )
        )

    differences = compare(make_results(0.5), make_results(0.8)).measurements
    assert [m.q for m in differences] == [pytest.approx(3 * m.p) for m in differences]


def outcomes_of(results: Results, term: str, group: str) -> set[str]:
    return set(results.evidence_of(row(results, term, group))["image_id"])


def test_outcomes_of_the_same_images_are_compared_by_mcnemar(audits):
    differences = compare(audits["good"], audits["bad"])
    for group in ("female", "male"):
        wrong_row = row(differences, "wrong", group)
        before, after = (outcomes_of(audits[name], "wrong", group) for name in ("good", "bad"))
        discordant = len(before - after), len(after - before)
        assert wrong_row.p == pytest.approx(
            max(stats.binomtest(discordant[0], sum(discordant)).pvalue, MIN_P)
        )
        assert wrong_row.settings["test"] == "McNemar, exact"
    # Captions that name one group are not the same images in both, so that error has no such pairs.
    assert row(differences, "error", None).settings["test"] == "paired bootstrap"


def test_mcnemar_needs_all_outcomes_of_the_same_images(systems, audits):
    half_evidence = replace(audits["bad"], evidence=audits["bad"].evidence.gather_every(2))
    assert (
        row(compare(audits["good"], half_evidence), "wrong", "female").settings["test"] == "paired bootstrap"
    )
    captions = systems.captions.filter((pl.col("system") != "bad") | (pl.col("image_id") != "scene-00007"))
    fewer = portrayal.audit(replace(systems, captions=captions), metrics=["error"], systems=["bad"])
    assert row(compare(audits["good"], fewer), "wrong", None).settings["test"] == "paired bootstrap"


def test_mcnemar_needs_as_many_images_on_both_sides(audits):
    """The evidence may hold all images of both, and a number yet rest on fewer."""
    other = tuple(replace(m, n=m.n - 1) if m.n else m for m in audits["bad"].measurements)
    differences = compare(audits["good"], replace(audits["bad"], measurements=other))
    assert row(differences, "wrong", "female").settings["test"] == "paired bootstrap"


def test_a_sentence_names_the_group_that_got_better_and_the_group_that_got_worse():
    def make_results(right: float, wrong: float) -> Results:
        women = Measurement("m", "right", system="s", attribute="gender", group="female", value=right, se_data=0.01,
                            n=500, better="higher", unit="share")  # fmt: skip
        men = replace(women, term="wrong", group="male", value=wrong, better="lower")
        return Results((women, men))

    (text,) = change_sentences(compare(make_results(0.5, 0.1), make_results(0.7, 0.4)))
    assert text.startswith(
        "m by gender, s: better for female by right, worse for male by wrong: wrong for male rose from 0.100 to 0.400, "
        "which is worse (+0.300, "
    )


DEPENDS_ON_N = {"t": True, "u": False, "searched": "searched"}
CARDS = {
    "m": {
        "terms": [{"name": name, "depends_on_n": depends_on_n} for name, depends_on_n in DEPENDS_ON_N.items()]
    }
}


TOO_FEW = "too few: 20 images, fewer than 30"


def with_reasons(value: float, few_reason: str | None, other_reason: str | None) -> Results:
    rows = (("few", "x", few_reason), ("enough", None, other_reason))
    return Results(
        tuple(
            Measurement(
                "m", term, system="s", group=group, value=value, se_data=0.1, better="lower", reason=reason
            )
            for term, group, reason in rows
        )
    )


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (TOO_FEW, None, f"{TOO_FEW}, in the first"),
        (None, TOO_FEW, f"{TOO_FEW}, in the second"),
        (TOO_FEW, TOO_FEW, TOO_FEW),
        ("2 left out", TOO_FEW, f"{TOO_FEW}, in the second; 2 left out, in the first"),
    ],
)
def test_rows_with_too_few_images_are_shown_and_not_tested(first, second, reason):
    note = "over 17 of 18 queries"
    few, enough = compare(with_reasons(1.0, first, None), with_reasons(2.0, second, note)).measurements
    assert (few.value, few.low < 1 < few.high) == (1.0, True)
    assert (few.p, few.q, few.better, few.reason) == (None, None, None, reason)
    # A remark about a number that rests on enough is carried along, and the number is tested: alone, so q is p.
    assert enough.reason == f"{note}, in the second"
    assert enough.better == "lower"
    assert enough.q == enough.p < 0.001


def test_a_group_of_20_images_is_no_finding():
    def audit_caption(caption: str) -> Results:
        images = range(220)
        return portrayal.audit(
            portrayal.Study.from_frames(
                captions=pl.DataFrame(
                    {
                        "image_id": images,
                        "system": "s",
                        "caption": [caption if i < 20 else "a man" for i in images],
                    }
                ),
                attributes=pl.DataFrame(
                    {"image_id": images, "gender": ["female" if i < 20 else "male" for i in images]}
                ),
            ),
            metrics=["error"],
            quick=True,
        )

    differences = compare(audit_caption("a woman"), audit_caption("a man"))
    wrong_row = row(differences, "wrong", "female")
    assert (wrong_row.value, wrong_row.p, wrong_row.q, wrong_row.reason) == (1.0, None, None, TOO_FEW)
    assert verdict(wrong_row) == ""
    (sentence,) = change_sentences(differences)
    assert "wrong for female" not in sentence


def test_cautions_of_the_audits_stand_beside_the_difference():
    """Once where both sides have it; else with the side, since both may have one name. The test is not dropped."""

    def make_results(value: float | None, caution: str | None) -> Results:
        return Results(
            (
                Measurement("m", "t", system="s", value=1.0, se_data=0.1, caution="Few are labelled."),
                Measurement("m", "u", system="s", value=value, se_data=0.1, caution=caution, reason="none"),
            )
        )

    first_row, second_row = compare(
        make_results(1.0, "Few are labelled."),
        make_results(2.0, join_cautions(["Few are labelled.", "Long captions."])),
    ).measurements
    assert first_row.caution == "Few are labelled."
    assert split_cautions(second_row.caution) == ["Few are labelled.", "In the second: Long captions."]
    assert second_row.q < 0.001
    assert (
        compare(make_results(None, None), make_results(1.0, "Long captions.")).measurements[1].caution is None
    )


def test_nothing_is_tested_where_nothing_differs(audits):
    """Nobody names a skin tone: a value of 0, an interval of how many images could differ, and no test."""
    differences = compare(audits["good"], audits["bad"]).measurements
    same = [m for m in differences if (m.reason or "").startswith(NOTHING_DIFFERS)]
    assert {m.term for m in same} >= {"right", "wrong"}
    for m in same:
        assert (m.value, m.p, m.q, m.settings["mde"]) == (0, None, None, None)
        assert verdict(m) == NOTHING_DIFFERS
        if m.settings["test"] == "McNemar, exact":
            assert m.high == -m.low == pytest.approx(1 - 0.025 ** (1 / m.n))
        else:
            assert (m.low, m.high) == (None, None)


def results_of_size(term: str, n: int, value: float, unit: str = "percent") -> Results:
    m = Measurement(
        "m", term, system="a", value=value, se_data=0.1, n=n, n_unit="image", better="lower", unit=unit
    )
    return Results((m,), provenance={"cards": CARDS})


def test_terms_that_depend_on_the_number_of_images_are_not_compared_across_sizes():
    (difference,) = compare(
        results_of_size("t", 10_780, 45.7), results_of_size("t", 1_000, 42.2)
    ).measurements
    assert difference.value == pytest.approx(-3.5)
    assert (difference.p, difference.q, difference.better) == (None, None, None)
    assert "10,780 in the first, 1,000 in the second" in difference.caution
    for first, second in (
        (results_of_size("t", 1_000, 45.7), results_of_size("t", 950, 42.2)),
        (results_of_size("u", 9_000, 45.7), results_of_size("u", 900, 42.2)),
    ):
        (difference,) = compare(first, second).measurements
        assert (difference.caution, difference.better) == (None, "lower")
        assert difference.p < 0.001
    (counted,) = compare(
        results_of_size("u", 9_000, 300.0, "count"), results_of_size("u", 900, 30.0, "count")
    ).measurements
    assert counted.caution is not None


def test_a_mean_over_queries_depends_on_the_number_of_searched_images():
    def make_results(images: int, value: float) -> Results:
        mean = Measurement("m", "t", system="s", value=value, se_data=0.01, n=18, n_unit="query")
        return Results((mean,), provenance={"cards": CARDS, "study": {"images": images}})

    (difference,) = compare(make_results(300, 0.164), make_results(3000, 0.111)).measurements
    assert (difference.p, "300 in the first, 3,000 in the second" in difference.caution) == (None, True)
    broken = replace(
        make_results(300, 0.164), provenance={"cards": {"m": {"terms": None}}, "study": {"images": 300}}
    )
    assert len(compare(broken, make_results(300, 0.111)).measurements) == 1


def share(value: float, low: float, high: float, n: int, resamples: list[float | None]) -> Results:
    m = Measurement("m", "u", system="s", value=value, low=low, high=high, se_data=float(np.std(resamples)), n=n,
                    better="lower", unit="share")  # fmt: skip
    table = pl.DataFrame([(m.id, f"{n} images", resamples)], schema=REPLICATES_SCHEMA, orient="row")
    return Results((m,), replicates=table, provenance={"cards": CARDS})


def test_zero_of_few_images_is_not_significantly_less_than_a_few_of_many():
    """0 of 30 and 25 of 1,000: Fisher's exact test says p = 1. That all resamples of the first are 0 proves nothing."""
    resamples = np.random.default_rng(0).binomial(1000, 0.025, 500) / 1000
    few, more = (
        share(0.0, 0.0, 0.1135, 30, [0.0] * 500),
        share(0.025, 0.017, 0.0367, 1000, resamples.tolist()),
    )
    (difference,) = compare(few, more).measurements
    assert difference.value == pytest.approx(0.025)
    assert difference.low < 0 < difference.high
    assert difference.p > 0.5
    assert verdict(difference) not in ("worse", "better")
    # 0 of 3,000 and 150 of 1,000 is clear whatever the test.
    resamples_of_many = np.random.default_rng(0).binomial(1000, 0.15, 500) / 1000
    none, more = (
        share(0.0, 0.0, 0.00128, 3000, [0.0] * 500),
        share(0.15, 0.129, 0.1735, 1000, resamples_of_many.tolist()),
    )
    (difference,) = compare(none, more).measurements
    assert difference.p < 1e-3
    assert verdict(difference) == "worse"


def test_resamples_that_do_not_fit_are_not_paired():
    """Results of other programs, or of another number of resamples, are compared by their standard errors."""
    resamples = np.random.default_rng(0).normal(0.5, 0.05, 200).tolist()
    first = share(0.5, 0.4, 0.6, 300, resamples)
    for other_resamples in (resamples[:100], None):
        other = share(0.6, 0.5, 0.7, 300, resamples)
        table = pl.DataFrame(
            [(other.measurements[0].id, "300 images", other_resamples)],
            schema=REPLICATES_SCHEMA,
            orient="row",
        )
        (difference,) = compare(first, replace(other, replicates=table)).measurements
        assert difference.settings["paired"] is False
        assert difference.p == pytest.approx(
            2 * stats.norm.sf(0.1 / np.hypot(*[np.std(resamples)] * 2)), rel=0.01
        )
    huge_error = replace(first.measurements[0], se_data=1.7e308)
    (difference,) = compare(Results((huge_error,)), Results((replace(huge_error, value=0.7),))).measurements
    assert (difference.p, difference.low) == (None, None)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(("images", "similar_size"), [(3000, False), (320, True)])
def test_means_over_queries_depend_on_how_many_images_are_searched(recorded, images, similar_size):
    """As many queries on both sides. Where no count of images was recorded, the longest list stands for it."""

    def make_results(images: int, value: float) -> Results:
        mean = Measurement("m", "searched", system="s", value=value, se_data=0.01, n=18, n_unit="query")
        item_row = Measurement("m", "t", system="s", item="a nurse", value=value, n=images, n_unit="item")
        study = {"images": images} if recorded else {}
        return Results((mean, item_row), provenance={"cards": CARDS, "study": study})

    (difference,) = compare(make_results(300, 0.164), make_results(images, 0.111)).measurements
    assert (difference.q is not None) == (difference.caution is None) == similar_size
    if not similar_size:
        assert "how many images there are: 300 in the first, 3,000 in the second" in difference.caution


def test_cards_say_which_terms_depend_on_the_number_of_images():
    flagged = {
        f"{card.name}:{term.name}"
        for card in portrayal.metrics.CARDS.values()
        for term in card.terms
        if term.depends_on_n
    }
    assert {
        "lic:lic_m",
        "leakage:on-outputs",
        "amplification:multi",
        "amplification:ba",
        "retrieval-skew:ndkl",
        "retrieval-skew:maxskew",
        "retrieval-recall:ir@1",
        "quality:vocabulary",
        "word-odds:z",
    } <= flagged
    assert not flagged & {"error:error", "amplification:t-to-a", "naming-ratio:ratio", "quality:rouge-l"}
    assert "1,000" in portrayal.metrics.CARDS["lic"].caveats[1]


@pytest.mark.parametrize(
    ("first", "second", "better"),
    [(0.6, 0.8, "higher"), (1.5, 1.2, "lower"), (0.6, 1.2, None), (1.0, 1.4, "lower")],
)
def test_closer_to_the_ideal_is_better_where_both_values_are_above_or_below_it(first, second, better):
    rows = [
        Results((Measurement("m", "t", system="a", value=value, se_data=0.1, better="closer", ideal=1.0),))
        for value in (first, second)
    ]
    assert compare(*rows).measurements[0].better == better


def test_human_rows_and_items_are_not_compared(audits):
    differences = compare(audits["good"], audits["bad"])
    assert {m.system for m in differences.measurements} == {"good → bad"}
    assert all(m.item is None for m in differences.measurements)


def test_another_seed_is_not_paired_and_says_so(audits):
    differences = compare(audits["good"], audits["other seed"])
    bootstrapped = [
        m for m in differences.measurements if m.settings["test"] != "McNemar, exact" and m.value is not None
    ]
    assert {m.settings["paired"] for m in bootstrapped} == {False}
    paired, unpaired = (
        row(compare(audits["good"], audits["bad"]), "error", None),
        row(differences, "error", None),
    )
    assert unpaired.value == pytest.approx(paired.value)
    assert unpaired.p is not None


def test_the_same_audit_twice_differs_in_nothing(audits):
    for m in compare(audits["bad"], audits["bad"]).measurements:
        assert m.value in (0, None)
        assert (m.p, m.q, m.settings["mde"]) == (None, None, None)


def test_the_order_of_rows_of_the_study_does_not_unpair(systems, audits):
    shuffled = replace(systems, captions=systems.captions.sample(fraction=1, shuffle=True, seed=1))
    shuffled_audit = portrayal.audit(shuffled, metrics=["error"], systems=["bad"])
    differences = compare(audits["good"], shuffled_audit)
    pairing_and_test = {
        (m.settings["paired"], m.settings["test"]) for m in differences.measurements if m.value is not None
    }
    assert {test for paired, test in pairing_and_test if paired} == {"paired bootstrap", "McNemar, exact"}
    assert {test for paired, test in pairing_and_test if not paired} == {
        "both intervals"
    }  # of none, in all resamples


def test_a_missing_caption_does_not_unpair(systems, audits):
    captions = systems.captions.filter(
        (pl.col("system") == "bad").not_() | (pl.col("image_id") != "scene-00007")
    )
    fewer = portrayal.audit(replace(systems, captions=captions), metrics=["error"], systems=["bad"])
    complete, incomplete = (
        row(compare(audits["good"], audits["bad"]), "ratio", None),
        row(compare(audits["good"], fewer), "ratio", None),
    )
    assert incomplete.settings["paired"] is True
    assert incomplete.se_data == pytest.approx(complete.se_data, rel=0.1)


def test_ids_name_the_row_not_what_was_measured(audits):
    first, second = compare(audits["good"], audits["bad"]), compare(audits["good"], audits["other seed"])
    assert [m.id for m in first.measurements] == [m.id for m in second.measurements]
    assert len({m.id for m in first.measurements}) == len(first.measurements)


def test_undefined_stays_undefined():
    first = Results(
        (Measurement("m", "t", system="a", value=1.0), Measurement("m", "u", system="a", reason="why not"))
    )
    second = Results(
        (Measurement("m", "t", system="a", value=3.0), Measurement("m", "u", system="a", value=1.0))
    )
    known, unknown = compare(first, second).measurements
    assert (known.value, known.low, known.p, known.settings["paired"]) == (2.0, None, None, None)
    assert (unknown.value, unknown.reason) == (None, "undefined in the first: why not")


@pytest.mark.parametrize("paired", [True, False])
def test_other_seeds_would_move_a_difference_too(paired):
    """Means over four seeds that spread by 2 and 4: standard errors of 1 and 2, beside one of 2 for other data."""
    rng = np.random.default_rng(0)

    def make_results(system: str, value: float, std: float | None, sample: str) -> Results:
        m = Measurement("m", "t", system=system, value=value, se_data=np.sqrt(2), std_seed=std, n=100,
                        settings={"repeats": 4})  # fmt: skip
        resamples = rng.normal(value, np.sqrt(2), 2000).tolist()
        rows = pl.DataFrame([(m.id, sample, resamples)], schema=REPLICATES_SCHEMA, orient="row")
        return Results((m,), replicates=rows)

    for stds, expected in (
        ((None, None), 2.0),
        ((2.0, 4.0), 3.0),
    ):  # 2 and 2 for data, then 1 and 4 for seeds: 9
        first, second = (
            make_results("a", 10.0, stds[0], "x"),
            make_results("b", 15.0, stds[1], "x" if paired else "y"),
        )
        (row,) = compare(first, second).measurements
        assert row.settings["paired"] is paired
        assert row.se_data == pytest.approx(expected, rel=0.08)


def test_nothing_in_common():
    first = Results(
        (Measurement("m", "t", system="a", value=1.0), Measurement("m", "t", system="b", value=1.0))
    )
    second = Results((Measurement("m", "t", system="c", value=1.0),))
    with pytest.raises(PortrayalError, match="share no row to compare"):
        compare(first, second)


def test_the_command(command, audits, systems, tmp_path):
    audits["good"].save(tmp_path / "a")
    audits["bad"].save(tmp_path / "b")
    code, out, _ = command("compare", tmp_path / "a", tmp_path / "b", "--json", tmp_path / "d.json")
    assert code == 0
    assert "error · gender · good → bad" in out
    assert (
        "differences are not paired: another seed, no resamples, or resamples of one side that are all"
        in " ".join(out.split())
    )
    # Women are named wrongly more often by the second, which the first lines say with both values.
    line = next(line for line in out.splitlines() if line.startswith("- error by gender"))
    assert out.index(line) < out.index("error · gender · good → bad")
    assert "worse for female" in line
    assert len(Results.load(tmp_path / "d.json").measurements) > 10
    portrayal.audit(systems, metrics=["error"], quick=True).save(tmp_path / "all")
    code, out, _ = command(
        "compare", f"{tmp_path / 'all'}@system=good", f"{tmp_path / 'all'}@system=bad", "--format", "json"
    )
    assert code == 0
    assert {m["system"] for m in json.loads(out)["measurements"]} == {"good → bad"}
    code, out, _ = command("compare", tmp_path / "all", tmp_path / "all", "--format", "csv")
    assert set(pl.read_csv(out.encode())["system"]) == {"good", "bad", "copy"}
    code, _, err = command("compare", f"{tmp_path / 'all'}@system=god", tmp_path / "b")
    assert code == 2
    assert "Did you mean 'good'?" in err


def test_audits_of_other_images_are_marked(command, systems, audits, tmp_path):
    """As many images, half of them the same: resamples are shared, and yet the difference may be one of images."""
    first, second = systems.image_ids.to_list()[:400], systems.image_ids.to_list()[200:]
    for name, images in (("first", first), ("second", second)):
        tables = ("captions", "references", "attributes", "objects")
        subset_tables = {
            table: getattr(systems, table).filter(pl.col("image_id").is_in(images)) for table in tables
        }
        subset = portrayal.Study.from_frames(**subset_tables)
        portrayal.audit(subset, metrics=["error"], systems=["good"], quick=True).save(tmp_path / name)
    code, out, _ = command("compare", tmp_path / "first", tmp_path / "second")
    assert code == 0
    assert "The two were not measured on the same images" in " ".join(out.split())
    assert compare(audits["good"], audits["bad"]).provenance["same_images"] is True
    unknown = Results(audits["good"].measurements)
    assert compare(unknown, unknown).provenance["same_images"] is None


def test_rows_of_the_same_term_are_labelled_by_the_settings_that_differ():
    def make_results(value: float, **settings: object) -> Measurement:
        common = {"lexicon": "gender", "folds": 10}
        return Measurement("m", "t", system="s", value=value, se_data=0.1, n=500, settings=common | settings)

    first = Results((make_results(1.0, split="paper", k=1), make_results(2.0, split="leak-safe", k=1)))
    second = Results((make_results(3.0, split="paper", k=1), make_results(2.0, split="leak-safe", k=1)))
    differences = compare(first, second)
    assert list(row_labels(differences.measurements).values()) == ["t split paper", "t split leak-safe"]
    assert "t split paper rose from 1.0" in change_sentences(differences)[0]


def test_the_table_gives_way_on_a_narrow_terminal(command, audits, tmp_path, monkeypatch):
    audits["good"].save(tmp_path / "a")
    audits["bad"].save(tmp_path / "b")
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = command("compare", tmp_path / "a", tmp_path / "b")
    table = [line for line in out.splitlines() if line.startswith(("right", "wrong"))]
    assert table
    assert max(map(len, table)) <= 60


def scored(
    scores: dict[str, float], texts: dict[str, str], groups: dict[str, str], system: str, effect: float = 0.0
) -> Results:
    """Mean scores over groups in percent, with the evidence of a classifier metric."""
    means = [
        np.mean([scores[i] for i in scores if groups[i] == group]) for group in sorted(set(groups.values()))
    ]
    m = Measurement(
        "lic",
        "lic_m",
        system=system,
        value=100 * float(np.mean(means)),
        se_data=2.0,
        n=len(scores),
        unit="percent",
    )
    rows = [
        (
            m.id,
            image,
            system,
            texts[image],
            json.dumps(
                {
                    "labelled": groups[image],
                    "mean score": scores[image],
                    "parts": [[texts[image], 0.1]],
                    "effect": effect,
                    "by pairs": [1.0, -2.0],
                }
            ),
        )
        for image in scores
    ]
    resamples = np.random.default_rng(0).normal(m.value, 1, 200).tolist()
    return Results(
        (m,),
        pl.DataFrame(rows, schema=EVIDENCE_SCHEMA, orient="row"),
        pl.DataFrame([(m.id, "x", resamples)], schema=REPLICATES_SCHEMA, orient="row"),
    )


def test_images_with_equal_captions_of_either_system_share_a_cluster():
    images = ["a", "b", "c", "d"]
    groups = dict(zip(images, "xxyy", strict=True))
    first = scored(
        dict(zip(images, (0.8, 0.2, 0.6, 0.4), strict=True)),
        dict(zip(images, "ppqr", strict=True)),
        groups,
        "s",
    )
    second = scored(
        dict(zip(images, (0.5, 0.7, 0.1, 0.3), strict=True)),
        dict(zip(images, "tuuv", strict=True)),
        groups,
        "t",
    )
    # second - first, less the group's mean, over two images a group and two groups: by image
    effect = np.array([(-0.1 - 0.3) / 4, (0.1 + 0.3) / 4, (-0.1 - 0.1) / 4, (0.1 + 0.1) / 4])
    same_text = np.eye(4)
    same_text[0, 1] = same_text[1, 0] = 1  # both images have the caption p of the first system
    same_text[1, 2] = same_text[2, 1] = 1  # both images have the caption u of the second system
    by_pairs = effect @ same_text @ effect
    clusterings = [np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]), np.arange(4)]
    minimum = max(
        sum(effect[clustering == cluster].sum() ** 2 for cluster in set(clustering))
        for clustering in clusterings
    )
    standard_error = joint_error(first, first.measurements[0], second, second.measurements[0])
    assert standard_error == pytest.approx(100 * np.sqrt(max(by_pairs, minimum)))
    ragged = second.evidence.with_columns(
        pl.when(pl.col("image_id") == "a")
        .then(pl.col("detail").str.replace(r"\[1.0, -2.0\]", "[1.0]"))
        .otherwise("detail")
        .alias("detail")
    )
    malformed = replace(second, evidence=ragged)
    assert joint_error(first, first.measurements[0], malformed, second.measurements[0]) is None
    without_evidence = Results(second.measurements, replicates=second.replicates)
    assert joint_error(first, first.measurements[0], without_evidence, second.measurements[0]) is None
    with_training_effect = scored(
        dict.fromkeys(images, 0.5), dict(zip(images, "tuuv", strict=True)), groups, "t", effect=30.0
    )
    larger_error = joint_error(
        first, first.measurements[0], with_training_effect, with_training_effect.measurements[0]
    )
    assert larger_error == pytest.approx(
        np.sqrt(4 * 30.0**2)
    )  # what each image adds in all; pairs are the same in both
    other = replace(second.measurements[0], value=99.0)  # of another number than the scores'
    assert joint_error(first, first.measurements[0], second, other) is None


def test_classifier_scores_are_compared_with_both_systems_texts_as_clusters(systems):
    results_by_name = {
        name: portrayal.metrics.lic(systems, attribute="gender", systems=[name], permutations=0, seeds=(0, 1))
        for name in ("good", "bad")
    }
    difference = row(compare(results_by_name["good"], results_by_name["bad"]), "lic_m", None)
    error = joint_error(
        results_by_name["good"],
        row(results_by_name["good"], "lic_m", None),
        results_by_name["bad"],
        row(results_by_name["bad"], "lic_m", None),
    )
    seed_errors = [
        row(results, "lic_m", None).std_seed / np.sqrt(2) for results in results_by_name.values()
    ]  # of two repeats each
    assert difference.se_data == pytest.approx(np.hypot(error, np.hypot(*seed_errors)), rel=0.1)
    assert difference.settings["paired"] is True
    without_evidence = Results(
        results_by_name["bad"].measurements, replicates=results_by_name["bad"].replicates
    )
    conservative = row(compare(results_by_name["good"], without_evidence), "lic_m", None)
    assert conservative.se_data > difference.se_data


def test_overflowing_differences_are_undefined():
    huge = Measurement("m", "t", system="s", value=1e308, se_data=1e308, n=300)
    for value in (1.5e308, -1e308):
        (difference,) = compare(Results((huge,)), Results((replace(huge, value=value),))).measurements
        assert (difference.p, difference.low) == (None, None)
    assert difference.value is None
    assert "larger than numbers can be" in difference.reason
