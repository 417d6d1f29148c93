"""Dataset statistics: all that encoders ask of graphs that are not in memory."""

from __future__ import annotations

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.graphs import GraphBatch
from fdgnn.records import Record


class GraphStatistics(Record, frozen=True, kw_only=True):
    """Statistics of graphs, which add over chunks.

    They have the attributes of a `GraphBatch` by which encoders are drawn.
    """

    n_graphs: int
    directed: bool
    labels: list[int | str] | None
    n_features: int | None
    has_edge_labels: bool
    has_weights: bool
    whole_weights: bool
    degree_sum: float  # of the largest neighborhood of each graph
    largest_degree: float

    @classmethod
    def of(cls, graphs: GraphBatch) -> GraphStatistics:
        """Return the statistics of a batch."""
        weights = graphs.weights
        return cls(
            n_graphs=len(graphs),
            directed=graphs.directed,
            labels=None if graphs.label_values is None else graphs.label_values.tolist(),
            n_features=None if graphs.features is None else graphs.features.shape[1],
            has_edge_labels=graphs.edge_label_codes is not None,
            has_weights=weights is not None,
            whole_weights=weights is None or bool((weights == np.round(weights)).all()),
            degree_sum=float(graphs.max_degrees.sum()),
            largest_degree=graphs.largest_degree,
        )

    def __add__(self, other: GraphStatistics) -> GraphStatistics:
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = sorted({*self.labels, *other.labels})
        return GraphStatistics(
            n_graphs=self.n_graphs + other.n_graphs,
            directed=self.directed,
            labels=labels,
            n_features=self.n_features,
            has_edge_labels=self.has_edge_labels or other.has_edge_labels,
            has_weights=self.has_weights or other.has_weights,
            whole_weights=self.whole_weights and other.whole_weights,
            degree_sum=self.degree_sum + other.degree_sum,
            largest_degree=max(self.largest_degree, other.largest_degree),
        )

    def __len__(self) -> int:
        return self.n_graphs

    @property
    def average_degree(self) -> float:
        """The mean over graphs of the largest neighborhood."""
        return self.degree_sum / self.n_graphs

    @property
    def label_values(self) -> Array | None:
        """All vertex labels, sorted."""
        return None if self.labels is None else np.array(self.labels)

    @property
    def features(self) -> Floats | None:
        """No rows of features, but as many columns as vertices have."""
        return None if self.n_features is None else np.empty((0, self.n_features))

    @property
    def edge_label_codes(self) -> Array | None:
        """An empty array if edges have labels."""
        return np.empty(0, dtype=np.int32) if self.has_edge_labels else None

    @property
    def edge_label_values(self) -> Array | None:
        """None, since labels of edges are not counted; so new ones are not reported."""
        return None

    @property
    def weights(self) -> Floats | None:
        """An empty array if arcs have weights."""
        return np.empty(0) if self.has_weights else None

    @property
    def descriptors(self) -> None:
        """None: descriptors are not read out of core."""
        return None
