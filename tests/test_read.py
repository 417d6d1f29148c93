"""read_graphs: the same graphs from every format, and bad rows that neither stop nor shift."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdgnn import as_batch, iter_graphs, load_tu, read_graphs
from fdgnn.exceptions import (
    DatasetError,
    DatasetFormatError,
    DatasetNotFoundError,
    MissingDependencyError,
    UnusedDataWarning,
)
from fdgnn.graphs.molecules import MoleculeReader
from strategies import assert_same
from tu_files import write_folder, write_zip

# The small TU dataset has attributes beside labels.
pytestmark = pytest.mark.filterwarnings("ignore:.*attributes of vertices are not used")

PATH = {"edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]], "num_nodes": 3, "node_feat": [[6], [6], [8]]}
EDGE = {"edge_index": [[0, 1], [1, 0]], "num_nodes": 2, "node_feat": [[7], [6]]}
ALONE = {"edge_index": [[], []], "num_nodes": 1, "node_feat": [[8]]}
ROWS = [
    PATH | {"y": [1], "name": "a"},
    EDGE | {"y": [0], "name": "b"},
    ALONE | {"y": [1], "name": "c"},
]
GRAPHS = as_batch([(PATH["edge_index"], [6, 6, 8]), ([[0], [1]], [7, 6]), ([[], []], [8])])


def write_jsonl(path, rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_csv(path, rows):
    rows = [row | {"y": "" if row["y"] == [None] else row["y"][0]} for row in rows]
    cells = [[v if isinstance(v, str) else json.dumps(v) for v in row.values()] for row in rows]
    path.write_text("\n".join("\t".join(line) for line in [list(rows[0]), *cells]) + "\n")
    return path


def write_gzip(path, rows):
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return path


def write_parquet(path, rows):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    return path


def write_arrow(path, rows):
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pylist(rows)
    kind = pa.ipc.new_stream if path.suffix == ".arrow" else pa.ipc.new_file
    with kind(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return path


WRITERS = {
    "g.jsonl": write_jsonl, "g.ndjson": write_jsonl, "g.jsonl.gz": write_gzip, "g.tsv": write_csv,
    "g.parquet": write_parquet, "g.feather": write_arrow, "g.arrow": write_arrow,
    "unnamed": write_parquet, "no-suffix": write_jsonl, "no-suffix-gz": write_gzip,
}  # fmt: skip


def reasons(table):
    return {reject.row: reject.reason for reject in table.rejects}


# ---------------------------------------------------------------------- formats


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_of_a_graph_table_gives_the_same_graphs(tmp_path, name):
    path = WRITERS[name](tmp_path / name, ROWS)
    table = read_graphs(path, target="y", id_column="name")
    assert_same(table.graphs, GRAPHS)
    assert table.y.tolist() == [1, 0, 1]
    assert table.y.dtype == np.int64
    assert table.ids == ("a", "b", "c")
    assert table.rows.tolist() == [0, 1, 2]
    assert table.rejects == ()
    assert read_graphs(path).y is None
    assert read_graphs(path).ids == (0, 1, 2)


@pytest.mark.parametrize("name", ["g.jsonl", "g.parquet", "g.arrow", "g.tsv"])
@pytest.mark.parametrize("chunk_size", [1, 2, 5])
def test_chunks_are_the_parts_of_the_whole(tmp_path, name, chunk_size):
    rows = [*ROWS, PATH | {"y": [None], "name": "d"}, EDGE | {"y": [0], "name": "e"}]
    path = WRITERS[name](tmp_path / name, rows)
    whole = read_graphs(path, target="y")
    parts = list(iter_graphs(path, chunk_size=chunk_size, target="y"))
    assert [p.n_rows for p in parts] == [min(chunk_size, 5 - s) for s in range(0, 5, chunk_size)]
    assert [i for p in parts for i in p.ids] == list(whole.ids) == [0, 1, 2, 3, 4]
    assert np.concatenate([p.y for p in parts]).tolist() == whole.y.tolist() == [1, 0, 1, 0]
    assert np.concatenate([p.start + p.rows for p in parts]).tolist() == whole.rows.tolist()
    assert [r for p in parts for r in p.rejects] == list(whole.rejects)
    graphs = [graph for part in parts for graph in part.graphs or []]
    assert_same(as_batch(graphs), whole.graphs)


def test_a_folder_of_shards_is_one_table(tmp_path):
    for i in (1, 0):
        write_parquet(tmp_path / f"part-{i}.parquet", ROWS[i : i + 1])
    table = read_graphs(tmp_path, target="y", id_column="name")
    assert table.ids == ("a", "b")
    assert table.y.tolist() == [1, 0]
    write_parquet(tmp_path / "part-2.parquet", [ALONE])
    with pytest.raises(
        DatasetFormatError, match=r"part-2.parquet: there is no column 'y', which the files"
    ):
        read_graphs(tmp_path, target="y")


@pytest.mark.parametrize("format", [None, "jsonl"])
def test_standard_input(monkeypatch, format):
    text = "\n".join(map(json.dumps, ROWS)).encode()
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(text)))
    monkeypatch.setattr(sys, "stdin", stream)
    assert_same(read_graphs("-", format=format).graphs, GRAPHS)


@pytest.mark.parametrize("write", [write_folder, write_zip])
def test_tu_datasets_are_tables_too(tmp_path, write):
    path = write(tmp_path / ("toy.zip" if write is write_zip else "toy"))
    table = read_graphs(path, target="y")
    graphs, y = load_tu(path)
    assert_same(table.graphs, graphs)
    assert table.y.tolist() == y.tolist()
    assert table.ids == (0, 1)
    with pytest.raises(DatasetFormatError, match="no column 'z'"):
        read_graphs(path, target="z")
    assert_same(next(iter_graphs(path)).graphs, graphs)


def test_tu_features_are_read_where_there_are_no_labels(tmp_path):
    both = write_folder(tmp_path / "both")
    with pytest.warns(
        UnusedDataWarning, match="both: attributes of vertices are not used: `vertex='both'` reads"
    ):
        assert read_graphs(both, vertex="either").graphs.features is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_graphs(both, vertex="features").graphs.features is not None
        read_graphs(both, vertex="labels")
        beside = read_graphs(both, vertex="both")
        assert_same(read_graphs(both).graphs, beside.graphs)
    assert beside.graphs.features.shape == (6, 2 + len(beside.schema.label_columns))
    path = write_folder(tmp_path / "toy", node_labels=None)
    assert read_graphs(path).graphs.features.shape == (6, 2)
    assert read_graphs(path, vertex="none").graphs.features is None


# ---------------------------------------------------------------------- what vertices carry


@pytest.mark.parametrize(
    ("node_feat", "labels", "features"),
    [
        ([6, 8], [6, 8], None),
        ([[6], [8]], [6, 8], None),
        (["C", "O"], ["C", "O"], None),
        ([0.5, 1], None, [[0.5], [1]]),
        ([[6.0], [8.0]], None, [[6], [8]]),
        ([[1, 0], [0, 1]], None, [[1, 0], [0, 1]]),
    ],
)
@pytest.mark.parametrize("name", ["g.jsonl", "g.parquet"])
def test_one_integer_or_text_a_vertex_is_a_label(tmp_path, name, node_feat, labels, features):
    row = {"edge_index": [[0], [1]], "node_feat": node_feat}
    graphs = read_graphs(WRITERS[name](tmp_path / name, [row])).graphs
    assert (None if graphs.labels is None else graphs.labels.tolist()) == labels
    assert (None if graphs.features is None else graphs.features.tolist()) == features


def test_what_vertices_carry_can_be_told(tmp_path):
    path = write_jsonl(tmp_path / "g.jsonl", [PATH, EDGE])
    assert read_graphs(path, vertex="features").graphs.features.ravel().tolist() == [6, 6, 8, 7, 6]
    assert read_graphs(path, vertex="none").graphs.labels is None
    path = write_jsonl(tmp_path / "f.jsonl", [EDGE | {"node_feat": [[7.0], [6.0]]}])
    assert read_graphs(path, vertex="labels").graphs.labels.tolist() == [7, 6]
    path = write_jsonl(tmp_path / "n.jsonl", [{"edge_index": [[0], [1]]}])
    with pytest.raises(DatasetFormatError, match="the vertices carry no labels"):
        read_graphs(path, vertex="labels")


def test_the_commonest_form_is_the_files(tmp_path):
    """Whole numbers in a column of reals are reals; a real in a column of labels is a bad row."""
    reals = [EDGE | {"node_feat": f} for f in ([0.5, 1.5], [1, 2], [0.1, 0.2])]
    table = read_graphs(write_jsonl(tmp_path / "reals.jsonl", reals))
    assert table.graphs.features.ravel().tolist() == [0.5, 1.5, 1, 2, 0.1, 0.2]
    labels = [EDGE | {"node_feat": f} for f in ([0.5, 1.5], [1, 2], [3, 4], ["C", "O"])]
    table = read_graphs(write_jsonl(tmp_path / "labels.jsonl", labels))
    assert table.graphs.labels.tolist() == [1, 2, 3, 4]
    assert table.rows.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["g.jsonl", "g.parquet"])
def test_carrying_nothing_is_no_form_if_others_carry_something(tmp_path, name):
    rows = [EDGE | {"node_feat": feat} for feat in (None, None, [7, 6])]
    table = read_graphs(WRITERS[name](tmp_path / name, rows))
    assert table.graphs.labels.tolist() == [7, 6]
    assert table.rows.tolist() == [2]


def test_edges_may_be_listed_as_pairs(tmp_path):
    """Two edges could be either way, and follow the file's other rows."""
    pairs = [{"edge_index": [[0, 1], [1, 2], [2, 3]]}, {"edge_index": [[0, 1], [1, 2]]}]
    graphs = read_graphs(write_jsonl(tmp_path / "p.jsonl", pairs)).graphs
    assert np.diff(graphs.vertex_offsets).tolist() == [4, 3]
    assert graphs.n_arcs == 10
    columns = [{"edge_index": [[0, 1, 2], [1, 2, 3]]}, {"edge_index": [[0, 1], [1, 2]]}]
    graphs = read_graphs(write_jsonl(tmp_path / "c.jsonl", columns)).graphs
    assert np.diff(graphs.vertex_offsets).tolist() == [4, 3]


