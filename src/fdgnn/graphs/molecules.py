"""Molecules as graphs: atoms are vertices, bonds are edges, hydrogens stay implicit.

A molecule is a SMILES or an RDKit ``Mol``. `MoleculeReader.read` makes a `Molecule` of it: what its
atoms and bonds carry. `molecule_batch` joins many of them to a `GraphBatch`. There is no other way
from a molecule to a graph (docs/decisions/0052-molecules.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, Literal

import numpy as np

from fdgnn.arrays import Array, Floats, Ints, offsets_of
from fdgnn.exceptions import GraphError
from fdgnn.extras import require
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.smiles import Smiles, SmilesColumn
from fdgnn.limits import MAX_SMILES, MAX_VERTICES
from fdgnn.records import cached_property
from fdgnn.schema import USUAL_ATOMS, Atoms, EdgeUse, InputSchema, ReadOptions, Standardize

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
_KINDS_OF_ATOMS = 2**14  # of which a reader keeps labels; molecules have a few hundred


def is_molecule(item: Any) -> bool:
    """Return whether something is a SMILES or an RDKit ``Mol``."""
    return isinstance(item, str) or hasattr(item, "GetAtomWithIdx")


def molecule_schema(
    atoms: Atoms = "typed",
    standardize: Standardize | None = None,
    stereo: bool = False,
    edge_labels: EdgeUse = "labels",
) -> InputSchema:
    """Return the schema of molecules whose atoms and bonds are read in this way."""
    n_features = len(ATOM_FEATURES) + len(STEREO_FEATURES) * stereo
    rich, bonds = atoms == "rich", BONDS[edge_labels]
    return InputSchema(
        source="molecules",
        directed=False,
        vertex="features" if rich else "labels",
        label_kind=None if rich else "text",
        n_features=n_features if rich else None,
        edge_labels=edge_labels,
        edge_kind=None if bonds is None else "text" if bonds == "types" else "number",
        edge_width=None if bonds is None else 1,
        edge_attribute=None if bonds is None else "bonds",
        atoms=atoms,
        standardize=standardize,
        stereo=stereo,
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
    cells : mapping or None
        The columns of its row with descriptors, by name.
    """

    atoms: list[Any]
    arcs: tuple[Ints, ...]
    bonds: Any
    smiles: Smiles
    changes: tuple[str, ...] = ()
    given: str | None = None
    cells: Mapping[str, Any] | None = None


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
        its canonical tautomer then; see `fdgnn.graphs.molecules`.
    stereo : bool
        Whether labels (or two more features) of atoms include R or S, and types of bonds E or Z.
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

    @staticmethod
    @lru_cache(maxsize=16)
    def of(options: ReadOptions) -> MoleculeReader:
        """Return the reader of molecules for these options, or a schema; it is made once."""
        bonds = BONDS["labels" if options.edge_labels == "auto" else options.edge_labels]
        atoms = options.atoms or USUAL_ATOMS
        return MoleculeReader(atoms, bonds, options.standardize, bool(options.stereo))

    def read(self, item: Any) -> Molecule:
        """Read a SMILES or a ``Mol``; raise GraphError if it is not a molecule."""
        with self.quietly():
            mol, smiles, changes = self._molecule(item, self._parse)
            if self.stereo:  # a copy with CIP codes on atoms and bonds, whatever their order
                mol = self._chem.Mol(mol)
                require("rdkit.Chem.rdCIPLabeler", "chem", "molecules").AssignCIPLabels(mol)
        arcs, orders = self._bonds(mol)
        if smiles is not None:
            written = Smiles(smiles, np.arange(mol.GetNumAtoms()))
        else:
            text = self._chem.MolToSmiles(mol)
            order = mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
            written = Smiles(text, np.argsort(np.array(list(order), dtype=np.int64)))
        return Molecule(
            self._describe(mol, smiles is not None and "|" not in smiles),
            arcs,
            _bond_types(mol, arcs, orders) if self.stereo and self.bonds == "types" else orders,
            written,
            changes,
            item if changes and isinstance(item, str) else None,
        )

    def molecule(self, item: Any) -> Any:
        """Return the ``Mol`` whose atoms are the vertices of the graph that `read` finds."""
        with self.quietly():
            return self._molecule(item, self._chem.MolFromSmiles)[0]

    @cached_property
    def quietly(self) -> Any:
        """The context in which RDKit reports nothing of molecules that it cannot parse."""
        return require("rdkit.rdBase", "chem", "molecules").BlockLogs

    # ------------------------------------------------------------------ molecules

    @cached_property
    def _chem(self) -> Any:
        return require("rdkit.Chem", "chem", "molecules")

    @cached_property
    def _standardizer(self) -> Standardizer | None:
        return None if self.standardize is None else standardizer(self.standardize)

    @cached_property
    def _parse(self) -> Callable[[str], Any]:
        """The function that parses a SMILES of which only the graph is needed.

        It returns None if the SMILES is not a molecule. Unless labels or standardization depend on
        it, stereo is not assigned, and hydrogens are not removed where none is an atom: both take
        time even if there are none.
        """
        parse: Callable[..., Any] = self._chem.MolFromSmiles
        sanitize = self._chem.SanitizeMol
        if self.stereo or self.standardize is not None:
            return parse
        as_written = self._chem.SmilesParserParams()
        as_written.sanitize = as_written.removeHs = False

        def parse_graph(smiles: str) -> Any:
            if "[H" not in smiles and "|" not in smiles:  # a bar begins an extension
                mol = parse(smiles, as_written)
                try:
                    if mol is not None and not sanitize(mol):
                        return mol
                except ValueError:
                    pass
            return parse(smiles)

        return parse_graph

    def _molecule(
        self, item: Any, parse: Callable[[str], Any]
    ) -> tuple[Any, str | None, tuple[str, ...]]:
        """Return a molecule as a ``Mol``, its SMILES, and what standardization changed.

        The atoms of the two, from left to right, are the vertices of its graph. The SMILES of an
        unchanged ``Mol`` is None.
        """
        if isinstance(item, str) or not is_molecule(item):
            mol, smiles = _parsed(self._chem, item, parse), item
        else:
            mol, smiles = _complete(self._chem, item), None
        changes: tuple[str, ...] = ()
        if self._standardizer is not None:
            clean, changes = self._standardizer(mol)
        if changes:  # written and parsed, so that the atoms of this SMILES are the vertices
            smiles = self._chem.MolToSmiles(clean)
            mol = _parsed(self._chem, smiles, parse)
        return mol, smiles, changes

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

    @cached_property
    def _kept(self) -> dict[tuple[Any, ...], Any]:
        """The labels or features of atoms, by the key of their kind."""
        return {}

    def _keep(self, key: tuple[Any, ...], atom: Any) -> Any:
        found = self._describe_atom(atom)
        # An unknown element, written "*", does not tell whether it is aromatic.
        if not key[0].startswith("[*") and len(self._kept) < _KINDS_OF_ATOMS:
            self._kept[key] = found
        return found

    def _describe_atom(self, atom: Any) -> Any:
        """Return the numbers of an atom, or the label of its type: "N 2 H1 +1 aromatic ring"."""
        if self.atoms == "rich":
            return _features(atom)
        charge = atom.GetFormalCharge()
        return (
            f"{atom.GetSymbol()} {atom.GetDegree()} H{atom.GetTotalNumHs()}"
            f"{f' {charge:+d}' if charge else ''}"
            f"{' aromatic' if atom.GetIsAromatic() else ''}{' ring' if atom.IsInRing() else ''}"
        )

    def _bonds(self, mol: Any) -> tuple[tuple[Ints, ...], Floats]:
        """Return the arcs of a molecule, and the orders of their bonds.

        A matrix takes a third of the time of asking each bond, in molecules of usual size.
        """
        matrix = self._chem.GetAdjacencyMatrix
        # RDKit may store matrices with the molecule, so each kind has a name.
        orders = matrix(mol, True, 0, False, "order")
        arcs = orders.nonzero()
        # A dative bond counts at one end only, and a bond of order 0 at none.
        if len(arcs[0]) < 2 * mol.GetNumBonds():
            arcs = matrix(mol).nonzero()
            orders = np.maximum(orders, orders.T)
        return arcs, orders[arcs]


