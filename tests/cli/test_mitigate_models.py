"""`portrayal mitigate compare` and `portrayal mitigate METHOD`, as a newcomer would run them."""

from __future__ import annotations

import importlib.util
import json

import pytest

from portrayal.cli.main import run
from portrayal.results import Results

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "safetensors")),
        reason="the extra 'neural' is not installed",
    ),
]
METHODS = ("vanilla", "gender-swap", "fairvlp", "image-swap")


def mitigate(*arguments: object) -> int:
    return run(["mitigate", *map(str, arguments)])


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    out = tmp_path_factory.mktemp("mitigate") / "out"
    assert mitigate("compare", "--quick", "--out", out) == 0
    return out


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("mitigate-study") / "lab"
    arguments = "lab make --images --counterfactuals --size 64 --scenes 60 --several 0 --androgynous 0"
    assert run([*arguments.split(), "--out", str(out)]) == 0
    return out


def rows(out, **filters):
    return [
        m
        for m in Results.load(out).measurements
        if all(
            getattr(m, name, None) == value or m.settings.get(name) == value
            for name, value in filters.items()
        )
    ]


def test_compare_writes_all_rows(comparison):
    assert {path.name for path in comparison.iterdir()} >= {"index.html", "results.json", "models", "scores"}
    for attack in ("pgd", "exact"):
        for kind in ("activity", "occupation"):
            for method in METHODS:
                for term in ("b@v-l", "b@v", "b@l"):
                    row_filters = {"metric": "counterbias", "system": method, "attack": attack, "kind": kind}
                    (bias,) = rows(comparison, term=term, **row_filters)
                    (excess,) = rows(comparison, term="excess", of=term, **row_filters)
                    assert bias.unit == excess.unit == "percent"
                    assert bias.value is None or excess.value < bias.value
            drop_rows = rows(
                comparison, metric="mitigation", term="drop", attack=attack, kind=kind, of="b@v-l"
            )
            remaining_bias = {
                m.system: m.value
                for m in rows(comparison, term="excess", attack=attack, kind=kind, of="b@v-l")
            }  # fmt: skip
            assert tuple(drop.system for drop in drop_rows) == METHODS[1:]
            for drop in drop_rows:
                assert drop.value == pytest.approx(remaining_bias["vanilla"] - remaining_bias[drop.system])
    for retrieval_model in ("zero-shot", "fine-tuned"):
        for term in ("tr@1", "tr@5", "tr@10", "ir@1", "ir@5", "ir@10"):
            recalls = {
                m.system: m.value
                for m in rows(comparison, metric="retrieval-recall", term=term, fitted=retrieval_model)
            }
            assert set(recalls) == set(METHODS)
            assert all(0 <= value <= 1 for value in recalls.values())
    for texts in ("biased", "balanced"):
        accuracies = {m.system: m.value for m in rows(comparison, term="words-right", texts=texts)}
        changes = rows(comparison, term="change", of="words-right", texts=texts)
        assert tuple(change.system for change in changes) == METHODS[1:]
        for change in changes:
            assert change.value == pytest.approx(accuracies[change.system] - accuracies["vanilla"])
        assert accuracies["vanilla"] > 0.5  # an intact model of the lab
    (group_accuracy,) = rows(comparison, term="group-right", system="fairvlp")
    assert group_accuracy.value > 0.8
    provenance = json.loads((comparison / "results.json").read_text())["provenance"]
    assert provenance["methods"]["fairvlp"]["weight"] == 0.5
    assert tuple(provenance["methods"]) == METHODS
    page = (comparison / "index.html").read_text()
    assert "bias removed, against vanilla" in page


def test_a_quick_comparison_separates_the_methods(comparison):
    """Two seeds and 132 images separate methods that use images from the one that does not."""
    for attack in ("pgd", "exact"):
        filters = {
            "metric": "mitigation",
            "term": "drop",
            "attack": attack,
            "kind": "activity",
            "of": "b@v-l",
        }
        gender_swap, fairvlp, image_swap = (
            rows(comparison, system=method, **filters)[0] for method in METHODS[1:]
        )
        assert fairvlp.low > 0
        assert image_swap.low > 0
        assert gender_swap.value < min(fairvlp.low, image_swap.low)


