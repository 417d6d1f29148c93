"""Several targets of the same graphs, of which some values are unknown.

`SeveralTargets` says what the targets are: their names, the classes of each or that they are
numbers, and which values are known. Readouts see one matrix of all of them, NaN where a value is
unknown (`fdgnn.readout.groups`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats, Ints, is_unknown
from fdgnn.caching import cached_property
from fdgnn.graphs import GraphBatch
from fdgnn.readout.groups import Mask
from fdgnn.readout.metrics import rarest_share
from fdgnn.readout.rare import rare_class, tell_rare
from fdgnn.readout.targets import as_given, check_label_types, check_one_each, coded, sample_weights


@dataclass(frozen=True, eq=False)
class Target:
    """One of several targets.

    Attributes
    ----------
    name : str
    classes : (n_classes,) or None
        None for a number.
    outputs : slice
        Which of a model's real-valued outputs speak for it.
    """

    name: str
    classes: Array | None
    outputs: slice


@dataclass(frozen=True, eq=False)
class SeveralTargets:
    """The targets of graphs, a column each; indexing takes some of the graphs.

    Attributes
    ----------
    names : tuple of str
    values : (n_graphs, n_targets)
        Of classes their numbers, -1 where the class is unknown; or real numbers, NaN where they
        are.
    classes : tuple of arrays, or None
        The classes of each target; None for numbers.
    """

    names: tuple[str, ...]
    values: Array
    classes: tuple[Array, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> SeveralTargets:
        return SeveralTargets(self.names, self.values[rows], self.classes)

    @cached_property
    def known(self) -> Mask:
        """Whether the value of each graph for each target is known, (n_graphs, n_targets)."""
        return np.asarray(~np.isnan(self.values) if self.classes is None else self.values >= 0)

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """What each target is, without its values."""
        if self.classes is None:
            return tuple(Target(n, None, slice(t, t + 1)) for t, n in enumerate(self.names))
        widths = [1 if len(each) == 2 else len(each) for each in self.classes]
        ends = np.cumsum(widths).tolist()
        parts = zip(self.names, self.classes, widths, ends, strict=True)
        return tuple(Target(n, each, slice(end - w, end)) for n, each, w, end in parts)

    @property
    def coded(self) -> Floats:
        """What readouts are fitted to, (n_graphs, q), NaN where it is unknown."""
        if self.classes is None:
            return np.asarray(self.values, dtype=np.float64)
        columns = []
        for t, classes in enumerate(self.classes):
            known = self.known[:, t]
            column = np.full((len(self), 1 if len(classes) == 2 else len(classes)), np.nan)
            column[known] = coded(self.values[known, t], len(classes))
            columns.append(column)
        return np.hstack(columns)

    def of_graphs(self, target: int) -> Array:
        """Values of one target for the graphs for which it is known: classes, or numbers."""
        values: Array = self.values[self.known[:, target], target]
        return values if self.classes is None else self.classes[target][values]

    def parts(self, outputs: Floats) -> list[Floats]:
        """Split outputs (..., n_graphs, q) by targets: of the graphs for which each is known."""
        return [
            outputs[..., self.known[:, t], target.outputs] for t, target in enumerate(self.targets)
        ]

    def joined(self, parts: Sequence[Floats]) -> Floats:
        """Put parts (n_known, q) of each target together: (n_graphs, q), NaN where unknown."""
        outputs = np.full((len(self), self.targets[-1].outputs.stop), np.nan)
        for t, (target, part) in enumerate(zip(self.targets, parts, strict=True)):
            outputs[self.known[:, t], target.outputs] = part
        return outputs

    def check_learnable(self, needed: int = 2) -> None:
        """Raise ValueError for a target with too few known values, or with one class only."""
        for t, name in enumerate(self.names):
            n_known = int(self.known[:, t].sum())
            if n_known == 0:
                raise ValueError(f"target {name!r} is unknown for all graphs; leave it out")
            found, counts = np.unique(self.of_graphs(t), return_counts=True)
            if len(found) == 1:
                raise ValueError(
                    f"target {name!r} has one value only, {found[0]!s}, in the {n_known} graphs "
                    "for which it is known; there is nothing to learn, so leave it out"
                )
            fewest = n_known if self.classes is None else int(counts.min())
            if fewest < needed:
                what = "values" if self.classes is None else f"graphs of {found[counts.argmin()]!s}"
                raise ValueError(
                    f"target {name!r} has {fewest} known {what}, too few to be held out; add "
                    "some, or leave it out"
                )

    def usable(self, sample_weight: Any) -> Mask:
        """Tell which graphs count: those with a known value, and a weight above zero."""
        weights = sample_weights(sample_weight, len(self))
        some = self.known.any(axis=1)
        return np.asarray(some if weights is None else some & (weights > 0))

    def rarest(self) -> Array | None:
        """Class numbers of the target that has the rarest class; None for numbers."""
        if self.classes is None:
            return None
        each: list[Array] = [self.values[known, t] for t, known in enumerate(self.known.T)]
        return min(each, key=rarest_share)

    def tell_rare_class(self, heeded: bool = False, stacklevel: int = 3) -> None:
        """Warn if ROC AUC has taken the place of accuracy, because a target has a rare class."""
        for t, name in enumerate(self.names):
            found = rare_class(self.of_graphs(t))
            if found is not None:
                whose = f"class {found[0]} of target {name!r}"
                tell_rare(whose, found[1], heeded, stacklevel + 1)
                return

    def of_each(self, weights: Floats | None) -> list[tuple[Floats, Array, Floats | None]]:
        """Coded targets, values and weights of each target, of graphs for which it is known.

        Weights are those of all graphs (n_graphs,), or of all outputs (n_graphs, q).
        """
        found = []
        for t, own in enumerate(self.parts(self.coded)):
            known, first = self.known[:, t], self.targets[t].outputs.start
            each = weights if weights is None or weights.ndim == 1 else weights[:, first]
            found.append((own, self.values[known, t], None if each is None else each[known]))
        return found

    def weights(self, given: Any, class_weight: Any = None) -> Floats | None:
        """Weights of graphs (n_graphs,), or of each output (n_graphs, q) for weights of classes.

        Each target has class weights of its own, of mean 1 over the graphs for which it is known.
        """
        if class_weight is None:
            return sample_weights(given, len(self))
        if given is not None:
            sample_weights(given, len(self))  # for its errors
        weights = np.ones((len(self), self.targets[-1].outputs.stop))
        for t, target in enumerate(self.targets):
            known = self.known[:, t]
            own = None if given is None else np.asarray(given)[known]
            try:
                found = sample_weights(own, int(known.sum()), self.of_graphs(t), class_weight)
            except ValueError as error:
                raise ValueError(f"target {target.name!r}: {error}") from None
            assert found is not None
            weights[known, target.outputs] = found[:, None]
        return weights


# ---------------------------------------------------------------------- from what users have


def class_targets(y: Any, graphs: GraphBatch) -> SeveralTargets:
    """Read several columns of class labels, None or NaN where they are unknown."""
    if isinstance(y, SeveralTargets):
        return y
    names, columns = _columns(y, graphs)
    _check_label_types(y)
    read = [_classes(name, column) for name, column in zip(names, columns, strict=True)]
    return SeveralTargets(
        names, np.stack([codes for codes, _ in read], axis=1), tuple(each for _, each in read)
    )


def _check_label_types(y: Any) -> None:
    """Raise ValueError if a column has bools beside numbers, which NumPy would convert."""
    if isinstance(y, Mapping) or hasattr(y, "columns"):
        for key in y if isinstance(y, Mapping) else y.columns:
            check_label_types(y[key], f"target {str(key)!r}")
    elif not isinstance(y, np.ndarray):
        for t, column in enumerate(zip(*y, strict=True)):
            check_label_types(column, f"target '{t}'")


def number_targets(y: Any, graphs: GraphBatch) -> SeveralTargets:
    """Read several columns of numbers, None or NaN where they are unknown."""
    if isinstance(y, SeveralTargets):
        return y
    names, columns = _columns(y, graphs)
    read = [_numbers(name, column) for name, column in zip(names, columns, strict=True)]
    return SeveralTargets(names, np.stack(read, axis=1))


def n_columns(y: Any) -> int | None:
    """Tell how many columns targets have, or None if they are one list."""
    if isinstance(y, SeveralTargets):
        return len(y.names)
    if isinstance(y, Mapping):
        return len(y)
    if hasattr(y, "columns"):  # a data frame
        return len(y.columns)
    shape = np.shape(y)
    return shape[1] if len(shape) == 2 else None


def _columns(y: Any, graphs: GraphBatch) -> tuple[tuple[str, ...], list[Array]]:
    """Names of the columns, and the columns with an entry for each graph."""
    if isinstance(y, Mapping) or hasattr(y, "columns"):
        keys = list(y) if isinstance(y, Mapping) else list(y.columns)
        columns = [as_given(y[key]) for key in keys]
        names = tuple(map(str, keys))
    else:
        table = as_given(y)
        columns = list(table.T)
        names = tuple(map(str, range(len(columns))))
    if len(names) == 0:
        raise ValueError("y has no columns; give at least one target")
    if len(set(names)) < len(names):
        raise ValueError(f"y has several columns called {_twice(names)!r}; give each its own name")
    for column in columns:
        check_one_each(graphs, column)
    return names, columns


def _twice(names: Sequence[str]) -> str:
    return next(name for i, name in enumerate(names) if name in names[:i])


def _known(column: Array) -> Mask:
    """Whether an entry is neither None nor NaN."""
    if column.dtype.kind == "f":
        return np.asarray(~np.isnan(column))
    if column.dtype.kind != "O":
        return np.ones(len(column), dtype=bool)
    return np.array([not is_unknown(value) for value in column.tolist()], dtype=bool)


def _classes(name: str, column: Array) -> tuple[Ints, Array]:
    """Class number of each graph, -1 where it is unknown, and the classes."""
    check_label_types(column, f"target {name!r}")
    known = _known(column)
    values = column[known].tolist()
    labels: Array = np.array(values) if values else np.empty(0, dtype=np.int64)
    if labels.dtype.kind not in "biufU":
        raise ValueError(f"target {name!r} has values that are neither numbers nor text")
    if labels.dtype.kind == "f":
        if not (labels == np.round(labels)).all():
            part = labels[labels != np.round(labels)][0]
            raise ValueError(
                f"target {name!r} has the value {part:g}, but classes are whole numbers or text; "
                "for quantities, take a regressor"
            )
        labels = labels.astype(np.int64)  # whole numbers beside NaN can be nothing but reals
    classes, found = np.unique(labels, return_inverse=True)
    codes = np.full(len(column), -1, dtype=np.int64)
    codes[known] = found
    return codes, classes


def _numbers(name: str, column: Array) -> Floats:
    known = _known(column)
    numbers = np.full(len(column), np.nan)
    try:
        numbers[known] = column[known].astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"target {name!r} has values that are not numbers") from None
    if np.isinf(numbers).any():
        first = int(np.argmax(np.isinf(numbers)))
        raise ValueError(f"target {name!r} of graph {first} is infinite; leave such values out")
    return numbers


# ---------------------------------------------------------------------- folds, scores


def balanced_folds(targets: SeveralTargets, n_folds: int, seed: np.random.SeedSequence) -> Ints:
    """Fold of each graph, so that every class of every target is spread evenly over the folds.

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


