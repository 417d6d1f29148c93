"""Graphs as a page holds them: arrays end to end, molecules with their atoms and places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.exceptions import GraphError, PlaygroundError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.molecules import BONDS, MoleculeReader
from fdgnn.html.playground.packing import smallest
from fdgnn.html.playground.records import MoleculeRules, PageGraphs
from fdgnn.html.words import clipped
from fdgnn.schema import InputSchema

MOST_GRAPHS = 600  # of a page
MOST_VERTICES = 15_000  # of all graphs of a page together
_LARGEST_LABEL = 2**53  # whole numbers beyond are not exact in JavaScript


def chosen_graphs(graphs: GraphBatch) -> Ints:
    """Give the positions of the graphs that a page holds: all, or a random part of them."""
    sizes = np.diff(graphs.vertex_offsets)
    order = np.arange(len(graphs))
    if len(graphs) > MOST_GRAPHS or sizes.sum() > MOST_VERTICES:
        order = np.random.default_rng(0).permutation(len(graphs))
    fits = (np.cumsum(sizes[order]) <= MOST_VERTICES)[:MOST_GRAPHS]
    chosen = np.sort(order[: len(fits)][fits])
    if len(chosen) == 0:
        raise PlaygroundError(
            f"the graphs are too large for a page, which holds {MOST_VERTICES} vertices"
        )
    return chosen


def page_graphs(
    graphs: GraphBatch, ids: Sequence[Any], n_all: int
) -> tuple[PageGraphs, dict[str, Array]]:
    """Describe the graphs of a page; its arrays have numbers of labels, and edges once."""
    targets = np.repeat(np.arange(graphs.n_vertices), np.diff(graphs.indptr))
    starts = graphs.vertex_offsets[graphs.graph_of_vertex[targets]]
    sources, ends = graphs.neighbors.astype(np.int64), targets - starts
    once = np.ones(len(ends), dtype=bool) if graphs.directed else sources <= ends
    graph_of_edge = graphs.graph_of_vertex[targets[once]]
    arrays = {
        "graphs.sizes": smallest(np.diff(graphs.vertex_offsets)),
        "graphs.n_edges": smallest(np.bincount(graph_of_edge, minlength=len(graphs))),
        "graphs.sources": smallest(sources[once]),
        "graphs.ends": smallest(ends[once]),
    }
    if graphs.label_codes is not None:
        arrays["graphs.labels"] = smallest(graphs.label_codes)
    if graphs.edge_label_codes is not None:
        arrays["graphs.edge_labels"] = smallest(graphs.edge_label_codes[once])
    if graphs.weights is not None:
        arrays["graphs.weights"] = graphs.weights[once]
    if graphs.features is not None:
        arrays["graphs.features"] = graphs.features
    record = PageGraphs(
        ids=[clipped(each) for each in ids],
        directed=graphs.directed,
        labels=_values(graphs.label_values),
        edge_labels=_values(graphs.edge_label_values),
        n_features=None if graphs.features is None else int(graphs.features.shape[1]),
        weighted=graphs.weights is not None,
        n_all=n_all,
    )
    return record, arrays


def _values(values: Array | None) -> list[Any] | None:
    if values is None:
        return None
    if values.dtype.kind in "iu" and np.abs(values.astype(np.float64)).max() >= _LARGEST_LABEL:
        raise PlaygroundError("the graphs have labels beyond 2^53, which a page cannot hold")
    found: list[Any] = values.tolist()
    return found


# ---------------------------------------------------------------------- molecules


def molecule_rules(schema: InputSchema | None) -> MoleculeRules | None:
    """Say how molecules are read; None if the graphs are none, or bonds are vertices of theirs."""
    if schema is None or schema.atoms is None:
        return None
    return MoleculeRules(
        atoms=schema.atoms,
        bonds=BONDS[schema.edge_labels],
        stereo=schema.stereo,
        standardize=schema.standardize,
    )


def atom_arrays(
    smiles: Sequence[str | None], schema: InputSchema, graphs: GraphBatch
) -> tuple[list[str], dict[str, Array]]:
    """Elements, and arrays of the atoms of all graphs: what they are, and where they lie."""
    reader = MoleculeReader.of(schema)
    sizes = np.diff(graphs.vertex_offsets).tolist()
    found = [_atoms(reader, *pair) for pair in zip(smiles, sizes, strict=True)]
    symbols = sorted({symbol for each in found for symbol in each.symbols})
    number = {symbol: i for i, symbol in enumerate(symbols)}
    bonds = np.array([bond for each in found for bond in each.bonds], dtype=np.int64).reshape(-1, 3)
    return symbols, {
        "atoms.elements": smallest(np.array([number[s] for each in found for s in each.symbols])),
        "atoms.charges": np.concatenate([each.charges for each in found]).astype(np.int8),
        "atoms.hydrogens": np.concatenate([each.hydrogens for each in found]).astype(np.int8),
        "atoms.fixed": np.concatenate([each.fixed for each in found]).astype(np.uint8),
        "atoms.aromatic": np.concatenate([each.aromatic for each in found]).astype(np.uint8),
        "atoms.places": np.concatenate([each.places for each in found]).astype(np.int16),
        "atoms.n_bonds": smallest(np.array([len(each.bonds) for each in found])),
        "atoms.bonds": smallest(bonds),
    }


class _Atoms:
    """The atoms and bonds of one molecule."""

    def __init__(self, mol: Any) -> None:
        from rdkit.Chem import rdDepictor

        atoms = list(mol.GetAtoms())
        self.symbols = [atom.GetSymbol() for atom in atoms]
        self.charges = np.array([atom.GetFormalCharge() for atom in atoms])
        self.hydrogens = np.array([atom.GetTotalNumHs() for atom in atoms])
        self.fixed = np.array([atom.GetNoImplicit() for atom in atoms])
        self.aromatic = np.array([atom.GetIsAromatic() for atom in atoms])
        # Twice the order is a whole number, 3 for aromatic bonds.
        self.bonds = [
            (b.GetBeginAtomIdx(), b.GetEndAtomIdx(), round(2 * b.GetBondTypeAsDouble()))
            for b in mol.GetBonds()
        ]
        rdDepictor.Compute2DCoords(mol)
        self.places = _on_canvas(np.array(mol.GetConformer().GetPositions())[:, :2])


def _atoms(reader: MoleculeReader, smiles: str | None, n_vertices: int) -> _Atoms:
    if smiles is None:
        raise PlaygroundError("a molecule comes without its SMILES; give one for each graph")
    try:
        mol = reader.molecule(smiles).mol
    except GraphError as error:
        raise PlaygroundError(f"a SMILES cannot be read: {error.reason}") from None
    if mol.GetNumAtoms() != n_vertices:
        raise PlaygroundError(
            f"the SMILES {smiles[:60]!r} has {mol.GetNumAtoms()} atoms, but its graph has "
            f"{n_vertices} vertices"
        )
    return _Atoms(mol)


def _on_canvas(places: Floats) -> Ints:
    """Places as whole numbers, y downward; 1000 is about the length of a bond."""
    turned = (places - places.mean(axis=0)) * [1.0, -1.0] * (1000 / 1.5)
    return np.asarray(np.clip(turned.round(), -32_000, 32_000), dtype=np.int64)
