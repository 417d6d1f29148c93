"""Evaluate ``--model auto``, ``colors`` or ``both``: a committee, by nested cross validation."""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fdgnn._version import __version__
from fdgnn.caching import cached_property
from fdgnn.context import Context
from fdgnn.estimators import AUTO, FDGNNClassifier, FDGNNRegressor
from fdgnn.experiments.committee_files import (
    member_path,
    open_directory,
    read_committee,
    read_member,
    write_member,
)
from fdgnn.experiments.committee_records import CommitteeResult, CommitteeSettings, QuantityResult
from fdgnn.experiments.committee_summary import (
    nested_answers,
    summary_of_classes,
    summary_of_numbers,
)
from fdgnn.experiments.records import Asked
from fdgnn.experiments.rundir import check_same, locked
from fdgnn.experiments.study import ENGINE, fingerprint
from fdgnn.graphs import Array, Floats, GraphBatch, Ints
from fdgnn.readout.calibration import fit_slope, probabilities
from fdgnn.readout.metrics import named_scoring
from fdgnn.readout.targets import real_targets, sample_weights
from fdgnn.records import write_record
from fdgnn.selection.committees import (
    MemberOutputs,
    all_outputs,
    members,
    score_committee,
)
from fdgnn.selection.folds import Folds
from fdgnn.selection.scores import SelectionTask, classification_task, regression_task
from fdgnn.selection.splits import Split
from fdgnn.workflow.asking import TaskName

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
    scoring : str, optional
        What penalties are chosen by (`fdgnn.readout.metrics`); by default accuracy, or R2 for
        numbers.
    split : Split, optional
        How graphs are held out: at random, with each class in every fold, or by groups.
    kind : {"classification", "regression"}
        Whether `y` has classes or numbers.
    threshold : str, optional
        What the threshold between two classes is chosen by, in each outer fold by its training
        graphs, as in `FDGNNClassifier`.
    class_weight : "balanced", optional
    """

    dataset: str
    graphs: GraphBatch
    y: Array
    model: str
    seed: int = 0
    scoring: str | None = None
    split: Split = field(default_factory=Split)
    kind: TaskName = "classification"
    threshold: str | None = None
    class_weight: str | None = None

    @property
    def classify(self) -> bool:
        """Whether the targets are classes."""
        return self.kind == "classification"

    @property
    def chosen_by(self) -> str:
        """The scoring that was asked for, or the usual one."""
        return self.scoring or ("accuracy" if self.classify else "r2")

    def estimator(self) -> FDGNNClassifier | FDGNNRegressor:
        """The committee, not fitted."""
        candidates = "all" if self.model == "auto" else self.model
        new_model = FDGNNClassifier if self.classify else FDGNNRegressor
        found = new_model(
            encoder=AUTO, candidates=candidates, random_state=self.seed, scoring=self.chosen_by
        )
        of_classes = {"threshold": self.threshold, "class_weight": self.class_weight}
        return found.set_params(**of_classes) if self.classify else found

    @cached_property
    def task(self) -> SelectionTask:
        """All outer and inner folds."""
        metric = named_scoring(self.chosen_by, self.classify).metric
        y = self.y if self.classify else real_targets(self.y, self.graphs)
        folds = self.split.nested(y, N_FOLDS, self.seed, self.classify)
        alphas = self.estimator().penalties(len(self.graphs))
        if not self.classify:
            return regression_task(self.graphs, y, folds, alphas, metric)
        task = classification_task(self.graphs, y, folds, alphas, metric)
        weights = sample_weights(None, len(y), y, self.class_weight)
        return replace(task, weights=weights)

    @property
    def settings(self) -> CommitteeSettings:
        """What must agree for a run to be continued."""
        return CommitteeSettings(
            dataset=self.dataset,
            task=self.kind,
            data=_fingerprint(self.graphs, self.y),
            model=self.model,
            members=[member.name for member in members(self.task, self.estimator())],
            n_outer=len(self.task.folds),
            n_inner=int(self.task.folds.max()) + 1,
            alphas=self.task.alphas.tolist(),
            seed=self.seed,
            engine=ENGINE,
            fdgnn=__version__,
            scoring=self.chosen_by,
            threshold=self.threshold,
            class_weight=self.class_weight,
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
) -> CommitteeResult | QuantityResult:
    """Evaluate a committee, or go on with it; return the result, which is also in ``result.json``.

    Parameters
    ----------
    study : CommitteeStudy
    directory : Path
        The run directory; members that are finished there are not trained again.
    context : Context, optional

    Returns
    -------
    CommitteeResult, or QuantityResult if the target is a number
    """
    context = context or Context()
    settings = study.settings
    summary = summary_of_classes if study.classify else summary_of_numbers
    open_directory(directory, settings)
    with closing(locked(directory / "lock")):
        write_record(directory / "asked.json", Asked(command=context.command))
        _train_missing(study, settings, directory, context)
        found = _read_members(study, directory, len(settings.members))
        result = summary(settings, study.task, found, context.command)
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
    outputs: Floats  # (n, q), lowered by the thresholds that the outer folds chose
    chances: Floats  # (n, n_classes), calibrated on the other folds


def held_out_answers(study: CommitteeStudy, directory: Path) -> HeldOutAnswers:
    """Give the outputs and probabilities for all graphs, from the files of a finished run.

    Raises
    ------
    StudyError
        The run is that of another study or predicts a number, or the file of a member is missing
        or damaged.
    """
    settings = study.settings
    check_same(directory, read_committee(directory).settings, settings)
    found = _read_members(study, directory, len(settings.members))
    task, averaged = study.task, score_committee(study.task, found, classify=True).outputs
    fold = np.argmax(task.folds < 0, axis=0)
    lowered = nested_answers(settings, task, averaged).lowered
    chances = np.empty((len(fold), len(np.unique(task.y))))
    for row, outputs in enumerate(averaged):
        # The graphs of the other outer folds were held out of the readouts, too, one inner fold
        # after the other: so what probabilities learn from is not what they are shown for.
        test = fold == row
        slope = fit_slope(outputs[~test], task.y[~test])
        chances[test] = probabilities(outputs[test], slope)
    return HeldOutAnswers(fold, lowered[fold, np.arange(len(fold))], chances)
