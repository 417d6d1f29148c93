"""Tables of molecules: which column has them, and the way from a row to a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fdgnn.datasets.readers import Cells, RowByRow
from fdgnn.datasets.request import ArcLabels
from fdgnn.exceptions import GraphError
from fdgnn.graphs.molecules import BONDS, MoleculeReader
from fdgnn.graphs.raw import Raw


def smiles_column(columns: Sequence[str]) -> str | None:
    """Find the column with SMILES: "smiles" in any case, or the only one with that word in it."""
    exact = [c for c in columns if c.lower() in ("smiles", "smi")]
    alike = exact or [c for c in columns if "smiles" in c.lower()]
    return alike[0] if len(alike) == 1 else None


@dataclass(frozen=True)
class MoleculeColumn:
    """The column of a table that has molecules, and how each is read."""

    column: str
    reader: MoleculeReader
    packed: bool = False  # for `join`, which reads many at once; nothing is settled on such rows

    def many(self, rows: Iterable[Cells]) -> Iterator[Raw | GraphError]:
        """Read the molecule of each row; for one that has none, give the error that says why."""
        with self.reader.quietly():
            if self.packed:
                yield from self.reader.pack_all(row.get(self.column) for row in rows)
            else:
                yield from RowByRow(lambda row: self.reader.read(row.get(self.column))).many(rows)


def bonds_of(arc_labels: ArcLabels) -> Any:
    """Say what is read of bonds; types, unless something else is asked for."""
    return BONDS["labels" if arc_labels == "auto" else arc_labels]
