"""Evaluation tasks, runs of evaluations, and the directories that they are kept in.

::

    DIR/evaluation.json   a list with one `Evaluation` for each model
    DIR/parts/            checkpoints, by which the same command resumes (`fdgnn.checkpoints`)
    DIR/predictions.csv   out-of-fold predictions, of the model that was evaluated last
    DIR/report.json       what the report shows of a model and its graphs
    DIR/report.html       the report
    DIR/NAME.log          what the process of a compared method printed
    DIR/lock              held by the process that runs, so that there is only one

All evaluations of a directory are of the same graphs and the same outer folds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec
import numpy as np

from fdgnn.arrays import Floats
from fdgnn.checkpoints import content_hash
from fdgnn.context import Context
from fdgnn.evaluation.record import (
    Evaluation,
    EvaluationProtocol,
    FoldResult,
    ModelDescription,
    PublishedScore,
)
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.files import is_leftover, write_aside
from fdgnn.folds import TEST, Folds, trained_on
from fdgnn.graphs import GraphBatch
from fdgnn.records import cached_property, read_record, write_record
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.targets import Target, Targets, transformed_back, winning_class
from fdgnn.texts import guarded
from fdgnn.uncertainty import fit_slope, probabilities

FILE, PREDICTIONS = "evaluation.json", "predictions.csv"
#: What all evaluations of a directory have in common, and what those of one model have as well.
_OF_ALL = ("split", "n_outer", "seed")
_OF_ONE_MODEL = (*_OF_ALL, "n_inner", "scoring", "threshold", "class_weight")


@dataclass(frozen=True, eq=False)
class EvaluationTask:
    """Graphs, targets and folds, the same for all models that are evaluated on them.

    Attributes
    ----------
    dataset : str
        Its name.
    graphs : GraphBatch
    targets : Targets
    folds : (n_outer, n) int
        As in `FitTask`, one row for each outer fold.
    split : str
        How graphs are held out, in words.
    seed : int
        Of the folds, and of the models.
    ids : sequence, optional
        Names of the graphs; by default their positions from 0.
    """

    dataset: str
    graphs: GraphBatch
    targets: Targets
    folds: Folds
    split: str = "random split"
    seed: int = 0
    ids: Sequence[object] | None = None

    @property
    def smiles(self) -> Sequence[str] | None:
        """The SMILES of graphs that are molecules."""
        return None if self.graphs.smiles is None else self.graphs.smiles.texts.tolist()

    @cached_property
    def data_hash(self) -> str:
        """A hash of the graphs and targets."""
        return content_hash((self.graphs, self.targets))[:16]

    def described(
        self,
        model: ModelDescription,
        *,
        n_inner: int | None = None,
        published: PublishedScore | None = None,
        **protocol: Any,
    ) -> Evaluation:
        """Return the evaluation of a model without results; `protocol` has more of its fields."""
        inner = int(self.folds.max()) + 1 if n_inner is None else n_inner
        return Evaluation(
            dataset=self.dataset,
            data_hash=self.data_hash,
            n_graphs=len(self.graphs),
            task="classification" if self.targets.classify else "regression",
            model=model,
            protocol=EvaluationProtocol(
                split=self.split, n_outer=len(self.folds), n_inner=inner, seed=self.seed, **protocol
            ),
            published=published,
            status="unfinished",
        )

    def fold_result(self, row: int, **more: Any) -> FoldResult:
        """Return the result of an outer fold."""
        fold = self.folds[row]
        n_train, n_test = int(trained_on(fold).sum()), int((fold == TEST).sum())
        return FoldResult(n_train=n_train, n_test=n_test, **more)


@dataclass(frozen=True, eq=False)
class EvaluationRun:
    """A finished evaluation, and what a report shows beyond it.

    Attributes
    ----------
    task : EvaluationTask
    evaluation : Evaluation
    predictions : NestedPredictions
        Of the test graphs of each outer fold, and out of fold of the graphs in its inner folds.
    model : estimator
        Not fitted; with the parameters that most outer folds selected.
    """

    task: EvaluationTask
    evaluation: Evaluation
    predictions: NestedPredictions
    model: Any

    def probabilities(self, target: int) -> Floats | None:
        """Return probabilities (n, n_classes) for the test graphs of all outer folds.

        Each outer fold is calibrated by the out-of-fold predictions for its training graphs. None
        for regression; NaN for graphs that no outer fold tests.
        """
        targets = self.task.targets
        one = targets.each[target]
        if one.classes is None:
            return None
        found = np.full((len(targets), len(one.classes)), np.nan)
        for fold, outputs in zip(self.task.folds, self.predictions.outputs, strict=True):
            own = outputs[:, one.columns]
            known = (fold >= 0) & targets.known[:, target]
            slope = fit_slope(own[known], targets.values[known, target])
            found[fold == TEST] = probabilities(own[fold == TEST], slope)
        return found

    def write_predictions(self, path: Path) -> None:
        """Write the prediction for each graph by the outer fold that tests it, as a CSV table."""
        task, tested = self.task, self.predictions.tested
        targets, outputs = task.targets, self.predictions.last()
        rows = np.flatnonzero(tested.any(axis=0))
        columns: dict[str, Sequence[Any]] = {
            "id": rows.tolist() if task.ids is None else [task.ids[g] for g in rows.tolist()],
            "fold": (np.argmax(tested, axis=0)[rows] + 1).tolist(),
        }
        for t, one in enumerate(targets.each):
            suffix = f"_{one.name}" if len(targets.names) > 1 else ""
            own, values = outputs[rows, one.columns], targets.values[rows, t]
            if one.classes is None:
                predicted = transformed_back(own[:, 0], one.transform)
                truth = transformed_back(values, one.transform)
            else:
                predicted = one.classes[winning_class(own)]
                truth = one.classes[values.astype(np.int64)]
            known = targets.known[rows, t].tolist()
            pairs = zip(truth.tolist(), known, strict=True)
            columns[f"target{suffix}"] = [value if there else "" for value, there in pairs]
            columns[f"prediction{suffix}"] = predicted.tolist()
            chances = self.probabilities(t)
            if one.classes is not None and chances is not None:
                for name, each in zip(one.classes, chances[rows].T, strict=True):
                    columns[f"probability{suffix}_{name}"] = each.tolist()
        with write_aside(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            table = csv.writer(text, lineterminator="\n")
            table.writerow(map(guarded, columns))
            for row in zip(*columns.values(), strict=True):
                table.writerow(guarded(v) if isinstance(v, str) else v for v in row)
            text.flush()
            text.detach()


class Evaluator(Protocol):
    """A model with the protocol by which it is evaluated."""

    @property
    def described(self) -> Evaluation:
        """The evaluation without results."""

    def run(self, parts: Path, context: Context) -> EvaluationRun:
        """Evaluate the model, with checkpoints in a directory."""


def evaluate(evaluator: Evaluator, path: Path, context: Context | None = None) -> EvaluationRun:
    """Evaluate a model in a run directory, or resume.

    Raises
    ------
    RunMismatchError
        The directory holds a run of other graphs, folds or settings.
    StudyError
        The directory cannot be used.
    """
    context = context or Context()
    described = msgspec.structs.replace(evaluator.described, command=context.command)
    with closing(RunDirectory(path, [described])) as directory:
        run = evaluator.run(directory.parts, context)
        directory.keep(run.evaluation)
        run.write_predictions(path / PREDICTIONS)
    return run


def model_outputs(model: Any, X: Any, target: Target) -> Floats:
    """Return the outputs (n, q) of any fitted model, in the target encoding of fdgnn.

    The model was trained on class codes; classes that it has not seen get the lowest output.
    """
    if hasattr(model, "outputs"):
        return np.asarray(model.outputs(X))
    if target.classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1, 1)
    q = target.columns.stop - target.columns.start
    if hasattr(model, "decision_function"):
        found = np.asarray(model.decision_function(X), dtype=np.float64)
        found = found.reshape(len(found), -1)
    else:
        shares = np.asarray(model.predict_proba(X), dtype=np.float64)
        found = shares[:, 1:] - 0.5 if shares.shape[1] == 2 else shares
    if found.shape[1] == 1 < q:
        found = np.hstack([-found, found])
    if found.shape[1] == q:
        return found
    outputs = np.full((len(found), q), found.min(initial=0.0) - 1.0)
    outputs[:, model.classes_] = found
    return outputs


# ---------------------------------------------------------------------- run directories


def read_evaluations(path: Path) -> list[Evaluation]:
    """Read the evaluations of a run directory, or of a file like its ``evaluation.json``.

    Raises
    ------
    StudyError
        There are none, or the file is damaged.
    """
    file = path / FILE if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise StudyError(
            f"{path}: this is not a run directory, because it has no {FILE}; name one that "
            "`fdgnn evaluate` or `fdgnn compare` has written"
        )
    kind: Any = list[Evaluation]
    found: list[Evaluation] = read_record(file, kind)
    return found


class RunDirectory:
    """A run directory that is locked until `close`.

    Parameters
    ----------
    path : Path
        It is created if it does not exist.
    started : sequence of Evaluation
        What is evaluated now, without results. Those of which the directory has no evaluation yet
        are written, as unfinished.

    Raises
    ------
    RunMismatchError
        The directory holds evaluations of other graphs, other folds or other settings.
    StudyError
        The directory cannot be used, or another process uses it.
    """

    def __init__(self, path: Path, started: Sequence[Evaluation]) -> None:
        self.path = path
        self.parts = path / "parts"
        try:
            path.mkdir(parents=True, exist_ok=True)
            known = read_evaluations(path) if (path / FILE).exists() else []
            self._evaluations = {_key(each): each for each in known}
            own = {"lock", self.parts.name, PREDICTIONS, "report.json", "report.html"}
            if not known and any(e.name not in own and not is_leftover(e) for e in path.iterdir()):
                raise RunMismatchError(
                    f"{path}: has files, but not those of a run; use another directory"
                )
            for one in started:
                for each in known:
                    _check_same(path, each, one)
            self._lock = _locked(path / "lock")
        except OSError as error:
            raise StudyError(f"{path}: cannot be used as a run directory ({error})") from error
        for one in started:
            if self.find(one) is None:
                self.keep(one)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def find(self, like: Evaluation) -> Evaluation | None:
        """Return the evaluation of the same model, or None."""
        return self._evaluations.get(_key(like))

    def keep(self, evaluation: Evaluation) -> None:
        """Write an evaluation, instead of an earlier one of the same model."""
        self._evaluations[_key(evaluation)] = evaluation
        try:
            write_record(self.path / FILE, list(self._evaluations.values()))
        except OSError as error:
            raise StudyError(f"{self.path / FILE}: could not be written ({error})") from error


def _key(evaluation: Evaluation) -> tuple[str, str]:
    return evaluation.model.name, evaluation.model.kind


def _check_same(path: Path, found: Evaluation, wanted: Evaluation) -> None:
    """Raise RunMismatchError where an earlier evaluation is not one of the same graphs and folds.

    How many configurations and random initializations are tried may differ: a run can be extended,
    because none of them depends on how many others there are.
    """
    same_model = _key(found) == _key(wanted)
    names = _OF_ONE_MODEL if same_model else _OF_ALL
    facts: list[tuple[str, Any, Any]] = [
        ("dataset", found.dataset, wanted.dataset),
        ("data", found.data_hash, wanted.data_hash),
    ]
    facts += [(n, getattr(found.protocol, n), getattr(wanted.protocol, n)) for n in names]
    if same_model:
        known, given = found.model.parameters, wanted.model.parameters
        facts += [(n, known.get(n), given.get(n)) for n in sorted({*known, *given})]
    if same_model and wanted.protocol.name != "nested":
        counts = ("n_configurations", "n_initializations")
        if any(getattr(found.protocol, n) > getattr(wanted.protocol, n) for n in counts):
            raise RunMismatchError(
                f"{path}: holds a run of more configurations or random initializations than "
                "requested; request as many, or use another directory"
            )
    for name, there, asked in facts:
        if there != asked:
            raise RunMismatchError(
                f"{path}: holds a run with {name} = {there}, not {asked}; use another "
                "directory, or the same settings"
            )


def _locked(path: Path) -> IO[str]:
    """Hold a lock on the directory of `path` as long as this process lives, however it ends."""
    file = path.open("w", encoding="utf-8")
    try:
        import fcntl
    except ImportError:  # on Windows there is no lock: users must not start two runs at once
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StudyError(
            f"{path.parent}: another process is running there; wait for it or use another directory"
        ) from None
    return file
