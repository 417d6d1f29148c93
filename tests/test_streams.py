"""Standard streams that are closed or full, and what lies among files and is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import FDGNNClassifier, read_graphs, save_model
from fdgnn.datasets.files import shard_places
from fdgnn.exceptions import DatasetNotFoundError

pytest.importorskip("rdkit")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, a table with its predictions; one SMILES is wrong, of which RDKit complains."""
    folder = tmp_path_factory.mktemp("streams")
    table = folder / "table.csv"
    table.write_text("smiles,y\n" + "CCO,1\nCCCN,0\nC1CC1,1\nCCCC,0\n" * 5 + "C(C,1\n")
    read = read_graphs(table, target="y")
    model = FDGNNClassifier(n_units=5, random_state=0).fit(read.graphs, read.y)
    save_model(model, folder / "model")
    run = fdgnn("predict", folder / "model", table, "-o", folder / "open.csv")
    assert run.returncode == 0, run.stderr
    return folder


def in_a_shell(folder, words):
    """Run the command with redirections."""
    return subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m fdgnn {words}"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_closed_standard_output_is_told(command, place):
    run = in_a_shell(place, f"{command} model table.csv >&-")
    assert_one_clear_line(run, "standard output is closed", "-o NAME")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_full_standard_output_is_named(command, place):
    run = in_a_shell(place, f"{command} model table.csv > /dev/full")
    assert_one_clear_line(run, "standard output: No space left")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_an_output_that_is_a_device_is_not_taken_for_a_directory(place):
    run = fdgnn("predict", place / "model", place / "table.csv", "-o", "/dev/full")
    assert_one_clear_line(run, "/dev/full: exists and is not a regular file")


def test_a_reader_that_has_seen_enough_ends_the_command_without_a_word(place):
    run = in_a_shell(place, "predict model table.csv --chunk-size 1 -q | head -1")
    assert run.stdout.startswith("row,smiles,prediction")
    assert "Error" not in run.stderr


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_nothing_but_results_is_written_where_standard_streams_are_closed(closed, place):
    assert in_a_shell(place, f"predict model table.csv -o closed.csv {closed}").returncode == 0
    assert (place / "closed.csv").read_bytes() == (place / "open.csv").read_bytes()
    (place / "closed.csv").unlink()


def test_a_full_disk_is_told_with_the_name_of_the_output(place):
    limit = "import resource as r, runpy, sys; r.setrlimit(r.RLIMIT_FSIZE, (100, 100)); "
    run = subprocess.run(
        [sys.executable, "-c", limit + "runpy.run_module('fdgnn', run_name='__main__')",
         "predict", "model", "table.csv", "-o", "full.csv"],
        cwd=place, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert_one_clear_line(run, "full.csv: File too large")
    assert not (place / "full.csv").exists()


# ---------------------------------------------------------------------- what is no file


@pytest.fixture
def shards(place, tmp_path):
    """A folder with one table, and with what has the name of one."""
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / "a.csv").write_bytes((place / "table.csv").read_bytes())
    (folder / "gone.csv").symlink_to("nowhere.csv")
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    (folder / "folder.csv").mkdir()
    (folder / "usual").mkdir()
    return folder


@pytest.mark.parametrize("pattern", ["", "/*", "/*.csv"])
def test_only_files_are_shards(pattern, shards):
    assert shard_places(f"{shards}{pattern}") == [str(shards / "a.csv")]


def test_only_files_of_a_folder_are_read(shards):
    assert read_graphs(shards, target="y").n_rows == 21


@pytest.mark.parametrize("output", ["out.csv", "out/"])
def test_the_command_predicts_the_files_of_such_a_folder(output, shards, place, tmp_path):
    run = fdgnn("predict", place / "model", shards, "-o", f"{tmp_path}/{output}")
    assert run.returncode == 0, run.stderr
    assert "20 of 21 rows predicted" in run.stderr


@pytest.mark.parametrize("name", ["gone.csv", "pipe.csv", "zero.csv"])
def test_names_of_pipes_devices_and_broken_links_are_errors(name, shards):
    with pytest.raises(DatasetNotFoundError, match=rf"{name}: neither a file nor a folder"):
        read_graphs(shards / name)


def test_reasons_of_shards_name_options_of_the_command(place, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("first,second\n1,2\n")
    run = fdgnn("predict", place / "model", tmp_path / "in", "-o", f"{tmp_path}/out/")
    assert run.returncode == 1
    assert "--smiles" in run.stderr
    assert "smiles_column" not in run.stderr
