"""A drawn reservoir: its weights, and what follows from them alone.

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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats, frozen
from fdgnn.exceptions import GraphError, ModelFileError
from fdgnn.graphs import GraphBatch
from fdgnn.limits import MAX_NUMBER
from fdgnn.records import cached_property
from fdgnn.seeds import Matrix, stream, stream_words
from fdgnn.stability import wiring_radii

_LARGEST_SINGLE = 1e30  # states are not computed in float32 if a weight or a sum is larger


class Connections(NamedTuple):
    """A matrix with C entries per row: unit h reads ``sources[h]`` with ``values[h]``."""

    sources: npt.NDArray[np.int32]  # (H, C), ascending in each row
    values: Floats  # (H, C)
    n_sources: int

    def matrix(self) -> sp.csr_array:
        """Return the connections as a sparse matrix (H, n_sources), which shares the weights."""
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


class Weights(NamedTuple):
    """The weights of all layers, stacked, C entries per row."""

    first_sources: npt.NDArray[np.int32]  # (H, C of the first layer)
    first_values: Array
    in_sources: npt.NDArray[np.int32]  # (L - 1, H, C)
    in_values: Array
    rec_sources: npt.NDArray[np.int32]  # (L, H, C)
    rec_values: Array
    bias: Array  # (L, H)


@dataclass(frozen=True, eq=False)
class DeepReservoir:
    """A stack of layers, and the labels of its first layer; read-only.

    Radii and schedules, which follow from the weights, are computed on first use and cached.

    Parameters
    ----------
    weights : Weights
        In float64.
    n_inputs : int
        U, the columns of the first input matrix.
    vocabulary : tuple, optional
        The vertex labels behind these columns. None if the input is real features or, for graphs
        with neither labels nor features, the constant 1.
    blank_unknown : bool, default=False
        Whether a vertex whose label is not in the vocabulary has no input, only the bias; else
        such a graph is an error.
    """

    weights: Weights
    n_inputs: int
    vocabulary: tuple[Any, ...] | None = None
    blank_unknown: bool = False

    def __post_init__(self) -> None:
        frozen(*self.weights)

    def __reduce__(self) -> tuple[type[DeepReservoir], tuple[Any, ...]]:
        # By the constructor, so that the arrays of a copy are read-only as well.
        return DeepReservoir, (self.weights, self.n_inputs, self.vocabulary, self.blank_unknown)

    # ------------------------------------------------------------------ ways in and out

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, Array],
        *,
        n_layers: int,
        n_units: int,
        n_connections: int,
        n_inputs: int,
        vocabulary: tuple[Any, ...] | None = None,
        blank_unknown: bool = False,
    ) -> DeepReservoir:
        """Return the reservoir of the arrays that `arrays` returned, for instance from a file.

        Raises
        ------
        ModelFileError
            If an array is missing, or has another shape or type than a reservoir of this size
            needs, or entries that are not finite, or sources that do not exist. The kernels
            check nothing of this again.
        """
        L, H = n_layers, n_units
        first, others = min(n_connections, n_inputs), min(n_connections, H)
        above = (L - 1, H, others if L > 1 else 1)
        shapes = [(H, first)] * 2 + [above] * 2 + [(L, H, others)] * 2 + [(L, H)]
        columns = {"first_sources": n_inputs, "in_sources": H, "rec_sources": H}
        if unknown := sorted(set(arrays) - set(Weights._fields)):
            raise ModelFileError(f"it has an array {unknown[0][:40]!r}, which no reservoir has")
        for name, shape in zip(Weights._fields, shapes, strict=True):
            _check_array(arrays.get(name), name, shape, columns.get(name))
        copies = (np.array(arrays[name], order="C") for name in Weights._fields)
        return cls(Weights(*copies), n_inputs, vocabulary, blank_unknown)

    def arrays(self) -> dict[str, Array]:
        """Return the weights by name, for `from_arrays`."""
        return self.weights._asdict()

    # ------------------------------------------------------------------ the weights

    @property
    def n_layers(self) -> int:
        """L."""
        return len(self.weights.bias)

    @property
    def n_units(self) -> int:
        """H, the number of units per layer."""
        return int(self.weights.bias.shape[1])

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The weights layer by layer; they share the stacked arrays."""
        w, H = self.weights, self.n_units
        inputs = [Connections(w.first_sources, w.first_values, self.n_inputs)]
        inputs += [Connections(*each, H) for each in zip(w.in_sources, w.in_values, strict=True)]
        recurrent = [
            Connections(*each, H) for each in zip(w.rec_sources, w.rec_values, strict=True)
        ]
        return tuple(Layer(*each) for each in zip(inputs, recurrent, w.bias, strict=True))

    # ------------------------------------------------------------------ what follows from them

    @cached_property
    def _facts(self) -> tuple[Floats, float, float]:
        """Radii of layers that have only cycles, and the largest weights in W_H and elsewhere."""
        from fdgnn.kernels import weight_facts

        radii, recurrent, others = weight_facts(self.weights)
        return radii, recurrent, others

    @cached_property
    def radii(self) -> Floats:
        """``rho(|W_H|)`` of each layer, (L,)."""
        radii, w = self._facts[0], self.weights
        if np.isnan(radii).any():  # a component is more than a cycle
            radii = wiring_radii(w.rec_sources, np.abs(w.rec_values))
        return frozen(radii)[0]

    @property
    def fits_single(self) -> bool:
        """Whether no weight is too large for float32.

        W_H is scaled by 1 / k, and k is a sum of arc weights, which can be next to nothing.
        """
        return max(self._facts[1:]) < _LARGEST_SINGLE

    @property
    def largest_recurrent(self) -> float:
        """The largest absolute weight between units of a layer."""
        return self._facts[1]

    @property
    def largest_single_degree(self) -> float:
        """The largest degree of a graph up to which its states can be computed in float32.

        With it, sums over neighbors and their products with W_H stay well inside of float32.
        """
        n_connections = self.weights.rec_values.shape[2]
        return float(_LARGEST_SINGLE / max(1.0, n_connections * self.largest_recurrent))

    def program(self, wanted: tuple[int, ...]) -> Any:
        """Return what kernels run if the states of the layers `wanted` (ascending) count.

        That is the weights in both precisions, and the order of evaluation.
        """
        if wanted not in self._programs:
            from fdgnn.kernels import bind_program

            # The place of each layer among those that are wanted, or -1.
            slots = np.full(self.n_layers, -1, dtype=np.int64)
            slots[list(wanted)] = np.arange(len(wanted))
            self._programs[wanted] = bind_program(self.weights, slots, self.radii, self.fits_single)
        return self._programs[wanted]

    @cached_property
    def _programs(self) -> dict[tuple[int, ...], Any]:
        return {}


