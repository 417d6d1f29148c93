"""From a table of graphs to a trained model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from fdgnn.context import Context
from fdgnn.datasets import GraphTable
from fdgnn.encoders import GraphReservoir
from fdgnn.estimators import AUTO, FDGNNClassifier, FDGNNRegressor
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.graphs import Array, GraphBatch, Ints
from fdgnn.readout.metrics import OF_CLASSES, OF_NUMBERS, Scoring, named_scoring, usual_scoring
from fdgnn.readout.rare import rare_class
from fdgnn.selection.folds import TEST, Folds, enough_for_nested_folds
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.selection.space import Parameters, depth_of
from fdgnn.selection.splits import Split, check_groups
from fdgnn.workflow.chemistry import baseline_answers, morgan_counts
from fdgnn.workflow.repeats import find_repeats

TaskName: TypeAlias = Literal["classification", "regression"]
ModelName: TypeAlias = Literal["auto", "paper", "colors", "both"]
MOST_CLASSES = 20  # whole numbers with more different values are taken for quantities
FOLDS = 5


def guess_task(y: Array) -> TaskName:
    """Take text, truth values and few different whole numbers for classes, others for numbers."""
    if y.dtype.kind not in "iuf":
        return "classification"
    whole = y.dtype.kind in "iu" or bool((y == np.round(y)).all())
    return "classification" if whole and len(np.unique(y)) <= MOST_CLASSES else "regression"


@dataclass(frozen=True)
class Wishes:
    """What a user asks of the training beyond the data.

    Attributes
    ----------
    task : {"classification", "regression"}, optional
        By default it is guessed from the targets.
    model : {"auto", "paper", "colors", "both"}
        "paper" searches the hyper-parameters of a reservoir, or takes the defaults. The others are
        the committees of ``FDGNNClassifier(encoder="auto")``, in which nothing is left to search.
    scoring : str, optional
        What models are chosen by, as in `FDGNNSearchCV`.
    threshold : str, optional
        What the threshold between two classes is chosen by, as in `FDGNNClassifier`; where a class
        is rare it is "f1" by default, so that this class is predicted at all.
    class_weight : "balanced", dict or None
        How much an error on each class counts, as in `FDGNNClassifier`.
    split : Split
        How graphs are held out, for choosing and for scoring.
    search : bool
    n_configurations, n_guesses : int
        Of the search of "paper".
    seed : int
    """

    task: TaskName | None = None
    model: ModelName = "auto"
    scoring: str | None = None
    threshold: str | None = None
    class_weight: str | Mapping[Any, float] | None = None
    split: Split = field(default_factory=Split)
    search: bool = True
    n_configurations: int = 20
    n_guesses: int = 3
    seed: int = 0


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
    members : list of str
        The models whose outputs are averaged.
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
    n_graphs: int
    seconds: float
    parameters: Parameters
    members: list[str]


def train(
    graphs: GraphBatch,
    y: Array,
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
    order = wishes.split.order(len(y))
    if (order != np.arange(len(y))).any():
        graphs, y = graphs[order], y[order]
        smiles = None if smiles is None else [smiles[i] for i in order]
    task = wishes.task or guess_task(y)
    classify = task == "classification"
    y = y if classify else _as_numbers(y)
    scoring, threshold = _settled(wishes, y, classify)
    found = _search(y, wishes, scoring, threshold, classify, context)
    found.fit(graphs, y, groups=wishes.split.groups)
    shown = _shown(scoring, classify)
    return Training(
        model=found.best_estimator_,
        task=task,
        metric=scoring.words,
        score=scoring.shown(found.nested_score_),
        scores={each.words: each.shown(found.nested_score_by(each.name)) for each in shown},
        baseline=_constant(y, scoring.name),
        rival={} if smiles is None else _rival(smiles, y, found.nested_folds_, shown, context),
        rare=_about_rare(y, scoring, threshold) if classify else None,
        repeats=find_repeats(graphs, y, _tested_by(found.nested_folds_), wishes.seed).in_words(),
        ceiling=graphs.wl_ceiling(y) if classify else None,
        n_graphs=len(graphs),
        seconds=time.perf_counter() - start,
        parameters=found.best_params_,
        members=[network.name for network in found.best_estimator_.networks_],
    )


def _settled(wishes: Wishes, y: Array, classify: bool) -> tuple[Scoring, str | None]:
    """Give what models and the threshold are chosen by; where a class is rare, F1 cuts."""
    for name in ("threshold", "class_weight"):
        if getattr(wishes, name) is not None and not classify:
            raise ValueError(f"`{name}` is for classes, but the target is a number")
    if not classify:
        return named_scoring(wishes.scoring or "r2", classify), None
    classes, codes = np.unique(y, return_inverse=True)
    rare = len(classes) == 2 and rare_class(y) is not None
    threshold = wishes.threshold or ("f1" if rare else None)
    return named_scoring(wishes.scoring or usual_scoring(codes).name, classify), threshold


def _about_rare(y: Array, scoring: Scoring, threshold: str | None) -> str | None:
    found = rare_class(y)
    if found is None:
        return None
    name, share = found
    text = f"class {name} has {100 * share:.1f} % of the graphs: {scoring.words} chooses models"
    if threshold is not None:
        text += f", and classes are told apart where {OF_CLASSES[threshold].words} is best"
    return text


def _shown(chosen_by: Scoring, classify: bool) -> list[Scoring]:
    """Scores that are always shown: what decided, and those that everyone asks for."""
    usual = ("accuracy", "balanced_accuracy", "roc_auc") if classify else ("r2", "rmse")
    known = OF_CLASSES if classify else OF_NUMBERS
    return [known[name] for name in dict.fromkeys([chosen_by.name, *usual])]


def _constant(y: Array, scoring: str) -> float | None:
    """The score of the best answer that is the same for all graphs."""
    counts = np.unique(y, return_counts=True)[1]
    known = {"accuracy": counts.max() / len(y), "balanced_accuracy": 1 / len(counts)}
    known |= {"roc_auc": 0.5, "r2": 0.0}
    if scoring == "rmse":
        return float(np.std(y))
    return float(known[scoring]) if scoring in known else None


def _tested_by(folds: Folds) -> Ints:
    """The outer fold that tests each graph; -1 where none does."""
    tested = folds == TEST
    return np.where(tested.any(axis=0), tested.argmax(axis=0), -1)


def _rival(
    smiles: Sequence[str], y: Array, folds: Folds, scorings: Sequence[Scoring], context: Context
) -> dict[str, float]:
    """Scores of logistic or ridge regression on Morgan counts, in the same outer folds."""
    classify = scorings[0].name in OF_CLASSES
    truth = np.unique(y, return_inverse=True)[1] if classify else y
    answers = baseline_answers(morgan_counts(smiles, context.n_jobs), truth, folds, classify)
    return {each.words: each.shown(answers.score(each.metric)) for each in scorings}


def base_model(model: ModelName, classify: bool, seed: int) -> FDGNNClassifier | FDGNNRegressor:
    """Give the estimator of a name, not fitted."""
    kind = FDGNNClassifier if classify else FDGNNRegressor
    base = kind(random_state=seed)
    base.set_params(**{"probability" if classify else "intervals": True})
    if model != "paper":
        base.set_params(encoder=AUTO, candidates="all" if model == "auto" else model)
    return base


def _search(
    y: Array, wishes: Wishes, scoring: Scoring, threshold: str | None, classify: bool,
    context: Context,
) -> FDGNNSearchCV:  # fmt: skip
    """Make a search; without one, cross validation of a model with default parameters."""
    seed, model = wishes.seed, wishes.model
    base = base_model(model, classify, seed).set_params(scoring=scoring.name)
    if classify:
        base.set_params(class_weight=wishes.class_weight, threshold=threshold)
    split = wishes.split.splitters(_n_folds(y, classify, wishes.split), classify, seed)
    found = FDGNNSearchCV(
        base, cv=split.inner, outer_cv=split.outer, random_state=seed, n_jobs=context.n_jobs,
        verbose=not context.quiet,
    )  # fmt: skip
    if model == "paper":
        found.set_params(n_configurations=wishes.n_configurations, n_guesses=wishes.n_guesses)
    if model == "paper" and not wishes.search:
        found.set_params(
            configurations=[{"random_state": seed}],
            depths=(depth_of(base),),
            alphas=(GraphReservoir.default_alpha,),
        )
    return found


def _as_numbers(y: Array) -> Array:
    try:
        return y.astype(np.float64)
    except ValueError:
        raise DatasetFormatError(
            "the target is text, but regression needs numbers; choose classification, or a column "
            "with numbers"
        ) from None


def _n_folds(y: Array, classify: bool, split: Split) -> int:
    """Take five folds, or fewer where there are too few graphs of a class, or groups, for that."""
    counts = np.unique(y, return_counts=True)[1]
    if classify and len(counts) == 1:
        raise ValueError(f"the target has one value only, {y[0]!s}; there is nothing to learn")
    fewest = int(counts.min()) if classify else len(y) // 2
    folds = [k for k in range(2, FOLDS + 1) if enough_for_nested_folds(fewest, k, k)]
    if not folds:
        raise ValueError(
            f"the smallest of the {len(counts)} classes has {fewest} graphs, too few for cross "
            "validation; add graphs of it, leave it out, or, for quantities, choose regression"
        )
    if split.groups is None:
        return folds[-1]
    n_groups = len(np.unique(check_groups(split.groups, len(y))))
    if n_groups < 4:
        raise ValueError(
            f"there are {n_groups} different groups ({split.name}), too few to hold some out "
            "twice; choose another split"
        )
    return min(folds[-1], n_groups // 2)


def check_targets(table: GraphTable) -> tuple[GraphBatch, Array]:
    """Give the graphs and targets of a table, or an error that says what is missing."""
    if table.graphs is None:
        first = f", the first because of: {table.rejects[0]}" if table.rejects else ""
        raise GraphError(f"none of the {table.n_rows} rows can be used{first}")
    if table.y is None:
        raise DatasetFormatError("it is not known which column is the target; name it by `target`")
    return table.graphs, table.y
