"""The door: what enters a batch is right, and what is wrong never enters."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils import _safe_indexing, resample, shuffle

from fdgnn import Graph, GraphBatch
from fdgnn.exceptions import GraphError, UnknownLabelError
from fdgnn.graphs import batch as batch_module
from fdgnn.graphs.graph import join
from strategies import ARC_KINDS, ARRAYS, assert_same, batches, graph_lists

EDGE, PATH = [[0], [1]], [[0, 1], [1, 2]]
GOOD = Graph([[0, 1], [1, 2]])


def neighborhoods(graph: Graph) -> list[dict[int, float]]:
    """The plain way: for each vertex, the vertices whose states flow into it, and by how much."""
    rows: list[dict[int, float]] = [{} for _ in range(graph.n_vertices)]
    weights = np.ones(len(graph.edge_index[0])) if graph.weights is None else graph.weights
    for u, v, weight in zip(*graph.edge_index.tolist(), weights.tolist(), strict=True):
        rows[v][u] = weight
        if not graph.directed:
            rows[u][v] = weight
    return rows


# ---------------------------------------------------------------------- what is built


@given(graph_lists(arc_kinds=ARC_KINDS))
def test_batch_equals_plain_neighborhoods(graphs):
    batch = GraphBatch.from_graphs(graphs)
    expected = [row for graph in graphs for row in neighborhoods(graph)]
    weights = np.ones(batch.n_arcs) if batch.weights is None else batch.weights
    for v, row in enumerate(expected):
        arcs = slice(batch.indptr[v], batch.indptr[v + 1])
        assert batch.neighbors[arcs].tolist() == sorted(row)
        assert weights[arcs].tolist() == [row[u] for u in sorted(row)]
    assert len(batch.indptr) == len(expected) + 1
    assert np.diff(batch.vertex_offsets).tolist() == [g.n_vertices for g in graphs]
    assert (batch.weights is None) == (graphs[0].weights is None)
    for name in ("labels", "features"):
        given_ = [getattr(g, name) for g in graphs]
        found = getattr(batch, name)
        assert found is None if given_[0] is None else (found == np.concatenate(given_)).all()


@given(graph_lists(arc_kinds=ARC_KINDS))
def test_counts(graphs):
    batch = GraphBatch.from_graphs(graphs)
    rows = [neighborhoods(g) for g in graphs]
    listed = sum(len(set(zip(*g.edge_index.tolist(), strict=True))) for g in graphs)
    assert batch.n_merged_arcs == sum(g.edge_index.shape[1] for g in graphs) - listed
    assert batch.n_self_loops == sum(v in row for r in rows for v, row in enumerate(r))
    assert batch.graph_of_vertex.tolist() == [i for i, r in enumerate(rows) for _ in r]
    degrees = [max(sum(map(abs, row.values())) for row in r) for r in rows]
    np.testing.assert_allclose(batch.max_degrees, degrees, rtol=1e-12)


@given(graph_lists(directed=True), st.booleans())
def test_adjacency_is_that_of_networkx(graphs, directed):
    union = nx.DiGraph() if directed else nx.Graph()
    for graph in graphs:
        start = len(union)
        union.add_nodes_from(range(start, start + graph.n_vertices))
        union.add_edges_from((graph.edge_index + start).T.tolist())
    plain = [Graph(g.edge_index, g.n_vertices, directed=directed) for g in graphs]
    found = GraphBatch.from_graphs(plain).adjacency().toarray()
    # networkx writes the arc from u to v in row u, we in row v: it flows into v.
    np.testing.assert_array_equal(found, nx.to_numpy_array(union, nodelist=sorted(union)).T)


def test_adjacency_direction_and_weights():
    batch = GraphBatch.from_graphs([Graph([[0, 2], [1, 2]], weights=[5, -3], directed=True)])
    assert batch.adjacency().toarray().tolist() == [[0, 0, 0], [5, 0, 0], [0, 0, -3]]
    assert batch.max_degrees.tolist() == [5.0]


@given(graph_lists(arc_kinds=ARC_KINDS), st.randoms(use_true_random=False))
def test_permuting_the_graphs_permutes_the_batch(graphs, random):
    order = random.sample(range(len(graphs)), len(graphs))
    assert_same(
        GraphBatch.from_graphs([graphs[i] for i in order]), GraphBatch.from_graphs(graphs)[order]
    )


@given(graph_lists(arc_kinds=ARC_KINDS))
def test_from_arcs_equals_from_graphs(graphs):
    offsets = np.cumsum([0] + [g.n_vertices for g in graphs])

    def joined(name):
        values = [getattr(g, name) for g in graphs]
        return None if values[0] is None else np.concatenate(values)

    shifted = [g.edge_index + start for g, start in zip(graphs, offsets, strict=False)]
    fields = {n: joined(n) for n in ("weights", "labels", "features", "edge_labels")}
    batch = GraphBatch.from_arcs(
        offsets, np.concatenate(shifted, axis=1), directed=graphs[0].directed, **fields
    )
    expected = GraphBatch.from_graphs(graphs)
    assert_same(batch, expected)
    assert batch.n_merged_arcs == expected.n_merged_arcs


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.uint64])
def test_any_integer_dtype(dtype):
    arcs = np.array([[0, 1, 99], [1, 2, 100]], dtype=dtype)
    labels = np.arange(101, dtype=dtype)
    batch = GraphBatch.from_graphs([Graph(arcs, labels=labels)] * 3)
    assert_same(batch, GraphBatch.from_graphs([Graph(arcs.tolist(), labels=labels.tolist())] * 3))
    assert_same(batch[:1], GraphBatch.from_arcs([0, 101], arcs, labels=labels))


@pytest.mark.parametrize("arcs", [[], [[], []], np.empty((2, 0)), np.empty((0, 2), dtype=int)])
def test_no_arcs(arcs):
    batch = GraphBatch.from_graphs([Graph(arcs, n_vertices=2)])
    assert (batch.n_vertices, batch.n_arcs) == (2, 0)
    assert batch.max_degrees.tolist() == [0.0]


def test_size_from_labels_features_or_arcs():
    assert GraphBatch.from_graphs([Graph(EDGE, labels=[1, 1, 1])]).n_vertices == 3
    assert GraphBatch.from_graphs([Graph(EDGE, features=np.ones((4, 1)))]).n_vertices == 4
    assert GraphBatch.from_graphs([GOOD, Graph(EDGE, n_vertices=np.int8(5))]).n_vertices == 8


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (np.array(["C", "N"], dtype=object), ["C", "N"]),
        (np.array([3, 4], dtype=object), [3, 4]),
        (np.array([True, False]), [0, 1]),
        (("C", "Cl"), ["C", "Cl"]),
    ],
)
def test_labels_of_other_types(labels, values):
    assert GraphBatch.from_graphs([Graph(EDGE, labels=labels)]).label_values.tolist() == values


def test_integer_labels_stay_exact():
    big = 2**53 + 1  # a float64 in between would round it
    graphs = [Graph(EDGE, labels=np.array([big, 1], dtype=d)) for d in (np.int64, np.uint64)]
    assert GraphBatch.from_graphs(graphs).labels.tolist() == [big, 1, big, 1]


def test_features_are_in_c_order():
    features = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for batch in (
        GraphBatch.from_graphs([Graph(EDGE, features=features)]),
        GraphBatch.from_arcs([0, 2], EDGE, features=features),
    ):
        assert batch.features.flags.c_contiguous
        np.testing.assert_array_equal(batch.features, features)


# ---------------------------------------------------------------------- arc labels


@given(graph_lists(arc_kinds=ARC_KINDS[1:]))
def test_edge_labels_are_those_of_the_listed_edges(graphs):
    """The definition, an arc at a time."""
    batch = GraphBatch.from_graphs(graphs)
    expected = []
    for graph in graphs:
        label = {}
        for u, v, value in zip(*graph.edge_index.tolist(), graph.edge_labels, strict=True):
            label[v, u] = value
            if not graph.directed:
                label[u, v] = value
        expected += [label[arc] for arc in sorted(label)]
    assert batch.edge_labels.tolist() == expected
    assert batch.edge_label_codes.dtype == np.int32
    assert batch.edge_label_values.tolist() == sorted(set(expected))


@given(graph_lists(arc_kinds=ARC_KINDS[1:], max_size=1), st.data())
def test_the_order_in_which_arcs_are_listed_does_not_matter(graphs, data):
    """Nor does it matter whether an edge is listed once, twice or both ways."""
    graph = graphs[0]
    m = graph.edge_index.shape[1]
    order = np.array(data.draw(st.permutations(range(m))), dtype=np.int64)
    again = data.draw(st.lists(st.sampled_from(range(m)), max_size=5)) if m else []
    order = np.concatenate([order, np.array(again, dtype=np.int64)])
    arcs = graph.edge_index[:, order]
    if not graph.directed:
        flipped = np.array(
            data.draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
        )
        arcs = np.where(flipped.astype(bool), arcs[::-1], arcs) if len(order) else arcs
    weights = None if graph.weights is None else graph.weights[order]
    other = replace(graph, edge_index=arcs, weights=weights, edge_labels=graph.edge_labels[order])
    assert_same(GraphBatch.from_graphs([other]), GraphBatch.from_graphs([graph]))


@given(graph_lists(arc_kinds=ARC_KINDS[1:], kinds=("plain",), max_size=1), st.data())
def test_renumbering_vertices_moves_edge_labels_with_their_arcs(graphs, data):
    graph = graphs[0]
    new = np.array(data.draw(st.permutations(range(graph.n_vertices))))
    moved = GraphBatch.from_graphs([replace(graph, edge_index=new[graph.edge_index])])[0]
    back = replace(moved, edge_index=np.argsort(new)[moved.edge_index])
    assert_same(GraphBatch.from_graphs([back]), GraphBatch.from_graphs([graph]))


@given(graph_lists(arc_kinds=ARC_KINDS[1:]))
def test_edge_labels_change_nothing_else(graphs):
    """Colors, quotients and so every reservoir see the same graph."""
    labeled = GraphBatch.from_graphs(graphs)
    plain = GraphBatch.from_graphs([replace(graph, edge_labels=None) for graph in graphs])
    assert plain.edge_labels is plain.edge_label_codes is plain.edge_label_values is None
    assert labeled.n_merged_arcs == plain.n_merged_arcs
    parts = [(*b.structure, *b.coloring, *b.quotients.arrays) for b in (labeled, plain)]
    for a, b in zip(*parts, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(labeled.colors, plain.colors)
    assert_same(replace(labeled, edge_label_codes=None, edge_label_values=None), plain)


def test_batches_with_other_edge_labels_are_joined_by_value():
    first = GraphBatch.from_graphs([Graph(EDGE, edge_labels=["b"]), Graph(EDGE, edge_labels=["d"])])
    second = GraphBatch.from_graphs(
        [Graph(EDGE, edge_labels=["c"]), Graph(EDGE, edge_labels=["b"])]
    )
    both = GraphBatch.from_graphs([*first, *second])
    assert both.edge_label_values.tolist() == ["b", "c", "d"]
    assert both.edge_labels.tolist() == [*first.edge_labels, *second.edge_labels]
    assert first[1:].edge_labels.tolist() == ["d", "d"]


@pytest.mark.parametrize("label", [1, "single"])
@pytest.mark.parametrize("labels", [None, [], np.empty(0, dtype=str), np.empty(0, dtype=int)])
def test_graphs_without_arcs_go_with_any_edge_labels(label, labels):
    lonely, labeled = Graph([], 2, edge_labels=labels), Graph(EDGE, edge_labels=[label])
    for graphs in ([lonely, labeled], [labeled, lonely], [lonely, lonely, labeled, lonely]):
        assert GraphBatch.from_graphs(graphs).edge_labels.tolist() == [label] * 2
    assert GraphBatch.from_graphs([lonely, GOOD]).edge_labels is None
    with pytest.raises(GraphError, match=r"graph 2: .* but graph 1 .*one kind"):
        GraphBatch.from_graphs([lonely, labeled, GOOD])


# ---------------------------------------------------------------------- the user's memory


@given(graph_lists(arc_kinds=ARC_KINDS))
def test_inputs_are_neither_changed_nor_frozen_nor_shared(graphs):
    before = copy.deepcopy(graphs)
    batch = GraphBatch.from_graphs(graphs)
    own = [a for name in ARRAYS if (a := getattr(batch, name)) is not None]
    for graph, old in zip(graphs, before, strict=True):
        for name in ("edge_index", "labels", "features", "weights"):
            value = getattr(graph, name)
            if value is not None:
                np.testing.assert_array_equal(value, getattr(old, name))
                assert value.flags.writeable
                assert not any(np.shares_memory(value, array) for array in own)


def test_from_arcs_takes_no_ones_memory():
    given_ = {
        "vertex_offsets": np.array([0, 2]),
        "arcs": np.array([[0], [1]]),
        "weights": np.array([2.0]),
        "features": np.ones((2, 1)),
    }
    batch = GraphBatch.from_arcs(**given_)
    own = [a for name in ARRAYS if (a := getattr(batch, name)) is not None]
    for value in given_.values():
        assert value.flags.writeable
        assert not any(np.shares_memory(value, array) for array in own)


@given(batches(arc_kinds=ARC_KINDS))
def test_batches_are_read_only_and_so_are_their_copies(batch):
    for one in (batch, batch[:1], copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        for name in batch_module._ARRAYS:
            array = getattr(one, name)
            assert array is None or not array.flags.writeable


@given(batches(arc_kinds=ARC_KINDS))
def test_copies_are_equal(batch):
    _ = batch.max_degrees  # whatever is remembered must not get in the way
    for one in (copy.copy(batch), copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        assert_same(one, batch)
        assert one.n_merged_arcs == batch.n_merged_arcs
        np.testing.assert_array_equal(one.max_degrees, batch.max_degrees)


# ---------------------------------------------------------------------- a list and an array


@given(batches(arc_kinds=ARC_KINDS), st.data())
def test_indexing_is_that_of_an_array(batch, data):
    n = len(batch)
    assert batch.shape == (n,)
    whole = list(batch)
    picks = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=2 * n))
    expected = GraphBatch.from_graphs([whole[i] for i in picks])
    for key in (picks, np.array(picks), np.array(picks, dtype=np.int8), (np.array(picks), ...)):
        assert_same(batch[key], expected)
    mask = np.zeros(n, dtype=bool)
    mask[picks] = True
    expected = GraphBatch.from_graphs([g for g, chosen in zip(whole, mask, strict=True) if chosen])
    for key in (mask, mask.tolist(), (mask, ...)):
        assert_same(batch[key], expected)


@given(batches(arc_kinds=ARC_KINDS), st.data())
def test_integers_and_slices(batch, data):
    n = len(batch)
    i = data.draw(st.integers(-n, n - 1))
    for key in (i, np.int64(i), np.array(i)):
        assert isinstance(batch[key], Graph)
        assert_same(GraphBatch.from_graphs([batch[key]]), batch[[i]])
    key = data.draw(st.slices(n))
    chosen = list(batch)[key]
    if chosen:
        assert_same(batch[key], GraphBatch.from_graphs(chosen))
    else:
        assert list(batch[key]) == []


@given(batches(arc_kinds=ARC_KINDS), st.data())
def test_part_of_a_part(batch, data):
    picks = st.lists(st.integers(0, len(batch) - 1), min_size=1, max_size=8)
    first = data.draw(picks)
    second = data.draw(st.lists(st.integers(0, len(first) - 1), min_size=1, max_size=8))
    assert_same(batch[first][second], batch[[first[i] for i in second]])


@given(batches(arc_kinds=ARC_KINDS))
def test_iteration_round_trip(batch):
    assert_same(GraphBatch.from_graphs(list(batch)), batch)
    assert_same(GraphBatch.from_graphs(list(reversed(batch))), batch[::-1])


@pytest.mark.parametrize(
    "key", [2, -3, [0, 2], [-3], 0.5, "a", [0.0], True, None, [[0, 1]], [True], (0, 1), (..., 0, 0)]
)
def test_bad_index(key):
    batch = GraphBatch.from_graphs([GOOD, GOOD])
    with pytest.raises(IndexError):
        batch[key]


@pytest.mark.parametrize("key", [[], slice(0, 0), [False, False], np.array([], dtype=int)])
def test_index_that_selects_nothing(key):
    nothing = GraphBatch.from_graphs([GOOD, GOOD])[key]
    assert (len(nothing), nothing.shape, nothing.n_vertices, nothing.n_arcs) == (0, (0,), 0, 0)
    assert list(nothing) == list(GraphBatch.empty()) == []
    assert (nothing.n_distinct_graphs, len(nothing.colors), len(nothing.max_degrees)) == (0, 0, 0)
    assert len(pickle.loads(pickle.dumps(nothing))) == len(nothing[:5]) == 0


def test_walking_a_batch_is_linear(monkeypatch):
    # A minute for 10,000 graphs, if each of them decodes the labels of the whole batch.
    batch = GraphBatch.from_graphs([Graph(EDGE, labels=["a", "b"])] * 3)
    monkeypatch.delattr(GraphBatch, "labels")
    assert [graph.labels.tolist() for graph in batch] == [["a", "b"]] * 3


def test_reprs():
    batch = GraphBatch.from_graphs([Graph(EDGE, labels=[1, 2], weights=[2], directed=True)])
    assert repr(batch) == (
        "GraphBatch(1 graph, 2 vertices, 1 directed edge, 2 vertex labels, weighted, directed)"
    )
    assert "3 features per vertex" in repr(
        GraphBatch.from_graphs([Graph(EDGE, features=np.ones((2, 3)))])
    )
    ones = GraphBatch.from_graphs([Graph(EDGE, labels=[1, 1], edge_labels=["s"])] * 2)
    assert "1 vertex label, 1 edge label, 1 descriptor)" in repr(ones.with_descriptors([[1], [2]]))
    assert "1 feature per vertex" in repr(
        GraphBatch.from_graphs([Graph(EDGE, features=np.ones((2, 1)))])
    )
    labeled = GraphBatch.from_graphs([Graph(PATH, edge_labels=["s", "d"], weights=[1, 2])])
    assert repr(labeled) == (
        "GraphBatch(1 graph, 3 vertices, 4 directed edges, 2 edge labels, weighted)"
    )
    assert repr(batch[0]) == "Graph(2 vertices, 1 directed edge)"
    assert repr(Graph([[0], [1, 2]])) == repr(Graph(None)) == "Graph(? vertices, ? directed edges)"


# ---------------------------------------------------------------------- scikit-learn


def numbered(n: int = 30) -> tuple[GraphBatch, np.ndarray]:
    """Graph i has i + 1 vertices, so that it is known by its size; y is i's parity."""
    graphs = [Graph([], n_vertices=i + 1) for i in range(n)]
    return GraphBatch.from_graphs(graphs), np.arange(n) % 2


