"""Targets of graphs: read, checked, coded as numbers for a readout, and weighted.

All models have targets of one form: a column for each target, in which values may be unknown, and a
coding (n_graphs, q) that readouts are fitted to, NaN where the value is unknown. A single target is
the case of one column. Classes are coded as -1/+1, one column for two classes and one for each of
more (one-hot); a numeric target is its own code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from fdgnn.arrays import Array, Floats, Ints, is_unknown, largest_of
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.descriptors import number_in
from fdgnn.limits import MAX_NUMBER
from fdgnn.records import cached_property
from fdgnn.schema import check_choice
from fdgnn.texts import cut

Mask = npt.NDArray[np.bool_]

#: How numeric targets may be transformed before they are learned. pIC50 is that of a
#: concentration in nM: 9 - log10(concentration).
TRANSFORMS = ("log10", "pIC50")


def transformed(values: Floats, transform: str | None) -> Floats:
    """Return numbers on the scale on which they are learned; NaN stays NaN."""
    if transform is None:
        return values
    logarithms = np.log10(values)
    return np.asarray(9.0 - logarithms if transform == "pIC50" else logarithms)


def transformed_back(values: Floats, transform: str | None) -> Floats:
    """Undo `transformed`."""
    if transform is None:
        return values
    return np.asarray(10.0 ** (9.0 - values if transform == "pIC50" else values))


@dataclass(frozen=True, eq=False)
class Target:
    """One target.

    Attributes
    ----------
    name : str
        Empty for a target without a name.
    classes : (n_classes,) or None
        None for a numeric target.
    columns : slice
        The target's columns among the coded targets, and so among a model's outputs.
    transform : str or None
        The scale of a numeric target's codes and outputs, one of `TRANSFORMS`.
    """

    name: str
    classes: Array | None
    columns: slice
    transform: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets of graphs, one column for each target; indexing selects graphs.

    Attributes
    ----------
    names : tuple of str
    values : (n_graphs, n_targets)
        Class codes, -1 for missing labels; or numbers, NaN for missing values.
    classes : tuple of arrays, or None
        The classes of each target; None for numeric targets.
    flat : bool
        Whether y was one-dimensional; predictions then are, too.
    transform : str or None
        The scale of numeric values, one of `TRANSFORMS`.
    """

    names: tuple[str, ...]
    values: Array
    classes: tuple[Array, ...] | None = None
    flat: bool = False
    transform: str | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Targets:
        return replace(self, values=self.values[rows])

    def transformed(self, transform: str | None) -> Targets:
        """Return numeric targets on the scale on which they are learned; done once, if at all.

        Raises
        ------
        ValueError
            The targets are classes, or a value is not positive, so that it has no logarithm.
        """
        if transform in (None, self.transform):
            return self
        check_choice("transform", transform, TRANSFORMS)
        if self.classes is not None or self.transform is not None:
            what = "classes" if self.classes is not None else f"transformed by {self.transform}"
            raise ValueError(f"transform={transform!r} is for numbers, but the targets are {what}")
        bad = np.argwhere(self.values <= 0)
        if len(bad):
            graph, t = bad[0].tolist()
            who = f"target {self.names[t]!r}" if self.names[t] else "y"
            raise ValueError(
                f"{who} of graph {graph} is {self.values[graph, t]:g}, and transform={transform!r} "
                f"needs numbers above 0; {len(bad)} are not, so leave them out or learn y as it is"
            )
        return replace(self, values=transformed(self.values, transform), transform=transform)

    @property
    def classify(self) -> bool:
        """Whether the targets are classes."""
        return self.classes is not None

    @cached_property
    def known(self) -> Mask:
        """Whether the value of each graph for each target is known, (n_graphs, n_targets)."""
        return np.asarray(~np.isnan(self.values) if self.classes is None else self.values >= 0)

    @cached_property
    def each(self) -> tuple[Target, ...]:
        """The targets without their values."""
        each = self.classes or [None] * len(self.names)
        found, start = [], 0
        for name, own in zip(self.names, each, strict=True):
            end = start + (1 if own is None or len(own) == 2 else len(own))
            found.append(Target(name, own, slice(start, end), transform=self.transform))
            start = end
        return tuple(found)

    @property
    def n_outputs(self) -> int:
        """q, the number of columns of the coded targets."""
        return int(self.each[-1].columns.stop)

    @cached_property
    def coded(self) -> Floats:
        """Coded targets (n_graphs, q), NaN where a value is unknown."""
        if self.classes is None:
            return np.asarray(self.values, dtype=np.float64)
        columns = []
        for t, classes in enumerate(self.classes):
            column = coded(self.values[:, t], len(classes))
            if not (known := self.known[:, t]).all():
                column[~known] = np.nan
            columns.append(column)
        return columns[0] if len(columns) == 1 else np.hstack(columns)

    def of_target(self, target: int) -> Array:
        """Return the known values of one target: class labels, or numbers."""
        values: Array = self.values[self.known[:, target], target]
        return values if self.classes is None else self.classes[target][values]

    def check_learnable(self, needed: int = 2) -> None:
        """Raise ValueError for a target with too few known values, or with one class only."""
        for t, name in enumerate(self.names):
            who = f"target {name!r}" if name else "y"
            n_known = int(self.known[:, t].sum())
            if n_known == 0:
                raise ValueError(f"{who} is unknown for all graphs; leave it out")
            found, counts = np.unique(self.of_target(t), return_counts=True)
            if len(found) == 1:
                raise ValueError(
                    f"{who} has one value only, {found[0]!s}, in the {n_known} graphs "
                    "for which it is known; there is nothing to learn, so leave it out"
                )
            fewest = n_known if self.classes is None else int(counts.min())
            if fewest < needed:
                what = "values" if self.classes is None else f"graphs of {found[counts.argmin()]!s}"
                raise ValueError(
                    f"{who} has {fewest} known {what}, too few to be held out; add "
                    "some, or leave it out"
                )

    def rarest(self) -> Array | None:
        """Return the class codes of the target with the rarest class; None for numbers."""
        if self.classes is None:
            return None
        each: list[Array] = [self.values[known, t] for t, known in enumerate(self.known.T)]
        return min(each, key=lambda codes: float(np.bincount(codes).min() / len(codes)))

    def weights(self, sample_weight: Any, class_weight: Any = None) -> Floats | None:
        """Return weights (n_graphs,); of several targets with class weights (n_graphs, q)."""
        given = None if sample_weight is None else checked_weights(sample_weight, len(self))
        if class_weight is None:
            return given
        own = np.ones(len(self)) if given is None else given
        if len(self.names) == 1 and self.known.all():
            return own * weights_of_classes(class_weight, self.of_target(0))
        weights = np.ones((len(self), self.n_outputs))
        for t, target in enumerate(self.each):
            known = self.known[:, t]
            try:
                of_graphs = checked_weights(own[known], int(known.sum()))
                of_graphs = of_graphs * weights_of_classes(class_weight, self.of_target(t))
            except ValueError as error:
                raise ValueError(f"target {target.name!r}: {error}") from None
            weights[known, target.columns] = of_graphs[:, None]
        return weights


