"""Generated graphs are what their names say, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from fdgnn import datasets
from fdgnn.datasets.generators import MOTIFS
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch


def degrees(graphs: GraphBatch) -> list[list[int]]:
    flat = np.diff(graphs.indptr)
    return [part.tolist() for part in np.split(flat, graphs.vertex_offsets[1:-1])]


def n_components(graphs: GraphBatch) -> int:
    return int(connected_components(graphs.adjacency(), directed=False)[0])


def fields(graphs: GraphBatch) -> list[object]:
    return [None if v is None else np.asarray(v).tolist() for v in vars(graphs).values()]


def test_cycles():
    graphs = datasets.make_cycles([3, 7, 4])
    assert degrees(graphs) == [[2] * 3, [2] * 7, [2] * 4]
    assert n_components(graphs) == 3
    assert len(datasets.make_cycles(5)) == 1


def test_stars():
    graphs = datasets.make_stars([1, 2, 5])
    assert degrees(graphs) == [[0], [1, 1], [4, 1, 1, 1, 1]]


def test_cliques():
    graphs = datasets.make_cliques([1, 2, 5])
    assert degrees(graphs) == [[0], [1, 1], [4] * 5]
    assert graphs.n_self_loops == 0


def test_random_graphs_have_the_size_and_density_asked_for():
    graphs = datasets.make_random_graphs(
        400, n_vertices=(10, 30), density=0.3, n_labels=4, random_state=0
    )
    sizes = np.diff(graphs.vertex_offsets)
    assert (sizes.min(), sizes.max()) == (10, 30)
    assert abs(graphs.n_arcs / (sizes * (sizes - 1)).sum() - 0.3) < 0.01
    assert graphs.n_self_loops == 0
    assert np.bincount(graphs.labels).min() > 0.2 * graphs.n_vertices
    assert graphs.label_values.tolist() == [0, 1, 2, 3]
    assert (graphs.weights, graphs.features, graphs.directed) == (None, None, False)


def test_random_graphs_with_everything():
    graphs = datasets.make_random_graphs(
        50, n_vertices=20, density=0.3, n_features=3, directed=True, weighted=True, random_state=0
    )
    assert graphs.labels is None
    assert graphs.features.shape == (1000, 3)
    assert graphs.weights.min() >= 0
    assert graphs.weights.max() < 1
    assert graphs.directed
    matrix = graphs.adjacency().astype(bool)
    assert matrix.multiply(matrix.T).nnz < 0.5 * matrix.nnz  # few arcs are answered
    assert abs(graphs.n_arcs / (50 * 20 * 19) - 0.3) < 0.02


@pytest.mark.parametrize("density", [0.0, 1.0])
def test_random_graphs_at_the_ends(density):
    graphs = datasets.make_random_graphs(3, n_vertices=4, density=density, random_state=0)
    assert degrees(graphs) == [[round(3 * density)] * 4] * 3


def test_motif_graphs_are_trees_and_motifs():
    graphs, y, mask = datasets.make_motif_graphs(
        90, motifs=list(MOTIFS), n_vertices=(1, 25), random_state=0, return_mask=True
    )
    assert np.bincount(y).tolist() == [23, 23, 22, 22]
    assert np.any(np.diff(y) < 0)
    sizes = np.diff(graphs.vertex_offsets)
    assert (sizes.min(), sizes.max()) == (6, 30)
    assert n_components(graphs) == 90
    matrix = graphs.adjacency()
    for g, (v, w) in enumerate(zip(graphs.vertex_offsets, graphs.vertex_offsets[1:], strict=False)):
        inside = mask[v:w]
        assert inside.sum() == 5
        part = matrix[v:w, v:w].toarray()
        edges = MOTIFS[list(MOTIFS)[y[g]]]
        ends = np.bincount(np.ravel(edges), minlength=5)
        assert sorted(part[inside][:, inside].sum(axis=0)) == sorted(ends)
        assert part[inside][:, ~inside].sum() == 1  # the bridge
        tree = part[~inside][:, ~inside]
        assert tree.sum() == 2 * (len(tree) - 1)


def test_hubs_grow():
    """Preferential attachment: the largest degree is far above that of a uniform random tree."""
    graphs, _ = datasets.make_motif_graphs(20, n_vertices=400, random_state=0)
    assert graphs.max_degrees.mean() > 20  # uniform attachment gives about log2(400) = 9
    early = [max(part[:5]) for part in degrees(graphs)]
    assert np.mean(early) > 15


def test_more_attachments_more_edges():
    graphs, _, mask = datasets.make_motif_graphs(
        50, n_vertices=30, n_attachments=3, random_state=0, return_mask=True
    )
    matrix = graphs.adjacency()[~mask][:, ~mask]
    assert 4.5 < matrix.sum() / (~mask).sum() < 6


def test_motif_graphs_without_the_mask():
    graphs, y, _ = datasets.make_motif_graphs(10, random_state=3, return_mask=True)
    pair = datasets.make_motif_graphs(10, random_state=3)
    assert fields(pair[0]) == fields(graphs)
    assert pair[1].tolist() == y.tolist()
    assert graphs.labels is None


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: datasets.make_random_graphs(random_state=seed),
        lambda seed: datasets.make_random_graphs(n_features=2, weighted=True, random_state=seed),
        lambda seed: datasets.make_motif_graphs(random_state=seed)[0],
    ],
    ids=["random", "random with features and weights", "motif"],
)
def test_the_same_seed_gives_the_same_graphs(make):
    assert fields(make(0)) == fields(make(0)) == fields(make(np.random.default_rng(0)))
    assert fields(make(0)) != fields(make(1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: datasets.make_cycles([5, 2]), "graph 1: 2 vertices, and at least 3 are"),
        (lambda: datasets.make_cliques([0]), "graph 0: 0 vertices"),
        (lambda: datasets.make_stars([]), "at least one"),
        (lambda: datasets.make_stars([2.5]), "sizes must be integers"),
        (lambda: datasets.make_random_graphs(n_graphs=0), "at least one"),
        (lambda: datasets.make_random_graphs(0), "at least one"),
        (lambda: datasets.make_random_graphs(n_vertices=(5, 3)), r"n_vertices=\(5, 3\)"),
        (lambda: datasets.make_motif_graphs(motifs=("cycle", "hut")), "no motif 'hut'; known are"),
    ],
)
def test_impossible_wishes(make, message):
    with pytest.raises(GraphError, match=message):
        make()


def test_the_rooms_door():
    assert all(hasattr(datasets, name) for name in datasets.__all__)
