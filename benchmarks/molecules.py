"""``auto`` on molecules beside Morgan fingerprints, trained and tested on the same splits.

    python -m benchmarks.molecules [--data FOLDER] [--json FILE] [--only BACE ...]

Classes: Murcko scaffolds, 80/10/10, the rarest scaffolds last, so that the test part has none of
the training part; AUROC on the test part; beside logistic regression on Morgan counts. The middle
part is there for those who choose something on it. Neither side does, so both are trained once on
the first and the middle part, and once on the first part alone. Numbers: random 80/20, RMSE; beside
a support vector machine on Morgan bits, whose kernel width and penalty are tuned on a fifth of its
training part. FOLDER has NAME.csv with the columns smiles and target; by default it is ``chem``
under the data home (FDGNN_DATA).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVR

from fdgnn import AutoGraphClassifier, AutoGraphRegressor, GraphBatch, read_graphs

CLASSES = {"BACE": 82.0, "BBBP": 70.5, "HIV": 79.0}  # AUROC, at least
NUMBERS = ("LIPO", "AQSOLDB")


class Molecules(NamedTuple):
    """Graphs, targets and the SMILES they were read from."""

    graphs: GraphBatch
    y: Any
    smiles: list[str]


def load(path: Path) -> Molecules:
    """Read a table; rows that cannot be read are left out on all sides."""
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")
    table = read_graphs(path, target="target", atoms="typed")
    with path.open(encoding="utf-8") as file:
        written = [row["smiles"] for row in csv.DictReader(file)]
    smiles = [one for one in written if Chem.MolFromSmiles(one)]
    assert table.graphs is not None
    assert len(smiles) == len(table.graphs)
    return Molecules(table.graphs, np.asarray(table.y), smiles)


def scaffold_split(smiles: list[str], with_middle: bool = False) -> tuple[Any, Any]:
    """Train and test part: scaffolds by falling size, the test is the last tenth of molecules.

    The tenth before it is left out, or belongs to the training part.
    """
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    groups: dict[str, list[int]] = {}
    for i, one in enumerate(smiles):
        groups.setdefault(MurckoScaffoldSmiles(one), []).append(i)
    parts: dict[str, list[int]] = {"train": [], "middle": [], "test": []}
    seen = 0
    for members in sorted(groups.values(), key=lambda m: (len(m), m[0]), reverse=True):
        fits = len(parts["train"]) + len(members) <= 0.8 * len(smiles)
        before = len(parts["train"]) + len(parts["middle"])
        middle = before + len(members) <= 0.9 * len(smiles)
        parts["train" if fits else "middle" if middle else "test"] += members
        seen += len(members)
    assert seen == len(smiles)
    training = parts["train"] + (parts["middle"] if with_middle else [])
    return np.array(training), np.array(parts["test"])


def morgan(smiles: list[str], counts: bool) -> Any:
    """Morgan fingerprints of radius 2 in 2048 columns."""
    from rdkit.Chem import MolFromSmiles
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    made = GetMorganGenerator(radius=2, fpSize=2048)
    read = made.GetCountFingerprintAsNumPy if counts else made.GetFingerprintAsNumPy
    return np.array([read(MolFromSmiles(one)) for one in smiles], dtype=np.float64)


def classes(name: str, data: Molecules) -> list[dict[str, Any]]:
    """AUROC on the test scaffolds, trained on nine tenths of the molecules, and on eight."""
    y = (data.y != "CI").astype(int) if data.y.dtype.kind == "U" else data.y
    X = morgan(data.smiles, counts=True)
    found = []
    for with_middle in (True, False):
        train, test = scaffold_split(data.smiles, with_middle)
        start = time.process_time()
        model = AutoGraphClassifier(random_state=0).fit(data.graphs[train], y[train])
        seconds = time.process_time() - start
        ours = roc_auc_score(y[test], model.decision_function(data.graphs[test]))
        theirs = LogisticRegression(max_iter=2000).fit(X[train], y[train])
        found.append({
            "dataset": name, "at least": CLASSES[name],
            "measure": f"AUROC, scaffold split, trained on {90 if with_middle else 80} %",
            "auto": 100 * ours, "CPU seconds": seconds,
            "members": [fitted.name for fitted in model.estimators_],
            "Morgan counts, logistic regression":
                100 * roc_auc_score(y[test], theirs.decision_function(X[test])),
        })  # fmt: skip
    return found


def numbers(name: str, data: Molecules) -> list[dict[str, Any]]:
    """RMSE on a random fifth."""
    y = data.y.astype(np.float64)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[len(y) // 5 :], order[: len(y) // 5]
    start = time.process_time()
    model = AutoGraphRegressor(random_state=0).fit(data.graphs[train], y[train])
    seconds = time.process_time() - start
    theirs, chosen = tuned_svr(morgan(data.smiles, counts=False), y, train, test)
    return [{
        "dataset": name, "measure": "RMSE, random split",
        "auto": _rmse(model.predict(data.graphs[test]), y[test]), "CPU seconds": seconds,
        "members": [fitted.name for fitted in model.estimators_],
        "Morgan bits, SVM": theirs, "SVM": chosen,
    }]  # fmt: skip


def tuned_svr(X: Any, y: Any, train: Any, test: Any) -> tuple[float, dict[str, float]]:
    """RMSE of a support vector machine with a Gaussian kernel, tuned inside the training part."""
    order = np.random.default_rng(0).permutation(train)  # a table may be sorted
    held_out, rest = order[: len(order) // 5], order[len(order) // 5 :]
    unit = _distances(X[order], X[order]).mean()

    def error(gamma: float, C: float, fitted: Any, tested: Any) -> float:
        def kernel(rows: Any) -> Any:
            return np.exp(_distances(X[rows], X[fitted]) * (-gamma / unit))

        machine = SVR(kernel="precomputed", C=C, epsilon=0.1, cache_size=1000)
        machine.fit(kernel(fitted), y[fitted])
        return _rmse(machine.predict(kernel(tested)), y[tested])

    grid = list(itertools.product((0.3, 1.0, 3.0), (1.0, 5.0, 25.0)))
    gamma, C = min(grid, key=lambda point: error(*point, rest, held_out))
    return error(gamma, C, train, test), {"gamma": gamma, "C": C}


def _distances(A: Any, B: Any) -> Any:
    """Squared distances of the rows of `A` to those of `B`."""
    return np.maximum((A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T, 0.0)


def _rmse(predicted: Any, y: Any) -> float:
    return float(np.sqrt(((predicted - y) ** 2).mean()))


def main() -> None:
    """Print one line for each dataset and training part."""
    parser = argparse.ArgumentParser(description="auto on molecules beside Morgan fingerprints.")
    home = Path(os.environ.get("FDGNN_DATA", ".")) / "chem"
    parser.add_argument("--data", type=Path, default=home)
    parser.add_argument("--json", type=Path, help="write all figures here, too, beside others")
    parser.add_argument("--only", nargs="*", default=[*CLASSES, *NUMBERS])
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    known = options.json and options.json.exists() and json.loads(options.json.read_text())
    others = [row for row in known or [] if row["dataset"] not in options.only]
    for name in options.only:
        data = load(options.data / f"{name}.csv")
        rows = classes(name, data) if name in CLASSES else numbers(name, data)
        found += rows
        print(*map(json.dumps, rows), sep="\n", flush=True)
        if options.json:
            options.json.write_text(json.dumps([*found, *others], indent=1) + "\n")


if __name__ == "__main__":
    main()
