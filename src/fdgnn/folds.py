"""Folds of a cross-validation: the fold of each graph, or that it is a test graph.

Graphs that belong together (a group, a scaffold, a time) are held out together, so that scores are
not optimistic: `Split`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Ints, mixed_bits
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.descriptors import number_in
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.targets import Mask, Targets, check_two_classes

Folds = npt.NDArray[np.int64]
#: Instead of a fold: scored at the end; in no part at all; trained on whichever fold is held out.
TEST, UNUSED, TRAIN = -1, -2, -3
#: Folds by which alpha, base models and uncertainty are chosen and learned, everywhere.
N_FOLDS = 5
#: Graphs beyond which folds are functions of the graphs, so that parts of them have the same folds.
MANY_GRAPHS = 10_000


def trained_on(folds: Folds) -> Mask:
    """Return which graphs a model is trained on that is tested on the test graphs of a row."""
    return np.asarray((folds >= 0) | (folds == TRAIN))


# ---------------------------------------------------------------------- the folds of a fit


def choice_folds(targets: Targets, graphs: GraphBatch, seed: np.random.SeedSequence) -> Ints:
    """Return the fold of each graph by which a fit chooses and learns.

    Classes are spread evenly over the folds, and those of several targets as evenly as possible.
    The folds of many graphs depend on the graphs alone, so that equal graphs are held out
    together, and training out of core has the same folds.
    """
    if len(targets) > MANY_GRAPHS:
        return signature_folds(graphs.coloring.signatures, integer_seed(seed), N_FOLDS)
    if len(targets.names) > 1 and not (targets.classes is None and targets.known.all()):
        return balanced_folds(targets, N_FOLDS, seed)
    if targets.classes is None:
        return shuffled_folds(len(targets), seed)
    return stratified_folds(targets.values[:, 0], seed)


def stratified_folds(codes: Array, seed: np.random.SeedSequence, n_folds: int = N_FOLDS) -> Ints:
    """Return stratified folds; fewer than requested if a class has fewer graphs."""
    fewest = int(np.bincount(codes).min())
    if fewest < 2:
        raise ValueError(
            "a class has only one graph, and probabilities and alpha are learned from out-of-fold "
            "predictions; give every class at least two, or give alpha, and no probability"
        )
    return stratified(codes, min(n_folds, fewest), integer_seed(seed))


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


def balanced_folds(targets: Targets, n_folds: int, seed: np.random.SeedSequence) -> Ints:
    """Return folds over which every class of every target is spread evenly.

    Of numbers it is the known values that are spread. The rarest class goes first, each of its
    graphs into the fold that lacks most of this class, and, among equals, most graphs at all.
    """
    # Which of all classes of all targets each graph has; of numbers, which are known.
    marks = targets.known
    if targets.classes is not None:
        columns = [
            targets.values[:, t, None] == np.arange(len(classes))
            for t, classes in enumerate(targets.classes)
        ]
        marks = np.hstack(columns)
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


def stratified(y: Array, n_folds: int, random_state: int) -> Ints:
    """Return the fold of each sample: the shuffled folds of ``StratifiedKFold``."""
    from sklearn.model_selection import StratifiedKFold  # slow to import

    return held_out_once(StratifiedKFold(n_folds, shuffle=True, random_state=random_state), y)


# ---------------------------------------------------------------------- nested folds


def nested_folds(y: Array, n_outer: int, n_inner: int, seed: int) -> Folds:
    """Make stratified, shuffled folds of folds.

    Returns
    -------
    (n_outer, n) int64
        Row o: the inner fold of each training graph of outer fold o, -1 for its test graphs.
    """
    # Every class must be in every outer fold, and in every inner fold of what is left.
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
    folds = np.full((n_outer, len(y)), -1)
    outer = stratified(y, n_outer, seed)
    for o in range(n_outer):
        train = outer != o
        folds[o, train] = stratified(y[train], n_inner, seed + 1 + o)
    return folds


def enough_for_nested_folds(n_members: int, n_outer: int, n_inner: int) -> bool:
    """Return whether a class of so many graphs reaches every outer and every inner fold."""
    left = n_members - -(-n_members // n_outer)  # the largest outer fold is tested on
    return n_members >= n_outer and left >= n_inner


def outer_rows(outer: Any, inner: Any, y: Any, groups: Array | None = None) -> list[Folds]:
    """Make one row for each split of the outer splitter: inner folds, and what is tested."""
    splits = list(outer.split(np.zeros(len(y)), y, groups))
    if groups is not None:
        n_groups = min(len(np.unique(groups[train])) for train, _ in splits)
        if n_groups < 2:
            raise ValueError(
                "an outer fold leaves training graphs of one group only, so no inner fold can be "
                "held out; use fewer folds, smaller groups or another split"
            )
        if getattr(inner, "n_splits", 0) > n_groups:
            inner = copy.copy(inner)
            inner.n_splits = n_groups
    rows = []
    for train, test in splits:
        row = np.full(len(y), UNUSED)
        row[test] = TEST
        row[train] = held_out_once(inner, y[train], None if groups is None else groups[train])
        rows.append(row)
    return rows


def held_out_once(cv: Any, y: Any, groups: Array | None = None) -> Folds:
    """Return the fold of each graph, for a splitter that holds each graph out exactly once."""
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


# ---------------------------------------------------------------------- splits


@dataclass(frozen=True)
class LastFold:
    """An outer splitter of which only the last split counts, which is enough for large datasets.

    Attributes
    ----------
    of : int or splitter
        A number of folds, or one of scikit-learn's splitters.
    """

    of: Any

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Return the last split of a splitter."""
        return list(self.of.split(X, y, groups))[-1:]


