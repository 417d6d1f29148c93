"""How far the default solver is from the fixed point, over many random initializations.

Also how much errors of cycles are amplified, and how many graphs need float64 for it.

python -m benchmarks.solver_error [--seeds 400] [--dataset MUTAG]
"""

import argparse

import numpy as np

from fdgnn import GraphReservoir, load_tu
from fdgnn.kernels import DOUBLE, choose_ways
from fdgnn.reservoir import embed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="MUTAG")
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    graphs, _ = load_tu(options.dataset)
    errors, amplifications, doubles = [], [], []
    for seed in range(options.seeds):
        reservoir = GraphReservoir(n_layers=3, random_state=seed).fit(graphs).reservoir_
        program = reservoir.program((2,), single=True)
        ways, *_, amplification = choose_ways(
            graphs.spectral_radii, graphs.quotients.bound, program, options.tol, True, False
        )
        amplifications.append(np.median(amplification))
        doubles.append(np.mean(ways == DOUBLE))
        found, exact = (
            embed(graphs, reservoir, tol=tol, keep_states=True) for tol in (options.tol, 1e-10)
        )
        squares = np.square(found.states - exact.states).sum(axis=2)
        errors.append(np.sqrt(np.add.reduceat(squares, graphs.vertex_offsets[:-1]).max()))
    worst = int(np.argmax(errors))
    print(f"{options.dataset}, {options.seeds} seeds, tol {options.tol:g}: Frobenius distance")
    print(f"median {np.median(errors):.1e}, largest {errors[worst]:.1e} (seed {worst})")
    middle, large = np.quantile(amplifications, [0.5, 0.9])
    print(f"amplification: median of the seeds {middle:.0f}, ninth decile {large:.0f}")
    print(f"graphs solved in float64: {np.mean(doubles):.1%}")


if __name__ == "__main__":
    main()
