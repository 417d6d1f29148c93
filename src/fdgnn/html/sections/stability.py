"""The map of stability: every graph and layer, and where a fixed point is certain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fdgnn.html import charts
from fdgnn.html.figures import Figure, Key, Panel, Row, Table
from fdgnn.html.model_data.records import DynamicsFacts
from fdgnn.html.numbers import count, listed, plural, significant

N_BINS = 60  # of graphs by their radius
N_STEPS = 120  # of the border


def figure(run: int, dynamics: DynamicsFacts, whom: str) -> Figure:
    """Each layer as a row of points below or above the border; `whom` names the graphs."""
    radii, k = dynamics.radii, dynamics.degree
    weights = [layer.absolute_radius for layer in dynamics.layers]
    last = 1.05 * max(*radii, k, 1e-6)
    # Rounded as the border is, so that its flat top can be told from the curve.
    top = _short(1.6 * max(*weights, 1 / last))
    points = _points(radii, weights, last)
    key = [
        Key("band", "band", "ρ(|W_H|) ρ(|A|) < 1: one fixed point, for sure"),
        Key("circle", "c1", "graphs of one layer inside it; the larger, the more"),
    ]
    if not all(point["stable"] for point in points):
        key.append(Key("triangle", "c2", "graphs outside"))
    key.append(Key("dashes", "ink", f"k = {significant(k)}"))
    return Figure(
        id=f"stability-{run}",
        title="Map of stability",
        caption=_caption(radii, weights, k, whom),
        panels=[Panel(f"stability-{run}", charts.stability(points, _border(last, top), k, top))],
        table=_table(radii, weights),
        key=key,
    )


def _border(last: float, top: float) -> list[Row]:
    """The curve where the product is 1, cut off at the top of the chart."""
    inner = [last * (i + 0.5) / N_STEPS for i in range(N_STEPS)]
    return [
        {"radius": 0, "weight": top},
        *({"radius": round(x, 5), "weight": _short(min(1 / x, top))} for x in inner),
        {"radius": last, "weight": _short(min(1 / last, top))},
    ]


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


def _points(radii: Sequence[float], weights: Sequence[float], last: float) -> list[Row]:
    """Put graphs of a layer that lie close together into one point, never across the border."""
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
        f"Each row of points is {who}, at the height of ρ(|W_H|). Each point is a group of graphs, "
        "at their ρ(|A|). Below the curve, states are certain to come to rest at one point. "
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
