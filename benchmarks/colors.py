"""Speed of WL features relative to GraKeL's Weisfeiler-Lehman kernels, and scaling.

    python -m benchmarks.colors [--json FILE] [--small] [--only threads ...]

As in `benchmarks.engine`: ratios of CPU seconds in one run, on one core unless a row says
otherwise, after compilation; features of both implementations are compared first. ``--small`` uses
a tenth of the million molecules.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine import Row, at_least, at_most, cpu, peak_memory, print_rows, wall
from fdgnn import GraphBatch, GraphClassifier, Ridge, WLCounts, load_tu


def molecules(n: int, n_vertices: int = 25) -> GraphBatch:
    """Make n graphs of so many vertices like drug molecules: chains, branches, rings, 9 labels."""
    rng = np.random.default_rng(0)
    v = np.arange(1, n_vertices)
    parents = np.maximum(v - rng.integers(1, 4, size=(n, len(v))), 0)
    closing = rng.integers(0, n_vertices - 5, size=(n, 2))
    sources = np.concatenate([parents, closing], axis=1)
    targets = np.concatenate([np.broadcast_to(v, parents.shape), closing + 5], axis=1)
    starts = np.arange(n)[:, None] * n_vertices
    arcs = np.stack([(sources + starts).ravel(), (targets + starts).ravel()])
    labels = rng.choice(
        9, p=[0.7, 0.1, 0.1, 0.04, 0.02, 0.01, 0.01, 0.01, 0.01], size=n * n_vertices
    )
    return GraphBatch.from_arcs(np.arange(n + 1) * n_vertices, arcs, labels=labels)


def grakel_svc(kernel: Any, graphs: GraphBatch, y: Any) -> Any:
    """Fit GraKeL's kernel and a support vector machine; give the predictions on the same graphs."""
    from sklearn.svm import SVC

    from fdgnn.evaluation.baselines.pipelines import as_grakel

    given = as_grakel(graphs)  # not timed: our graphs were parsed before, too
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        K = kernel.fit_transform(given)
    predicted = SVC(kernel="precomputed").fit(K, y).predict(K)
    return time.process_time() - start, K, predicted


def beside_grakel() -> list[Row]:
    """Time fits on NCI1: linear readout with a given alpha; a kernel matrix and an SVC."""
    from grakel.kernels import VertexHistogram, WeisfeilerLehman, WeisfeilerLehmanOptimalAssignment

    graphs, y = load_tu("NCI1", edge_labels="ignore")
    order = np.random.default_rng(0).permutation(len(graphs))  # the file is sorted by class
    graphs, y = graphs[order], y[order]
    model = GraphClassifier(WLCounts(n_iterations=4), Ridge(alpha=0.1))
    model.fit(graphs[:20], y[:20])
    rows = []
    wl = WeisfeilerLehman(n_iter=4, base_graph_kernel=VertexHistogram)
    wl_oa = WeisfeilerLehmanOptimalAssignment(n_iter=4)
    for what, part, kernel, counts, must in (
        ("WL + SVC, NCI1", slice(None), wl, "sum", 8),
        ("WL-OA + SVC, 1000 graphs of NCI1", slice(1000), wl_oa, "unary", 300),
    ):
        some, classes = graphs[part], y[part]
        theirs, K, _ = grakel_svc(kernel, some, classes)
        X = WLCounts(n_iterations=4, n_features=None, counts=counts).fit_transform(some)
        np.testing.assert_array_equal((X @ X.T).toarray(), K)  # the same features
        ours = cpu(lambda some=some, classes=classes: model.fit(some[:], classes), 3)
        title = f"WL features, 4 iterations, speed relative to {what}"
        rows.append(at_least(title, theirs / ours, must, ours=ours, grakel=theirs))
    return rows


def a_million(n: int) -> list[Row]:
    """WL features of a million molecules of 25 atoms, three iterations."""
    graphs = molecules(n)
    encoder = WLCounts(n_iterations=3).fit(graphs[:10])
    encoder.encode(graphs[:10])
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far (Linux)
    before = peak_memory()
    start = time.process_time()
    (X,) = encoder.encode(graphs).features
    seconds = time.process_time() - start
    gigabytes = (peak_memory() - before) / 2**20
    assert X.shape[0] == n
    assert X.nnz <= 4 * graphs.n_vertices
    share = n / 1e6
    return [
        at_most(f"{n:,} molecules, 3 iterations: CPU seconds", seconds, 10 * share),
        at_most(f"{n:,} molecules, 3 iterations: GB over the input", gigabytes, 1.5 * share),
    ]


