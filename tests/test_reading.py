"""How a file was read is part of the model: new files are read in the same way, or refused."""

from __future__ import annotations

import doctest
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import (
    FDGNNClassifier,
    GraphClassifier,
    KernelRidge,
    as_batch,
    iter_graphs,
    load_model,
    load_tu,
    read_graphs,
)
from fdgnn.datasets import make_random_graphs
from fdgnn.exceptions import DatasetFormatError
from fdgnn.graphs import InputSchema
from fdgnn.records import decode, encode
from strategies import assert_same
from tu_files import write_folder

# The small TU dataset has attributes beside labels.
pytestmark = pytest.mark.filterwarnings("ignore:.*attributes of vertices are not used")

ARCS = [[0, 1, 1, 2], [1, 0, 2, 1]]
ROW = {"edge_index": ARCS, "node_feat": [5, 6, 7], "edge_attr": [0.5, 0.5, 3.0, 3.0]}


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def reasons(table):
    return {reject.row: reject.reason for reject in table.rejects}


# ---------------------------------------------------------------------- what is settled


def test_a_reading_leaves_nothing_open(tmp_path):
    table = read_graphs(write(tmp_path / "g.jsonl", ROW, ROW))
    assert table.schema == InputSchema(
        source="table",
        directed=False,
        vertex="labels",
        label_kind="integer",
        edge_labels="weights",
        edge_kind="number",
        edge_width=1,
        vertex_attributes=("node_feat",),
        edge_attribute="edge_attr",
    )
    assert table.graphs.schema is table.schema
    assert "auto" not in encode(table.schema).decode()
    assert decode(encode(table.schema), InputSchema) == table.schema


def test_a_reading_stays_with_the_graphs(tmp_path):
    rows = [ROW | {"edge_attr": a} for a in (["s", "s", "d", "d"], ["d", "d", "d", "d"])]
    graphs = read_graphs(write(tmp_path / "g.jsonl", *rows)).graphs
    assert (graphs.schema.edge_kind, graphs.schema.edge_width) == ("text", 1)
    for some in (graphs[:1], graphs[[1, 0]], pickle.loads(pickle.dumps(graphs)), as_batch(graphs)):
        assert some.schema == graphs.schema
    assert as_batch(list(graphs)).schema is None
    for part in iter_graphs(tmp_path / "g.jsonl", chunk_size=1):
        assert part.schema == part.graphs.schema == graphs.schema


@pytest.mark.parametrize(
    "wrong",
    [
        {"vertex": "labels"},
        {"vertex": "none", "n_features": 3},
        {"edge_labels": "weights"},
        {"atoms": "rich"},
        {"edge_labels": "auto"},
    ],
)
def test_a_reading_that_contradicts_itself_is_no_reading(wrong):
    good = {"source": "table", "directed": False, "vertex": "none", "edge_labels": "ignore"}
    assert decode(json.dumps(good), InputSchema).vertex == "none"
    with pytest.raises(ValueError, match=r"contradicts itself|Invalid enum value"):
        decode(json.dumps(good | wrong), InputSchema)


def test_tu_datasets_have_a_reading_from_cache_too(tmp_path, monkeypatch):
    monkeypatch.setenv("FDGNN_CACHE", str(tmp_path / "cache"))
    path = write_folder(tmp_path / "toy")
    for _ in range(2):
        schema = load_tu(path, vertex="labels")[0].schema
        assert (schema.source, schema.vertex, schema.label_kind) == ("tu", "labels", "integer")
    assert load_tu(path, vertex="features")[0].schema.n_features == 2


# ---------------------------------------------------------------------- applied to a new file


