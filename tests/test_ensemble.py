"""The ensemble: base models, the rule by which they are averaged, fits, nested scores."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from fdgnn import (
    AutoGraphClassifier,
    AutoGraphRegressor,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphBatch,
    GraphClassifier,
    GraphRegressor,
    WLCounts,
    as_batch,
    ensemble,
)
from fdgnn.arrays import dense
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import EncoderUnion, GraphKind, GraphReservoir
from fdgnn.ensemble import combine, rejected_by_rule
from fdgnn.estimators.auto import CANDIDATES
from fdgnn.exceptions import ClassImbalanceWarning, ConvergenceWarning, UnknownLabelWarning
from fdgnn.fitting import FitTask, draw_features, fit_depths
from fdgnn.folds import choice_folds, nested_folds
from fdgnn.linear import KernelRidge, Ridge
from fdgnn.metrics import accuracy, squared_error
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.targets import read_targets
from models import NAMES, classifier, regressor

# Reservoirs of the ensemble have fixed parameters; some small graphs converge slowly.
pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

AUTO = AutoGraphClassifier(random_state=0)


def noisy(values, share=0.15, seed=1):
    """Classes from numbers, some of them drawn at random, so that no base model is perfect."""
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


def keeps(predictions, targets, classify, ranking=False):
    return ~rejected_by_rule(predictions, targets, classify, ranking)


# ---------------------------------------------------------------------- the rule


def test_a_difference_that_is_certain_but_small_does_not_matter():
    targets = np.where(np.arange(50_000) % 2, 1.0, -1.0)[:, None]
    for other, kept in ((0.8998, True), (0.899, False)):  # errors larger by 0.4 % and 2 %
        for classify in (True, False):
            found = keeps([0.9 * targets, other * targets], targets, classify)
            assert found.tolist() == [True, kept]


def test_a_base_model_that_is_clearly_worse_goes():
    rng = np.random.default_rng(0)
    targets = rng.choice([-1.0, 1.0], size=(200, 1))
    good = targets + rng.normal(scale=0.3, size=(200, 1))
    as_good = targets + rng.normal(scale=0.3, size=(200, 1))
    bad = rng.normal(size=(200, 1))
    for classify in (True, False):
        for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
            outputs = [(good, as_good, bad)[i] for i in order]
            assert keeps(outputs, targets, classify).tolist() == [i != 2 for i in order]


@pytest.mark.parametrize(("n", "kept"), [(4, True), (8, True), (10, False), (16, False)])
def test_the_limit_is_three_standard_errors(n, kept):
    # On half of the graphs the errors are alike, on the others they differ by a quarter: the mean
    # difference is as large as its standard deviation, which is sqrt(n) standard errors.
    targets = np.ones((n, 1))
    other = np.where(np.arange(n)[:, None] % 2, 0.5, 1.0)
    for classify in (True, False):
        assert keeps([targets, other], targets, classify).tolist() == [True, kept]


def test_equals_stay():
    targets = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    same = 0.7 * targets
    assert keeps([same, same, same], targets, True).all()
    once, another = targets.copy(), targets.copy()
    once[0], another[3] = 0.0, 0.0  # as large errors, on different graphs
    for classify in (True, False):
        assert keeps([once, another], targets, classify).all()
    assert keeps([-targets], targets, True).tolist() == [True]  # the only one is the best


def test_a_difference_on_every_graph_is_clear():
    targets = np.ones((50, 1))
    assert keeps([0.9 * targets, 0.8 * targets], targets, False).tolist() == [True, False]


def test_outputs_beyond_the_targets_of_classes_are_cut_off():
    targets = np.array([[1.0], [-1.0]] * 30)
    far, further = 1.5 * targets, 100 * targets
    assert keeps([far, further], targets, True).all()
    assert keeps([far, further], targets, False).tolist() == [True, False]


def test_several_outputs_count_together():
    targets = np.zeros((40, 2))
    one, two, worse = (targets + np.array(off) for off in ([0.3, 0.1], [0.1, 0.3], [0.1, 0.4]))
    assert keeps([one, two], targets, False).all()
    assert keeps([one, worse], targets, False).tolist() == [True, False]


def test_where_graphs_are_ranked_base_models_are_judged_by_their_order():
    rng = np.random.default_rng(0)
    targets = np.where(rng.random(400) < 0.1, 1.0, -1.0)[:, None]
    good = 0.3 * targets + rng.normal(scale=0.3, size=(400, 1))
    far_off = 0.2 * good - 0.7  # the same order, and other squared errors
    reversed_ = -good
    outputs = [good, far_off, reversed_]
    assert keeps(outputs, targets, True).tolist() == [False, True, False]
    assert keeps(outputs, targets, True, ranking=True).tolist() == [True, True, False]
    errors, _ = ensemble._misplaced(np.array(outputs), targets)
    for mean, own in zip(errors, outputs, strict=True):
        assert mean == pytest.approx(1 - roc_auc_score(targets[:, 0], own[:, 0]))


def test_the_standard_error_of_an_order_is_that_of_drawing_graphs_anew():
    rng = np.random.default_rng(1)

    def drawn(n=300):
        targets = np.where(rng.random(n) < 0.3, 1.0, -1.0)[:, None]
        return targets, [targets + rng.normal(scale=s, size=(n, 1)) for s in (1.5, 2.0)]

    differences, told = [], []
    for _ in range(400):
        targets, outputs = drawn()
        errors, parts = ensemble._misplaced(np.array(outputs), targets)
        differences.append(errors[1] - errors[0])
        told.append(np.sqrt(((parts[1] - parts[0]) ** 2).sum()))
    assert np.mean(told) == pytest.approx(np.std(differences), rel=0.1)


def test_several_targets_are_ranked_each_among_the_graphs_that_have_it():
    targets = np.array([[1.0, np.nan], [-1.0, 1.0], [1.0, -1.0], [-1.0, np.nan]])
    right = np.nan_to_num(targets)
    errors, _ = ensemble._misplaced(np.array([right, -right, right * [1, -1]]), targets)
    np.testing.assert_allclose(errors, [0, 1, 0.5])


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [([0.5, 0.8, 0.8, 0.7], 2), ([0.9, 0.8, 0.8, 0.7], 0), ([0.2, np.nan, 0.1, np.nan], 0)],
)
def test_the_best_alpha_is_the_largest_among_equals(scores, chosen):
    """One without a score is never chosen: a rank correlation of constant outputs is NaN."""
    graphs = make_random_graphs(4, random_state=0)
    targets = read_targets(np.arange(4.0), graphs, classify=False)
    metric = lambda y, outputs: np.array(scores)  # noqa: E731
    task = FitTask(targets, np.array([[0, 0, 1, 1]]), metric)
    predictions = np.arange(16.0).reshape(1, 4, 4, 1)
    found = task.choose(predictions, (1e-3, 1e-2, 0.1, 1.0))
    assert found.positions.tolist() == [[chosen]]
    assert found.predictions.tolist() == predictions[:, chosen].tolist()


def test_the_ensemble_chooses_alpha_by_squared_error(labeled):
    graphs, y = labeled
    for model, by_squares in (
        (AutoGraphClassifier(random_state=0), True),
        (AutoGraphClassifier(scoring="roc_auc", random_state=0), False),
        (GraphClassifier("wl", random_state=0), False),
    ):
        task, batch, _ = model._task(as_batch(graphs), read_targets(y, graphs, True), None)
        assert task.by_squares == by_squares
    # One error of an output that is nearly right is worth less than many of outputs near zero.
    targets = read_targets(np.arange(4) % 2, batch[:4], classify=True)
    coded = targets.coded[None, None]
    predictions = np.concatenate([0.01 * coded, coded * [[-0.2], [1], [1], [1]], 5 * coded], axis=1)
    folds = np.array([[0, 0, 1, 1]])
    for by_squares, chosen in ((False, 2), (True, 2)):
        task = FitTask(targets, folds, accuracy, None, by_squares)
        assert task.choose(predictions, (0.1, 1.0, 10.0)).positions.item() == chosen
    for by_squares, chosen in ((False, 0), (True, 1)):
        task = FitTask(targets, folds, accuracy, None, by_squares)
        assert task.choose(predictions[:, :2], (0.1, 1.0)).positions.item() == chosen


# ---------------------------------------------------------------------- the base models


def kind_of(vertices, n_inputs=3):
    n = 1 if vertices == "nothing" else n_inputs
    return GraphKind(directed=False, vertices=vertices, n_inputs=n)


def base_models(kind, n_graphs=100, candidates="all"):
    return AutoGraphClassifier(candidates)._base_models(kind, n_graphs, seed_sequence(0))


def described(bases):
    return [(type(b.encoder), type(b.readout)) for b in bases]


def test_base_models_for_labels_and_features():
    wl, reservoir = (WLCounts, KernelRidge), (GraphReservoir, Ridge)
    of_labels = base_models(kind_of("labels"))
    assert described(of_labels) == [wl, wl, *[(EncoderUnion, KernelRidge)] * 2]
    of_features = base_models(kind_of("features"))
    assert described(of_features) == [wl, wl, reservoir, reservoir]
    assert [b.encoder.n_iterations for b in of_features[:2]] == [2, 3]
    many = described(base_models(kind_of("labels"), n_graphs=10**6))
    assert many == [*[(WLCounts, Ridge)] * 2, reservoir, reservoir]
    for vertices in ("labels", "features"):
        only = base_models(kind_of(vertices), candidates="wl")
        assert described(only) == [wl] * 4
        assert [b.encoder.n_iterations for b in only] == [1, 2, 3, 4]
        both = base_models(kind_of(vertices), candidates="union")
        assert described(both) == [(EncoderUnion, Ridge), (EncoderUnion, KernelRidge)] * 2


def test_base_models_for_labels_beside_features():
    kind = GraphKind(directed=False, vertices="features", n_inputs=5, n_label_columns=2)
    bases = base_models(kind)
    assert [b.encoder.vertices for b in bases[:2]] == ["labels"] * 2
    assert [isinstance(b.encoder, EncoderUnion) for b in bases[2:]] == [True] * 3
    assert len({b.name for b in bases}) == len(bases) == 5
    assert len(base_models(kind, n_graphs=10**6)) == 4


def test_base_models_for_molecules():
    kind = GraphKind(directed=False, vertices="labels", n_inputs=3, molecules=True)
    names = [base.name for base in base_models(kind)]
    assert names[0] == "WL, 2 iterations"
    assert len(names) == 6
    assert names[3] == "WL, pairs and descriptors"
    assert [base.name for base in base_models(kind, n_graphs=9_000)] == names[:4]
    # Nothing but what reads vertex labels where a kernel matrix does not fit.
    many = base_models(kind, n_graphs=10**6)
    assert [(type(b.encoder), b.encoder.vertices) for b in many] == [
        (WLCounts, "auto"), (WLCounts, "element"),
    ]  # fmt: skip
    assert described(base_models(kind, candidates="wl")) == [(WLCounts, KernelRidge)] * 4


def test_base_models_for_vertices_that_carry_nothing():
    for candidates in ("all", "wl"):
        bases = base_models(kind_of("nothing"), candidates=candidates)
        assert described(bases) == [(WLCounts, Ridge)] * 3 + [(WLCounts, KernelRidge)] * 2
    assert len(base_models(kind_of("nothing"), candidates="union")) == 4


def test_base_models_have_different_names():
    for vertices in ("labels", "features", "nothing"):
        for candidates in CANDIDATES:
            names = [b.name for b in base_models(kind_of(vertices), candidates=candidates)]
            assert len(set(names)) == len(names) > 1


@pytest.mark.parametrize("vertices", ["labels", "features", "nothing"])
@pytest.mark.parametrize("candidates", CANDIDATES)
def test_readouts_are_linear_where_a_kernel_matrix_does_not_fit(vertices, candidates, monkeypatch):
    few = base_models(kind_of(vertices), 1000, candidates)
    assert any(isinstance(b.readout, KernelRidge) for b in few)
    for module in ("estimators.auto", "estimators.models"):
        monkeypatch.setattr(f"fdgnn.{module}.fits_in_memory", lambda n: False)
    many = base_models(kind_of(vertices), 1000, candidates)
    assert many
    assert all(isinstance(b.readout, Ridge) for b in many)


@pytest.mark.parametrize("candidates", ["all", "union"])
@pytest.mark.parametrize("n_inputs", [82, 300, 1433])
def test_reservoirs_read_most_labels(candidates, n_inputs):
    """300 units with one connection each would read 19 % of 1,433 labels."""
    for base in base_models(kind_of("labels", n_inputs), candidates=candidates):
        encoder = base.encoder
        if candidates == "union":
            encoder = dict(encoder.encoders)["reservoir"]
        if isinstance(encoder, GraphReservoir):
            C, H = encoder.n_connections, encoder.n_units
            assert 1 - np.exp(-C * H / n_inputs) > 0.8
            assert C == 1 or 1 - np.exp(-(C - 1) * H / n_inputs) < 0.9


def test_base_models_may_be_given(labeled):
    given = [("one", WLCounts(n_iterations=1), "rbf"), ("two", "reservoir", Ridge(alpha=0.5))]
    model = AutoGraphClassifier(given, random_state=0).fit(*labeled)
    alphas = {m.name: m.alpha for m in model.estimators_}
    assert set(alphas) <= {"one", "two"}
    assert alphas.get("two", 0.5) == 0.5
    for wrong, message in (
        ([], "candidates is empty"),
        ([("one", "wl")], r"expected \(name, encoder, readout\)"),
        ([("one", "nonsense", "rbf")], "encoder='nonsense'"),
        ([("one", "wl", "deep")], "readout='deep'"),
        ("some", "candidates='some': expected one of 'all', 'wl', 'union', or a list"),
    ):
        with pytest.raises(ValueError, match=message):
            AutoGraphClassifier(wrong).fit(*labeled)
    with pytest.raises(ValueError, match="handle_unknown='error' has no effect on a list"):
        AutoGraphClassifier(given, handle_unknown="error").fit(*labeled)


@pytest.mark.parametrize("name", NAMES)
def test_graphs_that_are_all_alike_have_the_mean_target(name):
    graphs = [Graph([[0, 1, 2], [1, 2, 0]], labels=[1, 2, 3])] * 30
    model = classifier(name, random_state=0).fit(graphs, [0, 1, 1] * 10)
    assert model.predict(graphs[:2]).tolist() == [1, 1]
    np.testing.assert_allclose(model.decision_function(graphs[:1]), 1 / 3, atol=1e-6)
    number = regressor(name, random_state=0).fit(graphs, np.arange(30.0))
    np.testing.assert_allclose(number.predict(graphs[:1]), 14.5)


# ---------------------------------------------------------------------- everything once more


class ByHand:
    """All that is fitted for one row of folds, each readout by a regression of its own.

    Encoders are drawn on all graphs, and so are the units of alpha and of distances.
    """

    def __init__(self, graphs, y, fold, metric, model=AUTO, classify=True):
        targets = read_targets(y, graphs, classify)
        Y, codes = targets.coded, targets.values[:, 0]
        seed, train = seed_sequence(model.random_state), fold >= 0
        self.codes, self.fold, self.metric = codes, fold, metric
        self.alphas, self.predictions, self.trained = [], [], []
        bases = model._base_models(GraphKind.of(graphs), len(graphs), seed)
        self.names = [base.name for base in bases]
        for base in bases:
            K = _kernel_of(base, graphs)
            grid = base.readout.grid(len(graphs), classify)
            predictions = np.full((len(grid), *Y.shape), np.nan)
            for a, alpha in enumerate(grid):
                for f in np.unique(fold):
                    used, left = train & (fold != f), fold == f
                    predictions[a, left] = _solved(K, Y, used, alpha)[left]
            scores = [self._chosen_by(each, Y) for each in predictions]
            best = max(range(len(grid)), key=lambda a: (scores[a], a))
            self.alphas.append(grid[best])
            self.predictions.append(predictions[best])
            self.trained.append(_solved(K, Y, train, grid[best]))
        used = [each[train] for each in self.predictions]
        self.kept = keeps(used, Y[train], classify, ranking=metric is by_auc).tolist()
        self.average = self._average(self.predictions)
        self.test = np.nan if train.all() else metric(codes[~train], self.average[~train])

    def _average(self, each):
        return np.mean([e for e, keep in zip(each, self.kept, strict=True) if keep], axis=0)

    def fold_scores(self, predictions):
        members = [self.fold == f for f in range(self.fold.max() + 1)]
        return [float(self.metric(self.codes[m], predictions[m])) for m in members]

    def _mean_score(self, predictions):
        return float(np.mean(self.fold_scores(predictions)))

    def _chosen_by(self, predictions, Y):
        """Squared error where classes are scored by accuracy, and else the score itself."""
        if self.metric is not accuracy:
            return self._mean_score(predictions)
        used = self.fold >= 0
        return -((np.clip(predictions[used], -1.5, 1.5) - Y[used]) ** 2).mean()

    @property
    def models(self):
        """Name and alpha of each base model that is kept."""
        pairs = zip(self.names, self.alphas, self.kept, strict=True)
        return [(name, alpha) for name, alpha, keep in pairs if keep]

    @property
    def outputs(self):
        """Of the ensemble, trained on all graphs."""
        return self._average(self.trained)


def _kernel_of(base, graphs):
    X = dense(draw_features(base, graphs)[0])
    X = X[:, X.any(axis=0)]
    if isinstance(base.readout, KernelRidge):
        distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        return np.exp(-distance / distance.mean())
    return X @ X.T / ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()


def _solved(K, Y, used, alpha):
    """Outputs for all graphs of kernel ridge regression on some, its bias not regularized."""
    n = int(used.sum())
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K[np.ix_(used, used)] + alpha * np.eye(n)
    system[n, :n] = system[:n, n] = 1.0
    solution = np.linalg.solve(system, np.vstack([Y[used], np.zeros((1, Y.shape[1]))]))
    return K[:, used] @ solution[:n] + solution[n]


def of_fit(graphs, y, classify=True, model=AUTO, metric=None):
    """The same as `model.fit`."""
    targets = read_targets(y, graphs, classify)
    fold = choice_folds(targets, graphs, seed_sequence(model.random_state))
    return ByHand(
        graphs, y, fold, metric or (accuracy if classify else squared_error), model, classify
    )


def by_auc(codes, outputs):
    return roc_auc_score(codes, outputs[:, 0])


# ---------------------------------------------------------------------- a fitted ensemble


def test_the_base_models_that_are_kept_are_fitted_with_the_best_alpha(labeled, fitted):
    graphs, y = labeled
    expected = of_fit(graphs, y)
    assert [(m.name, m.alpha) for m in fitted.estimators_] == expected.models
    assert len(expected.models) > 1
    np.testing.assert_allclose(fitted.outputs(graphs), expected.outputs, atol=1e-6)


def test_a_base_model_that_is_clearly_worse_is_not_in_the_model():
    """Motifs are told apart by degrees refined once, hardly by numbers of vertices."""
    graphs, y = make_motif_graphs(60, random_state=0)
    model = clone(AUTO).fit(graphs, y)
    expected = of_fit(graphs, y)
    assert 1 <= len(model.estimators_) < len(expected.names)
    assert [(m.name, m.alpha) for m in model.estimators_] == expected.models


def test_outputs_are_the_average_of_the_base_models(labeled, fitted):
    new = make_random_graphs(20, random_state=7)
    each = [m.readout.outputs(m.features(new)) for m in fitted.estimators_]
    assert len({type(m.encoder) for m in fitted.estimators_}) == 2
    np.testing.assert_allclose(fitted.outputs(new), np.mean(each, axis=0), atol=1e-12)
    probabilities = fitted.predict_proba(new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (fitted.classes_[probabilities.argmax(axis=1)] == fitted.predict(new)).all()
    assert fitted.score(*labeled) > 0.75


def test_fits_are_bitwise_reproducible_with_any_number_of_threads(labeled, fitted):
    graphs, y = labeled
    for n_jobs in (None, 2):
        again = clone(AUTO).set_params(n_jobs=n_jobs, probability=True).fit(graphs, y)
        np.testing.assert_array_equal(again.outputs(graphs), fitted.outputs(graphs))
        assert again.targets_[0].slope == fitted.targets_[0].slope
    other = clone(AUTO).set_params(random_state=1).fit(graphs, y)
    assert not np.array_equal(other.outputs(graphs), fitted.outputs(graphs))


def test_parameters_are_kept_and_set():
    model = AutoGraphClassifier("union", class_weight={0: 2.0})
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.set_params(candidates="wl").get_params()["candidates"] == "wl"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GraphClassifier(readout="deep"), "readout='deep': expected 'auto', 'linear', 'rbf', a"),
        (GraphClassifier(readout=Ridge(alpha=-1.0)), "alpha=-1.0"),
        (
            GraphRegressor(WLCounts(n_iterations=-1)),
            "n_iterations=-1: expected an integer, at least",
        ),
        (
            GraphRegressor("wl", n_estimators=2),
            "n_estimators=2 has no effect: the encoder wl draws",
        ),
        (FDGNNClassifier(n_jobs="a"), "n_jobs='a': expected None or an integer other than 0"),
        (AutoGraphRegressor(n_jobs=0), "n_jobs=0: expected None or an integer other than 0"),
        (AutoGraphClassifier(handle_unknown="drop"), "handle_unknown='drop': expected one of"),
    ],
)
def test_parameters_without_effect_and_wrong_ones_are_reported(labeled, model, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit(*labeled)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_configurations": 2}, "n_configurations=2 has no effect: there is nothing to draw"),
        ({"depths": (1, 2)}, r"depths=\(1, 2\) has no effect: the estimator has no depth"),
        ({"param_distributions": {"nonsense": [1]}}, "Invalid parameter 'nonsense'"),
        ({"configurations": [{"n_units": 5}]}, "Invalid parameter 'n_units'"),
    ],
)
def test_a_search_of_the_ensemble_rejects_what_it_cannot_search(labeled, options, message):
    with pytest.raises(ValueError, match=message):
        FDGNNSearchCV(AUTO, **options).fit(*labeled)


@pytest.mark.parametrize("name", ["auto", "reservoir", "wl"])
def test_a_search_takes_weights_of_graphs(labeled, name):
    graphs, y = labeled
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, size=len(y)).astype(float)
    few = {"auto": {}, "wl": {"depths": (2,)}, "reservoir": {"depths": (2,), "n_configurations": 1}}
    search = FDGNNSearchCV(
        classifier(name, random_state=0), cv=3, outer_cv=3, random_state=0, **few[name]
    )
    found = search.fit(graphs, y, sample_weight=weights)
    some = weights > 0
    mine = found.decision_function(graphs)
    if name != "auto":
        by_hand = clone(found.best_estimator_).fit(graphs[some], y[some], weights[some])
        np.testing.assert_allclose(mine, by_hand.outputs(graphs)[:, 0], atol=1e-9)
    plain = clone(search).fit(graphs[some], y[some])
    assert not np.allclose(mine, plain.decision_function(graphs), atol=1e-3)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        clone(search).fit(graphs, y, sample_weight=weights[:-1])


def test_an_ensemble_of_regressors():
    graphs = make_random_graphs(60, random_state=2)
    rng = np.random.default_rng(0)
    y = np.bincount(graphs.graph_of_vertex, graphs.labels == 0) + rng.normal(scale=0.3, size=60)
    model = AutoGraphRegressor(random_state=0).fit(graphs[:50], y[:50])
    expected = of_fit(graphs[:50], y[:50], classify=False, model=AutoGraphRegressor(random_state=0))
    assert [(m.name, m.alpha) for m in model.estimators_] == expected.models
    np.testing.assert_allclose(model.predict(graphs[:50]), expected.outputs[:, 0], atol=1e-5)
    assert model.score(graphs[50:], y[50:]) > 0.7
    two = AutoGraphRegressor(random_state=0).fit(graphs, np.stack([y, -y], axis=1))
    assert two.predict(graphs).shape == (60, 2)


def test_an_ensemble_of_three_classes():
    graphs = make_random_graphs(90, random_state=0)
    sizes = np.diff(graphs.vertex_offsets)
    y = np.array(["small", "medium", "large"])[np.searchsorted([10, 14], sizes)]
    model = clone(AUTO).set_params(probability=True).fit(graphs, y)
    assert model.decision_function(graphs).shape == model.predict_proba(graphs).shape == (90, 3)
    assert [(m.name, m.alpha) for m in model.estimators_] == of_fit(graphs, y).models
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


@pytest.mark.parametrize("n_estimators", [1, 2])
def test_integer_weights_are_repeated_graphs(labeled, n_estimators):
    """As scikit-learn's check of estimators says, where neither alpha nor k is learned."""
    graphs, y = labeled
    times = np.random.default_rng(2).integers(0, 4, size=len(y))
    again = np.repeat(np.arange(len(y)), times)
    for kind in (FDGNNClassifier, FDGNNRegressor):
        model = kind(alpha=0.3, degree=4, n_estimators=n_estimators, random_state=0)
        weighted = model.fit(graphs, y, sample_weight=times).outputs(graphs)
        repeated = clone(model).fit(graphs[again], y[again]).outputs(graphs)
        np.testing.assert_allclose(weighted, repeated, atol=1e-8)
        assert not np.allclose(weighted, clone(model).fit(graphs, y).outputs(graphs), atol=1e-3)


