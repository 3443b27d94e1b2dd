"""CHAIR on real captions and COCO's instances, beside a second implementation."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest

import portrayal
from portrayal.study import Study

IMAGES = 300


def forms(path) -> dict[tuple[str, ...], str]:
    """Every word or phrase of CHAIR's list, and its plain plural, with the label it stands for."""
    found: dict[tuple[str, ...], str] = {}
    for line in sorted(path.read_text().splitlines()):
        words = [word.strip().lower() for word in line.split(",") if word.strip()]
        for word in words:
            ending = "es" if re.search("(s|x|ch|sh)$", word) else "s"
            several = re.sub("([^aeiou])ys$", r"\1ies", re.sub("fes$", "ves", word + ending))
            for form in (word, several):
                found.setdefault(tuple(form.split()), words[0])
    return found


def mentions(caption: str, known: dict[tuple[str, ...], str]) -> list[str]:
    words, place, found = re.findall(r"[a-z0-9]+", caption.lower()), 0, []
    while place < len(words):
        long = next((n for n in (3, 2, 1) if tuple(words[place : place + n]) in known), 0)
        if long:
            found.append(known[tuple(words[place : place + long])])
        place += max(long, 1)
    return found


@pytest.mark.parametrize("truth", ["both", "labels"])
def test_chair_of_real_captions_is_a_second_implementations(shared, truth):
    """As published (Rohrbach et al. 2018): instances united with what references name; or instances alone."""
    synonyms = shared / "coco" / "object_synonyms.txt"
    lines = (
        (shared / "coco" / "human_captions_val2014.jsonl").read_text(encoding="utf-8").splitlines()[:IMAGES]
    )
    people = {str(row["img_id"]): row["captions"] for row in map(json.loads, lines)}
    instances = json.loads((shared / "coco" / "instance_labels_val2014.json").read_text())
    results = json.loads((shared / "captioners" / "val2014" / "liu17.json").read_text())
    captions = {str(row["image_id"]): row["caption"] for row in results if str(row["image_id"]) in people}
    known = forms(synonyms)
    false = every = captions_with = 0
    for image, caption in captions.items():
        there = set(instances[image])
        if truth == "both":
            there |= {label for one in people[image] for label in mentions(one, known)}
        wrong = [label for label in mentions(caption, known) if label not in there]
        false, every = false + len(wrong), every + len(mentions(caption, known))
        captions_with += bool(wrong)
    study = Study.from_frames(
        captions=pl.DataFrame(
            {"image_id": list(captions), "system": "s", "caption": list(captions.values())}
        ),
        references=pl.DataFrame({"image_id": list(people), "captions": list(people.values())}),
        objects=pl.DataFrame(
            {"image_id": list(captions), "labels": [instances[image] for image in captions]}
        ),
    )
    rows = portrayal.metrics.quality(study, bootstrap=20, truth=truth, synonyms=str(synonyms), sources=["s"])
    found = {m.term: m for m in rows.measurements if m.group is None}
    assert found["chair-i"].value == pytest.approx(false / every)
    assert found["chair-s"].value == pytest.approx(captions_with / len(captions))
    assert (found["chair-s"].n, found["chair-s"].settings["truth"]) == (IMAGES, truth)
