"""Build the tables of this folder from WordNet's database files (wndb(5), `wordnet-base` on Debian).

Run `python -m portrayal.lexicon.wordnet.build [FOLDER]` if WordNet changes, which is rare.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from portrayal.errors import InputError, Problem
from portrayal.files import replacing

TABLES_FOLDER = Path(__file__).parent
WORDNET_FOLDER = Path("/usr/share/wordnet")

# Part of speech by file name, by letter (pointers) and by digit (sense keys). "s" is a satellite adjective.
POS_OF_FILE = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}
POS_OF_LETTER = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
POS_OF_DIGIT = {"1": "noun", "2": "verb", "3": "adjective", "4": "adverb", "5": "adjective"}
EXCEPTION_FILES = ("noun", "verb", "adj")

# Lexicographer files by their number (lexnames(5)).
CATEGORIES = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition "
    "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object "
    "noun.person noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape "
    "noun.state noun.substance noun.time verb.body verb.change verb.cognition verb.communication "
    "verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception "
    "verb.possession verb.social verb.stative verb.weather adj.ppl"
).split()

HYPERNYM_SYMBOLS = {"noun": ("@", "@i"), "verb": ("@",), "adjective": (), "adverb": ()}
SYNTACTIC_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # syntactic position of an adjective: "asleep(p)"

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "number": pl.Int32,
    "part": pl.String,
    "words": pl.List(pl.String),
    "ranks": pl.List(pl.Int32),
    "counts": pl.List(pl.Int32),
    "hypernyms": pl.List(pl.Int32),
    "instance": pl.Boolean,
    "category": pl.String,
    "usage": pl.List(pl.Int32),
}


class Synset(NamedTuple):
    """The used fields of a line of a data file. Part of speech and offset identify a synset."""

    pos: str
    offset: int
    category: str
    words: tuple[str, ...]
    pointers: tuple[tuple[str, str, int], ...]  # symbol, part of speech, offset


def parse_synset(line: str) -> Synset:
    """Parse a line of a data file (wndb(5)).

    >>> parse_synset("00004475 03 n 02 organism 0 being 0 001 @ 00004258 n 0000 | a living thing")
    Synset(pos='noun', offset=4475, category='noun.Tops', words=('organism', 'being'), pointers=(('@', 'noun', 4258),))
    """
    fields = line.partition("|")[0].split()
    size = int(fields[3], 16)
    names = fields[4 : 4 + 2 * size : 2]
    first = 5 + 2 * size  # after the words: the number of pointers, then four fields for each
    count = int(fields[first - 1])
    pointers = [fields[first + 4 * k : first + 4 * k + 3] for k in range(count)]
    return Synset(
        POS_OF_LETTER[fields[2]],
        int(fields[0]),
        CATEGORIES[int(fields[1])],
        tuple(dict.fromkeys(normalize(SYNTACTIC_MARKER.sub("", name)) for name in names)),
        tuple((symbol, POS_OF_LETTER[letter], int(offset)) for symbol, offset, letter in pointers),
    )


def normalize(name: str) -> str:
    """A word as it is written in captions.

    >>> normalize("Fire_Hydrant")
    'fire hydrant'
    """
    return name.replace("_", " ").lower()


def build_tables(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Build the table of synsets (one row each) and the table of irregular forms."""
    synsets = [
        synset
        for pos in POS_OF_FILE
        for synset in sorted(map(parse_synset, data_lines(folder / f"data.{pos}")), key=synset_key)
    ]
    number = {synset_key(synset): index for index, synset in enumerate(synsets)}
    ranks: dict[tuple[str, str, int], int] = {}
    for name, pos in POS_OF_FILE.items():
        for line in data_lines(folder / f"index.{name}"):
            fields = line.split()
            senses = fields[-int(fields[2]) :]
            for rank, sense in enumerate(senses, 1):
                ranks[pos, normalize(fields[0]), int(sense)] = rank
    counts: dict[tuple[str, str, int], int] = {}
    for line in data_lines(folder / "cntlist.rev"):
        key, rank_text, count = line.split()
        word, _, sense_key = key.partition("%")
        counts[POS_OF_DIGIT[sense_key[0]], normalize(word), int(rank_text)] = int(count)

    rows = []
    for index, (pos, offset, category, words, pointers) in enumerate(synsets):
        word_ranks = [ranks[pos, word, offset] for word in words]
        rows.append(
            (
                index,
                pos,
                list(words),
                word_ranks,
                [counts.get((pos, word, rank), 0) for word, rank in zip(words, word_ranks, strict=True)],
                [
                    number[target_pos, target_offset]
                    for symbol, target_pos, target_offset in pointers
                    if symbol in HYPERNYM_SYMBOLS[pos]
                ],
                any(symbol == "@i" for symbol, _, _ in pointers),
                category,
                [
                    number[target_pos, target_offset]
                    for symbol, target_pos, target_offset in pointers
                    if symbol == ";u"
                ],
            )
        )
    irregular = [
        (normalize(form), POS_OF_FILE[pos], normalize(lemma))
        for pos in EXCEPTION_FILES
        for form, *lemmas in map(str.split, data_lines(folder / f"{pos}.exc"))
        for lemma in lemmas
    ]
    return (
        pl.DataFrame(rows, schema=SCHEMA, orient="row"),
        pl.DataFrame(irregular, schema=["form", "part", "lemma"], orient="row"),
    )


def synset_key(synset: Synset) -> tuple[str, int]:
    return synset.pos, synset.offset


def data_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file without the licence, which is indented."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise InputError([Problem(str(path), "a file of WordNet 3.0", "none")]) from None
    return (line for line in text.splitlines() if line and not line.startswith(" "))


def build(folder: Path = WORDNET_FOLDER, out: Path = TABLES_FOLDER) -> None:
    """Write both tables. The output is byte-identical for equal input."""
    for name, table in zip(("wordnet.parquet", "exceptions.parquet"), build_tables(folder), strict=True):
        with replacing(out / name) as temporary:
            table.write_parquet(
                temporary,
                compression="zstd",
                compression_level=22,
                row_group_size=len(table),
                statistics=False,
            )


if __name__ == "__main__":
    build(*map(Path, sys.argv[1:2]))
