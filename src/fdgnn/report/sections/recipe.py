"""What it took: settings, seeds, versions, machine, and the command to do it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fdgnn.report.figures import Block, Section, Table
from fdgnn.report.numbers import duration, plain
from fdgnn.report.sections.missing import command_again
from fdgnn.report.sources import Source

_WORDS = {
    "effective_spectral_radius": "ρ, effective spectral radius",
    "input_scaling": "ω(1), input scaling",
    "inter_layer_scaling": "ω, scaling between layers",
    "n_layers": "L, layers",
    "n_units": "H, units a layer",
    "n_connections": "C, connections a unit",
    "n_projections": "P, projections",
    "n_networks": "networks, averaged",
    "alpha": "λ, Tikhonov's penalty",
    "alphas": "λ, penalties tried",
    "tol": "ε, tolerance",
    "max_iter": "ν, iterations at most",
    "degree": "k, degree",
    "random_state": "seed",
    "n_outer": "outer folds",
    "n_inner": "inner folds",
    "max_layers": "L, layers at most",
    "n_configurations": "configurations",
    "n_guesses": "guesses a configuration",
    "data": "fingerprint of the data",
    "n_graphs": "graphs",
    "cpu": "processor family",
    "cpu_model": "processor",
    "memory_gb": "memory, GB",
}


def section(sources: Sequence[Source]) -> Section:
    """A block for each source."""
    return Section(
        id="recipe",
        title="What it took",
        lead="Everything needed to get the same numbers again.",
        blocks=[_block(i, s) for i, s in enumerate(sources)],
    )


def _block(run: int, source: Source) -> Block:
    tables = [
        (title, _table(values))
        for title, values in (
            ("Settings", _settings(source)),
            ("Versions and machine", _machine(source)),
        )
        if values
    ]
    command = _command(source)
    lead = f"Read from {source.origin}."
    if command is None and source.settings is not None:
        lead += " With which command it was made, its files do not say."
    return Block(run, source.name, tables=tables, command=command or "", lead=lead)


def _table(values: dict[str, Any]) -> Table:
    rows = [
        [_WORDS.get(name, name.replace("_", " ")), plain(value)] for name, value in values.items()
    ]
    return Table(["what", "value"], rows, n_words=2)


def _settings(source: Source) -> dict[str, Any]:
    result, portrait = source.result or {}, source.portrait or {}
    names = ("protocol", "n_graphs", "n_configurations", "n_guesses", "n_units")
    chosen = {name: result[name] for name in names if name in result}
    from_run = {
        k: v for k, v in (source.settings or {}).items() if k not in chosen and k != "fdgnn"
    }
    if source.model is not None:
        facts = source.model
        model = {"class": facts.get("class"), **(facts.get("parameters") or {})}
        more = ("degree", "n_inputs", "vertex_input", "directed", "checksum")
        model |= {name: facts[name] for name in more if name in facts}
        return model
    if source.settings is None:
        return {k: v for k, v in portrait.get("settings", {}).items() if not isinstance(v, list)}
    return chosen | from_run


def _machine(source: Source) -> dict[str, Any]:
    result, portrait = source.result or {}, source.portrait or {}
    versions = result.get("versions") or portrait.get("versions") or {}
    machine = portrait.get("machine") or result.get("machine") or {}
    facts: dict[str, Any] = {
        name: value for name, value in (versions | machine).items() if value is not None
    }
    if source.model is not None:
        names = ("fdgnn", "numpy", "format_version")
        facts = {n: source.model[n] for n in names if n in source.model} | facts
    if source.settings is not None and "fdgnn" in source.settings:
        facts = {"fdgnn": source.settings["fdgnn"]} | facts
    times = result.get("times") or {}
    if times:
        facts["the search, on one core"] = duration(times["networks_seconds"])
    return facts


def _command(source: Source) -> str | None:
    """As it was given or, for a finished run that does not say, one that does the same."""
    if source.command is not None:
        return source.command
    if source.settings is not None:
        return command_again(source)
    return (source.portrait or {}).get("command")
