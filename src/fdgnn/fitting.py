"""Fit base models: encode, choose alpha by out-of-fold predictions, train readouts.

A *base model* is an encoder with a readout, neither of them fitted. `fit_depths` is the one routine
that fits it: for an estimator's `fit`, for searches and nested cross-validation, and for models
whose alpha is known. They differ only in the rows of folds of the
`FitTask`:

- no row: alpha is known, and nothing is predicted out of fold;
- one row, of all graphs: alpha is chosen by the predictions for each graph of the readouts that
  have not seen the graph's fold;
- more rows: one for each outer fold of a nested cross-validation, in which -1 marks the test graphs
  of the outer fold, and the row of all graphs as the last one. What is chosen in a row depends on
  the graphs in its folds alone.

The readouts that are returned are trained on all graphs, with the alpha that the last row chose:
what is scored is what is kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from sklearn.base import clone

from fdgnn.arrays import Array, Features, Floats, Ints
from fdgnn.encoders import Encoder, Encoding
from fdgnn.encoders.base import Convergence, check_features, check_rows
from fdgnn.encoders.descriptors import DescriptorBlock, with_descriptors
from fdgnn.expansion import RandomExpansion, expanded
from fdgnn.folds import TEST, TRAIN, UNUSED
from fdgnn.graphs import GraphBatch
from fdgnn.linear import (
    Chunks,
    KernelReadout,
    KernelRidge,
    LinearReadout,
    Ridge,
    RidgePath,
    Score,
    SparseReadout,
)
from fdgnn.metrics import Metric
from fdgnn.records import cached_property
from fdgnn.targets import Targets

_logger = logging.getLogger("fdgnn")

_BEYOND = 1.5
FEW_GRAPHS = 8  # whose outputs take one kernel call, because calls take longer than sums

Readout: TypeAlias = LinearReadout | SparseReadout | KernelReadout


class GraphSource(Protocol):
    """Graphs that are not in memory, with the attributes of a batch by which encoders are drawn."""

    def __len__(self) -> int: ...

    def encoded(self, encoder: Encoder, expansion: RandomExpansion | None) -> Chunks:
        """Return the features of the graphs, as the readout sees them, in chunks."""


# ---------------------------------------------------------------------- models


@dataclass(frozen=True)
class BaseModel:
    """An encoder and a readout, not fitted.

    Attributes
    ----------
    name : str
    encoder : Encoder
    readout : Ridge or KernelRidge
    seeds : tuple of SeedSequence
        One for each random initialization; their outputs are averaged.
    n_projections : int, optional
        Random features between encoder and readout; by default the encoder's factor decides.
    """

    name: str
    encoder: Encoder
    readout: Ridge | KernelRidge
    seeds: tuple[np.random.SeedSequence, ...]
    n_projections: int | None = None


@dataclass(frozen=True)
class FittedModel:
    """A fitted encoder, the random expansion of its features, and the trained readout."""

    encoder: Encoder
    expansion: RandomExpansion | None
    readout: Readout
    alpha: float | tuple[float, ...] | None = None  # of the readout; of several targets, of each
    name: str = ""  # of its base model
    descriptors: DescriptorBlock | None = None  # beside the encoder's features

    def features(self, graphs: GraphBatch, n_jobs: int | None = None) -> Features:
        """Return what the readout sees of checked graphs, (n_graphs, P)."""
        features = self.encoder.encode(graphs, n_jobs=n_jobs).features[0]
        check_rows(features, len(graphs), self.encoder)
        return self.seen(features, graphs)

    def seen(self, features: Features, graphs: GraphBatch) -> Features:
        """Return what the readout sees (n_graphs, P), given the encoder's features."""
        return with_descriptors(expanded(features, self.expansion), self.descriptors, graphs)

    def outputs(self, encoding: Encoding, graphs: GraphBatch) -> Floats:
        """Return the outputs (n_graphs, q) of eq. 3 for graphs that are encoded already."""
        X = encoding.features[0]
        dense = isinstance(X, np.ndarray)  # sooner than `issparse`
        if self._read_at_once is None or X.shape[0] > FEW_GRAPHS or not dense:
            return self.readout.outputs(self.seen(X, graphs))
        from fdgnn.kernels import read_out

        return np.asarray(read_out(np.ascontiguousarray(X, np.float64), *self._read_at_once))

    @cached_property
    def _read_at_once(self) -> tuple[Floats, Floats, Floats] | None:
        """W_phi^T, W_Y and b, where a linear readout sees nothing but random features."""
        if self.expansion is None or self.descriptors is not None:
            return None
        if not isinstance(self.readout, LinearReadout):
            return None
        return np.ascontiguousarray(self.expansion.projection_.T), *self.readout

    def lowered(self, by: float | Floats) -> FittedModel:
        """Return the same model with all outputs lower by a number, or each by its own."""
        return replace(self, readout=self.readout.lowered(by))

    def only(self, target: int, columns: slice) -> FittedModel:
        """Return the model of one of several targets, which has these columns of the outputs."""
        alpha = self.alpha[target] if isinstance(self.alpha, tuple) else self.alpha
        return replace(self, readout=self.readout.only(columns), alpha=alpha)


