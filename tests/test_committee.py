"""Committees: the members, the rule by which they are averaged, fitted models, nested scores."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from fdgnn import ColorCounts, FDGNNClassifier, FDGNNRegressor, FDGNNSearchCV, Graph, GraphBatch
from fdgnn import committee as committees
from fdgnn.arrays import dense
from fdgnn.committee import (
    CANDIDATES,
    LARGE_PENALTIES,
    PENALTIES,
    SMALL_PENALTIES,
    HeldOut,
    at_best_penalty,
    kept_members,
    members_of,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import GraphKind, GraphReservoir, JoinedEncoder
from fdgnn.exceptions import (
    ConvergenceWarning,
    RareClassWarning,
    UnseenLabelError,
    UnseenLabelWarning,
)
from fdgnn.networks import TrainingGoal, draw_network
from fdgnn.readout import linear
from fdgnn.readout.dual import fit_dual
from fdgnn.readout.gaussian import GaussianReadout, GaussianRidge
from fdgnn.readout.linear import LinearRidge
from fdgnn.readout.targets import code_classes, winning_class
from fdgnn.seeds import child_seed, integer_seed, seed_sequence
from fdgnn.selection.committees import member_outputs, score_committee
from fdgnn.selection.folds import nested_folds
from fdgnn.selection.scores import accuracy, classification_task

# Reservoirs of a committee have fixed parameters; some small graphs settle slowly.
pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

AUTO = FDGNNClassifier(encoder="auto", random_state=0)


def noisy(values, share=0.15, seed=1):
    """Classes from numbers, some of them drawn at random, so that no member is perfect."""
    rng = np.random.default_rng(seed)
    y = (values > np.median(values)).astype(int)
    return np.where(rng.random(len(y)) < share, rng.integers(0, 2, len(y)), y)


@pytest.fixture(scope="module")
def labeled():
    """Graphs with the labels 0, 1 and 2; the class depends on how many vertices are 0."""
    graphs = make_random_graphs(80, random_state=0)
    zeros = np.bincount(graphs.graph_of_vertex, graphs.labels == 0)
    return graphs, noisy(zeros)


@pytest.fixture(scope="module")
def fitted(labeled):
    return clone(AUTO).set_params(probability=True).fit(*labeled)


# ---------------------------------------------------------------------- the rule


def test_a_difference_that_is_certain_but_small_does_not_matter():
    targets = np.where(np.arange(50_000) % 2, 1.0, -1.0)[:, None]
    for other, kept in ((0.8998, True), (0.899, False)):  # errors larger by 0.4 % and 2 %
        for classify in (True, False):
            found = kept_members([0.9 * targets, other * targets], targets, classify)
            assert found.tolist() == [True, kept]


def test_a_member_that_is_clearly_worse_goes():
    rng = np.random.default_rng(0)
    targets = rng.choice([-1.0, 1.0], size=(200, 1))
    good = targets + rng.normal(scale=0.3, size=(200, 1))
    as_good = targets + rng.normal(scale=0.3, size=(200, 1))
    bad = rng.normal(size=(200, 1))
    for classify in (True, False):
        for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
            outputs = [(good, as_good, bad)[i] for i in order]
            assert kept_members(outputs, targets, classify).tolist() == [i != 2 for i in order]


@pytest.mark.parametrize(("n", "kept"), [(4, True), (8, True), (10, False), (16, False)])
def test_the_limit_is_three_standard_errors(n, kept):
    # On half of the graphs the errors are alike, on the others they differ by a quarter: the mean
    # difference is as large as its standard deviation, which is sqrt(n) standard errors.
    targets = np.ones((n, 1))
    other = np.where(np.arange(n)[:, None] % 2, 0.5, 1.0)
    for classify in (True, False):
        assert kept_members([targets, other], targets, classify).tolist() == [True, kept]


def test_equals_stay():
    targets = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    same = 0.7 * targets
    assert kept_members([same, same, same], targets, True).all()
    once, another = targets.copy(), targets.copy()
    once[0], another[3] = 0.0, 0.0  # as large errors, on different graphs
    for classify in (True, False):
        assert kept_members([once, another], targets, classify).all()
    assert kept_members([-targets], targets, True).tolist() == [True]  # the only one is the best


def test_a_difference_on_every_graph_is_clear():
    targets = np.ones((50, 1))
    assert kept_members([0.9 * targets, 0.8 * targets], targets, False).tolist() == [True, False]


def test_outputs_beyond_the_targets_of_classes_are_cut_off():
    targets = np.array([[1.0], [-1.0]] * 30)
    far, further = 1.5 * targets, 100 * targets
    assert kept_members([far, further], targets, True).all()
    assert kept_members([far, further], targets, False).tolist() == [True, False]


def test_several_outputs_count_together():
    targets = np.zeros((40, 2))
    one, two, worse = (targets + np.array(off) for off in ([0.3, 0.1], [0.1, 0.3], [0.1, 0.4]))
    assert kept_members([one, two], targets, False).all()
    assert kept_members([one, worse], targets, False).tolist() == [True, False]


def test_where_graphs_are_ranked_members_are_judged_by_their_order():
    rng = np.random.default_rng(0)
    targets = np.where(rng.random(400) < 0.1, 1.0, -1.0)[:, None]
    good = 0.3 * targets + rng.normal(scale=0.3, size=(400, 1))
    far_off = 0.2 * good - 0.7  # the same order, and other squared errors
    reversed_ = -good
    outputs = [good, far_off, reversed_]
    assert kept_members(outputs, targets, True).tolist() == [False, True, False]
    assert kept_members(outputs, targets, True, ranking=True).tolist() == [True, True, False]
    errors = committees._misplaced(np.array(outputs), targets)
    for mean, own in zip(errors.mean, outputs, strict=True):
        assert mean == pytest.approx(1 - roc_auc_score(targets[:, 0], own[:, 0]))


def test_the_standard_error_of_an_order_is_that_of_drawing_graphs_anew():
    rng = np.random.default_rng(1)

    def drawn(n=300):
        targets = np.where(rng.random(n) < 0.3, 1.0, -1.0)[:, None]
        return targets, [targets + rng.normal(scale=s, size=(n, 1)) for s in (1.5, 2.0)]

    differences, told = [], []
    for _ in range(400):
        targets, outputs = drawn()
        errors = committees._misplaced(np.array(outputs), targets)
        differences.append(errors.mean[1] - errors.mean[0])
        told.append(np.sqrt(((errors.parts[1] - errors.parts[0]) ** 2).sum()))
    assert np.mean(told) == pytest.approx(np.std(differences), rel=0.1)


def test_several_targets_are_ranked_each_among_the_graphs_that_have_it():
    targets = np.array([[1.0, np.nan], [-1.0, 1.0], [1.0, -1.0], [-1.0, np.nan]])
    right = np.nan_to_num(targets)
    errors = committees._misplaced(np.array([right, -right, right * [1, -1]]), targets)
    np.testing.assert_allclose(errors.mean, [0, 1, 0.5])


def test_the_best_penalty_is_the_largest_among_equals():
    outputs = np.arange(8.0).reshape(4, 2, 1)
    found = at_best_penalty(outputs, np.array([0.5, 0.8, 0.8, 0.7]), (1e-3, 1e-2, 0.1, 1.0))
    assert found.penalty == 0.1
    assert found.outputs.tolist() == outputs[2].tolist()
    first = at_best_penalty(outputs, np.array([0.9, 0.8, 0.8, 0.7]), (1e-3, 1e-2, 0.1, 1.0))
    assert (first.penalty, first.outputs.tolist()) == (1e-3, outputs[0].tolist())


# ---------------------------------------------------------------------- the members


def kind_of(vertices):
    return GraphKind(directed=False, vertices=vertices, n_inputs=1 if vertices == "nothing" else 3)


def described(members):
    return [(type(m.encoder), m.recipe.name, getattr(m.recipe, "relative", None)) for m in members]


@pytest.mark.parametrize("vertices", ["labels", "features"])
def test_members_for_labels_and_features(vertices):
    members = members_of(kind_of(vertices), 100)
    colors, reservoir = (ColorCounts, "gaussian", None), (GraphReservoir, "linear", True)
    assert described(members) == [colors, colors, reservoir, reservoir]
    assert [m.encoder.n_rounds for m in members[:2]] == [2, 3]
    only = members_of(kind_of(vertices), 100, "colors")
    assert described(only) == [colors] * 4
    assert [m.encoder.n_rounds for m in only] == [1, 2, 3, 4]
    both = members_of(kind_of(vertices), 100, "both")
    ways = [(JoinedEncoder, "linear", True), (JoinedEncoder, "gaussian", None)]
    assert described(both) == ways * 2


def test_members_for_vertices_that_carry_nothing():
    for candidates in ("all", "colors"):
        members = members_of(kind_of("nothing"), 100, candidates)
        assert {type(m.encoder) for m in members} == {ColorCounts}
        assert [m.recipe.name for m in members] == ["linear"] * 3 + ["gaussian"] * 2
    assert len(members_of(kind_of("nothing"), 100, "both")) == 4


def test_members_have_different_names():
    for vertices in ("labels", "features", "nothing"):
        for candidates in CANDIDATES:
            names = [m.name for m in members_of(kind_of(vertices), 100, candidates)]
            assert len(set(names)) == len(names) > 1


@pytest.mark.parametrize("vertices", ["labels", "features", "nothing"])
@pytest.mark.parametrize("candidates", CANDIDATES)
def test_on_many_graphs_no_member_is_gaussian(vertices, candidates):
    few = members_of(kind_of(vertices), 10_000, candidates)
    assert any(isinstance(m.recipe, GaussianRidge) for m in few)
    many = members_of(kind_of(vertices), 10_001, candidates)
    assert many
    assert all(isinstance(m.recipe, LinearRidge) and m.recipe.relative for m in many)


def test_many_graphs_are_fitted_by_conjugate_gradients(labeled, monkeypatch):
    import fdgnn.estimators.base as estimators

    calls = []
    solve = linear.SparseRidge.lots

    def counted(self, systems, start=None):
        calls.append((len(set(systems.left_out)), tuple(systems.alpha)))
        return solve(self, systems, start)

    monkeypatch.setattr(linear.SparseRidge, "lots", counted)
    colors = clone(AUTO).set_params(candidates="colors")
    colors.fit(*labeled)
    assert calls == []
    for module in (committees, linear, estimators):
        monkeypatch.setattr(module, "MOST_SAMPLES", 50)
    model = colors.fit(*labeled)
    assert not any(isinstance(n.readout, GaussianReadout) for n in model.networks_)
    assert {n.alpha for n in model.networks_} <= set(LARGE_PENALTIES)
    held_out = [(folds, len(alphas)) for folds, alphas in calls if len(alphas) > 1]
    assert held_out == [(5, 5 * len(LARGE_PENALTIES))] * 4  # a member's folds at once
    assert [folds for folds, alphas in calls if len(alphas) == 1] == [1] * len(model.networks_)
    assert model.score(*labeled) > 0.7


@pytest.mark.parametrize("encoder", ["reservoir", "colors", "both", "auto"])
def test_graphs_that_are_all_alike_have_the_mean_target(encoder):
    graphs = [Graph([[0, 1, 2], [1, 2, 0]], labels=[1, 2, 3])] * 30
    model = FDGNNClassifier(encoder=encoder, random_state=0).fit(graphs, [0, 1, 1] * 10)
    assert model.predict(graphs[:2]).tolist() == [1, 1]
    np.testing.assert_allclose(model.decision_function(graphs[:1]), 1 / 3, atol=1e-6)
    number = FDGNNRegressor(encoder=encoder, random_state=0).fit(graphs, np.arange(30.0))
    np.testing.assert_allclose(number.predict(graphs[:1]), 14.5)


# ---------------------------------------------------------------------- a fitted committee


def by_hand(graphs, y, alphas=PENALTIES, classify=True):
    """Names and penalties of the members that are kept, and the average of their outputs."""
    classes, targets = code_classes(y) if classify else (None, y[:, None])
    codes = np.searchsorted(classes, y) if classify else None
    seed = seed_sequence(0)
    goal = TrainingGoal(targets, codes, None, seed, None)  # penalties are chosen here
    found = []
    for i, member in enumerate(members_of(GraphKind.of(graphs), len(graphs))):
        drawn = draw_network(member, graphs, child_seed(seed, i))
        held_out = drawn.held_out(goal, alphas, 10)
        right = -((held_out - targets) ** 2).mean(axis=(1, 2))
        if classify:
            right = (winning_class(held_out) == codes).mean(axis=1)
        best = max(range(len(alphas)), key=lambda a: (right[a], alphas[a]))
        readout = member.recipe.fit(drawn.features, targets, alphas[best])
        found.append((member.name, alphas[best], held_out[best], readout.outputs(drawn.features)))
    kept = kept_members([each[2] for each in found], targets, classify)
    chosen = [each for each, keep in zip(found, kept, strict=True) if keep]
    return [each[:2] for each in chosen], np.mean([each[3] for each in chosen], axis=0)


def test_the_networks_are_the_members_that_are_kept(labeled, fitted):
    graphs, y = labeled
    members, outputs = by_hand(graphs, y)
    assert [(n.name, n.alpha) for n in fitted.networks_] == members
    assert len(members) > 1
    np.testing.assert_allclose(fitted.outputs(graphs), outputs, atol=1e-9)


def test_a_member_that_is_clearly_worse_is_not_in_the_model():
    """Motifs are told apart by degrees refined once, hardly by numbers of vertices."""
    graphs, y = make_motif_graphs(60, random_state=0)
    model = clone(AUTO).fit(graphs, y)
    n_members = len(members_of(GraphKind.of(graphs), 60))
    assert 1 <= len(model.networks_) < n_members
    assert [(n.name, n.alpha) for n in model.networks_] == by_hand(graphs, y)[0]


def test_outputs_are_the_average_of_the_networks(labeled, fitted):
    new = make_random_graphs(20, random_state=7)
    each = [n.readout.outputs(n.features(new)) for n in fitted.networks_]
    assert len({type(n.encoder) for n in fitted.networks_}) == 2
    np.testing.assert_array_equal(fitted.outputs(new), np.mean(each, axis=0))
    chances = fitted.predict_proba(new)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (fitted.classes_[chances.argmax(axis=1)] == fitted.predict(new)).all()
    assert fitted.score(*labeled) > 0.75


def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads(labeled, fitted):
    graphs, y = labeled
    for n_jobs in (None, 2):
        again = clone(AUTO).set_params(n_jobs=n_jobs, probability=True).fit(graphs, y)
        np.testing.assert_array_equal(again.outputs(graphs), fitted.outputs(graphs))
        assert again.calibration_ == fitted.calibration_
    other = clone(AUTO).set_params(random_state=1).fit(graphs, y)
    assert not np.array_equal(other.outputs(graphs), fitted.outputs(graphs))


def test_parameters_are_kept_and_set():
    model = FDGNNClassifier(encoder="auto", candidates="both", class_weight={0: 2.0})
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.set_params(candidates="colors").get_params()["candidates"] == "colors"
    for wrong in ({"candidates": "some"}, {"readout": "deep"}, {"alpha": -1.0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            clone(model).set_params(**wrong).fit(make_random_graphs(8, random_state=0), [0, 1] * 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "auto", "n_units": 10}, r'n_units=10 has no effect with encoder="auto"'),
        ({"encoder": "auto", "n_rounds": 1}, "n_rounds=1 has no effect"),
        ({"encoder": "auto", "readout": "linear"}, "readout='linear' has no effect"),
        ({"encoder": "auto", "n_networks": 2}, "n_networks=2 has no effect"),
        ({"encoder": "auto", "n_rounds": -1}, "n_rounds=-1: expected an integer, at least 0"),
        ({"encoder": "reservoir", "n_rounds": -1}, "n_rounds=-1: expected an integer, at least 0"),
        ({"encoder": "colors", "n_layers": 0}, "n_layers=0: expected an integer, at least 1"),
        ({"candidates": "colors"}, """candidates='colors' is for encoder="auto" only"""),
        ({"n_jobs": "a"}, "n_jobs='a': expected None or an integer other than 0"),
        ({"n_jobs": 0}, "n_jobs=0: expected None or an integer other than 0"),
    ],
)
@pytest.mark.parametrize("kind", [FDGNNClassifier, FDGNNRegressor])
def test_parameters_without_effect_and_wrong_ones_are_told(labeled, kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options).fit(*labeled)


@pytest.mark.parametrize(
    "options",
    [
        {"n_configurations": 2}, {"param_distributions": {"nonsense": [1]}}, {"depths": (1, 2)},
        {"alphas": (1.0,)}, {"n_guesses": 1}, {"configurations": [{"n_units": 5}]},
    ],
)  # fmt: skip
def test_a_search_of_a_committee_refuses_what_it_cannot_search(labeled, options):
    with pytest.raises(ValueError, match=f'{next(iter(options))} has no effect with encoder="auto'):
        FDGNNSearchCV(AUTO, **options).fit(*labeled)


@pytest.mark.parametrize("encoder", ["auto", "reservoir", "colors"])
def test_a_search_takes_weights_of_graphs(labeled, encoder):
    graphs, y = labeled
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, size=len(y)).astype(float)
    base = FDGNNClassifier(encoder=encoder, random_state=0)
    few = {} if encoder == "auto" else {"n_configurations": 1, "n_guesses": 1, "depths": (2,)}
    search = FDGNNSearchCV(base, cv=3, outer_cv=3, random_state=0, **few)
    found = search.fit(graphs, y, sample_weight=weights)
    some = weights > 0
    chosen = None
    if encoder == "auto":
        results = zip(found.cv_results_["param_alpha"], found.cv_results_["kept"], strict=True)
        chosen = [HeldOut(alpha, None) if kept else None for alpha, kept in results]
    by_hand = clone(found.best_estimator_).fit(graphs[some], y[some], weights[some], chosen)
    mine = found.decision_function(graphs)
    np.testing.assert_allclose(mine, by_hand.outputs(graphs)[:, 0], atol=1e-9)
    plain = clone(search).fit(graphs[some], y[some])
    assert not np.allclose(mine, plain.decision_function(graphs), atol=1e-3)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        clone(search).fit(graphs, y, sample_weight=weights[:-1])


def test_a_given_penalty_is_that_of_all_members(labeled):
    model = clone(AUTO).set_params(alpha=0.5).fit(*labeled)
    assert {n.alpha for n in model.networks_} == {0.5}


def test_a_committee_of_a_regressor():
    graphs = make_random_graphs(60, random_state=2)
    rng = np.random.default_rng(0)
    y = np.bincount(graphs.graph_of_vertex, graphs.labels == 0) + rng.normal(scale=0.3, size=60)
    model = FDGNNRegressor(encoder="auto", random_state=0).fit(graphs[:50], y[:50])
    members, outputs = by_hand(graphs[:50], y[:50], SMALL_PENALTIES, classify=False)
    assert [(n.name, n.alpha) for n in model.networks_] == members
    np.testing.assert_allclose(model.predict(graphs[:50]), outputs[:, 0], atol=1e-6)
    assert model.score(graphs[50:], y[50:]) > 0.7
    two = FDGNNRegressor(encoder="auto", random_state=0).fit(graphs, np.stack([y, -y], axis=1))
    assert two.predict(graphs).shape == (60, 2)


def test_a_committee_of_three_classes():
    graphs = make_random_graphs(90, random_state=0)
    sizes = np.diff(graphs.vertex_offsets)
    y = np.array(["small", "medium", "large"])[np.searchsorted([10, 14], sizes)]
    model = clone(AUTO).set_params(probability=True).fit(graphs, y)
    assert model.decision_function(graphs).shape == model.predict_proba(graphs).shape == (90, 3)
    assert [(n.name, n.alpha) for n in model.networks_] == by_hand(graphs, y)[0]
    assert model.score(graphs, y) > 0.9


# ---------------------------------------------------------------------- weights


def test_a_balanced_weight_finds_more_of_a_rare_class():
    graphs = make_random_graphs(160, random_state=3)
    zeros = np.bincount(graphs.graph_of_vertex, graphs.labels == 0)
    score = zeros + np.random.default_rng(0).normal(scale=1.5, size=160)
    y = (score > np.quantile(score, 0.88)).astype(int)
    train, test = np.arange(160) % 2 == 0, np.arange(160) % 2 == 1
    plain, balanced = (
        clone(AUTO).set_params(class_weight=weight).fit(graphs[train], y[train])
        for weight in (None, "balanced")
    )
    found = [recall_score(y[test], model.predict(graphs[test])) for model in (plain, balanced)]
    assert found[1] > found[0] + 0.2


def test_a_class_weight_is_the_sample_weight_of_its_graphs(labeled):
    graphs, y = labeled
    by_class = clone(AUTO).set_params(class_weight={1: 3.0}).fit(graphs, y)
    by_graph = clone(AUTO).fit(graphs, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.outputs(graphs), by_graph.outputs(graphs))
    scaled = clone(AUTO).fit(graphs, y, sample_weight=np.where(y == 1, 6.0, 2.0))
    np.testing.assert_allclose(scaled.outputs(graphs), by_graph.outputs(graphs), atol=1e-9)


@pytest.mark.parametrize("encoder", ["reservoir", "colors"])
def test_whole_weights_are_repeated_graphs(labeled, encoder):
    graphs, y = labeled
    times = np.random.default_rng(2).integers(1, 4, size=len(y))
    again = np.repeat(np.arange(len(y)), times)
    model = FDGNNClassifier(encoder=encoder, readout="linear", alpha=0.3, random_state=0, degree=4)
    weighted = model.fit(graphs, y, sample_weight=times).outputs(graphs)
    # Weights have mean 1, so that repeated graphs weigh as much only with a larger penalty. For
    # colors it counts in units of the features, which are others if some graphs are repeated.
    more = times.mean()
    if encoder == "colors":
        X = model.networks_[0].features(graphs)
        units = [(Z**2).sum() / Z.shape[0] - (Z.mean(axis=0) ** 2).sum() for Z in (X, X[again])]
        more *= units[0] / units[1]
    repeated = clone(model).set_params(alpha=0.3 * more).fit(graphs[again], y[again])
    np.testing.assert_allclose(weighted, repeated.outputs(graphs), atol=1e-6)
    assert not np.allclose(weighted, clone(model).fit(graphs, y).outputs(graphs), atol=1e-3)


def test_graphs_of_weight_zero_are_left_out(labeled):
    graphs, y = labeled
    weights = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    some = weights > 0
    weighted = clone(AUTO).fit(graphs, y, sample_weight=weights)
    left = clone(AUTO).fit(graphs[some], y[some], sample_weight=weights[some])
    np.testing.assert_array_equal(weighted.outputs(graphs), left.outputs(graphs))
    with pytest.raises(ValueError, match="one class only"):
        clone(AUTO).fit(graphs, y, sample_weight=(y == 1).astype(float))
    real = FDGNNRegressor(encoder="colors", alpha=1.0)
    one = real.fit(graphs, y, sample_weight=weights).predict(graphs)
    two = real.fit(graphs[some], y[some], sample_weight=weights[some]).predict(graphs)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(79), r"sample_weight has shape \(79,\), expected \(80,\)"),
        (np.ones((80, 1)), r"sample_weight has shape \(80, 1\), expected \(80,\)"),
        (2.0, r"sample_weight has shape \(\), expected \(80,\)"),
        (-np.ones(80), "at least 0 and not all 0"),
        (np.zeros(80), "at least 0 and not all 0"),
        (np.full(80, np.nan), "finite numbers"),
        (np.full(80, np.inf), "finite numbers"),
        (["heavy"] * 80, "sample_weight: expected one number for each graph"),
    ],
)
def test_bad_weights_are_told(labeled, weights, message):
    for model in (AUTO, FDGNNClassifier(), FDGNNRegressor()):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(*labeled, sample_weight=weights)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("equal", "class_weight='equal': expected 'balanced', a dictionary or None"),
        (3, "class_weight=3: expected"),
        ({7: 1.0}, "class_weight names 7, which is not a class of y"),
        ({1: -1.0}, "class_weight: expected finite numbers above 0"),
        ({1: np.nan}, "class_weight: expected finite numbers above 0"),
    ],
)
def test_bad_class_weights_are_told(labeled, weight, message):
    with pytest.raises(ValueError, match=message):
        clone(AUTO).set_params(class_weight=weight).fit(*labeled)


# ---------------------------------------------------------------------- labels that are new


@pytest.mark.parametrize("candidates", ["all", "colors", "both"])
def test_labels_that_are_new_are_told_and_no_error(labeled, candidates):
    known = list(make_random_graphs(2, random_state=5))
    strange = Graph([[0, 1], [1, 2]], labels=[0, 1, 99])
    new = GraphBatch.from_graphs([known[0], strange, known[1]])
    fitted = clone(AUTO).set_params(candidates=candidates).fit(*labeled)
    with pytest.warns(UnseenLabelWarning, match="1 of 3 graphs has labels or descriptors"):
        outputs = fitted.outputs(new)
    assert fitted.unseen(new) == {1: "vertex label 99 was not seen during fit"}
    assert fitted.refusals(new) == {}
    theirs = [n.readout.outputs(n.features(new[1:2])) for n in fitted.networks_]
    np.testing.assert_allclose(outputs[1], np.mean(theirs, axis=0)[0], atol=1e-12)
    np.testing.assert_allclose(outputs[[0, 2]], fitted.outputs(known), atol=1e-12)


def test_both_encoders_take_new_labels_and_the_reservoir_alone_does_not(labeled):
    strange = [Graph([[0, 1], [1, 2]], labels=[0, 1, 99])]
    both = FDGNNClassifier(encoder="both", random_state=0).fit(*labeled)
    with pytest.warns(UnseenLabelWarning, match="1 of 1 graphs"):
        both.predict(strange)
    alone = FDGNNClassifier(random_state=0).fit(*labeled)
    assert alone.refusals(strange) == {0: "vertex label 99 was not seen during fit"}
    with pytest.raises(
        UnseenLabelError, match=r'graph 0: vertex label 99 .*handle_unknown="ignore"'
    ):
        alone.predict(strange)


# ---------------------------------------------------------------------- too little to learn from


def test_too_little_to_learn_from(labeled):
    graphs, _ = labeled
    with pytest.raises(ValueError, match="one class only"):
        clone(AUTO).fit(graphs, np.zeros(80))
    with pytest.raises(ValueError, match=r"a class has only one graph, .*; give every class"):
        clone(AUTO).fit(graphs, np.arange(80) < 1)
    with pytest.raises(ValueError, match="there is one graph only"):
        FDGNNRegressor(encoder="auto").fit(graphs[:1], [1.0])
    with pytest.warns(RareClassWarning, match="class True has 2.5 % of the graphs"):
        assert len(clone(AUTO).fit(graphs, np.arange(80) < 2).networks_) >= 1


# ---------------------------------------------------------------------- nested scores


def hand_scored(graphs, y, fold, metric, alphas=PENALTIES, model=AUTO):
    """Everything once more for one row of folds, each readout by a regression of its own.

    Encoders are drawn on all graphs, and so are the units of penalties and of distances.
    """
    Y, codes = code_classes(y)[1], np.unique(y, return_inverse=True)[1]
    seed, train = seed_sequence(model.random_state), fold >= 0
    penalties, held_out = [], []
    for i, member in enumerate(members_of(GraphKind.of(graphs), len(graphs), model.candidates)):
        X = dense(draw_network(member, graphs, child_seed(seed, i)).features)
        X = X[:, X.any(axis=0)]
        if isinstance(member.recipe, GaussianRidge):
            distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
            K, unit = np.exp(-distance / distance.mean()), 1.0
        else:
            K, unit = X @ X.T, ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()
        outputs = np.empty((len(alphas), *Y.shape))
        for a, alpha in enumerate(alphas):
            for f in np.unique(fold):
                used, left = train & (fold != f), fold == f
                dual, b = fit_dual(K[np.ix_(used, used)], Y[used], alpha * unit)
                outputs[a, left] = K[np.ix_(left, used)] @ dual + b
        scores = [fold_mean(codes, each, fold, metric) for each in outputs]
        best = max(range(len(alphas)), key=lambda a: (scores[a], a))
        penalties.append(alphas[best])
        held_out.append(outputs[best])
    errors = np.array([(np.clip(o[train], -1.5, 1.5) - Y[train]) ** 2 for o in held_out])
    errors = errors.mean(axis=2)
    worse = errors - errors[errors.mean(axis=1).argmin()]
    kept = worse.mean(axis=1) <= 3 * worse.std(axis=1) / np.sqrt(train.sum())
    average = np.mean([o for o, keep in zip(held_out, kept, strict=True) if keep], axis=0)
    test = np.nan if train.all() else metric(codes[~train], average[~train])
    return penalties, kept.tolist(), fold_mean(codes, average, fold, metric), test, held_out


def fold_scores(codes, outputs, fold, metric):
    inner = range(fold.max() + 1)
    return [float(metric(codes[fold == f], outputs[fold == f])) for f in inner]


def fold_mean(codes, outputs, fold, metric):
    return float(np.mean(fold_scores(codes, outputs, fold, metric)))


def by_auc(codes, outputs):
    return roc_auc_score(codes, outputs[:, 0])


@pytest.mark.parametrize("row", [0, 2])
def test_nested_scores_are_those_of_separate_fits(labeled, row):
    graphs, y = labeled
    folds = nested_folds(y, 3, 4, seed=0)
    task = classification_task(graphs, y, folds, PENALTIES)
    n_members = len(members_of(GraphKind.of(graphs), len(graphs)))
    found = [member_outputs(task, AUTO, i) for i in range(n_members)]
    scores = score_committee(task, found, classify=True)
    penalties, kept, validation, test, _ = hand_scored(graphs, y, folds[row], accuracy)
    assert [one.penalties[row] for one in found] == penalties
    assert scores.kept[row].tolist() == kept
    assert scores.validation[row] == pytest.approx(validation)
    assert scores.test[row] == pytest.approx(test)


def test_test_graphs_have_no_say_in_the_choice(labeled):
    """Other answers on the test graphs change neither penalties nor members, but the score."""
    graphs, y = labeled
    folds = nested_folds(y, 3, 4, seed=0)[:1]
    turned = np.where(folds[0] < 0, 1 - y, y)
    scores = []
    for labels in (y, turned):
        task = classification_task(graphs, labels, folds, PENALTIES)
        found = [member_outputs(task, AUTO, i) for i in range(4)]
        scores.append((found, score_committee(task, found, classify=True)))
    for one, other in zip(scores[0][0], scores[1][0], strict=True):
        assert one.penalties.tolist() == other.penalties.tolist()
        np.testing.assert_allclose(one.outputs, other.outputs, atol=1e-8)
    assert scores[0][1].kept.tolist() == scores[1][1].kept.tolist()
    assert scores[0][1].test[0] == pytest.approx(1 - scores[1][1].test[0])


def test_the_seed_of_a_search_is_that_of_its_reservoirs(labeled):
    graphs, y = labeled
    unseeded = FDGNNClassifier(encoder="auto")
    one, same, other = (
        FDGNNSearchCV(unseeded, cv=2, random_state=seed).fit(graphs, y) for seed in (3, 3, 4)
    )
    assert one.best_estimator_.random_state is not None
    outputs = [each.best_estimator_.decision_function(graphs) for each in (one, same, other)]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert (
        one.cv_results_["mean_test_score"].tolist() == same.cv_results_["mean_test_score"].tolist()
    )
    assert np.abs(outputs[0] - outputs[2]).max() > 0


@pytest.mark.parametrize(("scoring", "metric"), [(None, accuracy), ("roc_auc", by_auc)])
def test_a_search_scores_the_committee_and_fits_it(labeled, scoring, metric):
    graphs, y = labeled
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    search = FDGNNSearchCV(AUTO, cv=cv, outer_cv=3, scoring=scoring, random_state=4)
    search.fit(graphs, y)
    whole = np.empty(len(y), dtype=int)
    for f, (_, left) in enumerate(cv.split(y, y)):
        whole[left] = f
    penalties, kept, validation, _, held_out = hand_scored(graphs, y, whole, metric)
    alone = [fold_scores(y, outputs, whole, metric) for outputs in held_out]
    results = search.cv_results_
    assert results["param_alpha"].tolist() == penalties
    assert results["kept"].tolist() == kept
    assert results["param_member"].tolist() == [
        m.name for m in members_of(GraphKind.of(graphs), len(graphs))
    ]
    assert len(results["params"]) == 4
    np.testing.assert_allclose(results["mean_test_score"], np.mean(alone, axis=1))
    np.testing.assert_allclose(results["std_test_score"], np.std(alone, axis=1))
    assert results["std_test_score"].shape == (4,)
    assert results["rank_test_score"][search.best_index_] == 1
    assert search.best_score_ == pytest.approx(validation)
    assert search.best_params_ == {"encoder": "auto", "candidates": "all"}
    outer = StratifiedKFold(3, shuffle=True, random_state=integer_seed(seed_sequence(4), 0))
    train, _ = next(iter(outer.split(y, y)))
    first = np.full(len(y), -1)
    for f, (_, left) in enumerate(cv.split(y[train], y[train])):
        first[train[left]] = f
    assert search.nested_scores_[0] == pytest.approx(hand_scored(graphs, y, first, metric)[3])
    assert search.nested_score_ == pytest.approx(search.nested_scores_.mean())
    chosen = [HeldOut(a, None) if k else None for a, k in zip(penalties, kept, strict=True)]
    plain = clone(AUTO).fit(graphs, y, chosen=chosen)
    np.testing.assert_array_equal(search.decision_function(graphs), plain.decision_function(graphs))
    right = plain.score(graphs, y)
    if scoring:
        right = roc_auc_score(y, plain.decision_function(graphs))
    assert search.score(graphs, y) == pytest.approx(right)


def test_a_search_of_a_regressor_and_processes_change_nothing():
    graphs = make_random_graphs(60, random_state=2)
    y = np.diff(graphs.vertex_offsets) + np.random.default_rng(0).normal(size=60)
    base = FDGNNRegressor(encoder="auto", candidates="colors", random_state=0)
    one, two = (
        FDGNNSearchCV(base, cv=3, outer_cv=2, random_state=0, n_jobs=n).fit(graphs, y)
        for n in (1, 2)
    )
    assert one.nested_scores_.tolist() == two.nested_scores_.tolist()
    assert one.best_score_ == two.best_score_ > 0.5
    assert one.predict(graphs).shape == (60,)


@pytest.mark.parametrize("encoder", ["auto", "reservoir"])
def test_a_search_trains_with_the_class_weight(labeled, encoder):
    graphs, _ = labeled
    y = (np.arange(80) % 8 == 0).astype(int)  # nothing to learn: all graphs look like the others
    found = {}
    for weight in (None, "balanced"):
        base = FDGNNClassifier(encoder=encoder, class_weight=weight, random_state=0)
        few = {"n_configurations": 1, "depths": (1,), "alphas": (10.0,), "n_guesses": 1}
        few = {} if encoder == "auto" else few
        search = FDGNNSearchCV(base, cv=4, scoring="recall", random_state=0, **few)
        found[weight] = search.fit(graphs, y).best_score_
    assert found["balanced"] > found[None]


# ---------------------------------------------------------------------- convergence is told


@pytest.mark.parametrize(("model", "remedy", "other"), [
    (AUTO, 'candidates="colors" (--model colors)', "effective_spectral_radius"),
    (FDGNNClassifier(random_state=0), "effective_spectral_radius", "candidates"),
])  # fmt: skip
def test_the_advice_is_one_that_the_user_can_follow(model, remedy, other):
    graphs = make_random_graphs(60, random_state=0)
    y = noisy(np.diff(graphs.vertex_offsets))
    # Rare dense graphs, on which a reservoir that is scaled by the average degree oscillates.
    ends = np.array(list(combinations(range(20), 2))).T
    dense_graph = Graph(ends, labels=np.arange(20) % 3)
    graphs, y = [*graphs, *[dense_graph] * 4], [*y, 0, 1, 0, 1]
    with pytest.warns(ConvergenceWarning, match="did not converge") as in_training:
        model = clone(model).fit(graphs, y)
    with pytest.warns(ConvergenceWarning, match="did not converge") as at_prediction:
        model.predict([dense_graph] * 2)
    for told in (in_training, at_prediction):
        (message,) = {str(w.message) for w in told}
        assert remedy in message
        assert other not in message


def test_colors_alone_do_not_warn(labeled):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(AUTO).set_params(candidates="colors").fit(*labeled)


def test_a_penalty_without_a_score_is_never_chosen():
    """A rank correlation of constant outputs is none."""
    outputs = np.arange(3.0).reshape(3, 1, 1)
    found = at_best_penalty(outputs, np.array([0.2, np.nan, 0.1]), [1.0, 10.0, 100.0])
    assert found.penalty == 1.0
