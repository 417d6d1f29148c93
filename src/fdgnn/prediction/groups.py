"""Which groups of vertices the rows of a table are explained by."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from fdgnn.datasets.rows import BadRow
from fdgnn.datasets.text import raw_lines
from fdgnn.exceptions import DatasetFormatError, DatasetNotFoundError, UnusedDataWarning
from fdgnn.explanations import VertexGroup, connected_parts, molecule_groups
from fdgnn.explanations.groups import GroupsOfGraph, check_smarts, name_of_smarts
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.records import Record, decode

_Whole = Annotated[int, msgspec.Meta(ge=0)]


class VertexSet(Record, frozen=True, kw_only=True):
    """A line of a file of vertex sets: vertices of one row that belong together."""

    row: _Whole
    name: str
    vertices: Annotated[list[_Whole], msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class GroupChoice:
    """Which groups are wanted.

    Attributes
    ----------
    wanted : bool, optional
        Whether there are groups at all; by default of molecules only.
    smarts : tuple of str
        Substructures of molecules, beside rings and functional groups.
    given : mapping, optional
        Groups of the user's own by row, in place of all others.
    """

    wanted: bool | None = None
    smarts: tuple[str, ...] = ()
    given: Mapping[int, Sequence[VertexGroup]] | None = None

    def check(self) -> None:
        """Raise ValueError for wishes that exclude each other, and for a SMARTS that is none."""
        check_smarts(self.smarts)
        if self.wanted is False and (self.smarts or self.given is not None):
            raise ValueError("`smarts` and `vertex_sets` are groups, but none are wanted")
        if self.smarts and self.given is not None:
            raise ValueError("`smarts` and `vertex_sets` are two ways to group; give one of them")

    def of(
        self, graphs: GraphBatch, rows: Sequence[int], smiles: Sequence[str | None]
    ) -> list[GroupsOfGraph] | None:
        """Give the groups of graphs in these rows, which have these SMILES; None for no groups."""
        if self.given is not None:
            return [self.given.get(row, ()) for row in rows]
        molecules = any(one is not None for one in smiles)
        if self.smarts and not molecules:
            raise ValueError("`smarts` is for molecules, and there are none; leave it out")
        if self.wanted is False or (self.wanted is None and not molecules):
            return None
        found = [self._of_graph(graph, own) for graph, own in zip(graphs, smiles, strict=True)]
        self._tell_unmatched({group.name for own in found for group in own})
        return list(found)

    def _tell_unmatched(self, names: set[str]) -> None:
        """Warn of substructures that none of the molecules has: they may be misspelt."""
        for one in self.smarts:
            if name_of_smarts(one) not in names:
                message = f"`smarts`: none of these molecules has {one!r}"
                warnings.warn(message, UnusedDataWarning, stacklevel=4)

    def _of_graph(self, graph: Graph, smiles: str | None) -> list[VertexGroup]:
        """A molecule's groups; or connected parts, also where bonds are vertices of their own."""
        found = [] if smiles is None else molecule_groups(smiles, self.smarts)
        n_atoms = len({int(v) for group in found for v in group.vertices})
        if n_atoms == graph.n_vertices:
            return found
        if self.smarts:
            raise ValueError(
                f"`smarts` names atoms, but the model reads {n_atoms} atoms as {graph.n_vertices} "
                "vertices, since bonds are vertices, too; leave it out"
            )
        return connected_parts(graph)


NO_GROUPS = GroupChoice(wanted=False)


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