def test_a_constant_weight_divides_the_regularization(labeled):
    graphs, y = labeled
    doubled = FDGNNClassifier(alpha=0.2, random_state=0).fit(graphs, y, np.full(len(y), 2.0))
    halved = FDGNNClassifier(alpha=0.1, random_state=0).fit(graphs, y)
    np.testing.assert_allclose(doubled.outputs(graphs), halved.outputs(graphs), atol=1e-9)


def test_graphs_of_weight_zero_are_left_out(labeled):
    graphs, y = labeled
    weights = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    some = weights > 0
    weighted = clone(AUTO).fit(graphs, y, sample_weight=weights)
    left = clone(AUTO).fit(graphs[some], y[some], sample_weight=weights[some])
    np.testing.assert_array_equal(weighted.outputs(graphs), left.outputs(graphs))
    with pytest.raises(ValueError, match="y has one value only, 1, in the 36 graphs"):
        clone(AUTO).fit(graphs, y, sample_weight=(y == 1).astype(float))
    real = GraphRegressor("wl", KernelRidge(alpha=1.0))
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


@pytest.mark.parametrize("candidates", ["all", "wl", "union"])
def test_labels_that_are_new_are_counted_and_no_error(labeled, candidates):
    known = list(make_random_graphs(2, random_state=5))
    strange = Graph([[0, 1], [1, 2]], labels=[0, 1, 99])
    new = GraphBatch.from_graphs([known[0], strange, known[1]])
    fitted = clone(AUTO).set_params(candidates=candidates).fit(*labeled)
    with pytest.warns(
        UnknownLabelWarning, match="1 of 3 graphs has labels or graph-level features"
    ):
        outputs = fitted.outputs(new)
    assert fitted.unknown_labels(new) == {1: "vertex label 99 was not seen during fit"}
    assert fitted.valid_graphs(new).errors == {}
    theirs = [m.readout.outputs(m.features(new[1:2])) for m in fitted.estimators_]
    np.testing.assert_allclose(outputs[1], np.mean(theirs, axis=0)[0], atol=1e-12)
    np.testing.assert_allclose(outputs[[0, 2]], fitted.outputs(known), atol=1e-12)


