"""GIN, the network that sums.

Xu, Hu, Leskovec, Jegelka, "How powerful are graph neural networks?", ICLR 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from fdgnn.evaluation.baselines.training import (
    GraphTensors,
    Minibatch,
    NetworkClassifier,
    sum_over_graphs,
)
from fdgnn.evaluation.records import Configuration
from fdgnn.graphs import GraphBatch

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

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
        """Give section 7's: 16 or 32 hidden units for bioinformatics, 64 for social networks.

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
