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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import dijkstra

from fdgnn.arrays import Features, Floats, Ints
from fdgnn.encoders import Attribution, Encoder, EncoderUnion, WLCounts
from fdgnn.encoders.label_counts import WLLabels, degrees, log_bin_ends
from fdgnn.encoders.union import UnionParts
from fdgnn.encoders.wl import LabelRow, WLParts, structure_numbers
from fdgnn.explanations.attributions import chosen_score, chunks, directions_of, signs_of
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.smiles import pharmacophore_names
from fdgnn.texts import listed


def _first_label_in_words(
    encoder: WLCounts, graphs: GraphBatch, channel: str, names: Mapping[str, str]
) -> list[str]:
    """Return the meaning of the first WL label of each vertex, in one channel.

    `names` is what vertex labels, as text, are called.
    """
    labels = None if graphs.labels is None else list(map(str, graphs.labels.tolist()))
    features = graphs.features
    if channel == "label":
        if labels is None and features is not None:  # columns beside the features
            n_columns = encoder.graph_kind_.n_label_columns
            known = range(n_columns) if graphs.schema is None else graphs.schema.label_columns
            rows = features[:, -n_columns:].tolist()
            labels = [str(known[row.index(1.0)]) if 1.0 in row else "unknown" for row in rows]
        return [names.get(text, f"label {text}") for text in labels or ()]
    if channel == "element" and labels is not None:
        return [text.split(" ")[0] for text in labels]
    if channel == "pharmacophore" and graphs.smiles is not None:
        names_of = pharmacophore_names()
        return [names_of[c] for c in graphs.smiles.pharmacophores(graphs.graph_of_vertex).tolist()]
    if channel == "vertex":
        return ["any vertex"] * graphs.n_vertices
    if channel.startswith("feature") and features is not None:
        name, _, coarse = channel.partition(", ")
        if name == "features":
            return ["all features, in coarse bins"] * graphs.n_vertices
        about = "in the coarse bin of" if coarse else "in the bin of"
        column = features[:, int(name.split()[1])].tolist()
        return [f"{name} {about} {value:.3g}" for value in column]
    if channel == encoder._first == "degree":
        return [f"degree {degree}" for degree in degrees(graphs).tolist()]
    # The bins of one or two numbers that describe the neighborhood of a vertex.
    numbers = structure_numbers(graphs, encoder.n_jobs)
    numbers["log degree"] = numbers["degree"]
    parts = [
        [_bin_in_words(name, int(bin_)) for bin_ in numbers[name]] for name in channel.split(", ")
    ]
    return [" and ".join(words) for words in zip(*parts, strict=True)]


#: Numbers that are shares, in twentieths, and numbers that are not whole.
_SHARES = {
    "degree over graph size": "degree, of the graph's size",
    "linked pairs of neighbors": "pairs of neighbors that are linked",
}
_REAL = ("neighbors' mean degree", "deviation of neighbors' degrees")


def _bin_in_words(name: str, bin_: int) -> str:
    """Return what is known of a number whose bin is known."""
    if name in _SHARES:
        percent = "100 %" if bin_ == 20 else f"{5 * bin_} to {5 * bin_ + 5} %"
        return f"{_SHARES[name]}: {percent}"
    low, high = log_bin_ends(bin_)
    if name in _REAL:
        return f"{name} {low:.3g} to {high:.3g}"
    first, last = math.ceil(low - 1e-9), math.ceil(high - 1e-9) - 1
    whole = str(first) if first >= last else f"{first} to {last}"
    if name == "triangles":
        return f"in {whole} {'triangle' if whole == '1' else 'triangles'}"
    return f"{name.removeprefix('log ')} {whole}"


def reach(channel: str) -> int:
    """Return how many steps from its vertex the first WL label of a channel sees."""
    if "neighbors' " in channel:
        return 2
    return int(any(part in channel for part in ("degree", "triangles", "linked pairs")))


_MOST_KINDS = 5  # of neighbors that are named


def wl_label_in_words(
    encoder: WLCounts, graph: GraphBatch, row: LabelRow, vertex: int, names: Mapping[str, str]
) -> str:
    """Describe the WL label of a vertex of one graph, in a channel and iteration."""
    first = _first_label_in_words(encoder, graph, row.channel, names)
    if row.iteration == 0:
        return first[vertex]
    if row.iteration == 1:
        return f"{first[vertex]}, {_neighbors(encoder, graph, first, vertex)}"
    return f"{first[vertex]}, with all that is up to {row.iteration} steps away"


