"""Read graphs from a file or folder of any known format, which is recognized or given."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import numpy as np

from fdgnn.datasets import networks
from fdgnn.datasets.arcs import ArcLabels
from fdgnn.datasets.files import open_dataset
from fdgnn.datasets.formats import recognize
from fdgnn.datasets.layout import Vertex
from fdgnn.datasets.molecules import molecule_reader, smiles_column
from fdgnn.datasets.rows import GraphTable, Options, Record, Source, tables
from fdgnn.datasets.tables import graph_columns, graph_reader, is_graph_table
from fdgnn.datasets.text import name_of, read_csv, read_jsonl
from fdgnn.datasets.tu import load_tu
from fdgnn.exceptions import DatasetFormatError

CHUNK_SIZE = 10_000

StrPath = str | os.PathLike[str]


def read_graphs(
    path: StrPath,
    *,
    format: str | None = None,
    target: str | None = None,
    numeric: bool = False,
    id_column: str | None = None,
    smiles_column: str | None = None,
    vertex: Vertex = "auto",
    vertex_attributes: str | Sequence[str] | None = None,
    edge_attribute: str | None = None,
    arc_labels: ArcLabels = "auto",
    atoms: str = "element",
    directed: bool | None = None,
    strict: bool = False,
) -> GraphTable:
    r"""Read graphs, one a row, from a file or a folder.

    A row that cannot be read is told of in ``rejects``, and neither stops nor shifts the others.

    Parameters
    ----------
    path : str or path
        A TU folder or zip, or the name of a TU dataset; a graph table or a table with SMILES, as
        CSV, TSV, JSON lines, Parquet or Arrow; a folder of such tables, read by name as one; a
        folder of GraphML or GEXF files; or ``"-"``, a CSV table or JSON lines on standard input.
        See docs/formats.md.
    format : {"tu", "csv", "tsv", "jsonl", "parquet", "arrow", "graphml", "gexf"}, optional
        By default it is recognized from the name or the first bytes.
    target : str, optional
        Column with the targets; rows without one are rejected. TU datasets have theirs anyway.
    numeric : bool, default=False
        Reject rows whose target is not a number, rather than take all targets as text.
    id_column : str, optional
        By default, rows are known by their number, counted from 0, or by their file's name.
    smiles_column : str, optional
        By default the column called ``smiles``, or the only one with that word in its name.
    vertex : {"auto", "labels", "features", "none"}, default="auto"
        What vertices carry; "auto" means labels if they have one integer or text each.
    vertex_attributes : str or sequence of str, optional
        Of GraphML and GEXF nodes; by default ``label``, or the only one there is.
    edge_attribute : str, optional
        Of GraphML and GEXF edges; by default ``weight`` or ``label``, if all edges have it.
    arc_labels : {"auto", "ignore", "weights", "vertices"}, default="auto"
        What becomes of that which arcs carry: nothing, a weight, or a vertex of its own between
        the arc's ends. "auto" ignores labels and takes one real number an arc as its weight.
    atoms : {"element", "rich"}, default="element"
        What the vertices of a molecule carry: the element as a label, or 21 features.
    directed : bool, optional
        By default as the file says; tables say nothing, and are taken for undirected.
    strict : bool, default=False
        Raise an error at the first bad row.

    Returns
    -------
    GraphTable

    Raises
    ------
    DatasetNotFoundError
        There is no such file or folder.
    DatasetFormatError
        The file as a whole cannot be read, lacks a column, or has no rows; with `strict`, also
        the first bad row.
    MissingDependencyError
        Naming the extra to install.

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
    GraphTable(1 of 2 rows, GraphBatch(1 graphs, 3 vertices, 4 arcs))
    >>> print(*table.rejects)
    row 1: edge (9, 2) points past its 3 vertices; vertices are numbered from 0
    """
    options = Options(
        target, numeric, id_column, smiles_column, vertex, vertex_attributes, edge_attribute,
        arc_labels, atoms, directed,
    )  # fmt: skip
    return next(_iterate(path, format, options, strict, None))


def iter_graphs(
    path: StrPath,
    *,
    chunk_size: int = CHUNK_SIZE,
    format: str | None = None,
    strict: bool = False,
    **options: Any,
) -> Iterator[GraphTable]:
    """Read a table larger than memory as tables of `chunk_size` rows each.

    What vertices and arcs carry is decided on the first chunk; later rows that differ are
    rejected. TU datasets come as one table.

    Parameters
    ----------
    path : str or path
    chunk_size : int, default=10000
    format, strict, **options
        As of `read_graphs`.

    Yields
    ------
    GraphTable
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size={chunk_size!r}: expected an integer, at least 1")
    return _iterate(path, format, Options(**options), strict, chunk_size)


