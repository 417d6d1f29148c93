"""The networks of a model as arrays, and back from a description and arrays."""

from __future__ import annotations

from typing import Any, NoReturn

from fdgnn.arrays import Array, grouped, prefixed
from fdgnn.encoders import Encoder
from fdgnn.encoders.descriptors import DescriptorBlock
from fdgnn.encoders.records import restore_encoder, take_expansion
from fdgnn.estimators import AUTO
from fdgnn.exceptions import ModelFileError
from fdgnn.model_files.description import ModelRecord, NetworkRecord
from fdgnn.model_files.readouts import n_columns, readout_arrays, restored_readout
from fdgnn.model_files.trust import trust_arrays
from fdgnn.networks import Network
from fdgnn.readout.gaussian import GaussianReadout
from fdgnn.seeds import child_seed


def model_arrays(model: Any) -> dict[str, Array]:
    """Give all arrays of a model; a name begins with the number of the network."""
    if isinstance(model, Encoder):
        return prefixed("encoder", model.arrays())
    arrays: dict[str, Array] = {}
    for i, network in enumerate(model.networks_):
        parts = prefixed("encoder", network.encoder.arrays())
        if network.expansion is not None:
            parts["projection"] = network.expansion.projection_
        arrays |= prefixed(str(i), parts | readout_arrays(network.readout))
    return arrays | trust_arrays(model)


def restored_networks(
    record: ModelRecord, model: Any, groups: dict[str, dict[str, Array]]
) -> tuple[Network, ...]:
    """Take the arrays of all networks, by number, and check that everything fits together."""
    n = len(record.networks) or model.n_networks
    if n > len(groups):
        _refuse(f"it has no arrays for {n} networks")
    if model.encoder != AUTO and n != model.n_networks:
        _refuse(f"it describes {n} networks, but its model has {model.n_networks}")
    described = record.networks or [NetworkRecord()] * n
    return tuple(
        _restored(record, each, model, groups.pop(str(i), {})) for i, each in enumerate(described)
    )


def seed_networks(record: ModelRecord, model: Any) -> None:
    """Give each network's encoder its child of the model's seed."""
    streams = [network.stream for network in record.networks]
    for i, network in enumerate(model.networks_):
        own = streams[i] if streams else None
        network.encoder.take_seed(child_seed(model.seed_, i if own is None else own))


def _restored(
    record: ModelRecord, described: NetworkRecord, model: Any, arrays: dict[str, Array]
) -> Network:
    """Build one network, from the encoder at its beginning to the readout at its end."""
    own = {name: array for name, array in arrays.items() if not name.startswith("encoder.")}
    inner = grouped({name: arrays[name] for name in arrays.keys() - own.keys()})
    encoder_record = described.encoder or record.encoder
    encoder = restore_encoder(encoder_record, inner.get("encoder", {}), record.graph_kind)
    encoder.reading_ = record.reading
    expansion = take_expansion(own, encoder, model.n_projections)
    descriptors = _descriptors(record, described)
    seen = encoder.n_features_out if expansion is None else len(expansion.projection_)
    beside = 0 if descriptors is None else descriptors.n_features
    P = described.n_features if seen is None else seen + beside
    readout = restored_readout(described.readout, own, P, record.n_outputs)
    if described.n_features not in (None, n_columns(readout)):
        _refuse(f"a network says that it has {described.n_features} features, but it has others")
    if own:
        _refuse(f"it has an array {min(own)[:40]!r}, which no network has")
    alpha = tuple(described.alpha) if isinstance(described.alpha, list) else described.alpha
    network = Network(encoder, expansion, readout, alpha, described.name, descriptors)
    _check_readout(network, model)
    return network


def _descriptors(record: ModelRecord, described: NetworkRecord) -> DescriptorBlock | None:
    """Build the block of descriptors, if the model has some."""
    scale, names = described.descriptor_scale, {column.name for column in record.descriptors}
    if (scale is None) != (not names) or len(names) < len(record.descriptors):
        _refuse("its networks and its descriptors do not fit together")
    return None if scale is None else DescriptorBlock(tuple(record.descriptors), scale)


def _check_readout(network: Network, model: Any) -> None:
    """Check that the readout is one that the model's parameters could have given."""
    if model.encoder == AUTO:
        return
    if isinstance(network.readout, GaussianReadout):
        fits = model.recipe(len(network.readout.dual)).name == "gaussian"
    else:
        fits = model.readout != "gaussian"
    if not fits:
        _refuse("its readout is not that of its model")


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)
