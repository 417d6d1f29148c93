"""The dynamics: where the paper's theory becomes visible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fdgnn.report import charts
from fdgnn.report.figures import Block, Figure, Key, Panel, Section, Table
from fdgnn.report.numbers import NONE, count, listed, percent, plural, significant
from fdgnn.report.sections.missing import no_portrait
from fdgnn.report.sources import Source

FLOOR = 1e-14  # residuals are drawn down to here; beyond, there is only rounding
N_BINS = 60


def section(sources: Sequence[Source]) -> Section:
    """Convergence, iterations, certificates and the map of stability."""
    return Section(
        id="dynamics",
        title="The dynamics",
        lead="A graph's embedding is where a layer's states come to rest. Whether there is only "
        "one such point, whatever the start, depends on the weights W_H and the graph's adjacency "
        "matrix A: ρ(W_H) ρ(A) < 1 is a certificate for it.",
        blocks=[_block(i, s) for i, s in enumerate(sources) if s.settings or s.model],
    )


def _block(run: int, source: Source) -> Block:
    if source.portrait is None:
        return Block(run, source.name, missing=no_portrait(source))
    dynamics = source.portrait["dynamics"]
    figures = []
    if dynamics["curves"]:
        figures.append(_convergence(run, dynamics))
    if dynamics["layers"]:
        figures.append(_iterations(run, dynamics))
        figures.append(_certified(run, dynamics))
        if dynamics["radii"]:
            figures.append(_stability(run, dynamics))
    return Block(run, source.name, figures)


def _convergence(run: int, dynamics: dict[str, Any]) -> Figure:
    by_layer: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for curve in dynamics["curves"]:
        for step, residual in enumerate(curve["residuals"], start=1):
            if residual is not None:
                by_layer[curve["layer"]].append(
                    {
                        "graph": curve["graph"],
                        "step": step,
                        "residual": max(residual, FLOOR),
                        "shown": significant(residual),
                        "certified": curve["certified"],
                        "words": f"{curve['graph']}, "
                        + ("certified" if curve["certified"] else "uncertified"),
                    }
                )
    rows = [row for layer in by_layer.values() for row in layer]
    values = [r["residual"] for r in rows] or [dynamics["tol"]]
    low, high = min(*values, dynamics["tol"]) / 2, max(*values, dynamics["tol"]) * 2
    last = max([r["step"] for r in rows] + [2])
    uncertified = any(not curve["certified"] for curve in dynamics["curves"])
    return Figure(
        id=f"convergence-{run}",
        heads=True,
        title="States come to rest",
        caption=_convergence_caption(dynamics),
        panels=[
            Panel(
                f"convergence-{run}-{layer}",
                charts.convergence(by_layer[layer], dynamics["tol"], low, high, last),
                f"layer {layer}",
            )
            for layer in sorted(by_layer)
        ],
        table=_convergence_table(dynamics),
        key=[
            Key("line", "c1", "a certified graph"),
            *([Key("dashes", "c2", "an uncertified graph")] if uncertified else []),
            Key("dashes", "ink", f"ε = {dynamics['tol']:g}, where the paper's loop stops"),
        ],
    )


def _convergence_caption(dynamics: dict[str, Any]) -> str:
    rates = []
    for curve in dynamics["curves"]:
        values = [r for r in curve["residuals"] if r]
        if len(values) > 2:
            rates.append((values[-1] / values[0]) ** (1 / (len(values) - 1)))
    graphs = len({c["graph"] for c in dynamics["curves"]})
    text = (
        f"How far the states of {plural(graphs, 'graph')} move from one iteration to the next, on "
        "a logarithmic scale: a straight line downward is a contraction."
    )
    if rates:
        text += (
            f" On average an iteration leaves between {percent(min(rates), 0)} and "
            f"{percent(max(rates), 0)} of the movement."
        )
    return text


def _convergence_table(dynamics: dict[str, Any]) -> Table:
    rows = []
    for curve in dynamics["curves"]:
        values = [r for r in curve["residuals"] if r is not None]
        rows.append(
            [
                str(curve["layer"]),
                str(curve["graph"]),
                "yes" if curve["certified"] else "no",
                str(len(curve["residuals"])),
                significant(values[0]) if values else NONE,
                significant(values[-1]) if values else NONE,
            ]
        )
    head = ["layer", "graph", "certified", "iterations", "first change", "last change"]
    return Table(head, rows)


def _iterations(run: int, dynamics: dict[str, Any]) -> Figure:
    rows = [
        {"layer": layer["layer"], "steps": steps, "graphs": graphs}
        for layer in dynamics["layers"]
        for steps, graphs in layer["iterations"]
    ]
    means = []
    for layer in dynamics["layers"]:
        total = sum(graphs for _, graphs in layer["iterations"])
        if total:
            mean = sum(steps * graphs for steps, graphs in layer["iterations"]) / total
            means.append(f"{mean:.1f} in layer {layer['layer']}")
    stuck = sum(layer["unconverged"] for layer in dynamics["layers"])
    limit = dynamics["max_iter"]
    text = f"Iterations of the paper's loop on average: {listed(means)}; the limit is {limit}. "
    text += (
        f"{plural(stuck, 'time')} a graph was still moving there."
        if stuck
        else "All graphs came to rest before it."
    )
    table = Table(
        ["layer", "iterations", "graphs"],
        [[str(r["layer"]), str(r["steps"]), count(r["graphs"])] for r in rows],
    )
    return Figure(
        id=f"iterations-{run}",
        half=True,
        title="Iterations, layer by layer",
        caption=text,
        panels=[Panel(f"iterations-{run}", charts.iterations(rows, len(dynamics["layers"])))],
        table=table,
        key=[Key("circle", "c1", "graphs; the larger, the more")],
    )


def _certified(run: int, dynamics: dict[str, Any]) -> Figure:
    rows, table = [], []
    for layer in dynamics["layers"]:
        total = layer["certified"] + layer["uncertified"]
        for order, kind in enumerate(("certified", "uncertified")):
            if layer[kind]:
                rows.append(
                    {
                        "layer": layer["layer"],
                        "kind": kind,
                        "order": order,
                        "graphs": layer[kind],
                        "share": percent(layer[kind] / total),
                    }
                )
        table.append(
            [
                str(layer["layer"]),
                significant(layer["spectral_radius"]),
                significant(layer["norm"]),
                significant(layer["effective"]),
                count(layer["certified"]),
                count(layer["uncertified"]),
                count(layer["unconverged"]),
            ]
        )
    head = ["layer", "ρ(W_H)", "‖W_H‖", "ρ(W_H) k", "certified", "uncertified", "still moving"]
    return Figure(
        id=f"certified-{run}",
        half=True,
        title="Graphs with a certificate",
        caption=_certified_caption(dynamics),
        panels=[Panel(f"certified-{run}", charts.certified(rows, len(dynamics["layers"])))],
        table=Table(head, table),
        key=[
            Key("square", "c1", "certified: one fixed point, for sure"),
            *(
                [Key("square", "c2", "uncertified: the state after the last iteration is taken")]
                if any(layer["uncertified"] for layer in dynamics["layers"])
                else []
            ),
        ],
    )


def _certified_caption(dynamics: dict[str, Any]) -> str:
    layers = dynamics["layers"]
    radii = [significant(layer["effective"]) for layer in layers]
    text = (
        f"The effective spectral radius ρ(W_H) k is {listed(dict.fromkeys(radii))}, with "
        f"k = {significant(dynamics['degree'])}. "
    )
    open_ = [layer for layer in layers if layer["uncertified"]]
    if not open_:
        return text + "Every graph is certified in every layer: its embedding is well defined."
    worst = max(open_, key=lambda layer: layer["uncertified"])
    total = worst["certified"] + worst["uncertified"]
    return text + (
        f"In layer {worst['layer']}, {count(worst['uncertified'])} of {count(total)} graphs have "
        "no certificate: their ρ(A) is too large for these weights. That does not mean that they "
        "do not come to rest, only that theory does not promise it."
    )


def _stability(run: int, dynamics: dict[str, Any]) -> Figure:
    radii = [row[1] for row in dynamics["radii"]]
    layers, k = dynamics["layers"], dynamics["degree"]
    last = 1.05 * max(*radii, k, 1e-6)
    top = 1.6 * max(max(layer["spectral_radius"] for layer in layers), 1 / last, 1e-6)
    points = _stability_points(radii, layers, last)
    n_steps = 120
    border = [
        {"radius": round(x, 5), "weight": round(min(1 / x, top), 5)}
        for x in (last * (i + 0.5) / n_steps for i in range(n_steps))
    ]
    border = [{"radius": 0, "weight": top}, *border, {"radius": last, "weight": min(1 / last, top)}]
    return Figure(
        id=f"stability-{run}",
        title="Map of stability",
        caption=_stability_caption(dynamics, radii),
        panels=[Panel(f"stability-{run}", charts.stability(points, border, k, top))],
        table=_stability_table(dynamics, radii),
        key=[
            Key("band", "band", "ρ(W_H) ρ(A) < 1: one fixed point, for sure"),
            Key("circle", "c1", "graphs of one layer inside it; the larger, the more"),
            *(
                [Key("triangle", "c2", "graphs outside")]
                if any(not point["stable"] for point in points)
                else []
            ),
            Key("dashes", "ink", f"k = {significant(k)}"),
        ],
    )


def _stability_points(
    radii: Sequence[float], layers: Sequence[dict[str, Any]], last: float
) -> list[dict[str, Any]]:
    """Graphs of a layer that are close to each other make one point, never across the border."""
    rows = []
    for layer in layers:
        weight = layer["spectral_radius"]
        bins: dict[tuple[int, bool], list[float]] = defaultdict(list)
        for radius in radii:
            bins[int(N_BINS * radius / last), weight * radius < 1].append(radius)
        for (_, stable), members in bins.items():
            mean = sum(members) / len(members)
            rows.append(
                {
                    "radius": round(mean, 4),
                    "weight": round(weight, 5),
                    "layer": layer["layer"],
                    "graphs": len(members),
                    "stable": stable,
                    "words": plural(len(members), "graph"),
                    "radius_": _span(members),
                    "weight_": significant(weight),
                    "product_": significant(weight * mean),
                }
            )
    return rows


def _span(values: Sequence[float]) -> str:
    low, high = significant(min(values)), significant(max(values))
    return low if low == high else f"{low} to {high}"


def _stability_caption(dynamics: dict[str, Any], radii: Sequence[float]) -> str:
    k = dynamics["degree"]
    beyond = sum(r > k for r in radii)
    products = [max(radii) * layer["spectral_radius"] for layer in dynamics["layers"]]
    text = (
        "Each row of points is a layer, at the height of its ρ(W_H); each point is a group of "
        "graphs, at their ρ(A). Under the curve states are certain to come to rest at one point. "
        f"The largest product of all is {significant(max(products))}. "
    )
    if beyond:
        return text + (
            f"Of {plural(len(radii), 'graph')}, {count(beyond)} have a ρ(A) beyond k, the average "
            "that the weights were scaled by: such graphs are the first to lose the certificate."
        )
    return text + "No graph lies beyond k, so that any effective radius below 1 certifies them all."


def _stability_table(dynamics: dict[str, Any], radii: Sequence[float]) -> Table:
    ordered = sorted(radii)
    middle = ordered[len(ordered) // 2]
    rows = []
    for layer in dynamics["layers"]:
        weight = layer["spectral_radius"]
        rows.append(
            [
                str(layer["layer"]),
                significant(weight),
                significant(weight * ordered[0]),
                significant(weight * middle),
                significant(weight * ordered[-1]),
                count(sum(weight * r < 1 for r in ordered)),
                count(len(ordered)),
            ]
        )
    head = ["layer", "ρ(W_H)", "smallest product", "median", "largest", "below 1", "graphs"]
    return Table(head, rows, note="Product: ρ(W_H) ρ(A).")
