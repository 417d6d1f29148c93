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
    return Part([*_substructures(run, data), *_descriptors(run, data), *_dynamics(run, data)])


# ---------------------------------------------------------------------- substructures


def _substructures(run: int, data: ReportData) -> list[Figure]:
    """Return a figure for each class, or for what raises and what lowers a number."""
    groups: dict[str, list[SubstructureRow]] = defaultdict(list)
    for one in data.substructures:
        if data.task == "regression":
            verb = "raise" if one.weight > 0 else "lower"
            groups[f"Substructures that {verb} the value"].append(one)
        else:
            groups[f"Substructures for class {one.target}"].append(one)
    return [
        _substructure_figure(f"substructures-{run}-{i}", run, title, found, data)
        for i, (title, found) in enumerate(groups.items())
    ]


def _substructure_figure(
    id_: str, run: int, title: str, found: Sequence[SubstructureRow], data: ReportData
) -> Figure:
    regression, n = data.task == "regression", len(data.graphs)
    drawn = [one for one in found if regression or one.weight > 0]
    rows = [
        [
            one.words, _signed(one.weight), _signed(one.attribution), count(one.n_graphs),
            str(one.iteration), str(one.graph),
        ]
        for one in found
    ]  # fmt: skip
    cards: list[dict[str, object]] = []
    for one in drawn:
        verb = "adds" if one.attribution > 0 else "takes"
        often = f"in {count(one.n_graphs)} of {plural(n, 'graph')}"
        cards.append(
            {
                "graph": one.graph,
                "title": one.words,
                "words": f"{often}, where it {verb} {significant(abs(one.attribution), 2)}",
                "note": f"graph {one.graph}",
                "steps": " ".join(map(str, one.steps)),
                "radius": one.radius,
            }
        )
    return Figure(
        id=id_,
        title=title,
        caption=_substructure_caption(data, drawn, n),
        table=Table(
            ["substructure", "mean over all graphs", "mean where present", "graphs", "iterations",
             "example"],
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
    )  # fmt: skip


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


def _descriptors(run: int, data: ReportData) -> list[Figure]:
    """Return a table of the graph-level features that the model reads."""
    found, score = data.descriptors, "value" if data.task == "regression" else "score"
    if not found:
        return []
    return [
        Figure(
            id=f"descriptors-{run}",
            title="Descriptors",
            caption=f"The model also uses {plural(len(found), 'descriptor')}. The {score} depends "
            f"most on {found[0].name}, by {significant(found[0].effect, 2)} on average.",
            table=Table(
                ["descriptor", "in training", "missing here", f"effect on the {score}"],
                [[d.name, d.values, count(d.n_missing), significant(d.effect, 2)] for d in found],
                note=f"The size of what a descriptor adds to the {score}, averaged over the graphs "
                "on the map; one that adds nothing has its mean value, or is missing.",
            ),
            open=True,
        )
    ]


# ---------------------------------------------------------------------- dynamics


def _dynamics(run: int, data: ReportData) -> list[Figure]:
    dynamics = data.dynamics
    if dynamics is None or not dynamics.layers:
        return []
    rows: dict[int, list[Row]] = defaultdict(list)
    for curve in dynamics.curves:
        rows[curve.layer] += [
            {
                "graph": curve.graph,
                "step": step,
                "residual": max(residual, FLOOR),
                "shown": significant(residual),
                "certified": curve.certified,
                "words": f"{curve.graph}, {'' if curve.certified else 'un'}certified",
            }
            for step, residual in enumerate(curve.residuals, start=1)
        ]
    values = [row["residual"] for own in rows.values() for row in own] + [dynamics.tol]
    last = max([row["step"] for own in rows.values() for row in own] + [2])
    ends = min(values) / 2, max(values) * 2
    key = [Key("line", "c1", "a certified graph: it has one fixed point")]
    if not all(curve.certified for curve in dynamics.curves):
        key.append(Key("dashes", "c2", "an uncertified graph"))
    key.append(Key("dashes", "ink", f"ε = {dynamics.tol:g}, where the paper's loop stops"))
    return [
        Figure(
            id=f"convergence-{run}",
            title="How the states of the reservoir converge",
            caption=_dynamics_caption(dynamics, data.data.n_graphs),
            panels=[
                Panel(
                    f"convergence-{run}-{layer}",
                    convergence(own, dynamics.tol, ends, last),
                    f"layer {layer}",
                )
                for layer, own in sorted(rows.items())
                if own
            ],
            table=_layers(dynamics),
            key=key,
            open=True,
        )
    ]


def _layers(dynamics: ReservoirDynamics) -> Table:
    rows = [
        [
            str(one.layer), significant(one.spectral_radius), significant(one.effective),
            significant(one.absolute_radius), significant(one.norm),
            f"{one.mean_iterations:.1f}", count(one.certified), count(one.uncertified),
            count(one.unconverged),
        ]
        for one in dynamics.layers
    ]  # fmt: skip
    head = [
        "layer", "ρ(W_H)", "ρ(W_H) k", "ρ(|W_H|)", "‖W_H‖", "mean iterations", "certified",
        "uncertified", "not converged",
    ]  # fmt: skip
    return Table(head, rows, note=f"k = {significant(dynamics.degree)}; numbers of graphs.")


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
