"""Coverage of conformal prediction sets and intervals, and errors of graphs out of domain.

    python -m benchmarks.coverage [--data FOLDER] [--seeds 5] [--both] [NCI1 HIV ...]
    python -m benchmarks.coverage --table     # of existing results

For each seed, a model (`AutoGraphClassifier`) is trained on one half of the graphs, drawn by the
seed, and tested on the other half. Models of molecules also predict molecules of the other
datasets. FOLDER has NAME.csv with the columns smiles and target; the default is ``chem`` in the
data home (FDGNN_DATA). The classes of HIV are CI, and CM or CA; from MOSES.csv.gz, 24,000 molecules
are drawn, and the target is RDKit's logP. Results are written to results/coverage.json after each
seed; decision 40 and docs/how-to/uncertainty.md quote them.

With n training and m test graphs, the number of covered graphs is beta-binomial. The last table has
its standard deviation, and the probabilities that one seed, and all seeds, are within a point of
95 %. With --both each half is also tested with a model of the other half. If one half is harder by
chance, its model has wider sets, and the model of the other half covers fewer of its graphs, so
most of the random variation cancels.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import betabinom
from threadpoolctl import threadpool_limits

from fdgnn import AutoGraphClassifier, AutoGraphRegressor, as_batch, load_tu, read_graphs
from fdgnn.exceptions import ConvergenceWarning, UnknownLabelWarning
from fdgnn.uncertainty import ConformalScores

OUT = Path(__file__).parent.parent / "results" / "coverage.json"
CHEM = {"BBBP": False, "LIPO": True, "AQSOLDB": True}  # whether the target is a number
NAMES = ("NCI1", "COLLAB", *CHEM, "HIV", "MOSES")
N_MOSES = 24_000
COVERAGES = (0.8, 0.9, 0.95)
FOREIGN = 500  # molecules of each other dataset


def read(name, folder):
    if name == "MOSES":
        return read_moses(folder)
    if name == "HIV":
        table = read_graphs(folder / "HIV.csv", target="target", atoms="typed")
        return table.graphs, np.where(table.y == "CI", 0, 1)
    if name not in CHEM:
        return load_tu(name)
    path = folder / f"{name}.csv"
    table = read_graphs(path, target="target", atoms="typed", numeric=CHEM[name])
    return table.graphs, table.y


def read_moses(folder):
    from rdkit import Chem
    from rdkit.Chem.Crippen import MolLogP

    with gzip.open(folder / "MOSES.csv.gz", "rt") as file:
        smiles = [row[0] for row in csv.reader(file)][1:]
    chosen = np.sort(np.random.default_rng(0).choice(len(smiles), N_MOSES, replace=False))
    molecules = [Chem.MolFromSmiles(smiles[i]) for i in chosen]
    return as_batch(molecules), np.array([MolLogP(molecule) for molecule in molecules])


def halves(n, seed):
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


# ---------------------------------------------------------------------- what is measured


def of_sets(model, graphs, y):
    codes = np.searchsorted(model.classes_, y)
    wrong = (model.predict(graphs) != y).astype(float)
    found = {}
    for coverage in COVERAGES:
        for by_class in (False, True):
            sets = model.predict_set(graphs, coverage, by_class=by_class)
            covered = sets[np.arange(len(y)), codes]
            found[f"{coverage}{' by class' if by_class else ''}"] = {
                "covered": covered.mean(),
                "covered_classes": [covered[codes == c].mean() for c in range(len(model.classes_))],
                "size": sets.sum(axis=1).mean(),
                "empty": (~sets.any(axis=1)).mean(),
            }
    return wrong, found


def of_intervals(model, graphs, y):
    """Intervals of the model, and such of one width, from the same out-of-fold errors."""
    found, predicted, distances = {}, model.predict(graphs), model.domain_distance(graphs)
    quarters = np.array_split(np.argsort(distances, kind="stable"), 4)
    errors = ConformalScores.of([model._training_graphs.errors[:, 0]])
    for coverage in COVERAGES:
        own = model.predict_interval(graphs, coverage).T
        reach = errors.limit(coverage)
        intervals = {"": own, " one width": (predicted - reach, predicted + reach)}
        for name, (low, high) in intervals.items():
            covered, outside = (low <= y) & (y <= high), np.maximum(low - y, y - high)
            score = high - low + 2 / (1 - coverage) * np.maximum(outside, 0)
            found[f"{coverage}{name}"] = {
                "covered": covered.mean(),
                "size": (high - low).mean(),
                "score": score.mean(),  # the interval score: smaller is better
                "covered_quarters": [covered[some].mean() for some in quarters],
            }
    return np.abs(predicted - y), found


def out_of_domain(model, graphs, errors, foreign):
    unlike = np.zeros(len(graphs), dtype=bool)
    unlike[list(model.out_of_domain(graphs))] = True
    return {
        "out_of_domain": unlike.mean(),
        "error_unlike": errors[unlike].mean() if unlike.any() else None,
        "error_others": errors[~unlike].mean(),
        "foreign": {
            name: len(model.out_of_domain(others)) / len(others) for name, others in foreign.items()
        },
    }


def fitted(graphs, y, seed):
    model = (
        AutoGraphRegressor(intervals=True, random_state=seed)
        if y.dtype.kind == "f"
        else AutoGraphClassifier(probability=True, random_state=seed)
    )
    return model.fit(graphs, y)


def of_answers(model, graphs, y):
    return (of_intervals if y.dtype.kind == "f" else of_sets)(model, graphs, y)


def measured(graphs, y, seed, foreign, other_too):
    train, test = halves(len(y), seed)
    start = time.perf_counter()
    model = fitted(graphs[train], y[train], seed)
    seconds = time.perf_counter() - start
    errors, found = of_answers(model, graphs[test], y[test])
    other = {}
    if other_too:
        swapped = fitted(graphs[test], y[test], seed)
        other = {"other_half": of_answers(swapped, graphs[train], y[train])[1]}
    return other | {
        "n_test": len(test),
        "seconds": round(seconds, 1),
        "error": errors.mean(),
        "coverage": found,
        "domain": out_of_domain(model, graphs[test], errors, foreign),
    }


def others_than(name, folder):
    """Some molecules of the other datasets, for models of molecules."""
    if name not in CHEM:
        return {}
    rng = np.random.default_rng(0)
    found = {other: read(other, folder)[0] for other in CHEM if other != name}
    return {other: g[np.sort(rng.permutation(len(g))[:FOREIGN])] for other, g in found.items()}


# ---------------------------------------------------------------------- tables


def mean(runs, *path):
    """Mean over seeds of a number, or None where no run has it."""
    found = []
    for run in runs:
        for name in path:
            run = run[name]
        found += [] if run is None else [run]
    return np.mean(found) if found else None


def tell(results):
    """Print the tables of the decision's page."""
    print("| | asked for | covered | of each seed | size | empty | worst part | interval score |")
    print("|---|---|---|---|---|---|---|---|")
    for name, runs in results.items():
        for key, first in runs[0]["coverage"].items():
            each = ", ".join(f"{100 * run['coverage'][key]['covered']:.1f}" for run in runs)
            covered, size = (mean(runs, "coverage", key, what) for what in ("covered", "size"))
            cells = [name, key, f"{100 * covered:.1f}", each, f"{size:.2f}"]
            if "empty" in first:
                classes = np.mean([r["coverage"][key]["covered_classes"] for r in runs], axis=0)
                empty = mean(runs, "coverage", key, "empty")
                cells += [f"{100 * empty:.1f}", f"{100 * classes.min():.1f}", ""]
            elif "score" in first:
                parts = np.mean([r["coverage"][key]["covered_quarters"] for r in runs], axis=0)
                score = mean(runs, "coverage", key, "score")
                cells += ["", f"{100 * parts.min():.1f}", f"{score:.2f}"]
            print(f"| {' | '.join(cells)} |")
    print("\n| | unlike | their error | error of the others | unlike among others |")
    print("|---|---|---|---|---|")
    for name, runs in results.items():
        unlike, theirs, others = (
            mean(runs, "domain", what) for what in ("out_of_domain", "error_unlike", "error_others")
        )
        foreign = ", ".join(
            f"{other} {100 * mean(runs, 'domain', 'foreign', other):.1f} %"
            for other in runs[0]["domain"]["foreign"]
        )
        numbers = f"{100 * unlike:.1f} % | {theirs:.3f} | {others:.3f}"
        print(f"| {name} | {numbers} | {foreign} |")
    tell_chance(results)


