"""Recall of retrieval: by hand, against brute force over every order of ties, and of a model of the lab."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import portrayal
from portrayal.errors import InputError, PortrayalError, Undefined
from portrayal.lab.folder import LabRecipe, write_lab
from portrayal.metrics.retrieval.recall.search import SearchedStudy
from portrayal.models.masked_vlm.retrieval.recall import (
    RankPositions,
    chance_hit_probability,
    hit_probability,
    rank_positions,
    rerank_order,
    top_k,
)
from portrayal.models.masked_vlm.retrieval.search import truncate_caption
from portrayal.results import Results
from portrayal.study import Study, write_study

TERMS = ["tr@1", "tr@5", "tr@10", "ir@1", "ir@5", "ir@10"]


def recalls(scores, rows, columns, k):
    return hit_probability(
        rank_positions(np.array(scores, dtype=float), np.array(rows), np.array(columns)), k
    ).tolist()


# The formulas.


def test_recall_by_hand():
    # Two images, two captions each: the first image's own captions start at rank 2, the other's at rank 1.
    scores = [[0.3, 0.6, 0.9, 0.1], [0.2, 0.2, 0.1, 0.8]]
    assert recalls(scores, [0, 1], [0, 0, 1, 1], 1) == [0, 1]
    assert recalls(scores, [0, 1], [0, 0, 1, 1], 2) == [1, 1]
    # The same scores, searched by captions: 0.3 > 0.2, 0.6 > 0.2, 0.9 > 0.1 (another's), 0.8 > 0.1.
    assert recalls(np.array(scores).T, [0, 0, 1, 1], [0, 1], 1) == [1, 1, 0, 1]


def test_ties_by_hand():
    own_twice = (
        [[5, 4, 4, 4, 1]],
        [0],
        [9, 0, 0, 9, 9],
    )  # two of the three columns tied at rank 2 are relevant
    assert recalls(*own_twice, 1) == [0]
    assert recalls(*own_twice, 2) == pytest.approx([2 / 3])
    assert recalls(*own_twice, 3) == [1]  # two of the three tied columns are within the first three
    single_of_four = [[1, 1, 1, 1]], [0], [9, 0, 9, 9]
    assert [recalls(*single_of_four, k)[0] for k in (1, 2, 3, 4, 9)] == pytest.approx([0.25, 0.5, 0.75, 1, 1])
    best_counts = [[3, 3, 2, 2]], [0], [9, 0, 0, 0]  # relevant columns further down do not count
    assert recalls(*best_counts, 1) == [0.5]


def test_a_row_without_a_relevant_column_and_nan_scores_are_refused():
    with pytest.raises(ValueError, match="a relevant column"):
        rank_positions(np.zeros((1, 2)), np.array([3]), np.array([1, 2]))
    with pytest.raises(ValueError, match="numbers"):
        rank_positions(np.array([[np.nan, 1.0]]), np.array([1]), np.array([1, 2]))


@st.composite
def searches(draw, most=6):
    """Scores of few different values, so that many are tied; the first columns give each row a relevant one."""
    rows = draw(st.integers(1, 4))
    columns = [*range(rows), *draw(st.lists(st.integers(0, rows), max_size=most - min(rows, most)))]
    scores = draw(st.lists(
        st.lists(st.sampled_from([-1.0, 0.0, 0.5]), min_size=len(columns), max_size=len(columns)),
        min_size=rows, max_size=rows))  # fmt: skip
    return np.array(scores), np.arange(rows), np.array(columns)


def hit_rate_over_orders(scores, row, columns, k):
    """Share of all column orders in which a relevant column is among the first k."""
    orders = list(permutations(range(len(columns))))
    hits = 0
    for order in orders:
        best = sorted(order, key=lambda column: -scores[column])[:k]  # stable: ties keep their order
        hits += any(columns[column] == row for column in best)
    return hits / len(orders)


@given(searches(), st.integers(1, 7))
@settings(max_examples=60)
def test_expected_hits_are_the_mean_over_every_order_of_ties(search, k):
    scores, rows, columns = search
    expected = [hit_rate_over_orders(scores[row], row, columns, k) for row in rows]
    assert recalls(scores, rows, columns, k) == pytest.approx(expected)


@given(searches(12), st.randoms(use_true_random=False))
def test_the_order_of_columns_and_rows_changes_nothing(search, random):
    scores, rows, columns = search
    column_order = list(range(len(columns)))
    random.shuffle(column_order)
    row_order = list(rows)
    random.shuffle(row_order)
    for k in (1, 2, 5):
        before = np.array(recalls(scores, rows, columns, k))
        after = recalls(scores[row_order][:, column_order], rows[row_order], columns[column_order], k)
        assert after == pytest.approx(before[row_order].tolist())


@given(searches(12))
def test_recall_rises_with_k_and_reaches_1(search):
    scores, rows, columns = search
    recall_by_k = [np.array(recalls(scores, rows, columns, k)) for k in range(len(columns) + 2)]
    assert (np.diff(recall_by_k, axis=0) >= -1e-12).all()
    assert recall_by_k[0].tolist() == [0] * len(rows)
    assert recall_by_k[-1].tolist() == [1] * len(rows)


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 12))
def test_equal_scores_are_chance(n_images, captions_per_image, k):
    image_of_caption = np.repeat(np.arange(n_images), captions_per_image)
    equal_scores = np.zeros((n_images, len(image_of_caption)))
    image_recalls = np.array(recalls(equal_scores, np.arange(n_images), image_of_caption, k))
    assert image_recalls == pytest.approx(
        chance_hit_probability(np.full(n_images, captions_per_image), len(image_of_caption), k)
    )
    if captions_per_image == 1:
        assert image_recalls == pytest.approx(min(1, k / n_images))
    caption_recalls = recalls(equal_scores.T, image_of_caption, np.arange(n_images), k)
    assert caption_recalls == pytest.approx([min(1, k / n_images)] * len(image_of_caption))


def test_chance_by_hand():
    # 2 of 6 captions are relevant; neither is among the first two in (4 x 3) / (6 x 5) of all orders.
    assert chance_hit_probability(np.array([2]), 6, 2).tolist() == pytest.approx([1 - 12 / 30])
    assert chance_hit_probability(np.array([5]), 5, 1).tolist() == [1]


def test_concatenated_rank_positions_are_those_of_the_whole():
    scores = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    whole = rank_positions(scores, np.arange(2), np.array([0, 1, 0]))
    single_rows = [rank_positions(scores[[row]], np.array([row]), np.array([0, 1, 0])) for row in range(2)]
    for name in ("n_above", "n_tied", "n_tied_relevant", "first_relevant", "rank"):
        assert getattr(RankPositions.concat(single_rows), name).tolist() == getattr(whole, name).tolist()
    assert whole.first_relevant.tolist() == [0, 1]


@given(searches(10), st.integers(0, 8))
def test_top_k_includes_scores_tied_with_the_last(search, k):
    scores, _, columns = search
    for row, selected in zip(scores, top_k(scores, k), strict=True):
        ranked = sorted(row, reverse=True)[:k]
        assert selected.tolist() == [bool(ranked) and score >= ranked[-1] for score in row]
    weights = np.arange(1, len(columns) + 1)
    repeated = np.repeat(np.arange(len(columns)), weights)
    repeated_selected = top_k(scores[:, repeated], k)
    assert (top_k(scores, k, weights)[:, repeated] == repeated_selected).all()


@given(searches(10), st.data())
def test_rerank_order_puts_the_selected_first_and_keeps_ties(search, data):
    scores, _, columns = search
    width = len(columns)
    second_scores = np.array(
        data.draw(st.lists(st.sampled_from([-9.0, 1.0]), min_size=width, max_size=width))
    )
    selected = np.array(data.draw(st.lists(st.booleans(), min_size=width, max_size=width)))
    order = rerank_order(scores[:1], second_scores[None], selected[None])[0]
    key = [
        (bool(is_selected), second_score if is_selected else first_score)
        for first_score, second_score, is_selected in zip(scores[0], second_scores, selected, strict=True)
    ]
    for a in range(width):
        for b in range(width):
            assert (order[a] > order[b]) == (key[a] > key[b])
            assert (order[a] == order[b]) == (key[a] == key[b])


def test_columns_that_are_not_selected_need_no_second_score():
    order = rerank_order(np.array([[0.2, 0.9]]), np.array([[-1.0, np.nan]]), np.array([[True, False]]))
    assert order[0, 0] > order[0, 1]


# Captions and images of a study.


class WordTokenizer:
    """A tokenizer of whole words with a special token at each end."""

    max_length = 6

    def encode(self, text):
        return ["first", *text.split(), "last"]


def test_captions_lose_special_tokens_and_are_truncated():
    assert truncate_caption("a [MASK] man <pad> [SEP] ", WordTokenizer()) == ("a MASK man pad", True)
    assert truncate_caption("a man", WordTokenizer()) == ("a man", False)
    assert truncate_caption("word " * 100_000, WordTokenizer()) == ("word word word word", True)

    class PieceTokenizer(WordTokenizer):
        def encode(self, text):
            return ["first", *(piece for word in text.split() for piece in word.split("-")), "last"]

    assert truncate_caption("one t-shirt a-b", PieceTokenizer()) == ("one t-shirt", True)
    assert truncate_caption("-".join("abcdefgh"), PieceTokenizer()) == ("", True)


def study_with_images(folder: Path, captions_by_image: dict[str, list[str]], **labels: str) -> Study:
    """A study of images in one colour; the red value is the image's number."""
    folder.mkdir(exist_ok=True)
    for number, image in enumerate(captions_by_image):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(folder / f"{image}.png")
    rows = [(image, caption) for image, captions in captions_by_image.items() for caption in captions]
    references = pl.DataFrame(rows, schema=["image_id", "caption"], orient="row")
    attributes = pl.DataFrame({"image_id": list(labels), "gender": list(labels.values())}) if labels else None
    return Study.from_frames(references=references, attributes=attributes, images=folder)


