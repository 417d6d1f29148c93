"""GNN, the trained network with states at a fixed point.

Scarselli, Gori, Tsoi, Hagenbuchner, Monfardini, "The graph neural network model", IEEE
Transactions on Neural Networks 20, 2009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from fdgnn.evaluation.baselines.networks import NetworkClassifier, with_inputs
from fdgnn.evaluation.record import Configuration
from fdgnn.graphs import GraphBatch

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from torch_geometric.data import Batch, Data

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
    seed : int, default=0
    state_size : int, default=5
    hidden : int, default=10
        Units of the hidden layers of h and g.
    learning_rate : float, default=0.01
        Rprop's first change of each weight.
    mu : float, default=0.9
    penalty : float, default=1.0

    Attributes
    ----------
    classes_ : array
    n_parameters_ : int
        Trained weights.
    """

    MAX_EPOCHS: ClassVar[int] = 500

    state_size: int = 5
    hidden: int = 10
    learning_rate: float = 0.01
    mu: float = 0.9
    penalty: float = 1.0

    @classmethod
    def grid(cls, graphs: GraphBatch) -> list[Configuration]:
        """Return sizes of states and hidden layers; no grid was published (decision 25)."""
        settings = product([5, 10], [10, 20])
        return [{"state_size": s, "hidden": h} for s, h in settings]

    def _build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> nn.ModuleDict:
        from torch import nn

        net = nn.ModuleDict(
            {
                # The first layer of h, by what it sees: l_v, l_u, x_u; then its second one.
                "target": nn.Linear(n_inputs, self.hidden),
                "source": nn.Linear(n_inputs, self.hidden, bias=False),
                "state": nn.Linear(self.state_size, self.hidden, bias=False),
                "message": nn.Linear(self.hidden, self.state_size),
                "output": nn.Sequential(
                    nn.Linear(self.state_size + n_inputs, self.hidden),
                    nn.Tanh(),
                    nn.Linear(self.hidden, n_classes),
                ),
            }
        )
        begin_contracting(net, graphs.largest_degree, self.mu)
        self._training: Wiring | None = None
        return net

    def _scores(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        return _readout(net, batch, States(net, Wiring(batch)).x)

    def _loss(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        from torch.nn.functional import cross_entropy

        assert self._training is not None
        states = States(net, self._training)
        loss = cross_entropy(_readout(net, batch, states.x), batch.y)
        return loss + self.penalty * states.excess(self.mu) / batch.num_graphs

    def _optimizer(self, net: nn.ModuleDict) -> torch.optim.Optimizer:
        from torch.optim import Rprop

        return Rprop(net.parameters(), lr=self.learning_rate)

    def _epoch(self, table: Tensor, data: list[Data]) -> Iterable[Batch]:
        # The same batch in every epoch, so that its states can start where they last were.
        from torch_geometric.data import Batch

        if self._training is None:
            self._training = Wiring(with_inputs(table, Batch.from_data_list(data)))
        return [self._training.batch]


def begin_contracting(net: nn.ModuleDict, max_degree: float, mu: float) -> None:
    """Shrink the weights of states until no column of dF/dx can exceed `mu` in sum."""
    import torch

    with torch.no_grad():
        W, R = net["message"].weight, net["state"].weight
        bound = max_degree * float((W.abs() @ R.abs()).sum(dim=0).max())  # since |tanh'| <= 1
        R *= min(1.0, mu / bound) if bound > 0 else 1.0


def _readout(net: nn.ModuleDict, batch: Batch, x: Tensor) -> Tensor:
    import torch
    from torch_geometric.nn import global_add_pool

    outputs = net["output"](torch.cat([x, batch.x], dim=1))
    return global_add_pool(outputs, batch.batch, batch.num_graphs)


class Wiring:
    """Sums over the arcs of a batch, to their targets or to their sources.

    Attributes
    ----------
    batch : Minibatch
    degrees : (n_vertices, 1) float
        Arcs that end in a vertex.
    last : (n_vertices, state_size) float or None
        The states of the last call.
    """

    def __init__(self, batch: Batch) -> None:
        import torch

        self.batch = batch
        self.sources, self.targets = batch.edge_index
        self._by_target = torch.arange(len(self.targets))  # as they are
        self._by_source = self.sources.argsort(stable=True)
        n = len(batch.x)
        self._target_starts, counts = _starts(self.targets, n)
        self._source_starts, _ = _starts(self.sources, n)
        self.degrees = counts[:, None].to(batch.x.dtype)
        self.last: Tensor | None = None

    def to_targets(self, values: Tensor) -> Tensor:
        """(n_arcs, d) to (n_vertices, d)."""
        return _segment_sums(values, self._by_target, self._target_starts)

    def to_sources(self, values: Tensor) -> Tensor:
        """(n_arcs, d) to (n_vertices, d)."""
        return _segment_sums(values, self._by_source, self._source_starts)


def _starts(vertices: Tensor, n: int) -> tuple[Tensor, Tensor]:
    counts = vertices.bincount(minlength=n)
    return counts.cumsum(0) - counts, counts


def _segment_sums(values: Tensor, order: Tensor, starts: Tensor) -> Tensor:
    from torch.nn.functional import embedding_bag

    # Of all ways to sum segments on a CPU the fastest, five to ten times faster than index_add.
    return embedding_bag(order, values, starts, mode="sum")


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

    def __init__(self, net: nn.ModuleDict, wiring: Wiring) -> None:
        import torch

        self._wiring = wiring
        self._W, self._R = net["message"].weight, net["state"].weight
        self._bias = wiring.degrees * net["message"].bias
        inputs = wiring.batch.x
        seen = net["target"](inputs).index_select(0, wiring.targets)
        self._seen = seen + net["source"](inputs).index_select(0, wiring.sources)
        with torch.no_grad():
            x = torch.zeros_like(self._bias) if wiring.last is None else wiring.last
            for _ in range(MAX_STEPS):
                before, x = x, self.step(x)[0]
                if (x - before).abs().max() <= TOLERANCE:
                    break
        wiring.last = x
        self.x, t = self.step(x)
        self.slopes = 1 - t * t
        if self.x.requires_grad:
            # No method of self: x would hold what holds x, out of the garbage collector's sight.
            fixed_weights = (self._W.detach(), self._R.detach(), self.slopes.detach())
            self.x.register_hook(partial(_adjoint, wiring, *fixed_weights))

    def step(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x), and t."""
        t = ((x @ self._R.T).index_select(0, self._wiring.sources) + self._seen).tanh()
        return self._wiring.to_targets(t) @ self._W.T + self._bias, t

    def column_sums(self) -> Tensor:
        """Return sums of absolute values in the columns of dF/dx, (n_vertices, state_size)."""
        size = self._R.shape[1]
        products = (self._W.T[:, :, None] * self._R[:, None, :]).flatten(1)  # (hidden, size^2)
        blocks = (self.slopes @ products).view(-1, size, size)
        return self._wiring.to_sources(blocks.abs().sum(dim=1))

    def excess(self, mu: float) -> Tensor:
        """The contraction penalty: how far column sums exceed `mu`, in all."""
        return (self.column_sums() - mu).relu().sum()


def _adjoint(wiring: Wiring, W: Tensor, R: Tensor, slopes: Tensor, gradient: Tensor) -> Tensor:
    """Solve z = gradient + (dF/dx)' z."""
    tolerance = TOLERANCE * gradient.abs().max()
    z = gradient
    for _ in range(MAX_STEPS):
        at_arcs = (z @ W).index_select(0, wiring.targets) * slopes
        before, z = z, gradient + wiring.to_sources(at_arcs) @ R
        if (z - before).abs().max() <= tolerance:
            break
    return z
