"""Several targets in a search: folds that are fair to all of them, and scores of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.arrays import Ints
from fdgnn.readout.several import SeveralTargets, balanced_folds
from fdgnn.seeds import seed_sequence
from fdgnn.selection.folds import Folds


@dataclass(frozen=True)
class BalancedKFold:
    """Folds with every class of every target alike, as one of scikit-learn's splitters."""

    n_splits: int
    random_state: int | None = None

    def split(self, X: Any, y: SeveralTargets, groups: Any = None) -> Iterator[tuple[Ints, Ints]]:
        """Yield the graphs that are trained on, and those that are held out."""
        fold = balanced_folds(y, self.n_splits, seed_sequence(self.random_state))
        for f in range(fold.max() + 1):
            yield np.flatnonzero(fold != f), np.flatnonzero(fold == f)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Give the number of folds."""
        return self.n_splits


def check_folds(several: SeveralTargets, folds: Folds) -> None:
    """Raise ValueError unless every target is known in two folds of each row, at least."""
    for row in folds:
        for t, name in enumerate(several.names):
            found = np.unique(row[several.known[:, t] & (row >= 0)])
            if len(found) < 2:
                raise ValueError(
                    f"target {name!r} is known in too few graphs to be in two folds; leave it out, "
                    "or choose fewer folds or another split"
                )
