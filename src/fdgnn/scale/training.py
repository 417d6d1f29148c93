"""From files of graphs to a fitted model, without having all graphs in memory."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import is_classifier

from fdgnn.arrays import Floats
from fdgnn.checkpoints import Checkpoints
from fdgnn.context import Context
from fdgnn.datasets.rows import GraphTable
from fdgnn.encoders import GraphReservoir
from fdgnn.encoders.label_counts import DEFAULT_FEATURES, LabelCounts
from fdgnn.evaluation.record import (
    Evaluation,
    EvaluationProtocol,
    FoldResult,
    ModelDescription,
)
from fdgnn.evaluation.scores import provenance, target_scores
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.fitting import BaseModel, fit_depths
from fdgnn.folds import MANY_GRAPHS, N_FOLDS, TRAIN, choice_folds, signature_folds
from fdgnn.graphs.converters import as_batch
from fdgnn.graphs.smiles import DESCRIPTOR_SETS
from fdgnn.linear import Ridge
from fdgnn.linear.passes import least_bytes
from fdgnn.linear.ridge import MANY
from fdgnn.metrics import OF_NUMBERS, default_scoring, named_scoring
from fdgnn.options import TrainingOptions
from fdgnn.scale.chunks import Chunk, ChunkedGraphs, parse_block, save_chunk
from fdgnn.scale.shards import Shard, ShardRequest, rows_about
from fdgnn.schema import InputSchema, TaskName
from fdgnn.seeds import integer_seed
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.targets import Targets
from fdgnn.threads import one_blas_thread
from fdgnn.workers import Workers

_TOO_MANY = 2**40  # graphs for a kernel matrix, so that all readouts are linear
LEAST_ROWS, MOST_ROWS = 1_000, 10_000  # of a chunk
_READERS = 3  # processes for which the rows of a chunk are planned; more of them need more memory
_PROCESS = 150_000_000  # bytes of a process before it has read anything, with its libraries
_ROW = 20_000  # bytes of a row while it is read, about: a molecule as Python objects


# ---------------------------------------------------------------------- memory


@dataclass(frozen=True)
class MemoryPlan:
    """Sizes that follow from the memory that is allowed.

    Attributes
    ----------
    total : int
        Bytes in all processes together.
    n_rows : int
        Rows of a chunk, which a process reads at once. It does not depend on `n_jobs`, and so the
        order of sums does not either.
    n_processes : int
        Processes that may read and encode at the same time: `n_jobs`, or as many as fit.
    solver : int
        Bytes of the solver's vectors and sums.
    cache : int
        Bytes in which encoded chunks are kept; others are read again in each pass.
    """

    total: int
    n_rows: int
    n_processes: int
    solver: int
    cache: int


def plan_memory(
    asked: str | None, context: Context, n_columns: int = DEFAULT_FEATURES
) -> MemoryPlan:
    """Share the memory that is allowed; raise ValueError if it is too little.

    First all processes read and encode, then one of them solves. Half of what is left beside the
    libraries is for the solver, or as much as it needs, and the rest for chunks.
    """
    total = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) // 2
    if asked is not None:  # an amount such as 2GB
        units = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
        found = re.fullmatch(r"(\d+\.?\d*|\.\d+) *([KMG]I?B)", asked.strip().upper())
        total = 0 if found is None else int(float(found[1]) * units[found[2]])
        if total <= 0:
            raise ValueError(f"`memory`: expected an amount such as 2GB or 500MB, got {asked!r}")
    left, needed = total - _PROCESS, least_bytes(n_columns)  # beside this process
    for_rows = left // _READERS - _PROCESS
    n_rows = min(MOST_ROWS, max(LEAST_ROWS, for_rows // (2 * _ROW)))
    n_fitting = left // (_PROCESS + n_rows * 2 * _ROW)
    if n_fitting < 1 or left < needed:
        least = _PROCESS + max(_PROCESS + LEAST_ROWS * 2 * _ROW, needed)
        raise ValueError(
            f"`memory`: reading and the solver need {least / 1e6:.0f} MB at least; allow more"
        )
    n_processes = min(int(joblib.effective_n_jobs(context.n_jobs)), n_fitting)
    solver = max(needed, left // 2)
    return MemoryPlan(total, n_rows, n_processes, solver, left - solver)


def check_trainable(options: TrainingOptions) -> None:
    """Raise ValueError for models that are not trained out of core, before anything is read."""
    if options.model == "union":
        raise ValueError("model 'union' cannot be trained out of core; choose auto, wl or paper")
    if options.molecule_descriptors in DESCRIPTOR_SETS:
        raise ValueError("descriptors of molecules are not computed out of core; choose auto")


# ---------------------------------------------------------------------- reading


def read_shards(
    shards: Sequence[Shard],
    request: ShardRequest,
    folder: Path,
    plan: MemoryPlan,
    workers: Workers,
    context: Context,
) -> ChunkedGraphs:
    """Read all shards into chunks in a folder; what was read before is found again."""
    workers.check_sees(folder)
    resolved = request.resolved(shards[0])
    # Each block goes through the lines of its whole shard, so there are no more than readers.
    stride = min(-(-4 * workers.n_readers // len(shards)), workers.n_readers)
    blocks = [(shard, first, stride) for shard in shards for first in range(stride)]
    new_rows = _new_rows(folder / "parsed", request.n_rows)
    shown = context.track(
        new_rows, rows_about([shard.path for shard in shards]), "rows read", size=int
    )
    look = partial(next, shown)
    look()
    here = workers.client is None and min(workers.n_processes, len(blocks)) == 1
    parse = partial(parse_block, resolved, folder, look if here else None)
    found = list(workers.run(parse, blocks, look))
    look()
    place = {shard.path: number for number, shard in enumerate(shards)}
    chunks = [chunk for some, _ in found for chunk in some]
    chunks.sort(key=lambda chunk: (place[chunk.source], chunk.report.number))
    n_new = sum(new for _, new in found)
    return _chunked(chunks, resolved.schema, folder, plan, workers, context, n_new)


def _chunked(
    chunks: Sequence[Chunk],
    schema: InputSchema | None,
    folder: Path,
    plan: MemoryPlan,
    workers: Workers,
    context: Context,
    n_new: int,
) -> ChunkedGraphs:
    """Return the graphs of chunks; raise DatasetFormatError if there are none."""
    statistics = [own for chunk in chunks if (own := chunk.report.statistics) is not None]
    if not statistics:
        first = next((c.report.first_reject for c in chunks if c.report.n_rejects), "")
        why = f", the first because of: {first}" if first else ""
        n_rows = sum(chunk.report.n_rows for chunk in chunks)
        raise DatasetFormatError(f"none of the {n_rows} rows can be used{why}")
    total = sum(statistics[1:], statistics[0])
    sizes = plan.solver, plan.cache
    return ChunkedGraphs(chunks, total, schema, folder, workers, *sizes, context, n_new)


def _new_rows(parsed: Path, rows_of_chunk: int) -> Iterator[int]:
    """Yield about how many rows were read since the last time, by the chunks that were written."""
    before = None
    while True:
        n = sum(1 for _ in parsed.glob("*.npz"))
        yield 0 if before is None else (n - before) * rows_of_chunk
        before = n


# ---------------------------------------------------------------------- training


def train_on_shards(model: Any, graphs: ChunkedGraphs, targets: Targets) -> Evaluation:
    """Choose alpha and base models by out-of-fold predictions, and train the model on all graphs.

    `model` is an estimator that is not fitted, for targets of this kind. Returns its `evaluation_`.
    """
    model._check_parameters()
    targets = targets.transformed(model._target_transform)
    model._begin(graphs)
    folds = folds_of(graphs, targets, model.seed_)
    weights = targets.weights(None, model.class_weight)
    task = model._scored_task(targets, folds[None], weights)
    bases = model._base_models(model._graph_kind, _TOO_MANY, model.seed_)
    check_supported(bases, graphs)
    source: Any = graphs
    with one_blas_thread():
        fits = [fit_depths(base, source, task)[0] for base in bases]
        predictions = model._assemble(fits, source, task)
    some = folds != TRAIN
    found = _evaluation(model, targets[some], predictions[some], len(targets))
    model.evaluation_ = found
    return found


def folds_of(graphs: ChunkedGraphs, targets: Targets, seed: np.random.SeedSequence) -> Any:
    """Return the folds in memory; of very many graphs one fold alone is ever predicted."""
    if len(graphs) <= MANY_GRAPHS:
        source: Any = graphs
        return choice_folds(targets, source, seed)
    folds = signature_folds(graphs.signatures, integer_seed(seed))
    return folds if len(graphs) <= MANY else np.where(folds == 0, 0, TRAIN)


def check_supported(bases: Sequence[BaseModel], graphs: ChunkedGraphs) -> None:
    """Raise ValueError for what cannot be trained out of core."""
    for base in bases:
        encoder = base.encoder
        if not isinstance(base.readout, Ridge):
            raise ValueError("out of core only linear readouts are trained; leave `readout` out")
        if isinstance(encoder, LabelCounts):
            if encoder.n_features is None:
                raise ValueError("out of core WL features are hashed; give `n_features` a number")
            if graphs.features is not None or not graphs.whole_weights:
                raise ValueError(
                    "out of core WL labels cannot cut real features of vertices, or edge weights, "
                    "into bins; choose --model paper, or leave them out"
                )
        elif not isinstance(encoder, GraphReservoir):
            raise ValueError(
                f"{base.name} cannot be trained out of core; choose --model wl, auto or paper"
            )


def _evaluation(model: Any, targets: Targets, predictions: Floats, n_graphs: int) -> Evaluation:
    """Score out-of-fold predictions, by which alpha was chosen as well, as one fold."""
    classify = targets.classify
    if model._scoring is not None:
        chosen = named_scoring(model._scoring, classify)
    else:
        chosen = default_scoring(targets.rarest()) if classify else OF_NUMBERS["r2"]
    tested = np.ones((1, len(targets)), dtype=bool)
    return Evaluation(
        n_graphs=n_graphs,
        task="classification" if classify else "regression",
        model=ModelDescription(name="", title=type(model).__name__, kind=type(model).__name__),
        protocol=EvaluationProtocol(
            name="out-of-fold", n_outer=1, n_inner=N_FOLDS, scoring=chosen.name, seed=0
        ),
        targets=target_scores(None, NestedPredictions(targets, tested, predictions[None]), chosen),
        folds=[FoldResult(n_train=n_graphs - len(targets), n_test=len(targets))],
        **provenance(),
    )


def fit_batches(
    model: Any,
    batches: Iterable[tuple[Any, Any]],
    *,
    memory: str | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Fit a model to batches of graphs that need not fit in memory together.

    The regularization strength and probabilities are learned by out-of-fold predictions, as with
    ``fdgnn fit --memory``. Readouts are linear.

    Parameters
    ----------
    model : estimator such as FDGNNClassifier
        The model to fit, also an ``AutoGraphClassifier`` or ``AutoGraphRegressor``. It is returned.
    batches : iterable of (graphs, y)
        It is read once; batches are saved to files.
    memory : str, optional
        Such as "2GB"; by default half of the machine's.
    work_dir : path, optional
        Folder for batches while the model is trained; by default a temporary folder.
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
        store = Checkpoints(folder / "parsed", "batches")
        chunks, schema = [], None
        for number, (given, y) in enumerate(batches):
            graphs = as_batch(given)
            schema, n, values = schema or graphs.schema, len(graphs), np.asarray(y)
            if len(values) != n:
                raise ValueError(f"batch {number} has {n} graphs, but {len(values)} targets")
            table = GraphTable(graphs, values, tuple(range(n)), np.arange(n))
            chunks.append(Chunk(f"batch {number}", store, save_chunk(store, number, table)))
        if not any(chunk.n_graphs for chunk in chunks):
            raise GraphError("no graphs: there is nothing to fit to")
        task: TaskName = "classification" if is_classifier(model) else "regression"
        with Workers.of(None, plan.n_processes, context) as workers:
            whole = _chunked(chunks, schema, folder, plan, workers, context, len(chunks))
            train_on_shards(model, whole, whole.targets(("y",), task))
    return model
