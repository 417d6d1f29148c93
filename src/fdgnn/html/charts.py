"""The charts of a report as Vega-Lite specifications, made with Vega-Altair.

Each function takes rows of plain values and returns a specification. Colors are CSS variables of
the page and ``currentColor``, so that one drawing serves the dark and the light theme. Whatever a
color says, a shape, size or dash says as well. Field names are ours. Text from files occurs in
values only, never in an expression that Vega evaluates. Vega uses the values that it groups by as
names of JavaScript properties, and names such as ``__proto__`` break it: `keyed` puts a number
before each value, so that no value is such a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

from fdgnn.extras import require
from fdgnn.html.figures import Key, Row, Spec

Rows = Sequence[Row]
Ends = Sequence[list[float]]  # of the two axes: smallest and largest value

COLORS = tuple(f"var(--c{i})" for i in range(1, 8))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
KEY_MARKS = ("circle", "square", "triangle", "diamond", "cross", "down", "right")  # of SHAPES
OURS, OTHER, INK, QUIET = "var(--c1)", "var(--c2)", "currentColor", "var(--quiet)"

_CONFIG = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
    "aria": False,  # the figure around a chart has the words
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": INK,
        "gridColor": "var(--grid)",
        "domainColor": "var(--rule)",
        "tickColor": "var(--rule)",
        "labelFontSize": 12,
        "titleFontSize": 12.5,
        "titleFontWeight": 500,
        "titlePadding": 8,
        "labelPadding": 5,
        "labelLimit": 132,
        "tickCount": 5,
    },
    "axisY": {"domain": False, "ticks": False},
    "legend": {"labelColor": "var(--muted)", "titleColor": INK, "labelFontSize": 12},
    "text": {"color": INK, "fontSize": 12},
}

# The name without the number that `keyed` puts before it.
_NAME = "slice(datum.label, indexof(datum.label, '=') + 1)"


def altair() -> Any:
    """Import Vega-Altair.

    Channels are better given as objects, ``alt.X2("high:Q")``: for a bare text Altair looks at all
    classes of its schema, which takes longer than all else in a chart.
    """
    return require("altair", "report", "Report pages")


def unchecked() -> AbstractContextManager[None]:
    """Skip the checks of Vega-Altair, which take a third of a page's time.

    Tests check whole specifications.
    """
    altair()
    from altair.utils.schemapi import debug_mode

    return cast(AbstractContextManager[None], debug_mode(False))


def inline(rows: Rows) -> Any:
    """Rows that are part of the specification; Altair copies lists often, and tuples never."""
    return altair().InlineData(values=tuple(rows))


def finish(chart: Any, height: float) -> Spec:
    """Return the specification of a chart that is as wide as the page allows."""
    return _sized(chart.to_dict(validate=False), height)


def finish_layers(charts: Sequence[Any], height: float, **params: Any) -> Spec:
    """Return the same for charts that lie over each other; `params` are variables of the page.

    ``alt.layer`` gives the same, but copies its charts many times: most of a page's time.
    """
    layers = [chart.to_dict(validate=False) for chart in charts]
    spec: Spec = {"config": _CONFIG, "layer": layers}
    if all(chart.data is charts[0].data for chart in charts):
        spec["data"] = layers[0]["data"]
        for layer in layers:
            del layer["data"]
    if params:
        spec["params"] = [{"name": name, "value": value} for name, value in params.items()]
    datasets: Spec = {}
    for layer in layers:
        del layer["config"]
        spec["$schema"] = layer.pop("$schema")
        datasets |= layer.pop("datasets", {})
    return _sized(spec | ({"datasets": datasets} if datasets else {}), height)


def _sized(spec: Spec, height: float) -> Spec:
    spec |= {"width": "container", "height": height, "config": _CONFIG}
    spec["autosize"] = {"type": "fit", "contains": "padding", "resize": True}
    return spec


def tooltip(**titles: str) -> list[Any]:
    """Fields and their titles, in this order; values are made ready in Python."""
    alt = altair()
    return [
        alt.Tooltip(field=field, type="nominal", title=title) for field, title in titles.items()
    ]


def either(channel: Any, test: str, yes: Any, no: Any) -> Any:
    """Return a channel with one of two values; simpler and faster than `altair.condition`."""
    return channel(no, condition={"test": test, "value": yes})


def keyed(rows: Rows, field: str) -> list[Row]:
    """Add a field "key" to rows: the value of `field`, with a number before it."""
    number = {value: i for i, value in enumerate(dict.fromkeys(row[field] for row in rows))}
    return [row | {"key": f"{number[row[field]]}={row[field]}"} for row in rows]


def names_axis(alt: Any, **options: Any) -> Any:
    """An axis of keys that shows the names."""
    return alt.Axis(labelExpr=_NAME, **options)


def labels_above(alt: Any) -> Any:
    """Return an axis with names above their marks, so that long names have room on a phone."""
    return names_axis(
        alt,
        labelAlign="left", labelBaseline="bottom", labelPadding=-2, labelOffset=-8, labelLimit=320,
        minExtent=0, maxExtent=0, grid=False,
    )  # fmt: skip


def class_scales(alt: Any, n_classes: int) -> tuple[Any, Any]:
    """Return colors and shapes of classes ``c0``, ``c1``, ...; the first 49 all look different."""
    keys = [f"c{i}" for i in range(n_classes)]
    looks = [look_of(i) for i in range(n_classes)]
    colors = alt.Scale(domain=keys, range=[COLORS[color] for color, _ in looks])
    return colors, alt.Scale(domain=keys, range=[SHAPES[shape] for _, shape in looks])


def look_of(number: int) -> tuple[int, int]:
    """Return the color and the shape that a class has in all figures."""
    n = len(COLORS)
    return number % n, (number + number // n) % len(SHAPES)


def class_key(classes: Sequence[str], mark: str | None = None) -> list[Key]:
    """Return a legend entry for each class, with the color and shape it has everywhere."""
    most = 12
    keys = []
    for number, name in enumerate(classes[:most]):
        color, shape = look_of(number)
        keys.append(Key(mark or KEY_MARKS[shape], f"c{color + 1}", f"class {name}"))
    if len(classes) > most:
        keys.append(Key("", "quiet", f"and {len(classes) - most} more"))
    return keys


# ---------------------------------------------------------------------- scores

#: How each kind of row of a score chart looks: its color, its shape, and the mark of the legend.
KINDS = {
    "ours": (OURS, "circle", "circle"),
    "other": (COLORS[2], "square", "square"),
    "constant": (QUIET, "triangle-up", "triangle"),
    "linear": (COLORS[3], "triangle-down", "down"),
    "published": (OTHER, "diamond", "diamond"),
}


def scores(rows: Rows, title: str) -> Spec:
    """Draw scores of models, one row each: mean, spread and folds, with baselines beside them.

    Rows: row, what (a kind, or "fold"), value, low, high, words, shown, folds.
    """
    alt = altair()
    n_rows = len({row["row"] for row in rows})
    rows = keyed(rows, "row")
    names = alt.Scale(domain=list(dict.fromkeys(row["key"] for row in rows)))
    y = alt.Y("key:N", title=None, scale=names, axis=labels_above(alt))
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(inline(rows)).encode(
        y=y, tooltip=tooltip(row="model", words="what", shown=title)
    )
    published = base.transform_filter(alt.datum.what == "published")
    marks = base.transform_filter("datum.what !== 'fold' && datum.what !== 'published'")
    kinds = [kind for kind in KINDS if any(row["what"] == kind for row in rows)]
    color = alt.Color(
        "what:N",
        legend=None,
        scale=alt.Scale(domain=kinds, range=[KINDS[kind][0] for kind in kinds]),
    )
    shape = alt.Shape(
        "what:N",
        legend=None,
        scale=alt.Scale(domain=kinds, range=[KINDS[kind][1] for kind in kinds]),
    )
    ends = {"x": alt.X("low:Q", title=title), "x2": alt.X2("high:Q")}
    look = {"filled": True, "size": 130, "opacity": 1, "stroke": "var(--paper)", "strokeWidth": 1.5}
    below = {"yOffset": 11}  # a published score does not hide ours
    folds = (
        base.transform_filter(alt.datum.what == "fold")
        .mark_point(filled=True, color=OURS, opacity=0.35, shape="circle")
        .encode(
            x=x,
            size=alt.Size("folds:Q", legend=None, scale=alt.Scale(domain=[0, 10], range=[0, 460])),
        )
    )
    layers = {
        "fold": [folds],
        "published": [
            published.mark_rule(strokeWidth=2, strokeDash=[5, 3], **below).encode(
                **ends, color=color
            ),
            published.mark_point(**look, **below).encode(x=x, color=color, shape=shape),
        ],
        "": [
            marks.mark_rule(strokeWidth=2.5).encode(**ends, color=color),
            marks.mark_point(**look).encode(x=x, color=color, shape=shape),
        ],
    }
    there = {row["what"] for row in rows} | {""}  # an empty layer would have no scale
    drawn = [layer for what, some in layers.items() if what in there for layer in some]
    return finish_layers(drawn, 48 * n_rows + 55)


def search(table: str, field: str, metric: str) -> Spec:
    """Draw validation scores of all configurations against one hyperparameter.

    Rows of the table: c, the field, mean, low, high (over random initializations), chosen (by how
    many folds), and the fields of the tooltip.
    """
    alt = altair()
    scale, title = alt.Scale(zero=False), f"validation {metric}"
    base = alt.Chart(alt.NamedData(name=table)).encode(
        x=alt.X(
            f"{field}:Q",
            title=None,
            scale=alt.Scale(nice=False, zero=False, padding=10),
            axis=alt.Axis(tickMinStep=1) if field in ("n_layers", "power") else alt.Axis(),
        ),
        y=alt.Y("mean:Q", title=title, scale=scale),
        tooltip=tooltip(words="configuration", shown="mean", span="initializations", by="chosen"),
    )
    chosen, hot = "datum.chosen > 0", "datum.c == hot"
    bars = base.mark_rule(strokeWidth=1.2, color=QUIET).encode(
        y=alt.Y("low:Q", title=title, scale=scale),
        y2=alt.Y2("high:Q"),
        opacity=either(alt.OpacityValue, hot, 1, 0.35),
    )
    points = base.mark_point(filled=True).encode(
        color=either(alt.ColorValue, chosen, OTHER, OURS),
        shape=either(alt.ShapeValue, chosen, "diamond", "circle"),
        size=either(alt.SizeValue, chosen, 120, 38),
        opacity=either(alt.OpacityValue, f"{chosen} || {hot}", 1, 0.6),
        stroke=either(alt.StrokeValue, hot, INK, "var(--paper)"),
        strokeWidth=either(alt.StrokeWidthValue, hot, 2.5, 0.8),
    )
    return finish_layers([bars, points], 210, hot=-1)


# ---------------------------------------------------------------------- graphs


def bars(rows: Rows, title: str, unit: str, n_classes: int = 1) -> Spec:
    """Draw counts by name, from left to right. Rows: name, count, share, look, kind, order."""
    alt = altair()
    chart = (
        alt.Chart(inline(keyed(rows, "name")))
        .mark_bar(stroke="var(--paper)", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "key:N", sort=None, title=title,
                axis=names_axis(
                    alt, labelAngle=0, labelOverlap="greedy", labelSeparation=6, labelLimit=80,
                    grid=False,
                ),
            ),
            y=alt.Y("count:Q", title=unit, stack="zero"),
            color=alt.Color("look:N", legend=None, scale=class_scales(alt, n_classes)[0]),
            order=alt.Order("order:Q"),
            tooltip=tooltip(name=title, kind="class", count=unit, share="share")
            if n_classes > 1
            else tooltip(name=title, count=unit, share="share"),
        )
    )  # fmt: skip
    return finish(chart, 220)


def graph_map(
    table: str, classes: int, n_graphs: int, explained: Sequence[float], ends: Ends
) -> Spec:
    """Draw the features of the graphs in the plane; the page listens to clicks on them.

    Rows of the table: graph, x, y, answer ("right", "wrong"), words, and for classes "key", for a
    regression value and error.
    """
    alt = altair()
    titles = [
        f"principal component {i + 1}" + (f", {100 * share:.0f} % of the variance" if share else "")
        for i, share in enumerate(explained)
    ]
    axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    by_class = "datum.key : datum.answer" if classes else "datum.value : datum.error"
    base = (
        alt.Chart(alt.NamedData(name=table))
        .encode(
            x=alt.X("x:Q", title=titles[0], axis=axis, scale=alt.Scale(domain=ends[0], padding=14)),
            y=alt.Y("y:Q", title=titles[1], axis=axis, scale=alt.Scale(domain=ends[1], padding=14)),
            tooltip=tooltip(
                words="graph", actual="actual", predicted="predicted", probability_="probability",
                size_="size",
            ),
        )
        .transform_calculate(shown=f"by === 'class' ? {by_class}")
    )  # fmt: skip
    points = _classes(alt, base, classes, n_graphs) if classes else _values(alt, base)
    ring = base.transform_filter("datum.graph == picked").mark_point(
        filled=False, size=340, strokeWidth=2.5, color=INK, opacity=1, tooltip=None
    )
    return finish_layers([points, ring], 430, by="class", picked=-1)


def _classes(alt: Any, base: Any, n_classes: int, n_graphs: int) -> Any:
    colors, shapes = class_scales(alt, n_classes)
    color = alt.Scale(domain=[*colors.domain, "right", "wrong"], range=[*colors.range, OURS, OTHER])
    wrong = "datum.answer === 'wrong'"
    size = min(60, max(20, 14_000 // max(1, n_graphs)))  # smaller where there are more
    return base.mark_point(filled=True, cursor="pointer").encode(
        color=alt.Color("shown:N", legend=None, scale=color),
        shape=alt.Shape("key:N", legend=None, scale=shapes),
        size=either(alt.SizeValue, wrong, 1.6 * size, size),
        opacity=either(alt.OpacityValue, wrong, 1, 0.6),
        stroke=either(alt.StrokeValue, wrong, INK, "var(--paper)"),
        strokeWidth=either(alt.StrokeWidthValue, wrong, 1.6 if size > 40 else 1.1, 0.5),
    )


def _values(alt: Any, base: Any) -> Any:
    return base.mark_point(
        filled=True, cursor="pointer", opacity=0.85, size=60, stroke="var(--rule)", strokeWidth=0.5
    ).encode(
        color=alt.Color(
            "shown:Q",
            scale=alt.Scale(scheme="cividis"),
            legend=alt.Legend(title=None, orient="top", gradientLength=180),
        )
    )


def diagonal(
    rows: Rows, titles: tuple[str, str], ends: tuple[float, float], tips: dict[str, str]
) -> Spec:
    """Draw points beside the line where both axes are equal. Rows: x, y, n, low, high."""
    alt = altair()
    scale = alt.Scale(domain=list(ends), nice=False, zero=False)
    x = alt.X("x:Q", title=titles[0], scale=scale)
    y = alt.Y("y:Q", title=titles[1], scale=scale)
    line = alt.Chart(inline([{"x": end, "y": end} for end in ends])).mark_line(
        color=INK, strokeDash=[4, 4], opacity=0.6
    )
    base = alt.Chart(inline(rows)).encode(x=x, y=y, tooltip=tooltip(**tips))
    bars = base.mark_rule(color=OURS, strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    points = base.mark_point(
        filled=True, color=OURS, opacity=0.65, stroke="var(--paper)", strokeWidth=0.5
    ).encode(size=alt.Size("n:Q", legend=None, scale=alt.Scale(range=[44, 500], domainMin=1)))
    return finish_layers([line.encode(x=x, y=y), bars, points], 300)


# ---------------------------------------------------------------------- dynamics


def convergence(rows: Rows, tol: float, ends: Sequence[float], last: int) -> Spec:
    """Draw residuals of graphs in one layer. Rows: graph, step, residual, certified, words."""
    alt = altair()
    x = alt.X(
        "step:Q", title="iteration", scale=alt.Scale(domain=[1, last], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d"),
    )  # fmt: skip
    y = alt.Y(
        "residual:Q",
        title="change of the states",
        scale=alt.Scale(type="log", domain=list(ends), clamp=True),
        axis=alt.Axis(format="~g", tickCount=6, labelOverlap=True),
    )
    kinds = {"domain": [True, False]}
    base = alt.Chart(inline(rows)).encode(
        x=x,
        y=y,
        color=alt.Color("certified:N", legend=None, scale=alt.Scale(**kinds, range=[OURS, OTHER])),
        detail=alt.Detail("graph:N"),
    )
    lines = base.mark_line(strokeWidth=1.6, opacity=0.8).encode(
        strokeDash=alt.StrokeDash(
            "certified:N", legend=None, scale=alt.Scale(**kinds, range=[[1, 0], [6, 3]])
        )
    )
    hover = base.mark_point(filled=True, size=60, opacity=0).encode(
        tooltip=tooltip(words="graph", step="iteration", shown="change")
    )
    stop = (
        alt.Chart(inline([{"tol": tol}]))
        .mark_rule(color=INK, strokeDash=[2, 3])
        .encode(y=alt.Y("tol:Q"))
    )
    return finish_layers([stop, lines, hover], 220)
