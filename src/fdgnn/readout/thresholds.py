"""The output from which on a graph is of the second of two classes."""

from __future__ import annotations

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.readout.metrics import Metric

#: What a threshold may be chosen by.
THRESHOLDS = ("accuracy", "balanced_accuracy", "f1")
_MOST_CUTS, _MOST_CELLS = 1_000, 20_000_000


def best_threshold(
    outputs: Floats, codes: Array, metric: Metric, weights: Floats | None = None
) -> float:
    """Cut outputs (n, 1) where the metric is best; among equals, nearest to zero.

    F1 is that of the rarer class, whichever of the two it is.

    Cuts lie in the middle between neighboring outputs. Of many outputs about a thousand are
    tried, at equal numbers of graphs.
    """
    values = np.unique(outputs[:, 0])
    cuts = np.append((values[1:] + values[:-1]) / 2, 0.0)
    most = max(2, min(_MOST_CUTS, _MOST_CELLS // len(outputs)))
    if len(cuts) > most:
        cuts = np.append(np.quantile(cuts, np.linspace(0, 1, most)), 0.0)
    lowered = outputs - cuts[:, None, None]
    second_is_rarer = 2 * np.count_nonzero(codes) <= len(codes)
    scores = (
        metric(codes, lowered, weights) if second_is_rarer else metric(1 - codes, -lowered, weights)
    )
    best = np.flatnonzero(scores == scores.max())
    return float(cuts[best[np.argmin(np.abs(cuts[best]))]])
