"""Small examples of evaluations and report data, as a run directory has them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from fdgnn.evaluation import paper
from fdgnn.evaluation.record import (
    BaselineScores,
    BaseModelScores,
    Durations,
    Evaluation,
    EvaluationProtocol,
    FoldResult,
    MetricScores,
    ModelDescription,
    PublishedScore,
    TargetScores,
    TriedConfiguration,
)
from fdgnn.html.report_data import ReportData
from fdgnn.records import decode, write_record

# Names that somebody untrusted may give to a dataset, a class, a label or a molecule.
HOSTILE = "<script>window.__pwned=1</script>"
HOSTILE_IMAGE = '"><img src=x onerror="window.__pwned=2">'
HOSTILE_END = "</script><script>window.__pwned=3</script>\u2028<!--"

ALPHAS = [1e-3, 1e-1, 10.0]
N_FOLDS = 4


def n_graphs_of(dataset):
    """As many as the paper's dataset of that name has."""
    return paper.DATASETS[dataset].n_graphs if dataset in paper.DATASETS else 188


# ---------------------------------------------------------------------- evaluations


def scores_of(metric, words, folds):
    return MetricScores.of(metric, words, folds)


def target_of(folds, name="", baselines=()):
    """Accuracy and ROC AUC of a classification, with the majority class beside them."""
    n = len(folds)
    constant = [
        scores_of("accuracy", "accuracy", [0.66, 0.67, 0.66, 0.67][:n]),
        scores_of("roc_auc", "ROC AUC", [0.5] * n),
    ]
    return TargetScores(
        name=name, n_known=188, classes=["-1", "1"], wl_ceiling=0.99,
        scores=[
            scores_of("accuracy", "accuracy", folds),
            scores_of("roc_auc", "ROC AUC", [min(1.0, fold + 0.04) for fold in folds]),
        ],
        baselines=[
            BaselineScores(name="constant", title="always the majority class", scores=constant),
            *baselines,
        ],
    )  # fmt: skip


def tried_of(n=8, n_initializations=3):
    rng = np.random.default_rng(0)
    return [
        TriedConfiguration(
            configuration={
                "effective_spectral_radius": 0.1 + 0.1 * i, "input_scaling": 1.0 + i,
                "inter_layer_scaling": 0.5 * i, "n_layers": 1 + i % 3, "random_state": i,
            },
            alpha=ALPHAS[i % 3],
            scores=rng.uniform(0.7, 0.9, n_initializations).round(4).tolist(),
        )
        for i in range(n)
    ]  # fmt: skip


def evaluation_of(
    dataset="MUTAG", *, folds=(0.8, 0.9, 0.85, 0.95), n_tried=8, chosen_folds=None, **changes
):
    """The paper's model by the paper's protocol: folds choose the second configuration twice."""
    tried, published = tried_of(n_tried), paper.ACCURACY["FDGNN"].get(dataset)
    chosen = [tried[i % n_tried].configuration for i in (1, 1, 2, 5)][: len(folds)]
    found = Evaluation(
        dataset=dataset, data_hash="0123456789abcdef", n_graphs=n_graphs_of(dataset),
        task="classification",
        model=ModelDescription(
            name="paper", title="FDGNN", kind="FDGNNClassifier", parameters={"n_units": 50}
        ),
        protocol=EvaluationProtocol(
            name="paper", n_outer=4, n_inner=5, n_configurations=n_tried, n_initializations=3,
            scoring="accuracy", seed=0,
        ),
        targets=[target_of(list(folds))],
        folds=[
            FoldResult(
                n_train=141, n_test=47, configuration=c | {"alpha": ALPHAS[1]},
                alphas=[ALPHAS[1], ALPHAS[1], ALPHAS[2]], train_seconds=0.004, test_seconds=0.001,
                n_unconverged=0,
            )
            for c in chosen
        ],
        variants={"single_layer": scores_of("accuracy", "accuracy", [0.85] * len(folds))},
        tried=tried,
        published=None
        if published is None
        else PublishedScore(
            mean=published.mean / 100, std=published.std / 100, reference=published.reference
        ),
        times=Durations(total=7.0, selection=6.0),
        versions={"fdgnn": "0.1.0", "numpy": "2.0.0"},
        machine={"python": "3.11.7", "cpu": "x86_64"},
        command=f"fdgnn evaluate {dataset} --out runs/example",
    )  # fmt: skip
    return replace(found, folds=found.folds if chosen_folds is None else chosen_folds, **changes)


