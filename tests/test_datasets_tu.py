from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdgnn import Graph, as_batch, limits, load_tu, read_graphs
from fdgnn.datasets import ReadOptions, files
from fdgnn.exceptions import (
    DatasetFormatError,
    DatasetNotFoundError,
    UnsafeArchiveError,
    UnusedDataWarning,
)
from fdgnn.graphs import GraphBatch
from fdgnn.kernels import parse_rows
from strategies import assert_same
from tu_files import TEXTS, write_folder, write_zip

# The small TU dataset has attributes beside labels.
pytestmark = pytest.mark.filterwarnings("ignore:.*attributes of vertices are not used")


def arcs_of(graphs: GraphBatch, g: int) -> set[tuple[int, int]]:
    return {(int(u), int(v)) for u, v in graphs[g].edge_index.T}


def same(a: GraphBatch, b: GraphBatch) -> bool:
    names = ("vertex_offsets", "indptr", "neighbors", "labels", "features")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


# ---------------------------------------------------------------------- what is read


@pytest.mark.parametrize("write", [write_folder, write_zip])
def test_arcs_are_merged_mirrored_and_counted(tmp_path, write):
    graphs, y = load_tu(write(tmp_path / "toy.zip"))
    assert arcs_of(graphs, 0) == {
        (0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0), (2, 3), (3, 2), (3, 3),
    }  # fmt: skip
    assert arcs_of(graphs, 1) == {(0, 1), (1, 0)}
    assert (graphs.n_merged_arcs, graphs.n_self_loops) == (1, 1)
    assert not graphs.directed
    np.testing.assert_array_equal(y, [-1, 1])
    assert y.dtype == np.int64


def test_vertices_carry_labels_features_or_nothing(tmp_path):
    folder = write_folder(tmp_path)
    graphs, _ = load_tu(folder, vertex="labels")
    assert graphs.labels.tolist() == [7, 7, 3, 12, 3, 3]
    assert graphs.label_values.tolist() == [3, 7, 12]
    assert graphs.features is None
    graphs, _ = load_tu(folder, vertex="features")
    assert graphs.labels is None
    np.testing.assert_array_equal(graphs.features[:2], [[0.5, -1], [1000, 2]])
    graphs, _ = load_tu(folder, vertex="none")
    assert graphs.labels is None
    assert graphs.features is None


def test_labels_where_there_are_none_is_nothing_as_in_the_paper(tmp_path):
    path = write_folder(tmp_path, node_labels=None)
    graphs, _ = load_tu(path, vertex="labels")
    assert graphs.labels is None
    assert graphs.features is None
    assert load_tu(path)[0].features.shape == (6, 2)  # "auto" reads what there is


def test_labels_and_attributes_together(tmp_path):
    path = write_folder(tmp_path / "toy")
    graphs, _ = load_tu(path, vertex="both")
    assert graphs.labels is None
    labels, features = (load_tu(path, vertex=vertex)[0] for vertex in ("labels", "features"))
    np.testing.assert_array_equal(graphs.features[:, :2], features.features)
    columns = labels.labels[:, None] == [3, 7, 12]
    np.testing.assert_array_equal(graphs.features[:, 2:], columns)
    assert graphs.schema.label_columns == (3, 7, 12)
    assert_same(load_tu(path, vertex="both")[0], graphs)  # from the cache
    assert_same(load_tu(path)[0], graphs)
    beside = as_batch([
        Graph(g.edge_index, labels=g.labels, features=h.features)
        for g, h in zip(labels, features, strict=True)
    ])  # fmt: skip
    assert_same(graphs, beside)
    assert_same(read_graphs(path, like=graphs.schema).graphs, graphs)
    with pytest.raises(
        DatasetFormatError, match=r"node_labels.txt is missing: .*vertex='features'"
    ):
        load_tu(write_folder(tmp_path / "none", node_labels=None), vertex="both")
    other = write_folder(tmp_path / "other", node_labels="7\n7\n3\n13\n3\n3\n")
    with pytest.raises(DatasetFormatError, match=r"labels \(3, 7, 13\) .* \(3, 7, 12\)"):
        read_graphs(other, like=graphs.schema)
    table = tmp_path / "g.jsonl"
    table.write_text('{"edge_index": [[0], [1]], "x": [[0.5], [1.5]]}\n')
    with pytest.raises(
        DatasetFormatError, match="labels with features can be read from TU datasets"
    ):
        read_graphs(table, vertex="both")