def test_directed_only_if_told(tmp_path):
    path = write_jsonl(tmp_path / "g.jsonl", [{"edge_index": [[0], [1]]}])
    assert read_graphs(path).graphs.n_arcs == 2
    assert read_graphs(path, directed=True).graphs.n_arcs == 1


# ---------------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        ([1, 0, 2], [1, 0, 2], "i"),
        ([[1], [[0]], [2]], [1, 0, 2], "i"),
        ([0.5, 1, 2], [0.5, 1, 2], "f"),
        (["yes", "no", "no"], ["yes", "no", "no"], "U"),
        (["1", "0", "2"], ["1", "0", "2"], "U"),
        ([True, False, True], [1, 0, 1], "i"),
        ([10**30, 1, 2], [1e30, 1, 2], "f"),
    ],
)
def test_targets_are_as_in_the_file(tmp_path, values, expected, kind):
    rows = [EDGE | {"y": value} for value in values]
    y = read_graphs(write_jsonl(tmp_path / "g.jsonl", rows), target="y").y
    assert y.tolist() == expected
    assert y.dtype.kind == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1 0 2", [1, 0, 2]), ("1.5 0 2", [1.5, 0, 2]), ("1 x 2", ["1", "x", "2"])],
)
def test_numbers_in_csv_files_are_numbers(tmp_path, text, expected):
    path = tmp_path / "g.csv"
    rows = [f'"[[0],[1]]",{value}' for value in text.split()]
    path.write_text("\n".join(["edge_index,act", *rows]))
    assert read_graphs(path, target="act").y.tolist() == expected
    numeric = read_graphs(path, target="act", numeric=True)
    assert len(numeric.y) == 3 - ("x" in text)
    assert numeric.y.dtype.kind in "if"
    assert reasons(numeric) == ({1: "target is not a number"} if "x" in text else {})