def test_the_sample_of_images_depends_on_their_names_only(tmp_path):
    captions_by_image = {f"p{number}": ["one", "two", "three"] for number in range(20)}
    study = study_with_images(tmp_path, captions_by_image)
    sample = SearchedStudy.of(study, 2, 5, skip_bad=False)
    assert len(sample.images) == 5
    assert sample.images == tuple(sorted(sample.images))
    assert sample.captions == ("one", "two") * 5
    assert sample.owner.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    reversed_study = replace(
        study, references=study.references.sort("image_id", descending=True, maintain_order=True)
    )
    assert SearchedStudy.of(reversed_study, 2, 5, skip_bad=False).images == sample.images
    assert set(SearchedStudy.of(study, 2, 4, skip_bad=False).images) < set(sample.images)
    everything = SearchedStudy.of(study, 0, 0, skip_bad=False)
    assert (len(everything.images), len(everything.captions)) == (20, 60)


def test_unreadable_images_are_reported_together_or_counted(tmp_path):
    study = study_with_images(tmp_path, {"a": ["x"], "b": ["y"], "c": ["z"], "d": ["w"]})
    for image in "bc":
        (tmp_path / f"{image}.png").write_bytes(b"not a picture")
    (tmp_path / "d.png").unlink()
    study = replace(study)  # the list of image files is cached
    with pytest.raises(InputError) as raised:
        SearchedStudy.of(study, 5, 0, skip_bad=False)
    assert [Path(problem.file).name for problem in raised.value.problems] == ["b.png", "c.png"]
    pool = SearchedStudy.of(study, 5, 0, skip_bad=True)
    assert (pool.images, pool.unreadable, pool.without_file) == (("a",), 2, 1)
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(Undefined, match="can be read"):
        SearchedStudy.of(study, 5, 0, skip_bad=True)
    with pytest.raises(Undefined, match="No image of the study has both a file and a human caption"):
        SearchedStudy.of(
            replace(study, references=study.references.filter(pl.col("image_id") == "d")), 5, 0, False
        )


