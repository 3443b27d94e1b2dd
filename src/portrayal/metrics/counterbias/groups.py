"""The groups, concepts and readable images of a manifest, and the words that name the groups in texts."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from portrayal.counterfactual.concepts import CONCEPTS_BY_KIND
from portrayal.counterfactual.manifest import Instance, Manifest
from portrayal.errors import InputError, PortrayalError, Problem, Undefined, unknown_name
from portrayal.lexicon import Lexicon, find_lexicon, load_lexicon
from portrayal.models.vision.images import read_image

CUSTOM_KIND = "concept"  # of concepts that VL-Bias does not list


def select_instances(manifest: Manifest, concepts: Sequence[str] | None) -> list[Instance]:
    """Return the rows of the manifest; with `concepts`, every image of a person with each of these."""
    if not concepts:
        return list(manifest.instances)
    kind_of = {concept: kind for kind, listed in CONCEPTS_BY_KIND.items() for concept in listed}
    unique_images = {(instance.image, instance.group): instance for instance in manifest.instances}
    wanted = dict.fromkeys(concept.strip().lower() for concept in concepts)
    return [
        replace(instance, concept=concept, kind=kind_of.get(concept, CUSTOM_KIND))
        for instance in unique_images.values()
        for concept in wanted
    ]


def resolve_lexicon(attribute: str, lexicon: Lexicon | str | None) -> Lexicon | None:
    """Return the named lexicon, else the attribute's own if there is one."""
    return find_lexicon(attribute) if lexicon is None else load_lexicon(lexicon)


def ordered_groups(
    instances: Sequence[Instance], groups: Sequence[str] | None, lexicon: Lexicon | None
) -> tuple[str, ...]:
    """Return the groups: as named, else in the lexicon's order, else in the manifest's. Bias is toward the first."""
    present = list(dict.fromkeys(instance.group for instance in instances))
    if groups is not None:
        for group in groups:
            if group not in present:
                raise unknown_name("group of the manifest", group, present)
        if len(set(groups)) < 2 or len(set(groups)) < len(groups):
            raise PortrayalError("Name two or more groups, each once.")
        return tuple(groups)
    in_lexicon = [group for group in (lexicon.groups if lexicon is not None else ()) if group in present]
    ordered = (*in_lexicon, *(group for group in present if group not in in_lexicon))
    if len(ordered) < 2:
        raise Undefined(f"All images are of '{ordered[0]}': there is no other group to change to.")
    return ordered


def check_group_words(words: Mapping[str, str] | None, groups: Sequence[str]) -> None:
    """Raise if words are given for a group that the manifest does not have."""
    for group in words or ():
        if group not in groups:
            raise unknown_name("group of the manifest", group, groups)


def group_word(group: str, lexicon: Lexicon | None) -> str:
    """Return the word that names a group in texts: the lexicon's word, else the group's own name."""
    return (lexicon.word_for(group) if lexicon is not None else None) or group


def readable_instances(
    instances: Sequence[Instance], skip_bad: bool, exact: bool
) -> tuple[list[Instance], dict[Path, Problem]]:
    """Return the rows whose images can be read, and the problems of the others.

    All images are checked before any model runs.
    """

    def files(instance: Instance) -> list[Path]:
        return [
            instance.path,
            *([instance.counterfactual] if exact and instance.counterfactual is not None else []),
        ]

    paths = list(dict.fromkeys(path for instance in instances for path in files(instance)))
    with ThreadPoolExecutor() as readers:
        problems = readers.map(_read_problem, paths)
        bad = {path: problem for path, problem in zip(paths, problems, strict=True) if problem is not None}
    if bad and not skip_bad:
        raise InputError(list(bad.values()))
    readable = [instance for instance in instances if not any(path in bad for path in files(instance))]
    if not readable:
        raise Undefined("None of the manifest's images can be read.")
    return readable, bad


def _read_problem(path: Path) -> Problem | None:
    try:
        read_image(path)
    except InputError as error:
        return error.problems[0]
    return None


def study_summary(
    manifest: Manifest, instances: Sequence[Instance], bad: dict[Path, Problem], models: Sequence[str]
) -> dict[str, Any]:
    """Return what was measured, for the provenance of the results."""
    rows = [
        (instance.image, instance.group, instance.concept, instance.kind, instance.path.stat().st_size)
        for instance in instances
    ]
    images = {(instance.image, instance.group) for instance in instances}
    return {
        "name": manifest.name,
        "digest": hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16],
        "systems": list(models),
        "images": len({image for image, _ in images}),
        "instances": len(instances),
        "groups": {"of the person": dict(Counter(group for _, group in images))},
        "left_out": manifest.n_skipped + len(bad),
    }