def sizes(batch: GraphBatch) -> np.ndarray:
    assert isinstance(batch, GraphBatch)
    return np.diff(batch.vertex_offsets)


def test_train_test_split():
    batch, y = numbered()
    train, test, y_train, y_test = train_test_split(batch, y, stratify=y, random_state=0)
    assert sorted([*sizes(train), *sizes(test)]) == list(range(1, 31))
    assert ((sizes(train) - 1) % 2 == y_train).all()
    assert ((sizes(test) - 1) % 2 == y_test).all()


def test_stratified_folds():
    batch, y = numbered()
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(batch, y):
        for indices in (train, test):
            assert (sizes(_safe_indexing(batch, indices)) - 1 == indices).all()


@pytest.mark.parametrize("function", [shuffle, resample])
def test_shuffle_and_resample(function):
    batch, y = numbered()
    chosen, y_chosen = function(batch, y, random_state=0)
    assert ((sizes(chosen) - 1) % 2 == y_chosen).all()
    assert not (sizes(chosen) == sizes(batch)).all()


# ---------------------------------------------------------------------- labels and vocabularies


@given(batches(kinds=("integers", "text"), min_size=2), st.randoms(use_true_random=False))
def test_encode_labels(batch, random):
    vocabulary = random.sample(batch.label_values.tolist(), len(batch.label_values))
    for known in (vocabulary, np.array(vocabulary)):
        codes = batch.encode_labels(known)
        assert codes.dtype == np.int32
        assert [vocabulary[code] for code in codes] == batch.labels.tolist()
    part = batch[1:]
    assert [vocabulary[code] for code in part.encode_labels(vocabulary)] == part.labels.tolist()


