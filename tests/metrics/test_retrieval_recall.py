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
    # Two pictures, two captions each: the first picture's best caption is second, the other's is first.
    scores = [[0.3, 0.6, 0.9, 0.1], [0.2, 0.2, 0.1, 0.8]]
    assert recalls(scores, [0, 1], [0, 0, 1, 1], 1) == [0, 1]
    assert recalls(scores, [0, 1], [0, 0, 1, 1], 2) == [1, 1]
    # The same scores, searched by captions: 0.3 > 0.2, 0.6 > 0.2, 0.9 > 0.1 (another's), 0.8 > 0.1.
    assert recalls(np.array(scores).T, [0, 0, 1, 1], [0, 1], 1) == [1, 1, 0, 1]


def test_ties_by_hand():
    own_twice = [[5, 4, 4, 4, 1]], [0], [9, 0, 0, 9, 9]  # behind one better, two of three tied are its own
    assert recalls(*own_twice, 1) == [0]
    assert recalls(*own_twice, 2) == pytest.approx([2 / 3])
    assert recalls(*own_twice, 3) == [1]  # two of the three tied have a place
    one_of_four = [[1, 1, 1, 1]], [0], [9, 0, 9, 9]
    assert [recalls(*one_of_four, k)[0] for k in (1, 2, 3, 4, 9)] == pytest.approx([0.25, 0.5, 0.75, 1, 1])
    best_counts = [[3, 3, 2, 2]], [0], [9, 0, 0, 0]  # what is its own farther down is of no use
    assert recalls(*best_counts, 1) == [0.5]


def test_a_row_without_its_own_and_scores_that_are_none_are_refused():
    with pytest.raises(ValueError, match="a relevant column"):
        rank_positions(np.zeros((1, 2)), np.array([3]), np.array([1, 2]))
    with pytest.raises(ValueError, match="numbers"):
        rank_positions(np.array([[np.nan, 1.0]]), np.array([1]), np.array([1, 2]))


@st.composite
def searches(draw, most=6):
    """Scores of few different values, so that many are tied; the first columns give each row its own."""
    rows = draw(st.integers(1, 4))
    columns = [*range(rows), *draw(st.lists(st.integers(0, rows), max_size=most - min(rows, most)))]
    scores = draw(st.lists(
        st.lists(st.sampled_from([-1.0, 0.0, 0.5]), min_size=len(columns), max_size=len(columns)),
        min_size=rows, max_size=rows))  # fmt: skip
    return np.array(scores), np.arange(rows), np.array(columns)


def by_every_order(scores, row, columns, k):
    """How often one of the row's own is among the first k, over every order that columns can come in."""
    orders = list(permutations(range(len(columns))))
    found = 0
    for order in orders:
        best = sorted(order, key=lambda column: -scores[column])[:k]  # stable: ties stay as they came
        found += any(columns[column] == row for column in best)
    return found / len(orders)


@given(searches(), st.integers(1, 7))
@settings(max_examples=60)
def test_expected_hits_are_the_mean_over_every_order_of_ties(search, k):
    scores, rows, columns = search
    expected = [by_every_order(scores[row], row, columns, k) for row in rows]
    assert recalls(scores, rows, columns, k) == pytest.approx(expected)


@given(searches(12), st.randoms(use_true_random=False))
def test_the_order_of_columns_and_rows_changes_nothing(search, random):
    scores, rows, columns = search
    turned = list(range(len(columns)))
    random.shuffle(turned)
    lines = list(rows)
    random.shuffle(lines)
    for k in (1, 2, 5):
        before = np.array(recalls(scores, rows, columns, k))
        after = recalls(scores[lines][:, turned], rows[lines], columns[turned], k)
        assert after == pytest.approx(before[lines].tolist())


