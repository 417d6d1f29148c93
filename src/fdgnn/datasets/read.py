"""Read graphs from a file or folder of any supported format."""

from __future__ import annotations

import ctypes
import io
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from fdgnn.datasets import molecule_files
from fdgnn.datasets.files import Stream, is_stream, open_unpacked, recognize
from fdgnn.datasets.molecule_files import molecule_of, smiles_column
from fdgnn.datasets.rows import ChunkReader, GraphTable, GraphTables, Row, RowReader
from fdgnn.datasets.tables import (
    EDGES,
    GRAPHS,
    LOOK_AHEAD,
    SIZE,
    Table,
    as_graph_table,
    frame_table,
    graph_reader,
    is_frame,
    is_molecule_list,
    molecule_table,
    read_csv,
    read_jsonl,
    read_xlsx,
)
from fdgnn.datasets.tu import load_tu
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.extras import require
from fdgnn.graphs.checks import name_and_place
from fdgnn.graphs.libraries import AttributeReader, of_networkx
from fdgnn.graphs.molecules import MoleculeReader
from fdgnn.graphs.raw import RawGraph
from fdgnn.limits import MAX_ROW_BYTES
from fdgnn.schema import InputSchema, ReadOptions, check_no_molecules, schema_of
from fdgnn.texts import suggestion

_logger = logging.getLogger("fdgnn")
CHUNK_SIZE = 10_000


def read_graphs(
    path: Any, options: ReadOptions | None = None, *, like: Any = None, **changes: Any
) -> GraphTable:
    r"""Read graphs, one per row, from a file or a folder.

    Invalid rows are listed in ``rejects``; the other rows keep their positions.

    Parameters
    ----------
    path : str, path, open file, data frame, or list of molecules
        A TU folder or zip, or the name of a TU dataset; a graph table or a table with SMILES, as
        CSV, TSV, JSON lines, Parquet, Arrow or Excel (.xlsx); a table with a row for each edge
        (columns ``graph``, ``source``, ``target``); a file of SMILES and names, or SDF; a folder of
        such tables, read by name as one; a folder of GraphML files; or ``"-"``, a CSV table or
        JSON lines on standard input. Text may be packed by gzip. Or a file that is open for
        reading, a ``StringIO``, a pandas or polars data frame with the columns of a table, a list
        of SMILES or of RDKit Mols. See docs/reference/file-formats.md.
    options : ReadOptions, optional
        Options for reading; see `ReadOptions`.
    like : fitted model or InputSchema, optional
        Read the file by the input schema of the model's training data. Rows that do not conform are
        rejected. If the model has no schema, because its graphs were not from a file, `like` has no
        effect.
    **changes
        Single options by name, such as ``target="y"``; they replace those in `options`.

    Returns
    -------
    GraphTable

    Raises
    ------
    DatasetNotFoundError
        The file or folder does not exist.
    DatasetFormatError
        The file as a whole cannot be read, lacks a column, or has no rows; with `strict`, also
        the first invalid row.
    MissingDependencyError
        An optional library is not installed; the message names the extra.
    ValueError
        An option has an invalid value, or contradicts `like`.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from fdgnn import read_graphs
    >>> rows = [{"edge_index": [[0, 1], [1, 2]], "num_nodes": 3, "y": 1},
    ...         {"edge_index": [[0, 9], [1, 2]], "num_nodes": 3, "y": 0}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "graphs.jsonl"
    ...     _ = path.write_text("\n".join(map(json.dumps, rows)))
    ...     table = read_graphs(path, target="y")
    >>> table
    GraphTable(1 of 2 rows, GraphBatch(1 graph, 3 vertices, 4 directed edges))
    >>> print(*table.rejects)
    row 1: edge (9, 2) is out of range for 3 vertices; vertices are numbered from 0
    """
    table = next(_iterate(path, ReadOptions.of(options, changes), schema_of(like), None))
    n_rejected = len(table.rejects)
    _logger.debug("read %d rows of %s, %d rejected", table.n_rows, path, n_rejected)
    if table.n_rows > CHUNK_SIZE:  # glibc keeps the memory of many small objects
        with suppress(AttributeError, OSError, TypeError):  # another C library, another system
            ctypes.CDLL(None).malloc_trim(0)
    return table


