"""Tables with SMILES, and CSV files as people have them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fdgnn import (
    Graph,
    GraphBatch,
    GraphClassifier,
    KernelRidge,
    iter_graphs,
    model_info,
    read_graphs,
    save_model,
)
from fdgnn.cli.inspection import model_in_words
from fdgnn.datasets.molecule_files import smiles_column
from fdgnn.exceptions import DatasetFormatError
from fdgnn.graphs.molecules import ATOM_FEATURES, molecule_schema
from fdgnn.schema import ReadOptions
from strategies import assert_same

rdkit = pytest.importorskip("rdkit")


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def shipped_molecules():
    """Molecules with their polar surface, inside RDKit's wheel."""
    from rdkit import RDConfig

    path = Path(RDConfig.RDDataDir) / "NCI" / "first_200.tpsa.csv"
    lines = path.read_text().splitlines()
    return [line.split(",") for line in lines if not line.startswith("#")]


# ---------------------------------------------------------------------- molecules


def test_atoms_are_labels_and_bonds_edges(tmp_path):
    path = write(tmp_path / "m.csv", "id,smiles,y", "a,CC(=O)[O-],1", "b,c1ccncc1.[Na+],0")
    table = read_graphs(path, target="y", id_column="id", atoms="element")
    ring = [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]
    expected = GraphBatch.from_graphs(
        [
            Graph(
                [[0, 1, 1], [1, 2, 3]],
                labels=["C", "C", "O", "O"],
                edge_labels=["single", "double", "single"],
            ),
            Graph(ring, labels=["C", "C", "C", "N", "C", "C", "Na"], edge_labels=["aromatic"] * 6),
        ]
    )
    assert_same(table.graphs, expected)
    assert (table.ids, table.y.tolist()) == (("a", "b"), [1, 0])


def test_bond_orders(tmp_path):
    path = write(tmp_path / "m.csv", "smiles", "C=O", "c1ccccc1", "C#N", "[NH3]->[Cu]")
    graphs = read_graphs(path, edge_labels="weights").graphs
    assert [set(graph.weights) for graph in graphs] == [{2}, {1.5}, {3}, {1}]
    assert read_graphs(path).graphs.weights is None


def test_bond_types(tmp_path):
    smiles = ["C", "C=O", "c1ccccc1", "C#N", "[NH3]->[Cu]", "[Re]$[Re]"]
    path = write(tmp_path / "m.csv", "smiles", *smiles)
    for how in ("auto", "labels"):
        table = read_graphs(path, edge_labels=how)
        types = [set(graph.edge_labels.tolist()) for graph in table.graphs]
        expected = [set(), {"double"}, {"aromatic"}, {"triple"}, {"single"}, {"order 4"}]
        assert (types, table.graphs.weights) == (expected, None)
    assert (table.schema.edge_kind, table.schema.edge_attribute) == ("text", "bonds")
    for how in ("weights", "ignore"):
        assert read_graphs(path, edge_labels=how).graphs.edge_labels is None
    new = write(tmp_path / "new.csv", "smiles", "O", "CC#C")
    graphs = read_graphs(new, like=table.schema).graphs
    assert graphs.edge_label_values.tolist() == ["single", "triple"]
    lonely = read_graphs(write(tmp_path / "o.csv", "smiles", "O", "C"))  # no bonds, no types
    assert (len(lonely.graphs), lonely.schema.edge_labels) == (2, "ignore")


def test_rich_atoms(tmp_path):
    path = write(tmp_path / "m.csv", "smiles", "c1cc[nH]c1", "C[N+](C)(C)C", "C#[Pt]")
    graphs = read_graphs(path, atoms="rich").graphs
    column = {name: graphs.features[:, i] for i, name in enumerate(ATOM_FEATURES)}
    assert graphs.features.shape == (12, 21)
    assert column["N"].nonzero()[0].tolist() == [3, 6]
    assert column["aromatic"].nonzero()[0].tolist() == [0, 1, 2, 3, 4]
    assert column["in a ring"].tolist() == column["aromatic"].tolist()
    assert column["hydrogens"].tolist() == [1, 1, 1, 1, 1, 3, 0, 3, 3, 3, 1, 0]
    assert column["formal charge"].nonzero()[0].tolist() == [6]
    assert column["other element"].nonzero()[0].tolist() == [11]
    assert column["sp2"].nonzero()[0].tolist() == [0, 1, 2, 3, 4]
    assert column["sp3"][:11].nonzero()[0].tolist() == [5, 6, 7, 8, 9]


