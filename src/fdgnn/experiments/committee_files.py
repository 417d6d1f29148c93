"""The evaluation of a committee on disk.

::

    DIR/committee.json   what the run is; a run with other settings is refused
    DIR/asked.json       the command of the last start
    DIR/member-I.npz     the held-out outputs of member I, written when it is finished
    DIR/result.json      the summary, written when all members are there
    DIR/lock             held by the process that runs, so that there is only one

`read_committee` reads such a directory for those who show it as a page, which is for classes;
`fdgnn.experiments.models` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fdgnn.arrays import read_arrays
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.experiments.committee_records import CommitteeResult, CommitteeSettings
from fdgnn.experiments.records import Asked
from fdgnn.experiments.rundir import check_same, read_file, read_if_there
from fdgnn.files import is_leftover, write_aside
from fdgnn.records import write_record
from fdgnn.selection.committees import MemberOutputs

SETTINGS = "committee.json"
NO_PAGE = (
    "the page of an evaluation is for classes, and this target is a number; for a page about a "
    "model of it: fdgnn fit DATA --target COLUMN -o model.fdgnn --report page.html"
)


@dataclass(frozen=True)
class CommitteeRun:
    """What the directory of such a run holds; what is not there is None."""

    path: Path
    settings: CommitteeSettings
    asked: Asked | None
    result: CommitteeResult | None
    n_trained: int  # members whose outputs are there

    @property
    def command(self) -> str | None:
        """The command that made the run, or None if its files do not say."""
        given = (x.command for x in (self.result, self.asked) if x is not None and x.command)
        return next(given, None)


def is_committee(directory: Path) -> bool:
    """Tell whether a directory is one of such a run."""
    return (directory / SETTINGS).exists()


def read_committee(directory: Path) -> CommitteeRun:
    """Read the directory of such a run.

    Raises
    ------
    StudyError
        One of its files is damaged, the result is that of another run, or the target is a number.
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
    """Make the directory, or see that it holds a run with the same settings.

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


# ---------------------------------------------------------------------- members


def member_path(directory: Path, number: int) -> Path:
    """Where the outputs of a member are."""
    return directory / f"member-{number}.npz"


def write_member(directory: Path, one: MemberOutputs) -> None:
    """Write what a member said, completely or not at all."""
    with write_aside(member_path(directory, one.number)) as file:
        np.savez_compressed(
            file,
            penalties=one.penalties,
            scores=one.scores,
            outputs=one.outputs,
            seconds=np.array(one.seconds),
        )


def read_member(directory: Path, number: int, shape: tuple[int, ...]) -> MemberOutputs:
    """Read what a member said: outputs of this shape, (n_rows, n, q)."""
    path = member_path(directory, number)
    shapes = {"penalties": shape[:1], "scores": shape[:1], "outputs": shape, "seconds": ()}
    try:
        parts = read_arrays(path)
        for name in shapes:
            part = parts[name]
            if part.dtype != np.float64 or part.shape != shapes[name]:
                raise ValueError(f"its {name} are not numbers of the shape {shapes[name]}")
    except (ValueError, KeyError) as error:
        raise StudyError(f"{path}: it is damaged ({error}); delete it and run again") from None
    return MemberOutputs(
        number, parts["penalties"], parts["scores"], parts["outputs"], float(parts["seconds"])
    )
