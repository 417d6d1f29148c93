"""Example graphs of a page, and what its editor needs to know about molecules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Ints
from fdgnn.exceptions import GraphError, PlaygroundError
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.graphs.molecules import BONDS, MoleculeReader
from fdgnn.html.words import clipped
from fdgnn.schema import InputSchema

MOST_GRAPHS = 600  # of a page
MOST_VERTICES = 15_000  # of all graphs of a page together
_LARGEST_LABEL = 2**53  # whole numbers beyond are not exact in JavaScript

Content = dict[str, Any]  # as JSON


def chosen_graphs(graphs: GraphBatch) -> Ints:
    """Return the positions of the graphs that a page holds: all, or a random part of them."""
    sizes = np.diff(graphs.vertex_offsets)
    order = np.arange(len(graphs))
    if len(graphs) > MOST_GRAPHS or sizes.sum() > MOST_VERTICES:
        order = np.random.default_rng(0).permutation(len(graphs))
    fits = (np.cumsum(sizes[order]) <= MOST_VERTICES)[:MOST_GRAPHS]
    chosen = np.sort(order[: len(fits)][fits])
    if len(chosen) == 0:
        raise PlaygroundError(
            f"the graphs are too large for a page, which holds {MOST_VERTICES} vertices"
        )
    return chosen


def page_graphs(
    graphs: GraphBatch,
    ids: Sequence[Any],
    smiles: Sequence[str | None] | None = None,
    schema: InputSchema | None = None,
) -> Content:
    """Describe the graphs of a page: what they have in common, and each of them.

    With SMILES, which `schema` says how to read, they have atoms and bonds.
    """
    reader = None if smiles is None or schema is None else MoleculeReader.of(schema)
    texts = [None] * len(graphs) if smiles is None else smiles
    return {
        "directed": graphs.directed,
        "labels": _values(graphs.label_values),
        "edge_labels": _values(graphs.edge_label_values),
        "n_features": None if graphs.features is None else int(graphs.features.shape[1]),
        "weighted": graphs.weights is not None,
        "list": [
            _graph(graph, name) | ({} if reader is None else _atoms(reader, text, graph))
            for graph, name, text in zip(graphs, ids, texts, strict=True)
        ],
    }


def _values(values: Array | None) -> list[Any] | None:
    if values is None:
        return None
    if values.dtype.kind in "iu" and np.abs(values.astype(np.float64)).max() >= _LARGEST_LABEL:
        raise PlaygroundError("the graphs have labels beyond 2^53, which a page cannot hold")
    found: list[Any] = values.tolist()
    return found


def _graph(graph: Graph, name: Any) -> Content:
    """Describe one graph, with each undirected edge once."""
    sources, targets = graph.edge_index
    once = np.ones(len(sources), dtype=bool) if graph.directed else sources <= targets
    return {
        "id": clipped(name),
        "n": graph.n_vertices,
        "edges": graph.edge_index[:, once].T.tolist(),
        "labels": None if graph.labels is None else graph.labels.tolist(),
        "edge_labels": None if graph.edge_labels is None else graph.edge_labels[once].tolist(),
        "weights": None if graph.weights is None else graph.weights[once].tolist(),
        "features": None if graph.features is None else graph.features.ravel().tolist(),
    }


# ---------------------------------------------------------------------- molecules


def molecule_rules(schema: InputSchema | None) -> Content | None:
    """Return how molecules are read; None if the graphs are not molecules."""
    if schema is None or schema.atoms is None:
        return None
    return {
        "atoms": schema.atoms,
        "bonds": BONDS[schema.edge_labels],
        "stereo": schema.stereo,
        "standardize": schema.standardize,
    }


def _atoms(reader: MoleculeReader, smiles: str | None, graph: Graph) -> Content:
    """Describe the atoms and bonds of a molecule; 1 is about the length of a bond, y downward."""
    from rdkit.Chem import rdDepictor

    if smiles is None:
        raise PlaygroundError("a molecule comes without its SMILES; give one for each graph")
    try:
        mol = reader.molecule(smiles).mol
    except GraphError as error:
        raise PlaygroundError(f"a SMILES cannot be read: {error.reason}") from None
    if mol.GetNumAtoms() != graph.n_vertices:
        raise PlaygroundError(
            f"the SMILES {smiles[:60]!r} has {mol.GetNumAtoms()} atoms, but its graph has "
            f"{graph.n_vertices} vertices"
        )
    rdDepictor.Compute2DCoords(mol)
    places = np.array(mol.GetConformer().GetPositions())[:, :2] * [1 / 1.5, -1 / 1.5]
    return {
        "places": np.clip(places - places.mean(axis=0), -32, 32).round(3).tolist(),
        "atoms": [
            {
                "element": atom.GetSymbol(),
                "charge": atom.GetFormalCharge(),
                "hydrogens": atom.GetTotalNumHs(),
                "aromatic": atom.GetIsAromatic(),
            }
            for atom in mol.GetAtoms()
        ],
        "bonds": [
            [b.GetBeginAtomIdx(), b.GetEndAtomIdx(), b.GetBondTypeAsDouble()]
            for b in mol.GetBonds()
        ],
    }