def fit_on(graphs, y=None):
    y = np.arange(len(graphs)) % 2 if y is None else y
    model = FDGNNClassifier(n_layers=2, effective_spectral_radius=0.1, random_state=0)
    return model.fit(graphs, y)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """Graphs with the weights 0.5, 1.0, ... 3.0, and a file that has only whole numbers."""
    folder = tmp_path_factory.mktemp("weighted")
    graphs = make_random_graphs(60, n_labels=None, random_state=0)
    rng = np.random.default_rng(0)
    rows, whole = [], []
    for i, graph in enumerate(graphs):
        edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].tolist()
        n, halves = graph.n_vertices, (rng.integers(1, 7, len(edges[0])) / 2).tolist()
        common = {"edge_index": edges, "num_nodes": n, "y": ["a", "b"][i % 2]}
        rows.append(common | {"edge_attr": halves})
        whole.append(common | {"edge_attr": [float(2 * w) for w in halves]})
    ints = [row | {"edge_attr": [int(w) for w in row["edge_attr"]]} for row in whole]
    return write(folder / "train.jsonl", *rows), write(folder / "whole.jsonl", *ints), whole


def test_whole_numbers_are_weights_where_the_training_data_had_weights(weighted, tmp_path):
    """Read alone, the new file's numbers are labels, which are ignored."""
    train, new, rows = weighted
    table = read_graphs(train, target="y")
    model = fit_on(table.graphs, table.y)
    expected = read_graphs(write(tmp_path / "reals.jsonl", *rows)).graphs
    assert read_graphs(new).graphs.weights is None
    for like in (model, table.schema):
        assert_same(read_graphs(new, like=like).graphs, expected)
        parts = list(iter_graphs(new, like=like, chunk_size=7))
        assert_same(as_batch([g for part in parts for g in part.graphs]), expected)
    answers = model.decision_function(read_graphs(new, like=model).graphs)
    np.testing.assert_array_equal(answers, model.decision_function(expected))
    assert (answers != model.decision_function(read_graphs(new).graphs)).any()


