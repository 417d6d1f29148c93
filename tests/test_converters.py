"""Every kind of graph becomes the same batch, and what is no graph says so."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from fdgnn import Graph, GraphBatch, as_batch
from fdgnn.exceptions import GraphError, MissingDependencyError, UnusedDataWarning
from fdgnn.graphs.converters import to_networkx
from strategies import ARC_KINDS, assert_same, batches

TRIANGLE = [[0, 1, 2], [1, 2, 0]]
BOTH_WAYS = [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]


@dataclass
class Tensor:
    """What we use of a torch tensor; as one that needs a gradient, it refuses ``numpy()``."""

    values: Any
    detached: bool = False

    def detach(self) -> Tensor:
        return Tensor(self.values, detached=True)

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        if not self.detached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return np.asarray(self.values)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def data(**fields: Any) -> SimpleNamespace:
    """A stand-in for PyG's Data: every field a tensor, the usual ones None where not given."""
    usual = dict.fromkeys(("x", "edge_index", "edge_attr", "num_nodes"))
    given_ = {name: Tensor(value) for name, value in fields.items() if value is not None}
    return SimpleNamespace(**{**usual, **given_, "num_nodes": fields.get("num_nodes")})


# ---------------------------------------------------------------------- all kinds agree

NAMES = ["a", 7, (1, 2), frozenset(), 3.5, "b", -1, "c"]


def x_of(graph: Graph) -> Any:
    return graph.labels if graph.features is None else graph.features


def as_network(graph: Graph) -> nx.Graph:
    return nx.relabel_nodes(to_networkx(graph), dict(enumerate(NAMES)))


def as_data(graph: Graph) -> SimpleNamespace:
    size, weights = graph.n_vertices, graph.weights
    return data(
        edge_index=graph.edge_index,
        x=x_of(graph),
        num_nodes=size,
        edge_weight=weights,
        edge_attr=None if graph.edge_labels is None else graph.edge_labels[:, None],
    )


def as_matrix(graph: Graph) -> tuple[sp.csr_array, Any]:
    """A[i, j] is the arc from i to j."""
    values = np.ones(graph.edge_index.shape[1]) if graph.weights is None else graph.weights
    matrix = sp.csr_array((values, tuple(graph.edge_index)), shape=(graph.n_vertices,) * 2)
    return matrix, x_of(graph)


def as_pair(graph: Graph) -> tuple[Any, Any]:
    return graph.edge_index, x_of(graph)


def as_lists(graph: Graph) -> list[Any]:
    return [graph.edge_index.tolist(), x_of(graph).tolist()]


def as_tensors(graph: Graph) -> tuple[Any, Any]:
    return Tensor(graph.edge_index), Tensor(x_of(graph))


def convert(items: Any, like: GraphBatch) -> GraphBatch:
    names = {"labels": "label", "features": "features"}
    given = next((kind for kind in names if getattr(like, kind) is not None), "none")
    return as_batch(items, vertex=given, vertex_attributes=names.get(given), directed=like.directed)


@given(batches())
def test_sequences_of_graphs(batch):
    graphs = list(batch)
    assert as_batch(batch) is batch
    for sequence in (graphs, tuple(graphs), np.array(graphs, dtype=object), iter(graphs)):
        assert_same(as_batch(sequence), batch)


@given(batches(arc_kinds=ARC_KINDS))
def test_networks(batch):
    assume(batch.n_arcs or (batch.edge_labels is None and batch.weights is None))
    assert_same(convert([as_network(g) for g in batch], batch), batch)


@given(batches(arc_kinds=("none", "integers")))
def test_data(batch):
    assume(batch.n_arcs or (batch.edge_labels is None and batch.weights is None))
    # No names here: x, edge_weight and edge_attr are found without.
    assert_same(as_batch([as_data(g) for g in batch], directed=batch.directed), batch)


@given(batches())
def test_matrices(batch):
    weights = batch.weights  # a zero entry is no arc, and unit weights are none at all
    assume(weights is None or (weights.all() and (weights != 1).any()))
    assert_same(convert([as_matrix(g) for g in batch], batch), batch)


@pytest.mark.parametrize("make", [as_pair, as_lists, as_tensors])
@given(batch=batches(kinds=("integers", "text", "features"), weighted=False))
def test_pairs(make, batch):
    assert_same(convert([make(g) for g in batch], batch), batch)