@given(searches(12))
def test_more_places_find_more_and_all_places_find_everything(search):
    scores, rows, columns = search
    found = [np.array(recalls(scores, rows, columns, k)) for k in range(len(columns) + 2)]
    assert (np.diff(found, axis=0) >= -1e-12).all()
    assert found[0].tolist() == [0] * len(rows)
    assert found[-1].tolist() == [1] * len(rows)


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 12))
def test_equal_scores_are_chance(pictures, each, k):
    owner = np.repeat(np.arange(pictures), each)
    level = np.zeros((pictures, len(owner)))
    by_pictures = np.array(recalls(level, np.arange(pictures), owner, k))
    assert by_pictures == pytest.approx(chance_hit_probability(np.full(pictures, each), len(owner), k))
    if each == 1:
        assert by_pictures == pytest.approx(min(1, k / pictures))
    by_captions = recalls(level.T, owner, np.arange(pictures), k)
    assert by_captions == pytest.approx([min(1, k / pictures)] * len(owner))


def test_chance_by_hand():
    # Of 6 captions 2 are its own; both places go to others in (4 x 3) / (6 x 5) of all orders.
    assert chance_hit_probability(np.array([2]), 6, 2).tolist() == pytest.approx([1 - 12 / 30])
    assert chance_hit_probability(np.array([5]), 5, 1).tolist() == [1]


def test_standings_of_parts_are_that_of_the_whole():
    scores = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    whole = rank_positions(scores, np.arange(2), np.array([0, 1, 0]))
    parts = [rank_positions(scores[[row]], np.array([row]), np.array([0, 1, 0])) for row in range(2)]
    for name in ("n_above", "n_tied", "n_tied_relevant", "first_relevant", "rank"):
        assert getattr(RankPositions.concat(parts), name).tolist() == getattr(whole, name).tolist()
    assert whole.first_relevant.tolist() == [0, 1]


@given(searches(10), st.integers(0, 8))
def test_the_first_are_the_best_and_those_tied_with_the_last(search, many):
    scores, _, columns = search
    for row, chosen in zip(scores, top_k(scores, many), strict=True):
        ranked = sorted(row, reverse=True)[:many]
        assert chosen.tolist() == [bool(ranked) and score >= ranked[-1] for score in row]
    weights = np.arange(1, len(columns) + 1)
    repeated = np.repeat(np.arange(len(columns)), weights)
    alike = top_k(scores[:, repeated], many)
    assert (top_k(scores, many, weights)[:, repeated] == alike).all()


@given(searches(10), st.data())
def test_merged_puts_the_chosen_first_and_keeps_ties(search, data):
    scores, _, columns = search
    width = len(columns)
    second = np.array(data.draw(st.lists(st.sampled_from([-9.0, 1.0]), min_size=width, max_size=width)))
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=width, max_size=width)))
    order = rerank_order(scores[:1], second[None], chosen[None])[0]
    key = [
        (bool(pick), two if pick else one) for one, two, pick in zip(scores[0], second, chosen, strict=True)
    ]
    for a in range(width):
        for b in range(width):
            assert (order[a] > order[b]) == (key[a] > key[b])
            assert (order[a] == order[b]) == (key[a] == key[b])


def test_what_was_not_asked_needs_no_second_score():
    order = rerank_order(np.array([[0.2, 0.9]]), np.array([[-1.0, np.nan]]), np.array([[True, False]]))
    assert order[0, 0] > order[0, 1]


# Captions and pictures of a study.


class Words:
    """A reader of whole words with a mark at each end."""

    max_length = 6

    def encode(self, text):
        return ["first", *text.split(), "last"]


def test_captions_are_read_without_commands_and_cut_at_the_end():
    assert truncate_caption("a [MASK] man <pad> [SEP] ", Words()) == ("a MASK man pad", True)
    assert truncate_caption("a man", Words()) == ("a man", False)
    assert truncate_caption("word " * 100_000, Words()) == ("word word word word", True)

    class Pieces(Words):
        def encode(self, text):
            return ["first", *(piece for word in text.split() for piece in word.split("-")), "last"]

    assert truncate_caption("one t-shirt a-b", Pieces()) == ("one t-shirt", True)
    assert truncate_caption("-".join("abcdefgh"), Pieces()) == ("", True)


