"""One graph of another library: networkx, igraph, SciPy, PyTorch Geometric (PyG), DGL, arrays.

Their objects are recognized by their attributes, so that reading them imports nothing. This file
finds the fields; `GraphBatch.from_graphs` checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from fdgnn.exceptions import GraphError, warn_unused
from fdgnn.extras import require
from fdgnn.graphs import Array, Floats, Graph, GraphBatch, checks
from fdgnn.graphs.graph import merge_arcs
from fdgnn.schema import InputSchema

# The attributes of networkx and PyG objects that are read, as `as_batch` takes them; "" and [] are
# none.
Names = Mapping[str, Any]
Field = Literal["edge_labels", "weights"]


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
        Edge attribute with an integer or a string; by default ``label``, if all edges have it;
        none if it is empty.

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
            if edge_labels is not None and not _agree(edge_index, edge_labels, graph.is_directed()):
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
        vertex_names=None if list(position) == list(range(len(position))) else list(position),
    )


def from_scipy(
    matrix: Any, *, labels: Any = None, features: Any = None, directed: bool = False
) -> Graph:
    """Convert an adjacency matrix, whose entry (i, j) is the arc from i to j.

    Parameters
    ----------
    matrix : SciPy sparse matrix or array, or NumPy array, shape (n_vertices, n_vertices)
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
    if not sp.issparse(matrix):
        matrix = checks.numbers(matrix, "entries of its adjacency matrix")
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
        The attribute with the weights, by default ``edge_weight`` if there is one, or ``edge_attr``
        if it has one real number per arc.
    edge_label_attribute : str, optional
        The attribute with the edges' labels; by default ``edge_attr``, if it has one integer per
        arc or is one-hot, the same in both directions of an edge, and is not named as weights;
        none if it is empty. Several integers per arc are joined to one text, if it is named.
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
    edge_index = get("edge_index")
    if not directed:
        _check_both_ways(edge_index, "torch_geometric.transforms.ToUndirected")
    weights = (
        get(weight_attribute) if weight_attribute else plain(getattr(data, "edge_weight", None))
    )
    edge_labels = None
    if edge_label_attribute:
        edge_labels = _named_labels(get(edge_label_attribute))
    elif edge_label_attribute is None and weight_attribute != "edge_attr":
        edge_labels, numbers = _edge_attr(data, edge_index, directed)
        weights = numbers if weights is None else weights
    if weights is not None:
        weights = _column(checks.as_array(weights, "weights"))
    n_vertices = getattr(data, "num_nodes", None)
    return Graph(edge_index, n_vertices, labels, features, weights, directed, edge_labels)


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
        if labels is None or values is None:
            return None
        return torch.as_tensor(labels[:, np.newaxis] == values, dtype=torch.float32)

    found = []
    for g, graph in enumerate(graphs):
        fields = {
            "x": one_hot(graph.labels, graphs.label_values)
            if graph.features is None
            else torch.tensor(graph.features, dtype=torch.float32),
            "edge_attr": one_hot(graph.edge_labels, graphs.edge_label_values),
            "edge_weight": None
            if graph.weights is None
            else torch.tensor(graph.weights, dtype=torch.float32),
            "y": None if targets is None else targets[g : g + 1],
        }
        data = Data(edge_index=torch.tensor(graph.edge_index), num_nodes=graph.n_vertices)
        for name, value in fields.items():
            if value is not None:
                data[name] = value
        found.append(data)
    return found


# ---------------------------------------------------------------------- other interfaces


class IgraphView:
    """An igraph graph with the part of networkx's interface that is read here.

    Its nodes are the vertex attribute ``name``, if names differ, or else 0, 1, 2, ...
    """

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        own = graph.vs["name"] if "name" in graph.vs.attributes() else []
        self.names = own if len(own) == len(set(own)) > 0 else range(graph.vcount())
        self.arcs = [(self.names[u], self.names[v]) for u, v in graph.get_edgelist()]

    def __iter__(self) -> Any:
        return iter(self.names)

    def nodes(self, data: Any) -> list[tuple[Any, Any]]:
        """Pair each node with all of its attributes, or with one."""
        return [(node, self._value(v, data)) for node, v in zip(self, self.graph.vs, strict=True)]

    def edges(self, data: Any = False) -> list[tuple[Any, ...]]:
        """List the ends of each edge, with all of its attributes, or with one."""
        if data is False:
            return self.arcs
        pairs = zip(self.arcs, self.graph.es, strict=True)
        return [(*ends, self._value(edge, data)) for ends, edge in pairs]

    @staticmethod
    def _value(item: Any, data: Any) -> Any:
        found = {k: v for k, v in item.attributes().items() if k != "name" and v is not None}
        return found if data is True else found.get(data)

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return bool(self.graph.is_directed())

    def is_multigraph(self) -> bool:
        """Whether two edges have the same ends."""
        return bool(self.graph.has_multiple())

    def to_directed(self) -> IgraphView:
        """Return the graph with each edge both ways."""
        return IgraphView(self.graph.as_directed(mode="mutual"))


