"""DGCNN, the network that sorts vertices.

Zhang, Cui, Neumann, Chen, "An end-to-end deep learning architecture for graph classification",
AAAI 2018.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fdgnn.evaluation.baselines.training import Minibatch, NetworkClassifier
from fdgnn.evaluation.records import Configuration
from fdgnn.graphs import GraphBatch

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

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
        """Give learning rates and sizes of the sorted part, as far as published (decision 25)."""
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
