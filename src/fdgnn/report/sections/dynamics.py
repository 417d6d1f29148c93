"""The dynamics: where the paper's theory becomes visible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fdgnn.report import charts
from fdgnn.report.figures import Block, Figure, Key, Panel, Section, Table
from fdgnn.report.numbers import NONE, count, listed, percent, plural, significant
from fdgnn.report.sections import stability
from fdgnn.report.sections.missing import no_portrait
from fdgnn.report.sources import Source

FLOOR = 1e-14  # residuals are drawn down to here; beyond, there is only rounding


def section(sources: Sequence[Source]) -> Section:
    """Convergence, iterations, certificates and the map of stability."""
    return Section(
        id="dynamics",
        title="The dynamics",
        lead="A graph's embedding is where a layer's states come to rest. Whether there is only "
        "one such point, whatever the start, depends on the weights W_H and the graph's adjacency "
        "matrix A: ρ(|W_H|) ρ(|A|) < 1 is a certificate for it, where |·| leaves out the signs.",
        blocks=[_block(i, s) for i, s in enumerate(sources) if s.settings or s.model],
    )


def _block(run: int, source: Source) -> Block:
    if source.portrait is None:
        return Block(run, source.name, missing=no_portrait(source))
    dynamics = source.portrait["dynamics"]
    whom = _whom(source.portrait)
    figures = []
    if dynamics["curves"]:
        figures.append(_convergence(run, dynamics))
    if dynamics["layers"]:
        figures.append(_iterations(run, dynamics, whom))
        figures.append(_certified(run, dynamics, whom))
        weights = stability.absolute_radii(source.portrait)
        if dynamics["radii"] and weights:
            figures.append(stability.figure(run, dynamics, weights, whom))
    lead = f"{whose_network(source.portrait)} What is counted here is counted over {whom}."
    return Block(run, source.name, figures, lead=lead)


def whose_network(portrait: dict[str, Any]) -> str:
    """A sentence on the network that dynamics and map are of."""
    network = portrait["dynamics"].get("network")
    if network is None:
        return "One network is shown; the portrait is an early one and does not say which."
    what = (
        f"{plural(network['n_layers'], 'layer')}, effective spectral radius "
        f"{significant(network['effective_spectral_radius'])}"
    )
    if network["fold"] is None:
        return f"The model's first network is shown: {what}."
    text = f"The first network of outer fold {network['fold']} is shown: {what}"
    alike, n_folds = network["folds_alike"], network["n_folds"]
    if alike is not None and n_folds is not None:
        folds = plural(n_folds, "outer fold")
        text += f", the configuration that {count(alike)} of {folds} chose"
    return text + "."


def _whom(portrait: dict[str, Any]) -> str:
    """The graphs that were iterated: all of them, or a part."""
    n, total = portrait["dynamics"]["n_graphs"], portrait["data"]["n_graphs"]
    if n < total:
        return f"{count(n)} of the {count(total)} graphs"
    return f"all {plural(n, 'graph')}" if n > 1 else "the one graph"


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
        title="How states come to rest",
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
    moving = {
        c["graph"]
        for c in dynamics["curves"]
        if c["residuals"] and (c["residuals"][-1] or 0) >= dynamics["tol"]
    }
    text = (
        f"How far the states of {plural(graphs, 'graph')} move from one iteration to the next, on "
        "a logarithmic scale: a straight line downward is a contraction."
    )
    if rates:
        text += (
            f" On average an iteration leaves between {percent(min(rates), 0)} and "
            f"{percent(max(rates), 0)} of the movement."
        )
    if moving:
        verb = "moves" if len(moving) == 1 else "move"
        text += f" Of these graphs {count(len(moving))} still {verb} where a curve ends."
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


def _iterations(run: int, dynamics: dict[str, Any], whom: str) -> Figure:
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
        else f"Of {whom}, none was still moving there."
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


def _certified(run: int, dynamics: dict[str, Any], whom: str) -> Figure:
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
                significant(layer.get("absolute_radius")),
                significant(layer["norm"]),
                significant(layer["effective"]),
                count(layer["certified"]),
                count(layer["uncertified"]),
                count(layer["unconverged"]),
            ]
        )
    head = [
        "layer", "ρ(W_H)", "ρ(|W_H|)", "‖W_H‖", "ρ(W_H) k", "certified", "uncertified",
        "still moving",
    ]  # fmt: skip
    return Figure(
        id=f"certified-{run}",
        half=True,
        title="Graphs with a certificate",
        caption=_certified_caption(dynamics, whom),
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


def _certified_caption(dynamics: dict[str, Any], whom: str) -> str:
    layers = dynamics["layers"]
    radii = [significant(layer["effective"]) for layer in layers]
    text = (
        f"The effective spectral radius ρ(W_H) k is {listed(dict.fromkeys(radii))}, with "
        f"k = {significant(dynamics['degree'])}. "
    )
    open_ = [layer for layer in layers if layer["uncertified"]]
    if not open_:
        return text + f"In every layer {whom} are certified: their embeddings are well defined."
    worst = max(open_, key=lambda layer: layer["uncertified"])
    total = worst["certified"] + worst["uncertified"]
    return text + (
        f"In layer {worst['layer']}, {count(worst['uncertified'])} of {count(total)} graphs have "
        "no certificate: their ρ(|A|) is too large for these weights. That does not mean that they "
        "do not come to rest, only that theory does not promise it."
    )
