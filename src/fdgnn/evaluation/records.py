"""Records of a run directory: one class for each kind of file, with the file's keys as fields.

====================  =======================================  ==================================
``settings.json``     `RunSettings`                            what the run is
``asked.json``        `Asked`                                  what its last start was asked for
``records.jsonl``     `NetworkScores`, one per line            the finished networks
``result.json``       `RunResult`                              the summary
``compare.json``      list of `ComparisonRow`                  the rows of a comparison
``rivals/NAME.jsonl`` `TrialsLine`, `FoldLine`, `SummaryLine`  what a contestant has finished
``rivals/NAME.json``  `TurnState`                              how a contestant's turn ended
====================  =======================================  ==================================

`fdgnn.evaluation.rundir` reads and writes them; `committee_records` has those of an ensemble.
Values are checked when a file is read: whoever has a record can show it without a further look.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from fdgnn.evaluation.record import Limits
from fdgnn.records import Record

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]
Megabytes: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]
Penalty: TypeAlias = Annotated[float, Meta(ge=0, le=1e300)]
#: The hyper-parameters of one model, by name.
Configuration: TypeAlias = dict[str, bool | int | float | str | None]


# ---------------------------------------------------------------------- an evaluation


class RunSettings(Record, frozen=True, kw_only=True):
    """What must agree for a run to be continued.

    How many configurations and guesses are run is left out: a run may be extended, since
    configuration c and guess g do not depend on how many others there are.

    Attributes
    ----------
    data : str
        A fingerprint of the graphs and their classes.
    engine : int
        `fdgnn.evaluation.study.ENGINE`; 0 in runs from before there was such a number.
    fdgnn : str
        The version of this library.
    """

    dataset: str
    data: str
    n_outer: Annotated[int, Meta(ge=2, le=10_000)]
    n_inner: Annotated[int, Meta(ge=2, le=10_000)]
    max_layers: Annotated[int, Meta(ge=1, le=10_000)]
    n_units: Annotated[int, Meta(ge=1)]
    alphas: Annotated[list[Penalty], Meta(min_length=1)]
    seed: int
    engine: int = 0
    fdgnn: str


class Asked(Record, frozen=True, kw_only=True):
    """What the last start of a run was asked for, for those who find the run unfinished."""

    command: str | None = None
    protocol: str | None = None
    n_configurations: Count | None = None
    n_guesses: Count | None = None


class NetworkScores(Record, frozen=True, kw_only=True):
    """One random initialization of a configuration: its scores, and the seconds it took.

    `validation` and `test` are accuracies (2, n_outer, n_alphas): at depth one and at the
    configuration's own depth, in each outer fold, for each alpha.
    """

    configuration: Annotated[int, Meta(ge=0, lt=100_000)]
    guess: Annotated[int, Meta(ge=0, lt=100_000)]
    seconds: Seconds
    validation: list[list[list[Share]]]
    test: list[list[list[Share]]]


class FoldScores(Record, frozen=True, kw_only=True):
    """Accuracy and depth of what was selected in each outer fold, with means and deviations."""

    accuracy_mean: Share
    accuracy_std: Share
    fold_accuracies: Annotated[list[Share], Meta(min_length=1)]
    depth_mean: Annotated[float, Meta(ge=0, le=1e6)]
    depth_std: Annotated[float, Meta(ge=0, le=1e6)]
    fold_depths: list[Count]

    def __post_init__(self) -> None:
        check_as_many(self.fold_accuracies, fold_depths=self.fold_depths)


class ChosenOnTestFolds(Record, frozen=True, kw_only=True):
    """Optimistically biased accuracies: chosen on the folds that are reported."""

    one_for_all_folds: Share
    one_for_each_fold: Share


class Published(Record, frozen=True, kw_only=True):
    """The paper's numbers of a dataset; accuracies are shares."""

    accuracy_mean: Share
    accuracy_std: Share
    single_layer_accuracy_mean: Share
    depth_mean: float
    train_seconds: Seconds
    test_seconds: Seconds


