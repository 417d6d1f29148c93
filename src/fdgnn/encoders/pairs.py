"""`PairCounts`: graphs as counts of the pairs of their vertices, by labels and distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Features, Floats, Ints, dense, offsets_of
from fdgnn.encoders.label_counts import DEFAULT_FEATURES, LabelCounts, WLLabels, sorted_rows
from fdgnn.encoders.registry import register_encoder
from fdgnn.graphs import GraphBatch
from fdgnn.limits import MAX_WL_ITERATIONS
from fdgnn.parameters import Number, Rule
from fdgnn.threads import over_chunks

#: Vertices from which distances are computed; of larger graphs as many are sampled.
MAX_SOURCES = 1_000


@register_encoder
@dataclass(eq=False, repr=False)
class PairCounts(LabelCounts):
    """Shortest-path features: counts of the pairs of a graph's vertices by labels and distance.

    A pair is counted by the labels of its two vertices, unordered, and by the length of the
    shortest path between them, if that is at most `max_distance`. In a directed graph pairs are
    ordered. A vertex is a pair with itself at distance 0. These are the features of the
    shortest-path kernel; for molecules they are atom pairs. Labels and weights of edges are
    ignored.

    A count m is unary-encoded, as in `WLCounts`, so that the inner product of two graphs is their
    histogram intersection. Counts above 16 are rounded down to four binary digits, so a count of
    thousands takes tens of features.

    In a graph with more than 1,000 vertices, shortest paths begin at 1,000 vertices, evenly spaced
    among the vertices sorted by label, and counts are scaled up. This is deterministic, and limits
    the cost to 1,000 breadth-first searches per graph.

    Parameters
    ----------
    max_distance : int, default=10
        Pairs that are farther apart, or not connected, are not counted.
    vertices : str, default="auto"
        The label of a vertex, as in `WLCounts`. By default labels or features, if there are any, or
        else the degree in bins.
    n_features : int, default=2**18
        Columns, a power of two, into which features are hashed.
    n_bins : int, default=16
        Number of bins of each real feature, quantiles of the training graphs.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Whether a vertex label that no training graph has is ignored (its pairs occur in no training
        graph), or raises an error.
    n_jobs : int, optional
        Threads; results do not depend on their number.

    Attributes
    ----------
    vocabulary_ : tuple or None
        Vertex labels of the training graphs.

    Examples
    --------
    >>> from fdgnn import PairCounts
    >>> from fdgnn.datasets import make_cycles
    >>> X = PairCounts(n_features=1024).fit_transform(make_cycles([4, 5]))
    >>> (X @ X.T).toarray()  # a cycle of four has 4 vertices, 4 edges and 2 diagonals
    array([[10., 10.],
           [10., 15.]])
    """

    max_distance: int = 10
    vertices: str = "auto"
    n_features: int = DEFAULT_FEATURES
    n_bins: int = 16
    n_jobs: int | None = None
    handle_unknown: str = "ignore"

    kind = "pairs"
    rules: ClassVar[Mapping[str, Rule]] = {
        **LabelCounts.rules,
        "max_distance": Number(0, whole=True, most=MAX_WL_ITERATIONS),
    }

    def features_of(self, graphs: GraphBatch, n_jobs: int | None = None) -> sp.csr_array:
        """Count the pairs of checked graphs."""
        from fdgnn.kernels import count_pairs

        arguments = self._kernel_arguments(graphs)
        work = graphs.indptr[graphs.vertex_offsets] + graphs.vertex_offsets
        chunks = over_chunks(count_pairs, len(graphs), n_jobs, arguments, lambda: work)
        indices, data, lengths = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
        return sorted_rows(data, indices, offsets_of(lengths), self.n_features)

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> PairParts:
        """Count pairs, and keep the vertices of each pair."""
        return PairParts(graphs, self.features_of(graphs, n_jobs), self._kernel_arguments(graphs))

    def _kernel_arguments(self, graphs: GraphBatch) -> tuple[Any, ...]:
        """Return the arguments of the kernels, except the number of a graph."""
        labels: WLLabels = np.stack([first for _, first in self._first_labels(graphs)])
        rules = self.max_distance, MAX_SOURCES, graphs.directed, self.n_features - 1
        return (graphs.structure, labels, *rules)


@dataclass(frozen=True)
class PairParts:
    """Counts of pairs, and the graphs in which they are.

    Attributes
    ----------
    graphs : GraphBatch
    features : (n_graphs, n_features) CSR
    arguments : tuple
        What the kernels read.
    """

    graphs: GraphBatch
    features: sp.csr_array
    arguments: tuple[Any, ...]

    def contributions(self, directions: Features, of_graph: Ints) -> Floats:
        """Split ``features[g] @ directions[of_graph[g]]`` over the vertices of each graph.

        The weights of the features of a kind of pair are shared equally by all pairs of that kind,
        and half of the share of a pair goes to each of its vertices.
        """
        from fdgnn.kernels import share_pairs

        found = np.zeros(self.graphs.n_vertices)
        offsets = self.graphs.vertex_offsets.tolist()
        for g, row in enumerate(of_graph.tolist()):
            direction = dense(directions[row : row + 1])[0]
            own = found[offsets[g] : offsets[g + 1]]
            share_pairs(g, *self.arguments, np.ascontiguousarray(direction, np.float64), own)
        return found
