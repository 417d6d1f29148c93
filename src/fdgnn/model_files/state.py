"""Fitted state as arrays and back: readouts, targets, applicability domain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
import scipy.sparse as sp

from fdgnn.applicability import ApplicabilityDomain, Leverage, SeenFeatures
from fdgnn.arrays import Array, Floats
from fdgnn.encoders.registry import reject, take
from fdgnn.exceptions import ModelFileError
from fdgnn.fitting import FittedModel, Readout
from fdgnn.limits import MAX_MODEL_HEADER_BYTES
from fdgnn.linear import KernelReadout, LinearReadout, SparseReadout
from fdgnn.neighbors import TrainingGraphs, as_text, kernel_models
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.records import Record
from fdgnn.targets import Targets
from fdgnn.uncertainty import ConformalScores, FittedTarget

ReadoutName: TypeAlias = Literal["linear", "rbf"]

_SHORT = 2**16  # columns that 16 bits can number


def n_columns(readout: Readout) -> int:
    """Return P, the number of features that the readout sees."""
    if isinstance(readout, KernelReadout):
        return int(readout.examples.shape[1])
    return readout.n_features if isinstance(readout, SparseReadout) else readout.coef.shape[1]


def readout_arrays(readout: Readout) -> dict[str, Array]:
    """Return the arrays of a readout, in the form that takes less room."""
    if isinstance(readout, KernelReadout):
        X = readout.examples
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return {
            "examples.indptr": X.indptr.astype(np.int32),
            **_coded("examples.indices", X.indices.astype(np.int32)),
            **_coded("examples.data", X.data),
            "dual": readout.dual,
            "intercept": readout.intercept,
            "sharpness": readout.sharpness,
            "starts": np.array(readout.starts, dtype=np.int32),
            "shares": np.array(readout.shares),
        }
    sparse = readout if isinstance(readout, SparseReadout) else readout.sparse()
    arrays: dict[str, Array] = {"coef.columns": sparse.columns, "coef.values": sparse.values}
    if isinstance(readout, LinearReadout) and _size(arrays) >= readout.coef.nbytes:
        arrays = {"coef": readout.coef}
    return arrays | {"intercept": readout.intercept}


def restored_readout(
    name: ReadoutName, arrays: dict[str, Array], P: int, n_outputs: int
) -> Readout:
    """Pop the arrays of a readout of P features from those of its estimator, and check them."""
    intercept = take(arrays, "intercept", 1)
    _check(intercept.shape == (n_outputs,))
    if name == "rbf":
        return _kernel_readout(arrays, P, intercept)
    if "coef" in arrays:
        coef = take(arrays, "coef", 2)
        _check(coef.shape == (n_outputs, P))
        return LinearReadout(coef, intercept)
    columns, values = take(arrays, "coef.columns", 1, np.int32), take(arrays, "coef.values", 2)
    _check(values.shape == (n_outputs, len(columns)))
    _check_ascending(columns, P)
    return SparseReadout(columns, values, intercept, P)


# ---------------------------------------------------------------------- RBF kernel ridge regression


def _coded(name: str, entries: Array) -> dict[str, Array]:
    """Return entries, or their distinct values and codes, if that takes less room."""
    values = np.unique(entries)
    if len(values) > _SHORT:
        return {name: entries}
    codes = np.searchsorted(values, entries).astype(_code_type(len(values)))
    short = {f"{name}.values": values, f"{name}.codes": codes}
    return short if _size(short) < entries.nbytes else {name: entries}


def _decoded(arrays: dict[str, Array], name: str, dtype: Any) -> Array:
    """Pop entries that `_coded` has written, and check that each value has an entry."""
    if name in arrays:
        return take(arrays, name, 1, dtype)
    values = take(arrays, f"{name}.values", 1, dtype)
    codes = take(arrays, f"{name}.codes", 1, _code_type(len(values)))
    _check(bool((codes < len(values)).all()) and len(np.unique(codes)) == len(values))
    return np.asarray(values[codes])


def _code_type(n_values: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if n_values <= 256 else np.uint16


def _kernel_readout(arrays: dict[str, Array], P: int, intercept: Floats) -> KernelReadout:
    dual, sharpness = take(arrays, "dual", 2), take(arrays, "sharpness", 1)
    starts, shares = take(arrays, "starts", 1, np.int32), take(arrays, "shares", 1)
    _check(len(shares) == len(starts) and bool((shares > 0).all() and (shares <= 1).all()))
    _check(len(sharpness) == len(starts) > 0 and dual.shape[1] == len(intercept))
    _check(bool((sharpness > 0).all()) and len(dual) > 0 and starts[0] == 0)
    _check_ascending(starts, P)
    # The features of the training graphs, whose rows and columns are checked.
    indptr = take(arrays, "examples.indptr", 1, np.int32)
    indices = _decoded(arrays, "examples.indices", np.int32)
    data = _decoded(arrays, "examples.data", np.float64)
    _check(len(indptr) > 0 and indptr[-1] == len(indices))
    try:
        X = sp.csr_array((data, indices, indptr), shape=(len(dual), P))
        X.check_format(full_check=True)
    except ValueError as error:
        reject(f"the features of its training graphs do not fit together ({error})")
    _check(bool(X.has_canonical_format))
    groups = sharpness, tuple(starts.tolist()), tuple(shares.tolist())
    return KernelReadout(X, dual, intercept, *groups)


# ---------------------------------------------------------------------- checks


def _check_ascending(places: Array, n: int) -> None:
    inside = bool((places >= 0).all() and (places < n).all())
    if not inside or not (places[1:] > places[:-1]).all():
        reject("the columns of its readout do not ascend, or do not exist")


def _check(fits: bool) -> None:
    if not fits:
        reject("the sizes of features, projection and readout do not fit together")


def _size(arrays: dict[str, Array]) -> int:
    return sum(array.nbytes for array in arrays.values())


Label = bool | int | float | str
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_WHOLE)]


class ClassesRecord(Record, frozen=True, kw_only=True):
    """The classes of a target, and the type of their array."""

    dtype: Annotated[str, msgspec.Meta(pattern=r"^(\|O|[<>|][biufU][0-9]{1,7})$")]
    values: list[Label]


_Weight = Annotated[float, msgspec.Meta(ge=-1e3, le=1e3)]


class TargetRecord(Record, frozen=True, kw_only=True):
    """One target."""

    name: str = ""
    classes: ClassesRecord | None = None  # None for a numeric target
    slope: float | None = None  # of probabilities
    threshold: float | None = None  # was subtracted from the outputs
    transform: Literal["log10", "pIC50"] | None = None  # the scale of the outputs
    conformal: list[Count] | None = None  # numbers of conformal scores of each class
    difficulty: Annotated[list[_Weight], msgspec.Meta(max_length=4)] | None = None


# ---------------------------------------------------------------------- from a model


def describe_targets(model: Any) -> list[TargetRecord]:
    """Describe the targets of a fitted model."""
    return [
        TargetRecord(
            name=target.name,
            classes=_describe_classes(target.classes),
            slope=target.slope,
            threshold=target.threshold,
            transform=target.transform,
            conformal=None if target.scores is None else [*map(len, target.scores.groups)],
            difficulty=None if target.difficulty is None else target.difficulty.tolist(),
        )
        for target in model.targets_
    ]


def _describe_classes(classes: Array | None) -> ClassesRecord | None:
    if classes is None:
        return None
    if not _can_be_classes(classes):
        raise ModelFileError(
            f"classes of dtype {classes.dtype} cannot be saved; fit with numbers or text as y"
        )
    return ClassesRecord(dtype=classes.dtype.str, values=classes.tolist())


def _can_be_classes(classes: Array) -> bool:
    kind = classes.dtype.kind
    return kind in "biufU" or (kind == "O" and all(type(value) is str for value in classes))


# ---------------------------------------------------------------------- to a model


def restore_targets(
    records: Sequence[TargetRecord], model: Any, flat: bool, arrays: dict[str, Array]
) -> tuple[FittedTarget, ...]:
    """Build the targets of a model of these parameters, each checked.

    Conformal scores are taken out of the arrays.
    """
    names = {record.name for record in records}
    if not records or len(names) < len(records) or (flat and len(records) > 1):
        reject("no targets, two with the same name, or several in a flat y")
    found: list[FittedTarget] = []
    for t, record in enumerate(records):
        start = found[-1].columns.stop if found else 0
        found.append(_restored(record, model, start, arrays, str(t)))
    return tuple(found)


def _restored(
    record: TargetRecord, model: Any, start: int, arrays: dict[str, Array], number: str
) -> FittedTarget:
    classes, width, n_groups = None, 1, 1
    fits = (record.classes is None) == hasattr(model, "intervals")
    if record.classes is not None:
        classes = _restored_classes(record.classes)
        n_groups = len(classes)
        width = 1 if n_groups == 2 else n_groups
        fits &= n_groups >= 2 and (record.slope is None) == (record.conformal is None)
    fits &= record.slope is None or (classes is not None and 0 < record.slope < math.inf)
    learned = getattr(model, "probability", None) or getattr(model, "intervals", None)
    fits &= record.conformal is not None or not learned
    fits &= record.difficulty is None or (classes is None and record.conformal is not None)
    cut = record.threshold
    fits &= (cut is None) == (model.threshold is None)
    fits &= record.transform == model._target_transform
    fits &= cut is None or (n_groups == 2 and math.isfinite(cut))
    if not fits:
        reject(f"classes, probabilities and threshold are not those of a {type(model).__name__}")
    scores = None
    if record.conformal is not None:
        scores = _restored_scores(record.conformal, n_groups, classes, arrays, number)
    weights = None if record.difficulty is None else np.array(record.difficulty)
    return FittedTarget(
        record.name, classes, slice(start, start + width), record.slope, cut, scores, weights,
        transform=record.transform,
    )  # fmt: skip


def _restored_scores(
    lengths: list[int], n_groups: int, classes: Array | None, arrays: dict[str, Array], number: str
) -> ConformalScores:
    values = take(arrays, number, 1)
    if len(lengths) != n_groups or sum(lengths) != len(values) or not all(lengths):
        reject("the number of its conformal scores is wrong")
    groups = tuple(np.split(values, np.cumsum(lengths)[:-1]))
    ascend = all((group[1:] >= group[:-1]).all() for group in groups)
    if not ascend or (values < 0).any() or (classes is not None and (values > 1).any()):
        reject("conformal scores do not ascend, or are out of range")
    return ConformalScores(groups)


def _restored_classes(record: ClassesRecord) -> Array:
    """Build the array, and check that no value was cut off or rounded."""
    values = record.values
    try:
        dtype = np.dtype(record.dtype)
        if MAX_MODEL_HEADER_BYTES.is_below(dtype.itemsize * len(values) / 4):
            raise ValueError
        array = np.array(values, dtype=dtype)
        again = array.tolist()
        fits = again == values and list(map(type, again)) == list(map(type, values))
        if not (fits and _can_be_classes(array) and np.array_equal(np.unique(array), array)):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        reject("classes are not an ascending array of numbers or texts")
    return array


class DomainRecord(Record, frozen=True, kw_only=True):
    """The measure of the applicability domain, without its arrays."""

    measure: Literal["wl", "leverage"]
    estimator: Count  # whose features are compared
    limit: Annotated[float, msgspec.Meta(ge=0, le=1)]
    n_graphs: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_WHOLE)] | None = None  # of a leverage


def describe_domain(domain: ApplicabilityDomain | None) -> DomainRecord | None:
    """Describe a model's applicability domain."""
    if domain is None:
        return None
    measure = domain.measure
    return DomainRecord(
        measure="leverage" if isinstance(measure, Leverage) else "wl",
        estimator=domain.estimator,
        limit=domain.limit,
        n_graphs=measure.n_graphs if isinstance(measure, Leverage) else None,
    )


