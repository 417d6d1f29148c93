"""Training times of the ensemble and of the paper's model, with and without hyperparameter search.

    FDGNN_DATA=... OPENBLAS_NUM_THREADS=1 python -m benchmarks.training_times [NAME ...]

For each dataset, CPU seconds of one thread for one model that is trained on all graphs:

- auto: `AutoGraphClassifier`, which selects base models and regularization strengths in its fit;
- paper: `FDGNNClassifier` with given hyperparameters, and the number of units of the paper;
- search: the same model after a search over 20 configurations with 3 random initializations each,
  as by `--protocol quick`, with ten folds.

Each time is added to results/beyond/training_times.json, and not measured again if it is there.
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


def models(name: str) -> dict[str, Any]:
    """Return the models that are trained on a dataset."""
    n_units = paper.DATASETS[name].n_units
    several = FDGNNClassifier(n_units=n_units, n_estimators=3)
    return {
        "auto": AutoGraphClassifier(n_jobs=1, random_state=0),
        "paper": FDGNNClassifier(n_units=n_units, n_jobs=1, random_state=0),
        "search": FDGNNSearchCV(several, n_configurations=20, cv=10, n_jobs=1, random_state=0),
    }


def main() -> None:
    """Measure what is missing, and print all times."""
    parser = argparse.ArgumentParser(description="Training times with and without a search.")
    parser.add_argument("names", nargs="*", default=list(paper.DATASETS))
    parser.add_argument("--only", nargs="*", default=["auto", "paper", "search"])
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in options.names:
        graphs, y, *_ = load_tu(name)
        own = found.setdefault(name, {})
        for what, model in models(name).items():
            if what in options.only and what not in own:
                own[what] = seconds(lambda model=model, graphs=graphs, y=y: model.fit(graphs[:], y))
                RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(name, *(f"{what} {cost:.3g} s" for what, cost in own.items()), sep=", ")


if __name__ == "__main__":
    main()
