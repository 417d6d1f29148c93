r"""Training graphs that a model keeps: the nearest ones of a graph, and how large errors are there.

*Similarity* of two graphs is the kernel that predicts: the mean of the kernels of all base models
that are kernel ridge regressions of the same training graphs.

*Difficulty* of a graph is the error that is to be expected of its prediction. Its logarithm is a
linear function of three conditions, fitted to the out-of-fold errors of the training graphs::

    log d(x) = w_0 + w_1 log(distance + .3) + w_2 log(1.1 - k(x, nearest)) + w_3 log(e(x) + .3 e)

where e(x) is the mean error of the ten most similar training graphs, and e that of all. A training
graph is compared with those of other folds only, so that its own error plays no part. A model
without kernels has the first condition alone. Intervals are as wide as the difficulty
(`fdgnn.uncertainty`); docs/decisions/0040-conformal-prediction.md has what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Features, Floats, Ints
from fdgnn.fitting import FittedModel
from fdgnn.linear import KernelReadout
from fdgnn.targets import Targets, transformed_back

AT_ONCE = 500  # graphs that are compared with all training graphs together
_N_NEAREST = 10  # whose errors are averaged
_DOMAIN, _KERNEL, _ERROR = 0.3, 0.1, 0.3  # what keeps logarithms finite
_SHRINKAGE = 1e-3  # a condition with this variance has half the slope of least squares


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The most similar training graphs of each graph, the most similar one first.

    Attributes
    ----------
    positions : (n_graphs, k) int64
        Their positions among the training graphs; -1 for a graph that has nothing in common with
        them, and so no neighbors.
    similarities : (n_graphs, k) float64
        From 0 to 1; the kernel by which the model predicts. NaN without neighbors.
    targets : (n_graphs, k), or (n_graphs, k, n_targets)
        Their classes or numbers; None or NaN where a target is unknown.
    ids, smiles : (n_graphs, k) object, or None
        What they are called in the file that the model was trained on, and their SMILES.
    """

    positions: Ints
    similarities: Floats
    targets: Array
    ids: Array | None = None
    smiles: Array | None = None

    def without(self, graphs: Sequence[int]) -> Neighbors:
        """Remove the neighbors of some graphs."""
        rows = list(graphs)
        self.positions[rows], self.similarities[rows] = -1, np.nan
        self.targets[rows] = None if self.targets.dtype == object else np.nan
        for names in (self.ids, self.smiles):
            if names is not None:
                names[rows] = None
        return self


@dataclass(frozen=True, eq=False)
class TrainingGraphs:
    """The training graphs that a model with kernels keeps, without their features.

    Attributes
    ----------
    targets : Targets
    errors : (n_graphs, n_targets) or None
        Sizes of the out-of-fold errors of a regressor with intervals, NaN where unknown.
    ids, smiles : (n_graphs,) object, or None
    """

    targets: Targets
    errors: Floats | None = None
    ids: Array | None = None
    smiles: Array | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def anonymous(self) -> TrainingGraphs:
        """Return the same without what is known of the graphs but their errors."""
        targets, codes = self.targets, self.targets.classes is not None
        values = np.full_like(targets.values, -1 if codes else np.nan)
        return TrainingGraphs(replace(targets, values=values), self.errors)

    def only(self, target: int) -> TrainingGraphs:
        """Return the same graphs with one of several targets."""
        own = self.targets
        classes = None if own.classes is None else (own.classes[target],)
        targets = replace(
            own, names=(own.names[target],), values=own.values[:, [target]], classes=classes,
            flat=True,
        )  # fmt: skip
        errors = None if self.errors is None else self.errors[:, [target]]
        return replace(self, targets=targets, errors=errors)

    def neighbors(self, similarities: Iterable[Floats], k: int) -> Neighbors:
        """Return the nearest of graphs with these similarities (m, n), in blocks of graphs."""
        found = [nearest(some, min(k, len(self))) for some in similarities]
        positions, values = (np.concatenate(each) for each in zip(*found, strict=True))
        ids, smiles = (None if x is None else x[positions] for x in (self.ids, self.smiles))
        return Neighbors(positions, values, self._labels()[positions], ids, smiles)

    def _labels(self) -> Array:
        """Return the targets as they were given, (n,) or (n, n_targets)."""
        own = self.targets
        if own.classes is None:
            values: Array = transformed_back(own.values, own.transform)
        else:
            values = np.empty(own.values.shape, dtype=object)
            for t, classes in enumerate(own.classes):
                values[:, t] = classes[np.maximum(own.values[:, t], 0)].astype(object)
            values[own.values < 0] = None
        return values[:, 0] if own.flat else values