def unfinished_of(dataset="MUTAG", **changes):
    changes = {"status": "unfinished", "reason": "3 of 24 parts are finished"} | changes
    return evaluation_of(
        dataset, folds=(), n_tried=1, targets=[], variants={}, tried=[], **changes
    )  # fmt: skip


BASE_MODELS = ["WL, 2 iterations", "reservoir", "another reservoir"]


def ensemble_of(dataset="MUTAG", base_models=BASE_MODELS, tried=(), **changes):
    """Four folds: the first base model is averaged in 4, the second in 3, the last in none."""
    kept = [[0, 1], [0, 1], [0], [0, 1]]
    scores = [(0.89, 4, 1.5), (0.86, 3, 0.25), (0.61, 0, 0.25)]
    return evaluation_of(
        dataset,
        folds=(0.9, 0.95, 0.85, 0.9),
        model=ModelDescription(
            name="auto", title="FDGNN auto", kind="AutoGraphClassifier", base_models=base_models
        ),
        protocol=EvaluationProtocol(n_outer=4, n_inner=5, scoring="accuracy", seed=0),
        chosen_folds=[
            FoldResult(n_train=141, n_test=47, alphas=[0.1, 0.001, 10.0], kept=own) for own in kept
        ],
        base_models=[
            BaseModelScores(name=name, score=score, n_kept=n, seconds=seconds)
            for name, (score, n, seconds) in zip(base_models, scores, strict=True)
        ],
        variants={}, tried=list(tried),
        command=f"fdgnn evaluate {dataset} --model auto --out runs/example",
        **changes,
    )  # fmt: skip


def regression_of(dataset="solubility", targets=("",), **changes):
    """A regressor of one or several numbers, beside the mean target and Morgan counts."""
    metrics = [("r2", "R2", 0.8, 0.0), ("rmse", "RMSE", 0.6, 1.4)]

    def target(name):
        def scores(which):
            return [
                scores_of(m, words, [(value, constant)[which] + 0.01 * i for i in range(N_FOLDS)])
                for m, words, value, constant in metrics
            ]

        return TargetScores(
            name=name, n_known=188, scores=scores(0),
            baselines=[
                BaselineScores(name="constant", title="always the mean", scores=scores(1)),
                BaselineScores(
                    name="morgan", title="Morgan counts and ridge regression", scores=scores(0)
                ),
            ],
        )  # fmt: skip

    return evaluation_of(
        dataset,
        task="regression",
        model=ModelDescription(name="auto", title="FDGNN auto", kind="AutoGraphRegressor"),
        protocol=EvaluationProtocol(
            n_outer=4, n_inner=5, scoring="r2", split="scaffold split", seed=0
        ),
        targets=[target(name) for name in targets],
        variants={}, tried=[], published=None, **changes,
    )  # fmt: skip


def comparison_of(dataset="MUTAG", reason="no result after 600 s"):
    """FDGNN, the WL kernel with its published accuracy, and a method that ran out of time."""
    wl = paper.ACCURACY["WL"]["MUTAG"]
    kernel = ModelDescription(
        name="wl", title="Weisfeiler-Lehman kernel, SVC", kind="SVC", n_parameters=3210
    )
    walks = ModelDescription(name="rw", title="Random walk kernel, SVC", kind="SVC")
    published = PublishedScore(mean=wl.mean / 100, reference=wl.reference)
    ours = evaluation_of(dataset)
    return [
        replace(ours, peak_mb=210.0),
        evaluation_of(
            dataset, folds=(0.8, 0.85, 0.8, 0.9), model=kernel, published=published, tried=[],
            chosen_folds=[replace(fold, train_seconds=0.08) for fold in ours.folds],
        ),
        unfinished_of(
            dataset, model=walks, published=None, status="out of time", reason=reason
        ),
    ]  # fmt: skip