@given(batches(kinds=("integers", "text"), weighted=False, min_size=2), st.data())
def test_kinds_may_be_mixed(batch, drawn):
    kinds = st.sampled_from([lambda g: g, as_network, as_matrix, as_pair, as_lists, as_tensors])
    assert_same(convert([drawn.draw(kinds)(g) for g in batch], batch), batch)


@given(batches())
def test_networkx_round_trip(batch):
    assume(batch.weights is None or (batch.max_degrees > 0).all())
    for graph in batch:
        kind = "features" if graph.features is not None else "auto"
        back = as_batch([to_networkx(graph)], vertex=kind)
        assert_same(back, GraphBatch.from_graphs([graph]))


# ---------------------------------------------------------------------- pairs


def test_pair_takes_x_for_what_it_is():
    assert as_batch([(TRIANGLE, [5, 6, 5])]).labels.tolist() == [5, 6, 5]
    assert as_batch([(TRIANGLE, ["a", "b", "a"])]).labels.tolist() == ["a", "b", "a"]
    assert as_batch([(TRIANGLE, [[1], [2], [3]])]).features.tolist() == [[1], [2], [3]]
    assert as_batch([(TRIANGLE, None)]).n_vertices == 3
    assert as_batch([([[0], [1]], [5, 6, 7])]).n_vertices == 3
    with pytest.raises(GraphError, match=r"graph 0: labels .* dtype float64.* as features"):
        as_batch([(TRIANGLE, [1.0, 2.0, 3.0])])
    with pytest.raises(GraphError, match="graph 0: features are not a rectangular array"):
        as_batch([(TRIANGLE, [[1.0], [2.0], [3.0, 4.0]])])


def test_pair_may_be_directed():
    batch = as_batch([([[0], [1]], None)], directed=True)
    assert batch.adjacency().toarray().tolist() == [[0, 0], [1, 0]]


def test_inputs_are_left_alone():
    arcs, x = np.array(TRIANGLE), np.eye(3)
    matrix = sp.coo_array(([1.0, 1.0, 2.0, 0.0], ([0, 0, 1, 2], [1, 1, 0, 2])), shape=(3, 3))
    as_batch([(arcs, x)])
    as_batch([matrix])
    assert arcs.flags.writeable
    assert x.flags.writeable
    assert matrix.data.tolist() == [1.0, 1.0, 2.0, 0.0]
    assert matrix.data.flags.writeable


# ---------------------------------------------------------------------- SciPy


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [bool, int, float])
def test_scipy_formats(form, kind, dtype):
    matrix = kind(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=dtype)).asformat(form)
    batch = as_batch([matrix])
    assert batch.adjacency().toarray().tolist() == matrix.toarray().tolist()
    assert batch.weights is None


def test_scipy_row_is_source():
    graph = as_batch([sp.csr_array([[0, 1], [0, 0]])], directed=True)[0]
    assert graph.edge_index.tolist() == [[0], [1]]


def test_scipy_weights_zeros_and_repeats():
    matrix = sp.coo_array(([1, 1, 2, 0], ([0, 0, 1, 1], [1, 1, 0, 1])), shape=(2, 2))
    batch = as_batch([matrix])
    assert batch.adjacency().toarray().tolist() == [[0, 2], [2, 0]]
    assert batch.weights.tolist() == [2, 2]
    assert batch.n_self_loops == 0


def test_scipy_labels_and_features():
    matrix = sp.csr_array([[0, 1], [1, 0]])
    assert as_batch([(matrix, ["a", "b"])]).labels.tolist() == ["a", "b"]
    assert as_batch([(matrix, [[1.0], [2.0]])]).features.tolist() == [[1], [2]]
    with pytest.raises(GraphError, match=r"graph 0: n_vertices is 2, .* for 3"):
        as_batch([(matrix, [1, 2, 3])])