def test_without_a_model_images_or_captions_the_error_names_what_is_missing(tmp_path):
    study = study_with_images(tmp_path, {"a": ["x"]})
    metric = portrayal.metrics.retrieval_recall
    with pytest.raises(Undefined, match="none is named"):
        metric(study)
    with pytest.raises(Undefined, match="no images"):
        metric(replace(study, images=None), model="lab-dual")
    with pytest.raises(Undefined, match="no human captions"):
        metric(Study(images=tmp_path), model="lab-dual")
    audited = portrayal.audit(study, metrics=["retrieval-recall"])
    (skip,) = audited.provenance["skipped"]
    assert "--model NAME" in skip["reason"]


# Models.


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="the extra 'neural' is not installed")


class TableModel:
    """A model whose scores come from tables (images, texts); each text is its column number."""

    def __init__(self, torch, match=None, similarity=None, name="table"):
        from portrayal.models.masked_vlm.network import DualEncoder

        methods = {name: lambda *_: None for name in DualEncoder.__abstractmethods__}
        network_class = type("Network", (DualEncoder,) if similarity is not None else (), methods)
        self.network = network_class()
        self.network.image_size, self.network.has_match_head = 4, match is not None
        self.name, self.device, self.batch_size, self.tokenizer = name, "cpu", 3, WordTokenizer()
        self._match, self._similarity = (
            None if table is None else torch.tensor(table, dtype=torch.float32)
            for table in (match, similarity)
        )
        self._torch, self.n_matched = torch, 0

    def preprocess(self, images):
        return self._torch.tensor([image.getpixel((0, 0))[0] for image in images])

    def encode_images(self, images):
        return images

    def match_logits(self, images, texts):
        self.n_matched += len(texts)
        logits = self._match[images, [int(text) for text in texts]]
        return self._torch.stack([-logits, logits], dim=1)

    def image_features(self, images):
        return self._similarity[images]

    def text_features(self, texts):
        return self._torch.eye(self._similarity.shape[1])[[int(text) for text in texts]]


