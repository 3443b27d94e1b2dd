"""Reads the little LaTeX that exports write, strictly: what it does not know, and what does not match, is an error."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Longest first; written by hand, not taken from the code under test.
SIGNS = {
    "\\textbackslash{}": "\\", "\\textbraceleft{}": "{", "\\textbraceright{}": "}", "\\textasciitilde{}": "~",
    "\\textasciicircum{}": "^", "\\textless{}": "<", "\\textgreater{}": ">", "\\textbar{}": "|",
    "\\textperiodcentered{}": "·", "\\ldots{}": "…", "\\dag{}": "†", "\\ensuremath{\\rightarrow}": "→",
    "\\ensuremath{\\leftarrow}": "←", "\\ensuremath{\\times}": "×", "\\ensuremath{\\pm}": "±",
    "\\ensuremath{\\le}": "≤", "\\ensuremath{\\ge}": "≥", "\\ensuremath{-}": "−", "\\ss{}": "ß", "\\ae{}": "æ",
    "\\AE{}": "Æ", "\\oe{}": "œ", "\\OE{}": "Œ", "\\o{}": "ø", "\\O{}": "Ø", "\\l{}": "ł", "\\L{}": "Ł",
    "\\i{}": "ı", "\\&": "&", "\\%": "%", "\\$": "$", "\\#": "#", "\\_": "_", "{''}": '"', "{``}": "“",
    "{`}": "`", "{}": "", "---": "—", "--": "–", "''": "”", ",,": "„",
}  # fmt: skip
ACCENTS = dict(
    zip(
        "`'^~=u.\"rHvc",
        "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327",
        strict=True,
    )
)
SPECIAL = set('\\{}&%$#_~^<>|"`')
ACCENT = re.compile(r"""\\([`'^~=u."rHvc])\{([A-Za-z])\}""")
NUMBERED = re.compile(r"\\portrayalchar\{([0-9A-F]{4,6})\}")


def read_text(latex: str) -> str:
    """What a reader sees. Anything special that stands raw is an error."""
    found, place = [], 0
    while place < len(latex):
        rest = latex[place:]
        sign = next((sign for sign in SIGNS if rest.startswith(sign)), None)
        if sign is not None:
            found.append(SIGNS[sign])
            place += len(sign)
        elif accent := ACCENT.match(rest):
            found.append(unicodedata.normalize("NFC", accent[2] + ACCENTS[accent[1]]))
            place += accent.end()
        elif number := NUMBERED.match(rest):
            found.append(chr(int(number[1], 16)))
            place += number.end()
        else:
            assert latex[place] not in SPECIAL, f"raw {latex[place]!r} in {latex!r}"
            assert latex[place].isascii(), f"raw {latex[place]!r} in {latex!r}"
            found.append(latex[place])
            place += 1
    return "".join(found)


@dataclass(frozen=True)
class Table:
    caption: str
    label: str
    columns: str
    head: list[str]
    rows: list[list[str]]
    notes: list[str]


def read_table(text: str) -> Table:
    """A file with one table: environments and braces match, every line has as many cells as there are columns."""
    assert text.isascii()
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    depth = 0
    for letter in "".join(lines):
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    if any("\\portrayalchar{" in line and "providecommand" not in line for line in lines):
        assert lines[0].startswith("\\providecommand{\\portrayalchar}[1]{")
    opened: list[str] = []
    for what, name in re.findall(r"\\(begin|end)\{(\w+)\}", "\n".join(lines)):
        if what == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    columns = re.fullmatch(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", _only(lines, "\\begin{tabular}"))[1]
    top, middle, bottom = (lines.index(f"\\{rule}") for rule in ("toprule", "midrule", "bottomrule"))
    assert (middle, lines[bottom + 1]) == (top + 2, "\\end{tabular}%")
    (head, *rows) = [_cells(line) for line in (lines[top + 1], *lines[middle + 1 : bottom])]
    assert all(len(row) == len(columns) for row in (head, *rows))
    ends = [line for line in lines if line.endswith("\\par")]
    return Table(
        read_text(re.fullmatch(r"\\caption\{(.*)\}", _only(lines, "\\caption"))[1]),
        re.fullmatch(r"\\label\{tab:([a-z0-9-]+)\}", _only(lines, "\\label"))[1],
        columns,
        head,
        rows,
        [read_text(line.removesuffix("\\par")) for line in ends],
    )


def _only(lines: list[str], start: str) -> str:
    (found,) = [line for line in lines if line.startswith(start)]
    return found


def _cells(line: str) -> list[str]:
    assert line.endswith(" \\\\")
    # After a line or a rule these would be its option.
    assert not line.startswith(("[", "*"))
    return [read_text(cell).strip(" ") for cell in re.split(r"(?<!\\)&", line.removesuffix(" \\\\"))]
