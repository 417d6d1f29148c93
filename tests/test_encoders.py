"""The protocol of encoders: one of ten lines goes everywhere without a change elsewhere."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fdgnn import (
    AutoGraphClassifier,
    Encoder,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNSearchCV,
    Graph,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    RandomExpansion,
    Ridge,
    WLCounts,
    as_batch,
    explain,
    load_model,
    register_encoder,
    save_model,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import encoder_class
from fdgnn.exceptions import (
    FeatureError,
    GraphError,
    ModelFileError,
    SaturationWarning,
    UnusedDataWarning,
)
from fdgnn.fitting import draw_features
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
    return GraphClassifier(DegreeHistogram(6), PAPER, probability=True).fit(*motifs)


PAPER = Ridge(alpha=1e-3, normalize=False)


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
    graphs, y = motifs
    X = histogram(graphs, 6)
    ridge = linear_model.Ridge(alpha=1e-3).fit(X, np.where(y == fitted.classes_[1], 1.0, -1.0))
    np.testing.assert_allclose(fitted.decision_function(graphs), ridge.predict(X), atol=1e-8)
    assert fitted.predict_proba(graphs).shape == (80, 2)
    assert fitted.estimators_[0].expansion is None
    assert not hasattr(fitted, "n_iter_")  # nothing was iterated


def test_a_trial_encoder_can_be_expanded(motifs):
    graphs, y = motifs
    model = GraphClassifier(DegreeHistogram(6), n_projections=30, random_state=0)
    model.fit(graphs, y)
    expansion = model.estimators_[0].expansion
    X = np.tanh(histogram(graphs, 6) @ expansion.projection_.T)
    np.testing.assert_allclose(model.estimators_[0].features(graphs), X)


def test_a_trial_encoder_regresses(motifs):
    graphs, _ = motifs
    sizes = np.diff(graphs.vertex_offsets).astype(float)
    assert GraphRegressor(DegreeHistogram()).fit(graphs, sizes).score(graphs, sizes) > 0.99


def test_a_trial_encoder_is_searched(motifs):
    graphs, y = motifs
    base = GraphClassifier(DegreeHistogram())
    search = FDGNNSearchCV(
        base, param_distributions={"encoder__n_bins": [2, 4, 8]}, n_configurations=3,
        cv=4, random_state=0,
    ).fit(graphs, y)  # fmt: skip
    assert search.best_params_["encoder__n_bins"] in (2, 4, 8)
    assert search.best_estimator_.encoder.n_bins == search.best_params_["encoder__n_bins"]
    alone = FDGNNSearchCV(base, cv=4, random_state=0).fit(graphs, y)
    assert set(alone.best_params_) == {
        "readout__alpha"
    }  # no depth, and nothing to search by default


def test_a_name_stands_for_the_encoder_with_its_defaults(motifs):
    graphs, y = motifs
    named = GraphClassifier("test-degrees")
    search = FDGNNSearchCV(named, cv=4, random_state=0).fit(graphs, y)
    assert search.best_estimator_.estimators_[0].encoder.n_bins == 8


def test_an_encoder_with_depths_must_encode_them_itself(motifs):
    class Deep(DegreeHistogram):
        kind = "test-deep"
        depth_parameter = "n_bins"

    graphs, y = motifs
    GraphClassifier(Deep()).fit(graphs, y)  # one depth, its own
    with pytest.raises(NotImplementedError, match="Deep has depths, but no encode of its own"):
        FDGNNSearchCV(GraphClassifier(Deep()), depths=(2, 8)).fit(graphs, y)


def test_a_trial_encoder_is_saved_and_loaded(fitted, motifs, tmp_path):
    graphs, _ = motifs
    save_model(fitted, tmp_path / "model.fdgnn")
    again = load_model(tmp_path / "model.fdgnn")
    np.testing.assert_array_equal(again.predict_proba(graphs), fitted.predict_proba(graphs))
    assert again.estimators_[0].encoder.n_bins == 6
    encoder = DegreeHistogram(3).fit(graphs)
    save_model(encoder, tmp_path / "encoder.fdgnn")
    alike = load_model(tmp_path / "encoder.fdgnn")
    np.testing.assert_array_equal(alike.transform(graphs), encoder.transform(graphs))


def test_an_encoder_nobody_knows_is_not_loaded(motifs, tmp_path):
    graphs, y = motifs
    model = GraphClassifier(SparseDegrees()).fit(graphs, y)
    with pytest.raises(ModelFileError, match="SparseDegrees is not registered, so that a file"):
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
        GraphClassifier(e, probability=True, random_state=0).fit(graphs, y)
        for e in (DegreeHistogram(), SparseDegrees())
    )
    assert sp.issparse(sparse.estimators_[0].features(graphs))
    np.testing.assert_allclose(
        sparse.decision_function(graphs), dense.decision_function(graphs), atol=1e-8
    )
    np.testing.assert_allclose(sparse.predict_proba(graphs), dense.predict_proba(graphs), atol=1e-6)


def test_the_reservoir_as_an_object_is_the_reservoir_by_name(motifs):
    graphs, y = motifs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = FDGNNClassifier(n_units=12, n_layers=2, random_state=3).fit(graphs, y)
        encoder = GraphReservoir(n_units=12, n_layers=2)
        readout = Ridge(alpha=1e-3, normalize=False)
        other = GraphClassifier(encoder, readout, random_state=3).fit(graphs, y)
    np.testing.assert_array_equal(one.decision_function(graphs), other.decision_function(graphs))
    (base,) = other._base_models(other._graph_kind, len(graphs), other.seed_)
    for depth in (1, 2):
        own = clone(one).set_params(n_layers=depth).fit(graphs, y)
        (X,) = draw_features(base, graphs, depth)
        np.testing.assert_array_equal(X, own.estimators_[0].features(graphs))
    few = {"n_configurations": 2, "depths": (1, 2), "cv": 3, "random_state": 0}
    searches = [FDGNNSearchCV(model, **few).fit(graphs, y) for model in (one, other)]
    first, second = (search.best_params_ for search in searches)
    assert {name.removeprefix("encoder__").removeprefix("readout__") for name in second} == set(
        first
    )
    assert list(second.values()) == list(first.values())


def test_all_layers_can_be_read(motifs):
    graphs, y = motifs
    encoder = GraphReservoir(n_units=10, n_layers=3, pooled_layers="all")
    model = GraphClassifier(encoder, random_state=0).fit(graphs, y)
    assert model.estimators_[0].expansion.projection_.shape == (60, 30)
    (base,) = model._base_models(model._graph_kind, len(graphs), model.seed_)
    (shallow,), (deep,) = (draw_features(base, graphs, depth) for depth in (2, 3))
    assert (shallow.shape, deep.shape) == ((80, 40), (80, 60))
    np.testing.assert_array_equal(deep, model.estimators_[0].features(graphs))


def test_unknown_encoders_and_names_taken_are_told():
    with pytest.raises(ValueError, match="encoder='nonsense': expected one of 'descriptors'"):
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
    with pytest.raises(ValueError, match="n_units=9: expected an integer, at least 10"):
        GraphClassifier(AtLeastTen(9)).fit(*motifs)
    assert GraphClassifier(AtLeastTen()).fit(*motifs).estimators_[0].encoder.n_units == 10


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
    pytest.importorskip("vl_convert", reason="the page needs the extra report")
    from fdgnn.html.collect import report_data
    from fdgnn.html.report import model_subjects, write_report

    graphs, y = motifs
    save_model(fitted, tmp_path / "model.fdgnn")
    data = report_data(fitted, graphs, y, dataset="motifs", unseen=True)
    assert data.dynamics is None  # nothing is iterated
    subjects = model_subjects(tmp_path / "model.fdgnn", [data])
    page = write_report(subjects, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "test-degrees" in page
    assert "n bins" in page


# ---------------------------------------------------------------------- plain transformers


class Sizes:
    """As little as a transformer can be: `fit` and `transform`."""

    def fit(self, graphs, y=None):
        self.largest = max(graph.n_vertices for graph in graphs)
        return self

    def transform(self, graphs):
        sizes = [[graph.n_vertices / self.largest, graph.edge_index.shape[1]] for graph in graphs]
        return np.array(sizes)


class Noise(BaseEstimator):
    """A transformer with a random state."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, graphs, y=None):
        self.n_drawn_ = np.random.RandomState(self.random_state).normal()
        return self

    def transform(self, graphs):
        return np.arange(len(graphs))[:, None] % 3 * self.n_drawn_


