"""Graphlets of three vertices on IMDB-BINARY, sampled and counted exactly.

    python -m benchmarks.graphlets

An SVC on their frequencies, on the folds of ``fdgnn compare``; docs/how-to/baselines.md quotes it.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from fdgnn import load_tu
from fdgnn.evaluation.baselines.pipelines import C_VALUES, MOST_STEPS
from fdgnn.folds import nested_folds

INNER_FOLDS = 3


def frequencies(A: np.ndarray) -> np.ndarray:
    """Shares of the triples of vertices with no, one, two and three edges among them."""
    n, degrees = len(A), A.sum(axis=0)
    three = np.trace(A @ A @ A) / 6
    two = (degrees * (degrees - 1) / 2).sum() - 3 * three
    one = A.sum() / 2 * (n - 2) - 2 * two - 3 * three
    total = n * (n - 1) * (n - 2) / 6
    return np.array([total - one - two - three, one, two, three]) / total


def adjacency(graph) -> np.ndarray:
    A = np.zeros((graph.n_vertices, graph.n_vertices))
    A[tuple(graph.edge_index)] = 1
    np.fill_diagonal(A, 0)
    return A


def accuracies(X, y, folds) -> list[float]:
    """Test accuracy of each outer fold, with C chosen on inner folds."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)

    def score(C, train, test):
        return SVC(C=C, kernel="linear", max_iter=MOST_STEPS).fit(X[train], y[train]).score(
            X[test], y[test]
        )  # fmt: skip

    found = []
    for fold in folds:
        validated = [
            np.mean([score(C, (fold >= 0) & (fold != f), fold == f) for f in range(INNER_FOLDS)])
            for C in C_VALUES
        ]
        found.append(score(C_VALUES[int(np.argmax(validated))], fold >= 0, fold < 0))
    return found


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    graphs, y = load_tu("IMDB-BINARY")
    exact = np.array([frequencies(adjacency(graph)) for graph in graphs])
    folds, rng = nested_folds(y, 10, 10, 0), np.random.default_rng(0)
    for name, X in {
        "500 drawn a graph": np.array([rng.multinomial(500, p) for p in exact]),
        "5000 drawn a graph": np.array([rng.multinomial(5000, p) for p in exact]),
        "all": exact,
    }.items():
        found = 100 * np.array(accuracies(X, y, folds))
        print(f"{name:20} {found.mean():.1f} ± {found.std(ddof=1):.1f} %", flush=True)


if __name__ == "__main__":
    main()
