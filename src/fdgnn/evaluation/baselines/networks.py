"""Trained graph networks on PyTorch Geometric: GIN, DGCNN and the original GNN.

Xu, Hu, Leskovec, Jegelka, "How powerful are graph neural networks?", ICLR 2019. Zhang, Cui,
Neumann, Chen, "An end-to-end deep learning architecture for graph classification", AAAI 2018.
Scarselli, Gori, Tsoi, Hagenbuchner, Monfardini, "The graph neural network model", IEEE
Transactions on Neural Networks 20, 2009.

A network is a torch module that trains itself, with scikit-learn's `fit` and `predict`. Published
grids and other choices are in decision 25.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import SimpleConv, SortAggregation, global_add_pool
from torch_geometric.nn.models import GIN
from torch_geometric.utils import scatter

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.evaluation.baselines import Method, Search, Trial
from fdgnn.evaluation.baselines.pipelines import VertexInputs
from fdgnn.evaluation.record import Configuration
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.graphs import GraphBatch

SMOOTHED_OVER = 11  # epochs: a fold has few graphs, so single points of its curve are noise
_AT_ONCE = 256  # graphs that are predicted


# ---------------------------------------------------------------------- training


@dataclass(kw_only=True, eq=False)
class NetworkClassifier(nn.Module, ABC):
    """A network that is trained by minibatches of cross-entropy, on the threads torch was given.

    Parameters
    ----------
    epochs : int
        Passes over the training graphs.
    seed : int
        Of the first weights, the order of graphs and dropout. Torch's global generator is left
        as it was.
    batch_size : int, default=32
    learning_rate : float, default=1e-3
        The first one, of Adam unless a network has another optimizer.

    Attributes
    ----------
    classes_ : array
    n_parameters_ : int
        Trained weights.
    """

    MAX_EPOCHS: ClassVar[int]

    epochs: int
    seed: int = 0
    batch_size: int = 32
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    @abstractmethod
    def grid(cls, graphs: GraphBatch) -> list[Configuration]:
        """Return the published configurations for graphs like these, the most promising first."""

    @abstractmethod
    def build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> None:
        """Draw the first weights."""

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return class scores, (n_graphs, n_classes)."""

    def loss(self, batch: Batch) -> Tensor:
        """Return what training minimizes."""
        return cross_entropy(self(batch), batch.y)

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer of the weights."""
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate, fused=True)

    def learning_rate_of(self, epoch: int) -> float:
        """Return the learning rate of an epoch, as a share of the first one."""
        return 1.0

    def batches_of_epoch(self, data: list[Data]) -> Iterable[Batch]:
        """Yield the minibatches of an epoch."""
        yield from DataLoader(data, self.batch_size, shuffle=True)

    def fit(self, graphs: GraphBatch, y: Any) -> Self:
        """Train for all epochs on graphs of two classes or more."""
        for _ in self._train_epochs(graphs, y):
            pass
        return self

    def validation_curve(
        self, graphs: GraphBatch, y: Any, valid_graphs: GraphBatch, valid_y: Any
    ) -> Floats:
        """Train as `fit` does, and return the accuracy on validation graphs after each epoch."""
        curve, valid = [], list[Batch]()
        for _ in self._train_epochs(graphs, y):
            valid = valid or list(self.batches(valid_graphs))
            predicted = self.classes_[self._scores(valid).argmax(axis=1)]
            curve.append(np.mean(predicted == np.asarray(valid_y)))
        return np.array(curve)

    def _train_epochs(self, graphs: GraphBatch, y: Any) -> Iterator[None]:
        """Train, pausing after each epoch."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self._inputs = VertexInputs(graphs)
        data = self._data(graphs, codes.astype(np.int64))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.build(graphs, self._inputs.width, len(self.classes_))
            self.n_parameters_ = sum(each.numel() for each in self.parameters())
            optimizer = self.optimizer()
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self.learning_rate_of)
            for _ in range(self.epochs):
                self.train()
                for batch in self.batches_of_epoch(data):
                    optimizer.zero_grad()
                    self.loss(batch).backward()
                    optimizer.step()
                schedule.step()
                yield

    def predict(self, graphs: GraphBatch) -> Array:
        """Return each graph's class, as in the `y` of fit."""
        scores = self._scores(self.batches(graphs))
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def decision_function(self, graphs: GraphBatch) -> Array:
        """Return scores: (n,) for two classes, (n, n_classes) for more."""
        found = self._scores(self.batches(graphs))
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found

    def _scores(self, batches: Iterable[Batch]) -> Array:
        self.eval()
        with torch.no_grad():
            return np.concatenate([self(batch).numpy() for batch in batches])

    def batches(self, graphs: GraphBatch, size: int = _AT_ONCE) -> Iterable[Batch]:
        """Yield minibatches of graphs, in their order."""
        # With a generator of its own a loader leaves the one of the training alone.
        yield from DataLoader(self._data(graphs), size, generator=torch.Generator())

    def _data(self, graphs: GraphBatch, codes: Ints | None = None) -> list[Data]:
        """Return the graphs with their input rows and, if they are given, their classes."""
        table, rows = self._inputs.rows(graphs)
        x = torch.from_numpy(table.astype(np.float32))[torch.from_numpy(rows)]
        first = graphs.vertex_offsets[:-1][graphs.graph_of_vertex]
        ends = np.repeat(np.arange(graphs.n_vertices) - first, np.diff(graphs.indptr))
        edge_index = torch.from_numpy(np.stack([graphs.neighbors, ends]).astype(np.int64))
        y = torch.from_numpy(np.zeros(len(graphs), np.int64) if codes is None else codes)
        vertices = pairwise(graphs.vertex_offsets.tolist())
        arcs = pairwise(graphs.indptr[graphs.vertex_offsets].tolist())
        return [
            Data(x=x[v:w], edge_index=edge_index[:, a:b], y=y[g : g + 1])
            for g, ((v, w), (a, b)) in enumerate(zip(vertices, arcs, strict=True))
        ]


