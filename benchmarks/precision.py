"""Precision of the rules that match captions: matches in real captions, judged by reading, and the verdicts.

`python -m benchmarks precision` prints, for each rule, the share of judged matches that are right, and
whether the rule still finds them. `python -m benchmarks.precision RULE [COUNT]` prints matches to be judged.
The verdicts are in `docs/precision/harms.csv` without the captions, whose licence forbids copying: a line
names the corpus and the place.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from portrayal.lexicon.entities import entity_names
from portrayal.lexicon.harms import adjectives_as_nouns, demeaning_words, in_context, not_imageable
from portrayal.lexicon.identity import AXES, identity_words
from portrayal.metrics.harms.parsed_captions import ParsedCaption, WordLists
from portrayal.stats import wilson

VERDICTS = Path(__file__).parents[1] / "docs" / "precision" / "harms.csv"
COLUMNS = ("rule", "corpus", "place", "word", "verdict")
Finds = Callable[[ParsedCaption], set[str]]


class Line(NamedTuple):
    corpus: str
    place: str
    caption: str


def data() -> Path:
    return Path(os.environ.get("PORTRAYAL_SHARED", Path(__file__).parents[2] / "shared" / "data"))


def captions() -> Iterator[Line]:
    """Yield every caption of the corpora, each text once."""
    seen: set[str] = set()
    for line in every_caption():
        if line.caption not in seen:
            seen.add(line.caption)
            yield line


def every_caption() -> Iterator[Line]:
    with (data() / "coco" / "human_captions_val2014.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            for number, caption in enumerate(row["captions"]):
                yield Line("coco human", f"{row['img_id']}/{number}", caption)
    for path in sorted((data() / "captioners" / "val2014").glob("*.json")):
        for row in json.loads(path.read_text()):
            yield Line(f"coco {path.stem}", str(row["image_id"]), row["caption"])
    with (data() / "text" / "conceptual_captions_val.tsv").open(encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            yield Line("conceptual captions", str(number), text.partition("\t")[0].strip())
    with gzip.open(data() / "text" / "flickr30k_entities_sentences.tsv.gz", "rt", encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            sentence = text.rstrip("\n").split("\t")[-1]
            yield Line("flickr30k", str(number), re.sub(r"\[/EN\S*\s([^\]]*)\]", r"\1", sentence))


def rules() -> dict[str, Finds]:
    """Return each rule as a function from a caption to the words that it finds there."""
    found: dict[str, Finds] = {}
    for axis in AXES:
        found[f"identity: {axis}"] = lambda reading, axis=axis: set(reading.axes.get(axis, ()))
    found["entities"] = lambda reading: set(reading.entities)
    found["a person is mentioned"] = lambda reading: {reading.person} - {None}
    found["nobody is mentioned"] = lambda reading: {""} if reading.person is None else set()
    for level in ("best", "upper"):
        found[f"demeaning: {level}"] = lambda reading, level=level: {
            word for word, listing in reading.demeaning if getattr(listing, level)
        }
    listed = frozenset().union(*(pair.words for pair in in_context()))
    found["demeaning: in context"] = lambda reading: set(listed & reading.lemmas)
    found["demeaning: adjective as noun"] = lambda reading: set(reading.adjectives_as_nouns)
    unseen = not_imageable()
    found["not imageable"] = lambda reading: {
        word.lemma for word in reading.words if unseen.kind(word.lemma, word.part)
    }
    return found


def lists() -> WordLists:
    return WordLists(identity_words(), entity_names(), demeaning_words(), adjectives_as_nouns())


def hits(rule: str) -> list[tuple[Line, str]]:
    """Return every match of a rule, in an order that looks random and is always the same."""
    finds, read = rules()[rule], lists()
    found = [(line, word) for line in captions() for word in finds(ParsedCaption(line.caption, read))]
    return sorted(found, key=lambda hit: hashlib.sha256(f"{rule}{hit}".encode()).digest())


def verdicts() -> list[dict[str, str]]:
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    judged = verdicts()
    here = data().is_dir()
    known = {(line.corpus, line.place): line.caption for line in every_caption()} if here else {}
    read, finds = lists(), rules()
    for rule in dict.fromkeys(row["rule"] for row in judged):
        rows = [row for row in judged if row["rule"] == rule]
        right = sum(row["verdict"] == "right" for row in rows)
        low, high = wilson(right, len(rows))
        told = f"  {rule}: {right} of {len(rows)} right ({right / len(rows):.0%}, {low:.0%} to {high:.0%})"
        if here:
            still = [
                row["word"] in finds[rule](ParsedCaption(known[row["corpus"], row["place"]], read))
                for row in rows
            ]
            told += f"; {sum(still)} still found"
        print(told)


if __name__ == "__main__":
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    every = hits(sys.argv[1])
    print(f"{len(every):,} hits")
    for line, word in every[:wanted]:
        print(f"{line.corpus}\t{line.place}\t{word}\t{line.caption}")