class RunTimes(Record, frozen=True, kw_only=True):
    """Seconds that a run took.

    Attributes
    ----------
    networks_seconds : float
        For all networks, summed over processes and runs: of the processor. In earlier results
        they are seconds of the clock.
    fold_train_seconds, fold_test_seconds : list of float
        To train and to test the selected model of each outer fold, on one core.
    fold_unconverged_graphs : list of int
        Training graphs on which that model did not converge.
    this_run_seconds, after_networks_seconds : float, optional
        For the last start of the run, and for what came after its networks: the ensembles and the
        models trained for the clock. Results of the first versions lack the second.
    """

    networks_seconds: Seconds
    fold_train_seconds: list[Seconds]
    fold_test_seconds: list[Seconds]
    fold_unconverged_graphs: list[Count]
    this_run_seconds: Seconds | None = None
    after_networks_seconds: Seconds | None = None


class RunResult(FoldScores, frozen=True, kw_only=True):
    """The summary of a finished run.

    Its own scores are the paper's: each random initialization has its own alpha, and scores are
    averaged over random initializations.

    Attributes
    ----------
    fold_configurations : list of Configuration
        What each outer fold selected, with the alpha of the first random initialization.
    fold_alphas : list of list of float
        The alpha of each random initialization, in each outer fold.
    configurations : list of Configuration
        All that were tried.
    single_layer, common_penalty, ensemble : FoldScores
        Other protocols: reservoirs cut after their first layer; one alpha for all random
        initializations of a configuration; outputs averaged over random initializations.
    """

    dataset: str
    protocol: str
    n_graphs: Count
    n_units: Count
    n_configurations: Count
    n_guesses: Count
    seed: int
    fold_configurations: list[Configuration]
    fold_alphas: list[list[Penalty]]
    configurations: list[Configuration]
    alphas: list[Penalty]
    single_layer: FoldScores
    common_penalty: FoldScores
    ensemble: FoldScores
    chosen_on_test_folds: ChosenOnTestFolds
    published: Published | None = None
    times: RunTimes
    versions: dict[str, str]
    machine: dict[str, str]
    command: str | None = None
    balanced_accuracy_mean: Share | None = None  # of guess 0; None in earlier results
    roc_auc_mean: Share | None = None
    split: str = "random split"  # how graphs were held out: at random, each class in every fold

    def __post_init__(self) -> None:
        super().__post_init__()
        check_as_many(
            self.fold_accuracies,
            fold_configurations=self.fold_configurations,
            fold_alphas=self.fold_alphas,
        )


def check_as_many(folds: list[Any], what: str = "fold_accuracies", /, **others: list[Any]) -> None:
    """Raise ValueError unless other lists are as long as that of the folds."""
    for name, values in others.items():
        if len(values) != len(folds):
            raise ValueError(f"{len(folds)} {what}, but {len(values)} {name}")


# ---------------------------------------------------------------------- a comparison


class PublishedAccuracy(Record, frozen=True, kw_only=True):
    """An accuracy printed for a model on a dataset, and where (`fdgnn.evaluation.paper`)."""

    accuracy_mean: Share
    accuracy_std: Share | None = None
    reference: str | None = None


Status: TypeAlias = Literal["finished", "out of time", "out of memory", "failed"]


