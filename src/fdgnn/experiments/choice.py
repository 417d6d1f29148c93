"""From the scores of all networks to what each outer fold takes.

Each network takes the penalty that validates best for it; an outer fold takes the configuration
whose networks then validate best on average (decision 6). Test scores have no say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fdgnn.graphs import Array, Floats
from fdgnn.selection.scores import NetworkScores, best_of


class Choice(NamedTuple):
    """What each outer fold chose, and how well that does on its test graphs."""

    accuracies: Floats  # (n_outer,), averaged over guesses
    configurations: Array  # (n_outer,) their numbers
    penalties: Floats  # (n_outer, n_guesses)


class Selection(NamedTuple):
    """The choices that the scores of all networks lead to."""

    deep: Choice
    single_layer: Choice
    common_penalty: Choice  # as `deep`, but one penalty for all guesses of a configuration
    on_test_folds: dict[str, float]  # no honest estimates: chosen on the folds that are reported
    seconds: float  # that all networks took


def select(
    records: Iterable[NetworkScores], n_configurations: int, n_guesses: int, alphas: Floats
) -> Selection:
    """Take the best configuration of each outer fold; records are of all networks, in any order."""
    ordered = sorted(records, key=lambda r: (r.configuration, r.guess))
    shape = (n_configurations, n_guesses, *ordered[0].test.shape)  # (c, g, 2, n_outer, a)
    validation = np.array([r.validation for r in ordered]).reshape(shape)
    test = np.array([r.test for r in ordered]).reshape(shape)
    mean = test[:, :, 1].mean(axis=1)  # (c, n_outer, a)
    return Selection(
        _choose(validation[:, :, 1], test[:, :, 1], alphas),
        _choose(validation[:, :, 0], test[:, :, 0], alphas),
        _choose_in_common(validation[:, :, 1], test[:, :, 1], alphas),
        {  # as in GIN's protocol
            "one_for_all_folds": float(mean.mean(axis=1).max()),
            "one_for_each_fold": float(mean.max(axis=(0, 2)).mean()),
        },
        sum(r.seconds for r in ordered),
    )


def _choose(validation: Floats, test: Floats, alphas: Floats) -> Choice:
    """Choose from scores (c, g, n_outer, a): each guess its penalty, each fold a configuration.

    Among equals the strongest penalty wins, and the configuration that was drawn first.
    """
    last, folds = len(alphas) - 1, np.arange(validation.shape[2])
    own = last - np.argmax(validation[..., ::-1], axis=-1)  # (c, g, n_outer)
    best, then = (np.take_along_axis(s, own[..., None], -1)[..., 0] for s in (validation, test))
    chosen = best.mean(axis=1).argmax(axis=0)
    return Choice(then.mean(axis=1)[chosen, folds], chosen, alphas[own[chosen, :, folds]])


def _choose_in_common(validation: Floats, test: Floats, alphas: Floats) -> Choice:
    """The same with one penalty for all guesses of a configuration."""
    n_guesses, n_outer = validation.shape[1:3]
    means, tests = validation.mean(axis=1), test.mean(axis=1)
    best = [best_of(means[:, None, o]) for o in range(n_outer)]
    return Choice(
        np.array([tests[c, o, a] for o, (c, _, a) in enumerate(best)]),
        np.array([c for c, _, _ in best]),
        np.array([[alphas[a]] * n_guesses for _, _, a in best]),
    )
