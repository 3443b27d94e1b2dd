"""What `check-study` says of each metric is what `audit` does, and an audit takes the options that messages name."""

from __future__ import annotations

import json

import polars as pl
import pytest

import portrayal
from portrayal.auditing import _file_digests
from portrayal.errors import Undefined
from portrayal.metrics import METRICS
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
WHOLE = {"captions": CAPTIONS, "references": REFERENCES, "attributes": GENDER, "objects": OBJECTS}
STUDIES = {
    "whole": WHOLE,
    "no references": {**WHOLE, "references": None},
    "references of one image": {**WHOLE, "references": REFERENCES.head(1)},
    "no objects": {**WHOLE, "objects": None},
    "objects without confidence": {**WHOLE, "objects": pl.DataFrame({**LABELS, "source": ["human"] * N})},
    "labels of people alone": {**WHOLE, "objects": pl.DataFrame({"image_id": IMAGES, "label": ["person"] * N})},
    "one group": {**WHOLE, "attributes": GENDER.with_columns(gender=pl.lit("male"))},
    "groups without words": {**WHOLE, "attributes": GENDER.with_columns(pl.col("gender").replace("male", "x"))},
    "attribute without a lexicon": {**WHOLE, "attributes": GENDER.rename({"gender": "zodiac"})},
    "two attributes": {**WHOLE, "attributes": GENDER.with_columns(zodiac=pl.col("gender"))},
    "no attributes": {**WHOLE, "attributes": None},
    "captions alone": {"captions": CAPTIONS},
    "rankings alone": {"rankings": RANKINGS},
}  # fmt: skip
METRICS_ROUGH = {"lic": {"split": ("crossfit",), "seeds": (0,)}}


def skipped_in_fact(study: Study) -> set[tuple[str, str | None, str]]:
    """What every metric says when it is really run, as an audit runs it."""
    skipped: set[tuple[str, str | None, str]] = set()
    for name, metric in METRICS.items():
        rough = {**{"bootstrap": 20, "permutations": 0, "repeats": 1}, **METRICS_ROUGH.get(name, {})}
        rough = {option: value for option, value in rough.items() if option in metric.options}
        try:
            attributes = metric.attributes_of(study, None)
        except Undefined as reason:
            skipped.add((name, None, str(reason)))
            continue
        for attribute in attributes:
            try:
                metric(study, attribute=attribute, **{**metric.audit_options, **rough})
            except Undefined as reason:
                skipped.add((name, attribute, str(reason)))
    return skipped


@pytest.mark.parametrize("kind", STUDIES)
def test_check_study_says_of_every_metric_what_it_will_do(kind, command, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")  # a reason on one line
    study = Study.from_frames(**STUDIES[kind])
    write_study(study, tmp_path / "study")
    code, out, _ = command("check-study", tmp_path / "study")
    assert code == 0
    rows = out.partition("measured by an audit")[2].strip().splitlines()[: 3 * len(METRICS)]
    name, shown = "", set()
    for row in (row.rstrip() for row in rows):
        first, _, rest = row.partition(" ") if not row.startswith(" ") else (name, "", row)
        name = first
        if rest.strip().startswith("no. "):
            shown.add((name, rest.strip().removeprefix("no. ")))
    fact = skipped_in_fact(study)
    assert shown == {(metric, f"{of}: {why}" if of else why) for metric, of, why in fact}


def test_an_audit_skips_what_check_study_says(command, tmp_path):
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
    found = portrayal.Results.load(folder).measurements
    return next(m.settings for m in found if m.metric == metric)


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


def test_an_option_of_one_metric_and_a_settings_file(command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    (tmp_path / "study" / "portrayal.toml").write_text(
        'attribute = "gender"\nconfidence = 0.25\n[word-odds]\nprior = 100\n[quality]\nevidence = 7\n'
    )
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "word-odds,quality"]
    assert command(*call, "--set", "word-odds.prior=50", "--out", tmp_path / "audit")[0] == 0
    assert settings_of(tmp_path / "audit", "word-odds")["prior"] == 50.0  # the command line wins
    results = portrayal.Results.load(tmp_path / "audit")
    ids = [m.id for m in results.measurements if (m.metric, m.system, m.group) == ("quality", "s", None)]
    behind = results.evidence.filter(pl.col("id").is_in(ids)).group_by("id").len()
    assert behind["len"].max() == 7
    assert results.provenance["options"] == {
        "attribute": "gender",
        "confidence": 0.25,
        "word-odds": {"prior": 50.0},
        "quality": {"evidence": 7},
    }


def test_a_lexicon_is_for_its_own_attribute(command, tmp_path):
    """With labels of several attributes, words for one of them must not be hidden or looked for in another."""
    write_study(Study.from_frames(**STUDIES["two attributes"]), tmp_path / "study")
    words = tmp_path / "words.toml"
    words.write_text('name = "mine"\nattribute = "zodiac"\n[groups]\nmale = ["man"]\nfemale = ["woman"]\n')
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "error", "--lexicon", words]
    assert command(*call, "--out", tmp_path / "audit")[0] == 0
    found = portrayal.Results.load(tmp_path / "audit").measurements
    lists = {(m.attribute, m.settings["lexicon"].partition("-")[0].partition(" ")[0]) for m in found}
    assert {attribute for attribute, label in lists if label.startswith("mine")} == {"zodiac"}
    assert {attribute for attribute, _ in lists} == {"gender", "zodiac"}
    words.write_text(words.read_text().replace("zodiac", "height"))
    code, _, err = command(*call, "--out", tmp_path / "other")
    assert code == 2
    assert "--attribute" in err