def _check_array(
    array: Array | None, name: str, shape: tuple[int, ...], n_columns: int | None
) -> None:
    """Check one array of a reservoir; `n_columns` is given for sources, None for weights."""
    dtype = np.float64 if n_columns is None else np.int32
    if array is None or array.shape != shape or array.dtype != dtype:
        found = "none" if array is None else f"{array.dtype} of shape {array.shape}"
        wanted = f"{dtype.__name__} of shape {shape}"
        raise ModelFileError(f"its array {name} must be {wanted}; found {found}")
    if n_columns is None:
        if not np.isfinite(array).all():
            raise ModelFileError(f"its array {name} has entries that are not finite")
    elif array.size and (
        array.min() < 0 or array.max() >= n_columns or (np.diff(array, axis=-1) <= 0).any()
    ):
        raise ModelFileError(
            f"its array {name} has sources that do not ascend from 0 to {n_columns - 1} at most"
        )


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


def n_inputs(graphs: GraphBatch) -> int:
    """Count the inputs per vertex: different labels, features, or 1."""
    if graphs.label_values is not None:
        return len(graphs.label_values)
    return 1 if graphs.features is None else graphs.features.shape[1]


def draw_reservoir(
    config: ReservoirConfig,
    graphs: GraphBatch,
    degree: float,
    seed: np.random.SeedSequence,
    blank_unknown: bool = False,
) -> DeepReservoir:
    """Draw a reservoir for the kind of vertices that `graphs` have.

    Layer i depends on the seed and its own number only, so a shallower reservoir is the
    beginning of a deeper one.
    """
    vocabulary = None if graphs.label_values is None else tuple(graphs.label_values.tolist())
    n = n_inputs(graphs)
    draw = _draw_cycles if config.n_connections == 1 else _draw_wiring
    # Graphs without arcs have k = 0. There W_H multiplies nothing, so any scale will do.
    weights = draw(config, n, seed, degree or 1.0)
    reservoir = DeepReservoir(weights, n, vocabulary, blank_unknown)
    _check_weights(reservoir.largest_recurrent, degree)
    return reservoir


