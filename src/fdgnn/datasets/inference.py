"""Inference of the input schema that suits most rows of a file.

A row alone cannot tell whether the numbers ``[1, 2]`` are labels or features that happen to be
whole, nor whether ``[[0, 1], [1, 0]]`` lists sources and targets or pairs. The rows together can.
`infer_schema` decides once, on the first chunk of rows; rows that do not fit are invalid rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from msgspec.structs import replace

from fdgnn.arrays import Array
from fdgnn.exceptions import DatasetFormatError
from fdgnn.graphs.checks import is_text
from fdgnn.graphs.descriptors import kind_of_cells
from fdgnn.graphs.molecules import Molecule, molecule_schema
from fdgnn.graphs.raw import Raw, RawGraph
from fdgnn.schema import USUAL_ATOMS, EdgeChoice, InputSchema, ReadOptions, Vertex, VertexChoice


@dataclass(frozen=True)
class Form:
    """The kind of entries that vertices or arcs carry, and how many each."""

    kind: Literal["none", "integer", "real", "text", "other"]
    width: int


NOTHING = Form("none", 0)
KINDS = {"b": "integer", "i": "integer", "u": "integer", "f": "real"}


# ---------------------------------------------------------------------- all rows


def infer_schema(raws: Sequence[RawGraph], options: ReadOptions) -> InputSchema:
    """Decide how to read the rows: as the options say, or else as most rows suggest."""
    x = _commonest([_form(raw.x) for raw in raws])
    carried = _commonest([_form(raw.carried) for raw in raws])
    vertex, use = options.vertex, options.edge_labels
    if vertex == "auto":
        label = x.width == 1 and x.kind in ("integer", "text")
        vertex = "none" if x == NOTHING else "labels" if label else "features"
    if use == "auto":
        discrete = carried.kind in ("integer", "text") and carried.width > 0
        use = "weights" if carried == Form("real", 1) else "labels" if discrete else "ignore"
    _check_possible(vertex, x, use, carried)
    directed = options.directed
    if directed is None:
        directed = Counter(bool(raw.directed) for raw in raws).most_common(1)[0][0]
    ignored = use == "ignore"
    return InputSchema(
        source="table",
        directed=directed,
        direction_given=options.directed is not None,
        vertex=cast(Vertex, vertex),
        label_kind=("text" if x.kind == "text" else "integer") if vertex == "labels" else None,
        n_features=x.width if vertex == "features" else None,
        edge_labels=use,
        edge_kind=None if ignored else "text" if carried.kind == "text" else "number",
        edge_width=None if ignored else carried.width,
        pairs=lists_pairs(raws),
        vertex_attributes=() if vertex == "none" else raws[0].vertex_attributes,
        edge_attribute=None if ignored else raws[0].edge_attribute,
        **_descriptors(raws, options),
    )


def infer_molecule_schema(molecules: Sequence[Molecule], options: ReadOptions) -> InputSchema:
    """Decide how to read molecules: as the options say; bonds have types, if there are any."""
    bonded = any(len(molecule.bonds) for molecule in molecules)
    use = options.edge_labels
    if use == "auto":
        use = "labels" if bonded else "ignore"
    if use != "ignore" and not bonded:
        raise _nothing_carried(use)
    atoms = options.atoms or USUAL_ATOMS
    schema = molecule_schema(atoms, options.standardize, bool(options.stereo), use)
    if options.vertex == "none":
        schema = replace(schema, vertex="none", label_kind=None, n_features=None)
    elif options.vertex not in ("auto", schema.vertex):
        raise DatasetFormatError(
            f"with `atoms={atoms!r}`, the vertices carry {schema.vertex} and no "
            f"{options.vertex}; use `vertex='auto'`"
        )
    return replace(
        schema,
        directed=bool(options.directed),
        direction_given=options.directed is not None,
        **_descriptors(molecules, options),
    )


def _descriptors(raws: Sequence[Raw], options: ReadOptions) -> dict[str, Any]:
    """Find which descriptors are categories: those that the user names, and those with text."""

    def is_category(name: str) -> bool:
        if name in options.categories:
            return True
        return kind_of_cells(name, [(raw.cells or {}).get(name) for raw in raws]) == "category"

    names = options.all_descriptors
    return {"descriptors": names, "categories": tuple(filter(is_category, names))}


def _commonest(forms: Sequence[Form | None]) -> Form:
    """Find the form of most rows; rows that carry nothing count only if all rows do."""
    counts = Counter(form for form in forms if form is not None and form != NOTHING)
    return counts.most_common(1)[0][0] if counts else NOTHING


def _form(array: Array | None) -> Form | None:
    """Find an array's form; an empty one has none."""
    if array is None:
        return NOTHING
    if array.size == 0:
        return None
    width = 1 if array.ndim == 1 else array.shape[1] if array.ndim == 2 else -1
    kind = "text" if is_text(array) else KINDS.get(array.dtype.kind, "other")
    return Form(cast(Any, kind), width)


def _check_possible(vertex: VertexChoice, x: Form, use: EdgeChoice, carried: Form) -> None:
    if vertex in ("labels", "features") and x == NOTHING:
        raise DatasetFormatError(f"the vertices carry no {vertex}; use `vertex='auto'`")
    if use != "ignore" and carried == NOTHING:
        raise _nothing_carried(use)
    if use == "weights" and (carried.width != 1 or carried.kind == "text"):
        raise DatasetFormatError(
            f"an edge carries {carried.width} entries of kind {carried.kind}, and a weight is one "
            "number; use `edge_labels='ignore'`"
        )


def _nothing_carried(use: EdgeChoice) -> DatasetFormatError:
    return DatasetFormatError(
        f"the edges carry nothing that could become {use}; use `edge_labels='ignore'`"
    )


def lists_pairs(raws: Sequence[RawGraph]) -> bool:
    """Tell whether most rows list pairs; a row with two edges could be read both ways."""
    shapes = [raw.edges.shape for raw in raws if raw.edges.ndim == 2 and raw.edges.size]
    pairs = sum(shape[1] == 2 and shape[0] != 2 for shape in shapes)
    columns = sum(shape[0] == 2 and shape[1] != 2 for shape in shapes)
    return bool(pairs > columns)
