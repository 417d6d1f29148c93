"""Graphs from what is no named table: open files, data frames, lists; files of molecules."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest

from fdgnn import FDGNNClassifier, as_batch, iter_graphs, read_graphs
from fdgnn.exceptions import DatasetFormatError, GraphError, UnsafeArchiveError
from fdgnn.limits import changed
from strategies import assert_same

Chem = pytest.importorskip("rdkit.Chem")

CSV = "id,smiles,y\na,CCO,1\nb,C1CC,0\nc,CCN,0\n"
ROWS = [{"edge_index": [[0, 1], [1, 2]], "node_feat": [1, 2, 3], "y": k} for k in (0, 1)]


@pytest.fixture
def expected(tmp_path):
    path = tmp_path / "expected.csv"
    path.write_text(CSV)
    return read_graphs(path, target="y", id_column="id")


def assert_alike(table, expected):
    assert_same(table.graphs, expected.graphs)
    assert (table.ids, table.y.tolist()) == (expected.ids, expected.y.tolist())
    assert [r.reason for r in table.rejects] == [r.reason for r in expected.rejects]
    assert (table.smiles, table.rows.tolist()) == (expected.smiles, expected.rows.tolist())


# ---------------------------------------------------------------------- open files


class Trickle(io.RawIOBase):
    """Bytes that can neither be looked at in advance nor read again, as from a socket."""

    def __init__(self, content):
        self.left = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.left.readinto(buffer)


def test_open_files_of_every_kind(tmp_path, expected):
    plain, packed = tmp_path / "m.csv", tmp_path / "m.csv.gz"
    plain.write_text(CSV)
    packed.write_bytes(gzip.compress(CSV.encode()))
    kinds = [
        lambda: io.StringIO(CSV),
        lambda: io.BytesIO(CSV.encode()),
        lambda: io.BytesIO(gzip.compress(CSV.encode())),
        lambda: plain.open(),
        lambda: plain.open("rb"),
        lambda: packed.open("rb"),
        lambda: gzip.GzipFile(packed),
        lambda: Trickle(CSV.encode()),
        lambda: io.BufferedReader(Trickle(CSV.encode())),
    ]
    for kind in kinds:
        with kind() as file:
            assert_alike(read_graphs(file, target="y", id_column="id"), expected)
            assert not file.closed


def test_an_open_file_is_read_from_where_it_stands():
    file = io.BytesIO(b"# a remark\nsmiles\nCCO\n")
    file.readline()
    assert len(read_graphs(file).graphs) == 1


def test_formats_of_open_files():
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    table = read_graphs(io.StringIO(lines), target="y")
    assert (len(table.graphs), table.y.tolist()) == (2, [0, 1])
    tabs = io.StringIO("smiles\ty\nCCO\t1\n")
    assert read_graphs(tabs, format="tsv", target="y").y.tolist() == [1]
    assert len(read_graphs(io.StringIO("CCO ethanol\nCCN\n"), format="smi").graphs) == 2
    parts = iter_graphs(io.StringIO(CSV), chunk_size=2)
    assert [part.n_rows for part in parts] == [2, 1]
    with pytest.raises(DatasetFormatError, match=r"^the open BytesIO: cannot be parquet, only"):
        read_graphs(io.BytesIO(b"PAR1"), format="parquet")
    with pytest.raises(DatasetFormatError, match=r"^the open StringIO: the file is empty"):
        read_graphs(io.StringIO(""))
    with pytest.raises(DatasetFormatError, match=r"^the open BytesIO: cannot be read"):
        read_graphs(io.BytesIO(gzip.compress(CSV.encode())[:20]))
    bomb = io.BytesIO(gzip.compress(b"smiles\n" + (b" " * 1023 + b"\n") * (65 << 10)))
    with pytest.raises(UnsafeArchiveError, match=r"^the open BytesIO: unpacks to"):
        read_graphs(bomb)


# ---------------------------------------------------------------------- data frames and lists


def test_a_frame_is_no_list_of_graphs():
    frame = Frame({"smiles": ["CCO"]}, Column)
    with pytest.raises(GraphError, match=r"^a whole table was given \(a Frame\); pass its column"):
        as_batch(frame)


class Column:
    def __init__(self, values):
        self.values = values

    def to_list(self):
        return list(self.values)


class PandasColumn(Column):
    def isna(self):
        return [v is None or (isinstance(v, float) and v != v) for v in self.values]


class Frame:
    """What is used of a data frame of pandas or polars."""

    def __init__(self, columns, kind):
        self.data, self.kind, self.columns = columns, kind, list(columns)
        self.shape = (len(self), len(columns))

    def __getitem__(self, key):
        return self.kind(self.data[key])

    def __len__(self):
        return len(next(iter(self.data.values())))


DATA = {"id": ["a", "b", "c"], "smiles": ["CCO", "C1CC", "CCN"], "y": [1, 0, 0]}


def frames():
    yield lambda data: Frame(data, Column)
    yield lambda data: Frame(data, PandasColumn)
    for library in ("pandas", "polars"):
        try:
            yield __import__(library).DataFrame
        except ImportError:
            continue


@pytest.mark.parametrize("make", list(frames()))
def test_data_frames(make, expected):
    table = read_graphs(make(DATA), target="y", id_column="id", columns=["y"])
    assert_alike(table, expected)
    assert table.columns == {"y": (1, 0)}
    gaps = make({"smiles": ["CCO", None, "CCN"], "y": [0.5, 1.5, float("nan")]})
    found = read_graphs(gaps, target="y")
    reasons = [reject.reason for reject in found.rejects]
    assert reasons == ["the SMILES is missing", "the target is missing"]
    graphs = make({"edge_index": [row["edge_index"] for row in ROWS], "y": [0, 1]})
    assert len(read_graphs(graphs, target="y").graphs) == 2
    with pytest.raises(DatasetFormatError, match=r"^the data frame: there is no column 'why'"):
        read_graphs(make(DATA), target="why")
    assert [t.n_rows for t in iter_graphs(make(DATA), chunk_size=2)] == [2, 1]


def test_a_frame_that_is_not_computed_yet():
    class Lazy:
        columns = ("smiles",)

        def __getitem__(self, key):
            raise TypeError

    with pytest.raises(DatasetFormatError, match=r"a Lazy has no rows yet; collect\(\) it first"):
        read_graphs(Lazy())


def test_lists_of_molecules(expected):
    mols = [Chem.MolFromSmiles("OCC"), None, Chem.MolFromSmiles("CCN")]
    for given in (["CCO", "C1CC", "CCN"], np.array(["CCO", "C1CC", "CCN"])):
        table = read_graphs(given)
        assert_same(table.graphs, expected.graphs)
        assert [reject.row for reject in table.rejects] == [1]
    table = read_graphs(mols)
    assert table.smiles == ("CCO", "CCN")
    assert [reject.reason for reject in table.rejects] == ["the SMILES is missing"]
    changed_ones = read_graphs(["CC[O-].[Na+]", "CCO"], standardize="parent").changes
    assert [(c.row, c.before, c.after) for c in changed_ones] == [(0, "CC[O-].[Na+]", "CCO")]
    model = FDGNNClassifier(random_state=0).fit(["CCO", "CCN", "CCCO", "CCCN"], [0, 1, 0, 1])
    assert read_graphs(["CCO"], like=model).schema.atoms == "typed"


# ---------------------------------------------------------------------- files of molecules


@pytest.mark.parametrize("pack", [False, True])
def test_smi_files(tmp_path, pack):
    text = "CCO ethanol\nC1CC broken ring\nCCN\tethyl amine\n\nCCC\n"
    path = tmp_path / ("m.smi.gz" if pack else "m.smi")
    path.write_bytes(gzip.compress(text.encode()) if pack else text.encode())
    table = read_graphs(path)
    assert table.ids == ("ethanol", "broken ring", "ethyl amine", 3, 4)
    assert table.smiles == ("CCO", "CCN", "CCC")
    assert [reject.row for reject in table.rejects] == [1, 3]
    headed = tmp_path / "h.smi"
    headed.write_text("SMILES name active\nCCO ethanol 1\nCCN amine 0\n")
    named = read_graphs(headed, target="active")
    assert (named.ids, named.y.tolist()) == (("ethanol", "amine"), [1, 0])
    empty = tmp_path / "empty.smi"
    empty.write_text("")
    with pytest.raises(DatasetFormatError, match=r"empty\.smi: the file is empty"):
        read_graphs(empty)


def sdf(*molecules):
    """Records by RDKit's own writer: (SMILES, name, properties)."""
    text = io.StringIO()
    with Chem.SDWriter(text) as writer:
        for smiles, name, properties in molecules:
            mol = Chem.MolFromSmiles(smiles)
            mol.SetProp("_Name", name)
            for key, value in properties.items():
                mol.SetProp(key, value)
            writer.write(mol)
    return text.getvalue()