def pictured(folder: Path, said: dict[str, list[str]], **labels: str) -> Study:
    """Pictures of one colour, whose red says which one it is."""
    folder.mkdir(exist_ok=True)
    for number, image in enumerate(said):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(folder / f"{image}.png")
    rows = [(image, caption) for image, captions in said.items() for caption in captions]
    references = pl.DataFrame(rows, schema=["image_id", "caption"], orient="row")
    attributes = pl.DataFrame({"image_id": list(labels), "gender": list(labels.values())}) if labels else None
    return Study.from_frames(references=references, attributes=attributes, images=folder)


def test_which_pictures_are_taken_depends_on_their_names_alone(tmp_path):
    said = {f"p{number}": ["one", "two", "three"] for number in range(20)}
    study = pictured(tmp_path, said)
    few = SearchedStudy.of(study, 2, 5, skip_bad=False)
    assert len(few.images) == 5
    assert few.images == tuple(sorted(few.images))
    assert few.captions == ("one", "two") * 5
    assert few.owner.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    turned = replace(
        study, references=study.references.sort("image_id", descending=True, maintain_order=True)
    )
    assert SearchedStudy.of(turned, 2, 5, skip_bad=False).images == few.images
    assert set(SearchedStudy.of(study, 2, 4, skip_bad=False).images) < set(few.images)
    everything = SearchedStudy.of(study, 0, 0, skip_bad=False)
    assert (len(everything.images), len(everything.captions)) == (20, 60)


def test_pictures_that_cannot_be_read_are_refused_together_or_counted(tmp_path):
    study = pictured(tmp_path, {"a": ["x"], "b": ["y"], "c": ["z"], "d": ["w"]})
    for image in "bc":
        (tmp_path / f"{image}.png").write_bytes(b"not a picture")
    (tmp_path / "d.png").unlink()
    study = replace(study)  # which pictures there are is read once
    with pytest.raises(InputError) as caught:
        SearchedStudy.of(study, 5, 0, skip_bad=False)
    assert [Path(problem.file).name for problem in caught.value.problems] == ["b.png", "c.png"]
    pool = SearchedStudy.of(study, 5, 0, skip_bad=True)
    assert (pool.images, pool.unreadable, pool.without_file) == (("a",), 2, 1)
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(Undefined, match="can be read"):
        SearchedStudy.of(study, 5, 0, skip_bad=True)
    with pytest.raises(Undefined, match="No image of the study has both a file and a human caption"):
        SearchedStudy.of(
            replace(study, references=study.references.filter(pl.col("image_id") == "d")), 5, 0, False
        )


def test_without_a_model_pictures_or_captions_it_says_what_is_missing(tmp_path):
    study = pictured(tmp_path, {"a": ["x"]})
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


class Table:
    """A model that has its scores from tables: (pictures, texts), a text being the number it is."""

    def __init__(self, torch, match=None, likeness=None, name="table"):
        from portrayal.models.masked_vlm.network import DualEncoder

        empty = {name: lambda *_: None for name in DualEncoder.__abstractmethods__}
        kind = type("Network", (DualEncoder,) if likeness is not None else (), empty)
        self.network = kind()
        self.network.image_size, self.network.has_match_head = 4, match is not None
        self.name, self.device, self.batch_size, self.tokenizer = name, "cpu", 3, Words()
        self._match, self._likeness = (
            None if one is None else torch.tensor(one, dtype=torch.float32) for one in (match, likeness)
        )
        self._torch, self.asked = torch, 0

    def preprocess(self, pictures):
        return self._torch.tensor([picture.getpixel((0, 0))[0] for picture in pictures])

    def encode_images(self, images):
        return images

    def match_logits(self, images, texts):
        self.asked += len(texts)
        found = self._match[images, [int(text) for text in texts]]
        return self._torch.stack([-found, found], dim=1)

    def image_features(self, images):
        return self._likeness[images]

    def text_features(self, texts):
        return self._torch.eye(self._likeness.shape[1])[[int(text) for text in texts]]


