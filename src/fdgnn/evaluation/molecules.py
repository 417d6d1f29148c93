"""Molecules in evaluations: scaffolds, Morgan fingerprints, and simple models of molecules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array
from fdgnn.evaluation.run import model_outputs
from fdgnn.extras import require
from fdgnn.folds import TEST, Folds, trained_on
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.targets import Targets
from fdgnn.workers import parallel

RADIUS, N_COLUMNS = 2, 2048  # of Morgan fingerprints, as is usual
_CHUNK = 500  # molecules that a process takes at once


def murcko_scaffolds(smiles: Sequence[str], n_jobs: int | None = None) -> Array:
    """Return the Murcko scaffold of each molecule: its rings and what links them, as SMILES.

    Molecules without rings have the same, empty, scaffold.
    """
    require("rdkit", "chem", "Scaffolds of molecules")
    return np.concatenate(_in_chunks(_scaffolds, smiles, n_jobs))


def morgan_counts(molecules: Any, n_jobs: int | None = None) -> sp.csr_array:
    """Count the Morgan substructures of each SMILES or RDKit ``Mol``, hashed into columns."""
    require("rdkit", "chem", "Morgan fingerprints")
    found: sp.csr_array = sp.vstack(_in_chunks(_counts, molecules, n_jobs), format="csr")
    return found


def _in_chunks(work: Any, molecules: Sequence[Any], n_jobs: int | None) -> list[Any]:
    chunks = [molecules[i : i + _CHUNK] for i in range(0, len(molecules), _CHUNK)]
    return list(parallel(n_jobs)(joblib.delayed(work)(chunk) for chunk in chunks))


def _scaffolds(smiles: Sequence[str]) -> Array:
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles
    from rdkit.rdBase import BlockLogs

    scaffold: Callable[[str], str] = MurckoScaffoldSmiles
    with BlockLogs():  # reported when they were read
        return np.array([scaffold(one) for one in smiles], dtype=object)


def _counts(molecules: Sequence[Any]) -> sp.csr_array:
    from rdkit.Chem import MolFromSmiles
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from rdkit.rdBase import BlockLogs

    made = GetMorganGenerator(radius=RADIUS, fpSize=N_COLUMNS)
    with BlockLogs():
        mols = (MolFromSmiles(one) if isinstance(one, str) else one for one in molecules)
        found = [made.GetCountFingerprintAsNumPy(mol) for mol in mols]
    return sp.csr_array(np.array(found, dtype=np.float64))


def linear_model(classify: bool, **parameters: Any) -> Any:
    """Return the baseline of Morgan counts, not fitted."""
    from sklearn.linear_model import LogisticRegression, Ridge

    if classify:
        return LogisticRegression(max_iter=1000, **parameters)
    return Ridge(**{"alpha": 10.0, **parameters})


def boosting(classify: bool, **parameters: Any) -> Any:
    """Return the baseline of descriptors, not fitted."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    return kind(**{"random_state": 0, **parameters})


def simple_predictions(
    new_model: Callable[[bool], Any], X: Any, targets: Targets, folds: Folds
) -> NestedPredictions:
    """Predict the test graphs of each outer fold by a model of scikit-learn.

    Parameters
    ----------
    new_model : callable
        Returns the model for classes or for numbers, not fitted.
    X : (n, P)
    targets : Targets
        Each has a model of its own, trained where it is known.
    folds : (n_outer, n)
        As in `FitTask`. Folds whose training graphs have one class only have no score.
    """
    outputs = np.full((len(folds), *targets.coded.shape), np.nan)
    for own, fold in zip(outputs, folds, strict=True):
        for t, target in enumerate(targets.each):
            known, test = trained_on(fold) & targets.known[:, t], fold == TEST
            y = targets.values[known, t]
            if len(np.unique(y)) > 1:
                model = new_model(targets.classify).fit(X[known], y)
                own[test, target.columns] = model_outputs(model, X[test], target)
    return NestedPredictions(targets, folds == TEST, outputs)
