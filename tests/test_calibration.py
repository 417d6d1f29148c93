"""Probabilities: learned on held-out outputs, true, and never at odds with the prediction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from fdgnn import FDGNNClassifier, FDGNNSearchCV, load_tu
from fdgnn.datasets import make_motif_graphs
from fdgnn.folds import stratified_folds
from fdgnn.seeds import seed_sequence
from fdgnn.targets import coded, winning_class
from fdgnn.uncertainty import SLOPES, fit_slope, probabilities

SMALL = {"n_layers": 2, "n_units": 10, "effective_spectral_radius": 0.5, "random_state": 0}


def drawn(n, n_classes, slope, seed=0):
    """Outputs between their targets, and classes drawn from the probabilities they stand for."""
    rng = np.random.default_rng(seed)
    outputs = rng.uniform(-1, 1, size=(n, 1 if n_classes == 2 else n_classes))
    p = probabilities(outputs, slope)
    return outputs, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


# ---------------------------------------------------------------------- the curve


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("slope", [0.5, 4.0])
def test_the_slope_that_made_the_classes_is_found(n_classes, slope):
    assert fit_slope(*drawn(20_000, n_classes, slope)) == pytest.approx(slope, rel=0.1)


def test_the_slope_minimizes_the_cross_entropy():
    outputs, codes = drawn(500, 2, 3.0)
    n = np.bincount(codes)
    targets = np.where(codes == 1, (n[1] + 1) / (n[1] + 2), 1 / (n[0] + 2))

    def loss(a):
        p = expit(a * outputs[:, 0] * (1 + 1e-6))
        return -(targets * np.log(p) + (1 - targets) * np.log(1 - p)).mean()

    best = minimize_scalar(loss, bounds=(0, 20), method="bounded", options={"xatol": 1e-9}).x
    assert fit_slope(outputs, codes) == pytest.approx(best, rel=1e-4)


def test_separated_classes_and_useless_outputs_give_finite_slopes():
    codes = np.arange(100) % 2
    separated = fit_slope(np.where(codes == 1, 1.0, -1.0)[:, None], codes)
    assert probabilities(np.array([[1.0]]), separated)[0, 1] == pytest.approx(51 / 52, abs=1e-4)
    assert fit_slope(np.where(codes == 0, 1.0, -1.0)[:, None], codes) == SLOPES[0]
    assert fit_slope(np.zeros((100, 1)), codes) == SLOPES[0]


def test_far_outputs_say_no_more_than_their_targets():
    outputs, codes = drawn(1000, 3, 2.0)
    before = fit_slope(outputs, codes)
    outputs[::50] *= 100  # extrapolations, some of them wrong
    assert fit_slope(outputs, codes) == pytest.approx(before, rel=0.1)
    p = probabilities(np.array([[500.0, -3.0, -800.0]]), before)
    np.testing.assert_allclose(p, probabilities(np.array([[1.0, -1.0, -1.0]]), before), atol=1e-3)


@given(
    st.lists(st.tuples(*[st.integers(-400, 400)] * 3), min_size=1, max_size=20),
    st.floats(0.1, 30),
    st.booleans(),
)
def test_the_likeliest_class_is_the_predicted_one(rows, slope, two):
    outputs = np.array(rows)[:, : 1 if two else 3] / 100
    p = probabilities(outputs, slope)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p.argmax(axis=1), winning_class(outputs))


# ---------------------------------------------------------------------- folds


def test_folds_are_stratified_seeded_and_at_most_five():
    codes = np.repeat([0, 1, 2], [50, 20, 10])
    folds = stratified_folds(codes, seed_sequence(0))
    for c, n in enumerate([10, 4, 2]):
        assert np.bincount(folds[codes == c]).tolist() == [n] * 5
    np.testing.assert_array_equal(folds, stratified_folds(codes, seed_sequence(0)))
    assert (folds != stratified_folds(codes, seed_sequence(1))).any()
    assert stratified_folds(np.array([0, 0, 0, 1, 1, 1]), seed_sequence(0)).max() == 2
    with pytest.raises(ValueError, match="only one graph"):
        stratified_folds(np.array([0, 0, 1]), seed_sequence(0))


# ---------------------------------------------------------------------- the classifier


@pytest.mark.parametrize("n_classes", [2, 3])
def test_out_of_fold_predictions_are_those_of_models_that_have_not_seen_the_fold(n_classes):
    motifs = ("star", "clique", "cycle")[:n_classes]
    graphs, y = make_motif_graphs(60, motifs=motifs, n_attachments=2, random_state=0)
    model = FDGNNClassifier(n_estimators=2, probability=True, alpha=0.1, **SMALL).fit(graphs, y)
    fold, targets = stratified_folds(y, model.seed_), coded(y, n_classes)
    expected = np.zeros_like(targets)
    for fitted in model.estimators_:
        X = fitted.features(graphs)
        for f in range(5):
            ridge = Ridge(alpha=0.1).fit(X[fold != f], targets[fold != f])
            expected[fold == f] += ridge.predict(X[fold == f]).reshape(-1, targets.shape[1]) / 2
    slope = model.targets_[0].slope
    assert slope == pytest.approx(fit_slope(expected, y), rel=1e-6)
    assert slope > 0.1
    p = model.predict_proba(graphs)
    assert p.shape == (60, n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(graphs))


def test_probabilities_are_there_only_if_asked_for():
    graphs, y = make_motif_graphs(40, random_state=0)
    plain = FDGNNClassifier(**SMALL).fit(graphs, y)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError, match="no predict_proba: set probability=True before `fit`"):
        plain.predict_proba(graphs)
    asked = FDGNNClassifier(probability=True, **SMALL)
    assert hasattr(asked, "predict_proba")
    assert clone(asked).probability
    with pytest.raises(NotFittedError):
        asked.predict_proba(graphs)
    np.testing.assert_array_equal(
        asked.fit(graphs, y).decision_function(graphs), plain.decision_function(graphs)
    )
    with pytest.raises(ValueError, match="probability="):
        FDGNNClassifier(probability="yes").fit(graphs, y)


def test_a_search_passes_probabilities_on():
    graphs, y = make_motif_graphs(40, random_state=0)
    options = {"n_configurations": 1, "cv": 2, "random_state": 0}
    assert not hasattr(FDGNNSearchCV(**options), "predict_proba")
    with pytest.raises(AttributeError, match="no predict_proba: set probability=True before `fit`"):
        FDGNNSearchCV(**options).predict_proba(graphs)
    with pytest.raises(ValueError, match="probability=True"):
        FDGNNSearchCV(**options).fit(graphs, y).predict_set(graphs)
    search = FDGNNSearchCV(FDGNNClassifier(probability=True), **options).fit(graphs, y)
    np.testing.assert_allclose(search.predict_proba(graphs).sum(axis=1), 1.0)


def test_without_a_random_state_initializations_and_folds_are_of_one_draw():
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(n_units=10, n_estimators=2, probability=True).fit(graphs, y)
    again = FDGNNClassifier(
        n_units=10, n_estimators=2, probability=True, random_state=model.seed_.entropy
    ).fit(graphs, y)
    assert again.targets_[0].slope == model.targets_[0].slope
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))


@pytest.mark.real_data("PROTEINS")
@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
def test_on_unseen_proteins_confidence_is_accuracy(tu_path):
    graphs, y = load_tu(tu_path("PROTEINS"), vertex="labels")
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:600], order[600:]
    model = FDGNNClassifier(n_layers=2, n_estimators=3, probability=True, random_state=0)
    p = model.fit(graphs[train], y[train]).predict_proba(graphs[test])
    right = model.classes_[p.argmax(axis=1)] == y[test]
    assert abs(p.max(axis=1).mean() - right.mean()) < 0.05
    sure = p.max(axis=1) > 0.8
    assert right[sure].mean() > right[~sure].mean() + 0.1


def test_probabilities_have_the_bits_of_scipys_softmax():
    outputs = np.random.default_rng(0).uniform(-1, 1, size=(200, 4))
    evidence = np.clip(outputs, -1, 1) + 1e-6 * outputs
    np.testing.assert_array_equal(probabilities(outputs, 3.0), softmax(3.0 * evidence, axis=1))
