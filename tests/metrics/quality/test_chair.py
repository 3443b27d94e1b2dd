"""CHAIR on real captions and COCO's instances, against a second implementation."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest

import portrayal
from portrayal.study import Study

IMAGES = 300


def labels_by_form(path) -> dict[tuple[str, ...], str]:
    """Every word or phrase of CHAIR's list, and its plain plural, with the label it stands for."""
    label_of: dict[tuple[str, ...], str] = {}
    for line in sorted(path.read_text().splitlines()):
        words = [word.strip().lower() for word in line.split(",") if word.strip()]
        for word in words:
            ending = "es" if re.search("(s|x|ch|sh)$", word) else "s"
            plural = re.sub("([^aeiou])ys$", r"\1ies", re.sub("fes$", "ves", word + ending))
            for form in (word, plural):
                label_of.setdefault(tuple(form.split()), words[0])
    return label_of


def mentioned_labels(caption: str, label_of: dict[tuple[str, ...], str]) -> list[str]:
    words, position, labels = re.findall(r"[a-z0-9]+", caption.lower()), 0, []
    while position < len(words):
        length = next((n for n in (3, 2, 1) if tuple(words[position : position + n]) in label_of), 0)
        if length:
            labels.append(label_of[tuple(words[position : position + length])])
        position += max(length, 1)
    return labels


@pytest.mark.parametrize("truth", ["both", "labels"])
def test_chair_of_real_captions_agrees_with_a_second_implementation(shared, truth):
    """As published (Rohrbach et al. 2018): instances united with what references name; or instances alone."""
    synonyms = shared / "coco" / "object_synonyms.txt"
    lines = (
        (shared / "coco" / "human_captions_val2014.jsonl").read_text(encoding="utf-8").splitlines()[:IMAGES]
    )
    references = {str(row["img_id"]): row["captions"] for row in map(json.loads, lines)}
    instances = json.loads((shared / "coco" / "instance_labels_val2014.json").read_text())
    caption_rows = json.loads((shared / "captioners" / "val2014" / "liu17.json").read_text())
    captions = {
        str(row["image_id"]): row["caption"] for row in caption_rows if str(row["image_id"]) in references
    }
    label_of = labels_by_form(synonyms)
    n_false = n_mentions = n_captions_false = 0
    for image, caption in captions.items():
        true_labels = set(instances[image])
        if truth == "both":
            true_labels |= {
                label for reference in references[image] for label in mentioned_labels(reference, label_of)
            }
        hallucinated = [label for label in mentioned_labels(caption, label_of) if label not in true_labels]
        n_false, n_mentions = (
            n_false + len(hallucinated),
            n_mentions + len(mentioned_labels(caption, label_of)),
        )
        n_captions_false += bool(hallucinated)
    study = Study.from_frames(
        captions=pl.DataFrame(
            {"image_id": list(captions), "system": "s", "caption": list(captions.values())}
        ),
        references=pl.DataFrame({"image_id": list(references), "captions": list(references.values())}),
        objects=pl.DataFrame(
            {"image_id": list(captions), "labels": [instances[image] for image in captions]}
        ),
    )
    results = portrayal.metrics.quality(
        study, bootstrap=20, truth=truth, synonyms=str(synonyms), sources=["s"]
    )
    rows = {m.term: m for m in results.measurements if m.group is None}
    assert rows["chair-i"].value == pytest.approx(n_false / n_mentions)
    assert rows["chair-s"].value == pytest.approx(n_captions_false / len(captions))
    assert (rows["chair-s"].n, rows["chair-s"].settings["truth"]) == (IMAGES, truth)
