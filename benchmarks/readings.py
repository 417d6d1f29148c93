"""Accuracy of interpretations of the paper, on the same folds and random initializations.

    python -m benchmarks.readings MUTAG PTC_MR ... [--configurations 30] [--initializations 5]
        [--only READING]

Every interpretation is evaluated by the paper's nested cross-validation, with fewer configurations
and random initializations. Results are written to results/readings.json; docs/decisions/ quotes
them.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import joblib
import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits

from fdgnn import load_tu
from fdgnn.encoders import GraphKind, GraphReservoir
from fdgnn.estimators import FDGNNClassifier
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.expansion import draw_projection
from fdgnn.fitting import draw_features
from fdgnn.folds import nested_folds
from fdgnn.linear import Ridge
from fdgnn.seeds import child_seed, seed_sequence
from fdgnn.selection.search import draw_configurations
from fdgnn.targets import coded, number_classes, winning_class

OUT = Path(__file__).parent.parent / "results" / "readings.json"
DEPTHS = (1, 2, 3, 4, 5)
SOLVER = Ridge(alpha="cv", normalize=False)
ALPHAS = SOLVER.grid(1, classify=True)
Predict = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def free_bias(X, Y, alphas, fold):
    """Out-of-fold predictions of our ridge regression."""
    return SOLVER.solve(X, Y, alphas, fold[None]).predictions[0]


def penalized_bias(X, Y, alphas, fold):
    """Out-of-fold predictions where the bias is one more weight, regularized as the others."""
    Z = np.column_stack([X, np.ones(len(X))])
    out = np.empty((len(alphas), *Y.shape))
    for f in range(-1, fold.max() + 1):
        train = (fold >= 0) & (fold != f)
        gram, moments = Z[train].T @ Z[train], Z[train].T @ Y[train]
        for a, alpha in enumerate(alphas):
            W = linalg.solve(gram + alpha * np.eye(len(gram)), moments, assume_a="pos")
            out[a, fold == f] = Z[fold == f] @ W
    return out


def frobenius(W_phi):
    return W_phi / np.linalg.norm(W_phi)


def unit_rows(W_phi):
    return W_phi / np.linalg.norm(W_phi, axis=1, keepdims=True)


def features_of(
    model: FDGNNClassifier, graphs, initialization: int, change: Callable | None
) -> list:
    """Features of one random initialization at all depths, with W_phi changed after it is drawn."""
    seed = child_seed(seed_sequence(model.random_state), initialization)
    if change is not None:
        model.set_params(n_projections=0)
    (base,) = model._base_models(GraphKind.of(graphs), len(graphs), seed)
    base = replace(base, seeds=(seed,))
    features = [draw_features(base, graphs, depth)[0] for depth in DEPTHS]
    if change is None:
        return features
    W_phi = change(draw_projection(seed, model.n_units, 2 * model.n_units))
    return [np.tanh(X @ W_phi.T) for X in features]


# reading: parameters of the model, change of W_phi, ridge
READINGS: dict[str, tuple[dict, Callable | None, Predict]] = {
    "as decided": ({}, None, free_bias),
    "no biases in the reservoir": ({"bias_scaling": 0.0}, None, free_bias),
    "biases uniform in [-1, 1]": ({"bias_scaling": 1.0}, None, free_bias),
    "k is the largest degree": ({"degree": "max"}, None, free_bias),
    "W_phi of Frobenius norm one": ({}, frobenius, free_bias),
    "W_phi with rows of norm one": ({}, unit_rows, free_bias),
    "readout intercept regularized": ({}, None, penalized_bias),
    "tol = 1e-6, max_iter = 500": ({"tol": 1e-6, "max_iter": 500}, None, free_bias),
}


def outputs_of_network(graphs, Y, folds, configuration, initialization, reading) -> np.ndarray:
    """Outputs (depths, outer, alphas, n, q) of one random initialization, in single precision."""
    parameters, change, predict = READINGS[reading]
    model = FDGNNClassifier(n_units=50, **parameters | configuration)
    with warnings.catch_warnings(), threadpool_limits(1, "blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        features = features_of(model, graphs, initialization, change)
        alphas = np.array(ALPHAS)
        return np.array(
            [[predict(X, Y, alphas, fold) for fold in folds] for X in features], dtype=np.float32
        )


def score(outputs, codes, folds) -> tuple[np.ndarray, np.ndarray]:
    """Validation (mean over inner folds) and test accuracy, each (depths, outer, alphas)."""
    right = winning_class(outputs) == codes  # (depths, outer, alphas, n)
    validation = np.empty(right.shape[:3])
    test = np.empty(right.shape[:3])
    for o, fold in enumerate(folds):
        parts = [right[:, o][..., fold == f].mean(axis=-1) for f in range(fold.max() + 1)]
        validation[:, o] = np.mean(parts, axis=0)
        test[:, o] = right[:, o][..., fold < 0].mean(axis=-1)
    return validation, test


def configuration_scores(graphs, Y, codes, folds, reading, n_initializations, configuration):
    """Means over initializations, and the accuracy of their averaged outputs."""
    networks = [
        outputs_of_network(graphs, Y, folds, configuration, g, reading)
        for g in range(n_initializations)
    ]
    each = np.array([score(outputs, codes, folds) for outputs in networks])
    together = score(np.mean(networks, axis=0), codes, folds)
    return np.concatenate([each.mean(axis=0), together])  # validation, test, and of the average


def chosen(validation, test) -> np.ndarray:
    """Test score of each outer fold's best (configuration, depth, alpha)."""
    best = [validation[:, :, o].argmax() for o in range(validation.shape[2])]
    return np.array([test[:, :, o].flat[b] for o, b in enumerate(best)])


