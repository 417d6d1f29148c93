"""The search of a run, summed up from the scores of its networks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdgnn.evaluation.records import Configuration, RunResult, RunSettings
from fdgnn.evaluation.rundir import Run
from fdgnn.evaluation.study import drawn_configurations
from fdgnn.graphs import Floats


@dataclass(frozen=True)
class ConfigurationScore:
    """A configuration's validation accuracy over its guesses, each with its best penalty."""

    number: int
    configuration: Configuration
    alpha: float  # the penalty that most guesses take
    mean: float
    low: float
    high: float
    n_guesses: int


@dataclass(frozen=True)
class SearchSummary:
    """The networks of a run.

    Only validation scores are here: a page that shows how a choice was made must not show test
    scores.
    """

    configurations: Sequence[Configuration]
    alphas: Sequence[float]
    validation: Sequence[Floats]  # per configuration, (n_guesses, n_alphas); maybe no guesses
    n_estimators: int
    n_unreadable: int

    def means(self) -> dict[int, Floats]:
        """Means over guesses (n_alphas,), of the configurations that have guesses."""
        return {c: found.mean(axis=0) for c, found in enumerate(self.validation) if len(found)}

    def scores(self) -> list[ConfigurationScore]:
        """Sum up each configuration that has guesses."""
        return [
            self._score(c, found.max(axis=1), int(np.bincount(found.argmax(axis=1)).argmax()))
            for c, found in enumerate(self.validation)
            if len(found)
        ]

    def _score(self, c: int, best: Floats, usual: int) -> ConfigurationScore:
        return ConfigurationScore(
            number=c,
            configuration=self.configurations[c],
            alpha=self.alphas[usual],
            mean=float(best.mean()),
            low=float(best.min()),
            high=float(best.max()),
            n_guesses=len(best),
        )


def summarize_search(run: Run) -> SearchSummary | None:
    """Sum up the networks of a run; None if there are none that can be read."""
    if run.settings is None:
        return None
    n_unreadable = 0
    found: dict[int, dict[int, Floats]] = defaultdict(dict)
    for network in run.networks.lines():
        if network is None:
            n_unreadable += 1
            continue
        own_depth = np.array(network.validation[-1])  # (n_outer, n_alphas)
        found[network.configuration][network.guess] = own_depth.mean(axis=0)
    if not found:
        return None
    n, n_alphas = 1 + max(found), len(run.settings.alphas)
    return SearchSummary(
        configurations=_configurations(run.settings, run.result, n),
        alphas=run.settings.alphas,
        validation=[
            np.array([found[c][g] for g in sorted(found[c])]).reshape(-1, n_alphas)
            if c in found
            else np.empty((0, n_alphas))
            for c in range(n)
        ],
        n_estimators=sum(map(len, found.values())),
        n_unreadable=n_unreadable,
    )


def _configurations(
    settings: RunSettings, result: RunResult | None, n: int
) -> Sequence[Configuration]:
    """As the result lists them; a run without a result draws them again."""
    if result is not None and len(result.configurations) >= n:
        return result.configurations[:n]
    return drawn_configurations(settings.max_layers, settings.seed, n)
