"""Trained graph networks: GIN and DGCNN on PyTorch Geometric, and how networks are trained.

Xu, Hu, Leskovec, Jegelka, "How powerful are graph neural networks?", ICLR 2019. Zhang, Cui,
Neumann, Chen, "An end-to-end deep learning architecture for graph classification", AAAI 2018. The
original GNN is in `scarselli`.

A network is a `torch.nn.ModuleDict` made by `NetworkClassifier._build` and a function of it and a
minibatch, `NetworkClassifier._scores`: nothing here subclasses torch, so that these modules can
be imported, and their grids read, where PyTorch is not installed.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fdgnn.evaluation.baselines import Method, Search, Trial
from fdgnn.evaluation.record import Configuration
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.exceptions import GraphError
from fdgnn.graphs import Array, Floats, GraphBatch, Ints

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from torch_geometric.data import Batch, Data

#: Labels of vertices that are told apart. COLLAB has 367 degrees, more than any other dataset on
#: which degrees were published as labels.
MAX_LABELS = 400
SMOOTHED_OVER = 11  # epochs: a fold has few graphs, so single points of its curve are noise
_AT_ONCE = 256  # graphs that are predicted


# ---------------------------------------------------------------------- what a vertex shows


class VertexInputs:
    """Input rows of vertices, learned on the training graphs.

    One-hot labels; real features, standardized; for graphs with neither the one-hot degree, as
    GIN's authors did. Labels that training did not have give a row of zeros; all beyond the
    `MAX_LABELS` commonest are one.
    """

    def __init__(self, graphs: GraphBatch) -> None:
        self.kind, values, rows = _shown(graphs)
        self._encoder: Any = StandardScaler()
        if self.kind != "features":
            self._encoder = OneHotEncoder(
                handle_unknown="infrequent_if_exist", max_categories=MAX_LABELS
            )
        self._encoder.fit(values[rows])
        self.width = len(self._encoder.get_feature_names_out())

    def rows(self, graphs: GraphBatch) -> tuple[Floats, Ints]:
        """Return a table of rows, and the position in it of each vertex's row."""
        kind, values, rows = _shown(graphs)
        if kind != self.kind:
            raise GraphError(
                f"the graphs come with {kind}, but the model was fitted on graphs with "
                f"{self.kind}; use the same kind of vertices for both"
            )
        table = self._encoder.transform(values)
        return np.asarray(table if kind == "features" else table.toarray()), rows


def _shown(graphs: GraphBatch) -> tuple[str, Array, Ints]:
    """Return what vertices show: its name, values (n_values, width), and the row of each vertex."""
    if graphs.features is not None:
        return "features", graphs.features, np.arange(graphs.n_vertices)
    if graphs.label_values is not None and graphs.label_codes is not None:
        return "labels", graphs.label_values[:, None], graphs.label_codes.astype(np.int64)
    values, rows = np.unique(np.diff(graphs.indptr), return_inverse=True)
    return "degrees", values[:, None], rows


# ---------------------------------------------------------------------- training


