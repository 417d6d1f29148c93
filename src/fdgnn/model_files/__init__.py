"""Model files: a fitted model as one small file that holds its weights, and no code.

`description` turns a model into a record and back, `networks` and `readouts` its weights into
arrays and back, `container` records and arrays into a safetensors file and back.
docs/model-files.md describes the format.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from fdgnn.arrays import Array, grouped, largest_of
from fdgnn.encoders import Encoder
from fdgnn.encoders.records import restore_encoder
from fdgnn.exceptions import ModelFileError
from fdgnn.limits import MAX_NUMBER
from fdgnn.model_files import container
from fdgnn.model_files.description import (
    MODELS,
    ModelRecord,
    as_json,
    build_model,
    describe,
    parse,
    set_seed,
)
from fdgnn.model_files.networks import model_arrays, restored_networks, seed_networks
from fdgnn.model_files.targets import restore_targets
from fdgnn.model_files.trust import restore_trust
from fdgnn.scikit import check_is_fitted

__all__ = ["ModelInfo", "load_model", "model_info", "save_model"]


class ModelInfo(ModelRecord, frozen=True, kw_only=True):
    """What a model file says of its model, and who wrote it."""

    fdgnn: str
    format: int


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    score: float | None = None,
    nested: bool = False,
) -> None:
    """Write a fitted model to a file, from which `load_model` gives the same predictions.

    The file is written aside and renamed, so that a crash leaves the old one. It holds no graphs,
    and neither `n_jobs`, which belongs to a machine, nor `n_iter_` and `converged_`, which belong
    to the training graphs.

    Parameters
    ----------
    model : FDGNNClassifier, FDGNNRegressor, FDGNNSearchCV or an encoder
        Fitted. Of a search its best model is saved.
    path : path
    score : float, optional
        The model's score, kept as ``training_score_``. By default a search gives its
        `nested_score_`, or else its `best_score_`, and a loaded model the score of its file.
    nested : bool, default=False
        Whether the given score was measured by nested cross validation, on graphs held out.

    Raises
    ------
    ModelFileError
        The model has something that a file cannot have; the message says what.

    Examples
    --------
    >>> import tempfile
    >>> from fdgnn import FDGNNClassifier, load_model, save_model
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/motifs.fdgnn", score=model.score(graphs, y))
    ...     again = load_model(f"{folder}/motifs.fdgnn")
    >>> bool((again.decision_function(graphs) == model.decision_function(graphs)).all())
    True
    """
    if score is None:
        score, nested = _known_score(model)
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, Encoder) and MODELS.get(type(model).__name__) is not type(model):
        names = ", ".join(MODELS)
        raise TypeError(f"a {type(model).__name__} cannot be saved; expected {names} or an encoder")
    check_is_fitted(model)
    content = container.to_bytes(as_json(describe(model, score, nested)), model_arrays(model))
    try:
        _restored(container.from_bytes(content))
    except ModelFileError as error:  # for instance, parameters were set after fitting
        raise ModelFileError(f"the model cannot be saved as it is: {error}; fit it again") from None
    container.write(Path(path), content)


def _known_score(model: Any) -> tuple[float | None, bool]:
    """The score that a search or an earlier file has, and whether it is of nested folds."""
    if hasattr(model, "nested_score_"):
        return model.nested_score_, True
    if hasattr(model, "best_score_"):
        return model.best_score_, False
    return getattr(model, "training_score_", None), getattr(model, "training_score_nested_", False)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save_model` has written.

    Nothing in the file is run, and everything in it is checked: a stranger's file can do no more
    than predict wrongly.

    Returns
    -------
    FDGNNClassifier, FDGNNRegressor or an encoder
        Fitted; ``training_score_`` is the score that it was saved with, or None, and
        ``training_scores_`` are those that `fdgnn fit` measured on graphs held out, by name, and
        ``training_split_`` says in words how these were held out. ``training_rival_`` are those of
        regression on Morgan counts in the same folds, if the graphs are molecules, and
        ``training_repeats_`` says which graphs have a twin in another fold.

    Raises
    ------
    ModelFileError
        The file is no model file, or it is truncated, altered or contradicts itself.
    ModelVersionError
        It needs another version of fdgnn.
    OSError
        There is no such file, or it cannot be read.
    """
    with _naming(path):
        return _restored(container.read(Path(path)))


def model_info(path: str | os.PathLike[str]) -> ModelInfo:
    """Tell what a model file says of its model: class, parameters, labels, score, version.

    The file's checksum is checked, but the model is not built, so its encoder need not be
    registered. Errors are those of `load_model`.
    """
    with _naming(path):
        found = container.read(Path(path))
        record = parse(found.description)
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


# ---------------------------------------------------------------------- back from a file


def _restored(content: container.Content) -> Any:
    """Build the model or encoder that a file describes, and check that all of it fits."""
    record, groups = parse(content.description), grouped(content.arrays)
    _check_finite(content.arrays)
    if record.model is None:
        arrays = groups.pop("encoder", {})
        model: Any = restore_encoder(record.encoder, arrays, record.graph_kind)
        model.reading_ = record.reading
    else:
        model = build_model(record)
        model.networks_ = restored_networks(record, model, groups)
        restore_trust(record.trust, model, groups)
    if groups:
        raise ModelFileError(f"it has arrays {min(groups)[:40]!r}, which such a model has not")
    set_seed(record, model)
    if record.model is not None:
        if record.seed is not None:
            seed_networks(record, model)
        restore_targets(record, model)
    return model


def _check_finite(arrays: Mapping[str, Array]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and MAX_NUMBER.is_below(largest := largest_of(array)):
            raise ModelFileError(
                f"its array {name[:40]!r} has entries that are not finite or too large "
                f"({largest:g}); {MAX_NUMBER.in_words}"
            )
