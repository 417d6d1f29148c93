"""Time of each part of a small fit.

    python -m benchmarks.fit_parts [--dataset MUTAG] [--times 1000] [--json FILE]

Each part of ``FDGNNClassifier(random_state=0).fit`` is called alone, many times, and its smallest
CPU time is reported, as for the whole fit. The difference between the whole fit and the sum of its
parts is Python between the parts, and cold caches.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import fdgnn
from fdgnn import kernels
from fdgnn.applicability import Leverage
from fdgnn.expansion import draw_projection
from fdgnn.graphs import colors
from fdgnn.linear import Ridge
from fdgnn.reservoir import ReservoirConfig, draw_reservoir, embed
from fdgnn.seeds import child_seed
from fdgnn.targets import coded, number_classes
from fdgnn.threads import one_blas_thread


def parts_of_fit(dataset: str) -> tuple[Callable[[], object], dict[str, Callable[[], object]]]:
    """Give the whole fit, on graphs of which nothing is known, and its parts."""
    graphs, y = fdgnn.load_tu(dataset)
    model = fdgnn.FDGNNClassifier(random_state=0).fit(graphs, y)
    seed, (fitted,) = child_seed(model.seed_, 0), model.estimators_
    pooled, features = fitted.encoder.encode(graphs).features[0], fitted.features(graphs)
    reservoir = fitted.encoder.reservoir_
    classes, codes = number_classes(y)
    targets = coded(codes, len(classes))
    config, k = ReservoirConfig(), graphs.average_degree
    ridge, no_folds = Ridge(1e-3, normalize=False), np.empty((0, len(y)), dtype=np.int64)

    def draw() -> None:
        new = draw_reservoir(config, graphs, k, seed)
        new.program((2,))

    return lambda: model.fit(replace(graphs), y), {
        "WL labels": lambda: colors.refine(graphs.structure, graphs.first_colors),
        "quotients": lambda: colors.quotients(graphs.structure, graphs.coloring),
        "spectral radii": lambda: kernels.radii_of_graphs(graphs.quotients.bound),
        "reservoir, drawn and scheduled": draw,
        "fixed points": lambda: embed(graphs, reservoir, layers="last"),
        "projection, drawn, and its norm": lambda: draw_projection(seed, 50, 100),
        "random features": lambda: fitted.expansion.expand(pooled),
        "ridge regression": lambda: ridge.solve(features, targets, (1e-3,), no_folds).readout(1e-3),
        "domain": lambda: Leverage.fit(pooled),
    }


def fastest(action: Callable[[], object], times: int) -> float:
    """The smallest CPU time of some calls, in milliseconds."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        action()
        best = min(best, time.process_time() - start)
    return 1e3 * best


def main() -> None:
    """Print a table, and write it as JSON."""
    parser = argparse.ArgumentParser(description="Where the time of a small fit goes.")
    parser.add_argument("--dataset", default="MUTAG")
    parser.add_argument("--times", type=int, default=1000, help="calls of each part")
    parser.add_argument("--json", type=Path, help="write milliseconds here, too")
    options = parser.parse_args()
    with one_blas_thread():
        whole, parts = parts_of_fit(options.dataset)
        found = {name: fastest(part, options.times) for name, part in parts.items()}
        found["the whole fit"] = fastest(whole, options.times)
    for name, milliseconds in found.items():
        print(f"{name:34} {milliseconds:7.3f} ms")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
