"""LIC with neural classifiers: what they share with the linear one, and what differs."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import portrayal
from portrayal.errors import PortrayalError
from portrayal.lab import make_study
from portrayal.metrics import METRICS, lic
from portrayal.metrics.shared.classifier.corpus import Corpus
from portrayal.metrics.shared.classifier.cross_validation import _calibrated_by_seed
from portrayal.metrics.shared.classifier.linear_classifier import Predictions
from portrayal.metrics.shared.classifier.neural import UNKNOWN_PIECES, NeuralClassifier, Trainer
from portrayal.metrics.shared.classifier.splits import Split
from portrayal.models.text_classifiers.configs import EncoderConfig, LstmConfig
from portrayal.models.text_classifiers.tasks import MASKED, TaskPredictions
from portrayal.models.text_classifiers.training_queue import PLAN, read_plan, run_plan
from portrayal.study import Study
from tests.metrics.test_lic import row, study_of, value

pytestmark = pytest.mark.training

pytest.importorskip("torch", reason="the extra 'neural' is not installed")

FAST = {
    "classifier": "lstm",
    "epochs": 3,
    "learning_rate": 2e-3,
    "seeds": (0, 12),
    "precision": "float32",
    "bootstrap": 100,
    "references": 2,
}


@pytest.fixture(scope="module")
def lab() -> Study:
    return make_study(200, 3).select_systems(["faithful"])


@pytest.fixture(scope="module")
def trained(lab, tmp_path_factory):
    cache_dir = str(tmp_path_factory.mktemp("cache"))
    return lic(lab, attribute="gender", split="paper", explain=8, cache_dir=cache_dir, **FAST), cache_dir


def informative_study(study_size: int = 120) -> Study:
    """A study whose captions reveal the group."""
    verbs = ["knits", "skis"]
    captions = [f"a person {verbs[n % 2]} number {n % 7}" for n in range(study_size)]
    return study_of(captions, [("female", "male")[n % 2] for n in range(study_size)])


def test_an_informative_word_is_learned_and_explained():
    results = lic(
        informative_study(), attribute="gender", split="paper", explain=20, **{**FAST, "epochs": 10}
    )
    assert value(results, "accuracy") == 100
    assert value(results, "lic_m") > 60
    for group, verb in (("female", "knits"), ("male", "skis")):
        words = {m.item: m for m in results.measurements if m.term == "word" and m.group == group}
        assert max(words, key=lambda word: words[word].value) == verb
        assert row(results, "attribution", group=group).value > 0.5
    group_attributions = [row(results, "attribution", group=group).value for group in ("female", "male")]
    assert value(results, "attribution") == pytest.approx(sum(group_attributions))


def test_rows_are_those_of_the_linear_classifier(lab, trained):
    linear = lic(
        lab, attribute="gender", split="paper", permutations=0, seeds=(0, 12), bootstrap=100, references=2
    )

    def terms(results):
        return {(m.term, m.group) for m in results.measurements if m.term not in ("word", "attribution")}

    assert terms(trained[0]) == terms(linear)
    assert row(trained[0], "lic_m").settings["classifier"] == "lstm"
    assert row(trained[0], "lic_m").settings["C"] is None
    assert row(trained[0], "lic_m").settings["learning_rate"] == 2e-3
    assert row(trained[0], "lic_m").low < value(trained[0], "lic_m") < row(trained[0], "lic_m").high


def test_cached_tasks_are_not_trained_again(lab, trained, monkeypatch):
    results, cache_dir = trained
    monkeypatch.setattr(LstmConfig, "train", lambda *_: pytest.fail("was trained again"))
    cached_results = lic(
        lab, attribute="gender", split="paper", explain=8, cache_dir=cache_dir, device="deferred", **FAST
    )
    for measurement, cached in zip(results.measurements, cached_results.measurements, strict=True):
        assert (measurement.id, measurement.value) == (cached.id, pytest.approx(cached.value, abs=1e-4))


def test_unseen_captions_use_the_same_cached_tasks(lab, trained, monkeypatch):
    _, cache_dir = trained
    monkeypatch.setattr(LstmConfig, "train", lambda *_: pytest.fail("was trained again"))
    options = {"attribute": "gender", "explain": 8, "cache_dir": cache_dir, "device": "deferred", **FAST}
    unseen = lic(lab, split="paper-unseen", **options)
    both = lic(lab, split="paper", **options)
    assert value(unseen, "lic_m") == pytest.approx(value(both, "unseen", item="masked"), abs=1e-6)


def test_training_can_be_deferred(lab, tmp_path):
    options = {"attribute": "gender", "split": "paper", "cache_dir": str(tmp_path), **{**FAST, "seeds": (0,)}}
    with pytest.raises(
        PortrayalError, match=r"3 training tasks are pending in .*plan.npz.*python -m portrayal.models"
    ):
        lic(lab, device="deferred", **options)
    assert list(run_plan(tmp_path, "cpu"))[-1] == (3, 3)
    deferred = lic(lab, device="deferred", **options)
    immediate = lic(lab, **{**options, "cache_dir": None})
    assert value(deferred, "lic") == pytest.approx(value(immediate, "lic"), abs=1e-4)
    with pytest.raises(PortrayalError, match="the option cache_dir"):
        lic(lab, device="deferred", **{**options, "cache_dir": None})


def test_one_seed_cannot_be_calibrated(lab):
    results = lic(lab, attribute="gender", split="paper", **{**FAST, "seeds": (0,)})
    assert value(results, "lic_m_calibrated") is None
    assert "other seeds" in row(results, "lic_m_calibrated").reason


def test_calibration_uses_the_other_seeds_only():
    """The second seed is confident and always wrong, so the first is calibrated to no confidence; not by
    itself.
    """
    texts = corpus("a b", "c d", "e f", "g h")

    def seed(confidence: float) -> list[Predictions]:
        proba = np.where(texts.group[:, None] == np.arange(2), confidence, 1 - confidence)
        return [Predictions(texts, np.arange(4), np.zeros(4, dtype=np.int64), proba, 1)]

    ((first, _),), ((second, _),) = _calibrated_by_seed([seed(0.9), seed(0.1)])
    assert first == pytest.approx(0.5, abs=1e-6)
    true_proba = second[np.arange(4), texts.group]
    assert (true_proba < 1e-6).all()  # the first seed is never wrong, so the second may be fully confident


def test_folds_and_chance(lab):
    quick = {**FAST, "epochs": 1, "seeds": (0,)}
    results = lic(lab, attribute="gender", folds=3, permutations=2, **quick)
    assert row(results, "lic_m").n == 200
    assert 15 < value(results, "null_m") < 40
    assert value(results, "lic_m_calibrated") is not None  # calibrated on the other folds
    assert value(lic(lab, attribute="gender", folds=3, **quick), "lic_m") == value(results, "lic_m")


def test_evidence_has_word_attributions(trained):
    results, _ = trained
    rows = results.evidence_of(row(results, "lic_m"))
    detail = json.loads(rows["detail"][0])
    total = sum(attribution for _, attribution in detail["parts"])
    assert detail["total"] == pytest.approx(total, abs=0.01)
    assert np.linalg.norm([attribution for _, attribution in detail["parts"]]) == pytest.approx(1, abs=0.01)


def test_without_explanation_there_are_no_words(lab):
    results = lic(lab, attribute="gender", split="paper", **{**FAST, "epochs": 1, "seeds": (0,)})
    assert not {"word", "attribution"} & {m.term for m in results.measurements}
    detail = json.loads(results.evidence_of(row(results, "lic_m"))["detail"][0])
    assert "genderword" in detail["read"]
    assert "parts" not in detail


def test_three_groups_and_weights():
    captions = [f"a person {('knits', 'skis', 'cooks')[n % 3]} {n % 5}" for n in range(150)]
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": range(150), "system": ["s"] * 150, "caption": captions}),
        attributes=pl.DataFrame(
            {"image_id": range(150), "team": [("a", "b", "c")[n % 3] for n in range(150)]}
        ),
    )
    results = lic(study, attribute="team", mask=False, folds=3, **{**FAST, "epochs": 10, "seeds": (0,)})
    assert value(results, "accuracy") > 90


def corpus(*captions: str) -> Corpus:
    tokens = tuple(tuple(caption.split()) for caption in captions)
    return Corpus(tuple(map(str, range(len(tokens)))), np.arange(len(tokens)) % 2, captions, tokens)


def test_an_unknown_word_can_be_tokenized_as_published():
    plain, pieces = (Trainer(LstmConfig(), 0, "cpu", None, in_pieces) for in_pieces in (False, True))
    words = ("a", "<unk>", "dog", "<unk>")
    assert plain.tokens(words) == words
    assert pieces.tokens(words) == ("a", *UNKNOWN_PIECES, "dog", *UNKNOWN_PIECES)
    assert pieces.merge_pieces(words, np.arange(8.0)).tolist() == [0, 1 + 2 + 3, 4, 5 + 6 + 7]
    assert plain.tokens(()) == ("<unk>",)
    assert plain.merge_pieces((), np.ones(1)).tolist() == []


def test_an_encoder_has_its_own_token_for_hidden_words():
    split = Split(np.array([0, 1]), np.array([2]))
    texts = corpus("a genderword runs", "genderword sits", "a dog")
    for classifier, expected in ((EncoderConfig(), MASKED), (LstmConfig(), "genderword")):
        task = Trainer(classifier, 0, "cpu", None).task(
            texts, frozenset(["genderword"]), texts.group, 2, split, True, 0
        )
        assert expected in task.texts.words
    assert task.group_weights.tolist() == [1, 1]


def test_several_captions_of_an_image_are_explained():
    captions = [f"a person {('knits', 'skis')[n % 2]} w{k}{n}" for n in range(60) for k in range(3)]
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": [n for n in range(60) for _ in range(3)], "system": ["s"] * 180,
                               "sample": [0, 1, 2] * 60, "caption": captions}),
        attributes=pl.DataFrame({"image_id": range(60), "gender": ["female", "male"] * 30}),
    )  # fmt: skip
    results = lic(study, attribute="gender", folds=3, explain=4, **FAST)
    assert {"knits", "skis"} <= {m.item for m in results.measurements if m.term == "word"}


def train_nothing(task, seeds):
    seeds.append(task.seed)
    return TaskPredictions(np.full((len(task.test_indices), task.n_groups), 1 / task.n_groups))


def test_each_permutation_starts_from_other_weights(lab, monkeypatch):
    seeds = []
    train_method = "portrayal.metrics.shared.classifier.neural.Trainer._train_on_cpu"
    monkeypatch.setattr(
        train_method, lambda _, tasks: ((n, train_nothing(task, seeds)) for n, task in enumerate(tasks))
    )
    lic(lab, attribute="gender", split="paper", permutations=4, **FAST)
    permutation_seeds = [seed for seed in seeds if seed % 1_000_003 not in (0, 12)]
    # seeds, permutations, system and humans, which start from the same weights
    assert len(permutation_seeds) == 2 * 4 * 2
    assert len(set(permutation_seeds)) == 2 * 4


def test_a_permutation_without_a_group_in_training_is_nan(monkeypatch):
    train_method = "portrayal.metrics.shared.classifier.neural.Trainer._train_on_cpu"
    monkeypatch.setattr(
        train_method, lambda _, tasks: ((n, train_nothing(task, [])) for n, task in enumerate(tasks))
    )
    texts = corpus("a b", "c d", "e f", "g h")
    classifier = NeuralClassifier(2, True, frozenset(), Trainer(LstmConfig(), 0, "cpu", None))
    split = Split(np.array([0, 1]), np.array([2, 3]))
    permuted = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]
    scores = classifier.permutation_scores(texts, lambda number: (permuted[number], [split]), 2)
    assert np.isnan(scores[0]).all()
    assert scores[1].tolist() == [0.5, 0.0]  # a half for each, of which the first is predicted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"explain": 5}, "'explain' is for neural classifiers"),
        ({"epochs": 5}, "'epochs' is for neural classifiers"),
        ({"classifier": "bert-ft", "unknown": "pieces"}, "for the classifier 'lstm' only"),
        ({"classifier": "lstm", "cache_dir": __file__}, "is a file"),
    ],
)
def test_options_that_would_do_nothing_are_refused(lab, options, message):
    with pytest.raises(PortrayalError, match=message):
        lic(lab, attribute="gender", **options)


def test_the_command_takes_the_neural_options(command, tmp_path):
    study, cache_dir = str(tmp_path / "study"), tmp_path / "kept"
    assert command("lab", "make", "--scenes", "120", "--out", study)[0] == 0
    code, stdout, stderr = command(
        *("score", "lic", study, "--attribute", "gender", "--systems", "faithful", "--split", "paper"),
        *("--classifier", "lstm", "--epochs", "1", "--seeds", "0,12", "--explain", "4", "--format", "csv"),
        *("--cache-dir", str(cache_dir), "--device", "cpu", "--references", "1"),
    )
    assert code == 0, stderr
    assert "attribution" in stdout
    assert len(list(cache_dir.iterdir())) == 4
    options = (
        "--attribute",
        "gender",
        "--systems",
        "faithful",
        "--split",
        "paper",
        "--classifier",
        "bert-ft",
    )
    code, stdout, stderr = command(
        "score", "lic", study, *options, "--encoder", str(tmp_path), "--device", "cpu"
    )
    assert code == 2
    assert "could not be loaded" in stderr
    assert "Traceback" not in stderr


def test_the_default_encoder_is_as_published():
    options = METRICS["lic"].options
    assert options["encoder"].default == "bert-base-uncased"


def test_the_published_training_tasks_of_the_real_data(lic_gender, tmp_path):
    """Tasks of a captioner and a seed: all its captions, its captions of paired images, and five of references."""
    study = portrayal.read_study(lic_gender).select_systems(["nic-th10"])
    with pytest.raises(PortrayalError, match=r"^7 training tasks are pending"):
        lic(study, attribute="gender", split="paper", classifier="lstm", seeds=(0,), device="deferred",
            cache_dir=str(tmp_path))  # fmt: skip
    tasks, classifier, explain = read_plan(tmp_path / PLAN)
    assert (classifier, explain) == (LstmConfig(), 0)
    sizes = sorted((len(task.train_indices), len(task.test_indices)) for task in tasks)
    assert sizes == [(4690, 520)] * 6 + [(5966, 662)]
    assert all(task.group_weights.tolist() == [1, 1] for task in tasks)
    assert (
        len({task.seed for task in tasks if len(task.train_indices) == 4690}) == 5
    )  # positions have different seeds, the first has 0
    system_task = next(task for task in tasks if len(task.train_indices) == 5966)
    known_codes = system_task.known_codes(25_000)
    assert np.bincount(system_task.group_index[system_task.train_indices]).tolist() == [2983, 2983]
    assert "genderword" in system_task.texts.words
    assert "man" not in system_task.texts.words
    assert 700 < len(set(known_codes.tolist())) - 2 < len(system_task.texts.words)
