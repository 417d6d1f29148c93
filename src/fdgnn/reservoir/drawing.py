"""Drawing the weights of a reservoir."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch
from fdgnn.limits import MAX_NUMBER
from fdgnn.reservoir.weights import DeepReservoir, Weights
from fdgnn.seeds import Matrix, stream, stream_words
from fdgnn.stability import wiring_radii


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


def average_degree(graphs: GraphBatch) -> float:
    """The paper's k: the mean over graphs of the largest neighborhood."""
    return graphs.average_degree


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
    blank_unseen: bool = False,
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
    reservoir = DeepReservoir(weights, n, vocabulary, blank_unseen)
    _check_weights(reservoir.largest_recurrent, degree)
    return reservoir


def _check_weights(largest: float, degree: float) -> None:
    """Refuse weights that cannot be computed with: a k next to zero makes them very large."""
    if MAX_NUMBER.is_below(largest):
        raise GraphError(
            f"k, the reservoir's degree, is {degree:g}, so that its recurrent weights would be "
            f"{largest:g}; {MAX_NUMBER.in_words}; rescale the arcs' weights, or give `degree` "
            "as a larger number"
        )


def _draw_cycles(
    config: ReservoirConfig, n_inputs: int, seed: np.random.SeedSequence, k: float
) -> Weights:
    """Weights of neurons with one connection each way."""
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
    """The same for any number of connections."""
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
