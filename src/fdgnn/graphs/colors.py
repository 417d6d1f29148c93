"""Vertices that look alike: color refinement, quotient graphs, and the WL ceiling.

Two vertices of the same stable color (1-WL) have equal states in every layer, so the engine
computes each color class once, on the quotient graph: one row a class, arcs with multiplicities,
pooling weighted by the classes' sizes. Graphs with equal quotients have equal embeddings and are
computed once, too. All of this belongs to the batch and is kept with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints, offsets_of

_ROWS_OF_A_BLOCK = 512  # states of a neuron take 2 kB, sums of a layer of 500 stay near


Batch = Any  # a fdgnn.GraphBatch; graphs.py stands above this room


class Coloring(NamedTuple):
    """The stable colors of a batch, each graph refined on its own.

    Attributes
    ----------
    classes : (n_vertices,) int32
        Each vertex' color class, numbered inside its graph.
    n_classes, n_rounds : (n_graphs,) int64
    signatures : (n_graphs,) uint64
        Equal for graphs that color refinement cannot tell apart.
    colors : (n_vertices,) uint64
        Hashes; comparable between graphs that were refined equally long.
    """

    classes: npt.NDArray[np.int32]
    n_classes: Ints
    n_rounds: Ints
    signatures: npt.NDArray[np.uint64]
    colors: npt.NDArray[np.uint64]


class Quotients(NamedTuple):
    """The distinct quotient graphs of a batch, packed into blocks for the kernels.

    Attributes
    ----------
    quotient_of : (n_graphs,) int64
        Each graph's quotient.
    graphs : (n_quotients,) int64
        The first graph of each quotient.
    row_of_vertex : (n_vertices,) int64
    row_offsets : (n_quotients + 1,) int64
    representatives : (n_rows,) int64
        A vertex of each row's class.
    sizes : (n_rows,) float64
        How many vertices it has.
    indptr : (n_rows + 1,) int64
    sources : (n_arcs,) int32
    multiplicities : (n_arcs,) float64
    bands : (n_quotients,) int64
        Half-width of the band of the quotient's matrix that is worth storing as diagonals.
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


# ---------------------------------------------------------------------- colors


def refine(graphs: Batch, n_rounds: int = 0) -> Coloring:
    """Refine every graph until no class splits any more, and for `n_rounds` at least."""
    from fdgnn.kernels import refinement

    n, n_vertices = len(graphs), int(graphs.vertex_offsets[-1])
    result = Coloring(
        classes=np.empty(n_vertices, dtype=np.int32),
        n_classes=np.empty(n, dtype=np.int64),
        n_rounds=np.empty(n, dtype=np.int64),
        signatures=np.empty(n, dtype=np.uint64),
        colors=first_colors(graphs),
    )
    refinement.refine(
        0,
        n,
        graphs.vertex_offsets,
        graphs.indptr,
        graphs.neighbors,
        np.empty(0, np.uint64) if graphs.weights is None else _bits(graphs.weights),
        result.colors,
        n_rounds,
        result.classes,
        result.n_classes,
        result.n_rounds,
        result.signatures,
    )
    return Coloring(*_frozen(result))


def first_colors(graphs: Batch) -> npt.NDArray[np.uint64]:
    """Hash what a vertex brings: its label's value, its row of features, or nothing."""
    from fdgnn.kernels.refinement import mix_rows

    colors = np.zeros(graphs.vertex_offsets[-1], dtype=np.uint64)
    if graphs.label_values is not None and graphs.label_codes is not None:
        table = np.array([_hash(label) for label in graphs.label_values.tolist()], dtype=np.uint64)
        return np.asarray(table[graphs.label_codes])
    if graphs.features is not None:
        mix_rows(_bits(graphs.features), colors)
    return colors