def test_bad_molecules_are_told_of_and_rdkit_is_silent(tmp_path, capfd):
    lines = ["CCO,1", "C1CC,0", "CF(C)C,1", ",1", "c1cccc1,0", "CCN,", "CCN,0", "C,1,2", "CCC,0"]
    path = write(tmp_path / "m.csv", "smiles,y", *lines)
    table = read_graphs(path, target="y")
    assert table.rows.tolist() == [0, 6, 8]
    assert table.y.tolist() == [1, 0, 0]
    reasons = {reject.row: reject.reason for reject in table.rejects}
    assert reasons == {
        1: "the SMILES 'C1CC' cannot be parsed",
        2: "the SMILES 'CF(C)C' is not a molecule: "
        "Explicit valence for atom # 1 F, 3, is greater than permitted",
        3: "the SMILES is missing",
        4: "the SMILES 'c1cccc1' is not a molecule: "
        "Can't kekulize mol.  Unkekulized atoms: 0 1 2 3 4",
        5: "the target is missing",
        7: "3 fields, but the header has 2",
    }
    assert capfd.readouterr() == ("", "")
    with pytest.raises(DatasetFormatError, match=r"m\.csv, row 1: the SMILES 'C1CC' cannot"):
        read_graphs(path, strict=True)


def test_the_molecules_that_come_with_rdkit(tmp_path):
    """With three broken rows added, everybody else is as without them."""
    rows = shipped_molecules()
    clean = write(tmp_path / "clean.csv", "smiles,tpsa", *(",".join(row) for row in rows))
    broken = [*rows[:50], ("C1CC", "1"), *rows[50:90], ("CCO", ""), *rows[90:], ("", "3")]
    dirty = write(tmp_path / "dirty.csv", "smiles,tpsa", *(",".join(row) for row in broken))
    expected, found = (read_graphs(p, target="tpsa") for p in (clean, dirty))
    assert len(expected.graphs) == len(rows) == 200
    assert_same(found.graphs, expected.graphs)
    assert found.y.tolist() == expected.y.tolist() == [float(y) for _, y in rows]
    assert [reject.row for reject in found.rejects] == [50, 91, 202]


def test_atoms_and_bonds_are_those_rdkit_lists(tmp_path):
    """Against a plain loop over atoms and bonds."""
    from rdkit import Chem

    rows = shipped_molecules()
    path = write(tmp_path / "m.csv", "smiles,tpsa", *(",".join(row) for row in rows))
    expected = []
    for smiles, _ in rows:
        molecule = Chem.MolFromSmiles(smiles)
        bonds = list(molecule.GetBonds())
        ends = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds]
        expected.append(
            Graph(
                np.array(ends, dtype=int).reshape(-1, 2).T,
                labels=[atom.GetSymbol() for atom in molecule.GetAtoms()],
                weights=[bond.GetBondTypeAsDouble() for bond in bonds],
            )
        )
    found = read_graphs(path, edge_labels="weights", atoms="element").graphs
    assert_same(found, GraphBatch.from_graphs(expected))


def test_molecules_in_parquet_and_json_lines(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"SMILES": ["CCO", None, "CC"], "n": [1, 2, 3]}), tmp_path / "m.parquet"
    )
    table = read_graphs(tmp_path / "m.parquet", target="n")
    assert (table.rows.tolist(), table.y.tolist()) == ([0, 2], [1, 3])
    path = write(tmp_path / "m.jsonl", '{"smiles": "CCO"}', '{"smiles": 3}', '{"smiles": "CC"}')
    assert read_graphs(path).rows.tolist() == [0, 2]


def test_which_column_has_the_smiles(tmp_path):
    assert smiles_column(["id", "Smiles", "canonical_smiles"]) == "Smiles"
    assert smiles_column(["id", "canonical_smiles"]) == "canonical_smiles"
    assert smiles_column(["a_smiles", "b_smiles"]) is None
    path = write(tmp_path / "two.csv", "a_smiles,b_smiles,y", "CCO,CC,1")
    with pytest.raises(DatasetFormatError, match="several columns may have SMILES, a_smiles and b"):
        read_graphs(path)
    path = write(tmp_path / "m.csv", "molecule,y", "CCO,1")
    with pytest.raises(
        DatasetFormatError,
        match=r"molecule, y; name .* by `smiles_col",
    ):
        read_graphs(path)
    assert read_graphs(path, smiles_column="molecule").graphs.n_vertices == 3
    with pytest.raises(DatasetFormatError, match="neither an edge_index nor a column 'mol'"):
        read_graphs(path, smiles_column="mol")


# ---------------------------------------------------------------------- CSV


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_quotes_and_marks(tmp_path, delimiter):
    path = tmp_path / "m.csv"
    rows = [["name", "smiles", "y"], ["a, b; c|d\te", "CCO", "1"], ["two\nlines", "CC", "0"]]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    table = read_graphs(path, target="y", id_column="name")
    assert table.ids == ("a, b; c|d\te", "two\nlines")
    assert table.y.tolist() == [1, 0]


