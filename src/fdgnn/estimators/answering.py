"""What is asked of a trained model: outputs, and how far to trust them.

The networks were trained by `fit` (`fdgnn.estimators.base`) or out of core (`fdgnn.scale`),
or come from a model file, which makes no difference here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.encoders import Encoding, GraphKind
from fdgnn.encoders.base import Settling, encode_each
from fdgnn.encoders.descriptors import DescriptorBlock
from fdgnn.encoders.settling import tell_unsettled
from fdgnn.encoders.unseen import tell_unseen
from fdgnn.estimators.parameters import AUTO, ModelParameters
from fdgnn.exceptions import UnusableGraphWarning
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.checks import check_finite
from fdgnn.graphs.converters import Sifted, as_batch, items_of, sift
from fdgnn.graphs.reading import check_choice, reading_of
from fdgnn.graphs.union import Kind
from fdgnn.networks import FEW_GRAPHS, Network
from fdgnn.novelty import Novelty
from fdgnn.readout.conformal import ConformalScores
from fdgnn.readout.gaussian import GaussianReadout
from fdgnn.reservoir import Layer
from fdgnn.scikit import check_is_fitted
from fdgnn.threads import blas_threads_for

# The reservoirs of a committee have fixed parameters. States that still move are features like
# others: validation has judged them, and a member that they make clearly worse is not averaged.
_REMEDY_OF_AUTO = (
    "held-out predictions have judged the reservoirs as they are, so nothing has to be done; "
    'candidates="colors" (--model colors) trains none'
)


class TrainedModel(ModelParameters):
    """Networks, and what they say of graphs; a subclass trains them."""

    graph_kind_: GraphKind
    networks_: tuple[Network, ...]
    novelty_: Novelty | None
    conformal_: ConformalScores

    @property
    def n_features_in_(self) -> int:
        """Inputs per vertex: different labels, features, or 1."""
        check_is_fitted(self)
        return int(self.graph_kind_.n_inputs)

    def check_graphs(self, X: Any) -> GraphBatch:
        """Convert graphs, and check that they are of the kind that the model was fitted on."""
        check_is_fitted(self)
        graphs = as_batch(X, like=self)
        self.graph_kind_.check(graphs, self._remedy())
        described = self.networks_[0].descriptors
        if described is not None and len(graphs):
            described.check(graphs)
        return graphs

    def usable(self, X: Any) -> Sifted:
        """Sift graphs: those that the model can take, and why it cannot take the others.

        Raises
        ------
        GraphError
            A `GraphBatch` is of another kind than the graphs that the model was fitted on.

        Examples
        --------
        >>> from fdgnn import FDGNNClassifier
        >>> from fdgnn.datasets import make_motif_graphs
        >>> graphs, y = make_motif_graphs(60, random_state=0)
        >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
        >>> found = model.usable([graphs[0], "no graph", graphs[1]])
        >>> found.rows, model.predict(found.graphs).shape
        (array([0, 2]), (2,))
        >>> found.faults[1][:18]
        'it is a str, not a'
        """
        check_is_fitted(self)
        if isinstance(X, GraphBatch):
            found = Sifted(self.check_graphs(X), np.arange(len(X)), {})
        else:
            found = sift(items_of(X), like=self, fits=self._refusal)
        if len(found.graphs) == 0:
            return found
        refused = _of_all(network.encoder.refusals(found.graphs) for network in self.networks_)
        return found.without(refused) if refused else found

    def _remedy(self) -> str:
        """What to give a model of molecules, if vertices do not carry what its atoms did."""
        reading = reading_of(self)
        is_of_molecules = reading is not None and reading.source == "molecules"
        return "; it was fitted on molecules, so give it SMILES" if is_of_molecules else ""

    def _refusal(self, kind: Kind) -> str | None:
        """Say why the model cannot take graphs of a kind; None if it can."""
        lacks = (network.encoder.lacking(kind) for network in self.networks_)
        return self.graph_kind_.refusal(kind, self._remedy()) or next(filter(None, lacks), None)

    def refusals(self, X: Any) -> dict[int, str]:
        """Positions of the graphs that the model cannot take, and why; see `usable`."""
        return self.usable(X).faults

    def outputs(self, X: Any, errors: str = "raise") -> Floats:
        """Real-valued outputs of eq. 3, averaged over the networks: (n_graphs, q).

        `errors` says what becomes of graphs that cannot be used: "raise" raises GraphError for the
        first; with "missing" their outputs are NaN, the others are answered, and a warning counts
        them.
        """
        if errors != "raise":
            return self._of_usable(X, errors, self.outputs)
        graphs = self.check_graphs(X)
        if len(graphs) == 0:
            return np.empty((0, self.n_outputs_))
        tell_unseen(len(self._unseen(graphs)), len(graphs))
        return self._outputs_of(graphs, self._encodings(graphs))

    def outputs_and_novelty(self, graphs: GraphBatch) -> tuple[Floats, Floats | None]:
        """Give both of checked graphs, of which there are some, encoded once.

        Novelty is None where the model cannot tell. Labels that were not seen are not told.
        """
        encodings = self._encodings(graphs)
        outputs, known = self._outputs_of(graphs, encodings), self.novelty_
        if known is None:
            return outputs, None
        network = self.networks_[known.network]
        return outputs, known.of(network.encoder, graphs, encodings[known.network])

    def _encodings(self, graphs: GraphBatch) -> list[Encoding]:
        return encode_each([n.encoder for n in self.networks_], graphs, self.n_jobs)

    def _outputs_of(self, graphs: GraphBatch, encodings: Sequence[Encoding]) -> Floats:
        """Outputs (n_graphs, q) of graphs that were encoded by each network."""
        settlings = [found.settling for found in encodings if found.settling is not None]
        if settlings:
            self._tell_unsettled(settlings)
        pairs = zip(self.networks_, encodings, strict=True)
        # Outputs of one graph take less time than it takes to tell BLAS.
        with blas_threads_for(len(graphs)) if len(graphs) > FEW_GRAPHS else nullcontext():
            outputs = [network.outputs(encoding, graphs) for network, encoding in pairs]
        mean = outputs[0] if len(outputs) == 1 else np.asarray(sum(outputs) / len(outputs))
        check_finite(mean, "its output")
        return mean

    def _tell_unsettled(self, settlings: list[Settling]) -> None:
        if self.encoder == AUTO:
            tell_unsettled(settlings, _REMEDY_OF_AUTO)
        else:
            tell_unsettled(settlings)

    def _of_usable(self, X: Any, errors: str, answer: Callable[[GraphBatch], Floats]) -> Floats:
        """Answers (n_graphs, ...) that are NaN where a graph cannot be used, which is told once."""
        check_choice("errors", errors, ("raise", "missing"))
        found = self.told_usable(X)
        answers = answer(found.graphs)
        spread = np.full((len(found.rows) + len(found.faults), *answers.shape[1:]), np.nan)
        spread[found.rows] = answers
        return spread

    def told_usable(self, X: Any, stacklevel: int = 5) -> Sifted:
        """Sift graphs as `usable` does, and tell by a warning how many cannot be used."""
        found = self.usable(X)
        if found.faults:
            first, reason = next(iter(found.faults.items()))
            warnings.warn(
                f"{len(found.faults)} of {len(found.rows) + len(found.faults)} graphs cannot be "
                f"used, and have no answer; the first is graph {first}: {reason}",
                UnusableGraphWarning,
                stacklevel=stacklevel,
            )
        return found

    def unseen(self, X: Any) -> dict[int, str]:
        """Positions of graphs that the model takes, though it has not seen their labels, and why.

        Of these labels it knows nothing: its answers rest on the rest of the graph.
        """
        graphs = self.check_graphs(X)
        return self._unseen(graphs) if len(graphs) else {}

    def _unseen(self, graphs: GraphBatch) -> dict[int, str]:
        found = _of_all(network.encoder.unseen(graphs) for network in self.networks_)
        return found if self.descriptors_ is None else self.descriptors_.unseen(graphs) | found

    @property
    def descriptors_(self) -> DescriptorBlock | None:
        """What the model knows of its descriptors; None if it was fitted without."""
        check_is_fitted(self)
        return self.networks_[0].descriptors

    def novelty(self, X: Any, errors: str = "raise") -> Floats:
        """How unlike the training graphs each graph is, (n_graphs,), from 0 to 1.

        The share of what the graph has that no training graph has, or, for a model without colors,
        its leverage (`fdgnn.novelty`). `errors` is that of `outputs`.
        """
        if errors != "raise":
            return self._of_usable(X, errors, self.novelty)
        graphs = self.check_graphs(X)
        if self.novelty_ is None:
            raise ValueError(
                "the model cannot tell how unlike its training graphs others are: its file is "
                "older, or its encoder has too many features; fit it again, or with colors"
            )
        if len(graphs) == 0:
            return np.empty(0)
        encoder = self.networks_[self.novelty_.network].encoder
        encoding = encoder.encode(graphs, n_jobs=self.n_jobs)
        return self.novelty_.of(encoder, graphs, encoding)

    def unlike(self, X: Any) -> dict[int, str]:
        """Positions of graphs that are unlike the training graphs, and why.

        They are more so than 99 % of the training graphs are among each other, or a number among
        their descriptors is beyond those of all training graphs. Empty if the model cannot tell.
        """
        graphs = self.check_graphs(X)
        return self.told_unlike(graphs, None if self.novelty_ is None else self.novelty(graphs))

    def told_unlike(self, graphs: GraphBatch, novelty: Floats | None) -> dict[int, str]:
        """Say the same of checked graphs whose novelty (n_graphs,) is known, or cannot be told."""
        found: dict[int, str] = {}
        if self.novelty_ is not None and novelty is not None:
            found = self.novelty_.told(novelty)
        if self.descriptors_ is not None and len(graphs):
            for g, words in self.descriptors_.outside(graphs).items():
                found[g] = f"{found[g]}; {words}" if g in found else words
        return dict(sorted(found.items()))

    def _conformal_scores(self, parameter: str) -> ConformalScores:
        """Give the held-out scores that sets and intervals are made of, if there are some."""
        check_is_fitted(self)
        if not hasattr(self, "conformal_"):
            raise ValueError(
                f"the model has no held-out scores: fit it with `{parameter}=True`; files of "
                "earlier versions of fdgnn have none, so fit such a model again"
            )
        return self.conformal_

    @property
    def n_outputs_(self) -> int:
        """q, the number of real-valued outputs."""
        check_is_fitted(self)
        return len(self.networks_[0].readout.intercept)

    def __sklearn_is_fitted__(self) -> bool:
        return "networks_" in vars(self)

    # ------------------------------------------------------------------ the only network

    def _only_network(self) -> Network:
        check_is_fitted(self)
        if len(self.networks_) > 1:
            raise AttributeError(
                f"there are {len(self.networks_)} networks; read networks_[j] instead"
            )
        return self.networks_[0]

    @property
    def degree_(self) -> float:
        """K as used, where the encoder is a reservoir."""
        check_is_fitted(self)
        return float(self.networks_[0].encoder.degree_)

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The reservoir's weights, of the only network."""
        layers: tuple[Layer, ...] = self._only_network().encoder.layers_
        return layers

    @property
    def projection_(self) -> Floats:
        """W_phi (P, H), of the only network."""
        expansion = self._only_network().expansion
        if expansion is None:
            raise AttributeError("the model has no random expansion")
        return expansion.projection_

    @property
    def coef_(self) -> Floats:
        """W_Y (q, P), of the only network."""
        readout = self._only_network().readout
        if isinstance(readout, GaussianReadout):
            raise AttributeError("a Gaussian readout has no weights of features")
        return readout.coef

    @property
    def intercept_(self) -> Floats:
        """The readout's bias (q,), of the only network."""
        return self._only_network().readout.intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags


def _of_all(reasons: Iterable[dict[int, str]]) -> dict[int, str]:
    """Merge what all networks say of graphs; the first to say something of a graph is heard."""
    found: dict[int, str] = {}
    for each in filter(None, reasons):
        found = each | found
    return dict(sorted(found.items())) if found else found
