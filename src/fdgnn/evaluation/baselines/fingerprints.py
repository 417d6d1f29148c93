"""Morgan fingerprints of molecules, and a model of scikit-learn: what chemists try first.

The counts are those of the baseline that ``fdgnn fit`` prints (`fdgnn.evaluation.molecules`):
radius 2, hashed into 2048 columns. Logistic regression chooses its C; the forest has 500 trees and
nothing to choose.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fdgnn.evaluation.baselines.base import Task, inner_parts
from fdgnn.evaluation.molecules import logistic_regression, morgan_counts
from fdgnn.evaluation.records import Configuration, Trial
from fdgnn.extras import require
from fdgnn.graphs import Array
from fdgnn.metrics import OF_CLASSES
from fdgnn.records import cached_property

PENALTIES = (1.0, 0.1, 10.0, 0.01)  # C, the default of scikit-learn first
TREES = 500

MakeModel = Callable[[Configuration], Any]


def logistic(task: Task) -> FingerprintContestant:
    """Logistic regression on counts."""

    def make(parameters: Configuration) -> Any:
        regression = logistic_regression(float(parameters["C"] or 0.0))
        return regression.set_params(class_weight=parameters.get("class_weight"))

    return FingerprintContestant(task, make, [{"C": C, **_weighted(task)} for C in PENALTIES])


def forest(task: Task) -> FingerprintContestant:
    """A random forest on counts."""

    def make(parameters: Configuration) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(
            int(parameters["trees"] or 0),
            random_state=task.seed,
            class_weight=parameters.get("class_weight"),
        )

    return FingerprintContestant(task, make, [{"trees": TREES, **_weighted(task)}])


def _weighted(task: Task) -> Configuration:
    """Give the weights of classes as a part of a configuration, if they are asked for."""
    given = task.search.class_weight
    return {} if given is None else {"class_weight": given}


class FingerprintModel:
    """Morgan counts and a classifier of scikit-learn; it takes SMILES or RDKit's molecules."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, molecules: Sequence[Any], y: Array) -> Self:
        """Train on molecules."""
        _fit(self.classifier, morgan_counts(molecules), y)
        self.n_parameters_ = _n_parameters(self.classifier)
        return self

    def predict(self, molecules: Sequence[Any]) -> Array:
        """Give the classes of molecules."""
        classes: Array = self.classifier.predict(morgan_counts(molecules))
        return classes

    def decision_function(self, molecules: Sequence[Any]) -> Array:
        """Give scores: (n,) for two classes, (n, n_classes) for more."""
        return decision_values(self.classifier, morgan_counts(molecules))


def decision_values(classifier: Any, X: sp.csr_array) -> Array:
    """Decision values of a classifier; of a forest, its shares of trees."""
    if hasattr(classifier, "decision_function"):
        return np.asarray(classifier.decision_function(X))
    chances = np.asarray(classifier.predict_proba(X))
    return chances[:, 1] if chances.shape[1] == 2 else chances


def _fit(classifier: Any, X: sp.csr_array, y: Array) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a regression ends after a thousand steps
        return classifier.fit(X, y)


def _n_parameters(classifier: Any) -> int:
    """Weights that are not zero and intercepts; of a forest, the nodes of its trees."""
    if hasattr(classifier, "estimators_"):
        return int(sum(tree.tree_.node_count for tree in classifier.estimators_))
    return int(np.count_nonzero(classifier.coef_) + classifier.intercept_.size)


class FingerprintContestant:
    """A classifier of Morgan counts with its parameters; all folds have the same counts."""

    chooses_in_training = False

    def __init__(self, task: Task, make: MakeModel, grid: Sequence[Configuration]) -> None:
        if task.smiles is None:
            raise ValueError("Morgan fingerprints are of molecules; give their SMILES")
        self.task = task
        self.smiles = task.smiles
        self.make = make
        self._grid = list(grid)[: task.search.n_configurations]
        self.n_configurations = len(self._grid)
        n_inner = int(task.folds.max()) + 1
        self.inner_folds = min(task.search.inner_folds or n_inner, n_inner)

    @cached_property
    def _counts(self) -> sp.csr_array:
        return morgan_counts(self.smiles)

    def units(self) -> list[str]:
        """Name one part for each configuration."""
        return [json.dumps(c) for c in self._grid] if self.n_configurations > 1 else []

    def only(self) -> Configuration:
        """Give the first configuration."""
        return self._grid[0]

    def score(self, unit: str) -> list[Trial]:
        """Validate one configuration on all folds."""
        configuration = json.loads(unit)
        return [
            Trial(outer=o, configuration=configuration, score=self._validate(configuration, o))
            for o in range(len(self.task.folds))
        ]

    def _validate(self, configuration: Configuration, outer: int) -> float:
        """Mean score over the inner folds in which there is something to score."""
        X, y, scores = self._counts, self.task.y, []
        metric = OF_CLASSES[self.task.search.scoring or "accuracy"].metric
        for train, valid in inner_parts(self.task.folds[outer], self.inner_folds):
            fitted = _fit(self.make(configuration), X[train], y[train])
            values = decision_values(fitted, X[valid])
            if not hasattr(fitted, "decision_function") and values.ndim == 1:
                values = values - 0.5  # a share of trees; metrics cut at zero
            codes = np.searchsorted(fitted.classes_, y[valid])
            scores.append(float(metric(codes, values.reshape(len(valid), -1))))
        known = [score for score in scores if not np.isnan(score)]
        return float(np.mean(known)) if known else 0.0

    def model(self, configuration: Configuration) -> FingerprintModel:
        """Make an untrained model."""
        return FingerprintModel(self.make(configuration))

    def prepare(self, mask: Array) -> list[Any]:
        """Give the molecules, parsed, as the graphs of the others are."""
        Chem = require("rdkit.Chem", "chem", "Morgan fingerprints")
        return [Chem.MolFromSmiles(one) for one in compress(self.smiles, mask)]

    def warm_up(self) -> None:
        """Train and test on the first molecules of each class."""
        y = self.task.y
        few = np.concatenate([np.flatnonzero(y == c)[:2] for c in np.unique(y)])
        molecules = [self.smiles[i] for i in few]
        self.model(self.only()).fit(molecules, y[few]).predict(molecules)
