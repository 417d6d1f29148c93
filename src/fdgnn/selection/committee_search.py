"""The search of ``encoder="auto"``: nothing is drawn; members are fixed, each with its penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdgnn.committee import HeldOut
from fdgnn.encoders import GraphKind
from fdgnn.graphs import Floats, GraphBatch
from fdgnn.scikit import clone, is_classifier
from fdgnn.selection.committees import (
    CommitteeScores,
    MemberOutputs,
    all_outputs,
    members,
    score_committee,
)
from fdgnn.selection.findings import Findings, Workplace, ranks
from fdgnn.selection.scores import SelectionTask, score_outputs


@dataclass(frozen=True)
class CommitteeFindings(Findings):
    """The members, and what was found out about those that are kept.

    Attributes
    ----------
    base : the estimator, not fitted
    members : list
        Name and recipe of each member.
    chosen : list of HeldOut or None
        Penalty and held-out outputs of each member; None for one that is left out.
    """

    base: Any
    members: list[Any]
    chosen: list[HeldOut | None]

    def fitted(self, graphs: GraphBatch, y: Any, weights: Floats | None) -> Any:
        """Fit what was chosen on the graphs of the search."""
        return clone(self.base).fit(graphs, y, weights, self.chosen)

    def refitted(self, graphs: GraphBatch, y: Any, weights: Any) -> Any:
        """Fit what was chosen on other graphs.

        Members choose anew if they are other ones on so many graphs, or if each of several targets
        has a penalty of its own.
        """
        model = clone(self.base)
        own = [(m.name, m.recipe) for m in model.members(GraphKind.of(graphs), len(graphs))]
        penalties = [None if one is None else one.penalty for one in self.chosen]
        chosen = None
        if own == self.members and not any(isinstance(p, tuple) for p in penalties):
            chosen = [None if p is None else HeldOut(p, None) for p in penalties]
        return model.fit(graphs, y, weights, chosen)


@dataclass(frozen=True)
class CommitteeSearch:
    """The members of an estimator, whose seed is set: reservoirs take it."""

    base: Any

    def run(self, task: SelectionTask, place: Workplace) -> CommitteeFindings:
        """Let all members predict held-out graphs, and apply the rule in each row of folds."""
        own = members(task, self.base)
        names = [member.name for member in own]
        ordered, n_resumed = self._all_outputs(task, names, place)
        scores = score_committee(task, ordered, is_classifier(self.base))
        whole = [float(one.scores[-1]) for one in ordered]
        penalties = [_plain_penalty(one.penalties[-1]) for one in ordered]
        return CommitteeFindings(
            results=_results(task, names, penalties, ordered, scores),
            best_index=int(np.argmax(whole)),
            best_params={"encoder": self.base.encoder, "candidates": self.base.candidates},
            best_score=float(scores.validation[-1]),
            test_scores=scores.test[:-1],
            outputs=scores.outputs[:-1],
            n_resumed=n_resumed,
            base=self.base,
            members=[(member.name, member.recipe) for member in own],
            chosen=[
                HeldOut(alpha, one.outputs[-1]) if keep else None
                for alpha, one, keep in zip(penalties, ordered, scores.kept[-1], strict=True)
            ],
        )

    def _all_outputs(
        self, task: SelectionTask, names: list[str], place: Workplace
    ) -> tuple[list[MemberOutputs], int]:
        """Train all members but those that are finished already, and count these."""
        known = place.finished.find(names)
        found = [MemberOutputs(i, p, s, o, float(t)) for i, (p, s, o, t) in known.items()]
        left = [i for i in range(len(names)) if i not in known]
        outputs = all_outputs(task, self.base, left, place.context.n_jobs)
        for one in place.context.track(outputs, len(names), "models", done=len(known)):
            arrays = [one.penalties, one.scores, one.outputs, one.seconds]
            place.finished.keep(names[one.number], arrays)
            found.append(one)
        return sorted(found, key=lambda one: one.number), len(known)


def _results(
    task: SelectionTask, names: list[str], penalties: list[Any],
    ordered: list[MemberOutputs], scores: CommitteeScores,
) -> dict[str, Any]:  # fmt: skip
    """One row for each member, with its score on all graphs: no outer fold is left out."""
    whole = np.array([float(one.scores[-1]) for one in ordered])
    last = replace(task, folds=task.folds[-1:])
    alone = [score_outputs(last, one.outputs[-1:, None]).deviation for one in ordered]
    pairs = zip(names, penalties, strict=True)
    return {
        "params": [{"member": name, "alpha": alpha} for name, alpha in pairs],
        "param_member": np.array(names),
        "param_alpha": np.array(penalties),
        "kept": scores.kept[-1],
        "mean_test_score": whole,
        "std_test_score": np.array([float(each[0, 0]) for each in alone]),
        "rank_test_score": ranks(whole),
    }


def _plain_penalty(penalty: Any) -> Any:
    """A penalty as a number, or as a tuple with one for each of several targets."""
    return tuple(penalty.tolist()) if np.ndim(penalty) else float(penalty)
