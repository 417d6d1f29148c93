"""Explanations as pictures: any graph with matplotlib and networkx, molecules with RDKit.

Vertices are compared with each other, not with an empty graph. A red vertex adds more to the
explained score than the mean vertex of its graph does, and a blue one less. Color-blind people can
tell the two apart. The colors reach equally far on both sides, so white is the mean. An explanation
with groups is drawn once for each `View`, side by side, each with its own range of colors.
"""

from __future__ import annotations

import functools
import io
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path

from fdgnn.exceptions import GraphError
from fdgnn.explanations.attributions import Explanation
from fdgnn.extras import require
from fdgnn.graphs import Array, Floats, Graph, GraphBatch, Ints
from fdgnn.graphs.converters import as_batch
from fdgnn.threads import one_blas_thread

COLORS = ("#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b")
_MARGIN = 0.6  # around a picture, in lengths of an edge
_INCHES = 0.62  # length of an edge
_PANEL = (640, 560)  # pixels of a view of a molecule, and the share of its caption
_CAPTION = 0.16
_LINE = 80  # letters in a line of a caption
EXACT_UP_TO = 150  # vertices of a part up to which the slower and better layout is used
_GAP = 1.0  # between parts, in lengths of an edge
_WIDTH_TO_HEIGHT = 1.3


def draw_explanation(
    graph: Any,
    explanation: Explanation,
    path: str | os.PathLike[str] | IO[bytes] | None = None,
    *,
    ax: Any = None,
    labels: Sequence[Any] | None = None,
    title: str | None = None,
    format: str | None = None,
) -> Any:
    """Draw a graph with its vertices colored by their attributions, relative to the graph's mean.

    Edge effects, if the explanation has them, are colors of edges, on their own scale. With groups,
    there are two more views: the changes of the score without each vertex, and without each group.

    Parameters
    ----------
    graph : Graph, or object that `as_batch` accepts in a list
        The graph that was explained.
    explanation : Explanation
    path : path or file, optional
        File for the picture; the suffix selects PNG, SVG or PDF, unless `format` is given.
    ax : matplotlib Axes, optional
        Axes for the attributions, instead of a new figure.
    labels : sequence, optional
        Texts on the vertices; by default their labels, if they have any.
    title : str, optional
        By default the explained class or target, and its score. Formulas between dollar signs are
        typeset.
    format : str, optional
        "png", "svg" or "pdf".

    Returns
    -------
    matplotlib Axes
        The first, if there are several.
    """
    check_networkx()
    for part in ("collections", "colors", "figure", "patheffects"):
        require(f"matplotlib.{part}", "plot", "Pictures")
    mpl = require("matplotlib", "plot", "Pictures")
    batch = as_batch([graph])
    _check_size(explanation, batch.n_vertices)
    places = place_vertices(batch[0])
    views = views_of(explanation)[: None if ax is None else 1]
    axes = [ax]
    if ax is None:  # axes side by side in a new figure
        width, height = np.clip(_INCHES * (np.ptp(places, axis=0) + 2 * _MARGIN), (4.5, 3.4), 14)
        bars = 1.2 if explanation.edge_effects is None else 2.4
        size = (len(views) * (width + bars), height + (0.8 if len(views) > 1 else 0.0))
        figure = mpl.figure.Figure(figsize=size, layout="constrained")
        axes = list(np.atleast_1d(figure.subplots(1, len(views))))
    low, high = places.min(axis=0) - _MARGIN, places.max(axis=0) + _MARGIN
    shown = batch.labels if labels is None else labels
    for one, view in zip(axes, views, strict=True):
        _draw_edges(mpl, one, batch[0], places, explanation, effects=view is views[0])
        _draw_vertices(mpl, one, places, view, shown)
        one.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        one.set_axis_off()
        if len(views) > 1:
            one.set_title(f"{view.what}\n{literal(view.colors)}", fontsize="medium")
    heading = literal(_title(explanation)) if title is None else title
    (axes[0].set_title if len(views) == 1 else axes[0].figure.suptitle)(heading)
    if path is not None:
        axes[0].figure.savefig(path, dpi=150, format=format)
    return axes[0]