def test_unseen_labels():
    batch = GraphBatch.from_graphs([Graph(EDGE, labels=[1, 1]), Graph(EDGE, labels=[1, 7])])
    with pytest.raises(
        UnknownLabelError, match=r"graph 1: vertex label 7 .* known are 1, 2; leave"
    ):
        batch.encode_labels([1, 2])
    with pytest.raises(UnknownLabelError, match=r"graph 0: vertex label 1 .* known are '1', '7'"):
        batch.encode_labels(np.array(["1", "7"]))
    with pytest.raises(UnknownLabelError, match=r"known are 10, .* 19, \.\.\.; leave"):
        batch.encode_labels(range(10, 30))
    text = GraphBatch.from_graphs([Graph(EDGE, labels=["1", "7"])])
    with pytest.raises(UnknownLabelError, match=r"graph 0: vertex label '1' .* known are 1, 7"):
        text.encode_labels([1, 7])
    # A label that only other graphs had is none of this part's business.
    assert batch[:1].encode_labels([1]).tolist() == [0, 0]
    with pytest.raises(GraphError, match="no vertex labels"):
        GraphBatch.from_graphs([GOOD]).encode_labels([1])


# ---------------------------------------------------------------------- what is wrong

NAN, INF = float("nan"), float("inf")
MASKED = np.ma.masked_array([[1.0], [2.0]], mask=[[True], [False]])

