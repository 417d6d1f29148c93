"""Sets and intervals: the k-th smallest held-out score, and truths that are covered."""

from __future__ import annotations

from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from fdgnn import (
    AutoGraphClassifier,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    save_model,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.folds import shuffled_folds, stratified_folds
from fdgnn.neighbors import difficulty, fit_difficulty, training_conditions
from fdgnn.targets import coded
from fdgnn.uncertainty import ConformalScores, probabilities
from model_file_tools import again, rejected, with_arrays, with_record
from models import classifier, regressor

SMALL = {"n_units": 10, "n_layers": 1, "effective_spectral_radius": 0.5, "random_state": 0}
GRAPHS = make_random_graphs(120, random_state=0)
NUMBERS = np.random.default_rng(0).normal(size=(120, 2))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.fdgnn"


# ---------------------------------------------------------------------- limits


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=50),
    st.integers(1, 99),
)
def test_the_limit_is_the_smallest_score_that_enough_others_do_not_exceed(scores, percent):
    coverage = percent / 100
    found = ConformalScores.of([np.array(scores)])
    k = -(-(len(scores) + 1) * percent // 100)  # exact, in whole numbers
    if k > len(scores):
        with pytest.raises(ValueError, match=f"{len(scores)} held-out graphs are too few"):
            found.limit(coverage)
        assert found.limits_by_class(coverage).tolist() == [inf]
        return
    assert found.limit(coverage) == sorted(scores)[k - 1]


@pytest.mark.parametrize(("n", "coverage"), [(19, 0.95), (30, 0.8), (99, 0.9)])
def test_the_next_score_is_covered_as_often_as_asked_for(n, coverage):
    """Of n + 1 scores in any order the last is covered in k of n + 1 cases."""
    scores = np.random.default_rng(0).random(n + 1)
    covered = [
        scores[i] <= ConformalScores.of([np.delete(scores, i)]).limit(coverage)
        for i in range(n + 1)
    ]
    assert sum(covered) == ceil((n + 1) * coverage - 1e-9)


def test_a_coverage_that_can_be_promised_is_named():
    few = ConformalScores.of([np.arange(60.0)])
    with pytest.raises(
        ValueError, match=r"60 held-out graphs are too few for a coverage of 0\.99; .* 0\.983"
    ):
        few.limit(0.99)
    assert few.limit(0.983) == 59.0


def test_scores_that_are_not_known_are_left_out():
    found = ConformalScores.of([np.array([1.0, 3, 2, 0]), np.array([5, np.nan, 6, np.nan])])
    assert [group.tolist() for group in found.groups] == [[0, 1, 2, 3], [5, 6]]


# ---------------------------------------------------------------------- models


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_those_of_models_that_have_not_seen_the_fold(n_classes):
    motifs = ("star", "clique", "cycle")[:n_classes]
    graphs, y = make_motif_graphs(90, motifs=motifs, n_attachments=2, random_state=0)
    model = FDGNNClassifier(probability=True, alpha=0.1, **SMALL).fit(graphs, y)
    X, fold, targets = model.estimators_[0].features(graphs), *_folds(model, y)
    held_out = np.zeros_like(targets)
    for f in range(5):
        ridge = Ridge(alpha=0.1).fit(X[fold != f], targets[fold != f])
        held_out[fold == f] = ridge.predict(X[fold == f]).reshape(-1, targets.shape[1])
    chances = probabilities(held_out, model.targets_[0].slope)
    for c, group in enumerate(model.targets_[0].scores.groups):
        np.testing.assert_allclose(group, np.sort(1 - chances[y == c, c]), atol=1e-9)
    p, limit = model.predict_proba(graphs), np.sort(1 - chances[np.arange(90), y])[81]  # 0.9 * 91
    np.testing.assert_array_equal(model.predict_set(graphs), p >= 1 - limit - 1e-9)


def _folds(model, y):
    return stratified_folds(y, model.seed_), coded(y, len(np.unique(y)))


def test_sets_grow_with_coverage_and_hold_the_likeliest_classes():
    graphs, y = make_motif_graphs(90, motifs=("star", "clique", "cycle"), random_state=0)
    model = FDGNNClassifier(probability=True, **SMALL).fit(graphs, y)
    p = model.predict_proba(graphs)
    smaller = np.zeros_like(p, dtype=bool)
    for coverage in (0.1, 0.5, 0.9, 0.98):
        sets = model.predict_set(graphs, coverage)
        assert sets.shape == (90, 3)
        assert sets.dtype == bool
        assert (sets >= smaller).all()
        inside, outside = np.where(sets, p, np.inf), np.where(sets, -np.inf, p)
        assert (inside.min(axis=1) >= outside.max(axis=1)).all()
        smaller = sets


def test_a_class_with_few_graphs_is_in_every_set_by_class():
    graphs, y = make_motif_graphs(90, random_state=0)
    few = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:8]])
    model = FDGNNClassifier(probability=True, **SMALL).fit(graphs[few], y[few])
    assert [len(group) for group in model.targets_[0].scores.groups] == [(y == 0).sum(), 8]
    assert model.predict_set(graphs, 0.9, by_class=True)[:, 1].all()
    assert not model.predict_set(graphs, 0.9, by_class=False)[:, 1].all()
    np.testing.assert_array_equal(
        model.predict_set(graphs, 0.9), model.predict_set(graphs, 0.9, by_class=True)
    )
    with pytest.raises(ValueError, match="expected True, False or 'auto'"):
        model.predict_set(graphs, 0.9, by_class="always")
    assert not model.predict_set(graphs, 0.8, by_class=True)[:, 1].all()