@dataclass(kw_only=True, eq=False)
class NetworkClassifier(ABC):
    """Trains a network by minibatches of cross-entropy, on whatever threads torch was given.

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

    @classmethod
    @abstractmethod
    def grid(cls, graphs: GraphBatch) -> list[Configuration]:
        """Return the published configurations for graphs like these, the most promising first."""

    @abstractmethod
    def _build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> nn.ModuleDict:
        """Draw the first weights."""

    @abstractmethod
    def _scores(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        """Return class scores, (n_graphs, n_classes)."""

    def _loss(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        from torch.nn.functional import cross_entropy

        return cross_entropy(self._scores(net, batch), batch.y)

    def _optimizer(self, net: nn.ModuleDict) -> torch.optim.Optimizer:
        from torch.optim import Adam

        return Adam(net.parameters(), lr=self.learning_rate, fused=True)

    def _learning_rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, as a share of the first one."""
        return 1.0

    def fit(self, graphs: GraphBatch, y: Any) -> Self:
        """Train for all epochs on graphs of two classes or more."""
        for _ in self._train(graphs, y):
            pass
        return self

    def validation_curve(
        self, graphs: GraphBatch, y: Any, valid_graphs: GraphBatch, valid_y: Any
    ) -> Floats:
        """Train as `fit` does, and return the accuracy on validation graphs after each epoch."""
        curve, valid = [], list[Any]()
        for _ in self._train(graphs, y):
            valid = valid or list(self.batches(valid_graphs))
            curve.append(np.mean(self._predicted(valid) == np.asarray(valid_y)))
        return np.array(curve)

    def predict(self, graphs: GraphBatch) -> Array:
        """Return each graph's class, as in the `y` of fit."""
        return self._predicted(self.batches(graphs))

    def decision_function(self, graphs: GraphBatch) -> Array:
        """Return scores: (n,) for two classes, (n, n_classes) for more."""
        found = self._outputs(self.batches(graphs))
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found

    def batches(self, graphs: GraphBatch, size: int = _AT_ONCE) -> Iterator[Batch]:
        """Yield minibatches of graphs, in their order."""
        import torch
        from torch_geometric.loader import DataLoader

        table, data = self._data(graphs)
        # With a generator of its own a loader leaves the one of the training alone.
        loader = DataLoader(data, size, generator=torch.Generator())
        return map(partial(with_inputs, table), loader)

    def _data(self, graphs: GraphBatch, codes: Ints | None = None) -> tuple[Tensor, list[Data]]:
        """Return the table of input rows, and the graphs, whose vertices have positions in it."""
        import torch
        from torch_geometric.data import Data

        table, rows = self._inputs.rows(graphs)
        first = graphs.vertex_offsets[:-1][graphs.graph_of_vertex]
        ends = np.repeat(np.arange(graphs.n_vertices) - first, np.diff(graphs.indptr))
        edge_index = torch.from_numpy(np.stack([graphs.neighbors, ends]).astype(np.int64))
        x = torch.from_numpy(rows)
        y = torch.from_numpy(np.zeros(len(graphs), np.int64) if codes is None else codes)
        vertices = graphs.vertex_offsets.tolist()
        arcs = graphs.indptr[graphs.vertex_offsets].tolist()
        data = [
            Data(x=x[v:w], edge_index=edge_index[:, a:b], y=y[g : g + 1])
            for g, ((v, w), (a, b)) in enumerate(
                zip(pairwise(vertices), pairwise(arcs), strict=True)
            )
        ]
        return torch.from_numpy(table.astype(np.float32)), data

    def _train(self, graphs: GraphBatch, y: Any) -> Iterator[None]:
        """Train, pausing after each epoch."""
        import torch

        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self._inputs = VertexInputs(graphs)
        table, data = self._data(graphs, codes.astype(np.int64))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._net = self._build(graphs, self._inputs.width, len(self.classes_))
            self.n_parameters_ = sum(p.numel() for p in self._net.parameters() if p.requires_grad)
            optimizer = self._optimizer(self._net)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._learning_rate)
            for _ in range(self.epochs):
                self._net.train()
                for batch in self._epoch(table, data):
                    optimizer.zero_grad()
                    self._loss(self._net, batch).backward()
                    optimizer.step()
                schedule.step()
                yield

    def _epoch(self, table: Tensor, data: list[Data]) -> Iterable[Batch]:
        """Yield the minibatches of an epoch."""
        from torch_geometric.loader import DataLoader

        # A single graph left over may have one vertex only: batch normalization needs two.
        alone = len(data) > 1 and len(data) % self.batch_size == 1
        loader = DataLoader(data, self.batch_size, shuffle=True, drop_last=alone)
        return map(partial(with_inputs, table), loader)

    def _outputs(self, batches: Iterable[Batch]) -> Array:
        import torch

        self._net.eval()
        with torch.no_grad():
            found: Array = torch.cat([self._scores(self._net, b) for b in batches]).numpy()
        return found

    def _predicted(self, batches: Iterable[Batch]) -> Array:
        predicted: Array = self.classes_[self._outputs(batches).argmax(axis=1)]
        return predicted


def with_inputs(table: Tensor, batch: Batch) -> Batch:
    """Replace the positions that vertices have in a table by its rows."""
    batch.x = table[batch.x]
    return batch


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

    def warm_up(self) -> None:
        """Train for one epoch."""
        graphs = self.task.graphs
        self.model(self.grid[0] | {"epochs": 1}).fit(graphs, self.y).predict(graphs[:10])


def smoothed(curve: Floats) -> Floats:
    """Return means over windows centered on each epoch, shorter at the ends."""
    window = np.ones(min(SMOOTHED_OVER, len(curve)))
    sums, counts = (np.convolve(each, window, "same") for each in (curve, np.ones(len(curve))))
    return np.asarray(sums / counts)


def network(name: str, task: EvaluationTask, search: Search) -> NetworkMethod:
    """Return a trained network."""
    from fdgnn.evaluation.baselines.scarselli import GNNClassifier

    networks = {"gin": GINClassifier, "dgcnn": DGCNNClassifier, "gnn": GNNClassifier}
    return NetworkMethod(name, task, search, networks[name])


# ---------------------------------------------------------------------- GIN

N_LAYERS = 5  # the input counts as one
HALVED_EVERY = 50  # epochs


