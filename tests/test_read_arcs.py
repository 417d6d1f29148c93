"""Arc labels: ignored, as weights, or as vertices between the arcs' ends."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given

from fdgnn import Graph, GraphBatch, as_batch, load_tu, read_graphs
from fdgnn.datasets.arcs import subdivide
from fdgnn.exceptions import DatasetFormatError
from strategies import assert_same, batches
from tu_files import TEXTS, write_folder

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


def test_by_default_labels_are_ignored_and_one_real_number_is_a_weight(tmp_path):
    assert read_graphs(rows(tmp_path, INTEGERS)).graphs.weights is None
    assert read_graphs(rows(tmp_path, REALS)).graphs.weights.tolist() == REALS
    path = rows(tmp_path, INTEGERS)
    assert read_graphs(path, arc_labels="weights").graphs.weights.tolist() == [1, 1, 2, 2]
    assert read_graphs(rows(tmp_path, REALS), arc_labels="ignore").graphs.weights is None


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
    ]:
        with pytest.raises(DatasetFormatError, match=why):
            read_graphs(rows(tmp_path, data), arc_labels=how)
    path = rows(tmp_path, ["a"] * 4, node_feat=[[0.5], [1.5], [2.5]])
    with pytest.raises(DatasetFormatError, match="arcs carry text, and vertices carry numbers"):
        read_graphs(path, arc_labels="vertices")


# ---------------------------------------------------------------------- TU files


def test_tu_edge_labels_are_read_when_asked_for(tmp_path):
    path = write_folder(tmp_path / "toy", edge_labels=EDGE_LABELS)
    plain, y = load_tu(path)
    assert plain.weights is None
    weighted, _ = load_tu(path, arc_labels="weights")
    assert weighted.weights.tolist() == [1, 1, 1, 2, 1, 2, 3, 3, 2, 4, 4]
    levi, z = load_tu(path, arc_labels="vertices")
    assert_same(levi, subdivide(weighted))
    assert y.tolist() == z.tolist()
    for how, expected in (("auto", plain), ("vertices", levi)):
        assert_same(read_graphs(path, arc_labels=how).graphs, expected)


def test_tu_edge_attributes(tmp_path):
    numbers = "".join(f"{float(line) / 2}\n" for line in EDGE_LABELS.split())
    path = write_folder(tmp_path / "one", edge_attributes=numbers)
    assert load_tu(path, arc_labels="auto")[0].weights[0] == 0.5
    assert load_tu(path)[0].weights is None
    pairs = "".join(f"{line}, 0\n" for line in EDGE_LABELS.split())
    path = write_folder(tmp_path / "two", edge_attributes=pairs)
    assert load_tu(path, arc_labels="auto")[0].weights is None
    assert "edge 1,0" in load_tu(path, arc_labels="vertices")[0].label_values
    with pytest.raises(DatasetFormatError, match="2 numbers per arc cannot be its weight"):
        load_tu(path, arc_labels="weights")


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
def test_mutag(tu_path):
    graphs, _ = load_tu(tu_path("MUTAG"), arc_labels="vertices")
    assert graphs.label_values.tolist() == [*"0123456", "edge 0", "edge 1", "edge 2", "edge 3"]
    assert graphs.n_vertices == 3371 + 7442 // 2
    assert graphs.n_distinct_graphs == 188
