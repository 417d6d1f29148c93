"""Several targets in files and commands: read, fitted, predicted in one table, explained."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import load_model, model_info, read_graphs
from fdgnn.datasets import make_random_graphs
from fdgnn.exceptions import DatasetFormatError
from fdgnn.tasks import table_targets

N = 60
GRAPHS = make_random_graphs(N, random_state=0)
ZEROS = np.bincount(GRAPHS.graph_of_vertex, GRAPHS.labels == 0)
SIZES = np.diff(GRAPHS.vertex_offsets)
COLUMNS = {
    "active": np.where(ZEROS > 4, "yes", "no").tolist(),
    "level": (SIZES % 3).tolist(),
    "weight": (ZEROS * 1.37 + 0.5).tolist(),
    "length": (SIZES * 2.11).tolist(),
}


def table(path, **changes):
    """Graphs with four targets, of which some cells are empty; row 5 has none at all."""
    rng = np.random.default_rng(0)
    columns = {
        name: ["" if i == 5 or rng.random() < 0.15 else value for i, value in enumerate(values)]
        for name, values in COLUMNS.items()
    } | changes
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["edge_index", "node_feat", *columns])
        for i, graph in enumerate(GRAPHS):
            edges = json.dumps(np.asarray(graph.edge_index).tolist())
            row = [edges, json.dumps(graph.labels.tolist())]
            writer.writerow(row + [values[i] for values in columns.values()])
    return path


# ---------------------------------------------------------------------- reading


def test_columns_of_several_targets_are_a_table_with_empty_cells(tmp_path):
    path = table(tmp_path / "a.csv")
    found = read_graphs(path, target=["active", "level"])
    assert found.targets == ("active", "level")
    assert found.y.shape == (len(found.graphs), 2)
    assert {type(value) for value in found.y[:, 1]} == {int, type(None)}
    assert set(found.y[:, 0]) == {"yes", "no", None}
    assert 5 in [bad.row for bad in found.rejects]
    assert {bad.reason for bad in found.rejects} == {"all targets are missing"}
    graphs, several = table_targets(found)
    assert len(graphs) == len(several)
    assert [each.tolist() for each in several.classes] == [["no", "yes"], [0, 1, 2]]


def test_one_name_is_one_target_as_before(tmp_path):
    path = table(tmp_path / "a.csv")
    found = read_graphs(path, target="weight")
    assert found.targets == ()
    assert found.y.dtype == np.float64


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["active", "levle"], "no column 'levle' for `target`; did you mean 'level'?"),
        (["active", "active"], "`target` names 'active' twice"),
    ],
)
def test_names_that_cannot_be_are_one_line(target, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_graphs(table(tmp_path / "a.csv"), target=target)


def test_a_target_is_no_descriptor(tmp_path):
    with pytest.raises(ValueError, match="'level' is a target and one of the `descriptors`"):
        read_graphs(table(tmp_path / "a.csv"), target="level", descriptors=["level"])


def test_targets_of_two_kinds_are_told(tmp_path):
    found = read_graphs(table(tmp_path / "a.csv"), target=["active", "weight"])
    with pytest.raises(
        DatasetFormatError, match="'active' is a classification target and 'weight' a regression"
    ):
        table_targets(found)
    numbers = read_graphs(table(tmp_path / "a.csv"), target=["level", "weight"])
    assert table_targets(numbers, "regression")[1].classes is None


def test_rows_with_text_instead_of_numbers_are_bad_rows(tmp_path):
    weights = [*COLUMNS["weight"]]
    weights[3] = "heavy"
    path = table(tmp_path / "a.csv", weight=weights)
    found = read_graphs(path, target=["weight", "length"], numeric=True)
    assert "target is not a number (weight)" in [bad.reason for bad in found.rejects]


# ---------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    table(folder / "train.csv")
    return folder


@pytest.fixture(scope="module")
def classes(folder):
    words = ["--target", "active", "--target", "level", "--model", "wl", "--json"]
    run = fdgnn("fit", folder / "train.csv", *words, "-o", folder / "classes.fdgnn")
    assert run.returncode == 0, run.stderr
    return folder / "classes.fdgnn", json.loads(run.stdout)


def means(target):
    """Mean scores of a target by metric, of the JSON of an evaluation."""
    return {each["words"]: each["mean"] for each in target["scores"]}


def test_fit_gives_a_score_for_each_target(classes, folder):
    path, facts = classes
    assert [each["name"] for each in facts["evaluation"]["targets"]] == ["active", "level"]
    known = read_graphs(folder / "train.csv", target=["active", "level"]).y
    counts = [sum(value is not None for value in column) for column in known.T]
    assert [each["n_known"] for each in facts["evaluation"]["targets"]] == counts
    mean = np.mean([means(each)["accuracy"] for each in facts["evaluation"]["targets"]])
    assert facts["scores"]["accuracy"] == pytest.approx(mean)
    assert all(0.5 < each["wl_ceiling"] <= 1 for each in facts["evaluation"]["targets"])
    assert [target.name for target in model_info(path).targets] == ["active", "level"]
    shown = fdgnn("model", path).stdout
    assert "active: 2 classes: no, yes" in shown
    assert "level: 3 classes: 0, 1, 2" in shown


def test_targets_with_commas_and_a_table_of_scores(folder):
    run = fdgnn("fit", folder / "train.csv", "--targets", "weight, length", "--model", "wl",
                "-o", folder / "numbers.fdgnn")  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = [re.split(r"\s{2,}", line) for line in run.stdout.splitlines()]
    header = next(line for line in lines if line[:2] == ["target", "known"])
    assert header[2:] == ["R2", "RMSE"]
    metrics = [line[0] for line in lines[1 : lines.index(header)]]
    assert metrics == ["R2"]  # a mean of errors would have two units
    rows = {line[0]: line for line in lines if line and line[0] in ("weight", "length")}
    assert all(float(row[2].split(" ± ")[0]) > 0.5 for row in rows.values())
    out = folder / "numbers.csv"
    assert (
        fdgnn("predict", folder / "numbers.fdgnn", folder / "train.csv", "-o", out).returncode == 0
    )
    with out.open() as file:
        found = list(csv.DictReader(file))
    assert len(found) == N
    assert list(found[0])[:5] == [
        "row", "prediction_weight", "score_weight", "prediction_length", "score_length"
    ]  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_predict_writes_one_table_with_columns_for_each_target(ending, classes, folder):
    path, _ = classes
    out = folder / f"p{ending}"
    run = fdgnn("predict", path, folder / "train.csv", "-o", out, "--coverage", "0.8")
    assert run.returncode == 0, run.stderr
    with out.open() as file:
        rows = list(csv.DictReader(file)) if ending == ".csv" else [json.loads(x) for x in file]
    assert list(rows[0]) == [
        "row", "prediction_active", "score_active", "probability_active_no",
        "probability_active_yes", "set_active", "prediction_level", "score_level",
        "probability_level_0", "probability_level_1", "probability_level_2", "set_level",
        "domain_distance", "out_of_domain", "warning", "error",
    ]  # fmt: skip
    model = load_model(path)
    graphs = read_graphs(folder / "train.csv", like=model).graphs
    found = model.predict(graphs)
    assert [row["prediction_active"] for row in rows] == found[:, 0].tolist()
    assert [int(row["prediction_level"]) for row in rows] == found[:, 1].tolist()
    chances = model.predict_proba(graphs)[1]
    np.testing.assert_allclose(
        [float(r["probability_level_2"]) for r in rows], chances[:, 2], rtol=1e-4
    )


def test_explain_asks_which_target(classes, folder):
    path, _ = classes
    run = fdgnn("explain", path, folder / "train.csv", "--row", 1)
    assert_one_clear_line(run, "--target: the model has several targets, active, level; name one")
    out = folder / "why.jsonl"
    words = ["--target", "level", "--of", "2", "--row", 1, "-o", out]
    run = fdgnn("explain", path, folder / "train.csv", *words)
    assert run.returncode == 0, run.stderr
    found = json.loads(out.read_text().splitlines()[0])
    assert found["class"] == 2
    assert sum(found["vertices"]) == pytest.approx(found["score"] - found["base_score"])


def test_a_target_with_one_value_after_dropping_missing_ones_is_one_line(folder):
    constant = ["" if i % 2 else "same" for i in range(N)]
    path = table(folder / "constant.csv", constant=constant)
    run = fdgnn("fit", path, "--targets", "active,constant", "-o", folder / "x.fdgnn")
    assert_one_clear_line(run, "target 'constant' has one value only, same, in the 30 graphs")
    run = fdgnn("fit", path, "--targets", "active,weight", "-o", folder / "x.fdgnn")
    assert_one_clear_line(
        run, "'active' is a classification target and 'weight' a regression", "--task"
    )


# ---------------------------------------------------------------------- pages


def saved_scores(page):
    """Rows of the page's table of saved scores: name, then a number for each measure."""
    html = page.read_text()
    part = html[html.index('id="scores-') :]
    part = part[: part.index("</figure>")]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", part, re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return {row[0]: [cell.split("\xa0")[0] for cell in row[1:4]] for row in cells}


