"""The formats in which a report can be exported, for papers and model cards."""

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


def resolve_exports(names: Iterable[str]) -> list[str]:
    """The names of exports without repetition; `all` means all of them. An unknown name is an error."""
    resolved: dict[str, None] = {}
    for name in names:
        if name not in (*EXPORTS, ALL):
            raise unknown_name("export", name, (*EXPORTS, ALL))
        resolved |= dict.fromkeys(EXPORTS if name == ALL else (name,))
    return list(resolved)


def write_exports(results: Results, folder: Path, names: Iterable[str]) -> dict[str, list[Path]]:
    """Write exports. Returns the paths by name of export."""
    return {name: EXPORTS[name](results, folder) for name in resolve_exports(names)}
