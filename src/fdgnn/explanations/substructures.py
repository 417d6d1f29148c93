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


def _first_label_in_words(
    encoder: WLCounts, graphs: GraphBatch, channel: str, names: Mapping[str, str]
) -> list[str]:
    """Return the meaning of the first WL label of each vertex, in one channel."""
    if channel == "label":
        return _labels_in_words(graphs, names)
    if channel == "element" and graphs.labels is not None:
        return [text.split(" ")[0] for text in map(str, graphs.labels.tolist())]
    if channel == "pharmacophore" and graphs.smiles is not None:
        names_of = pharmacophore_names()
        return [names_of[c] for c in graphs.smiles.pharmacophores(graphs.graph_of_vertex).tolist()]
    if channel == "vertex":
        return ["any vertex"] * graphs.n_vertices
    if channel.startswith("feature"):
        return _features_in_words(graphs, channel)
    if channel == encoder._first == "degree":
        return [f"degree {degree}" for degree in degrees(graphs).tolist()]
    return _structure_in_words(graphs, channel, encoder.n_jobs)


def _labels_in_words(graphs: GraphBatch, names: Mapping[str, str]) -> list[str]:
    """Return the label of each vertex in words; `names` is what labels, as text, are called."""
    assert graphs.labels is not None
    texts = [str(label) for label in graphs.labels.tolist()]
    return [names.get(text, f"label {text}") for text in texts]


def _features_in_words(graphs: GraphBatch, channel: str) -> list[str]:
    """Return in words in which bin a feature of each vertex is."""
    assert graphs.features is not None
    name, _, coarse = channel.partition(", ")
    if name == "features":
        return ["all features, in coarse bins"] * graphs.n_vertices
    column = graphs.features[:, int(name.split()[1])]
    about = "in the coarse bin of" if coarse else "in the bin of"
    return [f"{name} {about} {value:.3g}" for value in column.tolist()]


def _structure_in_words(graphs: GraphBatch, channel: str, n_jobs: int | None) -> list[str]:
    """Return the bin of one or two numbers that describe the neighborhood of each vertex."""
    numbers = structure_numbers(graphs, n_jobs)
    numbers["log degree"] = numbers["degree"]
    parts = [
        [_WORDS[name](name, int(bin_)) for bin_ in numbers[name]] for name in channel.split(", ")
    ]
    return [" and ".join(words) for words in zip(*parts, strict=True)]


def reach(channel: str) -> int:
    """Return how many steps from its vertex the first WL label of a channel sees."""
    found = [steps for part, steps in _REACH.items() if part in channel]
    return max(found, default=0)


def edge_reach(channel: str) -> int:
    """Edges are part of a first WL label if one end is less than so many steps away.

    Triangles are edges between neighbors; all else is told by edges that lead away.
    """
    between = "triangles" in channel or "linked pairs" in channel
    return max(reach(channel), 2 if between else 0)


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
    kinds = Counter(_neighbors_one_by_one(encoder, graph, first, vertex))
    if not kinds:
        return "without neighbors"
    named = [
        words if n == 1 else f"{n} \N{MULTIPLICATION SIGN} {words}"
        for words, n in sorted(kinds.items())
    ]
    if len(named) > _MOST_KINDS:
        named = [*named[: _MOST_KINDS - 1], f"{len(named) - _MOST_KINDS + 1} other kinds"]
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f"{'with arcs' if graph.directed else 'next to'} {listed}"


def _neighbors_one_by_one(
    encoder: WLCounts, graph: GraphBatch, first: list[str], vertex: int
) -> list[str]:
    arcs = [(a, int(u), "") for a, u in _entering(graph, vertex)]
    if graph.directed:
        arcs = [(a, u, "from ") for a, u, _ in arcs]
        ends = np.repeat(np.arange(graph.n_vertices), np.diff(graph.indptr))
        leaving = np.flatnonzero(graph.neighbors == vertex)
        arcs += [(int(a), int(ends[a]), "to ") for a in leaving]
    return [f"{way}{first[u]}{_edge(encoder, graph, a)}" for a, u, way in arcs]


def _entering(graph: GraphBatch, vertex: int) -> list[tuple[int, int]]:
    arcs = range(int(graph.indptr[vertex]), int(graph.indptr[vertex + 1]))
    return [(a, int(graph.neighbors[a])) for a in arcs]


def _edge(encoder: WLCounts, graph: GraphBatch, arc: int) -> str:
    codes, values = graph.edge_label_codes, graph.edge_label_values
    if not encoder.uses_edge_labels or codes is None or values is None:
        return ""
    return f" (edge {values[codes[arc]]})"


