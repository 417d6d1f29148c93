"""Vertices with labels and features: labels become columns of zeros and ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fdgnn import FDGNNClassifier, Graph, GraphClassifier, as_batch, load_model, save_model
from fdgnn.exceptions import GraphError

EDGE = [[0], [1]]


def both(labels, start=0.0):
    return Graph(EDGE, labels=labels, features=[[start, 1.0], [start + 1, 2.0]])


def by_hand(labels, known, start=0.0):
    columns = np.array(list(labels))[:, None] == np.array(list(known))
    return Graph(EDGE, features=np.hstack([[[start, 1.0], [start + 1, 2.0]], columns]))


GRAPHS = [both(["a", "b"] if i % 2 else ["c", "b"], i / 7) for i in range(12)]
Y = np.arange(12) % 2
MODELS = [FDGNNClassifier(random_state=0), GraphClassifier("wl")]


def test_columns_follow_the_features():
    batch = as_batch([both(["b", "a"]), both(["b", "d"], 5.0), by_hand(["b", "b"], "abd")])
    expected = as_batch([by_hand(p, "abd", s) for p, s in (("ba", 0.0), ("bd", 5.0), ("bb", 0.0))])
    np.testing.assert_array_equal(batch.features, expected.features)
    assert batch.labels is None
    assert batch.schema.label_columns == ("a", "b", "d")
    assert as_batch([both([3, 1]), both([2, 1])]).schema.label_columns == (1, 2, 3)


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


def test_a_batch_with_other_columns_is_refused():
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
    names = {"label_attribute": "kind", "feature_attributes": ["size", "mass"]}
    batch = as_batch(networks, **names)
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


def test_a_model_without_labels_refuses_graphs_with_both():
    plain = [Graph(EDGE, features=graph.features) for graph in GRAPHS]
    model = FDGNNClassifier(random_state=0).fit(plain, Y)
    with pytest.raises(GraphError, match="both labels and features"):
        model.predict(GRAPHS[:1])
