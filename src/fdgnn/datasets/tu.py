"""The text format of the TU benchmark collection (www.graphlearning.io).

A dataset NAME is a folder, or a zip of one, with a line for each

- arc in ``NAME_A.txt`` (two vertices), vertex in ``NAME_graph_indicator.txt`` (its graph) and
  graph in ``NAME_graph_labels.txt`` (its class); all three are needed;
- vertex in ``NAME_node_labels.txt`` (an integer) and ``NAME_node_attributes.txt`` (numbers);
- arc in ``NAME_edge_labels.txt`` (integers, most often one) and ``NAME_edge_attributes.txt``
  (numbers).

Vertices and graphs are counted from 1, across the whole dataset.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints, offsets_of
from fdgnn.datasets.files import Expansion, TextFile, open_dataset
from fdgnn.datasets.home import Dataset, cached, find
from fdgnn.datasets.home import data_home as home_of
from fdgnn.exceptions import DatasetFormatError, GraphError, warn_unused
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.checks import joined_labels
from fdgnn.graphs.converters import with_label_columns
from fdgnn.schema import (
    CHOICES,
    EdgeChoice,
    EdgeUse,
    InputSchema,
    Vertex,
    VertexChoice,
    check_choice,
)

_OF_VERTICES = {"node_labels", "node_attributes"}


def load_tu(
    name: str | os.PathLike[str],
    *,
    vertex: VertexChoice = "auto",
    edge_labels: EdgeChoice = "auto",
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> tuple[GraphBatch, npt.NDArray[np.int64]]:
    """Load a graph classification dataset of the TU collection.

    It is searched for in the data home (``tu/NAME.zip``, ``tu/NAME/``, ``NAME.zip``, ``NAME/``),
    in an installed GraKeL, and on the official site. The parsed dataset is kept in the user's
    cache directory (or in ``FDGNN_CACHE``).

    Graphs are undirected, whether the file lists an edge once or both ways. Arcs listed twice are
    merged and counted in ``graphs.n_merged_arcs``. Self-loops stay, and are counted in
    ``graphs.n_self_loops``. Graph attributes are not read.

    Parameters
    ----------
    name : str or path
        A name such as ``"MUTAG"``, or the path of a folder or zip in TU format.
    vertex : {"auto", "labels", "features", "both", "none"}, default="auto"
        What is read of vertices: their discrete labels, as in the paper; their real-valued
        attributes; both, where labels become columns of zeros and ones after the attributes; or
        nothing. "auto" reads labels or, if the dataset has none, attributes.
    edge_labels : {"auto", "labels", "weights", "ignore"}, default="auto"
        How edge labels and attributes are used. "labels" reads edge labels, which the paper's
        model ignores; several per edge are joined to a text such as ``"1,2"``. "weights" reads one
        edge attribute or, if there are none, one edge label as the weight. "auto" reads labels,
        unless an edge has different ones, or else one attribute as the weight.
    data_home : path, optional
        By default the environment variable ``FDGNN_DATA``, or else the user's cache directory.
    download_if_missing : bool, default=True
        The environment variable ``FDGNN_OFFLINE=1`` switches downloads off as well.

    Returns
    -------
    graphs : GraphBatch
    y : (n_graphs,) int64
        Classes as in the file. Most files list the graphs ordered by class.

    Raises
    ------
    DatasetNotFoundError
        No dataset of that name; the message suggests the nearest.
    DatasetFormatError
        The files are incomplete or contradict each other; the message names file and line.
    UnsafeArchiveError
        The zip leaves its folder or is far too large.
    DownloadError
        The dataset is not here, and could not or should not be downloaded.

    Warns
    -----
    UnusedDataWarning
        "auto" leaves out some of what the dataset has; the warning names the options.
    """
    check_choice("vertex", vertex, CHOICES["vertex"])
    check_choice("edge_labels", edge_labels, CHOICES["edge_labels"])
    path = find(name, home_of(data_home), download_if_missing=download_if_missing)
    variant = f"{vertex}, arcs {edge_labels}"
    with open_dataset(path) as files:
        found = cached(
            files.values(), variant, lambda: parse_tu(files, vertex, edge_labels),
            name=path.stem[:40],
        )  # fmt: skip
        warn_unused(str(name), _unused(files, vertex, edge_labels, found[0]))
        return found


def _unused(
    files: Mapping[str, TextFile], vertex: VertexChoice, edge_labels: EdgeChoice, graphs: GraphBatch
) -> dict[str, str]:
    """Find what a dataset has and "auto" does not use, and the options for it."""
    unused: dict[str, str] = {}
    if vertex == "auto" and {"node_labels", "node_attributes"} <= files.keys():
        unused["attributes of vertices"] = (
            "`vertex='both'` reads them beside the labels, `vertex='features'` instead of these, "
            "and `vertex='labels'` reads only labels without this warning"
        )
    if edge_labels == "auto" and graphs.schema is not None:
        use = graphs.schema.edge_labels
        if "edge_attributes" in files and use != "weights":
            unused["attributes of edges"] = (
                "`edge_labels='weights'` reads one number per edge as its weight, and "
                f"`edge_labels='{use}'` reads none without this warning"
            )
        if "edge_labels" in files and use != "labels":
            unused["labels of edges, which have different ones in different places,"] = (
                "`edge_labels='ignore'` reads none without this warning"
            )
    return unused


def parse_tu(
    files: Mapping[str, TextFile],
    vertex: VertexChoice = "auto",
    edge_labels: EdgeChoice = "auto",
) -> Dataset:
    """Parse the text files of one dataset, given by kind: "A", "graph_labels" and so on."""
    y = _read_integers(_needed(files, "graph_labels"))
    graph_of = _read_integers(_needed(files, "graph_indicator")) - 1
    sizes = _graph_sizes(graph_of, y, files)
    arcs: Array = _read_arcs(_needed(files, "A"), graph_of)
    labels, features = _vertex_data(files, vertex, len(graph_of))
    use, carried = _arc_data(files, edge_labels, arcs.shape[1])
    if (np.diff(graph_of) < 0).any():  # the vertices of a graph need not be listed together
        order = np.argsort(graph_of, kind="stable")
        arcs = np.argsort(order)[arcs]
        labels = None if labels is None else labels[order]
        features = None if features is None else features[order]
    columns: tuple[int, ...] = ()
    if labels is not None and features is not None:
        columns = tuple(np.unique(labels).tolist())
        file = files["node_labels"]  # of which each line becomes a row of all columns
        Expansion(file.name, file.size).add(8 * len(labels) * len(columns))
        features, labels = with_label_columns(features, labels, columns), None
    offsets = offsets_of(sizes)
    build = partial(GraphBatch.from_arcs, offsets, arcs, labels=labels, features=features)
    graphs = None
    if use == "labels" and carried is not None:
        try:
            graphs = build(edge_labels=joined_labels(carried))
        except GraphError as error:  # an edge has different labels; so there are none
            if edge_labels == "labels":
                raise _no_edge_labels(files) from error
            use, carried = "ignore", None
    if graphs is None:
        weights = None if carried is None else carried[:, 0]
        try:
            graphs = build(weights=weights)
        except GraphError as error:
            raise DatasetFormatError(f"{_prefix(files)}*.txt: {error}") from error
    return replace(graphs, schema=_schema(labels, features, use, carried, columns)), y


def _schema(
    labels: Ints | None,
    features: Floats | None,
    use: EdgeUse,
    carried: Array | None,
    columns: tuple[int, ...],
) -> InputSchema:
    vertex: Vertex = "none" if features is None else "features"
    return InputSchema(
        source="tu",
        directed=False,
        vertex=vertex if labels is None else "labels",
        label_kind=None if labels is None else "integer",
        n_features=None if features is None else features.shape[1],
        edge_labels=use,
        edge_kind=None if carried is None else "number",
        edge_width=None if carried is None else carried.shape[1],
        label_columns=columns,
    )


# ---------------------------------------------------------------------- from text to numbers


def _integer_blocks(file: TextFile, n_columns: int) -> Iterator[tuple[int, Ints]]:
    """Yield how many lines came before, and the next ones as an array (n_columns, n_lines)."""
    from fdgnn.kernels import parse_rows

    n_read = 0
    for text in file.blocks():
        n_lines = text.count(b"\n") + 1
        # A valid line has two bytes per column: of so many columns there are no more than fit.
        n_fit = len(text) // (2 * n_columns) + 1
        block = np.empty((n_columns, min(n_lines, n_fit)), dtype=np.int64)
        n_valid = parse_rows(np.frombuffer(text, dtype=np.uint8), block)
        if n_valid < n_lines:
            raise _bad_line(file, n_read + n_valid, text.split(b"\n")[n_valid], n_columns)
        yield n_read, block
        n_read += n_valid
    if n_read == 0:
        raise _empty(file)


def _read_integers(file: TextFile) -> Ints:
    """Read one integer per line."""
    return np.concatenate([block[0] for _, block in _integer_blocks(file, 1)])


def _read_integer_rows(file: TextFile) -> Ints:
    """Read lines of integers, as many as on the first, into an array (n_lines, n_integers)."""
    first = next(file.blocks(), b"").split(b"\n", 1)[0]
    blocks = [block for _, block in _integer_blocks(file, first.count(b",") + 1)]
    return np.concatenate(blocks, axis=1).T


def _read_arcs(file: TextFile, graph_of: Ints) -> npt.NDArray[np.int32]:
    """Read arcs into an array (2, n_arcs), with vertices counted from 0."""
    # Each block is checked while it is in the CPU's cache, and kept as int32.
    blocks = []
    for n_before, block in _integer_blocks(file, 2):
        block -= 1
        _check_arcs(block, graph_of, file.name, n_before)
        blocks.append(block.astype(np.int32))
    return np.concatenate(blocks, axis=1)


def _read_floats(file: TextFile) -> Floats:
    """Read lines of numbers, all of one length, into an array (n_lines, n_numbers)."""
    if next(file.blocks(), None) is None:
        raise _empty(file)
    lines = (line for text in file.blocks() for line in text.decode("latin1").split("\n"))
    try:
        return np.loadtxt(lines, delimiter=",", comments=None, ndmin=2)
    except DatasetFormatError:
        raise
    except ValueError as error:
        raise DatasetFormatError(f"{file.name}: {error}") from error


def _vertex_data(
    files: Mapping[str, TextFile], vertex: VertexChoice, n_vertices: int
) -> tuple[Ints | None, Floats | None]:
    labels = features = None
    if vertex == "auto":
        vertex = "features" if files.keys() & _OF_VERTICES == {"node_attributes"} else "labels"
    if vertex == "both" and "node_labels" not in files:
        raise DatasetFormatError(
            f"{_prefix(files)}node_labels.txt is missing: this dataset has no vertex labels; load "
            "it with `vertex='features'`"
        )
    if vertex in ("labels", "both") and "node_labels" in files:
        labels = _read_integers(files["node_labels"])
        _check_length(len(labels), n_vertices, files["node_labels"])
    if vertex in ("features", "both"):
        if "node_attributes" not in files:
            raise DatasetFormatError(
                f"{_prefix(files)}node_attributes.txt is missing: this dataset has no vertex "
                "features; load it with `vertex='labels'`"
            )
        features = _read_floats(files["node_attributes"])
        _check_length(len(features), n_vertices, files["node_attributes"])
    return labels, features


def _arc_data(
    files: Mapping[str, TextFile], edge_labels: EdgeChoice, n_arcs: int
) -> tuple[EdgeUse, Array | None]:
    """Decide what becomes of the arcs' data, and read it, one row per arc."""
    kinds = ("edge_labels", "edge_attributes")
    kind = next(
        (k for k in (kinds[::-1] if edge_labels == "weights" else kinds) if k in files), None
    )
    if edge_labels == "ignore":
        return "ignore", None
    if edge_labels == "labels" and kind != "edge_labels":
        raise _no_edge_labels(files)
    if kind is None:
        if edge_labels == "auto":
            return "ignore", None
        raise DatasetFormatError(
            f"{_prefix(files)}edge_labels.txt is missing: this dataset has neither edge labels "
            "nor edge attributes; load it with `edge_labels='ignore'`"
        )
    file = files[kind]
    carried: Array = _read_integer_rows(file) if kind == "edge_labels" else _read_floats(file)
    if len(carried) != n_arcs:
        raise DatasetFormatError(
            f"{file.name}: {len(carried)} lines, but the dataset has {n_arcs} arcs; "
            "the file is truncated or belongs to another dataset"
        )
    width = carried.shape[1]
    if edge_labels == "weights" and width > 1:
        raise DatasetFormatError(
            f"{file.name}: {width} numbers per edge cannot be its weight; load it with "
            "`edge_labels='ignore'`"
        )
    if edge_labels == "auto" and kind == "edge_labels":
        return "labels", carried
    if edge_labels == "auto":
        return ("weights", carried) if width == 1 else ("ignore", None)
    return cast(EdgeUse, edge_labels), carried


