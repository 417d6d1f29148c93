"""From a model and a table of graphs to explanations: in files, and as pictures."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import floor, log10
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from sklearn.base import is_classifier

from fdgnn.applicability import ALL_NEW
from fdgnn.datasets import GraphTable, Reject
from fdgnn.datasets.rows import BadRow
from fdgnn.datasets.tables import raw_lines
from fdgnn.encoders import MoleculeDescriptors
from fdgnn.exceptions import (
    DatasetFormatError,
    DatasetNotFoundError,
    OutOfDomainWarning,
    UnknownLabelWarning,
    UnusedDataWarning,
)
from fdgnn.explanations import (
    Counterfactual,
    Explanation,
    VertexGroup,
    connected_parts,
    counterfactuals,
    explain,
    molecule_groups,
)
from fdgnn.explanations.drawing import picture
from fdgnn.explanations.groups import GroupsOfGraph, atom_symbols, name_of_smarts, query_of
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.prediction.output import table_writer
from fdgnn.prediction.predictor import valid_rows
from fdgnn.records import Record, decode

Cells = dict[str, Any]  # one row of output, by column
_SUMMARY = (
    "row", "id", "class", "score", "base_score", "domain_distance", "out_of_domain", "warning",
)  # fmt: skip
_CHANGES = ("changes", "changed_smiles", "changed_prediction", "flips")
_LONGEST = 100  # letters of an id in the name of a picture


@dataclass(frozen=True)
class ExplainedRow:
    """One row's explanation.

    `summary` has the columns of the row: its number and id, the class explained, scores, the
    applicability domain, and a warning that names a vertex label that no training graph has.
    `labels` are those of the vertices, or the elements of a molecule's atoms; None if there are
    neither. Numbers are written with so many `decimals`.
    """

    summary: Cells
    explanation: Explanation
    labels: list[Any] | None = None
    counterfactuals: Sequence[Counterfactual] = ()
    decimals: int = 16


def explain_table(
    model: Any,
    table: GraphTable,
    wanted: set[int] | None,
    *,
    target: Any,
    edges: bool,
    groups: GroupChoice,
    n_counterfactuals: int = 0,
    precision: int = 5,
) -> tuple[list[ExplainedRow], list[Reject]]:
    """Explain the requested rows of a table, or all rows; also return the rejected rows.

    Numbers have `precision` significant digits. As in predictions, a graph that has nothing in
    common with the training graphs has neither a class nor a score.
    """
    usable, rejects = valid_rows(model, table)
    rejected = [reject for reject in rejects if wanted is None or reject.row in wanted]
    numbers = table.start + table.rows
    chosen = [g for g in usable.tolist() if wanted is None or numbers[g] in wanted]
    if table.graphs is None or not chosen:
        return [], rejected
    graphs, rows = table.graphs[chosen], numbers[chosen].tolist()
    unseen = model.unknown_labels(graphs)
    with warnings.catch_warnings():  # columns of the output have it, for all tables
        warnings.simplefilter("ignore", UnknownLabelWarning)
        warnings.simplefilter("ignore", OutOfDomainWarning)
        own = groups.of(graphs, rows)
        explanations = explain(model, graphs, target=target, edges=edges, groups=own)
    found = []
    for i, (row, one) in enumerate(zip(rows, explanations, strict=True)):
        known = one.domain_distance is None or one.domain_distance < ALL_NEW
        one, decimals = _with_rounded_sums(one, precision)
        summary = {
            "row": row,
            "id": table.ids[row - table.start],
            "class": np.asarray(one.target).item() if is_classifier(model) and known else None,
            "score": one.score if known else None,
            "base_score": one.base_score,
            "domain_distance": one.domain_distance,
            "out_of_domain": one.out_of_domain,
            "warning": unseen.get(i),
        }
        changed: list[Counterfactual] = []
        if n_counterfactuals and known:
            changed = counterfactuals(model, [graphs[i]], n_most=n_counterfactuals)[0]
        found.append(ExplainedRow(summary, one, _labels(graphs[i]), changed, decimals))
    return found, rejected


def has_descriptors(model: Any) -> bool:
    """Return whether explanations have attributions of descriptors, of files or of molecules."""
    encoders = [
        each
        for one in model.estimators_
        for each in (one.encoder, *(own for _, own in one.encoder.named_encoders))
    ]
    return model._descriptors is not None or any(
        isinstance(each, MoleculeDescriptors) for each in encoders
    )


def _with_rounded_sums(one: Explanation, precision: int) -> tuple[Explanation, int]:
    """Round attributions so that they still add up to the rounded score, and return the decimals.

    There are as many decimals as give the largest score or attribution `precision` digits. What is
    rounded are the sums of the first attributions.
    """
    added = np.array([*one.vertices, *one.descriptors.values()])
    scale = np.abs([one.score, one.base_score, *added]).max()
    decimals = precision - 1 - (floor(log10(scale)) if scale else 0)
    sums = np.round(one.base_score + np.cumsum([0.0, *added]), decimals)
    vertices, others = np.split(np.diff(sums), [len(one.vertices)])
    descriptors = dict(zip(one.descriptors, others.tolist(), strict=True))
    return replace(one, vertices=vertices, descriptors=descriptors), decimals


def _rounded(value: Any, decimals: int) -> Any:
    """Round the numbers among cells, also in lists and objects."""
    if isinstance(value, float):
        return round(value, decimals) + 0.0  # no negative zero
    if isinstance(value, dict):
        return {name: _rounded(inner, decimals) for name, inner in value.items()}
    return [_rounded(each, decimals) for each in value] if isinstance(value, list) else value


def _labels(graph: Graph) -> list[Any] | None:
    """Return the labels of vertices, or the elements of atoms that carry features."""
    if graph.labels is not None:
        labels: list[Any] = graph.labels.tolist()
        return labels
    return None if graph.smiles is None else atom_symbols(graph.smiles.text)


def class_called(name: str | None, model: Any) -> Any:
    """Return the class that is written in this way."""
    if name is None:
        return None
    if not is_classifier(model):
        raise ValueError(
            f"`of`: the model predicts numbers and has no class {name!r}; leave it out"
        )
    classes = {str(known): known for known in model.classes_}
    if name not in classes:
        names = ", ".join(classes)
        raise ValueError(f"`of`: the model has no class {name!r}; its classes are {names}")
    return classes[name]


# ---------------------------------------------------------------------- output


def draw_all(explained: Iterable[ExplainedRow], folder: Path, names: dict[str, int]) -> None:
    """Draw each explained graph, as SVG and PNG, into files of the folder that its id names.

    Characters of an id that file names may not have become ``_``. Where two ids give one name, the
    later one ends with the number of its row.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for one in explained:
        row, name = one.summary["row"], re.sub(r"[^\w.+-]", "_", str(one.summary["id"]))[:_LONGEST]
        name = name.strip(".") or str(row)
        if names.setdefault(name.lower(), row) != row:
            name = f"{name}-{row}"
        for ending in (".svg", ".png"):
            graph: Any = one.explanation.graph
            content = picture(graph, one.explanation, ending, one.labels)
            (folder / f"{name}{ending}").write_bytes(content)


