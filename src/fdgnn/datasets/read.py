"""Read graphs from a file or folder of any known format."""

from __future__ import annotations

import ctypes
import difflib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np

from fdgnn.datasets import molecule_files, networks
from fdgnn.datasets.files import open_dataset
from fdgnn.datasets.formats import recognize
from fdgnn.datasets.home import data_home, find
from fdgnn.datasets.molecules import MoleculeColumn, bonds_of, smiles_column
from fdgnn.datasets.request import ArcLabels, ReadRequest, VertexChoice
from fdgnn.datasets.rows import FileRows, GraphTable, GraphTables, Row, RowReader
from fdgnn.datasets.sources import (
    Stream,
    Table,
    frame_table,
    is_frame,
    is_molecule_list,
    is_stream,
    molecule_table,
)
from fdgnn.datasets.tables import EDGES, graph_columns, graph_reader, is_graph_table
from fdgnn.datasets.text import LOOK_AHEAD, name_of, read_csv, read_jsonl
from fdgnn.datasets.tu import load_tu
from fdgnn.exceptions import DatasetFormatError, UnusedDataWarning
from fdgnn.graphs.molecules import MoleculeReader
from fdgnn.graphs.reading import USUAL_ATOMS, Atoms, Reading, Standardize, Vertex, reading_of

CHUNK_SIZE = 10_000

StrPath = str | os.PathLike[str]