# ---------------------------------------------------------------------- too little to learn from


def test_too_little_to_learn_from(labeled):
    graphs, _ = labeled
    with pytest.raises(ValueError, match="one class only"):
        clone(AUTO).fit(graphs, np.zeros(80))
    with pytest.raises(ValueError, match=r"a class has only one graph, .*; give every class"):
        clone(AUTO).fit(graphs, np.arange(80) < 1)
    with pytest.raises(ValueError, match="there is one graph only"):
        AutoGraphRegressor().fit(graphs[:1], [1.0])
    with pytest.warns(ClassImbalanceWarning, match="class True has 2.5 % of the graphs"):
        assert len(clone(AUTO).fit(graphs, np.arange(80) < 2).estimators_) >= 1


# ---------------------------------------------------------------------- nested scores


def fits_of(graphs, y, folds, metric=accuracy):
    task = FitTask(read_targets(y, graphs, True), folds, metric, by_squares=metric is accuracy)
    bases = AUTO._base_models(GraphKind.of(graphs), len(graphs), seed_sequence(0))
    return [fit_depths(base, graphs, task)[0] for base in bases], task


@pytest.mark.parametrize("row", [0, 2])
def test_nested_scores_are_those_of_separate_fits(labeled, row):
    graphs, y = labeled
    folds = nested_folds(y, 3, 4, seed=0)
    fits, task = fits_of(graphs, y, folds)
    found = combine(fits, task)
    expected = ByHand(graphs, y, folds[row], accuracy)
    assert [fit.chosen_alphas[row, 0] for fit in fits] == expected.alphas
    assert found.kept[row].tolist() == expected.kept
    assert found.scores.validation[row, 0, 0] == pytest.approx(
        expected._mean_score(expected.average)
    )
    assert found.scores.test[row, 0, 0] == pytest.approx(expected.test)