def iter_graphs(
    path: Any,
    options: ReadOptions | None = None,
    *,
    like: Any = None,
    chunk_size: int = CHUNK_SIZE,
    **changes: Any,
) -> Iterator[GraphTable]:
    """Read a table larger than memory as tables of `chunk_size` rows each.

    The input schema is inferred from the first chunk, or taken from `like`. Rows that do not
    conform are rejected. A TU dataset is one table.

    Parameters
    ----------
    path, options, like, **changes
        See `read_graphs`.
    chunk_size : int, default=10000

    Yields
    ------
    GraphTable
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size={chunk_size!r}: expected an integer, at least 1")
    return _iterate(path, ReadOptions.of(options, changes), schema_of(like), chunk_size)


def _iterate(
    given: Any, options: ReadOptions, like: InputSchema | None, chunk_size: int | None
) -> Iterator[GraphTable]:
    options = options if like is None else options.following(like)
    of_tu = options
    if options.vertex == "either":  # vertices in tables and networks have no more than one
        options = replace(options, vertex="auto")
    if is_frame(given):
        table = as_graph_table(frame_table(given), options, like)
        rows, reader = _table_rows("the data frame", table, options, like)
    elif is_molecule_list(given):
        table = molecule_table(given)
        rows, reader = _table_rows("the list of molecules", table, options, like)
    else:
        path = Stream.of(given) if is_stream(given) else given
        if not isinstance(path, str | os.PathLike | Stream):
            raise TypeError(
                f"expected a path, an open file, a data frame or a list of molecules, got a "
                f"{type(given).__name__}; as_batch converts lists of graphs"
            )
        format, files = recognize(path, options.format)
        if format == "tu":
            return iter([_tu_table(files[0], of_tu, like)])
        if format == "graphml":
            rows, reader = _network_rows(str(path), files, options, like)
        else:
            look_ahead = min(LOOK_AHEAD, chunk_size or LOOK_AHEAD)
            table = _open_table(files[0], format, options, like, look_ahead)
            rows, reader = _table_rows(str(path), table, options, like, format, files[1:])
    name, source = reader.name, reader.source
    if options.vertex == "both" and source != "networks":
        raise DatasetFormatError(
            f"{name}: labels with features can be read from TU datasets and from graphs with "
            "attributes by name; use `vertex='labels'` or `vertex='features'`"
        )
    if source != "molecules":
        check_no_molecules(name, options)
    columns: dict[str, Sequence[str | None]] = {
        "target": options.targets,
        "id_column": [options.id_column],
        "columns": options.columns,
        "descriptors": options.descriptors,
    }
    if source != "networks" and like is None:
        columns["vertex_attributes"] = options.vertex_attributes
        columns["edge_attribute"] = [name_and_place(options.edge_attribute)[0]]
    for argument, names in columns.items():
        for column in names:
            if column is not None and column not in reader.columns:
                of_model = argument == "descriptors" and like is not None
                why = f", one of the model's {argument}" if of_model else f" for `{argument}`"
                near = suggestion(column, reader.columns)
                raise DatasetFormatError(
                    f"{name}: there is no column {column!r}{why}; {near}its columns are "
                    f"{', '.join(reader.columns)}"
                )
    return GraphTables(rows, reader, chunk_size)


# ---------------------------------------------------------------------- one way for each format


def _tu_table(path: Path | str, options: ReadOptions, like: InputSchema | None) -> GraphTable:
    # Edges without the labels that a model expects are another kind of data.
    edge_labels = "auto" if like and like.edge_labels == "labels" else options.edge_labels
    graphs, y = load_tu(path, options, edge_labels=edge_labels)
    if like is not None and graphs.schema is not None:
        for what in ("vertices_in_words", "edges_in_words", "directed"):
            if getattr(graphs.schema, what) != getattr(like, what):
                raise DatasetFormatError(
                    f"{path}: {graphs.schema.in_words} do not match the model's training data, "
                    f"which has {like.in_words}"
                )
    return GraphTable(graphs, y, tuple(range(len(y))), np.arange(len(y)), schema=graphs.schema)


def _table_rows(
    name: str,
    table: Table,
    options: ReadOptions,
    like: InputSchema | None,
    format: str = "",
    more: Sequence[Any] = (),
) -> tuple[Iterator[Row], ChunkReader]:
    """Return the rows of a table and of its further files, and how to read a graph from one."""
    columns, open_rows = table
    known = None if like is None else like.id_column  # of the model's training data
    id_column = options.id_column or (known if known in columns else None)
    if id_column is None and tuple(columns[1:3]) == (EDGES, SIZE) and columns[0] in GRAPHS:
        id_column = columns[0]  # of a table of edges, as `as_graph_table` makes it
    smiles = _smiles_column(name, columns, options, like)
    graph_of: RowReader
    if smiles is None:
        used, graph_of = graph_reader(name, columns, options, like)
    elif smiles == molecule_files.BLOCK:
        used = [smiles, molecule_files.NAME]
        graph_of = partial(molecule_files.molecule_of_block, MoleculeReader.of(options))
    else:
        used, graph_of = [smiles], partial(molecule_of, MoleculeReader.of(options), smiles)
    beside = (*options.targets, id_column, *options.columns, *options.descriptors)
    wanted = list(dict.fromkeys([*used, *(c for c in beside if c in columns)]))
    _check_once(name, columns, wanted)

    def rows_of(path: Any) -> Iterator[Row]:
        own, open_own = _open_table(path, format, options, like)
        missing = [column for column in wanted if column not in own]
        if missing:
            raise DatasetFormatError(
                f"{path}: there is no column {missing[0]!r}, which the files before it have; "
                f"its columns are {', '.join(own)}"
            )
        _check_once(str(path), own, wanted)
        return open_own(wanted)

    named = format in ("smi", "sdf") and molecule_files.NAME in columns
    rows = chain(open_rows(wanted), chain.from_iterable(map(rows_of, more)))
    return rows, ChunkReader(
        name=name,
        source="table" if smiles is None else "molecules",
        columns=[c for c in columns if c != molecule_files.BLOCK],
        graph_of=graph_of,
        options=options,
        like=like,
        text_only=format not in ("", "jsonl", "parquet", "arrow", "xlsx"),
        id_column=molecule_files.NAME if named else id_column,
        smiles_column=None if smiles == molecule_files.BLOCK else smiles,
    )


def _check_once(name: str, columns: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise an error if two columns that are used have the same name."""
    twice = [column for column in wanted if list(columns).count(column) > 1]
    if twice:
        raise DatasetFormatError(
            f"{name}: there are {list(columns).count(twice[0])} columns called {twice[0]!r}, and "
            "it is not known which is meant; give them different names"
        )


