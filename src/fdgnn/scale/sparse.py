"""Training a readout of colors on parts: sparse features, by conjugate gradients over passes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.applicability import SeenFeatures
from fdgnn.arrays import Array, Floats
from fdgnn.encoders import WLCounts
from fdgnn.expansion import RandomExpansion
from fdgnn.linear.blocks import FEW, NOBODY, HeldParts, SamplePart
from fdgnn.linear.conjugate import SparseRidge, Systems
from fdgnn.linear.ridge import LinearReadout
from fdgnn.scale.executors import AsSamples, ExecutedPasses, Tell, TrainingParts

_ENTRY = 12  # bytes of an entry of a sparse matrix: a column, and a value if it is not 1


@dataclass(frozen=True)
class _OwnOutputs:
    """Outputs of each sampled graph, by the regressions that have not seen its fold."""

    coef: Floats  # (n_used, folds, alphas, outputs)
    intercept: Floats
    left_out: tuple[int, ...]  # these folds
    places: Array
    alone: Array  # (P,) whether a column occurs in one graph only

    def __call__(self, part: SamplePart) -> tuple[Array, ...]:
        some = np.ones(len(part.fold), bool) if part.sampled is None else part.sampled
        outputs = np.empty((len(part.fold), *self.intercept.shape[1:]))
        X = part.rows(len(self.coef), self.places)
        for number, f in enumerate(self.left_out):
            rows = np.flatnonzero((part.fold == f) & some)
            flat = self.coef[:, number].reshape(len(self.coef), -1)
            outputs[rows] = (X[rows] @ flat).reshape(-1, *self.intercept.shape[1:])
            outputs[rows] += self.intercept[number]
        lengths = np.maximum(np.diff(part.indptr), 1)
        before = np.concatenate([[0], np.cumsum(self.alone[part.indices])])
        share = (before[part.indptr[1:]] - before[part.indptr[:-1]]) / lengths
        return outputs[some], share[some]


def _few_of(part: SamplePart) -> SamplePart:
    """Give the samples of a part by which penalties are tried."""
    assert part.few is not None
    return part.some(part.few)


@dataclass(frozen=True)
class _FewSolved:
    """Regressions of few samples, brought together: weights of the columns that they have."""

    systems: Systems
    n_columns: int
    n_bytes: int | None

    def __call__(
        self, parts: Sequence[SamplePart], n_jobs: int | None, tell: Tell
    ) -> tuple[Array, Floats, Floats]:
        ridge = SparseRidge(HeldParts(parts, self.n_columns, n_jobs), tell, self.n_bytes)
        return ridge.used, *ridge.fit(self.systems)


class SparseTraining:
    """Colors: conjugate gradients over passes."""

    expansion: RandomExpansion | None = None

    def __init__(self, parts: TrainingParts, encoder: WLCounts, relative: bool, tell: Tell) -> None:
        self.coding, self.tell, self.encoder = parts.coding, tell, encoder
        handles = parts.executor.encode(parts.handles, encoder, fingerprint(encoder))
        assert encoder.n_features is not None
        self.passes = ExecutedPasses(
            parts.executor, handles, AsSamples(parts.coding), encoder.n_features
        )
        self.ridge = SparseRidge(self.passes, tell, parts.executor.solver_bytes)
        self.unit = (self.ridge.spread or 1.0) if relative else 1.0
        self.novelty: tuple[SeenFeatures, Floats] | None = None

    def held_out(self, alphas: Floats) -> Floats:
        """Outputs (alphas, n, q) of graphs held out, by models that have not seen their folds.

        Of many graphs, these models are trained on some of the others only.
        """
        q, coding = self.coding.n_outputs, self.coding
        left_out = np.array(coding.left_out if coding.tried is None else [FEW])
        systems = Systems.all_of(left_out, q, alphas * self.unit)
        together = coding.tried is not None and self._fits(coding.tried)
        coef, intercept = (self._of_few if together else self.ridge.fit)(systems)
        shape = len(coding.left_out), len(alphas), q
        coef, intercept = coef.reshape(-1, *shape), intercept.reshape(shape)
        self.tried = alphas, coef[:, 0]
        return self._outputs(coef, intercept)

    def _fits(self, share: float) -> bool:
        """Tell whether a share of the samples takes a quarter of the solver's memory at most."""
        n_entries = share * self.ridge.n * float(self.ridge.mean.sum())
        allowed = self.passes.executor.solver_bytes
        return allowed is None or n_entries * _ENTRY <= allowed / 4

    def _of_few(self, systems: Systems) -> tuple[Floats, Floats]:
        """Solve systems of few samples where these are together: no pass has to be waited for."""
        passes, executor = self.passes, self.passes.executor
        n = min(executor.n_places, len(systems.alpha))
        lots = [slice(first, None, n) for first in range(n)]  # penalties near each other apart
        works = [
            _FewSolved(systems.some(own), passes.n_columns, executor.solver_bytes) for own in lots
        ]
        found = executor.whole(_few_of, passes.handles, passes.loader, works, self.tell)
        coef = np.zeros((len(self.ridge.used), len(systems.alpha)))
        intercept = np.empty(len(systems.alpha))
        for own, (columns, some, levels) in zip(lots, found, strict=True):
            coef[self.ridge.places[columns], own] = some
            intercept[own] = levels
        return coef, intercept

    def _outputs(self, coef: Floats, intercept: Floats) -> Floats:
        """Outputs (alphas, n, q) of the sampled graphs, each by the model without its fold."""
        passes, ridge = self.passes, self.ridge
        alone = np.zeros(passes.n_columns, dtype=np.int64)
        alone[ridge.used[ridge.mean * ridge.n <= 1.5]] = 1
        step = _OwnOutputs(coef, intercept, self.coding.left_out, ridge.places, alone)
        found = passes.executor.gather(step, passes.handles, passes.loader)
        self.novelty = (
            SeenFeatures.of_columns(ridge.used, passes.n_columns),
            np.concatenate([share for _, share in found]),
        )
        return np.concatenate([outputs for outputs, _ in found]).transpose(1, 0, 2)

    @property
    def tried_on_few(self) -> bool:
        """Whether `held_out` was of models that some graphs only have trained."""
        return self.coding.tried is not None

    def of_all(self, alpha: float | Floats, times: Floats) -> Floats:
        """Outputs (times, n, q) of the fold held out, by models of all others.

        `alpha` was chosen by few graphs, and is multiplied; models begin with theirs.
        """
        q = self.coding.n_outputs
        each = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (q,))
        alphas, tried = self.tried
        near = np.stack([tried[:, np.argmax(alphas == a), j] for j, a in enumerate(each)], axis=1)
        fold, n = self.coding.left_out[0], len(times)
        penalties = (times[:, None] * each * self.unit).ravel()
        systems = Systems(np.full(n * q, fold), np.tile(np.arange(q), n), penalties)
        coef, intercept = self.ridge.fit(systems, np.tile(near, n))
        shape = 1, n, q
        self.raised = np.multiply.outer(times, each), coef.reshape(-1, n, q)
        return self._outputs(coef.reshape(-1, *shape), intercept.reshape(shape))

    def finished(self, alpha: float | Floats) -> LinearReadout:
        """The readout of all graphs, beginning with what was found without a fold."""
        q = self.coding.n_outputs
        each = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (q,))
        start = None
        if self.tried_on_few:
            alphas, found = self.raised
            nearest = [int(np.argmin(abs(alphas[:, j] - each[j]))) for j in range(q)]
            start = np.stack([found[:, a, j] for j, a in enumerate(nearest)], axis=1)
        systems = Systems(np.full(q, NOBODY), np.arange(q), each * self.unit)
        coef, intercept = self.ridge.fit(systems, start)
        return LinearReadout(self.ridge.spread_out(coef), intercept)


def fingerprint(encoder: WLCounts) -> str:
    """Name what an encoder makes of graphs: the same for equal features."""
    ours = ("random_state", "n_jobs", "handle_unknown")
    parameters = {k: v for k, v in encoder.get_params(deep=False).items() if k not in ours}
    facts = facts_without_labels(encoder)
    about = repr((sorted(parameters.items()), facts, encoder.graph_kind_.vertices))
    return f"colors-{hashlib.sha256(about.encode()).hexdigest()[:16]}"


def facts_without_labels(encoder: WLCounts) -> Any:
    """What is kept of an encoder but the labels, on which features do not depend."""
    facts = encoder.facts()
    labels = ("vocabulary", "arc_vocabulary")
    return {name: getattr(facts, name) for name in facts.__struct_fields__ if name not in labels}
