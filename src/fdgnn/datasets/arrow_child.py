"""The process that reads a Parquet or Arrow file for `fdgnn.datasets.arrow`, and may die of it.

It is run as a script: it imports pyarrow, and nothing of fdgnn or NumPy, which take longer. It
gets its task, and answers, in lines of JSON; the rows follow as an Arrow stream. SIGINT is for
the parent, which ends this process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any


def main(requests: IO[bytes], answers: IO[bytes], complaints: IO[bytes]) -> int:
    """Write the names of the columns, then the rows of those that are requested."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _serve(requests, answers)
    except BrokenPipeError:
        return 1  # nobody is interested any more
    except Exception as error:
        why = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        complaints.write(json.dumps(why).encode() + b"\n")
        complaints.flush()
        return 1
    return 0


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    job = json.loads(requests.readline())
    sys.path[:] = job["sys_path"]
    import pyarrow as pa

    _limit(job["bytes"], job["seconds"])
    file = _Parquet(job) if job["format"] == "parquet" else _Arrow(job)
    _say(answers, file.columns)
    asked = requests.readline()
    if not asked:
        return
    wanted = json.loads(asked)
    _say(answers, file.n_entries(wanted))
    schema = pa.schema([file.schema.field(name) for name in wanted])
    with pa.ipc.new_stream(answers, schema) as writer:
        for batch in file.batches(wanted):
            found = batch.select(wanted)
            # Arrow trusts files: what points outside its buffers would be followed there.
            found.validate(full=True)
            writer.write_batch(found)
    answers.flush()


def _say(answers: IO[bytes], what: Any) -> None:
    answers.write(json.dumps(what).encode() + b"\n")
    answers.flush()


def _limit(n_bytes: int, seconds: int) -> None:
    """Bound what this process may take, where the system can."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 -- pathlib is slow
            n_bytes += int(file.read().split()[0]) * resource.getpagesize()
        for kind, most in ((resource.RLIMIT_AS, n_bytes), (resource.RLIMIT_CPU, seconds)):
            hard = resource.getrlimit(kind)[1]
            allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (allowed, hard))
    except (ImportError, OSError, ValueError):
        pass  # not on this system


class _Parquet:
    """A Parquet file."""

    def __init__(self, job: dict[str, Any]) -> None:
        import pyarrow.parquet as pq

        self._job = job
        self._file = pq.ParquetFile(job["path"])
        self._most = 1.0  # entries in a row, on the average of a group of rows
        self.schema = self._file.schema_arrow
        self.columns = list(self.schema.names)

    def n_entries(self, wanted: Sequence[str]) -> int:
        """Return the number of entries of the columns by the file's metadata."""
        metadata, found = self._file.metadata, 0
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                if column.path_in_schema.split(".")[0] in wanted:
                    found += column.num_values
                    self._most = max(self._most, column.num_values / max(group.num_rows, 1))
        return found

    def batches(self, wanted: Sequence[str]) -> Iterable[Any]:
        """Return batches of so many rows that their entries fit in memory.

        A few bytes can encode "a million times the same entry".
        """
        n_rows = max(1, min(self._job["rows"], int(self._job["entries"] / self._most)))
        found: Iterable[Any] = self._file.iter_batches(n_rows, columns=wanted, use_threads=False)
        return found


class _Arrow:
    """An Arrow file or stream."""

    def __init__(self, job: dict[str, Any]) -> None:
        import pyarrow as pa

        source = pa.memory_map(job["path"])
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        self._rows, self.schema, self.columns = (
            job["rows"],
            reader.schema,
            list(reader.schema.names),
        )
        self._batches = (
            map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
        )

    def n_entries(self, wanted: Sequence[str]) -> int:
        """Nothing is known before it is read."""
        return 0

    def batches(self, wanted: Sequence[str]) -> Iterator[Any]:
        """Yield some rows at a time."""
        for batch in self._batches:
            batch.validate()
            for start in range(0, len(batch), self._rows):
                yield batch.slice(start, self._rows)


if __name__ == "__main__":
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    code = main(sys.stdin.buffer, channel, sys.stderr.buffer)
    os._exit(code)  # at once: a damaged file may have left things that do not end well
