"""The documentation says what the code does."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import portrayal
from portrayal.report.tables.layout import format_with_ci

ROOT = Path(__file__).parent.parent
PAGES = runpy.run_path(str(ROOT / "docs" / "build.py"))["PAGES"]


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_up_to_date(page):
    assert (ROOT / "docs" / page).read_text() == PAGES[page](), "run `make docs`"


MODULES = [
    m.name for m in pkgutil.walk_packages(portrayal.__path__, "portrayal.") if m.name != "portrayal.__main__"
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def documented_parameters(docstring: str) -> list[str]:
    """Return the names in the section Parameters of a numpydoc docstring."""
    section = re.search(r"(?:^|\n)Parameters\n-+\n(.*?)(?=\n\w+\n-+\n|\Z)", docstring, re.DOTALL)
    lines = [] if section is None else section[1].splitlines()
    return [name.strip(" *") for line in lines if line[:1].strip() for name in line.split(":")[0].split(",")]


@pytest.mark.parametrize(
    "path", sorted(Path(portrayal.__file__).parent.rglob("*.py")), ids=lambda path: path.name
)
def test_documented_parameters_are_those_of_the_signature(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        functions = [
            node,
            *(inner for inner in ast.iter_child_nodes(node) if getattr(inner, "name", "") == "__init__"),
        ]
        names = {
            name.arg for function in functions for name in ast.walk(function) if isinstance(name, ast.arg)
        }
        names |= {ast.unparse(field.target) for field in node.body if isinstance(field, ast.AnnAssign)}
        assert set(documented_parameters(ast.get_docstring(node) or "")) <= names, f"{path}: {node.name}"


def test_every_metric_has_an_example():
    """It is run with the other docstrings, since metrics are plain functions of their modules."""
    finder = doctest.DocTestFinder()
    for name, metric in portrayal.metrics.METRICS.items():
        module = importlib.import_module(metric.function.__module__)
        (example,) = (
            test
            for test in finder.find(module)
            if test.name == f"{module.__name__}.{metric.function.__name__}"
        )
        assert example.examples, name


def test_the_python_example_of_the_readme_runs(lic_gender, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(example.strip().splitlines()) == 5
    monkeypatch.chdir(lic_gender.parent)
    exec(example.replace('"my-study"', f'"{lic_gender.name}"'), {})
    assert capsys.readouterr().out


def test_the_examples_of_the_python_page_run(tmp_path, monkeypatch, capsys):
    """One after the other: later examples use the names of earlier ones."""
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
    assert names["headlines"].shape[0]
    assert (tmp_path / "audit" / "index.html").exists()
    assert "neutral everywhere" in capsys.readouterr().out


def test_links_of_documents_have_a_target():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_version_is_the_same_everywhere():
    assert f"version: {portrayal.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {portrayal.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"]


def test_the_table_of_the_readme_is_what_the_command_gives(lic_gender):
    """Shares have Wilson's interval, which does not depend on the bootstrap, so few resamples are enough here."""
    results = portrayal.metrics.error(portrayal.read_study(lic_gender), bootstrap=20)
    measurements = {(m.system, m.group, m.term): m for m in results.measurements}
    rows = re.findall(
        r"^\| ([\w-]+) \| (female|male) \| (.*) \| ([\d,]+) \|$",
        (ROOT / "README.md").read_text(),
        re.MULTILINE,
    )
    assert len(rows) == 10
    for system, group, cells, n in rows:
        for term, cell in zip(
            ("right", "wrong", "neutral", "both", "error"), cells.split(" | "), strict=True
        ):
            assert cell == format_with_ci(measurements[system, group, term])
        assert n == f"{measurements[system, group, 'right'].n:,}"
