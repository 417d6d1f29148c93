"""Many molecules at once: RDKit writes each in binary, and a kernel makes a batch of all of them.

Asking RDKit for each atom and bond from Python takes longer than parsing the molecule. The binary
form has everything that labels, features and arcs need. Its layout belongs to RDKit, so it is used
only after some molecules were read both ways with the same result (`MoleculeReader.packs`), and a
molecule in which the kernel finds anything unusual is read atom by atom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints, offsets_of
from fdgnn.extras import require
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.reading import Reading

ELEMENTS = {
    "H": 1, "B": 5, "C": 6, "N": 7, "O": 8, "F": 9, "Si": 14, "P": 15, "S": 16, "Cl": 17,
    "Se": 34, "Br": 35, "I": 53,
}  # fmt: skip
BOND_TYPES = {1.0: "single", 1.5: "aromatic", 2.0: "double", 3.0: "triple"}
HYBRIDIZATIONS = {"sp": 2, "sp2": 3, "sp3": 4}  # as RDKit numbers them
# The orders of bonds, by RDKit's numbers of their types; 17 is a dative bond.
_ORDERS = {1: 1.0, 2: 2.0, 3: 3.0, 12: 1.5, 17: 1.0}

# Where the parts of an atom's code are (src/kernels/molecules.hpp): how far to shift, which bits.
_ELEMENT, _DEGREE, _HYDROGENS, _CHARGE = (0, 255), (8, 255), (16, 255), (24, 255)
_HYBRIDIZATION, _AROMATIC, _RING = (32, 255), (40, 1), (41, 1)
_TYPE_BITS = np.uint64(0x300_FFFF_FFFF)  # all but the hybridization
_ELEMENT_BITS = np.uint64(0xFF)

Codes = npt.NDArray[np.uint64]


@dataclass(slots=True)  # not frozen: millions of them are made
class PackedMolecule:
    """A molecule in RDKit's binary form, beside what `RawGraph` has of molecules."""

    binary: bytes = field(repr=False)
    read: Callable[[bytes], Any] = field(repr=False)  # the slow way from `binary` to a RawGraph
    smiles: str | None = None
    changes: tuple[str, ...] = ()
    given: str | None = None
    cells: Mapping[str, Any] | None = None


class _Unpacked(NamedTuple):
    """What the kernel finds in molecules; bonds are types, as RDKit numbers them."""

    n_atoms: Ints  # -1: it cannot read this one
    atoms: Codes
    degrees: Ints
    neighbors: npt.NDArray[np.int32]
    bonds: npt.NDArray[np.uint8]

    @property
    def is_whole(self) -> bool:
        """Whether all molecules could be read, with bonds of known types."""
        return bool((self.n_atoms >= 0).all() and _orders()[self.bonds].all())


def unpack(molecules: Sequence[PackedMolecule], reading: Reading) -> GraphBatch | None:
    """Make a batch of molecules; None if they, or the reading, are not usual enough for it."""
    from fdgnn.kernels import unpack_molecules

    if not molecules or not _is_usual(reading):
        return None
    offsets = offsets_of([len(each.binary) for each in molecules])
    joined = np.frombuffer(b"".join(each.binary for each in molecules), dtype=np.uint8)
    found = _Unpacked(*unpack_molecules(joined, offsets))
    if not found.is_whole:
        return None
    rich = reading.vertex == "features"
    codes, values = (None, None) if rich else _labels(found.atoms, reading)
    carried: dict[str, Any] = {}
    if reading.arc_labels == "labels":
        arc_codes, arc_values = _arc_labels(found.bonds)
        carried = {"arc_label_codes": arc_codes, "arc_label_values": arc_values}
    elif reading.arc_labels != "ignore":
        carried = {"weights": _orders()[found.bonds]}
    return GraphBatch(
        vertex_offsets=offsets_of(found.n_atoms),
        indptr=offsets_of(found.degrees),
        neighbors=found.neighbors,
        label_codes=codes,
        label_values=values,
        features=_features(found.atoms) if rich else None,
        **carried,
    )