def read_graphs(
    path: Any,
    *,
    like: Any = None,
    format: str | None = None,
    target: str | Sequence[str] | None = None,
    numeric: bool = False,
    id_column: str | None = None,
    smiles_column: str | None = None,
    vertex: VertexChoice = "auto",
    vertex_attributes: str | Sequence[str] | None = None,
    edge_attribute: str | None = None,
    arc_labels: ArcLabels = "auto",
    atoms: Atoms | None = None,
    directed: bool | None = None,
    columns: Sequence[str] = (),
    strict: bool = False,
    standardize: Standardize | None = None,
    stereo: bool | None = None,
    descriptors: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> GraphTable:
    r"""Read graphs, one per row, from a file or a folder.

    A row that cannot be read is listed in ``rejects``. It neither stops nor shifts the others.

    Parameters
    ----------
    path : str, path, open file, data frame, or list of molecules
        A TU folder or zip, or the name of a TU dataset; a graph table or a table with SMILES, as
        CSV, TSV, JSON lines, Parquet or Arrow; a file of SMILES and names, or SDF; a folder of
        such tables, read by name as one; a folder of GraphML or GEXF files; or ``"-"``, a CSV
        table or JSON lines on standard input. Text may be packed by gzip. Or a file that is open
        for reading, a ``StringIO``, a pandas or polars data frame with the columns of a table, a
        list of SMILES or of RDKit Mols. See docs/formats.md.
    like : fitted model or Reading, optional
        Read the file in the way in which the model's training data was read. Rows that do not fit
        are rejected. A model that was not fitted on graphs from a file has no reading; then the
        file is read as if `like` were not given.
    format : str, optional
        "tu", "csv", "tsv", "jsonl", "parquet", "arrow", "smi", "sdf", "graphml" or "gexf"; by
        default it is recognized from the name or the first bytes.
    target : str or sequence of str, optional
        Column with the targets; rows without one are rejected. TU datasets always have targets.
        A sequence names the columns of several targets; rows that lack all of them are rejected.
    numeric : bool, default=False
        Reject rows whose target is not a number, instead of reading all targets as text.
    id_column : str, optional
        Column that names the rows. By default, rows are known by their number, counted from 0, or
        by their file's name.
    smiles_column : str, optional
        By default the column called ``smiles``, or the only one with that word in its name.
    vertex : {"auto", "labels", "features", "none"}, default="auto"
        What vertices carry; "auto" means labels if they have one integer or text each.
    vertex_attributes : str or sequence of str, optional
        Attributes of GraphML and GEXF nodes; by default ``label``, or the only one there is.
    edge_attribute : str, optional
        Attribute of GraphML and GEXF edges; by default ``weight`` or ``label``, if all have it.
    arc_labels : {"auto", "ignore", "labels", "weights", "vertices"}, default="auto"
        How values on arcs are used: not at all, as the arcs' labels, as weights, or as vertices
        of their own between the ends of the arcs. "auto" reads one real number per arc as its
        weight. Integers and text, and the types of bonds, are labels if all rows can be read so,
        and are ignored otherwise.
    atoms : {"element", "typed", "rich"}, optional
        What the vertices of a molecule carry: the element as a label; a label of the atom's type
        (the default), which is the element, its neighbors, hydrogens and charge, and whether it
        is aromatic or in a ring; or 21 features.
    directed : bool, optional
        By default the file decides; tables are read as undirected.
    columns : sequence of str, optional
        Further columns of the file to keep beside the graphs, such as groups, dates or numbers
        of your own; `GraphTable.columns` has them.
    strict : bool, default=False
        Raise an error at the first bad row.
    standardize : {"parent", "tautomer"}, optional
        Replace each molecule by its largest fragment, without charges; "tautomer" also takes its
        canonical tautomer, which is slow. `GraphTable.changes` lists what was changed.
    stereo : bool, optional
        Tell mirror images and cis from trans: labels of atoms also say R or S, types of bonds E
        or Z. By default they do not.
    descriptors : sequence of str, optional
        Columns that describe whole graphs, for models to use beside these: numbers, or text for
        categories; cells may be empty. `GraphTable.graphs` has them.
    categories : sequence of str, optional
        Further such columns, whose numbers are codes of categories.

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
        An optional library is not installed; the message names the extra.
    ValueError
        An argument has no such value, or contradicts `like`.

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
    GraphTable(1 of 2 rows, GraphBatch(1 graph, 3 vertices, 4 arcs))
    >>> print(*table.rejects)
    row 1: edge (9, 2) points past its 3 vertices; vertices are numbered from 0
    """
    request = ReadRequest(
        target, numeric, id_column, smiles_column, vertex, vertex_attributes, edge_attribute,
        arc_labels, atoms, directed, reading_of(like), tuple(columns), standardize, stereo,
        tuple(descriptors), tuple(categories),
    )  # fmt: skip
    table = next(_iterate(path, format, request, strict, None))
    if table.n_rows > CHUNK_SIZE:
        _give_memory_back()
    return table


def _give_memory_back() -> None:
    """Return freed memory to the system; glibc keeps that of many small objects otherwise."""
    with suppress(AttributeError, OSError, TypeError):  # another C library, another system
        ctypes.CDLL(None).malloc_trim(0)


def iter_graphs(
    path: Any,
    *,
    like: Any = None,
    chunk_size: int = CHUNK_SIZE,
    format: str | None = None,
    strict: bool = False,
    **options: Any,
) -> Iterator[GraphTable]:
    """Read a table larger than memory as tables of `chunk_size` rows each.

    What vertices and arcs carry is decided on the first chunk, or by `like`. Rows that differ are
    rejected. TU datasets come as one table.

    Parameters
    ----------
    path : str or path
    like : fitted model or Reading, optional
    chunk_size : int, default=10000
    format, strict, **options
        See `read_graphs`.

    Yields
    ------
    GraphTable
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size={chunk_size!r}: expected an integer, at least 1")
    request = ReadRequest(**options, like=reading_of(like))
    return _iterate(path, format, request, strict, chunk_size)


def _iterate(
    path: Any, format: str | None, request: ReadRequest, strict: bool, chunk_size: int | None
) -> Iterator[GraphTable]:
    request = request.checked()
    rows = _object_rows(path, request)
    if rows is None:
        path = Stream.of(path) if is_stream(path) else path
        found = recognize(path, format)
        if found.format == "tu":
            return iter([_tu_table(cast(Any, found.files[0]), request)])
        if found.format in ("graphml", "gexf"):
            rows = _network_rows(name_of(path), found.files, request)
        else:
            look_ahead = min(LOOK_AHEAD, chunk_size or LOOK_AHEAD)
            rows = _file_rows(name_of(path), found.format, found.files, request, look_ahead)
    if rows.source != "molecules":
        _refuse_choices_of_molecules(rows.name, request)
    for name in request.targets:
        _check_column(rows, "target", name)
    _check_column(rows, "id_column", request.id_column)
    for column in request.columns:
        _check_column(rows, "columns", column)
    for column in request.described_by:
        _check_column(rows, "descriptors", column, of_model=request.like is not None)
    return GraphTables(rows, request, chunk_size, strict)


def _refuse_choices_of_molecules(name: str, request: ReadRequest) -> None:
    for choice in ("standardize", "stereo"):
        if getattr(request, choice):
            raise DatasetFormatError(
                f"{name}: `{choice}` is for molecules, and there are none; leave `{choice}` out"
            )


def _check_column(
    rows: FileRows, argument: str, column: str | None, *, of_model: bool = False
) -> None:
    """Raise an error if there is no such column, which an argument names, or a fitted model."""
    if column is None or column in rows.columns:
        return
    why = f", one of the model's {argument}" if of_model else f" for `{argument}`"
    nearest = difflib.get_close_matches(column, rows.columns, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise DatasetFormatError(
        f"{rows.name}: there is no column {column!r}{why}; {hint}"
        f"its columns are {', '.join(rows.columns)}"
    )


# ---------------------------------------------------------------------- one way for each format


def _tu_table(path: Path | str, request: ReadRequest) -> GraphTable:
    if request.has_several or request.target not in (None, "y", "graph_labels"):
        raise DatasetFormatError(
            f"{path}: there is no column {request.targets[-1]!r}; the targets of a TU dataset are "
            "called 'y'"
        )
    if request.directed:
        raise DatasetFormatError(f"{path}: TU datasets are undirected; leave `directed` out")
    for column in (*request.columns, *request.described_by):
        raise DatasetFormatError(
            f"{path}: TU datasets have no columns beside the graphs, so none is called {column!r}"
        )
    _refuse_choices_of_molecules(str(path), request)
    vertex = _tu_vertex(path) if request.vertex == "auto" else request.vertex
    graphs, y = load_tu(path, vertex=vertex, arc_labels=request.arc_labels)
    if request.like is None and request.arc_labels == "labels" and graphs.arc_label_codes is None:
        raise DatasetFormatError(
            f"{path}: there are no edge labels, or an edge has different ones; use "
            "`arc_labels='ignore'`"
        )
    if request.like is not None and graphs.reading is not None:
        _check_alike(str(path), graphs.reading, request.like)
    return GraphTable(graphs, y, tuple(range(len(y))), np.arange(len(y)), reading=graphs.reading)


def _check_alike(name: str, found: Reading, known: Reading) -> None:
    """Refuse a dataset whose graphs are of another kind, all of them at once."""
    for what in ("vertices_in_words", "arcs_in_words", "directed"):
        if getattr(found, what) != getattr(known, what):
            raise DatasetFormatError(
                f"{name}: it has {_in_words(found)}, but the model's training data has "
                f"{_in_words(known)}"
            )


def _in_words(reading: Reading) -> str:
    kind = "directed" if reading.directed else "undirected"
    return (
        f"{kind} graphs with {reading.vertices_in_words} on vertices and "
        f"{reading.arcs_in_words} on arcs"
    )


def _tu_vertex(path: Path | str) -> Vertex:
    """Read labels, as the paper does, unless there are only features; tell of others."""
    with open_dataset(find(path, data_home())) as files:
        has_labels, has_features = "node_labels" in files, "node_attributes" in files
    if has_labels and has_features:
        warnings.warn(
            f"{path}: attributes of vertices are not used, only their labels; `vertex='features'` "
            "reads the attributes instead, and `vertex='labels'` reads labels without this remark",
            UnusedDataWarning,
            stacklevel=5,
        )
    return "features" if has_features and not has_labels else "labels"


def _network_rows(name: str, files: Sequence[Any], request: ReadRequest) -> FileRows:
    if request.target is None and not request.described_by:
        columns, rows = networks.file_rows(files)
    else:
        columns, rows = networks.labeled_rows(files[0].parent, files)
    reader = networks.network_reader(request)
    return FileRows(
        name, "networks", columns, rows, reader, text_only=True, id_column=networks.FILE
    )


def _object_rows(given: Any, request: ReadRequest) -> FileRows | None:
    """Give the rows of a data frame or of a list of molecules; None if it is neither."""
    if is_frame(given):
        return _table_rows("the data frame", frame_table(given), (), request)
    if is_molecule_list(given):
        return _table_rows("the list of molecules", molecule_table(given), (), request)
    return None


def _file_rows(
    name: str, format: str, files: Sequence[Any], request: ReadRequest, look_ahead: int
) -> FileRows:
    table = _open_table(files[0], format, look_ahead)
    rows = partial(_more_rows, format=format)
    found = _table_rows(name, table, [partial(rows, path) for path in files[1:]], request)
    named = format in ("smi", "sdf") and molecule_files.NAME in table[0]
    return replace(
        found,
        text_only=format not in ("jsonl", "parquet", "arrow"),
        id_column=molecule_files.NAME if named else None,
    )


def _table_rows(
    name: str, table: Table, more: Sequence[Callable[..., Iterator[Row]]], request: ReadRequest
) -> FileRows:
    """Give the rows of a table, and of the further files of it, with the columns that are used."""
    columns, open_rows = table
    smiles = None if _holds_graphs(name, columns, request) else _smiles(name, columns, request)
    reader: RowReader
    if smiles is None:
        used, reader = graph_columns(columns), graph_reader(columns, request.like)
    elif smiles == molecule_files.BLOCK:
        used = [smiles, molecule_files.NAME]
        reader = molecule_files.MolBlock(_molecule_reader(request))
    else:
        used, reader = [smiles], MoleculeColumn(smiles, _molecule_reader(request))
    beside = (*request.columns, *request.described_by)
    asked = [c for c in (*request.targets, request.id_column, *beside) if c in columns]
    wanted = list(dict.fromkeys([*used, *asked]))
    _check_once(name, columns, wanted)
    return FileRows(
        name=name,
        source="table" if smiles is None else "molecules",
        columns=[c for c in columns if c != molecule_files.BLOCK],
        rows=chain(open_rows(wanted), chain.from_iterable(rows(wanted=wanted) for rows in more)),
        reader=reader,
        smiles_column=None if smiles == molecule_files.BLOCK else smiles,
    )


def _molecule_reader(request: ReadRequest) -> MoleculeReader:
    return MoleculeReader(
        request.atoms or USUAL_ATOMS,
        bonds_of(request.arc_labels),
        request.standardize,
        bool(request.stereo),
    )


def _holds_graphs(name: str, columns: Sequence[str], request: ReadRequest) -> bool:
    """Tell a graph table from one of molecules; a table that could be both is what `like` says."""
    if request.like is None:
        return is_graph_table(columns) and request.smiles_column is None
    if request.like.source == "molecules":
        return False
    if not is_graph_table(columns):
        raise DatasetFormatError(
            f"{name}: there is no column {EDGES}, and the model's training data was not read from "
            f"SMILES; its columns are {', '.join(columns)}"
        )
    return True


def _check_once(name: str, columns: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse columns of one name, if they are used: nobody can know which of them is meant."""
    twice = [column for column in wanted if list(columns).count(column) > 1]
    if twice:
        raise DatasetFormatError(
            f"{name}: there are {list(columns).count(twice[0])} columns called {twice[0]!r}, and "
            "it is not known which is meant; give them different names"
        )


def _smiles(name: str, columns: Sequence[str], request: ReadRequest) -> str:
    """Choose the column with SMILES: the one asked for, else that of `like`, else by its name."""
    if molecule_files.BLOCK in columns and request.smiles_column is None:
        return molecule_files.BLOCK
    known = request.like.smiles_column if request.like is not None else None
    chosen = request.smiles_column or (known if known in columns else smiles_column(columns))
    several = [column for column in columns if "smiles" in column.lower()]
    if chosen is None and len(several) > 1:
        raise DatasetFormatError(
            f"{name}: several columns may have SMILES, {' and '.join(several)}; name the one that "
            "is meant by `smiles_column`"
        )
    if chosen is None or chosen not in columns:
        missing = "column with SMILES" if chosen is None else f"column {chosen!r}"
        what = f"no {missing}" if EDGES in columns else f"neither an {EDGES} nor a {missing}"
        raise DatasetFormatError(
            f"{name}: there is {what}; its columns are "
            f"{', '.join(columns)}; name the column with SMILES by `smiles_column`"
        )
    return chosen


def _open_table(path: Any, format: str, look_ahead: int = LOOK_AHEAD) -> Table:
    """Find the columns; return them and a function from the wanted ones to rows.

    Where no header names the columns, they are those of the first rows: `look_ahead` of them.
    """
    if format in ("parquet", "arrow"):
        from fdgnn.datasets import arrow

        return arrow.read_arrow(Path(path), format)
    if format in ("jsonl", "sdf"):
        read = read_jsonl if format == "jsonl" else molecule_files.read_sdf
        columns, rows = read(path, look_ahead)
    elif format == "smi":
        columns, rows = molecule_files.read_smi(path)
    else:
        columns, rows = read_csv(path, "\t" if format == "tsv" else None)
    return columns, lambda wanted: rows


def _more_rows(path: Path, *, format: str, wanted: Sequence[str]) -> Iterator[Row]:
    """Read the rows of a further file of the same table."""
    columns, open_rows = _open_table(path, format)
    missing = [column for column in wanted if column not in columns]
    if missing:
        raise DatasetFormatError(
            f"{path}: there is no column {missing[0]!r}, which the files before it have; "
            f"its columns are {', '.join(columns)}"
        )
    _check_once(str(path), columns, wanted)
    return open_rows(wanted)
