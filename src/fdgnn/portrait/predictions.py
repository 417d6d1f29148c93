"""What models say of graphs, how often it is right, and where the graphs lie for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.estimators import FDGNNClassifier, GraphReservoir
from fdgnn.graphs import Array, Floats, GraphBatch, Ints
from fdgnn.portrait.data import MOST_CLASSES, clipped, clipped_apart, short
from fdgnn.portrait.dynamics import fitted
from fdgnn.readout.calibration import probabilities
from fdgnn.readout.coding import expand, winning_class

MISTAKES = 12
_BINS = 10  # of probability


@dataclass(frozen=True)
class Answers:
    """What models say of all graphs, and what is true.

    For classification `actual` and `predicted` are positions in `classes`, which are text; for
    regression they are numbers and there are no classes. `actual` is None where the truth is not
    known. ``models[model_of[g]]`` answered for graph g, by `score`, the output for the predicted
    class or the predicted number.
    """

    classes: list[str]
    actual: Array | None
    predicted: Array
    score: Floats
    chances: Floats | None  # (n, n_classes), calibrated
    models: Sequence[Any]
    model_of: Ints

    @property
    def regression(self) -> bool:
        """Whether the answers are numbers."""
        return not self.classes

    @property
    def probability(self) -> Floats | None:
        """Of the predicted class."""
        if self.chances is None:
            return None
        return self.chances[np.arange(len(self.predicted)), self.predicted]

    def mistakes(self) -> Ints:
        """The most confident mistakes, or the largest errors, first."""
        if self.actual is None:
            return np.empty(0, dtype=np.int64)
        if self.regression:
            size = np.abs(self.actual - self.predicted)
            return np.argsort(-size, kind="stable")[:MISTAKES]
        wrong = np.flatnonzero(self.actual != self.predicted)
        confidence = self.score if self.probability is None else self.probability
        return wrong[np.argsort(-confidence[wrong], kind="stable")[:MISTAKES]]


def ask(models: Sequence[Any], model_of: Ints, graphs: GraphBatch, y: Array | None) -> Answers:
    """Let each graph be answered by its own model; all models are of one kind."""
    outputs = np.empty((len(graphs), len(models[0].networks_[0].intercept)))
    for m, model in enumerate(models):
        mine = np.flatnonzero(model_of == m)
        outputs[mine] = model._outputs(graphs if len(models) == 1 else graphs[mine])
    if not isinstance(models[0], FDGNNClassifier):
        targets = None if y is None else np.asarray(y, dtype=np.float64)
        return Answers([], targets, outputs[:, 0], outputs[:, 0], None, models, model_of)
    # The model's order; the classes of y that it does not know come last.
    names = as_text(models[0].classes_) + ([] if y is None else as_text(_in_order(y)))
    number = {name: c for c, name in enumerate(dict.fromkeys(names))}
    score = np.abs(outputs[:, 0]) if outputs.shape[1] == 1 else outputs.max(axis=1)
    return Answers(
        classes=clipped_apart(number),
        actual=None if y is None else np.array([number[name] for name in as_text(y)]),
        predicted=winning_class(outputs),
        score=score,
        chances=_chances(models, model_of, outputs, len(number)),
        models=models,
        model_of=model_of,
    )


def _chances(
    models: Sequence[Any], model_of: Ints, outputs: Floats, n_classes: int
) -> Floats | None:
    if not all(hasattr(model, "calibration_") for model in models):
        return None
    chances = np.zeros((len(outputs), n_classes))
    for m, model in enumerate(models):
        mine = model_of == m
        chances[mine, : len(model.classes_)] = probabilities(outputs[mine], model.calibration_)
    return chances


def _in_order(y: Array) -> Array:
    """The different values: numbers by size, and what cannot be compared as text."""
    try:
        return np.unique(y)
    except TypeError:
        return np.unique(as_text(y))


def as_text(values: Array) -> list[str]:
    """Classes as files show them, whatever their type."""
    return [str(value) for value in np.asarray(values).tolist()]


# ---------------------------------------------------------------------- the portrait's sections


def confusion(answers: Answers) -> list[list[int]] | None:
    """Counts of graphs, rows actual, columns predicted classes; None if they are too many."""
    n = len(answers.classes)
    if answers.regression or answers.actual is None or n > MOST_CLASSES:
        return None
    pairs = answers.actual * n + answers.predicted
    counts: list[list[int]] = np.bincount(pairs, minlength=n * n).reshape(n, n).tolist()
    return counts


def calibration(answers: Answers) -> dict[str, Any] | None:
    """How often graphs are right that were said to be so with a certain probability.

    `expected_error` is the mean over graphs of the difference between probability and accuracy
    of their bin; `brier` half the squared distance of probabilities to the truth, 0 to 1, which
    for two classes is the usual one.
    """
    probability = answers.probability
    if answers.chances is None or probability is None or answers.actual is None:
        return None
    right = answers.actual == answers.predicted
    number = np.clip((probability * _BINS).astype(np.int64), 0, _BINS - 1)
    bins = [
        {
            "from": round(b / _BINS, 4),
            "to": round((b + 1) / _BINS, 4),
            "n": int((number == b).sum()),
            "probability": short(probability[number == b].mean()),
            "accuracy": short(right[number == b].mean()),
        }
        for b in np.unique(number).tolist()
    ]
    gaps = [b["n"] * abs(b["probability"] - b["accuracy"]) for b in bins]
    truth = np.eye(len(answers.classes))[answers.actual]
    return {
        "bins": bins,
        "brier": short(np.square(answers.chances - truth).sum(axis=1).mean() / 2),
        "expected_error": short(sum(gaps) / len(probability)),
    }


def regression(answers: Answers) -> dict[str, float | None] | None:
    """R2 (None where all targets are the same) and the mean absolute error."""
    if not answers.regression or answers.actual is None:
        return None
    errors = answers.actual - answers.predicted
    spread = float(np.square(answers.actual - answers.actual.mean()).sum())
    return {
        "r2": short(1 - float(np.square(errors).sum()) / spread) if spread else None,
        "mean_absolute_error": short(np.abs(errors).mean()),
    }


def graph_rows(
    answers: Answers,
    graphs: GraphBatch,
    mapped: Ints,
    places: Floats,
    ids: Sequence[Any],
    folds: bool,
) -> list[dict[str, Any]]:
    """The portrait's "graphs": one row a mapped graph, at its place (n_mapped, 2)."""
    n_vertices, n_edges = np.diff(graphs.vertex_offsets), _edge_counts(graphs)

    def said(value: Any) -> str | float:
        return short(value) if answers.regression else answers.classes[value]

    def row(g: int, x: float, y: float) -> dict[str, Any]:
        actual = None if answers.actual is None else answers.actual[g]
        judged = actual is not None and not answers.regression
        return {
            "graph": g,
            "id": clipped(ids[g]),
            "x": round(x, 4),
            "y": round(y, 4),
            "actual": None if actual is None else said(actual),
            "predicted": said(answers.predicted[g]),
            "correct": bool(actual == answers.predicted[g]) if judged else None,
            "score": short(answers.score[g]),
            "probability": None if answers.probability is None else short(answers.probability[g]),
            "n_vertices": int(n_vertices[g]),
            "n_edges": int(n_edges[g]),
            "fold": int(answers.model_of[g]) + 1 if folds else None,
        }

    return [row(g, *place) for g, place in zip(mapped.tolist(), places.tolist(), strict=True)]


