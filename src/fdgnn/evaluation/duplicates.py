"""Graphs of one fold that stand in another one too, or nearly so: they flatter a score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Ints
from fdgnn.encoders import WLCounts
from fdgnn.graphs import GraphBatch

N_ROUNDS = 3
NEAR = 0.9  # share of colors in common
_MOST_LOOKED_AT, _ROWS_AT_ONCE = 1_000, 100


@dataclass(frozen=True)
class Repeats:
    """How many graphs have a twin in another fold.

    Attributes
    ----------
    n_graphs, n_same : int
        How many there are, and how many have the same colors as a graph of another fold.
    n_contradicting : int
        How many of these have a twin with another target.
    n_looked_at, n_near : int
        How many were compared with all graphs of other folds, and how many of them share over
        nine tenths of their colors with one.
    """

    n_graphs: int
    n_same: int
    n_contradicting: int
    n_looked_at: int
    n_near: int

    def in_words(self) -> str | None:
        """Say it in a sentence, or None if there is nothing to say."""
        if self.n_near == self.n_same == 0:
            return None
        text = f"{self.n_same} of {self.n_graphs} graphs have a twin in another fold"
        if self.n_contradicting:
            text += f" ({self.n_contradicting} of them one with another target)"
        among = "" if self.n_looked_at == self.n_graphs else f" of {self.n_looked_at} looked at"
        return f"{text}; {self.n_near}{among} have one that is at least nearly the same"


def find_repeats(graphs: GraphBatch, y: Array, fold: Ints, seed: int = 0) -> Repeats:
    """Look for twins across folds; `fold` (n,) says which fold tests each graph."""
    X = WLCounts(n_iterations=N_ROUNDS).fit_transform(graphs)
    X.sort_indices()
    same = _groups(X)
    twins = _varies(same, fold)
    order = np.random.default_rng(seed).permutation(len(y))[:_MOST_LOOKED_AT]
    return Repeats(
        n_graphs=len(y),
        n_same=int(twins[same].sum()),
        n_contradicting=int((twins & _varies(same, y))[same].sum()),
        n_looked_at=len(order),
        n_near=sum(
            int(_near(X, order[i : i + _ROWS_AT_ONCE], fold).sum())
            for i in range(0, len(order), _ROWS_AT_ONCE)
        ),
    )


def _groups(X: sp.csr_array) -> Ints:
    """Number of each row, the same for rows that are equal."""
    keys: dict[bytes, int] = {}
    parts = (slice(X.indptr[i], X.indptr[i + 1]) for i in range(X.shape[0]))
    rows = [X.indices[part].tobytes() + X.data[part].tobytes() for part in parts]
    return np.array([keys.setdefault(row, len(keys)) for row in rows], dtype=np.int64)


def _varies(group: Ints, values: Array) -> Array:
    """Tell for each group whether its members have different values."""
    codes = np.unique(values, return_inverse=True)[1]
    least, most = np.full(group.max() + 1, len(values)), np.full(group.max() + 1, -1)
    np.minimum.at(least, group, codes)
    np.maximum.at(most, group, codes)
    return np.asarray(least < most)


def _near(X: sp.csr_array, rows: Ints, fold: Ints) -> Array:
    """Tell which rows share most of their colors with a row of another fold.

    The product of two rows of thermometer counts is the number of colors in common; beside all
    colors of either, it is their Jaccard similarity.
    """
    common = (X[rows] @ X.T).toarray()
    size = X.sum(axis=1)
    similarity = common / np.maximum(size[rows, None] + size - common, 1)
    similarity[fold[rows, None] == fold] = 0.0
    return np.asarray(similarity.max(axis=1) >= NEAR)
