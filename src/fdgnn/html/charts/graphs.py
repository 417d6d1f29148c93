"""Charts of the graphs and their predictions: counts, the map, calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fdgnn.html.charts.base import (
    INK,
    OURS,
    PAPER,
    Ends,
    Rows,
    altair,
    class_scales,
    either,
    finish,
    finish_layers,
    inline,
    keyed,
    names_axis,
    tooltip,
)
from fdgnn.html.figures import Spec


def sizes(rows: Rows, n_classes: int) -> Spec:
    """Graphs by their number of vertices, stacked by class. Rows: low, high, look, graphs."""
    alt = altair()
    colors, _ = class_scales(alt, n_classes)
    chart = (
        alt.Chart(inline(rows))
        .mark_bar(stroke="var(--paper)", strokeWidth=0.5)
        .encode(
            x=alt.X("low:Q", bin="binned", title="vertices per graph", axis=alt.Axis(grid=False)),
            x2=alt.X2("high:Q"),
            y=alt.Y("graphs:Q", title="graphs", stack="zero"),
            color=alt.Color("look:N", legend=None, scale=colors),
            order=alt.Order("order:Q"),
            tooltip=tooltip(span="vertices", kind="class", graphs="graphs"),
        )
    )
    return finish(chart, 220)


def bars(rows: Rows, title: str, unit: str, *, n_classes: int = 0) -> Spec:
    """Counts by name, from left to right. Rows: name, count, share, look."""
    alt = altair()
    color = (
        alt.Color("look:N", legend=None, scale=class_scales(alt, n_classes)[0])
        if n_classes
        else alt.ColorValue(OURS)
    )
    chart = (
        alt.Chart(inline(keyed(rows, "name")))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X(
                "key:N", sort=None, title=title,
                axis=names_axis(
                    alt, labelAngle=0, labelOverlap=True, labelSeparation=6, labelLimit=80,
                    grid=False,
                ),
            ),
            y=alt.Y("count:Q", title=unit, stack=None),
            color=color,
            tooltip=tooltip(name=title, count=unit, share="share"),
        )
    )  # fmt: skip
    return finish(chart, 220)


def histogram(rows: Rows, title: str) -> Spec:
    """The distribution of a number. Rows: low, high, graphs, span."""
    alt = altair()
    chart = (
        alt.Chart(inline(rows))
        .mark_bar(color=OURS, stroke="var(--paper)", strokeWidth=0.5)
        .encode(
            x=alt.X("low:Q", bin="binned", title=title, axis=alt.Axis(grid=False)),
            x2=alt.X2("high:Q"),
            y=alt.Y("graphs:Q", title="graphs", stack=None),
            tooltip=tooltip(span=title, graphs="graphs"),
        )
    )
    return finish(chart, 220)


def graph_map(
    table: str, n_classes: int, n_graphs: int, explained: Sequence[float], ends: Ends
) -> Spec:
    """The features of the graphs in the plane; the page listens to clicks on them.

    Rows of the table: graph, x, y, key (class), answer ("right", "wrong"), words.
    """
    alt = altair()
    colors, shapes = class_scales(alt, n_classes)
    color = alt.Scale(domain=[*colors.domain, "right", "wrong"], range=[*colors.range, OURS, PAPER])
    base = _map_base(alt, table, explained, ends).transform_calculate(
        shown="by === 'class' ? datum.key : datum.answer"
    )
    wrong = "datum.answer === 'wrong'"
    size = min(60, max(20, 14_000 // max(1, n_graphs)))  # smaller where there are more
    points = base.mark_point(filled=True, cursor="pointer").encode(
        color=alt.Color("shown:N", legend=None, scale=color),
        shape=alt.Shape("key:N", legend=None, scale=shapes),
        size=either(alt.SizeValue, wrong, 1.6 * size, size),
        opacity=either(alt.OpacityValue, wrong, 1, 0.6),
        stroke=either(alt.StrokeValue, wrong, INK, "var(--paper)"),
        strokeWidth=either(alt.StrokeWidthValue, wrong, 1.6 if size > 40 else 1.1, 0.5),
    )
    return finish_layers(_with_ring(points, base), 430, by="class", picked=-1)


def value_map(table: str, explained: Sequence[float], ends: Ends) -> Spec:
    """The map for a regression: color shows the value, or the error. Rows: value, error, ..."""
    alt = altair()
    base = _map_base(alt, table, explained, ends).transform_calculate(
        shown="by === 'class' ? datum.value : datum.error"
    )
    points = base.mark_point(
        filled=True, cursor="pointer", opacity=0.85, size=60, stroke="var(--rule)", strokeWidth=0.5
    ).encode(
        color=alt.Color(
            "shown:Q",
            scale=alt.Scale(scheme="cividis"),
            legend=alt.Legend(title=None, orient="top", gradientLength=180),
        )
    )
    return finish_layers(_with_ring(points, base), 430, by="class", picked=-1)


def _map_base(alt: Any, table: str, explained: Sequence[float], ends: Ends) -> Any:
    titles = [
        f"principal component {i + 1}" + (f", {100 * share:.0f} % of the variance" if share else "")
        for i, share in enumerate([*explained, 0.0, 0.0][:2])
    ]
    axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    return alt.Chart(alt.NamedData(name=table)).encode(
        x=alt.X("x:Q", title=titles[0], axis=axis, scale=alt.Scale(domain=ends[0], padding=14)),
        y=alt.Y("y:Q", title=titles[1], axis=axis, scale=alt.Scale(domain=ends[1], padding=14)),
        tooltip=tooltip(
            words="graph", actual="actual", predicted="predicted", probability_="probability",
            size_="size",
        ),
    )  # fmt: skip


def _with_ring(points: Any, base: Any) -> list[Any]:
    ring = base.transform_filter("datum.graph == picked").mark_point(
        filled=False, size=340, strokeWidth=2.5, color=INK, opacity=1, tooltip=None
    )
    return [points, ring]


def calibration(rows: Rows) -> Spec:
    """Stated probability against the share that was right. Rows: probability, accuracy, n, ..."""
    alt = altair()
    lowest = min(v for row in rows for v in (row["probability"], row["low"]))
    first = 10 * math.floor(lowest / 10.001)
    shares = alt.Scale(domain=[first, 100], nice=False)
    x = alt.X("probability:Q", title="probability the model states, %", scale=shares)
    y = alt.Y("accuracy:Q", title="share that was right, %", scale=shares)
    ends = [{"probability": v, "accuracy": v} for v in (first, 100)]
    diagonal = alt.Chart(inline(ends)).mark_line(color=INK, strokeDash=[4, 4], opacity=0.6)
    base = alt.Chart(inline(rows)).encode(
        x=x,
        y=y,
        tooltip=tooltip(span="stated", probability_="mean stated", accuracy_="right", n="graphs"),
    )
    bars = base.mark_rule(color=OURS, strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    points = base.mark_point(
        filled=True, color=OURS, opacity=0.9, stroke="var(--paper)", strokeWidth=1
    ).encode(size=alt.Size("n:Q", legend=None, scale=alt.Scale(range=[40, 500], zero=True)))
    return finish_layers([diagonal.encode(x=x, y=y), bars, points], 300)


def predictions(rows: Rows) -> Spec:
    """A regression's predictions against the truth. Rows: actual, predicted, words."""
    alt = altair()
    values = [v for row in rows for v in (row["actual"], row["predicted"])]
    ends = [{"actual": v, "predicted": v} for v in (min(values), max(values))]
    x = alt.X("actual:Q", title="actual", scale=alt.Scale(zero=False))
    y = alt.Y("predicted:Q", title="predicted", scale=alt.Scale(zero=False))
    line = alt.Chart(inline(ends)).mark_line(color=INK, strokeDash=[4, 4], opacity=0.6)
    points = (
        alt.Chart(inline(rows))
        .mark_point(filled=True, color=OURS, opacity=0.55, size=44)
        .encode(x=x, y=y, tooltip=tooltip(words="graph", actual_="actual", predicted_="predicted"))
    )
    return finish_layers([line.encode(x=x, y=y), points], 320)