@dataclass(kw_only=True, eq=False)
class GINClassifier(NetworkClassifier):
    """GIN-0 with its paper's settings, on PyTorch Geometric's `GINConv`.

    With X(0) the inputs, and batch normalization on every hidden layer of the networks MLP,
    each of two layers::

        X(l) = relu(norm(MLP_l((A + I) X(l - 1)))),      l = 1 .. 4
        scores = sum over l = 0 .. 4 of dropout(P_l sum over v of x_v(l) + c_l)

    Parameters
    ----------
    epochs : int
        At most 350 were published.
    seed : int, default=0
    hidden : int, default=32
    batch_size : int, default=32
    learning_rate : float, default=0.01
        Halved after every 50 epochs.
    dropout : float, default=0.5
        Share of each layer's class scores that training drops.

    Attributes
    ----------
    classes_ : array
    n_parameters_ : int
        Trained weights.
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

    def _build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> nn.ModuleDict:
        from torch import nn
        from torch_geometric.nn import GINConv

        widths = [n_inputs] + [self.hidden] * (N_LAYERS - 1)
        convolutions = [
            GINConv(
                nn.Sequential(
                    nn.Linear(width, self.hidden),
                    nn.BatchNorm1d(self.hidden),
                    nn.ReLU(),
                    nn.Linear(self.hidden, self.hidden),
                )
            )
            for width in widths[:-1]
        ]
        return nn.ModuleDict(
            {
                "convolutions": nn.ModuleList(convolutions),
                "norms": nn.ModuleList(nn.BatchNorm1d(self.hidden) for _ in convolutions),
                "readouts": nn.ModuleList(nn.Linear(width, n_classes) for width in widths),
            }
        )

    def _scores(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        from torch.nn.functional import dropout
        from torch_geometric.nn import global_add_pool

        x = batch.x
        layers = [x]
        for convolution, norm in zip(net["convolutions"], net["norms"], strict=True):
            x = norm(convolution(x, batch.edge_index)).relu()
            layers.append(x)
        sums = [global_add_pool(x, batch.batch, batch.num_graphs) for x in layers]
        scores = [
            dropout(readout(each), self.dropout, net.training)
            for readout, each in zip(net["readouts"], sums, strict=True)
        ]
        return sum(scores[1:], start=scores[0])

    def _learning_rate(self, epoch: int) -> float:
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
    seed : int, default=0
    learning_rate : float, default=1e-3
        Adam's.
    sorted_share : float, default=0.6
        k is the least number of vertices that this share of the training graphs does not exceed,
        and at least 10.
    batch_size : int, default=50

    Attributes
    ----------
    classes_ : array
    n_parameters_ : int
        Trained weights.
    """

    MAX_EPOCHS: ClassVar[int] = 300

    sorted_share: float = 0.6
    batch_size: int = 50

    @classmethod
    def grid(cls, graphs: GraphBatch) -> list[Configuration]:
        """Return learning rates and sizes of the sorted part, as far as published (decision 25)."""
        settings = product([1e-3, 1e-4], [0.6, 0.9])
        return [{"learning_rate": r, "sorted_share": s} for r, s in settings]

    def _build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> nn.ModuleDict:
        from torch import nn
        from torch_geometric.nn import SortAggregation

        k = n_sorted(graphs, self.sorted_share)
        n_filtered = FILTERS[1] * (k // 2 - FILTER_SIZE + 1)
        widths = [n_inputs, *CHANNELS]
        return nn.ModuleDict(
            {
                "propagations": nn.ModuleList(
                    nn.Linear(a, b, bias=False) for a, b in pairwise(widths)
                ),
                "sorted": SortAggregation(k),
                # Filters as wide as a vertex, moved by a vertex, are one linear map of each
                # vertex; as Conv1d they are 16 times slower.
                "vertex_filters": nn.Linear(sum(CHANNELS), FILTERS[0]),
                "filters": nn.Sequential(
                    nn.ReLU(),
                    nn.MaxPool1d(2),
                    nn.Conv1d(*FILTERS, FILTER_SIZE),
                    nn.ReLU(),
                    nn.Flatten(),
                ),
                "dense": nn.Sequential(
                    nn.Linear(n_filtered, HIDDEN),
                    nn.ReLU(),
                    nn.Dropout(DROPOUT),
                    nn.Linear(HIDDEN, n_classes),
                ),
            }
        )

    def _scores(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        import torch

        x = batch.x
        inverse_degrees = 1 / (1 + torch.bincount(batch.edge_index[1], minlength=len(x)))[:, None]
        channels = []
        for weights in net["propagations"]:
            x = propagate(weights(x), batch.edge_index, inverse_degrees).tanh()
            channels.append(x)
        x = net["sorted"](torch.cat(channels, dim=1), batch.batch, dim_size=batch.num_graphs)
        x = net["vertex_filters"](x.view(batch.num_graphs, -1, sum(CHANNELS)))
        scores: Tensor = net["dense"](net["filters"](x.transpose(1, 2)))
        return scores


def n_sorted(graphs: GraphBatch, share: float) -> int:
    """The paper's k."""
    sizes = np.sort(np.diff(graphs.vertex_offsets))
    return max(MIN_SORTED, int(sizes[int(np.ceil(share * len(sizes))) - 1]))


def propagate(x: Tensor, edge_index: Tensor, inverse_degrees: Tensor) -> Tensor:
    """D^-1 (A + I) x."""
    sources, targets = edge_index
    return x.index_add(0, targets, x.index_select(0, sources)) * inverse_degrees
