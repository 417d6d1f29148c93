"""Folds of a cross validation, as numbers: the fold of each graph, or that it is a test graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fdgnn.graphs import Array
from fdgnn.readout.stratified import stratified
from fdgnn.readout.targets import check_two_classes

Folds = npt.NDArray[np.int64]
TEST, UNUSED = -1, -2  # instead of a fold: scored at the end, or in no part at all


def nested_folds(y: Array, n_outer: int, n_inner: int, seed: int) -> Folds:
    """Make stratified, shuffled folds of folds.

    Returns
    -------
    (n_outer, n) int64
        Row o: the inner fold of each training graph of outer fold o, -1 for its test graphs.
    """
    _check_members(y, n_outer, n_inner)
    folds = np.full((n_outer, len(y)), -1)
    outer = stratified(y, n_outer, seed)
    for o in range(n_outer):
        train = outer != o
        folds[o, train] = stratified(y[train], n_inner, seed + 1 + o)
    return folds


def _check_members(y: Array, n_outer: int, n_inner: int) -> None:
    """Every class must be in every outer fold, and in every inner fold of what is left."""
    if min(n_outer, n_inner) < 2:
        raise ValueError(
            f"{n_outer} outer and {n_inner} inner folds: at least 2 of each are needed"
        )
    check_two_classes(y)
    classes, counts = np.unique(y, return_counts=True)
    fewest = int(counts.min())
    if not enough_for_nested_folds(fewest, n_outer, n_inner):
        raise ValueError(
            f"class {classes[counts.argmin()]!s} has {fewest} graphs, too few for {n_outer} outer "
            f"and {n_inner} inner stratified folds; use fewer folds or more graphs"
        )


def enough_for_nested_folds(n_members: int, n_outer: int, n_inner: int) -> bool:
    """Tell whether a class of so many graphs reaches every outer and every inner fold."""
    left = n_members - -(-n_members // n_outer)  # the largest outer fold is tested on
    return n_members >= n_outer and left >= n_inner


def outer_rows(outer: Any, inner: Any, y: Any, groups: Array | None = None) -> list[Folds]:
    """Make one row for each split of the outer splitter: inner folds, and what is tested."""
    rows = []
    for train, test in outer.split(np.zeros(len(y)), y, groups):
        row = np.full(len(y), UNUSED)
        row[test] = TEST
        row[train] = held_out_once(inner, y[train], None if groups is None else groups[train])
        rows.append(row)
    return rows


def held_out_once(cv: Any, y: Any, groups: Array | None = None) -> Folds:
    """Give the fold of each graph, for a splitter that holds each graph out exactly once."""
    fold = np.full(len(y), -1)
    for f, (train, held_out) in enumerate(cv.split(np.zeros(len(y)), y, groups)):
        if len(train) == 0 or len(held_out) == 0:
            raise ValueError("cv leaves a fold empty; use fewer folds")
        if len(np.union1d(train, held_out)) < len(y) or len(np.intersect1d(train, held_out)):
            raise ValueError("cv must train on all graphs that it does not hold out")
        if (fold[held_out] >= 0).any():
            raise ValueError("cv holds some graphs out more than once; use a k-fold splitter")
        fold[held_out] = f
    if (fold < 0).any():
        raise ValueError("cv never holds out some graphs; use a k-fold splitter")
    return fold
