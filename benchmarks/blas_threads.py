"""Time of a fit with several BLAS threads.

    python -m benchmarks.blas_threads [--graphs 2000] [--jobs 1 2]

Fits an `AutoGraphClassifier` to generated graphs in a separate process for each number of jobs.
CPU time exceeds elapsed time if BLAS threads wait for each other.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

FIT = """
import sys, time
from fdgnn import AutoGraphClassifier
from fdgnn.datasets import make_motif_graphs

n_graphs, n_jobs = map(int, sys.argv[1:])
graphs, y = make_motif_graphs(n_graphs, random_state=0)
clock, cpu = time.perf_counter(), time.process_time()
AutoGraphClassifier(n_jobs=n_jobs, random_state=0).fit(graphs, y)
print(f"{time.perf_counter() - clock:.1f} s, {time.process_time() - cpu:.1f} s of CPU")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    for n_jobs in given.jobs:
        words = [sys.executable, "-c", FIT, str(given.graphs), str(n_jobs)]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
        print(f"n_jobs={n_jobs}: {run.stdout.strip()}")


if __name__ == "__main__":
    main()
