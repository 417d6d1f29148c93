"""From a table of graphs to a trained model, and how well it does beside baselines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdgnn.arrays import Ints
from fdgnn.context import Context
from fdgnn.evaluation.duplicates import find_repeats
from fdgnn.evaluation.molecules import baseline_answers, morgan_counts
from fdgnn.folds import TEST, Folds
from fdgnn.graphs import GraphBatch
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, Scoring
from fdgnn.selection.scoring import NestedAnswers
from fdgnn.selection.search import FDGNNSearchCV, Parameters
from fdgnn.targets import Targets
from fdgnn.tasks import TaskName
from fdgnn.training import TrainingOptions, imbalance_note, new_search, sample_of


@dataclass(frozen=True)
class TargetFacts:
    """How a model does on one target, beside baselines in the same folds.

    Attributes
    ----------
    name : str
    n_known : int
        Graphs for which the target is known.
    scores : dict
        Nested cross-validation results by metric, in words. Errors are positive numbers.
    baseline : float or None
        The score of the best constant prediction; None where it says nothing.
    rival : dict
        For molecules, the same metrics for regression on Morgan counts.
    ceiling : float or None
        For classes: the best accuracy that any message-passing model could reach that does not
        look at edge labels.
    """

    name: str
    n_known: int
    scores: dict[str, float]
    baseline: float | None
    rival: dict[str, float]
    ceiling: float | None


@dataclass(frozen=True)
class Training:
    """A trained model, and what one should know before trusting it.

    Attributes
    ----------
    metric, score : str, float
        What models were chosen by, and how they do, by nested cross-validation: what was selected
        and fitted without an outer fold is scored on it.
    targets : tuple of TargetFacts
        The same for each target, with further metrics.
    rare : str or None
        Class imbalance, and what was done about it.
    repeats : str or None
        Duplicates across folds.
    split : str
        How graphs were held out, in words.
    members : list of str
        The base models whose outputs are averaged.
    n_searched : int
        Graphs on which models were chosen and scored.
    n_resumed : int
        Base models that an earlier search had finished.
    """

    model: Any
    task: TaskName
    metric: str
    score: float
    targets: tuple[TargetFacts, ...]
    rare: str | None
    repeats: str | None
    split: str
    n_graphs: int
    seconds: float
    parameters: Parameters
    members: list[str]
    n_searched: int
    n_resumed: int

    @property
    def scores(self) -> dict[str, float]:
        """Mean of each metric over targets."""
        return _means([target.scores for target in self.targets])

    @property
    def rival(self) -> dict[str, float]:
        """Mean of each metric over targets, of regression on Morgan counts."""
        return _means([target.rival for target in self.targets])

    @property
    def baseline(self) -> float | None:
        """Mean score of the best constant predictions; None if one is missing."""
        known = [t.baseline for t in self.targets if t.baseline is not None]
        return float(np.mean(known)) if len(known) == len(self.targets) else None

    @property
    def ceiling(self) -> float | None:
        """The best accuracy of any message passing, of a single target."""
        return self.targets[0].ceiling if len(self.targets) == 1 else None


def _means(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def train(
    graphs: GraphBatch,
    targets: Targets,
    options: TrainingOptions | None = None,
    *,
    smiles: Sequence[str] | None = None,
    context: Context | None = None,
) -> Training:
    """Choose a model by cross-validation, and fit it on all graphs.

    Parameters
    ----------
    graphs, targets
    options : TrainingOptions, optional
    smiles : sequence of str, optional
        Where the graphs are molecules: what they were read from, for the baseline.
    context : Context, optional
    """
    start, context = time.perf_counter(), context or Context()
    options = (options or TrainingOptions()).with_defaults(targets)
    order = options.split.order(len(targets))
    whole, options = _Rows(graphs, targets, smiles).take(order), options.of_rows(order)
    some, used = sample_of(whole.targets, options.search_on, options.seed), whole
    if some is not None:
        used, options = whole.take(some), options.of_rows(some)
    try:
        search = new_search(used.targets, options, context)
    except ValueError:
        if some is None:
            raise
        raise ValueError(
            f"`search_on` draws {len(some)} of {len(targets)} graphs, which are too few for cross-"
            "validation; draw more"
        ) from None
    search.fit(used.graphs, used.targets, groups=options.split.groups)
    if some is not None:
        search.refit(whole.graphs, whole.targets)
    scoring = options.chosen_by(targets.classify)
    tested = _tested_by(search.nested_folds_)
    values = used.targets.values[:, 0] if len(targets.names) == 1 else np.zeros(len(used.targets))
    found = Training(
        model=search.best_estimator_,
        task="classification" if targets.classify else "regression",
        metric=scoring.words,
        score=scoring.shown(search.nested_score_),
        targets=_facts(search, used, scoring, context),
        rare=imbalance_note(targets, scoring, options.threshold),
        repeats=find_repeats(used.graphs, values, tested, options.seed).in_words(),
        split=options.split.words,
        n_graphs=len(graphs),
        seconds=0.0,
        parameters=search.best_params_,
        members=[model.name for model in search.best_estimator_.estimators_],
        n_searched=len(used.targets),
        n_resumed=search.n_resumed_,
    )
    model = found.model
    model.training_facts_, model.training_split_ = found.targets, found.split
    model.training_repeats_ = found.repeats
    return replace(found, seconds=time.perf_counter() - start)


@dataclass(frozen=True)
class _Rows:
    """Graphs, their targets and, of molecules, what they were read from."""

    graphs: GraphBatch
    targets: Targets
    smiles: Sequence[str] | None

    def take(self, rows: Ints) -> _Rows:
        """Return these rows, in this order."""
        if len(rows) == len(self.targets) and (rows == np.arange(len(rows))).all():
            return self
        smiles = None if self.smiles is None else [self.smiles[i] for i in rows]
        return _Rows(self.graphs[rows], self.targets[rows], smiles)


def _facts(
    search: FDGNNSearchCV, rows: _Rows, scoring: Scoring, context: Context
) -> tuple[TargetFacts, ...]:
    """How the model, constants and Morgan counts do on each target, where it is known."""
    targets, classify = rows.targets, rows.targets.classify
    X = None if rows.smiles is None else morgan_counts(rows.smiles, context.n_jobs)
    usual = ("accuracy", "balanced_accuracy", "roc_auc") if classify else ("r2", "rmse")
    known_scorings = OF_CLASSES if classify else OF_NUMBERS
    shown = [known_scorings[name] for name in dict.fromkeys([scoring.name, *usual])]
    by_target = {each.words: search.nested_scores_by_target(each.name) for each in shown}
    found = []
    for t, (target, known) in enumerate(zip(targets.each, targets.known.T, strict=True)):
        folds = search.nested_folds_[:, known]
        own = Targets(
            ("",), targets.values[known, t][:, None],
            None if target.classes is None else (target.classes,), flat=True,
        )  # fmt: skip
        graphs = rows.graphs if known.all() else rows.graphs[known]
        found.append(
            TargetFacts(
                name=target.name,
                n_known=int(known.sum()),
                scores={s.words: s.shown(by_target[s.words][target.name]) for s in shown},
                baseline=_constant(own, folds, scoring),
                rival={} if X is None else _rival(X[known], own, folds, shown),
                ceiling=graphs.wl_ceiling(own.of_target(0)) if classify else None,
            )
        )
    return tuple(found)


def _rival(X: Any, targets: Targets, folds: Folds, shown: Sequence[Scoring]) -> dict[str, float]:
    """Scores of logistic or ridge regression on Morgan counts, in the same outer folds."""
    answers = baseline_answers(X, targets, folds)
    return {each.words: each.shown(answers.score(each)) for each in shown}


def _constant(targets: Targets, folds: Folds, scoring: Scoring) -> float | None:
    """Score the constant prediction of the mean of the training targets.

    Of coded classes the mean is largest for the majority class.
    """
    if scoring.name == "roc_auc":
        return 0.5  # the same whatever the constant
    if scoring.name == "balanced_accuracy":
        return 1 / len(np.unique(targets.values))
    if scoring.name not in ("accuracy", "r2", "rmse", "mae"):
        return None
    rows = folds[(folds == TEST).any(axis=1)]
    means = np.array([targets.coded[row >= 0].mean(axis=0) for row in rows])
    outputs = np.repeat(means[:, None], len(targets), axis=1)
    return scoring.shown(NestedAnswers(targets, rows == TEST, outputs).score(scoring))


def _tested_by(folds: Folds) -> Ints:
    """Return the outer fold that tests each graph; -1 where none does."""
    tested = folds == TEST
    return np.where(tested.any(axis=0), tested.argmax(axis=0), -1)
