"""Training one member of a model on parts: sparse features by passes, dense ones by moments."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.committee import HeldOut, Member, Penalty
from fdgnn.encoders import ColorCounts, Encoder, GraphReservoir
from fdgnn.expansion import RandomExpansion, expanded
from fdgnn.networks import Goal, Network, draw_expansion
from fdgnn.novelty import Novelty, SeenColors
from fdgnn.readout.conjugate import SparseRidge, Systems
from fdgnn.readout.linear import LinearReadout
from fdgnn.readout.passes import FEW, NOBODY, HeldParts, SamplePart, Totals
from fdgnn.readout.ridge import Moments
from fdgnn.scale.coding import N_FOLDS, Coding
from fdgnn.scale.executors import AsGraphs, AsSamples, ExecutedPasses, Executor, Tell
from fdgnn.scale.parts import ParsedPart, dense_features
from fdgnn.scale.survey import SurveyedGraphs

_ENTRY = 12  # bytes of an entry of a sparse matrix: a column, and a value if it is not 1


class TrainedMember(NamedTuple):
    """A member with its penalty and readout, and what it says of graphs held out."""

    network: Network
    held_out: HeldOut
    novelty: tuple[SeenColors, Floats] | None  # of the sampled graphs, where colors are counted


@dataclass(frozen=True, eq=False)
class MemberTask:
    """What the training of every member needs to know."""

    executor: Executor
    handles: Sequence[Any]  # of blocks of graphs
    graphs: SurveyedGraphs
    coding: Coding
    n_projections: int | None = None

    def train(
        self,
        member: Member,
        seed: np.random.SeedSequence,
        alphas: Sequence[float],
        goal: Goal,
        tell: Callable[[int, int], None],
    ) -> TrainedMember:
        """Draw the encoder of a member, choose its penalty, and train its readout."""
        encoder = member.encoder.draw(self.graphs, seed)  # type: ignore[arg-type]
        relative = bool(getattr(member.recipe, "relative", False))
        if isinstance(encoder, ColorCounts):
            trainer: Any = _Sparse(self, encoder, relative, tell)
        else:
            trainer = _Dense(self, encoder, seed, relative)
        outputs = trainer.held_out(np.array(alphas, dtype=np.float64))
        found = goal.best(outputs, alphas)
        if trainer.tried_on_few:
            times = _raised(self.coding) if len(alphas) > 1 else (1.0,)
            outputs = trainer.of_all(goal.penalty_of_outputs(found.penalty), np.array(times))
            raised = goal.best(outputs, times)
            found = HeldOut(_product(found.penalty, raised.penalty), raised.outputs)
        readout = trainer.finished(goal.penalty_of_outputs(found.penalty))
        network = Network(encoder, trainer.expansion, readout, found.penalty, member.name)
        return TrainedMember(network, found, trainer.novelty)


def _raised(coding: Coding) -> tuple[float, ...]:
    """By what penalties that some graphs chose are multiplied for all of them.

    Errors that are noise want the same penalty for any number of graphs; those of a model that is
    too simple want one that grows with it. Which of both it is, the graphs held out tell.
    """
    assert coding.tried is not None
    times = 1.0 / coding.tried
    return 1.0, times**0.5, times


def _product(penalty: Penalty, times: Penalty) -> Penalty:
    """Multiply penalties, of each target if there are several."""
    if isinstance(penalty, tuple):
        each = times if isinstance(times, tuple) else (times,) * len(penalty)
        return tuple(p * t for p, t in zip(penalty, each, strict=True))
    assert not isinstance(times, tuple)
    return penalty * times


def check_supported(members: Sequence[Member], graphs: SurveyedGraphs) -> None:
    """Raise ValueError for what cannot be trained out of core."""
    for member in members:
        encoder = member.encoder
        if member.recipe.name != "linear":
            raise ValueError("out of core only linear readouts are trained; leave `readout` out")
        if isinstance(encoder, ColorCounts):
            if encoder.n_buckets is None:
                raise ValueError("out of core colors are hashed; give `n_buckets` a number")
            if graphs.features is not None or not graphs.survey.whole_weights:
                raise ValueError(
                    "out of core colors cannot cut real features of vertices, or weights of arcs, "
                    "into bins; choose --model paper, or leave them out"
                )
        elif not isinstance(encoder, GraphReservoir):
            raise ValueError(
                f"{member.name} cannot be trained out of core; choose --model colors, auto or paper"
            )


# ---------------------------------------------------------------------- sparse features


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


class _Sparse:
    """Colors: conjugate gradients over passes."""

    expansion: RandomExpansion | None = None

    def __init__(self, task: MemberTask, encoder: ColorCounts, relative: bool, tell: Tell) -> None:
        self.task, self.tell = task, tell
        handles = task.executor.encode(task.handles, encoder, fingerprint(encoder))
        assert encoder.n_buckets is not None
        self.passes = ExecutedPasses(
            task.executor, handles, AsSamples(task.coding), encoder.n_buckets
        )
        self.ridge = SparseRidge(self.passes, tell, task.executor.solver_bytes)
        self.unit = (self.ridge.spread or 1.0) if relative else 1.0
        self.novelty: tuple[SeenColors, Floats] | None = None

    def held_out(self, alphas: Floats) -> Floats:
        """Outputs (alphas, n, q) of graphs held out, by models that have not seen their folds.

        Of many graphs, these models are trained on some of the others only.
        """
        q, coding = self.task.coding.n_outputs, self.task.coding
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
        allowed = self.task.executor.solver_bytes
        return allowed is None or n_entries * _ENTRY <= allowed / 4

    def _of_few(self, systems: Systems) -> tuple[Floats, Floats]:
        """Solve systems of few samples where these are together: no pass has to be waited for."""
        passes, executor = self.passes, self.task.executor
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
        step = _OwnOutputs(coef, intercept, self.task.coding.left_out, ridge.places, alone)
        found = passes.executor.gather(step, passes.handles, passes.loader)
        self.novelty = (
            SeenColors.of_columns(ridge.used, passes.n_columns),
            np.concatenate([share for _, share in found]),
        )
        return np.concatenate([outputs for outputs, _ in found]).transpose(1, 0, 2)

    @property
    def tried_on_few(self) -> bool:
        """Whether `held_out` was of models that some graphs only have trained."""
        return self.task.coding.tried is not None

    def of_all(self, alpha: float | Floats, times: Floats) -> Floats:
        """Outputs (times, n, q) of the fold held out, by models of all others.

        `alpha` was chosen by few graphs, and is multiplied; models begin with theirs.
        """
        q = self.task.coding.n_outputs
        each = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (q,))
        alphas, tried = self.tried
        near = np.stack([tried[:, np.argmax(alphas == a), j] for j, a in enumerate(each)], axis=1)
        fold, n = self.task.coding.left_out[0], len(times)
        penalties = (times[:, None] * each * self.unit).ravel()
        systems = Systems(np.full(n * q, fold), np.tile(np.arange(q), n), penalties)
        coef, intercept = self.ridge.fit(systems, np.tile(near, n))
        shape = 1, n, q
        self.raised = np.multiply.outer(times, each), coef.reshape(-1, n, q)
        return self._outputs(coef.reshape(-1, *shape), intercept.reshape(shape))

    def finished(self, alpha: float | Floats) -> LinearReadout:
        """The readout of all graphs, beginning with what was found without a fold."""
        q = self.task.coding.n_outputs
        each = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (q,))
        start = None
        if self.tried_on_few:
            alphas, found = self.raised
            nearest = [int(np.argmin(abs(alphas[:, j] - each[j]))) for j in range(q)]
            start = np.stack([found[:, a, j] for j, a in enumerate(nearest)], axis=1)
        systems = Systems(np.full(q, NOBODY), np.arange(q), each * self.unit)
        coef, intercept = self.ridge.fit(systems, start)
        return LinearReadout(self.ridge.spread_out(coef), intercept)


def fingerprint(encoder: ColorCounts) -> str:
    """Name what an encoder makes of graphs: the same for equal features."""
    ours = ("random_state", "n_jobs", "handle_unknown")
    parameters = {k: v for k, v in encoder.get_params(deep=False).items() if k not in ours}
    facts = facts_without_labels(encoder)
    about = repr((sorted(parameters.items()), facts, encoder.graph_kind_.vertices))
    return f"colors-{hashlib.sha256(about.encode()).hexdigest()[:16]}"


def facts_without_labels(encoder: ColorCounts) -> Any:
    """What is kept of an encoder but the labels, on which features do not depend."""
    facts = encoder.facts()
    labels = ("vocabulary", "arc_vocabulary")
    return {name: getattr(facts, name) for name in facts.__struct_fields__ if name not in labels}


# ---------------------------------------------------------------------- dense features


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
                own = None if weights is None else weights[rows, target.outputs.start]
                found = Moments.of(X[rows], Y[rows, target.outputs], own)
                n[f, t] += found.n
                x[f, t] += found.x
                y[f, target.outputs] += found.y
                xx[f, t] += found.xx
                xy[f, :, target.outputs] += found.xy


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


class _Dense:
    """A reservoir: moments of each fold, which add over parts."""

    novelty = None
    tried_on_few = False

    def __init__(
        self, task: MemberTask, encoder: Encoder, seed: np.random.SeedSequence, relative: bool
    ) -> None:
        self.task = task
        n = encoder.n_features_out
        assert n is not None
        self.expansion = draw_expansion(encoder, n, task.n_projections, seed)
        self.way = _DenseParts(encoder, self.expansion, task.coding)
        P = n if self.expansion is None else len(self.expansion.projection_)
        self.totals = task.executor.total(_MomentSums(self.way, P), task.handles, AsGraphs())
        (size, squares), sums = self.totals[5:]
        spread = (squares - (sums @ sums) / size) / size
        self.unit = (float(spread) if spread > 1e-12 * squares / size else 1.0) if relative else 1.0

    def _moments(self, target: int, folds: Array) -> Moments:
        n, x, y, xx, xy = self.totals[:5]
        own = self.task.coding.targets[target].outputs
        return Moments(
            float(n[folds, target].sum()), x[folds, target].sum(axis=0),
            y[folds][:, own].sum(axis=0), xx[folds, target].sum(axis=0),
            xy[folds][:, :, own].sum(axis=0),
        )  # fmt: skip

    def _solved(self, folds: Array, alphas: Floats) -> tuple[Floats, Floats]:
        """Weights (P, q) and intercepts (q,), a penalty for each output."""
        coefs, levels = [], []
        for t, target in enumerate(self.task.coding.targets):
            coef, level = self._moments(t, folds).solve(float(alphas[target.outputs.start]))
            coefs.append(coef.T)
            levels.append(level)
        return np.hstack(coefs), np.concatenate(levels)

    def held_out(self, alphas: Floats) -> Floats:
        q = self.task.coding.n_outputs
        solved = [
            self._solved(np.flatnonzero(np.arange(N_FOLDS) != f), np.full(q, alpha * self.unit))
            for f in range(N_FOLDS)
            for alpha in alphas
        ]
        shape = N_FOLDS, len(alphas)
        coef = np.stack([c for c, _ in solved]).reshape(*shape, -1, q)
        step = _DenseOutputs(self.way, coef, np.stack([b for _, b in solved]).reshape(*shape, q))
        found = self.task.executor.gather(step, self.task.handles, AsGraphs())
        return np.concatenate(found).transpose(1, 0, 2)

    def finished(self, alpha: float | Floats) -> LinearReadout:
        q = self.task.coding.n_outputs
        each = np.broadcast_to(np.asarray(alpha, dtype=np.float64) * self.unit, (q,))
        coef, intercept = self._solved(np.arange(N_FOLDS), each)
        return LinearReadout(np.ascontiguousarray(coef.T), intercept)


def novelty_of(trained: Sequence[TrainedMember]) -> Novelty | None:
    """How unlike the training graphs others are, by the first member that counts colors."""
    for number, member in enumerate(trained):
        if member.novelty is not None:
            return Novelty.of_own(number, *member.novelty)
    return None
