"""Portraits are made here: of what an evaluation selected, or of one model on some graphs."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from fdgnn.arrays import Array, Ints
from fdgnn.encoders import Encoder
from fdgnn.evaluation import paper
from fdgnn.evaluation.models import CommitteeStudy, held_out_answers
from fdgnn.evaluation.records import Configuration, RunResult
from fdgnn.evaluation.scores import versions
from fdgnn.evaluation.study import Study
from fdgnn.exceptions import ConvergenceWarning, GraphError, StudyError
from fdgnn.explanations.drawing import check_networkx
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.html.model_data import predictions
from fdgnn.html.model_data.answers import Answers, predict, predicted_before
from fdgnn.html.model_data.colors import examples_of, substructure_facts
from fdgnn.html.model_data.data import data_facts
from fdgnn.html.model_data.described import descriptor_facts
from fdgnn.html.model_data.drawings import draw_graphs
from fdgnn.html.model_data.dynamics import Dynamics, dynamics_facts, dynamics_of
from fdgnn.html.model_data.machine import this_machine
from fdgnn.html.model_data.mapping import mapped_graphs, principal_map
from fdgnn.html.model_data.model import (
    base_models_of,
    encoder_in_words,
    features_of,
    fitted,
)
from fdgnn.html.model_data.records import MAPPED, Portrait, Setting, Settings, ShownModel
from fdgnn.html.model_data.text import clean
from fdgnn.html.model_data.trust import trust_facts
from fdgnn.targets import check_one_each


@dataclass(frozen=True)
class _Occasion:
    """What a caller knows about a portrait, beside the model and the graphs."""

    dataset: str
    held_out: bool
    how: str
    settings: Settings
    command: str | None = None
    ids: Sequence[object] | None = None
    smiles: Sequence[str | None] | None = None
    votes: Sequence[int] | None = None  # for each outer fold: how many chose what it chose
    folds: Ints | None = None  # (n_graphs,) the outer fold that held each graph out
    new: bool = (
        False  # whether the models that predict the graphs are there, and have not seen them
    )


def portrait_of_study(study: Study, result: RunResult, *, command: str | None = None) -> Portrait:
    """Portray what an evaluation selected; no model predicts a graph that it was trained on.

    Parameters
    ----------
    study : Study
    result : RunResult
        What `fdgnn.evaluation.running.run_study` returned for it.
    command : str, optional
        The command line that made it.
    """
    check_networkx()
    folds, chosen = study.task().folds, result.fold_configurations
    if len(chosen) != len(folds):
        raise StudyError(
            f"the result has {len(chosen)} outer folds, but the study has {len(folds)}; give the "
            "result of this study"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the portrait counts these graphs
        models = [
            study.estimator(configuration)
            .set_params(probability=True)
            .fit(study.graphs[fold >= 0], study.y[fold >= 0])
            for configuration, fold in zip(chosen, folds, strict=True)
        ]
        held_out_by = np.argmax(folds < 0, axis=0)
        answers = predict(models, held_out_by, study.graphs, study.y)
        occasion = _Occasion(
            dataset=study.dataset,
            held_out=True,
            how=_how_studied(study),
            settings=_shared_parameters(models) | _protocol(study),
            command=command,
            votes=_votes(chosen),
            folds=held_out_by,
            new=True,
        )
        return _portrait(occasion, answers, study.graphs)


def _votes(chosen: Sequence[Configuration]) -> list[int]:
    """For each fold, count the folds that chose the same configuration; alpha moves no state."""
    names = [repr(sorted((name, c[name]) for name in c if name != "alpha")) for c in chosen]
    counts = Counter(names)
    return [counts[name] for name in names]


def _how_studied(study: Study) -> str:
    n_outer, n_guesses = study.protocol.n_outer, study.protocol.n_guesses
    how = (
        f"Each graph was held out in one of {n_outer} outer folds and predicted by the model "
        "selected there, trained on the graphs of the others"
    )
    # The accuracies of the result are means over all guesses.
    return how + (f"; of its {n_guesses} networks the first is shown." if n_guesses > 1 else ".")


def _protocol(study: Study) -> Settings:
    protocol = study.protocol
    return {
        "protocol": protocol.name,
        "seed": study.seed,
        "n_configurations": protocol.n_configurations,
        "n_guesses": protocol.n_guesses,
        "n_outer": protocol.n_outer,
        "n_inner": protocol.n_inner,
    }


def portrait_of_committee(
    study: CommitteeStudy, directory: Path, *, command: str | None = None
) -> Portrait:
    """Portray a committee that was evaluated.

    Predictions and probabilities are those of the outer folds, so that no committee predicts a
    graph that it was trained on. All else is of the committee trained on all graphs.

    Parameters
    ----------
    study : CommitteeStudy
    directory : Path
        Where `fdgnn.evaluation.models.evaluate_committee` has evaluated it.
    command : str, optional
        The command line that made it.
    """
    check_networkx()
    found = held_out_answers(study, directory)
    settings = study.settings
    occasion = _Occasion(
        dataset=study.dataset,
        held_out=True,
        how=f"Each graph was held out in one of {settings.n_outer} outer folds ({settings.split}) "
        "and predicted by the committee selected there, trained on the graphs of the others. The "
        "map, the substructures and what each vertex adds are of the committee trained on all "
        "graphs.",
        settings={
            "model": settings.model,
            "seed": settings.seed,
            "n_outer": settings.n_outer,
            "n_inner": settings.n_inner,
        },
        command=command,
        folds=found.fold,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the portrait counts these graphs
        model = study.estimator().fit(study.graphs, study.y)
        answers = predicted_before(model, study.y, found.outputs, found.chances)
        return _portrait(occasion, answers, study.graphs)


def portrait_of_model(
    model: Any,
    graphs: Any,
    y: Any = None,
    *,
    dataset: str,
    held_out: bool = False,
    ids: Sequence[object] | None = None,
    smiles: Sequence[str | None] | None = None,
    command: str | None = None,
) -> Portrait:
    """Portray a fitted model on a set of graphs.

    Parameters
    ----------
    model : any model of this library, or FDGNNSearchCV
        Of several targets, `for_target` gives the model of one.
    graphs : GraphBatch or list of graphs
    y : (n_graphs,), optional
        Without it there are predictions, but neither mistakes nor scores.
    dataset : str
        The name of the graphs.
    held_out : bool, default=False
        Whether the model has not seen any of the graphs before.
    ids : sequence, optional
        The names of the single graphs, by default their positions from 0.
    smiles : sequence of str, optional
        The graphs as SMILES. A graph that is this molecule is drawn as a molecule.
    command : str, optional
        The command line that made it.
    """
    model = fitted(model)
    if isinstance(model, Encoder):
        name = type(model).__name__
        raise TypeError(f"a {name} predicts nothing; portray a classifier or a regressor")
    check_networkx()
    batch = as_batch(graphs, like=model)
    if len(batch) == 0:
        raise GraphError("no graphs: there is nothing to portray")
    truth = _checked_targets(model, batch, y)
    for name, given in (("ids", ids), ("smiles", smiles)):
        if given is not None and len(given) != len(batch):
            raise ValueError(f"{name} has {len(given)} entries, but there are {len(batch)} graphs")
    seen = "which it did not see in training" if held_out else "which it may have seen in training"
    occasion = _Occasion(
        dataset=str(dataset),
        held_out=bool(held_out),
        how=f"One model predicted all graphs, {seen}.",
        settings=_shared_parameters([model]),
        command=command,
        ids=ids,
        smiles=smiles,
        new=bool(held_out) or truth is None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        answers = predict([model], np.zeros(len(batch), dtype=np.int64), batch, truth)
        return _portrait(occasion, answers, batch)


def _checked_targets(model: Any, graphs: GraphBatch, y: Any) -> Array | None:
    if len(model.targets_) > 1:
        n_targets = len(model.targets_)
        raise ValueError(f"a portrait shows one target, but the model has {n_targets}")
    if y is None:
        return None
    truth: Array = np.asarray(y)
    check_one_each(graphs, truth)
    if truth.ndim > 1:
        raise ValueError(f"y has shape {truth.shape}; expected (n_graphs,)")
    if model.targets_[0].classes is None and not np.isfinite(truth.astype(np.float64)).all():
        raise ValueError("y has values that are NaN or infinite; leave such graphs out")
    return truth


def _shared_parameters(models: Sequence[Any]) -> Settings:
    """The parameters of the models; where they differ, a list of all values."""
    given = [model.get_params(deep=False) for model in models]
    shared: Settings = {}
    for name in given[0]:
        values = [_plain(parameters[name]) for parameters in given]
        shared[name] = values[0] if all(v == values[0] for v in values) else values
    return shared


def _plain(value: Any) -> Setting:
    """A parameter as a file can hold it: an object, for instance an encoder, becomes its repr."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return clean(value) if isinstance(value, str) else " ".join(clean(repr(value)).split())


