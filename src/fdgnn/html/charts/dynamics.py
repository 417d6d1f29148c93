"""Charts of the dynamics: convergence, iterations, certificates, the map of stability."""

from __future__ import annotations

from fdgnn.html.charts.base import (
    INK,
    OURS,
    PAPER,
    Rows,
    altair,
    either,
    finish,
    finish_layers,
    inline,
    tooltip,
)
from fdgnn.html.figures import Spec


def convergence(rows: Rows, tol: float, low: float, high: float, last: int) -> Spec:
    """Residuals of some graphs in one layer. Rows: graph, step, residual, certified, words."""
    alt = altair()
    x = alt.X(
        "step:Q", title="iteration", scale=alt.Scale(domain=[1, last], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d"),
    )  # fmt: skip
    y = alt.Y(
        "residual:Q",
        title="change of the states",
        scale=alt.Scale(type="log", domain=[low, high], clamp=True),
        axis=alt.Axis(format="~g", tickCount=6, labelOverlap=True),
    )
    kinds = {"domain": [True, False]}
    base = alt.Chart(inline(rows)).encode(
        x=x,
        y=y,
        color=alt.Color("certified:N", legend=None, scale=alt.Scale(**kinds, range=[OURS, PAPER])),
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


def iterations(rows: Rows, n_layers: int) -> Spec:
    """How many graphs needed how many iterations, layer by layer. Rows: layer, steps, graphs."""
    alt = altair()
    chart = (
        alt.Chart(inline(rows))
        .mark_point(filled=True, color=OURS, opacity=0.65, stroke="var(--paper)", strokeWidth=0.8)
        .encode(
            x=alt.X(
                "steps:Q", title="iterations until the states rest",
                scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(tickMinStep=1, format="d"),
            ),
            y=alt.Y("layer:O", title="layer"),
            size=alt.Size("graphs:Q", legend=None, scale=alt.Scale(range=[12, 700], zero=True)),
            tooltip=tooltip(layer="layer", steps="iterations", graphs="graphs"),
        )
    )  # fmt: skip
    return finish(chart, 44 * n_layers + 40)


def certified(rows: Rows, n_layers: int) -> Spec:
    """Graphs by what is known of them, layer by layer. Rows: layer, kind, graphs, share."""
    alt = altair()
    kinds = ["certified", "uncertified"]
    chart = (
        alt.Chart(inline(rows))
        .mark_bar(stroke="var(--paper)", strokeWidth=1, height=18)
        .encode(
            x=alt.X("graphs:Q", title="graphs", stack="zero"),
            y=alt.Y("layer:O", title="layer"),
            color=alt.Color(
                "kind:N", legend=None, scale=alt.Scale(domain=kinds, range=[OURS, PAPER])
            ),
            order=alt.Order("order:Q"),
            tooltip=tooltip(layer="layer", kind="kind", graphs="graphs", share="share"),
        )
    )
    return finish(chart, 36 * n_layers + 40)


def stability(points: Rows, border: Rows, degree: float, top: float) -> Spec:
    """Where each graph and layer lies: rho(|A|) to the right, rho(|W_H|) upward; border: 1.

    Points: radius, weight, layer, graphs, stable, words. Border: radius, weight.
    """
    alt = altair()
    last = max(row["radius"] for row in border)
    x = alt.X(
        "radius:Q", title="ρ(|A|), spectral radius of the graph",
        scale=alt.Scale(domain=[0, last], nice=False),
    )  # fmt: skip
    y = alt.Y(
        "weight:Q", title="ρ(|W_H|), of the layer's weights",
        scale=alt.Scale(domain=[0, top], clamp=True, nice=False),
    )  # fmt: skip
    area = alt.Chart(inline(border)).mark_area(color="var(--band)", clip=True).encode(x=x, y=y)
    edge = (
        alt.Chart(inline([row for row in border if row["weight"] < top]))
        .mark_line(color=INK, strokeWidth=1.5)
        .encode(x=x, y=y)
    )
    line = alt.Chart(inline([{"degree": degree}])).mark_rule(
        color=INK, strokeDash=[4, 4], opacity=0.6
    )
    graphs = (
        alt.Chart(inline(points))
        .mark_point(filled=True, opacity=0.75, stroke="var(--paper)", strokeWidth=0.6)
        .encode(
            x=x,
            y=y,
            size=alt.Size("graphs:Q", legend=None, scale=alt.Scale(range=[14, 420], zero=True)),
            color=either(alt.ColorValue, "datum.stable", OURS, PAPER),
            shape=either(alt.ShapeValue, "datum.stable", "circle", "triangle-up"),
            tooltip=tooltip(
                layer="layer", words="graphs", radius_="ρ(|A|)", weight_="ρ(|W_H|)",
                product_="ρ(|W_H|) ρ(|A|)",
            ),
        )
    )  # fmt: skip
    return finish_layers([area, edge, line.encode(x=alt.X("degree:Q")), graphs], 300)
