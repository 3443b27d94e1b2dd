"""What a report can be exported as, for papers and model cards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from portrayal.errors import unknown_name
from portrayal.report.export.chart_files import write_charts
from portrayal.report.export.model_card import write_cards
from portrayal.report.export.table_files import write_tables
from portrayal.results import Results

Export = Callable[[Results, Path], list[Path]]
ALL = "all"
EXPORTS: dict[str, Export] = {
    "tables": lambda results, folder: write_tables(results, folder / "tables"),
    "charts": lambda results, folder: write_charts(results, folder / "charts"),
    "card": write_cards,
}


def exports(names: Iterable[str]) -> list[str]:
    """The names of exports, each once, `all` for all; an unknown one is an error."""
    found: dict[str, None] = {}
    for name in names:
        if name not in (*EXPORTS, ALL):
            raise unknown_name("export", name, (*EXPORTS, ALL))
        found |= dict.fromkeys(EXPORTS if name == ALL else (name,))
    return list(found)


def write_exports(results: Results, folder: Path, names: Iterable[str]) -> dict[str, list[Path]]:
    """By name of export, the files that were written."""
    return {name: EXPORTS[name](results, folder) for name in exports(names)}
