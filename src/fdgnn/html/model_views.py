"""Views of a fitted model for reports and plots: its encoders, features and dynamics.

Dynamics are how the states of a reservoir converge by the paper's loop.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Features, Floats
from fdgnn.encoders import Encoder, GraphReservoir
from fdgnn.estimators import GraphModel
from fdgnn.explanations.substructures import parts_of
from fdgnn.graphs import GraphBatch
from fdgnn.html import report_data as records
from fdgnn.html.words import clean, clipped, count, few, plural, short, significant
from fdgnn.linear import KernelReadout
from fdgnn.reservoir import contractions, embed
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.stability import necessary_condition, spectral_radius, sufficient_condition
from fdgnn.targets import first_text
from fdgnn.texts import listed

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
    wrong = None
    if known is None and (text := first_text(y.tolist())) is not None:
        wrong = f"not all targets are numbers, as those of the model are: one is {text!r}"
    elif known is not None:
        given = list(dict.fromkeys(map(str, y.tolist())))
        if given and not {*given} & {*map(str, known.tolist())}:
            wrong = (
                f"no target is a class of the model: targets are {few(given)}, and the model has "
                f"the classes {few(known.tolist())}"
            )
    if wrong is not None:
        raise ValueError(f"{wrong}; name another column by `target`, or none")


def encoder_of(model: Any) -> Encoder:
    """Return the encoder of the first fitted base model, or the model if it is an encoder."""
    encoder: Encoder = model if isinstance(model, Encoder) else model.estimators_[0].encoder
    return encoder


def encoder_in_words(encoder: Encoder) -> str:
    """Return the class of an encoder, or those that a union joins."""
    return listed(dict.fromkeys(type(part).__name__ for part in parts_of(encoder)))


def features_of(model: Any, graphs: GraphBatch) -> Features:
    """Return the features of the first fitted base model or encoder, (n_graphs, P)."""
    graphs = model._check_graphs(graphs)
    if isinstance(model, Encoder):
        return model.encode(graphs, n_jobs=model.n_jobs).features[0]
    found: Features = model.estimators_[0].features(graphs, model.n_jobs)
    return found


def base_models_of(model: Any) -> list[records.BaseModelRow]:
    """List the base models of a model of one target, each with its random initializations."""
    counts: Counter[tuple[str, str, str, float | None]] = Counter()
    for each in model.estimators_:
        readout = "RBF" if isinstance(each.readout, KernelReadout) else "linear"
        counts[clipped(each.name), encoder_in_words(each.encoder), readout, each.alpha] += 1
    return [
        records.BaseModelRow(
            name=name, encoder=encoder, readout=readout, alpha=alpha, n_estimators=n
        )
        for (name, encoder, readout, alpha), n in counts.items()
    ][: records.BASE_MODELS]


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
    total = float(np.square(s).sum()) or 1.0
    shares = np.append(np.square(s[:2]) / total, [0.0, 0.0])
    return places / (np.abs(places).max() or 1.0), (short(shares[0]), short(shares[1]))


# ---------------------------------------------------------------------- dynamics


def reservoir_dynamics(model: Any, graphs: GraphBatch) -> records.ReservoirDynamics | None:
    """Iterate all graphs that the first reservoir can take or, where that takes long, some of them.

    None if there is no reservoir, or if it can encode none of the graphs.
    """
    parts = ((part, each.name) for each in model.estimators_ for part in parts_of(each.encoder))
    known = next((pair for pair in parts if isinstance(pair[0], GraphReservoir)), None)
    if known is None:
        return None
    encoder, name = known
    reservoir, tol, max_iter = encoder.reservoir_, encoder.tol, encoder.max_iter
    able = np.setdiff1d(np.arange(len(graphs)), list(encoder.graph_errors(graphs)))
    if len(able) == 0:
        return None
    n_layers = len(reservoir.layers)
    work = np.diff(graphs.vertex_offsets)[able] * n_layers * reservoir.n_units
    if len(able) > records.ITERATED or work.sum() > _WORK:  # a random part that is always the same
        order = np.random.default_rng(0).permutation(len(able))
        enough = int(np.searchsorted(np.cumsum(work[order]), _WORK))
        able = np.sort(able[order[: max(1, min(enough, records.ITERATED))]])
    part = graphs if len(able) == len(graphs) else graphs[able]
    ends = embed(part, reservoir, tol=tol, max_iter=max_iter, solver="paper", layers="last")
    certified = contractions(reservoir, part) < 1
    layers = []
    for i, layer in enumerate(reservoir.layers):
        W_H, n_certified = layer.recurrent_weights, int(certified[i].sum())
        row = records.LayerDynamics(
            layer=i + 1,
            spectral_radius=short(spectral_radius(W_H)),
            norm=short(sufficient_condition(W_H, 1.0)),
            effective=short(necessary_condition(W_H, encoder.degree_)),
            absolute_radius=short(spectral_radius(abs(W_H))),
            certified=n_certified,
            uncertified=len(able) - n_certified,
            unconverged=int((ends.residual[i] >= tol).sum()),
            mean_iterations=short(float(np.mean(ends.n_iter[i]))),
        )
        layers.append(row)
    return records.ReservoirDynamics(
        model=shown_in_words(model, encoder, name),
        degree=short(encoder.degree_),
        tol=tol,
        max_iter=max_iter,
        n_graphs=len(able),
        layers=layers,
    )
