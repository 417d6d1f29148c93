"""A user's own file: fitted, saved, predicted, explained; and every way to get it wrong."""

from __future__ import annotations

import csv
import json
import os
import shutil

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import FDGNNClassifier, load_model, read_graphs
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.files import check_writable, write_aside
from fdgnn.tasks import infer_task

FAST = ["--model", "paper", "--configurations", "2", "--initializations", "2"]
BROKEN = {
    5: {"edge_index": [[0, 99], [1, 2]], "num_nodes": 3, "kind": "house", "size": 3},
    20: {"edge_index": "nonsense", "num_nodes": 3, "kind": "house", "size": 3},
    41: {"edge_index": [[], []], "num_nodes": 0, "kind": "cycle", "size": 0},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Sixty graphs as JSON lines, three of them broken."""
    graphs, y = make_motif_graphs(60, random_state=0)
    rows = [
        {
            "name": f"g{i}",
            "edge_index": np.asarray(g.edge_index).tolist(),
            "num_nodes": g.n_vertices,
            "kind": ["cycle", "house"][label],
            "size": g.n_vertices + i / 10,
        }
        for i, (g, label) in enumerate(zip(graphs, y.tolist(), strict=True))
    ]
    for i, broken in BROKEN.items():
        rows[i] = {"name": f"g{i}"} | broken
    path = tmp_path_factory.mktemp("own") / "graphs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def fitted(table):
    model = table.with_name("model.fdgnn")
    run = fdgnn("fit", table, "--target", "kind", "--id", "name", "-o", model, "--json", *FAST)
    assert run.returncode == 0, run.stderr
    return model, json.loads(run.stdout), run.stderr


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------- the way it should go


def test_fit_tells_what_one_should_know(fitted):
    model, facts, told = fitted
    assert facts["task"] == "classification"
    assert facts["graphs"] == 57
    (target,) = facts["evaluation"]["targets"]
    (constant,) = [each for each in target["baselines"] if each["name"] == "constant"]
    assert constant["scores"][0]["mean"] == pytest.approx(0.5, abs=0.03)
    assert constant["scores"][0]["mean"] < target["wl_ceiling"] <= 1
    assert 0 <= facts["score"] == target["scores"][0]["mean"] <= target["wl_ceiling"] + 1e-9
    assert "3 of 60 rows rejected" in told
    rejects = read_csv(model.with_name("model.fdgnn.rejects.csv"))
    assert [(int(r["row"]), r["id"]) for r in rejects] == [(5, "g5"), (20, "g20"), (41, "g41")]
    assert model.stat().st_size < 200_000


def test_predict_gives_a_row_for_each_row_in_order(fitted, table, tmp_path):
    copied = shutil.copy(fitted[0], tmp_path / "elsewhere.fdgnn")
    out = tmp_path / "out.csv"
    run = fdgnn("predict", copied, table, "--id", "name", "-o", out)
    assert run.returncode == 0, run.stderr
    rows = read_csv(out)
    assert [row["name"] for row in rows] == [f"g{i}" for i in range(60)]
    assert {i for i, row in enumerate(rows) if row["error"]} == set(BROKEN)
    good = [row for row in rows if not row["error"]]
    model, graphs = load_model(copied), read_graphs(table).graphs
    assert [row["prediction"] for row in good] == model.predict(graphs).tolist()
    scores = [float(row["score"]) for row in good]
    np.testing.assert_allclose(scores, model.decision_function(graphs), rtol=1e-4)
    chances = [[float(row[f"probability_{c}"]) for c in ("cycle", "house")] for row in good]
    np.testing.assert_allclose(chances, model.predict_proba(graphs), rtol=1e-4)


def test_predictions_in_every_format_are_the_same(fitted, table, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    printed = fdgnn("predict", fitted[0], table, "-q").stdout
    by_csv = [row["prediction"] or None for row in csv.DictReader(printed.splitlines())]
    for name in ("p.jsonl", "p.parquet"):
        assert fdgnn("predict", fitted[0], table, "-o", tmp_path / name).returncode == 0
    lines = (tmp_path / "p.jsonl").read_text().splitlines()
    assert [json.loads(line)["prediction"] for line in lines] == by_csv
    frame = pyarrow.read_table(tmp_path / "p.parquet")
    assert frame.column("prediction").to_pylist() == by_csv


def test_standard_input_is_a_file_like_others(fitted, table):
    import subprocess
    import sys

    words = [sys.executable, "-m", "fdgnn", "predict", str(fitted[0]), "-", "--format", "jsonl"]
    run = subprocess.run(words, input=table.read_text(), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == 61


def test_explanations_add_up(fitted, table, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "why.jsonl"
    words = ["--row", 0, "--row", 7, "--row", 5, "--of", "house", "--draw", tmp_path / "pictures"]
    run = fdgnn("explain", fitted[0], table, "-o", out, "--id", "name", *words)
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["g0", "g7"]  # row 5 is broken
    for row in rows:
        assert sum(row["vertices"]) == pytest.approx(row["score"] - row["base_score"], abs=1e-6)
    assert sorted(p.name for p in (tmp_path / "pictures").iterdir()) == [
        "g0.png", "g0.svg", "g7.png", "g7.svg",
    ]  # fmt: skip
    printed = fdgnn("explain", fitted[0], table, "--row", 0, "--json", "--edges", "-q").stdout
    assert json.loads(printed)["row"] == 0
    assert "edge_effects" in json.loads(printed)
    as_csv = fdgnn("explain", fitted[0], table, "--row", 0).stdout.splitlines()
    assert len(as_csv) == 1 + len(rows[0]["vertices"])


def test_regression_is_recognized(table, tmp_path):
    run = fdgnn("fit", table, "--target", "size", "-o", tmp_path / "m.fdgnn", "--json", *FAST)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["task"] == "regression"
    predicted = fdgnn("predict", tmp_path / "m.fdgnn", table, "-q").stdout.splitlines()
    assert predicted[0] == "row,prediction,score,domain_distance,out_of_domain,warning,error"
    assert isinstance(float(predicted[1].split(",")[1]), float)


def test_defaults_without_a_search(table, tmp_path):
    out = tmp_path / "m.fdgnn"
    words = ["--target", "kind", "-o", out, "--model", "paper", "--no-search", "--json"]
    run = fdgnn("fit", table, *words)
    assert run.returncode == 0, run.stderr
    model = load_model(out)
    assert isinstance(model, FDGNNClassifier)
    assert (model.n_layers, len(model.estimators_)) == (3, 3)
    assert {network.alpha for network in model.estimators_} == {1e-3}


def test_molecules_from_smiles(tmp_path):
    pytest.importorskip("rdkit")
    chains = ["C" * n + "O" for n in range(2, 22)] + ["C1" + "C" * n + "C1" for n in range(1, 21)]
    lines = [f"{s},{'ring' if '1' in s else 'chain'}" for s in chains]
    lines[3] = "C1CC,ring"
    data = tmp_path / "molecules.csv"
    data.write_text("SMILES,shape\n" + "\n".join(lines) + "\n")
    model = tmp_path / "m.fdgnn"
    words = ["-o", model, "--json", *FAST]
    run = fdgnn("fit", data, "--target", "shape", *words)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["score"] > 0.9
    new = tmp_path / "new.csv"
    new.write_text("SMILES\nCCCO\n[Xe]\nC1CCC1\n")
    predicted = fdgnn("predict", model, new, "-o", tmp_path / "p.csv")
    assert "[1]" not in predicted.stdout
    rows = read_csv(tmp_path / "p.csv")
    assert [row["prediction"] for row in rows][::2] == ["chain", "ring"]
    assert rows[1]["prediction"]
    assert rows[1]["warning"] == "vertex label Xe was not seen during fit"
    run = fdgnn("fit", data, "--target", "shape", *words, "--handle-unknown", "error", "--force")
    assert run.returncode == 0, run.stderr
    fdgnn("predict", model, new, "-o", tmp_path / "p.csv", "--force")
    rows = read_csv(tmp_path / "p.csv")
    assert [row["prediction"] for row in rows] == ["chain", "", "ring"]
    assert rows[1]["error"].startswith("vertex label Xe was not seen during fit; ")


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.array(["a", "b"]), "classification"),
        (np.array([1, 2, 3]), "classification"),
        (np.array([1.0, 0.0]), "classification"),
        (np.array([0.5, 1.0]), "regression"),
        (np.arange(100), "regression"),
    ],
)
def test_tasks_are_guessed(y, task):
    assert infer_task(y) == task


def test_devices_are_never_replaced_and_links_followed(tmp_path):
    fifo, target, link = tmp_path / "fifo", tmp_path / "target", tmp_path / "link"
    os.mkfifo(fifo)
    with pytest.raises(FileExistsError, match="not a regular file"), write_aside(fifo):
        pass
    with pytest.raises(FileExistsError, match="not a regular file"):
        check_writable(fifo)
    target.write_text("old")
    link.symlink_to(target)
    with write_aside(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_list_of_rejects_that_no_longer_holds_goes(fitted, table, tmp_path):
    out, clean = tmp_path / "p.csv", tmp_path / "clean.jsonl"
    fdgnn("predict", fitted[0], table, "-o", out)
    assert (tmp_path / "p.csv.rejects.csv").exists()
    clean.write_text(table.read_text().splitlines()[0] + "\n")
    run = fdgnn("predict", fitted[0], clean, "-o", out, "--json", "-q", "--force")
    assert json.loads(run.stdout) == {
        "rows": 1, "predicted": 1, "unknown_labels": 0, "out_of_domain": 0, "unanswered": 0,
        "changed": 0, "rejected": 0, "rejects": None, "output": str(out),
    }  # fmt: skip
    assert not (tmp_path / "p.csv.rejects.csv").exists()


def test_looking_at_data_and_models(fitted, table):
    facts = json.loads(fdgnn("datasets", "info", table, "--json").stdout)
    assert facts["n_graphs"] == 57
    assert facts["vertices_min"] <= facts["vertices_mean"] <= facts["vertices_max"]
    assert "57" in fdgnn("datasets", "info", table).stdout
    certified = json.loads(fdgnn("stability", table, "--json").stdout)
    assert certified["certified"]["0.3"] == 57
    assert "57 of 57" in fdgnn("stability", table).stdout
    assert json.loads(fdgnn("model", fitted[0], "--json").stdout)["model"] == "FDGNNClassifier"
    assert "MUTAG" in json.loads(fdgnn("datasets", "--json").stdout)


def test_fit_ends_with_a_page_or_how_to_get_one(fitted, table, tmp_path):
    told = fitted[2]
    assert f"fdgnn report {fitted[0]} --data {table} --target kind -o report.html" in told
    page = tmp_path / "page.html"
    words = ["fit", table, "--target", "kind", "--report", page, "-o", tmp_path / "m.fdgnn", *FAST]
    run = fdgnn(*words)
    assert run.returncode == 0, run.stderr
    assert f"HTML report: {page}" in run.stderr
    assert page.stat().st_size > 500_000
    before = fdgnn(*words[:-3], "-o", tmp_path / "no.fdgnn", "--report", tmp_path / "no" / "p.html")
    assert before.returncode != 0
    assert not (tmp_path / "no.fdgnn").exists()  # told before the work


@pytest.mark.parametrize(
    "command",
    ["fit", "predict", "explain", "evaluate", "compare", "report", "demo", "stability", "model"],
)
def test_every_command_shows_an_example(command):
    assert f"Example: fdgnn {command}" in fdgnn(command, "--help").stdout


# ---------------------------------------------------------------------- the ways to get it wrong


def test_fit_with_bad_words(table, tmp_path):
    out = tmp_path / "m.fdgnn"
    empty, folder = tmp_path / "empty.jsonl", tmp_path / "folder"
    empty.write_text("")
    folder.mkdir()
    cases = [
        (["no-such-file.csv", "--target", "y", "-o", out], "no-such-file.csv"),
        ([table, "--target", "color", "-o", out], "color"),
        ([table, "-o", out], "--target"),
        ([empty, "--target", "y", "-o", out], "empty.jsonl"),
        ([folder, "--target", "y", "-o", out], "folder"),
        ([table, "--target", "kind", "-o", folder], "directory"),
        ([table, "--target", "kind", "-o", tmp_path / "no" / "m.fdgnn"], "no directory"),
        ([table, "--target", "kind", "-o", out, "--task", "regression"], "not a number"),
        ([table, "--target", "kind", "-o", out, "--strict"], "row 5"),
        ([table, "--target", "kind", "-o", out, "--format", "xml"], "xml"),
        ([table, "--target", "kind", "-o", out, "--jobs", "0"], "--jobs 0"),
    ]
    for words, expected in cases:
        assert_one_clear_line(fdgnn("fit", *words), expected)
    assert not out.exists()


def test_predict_with_bad_words(fitted, table, tmp_path):
    truncated = tmp_path / "truncated.fdgnn"
    truncated.write_bytes(fitted[0].read_bytes()[:-50])
    labeled = tmp_path / "labeled.jsonl"
    graphs = make_random_graphs(2, random_state=0)
    labeled.write_text(
        "".join(
            json.dumps({"edge_index": g.edge_index.tolist(), "node_feat": g.labels.tolist()}) + "\n"
            for g in graphs
        )
    )
    cases = [
        (["no-model", table], "no-model"),
        ([truncated, table], "truncated.fdgnn"),
        ([table, table], "graphs.jsonl"),
        ([fitted[0], "no-such-file.csv"], "no-such-file.csv"),
        ([fitted[0], table, "-o", tmp_path / "out.ods"], "out.ods"),
        ([fitted[0], table, "-o", tmp_path / "no" / "out.csv"], "no"),
        ([fitted[0], table, "--id", "color"], "color"),
        ([fitted[0], table, "--strict"], "row 5"),
    ]
    for words, expected in cases:
        assert_one_clear_line(fdgnn("predict", *words), expected)
    assert_one_clear_line(fdgnn("explain", fitted[0], table, "--of", "barn"), "barn")
    assert_one_clear_line(fdgnn("explain", fitted[0], table, "--row", "5"), "row 5")
    assert_one_clear_line(fdgnn("explain", fitted[0], table, "--row", "500"), "from 0 to 59")
    some = fdgnn("explain", fitted[0], table, "--row", "500", "--row", "1", "--row", "-1", "-q")
    assert_one_clear_line(some, "--row -1, 500: there is no such row; rows are counted from 0")
    assert some.stdout.splitlines()[1].startswith("1,")  # the others are explained
    assert_one_clear_line(fdgnn("explain", fitted[0], table, "--edges"), "jsonl")
    assert_one_clear_line(fdgnn("predict", fitted[0], table, "-o", table), "the input")
    strange = tmp_path / "strange.csv"
    strange.write_bytes("smiles,y\nCCO,1\n".encode("utf-16"))
    assert_one_clear_line(fdgnn("predict", fitted[0], strange), "UTF-8")
    hopeless = tmp_path / "hopeless.jsonl"
    hopeless.write_text('{"edge_index": 5}\n')
    assert_one_clear_line(fdgnn("predict", fitted[0], hopeless, "-q"), "none of the 1 rows")


def test_no_command_overwrites_its_inputs_or_another_output(fitted, table, tmp_path):
    model, same = fitted[0], tmp_path / "same.csv"
    before = model.read_bytes()
    twice = fdgnn("predict", model, table, "-o", same, "--rejects", same)
    assert_one_clear_line(twice, "two outputs have this name")
    lost = fdgnn("predict", model, table, "-o", same, "--rejects", model, "--force")
    assert_one_clear_line(lost, "this is the input")
    assert_one_clear_line(fdgnn("report", model, "-o", model, "--force"), "this is the input")
    absent = fdgnn("explain", model, table, "--row", "500", "-o", same)
    assert_one_clear_line(absent, "there is no such row")
    assert model.read_bytes() == before
    assert not same.exists()
