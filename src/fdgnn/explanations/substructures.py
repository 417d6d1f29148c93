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
from collections import Counter, defaultdict
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
    """Edges are part of a first color if one end is less than so many steps away.

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
    if row.round == 0:
        return first[vertex]
    if row.round == 1:
        return f"{first[vertex]}, {_neighbors(encoder, graph, first, vertex)}"
    return f"{first[vertex]}, with all that is up to {row.round} steps away"


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
    round : int
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
    round: int
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
    tallies = _tallies(model, batch, wanted)
    writer = _Writer(model, batch, names or {}, position)
    return [
        one
        for number in wanted
        for sign in (1.0, -1.0)
        for one in writer.told(number, _most(tallies, number, sign, 2 * n_most))[:n_most]
    ]


# ---------------------------------------------------------------------- counting


class _Tally(NamedTuple):
    """Colors of one channel and round, each with what it adds; arrays over colors."""

    color: Colors
    total: Floats  # over all graphs
    n_graphs: Ints
    example_for: Ints  # (k, 3): vertices of the color, of the graph, and the graph's position
    example_against: Ints


_NONE = np.iinfo(np.int64).max  # in place of an example that there is not


def _tallies(model: Any, graphs: GraphBatch, wanted: list[int]) -> dict[_Key, _Tally]:
    """Add attributions up: over graphs, and over base models that have the same WL labels."""
    if len(wanted) == 2 and model._n_outputs == 1:  # what is for one class is against the other
        one = _tallies(model, graphs, wanted[1:])
        return one | {(row, 0): _mirrored(tally) for (row, _), tally in one.items()}
    by_model: dict[tuple[int, _Key], list[_Tally]] = defaultdict(list)
    signs = signs_of(model)
    share = 1.0 / len(model.estimators_)
    for part, members in chunks(graphs):
        for n, fitted in enumerate(model.estimators_):
            if not _wl_encoders(fitted.encoder):
                continue
            found = fitted.encoder.attribute(part, model.n_jobs)
            seen = fitted.seen(found.features, part)
            for number in wanted:
                same = np.full(len(part), number)
                ways = directions_of(fitted, found, seen, signs, same)
                for row, tally in _rows(found, ways.own, ways.of_graph, members, share):
                    by_model[n, (row, number)].append(tally)
    tallies: dict[_Key, list[_Tally]] = defaultdict(list)
    for (_, key), found_in_chunks in by_model.items():
        tallies[key].append(_merged(found_in_chunks, same_graphs=False))
    return {key: _merged(several, same_graphs=True) for key, several in tallies.items()}


def _rows(
    found: Attribution, directions: Features, of_graph: Ints, positions: Ints, share: float
) -> Iterator[tuple[LabelRow, _Tally]]:
    """Tally the colors of graphs at these positions, by channel and round."""
    if isinstance(found, UnionParts):
        for part, own, of in found.split(directions, of_graph):
            yield from _rows(part, own, of, positions, share)
    if not isinstance(found, WLParts):
        return
    graphs = found.graphs
    of_vertex = graphs.graph_of_vertex
    sizes = np.diff(graphs.vertex_offsets)
    shares = found.shares(directions, of_graph) * share
    for t, row in enumerate(found.rows):
        groups = found.groups[t]
        _, first, often = np.unique(groups, return_index=True, return_counts=True)
        graph = of_vertex[first]
        examples = np.stack([often, sizes[graph], positions[graph]], axis=1)
        yield row, _by_color(found.colors[t][first], _sums(groups, shares[t]), examples)


def _by_color(color: Colors, added: Floats, examples: Ints) -> _Tally:
    """Tally what each color adds in each graph."""
    distinct, inverse, n_graphs = np.unique(color, return_inverse=True, return_counts=True)
    total = _sums(inverse, added)
    no = np.full_like(examples, _NONE)
    kinds = [np.where((side > 0)[:, None], examples, no) for side in (added, -added)]
    best = [_first_of_each(inverse, kind) for kind in kinds]
    return _Tally(distinct, total, n_graphs, *best)


def _sums(group: Ints, values: Floats) -> Floats:
    return np.asarray(np.bincount(group, values), dtype=np.float64)


def _first_of_each(group: Ints, examples: Ints) -> Ints:
    """The smallest example of each group."""
    order = np.lexsort((*examples.T[::-1], group))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(group[order]) > 0]))
    return examples[order[starts]]


def _merged(tallies: list[_Tally], *, same_graphs: bool) -> _Tally:
    """Add tallies of other graphs up, or those of other networks for the same graphs."""
    if len(tallies) == 1:
        return tallies[0]
    color = np.concatenate([t.color for t in tallies])
    distinct, inverse = np.unique(color, return_inverse=True)
    counts = np.concatenate([t.n_graphs for t in tallies])
    n_graphs = np.zeros(len(distinct), dtype=np.int64)
    (np.maximum if same_graphs else np.add).at(n_graphs, inverse, counts)
    total = _sums(inverse, np.concatenate([t.total for t in tallies]))
    found = [
        _first_of_each(inverse, np.concatenate(examples))
        for examples in zip(*((t.example_for, t.example_against) for t in tallies), strict=True)
    ]
    return _Tally(distinct, total, n_graphs, *found)


def _mirrored(tally: _Tally) -> _Tally:
    total, examples = -tally.total, (tally.example_against, tally.example_for)
    return _Tally(tally.color, total, tally.n_graphs, *examples)


# ---------------------------------------------------------------------- choosing


class _Chosen(NamedTuple):
    row: LabelRow
    color: int
    total: float
    n_graphs: int
    graph: int


def _most(tallies: dict[_Key, _Tally], number: int, sign: float, n_most: int) -> list[_Chosen]:
    """Those that count most for a target (sign 1), or against it (sign -1)."""
    rows = [(row, tally) for (row, of), tally in tallies.items() if of == number]
    found = [one for row, tally in rows for one in _top(row, tally, sign, n_most)]
    found.sort(key=lambda c: (-sign * c.total, c.row.channel, c.row.round, c.color))
    return found[:n_most]


def _top(row: LabelRow, tally: _Tally, sign: float, n_most: int) -> Iterator[_Chosen]:
    examples = tally.example_for if sign > 0 else tally.example_against
    for i in np.argsort(-sign * tally.total, kind="stable")[:n_most].tolist():
        if sign * tally.total[i] > 0:
            total, graph = float(tally.total[i]), int(examples[i, 2])
            yield _Chosen(row, int(tally.color[i]), total, int(tally.n_graphs[i]), graph)


# ---------------------------------------------------------------------- telling


class _Writer:
    """Finds a color in its example, and says what it is."""

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
        steps = steps_from(graph, own, chosen.row.round + reach(chosen.row.channel))
        classes = self.target.classes
        return Substructure(
            target=self.position if classes is None else classes[number : number + 1].tolist()[0],
            words=wl_label_in_words(encoder, graph, chosen.row, int(own[0]), self.names),
            channel=chosen.row.channel,
            round=chosen.row.round,
            weight=chosen.total / len(self.graphs),
            contribution=chosen.total / chosen.n_graphs,
            n_graphs=chosen.n_graphs,
            graph=chosen.graph,
            steps=steps,
            radius=chosen.row.round + edge_reach(chosen.row.channel),
        )

    def _found(self, graph: GraphBatch, chosen: _Chosen) -> tuple[WLCounts, Ints]:
        """The encoder that knows the color, and the vertices that have it."""
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

    Colors see along arcs and against them.
    """
    A = graph.adjacency()
    A.data = np.ones(len(A.data))
    far = dijkstra(A, directed=False, indices=vertices, unweighted=True, min_only=True)
    return np.where(far <= at_most, far, -1).astype(np.int64)