def _is_usual(reading: Reading) -> bool:
    """Tell whether the codes of atoms and bonds have what a reading asks for."""
    labels = reading.vertex == "labels" and reading.atoms in ("element", "typed")
    labels = labels and reading.label_kind == "text"
    rich = reading.vertex == "features" and reading.atoms == "rich"
    n_features = len(ELEMENTS) + 5 + len(HYBRIDIZATIONS)
    kind = {"labels": "text", "weights": "number", "vertices": "number", "ignore": None}
    return (
        (labels or (rich and reading.n_features == n_features))
        and reading.arc_kind == kind[reading.arc_labels]
        and not reading.directed
        and not reading.stereo
        and not reading.pairs
    )


# ---------------------------------------------------------------------- what atoms and bonds carry


def _part(codes: Codes, where: tuple[int, int]) -> npt.NDArray[np.int64]:
    shift, bits = where
    return ((codes >> np.uint64(shift)) & np.uint64(bits)).astype(np.int64)


def _labels(atoms: Codes, reading: Reading) -> tuple[npt.NDArray[np.int32], Array]:
    """Position of each atom's label, and the distinct labels, sorted."""
    typed = reading.atoms == "typed"
    codes, place = np.unique(atoms & (_TYPE_BITS if typed else _ELEMENT_BITS), return_inverse=True)
    names = np.array([_label(code, typed) for code in codes.tolist()])
    order = np.argsort(names)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[place], names[order]


@cache
def _label(code: int, typed: bool) -> str:
    """The label of an atom with this code."""
    table = require("rdkit.Chem", "chem", "molecules").GetPeriodicTable()

    def part(where: tuple[int, int]) -> int:
        return (code >> where[0]) & where[1]

    symbol = str(table.GetElementSymbol(part(_ELEMENT)))
    if not typed:
        return symbol
    charge, hydrogens = part(_CHARGE) - 128, part(_HYDROGENS)
    aromatic, ring = bool(part(_AROMATIC)), bool(part(_RING))
    return type_label(symbol, part(_DEGREE), hydrogens, charge, aromatic, ring)


def type_label(
    symbol: str, degree: int, hydrogens: int, charge: int, aromatic: bool, ring: bool
) -> str:
    """Name the type of an atom, as in "N 2 H1 +1 aromatic ring"."""
    return (
        f"{symbol} {degree} H{hydrogens}{f' {charge:+d}' if charge else ''}"
        f"{' aromatic' if aromatic else ''}{' ring' if ring else ''}"
    )


def _features(atoms: Codes) -> Floats:
    """Numbers of each atom, (n, 21), in the order of `fdgnn.graphs.molecules.ATOM_FEATURES`."""
    numbers = np.column_stack(
        [
            _part(atoms, _ELEMENT),
            _part(atoms, _CHARGE) - 128,
            *(_part(atoms, where) for where in (_HYDROGENS, _AROMATIC, _RING, _HYBRIDIZATION)),
        ]
    )
    return spread_features(numbers)


def spread_features(numbers: Array) -> Floats:
    """Features of atoms, from element, charge, hydrogens, aromatic, in a ring, hybridization."""
    element = numbers[:, :1] == list(ELEMENTS.values())
    hybridization = numbers[:, -1:] == list(HYBRIDIZATIONS.values())
    return np.column_stack([element, ~element.any(axis=1), numbers[:, 1:-1], hybridization]).astype(
        np.float64
    )


@cache
def _orders() -> Floats:
    """Order of a bond, by the number of its type."""
    table = np.zeros(256)
    table[list(_ORDERS)] = list(_ORDERS.values())
    return table


def _arc_labels(bonds: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int32], Array]:
    """Position of each arc's label, and the distinct labels, sorted."""
    there = np.flatnonzero(np.bincount(bonds, minlength=1)).tolist()
    names = {number: BOND_TYPES[_ORDERS[number]] for number in there}
    values = sorted(set(names.values()))
    table = np.zeros(256, dtype=np.int32)
    for number, name in names.items():
        table[number] = values.index(name)
    return table[bonds], np.array(values, dtype=str)