SAID = {"a": ["0", "1"], "b": ["2", "3"], "c": ["4", "5"]}
#       0     1     2     3     4     5
LIKE = [
    [0.50, 0.40, 0.90, 0.10, 0.10, 0.10],  # a: 2 of b first, then its own 0
    [0.10, 0.20, 0.30, 0.30, 0.20, 0.10],  # b: its own first, both
    [0.90, 0.80, 0.70, 0.60, 0.50, 0.40],  # c: its own are the last two
]
MATCH = [
    [-0.1, -9.0, -0.5, -0.2, -0.2, -0.2],  # a: its own first
    [-0.1, -0.1, -0.3, -0.2, -0.2, -0.2],  # b: 0 and 1 are before its 3, which three are tied in
    [-1.0, -2.0, -3.0, -4.0, -0.5, -0.6],  # c: its own first
]


def measured(study, model, **options) -> dict[tuple[str, str | None], float | None]:
    found = portrayal.metrics.retrieval_recall(
        study, attribute="gender", model=model, bootstrap=20, **options
    )
    return {(m.term, m.group): m.value for m in found.measurements}


def test_by_hand_with_likeness_matching_and_both(torch, tmp_path):
    study = pictured(tmp_path, SAID, a="female", b="male", c="female")
    alike = measured(study, Table(torch, likeness=LIKE))
    assert alike["tr@1", None] == pytest.approx(1 / 3)  # b alone
    assert alike["tr@5", None] == 1  # c's own 4 is fifth
    # Columns of 0 to 5: c, c, a, c, c, c are first.
    assert alike["ir@1", None] == pytest.approx(2 / 6)
    assert alike["ir@1", "female"] == pytest.approx(2 / 4)
    assert alike["ir@1", "male"] == 0
    assert alike["ir@5", None] == 1  # there are three
    single = measured(study, Table(torch, match=MATCH))
    assert single["tr@1", None] == pytest.approx(2 / 3)
    assert single["tr@5", None] == 1
    # 0: a and b tied; 1: b; 2: b; 3: a and b tied; 4: a and b; 5: a and b (c is -0.5, -0.6).
    assert single["ir@1", None] == pytest.approx((0.5 + 0 + 1 + 0.5 + 0 + 0) / 6)
    # The first of each search by likeness, put in order by matching: a asks about 2; b about 2 and 3, which are tied;
    # c about 0.
    one = measured(study, Table(torch, MATCH, LIKE), rerank=1)
    assert {key: one[key] for key in one if key[0] == "tr@1"} == {
        key: alike[key] for key in alike if key[0] == "tr@1"
    }
    # Of three a asks about 2, 0, 1: 0 is first. b about 2, 3, and 1 and 4, which are tied: 1 is first, then 3 or 4.
    # c about 0, 1, 2: its own are behind.
    three = measured(study, Table(torch, MATCH, LIKE), rerank=3)
    assert three["tr@1", None] == pytest.approx(1 / 3)
    assert three["tr@1", "female"] == pytest.approx(1 / 2)
    assert three["tr@5", None] == 1
    # All three pictures are asked about: as by matching alone.
    assert {key: value for key, value in three.items() if key[0][:2] == "ir"} == {
        key: value for key, value in single.items() if key[0][:2] == "ir"
    }
    assert measured(study, Table(torch, MATCH, LIKE), rerank=99) == single
    assert measured(study, Table(torch, MATCH, LIKE), rerank=0) == alike


def test_only_what_is_asked_costs_a_matching(torch, tmp_path):
    study = pictured(tmp_path, SAID)
    model = Table(torch, MATCH, LIKE)
    measured(study, model, rerank=1)
    # Of captions a: 2, b: 2 and 3, c: 0; of pictures 0: c, 1: c, 2: a, 3: c, 4: c, 5: c.
    assert model.asked == len({(0, 2), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3), (2, 4), (2, 5)})
    measured(study, model, rerank=1)
    assert model.asked == 8  # what was found is kept