def test_unit_matrix_among_weighted_ones():
    ones, twos = sp.csr_array([[0, 1], [1, 0]]), sp.csr_array([[0, 2], [2, 0]])
    assert as_batch([ones, twos]).weights.tolist() == [1, 1, 2, 2]
    assert as_batch([twos, (ones, None)]).weights.tolist() == [2, 2, 1, 1]
    with pytest.raises(GraphError, match=r"graph 1: undirected, .*, without weights, but graph 0 "):
        as_batch([twos, Graph([[0], [1]])])  # but nobody else's are made up


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1], [0, 0]], r"edge \(0, 1\) has no counterpart \(1, 0\); pass `directed=True`"),
        ([[0, 1], [2, 0]], r"listed with different weights; .* `directed=True`"),
        ([[0, np.nan], [np.nan, 0]], "weight is NaN"),
        ([[0, 1j], [1j, 0]], "dtype complex128"),
        ([[0, 1, 1], [1, 0, 1]], r"shape \(2, 3\), expected a square one"),
    ],
)
def test_bad_matrices(matrix, message):
    good = sp.csr_array([[0, 2], [2, 0]])
    with pytest.raises(GraphError, match=f"^graph 1: .*{message}"):
        as_batch([good, sp.csr_array(matrix)])


def test_empty_matrix():
    with pytest.raises(GraphError, match="graph 0: no vertices"):
        as_batch([sp.csr_array((0, 0))])
    assert as_batch([sp.csr_array((3, 3))]).n_arcs == 0


# ---------------------------------------------------------------------- networkx


def test_networkx_nodes_in_any_order():
    graph = nx.Graph([("z", "a"), ("a", 10)])
    nx.set_node_attributes(graph, {"z": "Zn", 10: "Ne", "a": "Ar"}, "symbol")
    batch = as_batch([graph], vertex_attributes="symbol")
    assert batch.labels.tolist() == ["Zn", "Ar", "Ne"]
    assert batch.adjacency().toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_networkx_directed():
    batch = as_batch([nx.DiGraph([("u", "v")]), nx.MultiDiGraph([(0, 1), (0, 1)])])
    assert batch.directed
    assert batch[:1].adjacency().toarray().tolist() == [[0, 0], [1, 0]]
    assert batch.n_merged_arcs == 1
    with pytest.raises(GraphError, match=r"graph 1: directed, but undirected graphs are exp"):
        as_batch([nx.path_graph(2), nx.DiGraph([(0, 1)])])


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_networkx_parallel_weights_are_summed_as_networkx_does(kind):
    graph = kind()
    graph.add_weighted_edges_from([(0, 1, 1.0), (1, 0, 2.0), (0, 1, 4.0), (2, 2, 8.0)])
    graph.add_node(3)
    found = as_batch([graph]).adjacency().toarray()
    np.testing.assert_array_equal(found, nx.to_numpy_array(graph).T)
    lonely = kind()
    lonely.add_node(0)
    assert as_batch([lonely], edge_attribute="weight").n_arcs == 0


def test_networkx_features_from_several_attributes():
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, {0: 1, 1: 2}, "charge")
    nx.set_node_attributes(graph, {0: [0.5, 0.25], 1: np.zeros(2)}, "place")
    batch = as_batch([graph], vertex_attributes=["charge", "place"])
    assert batch.features.tolist() == [[1, 0.5, 0.25], [2, 0, 0]]
    assert as_batch([graph], vertex="features", vertex_attributes="charge").features.tolist() == [
        [1],
        [2],
    ]


def labeled(*values, name="label"):
    """A path with these labels on its edges."""
    graph = nx.path_graph(len(values) + 1)
    for i, value in enumerate(values):
        if value is not None:
            graph.edges[i, i + 1][name] = value
    return graph


def test_networkx_edge_labels():
    bonds = [labeled("s", "d"), nx.empty_graph(2), labeled("t")]
    assert as_batch(bonds).edge_labels.tolist() == ["s", "s", "d", "d", "t", "t"]
    assert as_batch(bonds).weights is None
    named = [labeled(1, 2, name="bond")]
    with pytest.warns(UnusedDataWarning, match="attributes 'bond' of edges are not used"):
        assert as_batch(named).edge_labels is None
    assert as_batch(named, edge_attribute="bond").edge_label_values.tolist() == [1, 2]
    weighted = as_batch([labeled(1, 2)], edge_attribute="label", edge_labels="weights")
    assert (weighted.edge_labels, weighted.weights.tolist()) == (None, [1, 1, 2, 2])
    with pytest.raises(GraphError, match=r"^graph 0: edges have no attribute 'bond'; the attr"):
        as_batch([labeled(1)], edge_attribute="bond")
    with pytest.raises(GraphError, match=r"^graph 0: label has entries of dtype float64, exp"):
        as_batch([labeled(0.5)], edge_labels="labels")


