"""Tables of molecules: which column has them, and the way from a row to a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fdgnn.datasets.rows import Cells
from fdgnn.graphs.molecules import BONDS, Molecule, MoleculeReader
from fdgnn.schema import EdgeChoice


def smiles_column(columns: Sequence[str]) -> str | None:
    """Find the column with SMILES: "smiles" in any case, or the only one with that word in it."""
    exact = [c for c in columns if c.lower() in ("smiles", "smi")]
    alike = exact or [c for c in columns if "smiles" in c.lower()]
    return alike[0] if len(alike) == 1 else None


@dataclass(frozen=True)
class MoleculeColumn:
    """The way from a row of a table to the molecule in one of its columns."""

    column: str
    reader: MoleculeReader

    def __call__(self, row: Cells) -> Molecule:
        """Read the molecule of a row, or raise GraphError."""
        return self.reader.read(row.get(self.column))


def bonds_of(edge_labels: EdgeChoice) -> Any:
    """Say what is read of bonds; types, unless something else is asked for."""
    return BONDS["labels" if edge_labels == "auto" else edge_labels]
