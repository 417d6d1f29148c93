"""Which vertex has which color, and how scores are shared by the vertices of a color."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Features, Floats, Ints, entries_of
from fdgnn.caching import cached_property
from fdgnn.encoders.channels import Channels, Colors
from fdgnn.graphs import GraphBatch


class LabelRow(NamedTuple):
    """Which channel and round a row of colors is of."""

    channel: str
    round: int


def rows_of(found: Channels) -> tuple[LabelRow, ...]:
    """Name the rows of colors of these channels."""
    pairs = zip(found.names, found.n_iterations.tolist(), strict=True)
    return tuple(LabelRow(name, r) for name, rounds in pairs for r in range(rounds + 1))


@dataclass(frozen=True)
class WLParts:
    """Counts of colors, and which vertex has which color.

    Attributes
    ----------
    graphs : GraphBatch
    features : (n_graphs, n_features) CSR
    columns : (T, n_vertices) int64
        The column of each vertex's feature in each channel and round; -1 if it has none.
    colors : (T, n_vertices) uint64
    rows : tuple of LabelRow
        The channel and round of each of the T rows.
    """

    graphs: GraphBatch
    features: sp.csr_array
    columns: Ints
    colors: Colors
    rows: tuple[LabelRow, ...]

    def contributions(self, directions: Features, of_graph: Ints) -> Floats:
        """Split ``features[g] @ directions[of_graph[g]]`` over the vertices of each graph.

        The weights of a color's features are shared equally by the vertices of that color.
        """
        graph_of_vertex = self.graphs.graph_of_vertex
        shares = self.shares(directions, of_graph).sum(axis=0)
        wanted = self._products(directions, of_graph)
        lost = wanted - np.add.reduceat(shares, self.graphs.vertex_offsets[:-1])
        return np.asarray(shares + (lost / np.diff(self.graphs.vertex_offsets))[graph_of_vertex])

    def shares(self, directions: Features, of_graph: Ints) -> Floats:
        """What each vertex adds in each channel and round, (T, n_vertices)."""
        own = of_graph[self.graphs.graph_of_vertex]
        weights = np.where(self.columns >= 0, entries_of(directions, own, self.columns), 0.0)
        weights *= self._amounts
        shared = [
            (np.bincount(group, row) / size)[group]
            for group, row, size in zip(self.groups, weights, self._sizes, strict=True)
        ]
        return np.stack(shared)

    @cached_property
    def groups(self) -> Ints:
        """Number of the (graph, color) that each vertex belongs to, by channel and round."""
        return np.stack([_numbered(self.graphs.graph_of_vertex, row) for row in self.colors])

    @cached_property
    def _sizes(self) -> list[Ints]:
        return [np.bincount(row) for row in self.groups]

    @cached_property
    def _amounts(self) -> Floats:
        """What each vertex adds to its column: 1, or less where only presence is counted."""
        known = self.columns >= 0
        if self.features.sum() == known.sum():
            return np.ones((1, 1))
        graph = np.broadcast_to(self.graphs.graph_of_vertex, known.shape)
        ones = np.ones(int(known.sum())), (graph[known], self.columns[known])
        often = sp.csr_array(ones, shape=self.features.shape)
        often.sum_duplicates()
        amounts = np.zeros(known.shape)
        whole = entries_of(self.features, graph[known], self.columns[known])
        amounts[known] = whole / entries_of(often, graph[known], self.columns[known])
        return amounts

    def _products(self, directions: Features, of_graph: Ints) -> Floats:
        X = self.features
        graph = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        each = X.data * entries_of(directions, of_graph[graph], X.indices)
        return np.asarray(np.bincount(graph, each, minlength=X.shape[0]), dtype=np.float64)


def _numbered(graph_of_vertex: Array, colors: Colors) -> Ints:
    """Number the pairs of graph and color in ascending order; vertices are graph after graph."""
    order = np.lexsort((colors, graph_of_vertex))
    graph, color = graph_of_vertex[order], colors[order]
    starts = np.concatenate([[0], (graph[1:] != graph[:-1]) | (color[1:] != color[:-1])])
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(starts)
    return numbers
