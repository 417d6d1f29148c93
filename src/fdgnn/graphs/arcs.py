"""Arcs as users list them, sorted and each of them once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints

Mask = npt.NDArray[np.bool_]
_NONE: Ints = np.empty(0, dtype=np.int64)


class MergedArcs(NamedTuple):
    """Arcs by target, then source, each of them once: rows of a sparse matrix."""

    indptr: Ints  # (n_vertices + 1,)
    neighbors: npt.NDArray[np.int32]  # sources, numbered inside of their graph
    weights: Floats | None
    label_codes: Array | None
    n_merged: int
    differing_weights: Ints  # positions of arcs that are listed with different weights
    differing_labels: Ints


def merge_arcs(
    arcs: Array,
    weights: Floats | None,
    label_codes: Array | None,
    vertex_offsets: Ints,
    directed: bool,
) -> MergedArcs:
    """Sort arcs, merge repeated ones and, in undirected graphs, add the mirrored ones.

    Arcs name vertices of the union, each in the graph that it should be in.
    """
    from fdgnn.kernels import merge_arcs

    listed = np.ascontiguousarray(arcs, dtype=np.int64)
    if weights is None and label_codes is None:
        indptr, neighbors, n_merged = merge_arcs(listed, vertex_offsets, directed, False)
        return MergedArcs(indptr, neighbors, None, None, n_merged, _NONE, _NONE)
    indptr, neighbors, n_merged, order, first = merge_arcs(listed, vertex_offsets, directed, True)
    new = first.view(np.bool_)

    def merged(carried: Array | None) -> tuple[Array | None, Ints]:
        if carried is None:
            return None, _NONE
        carried = carried[order]
        differing = ~new[1:] & (carried[1:] != carried[:-1])
        return carried[new], np.cumsum(new)[1:][differing] - 1

    (weights, other_weights), (label_codes, other_labels) = merged(weights), merged(label_codes)
    return MergedArcs(
        indptr, neighbors, weights, label_codes, n_merged, other_weights, other_labels
    )


def first_of_run(values: Array) -> Mask:
    """Tell where a sorted array has another value than just before."""
    first = np.empty(len(values), dtype=bool)
    first[:1] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first
