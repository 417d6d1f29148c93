"""How to get the same numbers again: settings, versions, machine, and the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from fdgnn.html.figures import Figure, Part, Section, Table
from fdgnn.html.subjects import Subject
from fdgnn.html.words import duration, plain

_WORDS = {
    "effective_spectral_radius": "ρ, effective spectral radius",
    "input_scaling": "ω(1), input scaling",
    "inter_layer_scaling": "ω, scaling between layers",
    "n_layers": "L, layers",
    "n_units": "H, units per layer",
    "n_connections": "C, connections per unit",
    "n_projections": "P, projections",
    "n_estimators": "random initializations, averaged",
    "n_initializations": "random initializations",
    "alpha": "λ, regularization strength",
    "tol": "ε, tolerance",
    "max_iter": "ν, iterations at most",
    "degree": "k, degree",
    "random_state": "seed",
    "n_outer": "outer folds",
    "n_inner": "inner folds",
    "max_layers": "L, layers at most",
    "n_configurations": "configurations",
    "n_searched": "graphs of the search",
    "data_hash": "hash of the data",
    "n_graphs": "graphs",
}


def section(subjects: Sequence[Subject]) -> Section:
    """Return a part for each subject."""
    return Section(
        id="recipe",
        title="How to reproduce it",
        lead="Everything needed to get the same numbers again.",
        parts=[_part(i, s) for i, s in enumerate(subjects)],
    )


def _part(run: int, subject: Subject) -> Part:
    named = {"Settings": _settings(subject), "Versions and machine": _machine(subject)}
    figures = [
        Figure(f"recipe-{run}-{i}", title, "", table=_table(values), half=True, open=True)
        for i, (title, values) in enumerate(named.items())
        if values
    ]
    lead = f"Read from {subject.origin}."
    if subject.command is None and not subject.is_model_file:
        lead += " Its files do not record the command that made it."
    return Part(run, subject.name, figures, lead=lead, command=subject.command or "")


def _table(values: Mapping[str, object]) -> Table:
    rows = [
        [_WORDS.get(name, name.replace("_", " ")), plain(value)] for name, value in values.items()
    ]
    return Table(["name", "value"], rows, n_words=2)


def _settings(subject: Subject) -> Mapping[str, object]:
    found = dict(subject.settings)
    evaluation = subject.evaluations[0] if subject.evaluations else None
    if evaluation is not None:
        protocol = {f"protocol: {n}" if n == "name" else n: v for n, v in
                    asdict(evaluation.protocol).items() if v is not None}  # fmt: skip
        own = {} if subject.is_comparison else evaluation.model.parameters
        found |= {"data_hash": evaluation.data_hash, "n_graphs": evaluation.n_graphs}
        found = own | found | protocol
    elif subject.data is not None:
        found = subject.data.parameters | found
    return {name: value for name, value in found.items() if value not in ("", None)}


def _machine(subject: Subject) -> Mapping[str, object]:
    found = dict(subject.versions)
    evaluation = subject.evaluations[0] if subject.evaluations else None
    if subject.data is not None:
        found |= subject.data.versions | subject.data.machine
    if evaluation is not None:
        found |= evaluation.versions | evaluation.machine
        found |= {
            "last start of the command": _time(evaluation.times.total),
            "selection, on one core": _time(evaluation.times.selection),
        }
    return {name: value for name, value in found.items() if value is not None}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds)