BAD_GRAPHS = {
    "target past the last": (Graph([[0], [3]], 3), r"\(0, 3\) is out of range for 3 vertices"),
    "source past the last": (Graph([[9], [0]], labels=[1, 2]), r"\(9, 0\) is out of range for 2"),
    "negative index": (Graph([[0, -1], [1, 0]], 3), r"edge \(-1, 0\) has a negative index"),
    "negative, no size": (Graph([[-2], [-1]]), "no vertices"),
    "float indices": (Graph([[0.0], [1.0]]), "dtype float64, expected integers"),
    "bool indices": (Graph([[False], [True]]), "dtype bool, expected integers"),
    "text indices": (Graph([["a"], ["b"]]), "expected integers; number the vertices"),
    "object indices": (Graph([[0], [None]]), "dtype object, expected integers"),
    "index too large for int64": (Graph([[0], [2**64]]), "expected integers"),
    "uint64 that would wrap": (Graph(np.array([[0], [2**64 - 1]], dtype=np.uint64), 3), "18446744"),
    "list of pairs": (Graph([[0, 1], [1, 2], [2, 0]]), r"shape \(3, 2\).*transpose"),
    "flat arcs": (Graph([0, 1]), r"shape \(2,\), expected \(2, n_edges\)"),
    "three dimensions": (Graph([[[0]], [[1]]]), "shape"),
    "no edge_index": (Graph(None), r"is a NoneType, expected an array of shape"),
    "ragged edge_index": (Graph([[0, 1], [1]]), "not a rectangular array"),
    "a stray id": (Graph([[0], [2**40]]), "vertex 1099511627776; number the vertices from 0"),
    "a smaller stray id": (Graph([[0], [10**7]]), "vertex 10000000; number the vertices from 0"),
    "no vertices": (Graph([]), "no vertices; leave the graph out"),
    "no vertices, said so": (Graph([], n_vertices=0), "no vertices"),
    "no labels": (Graph([], labels=[]), "no vertices"),
    "negative size": (Graph(EDGE, n_vertices=-1), "n_vertices is -1, expected an integer"),
    "float size": (Graph(EDGE, n_vertices=2.0), "n_vertices is 2.0, expected an integer"),
    "bool size": (Graph([], n_vertices=True), "n_vertices is True"),
    "text size": (Graph(EDGE, n_vertices="2"), "n_vertices is '2'"),
    "absurd size": (Graph(EDGE, n_vertices=2**70), "expected an integer from 1 to 2147483647"),
    "size against labels": (Graph(EDGE, 3, labels=[1, 2]), "n_vertices is 3, .* for 2"),
    "size against features": (Graph(EDGE, 3, features=[[1.0]] * 2), "n_vertices is 3, .* for 2"),
    "labels and features": (Graph(EDGE, labels=[0, 1], features=[[1], [2]]), "both labels and"),
    "float labels": (Graph(EDGE, labels=[0.0, 1.0]), "dtype float64, .* as features"),
    "NaN labels": (Graph(EDGE, labels=[1, NAN]), "labels are missing for vertex"),
    "label matrix": (Graph(EDGE, labels=[[1], [2]]), r"shape \(2, 1\)"),
    "one label": (Graph(EDGE, labels=5), r"labels have shape \(\)"),
    "one string": (Graph(EDGE, labels="CN"), r"labels have shape \(\)"),
    "numbers and text": (Graph(EDGE, labels=[1, "C"]), "labels mix text"),
    "missing label": (Graph(EDGE, labels=["C", None]), "labels are missing for vertex 1"),
    "missing label as NaN": (Graph(EDGE, labels=["C", NAN]), "labels are missing for vertex 1"),
    "object labels": (Graph(EDGE, labels=np.array([1, "C"], dtype=object)), "mix text"),
    "tuples as labels": (Graph(EDGE, labels=[(1, 2), (3, 4)]), r"shape \(2, 2\)"),
    "bytes": (Graph(EDGE, labels=[b"C", b"N"]), r"dtype \|S1"),
    "label past int64": (Graph(EDGE, labels=np.array([2**63, 1], dtype="u8")), "dtype uint64"),
    "label past uint64": (Graph(EDGE, labels=[2**65, 1]), "dtype object"),
    "ragged labels": (Graph(EDGE, labels=[[1], [1, 2]]), "not a rectangular array"),
    "NaN feature": (Graph(EDGE, features=[[1.0], [NAN]]), "vertex feature is NaN or infinite"),
    "infinite feature": (Graph(EDGE, features=[[INF], [1]]), "vertex feature is NaN or infinite"),
    "ragged features": (Graph(EDGE, features=[[1.0], [1.0, 2.0]]), "not a rectangular array"),
    "flat features": (Graph(EDGE, features=[1.0, 2.0]), r"shape \(2,\).*reshape"),
    "one feature": (Graph(EDGE, features=1.0), r"shape \(\)"),
    "no columns": (Graph(EDGE, features=[[], []]), r"shape \(2, 0\)"),
    "text features": (Graph(EDGE, features=[["1"], ["2"]]), "expected real numbers"),
    "complex features": (Graph(EDGE, features=[[1j], [2]]), "dtype complex128, expected real"),
    "object features": (Graph(EDGE, features=[[None], [1]]), "dtype object, expected real"),
    "masked features": (Graph(EDGE, features=MASKED), "masked"),
    "NaN weight": (Graph(EDGE, weights=[NAN]), "edge weight is NaN or infinite"),
    "infinite weight": (Graph(EDGE, weights=[-INF]), "edge weight is NaN or infinite"),
    "too few weights": (Graph([[0, 1], [1, 2]], weights=[1]), r"shape \(1,\), expected \(2,\)"),
    "weights but no arcs": (Graph([], 2, weights=[1.0]), r"shape \(1,\), expected \(0,\)"),
    "weight column": (Graph(EDGE, weights=[[1.0]]), r"shape \(1, 1\), expected \(1,\)"),
    "one weight": (Graph(EDGE, weights=1.0), r"shape \(\)"),
    "text weights": (Graph(EDGE, weights=["1"]), "expected real numbers"),
    "ragged weights": (Graph([[0, 1], [1, 2]], weights=[[1], [1, 2]]), "not a rectangular"),
    "repeat, other weight": (
        Graph([[2, 0, 0], [2, 1, 1]], weights=[1, 1, 2]),
        r"edge \(0, 1\) is listed with different weights; sum or drop",
    ),
    "two directions, other weight": (
        Graph([[0, 1], [1, 0]], weights=[1, 2]),
        r"\) is listed with different weights; .* `directed=True`",
    ),
    "float arc labels": (Graph(EDGE, edge_labels=[1.0]), "dtype float64, .* as weights"),
    "arc labels mixed": (
        Graph(PATH, edge_labels=[1, "C"]),
        "edge_labels mix text",
    ),
    "too few arc labels": (
        Graph(PATH, edge_labels=[1]),
        r"labels have shape \(1,\), .* \(2,\)",
    ),
    "arc label column": (Graph(EDGE, edge_labels=[[1]]), r"edge_labels have shape \(1, 1\)"),
    "one arc label": (Graph(EDGE, edge_labels="C"), r"edge_labels have shape \(\)"),
    "missing arc label": (Graph(PATH, edge_labels=["C", None]), "missing for edge 1"),
    "arc labels but no arcs": (Graph([], 2, edge_labels=[1]), r"shape \(1,\), expected \(0,\)"),
    "repeat, other label": (
        Graph([[2, 0, 0], [2, 1, 1]], edge_labels=[1, 1, 2]),
        r"edge \(0, 1\) is listed with different labels; drop repeats",
    ),
    "two directions, other label": (
        Graph([[0, 1], [1, 0]], edge_labels=[1, 2]),
        r"\) is listed with different labels; .* `directed=True`",
    ),
    "directed is text": (Graph(EDGE, directed="no"), "directed is 'no', expected True or False"),
}


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_bad_graph_is_named(name):
    bad, message = BAD_GRAPHS[name]
    # Two good graphs of the same kind before it, so that only this one can be meant.
    good = Graph(
        EDGE,
        labels=None if bad.labels is None else [1, 2],
        features=None if bad.features is None or bad.labels is not None else [[1.0], [2.0]],
        weights=None if bad.weights is None else [1.0],
        edge_labels=None if bad.edge_labels is None else [1],
    )
    with pytest.raises(GraphError, match=f"^graph 2: .*{message}"):
        GraphBatch.from_graphs([good, good, bad])


