"""Do explanations find planted rules? Substructures in molecules.

    python -m benchmarks.planted [NAME ...] [--data FOLDER] [--seeds 3] [--table]

The class of a molecule is whether it has a substructure. A model (`AutoGraphClassifier`, atoms read
as by `fdgnn fit`) learns it from SMILES and classes alone, and explains other molecules that have
the substructure. Each view assigns a number to every atom, and the ROC AUC measures how well these
numbers rank the planted atoms above the others: 1 if all are above, 0.5 by chance. It is the mean
over molecules, and over the seeds that draw the molecules; "pooled" ranks the atoms of all
molecules together.

- attributions: what each atom adds to the score;
- deletion: the effect of deleting each atom;
- groups: the largest effect of deleting a group that contains the atom: rings, functional
  groups, chains. Most planted rules are not among the functional groups.

A rule is left out if fewer than 15 training molecules have it. FOLDER has NAME.csv with the
columns smiles and target; the default is ``chem`` in the data home (FDGNN_DATA). Results are
written to results/planted.json; ``--table`` only shows them. docs/how-to/explanations.md quotes
them.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from fdgnn import AutoGraphClassifier, explain, molecule_groups, read_graphs
from fdgnn.exceptions import FDGNNWarning

OUT = Path(__file__).parent.parent / "results" / "planted.json"
RULES = {
    "sulfonyl": "S(=O)(=O)",
    "nitro": "[N+](=O)[O-]",
    "carboxylic acid": "C(=O)[OH1]",
    "amide": "C(=O)[NX3]",
    "halogen on an aromatic ring": "c[F,Cl,Br,I]",
    "nitrile": "C#N",
    "trifluoromethyl": "C(F)(F)F",
    "methoxy on an aromatic ring": "c[OX2][CH3]",
    "phenol": "c[OH]",
    "tertiary amine": "[NX3;!$(N-C=O);!$(N-a)]([#6])([#6])[#6]",
    "piperazine": "N1CCNCC1",
    "ethylene diamine": "[NX3]-[CH2]-[CH2]-[NX3]",
}
TRAIN, EXPLAINED, LEAST = 1000, 60, 15
VIEWS = ("attributions", "deletion", "groups")


def values_of(explanation):
    """A number for each atom in each view."""
    groups = np.full(len(explanation.vertices), -np.inf)
    for group in explanation.groups:
        groups[group.vertices] = np.maximum(groups[group.vertices], group.effect)
    return dict(zip(VIEWS, (explanation.vertices, explanation.vertex_effects, groups), strict=True))


def matches_of(smiles, pattern):
    """The planted atoms of each molecule, as truth values."""
    from rdkit import Chem

    query = Chem.MolFromSmarts(pattern)
    for molecule in map(Chem.MolFromSmiles, smiles):
        found = [atom for match in molecule.GetSubstructMatches(query) for atom in match]
        yield np.isin(np.arange(molecule.GetNumAtoms()), found)


def planted(table, pattern, seed):
    """Train on some molecules, explain others, and rank their atoms."""
    truth = list(matches_of(table.smiles, pattern))
    y = np.array([own.any() for own in truth]).astype(int)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:TRAIN], order[TRAIN:]
    if y[train].sum() < LEAST:
        return None
    model = AutoGraphClassifier(random_state=seed).fit(table.graphs[train], y[train])
    some = [i for i in test if y[i] and not truth[i].all()][:EXPLAINED]
    groups = [molecule_groups(table.smiles[i]) for i in some]
    explained = explain(model, table.graphs[some], target=1, groups=groups)
    right = (model.predict(table.graphs[test[:500]]) == y[test[:500]]).mean()
    return ranked([truth[i] for i in some], [values_of(one) for one in explained]) | {
        "accuracy": right,
        "positives": int(y[train].sum()),
        "explained": len(some),
    }


def ranked(truth, values):
    """Areas of each view, the mean over molecules and pooled."""
    found = {}
    for view in VIEWS:
        own = [one[view] for one in values]
        areas = [roc_auc_score(t, v) for t, v in zip(truth, own, strict=True)]
        found[view] = np.mean(areas)
        found[f"{view}, pooled"] = roc_auc_score(np.concatenate(truth), np.concatenate(own))
    return found


def tell(results):
    shown = (*VIEWS, *(f"{view}, pooled" for view in VIEWS[1:]), "accuracy")
    for name, rules in results.items():
        means = {
            rule: [np.mean([run[column] for run in runs]) for column in shown]
            for rule, runs in rules.items()
            if runs
        }
        means["mean"] = np.mean(list(means.values()), axis=0)
        means["lowest"] = np.min(list(means.values()), axis=0)
        print(f"| {name} | {' | '.join(shown)} |\n|---|{'---|' * len(shown)}")
        for rule, cells in means.items():
            print(f"| {rule} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=("LIPO", "BBBP"))
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("FDGNN_DATA", "")) / "chem"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", FDGNNWarning)
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in () if options.table else options.names:
        table = read_graphs(options.data / f"{name}.csv", target="target", atoms="typed")
        results[name] = {}
        for rule, pattern in RULES.items():
            with threadpool_limits(1):
                runs = [planted(table, pattern, seed) for seed in range(options.seeds)]
            results[name][rule] = [run for run in runs if run is not None]
            print(name, rule, results[name][rule][:1], flush=True)
            OUT.write_text(json.dumps(results, indent=1, default=float) + "\n")
    tell(results)


if __name__ == "__main__":
    main()