def row(folds_scores) -> dict[str, float]:
    return {"mean": 100 * folds_scores.mean(), "std": 100 * folds_scores.std(ddof=1)}


def measure(name, n_configurations, n_initializations, n_jobs, only) -> Iterator[tuple[str, dict]]:
    graphs, y = load_tu(name)
    classes, codes = number_classes(y)
    Y, folds = coded(codes, len(classes)), nested_folds(y, 10, 10, seed=0)
    drawn = draw_configurations(GraphReservoir.search_space(), n_configurations, seed=0)
    configurations = [params | {"random_state": seed} for seed, params in drawn]
    depth_of = np.random.default_rng(0).integers(1, 6, size=n_configurations)
    for reading in only or READINGS:
        job = partial(configuration_scores, graphs, Y, codes, folds, reading, n_initializations)
        scores = np.array(
            joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(job)(c) for c in configurations)
        )
        own = scores[np.arange(n_configurations), :, depth_of - 1][:, :, None]
        validation, test, validation_together, test_together = np.moveaxis(own, 1, 0)
        yield reading, row(chosen(validation, test))
        if reading == "as decided":
            every = np.moveaxis(scores, 1, 0)
            yield (
                "outputs of initializations averaged",
                row(chosen(validation_together, test_together)),
            )
            yield (
                "averaged outputs, selected by single initializations",
                row(chosen(validation, test_together)),
            )
            yield "every depth from 1 to 5 tried", row(chosen(every[0], every[1]))
            yield "depth at most 3", row(chosen(every[0][:, :3], every[1][:, :3]))
            yield "one layer", row(chosen(every[0][:, :1], every[1][:, :1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--configurations", type=int, default=30)
    parser.add_argument("--initializations", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", choices=READINGS, help="one of the readings")
    options = parser.parse_args()
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in options.datasets:
        rows = results.setdefault(name, {})
        rows["configurations"], rows["initializations"] = (
            options.configurations,
            options.initializations,
        )
        sizes = options.configurations, options.initializations, options.jobs
        for reading, found in measure(name, *sizes, options.only):
            rows[reading] = found
            print(f"{name:14} {reading:45} {found['mean']:6.2f} ± {found['std']:.2f}", flush=True)
            OUT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