def _dgl_view(graph: Any) -> Any:
    """Return a DGL graph with PyG's names for what it has.

    Vertices' ``feat`` or ``x`` is ``x``; edges' ``feat`` is ``edge_attr``, and their ``weight`` or
    ``w`` is ``edge_weight``. All others have their own names.
    """
    of_edges = {"feat": "edge_attr", "w": "edge_weight", "weight": "edge_weight"}
    fields = {of_edges.get(name, name): value for name, value in graph.edata.items()}
    fields |= {{"feat": "x"}.get(name, name): value for name, value in graph.ndata.items()}
    sources, targets = map(plain, graph.edges())
    return SimpleNamespace(
        **fields, edge_index=np.stack([sources, targets]), num_nodes=graph.num_nodes()
    )


def with_known_interface(item: Any) -> Any:
    """Return graphs of igraph with networkx's interface, of DGL with PyG's; others as they are."""
    if _is_igraph(item):
        return IgraphView(item)
    return _dgl_view(item) if _is_dgl(item) and item.is_homogeneous else item


def _is_igraph(item: Any) -> bool:
    return hasattr(item, "get_edgelist") and hasattr(item, "vs")


def _is_dgl(item: Any) -> bool:
    return hasattr(item, "ndata") and hasattr(item, "edata")


def is_graph(item: Any) -> bool:
    """Return whether something is one graph of a known kind; a pair may be something else."""
    if isinstance(item, Graph) or is_adjacency(item) or is_networkx(item):
        return True
    return hasattr(item, "edge_index") or _is_igraph(item) or _is_dgl(item)


def is_adjacency(item: Any, in_pair: bool = False) -> bool:
    """Return whether something is an adjacency matrix, sparse or a square array or tensor.

    An array of shape (2, 2) in a pair is an edge index, as of shape (2, n_arcs).
    """
    if sp.issparse(item):
        return True
    is_frame = hasattr(item, "columns")
    shape: tuple[int, ...] = () if is_frame else getattr(item, "shape", None) or ()
    return len(shape) == 2 and bool(shape[0] == shape[1]) and not (in_pair and shape[0] == 2)


def is_networkx(item: Any) -> bool:
    """Return whether something is a networkx graph."""
    return hasattr(item, "is_multigraph")


def network_schema(
    graphs: GraphBatch, names: Names, label_columns: tuple[str | int, ...] = ()
) -> InputSchema | None:
    """Return the schema of networkx graphs; None if no attributes were named, or too many."""
    weighted, labeled = graphs.weights is not None, graphs.edge_label_values is not None
    if not any(names.values()) or (weighted and labeled):
        return None
    features, values = graphs.features, graphs.label_values
    labels, weights = names["label_attribute"], names["weight_attribute"]
    carried = weighted or labeled
    return InputSchema(
        source="networks",
        directed=graphs.directed,
        vertex="labels" if values is not None else "none" if features is None else "features",
        label_kind=None if values is None else "text" if checks.is_text(values) else "integer",
        n_features=None if features is None else features.shape[1],
        edge_labels="weights" if weighted else "labels" if labeled else "ignore",
        edge_kind=None if not carried else "number" if weighted else _kind_of(graphs),
        edge_width=1 if carried else None,
        vertex_attributes=(*_names(names["feature_attributes"]), *([labels] if labels else [])),
        edge_attribute=(weights or names["edge_label_attribute"] or "label") if carried else None,
        label_columns=label_columns,
    )


def _kind_of(graphs: GraphBatch) -> Literal["number", "text"]:
    values = graphs.edge_label_values
    return "text" if values is not None and checks.is_text(values) else "number"


def names_in_schema(schema: InputSchema) -> Names:
    """Return the attributes of networkx graphs that a schema names."""
    *features, last = schema.vertex_attributes or (None,)
    labeled = schema.vertex == "labels" or bool(schema.label_columns)
    used = {schema.edge_labels: schema.edge_attribute}
    return {
        "label_attribute": last if labeled else None,
        "feature_attributes": features if labeled else list(schema.vertex_attributes),
        "weight_attribute": used.get("weights"),
        "edge_label_attribute": used.get("labels", ""),
    }