def test_finished_models_and_scores_are_reused(comparison, capsys):
    modified_times = {
        path: path.stat().st_mtime_ns for path in comparison.glob("[ms]*/**/*") if path.is_file()
    }
    assert len([path for path in modified_times if path.name == "model.safetensors"]) == 8
    assert len([path for path in modified_times if path.suffix == ".npz"]) == 8
    before = Results.load(comparison).measurements
    (comparison / "results.json").unlink()  # killed before the end, say
    assert mitigate("compare", "--quick", "--out", comparison) == 0
    assert {
        path: path.stat().st_mtime_ns for path in comparison.glob("[ms]*/**/*") if path.is_file()
    } == modified_times
    assert Results.load(comparison).measurements == before
    stdout = capsys.readouterr().out
    assert "Remaining bias, activity: excess over the noise floor, in percent" in stdout
    assert "Costs" in stdout


def test_a_folder_of_other_settings_is_refused(comparison, capsys):
    assert mitigate("compare", "--quick", "--weight", 0.3, "--out", comparison) == 2
    assert "holds a model of other settings or data" in " ".join(capsys.readouterr().err.split())


def test_a_single_method_writes_a_model_that_loads(study, tmp_path, capsys):
    from portrayal.models.masked_vlm import load_masked

    arguments = ["--model", "lab-dual", "--data", study, "--steps", 2, "--batch-size", 4, "--device", "cpu"]
    out = tmp_path / "mitigated"
    assert mitigate("fairvlp-l", *arguments, "--weight", 0.25, "--seed", 3, "--out", out) == 0
    assert f"--model {out}" in " ".join(capsys.readouterr().out.split())
    card = json.loads((out / "card.json").read_text())
    assert (card["method"], card["hyperparameters"], card["recipe"]["seed"]) == (
        "fairvlp-l",
        {"weight": 0.25},
        3,
    )
    assert card["recipe"]["steps"] == 2
    model = load_masked(str(out), "cpu")
    log_probs = model.word_log_probs(model.gray_images(1), "a [MASK] is in the picture", ["woman", "man"])
    assert log_probs.isfinite().all()
    before = (out / "model.safetensors").stat().st_mtime_ns
    assert mitigate("fairvlp-l", *arguments, "--weight", 0.25, "--seed", 3, "--out", out) == 0
    assert (out / "model.safetensors").stat().st_mtime_ns == before
    assert mitigate("fairvlp-l", *arguments, "--weight", 0.5, "--seed", 3, "--out", out) == 2
    # The mitigated model can be mitigated again.
    assert (
        mitigate(
            "vanilla",
            "--model",
            out,
            "--data",
            study,
            "--steps",
            1,
            "--batch-size",
            4,
            "--out",
            tmp_path / "2",
        )
        == 0
    )
    assert "mitigated" in json.loads((tmp_path / "2" / "card.json").read_text())["start"]


def test_translated_images_are_training_data(study, tmp_path):
    arguments = [
        "--data",
        study,
        "--counterfactuals",
        study / "counterfactuals",
        "--steps",
        1,
        "--batch-size",
        4,
        "--device",
        "cpu",
    ]
    assert mitigate("image-swap", *arguments, "--out", tmp_path / "swapped") == 0
    card = json.loads((tmp_path / "swapped" / "card.json").read_text())
    assert card["method"] == "image-swap"
    assert "of them with counterfactuals" in card["data"]


def test_methods_are_compared_on_a_study_of_the_user(study, tmp_path):
    out = tmp_path / "out"
    arguments = (
        "--quick --methods vanilla,gender-swap --seeds 1 --steps 1 --batch-size 4 --bootstrap 20".split()
    )
    arguments += ["--data", study, "--manifest", study / "manifest.csv", "--groups", "female,male"]
    assert mitigate("compare", *arguments, "--out", out) == 0
    (row,) = rows(out, term="b@l", system="gender-swap", attack="exact", kind="activity")
    assert row.settings["groups"] == ["female", "male"]
    assert rows(out, term="tr@1", system="vanilla", fitted="fine-tuned")
    assert rows(out, term="words-right", texts="held out")


