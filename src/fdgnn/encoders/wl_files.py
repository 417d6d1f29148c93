"""Color counts in model files: what is kept beside parameters, and how it is checked again."""

from __future__ import annotations

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.encoders.arc_reading import WEIGHT_BINS
from fdgnn.encoders.channels import Colors
from fdgnn.exceptions import ModelFileError
from fdgnn.records import Record


class WLFacts(Record, frozen=True, kw_only=True):
    """What a model file says of color counts, beside parameters and arrays."""

    vocabulary: list[int | str] | None
    joint: bool = False
    whole_weights: bool = True
    labeled_arcs: bool = False
    weighted_arcs: bool = False
    arc_vocabulary: list[int | str] | None = None  # None where it is not known


def kept_edges(edges: Floats) -> dict[str, Array]:
    """Edges of the bins of features, and how many each has.

    A feature with fewer edges than others has zeros after them: files have finite numbers.
    """
    real = np.isfinite(edges)
    counts = real.sum(axis=1, dtype=np.int32)
    return {"feature_edges": np.where(real, edges, 0.0), "feature_counts": counts}


def taken_edges(arrays: dict[str, Array], shape: tuple[int, int]) -> Floats:
    """Edges of the bins of features, (n_features, n_bins - 1), infinite after the last real one."""
    edges, counts = arrays.pop("feature_edges", None), arrays.pop("feature_counts", None)
    if edges is None or edges.dtype != np.float64 or edges.shape != shape:
        raise ModelFileError(f"its color counts need edges of bins of the shape {shape}")
    if counts is None or counts.dtype != np.int32 or counts.shape != shape[:1]:
        raise ModelFileError("its color counts need the number of edges of each feature")
    if (counts < 0).any() or (counts > shape[1]).any():
        raise ModelFileError("its color counts have more edges of bins than there are")
    found = np.where(np.arange(shape[1]) < counts[:, None], edges, np.inf)
    if not (found[:, 1:] >= found[:, :-1]).all():
        raise ModelFileError("the edges of its bins do not ascend")
    return found


def taken_weight_edges(arrays: dict[str, Array]) -> Floats:
    """Edges of the bins of weights, infinite after the last real one."""
    edges = arrays.pop("weight_edges", None)
    if edges is None or edges.dtype != np.float64 or edges.ndim != 1 or len(edges) >= WEIGHT_BINS:
        raise ModelFileError(f"its color counts need at most {WEIGHT_BINS - 1} edges of weights")
    if not (edges[1:] >= edges[:-1]).all():
        raise ModelFileError("the edges of its bins do not ascend")
    return np.concatenate([edges, np.full(WEIGHT_BINS - 1 - len(edges), np.inf)])


def taken_columns(arrays: dict[str, Array]) -> Colors:
    """The feature of each column, ascending."""
    columns = arrays.pop("columns", None)
    if columns is None or columns.dtype != np.uint64 or columns.ndim != 1 or len(columns) == 0:
        raise ModelFileError("its color counts need columns, which are numbers of 64 bits")
    if not (columns[1:] > columns[:-1]).all():
        raise ModelFileError("the columns of its color counts do not ascend")
    return columns
