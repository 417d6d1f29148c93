"""Published splits, and duplicates across folds: what is tested, and nearly trained on."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from msgspec import Meta

from fdgnn.arrays import Array, Ints
from fdgnn.encoders import WLCounts
from fdgnn.exceptions import StudyError
from fdgnn.folds import TEST, TRAIN, UNUSED, Folds
from fdgnn.graphs import GraphBatch
from fdgnn.records import Record, read_record

N_ITERATIONS = 3
NEAR = 0.9  # share of WL labels in common
_MOST_COMPARED, _ROWS_AT_ONCE = 1_000, 100
_Rows = list[Annotated[int, Meta(ge=0)]]


class _Selection(Record, frozen=True):
    """Graphs that are trained on and graphs that select, of one inner split."""

    train: _Rows
    validation: _Rows


class _OuterFold(Record, frozen=True):
    """The test graphs of an outer fold, and its inner splits."""

    test: _Rows
    model_selection: list[_Selection]


def read_splits(path: str | os.PathLike[str], n_graphs: int) -> Folds:
    """Read the splits of a dataset, in the format of Errica et al., "A Fair Comparison" (2020).

    The file is a JSON list of outer folds, each with ``test`` and a list ``model_selection`` of
    inner splits with ``train`` and ``validation``: positions of graphs, from 0. Hyperparameters are
    selected by the validation graphs, with a model that is trained on ``train``. The selected model
    is trained on both, ``train`` and ``validation``, and tested on ``test``.

    Returns
    -------
    (n_outer, n_graphs) int
        As in `FitTask`: the inner split that a graph validates, `TRAIN` for graphs that are in the
        training set of all inner splits, `TEST`, or `UNUSED`.

    Raises
    ------
    StudyError
        The file is damaged or of another dataset.
    """
    outer = read_record(Path(path), list[_OuterFold])
    if len(outer) < 2:
        raise StudyError(f"{path}: expected at least two outer folds, found {len(outer)}")
    rows = []
    for number, fold in enumerate(outer):
        where = f"{path}: fold {number}"
        row = np.full(n_graphs, UNUSED)
        if not (fold.test and fold.model_selection):
            raise StudyError(f"{where} has no test graphs or no `model_selection`")
        used = _members(fold.model_selection[0].train + fold.model_selection[0].validation, where)
        largest = max(*used, *fold.test)
        if largest >= n_graphs:
            raise StudyError(
                f"{where} names graph {largest}, but there are {n_graphs} graphs; give the splits "
                "of this dataset"
            )
        row[list(used)] = TRAIN
        for inner, selection in enumerate(fold.model_selection):
            validation = _members(selection.validation, where)
            if not validation or _members(selection.train, where) != used - validation:
                raise StudyError(
                    f"{where}: inner split {inner} must train on all graphs of `model_selection` "
                    "that it does not validate, and validate some"
                )
            if (row[list(validation)] != TRAIN).any():
                raise StudyError(f"{where}: a graph is in two validation sets")
            row[list(validation)] = inner
        if used & _members(fold.test, where):
            raise StudyError(f"{where} tests graphs that it trains on")
        row[fold.test] = TEST
        rows.append(row)
    folds = np.array(rows)
    if ((folds == TEST).sum(axis=0) > 1).any():
        raise StudyError(f"{path}: a graph is tested in two folds")
    if n_left := np.count_nonzero((folds == UNUSED).all(axis=0)):
        raise StudyError(
            f"{path}: {n_left} of {n_graphs} graphs are in no fold; give the splits of this "
            "dataset, or leave these graphs out of the data"
        )
    return folds


def _members(rows: _Rows, where: str) -> set[int]:
    found = set(rows)
    if len(found) < len(rows):
        raise StudyError(f"{where}: a graph is named twice")
    return found


# ---------------------------------------------------------------------- duplicates


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
    # The number of each graph, the same for graphs with equal rows.
    keys: dict[bytes, int] = {}
    spans = [slice(start, end) for start, end in pairwise(X.indptr.tolist())]
    contents = [X.indices[span].tobytes() + X.data[span].tobytes() for span in spans]
    same = np.array([keys.setdefault(row, len(keys)) for row in contents], dtype=np.int64)
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
    return f"{text}; {n_near}{among} have an exact or near duplicate"


def _varies(group: Ints, values: Array) -> Array:
    """Return for each group whether its graphs have different values."""
    codes = np.unique(values, return_inverse=True)[1]
    kinds = np.unique(np.stack([group, codes]), axis=1)
    return np.bincount(kinds[0]) > 1


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
