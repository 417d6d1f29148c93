"""The applicability domain in model files: what training graphs have, or their leverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from fdgnn.arrays import Array
from fdgnn.encoders.records import refuse, take
from fdgnn.fitting import FittedModel
from fdgnn.model_files.targets import Count
from fdgnn.novelty import Leverage, Novelty, SeenFeatures
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.records import Record


class NoveltyRecord(Record, frozen=True, kw_only=True):
    """The measure of the applicability domain, beside its arrays."""

    measure: Literal["wl", "leverage"]
    estimator: Count  # whose features are compared
    limit: Annotated[float, msgspec.Meta(ge=0, le=1)]
    n_graphs: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_WHOLE)] | None = None  # of a leverage


def describe_novelty(novelty: Novelty | None) -> NoveltyRecord | None:
    """Describe a model's applicability domain."""
    if novelty is None:
        return None
    measure = novelty.measure
    return NoveltyRecord(
        measure="leverage" if isinstance(measure, Leverage) else "wl",
        estimator=novelty.estimator,
        limit=novelty.limit,
        n_graphs=measure.n_graphs if isinstance(measure, Leverage) else None,
    )


def novelty_arrays(novelty: Novelty | None) -> dict[str, Array]:
    """Return the arrays of a model's applicability domain."""
    if novelty is None:
        return {}
    measure: Any = novelty.measure
    if isinstance(measure, SeenFeatures):
        return {"seen": measure.words}
    return {"mean": measure.mean, "factor": measure.factor[np.tril_indices(len(measure.mean))]}


def restore_novelty(
    record: NoveltyRecord | None, models: Sequence[FittedModel], arrays: dict[str, Array]
) -> Novelty | None:
    """Build an applicability domain, checked; its arrays are taken out of `arrays`."""
    if record is None:
        return None
    if record.estimator >= len(models):
        refuse(f"its novelty is that of estimator {record.estimator}, which does not exist")
    encoder = models[record.estimator].encoder
    if record.measure == "wl":
        words = take(arrays, "seen", 1, np.uint64)
        if encoder.n_counted is None or len(words) != -(-encoder.n_counted // 64):
            refuse("the features of its training graphs are not those of its encoder")
        return Novelty.known(record.estimator, SeenFeatures(words), record.limit)
    mean, below = take(arrays, "mean", 1), take(arrays, "factor", 1)
    H = len(mean)
    if len(below) != H * (H + 1) // 2 or encoder.n_features_out not in (None, H):
        refuse("its leverage does not fit the features of its encoder")
    factor = np.zeros((H, H), order="F")
    factor[np.tril_indices(H)] = below
    if record.n_graphs is None or not (factor.diagonal() > 0).all():
        refuse("its leverage is not that of any graphs")
    return Novelty.known(record.estimator, Leverage(record.n_graphs, mean, factor), record.limit)
