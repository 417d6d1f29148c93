"""Chunks of graphs in a work directory: as they were read, and as they were encoded.

A chunk is made once. It is kept in `fdgnn.checkpoints.Checkpoints` for its file and the way it was
read, so that what was finished before a process was killed is found again, and a changed file or
another setting has other chunks.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from msgspec.structs import replace as replace_fields

from fdgnn.arrays import Array, Floats, offsets_of
from fdgnn.checkpoints import Checkpoints
from fdgnn.context import Context
from fdgnn.datasets.rows import GraphTable, Reject
from fdgnn.encoders import Encoder
from fdgnn.encoders.label_counts import LabelCounts
from fdgnn.exceptions import DatasetFormatError, StudyError
from fdgnn.expansion import RandomExpansion, expanded
from fdgnn.graphs import GraphBatch
from fdgnn.linear.passes import Chunks, SparseRows, Sums
from fdgnn.records import Record, cached_property
from fdgnn.scale.shards import Shard, ShardRequest
from fdgnn.schema import InputSchema, TaskName
from fdgnn.targets import Targets
from fdgnn.tasks import table_targets
from fdgnn.workers import Workers

Result = TypeVar("Result")

MOST_REPEATED = 255  # counts up to this one are kept as so many ones
_SECONDS_BETWEEN_LINES = 10.0
_STRIPS = 16  # chunks are added up in so many sums, whoever does it: bitwise the same


class GraphStatistics(Record, frozen=True, kw_only=True):
    """Statistics of graphs, which add over chunks.

    They have the attributes of a `GraphBatch` by which encoders are drawn.
    """

    n_graphs: int
    directed: bool
    labels: list[int | str] | None
    n_features: int | None
    has_edge_labels: bool
    has_weights: bool
    whole_weights: bool
    degree_sum: float  # of the largest neighborhood of each graph
    largest_degree: float
    edge_label_values: ClassVar[None] = None  # they are not counted, so new ones are not reported
    descriptors: ClassVar[None] = None  # they are not read out of core

    @classmethod
    def of(cls, graphs: GraphBatch) -> GraphStatistics:
        """Return the statistics of a batch."""
        weights = graphs.weights
        return cls(
            n_graphs=len(graphs),
            directed=graphs.directed,
            labels=None if graphs.label_values is None else graphs.label_values.tolist(),
            n_features=None if graphs.features is None else graphs.features.shape[1],
            has_edge_labels=graphs.edge_label_codes is not None,
            has_weights=weights is not None,
            whole_weights=weights is None or bool((weights == np.round(weights)).all()),
            degree_sum=float(graphs.max_degrees.sum()),
            largest_degree=graphs.largest_degree,
        )

    def __add__(self, other: GraphStatistics) -> GraphStatistics:
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = sorted({*self.labels, *other.labels})
        return replace_fields(
            self,
            n_graphs=self.n_graphs + other.n_graphs,
            labels=labels,
            has_edge_labels=self.has_edge_labels or other.has_edge_labels,
            has_weights=self.has_weights or other.has_weights,
            whole_weights=self.whole_weights and other.whole_weights,
            degree_sum=self.degree_sum + other.degree_sum,
            largest_degree=max(self.largest_degree, other.largest_degree),
        )

    def __len__(self) -> int:
        return self.n_graphs

    @property
    def average_degree(self) -> float:
        """The mean over graphs of the largest neighborhood."""
        return self.degree_sum / self.n_graphs

    @property
    def label_values(self) -> Array | None:
        """All vertex labels, sorted."""
        return None if self.labels is None else np.array(self.labels)

    @property
    def features(self) -> Floats | None:
        """No rows of features, but as many columns as vertices have."""
        return None if self.n_features is None else np.empty((0, self.n_features))

    @property
    def edge_label_codes(self) -> Array | None:
        """An empty array if edges have labels."""
        return np.empty(0, dtype=np.int32) if self.has_edge_labels else None

    @property
    def weights(self) -> Floats | None:
        """An empty array if arcs have weights."""
        return np.empty(0) if self.has_weights else None


class ChunkReport(Record, frozen=True, kw_only=True):
    """Facts about a chunk that was read; its rejected rows are counted."""

    number: int  # in its file
    n_rows: int
    n_rejects: int
    first_reject: str
    statistics: GraphStatistics | None  # None if it has no graphs


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file, as graphs in a store."""

    source: str
    store: Checkpoints
    report: ChunkReport

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return 0 if self.report.statistics is None else self.report.statistics.n_graphs

    def load(self, wanted: Callable[[str], bool]) -> dict[str, Array]:
        """Load the arrays with wanted names."""
        found = self.store.load(f"graphs {self.report.number}", wanted)
        if found is None:
            raise StudyError(
                f"{self.store.directory}: chunk {self.report.number} of {self.source} is damaged "
                "or gone; delete the directory and run again"
            )
        return found

    def graphs(self) -> GraphBatch:
        """Load the graphs."""
        arrays = self.load(lambda name: name.startswith("graphs."))
        own: dict[str, Any] = {name.removeprefix("graphs."): a for name, a in arrays.items()}
        return GraphBatch(**{n: a.item() if a.ndim == 0 else a for n, a in own.items()})

    def rejects(self) -> list[Reject]:
        """Load the rejected rows."""
        key, kind = f"rejects {self.report.number}", list[tuple[int, str, str]]
        found = self.store.load_record(key, kind) if self.report.n_rejects else None
        return [Reject(*each) for each in found or ()]