@contextmanager
def explanation_writer(
    output: str,
    descriptors: bool = False,
    guard: bool = True,
    *,
    changes: bool = False,
    as_json: bool = False,
) -> Iterator[Callable[[Iterable[ExplainedRow]], None]]:
    """Yield a function that appends explanations: a row per vertex, or a JSON object per graph.

    Where graphs have descriptors, groups or counterfactuals (`changes`), each of these has a row,
    too. `guard` and `as_json` are as in `table_writer`.
    """
    objects = Path(output).suffix == ".jsonl" or (as_json and output == "-")
    names = [*_SUMMARY, "vertex", "label", "group", "vertices"]
    names += [*["descriptor"] * descriptors, "attribution", "effect", *_CHANGES * changes]
    with table_writer(output, guard, as_json=as_json) as write:

        def write_all(explained: Iterable[ExplainedRow]) -> None:
            found = [_object_of(one) for one in explained]
            if objects:
                for cells in found:
                    write({name: [value] for name, value in cells.items()})
                return
            rows = [cells for one in found for cells in _rows_of(one)]
            write({name: [cells.get(name) for cells in rows] for name in names})

        yield write_all


def _object_of(one: ExplainedRow) -> Cells:
    """Return an explanation as one object with rounded numbers, which has only what there is."""
    found = one.explanation
    cells = one.summary | {"labels": one.labels, "vertices": found.vertices.tolist()}
    if found.graph is not None and found.graph.vertex_names is not None:
        cells["vertex_names"] = list(found.graph.vertex_names)
    if found.vertex_effects is not None:
        cells["vertex_effects"] = found.vertex_effects.tolist()
        cells["groups"] = [
            {
                "name": group.name,
                "vertices": group.vertices.tolist(),
                "attribution": group.attribution,
                "effect": group.effect,
                "score_without": found.score - group.effect,
            }
            for group in found.groups
        ]
    if one.counterfactuals:
        names = ("changes", "smiles", "prediction", "score", "effect", "flips", "out_of_domain")
        cells["counterfactuals"] = [
            {name: getattr(each, name) for name in names} for each in one.counterfactuals
        ]
    if found.descriptors:
        cells["descriptors"] = dict(found.descriptors)
    if found.edges is not None and found.edge_effects is not None:
        cells |= {"edges": found.edges.T.tolist(), "edge_effects": found.edge_effects.tolist()}
    return {name: _rounded(value, one.decimals) for name, value in cells.items()}


