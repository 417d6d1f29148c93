"""GraphML files, one graph per file, with a table that names each file's target."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn.arrays import Array
from fdgnn.datasets.files import open_unpacked
from fdgnn.datasets.rows import BadRow, FileRows, Row
from fdgnn.datasets.tables import read_csv
from fdgnn.exceptions import DatasetFormatError, GraphError, warn_unused
from fdgnn.extras import require
from fdgnn.graphs import checks
from fdgnn.graphs.converters import RawGraph
from fdgnn.limits import MAX_ROW_BYTES
from fdgnn.schema import ReadOptions

FILE, PATH = "file", "\0path"  # the columns that this reader adds to a row: the graph's file


def network_rows(name: str, files: Sequence[Path], options: ReadOptions) -> FileRows:
    """Return one row per file or, if targets are read, per line of the folder's table."""
    columns, rows = [FILE], [{FILE: path.name, PATH: path} for path in files]
    if options.target is not None or options.all_descriptors:
        columns, rows = _labeled_rows(files[0].parent, files)
    reader = network_reader(options)
    return FileRows(name, "networks", columns, iter(rows), reader, text_only=True, id_column=FILE)


def _labeled_rows(folder: Path, files: Sequence[Path]) -> tuple[list[str], list[Any]]:
    """Return one row per line of the folder's table; files without a line are invalid rows."""
    tables = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in (".csv", ".tsv") and path.is_file()  # no pipe, no device
    ]
    if len(tables) != 1:
        names = ", ".join(path.name for path in tables) or "none"
        raise DatasetFormatError(
            f"{folder}: expected one CSV or TSV file that names each graph's target, found {names}"
        )
    table = tables[0]
    columns, iterator = read_csv(table, "\t" if table.suffix.lower() == ".tsv" else None)
    lines = list(iterator)
    by_name = {name: path for path in files for name in (path.stem, path.name)}
    column = _naming_column(table, columns, lines, by_name)
    rows: list[Row] = []
    for line in lines:
        name = None if isinstance(line, BadRow) else line[column].strip()
        if isinstance(line, BadRow):
            rows.append(line)
        elif name in by_name:
            rows.append({**line, FILE: by_name[name].name, PATH: by_name[name]})
        else:
            rows.append(BadRow(f"there is no graph file {name!r}", name))
    named = {row[PATH] for row in rows if not isinstance(row, BadRow)}
    left = [path.name for path in files if path not in named]
    rows += [BadRow(f"{table.name} has no line for it", name) for name in left]
    return [FILE, *columns], rows


def _naming_column(
    table: Path, columns: Sequence[str], lines: Sequence[Row], by_name: Mapping[str, Path]
) -> str:
    """Find the column that names most files."""

    def hits(column: str) -> int:
        return sum(not isinstance(r, BadRow) and r[column].strip() in by_name for r in lines)

    best = max(columns, key=hits)
    if hits(best) == 0:
        example = next(iter(by_name.values())).name
        raise DatasetFormatError(
            f"{table}: no column names the files beside it, such as {example}; "
            f"its columns are {', '.join(columns)}"
        )
    return best


# ---------------------------------------------------------------------- one file


def network_reader(options: ReadOptions) -> Callable[[Mapping[str, Any]], RawGraph]:
    """Return a function from a row to the graph in its file; it may raise `GraphError`.

    The first valid file decides which attributes are read from all files.
    """
    nx = require("networkx", "interop", "GraphML files")
    chosen: list[tuple[list[str], str | None]] = []

    def read(row: Mapping[str, Any]) -> RawGraph:
        graph = _load(nx, row[PATH])
        if not chosen:
            chosen.append((_vertex_attributes(graph, row[PATH], options), _edge(graph, options)))
            _warn_of_others(graph, row[PATH], *chosen[0], options)
        of_vertices, of_edges = chosen[0]
        if options.directed and not graph.is_directed():
            graph = graph.to_directed()  # each edge both ways
        position = {node: i for i, node in enumerate(graph)}
        ends = [(position[u], position[v]) for u, v in graph.edges()]
        columns = [_attributes(graph.nodes(data=name), name, "node") for name in of_vertices]
        carried = None
        if of_edges is not None:
            carried = _attributes(graph.edges(data=of_edges), of_edges, "edge")
        return RawGraph(
            edges=np.array(ends, dtype=np.int64).reshape(-1, 2).T,
            n_vertices=len(position),
            x=columns[0] if len(columns) == 1 else np.column_stack(columns) if columns else None,
            carried=carried,
            directed=graph.is_directed() if options.directed is None else options.directed,
            vertex_attributes=tuple(of_vertices),
            edge_attribute=of_edges,
        )

    return read


