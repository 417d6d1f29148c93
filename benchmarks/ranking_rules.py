"""Rules for averaging base models if the metric is ROC AUC.

    python -m benchmarks.ranking_rules [BACE BBBP HIV] [--folds 5]

Molecules of ``chem`` in the data home (FDGNN_DATA), without the scaffolds that
``benchmarks.molecules`` tests on. Each of five folds of whole scaffolds is a test part in turn. The
base models of ``auto`` are trained on the rest; a rule uses their out-of-fold predictions there,
and is scored on the test part. ``results/ranking_rules.json`` has the mean ROC AUC in %, and
the base models that each rule selected.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.molecules import CLASSES, load, scaffold_split
from fdgnn import AutoGraphClassifier
from fdgnn.encoders import GraphKind
from fdgnn.ensemble import rejected_by_rule
from fdgnn.fitting import FitTask, fit_depths
from fdgnn.folds import choice_folds
from fdgnn.metrics import roc_auc
from fdgnn.seeds import seed_sequence
from fdgnn.targets import read_targets

RESULT = Path(__file__).parent.parent / "results" / "ranking_rules.json"


def scaffold_folds(smiles: list[str], n_folds: int) -> Any:
    """Whole scaffolds, drawn at random, in folds of nearly the same size."""
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    names, number = np.unique([MurckoScaffoldSmiles(one) for one in smiles], return_inverse=True)
    sizes, filled = np.bincount(number), np.zeros(n_folds)
    fold = np.empty(len(names), dtype=np.int64)
    for scaffold in np.random.default_rng(0).permutation(len(names)):
        fold[scaffold] = np.argmin(filled)
        filled[fold[scaffold]] += sizes[scaffold]
    return fold[number]


def outputs_of_base_models(graphs: Any, y: Any, new: Any) -> tuple[Any, Any, list[str], Any]:
    """Out-of-fold and new outputs of each base model, their names, and the coded targets."""
    seed, targets = seed_sequence(0), read_targets(y, graphs, classify=True)
    task = FitTask(targets, choice_folds(targets, graphs, seed)[None], roc_auc)
    held_out, outputs, names = [], [], []
    for base in AutoGraphClassifier()._base_models(GraphKind.of(graphs), len(graphs), seed):
        (fit,) = fit_depths(base, graphs, task)
        (model,) = fit.fitted
        held_out.append(fit.choice.predictions[-1])
        outputs.append(model.outputs(model.encoder.encode(new), new))
        names.append(base.name)
    return np.array(held_out), np.array(outputs), names, targets.coded


def rules(held: Any, targets: Any) -> dict[str, Any]:
    """Which base models each rule takes."""
    area = np.array([roc_auc((targets[:, 0] > 0).astype(int), one) for one in held])
    return {
        "the best by ROC AUC": area == area.max(),
        "all": np.ones(len(held), dtype=bool),
        "all but the clearly worse by squared error": ~rejected_by_rule(held, targets, True),
        "all but the clearly worse by ROC AUC": ~rejected_by_rule(
            held, targets, True, ranking=True
        ),
    }


def measured(name: str, n_folds: int, home: Path) -> Iterator[dict[str, Any]]:
    """ROC AUC in % of each rule and base model on each fold in turn, and what each rule took."""
    data = load(home / f"{name}.csv")
    y = (data.y != "CI").astype(int) if data.y.dtype.kind == "U" else data.y
    known, _ = scaffold_split(data.smiles, with_middle=True)
    graphs, y = data.graphs[known], y[known]
    fold = scaffold_folds([data.smiles[i] for i in known], n_folds)
    for f in range(n_folds):
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        held, new, names, targets = outputs_of_base_models(graphs[train], y[train], graphs[test])
        taken = rules(held, targets)
        outputs = {rule: new[kept].mean(axis=0) for rule, kept in taken.items()}
        outputs |= dict(zip(names, new, strict=True))
        yield {
            "roc_auc": {
                who: 100 * float(roc_auc_score(y[test], own[:, 0])) for who, own in outputs.items()
            },
            "taken": {
                rule: [n for n, k in zip(names, kept, strict=True) if k]
                for rule, kept in taken.items()
            },
        }


def main() -> None:
    """Measure, print and write after each fold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(CLASSES))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FDGNN_DATA", ".")))
    asked = parser.parse_args()
    found = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name in asked.names:
        folds: list[dict[str, Any]] = []
        for each in measured(name, asked.folds, asked.data / "chem"):
            folds.append(each)
            mean = {
                who: float(np.mean([one["roc_auc"][who] for one in folds]))
                for who in each["roc_auc"]
            }
            print(name, len(folds), mean, flush=True)
            found[name] = {"mean": mean, "folds": folds}
            RESULT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
