r"""When does a layer have one fixed point? The paper's theorems, and a sharper certificate.

A layer iterates ``X <- tanh(W_I U + W_H X A)``. Each function below returns a number to compare
with 1; ``docs/explanation/stability.md`` has the proofs.

====================================  =======================================================
`sufficient_condition` (Theorem 1)    ``||W_H|| k < 1``          suffices for every graph
`necessary_condition` (Theorem 2)     ``rho(W_H) k <= 1``        is needed for k-regular graphs
`certificates` (componentwise)        ``rho(|W_H|) rho(|A|) < 1``  suffices for that graph
====================================  =======================================================

With one connection per unit, ``rho(|W_H|) = rho(W_H)``, and ``rho(A) <= k``: there the necessary
condition is also sufficient.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import dense
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.limits import MAX_DENSE_UNITS

LARGE_BLOCK = 64  # units; larger blocks have a bound instead of eigenvalues
MOST_STEPS, PATIENCE, PROGRESS = 1000, 10, 1e-7  # of the bound; it ends when ten steps bring little
FLOOR = 1e-150  # keeps x positive where a part is much smaller than another


def spectral_radius(matrix: sp.csr_array | Array) -> float:
    r"""Return the largest absolute eigenvalue, from the strongly connected components.

    A matrix is block triangular over its components, so its eigenvalues are those of the diagonal
    blocks. With one connection per unit each block is a single cycle. Its eigenvalues are all of
    one size, the geometric mean of \|w\| along the cycle, which is exact.
    """
    W = _csr(matrix)
    return _radius(W.indptr, W.indices, W.data)


def wiring_radii(sources: Array, values: Array) -> Floats:
    """Return radii of layers (L, H, C), with C entries in each row: their columns and values."""
    from fdgnn.kernels import cycle_radii

    radii = np.asarray(cycle_radii(sources, values))
    if np.isfinite(radii).all():  # most often
        return radii
    indptr = np.arange(0, sources[:1].size + 1, sources.shape[2])
    for i in np.flatnonzero(np.isnan(radii)):  # more than cycles
        radii[i] = _radius(indptr, sources[i].ravel(), values[i].ravel())
    return radii


def _radius(indptr: Array, indices: Array, values: Array) -> float:
    from fdgnn.kernels import inner_arcs, strong_components

    wiring = indptr.astype(np.int64), indices.astype(np.int32)
    order, offsets = strong_components(*wiring)
    n_arcs, log_sums = inner_arcs(*wiring, values.astype(np.float64), order, offsets)
    sizes = np.diff(offsets)
    cycles = n_arcs == sizes  # the same number of arcs and units: one cycle
    radius = float(np.exp(log_sums[cycles] / sizes[cycles]).max(initial=0.0))
    for c in np.flatnonzero(n_arcs > sizes):
        b = order[offsets[c] : offsets[c + 1]]
        block = sp.csr_array((values, indices, indptr), (len(order), len(order)))[b][:, b]
        if block.shape[0] > LARGE_BLOCK and (block.data >= 0).all():
            radius = max(radius, _upper_bound(block))
            continue
        # Eigenvalues of a dense matrix take the square of its size in memory, and the cube in time.
        if MAX_DENSE_UNITS.is_below(block.shape[0]):
            raise ValueError(
                f"{block.shape[0]} units read each other by several connections; "
                f"{MAX_DENSE_UNITS.in_words}; use fewer units, or n_connections=1"
            )
        radius = max(radius, float(np.abs(np.linalg.eigvals(block.toarray())).max()))
    return radius


def _upper_bound(block: sp.csr_array) -> float:
    """Return an upper bound of the radius of a non-negative block, mostly to six digits.

    For any positive x, rho(B) <= max_v (B x)_v / x_v (Collatz-Wielandt). Under x <- (B + s I) x
    the bound never rises, and converges to the radius: a strongly connected B + s I is primitive.
    """
    shift = float(np.asarray(block.sum(axis=1)).max()) / 2
    x, bound, last = np.ones(block.shape[0]), np.inf, np.inf
    for step in range(MOST_STEPS):
        y = block @ x
        bound = min(bound, float((y / x).max()))
        if step % PATIENCE == 0:
            if bound > last * (1 - PROGRESS):
                break
            last = bound
        x = y + shift * x
        x = np.maximum(x / x.max(), FLOOR)
    return bound * (1 + 1e-12)  # above the rounding of the sums


def _csr(matrix: sp.csr_array | Array) -> sp.csr_array:
    """Return the matrix without stored zeros."""
    W = matrix if isinstance(matrix, sp.csr_array) else sp.csr_array(matrix)
    if not W.data.all():
        W = W.copy()
        W.eliminate_zeros()
    return W


def sufficient_condition(recurrent_weights: sp.csr_array | Array, degree: float) -> float:
    """Return ``||W_H|| k`` (theorem 1): below 1, every graph of degree k has one fixed point."""
    return float(np.linalg.norm(dense(recurrent_weights), 2)) * degree


def necessary_condition(recurrent_weights: sp.csr_array | Array, degree: float) -> float:
    """Return ``rho(W_H) k`` (theorem 2): above 1, a k-regular graph without input is unstable."""
    return spectral_radius(recurrent_weights) * degree


def certificates(recurrent_weights: sp.csr_array | Array, graphs: GraphBatch) -> Floats:
    """Return ``rho(|W_H|) rho(|A|)`` of each graph; below 1, that graph has one fixed point.

    Returns
    -------
    (n_graphs,) float64
    """
    W = _csr(recurrent_weights)
    return _radius(W.indptr, W.indices, np.abs(W.data)) * graphs.spectral_radii
