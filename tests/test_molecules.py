"""The one way from a molecule to a graph, against asking RDKit for each atom and bond."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fdgnn import (
    Graph,
    GraphBatch,
    GraphClassifier,
    KernelRidge,
    as_batch,
    iter_graphs,
    read_graphs,
)
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.graphs.molecules import (
    ATOM_FEATURES,
    MoleculeReader,
    molecule_batch,
    molecule_schema,
)
from fdgnn.schema import ReadOptions
from strategies import assert_same

Chem = pytest.importorskip("rdkit.Chem")

# Charges, hydrogens, isotopes, radicals, rings, stereo, atom maps, dummies (aromatic, too), dative
# bonds, bonds of other orders, extensions, names, hydrogens as atoms, and atoms without bonds.
MOLECULES = (
    "CCO", "C[N+](=O)[O-]", "c1cc[nH]c1", "N1C=CC=C1", "[13CH4]", "F[C@H](Cl)Br", "C/C=C\\C",
    "[Na+].[Cl-]", "[NH3]->[Cu]", "*C", "*1:c:c:c:c:c1", "*1CCCC1", "[CH3]", "C1CC1C#N",
    "[CH3:7][OH:300]", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "[Fe+2]", "[H][H]", "[H+]", "[2H]OC",
    "[H]/C=C/[H]", "CN(=O)=O", "[Re]$[Re]", "C~C", "CC |$R;$|", "CCO a name", "C", "[se]1cccc1",
    "C" * 300, "CC(C)(C)c1ccc2c(c1)N(C)C(=O)C2", "OB(O)c1ccccc1", "F/C(/F)=C/C", "O=[N+]([O-])C",
    "[H]C#N", "[H]OC", "[H]N([H])c1ccccc1",
)  # fmt: skip
TYPES = {1.0: "single", 1.5: "aromatic", 2.0: "double", 3.0: "triple"}
ELEMENTS = ATOM_FEATURES[: ATOM_FEATURES.index("other element")]


def expected_graph(mol, atoms, use):
    """The graph of a molecule, by loops over its atoms and bonds."""
    bonds = list(mol.GetBonds())
    orders = [bond.GetBondTypeAsDouble() for bond in bonds]
    types = [TYPES.get(order, f"order {order:g}") for order in orders]
    described = [(element if atoms == "element" else label)(atom) for atom in mol.GetAtoms()]
    rich = np.array([numbers(atom) for atom in mol.GetAtoms()], dtype=float)
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
    return Graph(
        np.array(ends, dtype=int).reshape(-1, 2).T,
        mol.GetNumAtoms(),
        labels=None if atoms == "rich" else described,
        features=rich if atoms == "rich" else None,
        weights=np.array(orders, dtype=float) if use == "weights" else None,
        edge_labels=np.array(types, dtype=str) if use == "labels" else None,
    )


def element(atom):
    return atom.GetSymbol()


def label(atom):
    words = [atom.GetSymbol(), str(atom.GetDegree()), f"H{atom.GetTotalNumHs()}"]
    words += [f"{atom.GetFormalCharge():+d}"] if atom.GetFormalCharge() else []
    words += ["aromatic"] if atom.GetIsAromatic() else []
    words += ["ring"] if atom.IsInRing() else []
    return " ".join(words)


def numbers(atom):
    symbol, kind = atom.GetSymbol(), str(atom.GetHybridization()).lower()
    charge, hydrogens = atom.GetFormalCharge(), atom.GetTotalNumHs()
    return [
        *(symbol == each for each in ELEMENTS), symbol not in ELEMENTS,
        charge, hydrogens, atom.GetIsAromatic(), atom.IsInRing(),
        *(kind == each for each in ("sp", "sp2", "sp3")),
    ]  # fmt: skip


def assert_as_expected(molecules, atoms="typed", use="labels"):
    schema = molecule_schema(ReadOptions(atoms=atoms, edge_labels=use))
    reader = MoleculeReader.of(schema)
    found = molecule_batch([reader.read(each) for each in molecules], schema)
    mols = [Chem.MolFromSmiles(each) if isinstance(each, str) else each for each in molecules]
    expected = GraphBatch.from_graphs([expected_graph(mol, atoms, use) for mol in mols])
    assert_same(found, expected)
    for name in ("label_values", "edge_label_values"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("use", ["labels", "weights", "ignore"])
@pytest.mark.parametrize("atoms", ["element", "typed", "rich"])
def test_molecules_are_as_rdkit_lists_their_atoms_and_bonds(atoms, use):
    assert_as_expected(MOLECULES, atoms, use)
    assert_as_expected(["C", "[Na+]"], atoms, use)


@pytest.mark.parametrize("atoms", ["typed", "rich"])
def test_the_order_of_reading_does_not_matter(atoms):
    """Labels that a reader has kept are those of the atoms that it reads next."""
    MoleculeReader.of(molecule_schema(ReadOptions(atoms=atoms)))._kept.clear()
    for molecules in (MOLECULES, MOLECULES[::-1]):
        assert_as_expected(molecules, atoms)


PARTS = st.sampled_from(
    ["C", "N", "O", "S(=O)(=O)", "c1ccc(cc1)", "C1CC1", "[C@H](F)", "[C@@](C)(N)", "/C=C/", "C#C",
     "[N+](C)(C)", "C(=O)", "c1c[nH]c(c1)", "[nH]1cccc1", "C(C(=O)[O-])", "[2H]", "P(=O)(O)", "*"]
)  # fmt: skip


@given(st.lists(PARTS, min_size=1, max_size=6).map("".join), st.sampled_from(["typed", "rich"]))
def test_drawn_molecules_are_as_rdkit_lists_them(smiles, atoms):
    mol = Chem.MolFromSmiles(smiles)
    if mol is not None:
        assert_as_expected([smiles], atoms)
        assert_as_expected([mol], atoms)  # as an object
        return
    with pytest.raises(GraphError, match=r"cannot be parsed|is not a molecule"):
        MoleculeReader(atoms).read(smiles)


def test_mols_are_read_as_they_are():
    edited = Chem.RWMol(Chem.MolFromSmiles("CC.O.N"))
    edited.AddBond(1, 2, Chem.BondType.ZERO)
    edited.AddBond(2, 3, Chem.BondType.HYDROGEN)
    edited = edited.GetMol()
    Chem.SanitizeMol(edited)
    asked = Chem.MolFromSmiles("C=C")
    Chem.GetAdjacencyMatrix(asked)  # which RDKit keeps with the molecule
    query = Chem.MolFromSmarts("[CX4]~[#7+]")
    Chem.SanitizeMol(query)
    renamed = Chem.MolFromSmiles("CO")
    renamed.GetAtomWithIdx(0).SetProp("smilesSymbol", "N")  # how it is written, not what it is
    for atoms in ("typed", "rich"):
        assert_as_expected([edited, asked, query, "NO", renamed], atoms)
    hydrogens = Chem.AddHs(Chem.MolFromSmiles("CO"))
    assert_same(as_batch([hydrogens]), as_batch(["CO"]))
    for mol in (Chem.MolFromSmarts("C~N"), Chem.MolFromSmiles("CC", sanitize=False)):
        with pytest.raises(GraphError, match="RDKit cannot use"):
            MoleculeReader().read(mol)


def test_fit_predict_lists_and_files_read_alike(tmp_path):
    """Also where some rows are invalid, and whether or not a model says how to read."""
    bad = ["C1CC", "", "C(C)(C)(C)(C)C", "c1cccc1"]
    rows = [*MOLECULES[:8], *bad, *MOLECULES[8:]]
    path = tmp_path / "m.csv"
    path.write_text("\n".join(["smiles", *(f'"{row}"' for row in rows)]) + "\n")
    table = read_graphs(path)
    again = read_graphs(path, like=table.schema)
    assert len(table.graphs) == len(MOLECULES)
    assert_same(table.graphs, as_batch(list(MOLECULES)))
    assert_same(again.graphs, table.graphs)
    assert again.rejects == table.rejects
    assert [reject.row for reject in table.rejects] == [8, 9, 10, 11]
    chunks = list(iter_graphs(path, like=table.schema, chunk_size=7))
    assert sum(len(each.graphs) for each in chunks) == len(MOLECULES)
    assert [r for each in chunks for r in each.rejects] == list(table.rejects)
    model = GraphClassifier(readout=KernelRidge(alpha=1.0)).fit(list(MOLECULES), [0, 1, 1] * 12)
    assert np.array_equal(model.predict(list(MOLECULES)), model.predict(table.graphs))


def test_rows_keep_descriptors_targets_and_reasons(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("smiles,y,w\nCCO,1,0.5\nC1CC,0,1\nCCN,x,2\nc1ccccc1,0,many\nCC,1,\n")
    schema = replace(molecule_schema(ReadOptions()), descriptors=("w",), smiles_column="smiles")
    (table,) = iter_graphs(path, like=schema, target="y", numeric=True)
    assert [reject.row for reject in table.rejects] == [1, 2, 3]
    assert table.rows.tolist() == [0, 4]
    assert table.y.tolist() == [1, 1]
    assert table.graphs[0].descriptors == {"w": 0.5}
    assert table.graphs[1].descriptors == {"w": None}
    path.write_text("smiles,y,w\nCCO,1,many\n")
    (nothing,) = iter_graphs(path, like=schema, target="y", numeric=True)
    assert nothing.graphs is None
    assert "expected a number" in nothing.rejects[0].reason


def test_choices_that_contradict_each_other_are_refused(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("smiles\nCCO\n")
    with pytest.raises(DatasetFormatError, match="the vertices carry labels and no features"):
        read_graphs(path, vertex="features")
    with pytest.raises(DatasetFormatError, match="the vertices carry features and no labels"):
        read_graphs(path, vertex="labels", atoms="rich")
    plain = read_graphs(path, vertex="none")
    assert plain.graphs.label_values is plain.graphs.features is None
    assert read_graphs(path, directed=True).graphs.directed
    path.write_text("smiles\nC\n")
    with pytest.raises(DatasetFormatError, match="the edges have no data to use as"):
        read_graphs(path, edge_labels="weights")


def test_a_reader_goes_to_other_processes():
    reader = MoleculeReader("rich", "orders", "parent", True)
    smiles = "[Na+].C[C@H](N)C(=O)[O-]"
    found, again = reader.read(smiles), pickle.loads(pickle.dumps(reader)).read(smiles)
    assert (again.atoms, again.smiles.text) == (found.atoms, found.smiles.text)


def test_stereo_marks_change_no_labels_that_do_not_tell_stereo():
    marked = ["C[C@H](N)C(=O)O", "F/C=C\\F", "C[C@@]1(O)CCCC/C1=C/C", "F[P@@](Cl)Br", "[H]/C=C/C"]
    assert_as_expected(marked, "typed")
    assert_as_expected(marked, "rich")
