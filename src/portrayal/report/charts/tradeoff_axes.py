"""The axes that metrics have in charts of bias against quality, from their cards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from portrayal.report.cards import metric_cards
from portrayal.results import Measurement, Results

CAPTIONERS, MODELS = "captioners", "models"  # what the points of a chart are


@dataclass(frozen=True)
class TradeoffAxis:
    """The axis of a metric, as its card describes it (`metrics.base.card.TradeOff`)."""

    metric: str
    is_bias: bool
    terms: tuple[str, ...]
    direction: str
    points: str
    settings: Mapping[str, str]
    shared_settings: tuple[str, ...]
    titled_settings: tuple[str, ...]

    def rows(self, measurements: Iterable[Measurement], term: str) -> list[Measurement]:
        """The measurements of a term that are drawn."""
        return [
            m for m in measurements
            if (m.metric, m.term) == (self.metric, term)
            and all(m.settings.get(name) == value for name, value in self.settings.items())
        ]  # fmt: skip

    def shared(self, m: Measurement) -> tuple[str, ...]:
        """The values of the settings that all points of a chart share."""
        return tuple(str(m.settings.get(name)) for name in self.shared_settings)

    def title(self, m: Measurement) -> str:
        """The values of the settings that a title gives."""
        return ", ".join(str(m.settings[name]) for name in self.titled_settings if m.settings.get(name))


def tradeoff_axes(results: Results) -> list[TradeoffAxis]:
    """The axes of all metrics that have one."""
    axes = []
    for metric, card in metric_cards(results).items():
        axis = card.get("trade_off")
        if isinstance(axis, Mapping):
            axes.append(
                TradeoffAxis(
                    metric,
                    axis.get("is_bias") is True,
                    tuple(axis.get("terms") or ()),
                    axis.get("direction") or "better",
                    axis.get("points") or CAPTIONERS,
                    axis.get("settings") or {},
                    tuple(axis.get("shared_settings") or ()),
                    tuple(axis.get("titled_settings") or ()),
                )
            )
    return axes
