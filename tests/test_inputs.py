"""Inputs of other libraries, and what becomes of data that is ambiguous, mixed or not used."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from fdgnn import (
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphBatch,
    as_batch,
    load_model,
    read_graphs,
    save_model,
)
from fdgnn.datasets import make_cycles, make_motif_graphs, make_stars
from fdgnn.exceptions import DatasetFormatError, FDGNNWarning, GraphError, UnusedDataWarning
from fdgnn.targets import Targets

TRIANGLE = [[0, 1, 2], [1, 2, 0]]
PATH = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])


# ---------------------------------------------------------------------- values


def test_graphs_are_equal_by_value():
    graph = Graph(TRIANGLE, labels=["C", "C", "O"])
    assert graph == Graph([[2, 0, 1, 0], [1, 2, 0, 1]], labels=np.array(["C", "C", "O"]))
    assert graph == as_batch([graph])[0]
    assert graph != Graph(TRIANGLE, labels=["C", "C", "N"])
    assert graph != Graph(TRIANGLE, 3)
    assert graph != Graph([[0, 1], [1, 2]], labels=["C", "C", "O"])
    assert Graph(TRIANGLE, directed=True) != Graph(TRIANGLE)
    assert Graph([[0], [9]], 2) == Graph([[0], [9]], 2)  # as they are given
    both = Graph(TRIANGLE, labels=[1, 1, 2], features=np.ones((3, 1)))
    assert both == Graph(TRIANGLE, labels=[1, 1, 2], features=np.ones((3, 1)))
    assert both != Graph(TRIANGLE, labels=[1, 1, 3], features=np.ones((3, 1)))
    assert graph != "CCO"
    with pytest.raises(TypeError, match="unhashable"):
        hash(graph)


def test_molecules_are_equal_by_value():
    pytest.importorskip("rdkit")
    assert as_batch(["CCO"])[0] == as_batch(["CC", "CCO"])[1]
    assert as_batch(["CCO"])[0] != as_batch(["OCC"])[0]


def test_a_position_out_of_range_names_the_size():
    graphs = make_cycles([3, 4])
    assert graphs[-1] == graphs[1]
    for position in (2, -3):
        with pytest.raises(IndexError, match=f"graph {position} is out of range for a batch of 2"):
            graphs[position]


def test_batches_can_be_concatenated():
    one = as_batch([(TRIANGLE, ["C", "C", "O"])])
    other = as_batch([([[0], [1]], ["N", "C"]), (TRIANGLE, ["C", "O", "C"])])
    joined = GraphBatch.concatenate([one, other])
    assert list(joined) == [*one, *other]
    assert joined.label_values.tolist() == ["C", "N", "O"]
    with pytest.raises(GraphError, match="must be of one kind"):
        GraphBatch.concatenate([one, make_cycles([3])])
    with pytest.raises(GraphError, match="at least one"):
        GraphBatch.concatenate([])


def test_batches_with_columns_for_different_labels_are_not_concatenated():
    one, other = (
        as_batch([Graph(TRIANGLE, labels=[1, 1, last], features=np.ones((3, 1)))])
        for last in (2, 3)
    )
    assert len(GraphBatch.concatenate([one, one])) == 2
    assert GraphBatch.concatenate([one, one]).schema == one.schema
    with pytest.raises(GraphError, match="columns for different labels"):
        GraphBatch.concatenate([one, other])


# ---------------------------------------------------------------------- what is ambiguous


def test_two_pairs_are_not_an_edge_index():
    edges, told = [(0, 1), (2, 3)], r"two pairs.*numpy\.array\(edges\)\.T"
    with pytest.raises(GraphError, match=rf"^edge_index is the list .* of {told}"):
        Graph(edges)
    with pytest.raises(GraphError, match=rf"^graph 1: edge_index is the list .* of {told}"):
        as_batch([(TRIANGLE, None), (edges, None)])
    assert Graph([(0, 1), (1, 0)]) == Graph([[0], [1]])
    assert as_batch([(np.array([(0, 1), (2, 3)]).T, None)])[0] == Graph([[0, 2], [1, 3]])
    assert as_batch([([[0, 1], [1, 2]], None)]).n_vertices == 3
    assert as_batch([([(0, 1), (1, 0)], None)]).n_arcs == 2  # the same both ways


@pytest.mark.parametrize("labels", [["1", 1], np.array(["1", 1], dtype=object), [1, "1"]])
def test_labels_of_two_types(labels):
    with pytest.raises(GraphError, match=r"graph 0: labels mix text \('1'\) and numbers \(1\)"):
        as_batch([([[0], [1]], labels)])


def test_a_missing_label():
    with pytest.raises(GraphError, match="labels are missing for vertex 1 "):
        as_batch([([[0], [1]], ["C", None])])


# ---------------------------------------------------------------------- matrices


def test_dense_adjacency_matrices():
    matrix = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    expected = Graph([[0, 0], [1, 2]], 3)
    assert as_batch([matrix])[0] == expected
    assert as_batch([(matrix, ["C", "N", "O"])])[0] == Graph(
        [[0, 0], [1, 2]], labels=["C", "N", "O"]
    )
    assert as_batch([np.array([[0, 2.5], [2.5, 0]])])[0] == Graph([[0], [1]], weights=[2.5])
    with pytest.raises(GraphError, match="has no counterpart"):
        as_batch([np.triu(matrix)])
    weighted = Graph([[0], [1]], weights=[2.0])
    assert as_batch([weighted, matrix])[1].weights.tolist() == [1] * 4
    with pytest.raises(GraphError, match=r"graph 1: .* without weights"):
        as_batch([weighted, (np.array([[0, 1], [1, 0]]), None)])  # an edge index
    assert as_batch([np.triu(matrix)], directed=True).directed
    with pytest.raises(GraphError, match="a single graph was given"):
        as_batch(matrix)


# ---------------------------------------------------------------------- networkx and igraph


def test_networkx_graphs_there_and_back():
    nx = pytest.importorskip("networkx")
    given = nx.Graph()
    given.add_nodes_from([("a", {"kind": "C"}), ("b", {"kind": "O"}), ("c", {"kind": "C"})])
    given.add_edge("a", "c", label=1)
    given.add_edge("c", "b", label=2)
    batch = as_batch([given, given])  # the only attribute of its nodes
    assert batch[0].vertex_names == ["a", "b", "c"]
    assert batch[[1]].vertex_names == (["a", "b", "c"],)
    back = batch.to_networkx()
    assert [set(graph) for graph in back] == [{"a", "b", "c"}] * 2
    assert back[0].nodes["b"] == {"label": "O"}
    assert back[0].edges["b", "c"] == {"label": 2}
    assert as_batch(back)[0] == batch[0]
    given.nodes["b"]["kind"] = None
    with pytest.raises(GraphError, match="vertex 'b' has no attribute 'kind'; set it on all"):
        as_batch([given])
    with pytest.raises(GraphError, match="2 vertex names for 3 vertices"):
        as_batch([Graph(TRIANGLE, 3, vertex_names=["a", "b"])])


def test_igraph_graphs():
    igraph = pytest.importorskip("igraph")
    given = igraph.Graph([(0, 1), (1, 2)])
    assert as_batch([given])[0] == Graph([[0, 1], [1, 2]])
    given.vs["name"] = ["a", "b", "c"]
    given.vs["kind"] = ["C", "N", "O"]
    given.es["weight"] = [1.5, 2.5]
    given.vs["mass"] = [12.0, 14.0, 16.0]
    with pytest.warns(UnusedDataWarning, match="^igraph graphs: attributes 'kind', 'mass' of vert"):
        as_batch([given])
    found = as_batch([given], vertex_attributes="kind")
    expected = Graph(
        [[0, 1], [1, 2]], labels=["C", "N", "O"], weights=[1.5, 2.5], vertex_names=["a", "b", "c"]
    )
    assert found[0] == expected
    assert as_batch([igraph.Graph([(0, 1)], directed=True)]).directed
    with pytest.raises(GraphError, match="a single graph was given"):
        as_batch(given)
    model = FDGNNClassifier(n_units=5, random_state=0).fit(
        as_batch([given] * 4, vertex_attributes="kind"), [0, 1, 0, 1]
    )
    assert len(model.predict([given])) == 1  # by the model's names of attributes


# ---------------------------------------------------------------------- PyTorch Geometric and DGL


def pyg(**fields):
    return SimpleNamespace(edge_index=PATH, num_nodes=3, x=np.ones((3, 2)), **fields)


def test_one_hot_edge_attributes_are_labels():
    one_hot = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = as_batch([pyg(edge_attr=one_hot)])
    assert batch[0].edge_labels.tolist() == [0, 0, 1, 1]
    assert as_batch([pyg(edge_attr=one_hot)], edge_attribute="edge_attr")[0] == batch[0]


def test_real_edge_attributes_are_weights_or_reported():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = as_batch([pyg(edge_attr=np.array([[0.5], [0.5], [2], [2]]))])
        assert batch[0].weights.tolist() == [0.5, 0.5, 2, 2]
        as_batch([pyg(edge_attr=PATH.T / 2)], edge_labels="ignore")
    with pytest.raises(GraphError, match="entries of dtype float64, expected 2 integers per edge"):
        as_batch([pyg(edge_attr=PATH.T / 4)], edge_labels="labels")
    with pytest.raises(GraphError, match=r"'edge_attr' has shape \(4, 2\), so it has no column 2"):
        as_batch([pyg(edge_attr=PATH.T / 2)], edge_attribute="edge_attr[2]")


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (np.array([[0.5, 1], [0.5, 1], [2, 3], [2, 3]]), {"edge_attribute": "edge_attr[0]"}),
        (np.array([[1.0, 5], [1, 5], [2, 0], [2, 0]]), {"edge_labels": "labels"}),
        (np.array([[1, 0], [0, 1], [0, 1], [0, 1]]), {"directed": True}),
        (np.array([0.5, 1.5, 2.5, 2.5]), {"directed": True}),
    ],
)
def test_what_a_warning_advises_works(values, options):
    with pytest.warns(UnusedDataWarning) as caught:
        as_batch([pyg(edge_attr=values)])
    name, value = next(iter(options.items()))
    assert len(caught) == 1
    assert f"`{name}={value!r}`" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = as_batch([pyg(edge_attr=values)], **options)[0]
        as_batch([pyg(edge_attr=values)], edge_labels="ignore")
    assert found.edge_labels is not None or found.weights is not None


def test_one_of_several_numbers_of_an_edge_in_a_table():
    row = '{"edge_index": [[0, 1], [1, 2]], "edge_attr": [[0.5, 1.5], [2.5, 3.5]]}'
    with pytest.warns(
        UnusedDataWarning, match=r"`edge_attribute='edge_attr\[0\]'` reads the first"
    ):
        read_graphs(io.StringIO(row), format="jsonl")
    for place, weights in ((0, [0.5, 2.5]), (1, [1.5, 3.5])):
        table = read_graphs(io.StringIO(row), format="jsonl", edge_attribute=f"edge_attr[{place}]")
        assert sorted(set(table.graphs.weights)) == weights
        again = read_graphs(io.StringIO(row), format="jsonl", like=table.schema)
        assert again.graphs[0] == table.graphs[0]
    table = read_graphs(io.StringIO(row), format="jsonl", edge_attribute="edge_attr[2]")
    assert "edge_attr has shape (2, 2), so it has no column 2" in table.rejects[0].reason


def test_further_columns_with_data_of_vertices_and_edges():
    row = '{"edge_index": [[0], [1]], "place": [[0.5, 1], [2, 3]], "y": 1}'
    with pytest.warns(UnusedDataWarning, match="'place' are not used: `vertex_attributes='place'`"):
        read_graphs(io.StringIO(row), target="y", format="jsonl")
    table = read_graphs(io.StringIO(row), target="y", format="jsonl", vertex_attributes="place")
    assert table.graphs.features.tolist() == [[0.5, 1], [2, 3]]
    again = read_graphs(io.StringIO(row), format="jsonl", like=table.schema)
    assert again.graphs[0] == table.graphs[0]
    edges = "graph,source,target,length\ng,a,b,0.5\ng,b,c,1.5"
    with pytest.warns(UnusedDataWarning, match="'length' are not used: `edge_attribute='length'`"):
        table = read_graphs(io.StringIO(edges))
    assert table.graphs[0].vertex_names == ["a", "b", "c"]
    weighted = read_graphs(io.StringIO(edges.replace("length", "weight")))
    assert weighted.graphs.weights.tolist() == [0.5, 0.5, 1.5, 1.5]
    named = read_graphs(io.StringIO(edges), edge_attribute="length")
    assert named.graphs[0] == weighted.graphs[0]


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        (None, {}, TypeError, "expected a path, an open file, a data frame .*, got a NoneType"),
        ([Graph(TRIANGLE)], {}, TypeError, "got a list; as_batch converts lists of graphs"),
        ({"smiles": ["C"]}, {}, TypeError, "got a dict"),
        (["C"], {"target": 1}, ValueError, "`target` has 1, expected the name of a column"),
        (["C"], {"columns": 5}, ValueError, "`columns` has 5, expected the name of a column"),
        (["C"], {"tarqet": "y"}, TypeError, "no option 'tarqet'; did you mean 'target'"),
    ],
)
def test_inputs_and_options_of_a_wrong_type(given, options, error, message):
    with pytest.raises(error, match=message):
        read_graphs(given, **options)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1.0], [2.0, 3.0], [1.0]], "y has rows of different lengths"),
        (np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "datetime64[D]"), "are not numbers"),
        ({"a": [1e200, 1.0, 2.0]}, "target 'a' has the number 1e.200; numbers up to"),
        ([1.0, None, 2.0], r"y\[1\] is missing; leave such graphs out"),
    ],
)
def test_targets_of_a_wrong_type(y, message):
    with pytest.raises(ValueError, match=message):
        FDGNNRegressor().fit(make_cycles([3, 4, 5]), y)


def test_graphs_go_out_to_pyg():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    labels = as_batch([
        Graph(TRIANGLE, labels=["C", "C", "O"], edge_labels=[1, 2, 1]),
        Graph([[0], [1]], labels=["N", "C"], edge_labels=[2]),
    ])  # fmt: skip
    one, other = labels.to_pyg(y=[0, 1])
    assert one.x.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert other.edge_attr.tolist() == [[0, 1], [0, 1]]
    assert (one.num_nodes, one.y.tolist(), other.y.tolist()) == (3, [0], [1])
    assert (
        as_batch([one])[0].edge_labels.tolist() == [0, 0, 1, 0, 1, 0] or one.edge_attr is not None
    )
    features = as_batch([Graph(TRIANGLE, features=np.eye(3), weights=[1.0, 2.0, 3.0])])
    assert as_batch(features.to_pyg())[0] == features[0]
    assert features.to_pyg()[0].edge_weight.dtype == torch.float32
    with pytest.raises(ValueError, match="y has 1 entries, but there are 2 graphs"):
        labels.to_pyg(y=[0])


class DGLGraph:
    """What is documented of a DGL graph, as far as it is read."""

    def __init__(self, ndata, edata, homogeneous=True):
        self.ndata, self.edata, self.is_homogeneous = ndata, edata, homogeneous

    def edges(self):
        return PATH[0], PATH[1]

    def num_nodes(self):
        return 3

    def is_multigraph(self):  # as networkx has it
        return False


def test_real_dgl_graphs():
    try:
        import dgl
        import torch
    except (ImportError, OSError) as error:
        pytest.skip(f"DGL cannot be imported: {error}")
    given = dgl.graph((PATH[0].tolist(), PATH[1].tolist()))
    given.ndata["kind"], given.edata["w"] = torch.tensor([1, 2, 1]), torch.full((4,), 2.5)
    assert as_batch([given])[0] == Graph(PATH, labels=[1, 2, 1], weights=[2.5] * 4)


def test_dgl_graphs():
    given = DGLGraph({"feat": np.eye(3), "kind": np.array([1, 2, 1])}, {"w": np.full(4, 2.5)})
    with pytest.warns(UnusedDataWarning, match="'kind' of vertices"):
        assert as_batch([given])[0] == Graph(PATH, features=np.eye(3), weights=[2.5] * 4)
    found = as_batch([given], vertex_attributes="kind")[0]
    assert found == Graph(PATH, labels=[1, 2, 1], weights=[2.5] * 4)
    bonds = DGLGraph({}, {"feat": np.array([[1, 0], [1, 0], [0, 1], [0, 1]])})
    assert as_batch([bonds])[0] == Graph(PATH, edge_labels=[0, 0, 1, 1])
    with pytest.raises(GraphError, match=r"dgl\.to_homogeneous"):
        as_batch([DGLGraph({}, {}, homogeneous=False)])


def test_stars_and_cycles_are_unequal():
    assert make_stars([4])[0] != make_cycles([4])[0]


@pytest.mark.parametrize("name", ["label", "weight"])
def test_an_attribute_that_some_edges_lack(name):
    nx = pytest.importorskip("networkx")
    given = nx.Graph([("a", "b"), ("b", "c")])
    given.edges["a", "b"][name] = 2
    with pytest.warns(UnusedDataWarning, match=f"'{name}' are not used: some edges have none"):
        batch = as_batch([given])
    assert batch.weights is batch.edge_labels is None
    as_batch([given], edge_labels="ignore")  # without a warning


# ---------------------------------------------------------------------- targets


def column(*cells, **options):
    """Read a CSV file with these targets; return y, and the reasons of rejected rows."""
    lines = ["smiles;y", *(f"{'C' * (i + 1)};{cell}" for i, cell in enumerate(cells))]
    table = read_graphs(io.StringIO("\n".join(lines)), target="y", **options)
    return table.y.tolist(), [reject.reason for reject in table.rejects]


def test_decimal_commas():
    assert column("1,5", "2,25", "3") == ([1.5, 2.25, 3.0], [])
    assert column("1,5", "2,25", "3", numeric=True) == ([1.5, 2.25, 3.0], [])
    y, rejects = column("1,500", "2", "3")
    assert y == [2, 3]
    assert "'1,500' may have a decimal comma or thousands; write numbers with" in rejects[0]
    assert column("1,5", "a", "b") == (["1,5", "a", "b"], [])


def test_one_infinite_target():
    for options in ({}, {"numeric": True}):
        assert column("1.5", "inf", "2", **options) == ([1.5, 2.0], ["target is infinite"])
    with pytest.raises(ValueError, match=r"y\[1\] is NaN or infinite"):
        FDGNNRegressor().fit(make_cycles([3, 4, 5]), [1, np.inf, 2])


@pytest.mark.parametrize("options", [{}, {"numeric": True}])
def test_censored_targets(options):
    cells = ("1.5", ">1995", "2", "<= 0.1")
    with pytest.warns(FDGNNWarning, match="2 of 4 targets are censored, such as >1995; left out"):
        y, rejects = column(*cells, **options)
    assert y == [1.5, 2.0]
    assert rejects[0] == "target is censored (>1995)"
    with pytest.warns(FDGNNWarning, match="their bounds are taken as the values"):
        assert column(*cells, censored="bound", **options) == ([1.5, 1995.0, 2.0, 0.1], [])
    with pytest.raises(DatasetFormatError, match="2 of 4 targets are censored, such as >1995"):
        column(*cells, censored="error", **options)
    with pytest.raises(ValueError, match="censored='some': expected one of drop, bound, error"):
        column(*cells, censored="some")


def test_classes_may_look_like_bounds():
    assert column("<5", ">5", "<5") == (["<5", ">5", "<5"], [])


def test_most_targets_may_be_censored():
    with pytest.warns(FDGNNWarning, match="4 of 6 targets are censored"):
        y, rejects = column(">9", ">9", "1.5", ">9", "2", ">9")
    assert (y, len(rejects)) == ([1.5, 2.0], 4)


def test_different_bounds_may_be_most_targets():
    cells = (">9.1", ">9.2", "1.5", ">9.3", "2", ">9.4", ">9.5")
    with pytest.warns(FDGNNWarning, match="5 of 7 targets are censored"):
        assert column(*cells)[0] == [1.5, 2.0]
    with pytest.warns(FDGNNWarning, match="their bounds are taken"):
        assert column(">9", "<2", censored="bound")[0] == [9, 2]


@pytest.mark.parametrize("cells", [("1,234", "2,500", "3,100"), ("1,234.5", "250.5", "1,000.0")])
def test_thousands_are_never_text(cells):
    y, rejects = column("7", *cells)
    assert y == [7.0, *(float(cell) for cell in cells if "," not in cell)]
    assert all("may have a decimal comma or thousands" in reason for reason in rejects)
    y, rejects = column("7", "8", *(f">{cell}" for cell in cells if "," in cell))
    assert y == [7, 8]
    assert all("may have a decimal comma or thousands" in reason for reason in rejects)


def test_one_censored_value_of_several_targets_is_missing():
    file = io.StringIO("smiles,a,b\nC,1.5,>10\nCC,2.5,3\nCCC,2.5,4\n")
    with pytest.warns(FDGNNWarning, match="1 of 3 targets is censored"):
        table = read_graphs(file, target=["a", "b"])
    assert table.y.tolist() == [[1.5, None], [2.5, 3], [2.5, 4]]


def test_nullable_integers_of_pandas():
    pandas = pytest.importorskip("pandas")
    graphs, y = make_motif_graphs(40, random_state=0)
    given = pandas.Series(y).astype("Int64")
    model = FDGNNClassifier(n_units=5, random_state=0).fit(graphs, given)
    assert model.classes_.dtype == np.int64
    plain = clone(model).fit(graphs, y)
    assert model.predict(graphs).tolist() == plain.predict(graphs).tolist()
    with pytest.raises(ValueError, match=r"y\[0\] is NaN"):
        FDGNNClassifier().fit(graphs, given.where(given > given[0]))


# ---------------------------------------------------------------------- transformed targets


CYCLES = make_cycles(range(3, 33))
CONCENTRATIONS = 10.0 ** np.linspace(0, 5, 30)  # nM


@pytest.mark.parametrize("transform", ["log10", "pIC50"])
def test_a_transform_is_undone_in_predictions(transform, tmp_path):
    learned = np.log10(CONCENTRATIONS) if transform == "log10" else 9 - np.log10(CONCENTRATIONS)
    model = FDGNNRegressor(n_units=10, intervals=True, random_state=0, target_transform=transform)
    plain = FDGNNRegressor(n_units=10, intervals=True, random_state=0).fit(CYCLES, learned)
    model.fit(CYCLES, CONCENTRATIONS)
    undone = plain.predict(CYCLES) if transform == "log10" else 9 - plain.predict(CYCLES)
    np.testing.assert_allclose(model.predict(CYCLES), 10.0**undone)
    np.testing.assert_array_equal(model.outputs(CYCLES), plain.outputs(CYCLES))
    assert model.score(CYCLES, CONCENTRATIONS) == pytest.approx(plain.score(CYCLES, learned))
    low, high = model.predict_interval(CYCLES, 0.8).T
    assert (low < model.predict(CYCLES)).all()
    assert (model.predict(CYCLES) < high).all()
    expected = plain.predict_interval(CYCLES, 0.8)
    expected = expected if transform == "log10" else 9 - expected
    np.testing.assert_allclose(np.stack([low, high], axis=1), np.sort(10.0**expected, axis=1))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(CYCLES), model.predict(CYCLES))


def test_a_transform_of_several_targets():
    y = np.stack([CONCENTRATIONS, CONCENTRATIONS[::-1]], axis=1)
    y[3, 0] = np.nan
    model = FDGNNRegressor(n_units=10, random_state=0, target_transform="log10").fit(CYCLES, y)
    found = model.predict(CYCLES)
    assert found.shape == y.shape
    assert np.nanmedian(np.abs(np.log10(found / y))) < 1
    assert model.score(CYCLES, y) > 0.5  # R2 on the scale that is learned


def test_a_transform_in_searches_and_partial_fits():
    base = FDGNNRegressor(n_units=10, target_transform="log10")
    search = FDGNNSearchCV(base, n_configurations=1, cv=3, scoring="rmse", random_state=0)
    search.fit(CYCLES, CONCENTRATIONS)
    assert abs(search.best_score_) < 5  # in powers of ten
    assert search.predict(CYCLES).min() > 0
    pieces = clone(base).set_params(random_state=0).partial_fit(CYCLES, CONCENTRATIONS)
    assert pieces.predict(CYCLES).min() > 0


def test_a_transform_that_is_not_possible():
    with pytest.raises(ValueError, match=r"y of graph 1 is 0, and transform='log10' needs numbers"):
        FDGNNRegressor(target_transform="log10").fit(CYCLES[:3], [1.0, 0.0, 2.0])
    with pytest.raises(ValueError, match="transform"):
        FDGNNRegressor(target_transform="sqrt").fit(CYCLES[:3], [1.0, 3.0, 2.0])


def test_skewed_targets_are_hinted_at():
    from fdgnn.training import scale_note

    def note(values):
        return scale_note(Targets(("",), np.array(values, dtype=float)[:, None], flat=True))

    assert "`transform='log10'` learns its logarithm" in note(CONCENTRATIONS)
    assert note(np.log10(CONCENTRATIONS) + 1) is None
    assert note([-1.0, *CONCENTRATIONS]) is None
    whole = Targets(("",), CONCENTRATIONS[:, None], flat=True).transformed("pIC50")
    assert scale_note(whole) == "the target is learned as pIC50, and scores are on that scale"


def fdgnn(*words):
    """Run the command."""
    run = [sys.executable, "-m", "fdgnn", *map(str, words)]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def test_commands_learn_a_transformed_target(tmp_path):
    table, model, output = (tmp_path / name for name in ("t.csv", "model", "out.csv"))
    values = [f"{10 ** (n / 8):.4f}" for n in range(40)]
    rows = [f"{'C' * (n + 1)},{value}" for n, value in enumerate(values)]
    table.write_text("\n".join(["smiles,y", *rows]))
    run = fdgnn("fit", table, "--target", "y", "-o", tmp_path / "plain")
    assert "--transform log10" in run.stdout, run.stderr
    table.write_text("\n".join(["smiles,y", *rows, "CCO,>1995"]))
    run = fdgnn(
        "fit", table, "--target", "y", "-o", model, "--transform", "log10", "--censored", "bound"
    )
    assert run.returncode == 0, run.stderr
    assert "the target is learned as log10, and scores are on that scale" in run.stdout
    assert "1 of 41 targets is censored, such as >1995; its bound is taken" in run.stderr
    assert fdgnn("predict", model, table, "--coverage", "0.8", "-o", output).returncode == 0
    with output.open() as file:
        lines = list(csv.DictReader(file))
    for line, value in zip(lines[5:40:5], values[5::5], strict=True):
        assert float(line["low"]) < float(line["prediction"]) < float(line["high"])
        assert 0.1 < float(line["prediction"]) / float(value) < 10
    run = fdgnn("fit", table, "--target", "y", "-o", tmp_path / "no", "--censored", "error")
    assert run.returncode != 0
    assert "--censored drop leaves them out" in run.stderr
    assert not (tmp_path / "no").exists()
