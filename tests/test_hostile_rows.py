"""Rows that ask for too much are rejected one by one, and cost no memory; the others are read."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from fdgnn import Graph, as_batch, iter_graphs, limits, read_graphs
from fdgnn.checkpoints import content_hash
from fdgnn.evaluation.run import read_evaluations
from fdgnn.exceptions import (
    DatasetFormatError,
    FDGNNError,
    GraphError,
    UnsafeArchiveError,
)
from fdgnn.html.report_data import read_report_data
from fdgnn.prediction.explanation import read_vertex_sets
from model_file_tools import memory_below
from tu_files import write_folder

# The small TU dataset has attributes beside labels.
pytestmark = pytest.mark.filterwarnings("ignore:.*attributes of vertices are not used")

MB = 2**20
EDGE = {"edge_index": [[0], [1]], "y": 1}


def write(path, rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def rejected(table):
    return {reject.row: reject.reason for reject in table.rejects}


# ---------------------------------------------------------------------- vertices


def test_ten_million_vertices_on_each_of_many_lines(tmp_path):
    """At most 10**7 vertices were taken in each row; 200 rows took tens of gigabytes."""
    rows = [EDGE, *[{"edge_index": [[], []], "num_nodes": 10**7}] * 200, EDGE]
    with memory_below(50 * MB):
        table = read_graphs(write(tmp_path / "g.jsonl", rows))
    assert table.rows.tolist() == [0, 201]
    assert set(rejected(table)) == set(range(1, 201))
    assert "10000000 vertices without edges" in rejected(table)[1]
    assert "FDGNN_MAX_BARE_VERTICES" in rejected(table)[1]


def test_an_index_can_ask_for_as_many(tmp_path):
    rows = [EDGE, *[{"edge_index": [[0], [9_999_998]]}] * 50]
    with memory_below(50 * MB):
        table = read_graphs(write(tmp_path / "g.jsonl", rows))
    assert table.rows.tolist() == [0]


def test_many_rows_that_ask_for_a_little_less(tmp_path):
    """Those that ask for most are left out until the others fit."""
    sizes = [5, 100, 70, 3, 100, 90]
    rows = [{"edge_index": [[], []], "num_nodes": n} for n in sizes]
    with limits.changed(FDGNN_MAX_BARE_TOTAL=180):
        table = read_graphs(write(tmp_path / "g.jsonl", rows))
    assert table.rows.tolist() == [0, 2, 3, 5]
    assert "the table has too many" in rejected(table)[1]


def test_labeled_vertices_are_no_bare_ones(tmp_path):
    rows = [{"edge_index": [[], []], "node_feat": [1] * 50, "num_nodes": 50}]
    with limits.changed(FDGNN_MAX_BARE_VERTICES=10):
        assert read_graphs(write(tmp_path / "g.jsonl", rows)).graphs.n_vertices == 50


def test_graphs_in_python_may_be_bare():
    assert as_batch([Graph([[], []], 200_000)]).n_vertices == 200_000


# ---------------------------------------------------------------------- texts


@pytest.mark.parametrize("where", ["target", "vertex", "arc", "beside numbers"])
def test_one_long_text_beside_many_short_ones(tmp_path, where):
    """Arrays give each text the room of the longest: 20,000 of them took 75 GB."""
    good = {"edge_index": [[0], [1]], "node_feat": ["C", "N"], "edge_attr": ["single"], "y": "a"}
    long = "x" * MB
    bad = (
        good
        | {
            "target": {"y": long},
            "vertex": {"node_feat": [long, "C"]},
            "arc": {"edge_attr": [long]},
            "beside numbers": {"node_feat": [*range(1000), long], "edge_index": [[0], [1]]},
        }[where]
    )
    rows = [good | {"y": "ab"[i % 2]} for i in range(2000)]
    rows[777] = bad
    path = write(tmp_path / "g.jsonl", rows)
    with memory_below(100 * MB):
        table = read_graphs(path, target="y", edge_labels="labels")
    assert list(rejected(table)) == [777]
    assert "labels of up to 256 characters are accepted (FDGNN_MAX_LABEL)" in rejected(table)[777]
    assert table.y.dtype == "<U1"


def test_many_labels_beside_a_rather_long_one(tmp_path):
    """The room of 256 characters for each of a million labels would be a gigabyte."""
    rows = [{"edge_index": [[], []], "node_feat": ["C"] * 2000} for _ in range(100)]
    rows[50] = {"edge_index": [[], []], "node_feat": ["x" * 256]}
    path = write(tmp_path / "g.jsonl", rows)
    with memory_below(60 * MB):
        graphs = read_graphs(path).graphs
    assert graphs.label_values.tolist() == ["C", "x" * 256]
    assert graphs.n_vertices == 99 * 2000 + 1
    assert graphs[50].labels.tolist() == ["x" * 256]


@pytest.mark.parametrize("where", ["node_feat", "edge_attr"])
def test_one_long_label_in_each_row(tmp_path, where):
    """Each row was padded to its longest label: 24 kB of gzip took 5.7 GB."""
    n = 3000
    edges = [list(range(n - 1)), list(range(1, n))]
    row = {"edge_index": edges, "node_feat": ["a"] * n, "edge_attr": ["s"] * (n - 1)}
    row[where][1] = "x" * 256
    path = write(tmp_path / "g.jsonl", [row] * 20)  # 60,000 labels of 1 kB
    with memory_below(40 * MB):
        table = read_graphs(path, edge_labels="labels")
    assert table.rejects == ()
    found = table.graphs[0].labels if where == "node_feat" else table.graphs[0].edge_labels
    if where == "node_feat":
        assert found[:3].tolist() == ["a", "x" * 256, "a"]
    else:
        assert sorted(set(found.tolist())) == ["s", "x" * 256]


def test_distinct_labels_beside_a_long_one(tmp_path):
    """The distinct labels are not padded either, and survive hashes and copies."""
    rows = [
        {"edge_index": [[0], [1]], "node_feat": ["x" * 256, *map(str, range(i, i + 2000))]}
        for i in range(0, 40_000, 2000)
    ]
    path = write(tmp_path / "g.jsonl", rows)
    with memory_below(40 * MB):
        graphs = read_graphs(path).graphs
    assert len(graphs.label_values) == 40_001
    assert graphs[3].labels[:2].tolist() == ["x" * 256, "6000"]
    again = read_graphs(path).graphs
    assert content_hash(graphs) == content_hash(again)
    assert as_batch(list(graphs)).label_values.tolist() == graphs.label_values.tolist()


def test_labels_of_one_row_that_make_a_large_array(tmp_path):
    rows = [EDGE | {"node_feat": ["C", "N"]}, EDGE | {"node_feat": ["x" * 200, *["y"] * 2000]}]
    with limits.changed(FDGNN_MAX_ROW_BYTES=10**6):
        table = read_graphs(write(tmp_path / "g.jsonl", rows))
    assert rejected(table)[1].startswith("the entries of node_feat are 2001 texts of up to 200 ")


def test_long_labels_are_rejected_at_the_door():
    with pytest.raises(GraphError, match="graph 0: labels have up to 300 characters; labels of up"):
        as_batch([Graph([[0], [1]], labels=["x" * 300, "y"])])
    with limits.changed(FDGNN_MAX_LABEL=300):
        assert len(as_batch([Graph([[0], [1]], labels=["x" * 300, "y"])])) == 1


# ---------------------------------------------------------------------- lines


@pytest.mark.parametrize("name", ["g.jsonl", "g.csv"])
def test_a_line_that_is_too_long_is_one_bad_row(tmp_path, name):
    rows = ['{"edge_index": [[0], [1]], "y": 1}', "x" * 5000, '{"edge_index": [[0], [1]], "y": 2}']
    if name == "g.csv":
        rows = ["edge_index;y", "[[0],[1]];1", "x" * 5000, "[[0],[1]];2"]
    path = write(tmp_path / name, rows)
    with limits.changed(FDGNN_MAX_ROW_BYTES=1000):
        table = read_graphs(path, target="y")
    assert table.y.tolist() == [1, 2]
    told = "line is too long; rows of up to 1,000 bytes are accepted (FDGNN_MAX_ROW_BYTES)"
    assert rejected(table) == {1: told}


def test_a_long_line_of_gzip_takes_no_memory(tmp_path):
    path = tmp_path / "g.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(json.dumps(EDGE).encode() + b"\n")
        file.write(os.urandom(MB) * 3)  # so that the ratio stays small
        for _ in range(40):
            file.write(b" " * MB)
        file.write(b"\n" + json.dumps(EDGE).encode())
    with memory_below(12 * MB), limits.changed(FDGNN_MAX_ROW_BYTES=MB):
        table = read_graphs(path)
    assert len(table.rows) == 2
    assert len(table.rejects) >= 1


def test_gzip_is_bounded_as_zip_is(tmp_path):
    path = tmp_path / "g.jsonl.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(100):
            file.write(b" " * MB)
    told = r"g\.jsonl\.gz: unpacks to 0.1 GB or more, \d+ times its own size; files that unpack"
    with memory_below(150 * MB), pytest.raises(UnsafeArchiveError, match=told):
        read_graphs(path)


@pytest.mark.parametrize("name", ["g.jsonl.gz", "g.csv.gz", "g.smi.gz", "g.sdf.gz"])
def test_many_short_lines_of_gzip_are_counted_as_rows(tmp_path, name):
    """16 million blank lines are 15.6 kB of gzip, and took 6.1 GB."""
    start = {
        "g.jsonl.gz": json.dumps(EDGE).encode() + b"\n",
        "g.csv.gz": b"smiles\nCCO\n",
        "g.smi.gz": b"CCO a\n",
        "g.sdf.gz": b"a\nM  END\n$$$$\n",
    }[name]
    path = tmp_path / name
    path.write_bytes(gzip.compress(start + b"\n" * 300_000 + start))
    with (
        memory_below(15 * MB),
        pytest.raises(UnsafeArchiveError, match=r"times its own size; .*FDGNN_MAX_EXPANSION"),
    ):
        read_graphs(path)


def test_a_table_has_a_limit_of_rejected_rows(tmp_path):
    path = write(tmp_path / "g.jsonl", [EDGE, *[""] * 5, EDGE, *[{"y": 1}] * 5, EDGE])
    told = r"^.*g\.jsonl: too many rows are rejected, for instance: %s; tables with up to %d reject"
    with limits.changed(FDGNN_MAX_REJECTS=10):
        assert len(read_graphs(path).rejects) == 10
    with (
        limits.changed(FDGNN_MAX_REJECTS=9),
        pytest.raises(DatasetFormatError, match=told % ("row 1: line is blank", 9)),
    ):
        read_graphs(path)
    with limits.changed(FDGNN_MAX_REJECTS=4):
        with pytest.raises(DatasetFormatError, match=told % ("line is blank", 4)):
            read_graphs(path)
        assert sum(len(table.rows) for table in iter_graphs(path, chunk_size=4)) == 3


def test_a_header_that_is_too_long(tmp_path):
    path = write(tmp_path / "g.csv", ["x" * 2000, "1"])
    with (
        limits.changed(FDGNN_MAX_ROW_BYTES=1000),
        pytest.raises(DatasetFormatError, match="no header: line is too long"),
    ):
        read_graphs(path)


def test_quotes_that_never_close_are_read_once(tmp_path, monkeypatch):
    """A quoted field may span lines; looking for its end must not cost the square of them."""
    import csv

    from fdgnn.datasets import tables as text

    parsed, reader = [], csv.reader

    def counted(lines, **options):
        return reader((parsed.append(1) or line for line in lines), **options)

    monkeypatch.setattr(text.csv, "reader", counted)
    path = write(tmp_path / "g.csv", ["edge_index;y", *['"[[0],[1]];1'] * 300])
    assert len(read_graphs(path).rejects) == 300
    assert len(parsed) < 300 * 110


def test_fields_that_span_lines_are_read(tmp_path):
    lines = ["edge_index;y", '"[[0], ', '[1]]   ";1', "[[0],[1]];2"]
    path = write(tmp_path / "g.csv", lines)
    assert read_graphs(path, target="y").y.tolist() == [1, 2]
    with limits.changed(FDGNN_MAX_ROW_BYTES=15):  # each line is shorter, the two are not
        assert read_graphs(path, target="y").y.tolist() == [2]


# ---------------------------------------------------------------------- other formats


def test_arrow_rows_without_content_are_counted(tmp_path):
    """Two billion rows of nothing take nothing in an Arrow file."""
    pa = pytest.importorskip("pyarrow")
    n = 2**31 - 1
    arrays = [pa.nulls(n), pa.nulls(n)]
    batch = pa.RecordBatch.from_arrays(arrays, ["edge_index", "y"])
    path = tmp_path / "g.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    assert path.stat().st_size < 2000
    with pytest.raises(UnsafeArchiveError, match=r"g\.arrow: unpacks to .*FDGNN_MAX_EXPANSION"):
        read_graphs(path)


def test_nested_entries_without_content_are_counted(tmp_path):
    """A list of 70 million nulls takes nothing in an Arrow file, and 560 MB in Python."""
    pa = pytest.importorskip("pyarrow")
    lists = pa.ListArray.from_arrays(pa.array([0, 70 * MB], pa.int32()), pa.nulls(70 * MB))
    table = pa.table({"edge_index": lists})
    path = tmp_path / "g.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert path.stat().st_size < 2000
    with pytest.raises(UnsafeArchiveError, match=r"g\.arrow: unpacks to 0\.1 GB or more"):
        read_graphs(path)


def test_values_of_a_dictionary_are_counted_in_each_row(tmp_path):
    """One text of a megabyte, in each of two thousand rows."""
    pa = pytest.importorskip("pyarrow")
    n = 2000
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * n), pa.array(["x" * MB]))
    table = pa.table({"edge_index": [[[0], [0]]] * n, "y": texts})
    path = tmp_path / "g.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DatasetFormatError, match=r"g\.arrow: cannot be read"):
        read_graphs(path, target="y")


def test_parquet_rows_with_too_many_entries_are_an_error(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    values = pa.array(np.zeros(10 * MB, dtype=np.int64))
    offsets = pa.array([0, 5 * MB, 10 * MB], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, values)
    path = tmp_path / "g.parquet"
    pq.write_table(pa.table({"edge_index": lists, "y": [1, 2]}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(UnsafeArchiveError, match=r"g\.parquet: unpacks to 0\.1 GB or more"):
        read_graphs(path)


def test_long_smiles_make_no_dense_matrix(tmp_path):
    pytest.importorskip("rdkit")
    path = tmp_path / "g.csv"
    path.write_text(f"smiles,y\nCCO,1\n{'C' * 50_000},2\nCCN,1\n")
    table = read_graphs(path, target="y")
    told = "the SMILES has 50000 characters; SMILES of up to 5,000 characters are accepted "
    assert rejected(table) == {1: f"{told}(FDGNN_MAX_SMILES)"}


def v3000(counts, n_atoms=1):
    atoms = "".join(f"M  V30 {i} C 0 0 0 0\n" for i in range(1, n_atoms + 1))
    return (
        "m\n  x\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n"
        f"{counts}\nM  V30 BEGIN ATOM\n{atoms}M  V30 END ATOM\nM  V30 END CTAB\nM  END\n$$$$\n"
    )


@pytest.mark.parametrize(
    "counts",
    [
        "M  V30 COUNTS 200000000 0 0 0 0",
        "M  V30 COUN-\nM  V30 TS 2000-\nM  V30 00000 0 0 0 0",
        "M  V30 counts +200000000 0 0 0 0",
        "M  V30 COUNTS -1 0 0 0 0",
        "M  V30 COUNTS 1 200000000 0 0 0",
    ],
)
def test_declared_counts_are_checked_before_rdkit_sees_the_block(tmp_path, monkeypatch, counts):
    """156 bytes that declare 200 million atoms took 6.2 GB."""
    Chem = pytest.importorskip("rdkit.Chem")
    parse, seen = Chem.MolFromMolBlock, []
    monkeypatch.setattr(Chem, "MolFromMolBlock", lambda block: seen.append(block) or parse(block))
    good = v3000("M  V30 COUNTS 1 0 0 0 0")
    path = tmp_path / "m.sdf"
    path.write_text(good + v3000(counts) + good)
    table = read_graphs(path)
    assert table.rows.tolist() == [0, 2]
    assert len(seen) == 2
    assert rejected(table)[1].startswith("counts line ")


def test_counts_of_mol_blocks(tmp_path):
    Chem = pytest.importorskip("rdkit.Chem")
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    declared = block.replace("  3  2", "999999")
    assert declared != block
    path = tmp_path / "m.sdf"
    path.write_text("$$$$\n".join([block, declared, v3000("M  V30 COUNTS 30 0 0 0 0", 30)]))
    with limits.changed(FDGNN_MAX_VERTICES=29):
        found = rejected(read_graphs(path))
    assert found == {
        1: "counts line declares 999 atoms and 999 bonds, but its mol block has only 10 lines; "
        "write the file again",
        2: "counts line declares 30 atoms; graphs of up to 29 vertices are accepted "
        "(FDGNN_MAX_VERTICES)",
    }
    with limits.changed(FDGNN_MAX_SMILES=29):
        found = rejected(read_graphs(path))
    assert found[2].startswith("molecule has 30 atoms; SMILES of up to 29 characters ")


def test_many_columns_of_many_lines_in_a_tu_file(tmp_path):
    """The first line says how many columns there are; it must not say how much memory."""
    folder = write_folder(tmp_path / "toy", edge_labels="1" + ",1" * 400_000 + "\n" * 400_000 + "1")
    with memory_below(60 * MB), pytest.raises(DatasetFormatError, match="line 2: expected 400001"):
        read_graphs(folder, edge_labels="labels")


GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
    '<node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>'
)


@pytest.mark.parametrize("name", ["g.graphml.gz", "g.GraphML"])
def test_packed_networks_are_read_by_their_own_format(tmp_path, name):
    pytest.importorskip("networkx")
    text = GRAPHML.encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    table = read_graphs(tmp_path)
    assert table.rejects == ()
    assert (table.graphs.n_vertices, table.graphs.n_arcs) == (2, 2)


def test_a_packed_network_that_is_too_large(tmp_path):
    pytest.importorskip("networkx")
    for name in "ab":
        spaces = b" " * (MB if name == "a" else 0)
        packed = gzip.compress(GRAPHML.encode() + spaces)
        (tmp_path / f"{name}.graphml.gz").write_bytes(packed)
    with limits.changed(FDGNN_MAX_ROW_BYTES=1000):
        table = read_graphs(tmp_path)
    told = "a.graphml.gz is too large; rows of up to 1,000 bytes are accepted (FDGNN_MAX_ROW_BYTES)"
    assert rejected(table) == {0: told}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this machine")
def test_a_pipe_beside_networks_is_not_opened(tmp_path):
    """Opening one waits for ever."""
    pytest.importorskip("networkx")
    (tmp_path / "a.graphml").write_text(GRAPHML)
    os.mkfifo(tmp_path / "labels.csv")
    assert len(read_graphs(tmp_path).graphs) == 1


# ---------------------------------------------------------------------- tracebacks


@pytest.mark.parametrize("stdin", ["none", "closed"])
@pytest.mark.parametrize("format", [None, "csv"])
def test_standard_input_that_is_closed(monkeypatch, stdin, format):
    closed = io.TextIOWrapper(io.BytesIO(b""))
    closed.close()
    monkeypatch.setattr(sys, "stdin", None if stdin == "none" else closed)
    with pytest.raises(DatasetFormatError, match=r"^standard input: is closed"):
        read_graphs("-", format=format)


@pytest.mark.parametrize("y", [10**400, -(10**400), 10**309])
@pytest.mark.parametrize("numeric", [False, True])
def test_targets_beyond_floats(tmp_path, y, numeric):
    path = write(tmp_path / "g.jsonl", [EDGE, EDGE | {"y": y}, EDGE | {"y": 0.5}])
    table = read_graphs(path, target="y", numeric=numeric)
    assert table.y.tolist() == [1, 0.5]
    assert list(rejected(table)) == [1]


def test_members_of_a_zip_without_a_name(tmp_path):
    folder = write_folder(tmp_path / "toy")
    with zipfile.ZipFile(tmp_path / "toy.zip", "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"toy/{file.name}")
        archive.writestr("x", "")
    content = (tmp_path / "toy.zip").read_bytes()
    # The name of the last member has no length, neither in front of it nor in the directory.
    for mark, at in ((b"PK\x03\x04", 26), (b"PK\x01\x02", 28)):
        start = content.rindex(mark)
        end = start + at
        content = content[:end] + b"\0\0" + content[end + 2 :]
    (tmp_path / "toy.zip").write_bytes(content)
    with pytest.raises(DatasetFormatError, match=r"toy\.zip"):
        read_graphs(tmp_path / "toy.zip")


@pytest.mark.parametrize("method", ["ZIP_LZMA", "ZIP_BZIP2", "ZIP_DEFLATED"])
def test_damaged_members_of_a_zip(tmp_path, method):
    folder = write_folder(tmp_path / "toy")
    path = tmp_path / "toy.zip"
    with zipfile.ZipFile(path, "w", getattr(zipfile, method)) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"toy/{file.name}")
    content = path.read_bytes()
    for at in range(30, content.index(b"PK\x01\x02"), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        with suppress(DatasetFormatError):  # it may have hit a byte that does not matter
            read_graphs(path)


@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.jsonl", "g.graphml", "g.zip"])
@pytest.mark.parametrize("bad", [b"\xff\xfe\x80", b"\x80abc", "é".encode("latin-1"), b"\x1f\x8b"])
def test_bytes_that_are_no_text(tmp_path, name, bad):
    (tmp_path / name).write_bytes(bad * 20 + b"\n" + bad)
    with pytest.raises(DatasetFormatError):
        read_graphs(tmp_path / name, strict=True)


def test_rows_are_bounded_in_parts_as_well(tmp_path):
    rows = [EDGE, {"edge_index": [[], []], "num_nodes": 10**7}, EDGE]
    found = list(iter_graphs(write(tmp_path / "g.jsonl", rows), chunk_size=1))
    assert [len(table.rows) for table in found] == [1, 0, 1]


@pytest.mark.parametrize(
    "read",
    [
        read_vertex_sets,
        read_report_data,
        read_evaluations,
    ],
)
def test_a_pipe_is_not_waited_for(read, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with suppress(FDGNNError):
        assert read(tmp_path / "pipe") == []


def test_lines_of_vertex_sets_have_a_limit_and_errors_their_number(tmp_path):
    path = tmp_path / "sets.jsonl"
    path.write_bytes(b'\n{"row": 0, "name": "a", "vertices": [0]}\n\xff\xfe\n')
    with pytest.raises(DatasetFormatError, match=r"sets\.jsonl, line 3: not a set of vertices"):
        read_vertex_sets(path)
    with (
        limits.changed(FDGNN_MAX_ROW_BYTES=10),
        pytest.raises(DatasetFormatError, match=r"line 2: .*line is too long"),
    ):
        read_vertex_sets(path)
