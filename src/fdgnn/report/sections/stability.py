"""The map of stability: every graph and layer, and where a fixed point is certain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fdgnn.report import charts
from fdgnn.report.figures import Figure, Key, Panel, Table
from fdgnn.report.numbers import count, listed, plural, significant

N_BINS = 60  # of graphs by their radius


def absolute_radii(portrait: dict[str, Any]) -> list[float]:
    """The layers' ρ(|W_H|); none if an early portrait does not have them."""
    layers = portrait["dynamics"]["layers"]
    if all("absolute_radius" in layer for layer in layers):
        return [layer["absolute_radius"] for layer in layers]
    # With one connection a neuron it is the same as ρ(W_H).
    alike = portrait["settings"].get("n_connections") == 1
    return [layer["spectral_radius"] for layer in layers] if alike else []


def figure(run: int, dynamics: dict[str, Any], weights: Sequence[float], whom: str) -> Figure:
    """Each layer as a row of points under or beyond the border; `whom` says of which graphs."""
    radii, k = [row[1] for row in dynamics["radii"]], dynamics["degree"]
    last = 1.05 * max(*radii, k, 1e-6)
    # Rounded as the border is, so that its flat top can be told from the curve.
    top = _short(1.6 * max(*weights, 1 / last))
    points = _points(radii, weights, last)
    n_steps = 120
    border = [
        {"radius": round(x, 5), "weight": _short(min(1 / x, top))}
        for x in (last * (i + 0.5) / n_steps for i in range(n_steps))
    ]
    end = {"radius": last, "weight": _short(min(1 / last, top))}
    border = [{"radius": 0, "weight": top}, *border, end]
    return Figure(
        id=f"stability-{run}",
        title="Map of stability",
        caption=_caption(radii, weights, k, whom),
        panels=[Panel(f"stability-{run}", charts.stability(points, border, k, top))],
        table=_table(radii, weights),
        key=[
            Key("band", "band", "ρ(|W_H|) ρ(|A|) < 1: one fixed point, for sure"),
            Key("circle", "c1", "graphs of one layer inside it; the larger, the more"),
            *(
                [Key("triangle", "c2", "graphs outside")]
                if any(not point["stable"] for point in points)
                else []
            ),
            Key("dashes", "ink", f"k = {significant(k)}"),
        ],
    )


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _rows_of_layers(weights: Sequence[float]) -> dict[float, list[int]]:
    """Layers, from 1, by their ρ(|W_H|) as drawn: equal ones share a row of points."""
    rows: dict[float, list[int]] = defaultdict(list)
    for layer, weight in enumerate(weights, start=1):
        rows[_short(weight)].append(layer)
    return rows


def _layers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"layer {numbers[0]}"
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"layers {numbers[0]} to {numbers[-1]}"
    return f"layers {listed(numbers)}"


def _points(radii: Sequence[float], weights: Sequence[float], last: float) -> list[dict[str, Any]]:
    """Graphs of a layer that are close to each other make one point, never across the border."""
    rows = []
    for height, layers in _rows_of_layers(weights).items():
        weight = weights[layers[0] - 1]
        bins: dict[tuple[int, bool], list[float]] = defaultdict(list)
        for radius in radii:
            bins[int(N_BINS * radius / last), weight * radius < 1].append(radius)
        for (_, stable), members in bins.items():
            mean = sum(members) / len(members)
            rows.append(
                {
                    "radius": round(mean, 4),
                    "weight": height,
                    "layer": _layers(layers),
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


def _caption(radii: Sequence[float], weights: Sequence[float], k: float, whom: str) -> str:
    beyond = sum(r > k for r in radii)
    rows = _rows_of_layers(weights)
    who = "a layer" if len(rows) == len(weights) else listed(map(_layers, rows.values()))
    text = (
        f"Each row of points is {who}, at the height of ρ(|W_H|); each point is a group of graphs, "
        "at their ρ(|A|). Under the curve states are certain to come to rest at one point. "
        f"The largest product of all is {significant(max(radii) * max(weights))}. "
    )
    if beyond:
        return text + (
            f"Of {whom}, {count(beyond)} have a ρ(|A|) beyond k, by which the weights were scaled: "
            "such graphs are the first to lose the certificate."
        )
    return text + f"Of {whom}, none has a ρ(|A|) beyond k, by which the weights were scaled."


def _table(radii: Sequence[float], weights: Sequence[float]) -> Table:
    ordered = sorted(radii)
    rows = [
        [
            str(layer),
            significant(weight),
            significant(weight * ordered[0]),
            significant(weight * ordered[len(ordered) // 2]),
            significant(weight * ordered[-1]),
            count(sum(weight * r < 1 for r in ordered)),
            count(len(ordered)),
        ]
        for layer, weight in enumerate(weights, start=1)
    ]
    head = ["layer", "ρ(|W_H|)", "smallest product", "median", "largest", "below 1", "graphs"]
    return Table(head, rows, note="Product: ρ(|W_H|) ρ(|A|).")
