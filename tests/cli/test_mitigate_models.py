"""`portrayal mitigate compare` and `portrayal mitigate METHOD`, as a newcomer would run them."""

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
METHODS = ("vanilla", "gender-swap", "fairvlp", "image-swap")


def mitigate(*arguments: object) -> int:
    return run(["mitigate", *map(str, arguments)])


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("mitigate") / "out"
    assert mitigate("compare", "--quick", "--out", out) == 0
    return out


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("mitigate-study") / "lab"
    arguments = "lab make --images --counterfactuals --size 64 --scenes 60 --several 0 --androgynous 0"
    assert run([*arguments.split(), "--out", str(out)]) == 0
    return out


def rows(out, **wanted):
    return [
        m
        for m in Results.load(out).measurements
        if all(
            getattr(m, name, None) == value or m.settings.get(name) == value for name, value in wanted.items()
        )
    ]


def test_the_one_command(compared):
    assert {path.name for path in compared.iterdir()} >= {"index.html", "results.json", "models", "scores"}
    for attack in ("pgd", "exact"):
        for kind in ("activity", "occupation"):
            for method in METHODS:
                for term in ("b@v-l", "b@v", "b@l"):
                    here = {"metric": "counterbias", "system": method, "attack": attack, "kind": kind}
                    (size,) = rows(compared, term=term, **here)
                    (excess,) = rows(compared, term="excess", of=term, **here)
                    assert size.unit == excess.unit == "percent"
                    assert size.value is None or excess.value < size.value
            drops = rows(compared, metric="mitigation", term="drop", attack=attack, kind=kind, of="b@v-l")
            left = {
                m.system: m.value
                for m in rows(compared, term="excess", attack=attack, kind=kind, of="b@v-l")
            }  # fmt: skip
            assert tuple(drop.system for drop in drops) == METHODS[1:]
            for drop in drops:
                assert drop.value == pytest.approx(left["vanilla"] - left[drop.system])
    for fitted in ("zero-shot", "fine-tuned"):
        for term in ("tr@1", "tr@5", "tr@10", "ir@1", "ir@5", "ir@10"):
            found = {
                m.system: m.value for m in rows(compared, metric="retrieval-recall", term=term, fitted=fitted)
            }
            assert set(found) == set(METHODS)
            assert all(0 <= value <= 1 for value in found.values())
    for texts in ("biased", "balanced"):
        right = {m.system: m.value for m in rows(compared, term="words-right", texts=texts)}
        changes = rows(compared, term="change", of="words-right", texts=texts)
        assert tuple(change.system for change in changes) == METHODS[1:]
        for change in changes:
            assert change.value == pytest.approx(right[change.system] - right["vanilla"])
        assert right["vanilla"] > 0.5  # a model of the lab that was not spoilt
    (seen,) = rows(compared, term="group-right", system="fairvlp")
    assert seen.value > 0.8
    provenance = json.loads((compared / "results.json").read_text())["provenance"]
    assert provenance["methods"]["fairvlp"]["weight"] == 0.5
    assert tuple(provenance["methods"]) == METHODS
    page = (compared / "index.html").read_text()
    assert "bias removed, against vanilla" in page


def test_even_a_quick_comparison_shows_which_method_works(compared):
    """Two seeds and 132 images separate methods that use images from the one that does not."""
    for attack in ("pgd", "exact"):
        wanted = {"metric": "mitigation", "term": "drop", "attack": attack, "kind": "activity", "of": "b@v-l"}
        swapped, fairer, ceiling = (rows(compared, system=method, **wanted)[0] for method in METHODS[1:])
        assert fairer.low > 0
        assert ceiling.low > 0
        assert swapped.value < min(fairer.low, ceiling.low)


def test_what_is_done_is_not_done_again(compared, capsys):
    kept = {path: path.stat().st_mtime_ns for path in compared.glob("[ms]*/**/*") if path.is_file()}
    assert len([path for path in kept if path.name == "model.safetensors"]) == 8
    assert len([path for path in kept if path.suffix == ".npz"]) == 8
    before = Results.load(compared).measurements
    (compared / "results.json").unlink()  # killed before the end, say
    assert mitigate("compare", "--quick", "--out", compared) == 0
    assert {path: path.stat().st_mtime_ns for path in compared.glob("[ms]*/**/*") if path.is_file()} == kept
    assert Results.load(compared).measurements == before
    stdout = capsys.readouterr().out
    assert "Remaining bias, activity: excess over the noise floor, in percent" in stdout
    assert "Costs" in stdout


def test_a_folder_of_other_settings_is_refused(compared, capsys):
    assert mitigate("compare", "--quick", "--weight", 0.3, "--out", compared) == 2
    assert "holds a model of other settings or data" in " ".join(capsys.readouterr().err.split())


def test_a_method_alone_writes_a_model_that_opens(study, tmp_path, capsys):
    from portrayal.models.masked_vlm import load_masked

    arguments = ["--model", "lab-dual", "--data", study, "--steps", 2, "--batch-size", 4, "--device", "cpu"]
    out = tmp_path / "remedied"
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
    found = model.word_log_probs(model.gray_images(1), "a [MASK] is in the picture", ["woman", "man"])
    assert found.isfinite().all()
    before = (out / "model.safetensors").stat().st_mtime_ns
    assert mitigate("fairvlp-l", *arguments, "--weight", 0.25, "--seed", 3, "--out", out) == 0
    assert (out / "model.safetensors").stat().st_mtime_ns == before
    assert mitigate("fairvlp-l", *arguments, "--weight", 0.5, "--seed", 3, "--out", out) == 2
    # And it can be remedied in turn.
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
    assert "remedied" in json.loads((tmp_path / "2" / "card.json").read_text())["start"]


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


def test_a_study_of_ones_own_is_compared(study, tmp_path):
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
    ("wrong", "says"),
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
def test_bad_usage_is_a_sentence_and_2(study, tmp_path, capsys, wrong, says):
    from tests.models import tiny_masked

    names = {"study": study, "bert": tmp_path / "bert", "other": tmp_path / "other"}
    if "{bert}" in wrong:
        tiny_masked.save(tiny_masked.bert(), names["bert"])
    if "{other}" in wrong:
        from portrayal.models.masked_vlm.folder import save_model
        from portrayal.models.masked_vlm.vocabulary import WordTokenizer

        save_model(names["other"], tiny_masked.dual(), WordTokenizer(tiny_masked.WORDS, 24))
    arguments = [part.format(**names) for part in wrong]
    assert mitigate(*arguments, "--out", tmp_path / "out") == 2
    stdout = " ".join(capsys.readouterr().err.split())
    assert says in stdout
    assert "Traceback" not in stdout
    assert not (tmp_path / "out").exists()


def test_a_folder_of_others_is_left_alone(study, tmp_path, capsys):
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
