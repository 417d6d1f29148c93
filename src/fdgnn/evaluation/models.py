"""Evaluate ``--model auto``, ``wl`` or ``union``: an ensemble, by nested cross-validation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import joblib
import numpy as np

from fdgnn._version import __version__
from fdgnn.arrays import Array, Floats, Ints
from fdgnn.context import Context
from fdgnn.encoders import GraphKind
from fdgnn.ensemble import combine
from fdgnn.estimators import AutoGraphClassifier, AutoGraphRegressor
from fdgnn.evaluation.committee_files import (
    member_path,
    open_directory,
    read_committee,
    read_member,
    write_member,
)
from fdgnn.evaluation.committee_records import CommitteeResult, CommitteeSettings, QuantityResult
from fdgnn.evaluation.committee_summary import (
    nested_answers,
    summary_of_classes,
    summary_of_numbers,
)
from fdgnn.evaluation.records import Asked
from fdgnn.evaluation.rundir import check_same, locked
from fdgnn.evaluation.study import ENGINE, fingerprint
from fdgnn.fitting import BaseModel, FitTask, ModelFit, fit_depths
from fdgnn.folds import N_FOLDS, Folds, Split
from fdgnn.graphs import GraphBatch
from fdgnn.metrics import named_scoring
from fdgnn.records import cached_property, write_record
from fdgnn.seeds import seed_sequence
from fdgnn.targets import read_targets
from fdgnn.threads import one_blas_thread
from fdgnn.uncertainty import fit_slope, probabilities
from fdgnn.workers import parallel

N_OUTER = 10  # outer folds, each with N_FOLDS inner ones


@dataclass(frozen=True)
class CommitteeStudy:
    """An ensemble, and the graphs that it is evaluated on.

    Attributes
    ----------
    dataset : str
        Its name, for the record.
    graphs, y
    model : {"auto", "wl", "union"}
    seed : int, default=0
        Of the folds, and of reservoirs.
    scoring : str, optional
        What alpha is chosen by (`fdgnn.metrics`); by default accuracy, or R2 for
        regression.
    split : Split, optional
        How graphs are held out: at random, with each class in every fold, or by groups.
    kind : {"classification", "regression"}
        Whether `y` has classes or numbers.
    threshold : str, optional
        What the decision threshold between two classes is chosen by, in each outer fold by its
        training graphs, as in `AutoGraphClassifier`.
    class_weight : "balanced", optional
    """

    dataset: str
    graphs: GraphBatch
    y: Array
    model: str
    seed: int = 0
    scoring: str | None = None
    split: Split = field(default_factory=Split)
    kind: Literal["classification", "regression"] = "classification"
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

    def estimator(self) -> AutoGraphClassifier | AutoGraphRegressor:
        """Make the ensemble, not fitted."""
        candidates = "all" if self.model == "auto" else self.model
        if not self.classify:
            return AutoGraphRegressor(candidates, scoring=self.chosen_by, random_state=self.seed)
        return AutoGraphClassifier(
            candidates,
            scoring=self.chosen_by,
            threshold=self.threshold,
            class_weight=self.class_weight,
            random_state=self.seed,
        )

    @property
    def base_models(self) -> list[BaseModel]:
        """The base models for these graphs."""
        kind, seed = GraphKind.of(self.graphs), seed_sequence(self.seed)
        return self.estimator()._base_models(kind, len(self.graphs), seed)

    @cached_property
    def task(self) -> FitTask:
        """All outer and inner folds."""
        targets = read_targets(self.y, self.graphs, self.classify)
        y = self.y if self.classify else targets.values[:, 0]
        folds = self.split.nested(y, N_OUTER, N_FOLDS, self.seed, self.classify)
        metric = named_scoring(self.chosen_by, self.classify).metric
        return FitTask(targets, folds, metric, targets.weights(None, self.class_weight))

    @property
    def settings(self) -> CommitteeSettings:
        """What must agree for a run to be continued."""
        bases = self.base_models
        grids = [base.readout.grid(len(self.graphs), self.classify) for base in bases]
        return CommitteeSettings(
            dataset=self.dataset,
            task=self.kind,
            data=_fingerprint(self.graphs, self.y),
            model=self.model,
            members=[base.name for base in bases],
            n_outer=len(self.task.folds),
            n_inner=int(self.task.folds.max()) + 1,
            alphas=sorted(set().union(*grids)),
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
    """Return a hash of folds, so that a run is not continued with other groups."""
    return hashlib.sha256(np.ascontiguousarray(folds, dtype="<i8").tobytes()).hexdigest()[:16]


def _fingerprint(graphs: GraphBatch, y: Array) -> str:
    """The study's, and whether arcs have labels, which it leaves out."""
    labels = graphs.edge_labels
    return f"{fingerprint(graphs, y)}{'' if labels is None else '-arc-labels'}"