def _no_edge_labels(files: Mapping[str, TextFile]) -> DatasetFormatError:
    return DatasetFormatError(
        f"{_prefix(files)}*.txt: there are no edge labels, or an edge has different ones; use "
        "`edge_labels='ignore'`"
    )


def _graph_sizes(graph_of: Ints, y: Ints, files: Mapping[str, TextFile]) -> Ints:
    """Count each graph's vertices."""
    indicator, classes = files["graph_indicator"].name, files["graph_labels"].name
    outside = (graph_of < 0) | (graph_of >= len(y))
    if outside.any():
        line = int(np.argmax(outside))
        raise DatasetFormatError(
            f"{indicator}, line {line + 1}: graph {graph_of[line] + 1}, but graphs are counted "
            f"from 1, and {classes} has {len(y)} lines"
        )
    sizes = np.bincount(graph_of, minlength=len(y))
    if (sizes == 0).any():
        g = int(np.argmax(sizes == 0)) + 1
        raise DatasetFormatError(
            f"{indicator}: graph {g} has no vertices, but {classes} has a line {g} for it; "
            "drop the line, or complete the file"
        )
    return sizes


# ---------------------------------------------------------------------- what can be wrong


def _needed(files: Mapping[str, TextFile], kind: str) -> TextFile:
    if kind not in files:
        raise DatasetFormatError(
            f"{_prefix(files)}{kind}.txt is missing; download the dataset again"
        )
    return files[kind]


