"""Machine-readable verdicts: JSON and JUnit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from portrayal.gating.evaluation import Verdict, row_label
from portrayal.gating.rules import FIELDS


def as_dicts(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return a dictionary per verdict; fields of the row are None if no row matches."""
    return [
        {
            "rule": v.rule.text,
            "reason": v.rule.reason,
            "origin": v.rule.origin,
            "on": v.on,
            "passed": v.passed,
            "sentence": v.sentence,
            "label": row_label(v) or None,
            "id": v.row.id if v.row else None,
            **{
                name: getattr(v.row, name) if v.row else None
                for name in (*FIELDS, "value", "low", "high", "n", "caution")
            },
            "settings": dict(v.row.settings) if v.row else None,
        }
        for v in verdicts
    ]


def as_junit(verdicts: Sequence[Verdict]) -> str:
    """Return JUnit XML, which CI servers show as test results."""
    failed = sum(not v.passed for v in verdicts)
    suite = ElementTree.Element(
        "testsuite", name="portrayal gate", tests=str(len(verdicts)), failures=str(failed)
    )
    for v in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(v.rule.text), name=_xml(row_label(v) or "no row")
        )
        if not v.passed:
            failure = ElementTree.SubElement(case, "failure", message=_xml(v.sentence))
            if v.rule.reason:
                failure.text = _xml(v.rule.reason)
        if v.row is not None and v.row.caution:
            ElementTree.SubElement(case, "system-out").text = _xml(f"Caution: {v.row.caution}")
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Replace control characters, which XML cannot represent."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
