"""Nearest training graphs: by the kernel that predicts, in Python, in files and in commands."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import (
    AutoGraphClassifier,
    FDGNNClassifier,
    GraphClassifier,
    GraphRegressor,
    KernelRidge,
    WLCounts,
    load_model,
    save_model,
)
from fdgnn.datasets import make_motif_graphs
from model_file_tools import again, rejected, with_arrays, with_record

GRAPHS, Y = make_motif_graphs(80, random_state=0)
SMILES = ["CCO", "CCCO", "CCCCO", "CCN", "CCCN", "CCCCN", "CC(C)O", "CC(C)N", "OCCO", "NCCN"]
LOGP = [-0.1, 0.3, 0.8, -0.2, 0.4, 0.9, 0.1, 0.2, -1.0, -0.9]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.fdgnn"


def kernel(model, graphs, others):
    """exp(-c |x - z|^2) of the only fitted model, in dense arithmetic."""
    fitted = model.estimators_[0]
    X, Z = (fitted.features(g).toarray() for g in (graphs, others))
    squares = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    return np.exp(-fitted.readout.sharpness[0] * squares)


def test_similarity_is_the_kernel_that_predicts():
    model = GraphClassifier(WLCounts(n_iterations=1, n_features=512)).fit(GRAPHS[:60], Y[:60])
    found = model.neighbors(GRAPHS[60:], k=4)
    K = kernel(model, GRAPHS[60:], GRAPHS[:60])
    expected = np.argsort(-K, axis=1, kind="stable")[:, :4]
    np.testing.assert_allclose(
        found.similarities, np.take_along_axis(K, expected, axis=1), atol=1e-12
    )
    np.testing.assert_allclose(np.take_along_axis(K, found.positions, axis=1), found.similarities)
    np.testing.assert_array_equal(found.targets, Y[:60][found.positions])
    weights = model.estimators_[0].readout
    np.testing.assert_allclose(
        K @ weights.dual[:, 0] + weights.intercept, model.decision_function(GRAPHS[60:])
    )


def test_of_an_ensemble_it_is_the_mean_of_its_kernels():
    each = [(f"{n}", WLCounts(n_iterations=1, n_features=n), "rbf") for n in (1024, 2048)]
    model = AutoGraphClassifier(each, random_state=0).fit(GRAPHS, np.arange(80) % 2)
    assert len(model.estimators_) == 2
    found = model.neighbors(GRAPHS[10:20], k=1)
    np.testing.assert_allclose(found.similarities, 1.0)
    assert (found.positions[:, 0] == np.arange(10, 20)).mean() > 0.8  # some graphs are alike
    K = np.mean([m.readout.similarities(m.features(GRAPHS)) for m in model.estimators_], axis=0)
    found = model.neighbors(GRAPHS, k=80)
    np.testing.assert_allclose(found.similarities, -np.sort(-K, axis=1))


def test_more_neighbors_than_graphs_are_all_graphs_and_no_graphs_have_none():
    model = GraphRegressor().fit(SMILES, LOGP)
    found = model.neighbors(["CCCCCO"], k=50)
    assert sorted(found.positions[0]) == list(range(10))
    assert found.smiles[0, 0] == "CCCCO"
    assert (np.diff(found.similarities) <= 0).all()
    assert model.neighbors([]).positions.shape[0] == 0
    with pytest.raises(ValueError, match="k=0: expected a number of neighbors"):
        model.neighbors(["CCO"], k=0)


def test_several_targets_have_unknown_values():
    y = np.array([LOGP, LOGP[::-1]]).T
    y[3, 1] = np.nan
    model = GraphRegressor().fit(SMILES, {"a": y[:, 0], "b": y[:, 1]})
    found = model.neighbors(SMILES, k=10)
    assert found.targets.shape == (10, 10, 2)
    np.testing.assert_array_equal(found.targets, y[found.positions])
    alone = model.for_target("b").neighbors(SMILES, k=10)
    np.testing.assert_array_equal(alone.targets, y[found.positions][:, :, 1])


def test_a_transformed_target_is_shown_as_it_was_given():
    y = 10.0 ** np.array(LOGP)
    model = GraphRegressor(target_transform="log10").fit(SMILES, y)
    found = model.neighbors(SMILES[:2], k=3)
    np.testing.assert_allclose(found.targets, y[found.positions])


def test_files_keep_training_graphs_unless_they_are_left_out(file):
    y = np.array(["no", "yes"])[np.arange(10) % 2]
    model = GraphClassifier().fit(SMILES, y)
    found, loaded = model.neighbors(SMILES), again(model, file).neighbors(SMILES)
    for name in ("positions", "similarities", "targets", "smiles"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(found, name))
    whole = file.stat().st_size
    save_model(model, file, training_graphs=False)
    assert file.stat().st_size < whole
    assert b"CC(C)O" not in file.read_bytes()
    without = load_model(file).neighbors(SMILES)
    np.testing.assert_array_equal(without.positions, found.positions)
    assert without.smiles is None
    assert set(without.targets.ravel()) == {None}


def test_models_without_a_kernel_say_so():
    for model in (FDGNNClassifier(random_state=0), GraphClassifier(readout="linear")):
        with pytest.raises(ValueError, match="it has no kernel"):
            model.fit(GRAPHS, Y).neighbors(GRAPHS)


def test_a_second_fit_without_a_kernel_keeps_no_training_graphs(file):
    model = GraphClassifier("wl", "rbf").fit(GRAPHS, Y)
    model.set_params(readout="linear").fit(GRAPHS, Y)
    with pytest.raises(ValueError, match="it has no kernel"):
        model.neighbors(GRAPHS)
    loaded = again(model, file)
    assert loaded.outputs(GRAPHS).tobytes() == model.outputs(GRAPHS).tobytes()


def test_training_graphs_of_an_enemy_are_rejected(file):
    save_model(GraphClassifier(WLCounts(), KernelRidge()).fit(SMILES, [0, 1] * 5), file)
    content = file.read_bytes()
    texts = np.frombuffer(b"CCO\0" * 9, dtype=np.uint8)
    wrong = {
        "training.targets": (np.zeros((9, 1)), np.full((10, 1), 2.0), np.full((10, 1), 0.5)),
        "training.known": (np.ones((9, 1), np.uint8), np.full((10, 1), 2, np.uint8)),
        "training.errors": (np.zeros((9, 1)), np.full((10, 1), -1.0)),
        "training.smiles": (texts, texts[:-1], np.full(10, 0xFF, np.uint8)),
        "training.more": (np.zeros(1),),
    }
    for name, arrays in wrong.items():
        for array in arrays:
            rejected(with_arrays(content, **{name: np.ascontiguousarray(array)}), file)
    for change in ({"training_graphs": False}, {"training_graphs": None}):
        rejected(with_record(content, lambda record, c=change: record.update(c)), file)


# ---------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that `fit` made of a table with ids, and a table of new molecules."""
    where = tmp_path_factory.mktemp("neighbors")
    rows = [
        f"m{i},{s},{y},{i % 3}" for i, (s, y) in enumerate(zip(SMILES * 3, LOGP * 3, strict=True))
    ]
    (where / "train.csv").write_text("name,smiles,y,lab\n" + "\n".join(rows) + "\n")
    fitted = fdgnn(
        "fit", where / "train.csv", "--target", "y", "--id", "name", "--task", "regression",
        "--model", "wl", "-o", where / "m.fdgnn", "-q",
    )  # fmt: skip
    assert fitted.returncode == 0, fitted.stderr
    new = "lab,SMILES,name\nA,CCCCCO,x1\nB,C1CC,x2\nC,[Na+].[Cl-],x3\n"
    (where / "new.csv").write_text(new)
    return where


