"""From other libraries' graphs to ours: networkx, SciPy, PyTorch Geometric (PyG), plain arrays.

Their objects are recognized by their attributes, so that reading them imports nothing. This file
finds the fields; `GraphBatch.from_graphs` checks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.exceptions import GraphError
from fdgnn.extras import require
from fdgnn.graphs import Array, Floats, Graph, GraphBatch, checks
from fdgnn.graphs.arc_labels import agree, found_in_all, usable_labels


def as_batch(
    graphs: Any,
    *,
    label_attribute: str | None = None,
    feature_attributes: str | Sequence[str] | None = None,
    weight_attribute: str | None = None,
    arc_label_attribute: str | None = None,
    directed: bool = False,
    descriptors: Any = None,
) -> GraphBatch:
    """Make a `GraphBatch` of graphs of any known kind.

    Parameters
    ----------
    graphs : GraphBatch, or sequence of graphs
        A batch is returned as it is. The items of a sequence may be

        - `Graph` objects;
        - pairs ``(edge_index, x)``: arcs as (source, target) columns, and one integer or string
          per vertex (labels), a matrix with a row of numbers per vertex (features), or None; in
          an undirected graph each edge may be listed once or both ways;
        - SciPy sparse adjacency matrices, or pairs ``(matrix, x)``, see `from_scipy`;
        - networkx graphs of any class, see `from_networkx`;
        - PyG ``Data`` objects, or others with ``edge_index`` and, optionally, ``x`` and
          ``num_nodes``, see `from_pyg`. A whole PyG dataset or batch can be passed as well.
    label_attribute : str, optional
        The attribute of networkx nodes and PyG objects with the vertices' discrete labels.
    feature_attributes : str or sequence of str, optional
        The attributes of networkx nodes and PyG objects with the vertices' real features.
    weight_attribute : str, optional
        The attribute of networkx edges and PyG objects with the arcs' weights.
    arc_label_attribute : str, optional
        The attribute of networkx edges and PyG objects with the arcs' discrete labels. By default
        it is ``label`` of networkx edges and ``edge_attr`` of PyG objects, if all graphs have it,
        with one integer or text per edge.
    directed : bool, default=False
        Whether pairs, matrices and PyG objects are directed. Other graphs say so themselves.
    descriptors : array, mapping or data frame, optional
        Columns with a value for each graph, as in `GraphBatch.with_descriptors`.

    Returns
    -------
    GraphBatch

    Raises
    ------
    GraphError
        For the first graph that cannot be used; it has the graph's position and the reason.

    Examples
    --------
    >>> from fdgnn import as_batch
    >>> triangle = [[0, 1, 2], [1, 2, 0]]
    >>> as_batch([(triangle, ["C", "C", "O"]), ([[0], [1]], ["C", "N"])])
    GraphBatch(2 graphs, 5 vertices, 8 arcs, 3 vertex labels)
    """
    names = {
        "label_attribute": label_attribute,
        "feature_attributes": feature_attributes,
        "weight_attribute": weight_attribute,
        "arc_label_attribute": arc_label_attribute,
    }
    batch = graphs if isinstance(graphs, GraphBatch) else _converted(graphs, directed, names)
    return batch if descriptors is None else batch.with_descriptors(descriptors)


def _converted(graphs: Any, directed: bool, names: dict[str, Any]) -> GraphBatch:
    """Make a batch of anything but a batch; `names` are those of attributes."""
    items = _items(graphs)
    if all(type(item) is Graph for item in items):
        return GraphBatch.from_graphs(items)
    converted = []
    for i, item in enumerate(items):
        try:
            converted.append(_as_graph(item, directed, names))
        except GraphError as error:
            raise GraphError(error.reason, i) from None
    if any(graph.weights is not None for graph in converted):
        pairs = zip(items, converted, strict=True)
        converted = [_with_weights(graph) if _has_matrix(item) else graph for item, graph in pairs]
    unnamed = names["arc_label_attribute"] is None
    if unnamed and any(graph.arc_labels is not None for graph in converted):
        converted = found_in_all(items, converted)
    return GraphBatch.from_graphs(converted)


# ---------------------------------------------------------------------- one graph


def from_networkx(
    graph: Any,
    *,
    label_attribute: str | None = None,
    feature_attributes: str | Sequence[str] | None = None,
    weight_attribute: str | None = None,
    arc_label_attribute: str | None = None,
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
    arc_label_attribute : str, optional
        Edge attribute with an integer or a string; by default ``label``, if all edges have it.

    Returns
    -------
    Graph
    """
    position = {node: i for i, node in enumerate(graph)}
    arcs = [(position[u], position[v]) for u, v in graph.edges()]
    edge_index = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    labels = weights = None
    arc_labels = _networkx_arc_labels(graph, edge_index, weight_attribute, arc_label_attribute)
    if weight_attribute is not None:
        values = _present(graph.edges(data=weight_attribute), "edge", weight_attribute)
        weights = checks.numbers(values, f"attributes {weight_attribute!r} of edges")
        if graph.is_multigraph():
            if arc_labels is not None and not agree(edge_index, arc_labels, graph.is_directed()):
                raise GraphError("it has parallel edges with different labels; drop one of them")
            edge_index, first, weights = _sum_parallel(edge_index, weights)
            arc_labels = None if arc_labels is None else arc_labels[first]
    if label_attribute is not None:
        labels = _present(graph.nodes(data=label_attribute), "node", label_attribute)
    return Graph(
        edge_index=edge_index,
        n_vertices=len(position),
        labels=labels,
        features=_stacked(
            {n: _present(graph.nodes(data=n), "node", n) for n in _names(feature_attributes)}
        ),
        weights=weights,
        directed=graph.is_directed(),
        arc_labels=arc_labels,
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
    arc_label_attribute: str | None = None,
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
    arc_label_attribute : str, optional
        The attribute with the arcs' labels; by default ``edge_attr``, if it has one integer per
        arc, the same in both directions of an edge, and is not named as weights.
    directed : bool, default=False
        If False, every arc must be listed both ways, as is usual in PyG.

    Returns
    -------
    Graph
    """

    def get(name: str) -> Any:
        value = _plain(getattr(data, name, None))
        if value is None:
            raise GraphError(f"it has no attribute {name!r}; name one that it has")
        return value

    labels = None if label_attribute is None else get(label_attribute)
    features = _stacked({name: get(name) for name in _names(feature_attributes)})
    if labels is None and features is None:
        labels, features = _labels_or_features(_plain(getattr(data, "x", None)))
    weights = _plain(getattr(data, "edge_weight", None))
    if weight_attribute is not None:
        weights = get(weight_attribute)
    if weights is not None:
        weights = _column(checks.as_array(weights, "weights"))
    edge_index = get("edge_index")
    if not directed:
        _check_both_ways(edge_index, "torch_geometric.transforms.ToUndirected")
    arc_labels = None
    if arc_label_attribute is not None:
        arc_labels = _column(get(arc_label_attribute))
    elif weight_attribute != "edge_attr":
        arc_labels = _pyg_arc_labels(data, edge_index, directed)
    n_vertices = getattr(data, "num_nodes", None)
    return Graph(edge_index, n_vertices, labels, features, weights, directed, arc_labels)


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
    for name, values in (("weight", graph.weights), ("label", graph.arc_labels)):
        if values is not None:
            arcs = map(tuple, graph.edge_index.T.tolist())
            nx.set_edge_attributes(result, dict(zip(arcs, values.tolist(), strict=True)), name)
    return result


# ---------------------------------------------------------------------- which kind is it?


def _items(graphs: Any) -> list[Any]:
    if type(graphs) is list:
        return graphs
    if hasattr(graphs, "to_data_list"):  # a PyG batch
        return list(graphs.to_data_list())
    if _is_graph(graphs) and not _is_pyg_dataset(graphs):
        raise GraphError(
            f"a single graph was given (a {type(graphs).__name__}); wrap it in a list: [graph]"
        )
    try:
        if isinstance(graphs, str | bytes | Mapping):
            raise TypeError
        return list(graphs)
    except TypeError:
        raise GraphError(f"expected a list of graphs, got {_described(graphs)}") from None


def _as_graph(item: Any, directed: bool, names: dict[str, Any]) -> Graph:
    if isinstance(item, Graph):
        return item
    if isinstance(item, tuple | list):
        return _from_pair(item, directed)
    if sp.issparse(item):
        return from_scipy(item, directed=directed)
    if _is_networkx(item):
        return from_networkx(item, **names)
    if hasattr(item, "to_data_list"):
        raise GraphError("it is a batch of graphs itself; pass its to_data_list() instead")
    if hasattr(item, "edge_index"):
        return from_pyg(item, **names, directed=directed)
    raise GraphError(
        f"it is {_described(item)}, not a graph; pass a list of Graph objects, (edge_index, x) "
        "pairs, SciPy sparse adjacency matrices, networkx graphs or PyG Data"
    )


def _from_pair(pair: Sequence[Any], directed: bool) -> Graph:
    if len(pair) != 2:
        raise GraphError(
            f"it is a {type(pair).__name__} of {len(pair)}, expected a pair (edge_index, x)"
        )
    arcs, x = pair
    labels, features = _labels_or_features(_plain(x))
    if sp.issparse(arcs):
        return from_scipy(arcs, labels=labels, features=features, directed=directed)
    return Graph(_plain(arcs), labels=labels, features=features, directed=directed)


def _is_graph(item: Any) -> bool:
    known = isinstance(item, Graph) or sp.issparse(item)
    return known or _is_networkx(item) or hasattr(item, "edge_index")


def _is_networkx(item: Any) -> bool:
    return hasattr(item, "is_multigraph")


def _is_pyg_dataset(item: Any) -> bool:
    """Tell a dataset from a graph; a dataset has the ``edge_index`` of all its graphs."""
    bases = type(item).__mro__
    return any(b.__name__ == "Dataset" and b.__module__.startswith("torch") for b in bases)


def _has_matrix(item: Any) -> bool:
    return sp.issparse(item) or (isinstance(item, tuple | list) and sp.issparse(item[0]))


def _described(item: Any) -> str:
    shape = getattr(item, "shape", None)
    return f"a {type(item).__name__}" + (f" of shape {tuple(shape)}" if shape is not None else "")


# ---------------------------------------------------------------------- finding the fields


def _plain(value: Any) -> Any:
    """Copy a tensor from any device to NumPy; leave everything else alone."""
    if isinstance(value, np.ndarray) or not hasattr(value, "numpy"):
        return value
    try:
        return value.detach().cpu().numpy() if hasattr(value, "detach") else value.numpy()
    except (TypeError, RuntimeError) as error:  # a dtype or a layout that NumPy lacks
        raise GraphError(f"a tensor cannot be read as an array ({error})") from None


def _labels_or_features(x: Any) -> tuple[Any, Any]:
    try:
        is_matrix = np.ndim(x) > 1
    except ValueError:  # ragged: `GraphBatch` will say so
        is_matrix = True
    return (None, x) if is_matrix else (x, None)


def _names(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or [])


def _present(items: Iterable[tuple[Any, ...]], what: str, name: str) -> list[Any]:
    """Collect the last entries of the tuples; none may be missing."""
    values = []
    for *key, value in items:
        if value is None:
            whose = ", ".join(map(repr, key))
            raise GraphError(f"{what} {whose} has no attribute {name!r}; set it on every {what}")
        values.append(value)
    return values


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


def _networkx_arc_labels(
    graph: Any, edge_index: Array, weight_attribute: str | None, name: str | None
) -> Array | None:
    """Read the edge attribute that is asked for, or else ``label`` where it can be used."""
    if name is not None:
        values = _present(graph.edges(data=name), "edge", name)
        return checks.arc_label_array(values, edge_index.shape[1])
    if weight_attribute == "label":
        return None
    values = [value for *_, value in graph.edges(data="label")]
    if any(value is None for value in values):
        return None
    return usable_labels(values, edge_index, graph.is_directed())


def _pyg_arc_labels(data: Any, edge_index: Any, directed: bool) -> Array | None:
    """Read ``edge_attr`` where it is one integer per arc."""
    try:
        found = _column(_plain(getattr(data, "edge_attr", None)))
    except GraphError:
        return None
    whole = getattr(found, "dtype", None) is not None and found.dtype.kind in "iu"
    return usable_labels(found, edge_index, directed) if whole else None


def _with_weights(graph: Graph) -> Graph:
    """Give a matrix of ones its unit weights, since others in the list have weights."""
    if graph.weights is not None:
        return graph
    return replace(graph, weights=np.ones(graph.edge_index.shape[1]))


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
