"""Embed once, select many: the same as doing everything one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import (
    KFold,
    ParameterSampler,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
)
from threadpoolctl import threadpool_info, threadpool_limits

from fdgnn import FDGNNClassifier, FDGNNRegressor, FDGNNSearchCV
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.experiments.measures import fit_and_test
from fdgnn.readout.stratified import stratified
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.selection import scores
from fdgnn.selection.findings import ranks
from fdgnn.selection.folds import nested_folds
from fdgnn.selection.rule import COMMON_PENALTY, ONE_MODEL, PAPER, best_of, choose
from fdgnn.selection.scorers import scorer_metric
from fdgnn.selection.scores import (
    Candidate,
    accuracy,
    candidates_of,
    classification_task,
    score_candidate,
)
from fdgnn.selection.space import (
    at_depth,
    depth_of,
    draw_configurations,
)

MODEL = FDGNNClassifier(n_units=10, effective_spectral_radius=0.5, random_state=3)
FEW = {"n_configurations": 3, "n_guesses": 2, "cv": 3, "random_state": 0}


@pytest.fixture(scope="module")
def motifs():
    return make_motif_graphs(60, random_state=0)


@pytest.fixture(scope="module")
def three_classes():
    graphs = make_random_graphs(90, random_state=0)
    return graphs, np.searchsorted([10, 14], np.diff(graphs.vertex_offsets))


def task_of(graphs, y, n_outer=3, n_inner=4, alphas=(1e-6, 1e-2, 1.0), metric=accuracy):
    return classification_task(graphs, y, nested_folds(y, n_outer, n_inner, seed=0), alphas, metric)


@pytest.mark.parametrize("data", ["motifs", "three_classes"])
@pytest.mark.parametrize("depth", [1, 2])
def test_scores_are_those_of_separate_fits(data, depth, request):
    graphs, y = request.getfixturevalue(data)
    task = task_of(graphs, y)
    validation, _, test = score_candidate(task, Candidate(0, (0,), MODEL, (1, 2))).scores
    for o, fold in enumerate(task.folds):
        for a, alpha in enumerate(task.alphas):
            model = FDGNNClassifier(**MODEL.get_params() | {"n_layers": depth, "alpha": alpha})
            model.set_params(degree=graphs.max_degrees.mean())
            fits = [
                model.fit(graphs[(fold >= 0) & (fold != f)], y[(fold >= 0) & (fold != f)])
                .score(graphs[fold == f], y[fold == f])
                for f in range(4)
            ]  # fmt: skip
            assert validation[depth - 1, o, a] == pytest.approx(np.mean(fits))
            outer = model.fit(graphs[fold >= 0], y[fold >= 0])
            assert test[depth - 1, o, a] == outer.score(graphs[fold < 0], y[fold < 0])


def test_guess_g_is_network_g_of_the_fitted_model(motifs):
    graphs, y = motifs
    model = FDGNNClassifier(**MODEL.get_params() | {"n_networks": 3}).fit(graphs, y)
    features = MODEL.network_features(graphs, guess=2, depths=(3,))[0]
    network = model.networks_[2]
    np.testing.assert_array_equal(features, network.features(graphs))


# ---------------------------------------------------------------------- folds and configurations


def test_nested_folds_are_stratified_partitions():
    y = np.array([0] * 40 + [1] * 20)
    folds = nested_folds(y, 5, 4, seed=1)
    assert folds.shape == (5, 60)
    np.testing.assert_array_equal((folds < 0).sum(axis=0), 1)  # tested once
    for fold in folds:
        assert np.bincount(y[fold < 0]).tolist() == [8, 4]
        for f in range(4):
            assert np.bincount(y[fold == f]).tolist() == [8, 4]
    assert not np.array_equal(folds, nested_folds(y, 5, 4, seed=2))


def test_too_few_members_of_a_class_for_the_folds():
    with pytest.raises(ValueError, match="class 1 has 5 graphs, too few for 10 outer"):
        nested_folds(np.array([0] * 30 + [1] * 5), 10, 10, seed=0)


def test_a_longer_search_contains_a_shorter_one():
    ranges = {**MODEL.search_space, "n_layers": [1, 2, 3]}
    assert draw_configurations(ranges, 10, 0)[:4] == draw_configurations(ranges, 4, 0)
    seeds = {c["random_state"] for c in draw_configurations(ranges, 50, 0)}
    assert len(seeds) == 50


def test_among_equals_the_simplest_wins():
    validation = np.zeros((3, 2, 4))
    assert best_of(validation) == (0, 0, 3)
    validation[2, 1, 0] = validation[1, 1, 2] = 1.0
    assert best_of(validation) == (1, 1, 2)


# ---------------------------------------------------------------------- rules


def scores_at_random(rng, shape=(5, 3, 2, 4, 6)):
    return rng.integers(0, 4, shape) / 4  # few values, so that many are equal


def test_papers_rule_by_hand():
    """Each network has its own penalty, then the mean over guesses; among equals the first."""
    rng = np.random.default_rng(0)
    validation, test = scores_at_random(rng), scores_at_random(rng)
    choice = choose(validation, test, PAPER)
    for o in range(4):
        best, expected = -1.0, None
        for d in range(2):
            for c in range(5):
                own = [5 - int(validation[c, g, d, o, ::-1].argmax()) for g in range(3)]
                mean = np.mean([validation[c, g, d, o, own[g]] for g in range(3)])
                if mean > best:
                    tested = np.mean([test[c, g, d, o, own[g]] for g in range(3)])
                    best, expected = mean, (c, d, own, tested)
        found = [choice.configurations[o], choice.depths[o], choice.penalties[o].tolist()]
        assert found == list(expected[:3])
        assert choice.scores[o] == pytest.approx(expected[3])


def test_common_penalty_by_hand():
    rng = np.random.default_rng(1)
    validation, test = scores_at_random(rng), scores_at_random(rng)
    choice = choose(validation, test, COMMON_PENALTY)
    for o in range(4):
        c, d, a = best_of(validation[:, :, :, o].mean(axis=1))
        assert (choice.configurations[o], choice.depths[o]) == (c, d)
        assert choice.penalties[o].tolist() == [a] * 3
        assert choice.scores[o] == pytest.approx(test[c, :, d, o, a].mean())


def test_rules_say_what_a_candidate_is():
    each = candidates_of([MODEL, MODEL], [(1,), (2,)], 3, PAPER)
    assert [(c.configuration, c.guesses) for c in each[:3]] == [(0, (0,)), (1, (0,)), (0, (1,))]
    assert len(each) == 6
    whole = candidates_of([MODEL, MODEL], [(1,), (2,)], 3, ONE_MODEL)
    assert [(c.configuration, c.guesses) for c in whole] == [(0, (0, 1, 2)), (1, (0, 1, 2))]


def test_an_ensemble_of_one_is_that_network_to_the_bit(motifs):
    task = task_of(*motifs)
    alone = score_candidate(task, candidates_of([MODEL], [(1, 2)], 1, PAPER)[0]).scores
    whole = score_candidate(task, candidates_of([MODEL], [(1, 2)], 1, ONE_MODEL)[0]).scores
    for one, other in zip(alone, whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_depth_that_is_asked_for_twice_is_computed_once(motifs, monkeypatch):
    task, solved = task_of(*motifs), []
    whole = scores.outputs_of_readouts
    monkeypatch.setattr(scores, "outputs_of_readouts", lambda *a: solved.append(a) or whole(*a))
    once = score_candidate(task, Candidate(0, (0,), MODEL, (1,))).scores
    twice = score_candidate(task, Candidate(0, (0,), MODEL, (1, 1))).scores
    assert len(solved) == 2
    for one, both in zip(once, twice, strict=True):
        np.testing.assert_array_equal(both, np.concatenate([one, one]))


def test_estimators_may_say_what_is_searched():
    assert MODEL.depth_parameter == "n_layers"
    assert (depth_of(MODEL), at_depth(MODEL, 5)) == (3, {"n_layers": 5})
    assert set(MODEL.search_space) == {
        "effective_spectral_radius", "input_scaling", "inter_layer_scaling",
    }  # fmt: skip

    class Other:
        depth_parameter = "n_rounds"

        def get_params(self):
            return {"n_rounds": 7}

    assert (depth_of(Other()), at_depth(Other(), 2)) == (7, {"n_rounds": 2})
    Other.depth_parameter = None
    assert (depth_of(Other()), at_depth(Other(), 1)) == (1, {})
    assert set(draw_configurations({}, 1, 0)[0]) == {"random_state"}


class OneDepth(FDGNNClassifier):
    """A model with one depth and a search space of its own."""

    depth_parameter = None
    search_space = {"input_scaling": [0.25, 0.5]}  # noqa: RUF012

    def network_features(self, graphs, guess, depths):
        assert list(depths) == [1]
        return super().network_features(graphs, guess, (self.n_layers,))


def test_search_of_a_model_with_one_depth(motifs):
    search = FDGNNSearchCV(OneDepth(n_units=5, n_layers=2), **FEW).fit(*motifs)
    assert set(search.best_params_) == {"input_scaling", "random_state", "alpha"}
    assert search.best_estimator_.n_layers == 2


# ---------------------------------------------------------------------- scorers


@pytest.mark.parametrize(
    ("scoring", "expected"),
    [
        ("accuracy", lambda y, o: np.mean((o[:, 0] > 0) == y)),
        ("balanced_accuracy", lambda y, o: balanced_accuracy_score(y, o[:, 0] > 0)),
        ("roc_auc", lambda y, o: roc_auc_score(y, o[:, 0])),
    ],
)
def test_scorers_see_the_outputs(scoring, expected):
    rng = np.random.default_rng(0)
    y, outputs = rng.integers(2, size=30), rng.normal(size=(4, 30, 1))
    scores = scorer_metric(scoring, np.array(["no", "yes"]))(y, outputs)
    np.testing.assert_allclose(scores, [expected(y, o) for o in outputs])


def test_regression_scorers():
    rng = np.random.default_rng(0)
    y, outputs = rng.normal(size=30), rng.normal(size=(2, 30, 1))
    scores = scorer_metric("r2", None)(y, outputs)
    np.testing.assert_allclose(scores, [r2_score(y, o[:, 0]) for o in outputs])


# ---------------------------------------------------------------------- the search


@pytest.mark.parametrize("n_guesses", [1, 3])
def test_search_finds_what_cross_validation_finds(motifs, n_guesses):
    graphs, y = motifs
    search = FDGNNSearchCV(MODEL, n_guesses=n_guesses, cv=StratifiedKFold(3), configurations=[
        {"effective_spectral_radius": 0.3}, {"effective_spectral_radius": 0.8, "random_state": 5},
    ], depths=(1, 3), alphas=(1e-2, 1.0)).fit(graphs, y)  # fmt: skip
    results = search.cv_results_
    assert len(results["params"]) == 2 * 2 * 2
    rows = zip(
        results["params"], results["mean_test_score"], results["std_test_score"], strict=True
    )
    for params, mean, std in rows:
        model = FDGNNClassifier(**MODEL.get_params() | params | {"n_networks": n_guesses})
        model.set_params(degree=graphs.max_degrees.mean())
        expected = cross_val_score(model, graphs, y, cv=StratifiedKFold(3))
        assert mean == pytest.approx(expected.mean())
        assert std == pytest.approx(expected.std())
    assert search.best_score_ == results["mean_test_score"].max()
    assert search.best_params_ == results["params"][search.best_index_]
    assert results["rank_test_score"][search.best_index_] == 1


def test_search_predicts_scores_and_repeats_itself(motifs):
    graphs, y = motifs
    search = FDGNNSearchCV(MODEL, **FEW).fit(graphs, y)
    assert len(search.best_estimator_.networks_) == 2
    np.testing.assert_array_equal(search.classes_, [0, 1])
    np.testing.assert_array_equal(search.predict(graphs), search.best_estimator_.predict(graphs))
    assert search.decision_function(graphs).shape == (60,)
    again = FDGNNSearchCV(MODEL, n_jobs=2, **FEW).fit(graphs, y)
    assert again.best_params_ == search.best_params_
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_array_equal(again.cv_results_[name], search.cv_results_[name])
    assert 0 <= search.score(graphs, y) <= 1


def test_search_for_regression_and_other_scores(motifs):
    graphs, y = motifs
    sizes = np.diff(graphs.vertex_offsets) + np.arange(60.0)
    regression = FDGNNSearchCV(FDGNNRegressor(n_units=10), **FEW).fit(graphs, sizes)
    assert regression.predict(graphs).shape == (60,)
    assert not hasattr(regression, "decision_function")
    auc = FDGNNSearchCV(MODEL, scoring="roc_auc", **FEW).fit(graphs, y)
    assert auc.score(graphs, y) == pytest.approx(roc_auc_score(y, auc.decision_function(graphs)))


@pytest.mark.parametrize("n_guesses", [1, 3])
def test_nested_scores_are_those_of_searches_without_the_outer_fold(motifs, n_guesses):
    """What is scored is what is saved: all guesses, averaged, fitted without the outer fold."""
    graphs, y = motifs
    options = FEW | {"n_guesses": n_guesses}
    search = FDGNNSearchCV(MODEL, outer_cv=3, **options).fit(graphs, y)
    assert search.nested_scores_.shape == (3,)
    assert search.nested_score_ == pytest.approx(search.nested_scores_.mean())
    seed = integer_seed(seed_sequence(0), 0)
    splits = StratifiedKFold(3, shuffle=True, random_state=seed).split(y, y)
    fixed = MODEL.get_params() | {"degree": graphs.max_degrees.mean()}
    for score, (train, test) in zip(search.nested_scores_, splits, strict=True):
        inner = FDGNNSearchCV(FDGNNClassifier(**fixed), **options).fit(graphs[train], y[train])
        assert len(inner.best_estimator_.networks_) == n_guesses
        assert inner.best_estimator_.score(graphs[test], y[test]) == pytest.approx(score)
    with pytest.raises(ValueError, match="outer_cv=1"):
        FDGNNSearchCV(MODEL, outer_cv=1).fit(graphs, y)


def test_search_inside_cross_validation(motifs):
    assert cross_val_score(FDGNNSearchCV(MODEL, **FEW), *motifs, cv=2).shape == (2,)


def test_search_refuses_what_it_cannot_do(motifs):
    graphs, y = motifs
    with pytest.raises(ValueError, match="more than once"):
        FDGNNSearchCV(MODEL, cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=2)).fit(graphs, y)
    with pytest.raises(ValueError, match="59 entries"):
        FDGNNSearchCV(MODEL, cv=KFold(3)).fit(graphs, y[:-1])
    with pytest.raises(ValueError, match="n_guesses=0"):
        FDGNNSearchCV(MODEL, n_guesses=0).fit(graphs, y)
    with pytest.raises(ValueError, match="depths"):
        FDGNNSearchCV(MODEL, depths=()).fit(graphs, y)
    with pytest.raises(ValueError, match="finite numbers"):
        FDGNNSearchCV(n_configurations=1, alphas=[float("nan"), 1.0]).fit(graphs, y)
    with pytest.raises(ValueError, match="give alphas="):
        FDGNNSearchCV(MODEL, configurations=[{"alpha": 7.0}]).fit(graphs, y)
    with pytest.raises(ValueError, match="needs probabilities"):
        FDGNNSearchCV(MODEL, scoring="neg_brier_score", **FEW).fit(graphs, y)
    splits = [(np.arange(10), np.arange(30)), (np.arange(10), np.arange(30, 60))]
    with pytest.raises(ValueError, match="all graphs that it does not hold out"):
        FDGNNSearchCV(MODEL, cv=splits).fit(graphs, y)
    with pytest.raises(ValueError, match="one class"):
        FDGNNSearchCV(MODEL, cv=3).fit(graphs, np.zeros(60))


def test_configurations_need_not_have_the_same_parameters(motifs):
    mixed = [{"effective_spectral_radius": 0.5}, {"input_scaling": 0.9}]
    search = FDGNNSearchCV(MODEL, configurations=mixed, n_guesses=1, cv=3).fit(*motifs)
    assert None in search.cv_results_["param_input_scaling"].tolist()


def test_search_shows_progress_when_asked(motifs, capsys):
    FDGNNSearchCV(MODEL, verbose=1, **FEW).fit(*motifs)
    assert "configurations: 3 of 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("y", "n_outer", "n_inner", "message"),
    [
        (np.arange(60) % 2, 1, 10, "at least 2 of each"),
        (np.arange(60) % 2, 0, 3, "at least 2 of each"),
        (np.ones(60, dtype=int), 3, 3, "one class only"),
        (np.arange(60) % 15, 10, 10, "too few"),
    ],
)
def test_folds_that_cannot_be(y, n_outer, n_inner, message):
    with pytest.raises(ValueError, match=message):
        nested_folds(y, n_outer, n_inner, 0)


def test_timed_fits_have_one_thread_of_blas():
    seen = []

    class Watched:
        def fit(self, graphs, y):
            seen.extend(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")
            return self

        def predict(self, graphs):
            return np.zeros(len(graphs))

    graphs, y = make_motif_graphs(20, random_state=0)
    with threadpool_limits(2):
        fit_and_test(Watched, graphs.__getitem__, np.asarray(y), np.arange(20) % 4 - 1)
    assert set(seen) == {1}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("names", ["01", "zba", "ywxab"])
def test_stratified_folds_are_those_of_scikit_learn(names, seed):
    y = np.random.default_rng(seed).choice(list(names), 60)
    splits = StratifiedKFold(4, shuffle=True, random_state=seed).split(y, y)
    folds = stratified(y, 4, seed)
    for f, (_, members) in enumerate(splits):
        np.testing.assert_array_equal(np.flatnonzero(folds == f), members)


def test_configurations_are_drawn_as_by_scikit_learn():
    from scipy.stats import uniform

    ranges = MODEL.search_space | {"n_layers": [1, 2, 3]}
    drawn = draw_configurations(ranges, 5, seed=3)
    known = {name: uniform(0, 1) if hasattr(v, "rvs") else v for name, v in ranges.items()}
    for c, found in enumerate(drawn):
        state = integer_seed(seed_sequence(3), c, 0)
        (expected,) = ParameterSampler(known, 1, random_state=state)
        assert {name: found[name] for name in expected} == expected


def test_equal_scores_share_the_better_rank():
    assert ranks(np.array([0.5, 0.9, 0.9, 0.1])).tolist() == [3, 1, 1, 4]


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("n_guesses", 10**9, "up to 10,000 networks"),
        ("n_guesses", 2.0, "expected an integer, at least 1"),
        ("n_configurations", 10**9, "up to 100,000 configurations"),
        ("estimator", 3, "expected an FDGNNClassifier, an FDGNNRegressor or None"),
        ("estimator", FDGNNClassifier, "expected an FDGNNClassifier, an FDGNNRegressor or None"),
        ("outer_cv", float("inf"), "expected an integer, at least 2, a splitter or None"),
        ("outer_cv", float("nan"), "expected an integer, at least 2, a splitter or None"),
        ("outer_cv", "3", "expected an integer, at least 2, a splitter or None"),
    ],
)
def test_wrong_parameters_of_a_search_are_named(parameter, value, expected):
    graphs, y = make_motif_graphs(20, random_state=0)
    with pytest.raises(ValueError, match=expected) as raised:
        FDGNNSearchCV(**{parameter: value}).fit(graphs, y)
    assert str(raised.value).startswith(f"{parameter}=")
