"""Figures of a report: charts as Vega-Lite specifications, tables, legends, and their sections.

Colors are CSS variables of the page and ``currentColor``, so that one drawing serves the dark and
the light theme. A shape, size or dash repeats the information of each color. Field names are ours.
Text from files occurs in values only, never in an expression that Vega evaluates. Vega uses the
values that it groups by as names of JavaScript properties, and names such as ``__proto__`` break
it: `keyed` puts a number before each value, so that no value is such a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fdgnn.html.words import NONE

Row = dict[str, Any]  # the fields of one mark of a chart, by name
Spec = dict[str, Any]  # a chart, or a part of one, as Vega-Lite reads it


@dataclass(frozen=True)
class Table:
    """Rows of text; the first `n_words` columns are words, the others numbers.

    `ours` are the positions of the rows that stand out.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_words: int = 1
    note: str = ""
    ours: Sequence[int] = ()

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str]], **options: Any) -> Table:
        """Return the table of rows that have their cells by the names of the columns."""
        return cls(list(rows[0]), [list(row.values()) for row in rows], **options)

    def without_empty(self) -> Table:
        """Return the table without empty columns of numbers."""
        columns = range(len(self.head))
        kept = [i for i in columns if i < self.n_words or any(r[i] != NONE for r in self.rows)]
        rows = [[row[i] for i in kept] for row in self.rows]
        return replace(self, head=[self.head[i] for i in kept], rows=rows)


@dataclass(frozen=True)
class Key:
    """One entry of a legend: how a mark looks, and what it means."""

    mark: str  # as parts.html.j2 names it: circle, diamond, line, dashes, ring, dot, pale, ...
    color: str  # a variable of the style sheet, such as "c1", "ink" or "quiet"
    words: str


@dataclass(frozen=True)
class Panel:
    """One chart of a figure; it needs a title where a figure has several charts."""

    id: str
    spec: Spec
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """Charts with one caption, which says what to see, and one table.

    A figure that shows something else has a `kind` with a template of its own, and a `body` that
    the template shows. `data` are tables that charts share, by name.
    """

    id: str
    title: str
    caption: str = ""
    panels: Sequence[Panel] = ()
    table: Table | None = None
    key: Sequence[Key] = ()
    kind: str = "charts"  # or map, confusion, cards
    body: Mapping[str, Any] = field(default_factory=dict)
    half: bool = False  # whether it may share its line with another figure
    open: bool = False  # whether the table is open from the start
    data: Mapping[str, Sequence[Row]] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """Figures of one subject in a section; `missing` is the reason if there are none."""

    figures: Sequence[Figure] = ()
    facts: Sequence[tuple[str, str]] = ()
    missing: str = ""
    lead: str = ""
    command: str = ""
    run: int = 0  # the number of the subject
    name: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.figures or self.facts or self.missing or self.command)


@dataclass(frozen=True)
class Section:
    """A section of the page: cards and figures of all subjects together, then a part for each."""

    id: str
    title: str
    lead: str
    parts: Sequence[Part] = ()
    figures: Sequence[Figure] = ()
    cards: Sequence[Mapping[str, str]] = ()


# ---------------------------------------------------------------------- charts

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

_MOST_KEYS = 12  # classes in a legend
# The name without the number that `keyed` puts before it.
_NAME = "slice(datum.label, indexof(datum.label, '=') + 1)"
_NAMES = {"labelExpr": _NAME, "grid": False}
_ONCE: Spec = {"values": [{}]}  # data of a mark that is drawn once


def chart(
    layers: Sequence[Spec], height: float, data: Spec, encoding: Spec | None = None, **params: Any
) -> Spec:
    """Return a chart that is as wide as the page allows; `params` are variables of the page."""
    return {
        "config": _CONFIG,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit", "contains": "padding", "resize": True},
        "data": data,
        "encoding": encoding or {},
        "layer": layers,
        "params": [{"name": name, "value": value} for name, value in params.items()],
    }


def _layer(mark: str, encoding: Spec, look: Spec, **options: Any) -> Spec:
    """Return a layer of a chart; points are filled unless their `look` differs."""
    filled = {"filled": True} if mark == "point" else {}
    return {**options, "mark": {"type": mark, **filled, **look}, "encoding": encoding}


