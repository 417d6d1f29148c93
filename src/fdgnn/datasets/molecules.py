"""Molecules written as SMILES: atoms are vertices, bonds are edges, hydrogens stay implicit.

Arcs carry the bonds' types, as text, or their orders: 1, 1.5 if aromatic, 2, 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.datasets.layout import RawGraph
from fdgnn.exceptions import GraphError
from fdgnn.extras import require

ELEMENTS = {
    "H": 1, "B": 5, "C": 6, "N": 7, "O": 8, "F": 9, "Si": 14, "P": 15, "S": 16, "Cl": 17,
    "Se": 34, "Br": 35, "I": 53,
}  # fmt: skip
BOND_TYPES = {1.0: "single", 1.5: "aromatic", 2.0: "double", 3.0: "triple"}
HYBRIDIZATIONS = {"sp": 2, "sp2": 3, "sp3": 4}  # as RDKit numbers them
ATOM_FEATURES: tuple[str, ...] = (
    *ELEMENTS, "other element", "formal charge", "hydrogens", "aromatic", "in a ring",
    *HYBRIDIZATIONS,
)  # fmt: skip


def smiles_column(columns: Sequence[str]) -> str | None:
    """Find the column with SMILES: "smiles" in any case, or the only one with that word in it."""
    exact = [c for c in columns if c.lower() in ("smiles", "smi")]
    alike = exact or [c for c in columns if "smiles" in c.lower()]
    return alike[0] if len(alike) == 1 else None


def molecule_reader(
    column: str,
    atoms: str = "element",
    bonds: Literal["types", "orders"] | None = "types",
) -> Callable[[Mapping[str, Any]], RawGraph]:
    """Make a function from a row to its molecule; it raises `GraphError` on a bad row.

    Parameters
    ----------
    column : str
        The column with the SMILES.
    atoms : {"element", "typed", "rich"}
        What vertices carry: the element's symbol, as a label; a label with all that
        `_types` puts in; or the numbers `ATOM_FEATURES`.
    bonds : {"types", "orders"} or None
        What arcs carry: "single", "double", "triple" or "aromatic"; 1, 2, 3 or 1.5; or nothing.
        A bond of another order x has the type "order x". A dative bond is a single one.
    """
    Chem = require("rdkit.Chem", "chem", "SMILES")
    quiet = require("rdkit.rdBase", "chem", "SMILES").BlockLogs
    describe = {"element": _symbols, "typed": _types, "rich": _features}[atoms]

    def read(row: Mapping[str, Any]) -> RawGraph:
        with quiet():
            molecule = _parsed(Chem, row.get(column))
        # RDKit stores matrices with the molecule: the second one needs a name of its own.
        adjacency = Chem.GetAdjacencyMatrix(molecule)
        edges = np.array(np.nonzero(adjacency))
        carried: Array | None = None
        if bonds is not None:
            matrix = Chem.GetAdjacencyMatrix(molecule, useBO=True, prefix="order")
            # A dative bond counts at one end only.
            carried = np.maximum(matrix, matrix.T)[tuple(edges)]
            carried = carried if bonds == "orders" else _bond_types(carried)
        return RawGraph(edges, len(adjacency), describe(molecule), carried, edge_attribute="bonds")

    return read


def _bond_types(orders: Floats) -> Array:
    names = [BOND_TYPES.get(order, f"order {order:g}") for order in orders.tolist()]
    return np.array(names, dtype=str)


def _parsed(Chem: Any, smiles: Any) -> Any:
    if not isinstance(smiles, str) or not smiles.strip():
        raise GraphError("its SMILES is missing")
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise GraphError(f"its SMILES {_short(smiles)} {_problem(Chem, smiles)}")
    if molecule.GetNumAtoms() == 0:
        raise GraphError(f"its SMILES {_short(smiles)} has no atoms")
    return molecule


def _short(smiles: str) -> str:
    return repr(smiles if len(smiles) <= 60 else smiles[:57] + "...")


def _problem(Chem: Any, smiles: str) -> str:
    """Say whether the grammar or the chemistry is wrong; RDKit's first parse does not."""
    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    if molecule is None:
        return "cannot be parsed"
    problems = Chem.DetectChemistryProblems(molecule)
    return f"is not a molecule: {problems[0].Message()}" if problems else "is not a molecule"


# ---------------------------------------------------------------------- what atoms carry


def _symbols(molecule: Any) -> Array:
    atom = molecule.GetAtomWithIdx  # takes half as long as going through GetAtoms()
    return np.array([atom(i).GetSymbol() for i in range(molecule.GetNumAtoms())])


def _types(molecule: Any) -> Array:
    """Labels such as "N 2 H1 +1 aromatic ring": element, neighbors, hydrogens, charge, where."""
    atom = molecule.GetAtomWithIdx
    return np.array([_type(atom(i)) for i in range(molecule.GetNumAtoms())])


def _type(atom: Any) -> str:
    charge = atom.GetFormalCharge()
    return (
        f"{atom.GetSymbol()} {atom.GetDegree()} H{atom.GetTotalNumHs()}"
        f"{f' {charge:+d}' if charge else ''}"
        f"{' aromatic' if atom.GetIsAromatic() else ''}{' ring' if atom.IsInRing() else ''}"
    )


def _features(molecule: Any) -> Floats:
    atom = molecule.GetAtomWithIdx
    numbers = np.array([_atom_numbers(atom(i)) for i in range(molecule.GetNumAtoms())])
    element = numbers[:, :1] == list(ELEMENTS.values())
    hybridization = numbers[:, -1:] == list(HYBRIDIZATIONS.values())
    return np.column_stack([element, ~element.any(axis=1), numbers[:, 1:-1], hybridization]).astype(
        np.float64
    )


def _atom_numbers(atom: Any) -> tuple[int, ...]:
    return (
        atom.GetAtomicNum(),
        atom.GetFormalCharge(),
        atom.GetTotalNumHs(),
        atom.GetIsAromatic(),
        atom.IsInRing(),
        int(atom.GetHybridization()),
    )