# ---------------------------------------------------------------------- selection


class NetworkMethod(Method):
    """A network with its published grid.

    A configuration is trained once for each inner fold used, and scored after every epoch; the
    number of epochs that validates best, averaged over those folds, belongs to the configuration.
    """

    usual_folds = 1

    def __init__(self, name: str, task: EvaluationTask, search: Search, network: Any) -> None:
        super().__init__(name, task, search, network.grid(task.graphs))
        self.network, self.kind = network, network.__name__

    @property
    def units(self) -> list[str]:
        """A part for each configuration in each outer fold."""
        choose_epochs = self.search.choose_epochs
        if self.n_configurations == 1 and not choose_epochs:
            return []
        return [json.dumps([o, c]) for o in range(len(self.task.folds)) for c in self.grid]

    @property
    def only(self) -> Configuration:
        """The first configuration, for all published epochs."""
        return self.grid[0] | {"epochs": self.network.MAX_EPOCHS}

    def score(self, unit: str) -> list[Trial]:
        """Train one configuration on the inner folds of one outer fold."""
        outer, configuration = json.loads(unit)
        longest = configuration | {"epochs": self.network.MAX_EPOCHS}
        graphs, y = self.task.graphs, self.y
        curves = [
            self.model(longest).validation_curve(graphs[train], y[train], graphs[valid], y[valid])
            for train, valid in self.inner_parts(self.task.folds[outer])
        ]
        curve = smoothed(np.mean(curves, axis=0))
        best = int(curve.argmax()) if self.search.choose_epochs else len(curve) - 1
        configuration = configuration | {"epochs": best + 1}
        return [Trial(outer=outer, configuration=configuration, score=float(curve[best]))]

    def model(self, configuration: Configuration) -> Any:
        """Return a model that is not trained."""
        return self.network(seed=self.task.seed, **configuration)

    def warm_up(self, chosen: Sequence[Configuration]) -> None:
        """Train for one epoch."""
        graphs = self.task.graphs
        self.model(chosen[0] | {"epochs": 1}).fit(graphs, self.y).predict(graphs[:10])


def smoothed(curve: Floats) -> Floats:
    """Return means over windows centered on each epoch, shorter at the ends."""
    window = np.ones(min(SMOOTHED_OVER, len(curve)))
    sums, counts = (np.convolve(each, window, "same") for each in (curve, np.ones(len(curve))))
    return np.asarray(sums / counts)


def network(name: str, task: EvaluationTask, search: Search) -> NetworkMethod:
    """Return a trained network."""
    return NetworkMethod(name, task, search, NETWORKS[name])


# ---------------------------------------------------------------------- GIN

