"""Model files: a fitted model as one small file, without pickle.

`settings` turns a model into JSON and back, `weights` its weights into arrays and back, and
`tensors` both into a safetensors file and back. docs/model-files.md describes the format.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdgnn._version import __version__
from fdgnn.exceptions import ModelFileError
from fdgnn.model_files.settings import KINDS, as_text, parse, restore, settings_of
from fdgnn.model_files.tensors import TensorFile, read_tensors, to_bytes, write_bytes
from fdgnn.model_files.weights import restore_weights, weights_of

__all__ = ["load_model", "model_info", "save_model"]


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    score: float | None = None,
    store_weights: bool = False,
) -> None:
    """Write a fitted model to a file, from which `load_model` gives the same predictions.

    The file is written aside and renamed, so that a crash leaves the old one. It holds no graphs,
    and neither `n_jobs`, which belongs to a machine, nor `n_iter_` and `converged_`, which belong
    to the training graphs.

    Parameters
    ----------
    model : FDGNNClassifier, FDGNNRegressor, GraphReservoir or FDGNNSearchCV
        Of a search its best model is saved.
    path : path
    score : float, optional
        The model's score, kept as ``training_score_``; of a search, by default, its `best_score_`.
    store_weights : bool, default=False
        Whether to keep the drawn weights in the file, too. It is some ten times larger then, and
        does not need NumPy's random streams, which a future NumPy may change.

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
        score = getattr(model, "best_score_", getattr(model, "training_score_", None))
    model = getattr(model, "best_estimator_", model)
    if KINDS.get(type(model).__name__) is not type(model):
        raise TypeError(f"a {type(model).__name__} cannot be saved; expected {', '.join(KINDS)}")
    check_is_fitted(model)
    redrawn, checksum, tensors = weights_of(model, store_weights)
    settings = settings_of(model, score) | {"redrawn": redrawn, "checksum": checksum}
    metadata = {"fdgnn": __version__, "numpy": np.__version__, "model": as_text(settings)}
    content = to_bytes(metadata, tensors)
    try:
        _restored(TensorFile(metadata, tensors))
    except ModelFileError as error:  # as where parameters were set after fitting
        raise ModelFileError(f"the model cannot be saved as it is: {error}; fit it again") from None
    write_bytes(Path(path), content)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save_model` has written.

    Nothing in the file is run, and everything in it is checked: a stranger's file can do no more
    than predict wrongly.

    Returns
    -------
    FDGNNClassifier, FDGNNRegressor or GraphReservoir
        Fitted; ``training_score_`` is the score that it was saved with, or None.

    Raises
    ------
    ModelFileError
        The file is no model file, or it is truncated, altered or contradicts itself.
    ModelVersionError
        It needs a newer fdgnn, or the NumPy that it was written with.
    OSError
        There is no such file, or it cannot be read.
    """
    try:
        return _restored(read_tensors(Path(path)))
    except ModelFileError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def model_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Tell what a model file says of its model: class, parameters, labels, score, versions.

    The file's checksum is checked, but the model is not built; errors are those of `load_model`.
    """
    try:
        metadata, _ = read_tensors(Path(path))
        versions = {name: metadata.get(name) for name in ("format_version", "fdgnn", "numpy")}
        return versions | parse(metadata.get("model", ""))
    except ModelFileError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def _restored(file: TensorFile) -> Any:
    settings = parse(file.metadata.get("model", ""))
    model = restore(settings)
    restore_weights(model, settings, file.tensors, file.metadata.get("numpy", ""))
    return model