@dataclass(frozen=True)
class TimeSpans:
    """Spans of time, for graphs in the order of time; equal times are never parted.

    Attributes
    ----------
    n : int
        How many parts are held out, at most; fewer where there are too few different times.
    forward : bool
        Whether each part is tested by what was trained on all before it, or on all others.
    """

    n: int
    forward: bool = False

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Return training and held-out graphs of each part; `groups` are the times."""
        every = np.arange(len(X))
        starts = np.flatnonzero(groups[1:] != groups[:-1]) + 1  # of times after the first
        if self.forward:
            starts = starts[1:]  # two times at least to train on, so that one can be held out
        # About equal parts, cut at some of the places that are allowed.
        n_parts = self.n + self.forward
        ideal = np.arange(1, n_parts) * len(X) / n_parts
        cuts = {int(starts[np.abs(starts - place).argmin()]) for place in ideal if len(starts)}
        spans = [every[a:b] for a, b in itertools.pairwise([0, *sorted(cuts), len(X)])]
        if self.forward:
            return [(every[: span[0]], span) for span in spans[1:]]
        return [(np.setdiff1d(every, span), span) for span in spans]


def fold_rows(
    inner: Any, outer: Any, targets: Targets, groups: Array | None = None, seed: Any = None
) -> Folds:
    """Return rows as in `FitTask`: one for each outer fold, and one of all graphs.

    Parameters
    ----------
    inner, outer : int, splitter or None
        Numbers of folds, or scikit-learn's splitters; if `outer` is None, nothing is scored.
    targets : Targets
        Folds are stratified by class, as far as possible.
    groups : (n,), optional
    seed : int or None
    """
    from sklearn.model_selection import check_cv  # slow to import

    if groups is not None:  # which stay together, so there are no more folds than groups
        n_groups = len(np.unique(groups))
        for name, folds in (("outer_cv", outer), ("cv", inner)):
            if isinstance(folds, Integral) and int(folds) > n_groups:
                raise ValueError(
                    f"{name}={folds}: there are {n_groups} groups, and graphs of one group are "
                    "held out together; give fewer folds, or smaller groups"
                )
            if isinstance(folds, Integral):  # inner folds have what an outer one leaves
                n_groups -= -(-n_groups // int(folds))
    several = len(targets.names) > 1
    y = targets if several else targets.values[:, 0]
    inner = _splitter(inner, 1, targets, groups, seed)
    inner = check_cv(inner, None if several else y, classifier=targets.classify)
    rows = [held_out_once(inner, y, groups)]
    if outer is not None:
        outer = _splitter(outer, 0, targets, groups, seed)
        rows = [*outer_rows(outer, inner, y, groups), *rows]
    for row in rows if several else ():
        for t, name in enumerate(targets.names):
            if len(np.unique(row[targets.known[:, t] & (row >= 0)])) < 2:
                raise ValueError(
                    f"target {name!r} is known in too few graphs to be in two folds; leave it "
                    "out, or choose fewer folds or another split"
                )
    return np.array(rows)


def _splitter(
    given: Any, stream: int, targets: Targets, groups: Array | None, given_seed: Any
) -> Any:
    """Return the splitter for a number of folds, or the one that is given."""
    from sklearn import model_selection  # slow to import

    if isinstance(given, LastFold):
        return LastFold(_splitter(given.of, stream, targets, groups, given_seed))
    if not isinstance(given, Integral):
        return given
    n_folds, seed = int(given), integer_seed(seed_sequence(given_seed), stream)
    several = len(targets.names) > 1
    kind, of_groups = model_selection.KFold, model_selection.GroupKFold
    if targets.classify and not several:
        kind, of_groups = model_selection.StratifiedKFold, model_selection.StratifiedGroupKFold
    if groups is not None:
        return of_groups(n_folds, shuffle=True, random_state=seed)
    if several:
        return BalancedKFold(n_folds, seed)
    if stream:  # inner folds are in the order of the graphs
        return n_folds
    return kind(n_folds, shuffle=True, random_state=seed)


@dataclass(frozen=True)
class BalancedKFold:
    """Folds with every class of every target alike, as one of scikit-learn's splitters."""

    n_splits: int
    random_state: int | None = None

    def split(self, X: Any, y: Targets, groups: Any = None) -> Iterator[tuple[Ints, Ints]]:
        """Yield the graphs that are trained on, and those that are held out."""
        fold = balanced_folds(y, self.n_splits, seed_sequence(self.random_state))
        for f in range(fold.max() + 1):
            yield np.flatnonzero(fold != f), np.flatnonzero(fold == f)


