"""Training a readout of a reservoir on parts: dense features, whose moments add."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.encoders import Encoder
from fdgnn.expansion import RandomExpansion, expanded
from fdgnn.fitting import draw_expansion
from fdgnn.folds import N_FOLDS
from fdgnn.linear.blocks import Totals
from fdgnn.linear.gram import Moments
from fdgnn.linear.ridge import LinearReadout
from fdgnn.scale.coding import Coding
from fdgnn.scale.executors import AsGraphs, TrainingParts
from fdgnn.scale.parts import ParsedPart, dense_features


@dataclass(frozen=True)
class _DenseParts:
    """The way from graphs to what a readout sees of them."""

    encoder: Encoder
    expansion: RandomExpansion | None
    coding: Coding

    def features(self, part: ParsedPart) -> Floats:
        return np.asarray(expanded(dense_features(part, self.encoder), self.expansion))


@dataclass(frozen=True)
class _MomentSums:
    """Moments of each fold and target, and of all graphs their number, sum and squares."""

    way: _DenseParts
    n_columns: int

    def begin(self) -> Totals:
        P, T, q = self.n_columns, len(self.way.coding.names), self.way.coding.n_outputs
        each = (N_FOLDS, T), (N_FOLDS, T, P), (N_FOLDS, q), (N_FOLDS, T, P, P), (N_FOLDS, P, q)
        return *map(np.zeros, each), np.zeros(2), np.zeros(P)

    def add(self, totals: Totals, part: ParsedPart) -> None:
        if part.graphs is None:
            return
        n, x, y, xx, xy, sizes, sums = totals
        coding, X = self.way.coding, self.way.features(part)
        values, fold = coding.values(part.answers), coding.folds(part.answers)
        Y, weights = values.coded, coding.weights(values)
        sizes += len(X), (X**2).sum()
        sums += X.sum(axis=0)
        for t, target in enumerate(coding.targets):
            for f in range(N_FOLDS):
                rows = np.flatnonzero((fold == f) & values.known[:, t])
                own = None if weights is None else weights[rows, target.columns.start]
                found = Moments.of(X[rows], Y[rows, target.columns], own)
                n[f, t] += found.n
                x[f, t] += found.x
                y[f, target.columns] += found.y
                xx[f, t] += found.xx
                xy[f, :, target.columns] += found.xy


@dataclass(frozen=True)
class _DenseOutputs:
    """Outputs of each sampled graph, by the regressions that have not seen its fold."""

    way: _DenseParts
    coef: Floats  # (folds, alphas, P, outputs)
    intercept: Floats

    def __call__(self, part: ParsedPart) -> Floats:
        shape = self.intercept.shape[1:]
        if part.graphs is None:
            return np.empty((0, *shape))
        coding = self.way.coding
        some, fold = coding.sampled(part.answers), coding.folds(part.answers)
        chosen = part._replace(graphs=part.graphs if some.all() else part.graphs[some])
        if not some.any():
            return np.empty((0, *shape))
        X, own = self.way.features(chosen), fold[some]
        outputs = np.empty((len(X), *shape))
        for f in range(N_FOLDS):
            rows = np.flatnonzero(own == f)
            outputs[rows] = np.einsum("np,apq->naq", X[rows], self.coef[f]) + self.intercept[f]
        return outputs


class DenseTraining:
    """A reservoir: moments of each fold, which add over parts."""

    novelty = None
    tried_on_few = False

    def __init__(
        self,
        parts: TrainingParts,
        encoder: Encoder,
        relative: bool,
        n_projections: int | None,
        seed: np.random.SeedSequence,
    ) -> None:
        self.parts, self.coding, self.encoder = parts, parts.coding, encoder
        n = encoder.n_features_out
        assert n is not None
        self.expansion = draw_expansion(encoder, n, n_projections, seed)
        self.way = _DenseParts(encoder, self.expansion, parts.coding)
        P = n if self.expansion is None else len(self.expansion.projection_)
        self.totals = parts.executor.total(_MomentSums(self.way, P), parts.handles, AsGraphs())
        (size, squares), sums = self.totals[5:]
        spread = (squares - (sums @ sums) / size) / size
        self.unit = (float(spread) if spread > 1e-12 * squares / size else 1.0) if relative else 1.0

    def _moments(self, target: int, folds: Array) -> Moments:
        n, x, y, xx, xy = self.totals[:5]
        own = self.coding.targets[target].columns
        return Moments(
            float(n[folds, target].sum()) or 1.0,  # where none is left, all sums are 0
            x[folds, target].sum(axis=0),
            y[folds][:, own].sum(axis=0), xx[folds, target].sum(axis=0),
            xy[folds][:, :, own].sum(axis=0),
        )  # fmt: skip

    def _solved(self, folds: Array, alphas: Floats) -> tuple[Floats, Floats]:
        """Weights (P, q) and intercepts (q,), a penalty for each output."""
        coefs, levels = [], []
        for t, target in enumerate(self.coding.targets):
            coef, level = self._moments(t, folds).solve(float(alphas[target.columns.start]))
            coefs.append(coef.T)
            levels.append(level)
        return np.hstack(coefs), np.concatenate(levels)

    def held_out(self, alphas: Floats) -> Floats:
        """Outputs (alphas, n, q) of sampled graphs, by models that have not seen their folds."""
        q = self.coding.n_outputs
        solved = [
            self._solved(np.flatnonzero(np.arange(N_FOLDS) != f), np.full(q, alpha * self.unit))
            for f in range(N_FOLDS)
            for alpha in alphas
        ]
        shape = N_FOLDS, len(alphas)
        coef = np.stack([c for c, _ in solved]).reshape(*shape, -1, q)
        step = _DenseOutputs(self.way, coef, np.stack([b for _, b in solved]).reshape(*shape, q))
        found = self.parts.executor.gather(step, self.parts.handles, AsGraphs())
        return np.concatenate(found).transpose(1, 0, 2)

    def finished(self, alpha: float | Floats) -> LinearReadout:
        """Train the readout on all graphs."""
        q = self.coding.n_outputs
        each = np.broadcast_to(np.asarray(alpha, dtype=np.float64) * self.unit, (q,))
        coef, intercept = self._solved(np.arange(N_FOLDS), each)
        return LinearReadout(np.ascontiguousarray(coef.T), intercept)
