"""Strict reader of the LaTeX that exports write: unknown commands and unbalanced environments are errors."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Longest first; written by hand, not taken from the code under test.
COMMANDS = {
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
CHARACTER_CODE = re.compile(r"\\portrayalchar\{([0-9A-F]{4,6})\}")


def read_text(latex: str) -> str:
    """Returns the text as printed. A special character that is not escaped is an error."""
    characters, position = [], 0
    while position < len(latex):
        rest = latex[position:]
        command = next((command for command in COMMANDS if rest.startswith(command)), None)
        if command is not None:
            characters.append(COMMANDS[command])
            position += len(command)
        elif accent := ACCENT.match(rest):
            characters.append(unicodedata.normalize("NFC", accent[2] + ACCENTS[accent[1]]))
            position += accent.end()
        elif code := CHARACTER_CODE.match(rest):
            characters.append(chr(int(code[1], 16)))
            position += code.end()
        else:
            assert latex[position] not in SPECIAL, f"raw {latex[position]!r} in {latex!r}"
            assert latex[position].isascii(), f"raw {latex[position]!r} in {latex!r}"
            characters.append(latex[position])
            position += 1
    return "".join(characters)


@dataclass(frozen=True)
class Table:
    caption: str
    label: str
    columns: str
    head: list[str]
    rows: list[list[str]]
    notes: list[str]


def read_table(text: str) -> Table:
    """Returns the table of a file. Environments and braces must match, and every line has a cell per column."""
    assert text.isascii()
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    depth = 0
    for letter in "".join(lines):
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    if any("\\portrayalchar{" in line and "providecommand" not in line for line in lines):
        assert lines[0].startswith("\\providecommand{\\portrayalchar}[1]{")
    open_environments: list[str] = []
    for command, name in re.findall(r"\\(begin|end)\{(\w+)\}", "\n".join(lines)):
        if command == "begin":
            open_environments.append(name)
        else:
            assert open_environments.pop() == name
    assert not open_environments
    columns = re.fullmatch(
        r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", _single_line(lines, "\\begin{tabular}")
    )[1]
    top, middle, bottom = (lines.index(f"\\{rule}") for rule in ("toprule", "midrule", "bottomrule"))
    assert (middle, lines[bottom + 1]) == (top + 2, "\\end{tabular}%")
    (head, *rows) = [_cells(line) for line in (lines[top + 1], *lines[middle + 1 : bottom])]
    assert all(len(row) == len(columns) for row in (head, *rows))
    note_lines = [line for line in lines if line.endswith("\\par")]
    return Table(
        read_text(re.fullmatch(r"\\caption\{(.*)\}", _single_line(lines, "\\caption"))[1]),
        re.fullmatch(r"\\label\{tab:([a-z0-9-]+)\}", _single_line(lines, "\\label"))[1],
        columns,
        head,
        rows,
        [read_text(line.removesuffix("\\par")) for line in note_lines],
    )


def _single_line(lines: list[str], prefix: str) -> str:
    (matching_line,) = [line for line in lines if line.startswith(prefix)]
    return matching_line


def _cells(line: str) -> list[str]:
    assert line.endswith(" \\\\")
    # After a line or a rule LaTeX would read these as its option.
    assert not line.startswith(("[", "*"))
    return [read_text(cell).strip(" ") for cell in re.split(r"(?<!\\)&", line.removesuffix(" \\\\"))]
