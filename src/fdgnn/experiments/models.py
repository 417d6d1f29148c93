"""Evaluate ``--model auto``, ``colors`` or ``both``: a committee, by nested cross validation."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fdgnn._version import __version__
from fdgnn.context import Context
from fdgnn.estimators import AUTO, FDGNNClassifier
from fdgnn.experiments.committee_files import (
    member_path,
    open_directory,
    read_committee,
    read_member,
    write_member,
)
from fdgnn.experiments.records import Asked, CommitteeResult, CommitteeSettings
from fdgnn.experiments.rundir import check_same, locked
from fdgnn.experiments.study import ENGINE, fingerprint, versions
from fdgnn.graphs import Array, Floats, GraphBatch, Ints
from fdgnn.readout.calibration import fit_slope, probabilities
from fdgnn.readout.metrics import OF_CLASSES, accuracy, named_scoring
from fdgnn.records import write_record
from fdgnn.selection.committees import (
    MemberOutputs,
    all_outputs,
    members,
    score_committee,
)
from fdgnn.selection.folds import TEST, Folds
from fdgnn.selection.nested import NestedAnswers
from fdgnn.selection.scores import SelectionTask, classification_task
from fdgnn.selection.splits import Split

N_FOLDS = 10  # outer ones, and inner ones of each


@dataclass(frozen=True)
class CommitteeStudy:
    """A committee, and the graphs that it is evaluated on.

    Attributes
    ----------
    dataset : str
        Its name, for the record.
    graphs, y
    model : {"auto", "colors", "both"}
    seed : int, default=0
        Of the folds, and of reservoirs.
    scoring : str, default="accuracy"
        What penalties are chosen by (`fdgnn.readout.metrics`).
    split : Split, optional
        How graphs are held out: at random, with each class in every fold, or by groups.
    """

    dataset: str
    graphs: GraphBatch
    y: Array
    model: str
    seed: int = 0
    scoring: str = "accuracy"
    split: Split = field(default_factory=Split)

    def estimator(self) -> FDGNNClassifier:
        """The committee, not fitted."""
        candidates = "all" if self.model == "auto" else self.model
        return FDGNNClassifier(
            encoder=AUTO, candidates=candidates, random_state=self.seed, scoring=self.scoring
        )

    @cached_property
    def task(self) -> SelectionTask:
        """All outer and inner folds."""
        folds = self.split.nested(self.y, N_FOLDS, self.seed)
        alphas = self.estimator().penalties(len(self.graphs))
        metric = named_scoring(self.scoring, classify=True).metric
        return classification_task(self.graphs, self.y, folds, alphas, metric)

    @property
    def settings(self) -> CommitteeSettings:
        """What must agree for a run to be continued."""
        return CommitteeSettings(
            dataset=self.dataset,
            data=_fingerprint(self.graphs, self.y),
            model=self.model,
            members=[member.name for member in members(self.task, self.estimator())],
            n_outer=len(self.task.folds),
            n_inner=int(self.task.folds.max()) + 1,
            alphas=self.task.alphas.tolist(),
            seed=self.seed,
            engine=ENGINE,
            fdgnn=__version__,
            scoring=self.scoring,
            split=self.split.words,
            groups=None if self.split.groups is None else _digest(self.task.folds),
        )


def _digest(folds: Folds) -> str:
    """Tell folds from others, so that a run is not continued with other groups."""
    return hashlib.sha256(np.ascontiguousarray(folds, dtype="<i8").tobytes()).hexdigest()[:16]


def _fingerprint(graphs: GraphBatch, y: Array) -> str:
    """The study's, and whether arcs have labels, which it leaves out."""
    labels = graphs.arc_labels
    return f"{fingerprint(graphs, y)}{'' if labels is None else '-arc-labels'}"


