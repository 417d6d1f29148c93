"""`AutoGraphClassifier` and `AutoGraphRegressor`: an ensemble of a few base models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from fdgnn.encoders import (
    Encoder,
    EncoderUnion,
    GraphKind,
    GraphReservoir,
    MoleculeDescriptors,
    PairCounts,
    WLCounts,
    as_encoder,
)
from fdgnn.encoders.base import HANDLE_UNKNOWN
from fdgnn.estimators.base import GraphModel
from fdgnn.estimators.models import (
    GraphClassifierMixin,
    GraphRegressorMixin,
    as_readout,
    check_readout,
)
from fdgnn.fitting import BaseModel
from fdgnn.linear import fits_in_memory
from fdgnn.parameters import OneOf, Rule
from fdgnn.seeds import child_seed, seed_sequence
from fdgnn.texts import counted

#: Sets of base models by name.
CANDIDATES = ("all", "wl", "union")
_UNITS = 300  # of each reservoir

Candidate = tuple[str, Any, Any]  # name, encoder, readout


@dataclass(eq=False, repr=False)
class Auto(GraphModel):
    """An ensemble: base models that are fitted side by side, and averaged by the rule."""

    candidates: str | Sequence[Candidate] = "all"
    _: KW_ONLY
    handle_unknown: str = "ignore"
    scoring: str | None = None
    random_state: Any = None
    n_jobs: int | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {"handle_unknown": OneOf(HANDLE_UNKNOWN)}
    # States of the ensemble's reservoirs that still move are features like others: validation has
    # judged them, and a base model that they make clearly worse is not averaged.
    _remedy = (
        "out-of-fold predictions have judged the reservoirs as they are, so nothing has to be "
        'done; candidates="wl" (--model wl) has none'
    )

    def _encoder_names(self) -> list[Any]:
        given = () if isinstance(self.candidates, str) else self.candidates
        return [encoder for _, encoder, _ in given]

    def _base_models(
        self, kind: GraphKind, n_graphs: int, seed: np.random.SeedSequence
    ) -> list[BaseModel]:
        found: list[BaseModel] = []
        in_memory = fits_in_memory(n_graphs)
        for name, encoder, readout in self._candidates(kind, in_memory):
            own = as_encoder(encoder)
            if readout == "rbf" and not in_memory:
                continue  # another base model has the linear readout of these features
            if isinstance(self.candidates, str):
                own.ignore_unknown(self.handle_unknown)
            root = seed if own.random_state is None else seed_sequence(own.random_state)
            seeds = (child_seed(root, len(found)),)
            found.append(BaseModel(name, own, as_readout(readout, own, n_graphs), seeds))
        return found

    def _candidates(self, kind: GraphKind, in_memory: bool) -> Sequence[Candidate]:
        if not isinstance(self.candidates, str):
            return self.candidates
        labeled = kind.vertices != "nothing"
        if self.candidates == "union":
            return _joined(labeled, kind.n_inputs)
        if not labeled:
            return _structure()
        if self.candidates == "wl":
            return _wl_only()
        if kind.molecules and kind.vertices == "labels":
            return _molecules() if in_memory else _many_molecules()
        if kind.vertices == "labels" and in_memory:
            return _labeled(kind.n_inputs)
        return _mixed(kind.n_inputs)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.candidates
        if isinstance(given, str):
            if given not in CANDIDATES:
                names = ", ".join(map(repr, CANDIDATES))
                raise ValueError(
                    f"candidates={given!r}: expected one of {names}, or a list of (name, encoder, "
                    "readout)"
                )
            return
        if self.handle_unknown != "ignore":
            raise ValueError(
                f"handle_unknown={self.handle_unknown!r} has no effect on a list of candidates; "
                "set it on their encoders"
            )
        if len(given) == 0:
            raise ValueError("candidates is empty: give the base models")
        for one in given:
            if not isinstance(one, tuple) or len(one) != 3:  # type: ignore[redundant-expr]
                raise ValueError(f"candidates has {one!r}; expected (name, encoder, readout)")
            as_encoder(one[1]).check_parameters()
            check_readout(one[2])


def _labeled(n_inputs: int) -> list[Candidate]:
    """WL features, the same with pairs of labels, and with a reservoir as well."""
    wl, pairs = ("wl", WLCounts(n_iterations=2)), ("pairs", PairCounts())
    reservoir = ("reservoir", _reservoir(n_inputs))
    return [
        ("WL, 2 iterations", WLCounts(n_iterations=2), "rbf"),
        ("WL, 3 iterations", WLCounts(n_iterations=3), "rbf"),
        ("WL and pairs", EncoderUnion([wl, pairs]), "rbf"),
        ("WL, pairs and reservoir", EncoderUnion([wl, pairs, reservoir]), "rbf"),
    ]


def _mixed(n_inputs: int) -> list[Candidate]:
    """WL features, of real features in bins, and reservoirs, which read these as they are."""
    return [
        ("WL, 2 iterations", WLCounts(n_iterations=2), "auto"),
        ("WL, 3 iterations", WLCounts(n_iterations=3), "auto"),
        ("reservoir", _reservoir(n_inputs), "linear"),
        ("another reservoir", _reservoir(n_inputs), "linear"),
    ]


def _molecules() -> list[Candidate]:
    """Kernels that see atoms in three ways, their pairs, and descriptors of the whole molecule."""
    counts: list[tuple[str, Encoder]] = [
        ("wl", WLCounts(n_iterations=2)),
        ("element", WLCounts(n_iterations=4, vertices="element")),
        ("pharmacophore", WLCounts(n_iterations=3, vertices="pharmacophore")),
        ("pairs", PairCounts()),
    ]
    whole = [*counts, ("descriptors", MoleculeDescriptors())]
    return [
        ("WL, 2 iterations", WLCounts(n_iterations=2), "auto"),
        ("pairs", PairCounts(), "rbf"),
        ("WL and pairs", EncoderUnion(counts), "rbf"),
        ("WL, pairs and descriptors", EncoderUnion(whole), "rbf"),
    ]


def _many_molecules() -> list[Candidate]:
    """Linear readouts of WL features, of which those of elements see the same in more places."""
    return [
        ("WL, 2 iterations", WLCounts(n_iterations=2), "linear"),
        ("WL of elements", WLCounts(n_iterations=4, vertices="element"), "linear"),
    ]


def _wl_only() -> list[Candidate]:
    each = (1, 2, 3, 4)
    return [(f"WL, {counted(n, 'iteration')}", WLCounts(n_iterations=n), "auto") for n in each]


def _joined(labeled: bool, n_inputs: int) -> list[Candidate]:
    name = "reservoir and WL, {}, {}"
    return [
        (name.format(counted(n, "iteration"), readout), _with_reservoir(n, n_inputs), readout)
        for n in ((2, 3) if labeled else (0, 1))
        for readout in ("linear", "rbf")
    ]


def _with_reservoir(n_iterations: int, n_inputs: int) -> EncoderUnion:
    return EncoderUnion(
        [("reservoir", _reservoir(n_inputs)), ("wl", WLCounts(n_iterations=n_iterations))]
    )


def _reservoir(n_inputs: int) -> GraphReservoir:
    """Return a reservoir with enough connections for its units to read most inputs.

    A label or feature is read by none of H units with C connections each with a probability of
    about exp(-C H / n_inputs); C H is twice the number of inputs, so that it is 14 %.
    """
    C = max(1, -(-2 * n_inputs // _UNITS))
    return GraphReservoir(n_units=_UNITS, n_connections=min(C, _UNITS))


def _structure() -> list[Candidate]:
    """WL features of vertices without labels: exact degrees, degrees in bins, and histograms."""

    def of_degrees(vertices: str, n_iterations: int) -> WLCounts:
        return WLCounts(n_iterations=n_iterations, vertices=vertices, histograms=False)

    return [
        ("degrees, 1 iteration", of_degrees("degree", 1), "linear"),
        ("degrees in bins, 1 iteration", of_degrees("log degree", 1), "linear"),
        ("structure", WLCounts(n_iterations=0), "linear"),
        ("structure, RBF", WLCounts(n_iterations=0), "rbf"),
        ("degrees, RBF", of_degrees("degree", 0), "rbf"),
    ]


@dataclass(eq=False, repr=False)
class AutoGraphClassifier(GraphClassifierMixin, Auto):
    """Classify graphs by an ensemble of a few base models; nothing has to be tuned.

    Each is fitted with the alpha that is best by out-of-fold predictions of five folds. Outputs are
    averaged over all base models that these predictions cannot tell from the best one
    (`fdgnn.ensemble`).

    Parameters
    ----------
    candidates : {"all", "wl", "union"} or list, default="all"
        The base models: those that suit the graphs, WL features alone, or models that read WL
        features and a reservoir. By default labeled graphs have WL features, the same with pairs of
        labels, and with a reservoir as well; molecules have WL features of atom types, elements and
        pharmacophores with pairs, and these with descriptors; vertices without labels have WL
        features of degrees and structure. Or a list of (name, encoder, readout), as
        `GraphClassifier` takes them.
    handle_unknown : {"ignore", "error"}, default="ignore"
        What is done about vertex labels that no training graph has, by the named candidates.
    probability, class_weight, scoring, threshold, random_state, n_jobs
        As in `GraphClassifier`.

    Attributes
    ----------
    estimators_ : tuple of FittedModel
        The base models that are averaged; each has a `name`.
    classes_, targets_, seed_, n_iter_, converged_
        As in `GraphClassifier`.

    Examples
    --------
    >>> from fdgnn import AutoGraphClassifier
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = AutoGraphClassifier(random_state=0).fit(graphs, y)
    >>> model.predict(graphs[:3]).shape
    (3,)
    """


@dataclass(eq=False, repr=False)
class AutoGraphRegressor(GraphRegressorMixin, Auto):
    """Graph regression by the ensemble of `AutoGraphClassifier`.

    Parameters
    ----------
    candidates, handle_unknown, random_state, n_jobs
        As in `AutoGraphClassifier`.
    intervals, target_transform, scoring
        As in `GraphRegressor`.

    Examples
    --------
    >>> from fdgnn import AutoGraphRegressor
    >>> from fdgnn.datasets import make_cycles
    >>> graphs = make_cycles(range(3, 30))
    >>> AutoGraphRegressor(random_state=0).fit(graphs, range(3, 30)).predict(graphs[:2]).shape
    (2,)
    """
