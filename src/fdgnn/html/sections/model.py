"""Attributions of substructures and descriptors, and the dynamics of the reservoir."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from fdgnn.html.figures import Figure, Key, Panel, Part, Row, Table, convergence
from fdgnn.html.report_data import ReportData, ReservoirDynamics, SubstructureRow
from fdgnn.html.subjects import Subject
from fdgnn.html.words import count, plural, significant
from fdgnn.texts import listed

FLOOR = 1e-14  # residuals are drawn down to here; below, there is only rounding
_TYPED_ATOM = re.compile(r"\b[A-Z][a-z]? \d+ H\d")  # as `atoms="typed"` writes them


def part(run: int, subject: Subject) -> Part:
    """Return substructures, descriptors and dynamics, where a model has them."""
    data = subject.data
    if data is None:
        return Part()
    groups: dict[str, list[SubstructureRow]] = defaultdict(list)
    for one in data.substructures:  # of each class, or what raises and what lowers a number
        title = f"for class {one.target}"
        if data.task == "regression":
            title = f"that {'raise' if one.weight > 0 else 'lower'} the value"
        groups[f"Substructures {title}"].append(one)
    figures = [
        _substructures(f"substructures-{run}-{i}", run, title, found, data)
        for i, (title, found) in enumerate(groups.items())
    ]
    if data.descriptors:
        figures.append(_descriptors(run, data))
    if data.dynamics is not None and data.dynamics.layers:
        figures.append(_dynamics(run, data.dynamics, data.data.n_graphs))
    return Part(figures)


# ---------------------------------------------------------------------- substructures


def _substructures(
    id_: str, run: int, title: str, found: Sequence[SubstructureRow], data: ReportData
) -> Figure:
    n = len(data.graphs)
    drawn = [one for one in found if data.task == "regression" or one.weight > 0]
    rows = [
        {
            "substructure": one.words, "mean over all graphs": _signed(one.weight),
            "mean where present": _signed(one.attribution), "graphs": count(one.n_graphs),
            "iterations": str(one.iteration), "example": str(one.graph),
        }
        for one in found
    ]  # fmt: skip
    cards = []
    for one in drawn:
        verb = "adds" if one.attribution > 0 else "takes"
        often = f"in {count(one.n_graphs)} of {plural(n, 'graph')}"
        cards.append({
            "graph": one.graph,
            "title": one.words,
            "words": f"{often}, where it {verb} {significant(abs(one.attribution), 2)}",
            "note": f"graph {one.graph}",
            "steps": " ".join(map(str, one.steps)),
            "radius": one.radius,
        })  # fmt: skip
    return Figure(
        id=id_,
        title=title,
        caption=_substructure_caption(data, drawn, n),
        table=Table.of(
            rows,
            note="What its vertices add to the score together, averaged over all graphs on the map "
            "and over those that have it. A WL label of i iterations sees i steps far; structural "
            "features see one or two steps.",
        ),
        kind="cards",
        body={"run": run, "cards": cards},
        key=[
            Key("circle", "c1", "the central vertex"),
            Key("ring", "c1", "its surroundings, part of the substructure"),
            Key("pale", "quiet", "the rest of the graph"),
        ],
    )


def _substructure_caption(data: ReportData, drawn: Sequence[SubstructureRow], n: int) -> str:
    score = "value" if data.task == "regression" else "score of this class"
    text = f"No WL label moves the {score} in this direction, on average over the graphs."
    if drawn:
        first = drawn[0]
        where = "all" if first.n_graphs == n else f"{count(first.n_graphs)} of {count(n)}"
        text = (
            "A WL label stands for a vertex and all that is some steps around it. These move the "
            f"{score} most, the strongest first: {first.words} is in {where} graphs, and moves the "
            f"{score} of such a graph by {significant(first.attribution, 2)} on average."
        )
    if data.task == "classification":
        text += " The table also has substructures against the class."
    if any("GraphReservoir" in one.encoder for one in data.base_models):
        text += " A reservoir has no WL labels: its attributions are not in these numbers."
    if any(_TYPED_ATOM.search(one.words) for one in data.substructures):
        text += " An atom is written as its element, its neighbors and its hydrogens (H)."
    return text


def _signed(value: float) -> str:
    return f"+{significant(value, 2)}" if value > 0 else significant(value, 2)


# ---------------------------------------------------------------------- descriptors


def _descriptors(run: int, data: ReportData) -> Figure:
    """Return a table of the graph-level features that the model reads."""
    found, score = data.descriptors, "value" if data.task == "regression" else "score"
    return Figure(
        id=f"descriptors-{run}",
        title="Descriptors",
        caption=f"The model also uses {plural(len(found), 'descriptor')}. The {score} depends most "
        f"on {found[0].name}, by {significant(found[0].effect, 2)} on average.",
        table=Table(
            ["descriptor", "in training", "missing here", f"effect on the {score}"],
            [[d.name, d.values, count(d.n_missing), significant(d.effect, 2)] for d in found],
            note=f"The size of what a descriptor adds to the {score}, averaged over the graphs on "
            "the map; one that adds nothing has its mean value, or is missing.",
        ),
        open=True,
    )


# ---------------------------------------------------------------------- dynamics


def _dynamics(run: int, dynamics: ReservoirDynamics, n_graphs: int) -> Figure:
    rows: dict[int, list[Row]] = defaultdict(list)  # by layer
    for curve in dynamics.curves:
        sure = "" if curve.certified else "un"
        rows[curve.layer] += [
            {
                "graph": curve.graph, "step": step, "residual": max(residual, FLOOR),
                "shown": significant(residual), "certified": curve.certified,
                "words": f"{curve.graph}, {sure}certified",
            }
            for step, residual in enumerate(curve.residuals, start=1)
        ]  # fmt: skip
    every = [row for own in rows.values() for row in own]
    values = [row["residual"] for row in every] + [dynamics.tol]
    last = max([row["step"] for row in every] + [2])
    ends = min(values) / 2, max(values) * 2
    key = [Key("line", "c1", "a certified graph: it has one fixed point")]
    if not all(curve.certified for curve in dynamics.curves):
        key.append(Key("dashes", "c2", "an uncertified graph"))
    key.append(Key("dashes", "ink", f"ε = {dynamics.tol:g}, where the paper's loop stops"))
    cells = [
        {
            "layer": str(one.layer), "ρ(W_H)": significant(one.spectral_radius),
            "ρ(W_H) k": significant(one.effective), "ρ(|W_H|)": significant(one.absolute_radius),
            "‖W_H‖": significant(one.norm), "mean iterations": f"{one.mean_iterations:.1f}",
            "certified": count(one.certified), "uncertified": count(one.uncertified),
            "not converged": count(one.unconverged),
        }
        for one in dynamics.layers
    ]  # fmt: skip
    charts = {i: convergence(own, dynamics.tol, ends, last) for i, own in rows.items() if own}
    return Figure(
        id=f"convergence-{run}",
        title="How the states of the reservoir converge",
        caption=_dynamics_caption(dynamics, n_graphs),
        panels=[
            Panel(f"convergence-{run}-{layer}", spec, f"layer {layer}")
            for layer, spec in sorted(charts.items())
        ],
        table=Table.of(cells, note=f"k = {significant(dynamics.degree)}; numbers of graphs."),
        key=key,
        open=True,
    )


def _dynamics_caption(dynamics: ReservoirDynamics, total: int) -> str:
    n = dynamics.n_graphs
    whom = f"{count(n)} of the {count(total)} graphs" if n < total else f"all {count(n)} graphs"
    means = [f"{one.mean_iterations:.1f} in layer {one.layer}" for one in dynamics.layers]
    stuck = sum(one.unconverged for one in dynamics.layers)
    worst = max(dynamics.layers, key=lambda one: one.uncertified)
    text = (
        f"{dynamics.model} A graph's embedding is where a layer's states converge: a straight line "
        "downward is a contraction. A graph has one fixed point for certain if ρ(|W_H|) ρ(|A|) < "
        f"1. The numbers are for {whom}. Iterations of the paper's loop on average: "
        f"{listed(means)}; the limit is {dynamics.max_iter}. "
    )
    text += f"{plural(stuck, 'time')} a graph had not converged there." if stuck else (
        "All converged before."
    )  # fmt: skip
    if worst.uncertified:
        text += (
            f" In layer {worst.layer}, {count(worst.uncertified)} of "
            f"{count(worst.certified + worst.uncertified)} graphs have no certificate. They may "
            "still converge; a smaller effective spectral radius gives more certificates."
        )
    return text