# ---------------------------------------------------------------------- reading y


def read_targets(
    y: Any, graphs: GraphBatch, classify: bool, transform: str | None = None
) -> Targets:
    """Read the targets of a `fit`: an array, or columns with unknown values.

    Numbers are returned on the scale of `transform`.

    Raises
    ------
    ValueError
        y does not have a value for each graph, has values that cannot be learned, or one class.
    """
    if isinstance(y, Targets):
        y.check_learnable()
        return y.transformed(transform)
    found = class_targets(y, graphs) if classify else number_targets(y, graphs)
    if not found.flat:
        found.check_learnable()
    elif found.classes is not None and len(found.classes[0]) < 2:
        check_two_classes(found.classes[0])
    return found.transformed(transform)


def class_targets(y: Any, graphs: GraphBatch) -> Targets:
    """Read class labels; None or NaN are unknown ones of several columns, else an error."""
    columns = _columns(y, graphs, flatten=True)
    codes, classes = zip(*[column.classes() for column in columns], strict=True)
    values = codes[0][:, None] if len(columns) == 1 else np.stack(codes, axis=1)
    return Targets(tuple(column.name for column in columns), values, classes, columns[0].flat)


def number_targets(y: Any, graphs: GraphBatch) -> Targets:
    """Read numbers; None or NaN are unknown ones of several columns, else an error."""
    columns = _columns(y, graphs)
    values = np.stack([column.numbers() for column in columns], axis=1)
    return Targets(tuple(column.name for column in columns), values, flat=columns[0].flat)


