"""Step three of a study: the numbers of the tables, from what was selected and measured."""

from __future__ import annotations

import platform
import warnings

import numpy as np

from fdgnn.evaluation import paper
from fdgnn.evaluation.choice import Selection
from fdgnn.evaluation.measures import Measures
from fdgnn.evaluation.records import FoldScores, Published, RunResult, RunTimes
from fdgnn.evaluation.scores import versions
from fdgnn.evaluation.study import Study
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.fitting import FitTask
from fdgnn.graphs import Array, Floats
from fdgnn.metrics import Metric, balanced_accuracy, roc_auc


def summarize(
    study: Study,
    task: FitTask,
    selection: Selection,
    measures: Measures,
    command: str | None = None,
) -> RunResult:
    """Collect the numbers of the tables."""
    drawn, deep = study.configurations(), selection.deep
    drawn_depths = np.array([study.estimator(c).n_layers for c in drawn])
    depths = drawn_depths[deep.configurations]
    row = _scores(deep.scores, depths)
    common = selection.common_alpha
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
        fold_alphas=np.array(study.alphas)[deep.alphas].tolist(),
        configurations=drawn,
        alphas=list(study.alphas),
        single_layer=_scores(selection.single_layer.scores, np.ones_like(depths)),
        common_penalty=_scores(common.scores, drawn_depths[common.configurations]),
        ensemble=_scores(measures.ensemble, depths),
        chosen_on_test_folds=selection.on_test_folds,
        published=_published(study.dataset),
        times=_times(selection, measures),
        versions=versions(),
        machine={"python": platform.python_version(), "cpu": platform.machine()},
        command=command,
        balanced_accuracy_mean=_mean_of_first(balanced_accuracy, study, task, measures),
        roc_auc_mean=_mean_of_first(roc_auc, study, task, measures),
    )


def _mean_of_first(metric: Metric, study: Study, task: FitTask, measures: Measures) -> float:
    """Return another score of the first random initialization, the mean over the outer folds."""
    tests = [np.flatnonzero(fold < 0) for fold in task.folds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the result counts such graphs
        each = [
            float(metric(task.targets.values[test, 0], one.model.outputs(study.graphs[test])))
            for test, one in zip(tests, measures.trained, strict=True)
        ]
    return float(np.mean(each))


def _scores(accuracies: Floats, depths: Array) -> FoldScores:
    """Return means and standard deviations over outer folds; deviations as MATLAB computes them."""
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
    """Return the paper's row, as shares rather than percent; None for other datasets."""
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
