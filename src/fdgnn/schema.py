"""Options for reading graphs (`ReadOptions`), and what was inferred from them (`InputSchema`).

`read_graphs`, `load_tu`, `as_batch` and the command line have these options. A file may leave much
open: whether ``3`` is a label or a weight shows only beside ``0.5``. An `InputSchema` is the same
options with nothing left open. A model remembers the schema of its training data, so that new files
are read in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from fdgnn.exceptions import DatasetFormatError
from fdgnn.records import Record
from fdgnn.texts import suggestion

TaskName = Literal["classification", "regression"]
ModelName = Literal["auto", "paper", "wl", "union"]
Vertex = Literal["labels", "features", "none"]
EdgeUse = Literal["ignore", "labels", "weights"]
VertexChoice = Literal["auto", Vertex, "both", "either"]
EdgeChoice = Literal["auto", EdgeUse]
Atoms = Literal["element", "typed", "rich"]
Standardize = Literal["parent", "tautomer"]
Censored = Literal["drop", "bound", "error"]
USUAL_ATOMS: Atoms = "typed"  # unless someone says otherwise

CHOICES: Mapping[str, Sequence[Any]] = {
    "vertex": get_args(VertexChoice),
    "edge_labels": get_args(EdgeChoice),
    "atoms": (None, *get_args(Atoms)),
    "standardize": (None, *get_args(Standardize)),
    "stereo": (None, False, True),
    "censored": ("drop", "bound", "error"),
}
# The options that say what graphs are made of, in the order in which they are checked. A schema
# has all of them; the others belong to one file.
GRAPH_OPTIONS = (
    "vertex", "edge_labels", "atoms", "directed", "edge_attribute", "standardize", "stereo",
    "vertex_attributes", "descriptors", "categories",
)  # fmt: skip
_UNDECIDED = (None, "auto", ())


class ReadOptions(Record, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """Options for reading graphs; what is not given is inferred from the data.

    Parameters
    ----------
    format : str, optional
        "tu", "csv", "tsv", "jsonl", "parquet", "arrow", "xlsx", "smi", "sdf" or "graphml"; by
        default it is recognized from the name or the first bytes.
    target : str or sequence of str, optional
        Column with the targets; rows without one are rejected. TU datasets always have targets.
        A sequence names the columns of several targets; rows that lack all of them are rejected.
    numeric : bool, default=False
        Reject rows whose target is not a number, instead of reading all targets as text.
    censored : {"drop", "bound", "error"}, default="drop"
        Censored numeric targets such as ``>1995``: reject their rows (with several targets, the
        value is missing), use the bounds as values, or raise an error. A warning counts them.
    id_column : str, optional
        Column with ids of rows. By default, ids are row numbers, counted from 0, or names of files.
    smiles_column : str, optional
        Column with SMILES; by default the one called ``smiles``, or the only one with that word in
        its name.
    columns : sequence of str, optional
        Other columns of the file to keep in `GraphTable.columns`, such as groups, dates or numbers.
    strict : bool, default=False
        Raise an error at the first invalid row.
    vertex : {"auto", "labels", "features", "none", "both", "either"}, default="auto"
        Data of vertices. "auto" reads labels if each vertex has one integer or text, and features
        otherwise. "both" is for TU datasets and for several vertex attributes: labels are one-hot
        encoded after the features. In TU datasets "auto" reads both, and "either" only labels, if
        there are any.
    vertex_attributes : str or sequence of str, optional
        Attributes of vertices in GraphML files and in graphs of networkx, igraph, PyG and DGL; by
        default ``label`` (``x`` in PyG and DGL), or the only attribute. If there are several, the
        one with text has the labels and the others are features; if none has text, "both" as
        the data of vertices reads the last one as labels.
    edge_attribute : str, optional
        Attribute of edges in GraphML files and in graphs of networkx, igraph, PyG and DGL; by
        default ``label`` (``edge_attr`` in PyG and DGL) and ``weight`` (``edge_weight``), if all
        edges have them. ``"edge_attr[2]"`` selects one of
        several numbers per edge, counted from 0.
    edge_labels : {"auto", "ignore", "labels", "weights"}, default="auto"
        Values on edges: ignore them, or read them as labels or as weights. "auto" reads one real
        number per edge as its weight, and integers, text and types of bonds as labels, if this is
        possible for all rows.
    atoms : {"element", "typed", "rich"}, optional
        Labels or features of atoms: the element as a label; a label of the atom's type
        (the default), which is the element, its neighbors, hydrogens and charge, and whether it
        is aromatic or in a ring; or 21 features.
    directed : bool, optional
        Whether edges have a direction. By default the file decides; tables are read as undirected.
    standardize : {"parent", "tautomer"}, optional
        Replace each molecule by its largest fragment, neutralized; "tautomer" also replaces it by
        its canonical tautomer, which is slow.
    stereo : bool, optional
        Distinguish stereoisomers: labels of atoms include R or S, and types of bonds E or Z.
    descriptors : sequence of str, optional
        Columns with graph-level features: numbers, or text for categories; cells may be empty.
    categories : sequence of str, optional
        Columns whose numbers are codes of categories; they belong to the descriptors.

    Raises
    ------
    ValueError
        An option has an invalid value, or two options contradict each other.
    """

    format: str | None = None
    target: str | tuple[str, ...] | None = None
    numeric: bool = False
    censored: Censored = "drop"
    id_column: str | None = None
    smiles_column: str | None = None
    columns: tuple[str, ...] = ()
    strict: bool = False
    vertex: VertexChoice = "auto"
    vertex_attributes: tuple[str, ...] = ()
    edge_attribute: str | None = None
    edge_labels: EdgeChoice = "auto"
    atoms: Atoms | None = None
    directed: bool | None = None
    standardize: Standardize | None = None
    stereo: bool | None = None
    descriptors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: ReadOptions | None, changes: Mapping[str, Any]) -> ReadOptions:
        """Return options with single ones changed by name."""
        for name in changes.keys() - set(cls.__struct_fields__):
            names = cls.__struct_fields__
            listed = f"{suggestion(name, names)}the options are {', '.join(names)}"
            raise TypeError(f"there is no option {name!r}; {listed}")
        options = options or DEFAULT_OPTIONS
        return replace(options, **changes) if changes else options

    def __post_init__(self) -> None:
        for name in ("columns", "vertex_attributes", "descriptors", "categories"):
            names = _names(name, getattr(self, name) or ())
            msgspec.structs.force_setattr(self, name, names)
        descriptors = tuple(dict.fromkeys((*self.descriptors, *self.categories)))
        msgspec.structs.force_setattr(self, "descriptors", descriptors)
        if self.target is not None and not isinstance(self.target, str):
            msgspec.structs.force_setattr(self, "target", _names("target", self.target))
        for name, allowed in CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        twice = [name for i, name in enumerate(self.targets) if name in self.targets[:i]]
        if twice:
            raise ValueError(f"`target` names {twice[0]!r} twice; name each column once")
        both = [name for name in self.targets if name in descriptors]
        if both:
            raise ValueError(
                f"{both[0]!r} is a target and one of the `descriptors`; a model that is given the "
                "answer learns nothing"
            )

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of all targets."""
        if self.target is None:
            return ()
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def has_several(self) -> bool:
        """Whether targets are columns of a table, some of whose values may be missing."""
        return self.target is not None and not isinstance(self.target, str)

    def following(self, schema: InputSchema) -> ReadOptions:
        """Return these options with everything that the schema of a model's data has.

        Raises
        ------
        ValueError
            An option contradicts the schema.
        """
        unknown = set(self.descriptors) - set(schema.descriptors)
        if unknown:
            raise ValueError(
                f"`descriptors` has {min(unknown)!r}, which the model was not fitted with; leave "
                "`descriptors` out: the model knows its own"
            )
        known = {name: getattr(schema, name) for name in GRAPH_OPTIONS}
        if schema.label_columns:
            known["vertex"] = "both"
        for name in GRAPH_OPTIONS[:-2]:
            given = getattr(self, name)
            if given not in _UNDECIDED and given != known[name]:
                raise ValueError(
                    f"`{name}` is {given!r}, but the model's training data was read with "
                    f"{known[name]!r}; leave `{name}` out"
                )
        if schema.weighted:  # read beside whatever else edges have
            known["edge_labels"] = "auto"
        if self.smiles_column is not None and schema.source != "molecules":
            raise ValueError(
                f"`smiles_column` is {self.smiles_column!r}, but the model's training data was "
                "not read from SMILES; leave `smiles_column` out"
            )
        if not schema.direction_given:
            known["directed"] = None
        if schema.source != "networks":  # names of columns are those of one file
            known |= {"vertex_attributes": (), "edge_attribute": None}
        return replace(self, **known)