class ComparisonRow(Record, frozen=True, kw_only=True):
    """How one contestant did on one dataset.

    What a contestant that did not finish has not measured is None; `status` and `reason` say why.

    Attributes
    ----------
    model : str
        Its short name, such as ``"wl"``; `title` is the long one.
    train_seconds, test_seconds : float
        Means over the outer folds, of the selected models.
    selection_seconds : float
        For the whole selection.
    peak_mb : float
        The most memory its process held, in 10^6 bytes.
    parameters : int
        Trained weights.
    inner_folds : int
        On how many inner folds configurations were validated; 0 where there was nothing to choose.
    """

    dataset: str
    model: str
    title: str
    status: Status
    reason: str | None = None
    accuracy_mean: Share | None = None
    accuracy_std: Share | None = None
    fold_accuracies: list[Share] | None = None
    balanced_accuracy_mean: Share | None = None
    roc_auc_mean: Share | None = None
    train_seconds: Seconds | None = None
    train_seconds_std: Seconds | None = None
    test_seconds: Seconds | None = None
    selection_seconds: Seconds | None = None
    peak_mb: Megabytes | None = None
    parameters: Count | None = None
    published: PublishedAccuracy | None = None
    n_configurations: Count | None = None
    n_guesses: Count | None = None
    inner_folds: Count | None = None
    fold_configurations: list[Configuration] | None = None


#: Scores from 0 to 1 that contestants can choose by.
SHARES = ("accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1")


class Search(Record, frozen=True, kw_only=True):
    """How much of the published grids is searched.

    Attributes
    ----------
    n_configurations : int, optional
        Points of a rival's grid, in its order; by default all.
    inner_folds : int, optional
        Inner folds on which they are validated; by default all for kernels, one for networks.
    choose_epochs : bool, default=True
        Whether networks choose their number of epochs, too, or are trained for all published ones.
    scoring : str, optional
        What Morgan fingerprints and our own ensembles choose by: "accuracy", "balanced_accuracy",
        "roc_auc", "average_precision" or "f1". The others choose by accuracy, as published.
    class_weight : "balanced", optional
        Whether errors on rare classes count more in the training of these.
    """

    n_configurations: int | None = None
    inner_folds: int | None = None
    choose_epochs: bool = True
    scoring: str | None = None
    class_weight: Literal["balanced"] | None = None

    def __post_init__(self) -> None:
        if self.scoring not in (None, *SHARES):
            raise ValueError(f"scoring={self.scoring!r}: expected one of {', '.join(SHARES)}")
        for name in ("n_configurations", "inner_folds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; give 1 or more, or None for the default")


class TurnState(Record, frozen=True, kw_only=True):
    """How a contestant's last turn ended, what it searched, and within which limits."""

    status: Status
    reason: str | None
    search: Search
    limits: Limits


class Trial(Record, frozen=True, kw_only=True):
    """How one configuration did on the inner folds of one outer fold."""

    outer: Count
    configuration: Configuration
    score: Share


class RivalLine(Record, frozen=True, kw_only=True, tag_field="kind"):
    """A line of what a contestant has finished."""


class TrialsLine(RivalLine, frozen=True, kw_only=True, tag="trials"):
    """A finished part of a contestant's selection."""

    unit: str
    inner_folds: Count
    seconds: Seconds
    peak_mb: Megabytes
    trials: list[Trial]
    scoring: str | None = None  # what configurations were validated by, as in `Search`
    class_weight: str | None = None


class FoldLine(RivalLine, frozen=True, kw_only=True, tag="fold"):
    """What an outer fold selected, trained and tested."""

    outer: Count
    configuration: Configuration
    accuracy: Share
    train_seconds: Seconds
    test_seconds: Seconds
    parameters: Count
    peak_mb: Megabytes
    seconds: Seconds  # for all repetitions
    balanced_accuracy: Share | None = None  # None in files of earlier versions
    roc_auc: Share | None = None  # None if one class only is tested, or there are no scores


class SummaryLine(RivalLine, frozen=True, kw_only=True, tag="summary"):
    """A finished turn; the last line of a contestant."""

    search: Search
    fold_accuracies: Annotated[list[Share], Meta(min_length=2)]
    fold_train_seconds: list[Seconds]
    fold_test_seconds: list[Seconds]
    fold_parameters: list[Count]
    fold_configurations: list[Configuration]
    peak_mb: Megabytes
    selection_seconds: Seconds
    n_configurations: Count
    n_guesses: Count = 1
    balanced_accuracy_mean: Share | None = None
    roc_auc_mean: Share | None = None
    inner_folds: Count
