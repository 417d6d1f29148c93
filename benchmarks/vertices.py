"""How well are labels of vertices predicted from the states of a reservoir?

    python -m benchmarks.vertices [--seeds 5]

Graphs are planted partitions (`planted`): vertices of some blocks, with more edges inside a block
than between blocks, or, if they are heterophilous, fewer. Features of a vertex are the indicator of
its block with noise. Labels are known for a tenth of the vertices. A logistic regression predicts
those of the others from the features of a vertex alone, from these with the means over its
neighbors, or from the states of a reservoir, of several radii and numbers of connections. The
accuracy is that of the other vertices, mean and standard deviation over seeds; each seed draws
graph, mask and reservoir. Results are written to results/vertices.json, which
docs/how-to/scikit-learn.md quotes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fdgnn import Graph, GraphReservoir
from fdgnn.exceptions import ConvergenceWarning

OUT = Path(__file__).parent.parent / "results" / "vertices.json"
N_VERTICES, N_BLOCKS, NOISE, KNOWN = 1000, 4, 2.0, 0.1
SETS = {"homophilous": (0.04, 0.008), "heterophilous": (0.004, 0.02)}  # edges inside, between
RESERVOIRS = {
    "radius 0.9, 1 connection": (0.9, 1),
    "radius 0.9, 10 connections": (0.9, 10),
    "radius 3, 1 connection": (3.0, 1),
    "radius 3, 10 connections": (3.0, 10),
    "radius 6, 10 connections": (6.0, 10),
    "radius 10, 10 connections": (10.0, 10),
    "radius 20, 10 connections": (20.0, 10),
}


def planted(inside, between, seed):
    """Return a graph, the block of each vertex, and which labels are known."""
    rng = np.random.default_rng(seed)
    y = rng.integers(N_BLOCKS, size=N_VERTICES)
    chances = np.where(y[:, None] == y, inside, between)
    edges = np.argwhere(np.triu(rng.random(chances.shape) < chances, 1)).T
    features = np.eye(N_BLOCKS)[y] + NOISE * rng.normal(size=(N_VERTICES, N_BLOCKS))
    arcs = np.concatenate([edges, edges[::-1]], axis=1)
    graph = Graph(arcs, n_vertices=N_VERTICES, features=features)
    return graph, y, rng.random(N_VERTICES) < KNOWN


def states(graph, radius, n_connections, seed):
    """Return the states of all layers of a reservoir beside the features of the vertices."""
    reservoir = GraphReservoir(
        n_layers=3, n_units=200, n_connections=n_connections, pooled_layers="all",
        effective_spectral_radius=radius, input_scaling=0.2, random_state=seed,
    )  # fmt: skip
    return np.hstack([graph.features, reservoir.fit([graph]).vertex_states([graph])])


def neighbor_means(graph):
    """Return the features of vertices, and their means over neighbors, and theirs."""
    A = np.zeros((N_VERTICES, N_VERTICES))
    A[tuple(graph.edge_index)] = 1.0
    A /= np.maximum(A.sum(axis=1, keepdims=True), 1.0)
    once = A @ graph.features
    return np.hstack([graph.features, once, A @ once])


def accuracy(X, y, known):
    """Return the accuracy on the vertices whose label is not known."""
    regression = LogisticRegressionCV(Cs=np.logspace(-4, 1, 6), cv=5, max_iter=2000)
    model = make_pipeline(StandardScaler(), regression).fit(X[known], y[known])
    return model.score(X[~known], y[~known])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", FutureWarning)
    results = {}
    for name, chances in SETS.items():
        found = {}
        for seed in range(options.seeds):
            graph, y, known = planted(*chances, seed)
            inputs = {"features alone": graph.features, "means of neighbors": neighbor_means(graph)}
            for what, (radius, n_connections) in RESERVOIRS.items():
                inputs[what] = states(graph, radius, n_connections, seed)
            for what, X in inputs.items():
                found.setdefault(what, []).append(accuracy(X, y, known))
        results[name] = found
        for what, each in found.items():
            print(f"{name:14} {what:28} {100 * np.mean(each):.1f} +- {100 * np.std(each):.1f}")
    text = json.dumps(results, indent=1, default=float)
    OUT.write_text(text + "\n")


if __name__ == "__main__":
    main()
