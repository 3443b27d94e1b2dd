"""Tables in LaTeX, with booktabs. What is written is ASCII, so that every engine reads it alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# No macro here takes an argument from the text, and braces come in pairs, which BibTeX needs too.
_MARKS = {
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
_LIGATURES = ("-–—", "'’", ",")  # side by side they would become another sign
# Letters that the older engines have no sign for stand there as their number.
_OTHERS = '\\providecommand{\\portrayalchar}[1]{\\ifdefined\\Umathchar\\char"#1\\relax\\else{[U+#1]}\\fi}'
_MINUS = re.compile(r"(?<![\w.-])-(?=[\d.])")
PACKAGES = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}."


def escape(text: str, keep: bool = False) -> str:
    """Other people's text as LaTeX that prints it and does nothing else.

    Letters that no command makes are written as `\\portrayalchar`, which `table` defines, unless they are kept.

    >>> print(escape("50 % of R&D_x, café"))
    50 \\% of R\\&D\\_x, caf\\'{e}
    """
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    made, before = [], ""
    for letter in unicodedata.normalize("NFC", text):
        if before and any(letter in alike and before in alike for alike in _LIGATURES):
            made.append("{}")
        made.append(_letter(letter, keep))
        before = letter
    return "".join(made)


def _letter(letter: str, keep: bool) -> str:
    if letter in _MARKS:
        return _MARKS[letter]
    if letter.isascii():
        return letter
    base, *accents = list(unicodedata.normalize("NFD", letter))
    if base.isascii() and base.isalpha() and len(accents) == 1 and accents[0] in _ACCENTS:
        return f"\\{_ACCENTS[accents[0]]}{{{base}}}"
    return letter if keep else f"\\portrayalchar{{{ord(letter):04X}}}"


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: int,
    caption: str,
    label: str,
    notes: Sequence[str] = (),
) -> str:
    """A float with a caption above and notes below. The first `texts` columns hold names, the others numbers."""
    columns = "l" * texts + "r" * (len(head) - texts)
    body = [
        "\\begin{table}[t]",
        "\\centering",
        f"\\caption{{{escape(caption)}}}",
        f"\\label{{tab:{label}}}",
        # As wide as the line at most.
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        "\\toprule",
        _line([_cell(name) for name in head]),
        "\\midrule",
    ]
    for row in rows:
        body.append(
            _line([_cell(told) if place < texts else _number(told) for place, told in enumerate(row)])
        )
    body += ["\\bottomrule", "\\end{tabular}%", "}"]
    if notes:
        lines = [f"{_cell(note)}\\par" for note in notes]
        body += ["\\par\\smallskip", "{\\footnotesize\\raggedright", *lines, "}"]
    body.append("\\end{table}")
    needed = [_OTHERS] if any("\\portrayalchar" in line for line in body) else []
    return "\n".join([PACKAGES, *needed, *body]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\"


def _cell(text: str) -> str:
    """At the start of a line these would be read as an option of the line before."""
    made = escape(text)
    return "{}" + made if made.lstrip().startswith(("[", "*")) else made


def _number(text: str) -> str:
    return _MINUS.sub("\\\\ensuremath{-}", _cell(text))