def targets_like(known: Sequence[Target], y: Any, graphs: GraphBatch) -> Targets:
    """Read targets for a fitted model, coded by the model's classes.

    A class that is unknown to the model has a code beyond its own.
    """
    if isinstance(y, Targets):
        return y
    columns = _columns(y, graphs)
    if len(columns) != len(known):
        raise ValueError(f"y has {len(columns)} columns, but the model has {len(known)} targets")
    if known[0].classes is None:
        return number_targets(y, graphs).transformed(known[0].transform)
    found = []
    for column, target in zip(columns, known, strict=True):
        codes, classes = column.classes()
        assert target.classes is not None
        number = {label: c for c, label in enumerate(target.classes.tolist())}
        own = [number.get(label, len(number)) for label in classes.tolist()]
        found.append(np.append(own, -1)[codes])  # unknown values have the code -1
    names = tuple(column.name for column in columns)
    classes_of = tuple(target.classes for target in known if target.classes is not None)
    return Targets(names, np.stack(found, axis=1).astype(np.int64), classes_of)


class _Column(NamedTuple):
    """The values of one target as the user gives them, and as an array with one for each graph.

    The values of a flat y are all known; those of one of several columns may be None or NaN.
    """

    name: str
    given: Any
    values: Array
    flat: bool

    @property
    def who(self) -> str:
        """The target in messages."""
        return "y" if self.flat else f"target {self.name!r}"

    def known(self) -> Mask:
        """Return whether an entry is neither None nor NaN; raise ValueError if a flat y lacks one.

        Infinite numbers are errors.
        """
        values = self.values
        if values.dtype.kind == "f":
            known, wrong, what = ~np.isnan(values), np.isinf(values), "infinite"
            if self.flat:
                wrong, what = ~np.isfinite(values), "NaN or infinite"
        elif values.dtype.kind == "O":
            known = np.array([not is_unknown(value) for value in values.tolist()], dtype=bool)
            wrong, what = ~known & self.flat, "missing"
        else:
            return np.ones(len(values), dtype=bool)
        if wrong.any():
            g = int(np.argmax(wrong))
            where = f"y[{g}]" if self.flat else f"{self.who} of graph {g}"
            raise ValueError(f"{where} is {what}; leave such graphs out")
        return known

    def classes(self) -> tuple[Ints, Array]:
        """Return the class code of each graph, -1 where the class is unknown, and the classes."""
        if self.values.dtype.kind not in "iubU" or not isinstance(self.given, np.ndarray):
            check_label_types(self.given, self.who)
        known, labels = self.known(), self.values
        if labels.dtype.kind not in "iubU":
            found = labels[known].tolist()
            labels = np.array(found) if found else np.empty(0, dtype=np.int64)
        if labels.dtype.kind not in "biufU":
            raise ValueError(f"{self.who} has values that are neither numbers nor text")
        if labels.dtype.kind == "f":
            if not (labels == np.round(labels)).all():
                part = labels[labels != np.round(labels)][0]
                raise ValueError(
                    f"{self.who} has the value {part:g}, but classes are whole numbers or text; "
                    "for regression, use a regressor such as AutoGraphRegressor"
                )
            if not self.flat:  # whole numbers beside NaN can be nothing but reals
                labels = labels.astype(np.int64)
        classes, codes = number_classes(labels)
        if len(labels) < len(known):
            found, codes = codes, np.full(len(known), -1, dtype=np.int64)
            codes[known] = found
        return codes, classes

    def numbers(self) -> Floats:
        """Return the numbers, NaN where they are unknown."""
        numbers = np.full(len(self.values), np.nan)
        known = self.known()
        try:
            if self.values.dtype.kind in "mM":
                raise TypeError("dates")
            numbers[known] = self.values[known].astype(np.float64)
        except (TypeError, ValueError) as error:
            text = first_text(self.values[known].tolist())
            if text is None:
                raise ValueError(f"{self.who} has values that are not numbers") from error
            commas = number_in(text.replace(",", ".")) is not None
            remedy = "write decimal points" if commas else "for classes, take AutoGraphClassifier"
            raise ValueError(
                f"{self.who} has text, such as {cut(text, 40)!r}, but a regressor learns numbers; "
                f"{remedy}"
            ) from error
        self._replace(values=numbers[known]).known()  # numbers among objects may be infinite
        if MAX_NUMBER.is_below(largest := largest_of(numbers[known])):
            raise ValueError(
                f"{self.who} has the number {largest:g}; {MAX_NUMBER.in_words}; rescale it"
            )
        return numbers