def _iterate(
    path: StrPath, format: str | None, options: Options, strict: bool, chunk_size: int | None
) -> Iterator[GraphTable]:
    _check_choices(options)
    found = recognize(path, format)
    if found.format == "tu":
        return iter([_tu_table(found.files[0], options)])
    make = _network_source if found.format in ("graphml", "gexf") else _table_source
    source, options = make(name_of(path), found.format, found.files, options)
    _check_column(source, "target", options.target)
    _check_column(source, "id_column", options.id_column)
    return tables(source, options, chunk_size, strict)


def _check_choices(options: Options) -> None:
    choices = {"vertex": get_args(Vertex), "arc_labels": get_args(ArcLabels)}
    choices["atoms"] = ("element", "rich")
    for name, allowed in choices.items():
        value = getattr(options, name)
        if value not in allowed:
            raise ValueError(f"{name}={value!r}: expected one of {', '.join(allowed)}")


def _check_column(source: Source, what: str, column: str | None) -> None:
    if column is None or column in source.columns:
        return
    nearest = difflib.get_close_matches(column, source.columns, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise DatasetFormatError(
        f"{source.name}: no column {column!r} for {what}; {hint}"
        f"its columns are {', '.join(source.columns)}"
    )


# ---------------------------------------------------------------------- one way for each format


def _tu_table(path: Path | str, options: Options) -> GraphTable:
    if options.target not in (None, "y", "graph_labels"):
        raise DatasetFormatError(
            f"{path}: no column {options.target!r}; the targets of a TU dataset are called 'y'"
        )
    vertex = options.vertex
    if vertex == "auto":
        vertex = _tu_vertex(path)
    graphs, y = load_tu(path, vertex=vertex, arc_labels=options.arc_labels)
    return GraphTable(graphs, y, tuple(range(len(y))), np.arange(len(y)))


def _network_source(
    name: str, format: str, files: Sequence[Any], options: Options
) -> tuple[Source, Options]:
    if options.target is None:
        columns, records = networks.file_records(files)
    else:
        columns, records = networks.labeled_records(files[0].parent, files)
    read = networks.network_reader(options)
    return Source(name, columns, records, read, text_only=True, id_column=networks.FILE), options


def _table_source(
    name: str, format: str, files: Sequence[Any], options: Options
) -> tuple[Source, Options]:
    columns, records = _open_table(files[0], format)
    chosen = None
    if is_graph_table(columns) and options.smiles_column is None:
        used, read = graph_columns(columns), graph_reader(columns)
    else:
        chosen = _chosen_smiles(name, columns, options)
        # Orders are real numbers, but they are labels.
        auto = options.arc_labels == "auto"
        options = replace(options, arc_labels="ignore") if auto else options
        used, read = (
            [chosen],
            molecule_reader(chosen, options.atoms, options.arc_labels != "ignore"),
        )
    asked = [c for c in (options.target, options.id_column) if c in columns]
    wanted = list(dict.fromkeys([*used, *asked]))
    more = (_more_records(path, format, wanted) for path in files[1:])
    everything = chain(records(wanted), chain.from_iterable(more))
    text_only = format in ("csv", "tsv")
    source = Source(name, columns, everything, read, text_only, smiles_column=chosen)
    return source, options


def _chosen_smiles(name: str, columns: Sequence[str], options: Options) -> str:
    chosen = options.smiles_column or smiles_column(columns)
    if chosen is None or chosen not in columns:
        missing = "column with SMILES" if chosen is None else f"column {chosen!r}"
        raise DatasetFormatError(
            f"{name}: neither an edge_index nor a {missing}; its columns are {', '.join(columns)}; "
            "say by smiles_column where the SMILES are"
        )
    return chosen


def _open_table(
    path: Path | str, format: str
) -> tuple[list[str], Callable[[Sequence[str]], Iterator[Record]]]:
    """Columns, and a function from the wanted ones to records."""
    if format in ("parquet", "arrow"):
        from fdgnn.datasets import arrow

        return (arrow.read_parquet if format == "parquet" else arrow.read_arrow)(Path(path))
    if format == "jsonl":
        columns, records = read_jsonl(path)
    else:
        columns, records = read_csv(path, "\t" if format == "tsv" else None)
    return columns, lambda wanted: records


def _more_records(path: Path, format: str, wanted: Sequence[str]) -> Iterator[Record]:
    """Records of a further file of the same table."""
    columns, records = _open_table(path, format)
    missing = [column for column in wanted if column not in columns]
    if missing:
        raise DatasetFormatError(
            f"{path}: no column {missing[0]!r}, which the files before it have; "
            f"its columns are {', '.join(columns)}"
        )
    return records(wanted)


def _tu_vertex(path: Path | str) -> Any:
    """Labels, as the paper; where there are none, features; where there are none, nothing."""
    if not Path(path).exists():
        return "labels"
    with open_dataset(Path(path)) as files:
        only_features = "node_attributes" in files and "node_labels" not in files
    return "features" if only_features else "labels"
