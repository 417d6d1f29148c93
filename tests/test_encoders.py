"""The protocol of encoders: one of ten lines goes everywhere without a change elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fdgnn import (
    Encoder,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    GraphReservoir,
    RandomExpansion,
    explain,
    load_model,
    register_encoder,
    save_model,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import encoder_class
from fdgnn.exceptions import GraphError, ModelFileError
from fdgnn.parameters import Number


@register_encoder
class DegreeHistogram(Encoder):
    """Counts of vertices by degree."""

    kind = "test-degrees"
    rules = {"n_bins": Number(1, whole=True)}  # noqa: RUF012

    def __init__(self, n_bins=8):
        self.n_bins = n_bins

    def vertex_features(self, graphs):
        degrees = np.minimum(np.diff(graphs.indptr), self.n_bins - 1)
        return np.eye(self.n_bins)[degrees]


class SparseDegrees(DegreeHistogram):
    """The same as a sparse matrix, with many empty columns."""

    kind = "test-sparse-degrees"

    def encode(self, graphs, depths=None, n_jobs=None):
        found = super().encode(graphs, depths, n_jobs)
        return found._replace(features=[_widened(X) for X in found.features])


def _widened(X):
    return sp.csr_array(np.pad(X, ((0, 0), (0, 500))))


@pytest.fixture(scope="module")
def motifs():
    return make_motif_graphs(80, random_state=0)


@pytest.fixture(scope="module")
def fitted(motifs):
    return FDGNNClassifier(encoder=DegreeHistogram(6), probability=True).fit(*motifs)


def histogram(graphs, n_bins):
    rows = []
    for graph in graphs:
        degrees = np.bincount(np.asarray(graph.edge_index)[1], minlength=graph.n_vertices)
        rows.append(np.bincount(np.minimum(degrees, n_bins - 1), minlength=n_bins))
    return np.array(rows, dtype=float)


def test_a_trial_encoder_is_a_transformer(motifs):
    graphs, y = motifs
    X = DegreeHistogram(6).fit_transform(graphs)
    np.testing.assert_array_equal(X, histogram(graphs, 6))
    pipeline = make_pipeline(DegreeHistogram(), LogisticRegression(max_iter=1000))
    assert pipeline.fit(graphs, y).score(graphs, y) > 0.5
    with pytest.raises(ValueError, match="n_bins=0: expected an integer, at least 1"):
        DegreeHistogram(0).fit(graphs)


def test_a_trial_encoder_is_read_by_a_linear_readout(motifs, fitted):
    from sklearn.linear_model import Ridge

    graphs, y = motifs
    X = histogram(graphs, 6)
    ridge = Ridge(alpha=1e-3).fit(X, np.where(y == fitted.classes_[1], 1.0, -1.0))
    np.testing.assert_allclose(fitted.decision_function(graphs), ridge.predict(X), atol=1e-8)
    assert fitted.predict_proba(graphs).shape == (80, 2)
    assert fitted.networks_[0].expansion is None
    assert not hasattr(fitted, "n_iter_")  # nothing was iterated


def test_a_trial_encoder_can_be_expanded(motifs):
    graphs, y = motifs
    model = FDGNNClassifier(encoder=DegreeHistogram(6), n_projections=30, random_state=0)
    model.fit(graphs, y)
    expansion = model.networks_[0].expansion
    X = np.tanh(histogram(graphs, 6) @ expansion.projection_.T)
    np.testing.assert_allclose(model.networks_[0].features(graphs), X)


def test_a_trial_encoder_regresses(motifs):
    graphs, _ = motifs
    sizes = np.diff(graphs.vertex_offsets).astype(float)
    assert FDGNNRegressor(encoder=DegreeHistogram()).fit(graphs, sizes).score(graphs, sizes) > 0.99


def test_a_trial_encoder_is_searched(motifs):
    graphs, y = motifs
    base = FDGNNClassifier(encoder=DegreeHistogram())
    search = FDGNNSearchCV(
        base, param_distributions={"encoder__n_bins": [2, 4, 8]}, n_configurations=3, n_guesses=1,
        cv=4, random_state=0,
    ).fit(graphs, y)  # fmt: skip
    assert search.best_params_["encoder__n_bins"] in (2, 4, 8)
    assert search.best_estimator_.encoder.n_bins == search.best_params_["encoder__n_bins"]
    alone = FDGNNSearchCV(base, n_guesses=1, cv=4, random_state=0).fit(graphs, y)
    assert "n_layers" not in alone.best_params_  # it has no depth, and nothing to search by default


def test_an_encoder_by_name_keeps_defaults_that_the_model_has_not(motifs):
    graphs, y = motifs
    named = FDGNNClassifier(encoder="test-degrees")
    assert (named.depth_parameter, dict(named.search_space)) == (None, {})
    search = FDGNNSearchCV(named, n_guesses=1, cv=4, random_state=0).fit(graphs, y)
    assert search.best_estimator_.networks_[0].encoder.n_bins == 8


def test_an_encoder_with_depths_must_encode_them_itself(motifs):
    class Deep(DegreeHistogram):
        kind = "test-deep"
        depth_parameter = "n_bins"

    graphs, y = motifs
    FDGNNClassifier(encoder=Deep()).fit(graphs, y)  # one depth, its own
    with pytest.raises(NotImplementedError, match="Deep has depths, but no encode of its own"):
        FDGNNClassifier(encoder=Deep()).network_features(graphs, 0, (2, 8))


def test_a_trial_encoder_is_saved_and_loaded(fitted, motifs, tmp_path):
    graphs, _ = motifs
    save_model(fitted, tmp_path / "model.fdgnn")
    again = load_model(tmp_path / "model.fdgnn")
    np.testing.assert_array_equal(again.predict_proba(graphs), fitted.predict_proba(graphs))
    assert again.encoder.n_bins == 6
    encoder = DegreeHistogram(3).fit(graphs)
    save_model(encoder, tmp_path / "encoder.fdgnn")
    alike = load_model(tmp_path / "encoder.fdgnn")
    np.testing.assert_array_equal(alike.transform(graphs), encoder.transform(graphs))


def test_an_encoder_nobody_knows_is_not_loaded(motifs, tmp_path):
    graphs, y = motifs
    model = FDGNNClassifier(encoder=SparseDegrees()).fit(graphs, y)
    with pytest.raises(ModelFileError, match="is not known; register it first"):
        save_model(model, tmp_path / "model.fdgnn")


def test_a_trial_encoder_is_explained(fitted, motifs):
    graphs, _ = motifs
    scores = fitted.decision_function(graphs)
    for g, found in enumerate(explain(fitted, graphs, target=fitted.classes_[1])):
        assert found.score == pytest.approx(scores[g])
        assert found.vertices.sum() == pytest.approx(found.score - found.base_score)
        degrees = np.diff(graphs[[g]].indptr)
        assert len(np.unique(found.vertices[degrees == degrees[0]].round(12))) == 1


def test_sparse_features_give_what_dense_ones_give(motifs):
    graphs, y = motifs
    dense, sparse = (
        FDGNNClassifier(encoder=e, probability=True, random_state=0).fit(graphs, y)
        for e in (DegreeHistogram(), SparseDegrees())
    )
    assert sp.issparse(sparse.networks_[0].features(graphs))
    np.testing.assert_allclose(
        sparse.decision_function(graphs), dense.decision_function(graphs), atol=1e-8
    )
    np.testing.assert_allclose(sparse.predict_proba(graphs), dense.predict_proba(graphs), atol=1e-6)


def test_the_reservoir_as_an_object_is_the_reservoir_by_name(motifs):
    graphs, y = motifs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = FDGNNClassifier(n_units=12, n_layers=2, random_state=3).fit(graphs, y)
        other = FDGNNClassifier(encoder=GraphReservoir(n_units=12, n_layers=2), random_state=3).fit(
            graphs, y
        )
    np.testing.assert_array_equal(one.decision_function(graphs), other.decision_function(graphs))
    assert one.depth_parameter == "n_layers"
    assert other.depth_parameter == "encoder__n_layers"
    assert set(other.search_space) == {f"encoder__{name}" for name in one.search_space}
    for depth, X in zip((1, 2), other.network_features(graphs, 0, (1, 2)), strict=True):
        own = clone(one).set_params(n_layers=depth).fit(graphs, y)
        np.testing.assert_array_equal(X, own.networks_[0].features(graphs))


def test_all_layers_can_be_read(motifs):
    graphs, y = motifs
    encoder = GraphReservoir(n_units=10, n_layers=3, pooled_layers="all")
    model = FDGNNClassifier(encoder=encoder, random_state=0).fit(graphs, y)
    assert model.projection_.shape == (60, 30)
    shallow, deep = model.network_features(graphs, 0, (2, 3))
    assert (shallow.shape, deep.shape) == ((80, 40), (80, 60))
    np.testing.assert_array_equal(deep, model.networks_[0].features(graphs))


def test_unknown_encoders_and_names_taken_are_told():
    with pytest.raises(ValueError, match="encoder='nonsense': expected one of 'reservoir'"):
        encoder_class("nonsense")
    with pytest.raises(ValueError, match="another encoder called 'reservoir'"):
        register_encoder(type("Mine", (Encoder,), {"kind": "reservoir"}))


@register_encoder
class AtLeastTen(DegreeHistogram):
    """A name of a parameter that models have, with a rule of its own."""

    kind = "test-at-least-ten"
    rules = {"n_units": Number(10, whole=True)}  # noqa: RUF012

    def __init__(self, n_units=10):
        super().__init__()
        self.n_units = n_units


def test_a_registered_encoder_checks_by_its_own_rules(motifs):
    model = FDGNNClassifier(encoder="test-at-least-ten", n_units=9)
    with pytest.raises(ValueError, match="n_units=9: expected an integer, at least 10"):
        model.fit(*motifs)
    assert model.set_params(n_units=10).fit(*motifs).networks_[0].encoder.n_units == 10


def test_graphs_of_another_kind_are_refused(fitted):
    labeled = make_random_graphs(5, random_state=0)
    with pytest.raises(GraphError, match="fitted on graphs with no vertex labels"):
        fitted.predict(labeled)


def test_expansion_is_the_inner_part_of_equation_3():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 5))
    expansion = RandomExpansion(n_projections=11, random_state=0).fit(X)
    W_phi = expansion.projection_
    assert W_phi.shape == (11, 5)
    np.testing.assert_allclose(np.linalg.norm(W_phi, 2), 1.0)
    np.testing.assert_allclose(expansion.transform(X), np.tanh(X @ W_phi.T))
    np.testing.assert_allclose(expansion.transform(sp.csr_array(X)), np.tanh(X @ W_phi.T))
    assert expansion.n_features_in_ == 5
    with pytest.raises(ValueError, match="n_projections=0"):
        RandomExpansion(0).fit(X)


def test_the_mean_gradient_is_the_integral_along_the_way():
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(4, 5)), rng.normal(size=(4, 11))
    expansion = RandomExpansion(11, random_state=0).fit(X)
    W_phi = expansion.projection_
    nodes, weights = np.polynomial.legendre.leggauss(40)
    path = (nodes + 1) / 2
    slopes = [w * (1 - np.tanh(t * X @ W_phi.T) ** 2) @ W_phi for t in path]
    quadrature = sum(0.5 * c * s for c, s in zip(weights, slopes, strict=True))
    np.testing.assert_allclose(expansion.mean_gradient(X, w), quadrature, atol=1e-12)


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_a_trial_encoder_has_a_page(fitted, motifs, tmp_path):
    pytest.importorskip("altair", reason="the page needs the extra report")
    from fdgnn.portrait import portrait_of_model
    from fdgnn.report import model_subject, write_report

    graphs, y = motifs
    save_model(fitted, tmp_path / "model.fdgnn", score=0.9)
    portrait = portrait_of_model(fitted, graphs, y, dataset="motifs", held_out=True)
    assert portrait.dynamics is None  # nothing is iterated
    subject = model_subject(tmp_path / "model.fdgnn", portrait)
    page = write_report(subject, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "test-degrees" in page
    assert "n bins" in page