@pytest.mark.parametrize("several", [False, True])
def test_intervals_reach_as_far_as_held_out_errors_of_graphs_as_difficult(several):
    y = NUMBERS if several else NUMBERS[:, 0]
    model = FDGNNRegressor(intervals=True, alpha=0.1, **SMALL).fit(GRAPHS, y)
    X, fold = model.estimators_[0].features(GRAPHS), shuffled_folds(120, model.seed_)
    targets = y.reshape(120, -1)
    errors = np.empty_like(targets)
    for f in range(5):
        ridge = Ridge(alpha=0.1).fit(X[fold != f], targets[fold != f])
        predicted = ridge.predict(X[fold == f]).reshape(-1, targets.shape[1])
        errors[fold == f] = np.abs(targets[fold == f] - predicted)
    distances, own = model.domain_distance(GRAPHS), model._domain.of_training  # it has no kernel
    difficulty, expected = np.empty_like(errors), np.empty_like(errors)
    for t, target in enumerate(model.targets_):
        conditions = [np.stack([np.ones(120), np.log(x + 0.3)], axis=1) for x in (own, distances)]
        expected[:, t], difficulty[:, t] = (np.exp(Z @ target.difficulty) for Z in conditions)
    # ceil(0.8 * 121) = 97
    reach = np.sort(errors / expected, axis=0)[96] * difficulty
    found = model.predict_interval(GRAPHS, 0.8)
    assert found.shape == ((120, 2, 2) if several else (120, 2))
    middle = model.predict(GRAPHS)
    reach = reach if several else reach[:, 0]
    np.testing.assert_allclose(found[..., 0], middle - reach, atol=1e-9)
    np.testing.assert_allclose(found[..., 1], middle + reach, atol=1e-9)


@pytest.mark.parametrize("name", ["reservoir", "wl"])
def test_new_graphs_are_covered(name):
    """A third of the labels is wrong, so that one class alone would be right too seldom."""
    rng = np.random.default_rng(1)
    graphs, y = make_motif_graphs(1600, random_state=1)
    y = np.where(rng.random(1600) < 0.3, 1 - y, y)
    order = rng.permutation(1600)
    train, test = order[:600], order[600:]
    model = classifier(name, probability=True, random_state=0).fit(graphs[train], y[train])
    numbers = regressor(name, intervals=True, random_state=0).fit(graphs[train], y[train])
    for coverage in (0.8, 0.9):
        # 1000 graphs by 600 scores: a standard deviation of 0.02, at most
        sets = model.predict_set(graphs[test], coverage)
        assert abs(sets[np.arange(1000), y[test]].mean() - coverage) < 0.05
        low, high = numbers.predict_interval(graphs[test], coverage).T
        assert abs(((low <= y[test]) & (y[test] <= high)).mean() - coverage) < 0.05
        by_class = model.predict_set(graphs[test], coverage, by_class=True)
        for c in (0, 1):
            assert abs(by_class[y[test] == c, c].mean() - coverage) < 0.07


def noisy_numbers(n, seed=0):
    """Graphs with numbers as targets; those of larger graphs have ten times as much noise."""
    rng = np.random.default_rng(seed)
    graphs = make_random_graphs(n, random_state=seed)
    sizes = np.diff(graphs.vertex_offsets)
    noisy = sizes > np.median(sizes)
    return graphs, sizes / 10 + np.where(noisy, 1.0, 0.1) * rng.normal(size=n), noisy


@pytest.mark.parametrize("name", ["wl", "reservoir"])
def test_intervals_are_wider_where_errors_are_larger(name):
    graphs, y, noisy = noisy_numbers(1000)
    model = regressor(name, intervals=True, random_state=0).fit(graphs[:600], y[:600])
    low, high = model.predict_interval(graphs[600:], 0.8).T
    width, noisy = high - low, noisy[600:]
    covered = (low <= y[600:]) & (y[600:] <= high)
    assert abs(covered.mean() - 0.8) < 0.06
    if name == "wl":  # a reservoir without a kernel does not tell them apart
        assert width[noisy].mean() > 1.5 * width[~noisy].mean()
    assert len(model.targets_[0].difficulty) == (4 if name == "wl" else 2)


