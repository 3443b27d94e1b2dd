"""Whom a manifest shows, what they are asked about, and how texts name them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from portrayal.counterfactual.concepts import KINDS
from portrayal.counterfactual.manifest import Instance, Manifest
from portrayal.errors import InputError, PortrayalError, Problem, Undefined, unknown_name
from portrayal.lexicon import Lexicon, find_lexicon, load_lexicon
from portrayal.models.vision.images import read_picture

OWN_KIND = "concept"  # of concepts that VL-Bias does not list


def asked_about(manifest: Manifest, concepts: Sequence[str] | None) -> list[Instance]:
    """The rows of the manifest; with `concepts`, every picture of somebody with each of these."""
    if not concepts:
        return list(manifest.instances)
    kinds = {concept: kind for kind, listed in KINDS.items() for concept in listed}
    once = {(one.image, one.group): one for one in manifest.instances}
    wanted = dict.fromkeys(concept.strip().lower() for concept in concepts)
    return [
        replace(one, concept=concept, kind=kinds.get(concept, OWN_KIND))
        for one in once.values()
        for concept in wanted
    ]


def lexicon_of(attribute: str, lexicon: Lexicon | str | None) -> Lexicon | None:
    """The one that is named, else the attribute's own, where there is one."""
    return find_lexicon(attribute) if lexicon is None else load_lexicon(lexicon)


def ordered_groups(
    instances: Sequence[Instance], groups: Sequence[str] | None, lexicon: Lexicon | None
) -> tuple[str, ...]:
    """Bias is toward the first: as they are named, else in the lexicon's order, else in the manifest's."""
    there = list(dict.fromkeys(one.group for one in instances))
    if groups is not None:
        for group in groups:
            if group not in there:
                raise unknown_name("group of the manifest", group, there)
        if len(set(groups)) < 2 or len(set(groups)) < len(groups):
            raise PortrayalError("Name two or more groups, each once.")
        return tuple(groups)
    known = [group for group in (lexicon.groups if lexicon is not None else ()) if group in there]
    found = (*known, *(group for group in there if group not in known))
    if len(found) < 2:
        raise Undefined(f"All pictures are of '{found[0]}': there is no other group to change to.")
    return found


def check_words(words: Mapping[str, str] | None, groups: Sequence[str]) -> None:
    for group in words or ():
        if group not in groups:
            raise unknown_name("group of the manifest", group, groups)


def word_for(group: str, lexicon: Lexicon | None) -> str:
    """How texts name a group: by the lexicon's word, else by the group's own name."""
    return (lexicon.standing_for(group) if lexicon is not None else None) or group


def readable(
    instances: Sequence[Instance], skip_bad: bool, exact: bool
) -> tuple[list[Instance], dict[Path, Problem]]:
    """The rows whose pictures can be read, and what is wrong with the others: all are tried before a model is asked."""

    def files(one: Instance) -> list[Path]:
        return [one.path, *([one.exact] if exact and one.exact is not None else [])]

    paths = list(dict.fromkeys(path for one in instances for path in files(one)))
    with ThreadPoolExecutor() as readers:
        found = readers.map(_problem, paths)
        bad = {path: problem for path, problem in zip(paths, found, strict=True) if problem is not None}
    if bad and not skip_bad:
        raise InputError(list(bad.values()))
    left = [one for one in instances if not any(path in bad for path in files(one))]
    if not left:
        raise Undefined("None of the manifest's pictures can be read.")
    return left, bad


def _problem(path: Path) -> Problem | None:
    try:
        read_picture(path)
    except InputError as error:
        return error.problems[0]
    return None


def described(
    manifest: Manifest, instances: Sequence[Instance], bad: dict[Path, Problem], models: Sequence[str]
) -> dict[str, Any]:
    """What was measured, as the page tells it."""
    rows = [(one.image, one.group, one.concept, one.kind, one.path.stat().st_size) for one in instances]
    pictures = {(one.image, one.group) for one in instances}
    return {
        "name": manifest.name,
        "digest": hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16],
        "systems": list(models),
        "images": len({image for image, _ in pictures}),
        "instances": len(instances),
        "groups": {"of the person": dict(Counter(group for _, group in pictures))},
        "left_out": manifest.left_out + len(bad),
    }