class InputSchema(
    ReadOptions, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """Input schema: all options with which graphs were read, and the kind of their data.

    Attributes
    ----------
    source : {"table", "molecules", "networks", "tu", "graphs"}
        A table with a graph per row; a table with SMILES; GraphML files or networkx graphs; a TU
        dataset; Python objects with labels beside features.
    vertex, edge_labels, directed, atoms, ...
        See `ReadOptions`; none is "auto". Names of columns and attributes are those that were read.
    direction_given : bool
        Whether the user chose `directed`. If not, the data did.
    label_kind : {"integer", "text"} or None
        The kind of vertex labels, if there are any.
    n_features : int or None
        Features per vertex in the data, if there are any.
    edge_kind : {"number", "text"} or None
        Kind of the values on edges, unless they are ignored.
    edge_width : int or None
        Entries per edge, unless they are ignored. Several entries that are labels are joined to
        one text.
    weighted : bool
        Whether edges have both weights and labels.
    pairs : bool
        Whether ``edge_index`` lists (source, target) pairs, rather than sources and targets.
    label_columns : tuple
        Where vertices have labels and features: the labels that became columns of zeros and ones,
        which are the last of the features.
    """

    source: Literal["table", "molecules", "networks", "tu", "graphs"]
    vertex: Vertex
    edge_labels: EdgeUse
    directed: bool
    stereo: bool = False
    direction_given: bool = False
    label_kind: Literal["integer", "text"] | None = None
    n_features: int | None = None
    edge_kind: Literal["number", "text"] | None = None
    edge_width: int | None = None
    weighted: bool = False
    pairs: bool = False
    label_columns: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        complete = (
            (self.label_kind is not None) == (self.vertex == "labels")
            and (self.n_features is not None) == (self.vertex == "features")
            and (self.edge_kind is None)
            == (self.edge_width is None)
            == (self.edge_labels == "ignore")
            and (self.atoms is not None) == (self.source == "molecules")
            and (self.atoms is not None or not (self.standardize or self.stereo))
            and len(self.label_columns) <= (self.n_features or 0)
            and set(self.categories) <= set(self.descriptors)
            and self.vertex in get_args(Vertex)
            and self.edge_labels in get_args(EdgeUse)
        )
        if not complete:
            raise ValueError(f"an input schema that contradicts itself: {self}")

    @lru_cache  # noqa: B019 - small, and every fit on one dataset has the same schema
    def without_edge_labels(self) -> InputSchema:
        """Return the same schema, for a model that does not use labels of edges."""
        if self.edge_labels != "labels":
            return self
        return replace(
            self, edge_labels="ignore", edge_kind=None, edge_width=None, edge_attribute=None
        )

    @property
    def in_words(self) -> str:
        """The kind of graphs."""
        return (
            f"{'directed' if self.directed else 'undirected'} graphs with "
            f"{self.vertices_in_words} on vertices and {self.edges_in_words} on edges"
        )

    @property
    def vertices_in_words(self) -> str:
        """The data of vertices."""
        if self.vertex == "none":
            return "nothing"
        if self.vertex == "labels":
            return f"{self.label_kind} labels"
        labels = f" for the labels {self.label_columns}" if self.label_columns else ""
        return f"{self.n_features} features per vertex{labels}"

    @property
    def edges_in_words(self) -> str:
        """The data of edges that is read."""
        if self.edge_labels == "ignore":
            return "one weight per edge" if self.weighted else "nothing"
        whole = self.edge_labels == "labels" and self.edge_kind == "number"
        kind = "integer" if whole else self.edge_kind
        if self.edge_width == 1:
            return f"one {kind} per edge"
        return f"{self.edge_width} {kind}s per edge"


def _names(option: str, given: Any) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else (*given,)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"`{option}` has {name!r}, expected the name of a column, a text")
    return names


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise ValueError if an argument has none of the allowed values."""
    if value not in allowed:
        names = ", ".join(str(choice) for choice in allowed if choice is not None)
        raise ValueError(f"{name}={value!r}: expected one of {names}")


def check_no_molecules(name: str, options: ReadOptions) -> None:
    """Raise DatasetFormatError if an option is for molecules, where there are none."""
    for choice in ("standardize", "stereo"):
        if getattr(options, choice):
            raise DatasetFormatError(
                f"{name}: `{choice}` is for molecules, and there are none; leave `{choice}` out"
            )


def schema_of(like: Any) -> InputSchema | None:
    """Find the schema of a fitted model's training data; an `InputSchema` is one already.

    A model that was fitted on graphs from no file has none.
    """
    if like is None or isinstance(like, InputSchema):
        return like
    like = getattr(like, "best_estimator_", like)  # of a search
    if not hasattr(like, "input_schema_"):
        raise ValueError(
            f"like is a {type(like).__name__} without an input schema; give a fitted model or an "
            "InputSchema"
        )
    schema: InputSchema | None = like.input_schema_
    return schema


DEFAULT_OPTIONS = ReadOptions()
