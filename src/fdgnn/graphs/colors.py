"""Vertices that look alike: color refinement, quotient graphs, and the WL ceiling.

Two vertices of the same stable color (1-WL) have equal states in every layer. So the engine
computes each color class once, on the quotient graph: one row per class, arcs with multiplicities,
pooling weighted by the sizes of the classes. Graphs with equal quotients have equal embeddings and
are also computed once. A batch keeps all of this (`fdgnn.GraphBatch`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats, Ints, frozen
from fdgnn.records import cached_property


class Structure(NamedTuple):
    """The arcs of a batch of graphs, as in `fdgnn.GraphBatch`.

    Attributes
    ----------
    vertex_offsets : (n_graphs + 1,) int64
    indptr : (n_vertices + 1,) int64
    neighbors : (n_arcs,) int32
    weights : (n_arcs,) float64, or of length 0 if all are 1
    """

    vertex_offsets: Ints
    indptr: Ints
    neighbors: npt.NDArray[np.int32]
    weights: Floats


class Coloring(NamedTuple):
    """The stable colors of a batch, each graph refined on its own.

    Attributes
    ----------
    classes : (n_vertices,) int32
        The color class of each vertex, numbered inside its graph.
    n_classes, n_iterations : (n_graphs,) int64
    signatures : (n_graphs,) uint64
        Equal for graphs that color refinement cannot distinguish.
    colors : (n_vertices,) uint64
        Hashes. Graphs can be compared by them if they were refined for equally many iterations.
    """

    classes: npt.NDArray[np.int32]
    n_classes: Ints
    n_iterations: Ints
    signatures: npt.NDArray[np.uint64]
    colors: npt.NDArray[np.uint64]


class QuotientArrays(NamedTuple):
    """The distinct quotient graphs of a batch, packed into blocks for the kernels.

    Attributes
    ----------
    quotient_of : (n_graphs,) int64
        The quotient of each graph.
    graphs : (n_quotients,) int64
        The first graph of each quotient.
    row_of_vertex : (n_vertices,) int64
    row_offsets : (n_quotients + 1,) int64
    representatives : (n_rows,) int64
        A vertex of the class of each row.
    sizes : (n_rows,) float64
        How many vertices the class has.
    indptr : (n_rows + 1,) int64
    sources : (n_arcs,) int32
    multiplicities : (n_arcs,) float64
    bands : (n_quotients,) int64
        Half-width of the band that is worth storing as diagonals, for each quotient.
    block_offsets, blocks : (n_blocks + 1,) and (n_quotients,) int64
        Block b has the quotients ``blocks[block_offsets[b]:block_offsets[b + 1]]``.
    """

    quotient_of: Ints
    graphs: Ints
    row_of_vertex: Ints
    row_offsets: Ints
    representatives: Ints
    sizes: Floats
    indptr: Ints
    sources: npt.NDArray[np.int32]
    multiplicities: Floats
    bands: Ints
    block_offsets: Ints
    blocks: Ints


class Quotients:
    """The quotient graphs of a batch, as kernels find them, and as arrays for those who ask."""

    def __init__(self, bound: Any) -> None:
        self.bound = bound

    @cached_property
    def arrays(self) -> QuotientArrays:
        """Return the results of a kernel, read-only."""
        from fdgnn.kernels import quotient_arrays

        return QuotientArrays(*quotient_arrays(self.bound))

    @classmethod
    def of(cls, arrays: QuotientArrays) -> Quotients:
        """Make the arrays read-only."""
        from fdgnn.kernels import bind_quotients

        return cls(bind_quotients(QuotientArrays(*frozen(*arrays))))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Quotients.of, (self.arrays,)


# ---------------------------------------------------------------------- colors


def refine(structure: Structure, first: npt.NDArray[np.uint64], n_iterations: int = 0) -> Coloring:
    """Refine the colors `first` until no class splits any more, and for `n_iterations` at least."""
    from fdgnn.kernels import refine_labels

    colors = first.copy()
    classes, n_classes, rounds, signatures = refine_labels(
        structure, bits(structure.weights), colors, n_iterations
    )
    return Coloring(*frozen(classes, n_classes, rounds, signatures, colors))


def hash_values(values: Sequence[Any]) -> npt.NDArray[np.uint64]:
    """Hash each value; the same value has the same 64 bits in every process."""
    return np.array([_hash(value) for value in values], dtype=np.uint64)


@lru_cache(maxsize=4096, typed=True)
def _hash(label: Any) -> int:
    """Return a hash of 64 bits that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(label).encode(), digest_size=8).digest(), "little")


def bits(values: Floats) -> npt.NDArray[np.uint64]:
    """Return the bits of real numbers, by which equal ones are equal."""
    return (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0


# ---------------------------------------------------------------------- quotients


def discrete(structure: Structure) -> Coloring:
    """Return a coloring in which every vertex has its own class, so that nothing is merged."""
    starts, sizes = structure.vertex_offsets[:-1], np.diff(structure.vertex_offsets)
    n, n_vertices = len(sizes), len(structure.indptr) - 1
    coloring = Coloring(
        classes=(np.arange(n_vertices) - np.repeat(starts, sizes)).astype(np.int32),
        n_classes=sizes,
        n_iterations=np.zeros(n, dtype=np.int64),
        signatures=np.arange(n, dtype=np.uint64),
        colors=np.arange(n_vertices, dtype=np.uint64),
    )
    return Coloring(*frozen(*coloring))


def quotients(structure: Structure, coloring: Coloring) -> Quotients:
    """Build the quotient of each graph that the coloring distinguishes."""
    from fdgnn.kernels import build_quotients

    return Quotients(build_quotients(structure, *coloring[:2], coloring.signatures))
