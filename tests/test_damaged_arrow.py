"""Damaged Arrow and Parquet files: an error that names the file, never the end of the process."""

from __future__ import annotations

import gc
import struct
import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from fdgnn import limits, read_graphs
from fdgnn.datasets import arrow
from fdgnn.exceptions import DatasetError, DatasetFormatError

pa = pytest.importorskip("pyarrow")

CASES = Path(__file__).parent / "cases" / "read.parquet"
N = 40
COLUMNS = {
    "edge_index": pa.array([[[0, 1], [1, 2]]] * N),
    "num_nodes": pa.array([3] * N),
    "node_feat": pa.array([["carbon", "nitrogen", "oxygen"]] * N),
    "y": pa.array(["active", "passive"] * (N // 2)).dictionary_encode(),
}
READING = """
import sys
from fdgnn import read_graphs
from fdgnn.exceptions import DatasetFormatError
for path in sys.argv[1:]:
    try:
        read_graphs(path, target="y")
    except DatasetFormatError as error:
        assert str(error).startswith(f"{path}: cannot be read ("), error
        print("refused")
"""


def content(kind):
    sink = pa.BufferOutputStream()
    table = pa.table(COLUMNS)
    with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def packed(numbers):
    return struct.pack(f"<{len(numbers)}i", *numbers)


# The offsets of each column of lists or texts, and the positions in the dictionary of targets.
OFFSETS = {
    "lists": packed(range(0, 2 * N + 1, 2)),
    "inner lists": packed(range(0, 4 * N + 1, 2)),
    "texts": packed([0, 6, 14, 20, 26]),
    "dictionary": packed([0, 1] * (N // 2)),
}
LARGE = {"far": 2**31 - 1, "negative": -(2**31)}


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_offsets_that_point_outside_are_refused(tmp_path, kind):
    """In a process of its own, which such a file would end."""
    good, paths = content(kind), []
    for name, offsets in OFFSETS.items():
        for distance, value in LARGE.items():
            at = good.index(offsets) + len(offsets) // 2 // 4 * 4
            path = tmp_path / f"{name} {distance}.arrow"
            path.write_bytes(good[:at] + struct.pack("<i", value) + good[at + 4 :])
            paths.append(path)
    run = subprocess.run(
        [sys.executable, "-c", READING, *paths], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["refused"] * len(paths)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    good = content("file")
    for name, text in {"entry": b"nitrogen", "column": b"node_feat"}.items():
        path = tmp_path / f"{name}.arrow"
        path.write_bytes(good.replace(text, b"\xff" * len(text)))
        with pytest.raises(DatasetFormatError, match=rf"{name}\.arrow: cannot be read \("):
            read_graphs(path, target="y")


def test_columns_that_nobody_reads_may_be_damaged(tmp_path):
    good = content("file")
    path = tmp_path / "g.arrow"
    path.write_bytes(good.replace(OFFSETS["dictionary"], packed([2**30] * N)))
    assert len(read_graphs(path).rows) == N


def test_times_that_python_has_not_are_refused(tmp_path):
    path = tmp_path / "g.arrow"
    days = pa.array([2**31 - 1] * N, pa.int32()).cast(pa.date32())
    table = pa.table(COLUMNS | {"y": days})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DatasetFormatError, match=r"g\.arrow: cannot be read \("):
        read_graphs(path, target="y")


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "g.arrow"
    table = pa.Table.from_arrays([*COLUMNS.values(), COLUMNS["y"]], [*COLUMNS, "y"])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DatasetFormatError, match=r"g\.arrow: there are 2 columns called 'y'"):
        read_graphs(path, target="y")


def test_a_footer_that_pyarrow_cannot_read_is_an_error(tmp_path):
    """Its histogram has the wrong size, which ends the process when its columns are described."""
    (case,) = CASES.glob("*")
    path = tmp_path / "g.parquet"
    path.write_bytes(case.read_bytes())
    with pytest.raises(DatasetFormatError, match=r"g\.parquet: cannot be read \("):
        read_graphs(path, target="y")


def test_a_reader_that_dies_between_two_batches_is_an_error(tmp_path, monkeypatch):
    """Rows that came before it are no complete file."""
    path, started = tmp_path / "g.arrow", []
    table = pa.table({"num_nodes": pa.array([3] * 500_000)})  # more than a pipe holds
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    start = arrow.start_reader
    monkeypatch.setattr(
        arrow, "start_reader", lambda complaints: started.append(start(complaints)) or started[0]
    )
    columns, rows = arrow.read_arrow(path, "arrow")
    reading = rows(columns)
    assert next(reading)["num_nodes"] == 3
    started[0].kill()
    with pytest.raises(DatasetFormatError, match=r"g\.arrow: cannot be read \(.*SIGKILL"):
        deque(reading, maxlen=0)


def test_no_reader_is_left_behind(tmp_path, monkeypatch):
    path, started = tmp_path / "g.arrow", []
    path.write_bytes(content("file"))
    start = arrow.start_reader
    monkeypatch.setattr(
        arrow, "start_reader", lambda complaints: started.append(start(complaints)) or started[-1]
    )
    arrow.read_arrow(path, "arrow")  # nobody asks for rows
    columns, rows = arrow.read_arrow(path, "arrow")
    reading = rows(columns)
    next(reading)
    reading.close()  # nobody asks for more of them
    del rows, reading
    gc.collect()
    assert [process.returncode is None for process in started] == [False, False]


def test_a_reader_may_not_take_all_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "LEAST_MEMORY", 10_000_000)
    path = tmp_path / "g.parquet"
    pq = pytest.importorskip("pyarrow.parquet")
    zeros = pa.array(np.zeros(4_000_000, dtype=np.int64))
    pq.write_table(pa.table({"edge_index": zeros, "y": zeros}), path, compression="zstd")
    monkeypatch.setattr(arrow, "BATCH", 4_000_000)
    with limits.changed(FDGNN_MAX_EXPANSION=1), pytest.raises(DatasetError):
        read_graphs(path, target="y")
