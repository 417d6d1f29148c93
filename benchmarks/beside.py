"""Times of embeddings, fits and predictions, relative to another version of the library.

    python -m benchmarks.beside COMMIT [--iterations 5]

The commit is installed into a temporary folder, which compiles its kernels; alternatively, name a
folder with an installed package. Both versions run in separate processes, alternately, so that
other load affects both. Each time is the best CPU time over all rounds. The table also shows
whether the results of both versions are bitwise equal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OURS = Path(__file__).parent.parent / "src"


def measure() -> None:
    """Print the CPU seconds of each task, and a checksum of its result."""
    from fdgnn import FDGNNClassifier, GraphReservoir, load_tu
    from fdgnn.reservoir import embed

    found: dict[str, tuple[float, str]] = {}

    def timed(name: str, prepare: Callable[[], Any], run: Callable[[Any], Any], n: int) -> None:
        best = float("inf")
        for argument in [prepare() for _ in range(n)]:
            start = time.process_time()
            result = run(argument)
            best = min(best, time.process_time() - start)
        found[name] = best, hashlib.sha256(result.tobytes()).hexdigest()

    def times(name: str, **options: Any) -> None:
        graphs, y = load_tu(name)  # none has labels and attributes
        reservoir = GraphReservoir(random_state=0, **options).fit(graphs).reservoir_
        kept = graphs[:]

        def pooled(batch: Any) -> Any:
            return embed(batch, reservoir, layers="last").pooled

        pooled(kept)
        timed(f"{name}, embedding", lambda: graphs[:], pooled, 10)
        timed(f"{name}, embedding again", lambda: kept, pooled, 10)
        if name == "MUTAG":
            one = graphs[[0]]  # 17 vertices
            timed("one graph, embedding", lambda: one[:], pooled, 1000)
            timed("one graph, embedding again", lambda: one, pooled, 1000)
            model = FDGNNClassifier(random_state=0).fit(graphs, y)
            timed("one graph, prediction", lambda: one[:], model.decision_function, 500)
            alone = graphs[0]
            timed("one graph object, prediction", lambda: [alone], model.decision_function, 500)
            timed("MUTAG, fit", lambda: graphs[:], lambda g: fitted(g, y).coef_, 100)

    def fitted(graphs: Any, y: Any) -> Any:
        return FDGNNClassifier(random_state=0).fit(graphs, y)

    times("MUTAG")
    times("NCI1", n_units=500, n_layers=1)
    times("IMDB-BINARY")
    print(json.dumps(found))


def run(source: Path, cache: str) -> dict[str, tuple[float, str]]:
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    own = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache}
    environment = {**os.environ, **threads, **own}
    command = [sys.executable, str(Path(__file__)), "--measure"]
    output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    return dict(json.loads(output))


@contextmanager
def sources(other: str) -> Iterator[Path]:
    """Yield the folder itself, or install the commit as long as it is needed."""
    if Path(other).is_dir():
        yield Path(other).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        tree, installed = Path(folder) / "commit", Path(folder) / "installed"
        git = ["git", "-C", str(OURS), "worktree"]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), other], check=True)
        try:
            subprocess.run([*pip, str(installed), str(tree)], check=True)
            yield installed
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Two states of the library side by side.")
    parser.add_argument("other", nargs="?", help="a commit, or a folder of sources")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure()
    with sources(options.other) as other:
        for name, (theirs, ours, same) in best_times(other, options.iterations).items():
            times = f"{1e3 * theirs:9.3f} ms   {1e3 * ours:9.3f} ms"
            bits = "same bits" if same else "other bits"
            print(f"{name:30} {times}   ratio {ours / theirs:.2f}   {bits}")


def best_times(other: Path, rounds: int) -> dict[str, tuple[float, float, bool]]:
    """Return the CPU seconds of each task by both sources, and whether its result is the same."""
    best: list[dict[str, float]] = [{}, {}]
    checksums: list[dict[str, str]] = [{}, {}]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            results = [run(source, f"{folder}/{i}") for i, source in enumerate((other, OURS))]
            for name in results[0]:
                for times, sums, result in zip(best, checksums, results, strict=True):
                    times[name] = min(times.get(name, float("inf")), result[name][0])
                    sums[name] = result[name][1]
    return {
        name: (theirs, best[1][name], checksums[0][name] == checksums[1][name])
        for name, theirs in best[0].items()
    }


if __name__ == "__main__":
    main()
