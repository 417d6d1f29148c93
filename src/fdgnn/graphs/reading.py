"""`Reading`: the settled way in which a file of graphs was read.

A model remembers the reading of its training data, so that new files are read in the same way. A
file may leave much open: whether ``3`` is a label or a weight shows only beside ``0.5``. Nothing
is open in a `Reading`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from fdgnn.records import Record

Vertex = Literal["labels", "features", "none"]
ArcUse = Literal["ignore", "labels", "weights", "vertices"]
Atoms = Literal["element", "typed", "rich"]
Standardize = Literal["parent", "tautomer"]
USUAL_ATOMS: Atoms = "typed"  # unless someone says otherwise


class Reading(Record, frozen=True, kw_only=True):
    """How a file of graphs was read.

    Attributes
    ----------
    source : {"table", "molecules", "networks", "tu", "graphs"}
        A table with a graph per row; a table with SMILES; GraphML or GEXF files; a TU dataset;
        Python objects with labels beside features.
    directed : bool
    direction_given : bool
        Whether the user said so. If not, the files did.
    vertex : {"labels", "features", "none"}
        What vertices carry.
    label_kind : {"integer", "text"} or None
        The kind of vertex labels, if there are any.
    n_features : int or None
        Features per vertex in the file, if there are any.
    arc_labels : {"ignore", "labels", "weights", "vertices"}
        How values on arcs are used. Labels are integers or text; several entries per arc are
        joined to one text.
    arc_kind : {"number", "text"} or None
        What arcs carry, unless it is ignored.
    arc_width : int or None
        Entries per arc, unless they are ignored.
    pairs : bool
        Whether ``edge_index`` lists (source, target) pairs, rather than sources and targets.
    vertex_attributes : tuple of str
        The column, or the attributes of nodes, with what vertices carry.
    edge_attribute : str or None
        The column, or the attribute of edges, with what arcs carry.
    smiles_column : str or None
    atoms : {"element", "typed", "rich"} or None
        What atoms carry, if the graphs are molecules.
    standardize : {"parent", "tautomer"} or None
        Whether molecules are replaced by their largest fragment without charges, and whether by
        its canonical tautomer.
    stereo : bool
        Whether labels of atoms and bonds tell mirror images and cis from trans.
    descriptors : tuple of pairs
        The columns that are read as descriptors of whole graphs: names, each with "number" or
        "category".
    label_columns : tuple
        Where vertices have labels and features: the labels that became columns of zeros and ones,
        which are the last of the features.
    """

    source: Literal["table", "molecules", "networks", "tu", "graphs"]
    directed: bool
    direction_given: bool = False
    vertex: Vertex
    label_kind: Literal["integer", "text"] | None = None
    n_features: int | None = None
    arc_labels: ArcUse
    arc_kind: Literal["number", "text"] | None = None
    arc_width: int | None = None
    pairs: bool = False
    vertex_attributes: tuple[str, ...] = ()
    edge_attribute: str | None = None
    smiles_column: str | None = None
    atoms: Atoms | None = None
    standardize: Standardize | None = None
    stereo: bool = False
    descriptors: tuple[tuple[str, Literal["number", "category"]], ...] = ()
    label_columns: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        complete = (
            (self.label_kind is not None) == (self.vertex == "labels")
            and (self.n_features is not None) == (self.vertex == "features")
            and (self.arc_kind is None) == (self.arc_width is None) == (self.arc_labels == "ignore")
            and (self.atoms is not None) == (self.source == "molecules")
            and (self.atoms is not None or not (self.standardize or self.stereo))
            and len(self.label_columns) <= (self.n_features or 0)
        )
        if not complete:
            raise ValueError(f"a reading that contradicts itself: {self}")

    def without_arc_labels(self) -> Reading:
        """The same, for a model to which labels of arcs make no difference."""
        if self.arc_labels != "labels":
            return self
        return msgspec.structs.replace(self, arc_labels="ignore", arc_kind=None, arc_width=None)

    @property
    def vertices_in_words(self) -> str:
        """What vertices carry."""
        if self.vertex == "none":
            return "nothing"
        if self.vertex == "labels":
            return f"{self.label_kind} labels"
        return f"{self.n_features} features per vertex"

    @property
    def arcs_in_words(self) -> str:
        """What is read of the arcs."""
        if self.arc_labels == "ignore":
            return "nothing"
        whole = self.arc_labels == "labels" and self.arc_kind == "number"
        kind = "integer" if whole else self.arc_kind
        return (
            f"one {kind} per edge" if self.arc_width == 1 else f"{self.arc_width} {kind}s per edge"
        )


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise ValueError if an argument has none of the allowed values."""
    if value not in allowed:
        names = ", ".join(str(choice) for choice in allowed if choice is not None)
        raise ValueError(f"{name}={value!r}: expected one of {names}")


def reading_of(like: Any) -> Reading | None:
    """Find the reading of a fitted model; a `Reading` is one already.

    A model that was fitted on graphs from no file has none.
    """
    if like is None or isinstance(like, Reading):
        return like
    like = getattr(like, "best_estimator_", like)  # of a search
    if not hasattr(like, "reading_"):
        raise ValueError(
            f"like is a {type(like).__name__} without a reading; give a fitted model or a Reading"
        )
    found = like.reading_
    if not isinstance(found, Reading | None):
        raise ValueError(f"the model's reading_ is a {type(found).__name__}, expected a Reading")
    return found
