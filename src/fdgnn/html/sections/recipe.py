"""What it took: settings, seeds, versions, machine, and the command to do it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from fdgnn.evaluation.committee_files import CommitteeRun
from fdgnn.evaluation.records import RunResult
from fdgnn.html.figures import Part, Section, Table
from fdgnn.html.model_data.records import Portrait
from fdgnn.html.numbers import duration, plain
from fdgnn.html.subjects import Subject

_WORDS = {
    "effective_spectral_radius": "ρ, effective spectral radius",
    "input_scaling": "ω(1), input scaling",
    "inter_layer_scaling": "ω, scaling between layers",
    "n_layers": "L, layers",
    "n_units": "H, units per layer",
    "n_connections": "C, connections per unit",
    "n_projections": "P, projections",
    "n_estimators": "random initializations, averaged",
    "alpha": "λ, regularization strength",
    "alphas": "λ, values tried",
    "tol": "ε, tolerance",
    "max_iter": "ν, iterations at most",
    "degree": "k, degree",
    "random_state": "seed",
    "n_outer": "outer folds",
    "n_inner": "inner folds",
    "max_layers": "L, layers at most",
    "n_configurations": "configurations",
    "n_guesses": "guesses per configuration",
    "data": "fingerprint of the data",
    "n_graphs": "graphs",
    "cpu": "processor family",
    "cpu_model": "processor",
    "memory_gb": "memory, GB",
}


def section(subjects: Sequence[Subject]) -> Section:
    """A part for each subject."""
    return Section(
        id="recipe",
        title="What it took",
        lead="Everything needed to get the same numbers again.",
        parts=[_part(i, s) for i, s in enumerate(subjects)],
    )


def _part(run: int, subject: Subject) -> Part:
    named = {"Settings": _settings(subject), "Versions and machine": _machine(subject)}
    tables = [(title, _table(values)) for title, values in named.items() if values]
    if subject.portrait is not None and subject.portrait.base_models:
        tables.insert(0, ("Base models", _base_models(subject.portrait)))
    command = subject.command
    lead = f"Read from {subject.origin}."
    if command is None and (subject.settings is not None or subject.committee is not None):
        lead += " Its files do not say with which command it was made."
    elif command is None and subject.portrait is not None:
        command = subject.portrait.command
    return Part(run, subject.name, tables=tables, command=command or "", lead=lead)


def _base_models(portrait: Portrait) -> Table:
    """The base models whose outputs are averaged, with their random initializations."""
    rows = [
        [
            one.name
            if one.n_estimators == 1
            else f"{one.name} \N{MULTIPLICATION SIGN} {one.n_estimators}",
            one.encoder,
            one.readout,
            plain(one.alpha),
        ]
        for one in portrait.base_models
    ]
    several = sum(one.n_estimators for one in portrait.base_models) > 1
    note = "Outputs of all of them are averaged." if several else ""
    return Table(["base model", "encoder", "readout", "\u03bb"], rows, 3, note)


def _table(values: Mapping[str, object]) -> Table:
    rows = [
        [_WORDS.get(name, name.replace("_", " ")), plain(value)] for name, value in values.items()
    ]
    return Table(["what", "value"], rows, n_words=2)


def _settings(subject: Subject) -> Mapping[str, object]:
    if subject.model is not None:
        return subject.model.settings
    if subject.committee is not None:
        return _committee_settings(subject.committee)
    chosen: dict[str, object] = {}
    if subject.result is not None:
        names = ("protocol", "n_graphs", "n_configurations", "n_guesses", "n_units")
        chosen = {name: getattr(subject.result, name) for name in names}
    if subject.settings is not None:
        shown = asdict(subject.settings)
        del shown["fdgnn"]  # it is among the versions
        return chosen | {name: value for name, value in shown.items() if name not in chosen}
    return chosen


def _committee_settings(run: CommitteeRun) -> Mapping[str, object]:
    """All but what is shown elsewhere: versions here, and members where they are judged."""
    n_graphs = {} if run.result is None else {"n_graphs": run.result.n_graphs}
    shown = asdict(run.settings) | n_graphs
    return {name: value for name, value in shown.items() if name not in ("fdgnn", "members")}


def _machine(subject: Subject) -> Mapping[str, object]:
    result, portrait = subject.evaluation, subject.portrait
    facts: dict[str, object] = {}
    if subject.settings is not None:
        facts["fdgnn"] = subject.settings.fdgnn
    if subject.committee is not None:
        facts["fdgnn"] = subject.committee.settings.fdgnn
    if subject.model is not None:
        facts |= subject.model.versions
    if result is not None:
        facts |= result.versions
    elif portrait is not None:
        facts |= portrait.versions
    if portrait is not None:
        facts |= asdict(portrait.machine)
    elif result is not None:
        facts |= result.machine
    if isinstance(result, RunResult):
        facts["the search, on one core"] = duration(result.times.networks_seconds)
    elif result is not None:
        facts["all models and folds, on one core"] = duration(sum(result.member_seconds))
    return {name: value for name, value in facts.items() if value is not None}