@pytest.fixture(scope="module")
def sized():
    graphs = make_random_graphs(80, random_state=0)
    sizes = np.diff(graphs.vertex_offsets)
    return graphs, (sizes > np.median(sizes)).astype(int)


@pytest.mark.parametrize(
    "transformer", [Sizes(), make_pipeline(DegreeHistogram(4), StandardScaler())]
)
def test_a_plain_transformer_is_an_encoder(sized, transformer, tmp_path):
    graphs, y = sized
    model = GraphClassifier(transformer, probability=True, random_state=0)
    fitted = clone(model).fit(graphs, y)
    assert fitted.score(graphs, y) > 0.9
    assert fitted.predict_proba(list(graphs)[:3]).shape == (3, 2)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.outputs(graphs), fitted.outputs(graphs))
    n_jobs = 2 if isinstance(transformer, Sizes) else 1
    search = FDGNNSearchCV(model, cv=3, random_state=0, n_jobs=n_jobs).fit(graphs, y)
    assert search.best_score_ > 0.9
    assert (search.predict(graphs) == y).mean() > 0.9
    named = AutoGraphClassifier([("sizes", transformer, "linear"), ("wl", "wl", "rbf")])
    assert named.fit(graphs, y).estimators_[0].name == "sizes"
    name = type(transformer).__name__
    with pytest.raises(ModelFileError, match=f"a {name} cannot be saved, because model files hold"):
        save_model(fitted, tmp_path / "model.fdgnn")
    assert not (tmp_path / "model.fdgnn").exists()
    with pytest.raises(ValueError, match=f"a {name} has no attributions; derive it from"):
        explain(fitted, graphs[:2])


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_a_plain_transformer_has_report_data_without_attributions(sized):
    pytest.importorskip("vl_convert", reason="the page needs the extra report")
    from fdgnn.html.collect import report_data

    graphs, y = sized
    model = GraphClassifier(Sizes(), probability=True, random_state=0).fit(graphs, y)
    data = report_data(model, graphs, y, dataset="sizes", unseen=True)
    assert data.graphs
    assert data.drawings == []


