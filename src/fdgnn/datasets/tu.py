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
from dataclasses import fields, replace
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Ints, offsets_of
from fdgnn.checkpoints import Checkpoints
from fdgnn.datasets.files import Expansion, TextFile, open_dataset
from fdgnn.datasets.home import cache_home, find, warn_not_cached
from fdgnn.datasets.home import data_home as home_of
from fdgnn.exceptions import DatasetFormatError, GraphError, warn_unused
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.checks import column_at, joined_labels, name_and_place
from fdgnn.graphs.raw import with_label_columns
from fdgnn.records import decode, encode
from fdgnn.schema import EdgeUse, InputSchema, ReadOptions, Vertex, check_no_molecules

FORMAT = 7  # raise this number whenever parsing the same files gives another result
Dataset = tuple[GraphBatch, Ints]
_OF_VERTICES = {"node_labels", "node_attributes"}


def load_tu(
    name: str | os.PathLike[str],
    options: ReadOptions | None = None,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    **changes: Any,
) -> tuple[GraphBatch, npt.NDArray[np.int64]]:
    """Load a graph classification dataset of the TU collection.

    It is searched for in the data home (``tu/NAME.zip``, ``tu/NAME/``, ``NAME.zip``, ``NAME/``), in
    an installed GraKeL, and on the official site. The parsed dataset is cached in the user's cache
    directory (or in ``FDGNN_CACHE``).

    Graphs are undirected, whether the file lists an edge in one or both directions. Duplicate edges
    are merged and counted in ``graphs.n_merged_arcs``. Self-loops are kept, and counted in
    ``graphs.n_self_loops``. Graph attributes are not read.

    Parameters
    ----------
    name : str or path
        A name such as ``"MUTAG"``, or the path of a folder or zip in TU format.
    options : ReadOptions, optional
        Only `vertex`, `edge_labels` and `edge_attribute` have a meaning here.

        - `vertex`: "labels", discrete labels, as in the paper; "features", real-valued attributes;
          "both", with labels one-hot encoded after the attributes; or "none". "auto" reads both if
          the dataset has them, for `AutoGraphClassifier`, some of whose base models use only
          labels. "either" reads labels or, if there are none, attributes.
        - `edge_labels`: "labels" reads edge labels, which the paper's model ignores; several per
          edge are joined to a text such as ``"1,2"``. "weights" reads one edge attribute or, if
          there are none, one edge label as the weight. "auto" reads labels, unless an edge has
          different ones, or else one attribute as the weight.
        - `edge_attribute`: ``"edge_labels"`` or ``"edge_attributes"``, the file that is read, and
          ``"edge_attributes[0]"`` for one of several numbers.
    data_home : path, optional
        By default the environment variable ``FDGNN_DATA``, or else the user's cache directory.
    download_if_missing : bool, default=True
        The environment variable ``FDGNN_OFFLINE=1`` also prevents downloads.
    **changes
        Single options by name, such as ``vertex="both"``; they replace those in `options`.

    Returns
    -------
    graphs : GraphBatch
    y : (n_graphs,) int64
        Classes as in the file. Most files list the graphs ordered by class.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset of this name; the message suggests similar names.
    DatasetFormatError
        The files are incomplete or inconsistent; the message names file and line.
    UnsafeArchiveError
        The zip would write outside of its folder, or is too large.
    DownloadError
        The dataset is not available locally, and downloading failed or is not allowed.

    Warns
    -----
    UnusedDataWarning
        "either", or "auto" of edges, leaves out some of what the dataset has; the warning names
        the options.
    """
    options = ReadOptions.of(options, changes)
    # What TU datasets do not have cannot be read.
    wrong, columns = "", (*options.columns, *options.descriptors, *options.vertex_attributes)
    if options.has_several or options.target not in (None, "y", "graph_labels"):
        column = options.targets[-1]
        wrong = f"there is no column {column!r}; the targets of a TU dataset are called 'y'"
    elif options.directed:
        wrong = "TU datasets are undirected; leave `directed` out"
    elif columns:
        wrong = f"TU datasets have no other columns, so none is called {columns[0]!r}"
    if wrong:
        raise DatasetFormatError(f"{name}: {wrong}")
    check_no_molecules(str(name), options)
    path = find(name, home_of(data_home), download_if_missing=download_if_missing)
    chosen = options.edge_attribute
    variant = f"vertices {options.vertex}, arcs {options.edge_labels}"
    variant += f", {chosen}" * bool(chosen)
    with open_dataset(path) as files:
        # A damaged cache, or one that cannot be written, is never an error.
        stamps = sorted(file.stamp for file in files.values())
        store = Checkpoints(cache_home(), "TU dataset", FORMAT, variant, stamps)
        found = _cached(store)
        if found is None:
            found = parse_tu(files, options)
            graphs, y = found
            arrays = {each.name: getattr(graphs, each.name) for each in fields(graphs)}
            arrays |= {"y": y, "schema": np.array(encode(graphs.schema))}
            try:
                store.save("graphs", {n: array for n, array in arrays.items() if array is not None})
            except OSError as error:
                warn_not_cached("parsed datasets", "they will be parsed", cache_home(), error)
        warn_unused(str(name), _unused(files, options, found[0]))
        return found