RECORDS = (
    ("OCC", "ethanol", {"active": "1", "remark": "two\nlines"}),
    ("CCN", "", {"active": "0"}),
    ("C[C@H](N)C(=O)[O-].[Na+]", "salt", {"active": "1"}),
)


@pytest.mark.parametrize("pack", [False, True])
def test_sdf_files(tmp_path, pack):
    text = sdf(*RECORDS)
    path = tmp_path / ("m.sdf.gz" if pack else "m.sdf")
    path.write_bytes(gzip.compress(text.encode()) if pack else text.encode())
    table = read_graphs(path, target="active", columns=["remark"], atoms="typed")
    assert table.ids == ("ethanol", 1, "salt")
    assert table.y.tolist() == [1, 0, 1]
    assert table.columns["remark"] == ("two\nlines", None, None)
    assert table.smiles[:2] == ("CCO", "CCN")
    for smiles, graph in zip(table.smiles, table.graphs, strict=True):
        own = read_graphs([smiles], atoms="typed").graphs
        assert graph.labels.tolist() == own[0].labels.tolist()  # atoms are in the SMILES' order
    clean = read_graphs(path, standardize="parent", stereo=True, atoms="typed")
    assert [(c.id, c.steps) for c in clean.changes] == [("salt", ("fragment", "charge"))]
    assert any(label.endswith((" R", " S")) for label in clean.graphs.label_values.tolist())
    again = read_graphs(path, like=table.schema)
    assert_same(again.graphs, table.graphs)


