"""What edges carry: labels, weights, or nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fdgnn import iter_graphs, load_tu, read_graphs
from fdgnn.exceptions import DatasetFormatError, UnusedDataWarning
from strategies import assert_same
from tu_files import TEXTS, write_folder

# The small TU dataset has attributes beside labels.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*attributes of vertices are not used"),
    pytest.mark.filterwarnings("ignore:.*values of 'edge_attr' are not used"),
]

EDGE_LABELS = "1\n1\n2\n2\n1\n1\n3\n2\n1\n4\n4\n"


# ---------------------------------------------------------------------- tables


def rows(tmp_path, *arc_data, **fields):
    path = tmp_path / "g.jsonl"
    row = {"edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]], "node_feat": [5, 6, 7]} | fields
    path.write_text("\n".join(json.dumps(row | {"edge_attr": data}) for data in arc_data))
    return path


INTEGERS, REALS = [[1], [1], [2], [2]], [0.5, 0.5, 2, 2]
TEXTS_ON_EDGES = ["single", "single", "double", "double"]


def test_by_default_one_real_number_is_a_weight_and_everything_discrete_a_label(tmp_path):
    graphs = read_graphs(rows(tmp_path, INTEGERS)).graphs
    assert graphs.weights is None
    assert graphs.edge_labels.tolist() == [1, 1, 2, 2]
    graphs = read_graphs(rows(tmp_path, REALS)).graphs
    assert graphs.weights.tolist() == REALS
    assert graphs.edge_labels is None
    assert read_graphs(rows(tmp_path, INTEGERS), edge_labels="ignore").graphs.edge_labels is None
    path = rows(tmp_path, INTEGERS)
    assert read_graphs(path, edge_labels="weights").graphs.weights.tolist() == [1, 1, 2, 2]
    assert read_graphs(rows(tmp_path, REALS), edge_labels="ignore").graphs.weights is None


@pytest.mark.parametrize("how", ["auto", "labels"])
@pytest.mark.parametrize(
    ("data", "labels"),
    [
        (INTEGERS, [1, 1, 2, 2]),
        (TEXTS_ON_EDGES, TEXTS_ON_EDGES),
        ([[1, 0], [1, 0], [0, 1], [0, 1]], ["1,0", "1,0", "0,1", "0,1"]),
        ([[t, "x"] for t in TEXTS_ON_EDGES], [f"{t},x" for t in TEXTS_ON_EDGES]),
        ([True, True, False, False], [1, 1, 0, 0]),
    ],
)
def test_arcs_have_labels(tmp_path, data, labels, how):
    lonely = {"edge_index": [[], []], "num_nodes": 3}  # a graph without arcs needs none
    path = rows(tmp_path, data, data)
    row = json.dumps({"node_feat": [5, 6, 7]} | lonely)
    path.write_text(f"{row}\n{path.read_text()}\n")
    table = read_graphs(path, edge_labels=how)
    assert table.graphs.edge_labels.tolist() == [*labels, *labels]
    assert (table.graphs.weights, table.schema.edge_labels) == (None, "labels")
    first, *_, last = iter_graphs(path, like=table.schema, chunk_size=1)
    assert first.graphs.edge_labels.dtype.kind == last.graphs.edge_labels.dtype.kind
    assert last.graphs.edge_labels.tolist() == labels


def test_whole_numbers_written_as_reals_are_labels_if_asked_for(tmp_path):
    whole = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    graphs = read_graphs(rows(tmp_path, whole), edge_labels="labels").graphs
    assert graphs.edge_labels.tolist() == ["1,0", "1,0", "0,1", "0,1"]
    assert read_graphs(rows(tmp_path, whole)).graphs.edge_labels is None
    for bad in (REALS, [1, 1, 2, float("inf")], [1, 1, 2, float("nan")]):
        table = read_graphs(rows(tmp_path, INTEGERS, bad), edge_labels="labels")
        assert table.rejects[0].reason == (
            "edge_attr has entries of dtype float64, expected one integer per edge"
        )


BAD_LABELS = [
    ([[1], [2], [2], [2]], "is listed with different labels"),
    ([[1], [1], [2]], "entries of edge_attr have shape (3, 1), expected (4, 1)"),
    ([[1, 1]] * 4, "entries of edge_attr have shape (4, 2), expected (4, 1)"),
    ([[1], [1], [2], [None]], "edge_attr has entries of dtype object, expected one integer"),
    (["a", "a", "b", "b"], "edge_attr has entries of kind text, expected one integer per edge"),
    (None, "no edge_attr, expected one integer per edge"),
]


@pytest.mark.parametrize(("bad", "why"), BAD_LABELS)
def test_bad_labels_are_a_bad_row_if_labels_are_asked_for(tmp_path, bad, why):
    """If nobody asked for them, they are ignored: no graph is lost by what it need not have."""
    path = rows(tmp_path, INTEGERS, bad, INTEGERS, INTEGERS)
    table = read_graphs(path, edge_labels="labels")
    assert table.rows.tolist() == [0, 2, 3]
    assert why in table.rejects[0].reason
    table = read_graphs(path)
    assert (len(table.graphs), table.rejects) == (4, ())
    assert (table.graphs.edge_labels, table.schema.edge_labels) == (None, "ignore")


@pytest.mark.filterwarnings("error")
def test_values_of_edges_that_are_not_used_are_told_once(tmp_path):
    path = rows(tmp_path, REALS, TEXTS_ON_EDGES, TEXTS_ON_EDGES)
    with pytest.warns(UnusedDataWarning, match=r"jsonl: the values of 'edge_attr' are not") as told:
        table = read_graphs(path)
    assert (len(table.graphs), table.graphs.edge_labels, len(told)) == (3, None, 1)
    for use, n_read in (("labels", 2), ("ignore", 3)):  # the options that it names
        assert len(read_graphs(path, edge_labels=use).graphs) == n_read
    assert len(read_graphs(path, like=table.schema).graphs) == 3  # it was told


def test_one_of_two_columns_that_mean_the_same(tmp_path):
    path = rows(tmp_path, INTEGERS, x=[[0.5], [1.5], [2.5]], edge_weight=REALS)
    with pytest.warns(UnusedDataWarning, match="'x' are not used: `vertex_attributes` .* 'edge_we"):
        assert read_graphs(path).graphs.labels.tolist() == [5, 6, 7]
    chosen = {"vertex_attributes": "x", "edge_attribute": "edge_weight"}
    table = read_graphs(path, **chosen)
    assert (table.graphs.features.ravel().tolist(), table.graphs.weights[0]) == (
        [0.5, 1.5, 2.5],
        0.5,
    )
    assert_same(read_graphs(path, like=table.schema).graphs, table.graphs)
    with pytest.raises(DatasetFormatError, match="no column 'z' for `vertex_attributes`"):
        read_graphs(path, vertex_attributes="z", edge_attribute="edge_attr")


def test_rows_that_are_bad_anyway_do_not_cost_the_labels(tmp_path):
    path = rows(tmp_path, INTEGERS, INTEGERS)
    bad = {"edge_index": [[0], [9]], "node_feat": [5, 6, 7], "edge_attr": [1]}
    path.write_text(path.read_text() + "\n" + json.dumps(bad))
    table = read_graphs(path)
    assert [reject.row for reject in table.rejects] == [2]
    assert table.graphs.edge_label_values.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ([[1], [2], [2], [2]], "is listed with different weights"),
        ([[1], [1], [2]], "weights have shape (3,), expected (4,)"),
        ([[1, 1]] * 4, "weights have shape (4, 2), expected (4,)"),
        ([[1], [1], [2], [None]], "weights have dtype object"),
        ([1, 1, 2, float("nan")], "an edge weight is NaN"),
        (
            ["a", "a", "b", "b"],
            "edge_attr has entries of kind text, expected one number per edge",
        ),
        (None, "no edge_attr, expected one number per edge"),
    ],
)
def test_bad_weights_are_a_bad_row(tmp_path, bad, why):
    path = rows(tmp_path, INTEGERS, bad, INTEGERS, INTEGERS)
    table = read_graphs(path, edge_labels="weights")
    assert table.rows.tolist() == [0, 2, 3]
    assert why in table.rejects[0].reason
    assert len(read_graphs(path).graphs) == 4


def test_many_bad_rows_among_many(tmp_path):
    """Each of them is named, and nobody else."""
    contradiction = [[1], [2], [2], [2]]
    data = [contradiction if i % 7 == 3 else INTEGERS for i in range(50)]
    table = read_graphs(rows(tmp_path, *data), edge_labels="weights")
    assert [reject.row for reject in table.rejects] == list(range(3, 50, 7))
    assert len(table.graphs) == 50 - 7


def test_what_cannot_be_done_is_said(tmp_path):
    for data, how, why in [
        ([[1, 2]] * 4, "weights", "an edge carries 2 entries"),
        (["a"] * 4, "weights", "an edge carries 1 entries of kind text"),
        (None, "weights", "no data to use as weights; use `edge_labels='ignore'`"),
        (None, "labels", "no data to use as labels; use `edge_labels='ignore'`"),
    ]:
        with pytest.raises(DatasetFormatError, match=why):
            read_graphs(rows(tmp_path, data), edge_labels=how)


# ---------------------------------------------------------------------- TU files


def test_tu_edge_labels(tmp_path):
    path = write_folder(tmp_path / "toy", edge_labels=EDGE_LABELS)
    plain, _ = load_tu(path)
    assert plain.weights is None
    assert plain.edge_labels.tolist() == [1, 1, 1, 2, 1, 2, 3, 3, 2, 4, 4]
    ignored = load_tu(path, edge_labels="ignore")[0]
    assert (ignored.edge_labels, ignored.schema.edge_labels) == (None, "ignore")
    assert_same(replace(plain, edge_label_codes=None, edge_label_values=None), ignored)
    weighted, _ = load_tu(path, edge_labels="weights")
    assert weighted.weights.tolist() == [1, 1, 1, 2, 1, 2, 3, 3, 2, 4, 4]
    for how, expected in (("auto", plain), ("labels", plain), ("weights", weighted)):
        assert_same(read_graphs(path, edge_labels=how).graphs, expected)


def test_tu_edge_attributes(tmp_path):
    numbers = "".join(f"{float(line) / 2}\n" for line in EDGE_LABELS.split())
    path = write_folder(tmp_path / "one", edge_attributes=numbers)
    assert load_tu(path, edge_labels="auto")[0].weights[0] == 0.5
    plain = load_tu(path, edge_labels="ignore")[0]
    assert (plain.weights, plain.edge_labels, plain.schema.edge_labels) == (None, None, "ignore")
    assert read_graphs(path).graphs.weights[0] == 0.5
    with pytest.raises(DatasetFormatError, match="there are no edge labels, or an edge has differ"):
        read_graphs(path, edge_labels="labels")
    pairs = "".join(f"{line}, 0\n" for line in EDGE_LABELS.split())
    path = write_folder(tmp_path / "two", edge_attributes=pairs)
    with pytest.warns(UnusedDataWarning, match="attributes of edges are not used: .*'ignore'"):
        assert load_tu(path, edge_labels="auto")[0].weights is None
    with pytest.raises(DatasetFormatError, match="2 numbers per edge cannot be its weight"):
        load_tu(path, edge_labels="weights")


def test_tu_edges_with_several_labels(tmp_path):
    pairs = "".join(f"{line}, 0\n" for line in EDGE_LABELS.split())
    path = write_folder(tmp_path / "toy", edge_labels=pairs)
    graphs = load_tu(path)[0]
    assert graphs.edge_label_values.tolist() == ["1,0", "2,0", "3,0", "4,0"]
    assert (graphs.schema.edge_kind, graphs.schema.edge_width) == ("number", 2)
    with pytest.raises(DatasetFormatError, match="2 numbers per edge cannot be its weight"):
        load_tu(path, edge_labels="weights")
    with pytest.raises(DatasetFormatError, match="line 2: expected 2 integers, found '1'"):
        load_tu(write_folder(tmp_path / "bad", edge_labels="1, 0\n" + EDGE_LABELS[2:]))


def test_tu_edges_with_different_labels_have_none(tmp_path):
    """A dataset is not lost by labels that differ, as of edges that are there at several times."""
    plain = load_tu(write_folder(tmp_path / "plain"))[0]
    path = write_folder(tmp_path / "toy", edge_labels="9" + EDGE_LABELS[1:])
    for read in (
        lambda: load_tu(path)[0],
        lambda: load_tu(path, edge_labels="auto")[0],
        lambda: read_graphs(path).graphs,
    ):
        with pytest.warns(UnusedDataWarning, match="listed with two labels.*'ignore'"):
            graphs = read()
        assert_same(graphs, plain)
        assert graphs.schema.edge_labels == "ignore"
    with pytest.raises(DatasetFormatError, match="an edge has different ones"):
        read_graphs(path, edge_labels="labels")


@pytest.mark.parametrize(
    ("edge_labels", "why"),
    [
        (None, "neither edge labels nor edge attributes"),
        (EDGE_LABELS[2:], "10 lines, but the dataset has 11 edges"),
        ("9" + EDGE_LABELS[1:], "is listed with different weights"),
    ],
)
def test_tu_edge_labels_that_cannot_be_right(tmp_path, edge_labels, why):
    assert "edge_labels" not in TEXTS
    path = write_folder(tmp_path / "toy", edge_labels=edge_labels)
    with pytest.raises(DatasetFormatError, match=why):
        load_tu(path, edge_labels="weights")
    with pytest.raises(ValueError, match="edge_labels='edges': expected one of"):
        load_tu(path, edge_labels="edges")


@pytest.mark.real_data("MUTAG")
def test_bond_types_of_mutag(tu_path):
    graphs, _ = load_tu(tu_path("MUTAG"))
    assert graphs.edge_label_values.tolist() == [0, 1, 2, 3]
    # Aromatic, single, double, triple; each bond both ways.
    assert np.bincount(graphs.edge_label_codes).tolist() == [4708, 2008, 724, 2]
    assert repr(graphs).endswith("7442 directed edges, 7 vertex labels, 4 edge labels)")