def number(name: str, title: str | None = None, **options: Any) -> Spec:
    """Return the channel of a field with numbers."""
    return {"field": name, "type": "quantitative", "title": title, **options}


def _category(name: str, domain: Sequence[Any], values: Sequence[Any]) -> Spec:
    """Return the channel of a field whose values look different."""
    scale = {"domain": list(domain), "range": list(values)}
    return {"field": name, "type": "nominal", "legend": None, "scale": scale}


def _either(test: str, yes: Any, no: Any) -> Spec:
    """Return a channel with one of two values."""
    return {"value": no, "condition": {"test": test, "value": yes}}


def _tooltip(**titles: str) -> list[Spec]:
    """Return fields and their titles, in this order; values are made ready in Python."""
    return [{"field": name, "type": "nominal", "title": titles[name]} for name in titles]


def keyed(rows: Sequence[Row], name: str) -> list[Row]:
    """Add a field "key" to rows: the value of a field, with a number before it."""
    numbers = {value: i for i, value in enumerate(dict.fromkeys(row[name] for row in rows))}
    return [row | {"key": f"{numbers[row[name]]}={row[name]}"} for row in rows]


def look_of(number: int) -> tuple[int, int]:
    """Return the color and the shape that a class has in all figures; the first 49 differ."""
    n = len(COLORS)
    return number % n, (number + number // n) % len(SHAPES)


def class_key(classes: Sequence[str], mark: str | None = None) -> list[Key]:
    """Return a legend entry for each class, with the color and shape it has everywhere."""
    keys = []
    for i, name in enumerate(classes[:_MOST_KEYS]):
        color, shape = look_of(i)
        keys.append(Key(mark or KEY_MARKS[shape], f"c{color + 1}", f"class {name}"))
    if len(classes) > _MOST_KEYS:
        keys.append(Key("", "quiet", f"and {len(classes) - _MOST_KEYS} more"))
    return keys


def _classes(n_classes: int) -> tuple[list[str], list[str], list[str]]:
    """Return the keys, colors and shapes of classes."""
    looks = [look_of(i) for i in range(n_classes)]
    keys = [f"c{i}" for i in range(n_classes)]
    return keys, [COLORS[color] for color, _ in looks], [SHAPES[shape] for _, shape in looks]


#: How each kind of row of a score chart looks: its color, its shape, and the mark of the legend.
KINDS = {
    "ours": (OURS, "circle", "circle"),
    "other": (COLORS[2], "square", "square"),
    "constant": (QUIET, "triangle-up", "triangle"),
    "linear": (COLORS[3], "triangle-down", "down"),
    "published": (OTHER, "diamond", "diamond"),
}


def scores(rows: Sequence[Row], title: str) -> Spec:
    """Draw scores of models, one row each: mean, spread and folds, with baselines beside them.

    Rows: row, what (a kind, or "fold"), value, low, high, words, shown, folds.
    """
    rows = keyed(rows, "row")
    keys = list(dict.fromkeys(row["key"] for row in rows))
    known = {row["what"] for row in rows}
    kinds = [kind for kind in KINDS if kind in known]
    color, shape = (_category("what", kinds, [KINDS[k][i] for k in kinds]) for i in range(2))
    x = number("value", title, scale={"zero": False, "nice": True})
    ends = {"x": number("low", title), "x2": {"field": "high"}, "color": color}
    look = {"size": 130, "opacity": 1, "stroke": "var(--paper)", "strokeWidth": 1.5}
    layers = []
    if "fold" in known:
        size = number("folds", legend=None, scale={"domain": [0, 10], "range": [0, 460]})
        fold = {"size": 0, "color": OURS, "opacity": 0.35, "shape": "circle", "strokeWidth": 0}
        only = [{"filter": "datum.what === 'fold'"}]
        layers.append(_layer("point", {"x": x, "size": size}, look | fold, transform=only))
    below = {"yOffset": 11, "strokeDash": [5, 3]}  # a published score does not hide ours
    for test, kept, more in (
        ("===", known & {"published"}, below),
        ("!==", known - {"published"}, {}),
    ):
        if kept:  # an empty layer would have no scale
            only = [{"filter": f"datum.what {test} 'published' && datum.what !== 'fold'"}]
            point = {"x": x, "color": color, "shape": shape}
            layers += [
                _layer("rule", ends, {"strokeWidth": 2.5, **more}, transform=only),
                _layer("point", point, look | more | {"strokeDash": []}, transform=only),
            ]
    # Names stand above their marks, so that long names have room on a phone.
    axis = _NAMES | {
        "labelAlign": "left", "labelBaseline": "bottom", "labelPadding": -2, "labelOffset": -8,
        "labelLimit": 320, "minExtent": 0, "maxExtent": 0,
    }  # fmt: skip
    y = {"field": "key", "type": "nominal", "title": None, "scale": {"domain": keys}, "axis": axis}
    tip = _tooltip(row="model", words="what", shown=title)
    return chart(layers, 48 * len(keys) + 55, {"values": rows}, {"y": y, "tooltip": tip})


def search(table: str, name: str, metric: str) -> Spec:
    """Draw validation scores of all configurations against one hyperparameter.

    Rows of the table: the field, mean, low, high (over random initializations), chosen (by how
    many folds), and the fields of the tooltip.
    """
    scale, title = {"zero": False}, f"validation {metric}"
    whole = {"tickMinStep": 1} if name in ("n_layers", "power") else {}
    tip = _tooltip(words="configuration", shown="mean", span="initializations", by="chosen")
    x = number(name, scale={"nice": False, "zero": False, "padding": 10}, axis=whole)
    ends = {
        "y": number("low", title, scale=scale), "y2": {"field": "high"}, "opacity": {"value": 0.35}
    }  # fmt: skip
    chosen = "datum.chosen > 0"
    points = {
        "y": number("mean", title, scale=scale),
        "color": _either(chosen, OTHER, OURS),
        "shape": _either(chosen, "diamond", "circle"),
        "size": _either(chosen, 120, 38),
        "opacity": _either(chosen, 1, 0.6),
        "stroke": {"value": "var(--paper)"},
        "strokeWidth": {"value": 0.8},
    }
    layers = [
        _layer("rule", ends, {"strokeWidth": 1.2, "color": QUIET}), _layer("point", points, {})
    ]  # fmt: skip
    return chart(layers, 210, {"name": table}, {"x": x, "tooltip": tip})


def bars(
    rows: Sequence[Row], title: str, unit: str, n_classes: int = 1, *, intervals: bool = False
) -> Spec:
    """Draw counts by name, from left to right. Rows: name, count, share, look, kind, order.

    Of `intervals`, such as "3 to 5", the axis shows where they start.
    """
    axis = _NAMES | {
        "labelAngle": 0, "labelOverlap": "greedy", "labelSeparation": 6, "labelLimit": 80
    }  # fmt: skip
    if intervals:
        axis |= {"labelExpr": f"split({_NAME}, ' to ')[0]"}
    kinds = {"kind": "class"} if n_classes > 1 else {}
    encoding = {
        "x": {"field": "key", "type": "nominal", "sort": None, "title": title, "axis": axis},
        "y": number("count", unit, stack="zero"),
        "color": _category("look", *_classes(n_classes)[:2]),
        "order": number("order"),
        "tooltip": _tooltip(**{"name": title, **kinds, "count": unit, "share": "share"}),
    }
    layer = _layer("bar", encoding, {"stroke": "var(--paper)", "strokeWidth": 0.5})
    return chart([layer], 220, {"values": keyed(rows, "name")})


def graph_map(
    table: str,
    n_classes: int,
    n_graphs: int,
    explained: Sequence[float],
    ends: Sequence[Sequence[float]],
) -> Spec:
    """Draw the features of the graphs in the plane; the page listens to clicks on them.

    Rows of the table: graph, x, y, answer ("right", "wrong"), words, and for classes "key", for a
    regression value and error.
    """
    axis = {"labels": False, "ticks": False, "grid": False, "domain": False}
    encoding: Spec = {}
    for i, name in enumerate("xy"):
        share = f", {100 * explained[i]:.0f} % of the variance" if explained[i] else ""
        scale = {"domain": ends[i], "padding": 14}
        encoding[name] = number(name, f"principal component {i + 1}{share}", axis=axis, scale=scale)
    point: Spec = {"cursor": "pointer"}
    if n_classes:
        keys, colors, shapes = _classes(n_classes)
        wrong = "datum.answer === 'wrong'"
        size = min(60, max(20, 14_000 // max(1, n_graphs)))  # smaller where there are more
        shown = "datum.key : datum.answer"
        look: Spec = {
            "color": _category("shown", [*keys, "right", "wrong"], [*colors, OURS, OTHER]),
            "shape": _category("key", keys, shapes),
            "size": _either(wrong, 1.6 * size, size),
            "opacity": _either(wrong, 1, 0.6),
            "stroke": _either(wrong, INK, "var(--paper)"),
            "strokeWidth": _either(wrong, 1.6 if size > 40 else 1.1, 0.5),
        }
    else:
        shown = "datum.value : datum.error"
        point |= {"opacity": 0.85, "size": 60, "stroke": "var(--rule)", "strokeWidth": 0.5}
        legend = {"title": None, "orient": "top", "gradientLength": 180}
        look = {"color": number("shown", scale={"scheme": "cividis"}, legend=legend)}
    look["tooltip"] = _tooltip(
        words="graph", actual="actual", predicted="predicted", probability_="probability",
        size_="size",
    )  # fmt: skip
    colored = [{"calculate": f"by === 'class' ? {shown}", "as": "shown"}]
    ring = {"filled": False, "size": 340, "strokeWidth": 2.5, "color": INK, "opacity": 1}
    layers = [
        _layer("point", look, point, transform=colored),
        _layer("point", {}, ring, transform=[{"filter": "datum.graph == picked"}]),
    ]
    return chart(layers, 430, {"name": table}, encoding, by="class", picked=-1)


def diagonal(
    rows: Sequence[Row], titles: tuple[str, str], ends: tuple[float, float], tips: dict[str, str]
) -> Spec:
    """Draw points and the diagonal. Rows: x, y, n, low, high."""
    scale = {"domain": list(ends), "nice": False, "zero": False}
    x, y = (number(name, title, scale=scale) for name, title in zip("xy", titles, strict=True))
    start, stop = ({"datum": end, "type": "quantitative"} for end in ends)
    line = {"x": start, "y": start, "x2": stop, "y2": stop}
    bars = {"x": x, "y": number("low", titles[1]), "y2": {"field": "high"}}
    several = any(row["n"] > 1 for row in rows)
    scale = {"range": [44, 500 if several else 44], "domainMin": 1}
    points = {
        "x": x, "y": y, "size": number("n", legend=None, scale=scale), "tooltip": _tooltip(**tips)
    }  # fmt: skip
    dashed = {"color": INK, "strokeDash": [4, 4], "opacity": 0.6}
    look = {"color": OURS, "opacity": 0.65, "stroke": "var(--paper)", "strokeWidth": 0.5}
    layers = [
        _layer("rule", line, dashed, data=_ONCE),
        _layer("rule", bars, {"color": OURS, "strokeWidth": 1.5}),
        _layer("point", points, look),
    ]
    return chart(layers, 300, {"values": rows})


def convergence(rows: Sequence[Row], tol: float, ends: Sequence[float], last: int) -> Spec:
    """Draw residuals of graphs in one layer. Rows: graph, step, residual, certified, words."""
    scale = {"type": "log", "domain": list(ends), "clamp": True}
    axis = {"format": "~g", "tickCount": 6, "labelOverlap": True}
    steps = {"tickMinStep": 1, "format": "d"}
    encoding = {
        "x": number("step", "iteration", scale={"domain": [1, last], "nice": False}, axis=steps),
        "y": number("residual", "change of the states", scale=scale, axis=axis),
        "color": _category("certified", [True, False], [OURS, OTHER]),
        "detail": {"field": "graph", "type": "nominal"},
    }
    lines = {"strokeDash": _category("certified", [True, False], [[1, 0], [6, 3]])}
    hover = {"tooltip": _tooltip(words="graph", step="iteration", shown="change")}
    stop = {"y": {"datum": tol, "type": "quantitative", "scale": scale, "axis": axis}}
    layers = [
        _layer("rule", stop, {"color": INK, "strokeDash": [2, 3]}, data=_ONCE),
        _layer("line", encoding | lines, {"strokeWidth": 1.6, "opacity": 0.8}),
        _layer("point", encoding | hover, {"size": 60, "opacity": 0}),
    ]
    return chart(layers, 220, {"values": rows})