MISSING = ["null", "NaN", '""', '"NA"', "[null]", "[]", "[1, 2]", "Infinity", "{}"]


@pytest.mark.parametrize("value", MISSING)
def test_rows_without_a_target_are_bad_only_if_it_is_asked_for(tmp_path, value):
    lines = [json.dumps(EDGE | {"y": 1}), json.dumps(EDGE)[:-1] + f', "y": {value}}}']
    path = write_jsonl(tmp_path / "g.jsonl", lines)
    table = read_graphs(path, target="y")
    assert table.rows.tolist() == [0]
    assert table.y.tolist() == [1]
    assert "target" in reasons(table)[1]
    assert len(read_graphs(path).graphs) == 2


# ---------------------------------------------------------------------- bad rows

BAD = {
    "not JSON": '{"edge_index": [[0, 1]',
    "a JSON list": "[1, 2]",
    "nested too deeply": '{"edge_index": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "edge_index is missing": {"num_nodes": 3, "node_feat": [1, 2, 3]},
    "edge_index is a int": EDGE | {"edge_index": 3},
    "not a rectangular array": EDGE | {"edge_index": [[0, 1], [1]]},
    r"edge_index has shape \(3, 3\)": EDGE | {"edge_index": [[0, 0, 0]] * 3},
    r"edge_index has shape \(4,\)": EDGE | {"edge_index": [0, 1, 1, 0]},
    "edge_index has dtype float64": EDGE | {"edge_index": [[0.5], [1]]},
    r"edge_index has dtype <U": EDGE | {"edge_index": [["a"], ["b"]]},
    r"edge \(0, 2\) is out of range for 2": EDGE | {"edge_index": [[0, 0, 0], [1, 1, 2]]},
    r"edge \(5, 6\) is out of range for 2": EDGE | {"edge_index": [[5], [6]]},
    "has a negative index": EDGE | {"edge_index": [[0], [-1]]},
    "no vertices": {"edge_index": [[], []], "num_nodes": 0, "node_feat": []},
    "num_nodes is 2.5": EDGE | {"num_nodes": 2.5},
    "num_nodes is 'two'": EDGE | {"num_nodes": '"two"'},
    "n_vertices is 3, but it has labels": EDGE | {"num_nodes": 3},
    "n_vertices is -1": EDGE | {"num_nodes": -1},
    "no node_feat, expected integer labels": EDGE | {"node_feat": None},
    "labels have shape": EDGE | {"node_feat": [[1, 2], [3, 4]]},
    "text labels, expected integer labels": EDGE | {"node_feat": ["C", "O"]},
    "mixes text and numbers": EDGE | {"node_feat": ["C", 1]},
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_row_is_named_and_the_others_stay_where_they_are(tmp_path, why):
    path = write_jsonl(tmp_path / "g.jsonl", [ROWS[0], BAD[why], *ROWS[1:]])
    table = read_graphs(path)
    assert_same(table.graphs, GRAPHS)
    assert table.rows.tolist() == [0, 2, 3]
    assert table.ids == (0, 1, 2, 3)
    assert table.n_rows == 4
    (reject,) = table.rejects
    assert (reject.row, reject.id) == (1, 1)
    assert reject.reason == str(reject).removeprefix("row 1: ")
    assert re.search(why, reject.reason)
    with pytest.raises(DatasetFormatError, match=r"g\.jsonl, row 1: "):
        read_graphs(path, strict=True)


def test_not_a_number_among_features(tmp_path):
    rows = [EDGE | {"node_feat": f} for f in ([[0.5], [1]], [[float("nan")], [1]], [[1], [2.5]])]
    table = read_graphs(write_jsonl(tmp_path / "g.jsonl", rows))
    assert reasons(table) == {1: "a vertex feature is NaN or infinite; fill in or drop such values"}
    rows[1] = EDGE | {"node_feat": [[1.5, 2], [3, 4]]}
    table = read_graphs(write_jsonl(tmp_path / "g.jsonl", rows))
    assert reasons(table) == {1: "2 features per vertex, expected 1"}


def test_a_slip_in_num_nodes_does_not_fill_the_memory(tmp_path):
    rows = [{"edge_index": [[0], [1]], "num_nodes": n} for n in (2, 2_000_000_000)]
    table = read_graphs(write_jsonl(tmp_path / "g.jsonl", rows))
    told = "1999999998 vertices without edges, labels or features; rows of up to 100,000 "
    assert reasons(table)[1].startswith(told)


def test_a_table_of_bad_rows_only(tmp_path):
    path = write_jsonl(tmp_path / "g.jsonl", [EDGE | {"edge_index": [[0], [9]], "y": 1}] * 2)
    table = read_graphs(path, target="y")
    assert table.graphs is None
    assert len(table.y) == len(table.rows) == 0
    assert table.n_rows == len(table.rejects) == 2
    assert [t.graphs for t in iter_graphs(path, chunk_size=1)] == [None, None]


@given(st.lists(st.sampled_from(["good", *BAD]), min_size=1, max_size=12), st.integers(1, 5))
def test_whatever_the_order_every_row_is_accounted_for(tmp_path_factory, order, chunk_size):
    rows = [ROWS[1] if why == "good" else BAD[why] for why in order]
    path = write_jsonl(tmp_path_factory.mktemp("t") / "g.jsonl", [*ROWS[:1] * 6, *rows])
    try:
        parts = list(iter_graphs(path, chunk_size=chunk_size + 1))
    except DatasetError as error:
        pytest.fail(f"a bad row stopped the others: {error}")
    expected = [*range(6), *(i + 6 for i, why in enumerate(order) if why == "good")]
    assert [int(p.start + i) for p in parts for i in p.rows] == expected
    assert sum(p.n_rows for p in parts) == len(rows) + 6
    assert all(len(p.rows) + len(p.rejects) == p.n_rows for p in parts)


def test_nulls_and_ragged_lists_in_parquet(tmp_path):
    rows = [
        ROWS[0],
        EDGE | {"node_feat": [[7], [None]]},
        EDGE | {"node_feat": [[7], None]},
        EDGE | {"edge_index": [[0, 1], [1]]},
        EDGE | {"edge_index": None},
        ALONE,
        EDGE | {"node_feat": [[], []]},
        EDGE,
    ]
    table = read_graphs(write_parquet(tmp_path / "g.parquet", rows))
    assert table.rows.tolist() == [0, 5, 7]
    assert_same(table.graphs, GRAPHS[[0, 2, 1]])


def test_arrow_matrices_need_rows_of_one_length(tmp_path):
    """Rows of 2, 1 and 3 entries have as many as three rows of 2."""
    rows = [{"edge_index": [[0, 1, 2, 0], [1, 2, 3, 3]], "node_feat": f} for f in (
        [[1.0, 2.0]] * 4, [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0], [7.0, 8.0]])]  # fmt: skip
    table = read_graphs(write_parquet(tmp_path / "g.parquet", rows))
    assert table.rows.tolist() == [0]


