"""Ways to look at an explanation: a number for each vertex, and words that say what it means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdgnn.explanations import Explanation
from fdgnn.graphs import Floats

SCALE = "contribution relative to the graph's mean"


@dataclass(frozen=True, eq=False)
class View:
    """One way to look at a graph.

    Attributes
    ----------
    what : str
        What is shown, in plain words.
    colors : str
        What red and blue mean.
    scale, short_scale : str
        What the scale counts, in one line, and in two short ones.
    values : (n_vertices,) float64
    """

    what: str
    colors: str
    scale: str
    short_scale: tuple[str, str]
    values: Floats


def views_of(explanation: Explanation, vertex: str = "vertex") -> list[View]:
    """Give contributions, and where groups were asked for, what is lost by deletion.

    `vertex` is what a vertex is called; those of molecules are atoms.
    """
    score = "score" if explanation.of_class else "value"
    found = [
        View(
            f"What each {vertex} adds to the {score}",
            f"red: more than the mean {vertex}, blue: less",
            SCALE,
            ("relative", "to mean"),
            relative(explanation),
        )
    ]
    if explanation.vertex_effects is not None:
        found.append(_lost(score, f"each {vertex}", explanation.vertex_effects))
    if explanation.groups:
        most = max(explanation.groups, key=lambda group: abs(group.effect))
        most_of_all = f"; most of all without: {most.name}"
        found.append(_lost(score, "each group", group_values(explanation), most_of_all))
    return found


def _lost(score: str, what: str, values: Floats, more: str = "") -> View:
    return View(
        f"What the {score} loses without {what}",
        f"red: the {score} falls, blue: it rises{more}",
        f"{score} lost without {what}",
        (score, "lost"),
        values,
    )


def relative(explanation: Explanation) -> Floats:
    """Contributions relative to their mean: what all vertices add alike tells nothing about one."""
    return np.asarray(explanation.vertices - explanation.vertices.mean())


def group_values(explanation: Explanation) -> Floats:
    """Give each vertex the effect of its group; of several, the one that is largest in size."""
    values = np.zeros(len(explanation.vertices))
    for group in sorted(explanation.groups, key=lambda group: abs(group.effect)):
        values[group.vertices] = group.effect
    return values