def _smiles_column(
    name: str, columns: Sequence[str], options: ReadOptions, like: InputSchema | None
) -> str | None:
    """Choose the column with molecules; None if the rows are graphs.

    A table that could be both is read as the data of a model was. Of several columns it is the one
    in the options, else that of the model, else the one with such a name.
    """
    is_table = EDGES in columns
    if like is None and is_table and options.smiles_column is None:
        return None
    if like is not None and like.source != "molecules":
        if not is_table:
            raise DatasetFormatError(
                f"{name}: there is no column {EDGES}, and the model's training data was not read "
                f"from SMILES; its columns are {', '.join(columns)}"
            )
        return None
    if molecule_files.BLOCK in columns and options.smiles_column is None:
        return molecule_files.BLOCK
    known = like.smiles_column if like is not None else None
    chosen = options.smiles_column or (known if known in columns else smiles_column(columns))
    several = [column for column in columns if "smiles" in column.lower()]
    if chosen is None and len(several) > 1:
        raise DatasetFormatError(
            f"{name}: several columns may have SMILES, {' and '.join(several)}; name the one that "
            "is meant by `smiles_column`"
        )
    if chosen is None or chosen not in columns:
        missing = "column with SMILES" if chosen is None else f"column {chosen!r}"
        what = f"no {missing}" if is_table else f"neither an {EDGES} nor a {missing}"
        raise DatasetFormatError(
            f"{name}: there is {what}; its columns are {', '.join(columns)}; name the column with "
            "SMILES by `smiles_column`; a table with a row per edge has the columns graph, source "
            "and target"
        )
    return chosen


def _open_table(
    path: Any,
    format: str,
    options: ReadOptions,
    like: InputSchema | None,
    look_ahead: int = LOOK_AHEAD,
) -> Table:
    """Find the columns; return them and a function from the wanted ones to rows.

    Where no header names the columns, they are those of the first rows: `look_ahead` of them.
    """
    if format in ("parquet", "arrow"):
        from fdgnn.datasets import arrow

        return as_graph_table(arrow.read_arrow(Path(path), format), options, like)
    if format == "xlsx":
        columns, rows = read_xlsx(Path(path))
    elif format in ("jsonl", "sdf"):
        read = read_jsonl if format == "jsonl" else molecule_files.read_sdf
        columns, rows = read(path, look_ahead)
    elif format == "smi":
        columns, rows = molecule_files.read_smi(path)
    else:
        columns, rows = read_csv(path, "\t" if format == "tsv" else None)
    return as_graph_table((columns, lambda wanted: rows), options, like)


# ---------------------------------------------------------------------- GraphML: a file per graph


FILE = "file"  # the only column, which names the graph's file


def _network_rows(
    name: str, files: Sequence[Path], options: ReadOptions, like: InputSchema | None
) -> tuple[Iterator[Row], ChunkReader]:
    """Return one row per file, and how to read a graph from one."""
    nx = require("networkx", "interop", "GraphML files")
    attributes = AttributeReader(options)
    paths, most = {path.name: path for path in files}, int(MAX_ROW_BYTES.value)

    def read(row: Mapping[str, Any]) -> RawGraph:
        file = row[FILE]
        try:
            with open_unpacked(paths[file]) as (stream, _):
                content = stream.read(most + 1)
            graph = None if len(content) > most else nx.read_graphml(io.BytesIO(content))
        except Exception as error:  # networkx passes on whatever its parsers raise
            raise GraphError(f"{file} cannot be read ({error})") from error
        if graph is None:
            raise GraphError(f"{file} is too large; {MAX_ROW_BYTES.in_words}")
        return attributes.read(of_networkx(graph))

    rows: list[Row] = [{FILE: file} for file in paths]
    return iter(rows), ChunkReader(
        name, "networks", [FILE], read, options, like, id_column=FILE, attributes=attributes
    )
