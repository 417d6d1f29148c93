"""Places for the vertices of a graph: each connected part alone, then all parts side by side."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path

from fdgnn.extras import require
from fdgnn.graphs import Floats, Graph, GraphBatch
from fdgnn.threads import one_blas_thread

EXACT_UP_TO = 150  # vertices of a part up to which the slower and better layout is used
_GAP = 1.0  # between parts, in lengths of an edge
_WIDTH_TO_HEIGHT = 1.3


def place_vertices(graph: Graph) -> Floats:
    """Give places (n_vertices, 2), in units of a typical edge; equal graphs get equal places."""
    check_networkx()
    batch = GraphBatch.from_graphs([graph])
    # Neither weights nor directions nor self-loops move a vertex.
    A = batch.adjacency()
    A.data = np.ones(len(A.data))
    A = sp.csr_array(sp.triu(A + A.T, 1))
    A.data = np.ones(len(A.data))
    n_parts, part_of = connected_components(A, directed=False)
    parts = [np.flatnonzero(part_of == p) for p in range(n_parts)]
    # The optimizer's vectors are tiny: threads of BLAS would only wait for each other, and where
    # other programs keep the cores busy they wait most of the time.
    with one_blas_thread():
        places = [_place_part(A[part][:, part]) for part in parts]
    corners = _packed(np.array([part.max(axis=0) for part in places]) + _GAP)
    result = np.empty((batch.n_vertices, 2))
    for part, own, corner in zip(parts, places, corners, strict=True):
        result[part] = own + corner
    return result


def check_networkx() -> None:
    """Raise MissingDependencyError if graphs cannot be laid out."""
    require("networkx", "plot", "Drawings of graphs")


def _place_part(A: sp.csr_array) -> Floats:
    """Place one connected part in the corner at (0, 0), with typical edges of length 1.

    A is the adjacency matrix of the part, above the diagonal.
    """
    n, edges = A.shape[0], np.array(A.nonzero(), dtype=np.int64)
    if n == 1:
        return np.zeros((1, 2))
    places = _lying(_place_exactly(n, edges.tobytes()) if n <= EXACT_UP_TO else _place_fast(A))
    lengths = np.linalg.norm(np.subtract(*places[edges]), axis=1)
    return np.asarray((places - places.min(axis=0)) / (np.median(lengths) or 1.0))


@functools.lru_cache(maxsize=1000)
def _place_exactly(n: int, edges: bytes) -> Floats:
    """Place n vertices so that distances are numbers of edges; parts that repeat are placed once.

    `edges` has the bytes of an integer array (2, n_edges).
    """
    import networkx as nx

    arcs = np.frombuffer(edges, dtype=np.int64).reshape(2, -1)
    A = sp.csr_array((np.ones(arcs.shape[1]), (arcs[0], arcs[1])), shape=(n, n))
    # SciPy computes the distances for the layout ten times faster than networkx.
    distances = shortest_path(A, directed=False, unweighted=True).tolist()
    by_vertex = nx.kamada_kawai_layout(
        nx.empty_graph(n), dist={v: dict(enumerate(row)) for v, row in enumerate(distances)}
    )
    return np.array([by_vertex[v] for v in range(n)])


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
