"""Chart of a response curve: the response with its interval, false positives and power, and unwanted reactions."""

from __future__ import annotations

import altair as alt
import vl_convert

from portrayal.lab.curves.curve import MAX_FALSE_POSITIVE_RATE, REACTION_THRESHOLD, Curve

_WIDTH, _HEIGHT = 210, 150
_SCENES = alt.Color("scenes:O", title="images", scale=alt.Scale(scheme="viridis", reverse=True))


def chart(curve: Curve) -> alt.HConcatChart:
    panels = [_response(curve)]
    if curve.false_positive_rate is not None:
        panels.append(_false_positives(curve))
    if curve.reactions:
        panels.append(_reactions(curve))
    title = alt.TitleParams(f"{curve.name} against {curve.dial}", fontSize=13, anchor="start")
    joined: alt.HConcatChart = alt.hconcat(*panels, title=title).resolve_scale(color="shared")
    configured: alt.HConcatChart = joined.configure_view(stroke="#d0d0d0")
    return configured


def svg(curve: Curve) -> str:
    text: str = vl_convert.vegalite_to_svg(chart(curve).to_json())
    return text


def _response(curve: Curve) -> alt.LayerChart:
    rows = [
        {"scenes": p.scenes, "level": p.level, "value": p.value, "low": p.low, "high": p.high}
        for p in curve.points
        if p.value is not None
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("level:Q", title=curve.dial), color=_SCENES)
    band = base.mark_area(opacity=0.2).encode(
        y=alt.Y("low:Q", title=f"{curve.term} ({curve.unit})", scale=alt.Scale(zero=False)), y2="high:Q"
    )
    line = base.mark_line(point=True).encode(y=alt.Y("value:Q"))
    return _sized(band + line, "Value and interval")


def _false_positives(curve: Curve) -> alt.LayerChart:
    rows = [
        {
            "scenes": p.scenes,
            "level": p.level,
            "share": p.share.value,
            "low": p.share.low,
            "high": p.share.high,
        }
        for p in curve.power
        if p.share is not None
    ]
    if curve.false_positive_rate is not None:
        share = curve.false_positive_rate
        rows.append(
            {
                "scenes": curve.study_scenes,
                "level": 0.0,
                "share": share.value,
                "low": share.low,
                "high": share.high,
            }
        )
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("level:Q", title=curve.dial), color=_SCENES)
    share_axis = alt.Y("share:Q", title="share of studies", scale=alt.Scale(domain=[0, 1]))
    share_axis = share_axis.axis(format="%")
    bars = base.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q"), y2="high:Q")
    lines = base.mark_line(point=True).encode(y=share_axis)
    limit = (
        alt.Chart(alt.InlineData(values=[{"limit": MAX_FALSE_POSITIVE_RATE}]))
        .mark_rule(strokeDash=[4, 3], color="#b03030")
        .encode(y="limit:Q")
    )
    return _sized(bars + lines + limit, "False positives and power")


def _reactions(curve: Curve) -> alt.LayerChart:
    rows = [
        {"dial": r.dial, "part": r.part_of_range, "reacts": r.reacts}
        for r in curve.reactions
        if r.part_of_range is not None
    ]
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(height=9)
        .encode(
            x=alt.X("part:Q", title="change, as part of its own range"),
            y=alt.Y("dial:N", title=None, sort=None),
            color=alt.condition("datum.reacts", alt.value("#b03030"), alt.value("#7a8794")),
        )
    )
    limits = (
        alt.Chart(alt.InlineData(values=[{"limit": -REACTION_THRESHOLD}, {"limit": REACTION_THRESHOLD}]))
        .mark_rule(strokeDash=[4, 3], color="#b03030")
        .encode(x="limit:Q")
    )
    return _sized(bars + limits, "Dials it should ignore")


def _sized(chart: alt.LayerChart, title: str) -> alt.LayerChart:
    small = alt.TitleParams(title, fontSize=11, fontWeight="normal")
    return chart.properties(width=_WIDTH, height=_HEIGHT, title=small)
