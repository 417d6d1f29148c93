"""A fitted model as a page can run it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from fdgnn.arrays import Array
from fdgnn.encoders import Encoder, EncoderUnion, GraphReservoir, WLCounts
from fdgnn.exceptions import PlaygroundError
from fdgnn.expansion import RandomExpansion, projection_norm, unscaled_projection
from fdgnn.explanations.attributions import checked_model
from fdgnn.fitting import FittedModel
from fdgnn.html.playground.records import DrawnProjection, PageModel
from fdgnn.model_files.description import SeedRecord, as_json, describe, estimator_arrays


def one_model(model: Any, target: Any = None) -> Any:
    """Return the model that a page shows: of a search the best one, of several targets one.

    Raises
    ------
    PlaygroundError
        A page cannot run such a model; the message says why.
    """
    model = checked_model(model)
    if len(model.targets_) > 1:
        if target is None:
            names = ", ".join(repr(each.name) for each in model.targets_[:10])
            raise PlaygroundError(f"the model has several targets; choose one by `target`: {names}")
        model = model.for_target(target)
    if model._descriptors is not None:
        raise PlaygroundError(
            "the model reads descriptors beside the graphs, which a page cannot compute after a "
            "change; fit it without descriptors"
        )
    for fitted in model.estimators_:
        for _, encoder, _ in _encoders(fitted, ""):
            if type(encoder) not in (GraphReservoir, WLCounts):
                raise PlaygroundError(
                    f"a page can run reservoirs and WL features, not a {type(encoder).__name__}"
                )
    return model


def page_model(model: Any) -> tuple[PageModel, dict[str, Array]]:
    """Describe a model as its file would, with its arrays except those the page can draw again."""
    arrays = estimator_arrays(model.estimators_)
    radii, projections = {}, {}
    for i, fitted in enumerate(model.estimators_):
        for place, encoder, expansion in _encoders(fitted, f"{i}."):
            if isinstance(encoder, GraphReservoir):
                radii[f"{place}encoder."] = encoder.reservoir_.radii.tolist()
            drawn = None if expansion is None else _drawn(encoder, expansion)
            if drawn is not None:
                projections[f"{place}projection"] = drawn
                del arrays[f"{place}projection"]
    raw = msgspec.Raw(as_json(msgspec.structs.replace(describe(model, None), novelty=None)))
    return PageModel(record=raw, radii=radii, projections=projections), arrays


def _encoders(fitted: FittedModel, place: str) -> list[tuple[str, Encoder, RandomExpansion | None]]:
    """Encoders of a fitted model with their expansions, and where their arrays are."""
    if isinstance(fitted.encoder, EncoderUnion):
        return [
            (f"{place}encoder.{b}.", block.encoder, block.expansion)
            for b, block in enumerate(fitted.encoder.blocks_)
        ]
    return [(place, fitted.encoder, fitted.expansion)]


def _drawn(encoder: Encoder, expansion: RandomExpansion) -> DrawnProjection | None:
    """Describe how a projection was drawn; None where the seed is unknown, or not the one."""
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
