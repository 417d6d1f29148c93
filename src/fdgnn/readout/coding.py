"""The trained part and what surrounds it: coding of targets, random expansion, eq. 3.

``y = W_Y tanh(W_phi pooled) + b``: sum pooling, a random non-linear expansion, linear neurons.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fdgnn.graphs import Array, Floats
from fdgnn.seeds import Matrix, stream


def draw_projection(seed: np.random.SeedSequence, n_units: int, n_projections: int) -> Floats:
    """W_phi (P, H): uniform, rescaled to unit spectral norm."""
    W_phi = draw_unscaled_projection(seed, n_units, n_projections)
    norm = float(np.sqrt(np.linalg.eigvalsh(W_phi.T @ W_phi)[-1]))  # half the time of an SVD
    return W_phi / norm


def draw_unscaled_projection(
    seed: np.random.SeedSequence, n_units: int, n_projections: int
) -> Floats:
    """W_phi (P, H) before it is rescaled: uniform in [-1, 1]."""
    return stream(seed, 0, Matrix.PROJECTION).uniform(-1, 1, size=(n_projections, n_units))


def expand(pooled: Floats, projection: Floats) -> Floats:
    """``tanh(W_phi pooled)`` for each graph: (n_graphs, H) -> (n_graphs, P)."""
    return np.tanh(pooled @ projection.T)


def code_classes(y: Any) -> tuple[Array, Floats]:
    """Sorted classes, and targets -1/+1: (n, 1) for two classes, (n, n_classes) for more."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 2:
        return classes, np.where(codes[:, None] == 1, 1.0, -1.0)
    return classes, np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


def winning_class(scores: Floats) -> Array:
    """Class number of each score row: sign for one output, argmax for several; over any axes."""
    if scores.shape[-1] == 1:
        return (scores[..., 0] > 0).astype(np.intp)
    return np.asarray(np.argmax(scores, axis=-1))
