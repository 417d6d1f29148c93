"""The untrained part: drawing the layers' weights, and running graphs to their fixed points.

========================  =================================  ======================
paper                     here                               shape
========================  =================================  ======================
L, H, C                   n_layers, n_units, n_connections
rho = rho(W_H) k          effective_spectral_radius          (leak-free; times k)
omega(1), omega           input_scaling, inter_layer_scaling
k                         degree
epsilon, nu               tol, max_iter
W_I                       layers[i].inputs, .input_weights   (H, C), (H, U)
W_H                       layers[i].recurrent, .recurrent_weights  (H, C), (H, H)
bias                      layers[i].bias                     (H,)
X                         states, rows are vertices          (n_vertices, H)
sum_v x(v)                pooled                             (n_graphs, H)
========================  =================================  ======================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.reservoir import engine
from fdgnn.seeds import Matrix, stream
from fdgnn.stability import wiring_radius

Solver = Literal["auto", "paper"]


@dataclass(frozen=True)
class ReservoirConfig:
    """Hyper-parameters of the embedding; see `fdgnn.GraphReservoir` for their meaning."""

    n_layers: int = 3
    n_units: int = 50
    n_connections: int = 1
    effective_spectral_radius: float = 0.9
    input_scaling: float = 1.0
    inter_layer_scaling: float = 1.0
    bias_scaling: float | None = None


class Connections(NamedTuple):
    """A matrix with C entries in each row: neuron h reads ``sources[h]`` with ``values[h]``."""

    sources: npt.NDArray[np.int32]  # (H, C), ascending in each row
    values: Floats  # (H, C)
    n_sources: int

    def scaled(self, factor: float) -> Connections:
        """Give the same connections with weights multiplied by a factor."""
        return self._replace(values=self.values * factor)

    def matrix(self) -> sp.csr_array:
        """The same as a sparse matrix (H, n_sources), which shares the weights."""
        H, C = self.sources.shape
        indptr = np.arange(0, H * C + 1, C)
        return sp.csr_array(
            (self.values.ravel(), self.sources.ravel(), indptr), (H, self.n_sources)
        )


class Layer(NamedTuple):
    """The fixed weights of one layer."""

    inputs: Connections
    recurrent: Connections
    bias: Floats

    @property
    def input_weights(self) -> sp.csr_array:
        """W_I (H, U)."""
        return self.inputs.matrix()

    @property
    def recurrent_weights(self) -> sp.csr_array:
        """W_H (H, H)."""
        return self.recurrent.matrix()


@dataclass(frozen=True)
class DeepReservoir:
    """A stack of layers, and the labels its first layer knows.

    `vocabulary` is the tuple of vertex labels behind the columns of the first input matrix, or
    None where the input is real features or, for graphs with neither, the constant 1.
    """

    layers: tuple[Layer, ...]
    vocabulary: tuple[Any, ...] | None = None

    @property
    def n_units(self) -> int:
        """H, neurons a layer."""
        return len(self.layers[0].bias)


class Embedding(NamedTuple):
    """What running a batch through a reservoir gives.

    ``pooled[i, g]`` is the sum of layer i's states over the vertices of graph g. `n_iter` and
    `residual` tell how each layer ended on each graph: for the paper's iteration its steps, and
    the distance of the last two states; for a certified graph under ``solver="auto"`` the steps
    of its slowest cycle of neurons, and a bound of that cycle's distance to the fixed point.
    `certified` tells which have a proven unique fixed point (``rho(|W_H|) rho(|A|) < 1``).
    """

    pooled: Floats  # (n_layers, n_graphs, H), layers as asked for
    n_iter: npt.NDArray[np.int32]  # (n_layers, n_graphs), all layers
    residual: Floats  # (n_layers, n_graphs), all layers
    states: Floats | None  # (n_vertices, n_layers, H), layers as asked for
    certified: npt.NDArray[np.bool_]  # (n_layers, n_graphs), all layers


# ---------------------------------------------------------------------- drawing the weights


def average_degree(graphs: GraphBatch) -> float:
    """The paper's k: the mean over graphs of the largest neighborhood."""
    return float(graphs.max_degrees.mean())