def warn_unused_attributes(items: Sequence[Any], graphs: Sequence[Graph], names: Names) -> None:
    """Warn once of attributes of networkx and PyG graphs that are not read; by the first graph.

    Where attributes of vertices, or of edges, are named, the user has chosen among them.
    """
    chose_vertices = (names["label_attribute"], names["feature_attributes"]) != (None, None)
    chose_edges = (names["weight_attribute"], names["edge_label_attribute"]) != (None, None)
    for item, graph in zip(items, graphs, strict=True):
        if is_networkx(item):
            kind, (of_vertices, of_edges) = "networkx graphs", _nx_attributes(item, graph)
        elif hasattr(item, "edge_index") and type(item) is not Graph:
            kind, (of_vertices, of_edges) = "PyG graphs", _pyg_attributes(item, graph)
        else:
            continue
        remedies = {}
        if of_vertices and not chose_vertices:
            remedies[_listed(of_vertices, "vertices")] = (
                "name them by `label_attribute` or `feature_attributes`, or none by "
                "`feature_attributes=[]`"
            )
        if of_edges and not chose_edges:
            how = "name one by `weight_attribute` or `edge_label_attribute`"
            how = how if is_networkx(item) else _use_of_edge_attr(item)
            remedies[_listed(of_edges, "edges")] = f"{how}, or none by `edge_label_attribute=''`"
        warn_unused(kind, remedies)
        return


def _listed(names: set[str], whose: str) -> str:
    return f"attributes {', '.join(sorted(map(repr, names)))} of {whose}"


def _nx_attributes(item: Any, graph: Graph) -> tuple[set[str], set[str]]:
    """Find attributes of nodes, and those of edges, but for the label that was used."""
    of_edges = {name for *_, data in item.edges(data=True) for name in data}
    used = set() if graph.edge_labels is None else {"label"}
    return {name for _, data in item.nodes(data=True) for name in data}, of_edges - used


def _use_of_edge_attr(item: Any) -> str:
    """Return how the ``edge_attr`` of a PyG graph can be used, which is not used by default."""
    values = _column(np.asarray(plain(item.edge_attr)))
    if values.ndim == 1 or _integers(values) is not None:
        return "`directed=True` reads values that differ between the directions of an edge"
    named = "`edge_label_attribute='edge_attr'`"
    if values.dtype.kind in "iu" or not (values % 1).any():
        return f"{named} joins the {values.shape[1]} integers of an edge to one label"
    return (
        f"bin the {values.shape[1]} numbers of an edge to integers, which {named} reads as labels"
    )


_PYG_OWN = {"x", "edge_index", "edge_weight", "y", "batch", "ptr"}


def _pyg_attributes(item: Any, graph: Graph) -> tuple[set[str], set[str]]:
    """Find arrays with a row per vertex that are not used, and ``edge_attr`` if it is not."""
    keys = item.keys() if callable(getattr(item, "keys", None)) else vars(item)
    n = getattr(item, "num_nodes", None)
    of_vertices = {
        key
        for key in set(keys) - _PYG_OWN - {"edge_attr"}
        if n is not None and n > 1 and np.shape(plain(getattr(item, key)))[:1] == (n,)
    }
    is_used = graph.edge_labels is not None or (
        graph.weights is not None and getattr(item, "edge_weight", None) is None
    )
    has_own = getattr(item, "edge_attr", None) is not None and np.size(graph.edge_index) > 0
    return of_vertices, {"edge_attr"} if has_own and not is_used else set()


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
    """Return labels and features: a matrix is features, everything else labels."""
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
            remedy = _other_attributes(view, what, name) or f"set it on every {what}, not to None"
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
    """Return the distinct arcs, where each is listed first, and its summed weight."""
    merged, first, which = np.unique(edge_index, axis=1, return_index=True, return_inverse=True)
    return merged, first, np.bincount(which.ravel(), weights, minlength=merged.shape[1])


def _column(values: Any) -> Any:
    """Flatten a matrix of one column; leave everything else alone."""
    return values.ravel() if getattr(values, "shape", ())[1:] == (1,) else values


def _networkx_edge_labels(
    graph: Any, edge_index: Array, weight_attribute: str | None, name: str | None
) -> Array | None:
    """Read the edge attribute that is asked for, or else ``label`` where it can be used."""
    if name:
        values = _present(graph.edges, "edge", name)
        return checks.edge_label_array(values, edge_index.shape[1])
    if name is not None or weight_attribute == "label":
        return None
    values = [value for *_, value in graph.edges(data="label")]
    if any(value is None for value in values):
        return None
    return _usable(values, edge_index, graph.is_directed(), checks.edge_label_array)


