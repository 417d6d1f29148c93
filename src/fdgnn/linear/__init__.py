"""Ridge regression and RBF kernel ridge regression: the only place that solves systems."""

from fdgnn.linear.closed_form import Moments
from fdgnn.linear.krylov import Score
from fdgnn.linear.passes import Chunks
from fdgnn.linear.readouts import KernelReadout, LinearReadout, SparseReadout
from fdgnn.linear.ridge import KernelRidge, Ridge, RidgePath, fits_in_memory

__all__ = [
    "Chunks",
    "KernelReadout",
    "KernelRidge",
    "LinearReadout",
    "Moments",
    "Ridge",
    "RidgePath",
    "Score",
    "SparseReadout",
    "fits_in_memory",
]
