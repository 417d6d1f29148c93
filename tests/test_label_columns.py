"""Vertices with labels and features: labels become columns of zeros and ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fdgnn import (
    AutoGraphClassifier,
    FDGNNClassifier,
    Graph,
    GraphClassifier,
    PairCounts,
    WLCounts,
    as_batch,
    load_model,
    save_model,
    substructures,
)
from fdgnn.exceptions import GraphError

EDGE = [[0], [1]]


def both(labels, start=0.0):
    return Graph(EDGE, labels=labels, features=[[start, 1.0], [start + 1, 2.0]])


def by_hand(labels, known, start=0.0):
    columns = np.array(list(labels))[:, None] == np.array(list(known))
    return Graph(EDGE, features=np.hstack([[[start, 1.0], [start + 1, 2.0]], columns]))


GRAPHS = [both(["a", "b"] if i % 2 else ["c", "b"], i / 7) for i in range(12)]
Y = np.arange(12) % 2
MODELS = [FDGNNClassifier(random_state=0), GraphClassifier("wl", random_state=0)]


def test_columns_follow_the_features():
    batch = as_batch([both(["b", "a"]), both(["b", "d"], 5.0), by_hand(["b", "b"], "abd")])
    expected = as_batch([by_hand(p, "abd", s) for p, s in (("ba", 0.0), ("bd", 5.0), ("bb", 0.0))])
    np.testing.assert_array_equal(batch.features, expected.features)
    assert batch.labels is None
    assert batch.schema.label_columns == ("a", "b", "d")
    assert as_batch([both([3, 1]), both([2, 1])]).schema.label_columns == (1, 2, 3)


@pytest.mark.parametrize("encoder", [WLCounts, PairCounts])
def test_labels_alone_are_those_of_graphs_without_features(encoder):
    plain = [Graph(g.edge_index, labels=g.labels) for g in GRAPHS]
    X = encoder(vertices="labels").fit_transform(as_batch(GRAPHS))
    expected = encoder().fit_transform(as_batch(plain))
    np.testing.assert_array_equal((X @ X.T).toarray(), (expected @ expected.T).toarray())


def planted(rng, n_graphs, by_features):
    """Graphs whose class is in the features of their vertices, or else in the labels."""
    graphs, y = [], np.arange(n_graphs) % 2
    for label in y:
        n = 8
        edges = [range(n - 1), range(1, n)]
        labels, features = rng.integers(3, size=n), rng.normal(size=(n, 3))
        if by_features:
            features[:, 1] += 1.5 * label
        else:
            labels[:3] = label
        graphs.append(Graph(edges, labels=labels, features=features))
    return graphs, y


@pytest.mark.parametrize("by_features", [False, True])
def test_the_ensemble_finds_what_is_in_labels_or_in_features(by_features, tmp_path):
    graphs, y = planted(np.random.default_rng(0), 300, by_features)
    model = AutoGraphClassifier(random_state=0).fit(graphs[:150], y[:150])
    names = [fitted.name for fitted in model.estimators_]
    assert any("labels and features" in name for name in names) or not by_features
    assert model.score(graphs[150:], y[150:]) > 0.85
    save_model(model, tmp_path / "m.fdgnn")
    loaded = load_model(tmp_path / "m.fdgnn")
    np.testing.assert_array_equal(loaded.outputs(graphs[150:]), model.outputs(graphs[150:]))
    without = [Graph(g.edge_index, labels=g.labels) for g in graphs]
    of_labels = AutoGraphClassifier(random_state=0).fit(without[:150], y[:150])
    assert (of_labels.score(without[150:], y[150:]) < 0.65) == by_features


def test_labels_beside_features_have_their_names_in_substructures():
    graphs, y = planted(np.random.default_rng(0), 60, by_features=False)
    model = GraphClassifier(WLCounts(n_iterations=0, vertices="labels"), random_state=0)
    found = substructures(model.fit(graphs, y), graphs)
    assert {one.words for one in found} == {"label 0", "label 1", "label 2"}


@pytest.mark.parametrize("kind", MODELS, ids=["reservoir", "wl"])
def test_a_model_keeps_its_columns(kind, tmp_path):
    model = clone(kind).fit(GRAPHS, Y)
    known = ("a", "b", "c")
    alike = [by_hand(g.labels, known, i / 7) for i, g in enumerate(GRAPHS)]
    other = clone(kind).fit(alike, Y)
    np.testing.assert_array_equal(model.outputs(GRAPHS), other.outputs(alike))
    # One graph alone has fewer labels, and a label that is new has no column.
    for labels in (["b", "b"], ["z", "a"]):
        alone = model.outputs([both(labels)])
        np.testing.assert_array_equal(alone, other.outputs([by_hand(labels, known)]))
    save_model(model, tmp_path / "m.fdgnn")
    loaded = load_model(tmp_path / "m.fdgnn")
    np.testing.assert_array_equal(loaded.outputs(GRAPHS[:1]), model.outputs(GRAPHS[:1]))


def test_a_batch_with_other_columns_is_rejected():
    model = FDGNNClassifier(random_state=0).fit(as_batch(GRAPHS), Y)
    foreign = as_batch([both(["a", "x"]), both(["y", "b"])])
    with pytest.raises(GraphError, match="other labels beside its features"):
        model.predict(foreign)
    model.predict(as_batch([both(["a", "x"])], like=model))
    model.predict(as_batch(GRAPHS)[:2])


def test_networkx_attributes_of_both_kinds():
    nx = pytest.importorskip("networkx")

    def network(graph):
        made = nx.path_graph(2)
        nx.set_node_attributes(made, dict(enumerate(graph.labels)), "kind")
        nx.set_node_attributes(made, {i: x for i, (x, _) in enumerate(graph.features)}, "size")
        nx.set_node_attributes(made, {i: x for i, (_, x) in enumerate(graph.features)}, "mass")
        return made

    networks = [network(graph) for graph in GRAPHS]
    batch = as_batch(networks, vertex_attributes=["size", "mass", "kind"])
    np.testing.assert_array_equal(batch.features, as_batch(GRAPHS).features)
    model = FDGNNClassifier(random_state=0).fit(batch, Y)
    np.testing.assert_array_equal(model.outputs(networks[:1]), model.outputs(batch[:1]))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            Graph(EDGE, labels=["a", "b"], features=[[1.0]]),
            r"2 labels and features of shape \(1, 1\)",
        ),
        (
            Graph(EDGE, labels=[1, 2], features=[[1.0, 0], [2.0, 0]]),
            "integer labels beside features",
        ),
        (Graph(EDGE, labels=["a", "b"], features=[["x"], ["y"]]), "features"),
    ],
)
def test_bad_graphs_do_not_touch_the_others(graph, message):
    with pytest.raises(GraphError, match=rf"graph 1: .*{message}"):
        as_batch([both(["a", "b"]), graph])
    model = FDGNNClassifier(random_state=0).fit(GRAPHS, Y)
    found = model.valid_graphs([GRAPHS[0], graph, GRAPHS[1]])
    assert found.rows.tolist() == [0, 2]


def test_a_model_without_labels_rejects_graphs_with_both():
    plain = [Graph(EDGE, features=graph.features) for graph in GRAPHS]
    model = FDGNNClassifier(random_state=0).fit(plain, Y)
    with pytest.raises(GraphError, match="both labels and features"):
        model.predict(GRAPHS[:1])
