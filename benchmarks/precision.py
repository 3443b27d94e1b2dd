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
Finder = Callable[[ParsedCaption], set[str]]


class Line(NamedTuple):
    corpus: str
    place: str
    caption: str


def data() -> Path:
    return Path(os.environ.get("PORTRAYAL_SHARED", Path(__file__).parents[2] / "shared" / "data"))


def captions() -> Iterator[Line]:
    """Yield every caption of the corpora, each text once."""
    yielded: set[str] = set()
    for line in every_caption():
        if line.caption not in yielded:
            yielded.add(line.caption)
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


def rules() -> dict[str, Finder]:
    """Return each rule as a function from a caption to the words that it finds there."""
    finders: dict[str, Finder] = {}
    for axis in AXES:
        finders[f"identity: {axis}"] = lambda parsed, axis=axis: set(parsed.axes.get(axis, ()))
    finders["entities"] = lambda parsed: set(parsed.entities)
    finders["a person is mentioned"] = lambda parsed: {parsed.person} - {None}
    finders["nobody is mentioned"] = lambda parsed: {""} if parsed.person is None else set()
    for level in ("best", "upper"):
        finders[f"demeaning: {level}"] = lambda parsed, level=level: {
            word for word, listing in parsed.demeaning if getattr(listing, level)
        }
    listed = frozenset().union(*(pair.words for pair in in_context()))
    finders["demeaning: in context"] = lambda parsed: set(listed & parsed.lemmas)
    finders["demeaning: adjective as noun"] = lambda parsed: set(parsed.adjectives_as_nouns)
    unseen = not_imageable()
    finders["not imageable"] = lambda parsed: {
        word.lemma for word in parsed.words if unseen.kind(word.lemma, word.pos)
    }
    return finders


def lists() -> WordLists:
    return WordLists(identity_words(), entity_names(), demeaning_words(), adjectives_as_nouns())


def hits(rule: str) -> list[tuple[Line, str]]:
    """Return every match of a rule, in an order that looks random and is always the same."""
    finds, read = rules()[rule], lists()
    matches = [(line, word) for line in captions() for word in finds(ParsedCaption(line.caption, read))]
    return sorted(matches, key=lambda hit: hashlib.sha256(f"{rule}{hit}".encode()).digest())


def verdicts() -> list[dict[str, str]]:
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    judged = verdicts()
    has_data = data().is_dir()
    known = {(line.corpus, line.place): line.caption for line in every_caption()} if has_data else {}
    read, finds = lists(), rules()
    for rule in dict.fromkeys(row["rule"] for row in judged):
        rows = [row for row in judged if row["rule"] == rule]
        right = sum(row["verdict"] == "right" for row in rows)
        low, high = wilson(right, len(rows))
        summary = f"  {rule}: {right} of {len(rows)} right ({right / len(rows):.0%}, {low:.0%} to {high:.0%})"
        if has_data:
            still = [
                row["word"] in finds[rule](ParsedCaption(known[row["corpus"], row["place"]], read))
                for row in rows
            ]
            summary += f"; {sum(still)} still found"
        print(summary)


if __name__ == "__main__":
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    every = hits(sys.argv[1])
    print(f"{len(every):,} hits")
    for line, word in every[:wanted]:
        print(f"{line.corpus}\t{line.place}\t{word}\t{line.caption}")
