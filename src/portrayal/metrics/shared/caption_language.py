"""Whether the word lists of a metric can read the captions of a study: captions in another language are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from portrayal.lexicon import ENGLISH, Coverage, Lexicon, coverage
from portrayal.results import Results, join_cautions, one_spaced
from portrayal.study import Study


def unread(study: Study, sources: Iterable[str], lexicon: Lexicon | None) -> dict[str, str]:
    """The sources whose captions the lexicon cannot read, each with the reason; no lexicon: English lists."""
    found = {}
    for source in sources:
        known = covered(study, source, lexicon)
        if known.refused:
            found[source] = f"{_estimate(source, known, lexicon)}, {_way_out(lexicon)}."
    return found


def cautions(study: Study, sources: Iterable[str], lexicon: Lexicon | None) -> dict[str, str]:
    """The sources of which a good part cannot be read, each with a sentence."""
    found = {}
    for source in sources:
        known = covered(study, source, lexicon)
        if known.doubtful:
            found[source] = one_spaced(f"{_estimate(source, known, lexicon)}; words in others are not found.")
    return found


def with_cautions(results: Results, sentences: Mapping[str, str], terms: Iterable[str] = ()) -> Results:
    """The same results, with a caution on the rows of some systems; with `terms`, on the rows of these."""
    if not sentences:
        return results
    chosen = set(terms)
    rows = []
    for row in results.measurements:
        sentence = sentences.get(row.system or "")
        if sentence and (not chosen or row.term in chosen):
            row = replace(row, caution=join_cautions([row.caution, sentence]))
        rows.append(row)
    return replace(results, measurements=tuple(rows))


@lru_cache(maxsize=64)
def covered(study: Study, source: str, lexicon: Lexicon | None) -> Coverage:
    """How many of a source's captions the lexicon can read; nothing is known of a source that writes none."""
    if source not in study.sources:
        return Coverage(0, 0)
    return coverage(study.spoken(source)["caption"].to_list(), lexicon)


def _estimate(source: str, known: Coverage, lexicon: Lexicon | None) -> str:
    language = ENGLISH if lexicon is None else lexicon.language
    return (
        f"Of {known.captions:,} captions of '{source}' that were read, {known.covered:,} seem to be in the language of "
        f"the word lists ({language})"
    )


def _way_out(lexicon: Lexicon | None) -> str:
    if lexicon is None:
        return "and the shipped lists that are needed here are English"
    return (
        f"so what the lexicon '{lexicon.name}' does not find says nothing; give a lexicon of the captions' language "
        'with --lexicon FILE (lexicon=...), which has a line such as language = "de"'
    )