def draw_molecule(
    smiles: str,
    explanation: Explanation,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    format: str | None = None,
) -> bytes:
    """Draw a molecule by RDKit with its atoms colored by attributions, relative to the mean.

    With groups, there are two more views: the changes of the score without each atom, and without
    each group.

    Parameters
    ----------
    smiles : str
        The SMILES as read: atoms are counted in its order, hydrogens are implicit.
    explanation : Explanation
    path : path, optional
        File for the picture, ``.svg`` or ``.png``.
    title : str, optional
        By default the explained class or target, and its score.
    format : str, optional
        "png" or "svg"; by default the suffix of `path`, or "svg".

    Returns
    -------
    bytes
        The picture.
    """
    kind = format or ("svg" if path is None else Path(path).suffix.lower().removeprefix("."))
    if kind not in ("svg", "png"):
        raise ValueError(f"a molecule is drawn as .svg or .png, not as {'.' + kind!r}")
    what = "Pictures of molecules"
    draw = require("rdkit.Chem.Draw.rdMolDraw2D", "chem", what)
    molecule = require("rdkit.Chem", "chem", what).MolFromSmiles(smiles)
    if molecule is None:
        raise GraphError(f"the SMILES {smiles[:60]!r} cannot be parsed")
    _check_size(explanation, molecule.GetNumAtoms())
    panels, captions = [], []
    for view in views_of(explanation, "atom"):
        limit = _limit(view.values)
        panels.append({v: _color(x / limit) for v, x in enumerate(view.values.tolist())})
        captions.append(f"{view.what} (darkest color: {limit:.2g})\n{view.colors}")
    heading = textwrap.wrap(_title(explanation) if title is None else title, _LINE)
    captions[0] = "\n".join([*heading, captions[0]])
    width, height = _PANEL
    canvas = (draw.MolDraw2DCairo if kind == "png" else draw.MolDraw2DSVG)(
        width * len(panels), height, width, height
    )
    options = canvas.drawOptions()
    options.useBWAtomPalette()  # colors show what atoms add, not which element they are
    options.highlightRadius = 0.42
    options.fillHighlights = True
    options.legendFraction, options.legendFontSize = _CAPTION, 20
    canvas.DrawMolecules(
        [molecule] * len(panels),
        highlightAtoms=[list(panel) for panel in panels],
        highlightBonds=[[] for _ in panels],
        highlightAtomColors=panels,
        legends=captions,
    )
    canvas.FinishDrawing()
    found: Any = canvas.GetDrawingText()
    if not isinstance(found, bytes):  # RDKit's SVG declares itself Latin-1
        found = found.encode("latin-1", "xmlcharrefreplace")
    if path is not None:
        Path(path).write_bytes(found)
    return bytes(found)


def picture(
    graph: Graph, explanation: Explanation, ending: str, labels: Sequence[Any] | None = None
) -> bytes:
    """Return a picture of an explained graph, ``.svg`` or ``.png``, a molecule as a molecule."""
    kind = ending.removeprefix(".")
    if graph.smiles is not None:
        return draw_molecule(graph.smiles.text, explanation, format=kind)
    file = io.BytesIO()
    draw_explanation(graph, explanation, file, labels=labels, format=kind)
    return file.getvalue()


# ---------------------------------------------------------------------- shared


def _check_size(explanation: Explanation, n_vertices: int) -> None:
    if len(explanation.vertices) != n_vertices:
        raise GraphError(
            f"the explanation is of a graph with {len(explanation.vertices)} vertices, but this "
            f"one has {n_vertices}; draw the graph that was explained"
        )


_DESCRIPTORS = 5  # that add most, in a title


def _title(explanation: Explanation) -> str:
    score, base = explanation.score, explanation.base_score
    most = sorted(explanation.descriptors.items(), key=lambda item: -abs(item[1]))[:_DESCRIPTORS]
    beside = "".join(f"; {name} adds {own:.2f}" for name, own in most)
    return f"{explanation.speaks_for}: {score:.2f}; an empty graph has {base:.2f}{beside}"


