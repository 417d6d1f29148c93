"""Check of the installation: whether the kernels run on this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fdgnn.context import Context
from fdgnn.datasets import make_random_graphs
from fdgnn.encoders import GraphReservoir, WLCounts
from fdgnn.exceptions import KernelError


def compile_kernels(verbose: bool = False) -> tuple[str, ...]:
    """Check that all kernels are compiled and work on this machine.

    They are compiled when fdgnn is installed. This function compares each engine's arithmetic with
    NumPy's, and fixed points of the engine in use with the paper's literal loop.

    Parameters
    ----------
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    tuple of str
        The engines that this machine can run, the best one last.

    Raises
    ------
    KernelError
        Kernels are missing or compute wrong results.
    """
    from fdgnn import kernels

    if missing := kernels.missing_engines():
        raise KernelError(
            f"the engine {missing[-1]!r}, which this processor could run, is not compiled; install "
            "fdgnn again"
        )
    runs = kernels.runnable_engines()
    steps: list[Callable[[], None]] = [*(partial(_try_engine, name) for name in runs), _try_graphs]
    for step in Context(quiet=not verbose).track(steps, len(steps), "trying kernels"):
        step()
    return runs


def _try_graphs() -> None:
    """Embed graphs by the engine and by the literal loop, and count colors."""
    graphs = make_random_graphs(20, random_state=0)
    encoder = GraphReservoir(n_units=20, effective_spectral_radius=0.3, random_state=0)
    ours = encoder.fit_transform(graphs)
    literal = encoder.set_params(solver="paper").fit_transform(graphs)
    colors = WLCounts(n_iterations=1, vertices="nothing", histograms=False).fit_transform(graphs)
    counted = np.asarray(colors.sum(axis=1)).ravel() == 2 * np.diff(graphs.vertex_offsets)
    if not (np.allclose(ours, literal, atol=1e-2) and counted.all()):
        raise KernelError("the kernels are wrong on this machine; install fdgnn again here")


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
