"""Models as a page can run them, and their arrays as text."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from fdgnn.arrays import Array
from fdgnn.encoders import Encoder, EncoderUnion, GraphReservoir, WLCounts
from fdgnn.estimators import AutoGraphClassifier, AutoGraphRegressor
from fdgnn.exceptions import PlaygroundError
from fdgnn.expansion import RandomExpansion, projection_norm, unscaled_projection
from fdgnn.explanations.attributions import checked_model
from fdgnn.fitting import FittedModel
from fdgnn.model_files.description import SeedRecord, as_json, describe, estimator_arrays
from fdgnn.records import encode

_TYPES = {"f8", "i4", "i2", "i1", "u8", "u2", "u1"}  # that the page can read
_ALIGNED = 8  # bytes: typed arrays of JavaScript begin at multiples of their entries' size


def fit_model(graphs: Any, y: Any, *, classify: bool = True, seed: int = 0) -> Any:
    """Fit an ensemble whose base models a page can run."""
    candidates = [
        *(
            (f"WL, {n} iterations", WLCounts(n_iterations=n, handle_unknown="ignore"), "auto")
            for n in (2, 3)
        ),
        ("reservoir", GraphReservoir(n_units=300, handle_unknown="ignore"), "linear"),
    ]
    if not classify:
        return AutoGraphRegressor(candidates, random_state=seed).fit(graphs, y)
    return AutoGraphClassifier(candidates, probability=True, random_state=seed).fit(graphs, y)


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
                    f"a page can run reservoirs and WL features, not a {type(encoder).__name__}; "
                    "fit a model with encoder='wl' or 'reservoir'"
                )
    return model


def page_model(model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
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
    record = msgspec.Raw(as_json(msgspec.structs.replace(describe(model, None), novelty=None)))
    return {"record": record, "radii": radii, "projections": projections}, arrays


def _encoders(fitted: FittedModel, place: str) -> list[tuple[str, Encoder, RandomExpansion | None]]:
    """Return the encoders of a fitted model with their expansions, and where their arrays are."""
    if isinstance(fitted.encoder, EncoderUnion):
        return [
            (f"{place}encoder.{b}.", block.encoder, block.expansion)
            for b, block in enumerate(fitted.encoder.blocks_)
        ]
    return [(place, fitted.encoder, fitted.expansion)]


def _drawn(encoder: Encoder, expansion: RandomExpansion) -> dict[str, Any] | None:
    """Describe how a projection was drawn; None where the seed is unknown, or not the one."""
    seed = getattr(encoder, "seed_", None)
    if seed is None:
        return None
    P, n_features = expansion.projection_.shape
    W_phi = unscaled_projection(seed, n_features, P)
    norm = projection_norm(W_phi)
    if not np.array_equal(W_phi / norm, expansion.projection_):
        return None
    words = SeedRecord.of(seed)  # numbers of 32 bits
    key = words.spawn_key
    return {"entropy": words.entropy, "key": key, "rows": P, "columns": n_features, "norm": norm}


def packed(content: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """Return content and arrays as gzip in base64; `unpack` in scripts/graphs.js reads it."""
    places, parts, start = {}, [], 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        if kind not in _TYPES:
            raise TypeError(f"array {name}: the page cannot read {array.dtype}")
        places[name] = {"type": kind, "shape": list(array.shape), "start": start}
        parts += [raw, bytes(-len(raw) % _ALIGNED)]
        start += len(raw) + len(parts[-1])
    header = encode({"content": content, "arrays": places})
    header += b" " * (-(len(header) + _ALIGNED) % _ALIGNED)
    size = np.array([len(header), 0], dtype="<u4").tobytes()
    return base64.b64encode(gzip.compress(b"".join([size, header, *parts]), 9, mtime=0)).decode()
