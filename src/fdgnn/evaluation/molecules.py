"""What chemists hold a model against: scaffolds, and the baseline of Morgan fingerprints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats
from fdgnn.extras import require
from fdgnn.folds import TEST, Folds
from fdgnn.selection.scoring import NestedAnswers
from fdgnn.targets import Targets
from fdgnn.workers import parallel

RADIUS, N_COLUMNS = 2, 2048  # of Morgan fingerprints, as is usual
_CHUNK = 500  # molecules that a process takes at once


def murcko_scaffolds(smiles: Sequence[str], n_jobs: int | None = None) -> Array:
    """Give the Murcko scaffold of each molecule: its rings and what links them, as SMILES.

    Molecules without rings have the same, empty, scaffold.
    """
    require("rdkit", "chem", "Scaffolds of molecules")
    return np.array(_in_chunks(_scaffolds, smiles, n_jobs), dtype=object)


def morgan_counts(molecules: Sequence[Any], n_jobs: int | None = None) -> sp.csr_array:
    """Count the Morgan substructures of each SMILES or RDKit ``Mol``, hashed into columns."""
    require("rdkit", "chem", "Morgan fingerprints")
    rows = _in_chunks(_counts, molecules, n_jobs)
    indices = [np.array(list(row), dtype=np.int32) for row in rows]
    values = [np.array(list(row.values()), dtype=np.float64) for row in rows]
    ends = np.cumsum([0, *map(len, indices)]).astype(np.int32)  # forests take no wider ones
    parts = np.concatenate(values), np.concatenate(indices), ends
    return sp.csr_array(parts, shape=(len(molecules), N_COLUMNS))


def _in_chunks(work: Any, molecules: Sequence[Any], n_jobs: int | None) -> list[Any]:
    chunks = [molecules[i : i + _CHUNK] for i in range(0, len(molecules), _CHUNK)]
    done = parallel(n_jobs)(joblib.delayed(work)(chunk) for chunk in chunks)
    return [one for chunk in done for one in chunk]


def _scaffolds(smiles: Sequence[str]) -> list[str]:
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles
    from rdkit.rdBase import BlockLogs

    scaffold: Callable[[str], str] = MurckoScaffoldSmiles
    with BlockLogs():  # what is to be said of molecules was said when they were read
        return [scaffold(one) for one in smiles]


def _counts(molecules: Sequence[Any]) -> list[dict[int, int]]:
    from rdkit.Chem import MolFromSmiles
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from rdkit.rdBase import BlockLogs

    made = GetMorganGenerator(radius=RADIUS, fpSize=N_COLUMNS)
    with BlockLogs():
        mols = (MolFromSmiles(one) if isinstance(one, str) else one for one in molecules)
        found = map(made.GetCountFingerprint, mols)
        return [dict(sorted(one.GetNonzeroElements().items())) for one in found]


def logistic_regression(C: float = 1.0) -> Any:
    """Give the classifier of the baseline, not fitted."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=1000)


def baseline_answers(X: sp.csr_array, targets: Targets, folds: Folds) -> NestedAnswers:
    """Predict the test graphs of each outer fold by logistic or ridge regression.

    Parameters
    ----------
    X : (n, P)
    targets : Targets
        A single one.
    folds : (n_outer, n)
        As in `FitTask`. Folds whose training graphs have one class only teach nothing, and are
        left out.
    """
    y = targets.values[:, 0]
    rows = folds[[len(np.unique(y[fold >= 0])) > 1 for fold in folds]]
    outputs = np.array([_tested(X, targets, fold) for fold in rows])
    return NestedAnswers(targets, rows == TEST, outputs)


def _tested(X: sp.csr_array, targets: Targets, fold: Folds) -> Floats:
    """Outputs (n, q) of a regression on the training graphs of one outer fold."""
    from sklearn.linear_model import Ridge

    y, train, test = targets.values[:, 0], fold >= 0, fold == TEST
    model = logistic_regression() if targets.classify else Ridge(alpha=10.0)
    model.fit(X[train], y[train])
    if targets.classes is None:
        found = model.predict(X[test])
    else:
        found = _class_scores(model, X[test], len(targets.classes[0]))
    outputs = np.full((len(y), targets.n_outputs), np.nan)
    outputs[test] = found.reshape(len(found), -1)
    return outputs


def _class_scores(model: Any, X: sp.csr_array, n_classes: int) -> Floats:
    """Scores of two classes (n,) or of more (n, n_classes); lowest for classes not trained on."""
    found = np.asarray(model.decision_function(X))
    if n_classes == 2:
        return found
    if found.ndim == 1:
        found = np.stack([-found, found], axis=1)
    scores = np.full((len(found), n_classes), found.min(initial=0.0) - 1.0)
    scores[:, model.classes_] = found
    return scores