def test_parameters_of_a_transformer_are_searched(sized):
    pipeline = make_pipeline(DegreeHistogram(), StandardScaler())
    spaces = {"encoder__degreehistogram__n_bins": [2, 6]}
    search = FDGNNSearchCV(
        GraphClassifier(pipeline), param_distributions=spaces, n_configurations=2, cv=3,
        random_state=0,
    ).fit(*sized)  # fmt: skip
    assert search.best_params_["encoder__degreehistogram__n_bins"] in (2, 6)


@pytest.mark.parametrize("nothing", [3, "nonsense", Sizes, LogisticRegression(), None])
def test_what_is_no_encoder_is_rejected(motifs, nothing):
    with pytest.raises(ValueError, match=r"^encoder=.*: expected one of 'descriptors', 'pairs'"):
        GraphClassifier(nothing).fit(*motifs)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:-1], "the encoder Changed gave 79 rows of features for 80 graphs"),
        (
            lambda X: np.where(np.arange(80)[:, None] == 17, np.nan, X),
            "features of graph 17 that are",
        ),
        (
            lambda X: np.where(np.arange(80)[:, None] == 3, np.inf, X),
            "features of graph 3 that are",
        ),
    ],
)
def test_features_that_cannot_be_used_are_named(motifs, change, message, sparse):
    class Changed(Sizes):
        def transform(self, graphs):
            X = (
                change(super().transform(graphs))
                if len(graphs) == 80
                else super().transform(graphs)
            )
            return sp.csr_array(X) if sparse else X

    for readout in ("linear", "rbf"):
        with pytest.raises(FeatureError, match=message):
            GraphClassifier(Changed(), readout).fit(*motifs)


