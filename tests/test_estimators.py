"""The estimators: eq. 3 end to end, and scikit-learn's contract."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

import reference
from fdgnn import FDGNNClassifier, FDGNNRegressor, Graph, GraphBatch, GraphReservoir, expansion
from fdgnn.datasets import make_cycles, make_motif_graphs, make_random_graphs
from fdgnn.exceptions import ConvergenceWarning, GraphError, UnknownLabelError
from fdgnn.expansion import draw_projection, projection_norm, unscaled_projection
from fdgnn.seeds import seed_sequence
from fdgnn.targets import coded
from models import NAMES, classifier, regressor
from strategies import circulant

SMALL = {"n_layers": 2, "n_units": 10, "effective_spectral_radius": 0.5, "random_state": 0}


@pytest.fixture(scope="module")
def motifs():
    return make_motif_graphs(80, random_state=0)


@pytest.fixture(scope="module")
def labeled():
    graphs = make_random_graphs(60, random_state=0)
    return graphs, np.arange(60) % 3


# ---------------------------------------------------------------------- the model


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifier_is_the_paper_line_by_line(labeled, n_classes):
    graphs, y = labeled[0], labeled[1] % n_classes
    model = FDGNNClassifier(alpha=0.1, solver="paper", **SMALL).fit(graphs, y)
    states = [reference.embed_graph(g, model.layers_, graphs.label_values)[0] for g in graphs]
    W_phi = model.estimators_[0].expansion.projection_
    features = np.array([np.tanh(W_phi @ s[-1].sum(axis=0)) for s in states])
    targets = coded(y, len(np.unique(y)))
    W_Y, b = reference.tikhonov(features, targets, 0.1)
    np.testing.assert_allclose(model.coef_, W_Y, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-6)
    outputs = np.array([reference.output(s, W_phi, W_Y, b) for s in states])
    decision = outputs[:, 0] if n_classes == 2 else outputs
    np.testing.assert_allclose(model.decision_function(graphs), decision, atol=1e-5)
    expected = decision > 0 if n_classes == 2 else outputs.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(graphs), model.classes_[expected.astype(int)])


def test_the_default_solver_and_the_papers_agree(motifs):
    graphs, y = motifs
    options = SMALL | {"tol": 1e-4, "max_iter": 1000}
    one, other = (FDGNNClassifier(solver=s, **options).fit(graphs, y) for s in ("auto", "paper"))
    scores = (m.decision_function(graphs) for m in (one, other))
    np.testing.assert_allclose(*scores, atol=1e-2)


def test_projection_has_unit_spectral_norm_and_its_own_stream():
    W_phi = draw_projection(seed_sequence(0), 10, 20)
    assert W_phi.shape == (20, 10)
    np.testing.assert_allclose(np.linalg.norm(W_phi, 2), 1.0)


def test_the_norm_of_a_projection_is_found_once_for_each_seed_and_size(monkeypatch):
    """Folds and configurations draw the same projections again and again."""
    found = []
    monkeypatch.setattr(expansion, "_known_norms", {})
    monkeypatch.setattr(expansion, "_MOST_NORMS", 3)
    monkeypatch.setattr(
        expansion, "projection_norm", lambda W: found.append(W.shape) or projection_norm(W)
    )
    asked = [(0, 10, 20), (0, 20, 10), (1, 10, 20), (0, 10, 20), (1, 10, 20)]
    drawn = [draw_projection(seed_sequence(seed), n, P) for seed, n, P in asked]
    assert found == [(20, 10), (10, 20), (20, 10)]
    for one, (seed, n, P) in zip(drawn, asked, strict=True):
        W_phi = unscaled_projection(seed_sequence(seed), n, P)
        np.testing.assert_array_equal(one, W_phi / projection_norm(W_phi))
    draw_projection(seed_sequence(2), 10, 20)  # one too many: all are forgotten
    assert len(expansion._known_norms) == 1


def test_the_norm_of_a_projection_does_not_depend_on_threads_of_blas():
    W_phi = unscaled_projection(seed_sequence(0), 500, 300)
    norms = set()
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads, user_api="blas"):
            norms.add(projection_norm(W_phi))
    assert len(norms) == 1


def test_few_projections_of_many_features_need_no_large_matrix():
    """With colors there are 2^18 features; a matrix of all pairs would take 512 GB."""
    W_phi = draw_projection(seed_sequence(0), 2**18, 3)
    np.testing.assert_allclose(np.linalg.norm(W_phi, 2), 1.0)


def test_free_parameters_are_as_few_as_the_paper_says(motifs):
    model = FDGNNClassifier(n_layers=1, n_units=50, random_state=0).fit(*motifs)
    assert model.coef_.size + model.intercept_.size == 101


def test_several_random_initializations_are_averaged(motifs):
    graphs, y = motifs
    model = FDGNNClassifier(n_estimators=3, **SMALL).fit(graphs, y)
    first = FDGNNClassifier(n_estimators=1, **SMALL).fit(graphs, y)
    np.testing.assert_array_equal(model.estimators_[0].readout.coef, first.coef_)
    one, other = (n.expansion.projection_ for n in model.estimators_[:2])
    assert not np.allclose(one, other)
    each = [n.readout.outputs(n.features(graphs)) for n in model.estimators_]
    np.testing.assert_allclose(model.decision_function(graphs), np.mean(each, axis=0)[:, 0])
    with pytest.raises(AttributeError, match=r"estimators_\[i\]"):
        _ = model.layers_


def test_regressor_learns_sizes_and_keeps_shapes():
    graphs = make_cycles(range(3, 40))
    sizes = np.arange(3.0, 40.0)
    model = FDGNNRegressor(random_state=0).fit(graphs, sizes)
    assert model.score(graphs, sizes) > 0.99
    both = FDGNNRegressor(random_state=0).fit(graphs, np.stack([sizes, -sizes], axis=1))
    np.testing.assert_allclose(both.predict(graphs)[:, 0], model.predict(graphs))
    assert both.predict(graphs).shape == (37, 2)


def test_motifs_are_learned(motifs):
    assert cross_val_score(FDGNNClassifier(n_layers=1, random_state=0), *motifs, cv=4).mean() > 0.7


def test_degree_is_the_average_or_the_largest_or_given():
    graphs = GraphBatch.from_graphs([*make_cycles([4]), *[circulant(8, 3)] * 3])
    degrees = {d: GraphReservoir(degree=d).fit(graphs).degree_ for d in ("average", "max", 7)}
    assert degrees == {"average": (2 + 3 * 6) / 4, "max": 6.0, 7: 7.0}


# ---------------------------------------------------------------------- the transformer


def test_transformer_pools_last_or_all_layers(labeled):
    graphs, _ = labeled
    last = GraphReservoir(**SMALL).fit_transform(graphs)
    model = GraphReservoir(pooled_layers="all", **SMALL).fit(graphs)
    every = model.transform(graphs)
    assert last.shape == (60, 10)
    assert every.shape == (60, 20)
    np.testing.assert_allclose(every[:, 10:], last)
    names = model.get_feature_names_out()
    assert [names[0], names[-1]] == ["layer1_unit0", "layer2_unit9"]


def test_vertex_states_sum_to_the_pooled(labeled):
    graphs, _ = labeled
    model = GraphReservoir(pooled_layers="all", **SMALL).fit(graphs)
    states = model.vertex_states(graphs)
    assert states.shape == (graphs.n_vertices, 20)
    pooled = np.add.reduceat(states, graphs.vertex_offsets[:-1])
    np.testing.assert_allclose(pooled, model.transform(graphs), atol=1e-4)


def test_transformer_gives_dataframes_on_request(labeled):
    pytest.importorskip("pandas")
    frame = GraphReservoir(**SMALL).set_output(transform="pandas").fit_transform(labeled[0])
    assert list(frame.columns[:2]) == ["layer2_unit0", "layer2_unit1"]


# ---------------------------------------------------------------------- scikit-learn's contract


@pytest.mark.parametrize("model", [FDGNNClassifier(), FDGNNRegressor(), GraphReservoir()])
def test_parameters_are_stored_cloned_and_documented(model):
    parameters = model.get_params()
    assert clone(model.set_params(n_units=7)).n_units == 7
    documented = f"{FDGNNClassifier.__doc__} {FDGNNRegressor.__doc__} {GraphReservoir.__doc__}"
    assert set(parameters) == {name for name in parameters if name in documented}
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("as_list", [False, True])
def test_tools_of_scikit_learn_take_batches_and_lists(motifs, as_list):
    graphs, y = motifs
    X = list(graphs) if as_list else graphs
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = FDGNNClassifier(**SMALL).fit(X_train, y_train)
    assert model.predict(X_test).shape == y_test.shape
    assert cross_val_score(model, X, y, cv=3).shape == (3,)
    grid = GridSearchCV(model, {"alpha": [0.1, 1.0], "n_layers": [1, 2]}, cv=2).fit(X, y)
    assert set(grid.best_params_) == {"alpha", "n_layers"}
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    pipeline = make_pipeline(GraphReservoir(**SMALL), StandardScaler(), LogisticRegression())
    assert pipeline.fit(X_train, y_train).predict(X_test).shape == y_test.shape


def test_fitted_models_survive_pickling_and_cloning(labeled):
    graphs, y = labeled
    model = FDGNNClassifier(**SMALL).fit(graphs, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(graphs), model.decision_function(graphs))
    with pytest.raises(NotFittedError):
        clone(model).predict(graphs)


@pytest.mark.parametrize("random_state", [0, 123])
def test_refitting_gives_the_same_bits(labeled, random_state):
    graphs, y = labeled
    model = FDGNNClassifier(**SMALL | {"random_state": random_state})
    first = model.fit(graphs, y).decision_function(graphs)
    np.testing.assert_array_equal(model.fit(graphs, y).decision_function(graphs), first)
    two_threads = clone(model).set_params(n_jobs=2).fit(graphs, y)
    np.testing.assert_array_equal(two_threads.decision_function(graphs), first)


def test_no_random_state_means_another_network_each_time(motifs):
    one, other = (FDGNNClassifier(n_units=10).fit(*motifs) for _ in range(2))
    assert not np.array_equal(
        one.estimators_[0].expansion.projection_, other.estimators_[0].expansion.projection_
    )
    assert get_tags(one).non_deterministic


def test_several_random_initializations_without_random_state_are_of_one_draw(motifs):
    model = FDGNNClassifier(n_units=10, n_estimators=2).fit(*motifs)
    one, other = (n.expansion.projection_ for n in model.estimators_)
    assert not np.array_equal(one, other)


def test_inputs_are_never_changed(motifs):
    graphs, y = motifs
    arcs = [np.array(g.edge_index) for g in graphs]
    mine = [Graph(a.copy()) for a in arcs]
    labels = y.copy()
    FDGNNClassifier(**SMALL).fit(mine, labels).predict(mine)
    np.testing.assert_array_equal(labels, y)
    for graph, a in zip(mine, arcs, strict=True):
        np.testing.assert_array_equal(graph.edge_index, a)
        assert graph.edge_index.flags.writeable


def test_tags_say_what_the_estimators_are():
    assert is_classifier(FDGNNClassifier())
    assert is_regressor(FDGNNRegressor())
    assert not get_tags(FDGNNClassifier()).input_tags.two_d_array
    assert get_tags(FDGNNRegressor()).target_tags.multi_output


@pytest.mark.parametrize("labels", [["a", "b"], [True, False], [-1, 1], [2.0, 5.0]])
def test_classes_may_be_of_any_type(motifs, labels):
    graphs, y = motifs
    y = np.array(labels)[y]
    model = FDGNNClassifier(**SMALL).fit(graphs, y)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert model.predict(graphs).dtype == y.dtype


# ---------------------------------------------------------------------- bad input


def test_wrong_y(motifs):
    graphs, y = motifs
    with pytest.raises(ValueError, match="79 entries, but there are 80 graphs"):
        FDGNNClassifier().fit(graphs, y[:-1])
    with pytest.raises(ValueError, match="one class only"):
        FDGNNClassifier().fit(graphs, np.zeros(80))
    with pytest.raises(ValueError, match=r"y\[3\] is NaN"):
        FDGNNRegressor().fit(graphs, np.where(np.arange(80) == 3, np.nan, 1.0))
    with pytest.raises(ValueError, match="single value"):
        FDGNNRegressor().fit(graphs, 1.0)
    told = "y has text, such as 'mesh', but a regressor learns numbers; for classes, take AutoG"
    for texts in (["1.5", "mesh"] * 40, np.array(["mesh", "ring"] * 40)):
        with pytest.raises(ValueError, match=told):
            FDGNNRegressor().fit(graphs, texts)
    with pytest.raises(ValueError, match=r"such as '0,5'.*; write decimal points"):
        FDGNNRegressor().fit(graphs, ["0,5", "1,5"] * 40)
    with pytest.raises(ValueError, match="classes are whole numbers or text"):
        FDGNNClassifier().fit(graphs, np.random.default_rng(0).random(80))


def test_more_folds_than_members(motifs):
    graphs, y = motifs
    with pytest.raises(ValueError, match="n_splits"):
        cross_val_score(FDGNNClassifier(**SMALL), graphs[:6], y[:6], cv=10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_layers", 0), ("n_layers", 1.5), ("n_units", -1), ("n_connections", 0),
        ("effective_spectral_radius", -0.1), ("input_scaling", np.nan), ("alpha", -1.0),
        ("tol", "small"), ("max_iter", 0), ("n_estimators", True), ("n_projections", -1),
        ("degree", "mean"), ("degree", -2.0), ("solver", "fast"), ("alpha", np.inf),
    ],
)  # fmt: skip
def test_wrong_parameters_are_named_with_what_was_found(motifs, name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        FDGNNClassifier(**{name: value}).fit(*motifs)


def test_graphs_of_another_kind_are_rejected(labeled):
    graphs, y = labeled
    model = FDGNNClassifier(handle_unknown="error", **SMALL).fit(graphs, y)
    with pytest.raises(UnknownLabelError, match="graph 1: vertex label 99"):
        model.predict([Graph([[0], [1]], labels=[0, 1]), Graph([[0], [1]], labels=[0, 99])])
    with pytest.raises(GraphError, match="directed"):
        model.predict([Graph([[0], [1]], labels=[0, 1], directed=True)])
    with pytest.raises(GraphError, match="no vertex labels"):
        model.predict(make_cycles([3]))
    with pytest.raises(GraphError, match="features"):
        model.predict([Graph([[0], [1]], features=[[0.1], [0.2]])])
    plain = FDGNNClassifier(**SMALL).fit(make_cycles(range(3, 9)), [0, 1] * 3)
    with pytest.raises(GraphError, match="labels"):
        plain.predict(graphs)


def test_features_of_another_width_are_rejected():
    rng = np.random.default_rng(0)
    graphs = [Graph([[0], [1]], features=rng.normal(size=(2, 3))) for _ in range(6)]
    model = FDGNNClassifier(**SMALL).fit(graphs, [0, 1] * 3)
    with pytest.raises(GraphError, match="2 features per vertex, but the model was fitted on 3"):
        model.predict([Graph([[0], [1]], features=np.ones((2, 2)))])


# ---------------------------------------------------------------------- convergence is told


def test_unconverged_graphs_are_told_once_with_numbers():
    graphs = GraphBatch.from_graphs([circulant(10, 2)] * 6)
    model = FDGNNClassifier(
        n_layers=2, effective_spectral_radius=5.0, input_scaling=0.1, random_state=0
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(graphs, [0, 1] * 3)
    assert [w.category for w in told] == [ConvergenceWarning]
    assert "6 of 6 graphs" in str(told[0].message)
    assert told[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="2 of 2 graphs") as at_prediction:
        model.predict(graphs[:2])
    assert [w.filename for w in at_prediction] == [__file__]
    assert not model.converged_.any()
    assert (model.n_iter_ == 50).all()


def test_converged_graphs_are_not_mentioned(motifs):
    model = FDGNNClassifier(effective_spectral_radius=0.5, random_state=0).fit(*motifs)
    assert model.converged_.all()
    assert model.converged_.shape == model.n_iter_.shape == (80,)
    assert (model.n_iter_ >= 1).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [classifier, regressor])
def test_attributes_can_be_listed_fitted_or_not(kind, name):
    """scikit-learn's `dir` asks for each attribute, and only AttributeError means that it lacks."""
    graphs, y = make_motif_graphs(20, random_state=0)
    model = kind(name, random_state=0)
    assert {"fit", "predict"} <= set(dir(model))
    assert "estimators_" in dir(model.fit(graphs, y))


@pytest.mark.parametrize("model", [FDGNNClassifier(), FDGNNRegressor(target_transform="log10")])
def test_a_model_is_not_taken_for_a_transformer(model):
    assert not hasattr(model, "transform")
    assert not hasattr(make_pipeline(model), "transform")
