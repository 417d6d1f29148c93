r"""The applicability domain: how much of a graph no training graph has, from 0 to 1.

*Where a model has WL features*, the distance of a graph is the share of its WL features that no
training graph has: one feature for each vertex, iteration and channel. A training graph is compared
with all others, so that its distance is the share of features that it alone has.

*Where a model has none*, the distance is the leverage that the graph would have among the training
graphs in a linear regression on its encoder's n x H features, centered to Z::

    l(x) = 1/n + z^T (Z^T Z + d I)^-1 z,        distance = l / (1 + l)

For a training graph left out, l / (1 + l) is its own leverage (by Sherman and Morrison), so that
nothing has to be left out. d is small, and keeps columns apart that are almost the same.

A graph is *out of domain* if its distance is larger than that of 99 % of the training graphs. Of
graphs that come as the training graphs did, about 1 % are. A graph without any WL label of a
training graph is always out of domain, also where the training graphs have nothing in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import lapack

from fdgnn.arrays import Features, Floats, Ints, positions
from fdgnn.encoders import Encoder, Encoding
from fdgnn.graphs import GraphBatch
from fdgnn.linear import Chunks
from fdgnn.linear.passes import SparseRows
from fdgnn.records import cached_property
from fdgnn.threads import one_blas_thread

USUAL = 0.99  # the share of training graphs that are in the domain of the others
ALL_NEW = 1.0  # the distance of a graph of which nothing is known; a leverage never has it
MOST_FEATURES = 2_000  # for a leverage, which needs a matrix of this size squared
MOST_KEPT = 2**20  # numbers that are kept until they are needed: some megabytes
_DAMPING = 1e-6  # d, in units of the mean diagonal

Words = npt.NDArray[np.uint64]


def all_new(distances: Floats | None) -> list[int]:
    """Return the positions of graphs that have nothing in common with the training graphs."""
    return [] if distances is None else np.flatnonzero(distances >= ALL_NEW).tolist()


@dataclass(frozen=True, eq=False)
class SeenFeatures:
    """Which columns of counts any training graph has, as bits of words of 64."""

    words: Words

    @classmethod
    def fit(cls, counts: sp.csr_array) -> tuple[SeenFeatures, Floats]:
        """Store which counts (n, P) occur; return the distance of each row from the others."""
        columns, often = np.unique(counts.indices[counts.data != 0], return_counts=True)
        alone = columns[often == 1]
        seen = cls.of_columns(columns, counts.shape[1])
        return seen, _share(counts, np.isin(counts.indices, alone))

    @classmethod
    def fit_chunks(cls, counts: Chunks) -> tuple[SeenFeatures, Floats]:
        """Keep what counts in chunks have, and return the distance of each row, as `fit` does."""
        often = counts.column_sums[0]  # a column that one graph has once is in no other
        alone = often == 1

        def share(rows: SparseRows) -> Floats:
            matrix = rows.matrix(len(alone))
            return _share(matrix, alone[matrix.indices])

        own = np.concatenate(counts.gather(share))
        return cls.of_columns(np.flatnonzero(often), len(often)), own

    @classmethod
    def of_columns(cls, columns: npt.NDArray[np.integer], n_columns: int) -> SeenFeatures:
        """Keep the columns that some training graph has."""
        words = np.zeros(-(-n_columns // 64), dtype=np.uint64)
        word, bit = _bit_of(columns)
        np.bitwise_or.at(words, word, bit)
        return cls(words)

    def of(self, encoder: Encoder, graphs: GraphBatch, X: Features) -> Floats:
        """Return the share of counts in columns that no training graph has, (n,)."""
        counts = encoder.counted(graphs, X)
        word, bit = _bit_of(counts.indices)
        return _share(counts, (self.words[word] & bit) == 0)

    def in_words(self, value: float, limit: float) -> str:
        """Return why a graph is out of domain."""
        if value >= ALL_NEW:
            return (
                "none of its substructures is in a training graph: the model has learned nothing "
                "about it"
            )
        return (
            f"{_percent(value)} of its substructures are in no training graph; of "
            f"{_percent(USUAL)} of the training graphs at most {_percent(limit)} are in no other"
        )


@dataclass(frozen=True, eq=False)
class Leverage:
    """The leverage of graphs among the training graphs, by their mean and scatter."""

    n_graphs: int
    mean: Floats  # (H,)
    factor: Floats  # (H, H) Cholesky factor, lower, of Z^T Z + d I; columns end to end

    @classmethod
    def fit(cls, X: Floats) -> tuple[Leverage, Floats]:
        """Keep what features (n, H) have; return the leverage of each row."""
        mean = X.sum(axis=0) / len(X)
        Z = X - mean
        gram = Z.T @ Z
        damping = _DAMPING * max(float(gram.trace()) / len(gram), np.finfo(float).tiny)
        gram.flat[:: len(gram) + 1] += damping
        factor, info = lapack.dpotrf(gram, lower=True)
        if info:
            raise np.linalg.LinAlgError("the features of the training graphs are too large")
        found = cls(len(X), mean, factor)
        return found, found.lengths(X)

    def of(self, encoder: Encoder, graphs: GraphBatch, X: Features) -> Floats:
        """Return the leverage that graphs would have, (n,)."""
        with np.errstate(over="ignore", invalid="ignore"):  # training graphs may be all alike
            lengths = self.lengths(np.asarray(X))
            return np.where(np.isfinite(lengths), lengths / (1.0 + lengths), ALL_NEW)

    def lengths(self, X: Floats) -> Floats:
        """Return l(x) of features (n, H)."""
        Z, _ = lapack.dtrtrs(self.factor, (X - self.mean).T, lower=True)
        return np.asarray(1.0 / self.n_graphs + (Z**2).sum(axis=0))

    def in_words(self, value: float, limit: float) -> str:
        """Return why a graph is out of domain."""
        return (
            f"its features are far from those of the training graphs: leverage {value:.2g}, of "
            f"{_percent(USUAL)} of the training graphs at most {limit:.2g}"
        )


Measure = SeenFeatures | Leverage


class ApplicabilityDomain:
    """The distance of graphs from the training graphs, by the features of one estimator.

    Training graphs are compared with each other when that is first needed: most models that are
    trained, in a search or a cross-validation, never need it. Until then small features are kept.

    Attributes
    ----------
    estimator : int
        Position in `estimators_`: the first with WL features, or else the first.
    measure : SeenFeatures or Leverage
    limit : float
        The distance beyond which a graph is out of domain.
    """

    def __init__(self, estimator: int, learn: Callable[[], tuple[Measure, Floats]]) -> None:
        self.estimator, self._learn = estimator, learn

    @classmethod
    def known(cls, estimator: int, measure: Measure, limit: float) -> ApplicabilityDomain:
        """Return the applicability domain of a measure, with its limit."""
        found = cls(estimator, lambda: (measure, np.empty(0)))
        found.learned = measure, limit, None
        return found

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return ApplicabilityDomain.known, (self.estimator, self.measure, self.limit)

    @property
    def measure(self) -> Measure:
        """The measure of the distance."""
        return self.learned[0]

    @property
    def limit(self) -> float:
        """The distance beyond which a graph is out of domain; the maximum of few graphs."""
        return self.learned[1]

    @property
    def of_training(self) -> Floats | None:
        """Distance of each training graph from the others (n,); None for a loaded model."""
        return self.learned[2]

    @cached_property
    def learned(self) -> tuple[Measure, float, Floats | None]:
        """The measure, the limit, and the distance of each training graph from the others."""
        with one_blas_thread():
            measure, own = self._learn()
        self._learn = lambda: (measure, own)  # features are not kept any longer
        rank = min(ceil((len(own) + 1) * USUAL), len(own))
        return measure, float(np.sort(own)[rank - 1]), own

    @classmethod
    def fit(
        cls, number: int, encoder: Encoder, X: Features | Chunks, graphs: GraphBatch
    ) -> ApplicabilityDomain | None:
        """Compare training graphs, whose features are X, with each other; None where it cannot."""
        few = False
        learn: Any = None
        if isinstance(X, Chunks):
            if encoder.n_counted is not None:
                learn = partial(SeenFeatures.fit_chunks, X)
        elif encoder.n_counted is not None:
            counts = encoder.counted(graphs, X)
            few, learn = counts.size <= MOST_KEPT, partial(SeenFeatures.fit, counts)
        elif not sp.issparse(X) and X.shape[1] <= MOST_FEATURES:
            few, learn = X.size <= MOST_KEPT, partial(Leverage.fit, X)
        if learn is None:
            return None
        found = cls(number, learn)
        if not few:
            _ = found.learned  # now, so that features are not kept
        return found

    def of(self, encoder: Encoder, graphs: GraphBatch, encoding: Encoding) -> Floats:
        """Return the distances of checked graphs, (n,), by the encoder of `estimator`."""
        return self.measure.of(encoder, graphs, encoding.features[0])

    def reasons(self, values: Floats) -> dict[int, str]:
        """Return the positions of graphs that are out of domain, and why."""
        beyond = np.flatnonzero((values > self.limit) | (values >= ALL_NEW))
        return {int(g): self.measure.in_words(float(values[g]), self.limit) for g in beyond}


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _bit_of(columns: npt.NDArray[np.integer]) -> tuple[Ints, Words]:
    """Return the word of each column, and a word with its bit."""
    return (columns >> 6).astype(np.int64), np.uint64(1) << (columns & 63).astype(np.uint64)


def _share(counts: sp.csr_array, chosen: npt.NDArray[np.bool_]) -> Floats:
    """Return the share of each row's counts that are chosen."""
    n = counts.shape[0]
    row = np.repeat(positions(n), np.diff(counts.indptr))
    part = np.bincount(row, counts.data * chosen, n)
    whole = np.bincount(row, counts.data, n)
    return np.asarray(part / np.where(whole > 0, whole, 1.0))