def write_run(folder: Path, evaluation=None, data=None) -> Path:
    """Write a run directory of an evaluation or of several, with report data or without."""
    folder.mkdir(parents=True, exist_ok=True)
    found = evaluation_of() if evaluation is None else evaluation
    write_record(folder / "evaluation.json", found if isinstance(found, list) else [found])
    if data is not None:
        data = data if isinstance(data, list) else [data]
        (folder / "report.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


# ---------------------------------------------------------------------- report data


def as_data(content) -> ReportData:
    """Read report data from its JSON."""
    return decode(json.dumps(content), ReportData)


def data_of(
    dataset="MUTAG", *, classes=("-1", "1"), n=30, labels=("C", "N", "O"), smiles=None, id_text="g"
):
    """Return the data of a classification, of which `n` graphs are shown.

    Graph g is a ring of 4 + g % 5 vertices with a tail.
    """
    rng = np.random.default_rng(0)
    graphs = [_graph_row(g, classes, rng, id_text) for g in range(n)]
    mistakes = [row["graph"] for row in graphs if not row["correct"]][:12]
    confusion = np.zeros((len(classes), len(classes)), dtype=int)
    for row in graphs:
        confusion[classes.index(row["actual"]), classes.index(row["predicted"])] += 1
    return {
        "format": 5,
        "dataset": dataset,
        "task": "classification",
        "predictions": "out of fold",
        "classes": list(classes),
        "model": "Of the 3 base models, WL, 2 iterations is shown (WLCounts).",
        "data": _statistics(n, classes, labels) | {"n_graphs": n_graphs_of(dataset)},
        "graphs": graphs,
        "explained": [0.61, 0.17],
        "drawings": [drawing_of(g, labels, smiles) for g in range(n)],
        "mistakes": mistakes,
        "scores": {"accuracy": 0.86, "roc_auc": 0.91},
        "baseline": {"accuracy": 0.66, "roc_auc": 0.5},
        "confusion": confusion.tolist(),
        "calibration": {
            "bins": [
                {"start": 0.5, "stop": 0.75, "n": 10, "probability": 0.6, "accuracy": 0.5},
                {"start": 0.75, "stop": 1.0, "n": n - 10, "probability": 0.9, "accuracy": 0.95},
            ],
            "brier": 0.1,
            "expected_error": 0.06,
        },
        "coverages": [
            {"coverage": 0.8, "covered": 0.81, "size": 0.9, "empty": 0.12},
            {"coverage": 0.95, "covered": 0.947, "size": 1.4, "empty": 0.0},
        ],
        "domain": domain_of(n),
        "base_models": [
            _base_model("WL, 2 iterations", "WLCounts", "RBF", 0.3, 1),
            _base_model("reservoir", "GraphReservoir", "linear", 0.01, 2),
        ],
        "dynamics": _dynamics(n),
        "substructures": [_substructures(name, labels, i)[0] for i, name in enumerate(classes)],
        "descriptors": [],
        "parameters": {"n_layers": 3, "alpha": 0.1},
        "versions": {"fdgnn": "0.1.0"},
        "machine": {"python": "3.11.7", "memory, GB": "16.4"},
        "command": "fdgnn evaluate MUTAG --out runs/example",
    }


def domain_of(n):
    """Two graphs that are out of domain."""
    reason = "44 % of its substructures are in no training graph"
    return {
        "n_outside": 2,
        "error_outside": 0.5,
        "error_inside": 0.125,
        "graphs": [
            {"graph": 3, "id": "g3", "score": 0.44, "reason": reason},
            {"graph": n + 7, "id": "not on the map", "score": 0.4, "reason": reason},
        ],
    }


def _base_model(name, encoder, readout, alpha, n_estimators):
    return {
        "name": name, "encoder": encoder, "readout": readout, "alpha": alpha,
        "n_estimators": n_estimators,
    }  # fmt: skip


def _substructures(target, labels, graph):
    """One that adds to the score and one that takes from it; see `drawing_of` for the vertices."""
    ring = 4 + graph % 5
    steps = [0, 1, *[-1] * (ring - 3), 1, -1]
    one = {"target": target, "n_graphs": 12, "graph": graph, "steps": steps}
    words = f"{labels[0]}, next to 2 × {labels[1 % len(labels)]}"
    return [
        one | {"words": words, "attribution": 0.25, "radius": 1},
        one | {"words": labels[-1], "attribution": -0.1, "radius": 0},
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
        "attributions": [round((-1) ** v * 0.1 * (v + 1), 3) for v in range(n)],
        "molecule": True,
        "smiles": smiles,
    }


def _statistics(n, classes, labels):
    def bars(names, *series):
        return {"names": names, "series": [list(one) for one in series]}

    return {
        "n_graphs": n, "n_vertices": 7 * n, "n_arcs": 14 * n, "n_self_loops": 0,
        "n_merged_arcs": 3, "undirected": True, "n_distinct": n - 4, "n_labels": len(labels),
        "n_features": 0, "majority": 0.66, "wl_ceiling": 0.99, "vertices_range": [5, 9],
        "max_degree": 3,
        "sizes": bars(["5", "6", "7", "8", "9"], *((c, [1, 2, 3, 2, 1]) for c in classes)),
        "mean_sizes": [[c, 7.0] for c in classes],
        "degrees": bars(["1", "2", "3"], ("", [n, 5 * n, n])),
        "labels": bars(list(labels), ("", [50 - i for i in range(len(labels))])),
        "targets": bars(list(classes), ("", [n // len(classes)] * len(classes))),
    }  # fmt: skip


def _dynamics(n):
    layers = [
        {
            "layer": layer, "spectral_radius": 0.3, "absolute_radius": 0.3, "norm": 0.4,
            "effective": 0.9,
            "certified": n - 2, "uncertified": 2, "unconverged": 0, "mean_iterations": 10.3,
        }
        for layer in (1, 2)
    ]  # fmt: skip
    return {
        "model": "Of the 3 base models, reservoir is shown (GraphReservoir, 2 layers).",
        "degree": 3.0, "tol": 0.001, "max_iter": 50, "n_graphs": n, "layers": layers,
    }  # fmt: skip


def regression_data_of(n=30, dataset="solubility"):
    """The data of a regression."""
    data = data_of(dataset, n=n)
    for row in data["graphs"]:
        row |= {"actual": row["graph"] / 10, "predicted": row["graph"] / 10 + 0.3}
        row |= {"correct": None, "probability": None}
    data["substructures"] = _substructures(None, ("C", "N", "O"), 0)
    data["data"] |= {
        "majority": None, "wl_ceiling": None, "mean_sizes": [["", 6.0]],
        "targets": {"names": ["0 to 1", "1 to 2"], "series": [["", [n // 2, n - n // 2]]]},
        "sizes": {"names": ["5", "6"], "series": [["", [n - 3, 3]]]},
    }  # fmt: skip
    return data | {
        "task": "regression", "classes": [], "confusion": None, "calibration": None,
        "scores": {"r2": 0.81, "mae": 0.3}, "baseline": {"r2": 0.0, "mae": 1.2},
        "coverages": [{"coverage": 0.9, "covered": 0.91, "size": 2.5}],
        "domain": domain_of(n) | {"error_outside": 1.5},
    }  # fmt: skip


def without_targets(n=30):
    """The data of a model on graphs without known targets."""
    data = data_of("new graphs", n=n)
    for row in data["graphs"]:
        row |= {"actual": None, "correct": None}
    data["data"] |= {
        "majority": None, "wl_ceiling": None, "targets": None, "mean_sizes": [["", 7.0]],
        "sizes": {"names": ["5", "6", "7", "8", "9"], "series": [["", [1, 2, 3, 2, 1]]]},
    }  # fmt: skip
    domain = {"n_outside": 0, "error_outside": None, "error_inside": None, "graphs": []}
    return data | {
        "predictions": "seen", "mistakes": [], "scores": {}, "baseline": {}, "confusion": None,
        "calibration": None, "coverages": [], "domain": domain,
    }  # fmt: skip
