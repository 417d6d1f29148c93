"""Training options; the command line takes its options from them.

Nothing heavy is imported before it is needed, because every command reads this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from fdgnn.schema import ModelName, TaskName

if TYPE_CHECKING:
    from fdgnn.folds import Split
    from fdgnn.targets import Targets


def _random_split() -> Split:
    from fdgnn.folds import Split

    return Split()


@dataclass(frozen=True)
class TrainingOptions:
    """Training options beyond the data.

    Attributes
    ----------
    task : {"classification", "regression"}, default=inferred
        Classification or regression.
    model : {"auto", "paper", "wl", "union"}
        "auto" is the ensemble of a few base models; "wl" and "union" are ensembles of one kind of
        encoder; "paper" searches the hyperparameters of the paper's model.
    scoring : str, optional
        Metric that selects models: accuracy, balanced_accuracy, roc_auc, average_precision, f1 or
        log_loss; for regression r2, rmse, mae or spearman. The default is accuracy, roc_auc with
        class imbalance, and r2 for regression.
    threshold : str, optional
        Decision threshold between two classes: the one with the best accuracy, balanced_accuracy
        or f1 (of the rarer class) of out-of-fold predictions. With class imbalance f1 by default.
    class_weight : "balanced", optional
        Weight errors by class, so that all classes have the same total weight.
    transform : {"log10", "pIC50"}, optional
        Learn positive numbers on a logarithmic scale; pIC50 is for concentrations in nM.
        Predictions are in the units of the file, scores on the transformed scale.
    handle_unknown : {"ignore", "error"}
        Whether the model ignores vertex labels that no training graph has, with a warning that
        counts the rows, or rejects these rows.
    molecule_descriptors : {"auto", "fast", "all", "none"}
        Descriptors of molecules in the ensemble: 210 that RDKit computes fast, all of
        rdkit.Chem.Descriptors, which take four times as long, or none; "auto" is "fast" with up to
        50,000 molecules.
    search : bool
        Search the hyperparameters of the paper's model, or use the defaults.
    n_configurations : int, default=20
        Configurations of the paper's model to try.
    search_on : int, optional
        Select and score models on a random sample of this many rows; train on all.
    settings : mapping
        Parameters that are not searched: of "paper" those of `FDGNNClassifier`; of "wl"
        `n_iterations`, `readout` and `alpha`, which take one model instead of an ensemble.
    split : Split
        How graphs are held out, for choosing and for scoring.
    work_dir : Path, optional
        Where checkpoints of the search are kept, as in `FDGNNSearchCV`.
    seed : int
    """

    task: TaskName | None = None
    model: ModelName = "auto"
    scoring: str | None = None
    threshold: str | None = None
    class_weight: Literal["balanced"] | None = None
    transform: Literal["log10", "pIC50"] | None = None
    handle_unknown: Literal["ignore", "error"] = "ignore"
    molecule_descriptors: Literal["auto", "fast", "all", "none"] = "auto"
    search: bool = True
    n_configurations: int | None = None
    search_on: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    split: Split = field(default_factory=_random_split)
    work_dir: Path | None = None
    seed: int = 0

    def checked(self, classify: bool) -> Self:
        """Return the options, or raise ValueError for those that a model does not have."""
        from fdgnn.parameters import Number

        for given, model, is_given in (
            ("search=False", "paper", not self.search),
            ("n_configurations", "paper", self.n_configurations is not None),
            ("molecule_descriptors", "auto", self.molecule_descriptors != "auto"),
        ):
            if is_given and self.model != model:
                raise ValueError(
                    f"`{given}` is for `model={model!r}`; `model={self.model!r}` does not use it"
                )
        for name, value, rule in (
            ("n_configurations", self.n_configurations, Number(1, whole=True, optional=True)),
            ("search_on", self.search_on, Number(1, whole=True, optional=True)),
            ("alpha", self.settings.get("alpha"), Number(0, optional=True)),
        ):
            if (expected := rule.expected(value)) is not None:
                raise ValueError(f"{name}={value}: {expected}")
        if self.settings and self.model not in ("paper", "wl"):
            raise ValueError(f"model {self.model!r} has no settings; choose 'paper' or 'wl'")
        for name in ("threshold", "class_weight"):
            if getattr(self, name) is not None and not classify:
                raise ValueError(f"`{name}` is for classification, but the target is numeric")
        return self

    def with_defaults(self, targets: Targets) -> Self:
        """Return the options with the scoring and the threshold that suit the targets."""
        from fdgnn.metrics import default_scoring, named_scoring, rare_class

        self.checked(targets.classify)
        codes = targets.rarest()
        if codes is None:
            return replace(self, scoring=named_scoring(self.scoring or "r2", False).name)
        many = next((t for t in targets.each if len(t.classes) > 2), None)  # type: ignore[arg-type]
        if self.threshold is not None and many is not None:
            assert many.classes is not None
            what = f"target {many.name!r}" if many.name else "the target"
            raise ValueError(f"`threshold` is for two classes, but {what} has {len(many.classes)}")
        cut = self.threshold or ("f1" if many is None and rare_class(targets) else None)
        scoring = named_scoring(self.scoring or default_scoring(codes).name, True).name
        return replace(self, scoring=scoring, threshold=cut)
