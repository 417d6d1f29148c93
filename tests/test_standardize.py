"""`--standardize` and `--stereo`: what is changed is counted and listed."""

from __future__ import annotations

import csv
import json

import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import load_model, read_graphs

pytest.importorskip("rdkit")

GOOD = ["CCO", "CCN", "CCC", "CCCO", "CCCN", "CC=O", "CCS", "CCF", "CCCl", "CCBr", "CCI", "CC#N"]
SALT, ION, ENOL = "CC(=O)[O-].[Na+]", "CC[NH3+]", "OC(C)=CC(C)=O"


def write(path, smiles):
    path.write_text(
        "name,smiles,y\n" + "".join(f"m{i},{s},{i % 2}\n" for i, s in enumerate(smiles))
    )
    return path


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    return write(tmp_path_factory.mktemp("clean") / "train.csv", GOOD * 2 + [SALT, ION, ENOL])


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fit(train, out, *more):
    return fdgnn("fit", train, "--target", "y", "--id", "name", "-o", out, *more)


def test_fit_counts_and_lists_what_was_changed(train, tmp_path):
    out = tmp_path / "m.fdgnn"
    run = fit(train, out, "--standardize", "parent")
    assert run.returncode == 0, run.stderr
    told = (
        "2 of 27 molecules were changed: 1 reduced to the largest fragment, 2 neutralized; listed "
        f"in {out}.changes.csv"
    )
    assert told in run.stderr.splitlines()
    listed = rows_of(tmp_path / "m.fdgnn.changes.csv")
    assert listed == [
        {"row": "24", "id": "m24", "before": SALT, "after": "CC(=O)O", "steps": "fragment charge"},
        {"row": "25", "id": "m25", "before": ION, "after": "CCN", "steps": "charge"},
    ]
    assert load_model(out).input_schema_.standardize == "parent"


def test_tautomers_are_an_option_and_the_list_may_have_another_name(train, tmp_path):
    listed = tmp_path / "list.csv"
    words = ("--standardize", "tautomer", "--changes", listed, "-q", "--json")
    run = fit(train, tmp_path / "m.fdgnn", *words)
    assert run.returncode == 0, run.stderr
    facts = json.loads(run.stdout)
    assert (facts["changed"], facts["changes"]) == (3, str(listed))
    assert [row["steps"] for row in rows_of(listed)] == ["fragment charge", "charge", "tautomer"]
    assert load_model(tmp_path / "m.fdgnn").input_schema_.standardize == "tautomer"


def test_predict_applies_it_and_has_a_column_of_what_was_read(train, tmp_path):
    out = tmp_path / "m.fdgnn"
    fit(train, out, "--standardize", "parent", "-q")
    new = write(tmp_path / "new.csv", ["CC(=O)O", SALT, "C1", "CCN", ION])
    run = fdgnn("predict", out, new, "-o", tmp_path / "p.csv")
    assert run.returncode == 0, run.stderr
    assert (
        "2 of these 4 rows were changed; the column 'standardized' has what was read" in run.stderr
    )
    rows = rows_of(tmp_path / "p.csv")
    assert [row["standardized"] for row in rows] == ["", "CC(=O)O", "", "", "CCN"]
    assert rows[0]["score"] == rows[1]["score"]
    assert rows[3]["score"] == rows[4]["score"]
    run = fdgnn("predict", out, new, "-o", tmp_path / "p.jsonl", "--json", "-q")
    assert json.loads(run.stdout)["changed"] == 2


def test_without_it_nothing_is_changed_or_listed(train, tmp_path):
    out = tmp_path / "m.fdgnn"
    run = fit(train, out, "--json")
    assert "changed" not in run.stderr
    assert "changed" not in json.loads(run.stdout)
    assert not (tmp_path / "m.fdgnn.changes.csv").exists()
    fdgnn("predict", out, train, "-o", tmp_path / "p.csv", "-q")
    assert "standardized" not in rows_of(tmp_path / "p.csv")[0]


def test_stereo_tells_mirror_images_apart(tmp_path):
    hands = ["C[C@H](N)O", "C[C@@H](N)O"] * 6 + GOOD
    train = write(tmp_path / "train.csv", hands)
    for more, differ in ([], False), (["--stereo"], True):
        run = fit(train, tmp_path / "m.fdgnn", "-q", "--force", *more)
        assert run.returncode == 0, run.stderr
        fdgnn("predict", tmp_path / "m.fdgnn", train, "-o", tmp_path / "p.csv", "-q", "--force")
        left, right = (row["score"] for row in rows_of(tmp_path / "p.csv")[:2])
        assert (left != right) == differ


@pytest.mark.parametrize("words", [["--standardize", "parent"], ["--stereo"]])
def test_other_graphs_are_refused_in_one_line(words, tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text('{"edge_index": [[0], [1]], "y": 0}\n' * 4)
    run = fdgnn("fit", path, "--target", "y", "-o", tmp_path / "m.fdgnn", *words)
    assert_one_clear_line(run, f"{words[0]} is for molecules", f"leave {words[0]} out")
    listed = tmp_path / "list.csv"
    run = fdgnn("fit", path, "--target", "y", "-o", tmp_path / "m.fdgnn", "--changes", listed)
    assert_one_clear_line(run, "--changes", "--standardize")


def test_stereo_that_a_canonical_tautomer_loses_is_told(tmp_path):
    path = tmp_path / "stereo.csv"
    path.write_text("smiles\nC[C@H](O)C(C)=O\nC[C@H](N)c1ccccc1\n")
    table = read_graphs(path, standardize="tautomer", stereo=True)
    assert [(change.row, change.steps) for change in table.changes] == [(0, ("tautomer", "stereo"))]
    assert "@" not in table.smiles[0]
    assert "@" in table.smiles[1]
