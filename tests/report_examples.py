"""Small examples of runs, portraits and comparisons for a report, as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fdgnn.evaluation import paper
from fdgnn.evaluation.study import drawn_configurations
from fdgnn.html.model_data.records import Portrait
from fdgnn.records import decode

# Names that a stranger may give to a dataset, a class, a label or a molecule.
HOSTILE = "<script>window.__pwned=1</script>"
HOSTILE_IMAGE = '"><img src=x onerror="window.__pwned=2">'
HOSTILE_END = "</script><script>window.__pwned=3</script>\u2028<!--"

ALPHAS = [1e-3, 1e-1, 10.0]
MAX_LAYERS = 3


def n_graphs_of(dataset):
    """As many as the paper's dataset of that name has."""
    return paper.DATASETS[dataset].n_graphs if dataset in paper.DATASETS else 188


def settings_of(dataset="MUTAG", n_outer=4, seed=0):
    return {
        "dataset": dataset, "data": "0123456789abcdef", "n_outer": n_outer, "n_inner": 5,
        "max_layers": MAX_LAYERS, "n_units": 50, "alphas": ALPHAS, "seed": seed, "fdgnn": "0.1.0",
    }  # fmt: skip


def configurations_of(n, seed=0):
    return drawn_configurations(MAX_LAYERS, seed, n)


def records_of(n_configurations=8, n_guesses=3, n_outer=4, seed=0):
    rng = np.random.default_rng(seed)
    shape = (2, n_outer, len(ALPHAS))
    return [
        {
            "configuration": c,
            "guess": g,
            "seconds": 0.25,
            "validation": rng.uniform(0.7, 0.9, shape).round(4).tolist(),
            "test": rng.uniform(0.1, 0.2, shape).round(4).tolist(),
        }
        for g in range(n_guesses)
        for c in range(n_configurations)
    ]


def result_of(dataset="MUTAG", n_configurations=8, n_guesses=3, n_outer=4, seed=0):
    configurations = configurations_of(n_configurations, seed)
    folds = [0.8, 0.9, 0.85, 0.95][:n_outer]
    chosen = [configurations[c % n_configurations] for c in (1, 1, 2, 5)][:n_outer]
    row = {
        "accuracy_mean": float(np.mean(folds)),
        "accuracy_std": float(np.std(folds, ddof=1)),
        "fold_accuracies": folds,
        "depth_mean": float(np.mean([c["n_layers"] for c in chosen])),
        "depth_std": 0.5,
        "fold_depths": [c["n_layers"] for c in chosen],
    }
    return row | {
        "dataset": dataset, "protocol": "quick", "n_graphs": n_graphs_of(dataset), "n_units": 50,
        "n_configurations": n_configurations, "n_guesses": n_guesses, "seed": seed,
        "fold_configurations": [c | {"alpha": ALPHAS[1]} for c in chosen],
        "fold_alphas": [[ALPHAS[1]] * n_guesses for _ in chosen],
        "configurations": configurations, "alphas": ALPHAS,
        "single_layer": row | {"accuracy_mean": 0.85}, "common_penalty": row, "ensemble": row,
        "chosen_on_test_folds": {"one_for_all_folds": 0.9, "one_for_each_fold": 0.95},
        "times": {
            "networks_seconds": 6.0, "fold_train_seconds": [0.004] * n_outer,
            "fold_test_seconds": [0.001] * n_outer, "fold_unconverged_graphs": [0] * n_outer,
        },
        "versions": {"fdgnn": "0.1.0", "numpy": "2.0.0"},
        "machine": {"python": "3.11.7", "cpu": "x86_64"},
        "command": f"fdgnn evaluate {dataset} --out runs/example",
    }  # fmt: skip


