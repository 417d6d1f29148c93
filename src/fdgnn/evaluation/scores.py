"""From predictions for test graphs of outer folds to an `Evaluation`."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from fdgnn._version import __version__
from fdgnn.arrays import Floats
from fdgnn.evaluation import paper
from fdgnn.evaluation.molecules import (
    boosting,
    linear_model,
    morgan_counts,
    simple_predictions,
)
from fdgnn.evaluation.record import (
    BaselineScores,
    BaseModelScores,
    Configuration,
    Durations,
    Evaluation,
    MetricScores,
    ModelDescription,
    PublishedScore,
    TargetScores,
)
from fdgnn.evaluation.run import EvaluationRun, EvaluationTask
from fdgnn.fitting import FitTask, ModelFit
from fdgnn.folds import TEST, Folds, trained_on
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.smiles import SmilesColumn
from fdgnn.linear import KernelReadout
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, Scoring, named_scoring
from fdgnn.selection.scoring import NestedPredictions, nested_predictions
from fdgnn.targets import Targets

#: Our models in words, by their names on the command line.
TITLES = {
    "paper": "FDGNN",
    "auto": "FDGNN auto: ensemble",
    "wl": "FDGNN auto: only WL",
    "union": "FDGNN auto: union of both",
}
_MOST_CLASSES = 10  # for boosting, which grows a hundred trees for each class and fold
_DRAWS = 100  # of test graphs, from which the standard error of a difference is taken
_USUAL = ("accuracy", "balanced_accuracy", "roc_auc")


class Baseline(NamedTuple):
    """Predictions of a simple model for the same test graphs."""

    name: str
    title: str
    predictions: NestedPredictions


# ---------------------------------------------------------------------- scores


def metric_scores(scoring: Scoring, folds: Sequence[float] | Floats) -> MetricScores:
    """Return the scores of outer folds by one metric, errors positive."""
    each = [scoring.shown(float(score)) for score in folds]
    return MetricScores.of(scoring.name, scoring.words, each)


def target_scores(
    graphs: GraphBatch | None,
    predictions: NestedPredictions,
    scoring: Scoring,
    baselines: Sequence[Baseline] = (),
) -> list[TargetScores]:
    """Return the scores of each target, and of baselines on the same folds.

    Without graphs there is no WL ceiling.
    """
    targets = predictions.targets
    # The metric that chooses is the first one.
    known_scorings = OF_CLASSES if targets.classify else OF_NUMBERS
    usual = _USUAL if targets.classify else tuple(OF_NUMBERS)
    shown = [scoring, *(known_scorings[name] for name in usual if name != scoring.name)]
    own = _by_target(predictions, shown)
    others = [(each, _by_target(each.predictions, shown)) for each in baselines]
    found = []
    for t, (target, known) in enumerate(zip(targets.each, targets.known.T, strict=True)):
        classes = target.classes
        ceiling = None
        if classes is not None and graphs is not None:
            some = graphs if known.all() else graphs[known]
            ceiling = some.wl_ceiling(targets.of_target(t))
        found.append(
            TargetScores(
                name=target.name,
                n_known=int(known.sum()),
                classes=None if classes is None else [str(c) for c in classes.tolist()],
                scores=own[t],
                baselines=[
                    BaselineScores(
                        name=each.name,
                        title=each.title,
                        scores=scores[t],
                        standard_error=_standard_error(predictions, each.predictions, t, scoring),
                    )
                    for each, scores in others
                ],
                wl_ceiling=ceiling,
            )
        )
    return found


def _by_target(
    predictions: NestedPredictions, shown: Sequence[Scoring]
) -> list[list[MetricScores]]:
    by_metric = [(each, predictions.scores(each)) for each in shown]
    n_targets = len(predictions.targets.names)
    return [[metric_scores(each, rows[t]) for each, rows in by_metric] for t in range(n_targets)]


# ---------------------------------------------------------------------- baselines


def baselines_of(
    targets: Targets,
    folds: Folds,
    smiles: Sequence[str] | None,
    n_jobs: int | None = None,
    molecules: SmilesColumn | None = None,
) -> list[Baseline]:
    """Return the predictions of the constant, and of simple models of molecules.

    These are a linear model of Morgan counts and, if the graphs have their molecules and there are
    at most ten classes, gradient boosting on descriptors.
    """
    what = "majority class" if targets.classify else "mean"
    found = [Baseline("constant", f"always the {what}", constant_predictions(targets, folds))]
    if smiles is not None:
        how = "logistic" if targets.classify else "ridge"
        predictions = simple_predictions(
            linear_model, morgan_counts(smiles, n_jobs), targets, folds
        )
        found.append(Baseline("morgan", f"Morgan + {how}", predictions))
        n_classes = [
            0 if target.classes is None else len(target.classes) for target in targets.each
        ]
        if molecules is not None and max(n_classes) <= _MOST_CLASSES:
            D = molecules.descriptors("fast")
            predictions = simple_predictions(boosting, D, targets, folds)
            found.append(Baseline("boosting", "descriptors + boosting", predictions))
    return found


def constant_predictions(targets: Targets, folds: Folds) -> NestedPredictions:
    """Predict the mean of the coded training targets, which is largest for the majority class."""
    outputs = np.full((len(folds), *targets.coded.shape), np.nan)
    for own, fold in zip(outputs, folds, strict=True):
        for t, target in enumerate(targets.each):
            known = trained_on(fold) & targets.known[:, t]
            if known.any():
                own[:, target.columns] = targets.coded[known, target.columns].mean(axis=0)
    return NestedPredictions(targets, folds == TEST, outputs)


def _standard_error(
    own: NestedPredictions, other: NestedPredictions, target: int, scoring: Scoring
) -> float | None:
    """Return the standard error of the difference of two models' scores of a target.

    Both are scored on the same graphs, drawn with replacement from the test graphs of each outer
    fold. None where that gives no score.
    """
    rng, variances = np.random.default_rng(0), []
    columns = own.targets.each[target].columns
    both = [each.outputs if scoring.of_probabilities else each.lowered for each in (own, other)]
    for row, test in enumerate(own.tested):
        some = np.flatnonzero(test & own.targets.known[:, target])
        if len(some) == 0 or any(np.isnan(each[row, some, columns]).any() for each in both):
            continue
        differences = []
        variance = own.targets.values[some, target].var()
        if scoring.name == "r2" and variance == 0:
            continue
        for drawn in rng.choice(some, (_DRAWS, len(some))):
            y = own.targets.values[drawn, target]
            ours, theirs = (float(scoring.metric(y, each[row, drawn, columns])) for each in both)
            # R2 divides by the variance of the drawn targets, which may be close to zero.
            scale = y.var() / variance if scoring.name == "r2" else 1
            differences.append((ours - theirs) * scale)
        known = np.array(differences)[np.isfinite(differences)]
        variances.append(known.var() if len(known) else np.nan)
    error = float(np.sqrt(np.sum(variances))) / max(len(variances), 1)
    return error if variances and np.isfinite(error) else None


def baseline_note(found: Evaluation) -> str | None:
    """Return a sentence if a simple model is better than the model; None if it is not."""
    for target in found.targets:
        own = target.scores[0] if target.scores else None
        if own is None or own.mean is None:
            continue
        scoring = named_scoring(own.metric, found.task == "classification")
        others = [(each, each.by(own.metric)) for each in target.baselines]
        known = [(each, s.mean) for each, s in others if s is not None and s.mean is not None]
        if not known:
            continue
        best, score = max(known, key=lambda one: scoring.shown(one[1]))  # an error is negative
        if scoring.shown(score) > scoring.shown(own.mean):
            of = f" of target {target.name!r}" if target.name else ""
            error = best.standard_error
            spread = "" if error is None else f" (standard error of the difference {error:.3f})"
            tie = error is not None and abs(score - own.mean) < 2 * error
            return (
                f"a simple model {'does as well' if tie else 'is better'}: the {own.words}{of} of "
                f"{best.title} is {score:.3f} in "
                f"the same folds, and that of this model {own.mean:.3f}{spread}"
            )
    return None


# ---------------------------------------------------------------------- from a search


def evaluation_of_search(
    search: Any, task: EvaluationTask, *, name: str, n_jobs: int | None = None
) -> EvaluationRun:
    """Return the evaluation of what an `FDGNNSearchCV` selected without each outer fold.

    Parameters
    ----------
    search : FDGNNSearchCV
        Fitted with `outer_cv`, or by `evaluate_folds`.
    task : EvaluationTask
        What it was fitted to, with its folds.
    name : str
        The model's name on the command line.
    n_jobs : int, optional
        Processes that read molecules.
    """
    base, folds, targets, selected = search._base, task.folds, task.targets, search._selected
    alike = {best.configuration.number for best in selected} == {selected[0].configuration.number}
    (scoring,) = list(search._scorings(targets).values())[:1]
    fit_task = FitTask(targets, folds, scoring.metric, targets.weights(None, base.class_weight))
    baselines = baselines_of(targets, folds, task.smiles, n_jobs, task.graphs.smiles)
    fits: list[ModelFit] = selected[0].fits if alike else []
    described = described_search(
        search, task, name, scoring.name, n_configurations=search._n_candidates,
        n_initializations=len(selected[0].configuration.bases[0].seeds),
    )  # fmt: skip
    names = [fit.name for fit in selected[0].fits]
    evaluation = replace(
        described,
        status="finished",
        model=replace(described.model, base_models=names),
        targets=target_scores(task.graphs, search._nested, scoring, baselines),
        folds=[
            task.fold_result(
                row,
                configuration=plain(best.model()[1]),
                alphas=[float(a) for fit in best.fits for a in fit.chosen_alphas[row]],
                kept=np.flatnonzero(best.kept).tolist(),
            )
            for row, best in enumerate(selected)
        ],
        base_models=_base_models(fits, [best.kept for best in selected], fit_task, scoring, base),
        times=Durations(
            selection=sum(fit.seconds for fit in fits) if search._n_candidates == 1 else None,
            n_resumed=search.n_resumed_,
        ),
        **provenance(),
    )
    return EvaluationRun(task, evaluation, search._nested, selected[0].model()[0])


def described_search(
    search: Any, task: EvaluationTask, name: str, scoring: str, **protocol: Any
) -> Evaluation:
    """Return the evaluation of a search without results."""
    base = search._base
    weights = base.class_weight
    return task.described(
        ModelDescription(name=name, title=TITLES.get(name, name), kind=type(base).__name__),
        scoring=scoring,
        threshold=base.threshold,
        class_weight=weights if weights is None or isinstance(weights, str) else "given",
        **protocol,
    )


def _base_models(
    fits: Sequence[ModelFit], kept: Sequence[Any], task: FitTask, scoring: Scoring, base: Any
) -> list[BaseModelScores]:
    """Return the scores of each base model alone, with the alphas chosen for it."""
    if len(fits) < 2:
        return []
    found = []
    for i, fit in enumerate(fits):
        assert fit.choice is not None
        outputs = fit.choice.predictions[: len(task.folds)]
        score = scoring.shown(nested_predictions(task, outputs, base.threshold).score(scoring))
        found.append(
            BaseModelScores(
                name=fit.name,
                score=None if np.isnan(score) else score,
                n_kept=int(sum(bool(row[i]) for row in kept)),
                seconds=fit.seconds,
            )
        )
    return found


# ---------------------------------------------------------------------- facts


def plain(parameters: Mapping[str, Any]) -> Configuration:
    """Return parameters as a record has them; objects are written as text."""
    found: Configuration = {}
    for name, value in parameters.items():
        value = value.item() if isinstance(value, np.generic) else value
        simple = value is None or isinstance(value, bool | int | float | str)
        found[name] = value if simple else repr(value)
    return found


def n_trained_weights(model: Any) -> int:
    """Return the number of trained weights: of our readouts, or as a baseline counts its own.

    Weights of features that no training graph has are zero, and do not count.
    """
    if not hasattr(model, "estimators_"):
        return int(model.n_parameters_)
    readouts = [fitted.readout for fitted in model.estimators_]
    weights = [one.dual if isinstance(one, KernelReadout) else one.coef for one in readouts]
    biases = sum(int(one.intercept.size) for one in readouts)
    return sum(int(np.count_nonzero(each)) for each in weights) + biases


def published_score(model: str | None, dataset: str) -> PublishedScore | None:
    """Return the accuracy that was published for a model on a dataset, as a share, or None."""
    found = None if model is None else paper.published_accuracy(model, dataset)
    if found is None:
        return None
    std = None if found.std is None else round(found.std / 100, 6)
    return PublishedScore(mean=round(found.mean / 100, 6), std=std, reference=found.reference)


def provenance() -> dict[str, Any]:
    """Return what numbers are made with, as fields of an evaluation: libraries and machine."""
    names = ("numpy", "scipy", "scikit-learn", "joblib")
    return {
        "versions": {"fdgnn": __version__} | {name: version(name) for name in names},
        "machine": {"python": platform.python_version(), "cpu": platform.machine()},
    }
