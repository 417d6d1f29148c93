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
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

# The schema, and a function from columns to batches.
Opened = tuple[Any, Callable[[list[str]], Iterable[Any]]]


def main(requests: IO[bytes], answers: IO[bytes], complaints: IO[bytes]) -> int:
    """Write the names of the columns, then the rows of those that are requested."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        job = json.loads(requests.readline())
        sys.path[:] = job["sys_path"]
        import pyarrow as pa

        _limit(job["bytes"], job["seconds"])
        schema, batches = (_parquet if job["format"] == "parquet" else _arrow)(job)
        answers.write(json.dumps(schema.names).encode() + b"\n")
        answers.flush()
        request = requests.readline()
        if not request:
            return 0
        wanted = json.loads(request)
        fields = [schema.field(name) for name in wanted]
        # Each row of a dictionary column gets its own value, so that the parent can count it.
        coded = {field.name for field in fields if pa.types.is_dictionary(field.type)}
        fields = [f.with_type(f.type.value_type) if f.name in coded else f for f in fields]
        plain = pa.schema(fields)
        with pa.ipc.new_stream(answers, plain) as writer:
            for batch in batches(wanted):
                found = batch.select(wanted)
                # Arrow trusts files: what points outside its buffers would be followed there.
                found.validate(full=True)
                columns = [
                    column.dictionary_decode() if name in coded else column
                    for name, column in zip(wanted, found.columns, strict=True)
                ]
                writer.write_batch(pa.record_batch(columns, plain))
        answers.flush()
    except BrokenPipeError:
        return 1  # nobody is interested any more
    except Exception as error:
        why = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        complaints.write(json.dumps(why).encode() + b"\n")
        complaints.flush()
        return 1
    return 0


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


def _parquet(job: dict[str, Any]) -> Opened:
    """Open a Parquet file."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(job["path"])
    groups = list(map(file.metadata.row_group, range(file.metadata.num_row_groups)))
    # So many rows that they fit in memory, by their average size in a group of rows.
    largest = max((g.total_byte_size / max(g.num_rows, 1) for g in groups), default=1)
    n_rows = max(1, min(job["rows"], int(job["batch_bytes"] / max(largest, 1))))

    def batches(wanted: list[str]) -> Iterable[Any]:
        found: Iterable[Any] = file.iter_batches(n_rows, columns=wanted, use_threads=False)
        return found

    return file.schema_arrow, batches


def _arrow(job: dict[str, Any]) -> Opened:
    """Open an Arrow file or stream, in which nothing is known before it is read."""
    import pyarrow as pa

    source = pa.memory_map(job["path"])
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
    found = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader

    def batches(wanted: list[str]) -> Iterator[Any]:
        for batch in found:
            batch.validate()
            for start in range(0, len(batch), job["rows"]):
                yield batch.slice(start, job["rows"])

    return reader.schema, batches


if __name__ == "__main__":
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    code = main(sys.stdin.buffer, channel, sys.stderr.buffer)
    os._exit(code)  # at once: a damaged file may have left things that do not end well
