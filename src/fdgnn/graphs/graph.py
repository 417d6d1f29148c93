"""`Graph`: one graph as the user brings it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.texts import counted

__all__ = ["Graph"]


@dataclass(frozen=True, eq=False)
class Graph:
    """One graph, as the user brings it. It is checked when it enters a `GraphBatch`.

    Parameters
    ----------
    edge_index : array-like of int, shape (2, n_arcs)
        Arcs as (source, target) columns, vertices counted from 0. In an undirected graph an edge
        may be listed once or both ways. Arcs listed more than once are merged.
    n_vertices : int, optional
        Needed only if some vertices have no arcs and there are no labels or features to count.
    labels : array-like, shape (n_vertices,), optional
        One discrete label per vertex, integers or strings.
    features : array-like of float, shape (n_vertices, n_features), optional
        Real-valued vertex attributes. Where there are labels, too, `as_batch` makes columns of
        zeros and ones of these, after the features.
    weights : array-like of float, shape (n_arcs,), optional
    directed : bool, default=False
        In a directed graph the arc (u, v) carries the state of u to v.
    edge_labels : array-like, shape (n_arcs,), optional
        One discrete label per arc, integers or strings, such as bond types. An undirected edge
        has the same label both ways. The reservoir ignores them.
    descriptors : mapping, optional
        What is known of the graph as a whole, by name: numbers, or text for categories, None
        where a value is missing. All graphs of a batch have the same names.
    """

    edge_index: Any
    n_vertices: int | None = None
    labels: Any = None
    features: Any = None
    weights: Any = None
    directed: bool = False
    edge_labels: Any = None
    descriptors: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        try:
            n_arcs: Any = np.shape(self.edge_index)[-1]
        except (IndexError, ValueError):  # not checked yet, so it can be anything
            n_arcs = "?"
        n_vertices: Any = "?" if self.n_vertices is None else self.n_vertices
        return f"Graph({counted(n_vertices, 'vertex', 'vertices')}, {counted(n_arcs, 'arc')})"
