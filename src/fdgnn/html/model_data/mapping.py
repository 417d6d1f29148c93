"""The map of the graphs: which are on it, and where they lie for the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Floats, Ints
from fdgnn.html.model_data.answers import Answers
from fdgnn.html.model_data.text import short


def mapped_graphs(answers: Answers, at_most: int, keep: Ints) -> Ints:
    """Choose all graphs, or a random part that keeps the classes' shares and the graphs `keep`."""
    n = len(answers.predicted)
    if n <= at_most:
        return np.arange(n)
    codes = np.zeros(n, dtype=np.int64)
    if not answers.regression:
        codes = answers.predicted if answers.actual is None else answers.actual
    place = np.empty(n)  # of a graph among those of its class in random order, from 0 to 1
    order = np.random.default_rng(0).permutation(n)
    for c in np.unique(codes):
        members = order[codes[order] == c]
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    place[keep] = -1
    return np.sort(np.argsort(place, kind="stable")[:at_most])


def principal_map(features: Any) -> tuple[Floats, tuple[float, float]]:
    """Give two principal components (n, 2), the farthest graph at 1, and their variance shares.

    The sign of a component makes its largest weight positive.
    """
    if sp.issparse(features):
        features = _dense_factor(features)
    centered = features - features.mean(axis=0)
    _, s, Vt = np.linalg.svd(centered, full_matrices=False)
    axes = np.zeros((2, features.shape[1]))
    axes[: min(2, len(s))] = Vt[:2]
    largest = np.abs(axes).argmax(axis=1)
    axes *= np.where(axes[[0, 1], largest] < 0, -1.0, 1.0)[:, None]
    places = centered @ axes.T
    total = float(np.square(s).sum())
    shares = [short(share) for share in np.append(np.square(s[:2]) / (total or 1.0), [0.0, 0.0])]
    return places / (np.abs(places).max() or 1.0), (shares[0], shares[1])


def _dense_factor(features: Any) -> Floats:
    """Replace sparse features by n columns with the same inner products, hence the same map."""
    values, vectors = np.linalg.eigh((features @ features.T).toarray())
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
