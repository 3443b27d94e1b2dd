"""Results as CSV and Markdown."""

from __future__ import annotations

import io

import polars as pl

from portrayal.report import to_csv, to_markdown
from portrayal.report.tables.layout import format_number
from portrayal.results import Measurement, Results

RESULTS = Results(
    (
        Measurement("error", "wrong", system="a|b", attribute="gender", value=0.25, unit="share", n=400),
        Measurement(
            "error",
            "error",
            system="a|b",
            attribute="gender",
            value=0.5,
            low=0.4,
            high=0.6,
            unit="share",
            n=2,
            reason="too few: 2",
        ),
        Measurement(
            "error", "wrong", system="a|b", attribute="gender", group="x", reason="too few", unit="share", n=0
        ),
    )
)


def test_markdown():
    assert to_markdown(RESULTS) == (
        "### error · gender\n\n"
        "| system | group | wrong | error | n |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| a\\|b | all | 0.250 | 0.500† \\[0.400, 0.600] | 400 |\n"
        "| a\\|b | x | – |  | 0 |\n\n"
        "Undefined, too few: a\\|b x wrong.\n\n"
        "† Rests on fewer than 30 images: too few to rank (error a\\|b 2).\n"
    )


def test_markup_in_names_stays_text():
    hostile_results = Results(
        (Measurement("m", "t", system="<script>\n| x |", value=1.0, settings={"lexicon": "*[x](y)*"}),)
    )
    text = to_markdown(hostile_results)
    assert "| \\<script> \\| x \\| |" in text
    assert "\\*\\[x](y)\\*" in text


def test_csv_is_the_long_table():
    frame = pl.read_csv(io.StringIO(to_csv(RESULTS)))
    assert frame["value"].to_list() == [0.25, 0.5, None]
    assert frame["reason"].to_list() == [None, "too few: 2", "too few"]


def test_numbers():
    assert format_number(None, "share") == "–"
    assert format_number(0.12345, "share") == "0.123"
    assert format_number(48.649, "percent") == "48.6"
    assert format_number(1234, "count") == "1,234"
