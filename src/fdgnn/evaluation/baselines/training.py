"""Parts of all trained networks: inputs, minibatches of a disjoint union, and the training loop.

A network is a `torch.nn.ModuleDict` made by `NetworkClassifier._build` and a function of it and a
`Minibatch`, `NetworkClassifier._scores`: nothing here subclasses torch, so that these modules can
be imported, and their grids read, where PyTorch is not installed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from fdgnn.evaluation.record import Configuration
from fdgnn.exceptions import GraphError
from fdgnn.extras import require
from fdgnn.graphs import Array, Floats, GraphBatch, Ints

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

#: Vertices without labels show their degree, of which at most so many are told apart. COLLAB has
#: 367, more than any other dataset on which degrees were published as labels.
MAX_DEGREES = 400


# ---------------------------------------------------------------------- what a vertex shows


class VertexInputs:
    """Input rows of vertices, learned on the training graphs.

    One-hot labels; real features, standardized; for graphs with neither the one-hot degree, as
    GIN's authors did. Labels that training did not have give a row of zeros, degrees the row of
    the nearest known one. Of more than `MAX_DEGREES` degrees the commonest are known.

    Attributes
    ----------
    width : int
        Entries of a row.
    """

    def __init__(self, graphs: GraphBatch) -> None:
        self.kind = _kind(graphs)
        if graphs.features is not None:
            self._mean = graphs.features.mean(axis=0)
            spread = graphs.features.std(axis=0)
            self._scale = np.where(spread > 0, spread, 1.0)
            self.width = graphs.features.shape[1]
            return
        known, counts = np.unique(_codes(graphs), return_counts=True)
        if self.kind == "degrees":
            known = np.sort(known[np.argsort(-counts, kind="stable")[:MAX_DEGREES]])
        elif graphs.label_values is not None:
            known = graphs.label_values[known]
        self._known, self.width = known, len(known)

    def rows(self, graphs: GraphBatch) -> tuple[Floats, Ints]:
        """Return a table of rows, and the position in it of each vertex's row."""
        if _kind(graphs) != self.kind:
            raise GraphError(
                f"the graphs come with {_kind(graphs)}, but the model was fitted on graphs with "
                f"{self.kind}; use the same kind of vertices for both"
            )
        if graphs.features is not None:
            if graphs.features.shape[1] != self.width:
                raise GraphError(
                    f"the graphs have {graphs.features.shape[1]} features per vertex, but the "
                    f"model was fitted on {self.width}; use the same features for both"
                )
            return (graphs.features - self._mean) / self._scale, np.arange(graphs.n_vertices)
        one_hot = np.eye(self.width + 1, self.width)  # the last row: labels never seen
        if graphs.label_values is None:
            return one_hot, _nearest(self._known, _codes(graphs))
        position = {label: i for i, label in enumerate(self._known.tolist())}
        row = [position.get(label, self.width) for label in graphs.label_values.tolist()]
        return one_hot, np.array(row)[_codes(graphs)]


def _kind(graphs: GraphBatch) -> str:
    if graphs.features is not None:
        return "features"
    return "degrees" if graphs.label_codes is None else "labels"


def _codes(graphs: GraphBatch) -> Array:
    return np.diff(graphs.indptr) if graphs.label_codes is None else graphs.label_codes


def _nearest(known: Ints, values: Ints) -> Ints:
    """Position of the nearest of the ascending `known`; of two equally near, the smaller."""
    right = np.searchsorted(known, values).clip(1, max(1, len(known) - 1))
    left = right - 1
    right = right.clip(max=len(known) - 1)
    return np.where(known[right] - values < values - known[left], right, left)


# ---------------------------------------------------------------------- minibatches


@dataclass(frozen=True)
class Minibatch:
    """Some graphs as one.

    Attributes
    ----------
    x : (n_vertices, width) float
    edge_index : (2, n_arcs) int64
        Sources and targets, ordered by target.
    graph_of : (n_vertices,) int64
        Ascending.
    n_graphs : int
    y : (n_graphs,) int64
        Classes as positions; zeros where they are not known.
    """

    x: Tensor
    edge_index: Tensor
    graph_of: Tensor
    n_graphs: int
    y: Tensor