@pytest.mark.parametrize(
    "others",
    [
        [labeled("s", None), labeled("s")],
        [labeled("s"), nx.path_graph(2)],
        [labeled("s"), labeled(1)],
        [labeled([0.5, 2])],
        [labeled(np.full(2, 0.5))],
        [labeled("s"), Graph([[0], [1]])],
    ],
)
def test_edge_labels_that_cannot_be_used_are_left_out(others):
    """Unless they are asked for."""
    with pytest.warns(
        UnusedDataWarning, match=r"^networkx graphs: the values of 'label'.* are not"
    ):
        assert as_batch(others).edge_labels is None
    assert as_batch(others[:1], edge_labels="ignore").edge_labels is None
    with pytest.raises(GraphError):
        as_batch(others, edge_labels="labels")


def test_labels_of_parallel_edges():
    graph = nx.MultiGraph([(0, 1, {"label": 1, "weight": 2}), (1, 0, {"label": 1, "weight": 3})])
    for name in (None, "label"):
        batch = as_batch([graph], edge_attribute=name)
        assert (batch.weights.tolist(), batch.edge_labels.tolist()) == ([5, 5], [1, 1])
    graph.add_edge(0, 1, label=2, weight=1)
    with pytest.warns(UnusedDataWarning, match="with different labels"):
        batch = as_batch([graph])
    assert (batch.weights.tolist(), batch.edge_labels) == ([6, 6], None)
    with pytest.raises(GraphError, match="with different labels"):
        as_batch([graph], edge_labels="labels")


def test_networkx_attributes_that_no_vertex_has_are_told_with_those_that_there_are():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, "a", "role")
    nx.set_node_attributes(graph, 1.0, "size")
    nx.set_edge_attributes(graph, 2.0, "length")
    told = "graph 0: vertices have no attribute 'rol'; the attributes are 'role', 'size'"
    for names in ("rol", ["size", "rol"]):
        with pytest.raises(GraphError) as error:
            as_batch([graph], vertex_attributes=names)
        assert str(error.value) == told
    with pytest.raises(GraphError, match=r"'w'; the attributes are 'length'$"):
        as_batch([graph], vertex="none", edge_attribute="w")
    graph.add_nodes_from((0, {f"x{i:02}": i}) for i in range(40))
    with pytest.raises(GraphError, match=r"'x07' and 32 more$"):
        as_batch([graph], vertex_attributes="rol")
    with pytest.raises(GraphError, match=r"'x'; the attributes are none$"):
        as_batch([nx.path_graph(2)], vertex_attributes="x")


def test_networkx_missing_attributes():
    graph = nx.Graph([("u", "v")])
    graph.nodes["u"]["label"] = 1
    graph.add_edge("v", "w", weight=1.0)
    with pytest.raises(GraphError, match=r"^graph 0: vertex 'v' has no attribute 'label'; set it"):
        as_batch([graph])
    with pytest.raises(GraphError, match=r"^graph 0: edge 'u', 'v' has no attribute 'weight'"):
        as_batch([graph], vertex="none", edge_attribute="weight")


def test_networkx_bad_attributes():
    graph = nx.Graph([(0, 1)])
    nx.set_node_attributes(graph, {0: [1.0], 1: [1.0, 2.0]}, "ragged")
    nx.set_node_attributes(graph, {0: 1, 1: "C"}, "mixed")
    nx.set_edge_attributes(graph, "heavy", "weight")
    with pytest.raises(
        GraphError, match=r"^graph 0: the rows of attribute 'ragged' .* are not a rect"
    ):
        as_batch([graph], vertex_attributes="ragged")
    with pytest.raises(GraphError, match=r"^graph 0: attribute 'mixed' .* mixes text and num"):
        as_batch([graph], vertex_attributes="mixed")
    with pytest.raises(GraphError, match=r"^an edge carries 1 entries of kind text, and"):
        as_batch([graph], vertex="none", edge_labels="weights")
    with pytest.raises(GraphError, match=r"^graph 1: no vertices"):
        as_batch([nx.path_graph(2), nx.Graph()])


