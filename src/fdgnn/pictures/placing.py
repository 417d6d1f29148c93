"""Places for the vertices of a graph: each connected part alone, then all parts side by side."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path

from fdgnn.extras import require
from fdgnn.graphs import Floats, Graph, GraphBatch, Ints
from fdgnn.threads import one_blas_thread

EXACT_UP_TO = 150  # vertices of a part up to which the slower and better layout is used
_GAP = 1.0  # between parts, in lengths of an edge
_WIDTH_TO_HEIGHT = 1.3


def place_vertices(graph: Graph) -> Floats:
    """Give places (n_vertices, 2), in units of a typical edge; equal graphs get equal places."""
    check_networkx()
    batch = GraphBatch.from_graphs([graph])
    n, edges = batch.n_vertices, _edges(batch)
    n_parts, part_of = connected_components(_matrix(n, edges), directed=False)
    result = np.empty((n, 2))
    parts, places = [np.flatnonzero(part_of == p) for p in range(n_parts)], []
    # The optimizer's vectors are tiny: threads of BLAS would only wait for each other, and where
    # other programs keep the cores busy they wait most of the time.
    with one_blas_thread():
        for p, part in enumerate(parts):
            within = np.searchsorted(part, edges[:, part_of[edges[0]] == p])
            places.append(_place_part(len(part), within.tobytes()))
    corners = _packed(np.array([part.max(axis=0) for part in places]) + _GAP)
    for part, own, corner in zip(parts, places, corners, strict=True):
        result[part] = own + corner
    return result


def _edges(batch: GraphBatch) -> Ints:
    """Pairs (2, n_edges) of different neighbors, each once, in the order of the smaller one.

    Neither weights nor directions nor self-loops move a vertex.
    """
    n = batch.n_vertices
    v, u = np.repeat(np.arange(n), np.diff(batch.indptr)), batch.neighbors
    pairs = np.unique((np.minimum(u, v) * n + np.maximum(u, v))[u != v])
    return np.array(np.divmod(pairs, n))


def _matrix(n: int, edges: Ints) -> sp.csr_array:
    """The adjacency matrix, above the diagonal."""
    return sp.csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(n, n))


def check_networkx() -> None:
    """Raise MissingDependencyError if graphs cannot be laid out."""
    require("networkx", "plot", "Drawings of graphs")


@functools.lru_cache(maxsize=1000)
def _place_part(n: int, edges: bytes) -> Floats:
    """Place one connected part in the corner at (0, 0), with typical edges of length 1.

    `edges` has the bytes of an integer array (2, n_edges). Parts that repeat are placed once.
    """
    if n == 1:
        return np.zeros((1, 2))
    ends = np.frombuffer(edges, dtype=np.int64).reshape(2, -1)
    places = _lying((_place_exactly if n <= EXACT_UP_TO else _place_fast)(_matrix(n, ends)))
    lengths = np.linalg.norm(np.subtract(*places[ends]), axis=1)
    return np.asarray((places - places.min(axis=0)) / (np.median(lengths) or 1.0))


def _place_exactly(A: sp.csr_array) -> Floats:
    """Place vertices so that distances are numbers of edges."""
    import networkx as nx

    # SciPy computes the distances for the layout ten times faster than networkx.
    distances = shortest_path(A, directed=False, unweighted=True).tolist()
    by_vertex = nx.kamada_kawai_layout(
        nx.empty_graph(len(distances)),
        dist={v: dict(enumerate(row)) for v, row in enumerate(distances)},
    )
    return np.array([by_vertex[v] for v in range(len(distances))])


def _place_fast(A: sp.csr_array) -> Floats:
    """Place many vertices by forces between them."""
    import networkx as nx

    by_vertex = nx.spring_layout(nx.from_scipy_sparse_array(A), seed=0)
    return np.array([by_vertex[v] for v in range(A.shape[0])])


def _lying(places: Floats) -> Floats:
    """Turn a part so that its longest direction is from left to right."""
    _, _, axes = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)
    if np.linalg.det(axes) < 0:  # turned, but not mirrored
        axes[1] *= -1
    return np.asarray(places @ axes.T)


def _packed(sizes: Floats) -> Floats:
    """Lower left corners of rectangles (n, 2) in rows, the highest first, none overlapping."""
    width = max(sizes[:, 0].max(), np.sqrt(_WIDTH_TO_HEIGHT * sizes.prod(axis=1).sum()))
    corners = np.empty_like(sizes)
    x = y = row_height = 0.0
    for i in np.argsort(-sizes[:, 1], kind="stable"):
        if x > 0 and x + sizes[i, 0] > width:
            x, y, row_height = 0.0, y + row_height, 0.0
        corners[i] = x, y
        x += sizes[i, 0]
        row_height = max(row_height, sizes[i, 1])
    return corners
