"""Step one of a study: from the scores of all networks to what each outer fold selects.

Each network has the penalty that validates best for it. An outer fold selects the configuration
with the best validation score, averaged over its networks (decision 6). Test scores have no say.
The same networks, cut after their first layer, give a second choice; with one penalty for all
networks of a configuration they give a third.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fdgnn.experiments.records import ChosenOnTestFolds, NetworkScores
from fdgnn.selection.rule import COMMON_PENALTY, PAPER, Choice, choose


class Selection(NamedTuple):
    """The choices that the scores of all networks lead to."""

    deep: Choice
    single_layer: Choice
    common_penalty: Choice
    on_test_folds: ChosenOnTestFolds
    seconds: float  # that all networks took


def select(networks: Iterable[NetworkScores], n_configurations: int, n_guesses: int) -> Selection:
    """Choose the best configuration of each outer fold, from all networks in any order."""
    ordered = sorted(networks, key=lambda n: (n.configuration, n.guess))
    shape = (n_configurations, n_guesses, *np.shape(ordered[0].test))  # (c, g, 2, n_outer, a)
    validation = np.array([n.validation for n in ordered]).reshape(shape)
    test = np.array([n.test for n in ordered]).reshape(shape)
    one, own = np.s_[:, :, :1], np.s_[:, :, 1:]  # depths
    mean = test[:, :, 1].mean(axis=1)  # (c, n_outer, a)
    return Selection(
        deep=choose(validation[own], test[own], PAPER),
        single_layer=choose(validation[one], test[one], PAPER),
        common_penalty=choose(validation[own], test[own], COMMON_PENALTY),
        on_test_folds=ChosenOnTestFolds(  # as in GIN's protocol
            one_for_all_folds=float(mean.mean(axis=1).max()),
            one_for_each_fold=float(mean.max(axis=(0, 2)).mean()),
        ),
        seconds=sum(n.seconds for n in ordered),
    )