def test_names_of_attributes_may_be_anything():
    graph = nx.Graph([(0, 1, {1: 0.5, "b": 2, "c": 3})])
    graph.add_nodes_from(
        [(v, {7: 1, (2, 3): 2, **{f"x{i}": i for i in range(20)}}) for v in (0, 1)]
    )
    with pytest.warns(UnusedDataWarning, match=r"and 12 more of vertices .*'b', 'c', 1 of edges"):
        assert as_batch([graph]).features is None


def test_to_networkx_checks_and_names_its_fields():
    graph = to_networkx(Graph([[0], [1]], n_vertices=3, labels=[4, 5, 6], weights=[2]))
    assert dict(graph.nodes(data="label")) == {0: 4, 1: 5, 2: 6}
    assert list(graph.edges(data="weight")) == [(0, 1, 2.0)]
    assert to_networkx(Graph([[0], [1]], directed=True)).is_directed()
    with pytest.raises(GraphError, match="is out of range"):
        to_networkx(Graph([[0], [5]], n_vertices=2))


def test_to_networkx_without_networkx(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match="extra 'interop'"):
        to_networkx(Graph(TRIANGLE))


# ---------------------------------------------------------------------- PyTorch Geometric


def test_pyg_x_is_labels_or_features():
    assert as_batch([data(edge_index=BOTH_WAYS, x=[1, 2, 3])]).labels.tolist() == [1, 2, 3]
    assert as_batch([data(edge_index=BOTH_WAYS, x=np.eye(3))]).features.shape == (3, 3)
    assert as_batch([data(edge_index=BOTH_WAYS, num_nodes=5)]).n_vertices == 5


def test_pyg_named_attributes():
    one = data(edge_index=BOTH_WAYS, x=np.eye(3), z=[6, 6, 8], pos=np.ones((3, 2)), t=[1, 2, 3])
    assert as_batch([one], vertex_attributes="z").labels.tolist() == [6, 6, 8]
    batch = as_batch([one], vertex_attributes=["pos", "t"])
    assert batch.features.tolist() == [[1, 1, 1], [1, 1, 2], [1, 1, 3]]
    with pytest.raises(GraphError, match="graph 0: vertices have no attribute 'y'"):
        as_batch([one], vertex_attributes="y")
    one.t = Tensor([1, 2])
    with pytest.raises(GraphError, match="graph 0: attributes pos, t do not fit"):
        as_batch([one], vertex_attributes=["pos", "t"])


def test_pyg_edge_labels():
    labels = [1, 1, 2, 2, 3, 3]
    for values in (labels, np.reshape(labels, (6, 1)), np.array(labels, dtype=np.uint8)):
        assert as_batch([data(edge_index=BOTH_WAYS, edge_attr=values)]).edge_labels is not None
        weighted = as_batch([data(edge_index=BOTH_WAYS, edge_attr=values)], edge_labels="weights")
        assert (weighted.edge_labels, weighted.weights.sum()) == (None, 12)
    for values in (np.eye(6, dtype=int), np.full((6, 2), 0.5), range(6), labels[:5]):
        one = [data(edge_index=BOTH_WAYS, edge_attr=values)]
        with pytest.warns(UnusedDataWarning, match="PyG graphs: the values of 'edge_attr'"):
            assert as_batch(one).edge_labels is None
        assert as_batch(one, edge_labels="ignore").edge_labels is None  # and nothing is told
    named = [data(edge_index=BOTH_WAYS, bond=labels)]
    with pytest.warns(UnusedDataWarning, match="'bond' of edges are not used: `edge_attribute='bo"):
        assert as_batch(named).edge_labels is None
    assert sorted(as_batch(named, edge_attribute="bond").edge_labels) == labels
    with pytest.raises(GraphError, match="graph 0: edges have no attribute 'bonds'"):
        as_batch(named, edge_attribute="bonds")
    with pytest.raises(GraphError, match="is listed with different labels"):
        as_batch([data(edge_index=BOTH_WAYS, z=range(6))], edge_attribute="z", edge_labels="labels")