@pytest.mark.parametrize(
    ("assignment", "says"),
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
def test_an_assignment_that_means_nothing_is_refused(assignment, says, command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    code, _, err = command("audit", tmp_path / "study", "--set", assignment, "--out", tmp_path / "audit")
    assert code == 2
    assert says in " ".join(err.split())
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize(
    ("text", "says"),
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
def test_a_settings_file_with_an_unknown_key_is_refused(text, says, command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    path = tmp_path / "study" / "portrayal.toml"
    path.write_text(text)
    for call in (["audit", "--out", tmp_path / "audit"], ["check-study"]):
        code, _, err = command(call[0], tmp_path / "study", *call[1:])
        assert code == 2
        assert str(path) in err
        assert says in " ".join(err.split())


def test_values_in_a_list_add_up(command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "harms", "--systems", "s"]
    for number, given in enumerate((["harms.stage=4,3"], ["harms.stage=4", "harms.stage=3"])):
        out = tmp_path / f"audit{number}"
        sets = [word for assignment in given for word in ("--set", assignment)]
        assert command(*call, *sets, "--set", "harms.measurement=demeaning.words", "--out", out)[0] == 0
        data = json.loads((out / "results.json").read_text())
        assert {m["settings"]["stage"] for m in data["measurements"]} == {"3", "4"}
        assert {m["term"] for m in data["measurements"]} == {"demeaning.words"}


def test_a_metric_without_attribute_is_not_reported_to_lack_one(command, tmp_path):
    write_study(Study.from_frames(**STUDIES["captions alone"]), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1]
    call += ["--metrics", "cooccurrence,retrieval-skew"]
    code, out, _ = command(*call, "--out", tmp_path / "audit")
    assert code == 0
    assert "Not measured: retrieval-skew. " in out
    assert "no attribute" not in out


def test_a_lexicon_of_another_attribute_is_not_used_for_the_only_one(command, tmp_path):
    ages = GENDER.select("image_id", age=pl.col("gender").replace({"male": "old", "female": "young"}))
    write_study(Study.from_frames(**{**WHOLE, "attributes": ages}), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "lic", "--lexicon", "gender"]
    code, _, err = command(*call, "--out", tmp_path / "audit")
    assert code == 2
    assert "The lexicon 'gender' is for 'gender', and the study has labels of age; choose" in err


@pytest.mark.parametrize("name", ["sex", "GENDER"])
def test_an_audit_finds_an_attribute_by_its_other_names(name, command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--metrics", "error", "--attribute", name]
    assert command(*call, "--out", tmp_path / "audit")[0] == 0
    assert {m.attribute for m in portrayal.Results.load(tmp_path / "audit").measurements} == {"gender"}


def test_an_audit_that_measured_nothing_replaces_nothing(command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--out", tmp_path / "audit"]
    assert command(*call, "--metrics", "error")[0] == 0
    before = (tmp_path / "audit" / "results.json").read_bytes()
    code, _, err = command(*call, "--metrics", "retrieval-skew")
    assert code == 2
    assert "Nothing was measured. retrieval-skew: The metric 'retrieval-skew' cannot run" in err
    assert (tmp_path / "audit" / "results.json").read_bytes() == before


def test_exports_of_other_numbers_do_not_stay_beside_new_ones(command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--workers", 1, "--out", tmp_path / "audit"]
    tables = tmp_path / "audit" / "tables"
    assert command(*call, "--metrics", "error")[0] == 0
    assert command("report", tmp_path / "audit", "--export", "tables", "--out", tmp_path / "audit")[0] == 0
    assert command(*call, "--metrics", "error")[0] == 0  # the same numbers again
    assert tables.is_dir()
    assert command(*call, "--metrics", "error", "--seed", 1)[0] == 0
    assert not tables.exists()


def test_seeds_of_a_metric_are_checked_before_anything_is_computed(command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    call = ["audit", tmp_path / "study", "--quick", "--metrics", "lic", "--set", "lic.seeds=-1"]
    code, _, err = command(*call, "--out", tmp_path / "audit")
    assert code == 2
    assert "The option 'seeds' must be 0 or more. Got -1 instead." in err


def test_a_check_says_which_lexicon_the_audit_will_use(command, tmp_path):
    write_study(Study.from_frames(**WHOLE), tmp_path / "study")
    assert "gender: the lexicon 'gender' (en) is used" in " ".join(
        command("check-study", tmp_path / "study")[1].split()
    )
    stdout = " ".join(command("check-study", tmp_path / "study", "--lexicon", "man-woman")[1].split())
    assert "gender: the lexicon 'man-woman' (en) is used" in stdout


def test_what_a_check_leaves_out_an_audit_leaves_out(command, tmp_path):
    """A group of one image, in a study that nobody imported."""
    (tmp_path / "c.csv").write_text("image_id,caption\n" + "\n".join(f"{n},a man" for n in range(12)))
    genders = ["other", *["male", "female"] * 5, "male"]
    (tmp_path / "a.csv").write_text(
        "image_id,gender\n" + "\n".join(f"{n},{one}" for n, one in enumerate(genders))
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
