"""Trained rivals: their equations, what they learn, and what must not change their answers."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from fdgnn import Graph, as_batch
from fdgnn.evaluation.baselines import pipelines
from fdgnn.evaluation.baselines.pipelines import VertexInputs
from fdgnn.exceptions import GraphError

pytestmark = pytest.mark.xdist_group("torch")

EPOCHS = {"gin": 12, "dgcnn": 25, "gnn": 60}


@pytest.fixture(autouse=True, scope="module")
def _torch_in_one_thread():
    """Import it now: to collect the tests would import it in each process, which takes seconds."""
    global torch, networks
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from fdgnn.evaluation.baselines import networks

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def cycle(n):
    return np.array([np.arange(n), (np.arange(n) + 1) % n])


def drawn_graphs(kind, n_graphs=80, seed=0):
    """Triangles against paths; or cycles, told apart by a label or a feature of their vertices."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_graphs) % 2
    graphs = []
    for target in y:
        n = int(rng.integers(6, 12))
        if kind == "degrees":  # every chord closes a triangle
            edges = np.array([np.arange(n - 1), np.arange(1, n)])
            chords = np.array([[0, 2], [2, 4]]).T
            graphs.append(Graph(np.hstack([edges, chords]) if target else edges, n_vertices=n))
        elif kind == "labels":
            labels = rng.choice(["C", "H"], size=n)
            labels[:2] = "N" if target else "O"
            graphs.append(Graph(cycle(n), labels=labels))
        else:
            features = rng.normal([5 + 2 * target, 0], size=(n, 2))
            graphs.append(Graph(cycle(n), features=features))
    return as_batch(graphs), np.where(y, "yes", "no")


@pytest.fixture(params=EPOCHS)
def model(request):
    return networks.NETWORKS[request.param]


@pytest.fixture(scope="module", params=EPOCHS)
def fitted(request):
    graphs, y = drawn_graphs("labels")
    return learned(networks.NETWORKS[request.param], graphs, y, seed=3)


def learned(model, graphs, y, **settings):
    names = {each: name for name, each in networks.NETWORKS.items()}
    return model(epochs=EPOCHS[names[model]], **settings).fit(graphs, y)


# ---------------------------------------------------------------------- learning


@pytest.mark.parametrize("kind", ["labels", "degrees", "features"])
def test_easy_task_is_learned(model, kind):
    graphs, y = drawn_graphs(kind)
    others, wanted = drawn_graphs(kind, seed=1)
    predicted = learned(model, graphs, y).predict(others)
    assert predicted.dtype == y.dtype
    assert np.mean(predicted == wanted) > 0.8


def test_three_classes(model):
    graphs = as_batch([Graph(cycle(6), labels=[label] * 6) for label in "abc" * 12])
    y = np.tile([7, 3, 5], 12)
    assert (learned(model, graphs, y).predict(graphs[:3]) == [7, 3, 5]).all()


def test_same_seed_same_model_and_torch_left_alone(model):
    graphs, y = drawn_graphs("labels", n_graphs=20)
    state = torch.get_rng_state()
    weights = [
        torch.cat([p.flatten() for p in model(epochs=2, seed=seed).fit(graphs, y).parameters()])
        for seed in (1, 1, 2)
    ]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_validation_curve_ends_where_fit_does(model):
    graphs, y = drawn_graphs("labels", n_graphs=30)
    others, wanted = drawn_graphs("labels", n_graphs=30, seed=1)
    curve = model(epochs=8).validation_curve(graphs, y, others, wanted)
    assert curve.shape == (8,)
    for epochs in (3, 8):
        predicted = model(epochs=epochs).fit(graphs, y).predict(others)
        assert curve[epochs - 1] == np.mean(predicted == wanted)


def test_parameters_are_counted(fitted):
    assert fitted.n_parameters_ == sum(p.numel() for p in fitted.parameters())


def test_numbers_of_parameters():
    graphs, y = drawn_graphs("labels")  # four labels, two classes
    norms = 2 * 32 * 8
    layers = (4 * 32 + 32) + 3 * (32 * 32 + 32) + 4 * (32 * 32 + 32)
    gin = networks.GINClassifier(epochs=1).fit(graphs, y)
    assert gin.n_parameters_ == layers + norms + (4 * 2 + 2) + 4 * (32 * 2 + 2)
    gnn = networks.GNNClassifier(epochs=1, state_size=3, hidden=4).fit(graphs, y)
    h = (4 + 4 + 3) * 4 + 4 + (4 * 3 + 3)
    assert gnn.n_parameters_ == h + (7 * 4 + 4) + (4 * 2 + 2)


# ---------------------------------------------------------------------- what must not matter


