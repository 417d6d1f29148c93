"""Calibration of probabilities, by several methods, on held-out graphs.

    python -m benchmarks.calibration MUTAG PTC_MR ...

For each outer fold, a search selects the model on the other folds; each method then converts the
model's outputs on the fold to probabilities. Results are written to results/calibration.json, which
docs/decisions/0023-probabilities.md quotes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from fdgnn import FDGNNClassifier, FDGNNSearchCV, load_tu
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.folds import stratified_folds
from fdgnn.linear import Ridge
from fdgnn.targets import coded, winning_class
from fdgnn.uncertainty import fit_slope, probabilities

OUT = Path(__file__).parent.parent / "results" / "calibration.json"
NAMES = ("MUTAG", "PTC_MR", "IMDB-BINARY", "PROTEINS", "IMDB-MULTI")
SEARCH = {"n_configurations": 5, "depths": (1, 3), "cv": 5}


# ---------------------------------------------------------------------- ways to probabilities


def linear(outputs, *_):
    """The outputs as they are: targets are -1 and +1, so (1 + s) / 2 estimates a probability."""
    shares = np.clip((1 + outputs) / 2, 0, 1)
    both = np.hstack([1 - shares, shares]) if shares.shape[1] == 1 else shares + 1e-12
    return both / both.sum(axis=1, keepdims=True)


def on_training_outputs(outputs, training, held_out, codes):
    """Ours, had it been fitted to what the readout has seen."""
    return probabilities(outputs, fit_slope(training, codes))


def ours(outputs, training, held_out, codes):
    return probabilities(outputs, fit_slope(held_out, codes))


def logistic(outputs, training, held_out, codes):
    """Platt's scaling, and for more than two classes a full matrix of weights."""
    return LogisticRegression(C=100.0, max_iter=1000).fit(held_out, codes).predict_proba(outputs)


def isotonic(outputs, training, held_out, codes):
    """Any rising curve; for two classes only."""
    if outputs.shape[1] > 1:
        return None
    curve = IsotonicRegression(out_of_bounds="clip").fit(held_out[:, 0], codes)
    share = curve.predict(outputs[:, 0])
    return np.stack([1 - share, share], axis=1)


WAYS = (linear, on_training_outputs, ours, logistic, isotonic)


# ---------------------------------------------------------------------- how true they are


def measures(p, codes, predicted, rng):
    own = np.clip(p[np.arange(len(p)), codes], 1e-6, None)
    drawn = (p.cumsum(axis=1)[None] < rng.random((200, len(p), 1))).sum(axis=2)
    return {
        "log_loss": float(-np.log(own).mean()),
        "brier": float(((p - np.eye(p.shape[1])[codes]) ** 2).sum(axis=1).mean()),
        "ece": expected_calibration_error(p, codes),
        # what the error would be, by chance alone, were the probabilities exactly true
        "ece_if_true": float(np.mean([expected_calibration_error(p, d) for d in drawn])),
        "accuracy": float((p.argmax(axis=1) == codes).mean()),
        "other_than_predict": float((p.argmax(axis=1) != predicted).mean()),
        "bins": reliability(p, codes),
    }


def expected_calibration_error(p, codes):
    """Mean over graphs of |confidence - accuracy| in ten bins of the confidence."""
    return float(sum(n * abs(sure - right) for n, sure, right in reliability(p, codes)) / len(p))


def reliability(p, codes, n_bins=10):
    """Graphs, mean confidence and accuracy in bins of equal width of the confidence."""
    confidence, right = p.max(axis=1), p.argmax(axis=1) == codes
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    members = [bins == b for b in np.unique(bins)]
    return [[int(m.sum()), float(confidence[m].mean()), float(right[m].mean())] for m in members]


def evaluate(name, n_folds):
    graphs, y = load_tu(name)
    codes = np.unique(y, return_inverse=True)[1]
    n_classes = codes.max() + 1
    by_way = {way.__name__: np.full((len(y), n_classes), np.nan) for way in WAYS}
    predicted = np.empty(len(y), dtype=int)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for train, test in folds.split(codes, codes):
        search = FDGNNSearchCV(FDGNNClassifier(n_estimators=3), random_state=0, **SEARCH)
        model = search.fit(graphs[train], codes[train]).best_estimator_
        fold = stratified_folds(codes[train], model.seed_)
        targets = coded(codes[train], len(np.unique(codes)))
        solver, alphas = Ridge(normalize=False), (model.alpha,)
        each = [
            solver.solve(fitted.features(graphs[train]), targets, alphas, fold[None]).predictions
            for fitted in model.estimators_
        ]
        held_out = np.mean(each, axis=0)[0, 0]
        outputs, training = model.outputs(graphs[test]), model.outputs(graphs[train])
        predicted[test] = winning_class(outputs)
        for way in WAYS:
            p = way(outputs, training, held_out, codes[train])
            if p is not None:
                by_way[way.__name__][test] = p
    rng = np.random.default_rng(0)
    return {
        way: measures(p, codes, predicted, rng)
        for way, p in by_way.items()
        if not np.isnan(p).any()
    } | {"accuracy_of_predict": float((predicted == codes).mean()), "n_graphs": len(y)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--folds", type=int, default=10)
    options = parser.parse_args()
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in options.names:
        with threadpool_limits(1):
            results[name] = evaluate(name, options.folds)
        OUT.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        print(name, results[name]["accuracy_of_predict"])
        for way, m in results[name].items():
            if isinstance(m, dict):
                print(f"  {way:20}", *(f"{k} {v:.3f}" for k, v in m.items() if k != "bins"))


if __name__ == "__main__":
    main()
