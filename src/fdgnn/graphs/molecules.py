"""Molecules as graphs: atoms are vertices, bonds are edges, hydrogens stay implicit.

A molecule is a SMILES or an RDKit ``Mol``. Arcs carry the bonds' types, as text, or their orders:
1, 1.5 if aromatic, 2, 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.caching import cached_property
from fdgnn.exceptions import GraphError
from fdgnn.extras import require
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.packed import (
    BOND_TYPES,
    ELEMENTS,
    HYBRIDIZATIONS,
    PackedMolecule,
    spread_features,
    type_label,
)
from fdgnn.graphs.raw import RawGraph, join
from fdgnn.graphs.reading import ArcUse, Atoms, Reading, Standardize
from fdgnn.graphs.standardizing import standardizer
from fdgnn.limits import MAX_SMILES

Bonds = Literal["types", "orders"]

ATOM_FEATURES: tuple[str, ...] = (
    *ELEMENTS, "other element", "formal charge", "hydrogens", "aromatic", "in a ring",
    *HYBRIDIZATIONS,
)  # fmt: skip
STEREO_FEATURES = ("R", "S")  # further features of an atom, where stereo is asked for
# What is read of bonds, by the use that arcs are put to.
BONDS: dict[ArcUse, Bonds | None] = {
    "labels": "types", "weights": "orders", "vertices": "orders", "ignore": None,
}  # fmt: skip


def is_molecule(item: Any) -> bool:
    """Tell whether something is a SMILES or an RDKit ``Mol``."""
    return isinstance(item, str) or hasattr(item, "GetAtomWithIdx")


def molecule_reading(
    atoms: Atoms = "typed", standardize: Standardize | None = None, stereo: bool = False
) -> Reading:
    """Give the reading of molecules that come without a file; bonds carry their types."""
    n_features = len(ATOM_FEATURES) + len(STEREO_FEATURES) * stereo
    rich = atoms == "rich"
    return Reading(
        source="molecules",
        directed=False,
        vertex="features" if rich else "labels",
        label_kind=None if rich else "text",
        n_features=n_features if rich else None,
        arc_labels="labels",
        arc_kind="text",
        arc_width=1,
        edge_attribute="bonds",
        atoms=atoms,
        standardize=standardize,
        stereo=stereo,
    )


class ReadMolecule(NamedTuple):
    """A molecule as it is read, and what was changed.

    The atoms of `mol` are the vertices of its graph, and so are those of `smiles`, counted from
    left to right; `smiles` is None where a ``Mol`` was given and stayed as it was.
    """

    mol: Any
    smiles: str | None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MoleculeReader:
    """The way from a molecule to a graph.

    Parameters
    ----------
    atoms : {"element", "typed", "rich"}
        What vertices carry: the element's symbol, as a label; a label of the atom's type, such as
        "N 2 H1 +1 aromatic ring" (element, neighbors, hydrogens, charge, where it is); or the
        numbers `ATOM_FEATURES`.
    bonds : {"types", "orders"} or None
        What arcs carry: "single", "double", "triple" or "aromatic"; 1, 2, 3 or 1.5; or nothing.
        A bond of another order x has the type "order x". A dative bond is a single one.
    standardize : {"parent", "tautomer"} or None
        Whether a molecule is replaced by its largest fragment, without charges, and whether by
        its canonical tautomer then; see `fdgnn.graphs.standardizing`.
    stereo : bool
        Whether labels (or two more features) of atoms say R or S, and types of bonds E or Z.
    """

    atoms: Atoms = "typed"
    bonds: Bonds | None = "types"
    standardize: Standardize | None = None
    stereo: bool = False

    def __post_init__(self) -> None:
        require("rdkit.Chem", "chem", "molecules")

    def __reduce__(self) -> tuple[type[MoleculeReader], tuple[Any, ...]]:
        # Without the modules that it has imported, so that worker processes can have it.
        return MoleculeReader, (self.atoms, self.bonds, self.standardize, self.stereo)

    @classmethod
    def of(cls, reading: Reading) -> MoleculeReader:
        """Give the reader of a reading of molecules; it is made once."""
        return _reader(reading)

    def read(self, item: Any) -> RawGraph:
        """Read a SMILES or a ``Mol``; raise GraphError if it is not a molecule."""
        with self._quiet():
            found = self._molecule(item)
        given = item if found.changes and isinstance(item, str) else None
        return replace(
            self._graph(found.mol), smiles=found.smiles, changes=found.changes, given=given
        )

    def pack(self, item: Any) -> PackedMolecule:
        """Read a molecule into RDKit's binary form, of which `join` makes a batch at once.

        Whoever packs many lets `quietly` keep RDKit silent. Raises GraphError as `read` does.
        """
        found = self._molecule(item)
        given = item if found.changes and isinstance(item, str) else None
        binary = found.mol.ToBinary(self._without_properties)
        return PackedMolecule(binary, self._unpacked, found.smiles, found.changes, given)

    def pack_all(self, items: Iterable[Any]) -> Iterator[PackedMolecule | GraphError]:
        """Pack many molecules; for one that cannot be used, give the error of `pack`."""
        most, usual = MAX_SMILES.value, self._standardizer is None
        parse, options, unpacked = self._parse_flat, self._without_properties, self._unpacked
        for item in items:
            if usual and isinstance(item, str) and len(item) <= most and _is_plain(item):
                mol = parse(item)
                if mol is not None and mol.GetNumAtoms():
                    yield PackedMolecule(mol.ToBinary(options), unpacked, item)
                    continue
            try:
                yield self.pack(item)
            except GraphError as error:
                yield error

    @cached_property
    def _parse_flat(self) -> Callable[[str], Any]:
        """A function that parses a SMILES, and gives None if it is not a molecule.

        Of a SMILES without stereo, and without hydrogens that are atoms, RDKit need not look for
        them, which takes time also where there are none.
        """
        parse, sanitize = self._chem.MolFromSmiles, self._chem.SanitizeMol
        as_written = self._chem.SmilesParserParams()
        as_written.sanitize = as_written.removeHs = False

        def parse_flat(smiles: str) -> Any:
            if not _is_flat(smiles):
                return parse(smiles)
            mol = parse(smiles, as_written)
            try:
                return None if mol is None or sanitize(mol) else mol
            except ValueError:
                return None

        return parse_flat

    @property
    def packs(self) -> bool:
        """Whether `pack` is worth while: the kernel reads this RDKit's molecules as `read` does."""
        return not self.stereo and _kernel_agrees()

    def quietly(self) -> Any:
        """Keep RDKit from telling of molecules that it cannot parse, inside of ``with``."""
        return self._quiet()

    def _unpacked(self, binary: bytes) -> RawGraph:
        return self._graph(self._chem.Mol(binary))

    def _graph(self, mol: Any) -> RawGraph:
        """Give the graph of a molecule, atom by atom."""
        if self.stereo:
            mol = self._with_stereo(mol)
        # RDKit stores matrices with the molecule: the second one needs a name of its own.
        adjacency = self._chem.GetAdjacencyMatrix(mol)
        edges = np.array(np.nonzero(adjacency))
        return RawGraph(
            edges,
            len(adjacency),
            self._describe(mol),
            self._carried(mol, edges),
            edge_attribute="bonds",
        )

    def molecule(self, item: Any) -> ReadMolecule:
        """Give the molecule whose atoms are the vertices of the graph that is read."""
        with self._quiet():
            return self._molecule(item)

    # ------------------------------------------------------------------ molecules

    @cached_property
    def _chem(self) -> Any:
        return require("rdkit.Chem", "chem", "molecules")

    @cached_property
    def _quiet(self) -> Any:
        return require("rdkit.rdBase", "chem", "molecules").BlockLogs

    @cached_property
    def _without_properties(self) -> int:
        options = self._chem.PropertyPickleOptions
        return int(options.NoConformers | options.NoProps)

    @cached_property
    def _standardizer(self) -> Callable[[Any], tuple[Any, tuple[str, ...]]] | None:
        return None if self.standardize is None else standardizer(self.standardize)

    def _molecule(self, item: Any) -> ReadMolecule:
        if isinstance(item, str) or not is_molecule(item):
            mol, smiles = _parsed(self._chem, item), item
        else:
            mol, smiles = _complete(self._chem, item), None
        if self._standardizer is None:
            return ReadMolecule(mol, smiles)
        clean, changes = self._standardizer(mol)
        if not changes:
            return ReadMolecule(mol, smiles)
        # Written and parsed, so that the atoms of this SMILES are the vertices.
        smiles = self._chem.MolToSmiles(clean)
        return ReadMolecule(_parsed(self._chem, smiles), smiles, changes)

    # ------------------------------------------------------------------ what atoms and bonds carry

    def _describe(self, mol: Any) -> Array:
        if self.atoms == "rich":
            numbers = _features(mol)
            return np.column_stack([numbers, _handedness(mol)]) if self.stereo else numbers
        labels = (_types if self.atoms == "typed" else _symbols)(mol)
        if self.stereo:
            codes = (_code(atom) for atom in mol.GetAtoms())
            labels = [f"{x} {c}" if c else x for x, c in zip(labels, codes, strict=True)]
        return np.array(labels)

    def _carried(self, mol: Any, edges: Ints) -> Array | None:
        if self.bonds is None:
            return None
        matrix = self._chem.GetAdjacencyMatrix(mol, useBO=True, prefix="order")
        # A dative bond counts at one end only.
        orders: Floats = np.maximum(matrix, matrix.T)[tuple(edges)]
        if self.bonds == "orders":
            return orders
        names = [BOND_TYPES.get(order) or f"order {order:g}" for order in orders.tolist()]
        if self.stereo:
            codes = _codes_of_bonds(mol)
            ends = zip(*edges.tolist(), strict=True)
            names = [x + codes.get(e, "") for x, e in zip(names, ends, strict=True)]
        return np.array(names, dtype=str)

    def _with_stereo(self, mol: Any) -> Any:
        """Give a copy with CIP codes on atoms and bonds, which the atoms' order does not change."""
        mol = self._chem.Mol(mol)
        require("rdkit.Chem.rdCIPLabeler", "chem", "molecules").AssignCIPLabels(mol)
        return mol


