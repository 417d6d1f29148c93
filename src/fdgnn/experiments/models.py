"""Evaluate ``--model auto``, ``colors`` or ``both``: a committee, by nested cross validation.

::

    DIR/committee.json   what the run is; a run with other settings is refused
    DIR/member-I.npz     the held-out outputs of member I, written when it is finished
    DIR/result.json      the summary
    DIR/lock             held by the process that runs, so that there is only one
"""

from __future__ import annotations

import platform
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from fdgnn._version import __version__
from fdgnn.context import Context
from fdgnn.estimators import AUTO, FDGNNClassifier
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.experiments.records import CommitteeResult, CommitteeSettings
from fdgnn.experiments.rundir import check_same, locked, read_file
from fdgnn.experiments.study import ENGINE, fingerprint, versions
from fdgnn.files import write_aside
from fdgnn.graphs import Array, GraphBatch
from fdgnn.readout.targets import winning_class
from fdgnn.records import write_record
from fdgnn.selection.committees import (
    CommitteeScores,
    MemberOutputs,
    all_outputs,
    members,
    score_committee,
)
from fdgnn.selection.folds import nested_folds
from fdgnn.selection.scores import SelectionTask, classification_task

N_OUTER = N_INNER = 10


def evaluate_committee(
    dataset: str,
    graphs: GraphBatch,
    y: Array,
    model: str,
    directory: Path,
    *,
    seed: int = 0,
    context: Context | None = None,
) -> CommitteeResult:
    """Evaluate a committee, or go on with it; return the result, which is also in ``result.json``.

    Parameters
    ----------
    dataset : str
        Its name, for the record.
    graphs, y
    model : {"auto", "colors", "both"}
    directory : Path
        The run directory; members that are finished there are not trained again.
    seed : int, default=0
        Of the folds, and of reservoirs.
    context : Context, optional
    """
    context = context or Context()
    folds = nested_folds(y, N_OUTER, N_INNER, seed)
    candidates = "all" if model == "auto" else model
    estimator = FDGNNClassifier(encoder=AUTO, candidates=candidates, random_state=seed)
    alphas = estimator.penalties(len(graphs))
    task = classification_task(graphs, y, folds, alphas)
    names = [member.name for member in members(task, estimator)]
    settings = CommitteeSettings(
        dataset=dataset,
        data=_fingerprint(graphs, y),
        model=model,
        members=names,
        n_outer=N_OUTER,
        n_inner=N_INNER,
        alphas=list(alphas),
        seed=seed,
        engine=ENGINE,
        fdgnn=__version__,
    )
    _open(directory, settings)
    with closing(locked(directory / "lock")):
        missing = [i for i in range(len(names)) if not _path(directory, i).exists()]
        finished = all_outputs(task, estimator, missing, context.n_jobs)
        done = len(names) - len(missing)
        for one in context.track(finished, len(names), f"{dataset} models", done=done):
            _write(directory, one)
        shape = (len(folds), *task.targets.shape)
        found = [read_member(directory, i, shape) for i in range(len(names))]
        scores = score_committee(task, found, classify=True)
        result = _summary(settings, task, found, scores, context.command)
        write_record(directory / "result.json", result)
    return result


def _fingerprint(graphs: GraphBatch, y: Array) -> str:
    """The study's, and whether arcs have labels, which it leaves out."""
    labels = graphs.arc_labels
    return f"{fingerprint(graphs, y)}{'' if labels is None else '-arc-labels'}"


def _open(directory: Path, settings: CommitteeSettings) -> None:
    """Make the directory, or see that it holds a run with the same settings."""
    path = directory / "committee.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if path.exists():
            check_same(directory, read_file(path, CommitteeSettings), settings)
        elif any(entry.name != "lock" for entry in directory.iterdir()):
            raise RunMismatchError(
                f"{directory}: it has files, but not those of such a run; use another directory"
            )
        else:
            write_record(path, settings)
    except OSError as error:
        raise StudyError(f"{directory}: cannot be used as a run directory ({error})") from error


def _path(directory: Path, number: int) -> Path:
    return directory / f"member-{number}.npz"


def _write(directory: Path, one: MemberOutputs) -> None:
    with write_aside(_path(directory, one.number)) as file:
        np.savez_compressed(
            file,
            penalties=one.penalties,
            scores=one.scores,
            outputs=one.outputs,
            seconds=np.array(one.seconds),
        )


def read_member(directory: Path, number: int, shape: tuple[int, ...]) -> MemberOutputs:
    """Read what a member said: outputs of this shape, (n_rows, n, q)."""
    path = _path(directory, number)
    shapes = {"penalties": shape[:1], "scores": shape[:1], "outputs": shape, "seconds": ()}
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            parts = {name: arrays[name] for name in shapes}
        for name, part in parts.items():
            if part.dtype != np.float64 or part.shape != shapes[name]:
                raise ValueError(f"its {name} are not numbers of the shape {shapes[name]}")
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise StudyError(f"{path}: it is damaged ({error}); delete it and run again") from None
    return MemberOutputs(
        number, parts["penalties"], parts["scores"], parts["outputs"], float(parts["seconds"])
    )


def _summary(
    settings: CommitteeSettings,
    task: SelectionTask,
    found: list[MemberOutputs],
    scores: CommitteeScores,
    command: str | None,
) -> CommitteeResult:
    alone = [score_committee(task, [one], classify=True).test.mean() for one in found]
    return CommitteeResult(
        dataset=settings.dataset,
        model=settings.model,
        n_graphs=len(task.graphs),
        seed=settings.seed,
        accuracy_mean=float(scores.test.mean()),
        accuracy_std=float(scores.test.std(ddof=1)),
        fold_accuracies=scores.test.tolist(),
        balanced_accuracy_mean=float(np.mean(list(_balanced(task, found, scores)))),
        members=settings.members,
        fold_kept=[np.flatnonzero(row).tolist() for row in scores.kept],
        fold_alphas=np.array([one.penalties for one in found]).T.tolist(),
        member_accuracies=[float(each) for each in alone],
        member_seconds=[one.seconds for one in found],
        versions=versions(),
        machine={"python": platform.python_version(), "cpu": platform.machine()},
        command=command,
    )


def _balanced(
    task: SelectionTask, found: list[MemberOutputs], scores: CommitteeScores
) -> Iterator[float]:
    """Balanced accuracy on the test graphs of each outer fold."""
    for row, (fold, kept) in enumerate(zip(task.folds, scores.kept, strict=True)):
        test = fold < 0
        outputs = np.mean([found[i].outputs[row][test] for i in np.flatnonzero(kept)], axis=0)
        yield balanced_accuracy_score(task.y[test], winning_class(outputs))
