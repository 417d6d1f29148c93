"""Drawing the weights of a reservoir."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdgnn.arrays import largest_of
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch
from fdgnn.limits import MAX_NUMBER
from fdgnn.reservoir.weights import Connections, DeepReservoir, Layer
from fdgnn.seeds import Matrix, stream
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
    return float(graphs.max_degrees.mean())


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
) -> DeepReservoir:
    """Draw a reservoir for the kind of vertices that `graphs` have.

    Layer i depends on the seed and its own number only, so a shallower reservoir is the
    beginning of a deeper one.
    """
    vocabulary = None if graphs.label_values is None else tuple(graphs.label_values.tolist())
    sizes = [n_inputs(graphs)] + [config.n_units] * (config.n_layers - 1)
    drawn = [_draw_layer(config, i, size, seed) for i, size in enumerate(sizes)]
    layers = _scaled(drawn, config.effective_spectral_radius, degree)
    _check_weights(layers, degree)
    return DeepReservoir.from_layers(layers, vocabulary)


def _check_weights(layers: list[Layer], degree: float) -> None:
    """Refuse weights that cannot be computed with: a k next to zero makes them very large."""
    largest = max(largest_of(layer.recurrent.values) for layer in layers)
    if MAX_NUMBER.is_below(largest):
        raise GraphError(
            f"k, the reservoir's degree, is {degree:g}, so that its recurrent weights would be "
            f"{largest:g}; {MAX_NUMBER.in_words}; rescale the arcs' weights, or give `degree` "
            "as a larger number"
        )


def _draw_layer(
    config: ReservoirConfig, i: int, n_sources: int, seed: np.random.SeedSequence
) -> Layer:
    """W_I and the bias uniform in [-omega, omega]; W_H uniform in [-1, 1], not scaled yet."""
    scaling = config.input_scaling if i == 0 else config.inter_layer_scaling
    bias_scaling = scaling if config.bias_scaling is None else config.bias_scaling
    H, C = config.n_units, config.n_connections
    W_I = _connect(stream(seed, i, Matrix.INPUT), H, n_sources, C)
    W_H = _connect(stream(seed, i, Matrix.RECURRENT), H, H, C)
    bias = stream(seed, i, Matrix.BIAS).uniform(-1, 1, size=H)
    return Layer(W_I.scaled(scaling), W_H, bias_scaling * bias)


def _scaled(layers: list[Layer], rho: float, degree: float) -> list[Layer]:
    """Scale W_H of each layer to rho(W_H) k = rho."""
    recurrent = [layer.recurrent for layer in layers]
    radii = wiring_radii(*(np.array(each) for each in list(zip(*recurrent, strict=True))[:2]))
    # Graphs without arcs have k = 0. There W_H multiplies nothing, so any scale will do.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # see `_check_weights`
        factors = (rho / (radii * (degree or 1.0))).tolist()
    pairs = zip(layers, factors, strict=True)
    return [layer._replace(recurrent=layer.recurrent.scaled(f)) for layer, f in pairs]


def _connect(rng: np.random.Generator, rows: int, columns: int, C: int) -> Connections:
    """Draw C sources among the columns for each row, and weights uniform in [-1, 1]."""
    C = min(C, columns)
    if C == 1:
        sources = rng.integers(columns, size=(rows, 1))
    else:
        sources = np.sort(np.argsort(rng.random((rows, columns)), axis=1)[:, :C], axis=1)
    values = rng.uniform(-1, 1, size=(rows, C))
    return Connections(sources.astype(np.int32), values, columns)