def _edge_counts(graphs: GraphBatch) -> Ints:
    """Edges of each graph; an undirected one and a self-loop count once, as an arc does."""
    n_arcs = np.diff(graphs.indptr[graphs.vertex_offsets])
    if graphs.directed:
        return n_arcs
    local = np.arange(graphs.n_vertices) - graphs.vertex_offsets[graphs.graph_of_vertex]
    degrees = np.diff(graphs.indptr)
    loops = np.repeat(local, degrees) == graphs.neighbors
    graph_of_arc = np.repeat(graphs.graph_of_vertex, degrees)
    n_loops = np.bincount(graph_of_arc[loops], minlength=len(graphs))
    return np.asarray((n_arcs + n_loops) // 2)


# ---------------------------------------------------------------------- the map


def mapped_graphs(answers: Answers, at_most: int, keep: Ints) -> Ints:
    """All graphs, or a random part that keeps the classes' shares and the graphs `keep`."""
    n = len(answers.predicted)
    if n <= at_most:
        return np.arange(n)
    codes = np.zeros(n, dtype=np.int64)
    if not answers.regression:
        codes = answers.predicted if answers.actual is None else answers.actual
    place = np.empty(n)  # among the graphs of its class in random order, from 0 to 1
    order = np.random.default_rng(0).permutation(n)
    for c in np.unique(codes):
        members = order[codes[order] == c]
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    place[keep] = -1
    return np.sort(np.argsort(place, kind="stable")[:at_most])


def features_of(model: Any, graphs: GraphBatch) -> Floats:
    """What the first network's readout sees, (n_graphs, P); of a reservoir, its pooled states."""
    model = fitted(model)
    graphs = model._new_graphs(graphs)
    if isinstance(model, GraphReservoir):
        pooled = model._embed(graphs, model.reservoir_, layers=model.pooled_layers).pooled
        return np.concatenate(list(pooled), axis=1)
    network = model.networks_[0]
    return expand(model._embed(graphs, network.reservoir, layers="last").pooled[-1], network[1])


def principal_map(features: Floats) -> tuple[Floats, list[float]]:
    """The two principal components, (n, 2), the farthest graph at 1, and their shares of variance.

    A component's sign is that which makes its largest weight positive.
    """
    centered = features - features.mean(axis=0)
    _, s, Vt = np.linalg.svd(centered, full_matrices=False)
    axes = np.zeros((2, features.shape[1]))
    axes[: min(2, len(s))] = Vt[:2]
    largest = np.abs(axes).argmax(axis=1)
    axes *= np.where(axes[[0, 1], largest] < 0, -1.0, 1.0)[:, None]
    places = centered @ axes.T
    total = float(np.square(s).sum())
    shares = [*(np.square(s[:2]) / (total or 1.0)), 0.0, 0.0][:2]
    return places / (np.abs(places).max() or 1.0), [short(share) for share in shares]
