"""Time of one prediction with a warm model, relative to RDKit's parsing.

``python -m benchmarks.one_molecule [FILE.csv ...]`` fits an `AutoGraphClassifier` to each file of
molecules (columns ``smiles`` and ``target``; by default BACE and LIPO of the data home), and then
predicts CCO and some molecules of the file, one after the other, like a service. Printed are
milliseconds: a ``predict([smiles])``, RDKit's ``MolFromSmiles`` alone, and the difference.
Each molecule is timed ten times and its fastest time is used, to reduce the effect of other load.
Predictions one by one must equal those of the file at once.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fdgnn import AutoGraphClassifier, AutoGraphRegressor, read_graphs
from fdgnn.exceptions import ConvergenceWarning, UnknownLabelWarning
from fdgnn.tasks import infer_task

N_MOLECULES, N_TIMES = 100, 10


def fastest(action: Callable[[], object]) -> float:
    times = []
    for _ in range(N_TIMES):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def measure(path: Path) -> None:
    from rdkit import Chem

    warnings.simplefilter("ignore", ConvergenceWarning)
    table = read_graphs(path, target="target", atoms="typed")
    kind = AutoGraphClassifier if infer_task(table.y) == "classification" else AutoGraphRegressor
    model = kind(random_state=0).fit(table.graphs, table.y)
    smiles = list(table.smiles or ())[:N_MOLECULES]
    warnings.simplefilter("ignore", UnknownLabelWarning)
    at_once = model.predict(smiles)
    one_by_one = np.concatenate([model.predict([one]) for one in smiles])
    same = (
        np.allclose(at_once, one_by_one, atol=1e-6)
        if kind is AutoGraphRegressor
        else (at_once == one_by_one).all()
    )
    assert same, "predictions depend on what else is predicted"
    tried = ["CCO", *smiles]
    whole = np.array([fastest(lambda one=one: model.predict([one])) for one in tried])
    parsing = np.array([fastest(lambda one=one: Chem.MolFromSmiles(one)) for one in tried])
    members = ", ".join(fitted.name for fitted in model.estimators_)
    print(f"{path.stem}: {len(table.graphs or ())} training graphs; {members}")
    print(f"  CCO      {whole[0]:.3f} ms, of which parsing {parsing[0]:.3f}")
    whole, parsing = whole[1:], parsing[1:]
    for name, values in (("predict", whole), ("parsing", parsing), ("beside", whole - parsing)):
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
        print(f"  {name:8} {middle:.3f} ms  (10 % below {low:.3f}, 10 % above {high:.3f})")


def main() -> None:
    given = [Path(word) for word in sys.argv[1:]]
    home = Path(os.environ.get("FDGNN_DATA", "."))
    for path in given or [home / "chem" / name for name in ("BACE.csv", "LIPO.csv")]:
        measure(path)


if __name__ == "__main__":
    main()
