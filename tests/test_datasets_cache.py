"""The cache of parsed datasets: never wrong, never in the way."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from fdgnn import load_tu
from fdgnn.datasets import home, tu
from fdgnn.exceptions import FDGNNWarning
from fdgnn.graphs import GraphBatch
from tu_files import TEXTS, write_folder, write_zip

# The small TU dataset has attributes beside labels.
pytestmark = pytest.mark.filterwarnings("ignore:.*attributes of vertices are not used")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("FDGNN_CACHE", str(tmp_path / "cache"))
    home._warned.clear()
    return tmp_path / "cache"


@pytest.fixture
def dataset(tmp_path) -> Path:
    return write_zip(tmp_path / "data" / "TOY.zip")


@pytest.fixture
def parses(monkeypatch) -> list[str]:
    """Grow by one item with each parsing."""
    calls = []

    def counted(files, options):
        calls.append(options.vertex)
        return parse(files, options)

    parse = tu.parse_tu
    monkeypatch.setattr(tu, "parse_tu", counted)
    return calls


def assert_same(a: GraphBatch, b: GraphBatch) -> None:
    for field in fields(GraphBatch):
        left, right = getattr(a, field.name), getattr(b, field.name)
        assert type(left) is type(right), field.name
        assert getattr(left, "dtype", None) == getattr(right, "dtype", None), field.name
        np.testing.assert_array_equal(left, right)


# ---------------------------------------------------------------------- what it does


@pytest.mark.parametrize("vertex", ["labels", "features", "none"])
def test_the_second_load_is_the_first_without_parsing(dataset, parses, vertex):
    graphs, y = load_tu(dataset, vertex=vertex)
    again, y_again = load_tu(dataset, vertex=vertex)
    assert parses == [vertex]
    assert_same(graphs, again)
    np.testing.assert_array_equal(y, y_again)
    assert y.dtype == y_again.dtype


def test_variants_do_not_mix(dataset, parses):
    for vertex in ("labels", "features", "none"):
        load_tu(dataset, vertex=vertex)
    assert parses == ["labels", "features", "none"]


def test_another_content_is_another_entry(dataset, parses):
    load_tu(dataset)
    write_zip(dataset, graph_labels="1\n-1\n")  # the same sizes and names
    assert load_tu(dataset)[1].tolist() == [1, -1]
    assert len(parses) == 2


def test_a_changed_folder_is_parsed_again(tmp_path, parses):
    folder = write_folder(tmp_path / "data" / "toy")
    load_tu(folder)
    labels = folder / "TOY_graph_labels.txt"
    then = labels.stat().st_mtime_ns
    labels.write_text("1\n-1\n")
    os.utime(labels, ns=(then + 1, then + 1))
    assert load_tu(folder)[1].tolist() == [1, -1]
    # Equal in names, sizes and times, but elsewhere.
    other = write_folder(tmp_path / "other" / "toy", graph_labels="3\n-3\n")
    for file in folder.iterdir():
        os.utime(other / file.name, ns=(file.stat().st_mtime_ns,) * 2)
    assert load_tu(other)[1].tolist() == [3, -3]
    assert len(parses) == 3


def test_a_moved_zip_is_recognized(dataset, parses):
    load_tu(dataset)
    load_tu(dataset.rename(dataset.with_name("TOY2.zip")).rename(dataset))
    assert len(parses) == 1


def test_a_new_format_is_another_entry(dataset, parses, monkeypatch):
    load_tu(dataset)
    monkeypatch.setattr(tu, "FORMAT", tu.FORMAT + 1)
    load_tu(dataset)
    assert len(parses) == 2


def test_the_data_folder_is_left_alone(dataset, cache_folder):
    load_tu(dataset)
    assert [p.name for p in dataset.parent.iterdir()] == ["TOY.zip"]
    assert [p.suffix for p in cache_folder.iterdir()] == [".npz"]


# ---------------------------------------------------------------------- damage


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path) -> None:
    """Flip one bit among the neighbors' indices."""
    data = bytearray(path.read_bytes())
    data[data.index(b"neighbors.npy") + 14 + 128 + 4] ^= 1
    path.write_bytes(data)


def foreign_text(path: Path) -> None:
    path.write_text("not yours")


def foreign_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(3))


def pickled(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, header=np.array([{}], dtype=object))


DAMAGES = [truncated, emptied, flipped, foreign_text, foreign_array, pickled]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_rebuilt_silently(dataset, cache_folder, parses, damage):
    graphs, y = load_tu(dataset)
    (entry,) = cache_folder.iterdir()
    damage(entry)
    parses.clear()
    for _ in range(2):
        again, y_again = load_tu(dataset)
        assert_same(graphs, again)
        np.testing.assert_array_equal(y, y_again)
    assert len(parses) == 1


def test_no_flipped_bit_gives_other_graphs(dataset, cache_folder):
    graphs, y = load_tu(dataset)
    (entry,) = cache_folder.iterdir()
    original = entry.read_bytes()
    for i in range(0, len(original), 7):
        data = bytearray(original)
        data[i] ^= 1 << i % 8
        entry.write_bytes(data)
        again, y_again = load_tu(dataset)
        assert_same(graphs, again)
        np.testing.assert_array_equal(y, y_again)


# ---------------------------------------------------------------------- accidents while writing


def test_a_kill_between_write_and_rename(dataset, cache_folder, parses):
    script = (
        "import os, pathlib, sys, fdgnn\n"
        "pathlib.Path.replace = lambda *_: os._exit(9)\n"
        "fdgnn.load_tu(sys.argv[1])\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(dataset)], check=False).returncode == 9
    (left,) = cache_folder.iterdir()
    assert left.suffix == ".part"
    graphs, _ = load_tu(dataset)
    assert_same(graphs, load_tu(dataset)[0])
    assert len(parses) == 1  # here, since the killed process parsed on its own
    assert [path.suffix for path in cache_folder.iterdir()] == [".npz"]


@pytest.mark.parametrize("where", ["savez", "fsync"])
def test_a_full_disk_costs_a_warning(dataset, cache_folder, parses, monkeypatch, where):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np if where == "savez" else os, where, full)
    with pytest.warns(FDGNNWarning, match=r"No space left.*FDGNN_CACHE") as caught:
        graphs, _ = load_tu(dataset, vertex="labels")
    assert [warning.filename for warning in caught] == [__file__]
    assert graphs.n_vertices == TEXTS["graph_indicator"].count("\n")
    assert list(cache_folder.iterdir()) == []
    load_tu(dataset, vertex="none")  # told once: a second warning would be an error
    assert len(parses) == 2


def test_a_cache_that_cannot_be_a_folder(dataset, cache_folder):
    cache_folder.write_text("a file is in the way")
    with pytest.warns(FDGNNWarning, match="cannot be kept"):
        load_tu(dataset)
    load_tu(dataset)


@pytest.mark.usefixtures("no_home")
def test_a_user_without_a_home(dataset, monkeypatch):
    monkeypatch.delenv("FDGNN_CACHE")
    with pytest.warns(FDGNNWarning, match=r"cannot be kept \(there is no home directory\)"):
        load_tu(dataset)
    monkeypatch.setenv("FDGNN_CACHE", "~/nobodys")
    with pytest.raises(ValueError, match="~/nobodys: there is no home directory that ~ could mean"):
        load_tu(dataset)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_cache_one_may_not_write_to(dataset, cache_folder):
    cache_folder.mkdir(mode=0o500)
    with pytest.warns(FDGNNWarning, match="Permission denied"):
        load_tu(dataset)
    load_tu(dataset)