@pytest.mark.parametrize("rerank", [0, 1, 2, 99])
def test_how_much_is_done_at_once_changes_nothing(torch, tmp_path, monkeypatch, rerank):
    study = pictured(tmp_path, SAID)
    models = [{"likeness": LIKE}, {"match": MATCH}, {"match": MATCH, "likeness": LIKE}]
    whole = [measured(study, Table(torch, **tables), rerank=rerank) for tables in models]
    for name, size in (("_MAX_CELLS", 7), ("_ENCODE_BATCH", 2), ("_MATCH_BATCH", 1)):
        monkeypatch.setattr(f"portrayal.models.masked_vlm.retrieval.search.{name}", size)
    assert [measured(study, Table(torch, **tables), rerank=rerank) for tables in models] == whole


def test_captions_that_read_the_same_share_their_places(torch, tmp_path):
    study = pictured(tmp_path, {"a": ["0"], "b": ["0"], "c": ["0", "1"]})
    found = measured(study, Table(torch, likeness=[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    assert found["tr@1", None] == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)
    assert found["ir@1", None] == pytest.approx((1 / 2 + 1 / 2 + 0 + 1) / 4)


def test_rows_say_whom_they_are_about_and_what_chance_gives(torch, tmp_path):
    study = pictured(tmp_path, SAID, a="female", c="female", elsewhere="male")
    results = portrayal.metrics.retrieval_recall(study, model=Table(torch, MATCH, LIKE), attribute="gender")
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
    cut = pictured(tmp_path / "cut", {"a": ["0 0 0 0 0 0 0"], "b": ["1"]})
    single = Table(torch, match=[[0.0, 0.0]] * 2)
    single.match_logits = lambda images, texts: torch.zeros(len(texts), 2)
    (note,) = {m.reason for m in portrayal.metrics.retrieval_recall(cut, model=single).measurements
               if m.term == "tr@1"}  # fmt: skip
    assert "captions truncated to the length the model reads: 1" in note


def test_evidence_tells_the_rank_and_what_was_found_instead(torch, tmp_path):
    study = pictured(tmp_path, SAID)
    results = portrayal.metrics.retrieval_recall(study, model=Table(torch, likeness=LIKE))
    rows = {m.term: m for m in results.measurements}
    told = results.evidence_of(rows["tr@1"])
    assert told["image_id"].to_list() == ["c", "a", "b"]  # the worst placed first
    assert told["caption"].to_list() == ["4", "0", "2"]
    worst, middle, best = map(json.loads, told["detail"])
    assert worst == {"rank": 5, "among": 6, "found": "0", "of": "a"}
    assert middle == {"rank": 2, "among": 6, "found": "2", "of": "b"}
    assert best == {"rank": 1, "among": 6, "tied": 2, "found": "2", "of": "b"}
    told = results.evidence_of(rows["ir@1"])
    # Of caption 2 the order is a, c, b; of 0, 1 and 3 the own picture is second to c; of 4 and 5 it is first.
    assert told["caption"].to_list() == ["2", "0", "1", "3", "4", "5"]
    assert json.loads(told["detail"][0]) == {"rank": 3, "among": 3, "found": "a"}
    assert json.loads(told["detail"][1]) == {"rank": 2, "among": 3, "found": "c"}


def test_models_that_cannot_search_are_refused(torch, tmp_path):
    study = pictured(tmp_path, SAID)
    nothing = Table(torch)
    with pytest.raises(PortrayalError, match="'table' has no head that compares"):
        measured(study, nothing)
    texts = Table(torch, match=MATCH)
    texts.network.image_size = 0
    with pytest.raises(PortrayalError, match="'table' takes no images"):
        measured(study, texts)
    with pytest.raises(PortrayalError, match="gives no number"):
        measured(study, Table(torch, match=[[float("nan")] * 6] * 3))
    with pytest.raises(PortrayalError, match="Unknown model of the lab"):
        measured(study, "lab-triple")


# A model of the lab.


@pytest.fixture(scope="module")
def lab(torch, tmp_path_factory) -> Study:
    return write_lab(LabRecipe(scenes=30, seed=5, image_size=96), tmp_path_factory.mktemp("recall") / "lab")


@pytest.fixture(scope="module")
def model(torch, tmp_path_factory) -> str:
    """Trained for two steps: what it finds is chance, and must still be told rightly."""
    from portrayal.lab.model_training import TrainingSpec, recipe_for, train_lab_model

    folder = tmp_path_factory.mktemp("models") / "tiny"
    short = recipe_for("dual", steps=2, batch_size=8, n_captioned=4, warmup_steps=1)
    train_lab_model(TrainingSpec("dual", "half", scenes=20), folder, short, evaluation_scenes=100)
    return str(folder)


def of_the_lab(study: Study, model: str, **options) -> Results:
    asked = {"model": model, "captions": 2, "rerank": 8, "bootstrap": 60, "attribute": "gender"}
    return portrayal.metrics.retrieval_recall(study, **{**asked, **options})


def test_a_model_of_the_lab_searches(lab, model):
    rows = {(m.term, m.group): m for m in of_the_lab(lab, model).measurements}
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
def test_the_labs_models_find_far_more_than_chance(lab, shipped):
    rows = {m.term: m for m in of_the_lab(lab, shipped).measurements if m.group is None}
    for term, by_lot in (("tr@1", 1 / 30), ("ir@1", 1 / 30), ("ir@5", 5 / 30)):
        assert rows[term].low > 2 * by_lot


def test_what_must_hold_of_every_metric(lab, model):
    results = of_the_lab(lab, model)
    again = of_the_lab(replace(lab), model)  # another study of the same contents: nothing is kept from before
    assert results.measurements == again.measurements
    assert results.evidence.equals(again.evidence)
    shuffled = replace(
        lab,
        attributes=lab.attributes.sample(fraction=1, shuffle=True, seed=1),
        references=lab.references.sort("image_id", descending=True, maintain_order=True),
    )
    assert of_the_lab(shuffled, model).measurements == results.measurements
    other = of_the_lab(lab, model, seed=1).measurements
    assert [m.value for m in other] == [m.value for m in results.measurements]
    assert [m.se_data for m in other] != [m.se_data for m in results.measurements]
    assert len({m.id for m in results.measurements}) == len(results.measurements) == 18
    behind = set(results.evidence["id"])
    assert behind == {m.id for m in results.measurements}
    unlabelled = replace(lab, attributes=lab.attributes.with_columns(pl.lit(None, pl.String).alias("gender")))
    headlines = [m for m in results.measurements if m.group is None]
    assert [m.value for m in of_the_lab(unlabelled, model).measurements] == [m.value for m in headlines]


def test_the_command_measures_every_attribute_and_leaves_bad_pictures_out(command, lab, model, tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for image in lab.image_ids:
        (pictures / f"{image}.png").symlink_to(lab.image_files[image].resolve())
    bad = pictures / f"{lab.image_ids[0]}.png"
    bad.unlink()
    bad.write_bytes(b"nothing")
    write_study(replace(lab, images=pictures), tmp_path / "study")
    call = ("score", "retrieval-recall", tmp_path / "study", "--model", model, "--captions", "1")
    code, _, complaint = command(*call)
    assert code == 2
    assert "expected an image, found something that cannot be read as one" in " ".join(complaint.split())
    code, printed, _ = command(*call, "--skip-bad", "--rerank", "4", "--format", "json")
    assert code == 0
    found = json.loads(printed)["measurements"]
    assert {m["attribute"] for m in found} == {"gender", "age", "skin"}
    headline = next(m for m in found if m["group"] is None)
    assert (headline["n"], headline["system"]) == (29, "tiny")
    assert "cannot be read: 1" in headline["reason"]
    code, _, complaint = command("score", "retrieval-recall", tmp_path / "study")
    assert code == 2
    assert "none is named (--model NAME)" in " ".join(complaint.split())
