"""The fitted models of an ensemble: their arrays, and back from a description and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Array, grouped, prefixed
from fdgnn.encoders.descriptors import DescriptorBlock
from fdgnn.encoders.records import (
    build_encoder,
    difference,
    refuse,
    restore_encoder,
    take_expansion,
)
from fdgnn.fitting import BaseModel, FittedModel
from fdgnn.linear import KernelRidge
from fdgnn.model_files.description import EstimatorRecord, ModelRecord
from fdgnn.model_files.readouts import readout_arrays, restored_readout

# Models of few graphs may have other readouts than models of more than fit in memory.
_FEW, _MANY = 1, 2**62


def estimator_arrays(models: Sequence[FittedModel]) -> dict[str, Array]:
    """Return the arrays of all fitted models; a name begins with the number of the model."""
    arrays: dict[str, Array] = {}
    for i, model in enumerate(models):
        parts = prefixed("encoder", model.encoder.arrays())
        if model.expansion is not None:
            parts["projection"] = model.expansion.projection_
        arrays |= prefixed(str(i), parts | readout_arrays(model.readout))
    return arrays


def restored_estimators(
    record: ModelRecord, model: Any, groups: dict[str, dict[str, Array]]
) -> tuple[FittedModel, ...]:
    """Take the arrays of all fitted models, by number, and check that everything fits together."""
    if not 0 < len(record.estimators) <= len(groups):
        refuse(f"it has no arrays for {len(record.estimators)} estimators")
    pairs = zip(record.estimators, _base_models(record, model), strict=True)
    return tuple(
        _restored(record, each, base, model, groups.pop(str(i), {}))
        for i, (each, base) in enumerate(pairs)
    )


def _base_models(record: ModelRecord, model: Any) -> list[BaseModel]:
    """Return the base model of each estimator, by the parameters of the model.

    All random initializations of a base model are there, or none, in the order of base models.
    """
    differences: list[str] = []
    for n_graphs in (_FEW, _MANY):
        found: list[BaseModel] = []
        try:
            bases = model._base_models(record.graph_kind, n_graphs, np.random.SeedSequence(0))
        except ValueError as error:
            refuse(f"a parameter is wrong: {error}")
        for base in bases:
            end = len(found) + len(base.seeds)
            own = record.estimators[len(found) : end]
            differs = next(filter(None, (_difference(each, base) for each in own)), None)
            if differs is None and len(own) == len(base.seeds):
                found += [base] * len(own)
            else:
                differences.append(differs or f"number, {len(record.estimators)},")
        if len(found) == len(record.estimators):
            return found
    what = differences[0] if differences else f"number, {len(record.estimators)},"
    refuse(f"its estimators have another {what} than its parameters ask for")


def _difference(described: EstimatorRecord, base: BaseModel) -> str | None:
    """Return what makes an estimator differ from its base model; None if nothing does."""
    if described.name != base.name:
        return "name"
    if described.readout != ("rbf" if isinstance(base.readout, KernelRidge) else "linear"):
        return "readout"
    return difference(build_encoder(described.encoder), base.encoder)


def _restored(
    record: ModelRecord,
    described: EstimatorRecord,
    base: BaseModel,
    model: Any,
    arrays: dict[str, Array],
) -> FittedModel:
    """Build a fitted model, from the encoder at its beginning to the readout at its end."""
    own = {name: array for name, array in arrays.items() if not name.startswith("encoder.")}
    inner = grouped({name: arrays[name] for name in arrays.keys() - own.keys()})
    encoder = restore_encoder(described.encoder, inner.get("encoder", {}), record.graph_kind)
    encoder.reading_ = record.reading
    encoder.take_seed(described.seed.sequence())
    expansion = take_expansion(own, encoder, base.n_projections)
    descriptors = _descriptors(record, described)
    seen = encoder.n_features_out if expansion is None else len(expansion.projection_)
    beside = 0 if descriptors is None else descriptors.n_features
    if seen is not None and described.n_features != seen + beside:
        refuse(f"an estimator has {described.n_features} features, expected {seen + beside}")
    n_outputs = model.targets_[-1].columns.stop
    readout = restored_readout(described.readout, own, described.n_features, n_outputs)
    if own:
        refuse(f"it has an array {min(own)[:40]!r}, which no estimator has")
    alpha = tuple(described.alpha) if isinstance(described.alpha, list) else described.alpha
    if isinstance(alpha, tuple) and len(alpha) != len(model.targets_):
        refuse(f"an estimator has {len(alpha)} alphas for {len(model.targets_)} targets")
    return FittedModel(encoder, expansion, readout, alpha, described.name, descriptors)


def _descriptors(record: ModelRecord, described: EstimatorRecord) -> DescriptorBlock | None:
    """Build the block of descriptors, if the model has some."""
    scale, names = described.descriptor_scale, {column.name for column in record.descriptors}
    if (scale is None) != (not names) or len(names) < len(record.descriptors):
        refuse("its estimators and its descriptors do not fit together")
    return None if scale is None else DescriptorBlock(tuple(record.descriptors), scale)
