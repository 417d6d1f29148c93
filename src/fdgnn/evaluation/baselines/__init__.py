"""The methods that the paper's FDGNN is compared with.

Ensembles of our own come first, then baselines, each in the library that people use for it.

================  =====================================================  ==============  =======
``fdgnn-auto``    an ensemble of WL features and reservoirs              fdgnn           numbers
``fdgnn-wl``      an ensemble of WL features                             fdgnn           numbers
``fdgnn-union``   an ensemble of unions of WL features and a reservoir   fdgnn           numbers
``labels-rf``     counts of vertex labels, random forest                 scikit-learn    numbers
``ecfp-lr``       Morgan counts, logistic or ridge regression            RDKit           numbers
``ecfp-rf``       Morgan counts, random forest                           RDKit           numbers
``ecfp-gb``       Morgan counts, gradient boosting                       RDKit           numbers
``desc-rf``       RDKit descriptors, random forest                       RDKit           numbers
``desc-gb``       RDKit descriptors, gradient boosting                   RDKit           numbers
``wl``            Weisfeiler-Lehman subtree kernel                       GraKeL, SVC
``wl-oa``         Weisfeiler-Lehman optimal assignment kernel            GraKeL, SVC
``pk``            propagation kernel                                     GraKeL, SVC
``gk``            graphlet kernel, sampled                               GraKeL, SVC
``rw``            geometric random-walk kernel                           GraKeL, SVC
``gin``           Graph Isomorphism Network (Xu et al. 2019)             PyG
``dgcnn``         Deep Graph CNN, sort pooling (Zhang et al. 2018)       PyG
``gnn``           the trained fixed point (Scarselli et al. 2009)        PyTorch
================  =====================================================  ==============  =======

Those marked "numbers" are for regression as well. GraKeL and PyTorch are imported when a method
needs them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module, util
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from msgspec.structs import replace

from fdgnn.arrays import Ints
from fdgnn.checkpoints import Checkpoints
from fdgnn.context import Context
from fdgnn.evaluation.record import Configuration, Count, Evaluation, ModelDescription
from fdgnn.evaluation.run import EvaluationRun, EvaluationTask
from fdgnn.evaluation.scores import baselines_of, published_score
from fdgnn.evaluation.timing import ENGINE, FoldTest, Step, TimedEvaluation, peak_megabytes
from fdgnn.extras import require
from fdgnn.folds import Folds, trained_on
from fdgnn.metrics import Scoring, named_scoring
from fdgnn.records import Record

__all__ = ["METHODS", "Method", "MethodEntry", "Search", "Trial", "check_method", "new_method"]


# ---------------------------------------------------------------------- the list of methods


@dataclass(frozen=True)
class MethodEntry:
    """A method as the list of all methods has it.

    Attributes
    ----------
    title : str
    family : {"ensemble", "vectors", "kernel", "network"}
        What makes its `Method`.
    published : str, optional
        Its row among the published accuracies (`fdgnn.evaluation.paper.published_accuracy`).
    libraries : tuple of str
        Libraries that must be installed.
    """

    title: str
    family: Literal["ensemble", "vectors", "kernel", "network"]
    published: str | None = None
    libraries: tuple[str, ...] = ()

    @property
    def molecules(self) -> bool:
        """Whether the method is for molecules only."""
        return "rdkit" in self.libraries

    @property
    def regression(self) -> bool:
        """Whether the method predicts numbers as well."""
        return self.family in ("ensemble", "vectors")


_RDKIT, _GRAKEL, _TORCH = ("rdkit",), ("grakel",), ("torch", "torch_geometric")
METHODS = {
    "fdgnn-auto": MethodEntry("FDGNN auto: ensemble", "ensemble"),
    "fdgnn-wl": MethodEntry("FDGNN auto: only WL", "ensemble"),
    "fdgnn-union": MethodEntry("FDGNN auto: union of both", "ensemble"),
    "labels-rf": MethodEntry("label histogram, random forest", "vectors"),
    "ecfp-lr": MethodEntry(
        "Morgan counts, logistic or ridge regression", "vectors", libraries=_RDKIT
    ),
    "ecfp-rf": MethodEntry("Morgan counts, random forest", "vectors", libraries=_RDKIT),
    "ecfp-gb": MethodEntry("Morgan counts, gradient boosting", "vectors", libraries=_RDKIT),
    "desc-rf": MethodEntry("RDKit descriptors, random forest", "vectors", libraries=_RDKIT),
    "desc-gb": MethodEntry("RDKit descriptors, gradient boosting", "vectors", libraries=_RDKIT),
    "wl": MethodEntry("Weisfeiler-Lehman kernel, SVC", "kernel", "WL", _GRAKEL),
    "wl-oa": MethodEntry("WL optimal assignment kernel, SVC", "kernel", "WL-OA", _GRAKEL),
    "pk": MethodEntry("propagation kernel, SVC", "kernel", "PK", _GRAKEL),
    "gk": MethodEntry("graphlet kernel, SVC", "kernel", "GK", _GRAKEL),
    "rw": MethodEntry("random-walk kernel, SVC", "kernel", "RW", _GRAKEL),
    "gin": MethodEntry("GIN", "network", "GIN", _TORCH),
    "dgcnn": MethodEntry("DGCNN", "network", "DGCNN", _TORCH),
    "gnn": MethodEntry("GNN (trained fixed point)", "network", "GNN", _TORCH),
}


def new_method(name: str, task: EvaluationTask, search: Search) -> Method:
    """Return the method of that name."""
    family = METHODS[name].family
    home = "networks" if family == "network" else "pipelines"
    module = import_module(f"fdgnn.evaluation.baselines.{home}")
    found: Method = getattr(module, family)(name, task, search)
    return found


def check_method(name: str, *, molecules: bool = True, classify: bool = True) -> None:
    """Raise an error if a method is unknown, not for such graphs, or lacks a library."""
    if name not in METHODS:
        raise ValueError(f"no method {name!r}; there are {', '.join(METHODS)}")
    entry = METHODS[name]
    if entry.molecules and not molecules:
        raise ValueError(
            f"{name} is for molecules, and these graphs were not read from SMILES; leave it out"
        )
    if not (entry.regression or classify):
        known = ", ".join(n for n, each in METHODS.items() if each.regression)
        raise ValueError(
            f"{name} is for classification, but the target is numeric; choose some of {known}"
        )
    networks = " (install PyTorch's CPU build first)" if "torch" in entry.libraries else ""
    for library in entry.libraries:
        if util.find_spec(library) is None:
            extra = "chem" if entry.molecules else "compare"
            require(library, extra, f"comparisons with {name}{networks}")


# ---------------------------------------------------------------------- a method


class Search(Record, frozen=True, kw_only=True):
    """The part of the published grids that is searched.

    Attributes
    ----------
    n_configurations : int, optional
        Points of a method's grid, in its order; by default all.
    inner_folds : int, optional
        Inner folds on which they are validated; by default all, for networks one.
    choose_epochs : bool, default=True
        Whether networks also select their number of epochs, or are trained for all published ones.
    scoring : str, optional
        What methods choose by; by default accuracy, or R2. Networks choose by accuracy.
    class_weight : "balanced", optional
        Whether errors on rare classes count more in training, except that of networks.
    """

    n_configurations: int | None = None
    inner_folds: int | None = None
    choose_epochs: bool = True
    scoring: str | None = None
    class_weight: Literal["balanced"] | None = None

    def __post_init__(self) -> None:
        for name in ("n_configurations", "inner_folds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; give 1 or more, or None for the default")


class Trial(Record, frozen=True, kw_only=True):
    """The validation score of one configuration on the inner folds of one outer fold."""

    outer: Count
    configuration: Configuration
    score: float | None  # None if it is not defined


class Validation(Step, frozen=True, kw_only=True):
    """A finished part of the selection."""

    trials: list[Trial]


class Method(TimedEvaluation):
    """A family of models with its grid, on a task: selected, trained and tested in outer folds.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    task : EvaluationTask
        Of one target. Models learn class codes, or numbers.
    search : Search
    grid : sequence of Configuration
        The most promising configuration first.
    """

    #: The class of the model, for the record.
    kind: str
    #: Inner folds that are used by default; None for all.
    usual_folds: ClassVar[int | None] = None

    def __init__(
        self, name: str, task: EvaluationTask, search: Search, grid: Sequence[Configuration]
    ) -> None:
        self.name, self.task, self.search = name, task, search
        self.classify = task.targets.classify
        self.grid = list(grid)[: search.n_configurations]
        self.n_configurations = len(self.grid)
        n_inner = int(task.folds.max()) + 1
        self.inner_folds = min(search.inner_folds or self.usual_folds or n_inner, n_inner)

    def __reduce__(self) -> Any:
        return new_method, (self.name, self.task, self.search)

    @property
    def scoring(self) -> Scoring:
        """The metric that the selection chooses by."""
        usual = "accuracy" if self.classify else "r2"
        return named_scoring(self.search.scoring or usual, self.classify)

    def score(self, unit: str) -> list[Trial]:
        """Validate the configurations of one part of the selection."""
        raise NotImplementedError  # of methods that choose nothing before training

    @property
    def units(self) -> list[str]:
        """The parts of the selection, each a checkpoint; none where there is nothing to choose."""
        return [json.dumps(each) for each in self.grid] if len(self.grid) > 1 else []

    @property
    def only(self) -> Configuration:
        """The configuration where there is nothing to choose: the first of the grid."""
        return self.grid[0]

    def inner_parts(self, fold: Folds) -> Iterator[tuple[Ints, Ints]]:
        """Yield training and validation graphs of the first inner folds of an outer one."""
        for inner in range(self.inner_folds):
            yield np.flatnonzero(trained_on(fold) & (fold != inner)), np.flatnonzero(fold == inner)

    # ------------------------------------------------------------------ evaluation

    @property
    def described(self) -> Evaluation:
        """The evaluation without results."""
        entry = METHODS[self.name]
        parameters: Configuration = {} if self.search.choose_epochs else {"choose_epochs": False}
        selects = bool(self.units) or self.n_configurations > 1
        return self.task.described(
            ModelDescription(
                name=self.name, title=entry.title, kind=self.kind, parameters=parameters
            ),
            n_inner=self.inner_folds if selects else 0,
            n_configurations=self.n_configurations,
            scoring=self.scoring.name,
            class_weight=self.search.class_weight,
            published=published_score(entry.published, self.task.dataset),
        )

    @property
    def n_steps(self) -> int:
        """The number of steps, each a checkpoint."""
        return len(self.units) + len(self.task.folds)

    def run(self, parts: Path | None, context: Context) -> EvaluationRun:
        """Select for each outer fold, train and test what was selected."""
        return self._run(parts, make=True)

    def finished(self, parts: Path) -> Evaluation:
        """Return the evaluation of all steps that are finished, with their total time."""
        return self._run(parts, make=False).evaluation

    def _run(self, parts: Path | None, *, make: bool) -> EvaluationRun:
        task, search = self.task, replace(self.search, n_configurations=None)
        store = Checkpoints(parts, self.name, ENGINE, task.data_hash, task.folds, task.seed, search)
        selection = [store.load_record(unit, Validation) for unit in self.units]
        for i, unit in enumerate(self.units if make else ()):
            if selection[i] is None:
                selection[i] = self._validate(unit)
                store.save_record(unit, selection[i])
        known = [one for one in selection if one is not None]
        trials = [trial for one in known for trial in one.trials]
        chosen, tests = list[Configuration](), dict[int, FoldTest]()
        if len(known) == len(selection):
            numbers = range(len(task.folds))
            chosen = [best_trial(trials, o) if trials else self.only for o in numbers]
            tests = self.test(store, chosen, make=make)
        baselines = partial(baselines_of, task.targets, smiles=None)
        return self.result(chosen, tests, baselines, known)

    def _validate(self, unit: str) -> Validation:
        start, trials = time.perf_counter(), self.score(unit)
        seconds = time.perf_counter() - start
        return Validation(seconds=seconds, peak_mb=peak_megabytes(), trials=trials)


def best_trial(trials: Sequence[Trial], outer: int) -> Configuration:
    """Return the configuration of an outer fold with the best score; the first among equals."""
    own = [trial for trial in trials if trial.outer == outer]
    best = max(own, key=lambda t: -np.inf if t.score is None else t.score)
    return best.configuration