CAPTIONS = {"a": ["0", "1"], "b": ["2", "3"], "c": ["4", "5"]}
#       0     1     2     3     4     5
SIMILARITY = [
    [0.50, 0.40, 0.90, 0.10, 0.10, 0.10],  # a: caption 2 of b first, then its own 0
    [0.10, 0.20, 0.30, 0.30, 0.20, 0.10],  # b: its own first, both
    [0.90, 0.80, 0.70, 0.60, 0.50, 0.40],  # c: its own are the last two
]
MATCH = [
    [-0.1, -9.0, -0.5, -0.2, -0.2, -0.2],  # a: its own first
    [-0.1, -0.1, -0.3, -0.2, -0.2, -0.2],  # b: 0 and 1 are before its own 3, which is tied with 4 and 5
    [-1.0, -2.0, -3.0, -4.0, -0.5, -0.6],  # c: its own first
]


def measured(study, model, **options) -> dict[tuple[str, str | None], float | None]:
    results = portrayal.metrics.retrieval_recall(
        study, attribute="gender", model=model, bootstrap=20, **options
    )
    return {(m.term, m.group): m.value for m in results.measurements}


def test_by_hand_with_similarity_matching_and_both(torch, tmp_path):
    study = study_with_images(tmp_path, CAPTIONS, a="female", b="male", c="female")
    by_similarity = measured(study, TableModel(torch, similarity=SIMILARITY))
    assert by_similarity["tr@1", None] == pytest.approx(1 / 3)  # b alone
    assert by_similarity["tr@5", None] == 1  # c's own 4 is fifth
    # Columns of 0 to 5: c, c, a, c, c, c are first.
    assert by_similarity["ir@1", None] == pytest.approx(2 / 6)
    assert by_similarity["ir@1", "female"] == pytest.approx(2 / 4)
    assert by_similarity["ir@1", "male"] == 0
    assert by_similarity["ir@5", None] == 1  # there are three
    by_matching = measured(study, TableModel(torch, match=MATCH))
    assert by_matching["tr@1", None] == pytest.approx(2 / 3)
    assert by_matching["tr@5", None] == 1
    # 0: a and b tied; 1: b; 2: b; 3: a and b tied; 4: a and b; 5: a and b (c is -0.5, -0.6).
    assert by_matching["ir@1", None] == pytest.approx((0.5 + 0 + 1 + 0.5 + 0 + 0) / 6)
    # The first of each search by similarity is matched: 2 for a; 2 and 3, which are tied, for b; 0 for c.
    rerank_1 = measured(study, TableModel(torch, MATCH, SIMILARITY), rerank=1)
    assert {key: rerank_1[key] for key in rerank_1 if key[0] == "tr@1"} == {
        key: by_similarity[key] for key in by_similarity if key[0] == "tr@1"
    }
    # With three, a is matched with 2, 0, 1: 0 is first. b with 2, 3, and 1 and 4, which are tied: 1 is first,
    # then 3 or 4. c with 0, 1, 2: its own captions are behind.
    rerank_3 = measured(study, TableModel(torch, MATCH, SIMILARITY), rerank=3)
    assert rerank_3["tr@1", None] == pytest.approx(1 / 3)
    assert rerank_3["tr@1", "female"] == pytest.approx(1 / 2)
    assert rerank_3["tr@5", None] == 1
    # All three images are matched: as by matching alone.
    assert {key: value for key, value in rerank_3.items() if key[0][:2] == "ir"} == {
        key: value for key, value in by_matching.items() if key[0][:2] == "ir"
    }
    assert measured(study, TableModel(torch, MATCH, SIMILARITY), rerank=99) == by_matching
    assert measured(study, TableModel(torch, MATCH, SIMILARITY), rerank=0) == by_similarity


