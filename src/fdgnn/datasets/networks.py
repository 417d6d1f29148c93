"""GraphML and GEXF files, one graph a file, with a table that names each file's target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn.arrays import Array
from fdgnn.datasets.layout import RawGraph
from fdgnn.datasets.rows import BadRecord, Options, Record
from fdgnn.datasets.text import read_csv
from fdgnn.exceptions import DatasetFormatError, GraphError, MissingDependencyError
from fdgnn.graphs import checks

SUFFIXES = (".graphml", ".gexf")
FILE, PATH = "file", "\0path"  # what this reader adds to a record: the graph's file
# Read from a GEXF file whether it says so or not: names, and how to draw them.
GEXF_OWN = {"label", "viz", "pid"}


def list_files(folder: Path) -> list[Path]:
    """Graph files of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


def file_records(files: Sequence[Path]) -> tuple[list[str], Iterator[Record]]:
    """One record a file, where no table is needed."""
    return [FILE], iter([{FILE: path.name, PATH: path} for path in files])


def labeled_records(folder: Path, files: Sequence[Path]) -> tuple[list[str], Iterator[Record]]:
    """One record a line of the folder's table, and a bad one for each file that no line names."""
    table = _find_table(folder)
    columns, iterator = read_csv(table, "\t" if table.suffix.lower() == ".tsv" else None)
    lines = list(iterator)
    by_name = {name: path for path in files for name in (path.stem, path.name)}
    column = _naming_column(table, columns, lines, by_name)
    records = [_with_file(line, column, by_name) for line in lines]
    named = {record[PATH] for record in records if isinstance(record, dict)}
    left = [path.name for path in files if path not in named]
    records += [BadRecord(f"{table.name} has no line for it", name) for name in left]
    return [FILE, *columns], iter(records)


def _find_table(folder: Path) -> Path:
    found = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in (".csv", ".tsv")]
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise DatasetFormatError(
            f"{folder}: expected one CSV or TSV file that names each graph's target, found {names}"
        )
    return found[0]


def _naming_column(
    table: Path, columns: Sequence[str], lines: Sequence[Record], by_name: Mapping[str, Path]
) -> str:
    """The column that names most files."""

    def hits(column: str) -> int:
        return sum(not isinstance(r, BadRecord) and r[column].strip() in by_name for r in lines)

    best = max(columns, key=hits)
    if hits(best) == 0:
        example = next(iter(by_name.values())).name
        raise DatasetFormatError(
            f"{table}: no column names the files beside it, such as {example}; "
            f"its columns are {', '.join(columns)}"
        )
    return best


def _with_file(record: Record, column: str, by_name: Mapping[str, Path]) -> Record:
    if isinstance(record, BadRecord):
        return record
    name = record[column].strip()
    if name not in by_name:
        return BadRecord(f"there is no graph file {name!r}", name)
    return {**record, FILE: by_name[name].name, PATH: by_name[name]}


# ---------------------------------------------------------------------- one file


def network_reader(options: Options) -> Callable[[Mapping[str, Any]], RawGraph]:
    """From a record to the graph in its file; raises `GraphError` if that cannot be read."""
    nx = _networkx()
    names: dict[str, Any] = {}

    def read(record: Mapping[str, Any]) -> RawGraph:
        graph = _load(nx, record[PATH])
        if not names:  # the first file that can be read says what there is
            names["x"] = _vertex_attributes(graph, record[PATH], options)
            names["carried"] = options.edge_attribute or _weight(graph)
        if options.directed and not graph.is_directed():
            graph = graph.to_directed()  # each edge both ways
        raw = _raw(graph, names["x"], names["carried"])
        return raw if options.directed is None else replace(raw, directed=options.directed)

    return read


def _networkx() -> Any:
    try:
        import networkx
    except ImportError as error:
        raise MissingDependencyError(
            "GraphML and GEXF files need networkx: pip install 'fdgnn[interop]'"
        ) from error
    return networkx


def _load(nx: Any, path: Path) -> Any:
    read = nx.read_gexf if path.suffix.lower() == ".gexf" else nx.read_graphml
    try:
        return read(path)
    except Exception as error:  # networkx lets through whatever its parsers stumble over
        raise GraphError(f"{path.name} cannot be read ({error})") from error


def _vertex_attributes(graph: Any, path: Path, options: Options) -> list[str]:
    """Attributes to read: as told, else the one called label, else the only one."""
    given = options.vertex_attributes
    if given is not None:
        return [given] if isinstance(given, str) else list(given)
    if options.vertex == "none":
        return []
    found = sorted({name for _, data in graph.nodes(data=True) for name in data})
    found = [n for n in found if path.suffix.lower() != ".gexf" or n not in GEXF_OWN]
    if "label" in found:
        return ["label"]
    if len(found) > 1:
        raise DatasetFormatError(
            f"{path}: its nodes have the attributes {', '.join(found)}; say which to use by "
            "vertex_attributes, or use none by vertex='none'"
        )
    return found


def _weight(graph: Any) -> str | None:
    """Edges are weighted, or labeled, if all of them are."""
    attributes = [set(data) for *_, data in graph.edges(data=True)]
    everywhere = set.intersection(*attributes) if attributes else set()
    return next((name for name in ("weight", "label") if name in everywhere), None)


def _raw(graph: Any, attributes: Sequence[str], edge_attribute: str | None) -> RawGraph:
    position = {node: i for i, node in enumerate(graph)}
    ends = [(position[u], position[v]) for u, v in graph.edges()]
    columns = [
        _column((data for _, data in graph.nodes(data=True)), name, "node") for name in attributes
    ]
    carried = None
    if edge_attribute is not None:
        carried = _column((data for *_, data in graph.edges(data=True)), edge_attribute, "edge")
    x = None
    if columns:
        x = columns[0] if len(columns) == 1 else np.column_stack(columns)
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return RawGraph(edges, len(position), x, carried, graph.is_directed())


def _column(entries: Iterator[Mapping[str, Any]], name: str, what: str) -> Array:
    values = [data.get(name) for data in entries]
    if None in values:
        raise GraphError(f"a {what} has no attribute {name!r}; set it on every {what}")
    return checks.as_array(values, "row", f"attributes {name!r}")