def test_a_stray_quote_does_not_swallow_the_rest(tmp_path):
    lines = ['a,"CC,1', "b,CCC,0", '5" pipe,CCO,1', '"c,CN,1', "d,CO,0"]
    path = write(tmp_path / "m.csv", "name,smiles,y", *lines)
    table = read_graphs(path, target="y", id_column="name")
    assert table.rows.tolist() == [1, 2, 4]
    assert [table.ids[i] for i in table.rows] == ["b", '5" pipe', "d"]
    assert table.n_rows == 5


def test_foreign_bytes_in_another_column_do_not_matter(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes(b"name,smiles\r\ncaf\xe9,CC\r\nb,CO\r\n")
    assert read_graphs(path).rows.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("m.csv", ["", "name,smiles", "a,CC", "", "b,no molecule", " ", "\r", "c,CO", "", ""]),
        ("m.smi", ["", "CC a", "", "?? b", " ", "\r", "CO c", "", ""]),
        ("m.jsonl", ["", *(json.dumps({"smiles": s}) if s else "" for s in
                           ("CC", "", "no molecule", "", "", "CO", "", ""))]),
    ],
)  # fmt: skip
def test_a_blank_line_is_a_bad_row_and_the_others_keep_their_numbers(name, lines, tmp_path):
    table = read_graphs(write(tmp_path / name, *lines))
    assert table.n_rows == 6  # those at the ends of a file do not count
    assert table.rows.tolist() == [0, 5]
    assert [each.row for each in table.rejects] == [1, 2, 3, 4]
    assert [each.row for each in table.rejects if "blank" in each.reason] == [1, 3, 4]


@pytest.mark.parametrize("byte", [b"\xe9", "\u00e9".encode(), b"\x01", "\u200b".encode(), b"\xff"])
def test_a_smiles_with_a_foreign_byte_at_an_end_is_a_bad_row(byte, tmp_path):
    """RDKit takes such bytes off, and reads the rest."""
    path = tmp_path / "m.csv"
    path.write_bytes(b"smiles\nCCO" + byte + b"\n" + byte + b"CCO\nCCO\n")
    for like in (None, molecule_schema(ReadOptions(atoms="element"))):  # each by its own way
        table = read_graphs(path, like=like)
        assert table.rows.tolist() == [2]
        assert all("which no SMILES has" in each.reason for each in table.rejects)


def test_blanks_around_a_smiles_and_a_name_after_it_are_no_fault():
    given = [" CCO", "CCO\u00a0", "CCO caf\u00e9", "CCO\tname", "CCO"]
    graphs = read_graphs(given).graphs
    assert len(graphs) == 5
    assert graphs.n_vertices == 15


def test_a_quoted_field_may_have_blank_lines(tmp_path):
    lines = ['"first', "", 'third",CC', "b,CO"]
    table = read_graphs(write(tmp_path / "m.csv", "note,smiles", *lines), columns=["note"])
    assert table.columns["note"] == ("first\n\nthird", "b")


# ---------------------------------------------------------------------- further columns


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_further_columns_are_kept_beside_the_good_rows(suffix, tmp_path):
    rows = [
        {"smiles": "CC", "group": "a", "mass": 30.5},
        {"smiles": "no molecule", "group": "b", "mass": 1.0},
        {"smiles": "CO", "group": None, "mass": 32.0},
    ]
    path = tmp_path / f"table.{suffix}"
    if suffix == "csv":
        path.write_text("smiles,group,mass\nCC,a,30.5\nno molecule,b,1.0\nCO,,32.0\n")
    elif suffix == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    table = read_graphs(path, columns=["mass", "group"])
    assert list(table.columns) == ["mass", "group"]
    assert [float(value) for value in table.columns["mass"]] == [30.5, 32.0]
    assert [value or None for value in table.columns["group"]] == ["a", None]
    assert read_graphs(path).columns == {}
    chunks = list(iter_graphs(path, columns=("group",), chunk_size=2))
    assert [chunk.columns["group"][0] or None for chunk in chunks] == ["a", None]
    with pytest.raises(DatasetFormatError, match=r"no column 'mas' for `columns`; did you mean"):
        read_graphs(path, columns=["mas"])


# ---------------------------------------------------------------------- clean molecules


