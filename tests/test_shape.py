"""The architecture: which packages may import which, and which packages need no polars."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from portrayal.metrics import CARDS
from portrayal.mitigate.captions import CARD as CAPTION_MITIGATION
from portrayal.mitigate.card import CARD as MITIGATION

SOURCE = Path(__file__).parent.parent / "src" / "portrayal"
BASE = {"errors", "files", "documents", "plugins"}
READING = {"results", "provenance", "statements", "questions", "notebook_html", *BASE}
MEASURING = {"study", "lexicon", "stats", "engine", "models", "counterfactual", *READING}

# package -> the packages it may import
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "files": set(),
    "documents": {"errors"},
    "plugins": {"errors"},
    "questions": set(),
    "provenance": BASE,
    "provenance_schema": BASE,
    "selection": {"errors"},
    "notebook_html": {"errors"},
    "results": {"provenance_schema", "selection", *BASE},
    "statements": set(),
    "study": READING,
    "lexicon": BASE,
    "stats": BASE,
    "engine": BASE,
    "models": BASE,
    "counterfactual": {"models", *BASE},
    "metrics": MEASURING,
    "auditing": {"metrics", *MEASURING},
    "comparing": {"stats", *READING},
    "gating": READING,
    "vl_bias": {"study", "lexicon", "counterfactual", *READING},
    "lab": {"metrics", *MEASURING},
    "mitigate": {"lab", "metrics", "auditing", "comparing", *MEASURING},
    "report": {"stats", *READING},
}
UNRESTRICTED = {
    "cli",
    "__init__",
    "__main__",
}  # the command line may use everything; the package only names things
POLARS_FREE = [package for package in ("models", "counterfactual", "mitigate") if (SOURCE / package).is_dir()]


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_packages(path: Path) -> set[str]:
    packages = set()
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
                packages.add(parts[1])
    return packages


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_follow_the_architecture(path):
    package = package_of(path)
    if package in UNRESTRICTED:
        return
    assert package in ALLOWED, f"the package '{package}' is not in the design"
    assert imported_packages(path) <= ALLOWED[package] | {package}


def test_only_the_command_line_prints():
    for path in SOURCE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        prints = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
        assert not prints, path


@pytest.mark.parametrize(
    "module", ["portrayal", "portrayal.errors", *(f"portrayal.{package}" for package in POLARS_FREE)]
)
def test_imports_without_polars(module):
    code = f"import sys; sys.modules['polars'] = None; import {module}"
    subprocess.run([sys.executable, "-c", code], check=True)


# Packages that take what they say of a metric from its card.
NAMELESS = ("report", "cli", "comparing", "gating", "mitigate")
METRIC_NAMES = {*CARDS, MITIGATION.name, CAPTION_MITIGATION.name}
# Commands have names of their own: in the table of commands, and in the decorator of a command.
COMMANDS = SOURCE / "cli" / "main.py"


def named_metrics(tree: ast.AST) -> list[tuple[int, str]]:
    """The line and text of each string that is a metric's name, except in cards and in decorators of commands."""
    allowed: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Card":
            allowed.update(keyword.value for keyword in node.keywords if keyword.arg in ("name", "answers"))
        if isinstance(node, ast.FunctionDef):
            decorators = [call for call in node.decorator_list if isinstance(call, ast.Call)]
            allowed.update(call.args[0] for call in decorators if ast.unparse(call.func) == "click.command")
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in allowed]
    return [(node.lineno, node.value) for node in strings if node.value in METRIC_NAMES]


def test_only_cards_name_metrics():
    files = [path for name in NAMELESS for path in SOURCE.glob(f"{name}/**/*.py")]
    assert len(files) > 80
    named = {path: named_metrics(ast.parse(path.read_text())) for path in files if path != COMMANDS}
    assert {path: names for path, names in named.items() if names} == {}
    assert {name for _, name in named_metrics(ast.parse(COMMANDS.read_text()))} == {"counterbias"}


def test_a_name_of_a_metric_is_found():
    tree = ast.parse('"""error"""\nif m.metric == "lic": Card(name="quality", title="harms")')
    assert named_metrics(tree) == [(1, "error"), (2, "lic"), (2, "harms")]


def test_templates_name_no_metric():
    for path in (SOURCE / "report" / "templates").iterdir():
        text = path.read_text().replace('addEventListener("error"', "")
        assert [name for name in METRIC_NAMES if f'"{name}"' in text or f"'{name}'" in text] == [], path


def test_files_and_classes_of_the_report_have_no_name_of_a_metric():
    methods = {name.replace("-", "_") for name in METRIC_NAMES}
    for path in (SOURCE / "report").rglob("*.py"):
        classes = [
            node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
        ]
        assert path.stem not in methods, path
        assert not [
            name for name in classes if name.lower() in {method.replace("_", "") for method in methods}
        ]
        assert "counterbias" not in path.stem


EXTRAS = "torch transformers sentence_transformers captum spacy pycocoevalcap pandas jsonschema statsmodels"


@pytest.mark.demo
def test_the_core_runs_with_no_extra_installed(tmp_path):
    """Every package that is not part of the core is made impossible to import; an audit must not notice.

    The demo itself runs with the core alone in `.ci/run`.
    """
    code = f"""
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS.split()!r}:
            raise ModuleNotFoundError("blocked: " + name, name=name)

sys.meta_path.insert(0, Nothing())
from portrayal.cli.main import run
from portrayal.metrics import METRICS
assert run(["lab", "make", "--scenes", "60", "--images", "--out", "lab"]) == 0
assert run(["audit", "lab", "--quick", "--workers", "1", "--out", "audit"]) == 0
for name, metric in METRICS.items():
    code = 2 if "model" in metric.card.needs else 0  # none is named
    assert run(["score", name, "lab", "--attribute", "gender", "--format", "json"]) == code
assert run(["report", "audit", "--out", "again"]) == 0
assert run(["check-study", "lab"]) == 0
assert run(["counterbias", "--model", "lab-dual", "--manifest", "lab/manifest.csv", "--out", "counterbias"]) == 2
import portrayal
try:
    portrayal.Results.load("audit").to_pandas()
except portrayal.errors.MissingExtra as error:
    assert "pip install" in str(error)
else:
    raise SystemExit("a missing package went unnoticed")
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert (tmp_path / "audit" / "index.html").exists()
