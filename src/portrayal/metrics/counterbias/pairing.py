"""Pair images of one scene: an image and its counterfactuals are one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from portrayal.counterfactual.manifest import Instance


def scene_names(instances: Sequence[Instance]) -> list[str]:
    """Return the scene name of each instance: images that are each other's counterfactuals share one."""
    parent: dict[Path, Path] = {}

    def root(path: Path) -> Path:
        while parent.setdefault(path, path) != path:
            path = parent[path]
        return path

    for instance in instances:
        if instance.counterfactual is not None:
            first, second = sorted((root(instance.path), root(instance.counterfactual)))
            parent[second] = first
    name_of: dict[Path, str] = {}
    for instance in sorted(instances, key=lambda instance: instance.image):
        name_of.setdefault(root(instance.path), instance.image)
    return [name_of[root(instance.path)] for instance in instances]
