"""The dynamics: how states come to rest, and which graphs have one fixed point for certain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fdgnn.html import charts
from fdgnn.html.figures import Figure, Key, Panel, Part, Row, Section, Table
from fdgnn.html.model_data.records import Curve, DynamicsFacts, LayerFacts, ShownModel
from fdgnn.html.numbers import NONE, count, listed, percent, plural, significant
from fdgnn.html.sections import stability
from fdgnn.html.sections.missing import no_portrait
from fdgnn.html.subjects import Subject

FLOOR = 1e-14  # residuals are drawn down to here; below, there is only rounding


def section(subjects: Sequence[Subject]) -> Section:
    """Convergence, iterations, certificates and the map of stability."""
    return Section(
        id="dynamics",
        title="The dynamics",
        lead="A graph's embedding is where a layer's states come to rest. Whether there is only "
        "one such point, whatever the start, depends on the weights W_H and the graph's adjacency "
        "matrix A: ρ(|W_H|) ρ(|A|) < 1 is a certificate for it, where |·| leaves out the signs.",
        parts=[_part(i, s) for i, s in enumerate(subjects) if s.has_model and _iterates(s)],
    )


def _iterates(subject: Subject) -> bool:
    """Whether there are states that come to rest; without a portrait nobody knows."""
    return subject.portrait is None or subject.portrait.dynamics is not None


def _part(run: int, subject: Subject) -> Part:
    portrait = subject.portrait
    if portrait is None or portrait.dynamics is None:
        return Part(run, subject.name, missing=no_portrait(subject))
    dynamics = portrait.dynamics
    whom = _whom(dynamics.n_graphs, portrait.data.n_graphs)
    figures = [_convergence(run, dynamics)] if dynamics.curves else []
    if dynamics.layers:
        figures += [_iterations(run, dynamics, whom), _certified(run, dynamics, whom)]
    if dynamics.layers and dynamics.radii:
        figures.append(stability.figure(run, dynamics, whom))
    shown = portrait.dynamics_of or portrait.shown
    lead = f"{which_model(shown, portrait.n_estimators)} The numbers here are for {whom}."
    return Part(run, subject.name, figures, lead=lead)


def which_model(shown: ShownModel, n_estimators: int) -> str:
    """Return a sentence about the fitted model that the dynamics or the map belong to."""
    facts = [shown.encoder] if shown.n_layers is None else [plural(shown.n_layers, "layer")]
    if shown.effective_spectral_radius is not None:
        radius = significant(shown.effective_spectral_radius)
        facts.append(f"effective spectral radius {radius}")
    if shown.name:
        whole = "" if shown.fold is None else f" of outer fold {shown.fold}"
        which = f"Of the {count(n_estimators)} models{whole}, this one is shown: {shown.name}"
        return f"{which} ({', '.join(facts)})."
    if shown.fold is None:
        first = "first random initialization of the model" if n_estimators > 1 else "model"
        return f"The {first} is shown: {', '.join(facts)}."
    if shown.folds_alike is not None and shown.n_folds is not None:
        folds = plural(shown.n_folds, "outer fold")
        facts.append(f"the configuration that {count(shown.folds_alike)} of {folds} chose")
    first = "first random initialization" if n_estimators > 1 else "model"
    return f"The {first} of outer fold {shown.fold} is shown: {', '.join(facts)}."


def _whom(n: int, total: int) -> str:
    """Name the graphs that were iterated: all of them, or a part."""
    if n < total:
        return f"{count(n)} of the {count(total)} graphs"
    return f"all {plural(n, 'graph')}" if n > 1 else "the one graph"


# ---------------------------------------------------------------------- convergence


def _convergence(run: int, dynamics: DynamicsFacts) -> Figure:
    by_layer: dict[int, list[Row]] = defaultdict(list)
    for curve in dynamics.curves:
        by_layer[curve.layer] += _curve_rows(curve)
    rows = [row for layer in by_layer.values() for row in layer]
    values = [r["residual"] for r in rows]
    low, high = min(*values, dynamics.tol) / 2, max(*values, dynamics.tol) * 2
    last = max([r["step"] for r in rows] + [2])
    key = [Key("line", "c1", "a certified graph")]
    if not all(curve.certified for curve in dynamics.curves):
        key.append(Key("dashes", "c2", "an uncertified graph"))
    key.append(Key("dashes", "ink", f"ε = {dynamics.tol:g}, where the paper's loop stops"))
    return Figure(
        id=f"convergence-{run}",
        heads=True,
        title="How states come to rest",
        caption=_convergence_caption(dynamics),
        panels=[
            Panel(
                f"convergence-{run}-{layer}",
                charts.convergence(by_layer[layer], dynamics.tol, low, high, last),
                f"layer {layer}",
            )
            for layer in sorted(by_layer)
        ],
        table=_convergence_table(dynamics),
        key=key,
    )


def _curve_rows(curve: Curve) -> list[Row]:
    kind = "certified" if curve.certified else "uncertified"
    return [
        {
            "graph": curve.graph,
            "step": step,
            "residual": max(residual, FLOOR),
            "shown": significant(residual),
            "certified": curve.certified,
            "words": f"{curve.graph}, {kind}",
        }
        for step, residual in enumerate(curve.residuals, start=1)
    ]


def _convergence_caption(dynamics: DynamicsFacts) -> str:
    curves = dynamics.curves
    graphs = len({c.graph for c in curves})
    moving = {c.graph for c in curves if c.residuals and c.residuals[-1] >= dynamics.tol}
    rates = [rate for c in curves if (rate := _rate(c.residuals)) is not None]
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


def _rate(residuals: Sequence[float]) -> float | None:
    """What an iteration leaves of the movement, on average."""
    values = [r for r in residuals if r > 0]
    if len(values) <= 2:
        return None
    rate: float = (values[-1] / values[0]) ** (1 / (len(values) - 1))
    return rate


def _convergence_table(dynamics: DynamicsFacts) -> Table:
    rows = [
        [
            str(curve.layer),
            str(curve.graph),
            "yes" if curve.certified else "no",
            str(len(curve.residuals)),
            significant(curve.residuals[0]) if curve.residuals else NONE,
            significant(curve.residuals[-1]) if curve.residuals else NONE,
        ]
        for curve in dynamics.curves
    ]
    head = ["layer", "graph", "certified", "iterations", "first change", "last change"]
    return Table(head, rows)


# ---------------------------------------------------------------------- iterations


def _iterations(run: int, dynamics: DynamicsFacts, whom: str) -> Figure:
    rows: list[Row] = [
        {"layer": layer.layer, "steps": steps, "graphs": graphs}
        for layer in dynamics.layers
        for steps, graphs in layer.iterations
    ]
    table = Table(
        ["layer", "iterations", "graphs"],
        [[str(r["layer"]), str(r["steps"]), count(r["graphs"])] for r in rows],
    )
    return Figure(
        id=f"iterations-{run}",
        half=True,
        title="Iterations, layer by layer",
        caption=_iterations_caption(dynamics, whom),
        panels=[Panel(f"iterations-{run}", charts.iterations(rows, len(dynamics.layers)))],
        table=table,
        key=[Key("circle", "c1", "the larger the circle, the more graphs")],
    )


def _iterations_caption(dynamics: DynamicsFacts, whom: str) -> str:
    means = [
        f"{sum(s * n for s, n in layer.iterations) / total:.1f} in layer {layer.layer}"
        for layer in dynamics.layers
        if (total := sum(n for _, n in layer.iterations))
    ]
    stuck = sum(layer.unconverged for layer in dynamics.layers)
    end = (
        f"{plural(stuck, 'time')} a graph was still moving there."
        if stuck
        else f"Of {whom}, none was still moving there."
    )
    return (
        f"Iterations of the paper's loop on average: {listed(means)}; the limit is "
        f"{dynamics.max_iter}. {end}"
    )


# ---------------------------------------------------------------------- certificates


def _certified(run: int, dynamics: DynamicsFacts, whom: str) -> Figure:
    rows = [row for layer in dynamics.layers for row in _certified_rows(layer)]
    head = [
        "layer", "ρ(W_H)", "ρ(|W_H|)", "‖W_H‖", "ρ(W_H) k", "certified", "uncertified",
        "still moving",
    ]  # fmt: skip
    key = [Key("square", "c1", "certified: one fixed point, for sure")]
    if any(layer.uncertified for layer in dynamics.layers):
        words = "uncertified: the state after the last iteration is taken"
        key.append(Key("square", "c2", words))
    return Figure(
        id=f"certified-{run}",
        half=True,
        title="Graphs with a certificate",
        caption=_certified_caption(dynamics, whom),
        panels=[Panel(f"certified-{run}", charts.certified(rows, len(dynamics.layers)))],
        table=Table(head, [_layer_cells(layer) for layer in dynamics.layers]),
        key=key,
    )


def _certified_rows(layer: LayerFacts) -> list[Row]:
    total = layer.certified + layer.uncertified
    kinds = {"certified": layer.certified, "uncertified": layer.uncertified}
    return [
        {
            "layer": layer.layer,
            "kind": kind,
            "order": order,
            "graphs": n,
            "share": percent(n / total),
        }
        for order, (kind, n) in enumerate(kinds.items())
        if n
    ]


def _layer_cells(layer: LayerFacts) -> list[str]:
    return [
        str(layer.layer),
        significant(layer.spectral_radius),
        significant(layer.absolute_radius),
        significant(layer.norm),
        significant(layer.effective),
        count(layer.certified),
        count(layer.uncertified),
        count(layer.unconverged),
    ]


def _certified_caption(dynamics: DynamicsFacts, whom: str) -> str:
    radii = [significant(layer.effective) for layer in dynamics.layers]
    text = (
        f"The effective spectral radius ρ(W_H) k is {listed(dict.fromkeys(radii))}, with "
        f"k = {significant(dynamics.degree)}. "
    )
    worst = max(dynamics.layers, key=lambda layer: layer.uncertified)
    if not worst.uncertified:
        return text + f"In every layer {whom} are certified: their embeddings are well defined."
    total = worst.certified + worst.uncertified
    return text + (
        f"In layer {worst.layer}, {count(worst.uncertified)} of {count(total)} graphs have no "
        "certificate: their ρ(|A|) is too large for these weights. They may still come to rest, "
        "but theory does not promise it."
    )
