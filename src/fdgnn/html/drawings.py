"""Graphs laid out for a page: places, edges, and what each vertex adds to the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Floats, Ints
from fdgnn.explanations import Explanation, explain, has_attributions
from fdgnn.explanations.drawing import EXACT_UP_TO, place_vertices, relative
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.html.report_data import Drawing
from fdgnn.html.words import clean, clipped

SIDE = 1000  # places are whole numbers from 0 to this
_VERTICES, LARGEST_DRAWN = 250, 600  # vertices of a drawn graph, at most; and of one that is needed
_EDGES = 3000  # of a drawn graph, at most
_BYTES = 1_000_000  # for all drawings together, about
_SECONDS = 10.0  # for all drawings together, about


def draw_graphs(
    model: Any,
    predicted: Ints | None,
    graphs: GraphBatch,
    needed: Ints,
    mapped: Ints,
    smiles: Sequence[str | None] | None,
) -> list[Drawing]:
    """Draw the graphs that are needed, and as many of the mapped ones as time and space allow.

    `predicted` are the positions of the predicted classes, which are explained. Drawings show
    attributions, so that there are none for models without these.
    """
    if not has_attributions(model):
        return []
    chosen = _chosen(graphs, needed, mapped)
    explained = _explanations(model, predicted, graphs, chosen)
    return [
        _drawing(g, graphs[g], explained[g], None if smiles is None else smiles[g])
        for g in chosen.tolist()
    ]


def _chosen(graphs: GraphBatch, needed: Ints, mapped: Ints) -> Ints:
    """Choose by size alone, small graphs first, so that all machines choose the same."""
    n = np.diff(graphs.vertex_offsets)
    m = np.diff(graphs.indptr[graphs.vertex_offsets])
    drawable = m <= (_EDGES if graphs.directed else 2 * _EDGES)
    must = needed[drawable[needed] & (n[needed] <= LARGEST_DRAWN)]
    may = np.setdiff1d(mapped[drawable[mapped] & (n[mapped] <= _VERTICES)], must)
    order = np.concatenate([must, may[np.argsort(n[may] ** 2 + m[may], kind="stable")]])
    # Estimates from measurements: characters of JSON, and seconds of networkx.
    size = 150 + 22.0 * n[order] + (8.0 if graphs.directed else 4.0) * m[order]
    slow = n[order] <= EXACT_UP_TO
    seconds = 3e-3 + np.where(slow, 1.2e-5, 3e-6) * n[order] ** 2.0
    fits = (np.cumsum(size) <= _BYTES) & (np.cumsum(seconds) <= _SECONDS)
    fits[: len(must)] = True
    return np.sort(order[fits])


def _explanations(
    model: Any, predicted: Ints | None, graphs: GraphBatch, chosen: Ints
) -> dict[int, Explanation]:
    """Explain the predicted class of each graph, or the number."""
    codes = np.zeros(len(chosen), dtype=np.int64) if predicted is None else predicted[chosen]
    found: dict[int, Explanation] = {}
    for code in np.unique(codes).tolist():
        some = chosen[codes == code]
        target = None if predicted is None else model.targets_[0].classes[code]
        found |= zip(some.tolist(), explain(model, graphs[some], target=target), strict=True)
    return found


def _drawing(g: int, graph: Graph, explanation: Explanation, smiles: str | None) -> Drawing:
    edges = np.asarray(graph.edge_index)
    edges = edges if graph.directed else edges[:, edges[0] <= edges[1]]
    molecule = None if smiles is None else _molecule(smiles, graph, edges)
    if molecule is None:
        places = place_vertices(graph)
        orders, labels = None, None if graph.labels is None else [clipped(v) for v in graph.labels]
    else:
        places, orders, labels = molecule
    return Drawing(
        graph=g,
        positions=_on_canvas(places),
        edges=edges.T.ravel().tolist(),
        directed=graph.directed,
        orders=orders,
        labels=labels,
        contributions=[float(f"{c:.3g}") for c in relative(explanation)],
        molecule=molecule is not None,
        smiles=None if smiles is None else clean(smiles),
    )


def _on_canvas(places: Floats) -> list[int]:
    """Scale to whole numbers from 0 to SIDE, y downward; the longer side fills the canvas."""
    low, high = places.min(axis=0), places.max(axis=0)
    scale = SIDE / (float((high - low).max()) or 1.0)
    centered = (places - (low + high) / 2) * [scale, -scale] + SIDE / 2
    flat: list[int] = centered.round().astype(np.int64).ravel().tolist()
    return flat


def _molecule(
    smiles: str, graph: Graph, edges: Ints
) -> tuple[Floats, list[float], list[str]] | None:
    """Return places, bond orders and element symbols, or None if the graph is not this molecule."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem import rdDepictor
    except ImportError:
        return None
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or molecule.GetNumAtoms() != graph.n_vertices:
        return None
    bonds = {
        (min(ends), max(ends)): bond.GetBondTypeAsDouble()
        for bond in molecule.GetBonds()
        for ends in [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())]
    }
    pairs = [(min(u, v), max(u, v)) for u, v in edges.T.tolist()]
    if set(pairs) != set(bonds):
        return None
    rdDepictor.Compute2DCoords(molecule)
    places = np.array(molecule.GetConformer().GetPositions())[:, :2]
    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    return places, [bonds[pair] for pair in pairs], symbols
