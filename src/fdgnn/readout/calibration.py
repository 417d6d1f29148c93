"""From a classifier's real-valued outputs to probabilities, learned on held-out outputs.

The outputs s (n, q) become, with one number a > 0 that is fitted to outputs of graphs which the
readout has not seen::

    p = softmax(a g(s)),    g(s) = s between the targets -1 and +1, and almost flat beyond

For two classes, with one output s, that is ``sigmoid(a g(s))``. Both g and the softmax keep order:
the class of the largest probability is the class that `predict` gives. Beyond its targets an
output extrapolates, to numbers in the hundreds where the penalty is small, which say no more than
"beyond". docs/decisions/0023-probabilities.md has the measurements.
"""

from __future__ import annotations

import numpy as np

from fdgnn.graphs import Array, Floats

SLOPES = (1e-6, 1e6)  # where a is looked for
_LEAK = 1e-6  # what is left of the outputs beyond their targets, so that order is kept


def probabilities(outputs: Floats, slope: float) -> Floats:
    """``softmax(a g(s))``: outputs (n, q) -> (n, n_classes)."""
    return _softmax(slope * _evidence(outputs))


def fit_slope(outputs: Floats, codes: Array) -> float:
    """Find a for held-out outputs (n, q) of graphs of the classes `codes` (n,).

    The cross entropy to the classes is convex in a, so its derivative has one zero. The targets
    are not 0 and 1 but Platt's, as if one graph more had been seen of each class: else outputs
    that separate the classes would make a infinite.
    """
    G = _evidence(outputs)
    counts = np.bincount(codes, minlength=G.shape[1])[codes, None]
    targets = (counts * np.eye(G.shape[1])[codes] + 1) / (counts + G.shape[1])

    def derivative(a: float) -> float:
        return float(((_softmax(a * G) - targets) * G).sum())

    low, high = SLOPES
    if derivative(low) >= 0:  # outputs that tell nothing, or worse
        return low
    from scipy.optimize import brentq  # slow to import, and only for training

    return high if derivative(high) <= 0 else float(brentq(derivative, low, high))


def _evidence(outputs: Floats) -> Floats:
    """g, one column per class; the one output of two classes is the difference of their columns."""
    G = np.clip(outputs, -1.0, 1.0) + _LEAK * outputs
    return G * np.array([-0.5, 0.5]) if G.shape[1] == 1 else G


def _softmax(Z: Floats) -> Floats:
    """The bits of SciPy's, without the import, which takes longer than most predictions."""
    shifted = np.exp(Z - Z.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
