"""`fdgnn predict --coverage`: sets, intervals and graphs unlike those of training, row by row."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import (
    GraphClassifier,
    GraphRegressor,
    WLCounts,
    load_model,
    read_graphs,
    save_model,
)
from fdgnn.datasets import make_cycles, make_motif_graphs

GRAPHS, Y = make_motif_graphs(150, random_state=0)
NOISY = np.where(np.random.default_rng(0).random(150) < 0.2, 1 - Y, Y)


def write_graphs(path, graphs):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["edge_index", "num_nodes"])
        for graph in graphs:
            edges = json.dumps(np.asarray(graph.edge_index).tolist())
            writer.writerow([edges, graph.n_vertices])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of classes and of numbers, and a file with two strange graphs at its end."""
    where = tmp_path_factory.mktemp("trust")
    write_graphs(where / "training.csv", GRAPHS)
    graphs = read_graphs(where / "training.csv").graphs
    encoder = WLCounts(n_iterations=1)
    names = np.array(["no", "yes"])[NOISY]
    models = {
        "classes": GraphClassifier(encoder, probability=True).fit(graphs, names),
        "numbers": GraphRegressor(encoder, intervals=True).fit(graphs, NOISY * 1.0),
        "plain": GraphClassifier(encoder).fit(graphs, names),
    }
    for name, model in models.items():
        save_model(model, where / f"{name}.fdgnn")
    write_graphs(where / "new.csv", [*GRAPHS[:20], *make_cycles([50, 80])])
    return where


def predicted(folder, model, *options):
    result = fdgnn("predict", folder / f"{model}.fdgnn", folder / "new.csv", *options)
    assert result.returncode == 0, result.stderr
    return list(csv.DictReader(result.stdout.splitlines())), result.stderr


@pytest.mark.parametrize("by_class", [False, True])
def test_sets_are_those_of_the_model(folder, by_class):
    rows, _ = predicted(folder, "classes", "--coverage", 0.9, *["--by-class"][: int(by_class)])
    model, graphs = load_model(folder / "classes.fdgnn"), read_graphs(folder / "new.csv").graphs
    sets = model.predict_set(graphs, 0.9, by_class=by_class)
    expected = ["|".join(model.classes_[row]) or "none" for row in sets]
    assert [row["set"] for row in rows] == expected
    assert {"no", "yes", "no|yes"} >= set(expected) >= {"no|yes"}


def test_a_set_without_classes_is_told(folder):
    rows, _ = predicted(folder, "classes", "--coverage", 0.3)
    assert "none" in {row["set"] for row in rows}


def test_intervals_are_those_of_the_model(folder):
    rows, _ = predicted(folder, "numbers", "--coverage", 0.8)
    model, graphs = load_model(folder / "numbers.fdgnn"), read_graphs(folder / "new.csv").graphs
    found = np.array([[float(row["low"]), float(row["high"])] for row in rows])
    np.testing.assert_allclose(found, model.predict_interval(graphs, 0.8), rtol=1e-4)


def test_what_is_unlike_the_training_graphs_is_told_row_by_row_and_in_one_line(folder):
    rows, told = predicted(folder, "plain")
    model, graphs = load_model(folder / "plain.fdgnn"), read_graphs(folder / "new.csv").graphs
    distances = [float(row["domain_distance"]) for row in rows]
    np.testing.assert_allclose(distances, model.domain_distance(graphs), rtol=1e-4)
    assert {
        g: row["out_of_domain"] for g, row in enumerate(rows) if row["out_of_domain"]
    } == model.out_of_domain(graphs)
    assert list(model.out_of_domain(graphs)) == [20, 21]
    assert "2 of these 22 rows are out of domain; the column 'out_of_domain' has" in told
    assert "set" not in rows[0]


def test_one_row_that_is_unlike_is_told_in_the_singular(folder, tmp_path):
    lines = (folder / "new.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "new.csv").write_text("".join(lines[:22]), encoding="utf-8")
    out = ("-o", tmp_path / "p.csv")
    run = fdgnn("predict", folder / "plain.fdgnn", tmp_path / "new.csv", *out)
    assert "1 of these 21 rows is out of domain" in run.stderr


def test_json_lines_and_the_summary(folder, tmp_path):
    path = tmp_path / "out.jsonl"
    arguments = ("numbers.fdgnn", "new.csv", "--coverage", 0.9, "-o", path, "--json")
    result = fdgnn(
        "predict", *(folder / a if str(a)[:3] in ("num", "new") else a for a in arguments)
    )
    assert json.loads(result.stdout)["out_of_domain"] == 2
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(row["low"] < row["prediction"] < row["high"] for row in rows)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("classes", ["--coverage", "1"], "--coverage: expected a share between 0 and 1"),
        ("classes", ["--coverage", "-0.2"], "--coverage: expected a share between 0 and 1"),
        (
            "classes",
            ["--coverage", "0.999"],
            "150 held-out graphs are too few for a coverage of",
        ),
        ("plain", ["--coverage", "0.9"], "the model has no conformal scores: fit it with"),
        ("classes", ["--by-class"], "it needs --coverage"),
        ("numbers", ["--by-class", "--coverage", "0.9"], "--by-class is for sets of classes"),
    ],
)
def test_bad_wishes_are_one_clear_line_and_write_nothing(folder, tmp_path, model, options, words):
    output = tmp_path / "out.csv"
    files = folder / f"{model}.fdgnn", folder / "new.csv"
    result = fdgnn("predict", *files, "-o", output, *options)
    assert_one_clear_line(result, words)
    assert not output.exists()


def test_a_model_file_says_what_it_has(folder):
    known = "yes, by conformal scores of 150 out-of-fold predictions"
    assert f"sets         {known}" in _model(folder, "classes")
    assert f"intervals    {known}" in _model(folder, "numbers")
    assert "no: the file has no conformal scores" in _model(folder, "plain")


def _model(folder, name):
    return fdgnn("model", folder / f"{name}.fdgnn").stdout


def test_fit_keeps_what_sets_and_intervals_need(tmp_path):
    for target, parameter in ((NOISY, "probability"), (NOISY + 0.5, "intervals")):
        path = tmp_path / "training.csv"
        write_graphs(path, GRAPHS)
        lines = path.read_text().splitlines()
        values = ["y", *map(str, target)]
        path.write_text("".join(f"{a},{b}\n" for a, b in zip(lines, values, strict=True)))
        model = tmp_path / f"{parameter}.fdgnn"
        result = fdgnn("fit", path, "--model", "paper", "--no-search", "-o", model, "--target", "y")
        assert result.returncode == 0, result.stderr
        assert getattr(load_model(model), parameter)
        assert len(np.concatenate(load_model(model).targets_[0].scores.groups)) == 150
