"""`Descriptors`: graph-level features, in columns of numbers and of categories.

They travel with the graphs of a `GraphBatch`, so that slices and folds of the batch have theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from fdgnn.arrays import Array, Ints, is_unknown
from fdgnn.exceptions import GraphError
from fdgnn.limits import MAX_LABEL

MISSING = frozenset({"", "na", "n/a", "nan", "null"})  # as text, in any case


def is_missing(cell: Any) -> bool:
    """Return whether a cell is empty, or has text for a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return cell is None or bool(cell != cell)


def number_in(cell: Any) -> int | float | None:
    """Read a cell as a number, also from text; None if it is not a number."""
    for kind in (int, float):
        try:
            number = kind(cell)
            if (isinstance(cell, str) or number == cell) and abs(number) < 2**63:
                return number
        except (TypeError, ValueError, OverflowError):
            continue
    return None


Kind = Literal["number", "category"]
Value = float | str | None  # None: it is missing


@dataclass(frozen=True, eq=False)
class Descriptors:
    """Columns with a value for each graph.

    Attributes
    ----------
    names : tuple of str
    columns : tuple of (n_graphs,) arrays
        Of a number float64, NaN where it is missing; of a category text, as objects, None where
        it is missing.
    """

    names: tuple[str, ...]
    columns: tuple[Array, ...]

    @classmethod
    def of(cls, given: Any, n_graphs: int) -> Descriptors:
        """Read a table: a matrix of numbers, columns by name, or a pandas or polars data frame.

        Raises
        ------
        GraphError
            A column has another length, mixes text and numbers, or has infinite numbers.
        """
        if isinstance(given, Descriptors):
            found = given
        elif isinstance(given, Mapping) or hasattr(given, "columns"):
            keys = list(given) if isinstance(given, Mapping) else list(given.columns)
            names = tuple(map(str, keys))
            columns = [_column(n, given[key]) for n, key in zip(names, keys, strict=True)]
            found = cls(names, tuple(columns))
        else:
            matrix = np.asarray(given)
            if matrix.ndim != 2:
                raise GraphError(
                    f"descriptors have shape {matrix.shape}, expected (n_graphs, n_descriptors), "
                    "or columns by name"
                )
            names = tuple(f"descriptor {i}" for i in range(matrix.shape[1]))
            found = cls(names, tuple(map(_column, names, matrix.T)))
        if not found.names:
            raise GraphError("there are no descriptors; give at least one column")
        if len(set(found.names)) < len(found.names):
            raise GraphError("two descriptors have the same name; give each its own")
        for name, column in zip(found.names, found.columns, strict=True):
            if column.shape != (n_graphs,):
                raise GraphError(
                    f"descriptor {name!r} has {len(column)} values, but there are {n_graphs} "
                    "graphs; give one for each, NaN or None where it is missing"
                )
        return found

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Value]]) -> Descriptors:
        """Return the columns of the checked values of graphs, which have the same names."""
        names = tuple(rows[0])
        return cls(names, tuple(_column(name, [row[name] for row in rows]) for name in names))

    def __len__(self) -> int:
        return len(self.columns[0])

    def take(self, chosen: Ints) -> Descriptors:
        """Return the descriptors of some graphs."""
        return Descriptors(self.names, tuple(column[chosen] for column in self.columns))

    def row(self, graph: int) -> dict[str, Value]:
        """Return the values of one graph, by name; None where one is missing."""
        values = (column[graph : graph + 1].tolist()[0] for column in self.columns)
        plain = [None if is_unknown(value) else value for value in values]
        return dict(zip(self.names, plain, strict=True))

    def column(self, name: str) -> Array | None:
        """Return the column of a name, or None if there is none."""
        return self.columns[self.names.index(name)] if name in self.names else None


def kind_of(column: Array) -> Kind:
    """Return whether a column has numbers or categories."""
    return "category" if column.dtype.kind == "O" else "number"


def known_in(column: Array) -> Array:
    """Return which values of a column are not missing, (n_graphs,) bool."""
    if kind_of(column) == "number":
        return np.asarray(~np.isnan(column))
    return np.array([value is not None for value in column.tolist()], dtype=bool)


