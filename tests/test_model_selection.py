"""Hyperparameter search, folds and scorers: the same as fitting everything one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import (
    KFold,
    ParameterSampler,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline

from fdgnn import (
    AutoGraphClassifier,
    AutoGraphRegressor,
    Encoder,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
)
from fdgnn.datasets import make_cycles, make_motif_graphs, make_random_graphs
from fdgnn.folds import choice_folds, nested_folds, stratified
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.selection.scoring import scorer_metric
from fdgnn.selection.search import draw_configurations
from fdgnn.targets import read_targets

MODEL = FDGNNClassifier(n_units=10, n_estimators=2, effective_spectral_radius=0.5, random_state=3)
FEW = {"n_configurations": 3, "cv": 3, "random_state": 0}


@pytest.fixture(scope="module")
def motifs():
    return make_motif_graphs(60, random_state=0)


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
    ranges = {**GraphReservoir.search_space(), "n_layers": [1, 2, 3]}
    assert draw_configurations(ranges, 10, 0)[:4] == draw_configurations(ranges, 4, 0)
    assert len({seed for seed, _ in draw_configurations(ranges, 50, 0)}) == 50


@pytest.mark.parametrize("kind", ["classes", "numbers", "several", "many"])
def test_a_fit_chooses_by_five_folds(kind):
    n = 12_000 if kind == "many" else 100
    graphs = make_random_graphs(100, random_state=0)[np.arange(n) % 100]
    y = np.arange(n) % 2 if kind != "numbers" else np.arange(n) / 2
    y = np.stack([y, y[::-1]], axis=1) if kind == "several" else y
    targets = read_targets(y, graphs, kind != "numbers")
    folds = choice_folds(targets, graphs, seed_sequence(0))
    assert set(folds) == set(range(5))
    assert np.bincount(folds).min() > 0.15 * n
    np.testing.assert_array_equal(folds, choice_folds(targets, graphs, seed_sequence(0)))
    assert (folds != choice_folds(targets, graphs, seed_sequence(1))).any()
    if kind == "many":  # equal graphs are held out together
        assert all(len(set(folds[i::100])) == 1 for i in range(100))


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


@pytest.mark.parametrize("n_estimators", [1, 3])
def test_search_finds_what_cross_validation_finds(motifs, n_estimators):
    graphs, y = motifs
    base = clone(MODEL).set_params(n_estimators=n_estimators)
    search = FDGNNSearchCV(base, cv=StratifiedKFold(3), configurations=[
        {"effective_spectral_radius": 0.3, "random_state": 4},
        {"effective_spectral_radius": 0.8, "random_state": 5},
    ], depths=(1, 3), alphas=(1e-2, 1.0)).fit(graphs, y)  # fmt: skip
    results = search.cv_results_
    assert len(results["params"]) == 2 * 2 * 2
    for row, params in enumerate(results["params"]):
        model = clone(base).set_params(**params, degree=graphs.max_degrees.mean())
        expected = cross_val_score(model, graphs, y, cv=StratifiedKFold(3))
        found = [results[f"split{f}_test_score"][row] for f in range(3)]
        np.testing.assert_allclose(found, expected)
        assert results["mean_test_score"][row] == pytest.approx(expected.mean())
        assert results["std_test_score"][row] == pytest.approx(expected.std())
    assert (results["mean_fit_time"] > 0).all()
    assert search.best_score_ == results["mean_test_score"].max()
    assert search.best_params_ == results["params"][search.best_index_]
    assert results["rank_test_score"][search.best_index_] == 1


def test_search_predicts_scores_and_repeats_itself(motifs):
    graphs, y = motifs
    search = FDGNNSearchCV(MODEL, **FEW).fit(graphs, y)
    assert len(search.best_estimator_.estimators_) == 2
    assert set(search.best_params_) == {
        "alpha", "effective_spectral_radius", "input_scaling", "inter_layer_scaling", "n_layers",
    }  # fmt: skip
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


@pytest.mark.parametrize("n_estimators", [1, 3])
def test_nested_scores_are_those_of_searches_without_the_outer_fold(motifs, n_estimators):
    """What is scored is what is saved: the average of all random initializations."""
    graphs, y = motifs
    base = clone(MODEL).set_params(n_estimators=n_estimators)
    search = FDGNNSearchCV(base, outer_cv=3, **FEW).fit(graphs, y)
    assert search.nested_scores_.shape == (3,)
    assert search.nested_score_ == pytest.approx(search.nested_scores_.mean())
    seed = integer_seed(seed_sequence(0), 0)
    splits = StratifiedKFold(3, shuffle=True, random_state=seed).split(y, y)
    fixed = clone(base).set_params(degree=graphs.max_degrees.mean())
    for score, (train, test) in zip(search.nested_scores_, splits, strict=True):
        inner = FDGNNSearchCV(fixed, **FEW).fit(graphs[train], y[train])
        assert len(inner.best_estimator_.estimators_) == n_estimators
        assert inner.best_estimator_.score(graphs[test], y[test]) == pytest.approx(score)
    with pytest.raises(ValueError, match="outer_cv=1"):
        FDGNNSearchCV(MODEL, outer_cv=1).fit(graphs, y)


def test_search_inside_cross_validation(motifs):
    assert cross_val_score(FDGNNSearchCV(MODEL, **FEW), *motifs, cv=2).shape == (2,)


def test_search_rejects_what_it_cannot_do(motifs):
    graphs, y = motifs
    with pytest.raises(ValueError, match="more than once"):
        FDGNNSearchCV(MODEL, cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=2)).fit(graphs, y)
    with pytest.raises(ValueError, match="59 entries"):
        FDGNNSearchCV(MODEL, cv=KFold(3)).fit(graphs, y[:-1])
    with pytest.raises(ValueError, match="n_estimators=0"):
        FDGNNSearchCV(FDGNNClassifier(n_estimators=0)).fit(graphs, y)
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
    search = FDGNNSearchCV(MODEL, configurations=mixed, cv=3).fit(*motifs)
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

    ranges = GraphReservoir.search_space() | {"n_layers": [1, 2, 3]}
    drawn = draw_configurations(ranges, 5, seed=3)
    known = {name: uniform(0, 1) if hasattr(v, "rvs") else v for name, v in ranges.items()}
    for c, (_, found) in enumerate(drawn):
        state = integer_seed(seed_sequence(3), c, 0)
        (expected,) = ParameterSampler(known, 1, random_state=state)
        assert {name: found[name] for name in expected} == expected


def test_equal_scores_share_the_better_rank(motifs):
    results = FDGNNSearchCV(MODEL, **FEW).fit(*motifs).cv_results_
    scores, ranks = results["mean_test_score"], results["rank_test_score"]
    assert len(set(scores)) < len(scores)
    for score, rank in zip(scores, ranks, strict=True):
        assert rank == 1 + (scores > score).sum()


def test_among_equals_the_shallowest_and_most_regularized_wins():
    """All candidates predict the class of all graphs, which are alike."""
    graphs = make_cycles([5] * 30)
    search = FDGNNSearchCV(MODEL, alphas=(0.1, 10.0, 1.0), **FEW)
    search.fit(graphs, np.arange(30) % 3 == 0)
    assert (search.best_params_["n_layers"], search.best_params_["alpha"]) == (1, 10.0)


def test_a_pipeline_is_one_clear_error(motifs):
    pipeline = make_pipeline(GraphReservoir(), LogisticRegression())
    with pytest.raises(ValueError, match=r"^estimator=Pipeline.* GridSearchCV"):
        FDGNNSearchCV(pipeline).fit(*motifs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": AutoGraphClassifier(), "depths": (1, 2)}, r"depths=\(1, 2\) has no effect"),
        ({"estimator": GraphClassifier("union"), "depths": (1,)}, r"depths=\(1,\) has no effect"),
        (
            {"estimator": GraphClassifier("wl"), "n_configurations": 5},
            "n_configurations=5 has",
        ),
        ({"configurations": [{}], "n_configurations": 5}, "n_configurations has no effect beside"),
        (
            {"configurations": [{}], "param_distributions": {"tol": [1]}},
            "param_distributions has",
        ),
        ({"work_dir": "parts"}, "work_dir needs a `random_state`"),
        ({"configurations": [{"n_bins": 3}]}, "Invalid parameter 'n_bins'"),
    ],
)
def test_options_without_effect_are_errors(motifs, options, message):
    with pytest.raises(ValueError, match=message):
        FDGNNSearchCV(**options).fit(*motifs)


@pytest.mark.parametrize("encoder", ["wl", WLCounts(counts="sum")])
def test_iterations_of_an_encoder_are_searched_as_depths(encoder):
    graphs = make_random_graphs(60, random_state=0)
    y = np.arange(60) % 2
    search = FDGNNSearchCV(GraphClassifier(encoder), depths=(0, 2), cv=3, random_state=0)
    search.fit(graphs, y)
    assert set(search.best_params_) == {"encoder__n_iterations", "readout__alpha"}
    assert set(search.cv_results_["param_encoder__n_iterations"]) == {0, 2}
    again = clone(GraphClassifier(encoder)).set_params(
        readout=search.best_estimator_.readout,
        encoder__n_iterations=search.best_params_["encoder__n_iterations"],
    )
    np.testing.assert_array_equal(
        again.fit(graphs, y).outputs(graphs), search.best_estimator_.outputs(graphs)
    )


def test_what_was_chosen_is_fitted_to_other_graphs():
    graphs = make_random_graphs(60, random_state=0)
    y = np.bincount(graphs.graph_of_vertex, graphs.labels == 0) > 4
    for base in (MODEL, AutoGraphClassifier("wl", random_state=0)):
        few = FEW if base is MODEL else {"cv": 3, "random_state": 0}
        search = FDGNNSearchCV(base, **few).fit(graphs[:40], y[:40])
        chosen = [(m.name, m.alpha) for m in search.best_estimator_.estimators_]
        search.refit(graphs, y)
        assert set((m.name, m.alpha) for m in search.best_estimator_.estimators_) <= set(chosen)


# ---------------------------------------------------------------------- scikit-learn's contract

ESTIMATORS = (
    AutoGraphClassifier, AutoGraphRegressor, FDGNNClassifier, FDGNNRegressor, GraphClassifier,
    GraphRegressor,
)  # fmt: skip


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_models_have_few_parameters_and_public_names(motifs, kind):
    graphs, y = motifs
    model = kind(random_state=0)
    assert len(model.get_params()) <= (15 if kind.__name__.startswith("Auto") else 20)
    model.set_params(**{model._uncertainty: True}).fit(graphs, y)
    assert hasattr(model, "partial_fit") == kind.__name__.startswith("FDGNN")
    names = {name for name in dir(model) if not name.startswith("_")}
    assert len(names) <= 50, sorted(names - set(model.get_params()))


def test_only_metadata_of_graphs_is_routed():
    kinds = (*ESTIMATORS, FDGNNSearchCV, Encoder, EncoderUnion, GraphReservoir, WLCounts)
    requests = {
        (method, name)
        for kind in kinds
        for method, wanted in vars(kind()._get_metadata_request()).items()
        if method != "owner"
        for name in wanted.requests
    }
    assert requests <= {("fit", "sample_weight"), ("fit", "groups"), ("score", "sample_weight")}
    assert not any(hasattr(kind, "set_split_request") for kind in kinds)


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("n_configurations", 2.0, "expected an integer, at least 1"),
        ("n_configurations", 10**9, "up to 100,000 configurations"),
        ("estimator", 3, "expected an estimator of this library"),
        ("estimator", FDGNNClassifier, "expected an estimator of this library"),
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


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("depths", 3, r"^depths=3: expected a list"),
        ("alphas", 3, r"^alphas=3: expected a list"),
        ("depths", [], r"^depths is empty"),
        ("depths", [0], r"^n_layers=0: expected an integer, at least 1"),
        ("depths", range(1, 10**9), r"^n_layers=1001: models of up to 1,000 layers"),
        ("configurations", 3, r"^configurations=3: expected a list"),
        ("configurations", [3], r"^3: expected parameters with their values"),
        ("param_distributions", 3, r"^3: expected parameters with their values"),
    ],
)
def test_what_cannot_be_searched_is_told_before_the_search(parameter, value, expected):
    graphs, y = make_motif_graphs(20, random_state=0)
    with pytest.raises(ValueError, match=expected):
        FDGNNSearchCV(**{parameter: value}, random_state=0).fit(graphs, y)