def test_missing_rows_of_features_are_an_error_of_predict(motifs):
    class Short(Sizes):
        def transform(self, graphs):
            return super().transform(graphs)[: 80 if len(graphs) == 80 else -1]

    model = GraphClassifier(Short()).fit(*motifs)
    with pytest.raises(FeatureError, match="Short gave 9 rows of features for 10 graphs"):
        model.predict(motifs[0][:10])


@pytest.mark.parametrize("more", [-3, 5])
def test_rows_of_vertex_features_are_counted(motifs, more):
    class Miscounting(Encoder):
        kind = "test-miscounting"

        def vertex_features(self, graphs):
            return np.ones((graphs.vertex_offsets[-1] + more, 2))

    for use in (Miscounting().fit_transform, EncoderUnion([("m", Miscounting())]).fit):
        with pytest.raises(FeatureError, match=r"test-miscounting gave an array of shape \("):
            use(motifs[0])


def test_what_cannot_be_registered_is_rejected():
    class Nameless(Encoder):
        """Without a kind."""

    for wrong in (Nameless, Sizes, DegreeHistogram()):
        with pytest.raises(TypeError, match="expected a subclass of Encoder with a name"):
            register_encoder(wrong)


def test_a_search_takes_encoders_with_and_without_depths(sized):
    encoders = [{"encoder": Sizes()}, {"encoder": "wl"}]
    search = FDGNNSearchCV(GraphClassifier(), configurations=encoders, cv=3, random_state=0)
    search.fit(*sized)
    assert {str(one) for one in search.cv_results_["param_encoder"]} >= {"wl"}


def test_alpha_has_an_argument_of_the_search(motifs):
    search = FDGNNSearchCV(
        GraphClassifier("wl", Ridge()), configurations=[{"readout__alpha": 123.0}], random_state=0
    )
    with pytest.raises(ValueError, match=r"^readout__alpha is searched by its own argument"):
        search.fit(*motifs)


def test_alpha_of_a_reservoir_is_chosen(motifs):
    model = GraphClassifier("reservoir", random_state=0).fit(*motifs)
    assert model.estimators_[0].alpha in Ridge().grid(len(motifs[0]), classify=True)


@pytest.mark.parametrize(
    ("encoder", "drawn"),
    [
        (GraphReservoir(n_units=5, random_state=7), lambda m: m.layers_[0].bias),
        (Noise(random_state=7), lambda m: m.transformer_.n_drawn_),
        (
            EncoderUnion([("a", GraphReservoir(n_units=5, random_state=7)), ("b", WLCounts())]),
            lambda m: m.blocks_[0].encoder.layers_[0].bias,
        ),
    ],
)
def test_an_encoders_own_random_state_wins(motifs, encoder, drawn):
    models = [GraphClassifier(encoder, random_state=s).fit(*motifs) for s in (1, 2)]
    one, other = (drawn(model.estimators_[0].encoder) for model in models)
    np.testing.assert_array_equal(one, other)


def test_a_transformer_without_its_own_random_state_has_that_of_the_model(motifs):
    drawn = [
        GraphClassifier(Noise(), random_state=s).fit(*motifs).estimators_[0].encoder.transformer_
        for s in (1, 1, 2)
    ]
    assert drawn[0].n_drawn_ == drawn[1].n_drawn_ != drawn[2].n_drawn_


# ---------------------------------------------------------------------- registered names

NOTEBOOK = """
import numpy as np
from sklearn.model_selection import cross_val_score
from fdgnn import Encoder, FDGNNSearchCV, GraphClassifier, register_encoder
from fdgnn.datasets import make_motif_graphs

CELL = '''
@register_encoder
class Mine(Encoder):
    kind = "mine"
    def __init__(self, n_bins=VALUE):
        self.n_bins = n_bins
    def vertex_features(self, graphs):
        return np.eye(self.n_bins)[np.minimum(np.diff(graphs.indptr), self.n_bins - 1)]
'''
if __name__ == "__main__":
    exec(CELL.replace("VALUE", "3"))
    exec(CELL.replace("VALUE", "4"))
    graphs, y = make_motif_graphs(40, random_state=0)
    model = GraphClassifier("mine", random_state=0)
    assert model.fit(graphs, y).estimators_[0].encoder.n_bins == 4
    print(np.isfinite(cross_val_score(model, graphs, y, n_jobs=2, cv=2)).all())
    print(FDGNNSearchCV(model, cv=2, n_jobs=2).fit(graphs, y).score(graphs, y) > 0.4)
"""


