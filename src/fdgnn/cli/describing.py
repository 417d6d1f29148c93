"""What a model file says of its model, in words."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fdgnn.model_files.description import MODELS

if TYPE_CHECKING:
    from fdgnn.encoders.base import GraphKind
    from fdgnn.encoders.descriptors import DescriptorColumn
    from fdgnn.graphs.reading import Reading
    from fdgnn.model_files import ModelInfo
    from fdgnn.model_files.description import NetworkRecord
    from fdgnn.model_files.targets import TargetRecord
    from fdgnn.model_files.trust import TrustRecord

_CLASSES = 10  # that are named
_STANDARDIZED = {"parent": "largest fragment", "tautomer": "canonical tautomer"}
_VERTICES = {"labels": "vertex labels", "features": "features per vertex"}


def model_in_words(info: ModelInfo) -> dict[str, object]:
    """Facts about a model by name, in the order in which they are shown."""
    words: dict[str, object] = {"model": info.model or f"encoder {info.encoder.kind}"}
    if info.classes is not None:
        values = info.classes.values
        more = ", ..." if len(values) > _CLASSES else ""
        words["classes"] = f"{len(values)}: {', '.join(map(str, values[:_CLASSES]))}{more}"
        words["probabilities"] = "no" if info.calibration is None else "yes"
    elif info.targets:
        words["targets"] = [_target(target) for target in info.targets]
    elif info.n_outputs:
        words["predicts"] = "a number" if info.single_output else f"{info.n_outputs} numbers"
    if info.score is not None:
        how = "by nested cross validation" if info.nested else "of the training"
        how += f", {info.split}" if info.split else ""
        words["score"] = f"{_scores(info.scores) or format(info.score, '.4f')} ({how})"
    if info.rival:
        words["Morgan counts"] = f"{_scores(info.rival)} (in the same folds)"
    if info.repeats is not None:
        words["twins"] = info.repeats
    if info.model is not None:
        classify = info.classes is not None or any(target.classes for target in info.targets)
        words["sets" if classify else "intervals"] = _held_out_in_words(info.trust)
    words["graphs"] = _kind_in_words(info.graph_kind)
    if info.descriptors:
        words["descriptors"] = ", ".join(_descriptor(column) for column in info.descriptors)
    if info.reading is not None:
        words["read from"] = _reading_in_words(info.reading)
    if info.networks:
        words["networks"] = _networks(info)
    words["parameters"] = _parameters(info) or "all by default"
    words["written by"] = f"fdgnn {info.fdgnn}, in format {info.format}"
    return words


def _held_out_in_words(trust: TrustRecord) -> str:
    """Whether there are sets or intervals, and what they rest on."""
    if trust.held_out is None:
        return "no: the file has no held-out scores"
    return f"yes, by held-out scores of {sum(trust.held_out)} answers"


def _kind_in_words(kind: GraphKind) -> str:
    direction = "directed" if kind.directed else "undirected"
    inputs = f"{kind.n_inputs} {_VERTICES[kind.vertices]}" if kind.vertices in _VERTICES else ""
    return f"{direction}, {inputs or 'nothing on vertices'}"


def _target(target: TargetRecord) -> str:
    what = "a number"
    if target.classes is not None:
        what = f"classes {', '.join(map(str, target.classes.values[:_CLASSES]))}"
    scores = _scores(target.scores)
    return f"{target.name}: {what}" + (f"; {scores}" if scores else "")


def _scores(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {score:.4f}" for name, score in scores.items())


def _descriptor(column: DescriptorColumn) -> str:
    kinds = f"{len(column.categories)} categories" if column.kind == "category" else "number"
    return f"{column.name} ({kinds}{', some missing' if column.missing else ''})"


def _reading_in_words(reading: Reading) -> str:
    known = {
        "column": reading.smiles_column,
        "atoms": reading.atoms,
        "vertices": ", ".join(reading.vertex_attributes),
        "edges": reading.edge_attribute,
        "arcs": None if reading.arc_labels == "ignore" else f"as {reading.arc_labels}",
        "standardized,": _STANDARDIZED.get(reading.standardize or ""),
        "stereo": "told" if reading.stereo else None,
    }
    found = [f"{name} {value}" for name, value in known.items() if value]
    return "; ".join([reading.source, *found])


def _networks(info: ModelInfo) -> list[str]:
    """One line for those that are alike."""
    alike = Counter(
        (network.name or (network.encoder or info.encoder).kind, network.readout, _penalty(network))
        for network in info.networks
    )
    lines = []
    for (name, readout, penalty), n in alike.items():
        times = f"{n} x " if n > 1 else ""
        lines.append(f"{times}{name} ({readout} readout{penalty})")
    return lines


def _penalty(network: NetworkRecord) -> str:
    if isinstance(network.alpha, list):
        return f", penalties {', '.join(f'{alpha:g}' for alpha in network.alpha)}"
    return "" if network.alpha is None else f", penalty {network.alpha:g}"


def _parameters(info: ModelInfo) -> str:
    """Parameters that differ from the defaults."""
    kind = MODELS.get(info.model or "")
    usual = {} if kind is None else inspect.signature(kind).parameters
    given = info.parameters if info.model else info.encoder.parameters
    changed = {
        name: value
        for name, value in given.items()
        if name not in usual or usual[name].default != value
    }
    return ", ".join(f"{name}={value!r}" for name, value in changed.items())
