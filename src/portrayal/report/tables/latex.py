"""Tables as LaTeX with booktabs. The output is ASCII, so that it is the same for every LaTeX engine."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from portrayal.report.tables.layout import text_grid
from portrayal.report.tables.table import Table

# No command takes an argument from the text. Braces are balanced, as BibTeX requires.
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
    '"': "{''}",  # babel uses it as a shorthand in many languages
    "`": "{`}",  # the braces keep TeX from joining two of them into a quotation mark
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
# TeX would join two neighbours of the same group into another character.
_LIGATURES = ("-–—", "'’", ",")
# The macro prints the character, or its code point if the engine does not support Unicode.
_CHARACTER_MACRO = (
    '\\providecommand{\\portrayalchar}[1]{\\ifdefined\\Umathchar\\char"#1\\relax\\else{[U+#1]}\\fi}'
)
_MINUS_SIGN = re.compile(r"(?<![\w.-])-(?=[\d.])")
PACKAGES = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}."


def escape(text: str, keep_unicode: bool = False) -> str:
    """Untrusted text as LaTeX code that only prints it.

    Characters without a command are kept with `keep_unicode`, else written as `\\portrayalchar`, which
    `table_to_latex` defines.

    >>> print(escape("50 % of R&D_x, café"))
    50 \\% of R\\&D\\_x, caf\\'{e}
    """
    text = "".join(character if character.isprintable() else " " for character in text)
    escaped_characters, previous_character = [], ""
    for character in unicodedata.normalize("NFC", text):
        if previous_character and any(
            character in ligature_characters and previous_character in ligature_characters
            for ligature_characters in _LIGATURES
        ):
            escaped_characters.append("{}")
        escaped_characters.append(_escape_character(character, keep_unicode))
        previous_character = character
    return "".join(escaped_characters)


def _escape_character(character: str, keep_unicode: bool) -> str:
    """The character as LaTeX code."""
    if character in _COMMANDS:
        return _COMMANDS[character]
    if character.isascii():
        return character
    base, *accents = list(unicodedata.normalize("NFD", character))
    if base.isascii() and base.isalpha() and len(accents) == 1 and accents[0] in _ACCENTS:
        return f"\\{_ACCENTS[accents[0]]}{{{base}}}"
    return character if keep_unicode else f"\\portrayalchar{{{ord(character):04X}}}"


def table_to_latex(table: Table, caption: str, label: str, notes: Sequence[str] = ()) -> str:
    """The table as a LaTeX float, with the caption above and the notes below."""
    header, rows = text_grid(table, keep_second_column=False)
    n_text_columns = 1 + table.has_second_column + table.has_items
    alignment = "l" * n_text_columns + "r" * (len(header) - n_text_columns)
    body = [
        "\\begin{table}[t]",
        "\\centering",
        f"\\caption{{{escape(caption)}}}",
        f"\\label{{tab:{label}}}",
        # Shrink the table to the text width if it is wider.
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{@{{}}{alignment}@{{}}}}",
        "\\toprule",
        _row([_cell(name) for name in header]),
        "\\midrule",
        *(
            _row([*map(_cell, row[:n_text_columns]), *map(_number_cell, row[n_text_columns:])])
            for row in rows
        ),
        "\\bottomrule",
        "\\end{tabular}%",
        "}",
    ]
    if notes:
        note_lines = [f"{_cell(note)}\\par" for note in notes]
        body += ["\\par\\smallskip", "{\\footnotesize\\raggedright", *note_lines, "}"]
    body.append("\\end{table}")
    macro_lines = [_CHARACTER_MACRO] if any("\\portrayalchar" in line for line in body) else []
    return "\n".join([PACKAGES, *macro_lines, *body]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\"


def _cell(text: str) -> str:
    """The escaped text of a cell.

    At the start of a row, "[" and "*" would be read as arguments of the `\\\\` before it, hence the braces.
    """
    escaped = escape(text)
    return "{}" + escaped if escaped.lstrip().startswith(("[", "*")) else escaped


def _number_cell(text: str) -> str:
    """The escaped text of a cell, with minus signs in front of numbers."""
    return _MINUS_SIGN.sub("\\\\ensuremath{-}", _cell(text))