def _hash(label: Any) -> int:
    """64 bits that are the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(label).encode(), digest_size=8).digest(), "little")


def _bits(values: Floats) -> npt.NDArray[np.uint64]:
    return (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0


def common_colors(graphs: Batch) -> Ints:
    """Number the stable colors of the whole batch."""
    n_rounds = int(graphs.coloring.n_rounds.max())
    before = -1
    while True:  # graphs of one batch may differ only after more rounds than either needs alone
        values, colors = np.unique(refine(graphs, n_rounds).colors, return_inverse=True)
        if len(values) == before:
            return colors.astype(np.int64)
        before, n_rounds = len(values), n_rounds + 1


def wl_ceiling(signatures: Array, y: Any) -> float:
    """Share of graphs that are of the commonest class among those refinement cannot tell apart."""
    _, group = np.unique(signatures, return_inverse=True)
    _, target = np.unique(np.asarray(y), return_inverse=True)
    counts = np.zeros((group.max() + 1, target.max() + 1), dtype=np.int64)
    np.add.at(counts, (group, target), 1)
    return float(counts.max(axis=1).sum() / len(group))


# ---------------------------------------------------------------------- quotients


def discrete(graphs: Batch) -> Coloring:
    """Give every vertex a class of its own, so that nothing is merged."""
    sizes = np.diff(graphs.vertex_offsets)
    n, n_vertices = len(sizes), int(graphs.vertex_offsets[-1])
    result = Coloring(
        classes=(np.arange(n_vertices) - np.repeat(graphs.vertex_offsets[:-1], sizes)).astype(
            np.int32
        ),
        n_classes=sizes,
        n_rounds=np.zeros(n, dtype=np.int64),
        signatures=np.arange(n, dtype=np.uint64),
        colors=np.arange(n_vertices, dtype=np.uint64),
    )
    return Coloring(*_frozen(result))


def quotients(graphs: Batch, coloring: Coloring) -> Quotients:
    """Build the quotient of each graph that the coloring tells apart."""
    from fdgnn.kernels import quotient

    _, chosen, quotient_of = np.unique(coloring.signatures, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(chosen))  # in the order in which the batch has them
    chosen, quotient_of = np.sort(chosen), rank[quotient_of]
    classes, n_classes = coloring.classes, coloring.n_classes
    structure = (graphs.vertex_offsets, graphs.indptr, graphs.neighbors)
    m = len(chosen)
    row_offsets = offsets_of(n_classes[chosen])
    counts = np.zeros(m, dtype=np.int64)
    quotient.count_arcs(0, m, chosen, *structure, classes, n_classes, counts)
    n_rows, n_arcs = int(row_offsets[-1]), int(counts.sum())
    rows_of_classes = np.empty(n_rows, dtype=np.int64)
    representatives = np.empty(n_rows, dtype=np.int64)
    sizes = np.empty(n_rows)
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    sources = np.empty(n_arcs, dtype=np.int32)
    multiplicities = np.empty(n_arcs)
    bands = np.empty(m, dtype=np.int64)
    quotient.build(
        0, m, chosen, *structure,
        np.empty(0) if graphs.weights is None else graphs.weights,
        classes, n_classes, row_offsets, offsets_of(counts),
        rows_of_classes, representatives, sizes, indptr, sources, multiplicities, bands,
    )  # fmt: skip
    first_row = row_offsets[quotient_of][graphs.graph_of_vertex]
    blocks, block_offsets = _pack(np.diff(row_offsets), bands)
    result = Quotients(
        quotient_of=quotient_of,
        graphs=chosen,
        row_of_vertex=first_row + rows_of_classes[first_row + classes],
        row_offsets=row_offsets,
        representatives=representatives,
        sizes=sizes,
        indptr=indptr,
        sources=sources,
        multiplicities=multiplicities,
        bands=bands,
        block_offsets=block_offsets,
        blocks=blocks,
    )
    return Quotients(*_frozen(result))


def _pack(n_rows: Ints, bands: Ints) -> tuple[Ints, Ints]:
    """Fill blocks with quotients of like bandwidth, up to the rows that a block may have."""
    blocks = np.lexsort((n_rows, bands))
    cuts = [0]
    filled = 0
    for k, rows in enumerate(n_rows[blocks].tolist()):
        if filled and filled + rows > _ROWS_OF_A_BLOCK:
            cuts.append(k)
            filled = 0
        filled += rows
    return blocks, np.array([*cuts, len(blocks)])


def _frozen(arrays: Iterable[Array]) -> Iterator[Array]:
    """Make arrays read-only, as they are in worker processes: kernels know one kind."""
    for array in arrays:
        array.setflags(write=False)
        yield array