PLAIN = "undirected, with neither labels nor features, without weights"


@pytest.mark.parametrize(
    ("first", "other", "what"),
    [
        (GOOD, Graph(EDGE, directed=True), f"directed, .* but graph 0 is {PLAIN}"),
        (GOOD, Graph(EDGE, labels=[1, 2]), "with integer labels"),
        (Graph(EDGE, labels=[1, 2]), GOOD, PLAIN),
        (GOOD, Graph(EDGE, features=[[1], [2]]), "with 1 features per vertex"),
        (Graph(EDGE, labels=[1, 2]), Graph(EDGE, features=[[1], [2]]), "1 .* 0 is .* labels"),
        (GOOD, Graph(EDGE, weights=[1]), "with weights"),
        (
            Graph(EDGE, labels=[1, 2]),
            Graph(EDGE, labels=["1", "2"]),
            "text labels.* integer labels",
        ),
        (Graph(EDGE, features=[[1], [2]]), Graph(EDGE, features=[[1, 1], [2, 2]]), "2 .* 0 .* 1 "),
        (
            GOOD,
            Graph(EDGE, edge_labels=[1]),
            "without weights, with integer edge labels, but graph 0",
        ),
        (Graph(EDGE, edge_labels=["a"]), GOOD, f"{PLAIN}, but .* with text edge labels"),
        (Graph(EDGE, edge_labels=[1]), Graph(EDGE, edge_labels=["1"]), "text edge .* integer edge"),
    ],
)
def test_graphs_that_do_not_agree(first, other, what):
    with pytest.raises(GraphError, match=f"^graph 2: .*{what}.* must be of one kind"):
        GraphBatch.from_graphs([first, first, other])


