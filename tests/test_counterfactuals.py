"""Counterfactuals: changes that flip the class, of molecules only valid ones; and notebooks."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import (
    Graph,
    GraphClassifier,
    GraphRegressor,
    as_batch,
    counterfactuals,
    explain,
    save_model,
)
from fdgnn.exceptions import OutOfDomainWarning, UnknownLabelWarning

Chem = pytest.importorskip("rdkit.Chem")

ACIDS = ["CCO", "CCCO", "CCCCO", "OCCO", "c1ccccc1O", "CC(=O)O"]
BASES = ["CCN", "CCCN", "CCCCN", "NCCN", "c1ccccc1N", "CC(=O)N"]
MOLECULES, CLASSES = (ACIDS + BASES) * 3, (["acid"] * 6 + ["base"] * 6) * 3


@pytest.fixture(scope="module")
def model():
    return GraphClassifier(probability=True).fit(MOLECULES, CLASSES)


@pytest.fixture(scope="module")
def labeled():
    """Paths and cycles with labels, of which only a label tells the class."""
    rng = np.random.default_rng(0)
    graphs = []
    for _ in range(60):
        arcs = np.array([[i, i + 1] for i in range(4)] + [[i + 1, i] for i in range(4)]).T
        graphs.append(Graph(arcs, n_vertices=5, labels=rng.permutation([0, 0, 0, 0, 1])))
    for graph in graphs[30:]:
        graph.labels[graph.labels == 1] = 2
    return as_batch(graphs), GraphClassifier().fit(graphs, np.repeat([0, 1], 30))


def test_a_molecule_flips_by_few_valid_changes(model):
    for smiles, found in zip(ACIDS, counterfactuals(model, ACIDS, n_most=5), strict=True):
        assert found[0].flips
        # One of two equal ends of OCCO changed gives a score of zero: no class is favored.
        assert {len(one.changes) for one in found} == {2 if smiles == "OCCO" else 1}
        for one in found:
            mol = Chem.MolFromSmiles(one.smiles)
            assert mol is not None
            assert len(Chem.GetMolFrags(mol)) == 1
            assert one.smiles != Chem.CanonSmiles(smiles)
            with warnings.catch_warnings(action="ignore", category=UnknownLabelWarning):
                predicted = model.predict([one.smiles])[0]
                before, after = -model.decision_function([smiles, one.smiles])  # score of "acid"
            assert one.prediction == "base"
            assert predicted == "base"
            assert abs(after) > 1e-9  # not a matter of rounding
            assert one.effect == pytest.approx(after - before)
        assert len({one.smiles for one in found}) == len(found)


def test_a_graph_flips_by_another_label(labeled):
    graphs, model = labeled
    (found,) = counterfactuals(model, graphs[[0]], n_most=20)
    assert any("label 1 becomes 2" in one.changes[0] for one in found)
    for one in found:
        assert one.flips
        assert model.predict([one.graph])[0] == 1
        assert one.smiles is None


def test_a_wanted_class_that_is_predicted_already_needs_no_change(labeled):
    graphs, model = labeled
    assert counterfactuals(model, graphs[[0]], target=0) == [[]]
    (found,) = counterfactuals(model, graphs[[0]], target=1)
    assert {one.prediction for one in found} == {1}
    with pytest.raises(ValueError, match="not a class of the model"):
        counterfactuals(model, graphs, target=7)
    with pytest.raises(ValueError, match="at least 1"):
        counterfactuals(model, graphs, max_changes=0)


def test_without_a_flip_the_nearest_are_told():
    arcs = np.array([[i, i + 1] for i in range(7)] + [[i + 1, i] for i in range(7)]).T
    graphs = [Graph(arcs, n_vertices=8, labels=[label] * 8) for label in (0, 1) * 20]
    model = GraphClassifier().fit(graphs, [0, 1] * 20)
    (found,) = counterfactuals(model, graphs[:1], n_most=2, max_changes=1)
    assert [one.flips for one in found] == [False, False]
    assert [one.prediction for one in found] == [0, 0]
    assert all(one.effect < 0 for one in found)


def test_of_a_regression_changes_that_move_the_number_most():
    numbers = [smiles.count("O") - smiles.count("N") for smiles in MOLECULES]
    model = GraphRegressor().fit(MOLECULES, numbers)
    (found,) = counterfactuals(model, ["CCCO"], n_most=4)
    effects = [abs(one.effect) for one in found if one.out_of_domain is None]
    assert effects == sorted(effects, reverse=True)
    assert not any(one.flips for one in found)


# ---------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    where = tmp_path_factory.mktemp("counterfactuals")
    save_model(model, where / "m.fdgnn")
    (where / "new.csv").write_text("name,smiles\na/b,CCCO\na:b,CCCCN\n")
    return where


def test_explain_has_counterfactuals_and_pictures_named_by_id(folder):
    run = fdgnn(
        "explain", folder / "m.fdgnn", folder / "new.csv", "--id", "name", "--counterfactuals", 2,
        "--draw", folder / "why", "-o", folder / "why.jsonl",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in (folder / "why.jsonl").read_text().splitlines()]
    assert [len(row["counterfactuals"]) for row in rows] == [2, 2]
    assert rows[0]["counterfactuals"][0]["flips"] is True
    names = sorted(path.name for path in (folder / "why").iterdir())
    assert names == ["a_b-1.png", "a_b-1.svg", "a_b.png", "a_b.svg"]
    assert "<svg" in (folder / "why" / "a_b.svg").read_text()
    assert (folder / "why" / "a_b.png").read_bytes().startswith(b"\x89PNG")


def test_counterfactuals_in_a_table(folder):
    run = fdgnn("explain", folder / "m.fdgnn", folder / "new.csv", "--counterfactuals", 1)
    rows = [row for row in csv.DictReader(run.stdout.splitlines()) if row["changes"]]
    assert [row["row"] for row in rows] == ["0", "1"]
    assert [row["changed_prediction"] for row in rows] == ["base", "acid"]
    assert Chem.MolFromSmiles(rows[0]["changed_smiles"]) is not None


def test_counterfactuals_that_change_no_class_are_counted(tmp_path):
    chains = ["C" * n for n in range(2, 8)] + ["CN", "CO", "CCN", "CCO", "NCCO", "OCCO"]
    rings = [f"c1ccccc1{'c1ccccc1' * n}{each}" for n in (1, 2) for each in ("", "C", "N", "O")]
    model = GraphClassifier(probability=True).fit(chains + rings, ["chain"] * 12 + ["ring"] * 8)
    save_model(model, tmp_path / "m.fdgnn")
    (tmp_path / "far.csv").write_text("smiles\nCCO\n")
    run = fdgnn("explain", tmp_path / "m.fdgnn", tmp_path / "far.csv", "--counterfactuals", 1)
    flips = [row["flips"] for row in csv.DictReader(run.stdout.splitlines()) if row["changes"]]
    assert flips == ["False"]
    assert "1 row without a change of the predicted class" in run.stderr


def test_a_molecule_of_which_nothing_is_known_has_no_score_as_in_predictions(folder, model):
    (folder / "strange.csv").write_text("smiles\n[Xe]\nCCCO\n")
    data = folder / "m.fdgnn", folder / "strange.csv"
    run = fdgnn("explain", *data, "--counterfactuals", 1)
    rows = list(csv.DictReader(run.stdout.splitlines()))
    predicted = list(csv.DictReader(fdgnn("predict", *data).stdout.splitlines()))
    for name in ("domain_distance", "out_of_domain"):
        assert [rows[0][name], rows[-1][name]] == [row[name] for row in predicted]
    assert (rows[0]["class"], rows[0]["score"], predicted[0]["score"]) == ("", "", "")
    assert "none of its substructures is in a training graph" in rows[0]["out_of_domain"]
    assert "1 of these 2 rows has nothing in common with the training graphs" in run.stderr
    with pytest.warns(OutOfDomainWarning, match="1 of 2 graphs has nothing in common"):
        found = explain(model, ["[Xe]", "CCCO"])
    assert [one.out_of_domain for one in found] == [rows[0]["out_of_domain"], None]


def test_numbers_are_rounded_and_still_add_up(folder):
    data = folder / "m.fdgnn", folder / "new.csv"
    for digits in (5, 3):
        run = fdgnn("explain", *data, "--no-groups", "--precision", digits)
        rows = [row for row in csv.DictReader(run.stdout.splitlines()) if row["row"] == "0"]
        score, base = float(rows[0]["score"]), float(rows[0]["base_score"])
        added = [float(row["attribution"]) for row in rows]
        assert all(len(row["attribution"].strip("-")) <= digits + 2 for row in rows)
        assert score - base == pytest.approx(sum(added), abs=1e-12)


def test_a_negative_number_is_one_clear_line(folder):
    out = folder / "none.csv"
    data = folder / "m.fdgnn", folder / "new.csv"
    run = fdgnn("explain", *data, "--counterfactuals", -1, "-o", out)
    assert_one_clear_line(run, "--counterfactuals") if "error:" in run.stderr else None
    assert run.returncode != 0
    assert not out.exists()


# ---------------------------------------------------------------------- notebooks


def test_notebooks_show_explanations_models_and_batches(model, labeled):
    graphs, other = labeled
    molecule, graph = explain(model, ["CCCO"])[0], explain(other, graphs[:1])[0]
    for found in (molecule, graph):
        assert found._repr_svg_().lstrip().startswith("<?xml")
        assert found.speaks_for in found._repr_html_()
    assert not hasattr(model, "_repr_svg_")  # the how-to guide says why
    shown = model._repr_html_()
    assert "acid, base" in shown
    assert "Training graphs" in shown
    assert "Training graphs" not in GraphClassifier()._repr_html_()
    assert "<svg" in as_batch(MOLECULES)._repr_svg_()
    assert graphs._repr_svg_() is None
    assert "<th>graphs</th><td>60</td>" in graphs._repr_html_()
    assert "<script>" not in as_batch([Graph([[0], [1]], labels=["<script>", "b"])])._repr_html_()