# ---------------------------------------------------------------------- reading


def save_chunk(store: Checkpoints, number: int, table: GraphTable) -> ChunkReport:
    """Save a table as a chunk; its report is written last, and marks it as complete."""
    graphs, rejects = table.graphs, [(r.row, str(r.id), r.reason) for r in table.rejects]
    arrays: dict[str, Any] = _target_arrays(table)
    if graphs is not None and len(graphs):
        arrays["signatures"] = graphs.coloring.signatures
        own = {f"graphs.{f.name}": getattr(graphs, f.name) for f in fields(graphs)}
        # What is trained out of core does not read the SMILES of molecules.
        left_out = ("graphs.schema", "graphs.smiles")
        arrays |= {n: a for n, a in own.items() if a is not None and n not in left_out}
    report = ChunkReport(
        number=number,
        n_rows=table.n_rows,
        n_rejects=len(rejects),
        first_reject=str(table.rejects[0]) if rejects else "",
        statistics=GraphStatistics.of(graphs) if graphs is not None and len(graphs) else None,
    )
    try:
        store.save(f"graphs {number}", arrays)
        if rejects:
            store.save_record(f"rejects {number}", rejects)
        store.save_record(f"report {number}", report)
    except OSError as error:  # of the work directory, not of the file that is being read
        why = error.strerror or str(error)
        raise StudyError(
            f"{store.directory}: {why}; what is finished is kept, so make room and try again"
        ) from error
    return report


def _target_arrays(table: GraphTable) -> dict[str, Array]:
    """Return the values of each target, and for which graphs they are known."""
    if table.y is None:
        raise DatasetFormatError("no target column is given; name it by `target`")
    if not table.targets:
        return {"y0": table.y, "known0": np.ones(len(table.rows), dtype=bool)}
    arrays: dict[str, Array] = {}
    for t, column in enumerate(table.y.T):
        known = np.array([value is not None for value in column], dtype=bool)
        arrays[f"y{t}"], arrays[f"known{t}"] = np.array(column[known].tolist()), known
    return arrays


def parse_block(
    request: ShardRequest,
    folder: Path,
    watch: Callable[[], Any] | None,
    block: tuple[Shard, int, int],
) -> tuple[list[Chunk], int]:
    """Read the chunks of a block that are not there; return all, and how many are new.

    A block is one task of a worker, (shard, first, stride): every `stride`-th chunk of a shard,
    beginning with chunk `first`. `watch` is called after each chunk.
    """
    shard, first, stride = block
    store = Checkpoints(folder / "parsed", shard, request)
    whole = f"chunks {first} of {stride}"
    numbers = store.load_record(whole, list[int]) or []
    reports = [store.load_record(f"report {number}", ChunkReport) for number in numbers]
    found = [Chunk(shard.path, store, report) for report in reports if report is not None]
    if found and len(found) == len(numbers):
        return found, 0
    found, n_new = [], 0
    with request.open(shard) as tables:
        schema = None
        for number, rows in enumerate(tables.chunks()):
            if number % stride != first:
                continue
            report = store.load_record(f"report {number}", ChunkReport)
            if report is None:
                table = tables.reader.read(rows, schema)
                schema = schema or table.schema
                report = save_chunk(store, number, table)
                n_new += 1
            found.append(Chunk(shard.path, store, report))
            if watch is not None:
                watch()
    store.save_record(whole, [chunk.report.number for chunk in found])
    return found, n_new


# ---------------------------------------------------------------------- graphs


