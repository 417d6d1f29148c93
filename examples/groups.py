"""Which group of atoms decides? Draws groups.png: three views of one explanation.

    python examples/groups.py [FOLDER]

Molecules are put together from heads, middles and tails. Those with a sulfonyl group are the class
1. A model learns it from SMILES alone; of a molecule that it has not seen, the picture shows what
each atom adds to the score, and what the score loses without each atom and without each group.
"""

from __future__ import annotations

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
    (found,) = explain(model, [SHOWN], target=1, groups=[molecule_groups(SHOWN)])
    for group in sorted(found.groups, key=lambda group: -group.effect)[:3]:
        print(f"without its {group.name} the score falls by {group.effect:.2f}")
    draw_molecule(SHOWN, found, path_of("groups.png"))
    shrink("groups.png")


if __name__ == "__main__":
    main()