@lru_cache(maxsize=16)
def _reader(reading: Reading) -> MoleculeReader:
    bonds = BONDS[reading.arc_labels]
    return MoleculeReader(reading.atoms or "element", bonds, reading.standardize, reading.stereo)


# What RDKit's binary form has to tell apart: charges, hydrogens, isotopes, radicals, rings, stereo,
# numbers of atoms in reactions, dummies, dative bonds, and atoms without bonds.
_PANEL = (
    "CCO", "C[N+](=O)[O-]", "c1cc[nH]c1", "[13CH4]", "F[C@H](Cl)Br", "C/C=C\\C", "[Na+].[Cl-]",
    "[NH3]->[Cu]", "*C", "[CH3]", "C1CC1C#N", "[CH3:7][OH:300]", "[O-]S(=O)(=O)c1ccc2ccccc2c1",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "C1CC2CCC1CC2", "[Fe+2]", "[H][H]", "[SiH4]", "O=P(O)(O)O",
)  # fmt: skip


@cache
def _kernel_agrees() -> bool:
    """Read some molecules both ways; a later RDKit may write them otherwise."""
    return all(_same_both_ways(atoms) for atoms in ("typed", "rich"))


def _same_both_ways(atoms: Atoms) -> bool:
    reader, reading = MoleculeReader(atoms), molecule_reading(atoms)
    packed: Any = dict(enumerate(reader.pack_all(_PANEL)))
    fast = join(packed, reading).graphs
    slow = join({i: reader.read(smiles) for i, smiles in enumerate(_PANEL)}, reading).graphs
    return all(
        np.array_equal(getattr(fast, each.name), getattr(slow, each.name))
        for each in fields(GraphBatch)
    )