def test_test_graphs_have_no_say_in_the_choice(labeled):
    """Other targets of the test graphs change neither alphas nor the ensemble, but the score."""
    graphs, y = labeled
    folds = nested_folds(y, 3, 4, seed=0)[:1]
    turned = np.where(folds[0] < 0, 1 - y, y)
    (fits, task), (others, other_task) = (fits_of(graphs, labels, folds) for labels in (y, turned))
    for one, other in zip(fits, others, strict=True):
        assert one.chosen_alphas.tolist() == other.chosen_alphas.tolist()
        np.testing.assert_allclose(one.choice.predictions, other.choice.predictions, atol=1e-6)
    one, other = combine(fits, task), combine(others, other_task)
    assert one.kept.tolist() == other.kept.tolist()
    assert one.scores.test[0, 0, 0] == pytest.approx(1 - other.scores.test[0, 0, 0])


def test_the_seed_of_a_search_is_that_of_its_reservoirs(labeled):
    graphs, y = labeled
    unseeded = AutoGraphClassifier()
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
def test_a_search_scores_the_ensemble_and_fits_it(labeled, scoring, metric):
    graphs, y = labeled
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    search = FDGNNSearchCV(AUTO, cv=cv, outer_cv=3, scoring=scoring, random_state=4)
    search.fit(graphs, y)
    whole = np.empty(len(y), dtype=int)
    for f, (_, left) in enumerate(cv.split(y, y)):
        whole[left] = f
    expected = ByHand(graphs, y, whole, metric)
    alone = [expected.fold_scores(each) for each in expected.predictions]
    results = search.cv_results_
    rows = [
        next(
            i for i, params in enumerate(results["params"])
            if params["model"] == name and params["alpha"] == alpha
        )
        for name, alpha in zip(expected.names, expected.alphas, strict=True)
    ]  # fmt: skip
    assert results["kept"][rows].tolist() == expected.kept
    assert list(dict.fromkeys(results["param_model"].tolist())) == expected.names
    for f in range(3):
        column = results[f"split{f}_test_score"][rows]
        np.testing.assert_allclose(column, [each[f] for each in alone])
    np.testing.assert_allclose(results["mean_test_score"][rows], np.mean(alone, axis=1))
    np.testing.assert_allclose(results["std_test_score"][rows], np.std(alone, axis=1))
    assert search.best_score_ == pytest.approx(expected._mean_score(expected.average))
    assert search.best_params_ == {}
    outer = StratifiedKFold(3, shuffle=True, random_state=integer_seed(seed_sequence(4), 0))
    train, _ = next(iter(outer.split(y, y)))
    first = np.full(len(y), -1)
    for f, (_, left) in enumerate(cv.split(y[train], y[train])):
        first[train[left]] = f
    assert search.nested_scores_[0] == pytest.approx(ByHand(graphs, y, first, metric).test)
    assert search.nested_score_ == pytest.approx(search.nested_scores_.mean())
    np.testing.assert_allclose(search.best_estimator_.outputs(graphs), expected.outputs, atol=1e-6)
    right = search.best_estimator_.score(graphs, y)
    if scoring:
        right = roc_auc_score(y, search.decision_function(graphs))
    assert search.score(graphs, y) == pytest.approx(right)