def all_at_once(model, graphs):
    (batch,) = model.batches(graphs)
    return batch


def scores(model, graphs):
    model.eval()
    with torch.no_grad():
        return model(all_at_once(model, graphs)).numpy()


def test_order_of_vertices_does_not_matter(fitted):
    graphs, _ = drawn_graphs("labels", n_graphs=10, seed=2)
    rng = np.random.default_rng(0)
    relabeled = []
    for graph in graphs:
        place = rng.permutation(graph.n_vertices)
        labels = np.empty_like(graph.labels)
        labels[place] = graph.labels
        relabeled.append(Graph(place[graph.edge_index], labels=labels))
    np.testing.assert_allclose(
        scores(fitted, as_batch(relabeled)), scores(fitted, graphs), atol=2e-4
    )


def test_batch_mates_do_not_matter(fitted):
    graphs, _ = drawn_graphs("labels", n_graphs=10, seed=2)
    together = scores(fitted, graphs)
    alone = np.concatenate([scores(fitted, graphs[[i]]) for i in range(10)])
    np.testing.assert_allclose(alone, together, atol=2e-4)
    np.testing.assert_allclose(scores(fitted, graphs[::-1])[::-1], together, atol=2e-4)


def test_minibatches_are_the_graphs(fitted):
    graphs, _ = drawn_graphs("labels", n_graphs=9)
    for batch, cut in zip(fitted.batches(graphs, 5), [graphs[:5], graphs[5:]], strict=True):
        adjacency = np.zeros((cut.n_vertices,) * 2)
        adjacency[batch.edge_index[1], batch.edge_index[0]] = 1
        np.testing.assert_array_equal(adjacency, cut.adjacency().toarray())
        np.testing.assert_array_equal(batch.batch, cut.graph_of_vertex)
        np.testing.assert_array_equal(batch.x.argmax(dim=1), cut.label_codes)


# ---------------------------------------------------------------------- inputs


def test_inputs_of_labels():
    inputs = VertexInputs(as_batch([Graph(cycle(3), labels=["a", "c", "c"])]))
    table, rows = inputs.rows(as_batch([Graph(cycle(4), labels=["c", "b", "a", "d"])]))
    np.testing.assert_array_equal(table[rows], [[0, 1], [0, 0], [1, 0], [0, 0]])


def test_inputs_of_features_are_standardized():
    features = np.array([[1.0, 4], [3, 4], [5, 4]])
    inputs = VertexInputs(as_batch([Graph(cycle(3), features=features)]))
    table, rows = inputs.rows(as_batch([Graph(cycle(3), features=features + np.array([0, 1]))]))
    np.testing.assert_allclose(table[rows].mean(axis=0), [0, 1], atol=1e-12)
    assert table[rows][:, 0].std() == pytest.approx(1)


def star(n_leaves):
    return Graph(np.array([[0] * n_leaves, np.arange(1, n_leaves + 1)]))


def test_inputs_of_degrees(monkeypatch):
    inputs = VertexInputs(as_batch([star(3), star(8)]))  # degrees 1, 3, 8
    table, rows = inputs.rows(as_batch([star(5), star(8)]))
    np.testing.assert_array_equal(table[rows][[0, 1, 6]], [[0, 0, 0], [1, 0, 0], [0, 0, 1]])
    monkeypatch.setattr(pipelines, "MAX_LABELS", 2)
    inputs = VertexInputs(as_batch([star(3), star(8), star(8)]))
    table, rows = inputs.rows(as_batch([star(5), star(8)]))  # all but the commonest are one
    np.testing.assert_array_equal(table[rows][[0, 1, 6]], [[0, 1], [1, 0], [0, 1]])


def test_other_kinds_of_inputs_are_refused(fitted):
    with pytest.raises(GraphError, match=r"come with degrees, but .* graphs with labels"):
        fitted.predict(as_batch([Graph(cycle(3))]))
    inputs = VertexInputs(as_batch([Graph(cycle(3), features=np.ones((3, 2)))]))
    with pytest.raises(ValueError, match="1 features"):
        inputs.rows(as_batch([Graph(cycle(3), features=np.ones((3, 1)))]))


# ---------------------------------------------------------------------- at the edges


def test_degenerate_graphs(model):
    lonely = Graph([[], []], n_vertices=1, labels=["a"])
    scattered = Graph([[], []], n_vertices=3, labels=["b"] * 3)
    partly = Graph([[0], [1]], n_vertices=3, labels=["b"] * 3)
    looped = Graph([[0], [0]], n_vertices=1, labels=["a"])
    for graphs in ([lonely, scattered] * 5, [lonely, scattered, looped, partly] * 5):
        batch, y = as_batch(graphs), np.arange(len(graphs)) % 2
        predicted = learned(model, batch, y).predict(batch[:2])
        assert set(predicted) <= {0, 1}
        assert np.isfinite(scores(model(epochs=2).fit(batch, y), batch)).all()


