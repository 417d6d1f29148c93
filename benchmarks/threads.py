"""Predictions of single graphs per second by 1, 2 and 4 threads of one process.

    python -m benchmarks.threads [--seconds 0.5] [--repeats 5] [--no-molecules]

Python runs one thread at a time, so more threads are hardly faster. They are slower where a short
call releases the GIL and waits to get it back. The controls are scikit-learn's RidgeClassifier on
one row, alone and behind a StandardScaler. Graphs come from a list of `Graph` (conversion
included), from arrays of which each call makes a `Graph`, from a batch by index (conversion
included), as batches of one graph, and as SMILES (conversion by RDKit included). The table has
medians over the repeats, in which all runs take turns: predictions per second by one thread, ratios
of the rates of 2 and 4 threads to that, the same ratios of predictions per CPU second (which other
load on the machine disturbs less), and how often a thread waited for each prediction, with 2
threads.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import threading
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fdgnn import AutoGraphClassifier, FDGNNClassifier, Graph, GraphBatch, GraphClassifier
from fdgnn.datasets import make_random_graphs
from fdgnn.exceptions import ConvergenceWarning

THREADS = (1, 2, 4)
# Alcohols, and amines, with chains and rings of several sizes.
MOLECULES = [
    f"{head}{'C' * n}{tail}"
    for n in range(1, 11)
    for head in ("O", "N")
    for tail in ("", "C=O", "c1ccccc1", "C1CCCCC1", "c1ccc2ccccc2c1")
]


def controls() -> dict[str, Callable[[int], object]]:
    """Return functions of a number that predict one row by scikit-learn, by name."""
    rows = np.random.default_rng(0).normal(size=(100, 50))
    ridge = RidgeClassifier().fit(rows, rows[:, 0] > 0)
    scaled = make_pipeline(StandardScaler(), RidgeClassifier()).fit(rows, rows[:, 0] > 0)
    return {
        "RidgeClassifier (control)": lambda i: ridge.predict(rows[i % 100, None]),
        "with a scaler (control)": lambda i: scaled.predict(rows[i % 100, None]),
    }


def predictions(molecules: bool) -> dict[str, Callable[[int], object]]:
    """Return functions of a number that predict one graph, by name."""
    graphs, y = make_random_graphs(100, random_state=0), np.arange(100) % 2
    listed = list(graphs)
    single = [GraphBatch.from_graphs([graph]) for graph in listed]
    found: dict[str, Callable[[int], object]] = {}
    for name in ("reservoir", "wl", "auto"):
        model = new_model(name).fit(graphs, y)
        found[f"{name}, list"] = lambda i, m=model: m.predict([listed[i % 100]])
        if name == "reservoir":
            found["reservoir, arrays"] = lambda i, m=model: m.predict([remade(listed[i % 100])])
            found["reservoir, index"] = lambda i, m=model: m.predict([graphs[i % 100]])
            found["reservoir, batch"] = lambda i, m=model: m.predict(single[i % 100])
            found["reservoir, domain distance"] = lambda i, m=model: m.domain_distance(
                [listed[i % 100]]
            )
        if molecules:
            model = new_model(name).fit(MOLECULES, y)
            found[f"{name}, SMILES"] = lambda i, m=model: m.predict([MOLECULES[i % 100]])
    return found


def new_model(name: str) -> FDGNNClassifier | GraphClassifier | AutoGraphClassifier:
    if name == "wl":
        return GraphClassifier("wl", random_state=0)
    return (FDGNNClassifier if name == "reservoir" else AutoGraphClassifier)(random_state=0)


def remade(graph: Graph) -> Graph:
    return Graph(graph.edge_index, graph.n_vertices, labels=graph.labels)


class Rates(NamedTuple):
    """Predictions per second and per CPU second, and how often a thread waited for each."""

    clock: float
    cpu: float
    waits: float


def run(predict: Callable[[int], object], n_threads: int, seconds: float) -> Rates:
    """Predict one after the other in each of some threads."""
    end, counts = threading.Event(), [0] * n_threads

    def work(number: int) -> None:
        while not end.is_set():
            predict(counts[number])
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_threads)]
    waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    start, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    end.set()
    for thread in threads:
        thread.join()
    taken, cpu = time.perf_counter() - start, time.process_time() - cpu
    waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - waits
    return Rates(sum(counts) / taken, sum(counts) / cpu, waits / sum(counts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-molecules", action="store_true", help="do without RDKit")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    cases = controls() | predictions(not options.no_molecules)
    for predict in cases.values():
        predict(0)
    found: dict[tuple[str, int], list[Rates]] = {}
    for _ in range(options.repeats):
        for name, predict in cases.items():
            for n_threads in THREADS:
                one = run(predict, n_threads, options.seconds)
                found.setdefault((name, n_threads), []).append(one)
    print(f"{'':26} per second   2 / 1   4 / 1   CPU: 2 / 1   4 / 1   waits")
    for name in cases:
        alone = found[name, 1]
        pairs = {n: list(zip(found[name, n], alone, strict=True)) for n in THREADS}
        clock = [statistics.median(r.clock / one.clock for r, one in pairs[n]) for n in (2, 4)]
        cpu = [statistics.median(r.cpu / one.cpu for r, one in pairs[n]) for n in (2, 4)]
        rate = statistics.median(one.clock for one in alone)
        waits = statistics.median(each.waits for each in found[name, 2])
        print(
            f"{name:26} {rate:10,.0f}{clock[0]:8.2f}{clock[1]:8.2f}"
            f"{cpu[0]:13.2f}{cpu[1]:8.2f}{waits:8.3f}"
        )


if __name__ == "__main__":
    main()
