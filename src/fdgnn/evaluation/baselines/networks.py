"""Trained graph networks: GIN and DGCNN on PyTorch Geometric, and how networks are selected.

Xu, Hu, Leskovec, Jegelka, "How powerful are graph neural networks?", ICLR 2019. Zhang, Cui,
Neumann, Chen, "An end-to-end deep learning architecture for graph classification", AAAI 2018. The
original GNN is in `scarselli`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.evaluation.baselines.base import Method, Search, Trial
from fdgnn.evaluation.baselines.training import (
    GraphTensors,
    Minibatch,
    NetworkClassifier,
    sum_over_graphs,
)
from fdgnn.evaluation.record import Configuration
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.graphs import GraphBatch

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

SMOOTHED_OVER = 11  # epochs: a fold has few graphs, so single points of its curve are noise


# ---------------------------------------------------------------------- selection


class NetworkMethod(Method):
    """A network with its published grid.

    A configuration is trained once for each inner fold used, and scored after every epoch; the
    number of epochs that validates best, averaged over those folds, belongs to the configuration.
    """

    usual_folds = 1

    def __init__(self, task: EvaluationTask, search: Search, network: Any) -> None:
        super().__init__(task, search, network.grid(task.graphs))
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
    half = SMOOTHED_OVER // 2
    sums = np.concatenate([[0.0], np.cumsum(curve)])
    start = np.maximum(np.arange(len(curve)) - half, 0)
    stop = np.minimum(np.arange(len(curve)) + half + 1, len(curve))
    means: Floats = (sums[stop] - sums[start]) / (stop - start)
    return means


def gin(task: EvaluationTask, search: Search) -> NetworkMethod:
    """Return the Graph Isomorphism Network."""
    return NetworkMethod(task, search, GINClassifier)


def dgcnn(task: EvaluationTask, search: Search) -> NetworkMethod:
    """Return the Deep Graph Convolutional Neural Network."""
    return NetworkMethod(task, search, DGCNNClassifier)


def gnn(task: EvaluationTask, search: Search) -> NetworkMethod:
    """Return the original Graph Neural Network."""
    from fdgnn.evaluation.baselines.scarselli import GNNClassifier

    return NetworkMethod(task, search, GNNClassifier)


# ---------------------------------------------------------------------- GIN

N_LAYERS = 5  # the input counts as one
LEARNING_RATE = 0.01
HALVED_EVERY = 50  # epochs


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
    dropout : float, default=0.5
        Share of each layer's class scores that training drops.
    batches_per_epoch : int, optional
        By default an epoch is one pass over the training graphs; in the authors' program it is
        50 random minibatches, whatever the number of graphs.

    Attributes
    ----------
    classes_ : array
    n_parameters_ : int
        Trained weights.
    """

    MAX_EPOCHS: ClassVar[int] = 350

    def __init__(
        self,
        *,
        epochs: int,
        seed: int = 0,
        hidden: int = 32,
        batch_size: int = 32,
        dropout: float = 0.5,
        batches_per_epoch: int | None = None,
    ) -> None:
        super().__init__(epochs=epochs, seed=seed)
        self.hidden, self.batch_size, self.dropout = hidden, batch_size, dropout
        self.batches_per_epoch = batches_per_epoch

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

    def _scores(self, net: nn.ModuleDict, batch: Minibatch) -> Tensor:
        from torch.nn.functional import dropout

        x = batch.x
        layers = [x]
        for convolution, norm in zip(net["convolutions"], net["norms"], strict=True):
            x = norm(convolution(x, batch.edge_index)).relu()
            layers.append(x)
        scores = [
            dropout(readout(sum_over_graphs(x, batch)), self.dropout, net.training)
            for readout, x in zip(net["readouts"], layers, strict=True)
        ]
        return sum(scores[1:], start=scores[0])

    def _optimizer(self, net: nn.ModuleDict) -> torch.optim.Optimizer:
        from torch.optim import Adam

        return Adam(net.parameters(), lr=LEARNING_RATE, fused=True)

    def _learning_rate(self, epoch: int) -> float:
        return LEARNING_RATE * 0.5 ** (epoch // HALVED_EVERY)

    def _epoch(self, data: GraphTensors) -> Iterator[Minibatch]:
        import torch

        if self.batches_per_epoch is None:
            return super()._epoch(data)
        size = min(self.batch_size, len(data))
        drawn = [torch.randperm(len(data))[:size] for _ in range(self.batches_per_epoch)]
        return data.minibatches(size, torch.cat(drawn))


# ---------------------------------------------------------------------- DGCNN

CHANNELS = (32, 32, 32, 1)
FILTERS = (16, 32)
FILTER_SIZE = 5  # of the second convolution
HIDDEN = 128
DROPOUT = 0.5
MIN_SORTED = 10  # fewer vertices leave nothing to the second convolution


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

    def __init__(
        self,
        *,
        epochs: int,
        seed: int = 0,
        learning_rate: float = 1e-3,
        sorted_share: float = 0.6,
        batch_size: int = 50,
    ) -> None:
        super().__init__(epochs=epochs, seed=seed)
        self.learning_rate, self.sorted_share = learning_rate, sorted_share
        self.batch_size = batch_size

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

    def _scores(self, net: nn.ModuleDict, batch: Minibatch) -> Tensor:
        import torch

        x = batch.x
        inverse_degrees = 1 / (1 + torch.bincount(batch.edge_index[1], minlength=len(x)))[:, None]
        channels = []
        for weights in net["propagations"]:
            x = propagate(weights(x), batch.edge_index, inverse_degrees).tanh()
            channels.append(x)
        x = net["sorted"](torch.cat(channels, dim=1), batch.graph_of, dim_size=batch.n_graphs)
        x = net["vertex_filters"](x.view(batch.n_graphs, -1, sum(CHANNELS)))
        scores: Tensor = net["dense"](net["filters"](x.transpose(1, 2)))
        return scores

    def _optimizer(self, net: nn.ModuleDict) -> torch.optim.Optimizer:
        from torch.optim import Adam

        return Adam(net.parameters(), lr=self.learning_rate, fused=True)


def n_sorted(graphs: GraphBatch, share: float) -> int:
    """The paper's k."""
    sizes = np.sort(np.diff(graphs.vertex_offsets))
    return max(MIN_SORTED, int(sizes[int(np.ceil(share * len(sizes))) - 1]))


def propagate(x: Tensor, edge_index: Tensor, inverse_degrees: Tensor) -> Tensor:
    """D^-1 (A + I) x."""
    sources, targets = edge_index
    return x.index_add(0, targets, x.index_select(0, sources)) * inverse_degrees
