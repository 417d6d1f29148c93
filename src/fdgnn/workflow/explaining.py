"""From a model to a table of explanations, and pictures of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn.datasets import GraphTable, Reject
from fdgnn.exceptions import GraphError
from fdgnn.explanations import Explanation, explain
from fdgnn.graphs import Graph
from fdgnn.pictures.drawing import draw_explanation, draw_molecule
from fdgnn.workflow.predicting import usable_graphs


@dataclass(frozen=True)
class Explained:
    """One row's graph and its explanation."""

    row: int
    id: Any
    graph: Graph
    explanation: Explanation
    smiles: str | None = None


def explain_table(
    model: Any, table: GraphTable, wanted: set[int] | None, *, target: str | None, edges: bool
) -> tuple[list[Explained], list[Reject]]:
    """Explain the usable graphs of a table, or those of the wanted rows; tell of the others."""
    found = _explain(model, table, wanted, target, edges)
    rejects = list(table.rejects)
    if table.graphs is not None:
        reasons = usable_graphs(model, table.graphs, table.smiles is not None)[1]
        for g, reason in reasons.items():
            row = int(table.rows[g])
            rejects.append(Reject(table.start + row, table.ids[row], reason))
    asked = [r for r in rejects if wanted is None or r.row in wanted]
    return found, sorted(asked, key=lambda reject: reject.row)


def _explain(
    model: Any, table: GraphTable, wanted: set[int] | None, target: str | None, edges: bool
) -> list[Explained]:
    if table.graphs is None:
        return []
    usable, _ = usable_graphs(model, table.graphs)
    numbers = table.start + table.rows[usable]
    chosen = [i for i, number in enumerate(numbers.tolist()) if wanted is None or number in wanted]
    if not chosen:
        return []
    graphs = table.graphs[usable[chosen]]
    found = explain(model, graphs, target=_as_class(model, target), edges=edges)
    smiles = [None] * len(table.rows) if table.smiles is None else table.smiles
    return [
        Explained(
            row=int(numbers[i]),
            id=table.ids[numbers[i] - table.start],
            graph=graph,
            explanation=explanation,
            smiles=smiles[usable[i]],
        )
        for i, graph, explanation in zip(chosen, graphs, found, strict=True)
    ]


def _as_class(model: Any, name: str | None) -> Any:
    """The class that is written like this."""
    if name is None:
        return None
    for known in getattr(model, "classes_", np.empty(0)).tolist():
        if str(known) == name:
            return known
    classes = ", ".join(map(str, getattr(model, "classes_", [])))
    raise ValueError(f"the model has no class {name!r}; its classes are {classes or 'none'}")


def draw_all(explained: Iterable[Explained], folder: Path) -> None:
    """Draw each explained graph into a PNG file of the folder, molecules as molecules."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in explained:
        path = folder / f"{one.row}.png"
        try:
            if one.smiles is None:
                raise GraphError("no molecule")
            draw_molecule(one.smiles, one.explanation, path)
        except GraphError:  # bonds may be vertices of their own, which no molecule shows
            draw_explanation(one.graph, one.explanation, path)
