"""Warn once, with numbers, if the states of some graphs did not come to rest."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from fdgnn.encoders.base import Settling
from fdgnn.exceptions import ConvergenceWarning, frames_of_libraries

_REMEDY = "lower `effective_spectral_radius` or raise `max_iter` to let them settle"


def tell_unsettled(settlings: Sequence[Settling], remedy: str = _REMEDY) -> None:
    """Warn the user's own code if some graphs did not come to rest in some network.

    `remedy` says what the user can do about it, where the reservoir's parameters are not theirs.
    """
    tol, max_iter = settlings[0].tol, settlings[0].max_iter
    if not any(np.count_nonzero(s.residual >= tol) for s in settlings):  # most often
        return
    residual = np.concatenate([s.residual for s in settlings]).max(axis=0)
    n_moving = int((residual >= tol).sum())
    if n_moving:
        warnings.warn(
            f"{n_moving} of {len(residual)} graphs did not converge to tol={tol:g} within "
            f"max_iter={max_iter} iterations; the largest last change is {residual.max():.3g}, in "
            f"graph {int(residual.argmax())}. Their last states are used, as in the paper; "
            f"{remedy}",
            ConvergenceWarning,
            stacklevel=frames_of_libraries(),
        )
