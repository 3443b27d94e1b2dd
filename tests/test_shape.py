"""The architecture holds: imports point one way, and the rooms for bare GPU machines need no polars."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "portrayal"
BASE = {"errors", "files", "documents"}
READS = {"results", "statements", *BASE}
MEASURES = {"study", "lexicon", "stats", "engine", "models", "counterfactual", *READS}

# room -> the rooms it may import
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "files": set(),
    "documents": {"errors"},
    "provenance_schema": BASE,
    "results": {"provenance_schema", *BASE},
    "statements": set(),
    "study": READS,
    "lexicon": BASE,
    "stats": BASE,
    "engine": BASE,
    "models": BASE,
    "counterfactual": {"models", *BASE},
    "metrics": MEASURES,
    "auditing": {"metrics", *MEASURES},
    "comparing": {"stats", *READS},
    "gating": READS,
    "vl_bias": {"study", "lexicon", "counterfactual", *READS},
    "lab": {"metrics", *MEASURES},
    "mitigate": {"lab", "metrics", "auditing", "comparing", *MEASURES},
    "report": {"stats", *READS},
}
FREE = {"cli", "__init__", "__main__"}  # the command line may use everything; the package only names things
WITHOUT_POLARS = [room for room in ("models", "counterfactual", "mitigate") if (SOURCE / room).is_dir()]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "portrayal" and parts[1] != "__version__":
                rooms.add(parts[1])
    return rooms


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    room = room_of(path)
    if room in FREE:
        return
    assert room in ALLOWED, f"the room '{room}' is not in the design"
    assert imported_rooms(path) <= ALLOWED[room] | {room}


def test_only_the_command_line_prints():
    for path in SOURCE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        prints = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
        assert not prints, path


@pytest.mark.parametrize(
    "module", ["portrayal", "portrayal.errors", *(f"portrayal.{room}" for room in WITHOUT_POLARS)]
)
def test_imports_without_polars(module):
    code = f"import sys; sys.modules['polars'] = None; import {module}"
    subprocess.run([sys.executable, "-c", code], check=True)


EXTRAS = "torch transformers sentence_transformers captum spacy pycocoevalcap pandas jsonschema statsmodels"


def test_the_core_runs_with_no_extra_installed(tmp_path):
    """Every package that is not part of the core is made impossible to import; the demo must not notice."""
    code = f"""
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS.split()!r}:
            raise ModuleNotFoundError("blocked: " + name, name=name)

sys.meta_path.insert(0, Nothing())
from portrayal.cli.main import run
from portrayal.metrics import METRICS
assert run(["demo", "--out", "demo"]) == 0
for name, metric in METRICS.items():
    code = 2 if "model" in metric.card.needs else 0  # none is named
    assert run(["score", name, "demo/study", "--attribute", "gender", "--format", "json"]) == code
assert run(["report", "demo", "--out", "again"]) == 0
assert run(["check-study", "demo/study"]) == 0
assert run(["lab", "make", "--scenes", "4", "--images", "--out", "lab"]) == 0
assert run(["counterbias", "--model", "lab-dual", "--manifest", "lab/manifest.csv", "--out", "counterbias"]) == 2
import portrayal
try:
    portrayal.Results.load("demo").pandas()
except portrayal.errors.MissingExtra as error:
    assert "pip install" in str(error)
else:
    raise SystemExit("a missing package went unnoticed")
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert (tmp_path / "demo" / "index.html").exists()
