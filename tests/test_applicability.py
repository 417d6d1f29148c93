"""The applicability domain: distances as if each training graph had been left out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from fdgnn import (
    AutoGraphClassifier,
    FDGNNClassifier,
    FDGNNRegressor,
    Graph,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
    applicability,
    save_model,
)
from fdgnn.applicability import ApplicabilityDomain, Leverage, SeenFeatures
from fdgnn.datasets import make_cycles, make_motif_graphs, make_random_graphs
from fdgnn.encoders import Encoder, EncoderUnion, Encoding
from fdgnn.linear import Ridge
from model_file_tools import again, rejected, with_arrays, with_record

GRAPHS = make_random_graphs(150, random_state=0)
Y = np.arange(150) % 2
NEW = make_random_graphs(40, random_state=1)
SMALL = {"n_layers": 1, "n_units": 8, "effective_spectral_radius": 0.5, "random_state": 0}
COLORS = (
    WLCounts(n_iterations=2),
    WLCounts(n_iterations=2, n_features=2**12),
    WLCounts(n_iterations=2, counts="sum"),
    WLCounts(n_iterations=1, n_features=None),
    WLCounts(n_iterations=1, n_features=None, counts="presence"),
)
MODELS = {
    "reservoir": FDGNNClassifier(random_state=0),
    "wl": GraphClassifier("wl"),
    "union": GraphClassifier("union", random_state=0),
    "auto": AutoGraphClassifier(random_state=0),
}

pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.UnknownLabelWarning")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.fdgnn"


def domain_distances_of(encoder, train, new):
    fitted = encoder.fit(train)
    X = fitted.encode(train).features[0]
    found = ApplicabilityDomain.fit(0, fitted, X, train)
    return found.of(fitted, new, fitted.encode(new))


# ---------------------------------------------------------------------- leaving out


@pytest.mark.parametrize("encoder", COLORS, ids=repr)
def test_a_training_graph_counts_as_if_it_had_been_left_out(encoder):
    fitted = encoder.fit(GRAPHS)
    own = SeenFeatures.fit(fitted.counted(GRAPHS, fitted.encode(GRAPHS).features[0]))[1]
    assert 0 < own.max() <= 1
    for g in (0, 17, int(own.argmax())):
        others = np.delete(np.arange(150), g)
        left_out = domain_distances_of(encoder, GRAPHS[others], GRAPHS[[g]])
        np.testing.assert_allclose(left_out, own[g], atol=1e-12)


def test_a_leverage_is_that_of_least_squares_and_of_leaving_out():
    X = np.random.default_rng(0).normal(size=(60, 5)) * [1, 10, 3, 0.1, 5]
    leverage, own = Leverage.fit(X)
    design = np.column_stack([np.ones(60), X])
    np.testing.assert_allclose(own, np.diag(design @ np.linalg.pinv(design)), rtol=1e-2)
    for i in range(3):
        others = Leverage.fit(np.delete(X, i, axis=0))[0].lengths(X[[i]])
        np.testing.assert_allclose(others / (1 + others), own[i], rtol=1e-2)
    far = leverage.lengths(X[:1] + 1e6)
    assert far / (1 + far) > 0.999


# ---------------------------------------------------------------------- what it says


@pytest.mark.parametrize("encoder", COLORS, ids=repr)
def test_what_was_seen_is_nothing_new(encoder):
    assert (domain_distances_of(encoder, GRAPHS, GRAPHS) == 0).all()
    turned = [_turned(graph) for graph in GRAPHS[:20]]
    assert (domain_distances_of(encoder, GRAPHS, encoder._check_graphs(turned)) == 0).all()


def _turned(graph):
    """The same graph with its vertices in another order."""
    order = np.random.default_rng(0).permutation(graph.n_vertices)
    place = np.argsort(order)
    return Graph(
        place[graph.edge_index],
        n_vertices=graph.n_vertices,
        labels=graph.labels[order],
        weights=graph.weights,
        edge_labels=graph.edge_labels,
        directed=graph.directed,
    )


def test_buckets_and_columns_of_their_own_say_the_same():
    many = domain_distances_of(WLCounts(n_iterations=2, n_features=2**24), GRAPHS, NEW)
    exact = domain_distances_of(WLCounts(n_iterations=2, n_features=None), GRAPHS, NEW)
    np.testing.assert_allclose(many, exact, atol=1e-12)
    assert exact.max() > 0.2
    few = domain_distances_of(WLCounts(n_iterations=2, n_features=2**10), GRAPHS, NEW)
    assert (few <= exact + 1e-12).all()  # some of what is new shares a bucket with what is not


@pytest.mark.parametrize("inner", [WLCounts(n_iterations=1), WLCounts(1, n_features=None)])
def test_unions_give_the_domain_distances_of_their_wl_features(inner):
    joined = EncoderUnion([("reservoir", GraphReservoir(**SMALL)), ("wl", inner)], random_state=0)
    np.testing.assert_allclose(
        domain_distances_of(joined, GRAPHS, NEW),
        domain_distances_of(inner, GRAPHS, NEW),
        atol=1e-12,
    )


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_few_graphs_of_the_same_kind_are_unlike_and_all_of_another(model):
    graphs, y = make_motif_graphs(900, random_state=0)
    model = clone(model).fit(graphs[:400], y[:400])
    values = model.domain_distance(graphs[400:])
    assert values.shape == (500,)
    assert (values >= 0).all()
    assert (values <= 1).all()
    assert len(model.out_of_domain(graphs[400:])) < 20  # 5 are expected
    strange = make_cycles([40, 60])
    assert list(model.out_of_domain(strange)) == [0, 1]
    assert (model.domain_distance(strange) > model._domain.limit).all()


def test_words_say_how_new_and_beside_what():
    graphs, y = make_motif_graphs(300, random_state=0)
    colors = GraphRegressor("wl").fit(graphs, y)
    (words,) = colors.out_of_domain(make_cycles([50])).values()
    share, limit = 100 * colors.domain_distance(make_cycles([50]))[0], 100 * colors._domain.limit
    assert words.startswith(f"{share:.0f} % of its substructures are in no training")
    assert words.endswith(f"of 99 % of the training graphs at most {limit:.0f} % are in no other")
    (words,) = FDGNNRegressor(**SMALL).fit(graphs, y).out_of_domain(make_cycles([50])).values()
    assert "leverage 1, of 99 % of the training graphs at most 0" in words


def test_a_graph_of_which_nothing_is_known_is_always_told():
    alone = [Graph([[0], [1]], labels=[name, name]) for name in "ABCDEFGH"]
    model = GraphClassifier("wl", random_state=0).fit(alone, [0, 1] * 4)
    assert model._domain.limit == 1  # no two of the training graphs have anything in common
    new = Graph([[0], [1]], labels=["X", "X"])
    assert model.domain_distance([new, alone[0]]).tolist() == [1, 0]
    why = model.out_of_domain([alone[0], new])
    assert list(why) == [1]
    assert why[1].startswith("none of its substructures is in a training graph")


def test_the_limit_is_that_of_99_percent():
    for n, rank in ((50, 50), (99, 99), (150, 150), (199, 198), (999, 990)):
        X = np.random.default_rng(0).normal(size=(n, 3))
        found = ApplicabilityDomain.fit(0, GraphReservoir(), X, GRAPHS)
        assert found.limit == np.sort(Leverage.fit(X)[1])[rank - 1]


@pytest.mark.parametrize(("encoder", "measure"), [("reservoir", Leverage), ("wl", SeenFeatures)])
def test_training_graphs_are_compared_once_and_only_if_somebody_asks(encoder, measure, monkeypatch):
    calls, compare = [], measure.fit

    def counted(X):
        calls.append(X.shape)
        return compare(X)

    monkeypatch.setattr(measure, "fit", counted)
    model = GraphClassifier(
        GraphReservoir(**SMALL) if encoder == "reservoir" else encoder, Ridge(1.0)
    )
    model.fit(GRAPHS, Y).predict(NEW)
    assert calls == []
    asked = model.domain_distance(NEW)
    assert model._domain.limit > 0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).domain_distance(NEW), asked)
    assert len(calls) == 1
    monkeypatch.setattr(applicability, "MOST_KEPT", 1)  # large features are not kept
    model.fit(GRAPHS, Y)
    assert len(calls) == 2
    np.testing.assert_array_equal(model.domain_distance(NEW), asked)
    assert len(calls) == 2


def test_graphs_unlike_training_graphs_that_are_all_alike_are_told():
    model = FDGNNClassifier(random_state=0).fit(GRAPHS[[0] * 20], np.arange(20) % 2)
    found = model.domain_distance(GRAPHS[:30])
    assert np.isfinite(found).all()
    assert (found[1:] > 0.99).sum() > 20
    assert len(model.out_of_domain(GRAPHS[:30])) > 20


def test_no_graphs_have_no_distances():
    model = FDGNNClassifier(random_state=0).fit(GRAPHS, Y)
    assert model.domain_distance([]).shape == model.domain_distance(GRAPHS[:0]).shape == (0,)
    assert model.out_of_domain([]) == {}


class Wide(Encoder):
    """More features than a leverage is computed for."""

    kind = "wide"

    def vertex_features(self, graphs):
        return np.ones((graphs.n_vertices, 2001))


class Sparse(Wide):
    kind = "sparse"

    def encode(self, graphs, depths=None, n_jobs=None):
        return Encoding([sp.csr_array(np.ones((len(graphs), 3)))])


@pytest.mark.parametrize("encoder", [Wide(), Sparse()])
def test_a_model_that_cannot_tell_says_so(encoder):
    model = GraphRegressor(encoder).fit(GRAPHS, Y)
    assert model.out_of_domain(NEW) == {}
    with pytest.raises(ValueError, match=r"no applicability domain.*too many features"):
        model.domain_distance(NEW)


# ---------------------------------------------------------------------- files


KEPT = MODELS | {str(encoder): GraphClassifier(encoder) for encoder in COLORS}


@pytest.mark.parametrize("model", KEPT.values(), ids=KEPT)
@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
def test_files_keep_it(file, model):
    model = clone(model).fit(GRAPHS, Y)
    loaded, graphs = again(model, file), NEW  # which may have new labels
    np.testing.assert_array_equal(loaded.domain_distance(graphs), model.domain_distance(graphs))
    assert loaded.out_of_domain(graphs) == model.out_of_domain(graphs)
    content = file.read_bytes()
    save_model(loaded, file)
    assert file.read_bytes() == content


def test_a_domain_that_contradicts_the_model_is_rejected(file):
    save_model(GraphClassifier("wl", random_state=0).fit(GRAPHS, Y), file)
    content = file.read_bytes()
    words = np.zeros(4096, dtype=np.uint64)
    for wrong in (words[:-1], np.zeros(4097, np.uint64), words[None], words.astype(float), None):
        rejected(with_arrays(content, **{"domain.seen": wrong}), file)
    rejected(with_arrays(content, **{"domain.mean": np.ones(3)}), file)
    for change in (
        {"estimator": 1}, {"estimator": -1}, {"limit": 2.0}, {"limit": None},
        {"measure": "leverage"}, {"measure": "x"}, {"nonsense": 1},
    ):  # fmt: skip
        _rejected_with(content, change, file)
    save_model(FDGNNClassifier(**SMALL).fit(GRAPHS, Y), file)
    content = file.read_bytes()
    for name, wrong in (
        ("mean", np.ones(7)), ("mean", None), ("factor", np.ones(35)), ("factor", np.zeros(36)),
        ("factor", -np.ones(36)), ("factor", np.full(36, np.nan)), ("factor", np.ones((6, 6))),
    ):  # fmt: skip
        rejected(with_arrays(content, **{f"domain.{name}": wrong}), file)
    for change in ({"n_graphs": None}, {"n_graphs": 0}, {"measure": "wl"}):
        _rejected_with(content, change, file)
    rejected(with_record(content, lambda record: record.update(domain=None)), file)


def _rejected_with(content, change, file):
    rejected(with_record(content, lambda record: record["domain"].update(change)), file)
