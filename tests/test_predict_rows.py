"""Rows that are predicted by several processes, or as they come from a pipe."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest

from commands import fdgnn
from fdgnn import FDGNNClassifier, GraphClassifier, iter_graphs, save_model
from fdgnn.exceptions import DatasetFormatError
from fdgnn.prediction.predictor import Predictor, predict_rows

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
    with pytest.raises(DatasetFormatError, match=r"new.csv, row 4: the SMILES 'C1CC'"):
        list(predict_rows(predictor, tables(strict=True), 2))


def test_many_chunks_of_two_processes_keep_their_order(model, files):
    def tables():
        return iter_graphs(files / "new.csv", like=model, chunk_size=2)

    found = list(predict_rows(Predictor(model), tables(), 2))
    assert len(found) == 13
    assert found == list(predict_rows(Predictor(model), tables(), 1))


def test_few_rows_and_other_graphs_start_no_process(model, files, monkeypatch):
    monkeypatch.setattr("fdgnn.workers.WorkerPool", None)
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
    with pytest.raises(DatasetFormatError, match="no rows"):
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
    words = ["predict", str(files / "m.fdgnn"), "-", "--chunk-size", "1", "--json", "-q", "-j", "2"]
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