def _columns(y: Any, graphs: GraphBatch, flatten: bool = False) -> list[_Column]:
    """Return the targets in y, each with an entry for each graph.

    With `flatten`, an array with a single column is one-dimensional, with a warning.
    """
    if not isinstance(y, np.ndarray) and (isinstance(y, Mapping) or hasattr(y, "columns")):
        keys = list(y) if isinstance(y, Mapping) else list(y.columns)
        columns = [_Column(str(key), y[key], _given_array(y[key]), False) for key in keys]
    else:
        table = _given_array(y)
        if flatten and table.shape[1:] == (1,):
            check_label_types(y)
            y = table = column_or_1d(y, warn=True)
        if table.ndim > 2:
            raise ValueError(
                f"y has shape {table.shape}; expected (n_graphs,) or (n_graphs, n_targets)"
            )
        if table.ndim < 2:
            columns = [_Column("", y, table, True)]
        else:
            given = table.T if isinstance(y, np.ndarray) else zip(*y, strict=True)
            pairs = enumerate(zip(given, table.T, strict=True))
            columns = [_Column(str(t), own, values, False) for t, (own, values) in pairs]
    if not columns:
        raise ValueError("y has no columns; give at least one target")
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"y has several columns called {twice!r}; give each its own name")
    for column in columns:
        check_one_each(graphs, column.values)
    return columns


# ---------------------------------------------------------------------- classes


def number_classes(y: Any) -> tuple[Array, Array]:
    """Return the sorted classes, and the code of each entry's class."""
    classes = np.unique(y)
    return classes, np.searchsorted(classes, y)  # in half the time of `return_inverse`


def coded(codes: Array, n_classes: int) -> Floats:
    """Code classes as -1/+1: (n, 1) for two classes, (n, n_classes) for more."""
    chosen = 1 if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == chosen, 1.0, -1.0)


def winning_class(outputs: Floats) -> Array:
    """Return the predicted class codes: the sign of one output, the argmax of several."""
    if outputs.shape[-1] == 1:
        return (outputs[..., 0] > 0).astype(np.intp)
    return np.asarray(np.argmax(outputs, axis=-1))