def evaluate_committee(
    study: CommitteeStudy, directory: Path, context: Context | None = None
) -> CommitteeResult:
    """Evaluate a committee, or go on with it; return the result, which is also in ``result.json``.

    Parameters
    ----------
    study : CommitteeStudy
    directory : Path
        The run directory; members that are finished there are not trained again.
    context : Context, optional
    """
    context = context or Context()
    settings = study.settings
    open_directory(directory, settings)
    with closing(locked(directory / "lock")):
        write_record(directory / "asked.json", Asked(command=context.command))
        _train_missing(study, settings, directory, context)
        found = _read_members(study, directory, len(settings.members))
        result = _summary(settings, study.task, found, context.command)
        write_record(directory / "result.json", result)
    return result


def _train_missing(
    study: CommitteeStudy, settings: CommitteeSettings, directory: Path, context: Context
) -> None:
    """Train the members whose outputs are not there, and write what they say."""
    n = len(settings.members)
    missing = [i for i in range(n) if not member_path(directory, i).exists()]
    finished = all_outputs(study.task, study.estimator(), missing, context.n_jobs)
    what = f"{study.dataset} models"
    for one in context.track(finished, n, what, done=n - len(missing)):
        write_member(directory, one)


def _read_members(study: CommitteeStudy, directory: Path, n_members: int) -> list[MemberOutputs]:
    shape = (len(study.task.folds), *study.task.targets.shape)
    return [read_member(directory, i, shape) for i in range(n_members)]


# ---------------------------------------------------------------------- graphs that were held out


class HeldOutAnswers(NamedTuple):
    """What committees say of graphs that they have not seen: each graph's own outer fold."""

    fold: Ints  # (n,) the outer fold that held it out, from 0
    outputs: Floats  # (n, q)
    chances: Floats  # (n, n_classes), calibrated on the other folds


def held_out_answers(study: CommitteeStudy, directory: Path) -> HeldOutAnswers:
    """Give the outputs and probabilities for all graphs, from the files of a finished run.

    Raises
    ------
    StudyError
        The run is that of another study, or the file of a member is missing or damaged.
    """
    settings = study.settings
    check_same(directory, read_committee(directory).settings, settings)
    found = _read_members(study, directory, len(settings.members))
    task, averaged = study.task, score_committee(study.task, found, classify=True).outputs
    fold = np.argmax(task.folds < 0, axis=0)
    chances = np.empty((len(fold), len(np.unique(task.y))))
    for row, outputs in enumerate(averaged):
        # The graphs of the other outer folds were held out of the readouts, too, one inner fold
        # after the other: so what probabilities learn from is not what they are shown for.
        test = fold == row
        slope = fit_slope(outputs[~test], task.y[~test])
        chances[test] = probabilities(outputs[test], slope)
    return HeldOutAnswers(fold, averaged[fold, np.arange(len(fold))], chances)


# ---------------------------------------------------------------------- the summary


def _summary(
    settings: CommitteeSettings,
    task: SelectionTask,
    found: Sequence[MemberOutputs],
    command: str | None,
) -> CommitteeResult:
    scores = score_committee(task, found, classify=True)
    answers = NestedAnswers(task.y, task.folds == TEST, scores.outputs)
    area = answers.score(OF_CLASSES["roc_auc"])  # NaN where no fold has all classes
    by_accuracy = replace(task, metric=accuracy)
    accuracies = score_committee(by_accuracy, found, classify=True).test
    alone = [score_committee(by_accuracy, [one], classify=True).test.mean() for one in found]
    return CommitteeResult(
        dataset=settings.dataset,
        model=settings.model,
        n_graphs=len(task.graphs),
        seed=settings.seed,
        scoring=settings.scoring,
        split=settings.split,
        accuracy_mean=float(accuracies.mean()),
        accuracy_std=float(accuracies.std(ddof=1)),
        fold_accuracies=accuracies.tolist(),
        balanced_accuracy_mean=answers.score(OF_CLASSES["balanced_accuracy"]),
        roc_auc_mean=None if np.isnan(area) else area,
        members=settings.members,
        fold_kept=[np.flatnonzero(row).tolist() for row in scores.kept],
        fold_alphas=np.array([one.penalties for one in found]).T.tolist(),
        member_accuracies=[float(each) for each in alone],
        member_seconds=[one.seconds for one in found],
        versions=versions(),
        machine={"python": platform.python_version(), "cpu": platform.machine()},
        command=command,
    )
