"""What is installed: do the kernels run on this machine?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdgnn.exceptions import KernelError


class KernelFacts(NamedTuple):
    """Which engine this machine takes, and which ones it can run."""

    engine: str
    runs: tuple[str, ...]


def compile_kernels() -> KernelFacts:
    """See that all kernels are compiled and give right results on this machine.

    They are compiled when fdgnn is installed, so that nothing is left to do here but to try them.

    Raises
    ------
    KernelError
        Kernels are missing, are not those of the sources beside them, or give wrong results.
    """
    from fdgnn import kernels

    runs = kernels.runnable_engines()
    for name in runs:
        _try_engine(name)
    return KernelFacts(kernels.ENGINE, runs)


def _try_engine(name: str) -> None:
    """Compare an engine's steps with NumPy's, in both precisions."""
    from fdgnn import kernels

    engine = kernels.engine_module(name)
    for dtype in (np.float32, np.float64):
        d, s = np.random.default_rng(0).normal(size=(2, 1000)).astype(dtype)
        x = np.empty(1000, dtype)
        engine.tanh_sum(d, 0.5, s, x)
        if not np.allclose(x, np.tanh(d + dtype(0.5) * s), rtol=1e-5):
            raise KernelError(
                f"the engine {name!r} is wrong on this machine; install fdgnn again here"
            )