def evaluate_committee(
    study: CommitteeStudy, directory: Path, context: Context | None = None
) -> CommitteeResult | QuantityResult:
    """Evaluate an ensemble, or resume; return the result, which is also in ``result.json``.

    Parameters
    ----------
    study : CommitteeStudy
    directory : Path
        The run directory; base models that are finished there are not fitted again.
    context : Context, optional

    Returns
    -------
    CommitteeResult, or QuantityResult for regression
    """
    context = context or Context()
    settings = study.settings
    summary = summary_of_classes if study.classify else summary_of_numbers
    open_directory(directory, settings)
    with closing(locked(directory / "lock")):
        write_record(directory / "asked.json", Asked(command=context.command))
        _fit_missing(study, directory, context)
        fits = _read_fits(study, directory)
        result = summary(settings, study.task, fits, context.command)
        write_record(directory / "result.json", result)
    return result


def _fit_missing(study: CommitteeStudy, directory: Path, context: Context) -> None:
    """Fit the base models whose predictions are not there, and write their predictions."""
    bases = study.base_models
    missing = [i for i in range(len(bases)) if not member_path(directory, i).exists()]
    call: Callable[..., Any] = joblib.delayed(_fit)
    finished: Iterator[tuple[int, ModelFit]] = parallel(
        context.n_jobs, return_as="generator_unordered"
    )(call(i, bases[i], study.graphs, study.task) for i in missing)
    n, what = len(bases), f"{study.dataset} models"
    for i, fit in context.track(finished, n, what, done=n - len(missing)):
        write_member(directory, i, fit)


def _fit(number: int, base: BaseModel, graphs: GraphBatch, task: FitTask) -> tuple[int, ModelFit]:
    """Return the out-of-fold predictions of a base model in all outer folds."""
    with one_blas_thread():
        (found,) = fit_depths(base, graphs, task, (None,), train=False)
    return number, replace(found, features=None)


def _read_fits(study: CommitteeStudy, directory: Path) -> list[ModelFit]:
    names, task = [base.name for base in study.base_models], study.task
    return [read_member(directory, i, name, task) for i, name in enumerate(names)]


# ---------------------------------------------------------------------- out-of-fold predictions


class HeldOutAnswers(NamedTuple):
    """Predictions for each graph, by the ensemble of the outer fold that holds the graph out."""

    fold: Ints  # (n,) that outer fold, from 0
    outputs: Floats  # (n, q), lowered by the thresholds that the outer folds chose
    chances: Floats  # (n, n_classes), calibrated on the other folds


def held_out_answers(study: CommitteeStudy, directory: Path) -> HeldOutAnswers:
    """Return the outputs and probabilities for all graphs, from the files of a finished run.

    Raises
    ------
    StudyError
        The run is that of another study or of a regression, or the file of a base model is missing
        or damaged.
    """
    settings = study.settings
    check_same(directory, read_committee(directory).settings, settings)
    task = study.task
    predictions = combine(_read_fits(study, directory), task).predictions
    fold = np.argmax(task.folds < 0, axis=0)
    lowered = nested_answers(settings, task, predictions).lowered
    (target,), codes = task.targets.each, task.targets.values[:, 0]
    assert target.classes is not None
    chances = np.empty((len(fold), len(target.classes)))
    for row, outputs in enumerate(predictions):
        # The predictions for the graphs of the other outer folds are out of fold as well, one inner
        # fold after the other: so probabilities are not shown for what they are learned from.
        test = fold == row
        slope = fit_slope(outputs[~test], codes[~test])
        chances[test] = probabilities(outputs[test], slope)
    return HeldOutAnswers(fold, lowered[fold, np.arange(len(fold))], chances)