def test_a_column_for_each_label_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "RATIO_MATTERS_FROM", 100)
    with limits.changed(FDGNN_MAX_EXPANSION=5), pytest.raises(UnsafeArchiveError, match="node_lab"):
        load_tu(write_folder(tmp_path), vertex="both")


def test_what_is_not_used_is_told_once_until_it_is_chosen(tmp_path):
    numbers = "0.5\n" * 11
    path = write_folder(tmp_path, edge_labels="1\n" * 11, edge_attributes=numbers)
    with pytest.warns(UnusedDataWarning) as told:
        load_tu(path, vertex="either")
    (message,) = [str(warning.message) for warning in told]
    assert "attributes of vertices are not used: `vertex='both'`" in message
    assert "attributes of edges are not used: `edge_attribute='edge_attributes[0]'`" in message
    assert told[0].filename == __file__
    with pytest.warns(UnusedDataWarning, match="^[^;]*attributes of edges are not used") as told:
        load_tu(path)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for vertex in ("labels", "features", "both", "none"):
            for edge_labels in ("labels", "weights", "ignore"):
                graphs, _ = load_tu(path, vertex=vertex, edge_labels=edge_labels)
                assert (graphs.weights is not None) == (edge_labels == "weights")
        assert set(graphs.weights if graphs.weights is not None else [0.5]) == {0.5}


def test_one_of_several_edge_attributes(tmp_path):
    numbers = "0.5, 2\n" * 11
    path = write_folder(tmp_path, edge_attributes=numbers)
    with pytest.warns(UnusedDataWarning, match=r"`edge_attribute='edge_attributes\[0\]'`"):
        assert load_tu(path)[0].weights is None
    for place, weight in ((0, 0.5), (1, 2)):
        chosen = ReadOptions(edge_attribute=f"edge_attributes[{place}]", vertex="labels")
        assert set(load_tu(path, chosen)[0].weights) == {weight}
    with pytest.raises(DatasetFormatError, match=r"shape \(11, 2\), so it has no column 2"):
        load_tu(path, edge_attribute="edge_attributes[2]")
    for name in ("edge_labels", "bond"):
        with pytest.raises(
            DatasetFormatError, match="expected edge_labels or edge_attributes; this"
        ):
            load_tu(path, edge_attribute=name)
    with pytest.raises(DatasetFormatError, match="no other columns, so none is called"):
        load_tu(path, vertex_attributes="x")


def test_vertex_names_a_choice(tmp_path):
    with pytest.raises(
        ValueError,
        match="vertex='label': expected one of auto, labels, features, none, both, either",
    ):
        load_tu(write_folder(tmp_path), vertex="label")


def test_vertices_of_a_graph_need_not_be_listed_together(tmp_path):
    # Vertices 1..6 of the sorted dataset are listed as 3, 5, 1, 2, 6, 4.
    place = {1: 3, 2: 4, 3: 1, 4: 6, 5: 2, 6: 5}
    lines = [line.split(",") for line in TEXTS["A"].split("\n") if line]
    shuffled = write_folder(
        tmp_path / "shuffled",
        A="".join(f"{place[int(u)]},{place[int(v)]}\n" for u, v in lines),
        graph_indicator="1\n2\n1\n1\n2\n1\n",
        node_labels="3\n3\n7\n7\n3\n12\n",
        node_attributes="3\n5\n1\n2\n6\n4\n",
    )
    graphs, y = load_tu(shuffled, vertex="labels")
    # Within a graph vertices stay in the order of the file: 3, 1, 2, 4 and 5, 6.
    assert graphs.labels.tolist() == [3, 7, 7, 12, 3, 3]
    assert arcs_of(graphs, 0) == {
        (1, 2), (2, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 3), (3, 0), (3, 3),
    }  # fmt: skip
    assert arcs_of(graphs, 1) == {(0, 1), (1, 0)}
    np.testing.assert_array_equal(y, [-1, 1])
    graphs, _ = load_tu(shuffled, vertex="features")
    assert graphs.features[:, 0].tolist() == [3, 1, 2, 4, 5, 6]


