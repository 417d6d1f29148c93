"""``auto`` and simple models on molecules, trained and tested on the same molecules.

    python -m benchmarks.molecules [--data FOLDER] [--json FILE] [--only BACE ...]

- BACE, BBBP, HIV: Murcko scaffolds by falling size; the last tenth is the test part, and the model
  is trained on the other nine tenths; ROC AUC. The target of HIV is CI (inactive) or CM and CA.
- LIPO, AQSOLDB: a random fifth is the test part, for three seeds; RMSE.
- MoleculeACE: thirty tasks of activity cliffs with published splits; RMSE, and the mean.

All models have their default parameters, and nothing is selected on test parts. The simple models
are gradient boosting on RDKit's descriptors (all of them; for HIV those that RDKit implements in
C++), and logistic or ridge regression on Morgan counts. FOLDER has NAME.csv with the columns smiles
and target; the default is ``chem`` in the data home (FDGNN_DATA). Results that are in the JSON file
already are not computed again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

from fdgnn import AutoGraphClassifier, AutoGraphRegressor, GraphBatch
from fdgnn.evaluation.molecules import morgan_counts, murcko_scaffolds
from fdgnn.graphs.converters import as_batch

CLASSES = ("BACE", "BBBP", "HIV")
NUMBERS = ("LIPO", "AQSOLDB")
SEEDS = (0, 1, 2)
ALL_DESCRIPTORS = 20_000  # molecules up to which all descriptors are computed


class Molecules(NamedTuple):
    """Graphs, targets, and the part that a published split tests, if there is one."""

    graphs: GraphBatch
    smiles: list[str]
    y: Any
    test: Any = None


def load(path: Path) -> Molecules:
    """Read a table; rows that RDKit cannot read are left out for all models."""
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if Chem.MolFromSmiles(row["smiles"])]
    smiles = [row["smiles"] for row in rows]
    y = np.array([row.get("target", row.get("y")) for row in rows])
    test = np.array([row["split"] == "test" for row in rows]) if "split" in rows[0] else None
    return Molecules(as_batch(smiles), smiles, y, test)


def scaffold_test(smiles: list[str]) -> Any:
    """Return which molecules have the rarest scaffolds, a tenth of all."""
    groups: dict[str, list[int]] = {}
    for i, scaffold in enumerate(murcko_scaffolds(smiles)):
        groups.setdefault(scaffold, []).append(i)
    n, n_train, n_middle = len(smiles), 0, 0
    test = np.zeros(n, dtype=bool)
    for members in sorted(groups.values(), key=lambda m: (len(m), m[0]), reverse=True):
        if n_train + len(members) <= 0.8 * n:
            n_train += len(members)
        elif n_train + n_middle + len(members) <= 0.9 * n:
            n_middle += len(members)
        else:
            test[members] = True
    return test


def classes(data: Molecules) -> dict[str, Any]:
    """Return the ROC AUC of all models on the rarest scaffolds."""
    names = np.unique(data.y)
    y = (data.y != "CI").astype(int) if "CI" in names else (data.y == names[1]).astype(int)
    test = scaffold_test(data.smiles)
    start = time.process_time()
    model = AutoGraphClassifier(random_state=0).fit(data.graphs[~test], y[~test])
    seconds = time.process_time() - start
    found = _row("ROC AUC, scaffold split, trained on nine tenths", model, seconds, test)
    found["auto"] = 100 * roc_auc_score(y[test], model.decision_function(data.graphs[test]))
    X, D = morgan_counts(data.smiles), descriptors(data)
    boosted = HistGradientBoostingClassifier(random_state=0).fit(D[~test], y[~test])
    linear = LogisticRegression(max_iter=1000).fit(X[~test], y[~test])
    for name, scores in (
        ("boosting on descriptors", boosted.predict_proba(D[test])[:, 1]),
        ("Morgan counts, linear", linear.decision_function(X[test])),
    ):
        found[name] = 100 * roc_auc_score(y[test], scores)
    return found


def numbers(data: Molecules, test: Any, measure: str, *, simple: bool) -> dict[str, Any]:
    """Return the RMSE of all models on the test part."""
    y = data.y.astype(np.float64)
    start = time.process_time()
    model = AutoGraphRegressor(random_state=0).fit(data.graphs[~test], y[~test])
    seconds = time.process_time() - start
    found = _row(measure, model, seconds, test)
    found["auto"] = _rmse(model.predict(data.graphs[test]), y[test])
    if simple:
        X, D = morgan_counts(data.smiles), descriptors(data)
        boosted = HistGradientBoostingRegressor(random_state=0).fit(D[~test], y[~test])
        found["boosting on descriptors"] = _rmse(boosted.predict(D[test]), y[test])
        linear = Ridge(alpha=10.0).fit(X[~test], y[~test])
        found["Morgan counts, linear"] = _rmse(linear.predict(X[test]), y[test])
    return found


def random_test(n: int, seed: int) -> Any:
    """Return a random fifth."""
    test = np.zeros(n, dtype=bool)
    test[np.random.default_rng(seed).permutation(n)[: n // 5]] = True
    return test


def descriptors(data: Molecules) -> Any:
    """Return RDKit's descriptors, which are kept with the graphs."""
    assert data.graphs.smiles is not None
    few = len(data.smiles) <= ALL_DESCRIPTORS
    return data.graphs.smiles.descriptors("all" if few else "fast")


def _row(measure: str, model: Any, seconds: float, test: Any) -> dict[str, Any]:
    return {
        "measure": measure, "n_train": int((~test).sum()), "n_test": int(test.sum()),
        "CPU seconds": seconds, "base models": [fitted.name for fitted in model.estimators_],
    }  # fmt: skip


def _rmse(predicted: Any, y: Any) -> float:
    return float(np.sqrt(((predicted - y) ** 2).mean()))


def main() -> None:
    """Run what is missing, one line for each dataset and seed."""
    parser = argparse.ArgumentParser(description="auto on molecules beside simple models.")
    home = Path(os.environ.get("FDGNN_DATA", ".")) / "chem"
    parser.add_argument("--data", type=Path, default=home)
    parser.add_argument("--json", type=Path, default=Path("results/beyond/molecules.json"))
    parser.add_argument("--only", nargs="*", default=["MoleculeACE", *CLASSES, *NUMBERS])
    options = parser.parse_args()
    done = json.loads(options.json.read_text()) if options.json.exists() else {}

    def keep(key: str, row: dict[str, Any]) -> None:
        done[key] = row
        options.json.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n")
        print(key, json.dumps(row), flush=True)

    for name in options.only:
        tasks = sorted((options.data / name).glob("*.csv")) if name == "MoleculeACE" else []
        for path in tasks:
            key = f"MoleculeACE/{path.stem}"
            if key not in done:
                data = load(path)
                keep(key, numbers(data, data.test, "RMSE, published split", simple=False))
        if tasks:
            each = [done[f"MoleculeACE/{path.stem}"]["auto"] for path in tasks]
            keep("MoleculeACE", {"auto": float(np.mean(each)), "measure": "mean RMSE"})
        elif name in CLASSES and name not in done:
            keep(name, classes(load(options.data / f"{name}.csv")))
        elif name in NUMBERS and (left := [s for s in SEEDS if f"{name}-{s}" not in done]):
            data = load(options.data / f"{name}.csv")
            for seed in left:
                test, measure = random_test(len(data.y), seed), "RMSE, random fifth"
                keep(f"{name}-{seed}", numbers(data, test, measure, simple=True))


if __name__ == "__main__":
    main()
