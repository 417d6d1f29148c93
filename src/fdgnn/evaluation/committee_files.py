"""The evaluation of an ensemble on disk.

::

    DIR/committee.json   what the run is; a run with other settings is rejected
    DIR/asked.json       the command of the last start
    DIR/member-I.npz     out-of-fold predictions of base model I, written when it is finished
    DIR/result.json      the summary, written when all base models are there
    DIR/lock             held by the process that runs, so that there is only one

`read_committee` reads such a directory for an HTML report, which is for classes;
`fdgnn.evaluation.models` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fdgnn.arrays import read_arrays
from fdgnn.evaluation.committee_records import CommitteeResult, CommitteeSettings
from fdgnn.evaluation.records import Asked
from fdgnn.evaluation.rundir import check_same, read_file, read_if_there
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.files import is_leftover, write_aside
from fdgnn.fitting import Choice, FitTask, ModelFit, Scores
from fdgnn.records import write_record

SETTINGS = "committee.json"
NO_PAGE = (
    "the page of an evaluation is for classes, and this target is a number; for a page about a "
    "model of it: fdgnn fit DATA --target COLUMN -o model.fdgnn --report page.html"
)


@dataclass(frozen=True)
class CommitteeRun:
    """What a run directory holds; what is not there is None."""

    path: Path
    settings: CommitteeSettings
    asked: Asked | None
    result: CommitteeResult | None
    n_trained: int  # base models whose predictions are there

    @property
    def command(self) -> str | None:
        """The command that made the run, or None if it is unknown."""
        given = (x.command for x in (self.result, self.asked) if x is not None and x.command)
        return next(given, None)


def is_committee(directory: Path) -> bool:
    """Return whether a directory is the run directory of an ensemble."""
    return (directory / SETTINGS).exists()


def read_committee(directory: Path) -> CommitteeRun:
    """Read a run directory.

    Raises
    ------
    StudyError
        One of its files is damaged, the result is that of another run, or it is a regression.
    """
    settings = read_file(directory / SETTINGS, CommitteeSettings)
    if settings.task == "regression":
        raise StudyError(f"{directory}: {NO_PAGE}")
    result = read_if_there(directory / "result.json", CommitteeResult)
    if result is not None:
        _check_result(directory / "result.json", result, settings)
    trained = [i for i in range(len(settings.members)) if member_path(directory, i).exists()]
    asked = read_if_there(directory / "asked.json", Asked)
    return CommitteeRun(directory, settings, asked, result, len(trained))


def _check_result(path: Path, result: CommitteeResult, settings: CommitteeSettings) -> None:
    for name in ("dataset", "model", "seed", "members"):
        found, wanted = getattr(result, name), getattr(settings, name)
        if found != wanted:
            raise StudyError(
                f"{path}: its {name} is {found}, but that of {SETTINGS} is {wanted}; delete it, "
                "and run the command again that made the run"
            )


def open_directory(directory: Path, settings: CommitteeSettings) -> None:
    """Make the directory, or check that it holds a run with the same settings.

    Raises
    ------
    RunMismatchError
        The directory holds something else.
    StudyError
        It cannot be used.
    """
    path = directory / SETTINGS
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if path.exists():
            check_same(directory, read_file(path, CommitteeSettings), settings)
        elif any(e.name != "lock" and not is_leftover(e) for e in directory.iterdir()):
            raise RunMismatchError(
                f"{directory}: it has files, but not those of such a run; use another directory"
            )
        else:
            write_record(path, settings)
    except OSError as error:
        raise StudyError(f"{directory}: cannot be used as a run directory ({error})") from error


# ---------------------------------------------------------------------- base models


def member_path(directory: Path, number: int) -> Path:
    """Return the path of the predictions of a base model."""
    return directory / f"member-{number}.npz"


def write_member(directory: Path, number: int, fit: ModelFit) -> None:
    """Write the out-of-fold predictions of a base model, completely or not at all."""
    assert fit.choice is not None
    positions, predictions, scores = fit.choice
    with write_aside(member_path(directory, number)) as file:
        np.savez_compressed(
            file,
            alphas=np.array(fit.alphas),
            positions=positions,
            predictions=predictions,
            validation=scores.validation,
            test=scores.test,
            seconds=np.array(fit.seconds),
        )


def read_member(directory: Path, number: int, name: str, task: FitTask) -> ModelFit:
    """Read the out-of-fold predictions of a base model for this task."""
    path = member_path(directory, number)
    n_rows, coded = len(task.folds), task.targets.coded.shape
    try:
        parts = read_arrays(path)
        n_alphas = parts["alphas"].size
        shapes = {
            "alphas": (n_alphas,),
            "positions": (n_rows, 1),
            "predictions": (n_rows, *coded),
            "validation": (n_rows, n_alphas, 1),
            "test": (n_rows, n_alphas, 1),
            "seconds": (),
        }
        for key, shape in shapes.items():
            part, kind = parts[key], np.int64 if key == "positions" else np.float64
            if part.dtype != kind or part.shape != shape:
                raise ValueError(f"its {key} are not numbers of the shape {shape}")
        positions = parts["positions"]
        if n_alphas == 0 or not ((positions >= 0) & (positions < n_alphas)).all():
            raise ValueError("its positions are not those of alphas")
    except (ValueError, KeyError) as error:
        raise StudyError(f"{path}: it is damaged ({error}); delete it and run again") from None
    scores = Scores((), parts["validation"], parts["test"])  # those of single folds are not kept
    choice = Choice(positions, parts["predictions"], scores)
    alphas, seconds = tuple(parts["alphas"].tolist()), float(parts["seconds"])
    return ModelFit(name, alphas, choice, (), [], None, seconds)
