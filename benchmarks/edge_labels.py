"""Edge labels ignored, or as weights: accuracy on the same folds.

    python -m benchmarks.edge_labels [--configurations 30] [--initializations 3] [--seeds 5]

The paper's nested cross-validation, with fewer configurations and random initializations.
Results are written to results/edge_labels.json; docs/decisions/0020-edge-labels.md quotes them.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from fdgnn import Graph, GraphBatch, load_tu
from fdgnn.context import Context
from fdgnn.evaluation.protocol import PaperEvaluation, Protocol
from fdgnn.evaluation.record import Evaluation
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.folds import nested_folds
from fdgnn.targets import read_targets

OUT = Path(__file__).parent.parent / "results" / "edge_labels.json"
# The bond orders that the files' labels 0, 1, 2, 3 stand for, as their READMEs say.
ORDERS = {"MUTAG": [1.5, 1, 2, 3], "PTC_MR": [3, 2, 1, 1.5]}


def two_marked_edges(n_graphs: int = 200) -> tuple[GraphBatch, np.ndarray]:
    """Random trees with two edges labeled 2, the others 1; in class 1 the two meet."""
    rng = np.random.default_rng(0)
    graphs, y = [], np.arange(n_graphs) % 2
    for together in y:
        n = int(rng.integers(10, 20))
        parents = np.array([rng.integers(i) for i in range(1, n)])
        arcs = np.stack([parents, np.arange(1, n)])
        pairs = [
            (e, f)
            for e in range(n - 1)
            for f in range(e)
            if bool(np.intersect1d(arcs[:, e], arcs[:, f]).size) == together
        ]
        weights = np.ones(n - 1)
        weights[list(pairs[rng.integers(len(pairs))])] = 2
        graphs.append(Graph(arcs, n, weights=weights))
    return GraphBatch.from_graphs(graphs), y


def variants(name: str) -> tuple[dict[str, GraphBatch], np.ndarray]:
    if name not in ORDERS:
        graphs, y = two_marked_edges()
        plain, orders = replace(graphs, weights=None), {}
    else:
        graphs, y = load_tu(name, edge_labels="weights")
        plain = replace(graphs, weights=None)
        weights = np.array(ORDERS[name])[graphs.weights.astype(int)]
        orders = {"bond orders as weights": replace(graphs, weights=weights)}
    return {
        "ignored": plain,
        "labels + 1 as weights": replace(graphs, weights=graphs.weights + 1),
        **orders,
    }, y


def measure(graphs: GraphBatch, y: np.ndarray, args: argparse.Namespace, seed: int) -> Evaluation:
    targets, folds = read_targets(y, graphs, classify=True), nested_folds(y, 10, 10, seed)
    task = EvaluationTask("arcs", graphs, targets, folds, seed=seed)
    protocol = Protocol("quick", args.configurations, args.initializations)
    return PaperEvaluation(task, protocol).run(None, Context()).evaluation


def summary(runs: list[Evaluation]) -> dict[str, float]:
    folds = 100 * np.array([run.by("accuracy").folds for run in runs])
    return {
        "mean": round(float(folds.mean()), 2),
        "std over folds": round(float(folds.std(axis=1, ddof=1).mean()), 2),
        "std over seeds": round(float(folds.mean(axis=1).std(ddof=1)), 2),
        "seconds": round(float(np.mean([run.times.selection for run in runs])), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configurations", type=int, default=30)
    parser.add_argument("--initializations", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    results = vars(args).copy()
    for name in [*ORDERS, "two marked edges"]:
        results[name] = {}
        graphs_of, y = variants(name)
        for variant, graphs in graphs_of.items():
            runs = [measure(graphs, y, args, seed) for seed in range(args.seeds)]
            results[name][variant] = summary(runs) | {"wl ceiling": graphs.wl_ceiling(y)}
            print(name, variant, results[name][variant], flush=True)
    OUT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
