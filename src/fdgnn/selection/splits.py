"""Splits that do not flatter: graphs that belong together are held out together."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)

from fdgnn.arrays import Array
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.selection.folds import Folds, held_out_once, outer_rows


@dataclass(frozen=True)
class Splitters:
    """How graphs are held out: for choosing, and, around that, for scoring what was chosen.

    Attributes
    ----------
    inner, outer : int, splitter or None
        Numbers of folds, or scikit-learn's splitters; without an outer one nothing is scored.
    classify : bool
        Whether folds have all classes alike, as far as possible.
    seed : int or None
    """

    inner: Any
    outer: Any
    classify: bool
    seed: Any

    def rows(self, y: Array, groups: Array | None = None) -> Folds:
        """Make rows as in `SelectionTask`: one for each outer fold, and one of all graphs."""
        inner = self.inner
        if groups is not None and isinstance(inner, Integral):
            inner = self._groups_together(int(inner), 1)
        inner = check_cv(inner, y, classifier=self.classify)
        whole = held_out_once(inner, y, groups)
        if self.outer is None:
            return whole[None]
        return np.array([*outer_rows(self._outer(groups), inner, y, groups), whole])

    def _outer(self, groups: Array | None) -> Any:
        if hasattr(self.outer, "split"):
            return self.outer
        if groups is not None:
            return self._groups_together(int(self.outer), 0)
        kind = StratifiedKFold if self.classify else KFold
        return kind(int(self.outer), shuffle=True, random_state=self._number(0))

    def _groups_together(self, n_folds: int, stream: int) -> Any:
        kind = StratifiedGroupKFold if self.classify else GroupKFold
        return kind(n_folds, shuffle=True, random_state=self._number(stream))

    def _number(self, stream: int) -> int:
        return integer_seed(seed_sequence(self.seed), stream)


def check_groups(groups: Any, n: int) -> Array:
    """Give the number of each graph's group (n,), or raise ValueError."""
    found = np.asarray(groups)
    if found.shape != (n,):
        raise ValueError(f"groups has shape {found.shape}, expected ({n},): one for each graph")
    names, codes = np.unique(found.astype(str), return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            f"all graphs are of one group, {names[0]}, and graphs of a group are held out "
            "together; choose another split"
        )
    return np.asarray(codes)