# ---------------------------------------------------------------------- putting it together


def _portrait(occasion: _Occasion, answers: Answers, graphs: GraphBatch) -> Portrait:
    """Put the parts together; the model that most folds chose gives the map and the dynamics."""
    votes = occasion.votes
    fold = None if votes is None else votes.index(max(votes))
    model = answers.models[fold or 0]
    mistakes = answers.mistakes()
    mapped = mapped_graphs(answers, MAPPED, mistakes)
    part = graphs if len(mapped) == len(graphs) else graphs[mapped]
    places, explained = principal_map(features_of(model, part))
    shown = _shown_model(model, fold, votes)
    ids = range(len(graphs)) if occasion.ids is None else occasion.ids
    dynamics = dynamics_of(model)
    atoms = _atoms(clean(occasion.dataset), graphs, molecules=occasion.smiles is not None)
    substructures = substructure_facts(model, graphs, mapped, answers.classes, atoms)
    needed = np.union1d(mistakes, examples_of(substructures))
    portrait = Portrait(
        dataset=clean(occasion.dataset),
        task="regression" if answers.regression else "classification",
        held_out=occasion.held_out,
        how=occasion.how,
        classes=answers.classes,
        n_estimators=len(model.estimators_),
        shown=shown,
        data=data_facts(graphs, answers.actual, answers.classes),
        dynamics=None if dynamics is None else dynamics_facts(dynamics, graphs),
        graphs=predictions.graph_rows(answers, graphs, mapped, places, ids, folds=occasion.folds),
        explained=explained,
        drawings=draw_graphs(answers, graphs, needed, mapped, occasion.smiles),
        mistakes=mistakes.tolist(),
        confusion=predictions.confusion(answers),
        calibration=predictions.calibration(answers),
        regression=predictions.regression(answers),
        settings=occasion.settings,
        command=None if occasion.command is None else clean(occasion.command),
        versions=versions(),
        machine=this_machine(),
        base_models=base_models_of(model),
        dynamics_of=_model_of_dynamics(model, dynamics, shown),
        substructures=substructures,
        roc_auc=predictions.roc_auc(answers),
        descriptors=descriptor_facts(model, graphs, mapped),
        trust=trust_facts(answers, graphs, ids) if occasion.new else None,
    )
    return _with_atoms(portrait, atoms)