def _limit(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0)) or 1.0


# ---------------------------------------------------------------------- any graph


def _draw_edges(
    mpl: Any, ax: Any, graph: Graph, places: Floats, explanation: Explanation, *, effects: bool
) -> None:
    edges, colors = explanation.edges, explanation.edge_effects
    if edges is None:
        edges = np.asarray(graph.edge_index)
        edges = edges if graph.directed else edges[:, edges[0] <= edges[1]]
    lines, ends = mpl.collections.LineCollection, places[edges.T]
    if not effects or colors is None or len(colors) == 0:
        ax.add_collection(lines(ends, colors="#999999", linewidths=1.5))
        return
    ax.add_collection(lines(ends, colors="#555555", linewidths=6))  # an outline
    colored = lines(ends, array=colors, cmap=_colormap(mpl), linewidths=4.5)
    colored.set_clim(-_limit(colors), _limit(colors))
    ax.add_collection(colored)
    ax.figure.colorbar(colored, ax=ax, shrink=0.8, label="what the edge adds to the score")


def _draw_vertices(
    mpl: Any, ax: Any, places: Floats, view: View, labels: Sequence[Any] | Array | None
) -> None:
    limit, size = _limit(view.values), float(np.clip(9000 / len(places), 30, 450))
    points = ax.scatter(
        *places.T,
        s=size,
        c=view.values,
        cmap=_colormap(mpl),
        norm=mpl.colors.Normalize(-limit, limit),
        edgecolors="#444444",
        linewidths=0.8,
        zorder=2,
        clip_on=False,
    )
    ax.figure.colorbar(points, ax=ax, shrink=0.8, label=view.what)
    halo = mpl.patheffects.withStroke(linewidth=2.5, foreground="white")  # over colors and edges
    for place, label in zip(places, () if labels is None else labels, strict=labels is not None):
        ax.annotate(
            literal(label),
            place,
            ha="center",
            va="center",
            fontsize=0.45 * float(np.sqrt(size)),
            path_effects=[halo],
        )


def literal(text: Any) -> str:
    """Escape text from files, so that Matplotlib does not take a dollar for a formula."""
    return str(text).replace("$", r"\$")


def _colormap(mpl: Any) -> Any:
    return mpl.colors.LinearSegmentedColormap.from_list("against and for", COLORS)


# ---------------------------------------------------------------------- molecules


