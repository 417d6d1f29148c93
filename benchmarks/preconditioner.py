"""How many steps the solver takes with more or fewer rows in its preconditioner.

    python -m benchmarks.preconditioner [--graphs N] [--folder DIR]

Molecules of MOSES, drawn at random as in ``benchmarks.scale`` (whose tables are used, if they are
there), colors of three rounds, whether there are more than two rings, one penalty. Written to
``results/preconditioner.json``: steps and seconds on a processor for each number of rows, and how
far the fitted values are from those of the most rows, beside the size of the targets.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.scale import table, write_tables
from fdgnn import WLCounts, read_graphs
from fdgnn.linear import preconditioner
from fdgnn.linear.blocks import NOBODY, InMemory
from fdgnn.linear.conjugate import TOLERANCE, SparseRidge, Systems
from fdgnn.threads import one_blas_thread

RESULT = Path(__file__).parent.parent / "results" / "preconditioner.json"
ROWS = (1, 500, 1_000, 2_500, 5_000, 7_500)
PENALTY = 1.0  # beside the mean squared distance of samples to their mean


def measured(X, Y, n_rows: int) -> tuple[dict, np.ndarray]:
    preconditioner.MOST_ROWS = n_rows
    told: list[int] = []
    ridge = SparseRidge(
        InMemory(X, Y, np.zeros(len(Y), dtype=np.int64)), lambda steps, left: told.append(steps)
    )
    start = time.process_time()
    with one_blas_thread():
        assert ridge._preconditioner is not None
    made = time.process_time()
    systems = Systems.all_of(np.array([NOBODY]), 1, np.array([PENALTY * ridge.spread]))
    coef, intercept = ridge.fit(systems)
    cost = {
        "steps": len(told),
        "seconds_to_make": made - start,
        "seconds_to_solve": time.process_time() - made,
    }
    return cost, X[:, ridge.used] @ coef + intercept


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "fdgnn-scale"))
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    write_tables(asked.folder)
    read = read_graphs(table(asked.folder, str(asked.graphs)), target="y", atoms="typed")
    X = WLCounts(n_iterations=3).fit_transform(read.graphs)
    Y = np.where(read.y == read.y.max(), 1.0, -1.0)[:, None]
    found, fitted = {}, {}
    for n_rows in ROWS:
        found[str(n_rows)], fitted[n_rows] = measured(X, Y, n_rows)
        print(n_rows, found[str(n_rows)], flush=True)
    size = np.linalg.norm(Y - Y.mean())
    for n_rows in ROWS:
        off = np.linalg.norm(fitted[n_rows] - fitted[ROWS[-1]]) / size
        found[str(n_rows)]["difference_beside_targets"] = float(off)
    result = {"graphs": len(Y), "penalty": PENALTY, "tolerance": TOLERANCE, "rows": found}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
