r"""How much each vertex moved a graph's score.

A model's score is a function of its encoder's features F, which are sums over vertices. Along the
straight way from the empty graph, F = 0, to the graph's own F, the gradient of the score averages
to a direction d, and::

    s(F) - s(0) = F . d = sum over v of c(v)

For eq. 3, ``s(F) = w tanh(W_phi F) + b``, the average has a closed form
(`fdgnn.readout.expansion.RandomExpansion.mean_gradient`); without the expansion d is w. The encoder
says how ``F . d`` splits over vertices. These are integrated gradients, exact, without a
quadrature; docs/explanations.md has the derivation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdgnn.arrays import Floats, Ints
from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor, Network, expanded
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.readout.linear import LinearReadout
from fdgnn.readout.targets import winning_class

_AT_ONCE = 200_000  # vertices whose states are held in memory together


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one graph got its score.

    Attributes
    ----------
    target : class label or int
        The class, or the number of the regressor's output, that the score speaks for.
    score, base_score : float
        The model's output for `target`, and its output for an empty graph.
    vertices : (n_vertices,) float64
        The contribution of each vertex; they add up to ``score - base_score``.
    edges : (2, n_edges) int64, or None
        The graph's edges, an undirected one listed once.
    edge_effects : (n_edges,) float64, or None
        By how much the score falls if that edge alone is taken away; they do not add up.
    """

    target: Any
    score: float
    base_score: float
    vertices: Floats
    edges: Ints | None = None
    edge_effects: Floats | None = None


def explain(
    model: Any, graphs: Any, *, target: Any = None, edges: bool = False
) -> list[Explanation]:
    """Explain a model's scores by the vertices of the graphs.

    Parameters
    ----------
    model : FDGNNClassifier, FDGNNRegressor or FDGNNSearchCV
        Fitted. With several networks, contributions are averaged as the outputs are.
    graphs : GraphBatch or list of graphs
    target : class label or int, optional
        The class, or the number of the regressor's output, whose score is explained. By default
        each graph's predicted class, or the only output.
    edges : bool, default=False
        Whether to tell, too, what taking away each single edge does; it takes as many runs.

    Returns
    -------
    list of Explanation
        One per graph.

    Examples
    --------
    >>> from fdgnn import FDGNNClassifier, explain
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
    >>> first = explain(model, graphs[:2], target=1)[0]
    >>> bool(abs(first.vertices.sum() - (first.score - first.base_score)) < 1e-9)
    True
    """
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, FDGNNClassifier | FDGNNRegressor):
        raise TypeError(f"a {type(model).__name__} has no score to explain")
    batch = model.check_graphs(graphs)
    number = _output_numbers(model, batch, target)
    found: list[Explanation] = []
    for part in _chunks(batch, number):
        found += _explain_vertices(model, *part)
    if edges:
        found = [
            _with_edges(model, *one) for one in zip(batch, number.tolist(), found, strict=True)
        ]
    return found


# ---------------------------------------------------------------------- which output


def _output_numbers(model: Any, graphs: GraphBatch, target: Any) -> Ints:
    """For each graph, the output to explain; for two classes, which have one output, the class."""
    if isinstance(model, FDGNNClassifier):
        if target is None:
            return np.asarray(winning_class(model.outputs(graphs)), dtype=np.int64)
        known = np.flatnonzero(model.classes_ == target)
        if len(known) == 0:
            names = ", ".join(map(repr, model.classes_[:10].tolist()))
            raise ValueError(f"target={target!r} is not a class of the model; they are {names}")
        return np.full(len(graphs), known[0])
    n_outputs = model.n_outputs_
    if target is None and n_outputs > 1:
        raise ValueError(f"the model has {n_outputs} outputs; give the number of one as target")
    if target is not None and target not in range(n_outputs):
        raise ValueError(f"target={target!r}: the model's outputs are 0 to {n_outputs - 1}")
    return np.full(len(graphs), target or 0)


def _rows(model: Any, readout: LinearReadout, number: Ints) -> tuple[Floats, Floats, Ints]:
    """Weights (m, P) and biases (m,) of the outputs, and which of them is each graph's."""
    if isinstance(model, FDGNNClassifier) and len(readout.intercept) == 1:
        # The one output speaks for the second class.
        coef = np.concatenate([-readout.coef, readout.coef])
        return coef, np.concatenate([-readout.intercept, readout.intercept]), number
    return readout.coef, readout.intercept, number


# ---------------------------------------------------------------------- vertices


def _explain_vertices(model: Any, graphs: GraphBatch, number: Ints) -> list[Explanation]:
    parts = [_contributions(model, network, graphs, number) for network in model.networks_]
    score, base, vertices = (np.mean(part, axis=0) for part in zip(*parts, strict=True))
    targets = model.classes_[number] if isinstance(model, FDGNNClassifier) else number
    by_graph = np.split(vertices, graphs.vertex_offsets[1:-1])
    rows = zip(targets.tolist(), score.tolist(), base.tolist(), by_graph, strict=True)
    return [Explanation(*row) for row in rows]


def _contributions(
    model: Any, network: Network, graphs: GraphBatch, number: Ints
) -> tuple[Floats, Floats, Floats]:
    """Scores and base scores (n_graphs,), and the contributions of all vertices (n_vertices,)."""
    found = network.encoder.attribute(graphs, model.n_jobs)
    coef, intercept, number = _rows(model, network.readout, number)
    X = expanded(found.features, network.expansion)
    scores = np.asarray((X @ coef.T)[np.arange(len(graphs)), number]) + intercept[number]
    if network.expansion is None:
        return scores, intercept[number], found.contributions(coef, number)
    directions = network.expansion.mean_gradient(found.features, coef[number])
    return scores, intercept[number], found.contributions(directions, np.arange(len(graphs)))


def _chunks(graphs: GraphBatch, number: Ints) -> Iterator[tuple[GraphBatch, Ints]]:
    """Split a batch where its vertices are too many to hold their states."""
    chunk = graphs.vertex_offsets[:-1] // _AT_ONCE
    for c in np.unique(chunk):
        members = np.flatnonzero(chunk == c)
        whole = len(members) == len(graphs)
        yield graphs if whole else graphs[members], number[members]


# ---------------------------------------------------------------------- edges


def _with_edges(model: Any, graph: Graph, number: int, explanation: Explanation) -> Explanation:
    """Take each edge away alone, both ways if undirected, and see what is left of the score."""
    arcs = np.asarray(graph.edge_index)
    edges = arcs if graph.directed else arcs[:, arcs[0] <= arcs[1]]
    at_once = max(1, _AT_ONCE // (arcs.shape[1] + int(graph.n_vertices or 0)))
    parts = [edges[:, i : i + at_once] for i in range(0, edges.shape[1], at_once)]
    left = [_scores(model, [_without(graph, *e) for e in part.T], number) for part in parts]
    effects = explanation.score - np.concatenate([*left, np.empty(0)])
    return replace(explanation, edges=edges, edge_effects=effects)


def _without(graph: Graph, u: int, v: int) -> Graph:
    source, end = graph.edge_index
    gone = (source == u) & (end == v)
    if not graph.directed:
        gone |= (source == v) & (end == u)
    weights = None if graph.weights is None else graph.weights[~gone]
    return replace(graph, edge_index=graph.edge_index[:, ~gone], weights=weights)


def _scores(model: Any, graphs: list[Graph], number: int) -> Floats:
    outputs = model.outputs(graphs)
    if isinstance(model, FDGNNClassifier) and outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0] if number == 1 else -outputs[:, 0])
    return np.asarray(outputs[:, number])
