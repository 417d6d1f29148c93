"""The classifier: outputs of the model as classes and probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats
from fdgnn.encoders import Encoder, GraphReservoir
from fdgnn.estimators.base import Chosen
from fdgnn.estimators.several import SeveralTargetsModel
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.networks import SeveralGoals, TrainingGoal, held_out_outputs, signatures_of_many
from fdgnn.parameters import OneOf, Rule
from fdgnn.readout.calibration import fit_slope, probabilities
from fdgnn.readout.conformal import ConformalScores, check_coverage
from fdgnn.readout.metrics import OF_CLASSES, accuracy
from fdgnn.readout.rare import tell_rare_class
from fdgnn.readout.several import (
    SeveralTargets,
    Target,
    class_targets,
    n_columns,
    side_by_side,
)
from fdgnn.readout.targets import (
    accuracy_of,
    check_label_types,
    check_one_each,
    check_two_classes,
    class_labels,
    coded,
    number_classes,
    sample_weights,
    winning_class,
)
from fdgnn.readout.thresholds import THRESHOLDS, best_threshold
from fdgnn.scikit import ClassifierMixin, OfferedIf, check_is_fitted


class FDGNNClassifier(ClassifierMixin, SeveralTargetsModel):  # type: ignore[misc]
    """Classify graphs: an untrained encoder and a linear readout (eq. 1-3).

    Parameters
    ----------
    n_layers, n_units, n_connections, effective_spectral_radius, input_scaling, \
