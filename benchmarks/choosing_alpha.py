"""What choosing alpha costs beside one fit: WL features of NCI1, ten folds, eight alphas.

The fit with a given alpha is timed twice: as it is (`Ridge` or `KernelRidge` without folds), and by
one Cholesky factor in double precision of the matrix of products, including that matrix.

    FDGNN_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/choosing_alpha.py

CPU seconds of one thread, the best of some repetitions that take turns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.datasets import load_tu
from fdgnn.encoders import WLCounts
from fdgnn.linear import KernelRidge, Ridge
from fdgnn.linear.exact import fit_exactly
from fdgnn.linear.products import row_products
from fdgnn.threads import one_blas_thread

REPETITIONS = 3
N_FOLDS = 10


def encoded(name: str) -> tuple[Any, Any]:
    """Return features, and targets -1 and +1."""
    graphs, y, *_ = load_tu(name)
    encoder = WLCounts(n_iterations=2).draw(graphs, np.random.SeedSequence(0))
    X = encoder.encode(graphs, n_jobs=1).features[0]
    return sp.csr_array(X), np.where(y == np.unique(y)[0], -1.0, 1.0)[:, None]


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
    X, Y = encoded(name)
    n = len(Y)
    folds = (np.random.default_rng(0).permutation(n) % N_FOLDS)[None]
    nothing = np.empty((0, n), dtype=np.int64)
    for recipe in (KernelRidge(), Ridge()):
        alphas = recipe.grid(n, classify=True)
        ways: dict[str, Callable[[], Any]] = {
            "given alpha, by a Cholesky factor": lambda r=recipe: by_cholesky(r, X, Y),
            "given alpha": lambda r=recipe: r.solve(X, Y, (), nothing).readout(0.1),
            "chosen alpha": lambda r=recipe, a=alphas: r.solve(X, Y, a, folds).readout(0.1),
        }
        found = {way: np.inf for way in ways}
        with one_blas_thread():
            for _ in range(REPETITIONS):
                for way, call in ways.items():
                    found[way] = min(found[way], seconds(call))
        print(type(recipe).__name__, f"on {name}, {n} graphs, {X.nnz} entries")
        for way, took in found.items():
            ratio = took / found["given alpha, by a Cholesky factor"]
            print(f"  {way:36} {took:7.2f} s   {ratio:5.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