def test_a_search_of_a_regressor_and_processes_change_nothing():
    graphs = make_random_graphs(60, random_state=2)
    y = np.diff(graphs.vertex_offsets) + np.random.default_rng(0).normal(size=60)
    base = AutoGraphRegressor("wl", random_state=0)
    one, two = (
        FDGNNSearchCV(base, cv=3, outer_cv=2, random_state=0, n_jobs=n).fit(graphs, y)
        for n in (1, 2)
    )
    assert one.nested_scores_.tolist() == two.nested_scores_.tolist()
    assert one.best_score_ == two.best_score_ > 0.5
    assert one.predict(graphs).shape == (60,)


@pytest.mark.parametrize("name", ["auto", "reservoir"])
def test_a_search_trains_with_the_class_weight(labeled, name):
    graphs, _ = labeled
    y = (np.arange(80) % 8 == 0).astype(int)  # nothing to learn: all graphs look like the others
    found = {}
    for weight in (None, "balanced"):
        base = classifier(name, class_weight=weight, random_state=0)
        few = {"n_configurations": 1, "depths": (1,), "alphas": (10.0,)}
        few = {} if name == "auto" else few
        search = FDGNNSearchCV(base, cv=4, scoring="recall", random_state=0, **few)
        found[weight] = search.fit(graphs, y).best_score_
    assert found["balanced"] > found[None]


# ---------------------------------------------------------------------- convergence is reported


@pytest.mark.parametrize(("model", "remedy", "other"), [
    (AUTO, 'candidates="wl" (--model wl)', "effective_spectral_radius"),
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


def test_wl_features_alone_do_not_warn(labeled):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(AUTO).set_params(candidates="wl").fit(*labeled)
