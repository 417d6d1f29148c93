"""Training time of the ensemble, relative to GraKeL's WL subtree kernel with an SVM.

    FDGNN_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/auto_fit.py

CPU seconds of one thread in one process, the best of alternating repetitions. GraKeL's kernel has
three iterations and a fixed C, so nothing is selected.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from grakel.kernels import VertexHistogram, WeisfeilerLehman
from sklearn.svm import SVC

from fdgnn import AutoGraphClassifier
from fdgnn.datasets import load_tu
from fdgnn.evaluation.baselines.pipelines import as_grakel
from fdgnn.graphs.converters import as_batch

REPETITIONS = 2


def main(name: str = "NCI1") -> None:
    """Print the times and their ratio."""
    graphs, y, *_ = load_tu(name)
    theirs = as_grakel(as_batch(graphs))

    def grakel() -> None:
        kernel = WeisfeilerLehman(n_iter=3, base_graph_kernel=VertexHistogram, normalize=True)
        SVC(kernel="precomputed").fit(kernel.fit_transform(theirs), y)

    def ours() -> None:
        AutoGraphClassifier(random_state=0, n_jobs=1).fit(graphs, y)

    best = {"GraKeL, WL and SVC": np.inf, "auto": np.inf}
    for _ in range(REPETITIONS):
        for way, call in zip(best, (grakel, ours), strict=True):
            start = time.process_time()
            call()
            best[way] = min(best[way], time.process_time() - start)
    for way, seconds in best.items():
        print(f"{way:20} {seconds:7.2f} s   {seconds / best['GraKeL, WL and SVC']:5.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