def kernel_models(models: Sequence[FittedModel]) -> list[int]:
    """Return the positions of the fitted models that have a kernel."""
    return [i for i, model in enumerate(models) if isinstance(model.readout, KernelReadout)]


def similarities(models: Sequence[FittedModel], seen: Sequence[Features]) -> Floats:
    """Return the mean kernel (m, n) of graphs with the training graphs.

    `seen` is what the readout of each model sees of the graphs.
    """
    each = [m.readout.similarities(X) for m, X in zip(models, seen, strict=True)]  # type: ignore[union-attr]
    return np.asarray(sum(each[1:], each[0]) / len(each))


def nearest(similarities: Floats, k: int) -> tuple[Ints, Floats]:
    """Return the positions and the values of the k largest entries of each row, sorted."""
    some = np.argpartition(-similarities, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(similarities, some, axis=1)
    order = np.lexsort((some, -values))
    return np.take_along_axis(some, order, axis=1), np.take_along_axis(values, order, axis=1)


# ---------------------------------------------------------------------- difficulty


def conditions(
    distances: Floats | None, similarities: Floats | None, errors: Floats | None
) -> Floats:
    """Return the conditions (m, n_conditions) of the difficulty of graphs for one target.

    Parameters
    ----------
    distances : (m,) or None
        From the applicability domain.
    similarities : (m, n) or None
        With the training graphs; below 0 for those that play no part.
    errors : (n,) or None
        Their errors, NaN where unknown.
    """
    found: list[Floats] = []
    if distances is not None:
        found.append(np.log(distances + _DOMAIN))
    if similarities is not None and errors is not None:
        known = np.flatnonzero(~np.isnan(errors))
        own, mean = errors[known], float(np.mean(errors[known])) or 1.0
        places, values = nearest(similarities[:, known], min(_N_NEAREST, len(known)))
        found.append(np.log(1.0 + _KERNEL - values[:, 0]))
        found.append(np.log(own[places].mean(axis=1) + _ERROR * mean))
    n = 0 if distances is None and similarities is None else len(found[0])
    return np.stack([np.ones(n), *found], axis=1)


def training_conditions(
    models: Sequence[FittedModel], distances: Floats | None, errors: Floats, fold: Ints
) -> list[Floats]:
    """Return the conditions (n, n_conditions) of all training graphs, for each target.

    A graph is compared with those of other folds. `models` are those with kernels, `errors` are
    (n, n_targets).
    """
    n_targets = errors.shape[1]
    if not models:
        return [conditions(distances, None, None)] * n_targets
    parts: list[list[Floats]] = [[] for _ in range(n_targets)]
    kernels: list[Any] = [model.readout for model in models]
    for panels in zip(*(kernel.training_panels() for kernel in kernels), strict=True):
        rows = panels[0][0]
        compared = sum(panel for _, panel in panels) / len(models)
        compared[fold[rows, None] == fold] = -1.0
        own = None if distances is None else distances[rows]
        for t in range(n_targets):
            parts[t].append(conditions(own, compared, errors[:, t]))
    return [np.concatenate(each) for each in parts]


def fit_difficulty(found: Floats, errors: Floats) -> Floats:
    """Fit the weights w of conditions (n, n_conditions) to the logarithms of errors (n,).

    The first condition is 1. The others are penalized, because one that hardly differs among the
    training graphs would otherwise get a weight with which another graph's difficulty is infinite.
    """
    least = 0.1 * float(np.median(errors)) or 0.1 * float(np.mean(errors)) or 1.0
    means, logs = found.mean(axis=0), np.log(errors + least)
    centered = found[:, 1:] - means[1:]
    penalty = _SHRINKAGE * len(found) * np.eye(centered.shape[1])
    slopes = np.linalg.solve(centered.T @ centered + penalty, centered.T @ (logs - logs.mean()))
    return np.array([logs.mean() - means[1:] @ slopes, *slopes])


def difficulty(found: Floats, weights: Floats) -> Floats:
    """Return the difficulty (m,) of graphs under conditions (m, n_conditions)."""
    return np.asarray(np.exp(found @ weights))


def as_text(values: Any) -> Array:
    """Return ids or SMILES as an array of texts."""
    return np.array([str(value) for value in values], dtype=object)
