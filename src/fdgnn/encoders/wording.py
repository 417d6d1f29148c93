"""First colors in words: what a color says of its own vertex before any round, and how far it sees.

Numbers of a vertex are colors in bins, so words name the range of a bin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from fdgnn.encoders.channels import log_bin_ends, structure_numbers
from fdgnn.graphs import GraphBatch


def labels_in_words(graphs: GraphBatch, names: Mapping[str, str]) -> list[str]:
    """Say the label of each vertex; `names` is what labels, as text, are called."""
    assert graphs.labels is not None
    texts = [str(label) for label in graphs.labels.tolist()]
    return [names.get(text, f"label {text}") for text in texts]


def features_in_words(graphs: GraphBatch, channel: str) -> list[str]:
    """Say in which bin a feature of each vertex is."""
    assert graphs.features is not None
    name, _, coarse = channel.partition(", ")
    if name == "features":
        return ["all features, in coarse bins"] * graphs.n_vertices
    column = graphs.features[:, int(name.split()[1])]
    about = "in the coarse bin of" if coarse else "in the bin of"
    return [f"{name} {about} {value:.3g}" for value in column.tolist()]


def structure_in_words(graphs: GraphBatch, channel: str, n_jobs: int | None) -> list[str]:
    """Say the bin of a number, or of two, that describes the neighborhood of each vertex."""
    numbers = structure_numbers(graphs, n_jobs)
    numbers["log degree"] = numbers["degree"]
    parts = [
        [_WORDS[name](name, int(bin_)) for bin_ in numbers[name]] for name in channel.split(", ")
    ]
    return [" and ".join(words) for words in zip(*parts, strict=True)]


def reach(channel: str) -> int:
    """How many steps from its vertex the first color of a channel looks."""
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
