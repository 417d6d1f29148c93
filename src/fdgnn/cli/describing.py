"""What a model file says of its model, in words."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fdgnn.model_files.description import MODELS

if TYPE_CHECKING:
    from fdgnn.encoders.base import GraphKind
    from fdgnn.encoders.descriptors import DescriptorColumn
    from fdgnn.encoders.registry import EncoderRecord
    from fdgnn.evaluation.record import Evaluation, MetricScores
    from fdgnn.model_files import ModelInfo
    from fdgnn.model_files.description import EstimatorRecord
    from fdgnn.model_files.state import TargetRecord
    from fdgnn.schema import InputSchema

_CLASSES = 10  # that are named
_STANDARDIZED = {"parent": "largest fragment", "tautomer": "canonical tautomer"}
_VERTICES = {"labels": "vertex labels", "features": "features per vertex"}


def model_in_words(info: ModelInfo) -> dict[str, object]:
    """Facts about a model by name, in the order in which they are shown."""
    words: dict[str, object] = {"model": info.model or f"encoder {_kind(info.encoder)}"}
    if info.model is not None:
        words["targets" if len(info.targets) > 1 else "predicts"] = _targets(info)
    found = info.evaluation
    if found is None and info.score is not None:
        how = "nested cross-validation" if info.nested else "of the training"
        words["score"] = f"{info.score:.4f} ({how})"
    if found is not None:
        words["score"] = (
            f"{_scores(found.metrics)} (nested cross-validation, {found.protocol.split})"
        )
        morgan = [found.baseline("morgan", each.metric) for each in found.metrics]
        if known := [each for each in morgan if each is not None]:
            words["Morgan counts"] = f"{_scores(known)} (in the same folds)"
        if found.notes:
            words["notes"] = "; ".join(found.notes)
    if info.model is not None:
        classify = any(target.classes for target in info.targets)
        words["sets" if classify else "intervals"] = _conformal(info.targets)
    words["graphs"] = _kind_in_words(info.graph_kind)
    if info.descriptors:
        words["descriptors"] = ", ".join(_descriptor(column) for column in info.descriptors)
    if info.schema is not None:
        words["read from"] = _schema_in_words(info.schema)
    if info.estimators:
        words["base models"] = _estimators(info)
    words["parameters"] = _parameters(info) or "all by default"
    words["written by"] = f"fdgnn {info.fdgnn}, in format {info.format}"
    return words


def _kind(encoder: EncoderRecord | None) -> str:
    return "" if encoder is None else encoder.kind


def _conformal(targets: Sequence[TargetRecord]) -> str:
    """Whether there are sets or intervals, and what they rest on."""
    counts = [sum(target.conformal) for target in targets if target.conformal is not None]
    if not counts:
        return "no: the file has no conformal scores"
    return f"yes, by conformal scores of {sum(counts)} out-of-fold predictions"


def _kind_in_words(kind: GraphKind) -> str:
    direction = "directed" if kind.directed else "undirected"
    inputs = f"{kind.n_inputs} {_VERTICES[kind.vertices]}" if kind.vertices in _VERTICES else ""
    return f"{direction}, {inputs or 'nothing on vertices'}"


def _targets(info: ModelInfo) -> str | list[str]:
    """The only target, or one line for each."""
    each = [_target(target, info.evaluation) for target in info.targets]
    return each[0] if len(each) == 1 else each


def _target(target: TargetRecord, evaluation: Evaluation | None) -> str:
    what = "a number"
    if target.classes is not None:
        values = target.classes.values
        more = ", ..." if len(values) > _CLASSES else ""
        what = f"{len(values)} classes: {', '.join(map(str, values[:_CLASSES]))}{more}"
        what += ", with probabilities" if target.slope is not None else ""
    if not target.name:
        return what
    scores = _scores([] if evaluation is None else evaluation.of_target(target.name).metrics)
    return f"{target.name}: {what}" + (f"; {scores}" if scores else "")


def _scores(scores: Sequence[MetricScores]) -> str:
    """Write means over the outer folds, with their standard deviations."""
    each = []
    for one in scores:
        if one.mean is not None:
            deviation = "" if one.std is None else f" ± {one.std:.4f}"
            each.append(f"{one.words} {one.mean:.4f}{deviation}")
    return ", ".join(each)


def _descriptor(column: DescriptorColumn) -> str:
    kinds = f"{len(column.categories)} categories" if column.kind == "category" else "number"
    return f"{column.name} ({kinds}{', some missing' if column.missing else ''})"


def _schema_in_words(schema: InputSchema) -> str:
    known = {
        "column": schema.smiles_column,
        "atoms": schema.atoms,
        "vertices": ", ".join(schema.vertex_attributes),
        "edges": schema.edge_attribute,
        "arcs": None if schema.edge_labels == "ignore" else f"as {schema.edge_labels}",
        "standardized,": _STANDARDIZED.get(schema.standardize or ""),
        "stereo": "told" if schema.stereo else None,
    }
    found = [f"{name} {value}" for name, value in known.items() if value]
    return "; ".join([schema.source, *found])


def _estimators(info: ModelInfo) -> list[str]:
    """One line for those that are alike."""
    alike = Counter((model.name, model.readout, _alpha(model)) for model in info.estimators)
    lines = []
    for (name, readout, alpha), n in alike.items():
        times = f"{n} x " if n > 1 else ""
        lines.append(f"{times}{name} ({readout} readout{alpha})")
    return lines


def _alpha(model: EstimatorRecord) -> str:
    given = model.alpha if isinstance(model.alpha, list) else [model.alpha]
    known = [f"{alpha:g}" for alpha in given if alpha is not None]
    return f", alpha {', '.join(known)}" if known else ""


def _parameters(info: ModelInfo) -> str:
    """Parameters that differ from the defaults."""
    kind = MODELS.get(info.model or "")
    usual = {} if kind is None else inspect.signature(kind).parameters
    given = info.parameters
    if not info.model and info.encoder is not None:
        given = info.encoder.parameters
    changed = {
        name: value
        for name, value in given.items()
        if name not in usual or usual[name].default != value
    }
    return ", ".join(f"{name}={value!r}" for name, value in changed.items())
