"""From a table of graphs to a trained model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdgnn.context import Context
from fdgnn.graphs import Array, GraphBatch, Ints
from fdgnn.readout.metrics import OF_CLASSES, OF_NUMBERS, Scoring
from fdgnn.readout.several import SeveralTargets
from fdgnn.selection.folds import TEST, Folds
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.selection.space import Parameters
from fdgnn.workflow.asking import TaskName, as_numbers, task_of
from fdgnn.workflow.chemistry import morgan_counts
from fdgnn.workflow.judging import TargetFacts, facts_of_targets, mean_of_each, mean_or_none
from fdgnn.workflow.repeats import find_repeats
from fdgnn.workflow.searching import Wishes, new_search, sample_of
from fdgnn.workflow.settling import about_rare, settled


@dataclass(frozen=True)
class Training:
    """A trained model, and what one should know before trusting it.

    Attributes
    ----------
    metric, score : str, float
        What models were chosen by, and how they do, by nested cross validation: what was selected
        and fitted without an outer fold is scored on it. It is the score of such a model as is
        saved: of all its networks, with their outputs averaged. Errors are positive numbers.
    scores : dict
        The same by other measures, by their names in words.
    baseline : float or None
        The score of the best constant answer; None where it says nothing.
    rival : dict
        For molecules, the same measures for regression on Morgan counts, in the same folds.
    rare : str or None
        Which class is rare, and what was done about it.
    repeats : str or None
        What is to be said about graphs that are in several folds.
    ceiling : float, optional
        For classes: the best accuracy that any message-passing model could reach that does not
        look at labels of arcs.
    split : str
        How graphs were held out, in words.
    members : list of str
        The models whose outputs are averaged.
    targets : tuple of TargetFacts
        The same for each of several targets; the scores above are then their means.
    n_searched : int
        Graphs on which models were chosen and scored.
    n_resumed : int
        Parts of the search that an earlier one had finished.
    """

    model: Any
    task: TaskName
    metric: str
    score: float
    scores: dict[str, float]
    baseline: float | None
    rival: dict[str, float]
    rare: str | None
    repeats: str | None
    ceiling: float | None
    split: str
    n_graphs: int
    seconds: float
    parameters: Parameters
    members: list[str]
    targets: tuple[TargetFacts, ...] = ()
    n_searched: int = 0
    n_resumed: int = 0


def train(
    graphs: GraphBatch,
    y: Array | SeveralTargets,
    wishes: Wishes | None = None,
    *,
    smiles: Sequence[str] | None = None,
    context: Context | None = None,
) -> Training:
    """Choose a model by cross validation, and fit it on all graphs.

    Parameters
    ----------
    graphs, y
    wishes : Wishes, optional
    smiles : sequence of str, optional
        Where the graphs are molecules: what they were read from, for the baseline.
    context : Context, optional
    """
    start, wishes, context = time.perf_counter(), wishes or Wishes(), context or Context()
    classify = (wishes.task or task_of(y)) == "classification"
    y = y if classify or isinstance(y, SeveralTargets) else as_numbers(y)
    scoring, threshold = settled(wishes, y, classify)
    order = wishes.split.order(len(y))
    whole, wishes = _Rows(graphs, y, smiles).take(order), _in_order(wishes, order)
    some, used = sample_of(whole.y, wishes.search_on, wishes.seed), whole
    if some is not None:
        used, wishes = whole.take(some), _in_order(wishes, some)
    try:
        found = new_search(used.y, wishes, scoring, threshold, classify, context)
    except ValueError:
        if some is None:
            raise
        raise ValueError(
            f"`search_on` draws {len(some)} of {len(y)} graphs, which are too few for cross "
            "validation; draw more"
        ) from None
    found.fit(used.graphs, used.y, groups=wishes.split.groups)
    if some is not None:
        found.refit(whole.graphs, whole.y)
    told = _training(found, used, scoring, wishes, context)
    rare = about_rare(y, scoring, threshold) if classify else None
    return replace(told, rare=rare, n_graphs=len(graphs), seconds=time.perf_counter() - start)


def _in_order(wishes: Wishes, rows: Ints) -> Wishes:
    """Ask the same of some of the graphs, or of all in another order."""
    return replace(wishes, split=wishes.split.of(rows))


@dataclass(frozen=True)
class _Rows:
    """Graphs, their targets and, of molecules, what they were read from."""

    graphs: GraphBatch
    y: Any
    smiles: Sequence[str] | None

    def take(self, rows: Ints) -> _Rows:
        """Give these rows, in this order."""
        if len(rows) == len(self.y) and (rows == np.arange(len(rows))).all():
            return self
        smiles = None if self.smiles is None else [self.smiles[i] for i in rows]
        return _Rows(self.graphs[rows], self.y[rows], smiles)


def _training(
    found: FDGNNSearchCV, rows: _Rows, scoring: Scoring, wishes: Wishes, context: Context
) -> Training:
    """Tell what came out of a search on some rows."""
    graphs, y, classify = rows.graphs, rows.y, scoring.name in OF_CLASSES
    shown = _shown(scoring, classify)
    X = None if rows.smiles is None else morgan_counts(rows.smiles, context.n_jobs)
    each = tuple(facts_of_targets(graphs, y, found, scoring, shown, X))
    several, tested = isinstance(y, SeveralTargets), _tested_by(found.nested_folds_)
    values = np.zeros(len(y)) if several else y  # of twins with other values
    told = Training(
        model=found.best_estimator_,
        task="classification" if classify else "regression",
        metric=scoring.words,
        score=scoring.shown(found.nested_score_),
        scores={one.words: one.shown(found.nested_score_by(one.name)) for one in shown},
        baseline=mean_or_none([one.baseline for one in each]),
        rival=mean_of_each([one.rival for one in each]),
        rare=None,
        repeats=find_repeats(graphs, values, tested, wishes.seed).in_words(),
        ceiling=None if several else each[0].ceiling,
        split=wishes.split.words,
        targets=each if several else (),
        n_graphs=len(graphs),
        n_searched=len(graphs),
        n_resumed=found.n_resumed_,
        seconds=0.0,
        parameters=found.best_params_,
        members=[network.name for network in found.best_estimator_.networks_],
    )
    _let_know(told.model, told)
    return told


def _let_know(model: Any, told: Training) -> None:
    """Let a model know how it does on graphs held out, so that its file and page can tell."""
    pairs: list[tuple[Any, Training | TargetFacts]] = [(model, told)]
    for one, facts in [*pairs, *zip(model.each_, told.targets, strict=True)]:
        one.training_scores_, one.training_rival_ = facts.scores, facts.rival
        one.training_split_, one.training_repeats_ = told.split, told.repeats


def _shown(chosen_by: Scoring, classify: bool) -> list[Scoring]:
    """Scores that are always shown: what decided, and those that everyone asks for."""
    usual = ("accuracy", "balanced_accuracy", "roc_auc") if classify else ("r2", "rmse")
    known = OF_CLASSES if classify else OF_NUMBERS
    return [known[name] for name in dict.fromkeys([chosen_by.name, *usual])]


def _tested_by(folds: Folds) -> Ints:
    """The outer fold that tests each graph; -1 where none does."""
    tested = folds == TEST
    return np.where(tested.any(axis=0), tested.argmax(axis=0), -1)
