"""Generated graphs, for tests, demonstrations and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Ints, offsets_of
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch

Seed = int | np.random.Generator | None

_RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
MOTIF_SIZE = 5
MOTIFS = {
    "cycle": _RING,
    "house": [*_RING, (1, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "clique": [(u, v) for u in range(5) for v in range(u)],
}


def make_cycles(sizes: Any) -> GraphBatch:
    """Make one cycle for each of the given sizes, all at least 3.

    >>> make_cycles([6, 3, 3])
    GraphBatch(3 graphs, 12 vertices, 24 directed edges)
    """
    sizes = _checked_sizes(sizes, smallest=3)
    offsets = offsets_of(sizes)
    first, size = np.repeat(offsets[:-1], sizes), np.repeat(sizes, sizes)
    v = np.arange(offsets[-1])
    return GraphBatch.from_arcs(offsets, np.stack([v, first + (v - first + 1) % size]))


def make_stars(sizes: Any) -> GraphBatch:
    """Make one star for each of the given sizes; a graph's first vertex is its hub."""
    sizes = _checked_sizes(sizes, smallest=1)
    offsets = offsets_of(sizes)
    hub, v = np.repeat(offsets[:-1], sizes), np.arange(offsets[-1])
    return GraphBatch.from_arcs(offsets, np.stack([hub, v])[:, v != hub])


def make_cliques(sizes: Any) -> GraphBatch:
    """Make one complete graph for each of the given sizes."""
    sizes = _checked_sizes(sizes, smallest=1)
    pairs = _all_pairs(sizes)
    return GraphBatch.from_arcs(offsets_of(sizes), pairs[:, pairs[0] < pairs[1]])


def make_random_graphs(
    n_graphs: int = 100,
    *,
    n_vertices: int | tuple[int, int] = (5, 20),
    density: float = 0.2,
    n_labels: int | None = 3,
    n_features: int | None = None,
    directed: bool = False,
    weighted: bool = False,
    random_state: Seed = None,
) -> GraphBatch:
    """Draw graphs in which each arc exists independently of the others (Erdős-Rényi).

    Parameters
    ----------
    n_graphs : int, default=100
    n_vertices : int or (int, int), default=(5, 20)
        Vertices of each graph, or the smallest and largest number of them.
    density : float, default=0.2
        Probability of each edge, or of each arc if directed. There are no self-loops.
    n_labels : int or None, default=3
        Vertex labels are drawn from ``0, ..., n_labels - 1``.
    n_features : int, optional
        If given, vertices have normally distributed features instead of labels.
    directed : bool, default=False
    weighted : bool, default=False
        Whether arcs have weights, uniform in [0, 1).
    random_state : int, Generator or None
    """
    rng = np.random.default_rng(random_state)
    sizes = _drawn_sizes(n_vertices, n_graphs, rng)
    pairs = _all_pairs(sizes)
    pairs = pairs[:, pairs[0] != pairs[1] if directed else pairs[0] < pairs[1]]
    arcs = pairs[:, rng.random(pairs.shape[1]) < density]
    offsets = offsets_of(sizes)
    n = int(offsets[-1])
    labels = features = None
    if n_features is not None:
        features = rng.standard_normal((n, n_features))
    elif n_labels is not None:
        labels = rng.integers(n_labels, size=n)
    weights = rng.random(arcs.shape[1]) if weighted else None
    return GraphBatch.from_arcs(
        offsets, arcs, weights=weights, labels=labels, features=features, directed=directed
    )


