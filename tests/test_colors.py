"""Color refinement against a plain one, quotients against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from fdgnn import Graph, GraphBatch, load_tu
from fdgnn.datasets import make_cliques, make_cycles, make_random_graphs, make_stars
from fdgnn.graphs.colors import discrete, quotients
from strategies import batches


def plain_refinement(graphs):
    """Colors of the whole batch by sorting neighbors' colors, with no hashing."""
    A = graphs.adjacency().tocsr()
    if graphs.labels is not None:
        colors = [(str(label),) for label in graphs.labels]
    elif graphs.features is not None:
        colors = [tuple(row + 0.0) for row in graphs.features]
    else:
        colors = [()] * graphs.n_vertices
    n_colors = 0
    while len(set(colors)) > n_colors:
        n_colors = len(set(colors))
        number = {c: i for i, c in enumerate(sorted(set(colors)))}
        old = [number[c] for c in colors]
        colors = []
        for v in range(graphs.n_vertices):
            row = slice(A.indptr[v], A.indptr[v + 1])
            around = sorted(zip(np.array(old)[A.indices[row]], A.data[row] + 0.0, strict=True))
            colors.append((old[v], tuple(around)))
    return np.unique([sorted(set(colors)).index(c) for c in colors], return_inverse=True)[1]


def same_partition(a, b):
    return len({*zip(a, b, strict=True)}) == len({*a}) == len({*b})


@given(batches())
def test_colors_are_those_of_plain_refinement(graphs):
    assert same_partition(graphs.colors.tolist(), plain_refinement(graphs).tolist())


@given(batches())
def test_classes_of_a_graph_are_its_colors(graphs):
    for g in range(len(graphs)):
        a, b = graphs.vertex_offsets[g : g + 2]
        classes = graphs.coloring.classes[a:b]
        assert same_partition(classes.tolist(), graphs.colors[a:b].tolist())
        assert graphs.coloring.n_classes[g] == classes.max() + 1


@given(batches())
def test_a_quotient_row_is_every_members_row(graphs):
    q = graphs.quotients.arrays
    A = graphs.adjacency().toarray()
    for v in range(graphs.n_vertices):
        row = q.row_of_vertex[v]
        first = q.row_offsets[q.quotient_of[graphs.graph_of_vertex[v]]]
        arcs = slice(q.indptr[row], q.indptr[row + 1])
        ours = dict(zip(first + q.sources[arcs], q.multiplicities[arcs], strict=True))
        for source in set(q.row_of_vertex.tolist()):
            # Members of equal graphs share rows: count v's own graph only.
            members = (q.row_of_vertex == source) & (
                graphs.graph_of_vertex == graphs.graph_of_vertex[v]
            )
            assert ours.get(source, 0.0) == pytest.approx(A[v, members].sum())
    for g in range(len(graphs)):
        k = q.quotient_of[g]
        size = q.sizes[q.row_offsets[k] : q.row_offsets[k + 1]].sum()
        assert size == graphs.vertex_offsets[g + 1] - graphs.vertex_offsets[g]


def test_each_quotient_is_in_one_block():
    q = make_random_graphs(200, random_state=0).quotients.arrays
    assert sorted(q.blocks.tolist()) == list(range(len(q.graphs)))
    assert q.block_offsets[0] == 0
    assert q.block_offsets[-1] == len(q.blocks)


def test_regular_graphs_of_one_degree_look_alike():
    graphs = GraphBatch.from_graphs([*make_cycles([3, 6, 7])])
    assert graphs.colors.tolist() == [0] * 16
    assert graphs.n_distinct_graphs == 3  # they differ in how many vertices have the color
    two_triangles = Graph([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
    hexagon = Graph([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    assert GraphBatch.from_graphs([two_triangles, hexagon]).n_distinct_graphs == 1


def test_stars_and_cliques_shrink_to_nearly_nothing():
    assert len(make_stars([50]).quotients.arrays.sizes) == 2
    q = make_cliques([40]).quotients.arrays
    assert (q.sizes.tolist(), q.multiplicities.tolist()) == ([40.0], [39.0])


def test_relabeled_graphs_are_one_graph():
    rng = np.random.default_rng(0)
    graph = make_random_graphs(1, n_vertices=30, random_state=1)[0]
    order = rng.permutation(30)
    labels = np.empty_like(graph.labels)
    labels[order] = graph.labels
    moved = Graph(order[graph.edge_index], 30, labels=labels)
    assert GraphBatch.from_graphs([graph, moved, graph]).n_distinct_graphs == 1


def test_nothing_is_merged_in_the_discrete_coloring():
    graphs = make_cliques([5, 5])
    q = quotients(graphs.structure, discrete(graphs.structure)).arrays
    assert len(q.sizes) == 10
    assert len(q.graphs) == 2
    assert set(q.multiplicities) == {1.0}


def test_wl_ceiling_counts_the_commonest_class():
    graphs = make_cycles([3, 3, 3, 4, 4, 5])
    assert graphs.wl_ceiling([0, 0, 1, 0, 1, 1]) == pytest.approx((2 + 1 + 1) / 6)
    assert graphs.wl_ceiling(["a", "a", "a", "b", "b", "a"]) == 1.0


@pytest.mark.parametrize(
    ("name", "ceiling", "n_distinct"),
    [
        pytest.param("IMDB-MULTI", 0.633, 387, marks=pytest.mark.real_data("IMDB-MULTI")),
        pytest.param("IMDB-BINARY", 0.886, None, marks=pytest.mark.real_data("IMDB-BINARY")),
        pytest.param("PTC_MR", 0.991, None, marks=pytest.mark.real_data("PTC_MR")),
        pytest.param("NCI1", 0.998, None, marks=pytest.mark.real_data("NCI1")),
    ],
)
def test_ceilings_of_the_papers_datasets(name, ceiling, n_distinct):
    graphs, y = load_tu(name)
    assert graphs.wl_ceiling(y) == pytest.approx(ceiling, abs=5e-4)
    assert n_distinct in (None, graphs.n_distinct_graphs)
