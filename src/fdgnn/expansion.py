"""`RandomExpansion`: the random, non-linear features between an encoder and its readout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from fdgnn.arrays import Features, Floats
from fdgnn.limits import MAX_PROJECTION, MAX_UNITS
from fdgnn.parameters import Number, check_parameters
from fdgnn.seeds import Matrix, seed_sequence, stream_words
from fdgnn.threads import one_blas_thread

# Norms of projections by their first weights and size. All folds of a cross-validation, and all
# configurations of a search, draw the same few; to find a norm takes longer than to draw them.
_known_norms: dict[tuple[bytes, int, int], float] = {}
_MOST_NORMS = 1_000


def draw_projection(seed: np.random.SeedSequence, n_features: int, n_projections: int) -> Floats:
    """Draw W_phi (P, H): uniform in [-1, 1], then rescaled to unit spectral norm."""
    W_phi = unscaled_projection(seed, n_features, n_projections)
    key = W_phi.flat[:8].tobytes(), n_features, n_projections
    norm = _known_norms.get(key)
    if norm is None:
        if len(_known_norms) >= _MOST_NORMS:
            _known_norms.clear()
        norm = _known_norms[key] = projection_norm(W_phi)
    return W_phi / norm


def unscaled_projection(
    seed: np.random.SeedSequence, n_features: int, n_projections: int
) -> Floats:
    """Draw W_phi (P, H) before it is rescaled."""
    from fdgnn.kernels import draw_uniform

    if MAX_PROJECTION.is_below(n_projections * n_features):
        raise ValueError(
            f"a random expansion from {n_features:,} to {n_projections:,} features has too many "
            f"weights; {MAX_PROJECTION.in_words}; use fewer units, or set `n_projections`"
        )
    W_phi = np.empty((n_projections, n_features))
    draw_uniform(stream_words(seed, 0, Matrix.PROJECTION), W_phi)
    return W_phi


def projection_norm(W_phi: Floats) -> float:
    """Return the largest singular value of a matrix (P, H), bitwise reproducible with any threads.

    With two threads of BLAS the last bit can differ, and up to some hundred features they are
    slower than one.
    """
    shorter = W_phi if len(W_phi) < W_phi.shape[1] else W_phi.T  # features of colors are many
    with one_blas_thread():
        gram = shorter @ shorter.T
        n = len(gram)
        # All eigenvalues take half the time of an SVD, and the largest alone two thirds of that.
        values, _, _, _, info = lapack.dsyevr(gram, compute_v=0, range="I", il=n, iu=n)
    if info:
        raise np.linalg.LinAlgError("the norm of a random projection was not found")
    return float(np.sqrt(values[0]))


@dataclass(eq=False, repr=False)
class RandomExpansion(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Expand features at random: ``tanh(X W_phi^T)``, the inner part of eq. 3.

    Parameters
    ----------
    n_projections : int, optional
        P, the number of random features; by default twice the number of features.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    projection_ : (P, n_features)
        W_phi, of unit spectral norm.

    Examples
    --------
    >>> import numpy as np
    >>> from fdgnn import RandomExpansion
    >>> RandomExpansion(random_state=0).fit_transform(np.ones((3, 5))).shape
    (3, 10)
    """

    n_projections: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw W_phi for the features of X; `y` is not used."""
        rule = Number(1, whole=True, optional=True, most=MAX_UNITS)
        check_parameters(self, {"n_projections": rule})
        X = check_array(X, accept_sparse="csr")
        return self.draw(X.shape[1], seed_sequence(self.random_state))

    def draw(self, n_features: int, seed: np.random.SeedSequence, norm: float = 1.0) -> Self:
        """Draw W_phi of a spectral norm for a number of features, with a seed."""
        P = int(self.n_projections or 2 * n_features)  # it may be a NumPy integer of few bits
        self.projection_ = norm * draw_projection(seed, n_features, P)
        return self

    @property
    def n_features_in_(self) -> int:
        """The number of features that are expanded."""
        check_is_fitted(self)
        return int(self.projection_.shape[1])

    def transform(self, X: Any) -> Floats:
        """Expand checked features, dense or sparse: (n, n_features) -> (n, P)."""
        check_is_fitted(self)
        return self.expand(check_array(X, accept_sparse="csr"))

    def expand(self, X: Floats | sp.csr_array) -> Floats:
        """Expand features that need no check: ``tanh(X W_phi^T)``."""
        from fdgnn.kernels import tanh_all

        expanded = X @ self.projection_.T
        tanh_all(expanded)
        return expanded

    def mean_gradient(self, X: Floats, w: Floats) -> Floats:
        """Compute the gradient of ``w . tanh(W_phi x)``, averaged on the straight line from 0 to x.

        The integral of ``1 - tanh(t a)^2`` over t from 0 to 1 is ``tanh(a) / a``, so with
        ``a = W_phi x`` this is ``W_phi^T (w tanh(a) / a)``: exact, without a quadrature.

        Parameters
        ----------
        X : (n, n_features)
        w : (n, P)
            Weights of each row.

        Returns
        -------
        (n, n_features)
        """
        A = X @ self.projection_.T
        ratio = np.divide(np.tanh(A), A, out=np.ones_like(A), where=np.abs(A) > 1e-9)
        return (w * ratio) @ self.projection_


def expanded(features: Features, expansion: RandomExpansion | None) -> Features:
    """Return features as the readout sees them."""
    return features if expansion is None else expansion.expand(features)
