"""Python objects as graphs: a list of any known kind becomes a `GraphBatch`.

`fdgnn.graphs.libraries` and `fdgnn.graphs.molecules` read one object each, `fdgnn.graphs.raw`
joins them in the same way as rows of files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Number
from typing import Any

import numpy as np

from fdgnn.arrays import Ints
from fdgnn.exceptions import GraphError
from fdgnn.graphs import Graph, GraphBatch, libraries
from fdgnn.graphs.libraries import AttributeReader, foreign, is_adjacency, to_networkx
from fdgnn.graphs.molecules import MoleculeReader, is_molecule
from fdgnn.graphs.raw import Fits, Raw, join, read_raw
from fdgnn.schema import (
    DEFAULT_OPTIONS,
    GRAPH_OPTIONS,
    InputSchema,
    ReadOptions,
    check_no_molecules,
    schema_of,
)

__all__ = ["ValidGraphs", "as_batch", "items_of", "to_networkx", "valid_graphs"]


def as_batch(
    graphs: Any,
    options: ReadOptions | None = None,
    *,
    like: Any = None,
    descriptors: Any = None,
    **changes: Any,
) -> GraphBatch:
    """Convert graphs of any supported kind to a `GraphBatch`.

    Parameters
    ----------
    graphs : GraphBatch, or sequence of graphs
        A batch is returned unchanged, except for `descriptors`. The items of a sequence may be

        - `Graph` objects; if vertices have labels and features, the labels are one-hot encoded in
          columns after the features, the same for all graphs and for a model;
        - SMILES, or RDKit ``Mol`` objects: atoms are vertices, in their order, bonds are edges
          labeled by their type, and hydrogens are implicit;
        - pairs ``(edge_index, x)``: directed edges as (source, target) columns, and one integer or
          string per vertex (labels), a matrix with a row of numbers per vertex (features), or None;
          in an undirected graph each edge may be listed in one or both directions;
        - adjacency matrices, SciPy sparse or square NumPy arrays, or pairs ``(matrix, x)``: entry
          (i, j) is the edge from i to j, and its weight unless all entries are 0 or 1;
        - networkx graphs of any class, and igraph graphs: the node attribute ``label`` (or the
          only one), and the edge attributes ``label`` and ``weight``; parallel edges are merged,
          and their weights summed;
        - PyG ``Data`` objects, or others with ``edge_index`` and, optionally, ``x``,
          ``edge_attr``, ``edge_weight`` and ``num_nodes``. A whole PyG dataset or batch can be
          passed as well. DGL graphs are read in the same way: ``feat`` of vertices as ``x``, of
          edges as ``edge_attr``, and ``weight`` or ``w`` of edges as ``edge_weight``.
    options : ReadOptions, optional
        Options for graphs of other libraries and molecules: `vertex`, `vertex_attributes`,
        `edge_labels`, `edge_attribute`, `directed`, `atoms`, `standardize` and `stereo`, see
        `ReadOptions`. They are the same as for files. Pairs, matrices and PyG objects are
        undirected unless ``directed=True``; other graphs specify their direction.
    like : fitted model or InputSchema, optional
        Read molecules and graphs of other libraries like the training graphs of the model. An empty
        list is then an empty batch.
    descriptors : array, mapping or data frame, optional
        Columns with a value for each graph, as in `GraphBatch.with_descriptors`.
    **changes
        Single options by name, such as ``vertex_attributes="atom"``; they replace those in
        `options`.

    Returns
    -------
    GraphBatch
        Its `schema` records how molecules and graphs of other libraries were read, so that a model
        reads new graphs in the same way.

    Raises
    ------
    GraphError
        A graph is invalid; the error has its position and the reason.

    Warns
    -----
    UnusedDataWarning
        Graphs have attributes that are not used; the warning names the options.

    Examples
    --------
    >>> from fdgnn import as_batch
    >>> triangle = [[0, 1, 2], [1, 2, 0]]
    >>> as_batch([(triangle, ["C", "C", "O"]), ([[0], [1]], ["C", "N"])])
    GraphBatch(2 graphs, 5 vertices, 8 directed edges, 3 vertex labels)
    """
    options = ReadOptions.of(options, changes) if changes else options or DEFAULT_OPTIONS
    if options != DEFAULT_OPTIONS:
        _check_options(options, graphs)
    if isinstance(graphs, GraphBatch):
        known = None if like is None else schema_of(like)
        own = () if graphs.schema is None else graphs.schema.label_columns
        if like is not None and own != (() if known is None else known.label_columns):
            raise GraphError(
                "the batch has other labels beside its features than the model was fitted on, so "
                "that its columns mean something else; pass the graphs, or as_batch(graphs, "
                "like=model)"
            )
        return graphs if descriptors is None else graphs.with_descriptors(descriptors)
    items = items_of(graphs)
    if len(items) == 0:
        if like is None:
            raise GraphError("no graphs: a batch needs at least one")
        return GraphBatch.empty(schema_of(like))
    found = valid_graphs(items, options, like=like)
    if found.errors:
        first = min(found.errors)
        remedy = _REMEDY if hasattr(like, "valid_graphs") else ""
        raise GraphError(found.errors[first] + remedy, first)
    return found.graphs if descriptors is None else found.graphs.with_descriptors(descriptors)


_REMEDY = (
    '; with errors="missing", predict and explain skip invalid graphs, and `valid_graphs` lists '
    "them"
)


def _check_options(options: ReadOptions, graphs: Any) -> None:
    """Raise ValueError for an option that has no effect on these graphs."""
    is_batch = isinstance(graphs, GraphBatch)
    for name in options.__struct_fields__:
        value = getattr(options, name)
        of_files = name not in GRAPH_OPTIONS or name in ("descriptors", "categories")
        if (is_batch or of_files) and value != getattr(DEFAULT_OPTIONS, name):
            why = "which are not in a file"
            if is_batch:
                why = "whose graphs have been read; give it where the batch is made"
            what = "a GraphBatch" if is_batch else "Python objects"
            raise ValueError(f"{name}={value!r} has no effect on {what}, {why}")


@dataclass(frozen=True)
class ValidGraphs:
    """The graphs of a list that can be used, and what is wrong with the others.

    Attributes
    ----------
    graphs : GraphBatch
        Those that can be used; there may be none.
    rows : (n_graphs,) int64
        Their positions in the list.
    errors : dict of str by int
        Positions of the others, and why they cannot be used.
    """

    graphs: GraphBatch
    rows: Ints
    errors: dict[int, str]

    def without(self, rejected: Mapping[int, str]) -> ValidGraphs:
        """Return the graphs without some more, by positions in the batch, each with a reason."""
        kept = np.setdiff1d(np.arange(len(self.graphs)), list(rejected))
        more = {int(self.rows[g]): reason for g, reason in rejected.items()}
        faults = dict(sorted((self.errors | more).items()))
        return ValidGraphs(self.graphs[kept], self.rows[kept], faults)


def valid_graphs(
    items: Sequence[Any],
    options: ReadOptions | None = None,
    *,
    like: Any = None,
    fits: Fits | None = None,
) -> ValidGraphs:
    """Convert the graphs of a list that can be used, and find out why the others cannot.

    Parameters are those of `as_batch`; `fits` returns what is wrong with a kind of graphs,
    or None.
    """
    options, schema = options or DEFAULT_OPTIONS, schema_of(like)
    faults: dict[int, str] = {}
    known = None if like is None else () if schema is None else schema.label_columns
    if all(type(item) is Graph for item in items):  # most often: there is nothing to infer
        joined = join(dict(enumerate(items)), None, fits=fits, known=known)
    else:
        of_molecules = _are_molecules(items, like, schema)
        if schema is not None:
            is_read_so = schema.source == "molecules" if of_molecules else schema.source in _SOURCES
            schema = schema if is_read_so else None
        options = options if schema is None else options.following(schema)
        if not of_molecules:
            check_no_molecules("these graphs", options)
        attributes = AttributeReader(options)
        read: Callable[[Any], Any] = partial(_read_item, options=options, attributes=attributes)
        if of_molecules:
            read = MoleculeReader.of(schema or options).read
        raws: dict[int, Any] = {}
        matrices: list[int] = []
        for i, item in enumerate(items):
            try:
                raws[i] = read(item)
            except GraphError as error:
                faults[i] = error.reason
                continue
            in_pair = isinstance(item, tuple | list)
            if not of_molecules and is_adjacency(item[0] if in_pair else item, in_pair):
                matrices.append(i)
        if matrices:
            raws = libraries.without_unit_weights(raws, matrices)
        if schema is not None:
            joined = join(raws, schema, fits=fits, known=known)
        else:  # if there is a model, there was a warning when it was fitted
            joined = read_raw(
                raws, options, "molecules" if of_molecules else "networks", attributes.kind,
                unused=attributes.unused, warn=like is None, fits=fits, known=known,
            )  # fmt: skip
    errors = dict(sorted((faults | joined.errors).items()))
    rows: Ints = np.arange(len(items))
    if errors:
        rows = np.delete(rows, list(errors))
    graphs = joined.graphs
    if graphs is None:
        graphs = GraphBatch.empty(joined.schema or schema)
    return ValidGraphs(graphs, rows, errors)


_SOURCES = ("networks", "tu", "table")  # whose schemas graphs of other libraries are read by


def _read_item(item: Any, options: ReadOptions, attributes: AttributeReader) -> Raw:
    if isinstance(item, Graph):
        return item
    if isinstance(item, tuple | list):
        return libraries.of_pair(item, bool(options.directed))
    if is_adjacency(item):
        return libraries.of_matrix(item, directed=bool(options.directed))
    if hasattr(item, "to_data_list"):
        raise GraphError("a batch of graphs; pass its to_data_list() instead")
    graph = foreign(item)
    if graph is not None:
        return attributes.read(graph)
    remedy = (
        "a batch cannot mix molecules and other graphs, and only models of molecules take molecules"
        if is_molecule(item)
        else "pass a list of Graph objects, (edge_index, x) pairs, adjacency matrices, graphs of "
        "networkx, igraph, PyG or DGL, SMILES or RDKit Mols"
    )
    raise GraphError(f"expected a graph, got {_described(item)}; {remedy}")


# ---------------------------------------------------------------------- which kind is it?


def items_of(graphs: Any) -> list[Any]:
    """List the graphs of any collection of them."""
    if type(graphs) is list:
        return graphs
    if hasattr(graphs, "to_data_list"):  # a PyG batch
        return list(graphs.to_data_list())
    if libraries.is_graph(graphs) and not _is_pyg_dataset(graphs):
        raise GraphError(
            f"a single graph was given (a {type(graphs).__name__}); wrap it in a list: [graph]"
        )
    if is_molecule(graphs):
        raise GraphError(
            f"expected a list of graphs, got {_described(graphs)}; wrap a single molecule in a "
            "list: [molecule]"
        )
    if hasattr(graphs, "columns") and hasattr(graphs, "shape"):
        raise GraphError(
            f"a whole table was given (a {type(graphs).__name__}); pass its column of molecules, "
            "or fdgnn.read_graphs(table, like=model).graphs"
        )
    try:
        if isinstance(graphs, bytes | Mapping):
            raise TypeError
        return list(graphs)
    except TypeError:
        raise GraphError(f"expected a list of graphs, got {_described(graphs)}") from None


def _are_molecules(items: Sequence[Any], like: Any, schema: InputSchema | None) -> bool:
    """Return whether a list is one of molecules: if most items that are not missing are.

    A model of molecules reads a list as molecules if some are, or all are missing.
    """
    n_molecules = sum(map(is_molecule, items))
    n_missing = sum(item is None or isinstance(item, Number) for item in items)
    if like is None:
        return n_molecules > len(items) - n_missing - n_molecules
    is_model = schema is not None and schema.source == "molecules"
    return is_model and (n_molecules > 0 or n_missing == len(items))


def _is_pyg_dataset(item: Any) -> bool:
    """Return whether it is a PyG dataset, which has the ``edge_index`` of all its graphs."""
    bases = type(item).__mro__
    return any(b.__name__ == "Dataset" and b.__module__.startswith("torch") for b in bases)


def _described(item: Any) -> str:
    shape = getattr(item, "shape", None)
    return type(item).__name__ + (f" of shape {tuple(shape)}" if shape is not None else "")
