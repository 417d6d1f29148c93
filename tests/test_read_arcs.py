"""What arcs carry: labels, weights, vertices between the arcs' ends, or nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from fdgnn import Graph, GraphBatch, as_batch, iter_graphs, load_tu, read_graphs
from fdgnn.exceptions import DatasetFormatError
from fdgnn.graphs.carried import subdivide
from strategies import assert_same, batches
from tu_files import TEXTS, write_folder

# The small TU dataset has attributes beside labels.
pytestmark = pytest.mark.filterwarnings("ignore:.*attributes of vertices are not used")

EDGE_LABELS = "1\n1\n2\n2\n1\n1\n3\n2\n1\n4\n4\n"


def plainly_subdivided(graph):
    """The definition, an edge at a time; vertices first, then edges by target and source."""
    n = graph.n_vertices
    weights = np.zeros(graph.edge_index.shape[1]) if graph.weights is None else graph.weights
    edges = {(v, u): w for u, v, w in zip(*graph.edge_index.tolist(), weights, strict=True)}
    if not graph.directed:
        edges = {(v, u): w for (v, u), w in edges.items() if u <= v}
    arcs = []
    for e, (v, u) in enumerate(sorted(edges)):
        arcs += [(u, n + e), (n + e, v)]
    numbers = [edges[edge] for edge in sorted(edges)]
    labels = features = None
    if graph.features is None:
        own = ["vertex"] * n if graph.labels is None else [str(label) for label in graph.labels]
        labels = own + [f"edge {number + 0.0:.15g}" for number in numbers]
    else:
        own = [[*row, 0, 0] for row in graph.features]
        features = own + [[*[0] * graph.features.shape[1], 1, number] for number in numbers]
    edge_index = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    return Graph(edge_index, n + len(edges), labels, features, directed=graph.directed)


@given(batches())
def test_subdivision_is_the_definition(graphs):
    expected = as_batch([plainly_subdivided(graph) for graph in graphs])
    assert_same(subdivide(graphs), expected)


def test_subdivision_tells_apart_what_only_arc_labels_do():
    """Hexagons with alternating bonds, and with all alike."""
    ring = [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]
    alike, alternating = [1, 1, 1, 2, 2, 2], [1, 2, 1, 2, 1, 2]
    graphs = GraphBatch.from_graphs([Graph(ring, weights=w) for w in (alike, alternating)])
    assert subdivide(graphs).n_distinct_graphs == 2
    assert as_batch([Graph(ring), Graph(ring)]).n_distinct_graphs == 1


# ---------------------------------------------------------------------- tables


def rows(tmp_path, *arc_data, **fields):
    path = tmp_path / "g.jsonl"
    row = {"edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]], "node_feat": [5, 6, 7]} | fields
    path.write_text("\n".join(json.dumps(row | {"edge_attr": data}) for data in arc_data))
    return path


INTEGERS, REALS = [[1], [1], [2], [2]], [0.5, 0.5, 2, 2]
TEXTS_ON_ARCS = ["single", "single", "double", "double"]


def test_by_default_one_real_number_is_a_weight_and_everything_discrete_a_label(tmp_path):
    graphs = read_graphs(rows(tmp_path, INTEGERS)).graphs
    assert graphs.weights is None
    assert graphs.arc_labels.tolist() == [1, 1, 2, 2]
    graphs = read_graphs(rows(tmp_path, REALS)).graphs
    assert graphs.weights.tolist() == REALS
    assert graphs.arc_labels is None
    assert read_graphs(rows(tmp_path, INTEGERS), arc_labels="ignore").graphs.arc_labels is None
    path = rows(tmp_path, INTEGERS)
    assert read_graphs(path, arc_labels="weights").graphs.weights.tolist() == [1, 1, 2, 2]
    assert read_graphs(rows(tmp_path, REALS), arc_labels="ignore").graphs.weights is None


@pytest.mark.parametrize("how", ["auto", "labels"])
@pytest.mark.parametrize(
    ("data", "labels"),
    [
        (INTEGERS, [1, 1, 2, 2]),
        (TEXTS_ON_ARCS, TEXTS_ON_ARCS),
        ([[1, 0], [1, 0], [0, 1], [0, 1]], ["1,0", "1,0", "0,1", "0,1"]),
        ([[t, "x"] for t in TEXTS_ON_ARCS], [f"{t},x" for t in TEXTS_ON_ARCS]),
        ([True, True, False, False], [1, 1, 0, 0]),
    ],
)
def test_arcs_have_labels(tmp_path, data, labels, how):
    lonely = {"edge_index": [[], []], "num_nodes": 3}  # a graph without arcs needs none
    path = rows(tmp_path, data, data)
    row = json.dumps({"node_feat": [5, 6, 7]} | lonely)
    path.write_text(f"{row}\n{path.read_text()}\n")
    table = read_graphs(path, arc_labels=how)
    assert table.graphs.arc_labels.tolist() == [*labels, *labels]
    assert (table.graphs.weights, table.reading.arc_labels) == (None, "labels")
    first, *_, last = iter_graphs(path, like=table.reading, chunk_size=1)
    assert first.graphs.arc_labels.dtype.kind == last.graphs.arc_labels.dtype.kind
    assert last.graphs.arc_labels.tolist() == labels


def test_whole_numbers_written_as_reals_are_labels_if_asked_for(tmp_path):
    whole = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    graphs = read_graphs(rows(tmp_path, whole), arc_labels="labels").graphs
    assert graphs.arc_labels.tolist() == ["1,0", "1,0", "0,1", "0,1"]
    assert read_graphs(rows(tmp_path, whole)).graphs.arc_labels is None
    for bad in (REALS, [1, 1, 2, float("inf")], [1, 1, 2, float("nan")]):
        table = read_graphs(rows(tmp_path, INTEGERS, bad), arc_labels="labels")
        assert table.rejects[0].reason == (
            "its edge_attr has entries of dtype float64, expected one integer per edge"
        )


BAD_LABELS = [
    ([[1], [2], [2], [2]], "is listed with different labels"),
    ([[1], [1], [2]], "entries of edge_attr have shape (3, 1), expected (4, 1)"),
    ([[1, 1]] * 4, "entries of edge_attr have shape (4, 2), expected (4, 1)"),
    ([[1], [1], [2], [None]], "its edge_attr has entries of dtype object, expected one integer"),
    (["a", "a", "b", "b"], "its edge_attr has entries of kind text, expected one integer per edge"),
    (None, "it has no edge_attr, expected one integer per edge"),
]


@pytest.mark.parametrize(("bad", "why"), BAD_LABELS)
def test_bad_labels_are_a_bad_row_if_labels_are_asked_for(tmp_path, bad, why):
    """If nobody asked for them, they are ignored: no graph is lost by what it need not have."""
    path = rows(tmp_path, INTEGERS, bad, INTEGERS, INTEGERS)
    table = read_graphs(path, arc_labels="labels")
    assert table.rows.tolist() == [0, 2, 3]
    assert why in table.rejects[0].reason
    table = read_graphs(path)
    assert (len(table.graphs), table.rejects) == (4, ())
    assert (table.graphs.arc_labels, table.reading.arc_labels) == (None, "ignore")


def test_rows_that_are_bad_anyway_do_not_cost_the_labels(tmp_path):
    path = rows(tmp_path, INTEGERS, INTEGERS)
    bad = {"edge_index": [[0], [9]], "node_feat": [5, 6, 7], "edge_attr": [1]}
    path.write_text(path.read_text() + "\n" + json.dumps(bad))
    table = read_graphs(path)
    assert [reject.row for reject in table.rejects] == [2]
    assert table.graphs.arc_label_values.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (INTEGERS, ["edge 1", "edge 2"]),
        (REALS, ["edge 0.5", "edge 2"]),
        ([[1, 0], [1, 0], [0, 1], [0, 1]], ["edge 0,1", "edge 1,0"]),
        (["single", "single", "double", "double"], ["edge double", "edge single"]),
    ],
)
def test_arcs_become_vertices(tmp_path, data, names):
    graphs = read_graphs(rows(tmp_path, data, data), arc_labels="vertices").graphs
    assert graphs.label_values.tolist() == ["5", "6", "7", *names]
    assert np.diff(graphs.vertex_offsets).tolist() == [5, 5]
    assert graphs.labels[:5].tolist()[:3] == ["5", "6", "7"]
    assert graphs.weights is None


def test_arcs_with_features_become_vertices_with_features(tmp_path):
    path = rows(tmp_path, [[1, 9], [1, 9], [2, 8], [2, 8]], node_feat=[[0.5], [1.5], [2.5]])
    graphs = read_graphs(path, arc_labels="vertices").graphs
    assert graphs.features.tolist() == [
        [0.5, 0, 0, 0], [1.5, 0, 0, 0], [2.5, 0, 0, 0], [0, 1, 1, 9], [0, 1, 2, 8],
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["weights", "vertices"])
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ([[1], [2], [2], [2]], "is listed with different weights"),
        ([[1], [1], [2]], "weights have shape (3,), expected (4,)"),
        ([[1, 1]] * 4, "weights have shape (4, 2), expected (4,)"),
        ([[1], [1], [2], [None]], "weights have dtype object"),
        ([1, 1, 2, float("nan")], "an arc weight is NaN"),
        (
            ["a", "a", "b", "b"],
            "its edge_attr has entries of kind text, expected one number per edge",
        ),
        (None, "it has no edge_attr, expected one number per edge"),
    ],
)
def test_bad_arc_data_is_a_bad_row(tmp_path, how, bad, why):
    path = rows(tmp_path, INTEGERS, bad, INTEGERS, INTEGERS)
    table = read_graphs(path, arc_labels=how)
    assert table.rows.tolist() == [0, 2, 3]
    assert why in table.rejects[0].reason
    assert len(read_graphs(path).graphs) == 4


def test_many_bad_rows_among_many(tmp_path):
    """Each of them is named, and nobody else."""
    contradiction = [[1], [2], [2], [2]]
    data = [contradiction if i % 7 == 3 else INTEGERS for i in range(50)]
    table = read_graphs(rows(tmp_path, *data), arc_labels="weights")
    assert [reject.row for reject in table.rejects] == list(range(3, 50, 7))
    assert len(table.graphs) == 50 - 7


def test_what_cannot_be_done_is_said(tmp_path):
    for data, how, why in [
        ([[1, 2]] * 4, "weights", "an arc carries 2 entries"),
        (["a"] * 4, "weights", "an arc carries 1 entries of kind text"),
        (None, "vertices", "nothing that could become vertices; use `arc_labels='ignore'`"),
        (None, "labels", "nothing that could become labels; use `arc_labels='ignore'`"),
    ]:
        with pytest.raises(DatasetFormatError, match=why):
            read_graphs(rows(tmp_path, data), arc_labels=how)
    path = rows(tmp_path, ["a"] * 4, node_feat=[[0.5], [1.5], [2.5]])
    with pytest.raises(DatasetFormatError, match="arcs carry text, and vertices carry numbers"):
        read_graphs(path, arc_labels="vertices")


# ---------------------------------------------------------------------- TU files


def test_tu_edge_labels(tmp_path):
    path = write_folder(tmp_path / "toy", edge_labels=EDGE_LABELS)
    plain, y = load_tu(path)
    assert plain.weights is None
    assert plain.arc_labels.tolist() == [1, 1, 1, 2, 1, 2, 3, 3, 2, 4, 4]
    ignored = load_tu(path, arc_labels="ignore")[0]
    assert (ignored.arc_labels, ignored.reading.arc_labels) == (None, "ignore")
    assert_same(replace(plain, arc_label_codes=None, arc_label_values=None), ignored)
    weighted, _ = load_tu(path, arc_labels="weights")
    assert weighted.weights.tolist() == [1, 1, 1, 2, 1, 2, 3, 3, 2, 4, 4]
    levi, z = load_tu(path, arc_labels="vertices")
    assert_same(levi, subdivide(weighted))
    assert y.tolist() == z.tolist()
    for how, expected in (("auto", plain), ("labels", plain), ("vertices", levi)):
        assert_same(read_graphs(path, arc_labels=how).graphs, expected)


def test_tu_edge_attributes(tmp_path):
    numbers = "".join(f"{float(line) / 2}\n" for line in EDGE_LABELS.split())
    path = write_folder(tmp_path / "one", edge_attributes=numbers)
    assert load_tu(path, arc_labels="auto")[0].weights[0] == 0.5
    plain = load_tu(path)[0]
    assert (plain.weights, plain.arc_labels, plain.reading.arc_labels) == (None, None, "ignore")
    assert read_graphs(path).graphs.weights[0] == 0.5
    with pytest.raises(DatasetFormatError, match="there are no edge labels, or an edge has differ"):
        read_graphs(path, arc_labels="labels")
    pairs = "".join(f"{line}, 0\n" for line in EDGE_LABELS.split())
    path = write_folder(tmp_path / "two", edge_attributes=pairs)
    assert load_tu(path, arc_labels="auto")[0].weights is None
    assert "edge 1,0" in load_tu(path, arc_labels="vertices")[0].label_values
    with pytest.raises(DatasetFormatError, match="2 numbers per arc cannot be its weight"):
        load_tu(path, arc_labels="weights")


def test_tu_edges_with_several_labels(tmp_path):
    pairs = "".join(f"{line}, 0\n" for line in EDGE_LABELS.split())
    path = write_folder(tmp_path / "toy", edge_labels=pairs)
    graphs = load_tu(path)[0]
    assert graphs.arc_label_values.tolist() == ["1,0", "2,0", "3,0", "4,0"]
    assert (graphs.reading.arc_kind, graphs.reading.arc_width) == ("number", 2)
    assert "edge 1,0" in load_tu(path, arc_labels="vertices")[0].label_values
    with pytest.raises(DatasetFormatError, match="2 numbers per arc cannot be its weight"):
        load_tu(path, arc_labels="weights")
    with pytest.raises(DatasetFormatError, match="line 2: expected 2 integers, found '1'"):
        load_tu(write_folder(tmp_path / "bad", edge_labels="1, 0\n" + EDGE_LABELS[2:]))


def test_tu_edges_with_different_labels_have_none(tmp_path):
    """A dataset is not lost by labels that differ, as of edges that are there at several times."""
    plain = load_tu(write_folder(tmp_path / "plain"))[0]
    path = write_folder(tmp_path / "toy", edge_labels="9" + EDGE_LABELS[1:])
    for graphs in (load_tu(path)[0], load_tu(path, arc_labels="auto")[0], read_graphs(path).graphs):
        assert_same(graphs, plain)
        assert graphs.reading.arc_labels == "ignore"
    with pytest.raises(DatasetFormatError, match="an edge has different ones"):
        read_graphs(path, arc_labels="labels")


@pytest.mark.parametrize(
    ("edge_labels", "why"),
    [
        (None, "neither edge labels nor edge attributes"),
        (EDGE_LABELS[2:], "10 lines, but the dataset has 11 arcs"),
        ("9" + EDGE_LABELS[1:], "is listed with different weights"),
    ],
)
def test_tu_edge_labels_that_cannot_be_right(tmp_path, edge_labels, why):
    assert "edge_labels" not in TEXTS
    path = write_folder(tmp_path / "toy", edge_labels=edge_labels)
    with pytest.raises(DatasetFormatError, match=why):
        load_tu(path, arc_labels="vertices")
    with pytest.raises(ValueError, match="arc_labels='edges': expected one of"):
        load_tu(path, arc_labels="edges")


@pytest.mark.real_data("MUTAG")
def test_bond_types_of_mutag(tu_path):
    graphs, _ = load_tu(tu_path("MUTAG"))
    assert graphs.arc_label_values.tolist() == [0, 1, 2, 3]
    # Aromatic, single, double, triple; each bond both ways.
    assert np.bincount(graphs.arc_label_codes).tolist() == [4708, 2008, 724, 2]
    assert repr(graphs).endswith("7442 arcs, 7 vertex labels, 4 arc labels)")


@pytest.mark.real_data("MUTAG")
def test_mutag(tu_path):
    graphs, _ = load_tu(tu_path("MUTAG"), arc_labels="vertices")
    assert graphs.label_values.tolist() == [*"0123456", "edge 0", "edge 1", "edge 2", "edge 3"]
    assert graphs.n_vertices == 3371 + 7442 // 2
    assert graphs.n_distinct_graphs == 188
