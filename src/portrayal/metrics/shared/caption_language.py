"""Check that captions are in the language of the word lists; captions in another language are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from portrayal.lexicon import ENGLISH, Coverage, Lexicon, coverage
from portrayal.results import Results, join_cautions, single_spaced
from portrayal.study import Study


def unreadable_sources(study: Study, sources: Iterable[str], lexicon: Lexicon | None) -> dict[str, str]:
    """The sources whose captions the lexicon cannot read, with the reason; without a lexicon: English lists."""
    reasons = {}
    for source in sources:
        known = source_coverage(study, source, lexicon)
        if known.is_refused:
            reasons[source] = f"{_coverage_text(source, known, lexicon)}, {_advice(lexicon)}."
    return reasons


def language_cautions(study: Study, sources: Iterable[str], lexicon: Lexicon | None) -> dict[str, str]:
    """The sources of which a considerable part of the captions cannot be read, with a caution."""
    sentences = {}
    for source in sources:
        known = source_coverage(study, source, lexicon)
        if known.is_low:
            sentences[source] = single_spaced(
                f"{_coverage_text(source, known, lexicon)}; words in others are not found."
            )
    return sentences


def add_language_cautions(
    results: Results, sentences: Mapping[str, str], terms: Iterable[str] = ()
) -> Results:
    """The results with cautions on the rows of some sources; with `terms`, only on rows of these terms."""
    if not sentences:
        return results
    chosen_terms = set(terms)
    rows = []
    for row in results.measurements:
        sentence = sentences.get(row.system or "")
        if sentence and (not chosen_terms or row.term in chosen_terms):
            row = replace(row, caution=join_cautions([row.caution, sentence]))
        rows.append(row)
    return replace(results, measurements=tuple(rows))


@lru_cache(maxsize=64)
def source_coverage(study: Study, source: str, lexicon: Lexicon | None) -> Coverage:
    """How many captions of a source the lexicon can read; empty for a source without captions."""
    if source not in study.sources:
        return Coverage(0, 0)
    return coverage(study.captions_of(source)["caption"].to_list(), lexicon)


def _coverage_text(source: str, known: Coverage, lexicon: Lexicon | None) -> str:
    language = ENGLISH if lexicon is None else lexicon.language
    return (
        f"Of {known.captions:,} captions of '{source}' that were read, {known.covered:,} seem to be in the language of "
        f"the word lists ({language})"
    )


def _advice(lexicon: Lexicon | None) -> str:
    if lexicon is None:
        return "and the shipped lists that are needed here are English"
    return (
        f"so what the lexicon '{lexicon.name}' does not find has no meaning; give a lexicon of the captions' language "
        'with --lexicon FILE (lexicon=...), which has a line such as language = "de"'
    )
