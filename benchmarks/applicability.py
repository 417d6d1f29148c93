"""Measures of the applicability domain, compared on molecules.

    python -m benchmarks.applicability [--data FOLDER]

On halves of datasets of molecules, with RBF kernel ridge regression on WL features of three
iterations. For each measure: the share of the other half beyond 99 % of the training graphs, the
mean error of these and of the other graphs, the rank correlation of measure and error, and how well
it separates molecules of other datasets from the other half (ROC AUC, share beyond the limit).
FOLDER has NAME.csv with the columns smiles and target; the default is ``chem`` in the data
home (FDGNN_DATA). Results are written to results/applicability.json, which decision 40 quotes.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from fdgnn import GraphRegressor, GraphReservoir, WLCounts, read_graphs
from fdgnn.applicability import USUAL, Leverage, SeenFeatures
from fdgnn.arrays import dense
from fdgnn.exceptions import ConvergenceWarning, UnknownLabelWarning

OUT = Path(__file__).parent.parent / "results" / "applicability.json"
NAMES = ("LIPO", "AQSOLDB", "BBBP", "BACE")
MOST = 2000  # molecules of a half


def read(name, folder):
    table = read_graphs(folder / f"{name}.csv", target="target", atoms="typed", numeric=True)
    return table.graphs, table.y


# Each gives the number of the training graphs, each beside the others, and a function for new ones.


def unknown_labels(train, model, n_iterations):
    encoder = WLCounts(n_iterations=n_iterations).fit(train)
    seen, own = SeenFeatures.fit(encoder.transform(train))
    return own, lambda graphs: seen.of(encoder, graphs, encoder.transform(graphs))


def nearest(train, model):
    encoder, readout = model.estimators_[0].encoder, model.estimators_[0].readout
    X = readout.examples

    def distances(Z):
        squares = [np.asarray(A.multiply(A).sum(axis=1)).ravel() for A in (Z, X)]
        far = squares[0][:, None] - 2 * dense(Z @ X.T) + squares[1]
        return 1 - np.exp(-readout.sharpness * np.maximum(far, 0))

    own = distances(X)
    np.fill_diagonal(own, 1)
    return own.min(axis=1), lambda graphs: distances(encoder.transform(graphs)).min(axis=1)


def leverage(train, model):
    encoder = GraphReservoir(n_units=300, handle_unknown="ignore", random_state=0).fit(train)
    found, own = Leverage.fit(encoder.transform(train))
    return own, lambda graphs: found.of(encoder, graphs, encoder.transform(graphs))


NUMBERS = {
    "unknown WL labels, 1 iteration": lambda train, model: unknown_labels(train, model, 1),
    "unknown WL labels, 2 iterations": lambda train, model: unknown_labels(train, model, 2),
    "unknown WL labels, 3 iterations": lambda train, model: unknown_labels(train, model, 3),
    "nearest training graph": nearest,
    "leverage of a reservoir": leverage,
}


def measured(own, number, test, errors, foreign):
    limit, found = np.quantile(own, USUAL), number(test)
    beyond = found > limit
    others = {name: number(graphs) for name, graphs in foreign.items()}
    return {
        "unlike": beyond.mean(),
        "error_unlike": errors[beyond].mean() if beyond.any() else None,
        "error_others": errors[~beyond].mean(),
        "rank_correlation": spearmanr(found, errors)[0],
        "foreign_auroc": {
            name: roc_auc_score(np.repeat([0, 1], [len(found), len(new)]), np.append(found, new))
            for name, new in others.items()
        },
        "foreign_unlike": {name: (new > limit).mean() for name, new in others.items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("FDGNN_DATA", "")) / "chem"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UnknownLabelWarning)
    sets, results = {name: read(name, options.data) for name in NAMES}, {}
    for name, (graphs, y) in sets.items():
        rng = np.random.default_rng(0)
        order = rng.permutation(len(y))
        half = min(len(y) // 2, MOST)
        train, test = graphs[order[:half]], graphs[order[half : 2 * half]]
        model = GraphRegressor("wl", random_state=0).fit(train, y[order[:half]])
        errors = np.abs(model.predict(test) - y[order[half : 2 * half]])
        foreign = {n: g[rng.permutation(len(g))[:500]] for n, (g, _) in sets.items() if n != name}
        results[name] = {
            what: measured(*make(train, model), test, errors, foreign)
            for what, make in NUMBERS.items()
        }
        for what, found in results[name].items():
            theirs = found["error_unlike"] or np.nan
            print(
                f"{name:8} {what:25} unlike {found['unlike']:.3f}, error {theirs:.2f} beside "
                f"{found['error_others']:.2f}, correlation {found['rank_correlation']:.2f}, AUROC "
                + ", ".join(f"{n} {v:.2f}" for n, v in found["foreign_auroc"].items()),
                flush=True,
            )
    OUT.write_text(json.dumps(results, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
