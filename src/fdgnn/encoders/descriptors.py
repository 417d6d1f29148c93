"""Graph-level features, appended to the features of an encoder.

A number is standardized; where it is missing it is the mean, and another column marks these. A
category is a column of zeros and ones for each value that was seen, and one for missing values; a
value that was not seen is zero in all of them. So a graph whose features are all zero has numbers
as they are on average, and nothing is known of its categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import msgspec
import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Features, Floats, Ints, spread
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.descriptors import Descriptors, kind_of, known_in
from fdgnn.records import Record, cached_property

#: How large descriptors are relative to the features of graphs, by their mean squared distances.
SHARE = 0.1
_FEW = 20  # categories that any number of graphs may have
_Finite = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]


class DescriptorColumn(Record, frozen=True, kw_only=True):
    """One descriptor as it was in training; a model file has it in this form."""

    name: str
    kind: Literal["number", "category"]
    missing: bool = False  # whether values were missing
    mean: _Finite = 0.0
    scale: Annotated[float, msgspec.Meta(gt=0, le=1e300)] = 1.0  # standard deviation
    low: _Finite | None = None  # the smallest number; None in files of earlier versions
    high: _Finite | None = None
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, values: Array) -> Self:
        """Learn what a column looks like, or raise GraphError if nothing can be learned."""
        known = known_in(values)
        if not known.any():
            raise GraphError(f"descriptor {name!r} is missing for all graphs; leave it out")
        missing = not known.all()
        if kind_of(values) == "number":
            numbers = values[known].astype(np.float64)
            return cls(
                name=name,
                kind="number",
                missing=missing,
                mean=float(numbers.mean()),
                scale=float(numbers.std()) or 1.0,
                low=float(numbers.min()),
                high=float(numbers.max()),
            )
        found = sorted(set(values[known].tolist()))
        if len(found) > max(_FEW, known.sum() // 2):
            raise GraphError(
                f"descriptor {name!r} has {len(found)} different texts for {known.sum()} graphs, "
                "too many for categories; leave it out"
            )
        return cls(name=name, kind="category", missing=missing, categories=tuple(found))

    @property
    def n_features(self) -> int:
        """The number of features of the column."""
        return int(self.missing) + (1 if self.kind == "number" else len(self.categories))

    def features(self, values: Array) -> Floats:
        """Return features (n_graphs, n_features) of a column of the same kind."""
        known = known_in(values)
        if self.kind == "number":
            filled = np.full(len(values), self.mean)
            filled[known] = values[known]
            found = ((filled - self.mean) / self.scale)[:, None]
        else:
            found = (values[:, None] == np.array(self.categories, dtype=object)).astype(np.float64)
        return np.hstack([found, ~known[:, None]]) if self.missing else found

    def check(self, values: Array | None) -> None:
        """Raise GraphError unless there is such a column, with values of the same kind."""
        if values is None:
            raise GraphError(
                f"the graphs have no descriptor {self.name!r}, which the model was fitted with; "
                "give it by as_batch(graphs, descriptors=...), None where it is missing"
            )
        known = known_in(values)
        if known.any() and kind_of(values) != self.kind:
            g = int(np.argmax(known))
            if self.kind == "number":
                text = f"the text {values[g]!r}, but the model was fitted on numbers"
            else:
                number = f"{float(values[g]):g}"
                text = f"the number {number}, but the model was fitted on text; give {number!r}"
            raise GraphError(f"descriptor {self.name!r} is {text}", g)

    def unknown_labels(self, values: Array) -> dict[int, str]:
        """Return positions of graphs with a value such as no training graph has, with words."""
        known = known_in(values)
        found: dict[int, str] = {}
        if not self.missing:
            which = np.flatnonzero(~known).tolist()
            found |= dict.fromkeys(which, f"descriptor {self.name} is missing")
        if self.kind == "category":
            found |= {
                g: f"descriptor {self.name} is {value}, which was not seen during fit"
                for g, value in enumerate(values.tolist())
                if known[g] and value not in self.categories
            }
        return found

    def outside(self, values: Array) -> dict[int, str]:
        """Return graphs with a number outside the range of the training graphs, in words."""
        if self.low is None or self.high is None or self.kind != "number":
            return {}
        known = np.flatnonzero(known_in(values))
        numbers = values[known].astype(np.float64)
        beyond = known[(numbers < self.low) | (numbers > self.high)]
        reach = f"{self.low:.4g} to {self.high:.4g}"
        return {
            int(g): f"descriptor {self.name} is {float(values[g]):.4g}, and {reach} in training"
            for g in beyond
        }


@dataclass(frozen=True, eq=False)
class DescriptorBlock:
    """The descriptors of a model: their columns in training, and the scale of all features."""

    columns: tuple[DescriptorColumn, ...]
    scale: float

    @classmethod
    def of(cls, descriptors: Descriptors, encoded: Features) -> DescriptorBlock:
        """Fit the encoding of descriptors, scaled to the features (n, P) of the encoder."""
        pairs = zip(descriptors.names, descriptors.columns, strict=True)
        columns = tuple(DescriptorColumn.of(*pair) for pair in pairs)
        own, other = spread(_coded(columns, descriptors)), spread(encoded)
        scale = np.sqrt(SHARE * other / own) if own > 0 and other > 0 else 1.0
        return cls(columns, float(scale))

    @property
    def n_features(self) -> int:
        """The number of features of the graph-level columns."""
        return sum(column.n_features for column in self.columns)

    @property
    def names(self) -> list[str]:
        """The names of the descriptors."""
        return [column.name for column in self.columns]

    @cached_property
    def column_of_feature(self) -> Ints:
        """The number of each feature's descriptor, (n_features,)."""
        widths = [column.n_features for column in self.columns]
        return np.repeat(np.arange(len(self.columns)), widths)

    def check(self, graphs: GraphBatch) -> None:
        """Raise GraphError unless graphs have these descriptors."""
        for column in self.columns:
            column.check(_values(graphs, column.name))

    def unknown_labels(self, graphs: GraphBatch) -> dict[int, str]:
        """Return positions of graphs with values such as no training graph has, with words."""
        found: dict[int, str] = {}
        for column, values in reversed(self._with_values(graphs)):
            found |= column.unknown_labels(values)
        return found

    def outside(self, graphs: GraphBatch) -> dict[int, str]:
        """Return graphs with numbers outside the range of the training graphs."""
        found: dict[int, str] = {}
        for column, values in self._with_values(graphs):
            for g, words in column.outside(values).items():
                found[g] = f"{found[g]}; {words}" if g in found else words
        return found

    def _with_values(self, graphs: GraphBatch) -> list[tuple[DescriptorColumn, Array]]:
        """Return the columns that graphs have, with their values."""
        pairs = [(column, _values(graphs, column.name)) for column in self.columns]
        return [(column, values) for column, values in pairs if values is not None]

    def features(self, graphs: GraphBatch) -> Floats:
        """Return the features (n_graphs, n_features) of checked graphs."""
        if graphs.descriptors is None:  # only no graphs at all come without
            return np.empty((0, self.n_features))
        return _coded(self.columns, graphs.descriptors) * self.scale

    def contributions(self, seen: Floats, directions: Floats) -> Floats:
        """Split ``seen[g] @ directions[g]`` over the descriptors: (n_graphs, n_descriptors)."""
        own = np.equal.outer(self.column_of_feature, np.arange(len(self.columns)))
        return np.asarray((seen * directions) @ own)


def with_descriptors(X: Features, block: DescriptorBlock | None, graphs: GraphBatch) -> Features:
    """Append the graph-level features to features (n_graphs, P), if there is a block."""
    if block is None:
        return X
    own = block.features(graphs)
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, sp.csr_array(own)], format="csr"))
    return np.hstack([X, own])


def _values(graphs: GraphBatch, name: str) -> Array | None:
    return None if graphs.descriptors is None else graphs.descriptors.column(name)


def _coded(columns: Sequence[DescriptorColumn], descriptors: Descriptors) -> Floats:
    """Return features (n_graphs, n_features) of all columns, not scaled yet."""
    by_name = dict(zip(descriptors.names, descriptors.columns, strict=True))
    return np.hstack([column.features(by_name[column.name]) for column in columns])
