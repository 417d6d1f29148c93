"""`AutoGraphClassifier` and `AutoGraphRegressor`: an ensemble of a few base models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

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
from fdgnn.graphs.smiles import DESCRIPTOR_SETS, NOT_MOLECULES, DescriptorSet
from fdgnn.linear import KernelRidge, fits_in_memory
from fdgnn.linear.ridge import MANY
from fdgnn.parameters import OneOf, Rule
from fdgnn.seeds import child_seed, seed_sequence
from fdgnn.texts import counted

#: Sets of base models by name.
CANDIDATES = ("all", "wl", "union")
_UNITS = 300  # of each reservoir
_PROJECTIONS = 1_000  # random features of descriptors, which linear readouts read
_FEW = 5_000  # molecules up to which there are more base models, which take twice the time

Candidate = tuple[str, Any, Any]  # name, encoder, readout


@dataclass(eq=False, repr=False)
class Auto(GraphModel):
    """An ensemble: base models that are fitted side by side, and averaged by the rule."""

    candidates: str | Sequence[Candidate] = "all"
    _: KW_ONLY
    handle_unknown: str = "ignore"
    descriptors: Literal["auto", "fast", "all"] | None = "auto"
    scoring: str | None = None
    random_state: Any = None
    n_jobs: int | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "handle_unknown": OneOf(HANDLE_UNKNOWN),
        "descriptors": OneOf(("auto", *DESCRIPTOR_SETS, None)),
    }
    _accuracy_by_squares = True
    # States that did not converge are features like others: base models are validated with them,
    # and the rule rejects a base model that they make significantly worse.
    _remedy = (
        "base models were selected with these states, so nothing has to be done; "
        ' candidates="wl" (--model wl) has none'
    )

    def _encoder_names(self) -> list[Any]:
        given = () if isinstance(self.candidates, str) else self.candidates
        return [encoder for _, encoder, _ in given]

    def _base_models(
        self, kind: GraphKind, n_graphs: int, seed: np.random.SeedSequence
    ) -> list[BaseModel]:
        found: list[BaseModel] = []
        in_memory = fits_in_memory(n_graphs)
        for name, encoder, readout in self._candidates(kind, n_graphs):
            own = as_encoder(encoder)
            if readout == "rbf" and not in_memory:
                continue  # another base model has the linear readout of these features
            if isinstance(self.candidates, str):
                own.ignore_unknown(self.handle_unknown)
            root = seed if own.random_state is None else seed_sequence(own.random_state)
            seeds = (child_seed(root, len(found)),)
            found.append(BaseModel(name, own, as_readout(readout, own, n_graphs), seeds))
        return found

    def _candidates(self, kind: GraphKind, n_graphs: int) -> Sequence[Candidate]:
        if not isinstance(self.candidates, str):
            return self.candidates
        labeled, in_memory = kind.vertices != "nothing", fits_in_memory(n_graphs)
        descriptors = self._descriptor_set(kind, n_graphs)
        if self.candidates == "union":
            return _joined(labeled, kind.n_inputs)
        if not labeled:
            return _structure()
        if self.candidates == "wl":
            names = ((n, f"WL, {counted(n, 'iteration')}") for n in (1, 2, 3, 4))
            return [(name, WLCounts(n_iterations=n), "auto") for n, name in names]
        if kind.molecules and kind.vertices == "labels":
            of = _molecules if in_memory else _many_molecules
            return of(n_graphs, descriptors)
        if kind.vertices == "labels" and in_memory:
            return _labeled(kind.n_inputs)
        if kind.n_label_columns and in_memory:
            return _labels_and_features(kind.n_inputs)
        return _mixed(kind.n_inputs)

    def _descriptor_set(self, kind: GraphKind, n_graphs: int) -> DescriptorSet | None:
        """Return the descriptors that a base model has; raise ValueError if others are wanted."""
        if self.candidates != "all":
            why = f"candidates={self.candidates!r} has no base model with descriptors"
        elif not kind.molecules or kind.vertices != "labels":
            why = NOT_MOLECULES
        elif n_graphs > MANY:
            why = f"they are not computed for more than {MANY:,} molecules, or out of core"
        else:
            return "fast" if self.descriptors == "auto" else self.descriptors
        if self.descriptors in DESCRIPTOR_SETS:
            raise ValueError(f'descriptors="{self.descriptors}" has no effect: {why}')
        return None

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
        for name, default in (("handle_unknown", "ignore"), ("descriptors", "auto")):
            if getattr(self, name) != default:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect on a list of candidates; set it "
                    "on their encoders"
                )
        if len(given) == 0:
            raise ValueError("candidates is empty: give the base models")
        for one in given:
            if not isinstance(one, tuple) or len(one) != 3:  # type: ignore[redundant-expr]
                raise ValueError(f"candidates has {one!r}; expected (name, encoder, readout)")
            as_encoder(one[1]).check_parameters()
            check_readout(one[2])


def _labeled(n_inputs: int) -> list[Candidate]:
    """Return models of WL features, with pairs of labels, and with a reservoir as well."""
    wl, pairs = ("wl", WLCounts(n_iterations=2)), ("pairs", PairCounts())
    reservoir = ("reservoir", _reservoir(n_inputs))
    return [
        ("WL, 2 iterations", WLCounts(n_iterations=2), "rbf"),
        ("WL, 3 iterations", WLCounts(n_iterations=3), "rbf"),
        ("WL and pairs", EncoderUnion([wl, pairs]), "rbf"),
        ("WL, pairs and reservoir", EncoderUnion([wl, pairs, reservoir]), "rbf"),
    ]


def _labels_and_features(n_inputs: int) -> list[Candidate]:
    """Return models of WL features and pairs of labels, and models that read real features.

    If features are uninformative, such as coordinates, out-of-fold predictions show this.
    """

    def of_labels(n_iterations: int) -> WLCounts:
        return WLCounts(n_iterations=n_iterations, vertices="labels")

    pairs = EncoderUnion([("wl", of_labels(2)), ("pairs", PairCounts(vertices="labels"))])
    beside = EncoderUnion([("reservoir", _reservoir(n_inputs)), ("wl", of_labels(2))])
    return [
        ("WL of labels, 2 iterations", of_labels(2), "rbf"),
        ("WL of labels, 3 iterations", of_labels(3), "rbf"),
        ("WL and pairs of labels", pairs, "rbf"),
        ("WL of labels, reservoir of labels and features", beside, "rbf"),
        ("WL and reservoir of labels and features", _with_reservoir(2, n_inputs), "rbf"),
    ]


def _mixed(n_inputs: int) -> list[Candidate]:
    """Return models of WL features, of real features in bins, and of reservoirs."""
    return [
        ("WL, 2 iterations", WLCounts(n_iterations=2), "auto"),
        ("WL, 3 iterations", WLCounts(n_iterations=3), "auto"),
        ("reservoir", _reservoir(n_inputs), "linear"),
        ("another reservoir", _reservoir(n_inputs), "linear"),
    ]


def _molecules(n_graphs: int, descriptors: DescriptorSet | None) -> list[Candidate]:
    """Return models of three kinds of atom labels, pairs of atoms, and descriptors."""
    few = n_graphs <= _FEW
    element = ("element", WLCounts(n_iterations=4, vertices="element"))
    pharmacophore = WLCounts(n_iterations=3, vertices="pharmacophore")
    counts: list[tuple[str, Encoder]] = [
        ("wl", WLCounts(n_iterations=2)),
        element,
        ("pharmacophore", pharmacophore),
        ("pairs", PairCounts()),
    ]
    candidates: list[Candidate] = [
        ("WL, 2 iterations", WLCounts(n_iterations=2), "auto"),
        ("pairs", PairCounts(), "rbf"),
        ("WL and pairs", EncoderUnion(counts), "rbf"),
    ]
    if descriptors is not None:
        whole = EncoderUnion([*counts, ("descriptors", MoleculeDescriptors(descriptors))])
        readout = KernelRidge(descriptor_weight="cv" if few else 0.5)
        candidates.append(("WL, pairs and descriptors", whole, readout))
    if few:
        apart = EncoderUnion([element, ("pairs", PairCounts(vertices="pharmacophore"))])
        candidates.append(("WL of pharmacophores", pharmacophore, "rbf"))
        candidates.append(("WL of elements, pairs of pharmacophores", apart, "rbf"))
    return candidates


def _many_molecules(n_graphs: int, descriptors: DescriptorSet | None) -> list[Candidate]:
    """Return models of WL labels by type and by element with linear readouts, and descriptors."""
    wl, element = WLCounts(n_iterations=2), WLCounts(n_iterations=4, vertices="element")
    candidates: list[Candidate] = [
        ("WL, 2 iterations", wl, "linear"),
        ("WL of elements", element, "linear"),
    ]
    if descriptors is not None:
        own = MoleculeDescriptors(descriptors, n_projections=_PROJECTIONS)
        whole = EncoderUnion([("wl", wl), ("element", element), ("descriptors", own)])
        candidates.append(("WL and descriptors", whole, "linear"))
    return candidates


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
    """Return models for vertices without labels: degrees, degrees in bins, and histograms."""

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

    The regularization strength of each base model is chosen by out-of-fold predictions of five
    folds. Outputs are averaged over all base models that are not worse than the best one by the
    paired 3-standard-error rule (`fdgnn.ensemble`).

    Parameters
    ----------
    candidates : {"all", "wl", "union"} or list, default="all"
        The base models: "all" depends on the kind of graphs; "wl" uses only WL features; "union"
        uses unions of WL features and a reservoir. With "all", labeled graphs have WL features, WL
        features with pairs of labels, and both with a reservoir, which also reads real features;
        molecules have WL features and pairs by atom type, element and pharmacophore, without and
        with descriptors; graphs without labels have WL features of degrees and structure. Or a list
        of (name, encoder, readout), with encoders and readouts as in `GraphClassifier`.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Whether named candidates ignore vertex labels that no training graph has, or raise an error.
    descriptors : {"auto", "fast", "all", None}, default="auto"
        Descriptors of molecules in a base model of "all": "fast" and "all" as in
        `MoleculeDescriptors`, "auto" for "fast" with up to 50,000 molecules, or none.
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
    candidates, handle_unknown, descriptors, random_state, n_jobs
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
