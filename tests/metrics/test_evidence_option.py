"""`evidence` means the same in every metric that has it: so many captions behind a number, 0 for all of them."""

from __future__ import annotations

import polars as pl
import pytest

import portrayal
from portrayal.metrics import METRICS
from portrayal.metrics.base.options import EvidenceLimit
from portrayal.study import Study, write_study

N = 150  # more than are kept behind any number by default
WITH_OPTION = [name for name, one in METRICS.items() if one.options.get("evidence") and
               one.options["evidence"].annotation == EvidenceLimit]  # fmt: skip


@pytest.fixture(scope="module")
def study() -> Study:
    images = [str(number) for number in range(N)]
    captions = {"image_id": images, "system": ["s"] * N, "caption": ["an old man rides a bike"] * N}
    return Study.from_frames(
        captions=pl.DataFrame(captions),
        references=pl.DataFrame({"image_id": images, "caption": ["a man rides a bike"] * N}),
        attributes=pl.DataFrame({"image_id": images, "gender": ["male"] * (N - 40) + ["female"] * 40}),
    )


def test_both_kinds_of_evidence_are_found():
    assert WITH_OPTION == ["harms", "quality"]


@pytest.mark.parametrize("name", WITH_OPTION)
def test_no_limit_keeps_every_caption_behind_every_number(name, study, tmp_path, command):
    options = {"measurement": ("self-identification.identity-words",)} if name == "harms" else {}
    found = METRICS[name](study, attribute="gender", systems=["s"], bootstrap=20, evidence=0, **options)
    behind = dict(found.evidence.group_by("id").len().iter_rows())
    rows = [m for m in found.measurements if m.system == "s" and m.id in behind]
    assert {m.group for m in rows} == {None, "male", "female"}
    expected = {None: N, "male": N - 40, "female": 40}
    assert [(m.term, m.item, m.unit, m.group) for m in rows if behind[m.id] != expected[m.group]] == []
    few = METRICS[name](study, attribute="gender", systems=["s"], bootstrap=20, evidence=7, **options)
    assert few.evidence.group_by("id").len()["len"].max() <= 7
    write_study(study, tmp_path / "study")
    flags = [part for term in options.get("measurement", ()) for part in ("--measurement", term)]
    call = [
        "score",
        name,
        tmp_path / "study",
        "--attribute",
        "gender",
        "--systems",
        "s",
        "--bootstrap",
        20,
        *flags,
    ]
    assert command(*call, "--evidence", 0, "--json", tmp_path / "scores.json")[0] == 0
    same = portrayal.Results.load(tmp_path / "scores.json")
    assert dict(same.evidence.group_by("id").len().iter_rows()) == behind