def test_whole_numbers_are_weights_for_the_commands(weighted, tmp_path):
    train, new, rows = weighted
    path, reals = tmp_path / "m.fdgnn", write(tmp_path / "reals.jsonl", *rows)
    run = fdgnn("fit", train, "--target", "y", "-o", path, "--model", "paper", "--no-search")
    assert run.returncode == 0, run.stderr
    model = load_model(path)
    assert model.input_schema_ == read_graphs(train).schema
    assert_same(read_graphs(new, like=model).graphs, read_graphs(reals).graphs)
    outputs = [fdgnn(c, path, f, "-q").stdout for c in ("predict", "explain") for f in (new, reals)]
    assert outputs[0] == outputs[1]
    assert outputs[2] == outputs[3]
    assert outputs[0].count("\n") == len(rows) + 1
    facts = [fdgnn("datasets", "info", f, "--like", path, "--json").stdout for f in (new, reals)]
    assert facts[0] == facts[1] != fdgnn("datasets", "info", new, "--json").stdout


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"edge_attr": ["a", "a", "b", "b"]}, "edge_attr has entries of kind text, expected"),
        ({"edge_attr": [[1, 2]] * 4}, "weights have shape (4, 2), expected (4,)"),
        ({"edge_attr": None}, "no edge_attr, expected one number per edge"),
        ({"node_feat": ["C", "N", "O"]}, "text labels, expected integer labels"),
        ({"node_feat": [0.5, 1, 2]}, "labels have shape (3,) and dtype float64"),
        ({"node_feat": None}, "no node_feat, expected integer labels"),
        ({"edge_index": [[0, 1], [1, 0], [1, 2], [2, 1]]}, "edge_index has shape (4, 2)"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(tmp_path, change, why):
    """One such row, or a file of nothing else."""
    schema = read_graphs(write(tmp_path / "train.jsonl", ROW)).schema
    mixed = read_graphs(write(tmp_path / "mixed.jsonl", ROW, ROW | change), like=schema)
    assert mixed.rows.tolist() == [0]
    assert reasons(mixed)[1].startswith(why)
    alone = read_graphs(write(tmp_path / "alone.jsonl", ROW | change), like=schema)
    assert alone.graphs is None
    assert reasons(alone)[0].startswith(why)
    with pytest.raises(DatasetFormatError, match="row 0: "):
        read_graphs(tmp_path / "alone.jsonl", like=schema, strict=True)


def test_a_missing_column_is_named(tmp_path):
    schema = read_graphs(write(tmp_path / "train.jsonl", ROW)).schema
    table = read_graphs(write(tmp_path / "g.jsonl", {"edge_index": ARCS, "id": 1}), like=schema)
    assert reasons(table) == {0: "no node_feat, expected integer labels"}
    molecules = write(tmp_path / "m.jsonl", {"smiles": "CCO"})
    with pytest.raises(DatasetFormatError, match=r"no column edge_index, .* not read from SMILES"):
        read_graphs(molecules, like=schema)


def test_features_and_columns_follow_the_reading(tmp_path):
    """Whole numbers are features if they were; of two columns, the known one is read."""
    train = write(tmp_path / "train.jsonl", {"edge_index": ARCS, "x": [0.5, 1.5, 2.5]})
    schema = read_graphs(train).schema
    assert (schema.n_features, schema.vertex_attributes) == (1, ("x",))
    both = {"edge_index": ARCS, "node_feat": ["a", "b", "c"], "x": [1, 2, 3]}
    graphs = read_graphs(write(tmp_path / "both.jsonl", both), like=schema).graphs
    assert graphs.features.ravel().tolist() == [1, 2, 3]
    other = {"edge_index": ARCS, "node_feat": [1, 2, 3]}  # the other name of the same column
    assert read_graphs(write(tmp_path / "other.jsonl", other), like=schema).graphs is not None


@pytest.mark.parametrize(
    "asked",
    [
        {"vertex": "features"},
        {"edge_labels": "ignore"},
        {"directed": True},
        {"atoms": "rich"},
        {"edge_attribute": "bond"},
        {"vertex_attributes": "element"},
        {"smiles_column": "smiles"},
    ],
)
def test_arguments_that_contradict_the_reading_are_errors(tmp_path, asked):
    path = write(tmp_path / "g.jsonl", ROW)
    schema = read_graphs(path).schema
    (name,) = asked
    with pytest.raises(ValueError, match=rf"`{name}` is .*; leave `{name}` out"):
        read_graphs(path, like=schema, **asked)
    same = {"vertex": "labels", "edge_labels": "weights", "directed": False}
    assert len(read_graphs(path, like=schema, **same).graphs) == 1


def test_what_can_be_like(tmp_path):
    path = write(tmp_path / "g.jsonl", ROW, ROW)
    plain = fit_on([(ARCS, None), ([[0], [1]], None)])  # from no file, so it has no schema
    assert read_graphs(path, like=plain).schema == read_graphs(path).schema
    for wrong in ("a path", FDGNNClassifier(), {}):
        with pytest.raises(ValueError, match="give a fitted model or an InputSchema"):
            read_graphs(path, like=wrong)


def test_molecules_are_read_as_before(tmp_path):
    pytest.importorskip("rdkit")
    train = tmp_path / "train.csv"
    train.write_text("molecule,y\nCCO,1\nC=O,0\n")
    how = {"atoms": "rich", "edge_labels": "weights"}
    schema = read_graphs(train, smiles_column="molecule", **how).schema
    assert (schema.source, schema.smiles_column, schema.atoms) == (
        "molecules",
        "molecule",
        "rich",
    )
    # A table with both kinds of columns, and another name for the SMILES.
    row = {"edge_index": ARCS, "canonical_smiles": "CCO", "other": "C=O"}
    new = write(tmp_path / "new.jsonl", row)
    expected = read_graphs(train, smiles_column="molecule", **how).graphs
    assert_same(read_graphs(new, like=schema).graphs, expected[:1])
    assert_same(read_graphs(new, like=schema, smiles_column="other").graphs, expected[1:])
    with pytest.raises(DatasetFormatError, match="no column with SMILES"):
        read_graphs(write(tmp_path / "g.jsonl", ROW), like=schema)


def test_networks_are_read_as_before(tmp_path):
    nx = pytest.importorskip("networkx")

    def save(name, weight, directed=False, **attributes):
        (tmp_path / name).mkdir(exist_ok=True)
        graph = nx.path_graph(2, nx.DiGraph if directed else nx.Graph)
        for attribute, value in {"charge": 1.5, **attributes}.items():
            nx.set_node_attributes(graph, value, attribute)
        nx.set_edge_attributes(graph, weight, "strength")
        nx.write_graphml(graph, tmp_path / name / "a.graphml")
        return tmp_path / name

    train = save("train", 0.5, element="C")
    names = {"vertex_attributes": "charge", "edge_attribute": "strength"}
    schema = read_graphs(train, **names).schema
    assert schema.vertex_attributes == ("charge",)
    table = read_graphs(save("new", 2, charge=3, title="x"), like=schema)
    assert table.graphs.weights.tolist() == [2, 2]
    assert table.graphs.features.tolist() == [[3], [3]]
    refused = read_graphs(save("directed", 2, directed=True), like=schema)
    assert reasons(refused) == {0: "directed, but undirected graphs are expected"}
    told = read_graphs(train, directed=True, **names).schema
    assert told.direction_given
    assert read_graphs(tmp_path / "new", like=told).graphs.directed


def test_tu_datasets_of_another_kind_are_refused(tmp_path):
    path = write_folder(tmp_path / "toy")
    labels = load_tu(path, vertex="labels")[0].schema
    assert len(read_graphs(path, like=labels).graphs) == 2
    text = read_graphs(write(tmp_path / "g.jsonl", ROW | {"node_feat": ["C", "N", "O"]})).schema
    with pytest.raises(DatasetFormatError, match="neither edge labels nor edge attributes"):
        read_graphs(path, like=text)
    plain = write(tmp_path / "p.jsonl", {"edge_index": ARCS, "node_feat": ["C", "N", "O"]})
    with pytest.raises(DatasetFormatError, match=r"integer labels on .* has .* text labels on"):
        read_graphs(path, like=read_graphs(plain).schema)
    with pytest.raises(DatasetFormatError, match="TU datasets are undirected"):
        read_graphs(path, directed=True)
    # Integer labels are integer labels, whatever the format.
    table = write(tmp_path / "t.jsonl", {"edge_index": ARCS, "node_feat": [0, 1, 2]})
    assert read_graphs(table, like=labels).schema.source == "table"


# ---------------------------------------------------------------------- the commands


def test_errors_of_commands_name_options(weighted, tmp_path):
    nx = pytest.importorskip("networkx")
    graph = nx.path_graph(2)
    for name in ("charge", "mass"):
        nx.set_node_attributes(graph, {0: 0.5, 1: 1.5}, name)
    nx.write_graphml(graph, tmp_path / "a.graphml")
    run = fdgnn("datasets", "info", tmp_path)
    assert run.returncode == 0
    assert "--vertex-attributes charge" in run.stderr
    for given in (["charge,mass"], ["charge", "--vertex-attributes", "mass"]):
        run = fdgnn("datasets", "info", tmp_path, "--json", "--vertex-attributes", *given)
        assert json.loads(run.stdout)["n_features"] == 2
    train = weighted[0]
    out = ["--target", "y", "-o", tmp_path / "m.fdgnn"]
    assert_one_clear_line(fdgnn("fit", train, *out, "--vertex", "labels"), "--vertex auto")
    assert_one_clear_line(fdgnn("fit", train, *out, "--id", "nam"), "column 'nam' for --id")
    arcs = [
        json.loads(fdgnn("datasets", "info", train, how, "--json").stdout)["n_arcs"]
        for how in ("--directed", "--undirected")
    ]
    assert arcs[0] * 2 == arcs[1]
    ignored = fdgnn("stability", train, "--edge-labels", "ignore", "--json").stdout
    assert json.loads(ignored)["k"] != json.loads(fdgnn("stability", train, "--json").stdout)["k"]


def test_the_example_in_the_docs_runs():
    page = Path(__file__).parent.parent / "docs" / "reference" / "file-formats.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0


# ---------------------------------------------------------------------- arc labels

LABELED = ROW | {"edge_attr": ["s", "s", "d", "d"]}


def test_a_model_fitted_with_edge_labels_reads_them_and_misses_them(tmp_path):
    graphs = read_graphs(write(tmp_path / "train.jsonl", LABELED, LABELED)).graphs
    model = GraphClassifier(readout=KernelRidge(alpha=1.0)).fit(graphs, [0, 1])
    assert model.input_schema_.edge_labels == "labels"
    path = write(tmp_path / "new.jsonl", LABELED, ROW, ROW | {"edge_attr": None})
    table = read_graphs(path, like=model)
    assert table.graphs.edge_labels.tolist() == ["s", "s", "d", "d"]
    assert reasons(table) == {
        1: "edge_attr has entries of kind number, expected one text per edge",
        2: "no edge_attr, expected one text per edge",
    }
    numbers = write_folder(tmp_path / "toy", edge_labels="1\n1\n2\n2\n1\n1\n3\n2\n1\n4\n4\n")
    for folder in (write_folder(tmp_path / "plain"), numbers):
        with pytest.raises(
            DatasetFormatError, match=r"do not match .* has .* one text per edge on edges"
        ):
            read_graphs(folder, like=model)
    whole = load_tu(numbers)[0].schema
    assert_same(read_graphs(numbers, like=whole).graphs, load_tu(numbers)[0])


def test_a_model_of_reservoirs_does_not_need_edge_labels(tmp_path):
    graphs = read_graphs(write(tmp_path / "train.jsonl", LABELED, LABELED)).graphs
    assert graphs.schema.edge_labels == "labels"
    model = fit_on(graphs)
    assert model.input_schema_.edge_labels == "ignore"
    path = write(tmp_path / "new.jsonl", LABELED, ROW, ROW | {"edge_attr": None})
    table = read_graphs(path, like=model)
    assert (len(table.graphs), table.rejects) == (3, ())
    scores = model.decision_function(table.graphs)
    assert scores.tolist() == [model.decision_function(graphs)[0]] * 3


def test_a_model_fitted_without_edge_labels_ignores_them(tmp_path):
    """So do models that were saved before there were arc labels."""
    plain = {"edge_index": ARCS, "node_feat": [5, 6, 7]}
    schema = read_graphs(write(tmp_path / "train.jsonl", plain)).schema
    assert schema.edge_labels == "ignore"
    graphs = read_graphs(write(tmp_path / "new.jsonl", LABELED), like=schema).graphs
    assert graphs.edge_labels is None
    assert_same(graphs, read_graphs(tmp_path / "train.jsonl").graphs)
    path = write_folder(tmp_path / "toy", edge_labels="1\n" * 11)
    assert read_graphs(path, like=schema).graphs.edge_labels is None
    with pytest.raises(ValueError, match=r"`edge_labels` is 'labels', but .*; leave `edge_labels`"):
        read_graphs(path, like=schema, edge_labels="labels")


def test_the_commands_take_edge_labels(tmp_path):
    path = write(tmp_path / "g.jsonl", ROW | {"edge_attr": [1.0, 1.0, 2.0, 2.0]})
    run = fdgnn("datasets", "info", path, "--edge-labels", "labels", "--json")
    assert json.loads(run.stdout)["n_edge_labels"] == 2
    run = fdgnn("datasets", "info", path, "--json")
    assert json.loads(run.stdout)["n_edge_labels"] == 0
    plain = write(tmp_path / "p.jsonl", {"edge_index": ARCS})
    missing = fdgnn("datasets", "info", plain, "--edge-labels", "labels")
    assert_one_clear_line(missing, "no data to use as labels", "--edge-labels ignore")
