"""Training the model up to its real-valued output: encoder, random expansion and readout.

``graphs -> encoder -> random expansion -> readout``. Each part is an object of its own; the class
here puts them together under scikit-learn's contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from fdgnn.arrays import Array, Features
from fdgnn.committee import (
    LARGE_PENALTIES,
    PENALTIES,
    SMALL_PENALTIES,
    HeldOut,
    kept_members,
)
from fdgnn.encoders import (
    Encoding,
    GraphKind,
    GraphReservoir,
)
from fdgnn.encoders.descriptors import beside
from fdgnn.estimators.answering import TrainedModel
from fdgnn.estimators.parameters import AUTO
from fdgnn.estimators.streaming import Pieces, StreamedNetwork, check_streamed
from fdgnn.expansion import expanded
from fdgnn.graphs import GraphBatch
from fdgnn.networks import (
    DrawnNetwork,
    Goal,
    Network,
    TrainingGoal,
    descriptor_block,
    draw_expansion,
    draw_network,
)
from fdgnn.novelty import Novelty
from fdgnn.readout.dual import MOST_SAMPLES
from fdgnn.readout.metrics import (
    Metric,
    named_scoring,
    squared_error,
    usual_scoring,
)
from fdgnn.readout.several import Target
from fdgnn.scikit import (
    ClassifierMixin,
    clone,
)
from fdgnn.seeds import child_seed, seed_sequence
from fdgnn.threads import blas_threads_for

# Of each member, what a search has found out about it; None: all is chosen in `fit`.
Chosen: TypeAlias = Sequence[HeldOut | None] | None
FOLDS, FEWER_FOLDS = 10, 5  # for choosing penalties and members; on few graphs, and on many


class GraphModel(TrainedModel):
    """The model up to its real-valued output; a subclass says what the output means."""

    pieces_: Pieces  # of `partial_fit`
    targets_: tuple[Target, ...]
    each_: tuple[GraphModel, ...] = ()  # for several targets, a model of each

    # ------------------------------------------------------------------ fitting

    def _start_fit(self, graphs: GraphBatch) -> None:
        self.check_parameters()
        self.each_ = ()
        self.graph_kind_ = GraphKind.of(graphs)
        self.reading_ = getattr(graphs, "reading", None)
        self.seed_ = seed_sequence(self.random_state)
        for name in ("conformal_", "pieces_"):  # of an earlier fit
            if name in vars(self):
                delattr(self, name)

    def begin(self, graphs: Any) -> None:
        """Check parameters, and keep of which kind the graphs are that networks are trained on.

        For networks that are trained elsewhere, part by part (`fdgnn.scale`).
        """
        self._start_fit(graphs)

    def assemble(self, networks: Sequence[Network], novelty: Novelty | None) -> None:
        """Take networks that were trained elsewhere."""
        self.networks_, self.novelty_ = tuple(networks), novelty
        if self.reading_ is not None and not any(n.encoder.uses_arc_labels for n in networks):
            self.reading_ = self.reading_.without_arc_labels()

    # ------------------------------------------------------------------ piece by piece

    def _start_pieces(self, graphs: GraphBatch) -> Pieces:
        """Draw the networks for graphs like these, and forget what was learned before."""
        if self.encoder == AUTO:
            raise ValueError(
                'partial_fit cannot choose the members of encoder="auto"; fit_batches can'
            )
        if self.readout == "gaussian":
            raise ValueError("partial_fit trains linear readouts; leave `readout` out")
        self._start_fit(graphs)
        (member,) = self.members(self.graph_kind_, MOST_SAMPLES + 1)  # a linear readout
        check_streamed(member.encoder)
        drawn = [
            StreamedNetwork.draw(
                replace(member, encoder=clone(member.encoder)),
                graphs,
                child_seed(self.seed_, i),
                self.n_projections,
            )
            for i in range(self.n_networks)
        ]
        return Pieces(drawn)

    def _train_on_pieces(self, goal: TrainingGoal | None) -> list[tuple[DrawnNetwork, HeldOut]]:
        """Solve for the readouts from all pieces; with a goal, from their encoded rows."""
        pieces = self.pieces_
        self.novelty_ = None
        if goal is None:
            alpha = GraphReservoir.default_alpha if self.alpha is None else self.alpha
            assert alpha is not None
            pairs = zip(pieces.networks, pieces.moments, strict=True)
            self.networks_ = tuple(network.solved(moments, alpha) for network, moments in pairs)
            return []
        drawn = [n.drawn(X) for n, X in zip(pieces.networks, pieces.all_rows(), strict=True)]
        found = [(each, self._chosen(each, goal)) for each in drawn]
        self.networks_ = tuple(each.trained(goal, held.penalty) for each, held in found)
        return found

    def network_features(
        self, graphs: GraphBatch, guess: int, depths: Sequence[int]
    ) -> list[Features]:
        """What the readout of one guess sees, (n_graphs, P), for a model of each of these depths.

        One pass through the deepest encoder serves all depths.
        """
        seed = child_seed(seed_sequence(self.random_state), guess)
        encoder = self._new_encoder()
        if encoder.depth_parameter is not None:
            encoder.set_params(**{encoder.depth_parameter: max(depths)})
            encoder.check_parameters()
        features = encoder.draw(graphs, seed).encode(graphs, depths, self.n_jobs).features
        # Networks of one guess have the same projection, if their features are as many.
        expansions = {
            n: draw_expansion(encoder, n, self.n_projections, seed)
            for n in {X.shape[1] for X in features}
        }
        found = [expanded(X, expansions[X.shape[1]]) for X in features]
        return [beside(X, descriptor_block(graphs, X), graphs) for X in found]

    def _fit_networks(
        self, graphs: GraphBatch, goal: Goal, chosen: Chosen = None
    ) -> list[tuple[DrawnNetwork, HeldOut]]:
        """Draw all networks, choose penalties and members, and train the readouts.

        What is `chosen` already is for each member its penalty and held-out outputs, or None if
        it is left out.
        """
        with blas_threads_for(len(graphs)):
            pairs = self._drawn_pairs(graphs, goal, chosen)
            self.networks_ = tuple(each.trained(goal, found.penalty) for each, found in pairs)
            encodings = [each.encoding for each, _ in pairs]
            self.novelty_ = Novelty.fit([each.encoder for each, _ in pairs], encodings, graphs)
        self._record_settling(encodings)
        if self.reading_ is not None and not any(e.encoder.uses_arc_labels for e, _ in pairs):
            self.reading_ = self.reading_.without_arc_labels()
        return pairs

    def _drawn_pairs(
        self, graphs: GraphBatch, goal: Goal, chosen: Chosen
    ) -> list[tuple[DrawnNetwork, HeldOut]]:
        """Give the networks that are to be trained, each with its penalty."""
        n_times = 1 if self.encoder == AUTO else self.n_networks
        kind, n = self.graph_kind_, len(graphs)
        members = [m for _ in range(n_times) for m in self.members(kind, n, checked=True)]
        known: Sequence[HeldOut | None] = [None] * len(members) if chosen is None else chosen
        pairs = []
        for i, (member, found) in enumerate(zip(members, known, strict=True)):
            if chosen is None or found is not None:
                seed = child_seed(self.seed_, i)
                drawn = draw_network(member, graphs, seed, self.n_projections, self.n_jobs)
                pairs.append((drawn, found or self._chosen(drawn, goal)))
        if self.encoder == AUTO and chosen is None:
            outputs = [found.outputs for _, found in pairs]
            kept = kept_members(outputs, goal.targets, goal.codes is not None, goal.ranking)
            pairs = [pair for pair, keep in zip(pairs, kept, strict=True) if keep]
        return pairs

    def _chosen(self, drawn: DrawnNetwork, goal: Goal) -> HeldOut:
        """Choose the penalty of a network by held-out outputs, unless it is known."""
        known = drawn.encoder.default_alpha if self.alpha is None else self.alpha
        if self.encoder != AUTO and known is not None:
            return HeldOut(known, None)
        n = len(goal.targets)
        alphas = self.penalties(n) if self.alpha is None else (self.alpha,)
        return drawn.chosen(goal, alphas, FOLDS if n <= MOST_SAMPLES else FEWER_FOLDS)

    def penalties(self, n_graphs: int) -> tuple[float, ...]:
        """Penalties that are tried where they count in units of the features' size.

        On more graphs than a closed form can take, small ones need too many steps.
        """
        usual = PENALTIES if isinstance(self, ClassifierMixin) else SMALL_PENALTIES
        return usual if n_graphs <= MOST_SAMPLES else LARGE_PENALTIES

    def metric_for(self, codes: Array | None) -> Metric:
        """What penalties are chosen by, for classes or (codes None) for real targets."""
        if self.scoring is not None:
            return named_scoring(self.scoring, codes is not None).metric
        return squared_error if codes is None else usual_scoring(codes).metric

    def _record_settling(self, encodings: list[Encoding]) -> None:
        """Keep how the iteration ended on each training graph; tell once if it did not end."""
        settlings = [e.settling for e in encodings if e.settling is not None]
        if not settlings:
            return
        self.n_iter_ = np.concatenate([s.n_iter for s in settlings]).max(axis=0)
        self.converged_ = np.concatenate([s.residual < s.tol for s in settlings]).all(axis=0)
        self._tell_unsettled(settlings)
