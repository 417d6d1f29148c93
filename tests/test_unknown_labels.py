"""Vertex labels that no training graph has: ignored or refused, by every model in the same way."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from commands import fdgnn
from fdgnn import (
    Graph,
    GraphClassifier,
    GraphReservoir,
    WLCounts,
    as_batch,
    load_model,
    save_model,
)
from fdgnn.exceptions import (
    GraphError,
    OutOfDomainWarning,
    UnknownLabelError,
    UnknownLabelWarning,
)
from models import NAMES, classifier, regressor

pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

N = 40
STRANGE = Graph([[0, 1], [1, 2]], labels=["a", "z", "b"])
TOLD = "vertex label z was not seen during fit"


def labeled_graphs():
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 8, size=N)
    return [Graph([range(n - 1), range(1, n)], labels=rng.choice(["a", "b"], n)) for n in sizes]


GRAPHS = labeled_graphs()
MIXED = [GRAPHS[0], STRANGE, GRAPHS[1]]


def fitted(kind, name, **options):
    return kind(name, random_state=0, **options).fit(GRAPHS, np.arange(N) % 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [classifier, regressor])
def test_ignore_and_error_mean_the_same_for_every_model(kind, name):
    ignoring = fitted(kind, name)  # the default
    known = ignoring.outputs(GRAPHS[:2])
    with pytest.warns(UnknownLabelWarning, match="1 of 3 graphs has labels") as caught:
        outputs = ignoring.outputs(MIXED)
    with pytest.warns(UnknownLabelWarning, match="1 of 3 graphs has labels") as by_predict:
        ignoring.predict(MIXED)
    assert {each.filename for each in [*caught, *by_predict]} == {__file__}
    np.testing.assert_allclose(outputs[[0, 2]], known, atol=1e-9)
    assert np.isfinite(outputs).all()
    assert (ignoring.unknown_labels(MIXED), ignoring.valid_graphs(MIXED).errors) == ({1: TOLD}, {})

    strict = fitted(kind, name, handle_unknown="error")
    np.testing.assert_array_equal(strict.outputs(GRAPHS[:2]), known)
    with pytest.raises(
        UnknownLabelError, match=r"^graph 1: vertex label 'z' .*model.valid_graphs does"
    ):
        strict.predict(MIXED)
    found = strict.valid_graphs(MIXED)
    assert (found.rows.tolist(), found.errors) == ([0, 2], {1: TOLD})
    np.testing.assert_allclose(strict.outputs(found.graphs), known, atol=1e-9)
    assert strict.unknown_labels(GRAPHS) == {}


@pytest.mark.parametrize("name", NAMES)
def test_folds_of_a_cross_validation_may_lack_labels(name):
    """Each fold is its own batch of a list, with a vocabulary of its own."""
    graphs = [*GRAPHS, STRANGE]
    y = np.arange(N + 1) % 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        scores = cross_val_score(classifier(name, random_state=0), graphs, y, cv=3)
    assert np.isfinite(scores).all()
    (told,) = [each for each in told if each.category is UnknownLabelWarning]
    assert str(told.message).startswith("1 of 13 graphs has labels or graph-level features")


@pytest.mark.parametrize(
    "encoder", [GraphReservoir(random_state=0), WLCounts(), WLCounts(n_features=None)]
)
def test_encoders_alone(encoder):
    known = encoder.set_params(handle_unknown="error").fit(GRAPHS).transform(GRAPHS[:2])
    with pytest.raises(UnknownLabelError, match="graph 1"):
        encoder.transform(MIXED)
    encoder.set_params(handle_unknown="ignore").fit(GRAPHS)
    with pytest.warns(UnknownLabelWarning):
        X = encoder.transform(MIXED)
    assert abs(X[[0, 2]] - known).max() < 1e-9


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("handle_unknown", ["ignore", "error"])
def test_model_files_keep_it(name, handle_unknown, tmp_path):
    model = fitted(classifier, name, handle_unknown=handle_unknown)
    save_model(model, tmp_path / "m.fdgnn")
    again = load_model(tmp_path / "m.fdgnn")
    assert again.valid_graphs(MIXED).errors == ({1: TOLD} if handle_unknown == "error" else {})


@pytest.mark.parametrize("name", NAMES)
def test_no_graphs_have_no_predictions(name):
    model = classifier(name, probability=True, random_state=0)
    model.fit(GRAPHS, np.array(["no", "yes"])[np.arange(N) % 2])
    assert (model.predict([]).shape, model.predict([]).dtype) == ((0,), model.classes_.dtype)
    assert model.predict_proba([]).shape == (0, 2)
    assert model.decision_function([]).shape == (0,)
    assert fitted(regressor, name).predict([]).shape == (0,)
    assert len(model.valid_graphs([]).graphs) == 0


def test_a_strange_item_does_not_take_the_others_down():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "CCC", "CCCO", "CCCN", "CC=O"] * 3
    model = GraphClassifier("wl").fit(smiles, np.arange(18) % 2)
    with pytest.raises(
        GraphError, match=r"^graph 1: the SMILES 'C1' .*errors=\"missing\".*`valid_graphs`"
    ):
        model.predict(["CCO", "C1"])
    found = model.valid_graphs(["CCO", "C1", None, "CCN"])
    assert (found.rows.tolist(), sorted(found.errors)) == ([0, 3], [1, 2])
    np.testing.assert_array_equal(model.predict(found.graphs), model.predict(["CCO", "CCN"]))


@pytest.mark.parametrize(("model", "handle_unknown"), [("paper", "ignore"), ("auto", "error")])
def test_the_command_line_has_it(model, handle_unknown, tmp_path):
    def table(name, graphs):
        rows = [
            {"edge_index": g.edge_index.tolist(), "node_feat": g.labels.tolist(), "y": i % 2}
            for i, g in enumerate(graphs)
        ]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path / name

    out = tmp_path / "m.fdgnn"
    more = ["--no-search"] if model == "paper" else []
    run = fdgnn(
        "fit", table("train.jsonl", as_batch(GRAPHS)), "--target", "y", "-o", out, "--model", model,
        "--handle-unknown", handle_unknown, "-q", *more,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    new = table("new.jsonl", as_batch(MIXED))
    run = fdgnn("predict", out, new, "-o", tmp_path / "p.csv", "-q")
    assert run.returncode == 0, run.stderr
    with (tmp_path / "p.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    column = "error" if handle_unknown == "error" else "warning"
    assert [TOLD in row[column] for row in rows] == [False, True, False]


@pytest.mark.parametrize("edges", [[[], []], [[0], [1]]])
def test_graphs_about_which_nothing_is_known_are_counted_in_one_warning(edges):
    """Their outputs are those of an empty graph; they have no nearest training graphs."""
    nothing = Graph(edges, labels=["y", "z"])
    model = fitted(regressor, "wl", intervals=True)
    graphs = [GRAPHS[0], nothing, STRANGE, nothing]
    for method in (model.predict, model.predict_interval, model.neighbors):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            method(graphs)
        nothing_known, unknown = caught
        assert nothing_known.category is OutOfDomainWarning
        assert unknown.category is UnknownLabelWarning
        assert nothing_known.filename == unknown.filename == __file__
        assert "2 of 4 graphs have nothing in common" in str(nothing_known.message)
        assert "out_of_domain(graphs) has the positions" in str(nothing_known.message)
        assert "1 of 4 graphs has labels" in str(unknown.message)
    assert [g for g, value in enumerate(model.domain_distance(graphs)) if value == 1] == [1, 3]
    assert {1, 3} <= model.out_of_domain(graphs).keys()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.neighbors(graphs, k=1000)
    assert found.positions.shape == (4, N)
    assert (found.positions[[1, 3]] == -1).all()
    assert np.isnan(found.similarities[[1, 3]]).all()
    assert np.isnan(found.targets[[1, 3]]).all()
    assert (found.positions[[0, 2]] >= 0).all()


def test_probabilities_of_such_graphs_come_with_the_warning():
    model = fitted(classifier, "wl", probability=True)
    with pytest.warns(OutOfDomainWarning, match="1 of 1 graphs has nothing"):
        model.predict_proba([Graph([[], []], labels=["z"])])
    assert model.neighbors(GRAPHS[:1], k=2).targets.tolist() != [[None, None]]
