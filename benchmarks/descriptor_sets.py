"""Which descriptors of molecules the kernel of counts and descriptors needs.

    python -m benchmarks.descriptor_sets [--data FOLDER] [--json results/descriptor_sets.json]

RMSE of out-of-fold predictions of five folds, with the best alpha on these folds, so that all rows
have the same optimistic bias: of two parts of 2,000 molecules of LIPO and of AqSolDB, and of the
training parts of twelve tasks of MoleculeACE. The kernel is the mean of the kernel of all counts of
the ensemble and of the kernel of a set of descriptors.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.molecules import load
from fdgnn import EncoderUnion, GraphBatch, KernelRidge, MoleculeDescriptors, PairCounts, WLCounts
from fdgnn.arrays import spread
from fdgnn.graphs.smiles import descriptor_names

TASKS = (
    "CHEMBL1862_Ki", "CHEMBL1871_Ki", "CHEMBL2034_Ki", "CHEMBL2047_EC50", "CHEMBL2147_Ki",
    "CHEMBL218_EC50", "CHEMBL228_Ki", "CHEMBL231_Ki", "CHEMBL238_Ki", "CHEMBL287_Ki",
    "CHEMBL4005_Ki", "CHEMBL4792_Ki",
)  # fmt: skip
PART = 2_000  # molecules
ALPHAS = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
COUNTS = EncoderUnion([
    ("wl", WLCounts(n_iterations=2)),
    ("element", WLCounts(n_iterations=4, vertices="element")),
    ("pharmacophore", WLCounts(n_iterations=3, vertices="pharmacophore")),
    ("pairs", PairCounts()),
])  # fmt: skip
FAST, ALL = (list(descriptor_names(which)) for which in ("fast", "all"))
OTHERS = [name for name in FAST if name.startswith("fr_") or name.endswith("PartialCharge")]
BASIC = [name for name in FAST if name not in OTHERS]
GROUPS = [name for name in OTHERS if name.startswith("fr_")]
SETS = {
    "none": [],
    "121: properties, MQN, surface areas": BASIC,
    "and functional groups": BASIC + GROUPS,
    "and partial charges (fast)": FAST,
    "and surface areas by E-state": FAST + [n for n in ALL if n.startswith("VSA_EState")],
    "121 and eigenvalues (BCUT2D)": BASIC + [n for n in ALL if n.startswith("BCUT2D")],
    "all": ALL,
}


def parts(folder: Path) -> Iterator[tuple[str, GraphBatch, Any]]:
    """Yield the name of a collection, and molecules with their targets."""
    for name in ("LIPO", "AQSOLDB"):
        data = load(folder / f"{name}.csv")
        order = np.random.default_rng(100).permutation(len(data.y))
        for rows in (order[:PART], order[PART : 2 * PART]):
            yield name, data.graphs[rows], data.y[rows].astype(float)
    for task in TASKS:
        data = load(folder / "MoleculeACE" / f"{task}.csv")
        yield "MoleculeACE", data.graphs[~data.test], data.y[~data.test].astype(float)


def errors(graphs: GraphBatch, y: Any) -> dict[str, float]:
    """Return the RMSE with each set of descriptors."""
    counts = COUNTS.fit_transform(graphs)
    columns: dict[str, Any] = {}
    for which, names in (("all", ALL), ("fast", FAST)):
        values = MoleculeDescriptors(which).fit_transform(graphs)
        columns |= dict(zip(names, values.T, strict=True))
    fold = np.empty(len(y), dtype=int)
    fold[np.random.default_rng(0).permutation(len(y))] = np.arange(len(y)) % 5
    Y, found = (y - y.mean())[:, None], {}
    for title, names in SETS.items():
        X, starts = counts, (0,)
        if names:
            own = np.stack([columns[name] for name in names], axis=1)
            X = sp.csr_array(sp.hstack([counts, sp.csr_array(own / spread(own) ** 0.5)]))
            starts = (0, counts.shape[1])
        path = KernelRidge().solve(X, Y, ALPHAS, fold[None], starts=starts)
        found[title] = float(((path.predictions[0] - Y) ** 2).mean(axis=(1, 2)).min() ** 0.5)
    return found


def main() -> None:
    """Compute all errors, and their means over the parts of a collection."""
    parser = argparse.ArgumentParser(description="Sets of descriptors of molecules.")
    home = Path(os.environ.get("FDGNN_DATA", ".")) / "chem"
    parser.add_argument("--data", type=Path, default=home)
    parser.add_argument("--json", type=Path, default=Path("results/descriptor_sets.json"))
    options = parser.parse_args()
    each: dict[str, list[dict[str, float]]] = {}
    for name, graphs, y in parts(options.data):
        each.setdefault(name, []).append(errors(graphs, y))
        print(name, json.dumps(each[name][-1]), flush=True)
    means = {
        name: {title: float(np.mean([row[title] for row in rows])) for title in SETS}
        for name, rows in each.items()
    }
    options.json.write_text(json.dumps(means, indent=1) + "\n")


if __name__ == "__main__":
    main()
