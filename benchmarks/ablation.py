"""What each part adds: of WL features to one base model, and of base models to the ensemble.

    python -m benchmarks.ablation [--json results/beyond/ablation.json] [--datasets ...]
    python -m benchmarks.ablation --ensemble [--json results/beyond/without.json]

Nested stratified 10 x 10 cross-validation, alpha by the inner folds; three seeds of folds. Either
one base model at a time, with one part changed; or, with five inner folds as in `fit`, the ensemble
without one of its base models. What is in the JSON file is not run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fdgnn import (
    AutoGraphClassifier,
    Encoder,
    GraphReservoir,
    PairCounts,
    WLCounts,
    load_tu,
    metrics,
)
from fdgnn.encoders import EncoderUnion, GraphKind
from fdgnn.ensemble import combine
from fdgnn.fitting import BaseModel, FitTask, fit_depths
from fdgnn.folds import nested_folds
from fdgnn.linear import KernelRidge, Ridge
from fdgnn.seeds import child_seed, seed_sequence
from fdgnn.targets import read_targets

Readout: TypeAlias = Ridge | KernelRidge
LINEAR, RBF = Ridge(), KernelRidge()
LABELED = ("MUTAG", "PTC_MR", "COX2", "PROTEINS", "NCI1")
PLAIN = ("IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY")
SEEDS = {"NCI1": (0,), "REDDIT-BINARY": (0,)}  # three for the others


def labeled() -> dict[str, tuple[Encoder, Readout]]:
    """Variants for graphs with vertex labels; the one to compare with has 3 iterations, RBF."""
    iterations = {f"{r} iterations": (WLCounts(n_iterations=r), RBF) for r in (0, 1, 2, 3, 4, 6)}
    degrees = WLCounts(n_iterations=3, vertices="degree", histograms=False)
    return iterations | {
        "linear readout": (WLCounts(n_iterations=3), LINEAR),
        "linear, plain counts": (WLCounts(n_iterations=3, counts="sum"), LINEAR),
        "linear, presence": (WLCounts(n_iterations=3, counts="presence"), LINEAR),
        "plain counts": (WLCounts(n_iterations=3, counts="sum"), RBF),
        "RBF, half as wide": (WLCounts(n_iterations=3), KernelRidge(gamma=4.0)),
        "RBF, twice as wide": (WLCounts(n_iterations=3), KernelRidge(gamma=0.25)),
        "without edge labels": (WLCounts(n_iterations=3, edge_labels=False), RBF),
        "degrees instead of labels": (degrees, RBF),
        "with histograms": (WLCounts(n_iterations=3, histograms=True), RBF),
        "4096 features": (WLCounts(n_iterations=3, n_features=2**12), RBF),
        "pairs": (PairCounts(), RBF),
        "WL, 2 iterations, and pairs": (
            EncoderUnion([("wl", WLCounts(n_iterations=2)), ("pairs", PairCounts())]),
            RBF,
        ),
        "reservoir, 300 units": (GraphReservoir(n_units=300), LINEAR),
        "reservoir and WL": (_union(3), RBF),
        "reservoir and WL, linear": (_union(3), LINEAR),
    }


def plain() -> dict[str, tuple[Encoder, Readout]]:
    """Variants for graphs without labels; the one to compare with counts structure, RBF."""
    found: dict[str, tuple[Encoder, Readout]] = {}
    for vertices, r in itertools.product(("degree", "log degree"), (0, 1, 2)):
        encoder = WLCounts(n_iterations=r, vertices=vertices, histograms=False)
        found |= {f"{vertices}, {r} iterations": (encoder, RBF)}
        found |= {f"{vertices}, {r} iterations, linear": (encoder, LINEAR)}
    return found | {
        "structure": (WLCounts(n_iterations=0), RBF),
        "structure, linear": (WLCounts(n_iterations=0), LINEAR),
        "structure, linear, plain counts": (WLCounts(n_iterations=0, counts="sum"), LINEAR),
        "structure and 1 iteration": (WLCounts(n_iterations=1), RBF),
        "reservoir, 300 units": (GraphReservoir(n_units=300), LINEAR),
        "reservoir and structure": (_union(0), RBF),
    }


def _union(n_iterations: int) -> Encoder:
    wl = WLCounts(n_iterations=n_iterations)
    return EncoderUnion([("reservoir", GraphReservoir(n_units=300)), ("wl", wl)])


def accuracy(graphs: Any, y: Any, encoder: Encoder, readout: Readout, seed: int) -> float:
    """Mean over the outer folds, %."""
    folds = nested_folds(y, 10, 10, seed)
    task = FitTask(read_targets(y, graphs, classify=True), folds, metrics.accuracy)
    base = BaseModel("", encoder, readout, (child_seed(seed_sequence(seed), 0),))
    fits = fit_depths(base, graphs, task, (None,), train=False)
    return 100 * float(combine(fits, task).scores.test.mean())


def without_each(graphs: Any, y: Any, seed: int) -> dict[str, float]:
    """Accuracy of the ensemble and of the ensemble without each of its base models, %."""
    model = AutoGraphClassifier(random_state=seed)
    bases = model._base_models(GraphKind.of(graphs), len(y), seed_sequence(seed))
    targets, folds = read_targets(y, graphs, classify=True), nested_folds(y, 10, 5, seed)
    task = FitTask(targets, folds, metrics.accuracy, by_squares=True)
    fits = [fit_depths(base, graphs, task, (None,), train=False)[0] for base in bases]
    kept = {"all base models": fits} | {
        f"without {fit.name}": [other for other in fits if other is not fit] for fit in fits
    }
    return {
        name: 100 * float(combine(some, task).scores.test.mean()) for name, some in kept.items()
    }


def run_ensembles(names: Sequence[str], path: Path) -> None:
    """Run the ensembles that are missing."""
    done = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        if name not in done:
            graphs, y = load_tu(name)
            each = [without_each(graphs, y, seed) for seed in SEEDS.get(name, (0, 1, 2))]
            done[name] = {what: [found[what] for found in each] for what in each[0]}
            path.write_text(json.dumps(done, indent=1) + "\n")
        for what, values in done[name].items():
            print(f"{name:15} {what:60} {np.mean(values):6.2f}", flush=True)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description="What each part of WL features adds.")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--datasets", nargs="*", default=[*LABELED, *PLAIN])
    parser.add_argument("--ensemble", action="store_true")
    options = parser.parse_args()
    file = "without.json" if options.ensemble else "ablation.json"
    options.json = options.json or Path("results/beyond") / file
    if options.ensemble:
        run_ensembles(options.datasets, options.json)
        return
    done = json.loads(options.json.read_text()) if options.json.exists() else {}
    for name in options.datasets:
        graphs, y = load_tu(name, vertex="either")
        variants = plain() if GraphKind.of(graphs).vertices == "nothing" else labeled()
        rows = done.setdefault(name, {})
        for what, (encoder, readout) in variants.items():
            seeds = SEEDS.get(name, (0, 1, 2))
            if len(rows.get(what, ())) < len(seeds):
                rows[what] = [accuracy(graphs, y, encoder, readout, seed) for seed in seeds]
                options.json.write_text(json.dumps(done, indent=1) + "\n")
            print(f"{name:15} {what:35} {np.mean(rows[what]):6.2f}", flush=True)


if __name__ == "__main__":
    main()
