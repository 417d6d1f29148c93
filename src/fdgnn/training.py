"""Training of a model on a table of graphs: its options, and how well the model does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace as replace_fields

from fdgnn.arrays import Ints
from fdgnn.context import Context
from fdgnn.encoders import WLCounts
from fdgnn.estimators import (
    AutoGraphClassifier,
    AutoGraphRegressor,
    FDGNNClassifier,
    FDGNNRegressor,
    GraphClassifier,
    GraphRegressor,
)
from fdgnn.evaluation.record import Evaluation
from fdgnn.evaluation.run import EvaluationRun, EvaluationTask
from fdgnn.evaluation.scores import baseline_note, described_search, evaluation_of_search, plain
from fdgnn.evaluation.splits import duplicates_note
from fdgnn.folds import (
    LEAST_OF_SEVERAL,
    N_FOLDS,
    TEST,
    LastFold,
    Split,
    possible_folds,
)
from fdgnn.graphs import GraphBatch
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, named_scoring, rare_class
from fdgnn.neighbors import as_text
from fdgnn.options import TrainingOptions
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.targets import Targets
from fdgnn.tasks import text_among_numbers

MANY = 5_000  # graphs beyond which one outer fold is scored, not all
SKEWED = 30.0  # largest value over median, from which on a logarithm is suggested
PAPER_ESTIMATORS = 3  # random initializations of the paper's model


def new_model(options: TrainingOptions, classify: bool) -> Any:
    """Return the requested estimator, not fitted."""
    options.checked(classify)
    given, own = dict(options.settings), dict[str, Any](random_state=options.seed)
    own["probability" if classify else "intervals"] = True
    if classify:
        own |= {"class_weight": options.class_weight, "threshold": options.threshold}
    else:
        own["target_transform"] = options.transform
    if options.model == "paper":
        paper = FDGNNClassifier if classify else FDGNNRegressor
        return paper(handle_unknown=options.handle_unknown, **own).set_params(**given)
    own["scoring"] = options.scoring
    if given:
        readout, _ = given.pop("readout", "auto"), given.pop("alpha", None)
        encoder = WLCounts(handle_unknown=options.handle_unknown, **given)
        return (GraphClassifier if classify else GraphRegressor)(encoder, readout, **own)
    candidates = "all" if options.model == "auto" else options.model
    auto = AutoGraphClassifier if classify else AutoGraphRegressor
    which = options.molecule_descriptors
    own["descriptors"] = None if which == "none" else which
    return auto(candidates, handle_unknown=options.handle_unknown, **own)


def check_model(options: TrainingOptions) -> None:
    """Raise ValueError for a wrong value of an option, before any graph is read."""
    if options.task is None and options.scoring not in (None, *OF_CLASSES, *OF_NUMBERS):
        raise ValueError(
            f"scoring={options.scoring!r}: expected one of {', '.join(OF_CLASSES)} for classes, or "
            f"one of {', '.join(OF_NUMBERS)} for regression"
        )
    likely = "regression" if options.scoring in OF_NUMBERS else "classification"
    new_model(options, (options.task or likely) == "classification")._check_parameters()


def new_search(targets: Targets, options: TrainingOptions, context: Context) -> FDGNNSearchCV:
    """Return a search; without one, cross-validation of a model with default parameters."""
    n_folds = _n_folds(targets, options.split)
    inner, outer = options.split.splitters(n_folds, targets, options.seed)
    if len(targets) > MANY:
        outer = LastFold(outer)
    return _search(options, targets.classify, context, cv=inner, outer_cv=outer)


def _search(
    options: TrainingOptions, classify: bool, context: Context, **folds: Any
) -> FDGNNSearchCV:
    """Return a search with these splitters, or for `evaluate_folds` without any."""
    base, given = new_model(options, classify), options.settings
    searched: dict[str, Any] = {}
    if options.model == "paper" or given:
        depth = base._depth_parameter.removeprefix("encoder__")
        if not options.search:
            searched |= {"depths": (getattr(base, depth),), "alphas": (1e-3,)}
        if "alpha" in given:
            searched["alphas"] = (given["alpha"],)
        if depth in given:
            searched["depths"] = (given[depth],)
        left = {name: space for name, space in base._search_space.items() if name not in given}
        if options.search and options.model == "paper" and left:
            searched["n_configurations"] = options.n_configurations
            searched["param_distributions"] = left
        else:
            searched["configurations"] = [{"random_state": options.seed}]
    return FDGNNSearchCV(
        base, scoring=options.scoring, random_state=options.seed, n_jobs=context.n_jobs,
        verbose=not context.quiet, work_dir=options.work_dir, **folds, **searched,
    )  # fmt: skip


def sample_of(targets: Targets, n: int | None, seed: int) -> Ints | None:
    """Draw a stratified sample of graphs, in their order; None if it has all graphs."""
    if n is None or n >= len(targets):
        return None
    order: Any = np.random.default_rng(seed).permutation(len(targets))
    if len(targets.names) == 1:
        order = order[np.argsort(targets.values[order, 0], kind="stable")]
    return np.sort(order[np.linspace(0, len(targets) - 1, n).round().astype(np.int64)])


def _n_folds(targets: Targets, split: Split) -> int:
    """Return five folds, or fewer where a class or the groups are too few for that."""
    classify, several = targets.classify, len(targets.names) > 1
    if several:
        targets.check_learnable(LEAST_OF_SEVERAL)
    values, counts = np.unique(targets.of_target(0), return_counts=True)
    if len(values) == 1:
        raise ValueError(f"the target has one value only, {values[0]!s}; there is nothing to learn")
    each = [
        np.unique(targets.of_target(t), return_counts=True)[1] for t in range(len(targets.each))
    ]
    fewest = min(int(one.min() if classify else one.sum() // 2) for one in each)
    folds = possible_folds(fewest, N_FOLDS)
    if folds:
        return split.n_folds(len(targets), folds[-1])
    if not classify:
        raise ValueError(f"{len(targets)} graphs are too few for cross-validation; add some")
    # There is one target: of several, each class has enough graphs.
    text = (
        f"class {values[counts.argmin()]!s} has {fewest} graph{'s' * (fewest > 1)}, too few for "
        "cross-validation; "
    )
    odd = text_among_numbers(targets.of_target(0))
    if odd is not None:
        raise ValueError(
            f"{text}the target is inferred to be classes because {odd!r} is not a number; for "
            "regression, choose `task='regression'`"
        )
    raise ValueError(
        f"{text}add some, leave the class out, or, for numbers, choose `task='regression'`"
    )


def imbalance_note(targets: Targets, options: TrainingOptions) -> str | None:
    """Return a sentence on class imbalance and what is done about it; None without any."""
    found, threshold = rare_class(targets), options.threshold
    if found is None:
        return None
    assert options.scoring is not None
    (target, name, share), scoring = found, named_scoring(options.scoring, targets.classify)
    of = f" of target {target.name!r}" if target.name else ""
    text = f"class {name}{of} has {100 * share:.1f} % of the graphs: "
    text += f"models are selected by {scoring.words}"
    classes: Any = target.classes if len(targets.names) == 1 else ()
    if scoring.name in ("f1", "average_precision") and len(classes) == 2:
        text += f" of class {classes[1]}"  # whose precision and recall they are
    if threshold is not None:
        text += f", and the decision threshold by the {OF_CLASSES[threshold].words}"
        text += " of this class" * (threshold == "f1")
    return text


# ---------------------------------------------------------------------- training


def train(
    graphs: GraphBatch,
    targets: Targets,
    options: TrainingOptions | None = None,
    *,
    ids: Sequence[Any] | None = None,
    dataset: str = "",
    context: Context | None = None,
) -> Any:
    """Choose a model by cross-validation, and fit it on all graphs.

    Parameters
    ----------
    graphs, targets
    options : TrainingOptions, optional
    ids : sequence, optional
        Ids of the graphs, for `neighbors` of the model.
    dataset : str
        The name of the graphs.
    context : Context, optional

    Returns
    -------
    The fitted model. Its `evaluation_` has the nested cross-validation results: what was selected
    and fitted without an outer fold is scored on it.
    """
    start, context = time.perf_counter(), context or Context()
    options = options or TrainingOptions()
    targets = targets.transformed(options.transform)
    options = options.with_defaults(targets)
    texts = None if ids is None else as_text(ids)
    if options.split.kind == "time":
        order = options.split.order(len(targets))
        graphs, targets = graphs[order], targets[order]
        options = replace(options, split=options.split.of(order))
        texts = None if texts is None else texts[order]
    used, of_used = graphs, targets
    some = sample_of(targets, options.search_on, options.seed)
    if some is not None:
        used, of_used = graphs[some], targets[some]
        options = replace(options, split=options.split.of(some))
    try:
        search = new_search(of_used, options, context)
    except ValueError:
        if some is None:
            raise
        raise ValueError(
            f"`search_on` draws {len(some)} of {len(targets)} graphs, which are too few for cross-"
            "validation; draw more"
        ) from None
    search.fit(used, of_used, groups=options.split.groups)
    if some is not None:
        search.refit(graphs, targets)
    folds = search.nested_folds_
    task = EvaluationTask(dataset, used, of_used, folds, options.split.words, options.seed)
    found = evaluation_of_search(search, task, name=options.model, n_jobs=context.n_jobs).evaluation
    tested = folds == TEST
    tested_by = np.where(tested.any(axis=0), tested.argmax(axis=0), -1)
    values = of_used.values[:, 0] if len(targets.names) == 1 else np.zeros(len(of_used))
    notes = [
        baseline_note(found),
        imbalance_note(targets, options),
        duplicates_note(used, values, tested_by, options.seed),
        scale_note(targets),
    ]
    model = search.best_estimator_
    if texts is not None and model._training_graphs is not None:
        model._training_graphs = replace(model._training_graphs, ids=texts)
    model.evaluation_ = replace_fields(
        _completed(found, notes, start, context),
        n_graphs=len(graphs),
        model=replace_fields(found.model, parameters=plain(search.best_params_)),
        protocol=replace_fields(found.protocol, n_searched=None if some is None else len(some)),
    )
    return model


def _completed(
    found: Evaluation, notes: Sequence[str | None], start: float, context: Context
) -> Evaluation:
    """Return an evaluation with notes for the reader, and with the time since its start."""
    return replace_fields(
        found,
        notes=[note for note in notes if note is not None],
        times=replace_fields(found.times, total=time.perf_counter() - start),
        command=context.command,
    )


def scale_note(targets: Targets) -> str | None:
    """Return a note on the scale of numeric targets: that of the scores, or a hint at another."""
    if targets.transform is not None:
        return f"the target is learned as {targets.transform}, and scores are on that scale"
    if targets.classify:
        return None
    for t, name in enumerate(targets.names):
        values = targets.of_target(t)
        low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
        if low > 0 and high > SKEWED * middle:
            who = f"target {name!r}" if name else "the target"
            return (
                f"hint: {who} is positive and strongly skewed (median {middle:g}, largest "
                f"{high:g}); `transform='log10'` learns its logarithm"
            )
    return None


# ---------------------------------------------------------------------- evaluation


@dataclass(frozen=True, eq=False)
class NestedEvaluation:
    """A model of `TrainingOptions`, evaluated by nested cross-validation.

    Attributes
    ----------
    task : EvaluationTask
        Of one or several targets.
    options : TrainingOptions
        With defaults.
    """

    task: EvaluationTask
    options: TrainingOptions

    @property
    def described(self) -> Evaluation:
        """The evaluation without results."""
        assert self.options.scoring is not None
        search = _search(self.options, self.task.targets.classify, Context())
        return described_search(search, self.task, self.options.model, self.options.scoring)

    def run(self, parts: Path | None, context: Context) -> EvaluationRun:
        """Evaluate the model, with checkpoints in a directory."""
        start, targets = time.perf_counter(), self.task.targets
        search = _search(replace(self.options, work_dir=parts), targets.classify, context)
        search.evaluate_folds(self.task.graphs, targets, self.task.folds)
        run = evaluation_of_search(
            search, self.task, name=self.options.model, n_jobs=context.n_jobs
        )
        notes = imbalance_note(targets, self.options), scale_note(targets)
        return replace(run, evaluation=_completed(run.evaluation, notes, start, context))