def _cached(store: Checkpoints) -> Dataset | None:
    """Return the parsed dataset that is kept in the cache, if it is not damaged."""
    if (arrays := store.load("graphs")) is None:
        return None
    try:
        y, schema = arrays.pop("y"), decode(arrays.pop("schema").item(), InputSchema)
        facts = {name: array if array.ndim else array.item() for name, array in arrays.items()}
        return GraphBatch(**cast(Any, facts), schema=schema), y
    except (ValueError, KeyError, TypeError):
        return None


def _unused(
    files: Mapping[str, TextFile], options: ReadOptions, graphs: GraphBatch
) -> dict[str, str]:
    """Find what a dataset has and "auto" does not use, and the options for it."""
    unused: dict[str, str] = {}
    if options.vertex == "either" and files.keys() >= _OF_VERTICES:
        unused["attributes of vertices"] = (
            "`vertex='both'` reads them beside the labels, `vertex='features'` instead of these, "
            "and `vertex='labels'` reads only labels without this warning"
        )
    if options.edge_labels == "auto" and options.edge_attribute is None:
        use = "ignore" if graphs.schema is None else graphs.schema.edge_labels
        if "edge_attributes" in files and use != "weights":
            unused["attributes of edges"] = (
                "`edge_attribute='edge_attributes[0]'` reads the first number of each edge as its "
                f"weight, and `edge_labels='{use}'` reads none without this warning"
            )
        if "edge_labels" in files and use != "labels":
            unused["edge labels (some edges are listed with two labels)"] = (
                "`edge_labels='ignore'` reads none without this warning"
            )
    return unused


def parse_tu(files: Mapping[str, TextFile], options: ReadOptions) -> Dataset:
    """Parse the text files of one dataset, given by kind: "A", "graph_labels" and so on."""
    y, graph_of = _integers(files, "graph_labels"), _integers(files, "graph_indicator") - 1
    sizes = _graph_sizes(graph_of, y, files)
    arcs: Array = _read_arcs(_needed(files, "A"), graph_of)
    labels = features = None
    vertex, there = options.vertex, files.keys() & _OF_VERTICES
    if vertex == "auto" and there == _OF_VERTICES:
        vertex = "both"
    elif vertex in ("auto", "either"):
        vertex = "features" if there == {"node_attributes"} else "labels"
    if vertex == "both" or (vertex == "labels" and "node_labels" in files):
        remedy = "this dataset has no vertex labels; load it with `vertex='features'`"
        labels = _rows(files, "node_labels", len(graph_of), "vertices", remedy)[:, 0]
    if vertex in ("features", "both"):
        remedy = "this dataset has no vertex features; load it with `vertex='labels'`"
        features = _rows(files, "node_attributes", len(graph_of), "vertices", remedy)
    use, carried = _arc_data(files, options, arcs.shape[1])
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
    build = partial(GraphBatch.from_arcs, offsets_of(sizes), arcs, labels=labels, features=features)
    try:
        if use == "labels" and carried is not None:
            graphs = build(edge_labels=joined_labels(carried))
        else:
            graphs = build(weights=None if carried is None else carried[:, 0])
    except GraphError as error:
        if use != "labels":
            raise DatasetFormatError(f"{_prefix(files)}*.txt: {error}") from error
        if options.edge_labels == "labels":
            raise _no_edge_labels(files) from error
        graphs, use, carried = build(), "ignore", None  # an edge has different labels: none
    carry: Vertex = "none" if features is None else "features"
    schema = InputSchema(
        source="tu",
        directed=False,
        vertex=carry if labels is None else "labels",
        label_kind=None if labels is None else "integer",
        n_features=None if features is None else features.shape[1],
        edge_labels=use,
        edge_kind=None if carried is None else "number",
        edge_width=None if carried is None else carried.shape[1],
        label_columns=columns,
    )
    return replace(graphs, schema=schema), y


# ---------------------------------------------------------------------- from text to numbers


def _integer_blocks(file: TextFile, n_columns: int) -> Iterator[tuple[int, Ints]]:
    """Yield the number of earlier lines, and the next lines as an array (n_columns, n_lines)."""
    from fdgnn.kernels import parse_rows

    n_read = 0
    for text in file.blocks():
        n_lines = text.count(b"\n") + 1
        # A valid line has two bytes per column: of so many columns there are no more than fit.
        n_fit = len(text) // (2 * n_columns) + 1
        block = np.empty((n_columns, min(n_lines, n_fit)), dtype=np.int64)
        n_valid = parse_rows(np.frombuffer(text, dtype=np.uint8), block)
        if n_valid < n_lines:
            what = "one integer" if n_columns == 1 else f"{n_columns} integers"
            found = text.split(b"\n")[n_valid][:40].decode("latin1")
            raise DatasetFormatError(
                f"{file.name}, line {n_read + n_valid + 1}: expected {what}, found {found!r}"
            )
        yield n_read, block
        n_read += n_valid


