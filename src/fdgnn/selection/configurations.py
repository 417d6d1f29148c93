"""The search of configurations: each is drawn as several networks, at all depths and penalties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.graphs import Floats, GraphBatch
from fdgnn.scikit import clone
from fdgnn.selection.findings import Findings, Workplace, ranks
from fdgnn.selection.nested import chosen_outputs
from fdgnn.selection.rule import ONE_MODEL, Choice, choose
from fdgnn.selection.scores import OutputScores, SelectionTask, candidates_of, score_candidates
from fdgnn.selection.space import Parameters, at_depth


@dataclass(frozen=True)
class ConfigurationFindings(Findings):
    """The best configuration, as an estimator that has it set."""

    estimator: Any

    def fitted(self, graphs: GraphBatch, y: Any, weights: Floats | None) -> Any:
        """Fit what was chosen on the graphs of the search."""
        return clone(self.estimator).fit(graphs, y, weights)

    def refitted(self, graphs: GraphBatch, y: Any, weights: Any) -> Any:
        """Fit what was chosen on other graphs."""
        return self.fitted(graphs, y, weights)


@dataclass(frozen=True)
class ConfigurationSearch:
    """What is tried: an estimator with these configurations, depths and guesses."""

    base: Any
    configurations: list[Parameters]
    depths: tuple[int, ...]
    n_guesses: int

    def run(self, task: SelectionTask, place: Workplace) -> ConfigurationFindings:
        """Score all configurations, and choose the best for each row of folds."""
        scores, n_resumed = self._scores(task, place)
        choice = choose(scores.validation[:, None], scores.test[:, None], ONE_MODEL)
        mean, deviation = scores.validation[:, :, -1], scores.deviation[:, :, -1]
        rows = list(np.ndindex(mean.shape))
        params = [self._parameters(c, d, float(task.alphas[a])) for c, d, a in rows]
        best = (choice.configurations[-1], choice.depths[-1], choice.penalties[-1, 0])
        index = rows.index(best)
        return ConfigurationFindings(
            results=_results(params, mean, deviation),
            best_index=index,
            best_params=params[index],
            best_score=float(mean[best]),
            test_scores=choice.scores[:-1],
            outputs=self._outputs(task, choice),
            n_resumed=n_resumed,
            estimator=clone(self.base).set_params(**params[index], n_networks=self.n_guesses),
        )

    def _parameters(self, configuration: int, depth: int, alpha: float) -> Parameters:
        own = self.configurations[configuration]
        return own | at_depth(self.base, self.depths[depth]) | {"alpha": alpha}

    def _estimators(self) -> list[Any]:
        return [clone(self.base).set_params(**c) for c in self.configurations]

    def _outputs(self, task: SelectionTask, choice: Choice) -> Floats:
        """What was chosen without each outer fold says of its graphs, (n_outer, n, q)."""
        cut = getattr(self.base, "threshold", None) is not None  # by graphs held out
        return chosen_outputs(task, self._estimators(), self.depths, choice, self.n_guesses, cut)

    def _scores(self, task: SelectionTask, place: Workplace) -> tuple[OutputScores, int]:
        """Score all configurations, but those that are finished already, and count these.

        Each part of the scores is (configurations, depths, n_outer, alphas).
        """
        estimators = self._estimators()
        depths = [self.depths] * len(estimators)
        candidates = candidates_of(estimators, depths, self.n_guesses, ONE_MODEL)
        names = [
            repr((self.configurations[c.configuration], c.depths, c.guesses)) for c in candidates
        ]
        known = place.finished.find(names)
        scores = {i: OutputScores(*arrays) for i, arrays in known.items()}
        left = [c for i, c in enumerate(candidates) if i not in known]
        found = score_candidates(task, left, place.context.n_jobs)
        for one in place.context.track(found, len(candidates), "configurations", done=len(known)):
            place.finished.keep(names[one.configuration], one.scores)
            scores[one.configuration] = one.scores
        parts = zip(*(scores[c] for c in range(len(candidates))), strict=True)
        return OutputScores(*(np.array(part) for part in parts)), len(known)


def _results(params: list[Parameters], mean: Floats, deviation: Floats) -> dict[str, Any]:
    """What cross validation on all graphs found: one row for each of the parameters."""
    names = dict.fromkeys(name for p in params for name in p)
    return {
        "params": params,
        **{f"param_{name}": np.array([p.get(name) for p in params]) for name in names},
        "mean_test_score": mean.ravel(),
        "std_test_score": deviation.ravel(),
        "rank_test_score": ranks(mean.ravel()),
    }
