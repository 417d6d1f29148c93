"""Time of first commands and predictions, with empty and warm caches.

    python -m benchmarks.first_use [--beside PYTHON] [--tries 3] [--only fits|engine] [--json FILE]

Figures are CPU seconds, of whole processes unless a row says otherwise, the best of several
tries, on molecules of BACE (``FDGNN_DATA``); the model is the default of ``fdgnn fit``.
``--beside`` names the interpreter of an environment with another version of fdgnn, which runs after
ours in each try, with its own models. Empty caches are new folders for parsed data and for numba,
which earlier versions used. Byte code is compiled in advance, as pip does. ``--json`` writes all
figures and the ratios, and keeps other entries of the file; ``--name`` names the entry. ``--only``
measures only the fit of MUTAG or the embedding of NCI1: they take seconds, so that many tries are
possible on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fdgnn.datasets.home import data_home

ONE_GRAPH = """
import json, sys, time
import numpy as np
import fdgnn
model = fdgnn.load_model(sys.argv[1])
graphs = fdgnn.read_graphs(sys.argv[2], like=model).graphs
model.predict(graphs[:1])
times = []
for i in range(2000):
    one = graphs[i % len(graphs)]
    start = time.thread_time()
    model.predict([one])
    times.append(time.thread_time() - start)
print(json.dumps([float(x) for x in np.percentile(times, [50, 99])]))
"""
FIRST_GRAPH = """
import sys, fdgnn
model = fdgnn.load_model(sys.argv[1])
model.predict(fdgnn.read_graphs(sys.argv[2], like=model).graphs[:1])
"""
FIRST_SCORE = """
import fdgnn
graphs, y = fdgnn.load_tu("MUTAG")
fdgnn.FDGNNClassifier(random_state=0).fit(graphs, y).score(graphs, y)
"""
FIRST_SEARCH = """
import fdgnn
graphs, y = fdgnn.load_tu("MUTAG")
fdgnn.FDGNNSearchCV(fdgnn.FDGNNClassifier(), n_configurations=2, random_state=0).fit(graphs, y)
"""
MUTAG = """
import json, os, time, fdgnn
from threadpoolctl import threadpool_limits
graphs, y = fdgnn.load_tu("MUTAG")
model = fdgnn.FDGNNClassifier(random_state=0).fit(graphs, y)
best = []
for n_threads, again in ((1, True), (1, False), (os.cpu_count(), False)):
    with threadpool_limits(n_threads, user_api="blas"):
        best.append(float("inf"))
        for _ in range(200):
            some = graphs if again else graphs[:]
            start = time.process_time()
            model.fit(some, y)
            best[-1] = min(best[-1], time.process_time() - start)
times = []
with threadpool_limits(1, user_api="blas"):
    for seed in range(1, 401):
        model.set_params(random_state=seed)
        start = time.process_time()
        model.fit(graphs, y)
        times.append(time.process_time() - start)
print(json.dumps([*best, sorted(times)[200]]))
"""
ONE_OF_MUTAG = """
import json, time
import numpy as np
import fdgnn
graphs, y = fdgnn.load_tu("MUTAG")
model = fdgnn.FDGNNClassifier(random_state=0).fit(graphs, y)
each, times = list(graphs), []
for i in range(2000):
    one = each[i % len(each)]
    start = time.thread_time()
    model.predict([one])
    times.append(time.thread_time() - start)
print(json.dumps([np.median(times)]))
"""
NCI1 = """
import json, time, numpy as np, fdgnn
try:
    from fdgnn.kernels import tanh_sum
except ImportError:  # numba's kernels had none that could be timed alone
    tanh_sum = None
from fdgnn.reservoir import ReservoirConfig, draw_reservoir, embed
from fdgnn.seeds import seed_sequence
graphs, _ = fdgnn.load_tu("NCI1")
config = ReservoirConfig(n_units=500, n_layers=1)
reservoir = draw_reservoir(config, graphs, graphs.average_degree, seed_sequence(0))
d, s, x = np.linspace(-2, 2, 1024, dtype=np.float32), *np.zeros((2, 1024), dtype=np.float32)
passes = graphs.n_vertices * 500 // 1024
best = [float("inf")] * 2
for _ in range(20):  # in turn, so that other work on the machine meets both
    start = time.process_time()
    embed(graphs, reservoir)
    middle = time.process_time()
    if tanh_sum is not None:
        tanh_sum(d, 0.0, s, x, passes)
    end = time.process_time()
    best = [min(best[0], middle - start), min(best[1], end - middle)]
