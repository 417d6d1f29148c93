"""How candidates are chosen from their scores: a value in which protocols differ.

A configuration is drawn as several *guesses*: networks that differ in their random weights only.
A `SelectionRule` says how the guesses enter the score of their configuration (decision 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.graphs import Floats

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SelectionRule:
    """How the guesses of a configuration enter its score.

    Attributes
    ----------
    own_penalties : bool
        Whether each candidate of a configuration has the penalty that validates best for it, or
        all have one in common.
    ensemble : bool
        Whether the guesses are one candidate, with their outputs averaged before they are scored,
        or a candidate each, with their scores averaged.
    """

    own_penalties: bool
    ensemble: bool

    def groups(self, n_guesses: int) -> list[tuple[int, ...]]:
        """Give the guesses of each candidate of a configuration."""
        if self.ensemble:
            return [tuple(range(n_guesses))]
        return [(guess,) for guess in range(n_guesses)]


#: The paper's: each network has its own penalty, and scores are averaged over guesses.
PAPER = SelectionRule(own_penalties=True, ensemble=False)
#: The other reading of the paper: one penalty for all guesses, scores averaged.
COMMON_PENALTY = SelectionRule(own_penalties=False, ensemble=False)
#: Of `FDGNNSearchCV`: the guesses are one model with one penalty, as it is fitted and saved.
ONE_MODEL = SelectionRule(own_penalties=False, ensemble=True)


class Choice(NamedTuple):
    """What each outer fold chose, as positions, and how well that does on its test graphs."""

    configurations: Positions  # (n_outer,)
    depths: Positions  # (n_outer,)
    penalties: Positions  # (n_outer, n_groups)
    scores: Floats  # (n_outer,) test scores, averaged over groups


def choose(validation: Floats, test: Floats, rule: SelectionRule) -> Choice:
    """Choose for each outer fold by validation scores; test scores have no say.

    Parameters
    ----------
    validation, test : (n_configurations, n_groups, n_depths, n_outer, n_alphas)
        Scores of all candidates; alphas ascend.
    """
    n_groups, n_outer, n_alphas = validation.shape[1], *validation.shape[3:]
    if rule.own_penalties:  # from here on, each candidate has one penalty: its best
        own = n_alphas - 1 - np.argmax(validation[..., ::-1], axis=-1)  # (c, g, d, o)
        validation, test = (
            np.take_along_axis(s, own[..., None], axis=-1) for s in (validation, test)
        )
    mean, mean_test = validation.mean(axis=1), test.mean(axis=1)  # (c, d, o, a)
    best = np.array([best_of(mean[:, :, o]) for o in range(n_outer)])
    c, d, a = best.T
    folds = np.arange(n_outer)
    penalties = own[c, :, d, folds] if rule.own_penalties else np.tile(a[:, None], n_groups)
    return Choice(c, d, penalties, mean_test[c, d, folds, a])


def best_of(validation: Floats) -> tuple[int, ...]:
    """Give the position of the best score in (configurations, depths, alphas).

    Among equals the shallowest wins, then the strongest penalty, then the first drawn.
    """
    by_simplicity = validation.transpose(1, 2, 0)[:, ::-1]  # depths, alphas from large, drawn
    d, a, c = np.unravel_index(np.argmax(by_simplicity), by_simplicity.shape)
    return int(c), int(d), validation.shape[2] - 1 - int(a)
