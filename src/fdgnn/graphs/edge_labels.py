"""Arc labels that graphs of other libraries bring, named by the user or found by a usual name.

Labels that nobody asked for never make a graph bad: where they cannot be used, they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fdgnn.arrays import Array
from fdgnn.exceptions import GraphError
from fdgnn.graphs import Graph, checks
from fdgnn.graphs.arcs import merge_arcs


def usable_labels(values: Any, edge_index: Any, directed: bool) -> Array | None:
    """Read one label per arc; None if that is not what the values are, or if edges have two."""
    try:
        arcs = checks.arc_array(edge_index)
        labels = checks.edge_label_array(values, arcs.shape[1])
    except GraphError:
        return None
    return labels if len(labels) and agree(arcs, labels, directed) else None


def agree(arcs: Array, labels: Array, directed: bool) -> bool:
    """Tell whether an edge has the same label wherever it is listed."""
    codes = np.unique(labels, return_inverse=True)[1]
    # Indices are not checked yet, so they are numbered anew.
    vertices, arcs = np.unique(arcs, return_inverse=True)
    graph = np.array([0, len(vertices)])
    merged = merge_arcs(arcs.reshape(2, -1), None, codes, graph, directed)
    return len(merged.differing_labels) == 0


def found_in_all(items: Sequence[Any], graphs: Sequence[Graph]) -> list[Graph]:
    """Keep arc labels that were found in the items only if all graphs have them, of one kind."""
    kinds = {_kind(graph) for graph in graphs} - {"any"}
    if len(kinds) <= 1:
        return list(graphs)
    pairs = zip(items, graphs, strict=True)
    return [g if isinstance(item, Graph) else replace(g, edge_labels=None) for item, g in pairs]


def _kind(graph: Graph) -> str:
    """Name the kind of arc labels; a graph without arcs goes with any."""
    try:
        if np.size(graph.edge_index) == 0:
            return "any"
        labels = graph.edge_labels
        return "none" if labels is None else np.asarray(labels).dtype.kind.replace("O", "U")
    except ValueError:  # ragged: `GraphBatch` will say so
        return "any"


def joined_labels(carried: Array) -> Array:
    """Return one label per edge: its own entry or, if it has several, these joined by commas.

    Parameters
    ----------
    carried : (n_arcs, n_entries) int or str
    """
    if carried.shape[1] == 1:
        return carried[:, 0]
    return checks.text_array([",".join(map(str, row)) for row in carried.tolist()])
