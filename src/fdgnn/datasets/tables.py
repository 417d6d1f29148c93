"""Tables in memory, and graph tables: one graph per row, in the columns of public datasets.

========== ======================================================================================
edge_index sources and targets, 2 x m; or m pairs
num_nodes  an integer; needed only if the last vertices have neither arcs nor node_feat
node_feat  n x f, or n entries; also called ``x``. One integer or text per vertex is its label,
           everything else is its features
edge_attr  m x f, or m entries; also called ``edge_weight``
y          or any other column: the target, one number or text, or a list of one
========== ======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from fdgnn.arrays import Array
from fdgnn.datasets.rows import Row
from fdgnn.exceptions import DatasetFormatError, GraphError, warn_unused
from fdgnn.extras import require
from fdgnn.graphs import checks
from fdgnn.graphs.molecules import is_molecule
from fdgnn.graphs.raw import RawGraph
from fdgnn.schema import InputSchema, ReadOptions
from fdgnn.texts import parse_json

SMILES = "smiles"  # the column that a list of molecules stands for

Table = tuple[list[str], Callable[[Sequence[str]], Iterator[Row]]]

EDGES = "edge_index"
SIZE, VERTICES, ARCS = ("num_nodes",), ("node_feat", "x"), ("edge_attr", "edge_weight")


def is_graph_table(columns: Sequence[str]) -> bool:
    """Tell whether the rows of a table with these columns hold graphs."""
    return EDGES in columns


def graph_columns(columns: Sequence[str]) -> list[str]:
    """Find the columns that make up the graph."""
    return [c for c in columns if c in (EDGES, *SIZE, *VERTICES, *ARCS)]


def graph_reader(
    name: str, columns: Sequence[str], options: ReadOptions, like: InputSchema | None = None
) -> Callable[[Mapping[str, Any]], RawGraph]:
    """Make a function from a row to its graph; it raises `GraphError` on an invalid row.

    Where a table has both of two columns that mean the same, the one of the options is read.
    """
    chosen = like or options
    wanted = (*chosen.vertex_attributes, chosen.edge_attribute)
    size, vertices, arcs = (
        next((n for n in sorted(names, key=lambda n: n not in wanted) if n in columns), names[0])
        for names in (SIZE, VERTICES, ARCS)
    )
    if like is None:
        others = {
            "vertex_attributes": {*VERTICES} & {*columns} - {vertices, *options.vertex_attributes},
            "edge_attribute": {*ARCS} & {*columns} - {arcs, options.edge_attribute},
        }
        remedies = {
            f"the values of {left.pop()!r}": f"`{option}` names the one column to read"
            for option, left in others.items()
            if left and not getattr(options, option)
        }
        warn_unused(name, remedies)

    def read(row: Mapping[str, Any]) -> RawGraph:
        edges = _array(row, EDGES)
        if edges is None:
            raise GraphError("its edge_index is missing; a graph without edges has [[], []]")
        return RawGraph(
            edges=edges,
            n_vertices=_size(row.get(size), size),
            x=_array(row, vertices),
            carried=_array(row, arcs),
            vertex_attributes=(vertices,),
            edge_attribute=arcs,
        )

    return read


def _array(row: Mapping[str, Any], column: str) -> Array | None:
    value = row.get(column)
    if isinstance(value, str):  # lists in a CSV file
        value = _parsed(value, column)
    if value is None:
        return None
    if not isinstance(value, list | np.ndarray):
        raise GraphError(f"its {column} is a {type(value).__name__}, expected a list")
    if isinstance(value, list):
        checks.check_texts(value, f"the entries of {column}")
    array = checks.as_array(value, f"the rows of {column}")
    if array.dtype.kind == "U" and not isinstance(value, np.ndarray):
        _check_all_text(value, column)
    return checks.without_padding(array)


def _check_all_text(value: list[Any], column: str) -> None:
    # NumPy reads the list [1, "C"] as ["1", "C"].
    entries = [e for row in value for e in (row if isinstance(row, list) else [row])]
    if not all(isinstance(entry, str) for entry in entries):
        raise GraphError(f"its {column} mixes text and numbers")


def _parsed(text: str, column: str) -> Any:
    if not text.strip():
        return None
    try:
        return parse_json(text)
    except ValueError as error:
        raise GraphError(f"its {column} is not a list ({error})") from None


def _size(value: Any, column: str) -> int | None:
    """Read num_nodes, which may be in a list of one, or a whole number written as a real."""
    if isinstance(value, str):
        value = _parsed(value, column)
    if isinstance(value, list | np.ndarray) and len(value) == 1:
        value = value[0]
    if value is None:
        return None
    try:
        if not isinstance(value, bool) and int(value) == value:
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise GraphError(f"its {column} is {value!r}, expected an integer")


# ---------------------------------------------------------------------- data frames and lists


def is_frame(given: Any) -> bool:
    """Tell whether something is a pandas or polars data frame."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def frame_table(frame: Any) -> Table:
    """Give the columns of a data frame, and a function from the wanted ones to rows."""
    if not hasattr(frame, "shape"):
        raise DatasetFormatError(f"a {type(frame).__name__} has no rows yet; collect() it first")
    keys = {str(key): key for key in frame.columns}

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        columns = [_cells(frame[keys[name]]) for name in wanted]
        if not columns:
            return iter([{}] * len(frame))
        return (dict(zip(wanted, cells, strict=True)) for cells in zip(*columns, strict=True))

    return [str(key) for key in frame.columns], rows


def _cells(column: Any) -> list[Any]:
    """Give the values of a column; those that pandas calls missing are None."""
    values: list[Any] = column.to_list()
    if not hasattr(column, "isna"):
        return values
    return [None if gone else value for value, gone in zip(values, column.isna(), strict=True)]


def is_molecule_list(given: Any) -> bool:
    """Tell whether something is a list of SMILES or of RDKit Mols.

    Some may be missing: None, or a number, as data frames have NaN there.
    """
    if isinstance(given, str | bytes) or hasattr(given, "__fspath__") or is_molecule(given):
        return False
    if not hasattr(given, "__len__") or not hasattr(given, "__iter__"):
        return False
    rest = [item for item in given if item is not None and not is_molecule(item)]
    return all(isinstance(item, Number) for item in rest) and 2 * len(rest) <= len(given)


def molecule_table(molecules: Any) -> Table:
    """Give a list of molecules as a table with one column of SMILES."""

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        return ({SMILES: as_smiles(each)} for each in molecules)

    return [SMILES], rows


def as_smiles(molecule: Any) -> Any:
    """Write a ``Mol`` as SMILES, so that a table can name its molecules; None if there is none."""
    if isinstance(molecule, str):
        return molecule
    if not is_molecule(molecule):
        return None
    return require("rdkit.Chem", "chem", "molecules").MolToSmiles(molecule)
