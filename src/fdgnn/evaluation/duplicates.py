"""Duplicates across folds: graphs that are in a test fold and, nearly, among training graphs."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Ints
from fdgnn.encoders import WLCounts
from fdgnn.graphs import GraphBatch

N_ITERATIONS = 3
NEAR = 0.9  # share of WL labels in common
_MOST_COMPARED, _ROWS_AT_ONCE = 1_000, 100


def duplicates_note(graphs: GraphBatch, y: Array, fold: Ints, seed: int = 0) -> str | None:
    """Return a sentence on graphs that have a duplicate in another fold; None without any.

    Parameters
    ----------
    graphs : GraphBatch
    y : (n,)
        Their targets: duplicates whose targets differ are counted.
    fold : (n,)
        Which fold tests each graph.
    seed : int
        Of the graphs, at most a thousand, that are compared with all others for near duplicates.
    """
    X = WLCounts(n_iterations=N_ITERATIONS).fit_transform(graphs)
    X.sort_indices()
    same = _groups(X)
    across = _varies(same, fold)
    n_same = int(across[same].sum())
    compared = np.random.default_rng(seed).permutation(len(y))[:_MOST_COMPARED]
    parts = np.split(compared, range(_ROWS_AT_ONCE, len(compared), _ROWS_AT_ONCE))
    n_near = sum(int(_near(X, rows, fold).sum()) for rows in parts)
    if n_near == n_same == 0:
        return None
    text = f"{n_same} of {len(y)} graphs have a duplicate in another fold"
    if n_contradicting := int((across & _varies(same, y))[same].sum()):
        text += f" ({n_contradicting} of them one with another target)"
    among = "" if len(compared) == len(y) else f" of {len(compared)} compared"
    return f"{text}; {n_near}{among} have one that is at least nearly the same"


def _groups(X: sp.csr_array) -> Ints:
    """Return the number of each row, the same for rows that are equal."""
    keys: dict[bytes, int] = {}
    parts = (slice(X.indptr[i], X.indptr[i + 1]) for i in range(X.shape[0]))
    rows = [X.indices[part].tobytes() + X.data[part].tobytes() for part in parts]
    return np.array([keys.setdefault(row, len(keys)) for row in rows], dtype=np.int64)


def _varies(group: Ints, values: Array) -> Array:
    """Return for each group whether its graphs have different values."""
    codes = np.unique(values, return_inverse=True)[1]
    least, most = np.full(group.max() + 1, len(values)), np.full(group.max() + 1, -1)
    np.minimum.at(least, group, codes)
    np.maximum.at(most, group, codes)
    return np.asarray(least < most)


def _near(X: sp.csr_array, rows: Ints, fold: Ints) -> Array:
    """Return which rows share most of their WL labels with a row of another fold.

    The product of two rows of unary-encoded counts is the number of labels in common; over all
    labels of either, it is their Jaccard similarity.
    """
    common = (X[rows] @ X.T).toarray()
    size = X.sum(axis=1)
    similarity = common / np.maximum(size[rows, None] + size - common, 1)
    similarity[fold[rows, None] == fold] = 0.0
    return np.asarray(similarity.max(axis=1) >= NEAR)