@pytest.mark.parametrize("dtype", [int, float, bool])
@pytest.mark.parametrize("names", [{}, {"edge_attribute": "edge_attr"}])
def test_pyg_one_hot_edge_attr_is_labels(dtype, names):
    """As TUDataset of PyG has it."""
    one_hot = np.eye(4, dtype=dtype)[[1, 1, 2, 2, 3, 3]]
    one = data(edge_index=BOTH_WAYS, edge_attr=one_hot)
    lonely = data(edge_index=np.empty((2, 0), dtype=int), edge_attr=one_hot[:0], num_nodes=2)
    batch = as_batch([one, lonely], **names)
    assert (sorted(batch.edge_labels), batch.weights) == ([1, 1, 2, 2, 3, 3], None)


def test_pyg_several_integers_per_edge_are_one_label():
    pairs = np.stack([[1, 1, 2, 2, 3, 3], [0] * 6], axis=1)
    one = [data(edge_index=BOTH_WAYS, edge_attr=pairs)]
    batch = as_batch(one)
    assert batch.edge_label_values.tolist() == ["1,0", "2,0", "3,0"]


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_pyg_one_real_number_per_edge_is_its_weight(shape):
    one = data(edge_index=BOTH_WAYS, edge_attr=np.reshape([0.5, 0.5, 2, 2, 3, 3], shape))
    batch = as_batch([one])
    assert (sorted(set(batch.weights)), batch.edge_labels) == ([0.5, 2, 3], None)
    two_ways = data(edge_index=BOTH_WAYS, edge_attr=np.linspace(0, 1, 6))
    with pytest.warns(UnusedDataWarning, match="edge_attr"):
        assert as_batch([two_ways, one]).weights is None  # for some it cannot be used
    with pytest.raises(GraphError, match="listed with different weights"):
        as_batch([two_ways], edge_labels="weights")


def test_pyg_attributes_of_vertices_that_are_not_used_are_told():
    one = data(edge_index=BOTH_WAYS, num_nodes=3, z=[6, 6, 8], pos=np.ones((3, 2)), y=[1, 2, 3])
    with pytest.warns(UnusedDataWarning, match="PyG graphs: attributes 'pos', 'z' of vertices"):
        as_batch([one])
    assert as_batch([one], vertex_attributes="z").labels.tolist() == [6, 6, 8]
    assert as_batch([one], vertex="none").labels is None


def test_pyg_weights():
    weights = [1, 1, 2, 2, 3, 3]
    column = np.reshape(weights, (6, 1))
    plain = data(edge_index=BOTH_WAYS, edge_attr=np.full((6, 4), 0.5))
    with pytest.warns(UnusedDataWarning, match="edge_attr"):
        assert as_batch([plain]).weights is None
    expected = as_batch([data(edge_index=BOTH_WAYS, edge_weight=weights)])
    assert expected.adjacency().toarray().tolist() == [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
    named = data(edge_index=BOTH_WAYS, edge_attr=column)
    assert_same(as_batch([named], edge_labels="weights"), expected)
    with pytest.raises(GraphError, match=r"an edge carries 4 entries .* and a weight is one"):
        as_batch([plain], edge_labels="weights")


def test_pyg_one_way_arcs_are_not_guessed_about():
    one_way = data(edge_index=TRIANGLE)
    with pytest.raises(
        GraphError, match=r"graph 1: the edge \(0, 1\) has no counterpart .* `direct"
    ):
        as_batch([data(edge_index=BOTH_WAYS), one_way])
    batch = as_batch([one_way], directed=True)
    assert batch.adjacency().toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "no attribute 'edge_index'"),
        ({"edge_index": [[0.0], [1.0]]}, "dtype float64, expected integers"),
        ({"edge_index": [0, 1]}, r"shape \(2,\)"),
        ({"edge_index": BOTH_WAYS, "num_nodes": 2}, "is out of range for 2 vertices"),
        ({"edge_index": BOTH_WAYS, "num_nodes": 2, "x": [1, 2, 3]}, "n_vertices is 2, .* for 3"),
        ({"edge_index": np.empty((2, 0), dtype=int), "num_nodes": 0}, "no vertices"),
    ],
)
def test_bad_pyg(fields, message):
    with pytest.raises(GraphError, match=f"^graph 0: .*{message}"):
        as_batch([data(**fields)])


def test_tensors_that_numpy_cannot_hold():
    one = data(edge_index=BOTH_WAYS)
    one.x = SimpleNamespace(numpy=lambda: (_ for _ in ()).throw(TypeError("BFloat16")))
    with pytest.raises(GraphError, match=r"graph 0: a tensor cannot be read .*BFloat16"):
        as_batch([one])