print(json.dumps([best[0], best[0] / best[1] if tanh_sum is not None else None]))
"""


class Installed:
    """A state of fdgnn, known by its interpreter, with a model of its own."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python, self.folder = python, folder
        folder.mkdir()
        self.model, self.papers = str(folder / "auto.fdgnn"), str(folder / "paper.fdgnn")
        self.environment = os.environ | self._caches("warm") | {"OMP_NUM_THREADS": "1"}
        _, package = self.run(["-c", "import fdgnn; print(*fdgnn.__path__)"])
        self.run(["-m", "compileall", "-q", package.strip()])

    def _caches(self, name: str) -> dict[str, str]:
        return {
            "NUMBA_CACHE_DIR": str(self.folder / name / "numba"),
            "FDGNN_CACHE": str(self.folder / name / "data"),
        }

    def run(self, arguments: Sequence[str], empty: str | None = None) -> tuple[float, str]:
        """Run a process; give its CPU seconds and what it printed."""
        environment = self.environment | (self._caches(empty) if empty else {})
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [self.python, *arguments], env=environment, cwd=self.folder, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return spent, done.stdout

    def fdgnn(self, *arguments: str, empty: str | None = None) -> float:
        """Run the command; give its CPU seconds."""
        return self.run(["-m", "fdgnn", *arguments], empty)[0]

    def numbers(self, script: str, *arguments: str) -> list[Any]:
        """Run a script that prints numbers, null for what this state does not have."""
        found: list[Any] = json.loads(self.run(["-c", script, *arguments])[1])
        return found

    def fits(self) -> dict[str, Any]:
        """One try of MUTAG's fit."""
        again, mutag, threaded, other_seeds = self.numbers(MUTAG)
        return {
            "MUTAG fit, warm, the same graphs again": again,
            "MUTAG fit, warm, the same graphs, a new seed each time: median": other_seeds,
            "MUTAG fit, warm": mutag,
            "MUTAG fit, warm, BLAS with as many threads as cores": threaded,
        }

    def engine(self) -> dict[str, Any]:
        """One try of NCI1's embedding."""
        nci1, passes = self.numbers(NCI1)
        return {
            "NCI1, H 500, one layer": nci1,
            "NCI1, H 500, one layer, in passes of our own tanh": passes,
        }

    def times(self, train: str, new: str, attempt: int) -> dict[str, Any]:
        """One try of everything."""
        fit = ["fit", train, "--target", "target", "--quiet", "--force", "-o", self.model]
        predict = ["predict", self.model, new, "-o", "predicted.csv", "-q", "--force"]
        first_fit = self.fdgnn(*fit, empty=f"fit-{attempt}")
        first_predict = self.fdgnn(*predict, empty=f"predict-{attempt}")
        self.fdgnn(*fit)
        self.fdgnn(*predict)
        self.fdgnn(*fit[:-1], self.papers, "--model", "paper", "--no-search")
        (small,) = self.numbers(ONE_OF_MUTAG)
        median, slow = self.numbers(ONE_GRAPH, self.papers, new)
        committee, _ = self.numbers(ONE_GRAPH, self.model, new)
        return {
            "first predict, empty caches": first_predict,
            "first fit, empty caches": first_fit,
            "fit, warm": self.fdgnn(*fit),
            "predict 200 SMILES, warm": self.fdgnn(*predict),
            "import, load, predict one graph": self.run(["-c", FIRST_GRAPH, self.model, new])[0],
            "import, fit and score MUTAG": self.run(["-c", FIRST_SCORE])[0],
            "import, search 2 configurations on MUTAG": self.run(["-c", FIRST_SEARCH])[0],
            "one graph, the paper's model: median, one thread": median,
            "one graph, the paper's model: 99th percentile, one thread": slow,
            "one graph, --model auto: median, one thread": committee,
            "one graph of MUTAG, the paper's model: median, one thread": small,
            "fdgnn --help": self.fdgnn("--help"),
            **self.fits(),
            **self.engine(),
        }


def molecules(folder: Path) -> tuple[str, str]:
    """Write 800 molecules to train on and 200 others."""
    lines = (data_home() / "chem" / "BACE.csv").read_text(encoding="utf-8").splitlines()
    train, new = folder / "train.csv", folder / "new.csv"
    train.write_text("\n".join(lines[:801]) + "\n", encoding="utf-8")
    new.write_text("\n".join(lines[:1] + lines[801:1001]) + "\n", encoding="utf-8")
    return str(train), str(new)


def main() -> None:
    """Print a table: ours, the other's, the ratio."""
    parser = argparse.ArgumentParser(description="How long the first second takes.")
    parser.add_argument("--beside", help="interpreter of an environment with another state")
    parser.add_argument("--tries", type=int, default=3, help="the best of so many is taken")
    parser.add_argument(
        "--only", choices=["fits", "engine"], help="MUTAG's fit, or NCI1's embedding"
    )
    parser.add_argument("--json", type=Path, help="write all figures here, too")
    parser.add_argument("--name", help="of the entry in that file")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = molecules(folder)
        states = {"now": Installed(sys.executable, folder / "now")}
        if options.beside:
            states["before"] = Installed(options.beside, folder / "before")
        tries = {name: [] for name in states}
        for attempt in range(options.tries):
            for name, state in states.items():
                parts = {"fits": state.fits, "engine": state.engine}
                some = parts.get(options.only, partial(state.times, *files, attempt))
                tries[name].append(some())
    best = {
        name: {row: min(one[row] for one in found) for row in found[0] if found[0][row] is not None}
        for name, found in tries.items()
    }
    if "before" in best:
        now = best["now"]
        best["ratios"] = {row: now[row] / found for row, found in best["before"].items()}
    for row, found in best["now"].items():
        others = [name for name in ("before", "ratios") if row in best.get(name, ())]
        beside = (f"{name} {best[name][row]:8.4f}" for name in others)
        print(f"{row:64} {found:8.4f}", *beside)
    if options.json:
        earlier = json.loads(options.json.read_text()) if options.json.exists() else {}
        entries = {options.name: best} if options.name else best
        options.json.write_text(json.dumps(earlier | entries, indent=1) + "\n")


if __name__ == "__main__":
    main()
