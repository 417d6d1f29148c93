"""Three views of one explanation: atoms, effects of atoms, effects of groups. Draws groups.png.

    python examples/groups.py [FOLDER]

Molecules are combined from heads, middles and tails. Molecules with a sulfonyl group are class 1.
A model learns this from SMILES alone. For a molecule outside of the training data, the picture
shows attributions of atoms, and the change of the score without each atom and without each group.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from pictures import path_of, shrink

from fdgnn import GraphClassifier, WLCounts, draw_molecule, explain, molecule_groups

HEADS = ("CC", "CCC", "CC(C)", "c1ccccc1", "C1CCCCC1", "c1ccncc1", "CCOC", "Clc1ccccc1")
MIDDLES = ("C", "CC", "O", "CO", "N", "CNC", "S")
TAILS = ("C", "CCC", "C1CCCC1", "c1ccc(C)cc1", "CCN(C)C", "CCO", "c1ccsc1", "C(C)(C)C")
SHOWN = "Cc1c(Sc2ccc(Cl)cc2)c3c(cccc3n1CC(=O)O)S(=O)(=O)C"


def main() -> None:
    smiles, y = [], []
    for head, middle, tail in product(HEADS, MIDDLES, TAILS):
        smiles += [f"{head}{middle}{tail}", f"{head}{middle}S(=O)(=O){tail}"]
        y += [0, 1]
    model = GraphClassifier(WLCounts(n_iterations=2), "linear").fit(smiles, np.array(y))
    with warnings.catch_warnings(action="ignore"):  # some of its atom types are new to the model
        (found,) = explain(model, [SHOWN], target=1, groups=[molecule_groups(SHOWN)])
    for group in sorted(found.groups, key=lambda group: -group.effect)[:3]:
        print(f"without its {group.name} the score falls by {group.effect:.2f}")
    draw_molecule(SHOWN, found, path_of("groups.png"))
    shrink("groups.png")


if __name__ == "__main__":
    main()