def test_the_page_of_a_model_file_has_the_scores_of_each_target(classes, folder):
    path, facts = classes
    page = folder / "file.html"
    run = fdgnn("report", path, "-o", page)
    assert run.returncode == 0, run.stderr
    shown = saved_scores(page)
    assert shown["model"] == ["accuracy, %", "balanced accuracy, %", "ROC AUC, %"]
    for each in facts["evaluation"]["targets"]:
        found = [float(cell) / 100 for cell in shown[f"{path.stem}, {each['name']}"]]
        assert found == pytest.approx(list(means(each).values()), abs=6e-4)
    mean = [float(cell) / 100 for cell in shown[f"{path.stem}, mean of 2 targets"]]
    assert mean == pytest.approx(list(facts["scores"].values()), abs=6e-4)


def test_the_page_of_data_shows_each_target_on_rows_for_which_it_is_known(classes, folder):
    path, facts = classes
    page = folder / "data.html"
    words = ["--data", folder / "train.csv", "--targets", "active,level"]
    run = fdgnn("report", path, *words, "-o", page)
    assert run.returncode == 0, run.stderr
    html = page.read_text()
    for each in facts["evaluation"]["targets"]:
        assert f"train, {each['name']}" in html
        left_out = N - each["n_known"]
        assert f"{left_out} of {N} rows left out, because they cannot be used or have no" in html
    most = max(each["n_known"] for each in facts["evaluation"]["targets"])
    assert f"train, active and train, level; {most} graphs." in html  # not each graph twice
    refused = fdgnn("report", path, "--data", folder / "train.csv", "--target", "weight")
    assert_one_clear_line(refused, "--target weight: not a target", "'active', 'level'")