def _attributes(entries: Iterable[tuple[Any, ...]], name: str, what: str) -> Array:
    """Return one value for each node, or for each edge."""
    values = [value for *_, value in entries]
    if any(value is None for value in values):
        raise GraphError(f"its {what}s do not all have the attribute {name!r}; set it on each")
    checks.check_texts(values, f"attributes {name!r}")
    return checks.without_padding(checks.as_array(values, f"attributes {name!r}"))


def _load(nx: Any, path: Path) -> Any:
    try:
        return nx.read_graphml(io.BytesIO(_content(path)))
    except GraphError:
        raise
    except Exception as error:  # networkx passes on whatever its parsers raise
        raise GraphError(f"{path.name} cannot be read ({error})") from error


def _content(path: Path) -> bytes:
    """Read a whole file, packed by gzip or not, unless it is too large for one graph."""
    most = int(MAX_ROW_BYTES.value)
    with open_unpacked(path) as (stream, _):
        content = stream.read(most + 1)
    if len(content) > most:
        raise GraphError(f"{path.name} is too large; {MAX_ROW_BYTES.in_words}")
    return content


def _vertex_attributes(graph: Any, path: Path, options: ReadOptions) -> list[str]:
    """Choose the attributes to read: those in the options, else ``label``, else the only one."""
    if options.vertex == "none":
        return []
    if options.vertex_attributes:
        return list(options.vertex_attributes)
    found = sorted({name for _, data in graph.nodes(data=True) for name in data})
    if "label" in found:
        return ["label"]
    if len(found) > 1:
        raise DatasetFormatError(
            f"{path}: its nodes have the attributes {', '.join(found)}; say which to use by "
            "`vertex_attributes`, or use none of them by `vertex='none'`"
        )
    return found


def _warn_of_others(
    graph: Any, path: Path, vertices: list[str], edge: str | None, options: ReadOptions
) -> None:
    """Warn of attributes that are not read, where the user has not chosen among them."""
    of_vertices = {name for _, data in graph.nodes(data=True) for name in data} - {*vertices}
    of_edges = {name for *_, data in graph.edges(data=True) for name in data} - {edge}
    remedies = {}
    if of_vertices and options.vertex == "auto" and not options.vertex_attributes:
        remedies[f"attributes {', '.join(sorted(map(repr, of_vertices)))} of vertices"] = (
            "`vertex_attributes` names those to read, and `vertex='none'` reads none"
        )
    if of_edges and options.edge_labels == "auto" and options.edge_attribute is None:
        remedies[f"attributes {', '.join(sorted(map(repr, of_edges)))} of edges"] = (
            "`edge_attribute` names the one to read, and `edge_labels='ignore'` reads none"
        )
    warn_unused(path.name, remedies)


def _edge(graph: Any, options: ReadOptions) -> str | None:
    """Choose the attribute of edges: the one in the options, else one that all edges have."""
    if options.edge_labels == "ignore":
        return None
    if options.edge_attribute is not None:
        return options.edge_attribute
    attributes = [set(data) for *_, data in graph.edges(data=True)]
    everywhere = set.intersection(*attributes) if attributes else set()
    usual = ("label", "weight") if options.edge_labels == "labels" else ("weight", "label")
    return next((name for name in usual if name in everywhere), None)