class GraphTensors:
    """A `GraphBatch` as tensors, from which minibatches are cut.

    An epoch costs one pass of gathers over all graphs in their new order; a minibatch is then a
    slice of that order, whatever the number of its graphs.
    """

    def __init__(self, graphs: GraphBatch, inputs: VertexInputs, y: Ints | None = None) -> None:
        import torch

        table, rows = inputs.rows(graphs)
        self._table = torch.from_numpy(table.astype(np.float32))
        self._rows = torch.from_numpy(rows.astype(np.int64))
        self._neighbors = torch.from_numpy(graphs.neighbors.astype(np.int64))
        self._offsets = torch.tensor(graphs.vertex_offsets)
        self._indptr = torch.tensor(graphs.indptr)
        self._y = torch.from_numpy(np.zeros(len(graphs), np.int64) if y is None else y)

    def __len__(self) -> int:
        return len(self._y)

    def all_at_once(self) -> Minibatch:
        """All graphs in their own order."""
        return next(self.minibatches(len(self)))

    def minibatches(self, size: int, order: Tensor | None = None) -> Iterator[Minibatch]:
        """Cut the graphs in `order` into minibatches.

        One left over joins the minibatch before it: batch normalization needs two vertices.
        """
        import torch

        n = len(self)
        order = torch.arange(n) if order is None else order
        sizes = self._offsets.diff()[order]
        vertices = _ranges(self._offsets[order], sizes)
        degrees = self._indptr.diff()[vertices]
        ends = _offsets(sizes)
        graph_of = torch.repeat_interleave(torch.arange(len(order)), sizes)
        targets = torch.repeat_interleave(torch.arange(len(vertices)), degrees)
        # Neighbors count within their own graph: each graph's first vertex is added.
        sources = self._neighbors[_ranges(self._indptr[vertices], degrees)]
        edge_index = torch.stack([sources + ends[graph_of[targets]], targets])
        rows, arc_ends, y = self._rows[vertices], _offsets(degrees)[ends].tolist(), self._y[order]
        vertex_ends = ends.tolist()
        starts = list(range(0, len(order), size))
        if len(starts) > 1 and len(order) - starts[-1] == 1:
            starts.pop()
        for g, h in zip(starts, [*starts[1:], len(order)], strict=True):
            v, w = vertex_ends[g], vertex_ends[h]
            yield Minibatch(
                x=self._table[rows[v:w]],
                edge_index=edge_index[:, arc_ends[g] : arc_ends[h]] - v,
                graph_of=graph_of[v:w] - g,
                n_graphs=h - g,
                y=y[g:h],
            )


def _offsets(lengths: Tensor) -> Tensor:
    import torch

    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def _ranges(starts: Tensor, lengths: Tensor) -> Tensor:
    """Concatenate ``arange(start, start + length)`` over all pairs."""
    import torch

    first = torch.repeat_interleave(starts - _offsets(lengths)[:-1], lengths)
    return first + torch.arange(len(first))


def sum_over_graphs(values: Tensor, batch: Minibatch) -> Tensor:
    """(n_vertices, d) to (n_graphs, d)."""
    return values.new_zeros(batch.n_graphs, values.shape[1]).index_add(0, batch.graph_of, values)


# ---------------------------------------------------------------------- training