def predicted(folder, *options):
    run = fdgnn("predict", folder / "m.fdgnn", folder / "new.csv", *options)
    assert run.returncode == 0, run.stderr
    return list(csv.DictReader(run.stdout.splitlines())), run.stderr


def test_predictions_are_shown_with_neighbors_ids_smiles_and_kept_columns(folder):
    rows, _ = predicted(folder, "--neighbors", 2, "--keep", "lab")
    assert list(rows[0])[:4] == ["name", "lab", "smiles", "prediction"]
    assert [(row["name"], row["lab"], row["smiles"]) for row in rows] == [
        ("x1", "A", "CCCCCO"), ("x2", "B", "C1CC"), ("x3", "C", "[Na+].[Cl-]"),
    ]  # fmt: skip
    model = load_model(folder / "m.fdgnn")
    found = model.neighbors(["CCCCCO"], k=2)
    assert rows[0]["neighbor_1"] == found.ids[0, 0] in {"m2", "m12", "m22"}
    assert rows[0]["neighbor_1_smiles"] == "CCCCO"
    assert float(rows[0]["neighbor_1_target"]) == 0.8
    assert float(rows[0]["neighbor_2_similarity"]) == pytest.approx(found.similarities[0, 1], 1e-4)
    assert rows[1]["neighbor_1"] == ""
    assert "cannot be parsed" in rows[1]["error"]


def test_a_molecule_of_which_nothing_is_known_has_no_prediction(folder):
    rows, said = predicted(folder, "--coverage", 0.8)
    assert [rows[2][name] for name in ("prediction", "score", "low", "high")] == [""] * 4
    assert rows[2]["domain_distance"] == "1.0"
    assert "none of its substructures" in rows[2]["out_of_domain"]
    assert "1 of these 2 rows has nothing in common with the training graphs" in said
    assert rows[0]["prediction"]
    assert not rows[0]["out_of_domain"].startswith("none")


def test_numbers_are_rounded(folder):
    model = load_model(folder / "m.fdgnn")
    exact = float(model.predict(["CCCCCO"])[0])
    for options, digits in (((), 5), (("--precision", 3), 3), (("--precision", 17), 17)):
        rows, _ = predicted(folder, *options)
        assert float(rows[0]["prediction"]) == pytest.approx(float(f"{exact:.{digits}g}"), 1e-14)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--neighbors", -1), "--neighbors"),
        (("--keep", "lib"), "did you mean 'lab'?"),
        (("--keep", "prediction"), "prediction"),
        (("--precision", 0), "--precision"),
        (("--keep", "lab,lab"), "two columns 'lab'"),
    ],
)
def test_bad_options_write_nothing(folder, options, words):
    out = folder / "out.csv"
    run = fdgnn("predict", folder / "m.fdgnn", folder / "new.csv", *options, "-o", out)
    assert run.returncode != 0
    assert "Traceback" not in run.stderr
    assert words in run.stderr
    assert not out.exists()


def test_a_model_without_a_kernel_has_no_neighbors_to_show(folder):
    save_model(GraphRegressor(readout="linear").fit(SMILES, LOGP), folder / "linear.fdgnn")
    run = fdgnn("predict", folder / "linear.fdgnn", folder / "new.csv", "--neighbors", 2)
    assert_one_clear_line(run, "it has no kernel")


def test_neighbors_in_json_lines(folder):
    run = fdgnn("predict", folder / "m.fdgnn", folder / "new.csv", "--neighbors", 1, "--json")
    first = json.loads(run.stdout.splitlines()[0])
    assert isinstance(first["neighbor_1_target"], float)
    assert 0 < first["neighbor_1_similarity"] <= 1
