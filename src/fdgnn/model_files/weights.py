"""The weights of a model as arrays and back: drawn again where that is exact, else stored.

A weight is a random draw times a factor. Draws come again from the seed, bit by bit, as long as
NumPy keeps its streams. Factors would not: they come from logarithms, eigenvalues and singular
values, whose last bits differ between machines. So a file keeps the factors, three a layer and
the projection's norm, and a checksum of the weights to tell whether the streams are the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fdgnn.estimators import GraphReservoir, Network
from fdgnn.exceptions import ModelFileError, ModelVersionError
from fdgnn.graphs import Array, Floats
from fdgnn.readout.coding import draw_unscaled_projection
from fdgnn.reservoir import Connections, DeepReservoir, Layer, ReservoirConfig
from fdgnn.reservoir.network import draw_unscaled
from fdgnn.seeds import child_seed

MOST_DRAWS = 2**24  # random numbers that a file may ask for; larger models are stored


class Drawn(NamedTuple):
    """What is random in one network; a bare reservoir has an empty projection."""

    layers: tuple[Layer, ...]
    projection: Floats


# ---------------------------------------------------------------------- from a model


def weights_of(model: Any, store: bool = False) -> tuple[bool, str, dict[str, Array]]:
    """Whether the draws are left out, the checksum of the weights, and the arrays to keep."""
    networks = _networks(model)
    scales = None if store else _all_scales(model, networks)
    tensors: dict[str, Array] = {}
    for i, network in enumerate(networks):
        tensors |= _stored(i, network) if scales is None else {f"{i}.scales": scales[i]}
    for i, network in enumerate(getattr(model, "networks_", ())):
        tensors |= {f"{i}.coef": network.coef, f"{i}.intercept": network.intercept}
    return scales is not None, _checksum(networks), tensors


def _networks(model: Any) -> list[Drawn]:
    if isinstance(model, GraphReservoir):
        return [Drawn(model.reservoir_.layers, np.empty((0, 0)))]
    return [Drawn(network.reservoir.layers, network.projection) for network in model.networks_]


def _stored(i: int, network: Drawn) -> dict[str, Array]:
    tensors: dict[str, Array] = {}
    if network.projection.size:
        tensors[f"{i}.projection"] = network.projection
    for j, layer in enumerate(network.layers):
        tensors[f"{i}.{j}.bias"] = layer.bias
        for name, W in (("input", layer.inputs), ("recurrent", layer.recurrent)):
            tensors[f"{i}.{j}.{name}_sources"] = W.sources
            tensors[f"{i}.{j}.{name}_values"] = W.values
    return tensors


def _checksum(networks: list[Drawn]) -> str:
    digest = sha256()
    for layers, projection in networks:
        for W_I, W_H, bias in layers:
            for values in (*W_I[:2], *W_H[:2], bias):
                digest.update(values.astype("<i4" if values.dtype.kind == "i" else "<f8").tobytes())
        digest.update(projection.astype("<f8").tobytes())
    return digest.hexdigest()


# ---------------------------------------------------------------------- draws and factors


def _draw_again(model: Any, i: int) -> Drawn:
    """Network i as it was before its draws were scaled."""
    L, H = model.n_layers, model.n_units
    config = ReservoirConfig(n_layers=L, n_units=H, n_connections=model.n_connections)
    bare = isinstance(model, GraphReservoir)
    seed = model.seed_ if bare else child_seed(model.seed_, i)
    sizes = [model.n_features_in_] + [H] * (L - 1)
    return Drawn(
        tuple(draw_unscaled(config, j, size, seed) for j, size in enumerate(sizes)),
        np.empty((0, 0)) if bare else draw_unscaled_projection(seed, H, _n_projections(model)),
    )


def _n_projections(model: Any) -> int:
    return int(model.n_projections or 2 * model.n_units)


def _n_draws(model: Any) -> int:
    """Of how many random numbers the model is made; the places of C > 1 entries take many."""
    H, L = int(model.n_units), int(model.n_layers)

    def matrix(columns: int) -> int:
        C = min(int(model.n_connections), columns)
        return 2 * H if C == 1 else H * (C + columns)

    reservoir = matrix(model.n_features_in_) + (2 * L - 1) * matrix(H) + L * H
    if isinstance(model, GraphReservoir):
        return reservoir
    return int(model.n_networks * (reservoir + _n_projections(model) * H))


def _all_scales(model: Any, networks: list[Drawn]) -> list[Floats] | None:
    """The factors of each network, or None where drawing again would not be exact."""
    if _n_draws(model) > MOST_DRAWS:
        return None
    scales = [_scales(_draw_again(model, i), network) for i, network in enumerate(networks)]
    return None if any(np.isnan(s).any() for s in scales) else scales


def _scales(drawn: Drawn, network: Drawn) -> Floats:
    """Factors (3 L,) and the projection's norm, NaN where there is none."""
    pairs = [
        pair
        for before, after in zip(drawn.layers, network.layers, strict=False)
        for pair in zip(before, after, strict=True)
    ]
    factors = [_factor(*_entries(*pair), operator.mul) for pair in pairs]
    if network.projection.size:
        factors.append(_factor(drawn.projection, network.projection, operator.truediv))
    return np.array(factors)


