"""Training times of the ensemble and of the paper's model, with and without hyperparameter search.

    FDGNN_DATA=... OPENBLAS_NUM_THREADS=1 python -m benchmarks.training_times [NAME ...]

For each dataset, CPU seconds of one thread for one model that is trained on all graphs:

- auto: `AutoGraphClassifier`, which selects base models and regularization strengths in its fit;
- paper: `FDGNNClassifier` with given hyperparameters, and the number of units of the paper;
- search: the same model after a search over 20 configurations with 3 random initializations each,
  as by `--protocol quick`, with ten folds.

Times are added to results/beyond/training_times.json; datasets that it has are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fdgnn import AutoGraphClassifier, FDGNNClassifier, FDGNNSearchCV, load_tu
from fdgnn.evaluation import paper

RESULTS = Path(__file__).parent.parent / "results" / "beyond" / "training_times.json"
REPETITIONS = 3
LONG = 10.0  # seconds from which one run is enough


def seconds(fit: Callable[[], Any]) -> float:
    """Return the CPU seconds of a fit, the best of several if it is short."""
    found: list[float] = []
    while len(found) < REPETITIONS and max(found, default=0.0) < LONG:
        start = time.process_time()
        fit()
        found.append(time.process_time() - start)
    return min(found)


def times(name: str) -> dict[str, float]:
    """Return the training times on one dataset, in seconds."""
    graphs, y, *_ = load_tu(name)
    model = FDGNNClassifier(n_units=paper.DATASETS[name].n_units, n_jobs=1, random_state=0)
    several = FDGNNClassifier(n_units=model.n_units, n_estimators=3)
    search = FDGNNSearchCV(several, n_configurations=20, cv=10, n_jobs=1, random_state=0)
    auto = AutoGraphClassifier(n_jobs=1, random_state=0)
    return {
        what: seconds(lambda one=one: one.fit(graphs[:], y))
        for what, one in (("auto", auto), ("paper", model), ("search", search))
    }


def main() -> None:
    """Measure what is missing, and print all times."""
    parser = argparse.ArgumentParser(description="Training times with and without a search.")
    parser.add_argument("names", nargs="*", default=list(paper.DATASETS))
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in parser.parse_args().names:
        if name not in found:
            found[name] = times(name)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(name, *(f"{what} {cost:.3g} s" for what, cost in found[name].items()), sep=", ")


if __name__ == "__main__":
    main()