def _integers(files: Mapping[str, TextFile], kind: str) -> Ints:
    """Read lines of one integer."""
    blocks = _integer_blocks(_needed(files, kind), 1)
    return np.concatenate([block[0] for _, block in blocks])


def _read_arcs(file: TextFile, graph_of: Ints) -> npt.NDArray[np.int32]:
    """Read arcs into an array (2, n_arcs), with vertices counted from 0."""
    # Each block is checked while it is in the CPU's cache, and kept as int32.
    n, blocks = len(graph_of), []
    for n_before, arcs in _integer_blocks(file, 2):
        arcs -= 1
        outside = ((arcs < 0) | (arcs >= n)).any(axis=0)
        if outside.any():
            a = int(np.argmax(outside))
            raise DatasetFormatError(
                f"{file.name}, line {n_before + a + 1}: edge ({arcs[0, a] + 1}, {arcs[1, a] + 1}), "
                f"but the dataset's vertices are 1 to {n}"
            )
        crossing = graph_of[arcs[0]] != graph_of[arcs[1]]
        if crossing.any():
            a = int(np.argmax(crossing))
            u, v = arcs[:, a]
            raise DatasetFormatError(
                f"{file.name}, line {n_before + a + 1}: edge ({u + 1}, {v + 1}) leads from graph "
                f"{graph_of[u] + 1} into graph {graph_of[v] + 1}; edges must stay in one graph"
            )
        blocks.append(arcs.astype(np.int32))
    return np.concatenate(blocks, axis=1)


def _rows(files: Mapping[str, TextFile], kind: str, n: int, of: str, remedy: str = "") -> Array:
    """Read one row of labels or attributes for each of the n vertices, or arcs."""
    file = _needed(files, kind, remedy)
    found: Array
    if kind.endswith("labels"):  # as many as on the first line; of a vertex, one
        first = next(file.blocks()).split(b"\n", 1)[0]
        n_columns = 1 if kind == "node_labels" else first.count(b",") + 1
        found = np.concatenate([block for _, block in _integer_blocks(file, n_columns)], axis=1).T
    else:  # lines of numbers, all of one length
        lines = (line for text in file.blocks() for line in text.decode("latin1").split("\n"))
        try:
            found = np.loadtxt(lines, delimiter=",", comments=None, ndmin=2)
        except DatasetFormatError:
            raise
        except ValueError as error:
            raise DatasetFormatError(f"{file.name}: {error}") from error
    if len(found) != n:
        raise DatasetFormatError(
            f"{file.name}: {len(found)} lines, but the dataset has {n} {of}; "
            "the file is truncated or belongs to another dataset"
        )
    return found


def _arc_data(
    files: Mapping[str, TextFile], options: ReadOptions, n_arcs: int
) -> tuple[EdgeUse, Array | None]:
    """Decide what becomes of the arcs' data, and read it, one row per arc."""
    edge_labels, (chosen, place) = options.edge_labels, name_and_place(options.edge_attribute)
    kinds = ["edge_labels", "edge_attributes"]
    if chosen is not None and (chosen not in kinds or chosen not in files):
        there = " and ".join(kind for kind in kinds if kind in files) or "neither of them"
        raise DatasetFormatError(
            f"{_prefix(files)}*.txt: `edge_attribute` is {chosen!r}, expected edge_labels or "
            f"edge_attributes; this dataset has {there}"
        )
    kinds = [chosen] if chosen else kinds[::-1] if edge_labels == "weights" else kinds
    kind = next((kind for kind in kinds if kind in files), None)
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
    name = files[kind].name
    try:
        carried = column_at(_rows(files, kind, n_arcs, "edges"), place, name).reshape(n_arcs, -1)
    except GraphError as error:
        raise DatasetFormatError(str(error)) from None
    width = carried.shape[1]
    if edge_labels == "weights" and width > 1:
        raise DatasetFormatError(
            f"{name}: {width} numbers per edge cannot be its weight; load it with "
            f"`edge_attribute='{kind}[0]'` or `edge_labels='ignore'`"
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


def _needed(files: Mapping[str, TextFile], kind: str, remedy: str = "") -> TextFile:
    if kind not in files:
        remedy = f": {remedy}" if remedy else "; download the dataset again"
        raise DatasetFormatError(f"{_prefix(files)}{kind}.txt is missing{remedy}")
    return files[kind]


def _prefix(files: Mapping[str, TextFile]) -> str:
    return files["A"].name.removesuffix("A.txt")
