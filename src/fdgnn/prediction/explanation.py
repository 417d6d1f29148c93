"""From a model and a table of graphs to explanations, and pictures of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier

from fdgnn.datasets import GraphTable, Reject
from fdgnn.exceptions import GraphError, UnseenLabelWarning
from fdgnn.explanations import Explanation, explain
from fdgnn.explanations.drawing import draw_explanation, draw_molecule
from fdgnn.explanations.groups import atom_symbols
from fdgnn.graphs import Graph
from fdgnn.prediction.groups import NO_GROUPS, GroupChoice
from fdgnn.prediction.predictor import usable_rows


@dataclass(frozen=True)
class Explained:
    """One row's graph and its explanation.

    `warning` names a vertex label of the graph that no training graph has. `of_class` is false
    where the model predicts numbers. `labels` are those of the vertices, or the elements of a
    molecule's atoms; None if there are neither.
    """

    row: int
    id: Any
    graph: Graph
    explanation: Explanation
    smiles: str | None = None
    warning: str | None = None
    of_class: bool = True
    labels: list[Any] | None = None


def explain_table(
    model: Any,
    table: GraphTable,
    wanted: set[int] | None,
    *,
    target: str | None,
    edges: bool,
    groups: GroupChoice = NO_GROUPS,
) -> tuple[list[Explained], list[Reject]]:
    """Explain the wanted rows of a table, or all of them; return also those that cannot be."""
    usable, rejects = usable_rows(model, table)

    def asked_for(row: int) -> bool:
        return wanted is None or row in wanted

    asked = [r for r in rejects if asked_for(r.row)]
    numbers = (table.start + table.rows[usable]).tolist()
    chosen = [g for g, n in zip(usable.tolist(), numbers, strict=True) if asked_for(n)]
    if table.graphs is None or not chosen:
        return [], asked
    graphs = table.graphs[chosen]
    rows = [table.start + int(table.rows[g]) for g in chosen]
    smiles = [None if table.smiles is None else table.smiles[g] for g in chosen]
    unseen = model.unseen(graphs)
    with _unseen_labels_ignored():
        explanations = explain(
            model, graphs, target=_as_class(model, target), edges=edges,
            groups=groups.of(graphs, rows, smiles),
        )  # fmt: skip
    found = [
        Explained(
            row=row,
            id=table.ids[row - table.start],
            graph=graph,
            explanation=explanation,
            smiles=own,
            warning=unseen.get(i),
            of_class=is_classifier(model),
            labels=_labels(graph, own),
        )
        for i, (row, own, graph, explanation) in enumerate(
            zip(rows, smiles, graphs, explanations, strict=True)
        )
    ]
    return found, asked


def _labels(graph: Graph, smiles: str | None) -> list[Any] | None:
    """What vertices are called: their labels, or the elements of atoms that carry features."""
    if graph.labels is not None:
        labels: list[Any] = graph.labels.tolist()
        return labels
    symbols = [] if smiles is None else atom_symbols(smiles)
    return symbols if len(symbols) == graph.n_vertices else None


def _as_class(model: Any, name: str | None) -> Any:
    """Find the class that is written in this way."""
    if name is None:
        return None
    if not is_classifier(model):
        raise ValueError(f"the model predicts numbers and has no class {name!r}; leave it out")
    classes = {str(known): known for known in model.classes_}
    if name not in classes:
        names = ", ".join(classes)
        raise ValueError(f"the model has no class {name!r}; its classes are {names}")
    return classes[name]


def draw_all(explained: Iterable[Explained], folder: Path) -> None:
    """Draw each explained graph into a PNG file of the folder, molecules as molecules."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in explained:
        path = folder / f"{one.row}.png"
        try:
            if one.smiles is None:
                raise GraphError("not a molecule")
            draw_molecule(one.smiles, one.explanation, path)
        except GraphError:  # or bonds are vertices of their own, and a molecule cannot show these
            draw_explanation(one.graph, one.explanation, path, labels=one.labels)


@contextmanager
def _unseen_labels_ignored() -> Iterator[None]:
    """Leave the model's warning out where rows say it: of many tables, each would have its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLabelWarning)
        yield
