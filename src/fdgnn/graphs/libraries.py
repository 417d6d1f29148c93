"""One graph of another library: networkx, SciPy, PyTorch Geometric (PyG), plain arrays.

Their objects are recognized by their attributes, so that reading them imports nothing. This file
finds the fields; `GraphBatch.from_graphs` checks them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.exceptions import GraphError, UnusedDataWarning
from fdgnn.extras import require
from fdgnn.graphs import Array, Floats, Graph, GraphBatch, checks
from fdgnn.graphs.raw import RawGraph, agree, usable_labels
from fdgnn.schema import InputSchema


def from_networkx(
    graph: Any,
    *,
    label_attribute: str | None = None,
    feature_attributes: str | Sequence[str] | None = None,
    weight_attribute: str | None = None,
    edge_label_attribute: str | None = None,
) -> Graph:
    """Convert a networkx graph; its nodes are numbered in the order in which it lists them.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        Parallel edges are merged; if there are weights, these are summed, as networkx does.
        Parallel edges with different labels are an error, if these were asked for.
    label_attribute : str, optional
        Node attribute with an integer or a string.
    feature_attributes : str or sequence of str, optional
        Node attributes with a number or a vector each.
    weight_attribute : str, optional
        Edge attribute with a number. Without it, the graph is unweighted.
    edge_label_attribute : str, optional
        Edge attribute with an integer or a string; by default ``label``, if all edges have it.

    Returns
    -------
    Graph
    """
    position = {node: i for i, node in enumerate(graph)}
    arcs = [(position[u], position[v]) for u, v in graph.edges()]
    edge_index = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    labels = weights = None
    edge_labels = _networkx_edge_labels(graph, edge_index, weight_attribute, edge_label_attribute)
    if weight_attribute is not None:
        values = _present(graph.edges, "edge", weight_attribute)
        weights = checks.numbers(values, f"attributes {weight_attribute!r} of edges")
        if graph.is_multigraph():
            if edge_labels is not None and not agree(edge_index, edge_labels, graph.is_directed()):
                raise GraphError("it has parallel edges with different labels; drop one of them")
            edge_index, first, weights = _sum_parallel(edge_index, weights)
            edge_labels = None if edge_labels is None else edge_labels[first]
    if label_attribute is not None:
        labels = _present(graph.nodes, "node", label_attribute)
    return Graph(
        edge_index=edge_index,
        n_vertices=len(position),
        labels=labels,
        features=_stacked(
            {n: _present(graph.nodes, "node", n) for n in _names(feature_attributes)}
        ),
        weights=weights,
        directed=graph.is_directed(),
        edge_labels=edge_labels,
    )


def from_scipy(
    matrix: Any, *, labels: Any = None, features: Any = None, directed: bool = False
) -> Graph:
    """Convert a sparse adjacency matrix, whose entry (i, j) is the arc from i to j.

    Parameters
    ----------
    matrix : SciPy sparse matrix or array, shape (n_vertices, n_vertices)
        Stored zeros are not arcs. If all other entries are 1, the graph is unweighted. Otherwise
        they are its weights.
    labels, features : array-like, optional
        What the vertices carry, as in `Graph`.
    directed : bool, default=False
        If False, the matrix must be symmetric. A triangular matrix is an error.

    Returns
    -------
    Graph
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"its adjacency matrix has shape {matrix.shape}, expected a square one")
    entries = sp.coo_array(matrix, copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    edge_index = np.stack([entries.row, entries.col])
    if not directed:
        _check_both_ways(edge_index, "A.maximum(A.T)")
    return Graph(
        edge_index=edge_index,
        n_vertices=matrix.shape[0],
        labels=labels,
        features=features,
        weights=entries.data if (entries.data != 1).any() else None,
        directed=directed,
    )


def from_pyg(
    data: Any,
    *,
    label_attribute: str | None = None,
    feature_attributes: str | Sequence[str] | None = None,
    weight_attribute: str | None = None,
    edge_label_attribute: str | None = None,
    directed: bool = False,
) -> Graph:
    """Convert a PyG ``Data`` object, or one with ``edge_index``, ``x`` and ``num_nodes``.

    Parameters
    ----------
    data : torch_geometric.data.Data or similar
    label_attribute : str, optional
        The attribute with the labels. If no attribute is named for labels or features, ``x`` is
        read: as labels if it has one integer per vertex, as features if it is a matrix.
    feature_attributes : str or sequence of str, optional
        The attributes with the features.
    weight_attribute : str, optional
        The attribute with the weights, by default ``edge_weight`` if there is one. ``edge_attr``
        can be named here, and must have one number per arc.
    edge_label_attribute : str, optional
        The attribute with the arcs' labels; by default ``edge_attr``, if it has one integer per
        arc, the same in both directions of an edge, and is not named as weights.
    directed : bool, default=False
        If False, every arc must be listed both ways, as is usual in PyG.

    Returns
    -------
    Graph
    """

    def get(name: str) -> Any:
        value = plain(getattr(data, name, None))
        if value is None:
            raise GraphError(f"it has no attribute {name!r}; name one that it has")
        return value

    labels = None if label_attribute is None else get(label_attribute)
    features = _stacked({name: get(name) for name in _names(feature_attributes)})
    if labels is None and features is None:
        labels, features = labels_or_features(plain(getattr(data, "x", None)))
    weights = plain(getattr(data, "edge_weight", None))
    if weight_attribute is not None:
        weights = get(weight_attribute)
    if weights is not None:
        weights = _column(checks.as_array(weights, "weights"))
    edge_index = get("edge_index")
    if not directed:
        _check_both_ways(edge_index, "torch_geometric.transforms.ToUndirected")
    edge_labels = None
    if edge_label_attribute is not None:
        edge_labels = _column(get(edge_label_attribute))
    elif weight_attribute != "edge_attr":
        edge_labels = _pyg_edge_labels(data, edge_index, directed)
    n_vertices = getattr(data, "num_nodes", None)
    return Graph(edge_index, n_vertices, labels, features, weights, directed, edge_labels)


def to_networkx(graph: Graph) -> Any:
    """Convert to a networkx ``Graph`` or ``DiGraph`` with the nodes 0, 1, 2, ...

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
    result.add_nodes_from(range(graph.n_vertices or 0))
    result.add_edges_from(graph.edge_index.T.tolist())
    for name, values in (("label", graph.labels), ("features", graph.features)):
        if values is not None:
            nx.set_node_attributes(result, dict(enumerate(values.tolist())), name)
    for name, values in (("weight", graph.weights), ("label", graph.edge_labels)):
        if values is not None:
            arcs = map(tuple, graph.edge_index.T.tolist())
            nx.set_edge_attributes(result, dict(zip(arcs, values.tolist(), strict=True)), name)
    return result


@dataclass(frozen=True)
class AttributeNames:
    """The attributes of networkx and PyG objects that are read, where the user names them."""

    labels: str | None = None
    features: str | Sequence[str] | None = None
    weights: str | None = None
    edge_labels: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Give them as arguments of `from_networkx` and `from_pyg`."""
        return {
            "label_attribute": self.labels,
            "feature_attributes": self.features,
            "weight_attribute": self.weights,
            "edge_label_attribute": self.edge_labels,
        }


def is_networkx(item: Any) -> bool:
    """Tell whether something is a networkx graph."""
    return hasattr(item, "is_multigraph")


def network_by(schema: InputSchema, graph: Any) -> RawGraph:
    """Find in a networkx graph what a schema says; what does not fit it is found later."""
    if not is_networkx(graph):
        raise GraphError(f"it is a {type(graph).__name__}, but others are networkx graphs")
    if schema.directed and schema.direction_given and not graph.is_directed():
        graph = graph.to_directed()  # each edge both ways
    names = schema.vertex_attributes
    raw = raw_network(graph, names, schema.edge_attribute, graph.is_directed())
    if graph.is_multigraph() and schema.edge_labels == "weights" and raw.carried is not None:
        weights = checks.numbers(raw.carried, f"attributes {schema.edge_attribute!r} of edges")
        edges, _, summed = _sum_parallel(raw.edges, weights)
        return replace(raw, edges=edges, carried=summed)
    return raw


def raw_network(
    graph: Any, vertex_attributes: Sequence[str], edge_attribute: str | None, directed: bool
) -> RawGraph:
    """Find the edges of a networkx graph, and the attributes of these names."""
    position = {node: i for i, node in enumerate(graph)}
    ends = [(position[u], position[v]) for u, v in graph.edges()]
    columns = [_attributes(graph.nodes(data=name), name, "node") for name in vertex_attributes]
    carried = None
    if edge_attribute is not None:
        carried = _attributes(graph.edges(data=edge_attribute), edge_attribute, "edge")
    x = None
    if columns:
        x = columns[0] if len(columns) == 1 else np.column_stack(columns)
    return RawGraph(
        edges=np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        n_vertices=len(position),
        x=x,
        carried=carried,
        directed=directed,
        vertex_attributes=tuple(vertex_attributes),
        edge_attribute=edge_attribute,
    )


def _attributes(entries: Iterable[tuple[Any, ...]], name: str, what: str) -> Array:
    """One value for each node, or for each edge."""
    values = [value for *_, value in entries]
    if any(value is None for value in values):
        raise GraphError(f"its {what}s do not all have the attribute {name!r}; set it on each")
    checks.check_texts(values, f"attributes {name!r}")
    return checks.without_padding(checks.as_array(values, f"attributes {name!r}"))


def network_schema(
    graphs: GraphBatch, names: AttributeNames, label_columns: tuple[str | int, ...] = ()
) -> InputSchema | None:
    """Give the schema of networkx graphs; None if no attributes were named, or too many."""
    weighted, labeled = graphs.weights is not None, graphs.edge_label_values is not None
    if names == AttributeNames() or (weighted and labeled):
        return None
    features, values = graphs.features, graphs.label_values
    text = labeled and graphs.edge_label_values is not None and _is_text(graphs.edge_label_values)
    carried = weighted or labeled
    return InputSchema(
        source="networks",
        directed=graphs.directed,
        vertex="labels" if values is not None else "none" if features is None else "features",
        label_kind=None if values is None else "text" if _is_text(values) else "integer",
        n_features=None if features is None else features.shape[1],
        edge_labels="weights" if weighted else "labels" if labeled else "ignore",
        edge_kind=None if not carried else "text" if text else "number",
        edge_width=1 if carried else None,
        vertex_attributes=(*_names(names.features), *([names.labels] if names.labels else [])),
        edge_attribute=(names.weights or names.edge_labels or "label") if carried else None,
        label_columns=label_columns,
    )


def names_in_schema(schema: InputSchema) -> AttributeNames:
    """Give the attributes of networkx graphs with labels beside features, by their schema."""
    *features, labels = schema.vertex_attributes
    carried = {schema.edge_labels: schema.edge_attribute}
    return AttributeNames(labels, features, carried.get("weights"), carried.get("labels"))


def _is_text(values: Array) -> bool:
    return checks.is_text(values)


def tell_unused(items: Sequence[Any], names: AttributeNames) -> None:
    """Warn once of attributes of networkx graphs that are not read; the first graph tells.

    Where attributes of nodes, or of edges, are named, the user has chosen among them.
    """
    graph = next((item for item in items if is_networkx(item)), None)
    if graph is None:
        return
    unused: dict[str, set[Any]] = {}
    if names.labels is None and names.features is None:
        unused["nodes"] = {name for _, data in graph.nodes(data=True) for name in data}
    if names.weights is None and names.edge_labels is None:
        unused["edges"] = {name for *_, data in graph.edges(data=True) for name in data} - {"label"}
    found = [f"{w} have {', '.join(sorted(map(repr, n)))}" for w, n in unused.items() if n]
    if found:
        warnings.warn(
            f"attributes of networkx graphs are not used: {' and '.join(found)}; name them in "
            "as_batch by label_attribute, feature_attributes, weight_attribute or "
            "edge_label_attribute (feature_attributes=[] reads none)",
            UnusedDataWarning,
            stacklevel=5,
        )


# ---------------------------------------------------------------------- finding the fields


def plain(value: Any) -> Any:
    """Copy a tensor from any device to NumPy; leave everything else alone."""
    if isinstance(value, np.ndarray) or not hasattr(value, "numpy"):
        return value
    try:
        return value.detach().cpu().numpy() if hasattr(value, "detach") else value.numpy()
    except (TypeError, RuntimeError) as error:  # a dtype or a layout that NumPy lacks
        raise GraphError(f"a tensor cannot be read as an array ({error})") from None


def labels_or_features(x: Any) -> tuple[Any, Any]:
    """Take a matrix for features, everything else for labels."""
    try:
        is_matrix = np.ndim(x) > 1
    except ValueError:  # ragged: `GraphBatch` will say so
        is_matrix = True
    return (None, x) if is_matrix else (x, None)


def _names(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or [])


def _present(view: Any, what: str, name: str) -> list[Any]:
    """Collect an attribute of all nodes or edges; none may be missing."""
    values = []
    for *key, value in view(data=name):
        if value is None:
            whose = ", ".join(map(repr, key))
            remedy = _other_attributes(view, what, name) or f"set it on every {what}"
            raise GraphError(f"{what} {whose} has no attribute {name!r}; {remedy}")
        values.append(value)
    return values


def _other_attributes(view: Any, what: str, name: str) -> str | None:
    """List the attributes that there are; None if some nodes or edges have the one in question."""
    found = {each for *_, data in view(data=True) for each in data}
    if name in found or not found:
        return None
    shown = sorted(map(repr, found))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"the {what}s of this graph have {', '.join(shown[:_SHOWN])}{more}"


_SHOWN = 10  # attributes, in an error


def _stacked(columns: dict[str, Any]) -> Array | None:
    """Join columns of numbers or vectors to one matrix; None if there are no columns."""
    if not columns:
        return None
    arrays = [checks.as_array(v, f"attributes {k!r}") for k, v in columns.items()]
    try:
        return np.hstack([array[:, np.newaxis] if array.ndim == 1 else array for array in arrays])
    except ValueError as error:
        names = ", ".join(columns)
        raise GraphError(f"its attributes {names} do not fit side by side ({error})") from None


def _sum_parallel(edge_index: Array, weights: Floats) -> tuple[Array, Array, Array]:
    """Give the distinct arcs, where each is listed first, and its summed weight."""
    merged, first, which = np.unique(edge_index, axis=1, return_index=True, return_inverse=True)
    return merged, first, np.bincount(which.ravel(), weights, minlength=merged.shape[1])


def _column(values: Any) -> Any:
    """Flatten a matrix of one column; leave everything else alone."""
    return values.ravel() if getattr(values, "shape", ())[1:] == (1,) else values


def _networkx_edge_labels(
    graph: Any, edge_index: Array, weight_attribute: str | None, name: str | None
) -> Array | None:
    """Read the edge attribute that is asked for, or else ``label`` where it can be used."""
    if name is not None:
        values = _present(graph.edges, "edge", name)
        return checks.edge_label_array(values, edge_index.shape[1])
    if weight_attribute == "label":
        return None
    values = [value for *_, value in graph.edges(data="label")]
    if any(value is None for value in values):
        return None
    return usable_labels(values, edge_index, graph.is_directed())


def _pyg_edge_labels(data: Any, edge_index: Any, directed: bool) -> Array | None:
    """Read ``edge_attr`` where it is one integer per arc."""
    try:
        found = _column(plain(getattr(data, "edge_attr", None)))
    except GraphError:
        return None
    whole = getattr(found, "dtype", None) is not None and found.dtype.kind in "iu"
    return usable_labels(found, edge_index, directed) if whole else None


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
            f"the arc ({u}, {v}) has no counterpart ({v}, {u}); "
            f"pass `directed=True`, or make it undirected by {remedy}"
        )
