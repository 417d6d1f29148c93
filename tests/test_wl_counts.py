"""`WLCounts`: every round against exact refinement, counts against their definition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fdgnn import Graph, GraphClassifier, WLCounts, as_batch, load_model, save_model
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders.label_counts import bins_of, coarse_bins, log_bins, quantile_edges
from fdgnn.exceptions import GraphError, UnknownLabelWarning
from strategies import graph_lists

ROUNDS = 4


def exact_colors(graph, n_iterations, first):
    """Colors as nested tuples, the definition: own color, and the multiset of arcs and ends."""
    batch = as_batch([graph])
    arcs = batch.edge_labels
    into, out = {v: [] for v in range(batch.n_vertices)}, {v: [] for v in range(batch.n_vertices)}
    for v in range(batch.n_vertices):
        for a in range(batch.indptr[v], batch.indptr[v + 1]):
            carried = None if arcs is None else arcs[a].item()
            if batch.weights is not None:
                carried = (carried, batch.weights[a].item())
            into[v].append((int(batch.neighbors[a]), carried))
            out[int(batch.neighbors[a])].append((v, carried))
    colors = [list(first)]
    for _ in range(n_iterations):
        c = colors[-1]

        def seen(arcs, c=c):
            return tuple(sorted(Counter((c[u], x) for u, x in arcs).items(), key=repr))

        outward = out if batch.directed else {v: () for v in out}
        colors.append([(c[v], seen(into[v]), seen(outward[v])) for v in into])
    return colors


def same_partition(one, other):
    """Equal entries on one side are equal on the other."""
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


# ---------------------------------------------------------------------- colors


@settings(max_examples=60, deadline=None)
@given(
    graph_lists(kinds=("integers", "text"), weighted=False, arc_kinds=("none", "integers", "text"))
)
def test_every_round_is_exact_refinement(graphs):
    batch = as_batch(graphs)
    found = WLCounts(n_iterations=ROUNDS).fit(batch).vertex_wl_labels(batch)
    exact = [[] for _ in range(ROUNDS + 1)]
    for graph in batch:
        first = [label.item() for label in np.asarray(graph.labels)]
        for row, colors in zip(exact, exact_colors(graph, ROUNDS, first), strict=True):
            row += colors
    for ours, theirs in zip(found.tolist(), exact, strict=True):
        assert same_partition(ours, theirs)
    # Colors of different rounds differ, too: they share columns.
    distinct = sum(len(set(row)) for row in found.tolist())
    assert len(np.unique(found)) == distinct


def test_whole_weights_and_directions_are_part_of_colors():
    rng = np.random.default_rng(0)
    graphs = []
    for _ in range(30):
        arcs = np.unique(rng.integers(0, 6, size=(2, 8)), axis=1)
        weights = rng.integers(1, 3, size=arcs.shape[1]).astype(float)
        labels = rng.integers(0, 2, 6)
        graphs.append(Graph(arcs, 6, labels=labels, weights=weights, directed=True))
    batch = as_batch(graphs)
    found = WLCounts(n_iterations=2).fit(batch).vertex_wl_labels(batch)
    exact = [[], [], []]
    for graph in batch:
        for row, colors in zip(
            exact, exact_colors(graph, 2, np.asarray(graph.labels).tolist()), strict=True
        ):
            row += colors
    for ours, theirs in zip(found.tolist(), exact, strict=True):
        assert same_partition(ours, theirs)
    without = WLCounts(n_iterations=2, edge_labels=False).fit(batch).vertex_wl_labels(batch)
    assert len(np.unique(without[1])) < len(np.unique(found[1]))


def test_real_weights_are_cut_into_bins_of_the_training_graphs():
    graphs = [Graph([[0, 1], [1, 2]], 3, weights=[w, 2 * w]) for w in np.linspace(0.1, 5.3, 40)]
    encoder = WLCounts(n_iterations=1).fit(graphs)
    assert len(encoder.arcs_.edges) == 7
    near = [Graph([[0, 1], [1, 2]], 3, weights=[1.0, w]) for w in (2.0, 2.0001, 4.9)]
    X = encoder.transform(near).toarray()
    assert (X[0] == X[1]).all()
    assert (X[0] != X[2]).any()


@settings(max_examples=40, deadline=None)
@given(graph_lists(arc_kinds=("none", "text")), st.randoms(use_true_random=False))
def test_the_order_of_vertices_and_graphs_makes_no_difference(graphs, random):
    encoder = WLCounts(n_iterations=3, n_features=2**12).fit(as_batch(graphs))
    X = encoder.transform(as_batch(graphs)).toarray()
    shuffled = [_renumbered(graph, random) for graph in as_batch(graphs)]
    np.testing.assert_array_equal(encoder.transform(shuffled).toarray(), X)
    order = list(range(len(graphs)))
    random.shuffle(order)
    np.testing.assert_array_equal(
        encoder.transform([shuffled[g] for g in order]).toarray(), X[order]
    )
    for g, graph in enumerate(graphs):  # alone, too
        np.testing.assert_array_equal(encoder.transform([graph]).toarray()[0], X[g])


def _renumbered(graph, random):
    order = list(range(graph.n_vertices))
    random.shuffle(order)
    place = np.argsort(order)
    return Graph(
        place[np.asarray(graph.edge_index)],
        graph.n_vertices,
        labels=None if graph.labels is None else np.asarray(graph.labels)[order],
        features=None if graph.features is None else np.asarray(graph.features)[order],
        weights=graph.weights,
        directed=graph.directed,
        edge_labels=graph.edge_labels,
    )


@pytest.mark.parametrize("labeled", [True, False])
def test_threads_and_chunks_make_no_difference(labeled, monkeypatch):

    graphs = make_random_graphs(60, random_state=0)
    if not labeled:
        graphs = as_batch([Graph(g.edge_index, g.n_vertices) for g in graphs])
    encoder = WLCounts(n_iterations=2).fit(graphs)
    one = encoder.encode(graphs, n_jobs=1).features[0]
    monkeypatch.setattr("fdgnn.encoders.wl._AT_ONCE", 200)
    for n_jobs in (1, 3):
        other = encoder.encode(graphs, n_jobs=n_jobs).features[0]
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


def test_colors_are_the_same_on_every_machine():
    """Numbers that were once computed; files of models depend on them."""
    graph = Graph(
        [[0, 1, 1], [1, 2, 3]], 4, labels=["C", "C", "O", "N"], edge_labels=["s", "d", "s"]
    )
    found = WLCounts(n_iterations=1).fit([graph]).vertex_wl_labels([graph])
    assert [int(c) % 10**6 for c in found.ravel()] == PINNED


PINNED = [339286, 339286, 657819, 235035, 206013, 467365, 842555, 977136]


# ---------------------------------------------------------------------- counts


@pytest.mark.parametrize("n_features", [None, 2**18])
def test_products_of_unary_counts_are_intersections(n_features):
    graphs = make_random_graphs(25, random_state=1)
    encoder = WLCounts(n_iterations=2, n_features=n_features).fit(graphs)
    colors = encoder.vertex_wl_labels(graphs)
    counted = [
        Counter((r, c) for r in range(3) for c in colors[r, a:b].tolist())
        for a, b in zip(graphs.vertex_offsets[:-1], graphs.vertex_offsets[1:], strict=True)
    ]
    wanted = [[sum((one & other).values()) for other in counted] for one in counted]
    X = encoder.transform(graphs)
    found = (X @ X.T).toarray()
    if n_features is None:
        np.testing.assert_array_equal(found, wanted)
    else:  # a few features share a bucket
        assert np.abs(found - wanted).max() <= 3


@pytest.mark.parametrize("n_features", [None, 2**18])
def test_sums_and_presence(n_features):
    triangle_and_two = Graph([[0, 1, 2], [1, 2, 0]], 5, labels=["a", "a", "b", "a", "a"])
    options = {"n_iterations": 0, "n_features": n_features}
    rows = {
        counts: np.sort(WLCounts(counts=counts, **options).fit_transform([triangle_and_two]).data)
        for counts in ("unary", "sum", "presence")
    }
    assert rows["unary"].tolist() == [1, 1, 1, 1, 1]
    assert rows["sum"].tolist() == [1, 4]
    assert rows["presence"].tolist() == [1, 1]


def test_rows_are_canonical_csr_for_any_model():
    graphs, y = make_motif_graphs(60, random_state=0)
    X = WLCounts(n_iterations=2, n_features=64).fit_transform(graphs)  # many collisions
    again = X.copy()
    again.has_sorted_indices = again.has_canonical_format = False
    again.sum_duplicates()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, part), getattr(again, part))
    pipeline = make_pipeline(WLCounts(n_iterations=2), LogisticRegression(max_iter=1000))
    assert clone(pipeline).fit(graphs, y).score(graphs, y) > 0.9


def test_depths_contain_each_other():
    graphs = make_random_graphs(20, random_state=2)
    encoder = WLCounts(n_iterations=3).fit(graphs)
    deep = encoder.encode(graphs, depths=(1, 3)).features
    for X, rounds in zip(deep, (1, 3), strict=True):
        alone = WLCounts(n_iterations=rounds).fit_transform(graphs)
        assert (alone != X).nnz == 0


def test_exact_columns_leave_out_what_training_graphs_do_not_have():
    one, other = (Graph([[0], [1]], 2, labels=labels) for labels in (["a", "b"], ["a", "c"]))
    encoder = WLCounts(n_iterations=0, n_features=None).fit([one])
    with pytest.warns(UnknownLabelWarning, match="1 of 1 graphs"):
        assert encoder.transform([other]).toarray().sum() == 1
    assert len(encoder.columns_) == encoder.n_features_out == 2


# ---------------------------------------------------------------------- structure, features


def test_graphs_without_labels_are_told_apart_by_structure():
    cycle = Graph([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    triangles = Graph([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
    X = WLCounts(n_iterations=2).fit_transform([cycle, triangles]).toarray()
    assert (X[0] != X[1]).any()  # triangles are counted
    X = WLCounts(n_iterations=2, histograms=False).fit_transform([cycle, triangles]).toarray()
    assert (X[0] == X[1]).all()  # color refinement alone cannot


def test_triangles_and_neighbors_are_counted_right():
    import networkx as nx

    from fdgnn.encoders.label_counts import degrees
    from fdgnn.encoders.wl import _extremes, structure_numbers
    from fdgnn.kernels import count_triangles

    made = [nx.gnp_random_graph(12, 0.4, seed=s) for s in range(10)]
    for network in made[::2]:
        network.add_edge(3, 3)  # a loop is no part of a triangle
    batch = as_batch(made)
    wanted = np.concatenate([list(nx.triangles(_without_loops(n)).values()) for n in made])
    triangles = np.zeros(batch.n_vertices, dtype=np.int64)
    arcs = batch.vertex_offsets, batch.indptr, batch.neighbors
    count_triangles(0, len(batch), *arcs, triangles)
    np.testing.assert_array_equal(triangles, wanted)
    np.testing.assert_array_equal(structure_numbers(batch)["triangles"], log_bins(wanted))
    smallest, largest = _extremes(batch, degrees(batch))
    dense = batch.adjacency().toarray() > 0
    degree = dense.sum(axis=1)
    for v in range(batch.n_vertices):
        near = degree[dense[v]]
        assert (smallest[v], largest[v]) == ((near.min(), near.max()) if len(near) else (0, 0))


def _without_loops(network):
    import networkx as nx

    plain = network.copy()
    plain.remove_edges_from(nx.selfloop_edges(network))
    return plain


def test_bins():
    assert log_bins(np.arange(12)).tolist() == [0, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7]
    values = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 3.0], [1.0, 4.0], [1.0, 5.0]])
    edges = quantile_edges(values, 4)
    assert edges[0].tolist() == [0.5, np.inf, np.inf]
    np.testing.assert_allclose(edges[1], [2, 3, 4])
    bins = bins_of(values, edges)
    assert bins[:, 0].tolist() == [0, 0, 1, 1, 1]
    assert coarse_bins(bins, edges)[:, 0].tolist() == [0, 0, 1, 1, 1]


def test_one_hot_features_are_labels():
    graphs = make_random_graphs(40, random_state=3)
    features = as_batch([
        Graph(g.edge_index, g.n_vertices, features=np.eye(10)[np.asarray(g.labels)])
        for g in graphs
    ])  # fmt: skip
    assert WLCounts().fit(features).joint_
    one = WLCounts(n_iterations=2).fit(graphs).vertex_wl_labels(graphs)
    other = WLCounts(n_iterations=2).fit(features).vertex_wl_labels(features)
    for ours, theirs in zip(one.tolist(), other.tolist(), strict=True):
        assert same_partition(ours, theirs)


def test_real_features_are_counted_in_bins():
    rng = np.random.default_rng(0)
    high = rng.integers(0, 2, size=80)
    graphs = [
        Graph([[0, 1, 2], [1, 2, 3]], features=rng.normal(size=(4, 3)) + shift) for shift in high
    ]
    model = GraphClassifier(WLCounts(n_iterations=1)).fit(graphs[:50], high[:50])
    assert model.score(graphs[50:], high[50:]) > 0.8
    assert not model.estimators_[0].encoder.joint_


# ---------------------------------------------------------------------- errors, unseen labels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_iterations": -1}, "n_iterations=-1: expected an integer, at least 0"),
        ({"n_features": 1000}, "n_features=1000: expected a power of two, at least 2"),
        ({"n_features": 2.0**18}, "expected a power of two"),
        ({"counts": "all"}, "counts='all': expected one of"),
        ({"n_bins": 1}, "n_bins=1: expected an integer, at least 2"),
        ({"vertices": "features"}, "the graphs have no vertex features"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        WLCounts(**options).fit(make_random_graphs(3, random_state=0))


def test_features_have_names():
    graphs = make_motif_graphs(20, random_state=0)[0]
    hashed = WLCounts(n_iterations=1, n_features=64).fit(graphs)
    assert hashed.get_feature_names_out().tolist() == [f"bucket{i}" for i in range(64)]
    exact = WLCounts(n_iterations=1, n_features=None).fit(graphs)
    names = exact.get_feature_names_out()
    assert len(set(names)) == len(names) == exact.transform(graphs).shape[1]
    few = WLCounts(n_iterations=1, n_features=None).fit(graphs[:3])
    assert set(few.get_feature_names_out()) <= set(names)


def test_bad_graphs():
    with pytest.raises(GraphError, match="a vertex feature is NaN"):
        WLCounts().fit([Graph([[0], [1]], features=[[np.nan], [1.0]])])
    encoder = WLCounts().fit([Graph([[0], [1]], labels=["a", "b"])])
    with pytest.raises(GraphError, match="no vertex labels, but the model was fitted on"):
        encoder.transform([Graph([[0], [1]])])


def test_unseen_labels_are_told_and_no_error():
    graphs, y = make_motif_graphs(60, random_state=0)
    named = [Graph(g.edge_index, g.n_vertices, labels=np.full(g.n_vertices, "a")) for g in graphs]
    model = GraphClassifier("wl").fit(named, y)
    strange = Graph([[0, 1], [1, 2]], labels=["a", "z", "a"])
    with pytest.warns(
        UnknownLabelWarning, match="1 of 3 graphs has labels or graph-level features"
    ):
        assert model.predict([*named[:2], strange]).shape == (3,)
    assert model.valid_graphs([strange]).errors == {}
    told = {1: "vertex label z was not seen during fit"}
    assert model.unknown_labels([named[0], strange]) == told
    encoder = model.estimators_[0].encoder
    assert encoder.unknown_labels(as_batch([named[0], strange])) == told
    with pytest.warns(UnknownLabelWarning, match="1 of 1 graphs"):
        encoder.transform([strange])


def test_unseen_labels_of_edges_are_told(tmp_path):
    def bonded(*kinds):
        ends = np.array([np.arange(len(kinds)), np.arange(1, len(kinds) + 1)])
        return Graph(ends, labels=["a"] * (len(kinds) + 1), edge_labels=list(kinds))

    known = [bonded("s", "d"), bonded("d", "d"), bonded("s", "s"), bonded("d", "s", "d")]
    model = GraphClassifier("wl").fit(known, [0, 1, 0, 1])
    new = [known[0], bonded("s", "t", "u"), known[1], bonded("u")]
    told = {g: f"edge label {label} was not seen during fit" for g, label in ((1, "t"), (3, "u"))}
    assert model.unknown_labels(new) == told
    with pytest.warns(UnknownLabelWarning, match="2 of 4 graphs"):
        model.predict(new)
    save_model(model, tmp_path / "model.fdgnn")
    assert load_model(tmp_path / "model.fdgnn").unknown_labels(new) == told
    ignoring = GraphClassifier(WLCounts(edge_labels=False)).fit(known, [0, 1, 0, 1])
    assert ignoring.unknown_labels(new) == {}


def test_graphs_must_have_what_arcs_had_during_fit():
    labeled = Graph([[0, 1], [1, 2]], labels=["a", "b", "a"], edge_labels=["s", "d"])
    plain = Graph([[0, 1], [1, 2]], labels=["a", "b", "a"])
    encoder = WLCounts(n_iterations=1).fit([labeled])
    assert encoder.uses_edge_labels
    with pytest.raises(GraphError, match="no labels on edges, but the model was fitted on graphs"):
        encoder.transform([plain])
    X = WLCounts(n_iterations=1).fit([plain]).transform([labeled])  # the other way: they are left
    assert (WLCounts(n_iterations=1).fit_transform([plain]) != X).nnz == 0
    with pytest.raises(GraphError, match="no weights, but the model was fitted on graphs"):
        WLCounts().fit([Graph([[0], [1]], weights=[2.0])]).transform([Graph([[0], [1]])])


def test_sparse_in_and_out():
    X = WLCounts().fit_transform(make_random_graphs(5, random_state=0))
    assert isinstance(X, sp.csr_array)
    assert X.dtype == np.float64
    assert X.has_canonical_format
