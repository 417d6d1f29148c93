"""Targets of which some entries are unknown: which outputs can share a closed form.

Unknown entries of the targets Y (n, q) are NaN. An unknown entry is a sample of weight zero for its
output alone, so outputs that are known for the same samples, with the same weights and the same
penalty, form a group that is solved at once, on the samples that it knows. Where nothing is unknown
there is one group, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Features, Floats, Ints

Mask = npt.NDArray[np.bool_]


class TargetGroup(NamedTuple):
    """Outputs that are solved together."""

    columns: Ints  # of the targets
    known: Mask  # (n,) the samples for which they are known
    weights: Floats | None  # (n,)
    alpha: float

    @property
    def complete(self) -> bool:
        """Whether all samples are known."""
        return bool(self.known.all())

    def part(self, X: Features, Y: Floats) -> tuple[Features, Floats, Floats | None]:
        """Features, targets and weights of the known samples."""
        if self.complete and len(self.columns) == Y.shape[1]:  # most often
            return X, Y, self.weights
        return X if self.complete else X[self.known], *self._targets(Y)

    def pairs(self, K: Floats, Y: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Products of pairs, targets and weights of the known samples."""
        return K if self.complete else K[np.ix_(self.known, self.known)], *self._targets(Y)

    def _targets(self, Y: Floats) -> tuple[Floats, Floats | None]:
        targets = Y if len(self.columns) == Y.shape[1] else Y[:, self.columns]
        if self.complete:
            return targets, self.weights
        return targets[self.known], None if self.weights is None else self.weights[self.known]


def target_groups(
    Y: Floats, weights: Floats | None = None, alpha: float | Floats = 0.0
) -> list[TargetGroup]:
    """Group the outputs of targets (n, q).

    Parameters
    ----------
    Y : (n, q)
    weights : (n,) or (n, q), optional
        Of all samples, or of the samples of each output; above zero, also where Y is unknown.
    alpha : float or (q,)
    """
    known = ~np.isnan(Y)
    if known.all() and np.ndim(alpha) == 0 and (weights is None or weights.ndim == 1):
        return [TargetGroup(np.arange(Y.shape[1]), known[:, 0], weights, float(alpha))]
    each = np.broadcast_to(np.asarray(alpha, dtype=np.float64), Y.shape[1:])
    groups: dict[Any, list[int]] = {}
    for column, its_alpha in enumerate(each.tolist()):
        own = weights[:, column].tobytes() if weights is not None and weights.ndim == 2 else b""
        groups.setdefault((known[:, column].tobytes(), own, its_alpha), []).append(column)
    return [_group(np.array(columns), known, weights, each) for columns in groups.values()]


def _group(columns: Ints, known: Mask, weights: Floats | None, alphas: Floats) -> TargetGroup:
    first = columns[0]
    if weights is not None and weights.ndim == 2:
        weights = np.ascontiguousarray(weights[:, first])
    return TargetGroup(columns, known[:, first], weights, float(alphas[first]))


def by_weights(groups: list[TargetGroup]) -> Iterator[list[TargetGroup]]:
    """Put groups together that differ only in what they know."""
    found: dict[bytes, list[TargetGroup]] = {}
    for group in groups:
        key = b"" if group.weights is None else group.weights.tobytes()
        found.setdefault(key, []).append(group)
    yield from found.values()
