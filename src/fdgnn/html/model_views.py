"""Views of a fitted model for reports and plots: its encoders, features and dynamics.

Dynamics are how the states of a reservoir converge: the paper's loop, followed step by step.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Features, Floats, Ints
from fdgnn.encoders import Encoder, EncoderUnion, GraphReservoir
from fdgnn.estimators import GraphModel
from fdgnn.graphs import GraphBatch
from fdgnn.html.report_data import (
    BASE_MODELS,
    CURVES,
    ITERATED,
    STEPS,
    BaseModelRow,
    Curve,
    LayerDynamics,
    ReservoirDynamics,
)
from fdgnn.html.words import clean, clipped, count, few, plural, short, significant
from fdgnn.linear import KernelReadout
from fdgnn.reservoir import contractions, embed, first_drive
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.stability import necessary_condition, spectral_radius, sufficient_condition
from fdgnn.targets import first_text
from fdgnn.texts import listed

_CURVES_PER_LAYER = 12
_UNCERTIFIED_CURVES = 4
_WORK = 2e7  # states that are iterated, at most: vertices times units of all layers


def fitted(model: Any) -> Any:
    """Return the model itself, or the best one of a search.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    TypeError
        It is not a model of this library.
    """
    if not isinstance(model, GraphModel | Encoder | FDGNNSearchCV):
        raise TypeError(
            "expected a model such as FDGNNClassifier, an FDGNNSearchCV or an encoder such as "
            f"GraphReservoir, got a {type(model).__name__}"
        )
    check_is_fitted(model)
    return getattr(model, "best_estimator_", model)


def check_classes(model: Any, y: Array) -> None:
    """Raise ValueError if no entry of y is a class of a model of one target.

    Then it is a wrong column, rather than one with a few new classes.
    """
    known = model.targets_[0].classes
    if known is None and (text := first_text(y.tolist())) is not None:
        raise ValueError(
            f"not all targets are numbers, as those of the model are: one is {text!r}; name "
            "another column by `target`, or none"
        )
    given = list(dict.fromkeys(map(str, y.tolist())))
    if known is not None and given and not {*given} & {*map(str, known.tolist())}:
        raise ValueError(
            f"no target is a class of the model: targets are {few(given)}, and the model has the "
            f"classes {few(known.tolist())}; name another column by `target`, or none"
        )


def encoder_of(model: Any) -> Encoder:
    """Return the encoder of the first fitted base model, or the model if it is an encoder."""
    encoder: Encoder = model if isinstance(model, Encoder) else model.estimators_[0].encoder
    return encoder


def _parts(encoder: Encoder) -> list[Encoder]:
    """Return the encoder itself, or those that a union joins."""
    if isinstance(encoder, EncoderUnion):
        return [part for block in encoder.blocks_ for part in _parts(block.encoder)]
    return [encoder]


def encoder_in_words(encoder: Encoder) -> str:
    """Return the class of an encoder, or those that a union joins."""
    return listed(dict.fromkeys(type(part).__name__ for part in _parts(encoder)))


def features_of(model: Any, graphs: GraphBatch) -> Features:
    """Return the features of the first fitted base model or encoder, (n_graphs, P)."""
    graphs = model._check_graphs(graphs)
    if isinstance(model, Encoder):
        return model.encode(graphs, n_jobs=model.n_jobs).features[0]
    found: Features = model.estimators_[0].features(graphs, model.n_jobs)
    return found


def base_models_of(model: Any) -> list[BaseModelRow]:
    """List the base models of a model of one target, each with its random initializations."""
    counts: Counter[tuple[str, str, str, float | None]] = Counter()
    for each in model.estimators_:
        readout = "RBF" if isinstance(each.readout, KernelReadout) else "linear"
        counts[clipped(each.name), encoder_in_words(each.encoder), readout, each.alpha] += 1
    return [
        BaseModelRow(name=name, encoder=encoder, readout=readout, alpha=alpha, n_estimators=n)
        for (name, encoder, readout, alpha), n in counts.items()
    ][:BASE_MODELS]


def shown_in_words(model: Any, encoder: Encoder, name: str) -> str:
    """Return a sentence about the base model that a figure belongs to."""
    facts = [encoder_in_words(encoder)]
    if (n_layers := getattr(encoder, "n_layers", None)) is not None:
        facts.append(plural(int(n_layers), "layer"))
    if (radius := getattr(encoder, "effective_spectral_radius", None)) is not None:
        facts.append(f"effective spectral radius {significant(float(radius))}")
    n = len(model.estimators_)
    if len({each.name for each in model.estimators_}) > 1:
        return f"Of the {count(n)} base models, {clean(name)} is shown ({', '.join(facts)})."
    what = "first random initialization of the model" if n > 1 else "model"
    return f"The {what} is shown: {', '.join(facts)}."


def principal_map(features: Any) -> tuple[Floats, tuple[float, float]]:
    """Return two principal components (n, 2), the farthest graph at 1, and their variance shares.

    The sign of a component makes its largest weight positive.
    """
    if isinstance(features, sp.csr_array):
        # n columns with the same inner products have the same map.
        values, vectors = np.linalg.eigh((features @ features.T).toarray())
        features = np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
    centered = features - features.mean(axis=0)
    _, s, Vt = np.linalg.svd(centered, full_matrices=False)
    axes = np.zeros((2, features.shape[1]))
    axes[: min(2, len(s))] = Vt[:2]
    largest = np.abs(axes).argmax(axis=1)
    axes *= np.where(axes[[0, 1], largest] < 0, -1.0, 1.0)[:, None]
    places = centered @ axes.T
    total = float(np.square(s).sum())
    shares = [short(share) for share in np.append(np.square(s[:2]) / (total or 1.0), [0.0, 0.0])]
    return places / (np.abs(places).max() or 1.0), (shares[0], shares[1])


# ---------------------------------------------------------------------- dynamics


def reservoir_of(model: Any) -> tuple[GraphReservoir, str] | None:
    """Return the first reservoir among the base models, and its name; None if there is none.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    TypeError
        It is not a model of this library.
    """
    model = fitted(model)
    named = [("", model)]
    if not isinstance(model, Encoder):
        named = [(each.name, each.encoder) for each in model.estimators_]
    for name, whole in named:
        for part in _parts(whole):
            if isinstance(part, GraphReservoir):
                return part, name
    return None


def graphs_for_curves(
    certified: npt.NDArray[np.bool_], sizes: Ints, at_most: int = _CURVES_PER_LAYER
) -> Ints:
    """Choose a few graphs from small to large, with some uncertified ones if there are any."""
    sure = certified.all(axis=0)
    few = min(at_most, _UNCERTIFIED_CURVES) if sure.any() else at_most
    chosen = _evenly(np.flatnonzero(~sure), sizes, few)
    return np.concatenate([chosen, _evenly(np.flatnonzero(sure), sizes, at_most - len(chosen))])


def _evenly(among: Ints, sizes: Ints, at_most: int) -> Ints:
    ordered = among[np.argsort(sizes[among], kind="stable")]
    places = np.linspace(0, len(ordered) - 1, min(at_most, len(ordered))).round().astype(np.int64)
    return ordered[places]


def residual_curves(encoder: GraphReservoir, graphs: GraphBatch) -> list[list[Floats]]:
    """Return the distances ``||X_t - X_(t-1)||_F`` of the paper's loop, for each graph and layer.

    The loop of a layer starts from zero and ends as in the paper, below `tol` or after `max_iter`
    steps. Its last states are the input of the next layer.
    """
    found = []
    for graph in (graphs[[g]] for g in range(len(graphs))):
        A = graph.adjacency()
        rows, row_of_vertex = first_drive(graph, encoder.reservoir_)
        X, curves = rows[row_of_vertex], []
        for i, layer in enumerate(encoder.reservoir_.layers):
            drive = X if i == 0 else X @ layer.input_weights.T + layer.bias
            X, residuals = np.zeros_like(drive), [np.inf]
            while len(residuals) <= encoder.max_iter and residuals[-1] >= encoder.tol:
                X_new = np.tanh(drive + (A @ X) @ layer.recurrent_weights.T)  # eq. 2
                residuals.append(float(np.linalg.norm(X_new - X)))
                X = X_new
            curves.append(np.array(residuals[1:]))
        found.append(curves)
    return found


def reservoir_dynamics(model: Any, graphs: GraphBatch) -> ReservoirDynamics | None:
    """Follow all graphs that the first reservoir can take or, where that takes long, some of them.

    None if there is no reservoir, or if it can encode none of the graphs.
    """
    known = reservoir_of(model)
    if known is None:
        return None
    encoder, name = known
    able = np.setdiff1d(np.arange(len(graphs)), list(encoder.graph_errors(graphs)))
    if len(able) == 0:
        return None
    layers = encoder.reservoir_.layers
    work = np.diff(graphs.vertex_offsets)[able] * len(layers) * encoder.reservoir_.n_units
    if len(able) > ITERATED or work.sum() > _WORK:  # a random part that is always the same
        order = np.random.default_rng(0).permutation(len(able))
        enough = int(np.searchsorted(np.cumsum(work[order]), _WORK))
        able = np.sort(able[order[: max(1, min(enough, ITERATED))]])
    part = graphs if len(able) == len(graphs) else graphs[able]
    ends = embed(
        part, encoder.reservoir_, tol=encoder.tol, max_iter=encoder.max_iter, solver="paper",
        layers="last",
    )  # fmt: skip
    certified = contractions(encoder.reservoir_, part) < 1
    at_most = max(1, min(_CURVES_PER_LAYER, CURVES // len(layers)))
    shown = graphs_for_curves(certified, np.diff(part.vertex_offsets), at_most)
    curves = zip(shown, residual_curves(encoder, part[shown]), strict=True)
    return ReservoirDynamics(
        model=shown_in_words(model, encoder, name),
        degree=short(encoder.degree_),
        tol=encoder.tol,
        max_iter=encoder.max_iter,
        n_graphs=len(able),
        layers=[
            LayerDynamics(
                layer=i + 1,
                spectral_radius=short(spectral_radius(layer.recurrent_weights)),
                norm=short(sufficient_condition(layer.recurrent_weights, 1.0)),
                effective=short(necessary_condition(layer.recurrent_weights, encoder.degree_)),
                absolute_radius=short(spectral_radius(abs(layer.recurrent_weights))),
                certified=int(certified[i].sum()),
                uncertified=int((~certified[i]).sum()),
                unconverged=int((ends.residual[i] >= encoder.tol).sum()),
                mean_iterations=short(float(np.mean(ends.n_iter[i]))),
            )
            for i, layer in enumerate(layers)
        ],
        curves=[
            Curve(
                layer=i + 1,
                graph=int(able[g]),
                certified=bool(certified[i, g]),
                residuals=[short(r) for r in curve[:STEPS]],
            )
            for g, own in curves
            for i, curve in enumerate(own)
        ][:CURVES],
    )
