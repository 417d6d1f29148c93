"""Molecules written as SMILES: atoms are vertices, bonds are edges, hydrogens stay implicit.

The bonds' orders (1, 1.5 if aromatic, 2, 3) are what the arcs carry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.datasets.layout import RawGraph
from fdgnn.exceptions import GraphError, MissingDependencyError

ELEMENTS = {
    "H": 1, "B": 5, "C": 6, "N": 7, "O": 8, "F": 9, "Si": 14, "P": 15, "S": 16, "Cl": 17,
    "Se": 34, "Br": 35, "I": 53,
}  # fmt: skip
HYBRIDIZATIONS = {"sp": 2, "sp2": 3, "sp3": 4}  # as RDKit numbers them
ATOM_FEATURES: tuple[str, ...] = (
    *ELEMENTS, "other element", "formal charge", "hydrogens", "aromatic", "in a ring",
    *HYBRIDIZATIONS,
)  # fmt: skip


def smiles_column(columns: Sequence[str]) -> str | None:
    """Recognize the column with SMILES: "smiles" in whatever case, or the only one like it."""
    exact = [c for c in columns if c.lower() in ("smiles", "smi")]
    alike = exact or [c for c in columns if "smiles" in c.lower()]
    return alike[0] if len(alike) == 1 else None


def molecule_reader(
    column: str, atoms: str = "element", bonds: bool = True
) -> Callable[[Mapping[str, Any]], RawGraph]:
    """From a record to its molecule; raises `GraphError` on a bad row.

    Parameters
    ----------
    column : str
        With the SMILES.
    atoms : {"element", "rich"}
        What vertices carry: the element's symbol, as a label, or the numbers `ATOM_FEATURES`.
    bonds : bool
        Whether to read the bonds' orders.
    """
    Chem, quiet = _rdkit()
    describe = _symbols if atoms == "element" else _features

    def read(record: Mapping[str, Any]) -> RawGraph:
        with quiet():
            molecule = _parsed(Chem, record.get(column))
        # RDKit keeps matrices on the molecule: the second needs a name of its own.
        adjacency = Chem.GetAdjacencyMatrix(molecule)
        edges = np.array(np.nonzero(adjacency))
        orders = None
        if bonds:
            matrix = Chem.GetAdjacencyMatrix(molecule, useBO=True, prefix="order")
            orders = np.maximum(matrix, matrix.T)[tuple(edges)]  # a dative bond counts at one end
        return RawGraph(edges, len(adjacency), describe(molecule), orders)

    return read


def _rdkit() -> tuple[Any, Any]:
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise MissingDependencyError("SMILES need RDKit: pip install 'fdgnn[chem]'") from error
    return Chem, rdBase.BlockLogs


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
    """Say whether the grammar or the chemistry is wrong; RDKit's first parse does not tell."""
    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    if molecule is None:
        return "cannot be parsed"
    problems = Chem.DetectChemistryProblems(molecule)
    return f"is no molecule: {problems[0].Message()}" if problems else "is no molecule"


# ---------------------------------------------------------------------- what atoms carry


def _symbols(molecule: Any) -> Array:
    atom = molecule.GetAtomWithIdx  # half as long as iterating over GetAtoms()
    return np.array([atom(i).GetSymbol() for i in range(molecule.GetNumAtoms())])


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
