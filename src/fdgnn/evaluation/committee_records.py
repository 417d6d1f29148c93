"""Records of the run directory of an ensemble.

==================  ===================  ======================================================
``committee.json``  `CommitteeSettings`  what the run is
``result.json``     `CommitteeResult`    the summary of a classification
``result.json``     `QuantityResult`     the summary of a regression
==================  ===================  ======================================================
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from fdgnn.evaluation.records import Count, Penalty, Seconds, Share, check_as_many
from fdgnn.records import Record

Error: TypeAlias = Annotated[float, Meta(ge=0)]


class CommitteeSettings(Record, frozen=True, kw_only=True):
    """What must agree for the evaluation of an ensemble to be resumed."""

    dataset: str
    task: Literal["classification", "regression"] = "classification"
    data: str  # a fingerprint of graphs and targets
    model: str
    split: str = "random split"  # how graphs are held out
    members: Annotated[list[str], Meta(min_length=1)]
    n_outer: Count
    n_inner: Count
    alphas: list[Penalty]
    seed: int
    engine: int
    fdgnn: str
    scoring: str = "accuracy"  # what alpha is chosen by
    threshold: str | None = None  # what the decision threshold is chosen by, if any
    class_weight: str | None = None
    groups: str | None = None  # a fingerprint of the folds, if graphs are held out in groups


class EvaluatedCommittee(Record, frozen=True, kw_only=True):
    """What the summaries of all finished evaluations have.

    Attributes
    ----------
    members : list of str
        All base models that were fitted.
    fold_kept : list of list of int
        The numbers of the base models that were averaged, in each outer fold.
    fold_alphas : list of list of float
        The alpha of each base model, in each outer fold.
    member_seconds : list of float
        To encode all graphs and to train on all folds and alphas, on one core.
    """

    dataset: str
    model: str
    n_graphs: Count
    seed: int
    split: str = "random split"  # how graphs were held out: at random, each class in every fold
    members: list[str]
    fold_kept: list[list[Count]]
    fold_alphas: list[list[Penalty]]
    member_seconds: list[Seconds]
    versions: dict[str, str]
    machine: dict[str, str]
    command: str | None = None

    def check_members(self, scores: str) -> None:
        """Raise ValueError unless all lists have an entry for each base model; `scores` is one."""
        n = len(self.members)
        for name in (scores, "member_seconds"):
            if len(getattr(self, name)) != n:
                raise ValueError(f"{n} members, but {len(getattr(self, name))} {name}")
        for kept, alphas in zip(self.fold_kept, self.fold_alphas, strict=True):
            if not kept or max(kept) >= n or len(alphas) != n:
                raise ValueError(f"an outer fold does not fit the {n} members")


class CommitteeResult(EvaluatedCommittee, frozen=True, kw_only=True):
    """The summary of a finished evaluation of a classifier.

    `member_accuracies` are those of each base model alone, with the alpha chosen for it: means over
    the outer folds.
    """

    accuracy_mean: Share
    accuracy_std: Share
    fold_accuracies: Annotated[list[Share], Meta(min_length=1)]
    balanced_accuracy_mean: Share
    roc_auc_mean: Share | None = None  # None in results that were written before there was one
    scoring: str = "accuracy"  # what alpha was chosen by
    score_mean: float | None = None  # by that scoring; None if it cannot be computed
    member_accuracies: list[Share]

    def __post_init__(self) -> None:
        check_as_many(self.fold_accuracies, fold_kept=self.fold_kept, fold_alphas=self.fold_alphas)
        self.check_members("member_accuracies")


class QuantityResult(EvaluatedCommittee, frozen=True, kw_only=True):
    """The summary of a finished evaluation of a regressor.

    The scores are those of test graphs in each outer fold. RMSE and MAE are positive, in units of
    the target. A score is None where it is not defined: R2 and Spearman's rank correlation need
    different targets in a fold, and Spearman's different predictions.

    Attributes
    ----------
    scoring : {"r2", "rmse", "mae", "spearman"}
        What alpha was chosen by, and what the next three and `member_scores` are.
    score_mean, score_std : float
        Mean and standard deviation over the outer folds; of one fold there is no deviation.
    fold_scores : list of float
    r2_mean, rmse_mean, mae_mean, spearman_mean : float
        Means over the outer folds.
    member_scores : list of float
        Of each base model alone, with the alpha chosen for it: mean over the outer folds.
    """

    scoring: Literal["r2", "rmse", "mae", "spearman"]
    score_mean: float
    score_std: Error | None
    fold_scores: Annotated[list[float | None], Meta(min_length=1)]
    r2_mean: Annotated[float, Meta(le=1)] | None
    rmse_mean: Error
    mae_mean: Error
    spearman_mean: Annotated[float, Meta(ge=-1, le=1)] | None
    member_scores: list[float | None]

    def __post_init__(self) -> None:
        check_as_many(
            self.fold_scores, "fold_scores", fold_kept=self.fold_kept, fold_alphas=self.fold_alphas
        )
        self.check_members("member_scores")