def test_standardized_molecules_are_those_that_one_would_draw(tmp_path):
    """A salt, its acid and its charged form are one graph; what was changed is listed."""
    lines = ["a,CC(=O)[O-].[Na+]", "b,CC(=O)O", "c,CC(=O)[O-]", "d,C[N+](C)(C)C", "e,c1ccccc1.CCO"]
    path = write(tmp_path / "m.csv", "name,smiles", *lines)
    table = read_graphs(path, id_column="name", standardize="parent", atoms="typed")
    plain = write(tmp_path / "p.csv", "smiles", *["CC(=O)O"] * 3, "C[N+](C)(C)C", "c1ccccc1")
    assert_same(table.graphs, read_graphs(plain, atoms="typed").graphs)
    assert table.smiles == ("CC(=O)O", "CC(=O)O", "CC(=O)O", "C[N+](C)(C)C", "c1ccccc1")
    found = [(c.row, c.id, c.before, c.after, c.steps) for c in table.changes]
    assert found == [
        (0, "a", "CC(=O)[O-].[Na+]", "CC(=O)O", ("fragment", "charge")),
        (2, "c", "CC(=O)[O-]", "CC(=O)O", ("charge",)),
        (4, "e", "c1ccccc1.CCO", "c1ccccc1", ("fragment",)),
    ]
    assert (table.schema.standardize, table.graphs.schema.standardize) == ("parent", "parent")
    assert read_graphs(path).changes == ()


def test_tautomers_are_one_graph_only_if_asked_for(tmp_path):
    path = write(tmp_path / "m.csv", "smiles", "Oc1ccccn1", "O=c1cccc[nH]1")
    alone, same = (
        read_graphs(path, standardize=how, atoms="typed") for how in ("parent", "tautomer")
    )
    assert alone.graphs.n_distinct_graphs == 2
    assert same.graphs.n_distinct_graphs == 1
    assert [change.steps for change in same.changes] == [("tautomer",)]


def test_stereo_tells_mirror_images_and_sides_however_they_are_written(tmp_path):
    pairs = [
        ("C[C@H](N)C(=O)O", "OC(=O)[C@@H](N)C"),  # twice the same
        ("C[C@@H](N)C(=O)O", "F/C=C/F"),
        ("C(\\F)=C/F", "F/C=C\\F"),  # trans as well, and cis
    ]
    path = write(tmp_path / "m.csv", "smiles", *(s for pair in pairs for s in pair))
    for atoms in ("element", "typed", "rich"):
        graphs = read_graphs(path, stereo=True, atoms=atoms).graphs
        trans, again, cis = graphs[3:]
        signature = graphs.coloring.signatures
        assert signature[0] == signature[1] != signature[2]
        assert set(trans.edge_labels) == set(again.edge_labels) == {"single", "double E"}
        assert set(cis.edge_labels) == {"single", "double Z"}
        flat = read_graphs(path, atoms=atoms).graphs
        assert flat.coloring.signatures[0] == flat.coloring.signatures[2]
        assert set(flat.edge_label_values.tolist()) == {"single", "double"}
    assert graphs.features.shape[1] == len(ATOM_FEATURES) + 2
    labels = read_graphs(path, stereo=True, atoms="typed").graphs.label_values.tolist()
    assert {"C 3 H1 R", "C 3 H1 S"} < set(labels)


def test_a_reading_keeps_how_molecules_were_cleaned(tmp_path):
    path = write(tmp_path / "m.csv", "smiles", "C[C@H](N)C(=O)[O-]", "CC[O-].[Na+]")
    first = read_graphs(path, standardize="parent", stereo=True, atoms="typed")
    again = read_graphs(path, like=first.schema)
    assert_same(again.graphs, first.graphs)
    assert (again.schema, again.changes) == (first.schema, first.changes)
    model = GraphClassifier(readout=KernelRidge(alpha=1.0)).fit(first.graphs, [0, 1])
    save_model(model, tmp_path / "m.fdgnn")
    told = model_in_words(model_info(tmp_path / "m.fdgnn"))["read from"]
    assert told.endswith("standardized, largest fragment; stereo distinguished")
    with pytest.raises(ValueError, match=r"`standardize` is 'tautomer', but .* leave .* out"):
        read_graphs(path, like=first.schema, standardize="tautomer")
    with pytest.raises(ValueError, match="`stereo` is False, but"):
        read_graphs(path, like=first.schema, stereo=False)
    with pytest.raises(ValueError, match="standardize='salt': expected one of parent, tautomer"):
        read_graphs(path, standardize="salt")
    table = write(tmp_path / "g.jsonl", json.dumps({"edge_index": [[0], [1]]}))
    with pytest.raises(DatasetFormatError, match=r"g\.jsonl: `stereo` is for molecules"):
        read_graphs(table, stereo=True)


def test_two_columns_of_one_name_are_refused_if_they_are_used(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("smiles,active,note,note,active\nCCO,0,a,b,1\nCCN,1,a,b,0\n")
    with pytest.raises(DatasetFormatError, match="there are 2 columns called 'active'"):
        read_graphs(path, target="active")
    assert len(read_graphs(path).graphs) == 2