def test_directed_repeats_may_differ_by_direction_only():
    batch = GraphBatch.from_graphs([Graph([[0, 1], [1, 0]], weights=[1, 2], directed=True)])
    assert batch.adjacency().toarray().tolist() == [[0, 2], [1, 0]]
    with pytest.raises(GraphError, match="different weights"):
        GraphBatch.from_graphs([Graph([[0, 0], [1, 1]], weights=[1, 2], directed=True)])


def test_different_weights_are_named_inside_their_own_graph():
    bad = Graph([[1, 1], [2, 2]], weights=[1, 2])
    good = Graph(EDGE, weights=[1])
    with pytest.raises(GraphError, match=r"^graph 2: edge \(1, 2\)"):
        GraphBatch.from_graphs([good, good, bad])


def test_empty_lists_and_other_things():
    with pytest.raises(GraphError, match="no graphs"):
        GraphBatch.from_graphs([])
    with pytest.raises(GraphError, match="graph 1: a tuple, not a Graph; as_batch converts"):
        GraphBatch.from_graphs([GOOD, (EDGE, None)])
    assert GraphBatch.collect({}) == (None, {})


def test_an_error_knows_its_graph_and_its_reason():
    error = GraphError("no vertices", 3)
    assert (error.graph, error.reason) == (3, "no vertices")
    assert str(error) == "graph 3: no vertices"
    assert str(GraphError("no graphs")) == "no graphs"
    for one in (error, UnknownLabelError("label 7", 0), GraphError("no graphs")):
        again = pickle.loads(pickle.dumps(one))
        assert type(again) is type(one)
        assert (again.graph, again.reason, str(again)) == (one.graph, one.reason, str(one))


