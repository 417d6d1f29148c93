"""From rows of a file to a table of graphs, in which bad rows are counted and shift nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Ints
from fdgnn.datasets.arcs import ArcLabels, code_arcs, subdivide
from fdgnn.datasets.layout import Layout, RawGraph, Vertex, as_graph, reason, settle
from fdgnn.datasets.targets import plain, read_target, target_array
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.graphs import Graph, GraphBatch


@dataclass(frozen=True)
class Reject:
    """A row that could not be read: its number in the file, from 0, its id, and why."""

    row: int
    id: Any
    reason: str

    def __str__(self) -> str:
        name = "" if self.id == self.row else f" ({self.id})"
        return f"row {self.row}{name}: {self.reason}"


@dataclass(frozen=True, eq=False)
class GraphTable:
    """The graphs of a file, or of a part of it, one a row.

    Attributes
    ----------
    graphs : GraphBatch or None
        Of the good rows; None if there is none.
    y : array or None
        Targets of the good rows, if they were asked for: integers, reals or text.
    ids : tuple
        Of all rows: what the id column says, or the row's number in the file, from 0.
    rows : (n_graphs,) int64
        Positions of the good rows among all `n_rows`, so that ``out[table.rows] = predictions``
        puts everything in its place.
    rejects : tuple of Reject
        The others.
    start : int
        Number in the file of the first row.
    smiles : tuple of str, or None
        Of the good rows, if they were read from SMILES.
    """

    graphs: GraphBatch | None
    y: Array | None
    ids: tuple[Any, ...]
    rows: Ints
    rejects: tuple[Reject, ...] = ()
    start: int = 0
    smiles: tuple[str, ...] | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are, good and bad."""
        return len(self.ids)

    def __repr__(self) -> str:
        return f"GraphTable({len(self.rows)} of {self.n_rows} rows, {self.graphs})"


@dataclass(frozen=True)
class Options:
    """What `read_graphs` was asked for."""

    target: str | None = None
    numeric: bool = False
    id_column: str | None = None
    smiles_column: str | None = None
    vertex: Vertex = "auto"
    vertex_attributes: str | Sequence[str] | None = None
    edge_attribute: str | None = None
    arc_labels: ArcLabels = "auto"
    atoms: str = "element"
    directed: bool | None = None


@dataclass(frozen=True)
class BadRecord:
    """A row whose columns cannot even be told apart."""

    reason: str
    id: Any = None


Record = Mapping[str, Any] | BadRecord


@dataclass(frozen=True)
class Source:
    """Rows of a file, and the way to read a graph from one."""

    name: str
    columns: Sequence[str]
    records: Iterator[Record]
    read: Callable[[Mapping[str, Any]], RawGraph] = field(repr=False)
    text_only: bool = False  # numbers are written as text, as in CSV files
    id_column: str | None = None  # unless another is asked for
    smiles_column: str | None = None


def tables(
    source: Source, options: Options, chunk_size: int | None, strict: bool = False
) -> Iterator[GraphTable]:
    """Yield the source's rows as tables of `chunk_size` rows, all of one layout."""
    start, layout = 0, None
    while records := list(islice(source.records, chunk_size)):
        chunk = _Chunk(source, options, records, start, strict)
        layout = layout or chunk.settle()
        yield chunk.table(layout)
        start += len(records)
    if start == 0:
        raise DatasetFormatError(f"{source.name}: it has no rows")


class _Chunk:
    """Some rows on their way: raw graphs, then checked graphs, then a batch."""

    def __init__(
        self, source: Source, options: Options, records: list[Record], start: int, strict: bool
    ) -> None:
        self.source, self.options, self.start, self.strict = source, options, start, strict
        self.rejects: dict[int, str] = {}
        self.ids = tuple(self._id(i, record) for i, record in enumerate(records))
        self.targets: dict[int, Any] = {}
        self.raws: dict[int, RawGraph] = {}
        self.smiles: dict[int, str] = {}
        for i, record in enumerate(records):
            self._read(i, record)

    def _id(self, i: int, record: Record) -> Any:
        column = self.options.id_column or self.source.id_column
        if isinstance(record, BadRecord):
            found = record.id
        else:
            found = None if column is None else plain(record.get(column))
        return self.start + i if found is None else found

    def _read(self, i: int, record: Record) -> None:
        if isinstance(record, BadRecord):
            return self._reject(i, record.reason)
        try:
            self.raws[i] = self.source.read(record)
            if self.source.smiles_column is not None:
                self.smiles[i] = record[self.source.smiles_column]
            if self.options.target is not None:
                self.targets[i] = read_target(record.get(self.options.target), self.options.numeric)
        except GraphError as error:
            self.raws.pop(i, None)
            self._reject(i, reason(error))

    def _reject(self, i: int, why: str) -> None:
        self.rejects[i] = why

    def settle(self) -> Layout | None:
        if not self.raws:
            return None
        options = self.options
        raws = list(self.raws.values())
        try:
            return settle(raws, options.vertex, options.arc_labels, options.directed)
        except DatasetFormatError as error:
            raise DatasetFormatError(f"{self.source.name}: {error}") from None

    def table(self, layout: Layout | None) -> GraphTable:
        batch = None if layout is None else self._batch(layout)
        rejects = [
            Reject(self.start + i, self.ids[i], why) for i, why in sorted(self.rejects.items())
        ]
        if self.strict and rejects:
            raise DatasetFormatError(f"{self.source.name}, {rejects[0]}")
        rows = [i for i in range(len(self.ids)) if i not in self.rejects]
        y = None
        if self.options.target is not None:
            y = target_array([self.targets[i] for i in rows], self.source.text_only)
        positions = np.array(rows, dtype=np.int64)
        smiles = None
        if self.source.smiles_column is not None:
            smiles = tuple(self.smiles[i] for i in rows)
        return GraphTable(batch, y, self.ids, positions, tuple(rejects), self.start, smiles)

    def _batch(self, layout: Layout) -> GraphBatch | None:
        graphs: dict[int, Graph] = {}
        carried: list[Array] = []
        for i, raw in self.raws.items():
            try:
                graphs[i], arcs = as_graph(raw, layout)
            except GraphError as error:
                self._reject(i, reason(error))
            else:
                carried += [] if arcs is None else [arcs]
        table = None
        if carried:
            weights, table = code_arcs(np.concatenate(carried))
            ends = np.cumsum([len(arcs) for arcs in carried])[:-1]
            parts = zip(graphs.items(), np.split(weights, ends), strict=True)
            graphs = {i: replace(graph, weights=part) for (i, graph), part in parts}
        batch = self._joined(graphs)
        if batch is None or layout.arcs != "vertices":
            return batch
        return subdivide(batch, table)

    def _joined(self, graphs: dict[int, Graph]) -> GraphBatch | None:
        """Join graphs, without those that even now the door refuses."""
        if not graphs:
            return None
        try:
            return GraphBatch.from_graphs(list(graphs.values()))
        except GraphError:
            good = self._accepted(list(graphs.items()))
        return GraphBatch.from_graphs([graph for _, graph in good]) if good else None

    def _accepted(self, graphs: list[tuple[int, Graph]]) -> list[tuple[int, Graph]]:
        """Find the refused ones by halving: few are bad, and halves without one are done with."""
        try:
            GraphBatch.from_graphs([graph for _, graph in graphs])
        except GraphError as error:
            if len(graphs) == 1:
                self._reject(graphs[0][0], reason(error))
                return []
            half = len(graphs) // 2
            return self._accepted(graphs[:half]) + self._accepted(graphs[half:])
        return graphs