# ---------------------------------------------------------------------- from anything to molecules


def _parsed(Chem: Any, smiles: Any) -> Any:
    if not isinstance(smiles, str) and smiles is not None and smiles == smiles:
        raise GraphError(f"it is a {type(smiles).__name__}, not a molecule")
    if not isinstance(smiles, str) or not smiles.strip():
        raise GraphError("its SMILES is missing")
    if MAX_SMILES.is_below(len(smiles)):
        raise GraphError(f"its SMILES has {len(smiles)} characters; {MAX_SMILES.in_words}")
    word = smiles.split(None, 1)[0]
    if not _is_plain(word):  # RDKit takes such characters off both ends without a word
        foreign = [c for c in word if not _is_plain(c)]
        raise GraphError(f"its SMILES {_short(smiles)} has {foreign[0]!a}, which no SMILES has")
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        raise GraphError(f"its SMILES {_short(smiles)} {_problem(Chem, smiles)}")
    if mol.GetNumAtoms() == 0:
        raise GraphError(f"its SMILES {_short(smiles)} has no atoms")
    return mol


def _is_plain(text: str) -> bool:
    """Tell whether a text has only characters that a SMILES can have, or blanks."""
    return text.isascii() and text.isprintable()


def _is_flat(smiles: str) -> bool:
    """Tell whether a SMILES has no stereo, no hydrogen as an atom, and nothing behind a bar."""
    stereo = "@" in smiles or "/" in smiles or "\\" in smiles
    return not (stereo or "[H" in smiles or "|" in smiles)


