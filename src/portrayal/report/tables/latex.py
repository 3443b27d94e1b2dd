"""Tables in LaTeX, with booktabs. The output is ASCII, so that every engine reads it the same way."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from portrayal.report.tables.layout import text_grid
from portrayal.report.tables.table import Table

# No macro here takes an argument from the text. Braces come in pairs, which BibTeX needs too.
_COMMANDS = {
    "\\": "\\textbackslash{}",
    "{": "\\textbraceleft{}",
    "}": "\\textbraceright{}",
    "&": "\\&",
    "%": "\\%",
    "$": "\\$",
    "#": "\\#",
    "_": "\\_",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    '"': "{''}",  # a shorthand in many languages
    "`": "{`}",  # opens quotation marks with its neighbours
    "†": "\\dag{}",
    "–": "--",
    "—": "---",
    "·": "\\textperiodcentered{}",
    "’": "'",
    "‘": "{`}",
    "“": "{``}",
    "”": "{''}",
    "…": "\\ldots{}",
    "×": "\\ensuremath{\\times}",
    "±": "\\ensuremath{\\pm}",
    "−": "\\ensuremath{-}",
    "≤": "\\ensuremath{\\le}",
    "≥": "\\ensuremath{\\ge}",
    "→": "\\ensuremath{\\rightarrow}",
    "←": "\\ensuremath{\\leftarrow}",
    "ß": "\\ss{}",
    "æ": "\\ae{}",
    "Æ": "\\AE{}",
    "œ": "\\oe{}",
    "Œ": "\\OE{}",
    "ø": "\\o{}",
    "Ø": "\\O{}",
    "ł": "\\l{}",
    "Ł": "\\L{}",
    "ı": "\\i{}",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}
# Neighbouring characters that TeX would join into another one.
_LIGATURES = ("-–—", "'’", ",")
# Prints the code point of a character where an older engine lacks its glyph.
_CHARACTER_MACRO = (
    '\\providecommand{\\portrayalchar}[1]{\\ifdefined\\Umathchar\\char"#1\\relax\\else{[U+#1]}\\fi}'
)
_MINUS = re.compile(r"(?<![\w.-])-(?=[\d.])")
PACKAGES = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}."


def escape(text: str, keep: bool = False) -> str:
    """Untrusted text as LaTeX that prints it and does nothing else.

    Characters without a command are written as `\\portrayalchar`, which `table_to_latex` defines, unless `keep` is set.

    >>> print(escape("50 % of R&D_x, café"))
    50 \\% of R\\&D\\_x, caf\\'{e}
    """
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    parts, previous = [], ""
    for letter in unicodedata.normalize("NFC", text):
        if previous and any(letter in alike and previous in alike for alike in _LIGATURES):
            parts.append("{}")
        parts.append(_letter(letter, keep))
        previous = letter
    return "".join(parts)


def _letter(letter: str, keep: bool) -> str:
    if letter in _COMMANDS:
        return _COMMANDS[letter]
    if letter.isascii():
        return letter
    base, *accents = list(unicodedata.normalize("NFD", letter))
    if base.isascii() and base.isalpha() and len(accents) == 1 and accents[0] in _ACCENTS:
        return f"\\{_ACCENTS[accents[0]]}{{{base}}}"
    return letter if keep else f"\\portrayalchar{{{ord(letter):04X}}}"


def table_to_latex(table: Table, caption: str, label: str, notes: Sequence[str] = ()) -> str:
    """A float with the caption above the table and the notes below it."""
    head, rows = text_grid(table, keep_second_column=False)
    n_text_columns = 1 + table.has_second_column + table.has_items
    alignment = "l" * n_text_columns + "r" * (len(head) - n_text_columns)
    body = [
        "\\begin{table}[t]",
        "\\centering",
        f"\\caption{{{escape(caption)}}}",
        f"\\label{{tab:{label}}}",
        # No wider than the text.
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{@{{}}{alignment}@{{}}}}",
        "\\toprule",
        _row([_cell(name) for name in head]),
        "\\midrule",
        *(_row([*map(_cell, row[:n_text_columns]), *map(_number, row[n_text_columns:])]) for row in rows),
        "\\bottomrule",
        "\\end{tabular}%",
        "}",
    ]
    if notes:
        lines = [f"{_cell(note)}\\par" for note in notes]
        body += ["\\par\\smallskip", "{\\footnotesize\\raggedright", *lines, "}"]
    body.append("\\end{table}")
    macro = [_CHARACTER_MACRO] if any("\\portrayalchar" in line for line in body) else []
    return "\n".join([PACKAGES, *macro, *body]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\"


def _cell(text: str) -> str:
    """An escaped cell. At the start of a line, "[" and "*" would be read as an argument of the `\\\\` before."""
    escaped = escape(text)
    return "{}" + escaped if escaped.lstrip().startswith(("[", "*")) else escaped


def _number(text: str) -> str:
    return _MINUS.sub("\\\\ensuremath{-}", _cell(text))