def _marks(targets: SeveralTargets) -> Mask:
    """Which of all classes of all targets each graph has; of numbers, which are known."""
    if targets.classes is None:
        return targets.known
    columns = [
        targets.values[:, t, None] == np.arange(len(classes))
        for t, classes in enumerate(targets.classes)
    ]
    return np.hstack(columns)


def scores_by_target(
    metric: Callable[[Array, Floats, Floats | None], Floats],
    targets: SeveralTargets,
    outputs: Floats,
    weights: Floats | None = None,
) -> Floats:
    """Score outputs (..., n_graphs, q) for each target, where it is known: (..., n_targets).

    NaN for a target of which nothing is known.
    """
    found = np.full((*outputs.shape[:-2], len(targets.names)), np.nan)
    for t, own in enumerate(targets.parts(outputs)):
        known = targets.known[:, t]
        if known.any():
            each = None if weights is None else weights[known]
            found[..., t] = metric(targets.values[known, t], own, each)
    return found


# ---------------------------------------------------------------------- for fitted models


def coded_like(known: Sequence[Target], y: Any, graphs: GraphBatch) -> SeveralTargets:
    """Read targets of graphs for a model, whose class numbers they get.

    A class that the model does not know has a number beyond its own.
    """
    names, columns = _columns(y, graphs)
    if len(names) != len(known):
        raise ValueError(f"y has {len(names)} columns, but the model has {len(known)} targets")
    if known[0].classes is None:
        return number_targets(y, graphs)
    found = []
    for name, column, target in zip(names, columns, known, strict=True):
        codes, classes = _classes(name, column)
        assert target.classes is not None
        number = {label: c for c, label in enumerate(target.classes.tolist())}
        own = [number.get(label, len(number)) for label in classes.tolist()]
        found.append(np.append(own, -1)[codes])  # unknown ones have the code -1
    classes_of = tuple(target.classes for target in known if target.classes is not None)
    return SeveralTargets(names, np.stack(found, axis=1).astype(np.int64), classes_of)


def side_by_side(columns: Sequence[Array]) -> Array:
    """Put answers (n_graphs,) for each target into one table (n_graphs, n_targets).

    Where they are of different kinds, as objects.
    """
    if len({column.dtype.kind for column in columns}) == 1:
        return np.stack(columns, axis=1)
    table: Array = np.empty((len(columns[0]), len(columns)), dtype=object)
    for t, column in enumerate(columns):
        table[:, t] = column.tolist()
    return table