def _rows_of(one: Cells) -> Iterator[Cells]:
    """Yield an explanation as one row per vertex, group, descriptor and counterfactual.

    Vertices are called by their names, if they have some, or else by their numbers.
    """
    summary, n = {name: one[name] for name in _SUMMARY}, len(one["vertices"])
    called = one.get("vertex_names") or range(n)
    labels, effects = one["labels"] or [None] * n, one.get("vertex_effects") or [None] * n
    names = ("vertex", "label", "attribution", "effect")
    for cells in zip(called, labels, one["vertices"], effects, strict=True):
        yield summary | dict(zip(names, cells, strict=True))
    for group in one.get("groups", ()):
        inside = " ".join(str(called[v]) for v in group["vertices"])
        yield summary | group | {"group": group["name"], "vertices": inside}
    for name, value in one.get("descriptors", {}).items():
        yield summary | {"descriptor": name, "attribution": value}
    for each in one.get("counterfactuals", ()):
        values = ("; ".join(each["changes"]), each["smiles"], each["prediction"], each["flips"])
        yield summary | dict(zip(_CHANGES, values, strict=True)) | {"effect": each["effect"]}


# ---------------------------------------------------------------------- groups of vertices

_Whole = Annotated[int, msgspec.Meta(ge=0)]


class VertexSet(Record, frozen=True, kw_only=True):
    """A line of a file of vertex sets: vertices of one row that belong together."""

    row: _Whole
    name: str
    vertices: Annotated[list[_Whole], msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class GroupChoice:
    """Which groups graphs are explained by.

    Attributes
    ----------
    wanted : bool, optional
        Whether there are groups at all; by default of molecules only.
    smarts : tuple of str
        Substructures of molecules, in addition to rings and functional groups.
    given : mapping, optional
        Groups of the user's own by row, instead of all others.

    Raises
    ------
    ValueError
        Choices exclude each other, or a SMARTS is invalid.
    """

    wanted: bool | None = None
    smarts: tuple[str, ...] = ()
    given: Mapping[int, Sequence[VertexGroup]] | None = None

    def __post_init__(self) -> None:
        for one in self.smarts:
            query_of(one)
        if self.wanted is False and (self.smarts or self.given is not None):
            raise ValueError("`smarts` and `vertex_sets` are groups, but none are wanted")
        if self.smarts and self.given is not None:
            raise ValueError("`smarts` and `vertex_sets` are two ways to group; give one of them")

    def of(self, graphs: GraphBatch, rows: Sequence[int]) -> list[GroupsOfGraph] | None:
        """Return the groups of graphs in these rows; None for no groups.

        Graphs that are not molecules have connected parts. A warning names a SMARTS that none of
        the molecules has: it may be misspelt.
        """
        if self.given is not None:
            return [self.given.get(row, ()) for row in rows]
        if self.smarts and graphs.smiles is None:
            raise ValueError("`smarts` is for molecules, and there are none; leave it out")
        if self.wanted is False or (self.wanted is None and graphs.smiles is None):
            return None
        found = [
            connected_parts(graph)
            if graph.smiles is None
            else molecule_groups(graph.smiles.text, self.smarts)
            for graph in graphs
        ]
        names = {group.name for own in found for group in own}
        for one in self.smarts:
            if name_of_smarts(one) not in names:
                message = f"`smarts`: none of these molecules has {one!r}"
                warnings.warn(message, UnusedDataWarning, stacklevel=3)
        return list(found)


def read_vertex_sets(path: Path) -> dict[int, list[VertexGroup]]:
    """Read a file of JSON lines, each a `VertexSet`."""
    if not path.is_file():
        raise DatasetNotFoundError(f"{path}: no such file")
    found: dict[int, list[VertexGroup]] = defaultdict(list)
    for number, line in enumerate(raw_lines(path), 1):
        try:
            if isinstance(line, BadRow):
                raise ValueError(line.reason)
            if not line.strip():
                continue
            one = decode(line, VertexSet)
        except ValueError as error:
            raise DatasetFormatError(
                f"{path}, line {number}: not a set of vertices ({error}); expected "
                '{"row": 0, "name": "head", "vertices": [0, 1]}'
            ) from None
        found[one.row].append(VertexGroup(one.name, np.array(one.vertices)))
    return dict(found)
