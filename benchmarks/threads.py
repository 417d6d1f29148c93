"""Predictions of single graphs per second by 1, 2 and 4 threads of one process.

    python -m benchmarks.threads [--seconds 0.5] [--repeats 5]

Python runs one thread at a time, so more threads cannot be faster. They are slower where a short
call releases the GIL and waits to get it back. The control is scikit-learn's RidgeClassifier on one
row. Graphs come from a list of `Graph` (conversion included), from a batch by index (conversion
included), and as batches of one graph. The table has medians over the repeats, in which all runs
take turns: predictions per second by one thread, ratios of the rates of 2 and 4 threads to that,
and how often a thread waited for each prediction, with 2 threads.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import threading
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import RidgeClassifier

from fdgnn import AutoGraphClassifier, FDGNNClassifier, GraphBatch, GraphClassifier
from fdgnn.datasets import make_random_graphs
from fdgnn.exceptions import ConvergenceWarning

THREADS = (1, 2, 4)


def predictions() -> dict[str, Callable[[int], object]]:
    """Give the function of a number that predicts one graph, for each row of the table."""
    rows = np.random.default_rng(0).normal(size=(100, 50))
    control = RidgeClassifier().fit(rows, rows[:, 0] > 0)
    graphs, y = make_random_graphs(100, random_state=0), np.arange(100) % 2
    listed = list(graphs)
    single = [GraphBatch.from_graphs([graph]) for graph in listed]
    found: dict[str, Callable[[int], object]] = {
        "RidgeClassifier (control)": lambda i: control.predict(rows[i % 100, None])
    }
    models = {
        "reservoir": FDGNNClassifier(random_state=0),
        "wl": GraphClassifier("wl", random_state=0),
        "auto": AutoGraphClassifier(random_state=0),
    }
    for name, model in models.items():
        model.fit(graphs, y)
        found[f"{name}, list"] = lambda i, m=model: m.predict([listed[i % 100]])
        if name == "reservoir":
            found["reservoir, index"] = lambda i, m=model: m.predict([graphs[i % 100]])
            found["reservoir, batch"] = lambda i, m=model: m.predict(single[i % 100])
    return found


def run(predict: Callable[[int], object], n_threads: int, seconds: float) -> tuple[float, float]:
    """Return predictions per second, and how often a thread waited for each."""
    end, counts = threading.Event(), [0] * n_threads

    def work(number: int) -> None:
        while not end.is_set():
            predict(counts[number])
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_threads)]
    waits, start = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw, time.perf_counter()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    end.set()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - start
    waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - waits
    return sum(counts) / taken, waits / sum(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    cases = predictions()
    for predict in cases.values():
        predict(0)
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(options.repeats):
        for name, predict in cases.items():
            for n_threads in THREADS:
                one = run(predict, n_threads, options.seconds)
                found.setdefault((name, n_threads), []).append(one)
    print(f"{'':26} per second   2 / 1   4 / 1   waits")
    for name in cases:
        alone = [rate for rate, _ in found[name, 1]]
        ratios = [
            statistics.median(
                rate / one for (rate, _), one in zip(found[name, n], alone, strict=True)
            )
            for n in THREADS[1:]
        ]
        waits = statistics.median(waited for _, waited in found[name, 2])
        print(
            f"{name:26} {statistics.median(alone):10,.0f}"
            + "".join(f"{ratio:8.2f}" for ratio in ratios)
            + f"{waits:8.3f}"
        )


if __name__ == "__main__":
    main()