def tell_chance(results, coverage=0.95, within=0.01):
    """Print how far a seed is from what was asked for, and how far it would be by chance alone."""
    head = [
        "",
        "graphs asked about",
        "by chance, points",
        "one seed",
        "all seeds",
        "within",
        "seeds",
    ]
    print(f"\n| {' | '.join([*head, 'both halves of each seed'])} |")
    print("|---" * (len(head) + 1) + "|")
    for name, runs in sorted(results.items(), key=lambda found: found[1][0]["n_test"]):
        n_test = runs[0]["n_test"]
        rank = math.ceil((n_test + 1) * coverage)  # both halves have as many graphs, or one less
        chance = betabinom(n_test, rank, n_test + 1 - rank)
        ends = n_test * (coverage - within), n_test * (coverage + within)
        one = chance.cdf(math.floor(ends[1])) - chance.cdf(math.ceil(ends[0]) - 1)
        covered = np.array([run["coverage"][str(coverage)]["covered"] for run in runs])
        inside = int((abs(covered - coverage) <= within).sum())
        cells = [f"{n_test:,}", f"{100 * chance.std() / n_test:.2f}"]
        cells += [f"{100 * one:.0f} %", f"{100 * one ** len(runs):.0f} %"]
        cells += [f"{inside} of {len(runs)}", _ends(covered)]
        others = [
            run["other_half"][str(coverage)]["covered"] for run in runs if "other_half" in run
        ]
        cells += [_ends((covered + others) / 2) if others else ""]
        print(f"| {name} | {' | '.join(cells)} |")


def _ends(shares):
    return f"{100 * shares.min():.1f} to {100 * shares.max():.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("FDGNN_DATA", "")) / "chem"
    )
    parser.add_argument("--both", action="store_true", help="ask about both halves, in turn")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UnknownLabelWarning)
    for name in () if options.table else options.names:
        (graphs, y), foreign = read(name, options.data), others_than(name, options.data)
        runs = []
        for seed in range(options.seeds):
            with threadpool_limits(1):
                runs.append(measured(graphs, y, seed, foreign, options.both))
            results = json.loads(OUT.read_text()) if OUT.exists() else {}
            text = json.dumps(results | {name: runs}, indent=1, sort_keys=True, default=float)
            OUT.write_text(text + "\n")
    tell(json.loads(OUT.read_text()))


if __name__ == "__main__":
    main()