def draw_reservoir(
    config: ReservoirConfig,
    graphs: GraphBatch,
    degree: float,
    seed: np.random.SeedSequence,
) -> DeepReservoir:
    """Draw a reservoir for the kind of vertices that `graphs` have.

    Layer i depends on the seed and its own number only, so a deeper reservoir has a shallower
    one as its prefix.
    """
    vocabulary = None if graphs.label_values is None else tuple(graphs.label_values.tolist())
    sizes = [n_inputs(graphs)] + [config.n_units] * (config.n_layers - 1)
    layers = [_draw_layer(config, i, size, degree, seed) for i, size in enumerate(sizes)]
    return DeepReservoir(tuple(layers), vocabulary)


def n_inputs(graphs: GraphBatch) -> int:
    """U of the first layer: labels (one-hot), features, or the constant 1."""
    if graphs.label_values is not None:
        return len(graphs.label_values)
    return 1 if graphs.features is None else graphs.features.shape[1]


def draw_unscaled(
    config: ReservoirConfig, i: int, n_sources: int, seed: np.random.SeedSequence
) -> Layer:
    """Draw layer i, all entries uniform in [-1, 1]; no scaling is applied yet."""
    H, C = config.n_units, config.n_connections
    return Layer(
        _connect(stream(seed, i, Matrix.INPUT), H, n_sources, C),
        _connect(stream(seed, i, Matrix.RECURRENT), H, H, C),
        stream(seed, i, Matrix.BIAS).uniform(-1, 1, size=H),
    )


def _draw_layer(
    config: ReservoirConfig, i: int, n_sources: int, degree: float, seed: np.random.SeedSequence
) -> Layer:
    """W_I and the bias uniform in [-omega, omega]; W_H uniform, scaled to rho(W_H) k = rho."""
    scaling = config.input_scaling if i == 0 else config.inter_layer_scaling
    bias_scaling = scaling if config.bias_scaling is None else config.bias_scaling
    W_I, W_H, bias = draw_unscaled(config, i, n_sources, seed)
    # A graph set without arcs has k = 0: there W_H multiplies nothing, so any scale will do.
    factor = config.effective_spectral_radius / (wiring_radius(*W_H[:2]) * (degree or 1.0))
    return Layer(W_I.scaled(scaling), W_H.scaled(factor), bias_scaling * bias)


def _connect(rng: np.random.Generator, rows: int, columns: int, C: int) -> Connections:
    """Draw C sources among the columns for each row, and weights uniform in [-1, 1]."""
    C = min(C, columns)
    if C == 1:
        sources = rng.integers(columns, size=(rows, 1))
    else:
        sources = np.sort(np.argsort(rng.random((rows, columns)), axis=1)[:, :C], axis=1)
    values = rng.uniform(-1, 1, size=(rows, C))
    return Connections(sources.astype(np.int32), values, columns)


# ---------------------------------------------------------------------- running it


def embed(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    *,
    tol: float = 1e-3,
    max_iter: int = 50,
    solver: Solver = "auto",
    layers: Sequence[int] | Literal["all", "last"] = "all",
    quotient: bool = True,
    n_jobs: int | None = None,
    keep_states: bool = False,
) -> Embedding:
    """Run every graph through all layers, each to its fixed point, and sum over vertices.

    Per layer and graph, from X = 0 (eq. 2, rows are vertices)::

        repeat  X' = tanh(U W_I^T + bias + A X W_H^T)
        until   ||X' - X||_F < tol, or max_iter steps

    A graph's result depends on that graph alone, not on its batch, nor on `n_jobs`.

    Parameters
    ----------
    graphs : GraphBatch
    reservoir : DeepReservoir
    tol, max_iter : float, int
        The paper's epsilon and nu.
    solver : {"auto", "paper"}, default="auto"
        "paper" runs the loop above, literally, in float64. "auto" finds the fixed point of a
        graph that is certified to have just one by a shorter way (`fdgnn.reservoir.engine`), in
        float32 or, where that cannot resolve it, in float64, and within `tol` of it; the other
        graphs get the loop's result.
    layers : "all", "last" or sequence of int, default="all"
        Whose pooled states (and states) are wanted; asking for fewer layers is faster.
    quotient : bool, default=True
        Whether "auto" computes vertices that look alike, and graphs that do, only once.
    n_jobs : int, optional
    keep_states : bool, default=False
    """
    L = len(reservoir.layers)
    chosen = {"all": range(L), "last": [L - 1]}[layers] if isinstance(layers, str) else layers
    wanted = sorted({range(L)[i] for i in chosen})
    place = [wanted.index(range(L)[i]) for i in chosen]
    bounds = contractions(reservoir, graphs)
    if solver == "paper":
        result = _iterate(graphs, reservoir, tol, max_iter, wanted, n_jobs, keep_states)
    else:
        result = engine.solve(
            graphs,
            flatten(reservoir),
            None if reservoir.vocabulary is None else graphs.encode_labels(reservoir.vocabulary),
            bounds,
            tol=tol,
            max_iter=max_iter,
            wanted=wanted,
            quotient=quotient,
            n_jobs=n_jobs,
            keep_states=keep_states,
        )
    states = result.states[:, place] if keep_states else None
    return Embedding(result.pooled[place], result.n_iter, result.residual, states, bounds < 1)


