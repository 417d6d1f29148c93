"""Groups of vertices: which there are, what each adds, and what the score loses without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from fdgnn.arrays import Array, Ints
from fdgnn.exceptions import GraphError
from fdgnn.graphs import Graph, GraphBatch


@dataclass(frozen=True, eq=False)
class VertexGroup:
    """Vertices of one graph that belong together, and what they are called."""

    name: str
    vertices: Ints  # (m,) positions in the graph, ascending


@dataclass(frozen=True, eq=False)
class ExplainedGroup(VertexGroup):
    """A group, and its part in a score.

    Attributes
    ----------
    contribution : float
        The contributions of its vertices, added up.
    effect : float
        By how much the score falls if the group is taken away, with all edges at its vertices.
        Effects of several groups do not add up.
    """

    contribution: float
    effect: float


GroupsOfGraph = Mapping[str, Any] | Sequence[VertexGroup]


def checked_groups(given: Sequence[GroupsOfGraph], graphs: GraphBatch) -> list[list[VertexGroup]]:
    """Give the groups of each graph, or raise an error that names graph and group."""
    _check_entries(given, len(graphs))
    sizes = np.diff(graphs.vertex_offsets).tolist()
    return [
        [_checked(g, *pair, size) for pair in _named(own)]
        for g, (own, size) in enumerate(zip(given, sizes, strict=True))
    ]


def groups_of_some(
    given: Sequence[GroupsOfGraph], rows: Sequence[int], n_graphs: int
) -> list[GroupsOfGraph]:
    """Give the groups of some of so many graphs."""
    _check_entries(given, n_graphs)
    return [given[row] for row in rows]


def _check_entries(given: Sequence[GroupsOfGraph], n_graphs: int) -> None:
    one = isinstance(given, str | Mapping)
    if one or len(given) != n_graphs:
        found = type(given).__name__ if one else f"{len(given)} entries"
        raise ValueError(f"groups has {found}; expected an entry for each of {n_graphs} graphs")


def _named(own: GroupsOfGraph) -> list[tuple[str, Any]]:
    if isinstance(own, Mapping):
        return [(str(name), vertices) for name, vertices in own.items()]
    return [(group.name, group.vertices) for group in own]


def _checked(graph: int, name: str, vertices: Any, n_vertices: int) -> VertexGroup:
    numbers = np.asarray(vertices)
    if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iu":
        raise GraphError(f"its group {name!r} is not a list of vertices, counted from 0", graph)
    numbers = np.unique(numbers.astype(np.int64))
    wrong = numbers[(numbers < 0) | (numbers >= n_vertices)]
    if len(wrong):
        reason = f"its group {name!r} has vertex {wrong[0]}, but there are {n_vertices} vertices"
        raise GraphError(reason, graph)
    return VertexGroup(name, numbers)


def without_vertices(graph: Graph, gone: Ints) -> Graph:
    """Give the graph without some vertices and all edges at them; all else is as it was."""
    kept = np.ones(int(graph.n_vertices or 0), dtype=bool)
    kept[gone] = False
    arcs = np.asarray(graph.edge_index)
    left = kept[arcs].all(axis=0)

    def some(values: Any, which: Array) -> Any:
        return None if values is None else values[which]

    return Graph(
        (np.cumsum(kept) - 1)[arcs[:, left]],
        n_vertices=int(kept.sum()),
        labels=some(graph.labels, kept),
        features=some(graph.features, kept),
        weights=some(graph.weights, left),
        directed=graph.directed,
        arc_labels=some(graph.arc_labels, left),
        descriptors=graph.descriptors,
    )


# ---------------------------------------------------------------------- connected parts


def connected_parts(graph: Graph) -> list[VertexGroup]:
    """Take a graph apart where a single edge holds it together.

    A *block* is what stays connected whichever one of its edges is cut, such as rings that share
    an edge. What is in no block is a *branch*: the trees that hang on blocks and between them.
    """
    A = GraphBatch.from_graphs([graph]).adjacency()
    A = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    block = _blocks(sp.csr_array(A + A.T))
    numbers, sizes = np.unique(block, return_counts=True)
    blocks = [np.flatnonzero(block == number) for number in numbers[sizes > 1]]
    alone = np.flatnonzero(np.isin(block, numbers[sizes == 1]))
    return [
        *(VertexGroup(f"block of {len(own)} vertices", own) for own in blocks),
        *(VertexGroup(_branch_name(own), own) for own in connected_pieces(A, alone)),
    ]


def connected_pieces(A: sp.csr_array, vertices: Ints) -> list[Ints]:
    """Give the connected components of the graph A that is left of some vertices."""
    n, number = connected_components(A[vertices][:, vertices], directed=False)
    return [vertices[number == piece] for piece in range(n)]


def _branch_name(vertices: Ints) -> str:
    return f"vertex {vertices[0]}" if len(vertices) == 1 else f"branch of {len(vertices)} vertices"


def _blocks(A: sp.csr_array) -> Ints:
    """Number of each vertex' block: its vertex that is nearest to the root of a spanning tree.

    An edge that is not in the tree closes a cycle, so that all on the way between its ends, up
    the tree, is one block.
    """
    parent, depth = _spanning_tree(A)
    top = np.arange(len(parent))

    def highest(v: int) -> int:
        while top[v] != v:
            top[v] = top[top[v]]
            v = int(top[v])
        return v

    for u, v in zip(*sp.triu(A, 1).nonzero(), strict=True):
        if parent[u] == v or parent[v] == u:
            continue
        u, v = highest(int(u)), highest(int(v))
        while u != v:
            u, v = (u, v) if depth[u] >= depth[v] else (v, u)
            top[u] = parent[u]
            u = highest(int(parent[u]))
    return np.array([highest(v) for v in range(A.shape[0])])


def _spanning_tree(A: sp.csr_array) -> tuple[Ints, Ints]:
    """Parents and depths in a tree from a root beside the graph, joined to each component once."""
    n = A.shape[0]
    _, first = np.unique(connected_components(A, directed=False)[1], return_index=True)
    sources, ends = A.nonzero()
    roots: Ints = np.full(len(first), n)
    arcs = np.concatenate([sources, roots]), np.concatenate([ends, first])
    rooted = sp.csr_array((np.ones(len(arcs[0])), arcs), shape=(n + 1, n + 1))
    order, parent = breadth_first_order(rooted, n, directed=False)
    depth = np.zeros(n + 1, dtype=np.int64)
    for v in order[1:].tolist():
        depth[v] = depth[parent[v]] + 1
    return parent.astype(np.int64), depth