def test_datasets_info_shows_one_target_at_a_time(folder):
    words = ["--target", "active", "--target", "level"]
    refused = fdgnn("datasets", "info", folder / "train.csv", *words)
    assert_one_clear_line(refused, "--target is given 2 times")


def test_files_keep_the_scores_of_each_target(classes, tmp_path):
    path, facts = classes
    model = load_model(path)
    assert model_info(path).evaluation == model.evaluation_
    each = {t.name: {s.words: s.mean for s in t.scores} for t in model.evaluation_.targets}
    assert each == {one["name"]: means(one) for one in facts["evaluation"]["targets"]}
    level = model.for_target("level").evaluation_
    assert {s.words: s.mean for s in level.metrics} == each["level"]


def test_a_page_calls_accuracy_what_is_accuracy_whatever_models_were_chosen_by(folder):
    out, page = folder / "loss.fdgnn", folder / "loss.html"
    words = ["--target", "active", "--model", "wl", "--scoring", "log_loss", "--json"]
    run = fdgnn("fit", folder / "train.csv", *words, "-o", out, "--report", page)
    assert run.returncode == 0, run.stderr
    scores = json.loads(run.stdout)["scores"]
    assert list(scores) == ["log loss", "accuracy", "balanced accuracy", "ROC AUC"]
    html = " ".join(page.read_text().split())
    assert f'class="value">{scores["log loss"]:.3f} ' in html  # the chosen metric first
    for name in ("accuracy", "ROC AUC"):
        assert f"{name}, %</th>" in html
        assert f">{100 * scores[name]:.2f} ± " in html
