"""Parts of shards: graphs as they were read, and as they were encoded; in memory or in files.

A part is made once. In a work directory it is a file that is complete or not there, whose name
says of which file, read and encoded in which way, it is: what was finished before a process was
killed is found again, and a changed file or another setting has another name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Features, Floats, Ints, padded, read_arrays
from fdgnn.datasets.rows import GraphTable, Reject
from fdgnn.encoders import Encoder
from fdgnn.exceptions import DatasetFormatError, StudyError
from fdgnn.files import write_aside
from fdgnn.graphs import GraphBatch
from fdgnn.records import decode, encode
from fdgnn.scale.shards import Shard, ShardRequest
from fdgnn.scale.survey import ColumnSurvey, Survey

Item = TypeVar("Item")

MOST_REPEATED = 255  # counts up to this one are kept as so many ones


class PartTargets(NamedTuple):
    """What is known of the graphs of a part beside the graphs."""

    columns: tuple[Array, ...]  # the values of each target
    known: tuple[npt.NDArray[np.bool_], ...]
    signatures: npt.NDArray[np.uint64]  # equal for graphs that are the same


class ParsedPart(NamedTuple):
    """Some rows of a shard as graphs."""

    graphs: GraphBatch | None
    answers: PartTargets
    survey: Survey | None
    rejects: tuple[Reject, ...]
    n_rows: int


class EncodedPart(NamedTuple):
    """Some graphs as rows of a sparse matrix."""

    indptr: Ints
    indices: npt.NDArray[np.int32]
    values: Floats  # of length 0 where all are 1
    answers: PartTargets

    @property
    def n_bytes(self) -> int:
        """Memory that it takes, with targets and folds."""
        return int(self.indptr.nbytes + self.indices.nbytes + self.values.nbytes) + 64 * len(
            self.answers.signatures
        )


# ---------------------------------------------------------------------- from rows to graphs


def parsed(table: GraphTable, source: str) -> ParsedPart:
    """Take what was read of some rows."""
    graphs, n = table.graphs, len(table.rows)
    columns, known = _target_columns(table, n)
    signatures = np.empty(0, dtype=np.uint64) if graphs is None else graphs.coloring.signatures
    surveys = [
        ColumnSurvey.of(values[some], source) for values, some in zip(columns, known, strict=True)
    ]
    answers = PartTargets(columns, known, signatures)
    survey = Survey.of(graphs, table.n_rows, surveys)
    plain = None if graphs is None else replace(graphs)  # without what was computed of it
    return ParsedPart(plain, answers, survey, table.rejects, table.n_rows)


def _target_columns(
    table: GraphTable, n: int
) -> tuple[tuple[Array, ...], tuple[npt.NDArray[np.bool_], ...]]:
    if table.y is None:
        raise DatasetFormatError("it is not known which column is the target; name it by `target`")
    if not table.targets:
        return (table.y,), (np.ones(n, dtype=bool),)
    columns, known = [], []
    for column in table.y.T:
        some = np.array([value is not None for value in column.tolist()], dtype=bool)
        values: Array = np.array([value for value in column.tolist() if value is not None])
        filled: Array = np.zeros(n, dtype=values.dtype if len(values) else np.int64)
        filled[some] = values
        columns.append(filled)
        known.append(some)
    return tuple(columns), tuple(known)


# ---------------------------------------------------------------------- from graphs to features


def encoded(part: ParsedPart, encoder: Encoder) -> EncodedPart:
    """Encode the graphs of a part by an encoder with sparse features."""
    if part.graphs is None:
        nothing = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0)
        return EncodedPart(*nothing, part.answers)
    X: Any = encoder.encode(part.graphs, n_jobs=1).features[0]
    indptr, values = X.indptr.astype(np.int64), X.data
    if (values == 1.0).all():
        return EncodedPart(indptr, X.indices, np.empty(0), part.answers)
    whole = (values == np.round(values)) & (values > 0) & (values <= MOST_REPEATED)
    if not whole.all():
        return EncodedPart(indptr, X.indices, values, part.answers)
    times = values.astype(np.int64)  # a count is written as so many ones: smaller, and the same
    starts = np.concatenate([[0], np.cumsum(times)])[indptr]
    return EncodedPart(starts, np.repeat(X.indices, times), np.empty(0), part.answers)


def dense_features(part: ParsedPart, encoder: Encoder) -> Features:
    """Encode the graphs of a part by an encoder with dense features."""
    assert part.graphs is not None
    return encoder.encode(part.graphs, n_jobs=1).features[0]


# ---------------------------------------------------------------------- files


def _answer_arrays(answers: PartTargets) -> dict[str, Array]:
    arrays: dict[str, Array] = {"signatures": answers.signatures}
    for t, (column, known) in enumerate(zip(answers.columns, answers.known, strict=True)):
        arrays |= {f"y{t}": column, f"known{t}": known}
    return arrays


def _load(path: Path, wanted: Callable[[str], bool] | None = None) -> dict[str, Array]:
    try:
        return read_arrays(path, wanted)
    except ValueError as error:
        raise StudyError(f"{path}: it is damaged ({error}); delete it and run again") from None


def _answers_of(arrays: dict[str, Array]) -> PartTargets:
    n_targets = sum(name.startswith("known") for name in arrays)
    each = range(n_targets)
    return PartTargets(
        tuple(arrays[f"y{t}"] for t in each),
        tuple(arrays[f"known{t}"] for t in each),
        arrays["signatures"],
    )


def _save(path: Path, arrays: dict[str, Any]) -> None:
    try:
        with write_aside(path) as file:
            np.savez(file, **arrays)
    except OSError as error:
        why = error.strerror or str(error)
        raise StudyError(
            f"{path.parent}: {why}; what is finished is kept, so make room and try again"
        ) from error


def save_parsed(path: Path, part: ParsedPart) -> None:
    """Write a part that was read."""
    arrays = _answer_arrays(part.answers) | {"n_rows": np.array(part.n_rows)}
    rejects = [(r.row, str(r.id), r.reason) for r in part.rejects]
    arrays |= {"rejects": np.array(encode(rejects)), "survey": np.array(encode(part.survey))}
    if part.graphs is not None:
        own = {f.name: getattr(part.graphs, f.name) for f in fields(part.graphs)}
        own.pop("schema")
        own |= {n: padded(a) for n, a in own.items() if isinstance(a, np.ndarray)}
        arrays |= {f"graphs.{name}": a for name, a in own.items() if a is not None}
    _save(path, arrays)


def load_parsed(path: Path) -> ParsedPart:
    """Read a part again."""
    arrays = _load(path)
    own = {n.removeprefix("graphs."): a for n, a in arrays.items() if n.startswith("graphs.")}
    plain: dict[str, Any] = {n: a.item() if a.ndim == 0 else a for n, a in own.items()}
    graphs = GraphBatch(**plain) if plain else None
    rejects, survey = _reports(arrays)
    return ParsedPart(graphs, _answers_of(arrays), survey, rejects, int(arrays["n_rows"]))


def load_answers(path: Path) -> PartTargets:
    """Read of a part what is known beside the graphs."""
    return _answers_of(_load(path, lambda name: name.startswith(("signatures", "y", "known"))))


def load_rejects(path: Path) -> tuple[Reject, ...]:
    """Read the rejected rows of a part."""
    return _reports(_load(path, {"rejects", "survey"}.__contains__))[0]


def _reports(arrays: dict[str, Array]) -> tuple[tuple[Reject, ...], Survey | None]:
    found = decode(arrays["rejects"].item(), list[tuple[int, str, str]])
    survey = decode(arrays["survey"].item(), Survey | None)  # type: ignore[arg-type]
    return tuple(Reject(row, name, why) for row, name, why in found), survey


def save_encoded(path: Path, part: EncodedPart) -> None:
    """Write a part that was encoded."""
    own: dict[str, Array] = {"indptr": part.indptr, "indices": part.indices, "values": part.values}
    _save(path, own | _answer_arrays(part.answers))


def load_encoded(path: Path) -> EncodedPart:
    """Read a part again."""
    arrays = _load(path)
    own = arrays["indptr"], arrays["indices"], arrays["values"]
    return EncodedPart(*own, _answers_of(arrays))


# ---------------------------------------------------------------------- blocks


@dataclass(frozen=True)
class Block:
    """A piece of work: every so-manieth part of a shard, from one on."""

    shard: Shard
    first: int = 0
    stride: int = 1


@dataclass(frozen=True)
class Report:
    """What is said of a block that was read."""

    block: Block
    parts: tuple[PartReport, ...]
    n_new: int  # parts that were not there before

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return sum(part.n_rows for part in self.parts)


class PartReport(NamedTuple):
    """Statistics of a part; its rejected rows are counted, and stay with the part."""

    survey: Survey | None
    n_rejects: int
    first_reject: Reject | None
    n_rows: int

    @classmethod
    def of(cls, survey: Survey | None, rejects: Sequence[Reject], n_rows: int) -> PartReport:
        """Count the rejected rows of a part."""
        return cls(survey, len(rejects), rejects[0] if rejects else None, n_rows)


def in_row_order(blocks: Sequence[Block], found: Sequence[Sequence[Item]]) -> list[Item]:
    """Return what was found for each part of blocks in the order of the rows.

    The strides of blocks follow the number of workers, and the order of sums must not.
    """
    shards = {block.shard: i for i, block in reversed(list(enumerate(blocks)))}
    numbered = [
        (shards[block.shard], block.first + i * block.stride, item)
        for block, items in zip(blocks, found, strict=True)
        for i, item in enumerate(items)
    ]
    return [item for *_, item in sorted(numbered, key=itemgetter(0, 1))]


class Parts:
    """Parts of a block: in memory, or as files."""

    def __init__(self, held: Sequence[Any] = (), files: Sequence[Path] = ()) -> None:
        self.held, self.files = list(held), list(files)

    def parsed(self) -> Iterator[ParsedPart]:
        """Give the parts as they were read."""
        yield from self.held
        yield from map(load_parsed, self.files)

    def encoded(self) -> Iterator[EncodedPart]:
        """Give the parts as they were encoded."""
        yield from self.held
        yield from map(load_encoded, self.files)


def parse_block(
    asked: ShardRequest,
    block: Block,
    folder: Path | None,
    told: Callable[[int], None] = lambda n_rows: None,
) -> tuple[Parts, Report]:
    """Read the parts of a block; with a folder, keep them there, and read those that are not.

    `told` is called with the rows of each part that is there.
    """
    own = None if folder is None else folder / "parsed" / block.shard.key(asked.settings)
    whole = None if own is None else own / f"whole-{block.first}-of-{block.stride}"
    if own is not None and whole is not None and (names := _listed(whole)) is not None:
        there = [own / name for name in names]
        return Parts(files=there), _report(block, there, 0)
    held: list[ParsedPart] = []
    files: list[Path] = []
    n_new = 0
    with asked.open(block.shard) as tables:
        schema = None
        for number, chunk in enumerate(tables.chunks()):
            if number % block.stride != block.first:
                continue
            path = None if own is None else own / f"{number:06d}.npz"
            if path is not None and path.exists():
                files.append(path)
                told(len(chunk.rows))
                continue
            table = tables.reader.read(chunk, schema)
            schema = schema or table.schema
            part = parsed(table, block.shard.path)
            n_new += 1
            told(table.n_rows)
            if path is None:
                held.append(part)
            else:
                save_parsed(path, part)
                files.append(path)
    if whole is not None:
        whole.parent.mkdir(parents=True, exist_ok=True)
        with write_aside(whole) as file:
            file.write(encode([path.name for path in files]))
        return Parts(files=files), _report(block, files, n_new)
    reports = (PartReport.of(p.survey, p.rejects, p.n_rows) for p in held)
    return Parts(held), Report(block, tuple(reports), n_new)


def _listed(whole: Path) -> list[str] | None:
    """Give the names of all parts of a block; None if they were not all made, or it is damaged."""
    try:
        return decode(whole.read_bytes(), list[str])
    except (OSError, ValueError):
        return None


def _report(block: Block, files: Sequence[Path], n_new: int) -> Report:
    found = []
    for path in files:
        arrays = _load(path, {"rejects", "survey", "n_rows"}.__contains__)
        rejects, survey = _reports(arrays)
        found.append(PartReport.of(survey, rejects, int(arrays["n_rows"])))
    return Report(block, tuple(found), n_new)


def joined_survey(surveys: Sequence[Survey | None]) -> Survey | None:
    """Add up what is known of parts."""
    total: Survey | None = None
    for survey in surveys:
        if survey is not None:
            total = survey if total is None else total + survey
    return total


def encode_block(parts: Parts, encoder: Encoder, folder: Path | None, name: str) -> Parts:
    """Encode the parts of a block; with a folder, keep them there under a name of the encoder."""
    if folder is None:
        return Parts([encoded(part, encoder) for part in parts.parsed()])
    files = []
    for path in parts.files:
        own = folder / "encoded" / name / path.parent.name / path.name
        if not own.exists():
            save_encoded(own, encoded(load_parsed(path), encoder))
        files.append(own)
    return Parts(files=files)
