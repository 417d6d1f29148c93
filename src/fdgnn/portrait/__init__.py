"""A portrait of a model and its data: all that a page shows of them, as plain JSON.

A portrait is made once, where the model and the graphs are, and read by whoever shows it;
`fdgnn.portrait.format` has its fields.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn._base import check_one_each
from fdgnn.estimators import GraphReservoir
from fdgnn.exceptions import ConvergenceWarning, StudyError
from fdgnn.experiments import paper
from fdgnn.experiments.study import Study, versions
from fdgnn.graphs import Array, GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.pictures.placing import check_networkx
from fdgnn.portrait import predictions
from fdgnn.portrait.data import data_section
from fdgnn.portrait.drawings import draw_graphs
from fdgnn.portrait.dynamics import dynamics_of, dynamics_section, fitted
from fdgnn.portrait.format import FORMAT, read_portrait, write_portrait
from fdgnn.portrait.machine import this_machine
from fdgnn.portrait.predictions import Answers, ask

__all__ = ["portrait_of_model", "portrait_of_study", "read_portrait", "write_portrait"]

_MAPPED = 1000  # graphs on the map


def portrait_of_study(
    study: Study, result: dict[str, Any], *, command: str | None = None
) -> dict[str, Any]:
    """Portray what an evaluation selected: every graph is predicted by a model that never saw it.

    Parameters
    ----------
    study : Study
    result : dict
        What `fdgnn.experiments.study.run_study` returned for it.
    command : str, optional
        The command line that made it.

    Returns
    -------
    dict
        Plain JSON.
    """
    check_networkx()
    folds, chosen = study.task().folds, result["fold_configurations"]
    if len(chosen) != len(folds):
        raise StudyError(
            f"the result has {len(chosen)} outer folds, but the study {len(folds)}; give its own"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted among the dynamics instead
        models = [
            study.estimator(configuration)
            .set_params(probability=True)
            .fit(study.graphs[fold >= 0], study.y[fold >= 0])
            for configuration, fold in zip(chosen, folds, strict=True)
        ]
        answers = ask(models, np.argmax(folds < 0, axis=0), study.graphs, study.y)
        about = _about_study(study) | {
            "settings": _shared_parameters(models) | _protocol(study),
            "command": command,
        }
        return _portrait(about, answers, study.graphs, votes=_votes(chosen))


def _votes(chosen: Sequence[dict[str, Any]]) -> list[int]:
    """Fold by fold, how many folds chose the same configuration; alpha moves no state."""
    names = [repr(sorted((c | {"alpha": None}).items())) for c in chosen]
    counts = Counter(names)
    return [counts[name] for name in names]


def _about_study(study: Study) -> dict[str, Any]:
    n_outer, n_guesses = study.protocol.n_outer, study.protocol.n_guesses
    how = (
        f"Each graph was held out in one of {n_outer} outer folds and predicted by the model "
        "selected there, trained on the graphs of the others"
    )
    # Accuracies of the result are means over all guesses.
    which = f"; of its {n_guesses} networks the first is shown." if n_guesses > 1 else "."
    return {"dataset": study.dataset, "held_out": True, "how": how + which}


def _protocol(study: Study) -> dict[str, Any]:
    protocol = study.protocol
    return {
        "protocol": protocol.name,
        "seed": study.seed,
        "n_configurations": protocol.n_configurations,
        "n_guesses": protocol.n_guesses,
        "n_outer": protocol.n_outer,
        "n_inner": protocol.n_inner,
    }


def portrait_of_model(
    model: Any,
    graphs: Any,
    y: Any = None,
    *,
    dataset: str,
    held_out: bool = False,
    ids: Sequence[Any] | None = None,
    smiles: Sequence[str | None] | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Portray a fitted model on a set of graphs.

    Parameters
    ----------
    model : FDGNNClassifier, FDGNNRegressor or FDGNNSearchCV
    graphs : GraphBatch or list of graphs
    y : (n_graphs,), optional
        Without it there are predictions, but neither mistakes nor scores.
    dataset : str
        The graphs' name.
    held_out : bool, default=False
        Whether the model has seen none of the graphs before.
    ids : sequence, optional
        The graphs' names, by default their numbers from 0.
    smiles : sequence of str, optional
        The graphs' molecules, to draw those that are molecules as such.
    command : str, optional
        The command line that made it.

    Returns
    -------
    dict
        Plain JSON.
    """
    model = fitted(model)
    if isinstance(model, GraphReservoir):
        raise TypeError("a GraphReservoir predicts nothing; portray a classifier or a regressor")
    check_networkx()
    batch = as_batch(graphs)
    truth = _checked_targets(model, batch, y)
    for name, given in (("ids", ids), ("smiles", smiles)):
        if given is not None and len(given) != len(batch):
            raise ValueError(f"{name} has {len(given)} entries, but there are {len(batch)} graphs")
    seen = "which it did not see in training" if held_out else "which it may have seen in training"
    about = {
        "dataset": str(dataset),
        "held_out": bool(held_out),
        "how": f"One model predicted all graphs, {seen}.",
        "settings": _shared_parameters([model]),
        "command": command,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        answers = ask([model], np.zeros(len(batch), dtype=np.int64), batch, truth)
        return _portrait(about, answers, batch, ids, smiles)


# ---------------------------------------------------------------------- putting it together


def _portrait(
    about: dict[str, Any],
    answers: Answers,
    graphs: GraphBatch,
    ids: Sequence[Any] | None = None,
    smiles: Sequence[str | None] | None = None,
    *,
    votes: list[int] | None = None,
) -> dict[str, Any]:
    """Put the sections together; `votes` are those of the folds, where there are some."""
    fold = None if votes is None else votes.index(max(votes))
    model = answers.models[fold or 0]
    mistakes = answers.mistakes()
    mapped = predictions.mapped_graphs(answers, _MAPPED, mistakes)
    part = graphs if len(mapped) == len(graphs) else graphs[mapped]
    places, explained = predictions.principal_map(predictions.features_of(model, part))
    portrait = {
        "format": FORMAT,
        "dataset": about["dataset"],
        "task": "regression" if answers.regression else "classification",
        "held_out": about["held_out"],
        "how": about["how"],
        "classes": answers.classes,
        "n_networks": len(model.networks_),
        "data": data_section(graphs, answers.actual, answers.classes),
        "dynamics": {"network": _network(model, fold, votes)}
        | dynamics_section(dynamics_of(model), graphs),
        "graphs": predictions.graph_rows(
            answers,
            graphs,
            mapped,
            places,
            range(len(graphs)) if ids is None else ids,
            folds=votes is not None,
        ),
        "map": {"explained": explained},
        "drawings": draw_graphs(answers, graphs, mistakes, mapped, smiles),
        "mistakes": mistakes.tolist(),
        "confusion": predictions.confusion(answers),
        "calibration": predictions.calibration(answers),
        "regression": predictions.regression(answers),
        "settings": about["settings"],
        "command": about["command"],
        "versions": versions(),
        "machine": this_machine(),
    }
    _name_atoms(portrait)
    return portrait


def _network(model: Any, fold: int | None, votes: list[int] | None) -> dict[str, Any]:
    """Whose dynamics and map are shown."""
    return {
        "fold": None if fold is None else fold + 1,
        "n_layers": int(model.n_layers),
        "effective_spectral_radius": float(model.effective_spectral_radius),
        "folds_alike": None if votes is None else max(votes),
        "n_folds": None if votes is None else len(votes),
    }


def _name_atoms(portrait: dict[str, Any]) -> None:
    """Write elements for vertex labels, if this is a dataset of molecules that is known."""
    name, data = portrait["dataset"], portrait["data"]
    facts = paper.DATASETS.get(name)
    found = (data["n_graphs"], data["n_vertices"])
    if name not in paper.ATOMS or facts is None or found != (facts.n_graphs, facts.n_vertices):
        return
    atoms = {str(code): symbol for code, symbol in enumerate(paper.ATOMS[name])}
    data["labels"] = [[atoms.get(label, label), n] for label, n in data["labels"]]
    for drawing in portrait["drawings"].values():
        drawing["labels"] = [atoms.get(label, label) for label in drawing["labels"]]


def _checked_targets(model: Any, graphs: GraphBatch, y: Any) -> Array | None:
    n_outputs = len(model.networks_[0].intercept)
    if not hasattr(model, "classes_") and n_outputs > 1:
        raise ValueError(f"a portrait shows one output, but the model has {n_outputs}")
    if y is None:
        return None
    truth: Array = np.asarray(y)
    check_one_each(graphs, truth)
    if truth.ndim > 1:
        raise ValueError(f"y has shape {truth.shape}; expected (n_graphs,)")
    if not hasattr(model, "classes_") and not np.isfinite(truth.astype(np.float64)).all():
        raise ValueError("y has values that are NaN or infinite; leave such graphs out")
    return truth


def _shared_parameters(models: Sequence[Any]) -> dict[str, Any]:
    """The models' parameters; where they differ, a list of all values."""
    shared = {}
    for name in models[0].get_params(deep=False):
        values = [_plain(getattr(model, name)) for model in models]
        shared[name] = values[0] if all(v == values[0] for v in values) else values
    return shared


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
