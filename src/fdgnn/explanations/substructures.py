"""Which substructures count for which class: WL labels by their attributions.

A WL label of iteration r stands for a vertex with all that is up to r steps away, so it is a
substructure. Over the graphs given, the *weight* of a WL label for a class is the sum of the
attributions (`fdgnn.explain`) of the vertices with that label, averaged over all graphs. For a
linear readout that is the sum of the label's own weights; for RBF kernel ridge regression, of its
mean gradients. Base models of an ensemble are averaged, as their outputs are; those that have the
same WL label add up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import dijkstra

from fdgnn.arrays import Features, Floats, Ints
from fdgnn.encoders import Attribution, Encoder, EncoderUnion, WLCounts
from fdgnn.encoders.union import UnionParts
from fdgnn.encoders.wl import LabelRow, WLParts
from fdgnn.encoders.wl_labels import Colors, degrees, log_bin_ends, structure_numbers
from fdgnn.explanations.attributions import (
    checked_model,
    chunks,
    directions_of,
    number_of_score,
    one_target,
    signs_of,
)
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.smiles import pharmacophore_names
from fdgnn.texts import listed


def _first_label_in_words(
    encoder: WLCounts, graphs: GraphBatch, channel: str, names: Mapping[str, str]
) -> list[str]:
    """Return the meaning of the first WL label of each vertex, in one channel.

    `names` is what vertex labels, as text, are called.
    """
    if channel == "label":
        return [names.get(text, f"label {text}") for text in _labels(encoder, graphs)]
    if channel == "element" and graphs.labels is not None:
        return [text.split(" ")[0] for text in map(str, graphs.labels.tolist())]
    if channel == "pharmacophore" and graphs.smiles is not None:
        names_of = pharmacophore_names()
        return [names_of[c] for c in graphs.smiles.pharmacophores(graphs.graph_of_vertex).tolist()]
    if channel == "vertex":
        return ["any vertex"] * graphs.n_vertices
    if channel.startswith("feature"):
        assert graphs.features is not None
        name, _, coarse = channel.partition(", ")
        if name == "features":
            return ["all features, in coarse bins"] * graphs.n_vertices
        column = graphs.features[:, int(name.split()[1])]
        about = "in the coarse bin of" if coarse else "in the bin of"
        return [f"{name} {about} {value:.3g}" for value in column.tolist()]
    if channel == encoder._first == "degree":
        return [f"degree {degree}" for degree in degrees(graphs).tolist()]
    # The bins of one or two numbers that describe the neighborhood of a vertex.
    numbers = structure_numbers(graphs, encoder.n_jobs)
    numbers["log degree"] = numbers["degree"]
    parts = [
        [_WORDS[name](name, int(bin_)) for bin_ in numbers[name]] for name in channel.split(", ")
    ]
    return [" and ".join(words) for words in zip(*parts, strict=True)]


def _labels(encoder: WLCounts, graphs: GraphBatch) -> list[str]:
    """Return the label of each vertex as text, also where labels are columns beside features."""
    if graphs.labels is not None:
        return list(map(str, graphs.labels.tolist()))
    assert graphs.features is not None
    schema, n = graphs.schema, encoder.graph_kind_.n_label_columns
    known = range(n) if schema is None else schema.label_columns
    rows = graphs.features[:, -n:].tolist()
    return [str(known[row.index(1.0)]) if 1.0 in row else "unknown" for row in rows]


def reach(channel: str) -> int:
    """Return how many steps from its vertex the first WL label of a channel sees."""
    found = [steps for part, steps in _REACH.items() if part in channel]
    return max(found, default=0)


def _whole(name: str, bin_: int) -> str:
    low, high = log_bin_ends(bin_)
    first, last = math.ceil(low - 1e-9), math.ceil(high - 1e-9) - 1
    return f"{name} {first}" if first >= last else f"{name} {first} to {last}"


def _triangles(name: str, bin_: int) -> str:
    words = _whole("in", bin_)
    return f"{words} {'triangle' if words == 'in 1' else 'triangles'}"


def _real(name: str, bin_: int) -> str:
    low, high = log_bin_ends(bin_)
    return f"{name} {low:.3g} to {high:.3g}"


def _share(words: str, bin_: int) -> str:
    """Twentieths, as percent."""
    return f"{words}: {'100 %' if bin_ == 20 else f'{5 * bin_} to {5 * bin_ + 5} %'}"


_WORDS: dict[str, Callable[[str, int], str]] = {
    "degree": _whole,
    "log degree": lambda _, bin_: _whole("degree", bin_),
    "neighbors' mean degree": _real,
    "neighbors' largest degree": _whole,
    "neighbors' smallest degree": _whole,
    "deviation of neighbors' degrees": _real,
    "triangles": _triangles,
    "degree over graph size": lambda _, bin_: _share("degree, of the graph's size", bin_),
    "linked pairs of neighbors": lambda _, bin_: _share("pairs of neighbors that are linked", bin_),
}
# In the name of a pair of numbers both are named.
_REACH = {"degree": 1, "triangles": 1, "linked pairs": 1, "neighbors' ": 2}


_MOST_KINDS = 5  # of neighbors that are named


def wl_label_in_words(
    encoder: WLCounts, graph: GraphBatch, row: LabelRow, vertex: int, names: Mapping[str, str]
) -> str:
    """Describe the WL label of a vertex of one graph, in a channel and iteration."""
    first: list[str] = _first_label_in_words(encoder, graph, row.channel, names)
    if row.iteration == 0:
        return first[vertex]
    if row.iteration == 1:
        return f"{first[vertex]}, {_neighbors(encoder, graph, first, vertex)}"
    return f"{first[vertex]}, with all that is up to {row.iteration} steps away"


def _neighbors(encoder: WLCounts, graph: GraphBatch, first: list[str], vertex: int) -> str:
    """List the neighbors of a vertex, with the labels of the edges to them."""
    own = range(int(graph.indptr[vertex]), int(graph.indptr[vertex + 1]))
    way = "from " if graph.directed else ""
    arcs = [(a, int(graph.neighbors[a]), way) for a in own]
    if graph.directed:
        ends = np.repeat(np.arange(graph.n_vertices), np.diff(graph.indptr))
        leaving = np.flatnonzero(graph.neighbors == vertex)
        arcs += [(int(a), int(ends[a]), "to ") for a in leaving]
    labels = graph.edge_labels if encoder.uses_edge_labels else None
    edges = ["" if labels is None else f" (edge {labels[a]})" for a, _, _ in arcs]
    kinds = Counter(f"{way}{first[u]}{edge}" for (_, u, way), edge in zip(arcs, edges, strict=True))
    if not kinds:
        return "without neighbors"
    named = [
        words if n == 1 else f"{n} \N{MULTIPLICATION SIGN} {words}"
        for words, n in sorted(kinds.items())
    ]
    if len(named) > _MOST_KINDS:
        named = [*named[: _MOST_KINDS - 1], f"{len(named) - _MOST_KINDS + 1} other kinds"]
    return f"{'with arcs' if graph.directed else 'next to'} {listed(named)}"


@dataclass(frozen=True, eq=False)
class Substructure:
    """A WL label, and its weight for one class.

    Attributes
    ----------
    target : class label or int
        The class; of a regressor, the number of the target.
    words : str
        What the label stands for.
    channel : str
        Where its first labels come from: "label", "degree", "triangles", ...
    iteration : int
        The WL iteration.
    weight : float
        What it adds to the score, averaged over all graphs; below 0 it counts against the target.
    attribution : float
        The same, averaged over the graphs that have it.
    n_graphs : int
        How many graphs have it.
    graph : int
        The position of an example: of the graphs in which it counts in the direction of `weight`,
        one with the fewest vertices of the label, and of these one with the fewest vertices.
    steps : (n_vertices,) int64
        Steps of the example's vertices from the nearest vertex with the label; -1 if the label
        does not depend on them.
    radius : int
        The label depends on an edge between two of these vertices if one of them is less than so
        many steps away.
    """

    target: Any
    words: str
    channel: str
    iteration: int
    weight: float
    attribution: float
    n_graphs: int
    graph: int
    steps: Ints
    radius: int

    @property
    def vertices(self) -> Ints:
        """The vertices of the example that have the label."""
        return np.flatnonzero(self.steps == 0)

    @property
    def seen(self) -> Ints:
        """The vertices of the example that the label depends on, with those that have it."""
        return np.flatnonzero(self.steps >= 0)


def substructures(
    model: Any,
    graphs: Any,
    *,
    target: Any = None,
    n_most: int = 10,
    names: Mapping[str, str] | None = None,
) -> list[Substructure]:
    """Find the WL labels with the largest attributions for and against each class.

    Parameters
    ----------
    model : any model of this library, or FDGNNSearchCV
        A fitted model. Base models without WL features have no substructures; they count only in
        the average.
    graphs : GraphBatch or list of graphs
        Graphs over which weights are averaged, and from which examples are taken.
    target : class label, str, int or pair, optional
        A class; by default all classes. (With two classes, what counts for one counts against the
        other.) For several targets, the name or the number of a target, or a pair of it and a
        class.
    n_most : int, default=10
        Maximum number of WL labels for each class, and against it.
    names : mapping, optional
        Names for vertex labels, given as text: ``{"0": "C", "1": "N"}``.

    Returns
    -------
    list of Substructure
        For each target, the WL labels that count for it, by decreasing weight, and then those that
        count against it. Empty if no base model has WL features.

    Examples
    --------
    >>> from fdgnn import GraphClassifier, substructures
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, motifs=("star", "clique"), random_state=0)
    >>> model = GraphClassifier("wl", "linear").fit(graphs, y)
    >>> [found.weight > 0 for found in substructures(model, graphs, target=1, n_most=1)]
    [True, False]
    """
    if n_most < 1:
        raise ValueError(f"n_most is {n_most}; give 1 or more")
    model, target, position = one_target(checked_model(model), target)
    batch = model._check_graphs(graphs)
    if target is not None:
        wanted = [number_of_score(model, target)]
    else:
        wanted = list(range(len(signs_of(model))))
    last = wanted[-1]
    rows, found = _occurrences(model, batch, last)
    chosen: list[Substructure] = []
    for number in wanted:
        own = found
        if number != last and model._n_outputs == 1:  # what is for one class is against the other
            own = found._replace(added=-found.added)
        elif number != last:
            rows, own = _occurrences(model, batch, number)
        classes = model.targets_[0].classes
        of = position if classes is None else classes[number : number + 1].tolist()[0]
        for sign in (1.0, -1.0):
            records: dict[Any, Substructure] = {}  # equal substructures are merged
            for one in _most(model, batch, names or {}, of, rows, own, sign, 2 * n_most):
                key = (one.words, one.n_graphs, one.graph, one.vertices.tobytes())
                same = records.get(key)
                if same is not None:
                    weight, each = same.weight + one.weight, same.attribution + one.attribution
                    one = replace(same, weight=weight, attribution=each)
                records[key] = one
            chosen += sorted(records.values(), key=lambda one: -abs(one.weight))[:n_most]
    return chosen


# ---------------------------------------------------------------------- counting


class _Occurrences(NamedTuple):
    """WL labels in graphs: arrays with an entry for each label of each graph and base model."""

    row: Ints  # position of the label's channel and iteration in the rows
    color: Colors
    graph: Ints
    added: Floats  # to the score
    often: Ints  # vertices of the graph with the label
    size: Ints  # vertices of the graph


def _occurrences(
    model: Any, graphs: GraphBatch, number: int
) -> tuple[list[LabelRow], _Occurrences]:
    """Return all rows, and what each WL label adds to a score in each graph."""
    rows: dict[LabelRow, int] = {}
    parts: list[_Occurrences] = []
    for part, members in chunks(graphs):
        for fitted in model.estimators_:
            if not _wl_encoders(fitted.encoder):
                continue
            found = fitted.encoder.attribute(part, model.n_jobs)
            seen, same = fitted.seen(found.features, part), np.full(len(part), number)
            ways = directions_of(fitted, found, seen, signs_of(model), same)
            share = 1.0 / len(model.estimators_)
            parts += _of_parts(found, ways.own, ways.of_graph, members, share, rows)
    if not parts:
        nothing: list[Any] = [np.empty(0)] * len(_Occurrences._fields)
        return [], _Occurrences(*nothing)
    return list(rows), _Occurrences(*map(np.concatenate, zip(*parts, strict=True)))


def _of_parts(
    found: Attribution, directions: Features, of_graph: Ints, positions: Ints, share: float,
    rows: dict[LabelRow, int],
) -> Iterator[_Occurrences]:  # fmt: skip
    """Yield the WL labels of graphs at these positions, one channel and iteration at a time."""
    if isinstance(found, UnionParts):
        for part, own, of in found.split(directions, of_graph):
            yield from _of_parts(part, own, of, positions, share, rows)
    if not isinstance(found, WLParts):
        return
    sizes, shares = np.diff(found.graphs.vertex_offsets), found.shares(directions, of_graph)
    for t, row in enumerate(found.rows):
        _, first, often = np.unique(found.groups[t], return_index=True, return_counts=True)
        graph = found.graphs.graph_of_vertex[first]
        number = np.full(len(first), rows.setdefault(row, len(rows)))
        added: Any = np.bincount(found.groups[t], shares[t]) * share
        color = found.colors[t][first]
        yield _Occurrences(number, color, positions[graph], added, often, sizes[graph])


# ---------------------------------------------------------------------- choosing


def _most(
    model: Any, graphs: GraphBatch, names: Mapping[str, str], target: Any,
    rows: list[LabelRow], found: _Occurrences, sign: float, n_most: int,
) -> list[Substructure]:  # fmt: skip
    """Return the labels that count most for a target (sign 1), or against it (sign -1)."""
    if not rows:
        return []
    order = np.lexsort((found.size, found.often, found.color, found.row))
    row, color, graph, added, often, size = (array[order] for array in found)
    new = (row[1:] != row[:-1]) | (color[1:] != color[:-1])
    starts = np.flatnonzero(np.concatenate([[True], new]))
    ends = np.append(starts[1:], len(row))
    total = sign * np.add.reduceat(added, starts)
    rank = np.argsort(np.argsort([f"{r.channel} {r.iteration:9}" for r in rows]))[row[starts]]
    best = np.lexsort((color[starts], rank, -total))
    chosen = []
    for i in best[: min(n_most, np.count_nonzero(total > 0))].tolist():
        own = np.arange(starts[i], ends[i])
        same = own[sign * added[own] > 0]  # in graphs in which it counts in this direction
        example = int(graph[same[np.lexsort((graph[same], size[same], often[same]))[0]]])
        weight, n_graphs = sign * float(total[i]), len(np.unique(graph[own]))
        one, label = graphs[[example]], rows[row[starts[i]]]
        encoder, vertices = _find_label(model, one, label, int(color[starts[i]]))
        # Triangles are edges between neighbors; all other first labels follow from outgoing edges.
        between = "triangles" in label.channel or "linked pairs" in label.channel
        edge_reach = max(reach(label.channel), 2 if between else 0)
        chosen.append(
            Substructure(
                target=target,
                words=wl_label_in_words(encoder, one, label, int(vertices[0]), names),
                channel=label.channel,
                iteration=label.iteration,
                weight=weight / len(graphs),
                attribution=weight / n_graphs,
                n_graphs=n_graphs,
                graph=example,
                steps=steps_from(one, vertices, label.iteration + reach(label.channel)),
                radius=label.iteration + edge_reach,
            )
        )
    return chosen


def _find_label(model: Any, graph: GraphBatch, row: LabelRow, color: int) -> tuple[WLCounts, Ints]:
    """Return the first encoder that has a WL label in a graph, and the vertices with the label."""
    return next(
        (encoder, vertices)
        for fitted in model.estimators_
        for encoder in _wl_encoders(fitted.encoder)
        for found in [encoder.attribute(graph)]
        for known, colors in zip(found.rows, found.colors, strict=True)
        for vertices in [np.flatnonzero(colors == np.uint64(color))]
        if known == row and len(vertices)
    )


def _wl_encoders(encoder: Encoder) -> list[WLCounts]:
    if isinstance(encoder, EncoderUnion):
        return [e for block in encoder.blocks_ for e in _wl_encoders(block.encoder)]
    return [encoder] if isinstance(encoder, WLCounts) else []


def steps_from(graph: GraphBatch, vertices: Ints, at_most: int) -> Ints:
    """Return distances of vertices from the nearest of these; -1 for those further away.

    WL labels see along edges and against them.
    """
    A = graph.adjacency()
    A.data = np.ones(len(A.data))
    far = dijkstra(A, directed=False, indices=vertices, unweighted=True, min_only=True)
    return np.where(far <= at_most, far, -1).astype(np.int64)
