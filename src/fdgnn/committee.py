"""Models that are trained side by side, and the rule by which their outputs are averaged.

A *member* is an encoder with a way to train its readout. Each member takes the penalty with the
best held-out score. Then outputs are averaged over all members but those that are clearly worse:
whose held-out error exceeds that of the best member by more than three standard errors of the
difference, graph by graph, and by more than a hundredth. The error is the squared one, or, where
graphs are to be ranked (ROC AUC, average precision), the share of pairs of a graph of a class and
one of another that stand in the wrong order. So a choice is made only where
validation can tell members apart, and where it matters; among equals, an average is better than the
best of them (docs/decisions/0031-committee.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Features, Floats, Ints
from fdgnn.encoders import ColorCounts, Encoder, GraphKind, GraphReservoir, JoinedEncoder
from fdgnn.readout.dual import MOST_SAMPLES
from fdgnn.readout.gaussian import GaussianReadout, GaussianRidge
from fdgnn.readout.linear import LinearReadout, LinearRidge, SparseReadout
from fdgnn.texts import counted

Readout: TypeAlias = LinearReadout | SparseReadout | GaussianReadout

Mask = npt.NDArray[np.bool_]
#: Of a readout; of several targets, one for each.
Penalty: TypeAlias = float | tuple[float, ...]

#: Penalties that are tried where they count in units of the features' own size: for classes, and
#: for real targets, which carry less noise; and on many graphs, solved step by step.
PENALTIES: tuple[float, ...] = (1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
LARGE_PENALTIES: tuple[float, ...] = (3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0, 30.0)
SMALL_PENALTIES: tuple[float, ...] = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0)
CLEARLY_WORSE = 3.0  # standard errors
_MATTERS = 0.01  # of the best member's error: on many graphs even less is beyond chance
_BEYOND = 1.5  # outputs for targets -1 and +1 are cut off here before errors are squared


class ReadoutRecipe(Protocol):
    """A way to train a readout."""

    @property
    def name(self) -> str:
        """Say which, as in ``FDGNNClassifier(readout=...)``."""

    def fit(
        self, X: Features, Y: Floats, alpha: float | Floats, weights: Floats | None = None
    ) -> Any:
        """Train a readout on features (n, P) and targets (n, q), NaN where they are unknown.

        `alpha` is one penalty, or (q,) one for each output; weights are (n,) or (n, q).
        """

    def held_out(
        self, X: Features, Y: Floats, alphas: Floats, folds: Ints, weights: Floats | None = None
    ) -> Floats:
        """Predict each sample without its fold, for all rows of folds: (n_rows, a, n, q).

        NaN where the target is unknown.
        """


@dataclass(frozen=True)
class Member:
    """An encoder that is not fitted yet, and how its readout is trained."""

    name: str
    encoder: Encoder
    recipe: ReadoutRecipe


def recipe_of(encoder: Encoder | type[Encoder], readout: str, n_graphs: int) -> ReadoutRecipe:
    """Give the way to train a readout of that name; "auto" is what suits the encoder."""
    if readout == "auto":
        suits = encoder.gaussian_readout and n_graphs <= MOST_SAMPLES
        readout = "gaussian" if suits else "linear"
    return GaussianRidge() if readout == "gaussian" else LinearRidge(encoder.relative_penalty)


#: Which models ``encoder="auto"`` trains.
CANDIDATES = ("all", "colors", "both")


def members_of(
    kind: GraphKind, n_graphs: int, candidates: str = "all", handle_unknown: str | None = None
) -> tuple[Member, ...]:
    """Give the members of ``encoder="auto"``: few, and the same for all graphs of a kind."""
    wanted = {"all": _mixed, "colors": _colors_only, "both": _joined}[candidates](kind)
    few = n_graphs <= MOST_SAMPLES
    return tuple(
        Member(
            name,
            handling_unknown(encoder, handle_unknown or "ignore"),
            _relative(recipe_of(encoder, readout, n_graphs)),
        )
        for name, encoder, readout in wanted
        if few or readout != "gaussian"
    )


def handling_unknown(encoder: Encoder, how: str | None) -> Encoder:
    """Say what an encoder, or each that it joins, does about new labels; None: as it is."""
    if how is None:
        return encoder
    for each in getattr(encoder, "encoders", (encoder,)):
        if "handle_unknown" not in each.get_params(deep=False):
            raise ValueError(f"handle_unknown={how!r}: a {type(each).__name__} has no such choice")
        each.set_params(handle_unknown=how)
    return encoder


_Wanted: TypeAlias = list[tuple[str, Encoder, str]]  # name, encoder, readout


def _mixed(kind: GraphKind) -> _Wanted:
    if kind.vertices == "nothing":
        return _structure()
    return [
        ("colors, 2 rounds", ColorCounts(n_rounds=2), "auto"),
        ("colors, 3 rounds", ColorCounts(n_rounds=3), "auto"),
        ("reservoir", _reservoir(), "linear"),
        ("another reservoir", _reservoir(), "linear"),
    ]


def _colors_only(kind: GraphKind) -> _Wanted:
    if kind.vertices == "nothing":
        return _structure()
    return [(f"colors, {_rounds(r)}", ColorCounts(n_rounds=r), "auto") for r in (1, 2, 3, 4)]


def _joined(kind: GraphKind) -> _Wanted:
    rounds = (0, 1) if kind.vertices == "nothing" else (2, 3)
    return [
        (f"reservoir and colors, {_rounds(r)}, {readout}", _with_reservoir(r), readout)
        for r in rounds
        for readout in ("linear", "gaussian")
    ]


def _rounds(n: int) -> str:
    return counted(n, "round")


def _structure() -> _Wanted:
    """Colors of vertices without labels: exact degrees, degrees in bins, and histograms."""

    def of_degrees(vertices: str, n_rounds: int) -> ColorCounts:
        return ColorCounts(n_rounds=n_rounds, vertices=vertices, histograms=False)

    return [
        ("degrees, refined once", of_degrees("degree", 1), "linear"),
        ("degrees in bins, refined once", of_degrees("log degree", 1), "linear"),
        ("structure", ColorCounts(n_rounds=0), "linear"),
        ("structure, Gaussian", ColorCounts(n_rounds=0), "gaussian"),
        ("degrees, Gaussian", of_degrees("degree", 0), "gaussian"),
    ]


def _reservoir() -> Encoder:
    return GraphReservoir(n_units=300)


def _with_reservoir(n_rounds: int) -> Encoder:
    return JoinedEncoder([_reservoir(), ColorCounts(n_rounds=n_rounds)])


def _relative(recipe: ReadoutRecipe) -> ReadoutRecipe:
    """All members choose among the same penalties, so these count in units of the features."""
    return LinearRidge(relative=True) if isinstance(recipe, LinearRidge) else recipe


# ---------------------------------------------------------------------- the rule


class HeldOut(NamedTuple):
    """What one member says of graphs that its readout has not seen."""

    penalty: Any  # a `Penalty`
    outputs: Any  # (n, q), or None where the penalty was known and nothing had to be held out


def at_best_penalty(outputs: Floats, scores: Floats, alphas: Sequence[float]) -> HeldOut:
    """Take the penalty of the best score (a,) for outputs (a, n, q); among equals the largest."""
    known = np.nan_to_num(scores[::-1], nan=-np.inf)  # a rank correlation of constants is none
    best = len(alphas) - 1 - int(np.argmax(known))
    return HeldOut(float(alphas[best]), outputs[best])


def kept_members(
    outputs: Sequence[Floats] | Floats, targets: Floats, classify: bool, ranking: bool = False
) -> Mask:
    """Tell which members are averaged: all but the clearly worse."""
    return np.asarray(~clearly_worse(outputs, targets, classify, ranking))


def clearly_worse(
    outputs: Sequence[Floats] | Floats,
    targets: Floats,
    classify: bool,
    ranking: bool = False,
    limit: float = CLEARLY_WORSE,
) -> Mask:
    """Tell which members are worse than the best by more than `limit` standard errors, and 1 %.

    Outputs of each member and targets are (n, q), NaN where a target is unknown. All are compared
    on the same graphs, so that the difference of two errors has a small standard error where both
    err alike. With `ranking`, errors are pairs in the wrong order, for targets -1 and +1.
    """
    found = np.asarray(outputs)
    errors = _misplaced(found, targets) if ranking else _squared(found, targets, classify)
    best = np.argmin(errors.mean)
    worse = errors.mean - errors.mean[best]
    standard_error = np.sqrt(((errors.parts - errors.parts[best]) ** 2).sum(axis=1))
    least = np.maximum(limit * standard_error, _MATTERS * errors.mean[best])
    return np.asarray(worse > least)


class _Errors(NamedTuple):
    """The error of each member, and how far each graph moves it from its expectation."""

    mean: Floats  # (m,)
    parts: Floats  # (m, n), with the sum 0 for each member


def _squared(outputs: Floats, targets: Floats, classify: bool) -> _Errors:
    """The mean squared error of each member; the error of a graph is the mean over its targets.

    Several real targets count in units of their own deviations.
    """
    found = np.clip(outputs, -_BEYOND, _BEYOND) if classify else outputs
    squares = (found - targets) ** 2
    if targets.shape[1] > 1 and not classify:
        variance = np.nanvar(targets, axis=0)
        squares = squares / np.where(variance > 0, variance, 1.0)
    mean_of = np.nanmean if np.isnan(targets).any() else np.mean
    errors = np.asarray(mean_of(squares, axis=2))  # (m, n)
    mean = errors.mean(axis=1)
    return _Errors(mean, (errors - mean[:, None]) / errors.shape[1])


def _misplaced(outputs: Floats, targets: Floats) -> _Errors:
    """Share of pairs in the wrong order, 1 - ROC AUC, of each member; the mean over outputs.

    What a graph adds is how far the share of the others' graphs that stand on its wrong side is
    from the mean of its own class, over the number of graphs of that class (DeLong's variance).
    """
    m, n, q = outputs.shape
    mean, parts, n_used = np.zeros(m), np.zeros((m, n)), 0
    for column in range(q):
        some, others = (np.flatnonzero(targets[:, column] == side) for side in (1.0, -1.0))
        if len(some) == 0 or len(others) == 0:
            continue
        n_used += 1
        for member in range(m):
            ours, theirs = outputs[member, some, column], outputs[member, others, column]
            for rows, wrong in ((some, _above(theirs, ours)), (others, 1 - _above(ours, theirs))):
                parts[member, rows] += (wrong - wrong.mean()) / len(rows)
            mean[member] += _above(theirs, ours).mean()
    return _Errors(mean / max(n_used, 1), parts / max(n_used, 1))


def _above(values: Floats, each: Floats) -> Floats:
    """Share of values that are larger than each of some numbers; equal ones count half."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, each, "left") + np.searchsorted(ordered, each, "right")
    return np.asarray(1 - below / (2 * len(values)))