def test_pyg_batches_and_datasets():
    graphs = [data(edge_index=BOTH_WAYS), data(edge_index=BOTH_WAYS, num_nodes=4)]
    batch = data(edge_index=BOTH_WAYS)
    batch.to_data_list = lambda: graphs
    assert len(as_batch(batch)) == 2
    with pytest.raises(GraphError, match="graph 0: a batch of graphs"):
        as_batch([batch])
    # A PyG dataset answers for edge_index, too, but it is no single graph.
    base = type("Dataset", (), {"__module__": "torch_geometric.data.dataset"})
    members = {"edge_index": 0, "__iter__": lambda self: iter(graphs)}
    assert len(as_batch(type("TUDataset", (base,), members)())) == 2


@pytest.mark.xdist_group("torch")
def test_real_pyg():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pyg = pytest.importorskip("torch_geometric.data", reason="PyG is not installed")
    one = pyg.Data(x=torch.eye(3, requires_grad=True), edge_index=torch.tensor(BOTH_WAYS))
    expected = as_batch([Graph(TRIANGLE, features=np.eye(3))])
    assert_same(as_batch([one]), expected)
    assert_same(as_batch(pyg.Batch.from_data_list([one])), expected)
    with pytest.raises(GraphError, match="wrap it in a list"):
        as_batch(one)


# ---------------------------------------------------------------------- what is no graph


@pytest.mark.parametrize(
    "single",
    [Graph(TRIANGLE), nx.path_graph(3), sp.eye_array(3), data(edge_index=BOTH_WAYS)],
    ids=lambda value: type(value).__name__,
)
def test_a_single_graph_must_be_wrapped(single):
    with pytest.raises(GraphError, match=r"single graph .*; wrap it in a list: \[graph\]"):
        as_batch(single)
    assert len(as_batch([single])) == 1


def test_a_single_pair_must_be_wrapped():
    with pytest.raises(
        GraphError, match=r"graph 0: expected a graph, got ndarray of shape \(2, 3\).*list of"
    ):
        as_batch((np.array(TRIANGLE), np.eye(3)))


@pytest.mark.parametrize("value", [None, 3, 2.5, "MUTAG", b"x", {"a": 1}, np.array(3), object()])
def test_no_list(value):
    with pytest.raises(GraphError, match=f"expected a list of graphs, got {type(value).__name__}"):
        as_batch(value)


@pytest.mark.parametrize("value", [None, 3, 2.5, np.ones((2, 3)), {"a": 1}, object()])
def test_no_graph_in_the_list(value):
    got = rf"^graph 1: expected a graph, got {type(value).__name__}"
    with pytest.raises(GraphError, match=got):
        as_batch([Graph(TRIANGLE), value])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("ab", "graph 1: expected a graph, got str"),
        ((TRIANGLE,), "graph 1: a tuple of 1, expected a pair"),
        ((TRIANGLE, None, None), "graph 1: a tuple of 3, expected a pair"),
        (
            [(0, 1), (1, 2), (2, 0)],
            r"graph 1: a list of 3, .* Graph\(numpy.array\(edges\).T\)",
        ),
        ((), "graph 1: a tuple of 0, expected a pair"),
        ((None, [1, 2]), "graph 1: edge_index is a NoneType, expected an array of shape"),
        (([[0], [7]], [1, 2]), r"graph 1: edge \(0, 7\) is out of range for 2 vertices"),
        (
            GraphBatch.from_graphs([Graph(TRIANGLE)]),
            r"graph 1: expected a graph, got GraphBatch of shape \(1,\)",
        ),
    ],
)
def test_bad_items(value, message):
    with pytest.raises(GraphError, match=f"^{message}"):
        as_batch([(TRIANGLE, [1, 2, 3]), value])


def test_empty_lists():
    for nothing in ([], (), np.array([], dtype=object), iter([])):
        with pytest.raises(GraphError, match="no graphs"):
            as_batch(nothing)


def test_reading_imports_no_other_library():
    code = (
        "import sys; from fdgnn import as_batch; as_batch([([[0], [1]], None)]);"
        "assert not {'networkx', 'torch', 'pandas', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
