"""What is known of all graphs before they are encoded; it adds over parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.exceptions import DatasetFormatError
from fdgnn.graphs import GraphBatch
from fdgnn.records import Record
from fdgnn.schema import InputSchema

MOST_VALUES = 1_000  # of a target that are counted; with more it can be nothing but a quantity

Kind = Literal["integer", "real", "text"]
_KINDS: dict[str, Kind] = {"i": "integer", "u": "integer", "b": "integer", "f": "real"}


class ColumnSurvey(Record, frozen=True, kw_only=True):
    """What is known of the values of a target."""

    kind: Kind
    n_known: int
    counts: dict[str, int] | None  # how often each value occurs; None if there are too many
    whole: bool
    source: str  # a shard with such values

    @classmethod
    def of(cls, values: Array, source: str) -> ColumnSurvey:
        """Look at the known values of a part."""
        kind = _KINDS.get(values.dtype.kind, "text")
        found, often = np.unique(values, return_counts=True)
        few = len(found) <= MOST_VALUES
        counts = dict(zip(map(str, found.tolist()), often.tolist(), strict=True)) if few else None
        whole = kind != "real" or bool((values == np.round(values)).all())
        return cls(kind=kind, n_known=len(values), counts=counts, whole=whole, source=source)

    def __add__(self, other: ColumnSurvey) -> ColumnSurvey:
        if other.n_known == 0 or self.n_known == 0:
            return self if other.n_known == 0 else other
        if (self.kind == "text") != (other.kind == "text"):
            text, numbers = (self, other) if self.kind == "text" else (other, self)
            raise DatasetFormatError(
                f"the target is text in {text.source}, but numbers in {numbers.source}; make it "
                "the same in all shards"
            )
        kind = self.kind if self.kind == other.kind else "real"
        counts = None
        if self.counts is not None and other.counts is not None and self.kind == other.kind:
            counts = dict(self.counts)
            for value, often in other.counts.items():
                counts[value] = counts.get(value, 0) + often
            counts = counts if len(counts) <= MOST_VALUES else None
        return ColumnSurvey(
            kind=kind, n_known=self.n_known + other.n_known, counts=counts,
            whole=self.whole and other.whole, source=self.source,
        )  # fmt: skip

    @property
    def classes(self) -> Array:
        """The different values, sorted."""
        found = list(self.counts or ())
        if self.kind == "text":
            return np.array(sorted(found))
        return np.array(sorted(map(float if self.kind == "real" else int, found)))


class Survey(Record, frozen=True, kw_only=True):
    """What is known of some graphs and their targets, added over parts."""

    n_rows: int
    n_graphs: int
    n_vertices: int
    n_arcs: int
    directed: bool
    labels: list[int | str] | None
    n_features: int | None
    edge_labels: bool
    weights: bool
    whole_weights: bool
    degree_sum: float
    degree_max: float
    columns: list[ColumnSurvey]

    @classmethod
    def of(
        cls, graphs: GraphBatch | None, n_rows: int, columns: list[ColumnSurvey]
    ) -> Survey | None:
        """Look at the graphs of a part; None if there are none."""
        if graphs is None or len(graphs) == 0:
            return None
        weights = graphs.weights
        return cls(
            n_rows=n_rows,
            n_graphs=len(graphs),
            n_vertices=graphs.n_vertices,
            n_arcs=graphs.n_arcs,
            directed=graphs.directed,
            labels=None if graphs.label_values is None else graphs.label_values.tolist(),
            n_features=None if graphs.features is None else graphs.features.shape[1],
            edge_labels=graphs.edge_label_codes is not None,
            weights=weights is not None,
            whole_weights=weights is None or bool((weights == np.round(weights)).all()),
            degree_sum=float(graphs.max_degrees.sum()),
            degree_max=graphs.largest_degree,
            columns=columns,
        )

    def __add__(self, other: Survey) -> Survey:
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = sorted({*self.labels, *other.labels})
        return Survey(
            n_rows=self.n_rows + other.n_rows,
            n_graphs=self.n_graphs + other.n_graphs,
            n_vertices=self.n_vertices + other.n_vertices,
            n_arcs=self.n_arcs + other.n_arcs,
            directed=self.directed,
            labels=labels,
            n_features=self.n_features,
            edge_labels=self.edge_labels or other.edge_labels,
            weights=self.weights or other.weights,
            whole_weights=self.whole_weights and other.whole_weights,
            degree_sum=self.degree_sum + other.degree_sum,
            degree_max=max(self.degree_max, other.degree_max),
            columns=[a + b for a, b in zip(self.columns, other.columns, strict=True)],
        )


@dataclass(frozen=True, eq=False)
class SurveyedGraphs:
    """All that encoders ask of graphs when they are drawn, of graphs that are not in memory."""

    survey: Survey
    schema: InputSchema | None

    def __len__(self) -> int:
        return self.survey.n_graphs

    @property
    def directed(self) -> bool:
        """Whether the graphs are directed."""
        return self.survey.directed

    @property
    def label_values(self) -> Array | None:
        """All vertex labels, sorted."""
        return None if self.survey.labels is None else np.array(self.survey.labels)

    @property
    def features(self) -> Floats | None:
        """No rows of features, but as many columns as vertices have."""
        n = self.survey.n_features
        return None if n is None else np.empty((0, n))

    @property
    def edge_label_codes(self) -> Array | None:
        """Something, if arcs have labels."""
        return np.empty(0, dtype=np.int32) if self.survey.edge_labels else None

    @property
    def edge_label_values(self) -> Array | None:
        """None: which labels arcs have is not counted, and so new ones are not told."""
        return None

    @property
    def weights(self) -> Floats | None:
        """No weights, but something, if arcs have some."""
        return np.empty(0) if self.survey.weights else None

    @property
    def average_degree(self) -> float:
        """The mean over graphs of the largest neighborhood."""
        return self.survey.degree_sum / self.survey.n_graphs

    @property
    def largest_degree(self) -> float:
        """The largest neighborhood of all graphs."""
        return self.survey.degree_max

    @property
    def descriptors(self) -> None:
        """None: they are not read out of core."""
        return None
