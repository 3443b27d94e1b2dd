"""Precision of the rules that match captions: matches in real captions, judged by reading, and the verdicts.

`python -m benchmarks precision` prints, for each rule, the share of judged matches that are right, and
whether the rule still finds them. `python -m benchmarks.precision RULE [COUNT]` prints matches to be judged.
The verdicts are in `docs/precision/harms.csv` without the captions, whose licence forbids copying: a row
names the corpus and the place in it.
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


def data_folder() -> Path:
    return Path(os.environ.get("PORTRAYAL_SHARED", Path(__file__).parents[2] / "shared" / "data"))


def captions() -> Iterator[Line]:
    """Yield every caption of the corpora, each text once."""
    yielded: set[str] = set()
    for caption_row in all_captions():
        if caption_row.caption not in yielded:
            yielded.add(caption_row.caption)
            yield caption_row


def all_captions() -> Iterator[Line]:
    with (data_folder() / "coco" / "human_captions_val2014.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            for number, caption in enumerate(row["captions"]):
                yield Line("coco human", f"{row['img_id']}/{number}", caption)
    for path in sorted((data_folder() / "captioners" / "val2014").glob("*.json")):
        for row in json.loads(path.read_text()):
            yield Line(f"coco {path.stem}", str(row["image_id"]), row["caption"])
    with (data_folder() / "text" / "conceptual_captions_val.tsv").open(encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            yield Line("conceptual captions", str(number), text.partition("\t")[0].strip())
    with gzip.open(
        data_folder() / "text" / "flickr30k_entities_sentences.tsv.gz", "rt", encoding="utf-8"
    ) as file:
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
    demeaning_in_context = frozenset().union(*(pair.words for pair in in_context()))
    finders["demeaning: in context"] = lambda parsed: set(demeaning_in_context & parsed.lemmas)
    finders["demeaning: adjective as noun"] = lambda parsed: set(parsed.adjectives_as_nouns)
    not_imageable_words = not_imageable()
    finders["not imageable"] = lambda parsed: {
        word.lemma for word in parsed.words if not_imageable_words.kind(word.lemma, word.pos)
    }
    return finders


def word_lists() -> WordLists:
    return WordLists(identity_words(), entity_names(), demeaning_words(), adjectives_as_nouns())


def hits(rule: str) -> list[tuple[Line, str]]:
    """Return every match of a rule, in an order that looks random and is always the same."""
    match_rule, lists = rules()[rule], word_lists()
    matches = [
        (caption_row, word)
        for caption_row in captions()
        for word in match_rule(ParsedCaption(caption_row.caption, lists))
    ]
    return sorted(matches, key=lambda hit: hashlib.sha256(f"{rule}{hit}".encode()).digest())


def verdicts() -> list[dict[str, str]]:
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    verdict_rows = verdicts()
    has_data = data_folder().is_dir()
    caption_by_location = (
        {(caption_row.corpus, caption_row.place): caption_row.caption for caption_row in all_captions()}
        if has_data
        else {}
    )
    lists, rule_functions = word_lists(), rules()
    for rule in dict.fromkeys(row["rule"] for row in verdict_rows):
        rows = [row for row in verdict_rows if row["rule"] == rule]
        right = sum(row["verdict"] == "right" for row in rows)
        low, high = wilson(right, len(rows))
        summary = f"  {rule}: {right} of {len(rows)} right ({right / len(rows):.0%}, {low:.0%} to {high:.0%})"
        if has_data:
            still_matched = [
                row["word"]
                in rule_functions[rule](
                    ParsedCaption(caption_by_location[row["corpus"], row["place"]], lists)
                )
                for row in rows
            ]
            summary += f"; {sum(still_matched)} still found"
        print(summary)


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    all_hits = hits(sys.argv[1])
    print(f"{len(all_hits):,} hits")
    for caption_row, word in all_hits[:count]:
        print(f"{caption_row.corpus}\t{caption_row.place}\t{word}\t{caption_row.caption}")
