"""Step three of a study: the numbers of the tables, from what was selected and measured."""

from __future__ import annotations

import platform
import warnings

import numpy as np

from fdgnn.exceptions import ConvergenceWarning
from fdgnn.experiments import paper
from fdgnn.experiments.choice import Selection
from fdgnn.experiments.measures import Measures
from fdgnn.experiments.records import FoldScores, Published, RunResult, RunTimes
from fdgnn.experiments.study import Study, versions
from fdgnn.graphs import Array, Floats
from fdgnn.readout.metrics import Metric, balanced_accuracy, roc_auc
from fdgnn.selection.scores import SelectionTask
from fdgnn.selection.space import depth_of


def summarize(
    study: Study,
    task: SelectionTask,
    selection: Selection,
    measures: Measures,
    command: str | None = None,
) -> RunResult:
    """Collect the numbers of the tables."""
    drawn, deep = study.configurations(), selection.deep
    drawn_depths = np.array([depth_of(study.estimator(c)) for c in drawn])
    depths = drawn_depths[deep.configurations]
    row = _scores(deep.scores, depths)
    common = selection.common_penalty
    return RunResult(
        **{name: getattr(row, name) for name in row.__struct_fields__},
        dataset=study.dataset,
        protocol=study.protocol.name,
        n_graphs=len(study.graphs),
        n_units=study.n_units,
        n_configurations=study.protocol.n_configurations,
        n_guesses=study.protocol.n_guesses,
        seed=study.seed,
        fold_configurations=measures.configurations,
        fold_alphas=task.alphas[deep.penalties].tolist(),
        configurations=drawn,
        alphas=task.alphas.tolist(),
        single_layer=_scores(selection.single_layer.scores, np.ones_like(depths)),
        common_penalty=_scores(common.scores, drawn_depths[common.configurations]),
        ensemble=_scores(measures.ensemble, depths),
        chosen_on_test_folds=selection.on_test_folds,
        published=_published(study.dataset),
        times=_times(selection, measures),
        versions=versions(),
        machine={"python": platform.python_version(), "cpu": platform.machine()},
        command=command,
        balanced_accuracy_mean=_mean_of_networks(balanced_accuracy, study, task, measures),
        roc_auc_mean=_mean_of_networks(roc_auc, study, task, measures),
    )


def _mean_of_networks(
    metric: Metric, study: Study, task: SelectionTask, measures: Measures
) -> float:
    """Another score of guess 0: mean over the outer folds."""
    tests = [np.flatnonzero(fold < 0) for fold in task.folds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the result counts such graphs
        each = [
            float(metric(task.y[test], one.model.outputs(study.graphs[test])))
            for test, one in zip(tests, measures.trained, strict=True)
        ]
    return float(np.mean(each))


def _scores(accuracies: Floats, depths: Array) -> FoldScores:
    """Give means and standard deviations over outer folds; deviations as MATLAB computes them."""
    return FoldScores(
        accuracy_mean=float(accuracies.mean()),
        accuracy_std=float(accuracies.std(ddof=1)),
        fold_accuracies=accuracies.tolist(),
        depth_mean=float(depths.mean()),
        depth_std=float(depths.std(ddof=1)),
        fold_depths=depths.tolist(),
    )


def _times(selection: Selection, measures: Measures) -> RunTimes:
    return RunTimes(
        networks_seconds=selection.seconds,
        fold_train_seconds=[t.train_seconds for t in measures.trained],
        fold_test_seconds=[t.test_seconds for t in measures.trained],
        fold_unconverged_graphs=[int((~t.model.converged_).sum()) for t in measures.trained],
    )


def _published(dataset: str) -> Published | None:
    """Give the paper's row, as shares rather than percent; None for other datasets."""
    if dataset not in paper.DATASETS:
        return None
    deep, single = (paper.ACCURACY[model][dataset] for model in ("FDGNN", "FDGNN(L=1)"))
    return Published(
        accuracy_mean=round(deep.mean / 100, 6),
        accuracy_std=round((deep.std or 0.0) / 100, 6),
        single_layer_accuracy_mean=round(single.mean / 100, 6),
        depth_mean=paper.DEPTH[dataset].mean,
        train_seconds=paper.TIMES[dataset].train.mean,
        test_seconds=paper.TIMES[dataset].test.mean,
    )
