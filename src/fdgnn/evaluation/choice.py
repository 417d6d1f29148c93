"""Step one of a study: from the scores of all random initializations to what each fold selects.

Each random initialization has the alpha that validates best for it. An outer fold selects the
configuration with the best validation score, averaged over its random initializations (decision
6). Test scores have no say. The same reservoirs, cut after their first layer, give a second choice;
with one alpha for all random initializations of a configuration they give a third.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fdgnn.arrays import Floats, Ints
from fdgnn.evaluation.records import ChosenOnTestFolds, NetworkScores


class FoldChoices(NamedTuple):
    """What each outer fold selected, and how well that does on its test graphs."""

    configurations: Ints  # (n_outer,)
    alphas: Ints  # (n_outer, n_guesses), positions in the grid of alphas
    scores: Floats  # (n_outer,) test scores, averaged over random initializations


class Selection(NamedTuple):
    """The choices that the scores of all random initializations lead to."""

    deep: FoldChoices
    single_layer: FoldChoices
    common_alpha: FoldChoices
    on_test_folds: ChosenOnTestFolds
    seconds: float  # that all random initializations took


def select(networks: Iterable[NetworkScores], n_configurations: int, n_guesses: int) -> Selection:
    """Choose the best configuration of each outer fold, from all networks in any order."""
    ordered = sorted(networks, key=lambda n: (n.configuration, n.guess))
    shape = (n_configurations, n_guesses, *np.shape(ordered[0].test))  # (c, g, 2, n_outer, a)
    validation = np.array([n.validation for n in ordered]).reshape(shape)
    test = np.array([n.test for n in ordered]).reshape(shape)
    one, own = np.s_[:, :, 0], np.s_[:, :, 1]  # depths
    mean = test[own].mean(axis=1)  # (c, n_outer, a)
    return Selection(
        deep=choose(validation[own], test[own]),
        single_layer=choose(validation[one], test[one]),
        common_alpha=choose(validation[own], test[own], common_alpha=True),
        on_test_folds=ChosenOnTestFolds(  # as in GIN's protocol
            one_for_all_folds=float(mean.mean(axis=1).max()),
            one_for_each_fold=float(mean.max(axis=(0, 2)).mean()),
        ),
        seconds=sum(n.seconds for n in ordered),
    )


def choose(validation: Floats, test: Floats, *, common_alpha: bool = False) -> FoldChoices:
    """Choose a configuration for each outer fold by validation scores; test scores have no say.

    Among equal scores the largest alpha wins, then the configuration that was drawn first.

    Parameters
    ----------
    validation, test : (n_configurations, n_guesses, n_outer, n_alphas)
        Scores of all random initializations; alphas ascend.
    common_alpha : bool, default=False
        Whether all random initializations of a configuration have one alpha, or each its own.
    """
    n_guesses, n_outer, n_alphas = validation.shape[1:]
    if not common_alpha:  # from here on, each random initialization has one alpha: its best
        own = n_alphas - 1 - np.argmax(validation[..., ::-1], axis=-1)  # (c, g, o)
        validation, test = (
            np.take_along_axis(scores, own[..., None], axis=-1) for scores in (validation, test)
        )
    mean, mean_test = validation.mean(axis=1), test.mean(axis=1)  # (c, o, a)
    c, a = np.array([best_of(mean[:, o]) for o in range(n_outer)]).T
    folds = np.arange(n_outer)
    alphas = np.tile(a[:, None], n_guesses) if common_alpha else own[c, :, folds]
    return FoldChoices(c, alphas, mean_test[c, folds, a])


def best_of(validation: Floats) -> tuple[int, int]:
    """Return the position of the best score in (configurations, alphas)."""
    by_simplicity = validation.T[::-1]  # alphas from large, configurations as drawn
    a, c = np.unravel_index(np.argmax(by_simplicity), by_simplicity.shape)
    return int(c), validation.shape[1] - 1 - int(a)
