"""Molecules made comparable: one fragment, no charges and, if asked for, one tautomer.

The same substance is often drawn in several ways: as a salt or without its counter-ion, charged or
neutral, as one tautomer or another. Standardized, all of them are one graph. The rules are those
of RDKit's ``MolStandardize``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fdgnn.exceptions import GraphError
from fdgnn.extras import require
from fdgnn.schema import Standardize

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