def make_motif_graphs(
    n_graphs: int = 200,
    *,
    motifs: Sequence[str] = ("cycle", "house"),
    n_vertices: int | tuple[int, int] = 20,
    n_attachments: int = 1,
    random_state: Seed = None,
    return_mask: bool = False,
) -> tuple[Any, ...]:
    """Draw a classification task: which motif is attached to a Barabási-Albert graph?

    Vertices have no labels; classes differ only by their motif. They are equally frequent and
    shuffled.

    Parameters
    ----------
    n_graphs : int, default=200
    motifs : sequence of str, default=("cycle", "house")
        One motif of five vertices for each class: "cycle", "house", "star" or "clique".
    n_vertices : int or (int, int), default=20
        Vertices of each graph without its motif, or the smallest and largest number of them.
    n_attachments : int, default=1
        Edges that a new vertex adds to the Barabási-Albert graph; repeated ones are merged.
    random_state : int, Generator or None
    return_mask : bool, default=False
        Whether to return also which vertices belong to the motifs.

    Returns
    -------
    graphs : GraphBatch
    y : (n_graphs,) int64
        Position in `motifs`.
    mask : (n_vertices of all graphs,) bool
        Only if `return_mask`.
    """
    unknown = [name for name in motifs if name not in MOTIFS]
    if unknown:
        raise GraphError(f"there is no motif {unknown[0]!r}; known are {', '.join(MOTIFS)}")
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_graphs) % len(motifs))
    sizes = _drawn_sizes(n_vertices, n_graphs, rng)
    offsets = offsets_of(sizes + MOTIF_SIZE)
    motif_starts = offsets[:-1] + sizes
    bridges = [
        offsets[:-1] + rng.integers(sizes),
        motif_starts + rng.integers(MOTIF_SIZE, size=n_graphs),
    ]
    arcs = [_barabasi_albert(offsets[:-1], sizes, n_attachments, rng), np.stack(bridges)]
    for c, motif in enumerate(motifs):  # the edges of the motif, from each of its first vertices
        ends = np.array(MOTIFS[motif]).T[:, None, :] + motif_starts[y == c][:, None]
        arcs.append(ends.reshape(2, -1))
    graphs = GraphBatch.from_arcs(offsets, np.concatenate(arcs, axis=1))
    if not return_mask:
        return graphs, y
    mask = np.arange(offsets[-1]) >= np.repeat(motif_starts, sizes + MOTIF_SIZE)
    return graphs, y, mask


# ---------------------------------------------------------------------- arcs, as (2, n_arcs)


def _all_pairs(sizes: Ints) -> Ints:
    """List every ordered pair of vertices of one graph, for all graphs."""
    n_partners = np.repeat(sizes, sizes)
    v = np.repeat(np.arange(len(n_partners)), n_partners)
    first = np.repeat(np.repeat(offsets_of(sizes)[:-1], sizes), n_partners)
    position = np.arange(len(v)) - np.repeat(offsets_of(n_partners)[:-1], n_partners)
    return np.stack([first + position, v])


def _barabasi_albert(starts: Ints, sizes: Ints, m: int, rng: np.random.Generator) -> Ints:
    """Grow all graphs at once; a small graph is the beginning of a large one."""
    n = int(sizes.max())
    # The two ends of each edge. A vertex occurs as often as it has neighbors, so that drawing an
    # end means drawing by degree.
    ends = np.zeros((len(sizes), n - 1, 2, m), dtype=np.int64)
    for v in range(1, n):
        drawn = rng.integers(max(2 * m * (v - 1), 1), size=(len(sizes), m))
        ends[:, v - 1, 0] = np.take_along_axis(ends.reshape(len(sizes), -1), drawn, axis=1)
        ends[:, v - 1, 1] = v
    graph, step, i = np.nonzero(ends[:, :, 1] < sizes[:, None, None])
    return ends[graph, step, :, i].T + starts[graph]


# ---------------------------------------------------------------------- sizes


def _drawn_sizes(
    n_vertices: int | tuple[int, int], n_graphs: int, rng: np.random.Generator
) -> Ints:
    low, high = (n_vertices, n_vertices) if isinstance(n_vertices, int) else n_vertices
    if not 1 <= low <= high:
        raise GraphError(f"n_vertices={n_vertices}: expected a number, or (smallest, largest)")
    return _checked_sizes(rng.integers(low, high + 1, size=n_graphs), smallest=1)


def _checked_sizes(sizes: Any, smallest: int) -> Ints:
    sizes = np.atleast_1d(np.asarray(sizes))
    if sizes.ndim != 1 or len(sizes) == 0 or sizes.dtype.kind not in "iu":
        raise GraphError("sizes must be integers, one for each graph, and at least one")
    if sizes.min() < smallest:
        raise GraphError(
            f"{sizes.min()} vertices, and at least {smallest} are needed",
            int(np.argmin(sizes)),
        )
    return np.asarray(sizes, dtype=np.int64)