@given(st.lists(st.sampled_from([None, *BAD_GRAPHS]), max_size=30))
def test_good_graphs_are_collected_and_bad_ones_named_in_one_pass(names):
    """As many times as each kind of fault occurs; the good graphs are joined as without them."""
    bad = {n: BAD_GRAPHS[n] for n in BAD_GRAPHS if BAD_GRAPHS[n][0].labels is None}
    bad = {n: b for n, b in bad.items() if b[0].features is None and b[0].weights is not None}
    good = Graph([[0, 1], [1, 2]], weights=[1.0, 2.0])
    names = [name if name in bad else None for name in names]
    graphs = [good if name is None else bad[name][0] for name in names]
    batch, errors = GraphBatch.collect(dict(enumerate([good, *graphs])))
    assert_same(batch, GraphBatch.from_graphs([good] * (1 + names.count(None))))
    assert sorted(errors) == [i + 1 for i, name in enumerate(names) if name]
    for i, reason in errors.items():
        assert re.search(bad[names[i - 1]][1], reason)


def test_many_bad_graphs_cost_no_more_passes(monkeypatch):
    """Each kind of fault is found for all graphs at once."""
    kinds = [
        Graph(EDGE, weights=[1.0]),
        Graph([[0], [5]], 2, weights=[1.0]),
        Graph(EDGE, weights=[NAN]),
        Graph([[0, 1], [1, 0]], weights=[1, 2]),
    ]
    joins = []
    monkeypatch.setattr(batch_module, "join", lambda parts: joins.append(1) or join(parts))
    batch, errors = GraphBatch.collect(dict(enumerate(kinds * 500)))
    assert (len(batch), len(errors)) == (500, 1500)
    assert len(joins) == 4


