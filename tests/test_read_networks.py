"""Folders of GraphML files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from commands import fdgnn
from fdgnn import GraphClassifier, as_batch, read_graphs, save_model
from fdgnn.exceptions import DatasetFormatError, UnusedDataWarning
from strategies import assert_same

nx = pytest.importorskip("networkx")


def molecule(*symbols, **edge_data):
    graph = nx.path_graph(len(symbols))
    graph = nx.relabel_nodes(graph, {i: f"node {i}" for i in graph})
    nx.set_node_attributes(graph, dict(zip(graph, symbols, strict=True)), "label")
    for name, value in edge_data.items():
        nx.set_edge_attributes(graph, value, name)
    return graph


GRAPHS = {"a": molecule("C", "O"), "b": molecule("C", "N", "C"), "c": molecule("O", "O")}


@pytest.fixture
def folder(tmp_path):
    for name, graph in GRAPHS.items():
        nx.write_graphml(graph, tmp_path / f"{name}.graphml")
    return tmp_path


def test_every_file_is_a_row(folder):
    table = read_graphs(folder)
    assert_same(table.graphs, as_batch(list(GRAPHS.values())))
    assert table.ids == ("a.graphml", "b.graphml", "c.graphml")
    assert len(read_graphs(folder / "a.graphml").graphs) == 1
    for option in ("target", "descriptors"):
        with pytest.raises(DatasetFormatError, match=r"there is no column 'z' for `.*; its col"):
            read_graphs(folder, **{option: "z"})


def test_vertex_names_are_kept(folder):
    table = read_graphs(folder)
    assert table.graphs[1].vertex_names == ["node 0", "node 1", "node 2"]
    there_and_back = table.graphs.to_networkx()[1]
    assert dict(there_and_back.nodes(data="label")) == dict(GRAPHS["b"].nodes(data="label"))


def test_explanations_call_vertices_by_their_names(folder, tmp_path):
    table = read_graphs(folder)
    y = np.tile([0, 1, 1], 4)
    model = GraphClassifier("wl", random_state=0).fit([*table.graphs] * 4, y)
    save_model(model, tmp_path / "m.fdgnn")
    csv, lines = (
        fdgnn("explain", tmp_path / "m.fdgnn", folder, *options).stdout
        for options in ((), ("--json",))
    )
    assert ",node 1,N," in csv
    assert json.loads(lines.splitlines()[1])["vertex_names"] == ["node 0", "node 1", "node 2"]


def test_bad_files(folder):
    (folder / "broken.graphml").write_text("<graphml><gr")
    (folder / "empty.graphml").write_text("")
    nx.write_graphml(nx.Graph(), folder / "nothing.graphml")
    nx.write_graphml(nx.path_graph(2), folder / "unlabeled.graphml")
    table = read_graphs(folder)
    assert table.ids == tuple(sorted(path.name for path in folder.iterdir()))
    assert table.rows.tolist() == [0, 1, 3]
    reasons = {reject.id: reject.reason for reject in table.rejects}
    assert "broken.graphml cannot be read (" in reasons["broken.graphml"]
    assert "empty.graphml cannot be read (" in reasons["empty.graphml"]
    assert reasons["nothing.graphml"].startswith("no vertices")
    assert reasons["unlabeled.graphml"].startswith(
        "vertices have no attribute 'label'; the attributes are none"
    )
    assert table.n_rows == 7


def test_attributes_to_choose_from(tmp_path):
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, {0: 0.5, 1: 1.5}, "charge")
    nx.set_node_attributes(graph, {0: "C", 1: "O"}, "element")
    nx.write_graphml(graph, tmp_path / "a.graphml")
    told = r"attributes 'charge', 'element' of vertices are not used: `vertex_attributes='charge'`"
    with pytest.warns(UnusedDataWarning, match=told):
        assert read_graphs(tmp_path).graphs.labels is None
    both = read_graphs(tmp_path, vertex_attributes=["charge", "element"]).graphs
    assert both.features.tolist() == [[0.5, 1, 0], [1.5, 0, 1]]
    assert both.schema.label_columns == ("C", "O")
    assert read_graphs(tmp_path, vertex="none").graphs.labels is None
    graphs = read_graphs(tmp_path, vertex_attributes="element").graphs
    assert graphs.labels.tolist() == ["C", "O"]
    graphs = read_graphs(tmp_path, vertex_attributes=["charge"]).graphs
    assert graphs.features.tolist() == [[0.5], [1.5]]


def test_weights_labels_and_directions(tmp_path):
    graph = molecule("C", "O", weight=2.5, bond="double")
    nx.write_graphml(graph, tmp_path / "a.graphml")
    with pytest.warns(UnusedDataWarning, match="attributes 'bond' of edges are not used: `edge_at"):
        table = read_graphs(tmp_path)
    assert table.graphs.weights.tolist() == [2.5, 2.5]
    assert read_graphs(tmp_path, like=table.schema).rejects == ()  # it was told
    found = read_graphs(tmp_path, edge_attribute="bond").graphs
    assert found.edge_labels.tolist() == ["double", "double"]
    nx.write_graphml(graph.to_directed(), tmp_path / "a.graphml")
    chosen = {"edge_attribute": "weight"}
    assert read_graphs(tmp_path, **chosen).graphs.directed
    assert not read_graphs(tmp_path, **chosen, directed=False).graphs.directed


def test_directed_files_among_undirected_ones(folder):
    nx.write_graphml(GRAPHS["a"].to_directed(), folder / "d.graphml")
    table = read_graphs(folder)
    assert [(r.id, r.reason) for r in table.rejects] == [
        ("d.graphml", "directed, but undirected graphs are expected")
    ]
    whole = read_graphs(folder, directed=True).graphs
    assert whole.directed
    assert whole.n_arcs == read_graphs(folder, directed=False).graphs.n_arcs == 10


def test_labels_of_edges(tmp_path):
    nx.write_graphml(molecule("C", "O", weight=2.5, label="double"), tmp_path / "a.graphml")
    both = read_graphs(tmp_path)
    assert both.graphs.edge_labels.tolist() == ["double", "double"]
    assert both.graphs.weights.tolist() == [2.5, 2.5]
    assert_same(read_graphs(tmp_path, like=both.schema).graphs, both.graphs)
    weights = read_graphs(tmp_path, edge_labels="weights").graphs
    assert (weights.edge_labels, weights.weights.tolist()) == (None, [2.5, 2.5])
    found = read_graphs(tmp_path, edge_labels="labels").graphs
    assert (found.edge_labels.tolist(), found.weights) == (["double", "double"], None)
    nx.write_graphml(molecule("C", "O", label="double"), tmp_path / "a.graphml")
    assert read_graphs(tmp_path).graphs.edge_labels.tolist() == ["double", "double"]
    parallel = nx.MultiGraph()
    parallel.add_edge(0, 1, label="a")
    parallel.add_edge(0, 1, label="b")
    nx.write_graphml(parallel, tmp_path / "a.graphml")
    with pytest.warns(
        UnusedDataWarning,
        match=r"`edge_labels='labels'` or .* reads .*edge \(0, 1\) is listed with different labels",
    ):
        table = read_graphs(tmp_path)
    assert (len(table.graphs), table.graphs.edge_labels) == (1, None)
