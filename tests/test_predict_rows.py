"""Rows that are predicted by several processes, or as they come from a pipe."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from commands import fdgnn
from fdgnn import FDGNNClassifier, GraphClassifier, iter_graphs, save_model
from fdgnn.exceptions import DatasetFormatError
from fdgnn.prediction.predictor import Predictor, in_order, predict_rows

pytest.importorskip("rdkit")

SMILES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "C1CC", "CCCl", "CCBr", "OCCO", "CC#N", "C=C"]
N_ROWS = 25


@pytest.fixture(scope="module")
def model():
    good = [smiles for smiles in SMILES if smiles != "C1CC"] * 3
    y = np.array(["no", "yes"])[np.arange(len(good)) % 2]
    return GraphClassifier(probability=True).fit(good, y)


@pytest.fixture(scope="module")
def files(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    save_model(model, folder / "m.fdgnn")
    rows = [SMILES[i % len(SMILES)] for i in range(N_ROWS)]
    (folder / "new.csv").write_text("smiles\n" + "".join(f"{row}\n" for row in rows))
    return folder


# ---------------------------------------------------------------------- results in order


def test_results_keep_the_order_of_items_whichever_ends_first():
    later = Event()

    def work(i):
        if i == 0:
            assert later.wait(60)
        elif i == 1:
            later.set()
        return i

    with ThreadPoolExecutor(2) as pool:
        found = list(in_order(lambda i: pool.submit(work, i), range(20), 4))
    assert found == list(range(20))


def done(item):
    future = Future()
    future.set_result(item)
    return future


def test_few_items_are_taken_ahead():
    taken = []

    def items():
        for i in range(100):
            taken.append(i)
            yield i

    results = in_order(done, items(), 3)
    assert next(results) == 0
    time.sleep(0.05)  # however long: the thread that takes items has to wait
    assert len(taken) <= 6
    assert list(results) == list(range(1, 100))


def test_a_result_does_not_wait_for_the_next_item():
    asked = Event()

    def items():
        yield "first"
        assert asked.wait(60)
        yield "second"

    results = in_order(done, items(), 4)
    assert next(results) == "first"
    asked.set()
    assert list(results) == ["second"]


def test_errors_of_the_items_and_of_the_work_are_raised():
    def items():
        yield 1
        raise DatasetFormatError("the file ends here")

    results = in_order(done, items(), 4)
    assert next(results) == 1
    with pytest.raises(DatasetFormatError, match="ends here"):
        next(results)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        list(in_order(lambda i: pool.submit(lambda: 1 // i), [1, 0, 1], 2))


# ---------------------------------------------------------------------- processes


def test_two_processes_predict_as_one_does(model, files):
    def tables(**options):
        return iter_graphs(files / "new.csv", like=model, chunk_size=10, **options)

    predictor = Predictor(model)
    expected = list(predict_rows(predictor, tables(), 1))
    found = list(predict_rows(predictor, tables(), 2))
    assert found == expected
    assert [len(rows) for rows in found] == [10, 10, 5]
    assert [reject.row for rows in found for reject in rows.rejects] == [4, 14, 24]
    with pytest.raises(DatasetFormatError, match=r"new.csv, row 4: its SMILES 'C1CC'"):
        list(predict_rows(predictor, tables(strict=True), 2))


def test_few_rows_and_other_graphs_start_no_process(model, files, monkeypatch):
    monkeypatch.setattr("fdgnn.prediction.predictor.WorkerPool", None)
    few = iter_graphs(files / "new.csv", like=model, chunk_size=100)
    (rows,) = predict_rows(Predictor(model), few, 2)
    assert len(rows) == N_ROWS
    row = {"edge_index": [[0], [1]], "node_feat": ["a", "b"]}
    lines = io.StringIO("".join(json.dumps(row) + "\n" for _ in range(6)))
    y = np.arange(6) % 2
    of_graphs = FDGNNClassifier(random_state=0)
    of_graphs.fit(next(iter_graphs(lines)).graphs, y)
    lines.seek(0)
    some = predict_rows(Predictor(of_graphs), iter_graphs(lines, like=of_graphs, chunk_size=2), 2)
    assert [len(rows) for rows in some] == [2, 2, 2]
    empty = iter_graphs(io.StringIO("smiles\n"), like=model)
    with pytest.raises(DatasetFormatError, match="it has no rows"):
        list(predict_rows(Predictor(model), empty, 2))


# ---------------------------------------------------------------------- the command


def test_json_prints_an_object_per_row(files):
    run = fdgnn("predict", files / "m.fdgnn", files / "new.csv", "--json", "-q")
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    as_csv = fdgnn("predict", files / "m.fdgnn", files / "new.csv", "-q").stdout
    texts = list(csv.DictReader(io.StringIO(as_csv)))
    assert len(rows) == len(texts) == N_ROWS
    for row, text in zip(rows, texts, strict=True):
        assert {k: "" if v is None else str(v) for k, v in row.items()} == text


@pytest.mark.parametrize("lines", [["smiles\nCCO\n", "CCN\n"], ['{"smiles": "CCO"}\n'] * 2])
def test_rows_of_a_pipe_are_written_as_they_come(files, lines):
    words = ["predict", str(files / "m.fdgnn"), "-", "--chunk-size", "1", "--json", "-q"]
    with subprocess.Popen(
        [sys.executable, "-m", "fdgnn", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        for number, line in enumerate(lines):
            run.stdin.write(line)
            run.stdin.flush()
            # The pipe stays open: if the row waited for others, this would never end.
            assert json.loads(run.stdout.readline())["row"] == number
        run.stdin.close()
        assert run.stdout.read() == ""
    assert run.returncode == 0
