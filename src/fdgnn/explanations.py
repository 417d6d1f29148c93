r"""How much each vertex moved a graph's score.

With the pool p = sum of the vertices' states x(v), eq. 3 is ``s(p) = w tanh(W_phi p) + b``. Along
the straight way from the empty pool 0 to p, the gradient integrates in closed form::

    s(p) - s(0) = sum over v of c(v)
    c(v) = sum over j of  w_j  tanh(a_j) / a_j  (W_phi x(v))_j,      a = W_phi p

because the integral of ``1 - tanh(t a)^2`` over t from 0 to 1 is ``tanh(a) / a``. These are
integrated gradients, exact, without a quadrature; docs/explanations.md has the derivation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor, Network
from fdgnn.graphs import Floats, Graph, GraphBatch, Ints
from fdgnn.readout.coding import winning_class

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
        Each vertex' contribution; they add up to ``score - base_score``.
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
        One a graph.

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
    batch = model._new_graphs(graphs)
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
    """Which output is explained of each graph; of two classes with one output, which class."""
    if isinstance(model, FDGNNClassifier):
        if target is None:
            return np.asarray(winning_class(model._outputs(graphs)), dtype=np.int64)
        known = np.flatnonzero(model.classes_ == target)
        if len(known) == 0:
            names = ", ".join(map(repr, model.classes_[:10].tolist()))
            raise ValueError(f"target={target!r} is not a class of the model; they are {names}")
        return np.full(len(graphs), known[0])
    n_outputs = len(model.networks_[0].intercept)
    if target is None and n_outputs > 1:
        raise ValueError(f"the model has {n_outputs} outputs; give the number of one as target")
    if target is not None and target not in range(n_outputs):
        raise ValueError(f"target={target!r}: the model's outputs are 0 to {n_outputs - 1}")
    return np.full(len(graphs), target or 0)


def _readout(model: Any, network: Network, number: Ints) -> tuple[Floats, Floats]:
    """Weights (n_graphs, P) and bias (n_graphs,) of each graph's output."""
    if isinstance(model, FDGNNClassifier) and len(network.intercept) == 1:
        sign = np.where(number == 1, 1.0, -1.0)  # the one output speaks for the second class
        return sign[:, None] * network.coef, sign * network.intercept
    return network.coef[number], network.intercept[number]


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
    embedding = model._embed(graphs, network.reservoir, layers="last", keep_states=True)
    pooled, states = embedding.pooled[-1], embedding.states[:, -1]
    w, b = _readout(model, network, number)
    A = pooled @ network.projection.T  # (n_graphs, P)
    toward = (w * _tanh_ratio(A)) @ network.projection  # (n_graphs, H), the mean gradient
    # Pooled states are rounded sums: what rounding took is shared by the vertices.
    lost = pooled - np.add.reduceat(states, graphs.vertex_offsets[:-1])
    share = (lost * toward).sum(axis=1) / np.diff(graphs.vertex_offsets)
    vertices = np.einsum("vh,vh->v", states, toward[graphs.graph_of_vertex])
    return (w * np.tanh(A)).sum(axis=1) + b, b, vertices + share[graphs.graph_of_vertex]


def _tanh_ratio(a: Floats) -> Floats:
    """``tanh(a) / a``, which near zero is 1 to all digits."""
    return np.divide(np.tanh(a), a, out=np.ones_like(a), where=np.abs(a) > 1e-9)


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
    outputs = model._outputs(graphs)
    if isinstance(model, FDGNNClassifier) and outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0] if number == 1 else -outputs[:, 0])
    return np.asarray(outputs[:, number])
