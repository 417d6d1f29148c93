"""Arcs as users list them, sorted and each of them once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.exceptions import GraphError


def merge_arcs(
    arcs: Array, weights: Floats | None, n: int, directed: bool, graph_of: Array
) -> tuple[Ints, Floats | None, int]:
    """Sort arcs by target, then source; merge repeated ones; if undirected, add the mirrored.

    Returns the arcs as ``target * n + source``, their weights, and how many were merged.
    """
    keys = arcs[1].astype(np.int64) * n + arcs[0]
    keys, weights = _unique_arcs(keys, weights, n, graph_of)
    n_merged = arcs.shape[1] - len(keys)
    if not directed:
        targets, sources = np.divmod(keys, n)
        mirrored = sources * n + targets
        if weights is not None or not np.array_equal(np.sort(mirrored, kind="stable"), keys):
            both = None if weights is None else np.concatenate([weights, weights])
            keys, weights = _unique_arcs(np.concatenate([keys, mirrored]), both, n, graph_of)
    return keys, weights, n_merged


def _unique_arcs(
    keys: Ints, weights: Floats | None, n: int, graph_of: Array
) -> tuple[Ints, Floats | None]:
    if weights is None:
        keys = np.sort(keys, kind="stable")  # files list arcs in runs: six times faster so
        return keys[_first_of_run(keys)], None
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    first = _first_of_run(keys)
    differing = ~first[1:] & (weights[1:] != weights[:-1])
    if differing.any():
        target, source = divmod(int(keys[1 + np.argmax(differing)]), n)
        g = graph_of[target]
        start = int(np.searchsorted(graph_of, g))
        raise GraphError(
            f"graph {g}: edge ({source - start}, {target - start}) is listed with different "
            "weights; sum or drop repeats, or set directed=True if its two directions differ"
        )
    return keys[first], weights[first]


def _first_of_run(keys: Ints) -> npt.NDArray[np.bool_]:
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return first
