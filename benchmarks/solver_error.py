"""Distance of the default solver from the fixed point, over many random initializations.

Also the number of graphs that need float64.

python -m benchmarks.solver_error [--seeds 400] [--dataset MUTAG]
"""

import argparse

import numpy as np

from fdgnn import GraphReservoir, load_tu
from fdgnn.reservoir import solve_counted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="MUTAG")
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    graphs, _ = load_tu(options.dataset)
    errors, counts = [], np.zeros(3, dtype=np.int64)
    for seed in range(options.seeds):
        reservoir = GraphReservoir(n_layers=3, random_state=seed).fit(graphs).reservoir_
        (found, own), (exact, _) = (
            solve_counted(graphs, reservoir, tol, 50, (0, 1, 2), keep_states=True)
            for tol in (options.tol, 1e-10)
        )
        counts += np.array(own)
        squares = np.square(found.states - exact.states).sum(axis=2)
        errors.append(np.sqrt(np.add.reduceat(squares, graphs.vertex_offsets[:-1]).max()))
    worst = int(np.argmax(errors))
    print(f"{options.dataset}, {options.seeds} seeds, tol {options.tol:g}: Frobenius distance")
    print(f"median {np.median(errors):.1e}, largest {errors[worst]:.1e} (seed {worst})")
    n_single, n_double, _ = counts
    print(f"graphs solved in float64: {n_double / (n_single + n_double):.2%}")


if __name__ == "__main__":
    main()
