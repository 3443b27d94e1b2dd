"""Audits: the same bytes from any number of workers, and after any interruption."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import portrayal
from portrayal.cli.main import run
from portrayal.lab import make_study
from portrayal.metrics import METRICS
from portrayal.study import write_study

# Metrics of an audit that is killed: the first result is soon finished, and seconds of work are left then.
FAST_METRICS = ["--metrics", "error,word-odds"]


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "lab"
    write_study(make_study(scenes=300, seed=4), folder)
    return folder


@pytest.fixture(scope="module")
def uninterrupted(study, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("audit") / "one"
    assert run(["audit", str(study), "--out", str(out), "--workers", "1", *FAST_METRICS]) == 0
    return out


def contents(folder: Path) -> tuple[object, bytes, bytes]:
    """The output of an audit except its provenance and the page that shows it."""
    measurements = json.loads((folder / "results.json").read_text())["measurements"]
    return (
        measurements,
        (folder / "evidence.parquet").read_bytes(),
        (folder / "replicates.parquet").read_bytes(),
    )


@pytest.mark.demo
def test_two_workers_write_the_same_bytes(study, tmp_path):
    for workers in ("1", "2"):
        call = ["audit", str(study), "--out", str(tmp_path / workers), "--systems", "faithful,stereotyping"]
        assert run([*call, "--workers", workers]) == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    allowed = {name for name, metric in METRICS.items() if "model" not in metric.card.needs}
    assert {m["metric"] for m in contents(tmp_path / "1")[0]} == allowed


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("signal_sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_audit_that_is_killed_resumes_and_writes_the_same_bytes(
    signal_sent, workers, study, uninterrupted, tmp_path
):
    call = [
        sys.executable,
        "-m",
        "portrayal",
        "audit",
        str(study),
        "--out",
        str(tmp_path),
        "--workers",
        workers,
        *FAST_METRICS,
    ]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    checkpoint = tmp_path / ".checkpoint"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if checkpoint.is_dir() and any(not path.name.startswith(".") for path in checkpoint.iterdir()):
            process.send_signal(signal_sent)
            break
        time.sleep(0.002)
    _, stderr = process.communicate(timeout=60)  # its workers must not hold its output open
    assert process.returncode == (-signal.SIGKILL if signal_sent is signal.SIGKILL else 130)
    assert b"Traceback" not in stderr
    modified_times = {
        path.name: path.stat().st_mtime_ns for path in checkpoint.iterdir() if not path.name.startswith(".")
    }
    assert modified_times
    assert not (tmp_path / "results.json").exists()
    assert run(["audit", str(study), "--out", str(tmp_path), "--workers", workers, *FAST_METRICS]) == 0
    assert contents(tmp_path) == contents(uninterrupted)
    assert not checkpoint.exists()


def test_another_seed_does_not_use_the_checkpoint_of_the_first(study, tmp_path):
    loaded = portrayal.read_study(study)
    first = portrayal.audit(loaded, metrics=["naming-ratio"], quick=True, seed=1, checkpoint=tmp_path)
    resumed = portrayal.audit(loaded, metrics=["naming-ratio"], quick=True, seed=1, checkpoint=tmp_path)
    other = portrayal.audit(loaded, metrics=["naming-ratio"], quick=True, seed=2, checkpoint=tmp_path)
    assert resumed.measurements == first.measurements
    assert resumed.provenance["started"] >= first.provenance["started"]
    assert [m.low for m in other.measurements] != [m.low for m in first.measurements]


def test_an_audit_lists_what_it_did_not_measure(study):
    loaded = portrayal.read_study(study)
    with_hair = replace(
        loaded, attributes=loaded.attributes.rename({"skin": "hair"})
    )  # no lexicon has words for it
    results = portrayal.audit(with_hair, metrics=["error", "error"], quick=True)
    assert {m.attribute for m in results.measurements} == {"gender", "age"}
    assert [skip["attribute"] for skip in results.provenance["skipped"]] == ["hair"]
    captions_only = portrayal.Study.from_frames(captions=loaded.captions)
    results = portrayal.audit(captions_only, quick=True)
    assert {m.metric for m in results.measurements} == {"cooccurrence", "harms", "quality"}
    reasons = {skip["metric"]: skip["reason"] for skip in results.provenance["skipped"]}
    assert (
        reasons["naming-ratio"]
        == "The metric 'naming-ratio' cannot run: the study has no human captions (references)."
    )


def test_quick_audits_use_fewer_resamples():
    study = make_study(scenes=40)
    assert portrayal.audit(study, metrics=["error"], quick=True).replicates[
        "replicates"
    ].list.len().unique().to_list() == [200]
