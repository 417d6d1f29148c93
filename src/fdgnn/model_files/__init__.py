"""Model files: a fitted model as one small file that holds its weights, and no code.

`description` turns a model into a record and back; `estimators`, `readouts`, `targets` and
`applicability` turn what it has learned into arrays and back; `container` turns records and arrays
into a safetensors file and back.
docs/reference/model-files.md describes the format.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, grouped, largest_of, prefixed
from fdgnn.encoders import Encoder
from fdgnn.encoders.registry import restore_encoder
from fdgnn.exceptions import ModelFileError
from fdgnn.files import write_aside
from fdgnn.limits import MAX_NUMBER
from fdgnn.model_files import container, description, state

_logger = logging.getLogger("fdgnn")

__all__ = ["ModelInfo", "load_model", "model_info", "save_model"]


class ModelInfo(description.ModelRecord, frozen=True, kw_only=True):
    """The facts in a model file: the model, and which version wrote it."""

    fdgnn: str
    format: int


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    training_graphs: bool = True,
) -> None:
    """Save a fitted model to a file; `load_model` restores the same predictions.

    The file is written under a temporary name and renamed, so that a crash leaves the old file. It
    does not contain the training graphs' edges, `n_jobs`, `n_iter_` and `converged_`.

    Parameters
    ----------
    model : any model of this library, FDGNNSearchCV or an encoder
        A fitted model. For a search, its best model is saved.
    path : path
    training_graphs : bool, default=True
        Whether the file contains targets, ids and SMILES of the training graphs of a model with
        kernels, for `neighbors`. Without them, `neighbors` returns only positions and similarities.
        The file contains features of the training graphs in any case, because the kernel needs
        them.

    Raises
    ------
    ModelFileError
        The model cannot be saved; the message has the reason.

    Examples
    --------
    >>> import tempfile
    >>> from fdgnn import FDGNNClassifier, load_model, save_model
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/motifs.fdgnn")
    ...     again = load_model(f"{folder}/motifs.fdgnn")
    >>> bool((again.decision_function(graphs) == model.decision_function(graphs)).all())
    True
    """
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, Encoder) and description.MODELS.get(type(model).__name__) is not type(
        model
    ):
        names = ", ".join(description.MODELS)
        raise TypeError(f"a {type(model).__name__} cannot be saved; expected {names} or an encoder")
    check_is_fitted(model)
    content = container.to_bytes(
        description.as_json(description.describe(model)), _arrays(model, training_graphs)
    )
    try:
        _restored(container.from_bytes(content))
    except ModelFileError as error:  # for instance, parameters were set after fitting
        raise ModelFileError(f"the model cannot be saved as it is: {error}; fit it again") from None
    with write_aside(Path(path)) as file:
        file.write(content)
    _logger.info("saved %s to %s", type(model).__name__, path)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file written by `save_model`.

    Nothing in the file is executed, and its content is validated: a model from an untrusted file
    can only predict wrongly or slowly.

    Returns
    -------
    model or encoder
        The fitted model. ``evaluation_`` has the nested cross-validation results of `fdgnn fit`, if
        the command wrote the file, or is None.

    Raises
    ------
    ModelFileError
        The file is not a model file, or it is truncated, altered or inconsistent.
    ModelVersionError
        The file needs another version of fdgnn.
    OSError
        The file does not exist or cannot be read.
    """
    with _naming(path):
        model = _restored(container.read(Path(path)))
    _logger.info("loaded %s from %s", type(model).__name__, path)
    return model


def model_info(path: str | os.PathLike[str]) -> ModelInfo:
    """Return the description of a model file: class, parameters, labels, evaluation, version.

    The checksum is verified, but the model is not built, so its encoder need not be registered.
    Errors are those of `load_model`.
    """
    with _naming(path):
        found = container.read(Path(path))
        record = description.parse(found.description)
    return ModelInfo(**msgspec.structs.asdict(record), fdgnn=found.fdgnn, format=found.format)


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors; what the file itself put into a message is kept short."""
    try:
        yield
    except ModelFileError as error:
        message = str(error)
        message = message if len(message) <= 400 else f"{message[:400]} ..."
        raise type(error)(f"{os.fspath(path)}: {message}") from None


# ---------------------------------------------------------------------- arrays, and back


def _arrays(model: Any, training_graphs: bool) -> dict[str, Array]:
    """Return all arrays of a model or encoder."""
    if isinstance(model, Encoder):
        return prefixed("encoder", model.arrays())
    kept = model._training_graphs
    if kept is not None and not training_graphs:
        kept = kept.anonymous()
    scores = {str(t): own.scores for t, own in enumerate(model.targets_) if own.scores is not None}
    conformal = {t: np.concatenate(own.groups) for t, own in scores.items()}
    return (
        description.estimator_arrays(model.estimators_)
        | prefixed("conformal", conformal)
        | prefixed("domain", state.domain_arrays(model._domain))
        | prefixed("training", state.training_arrays(kept))
    )


def _restored(content: container.Content) -> Any:
    """Build the model or encoder that a file describes, and check its consistency."""
    record, groups = description.parse(content.description), grouped(content.arrays)
    for name, array in content.arrays.items():
        if array.dtype.kind == "f" and MAX_NUMBER.is_below(largest := largest_of(array)):
            raise ModelFileError(
                f"array {name[:40]!r} has entries that are not finite or too large "
                f"({largest:g}); {MAX_NUMBER.in_words}"
            )
    if (record.model is None) == (record.encoder is None):
        raise ModelFileError("neither a model nor an encoder, or both")
    if record.encoder is None:
        model = _model(record, groups)
    else:
        model = restore_encoder(record.encoder, groups.pop("encoder", {}), record.graph_kind)
        model.input_schema_ = record.schema
    if left := sorted(name for name, arrays in groups.items() if arrays):
        raise ModelFileError(
            f"unexpected arrays {left[0][:40]!r}, which such a model does not have"
        )
    description.set_seed(record, model)
    return model


def _model(record: description.ModelRecord, groups: dict[str, dict[str, Array]]) -> Any:
    model = description.build_model(record)
    if record.seed is None:
        raise ModelFileError("the model has no seed")
    model._graph_kind, model.input_schema_ = record.graph_kind, record.schema
    model._flat = record.flat
    scores = groups.get("conformal", {})
    model.targets_ = state.restore_targets(record.targets, model, record.flat, scores)
    model.estimators_ = description.restored_estimators(record, model, groups)
    measured = groups.get("domain", {})
    model._domain = state.restore_domain(record.domain, model.estimators_, measured)
    kept = groups.get("training", {})
    model._training_graphs = state.restore_training_graphs(model, record.training_graphs, kept)
    model.evaluation_ = record.evaluation
    return model
