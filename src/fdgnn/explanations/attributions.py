r"""Attributions: how much each vertex moved a graph's score.

A model's score is a function of its encoder's features F, which are sums over vertices. Along the
straight way from the empty graph, F = 0, to the graph's own F, the gradient of the score averages
to a direction d, and::

    s(F) - s(0) = F . d = sum over v of c(v)

For a linear readout d is its weights. For RBF kernel ridge regression, and for the random expansion
of eq. 3 (`fdgnn.expansion.RandomExpansion.mean_gradient`), the average has a closed form. The
encoder says how ``F . d`` splits over vertices. These are integrated gradients, exact, without a
quadrature; docs/explanation/attributions.md has the derivation.

Graph-level features are appended to F, so that each has its own part of the sum.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Features, Floats, Ints, dense
from fdgnn.encoders import Attribution
from fdgnn.encoders.base import of_graphs
from fdgnn.estimators import GraphModel
from fdgnn.estimators.base import Answers
from fdgnn.exceptions import FDGNNWarning, MissingDependencyError
from fdgnn.explanations.groups import (
    ExplainedGroup,
    GroupsOfGraph,
    check_entries,
    checked_groups,
    without_edge,
    without_vertices,
)
from fdgnn.fitting import FittedModel
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.linear import LinearReadout
from fdgnn.schema import check_choice
from fdgnn.targets import winning_class
from fdgnn.texts import html_table
from fdgnn.threads import one_blas_thread

_AT_ONCE = 50_000  # vertices whose states are held in memory together
_SHOWN = 5  # groups and descriptors in a notebook
_GRAPHS_AT_ONCE = 500  # compared with all training graphs together


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one graph got its score.

    Attributes
    ----------
    target : class label or int
        The class whose score is explained; of a regressor, the number of the target.
    score, base_score : float
        The model's output for `target`, and its output for an empty graph.
    vertices : (n_vertices,) float64
        The attribution of each vertex; they add up to ``score - base_score``, together with
        those of the descriptors.
    edges : (2, n_edges) int64, or None
        The graph's edges, an undirected one listed once.
    edge_effects : (n_edges,) float64, or None
        By how much the score falls if that edge alone is taken away; they do not add up.
    descriptors : dict
        The attribution of each descriptor by name, relative to a graph with mean numbers and
        unknown categories.
    groups : tuple of ExplainedGroup
        What groups of vertices add together, and what the score loses without each.
    vertex_effects : (n_vertices,) float64, or None
        By how much the score falls if that vertex alone is taken away, with its edges. Computed
        together with groups; they do not add up.
    domain_distance : float or None
        The distance from the applicability domain (`GraphModel.domain_distance`); 1: nothing is
        known of the graph.
    out_of_domain : str or None
        Why the graph is outside the applicability domain, if it is.
    of_class : bool
        Whether the score speaks for a class; else it is a predicted number.
    graph : Graph or None
        The graph that was explained. A notebook shows its picture (extras `chem`, `plot`).
    """

    target: Any
    score: float
    base_score: float
    vertices: Floats
    edges: Ints | None = None
    edge_effects: Floats | None = None
    descriptors: Mapping[str, float] = field(default_factory=dict)
    groups: tuple[ExplainedGroup, ...] = ()
    vertex_effects: Floats | None = None
    domain_distance: float | None = None
    out_of_domain: str | None = None
    of_class: bool = True
    graph: Graph | None = None

    @property
    def speaks_for(self) -> str:
        """A name for the score."""
        return f"Score for class {self.target}" if self.of_class else "Predicted value"

    def _repr_svg_(self) -> str | None:
        """Return the picture that notebooks show; None where an extra or the graph is missing."""
        from fdgnn.explanations.drawing import picture

        try:
            return None if self.graph is None else picture(self.graph, self, ".svg").decode()
        except MissingDependencyError:
            return None

    def _repr_html_(self) -> str:
        """Return the scores, the groups with the largest effects, and the picture."""
        rows = {self.speaks_for: f"{self.score:.4g}", "Of an empty graph": f"{self.base_score:.4g}"}
        most = sorted(self.groups, key=lambda group: -abs(group.effect))[:_SHOWN]
        rows |= {f"Lost without {group.name}": f"{group.effect:.4g}" for group in most}
        largest = sorted(self.descriptors.items(), key=lambda item: -abs(item[1]))[:_SHOWN]
        rows |= {f"Added by {name}": f"{own:.4g}" for name, own in largest}
        rows |= {"Out of domain": self.out_of_domain} if self.out_of_domain else {}
        return f"<div>{self._repr_svg_() or ''}{html_table(rows)}</div>"


