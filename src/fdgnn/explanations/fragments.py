"""Groups of atoms that a chemist would name: rings, functional groups, and matches of a SMARTS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.explanations.groups import VertexGroup, connected_pieces
from fdgnn.extras import require
from fdgnn.graphs.molecules import MoleculeReader
from fdgnn.graphs.reading import reading_of

#: Functional groups by name, those with more atoms before the ones they contain.
FUNCTIONAL_GROUPS: dict[str, str] = {
    "sulfonamide": "[SX4](=[OX1])(=[OX1])[NX3]",
    "sulfonic acid or ester": "[SX4](=[OX1])(=[OX1])[OX2,OX1-]",
    "sulfonyl": "[SX4](=[OX1])(=[OX1])",
    "sulfoxide": "[SX3]=[OX1]",
    "phosphate or phosphonate": "[PX4](=[OX1])([OX2,OX1-])[OX2,OX1-]",
    "phosphoryl": "[PX4]=[OX1,SX1]",
    "nitro": "[$([NX3](=O)=O),$([NX3+](=O)[O-])](~[OX1])~[OX1]",
    "azide": "[NX2]=[NX2+]=[NX1-]",
    "diazo or azo": "[NX2]=[NX2,NX2+]",
    "nitroso": "[NX2]=[OX1]",
    "guanidine": "[NX3][CX3](=[NX2,NX3+])[NX3]",
    "urea": "[NX3][CX3](=[OX1])[NX3]",
    "thiourea": "[NX3][CX3](=[SX1])[NX3]",
    "carbamate": "[NX3][CX3](=[OX1])[OX2]",
    "carbonate": "[OX2][CX3](=[OX1])[OX2]",
    "imide": "[CX3](=[OX1])[NX3][CX3](=[OX1])",
    "anhydride": "[CX3](=[OX1])[OX2][CX3](=[OX1])",
    "hydroxamic acid": "[CX3](=[OX1])[NX3][OX2H1]",
    "carboxylic acid": "[CX3](=[OX1])[OX2H1,OX1-]",
    "ester": "[CX3](=[OX1])[OX2H0]",
    "amide": "[CX3](=[OX1])[NX3]",
    "acyl halide": "[CX3](=[OX1])[F,Cl,Br,I]",
    "thioamide": "[CX3](=[SX1])[NX3]",
    "thioester": "[CX3](=[OX1])[SX2]",
    "isocyanate or isothiocyanate": "[NX2]=[CX2]=[OX1,SX1]",
    "aldehyde": "[CX3;H1,H2]=[OX1]",
    "ketone": "[CX3;$([CX3]([#6])[#6])]=[OX1]",
    "amidine": "[CX3](=[NX2,NX3+])[NX3]",
    "oxime": "[CX3]=[NX2][OX2]",
    "hydrazone": "[CX3]=[NX2][NX3]",
    "imine": "[CX3]=[NX2]",
    "nitrile": "[CX2]#[NX1]",
    "hydrazine": "[NX3;!$(N~[OX1]);!$(N[CX3]=O)][NX3;!$(N~[OX1]);!$(N[CX3]=O)]",
    "trifluoromethyl": "[CX4](F)(F)F",
    "boronic acid or ester": "[BX3]([OX2])[OX2]",
    "peroxide": "[OX2][OX2]",
    "disulfide": "[SX2][SX2]",
    "alkyne": "[CX2]#[CX2]",
    "alkene": "[CX3;!a]=[CX3;!a]",
    "fluorine": "[F]",
    "chlorine": "[Cl]",
    "bromine": "[Br]",
    "iodine": "[I]",
    "methoxy": "[OX2H0;!r;!$(O[CX3]=O)][CH3]",
    "hydroxyl": "[OX2H1]",
    "thiol": "[SX2H1]",
    "ether": "[OX2;!r;$([OX2]([#6])[#6])]",
    "thioether": "[SX2;!r;$([SX2]([#6])[#6])]",
    "ammonium": "[NX4+]",
    "amine, primary": "[NX3H2;$([NX3][#6])]",
    "amine, secondary": "[NX3H1;!r;$([NX3]([#6])[#6])]",
    "amine, tertiary": "[NX3H0;!r;$([NX3]([#6])([#6])[#6])]",
}


def molecule_groups(
    molecule: Any, smarts: str | Sequence[str] = (), *, like: Any = None
) -> list[VertexGroup]:
    """Find the groups of a molecule's atoms.

    These are the matches of the given SMARTS, every ring, every functional group that is not a
    part of another one (`FUNCTIONAL_GROUPS`), and the connected parts of all other atoms. Groups
    may share atoms: a lactam's amide lies in its ring.

    Parameters
    ----------
    molecule : str or RDKit Mol
        Atoms are counted as in the SMILES, from 0; hydrogens are implicit.
    smarts : str or sequence of str
        Substructures of your own: each a SMARTS, and after a space a name, if it is to have one.
    like : fitted model or Reading, optional
        The model to explain. It matters if the model standardizes molecules, since groups are then
        those of the molecule that results.

    Returns
    -------
    list of VertexGroup

    Raises
    ------
    ValueError
        A SMARTS, or the molecule, cannot be parsed.

    Examples
    --------
    >>> from fdgnn import molecule_groups
    >>> [group.name for group in molecule_groups("CCc1ccccc1C(=O)O", ["cC benzylic"])]
    ['benzylic', 'benzylic', 'aromatic ring of 6', 'carboxylic acid', 'chain of 2 C']
    """
    mol = _molecule(molecule, like)
    own = _user_groups(mol, [smarts] if isinstance(smarts, str) else smarts)
    rings = [VertexGroup(_ring_name(mol, ring), np.sort(ring)) for ring in _rings(mol)]
    functional = list(_functional(mol))
    taken = {int(v) for group in (*rings, *functional) for v in group.vertices}
    return [*own, *rings, *functional, *_rest(mol, taken)]


def atom_symbols(molecule: Any) -> list[str]:
    """Give the element of each atom, for tables where vertices have numbers instead of labels."""
    return [atom.GetSymbol() for atom in _molecule(molecule).GetAtoms()]


def check_smarts(smarts: Sequence[str]) -> None:
    """Raise ValueError for the first SMARTS that cannot be parsed."""
    for one in smarts:
        _query(one)


def name_of_smarts(smarts: str) -> str:
    """Give what follows a SMARTS after a space, or the SMARTS itself."""
    pattern, name = _pattern_and_name(smarts)
    return name or pattern


def _molecule(molecule: Any, like: Any = None) -> Any:
    reading = reading_of(like)
    reader = MoleculeReader() if reading is None else MoleculeReader.of(reading)
    return reader.molecule(molecule).mol


# ---------------------------------------------------------------------- the kinds of groups


def _user_groups(mol: Any, smarts: Sequence[str]) -> Iterator[VertexGroup]:
    for one in smarts:
        name = name_of_smarts(one)
        for match in mol.GetSubstructMatches(_query(one)):
            yield VertexGroup(name, np.unique(match))


def _rings(mol: Any) -> list[Any]:
    return [np.array(ring, dtype=np.int64) for ring in mol.GetRingInfo().AtomRings()]


def _ring_name(mol: Any, ring: Any) -> str:
    atoms = [mol.GetAtomWithIdx(int(v)) for v in ring]
    aromatic = "aromatic ring" if all(atom.GetIsAromatic() for atom in atoms) else "ring"
    others = sorted({atom.GetSymbol() for atom in atoms} - {"C"})
    beside = f" with {', '.join(others)}" if others else ""
    return f"{aromatic} of {len(ring)}{beside}"


def _functional(mol: Any) -> Iterator[VertexGroup]:
    """Functional groups, the largest first; none that lies inside another."""
    kept: list[set[int]] = []
    for name, pattern in FUNCTIONAL_GROUPS.items():
        for match in mol.GetSubstructMatches(_query(pattern)):
            if not any(set(match) <= other for other in kept):
                kept.append(set(match))
                yield VertexGroup(name, np.unique(match))


def _rest(mol: Any, taken: set[int]) -> Iterator[VertexGroup]:
    """Connected parts of the atoms that are in no ring and no functional group."""
    left = np.setdiff1d(np.arange(mol.GetNumAtoms()), list(taken))
    bonds = sp.csr_array(_chem().GetAdjacencyMatrix(mol))
    for part in connected_pieces(bonds, left):
        yield VertexGroup(_chain_name(mol, part.tolist()), part)


def _chain_name(mol: Any, part: list[int]) -> str:
    symbols = [mol.GetAtomWithIdx(v).GetSymbol() for v in part]
    if len(set(symbols)) > 1:
        return f"chain of {len(part)} atoms"
    return f"chain of {len(part)} {symbols[0]}" if len(part) > 1 else f"single {symbols[0]}"


# ---------------------------------------------------------------------- RDKit


def _pattern_and_name(smarts: str) -> tuple[str, str]:
    pattern, *name = smarts.split(maxsplit=1) or [""]
    return pattern, " ".join(name).strip()


@cache
def _query(smarts: str) -> Any:
    pattern, _ = _pattern_and_name(smarts)
    with require("rdkit.rdBase", "chem", "Groups of atoms").BlockLogs():
        query = _chem().MolFromSmarts(pattern) if pattern else None
    if query is None:
        raise ValueError(f"`smarts`: {smarts[:60]!r} cannot be parsed as a SMARTS")
    return query


def _chem() -> Any:
    return require("rdkit.Chem", "chem", "Groups of atoms")
