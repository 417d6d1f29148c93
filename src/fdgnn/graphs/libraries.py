"""One graph of another library: networkx, igraph, SciPy, PyTorch Geometric (PyG), DGL, arrays.

Their objects are recognized by their attributes, so that reading them imports nothing. Each library
has one function that makes a `ForeignGraph` of its objects: edges, and what vertices and edges have
by name. `AttributeReader` makes a `RawGraph` of it by the options, the same for all libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array
from fdgnn.exceptions import GraphError
from fdgnn.extras import require
from fdgnn.graphs import Graph, GraphBatch, checks
from fdgnn.graphs.raw import RawGraph
from fdgnn.schema import ReadOptions
from fdgnn.texts import cut

Columns = Mapping[str, Any]  # the values of each attribute, one for each vertex or edge


@dataclass(frozen=True)
class ForeignGraph:
    """A graph of another library: edges, and the attributes of vertices and edges by name."""

    kind: str  # of graphs, in messages
    edges: Any
    n_vertices: int | None
    vertices: Columns
    arcs: Columns
    directed: bool | None = None  # None: the user says so
    vertex_names: Sequence[Any] | None = None
    parallel: bool = False  # whether weights of parallel edges are summed
    # What is read unless the user names something else: of vertices (or else the only attribute),
    # of edges, and weights.
    usual: tuple[str, str, str] = ("label", "label", "weight")
    others: tuple[Sequence[str], Sequence[str]] = ((), ())  # attributes that may be left out


def is_graph(item: Any) -> bool:
    """Return whether something is one graph of a known kind; a pair may be something else."""
    return isinstance(item, Graph) or is_adjacency(item) or _reader_of(item) is not None


def foreign(item: Any) -> ForeignGraph | None:
    """Convert a graph of networkx, igraph, DGL or PyG; return None for other objects."""
    read = _reader_of(item)
    return None if read is None else read(item)


def _reader_of(item: Any) -> Callable[[Any], ForeignGraph] | None:
    if hasattr(item, "ndata") and hasattr(item, "edata"):  # with some of networkx's methods as well
        return of_dgl
    if hasattr(item, "is_multigraph"):
        return of_networkx
    if hasattr(item, "get_edgelist") and hasattr(item, "vs"):
        return of_igraph
    return of_pyg if hasattr(item, "edge_index") else None


def of_networkx(graph: Any) -> ForeignGraph:
    """Read a networkx graph of any class; its nodes are numbered as it lists them."""
    position = {node: i for i, node in enumerate(graph)}
    ends = [(position[u], position[v]) for u, v in graph.edges()]
    vertices = _columns([data for _, data in graph.nodes(data=True)])
    arcs = _columns([data for *_, data in graph.edges(data=True)])
    names = None if list(position) == list(range(len(position))) else list(position)
    return ForeignGraph(
        "networkx graphs", np.array(ends, dtype=np.int64).reshape(-1, 2).T, len(position),
        vertices, arcs, graph.is_directed(), names, graph.is_multigraph(),
        others=(list(vertices), list(arcs)),
    )  # fmt: skip


def of_igraph(graph: Any) -> ForeignGraph:
    """Read an igraph graph; distinct values of the attribute ``name`` are names of vertices."""
    vertices = _columns([vertex.attributes() for vertex in graph.vs])
    arcs = _columns([edge.attributes() for edge in graph.es])
    names = vertices.pop("name", None)
    return ForeignGraph(
        "igraph graphs", np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2).T,
        graph.vcount(), vertices, arcs, graph.is_directed(),
        names if names is not None and len(set(names)) == len(names) else None,
        graph.has_multiple(), others=(list(vertices), list(arcs)),
    )  # fmt: skip


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(chain.from_iterable(rows))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return {name: c for name, c in columns.items() if any(value is not None for value in c)}


_PYG = ("x", "edge_attr", "edge_weight")
_NOT_OF_VERTICES = {*_PYG[1:], "y", "batch", "ptr"}


def of_pyg(data: Any) -> ForeignGraph:
    """Read a PyG ``Data`` object, or one with ``edge_index``, ``x`` and ``num_nodes``."""
    keys = data.keys() if callable(getattr(data, "keys", None)) else vars(data)
    columns = {key: value for key in keys if (value := getattr(data, key, None)) is not None}
    if "edge_index" not in columns:
        raise GraphError("no attribute 'edge_index'")
    edges, n = plain(columns.pop("edge_index")), getattr(data, "num_nodes", None)
    columns.pop("num_nodes", None)
    n_arcs = np.shape(edges)[-1] if np.ndim(edges) else 0
    left = [key for key in columns if key not in {"x", *_NOT_OF_VERTICES}]
    lengths = {key: np.shape(plain(columns[key]))[:1] for key in left}
    of_vertices = [key for key, own in lengths.items() if own == (n,) and n != 1]
    of_edges = [key for key, own in lengths.items() if own == (n_arcs,) and own != (n,)]
    others = (["x", *of_vertices], ["edge_attr", *(of_edges if n_arcs > 1 else [])])
    return ForeignGraph("PyG graphs", edges, n, columns, columns, usual=_PYG, others=others)


def of_dgl(graph: Any) -> ForeignGraph:
    """Read a DGL graph; ``feat`` is called ``x`` and ``edge_attr``, and ``w`` ``edge_weight``."""
    if not graph.is_homogeneous:
        raise GraphError("several types of vertices or edges; pass dgl.to_homogeneous(graph)")
    names = {"feat": "edge_attr", "w": "edge_weight", "weight": "edge_weight"}
    vertices = {"x" if name == "feat" else name: value for name, value in graph.ndata.items()}
    arcs = {names.get(name, name): value for name, value in graph.edata.items()}
    return ForeignGraph(
        "DGL graphs", np.stack([plain(ends) for ends in graph.edges()]), graph.num_nodes(),
        vertices, arcs, usual=_PYG, others=(list(vertices), list(arcs)),
    )  # fmt: skip


# ---------------------------------------------------------------------- attributes by the options


@dataclass
class AttributeReader:
    """Converter of graphs of other libraries to raw graphs; the first ones decide what is read.

    Attributes
    ----------
    options : ReadOptions
    unused : dict
        What the first graphs have and is not read, and the options that read it.
    kind : str
        The kind of the first graph, in words.
    """

    options: ReadOptions
    unused: dict[str, str] = field(default_factory=dict)
    kind: str = ""
    _of_vertices: tuple[str, ...] | None = None
    _of_edges: tuple[str | None, str | None] | None = None  # what edges carry, and weights

    def read(self, graph: ForeignGraph) -> RawGraph:
        """Return the arrays that the options ask for; raise GraphError if the graph lacks some."""
        options = self.options
        self.kind = self.kind or graph.kind
        if self._of_vertices is None and graph.n_vertices != 0:
            self._of_vertices = self._vertex_attributes(graph)
        if self._of_edges is None and np.size(graph.edges):
            self._of_edges = self._edge_attributes(graph)
        names = self._of_vertices or ()
        columns = [_values(graph, "vertex", name) for name in names]
        # Of several columns one may have the labels; the others are features.
        texts = [i for i, column in enumerate(columns) if checks.is_text(column)]
        if options.vertex == "both":
            texts = texts or [len(columns) - 1]
        elif options.vertex != "auto":
            texts = []
        labels = columns.pop(texts[0]) if len(columns) > 1 and len(texts) == 1 else None
        x = columns[0] if columns else None
        if len(columns) > 1:
            try:
                x = np.hstack([c[:, None] if c.ndim == 1 else c for c in columns])
            except ValueError as error:
                raise GraphError(
                    f"attributes {', '.join(names)} do not fit side by side ({error})"
                ) from None
        edge, weight = self._of_edges or (None, None)
        carried = _of_edges(graph, edge, options.edge_attribute is not None)
        weights = _of_edges(graph, weight, False)
        for name, values in ((edge, carried), (weight, weights)):
            if values is None and name in graph.arcs and options.edge_labels == "auto":
                self.unused[f"the values of {name!r}"] = (
                    "some edges have none: set it on all edges, or `edge_labels='ignore'` reads "
                    "nothing of edges"
                )
        edges, directed = graph.edges, graph.directed
        if directed is None:
            directed = bool(options.directed)
            if not directed:
                _check_both_ways(edges, "torch_geometric.transforms.ToUndirected")
        elif options.directed is not None:
            if options.directed and not directed:  # each edge both ways
                other = edges[0] != edges[1]
                edges = np.hstack([edges, edges[::-1, other]])
                carried, weights = (
                    None if array is None else np.concatenate([array, array[other]])
                    for array in (carried, weights)
                )
            directed = options.directed
        return RawGraph(
            edges=checks.arc_array(edges),
            n_vertices=graph.n_vertices,
            x=x,
            carried=carried,
            directed=directed,
            vertex_attributes=names,
            edge_attribute=edge,
            labels=labels,
            weights=weights,
            vertex_names=graph.vertex_names,
            parallel=graph.parallel,
        )

    def _vertex_attributes(self, graph: ForeignGraph) -> tuple[str, ...]:
        """Choose attributes of vertices: those in the options, the usual one, or the only one."""
        options = self.options
        if options.vertex == "none" or options.vertex_attributes:
            return () if options.vertex == "none" else options.vertex_attributes
        there = [name for name in graph.others[0] if name in graph.vertices]
        names = [graph.usual[0]] if graph.usual[0] in there else there if len(there) == 1 else []
        left = sorted((name for name in there if name not in names), key=str)
        if left and options.vertex == "auto":
            self.unused[f"attributes {_listed(left)} of vertices"] = (
                f"`vertex_attributes={left[0]!r}` reads this one, several names read several, and "
                "`vertex='none'` reads nothing of vertices"
            )
        return tuple(names)

    def _edge_attributes(self, graph: ForeignGraph) -> tuple[str | None, str | None]:
        """Choose the attribute of edges: that in the options, or the usual ones; and weights."""
        options, (_, edge, weight) = self.options, graph.usual
        if options.edge_labels == "ignore":
            return None, None
        chosen = options.edge_attribute
        if options.edge_labels == "weights" and chosen is None and weight in graph.arcs:
            chosen = weight
        if chosen is None and edge in graph.arcs:
            chosen = edge
        beside = weight if options.edge_labels == "auto" and weight in graph.arcs else None
        beside = None if beside == chosen else beside
        used = {checks.name_and_place(chosen)[0], chosen, beside}
        there = [name for name in graph.others[1] if name in graph.arcs]
        left = sorted((name for name in there if name not in used), key=str)
        if left and options.edge_labels == "auto" and options.edge_attribute is None:
            self.unused[f"attributes {_listed(left)} of edges"] = (
                f"`edge_attribute={left[0]!r}` reads this one, and `edge_labels='ignore'` reads "
                "nothing of edges"
            )
        return chosen, beside


def _of_edges(graph: ForeignGraph, name: str | None, asked: bool) -> Array | None:
    """Return the values of edges, with the one in a one-hot row as its position."""
    if name is None:
        return None
    if not asked:
        given = graph.arcs.get(name)
        if given is None or (isinstance(given, list) and any(each is None for each in given)):
            return None
    values = _values(graph, "edge", name)
    if values.ndim == 2 and values.shape[1] > 1 and values.dtype.kind in "biuf":
        ones = values == 1
        if (ones | (values == 0)).all() and (ones.sum(axis=1) == 1).all():
            return np.asarray(ones.argmax(axis=1))
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _values(graph: ForeignGraph, what: str, name: str) -> Array:
    """Return one value or row for each vertex, or for each edge; none may be missing."""
    columns = graph.vertices if what == "vertex" else graph.arcs
    whole, place = (name, None) if name in columns else checks.name_and_place(name)
    things = "vertices" if what == "vertex" else "edges"
    if whole is None or whole not in columns:
        if (graph.n_vertices == 0) if what == "vertex" else (np.size(graph.edges) == 0):
            return np.empty(0)
        raise GraphError(
            f"{things} have no attribute {name!r}; the attributes are {_listed(columns)}"
        )
    values = plain(columns[whole])
    if isinstance(values, list) and any(value is None for value in values):
        at: Any = next(i for i, value in enumerate(values) if value is None)
        names = graph.vertex_names
        if what == "edge":
            u, v = (end if names is None else names[end] for end in graph.edges[:, at].tolist())
            at = f"{u!r}, {v!r}"
        elif names is not None:
            at = repr(names[at])
        raise GraphError(f"{what} {at} has no attribute {name!r}; set it on all {things}")
    array = checks.entries(values, f"attribute {name!r} of {things}")
    return checks.column_at(array, place, f"attribute {whole!r}")


_SHOWN = 10  # attributes, in a message


def _listed(names: Iterable[Any]) -> str:
    """Return the first names of attributes, in order."""
    shown = sorted(cut(repr(name), 40) for name in names)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return (", ".join(shown[:_SHOWN]) or "none") + more


def plain(value: Any) -> Any:
    """Copy a tensor from any device to NumPy; leave everything else alone."""
    if isinstance(value, np.ndarray) or not hasattr(value, "numpy"):
        return value
    try:
        return value.detach().cpu().numpy() if hasattr(value, "detach") else value.numpy()
    except (TypeError, RuntimeError) as error:  # a dtype or a layout that NumPy lacks
        raise GraphError(f"a tensor cannot be read as an array ({error})") from None


def _check_both_ways(edge_index: Any, remedy: str) -> None:
    arcs = checks.as_array(edge_index, "the rows of edge_index")
    if arcs.ndim != 2 or len(arcs) != 2 or arcs.dtype.kind not in "iu" or arcs.size == 0:
        return  # nothing to mirror, or `GraphBatch` will say what is wrong
    arcs = arcs.astype(np.int64)
    n = arcs.max() + 1
    lonely = ~np.isin(arcs[0] * n + arcs[1], arcs[1] * n + arcs[0])
    if lonely.any():
        u, v = arcs[:, np.argmax(lonely)]
        raise GraphError(
            f"the edge ({u}, {v}) has no counterpart ({v}, {u}); "
            f"pass `directed=True`, or make it undirected by {remedy}"
        )


# ---------------------------------------------------------------------- matrices and pairs


def of_pair(pair: Sequence[Any], directed: bool) -> Graph:
    """Convert a pair of an edge index or an adjacency matrix, and what vertices carry."""
    if len(pair) != 2:
        raise GraphError(
            f"a {type(pair).__name__} of {len(pair)}, expected a pair (edge_index, x); pass "
            "a list of edges as Graph(numpy.array(edges).T), and a matrix as an array"
        )
    arcs, x = plain(pair[0]), plain(pair[1])
    try:
        is_matrix = np.ndim(x) > 1
    except ValueError:  # ragged: `GraphBatch` will say so
        is_matrix = True
    fields = {"features" if is_matrix else "labels": x, "directed": directed}
    return of_matrix(arcs, **fields) if is_adjacency(arcs, in_pair=True) else Graph(arcs, **fields)


def is_adjacency(item: Any, in_pair: bool = False) -> bool:
    """Return whether something is an adjacency matrix, sparse or a square array or tensor.

    An array of shape (2, 2) in a pair is an edge index, as of shape (2, n_arcs).
    """
    if sp.issparse(item):
        return True
    is_frame = hasattr(item, "columns")
    shape: tuple[int, ...] = () if is_frame else getattr(item, "shape", None) or ()
    return len(shape) == 2 and bool(shape[0] == shape[1]) and not (in_pair and shape[0] == 2)


def of_matrix(matrix: Any, *, directed: bool = False, **fields: Any) -> Graph:
    """Convert an adjacency matrix, whose entry (i, j) is the arc from i to j, and its weight.

    Stored zeros are not arcs. An undirected graph has a symmetric matrix; a triangular one is an
    error.
    """
    matrix = plain(matrix)
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"adjacency matrix has shape {matrix.shape}, expected a square one")
    if not sp.issparse(matrix):
        matrix = checks.numbers(matrix, "entries of its adjacency matrix")
    entries = sp.coo_array(matrix, copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    edge_index = np.stack([entries.row, entries.col])
    if not directed:
        _check_both_ways(edge_index, "A.maximum(A.T)")
    n = matrix.shape[0]
    return Graph(edge_index, n, weights=entries.data, directed=directed, **fields)


def without_unit_weights(graphs: Mapping[int, Graph], matrices: Sequence[int]) -> dict[int, Graph]:
    """Return graphs, given by position, with no weights if all are from matrices of ones."""
    others = any(graph.weights is not None for i, graph in graphs.items() if i not in matrices)
    if others or any((np.asarray(graphs[i].weights) != 1).any() for i in matrices):
        return dict(graphs)
    return {i: replace(g, weights=None) if i in matrices else g for i, g in graphs.items()}


# ---------------------------------------------------------------------- to other libraries


def to_networkx(graph: Graph) -> Any:
    """Convert to a networkx ``Graph`` or ``DiGraph``; its nodes are the vertex names, or 0, 1, ...

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        It has the node attributes ``label`` or ``features``, and the edge attributes ``weight``
        and ``label``, if the graph has them.
    """
    nx = require("networkx", "interop", "networkx graphs")
    graph = GraphBatch.from_graphs([graph])[0]  # checked, and every field an array
    result = nx.DiGraph() if graph.directed else nx.Graph()
    nodes = list(range(graph.n_vertices or 0) if graph.vertex_names is None else graph.vertex_names)
    arcs = [(nodes[u], nodes[v]) for u, v in graph.edge_index.T.tolist()]
    result.add_nodes_from(nodes)
    result.add_edges_from(arcs)
    for name, values in (("label", graph.labels), ("features", graph.features)):
        if values is not None:
            nx.set_node_attributes(result, dict(zip(nodes, values.tolist(), strict=True)), name)
    for name, values in (("weight", graph.weights), ("label", graph.edge_labels)):
        if values is not None:
            nx.set_edge_attributes(result, dict(zip(arcs, values.tolist(), strict=True)), name)
    return result


def to_pyg(graphs: GraphBatch, y: Any = None) -> list[Any]:
    """Convert graphs to PyG ``Data`` objects; see `GraphBatch.to_pyg`."""
    torch = require("torch", "compare", "PyTorch Geometric graphs")
    Data = require("torch_geometric.data", "compare", "PyTorch Geometric graphs").Data
    targets = None if y is None else torch.as_tensor(np.asarray(y))
    if targets is not None and len(targets) != len(graphs):
        raise ValueError(f"y has {len(targets)} entries, but there are {len(graphs)} graphs")

    def one_hot(labels: Array | None, values: Array | None) -> Any:
        return None if labels is None else labels[:, np.newaxis] == values

    found = []
    for g, graph in enumerate(graphs):
        x = one_hot(graph.labels, graphs.label_values)
        fields = {
            "x": x if graph.features is None else graph.features,
            "edge_attr": one_hot(graph.edge_labels, graphs.edge_label_values),
            "edge_weight": graph.weights,
        }
        data = Data(edge_index=torch.tensor(graph.edge_index), num_nodes=graph.n_vertices)
        for name, value in fields.items():
            if value is not None:
                data[name] = torch.tensor(value, dtype=torch.float32)
        if targets is not None:
            data["y"] = targets[g : g + 1]
        found.append(data)
    return found