def _entries(before: Any, after: Any) -> tuple[Floats, Floats]:
    """The numbers of two vectors, or of two layers' connections if they are at the same places."""
    if isinstance(before, np.ndarray):
        return before, after
    same = before.n_sources == after.n_sources and np.array_equal(before.sources, after.sources)
    return before.values, after.values if same else np.empty(0)


def _factor(before: Floats, after: Floats, apply: Callable[[Any, Any], Any]) -> float:
    """Find the number that turns `before` into `after` bit by bit; NaN if there is none."""
    if before.shape != after.shape or not before.all():
        return np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.median(after / before if apply is operator.mul else before / after)
    for steps in (0, 1, -1, 2, -2, 3, -3):  # a ratio is off by some roundings at most
        number = middle + steps * np.spacing(middle)
        if apply(before, number).tobytes() == after.tobytes():
            return float(number)
    return np.nan


# ---------------------------------------------------------------------- to a model


def restore_weights(
    model: Any, settings: Mapping[str, Any], tensors: Mapping[str, Array], numpy: str
) -> None:
    """Give a model its weights, each array checked for its shape, its type and its values."""
    if settings["redrawn"] and _n_draws(model) > MOST_DRAWS:
        _refuse(f"its weights would take more than {MOST_DRAWS} random numbers")
    take = _Taker(tensors)
    networks, readouts = [], []
    for i in range(1 if isinstance(model, GraphReservoir) else model.n_networks):
        if not isinstance(model, GraphReservoir):
            q = settings["n_outputs"]
            coef = take(f"{i}.coef", q, _n_projections(model))
            readouts.append((coef, take(f"{i}.intercept", q)))
        networks.append((_scaled if settings["redrawn"] else _taken)(model, i, take))
    take.check_nothing_left()
    if not all(_is_finite(network) for network in networks):
        _refuse("it has weights that are not finite")
    if _checksum(networks) != settings["checksum"]:
        _refuse_draws(settings["redrawn"], numpy)
    vocabulary = settings["vocabulary"]
    words = None if vocabulary is None else tuple(vocabulary)
    if isinstance(model, GraphReservoir):
        model.reservoir_ = DeepReservoir(networks[0].layers, words)
        return
    model.networks_ = tuple(
        Network(DeepReservoir(layers, words), projection, *readout)
        for (layers, projection), readout in zip(networks, readouts, strict=True)
    )


def _scaled(model: Any, i: int, take: _Taker) -> Drawn:
    bare, L = isinstance(model, GraphReservoir), model.n_layers
    scales = take(f"{i}.scales", 3 * L + (not bare))
    drawn = _draw_again(model, i)
    layers = []
    for (W_I, W_H, bias), (a, b, c) in zip(
        drawn.layers, scales[: 3 * L].reshape(L, 3), strict=True
    ):
        layers.append(Layer(W_I.scaled(a), W_H.scaled(b), bias * c))
    with np.errstate(all="ignore"):  # a norm of zero is found in the next step
        return Drawn(tuple(layers), drawn.projection if bare else drawn.projection / scales[-1])


def _taken(model: Any, i: int, take: _Taker) -> Drawn:
    H = model.n_units

    def connections(name: str, columns: int) -> Connections:
        C = min(model.n_connections, columns)
        sources = take(f"{i}.{name}_sources", H, C, dtype=np.int32)
        values = take(f"{i}.{name}_values", H, C)
        # The kernels trust these: a place past the end would read memory that is not theirs.
        if sources.min() < 0 or sources.max() >= columns or (np.diff(sources) <= 0).any():
            _refuse(f"{i}.{name} has weights at places that are not there")
        return Connections(sources, values, columns)

    layers = []
    for j in range(model.n_layers):
        W_I = connections(f"{j}.input", H if j else model.n_features_in_)
        W_H = connections(f"{j}.recurrent", H)
        layers.append(Layer(W_I, W_H, take(f"{i}.{j}.bias", H)))
    bare = isinstance(model, GraphReservoir)
    projection = np.empty((0, 0)) if bare else take(f"{i}.projection", _n_projections(model), H)
    return Drawn(tuple(layers), projection)


def _is_finite(network: Drawn) -> bool:
    arrays = [a for W_I, W_H, bias in network.layers for a in (W_I.values, W_H.values, bias)]
    return all(bool(np.isfinite(array).all()) for array in [*arrays, network.projection])


class _Taker:
    """Hands out a file's arrays, and sees that each is as expected and that none is left."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self._left = dict(tensors)

    def __call__(self, name: str, *shape: int, dtype: Any = np.float64) -> Array:
        array = self._left.pop(name, None)
        if array is None or array.shape != shape or array.dtype != dtype:
            found = "none" if array is None else f"{array.dtype} {array.shape}"
            _refuse(f"it should have an array {name} of shape {shape}, and has {found}")
        if not np.isfinite(array).all():
            _refuse(f"its array {name} has entries that are not finite")
        return np.array(array)

    def check_nothing_left(self) -> None:
        if self._left:
            _refuse(f"it has an array {min(self._left)[:40]!r}, which such a model has not")


def _refuse_draws(redrawn: bool, numpy: str) -> NoReturn:
    if not redrawn or numpy == np.__version__:
        _refuse("its weights do not fit their checksum")
    raise ModelVersionError(
        f"its seed gives other weights than it was saved with under NumPy {numpy[:20]!r}: the "
        f"random streams of NumPy {np.__version__} differ; load it with that NumPy, and save it "
        "with store_weights=True"
    )


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)