inter_layer_scaling, bias_scaling, degree, tol, max_iter, solver, random_state, n_jobs
        As in `GraphReservoir`.
    n_rounds
        As in `ColorCounts`.
    n_projections : int, optional
        P, the size of the random expansion; by default as many times the encoder's features as
        the encoder says, which is twice for a reservoir. 0: none, the readout sees the encoder's
        own features.
    alpha : float, optional
        lambda, the Tikhonov penalty of the readout; its bias is not penalized. By default 1e-3
        for a reservoir; for colors, where it counts in units of the features' mean squared length,
        that with the best held-out predictions of ten folds.
    n_networks : int, default=1
        Guesses: networks drawn and trained independently, whose outputs are averaged.
    probability : bool, default=False
        Whether `fit` also learns probabilities, on outputs held out by five-fold cross validation
        in closed form, so that `predict_proba` and `predict_set` can give them.
    encoder : {"reservoir", "colors", "both", "auto"} or Encoder, default="reservoir"
        What turns graphs into features: the paper's reservoir, or colors, or the features of both
        side by side, each with the parameters above. "auto" trains a few models of both kinds and
        averages those that held-out predictions cannot tell from the best (`fdgnn.committee`). Or
        any `fdgnn.encoders.Encoder` with parameters of its own (``encoder__name`` in a search).
    readout : {"auto", "linear", "gaussian"}, default="auto"
        A linear readout, or one of the distances to the training graphs, which is more accurate on
        colors, and needs all training graphs, so that it is for up to 10,000. "auto": linear for a
        reservoir, gaussian for colors of up to so many graphs. The models of ``encoder="auto"``
        have readouts of their own.
    candidates : {"all", "colors", "both"}, default="all"
        Which models ``encoder="auto"`` trains: a few of each kind; only colors, of several rounds;
        or only such as read both.
    class_weight : "balanced", dict or None, default=None
        How much an error on each class counts; "balanced" gives all classes the same weight in
        total, which is of use where one is rare.
    scoring : str, optional
        What penalties are chosen by, where there is a choice: "accuracy", "balanced_accuracy",
        "roc_auc", "average_precision", "f1" or "log_loss". By default accuracy; or ROC AUC, with a
        warning, where a class has less than a tenth of the graphs.
    threshold : str, optional
        For two classes: the output from which on a graph is of the second one is that with the
        best "balanced_accuracy", "accuracy" or "f1", that of the rarer class, on outputs held out
        by cross validation. By default it is 0.
    handle_unknown : {"error", "ignore"}, optional
        What is done about vertex labels that no training graph has. By default the paper's model
        raises an error; colors, "both" and "auto" ignore such labels, and a warning counts the
        graphs. `usable` sifts graphs either way.

    Attributes
    ----------
    networks_ : tuple of Network
        Each has a fitted `encoder`, its `expansion` and a `readout`.
    layers_, projection_, coef_, intercept_
        Weights of the only network; with several, see ``networks_[j]``.
    degree_ : float
        k as used.
    seed_ : numpy.random.SeedSequence
        The root of all random streams, also where `random_state` is None.
    n_iter_, converged_ : (n_graphs,)
        How the iteration ended on each training graph: the most steps of a layer, and whether
        all layers of all networks came to rest.
    classes_ : (n_classes,), or list of such arrays for several targets
    targets_, each_ : tuple
        For several targets what each is (`fdgnn.readout.several.Target`), and a model of each.
    calibration_ : float
        How steeply probabilities follow the outputs (`fdgnn.readout.calibration`), if asked for.
    threshold_ : float
        Where outputs were cut, if asked for. It is taken away from all outputs, so that they are
        positive for the second class.
    conformal_ : ConformalScores
        How far held-out predictions were from the truth, where probabilities are asked for.
    reading_ : Reading or None
        How the training graphs were read, if they came from a file.

    Examples
    --------
    >>> from fdgnn import FDGNNClassifier
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
    >>> model.predict(graphs[:3]).shape
    (3,)
    """

    classes_: Any  # an array, or a list of arrays for several targets

    rules: ClassVar[Mapping[str, Rule]] = {
        **SeveralTargetsModel.rules,
        "probability": OneOf((False, True)),
        "threshold": OneOf((None, *THRESHOLDS)),
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
        probability: bool = False,
        encoder: str | Encoder = GraphReservoir.kind,
        n_rounds: int = 3,
        readout: str = "auto",
        candidates: str = "all",
        class_weight: str | Mapping[Any, float] | None = None,
        scoring: str | None = None,
        threshold: str | None = None,
        handle_unknown: str | None = None,
    ) -> None:
        super().__init__(
            n_layers=n_layers,
            n_units=n_units,
            n_connections=n_connections,
            effective_spectral_radius=effective_spectral_radius,
            input_scaling=input_scaling,
            inter_layer_scaling=inter_layer_scaling,
            bias_scaling=bias_scaling,
            degree=degree,
            n_projections=n_projections,
            alpha=alpha,
            n_networks=n_networks,
            tol=tol,
            max_iter=max_iter,
            solver=solver,
            random_state=random_state,
            n_jobs=n_jobs,
            encoder=encoder,
            n_rounds=n_rounds,
            readout=readout,
            candidates=candidates,
            scoring=scoring,
            handle_unknown=handle_unknown,
        )
        self.probability = probability
        self.class_weight = class_weight
        self.threshold = threshold

    def fit(self, X: Any, y: Any, sample_weight: Any = None, chosen: Chosen = None) -> Self:
        """Draw the networks and solve for their readouts.

        Parameters
        ----------
        X : GraphBatch or list of graphs
            Whatever `as_batch` takes.
        y : (n_graphs,), or (n_graphs, n_targets)
            Class labels of any type, at least two different ones. Several targets are columns of
            an array, a dictionary or a data frame; None and NaN are unknown values. Each target
            is learned from the graphs for which it is known.
        sample_weight : (n_graphs,), optional
            How much each graph's error counts; graphs of weight 0 are left out. Only ratios
            matter: weights, with those of classes, are scaled to a mean of 1, so that a penalty
            means the same with them as without.
        chosen : sequence, optional
            Of each member of ``encoder="auto"``, what a search has found out about it.
        """
        graphs = as_batch(X)
        if (n_columns(y) or 1) > 1:
            return self._fit_several(graphs, class_targets(y, graphs), sample_weight, chosen)
        y = class_labels(y, graphs)
        weights = sample_weights(sample_weight, len(y), y, self.class_weight)
        if weights is not None and (weights == 0).any():
            graphs, y, weights = graphs[weights > 0], y[weights > 0], weights[weights > 0]
            check_two_classes(y)
        self._start_fit(graphs)
        self.classes_, codes = number_classes(y)
        targets = coded(codes, len(self.classes_))
        self.check_threshold(len(self.classes_))
        metric, many = self.metric_for(codes), signatures_of_many(graphs)
        goal = TrainingGoal(targets, codes, weights, self.seed_, metric, many)
        pairs = self._fit_networks(graphs, goal, chosen)
        decided = chosen is None and any(found.outputs is not None for _, found in pairs)
        if self.scoring is None and decided:
            tell_rare_class(y, self.heeds_rare_classes)
        if self.probability or self.threshold is not None:
            self.learn_from_held_out(held_out_outputs(pairs, goal), goal)
        return self

    def check_threshold(self, n_classes: int) -> None:
        """Refuse a threshold between more than two classes."""
        if self.threshold is not None and n_classes > 2:
            raise ValueError(f"`threshold` is for two classes, but y has {n_classes}")

    @property
    def heeds_rare_classes(self) -> bool:
        """Whether a threshold or weights let rare classes be predicted more often."""
        return self.threshold is not None or self.class_weight is not None

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, like: Any = None) -> Self:
        """Train on some more graphs, beside those of earlier calls.

        The model is that of one `fit` (with a linear readout) on all pieces, up to rounding,
        whatever their order and sizes, if the network is drawn for the same graphs: its vertex
        labels and its k are those of `like`, or of the first piece, or k is given as `degree`. Of
        a reservoir moments are kept, so that probabilities cannot be learned. Of colors the encoded
        rows are kept, and their penalty is chosen anew with each call, unless `alpha` is given.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        y : (n_graphs,)
        classes : (n_classes,)
            All classes; needed in the first call.
        like : GraphBatch or list of graphs, optional
            For the first call: graphs with all labels, for which the network is drawn.

        Examples
        --------
        >>> from fdgnn import FDGNNClassifier
        >>> from fdgnn.datasets import make_motif_graphs
        >>> graphs, y = make_motif_graphs(60, random_state=0)
        >>> model = FDGNNClassifier(degree=5, random_state=0)
        >>> for some in (slice(0, 20), slice(20, 60)):
        ...     model = model.partial_fit(graphs[some], y[some], classes=[0, 1])
        >>> model.predict(graphs[:3]).shape
        (3,)
        """
        if "pieces_" not in vars(self):
            if classes is None:
                raise ValueError("the first call of partial_fit needs all `classes`")
            graphs = as_batch(X)
            pieces = self._start_pieces(graphs if like is None else as_batch(like))
            check_label_types(classes, "classes")
            self.classes_ = np.unique(np.asarray(classes))
            check_two_classes(self.classes_)
            if not pieces.sparse and (self.probability or self.threshold is not None):
                raise ValueError(
                    "partial_fit keeps no graphs of a reservoir to learn probabilities or a "
                    "threshold from; leave `probability` and `threshold` out"
                )
            self.pieces_ = pieces
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError("`classes` are not those of the first call of partial_fit")
        if self.class_weight is not None:
            raise ValueError("partial_fit knows no `class_weight`; leave it out")
        graphs = as_batch(X)
        self.graph_kind_.check(graphs)
        codes = self._known_codes(y, graphs)
        self.pieces_.add(graphs, codes, coded(codes, len(self.classes_)), self.n_jobs)
        if not self.pieces_.sparse:
            self._train_on_pieces(None)
            return self
        codes = np.concatenate(self.pieces_.targets)
        many = self.pieces_.many_signatures()
        targets, metric = coded(codes, len(self.classes_)), self.metric_for(codes)
        goal = TrainingGoal(targets, codes, None, self.seed_, metric, many)
        pairs = self._train_on_pieces(goal)
        if self.probability or self.threshold is not None:
            self.learn_from_held_out(held_out_outputs(pairs, goal), goal)
        return self

    def _known_codes(self, y: Any, graphs: GraphBatch) -> Array:
        """Class numbers of a piece, or an error for a class that was not announced."""
        check_label_types(y)
        y = np.asarray(y)
        check_one_each(graphs, y)
        codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        strange = self.classes_[codes] != y
        if strange.any():
            raise ValueError(f"y has the class {y[strange][0]}, which is none of `classes`")
        return np.asarray(codes)

    def _fit_several(
        self, graphs: GraphBatch, several: SeveralTargets, sample_weight: Any, chosen: Chosen
    ) -> Self:
        """Fit one set of networks to several targets."""
        self._check_thresholds(several)
        goals, pairs = self._fit_targets(graphs, several, sample_weight, chosen, self.class_weight)
        self.classes_ = [target.classes for target in several.targets]
        decided = chosen is None and any(found.outputs is not None for _, found in pairs)
        if self.scoring is None and decided:
            goals.several.tell_rare_class(self.heeds_rare_classes, stacklevel=4)
        if self.probability or self.threshold is not None:
            self._learn_several(held_out_outputs(pairs, goals), goals)
        return self

    def _learn_several(self, outputs: Floats, goals: SeveralGoals) -> None:
        """Learn probabilities and thresholds of each target from outputs (n, q) held out."""
        parts = goals.several.parts(outputs)
        for one, own, goal in zip(self.each_, parts, goals.goals, strict=True):
            one.learn_from_held_out(own, goal)
        if self.probability:
            groups = [group for one in self.each_ for group in one.conformal_.groups]
            self.conformal_ = ConformalScores(tuple(groups))
        if self.threshold is not None:  # each has two classes, so one output
            cuts = np.array([one.threshold_ for one in self.each_])
            self.networks_ = tuple(network.lowered(cuts) for network in self.networks_)

    def learn_classes(self, several: SeveralTargets, outputs: Floats, goal: Any) -> None:
        """Take what outputs of networks mean that were trained elsewhere, and learn from some.

        `outputs` (n, q) are those of graphs held out, whose targets are `several`.
        """
        self._check_thresholds(several)
        assert several.classes is not None
        if len(several.names) > 1:
            self.split(several.targets)
            self.classes_ = list(several.classes)
            if self.probability or self.threshold is not None:
                self._learn_several(outputs, goal)
            return
        (self.classes_,) = several.classes
        if self.probability or self.threshold is not None:
            self.learn_from_held_out(outputs, goal)

    def _check_thresholds(self, several: SeveralTargets) -> None:
        for target in several.targets:
            n_classes = 0 if target.classes is None else len(target.classes)
            if self.threshold is not None and n_classes > 2:
                raise ValueError(
                    f"`threshold` is for two classes, but target {target.name!r} has {n_classes}"
                )

    def answer_for(self, target: Target) -> None:
        """Take one target for what the outputs mean."""
        self.classes_ = target.classes

    def learn_from_held_out(self, outputs: Floats, goal: TrainingGoal) -> None:
        """Learn probabilities and the threshold from outputs (n, q) of graphs held out."""
        assert goal.codes is not None
        if self.probability:
            self.calibration_ = fit_slope(outputs, goal.codes)
            self.conformal_ = ConformalScores.of_classes(outputs, self.calibration_, goal.codes)
        if self.threshold is not None:
            metric = OF_CLASSES[self.threshold].metric
            self.threshold_ = best_threshold(outputs, goal.codes, metric, goal.weights)
            self.networks_ = tuple(n.lowered(self.threshold_) for n in self.networks_)

    def decision_function(self, X: Any, errors: str = "raise") -> Floats:
        """Real-valued outputs: (n_graphs,) for two classes, (n_graphs, n_classes) for more.

        For several targets those of all of them side by side, (n_graphs, q);
        ``targets_[t].outputs`` are those of target t. `errors` is that of `predict`; missing
        values are NaN.
        """
        outputs = self.outputs(X, errors)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any, errors: str = "raise") -> Array:
        """Class of each graph: the sign, or the largest, of its outputs.

        (n_graphs,), or (n_graphs, n_targets) for several targets.

        `errors` is "raise", or "missing": then graphs of the list that cannot be used, such as
        SMILES that do not parse, have None, the others are answered, and a warning counts them.

        Examples
        --------
        >>> from fdgnn import FDGNNClassifier
        >>> molecules = ["CCO", "CCCO", "CO", "CCN", "CCCN", "CN"] * 5
        >>> model = FDGNNClassifier(random_state=0).fit(molecules, [0, 0, 0, 1, 1, 1] * 5)
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     model.predict(["CCCCO", "C(("], errors="missing")
        array([0, None], dtype=object)
        """
        return self.answers(self.outputs(X, errors))

    def answers(self, outputs: Floats) -> Array:
        """Classes for outputs (n_graphs, q) of this model, as `predict` gives them."""
        if not self.each_:
            found = np.asarray(self.classes_[winning_class(outputs)])
            missing = np.isnan(outputs)
            if np.count_nonzero(missing):
                found = found.astype(object)
                found[missing.any(axis=1)] = None
            return found
        return side_by_side([one.answers(own) for one, own in self.shared_out(outputs)])

    @OfferedIf(
        lambda self: self.probability,
        "set probability=True before `fit`, which learns probabilities from held-out graphs; "
        "decision_function gives scores without that",
    )
    def predict_proba(self, X: Any, errors: str = "raise") -> Floats | list[Floats]:
        """Probability of each class, (n_graphs, n_classes), in the order of `classes_`.

        For several targets a list of them, as scikit-learn's classifiers give it.
        The class of the largest probability is that of `predict`, unless a `threshold` was asked
        for, which moves the predictions and not the probabilities. `errors` is that of `predict`;
        missing values are NaN.
        """
        outputs = self.outputs(X, errors)
        if self.each_:
            return [one.chances(own) for one, own in self.shared_out(outputs)]
        return self.chances(outputs)

    def chances(self, outputs: Floats) -> Floats:
        """Probabilities (n_graphs, n_classes) for outputs (n_graphs, q) of this model."""
        check_is_fitted(self, "calibration_")
        return probabilities(outputs + getattr(self, "threshold_", 0.0), self.calibration_)

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, by_class: bool = False, errors: str = "raise"
    ) -> npt.NDArray[np.bool_] | list[npt.NDArray[np.bool_]]:
        """Tell which classes each graph may have, so that the true one is among them that often.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        coverage : float, default=0.9
            Which share of graphs like those of training has its true class in its set.
        by_class : bool, default=False
            Whether that holds for the graphs of each class, too, and not only for all together.
            Sets are larger then. A class with too few training graphs is in every set.
        errors : {"raise", "missing"}, default="raise"
            As in `predict`. Sets of graphs that cannot be used hold all classes.

        Returns
        -------
        (n_graphs, n_classes) bool
            Whether a class, in the order of `classes_`, is in the set. A set may be empty: then
            the model is usually much surer than it is of this graph. For several targets a list.
        """
        outputs = self.outputs(X, errors)
        if self.each_:
            pairs = self.shared_out(outputs)
            return [one.sets_of(own, coverage, by_class=by_class) for one, own in pairs]
        return self.sets_of(outputs, coverage, by_class=by_class)

    def sets_of(
        self, outputs: Floats, coverage: float, *, by_class: bool = False
    ) -> npt.NDArray[np.bool_]:
        """Sets as in `predict_set`, for outputs (n_graphs, q) of this model; NaN rules out none."""
        coverage = check_coverage(coverage)
        scores = self._conformal_scores("probability")
        limits = scores.limits_by_class(coverage) if by_class else scores.limit(coverage)
        return ~np.asarray(1.0 - self.chances(outputs) > limits)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; for several targets its mean over targets, each where it is known."""
        if self.each_:
            return self.mean_score(X, y, accuracy, sample_weight)
        return accuracy_of(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
