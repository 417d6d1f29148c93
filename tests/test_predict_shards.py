"""Directories of shards: resumable, in order, and as plain `predict` writes them."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import GraphClassifier, save_model
from fdgnn.prediction import predictor
from model_file_tools import memory_below

pytest.importorskip("rdkit")

SMILES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "C1CC", "CCCl", "CCBr", "OCCO", "CC#N", "C=C"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    good = [smiles for smiles in SMILES if smiles != "C1CC"] * 3
    y = np.array(["no", "yes"])[np.arange(len(good)) % 2]
    fitted = GraphClassifier(probability=True).fit(good, y)
    path = tmp_path_factory.mktemp("model") / "m.fdgnn"
    save_model(fitted, path)
    other = path.with_name("other.fdgnn")
    save_model(GraphClassifier().fit(good, y), other)
    return path


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name, n in (("a", 7), ("b", 5), ("c", 9)):
        rows = [SMILES[i % len(SMILES)] for i in range(n)]
        (folder / f"{name}.csv").write_text("smiles\n" + "".join(f"{row}\n" for row in rows))
    return folder


def plain(model, source, output, *more):
    run = fdgnn("predict", model, source, "-o", output, "-q", "--force", *more)
    assert run.returncode == 0, run.stderr
    return Path(output).read_bytes()


def assert_all_there(model, data, out, tmp_path):
    for source in data.glob("*.csv"):
        expected = plain(model, source, tmp_path / "plain.csv")
        assert (out / source.name).read_bytes() == expected


# ---------------------------------------------------------------------- shards


@pytest.mark.parametrize("given", ["in", "in/*.csv"])
def test_each_file_becomes_one_as_plain_predict_writes_it(model, data, tmp_path, given):
    out = tmp_path / "out"
    run = fdgnn("predict", model, tmp_path / given, "-o", f"{out}/", "--json")
    assert run.returncode == 0, run.stderr
    assert_all_there(model, data, out, tmp_path)
    summary = json.loads(run.stdout)
    assert (summary["shards"], summary["rows"], summary["rejected"]) == (3, 21, 3)
    assert "a.csv, row 4: the SMILES 'C1CC'" in run.stderr
    listed = list(csv.DictReader((out / "rejects" / "c.csv.rejects.csv").read_text().splitlines()))
    assert [row["row"] for row in listed] == ["4"]
    again = fdgnn("predict", model, tmp_path / given, "-o", f"{out}/", "--json")
    assert "3 of 3 shards were finished before" in again.stderr
    assert json.loads(again.stdout) == summary


def test_a_changed_input_is_predicted_again_and_another_model_is_noticed(model, data, tmp_path):
    out = tmp_path / "out"
    assert fdgnn("predict", model, data, "-o", out, "-q").returncode == 0
    (data / "b.csv").write_text("smiles\nCCO\nOCC\n")
    (out / "c.csv").unlink()
    run = fdgnn("predict", model, data, "-o", out)
    assert "1 of 3 shards was finished before" in run.stderr
    assert_all_there(model, data, out, tmp_path)
    other = model.with_name("other.fdgnn")
    run = fdgnn("predict", other, data, "-o", out)
    assert_one_clear_line(run, "another model", "--force")
    assert_all_there(model, data, out, tmp_path)
    assert fdgnn("predict", other, data, "-o", out, "-q", "--force").returncode == 0
    assert_all_there(other, data, out, tmp_path)


def test_a_directory_is_resumed_by_another_name_of_it(model, data, tmp_path, monkeypatch):
    assert fdgnn("predict", model, data, "-o", tmp_path / "out", "-q").returncode == 0
    monkeypatch.chdir(tmp_path)
    assert "3 of 3 shards were finished" in fdgnn("predict", model, "in", "-o", "out").stderr


def test_bad_shards_do_not_stop_the_others(model, data, tmp_path):
    out = tmp_path / "out"
    (data / "d.csv").write_text("name,weight\nx,1\n")
    (data / "e.parquet").write_bytes(b"PAR1 nothing")
    names = [*sorted(map(str, data.iterdir())), data / "gone.csv"]
    run = fdgnn("predict", model, *names, "-o", out, "-q")  # errors are told all the same
    assert_one_clear_line(run, "3 of 6 shards cannot be predicted", "the others are finished")
    assert "its columns are name, weight; name the column with SMILES by" in run.stderr
    for name in ("d.csv", "e.parquet", "gone.csv"):
        assert name in run.stderr
        assert not (out / name).exists()
    assert_all_there(model, data=_without(data, "d.csv"), out=out, tmp_path=tmp_path)
    (data / "e.parquet").unlink()
    assert "3 of 3 shards were finished" in fdgnn("predict", model, data, "-o", out).stderr


def test_nothing_is_said_of_other_shards_where_there_are_none(model, tmp_path):
    run = fdgnn("predict", model, tmp_path / "gone.csv", "-o", f"{tmp_path}/out/", "-q")
    assert_one_clear_line(run, "1 of 1 shard cannot be predicted", "a repeated command tries again")
    assert "others" not in run.stderr


def _without(folder, name):
    (folder / name).unlink()
    return folder


def test_a_full_disk_stops_at_once_and_keeps_what_is_finished(model, data, tmp_path, monkeypatch):
    out, real = tmp_path / "out", predictor.files.write_place

    def full(place):
        if place.endswith("b.csv"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)
        return real(place)

    monkeypatch.setattr(predictor.files, "write_place", full)
    assert_one_clear_line(fdgnn("predict", model, data, "-o", out), "No space left on device")
    assert sorted(each.name for each in out.glob("*.csv")) == ["a.csv"]
    monkeypatch.undo()
    assert "1 of 3 shards was finished" in fdgnn("predict", model, data, "-o", out).stderr
    assert_all_there(model, data, out, tmp_path)


def test_formats_names_that_collide_and_options_that_need_a_directory(model, data, tmp_path):
    out = tmp_path / "out"
    run = fdgnn("predict", model, data, "-o", out, "--shard-format", "parquet", "-q", "-j", 2)
    assert run.returncode == 0, run.stderr
    table = pq.read_table(out / "a.parquet")
    rows = list(
        csv.DictReader(plain(model, data / "a.csv", tmp_path / "p.csv").decode().split("\n"))
    )
    assert table.column("prediction").to_pylist() == [row["prediction"] or None for row in rows]
    assert table.column("error").to_pylist()[4].startswith("the SMILES 'C1CC'")
    twin = tmp_path / "a.csv"
    twin.write_text("smiles\nCC\n")
    run = fdgnn("predict", model, twin, data, "-o", tmp_path / "more")
    assert_one_clear_line(run, "would both be written")
    for words in (["--cluster", "tcp://127.0.0.1:1"], [data / "b.csv"]):
        run = fdgnn("predict", model, data / "a.csv", *words, "-o", tmp_path / "x.csv")
        assert_one_clear_line(run, "need a directory as output")
    assert_one_clear_line(fdgnn("predict", model, f"{data}/*.smi", "-o", out), "no file has such")
    assert_one_clear_line(fdgnn("predict", model, data, "-o", data), "would be overwritten")


def test_any_file_system_of_fsspec(model, data, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for source in data.iterdir():
        system.pipe_file(f"/in/{source.name}", source.read_bytes())
    try:
        for given in ("memory://in/*.csv", "memory://in"):
            run = fdgnn("predict", model, given, "-o", "memory://out/")
            assert run.returncode == 0, run.stderr
        assert "3 of 3 shards were finished before" in run.stderr
        expected = plain(model, data / "c.csv", tmp_path / "plain.csv")
        assert system.cat_file("/out/c.csv") == expected
        assert not [each for each in system.find("/out") if each.endswith(".part")]
        run = fdgnn("predict", model, "memory://in/c.csv", "-o", "memory://one/c.csv", "-q")
        assert run.returncode == 0, run.stderr
        assert system.cat_file("/one/c.csv") == expected
        assert_one_clear_line(fdgnn("predict", model, "nowhere://x/*.csv", "-o", "o/"), "nowhere")
    finally:
        system.rm("/", recursive=True)


# ---------------------------------------------------------------------- a cluster


def test_an_address_that_nobody_answers_at(model, data, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("fdgnn.context.SECONDS_TO_ANSWER", 0.3)
    run = fdgnn("predict", model, data, "-o", tmp_path / "out", "--cluster", "tcp://127.0.0.1:9")
    assert_one_clear_line(run, "no Dask scheduler with workers answers at tcp://127.0.0.1:9")


@pytest.mark.xdist_group("dask")
def test_workers_read_and_write_and_one_may_be_lost(model, data, tmp_path):
    distributed = pytest.importorskip("distributed")
    deadly = tmp_path / "in" / "b.csv"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        with distributed.Client(cluster.scheduler_address) as client:
            client.run(_die_once, str(deadly), str(tmp_path / "died"))
        address = cluster.scheduler_address
        run = fdgnn("predict", model, data, "-o", tmp_path / "out", "--cluster", address)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "died").exists()
    assert_all_there(model, data, tmp_path / "out", tmp_path)


def _die_once(source, mark):
    """Let the first worker that stamps this file be killed."""
    from fdgnn import files

    real = files.stamp_of

    def stamp(place):
        if place == source and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return real(place)

    files.stamp_of = stamp


# ---------------------------------------------------------------------- one large file


@pytest.mark.parametrize("to", ["file", "directory"])
def test_memory_does_not_grow_with_rejected_rows(model, tmp_path, to):
    """Each rejected row was kept until the end, at 400 bytes."""
    source, n = tmp_path / "in.csv", 60_000
    source.write_text("smiles\nCCO\n" + "\n" * n + "CCN\n")
    out = tmp_path / "out.csv" if to == "file" else f"{tmp_path}/out/"
    words = ("predict", model, source, "-o", out, "--chunk-size", 500, "--json")
    short = tmp_path / "short.csv"
    short.write_text("smiles\nCCO\n\nCCN\n")
    assert fdgnn("predict", model, short, "-o", tmp_path / "short.out.csv").returncode == 0
    with memory_below(12 * 2**20):
        run = fdgnn(*words)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["rejected"] == n
    assert f"{n} of {n + 2} rows rejected" in run.stderr
    place = "out.csv.rejects.csv" if to == "file" else "out/rejects/in.csv.rejects.csv"
    lines = (tmp_path / place).read_text().splitlines()
    assert lines[:2] == ["row,id,reason", "1,1,line is blank"]
    assert (len(lines), lines[-1]) == (n + 1, f"{n},{n},line is blank")
