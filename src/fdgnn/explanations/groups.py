"""Groups of vertices: connected parts of a graph, and rings and functional groups of a molecule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from fdgnn.arrays import Array, Ints
from fdgnn.exceptions import GraphError
from fdgnn.extras import require
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.graphs.molecules import MoleculeReader
from fdgnn.schema import schema_of


@dataclass(frozen=True, eq=False)
class VertexGroup:
    """Vertices of one graph that belong together, and what they are called."""

    name: str
    vertices: Ints  # (m,) positions in the graph, ascending


@dataclass(frozen=True, eq=False)
class ExplainedGroup(VertexGroup):
    """A group, and its part in a score.

    Attributes
    ----------
    attribution : float
        The attributions of its vertices, added up.
    effect : float
        By how much the score falls if the group is taken away, with all edges at its vertices.
        Effects of several groups do not add up.
    """

    attribution: float
    effect: float


GroupsOfGraph = Mapping[str, Any] | Sequence[VertexGroup]


def checked_groups(given: Sequence[GroupsOfGraph], graphs: GraphBatch) -> list[list[VertexGroup]]:
    """Return the groups of each graph, or raise an error that names graph and group."""
    check_entries(given, len(graphs))
    found = []
    sizes = np.diff(graphs.vertex_offsets).tolist()
    for g, (own, size) in enumerate(zip(given, sizes, strict=True)):
        pairs = own.items() if isinstance(own, Mapping) else [(x.name, x.vertices) for x in own]
        groups = []
        for name, vertices in pairs:
            numbers, group = np.asarray(vertices), f"group {str(name)!r}"
            if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iu":
                raise GraphError(f"{group} is not a list of vertices, counted from 0", g)
            numbers = np.unique(numbers.astype(np.int64))
            wrong = numbers[(numbers < 0) | (numbers >= size)]
            if len(wrong):
                raise GraphError(f"{group} has vertex {wrong[0]}, but there are {size} vertices", g)
            groups.append(VertexGroup(str(name), numbers))
        found.append(groups)
    return found


def check_entries(given: Sequence[GroupsOfGraph], n_graphs: int) -> None:
    """Raise ValueError unless there is an entry for each graph."""
    one = isinstance(given, str | Mapping)
    if one or len(given) != n_graphs:
        found = type(given).__name__ if one else f"{len(given)} entries"
        raise ValueError(f"groups has {found}; expected an entry for each of {n_graphs} graphs")


def without_vertices(graph: Graph, gone: Ints) -> Graph:
    """Return the graph without some vertices and all edges at them."""
    kept = np.ones(int(graph.n_vertices or 0), dtype=bool)
    kept[gone] = False
    return _part(graph, kept, kept[np.asarray(graph.edge_index)].all(axis=0))


def without_edge(graph: Graph, u: int, v: int) -> Graph:
    """Return the graph without an edge, both ways if it is undirected."""
    source, end = np.asarray(graph.edge_index)
    gone = (source == u) & (end == v)
    if not graph.directed:
        gone |= (source == v) & (end == u)
    return _part(graph, np.ones(int(graph.n_vertices or 0), dtype=bool), ~gone)


def _part(graph: Graph, vertices: Array, arcs: Array) -> Graph:
    """Return the part of a graph that has these vertices and arcs, both masks."""

    def some(values: Any, which: Array) -> Any:
        return None if values is None else values[which]

    return replace(
        graph,
        edge_index=(np.cumsum(vertices) - 1)[np.asarray(graph.edge_index)[:, arcs]],
        n_vertices=int(vertices.sum()),
        labels=some(graph.labels, vertices),
        features=some(graph.features, vertices),
        weights=some(graph.weights, arcs),
        edge_labels=some(graph.edge_labels, arcs),
        smiles=graph.smiles and graph.smiles._replace(atoms=graph.smiles.atoms[vertices]),
        vertex_names=None,
    )


# ---------------------------------------------------------------------- connected parts


def connected_parts(graph: Graph) -> list[VertexGroup]:
    """Divide a graph into blocks and branches, at the edges that alone connect its parts.

    A *block* stays connected when any one of its edges is removed, such as rings that share an
    edge. All other vertices are in *branches*, the trees attached to blocks and between them.
    """
    A = GraphBatch.from_graphs([graph]).adjacency()
    A = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    block = _blocks(sp.csr_array(A + A.T))
    numbers, sizes = np.unique(block, return_counts=True)
    blocks = [np.flatnonzero(block == number) for number in numbers[sizes > 1]]
    alone = np.flatnonzero(np.isin(block, numbers[sizes == 1]))
    found = [VertexGroup(f"block of {len(own)} vertices", own) for own in blocks]
    for own in connected_pieces(A, alone):
        name = f"vertex {own[0]}" if len(own) == 1 else f"branch of {len(own)} vertices"
        found.append(VertexGroup(name, own))
    return found


def connected_pieces(A: sp.csr_array, vertices: Ints) -> list[Ints]:
    """Return the connected components of some vertices of the graph A."""
    n, number = connected_components(A[vertices][:, vertices], directed=False)
    return [vertices[number == piece] for piece in range(n)]


def _blocks(A: sp.csr_array) -> Ints:
    """Return the number of each vertex' part of a graph without its bridges.

    Each edge outside of a spanning tree has a random number, and each edge of the tree the
    exclusive or of those whose cycles it is on. A bridge is on no cycle: it has 0.
    """
    n = A.shape[0]
    _, first = np.unique(connected_components(A, directed=False)[1], return_index=True)
    sources, ends = A.nonzero()
    roots: Ints = np.full(len(first), n)  # one vertex beside the graph, joined to each component
    arcs = np.concatenate([sources, roots]), np.concatenate([ends, first])
    rooted = sp.csr_array((np.ones(len(arcs[0])), arcs), shape=(n + 1, n + 1))
    order, parent = breadth_first_order(rooted, n, directed=False)
    u, v = sp.triu(A, 1).nonzero()
    outside = (parent[u] != v) & (parent[v] != u)
    cycles = np.zeros(n + 1, dtype=np.uint64)
    for end in (u, v):
        rng = np.random.default_rng(0)  # both ends have the same number
        numbers = rng.integers(2**64, size=len(u), dtype=np.uint64)
        np.bitwise_xor.at(cycles, end[outside], numbers[outside])
    for vertex in order[:0:-1].tolist():
        cycles[parent[vertex]] ^= cycles[vertex]
    kept = outside | (cycles[np.where(parent[u] == v, u, v)] != 0)
    unbroken = sp.csr_array((np.ones(kept.sum()), (u[kept], v[kept])), shape=A.shape)
    return np.asarray(connected_components(unbroken, directed=False)[1], dtype=np.int64)


@cache
def functional_groups() -> dict[str, str]:
    """Return the SMARTS of functional groups by name, larger ones before those they contain."""
    text = Path(__file__).with_name("functional_groups.tsv").read_text(encoding="utf-8")
    return dict(line.split("\t") for line in text.splitlines())


def molecule_groups(
    molecule: Any, smarts: str | Sequence[str] = (), *, like: Any = None
) -> list[VertexGroup]:
    """Find the groups of a molecule's atoms.

    These are the matches of the given SMARTS, every ring, every functional group that is not a part
    of another one (``functional_groups.tsv``), and the connected parts of all other atoms. Groups
    may share atoms: the amide of a lactam is in its ring.

    Parameters
    ----------
    molecule : str or RDKit Mol
        The molecule. Atoms are counted from 0 in the order of the SMILES; hydrogens are implicit.
    smarts : str or sequence of str
        Your own groups: each a SMARTS, optionally followed by a space and a name.
    like : fitted model or InputSchema, optional
        The model to explain. If it standardizes molecules, groups are those of the standardized
        molecule.

    Returns
    -------
    list of VertexGroup

    Raises
    ------
    ValueError
        A SMARTS, or the molecule, cannot be parsed.

    Examples
    --------
    >>> from fdgnn import molecule_groups
    >>> [group.name for group in molecule_groups("CCc1ccccc1C(=O)O", ["cC benzylic"])]
    ['benzylic', 'benzylic', 'aromatic ring of 6', 'carboxylic acid', 'chain of 2 C']
    """
    mol = _molecule(molecule, like)
    own = [
        VertexGroup(name_of_smarts(one), np.unique(match))
        for one in ([smarts] if isinstance(smarts, str) else smarts)
        for match in mol.GetSubstructMatches(query_of(one))
    ]
    rings = []
    for ring in mol.GetRingInfo().AtomRings():
        atoms = [mol.GetAtomWithIdx(int(v)) for v in ring]
        aromatic = "aromatic ring" if all(atom.GetIsAromatic() for atom in atoms) else "ring"
        others = sorted({atom.GetSymbol() for atom in atoms} - {"C"})
        beside = f" with {', '.join(others)}" if others else ""
        rings.append(VertexGroup(f"{aromatic} of {len(ring)}{beside}", np.unique(ring)))
    # Functional groups, the largest first; none that lies inside another.
    functional, kept = [], list[set[int]]()
    for name, pattern in functional_groups().items():
        for match in mol.GetSubstructMatches(query_of(pattern)):
            if not any(set(match) <= other for other in kept):
                kept.append(set(match))
                functional.append(VertexGroup(name, np.unique(match)))
    # Connected parts of the atoms that are in no ring and no functional group.
    taken = {int(v) for group in (*rings, *functional) for v in group.vertices}
    left = np.setdiff1d(np.arange(mol.GetNumAtoms()), list(taken))
    bonds = sp.csr_array(_chem().GetAdjacencyMatrix(mol))
    chains = []
    for part in connected_pieces(bonds, left):
        symbols = [mol.GetAtomWithIdx(v).GetSymbol() for v in part.tolist()]
        chain = f"chain of {len(part)} {'atoms' if len({*symbols}) > 1 else symbols[0]}"
        chains.append(VertexGroup(chain if len(part) > 1 else f"single {symbols[0]}", part))
    return [*own, *rings, *functional, *chains]


def atom_symbols(molecule: Any) -> list[str]:
    """Return the element of each atom."""
    return [atom.GetSymbol() for atom in _molecule(molecule).GetAtoms()]


def name_of_smarts(smarts: str) -> str:
    """Return what follows a SMARTS after a space, or the SMARTS itself."""
    return (smarts.split(maxsplit=1) or [""])[-1].strip()


def _molecule(molecule: Any, like: Any = None) -> Any:
    schema = schema_of(like)
    reader = MoleculeReader() if schema is None else MoleculeReader.of(schema)
    return reader.molecule(molecule)


@cache
def query_of(smarts: str) -> Any:
    """Return the query of a SMARTS, or raise ValueError if it cannot be parsed."""
    pattern = (smarts.split() or [""])[0]
    with require("rdkit.rdBase", "chem", "Groups of atoms").BlockLogs():
        query = _chem().MolFromSmarts(pattern) if pattern else None
    if query is None:
        raise ValueError(f"`smarts`: {smarts[:60]!r} cannot be parsed as a SMARTS")
    return query


def _chem() -> Any:
    return require("rdkit.Chem", "chem", "Groups of atoms")
