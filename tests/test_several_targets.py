"""Several targets with missing values: one model with outputs for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.base import clone
from sklearn.model_selection import KFold

from fdgnn import (
    AutoGraphClassifier,
    AutoGraphRegressor,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    GraphClassifier,
    explain,
    load_model,
    model_info,
    save_model,
)
from fdgnn.datasets import make_random_graphs
from fdgnn.exceptions import ClassImbalanceWarning
from fdgnn.folds import balanced_folds
from fdgnn.targets import (
    class_targets,
    number_targets,
    read_targets,
    targets_like,
    winning_class,
)
from model_file_tools import rejected, with_record
from models import NAMES, classifier, regressor

pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

N = 80
GRAPHS = make_random_graphs(N, random_state=0)
ZEROS = np.bincount(GRAPHS.graph_of_vertex, GRAPHS.labels == 0)
SIZES = np.diff(GRAPHS.vertex_offsets)
CLASSES = np.stack([ZEROS > 4, np.median(SIZES) < SIZES, (ZEROS + SIZES) % 3], axis=1).astype(float)
NUMBERS = np.stack([ZEROS, 100.0 * SIZES], axis=1).astype(float)
UNKNOWN = np.random.default_rng(0).random((N, 3)) < 0.2
PARTLY = np.where(UNKNOWN, np.nan, CLASSES)
SMALL = {"n_units": 8, "n_layers": 2, "random_state": 0}


# ---------------------------------------------------------------------- what the targets are


def test_columns_have_names_classes_and_known_values():
    table = {
        "active": [1, 0, None, 1],
        "color": ["red", None, "blue", "red"],
        "level": [2.0, 0.0, np.nan, 1.0],
    }
    found = class_targets(table, GRAPHS[:4])
    assert found.names == ("active", "color", "level")
    assert [each.tolist() for each in found.classes] == [[0, 1], ["blue", "red"], [0, 1, 2]]
    assert found.values.tolist() == [[1, 1, 2], [0, -1, 0], [-1, 0, -1], [1, 1, 1]]
    assert [target.columns for target in found.each] == [slice(0, 1), slice(1, 2), slice(2, 5)]
    assert np.isnan(found.coded).tolist() == [
        [False, False, False, False, False],
        [False, True, False, False, False],
        [True, False, True, True, True],
        [False, False, False, False, False],
    ]
    np.testing.assert_array_equal(found.coded[0], [1, 1, -1, -1, 1])
    assert found[[2, 3]].values.tolist() == [[-1, 0, -1], [1, 1, 1]]


def test_one_target_is_a_table_of_one_column():
    found = read_targets(CLASSES[:, 0], GRAPHS, classify=True)
    assert (found.flat, found.n_outputs, found.values.shape) == (True, 1, (N, 1))
    assert read_targets(found, GRAPHS, classify=True) is found
    column = FDGNNClassifier(**SMALL).fit(GRAPHS, {"a": CLASSES[:, 0]})
    flat = FDGNNClassifier(**SMALL).fit(GRAPHS, CLASSES[:, 0])
    np.testing.assert_array_equal(column.outputs(GRAPHS), flat.outputs(GRAPHS))
    assert [each.name for each in column.targets_] == ["a"]
    assert [each.name for each in flat.targets_] == [""]


def test_only_one_list_is_flat():
    lists = CLASSES[:, 0].tolist(), CLASSES[:, 1].tolist()
    assert class_targets(lists[0], GRAPHS).flat
    for table in (
        CLASSES[:, :2],
        np.transpose(lists).tolist(),
        dict(zip("ab", lists, strict=True)),
    ):
        found = class_targets(table, GRAPHS)
        assert (found.flat, len(found.names)) == (False, 2)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([None] * N, "target 'b' is unknown for all graphs; leave it out"),
        ([1] * 9 + [None] * (N - 9), "target 'b' has one value only, 1, in the 9 graphs for which"),
        ([0.5] + [1.0] * (N - 1), "target 'b' has the value 0.5, but classes are whole numbers"),
        (["x"] + [1] * (N - 1), "target 'b' mixes types of class labels: str"),
        ([True] + [1, 0] * (N // 2 - 1) + [2], "target 'b' mixes types of class labels: bool"),
        ([1] + [0] * (N - 1), "target 'b' has 1 known graphs of 1, too few to be held out"),
    ],
)
def test_targets_that_cannot_be_learned_are_one_line(column, message):
    values = np.empty(N, dtype=object)
    values[:] = column
    with pytest.raises(ValueError, match=message) as caught:
        FDGNNClassifier(**SMALL).fit(GRAPHS, {"a": CLASSES[:, 0], "b": values})
    assert "\n" not in str(caught.value)


def test_numbers_that_are_none_or_constant_are_one_line():
    with pytest.raises(ValueError, match="target 'b' has text, such as 'x', but a regressor"):
        FDGNNRegressor(**SMALL).fit(GRAPHS, {"a": ZEROS, "b": ["x"] * N})
    with pytest.raises(ValueError, match=r"target 'b' of graph 0 is infinite"):
        FDGNNRegressor(**SMALL).fit(GRAPHS, {"a": ZEROS, "b": [np.inf] + [1.0] * (N - 1)})
    with pytest.raises(ValueError, match=r"target 'b' has one value only, 3.0"):
        FDGNNRegressor(**SMALL).fit(GRAPHS, {"a": ZEROS, "b": [3.0] * N})


class Missing:
    """As pandas' NA: equal to nothing, and not even unequal."""

    def __eq__(self, other):
        return self

    __hash__ = None


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, Missing()])
def test_what_is_missing_beside_text_is_no_class(missing):
    column = ["yes", missing, "no"] + ["yes"] * (N - 3)
    for given in (column, np.array(column, dtype=object)):
        found = class_targets({"a": given, "b": [1, 0] * (N // 2)}, GRAPHS)
        assert found.classes[0].tolist() == ["no", "yes"]
        assert found.known[:, 0].tolist() == [True, False] + [True] * (N - 2)
        with pytest.raises(ValueError, match=r"y\[1\] is missing; leave such graphs out"):
            class_targets(given, GRAPHS)
    beside = GRAPHS.with_descriptors({"a": column}).descriptors.column("a")
    assert beside[:3].tolist() == ["yes", None, "no"]
    table = [[value, "c" if i % 2 else "d"] for i, value in enumerate(column)]
    assert class_targets(table, GRAPHS).classes[0].tolist() == ["no", "yes"]
    assert class_targets(["yes", "no"] * (N // 2), GRAPHS).classes[0].dtype.kind == "U"


def test_weights_of_another_length_are_one_line():
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\), expected \(80,\)"):
        FDGNNClassifier(**SMALL).fit(GRAPHS, PARTLY, sample_weight=[1, 1, 1])


# ---------------------------------------------------------------------- folds


def test_every_class_of_every_target_is_spread_over_the_folds():
    several = class_targets(PARTLY, GRAPHS)
    fold = balanced_folds(several, 5, np.random.SeedSequence(0))
    assert (np.bincount(fold, minlength=5) > 0).all()
    for t, classes in enumerate(several.classes):
        for c in range(len(classes)):
            counts = np.bincount(fold[several.values[:, t] == c], minlength=5)
            assert counts.max() - counts.min() <= 3
            assert (counts > 0).sum() >= 2


def test_few_known_numbers_are_in_different_folds():
    column = np.full(N, np.nan)
    column[[3, 9]] = [1.0, 2.0]
    several = number_targets({"a": ZEROS, "b": column}, GRAPHS)
    fold = balanced_folds(several, 10, np.random.SeedSequence(0))
    assert fold[3] != fold[9]
    assert (fold >= 0).all()


# ---------------------------------------------------------------------- models


def test_with_a_given_alpha_each_target_is_that_of_its_known_graphs():
    model = FDGNNClassifier(alpha=0.1, **SMALL).fit(GRAPHS, PARTLY)
    features = model.estimators_[0].features(GRAPHS)
    coded = class_targets(PARTLY, GRAPHS).coded
    for j in range(coded.shape[1]):
        known = ~np.isnan(coded[:, j])
        alone = linear_model.Ridge(alpha=0.1).fit(features[known], coded[known, j])
        np.testing.assert_allclose(model.outputs(GRAPHS)[:, j], alone.predict(features), atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_a_table_and_those_of_a_model_for_each_target(name):
    model = classifier(name, probability=True, random_state=0).fit(GRAPHS, PARTLY)
    found, chances = model.predict(GRAPHS), model.predict_proba(GRAPHS)
    assert found.shape == (N, 3)
    assert [each.tolist() for each in model.classes_] == [[0, 1], [0, 1], [0, 1, 2]]
    assert [each.shape for each in chances] == [(N, 2), (N, 2), (N, 3)]
    for t in range(3):
        alone = model.for_target(t)
        np.testing.assert_array_equal(alone.predict(GRAPHS), found[:, t])
        np.testing.assert_allclose(alone.predict_proba(GRAPHS), chances[t])
        np.testing.assert_array_equal(alone.classes_[chances[t].argmax(axis=1)], found[:, t])
    assert model.score(GRAPHS, PARTLY) > 0.8


def test_alpha_is_chosen_for_each_target():
    model = GraphClassifier("wl").fit(GRAPHS, PARTLY)
    alpha = model.estimators_[0].alpha
    assert len(alpha) == 3
    assert [model.for_target(t).estimators_[0].alpha for t in range(3)] == list(alpha)


def test_complete_numbers_of_a_reservoir_are_those_of_each_alone_bit_by_bit():
    both = FDGNNRegressor(**SMALL).fit(GRAPHS, NUMBERS)
    assert both.predict(GRAPHS).shape == (N, 2)
    again = FDGNNRegressor(**SMALL).fit(GRAPHS, {"zeros": NUMBERS[:, 0], "size": NUMBERS[:, 1]})
    np.testing.assert_array_equal(again.predict(GRAPHS), both.predict(GRAPHS))
    for t, name in enumerate(("zeros", "size")):
        alone = FDGNNRegressor(**SMALL).fit(GRAPHS, NUMBERS[:, t])
        np.testing.assert_allclose(again.for_target(name).predict(GRAPHS), alone.predict(GRAPHS))


def test_unknown_numbers_do_not_matter_to_the_other_target():
    partly = NUMBERS.copy()
    partly[::5, 0] = np.nan
    one, other = (FDGNNRegressor(**SMALL).fit(GRAPHS, y) for y in (NUMBERS, partly))
    np.testing.assert_allclose(one.predict(GRAPHS)[:, 1], other.predict(GRAPHS)[:, 1])
    assert abs(one.predict(GRAPHS)[:, 0] - other.predict(GRAPHS)[:, 0]).max() > 1e-9
    assert other.score(GRAPHS, partly) > 0.5


def test_a_graph_of_which_nothing_is_known_is_left_out():
    partly = PARTLY.copy()
    partly[:4] = np.nan
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, partly)
    rest = FDGNNClassifier(**SMALL).fit(GRAPHS[4:], partly[4:])
    np.testing.assert_allclose(model.outputs(GRAPHS), rest.outputs(GRAPHS))


def test_class_weights_are_those_of_each_target_and_thresholds_move_answers():
    two = PARTLY[:, :2]
    plain = FDGNNClassifier(**SMALL).fit(GRAPHS, two)
    weighted = FDGNNClassifier(class_weight="balanced", **SMALL).fit(GRAPHS, two)
    assert abs(weighted.outputs(GRAPHS) - plain.outputs(GRAPHS)).max() > 1e-6
    cut = FDGNNClassifier(threshold="f1", probability=True, **SMALL).fit(GRAPHS, two)
    cuts = [target.threshold for target in cut.targets_]
    np.testing.assert_allclose(cut.outputs(GRAPHS), plain.outputs(GRAPHS) - cuts, atol=1e-9)
    for t, one in enumerate(map(cut.for_target, (0, 1))):
        np.testing.assert_allclose(one.outputs(GRAPHS)[:, 0], cut.outputs(GRAPHS)[:, t])
    with pytest.raises(ValueError, match="`threshold` is for two classes, but target '2' has 3"):
        FDGNNClassifier(threshold="f1", **SMALL).fit(GRAPHS, PARTLY)


def test_text_and_numbers_are_answered_as_they_were_given():
    table = {"a": np.where(ZEROS > 4, "many", "few"), "b": CLASSES[:, 1]}
    found = FDGNNClassifier(**SMALL).fit(GRAPHS, table).predict(GRAPHS)
    assert found.dtype == object
    assert set(found[:, 0]) <= {"many", "few"}
    assert set(found[:, 1]) <= {0, 1}


def test_names_and_numbers_choose_a_target():
    model = FDGNNRegressor(**SMALL).fit(GRAPHS, {"zeros": NUMBERS[:, 0], "size": NUMBERS[:, 1]})
    one, other = model.for_target("size"), model.for_target(1)
    np.testing.assert_array_equal(one.predict(GRAPHS), other.predict(GRAPHS))
    with pytest.raises(ValueError, match="target='weight': not a target of the model, which has"):
        model.for_target("weight")
    with pytest.raises(ValueError, match="the model was fitted on one target"):
        FDGNNRegressor(**SMALL).fit(GRAPHS, ZEROS).for_target(0)
    assert len(clone(model).fit(GRAPHS, ZEROS).targets_) == 1


def test_classes_that_the_model_does_not_know_are_wrong_answers():
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, CLASSES[:, :2])
    truth = CLASSES[:, :2].copy()
    truth[0, 0] = 7
    found = targets_like(model.targets_, truth, GRAPHS)
    assert found.values[0, 0] == 2
    known = model.score(GRAPHS, CLASSES[:, :2])
    right = model.predict(GRAPHS)[0, 0] == CLASSES[0, 0]
    assert model.score(GRAPHS, truth) == pytest.approx(known - right / N / 2)


# ---------------------------------------------------------------------- explained and saved


@pytest.mark.parametrize("kind", ["reservoir", "auto"])
def test_one_target_is_explained_by_its_name(kind):
    table = {"a": PARTLY[:, 0], "b": PARTLY[:, 1], "c": PARTLY[:, 2]}
    model = classifier(kind, random_state=0).fit(GRAPHS, table)
    outputs = model.outputs(GRAPHS[:4])
    explained = explain(model, GRAPHS[:4], target=("b", 1))
    for found, score in zip(explained, outputs[:, 1], strict=True):
        assert found.target == 1
        assert found.score == pytest.approx(score)
        assert found.vertices.sum() == pytest.approx(found.score - found.base_score, abs=1e-9)
    predicted = [found.target for found in explain(model, GRAPHS[:4], target="c")]
    assert predicted == model.predict(GRAPHS[:4])[:, 2].tolist()
    with pytest.raises(ValueError, match="the model has 3 targets; give one as target"):
        explain(model, GRAPHS[:4])
    with pytest.raises(ValueError, match="target='d': not a target of the model"):
        explain(model, GRAPHS[:4], target="d")


def test_numbers_are_explained_by_name_or_number():
    model = FDGNNRegressor(**SMALL).fit(GRAPHS, {"zeros": ZEROS, "size": SIZES})
    for target in ("size", 1):
        found = explain(model, GRAPHS[:3], target=target)
        assert [one.target for one in found] == [1, 1, 1]
        np.testing.assert_allclose([f.score for f in found], model.predict(GRAPHS[:3])[:, 1])


@pytest.mark.parametrize("options", [{}, {"probability": True}, {"threshold": "f1"}])
@pytest.mark.parametrize("kind", ["reservoir", "wl", "auto"])
def test_one_file_has_all_targets(kind, options, tmp_path):
    text = np.array(["no", "yes"])[CLASSES[:, 1].astype(int)]
    table = {"a": PARTLY[:, 0], "b": np.where(UNKNOWN[:, 1], None, text)}
    model = classifier(kind, random_state=0, **options).fit(GRAPHS, table)
    path = tmp_path / "model.fdgnn"
    save_model(model, path)
    loaded = load_model(path)
    assert loaded.outputs(GRAPHS).tobytes() == model.outputs(GRAPHS).tobytes()
    np.testing.assert_array_equal(loaded.predict(GRAPHS), model.predict(GRAPHS))
    assert [each.tolist() for each in loaded.classes_] == [[0, 1], ["no", "yes"]]
    assert [m.alpha for m in loaded.estimators_] == [m.alpha for m in model.estimators_]
    if "probability" in options:
        pairs = zip(loaded.predict_proba(GRAPHS), model.predict_proba(GRAPHS), strict=True)
        for one, other in pairs:
            np.testing.assert_array_equal(one, other)
    alone = tmp_path / "b.fdgnn"
    save_model(loaded.for_target("b"), alone)
    np.testing.assert_array_equal(load_model(alone).predict(GRAPHS), model.predict(GRAPHS)[:, 1])
    assert [target.name for target in model_info(path).targets] == ["a", "b"]
    assert model_info(alone).evaluation is None


def test_a_file_of_numbers_has_all_targets(tmp_path):
    path = tmp_path / "model.fdgnn"
    model = AutoGraphRegressor(random_state=0).fit(GRAPHS, {"a": ZEROS, "b": SIZES})
    save_model(model, path)
    loaded = load_model(path)
    np.testing.assert_array_equal(loaded.predict(GRAPHS), model.predict(GRAPHS))
    alone = loaded.for_target("b").predict(GRAPHS)
    np.testing.assert_allclose(alone, model.predict(GRAPHS)[:, 1], rtol=1e-12)


def test_sets_and_intervals_are_those_of_each_target_also_in_a_file(tmp_path):
    path = tmp_path / "model.fdgnn"
    model = FDGNNClassifier(probability=True, **SMALL).fit(GRAPHS, PARTLY)
    save_model(model, path)
    for one in (model, load_model(path)):
        sets = one.predict_set(GRAPHS, 0.8)
        assert [each.shape for each in sets] == [(N, 2), (N, 2), (N, 3)]
        for t, each in enumerate(sets):
            np.testing.assert_array_equal(each, model.for_target(t).predict_set(GRAPHS, 0.8))
            known = ~np.isnan(PARTLY[:, t])
            truth = PARTLY[known, t].astype(int)
            assert each[known][np.arange(known.sum()), truth].mean() > 0.7
    partly = NUMBERS.copy()
    partly[::5, 0] = np.nan
    numbers = FDGNNRegressor(intervals=True, **SMALL).fit(GRAPHS, partly)
    save_model(numbers, path)
    for one in (numbers, load_model(path)):
        found = one.predict_interval(GRAPHS, 0.8)
        assert found.shape == (N, 2, 2)
        for t in range(2):
            alone = one.for_target(t).predict_interval(GRAPHS, 0.8)
            np.testing.assert_allclose(alone, found[:, t])


def without(*names):
    return lambda record: [record.pop(name) for name in names]


@pytest.mark.parametrize(
    "change",
    [
        without("targets"),
        lambda record: record["targets"].pop(),
        lambda record: record["targets"][0].update(name="b"),
        lambda record: record["targets"][0].update(classes=None),
        lambda record: record["targets"][1].update(n_outputs=2),
        lambda record: record["targets"][1].update(calibration=-1.0),
        lambda record: record["targets"][1].update(threshold=0.5),
        lambda record: record.update(calibration=1.0),
        lambda record: record["estimators"][0].update(alpha=[1.0]),
    ],
)
def test_files_whose_targets_contradict_themselves_are_rejected(change, tmp_path):
    path = tmp_path / "model.fdgnn"
    model = FDGNNClassifier(probability=True, **SMALL)
    save_model(model.fit(GRAPHS, {"a": PARTLY[:, 0], "b": PARTLY[:, 1]}), path)
    rejected(with_record(path.read_bytes(), change), path)


# ---------------------------------------------------------------------- searched


def searched(estimator, y, **options):
    given = {"cv": 3, "random_state": 0} | options
    return FDGNNSearchCV(estimator, **given).fit(GRAPHS, y)


@pytest.mark.parametrize("name", ["reservoir", "auto"])
@pytest.mark.parametrize("classify", [True, False])
def test_a_search_scores_the_mean_over_targets(name, classify):
    partly = NUMBERS.copy()
    partly[::5, 0] = np.nan
    kind, y = (classifier, PARTLY) if classify else (regressor, partly)
    options = {} if name == "auto" else {"n_configurations": 2, "depths": (1, 2)}
    search = searched(kind(name, random_state=0), y, outer_cv=3, **options)
    scoring = "accuracy" if classify else "r2"
    each = search.nested_scores_by_target(scoring)
    assert list(each) == ["0", "1", "2"][: y.shape[1]]
    assert search.nested_score_by(scoring) == pytest.approx(np.mean(list(each.values())))
    assert search.nested_score_ == pytest.approx(search.nested_score_by(scoring), abs=0.05)
    assert search.predict(GRAPHS).shape == y.shape
    assert search.score(GRAPHS, y) == pytest.approx(search.best_estimator_.score(GRAPHS, y))
    by_name = clone(search).set_params(scoring=scoring).fit(GRAPHS, y)
    assert by_name.score(GRAPHS, y) == pytest.approx(search.score(GRAPHS, y))


def test_nested_scores_of_an_ensemble_are_those_of_models_fitted_without_the_fold():
    base = AutoGraphClassifier("wl", random_state=0)
    search = searched(base, PARTLY, outer_cv=3)
    tested = search.nested_folds_ == -1
    for t in range(3):
        scores = []
        for test in tested:
            known = test & ~np.isnan(PARTLY[:, t])
            own = search.nested_outputs_[known][:, search.best_estimator_.targets_[t].columns]
            scores.append((winning_class(own) == PARTLY[known, t]).mean())
        found = search.nested_scores_by_target("accuracy")[str(t)]
        assert found == pytest.approx(np.mean(scores))


def test_alphas_of_a_search_are_chosen_for_each_target():
    search = searched(AutoGraphClassifier("wl", random_state=0), PARTLY)
    assert all(len(model.alpha) == 3 for model in search.best_estimator_.estimators_)
    kept = {
        params["model"]
        for params, keep in zip(
            search.cv_results_["params"], search.cv_results_["kept"], strict=True
        )
        if keep
    }
    assert {model.name for model in search.best_estimator_.estimators_} == kept


def test_groups_and_splitters_of_scikit_learn_hold_several_targets_out():
    base = AutoGraphRegressor("wl", random_state=0)
    by_group = FDGNNSearchCV(base, cv=3, outer_cv=3, random_state=0)
    groups = np.arange(N) // 4
    by_group.fit(GRAPHS, NUMBERS, groups=groups)
    for row in by_group.nested_folds_:
        assert all(len(np.unique(row[groups == g])) == 1 for g in np.unique(groups))
    assert searched(base, NUMBERS, cv=KFold(4)).predict(GRAPHS).shape == (N, 2)


def test_a_target_that_is_in_one_fold_only_is_told():
    column = np.full(N, np.nan)
    column[[0, 1]] = [1.0, 2.0]
    base = AutoGraphRegressor("wl", random_state=0)
    with pytest.raises(ValueError, match="target 'b' is known in too few graphs to be in two"):
        searched(base, {"a": ZEROS, "b": column}, cv=KFold(4))


def test_a_rare_class_of_one_target_is_told_with_its_name():
    rare = np.zeros(N, dtype=int)
    rare[[3, 17, 40, 66]] = 1
    with pytest.warns(
        ClassImbalanceWarning, match=r"class 1 of target 'b' has 5\.0 % of the graphs"
    ):
        GraphClassifier("wl").fit(GRAPHS, {"a": CLASSES[:, 0], "b": rare})
