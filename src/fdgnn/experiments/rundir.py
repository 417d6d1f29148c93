"""A run on disk: settings, one line for each finished network, and at the end the result.

::

    DIR/settings.json    what the run is; a run with other settings is refused
    DIR/asked.json       the command and how much it asks for, of the last start
    DIR/records.jsonl    one line a finished network, appended as it finishes
    DIR/result.json      the summary, written when all are there
    DIR/lock             held by the process that runs, so that there is only one

A killed process may leave a torn last line in the records; it is dropped on the next start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.files import JsonLines, write_json
from fdgnn.selection.scores import NetworkScores


class RunDirectory:
    """Open or create the directory of a run.

    Raises
    ------
    RunMismatchError
        If the directory holds a run with other settings.
    StudyError
        If the directory cannot be used.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self._content = settings = json.loads(json.dumps(settings))
        try:
            path.mkdir(parents=True, exist_ok=True)
            if self._settings.exists():
                _check_same(path, read_json(self._settings), settings)
            elif any(entry.name != "lock" for entry in path.iterdir()):
                raise RunMismatchError(f"{path}: it has files, but none of a run; use another")
            else:
                write_json(self._settings, settings)
            self._lock = locked(path / "lock")
            self._records = JsonLines(path / "records.jsonl")
        except OSError as error:
            raise StudyError(f"{path}: cannot be used as a run directory ({error})") from error

    def close(self) -> None:
        """Let others use the directory."""
        self._lock.close()

    @property
    def _settings(self) -> Path:
        return self.path / "settings.json"

    def records(self) -> Iterator[NetworkScores]:
        """Give the networks finished so far, each once; lines that cannot be read do not count."""
        seen: set[tuple[int, int]] = set()
        shape = (2, self._content["n_outer"], len(self._content["alphas"]))
        for record in filter(None, (_from_json(line, shape) for line in self._records)):
            if (record.configuration, record.guess) not in seen:
                seen.add((record.configuration, record.guess))
                yield record

    def append(self, record: NetworkScores) -> None:
        """Add one finished network."""
        try:
            self._records.append(_to_json(record))
        except OSError as error:
            raise StudyError(
                f"{self._records.path}: a record could not be written ({error}); everything before "
                "it is kept, so make room and run the same command again"
            ) from error

    def write_asked(self, asked: dict[str, Any]) -> None:
        """Write down what is to be run, for those who find the run unfinished."""
        self._write(self.path / "asked.json", asked)

    def write_result(self, result: dict[str, Any]) -> None:
        """Write the summary."""
        self._write(self.path / "result.json", result)

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        try:
            write_json(path, content)
        except OSError as error:
            raise StudyError(f"{path}: could not be written ({error})") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of a run, or raise StudyError if it is damaged."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StudyError(f"{path}: it is damaged ({error}); use another directory") from error
    if not isinstance(content, dict):
        raise StudyError(f"{path}: it is damaged (no JSON object); use another directory")
    return content


def _check_same(path: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name in dict.fromkeys([*wanted, *found]):  # the dataset first
        if found.get(name) != wanted.get(name):
            raise RunMismatchError(
                f"{path}: it holds a run with {name} = {found.get(name)}, not {wanted.get(name)}; "
                "use another directory, or the same settings"
            )


def _to_json(record: NetworkScores) -> dict[str, Any]:
    return {
        "configuration": record.configuration,
        "guess": record.guess,
        "seconds": record.seconds,
        "validation": record.validation.tolist(),
        "test": record.test.tolist(),
    }


def _from_json(line: dict[str, Any], shape: tuple[int, ...]) -> NetworkScores | None:
    """Read a record, or None where a line is damaged: that network is scored again.

    Scores are shares, of one layer and all, in all outer folds and for all penalties.
    """
    try:
        record = NetworkScores(
            configuration=int(line["configuration"]),
            guess=int(line["guess"]),
            validation=np.array(line["validation"], dtype=np.float64),
            test=np.array(line["test"], dtype=np.float64),
            seconds=float(line["seconds"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    scores = (record.validation, record.test)
    whole = all(s.shape == shape and bool(((s >= 0) & (s <= 1)).all()) for s in scores)
    return record if whole else None


def locked(path: Path) -> IO[str]:
    """Hold a lock on the directory as long as this process lives, however it ends."""
    file = path.open("w", encoding="utf-8")
    try:
        import fcntl
    except ImportError:  # not on Windows: there, two runs at once are the user's care
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StudyError(
            f"{path.parent}: another process is running there; wait for it or use another directory"
        ) from None
    return file