@pytest.mark.parametrize(
    "arcs",
    [
        TEXTS["A"].rstrip(),
        TEXTS["A"] + "\n \n\n",
        TEXTS["A"].replace("\n", "\r\n"),
        TEXTS["A"].replace(",", " "),
        TEXTS["A"].replace("1, ", "+1\t, "),
    ],
    ids=["no last newline", "blank lines at the end", "Windows", "blanks only", "tabs and signs"],
)
def test_spellings_of_the_same_arcs(tmp_path, arcs):
    graphs, _ = load_tu(write_folder(tmp_path / "a"))
    spelled, _ = load_tu(write_folder(tmp_path / "b", A=arcs))
    assert same(graphs, spelled)


def test_blocks_may_be_cut_anywhere(tmp_path, monkeypatch):
    expected = load_tu(write_folder(tmp_path / "a"), vertex="features")[0]
    for size in range(5, 40):
        monkeypatch.setattr(files, "BLOCK", size)
        folder = write_folder(tmp_path / f"{size}")
        assert same(load_tu(folder, vertex="features")[0], expected)
        write_folder(folder, A=TEXTS["A"].replace("4,4", "4.4"))
        with pytest.raises(DatasetFormatError, match=r"TOY_A.txt, line 8: .* '4.4'"):
            load_tu(folder)


def test_path_forms(tmp_path, monkeypatch):
    write_folder(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert same(load_tu("mine")[0], load_tu(Path("mine"))[0])
    assert same(load_tu("./mine")[0], load_tu(str(tmp_path / "mine"))[0])
    for missing in ["no/such/folder", "none.zip", tmp_path / "none"]:
        with pytest.raises(DatasetNotFoundError, match="no such folder or zip"):
            load_tu(missing)


# ---------------------------------------------------------------------- what is refused

WRONG = {
    "non-integer arc": ({"A": "1, 2\n2, x\n"}, r"_A.txt, line 2: .*2 integers, found '2, x'"),
    "real arc": ({"A": "1, 2.5\n"}, r"_A.txt, line 1: expected 2 integers"),
    "glued": ({"A": "1, 2-3\n"}, r"_A.txt, line 1: expected 2 integers"),
    "one end": ({"A": "1, 2\n3\n"}, r"_A.txt, line 2: expected 2 integers, found '3'"),
    "comma for an end": ({"A": "1,,2\n"}, r"_A.txt, line 1"),
    "comma before": ({"A": ",1, 2\n"}, r"_A.txt, line 1"),
    "three ends": ({"A": "1, 2, 3\n"}, r"_A.txt, line 1"),
    "truncated": ({"A": "1, 2\n2, 1\n2,"}, r"_A.txt, line 3: .* found '2,'"),
    "blank line inside": ({"A": "1, 2\n\n2, 1\n"}, r"_A.txt, line 2: .* found ''"),
    "2 for an int64": ({"A": f"1, {2**64 + 2}\n"}, r"_A.txt, line 1: expected 2 integers"),
    "past the last vertex": ({"A": "1, 2\n1, 7\n"}, r"_A.txt, line 2: edge \(1, 7\).* 1 to 6"),
    "far past it": ({"A": f"1, {2**32 + 2}\n"}, r"_A.txt, line 1: edge \(1, 4294967298\).* 1 to 6"),
    "vertex 0": ({"A": "1, 0\n"}, r"_A.txt, line 1: edge \(1, 0\).* 1 to 6"),
    "crossing": ({"A": "1, 2\n4, 5\n"}, r"line 2: edge \(4, 5\) leads from graph 1 into graph 2"),
    "no arcs file": ({"A": None}, "expected one file NAME_A.txt with the edges, found none"),
    "no indicator": ({"graph_indicator": None}, "TOY_graph_indicator.txt is missing"),
    "no classes": ({"graph_labels": None}, "TOY_graph_labels.txt is missing"),
    "empty arcs": ({"A": ""}, "_A.txt: the file is empty"),
    "blank indicator": ({"graph_indicator": " \n\n"}, "_graph_indicator.txt: the file is empty"),
    "graphs from 0": (
        {"graph_indicator": "0\n0\n1\n1\n1\n1\n"},
        r"_indicator.txt, line 1: graph 0, but graphs are counted from 1",
    ),
    "fewer classes": ({"graph_labels": "1\n"}, r"_indicator.txt, line 5: graph 2, .* has 1 lines"),
    "more classes": ({"graph_labels": "1\n1\n1\n"}, "graph 3 has no vertices"),
    "graph left out": (
        {"graph_indicator": "1\n1\n1\n1\n3\n3\n", "graph_labels": "1\n1\n2\n"},
        r"_indicator.txt: graph 2 has no vertices",
    ),
    "class as a word": ({"graph_labels": "1\nb\n"}, r"_graph_labels.txt, line 2: .* one integer"),
    "fewer labels": ({"node_labels": "1\n2\n"}, "_node_labels.txt: 2 lines, .* 6 vertices"),
    "more labels": ({"node_labels": "1\n" * 7}, "_node_labels.txt: 7 lines, .* 6 vertices"),
}


@pytest.mark.parametrize(("texts", "message"), WRONG.values(), ids=WRONG)
def test_wrong_files_are_named(tmp_path, texts, message):
    for path in (write_folder(tmp_path / "toy", **texts), write_zip(tmp_path / "toy.zip", **texts)):
        with pytest.raises(DatasetFormatError, match=message):
            load_tu(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no vertex features; load it with `vertex='labels'`"),
        ("", "the file is empty"),
        ("1, 2\n" * 5, "5 lines, but the dataset has 6 vertices"),
        ("1, 2\n1\n", "number of columns changed"),
        ("1, two\n", "'two'|' two'"),
        ("1, nan\n" * 6, "graph 0: .* NaN"),
    ],
)
def test_wrong_features_are_named(tmp_path, text, message):
    folder = write_folder(tmp_path, node_attributes=text)
    with pytest.raises(DatasetFormatError, match=f"TOY.*({message})"):
        load_tu(folder, vertex="features")
    load_tu(folder, vertex="labels")  # nobody asked for them


