"""Molecules as graphs: atoms are vertices, bonds are edges, hydrogens stay implicit.

A molecule is a SMILES or an RDKit ``Mol``. `MoleculeReader.read` makes a `Molecule` of it: what its
atoms and bonds carry. `molecule_batch` joins many of them to a `GraphBatch`. There is no other way
from a molecule to a graph (docs/decisions/0052-molecules.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, Literal

import numpy as np

from fdgnn.arrays import Array, Floats, Ints, offsets_of
from fdgnn.exceptions import GraphError
from fdgnn.extras import require
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.checks import check_total
from fdgnn.graphs.graph import Union
from fdgnn.graphs.smiles import Smiles, SmilesColumn
from fdgnn.limits import MAX_SMILES, MAX_VERTICES
from fdgnn.schema import USUAL_ATOMS, Atoms, EdgeUse, InputSchema, ReadOptions, Standardize, Vertex

Bonds = Literal["types", "orders"]

_ELEMENTS = {
    "H": 1, "B": 5, "C": 6, "N": 7, "O": 8, "F": 9, "Si": 14, "P": 15, "S": 16, "Cl": 17,
    "Se": 34, "Br": 35, "I": 53,
}  # fmt: skip
_HYBRIDIZATIONS = {"sp": 2, "sp2": 3, "sp3": 4}  # as RDKit numbers them
_BOND_TYPES = {1.0: "single", 1.5: "aromatic", 2.0: "double", 3.0: "triple"}

ATOM_FEATURES: tuple[str, ...] = (
    *_ELEMENTS, "other element", "formal charge", "hydrogens", "aromatic", "in a ring",
    *_HYBRIDIZATIONS,
)  # fmt: skip
STEREO_FEATURES = ("R", "S")  # further features of an atom, where stereo is asked for
# What is read of bonds, by the use that arcs are put to.
BONDS: dict[EdgeUse, Bonds | None] = {
    "labels": "types", "weights": "orders", "ignore": None,
}  # fmt: skip
NOTHING_ON_EDGES = "the edges have no data to use as {}; use `edge_labels='ignore'`"
_KINDS_OF_ATOMS = 2**14  # of which a reader keeps labels; molecules have a few hundred


def is_molecule(item: Any) -> bool:
    """Return whether something is a SMILES or an RDKit ``Mol``."""
    return isinstance(item, str) or hasattr(item, "GetAtomWithIdx")


def molecule_schema(options: ReadOptions, bonded: bool = True) -> InputSchema:
    """Return the schema of molecules that are read by these options; bonds have types.

    Raises
    ------
    GraphError
        The options do not fit together, or to molecules without bonds.
    """
    use = options.edge_labels
    if use == "auto":
        use = "labels" if bonded else "ignore"
    if use != "ignore" and not bonded:
        raise GraphError(NOTHING_ON_EDGES.format(use))
    atoms, bonds = options.atoms or USUAL_ATOMS, BONDS[use]
    vertex: Vertex = "features" if atoms == "rich" else "labels"
    if options.vertex not in ("auto", "none", vertex):
        raise GraphError(
            f"with `atoms={atoms!r}`, the vertices carry {vertex} and no {options.vertex}; use "
            "`vertex='auto'`"
        )
    vertex = "none" if options.vertex == "none" else vertex
    n_features = len(ATOM_FEATURES) + len(STEREO_FEATURES) * bool(options.stereo)
    return InputSchema(
        source="molecules",
        directed=bool(options.directed),
        direction_given=options.directed is not None,
        vertex=vertex,
        label_kind="text" if vertex == "labels" else None,
        n_features=n_features if vertex == "features" else None,
        edge_labels=use,
        edge_kind=None if bonds is None else "text" if bonds == "types" else "number",
        edge_width=None if bonds is None else 1,
        edge_attribute=None if bonds is None else "bonds",
        atoms=atoms,
        standardize=options.standardize,
        stereo=bool(options.stereo),
    )


@dataclass(slots=True)  # not frozen: millions of them are made
class Molecule:
    """A molecule as `MoleculeReader.read` finds it.

    Attributes
    ----------
    atoms : list
        What each atom carries: a label, or a tuple of features.
    arcs : tuple of (n_arcs,) int arrays
        Sources and targets; each bond is two arcs.
    bonds : (n_arcs,) array or list
        The order of each arc's bond or, with stereo, its type.
    smiles : Smiles
        Some encoders compute more from it.
    changes : tuple of str
        What standardization did, see `fdgnn.graphs.molecules.STEPS`.
    given : str or None
        The SMILES before it was changed.
    """

    atoms: list[Any]
    arcs: tuple[Ints, ...]
    bonds: Any
    smiles: Smiles
    changes: tuple[str, ...] = ()
    given: str | None = None


class MoleculeReader:
    """Converter of molecules to graphs.

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
        its canonical tautomer then; see `fdgnn.graphs.molecules`.
    stereo : bool
        Whether labels (or two more features) of atoms include R or S, and types of bonds E or Z.

    Attributes
    ----------
    quietly : callable
        The context in which RDKit reports nothing of molecules that it cannot parse.
    """

    def __init__(
        self,
        atoms: Atoms = "typed",
        bonds: Bonds | None = "types",
        standardize: Standardize | None = None,
        stereo: bool = False,
    ) -> None:
        self.atoms, self.bonds, self.standardize, self.stereo = atoms, bonds, standardize, stereo
        self._chem = require("rdkit.Chem", "chem", "molecules")
        self.quietly = require("rdkit.rdBase", "chem", "molecules").BlockLogs
        self._standardizer = None if standardize is None else standardizer(standardize)
        self._kept: dict[tuple[Any, ...], Any] = {}  # labels or features of atoms, by their kind
        # Unless labels or standardization depend on it, stereo is not assigned, and hydrogens are
        # not removed where none is an atom: both take time even if there are none.
        self._as_written = None
        if not stereo and standardize is None:
            self._as_written = self._chem.SmilesParserParams()
            self._as_written.sanitize = self._as_written.removeHs = False

    def __reduce__(self) -> tuple[type[MoleculeReader], tuple[Any, ...]]:
        # Without the modules that it has imported, so that worker processes can have it.
        return MoleculeReader, (self.atoms, self.bonds, self.standardize, self.stereo)

    @staticmethod
    @lru_cache(maxsize=16)
    def of(options: ReadOptions) -> MoleculeReader:
        """Return the reader of molecules for these options, or a schema; it is made once."""
        bonds = BONDS["labels" if options.edge_labels == "auto" else options.edge_labels]
        atoms = options.atoms or USUAL_ATOMS
        return MoleculeReader(atoms, bonds, options.standardize, bool(options.stereo))

    def read(self, item: Any) -> Molecule:
        """Read a SMILES or a ``Mol``; raise GraphError if it is not a molecule."""
        Chem = self._chem
        with self.quietly():
            mol, smiles, changes = self._molecule(item)
            if self.stereo:  # a copy with CIP codes on atoms and bonds, whatever their order
                mol = Chem.Mol(mol)
                require("rdkit.Chem.rdCIPLabeler", "chem", "molecules").AssignCIPLabels(mol)
        # A matrix takes a third of the time of asking each bond, in molecules of usual size. RDKit
        # may store matrices with the molecule, so each kind has a name.
        matrix = Chem.GetAdjacencyMatrix(mol, True, 0, False, "order")
        arcs = matrix.nonzero()
        # A dative bond counts at one end only, and a bond of order 0 at none.
        if len(arcs[0]) < 2 * mol.GetNumBonds():
            arcs = Chem.GetAdjacencyMatrix(mol).nonzero()
            matrix = np.maximum(matrix, matrix.T)
        bonds = matrix[arcs]
        if self.stereo and self.bonds == "types":
            bonds = _bond_types(mol, arcs, bonds)
        atoms = self._describe(mol, smiles is not None and "|" not in smiles)
        if smiles is not None:
            written = Smiles(smiles, np.arange(mol.GetNumAtoms()))
        else:
            text = Chem.MolToSmiles(mol)
            order = mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
            written = Smiles(text, np.argsort(np.array(list(order), dtype=np.int64)))
        given = item if changes and isinstance(item, str) else None
        return Molecule(atoms, arcs, bonds, written, changes, given)

    def molecule(self, item: Any) -> Any:
        """Return the ``Mol`` whose atoms are the vertices of the graph that `read` finds."""
        with self.quietly():
            return self._molecule(item, whole=True)[0]

    # ------------------------------------------------------------------ molecules

    def _molecule(self, item: Any, whole: bool = False) -> tuple[Any, str | None, tuple[str, ...]]:
        """Return a molecule as a ``Mol``, its SMILES, and what standardization changed.

        The atoms of the two, from left to right, are the vertices of its graph. The SMILES of an
        unchanged ``Mol`` is None. Unless `whole`, only the graph is needed.
        """
        if isinstance(item, str) or not is_molecule(item):
            mol, smiles = self._parse(item, whole), item
        else:  # completed as parsing its SMILES would: implicit hydrogens, rings
            mol, smiles, n = item, None, item.GetNumAtoms()
            if n == 0:
                raise GraphError("a molecule without atoms")
            if MAX_VERTICES.is_below(n):
                raise GraphError(f"{n} vertices; {MAX_VERTICES.in_words}")
            try:
                if mol.GetNumHeavyAtoms() < n:
                    mol = self._chem.RemoveHs(mol)
                mol.GetRingInfo().NumRings()
            except (RuntimeError, ValueError) as error:
                why = str(error).strip().splitlines()[-1]
                raise GraphError(f"a molecule that RDKit cannot use ({why}); sanitize it") from None
        changes: tuple[str, ...] = ()
        if self._standardizer is not None:
            clean, changes = self._standardizer(mol)
        if changes:  # written and parsed, so that the atoms of this SMILES are the vertices
            smiles = self._chem.MolToSmiles(clean)
            mol = self._parse(smiles, whole)
        return mol, smiles, changes

    def _parse(self, smiles: Any, whole: bool) -> Any:
        """Parse a SMILES, or raise GraphError; unless `whole`, only the graph is needed."""
        Chem = self._chem
        if not isinstance(smiles, str) and smiles is not None and smiles == smiles:
            raise GraphError(f"expected a SMILES or Mol, got {type(smiles).__name__}")
        if not isinstance(smiles, str) or not (words := smiles.split(None, 2)):
            raise GraphError("the SMILES is missing")
        if MAX_SMILES.is_below(len(smiles)):
            raise GraphError(f"the SMILES has {len(smiles)} characters; {MAX_SMILES.in_words}")
        shown = repr(smiles if len(smiles) <= 60 else smiles[:57] + "...")
        if not (words[0].isascii() and words[0].isprintable()):  # RDKit removes these at both ends
            foreign = next(c for c in words[0] if not (c.isascii() and c.isprintable()))
            raise GraphError(f"the SMILES {shown} has {foreign!a}, which no SMILES has")
        mol = None
        if not (whole or self._as_written is None or "[H" in smiles or "|" in smiles):
            mol = Chem.MolFromSmiles(smiles, self._as_written)  # a bar begins an extension
            try:
                if mol is not None and Chem.SanitizeMol(mol):
                    mol = None
            except ValueError:
                mol = None
        mol = Chem.MolFromSmiles(smiles) if mol is None else mol
        if mol is None:  # is the grammar wrong, or the chemistry?
            mol = Chem.MolFromSmiles(smiles, sanitize=False)
            if mol is None:
                raise GraphError(f"the SMILES {shown} cannot be parsed")
            found = Chem.DetectChemistryProblems(mol)
            why = f": {found[0].Message()}" if found else ""
            raise GraphError(f"the SMILES {shown} is not a molecule{why}")
        if mol.GetNumAtoms() == 0:
            raise GraphError(f"the SMILES {shown} has no atoms")
        # RDKit reads the first word; what follows may be a name.
        if len(words) > 1 and Chem.MolFromSmiles(words[1], sanitize=False) is not None:
            raise GraphError(
                f"the SMILES {shown} has a second molecule after a space; write a dot between the "
                "components of one substance"
            )
        return mol

    # ------------------------------------------------------------------ what atoms and bonds carry

    def _describe(self, mol: Any, written: bool) -> list[Any]:
        """Return the data of each atom; `written` if the SMILES determines them."""
        # RDKit's own iterator, GetAtoms, takes twice as long as indices.
        atoms = list(map(mol.GetAtomWithIdx, range(mol.GetNumAtoms())))
        if self.atoms == "element":
            found = list(map(self._chem.Atom.GetSymbol, atoms))
        elif not written:
            found = [self._describe_atom(atom) for atom in atoms]
        else:
            # Most of the time goes to calls of RDKit. How an atom is written in a SMILES (without
            # isotope and chirality) has its element, charge, hydrogens and aromaticity at once.
            Atom, no = self._chem.Atom, repeat(False)
            other = Atom.GetDegree if self.atoms == "typed" else Atom.GetHybridization
            texts = map(Atom.GetSmarts, atoms, no, repeat(True), no)
            keys = zip(texts, map(Atom.IsInRing, atoms), map(other, atoms), strict=True)
            kept = self._kept
            pairs = zip(keys, atoms, strict=True)
            found = [kept.get(key) or self._keep(key, atom) for key, atom in pairs]
        if not self.stereo:
            return found
        codes = map(_cip_code, atoms)
        if self.atoms != "rich":
            return _with_codes(found, codes)
        hands = [tuple(float(code.upper() == each) for each in STEREO_FEATURES) for code in codes]
        return [features + hand for features, hand in zip(found, hands, strict=True)]

    def _keep(self, key: tuple[Any, ...], atom: Any) -> Any:
        found = self._describe_atom(atom)
        # An unknown element, written "*", does not tell whether it is aromatic.
        if not key[0].startswith("[*") and len(self._kept) < _KINDS_OF_ATOMS:
            self._kept[key] = found
        return found

    def _describe_atom(self, atom: Any) -> Any:
        """Return the numbers of an atom, or the label of its type: "N 2 H1 +1 aromatic ring"."""
        charge, n_hydrogens = atom.GetFormalCharge(), atom.GetTotalNumHs()
        aromatic, ring = atom.GetIsAromatic(), atom.IsInRing()
        if self.atoms != "rich":
            return (
                f"{atom.GetSymbol()} {atom.GetDegree()} H{n_hydrogens}"
                f"{f' {charge:+d}' if charge else ''}"
                f"{' aromatic' if aromatic else ''}{' ring' if ring else ''}"
            )
        elements = [atom.GetAtomicNum() == number for number in _ELEMENTS.values()]
        kind = int(atom.GetHybridization())
        hybridizations = [kind == number for number in _HYBRIDIZATIONS.values()]
        numbers = (not any(elements), charge, n_hydrogens, aromatic, ring)
        return tuple(map(float, (*elements, *numbers, *hybridizations)))


# ---------------------------------------------------------------------- from molecules to a batch


def molecule_batch(molecules: Sequence[Molecule], schema: InputSchema) -> GraphBatch:
    """Join molecules, which the reader of this schema has read, to a batch."""
    offsets = offsets_of([len(each.atoms) for each in molecules])
    check_total(int(offsets[-1]))
    first_atoms = np.repeat(offsets[:-1], [len(each.bonds) for each in molecules])
    ends = zip(*(each.arcs for each in molecules), strict=True)
    arcs = np.stack([np.concatenate(end) for end in ends]) + first_atoms
    labels = features = edge_labels = weights = names = edge_names = None
    if schema.vertex != "none":
        kinds, positions = _positions(chain.from_iterable(each.atoms for each in molecules))
        if schema.vertex == "labels":
            names, labels = _ranked(kinds, positions)
        else:
            features = np.array(kinds, dtype=np.float64)[positions]
    if schema.edge_labels == "labels":
        if schema.stereo:
            kinds, positions = _positions(chain.from_iterable(each.bonds for each in molecules))
        else:  # orders are halves of whole numbers
            halves = np.concatenate([each.bonds for each in molecules]) * 2
            found, positions = np.unique(halves.astype(np.uint8), return_inverse=True)
            kinds = [_bond_type(half / 2) for half in found.tolist()]
        edge_names, edge_labels = _ranked(kinds, positions)
    elif schema.edge_labels != "ignore":
        weights = np.concatenate([each.bonds for each in molecules])
    union = Union(offsets, arcs, labels, features, weights, edge_labels, schema.directed)
    batch, _ = GraphBatch.of_union(union)
    assert batch is not None  # RDKit's numbers are finite
    smiles = SmilesColumn.of([each.smiles for each in molecules])
    return replace(
        batch, label_values=names, edge_label_values=edge_names, smiles=smiles, schema=schema
    )


def _ranked(names: list[str], positions: Ints) -> tuple[Array, Ints]:
    """Sort distinct names, and return the positions among these."""
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return np.array([names[i] for i in order], dtype=str), rank[positions]


def _positions(items: Iterable[Hashable]) -> tuple[list[Any], Ints]:
    """Return the distinct items, and the position of each item among them."""
    everything = list(items)
    place = {item: i for i, item in enumerate(dict.fromkeys(everything))}
    positions = np.fromiter(map(place.__getitem__, everything), np.int64, len(everything))
    return list(place), positions


# ---------------------------------------------------------------------- stereo, bonds


def _cip_code(part: Any) -> str:
    """Return R, S, r or s of an atom, E or Z of a bond, and nothing where there is no such code."""
    return str(part.GetProp("_CIPCode")) if part.HasProp("_CIPCode") else ""


def _with_codes(names: Iterable[str], codes: Iterable[str]) -> list[str]:
    """Return the names of atoms or bonds, followed by their CIP codes."""
    return [f"{name} {code}" if code else name for name, code in zip(names, codes, strict=True)]


def _bond_type(order: float) -> str:
    return _BOND_TYPES.get(order) or f"order {order:g}"


def _bond_types(mol: Any, arcs: tuple[Ints, ...], orders: Floats) -> list[str]:
    """Return the type of each arc's bond, followed by its CIP code."""
    codes: dict[tuple[int, int], str] = {}
    for bond in mol.GetBonds():
        u, v = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        codes[u, v] = codes[v, u] = _cip_code(bond)
    ends = zip(*(part.tolist() for part in arcs), strict=True)
    return _with_codes(map(_bond_type, orders.tolist()), map(codes.__getitem__, ends))


