"""Folds of a cross-validation, as numbers: the fold of each graph, or that it is a test graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Ints, mixed_bits
from fdgnn.graphs import GraphBatch
from fdgnn.targets import Mask, Targets, check_two_classes

Folds = npt.NDArray[np.int64]
TEST, UNUSED = -1, -2  # instead of a fold: scored at the end, or in no part at all
#: Folds by which alpha, base models and uncertainty are chosen and learned, everywhere.
N_FOLDS = 5
#: Graphs beyond which folds are functions of the graphs, so that parts of them have the same folds.
MANY_GRAPHS = 10_000


# ---------------------------------------------------------------------- the folds of a fit


def choice_folds(
    targets: Targets, graphs: GraphBatch, seed: np.random.SeedSequence, n_folds: int = N_FOLDS
) -> Ints:
    """Return the fold of each graph by which a fit chooses and learns.

    Classes are spread evenly over the folds, and those of several targets as evenly as possible.
    The folds of many graphs depend on the graphs alone, so that equal graphs are held out
    together, and training out of core has the same folds.
    """
    if len(targets) > MANY_GRAPHS:
        return signature_folds(graphs.coloring.signatures, salt_of(seed), n_folds)
    if len(targets.names) > 1 and not (targets.classes is None and targets.known.all()):
        return balanced_folds(targets, n_folds, seed)
    if targets.classes is None:
        return shuffled_folds(len(targets), seed, n_folds)
    return stratified_folds(targets.values[:, 0], seed, n_folds)


def stratified_folds(codes: Array, seed: np.random.SeedSequence, n_folds: int = N_FOLDS) -> Ints:
    """Return stratified folds; fewer than asked for where a class has fewer graphs."""
    fewest = int(np.bincount(codes).min())
    if fewest < 2:
        raise ValueError(
            "a class has only one graph, and probabilities and alpha are learned from out-of-fold "
            "predictions; give every class at least two, or give alpha, and no probability"
        )
    random_state = int(seed.generate_state(1)[0])
    return stratified(codes, min(n_folds, fewest), random_state)


def shuffled_folds(n: int, seed: np.random.SeedSequence, n_folds: int = N_FOLDS) -> Ints:
    """Return shuffled folds of about equal sizes."""
    if n < 2:
        raise ValueError("there is one graph only, and alpha is chosen by out-of-fold predictions")
    folds: Ints = np.arange(n) % min(n_folds, n)
    return np.random.default_rng(seed).permutation(folds)


def signature_folds(signatures: npt.NDArray[np.uint64], salt: int, n_folds: int = N_FOLDS) -> Ints:
    """Return the fold of each graph by what it is: equal graphs are held out together.

    `signatures` (n,) are equal for equal graphs. For many graphs, whose folds are of about equal
    sizes and classes by chance alone.
    """
    bits = mixed_bits(signatures ^ np.uint64(salt % 2**64))
    return np.asarray((bits >> np.uint64(32)) % np.uint64(n_folds), dtype=np.int64)


def salt_of(seed: np.random.SeedSequence) -> int:
    """Return the number on which folds by signatures depend."""
    return int(seed.generate_state(1)[0])


def balanced_folds(targets: Targets, n_folds: int, seed: np.random.SeedSequence) -> Ints:
    """Return folds over which every class of every target is spread evenly.

    Of numbers it is the known values that are spread. The rarest class goes first, each of its
    graphs into the fold that lacks most of this class, and, among equals, most graphs at all.
    """
    marks = _marks(targets)
    n_folds = max(2, min(n_folds, int(marks.sum(axis=0).min())))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(marks))
    wanted = np.tile(marks.sum(axis=0) / n_folds, (n_folds, 1))
    room = np.full(n_folds, len(marks) / n_folds)
    left = marks.sum(axis=0)
    fold = np.full(len(marks), -1)
    while left.any():
        rarest = int(np.argmin(np.where(left > 0, left, len(marks) + 1)))
        for g in order[marks[order, rarest] & (fold[order] < 0)].tolist():
            f = int(np.lexsort((-room, -wanted[:, rarest]))[0])
            fold[g] = f
            wanted[f] -= marks[g]
            left -= marks[g]
            room[f] -= 1
    return fold


def _marks(targets: Targets) -> Mask:
    """Which of all classes of all targets each graph has; of numbers, which are known."""
    if targets.classes is None:
        return targets.known
    columns = [
        targets.values[:, t, None] == np.arange(len(classes))
        for t, classes in enumerate(targets.classes)
    ]
    return np.hstack(columns)


def stratified(y: Array, n_folds: int, random_state: int) -> Ints:
    """Return the fold of each sample: the shuffled folds of ``StratifiedKFold``."""
    from sklearn.model_selection import StratifiedKFold  # slow to import

    folds = np.empty(len(y), dtype=np.int64)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    for f, (_, held_out) in enumerate(splitter.split(y, y)):
        folds[held_out] = f
    return folds


# ---------------------------------------------------------------------- nested folds


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
