"""Time of choosing alpha, relative to a single fit: WL features of NCI1, ten folds.

The fit with a given alpha is timed twice: by the library (`Ridge` or `KernelRidge` without folds),
and by one Cholesky factorization in double precision of the Gram matrix, including this matrix.
Alpha is chosen by accuracy as in `fit`, from the alphas that `fit` tries for so many graphs, and
from all eight. All times include the encoding of the graphs.

    FDGNN_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/choosing_alpha.py

CPU seconds of one thread, the best of alternating repetitions.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.datasets import load_tu
from fdgnn.encoders import WLCounts
from fdgnn.fitting import FitTask
from fdgnn.linear import KernelRidge, Ridge
from fdgnn.linear.closed_form import fit_exactly
from fdgnn.linear.products import row_products
from fdgnn.linear.ridge import CLASS_ALPHAS
from fdgnn.metrics import accuracy
from fdgnn.targets import read_targets
from fdgnn.threads import one_blas_thread

REPETITIONS = 3
N_FOLDS = 10


def encoded(graphs: Any) -> Any:
    """Return features of graphs whose WL labels are not known yet."""
    new = replace(graphs)
    encoder = WLCounts(n_iterations=2).draw(new, np.random.SeedSequence(0))
    return sp.csr_array(encoder.encode(new, n_jobs=1).features[0])


def by_cholesky(recipe: Any, X: Any, Y: Any) -> None:
    """Fit with a given alpha by one factor of the matrix of all pairs."""
    K = row_products(X)
    if isinstance(recipe, KernelRidge):
        squares = np.diag(K).copy()
        K *= -2.0
        K += squares
        K += squares[:, None]
        K *= -1.0 / K.mean()
        np.exp(K, out=K)
    fit_exactly(K, Y, 0.1)


def seconds(call: Callable[[], Any]) -> float:
    """Return CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main(name: str = "NCI1") -> None:
    """Print the times and their ratios."""
    graphs, y, *_ = load_tu(name)
    n, targets = len(y), read_targets(y, graphs, True)
    Y = targets.coded
    folds = (np.random.default_rng(0).permutation(n) % N_FOLDS)[None]
    nothing = np.empty((0, n), dtype=np.int64)
    task = FitTask(targets, folds, accuracy)

    def chosen(recipe: Any, alphas: Sequence[float]) -> None:
        path = recipe.solve(encoded(graphs), Y, alphas, folds, score=task.compared)
        choice = task.choose(path.predictions, alphas)
        path.readout(alphas[choice.positions[0, 0]])

    for recipe in (KernelRidge(), Ridge()):
        usual = recipe.grid(n, classify=True)
        ways: dict[str, Callable[[], Any]] = {
            "given alpha, by a Cholesky factor": lambda r=recipe: by_cholesky(
                r, encoded(graphs), Y
            ),
            "given alpha": lambda r=recipe: r.solve(encoded(graphs), Y, (), nothing).readout(0.1),
            f"chosen from {len(usual)} alphas, as in fit": lambda r=recipe, a=usual: chosen(r, a),
            "chosen from 8 alphas": lambda r=recipe: chosen(r, CLASS_ALPHAS),
        }
        found = {way: np.inf for way in ways}
        with one_blas_thread():
            for _ in range(REPETITIONS):
                for way, call in ways.items():
                    found[way] = min(found[way], seconds(call))
        print(type(recipe).__name__, f"on {name}, {n} graphs; ratios to both fits with given alpha")
        exact, own = list(found.values())[:2]
        for way, took in found.items():
            print(f"  {way:36} {took:7.2f} s   {took / exact:5.2f}   {took / own:5.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
