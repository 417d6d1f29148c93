"""Effect of graph-level features on accuracy, and of their scale relative to the graph's features.

    python -m benchmarks.descriptors [--data FOLDER] [--json FILE] [--only LIPO ...] [--seeds N]
                                     [--graphs N] [--shares 0.1 1 ...]

RDKit computes molecular weight, polar surface area, logP, hydrogen bond donors and acceptors,
rotatable bonds and rings. One value in ten is removed, so that missing values are included. "noise"
has the same number of random columns, which should do no harm. "own" is a random number that is
also added to the target (in units of its deviation), so it cannot be predicted from the graph.
Regression: R2 on a random fifth; classification: ROC AUC. All on the same splits, mean over seeds.
Shares are scales of descriptors relative to the features of graphs, by mean squared distances
(`fdgnn.encoders.descriptors.SHARE`). FOLDER has NAME.csv with the columns smiles and target; the
default is ``chem`` in the data home (FDGNN_DATA).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks.molecules import load
from fdgnn import AutoGraphClassifier, AutoGraphRegressor, GraphClassifier, GraphRegressor
from fdgnn.encoders import descriptors as coded
from fdgnn.graphs import GraphBatch

CLASSES, NUMBERS = ("BACE", "BBBP"), ("LIPO", "AQSOLDB")


def computed(smiles: list[str]) -> dict[str, Any]:
    """Seven columns of RDKit, with a tenth of the values missing."""
    from rdkit import Chem
    from rdkit.Chem import Crippen, Descriptors, Lipinski, rdMolDescriptors

    measures = {
        "weight": Descriptors.MolWt,
        "tpsa": rdMolDescriptors.CalcTPSA,
        "logp": Crippen.MolLogP,
        "donors": Lipinski.NumHDonors,
        "acceptors": Lipinski.NumHAcceptors,
        "rotatable": Lipinski.NumRotatableBonds,
        "rings": rdMolDescriptors.CalcNumRings,
    }
    molecules = [Chem.MolFromSmiles(one) for one in smiles]
    rng = np.random.default_rng(0)
    return {
        name: np.where(rng.random(len(smiles)) < 0.1, np.nan, [measure(m) for m in molecules])
        for name, measure in measures.items()
    }


def score(graphs: GraphBatch, y: Any, classify: bool, encoder: str, seed: int) -> float:
    """Fit on four fifths, and score on the rest."""
    order = np.random.default_rng(seed).permutation(len(graphs))
    test, train = np.split(order, [len(order) // 5])
    if encoder == "auto":
        model: Any = AutoGraphClassifier() if classify else AutoGraphRegressor()
    else:
        model = GraphClassifier(encoder) if classify else GraphRegressor(encoder)
    model.set_params(random_state=seed).fit(graphs[train], y[train])
    if classify:
        return float(roc_auc_score(y[test], model.decision_function(graphs[test])))
    return float(r2_score(y[test], model.predict(graphs[test])))


def compare(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row for each model and share."""
    data = load(options.data / f"{name}.csv")
    some = np.random.default_rng(0).permutation(len(data.y))[: options.graphs]
    graphs, y = data.graphs[some], data.y[some]
    y = y if name in CLASSES else y.astype(np.float64)
    table = computed([data.smiles[i] for i in some])
    rng = np.random.default_rng(1)
    noise = {f"noise {i}": rng.normal(size=len(y)) for i in range(7)}
    own = {"own": rng.normal(size=len(y))}
    given = [("none", y, None), ("computed", y, table), ("noise", y, noise)]
    if name in NUMBERS:
        more = y / y.std() + own["own"]
        given += [("none, own needed", more, None), ("own", more, own)]
        given += [("own and noise", more, own | noise)]
    rows = []
    for encoder in options.encoders:
        for (what, truth, columns), share in itertools.product(given, options.shares):
            if columns is None and share != options.shares[0]:
                continue
            coded.SHARE = share
            described = graphs if columns is None else graphs.with_descriptors(columns)
            start = time.process_time()
            found = [
                score(described, truth, name in CLASSES, encoder, seed)
                for seed in range(options.seeds)
            ]
            rows.append({
                "dataset": name, "graphs": len(graphs), "encoder": encoder, "descriptors": what,
                "share": None if columns is None else share,
                "measure": "ROC AUC" if name in CLASSES else "R2",
                "mean": round(float(np.mean(found)), 4),
                "deviation": round(float(np.std(found)), 4),
                "CPU seconds": round(time.process_time() - start, 1),
            })  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Print one line for each row."""
    parser = argparse.ArgumentParser(description="Descriptors beside graphs.")
    home = Path(os.environ.get("FDGNN_DATA", ".")) / "chem"
    parser.add_argument("--data", type=Path, default=home)
    parser.add_argument("--json", type=Path, help="write all figures here, too")
    parser.add_argument("--only", nargs="*", default=[*NUMBERS, *CLASSES])
    parser.add_argument("--encoders", nargs="*", default=["auto"])
    parser.add_argument("--shares", nargs="*", type=float, default=[0.03, 0.1, 0.3, 1.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--graphs", type=int, default=1000, help="of each set, at random")
    options = parser.parse_args()
    rows = []
    for name in options.only:
        rows += compare(name, options)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
