"""A fitted model as a page can run it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from fdgnn.arrays import Array
from fdgnn.encoders import ColorCounts, Encoder, GraphReservoir, JoinedEncoder
from fdgnn.exceptions import PlaygroundError
from fdgnn.expansion import RandomExpansion, projection_norm, unscaled_projection
from fdgnn.explanations.vertices import checked_model
from fdgnn.model_files.description import SeedRecord, as_json, describe
from fdgnn.model_files.networks import model_arrays
from fdgnn.model_files.trust import TrustRecord
from fdgnn.playground.records import DrawnProjection, PageModel


def one_model(model: Any, target: Any = None) -> Any:
    """Give the model that a page shows: of a search the best, of several targets one.

    Raises
    ------
    PlaygroundError
        A page cannot run such a model; the message says why.
    """
    model = checked_model(model)
    if model.each_:
        if target is None:
            names = ", ".join(repr(each.name) for each in model.targets_[:10])
            raise PlaygroundError(f"the model has several targets; choose one by `target`: {names}")
        model = model.for_target(target)
    if model.descriptors_ is not None:
        raise PlaygroundError(
            "the model reads descriptors beside the graphs, which a page cannot compute after a "
            "change; fit it without descriptors"
        )
    for network in model.networks_:
        for _, encoder, _ in _encoders(network, ""):
            if type(encoder) not in (GraphReservoir, ColorCounts):
                raise PlaygroundError(
                    f"a page can run reservoirs and colors, and not a {type(encoder).__name__}"
                )
    return model


def page_model(model: Any) -> tuple[PageModel, dict[str, Array]]:
    """Describe a model as its file would, with its arrays but for what the page can draw again."""
    arrays = {
        name: array
        for name, array in model_arrays(model).items()
        if name.split(".")[0].isdigit()  # of networks; others are about trust
    }
    radii, projections = {}, {}
    for i, network in enumerate(model.networks_):
        for place, encoder, expansion in _encoders(network, f"{i}."):
            if isinstance(encoder, GraphReservoir):
                radii[f"{place}encoder."] = encoder.reservoir_.radii.tolist()
            drawn = None if expansion is None else _drawn(encoder, expansion)
            if drawn is not None:
                projections[f"{place}projection"] = drawn
                del arrays[f"{place}projection"]
    record = msgspec.structs.replace(describe(model, None), trust=TrustRecord())
    raw = msgspec.Raw(as_json(record))
    return PageModel(record=raw, radii=radii, projections=projections), arrays


def _encoders(network: Any, place: str) -> list[tuple[str, Encoder, RandomExpansion | None]]:
    """Encoders of a network with their expansions, and where their arrays are."""
    if isinstance(network.encoder, JoinedEncoder):
        return [
            (f"{place}encoder.{b}.", block.encoder, block.expansion)
            for b, block in enumerate(network.encoder.blocks_)
        ]
    return [(place, network.encoder, network.expansion)]


def _drawn(encoder: Encoder, expansion: RandomExpansion) -> DrawnProjection | None:
    """Say how a projection was drawn; None where the seed is unknown or says something else."""
    seed = getattr(encoder, "seed_", None)
    if seed is None:
        return None
    P, n_features = expansion.projection_.shape
    W_phi = unscaled_projection(seed, n_features, P)
    norm = projection_norm(W_phi)
    if not np.array_equal(W_phi / norm, expansion.projection_):
        return None
    words = SeedRecord.of(seed)
    return DrawnProjection(
        entropy=words.entropy, key=words.spawn_key, rows=P, columns=n_features, norm=norm
    )
