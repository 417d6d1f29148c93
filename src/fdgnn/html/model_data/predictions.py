"""How often predictions are right, and one row for each graph on the map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fdgnn import metrics
from fdgnn.arrays import Floats, Ints
from fdgnn.graphs import GraphBatch
from fdgnn.html.model_data.answers import Answers
from fdgnn.html.model_data.records import (
    BINS,
    CLASSES,
    CalibrationFacts,
    GraphRow,
    ProbabilityBin,
    RegressionFacts,
)
from fdgnn.html.model_data.text import clipped, short


def confusion(answers: Answers) -> list[list[int]] | None:
    """Count graphs by actual class (rows) and predicted class (columns), unless they are many."""
    n = len(answers.classes)
    if answers.regression or answers.actual is None or n > CLASSES:
        return None
    pairs = answers.actual * n + answers.predicted
    counts: list[list[int]] = np.bincount(pairs, minlength=n * n).reshape(n, n).tolist()
    return counts


def roc_auc(answers: Answers) -> float | None:
    """The area under the ROC curve; None for numbers, and where it cannot be told."""
    n_known = max(answers.outputs.shape[1], 2)  # classes
    if answers.regression or answers.actual is None or answers.actual.max() >= n_known:
        return None
    found = float(metrics.roc_auc(answers.actual, answers.outputs))
    return short(found) if np.isfinite(found) else None


def calibration(answers: Answers) -> CalibrationFacts | None:
    """Compare probabilities with how often the predictions are right.

    `expected_error` is the mean over graphs of the difference between probability and accuracy
    of their bin. `brier` is half the squared distance of probabilities to the truth, 0 to 1; for
    two classes that is the usual one.
    """
    probability = answers.probability
    if answers.probabilities is None or probability is None or answers.actual is None:
        return None
    right = answers.actual == answers.predicted
    number = np.clip((probability * BINS).astype(np.int64), 0, BINS - 1)
    bins = [
        ProbabilityBin(
            start=round(b / BINS, 4),
            stop=round((b + 1) / BINS, 4),
            n=int((number == b).sum()),
            probability=short(probability[number == b].mean()),
            accuracy=short(right[number == b].mean()),
        )
        for b in np.unique(number).tolist()
    ]
    gaps = [b.n * abs(b.probability - b.accuracy) for b in bins]
    truth = np.eye(len(answers.classes))[answers.actual]
    return CalibrationFacts(
        bins=bins,
        brier=short(np.square(answers.probabilities - truth).sum(axis=1).mean() / 2),
        expected_error=short(sum(gaps) / len(probability)),
    )


def regression(answers: Answers) -> RegressionFacts | None:
    """R2 (None where all targets are equal) and the mean absolute error."""
    if not answers.regression or answers.actual is None:
        return None
    errors = answers.actual - answers.predicted
    spread = float(np.square(answers.actual - answers.actual.mean()).sum())
    return RegressionFacts(
        r2=short(1 - float(np.square(errors).sum()) / spread) if spread else None,
        mean_absolute_error=short(np.abs(errors).mean()),
    )


def graph_rows(
    answers: Answers,
    graphs: GraphBatch,
    mapped: Ints,
    places: Floats,
    ids: Sequence[object],
    *,
    folds: Ints | None,
) -> list[GraphRow]:
    """Give one row for each mapped graph, at its place (n_mapped, 2).

    `folds` (n_graphs,) are the outer folds, from 0, that held the graphs out.
    """
    n_vertices, n_edges = np.diff(graphs.vertex_offsets), _edge_counts(graphs)

    def said(value: float) -> str | float:
        return short(value) if answers.regression else answers.classes[int(value)]

    def row(g: int, x: float, y: float) -> GraphRow:
        actual = None if answers.actual is None else answers.actual[g]
        judged = actual is not None and not answers.regression
        return GraphRow(
            graph=g,
            id=clipped(ids[g]),
            x=round(x, 4),
            y=round(y, 4),
            actual=None if actual is None else said(actual),
            predicted=said(answers.predicted[g]),
            correct=bool(actual == answers.predicted[g]) if judged else None,
            score=short(answers.score[g]),
            probability=None if answers.probability is None else short(answers.probability[g]),
            n_vertices=int(n_vertices[g]),
            n_edges=int(n_edges[g]),
            fold=None if folds is None else int(folds[g]) + 1,
        )

    return [row(g, *place) for g, place in zip(mapped.tolist(), places.tolist(), strict=True)]


def _edge_counts(graphs: GraphBatch) -> Ints:
    """Count the edges of each graph: an undirected edge, a self-loop and an arc count once."""
    n_arcs = np.diff(graphs.indptr[graphs.vertex_offsets])
    if graphs.directed:
        return n_arcs
    local = np.arange(graphs.n_vertices) - graphs.vertex_offsets[graphs.graph_of_vertex]
    degrees = np.diff(graphs.indptr)
    loops = np.repeat(local, degrees) == graphs.neighbors
    graph_of_arc = np.repeat(graphs.graph_of_vertex, degrees)
    n_loops = np.bincount(graph_of_arc[loops], minlength=len(graphs))
    return np.asarray((n_arcs + n_loops) // 2)
