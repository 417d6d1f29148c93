"""Archives from strangers, and files that appear whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import random
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from fdgnn import load_tu
from fdgnn.arrays import read_arrays
from fdgnn.datasets import files
from fdgnn.exceptions import DatasetError, DatasetFormatError, UnsafeArchiveError
from fdgnn.files import write_aside
from tu_files import TEXTS, write_folder, write_zip

# The small TU dataset has attributes beside labels.
pytestmark = pytest.mark.filterwarnings("ignore:.*attributes of vertices are not used")


@pytest.mark.parametrize(
    "member",
    ["../evil.txt", "TOY/../../evil.txt", "/etc/evil.txt", "C:/evil.txt", "TOY\\..\\..\\evil.txt"],
)
def test_members_that_leave_the_folder(tmp_path, member):
    path = write_zip(tmp_path / "toy.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, "evil")
    with pytest.raises(UnsafeArchiveError, match=r"evil.*leads out of the archive's folder"):
        load_tu(path)


def test_dots_in_names_are_no_crime(tmp_path):
    path = write_zip(tmp_path / "toy.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("TOY/notes..txt", "fine")
        archive.writestr("__MACOSX/TOY/._TOY_A.txt", "what Finder adds")
    load_tu(path)


def test_a_bomb_by_its_ratio(tmp_path):
    path = write_zip(tmp_path / "toy.zip", node_labels="0\n" * (40 << 20))
    assert path.stat().st_size < 200_000
    with pytest.raises(UnsafeArchiveError, match=r"unpacks to 0.1 GB or more, \d{3,} times"):
        load_tu(path)


def test_a_bomb_by_its_size(tmp_path, monkeypatch):
    path = write_zip(tmp_path / "toy.zip")
    monkeypatch.setenv("FDGNN_MAX_UNPACKED_BYTES", "100")
    with pytest.raises(UnsafeArchiveError, match="unpack it and load the folder"):
        load_tu(path)


@pytest.mark.parametrize("declared", [10, 10_000])
def test_a_zip_that_lies_about_sizes(tmp_path, declared):
    path = write_zip(tmp_path / "toy.zip")
    data = bytearray(path.read_bytes())
    size = struct.pack("<L", len(TEXTS["A"]))
    start = data.index(b"PK\x01\x02")  # the first entry of the directory is the arcs'
    assert data[start + 24 : start + 28] == size
    data[start + 24 : start + 28] = struct.pack("<L", declared)
    path.write_bytes(data)
    with pytest.raises(DatasetFormatError, match=r"TOY_A.txt"):
        load_tu(path)


def test_no_zip_at_all(tmp_path):
    (tmp_path / "toy.zip").write_bytes(b"<html>404</html>")
    with pytest.raises(DatasetFormatError, match=r"toy.zip: cannot be read.*get it again"):
        load_tu(tmp_path / "toy.zip")


def test_a_zip_with_names_in_no_alphabet(tmp_path):
    path = write_zip(tmp_path / "toy.zip", name="TÖY")
    path.write_bytes(path.read_bytes().replace("Ö".encode(), b"\xff\xff"))
    with pytest.raises(DatasetFormatError, match=r"toy.zip: cannot be read"):
        load_tu(path)


def test_a_damaged_zip_is_an_error_or_harmless(tmp_path):
    """Whatever byte flips, and wherever the file ends: no other exception, no other graphs."""
    original = write_zip(tmp_path / "toy.zip").read_bytes()
    good, y = load_tu(tmp_path / "toy.zip", vertex="labels")
    rng = random.Random(0)
    outcomes = {"refused": 0, "harmless": 0}
    for i in range(1500):
        data = bytearray(original)
        if i % 5 == 0:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path = tmp_path / "damaged.zip"
        path.write_bytes(data)
        try:
            graphs, classes = load_tu(path, vertex="labels")
        except DatasetError:
            outcomes["refused"] += 1
            continue
        outcomes["harmless"] += 1
        assert (graphs.n_vertices, graphs.n_arcs) == (good.n_vertices, good.n_arcs)
        # A damaged name hides an optional file, which is then as good as missing.
        assert graphs.labels is None or graphs.labels.tolist() == good.labels.tolist()
        assert classes.tolist() == y.tolist()
    assert min(outcomes.values()) > 100


def test_nothing_is_unpacked(tmp_path):
    folder = tmp_path / "data"
    load_tu(write_zip(folder / "toy.zip"))
    assert [path.name for path in folder.iterdir()] == ["toy.zip"]


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    with files.open_dataset(write_folder(tmp_path)) as found:
        (tmp_path / "TOY_A.txt").write_text("1, 2\n")
        with pytest.raises(DatasetFormatError, match="5 bytes were read"):
            list(found["A"].blocks())


# ---------------------------------------------------------------------- writing aside


def test_a_file_appears_when_complete(tmp_path):
    path = tmp_path / "new" / "file"
    with write_aside(path) as file:
        file.write(b"all of it")
        assert not path.exists()
    assert path.read_bytes() == b"all of it"
    assert list(path.parent.iterdir()) == [path]


def test_failure_leaves_the_old_file_and_no_trace(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with write_aside(path) as file:
            file.write(b"half of")
            raise io.UnsupportedOperation

    with pytest.raises(io.UnsupportedOperation):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    script = (
        "import os, pathlib, sys\n"
        "from fdgnn.files import write_aside\n"
        "with write_aside(pathlib.Path(sys.argv[1])) as file:\n"
        "    file.write(b'all of it'); file.flush(); os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 9
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir() if p != path] == [".file.part"]
    with write_aside(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "file"
    with write_aside(path) as first:
        first.write(b"first")
        with write_aside(path) as second:
            second.write(b"second, and longer")
        assert path.read_bytes() == b"second, and longer"
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def _link(part, victim):
    part.symlink_to(victim)


def _second_name(part, victim):
    part.hardlink_to(victim)


def _pipe(part, victim):
    os.mkfifo(part)


def _folder(part, victim):
    part.mkdir()


@pytest.mark.parametrize("plant", [_link, _second_name, _pipe, _folder])
def test_what_a_stranger_puts_beside_a_file_is_not_written(plant, tmp_path):
    path, victim, part = tmp_path / "file", tmp_path / "victim", tmp_path / ".file.part"
    victim.write_bytes(b"mine")
    plant(part, victim)
    with write_aside(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert victim.read_bytes() == b"mine"
    assert os.path.lexists(part)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_is_told_with_the_name_of_the_file(number, tmp_path):
    with (
        pytest.raises(OSError, match="what the system says") as caught,
        write_aside(tmp_path / "file"),
    ):
        raise OSError(number, "what the system says")
    assert caught.value.filename == str(tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_every_bit_of_a_kept_array_counts(tmp_path):
    """Damage is an error, or it changes nothing that is read."""
    path = tmp_path / "arrays.npz"
    np.savez(path, a=np.arange(4), b=np.array(["x"]))
    whole, plain = path.read_bytes(), {"a": np.arange(4), "b": np.array(["x"])}
    n_refused = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            found = read_arrays(path)
        except ValueError:
            n_refused += 1
            continue
        assert list(found) == list(plain)
        for name, array in plain.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)
    assert n_refused > 0.6 * len(whole)
    for damaged in (b"", whole[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="not a zip file"):
            read_arrays(path)
    path.write_bytes(whole)
    assert list(read_arrays(path, "b".__eq__)) == ["b"]
    with pytest.raises(ValueError, match="No such file"):
        read_arrays(tmp_path / "none")