def test_the_difficulty_of_a_training_graph_does_not_depend_on_its_own_fold():
    graphs, y, _ = noisy_numbers(100)
    model = regressor("wl", intervals=True, random_state=0).fit(graphs, y)
    kept, models = model._training_graphs, [model.estimators_[0]]
    fold, own = shuffled_folds(100, model.seed_), model._domain.of_training
    found = training_conditions(models, own, kept.errors, fold)[0]
    others = kept.errors.copy()
    others[fold == 0] *= 100
    changed = training_conditions(models, own, others, fold)[0]
    np.testing.assert_array_equal(found[fold == 0][:, :3], changed[fold == 0][:, :3])
    scale = np.exp(found[fold == 0][:, 3]) - 0.3 * kept.errors.mean()
    again = np.exp(changed[fold == 0][:, 3]) - 0.3 * others.mean()
    np.testing.assert_allclose(scale, again)


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
def test_an_ensemble_and_a_search_give_sets_and_intervals():
    y = (NUMBERS[:, 0] > 0).astype(int)
    ensemble = AutoGraphClassifier("wl", probability=True, random_state=0).fit(GRAPHS, y)
    assert sum(len(group) for group in ensemble.targets_[0].scores.groups) == 120
    assert ensemble.predict_set(GRAPHS[:3]).shape == (3, 2)
    options = {"n_configurations": 1, "cv": 2, "random_state": 0}
    search = FDGNNSearchCV(FDGNNClassifier(probability=True, **SMALL), **options).fit(GRAPHS, y)
    best = search.best_estimator_
    np.testing.assert_array_equal(
        search.predict_set(GRAPHS, 0.7, by_class=True), best.predict_set(GRAPHS, 0.7, by_class=True)
    )
    numbers = FDGNNSearchCV(FDGNNRegressor(intervals=True, **SMALL), **options)
    numbers.fit(GRAPHS, NUMBERS[:, 0])
    assert numbers.predict_interval(GRAPHS).shape == (120, 2)
    assert not hasattr(numbers, "predict_set")


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, float("nan"), "0.9", True, None])
def test_a_coverage_is_between_0_and_1(coverage):
    model = FDGNNClassifier(probability=True, **SMALL).fit(GRAPHS, np.arange(120) % 2)
    with pytest.raises(ValueError, match="expected a share between 0 and 1"):
        model.predict_set(GRAPHS, coverage)


def test_a_model_without_conformal_scores_says_how_to_get_some():
    plain = FDGNNClassifier(**SMALL).fit(GRAPHS, np.arange(120) % 2)
    with pytest.raises(ValueError, match="no conformal scores: fit it with `probability=True`"):
        plain.predict_set(GRAPHS)
    numbers = FDGNNRegressor(intervals=True, **SMALL).fit(GRAPHS, NUMBERS)
    numbers.set_params(intervals=False).fit(GRAPHS, NUMBERS)  # forgets what it had
    with pytest.raises(ValueError, match="no conformal scores: fit it with `intervals=True`"):
        numbers.predict_interval(GRAPHS)
    with pytest.raises(ValueError, match="intervals="):
        FDGNNRegressor(intervals="yes").fit(GRAPHS, NUMBERS)


# ---------------------------------------------------------------------- files


def test_files_keep_conformal_scores(file):
    model = FDGNNClassifier(probability=True, **SMALL).fit(GRAPHS, np.arange(120) % 3)
    for by_class in (False, True):
        np.testing.assert_array_equal(
            again(model, file).predict_set(GRAPHS, 0.8, by_class=by_class),
            model.predict_set(GRAPHS, 0.8, by_class=by_class),
        )
    for numbers in (FDGNNRegressor(intervals=True, **SMALL), regressor("wl", intervals=True)):
        numbers.fit(GRAPHS, NUMBERS)
        np.testing.assert_array_equal(
            again(numbers, file).predict_interval(GRAPHS), numbers.predict_interval(GRAPHS)
        )


def test_scores_of_an_enemy_are_rejected(file):
    model = FDGNNClassifier(probability=True, **SMALL).fit(GRAPHS, np.arange(120) % 2)
    save_model(model, file)
    content = file.read_bytes()
    scores = np.concatenate(model.targets_[0].scores.groups)
    for wrong in (scores[::-1], scores[:-1], scores - 1, scores + 1, scores[:, None]):
        rejected(with_arrays(content, **{"conformal.0": np.ascontiguousarray(wrong)}), file)
    rejected(with_arrays(content, **{"conformal.0": None}), file)
    for lengths in ([120], [60, 61], [60, 60, 0], [0, 120], [-1, 121], [60, 60.5], 120, "x", None):
        change = lambda record, n=lengths: record["targets"][0].update(conformal=n)  # noqa: E731
        rejected(with_record(content, change), file)
    rejected(with_record(content, lambda record: record["targets"][0].update(slope=None)), file)


def test_a_condition_that_hardly_varies_makes_no_difficulty_infinite():
    rng = np.random.default_rng(0)
    errors = rng.random(50)
    least = 0.1 * np.median(errors)
    found = np.stack([np.ones(50), 1 + 1e-6 * rng.random(50), np.log(errors + least)], axis=1)
    weights = fit_difficulty(found, errors)
    assert 0 < difficulty(np.array([[1.0, 5.0, 0.0]]), weights)[0] < 100
    assert weights[2] == pytest.approx(1, abs=0.01)  # the other condition is used as before