def test_two_datasets_in_a_folder(tmp_path):
    write_folder(write_folder(tmp_path), name="OTHER")
    with pytest.raises(DatasetFormatError, match="found several"):
        load_tu(tmp_path)


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 100)
    with pytest.raises(DatasetFormatError, match="a line of more than 100 bytes"):
        load_tu(write_folder(tmp_path, A="1" * 1000))
    folder = write_folder(tmp_path, A=TEXTS["A"], node_attributes="1\n" * 50 + "1" * 1000)
    with pytest.raises(DatasetFormatError, match=r"^[^:]*_node_attributes.txt: a line of more"):
        load_tu(folder, vertex="features")


# ---------------------------------------------------------------------- the kernel

NUMBERS = st.integers(-(10**18) + 1, 10**18 - 1)
SEPARATORS = st.sampled_from([",", ", ", " ,", " ", "\t", " , ", ",\t "])


@given(st.data(), st.integers(1, 3), st.integers(1, 8))
def test_kernel_reads_what_was_written(data, n_columns, n_rows):
    numbers = data.draw(st.lists(NUMBERS, min_size=n_columns * n_rows, max_size=n_columns * n_rows))
    rows = np.array(numbers).reshape(n_rows, n_columns)
    separator, end = data.draw(SEPARATORS), data.draw(st.sampled_from(["", " ", "\r"]))
    lines = [" " + separator.join(map(str, row)) + end for row in rows]
    out = np.empty((n_columns, n_rows), dtype=np.int64)
    text = np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)
    assert parse_rows(text, out) == n_rows
    np.testing.assert_array_equal(out.T, rows)


@given(st.text(alphabet="0123456789-+, \t\r\nx.", max_size=30))
def test_kernel_agrees_with_python_on_any_text(text):
    def values(line: str) -> list[int] | None:
        parts = line.split(",") if "," in line else line.split()
        try:
            return [int(part) for part in parts] if len(parts) == 2 else None
        except ValueError:
            return None

    lines = text.split("\n")
    expected = [values(line) for line in lines]
    n_good = expected.index(None) if None in expected else len(expected)
    out = np.empty((2, len(lines)), dtype=np.int64)
    assert parse_rows(np.frombuffer(text.encode(), dtype=np.uint8), out) == n_good
    assert out[:, :n_good].T.tolist() == expected[:n_good]
