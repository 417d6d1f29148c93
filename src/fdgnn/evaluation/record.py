"""`Evaluation`: how one model does on one dataset, by one protocol.

`fit`, `evaluate` and `compare` produce this record, model files and run directories keep it, and
the HTML report shows it. Values are validated when a record is read, so that code that shows it
needs no checks.

Scores are those of test graphs of outer folds: graphs that had no part in what was selected and
trained. Errors are positive numbers. A score is None where it is not defined, as R2 of graphs with
equal targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from fdgnn.records import Record
from fdgnn.schema import TaskName

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]
Megabytes: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]
Alpha: TypeAlias = Annotated[float, Meta(ge=0, le=1e300)]
#: The hyperparameters of one model, by name.
Configuration: TypeAlias = dict[str, bool | int | float | str | None]
Status: TypeAlias = Literal["finished", "unfinished", "out of time", "out of memory", "failed"]


# ---------------------------------------------------------------------- scores


class MetricScores(Record, frozen=True, kw_only=True):
    """One metric in the outer folds.

    Attributes
    ----------
    metric : str
        Its name, as in ``scoring=``.
    words : str
        Its name in words.
    folds : list of float or None
        The score of each outer fold.
    mean, std : float or None
        Over the folds that have a score; None for a single fold.
    """

    metric: str
    words: str
    folds: list[float | None]
    mean: float | None
    std: Annotated[float, Meta(ge=0)] | None = None

    @classmethod
    def of(cls, metric: str, words: str, folds: Sequence[float | None]) -> MetricScores:
        """Return the scores of outer folds, with their mean and standard deviation."""
        known = [float(score) for score in folds if score is not None and np.isfinite(score)]
        each = [None if s is None or not np.isfinite(s) else float(s) for s in folds]
        mean = float(np.mean(known)) if known else None
        std = float(np.std(known, ddof=1)) if len(known) > 1 else None
        return cls(metric=metric, words=words, folds=each, mean=mean, std=std)


class BaselineScores(Record, frozen=True, kw_only=True):
    """A simple model in the same outer folds, by the same metrics.

    Attributes
    ----------
    name : str
        "constant" is the majority class or the mean target of the training graphs, "morgan" a
        linear model on Morgan counts of molecules, "boosting" gradient boosting on descriptors.
    title : str
        The same in words.
    standard_error : float or None
        Of the difference of the model's and the baseline's score, by the first metric.
    """

    name: str
    title: str
    scores: list[MetricScores]
    standard_error: Annotated[float, Meta(ge=0)] | None = None

    def by(self, metric: str) -> MetricScores | None:
        """Return the scores by a metric."""
        return next((each for each in self.scores if each.metric == metric), None)


class TargetScores(Record, frozen=True, kw_only=True):
    """Scores of a model and of baselines for one target.

    Attributes
    ----------
    name : str
        Empty where there is one target only.
    n_known : int
        Graphs for which the target is known.
    classes : list of str or None
        None for regression.
    scores : list of MetricScores
        The metric that models are chosen by comes first.
    baselines : list of BaselineScores
    wl_ceiling : float or None
        The best accuracy of any message passing that does not look at edge labels.
    """

    name: str = ""
    n_known: Count
    classes: list[str] | None = None
    scores: list[MetricScores] = msgspec.field(default_factory=list)
    baselines: list[BaselineScores] = msgspec.field(default_factory=list)
    wl_ceiling: Annotated[float, Meta(ge=0, le=1)] | None = None

    def by(self, metric: str) -> MetricScores | None:
        """Return the scores by a metric."""
        return next((each for each in self.scores if each.metric == metric), None)

    def baseline(self, name: str) -> BaselineScores | None:
        """Return the scores of a baseline."""
        return next((each for each in self.baselines if each.name == name), None)


# ---------------------------------------------------------------------- what was evaluated, and how


class ModelDescription(Record, frozen=True, kw_only=True):
    """The model that was evaluated.

    Attributes
    ----------
    name : str
        As on the command line: "paper", "auto", "wl", "ecfp-rf" and so on.
    title : str
        The same in words.
    kind : str
        The class of the model.
    parameters : dict
        What was given, and is the same in all folds.
    base_models : list of str
        All base models of an ensemble.
    n_parameters : int or None
        Trained weights, the mean over the folds.
    """

    name: str
    title: str
    kind: str
    parameters: Configuration = msgspec.field(default_factory=dict)
    base_models: list[str] = msgspec.field(default_factory=list)
    n_parameters: Count | None = None


class EvaluationProtocol(Record, frozen=True, kw_only=True):
    """The folds, the search and the metric of an evaluation.

    Attributes
    ----------
    name : str
        "paper" or "quick" for the paper's model, else "nested".
    split : str
        How graphs were held out, in words.
    n_outer, n_inner : int
        Folds; no inner ones where nothing was selected.
    n_configurations, n_initializations : int
        Configurations that were tried, and random initializations of each.
    n_searched : int or None
        Graphs by which the model was chosen and scored, where these are not all.
    scoring : str
        The metric that models were chosen by.
    threshold, class_weight : str or None
        As in `GraphClassifier`.
    """

    name: str = "nested"
    split: str = "random split"
    n_outer: Count
    n_inner: Count
    n_configurations: Count = 1
    n_initializations: Count = 1
    n_searched: Count | None = None
    scoring: str
    threshold: str | None = None
    class_weight: str | None = None
    seed: int


class FoldResult(Record, frozen=True, kw_only=True):
    """The result of one outer fold: its sizes, what it selected, and times.

    Attributes
    ----------
    n_train, n_test : int
    configuration : Configuration
        What was selected; with the alpha of the first random initialization, if they differ.
    alphas : list of float
        Of each random initialization, or of each base model.
    kept : list of int
        Numbers of the base models that are averaged.
    train_seconds, test_seconds : float or None
        Of the selected model, on one core.
    n_unconverged : int or None
        Training graphs on which its reservoirs did not converge.
    """

    n_train: Count
    n_test: Count
    configuration: Configuration = msgspec.field(default_factory=dict)
    alphas: list[Alpha] = msgspec.field(default_factory=list)
    kept: list[Count] = msgspec.field(default_factory=list)
    train_seconds: Seconds | None = None
    test_seconds: Seconds | None = None
    n_unconverged: Count | None = None


class BaseModelScores(Record, frozen=True, kw_only=True):
    """A base model of an ensemble: its mean score alone, and in how many folds it is averaged."""

    name: str
    score: float | None
    n_kept: Count
    seconds: Seconds | None = None


class TriedConfiguration(Record, frozen=True, kw_only=True):
    """A configuration of the search, by validation scores alone.

    Attributes
    ----------
    configuration : Configuration
    alpha : float
        The alpha that most random initializations take.
    scores : list of float
        Mean validation score of each random initialization with its best alpha.
    """

    configuration: Configuration
    alpha: Alpha
    scores: list[float]


class PublishedScore(Record, frozen=True, kw_only=True):
    """The accuracy that was published for a model on a dataset, as a share, and where."""

    mean: float
    std: float | None = None
    reference: str | None = None


class Durations(Record, frozen=True, kw_only=True):
    """Seconds.

    Attributes
    ----------
    total : float
        Of the last start of the command.
    selection : float or None
        CPU time of the selection, summed over processes and starts.
    n_resumed : int
        Parts of the work that an earlier start had finished.
    """

    total: Seconds | None = None
    selection: Seconds | None = None
    n_resumed: Count = 0


class Limits(Record, frozen=True, kw_only=True):
    """Time and memory of a method in a comparison, its selection included.

    Attributes
    ----------
    seconds : float
        From when its libraries are imported. What it finished in earlier runs counts.
    megabytes : float
        Memory, in 10^6 bytes.
    """

    seconds: float = 600.0
    megabytes: float = 4000.0

    def __post_init__(self) -> None:
        for name in ("seconds", "megabytes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; a limit must be positive")


# ---------------------------------------------------------------------- the record


class Evaluation(Record, frozen=True, kw_only=True):
    """The evaluation of one model on one dataset, by one protocol.

    Attributes
    ----------
    dataset : str
    data_hash : str
        Of the graphs and targets.
    n_graphs : int
        All that the model is about.
    task : {"classification", "regression"}
    model : ModelDescription
    protocol : EvaluationProtocol
    targets : list of TargetScores
        One for each target.
    folds : list of FoldResult
        One for each outer fold that is finished.
    base_models : list of BaseModelScores
        For ensembles.
    variants : dict of MetricScores
        The same search by the paper's other protocols: "single_layer", "common_alpha", "ensemble",
        and "best_on_test_folds", which is optimistically biased.
    tried : list of TriedConfiguration
        The search of the paper's model.
    published : PublishedScore or None
    times : Durations
    versions, machine : dict of str
    command : str or None
    status : str
        Whether it is finished; "out of time", "out of memory" and "failed" have a `reason`, and
        the folds that were finished before.
    limits : Limits or None
        In a comparison.
    peak_mb : float or None
        The most memory of its process.
    notes : list of str
        Notes for the reader: class imbalance, duplicates across folds.
    """

    dataset: str = ""
    data_hash: str = ""
    n_graphs: Count
    task: TaskName
    model: ModelDescription
    protocol: EvaluationProtocol
    targets: list[TargetScores] = msgspec.field(default_factory=list)
    folds: list[FoldResult] = msgspec.field(default_factory=list)
    base_models: list[BaseModelScores] = msgspec.field(default_factory=list)
    variants: dict[str, MetricScores] = msgspec.field(default_factory=dict)
    tried: list[TriedConfiguration] = msgspec.field(default_factory=list)
    published: PublishedScore | None = None
    times: Durations = msgspec.field(default_factory=Durations)
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    machine: dict[str, str] = msgspec.field(default_factory=dict)
    command: str | None = None
    status: Status = "finished"
    reason: str | None = None
    limits: Limits | None = None
    peak_mb: Megabytes | None = None
    notes: list[str] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        n, n_models = len(self.folds), len(self.model.base_models)
        for target in self.targets:
            baselines = [each for one in target.baselines for each in one.scores]
            for each in [*target.scores, *baselines]:
                if len(each.folds) != n:
                    raise ValueError(f"{n} folds, but {len(each.folds)} scores by {each.metric}")
        for each in self.variants.values():
            if len(each.folds) != n:
                raise ValueError(f"{n} folds, but {len(each.folds)} scores of a variant")
        for fold in self.folds:
            if fold.kept and max(fold.kept) >= n_models:
                raise ValueError(f"an outer fold does not fit the {n_models} base models")

    @property
    def metrics(self) -> list[MetricScores]:
        """The mean over targets by each metric; the metric that models are chosen by is first."""
        first = self.targets[0].scores if self.targets else []
        found = [self.by(each.metric) for each in first]
        return [each for each in found if each is not None]

    def by(self, metric: str) -> MetricScores | None:
        """Return the mean over targets by a metric; None if there is no such score."""
        return _mean([target.by(metric) for target in self.targets])

    def baseline(self, name: str, metric: str | None = None) -> MetricScores | None:
        """Return the mean over targets of a baseline, by a metric or the chosen one."""
        metric = metric or self.protocol.scoring
        baselines = [target.baseline(name) for target in self.targets]
        return _mean([None if each is None else each.by(metric) for each in baselines])

    @property
    def score(self) -> float | None:
        """The mean over targets and outer folds by the metric that models are chosen by."""
        found = self.by(self.protocol.scoring)
        return None if found is None else found.mean

    @property
    def std(self) -> float | None:
        """The standard deviation of the score over the outer folds."""
        found = self.by(self.protocol.scoring)
        return None if found is None else found.std

    @property
    def metric(self) -> str:
        """The metric that models are chosen by, in words."""
        found = self.by(self.protocol.scoring)
        return self.protocol.scoring if found is None else found.words

    def of_target(self, name: str) -> Evaluation:
        """Return the evaluation of one of several targets."""
        own = [msgspec.structs.replace(t, name="") for t in self.targets if t.name == name]
        return msgspec.structs.replace(self, targets=own)

    def reproducible(self) -> Evaluation:
        """Return the evaluation without what differs when the same command is run again."""
        timeless = {"train_seconds": None, "test_seconds": None}
        return msgspec.structs.replace(
            self,
            folds=[msgspec.structs.replace(fold, **timeless) for fold in self.folds],
            base_models=[msgspec.structs.replace(one, seconds=None) for one in self.base_models],
            times=Durations(),
            machine={},
            command=None,
            peak_mb=None,
        )


def _mean(each: Sequence[MetricScores | None]) -> MetricScores | None:
    """Return the mean over targets in each fold; None unless all targets have the metric."""
    known = [one for one in each if one is not None]
    if not known or len(known) < len(each):
        return None
    if len(known) == 1:
        return known[0]
    folds = []
    for scores in zip(*[one.folds for one in known], strict=True):
        own = [score for score in scores if score is not None]
        folds.append(float(np.mean(own)) if own else None)
    means = [one.mean for one in known if one.mean is not None]
    found = MetricScores.of(known[0].metric, known[0].words, folds)
    return msgspec.structs.replace(found, mean=float(np.mean(means)) if means else None)