# ---------------------------------------------------------------------- from molecules to a batch


def molecule_batch(molecules: Sequence[Molecule], schema: InputSchema) -> GraphBatch:
    """Join molecules, which the reader of this schema has read, to a batch."""
    offsets = offsets_of([len(each.atoms) for each in molecules])
    first_atoms = np.repeat(offsets[:-1], [len(each.bonds) for each in molecules])
    arcs = [
        np.concatenate(ends) + first_atoms
        for ends in zip(*(each.arcs for each in molecules), strict=True)
    ]
    labels = features = edge_labels = weights = None
    names = arc_names = np.array([], dtype=str)
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
        arc_names, edge_labels = _ranked(kinds, positions)
    elif schema.edge_labels != "ignore":
        weights = np.concatenate([each.bonds for each in molecules])
    batch = GraphBatch.from_arcs(
        offsets,
        arcs,
        weights=weights,
        labels=labels,
        features=features,
        edge_labels=edge_labels,
        directed=schema.directed,
    )
    return replace(
        batch,
        label_values=None if labels is None else names,
        edge_label_values=None if edge_labels is None else arc_names,
        smiles=SmilesColumn.of([each.smiles for each in molecules]),
        schema=schema,
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


# ---------------------------------------------------------------------- from anything to molecules


def _parsed(Chem: Any, smiles: Any, parse: Callable[[str], Any]) -> Any:
    if not isinstance(smiles, str) and smiles is not None and smiles == smiles:
        raise GraphError(f"expected a SMILES or Mol, got {type(smiles).__name__}")
    if not isinstance(smiles, str) or not smiles.strip():
        raise GraphError("the SMILES is missing")
    if MAX_SMILES.is_below(len(smiles)):
        raise GraphError(f"the SMILES has {len(smiles)} characters; {MAX_SMILES.in_words}")
    word = smiles if _is_plain(smiles) else smiles.split(None, 1)[0]
    if not _is_plain(word):  # RDKit takes such characters off both ends without a word
        foreign = [c for c in word if not _is_plain(c)]
        raise GraphError(f"the SMILES {_short(smiles)} has {foreign[0]!a}, which no SMILES has")
    mol = parse(smiles)
    if mol is None:  # is the grammar wrong, or the chemistry?
        mol = Chem.MolFromSmiles(smiles, sanitize=False)
        if mol is None:
            raise GraphError(f"the SMILES {_short(smiles)} cannot be parsed")
        found = Chem.DetectChemistryProblems(mol)
        why = f": {found[0].Message()}" if found else ""
        raise GraphError(f"the SMILES {_short(smiles)} is not a molecule{why}")
    if mol.GetNumAtoms() == 0:
        raise GraphError(f"the SMILES {_short(smiles)} has no atoms")
    words = smiles.split(None, 2)
    # RDKit reads the first word; what follows may be a name.
    if len(words) > 1 and Chem.MolFromSmiles(words[1], sanitize=False) is not None:
        raise GraphError(
            f"the SMILES {_short(smiles)} has a second molecule after a space; write a dot between "
            "the components of one substance"
        )
    return mol


def _is_plain(text: str) -> bool:
    """Return whether a text has only characters that a SMILES can have, or blanks."""
    return text.isascii() and text.isprintable()


def _complete(Chem: Any, mol: Any) -> Any:
    """Complete a molecule as parsing its SMILES would: implicit hydrogens, rings."""
    if mol.GetNumAtoms() == 0:
        raise GraphError("it is a molecule without atoms")
    if MAX_VERTICES.is_below(mol.GetNumAtoms()):
        raise GraphError(f"it has {mol.GetNumAtoms()} vertices; {MAX_VERTICES.in_words}")
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


# ---------------------------------------------------------------------- what atoms carry


def _features(atom: Any) -> tuple[float, ...]:
    """Return the numbers `ATOM_FEATURES` of an atom."""
    elements = [atom.GetAtomicNum() == number for number in _ELEMENTS.values()]
    numbers = (
        *elements,
        not any(elements),
        atom.GetFormalCharge(),
        atom.GetTotalNumHs(),
        atom.GetIsAromatic(),
        atom.IsInRing(),
        *(int(atom.GetHybridization()) == number for number in _HYBRIDIZATIONS.values()),
    )
    return tuple(map(float, numbers))


def _cip_code(part: Any) -> str:
    """Return R, S, r or s of an atom, E or Z of a bond, and nothing where there is no such code."""
    return str(part.GetProp("_CIPCode")) if part.HasProp("_CIPCode") else ""


def _with_codes(names: Iterable[str], codes: Iterable[str]) -> list[str]:
    """Return the names of atoms or bonds, followed by their CIP codes."""
    return [f"{name} {code}" if code else name for name, code in zip(names, codes, strict=True)]


# ---------------------------------------------------------------------- what bonds carry


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


#: What standardization may do to a molecule, and how it is told.
STEPS = {
    "fragment": "reduced to the largest fragment",
    "charge": "neutralized",
    "tautomer": "written as the canonical tautomer",
    "stereo": "left without some of their stereo by the rules of tautomers",
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
            raise GraphError(f"it cannot be standardized ({why})") from None
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