# ---------------------------------------------------------------------- what is fitted, and scored


class Scores(NamedTuple):
    """Scores of out-of-fold predictions, NaN where a fold has nothing to score."""

    splits: tuple[Floats, ...]  # of each row of folds: (n_folds, n_alphas, n_targets)
    validation: Floats  # (n_rows, n_alphas, n_targets), mean over the folds
    test: Floats  # (n_rows, n_alphas, n_targets), on the test graphs of an outer fold


class Choice(NamedTuple):
    """The alpha of each row of folds, and the predictions with that alpha."""

    positions: Ints  # (n_rows, n_targets), in the grid of alphas
    predictions: Floats  # (n_rows, n, q)
    scores: Scores  # of all alphas


@dataclass(frozen=True, eq=False)
class FitTask:
    """Targets, folds and metric that base models are fitted to and scored by.

    Attributes
    ----------
    targets : Targets
    folds : (n_rows, n) int
        The inner fold of each graph; `TEST` for test graphs of an outer fold, `UNUSED` for graphs
        that take no part, `TRAIN` for graphs that train every readout and are not predicted out
        of fold. May have no rows.
    metric : Metric
        What alpha is chosen by.
    weights : (n,) or (n, q), optional
        Weights of errors in training, above zero. Scores count all graphs alike.
    by_squares : bool, default=False
        Choose alpha by the squared error of outputs instead of the metric: of a few hundred graphs,
        accuracies of different alphas differ by chance.
    """

    targets: Targets
    folds: Ints
    metric: Metric
    weights: Floats | None = None
    by_squares: bool = False

    def choose(self, predictions: Floats, alphas: Sequence[float]) -> Choice:
        """Choose alpha in each row, for each target, by predictions (n_rows, n_alphas, n, q).

        Among equal scores the largest alpha, the most regularized model, wins.
        """
        scores = self.scored(predictions)
        compared = -self.mean_squares(predictions) if self.by_squares else scores.validation
        known = np.nan_to_num(compared[:, ::-1], nan=-np.inf)
        positions = len(alphas) - 1 - np.argmax(known, axis=1)  # (n_rows, n_targets)
        chosen = np.empty((len(self.folds), *predictions.shape[2:]))
        for row, of_targets in enumerate(positions):
            for target, position in zip(self.targets.each, of_targets, strict=True):
                chosen[row][:, target.columns] = predictions[row, position][:, target.columns]
        return Choice(positions, chosen, scores)

    def compared(self, rows: Ints, predictions: Floats) -> Floats:
        """Return by what alpha is chosen in some rows (m,), larger where it is better.

        Predictions are (m, n, q), the result (m, n_targets).
        """
        some, each = replace(self, folds=self.folds[rows]), predictions[:, None]
        if self.by_squares:
            return -some.mean_squares(each)[:, 0]
        return some.scored(each).validation[:, 0]

    def mean_squares(self, predictions: Floats) -> Floats:
        """Return the mean squared error in the folds of each row, (n_rows, n_alphas, n_targets).

        It is weighted as in training: otherwise balanced classes would count as imbalanced.
        """
        weights = np.broadcast_to(1.0, self.targets.coded.shape)
        if self.weights is not None:
            weights = np.broadcast_to(self.weights.reshape(len(weights), -1), weights.shape)
        found = np.empty((*predictions.shape[:2], len(self.targets.each)))
        for row, fold in enumerate(self.folds):
            for t, target in enumerate(self.targets.each):
                some = (fold >= 0) & self.targets.known[:, t]
                coded, own = (each[some, target.columns] for each in (self.targets.coded, weights))
                squares = squared_errors(predictions[row][:, some, target.columns], coded)
                found[row, :, t] = (squares * own).sum(axis=(1, 2)) / own.sum()
        return found

    def scored(self, predictions: Floats) -> Scores:
        """Score predictions (n_rows, n_alphas, n, q)."""
        splits, validation, test = [], [], []
        for fold, own in zip(self.folds, predictions, strict=True):
            members = [fold == f for f in range(fold.max(initial=-1) + 1)]
            each = np.stack([self._score(some, own) for some in members if some.any()])
            mean = mean_of_known(each)
            unscored = np.isnan(mean).all(axis=0)
            if unscored.any():  # folds so small that none can be scored alone are scored together
                mean[:, unscored] = self._score(fold >= 0, own)[:, unscored]
            splits.append(each)
            validation.append(mean)
            test.append(self._score(fold == TEST, own))
        return Scores(tuple(splits), np.array(validation), np.array(test))

    def _score(self, graphs: Array, predictions: Floats) -> Floats:
        """Score predictions (n_alphas, n, q) of some graphs: (n_alphas, n_targets).

        The predictions of an alpha that was not tried are NaN, and so are its scores.
        """
        found = np.full((len(predictions), len(self.targets.names)), np.nan)
        for t, target in enumerate(self.targets.each):
            some = graphs & self.targets.known[:, t]
            if some.any():
                own = predictions[:, some, target.columns]
                tried = ~np.isnan(own).any(axis=(1, 2))
                if tried.any():
                    found[tried, t] = self.metric(self.targets.values[some, t], own[tried])
        return found