class NetworkClassifier(ABC):
    """Trains a network by minibatches of cross-entropy, on whatever threads torch was given.

    Parameters
    ----------
    epochs : int
        Passes over the training graphs.
    seed : int
        Of the first weights, the order of graphs and dropout. Torch's global generator is left
        as it was.

    Attributes
    ----------
    classes_ : array
    n_parameters_ : int
        Trained weights.
    """

    LIBRARIES: ClassVar[tuple[str, ...]] = ("torch", "torch_geometric")
    MAX_EPOCHS: ClassVar[int]
    batch_size: int

    def __init__(self, *, epochs: int, seed: int) -> None:
        if epochs < 1:
            raise ValueError(f"epochs is {epochs}, expected at least 1")
        self.epochs, self.seed = epochs, seed

    @classmethod
    @abstractmethod
    def grid(cls, graphs: GraphBatch) -> list[Configuration]:
        """Return the published configurations for graphs like these, the most promising first."""

    @abstractmethod
    def _build(self, graphs: GraphBatch, n_inputs: int, n_classes: int) -> nn.ModuleDict:
        """Draw the first weights."""

    @abstractmethod
    def _scores(self, net: nn.ModuleDict, batch: Minibatch) -> Tensor:
        """Class scores, (n_graphs, n_classes)."""

    def _loss(self, net: nn.ModuleDict, batch: Minibatch) -> Tensor:
        from torch.nn.functional import cross_entropy

        return cross_entropy(self._scores(net, batch), batch.y)

    @abstractmethod
    def _optimizer(self, net: nn.ModuleDict) -> torch.optim.Optimizer:
        """Make the optimizer."""

    def _learning_rate(self, epoch: int) -> float | None:
        """Learning rate of an epoch, where it changes."""
        return None

    def fit(self, graphs: GraphBatch, y: Any) -> Self:
        """Train for all epochs.

        Parameters
        ----------
        graphs : GraphBatch
        y : array-like, shape (n_graphs,)
            Two classes or more.
        """
        for _ in self._train(graphs, y):
            pass
        return self

    def validation_curve(
        self, graphs: GraphBatch, y: Any, valid_graphs: GraphBatch, valid_y: Any
    ) -> Floats:
        """Train as `fit` does, and give the accuracy on the validation graphs after each epoch.

        Returns
        -------
        (epochs,) float64
        """
        valid, valid_y = None, np.asarray(valid_y)
        curve = []
        for _ in self._train(graphs, y):
            valid = valid or GraphTensors(valid_graphs, self._inputs)
            curve.append(np.mean(self._predicted(valid) == valid_y))
        return np.array(curve)

    def predict(self, graphs: GraphBatch) -> Array:
        """Return each graph's class, as in the `y` of fit."""
        if not hasattr(self, "_net"):
            raise ValueError(f"this {type(self).__name__} is not fitted; call fit first")
        return self._predicted(GraphTensors(graphs, self._inputs))

    def decision_function(self, graphs: GraphBatch) -> Array:
        """Return scores: (n,) for two classes, (n, n_classes) for more."""
        import torch

        data = GraphTensors(graphs, self._inputs)
        self._net.eval()
        with torch.no_grad():
            parts = [self._scores(self._net, b) for b in data.minibatches(256)]
        found: Array = torch.cat(parts).numpy()
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found

    def _train(self, graphs: GraphBatch, y: Any) -> Iterator[None]:
        """Train, pausing after each epoch."""
        for library in self.LIBRARIES:
            require(library, "compare", "trained networks (install PyTorch's CPU build first)")
        import torch

        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        if len(codes) != len(graphs):
            raise ValueError(f"{len(codes)} classes for {len(graphs)} graphs: give one per graph")
        if len(self.classes_) < 2:
            raise ValueError(f"y has only the class {self.classes_[0]!r}; a classifier needs two")
        self._inputs = VertexInputs(graphs)
        data = GraphTensors(graphs, self._inputs, codes.astype(np.int64))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._net = self._build(graphs, self._inputs.width, len(self.classes_))
            self.n_parameters_ = sum(p.numel() for p in self._net.parameters() if p.requires_grad)
            optimizer = self._optimizer(self._net)
            for epoch in range(self.epochs):
                self._net.train()
                _set_rate(optimizer, self._learning_rate(epoch))
                for batch in self._epoch(data):
                    optimizer.zero_grad()
                    self._loss(self._net, batch).backward()
                    optimizer.step()
                yield

    def _epoch(self, data: GraphTensors) -> Iterator[Minibatch]:
        import torch

        return data.minibatches(self.batch_size, torch.randperm(len(data)))

    def _predicted(self, data: GraphTensors) -> Array:
        import torch

        self._net.eval()
        with torch.no_grad():
            best = [self._scores(self._net, b).argmax(dim=1) for b in data.minibatches(256)]
        predicted: Array = self.classes_[torch.cat(best).numpy()]
        return predicted


def _set_rate(optimizer: torch.optim.Optimizer, rate: float | None) -> None:
    if rate is not None:
        for group in optimizer.param_groups:
            group["lr"] = rate