def _neighbors(encoder: WLCounts, graph: GraphBatch, first: list[str], vertex: int) -> str:
    """List the neighbors of a vertex, with the labels of the edges to them."""
    own = range(int(graph.indptr[vertex]), int(graph.indptr[vertex + 1]))
    arcs = [(a, int(graph.neighbors[a]), "from " * graph.directed) for a in own]
    if graph.directed:
        ends = np.repeat(np.arange(graph.n_vertices), np.diff(graph.indptr))
        leaving = np.flatnonzero(graph.neighbors == vertex)
        arcs += [(int(a), int(ends[a]), "to ") for a in leaving]
    labels, kinds = graph.edge_labels if encoder.uses_edge_labels else None, Counter[str]()
    for a, u, way in arcs:
        kinds[f"{way}{first[u]}" + ("" if labels is None else f" (edge {labels[a]})")] += 1
    if not kinds:
        return "without neighbors"
    named = [
        words if n == 1 else f"{n} \N{MULTIPLICATION SIGN} {words}"
        for words, n in sorted(kinds.items())
    ]
    if len(named) > _MOST_KINDS:
        named = [*named[: _MOST_KINDS - 1], f"{len(named) - _MOST_KINDS + 1} other kinds"]
    return f"{'with edges' if graph.directed else 'next to'} {listed(named)}"


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
        other.) For multi-target models, the name or index of a target, or a pair (target, class).
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
    model, chosen, position = chosen_score(model, target)
    batch = model._check_graphs(graphs)
    parts = [part for fitted in model.estimators_ for part in parts_of(fitted.encoder)]
    if len(batch) == 0 or not any(isinstance(part, WLCounts) for part in parts):
        return []
    wanted = range(len(signs_of(model))) if chosen is None else [chosen]
    classes, last = model.targets_[0].classes, wanted[-1]
    rows, found = _occurrences(model, batch, last)
    result: list[Substructure] = []
    for number in wanted:
        own = found
        if number != last and model._n_outputs == 1:  # what is for one class is against the other
            own = found._replace(added=-found.added)
        elif number != last:
            rows, own = _occurrences(model, batch, number)
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
            result += sorted(records.values(), key=lambda one: -abs(one.weight))[:n_most]
    return result


# ---------------------------------------------------------------------- counting


class _Occurrences(NamedTuple):
    """WL labels in graphs: arrays with an entry for each label of each graph and base model."""

    row: Ints  # position of the label's channel and iteration in the rows
    color: WLLabels
    graph: Ints
    added: Floats  # to the score
    often: Ints  # vertices of the graph with the label
    size: Ints  # vertices of the graph


def _occurrences(
    model: Any, graphs: GraphBatch, number: int
) -> tuple[list[LabelRow], _Occurrences]:
    """Return all rows, and what each WL label adds to a score in each graph."""
    rows: dict[LabelRow, int] = {}
    found: list[tuple[Any, ...]] = []
    share = 1.0 / len(model.estimators_)
    for chunk, members in chunks(graphs):
        for fitted in model.estimators_:
            if not any(isinstance(part, WLCounts) for part in parts_of(fitted.encoder)):
                continue
            ways = directions_of(model, fitted, chunk, np.full(len(chunk), number))
            for part, directions, of_graph in _wl_parts(ways.found, ways.own, ways.of_graph):
                each = part.shares(directions, of_graph)
                sizes = np.diff(part.graphs.vertex_offsets)
                for t, row in enumerate(part.rows):
                    group = part.groups[t]
                    _, first, often = np.unique(group, return_index=True, return_counts=True)
                    graph, color = part.graphs.graph_of_vertex[first], part.labels[t][first]
                    position = np.full(len(first), rows.setdefault(row, len(rows)))
                    added = np.bincount(group, each[t]) * share
                    found.append((position, color, members[graph], added, often, sizes[graph]))
    return list(rows), _Occurrences(*map(np.concatenate, zip(*found, strict=True)))


def _wl_parts(
    found: Attribution, directions: Features, of_graph: Ints
) -> Iterator[tuple[WLParts, Features, Ints]]:
    """Yield the WL labels of an encoder or of those that a union joins, with their directions."""
    if isinstance(found, UnionParts):
        for part, own, of in found.split(directions, of_graph):
            yield from _wl_parts(part, own, of)
    elif isinstance(found, WLParts):
        yield found, directions, of_graph


# ---------------------------------------------------------------------- choosing


def _most(
    model: Any, graphs: GraphBatch, names: Mapping[str, str], target: Any,
    rows: list[LabelRow], found: _Occurrences, sign: float, n_most: int,
) -> list[Substructure]:  # fmt: skip
    """Return the labels that count most for a target (sign 1), or against it (sign -1)."""
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
        for encoder in parts_of(fitted.encoder)
        if isinstance(encoder, WLCounts)
        for found in [encoder.attribute(graph)]
        for known, colors in zip(found.rows, found.labels, strict=True)
        for vertices in [np.flatnonzero(colors == np.uint64(color))]
        if known == row and len(vertices)
    )


def parts_of(encoder: Encoder) -> list[Encoder]:
    """Return the encoder itself, or those that a union joins."""
    if isinstance(encoder, EncoderUnion):
        return [part for block in encoder.blocks_ for part in parts_of(block.encoder)]
    return [encoder]


def steps_from(graph: GraphBatch, vertices: Ints, at_most: int) -> Ints:
    """Return distances of vertices from the nearest of these; -1 for those further away.

    WL labels see along edges and against them.
    """
    A = graph.adjacency()
    A.data = np.ones(len(A.data))
    far = dijkstra(A, directed=False, indices=vertices, unweighted=True, min_only=True)
    return np.where(far <= at_most, far, -1).astype(np.int64)