def test_only_selected_pairs_are_matched(torch, tmp_path):
    study = study_with_images(tmp_path, CAPTIONS)
    model = TableModel(torch, MATCH, SIMILARITY)
    measured(study, model, rerank=1)
    # Captions matched for images: 2 for a, 2 and 3 for b, 0 for c; images for captions 0 to 5: c, c, a, c, c, c.
    assert model.n_matched == len({(0, 2), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3), (2, 4), (2, 5)})
    measured(study, model, rerank=1)
    assert model.n_matched == 8  # matching scores are cached


@pytest.mark.parametrize("rerank", [0, 1, 2, 99])
def test_batch_sizes_change_nothing(torch, tmp_path, monkeypatch, rerank):
    study = study_with_images(tmp_path, CAPTIONS)
    models = [{"similarity": SIMILARITY}, {"match": MATCH}, {"match": MATCH, "similarity": SIMILARITY}]
    whole = [measured(study, TableModel(torch, **tables), rerank=rerank) for tables in models]
    for name, size in (("_MAX_BLOCK_SCORES", 7), ("_ENCODE_BATCH_SIZE", 2), ("_MATCH_BATCH_SIZE", 1)):
        monkeypatch.setattr(f"portrayal.models.masked_vlm.retrieval.search.{name}", size)
    assert [measured(study, TableModel(torch, **tables), rerank=rerank) for tables in models] == whole


