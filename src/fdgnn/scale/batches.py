"""`fit_batches`: a model of graphs that come batch by batch, in Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from fdgnn.context import Context
from fdgnn.datasets.rows import GraphTable
from fdgnn.encoders.counts import DEFAULT_FEATURES
from fdgnn.exceptions import GraphError
from fdgnn.graphs.converters import as_batch
from fdgnn.scale.local import Local
from fdgnn.scale.parts import Parts, parsed, save_parsed
from fdgnn.scale.parts import joined_survey as joined
from fdgnn.scale.plan import plan_memory
from fdgnn.scale.shards import ShardRequest
from fdgnn.scale.training import ReadShards, train_on_shards
from fdgnn.threads import one_blas_thread


def fit_batches(
    model: Any,
    batches: Iterable[tuple[Any, Any]],
    *,
    memory: str | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Fit a model to graphs that need not be in memory all at once.

    Penalties are chosen, and probabilities learned, by graphs held out of five folds, as by
    ``fdgnn fit --memory``. The readouts are linear.

    Parameters
    ----------
    model : estimator such as FDGNNClassifier
        Or an ``AutoGraphClassifier`` or ``AutoGraphRegressor``. It is fitted, and given back.
    batches : iterable of (graphs, y)
        It is gone through once; batches are kept as files.
    memory : str, optional
        Such as "2GB"; by default half of the machine's.
    work_dir : path, optional
        Where batches are kept while the model is trained; by default a temporary folder.
    n_jobs : int, optional
        Threads and processes.

    Examples
    --------
    >>> from fdgnn import FDGNNClassifier, fit_batches
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> pieces = ((graphs[i : i + 20], y[i : i + 20]) for i in (0, 20, 40))
    >>> model = fit_batches(FDGNNClassifier(random_state=0), pieces)
    >>> model.predict(graphs[:3]).shape
    (3,)
    """
    context = Context(n_jobs=n_jobs)
    n_columns = getattr(getattr(model, "encoder", None), "n_features", None) or DEFAULT_FEATURES
    plan = plan_memory(memory, context, n_columns)
    with tempfile.TemporaryDirectory(dir=work_dir) as place:
        folder = Path(place)
        files, surveys, schema = [], [], None
        for number, (given, y) in enumerate(batches):
            graphs = as_batch(given)
            schema, n = schema or graphs.schema, len(graphs)
            values = np.asarray(y)
            if len(values) != n:
                raise ValueError(f"batch {number} has {n} graphs, but {len(values)} targets")
            table = GraphTable(graphs, values, tuple(range(n)), np.arange(n))
            part = parsed(table, f"batch {number}")
            files.append(folder / "parsed" / "batches" / f"{number:06d}.npz")
            save_parsed(files[-1], part)
            surveys.append(part.survey)
        survey = joined(surveys)
        if survey is None:
            raise GraphError("no graphs: there is nothing to fit to")
        request = ShardRequest(schema=schema)
        read = ReadShards([Parts(files=files)], request, survey, 0, survey.n_rows, 0, 0.0)
        task: Any = "classification" if is_classifier(model) else "regression"
        executor = Local(folder, plan.cache, context, plan.solver)
        with one_blas_thread():
            return train_on_shards(model, read, ("y",), executor, context, task=task).model
