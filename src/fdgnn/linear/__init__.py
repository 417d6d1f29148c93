"""Ridge regression and RBF kernel ridge regression: the only place that solves systems."""

from fdgnn.linear.gram import Moments
from fdgnn.linear.kernel_ridge import KernelReadout, KernelRidge
from fdgnn.linear.krylov import Score
from fdgnn.linear.passes import Chunks
from fdgnn.linear.path import RidgePath, fits_in_memory
from fdgnn.linear.ridge import LinearReadout, Ridge, SparseReadout

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