@pytest.mark.parametrize(
    ("bad_arguments", "message"),
    [
        (["compare", "--methods", "vanilla,fairvpl"], "Unknown method 'fairvpl'. Did you mean 'fairvlp'"),
        (["compare", "--data", "lab-flat"], "Unknown world of the lab 'lab-flat'"),
        (["compare", "--model", "lab-triple"], "Unknown model of the lab"),
        (["compare", "--manifest", "{study}/manifest.csv"], "--groups and --counterfactuals belong to a study"),
        (["compare", "--counterfactuals", "{study}/counterfactuals"], "--counterfactuals belong to a study"),
        (["fairvlp", "--data", "{study}", "--counterfactuals", "{study}/counterfactuals"], "none of fairvlp uses them"),
        (["compare", "--groups", "female,male"], "belong to a study"),
        (["compare", "--tokenizer", "bert-base-uncased"], "belong to a study"),
        (["compare", "--data", "{study}", "--groups", "female,robot"], "between two groups of male, female"),
        (["compare", "--data", "{study}", "--methods", "image-swap"], "needs the counterfactual of every image"),
        (["compare", "--data", "{study}/none"], "none"),
        (["compare", "--model", "{bert}", "--data", "{study}"], "has no image encoder"),
        (["compare", "--model", "{other}", "--data", "lab-full"], "not have the lab's vocabulary and image size"),
        (["compare", "--model", "{other}"], "name the training data (--data STUDY)"),
        (["compare", "--weight", "1.5"], "from 0 to below 1, got 1.5"),
        (["compare", "--epsilon", "much"], "expected a number such as 0.03 or 8/255"),
        (["compare", "--learning-rate", "0"], "0.0 is not in the range"),
        (["fairvlp", "--manifest", "{study}/manifest.csv"], "--manifest belongs to `mitigate compare`"),
        (["dropout", "--dropout", "1"], "A dropout rate is from 0 to below 1, got 1"),
        (["fairvpl"], "Unknown method 'fairvpl'"),
    ],
)  # fmt: skip
def test_bad_usage_gives_an_error_message_and_exit_code_2(study, tmp_path, capsys, bad_arguments, message):
    from tests.models import tiny_masked

    paths = {"study": study, "bert": tmp_path / "bert", "other": tmp_path / "other"}
    if "{bert}" in bad_arguments:
        tiny_masked.save(tiny_masked.bert(), paths["bert"])
    if "{other}" in bad_arguments:
        from portrayal.models.masked_vlm.folder import save_model
        from portrayal.models.masked_vlm.vocabulary import WordTokenizer

        save_model(paths["other"], tiny_masked.dual(), WordTokenizer(tiny_masked.WORDS, 24))
    arguments = [argument.format(**paths) for argument in bad_arguments]
    assert mitigate(*arguments, "--out", tmp_path / "out") == 2
    stderr = " ".join(capsys.readouterr().err.split())
    assert message in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_left_alone(study, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    assert mitigate("compare", "--quick", "--out", tmp_path / "mine") == 2
    assert "choose a new folder" in capsys.readouterr().err
    arguments = ["--model", "lab-dual", "--data", study, "--steps", 1, "--batch-size", 4]
    assert mitigate("vanilla", *arguments, "--out", tmp_path / "mine") == 2
    assert "choose a new folder" in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_every_method_is_a_command_with_help(capsys):
    from portrayal.mitigate.methods import METHODS

    assert mitigate("--help") == 0
    stdout = capsys.readouterr().out
    for name in (*METHODS, "compare", "captions"):
        assert f"  {name} " in stdout
    for name in METHODS:
        assert mitigate(name, "--help") == 0
        assert "--steps" in capsys.readouterr().out