def test_lists_of_fixed_length(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    edges = pa.array([[[0], [1]], [[1], [0]]], pa.list_(pa.list_(pa.int64(), 1), 2))
    feats = pa.array([[[1.0, 2.0]] * 2] * 2, pa.list_(pa.list_(pa.float32(), 2)))
    pq.write_table(pa.table({"edge_index": edges, "node_feat": feats}), tmp_path / "g.parquet")
    graphs = read_graphs(tmp_path / "g.parquet").graphs
    assert graphs.features.tolist() == [[1, 2]] * 4
    assert graphs.n_arcs == 4


# ---------------------------------------------------------------------- whole files


def damaged(path):
    path = write_parquet(path, ROWS)
    path.write_bytes(path.read_bytes()[:-40])


FILES = {
    "g.xyz": lambda p: p.write_text("hello"),
    "empty.csv": lambda p: p.write_text(""),
    "header.csv": lambda p: p.write_text("edge_index,y\n"),
    "empty.jsonl": lambda p: p.write_text("\n\n"),
    "empty.parquet": lambda p: p.write_bytes(b""),
    "empty.arrow": lambda p: p.write_bytes(b""),
    "empty": lambda p: p.write_bytes(b""),
    "nothing.parquet": lambda p: write_parquet(p, ROWS[:1]) and None,
    "truncated.parquet": damaged,
    "text.parquet": lambda p: p.write_text("edge_index,y\n1,2\n"),
    "text.zip": lambda p: p.write_text("edge_index,y\n1,2\n"),
    "truncated.jsonl.gz": lambda p: p.write_bytes(write_gzip(p, [EDGE]).read_bytes()[:-9]),
    "array.json": lambda p: p.write_text("[\n" + json.dumps(EDGE) + "\n]"),
    "columns.csv": lambda p: p.write_text("a,b\n1,2\n"),
    "folder": lambda p: p.mkdir(),
    "folder.csv": lambda p: p.mkdir(),
}
MESSAGES = {
    "g.xyz": "a file of unknown format; what can be read is",
    "empty.csv": "the file is empty",
    "header.csv": "no rows",
    "empty.jsonl": "the file is empty",
    "empty.parquet": "cannot be read",
    "empty.arrow": "cannot be read",
    "empty": "an empty file",
    "nothing.parquet": "no column 'activity' for `target`; its columns are edge_index, num_nodes",
    "truncated.parquet": "cannot be read",
    "text.parquet": "cannot be read",
    "text.zip": "cannot be read",
    "truncated.jsonl.gz": "cannot be read",
    "array.json": "expected JSON lines, an object each",
    "columns.csv": "its columns are a, b",
    "folder": "an empty folder; what can be read is",
    "folder.csv": "an empty folder",
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_wrong_with_a_whole_file_is_one_sentence(tmp_path, name):
    FILES[name](tmp_path / name)
    target = "activity" if name == "nothing.parquet" else None
    with pytest.raises(DatasetFormatError) as caught:
        read_graphs(tmp_path / name, target=target)
    message = str(caught.value)
    assert MESSAGES[name] in message
    assert name in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [
        ("pyarrow", "g.parquet", "tables"),
        ("rdkit", "m.csv", "chem"),
        ("networkx", "n.graphml", "interop"),
    ],
)
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, module, name, extra):
    (tmp_path / name).write_text("smiles\nCC\n")
    monkeypatch.setitem(sys.modules, module, None)
    MoleculeReader.of.cache_clear()  # else the reader of an earlier test is used
    with pytest.raises(MissingDependencyError, match=f"extra '{extra}' with: pip install {module}"):
        read_graphs(tmp_path / name)


