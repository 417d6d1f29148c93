"""What `fit` is to train, and what it chooses models by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.options import HandleUnknown, ModelName, TaskName, Weighting, check_unused
from fdgnn.cli.splitting import SplitWords

if TYPE_CHECKING:
    from fdgnn.training import TrainingOptions


@dataclass(frozen=True)
class ModelOptions:
    """The kind of model, how it is searched, and how graphs and errors count."""

    task: Annotated[
        TaskName | None, typer.Option(help="What the target is, if it is not recognized.")
    ] = None
    model: Annotated[
        ModelName,
        typer.Option(
            help="auto averages a few models of WL features and reservoirs; wl and union do so "
            "with models of one kind; paper searches the hyperparameters of the paper's model."
        ),
    ] = ModelName.auto
    search: Annotated[
        bool | None,
        typer.Option(
            "--search/--no-search",
            help="With --model paper: choose hyperparameters, or use the defaults.",
        ),
    ] = None
    configurations: Annotated[
        int | None, typer.Option(min=1, help="With --model paper: configurations to try, or 20.")
    ] = None
    initializations: Annotated[
        int | None,
        typer.Option(min=1, help="With --model paper: random initializations to average, or 3."),
    ] = None
    search_on: Annotated[
        int | None,
        typer.Option(
            min=1, help="Choose and score models on so many rows, drawn at random; train on all."
        ),
    ] = None
    class_weight: Annotated[
        Weighting,
        typer.Option(
            help="balanced: errors on a rare class count more, so that all classes count alike."
        ),
    ] = Weighting.none
    scoring: Annotated[
        str | None,
        typer.Option(
            help="What models are chosen by: accuracy, balanced_accuracy, roc_auc, "
            "average_precision, f1 or log_loss; r2, rmse, mae or spearman. By default accuracy, "
            "where a class is rare roc_auc, and r2 for numbers."
        ),
    ] = None
    threshold: Annotated[
        str | None,
        typer.Option(
            help="Tell two classes apart where accuracy, balanced_accuracy or f1 (of the rarer "
            "class) is best on held-out graphs; by default f1 where a class is rare."
        ),
    ] = None
    split: SplitWords = "random"
    handle_unknown: Annotated[
        HandleUnknown | None,
        typer.Option(
            help="Whether the model ignores vertex labels that no training graph has, or rejects "
            "rows with some. By default it ignores them, and a warning counts the rows."
        ),
    ] = None

    @property
    def unused_out_of_core(self) -> dict[str, object]:
        """What was given though training out of core has no such choice, by option."""
        return {
            "split": self.split if self.split != "random" else None,
            "search-on": self.search_on,
            "configurations": self.configurations,
            "search": self.search or None,
        }

    def options(self, settings: Mapping[str, Any], work_dir: Path, seed: int) -> TrainingOptions:
        """Return the library's options, but for the split, for which a table is needed.

        Raises
        ------
        ValueError
            Something was given that only another model has.
        """
        from fdgnn.training import PAPER_ESTIMATORS, TrainingOptions

        searching = "no-search" if self.search is False else "search"
        of_paper = {
            "configurations": self.configurations, "initializations": self.initializations
        }  # fmt: skip
        check_unused(self.model, {searching: self.search, **of_paper})
        if self.model is ModelName.paper:
            settings = {"n_estimators": self.initializations or PAPER_ESTIMATORS, **settings}
        return TrainingOptions(
            task=self.task.value if self.task else None,
            model=self.model.value,
            scoring=self.scoring,
            threshold=self.threshold,
            class_weight=None if self.class_weight is Weighting.none else self.class_weight.value,
            handle_unknown="ignore" if self.handle_unknown is None else self.handle_unknown.value,
            search=self.search is not False,
            n_configurations=self.configurations or 20,
            settings=settings,
            search_on=self.search_on,
            work_dir=work_dir,
            seed=seed,
        )