def threads() -> list[Row]:
    """Compare two threads with one, and with two independent processes.

    Where two processes do not give twice the work of one, the machine's two cores are not two.
    One and two take turns, and medians count: a single turn says little where other machines on
    the same host disturb it.
    """
    graphs = molecules(100_000)
    encoder = WLCounts(n_iterations=3).fit(graphs[:10])
    encoder.encode(graphs)
    turns = [
        [wall(lambda j=j: encoder.encode(graphs, n_jobs=j), 1) for j in (1, 2)] for _ in range(40)
    ]
    one, two = np.median(turns, axis=0).tolist()
    apart = side_by_side(lambda: encoder.encode(graphs, n_jobs=1))
    return [
        at_least("two threads, speed relative to one, encoding", one / two, 1.8, one=one, two=two),
        Row(
            "two processes, speed relative to one, encoding",
            2 * one / apart,
            "",
            True,
            {"apart": apart},
        ),
    ]


def side_by_side(call: Any, times: int = 40) -> float:
    """Seconds until two processes that begin together have both made a call, the median."""
    from multiprocessing import get_context

    fork = get_context("fork")
    found = fork.SimpleQueue()
    together = fork.Barrier(2)

    def work() -> None:
        seconds = []
        for _ in range(times):
            together.wait()
            seconds.append(wall(call, 1))
        found.put(seconds)

    processes = [fork.Process(target=work) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return float(np.median(np.max([found.get(), found.get()], axis=0)))


def slopes() -> list[Row]:
    """Log-log slope of the time as each size grows a hundredfold."""

    def encode(graphs: GraphBatch, n_iterations: int) -> float:
        encoder = WLCounts(n_iterations=n_iterations).fit(graphs[:2])
        return cpu(lambda: encoder.encode(graphs), 3)

    sizes = [1, 3, 10, 30, 100]
    some = molecules(4000)
    lengths = [molecules(100, 30 * s) for s in sizes]
    times = {
        "graphs": [encode(molecules(500 * s), 3) for s in sizes],
        "vertices": [encode(graphs, 3) for graphs in lengths],
        "iterations": [encode(some, s) for s in sizes],
        "edges": [encode(regular(2000, 2 * s), 3) for s in (1, 3, 10, 30, 100)],
    }
    return [
        at_most(f"slope of time over {what}, 1x..100x",
                float(np.polyfit(np.log(sizes), np.log(found), 1)[0]), 1.05,
                **dict(zip(map(str, sizes), found, strict=True)))
        for what, found in times.items()
    ]  # fmt: skip


def regular(n: int, degree: int) -> GraphBatch:
    """Twenty circles of n vertices, each joined to so many that come next."""
    v = np.arange(n)
    arcs = np.concatenate([np.stack([v, (v + d) % n]) for d in range(1, degree // 2 + 1)], axis=1)
    many = np.concatenate([arcs + n * g for g in range(20)], axis=1)
    return GraphBatch.from_arcs(np.arange(21) * n, many, labels=np.zeros(20 * n, dtype=int))


def nested(jobs: int = 2) -> list[Row]:
    """Nested 10 x 5 over all base models of auto on NCI1, from an empty run directory."""
    from tempfile import TemporaryDirectory

    from fdgnn.context import Context
    from fdgnn.evaluation.run import EvaluationTask, evaluate
    from fdgnn.folds import Split
    from fdgnn.targets import read_targets
    from fdgnn.training import NestedEvaluation, TrainingOptions

    graphs, y = load_tu("NCI1")
    targets = read_targets(y, graphs, classify=True)
    task = EvaluationTask("NCI1", graphs, Split().nested(targets))
    auto = NestedEvaluation(task, TrainingOptions().with_defaults(targets))
    with TemporaryDirectory() as directory:
        start = time.perf_counter()
        evaluate(auto, Path(directory), Context(jobs, True))
        minutes = (time.perf_counter() - start) / 60
    return [at_most("nested 10 x 5 of auto, NCI1, two processes: minutes", minutes, 10)]


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description="Speed of WL features.")
    parser.add_argument("--json", type=Path, help="write all figures here, too")
    parser.add_argument("--small", action="store_true", help="a tenth of the million molecules")
    parts: dict[str, Callable[[], list[Row]]] = {
        "grakel": beside_grakel,
        "million": lambda: a_million(100_000 if options.small else 1_000_000),
        "threads": threads,
        "slopes": slopes,
        "nested": nested,
    }
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="these parts")
    options = parser.parse_args()
    print_rows([parts[name] for name in options.only], options.json)


if __name__ == "__main__":
    main()