def _color(share: float) -> tuple[float, ...]:
    """Return the scale's color at -1 to 1, as red, green and blue from 0 to 1."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in COLORS]) / 255
    at = np.linspace(-1, 1, len(COLORS))
    return tuple(float(np.interp(share, at, channel)) for channel in stops.T)


# ---------------------------------------------------------------------- what is shown


class View(NamedTuple):
    """One way to look at a graph: what is shown, what red and blue mean, and the values."""

    what: str
    colors: str
    values: Floats  # (n_vertices,)


def views_of(explanation: Explanation, vertex: str = "vertex") -> list[View]:
    """Return the views of an explanation: attributions, and, with groups, leave-out effects.

    `vertex` is what a vertex is called; those of molecules are atoms.
    """
    score = "score" if explanation.of_class else "value"
    what = f"Attribution of each {vertex} to the {score}"
    views = [View(what, f"red: more than the mean {vertex}, blue: less", relative(explanation))]
    what, colors = (
        f"Effect on the {score} of leaving out each",
        f"red: the {score} falls, blue: it rises",
    )
    if explanation.vertex_effects is not None:
        views.append(View(f"{what} {vertex}", colors, explanation.vertex_effects))
    if explanation.groups:
        most = max(explanation.groups, key=lambda group: abs(group.effect))
        colors += f"; largest effect: {most.name}"
        views.append(View(f"{what} group", colors, group_values(explanation)))
    return views


def relative(explanation: Explanation) -> Floats:
    """Return attributions relative to their mean, because a common constant is arbitrary."""
    return np.asarray(explanation.vertices - explanation.vertices.mean())


def group_values(explanation: Explanation) -> Floats:
    """Return for each vertex the effect of its group; if it has several, the largest effect."""
    values = np.zeros(len(explanation.vertices))
    for group in sorted(explanation.groups, key=lambda group: abs(group.effect)):
        values[group.vertices] = group.effect
    return values


# ---------------------------------------------------------------------- places of vertices


def place_vertices(graph: Graph) -> Floats:
    """Return places (n_vertices, 2) in units of a typical edge; equal graphs have equal places."""
    check_networkx()
    batch = GraphBatch.from_graphs([graph])
    A = batch.adjacency()
    A.data = np.ones(A.nnz)
    # Pairs (2, n_edges) of different neighbors, each once, in the order of the smaller one: neither
    # weights nor directions nor self-loops move a vertex.
    edges: Ints = np.array(sp.triu(A + A.T, 1).nonzero(), dtype=np.int64)
    n_parts, part_of = connected_components(A, directed=False)
    parts, places = [np.flatnonzero(part_of == p) for p in range(n_parts)], []
    # The optimizer's vectors are tiny: threads of BLAS would only wait for each other, and where
    # other programs keep the cores busy they wait most of the time.
    with one_blas_thread():
        for p, part in enumerate(parts):
            within = np.searchsorted(part, edges[:, part_of[edges[0]] == p])
            places.append(_place_part(len(part), within.tobytes()))
    corners = _packed(np.array([part.max(axis=0) for part in places]) + _GAP)
    result = np.empty((batch.n_vertices, 2))
    for part, own, corner in zip(parts, places, corners, strict=True):
        result[part] = own + corner
    return result


def check_networkx() -> None:
    """Raise MissingDependencyError if graphs cannot be laid out."""
    require("networkx", "plot", "Drawings of graphs")


@functools.lru_cache(maxsize=1000)
def _place_part(n: int, edges: bytes) -> Floats:
    """Place one connected part in the corner at (0, 0), with typical edges of length 1.

    `edges` has the bytes of an integer array (2, n_edges). Parts that repeat are placed once.
    """
    if n == 1:
        return np.zeros((1, 2))
    import networkx as nx

    ends = np.frombuffer(edges, dtype=np.int64).reshape(2, -1)
    A = sp.csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(n, n))
    if n <= EXACT_UP_TO:  # distances become numbers of edges
        # SciPy computes the distances for the layout ten times faster than networkx.
        distances = shortest_path(A, directed=False, unweighted=True).tolist()
        rows = {v: dict(enumerate(row)) for v, row in enumerate(distances)}
        by_vertex = nx.kamada_kawai_layout(nx.empty_graph(n), dist=rows)
    else:  # many vertices are placed by forces between them
        by_vertex = nx.spring_layout(nx.from_scipy_sparse_array(A), seed=0)
    places = np.array([by_vertex[v] for v in range(n)])
    # The longest direction is turned, without mirroring, so that it is from left to right.
    _, _, axes = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)
    if np.linalg.det(axes) < 0:
        axes[1] *= -1
    places = places @ axes.T
    lengths = np.linalg.norm(np.subtract(*places[ends]), axis=1)
    return np.asarray((places - places.min(axis=0)) / (np.median(lengths) or 1.0))


def _packed(sizes: Floats) -> Floats:
    """Return lower left corners (n, 2) of rectangles, packed in rows with the highest first."""
    width = max(sizes[:, 0].max(), np.sqrt(_WIDTH_TO_HEIGHT * sizes.prod(axis=1).sum()))
    corners = np.empty_like(sizes)
    x = y = row_height = 0.0
    for i in np.argsort(-sizes[:, 1], kind="stable"):
        if x > 0 and x + sizes[i, 0] > width:
            x, y, row_height = 0.0, y + row_height, 0.0
        corners[i] = x, y
        x += sizes[i, 0]
        row_height = max(row_height, sizes[i, 1])
    return corners