def test_grids_are_settings(model):
    for kind in ("labels", "degrees", "features"):
        grid = model.grid(drawn_graphs(kind, n_graphs=2)[0])
        assert len({tuple(sorted(setting.items())) for setting in grid}) == len(grid)
        for setting in grid:
            made = model(epochs=model.MAX_EPOCHS, **setting)
            assert all(getattr(made, name) == value for name, value in setting.items())


# ---------------------------------------------------------------------- equations


def dense(graphs, model):
    """A, the inputs and P (graphs by vertices), all of them dense."""
    batch = all_at_once(model, graphs)
    P = (np.arange(len(graphs))[:, None] == graphs.graph_of_vertex).astype(float)
    return graphs.adjacency().toarray(), batch.x.double().numpy(), P


def linear(layer, x):
    bias = 0 if layer.bias is None else layer.bias.detach().numpy()
    return x @ layer.weight.detach().numpy().T + bias


def normed(norm, x):
    mean, var = norm.running_mean.numpy(), norm.running_var.numpy()
    scaled = (x - mean) / np.sqrt(var + norm.eps)
    return scaled * norm.weight.detach().numpy() + norm.bias.detach().numpy()


def test_gin_is_its_equation():
    graphs, y = drawn_graphs("labels", n_graphs=20)
    model = networks.GINClassifier(epochs=3).fit(graphs, y)
    A, x, P = dense(graphs[:4], model)
    expected = linear(model.readouts[0], P @ x)
    for i in range(4):
        mlp = model.layers.convs[i].nn
        inside = np.maximum(normed(mlp.norms[0].module, linear(mlp.lins[0], A @ x + x)), 0)
        x = np.maximum(normed(model.layers.norms[i].module, linear(mlp.lins[1], inside)), 0)
        expected += linear(model.readouts[i + 1], P @ x)
    np.testing.assert_allclose(scores(model, graphs[:4]), expected, rtol=1e-4, atol=1e-4)


def test_gin_halves_its_learning_rate():
    rates = []

    class Watched(networks.GINClassifier):
        def batches_of_epoch(self, data):
            rates.append(self.made.param_groups[0]["lr"])
            return super().batches_of_epoch(data)

        def optimizer(self):
            self.made = super().optimizer()
            return self.made

    graphs, y = drawn_graphs("labels", n_graphs=4)
    Watched(epochs=101).fit(graphs, y)
    assert rates == [0.01] * 50 + [0.005] * 50 + [0.0025]


def test_dgcnn_propagation_is_its_equation():
    graphs, _ = drawn_graphs("degrees", n_graphs=3)
    A = graphs.adjacency().toarray()
    x = np.random.default_rng(0).normal(size=(len(A), 4))
    with_loops = A + np.eye(len(A))
    degrees = with_loops.sum(axis=1, keepdims=True)
    model = networks.DGCNNClassifier(epochs=1).fit(graphs, [0, 1, 0])
    arcs = all_at_once(model, graphs).edge_index
    got = model.means(torch.from_numpy(x), arcs)
    np.testing.assert_allclose(got.numpy(), with_loops @ x / degrees)


def test_dgcnn_is_its_equation():
    graphs, y = drawn_graphs("labels", n_graphs=20)
    model = networks.DGCNNClassifier(epochs=3).fit(graphs, y)
    k = networks.n_sorted(graphs, 0.6)
    A, x, _ = dense(graphs[:3], model)
    D = 1 + A.sum(axis=1, keepdims=True)
    channels = []
    for layer in model.propagations:
        x = np.tanh((A @ x + x) / D @ layer.weight.detach().numpy().T)
        channels.append(x)
    x = np.hstack(channels)
    tops = []
    for g in range(3):
        mine = x[graphs[:3].graph_of_vertex == g]
        top = mine[np.argsort(-mine[:, -1], kind="stable")][:k]
        tops.append(np.vstack([top, np.zeros((k - len(top), 97))]))
    # The first filters as the paper has them: a convolution as wide as a vertex, moved by it.
    filters = torch.nn.Conv1d(1, 16, 97, stride=97)
    filters.weight.data = model.vertex_filters.weight[:, None]
    filters.bias.data = model.vertex_filters.bias
    stacked = torch.from_numpy(np.stack(tops)).float().flatten(1)[:, None]
    with torch.no_grad():
        expected = model.eval().filters(filters(stacked))
    np.testing.assert_allclose(scores(model, graphs[:3]), expected, rtol=1e-4, atol=1e-5)