@dataclass(frozen=True, eq=False)
class ChunkedGraphs:
    """Graphs in chunks: statistics by which encoders are drawn, and features in chunks.

    Attributes
    ----------
    chunks : sequence of Chunk
        All chunks, also those without a graph.
    statistics : GraphStatistics
    schema : InputSchema or None
    folder : Path
        Where encoded chunks are kept.
    workers : Workers
    solver_bytes, cache_bytes : int
        Memory for the vectors of a solver, and in which encoded chunks are kept.
    n_new : int
        Number of chunks that were not in the folder before.
    """

    chunks: Sequence[Chunk]
    statistics: GraphStatistics
    schema: InputSchema | None
    folder: Path
    workers: Workers
    solver_bytes: int
    cache_bytes: int
    context: Context = Context()  # noqa: RUF009 - it is frozen
    n_new: int = 0

    def __len__(self) -> int:
        return len(self.statistics)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.statistics, name)

    @property
    def smiles(self) -> tuple[str, ...] | None:
        """An empty tuple if the graphs are molecules, read from SMILES, which are not kept."""
        return None if self.schema is None or self.schema.atoms is None else ()

    @property
    def n_rows(self) -> int:
        """Number of rows, valid or not."""
        return sum(chunk.report.n_rows for chunk in self.chunks)

    @property
    def filled(self) -> list[Chunk]:
        """The chunks that have graphs."""
        return [chunk for chunk in self.chunks if chunk.n_graphs]

    def rejects(self) -> Iterator[Sequence[Reject]]:
        """Yield the rejected rows, some at a time: there may be more than fit in memory."""
        yield from (chunk.rejects() for chunk in self.chunks if chunk.report.n_rejects)

    @cached_property
    def signatures(self) -> Array:
        """64 bits of each graph, equal for equal graphs."""
        return np.concatenate([c.load("signatures".__eq__)["signatures"] for c in self.filled])

    def targets(self, names: tuple[str, ...], task: TaskName | None = None) -> Targets:
        """Return the targets of all graphs; without `task`, its kind is inferred."""
        columns = [self._target(number) for number in range(len(names))]
        y, several = columns[0][0], names if len(names) > 1 else ()
        if several:
            y = np.full((len(self), len(names)), None, dtype=object)
            for column, (values, known) in zip(y.T, columns, strict=True):
                column[known] = values.tolist()
        graphs: Any = self
        _, targets = table_targets(
            GraphTable(graphs, y, (), np.arange(len(y)), targets=several), task
        )
        targets.check_learnable()
        return targets

    def _target(self, number: int) -> tuple[Array, Array]:
        """Return the known values of one of the targets, and for which graphs they are known."""
        names, chunks = (f"y{number}", f"known{number}"), self.filled
        found = [[chunk.load(names.__contains__)[name] for name in names] for chunk in chunks]
        values, known = zip(*found, strict=True)
        texts: dict[bool, str] = {}
        for chunk, each in zip(chunks, values, strict=True):
            if len(each):
                texts.setdefault(each.dtype.kind == "U", chunk.source)
        if len(texts) == 2:
            raise DatasetFormatError(
                f"the target is text in {texts[True]}, but numbers in {texts[False]}; make it the "
                "same in all shards"
            )
        some = [each for each in values if len(each)] or [np.empty(0)]
        return np.concatenate(some), np.concatenate(known)

    def encoded(self, encoder: Encoder, expansion: RandomExpansion | None) -> ChunkedFeatures:
        """Return the features of the graphs, expanded if the model has an expansion."""
        width = encoder.n_features_out if expansion is None else len(expansion.projection_)
        assert width is not None
        return ChunkedFeatures(self, _Loader(encoder, expansion, self.folder), width)


# ---------------------------------------------------------------------- features


#: Features of chunks that this process keeps in memory, of one loader at a time.
_kept: dict[str, Any] = {}


@dataclass(frozen=True)
class _Loader:
    """Loader of the features of a chunk of graphs."""

    encoder: Encoder
    expansion: RandomExpansion | None
    folder: Path
    cache_bytes: int = 0
    token: str = ""  # of the features that are kept

    @property
    def sparse(self) -> bool:
        """Whether features are sparse, and kept in files."""
        return isinstance(self.encoder, LabelCounts)

    def load(self, chunk: Chunk) -> Any:
        """Return the features of a chunk, which stay in memory if there is room."""
        key = f"{self.token} {chunk.store.contents} {chunk.report.number}"
        if key in _kept:
            return _kept[key]
        X = self.features(chunk)
        for other in [each for each in list(_kept) if not each.startswith(f"{self.token} ")]:
            _kept.pop(other, None)
        if sum(map(_n_bytes, [X, *_kept.values()])) <= self.cache_bytes:
            _kept[key] = X
        return X

    def features(self, chunk: Chunk) -> Any:
        """Return the features of a chunk: encoded, or from the file in which they are kept."""
        if not self.sparse:
            X = self.encoder.encode(chunk.graphs(), n_jobs=1).features[0]
            return np.asarray(expanded(X, self.expansion))
        store = Checkpoints(self.folder / "encoded", chunk.store.contents, self._contents)
        key = str(chunk.report.number)
        found = store.load(key)
        if found is not None:
            return SparseRows(*(found[name] for name in SparseRows._fields))
        rows = sparse_rows(self.encoder.encode(chunk.graphs(), n_jobs=1).features[0])
        store.save(key, rows._asdict())
        return rows

    @cached_property
    def _contents(self) -> tuple[Any, ...]:
        """The same for encoders that make equal features of graphs."""
        assert isinstance(self.encoder, LabelCounts)
        parameters, facts = self.encoder.get_params(deep=False), self.encoder.facts()
        for name in ("random_state", "n_jobs", "handle_unknown"):
            parameters.pop(name, None)
        labels = ("vocabulary", "arc_vocabulary")
        own = {n: getattr(facts, n) for n in facts.__struct_fields__ if n not in labels}
        return type(self.encoder).__name__, parameters, own, self.encoder.graph_kind_.vertices


