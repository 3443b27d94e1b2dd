"""`evidence` means the same in every metric that has it: the number of captions per measurement, 0 for all."""

from __future__ import annotations

import polars as pl
import pytest

import portrayal
from portrayal.metrics import METRICS
from portrayal.metrics.base.options import EvidenceLimit
from portrayal.study import Study, write_study

N = 150  # more than the default number of captions per measurement
WITH_OPTION = [name for name, metric in METRICS.items() if metric.options.get("evidence") and
               metric.options["evidence"].annotation == EvidenceLimit]  # fmt: skip


@pytest.fixture(scope="module")
def study() -> Study:
    images = [str(number) for number in range(N)]
    captions = {"image_id": images, "system": ["s"] * N, "caption": ["an old man rides a bike"] * N}
    return Study.from_frames(
        captions=pl.DataFrame(captions),
        references=pl.DataFrame({"image_id": images, "caption": ["a man rides a bike"] * N}),
        attributes=pl.DataFrame({"image_id": images, "gender": ["male"] * (N - 40) + ["female"] * 40}),
    )


def test_metrics_with_an_evidence_limit():
    assert WITH_OPTION == ["harms", "quality"]


@pytest.mark.parametrize("name", WITH_OPTION)
def test_without_a_limit_every_caption_is_evidence(name, study, tmp_path, command):
    options = {"measurement": ("self-identification.identity-words",)} if name == "harms" else {}
    results = METRICS[name](study, attribute="gender", systems=["s"], bootstrap=20, evidence=0, **options)
    n_evidence = dict(results.evidence.group_by("id").len().iter_rows())
    rows = [m for m in results.measurements if m.system == "s" and m.id in n_evidence]
    assert {m.group for m in rows} == {None, "male", "female"}
    expected = {None: N, "male": N - 40, "female": 40}
    assert [(m.term, m.item, m.unit, m.group) for m in rows if n_evidence[m.id] != expected[m.group]] == []
    limited = METRICS[name](study, attribute="gender", systems=["s"], bootstrap=20, evidence=7, **options)
    assert limited.evidence.group_by("id").len()["len"].max() <= 7
    write_study(study, tmp_path / "study")
    flags = [argument for term in options.get("measurement", ()) for argument in ("--measurement", term)]
    arguments = [
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
    assert command(*arguments, "--evidence", 0, "--json", tmp_path / "scores.json")[0] == 0
    loaded = portrayal.Results.load(tmp_path / "scores.json")
    assert dict(loaded.evidence.group_by("id").len().iter_rows()) == n_evidence
