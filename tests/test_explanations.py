"""Explanations: complete to rounding, true where the truth is known, and drawn."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from fdgnn import (
    AutoGraphClassifier,
    AutoGraphRegressor,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
    as_batch,
    draw_explanation,
    draw_molecule,
    explain,
    explanations,
)
from fdgnn.datasets import make_cycles, make_motif_graphs, make_random_graphs
from fdgnn.exceptions import GraphError, MissingDependencyError, OutOfDomainWarning
from fdgnn.explanations import Explanation
from fdgnn.linear import KernelReadout, KernelRidge, Ridge, readouts

SMALL = {"n_layers": 2, "n_units": 20, "effective_spectral_radius": 0.5, "random_state": 0}
TRAINING = make_random_graphs(80, random_state=0)
MANY = make_random_graphs(1500, random_state=1)


def fitted(kind, n_outputs, **options):
    """A model of the given kind, and the scores it gives MANY, one column a target."""
    rng = np.random.default_rng(0)
    if kind is FDGNNRegressor:
        y = rng.normal(size=(80, n_outputs))
        model = kind(**SMALL | options).fit(TRAINING, y)
        return model, list(range(n_outputs)), model.predict(MANY)
    model = kind(**SMALL | options).fit(TRAINING, np.arange(80) % n_outputs)
    outputs = model.decision_function(MANY)
    outputs = np.stack([-outputs, outputs], axis=1) if n_outputs == 2 else outputs
    return model, model.classes_.tolist(), outputs


CASES = [
    (FDGNNClassifier, 2, {}),
    (FDGNNClassifier, 2, {"n_estimators": 3, "alpha": 1e-8}),
    (FDGNNClassifier, 3, {"n_estimators": 2, "solver": "paper"}),
    (FDGNNRegressor, 1, {"n_estimators": 2}),
    (FDGNNRegressor, 2, {"n_connections": 3}),
]


# ---------------------------------------------------------------------- complete


@pytest.mark.parametrize(("kind", "n_outputs", "options"), CASES)
def test_attributions_add_up_to_score_minus_base_score(kind, n_outputs, options):
    model, targets, scores = fitted(kind, n_outputs, **options)
    # Rounding is relative to the readout's weights.
    weight = max(np.abs(n.readout.coef).sum() for n in model.estimators_)
    for column, target in enumerate(targets):
        found = explain(model, MANY, target=target)
        assert len(found) == 1500
        score = np.array([e.score for e in found])
        total = np.array([e.vertices.sum() + e.base_score for e in found])
        np.testing.assert_allclose(total, score, rtol=0, atol=1e-13 * weight)
        np.testing.assert_allclose(score, scores[:, column], rtol=0, atol=1e-13 * weight)
        assert [len(e.vertices) for e in found] == np.diff(MANY.vertex_offsets).tolist()
        assert {e.target for e in found} == {target}


def test_the_closed_form_is_the_integral_of_the_gradient():
    model = FDGNNClassifier(**SMALL).fit(TRAINING, np.arange(80) % 2)
    graphs = TRAINING[:3]
    network = model.estimators_[0]
    states, W_phi = network.encoder.vertex_states(graphs), network.expansion.projection_
    t, weights = np.polynomial.legendre.leggauss(60)
    for g, found in enumerate(explain(model, graphs, target=1)):
        X = states[graphs.vertex_offsets[g] : graphs.vertex_offsets[g + 1]]
        a = W_phi @ X.sum(axis=0)
        along = 1 - np.tanh(np.outer((t + 1) / 2, a)) ** 2
        gradient = W_phi.T @ (network.readout.coef[0] * (weights / 2 @ along))
        np.testing.assert_allclose(found.vertices, X @ gradient, atol=1e-5)


def test_an_empty_pool_has_attributions_without_warning():
    """Without input and bias all states are zero: there tanh(a) / a is 1."""
    model = FDGNNClassifier(**SMALL | {"input_scaling": 0.0, "inter_layer_scaling": 0.0})
    model.fit(TRAINING, np.arange(80) % 2)
    found = explain(model, TRAINING[:2])
    assert all((e.vertices == 0).all() and e.score == e.base_score for e in found)


def test_the_default_target_is_the_predicted_class():
    for n_classes in (2, 3):
        y = np.array(["a", "b", "c"])[np.arange(80) % n_classes]
        model = FDGNNClassifier(**SMALL).fit(TRAINING, y)
        found = explain(model, TRAINING)
        assert [e.target for e in found] == model.predict(TRAINING).tolist()
        named = explain(model, TRAINING[:1], target=found[0].target)[0]
        np.testing.assert_allclose(named.vertices, found[0].vertices, atol=1e-12)


def test_chunks_and_searches_change_nothing(monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    search = FDGNNSearchCV(
        FDGNNClassifier(n_estimators=2), n_configurations=1, cv=2, random_state=0
    ).fit(graphs, y)
    whole = explain(search, graphs, target=1)
    monkeypatch.setattr(explanations.attributions, "_AT_ONCE", 60)
    parts = explain(search.best_estimator_, list(graphs), target=1)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one.vertices, other.vertices, atol=1e-10)


def test_what_cannot_be_explained():
    model = FDGNNClassifier(**SMALL).fit(TRAINING, np.arange(80) % 2)
    with pytest.raises(ValueError, match=r"target=7: not a class of the model, which has 0, 1"):
        explain(model, TRAINING, target=7)
    with pytest.raises(TypeError, match="GraphReservoir has no score"):
        explain(GraphReservoir(**SMALL).fit(TRAINING), TRAINING)
    both = FDGNNRegressor(**SMALL).fit(TRAINING, np.arange(160.0).reshape(80, 2))
    with pytest.raises(ValueError, match="2 targets; give one as target"):
        explain(both, TRAINING)
    with pytest.raises(ValueError, match="target=2: not a target of the model, which has '0', '1'"):
        explain(both, TRAINING, target=2)


# ---------------------------------------------------------------------- every encoder and readout

BUCKETS = 256  # few, so that WL labels share columns


def models_of_all_kinds(graphs):
    """Models of every encoder and readout, by name."""
    y, z = np.arange(len(graphs)) % 2, np.sin(np.arange(len(graphs)))
    counts = {
        f"{how}, {readout}": WLCounts(counts=how, n_features=buckets)
        for how, buckets in (("unary", BUCKETS), ("sum", None), ("presence", BUCKETS))
        for readout in ("linear", "rbf")
    }
    models = {
        name: GraphClassifier(encoder, name.split(", ")[1]) for name, encoder in counts.items()
    }
    reservoir = GraphReservoir(n_units=10)
    for readout in ("linear", "rbf"):
        union = EncoderUnion([("reservoir", reservoir), ("wl", WLCounts())])
        models[f"reservoir, {readout}"] = GraphClassifier(reservoir, readout, random_state=0)
        models[f"union, {readout}"] = GraphClassifier(union, readout, random_state=0)
    models["expanded WL features"] = GraphRegressor(
        WLCounts(n_features=64), "rbf", n_projections=20, random_state=0
    )
    models["auto"] = AutoGraphClassifier(random_state=0)
    models["auto, numbers"] = AutoGraphRegressor(random_state=0)
    models["auto, union"] = AutoGraphClassifier("union", random_state=0)
    for name, model in models.items():
        yield name, model.fit(graphs, y if is_classifier(model) else z)
    yield "three classes", AutoGraphClassifier().fit(graphs, np.arange(len(graphs)) % 3)


@pytest.fixture(scope="module")
def labeled():
    return make_random_graphs(60, random_state=2), make_random_graphs(30, random_state=3)


def test_all_encoders_and_readouts_are_explained_completely(labeled):
    graphs, new = labeled
    for name, model in models_of_all_kinds(graphs):
        target = model.classes_[0] if is_classifier(model) else 0
        outputs = model.outputs(new)
        scores = -outputs[:, 0] if name != "three classes" and target == 0 else outputs[:, 0]
        if not is_classifier(model):
            scores = outputs[:, 0]
        for found, score in zip(explain(model, new, target=target), scores, strict=True):
            assert found.score == pytest.approx(score, rel=1e-9, abs=1e-12), name
            left = found.score - found.base_score
            assert found.vertices.sum() == pytest.approx(left, rel=1e-9, abs=1e-12), name


def test_graphs_without_labels_and_with_features_are_explained():
    for options in ({"n_labels": None}, {"n_features": 3}):
        graphs = make_random_graphs(40, random_state=0, **options)
        model = AutoGraphClassifier(random_state=0).fit(graphs, np.arange(40) % 2)
        for found in explain(model, graphs):
            left = found.score - found.base_score
            assert found.vertices.sum() == pytest.approx(left, rel=1e-9, abs=1e-12)


def test_the_first_weights_of_a_wl_label_are_shared_by_its_vertices():
    """By hand: two iterations, and a weight for "at least 1", "at least 2" of each WL label."""
    path = Graph([[0, 1, 2], [1, 2, 3]], labels=["a", "b", "b", "a"])
    others = [
        Graph([[0, 1], [1, 2]], labels=list(labels)) for labels in ("aab", "bba", "aba", "bbb")
    ]
    encoder = WLCounts(n_iterations=1, n_features=None)
    model = GraphClassifier(encoder, Ridge(alpha=0.1))
    model.fit([path, *others], [0, 1, 1, 0, 1])
    (found,) = explain(model, [path], target=1)
    network = model.estimators_[0]
    weights = network.readout.coef[0]
    # Vertices 0 and 3 look alike, and so do 1 and 2: each pair has half of all four features.
    parts = network.encoder.attribute(as_batch([path]))
    ends, middle = (weights[parts.columns[:, pair]].sum() / 2 for pair in ([0, 3], [1, 2]))
    np.testing.assert_allclose(found.vertices, [ends, middle, middle, ends], rtol=1e-12)
    assert len(np.unique(parts.columns)) == 8
    assert found.base_score == network.readout.intercept[0]


def test_presence_is_shared_by_the_vertices_that_are_present():
    graphs = [
        Graph(np.zeros((2, 0), dtype=int), labels=list(labels)) for labels in ("aab", "ab", "bb")
    ]
    encoder = WLCounts(n_iterations=0, n_features=None, counts="presence")
    model = GraphRegressor(encoder, Ridge(alpha=0.1)).fit(graphs, [1.0, 2, 4])
    (found,) = explain(model, graphs[:1])
    weights = model.estimators_[0].readout.coef[0]
    (a, _, b) = model.estimators_[0].encoder.attribute(as_batch(graphs[:1])).columns[0]
    expected = [weights[a] / 2, weights[a] / 2, weights[b]]
    np.testing.assert_allclose(found.vertices, expected, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_mean_gradient_of_a_kernel_readout_is_the_integral_along_the_way(sparse, monkeypatch):
    rng = np.random.default_rng(0)
    E = rng.poisson(0.4, size=(30, 25)).astype(float)
    X, signs = rng.poisson(0.4, size=(7, 25)).astype(float), rng.normal(size=(7, 2))
    X[3] = 0.0  # an empty graph, as it were
    dual, intercept = rng.normal(size=(30, 2)), np.zeros(2)
    readout = KernelReadout(sp.csr_array(E), dual, intercept, np.array([0.07]))
    monkeypatch.setattr(readouts, "_NUMBERS", 60)  # two rows at once
    nodes, weights = np.polynomial.legendre.leggauss(40)
    expected = np.zeros_like(X)
    for g, x in enumerate(X):
        for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            apart = E - t * x
            near = np.exp(-0.07 * (apart**2).sum(axis=1)) * (dual @ signs[g])
            expected[g] += weight * 2 * 0.07 * near @ apart
    found = readout.directions(sp.csr_array(X) if sparse else X, signs)
    if sparse:  # only where x is not zero
        found, expected = found.toarray(), expected * (X != 0)
    filled = np.arange(7) != 3
    np.testing.assert_allclose(found[filled], expected[filled], rtol=0, atol=1e-13)
    total = (readout.outputs(X) - readout.base_outputs()) * signs
    np.testing.assert_allclose((found * X).sum(axis=1), total.sum(axis=1), rtol=0, atol=1e-13)


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.FDGNNWarning")
def test_what_one_base_model_cannot_take_the_others_explain(labeled):
    graphs, new = labeled
    reservoir = GraphReservoir(n_units=50, handle_unknown="ignore")
    candidates = [("WL", WLCounts(), "rbf"), ("reservoir", reservoir, "linear")]
    model = AutoGraphClassifier(candidates, random_state=0).fit(graphs, np.arange(60) % 2)
    kinds = [type(network.encoder) for network in model.estimators_]
    assert GraphReservoir in kinds, "this seed keeps the reservoir"
    assert WLCounts in kinds
    strange = [replace(new[0], labels=np.full(new[0].n_vertices, 77)), *new[1:4]]
    with pytest.warns(OutOfDomainWarning, match="1 of 4 graphs has nothing in common"):
        found = explain(model, strange, target=1)
    assert found[0].out_of_domain is not None
    assert found[0].domain_distance == 1.0
    assert "Out of domain" in found[0]._repr_html_()
    np.testing.assert_allclose([e.score for e in found], model.outputs(strange)[:, 0], rtol=1e-12)
    totals = [e.vertices.sum() + e.base_score for e in found]
    np.testing.assert_allclose(totals, [e.score for e in found], rtol=1e-9)
    known = explain(model, strange[1:], target=1)
    for one, other in zip(found[1:], known, strict=True):
        np.testing.assert_allclose(one.vertices, other.vertices, rtol=0, atol=1e-12)


def test_the_memory_of_an_explanation_is_bounded():
    """One dense row of directions has 2 MB; a hundred of them, and copies, would be 1 GB."""
    import tracemalloc

    graphs = make_random_graphs(120, random_state=0)
    model = GraphClassifier("wl", KernelRidge(alpha=0.1))
    model.fit(graphs, np.arange(120) % 2)
    explain(model, graphs[:2], target=1)
    tracemalloc.start()
    explain(model, graphs, target=1)
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()


# ---------------------------------------------------------------------- edges


@pytest.mark.parametrize("options", [{}, {"directed": True}, {"weighted": True, "n_features": 2}])
def test_edge_effects_are_what_taking_the_edge_away_does(options):
    graphs = make_random_graphs(30, n_vertices=(2, 8), density=0.4, random_state=0, **options)
    model = FDGNNClassifier(**SMALL).fit(graphs, np.arange(30) % 3)
    for graph, found in zip(graphs, explain(model, graphs, target=2, edges=True), strict=True):
        arcs = np.asarray(graph.edge_index).T.tolist()
        undirected = not graph.directed
        assert found.edges.shape[1] == len(arcs) // (1 + undirected)
        for (u, v), effect in zip(found.edges.T.tolist(), found.edge_effects, strict=True):
            gone = [[u, v], [v, u]] if undirected else [[u, v]]
            keep = [arc not in gone for arc in arcs]
            rest = Graph(
                np.array(arcs)[keep].T,
                graph.n_vertices,
                graph.labels,
                graph.features,
                None if graph.weights is None else graph.weights[keep],
                graph.directed,
            )
            left = model.decision_function([rest])[0, 2]
            np.testing.assert_allclose(effect, found.score - left, atol=1e-9)


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
def test_edge_effects_know_edge_labels():
    plain = make_random_graphs(30, n_vertices=(3, 8), random_state=0)
    graphs = []
    for graph in plain:
        u, v = graph.edge_index
        labels = (7 * np.minimum(u, v) + np.maximum(u, v)) % 3
        graphs.append(replace(graph, edge_labels=labels))
    y = [int((g.edge_labels == 0).sum() > 2) for g in graphs]
    model = AutoGraphClassifier(random_state=0).fit(graphs, y)
    graph = max(graphs, key=lambda g: g.edge_index.shape[1])
    (found,) = explain(model, [graph], target=1, edges=True)
    assert found.edges.shape[1] > 5
    for (u, v), effect in zip(found.edges.T.tolist(), found.edge_effects, strict=True):
        keep = [{a, b} != {u, v} for a, b in graph.edge_index.T.tolist()]
        left = replace(
            graph, edge_index=graph.edge_index[:, keep], edge_labels=graph.edge_labels[keep]
        )
        assert effect == pytest.approx(found.score - model.decision_function([left])[0], abs=1e-12)


def test_a_graph_without_edges_has_no_edge_effects():
    model = FDGNNClassifier(**SMALL).fit(make_cycles([3, 4, 5, 6]), [0, 1, 0, 1])
    found = explain(model, [Graph(np.zeros((2, 0), dtype=int), n_vertices=2)], edges=True)[0]
    assert found.edges.shape == (2, 0)
    assert found.edge_effects.shape == (0,)


# ---------------------------------------------------------------------- true


def motif_ranks(motifs, label):
    """Mean over graphs of one class of how well attributions rank the motif above the rest."""
    options = {"motifs": motifs, "n_vertices": (10, 30), "return_mask": True}
    graphs, y, _ = make_motif_graphs(600, random_state=0, **options)
    new, truth, mask = make_motif_graphs(200, random_state=1, **options)
    model = FDGNNClassifier(n_estimators=5, alpha=1e-2, random_state=0).fit(graphs, y)
    assert model.score(new, truth) > 0.99
    masks = np.split(mask, new.vertex_offsets[1:-1])
    found = explain(model, new, target=label)
    ranks = [roc_auc_score(m, e.vertices) for m, e in zip(masks, found, strict=True)]
    return np.mean(np.array(ranks)[truth == label])


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("motif", "at_least"), [("clique", 0.9), ("house", 0.73), ("cycle", 0.65)])
def test_motifs_rank_above_the_tree_they_hang_on(motif, at_least):
    # A star is a tree, as the rest is: the other motif is what is there to be seen.
    assert motif_ranks(("star", motif), 1) > at_least


def test_counting_vertices_of_a_label_is_explained_by_them():
    def count(graphs):
        return np.array([(np.asarray(g.labels) == 2).sum() for g in graphs], dtype=float)

    train, new = make_random_graphs(600, random_state=0), make_random_graphs(200, random_state=1)
    model = FDGNNRegressor(n_estimators=10, effective_spectral_radius=0.5, random_state=0)
    assert model.fit(train, count(train)).score(new, count(new)) > 0.97
    attributions = np.concatenate([e.vertices for e in explain(model, new)])
    counted = new.labels == 2
    difference = attributions[counted].mean() - attributions[~counted].mean()
    assert 0.9 < difference < 1.1  # one such vertex more makes the count larger by one
    assert roc_auc_score(counted, attributions) > 0.99


# ---------------------------------------------------------------------- drawn


@pytest.fixture(scope="module")
def drawn():
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(**SMALL).fit(graphs, y)
    return graphs[0], explain(model, graphs[:1], edges=True)[0]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures_of_graphs(drawn, tmp_path, ending):
    pytest.importorskip("matplotlib")
    graph, found = drawn
    path = tmp_path / f"graph.{ending}"
    ax = draw_explanation(graph, found, path)
    assert path.stat().st_size > 5000
    points = ax.collections[-1]
    above_mean = found.vertices - found.vertices.mean()
    np.testing.assert_allclose(points.get_array(), above_mean, rtol=0, atol=1e-12)
    assert -points.norm.vmin == points.norm.vmax == np.abs(points.get_array()).max()
    assert ax.figure.axes[-1].get_ylabel() == "Attribution of each vertex to the score"
    np.testing.assert_array_equal(ax.collections[-2].get_array(), found.edge_effects)
    assert len(ax.figure.axes) == 3  # the graph and two color bars
    assert ax.get_title().startswith(f"Score for class {found.target}: {found.score:.2f}")


def test_pictures_write_labels_and_take_axes(tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    graph = Graph([[0, 1], [1, 2]], labels=["N", "C", "O"], n_vertices=3)
    found = Explanation("active", 1.0, 0.5, np.array([0.5, -0.25, 0.25]))
    ax = figure.subplots()
    assert draw_explanation(graph, found, ax=ax, title="mine") is ax
    assert [t.get_text() for t in ax.texts] == ["N", "C", "O"]
    assert ax.get_title() == "mine"
    two = Graph(np.zeros((2, 0), dtype=int), n_vertices=3)  # not connected, no edges
    ax = draw_explanation(two, found, tmp_path / "points.png", labels="abc")
    assert [t.get_text() for t in ax.texts] == ["a", "b", "c"]
    with pytest.raises(GraphError, match="3 vertices, but this one has 2"):
        draw_explanation(Graph([[0], [1]]), found)


def test_pictures_of_molecules(tmp_path):
    pytest.importorskip("rdkit")
    found = Explanation("toxic", 1.0, 0.25, np.array([0.5, 1.0, 1.5]))  # one above the mean
    svg = draw_molecule("CCO", found, tmp_path / "molecule.svg")
    assert svg == (tmp_path / "molecule.svg").read_bytes()
    for color in (b"#B2182B", b"#F7F7F7", b"#2166AC"):  # above the mean, at it, and below
        assert svg.upper().count(b"FILL:" + color) == 1
    assert draw_molecule("CCO", found).startswith(b"<?xml")
    assert draw_molecule("CCO", found, tmp_path / "molecule.png")[:4] == b"\x89PNG"
    with pytest.raises(GraphError, match="cannot be parsed"):
        draw_molecule("C(C", found)
    with pytest.raises(GraphError, match="3 vertices, but this one has 2"):
        draw_molecule("CC", found)
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        draw_molecule("CCO", found, tmp_path / "molecule.gif")


def test_missing_libraries_name_the_extra(drawn, monkeypatch):
    for library in ("matplotlib", "rdkit"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match="extra 'plot'"):
        draw_explanation(*drawn)
    with pytest.raises(MissingDependencyError, match="extra 'chem'"):
        draw_molecule("CCO", drawn[1])


def test_edge_labels_leave_explanations_as_they_are():
    rings = [Graph([[*range(n)], [*range(1, n), 0]], edge_labels=[*range(n)]) for n in (3, 4, 5, 6)]
    plain = [replace(ring, edge_labels=None) for ring in rings]
    model = FDGNNClassifier(random_state=0).fit(rings, [0, 1, 0, 1])
    for a, b in zip(
        explain(model, rings, edges=True), explain(model, plain, edges=True), strict=True
    ):
        assert a.score == b.score
        np.testing.assert_array_equal(a.edge_effects, b.edge_effects)


def test_attributions_do_not_depend_on_threads_of_blas():
    graphs = make_random_graphs(120, n_vertices=(20, 60), random_state=0)
    encoder = GraphReservoir(
        n_units=200, n_layers=3, n_connections=3, pooled_layers="all", random_state=0
    )
    model = GraphClassifier(encoder, readout="rbf", random_state=0).fit(graphs, [0, 1] * 60)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(np.concatenate([one.vertices for one in explain(model, graphs[:20])]))
    np.testing.assert_array_equal(*found)