def write_run(
    folder: Path,
    dataset="MUTAG",
    *,
    portrait=None,
    rivals=None,
    finished=True,
    asked=None,
    **options,
) -> Path:
    """Write a run directory; without a result it is an unfinished one."""
    folder.mkdir(parents=True, exist_ok=True)
    n_outer, seed = options.get("n_outer", 4), options.get("seed", 0)
    files = {"settings.json": settings_of(dataset, n_outer, seed)}
    if finished:
        files["result.json"] = result_of(dataset, **options)
    if asked is not None:
        files["asked.json"] = asked
    if portrait is not None:
        files["portrait.json"] = portrait
    if rivals is not None:
        files["compare.json"] = rivals
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    with (folder / "records.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records_of(**options))
    return folder


# ---------------------------------------------------------------------- committees

MEMBERS = ["WL, 2 iterations", "reservoir", "another reservoir"]


def committee_settings_of(dataset="MUTAG", members=MEMBERS):
    return {
        "dataset": dataset, "data": "0123456789abcdef", "model": "auto", "members": list(members),
        "n_outer": 4, "n_inner": 5, "alphas": ALPHAS, "seed": 0, "engine": 1, "fdgnn": "0.1.0",
    }  # fmt: skip


def committee_result_of(dataset="MUTAG", members=MEMBERS):
    """Four outer folds: the first member is averaged in 4, the second in 3, the last in none."""
    folds = [0.9, 0.95, 0.85, 0.9]
    return {
        "dataset": dataset, "model": "auto", "n_graphs": n_graphs_of(dataset), "seed": 0,
        "accuracy_mean": 0.9, "accuracy_std": float(np.std(folds, ddof=1)),
        "fold_accuracies": folds, "balanced_accuracy_mean": 0.875, "members": list(members),
        "fold_kept": [[0, 1], [0, 1], [0], [0, 1]],
        "fold_alphas": [[0.1, 0.001, 10.0]] * 3 + [[10.0, 0.001, 10.0]],
        "member_accuracies": [0.89, 0.86, 0.61], "member_seconds": [1.5, 0.25, 0.25],
        "versions": {"fdgnn": "0.1.0", "numpy": "2.0.0"},
        "machine": {"python": "3.11.7", "cpu": "x86_64"},
        "command": f"fdgnn evaluate {dataset} --model auto --out runs/example",
    }  # fmt: skip


def write_committee(folder: Path, dataset="MUTAG", *, portrait=None, finished=True, asked=None):
    """Write the directory of an evaluated committee; unfinished, two of its members are trained."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"committee.json": committee_settings_of(dataset)}
    if finished:
        files["result.json"] = committee_result_of(dataset)
    if asked is not None:
        files["asked.json"] = asked
    if portrait is not None:
        files["portrait.json"] = portrait
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    for i in range(3 if finished else 2):
        (folder / f"member-{i}.npz").write_bytes(b"a page does not read these")
    return folder


# ---------------------------------------------------------------------- portraits


def as_portrait(content) -> Portrait:
    """Read a portrait from its JSON."""
    return decode(json.dumps(content), Portrait)


def portrait_of(
    dataset="MUTAG", *, classes=("-1", "1"), n=30, labels=("C", "N", "O"), smiles=None, id_text="g"
):
    """Give the portrait of a classification that shows `n` of its graphs.

    Graph g is a ring of 4 + g % 5 vertices with a tail.
    """
    rng = np.random.default_rng(0)
    graphs = [_graph_row(g, classes, rng, id_text) for g in range(n)]
    mistakes = [row["graph"] for row in graphs if not row["correct"]][:12]
    confusion = np.zeros((len(classes), len(classes)), dtype=int)
    for row in graphs:
        confusion[classes.index(row["actual"]), classes.index(row["predicted"])] += 1
    return {
        "format": 3,
        "dataset": dataset,
        "task": "classification",
        "held_out": True,
        "how": "Each graph was held out in one of 4 outer folds.",
        "classes": list(classes),
        "n_estimators": 1,
        "shown": {
            "encoder": "WLCounts", "name": "WL, 2 iterations", "fold": 3, "folds_alike": 2,
            "n_folds": 4, "n_layers": None, "effective_spectral_radius": None,
        },
        "dynamics_of": {
            "encoder": "GraphReservoir", "name": "reservoir", "fold": 3, "folds_alike": 2,
            "n_folds": 4, "n_layers": 2, "effective_spectral_radius": 0.9,
        },
        "base_models": [
            _base_model("WL, 2 iterations", "WLCounts", "RBF", 0.3, 1),
            _base_model("reservoir", "GraphReservoir", "linear", 0.01, 2),
        ],
        "substructures": [
            substructure
            for i, name in enumerate(classes)
            for substructure in _substructures(name, labels, i)
        ],
        "data": _data(n, classes, labels) | {"n_graphs": n_graphs_of(dataset)},
        "dynamics": _dynamics(n),
        "graphs": graphs,
        "explained": [0.61, 0.17],
        "drawings": [drawing_of(g, labels, smiles) for g in range(n)],
        "mistakes": mistakes,
        "confusion": confusion.tolist(),
        "calibration": {
            "bins": [
                {"start": 0.5, "stop": 0.75, "n": 10, "probability": 0.6, "accuracy": 0.5},
                {"start": 0.75, "stop": 1.0, "n": n - 10, "probability": 0.9, "accuracy": 0.95},
            ],
            "brier": 0.1,
            "expected_error": 0.06,
        },
        "regression": None,
        "trust": trust_of(n),
        "settings": {"n_layers": 3, "alpha": [0.1, 0.001]},
        "command": "fdgnn evaluate MUTAG --out runs/example",
        "versions": {"fdgnn": "0.1.0"},
        "machine": {
            "python": "3.11.7", "system": "Linux", "cpu": "x86_64", "cores": 2, "cpu_model": None,
            "memory_gb": 16.4,
        },
    }  # fmt: skip


def trust_of(n):
    """Sets that cover what they should, and two graphs unlike those of training."""
    words = "44 % of the surroundings of its vertices are in no training graph"
    return {
        "coverages": [
            {"coverage": 0.8, "covered": 0.81, "size": 0.9, "empty": 0.12},
            {"coverage": 0.95, "covered": 0.947, "size": 1.4, "empty": 0.0},
        ],
        "n_unlike": 2,
        "error_unlike": 0.5,
        "error_others": 0.125,
        "unlike": [
            {"graph": 3, "id": "g3", "novelty": 0.44, "words": words},
            {"graph": n + 7, "id": "not on the map", "novelty": 0.4, "words": words},
        ],
    }


def _base_model(name, encoder, readout, alpha, n_estimators):
    return {
        "name": name, "encoder": encoder, "readout": readout, "alpha": alpha,
        "n_estimators": n_estimators,
    }  # fmt: skip


def _substructures(target, labels, graph):
    """One for the class and one against it; see `drawing_of` for the vertices."""
    ring = 4 + graph % 5
    steps = [0, 1, *[-1] * (ring - 3), 1, -1]
    one = {"target": target, "n_graphs": 12, "graph": graph, "steps": steps, "round": 1}
    words = f"{labels[0]}, next to 2 × {labels[1 % len(labels)]}"
    return [
        one | {"words": words, "weight": 0.1, "contribution": 0.25, "radius": 1},
        one | {"words": labels[-1], "weight": -0.05, "contribution": -0.1, "radius": 0, "round": 0},
    ]


def _graph_row(g, classes, rng, id_text):
    actual = classes[g % len(classes)]
    wrong = g % 6 == 5
    predicted = classes[(g + 1) % len(classes)] if wrong else actual
    size = 5 + g % 5
    return {
        "graph": g, "id": f"{id_text}{g}", "x": float(rng.uniform(-1, 1)),
        "y": float(rng.uniform(-1, 1)), "actual": actual, "predicted": predicted,
        "correct": actual == predicted, "score": 0.5, "probability": 0.8,
        "n_vertices": size, "n_edges": size, "fold": 1 + g % 4,
    }  # fmt: skip


def drawing_of(g, labels=("C", "N", "O"), smiles=None):
    """A ring of 4 + g % 5 vertices with a tail, so that the number of vertices tells the graph."""
    ring = 4 + g % 5
    angles = 2 * np.pi * np.arange(ring) / ring
    places = [(round(500 + 300 * np.cos(a)), round(500 + 300 * np.sin(a))) for a in angles]
    places.append((990, 500))
    edges = [(v, (v + 1) % ring) for v in range(ring)] + [(0, ring)]
    n = ring + 1
    return {
        "graph": g,
        "positions": [int(value) for place in places for value in place],
        "edges": [v for edge in edges for v in edge],
        "directed": False,
        "orders": [1.5] * ring + [2],
        "labels": [labels[v % len(labels)] for v in range(n)],
        "contributions": [round((-1) ** v * 0.1 * (v + 1), 3) for v in range(n)],
        "molecule": True,
        "smiles": smiles,
    }


def _data(n, classes, labels):
    edges = [5, 6, 7, 8, 9, 10]
    return {
        "n_graphs": n, "n_vertices": 7 * n, "n_arcs": 14 * n, "n_self_loops": 0,
        "n_merged_arcs": 3, "undirected": True, "n_distinct": n - 4, "n_labels": len(labels),
        "n_features": 0, "majority": 0.66, "wl_ceiling": 0.99, "vertices_range": [5, 9],
        "max_degree": 3,
        "class_counts": [[c, n // len(classes)] for c in classes], "targets": None,
        "sizes": {
            "edges": edges, "classes": [{"name": c, "counts": [1, 2, 3, 2, 1]} for c in classes]
        },
        "degrees": {"labels": ["1", "2", "3"], "counts": [n, 5 * n, n]},
        "labels": [[label, 50 - i] for i, label in enumerate(labels)],
    }  # fmt: skip


def _dynamics(n):
    layers = [
        {
            "layer": layer, "spectral_radius": 0.3, "absolute_radius": 0.3, "norm": 0.4,
            "effective": 0.9,
            "certified": n - 2, "uncertified": 2, "unconverged": 0,
            "iterations": [[10, n - 5], [12, 5]],
        }
        for layer in (1, 2)
    ]  # fmt: skip
    curves = [
        {"layer": layer, "graph": g, "certified": g != 2, "residuals": [2.0, 0.2, 0.01, 0.0]}
        for layer in (1, 2)
        for g in (0, 1, 2)
    ]
    return {
        "degree": 3.0, "tol": 0.001, "max_iter": 50, "n_graphs": n, "layers": layers,
        "curves": curves, "radii": [2.0 + g / 20 for g in range(n)],
    }  # fmt: skip


def regression_of(n=30):
    """The portrait of a regression."""
    portrait = portrait_of("solubility", n=n)
    for row in portrait["graphs"]:
        row |= {"actual": row["graph"] / 10, "predicted": row["graph"] / 10 + 0.3}
        row |= {"correct": None, "probability": None}
    portrait["substructures"] = [one | {"target": None} for one in portrait["substructures"][:2]]
    portrait["data"] |= {
        "majority": None, "wl_ceiling": None, "class_counts": [],
        "targets": {"edges": [0.0, 1.0, 2.0], "counts": [n // 2, n - n // 2]},
        "sizes": {"edges": [5, 6, 7], "classes": [{"name": "all", "counts": [n - 3, 3]}]},
    }  # fmt: skip
    return portrait | {
        "task": "regression", "classes": [], "confusion": None, "calibration": None,
        "regression": {"r2": 0.81, "mean_absolute_error": 0.3},
        "trust": trust_of(n) | {
            "coverages": [{"coverage": 0.9, "covered": 0.91, "size": 2.5}], "error_unlike": 1.5,
        },
    }  # fmt: skip


def without_targets(n=30):
    """The portrait of a model on graphs without known answers."""
    portrait = portrait_of("new graphs", n=n)
    for row in portrait["graphs"]:
        row |= {"actual": None, "correct": None}
    portrait["data"] |= {"majority": None, "wl_ceiling": None, "class_counts": []}
    portrait["data"]["sizes"]["classes"] = [{"name": "all", "counts": [1, 2, 3, 2, 1]}]
    trust = {"coverages": [], "n_unlike": 0, "unlike": []}
    trust |= {"error_unlike": None, "error_others": None}
    portrait |= {"mistakes": [], "confusion": None, "calibration": None, "held_out": False}
    return portrait | {"trust": trust}


# ---------------------------------------------------------------------- comparisons


def rivals_of(dataset="MUTAG", reason="no result after 600 s"):
    published = paper.ACCURACY["WL"]["MUTAG"]
    measured = {
        "accuracy_mean": 0.875, "accuracy_std": 0.05, "fold_accuracies": [0.8, 0.95],
        "train_seconds": 0.004, "test_seconds": 0.001, "selection_seconds": 6.0,
        "peak_mb": 210.0, "parameters": 101,
    }  # fmt: skip
    row = {"dataset": dataset, "status": "finished", "reason": None, "published": None}
    return [
        row | measured | {"model": "fdgnn", "title": "FDGNN"},
        row
        | measured
        | {
            "model": "wl", "title": "Weisfeiler-Lehman kernel, SVC", "accuracy_mean": 0.84,
            "train_seconds": 0.08, "parameters": 3210,
            "published": {
                "accuracy_mean": published.mean / 100, "accuracy_std": None,
                "reference": published.reference,
            },
        },
        row
        | dict.fromkeys(measured)
        | {"model": "rw", "title": "Random walk kernel, SVC", "status": "out of time"}
        | {"reason": reason},
    ]  # fmt: skip