def domain_arrays(domain: ApplicabilityDomain | None) -> dict[str, Array]:
    """Return the arrays of a model's applicability domain."""
    if domain is None:
        return {}
    measure: Any = domain.measure
    if isinstance(measure, SeenFeatures):
        return {"seen": measure.words}
    return {"mean": measure.mean, "factor": measure.factor[np.tril_indices(len(measure.mean))]}


def restore_domain(
    record: DomainRecord | None, models: Sequence[FittedModel], arrays: dict[str, Array]
) -> ApplicabilityDomain | None:
    """Build and check an applicability domain; its arrays are removed from `arrays`."""
    if record is None:
        return None
    if record.estimator >= len(models):
        reject(f"applicability domain is of estimator {record.estimator}, which does not exist")
    encoder = models[record.estimator].encoder
    if record.measure == "wl":
        words = take(arrays, "seen", 1, np.uint64)
        if encoder.n_counted is None or len(words) != -(-encoder.n_counted // 64):
            reject("the features of its training graphs are not those of its encoder")
        return ApplicabilityDomain.known(record.estimator, SeenFeatures(words), record.limit)
    mean, below = take(arrays, "mean", 1), take(arrays, "factor", 1)
    H = len(mean)
    if len(below) != H * (H + 1) // 2 or encoder.n_features_out not in (None, H):
        reject("leverage does not fit the features of its encoder")
    factor = np.zeros((H, H), order="F")
    factor[np.tril_indices(H)] = below
    if record.n_graphs is None or not (factor.diagonal() > 0).all():
        reject("leverage is not that of any graphs")
    return ApplicabilityDomain.known(
        record.estimator, Leverage(record.n_graphs, mean, factor), record.limit
    )


# ---------------------------------------------------------------------- training graphs


def training_arrays(kept: TrainingGraphs | None) -> dict[str, Array]:
    """Return the arrays of the training graphs that a model keeps.

    Unknown values are zero and are listed; texts are encoded as UTF-8, a zero byte after each.
    """
    if kept is None:
        return {}
    known, values = kept.targets.known, np.asarray(kept.targets.values, dtype=np.float64)
    arrays = {"targets": np.where(known, values, 0.0), "known": known.astype(np.uint8)}
    if kept.errors is not None:
        arrays["errors"] = np.where(np.isnan(kept.errors), -1.0, kept.errors)
    for name, texts in (("ids", kept.ids), ("smiles", kept.smiles)):
        if texts is not None:
            joined = "".join(f"{text}\0" for text in texts.tolist())
            arrays[name] = np.frombuffer(joined.encode(), dtype=np.uint8)
    return arrays


def restore_training_graphs(
    model: Any, there: bool, arrays: dict[str, Array]
) -> TrainingGraphs | None:
    """Build the training graphs of a model with these targets and estimators, checked."""
    has_domain = model._domain is not None
    kernels = kernel_models(model.estimators_)
    if not there:
        _check_difficulty(model.targets_, 1 + has_domain)
        return None
    sizes = {len(model.estimators_[i].readout.dual) for i in kernels}
    values = take(arrays, "targets", 2)
    shape, n_targets = values.shape, len(model.targets_)
    given = take(arrays, "known", 2, np.uint8)
    known = given == 1
    _check_training(given.shape == shape and bool((given <= 1).all()))
    _check_training(sizes == {shape[0]} and shape[1] == n_targets)
    errors = None
    if "errors" in arrays:
        errors = take(arrays, "errors", 2)
        _check_training(errors.shape == shape)
        errors = np.where(errors < 0, np.nan, errors)
        _check_training(bool((~np.isnan(errors)).any(axis=0).all()))
    _check_difficulty(model.targets_, 1 + has_domain + 2 * (errors is not None))
    texts = {name: _texts(arrays, name, shape[0]) for name in ("ids", "smiles") if name in arrays}
    classes = tuple(target.classes for target in model.targets_)
    names = tuple(target.name for target in model.targets_)
    if classes[0] is None:
        numbers = np.where(known, values, np.nan)
        targets = Targets(names, numbers, None, model._flat, model._target_transform)
    else:
        whole = (values == np.floor(values)) & (values >= 0)
        _check_training(bool((whole & (values < [len(own) for own in classes])).all()))
        targets = Targets(names, np.where(known, values, -1).astype(np.int64), classes, model._flat)
    return TrainingGraphs(targets, errors, **texts)


def _texts(arrays: dict[str, Array], name: str, n: int) -> Array:
    content = take(arrays, name, 1, np.uint8).tobytes()
    _check_training(content.count(b"\0") == n and content.endswith(b"\0"))
    try:
        return as_text(content[:-1].decode().split("\0"))
    except UnicodeDecodeError:
        reject(f"the {name} of its training graphs are not UTF-8")


def _check_training(fits: bool) -> None:
    if not fits:
        reject("training graphs do not fit the targets and readouts")


def _check_difficulty(targets: Sequence[FittedTarget], n_conditions: int) -> None:
    for target in targets:
        if target.difficulty is not None and len(target.difficulty) != n_conditions:
            reject("the difficulty of its targets does not fit its training graphs")