def _n_bytes(X: Any) -> int:
    return sum(a.nbytes for a in X) if isinstance(X, SparseRows) else int(X.nbytes)


def sparse_rows(X: Any) -> SparseRows:
    """Return a CSR matrix with small counts as so many ones: smaller, and the same."""
    indptr, values = X.indptr.astype(np.int64), X.data
    whole = (values == np.round(values)) & (values > 0) & (values <= MOST_REPEATED)
    if not whole.all():
        return SparseRows(indptr, X.indices, values)
    times = values.astype(np.int64)
    return SparseRows(offsets_of(times)[indptr], np.repeat(X.indices, times), np.empty(0))


class ChunkedFeatures(Chunks):
    """Features of graphs in chunks."""

    def __init__(self, graphs: ChunkedGraphs, loader: _Loader, n_columns: int) -> None:
        self._graphs, self._chunks = graphs, graphs.filled
        self._loader = replace(loader, cache_bytes=graphs.cache_bytes, token=secrets.token_hex(8))
        self.shape, self.sparse = (len(graphs), n_columns), loader.sparse
        self.n_bytes = graphs.solver_bytes
        self._shown = time.monotonic()
        self._ends = offsets_of([chunk.n_graphs for chunk in self._chunks])
        if self.sparse:
            made = graphs.workers.run(partial(_encode, loader), self._chunks)
            for _ in graphs.context.track(made, len(self._chunks), "encoding"):
                pass

    def progress(self, n_steps: int, n_left: int) -> None:
        """Show how many steps a solver has done, and how many alphas are left."""
        now = time.monotonic()
        if not self._graphs.context.quiet and now - self._shown > _SECONDS_BETWEEN_LINES:
            self._shown = now
            text = f"solving: {n_steps} steps, {n_left} regularization strengths left"
            print(text, file=sys.stderr, flush=True)

    def total(
        self, add: Callable[..., None], shapes: Sequence[tuple[int, ...]], *rows: Array
    ) -> Sums:
        """Return sums over chunks: ``add(sums, features, *rows)`` adds one to arrays of zeros."""
        total: Sums = ()
        for sums in self._over(partial(_add_up, self._loader, add, shapes), rows):
            for mine, more in zip(total, sums, strict=bool(total)):
                mine += more
            total = total or sums
        return total

    def gather(self, function: Callable[..., Result], *rows: Array) -> list[Result]:
        """Return ``function(features, *rows)`` of each chunk, in their order."""
        found: list[Any] = [None] * len(self._chunks)
        for first, results in enumerate(
            self._over(partial(_collect, self._loader, function), rows)
        ):
            found[first::_STRIPS] = results
        return found

    def _over(self, function: Callable[[Any], Result], rows: Sequence[Array]) -> Iterator[Result]:
        """Yield the results of a function for each strip: some chunks with their rows of arrays."""
        work = [
            (chunk, [each[start:end] for each in rows])
            for chunk, (start, end) in zip(self._chunks, pairwise(self._ends), strict=True)
        ]
        strips = [work[first::_STRIPS] for first in range(min(_STRIPS, len(work)))]
        yield from self._graphs.workers.over(function, strips)


def _encode(loader: _Loader, chunk: Chunk) -> None:
    loader.features(chunk)


def _add_up(
    loader: _Loader, add: Callable[..., None], shapes: Sequence[tuple[int, ...]], strip: Any
) -> Sums:
    sums = tuple(np.zeros(shape) for shape in shapes)
    for chunk, rows in strip:
        add(sums, loader.load(chunk), *rows)
    return sums


def _collect(loader: _Loader, function: Callable[..., Result], strip: Any) -> list[Result]:
    return [function(loader.load(chunk), *rows) for chunk, rows in strip]
