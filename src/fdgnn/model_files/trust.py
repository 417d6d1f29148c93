"""What tells how far to trust a prediction, in model files: held-out scores, and novelty."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NoReturn

import msgspec
import numpy as np

from fdgnn.arrays import Array, Floats, prefixed
from fdgnn.encoders.records import take
from fdgnn.exceptions import ModelFileError
from fdgnn.novelty import Leverage, Novelty, SeenColors
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.readout.conformal import ConformalScores
from fdgnn.records import Record

Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_WHOLE)]
CONFORMAL, NOVELTY = "conformal", "novelty"  # what names of arrays begin with


class NoveltyRecord(Record, frozen=True, kw_only=True):
    """How a model tells which graphs are unlike its training graphs."""

    measure: Literal["colors", "leverage"]
    network: Count
    limit: Annotated[float, msgspec.Meta(ge=0, le=1)]
    n_graphs: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_WHOLE)] | None = None  # of a leverage


class TrustRecord(Record, frozen=True, kw_only=True):
    """What a file says of held-out scores and novelty, beside the arrays; files may have none."""

    held_out: list[Count] | None = None  # scores of each class, or of each output
    novelty: NoveltyRecord | None = None


# ---------------------------------------------------------------------- from a model


def describe_trust(model: Any) -> TrustRecord:
    """Describe what a fitted model has."""
    scores: ConformalScores | None = getattr(model, "conformal_", None)
    return TrustRecord(
        held_out=None if scores is None else [len(group) for group in scores.groups],
        novelty=None if model.novelty_ is None else _described(model.novelty_),
    )


def _described(novelty: Novelty) -> NoveltyRecord:
    measure = novelty.measure
    return NoveltyRecord(
        measure="leverage" if isinstance(measure, Leverage) else "colors",
        network=novelty.network,
        limit=novelty.limit,
        n_graphs=measure.n_graphs if isinstance(measure, Leverage) else None,
    )


def trust_arrays(model: Any) -> dict[str, Array]:
    """Give the arrays of held-out scores and novelty."""
    arrays: dict[str, Array] = {}
    scores: ConformalScores | None = getattr(model, "conformal_", None)
    if scores is not None:
        arrays |= prefixed(CONFORMAL, {"scores": np.concatenate(scores.groups)})
    if model.novelty_ is not None:
        arrays |= prefixed(NOVELTY, _measure_arrays(model.novelty_.measure))
    return arrays


def _measure_arrays(measure: Any) -> dict[str, Array]:
    if isinstance(measure, SeenColors):
        return {"seen": measure.words}
    below = np.tril_indices(len(measure.mean))
    return {"mean": measure.mean, "factor": measure.factor[below]}


# ---------------------------------------------------------------------- to a model


def restore_trust(record: TrustRecord, model: Any, groups: dict[str, dict[str, Array]]) -> None:
    """Give a model whose networks are there what its file has, all of it checked."""
    scores, measured = groups.pop(CONFORMAL, {}), groups.pop(NOVELTY, {})
    if record.held_out is not None:
        model.conformal_ = _restored_scores(record.held_out, model, scores)
    model.novelty_ = None
    if record.novelty is not None:
        model.novelty_ = _restored_novelty(record.novelty, model, measured)
    if rest := scores | measured:
        _refuse(f"it has an array {min(rest)[:40]!r}, of which it does not say what it is for")


def _restored_scores(lengths: list[int], model: Any, arrays: dict[str, Array]) -> ConformalScores:
    values: Floats = take(arrays, "scores", 1)
    classes: Any = getattr(model, "classes_", None)
    several = isinstance(classes, list)
    n_groups = model.n_outputs_ if classes is None else len(classes)
    if several:
        n_groups = sum(len(each) for each in classes)
    if len(lengths) != n_groups or sum(lengths) != len(values) or not all(lengths):
        _refuse("its held-out scores are not as many as it says")
    if classes is not None and not several and not hasattr(model, "calibration_"):
        _refuse("it has held-out scores of classes, but no calibration")
    found = tuple(np.split(values, np.cumsum(lengths)[:-1]))
    ascend = all((group[1:] >= group[:-1]).all() for group in found)
    if not ascend or (values < 0).any() or (classes is not None and (values > 1).any()):
        _refuse("its held-out scores do not ascend, or are no such scores")
    return ConformalScores(found)


def _restored_novelty(record: NoveltyRecord, model: Any, arrays: dict[str, Array]) -> Novelty:
    if record.network >= len(model.networks_):
        _refuse(f"its novelty is that of network {record.network}, which it has not")
    encoder = model.networks_[record.network].encoder
    if record.measure == "colors":
        words = take(arrays, "seen", 1, np.uint64)
        if encoder.n_counted is None or len(words) != -(-encoder.n_counted // 64):
            _refuse("the colors that it has seen are not those of its encoder")
        return Novelty.known(record.network, SeenColors(words), record.limit)
    mean, below = take(arrays, "mean", 1), take(arrays, "factor", 1)
    H = len(mean)
    if len(below) != H * (H + 1) // 2 or encoder.n_features_out not in (None, H):
        _refuse("its leverage does not fit the features of its encoder")
    factor = np.zeros((H, H), order="F")
    factor[np.tril_indices(H)] = below
    if record.n_graphs is None or not (factor.diagonal() > 0).all():
        _refuse("its leverage is not that of any graphs")
    return Novelty.known(record.network, Leverage(record.n_graphs, mean, factor), record.limit)


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)