@one_blas_thread()
def explain(
    model: Any,
    graphs: Any,
    *,
    target: Any = None,
    edges: bool = False,
    groups: Sequence[GroupsOfGraph] | None = None,
    errors: str = "raise",
) -> list[Any]:
    """Compute attributions of a model's scores to vertices, and effects of groups of vertices.

    Parameters
    ----------
    model : any model of this library, or FDGNNSearchCV
        A fitted model. Attributions of an ensemble are averaged, like its outputs.
    graphs : GraphBatch or list of graphs
    target : class label, str, int or pair, optional
        The class whose score is explained; by default each graph's predicted class, or in
        regression the predicted number. For multi-target models, the name or index of a target, or
        a pair (target, class).
    edges : bool, default=False
        Whether to compute the effect of removing each edge, which takes one prediction per edge.
    groups : sequence, optional
        Groups of vertices for each graph, as a dictionary of names and vertices counted from 0, or
        as returned by `molecule_groups` and `connected_parts`. Explanations then have the
        attribution of each group, and the effects of leaving out each group and each vertex, which
        take one prediction each.
    errors : {"raise", "missing"}, default="raise"
        With "missing", invalid graphs, such as a SMILES that cannot be parsed, have None instead of
        an explanation, and a warning counts them.

    Returns
    -------
    list of Explanation
        One per graph.

    Warns
    -----
    OutOfDomainWarning
        Graphs have nothing in common with the training graphs, so their scores are meaningless.

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
    if errors != "raise":
        check_choice("errors", errors, ("raise", "missing"))
        found = checked_model(model)._valid_graphs_with_warning(graphs)
        n_graphs, rows = len(found.rows) + len(found.errors), found.rows.tolist()
        if groups is not None:
            check_entries(groups, n_graphs)
        own = None if groups is None else [groups[row] for row in rows]
        some = explain(model, found.graphs, target=target, edges=edges, groups=own)
        by_row = dict(zip(rows, some, strict=True))
        return [by_row.get(row) for row in range(n_graphs)]
    model, chosen, position = chosen_score(model, target)
    batch = model._check_graphs(graphs)
    if len(batch) == 0:
        return []
    named = None if groups is None else checked_groups(groups, batch)
    answers, classes = Answers(model, batch, warn=True), model.targets_[0].classes
    number: Ints = np.full(len(batch), chosen or 0)
    if chosen is None and classes is not None:  # the predicted classes
        number = np.asarray(winning_class(answers.outputs), dtype=np.int64)
    targets = [position] * len(batch) if classes is None else classes[number].tolist()
    distances = answers.domain_distance
    reasons = model._out_of_domain(batch, distances)
    each = [row for part, own in chunks(batch) for row in _attributions(model, part, number[own])]
    found = []
    for g, (graph, (score, base, vertices, described)) in enumerate(zip(batch, each, strict=True)):
        lost = partial(_effects, model, graph, number[g], score, base)
        ends = edge_effects = vertex_effects = None
        explained: list[ExplainedGroup] = []
        if edges:  # removed one at a time, both ways if undirected
            arcs = np.asarray(graph.edge_index)
            ends = arcs if graph.directed else arcs[:, arcs[0] <= arcs[1]]
            edge_effects = lost(without_edge(graph, u, v) for u, v in ends.T)
        if named is not None:
            sets = [one.vertices for one in named[g]] + list(np.arange(len(vertices))[:, None])
            effects = lost(without_vertices(graph, gone) for gone in sets)
            vertex_effects = effects[len(named[g]) :]
            for one, effect in zip(named[g], effects.tolist(), strict=False):
                added = float(vertices[one.vertices].sum())
                explained.append(ExplainedGroup(one.name, one.vertices, added, effect))
        found.append(
            Explanation(
                targets[g],
                score,
                base,
                vertices,
                edges=ends,
                edge_effects=edge_effects,
                descriptors=described,
                groups=tuple(explained),
                vertex_effects=vertex_effects,
                domain_distance=None if distances is None else float(distances[g]),
                out_of_domain=reasons.get(g),
                of_class=classes is not None,
                graph=graph,
            )
        )
    return found


# ---------------------------------------------------------------------- which score


def checked_model(model: Any) -> Any:
    """Return the model, or the best one of a search; raise TypeError if it has no scores."""
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, GraphModel):
        raise TypeError(f"a {type(model).__name__} has no score to explain")
    check_is_fitted(model)
    return model


def has_attributions(model: Any) -> bool:
    """Return whether `explain` takes a fitted model; its encoders may be plain transformers."""
    return all(fitted.encoder.has_attributions for fitted in model.estimators_)


def chosen_score(model: Any, target: Any) -> tuple[Any, int | None, int]:
    """Return the model of one target, and the positions of the chosen score and of the target.

    With several targets, `target` is a name or an index, or a pair (target, class). Without a class
    the position of the score is None. A numeric target has one score.
    """
    model, position = checked_model(model), 0
    if len(model.targets_) > 1:
        known = [each.name for each in model.targets_]
        if target is None:
            raise ValueError(
                f"the model has {len(known)} targets; give one as target, by its name or with a "
                f"class as a pair; they are {', '.join(map(repr, known[:10]))}"
            )
        pair = isinstance(target, tuple) and len(target) == 2
        which, target = target if pair else (target, None)
        model = model.for_target(which)
        position = known.index(which) if which in known else int(which)
    classes = model.targets_[0].classes
    if target is None:
        return model, None, position
    if classes is None:
        if target != 0:
            raise ValueError(f"target={target!r}: the model has one target, 0")
        return model, 0, position
    numbers = np.flatnonzero(classes == target)
    if len(numbers) == 0:
        names = ", ".join(map(repr, classes[:10].tolist()))
        raise ValueError(f"target={target!r}: not a class of the model, which has {names}")
    return model, int(numbers[0]), position


def signs_of(model: Any) -> Floats:
    """Return the scores of a model of one target as combinations of its outputs, (k, q)."""
    if model.targets_[0].classes is not None and model._n_outputs == 1:
        return np.array([[-1.0], [1.0]])  # the one output is the score of the second class
    return np.eye(model._n_outputs)


# ---------------------------------------------------------------------- vertices


def _attributions(
    model: Any, graphs: GraphBatch, number: Ints
) -> Iterator[tuple[float, float, Floats, dict[str, float]]]:
    """Yield the score of each graph, that of an empty graph, and what adds to it.

    These are attributions of vertices and descriptors, averaged over base models.
    """
    own = signs_of(model)[number]
    parts: list[tuple[Floats, ...]] = []
    described: dict[str, Floats] = {}
    for fitted in model.estimators_:
        ways = directions_of(model, fitted, graphs, number)
        score = (fitted.readout.outputs(ways.seen) * own).sum(axis=1)
        vertices = ways.found.contributions(ways.own, ways.of_graph)
        parts.append((score, own @ fitted.readout.base_outputs(), vertices))
        beside = ways.descriptors | of_graphs(ways.found, ways.own, ways.of_graph)
        for name, values in beside.items():
            described[name] = described.get(name, 0.0) + values / len(model.estimators_)
    score, base, vertices = (np.mean(part, axis=0) for part in zip(*parts, strict=True))
    by_graph = np.split(vertices, graphs.vertex_offsets[1:-1])
    for g, added in enumerate(by_graph):
        others = {name: float(values[g]) for name, values in described.items()}
        yield float(score[g]), float(base[g]), added, others


class Directions(NamedTuple):
    """Mean gradients of scores, and attributions of descriptors by these gradients."""

    found: Attribution  # the encoder's features
    seen: Features  # (n_graphs, P) what the readout sees
    own: Features  # (m, n_features) of the encoder's features
    of_graph: Ints  # (n_graphs,) which of these is each graph's
    descriptors: dict[str, Floats]  # attributions (n_graphs,) by name


def directions_of(model: Any, fitted: FittedModel, graphs: GraphBatch, number: Ints) -> Directions:
    """Find the mean gradients of one score for each graph, by one base model."""
    found, signs = fitted.encoder.attribute(graphs, model.n_jobs), signs_of(model)
    X = fitted.seen(found.features, graphs)
    of_graph, directions = np.arange(len(number)), fitted.readout.directions
    if isinstance(fitted.readout, LinearReadout):  # the same for all graphs
        gradients, of_graph = directions(X, signs), number
    else:
        gradients = directions(X, signs[number])
    described: dict[str, Floats] = {}
    if fitted.descriptors is not None:
        start = X.shape[1] - fitted.descriptors.n_features
        ways = dense(gradients[:, start:])[of_graph]
        each_of = fitted.descriptors.contributions(dense(X[:, start:]), ways)
        described = dict(zip(fitted.descriptors.names, each_of.T, strict=True))
        gradients = gradients[:, :start]
    if fitted.expansion is not None:
        w, of_graph = dense(gradients)[of_graph], np.arange(len(number))
        gradients = fitted.expansion.mean_gradient(dense(found.features), w)
    return Directions(found, X, gradients, of_graph, described)


def chunks(graphs: GraphBatch) -> Iterator[tuple[GraphBatch, Ints]]:
    """Yield chunks of a batch whose vertex states fit in memory, each with its positions."""
    by_size = graphs.vertex_offsets[:-1] // _AT_ONCE
    chunk = np.stack([by_size, np.arange(len(graphs)) // _GRAPHS_AT_ONCE])
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(chunk) != 0).any(axis=0)]))
    for members in np.split(np.arange(len(graphs)), starts[1:]):
        yield graphs if len(members) == len(graphs) else graphs[members], members


# ---------------------------------------------------------------------- changed graphs


def scores_of(model: Any, graphs: Any) -> Floats:
    """Return the scores of all classes, or the predicted number: (n_graphs, k).

    The graphs are changed ones; the original has been warned about.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FDGNNWarning)
        return np.asarray(model.outputs(graphs) @ signs_of(model).T)


def _effects(
    model: Any, graph: Graph, number: int, score: float, base: float, changed: Iterator[Graph]
) -> Floats:
    """Return the decrease of the score in each changed graph, by chunks."""
    at_once = max(1, _AT_ONCE // (int(graph.n_vertices or 0) + np.shape(graph.edge_index)[1]))
    scores: list[float] = []
    while part := list(islice(changed, at_once)):
        own = np.full(len(part), base)  # of a graph without vertices
        some = [i for i, one in enumerate(part) if one.n_vertices]
        if some:
            own[some] = scores_of(model, [part[i] for i in some])[:, number]
        scores += own.tolist()
    return score - np.array(scores)