N_LAYERS = 5  # the input counts as one
HALVED_EVERY = 50  # epochs


@dataclass(kw_only=True, eq=False)
class GINClassifier(NetworkClassifier):
    """GIN-0 with its paper's settings, on PyTorch Geometric's `GIN`.

    With X(0) the inputs, and batch normalization on every hidden layer of the networks MLP,
    each of two layers::

        X(l) = relu(norm(MLP_l((A + I) X(l - 1)))),      l = 1 .. 4
        scores = sum over l = 0 .. 4 of dropout(P_l sum over v of x_v(l) + c_l)

    Parameters
    ----------
    epochs : int
        At most 350 were published.
    hidden : int, default=32
    learning_rate : float, default=0.01
        Halved after every 50 epochs.
    dropout : float, default=0.5
        Share of each layer's class scores that training drops.
    """

    MAX_EPOCHS: ClassVar[int] = 350

    hidden: int = 32
    learning_rate: float = 0.01
    dropout: float = 0.5

    @classmethod
    def grid(cls, graphs: GraphBatch) -> list[Configuration]:
        """Return section 7's: 16 or 32 hidden units for bioinformatics, 64 for social networks.

        Graphs without labels and features are taken for social networks.
        """
        unlabeled = graphs.label_codes is None and graphs.features is None
        widths = [64] if unlabeled else [32, 16]
        settings = product(widths, [32, 128], [0.5, 0.0])
        return [{"hidden": h, "batch_size": b, "dropout": d} for h, b, d in settings]

    def build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> None:
        """Draw the first weights."""
        self.layers = GIN(
            n_inputs, self.hidden, N_LAYERS - 1, n_classes, norm="batch_norm",
            norm_kwargs={"allow_single_element": True}, jk="cat",
        )  # fmt: skip
        self.layers.lin = nn.Identity()  # the layers side by side: each has its own readout
        self.widths = [n_inputs] + [self.hidden] * (N_LAYERS - 1)
        self.readouts = nn.ModuleList(nn.Linear(width, n_classes) for width in self.widths)

    def forward(self, batch: Batch) -> Tensor:
        """Return class scores."""
        x = torch.cat([batch.x, self.layers(batch.x, batch.edge_index)], dim=1)
        sums = global_add_pool(x, batch.batch, batch.num_graphs).split(self.widths, dim=1)
        scores = [
            dropout(readout(each), self.dropout, self.training)
            for readout, each in zip(self.readouts, sums, strict=True)
        ]
        return torch.stack(scores).sum(dim=0)

    def learning_rate_of(self, epoch: int) -> float:
        """Return the learning rate of an epoch, as a share of the first one."""
        return 0.5 ** (epoch // HALVED_EVERY)


# ---------------------------------------------------------------------- DGCNN

CHANNELS = (32, 32, 32, 1)
FILTERS = (16, 32)
FILTER_SIZE = 5  # of the second convolution
HIDDEN = 128
DROPOUT = 0.5
MIN_SORTED = 10  # fewer vertices leave nothing to the second convolution


@dataclass(kw_only=True, eq=False)
class DGCNNClassifier(NetworkClassifier):
    """DGCNN with its paper's architecture, on PyTorch Geometric's `SortAggregation`.

    With X(0) the inputs and D the degrees of A + I::

        X(l) = tanh(D^-1 (A + I) X(l - 1) W_l),          l = 1 .. 4 of 32, 32, 32, 1 channels

    All channels side by side, the k vertices with the largest last channel in that order, then
    16 filters over one vertex each, the maximum of every two, 32 filters over five of them, a
    dense layer of 128 with dropout, and class scores.

    Parameters
    ----------
    epochs : int
        At most 300 were published for the datasets that this library compares on.
    sorted_share : float, default=0.6
        k is the least number of vertices that this share of the training graphs does not exceed,
        and at least 10.
    batch_size : int, default=50
    """

    MAX_EPOCHS: ClassVar[int] = 300

    sorted_share: float = 0.6
    batch_size: int = 50

    @classmethod
    def grid(cls, graphs: GraphBatch) -> list[Configuration]:
        """Return learning rates and sizes of the sorted part, as far as published."""
        settings = product([1e-3, 1e-4], [0.6, 0.9])
        return [{"learning_rate": r, "sorted_share": s} for r, s in settings]

    def build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> None:
        """Draw the first weights."""
        k = n_sorted(graphs, self.sorted_share)
        widths = pairwise([n_inputs, *CHANNELS])
        self.propagations = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in widths)
        self.means = SimpleConv("mean", combine_root="self_loop")  # D^-1 (A + I)
        self.sorted = SortAggregation(k)
        # Filters as wide as a vertex, moved by a vertex, are one linear map of each vertex; as
        # Conv1d they are 16 times slower.
        self.vertex_filters = nn.Linear(sum(CHANNELS), FILTERS[0])
        self.filters = nn.Sequential(
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(*FILTERS, FILTER_SIZE),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(FILTERS[1] * (k // 2 - FILTER_SIZE + 1), HIDDEN),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, n_classes),
        )

    def forward(self, batch: Batch) -> Tensor:
        """Return class scores."""
        x, channels = batch.x, []
        for weights in self.propagations:
            x = self.means(weights(x), batch.edge_index).tanh()
            channels.append(x)
        x = self.sorted(torch.cat(channels, dim=1), batch.batch, dim_size=batch.num_graphs)
        x = self.vertex_filters(x.view(batch.num_graphs, -1, sum(CHANNELS)))
        return self.filters(x.transpose(1, 2))


def n_sorted(graphs: GraphBatch, share: float) -> int:
    """Return the paper's k."""
    sizes = np.sort(np.diff(graphs.vertex_offsets))
    return max(MIN_SORTED, int(sizes[int(np.ceil(share * len(sizes))) - 1]))


# ---------------------------------------------------------------------- GNN

TOLERANCE = 1e-5  # of the largest change in a step, both of states and of their gradients
MAX_STEPS = 200


@dataclass(kw_only=True, eq=False)
class GNNClassifier(NetworkClassifier):
    """The nonlinear GNN, trained by recurrent back-propagation with the contraction penalty.

    With l_v the input of vertex v, and h and g networks with one hidden layer of tanh::

        x_v = sum over the neighbors u of v of h(l_v, x_u, l_u)         iterated from x = 0
        scores = sum over the vertices v of g(x_v, l_v)
        loss = cross-entropy + penalty * sum over c of max(0, c - mu) / number of graphs

    where c runs over the sums of absolute values in the columns of dF/dx, the Jacobian of the
    iteration at its fixed point: where none exceeds mu < 1, the iteration contracts. Training is
    by resilient back-propagation over all graphs at once, as the original's.

    Parameters
    ----------
    epochs : int
        Passes over the training graphs, and changes of the weights.
    state_size : int, default=5
    hidden : int, default=10
        Units of the hidden layers of h and g.
    learning_rate : float, default=0.01
        Rprop's first change of each weight.
    mu : float, default=0.9
    penalty : float, default=1.0
    """

    MAX_EPOCHS: ClassVar[int] = 500

    state_size: int = 5
    hidden: int = 10
    learning_rate: float = 0.01
    mu: float = 0.9
    penalty: float = 1.0

    @classmethod
    def grid(cls, graphs: GraphBatch) -> list[Configuration]:
        """Return sizes of states and hidden layers; no grid was published."""
        settings = product([5, 10], [10, 20])
        return [{"state_size": s, "hidden": h} for s, h in settings]

    def build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> None:
        """Draw the first weights."""
        # The first layer of h, by what it sees: l_v, l_u, x_u; then its second one.
        self.target = nn.Linear(n_inputs, self.hidden)
        self.source = nn.Linear(n_inputs, self.hidden, bias=False)
        self.state = nn.Linear(self.state_size, self.hidden, bias=False)
        self.message = nn.Linear(self.hidden, self.state_size)
        self.output = nn.Sequential(
            nn.Linear(self.state_size + n_inputs, self.hidden),
            nn.Tanh(),
            nn.Linear(self.hidden, n_classes),
        )
        self.begin_contracting(graphs.largest_degree)
        self._last: Tensor | None = None

    def begin_contracting(self, max_degree: float) -> None:
        """Shrink the weights of states until no column of dF/dx can exceed `mu` in sum."""
        with torch.no_grad():
            W, R = self.message.weight, self.state.weight
            bound = max_degree * float((W.abs() @ R.abs()).sum(dim=0).max())  # since |tanh'| <= 1
            R *= min(1.0, self.mu / bound) if bound > 0 else 1.0

    def forward(self, batch: Batch) -> Tensor:
        """Return class scores."""
        return self._readout(batch, States(self, batch).x)

    def _readout(self, batch: Batch, x: Tensor) -> Tensor:
        outputs = self.output(torch.cat([x, batch.x], dim=1))
        return global_add_pool(outputs, batch.batch, batch.num_graphs)

    def loss(self, batch: Batch) -> Tensor:
        """Return the cross-entropy with the penalty; states start where they last were."""
        states = States(self, batch, self._last)
        self._last = states.start
        loss = cross_entropy(self._readout(batch, states.x), batch.y)
        return loss + self.penalty * states.excess(self.mu) / batch.num_graphs

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer of the original."""
        return torch.optim.Rprop(self.parameters(), lr=self.learning_rate)

    def batches_of_epoch(self, data: list[Data]) -> Iterable[Batch]:
        """Return all graphs as one batch."""
        return [Batch.from_data_list(data)]


class States:
    """The states at their fixed point, with the gradients of the fixed point.

    One step F of all vertices, with t the hidden layers of h on the arcs::

        t_vu = tanh(R x_u + T l_v + S l_u + c)
        x_v = sum over u of (W t_vu + b)
        dF/dx, block (v, u): W diag(1 - t_vu^2) R

    `x` is one step from the fixed point x*, through which gradients reach the weights; a gradient
    g that arrives at it is first replaced by z = g + (dF/dx)' z, itself iterated to its fixed
    point: recurrent back-propagation.

    Attributes
    ----------
    x : (n_vertices, state_size) float
    slopes : (n_arcs, hidden) float
        1 - t^2.
    """

    def __init__(self, net: GNNClassifier, batch: Batch, start: Tensor | None = None) -> None:
        self._sources, self._targets = batch.edge_index
        self._W, self._R = net.message.weight, net.state.weight
        n = len(batch.x)
        self._bias = self._targets.bincount(minlength=n)[:, None] * net.message.bias
        self._seen = net.target(batch.x)[self._targets] + net.source(batch.x)[self._sources]
        with torch.no_grad():
            x = torch.zeros_like(self._bias) if start is None else start
            x = _fixed_point(lambda x: self.step(x)[0], x, TOLERANCE)
        self.start = x  # of the next epoch
        self.x, t = self.step(x)
        self.slopes = 1 - t * t
        if self.x.requires_grad:
            # No method of self: x would hold what holds x, out of the garbage collector's sight.
            fixed = (self._W.detach(), self._R.detach(), self.slopes.detach())
            self.x.register_hook(partial(_adjoint, batch.edge_index, *fixed))

    def step(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x), and t."""
        t = ((x @ self._R.T).index_select(0, self._sources) + self._seen).tanh()
        return scatter(t, self._targets, 0, len(x), "sum") @ self._W.T + self._bias, t

    def column_sums(self) -> Tensor:
        """Return sums of absolute values in the columns of dF/dx, (n_vertices, state_size)."""
        size = self._R.shape[1]
        products = (self._W.T[:, :, None] * self._R[:, None, :]).flatten(1)  # (hidden, size^2)
        blocks = (self.slopes @ products).view(-1, size, size)
        return scatter(blocks.abs().sum(dim=1), self._sources, 0, len(self.x), "sum")

    def excess(self, mu: float) -> Tensor:
        """Return the contraction penalty: how far column sums exceed `mu`, in all."""
        return (self.column_sums() - mu).relu().sum()


def _adjoint(edge_index: Tensor, W: Tensor, R: Tensor, slopes: Tensor, gradient: Tensor) -> Tensor:
    """Solve z = gradient + (dF/dx)' z."""
    sources, targets = edge_index

    def step(z: Tensor) -> Tensor:
        at_arcs = (z @ W).index_select(0, targets) * slopes
        return gradient + scatter(at_arcs, sources, 0, len(z), "sum") @ R

    return _fixed_point(step, gradient, TOLERANCE * gradient.abs().max())


def _fixed_point(step: Callable[[Tensor], Tensor], x: Tensor, tolerance: Any) -> Tensor:
    for _ in range(MAX_STEPS):
        before, x = x, step(x)
        if (x - before).abs().max() <= tolerance:
            break
    return x


NETWORKS = {"gin": GINClassifier, "dgcnn": DGCNNClassifier, "gnn": GNNClassifier}
