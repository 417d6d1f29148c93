"""Run directories without ``evaluation.json``, as evaluations; removed when all runs write it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from fdgnn.evaluation.committee_files import CommitteeRun, is_committee, read_committee
from fdgnn.evaluation.models import CommitteeStudy, held_out_answers
from fdgnn.evaluation.record import (
    BaseModelScores,
    Durations,
    Evaluation,
    EvaluationProtocol,
    FoldResult,
    MetricScores,
    ModelDescription,
    PublishedScore,
    TargetScores,
)
from fdgnn.evaluation.records import ComparisonRow, Configuration, RunResult
from fdgnn.evaluation.rundir import Run, read_run
from fdgnn.evaluation.study import Study
from fdgnn.exceptions import ConvergenceWarning, StudyError
from fdgnn.html.collect import OutOfFold, report_data
from fdgnn.html.report_data import ReportData


def old_evaluations(folder: Path) -> list[Evaluation]:
    """Read a run directory as it was before there were evaluations."""
    if is_committee(folder):
        return [_of_committee(read_committee(folder))]
    run = read_run(folder)
    return [_of_row(row) for row in run.rivals] or [_of_run(run)]


def _scores(folds: list[float | None], balanced: float | None, roc: float | None) -> TargetScores:
    scores = [MetricScores.of("accuracy", "accuracy", folds)]
    for metric, words, mean in (
        ("balanced_accuracy", "balanced accuracy", balanced),
        ("roc_auc", "ROC AUC", roc),
    ):
        if mean is not None:
            none: list[float | None] = [None] * len(folds)
            scores.append(MetricScores(metric=metric, words=words, folds=none, mean=mean))
    return TargetScores(n_known=0, classes=[], scores=scores)


def _of_run(run: Run) -> Evaluation:
    settings, result, asked = run.settings, run.result, run.asked
    known = Evaluation(
        dataset=settings.dataset if settings else "",
        n_graphs=0,
        task="classification",
        model=ModelDescription(name="paper", title="FDGNN", kind="FDGNNClassifier"),
        protocol=EvaluationProtocol(
            name="paper",
            n_outer=settings.n_outer if settings else 0,
            n_inner=settings.n_inner if settings else 0,
            scoring="accuracy",
            seed=settings.seed if settings else 0,
        ),
        command=asked.command if asked else None,
        status="unfinished",
    )
    if result is None:
        return known
    n = len(result.fold_accuracies)
    published = result.published
    return replace(
        known,
        n_graphs=result.n_graphs,
        status="finished",
        targets=[
            _scores([*result.fold_accuracies], result.balanced_accuracy_mean, result.roc_auc_mean)
        ],
        folds=[
            FoldResult(
                n_train=0,
                n_test=0,
                configuration=result.fold_configurations[i],
                alphas=result.fold_alphas[i],
                train_seconds=result.times.fold_train_seconds[i],
                test_seconds=result.times.fold_test_seconds[i],
            )
            for i in range(n)
        ],
        published=None
        if published is None
        else PublishedScore(mean=published.accuracy_mean, std=published.accuracy_std),
        times=Durations(selection=result.times.networks_seconds),
        versions=result.versions,
        machine=result.machine,
        command=result.command or known.command,
    )


def _of_committee(run: CommitteeRun) -> Evaluation:
    settings, result = run.settings, run.result
    n_models = len(settings.members)
    return Evaluation(
        dataset=settings.dataset,
        n_graphs=0 if result is None else result.n_graphs,
        task="classification",
        model=ModelDescription(
            name=settings.model,
            title=f"FDGNN {settings.model}",
            kind="AutoGraphClassifier",
            base_models=settings.members,
        ),
        protocol=EvaluationProtocol(
            n_outer=settings.n_outer,
            n_inner=settings.n_inner,
            scoring=settings.scoring,
            split=settings.split,
            seed=settings.seed,
        ),
        targets=[]
        if result is None
        else [
            _scores([*result.fold_accuracies], result.balanced_accuracy_mean, result.roc_auc_mean)
        ],
        folds=[]
        if result is None
        else [
            FoldResult(n_train=0, n_test=0, kept=kept, alphas=alphas)
            for kept, alphas in zip(result.fold_kept, result.fold_alphas, strict=True)
        ],
        base_models=[]
        if result is None
        else [
            BaseModelScores(
                name=name,
                score=result.member_accuracies[i],
                n_kept=sum(i in kept for kept in result.fold_kept),
                seconds=result.member_seconds[i],
            )
            for i, name in enumerate(settings.members)
        ],
        versions={} if result is None else result.versions,
        machine={} if result is None else result.machine,
        command=run.command,
        status="unfinished" if result is None else "finished",
        reason=f"{run.n_trained} of {n_models} base models fitted" if result is None else None,
    )


def _of_row(row: ComparisonRow) -> Evaluation:
    folds = [*(row.fold_accuracies or ())]
    return Evaluation(
        dataset=row.dataset,
        n_graphs=0,
        task="classification",
        model=ModelDescription(
            name=row.model,
            title=row.title,
            kind="FDGNNClassifier" if row.model.startswith("fdgnn") else row.model,
            n_parameters=row.parameters,
        ),
        protocol=EvaluationProtocol(n_outer=len(folds), n_inner=0, scoring="accuracy", seed=0),
        targets=[_scores([*folds], row.balanced_accuracy_mean, row.roc_auc_mean)] if folds else [],
        folds=[
            FoldResult(
                n_train=0,
                n_test=0,
                train_seconds=row.train_seconds,
                test_seconds=row.test_seconds,
            )
            for _ in folds
        ],
        published=None
        if row.published is None
        else PublishedScore(
            mean=row.published.accuracy_mean,
            std=row.published.accuracy_std,
            reference=row.published.reference,
        ),
        times=Durations(selection=row.selection_seconds),
        status=row.status,
        reason=row.reason,
        peak_mb=row.peak_mb,
    )


def data_of_study(study: Study, result: RunResult, *, command: str | None = None) -> ReportData:
    """Compute the report data of a run of the paper's protocol."""
    folds, chosen = study.task().folds, result.fold_configurations
    if len(chosen) != len(folds):
        raise StudyError(
            f"the result has {len(chosen)} outer folds, but the study has {len(folds)}; give the "
            "result of this study"
        )
    fold = np.argmax(folds < 0, axis=0)
    outputs = probabilities = None
    names = [repr(sorted((n, c[n]) for n in c if n != "alpha")) for c in chosen]
    usual = chosen[max(range(len(names)), key=lambda i: names.count(names[i]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for f, configuration in enumerate(chosen):
            model = _model(study, configuration, folds[f] >= 0)
            own = model.outputs(study.graphs[fold == f])
            chances = model.targets_[0].probabilities(own)
            if outputs is None or probabilities is None:
                outputs = np.empty((len(fold), own.shape[1]))
                probabilities = np.empty((len(fold), chances.shape[1]))
            outputs[fold == f], probabilities[fold == f] = own, chances
        model = _model(study, usual, np.ones(len(fold), dtype=bool))
    assert outputs is not None
    found = OutOfFold(outputs, probabilities, fold)
    return report_data(
        model, study.graphs, study.y, dataset=study.dataset, out_of_fold=found, command=command
    )


def _model(study: Study, configuration: Configuration, train: Any) -> Any:
    model = study.estimator(configuration).set_params(probability=True)
    return model.fit(study.graphs[train], study.y[train])


def data_of_ensemble(
    study: CommitteeStudy, directory: Path, *, command: str | None = None
) -> ReportData:
    """Compute the report data of an evaluated ensemble."""
    own = held_out_answers(study, directory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = study.estimator().fit(study.graphs, study.y)
    found = OutOfFold(own.outputs, own.chances, own.fold)
    return report_data(
        model, study.graphs, study.y, dataset=study.dataset, out_of_fold=found, command=command
    )
