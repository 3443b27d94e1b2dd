"""The lab's ranked lists: their members follow the captions, their order follows `ranking_lean` alone."""

from __future__ import annotations

import polars as pl
import pytest

import portrayal
from portrayal.lab import Captioner, World, make_scenes, make_study
from portrayal.lab.rankings import LIST_LENGTH
from portrayal.lab.study import describe_scenes


def headline(study: portrayal.Study, term: str = "bias@k", group: str | None = None, **options) -> float:
    measurements = portrayal.metrics.retrieval_skew(
        study, attribute="gender", bootstrap=20, **options
    ).measurements
    return next(m.value for m in measurements if (m.term, m.group, m.item) == (term, group, None))


def test_every_captioner_has_a_list_for_every_activity_that_can_be_drawn():
    study = make_study(scenes=1500)
    assert study.rankers == study.systems
    lists = study.rankings.group_by("system", "query").len()
    assert lists.height == 3 * 18
    assert lists["len"].max() == LIST_LENGTH
    assert all(query.startswith("a person ") for query in study.rankings["query"])


def test_a_list_holds_the_scenes_that_the_captioner_gives_its_activity():
    captioner = Captioner("c", amplification=0.5)
    scenes = make_scenes(400)
    activity_by_image = dict(
        zip([s.identifier for s in scenes], captioner.activities(scenes, 0), strict=True)
    )
    study = describe_scenes(scenes, 0, captioners=[captioner])
    for _, rows in study.rankings.group_by("query"):
        assert len({activity_by_image[image] for image in rows["image_id"]}) == 1


def test_lists_change_no_caption_and_can_be_left_out():
    scenes = make_scenes(60)
    with_rankings = describe_scenes(scenes, 0, captioners=[Captioner("c", ranking_lean={"male": 1.0})])
    without_rankings = describe_scenes(scenes, 0, captioners=[Captioner("c")], rankings=False)
    assert with_rankings.captions.equals(without_rankings.captions)
    assert with_rankings.references.equals(without_rankings.references)
    assert without_rankings.rankings.height == 0
    alone = make_study(scenes=60, captioners=[Captioner("a")])
    together = make_study(scenes=60, captioners=[Captioner("b"), Captioner("a")])
    assert together.select_systems(["a"]).rankings.equals(alone.rankings)


def test_amplification_and_data_bias_fill_lists_with_the_group_that_an_activity_leans_to():
    """Compared with equal shares. The dials do not change the order within a list."""

    def bias(data_bias: float, amplification: float) -> float:
        world = World(data_bias=data_bias)
        study = make_study(2000, world=world, captioners=[Captioner("c", amplification=amplification)])
        return headline(study, reference="equal", k=LIST_LENGTH)

    assert bias(0, 0) < bias(0, 0.5) < bias(0, 1)
    assert bias(0, 0) < bias(0.5, 0) < bias(1, 0)
    assert bias(0.5, 0) < bias(0.5, 0.6)


@pytest.mark.parametrize("group", ["female", "male"])
def test_a_lean_puts_a_group_on_top(group):
    values = [
        headline(make_study(1000, captioners=[Captioner("c", ranking_lean={group: lean})]), group=group)
        for lean in (0.0, 0.3, 1.0)
    ]
    assert values[0] < values[1] < values[2]
    assert values[2] > 0.8
    equal_lean = make_study(1000, captioners=[Captioner("c", ranking_lean=1.0)])
    assert headline(equal_lean, group=group) == pytest.approx(values[0])


def test_a_world_without_drawn_activities_has_no_lists(command, tmp_path):
    """A table without rows has no file, but the folder is written."""
    for seed in range(200):
        if not make_study(1, seed, World(activities="all")).rankings.height:
            break
    arguments = ("lab", "make", "--out", tmp_path / "study", "--scenes", 1, "--activities", "all")
    assert command(*arguments, "--seed", 0)[0] == 0
    assert command(*arguments, "--seed", seed)[0] == 0
    assert not (tmp_path / "study" / "rankings.parquet").exists()
    assert portrayal.read_study(tmp_path / "study").rankings.equals(
        pl.DataFrame(schema=portrayal.Study().rankings.schema)
    )
