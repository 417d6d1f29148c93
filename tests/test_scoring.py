"""What models are chosen by, where outputs are cut, and classes that are rare."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    TimeSeriesSplit,
)

from fdgnn import (
    AutoGraphClassifier,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    GraphClassifier,
    GraphRegressor,
    KernelRidge,
    Ridge,
    WLCounts,
    load_model,
    metrics,
    save_model,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.exceptions import ClassImbalanceWarning
from fdgnn.fitting import FitTask, draw_features
from fdgnn.folds import choice_folds, fold_rows
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.targets import class_targets, read_targets
from fdgnn.uncertainty import THRESHOLDS, best_threshold
from models import classifier

WL = WLCounts(n_iterations=1)


@pytest.fixture(scope="module")
def rare():
    """Graphs, of which one in twenty has a motif that is hard to see."""
    graphs, y = make_motif_graphs(240, random_state=1)
    some = np.concatenate([np.flatnonzero(y == 0)[:114], np.flatnonzero(y == 1)[:6]])
    noise = np.random.default_rng(0).permutation(120) < 4
    return graphs[some], np.where(noise, 1 - y[some], y[some])


def out_of_fold(model, graphs, y):
    """Return the alphas, the predictions (a, n, q) with each, and the task of a fitted model."""
    targets = read_targets(y, graphs, classify=True)
    (base,) = model._base_models(model._graph_kind, len(y), model.seed_)
    (X,) = draw_features(base, graphs)
    folds = choice_folds(targets, graphs, model.seed_)[None]
    alphas = base.readout.grid(len(y), True)
    path = base.readout.solve(X, targets.coded, alphas, folds, None)
    return alphas, path.predictions[0], model._scored_task(targets, folds, None)


@pytest.mark.parametrize("scoring", metrics.OF_CLASSES)
def test_alpha_is_the_best_by_the_scoring(rare, scoring):
    graphs, y = rare
    model = GraphClassifier(WL, scoring=scoring, random_state=0).fit(graphs, y)
    alphas, predictions, task = out_of_fold(model, graphs, y)
    scores = task.scored(predictions[None]).validation[0, :, 0]
    assert scores[alphas.index(model.estimators_[0].alpha)] == scores.max()


def test_scorings_choose_differently(rare):
    models = [GraphClassifier(WL, scoring=s, random_state=0).fit(*rare) for s in metrics.OF_CLASSES]
    assert len({model.estimators_[0].alpha for model in models}) > 1


def test_a_rare_class_is_reported_and_ranked(rare):
    graphs, y = rare
    base = AutoGraphClassifier("wl", random_state=0)
    with pytest.warns(ClassImbalanceWarning, match=r"class 1 has \d\.\d % of the graphs.*ROC AUC"):
        told = clone(base).fit(graphs, y)
    asked = clone(base).set_params(scoring="roc_auc").fit(graphs, y)
    np.testing.assert_array_equal(told.outputs(graphs), asked.outputs(graphs))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is chosen, so nothing is told
        FDGNNClassifier(random_state=0).fit(graphs, y)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_threshold_is_the_best_on_out_of_fold_predictions(rare, threshold):
    graphs, y = rare
    base = GraphClassifier(WL, scoring="roc_auc", random_state=0)
    plain, cut = clone(base).fit(graphs, y), clone(base).set_params(threshold=threshold)
    cut.fit(graphs, y)
    alphas, predictions, task = out_of_fold(plain, graphs, y)
    best, codes = predictions[alphas.index(plain.estimators_[0].alpha)], task.targets.values[:, 0]
    own = cut.targets_[0].threshold
    metric = metrics.OF_CLASSES[threshold].metric
    cuts = np.linspace(best.min(), best.max(), 997)
    assert metric(codes, best - own) >= metric(codes, best - cuts[:, None, None]).max()
    np.testing.assert_allclose(cut.outputs(graphs), plain.outputs(graphs) - own)
    np.testing.assert_array_equal(
        cut.predict(graphs),
        plain.classes_[(plain.outputs(graphs)[:, 0] > own).astype(int)],
    )


def test_a_threshold_finds_the_rare_class_and_leaves_probabilities(rare, tmp_path):
    graphs, y = rare
    readout = KernelRidge(alpha=10.0)
    candidates = [(f"{n} iterations", WLCounts(n_iterations=n), readout) for n in (1, 2)]
    base = AutoGraphClassifier(candidates, scoring="roc_auc", probability=True, random_state=0)
    plain = clone(base).fit(graphs, y)
    cut = clone(base).set_params(threshold="balanced_accuracy").fit(graphs, y)
    assert (cut.predict(graphs) == 1).sum() > (plain.predict(graphs) == 1).sum()
    np.testing.assert_allclose(cut.predict_proba(graphs), plain.predict_proba(graphs), atol=1e-12)
    cut = clone(cut).set_params(candidates="wl").fit(graphs, y)
    save_model(cut, tmp_path / "model.fdgnn")
    again = load_model(tmp_path / "model.fdgnn")
    assert again.targets_[0].threshold == cut.targets_[0].threshold
    assert again.scoring == "roc_auc"
    np.testing.assert_array_equal(again.decision_function(graphs), cut.decision_function(graphs))
    np.testing.assert_array_equal(again.predict_proba(graphs), cut.predict_proba(graphs))


def test_f1_cuts_for_the_rarer_class_whatever_its_name():
    rng = np.random.default_rng(0)
    codes = (np.arange(300) % 20 == 0).astype(int)
    outputs = (rng.normal(size=300) + codes - 2)[:, None]
    cut = best_threshold(outputs, codes, metrics.f1)
    found = ((outputs[:, 0] > cut) == 1).sum()
    assert 3 < found < 60
    assert best_threshold(-outputs, 1 - codes, metrics.f1) == pytest.approx(-cut)


def test_thresholds_of_many_outputs_are_tried_at_equal_numbers():
    rng = np.random.default_rng(0)
    codes = (rng.uniform(size=5_000) < 0.05).astype(int)
    outputs = (rng.normal(size=5_000) + 2 * codes)[:, None]
    found = best_threshold(outputs, codes, metrics.balanced_accuracy)
    cuts = np.linspace(-3, 4, 2_000)[:, None, None]
    best = metrics.balanced_accuracy(codes, outputs - cuts).max()
    assert metrics.balanced_accuracy(codes, outputs - found) > best - 0.002
    assert best_threshold(np.array([[1.0], [2.0]]), np.array([1, 1]), metrics.accuracy) == 0.0


@pytest.mark.parametrize(("model", "message"), [
    (GraphClassifier(scoring="rmse"), "scoring='rmse': for classification, expected one of"),
    (GraphRegressor(scoring="f1"), "scoring='f1': for regression, expected one of r2"),
    (FDGNNClassifier(threshold="r2"), "threshold='r2': expected one of"),
])  # fmt: skip
def test_bad_choices_are_told(model, message):
    graphs = make_random_graphs(10, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.fit(graphs, np.arange(10) % 2)


def test_thresholds_are_for_two_classes():
    graphs = make_random_graphs(12, random_state=0)
    with pytest.raises(ValueError, match="`threshold` is for two classes, but y has 3"):
        FDGNNClassifier(threshold="f1").fit(graphs, np.arange(12) % 3)
    search = FDGNNSearchCV(FDGNNClassifier(threshold="f1"), cv=2)
    search.set_params(configurations=[{"no_such": 1}])  # it would be refused when it is searched
    with pytest.raises(ValueError, match="`threshold` is for two classes, but y has 3"):
        search.fit(graphs, np.arange(12) % 3)


@pytest.mark.parametrize("scoring", ["r2", "mae", "spearman"])
def test_regressors_choose_by_their_scoring(scoring):
    graphs = make_random_graphs(40, random_state=0)
    y = np.bincount(graphs.graph_of_vertex).astype(float)
    model = GraphRegressor("wl", scoring=scoring).fit(graphs, y)
    assert model.score(graphs, y) > 0.5


# ---------------------------------------------------------------------- in a search


def few(**options):
    return FDGNNSearchCV(
        FDGNNClassifier(n_units=8, n_estimators=2, random_state=0), n_configurations=2,
        depths=(1, 2), cv=3, outer_cv=3, random_state=0, **options,
    )  # fmt: skip


@pytest.mark.parametrize("search", [
    few(scoring="roc_auc"),
    FDGNNSearchCV(AutoGraphClassifier(random_state=0), cv=3, outer_cv=3,
                  scoring="roc_auc", random_state=0),
], ids=["reservoir", "auto"])  # fmt: skip
def test_nested_outputs_are_those_that_are_scored(search):
    graphs, y = make_motif_graphs(60, random_state=3)
    y = np.where(np.random.default_rng(0).uniform(size=60) < 0.2, 1 - y, y)
    found = search.fit(graphs, y)
    assert found.nested_outputs_.shape == (60, 1)
    assert np.isfinite(found.nested_outputs_).all()
    assert found.nested_score_by("roc_auc") == pytest.approx(found.nested_score_, abs=1e-9)
    splits = StratifiedKFold(3, shuffle=True, random_state=integer_seed(seed_sequence(0), 0))
    folds = [test for _, test in splits.split(y, y)]
    by_hand = [roc_auc_score(y[test], found.nested_outputs_[test, 0]) for test in folds]
    np.testing.assert_allclose(found.nested_scores_, by_hand, atol=1e-9)
    right = [((found.nested_outputs_[test, 0] > 0) == y[test]).mean() for test in folds]
    assert found.nested_score_by("accuracy") == pytest.approx(np.mean(right))
    assert found.score(graphs, y) == pytest.approx(
        roc_auc_score(y, found.decision_function(graphs))
    )


@pytest.mark.parametrize(("classify", "scoring"), [
    (True, "auc"), (True, "spearman"), (False, "roc_auc"), (False, "neg_log_loss")
])  # fmt: skip
def test_a_search_says_which_scores_there_are(classify, scoring):
    graphs, y = make_motif_graphs(20, random_state=3)
    estimator = (FDGNNClassifier if classify else FDGNNRegressor)(n_units=4, random_state=0)
    names = "classification, .* accuracy, " if classify else "regression, .* r2, "
    with pytest.raises(ValueError, match=f"scoring='{scoring}': for {names}.*scikit-learn's"):
        FDGNNSearchCV(estimator, scoring=scoring).fit(graphs, y if classify else y + 0.5)


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "balanced_accuracy", "f1"])
def test_our_metrics_score_a_search_as_scikit_learns_scorers_do(scoring):
    graphs, y = make_motif_graphs(60, random_state=3)
    y = np.where(np.random.default_rng(0).uniform(size=60) < 0.2, 1 - y, y)
    ours, theirs = (
        few(scoring=each, alphas=(1e-4, 1e-2, 1.0)).fit(graphs, y)
        for each in (scoring, get_scorer(scoring))
    )
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12
    )
    assert ours.best_params_ == theirs.best_params_
    assert ours.score(graphs, y) == pytest.approx(theirs.score(graphs, y))


def test_an_ensemble_is_fitted_as_its_search_has_chosen():
    graphs, y = make_motif_graphs(60, random_state=3)
    base = AutoGraphClassifier(probability=True, random_state=0)
    found = FDGNNSearchCV(base, cv=3, scoring="roc_auc", random_state=0).fit(graphs, y)
    results, models = found.cv_results_, found.best_estimator_.estimators_
    best = {}
    for row in np.flatnonzero(results["kept"]):  # the largest alpha of the best, of each model
        name, score = results["param_model"][row], results["mean_test_score"][row]
        if score >= best.get(name, (-1, 0))[0]:
            best[name] = (score, results["param_alpha"][row])
    assert {m.name: m.alpha for m in models} == {name: alpha for name, (_, alpha) in best.items()}
    assert found.best_estimator_.targets_[0].slope > 0


def test_several_scores_are_kept_and_the_first_one_chooses():
    graphs, y = make_motif_graphs(60, random_state=3)
    y = np.where(np.random.default_rng(0).uniform(size=60) < 0.2, 1 - y, y)
    both = few(scoring=["roc_auc", "accuracy"]).fit(graphs, y)
    for name in ("roc_auc", "accuracy"):
        alone = few(scoring=name).fit(graphs, y)
        for column in ("mean_test", "std_test", "rank_test", "split0_test", "split2_test"):
            np.testing.assert_allclose(
                both.cv_results_[f"{column}_{name}"], alone.cv_results_[f"{column}_score"]
            )
        if name == "roc_auc":
            assert both.best_params_ == alone.best_params_
            assert both.best_score_ == alone.best_score_
            assert both.score(graphs, y) == alone.score(graphs, y)
    with pytest.raises(ValueError, match="scoring is empty"):
        few(scoring=[]).fit(graphs, y)


def test_scorers_of_scikit_learn_are_for_one_target():
    graphs, y = make_motif_graphs(60, random_state=3)
    table = class_targets({"a": y, "b": np.arange(60) % 2}, graphs)
    with pytest.raises(ValueError, match="'recall': a scikit-learn scorer is for one target"):
        few(scoring="recall").fit(graphs, table)
    assert few(scoring="f1").fit(graphs, table).best_score_ > 0


def test_more_folds_than_groups_are_refused(rare):
    three = np.arange(len(rare[1])) % 3
    with pytest.raises(ValueError, match="cv=3: there are 2 groups"):  # without an outer fold
        few(scoring="roc_auc").fit(*rare, groups=three)
    with pytest.raises(ValueError, match="outer_cv=3: there are 2 groups, and graphs of one group"):
        few(scoring="roc_auc").fit(*rare, groups=np.arange(len(rare[1])) % 2)


def test_there_are_no_more_inner_folds_than_groups_in_the_training_graphs():
    graphs, y = make_motif_graphs(60, random_state=3)
    targets, groups = class_targets(y, graphs), np.arange(60) % 3
    rows = fold_rows(3, LeaveOneGroupOut(), targets, groups, seed=0)
    np.testing.assert_array_equal(rows.max(axis=1), [1, 1, 1, 2])  # the last row is of all graphs
    for row in rows:
        assert all(len(set(row[groups == group])) == 1 for group in range(3))
    with pytest.raises(ValueError, match="training graphs of one group only"):
        fold_rows(2, LeaveOneGroupOut(), targets, groups // 2, seed=0)


def test_a_rare_class_is_reported_by_a_search_once(rare):
    with pytest.warns(ClassImbalanceWarning, match="class 1 has.*class_weight=") as told:
        found = few().fit(*rare)
    assert len(told) == 1
    heeding = few()
    heeding.estimator = clone(heeding.estimator).set_params(class_weight="balanced")
    with pytest.warns(ClassImbalanceWarning, match="`scoring` overrides this$"):
        heeding.fit(*rare)
    asked = few(scoring="roc_auc").fit(*rare)
    np.testing.assert_array_equal(found.nested_scores_, asked.nested_scores_)


@pytest.mark.parametrize("name", ["reservoir", "wl", "auto"])
def test_scores_have_the_threshold_that_each_outer_fold_chose_without_its_graphs(rare, name):
    graphs, y = rare[0], np.where(np.arange(120) % 7 == 0, 1, rare[1])  # nobody can know these
    base = classifier(name, random_state=0, threshold="balanced_accuracy")
    options = {} if name == "auto" else {"depths": (1,), "configurations": [{}]}
    search = FDGNNSearchCV(base, cv=3, outer_cv=3, random_state=0, scoring="accuracy")
    cut = search.set_params(**options).fit(graphs, y)
    plain = clone(cut).set_params(estimator__threshold=None).fit(graphs, y)
    moved = plain.nested_outputs_ - cut.nested_outputs_
    for fold in range(3):
        tested = cut.nested_folds_[fold] == -1
        assert np.ptp(moved[tested]) < 1e-9
    told = cut.classes_[(cut.nested_outputs_[:, 0] > 0).astype(int)]
    right = [(told == y)[fold == -1].mean() for fold in cut.nested_folds_]
    np.testing.assert_allclose(cut.nested_scores_, right)
    assert cut.nested_score_by("accuracy") == pytest.approx(np.mean(right))
    assert np.abs(moved).max() > 0
    for same in ("roc_auc", "log_loss"):  # neither order nor probabilities are moved
        assert cut.nested_score_by(same) == pytest.approx(plain.nested_score_by(same))


def test_the_threshold_of_an_outer_fold_is_the_best_on_its_inner_folds(rare):
    graphs, y = rare
    base = FDGNNClassifier(n_layers=1, degree=5.0, alpha=0.1, threshold="f1")
    found = FDGNNSearchCV(
        base, cv=3, outer_cv=3, random_state=0, depths=(1,), alphas=(0.1,),
        configurations=[{"random_state": 5}], scoring="accuracy",
    ).fit(graphs, y)  # fmt: skip
    plain = clone(base).set_params(threshold=None, random_state=5)
    codes = np.searchsorted(found.classes_, y)
    for row in found.nested_folds_:
        held_out = np.zeros((len(y), 1))
        for inner in range(3):
            model = clone(plain).fit(graphs, y, (row >= 0) & (row != inner))
            held_out[row == inner] = model.outputs(graphs)[row == inner]
        train, test = row >= 0, row == -1
        at = best_threshold(held_out[train], codes[train], metrics.f1)
        alone = clone(plain).fit(graphs, y, train).outputs(graphs)
        np.testing.assert_allclose(found.nested_outputs_[test], alone[test] - at, atol=1e-5)


# ---------------------------------------------------------------------- groups and time


@pytest.mark.parametrize("cv", [3, GroupKFold(3)], ids=["number", "splitter"])
@pytest.mark.parametrize("name", ["reservoir", "auto"])
def test_groups_are_held_out_together(cv, name, monkeypatch):
    graphs, y = make_motif_graphs(60, random_state=3)
    groups = np.array([f"family {i % 12}" for i in range(60)])
    rows = []

    def kept(targets, folds, *options):
        rows.append(folds)
        return FitTask(targets, folds, *options)

    monkeypatch.setattr("fdgnn.estimators.base.FitTask", kept)
    base = classifier(name, random_state=0)
    options = {} if name == "auto" else {"n_configurations": 1, "depths": (1,)}
    FDGNNSearchCV(base, cv=cv, outer_cv=3, random_state=0, **options).fit(graphs, y, groups=groups)
    (folds,) = rows
    assert folds.shape == (4, 60)
    for fold in folds:
        assert all(len(set(fold[groups == name])) == 1 for name in set(groups))
    tested = (folds[:3] == -1).sum(axis=0)
    assert (tested == 1).all()
    assert set(folds[3]) == {0, 1, 2}


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_graphs_without_a_group_are_told(missing):
    graphs, y = make_motif_graphs(40, random_state=3)
    groups = [missing if i < 4 else i % 10 for i in range(40)]
    search = FDGNNSearchCV(n_configurations=1, depths=(1,), cv=3, random_state=0)
    with pytest.warns(UserWarning, match="4 graphs have no group"):
        search.fit(graphs, y, groups=groups)


def test_of_many_graphs_one_outer_fold_is_scored():
    from fdgnn.folds import LastFold

    groups = np.arange(60) // 6
    targets = read_targets(np.arange(60) % 2, make_random_graphs(60, random_state=0), True)
    for own in (None, groups):
        whole = fold_rows(3, 4, targets, own, seed=0)
        last = fold_rows(3, LastFold(4), targets, own, seed=0)
        np.testing.assert_array_equal(last, whole[-2:])  # the last outer fold, and all graphs
    in_time = fold_rows(KFold(3), LastFold(TimeSeriesSplit(4)), targets, seed=0)
    np.testing.assert_array_equal(np.flatnonzero(in_time[0] == -1), np.arange(48, 60))


def test_what_a_split_in_time_leaves_out_is_not_scored():
    graphs, y = make_motif_graphs(60, random_state=3)
    found = few().set_params(outer_cv=TimeSeriesSplit(3)).fit(graphs, y)
    known = np.isfinite(found.nested_outputs_[:, 0])
    np.testing.assert_array_equal(known, np.arange(60) >= 15)
    right = (found.nested_outputs_[:, 0] > 0) == y
    by_fold = [right[start : start + 15].mean() for start in (15, 30, 45)]
    np.testing.assert_allclose(found.nested_scores_, by_fold)


@pytest.mark.parametrize(("groups", "message"), [
    (np.zeros(60), "all graphs have one group, 0.0, and graphs of one are held out together"),
    (np.arange(59), r"groups has shape \(59,\), expected \(60,\)"),
])  # fmt: skip
def test_bad_groups_are_told(groups, message):
    graphs, y = make_motif_graphs(60, random_state=3)
    with pytest.raises(ValueError, match=message):
        few().fit(graphs, y, groups=groups)


def test_folds_with_one_class_are_not_ranked():
    graphs, y = make_motif_graphs(60, random_state=3)
    order = np.argsort(y, kind="stable")
    cv = KFold(3)  # not shuffled: the first and the last fold have one class only
    found = few(scoring="roc_auc").set_params(cv=cv).fit(graphs[order], y[order])
    assert np.isfinite(found.best_score_)


def test_a_scoring_without_a_choice_is_an_error(rare):
    graphs, y = rare
    model = GraphClassifier("wl", Ridge(alpha=1.0), scoring="roc_auc", random_state=0)
    with pytest.raises(ValueError, match=r"scoring='roc_auc' has no effect, because .* alpha"):
        model.fit(graphs, y)
    found = FDGNNSearchCV(model, alphas=[0.1, 1.0], cv=3, random_state=0).fit(graphs, y)
    again = clone(found.best_estimator_).fit(graphs, y)  # its alpha is given, without a scoring
    np.testing.assert_allclose(again.outputs(graphs), found.best_estimator_.outputs(graphs))