#: What standardization may do to a molecule, and how it is reported.
STEPS = {
    "fragment": "reduced to the largest fragment",
    "charge": "neutralized",
    "tautomer": "written as the canonical tautomer",
    "stereo": "stereochemistry removed where tautomers do not keep it",
}

Standardizer = Callable[[Any], tuple[Any, tuple[str, ...]]]


def standardizer(how: Standardize) -> Standardizer:
    """Make a function from a molecule to the standardized one, and what was changed of it."""
    Chem = require("rdkit.Chem", "chem", "molecules")
    tools = require("rdkit.Chem.MolStandardize.rdMolStandardize", "chem", "molecules")
    choose, uncharge = tools.LargestFragmentChooser().choose, tools.Uncharger().uncharge
    canonical = tools.TautomerEnumerator().Canonicalize if how == "tautomer" else None

    def standardized(mol: Any) -> tuple[Any, tuple[str, ...]]:
        done = []
        try:
            if len(Chem.GetMolFrags(mol)) > 1:
                mol = choose(mol)
                done.append("fragment")
            neutral = uncharge(mol)
            if _charges(neutral) != _charges(mol):
                mol = neutral
                done.append("charge")
            if canonical is not None:
                tautomer = canonical(mol)
                if Chem.MolToSmiles(tautomer) != Chem.MolToSmiles(mol):
                    lost = _n_stereo(tautomer) < _n_stereo(mol)
                    mol = tautomer
                    done += ["tautomer", "stereo"] if lost else ["tautomer"]
        except (RuntimeError, ValueError) as error:  # RDKit's own, of molecules that it cannot keep
            why = str(error).strip().splitlines()[-1]
            raise GraphError(f"cannot be standardized ({why})") from None
        return mol, tuple(done)

    return standardized


def _n_stereo(mol: Any) -> int:
    """Count atoms and double bonds whose stereo is given.

    RDKit takes it away where hydrogens and double bonds can move in some tautomer.
    """
    atoms = sum(int(atom.GetChiralTag()) > 0 for atom in mol.GetAtoms())
    return atoms + sum(int(bond.GetStereo()) > 1 for bond in mol.GetBonds())  # 1 is "any"


def _charges(mol: Any) -> list[int]:
    return [atom.GetFormalCharge() for atom in mol.GetAtoms()]
