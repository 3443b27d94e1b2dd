"""Metrics register themselves: those of the package, those of plug-ins, and those of a notebook."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import portrayal
from portrayal.errors import PortrayalError
from portrayal.metrics import CARDS, METRICS, PACKAGES, Card, ResultBuilder, Term, find_metric, metric
from portrayal.metrics.base.stub import PATH, metric_stub

ROOT = Path(__file__).parent.parent.parent
TUTORIAL = ROOT / "docs" / "tutorials" / "hedging"


def card(name: str, answers: str = "other") -> Card:
    return Card(
        name=name, answers=answers, title="T", question="Q?", formula="F", range="R", needs=("captions",),
        paper="P", caveats=(), terms=(Term("t", "a number", "share"),),
    )  # fmt: skip


@pytest.fixture
def registered():
    """Removes what a test registers."""
    before = {id(names): dict(names) for names in (METRICS, CARDS, PACKAGES)}
    yield
    for names in (METRICS, CARDS, PACKAGES):
        names.clear()
        names.update(before[id(names)])


def compute(study, *, attribute, sources, seed=0, words: int = 3) -> ResultBuilder:
    """One number.

    >>> 1
    1
    """
    return ResultBuilder(card("x"), attribute, {})


def test_every_folder_and_file_of_a_metric_is_found():
    package = Path(portrayal.metrics.__file__).parent
    decorated = [path for path in package.rglob("*.py") if "\n@metric(" in path.read_text()]
    assert len(decorated) == len([name for name in METRICS if PACKAGES[name] == "portrayal"])


def test_metrics_stand_in_the_order_of_the_questions():
    names = list(METRICS)
    assert names.index("error") < names.index("lic") < names.index("amplification") < names.index("harms")


def test_a_registered_metric_is_a_plain_function(registered):
    function = metric(card("x"))(compute)
    assert inspect.isfunction(function)
    assert find_metric("x") is find_metric(function) is METRICS["x"]
    parameters = inspect.signature(function).parameters
    assert list(parameters) == ["study", "attribute", "systems", "sources", "seed", "words"]
    assert (parameters["words"].default, parameters["words"].annotation) == (3, int)
    for section in ("Parameters", "Returns", "Notes", "References", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in function.__doc__
    assert ">>> 1" in function.__doc__


@pytest.mark.parametrize("name", sorted(METRICS))
def test_public_functions_have_no_other_attributes(name):
    function = METRICS[name].function
    assert getattr(portrayal.metrics, function.__name__) is function
    with pytest.raises(AttributeError):
        function.CARD  # noqa: B018
    assert "attribute : str or None, default None" in function.__doc__
    assert METRICS[name].card.paper.split()[0] in function.__doc__


def test_unknown_options_are_refused_with_a_suggestion(registered):
    function = metric(card("x"))(compute)
    with pytest.raises(PortrayalError, match="Did you mean 'words'"):
        function(portrayal.Study.from_frames(), wordz=1)


def test_a_name_can_be_taken_once(registered):
    metric(card("x"))(compute)

    def other(study, *, attribute, sources, seed=0):
        """Another."""

    with pytest.raises(ValueError, match="there is already a metric 'x', of the package portrayal"):
        metric(card("x"))(other)
    assert METRICS["x"].compute is compute


def test_a_cell_of_a_notebook_can_be_run_again(registered):
    metric(card("x"))(compute)
    metric(card("x", "harms"))(compute)
    assert METRICS["x"].card.answers == "harms"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (card("Bad name"), "is no name of a metric"),
        (card("x", "weather"), "answers the unknown question 'weather'"),
    ],
)
def test_cards_that_cannot_be_registered(registered, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        metric(wrong)(compute)
    assert wrong.name not in METRICS


def test_the_stub_is_up_to_date():
    assert (ROOT / PATH).read_text() == metric_stub(), "run `make docs`"


def install(folder: Path, entry_points: str, **modules: str) -> None:
    """Make a folder look as pip leaves it: modules, and the metadata of a package."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    metadata = folder / "my_metrics-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-metrics\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(entry_points)


def python(folder: Path, code: str) -> str:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_plug_in_is_a_metric_like_any_other(tmp_path):
    install(
        tmp_path, "[portrayal.metrics]\nhedging = hedging\n", hedging=(TUTORIAL / "hedging.py").read_text()
    )
    output = python(
        tmp_path,
        "import portrayal\nfrom portrayal.metrics import METRICS, PACKAGES, PROBLEMS, hedging\n"
        "print(PACKAGES['hedging'], METRICS['hedging'].card.answers, PROBLEMS, hedging.__module__)",
    )
    assert output == "my-metrics 1.2 names {} hedging\n"


def test_broken_plug_ins_are_named_and_leave_the_rest_working(tmp_path):
    install(
        tmp_path,
        "[portrayal.metrics]\na = missing\nb = stops\nc = nothing\nd = twice\ne = good\n",
        stops="import sys\nsys.exit(1)",
        nothing="",
        twice="from portrayal.metrics import metric, Card, Term\nfrom dataclasses import replace\n"
        "from portrayal.metrics import CARDS\n"
        "def compute(study, *, attribute, sources, seed=0): ...\n"
        "metric(replace(CARDS['error'], name='partly'))(compute)\n"
        "def other(study, *, attribute, sources, seed=0): ...\n"
        "metric(CARDS['error'])(other)\n",
        good=(TUTORIAL / "hedging.py").read_text(),
    )
    output = python(
        tmp_path,
        "from portrayal.metrics import METRICS, CARDS, PROBLEMS\n"
        "print(*PROBLEMS.values(), 'hedging' in METRICS, 'partly' in CARDS, len(METRICS), sep='\\n')",
    )
    start = "The plug-in '{}' of the package my-metrics 1.2 cannot be used: "
    assert output.splitlines() == [
        start.format("a") + "ModuleNotFoundError: No module named 'missing'.",
        start.format("b") + "SystemExit: 1.",
        start.format("c") + "it registers no metric.",
        start.format("d") + "ValueError: there is already a metric 'error', of the package portrayal.",
        "True",
        "False",
        str(len(METRICS) + 1),
    ]


def test_a_broken_plug_in_that_is_asked_for_by_name(tmp_path):
    install(tmp_path, "[portrayal.metrics]\npoliteness = missing\n")
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom portrayal.cli.main import main; main()",
    ]
    process = subprocess.run([*command, "score", "politeness", "study"], capture_output=True, text=True)
    assert process.returncode == 2
    assert (
        "The plug-in 'politeness' of the package my-metrics 1.2 cannot be used: ModuleNotFoundError"
        in process.stderr
    )


def test_a_checkpoint_knows_the_code_of_a_plug_in(tmp_path):
    """An audit that goes on after a plug-in changed must not mix the old numbers with new ones."""
    install(
        tmp_path, "[portrayal.metrics]\nhedging = hedging\n", hedging=(TUTORIAL / "hedging.py").read_text()
    )
    code = (
        "import portrayal\nfrom portrayal.metrics.base.tasks import _task_key\n"
        "print(_task_key(portrayal.Study.from_frames(), {'metric': 'hedging'}))"
    )
    first = python(tmp_path, code)
    assert python(tmp_path, code) == first
    (tmp_path / "hedging.py").write_text((TUTORIAL / "hedging.py").read_text().replace("maybe|", ""))
    assert python(tmp_path, code) != first
