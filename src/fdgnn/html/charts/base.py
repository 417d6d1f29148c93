"""The page's charts as Vega-Lite specifications, made with Vega-Altair.

Each function takes rows of plain values and gives a specification. Colors are CSS variables of the
page and ``currentColor``, so that one drawing serves the dark and the light theme. Whatever a color
says, a shape, size or dash says as well. Field names are ours. Text from files occurs in values
only, never in an expression that Vega evaluates. Vega uses the values that it groups by as names of
JavaScript properties, and names such as ``__proto__`` break it: `keyed` puts a number before each
value, so that no value is such a name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

from fdgnn.extras import require
from fdgnn.html.figures import Row, Spec

Rows = Sequence[Row]
Ends = Sequence[list[float]]  # of the two axes: smallest and largest value

COLORS = tuple(f"var(--c{i})" for i in range(1, 8))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
OURS, PAPER, INK, QUIET, WRONG = (
    "var(--c1)",
    "var(--c2)",
    "currentColor",
    "var(--quiet)",
    COLORS[1],
)

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

# A tick with its unit: 5 ms, 20 s, 3 h.
_SECONDS = (
    "datum.value < 1e-3 ? format(datum.value * 1e6, '~g') + ' µs' : "
    "datum.value < 1 ? format(datum.value * 1e3, '~g') + ' ms' : "
    "datum.value < 3600 ? format(datum.value, '~g') + ' s' : "
    "format(datum.value / 3600, '.2~g') + ' h'"
)
# The name without the number that `keyed` puts before it.
_NAME = "slice(datum.label, indexof(datum.label, '=') + 1)"


def altair() -> Any:
    """Import Vega-Altair.

    Channels are better given as objects, ``alt.X2("high:Q")``: for a bare text Altair looks at all
    classes of its schema, which takes longer than all else in a chart.
    """
    return require("altair", "report", "Report pages")


def unchecked() -> AbstractContextManager[None]:
    """Let Vega-Altair believe what charts are made of: checking takes a third of a page's time.

    What it would check is checked for whole specifications, by tests.
    """
    altair()
    from altair.utils.schemapi import debug_mode

    return cast(AbstractContextManager[None], debug_mode(False))


def inline(rows: Rows) -> Any:
    """Rows that are part of the specification; Altair copies lists often, and tuples never."""
    return altair().InlineData(values=tuple(rows))


def finish(chart: Any, height: float) -> Spec:
    """Give the specification of a chart that is as wide as the page allows."""
    return _sized(chart.to_dict(validate=False), height)


def finish_layers(charts: Sequence[Any], height: float, **params: Any) -> Spec:
    """Give the same for charts that lie over each other; `params` are variables of the page.

    It is what ``alt.layer`` gives, which copies its charts many times: most of a page's time.
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
    """Give a channel one of two values; simpler and faster than `altair.condition`."""
    return channel(no, condition={"test": test, "value": yes})


def keyed(rows: Rows, field: str) -> list[Row]:
    """Add a field "key" to rows: the value of `field`, with a number before it."""
    number = {value: i for i, value in enumerate(dict.fromkeys(row[field] for row in rows))}
    return [row | {"key": f"{number[row[field]]}={row[field]}"} for row in rows]


def keys_of(rows: Rows) -> list[str]:
    """The different keys, in their order."""
    return list(dict.fromkeys(row["key"] for row in rows))


def names_axis(alt: Any, **options: Any) -> Any:
    """An axis of keys that shows the names."""
    return alt.Axis(labelExpr=_NAME, **options)


def labels_above(alt: Any) -> Any:
    """Put names of rows above their marks, so that long names have room on a phone."""
    return names_axis(
        alt,
        labelAlign="left", labelBaseline="bottom", labelPadding=-2, labelOffset=-8, labelLimit=320,
        minExtent=0, maxExtent=0, grid=False,
    )  # fmt: skip


def share_axis(alt: Any, field: str, title: str, **scale: Any) -> Any:
    """An axis of shares that need not begin at zero."""
    return alt.X(f"{field}:Q", title=title, scale=alt.Scale(zero=False, nice=True, **scale))


def log_seconds(alt: Any, rows: Rows, title: str) -> Any:
    """A logarithmic axis of times that is labeled at powers of ten only."""
    exponents = [math.log10(row["seconds"]) for row in rows]
    low, high = math.floor(min(exponents)), math.ceil(max(exponents))
    high = max(high, low + 1)
    return alt.X(
        "seconds:Q",
        title=title,
        scale=alt.Scale(type="log", domain=[10.0**low, 10.0**high], nice=False),
        axis=alt.Axis(
            labelExpr=_SECONDS,
            labelOverlap="greedy",
            values=[10.0**e for e in range(low, high + 1)],
        ),
    )


def class_scales(alt: Any, n_classes: int) -> tuple[Any, Any]:
    """Give colors and shapes to classes ``c0``, ``c1``, ...; the first 49 all look different."""
    keys = [f"c{i}" for i in range(n_classes)]
    looks = [look_of(i) for i in range(n_classes)]
    colors = alt.Scale(domain=keys, range=[COLORS[color] for color, _ in looks])
    return colors, alt.Scale(domain=keys, range=[SHAPES[shape] for _, shape in looks])


def look_of(number: int) -> tuple[int, int]:
    """Give the color and the shape that a class has in all figures."""
    n = len(COLORS)
    return number % n, (number + number // n) % len(SHAPES)