def _complete(Chem: Any, mol: Any) -> Any:
    """Give a molecule as parsing its SMILES would, hydrogens implicit and rings known."""
    if mol.GetNumAtoms() == 0:
        raise GraphError("it is a molecule without atoms")
    try:
        if mol.GetNumHeavyAtoms() < mol.GetNumAtoms():
            mol = Chem.RemoveHs(mol)
        mol.GetRingInfo().NumRings()
    except (RuntimeError, ValueError) as error:
        why = str(error).strip().splitlines()[-1]
        raise GraphError(f"it is a molecule that RDKit cannot use ({why}); sanitize it") from None
    return mol


def _short(smiles: str) -> str:
    return repr(smiles if len(smiles) <= 60 else smiles[:57] + "...")


def _problem(Chem: Any, smiles: str) -> str:
    """Say whether the grammar or the chemistry is wrong; RDKit's first parse does not."""
    mol = Chem.MolFromSmiles(smiles, sanitize=False)
    if mol is None:
        return "cannot be parsed"
    problems = Chem.DetectChemistryProblems(mol)
    return f"is not a molecule: {problems[0].Message()}" if problems else "is not a molecule"


# ---------------------------------------------------------------------- what atoms carry


def _symbols(mol: Any) -> list[str]:
    atom = mol.GetAtomWithIdx  # takes half as long as going through GetAtoms()
    return [atom(i).GetSymbol() for i in range(mol.GetNumAtoms())]


def _types(mol: Any) -> list[str]:
    atom = mol.GetAtomWithIdx
    return [_type(atom(i)) for i in range(mol.GetNumAtoms())]


def _type(atom: Any) -> str:
    return type_label(
        atom.GetSymbol(),
        atom.GetDegree(),
        atom.GetTotalNumHs(),
        atom.GetFormalCharge(),
        atom.GetIsAromatic(),
        atom.IsInRing(),
    )


def _features(mol: Any) -> Floats:
    atom = mol.GetAtomWithIdx
    return spread_features(np.array([_atom_numbers(atom(i)) for i in range(mol.GetNumAtoms())]))


def _atom_numbers(atom: Any) -> tuple[int, ...]:
    return (
        atom.GetAtomicNum(),
        atom.GetFormalCharge(),
        atom.GetTotalNumHs(),
        atom.GetIsAromatic(),
        atom.IsInRing(),
        int(atom.GetHybridization()),
    )


# ---------------------------------------------------------------------- stereo


def _code(part: Any) -> str:
    """R, S, r or s of an atom, E or Z of a bond; nothing where there is no such thing."""
    return str(part.GetProp("_CIPCode")) if part.HasProp("_CIPCode") else ""


def _handedness(mol: Any) -> Floats:
    codes = [_code(atom).upper() for atom in mol.GetAtoms()]
    return np.array([[code == name for name in STEREO_FEATURES] for code in codes], dtype=float)


def _codes_of_bonds(mol: Any) -> dict[tuple[int, int], str]:
    """What the types of bonds end with, by their two atoms, both ways."""
    found: dict[tuple[int, int], str] = {}
    for bond in mol.GetBonds():
        code = _code(bond)
        if code:
            u, v = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            found[u, v] = found[v, u] = f" {code}"
    return found