def contractions(reservoir: DeepReservoir, graphs: GraphBatch) -> Floats:
    """``rho(|W_H|) rho(|A|)``, (n_layers, n_graphs); below 1 a graph is certified."""
    wirings = (layer.recurrent for layer in reservoir.layers)
    radii = np.array([wiring_radius(W_H.sources, np.abs(W_H.values)) for W_H in wirings])
    return radii[:, None] * graphs.spectral_radii


def flatten(reservoir: DeepReservoir) -> engine.Weights:
    """Lay a reservoir's weights out for the kernels."""
    layers, H = reservoir.layers, reservoir.n_units
    return engine.Weights(
        *layers[0].inputs[:2],
        *_stacked([layer.inputs for layer in layers[1:]], H),
        *_stacked([layer.recurrent for layer in layers], H),
        np.array([layer.bias for layer in layers]),
    )


def _stacked(connections: Sequence[Connections], H: int) -> tuple[Array, Floats]:
    """Connections of several layers as (n, H, C) sources and values."""
    if not connections:
        return np.empty((0, H, 1), dtype=np.int32), np.empty((0, H, 1))
    return np.array([c.sources for c in connections]), np.array([c.values for c in connections])


def _iterate(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    tol: float,
    max_iter: int,
    wanted: Sequence[int],
    n_jobs: int | None,
    keep_states: bool,
) -> engine.Outputs:
    """Run the paper's loop, literally."""
    from fdgnn.kernels.paper_loop import iterate_layers

    L, n, H = len(reservoir.layers), len(graphs), reservoir.n_units
    out = engine.Outputs.zeros(L, L, n, H, graphs.n_vertices if keep_states else 0)
    weights = flatten(reservoir)
    arguments = (
        graphs.vertex_offsets,
        graphs.indptr,
        graphs.neighbors,
        np.empty(0) if graphs.weights is None else graphs.weights,
        *first_drive(graphs, reservoir),
        *weights[2:],
        tol,
        max_iter,
        *out,
    )
    work = graphs.vertex_offsets + graphs.indptr[graphs.vertex_offsets]
    engine.over_chunks(iterate_layers, work, n_jobs, arguments)
    return out._replace(pooled=out.pooled[wanted], states=out.states[:, wanted])


def first_drive(
    graphs: GraphBatch, reservoir: DeepReservoir
) -> tuple[Floats, npt.NDArray[np.int32]]:
    """The first layer's ``U W_I^T + bias``, as distinct rows and each vertex's row.

    One-hot labels never become a dense matrix: a label's row is a column of W_I.
    """
    W_I, bias = reservoir.layers[0].input_weights, reservoir.layers[0].bias
    if reservoir.vocabulary is not None:
        return W_I.T.toarray() + bias, graphs.encode_labels(reservoir.vocabulary)
    if graphs.features is not None:
        rows = np.asarray(graphs.features @ W_I.T) + bias
        return rows, np.arange(graphs.n_vertices, dtype=np.int32)
    return W_I.T.toarray() + bias, np.zeros(graphs.n_vertices, dtype=np.int32)