def test_arguments_that_cannot_be(monkeypatch, tmp_path):
    path = write_jsonl(tmp_path / "g.jsonl", ROWS)
    with pytest.raises(DatasetNotFoundError, match="no such file or folder"):
        read_graphs(tmp_path / "missing.csv")
    unknown = "no such file or folder, and no known name of the TU collection, such as MUTAG; "
    with pytest.raises(DatasetNotFoundError, match=f"^MUTAGG: {unknown}did you mean 'MUTAG'"):
        read_graphs("MUTAGG")
    with pytest.raises(DatasetNotFoundError, match=f"^qqqq: {unknown}`fdgnn datasets` lists them"):
        read_graphs("qqqq")
    with pytest.raises(DatasetNotFoundError, match=r"no such file or folder$"):
        read_graphs(tmp_path / "MUTAGG")
    with pytest.raises(DatasetFormatError, match="no column 'nam' for `id_column`; did you mean"):
        read_graphs(path, id_column="nam")
    with pytest.raises(DatasetFormatError, match=r"no csv files; a folder with .*: 1 .jsonl"):
        read_graphs(tmp_path, format="csv")
    for wrong in ({"format": "xls"}, {"vertex": "x"}, {"edge_labels": "x"}, {"atoms": "x"}):
        with pytest.raises(ValueError, match="expected one of"):
            read_graphs(path, **wrong)
    with pytest.raises(ValueError, match="chunk_size=0"):
        iter_graphs(path, chunk_size=0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"smiles,y\nCCO,1\n")))
    with pytest.raises(DatasetFormatError, match="standard input: cannot be parquet"):
        read_graphs("-", format="parquet")


@pytest.mark.parametrize(("most", "calls"), [(1, 1), (3, 0)])
def test_memory_of_many_rows_is_given_back(tmp_path, monkeypatch, most, calls):
    from fdgnn.datasets import read

    given = []

    def library(name):  # a C library without `malloc_trim`
        given.append(name)
        return object()

    monkeypatch.setattr(read.ctypes, "CDLL", library)
    monkeypatch.setattr(read, "CHUNK_SIZE", most)
    path = tmp_path / "graphs.jsonl"
    path.write_text('{"edge_index": [[0], [1]], "y": 1}\n' * 2)
    assert len(read_graphs(path).rows) == 2
    assert len(given) == calls
