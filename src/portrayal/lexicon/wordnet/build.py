"""Makes the tables of this folder from WordNet's own database files (wndb(5), `wordnet-base` on Debian).

Run `python -m portrayal.lexicon.wordnet.build [FOLDER]` where WordNet changes, which is to say hardly ever.
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

HERE = Path(__file__).parent
FOLDER = Path("/usr/share/wordnet")

# How files name a part of speech, and how a sense key and a pointer do. "s" is an adjective that is near another.
PARTS = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}
OF_LETTER = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
OF_DIGIT = {"1": "noun", "2": "verb", "3": "adjective", "4": "adverb", "5": "adjective"}
WITH_EXCEPTIONS = ("noun", "verb", "adj")

# Lexicographer files by their number (lexnames(5)).
CATEGORIES = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition "
    "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object "
    "noun.person noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape "
    "noun.state noun.substance noun.time verb.body verb.change verb.cognition verb.communication "
    "verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception "
    "verb.possession verb.social verb.stative verb.weather adj.ppl"
).split()

ABOVE = {"noun": ("@", "@i"), "verb": ("@",), "adjective": (), "adverb": ()}
MARKER = re.compile(r"\((?:a|p|ip)\)$")  # where an adjective may stand: "asleep(p)"

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
    """A line of a data file, as far as it is of use here. Synsets are named by part and offset."""

    part: str
    offset: int
    category: str
    words: tuple[str, ...]
    pointers: tuple[tuple[str, str, int], ...]  # symbol, part, offset


def synset_of(line: str) -> Synset:
    """What a line of a data file says (wndb(5)).

    >>> synset_of("00004475 03 n 02 organism 0 being 0 001 @ 00004258 n 0000 | a living thing")
    Synset(part='noun', offset=4475, category='noun.Tops', words=('organism', 'being'), pointers=(('@', 'noun', 4258),))
    """
    fields = line.partition("|")[0].split()
    size = int(fields[3], 16)
    names = fields[4 : 4 + 2 * size : 2]
    first = 5 + 2 * size  # after the words stands how many pointers follow, of four fields each
    count = int(fields[first - 1])
    pointers = [fields[first + 4 * k : first + 4 * k + 3] for k in range(count)]
    return Synset(
        OF_LETTER[fields[2]],
        int(fields[0]),
        CATEGORIES[int(fields[1])],
        tuple(dict.fromkeys(plain(MARKER.sub("", name)) for name in names)),
        tuple((symbol, OF_LETTER[letter], int(offset)) for symbol, offset, letter in pointers),
    )


def plain(name: str) -> str:
    """A word as captions have it.

    >>> plain("Fire_Hydrant")
    'fire hydrant'
    """
    return name.replace("_", " ").lower()


def tables(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The synsets, a row each, and the irregular forms."""
    synsets = [
        synset for part in PARTS for synset in sorted(map(synset_of, lines(folder / f"data.{part}")), key=at)
    ]
    number = {at(synset): place for place, synset in enumerate(synsets)}
    ranks: dict[tuple[str, str, int], int] = {}
    for name, part in PARTS.items():
        for line in lines(folder / f"index.{name}"):
            fields = line.split()
            senses = fields[-int(fields[2]) :]
            for rank, sense in enumerate(senses, 1):
                ranks[part, plain(fields[0]), int(sense)] = rank
    counts: dict[tuple[str, str, int], int] = {}
    for line in lines(folder / "cntlist.rev"):
        key, which, count = line.split()
        word, _, rest = key.partition("%")
        counts[OF_DIGIT[rest[0]], plain(word), int(which)] = int(count)

    rows = []
    for place, (part, offset, category, words, pointers) in enumerate(synsets):
        of_words = [ranks[part, word, offset] for word in words]
        rows.append(
            (
                place,
                part,
                list(words),
                of_words,
                [counts.get((part, word, rank), 0) for word, rank in zip(words, of_words, strict=True)],
                [number[to, there] for symbol, to, there in pointers if symbol in ABOVE[part]],
                any(symbol == "@i" for symbol, _, _ in pointers),
                category,
                [number[to, there] for symbol, to, there in pointers if symbol == ";u"],
            )
        )
    irregular = [
        (plain(form), PARTS[part], plain(lemma))
        for part in WITH_EXCEPTIONS
        for form, *lemmas in map(str.split, lines(folder / f"{part}.exc"))
        for lemma in lemmas
    ]
    return (
        pl.DataFrame(rows, schema=SCHEMA, orient="row"),
        pl.DataFrame(irregular, schema=["form", "part", "lemma"], orient="row"),
    )


def at(synset: Synset) -> tuple[str, int]:
    return synset.part, synset.offset


def lines(path: Path) -> Iterator[str]:
    """The lines of a file, without the licence, which is indented."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise InputError([Problem(str(path), "a file of WordNet 3.0", "none")]) from None
    return (line for line in text.splitlines() if line and not line.startswith(" "))


def build(folder: Path = FOLDER, out: Path = HERE) -> None:
    """Write both tables. The same files give the same bytes."""
    for name, table in zip(("wordnet.parquet", "exceptions.parquet"), tables(folder), strict=True):
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
