"""Speed of the engine relative to NumPy/SciPy, a literal loop, GraKeL, and tanh alone.

    python -m benchmarks [--json FILE] [--full]

Every row is a ratio of times measured in this run, on one core unless it says otherwise, after
compilation; the results of both sides are compared before their times. Real data are
looked up as by `load_tu`; rows whose dataset is missing are left out and named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from fdgnn import FDGNNClassifier, GraphBatch, load_tu
from fdgnn.datasets import make_random_graphs
from fdgnn.exceptions import FDGNNError
from fdgnn.reservoir import (
    ReservoirConfig,
    contractions,
    draw_reservoir,
    embed,
)
from fdgnn.seeds import seed_sequence


class Row(NamedTuple):
    """One measured line: the figure, what it must be, and the times behind it."""

    what: str
    figure: float
    must: str
    reached: bool
    seconds: dict[str, float]


def at_least(what: str, figure: float, must: float, **seconds: float) -> Row:
    return Row(what, figure, f">= {must:g}", figure >= must, seconds)


def at_most(what: str, figure: float, must: float, **seconds: float) -> Row:
    return Row(what, figure, f"<= {must:g}", figure <= must, seconds)


def best(function: Callable[[], Any], repeats: int, clock: Callable[[], float]) -> float:
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def cpu(function: Callable[[], Any], repeats: int = 5) -> float:
    """CPU seconds of one core: other work on the machine counts less than on the wall clock."""
    return best(function, repeats, time.process_time)


def wall(function: Callable[[], Any], repeats: int = 5) -> float:
    return best(function, repeats, time.perf_counter)


def fresh(graphs: GraphBatch) -> GraphBatch:
    """Give the same graphs with nothing computed about them yet."""
    return graphs[:]


def network(graphs: GraphBatch, n_units: int, n_layers: int) -> Any:
    config = ReservoirConfig(n_units=n_units, n_layers=n_layers)
    reservoir = draw_reservoir(config, graphs, graphs.average_degree, seed_sequence(0))
    embed(graphs[:5], reservoir)  # compile
    embed(graphs[:5], reservoir, tol=1e-9)  # and the kernel for what float32 cannot resolve
    embed(graphs[:5], reservoir, solver="paper")
    return reservoir


# ---------------------------------------------------------------------- the obvious ways


def numpy_loop(graphs: GraphBatch, reservoir: Any, tol: float = 1e-3, max_iter: int = 50) -> Any:
    """One layer over the whole dataset as NumPy and SciPy do it, stopping for all at once."""
    (layer,) = reservoir.layers
    A, W_T = graphs.adjacency(), layer.recurrent_weights.T.tocsr()
    U = layer.input_weights.T.toarray()[graphs.encode_labels(reservoir.vocabulary)] + layer.bias
    X = np.zeros_like(U)
    for _ in range(max_iter):
        X_new = np.tanh(U + (A @ X) @ W_T)
        distance = np.linalg.norm(X_new - X)
        X = X_new
        if distance < tol:
            break
    return np.add.reduceat(X, graphs.vertex_offsets[:-1])


def bare_tanh(n: int) -> Callable[[], None]:
    """Give n vectorized float32 tanh out of the first-level cache."""
    from fdgnn.kernels import tanh_sum

    m = 1024
    x, s = np.linspace(-2, 2, m, dtype=np.float32), np.zeros(m, dtype=np.float32)
    out = np.empty(m, dtype=np.float32)

    def times(repeats: int) -> None:
        for _ in range(repeats):
            tanh_sum(x, 0.0, s, out, 64)  # the call itself would cost as much as one pass

    return lambda: times(n // (64 * m))


# ---------------------------------------------------------------------- rows


def nci1() -> list[Row]:
    graphs, _ = load_tu("NCI1")
    reservoir = network(graphs, 500, 1)
    expected = numpy_loop(graphs, reservoir)
    ours = embed(graphs, reservoir).pooled[0]
    assert np.abs(ours - expected).max() < 1e-2
    slow = cpu(lambda: numpy_loop(graphs, reservoir), 1)
    fast = cpu(lambda: embed(graphs, reservoir))
    first = cpu(lambda: embed(fresh(graphs), reservoir))
    limit = cpu(bare_tanh(graphs.n_vertices * 500))
    one = wall(lambda: embed(graphs, reservoir), 9)
    two = wall(lambda: embed(graphs, reservoir, n_jobs=2), 9)
    for a, b in zip(embed(graphs, reservoir, n_jobs=2)[:3], embed(graphs, reservoir), strict=False):
        np.testing.assert_array_equal(a, b)
    seconds = {"numpy": slow, "engine": fast, "first": first, "tanh": limit}
    return [
        at_least("NCI1, H 500, L 1: speed relative to NumPy/SciPy", slow / fast, 100, **seconds),
        at_least("... the first reservoir, with quotients and radii", slow / first, 100),
        at_most("... in bare tanh passes", fast / limit, 5),
        at_least(
            "... two threads relative to one (elapsed time)", one / two, 1.8, one=one, two=two
        ),
    ]


def beside_the_literal_loop(name: str, n_units: int, must: float, share: int) -> list[Row]:
    """Every `share`-th graph; quotients and radii are paid for one network."""
    graphs = load_tu(name)[0][::share]
    reservoir = network(graphs, n_units, 3)
    loop, ours = embed(graphs, reservoir, solver="paper", layers="last"), embed(graphs, reservoir)
    others = (contractions(reservoir, graphs) >= 1).any(axis=0)
    n = np.sqrt(np.diff(graphs.vertex_offsets))[:, None]
    assert np.abs(ours.pooled[-1] - loop.pooled[-1])[others].max(initial=0) < 1e-5
    assert np.median(np.abs(ours.pooled[-1] - loop.pooled[-1]) / n) < 1e-3
    slow = cpu(lambda: embed(graphs, reservoir, solver="paper", layers="last"), 1)
    fast = cpu(lambda: embed(fresh(graphs), reservoir, layers="last"), 3)
    what = f"{name}{f', every {share}th graph' if share > 1 else ''}, H {n_units}, L 3"
    seconds = {"loop": slow, "engine": fast, "uncertified_graphs": float(others.sum())}
    return [at_least(f"{what}: speed relative to the literal loop", slow / fast, must, **seconds)]


def mutag() -> list[Row]:
    from grakel.kernels import VertexHistogram, WeisfeilerLehman
    from sklearn.svm import SVC

    graphs, y = load_tu("MUTAG")
    theirs = [
        [{(int(a), int(b)): 1 for a, b in g.edge_index.T}, dict(enumerate(map(int, g.labels)))]
        for g in graphs
    ]

    def wl() -> Any:
        kernel = WeisfeilerLehman(n_iter=5, base_graph_kernel=VertexHistogram, normalize=True)
        return SVC(kernel="precomputed").fit(kernel.fit_transform(theirs), y)

    def fdgnn() -> Any:
        model = FDGNNClassifier(n_units=50, n_layers=3, alpha=0.1, random_state=0)
        return model.fit(fresh(graphs), y)

    assert fdgnn().score(graphs, y) > 0.8
    slow, fast = cpu(wl, 5), cpu(fdgnn, 20)
    what = "MUTAG, H 50, L 3, whole fit: speed relative to GraKeL WL(5) + SVC"
    return [at_least(what, slow / fast, 10, wl=slow, fit=fast)]


def memory() -> list[Row]:
    """Peak memory of one COLLAB embedding over the loaded batch, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.engine", "--peak"], capture_output=True, check=True
    )
    peak, seconds = json.loads(run.stdout)
    what = "COLLAB, H 500, L 3: peak memory over the batch, GB"
    return [at_most(what, peak, 2, all_graphs_one_reservoir=seconds)]


