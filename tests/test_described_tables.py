"""Descriptors in files and commands: read, fitted, predicted, explained, refused in one line."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import iter_graphs, load_model, model_info, read_graphs
from fdgnn.datasets import make_random_graphs
from fdgnn.exceptions import DatasetFormatError

N = 60
RNG = np.random.default_rng(0)
SIZE = RNG.normal(5.0, 3.0, size=N).round(3)
SITE = np.array(["north", "south", "east"])[np.arange(N) % 3]


def table(path, drop=(), **changes):
    """Graphs with a number that is sometimes missing, a category and a code."""
    columns = {
        "size": ["" if i % 7 == 0 else str(v) for i, v in enumerate(SIZE)],
        "site": SITE.tolist(),
        "code": [str(i % 4) for i in range(N)],
        "y": np.where(SIZE + 2 * (SITE == "north") > 5.5, "large", "small").tolist(),
    } | {name: list(values) for name, values in changes.items()}
    columns = {name: values for name, values in columns.items() if name not in drop}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["edge_index", "node_feat", *columns])
        for i, graph in enumerate(make_random_graphs(N, random_state=0)):
            edges = json.dumps(np.asarray(graph.edge_index).tolist())
            row = [edges, json.dumps(graph.labels.tolist())]
            writer.writerow(row + [values[i] for values in columns.values()])
    return path


def replaced(values, **cells):
    values = list(values)
    for place, cell in cells.items():
        values[int(place.removeprefix("row"))] = cell
    return values


# ---------------------------------------------------------------------- reading


def test_columns_of_numbers_and_of_text_are_told_apart(tmp_path):
    path = table(tmp_path / "a.csv")
    found = read_graphs(path, target="y", descriptors=["size", "site"], categories=["code"])
    assert found.schema.descriptors == ("size", "site", "code")
    assert found.schema.categories == ("site", "code")
    described = found.graphs.descriptors
    known = np.arange(N) % 7 != 0
    np.testing.assert_array_equal(described.column("size")[known], SIZE[known])
    assert np.isnan(described.column("size")[~known]).all()
    assert described.column("code").tolist() == [str(i % 4) for i in range(N)]
    plain = read_graphs(path, descriptors=["code"])
    assert plain.schema.descriptors == ("code",)
    chunks = list(iter_graphs(path, like=found.schema, chunk_size=25))
    assert [len(chunk.graphs.descriptors) for chunk in chunks] == [25, 25, 10]


def test_numbers_in_json_are_the_same_categories(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"edge_index": [[0], [1]], "code": code, "z": None} for code in (1, 2.0, "2", None)]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = read_graphs(path, categories=["code"], descriptors=["z"])
    assert found.graphs.descriptors.column("code").tolist() == ["1", "2", "2", None]
    assert np.isnan(found.graphs.descriptors.column("z")).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"descriptors": ["sice"]}, "no column 'sice' for `descriptors`; did you mean 'size'?"),
        ({"descriptors": ["mixed"]}, "'mixed' has numbers, and text such as 'n.d.'; leave"),
    ],
)
def test_columns_that_cannot_be_read_are_one_line(options, message, tmp_path):
    path = table(tmp_path / "a.csv", mixed=replaced(SIZE, row3="n.d."))
    with pytest.raises(DatasetFormatError) as caught:
        read_graphs(path, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_row_with_text_where_numbers_were_is_a_bad_row(tmp_path):
    schema = read_graphs(table(tmp_path / "a.csv"), descriptors=["size"]).schema
    other = table(tmp_path / "b.csv", size=replaced(SIZE, row3="heavy"))
    found = read_graphs(other, like=schema)
    assert [(bad.row, bad.reason) for bad in found.rejects] == [
        (3, "descriptor 'size' is 'heavy', expected a number")
    ]
    assert len(found.graphs.descriptors) == N - 1
    with pytest.raises(ValueError, match="`descriptors` has 'site', which the model was not"):
        read_graphs(other, like=schema, descriptors=["site"])


# ---------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    path = table(folder / "train.csv")
    columns = ["--descriptors", "size,site", "--categories", "code"]
    run = fdgnn("fit", path, "--target", "y", *columns, "--model", "wl", "--json",
                "-o", folder / "model.fdgnn")  # fmt: skip
    assert run.returncode == 0, run.stderr
    return folder, json.loads(run.stdout)


def test_fit_uses_them_and_the_file_knows_them(fitted):
    folder, facts = fitted
    assert facts["score"] > 0.75
    without = fdgnn("fit", folder / "train.csv", "--target", "y", "--model", "wl", "--json",
                    "-o", folder / "plain.fdgnn")  # fmt: skip
    assert json.loads(without.stdout)["score"] < facts["score"] - 0.1
    info = model_info(folder / "model.fdgnn")
    assert [c.name for c in info.descriptors] == ["size", "site", "code"]
    shown = fdgnn("model", folder / "model.fdgnn").stdout
    told = "size (number, some missing), site (3 categories), code (4 categories)"
    assert f"graph-level features  {told}" in shown


def test_predict_reads_them_by_itself_and_explain_has_a_row_for_each(fitted):
    folder, _ = fitted
    new = table(folder / "new.csv", drop=["y"], site=replaced(SITE, row1="west"),
                size=replaced(SIZE, row2="heavy"))  # fmt: skip
    run = fdgnn("predict", folder / "model.fdgnn", new, "-o", folder / "p.csv")
    assert run.returncode == 0, run.stderr
    with (folder / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == N
    assert rows[1]["warning"] == "descriptor site is west, which was not seen during fit"
    assert rows[2]["error"] == "descriptor 'size' is 'heavy', expected a number"
    model = load_model(folder / "model.fdgnn")
    graphs = read_graphs(folder / "train.csv", like=model).graphs
    assert [row["prediction"] for row in rows[3:]] == model.predict(graphs)[3:].tolist()
    why = fdgnn("explain", folder / "model.fdgnn", new, "--row", 5, "-o", folder / "why.csv")
    assert why.returncode == 0, why.stderr
    with (folder / "why.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["descriptor"] for row in rows if row["descriptor"]] == ["size", "site", "code"]
    total = sum(float(row["attribution"]) for row in rows)
    assert total == pytest.approx(float(rows[0]["score"]) - float(rows[0]["base_score"]))
    assert {row["vertex"] == "" for row in rows if row["descriptor"]} == {True}


def test_a_column_that_is_missing_at_prediction_time_is_one_line(fitted):
    folder, _ = fitted
    path = table(folder / "short.csv", drop=["site"])
    run = fdgnn("predict", folder / "model.fdgnn", path)
    assert_one_clear_line(run, "no column 'site', one of the model's descriptors; ")


def test_a_report_of_such_a_model_is_written(fitted):
    folder, _ = fitted
    page = folder / "page.html"
    data = ["--data", folder / "train.csv", "--target", "y"]
    run = fdgnn("report", folder / "model.fdgnn", *data, "-o", page)
    assert run.returncode == 0, run.stderr
    text = page.read_text()
    part = " ".join(text[text.index('id="descriptors-0"') :].split())
    assert "The model also uses 3 descriptors." in part
    assert "The score depends most on size," in part
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", part[: part.index("</figure>")], re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    assert sorted(row[0] for row in cells[1:]) == ["code", "site", "size"]
