"""`GraphKernel`: kernel matrices of graphs, for support vector machines and other methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Features, Floats
from fdgnn.encoders.base import Encoder
from fdgnn.encoders.registry import as_encoder
from fdgnn.linear.products import Columns, products_with


@dataclass(eq=False, repr=False)
class GraphKernel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Compute the normalized kernel matrix between graphs and training graphs.

    The kernel is the product of the features x of two graphs, divided by both lengths::

        k(G, G') = <x, x'> / (|x| |x'|)

    With unary-encoded WL features this is the normalized Weisfeiler-Lehman optimal assignment
    kernel, and with pairs of vertices the normalized shortest-path kernel. The kernel of a graph
    without features is 0.

    Parameters
    ----------
    encoder : str, Encoder or transformer, default="wl"
        The encoder of the features, as in `GraphClassifier`: ``WLCounts()``, ``PairCounts()``.

    Attributes
    ----------
    encoder_ : Encoder
        The fitted encoder.
    features_ : (n_train, n_features)
        Features of the training graphs, each row of length 1.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from fdgnn import GraphKernel, WLCounts
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> GraphKernel(WLCounts(n_iterations=2)).fit(graphs[:40]).transform(graphs[40:]).shape
    (20, 40)
    >>> model = make_pipeline(GraphKernel(WLCounts(n_iterations=2)), SVC(kernel="precomputed"))
    >>> model.fit(graphs[:40], y[:40]).predict(graphs[40:]).shape
    (20,)
    """

    encoder: Any = "wl"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the encoder, and keep the features of the graphs; `y` is not used."""
        self.encoder_: Encoder = clone(as_encoder(self.encoder)).fit(X)
        self.features_ = _of_length_one(self.encoder_.transform(X))
        return self

    def transform(self, X: Any) -> Floats:
        """Return the kernel between graphs and training graphs, (n_graphs, n_train)."""
        check_is_fitted(self)
        features = _of_length_one(self.encoder_.transform(X))
        if not sp.issparse(features):
            return np.asarray(features @ self.features_.T)
        return products_with(features, Columns.of(self.features_))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names such as ``graph17`` for each training graph."""
        check_is_fitted(self)
        return np.array([f"graph{i}" for i in range(self.features_.shape[0])], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        return tags


def _of_length_one(X: Features) -> Features:
    """Divide each row by its length, unless it is zero."""
    squares = X.power(2).sum(axis=1) if sp.issparse(X) else (X**2).sum(axis=1)
    lengths = np.sqrt(np.asarray(squares, dtype=np.float64).ravel())
    scale = 1.0 / np.where(lengths > 0, lengths, 1.0)
    if sp.issparse(X):
        return sp.csr_array(sp.diags_array(scale) @ X)
    return np.asarray(X * scale[:, None])
