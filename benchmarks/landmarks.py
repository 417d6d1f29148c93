"""Landmarks for RBF kernel ridge regression on more graphs than a kernel matrix allows.

    python -m benchmarks.landmarks [--landmarks 1000] [--json results/landmarks.json]

WL features of three iterations on NCI1 (accuracy) and of two on LIPO (RMSE, as in
`benchmarks.molecules` without its test part); out-of-fold predictions of five folds, with the best
alpha of each row on these folds, so all rows have the same optimistic bias. The linear
readout and the exact kernel are compared with ridge regression on scikit-learn's Nystroem features
of the same kernel at several widths, alone and averaged with the linear readout.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem

from fdgnn import WLCounts, load_tu, read_graphs
from fdgnn.arrays import spread
from fdgnn.linear import KernelRidge, Ridge

ALPHAS = np.array([1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0])
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # gamma: 1 at the mean squared distance


def nci1() -> tuple[Any, Any, Callable[[Any], float]]:
    """Features, targets, and accuracy in %."""
    graphs, classes = load_tu("NCI1")
    Y = np.where(classes == classes.max(), 1.0, -1.0)[:, None]
    X = WLCounts(n_iterations=3).fit_transform(graphs)
    return X, Y, lambda outputs: float(100 * (np.sign(outputs) == Y).mean())


def lipo() -> tuple[Any, Any, Callable[[Any], float]]:
    """Features, targets, and the negative RMSE."""
    path = Path(os.environ["FDGNN_DATA"]) / "chem" / "LIPO.csv"
    table = read_graphs(path, target="target", atoms="typed")
    y = np.asarray(table.y, dtype=np.float64)
    train = np.sort(np.random.default_rng(0).permutation(len(y))[len(y) // 5 :])
    assert table.graphs is not None
    X, Y = WLCounts(n_iterations=2).fit_transform(table.graphs[train]), y[train][:, None]
    return X, Y, lambda outputs: -float(np.sqrt(((outputs - Y) ** 2).mean()))


def rows(X: Any, Y: Any, score: Callable[[Any], float], n_landmarks: int) -> dict[str, float]:
    """Scores of all readouts."""
    folds = (np.random.default_rng(1).permutation(len(Y)) % 5)[None]

    def best(outputs: Any) -> Any:
        return max(outputs[0], key=score)

    line = best(Ridge().solve(X, Y, ALPHAS, folds).predictions)
    found = {
        "linear": score(line),
        "RBF": score(best(KernelRidge().solve(X, Y, ALPHAS, folds).predictions)),
    }
    for width in WIDTHS:
        gamma = width / (2 * spread(X))
        near = Nystroem(gamma=gamma, n_components=n_landmarks, random_state=0).fit_transform(X)
        outputs = best(Ridge(normalize=False).solve(near, Y, ALPHAS, folds).predictions)
        found[f"{n_landmarks} landmarks, gamma {width:g}"] = score(outputs)
        found[f"{n_landmarks} landmarks, gamma {width:g}, and linear"] = score((outputs + line) / 2)
    return found


def main() -> None:
    """Print one line for each readout."""
    parser = argparse.ArgumentParser(description="RBF kernel ridge regression by landmarks.")
    parser.add_argument("--landmarks", type=int, default=1_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for name, load in (("NCI1, accuracy", nci1), ("LIPO, RMSE", lipo)):
        found[name] = {k: abs(v) for k, v in rows(*load(), options.landmarks).items()}
        for readout, value in found[name].items():
            print(f"{name:16} {readout:40} {value:.3f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
