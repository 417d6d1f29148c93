"""Arcs as users list them, sorted and each of them once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints

Mask = npt.NDArray[np.bool_]


class MergedArcs(NamedTuple):
    """Arcs sorted by target, then source, as ``target * n + source``."""

    keys: Ints
    weights: Floats | None
    label_codes: Array | None
    n_merged: int
    differing_weights: Ints  # keys of arcs that are listed with different weights
    differing_labels: Ints


def merge_arcs(
    arcs: Array, weights: Floats | None, label_codes: Array | None, n: int, directed: bool
) -> MergedArcs:
    """Sort arcs, merge repeated ones and, in undirected graphs, add the mirrored ones."""
    keys = _keys(arcs[1], arcs[0], n)
    if weights is not None or label_codes is not None:
        mirrored = None if directed else _keys(arcs[0], arcs[1], n)
        return _merge_carrying(keys, mirrored, weights, label_codes)
    keys = _unique(keys)
    n_merged = arcs.shape[1] - len(keys)
    if not directed:
        targets, sources = np.divmod(keys, n)
        mirrored = np.sort(sources * n + targets, kind="stable")
        if (mirrored != keys).any():
            keys = _unique(np.concatenate([keys, mirrored]))
    return MergedArcs(keys, None, None, n_merged, keys[:0], keys[:0])


def _keys(targets: Array, sources: Array, n: int) -> Ints:
    keys: Ints = np.multiply(targets, n, dtype=np.int64)
    keys += sources
    return keys


def _merge_carrying(
    keys: Ints, mirrored: Ints | None, weights: Floats | None, label_codes: Array | None
) -> MergedArcs:
    """Merge arcs together with what they carry."""
    n_listed = len(keys)
    n_merged = n_listed - len(_unique(keys))
    if mirrored is not None:
        keys = np.concatenate([keys, mirrored])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    order[order >= n_listed] -= n_listed  # a mirrored arc carries what the listed one does
    first = first_of_run(keys)

    def merged(carried: Array | None) -> tuple[Array | None, Ints]:
        if carried is None:
            return None, keys[:0]
        carried = carried[order]
        differing = ~first[1:] & (carried[1:] != carried[:-1])
        return carried[first], keys[1:][differing]

    (weights, other_weights), (label_codes, other_labels) = merged(weights), merged(label_codes)
    return MergedArcs(keys[first], weights, label_codes, n_merged, other_weights, other_labels)


def _unique(keys: Ints) -> Ints:
    keys = np.sort(keys, kind="stable")  # files list arcs in runs: six times faster so
    return keys[first_of_run(keys)]


def first_of_run(values: Array) -> Mask:
    """Tell where a sorted array has another value than just before."""
    first = np.empty(len(values), dtype=bool)
    first[:1] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first
