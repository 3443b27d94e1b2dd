"""Which pictures are of one scene: what is found on several of them is one observation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from portrayal.counterfactual.manifest import Instance


def same_scenes(instances: Sequence[Instance]) -> list[str]:
    """Of each instance the name of its scene: pictures that are each other's counterfactuals are of one."""
    root: dict[Path, Path] = {}

    def top(path: Path) -> Path:
        while root.setdefault(path, path) != path:
            path = root[path]
        return path

    for one in instances:
        if one.exact is not None:
            first, second = sorted((top(one.path), top(one.exact)))
            root[second] = first
    named: dict[Path, str] = {}
    for one in sorted(instances, key=lambda one: one.image):
        named.setdefault(top(one.path), one.image)
    return [named[top(one.path)] for one in instances]