def test_bad_records_do_not_touch_the_others(tmp_path):
    good, other = (sdf(record) for record in RECORDS[:2])
    broken = good.replace("M  END", "M  HALF")
    strange = good.replace("  1  2  1  0", "  1  9  1  0")
    path = tmp_path / "m.sdf"
    path.write_text(good + broken + strange + "far too long\n" * 1000 + "$$$$\n" + other)
    with changed(FDGNN_MAX_ROW_BYTES=5000):
        table = read_graphs(path)
    assert table.rows.tolist() == [0, 4]
    reasons = {reject.row: reject.reason for reject in table.rejects}
    assert reasons[1] == "record has no line 'M  END'"
    assert reasons[2] == "mol block is not a molecule that RDKit can read"
    assert reasons[3].startswith("record is too long; ")
    single = tmp_path / "one.mol"
    single.write_text(Chem.MolToMolBlock(Chem.MolFromSmiles("CCO")))
    assert read_graphs(single).smiles == ("CCO",)
    nothing = tmp_path / "none.sdf"
    nothing.write_text("")
    with pytest.raises(DatasetFormatError, match=r"none\.sdf: no rows"):
        read_graphs(nothing)


@pytest.mark.parametrize("suffix", [".sdf.gz", ".smi.gz", ".csv.gz"])
def test_a_packed_file_that_was_cut_off_is_told_by_its_name(tmp_path, suffix):
    path = tmp_path / f"cut{suffix}"
    rows = "\n".join(f"CCO m{i},{i % 7}" for i in range(2000))
    path.write_bytes(gzip.compress(rows.encode(), mtime=0)[:-200])
    with pytest.raises(DatasetFormatError, match=rf"cut{suffix}: cannot be read \(Compressed"):
        read_graphs(path, smiles_column=None if suffix != ".csv.gz" else "CCO m0")


@pytest.mark.parametrize("missing", [None, float("nan"), 5, np.nan])
def test_what_is_missing_in_a_list_of_molecules_is_one_reject(missing):
    pytest.importorskip("rdkit")
    table = read_graphs(["CCO", missing])
    assert len(table.graphs) == 1
    assert [(reject.row, reject.reason) for reject in table.rejects] == [
        (1, "the SMILES is missing")
    ]
    model = FDGNNClassifier(random_state=0).fit(["CCO", "CC", "CCN"] * 4, [0, 1, 1] * 4)
    with pytest.raises(GraphError, match=r"graph 1: .* SMILES"):
        model.predict(["CCO", missing])


def test_texts_in_latin_1_stay_different(tmp_path):
    lines = ["edge_index,y", *(f'"[[0, 1]]",{name}' for name in ("caf\xe9", "caf\xe8", "tea"))]
    (tmp_path / "g.csv").write_bytes("\n".join(lines).encode("latin-1"))
    table = read_graphs(tmp_path / "g.csv", target="y")
    assert table.y.tolist() == ["caf\xe9", "caf\xe8", "tea"]
