"""Folds that have all classes alike: scikit-learn's, which takes a second to import."""

from __future__ import annotations

import numpy as np

from fdgnn.arrays import Array, Ints


def stratified(y: Array, n_folds: int, random_state: int) -> Ints:
    """Fold of each sample, shuffled, the same as by scikit-learn's ``StratifiedKFold``.

    Classes are dealt out one after the other, in the order in which they come first in y, so that
    the folds differ in size by one at most.
    """
    rng = np.random.RandomState(random_state)
    _, first, codes = np.unique(y, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))[codes]  # of each sample's class
    dealt, folds = np.sort(order), np.empty(len(y), dtype=np.int64)
    counts = [np.bincount(dealt[f::n_folds], minlength=len(first)) for f in range(n_folds)]
    for c, of_class in enumerate(np.transpose(counts)):
        members = np.repeat(np.arange(n_folds), of_class)
        rng.shuffle(members)
        folds[order == c] = members
    return folds
