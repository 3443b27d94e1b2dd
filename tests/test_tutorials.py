"""The tutorials run from the first cell to the last, and are stored without outputs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
KERNEL = "portrayal-tests"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel of the running interpreter; nothing is read from the user's settings or written beside them."""
    spec = tmp_path / "data" / "kernels" / KERNEL / "kernel.json"
    spec.parent.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": command, "display_name": KERNEL, "language": "python"}))
    for variable in ("DATA", "CONFIG", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{variable}_DIR", str(tmp_path / variable.lower()))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return KERNEL


def outputs(notebook, kind):
    """All outputs of this type, as text."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    data = [output.get("data", {}) for cell in cells for output in cell.outputs]
    return [entry[kind] for entry in data if kind in entry]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_stored_without_outputs_and_paths(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    assert not re.search(r"/(home|Users|tmp|work|root)/", path.read_text())
    for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), target


# pyzmq's event loop and jupyter_client warn about matters of theirs.
@pytest.mark.filterwarnings("default")
def test_the_audit_tutorial_runs(kernel, tmp_path):
    notebook = nbformat.read(FOLDER / "audit.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name=kernel, timeout=300, resources=resources).execute()
    views = "".join(outputs(notebook, "text/html"))
    for sentence in ("Study <b>two photos</b>", "Results of <b>", "Comparison of <b>", "Gate <b>failed</b>"):
        assert sentence in views
    assert outputs(notebook, "application/vnd.vegalite.v6+json") or "vega" in views
    printed = [
        o.text for cell in notebook.cells for o in cell.get("outputs", ()) if o.output_type == "stream"
    ]
    assert "Did you mean 'stereotyping'?" in printed[0]
    assert "index.html" in printed[-1]
