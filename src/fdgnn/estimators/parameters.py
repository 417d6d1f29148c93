"""The parameters of a model, and what they ask for: encoders, readouts and members."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from fdgnn.committee import (
    CANDIDATES,
    Member,
    ReadoutRecipe,
    handling_unknown,
    members_of,
    recipe_of,
)
from fdgnn.encoders import (
    ColorCounts,
    Encoder,
    GraphKind,
    GraphReservoir,
    JoinedEncoder,
    encoder_class,
)
from fdgnn.encoders.unseen import HANDLE_UNKNOWN
from fdgnn.limits import MAX_NETWORKS, MAX_UNITS
from fdgnn.parameters import Jobs, Number, OneOf, Rule, check_parameters
from fdgnn.readout.metrics import (
    named_scoring,
)
from fdgnn.scikit import (
    BaseEstimator,
    ClassifierMixin,
    clone,
)

#: What ``encoder=`` may be beside the name of one encoder: a committee, or two encoders joined.
AUTO, BOTH = "auto", JoinedEncoder.kind
# Encoders whose rules are the model's, too, where it has their parameters.
_OWN_RULES = (GraphReservoir, ColorCounts)


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    """Parameters of an encoder that a model passes on, if it has them."""
    own = ("random_state", "n_jobs", "handle_unknown")  # a model gives these itself
    return tuple(name for name in inspect.signature(kind).parameters if name not in own)


@cache
def _rules_of_encoders(kind: Any) -> Mapping[str, Rule]:
    """Rules for those parameters of a model that are passed on to its encoder."""
    own = inspect.signature(kind).parameters
    rules = {name: rule for each in _OWN_RULES for name, rule in each.rules.items()}
    return {name: rules[name] for name in rules if name in own and name != "handle_unknown"}


class ModelParameters(BaseEstimator):  # type: ignore[misc]
    """What a model is made of, before it has seen a graph."""

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_projections": Number(0, whole=True, optional=True, most=MAX_UNITS),
        "alpha": Number(0, optional=True),
        "n_networks": Number(1, whole=True, most=MAX_NETWORKS),
        "readout": OneOf(("auto", "linear", "gaussian")),
        "candidates": OneOf(CANDIDATES),
        "intervals": OneOf((False, True)),
        "handle_unknown": OneOf((None, *HANDLE_UNKNOWN)),
        "n_jobs": Jobs(),
    }

    def __init__(
        self,
        n_layers: int = 3,
        n_units: int = 50,
        n_connections: int = 1,
        effective_spectral_radius: float = 0.9,
        input_scaling: float = 1.0,
        inter_layer_scaling: float = 1.0,
        bias_scaling: float | None = None,
        degree: str | float = "average",
        n_projections: int | None = None,
        alpha: float | None = None,
        n_networks: int = 1,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        encoder: str | Encoder = GraphReservoir.kind,
        n_rounds: int = 3,
        readout: str = "auto",
        candidates: str = "all",
        scoring: str | None = None,
        intervals: bool = False,
        handle_unknown: str | None = None,
    ) -> None:
        self.n_layers = n_layers
        self.n_units = n_units
        self.n_connections = n_connections
        self.effective_spectral_radius = effective_spectral_radius
        self.input_scaling = input_scaling
        self.inter_layer_scaling = inter_layer_scaling
        self.bias_scaling = bias_scaling
        self.degree = degree
        self.n_projections = n_projections
        self.alpha = alpha
        self.n_networks = n_networks
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.n_rounds = n_rounds
        self.readout = readout
        self.candidates = candidates
        self.scoring = scoring
        self.intervals = intervals
        self.handle_unknown = handle_unknown

    def _new_encoder(self, checked: bool = False) -> Encoder:
        """Make an encoder that is not fitted yet, and check its parameters.

        With those of the model `checked`, an encoder that has the same rules is not checked again.
        """
        if isinstance(self.encoder, Encoder):
            encoder: Encoder = clone(self.encoder)
        elif self.encoder == BOTH:
            reservoir, colors = map(self._named_encoder, (GraphReservoir, ColorCounts))
            encoder = JoinedEncoder([reservoir, colors])
            handling_unknown(encoder, self.handle_unknown or "ignore")
        else:
            encoder = self._named_encoder(self._encoder_kind())
            handling_unknown(encoder, self.handle_unknown)
        given = isinstance(self.encoder, Encoder)
        if given or not checked or type(encoder) not in _OWN_RULES:
            encoder.check_parameters()
        return encoder

    def _named_encoder(self, kind: type[Encoder]) -> Encoder:
        """Make an encoder with the parameters that this model has for it."""
        known: Any = kind
        names = [name for name in _parameter_names(known) if hasattr(self, name)]
        return kind(**{name: getattr(self, name) for name in names})

    def _encoder_kind(self) -> type[Encoder]:
        given = self.encoder
        if isinstance(given, Encoder):
            return type(given)
        try:
            return encoder_class(given)
        except ValueError as error:
            raise ValueError(f"{error}, or {AUTO!r}") from None

    def members(
        self, kind: GraphKind, n_graphs: int, *, checked: bool = False
    ) -> tuple[Member, ...]:
        """What is trained on so many graphs of this kind: one member, or those of a committee.

        `checked` says that the model's parameters have been, so that it is not done twice.
        """
        if self.encoder == AUTO:
            return members_of(kind, n_graphs, self.candidates, self.handle_unknown)
        encoder = self._new_encoder(checked)
        return (Member(encoder.kind, encoder, self.recipe(n_graphs)),)

    def recipe(self, n_graphs: int) -> ReadoutRecipe:
        """How the readout of an encoder is trained on so many graphs."""
        return recipe_of(self._encoder_kind(), self.readout, n_graphs)

    @property
    def relative_penalty(self) -> bool:
        """Whether penalties count in units of the features' size."""
        return self.encoder == AUTO or self._encoder_kind().relative_penalty

    @property
    def depth_parameter(self) -> str | None:
        """The parameter of this model that says how deep it is; None if there is none."""
        if self.encoder == AUTO:
            return None
        name = self._encoder_kind().depth_parameter
        return None if name is None else self._own_name(name)

    @property
    def search_space(self) -> Mapping[str, Any]:
        """What a search tries by default: lists or distributions by parameter of this model."""
        if self.encoder == AUTO:
            return {}
        if self.encoder == BOTH:
            return {**GraphReservoir.search_space(), "n_rounds": [1, 2, 3, 4]}
        space = self._encoder_kind().search_space().items()
        own = ((self._own_name(name), values) for name, values in space)
        return {name: values for name, values in own if name is not None}

    def _own_name(self, name: str) -> str | None:
        """What a parameter of the encoder is called as a parameter of this model.

        An encoder that is given by its name has the parameters that the model has, too; its
        others keep their defaults, so that they have no name here.
        """
        if isinstance(self.encoder, Encoder):
            return f"encoder__{name}"
        return name if hasattr(self, name) else None

    def check_parameters(self) -> None:
        """Raise ValueError for the first parameter that breaks its rule, or would have no effect.

        The parameters of each encoder are checked whether it is used or not, so that an encoder
        can be searched beside its parameters. A committee has encoders of its own, so that there
        they must be left alone.
        """
        kind: Any = type(self)
        of_encoders = _rules_of_encoders(kind)
        check_parameters(self, self.rules)
        check_parameters(self, of_encoders)
        if self.scoring is not None:
            named_scoring(self.scoring, isinstance(self, ClassifierMixin))
        if isinstance(self.encoder, Encoder) and self.handle_unknown is not None:
            raise ValueError(
                f"handle_unknown={self.handle_unknown!r}: set it on the encoder that is given"
            )
        if self.encoder != AUTO and self.candidates != "all":
            raise ValueError(f'candidates={self.candidates!r} is for encoder="auto" only')
        if self.encoder == AUTO:
            usual = inspect.signature(kind).parameters
            for name in (*of_encoders, "readout", "n_networks"):
                if getattr(self, name) != usual[name].default:
                    raise ValueError(
                        f'{name}={getattr(self, name)!r} has no effect with encoder="auto", whose '
                        "models have parameters of their own; leave it out, or choose another "
                        "encoder"
                    )