def squared_errors(outputs: Floats, coded: Floats) -> Floats:
    """Return squared errors of outputs for classes, which are -1 and +1.

    Outputs beyond 1.5 count as 1.5: a graph far on the right side of the boundary is not an error.
    """
    return np.asarray((np.clip(outputs, -_BEYOND, _BEYOND) - coded) ** 2)


def mean_of_known(scores: Any) -> Floats:
    """Return the mean over the first axis of all scores that are not NaN; NaN where all are."""
    values = np.asarray(scores)
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


@dataclass(eq=False)
class ModelFit:
    """The result of fitting one base model.

    Attributes
    ----------
    name : str
    alphas : tuple of float
        The alphas that were tried.
    choice : Choice or None
        None if there was no row of folds.
    fitted : tuple of FittedModel
        One for each random initialization, trained on all graphs. Empty if it was not wanted.
    convergences : list of Convergence
        How the iterations of reservoirs ended on the training graphs.
    features : (n, n_features), or Chunks, optional
        The encoder's features of the training graphs, of the first initialization.
    seconds : float
        CPU seconds of this thread.
    more : tuple of (n_folds, n_alphas)
        Scores of further metrics in each fold of the last row.
    """

    name: str
    alphas: tuple[float, ...]
    choice: Choice | None
    fitted: tuple[FittedModel, ...]
    convergences: list[Convergence]
    features: Features | Chunks | None
    seconds: float = 0.0
    more: tuple[Floats, ...] = ()

    @property
    def alpha(self) -> float | tuple[float, ...]:
        """The alpha of the last row; of several targets one for each."""
        if self.choice is None:
            return self.alphas[0]
        each = tuple(self.alphas[p] for p in self.choice.positions[-1].tolist())
        return each[0] if len(each) == 1 else each

    @property
    def chosen_alphas(self) -> Floats:
        """The chosen alpha of each row of folds and target, (n_rows, n_targets)."""
        assert self.choice is not None
        return np.array(self.alphas)[self.choice.positions]

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a checkpoint; readouts are trained again from their alphas."""
        assert self.choice is not None
        positions, predictions, scores = self.choice
        return {
            "alphas": np.array(self.alphas),
            "positions": positions,
            "predictions": predictions,
            "validation": scores.validation,
            "test": scores.test,
            "n_folds": np.array([len(each) for each in scores.splits]),
            "splits": np.concatenate(scores.splits),
            "more": np.array(self.more),
            "seconds": np.array(self.seconds),
        }

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, Array]) -> ModelFit:
        """Return the fit of a checkpoint, without fitted readouts."""
        splits = tuple(np.split(arrays["splits"], np.cumsum(arrays["n_folds"])[:-1]))
        scores = Scores(splits, arrays["validation"], arrays["test"])
        choice = Choice(arrays["positions"], arrays["predictions"], scores)
        alphas, more = tuple(arrays["alphas"].tolist()), tuple(arrays["more"])
        return cls(name, alphas, choice, (), [], None, float(arrays["seconds"]), more)


# ---------------------------------------------------------------------- the routine


def fit_depths(
    base: BaseModel,
    graphs: GraphBatch | GraphSource,
    task: FitTask,
    depths: Sequence[int | None] = (None,),
    *,
    alphas: Sequence[float] | None = None,
    more: Mapping[str, Metric] | None = None,
    n_jobs: int | None = None,
    train: bool = True,
) -> list[ModelFit]:
    """Fit a base model: encode graphs, choose alpha in each row of folds, train on all graphs.

    Parameters
    ----------
    base : BaseModel
    graphs : GraphBatch or GraphSource
        Checked graphs in memory, or graphs in chunks out of core.
    task : FitTask
    depths : sequence of int or None
        Depths of the encoder, of which one pass of the deepest serves all; None: its own.
    alphas : sequence of float, optional
        What is tried; by default the grid of the readout.
    more : mapping of metrics, optional
        Further metrics to score by.
    n_jobs : int, optional
        Threads of the encoder.
    train : bool, default=True
        Otherwise there are only scores and predictions, no readouts of all graphs.

    Returns
    -------
    list of ModelFit
        One for each depth.
    """
    start = time.thread_time()  # of the processor, whatever else the machine does
    score = task.compared if alphas is None else None  # all alphas that are given are tried
    if alphas is None:
        alphas = base.readout.grid(len(graphs), task.targets.classify)
    by_seed = [_draw(base, seed, graphs, depths, n_jobs) for seed in base.seeds]
    fits = []
    for drawn in zip(*by_seed, strict=True):
        variants = [
            _fit_readouts(readout, drawn, task, tuple(alphas), score, more or {}, train)
            for readout in base.readout.variants(drawn[0].encoder.kernel_starts)
        ]
        fit = variants[0] if len(variants) == 1 else _best_of(variants, task)
        fit.seconds = time.thread_time() - start
        fits.append(fit)
    _logger.info("fitted %s on %d graphs in %.3g s", base.name, len(graphs), fits[-1].seconds)
    return fits


def draw_features(base: BaseModel, graphs: GraphBatch, depth: int | None = None) -> list[Features]:
    """Return what the readout of each random initialization sees, (n_graphs, P)."""
    return [_draw(base, seed, graphs, (depth,), None)[0].X for seed in base.seeds]


class _Drawn(NamedTuple):
    """One random initialization of a base model, before its readout is trained."""

    name: str
    encoder: Encoder
    expansion: RandomExpansion | None
    descriptors: DescriptorBlock | None
    features: Any  # of the encoder, Features or Chunks
    convergence: Convergence | None
    X: Any  # what the readout sees, Features or Chunks


def _draw(
    base: BaseModel,
    seed: np.random.SeedSequence,
    graphs: GraphBatch | GraphSource,
    depths: Sequence[int | None],
    n_jobs: int | None,
) -> list[_Drawn]:
    """Fit the encoder, encode the graphs, and draw the random expansion; for each depth."""
    encoder = clone(base.encoder)
    if not isinstance(graphs, GraphBatch):  # features are encoded in chunks, when they are needed
        n: Any = encoder.draw(graphs, seed).n_features_out
        expansion = draw_expansion(encoder, n, base.n_projections, seed)
        X: Any = graphs.encoded(encoder, expansion)
        return [_Drawn(base.name, encoder, expansion, None, X, None, X)] * len(depths)
    # 1. Fit and encode once, by the deepest encoder.
    name = encoder.depth_parameter
    known = [depth for depth in depths if depth is not None]
    if known and name is not None:
        encoder.set_params(**{name: max(known)}).draw(graphs, seed)
        features, convergence = encoder.encode(graphs, known, n_jobs)
        encoders = [clone(encoder).set_params(**{name: d}).draw(graphs, seed) for d in known]
    else:
        encoder.draw(graphs, seed)
        features, convergence = encoder.encode(graphs, n_jobs=n_jobs)
        features, encoders = features * len(depths), [encoder] * len(depths)
    # 2. Draw the expansion for each depth, and add graph-level features.
    drawn = []
    for own, F in zip(encoders, features, strict=True):
        check_features(F, len(graphs), own)
        expansion = draw_expansion(own, F.shape[1], base.n_projections, seed)
        X, block = expanded(F, expansion), None
        if graphs.descriptors is not None:
            block = DescriptorBlock.of(graphs.descriptors, X)
            X = with_descriptors(X, block, graphs)
        drawn.append(_Drawn(base.name, own, expansion, block, F, convergence, X))
    return drawn


def _fit_readouts(
    readout: Ridge | KernelRidge,
    drawn: Sequence[_Drawn],
    task: FitTask,
    alphas: tuple[float, ...],
    score: Score | None,
    more: Mapping[str, Metric],
    train: bool,
) -> ModelFit:
    """Choose one alpha for all initializations, and train their readouts."""
    Y, folds = task.targets.coded, task.folds
    if len(folds):
        folds = np.where(folds == UNUSED, TEST, folds)
        if not isinstance(drawn[0].X, Chunks):
            # In memory they are one more fold, whose predictions nobody looks at.
            folds = np.where(folds == TRAIN, folds.max(axis=1, keepdims=True) + 1, folds)
    convergences = [each.convergence for each in drawn if each.convergence is not None]
    found = ModelFit(drawn[0].name, alphas, None, (), convergences, drawn[0].features)
    try:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # 1. Solve all folds and alphas.
            paths: list[RidgePath] = [
                readout.solve(
                    each.X, Y, alphas, folds, task.weights, each.encoder.kernel_starts, score
                )
                for each in drawn
            ]
            # 2. Choose alpha by the mean of their out-of-fold predictions.
            if len(folds):
                total = sum((path.predictions for path in paths[1:]), paths[0].predictions)
                predictions = total / len(paths)
                found.choice = task.choose(predictions, alphas)
                predicted = (folds >= 0)[:, :, None] & ~np.isnan(Y)
                if not np.isfinite(found.choice.predictions[predicted]).all():
                    raise np.linalg.LinAlgError
                last = replace(task, folds=task.folds[-1:])
                scored = (replace(last, metric=m).scored(predictions[-1:]) for m in more.values())
                found.more = tuple(each.splits[0].mean(axis=-1) for each in scored)
            # 3. Train the readouts on all graphs.
            alpha: Any = found.alpha
            widths = [target.columns.stop - target.columns.start for target in task.targets.each]
            of_outputs = np.repeat(alpha, widths) if isinstance(alpha, tuple) else alpha
            for own, path in zip(drawn, paths, strict=True) if train else ():
                fitted = path.readout(of_outputs)
                weights = fitted.dual if isinstance(fitted, KernelReadout) else fitted.coef
                if not np.isfinite(weights).all():
                    raise np.linalg.LinAlgError
                parts = own.encoder, own.expansion, fitted, alpha, own.name, own.descriptors
                found.fitted += (FittedModel(*parts),)
    except np.linalg.LinAlgError:  # which an alpha next to zero may cause
        raise ValueError(
            f"alpha={min(alphas):g}: the readout has no finite solution with this regularization "
            "strength; give a larger one"
        ) from None
    return found


def _best_of(fits: list[ModelFit], task: FitTask) -> ModelFit:
    """Choose one of several readouts in each row of folds; without any, the middle one."""
    choices = [fit.choice for fit in fits if fit.choice is not None]
    if not choices:
        return fits[len(fits) // 2]
    rows = np.arange(len(task.folds))
    compared = [task.compared(rows, choice.predictions).mean(axis=1) for choice in choices]
    best = np.argmax(np.nan_to_num(compared, nan=-np.inf), axis=0).tolist()
    splits, validation, test = zip(*(choice.scores for choice in choices), strict=True)
    scores = Scores(
        tuple(splits[b][row] for row, b in enumerate(best)),
        np.stack(validation)[best, rows],
        np.stack(test)[best, rows],
    )
    positions = np.stack([choice.positions for choice in choices])[best, rows]
    predictions = np.stack([choice.predictions for choice in choices])[best, rows]
    fit: ModelFit = fits[best[-1]]
    fit.choice = Choice(positions, predictions, scores)
    return fit


def draw_expansion(
    encoder: Encoder, n_features: int, n_projections: int | None, seed: np.random.SeedSequence
) -> RandomExpansion | None:
    """Draw the requested number of random features, or the encoder's default."""
    P = encoder.expanded_size(n_features, n_projections)
    return RandomExpansion(P).draw(n_features, seed, encoder.expansion_norm) if P else None