def test_dgcnn_sorts_as_many_as_the_share_has():
    graphs = as_batch([Graph(cycle(n)) for n in range(11, 21)])
    assert networks.n_sorted(graphs, 0.6) == 16
    assert networks.n_sorted(graphs, 0.9) == 19
    assert networks.n_sorted(as_batch([Graph(cycle(3))] * 4), 0.6) == 10


# ---------------------------------------------------------------------- the fixed point


@pytest.fixture
def gnn(monkeypatch):
    """A network in double precision, its batch, and a scale of its recurrent weights."""
    monkeypatch.setattr(networks, "TOLERANCE", 1e-12)
    graphs, y = drawn_graphs("labels", n_graphs=6)
    model = networks.GNNClassifier(epochs=1, state_size=3, hidden=4).fit(graphs, y)
    net = model.double()
    batch = all_at_once(model, graphs)
    batch.x = batch.x.double()
    with torch.no_grad():
        net.state.weight *= 4
    return net, batch, graphs


def test_fixed_point_satisfies_its_equation(gnn):
    net, batch, graphs = gnn
    x = networks.States(net, batch).x.detach().numpy()
    assert np.abs(x).max() > 0.1
    labels, A = batch.x.numpy(), graphs.adjacency().toarray()
    for v in range(len(x)):
        messages = [
            linear(
                net.message,
                np.tanh(
                    linear(net.target, labels[v])
                    + linear(net.source, labels[u])
                    + linear(net.state, x[u])
                ),
            )
            for u in np.flatnonzero(A[v])
        ]
        np.testing.assert_allclose(x[v], np.sum(messages, axis=0), atol=1e-10)


def test_implicit_gradient_is_that_of_many_steps(gnn):
    net, batch, _ = gnn
    target = torch.randn(len(batch.x), 3, generator=torch.Generator().manual_seed(0)).double()
    weights = [getattr(net, name).weight for name in ("target", "source", "state", "message")]
    weights.append(net.message.bias)
    states = networks.States(net, batch)
    implicit = torch.autograd.grad((states.x * target).sum(), weights, retain_graph=True)
    x = torch.zeros_like(states.x)
    for _ in range(200):
        x = states.step(x)[0]
    unrolled = torch.autograd.grad((x * target).sum(), weights, retain_graph=True)
    one_step = torch.autograd.grad((states.step(x.detach())[0] * target).sum(), weights)
    for got, wanted in zip(implicit, unrolled, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-8)
    assert not torch.allclose(one_step[2], unrolled[2], rtol=1e-2)  # so it was worth iterating


def test_column_sums_are_those_of_the_jacobian(gnn):
    net, batch, _ = gnn
    states = networks.States(net, batch)
    jacobian = torch.autograd.functional.jacobian(
        lambda x: states.step(x)[0], states.x.detach(), vectorize=True
    )
    sums = jacobian.abs().sum(dim=(0, 1))
    torch.testing.assert_close(states.column_sums(), sums)
    mu = sums.median().item()
    assert states.excess(mu).item() == pytest.approx((sums - mu).clamp(min=0).sum().item())


def test_penalty_of_contractions_is_zero(gnn):
    net, batch, graphs = gnn
    with torch.no_grad():
        net.state.weight *= 10
    wild = networks.States(net, batch)
    assert wild.excess(0.9).item() > 0
    net.begin_contracting(float(graphs.max_degrees.max()))
    tame = networks.States(net, batch)
    assert tame.excess(0.9).item() == 0
    far = torch.ones_like(tame.x)
    moved = (tame.step(far)[0] - tame.step(tame.x)[0]).abs().sum()
    assert moved < 0.9 * (far - tame.x).abs().sum()


def test_penalty_brings_a_network_back():
    graphs, y = drawn_graphs("labels", n_graphs=20)

    class Wild(networks.GNNClassifier):
        def build(self, graphs, n_inputs, n_classes):
            super().build(graphs, n_inputs, n_classes)
            with torch.no_grad():
                self.state.weight *= 30

    def excess(penalty):
        model = Wild(epochs=60, penalty=penalty).fit(graphs, y)
        batch = all_at_once(model, graphs)
        return networks.States(model, batch).excess(0.9).item()

    assert excess(1.0) < 0.1 * excess(0.0)


def test_states_are_freed():
    graphs, y = drawn_graphs("labels", n_graphs=6)
    model = networks.GNNClassifier(epochs=1).fit(graphs, y)
    states = networks.States(model, all_at_once(model, graphs))
    slopes = weakref.ref(states.slopes)
    states.x.sum().backward()
    del states
    assert slopes() is None