def test_identical_captions_are_tied(torch, tmp_path):
    study = study_with_images(tmp_path, {"a": ["0"], "b": ["0"], "c": ["0", "1"]})
    recall = measured(study, TableModel(torch, similarity=[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    assert recall["tr@1", None] == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)
    assert recall["ir@1", None] == pytest.approx((1 / 2 + 1 / 2 + 0 + 1) / 4)


def test_rows_have_group_unit_and_chance(torch, tmp_path):
    study = study_with_images(tmp_path, CAPTIONS, a="female", c="female", elsewhere="male")
    results = portrayal.metrics.retrieval_recall(
        study, model=TableModel(torch, MATCH, SIMILARITY), attribute="gender"
    )
    rows = {(m.term, m.group): m for m in results.measurements}
    assert [m.term for m in results.measurements if m.group is None] == TERMS
    assert {m.system for m in results.measurements} == {"table"}
    tr, ir = rows["tr@1", None], rows["ir@1", None]
    assert (tr.n, tr.n_unit, ir.n, ir.n_unit) == (3, "image", 6, "caption")
    assert (tr.ideal, tr.better, tr.unit) == (1.0, "higher", "share")
    assert (rows["tr@1", "female"].n, rows["ir@1", "female"].n) == (2, 4)
    assert rows["tr@1", "male"].value is None
    assert rows["tr@1", "male"].reason == "none of the searched images is labelled 'male'"
    assert tr.reason.startswith("too few: 3 images")
    assert "among 6 captions of 3 images; by chance 0.333, 1 and 1 at 1, 5, 10" in tr.reason
    assert tr.settings == {"by": "similarity, then matching", "rerank": 128, "captions": 5, "images": "all"}
    long_study = study_with_images(tmp_path / "cut", {"a": ["0 0 0 0 0 0 0"], "b": ["1"]})
    matching_model = TableModel(torch, match=[[0.0, 0.0]] * 2)
    matching_model.match_logits = lambda images, texts: torch.zeros(len(texts), 2)
    (note,) = {m.reason for m in portrayal.metrics.retrieval_recall(long_study, model=matching_model).measurements
               if m.term == "tr@1"}  # fmt: skip
    assert "captions truncated to the length the model reads: 1" in note


def test_evidence_has_the_rank_and_the_first_result(torch, tmp_path):
    study = study_with_images(tmp_path, CAPTIONS)
    results = portrayal.metrics.retrieval_recall(study, model=TableModel(torch, similarity=SIMILARITY))
    rows = {m.term: m for m in results.measurements}
    evidence = results.evidence_of(rows["tr@1"])
    assert evidence["image_id"].to_list() == ["c", "a", "b"]  # the worst rank first
    assert evidence["caption"].to_list() == ["4", "0", "2"]
    worst, middle, best = map(json.loads, evidence["detail"])
    assert worst == {"rank": 5, "among": 6, "found": "0", "of": "a"}
    assert middle == {"rank": 2, "among": 6, "found": "2", "of": "b"}
    assert best == {"rank": 1, "among": 6, "tied": 2, "found": "2", "of": "b"}
    evidence = results.evidence_of(rows["ir@1"])
    # Of caption 2 the order is a, c, b; of 0, 1 and 3 the own image is second to c; of 4 and 5 it is first.
    assert evidence["caption"].to_list() == ["2", "0", "1", "3", "4", "5"]
    assert json.loads(evidence["detail"][0]) == {"rank": 3, "among": 3, "found": "a"}
    assert json.loads(evidence["detail"][1]) == {"rank": 2, "among": 3, "found": "c"}


def test_models_that_cannot_search_are_refused(torch, tmp_path):
    study = study_with_images(tmp_path, CAPTIONS)
    without_head = TableModel(torch)
    with pytest.raises(PortrayalError, match="'table' has no head that compares"):
        measured(study, without_head)
    text_model = TableModel(torch, match=MATCH)
    text_model.network.image_size = 0
    with pytest.raises(PortrayalError, match="'table' takes no images"):
        measured(study, text_model)
    with pytest.raises(PortrayalError, match="gives no number"):
        measured(study, TableModel(torch, match=[[float("nan")] * 6] * 3))
    with pytest.raises(PortrayalError, match="Unknown model of the lab"):
        measured(study, "lab-triple")


# A model of the lab.


@pytest.fixture(scope="module")
def lab(torch, tmp_path_factory) -> Study:
    return write_lab(LabRecipe(scenes=30, seed=5, image_size=96), tmp_path_factory.mktemp("recall") / "lab")


@pytest.fixture(scope="module")
def model(torch, tmp_path_factory) -> str:
    """Trained for two steps: its recall is at chance level."""
    from portrayal.lab.model_training import TrainingSpec, recipe_for, train_lab_model

    folder = tmp_path_factory.mktemp("models") / "tiny"
    short = recipe_for("dual", steps=2, batch_size=8, n_captioned=4, warmup_steps=1)
    train_lab_model(TrainingSpec("dual", "half", scenes=20), folder, short, evaluation_scenes=100)
    return str(folder)


def lab_recall(study: Study, model: str, **options) -> Results:
    defaults = {"model": model, "captions": 2, "rerank": 8, "bootstrap": 60, "attribute": "gender"}
    return portrayal.metrics.retrieval_recall(study, **{**defaults, **options})


def test_a_lab_model_is_measured(lab, model):
    rows = {(m.term, m.group): m for m in lab_recall(lab, model).measurements}
    assert {m.system for m in rows.values()} == {"tiny"}
    for term in TERMS:
        m = rows[term, None]
        assert m.low <= m.value <= m.high
        assert m.se_data is not None
    assert rows["tr@1", None].value <= rows["tr@5", None].value <= rows["tr@10", None].value
    women, men = rows["ir@1", "female"], rows["ir@1", "male"]
    whole = (women.value * women.n + men.value * men.n) / (women.n + men.n)
    assert rows["ir@1", None].value == pytest.approx(whole)


@pytest.mark.parametrize("shipped", ["lab-dual", "lab-single"])
def test_shipped_lab_models_are_far_above_chance(lab, shipped):
    rows = {m.term: m for m in lab_recall(lab, shipped).measurements if m.group is None}
    for term, chance in (("tr@1", 1 / 30), ("ir@1", 1 / 30), ("ir@5", 5 / 30)):
        assert rows[term].low > 2 * chance


def test_common_properties_of_metrics(lab, model):
    results = lab_recall(lab, model)
    repeated = lab_recall(replace(lab), model)  # a new study of the same contents, without caches
    assert results.measurements == repeated.measurements
    assert results.evidence.equals(repeated.evidence)
    shuffled = replace(
        lab,
        attributes=lab.attributes.sample(fraction=1, shuffle=True, seed=1),
        references=lab.references.sort("image_id", descending=True, maintain_order=True),
    )
    assert lab_recall(shuffled, model).measurements == results.measurements
    other_seed = lab_recall(lab, model, seed=1).measurements
    assert [m.value for m in other_seed] == [m.value for m in results.measurements]
    assert [m.se_data for m in other_seed] != [m.se_data for m in results.measurements]
    assert len({m.id for m in results.measurements}) == len(results.measurements) == 18
    evidence_ids = set(results.evidence["id"])
    assert evidence_ids == {m.id for m in results.measurements}
    unlabelled = replace(lab, attributes=lab.attributes.with_columns(pl.lit(None, pl.String).alias("gender")))
    headlines = [m for m in results.measurements if m.group is None]
    assert [m.value for m in lab_recall(unlabelled, model).measurements] == [m.value for m in headlines]


def test_the_command_measures_every_attribute_and_skips_bad_images(command, lab, model, tmp_path):
    image_folder = tmp_path / "pictures"
    image_folder.mkdir()
    for image in lab.image_ids:
        (image_folder / f"{image}.png").symlink_to(lab.image_files[image].resolve())
    bad_file = image_folder / f"{lab.image_ids[0]}.png"
    bad_file.unlink()
    bad_file.write_bytes(b"nothing")
    write_study(replace(lab, images=image_folder), tmp_path / "study")
    arguments = ("score", "retrieval-recall", tmp_path / "study", "--model", model, "--captions", "1")
    code, _, stderr = command(*arguments)
    assert code == 2
    assert "expected an image, found something that cannot be read as one" in " ".join(stderr.split())
    code, stdout, _ = command(*arguments, "--skip-bad", "--rerank", "4", "--format", "json")
    assert code == 0
    measurements = json.loads(stdout)["measurements"]
    assert {m["attribute"] for m in measurements} == {"gender", "age", "skin"}
    headline = next(m for m in measurements if m["group"] is None)
    assert (headline["n"], headline["system"]) == (29, "tiny")
    assert "cannot be read: 1" in headline["reason"]
    code, _, stderr = command("score", "retrieval-recall", tmp_path / "study")
    assert code == 2
    assert "none is named (--model NAME)" in " ".join(stderr.split())