def check_groups(groups: Any, n: int, name: str = "group") -> Array:
    """Return the number of each graph's group (n,), or raise ValueError."""
    found = np.asarray(groups)
    if found.shape != (n,):
        raise ValueError(f"groups has shape {found.shape}, expected ({n},): one for each graph")
    names, codes = np.unique(found.astype(str), return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            f"all graphs have one {name}, {names[0] or 'that without rings'}, and graphs of one "
            "are held out together; choose another split"
        )
    return np.asarray(codes)


_IN_A_FOLD = 5  # graphs in an inner fold, where the target is a number and there are enough
#: Graphs of each class of each of several targets, so that two nested folds have one each.
LEAST_OF_SEVERAL = 4
_LEAST_IN_TWO_FOLDS = 4  # graphs of an outer fold, of two, so that an inner one has two
#: What a split by groups is called whose groups are Murcko scaffolds.
SCAFFOLD = "scaffold"


@dataclass(frozen=True)
class Split:
    """The split of a table: random, or by scaffold, group or time.

    Attributes
    ----------
    kind : {"random", "group", "time"}
        Anyhow; graphs of a group together; or graphs after all that a model was trained on.
    by : (n,) or None
        The group, or the time, of each graph.
    name : str
        What people call it: "random", "scaffold", or the column that has groups or times.
    """

    kind: Literal["random", "group", "time"] = "random"
    by: Array | None = None
    name: str = "random"

    def order(self, n: int) -> Array:
        """Return the order of graphs: by time in a split by time."""
        return np.arange(n) if self.kind != "time" else np.argsort(_times(self.by), kind="stable")

    def splitters(self, n_folds: int, targets: Targets, seed: int) -> tuple[Any, Any]:
        """Return inner and outer splitters of nested cross-validation with `n_folds` of each.

        In time, each outer fold is tested by what was trained on all before it, and inner folds
        are spans of time.
        """
        from sklearn.model_selection import KFold, StratifiedKFold  # slow to import

        if self.kind == "time":
            return TimeSpans(n_folds), TimeSpans(n_folds, forward=True)
        if self.kind == "group" or len(targets.names) > 1:
            return n_folds, n_folds
        kind = StratifiedKFold if targets.classify else KFold
        return kind(n_folds, shuffle=True, random_state=seed), n_folds  # files are often sorted

    def n_folds(self, n_graphs: int, most: int) -> int:
        """Return the number of nested folds that the groups allow, at most so many."""
        if self.groups is None:
            return most
        n_groups = len(np.unique(check_groups(self.groups, n_graphs, self.name)))
        if n_groups < 4:
            raise ValueError(
                f"there are only {n_groups} different values of {self.name}, too few to hold some "
                "out twice; choose another split"
            )
        return min(most, n_groups // 2)

    def nested(
        self, targets: Targets, n_outer: int = 10, n_inner: int = N_FOLDS, seed: int = 0
    ) -> Folds:
        """Make folds of folds as `nested_folds` does: each graph is tested in one row.

        There are fewer of both where a class, the groups or the graphs are too few. How many outer
        folds there are does not depend on the number of inner ones.
        """
        if self.kind == "time":
            raise ValueError("in time not every graph can be held out; choose another split")
        n, y = len(targets), targets.of_target(0)
        if len(targets.names) > 1:
            targets.check_learnable(LEAST_OF_SEVERAL)
        elif not targets.classify:
            if len(np.unique(y)) < 2:
                raise ValueError("the target has one value only; there is nothing to learn")
            if n < 2 * _LEAST_IN_TWO_FOLDS:
                raise ValueError(f"{n} graphs are too few for nested folds; add some")
            # R2 and rank correlation of two or three graphs say little: so folds have about five.
            n_outer = max(possible_folds(n // _IN_A_FOLD, n_outer), default=2)
        elif self.kind == "random":
            fewest = int(np.unique(y, return_counts=True)[1].min())
            n_outer = max(possible_folds(fewest, n_outer), default=2)
            left = max(fewest - -(-fewest // n_outer), 2)
            return nested_folds(y, n_outer, min(n_inner, n_outer, left), seed)
        n_outer = self.n_folds(n, n_outer)
        groups = self.groups
        if groups is not None:
            groups = check_groups(groups, n, self.name)
        inner, _ = self.splitters(min(n_inner, n_outer), targets, seed)
        return fold_rows(inner, n_outer, targets, groups, seed)[:-1]

    def of(self, some: Array) -> Split:
        """Return the split of some of the graphs, which keep their order."""
        by = None if self.by is None else np.asarray(self.by)[some]
        return Split(self.kind, by, self.name)

    @property
    def groups(self) -> Array | None:
        """The group, or the time, of each graph: graphs that have it in common stay together."""
        return _times(self.by) if self.kind == "time" else self.by

    @property
    def words(self) -> str:
        """The split in words that follow a score."""
        if self.kind == "random":
            return "random split"
        if self.kind == "time":
            return f"split by time ({self.name})"
        return "scaffold split" if self.name == SCAFFOLD else f"split by group ({self.name})"


def possible_folds(n_members: int, most: int) -> list[int]:
    """Return the numbers of outer folds, up to `most`, that so many members allow.

    There are as many inner folds, but no more than `N_FOLDS`.
    """
    numbers = range(2, most + 1)
    return [k for k in numbers if enough_for_nested_folds(n_members, k, min(k, N_FOLDS))]


def _times(values: Any) -> Array:
    """Return times as numbers: where not all are numbers, they are dates in ISO format."""
    found = np.asarray(values, dtype=object)
    missing = [i for i, one in enumerate(found) if one is None or str(one).strip() in ("", "NA")]
    if missing:
        raise ValueError(f"the time of graph {missing[0]} is missing; leave such graphs out")
    numbers = [number_in(one) for one in found]
    odd = [i for i, number in enumerate(numbers) if number is None or not np.isfinite(number)]
    if 2 * len(odd) < len(found):
        if odd:
            raise ValueError(f"the time of graph {odd[0]}, {found[odd[0]]!r}, is not a number")
        times = np.array(numbers, dtype=np.float64)
    else:
        times = np.empty(len(found))
        for i, one in enumerate(found):
            try:
                date = datetime.fromisoformat(str(one).strip()).replace(tzinfo=None)
                times[i] = date.timestamp()
            except ValueError:
                raise ValueError(
                    f"the time of graph {i}, {one!r}, is neither a number nor a date in ISO "
                    "format, as 2026-01-31"
                ) from None
    if len(np.unique(times)) < 2:
        raise ValueError(f"all graphs have one time, {found[0]}; choose another split")
    return times
