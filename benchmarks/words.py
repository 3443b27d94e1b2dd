"""Masking and finding group words in a million captions, on one core."""

from __future__ import annotations

from benchmarks._timing import best
from portrayal.lab import make_study
from portrayal.lexicon import MentionFinder, load_lexicon

CAPTIONS = 1_000_000


def main() -> None:
    references = make_study(scenes=20_000, captioners=[]).references["caption"].to_list()
    captions = (references * (CAPTIONS // len(references) + 1))[:CAPTIONS]
    for name in ("gender", "gender-broad", "age"):
        finder = MentionFinder(load_lexicon(name))
        seconds = best(lambda finder=finder: finder.mask_all(captions, "word"), runs=1)
        print(f"  mask {CAPTIONS:,} captions with '{name}': {seconds:.1f} s")
    finder = MentionFinder(load_lexicon("gender"))
    seconds = best(lambda: [finder.groups(caption) for caption in captions], runs=1)
    print(f"  groups named in {CAPTIONS:,} captions: {seconds:.1f} s")