_Key = tuple[LabelRow, int]  # channel and iteration of a WL label, and the number of a score


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
    contribution : float
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
    contribution: float
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
    """Find the WL labels that count most for and against each class.

    Parameters
    ----------
    model : any model of this library, or FDGNNSearchCV
        Fitted. Base models without WL features have no substructures; they count in the average
        only.
    graphs : GraphBatch or list of graphs
        Over these graphs weights are averaged, and examples are taken from them.
    target : class label, str, int or pair, optional
        One class; by default all classes, one after the other. (Of two classes, what counts for one
        counts against the other.) For several targets, the name or the number of one, or a pair of
        it and a class.
    n_most : int, default=10
        How many for each class, and how many against it, at most.
    names : mapping, optional
        What vertex labels, as text, are called: ``{"0": "C", "1": "N"}``.

    Returns
    -------
    list of Substructure
        For each target those that count for it, the largest weight first, and then those that
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
    writer = _Writer(model, batch, names or {}, position)
    last = wanted[-1]
    rows, found = _occurrences(model, batch, last)
    told: list[Substructure] = []
    for number in wanted:
        own = found
        if number != last and model._n_outputs == 1:  # what is for one class is against the other
            own = found._replace(added=-found.added)
        elif number != last:
            rows, own = _occurrences(model, batch, number)
        for sign in (1.0, -1.0):
            told += writer.told(number, _most(rows, own, sign, 2 * n_most))[:n_most]
    return told


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


class _Chosen(NamedTuple):
    row: LabelRow
    color: int
    total: float
    n_graphs: int
    graph: int


def _most(rows: list[LabelRow], found: _Occurrences, sign: float, n_most: int) -> list[_Chosen]:
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
        example = same[np.lexsort((graph[same], size[same], often[same]))[0]]
        n_graphs = len(np.unique(graph[own]))
        first = starts[i]
        chosen.append(
            _Chosen(rows[row[first]], int(color[first]), sign * float(total[i]), n_graphs,
                    int(graph[example]))
        )  # fmt: skip
    return chosen


# ---------------------------------------------------------------------- telling


class _Writer:
    """Finds a WL label in its example, and says what it is."""

    def __init__(
        self, model: Any, graphs: GraphBatch, names: Mapping[str, str], position: int
    ) -> None:
        self.target, self.position = model.targets_[0], position
        self.graphs, self.names = graphs, names
        self.encoders = [e for fitted in model.estimators_ for e in _wl_encoders(fitted.encoder)]

    def told(self, number: int, chosen: list[_Chosen]) -> list[Substructure]:
        """Return the records of chosen WL labels; those that say the same become one."""
        records: dict[Any, Substructure] = {}
        for one in (self._substructure(number, each) for each in chosen):
            key = (one.words, one.n_graphs, one.graph, one.vertices.tobytes())
            same = records.get(key)
            if same is not None:
                weight, each = same.weight + one.weight, same.contribution + one.contribution
                one = replace(same, weight=weight, contribution=each)
            records[key] = one
        return sorted(records.values(), key=lambda one: -abs(one.weight))

    def _substructure(self, number: int, chosen: _Chosen) -> Substructure:
        graph = self.graphs[[chosen.graph]]
        encoder, own = self._found(graph, chosen)
        steps = steps_from(graph, own, chosen.row.iteration + reach(chosen.row.channel))
        classes = self.target.classes
        return Substructure(
            target=self.position if classes is None else classes[number : number + 1].tolist()[0],
            words=wl_label_in_words(encoder, graph, chosen.row, int(own[0]), self.names),
            channel=chosen.row.channel,
            iteration=chosen.row.iteration,
            weight=chosen.total / len(self.graphs),
            contribution=chosen.total / chosen.n_graphs,
            n_graphs=chosen.n_graphs,
            graph=chosen.graph,
            steps=steps,
            radius=chosen.row.iteration + edge_reach(chosen.row.channel),
        )

    def _found(self, graph: GraphBatch, chosen: _Chosen) -> tuple[WLCounts, Ints]:
        """The encoder that knows the WL label, and the vertices that have it."""
        for encoder in self.encoders:
            found = encoder.attribute(graph)
            for row, colors in zip(found.rows, found.colors, strict=True):
                own = np.flatnonzero(colors == np.uint64(chosen.color))
                if row == chosen.row and len(own):
                    return encoder, own
        raise AssertionError("a color is not in its own example")


def _wl_encoders(encoder: Encoder) -> list[WLCounts]:
    if isinstance(encoder, EncoderUnion):
        return [e for block in encoder.blocks_ for e in _wl_encoders(block.encoder)]
    return [encoder] if isinstance(encoder, WLCounts) else []


def steps_from(graph: GraphBatch, vertices: Ints, at_most: int) -> Ints:
    """Steps of each vertex of one graph from the nearest of these; -1 for those further away.

    WL labels see along edges and against them.
    """
    A = graph.adjacency()
    A.data = np.ones(len(A.data))
    far = dijkstra(A, directed=False, indices=vertices, unweighted=True, min_only=True)
    return np.where(far <= at_most, far, -1).astype(np.int64)