def _check_weights(largest: float, degree: float) -> None:
    """Reject weights that cannot be computed with: a k next to zero makes them very large."""
    if MAX_NUMBER.is_below(largest):
        raise GraphError(
            f"k, the reservoir's degree, is {degree:g}, so that its recurrent weights would be "
            f"{largest:g}; {MAX_NUMBER.in_words}; rescale the weights of edges, or give `degree` "
            "as a larger number"
        )


def _draw_cycles(
    config: ReservoirConfig, n_inputs: int, seed: np.random.SeedSequence, k: float
) -> Weights:
    """Draw weights of units with one connection from the input and one from the layer."""
    from fdgnn.kernels import draw_layers

    drawn = draw_layers(
        stream_words(seed),
        config.n_layers,
        config.n_units,
        n_inputs,
        config.effective_spectral_radius,
        k,
        config.input_scaling,
        config.inter_layer_scaling,
        math.nan if config.bias_scaling is None else config.bias_scaling,
    )
    sources, values, rec_sources, rec_values = (array[:, :, None] for array in drawn[:4])
    return Weights(
        sources[0], values[0], sources[1:], values[1:], rec_sources, rec_values, drawn[4]
    )


def _draw_wiring(
    config: ReservoirConfig, n_inputs: int, seed: np.random.SeedSequence, k: float
) -> Weights:
    """Draw the weights for any number of connections."""
    L, H, C = config.n_layers, config.n_units, config.n_connections
    sizes = [n_inputs] + [H] * (L - 1)
    inputs = [_connect(stream(seed, i, Matrix.INPUT), H, n, C) for i, n in enumerate(sizes)]
    recurrent = [_connect(stream(seed, i, Matrix.RECURRENT), H, H, C) for i in range(L)]
    bias = [stream(seed, i, Matrix.BIAS).uniform(-1, 1, size=H) for i in range(L)]
    drawn = Weights(*inputs[0], *_stacked(inputs[1:], H), *_stacked(recurrent, H), np.array(bias))
    return _scaled(drawn, config, k)


def _stacked(layers: list[tuple[Array, Floats]], H: int) -> tuple[Array, Floats]:
    """Sources and weights (n, H, C) of several layers."""
    if not layers:
        return np.empty((0, H, 1), dtype=np.int32), np.empty((0, H, 1))
    return np.array([sources for sources, _ in layers]), np.array([values for _, values in layers])


def _scaled(drawn: Weights, config: ReservoirConfig, k: float) -> Weights:
    """W_I and bias in [-omega, omega], W_H with rho(W_H) k = rho, of weights drawn in [-1, 1]."""
    omega = np.full(config.n_layers, config.inter_layer_scaling)
    omega[0] = config.input_scaling
    radii = wiring_radii(drawn.rec_sources, drawn.rec_values)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # see `_check_weights`
        factors = config.effective_spectral_radius / (radii * k)
        rec_values = drawn.rec_values * factors[:, None, None]
    return drawn._replace(
        first_values=drawn.first_values * omega[0],
        in_values=drawn.in_values * config.inter_layer_scaling,
        rec_values=rec_values,
        bias=drawn.bias * (omega[:, None] if config.bias_scaling is None else config.bias_scaling),
    )


def _connect(rng: np.random.Generator, rows: int, columns: int, C: int) -> tuple[Array, Floats]:
    """Draw C sources among the columns for each row, and weights uniform in [-1, 1]."""
    C = min(C, columns)
    if C == 1:
        sources = rng.integers(columns, size=(rows, 1))
    else:
        sources = np.sort(np.argsort(rng.random((rows, columns)), axis=1)[:, :C], axis=1)
    return sources.astype(np.int32), rng.uniform(-1, 1, size=(rows, C))