def _prefix(files: Mapping[str, TextFile]) -> str:
    return files["A"].name.removesuffix("A.txt")


def _bad_line(file: TextFile, line: int, text: bytes, n_columns: int) -> DatasetFormatError:
    what = "one integer" if n_columns == 1 else f"{n_columns} integers"
    found = text[:40].decode("latin1")
    return DatasetFormatError(f"{file.name}, line {line + 1}: expected {what}, found {found!r}")


def _empty(file: TextFile) -> DatasetFormatError:
    return DatasetFormatError(f"{file.name}: the file is empty; download the dataset again")


def _check_length(n_lines: int, n_vertices: int, file: TextFile) -> None:
    if n_lines != n_vertices:
        raise DatasetFormatError(
            f"{file.name}: {n_lines} lines, but the dataset has {n_vertices} vertices; "
            "the file is truncated or belongs to another dataset"
        )


def _check_arcs(arcs: Ints, graph_of: Ints, name: str, n_before: int) -> None:
    n = len(graph_of)
    outside = ((arcs < 0) | (arcs >= n)).any(axis=0)
    if outside.any():
        a = int(np.argmax(outside))
        raise DatasetFormatError(
            f"{name}, line {n_before + a + 1}: arc ({arcs[0, a] + 1}, {arcs[1, a] + 1}), "
            f"but the dataset's vertices are 1 to {n}"
        )
    crossing = graph_of[arcs[0]] != graph_of[arcs[1]]
    if crossing.any():
        a = int(np.argmax(crossing))
        u, v = arcs[:, a]
        raise DatasetFormatError(
            f"{name}, line {n_before + a + 1}: arc ({u + 1}, {v + 1}) leads from graph "
            f"{graph_of[u] + 1} into graph {graph_of[v] + 1}; arcs must stay in one graph"
        )
