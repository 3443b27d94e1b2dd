"""What `check-study` says of each metric is what `audit` does, and an audit takes the options that messages name."""

from __future__ import annotations

import json

import polars as pl
import pytest

import portrayal
from portrayal.errors import Undefined
from portrayal.metrics import METRICS
from portrayal.metrics.base.tasks import _file_digests
from portrayal.study import Study, write_study

N = 40
SCENES = ["a man rides skis", "a woman rides skis", "a man holds a cup", "a woman eats pizza"]
IMAGES = [str(number) for number in range(N)]
CAPTIONS = pl.DataFrame(
    {"image_id": IMAGES, "system": ["s"] * N, "caption": [SCENES[i % 4] for i in range(N)]}
)
REFERENCES = pl.DataFrame({"image_id": IMAGES * 2, "caption": [SCENES[i % 4] for i in range(2 * N)]})
GENDER = pl.DataFrame({"image_id": IMAGES, "gender": ["male", "female"] * (N // 2)})
LABELS = {"image_id": IMAGES, "label": ["skis", "skis", "cup", "pizza"] * (N // 4)}
OBJECTS = pl.DataFrame({**LABELS, "source": ["model"] * N, "confidence": [0.5] * N})
RANKINGS = pl.DataFrame(
    {
        "query": ["a nurse"] * N,
        "item": IMAGES,
        "score": [float(i) for i in range(N)],
        "gender": GENDER["gender"],
    }
)
FULL_TABLES = {"captions": CAPTIONS, "references": REFERENCES, "attributes": GENDER, "objects": OBJECTS}
STUDIES = {
    "whole": FULL_TABLES,
    "no references": {**FULL_TABLES, "references": None},
    "references of one image": {**FULL_TABLES, "references": REFERENCES.head(1)},
    "no objects": {**FULL_TABLES, "objects": None},
    "objects without confidence": {**FULL_TABLES, "objects": pl.DataFrame({**LABELS, "source": ["human"] * N})},
    "labels of people alone": {**FULL_TABLES, "objects": pl.DataFrame({"image_id": IMAGES, "label": ["person"] * N})},
    "one group": {**FULL_TABLES, "attributes": GENDER.with_columns(gender=pl.lit("male"))},
    "groups without words": {**FULL_TABLES, "attributes": GENDER.with_columns(pl.col("gender").replace("male", "x"))},
    "attribute without a lexicon": {**FULL_TABLES, "attributes": GENDER.rename({"gender": "zodiac"})},
    "two attributes": {**FULL_TABLES, "attributes": GENDER.with_columns(zodiac=pl.col("gender"))},
    "no attributes": {**FULL_TABLES, "attributes": None},
    "captions alone": {"captions": CAPTIONS},
    "rankings alone": {"rankings": RANKINGS},
}  # fmt: skip
QUICK_OPTIONS = {"lic": {"split": ("crossfit",), "seeds": (0,)}}


def skipped_by_metrics(study: Study) -> set[tuple[str, str | None, str]]:
    """What every metric says when it is really run, as an audit runs it."""
    skipped: set[tuple[str, str | None, str]] = set()
    for name, metric in METRICS.items():
        options = {**{"bootstrap": 20, "permutations": 0, "repeats": 1}, **QUICK_OPTIONS.get(name, {})}
        options = {option: value for option, value in options.items() if option in metric.options}
        try:
            attributes = metric.attributes_of(study, None)
        except Undefined as reason:
            skipped.add((name, None, str(reason)))
            continue
        for attribute in attributes:
            try:
                metric(study, attribute=attribute, **{**metric.audit_options, **options})
            except Undefined as reason:
                skipped.add((name, attribute, str(reason)))
    return skipped


@pytest.mark.parametrize("kind", STUDIES)
def test_check_study_gives_the_same_reasons_as_the_metrics(kind, command, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")  # a reason on one line
    study = Study.from_frames(**STUDIES[kind])
    write_study(study, tmp_path / "study")
    code, out, _ = command("check-study", tmp_path / "study")
    assert code == 0
    rows = out.partition("measured by an audit")[2].strip().splitlines()[: 3 * len(METRICS)]
    metric_name, printed_reasons = "", set()
    for row in (row.rstrip() for row in rows):
        metric_cell, _, text = row.partition(" ") if not row.startswith(" ") else (metric_name, "", row)
        metric_name = metric_cell
        if text.strip().startswith("no. "):
            printed_reasons.add((metric_name, text.strip().removeprefix("no. ")))
    actual_reasons = skipped_by_metrics(study)
    assert printed_reasons == {
        (metric, f"{attribute}: {reason}" if attribute else reason)
        for metric, attribute, reason in actual_reasons
    }


def test_an_audit_skips_the_metrics_that_check_study_lists(command, tmp_path):
    write_study(Study.from_frames(**STUDIES["objects without confidence"]), tmp_path / "study")
    _, out, _ = command("check-study", tmp_path / "study")
    names = "error,gender-score,amplification"
    code, _, _ = command(
        "audit",
        tmp_path / "study",
        "--quick",
        "--workers",
        1,
        "--metrics",
        names,
        "--out",
        tmp_path / "audit",
    )
    assert code == 0
    skipped = portrayal.Results.load(tmp_path / "audit").provenance["skipped"]
    assert [skip["metric"] for skip in skipped] == ["gender-score"]
    assert skipped[0]["reason"] in " ".join(out.split())


def settings_of(folder, metric):
    measurements = portrayal.Results.load(folder).measurements
    return next(m.settings for m in measurements if m.metric == metric)


def test_an_audit_takes_the_options_that_its_messages_name(command, tmp_path):
    """A confidence for human labels; leakage's own option of that name, a threshold, is left alone."""
    write_study(Study.from_frames(**STUDIES["objects without confidence"]), tmp_path / "study")
    call = [
        "audit",
        tmp_path / "study",
        "--quick",
        "--workers",
        1,
        "--metrics",
        "gender-score,leakage",
        "--confidence",
        "0.4",
    ]
    assert command(*call, "--out", tmp_path / "audit")[0] == 0
    assert settings_of(tmp_path / "audit", "gender-score")["confidence"] == 0.4
    results = portrayal.Results.load(tmp_path / "audit")
    assert results.provenance["skipped"] == []
    assert results.provenance["options"] == {"confidence": 0.4}


def test_options_of_a_metric_and_of_a_settings_file(command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    (tmp_path / "study" / "portrayal.toml").write_text(
        'attribute = "gender"\nconfidence = 0.25\n[word-odds]\nprior = 100\n[quality]\nevidence = 7\n'
    )
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "word-odds,quality"]
    assert command(*call, "--set", "word-odds.prior=50", "--out", tmp_path / "audit")[0] == 0
    assert settings_of(tmp_path / "audit", "word-odds")["prior"] == 50.0  # the command line wins
    results = portrayal.Results.load(tmp_path / "audit")
    ids = [m.id for m in results.measurements if (m.metric, m.system, m.group) == ("quality", "s", None)]
    n_evidence = results.evidence.filter(pl.col("id").is_in(ids)).group_by("id").len()
    assert n_evidence["len"].max() == 7
    assert results.provenance["options"] == {
        "attribute": "gender",
        "confidence": 0.25,
        "word-odds": {"prior": 50.0},
        "quality": {"evidence": 7},
    }


def test_a_lexicon_is_for_its_own_attribute(command, tmp_path):
    """With labels of several attributes, words for one of them must not be masked or searched in another."""
    write_study(Study.from_frames(**STUDIES["two attributes"]), tmp_path / "study")
    words = tmp_path / "words.toml"
    words.write_text('name = "mine"\nattribute = "zodiac"\n[groups]\nmale = ["man"]\nfemale = ["woman"]\n')
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "error", "--lexicon", words]
    assert command(*call, "--out", tmp_path / "audit")[0] == 0
    measurements = portrayal.Results.load(tmp_path / "audit").measurements
    lexicons = {
        (m.attribute, m.settings["lexicon"].partition("-")[0].partition(" ")[0]) for m in measurements
    }
    assert {attribute for attribute, lexicon_name in lexicons if lexicon_name.startswith("mine")} == {
        "zodiac"
    }
    assert {attribute for attribute, _ in lexicons} == {"gender", "zodiac"}
    words.write_text(words.read_text().replace("zodiac", "height"))
    code, _, err = command(*call, "--out", tmp_path / "other")
    assert code == 2
    assert "--attribute" in err


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("lick.split=paper", "Did you mean 'lic'?"),
        ("lic.splt=paper", "Did you mean 'split'?"),
        ("lic.split=papr", "Did you mean 'paper'?"),
        ("lic.folds=many", "a whole number"),
        ("lic.folds=1", "must be 2 or more"),
        ("lic.mask=maybe", "yes or no"),
        ("lic.folds=2,lic.folds=3", "a whole number"),
        ("lic", "METRIC.OPTION=VALUE"),
    ],
)
def test_an_assignment_that_means_nothing_is_refused(assignment, message, command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    code, _, err = command("audit", tmp_path / "study", "--set", assignment, "--out", tmp_path / "audit")
    assert code == 2
    assert message in " ".join(err.split())
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confidnce = 0.5", "Did you mean 'confidence'?"),
        ("[lick]\nfolds = 3", "Did you mean 'lic'?"),
        ("lic = 3", "Expected a table [lic] of its options. Got 3 instead."),
        ("[lic]\nfold = 3", "Did you mean 'folds'?"),
        ("[lic]\nfolds = [3, 4]", "a whole number"),
        ("confidence = true", "a number"),
        ("attribute = 3", "as text"),
        ("confidence = = 3", "TOML"),
        (f"confidence = {'9' * 5_000}", "expected TOML, found Exceeds the limit"),
        (f"confidence = 0x{'f' * 5_000}", "expected TOML, found a whole number with hundreds of digits"),
        ("confidence = nan", "expected TOML, found nan, which is no finite number"),
    ],
)
def test_a_settings_file_with_an_unknown_key_is_refused(text, message, command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    path = tmp_path / "study" / "portrayal.toml"
    path.write_text(text)
    for arguments in (["audit", "--out", tmp_path / "audit"], ["check-study"]):
        code, _, err = command(arguments[0], tmp_path / "study", *arguments[1:])
        assert code == 2
        assert str(path) in err
        assert message in " ".join(err.split())


def test_list_values_are_combined(command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "harms", "--systems", "s"]
    for number, assignments in enumerate((["harms.stage=4,3"], ["harms.stage=4", "harms.stage=3"])):
        out = tmp_path / f"audit{number}"
        set_options = [word for assignment in assignments for word in ("--set", assignment)]
        assert (
            command(*call, *set_options, "--set", "harms.measurement=demeaning.words", "--out", out)[0] == 0
        )
        document = json.loads((out / "results.json").read_text())
        assert {m["settings"]["stage"] for m in document["measurements"]} == {"3", "4"}
        assert {m["term"] for m in document["measurements"]} == {"demeaning.words"}


def test_a_metric_without_attribute_does_not_ask_for_an_attribute(command, tmp_path):
    write_study(Study.from_frames(**STUDIES["captions alone"]), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1]
    call += ["--metrics", "cooccurrence,retrieval-skew"]
    code, out, _ = command(*call, "--out", tmp_path / "audit")
    assert code == 0
    assert "Not measured: retrieval-skew. " in out
    assert "no attribute" not in out


def test_a_lexicon_of_another_attribute_is_refused(command, tmp_path):
    ages = GENDER.select("image_id", age=pl.col("gender").replace({"male": "old", "female": "young"}))
    write_study(Study.from_frames(**{**FULL_TABLES, "attributes": ages}), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "lic", "--lexicon", "gender"]
    code, _, err = command(*call, "--out", tmp_path / "audit")
    assert code == 2
    assert "The lexicon 'gender' is for 'gender', and the study has labels of age; choose" in err


@pytest.mark.parametrize("name", ["sex", "GENDER"])
def test_an_audit_finds_an_attribute_by_its_other_names(name, command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "error", "--attribute", name]
    assert command(*call, "--out", tmp_path / "audit")[0] == 0
    assert {m.attribute for m in portrayal.Results.load(tmp_path / "audit").measurements} == {"gender"}


def test_an_audit_that_measured_nothing_replaces_nothing(command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--out", tmp_path / "audit"]
    assert command(*call, "--metrics", "error")[0] == 0
    before = (tmp_path / "audit" / "results.json").read_bytes()
    code, _, err = command(*call, "--metrics", "retrieval-skew")
    assert code == 2
    assert "Nothing was measured. retrieval-skew: The metric 'retrieval-skew' cannot run" in err
    assert (tmp_path / "audit" / "results.json").read_bytes() == before


def test_exports_of_other_numbers_do_not_stay_beside_new_ones(command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--out", tmp_path / "audit"]
    tables = tmp_path / "audit" / "tables"
    assert command(*call, "--metrics", "error")[0] == 0
    assert command("report", tmp_path / "audit", "--export", "tables", "--out", tmp_path / "audit")[0] == 0
    assert command(*call, "--metrics", "error")[0] == 0  # the same numbers again
    assert tables.is_dir()
    assert command(*call, "--metrics", "error", "--seed", 1)[0] == 0
    assert not tables.exists()


def test_seeds_of_a_metric_are_checked_before_anything_is_computed(command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--metrics", "lic", "--set", "lic.seeds=-1"]
    code, _, err = command(*call, "--out", tmp_path / "audit")
    assert code == 2
    assert "The option 'seeds' must be 0 or more. Got -1 instead." in err


def test_check_study_names_the_lexicon_of_the_audit(command, tmp_path):
    write_study(Study.from_frames(**FULL_TABLES), tmp_path / "study")
    assert "gender: the lexicon 'gender' (en) is used" in " ".join(
        command("check-study", tmp_path / "study")[1].split()
    )
    stdout = " ".join(command("check-study", tmp_path / "study", "--lexicon", "man-woman")[1].split())
    assert "gender: the lexicon 'man-woman' (en) is used" in stdout


def test_check_study_and_audit_skip_the_same_rows(command, tmp_path):
    """A group of one image, in a study that nobody imported."""
    (tmp_path / "c.csv").write_text("image_id,caption\n" + "\n".join(f"{n},a man" for n in range(12)))
    genders = ["other", *["male", "female"] * 5, "male"]
    (tmp_path / "a.csv").write_text(
        "image_id,gender\n" + "\n".join(f"{n},{gender}" for n, gender in enumerate(genders))
    )
    (tmp_path / "study.toml").write_text('attributes = "a.csv"\n[captions]\ns = "c.csv"\n')
    assert command("check-study", tmp_path, "--skip-bad")[0] == 0
    call = ["audit", tmp_path, "--quick", "--workers", 1, "--metrics", "error", "--out", tmp_path / "audit"]
    assert command(*call, "--skip-bad")[0] == 0
    study = portrayal.Results.load(tmp_path / "audit").provenance["study"]
    assert set(study["groups"]["gender"]) == {"male", "female"}


def test_a_cache_that_fills_does_not_undo_a_checkpoint(tmp_path):
    """Files that options name are part of a task's key, since they may change; a cache changes no number."""
    (tmp_path / "words.toml").write_text("x = 1")
    options = {"lexicon": str(tmp_path / "words.toml"), "cache_dir": str(tmp_path), "split": ("paper",)}
    assert list(_file_digests(options)) == [str(tmp_path / "words.toml")]
