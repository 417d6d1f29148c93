"""Tables with a row per edge, and Excel workbooks."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from fdgnn import Graph, iter_graphs, limits, read_graphs
from fdgnn.exceptions import DatasetFormatError, FDGNNError, UnsafeArchiveError, UnusedDataWarning

EDGES = {
    "graph": ["a", "a", "b", "b", "c"],
    "source": ["u", "v", 1, 2, "alone"],
    "target": ["v", "w", 2, 3, None],
    "source_label": ["C", "C", "N", "C", "O"],
    "target_label": ["C", "O", "C", "C", None],
    "edge_label": [1, 2, 1, 1, None],
    "y": [0.5, 0.5, 1.5, 1.5, 2.5],
}
GRAPHS = [
    Graph([[0, 1], [1, 2]], labels=["C", "C", "O"], edge_labels=[1, 2]),
    Graph([[0, 1], [1, 2]], labels=["N", "C", "C"], edge_labels=[1, 1]),
    Graph([], labels=["O"], edge_labels=[]),
]


def frame(columns, library="pandas"):
    made = pytest.importorskip(library)
    if library == "polars":
        return made.DataFrame(columns, strict=False)
    return made.DataFrame(columns, dtype=object)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_row_per_edge(library):
    if library == "polars":  # its columns have one type
        edges = EDGES | {"source": ["u", "v", "1", "2", "x"], "target": ["v", "w", "2", "3", None]}
        table = read_graphs(frame(edges, library), target="y")
    else:
        table = read_graphs(frame(EDGES), target="y")
    assert [replace(graph, vertex_names=None) for graph in table.graphs] == GRAPHS
    assert table.graphs.vertex_names[0] == ["u", "v", "w"]
    assert table.ids == ("a", "b", "c")
    assert table.y.tolist() == [0.5, 1.5, 2.5]


def test_a_row_per_edge_in_a_file(tmp_path):
    path = tmp_path / "edges.csv"
    lines = ["graph,source,target,weight,y", "a,0,1,0.5,1", "a,1,2,2,1", "b,0,1,3,0"]
    path.write_text("\n".join(lines))
    table = read_graphs(path, target="y")
    assert list(table.graphs) == [
        Graph([[0, 1], [1, 2]], weights=[0.5, 2]), Graph([[0], [1]], weights=[3])
    ]  # fmt: skip
    chunks = list(iter_graphs(path, target="y", chunk_size=1))
    assert [list(chunk.graphs) for chunk in chunks] == [[each] for each in table.graphs]
    again = read_graphs(path, like=table.schema)
    assert list(again.graphs) == list(table.graphs)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["a,0,1,1", "a,1,2,2"], "edges have different values of 'y'"),
        (["a,0,1,1", ",1,2,2"], "'graph' is missing"),
        (["a,0,1,1", "a,,2,1"], "one of its edges has no 'source'"),
        (["a,0,1,1", "a,1"], "2 fields, but the header has 4"),
    ],
)
def test_rows_that_make_no_graph(lines, reason):
    table = read_graphs(io.StringIO("\n".join(["graph,source,target,y", *lines])), target="y")
    assert any(reason in bad.reason for bad in table.rejects)


def test_a_graph_in_several_places_is_an_error():
    lines = ["graph,source,target,y", "a,0,1,1", "b,0,1,1", "a,1,2,1"]
    with pytest.raises(DatasetFormatError, match="edges of graph 'a' are in several places; sort"):
        read_graphs(io.StringIO("\n".join(lines)), target="y")


def test_json_rows_of_edges_need_not_have_all_columns(tmp_path):
    rows = [
        {"graph": 1, "source": 0, "target": 1},
        {"graph": 1, "source": 2},
        {"source": 0, "target": 1},
        {"graph": [2], "source": 0, "target": 1},
        {"graph": 3, "source": [0], "target": 1},
    ]
    path = tmp_path / "edges.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    table = read_graphs(path)
    assert [graph.n_vertices for graph in table.graphs] == [3]
    missing = "'graph' is missing, or not one name"
    reasons = [missing, missing, "one of its edges ends at a list"]
    assert [bad.reason for bad in table.rejects] == reasons


def test_a_vertex_with_two_labels():
    edges = EDGES | {"target_label": ["N", "O", "C", "C", None]}
    table = read_graphs(frame(edges), target="y")
    assert table.rejects[0].reason == "vertex 'v' has the labels 'N' and 'C'"


def test_weights_beside_labels_of_edges_are_reported():
    table = frame(EDGES | {"weight": [1, 2, 3, 4, 5]})
    with pytest.warns(UnusedDataWarning, match="weights are not used: `edge_label` is read"):
        read_graphs(table)
    read = read_graphs(table, edge_attribute="weight", edge_labels="weights")
    assert read.graphs[0].weights.tolist() == [1, 1, 2, 2]
    assert read.graphs.edge_labels is None


def test_other_columns_of_edges():
    columns = {name: EDGES[name] for name in ("graph", "source", "target", "y")}
    columns |= {"order": ["a", "b", "b", "a", None], "length": [0.5, 1.5, 2.5, 3.5, None]}
    with pytest.warns(UnusedDataWarning) as caught:
        read_graphs(frame(columns), target="y")
    message = str(caught[0].message)
    for name in ("order", "length"):
        assert f"the values of {name!r} are not used: `edge_attribute={name!r}` reads" in message
    read_graphs(frame(columns), edge_labels="ignore")  # without a warning
    table = read_graphs(frame(columns), target="y", edge_attribute="order")
    assert table.graphs[0].edge_labels.tolist() == ["a", "a", "b", "b"]
    assert table.graphs[2].n_vertices == 1
    again = read_graphs(frame(columns), like=table.schema)
    assert list(again.graphs) == list(table.graphs)


def test_a_table_of_edges_without_graphs_is_told_the_columns():
    with pytest.raises(DatasetFormatError, match="a row per edge has the columns graph, source"):
        read_graphs(frame({"source": [0], "target": [1]}))


# ---------------------------------------------------------------------- Excel


openpyxl = pytest.importorskip("openpyxl")
ROWS = [["smiles", "y", "name"], ["CCO", 1, "a"], [None] * 3, ["C1CC", 0, "b"], ["CCN", 0.5, "c"]]


def workbook(path, rows=ROWS, **sheets):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title, content in sheets.items():
        sheet = book.create_sheet(title)
        for row in content:
            sheet.append(row)
    book.save(path)
    return path


def test_excel(tmp_path):
    path = workbook(tmp_path / "m.xlsx", Empty=[])
    table = read_graphs(path, target="y", id_column="name")
    assert table.smiles == ("CCO", "CCN")
    assert table.y.tolist() == [1.0, 0.5]
    assert [(bad.row, bad.reason[:16]) for bad in table.rejects] == [
        (1, "line is blank"), (2, "the SMILES 'C1CC"),
    ]  # fmt: skip
    assert table.ids == ("a", 1, "b", "c")
    with pytest.warns(UnusedDataWarning, match="the sheets 'More' are not used: save the sheet"):
        read_graphs(workbook(tmp_path / "two.xlsx", More=[["smiles"], ["C"]]), target="y")


@pytest.mark.parametrize("rows", [[], [[None, None]]])
def test_an_empty_sheet(rows, tmp_path):
    with pytest.raises(DatasetFormatError, match="its sheet 'Sheet' is empty"):
        read_graphs(workbook(tmp_path / "m.xlsx", rows))


def test_damaged_workbooks(tmp_path):
    good = workbook(tmp_path / "m.xlsx").read_bytes()
    path = tmp_path / "bad.xlsx"
    for content in (b"", b"PK\x03\x04", good[:-200], good.replace(b"sheet1.xml", b"sheet9.xml")):
        path.write_bytes(content)
        with pytest.raises(FDGNNError, match=r"bad\.xlsx: cannot be read"):
            read_graphs(path, target="y")
    for at in range(0, len(good), 97):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x5A]) + good[at + 1 :])
        try:
            read_graphs(path, target="y")
        except FDGNNError as error:
            assert "bad.xlsx" in str(error)  # noqa: PT017


def test_a_workbook_that_unpacks_to_too_much(tmp_path):
    path = workbook(tmp_path / "m.xlsx")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/large.xml", bytes(100 << 20))
    with pytest.raises(UnsafeArchiveError, match="times its own size"):
        read_graphs(path, target="y")
    small = workbook(tmp_path / "long.xlsx", [["smiles"], ["C" * 100]])
    with limits.changed(FDGNN_MAX_ROW_BYTES=50):
        assert "text is too long" in read_graphs(small).rejects[0].reason


def test_excel_in_and_out_of_commands(tmp_path):
    rows = [["smiles", "y"], *([f"{'C' * n}O", n % 2] for n in range(1, 41))]
    data, model, output = workbook(tmp_path / "d.xlsx", rows), tmp_path / "m", tmp_path / "o.xlsx"

    def fdgnn(*words):
        run = [sys.executable, "-m", "fdgnn", *map(str, words)]
        return subprocess.run(run, capture_output=True, text=True, check=False)

    assert fdgnn("fit", data, "--target", "y", "-o", model).returncode == 0
    workbook(data, [["smiles", "id"], ["CCO", "=1+1"], ["C((", "b"]])
    run = fdgnn("predict", model, data, "--id", "id", "-o", output)
    assert run.returncode in (0, 1), run.stderr
    header, first, second = openpyxl.load_workbook(output).active.iter_rows()
    names = [cell.value for cell in header]
    found = dict(zip(names, first, strict=True))
    assert isinstance(found["prediction"].value, int)
    assert all(cell.data_type != "f" for cell in (*first, *second))
    assert "cannot be parsed" in dict(zip(names, second, strict=True))["error"].value