def _shown_model(model: Any, fold: int | None, votes: Sequence[int] | None) -> ShownModel:
    first = model.estimators_[0]
    encoder = first.encoder
    radius = getattr(encoder, "effective_spectral_radius", None)
    n_layers = getattr(encoder, "n_layers", None)
    return ShownModel(
        encoder=encoder_in_words(encoder),
        name=_name_of(model, first.name),
        fold=None if fold is None else fold + 1,
        folds_alike=None if votes is None else max(votes),
        n_folds=None if votes is None else len(votes),
        n_layers=None if n_layers is None else int(n_layers),
        effective_spectral_radius=None if radius is None else float(radius),
    )


def _name_of(model: Any, name: str) -> str:
    """The name of a base model, where there are several."""
    return clean(name) if len({fitted.name for fitted in model.estimators_}) > 1 else ""


def _model_of_dynamics(
    model: Any, dynamics: Dynamics | None, shown: ShownModel
) -> ShownModel | None:
    """The base model with the reservoir, if it is not the one of the map."""
    if dynamics is None:
        return None
    encoder = dynamics.encoder
    radius = getattr(encoder, "effective_spectral_radius", None)
    found = replace(
        shown,
        encoder=type(encoder).__name__,
        name=_name_of(model, dynamics.name),
        n_layers=len(dynamics.reservoir.layers),
        effective_spectral_radius=None if radius is None else float(radius),
    )
    return None if found == shown else found


def _atoms(name: str, graphs: GraphBatch, *, molecules: bool) -> dict[str, str]:
    """Elements by vertex label, if these are molecules or a known dataset of them."""
    if molecules and graphs.label_values is not None:
        return {clean(label): clean(label) for label in graphs.label_values.tolist()}
    return atoms_of_labels(name, graphs)


def atoms_of_labels(name: str, graphs: GraphBatch) -> dict[str, str]:
    """Elements by vertex label, if these are the graphs of a known dataset of molecules."""
    facts = paper.DATASETS.get(name)
    found = (len(graphs), graphs.n_vertices)
    if name not in paper.ATOMS or facts is None or found != (facts.n_graphs, facts.n_vertices):
        return {}
    return {str(code): symbol for code, symbol in enumerate(paper.ATOMS[name])}


def _with_atoms(portrait: Portrait, atoms: Mapping[str, str]) -> Portrait:
    """Write elements for vertex labels."""
    if not atoms:
        return portrait
    data = portrait.data
    return replace(
        portrait,
        data=replace(data, labels=[(atoms.get(label, label), n) for label, n in data.labels]),
        drawings=[
            replace(d, labels=None if d.labels is None else [atoms.get(v, v) for v in d.labels])
            for d in portrait.drawings
        ],
    )
