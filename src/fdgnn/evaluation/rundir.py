"""A run on disk: settings, one line for each finished network, and at the end the result.

::

    DIR/settings.json    what the run is; a run with other settings is refused
    DIR/asked.json       the command, and how much it asks for, of the last start
    DIR/records.jsonl    one line per finished network, appended as it finishes
    DIR/result.json      the summary, written when all networks are there
    DIR/compare.json     the rows of a comparison (`fdgnn.evaluation.comparison`)
    DIR/lock             held by the process that runs, so that there is only one

`read_run` reads such a directory; `RunDirectory` writes it. A killed process may leave a torn last
line in the records; the next start drops it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import numpy as np

from fdgnn.evaluation.lines import RecordLines
from fdgnn.evaluation.records import Asked, ComparisonRow, NetworkScores, RunResult, RunSettings
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.files import is_leftover
from fdgnn.limits import MAX_RUN_FILE_BYTES
from fdgnn.records import Record, decode, write_record

T = TypeVar("T")

# ---------------------------------------------------------------------- reading


class Networks:
    """The finished networks of a run, read from the disk whenever they are asked for.

    Parameters
    ----------
    path : Path
        ``records.jsonl``, which need not be there yet.
    settings : RunSettings, optional
        They say which shape scores have; without them no line counts.
    """

    def __init__(self, path: Path, settings: RunSettings | None) -> None:
        self.file: RecordLines[NetworkScores] = RecordLines(path, NetworkScores)
        n_outer, n_alphas = (settings.n_outer, len(settings.alphas)) if settings else (0, 0)
        self._shape = (2, n_outer, n_alphas)

    def lines(self) -> Iterator[NetworkScores | None]:
        """Give the networks in their order, and None for each line that does not count.

        That is a line that cannot be read, has scores of another shape, or repeats a network.
        """
        seen: set[tuple[int, int]] = set()
        for network in self.file.lines():
            if network is None or not self._has_shape(network) or _key(network) in seen:
                yield None
            else:
                seen.add(_key(network))
                yield network

    def __iter__(self) -> Iterator[NetworkScores]:
        """Give each network once."""
        return (network for network in self.lines() if network is not None)

    def _has_shape(self, network: NetworkScores) -> bool:
        try:
            return {np.shape(s) for s in (network.validation, network.test)} == {self._shape}
        except ValueError:  # lists of different lengths
            return False


def _key(network: NetworkScores) -> tuple[int, int]:
    return network.configuration, network.guess


@dataclass(frozen=True)
class Run:
    """What a run directory holds; what is not there is None or empty.

    A directory of a comparison alone has `rivals` and no `settings`.
    """

    path: Path
    settings: RunSettings | None
    asked: Asked | None
    result: RunResult | None
    networks: Networks
    rivals: tuple[ComparisonRow, ...]


def read_run(path: Path) -> Run:
    """Read a run directory.

    Raises
    ------
    StudyError
        It is none, or one of its files is damaged. Lines of ``records.jsonl`` that are damaged do
        not count.
    """
    settings = read_if_there(path / "settings.json", RunSettings)
    rivals = read_if_there(path / "compare.json", list[ComparisonRow])
    if settings is None and rivals is None:
        raise StudyError(
            f"{path}: it is no run directory (it has neither settings.json nor committee.json nor "
            "compare.json); name one that an evaluation or a comparison has written"
        )
    return Run(
        path,
        settings,
        read_if_there(path / "asked.json", Asked),
        read_if_there(path / "result.json", RunResult),
        Networks(path / "records.jsonl", settings),
        tuple(rivals or ()),
    )


def read_file(path: Path, kind: type[T]) -> T:
    """Read one file of a run, or raise StudyError if that is not possible."""
    if not path.is_file():  # a pipe would be waited for
        raise StudyError(f"{path}: it cannot be read (there is no such file)")
    try:
        if MAX_RUN_FILE_BYTES.is_below(path.stat().st_size):
            raise StudyError(f"{path}: it is too large; {MAX_RUN_FILE_BYTES.in_words}")
        return decode(path.read_bytes(), kind)
    except OSError as error:
        raise StudyError(f"{path}: it cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise StudyError(
            f"{path}: it is damaged ({error}); make it again, or use another directory"
        ) from None


def read_if_there(path: Path, kind: type[T]) -> T | None:
    """Read one file of a run, or give None if it is not there."""
    return read_file(path, kind) if path.exists() else None


# ---------------------------------------------------------------------- writing


class RunDirectory:
    """Open or create the directory of a run, and lock it until `close`.

    Raises
    ------
    RunMismatchError
        The directory holds a run with other settings.
    StudyError
        The directory cannot be used.
    """

    def __init__(self, path: Path, settings: RunSettings) -> None:
        self.path = path
        self.networks = Networks(path / "records.jsonl", settings)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if (path / "settings.json").exists():
                check_same(path, read_file(path / "settings.json", RunSettings), settings)
            elif any(e.name != "lock" and not is_leftover(e) for e in path.iterdir()):
                raise RunMismatchError(
                    f"{path}: it has files, but not those of a run; use another directory"
                )
            else:
                write_record(path / "settings.json", settings)
            self._lock = locked(path / "lock")
            self.networks.file.drop_torn_line()
        except OSError as error:
            raise StudyError(f"{path}: cannot be used as a run directory ({error})") from error

    def close(self) -> None:
        """Let others use the directory."""
        self._lock.close()

    def append(self, network: NetworkScores) -> None:
        """Add one finished network."""
        try:
            self.networks.file.append(network)
        except OSError as error:
            raise StudyError(
                f"{self.networks.file.path}: a record could not be written ({error}); everything "
                "before it is kept, so make room and run the same command again"
            ) from error

    def write_asked(self, asked: Asked) -> None:
        """Write down what is to be run."""
        self._write("asked.json", asked)

    def write_result(self, result: RunResult) -> None:
        """Write the summary."""
        self._write("result.json", result)

    def _write(self, name: str, record: Record) -> None:
        try:
            write_record(self.path / name, record)
        except OSError as error:
            raise StudyError(f"{self.path / name}: could not be written ({error})") from error


def check_same(path: Path, found: Record, wanted: Record) -> None:
    """Raise RunMismatchError where the settings of a run are not those that are asked for."""
    for name in found.__struct_fields__:  # the dataset first
        there, asked = getattr(found, name), getattr(wanted, name)
        if there != asked:
            raise RunMismatchError(
                f"{path}: it holds a run with {name} = {there}, not {asked}; use another "
                "directory, or the same settings"
            )


def locked(path: Path) -> IO[str]:
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
