"""`portrayal counterbias`, as a newcomer would run it, with models of the package."""

from __future__ import annotations

import importlib.util
import json

import pytest

from portrayal.cli.main import run
from portrayal.results import Results

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "safetensors")),
    reason="the extra 'neural' is not installed",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    out = tmp_path_factory.mktemp("counterbias") / "lab"
    arguments = (
        "lab make --images --counterfactuals --size 64 --scenes 90 --data-bias 0 --several 0 --androgynous 0"
    )
    assert run([*arguments.split(), "--out", str(out)]) == 0
    return out


def command(*arguments: object) -> int:
    return run(["counterbias", *map(str, arguments)])


def headline(out, term, **settings):
    return next(
        m for m in Results.load(out).measurements
        if m.term == term and m.group is None and m.item is None
        and all(m.settings.get(name) == value for name, value in settings.items())
    )  # fmt: skip


def test_the_command_writes_results_and_a_page(lab, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = [
        "--model",
        "lab-dual-full",
        "--manifest",
        lab / "manifest.csv",
        "--bootstrap",
        50,
        "--out",
        out,
    ]
    assert command(*arguments, "--attack", "pgd", "--attack", "exact") == 0
    stdout = capsys.readouterr().out
    assert "lab-dual-full: male or female" in stdout
    assert "b@v-l less the placebo's" in stdout
    assert sorted(path.name for path in out.iterdir()) == [
        "evidence.parquet", "index.html", "replicates.parquet", "results.json", "thumbnails.parquet",
    ]  # fmt: skip
    for attack in ("pgd", "exact"):
        bias = headline(out, "b@v-l", kind="activity", attack=attack)
        assert bias.value > 15
        assert bias.low > 10
        assert headline(out, "excess", kind="activity", attack=attack, of="b@v-l").low > 0
    assert headline(out, "attack-success", attack="pgd").value > 90
    assert headline(out, "drift", attack="pgd").value < 5
    page = (out / "index.html").read_text()
    assert "What changes when only the person changes" in page
    assert "the counterfactual images" in page
    assert json.loads((out / "results.json").read_text())["provenance"]["stereotypes"]["fishing"] == "male"
    # the same command again writes the same numbers over it
    before = Results.load(out).measurements
    assert command(*arguments, "--attack", "pgd", "--attack", "exact") == 0
    assert Results.load(out).measurements == before


def test_all_options(lab, tmp_path):
    out = tmp_path / "out"
    code = command(
        "--model", "lab-single", "--manifest", lab / "manifest.csv", "--out", out, "--bootstrap", 20,
        "--attack", "fgsm", "--epsilon", "4/255", "--templates", "S w/o", "--normalize-over", "candidates",
        "--bias-normalize-over", "groups", "--blank-image", "gray", "--groups", "female,male",
        "--words", "female=woman,male=man", "--no-placebo", "--norm", "l2", "--batch-size", 16,
    )  # fmt: skip
    assert code == 0
    settings = headline(out, "b@v-l").settings
    assert settings["groups"] == ["female", "male"]
    assert (settings["attack"], settings["epsilon"], settings["norm"]) == ("fgsm", round(4 / 255, 6), "l2")
    assert settings["normalize_over"] == "candidates"
    assert not [m for m in Results.load(out).measurements if m.term == "placebo"]


@pytest.mark.parametrize(
    ("bad_arguments", "message"),
    [
        (["--model", "lab-triple"], "Unknown model of the lab"),
        (["--epsilon", "much"], "expected a number such as 0.03 or 8/255"),
        (["--words", "female"], "expected GROUP=WORD"),
        (["--groups", "female,robot"], "Unknown group of the manifest"),
        (["--concepts", "yodelling"], "'yodelling' is not in the model's vocabulary"),
        (["--templates", "the man is [MASK]"], "one {group} and one [MASK]"),
    ],
)
def test_bad_usage_gives_an_error_message_and_exit_code_2(lab, tmp_path, capsys, bad_arguments, message):
    arguments = ["--manifest", lab / "manifest.csv", "--out", tmp_path / "out", *bad_arguments]
    assert command(*arguments, *([] if "--model" in bad_arguments else ["--model", "lab-dual"])) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out" / "results.json").exists()


def test_a_bad_manifest_and_a_folder_with_other_files(lab, tmp_path, capsys):
    bad = tmp_path / "bad.csv"
    bad.write_text("image,group,concept,kind\nnone.png,male,fishing,activity\n")
    assert command("--model", "lab-dual", "--manifest", bad, "--out", tmp_path / "out") == 2
    assert "line 2" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    arguments = ["--model", "lab-dual", "--manifest", lab / "manifest.csv", "--out", tmp_path / "mine"]
    assert command(*arguments) == 2
    assert "choose a new folder" in capsys.readouterr().err


def test_pairs_run_end_to_end(shared, tmp_path, capsys):
    """With a model of the lab the numbers mean little; the output says that nearly all are undefined."""
    assert (
        run(["vl-bias", "pairs", str(shared / "images" / "pairs"), "--out", str(tmp_path / "pairs.csv")]) == 0
    )
    code = command(
        "--model", "lab-single", "--manifest", tmp_path / "pairs.csv", "--attack", "exact", "--concepts",
        "cooking,shopping", "--bootstrap", 20, "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 0
    assert "of 400" in capsys.readouterr().out
    assert headline(tmp_path / "out", "undefined").value > 200


def test_the_attack_agrees_with_the_truth(lab, tmp_path):
    """The paper could not check this: the attack finds the direction of the planted bias."""
    from portrayal.lab.world import ACTIVITIES, DRAWN_ACTIVITIES

    out = tmp_path / "out"
    assert (
        command(
            "--model", "lab-dual-full", "--manifest", lab / "manifest.csv", "--bootstrap", 20, "--out", out
        )
        == 0
    )
    bias_by_concept = {
        m.item: m.value for m in Results.load(out).measurements
        if m.term == "b@v-l" and m.item in DRAWN_ACTIVITIES and m.group is None and m.settings["template"] == "all"
    }  # fmt: skip
    planted = {
        concept: 1 if ACTIVITIES[concept].concepts["male"] == concept else -1
        for concept in DRAWN_ACTIVITIES if ACTIVITIES[concept].strength > 0
    }  # fmt: skip
    measured = [concept for concept in planted if bias_by_concept.get(concept) is not None]
    agreed = [bias_by_concept[concept] * planted[concept] > 0 for concept in measured]
    assert len(measured) >= 10
    assert sum(agreed) / len(agreed) >= 0.8
