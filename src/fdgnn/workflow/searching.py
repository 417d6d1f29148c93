"""What is searched for a table of graphs: the candidates, the folds, and on how many graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from fdgnn.context import Context
from fdgnn.encoders import GraphReservoir
from fdgnn.estimators import AUTO, FDGNNClassifier, FDGNNRegressor
from fdgnn.graphs import Array, Ints
from fdgnn.readout.metrics import Scoring
from fdgnn.readout.several import SeveralTargets
from fdgnn.selection.folds import enough_for_nested_folds
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.selection.space import depth_of
from fdgnn.selection.splits import LastFold, Split
from fdgnn.workflow.asking import TaskName, text_among_numbers

ModelName: TypeAlias = Literal["auto", "paper", "colors", "both"]
FOLDS = 5
MANY = 10_000  # graphs beyond which one outer fold is scored, not all
_LEAST_OF_SEVERAL = 4  # graphs of each class of each target, so that two nested folds have one each


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
    handle_unknown : {"ignore", "error"}, optional
        What the model does about vertex labels that no training graph has.
    search : bool
    n_configurations, n_guesses : int
        Of the search of "paper".
    settings : mapping
        Parameters of the estimator that are not searched: of "paper" those of `GraphReservoir`,
        `n_projections` and `alpha`; of "colors" `n_rounds`, `readout` and `alpha`, which take one
        model instead of several.
    search_on : int, optional
        Search on so many graphs, drawn at random; the model is fitted on all.
    work_dir : Path, optional
        Where finished parts of the search are kept, as in `FDGNNSearchCV`.
    seed : int
    """

    task: TaskName | None = None
    model: ModelName = "auto"
    scoring: str | None = None
    threshold: str | None = None
    class_weight: str | Mapping[Any, float] | None = None
    split: Split = field(default_factory=Split)
    handle_unknown: str | None = None
    search: bool = True
    n_configurations: int = 20
    n_guesses: int = 3
    settings: Mapping[str, Any] = field(default_factory=dict)
    search_on: int | None = None
    work_dir: Path | None = None
    seed: int = 0


def new_search(
    y: Any, wishes: Wishes, scoring: Scoring, threshold: str | None, classify: bool,
    context: Context,
) -> FDGNNSearchCV:  # fmt: skip
    """Make a search; without one, cross validation of a model with default parameters."""
    base = _base_model(wishes, classify)
    base.set_params(scoring=scoring.name, handle_unknown=wishes.handle_unknown)
    if classify:
        base.set_params(class_weight=wishes.class_weight, threshold=threshold)
    several, seed = isinstance(y, SeveralTargets), wishes.seed
    split = wishes.split.splitters(_n_folds(y, classify, wishes.split), classify, seed, several)
    outer = LastFold(split.outer) if len(y) > MANY else split.outer
    found = FDGNNSearchCV(
        base, cv=split.inner, outer_cv=outer, random_state=seed, n_jobs=context.n_jobs,
        verbose=not context.quiet, work_dir=wishes.work_dir,
    )  # fmt: skip
    return found if base.encoder == AUTO else found.set_params(**_searched(base, wishes))


def _base_model(wishes: Wishes, classify: bool) -> Any:
    """Give the estimator, not fitted, with the settings that are not searched."""
    kind = FDGNNClassifier if classify else FDGNNRegressor
    base = kind(random_state=wishes.seed)
    base.set_params(**{"probability" if classify else "intervals": True})
    if wishes.model == "paper" or (wishes.model == "colors" and wishes.settings):
        given = {name: value for name, value in wishes.settings.items() if name != "alpha"}
        encoder = "reservoir" if wishes.model == "paper" else "colors"
        return base.set_params(encoder=encoder, **given)
    if wishes.settings:
        raise ValueError(f"model {wishes.model!r} has no settings; choose 'paper' or 'colors'")
    return base.set_params(
        encoder=AUTO, candidates="all" if wishes.model == "auto" else wishes.model
    )


def _searched(base: Any, wishes: Wishes) -> dict[str, Any]:
    """Give the parameters of a search that leaves alone what is given."""
    given = wishes.settings
    found: dict[str, Any] = {"n_guesses": wishes.n_guesses if wishes.model == "paper" else 1}
    if base.depth_parameter in given:
        found["depths"] = (given[base.depth_parameter],)
    if "alpha" in given:
        found["alphas"] = (given["alpha"],)
    left = {name: space for name, space in base.search_space.items() if name not in given}
    if wishes.search and wishes.model == "paper" and left:
        found |= {"n_configurations": wishes.n_configurations, "param_distributions": left}
        return found
    found["configurations"] = [{"random_state": wishes.seed}]
    if not wishes.search:
        usual = {"depths": (depth_of(base),), "alphas": (GraphReservoir.default_alpha,)}
        found = usual | found
    return found


def sample_of(y: Any, n: int | None, seed: int) -> Ints | None:
    """Draw so many graphs, in their order, with all classes alike; None if that is all of them."""
    if n is None or n >= len(y):
        return None
    order: Any = np.random.default_rng(seed).permutation(len(y))
    if not isinstance(y, SeveralTargets):
        order = order[np.argsort(y[order], kind="stable")]
    return np.sort(order[np.linspace(0, len(y) - 1, n).round().astype(np.int64)])


def _n_folds(y: Any, classify: bool, split: Split) -> int:
    """Take five folds, or fewer where there are too few graphs of a class, or groups, for that."""
    if isinstance(y, SeveralTargets):
        y.check_learnable(_LEAST_OF_SEVERAL)
        each = [_fewest(y.of_graphs(t), classify) for t in range(len(y.names))]
        fewest, who = min(each), f"a class of target {y.names[int(np.argmin(each))]!r}"
    else:
        values, counts = np.unique(y, return_counts=True)
        if len(counts) == 1:
            raise ValueError(f"the target has one value only, {y[0]!s}; there is nothing to learn")
        fewest, who = _fewest(y, classify), f"class {values[np.argmin(counts)]!s}"
    folds = [k for k in range(2, FOLDS + 1) if enough_for_nested_folds(fewest, k, k)]
    if not folds and not classify:
        raise ValueError(f"{len(y)} graphs are too few for cross validation; add some")
    if not folds:
        text = f"{who} has {fewest} graph{'s' * (fewest > 1)}, too few for cross validation; "
        odd = None if isinstance(y, SeveralTargets) else text_among_numbers(y)
        if odd is not None:
            raise ValueError(
                f"{text}the target is taken for classes because {odd!r} is no number; for "
                "quantities, choose `task='regression'`"
            )
        raise ValueError(
            f"{text}add some, leave the class out, or, for quantities, choose `task='regression'`"
        )
    return split.n_folds(len(y), folds[-1])


def _fewest(y: Array, classify: bool) -> int:
    """Graphs of the smallest class; of numbers, half of all."""
    return int(np.unique(y, return_counts=True)[1].min()) if classify else len(y) // 2
