"""The lab: the same seed gives the same study, and what is planted is there."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from portrayal.lab import Captioner, make_study
from portrayal.lab.world import ACTIVITIES, activity_chances


def test_the_same_seed_gives_the_same_study_in_every_process():
    code = "from portrayal.lab import make_study; print(make_study(scenes=50, seed=7).digest)"
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert other == make_study(scenes=50, seed=7).digest
    assert other != make_study(scenes=50, seed=8).digest


def test_adding_a_captioner_changes_no_other():
    one = make_study(scenes=50, captioners=[Captioner("a")])
    two = make_study(scenes=50, captioners=[Captioner("b"), Captioner("a")])
    assert two.only(["a"]).captions.equals(one.captions)
    assert two.references.equals(one.references)


def test_without_data_bias_activities_do_not_depend_on_gender():
    np.testing.assert_allclose(activity_chances("female", 0), activity_chances("male", 0))


@pytest.mark.parametrize("bias", [0.0, 0.5, 1.0])
def test_activities_follow_the_stated_chances(bias):
    study = make_study(scenes=8000, seed=1, data_bias=bias, captioners=[])
    joined = study.objects.join(study.attributes, on="image_id")
    for group in ("female", "male"):
        labels = joined.filter(joined["gender"] == group)["label"]
        found = np.array([(labels == activity.label).mean() for activity in ACTIVITIES])
        assert np.abs(found - activity_chances(group, bias)).max() < 4 * np.sqrt(0.25 / labels.len())


def test_every_scene_has_five_references():
    study = make_study(scenes=20)
    assert set(study.references.group_by("image_id").len()["len"]) == {5}