def test_too_many_vertices_together():
    huge = Graph(EDGE, n_vertices=2**31 - 1)
    with pytest.raises(GraphError, match=r"4294967294 vertices, and at most 2147483647.*split"):
        GraphBatch.from_graphs([huge, huge])


TWO = np.array([0, 2, 4])


@pytest.mark.parametrize(
    ("offsets", "arcs", "fields", "message"),
    [
        (TWO, [[0], [4]], {}, "names vertex 4, but the vertices are 0 to 3"),
        (TWO, [[-1], [0]], {}, "names vertex -1"),
        (TWO, [[0], [2]], {}, "graph 0: edge 0 leads from it into graph 1"),
        (TWO, [[0.0], [1.0]], {}, "expected integers"),
        (TWO, [0, 1], {}, r"shape \(2,\)"),
        (TWO, np.array([[0], [2**64 - 1]], dtype=np.uint64), {}, "18446744073709551615"),
        ([0, 2, 2], [[], []], {}, "graph 1: no vertices"),
        ([0, 3, 2], [[], []], {}, "graph 1: no vertices"),
        ([0], [[], []], {}, "vertex_offsets"),
        ([], [[], []], {}, "vertex_offsets"),
        ([1, 2], [[], []], {}, "vertex_offsets"),
        ([0.0, 2.0], [[], []], {}, "vertex_offsets"),
        ([0, 2**40], [[], []], {}, "at most 2147483647"),
        (TWO, EDGE, {"weights": [1, 2]}, r"weights have shape \(2,\), expected \(1,\)"),
        (TWO, EDGE, {"weights": [NAN]}, "graph 0: an edge weight is NaN or infinite"),
        (TWO, EDGE, {"edge_labels": [1, 2]}, r"edge_labels have shape \(2,\), expected \(1,\)"),
        (TWO, EDGE, {"edge_labels": [0.5]}, "dtype float64"),
        (TWO, [[2, 3], [3, 2]], {"edge_labels": [0, 1]}, r"graph 1: edge \(0, 1\) .* labels"),
        (TWO, EDGE, {"labels": [1, 2]}, "labels or features for 2"),
        (TWO, EDGE, {"labels": [1.0] * 4}, "dtype float64"),
        (TWO, EDGE, {"features": [[1.0]] * 3}, "labels or features for 3"),
        (TWO, EDGE, {"features": [[1]] * 3 + [[INF]]}, "graph 1: a vertex feature is NaN or inf"),
        (TWO, EDGE, {"features": [[1]] * 4, "labels": [1] * 4}, "both labels and features"),
    ],
)
def test_from_arcs_checks_as_well(offsets, arcs, fields, message):
    with pytest.raises(GraphError, match=message):
        GraphBatch.from_arcs(offsets, arcs, **fields)


GARBAGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 6),
    st.sampled_from([2**40, 2**63, 2**66]),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(-2, 4), max_size=4),
    st.lists(st.one_of(st.none(), st.floats(), st.text(max_size=2)), max_size=4),
    st.lists(st.lists(st.integers(-1, 4), max_size=3), max_size=3),
    st.dictionaries(st.integers(0, 2), st.integers(0, 2), max_size=2),
)
FIELDS = (
    "edge_index", "n_vertices", "labels", "features", "weights", "directed", "edge_labels",
)  # fmt: skip


@settings(max_examples=5 * settings().max_examples)
@given(graph_lists(arc_kinds=ARC_KINDS, max_size=1), st.sampled_from(FIELDS), GARBAGE)
def test_garbage_is_refused_or_becomes_a_sound_batch(graphs, field, garbage):
    graph = replace(graphs[0], **{field: garbage})
    assert repr(graph).startswith("Graph(")
    try:
        batch = GraphBatch.from_graphs([graph])
    except GraphError as error:
        assert str(error).startswith("graph 0: ")  # noqa: PT017
    else:
        sizes_ = np.diff(batch.vertex_offsets)[batch.graph_of_vertex]
        assert (batch.neighbors >= 0).all()
        assert (batch.neighbors < np.repeat(sizes_, np.diff(batch.indptr))).all()
        assert batch.indptr[-1] == len(batch.neighbors)
        assert batch.labels is None or len(batch.labels) == batch.n_vertices
        assert batch.features is None or len(batch.features) == batch.n_vertices
        assert batch.edge_labels is None or len(batch.edge_labels) == batch.n_arcs


def test_what_was_computed_travels_to_other_processes():
    batch = GraphBatch.from_graphs([Graph([[0], [1]]), Graph([[0, 1], [1, 2]])])
    radii = batch.spectral_radii
    again = pickle.loads(pickle.dumps(batch))
    assert "spectral_radii" in vars(again)
    np.testing.assert_array_equal(again.spectral_radii, radii)