def print_peak() -> None:
    """Embed COLLAB after forgetting the peak that loading it left behind (Linux)."""
    graphs, _ = load_tu("COLLAB")
    reservoir = network(graphs, 500, 3)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_memory()
    seconds = cpu(lambda: embed(graphs, reservoir, layers="last"), 1)
    print(json.dumps([(peak_memory() - before) / 2**20, seconds]))


def peak_memory() -> int:
    """Largest resident memory since the last reset, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def slopes() -> list[Row]:
    """Log-log slope of the time as each size grows a hundredfold."""

    def slope(sizes: list[int], time_of: Callable[[int], float]) -> tuple[float, dict[str, float]]:
        times = [time_of(size) for size in sizes]
        fit = np.polyfit(np.log(sizes), np.log(times), 1)
        return float(fit[0]), dict(zip(map(str, sizes), times, strict=True))

    def vertices(n: int) -> float:
        graphs = make_random_graphs(20 * n, random_state=0)
        reservoir = network(graphs, 50, 3)
        return cpu(lambda: embed(fresh(graphs), reservoir), 3)

    def units(H: int) -> float:
        return cpu(lambda: embed(some, network_of[H]), 3)

    def layers(L: int) -> float:
        return cpu(lambda: embed(some, network_of[50, L]), 3)

    some = make_random_graphs(500, random_state=0)
    sizes = [1, 3, 10, 30, 100]
    network_of: dict[Any, Any] = {H: network(some, H, 1) for H in (10 * s for s in sizes)}
    network_of |= {(50, L): network(some, 50, L) for L in sizes}
    rows = []
    for what, values, time_of in (
        ("vertices (graphs)", sizes, vertices),
        ("units", [10 * s for s in sizes], units),
        ("layers", sizes, layers),
    ):
        value, seconds = slope(values, time_of)
        rows.append(at_most(f"slope of time over {what}, 1x..100x", value, 1.05, **seconds))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the engine.")
    parser.add_argument("--json", type=Path, help="write all figures here, too")
    parser.add_argument("--full", action="store_true", help="COLLAB's literal loop on all graphs")
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        return print_peak()
    parts: list[Callable[[], list[Row]]] = [
        nci1,
        lambda: beside_the_literal_loop("COLLAB", 500, 20, 1 if options.full else 50),
        lambda: beside_the_literal_loop("REDDIT-BINARY", 50, 10, 1),
        mutag,
        memory,
        slopes,
    ]
    print_rows(parts, options.json)


def print_rows(parts: Sequence[Callable[[], list[Row]]], path: Path | None) -> None:
    """Run parts on one thread of BLAS, print their rows, and write them to a file, too.

    There they take the place of the rows of the same names; the other rows stay.
    """
    rows: list[Row] = []
    with threadpool_limits(1):
        for part in parts:
            try:
                rows += part()
            except (FDGNNError, ImportError) as error:
                print(f"left out: {error}")
    width = max(len(row.what) for row in rows)
    for row in rows:
        times = ", ".join(f"{k}: {v:.4g}" for k, v in row.seconds.items())
        sign = "" if row.reached else "   SHORT"
        print(f"{row.what:{width}}  {row.figure:8.3g}  {row.must:8}{sign}   [{times}]")
    if path is not None:
        kept = json.loads(path.read_text()) if path.exists() else []
        found = {row["what"]: row for row in [*kept, *(row._asdict() for row in rows)]}
        path.write_text(json.dumps(list(found.values()), indent=1) + "\n")


if __name__ == "__main__":
    main()