def _edge_attr(data: Any, edge_index: Any, directed: bool) -> tuple[Array | None, Array | None]:
    """Read ``edge_attr`` as labels or else as weights, where it can be used."""
    try:
        values = _column(plain(getattr(data, "edge_attr", None)))
    except GraphError:
        return None, None
    if getattr(values, "dtype", None) is None:
        return None, None
    labels = _integers(values)
    if labels is not None:
        return _usable(labels, edge_index, directed, checks.edge_label_array), None
    if values.dtype.kind == "f" and values.ndim == 1:
        return None, _usable(values, edge_index, directed, _finite)
    return None, None


def _integers(values: Array) -> Array | None:
    """Return one integer per edge: its own, or the position of the one in a one-hot row."""
    if values.ndim == 1 and values.dtype.kind in "iu":
        return values
    if values.ndim == 2 and values.shape[1] > 1 and values.dtype.kind in "biuf":
        ones = values == 1
        if (ones | (values == 0)).all() and (ones.sum(axis=1) == 1).all():
            return np.asarray(ones.argmax(axis=1))
    return None


def _named_labels(values: Any) -> Any:
    """Return one label per edge of values that the user chose; errors are found later."""
    array = _column(checks.as_array(values, "edge labels"))
    labels = _integers(array)
    if labels is not None:
        return labels
    if array.ndim == 2 and array.dtype.kind == "f":
        if (array != np.round(array)).any():
            raise GraphError(
                f"edges have {array.shape[1]} real numbers each, which are no labels; bin them to "
                "integers, or name one column as weights"
            )
        array = array.astype(np.int64)
    return checks.joined_labels(array) if array.ndim == 2 and array.dtype.kind in "iu" else array


def _finite(values: Any, n_arcs: int) -> Array:
    numbers = checks.numbers(values, "weights")
    checks.check_shape(numbers, (n_arcs,), "weights")
    if not np.isfinite(numbers).all():
        raise GraphError("weights are not finite")
    return numbers


def _usable(
    values: Any, edge_index: Any, directed: bool, read: Callable[[Any, int], Array]
) -> Array | None:
    """Read one value per arc; None if that is not what they are, or if an edge has two."""
    try:
        arcs = checks.arc_array(edge_index)
        found = read(values, arcs.shape[1])
    except GraphError:
        return None
    return found if len(found) and _agree(arcs, found, directed) else None


def _agree(arcs: Array, values: Array, directed: bool) -> bool:
    """Return whether an edge has the same value wherever it is listed."""
    codes = np.unique(values, return_inverse=True)[1]
    # Indices are not checked yet, so they are numbered anew.
    vertices, arcs = np.unique(arcs, return_inverse=True)
    graph = np.array([0, len(vertices)])
    merged = merge_arcs(arcs.reshape(2, -1), None, codes, graph, directed)
    return len(merged.differing_labels) == 0


def found_in_all(items: Sequence[Any], graphs: list[Graph], names: Names) -> list[Graph]:
    """Return graphs with what was found on edges by default, only if all have it, of one kind."""
    fields: dict[Field, str] = {
        "edge_labels": "edge_label_attribute", "weights": "weight_attribute"
    }  # fmt: skip
    for field, name in fields.items():
        kinds = {_kind(graph, field) for graph in graphs} - {"any"}
        if names[name] is None and len(kinds) > 1:
            nothing: dict[str, Any] = {field: None}
            pairs = zip(items, graphs, strict=True)
            graphs = [g if _is_given(item, field) else replace(g, **nothing) for item, g in pairs]
    return graphs


def _is_given(item: Any, field: Field) -> bool:
    """Return whether a graph's labels or weights of edges were given as such, and must be used."""
    if isinstance(item, Graph):
        return True
    is_pyg = hasattr(item, "edge_index")
    return field == "weights" and (not is_pyg or getattr(item, "edge_weight", None) is not None)


def _kind(graph: Graph, field: Field) -> str:
    """Name the kind of what edges have; a graph without edges goes with any."""
    try:
        if np.size(graph.edge_index) == 0:
            return "any"
        values = getattr(graph, field)
        return "none" if values is None else np.asarray(values).dtype.kind.replace("O", "U")
    except ValueError:  # ragged: `GraphBatch` will say so
        return "any"


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