def check_label_types(y: Any, name: str = "y") -> None:
    """Raise ValueError if class labels mix text, numbers and bools.

    NumPy would convert them to one type without a word, so that 1 and "1", or 1 and True, became
    one class. None and NaN are missing labels, of no type.

    Parameters
    ----------
    y : array-like
        The labels as the user gave them, before NumPy makes an array of them.
    name : str
        What the labels are called in the message.
    """
    if isinstance(y, np.ndarray) and y.dtype.kind != "O":
        return
    labels = np.asarray(y, dtype=object).ravel().tolist()
    if len(set(map(type, labels))) < 2:
        return
    first: dict[str, int] = {}  # where each kind is seen first
    for i, label in enumerate(labels):
        if isinstance(label, bool | np.bool_):
            kind = "bool"
        elif isinstance(label, Number | np.number):
            kind = "number"
        else:
            kind = "text" if isinstance(label, str) else type(label).__qualname__
        if not is_unknown(label):
            first.setdefault(kind, i)
    if len(first) > 1:
        examples = ", ".join(
            f"{type(labels[i]).__name__} ({name}[{i}] is {cut(repr(labels[i]), 40)})"
            for i in first.values()
        )
        raise ValueError(
            f"{name} mixes types of class labels: {examples}; convert all labels to one type, for "
            "example to text by [str(label) for label in y]"
        )


def _given_array(values: Any) -> Array:
    """Convert values to an array, of objects if text and NaN are mixed."""
    try:
        found = np.asarray(values)
    except ValueError:
        raise ValueError("y has rows of different lengths; give as many values per graph") from None
    if found.dtype.kind != "U" or isinstance(values, np.ndarray):
        return found
    return np.asarray(values, dtype=object)


def first_text(y: Any) -> str | None:
    """Return the first text in a list that is not a number; None if there is none."""
    for each in y:
        if isinstance(each, str):
            try:
                float(each)
            except ValueError:
                return str(each)
    return None


def checked_weights(given: Any, n: int) -> Floats:
    """Return the weights of n samples as numbers, or raise ValueError."""
    try:
        weights = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight: expected one number for each graph") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({n},)")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight: expected finite numbers, at least 0 and not all 0")
    _check_scale(weights, "sample_weight")
    return weights


def weights_of_classes(class_weight: Any, y: Array) -> Floats:
    """Return the weight of the class of each label in y, as scikit-learn takes `class_weight`."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray((len(codes) / (len(classes) * counts))[codes])
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r}: expected 'balanced', a dictionary or None"
        )
    unknown = [key for key in class_weight if key not in classes.tolist()]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class of y")
    each = np.array([class_weight.get(c, 1.0) for c in classes.tolist()], dtype=np.float64)
    if not (np.isfinite(each).all() and (each > 0).all()):
        raise ValueError("class_weight: expected finite numbers above 0")
    _check_scale(each, "class_weight")
    return each[codes]


def _check_scale(weights: Floats, what: str) -> None:
    """Reject weights that are all next to nothing, or so large that their sum is infinite."""
    largest = float(weights.max())
    if MAX_NUMBER.is_below(largest) or MAX_NUMBER.is_below(1 / largest):
        raise ValueError(
            f"{what}: its largest number is {largest:g}; {MAX_NUMBER.in_words}, and their "
            "inverses; rescale them"
        )


def check_two_classes(y: Array) -> None:
    """Raise ValueError unless there are at least two classes."""
    if len(y) == 0:
        raise ValueError("there are no classes; a classifier needs at least two")
    if (y == y[0]).all():
        raise ValueError(f"y has one class only ({y[0]!s}); a classifier needs at least two")


def check_one_each(graphs: GraphBatch, y: Array) -> None:
    """Raise ValueError unless there are graphs, and y has one entry for each."""
    if len(graphs) == 0:
        raise GraphError("no graphs: there is nothing to fit to")
    if y.ndim == 0 or len(y) != len(graphs):
        found = "a single value" if y.ndim == 0 else f"{len(y)} entries"
        raise ValueError(f"y has {found}, but there are {len(graphs)} graphs; give one for each")
