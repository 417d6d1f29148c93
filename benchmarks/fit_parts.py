"""Where the time of a small fit goes.

    python -m benchmarks.fit_parts [--dataset MUTAG] [--times 1000] [--json FILE]

Each part of ``FDGNNClassifier(random_state=0).fit`` is called alone, many times, and its smallest
CPU time counts, as that of the whole fit does. What is left of the whole is Python between the
parts, and that they are slower where they come one after the other, with cold caches.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fdgnn
from fdgnn import kernels
from fdgnn.expansion import draw_projection
from fdgnn.graphs import colors
from fdgnn.networks import draw_network
from fdgnn.novelty import Leverage
from fdgnn.readout.ridge import fit_ridge
from fdgnn.readout.targets import code_classes
from fdgnn.reservoir import ReservoirConfig, average_degree, draw_reservoir, embed
from fdgnn.seeds import child_seed
from fdgnn.threads import one_blas_thread


def parts_of_fit(dataset: str) -> tuple[Callable[[], object], dict[str, Callable[[], object]]]:
    """Give the whole fit, on graphs of which nothing is known, and its parts."""
    graphs, y = fdgnn.load_tu(dataset)
    model = fdgnn.FDGNNClassifier(random_state=0).fit(graphs, y)
    member = model.members(model.graph_kind_, len(graphs))[0]
    seed = child_seed(model.seed_, 0)
    drawn = draw_network(member, graphs, seed)
    pooled, features = drawn.encoding.features[0], drawn.features
    reservoir = drawn.encoder.reservoir_
    _, targets = code_classes(y)
    config, k = ReservoirConfig(), average_degree(graphs)

    def draw() -> None:
        new = draw_reservoir(config, graphs, k, seed)
        new.program((2,), single=True)

    return lambda: model.fit(replace(graphs), y), {
        "colors": lambda: colors.refine(graphs.structure, graphs.first_colors),
        "quotients": lambda: colors.quotients(graphs.structure, graphs.coloring),
        "spectral radii": lambda: kernels.radii_of_graphs(graphs.quotients.bound),
        "reservoir, drawn and scheduled": draw,
        "fixed points": lambda: embed(graphs, reservoir, layers="last"),
        "projection, drawn, and its norm": lambda: draw_projection(seed, 50, 100),
        "random features": lambda: drawn.expansion.expand(pooled),
        "ridge regression": lambda: fit_ridge(features, targets, 1e-3),
        "novelty": lambda: Leverage.fit(pooled),
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