def test_a_class_may_be_defined_twice_and_named_in_other_processes(tmp_path):
    """As in a notebook, whose classes other processes do not know."""
    script = tmp_path / "notebook.py"
    script.write_text(NOTEBOOK)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["True"] * 2, run.stderr


# ---------------------------------------------------------------------- inputs without effect


def large_features(scale, n=30):
    rng = np.random.default_rng(0)
    return [Graph([[0, 1], [1, 2]], features=rng.normal(size=(3, 4)) * scale) for _ in range(n)]


def told(action):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    assert all(each.filename == __file__ for each in found)
    return [(each.category, str(each.message)) for each in found]


def test_saturated_states_are_reported_once_with_numbers_and_a_remedy():
    y = [0, 1] * 15
    model = FDGNNClassifier(n_estimators=3, random_state=0)
    for action in (
        lambda: model.fit(large_features(1e6), y),
        lambda: GraphReservoir(random_state=0).fit(large_features(1e6)),
        lambda: AutoGraphClassifier("union", random_state=0).fit(large_features(1e6), y),
        lambda: FDGNNSearchCV(n_configurations=1, depths=(1, 2), cv=3, random_state=0).fit(
            large_features(1e6), y
        ),
    ):
        (message,) = [text for category, text in told(action) if category is SaturationWarning]
        assert "on 100% of the vertices" in message
        assert "as large as 3.77e+06" in message
        assert "standardize the features, or lower `input_scaling`" in message
    assert told(lambda: model.fit(large_features(1.0), y)) == []
    lowered = FDGNNClassifier(input_scaling=1e-6, random_state=0)
    assert told(lambda: lowered.fit(large_features(1e6), y)) == []


def many_labels(n_labels, n=200):
    rng = np.random.default_rng(0)
    graphs = [Graph([[0, 1], [1, 2]], labels=rng.integers(0, n_labels, 3)) for _ in range(n)]
    return as_batch(graphs)


def test_labels_that_no_unit_reads_are_counted():
    graphs = many_labels(82)
    ((category, message),) = told(lambda: GraphReservoir(random_state=0).fit(graphs))
    assert category is UnusedDataWarning
    assert "50 units read 42 of 82 vertex labels" in message
    assert "raise `n_units` or `n_connections`" in message
    for more in ({"n_units": 300}, {"n_connections": 3}):
        assert told(lambda more=more: GraphReservoir(random_state=0, **more).fit(graphs)) == []


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("candidates", ["all", "union"])
def test_reservoirs_of_the_ensemble_read_enough_labels(candidates):
    graphs, y = many_labels(400, n=300), np.arange(300) % 2
    model = AutoGraphClassifier(candidates, random_state=0)
    assert told(lambda: model.fit(graphs, y)) == []


# ---------------------------------------------------------------------- parameters without effect


def test_options_of_reading_are_rejected_for_a_batch(motifs):
    graphs, _ = motifs
    assert as_batch(graphs) is graphs
    for option in (
        {"directed": True}, {"vertex": "labels"}, {"vertex_attributes": ("x",)},
        {"edge_attribute": "w"}, {"edge_labels": "labels"}, {"atoms": "rich"},
        {"standardize": "parent"}, {"stereo": False}, {"target": "y"},
    ):  # fmt: skip
        with pytest.raises(
            ValueError, match=f"{next(iter(option))}=.* has no effect on a GraphBatch"
        ):
            as_batch(graphs, **option)


def test_an_encoder_with_a_seed_of_its_own_gives_the_features_that_it_has_alone(motifs):
    graphs, y = motifs
    alone = GraphReservoir(n_units=8, random_state=5)
    expected = alone.fit_transform(graphs)
    models = [
        GraphClassifier(alone, n_estimators=2, random_state=seed).fit(graphs, y) for seed in (1, 2)
    ]
    for model in models:
        first, second = (fitted.encoder.transform(graphs) for fitted in model.estimators_)
        np.testing.assert_array_equal(first, expected)
        assert not np.array_equal(second, expected)