def _column(name: str, given: Any) -> Array:
    """Read one column; one that is all missing counts as numbers."""
    categorical = str(getattr(given, "dtype", "")).lower().startswith(("category", "categorical"))
    # NumPy would read the list [1, "a"] as ["1", "a"].
    values = list(given) if isinstance(given, list | tuple) else np.asarray(given).tolist()
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    if any(isinstance(value, list | tuple | np.ndarray) for value in values):
        raise GraphError(f"descriptor {name!r} has lists as values, expected one value per graph")
    values = [None if is_unknown(value) else value for value in values]
    known = [value for value in values if value is not None]
    if categorical or (known and all(isinstance(value, str) for value in known)):
        text = [None if value is None else str(value) for value in values]
        column: Array = np.empty(len(text), dtype=object)
        column[:] = text
        return column
    if not all(isinstance(value, Real) for value in known):
        odd = next(value for value in known if not isinstance(value, Real))
        raise GraphError(
            f"descriptor {name!r} has the value {odd!r} beside numbers; give numbers only, or text "
            "only for categories, and None where a value is missing"
        )
    column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if np.isinf(column).any():
        graph = int(np.argmax(np.isinf(column)))
        raise GraphError(f"descriptor {name!r} is infinite; give NaN if it is missing", graph)
    return column


# ---------------------------------------------------------------------- graph by graph


def check_values(values: Any) -> None:
    """Raise GraphError unless the descriptors of one graph are numbers, text or missing."""
    if not isinstance(values, Mapping) or not values:
        raise GraphError("descriptors are not a mapping from names to values")
    for name, value in values.items():
        if not isinstance(name, str):
            raise GraphError(f"a descriptor is called {name!r}, expected text")
        if not (value is None or isinstance(value, str | Real)):
            raise GraphError(f"descriptor {name!r} is {value!r}, expected a number or text")
        if isinstance(value, Real) and abs(value) == np.inf:
            raise GraphError(f"descriptor {name!r} is infinite; give None if it is missing")


def mixed_kinds(rows: Sequence[Mapping[str, Value]]) -> dict[int, str]:
    """Find the graphs with text where others before them have a number, or the other way."""
    faults: dict[int, str] = {}
    for name in rows[0]:
        kinds = {
            g: "text" if isinstance(value, str) else "a number"
            for g, value in enumerate(row[name] for row in rows)
            if not is_unknown(value)
        }
        first = next(iter(kinds.values()), None)
        faults |= {
            g: f"descriptor {name!r} is {kind}, but that of graph {next(iter(kinds))} is "
            f"{first}; a column has one kind of values"
            for g, kind in kinds.items()
            if kind != first
        }
    return faults


# ---------------------------------------------------------------------- cells of files


def kind_of_cells(name: str, cells: Sequence[Any]) -> Kind:
    """Return the kind of a column of a file, where numbers may be written as text.

    Raises
    ------
    GraphError
        Some cells are numbers and others are not.
    """
    known = [cell for cell in cells if not is_missing(cell)]
    text = [cell for cell in known if number_in(cell) is None]
    if text and len(text) < len(known):
        raise GraphError(
            f"the descriptor {name!r} has numbers, and text such as {text[0]!r}; leave such cells "
            "empty, or name it by `categories` if its numbers are codes"
        )
    return "category" if text else "number"


def value_in(name: str, cell: Any, is_category: bool) -> Value:
    """Read a cell of a file as a category or a number, or raise GraphError."""
    if is_missing(cell):
        return None
    number = number_in(cell)
    if is_category:
        if isinstance(cell, str):
            if MAX_LABEL.is_below(len(cell)):
                raise GraphError(
                    f"descriptor {name!r} has {len(cell)} characters; {MAX_LABEL.in_words}"
                )
            return cell.strip()
        if number is None:
            raise GraphError(f"descriptor {name!r} is {cell!r}, expected text or a number")
        return f"{number:.15g}"
    if number is None or abs(number) == np.inf:
        raise GraphError(f"descriptor {name!r} is {cell!r}, expected a number")
    return float(number)
