"""Molecules that a kernel reads from RDKit's binary form have the graphs that reading them has."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pytest
from msgspec.structs import replace

from fdgnn import GraphBatch, iter_graphs
from fdgnn.exceptions import GraphError
from fdgnn.graphs import packed
from fdgnn.graphs.molecules import _PANEL, MoleculeReader, molecule_reading
from fdgnn.graphs.packed import PackedMolecule, unpack
from fdgnn.graphs.raw import join
from fdgnn.kernels import unpack_molecules

Chem = pytest.importorskip("rdkit.Chem")

MOLECULES = (*_PANEL, "CC(=O)Nc1ccc(O)cc1", "C[C@@H](N)C(=O)O", "[2H]OC", "[NH4+]", "C" * 200)
KINDS = {"labels": "text", "weights": "number", "vertices": "number", "ignore": None}


def both_ways(reading, molecules=MOLECULES):
    reader = MoleculeReader.of(reading)
    fast = join({i: reader.pack(each) for i, each in enumerate(molecules)}, reading)
    return fast, join({i: reader.read(each) for i, each in enumerate(molecules)}, reading)


def assert_identical(fast: GraphBatch, slow: GraphBatch):
    for field in fields(GraphBatch):
        a, b = getattr(fast, field.name), getattr(slow, field.name)
        assert np.array_equal(a, b), field.name
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None), field.name


@pytest.mark.parametrize("use", KINDS)
@pytest.mark.parametrize("atoms", ["element", "typed", "rich"])
def test_graphs_are_identical(atoms, use):
    width = None if use == "ignore" else 1
    reading = replace(molecule_reading(atoms), arc_labels=use, arc_kind=KINDS[use], arc_width=width)
    fast, slow = both_ways(reading)
    assert_identical(fast.graphs, slow.graphs)
    assert fast.faults == slow.faults == {}
    reader = MoleculeReader.of(reading)
    assert unpack([reader.pack(each) for each in MOLECULES], reading) is not None


def test_a_molecule_without_bonds_and_a_standardized_one():
    assert_identical(*(each.graphs for each in both_ways(molecule_reading(), ["C", "[Na+]"])))
    reading = molecule_reading(standardize="parent")
    fast, slow = both_ways(reading, ["CC(=O)[O-].[Na+]", "CCO"])
    assert_identical(fast.graphs, slow.graphs)


@pytest.mark.parametrize("unusual", ["C" * 300, "[Re]$[Re]", "C~C"])
def test_what_the_kernel_does_not_know_is_read_atom_by_atom(unusual):
    reading, molecules = molecule_reading(), ["CCO", unusual]
    reader = MoleculeReader.of(reading)
    assert unpack([reader.pack(each) for each in molecules], reading) is None
    fast, slow = both_ways(reading, molecules)
    assert_identical(fast.graphs, slow.graphs)


def test_an_rdkit_that_writes_otherwise_is_not_trusted(monkeypatch):
    from fdgnn.graphs import molecules

    assert molecules._kernel_agrees()  # which is kept, also for the tests after this one
    monkeypatch.setattr(packed, "_RING", (40, 1))
    packed._label.cache_clear()
    agrees = molecules._kernel_agrees.__wrapped__()
    packed._label.cache_clear()
    assert not agrees


def test_damaged_bytes_are_never_read_past_their_end():
    rng = random.Random(0)
    whole = [Chem.MolFromSmiles(each).ToBinary() for each in _PANEL]
    for _ in range(300):
        damaged = bytearray(rng.choice(whole))
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        del damaged[rng.randrange(20, len(damaged) + 1) :]
        found = unpack_molecules(
            np.frombuffer(bytes(damaged), dtype=np.uint8), np.array([0, len(damaged)])
        )
        n_atoms, atoms, degrees, neighbors, bonds = found
        assert len(atoms) == len(degrees) == max(int(n_atoms[0]), 0)
        assert len(neighbors) == len(bonds) == degrees.sum()
        assert (neighbors < max(len(atoms), 1)).all()


def test_rows_keep_descriptors_targets_and_reasons(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("smiles,y,w\nCCO,1,0.5\nC1CC,0,1\nCCN,x,2\nc1ccccc1,0,many\nCC,1,\n")
    reading = replace(molecule_reading(), descriptors=(("w", "number"),), smiles_column="smiles")
    tables = iter_graphs(path, like=reading, target="y", numeric=True)
    (packed,) = tables.reader.file.reader.many([{"smiles": "C"}])
    assert isinstance(packed, PackedMolecule)
    (table,) = tables
    assert [reject.row for reject in table.rejects] == [1, 2, 3]
    assert table.rows.tolist() == [0, 4]
    assert table.y.tolist() == [1, 1]
    assert table.graphs[0].descriptors == {"w": 0.5}
    assert np.isnan(table.graphs[1].descriptors["w"] or np.nan)


def test_many_at_once_are_read_as_one_by_one():
    reader = MoleculeReader("typed")
    items = ["CCO", " CN", "", "  ", "C1CC", None, 3, Chem.MolFromSmiles("CC"), "C(C)(C)(C)(C)C"]

    def one(item):
        try:
            return reader.pack(item)
        except GraphError as error:
            return error

    for fast, slow in zip(reader.pack_all(items), map(one, items), strict=True):
        assert type(fast) is type(slow)
        assert str(fast) == str(slow)


@pytest.mark.parametrize("atoms", ["typed", "rich"])
def test_molecules_without_stereo_are_read_as_all_others(atoms):
    texts = [
        "[2H]C([2H])O", "[3H]c1ccccc1", "[4H]C", "[H]C#N", "[H+].[Cl-]", "[H][H]", "[H]/C=C/[H]",
        "C[N+](C)(C)CC(=O)[O-]", "N1C=CC=C1", "[nH]1cccc1", "C[C@H](N)C(=O)O", "F/C=C\\F",
        "CC(C)(C)c1ccc2c(c1)N(C)C(=O)C2", "[NH3]->[Cu]", "O=S(=O)(N)c1ccc(Cl)cc1", "CN(=O)=O",
        "c1ccc2[nH]c3ccccc3c2c1", "C.C", "CC |$R;$|", "CCO name", "[13CH3][12CH3]", "OB(O)c1ccccc1",
    ]  # fmt: skip
    reader, reading = MoleculeReader(atoms), molecule_reading(atoms)
    with reader.quietly():
        fast = join(dict(enumerate(reader.pack_all(texts))), reading).graphs
        slow = join(dict(enumerate(map(reader.read, texts))), reading).graphs
    for field in fields(GraphBatch):
        np.testing.assert_array_equal(getattr(fast, field.name), getattr(slow, field.name))
