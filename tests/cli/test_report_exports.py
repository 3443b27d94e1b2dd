"""portrayal report --export, as somebody who writes a paper types it."""

from __future__ import annotations

import pytest

from portrayal.metrics import METRICS
from portrayal.results import Measurement, Results


@pytest.fixture
def audit_folder(tmp_path):
    rows = [
        Measurement(metric, term, system=system, attribute="gender", value=value, unit="percent", n=100)
        for metric, term in (("lic", "lic"), ("quality", "cider"))
        for system, value in (("one", 1.0), ("two", 2.0))
    ]
    cards = {name: {"trade_off": METRICS[name].card.as_dict()["trade_off"]} for name in ("lic", "quality")}
    Results(tuple(rows), provenance={"cards": cards}).save(tmp_path / "audit")
    return tmp_path / "audit"


def test_exports_are_optional(command, audit_folder, tmp_path):
    code, _, _ = command("report", audit_folder, "--out", tmp_path / "out")
    assert code == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"index.html", "results.csv", "results.md", "results.json"}
    assert not names & {"tables", "charts", "model-card-one.md"}


def test_all_exports(command, audit_folder, tmp_path):
    code, out, _ = command("report", audit_folder, "--out", tmp_path / "out", "--export", "all")
    assert code == 0
    for line in ("tables: 6 files in ", "charts: 3 files in ", "card: 2 files in "):
        assert line in out
    paths = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    assert paths >= {
        *(f"tables/{name}-gender.{kind}" for name in ("lic", "quality") for kind in ("csv", "md", "tex")),
        *(f"charts/lic-against-cider-by-gender.{kind}" for kind in ("svg", "png", "json")),
        *("model-card-one.md", "model-card-two.md"),
    }
    files = [path for path in (tmp_path / "out").rglob("*.*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    command("report", audit_folder, "--out", tmp_path / "out", "--export", "card,charts,tables")
    for path, content in before.items():
        assert path.read_bytes() == content, path.name


def test_selected_exports(command, audit_folder, tmp_path):
    code, _, _ = command("report", audit_folder, "--out", tmp_path / "out", "--export", "tables, card")
    assert code == 0
    assert (tmp_path / "out" / "tables").is_dir()
    assert not (tmp_path / "out" / "charts").exists()


def test_an_unknown_export_is_refused(command, audit_folder, tmp_path):
    code, _, err = command("report", audit_folder, "--out", tmp_path / "out", "--export", "tables,chart")
    assert code == 2
    assert "Unknown export 'chart'. Did you mean 'charts'? Available: all, card, charts, tables." in err
    assert not (tmp_path / "out").exists()


def test_nothing_to_draw(command, tmp_path):
    Results((Measurement("m", "t", system="s", value=1.0),)).save(tmp_path / "audit")
    code, out, _ = command("report", tmp_path / "audit", "--out", tmp_path / "out", "--export", "charts,card")
    assert code == 0
    assert "charts: nothing to write" in out
    assert (tmp_path / "out" / "model-card.md").exists()
