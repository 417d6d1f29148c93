"""Groups of vertices: connected parts of a graph, and rings and functional groups of a molecule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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
    contribution : float
        The contributions of its vertices, added up.
    effect : float
        By how much the score falls if the group is taken away, with all edges at its vertices.
        Effects of several groups do not add up.
    """

    contribution: float
    effect: float


GroupsOfGraph = Mapping[str, Any] | Sequence[VertexGroup]


def checked_groups(given: Sequence[GroupsOfGraph], graphs: GraphBatch) -> list[list[VertexGroup]]:
    """Return the groups of each graph, or raise an error that names graph and group."""
    _check_entries(given, len(graphs))
    sizes = np.diff(graphs.vertex_offsets).tolist()
    return [
        [_checked(g, *pair, size) for pair in _named(own)]
        for g, (own, size) in enumerate(zip(given, sizes, strict=True))
    ]


def groups_of_some(
    given: Sequence[GroupsOfGraph], rows: Sequence[int], n_graphs: int
) -> list[GroupsOfGraph]:
    """Return the groups of some of so many graphs."""
    _check_entries(given, n_graphs)
    return [given[row] for row in rows]


def _check_entries(given: Sequence[GroupsOfGraph], n_graphs: int) -> None:
    one = isinstance(given, str | Mapping)
    if one or len(given) != n_graphs:
        found = type(given).__name__ if one else f"{len(given)} entries"
        raise ValueError(f"groups has {found}; expected an entry for each of {n_graphs} graphs")


def _named(own: GroupsOfGraph) -> list[tuple[str, Any]]:
    if isinstance(own, Mapping):
        return [(str(name), vertices) for name, vertices in own.items()]
    return [(group.name, group.vertices) for group in own]


def _checked(graph: int, name: str, vertices: Any, n_vertices: int) -> VertexGroup:
    numbers = np.asarray(vertices)
    if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iu":
        raise GraphError(f"its group {name!r} is not a list of vertices, counted from 0", graph)
    numbers = np.unique(numbers.astype(np.int64))
    wrong = numbers[(numbers < 0) | (numbers >= n_vertices)]
    if len(wrong):
        reason = f"its group {name!r} has vertex {wrong[0]}, but there are {n_vertices} vertices"
        raise GraphError(reason, graph)
    return VertexGroup(name, numbers)


def without_vertices(graph: Graph, gone: Ints) -> Graph:
    """Return the graph without some vertices and all edges at them."""
    kept = np.ones(int(graph.n_vertices or 0), dtype=bool)
    kept[gone] = False
    arcs = np.asarray(graph.edge_index)
    left = kept[arcs].all(axis=0)

    def some(values: Any, which: Array) -> Any:
        return None if values is None else values[which]

    return Graph(
        (np.cumsum(kept) - 1)[arcs[:, left]],
        n_vertices=int(kept.sum()),
        labels=some(graph.labels, kept),
        features=some(graph.features, kept),
        weights=some(graph.weights, left),
        directed=graph.directed,
        edge_labels=some(graph.edge_labels, left),
        descriptors=graph.descriptors,
        smiles=graph.smiles and graph.smiles._replace(atoms=graph.smiles.atoms[kept]),
    )


# ---------------------------------------------------------------------- connected parts


def connected_parts(graph: Graph) -> list[VertexGroup]:
    """Return the parts of a graph that single edges hold together.

    A *block* is what stays connected whichever one of its edges is cut, such as rings that share
    an edge. What is in no block is a *branch*: the trees that hang on blocks and between them.
    """
    A = GraphBatch.from_graphs([graph]).adjacency()
    A = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    block = _blocks(sp.csr_array(A + A.T))
    numbers, sizes = np.unique(block, return_counts=True)
    blocks = [np.flatnonzero(block == number) for number in numbers[sizes > 1]]
    alone = np.flatnonzero(np.isin(block, numbers[sizes == 1]))
    return [
        *(VertexGroup(f"block of {len(own)} vertices", own) for own in blocks),
        *(VertexGroup(_branch_name(own), own) for own in connected_pieces(A, alone)),
    ]


def connected_pieces(A: sp.csr_array, vertices: Ints) -> list[Ints]:
    """Return the connected components of some vertices of the graph A."""
    n, number = connected_components(A[vertices][:, vertices], directed=False)
    return [vertices[number == piece] for piece in range(n)]


def _branch_name(vertices: Ints) -> str:
    return f"vertex {vertices[0]}" if len(vertices) == 1 else f"branch of {len(vertices)} vertices"


def _blocks(A: sp.csr_array) -> Ints:
    """Number of each vertex' block: its vertex that is nearest to the root of a spanning tree.

    An edge that is not in the tree closes a cycle, so that all on the way between its ends, up
    the tree, is one block.
    """
    parent, depth = _spanning_tree(A)
    top = np.arange(len(parent))

    def highest(v: int) -> int:
        while top[v] != v:
            top[v] = top[top[v]]
            v = int(top[v])
        return v

    for u, v in zip(*sp.triu(A, 1).nonzero(), strict=True):
        if parent[u] == v or parent[v] == u:
            continue
        u, v = highest(int(u)), highest(int(v))
        while u != v:
            u, v = (u, v) if depth[u] >= depth[v] else (v, u)
            top[u] = parent[u]
            u = highest(int(parent[u]))
    return np.array([highest(v) for v in range(A.shape[0])])


def _spanning_tree(A: sp.csr_array) -> tuple[Ints, Ints]:
    """Parents and depths in a tree from a root beside the graph, joined to each component once."""
    n = A.shape[0]
    _, first = np.unique(connected_components(A, directed=False)[1], return_index=True)
    sources, ends = A.nonzero()
    roots: Ints = np.full(len(first), n)
    arcs = np.concatenate([sources, roots]), np.concatenate([ends, first])
    rooted = sp.csr_array((np.ones(len(arcs[0])), arcs), shape=(n + 1, n + 1))
    order, parent = breadth_first_order(rooted, n, directed=False)
    depth = np.zeros(n + 1, dtype=np.int64)
    for v in order[1:].tolist():
        depth[v] = depth[parent[v]] + 1
    return parent.astype(np.int64), depth


#: Functional groups by name, those with more atoms before the ones they contain.
FUNCTIONAL_GROUPS: dict[str, str] = {
    "sulfonamide": "[SX4](=[OX1])(=[OX1])[NX3]",
    "sulfonic acid or ester": "[SX4](=[OX1])(=[OX1])[OX2,OX1-]",
    "sulfonyl": "[SX4](=[OX1])(=[OX1])",
    "sulfoxide": "[SX3]=[OX1]",
    "phosphate or phosphonate": "[PX4](=[OX1])([OX2,OX1-])[OX2,OX1-]",
    "phosphoryl": "[PX4]=[OX1,SX1]",
    "nitro": "[$([NX3](=O)=O),$([NX3+](=O)[O-])](~[OX1])~[OX1]",
    "azide": "[NX2]=[NX2+]=[NX1-]",
    "diazo or azo": "[NX2]=[NX2,NX2+]",
    "nitroso": "[NX2]=[OX1]",
    "guanidine": "[NX3][CX3](=[NX2,NX3+])[NX3]",
    "urea": "[NX3][CX3](=[OX1])[NX3]",
    "thiourea": "[NX3][CX3](=[SX1])[NX3]",
    "carbamate": "[NX3][CX3](=[OX1])[OX2]",
    "carbonate": "[OX2][CX3](=[OX1])[OX2]",
    "imide": "[CX3](=[OX1])[NX3][CX3](=[OX1])",
    "anhydride": "[CX3](=[OX1])[OX2][CX3](=[OX1])",
    "hydroxamic acid": "[CX3](=[OX1])[NX3][OX2H1]",
    "carboxylic acid": "[CX3](=[OX1])[OX2H1,OX1-]",
    "ester": "[CX3](=[OX1])[OX2H0]",
    "amide": "[CX3](=[OX1])[NX3]",
    "acyl halide": "[CX3](=[OX1])[F,Cl,Br,I]",
    "thioamide": "[CX3](=[SX1])[NX3]",
    "thioester": "[CX3](=[OX1])[SX2]",
    "isocyanate or isothiocyanate": "[NX2]=[CX2]=[OX1,SX1]",
    "aldehyde": "[CX3;H1,H2]=[OX1]",
    "ketone": "[CX3;$([CX3]([#6])[#6])]=[OX1]",
    "amidine": "[CX3](=[NX2,NX3+])[NX3]",
    "oxime": "[CX3]=[NX2][OX2]",
    "hydrazone": "[CX3]=[NX2][NX3]",
    "imine": "[CX3]=[NX2]",
    "nitrile": "[CX2]#[NX1]",
    "hydrazine": "[NX3;!$(N~[OX1]);!$(N[CX3]=O)][NX3;!$(N~[OX1]);!$(N[CX3]=O)]",
    "trifluoromethyl": "[CX4](F)(F)F",
    "boronic acid or ester": "[BX3]([OX2])[OX2]",
    "peroxide": "[OX2][OX2]",
    "disulfide": "[SX2][SX2]",
    "alkyne": "[CX2]#[CX2]",
    "alkene": "[CX3;!a]=[CX3;!a]",
    "fluorine": "[F]",
    "chlorine": "[Cl]",
    "bromine": "[Br]",
    "iodine": "[I]",
    "methoxy": "[OX2H0;!r;!$(O[CX3]=O)][CH3]",
    "hydroxyl": "[OX2H1]",
    "thiol": "[SX2H1]",
    "ether": "[OX2;!r;$([OX2]([#6])[#6])]",
    "thioether": "[SX2;!r;$([SX2]([#6])[#6])]",
    "ammonium": "[NX4+]",
    "amine, primary": "[NX3H2;$([NX3][#6])]",
    "amine, secondary": "[NX3H1;!r;$([NX3]([#6])[#6])]",
    "amine, tertiary": "[NX3H0;!r;$([NX3]([#6])([#6])[#6])]",
}


def molecule_groups(
    molecule: Any, smarts: str | Sequence[str] = (), *, like: Any = None
) -> list[VertexGroup]:
    """Find the groups of a molecule's atoms.

    These are the matches of the given SMARTS, every ring, every functional group that is not a
    part of another one (`FUNCTIONAL_GROUPS`), and the connected parts of all other atoms. Groups
    may share atoms: a lactam's amide lies in its ring.

    Parameters
    ----------
    molecule : str or RDKit Mol
        Atoms are counted as in the SMILES, from 0; hydrogens are implicit.
    smarts : str or sequence of str
        Substructures of your own: each a SMARTS, and after a space a name, if it is to have one.
    like : fitted model or InputSchema, optional
        The model to explain. It matters if the model standardizes molecules, since groups are then
        those of the molecule that results.

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
    own = _user_groups(mol, [smarts] if isinstance(smarts, str) else smarts)
    rings = [VertexGroup(_ring_name(mol, ring), np.sort(ring)) for ring in _rings(mol)]
    functional = list(_functional(mol))
    taken = {int(v) for group in (*rings, *functional) for v in group.vertices}
    return [*own, *rings, *functional, *_rest(mol, taken)]


def atom_symbols(molecule: Any) -> list[str]:
    """Return the element of each atom."""
    return [atom.GetSymbol() for atom in _molecule(molecule).GetAtoms()]


def check_smarts(smarts: Sequence[str]) -> None:
    """Raise ValueError for the first SMARTS that cannot be parsed."""
    for one in smarts:
        _query(one)


def name_of_smarts(smarts: str) -> str:
    """Return what follows a SMARTS after a space, or the SMARTS itself."""
    pattern, name = _pattern_and_name(smarts)
    return name or pattern


def _molecule(molecule: Any, like: Any = None) -> Any:
    schema = schema_of(like)
    reader = MoleculeReader() if schema is None else MoleculeReader.of(schema)
    return reader.molecule(molecule).mol


# ---------------------------------------------------------------------- the kinds of groups


def _user_groups(mol: Any, smarts: Sequence[str]) -> Iterator[VertexGroup]:
    for one in smarts:
        name = name_of_smarts(one)
        for match in mol.GetSubstructMatches(_query(one)):
            yield VertexGroup(name, np.unique(match))


def _rings(mol: Any) -> list[Any]:
    return [np.array(ring, dtype=np.int64) for ring in mol.GetRingInfo().AtomRings()]


def _ring_name(mol: Any, ring: Any) -> str:
    atoms = [mol.GetAtomWithIdx(int(v)) for v in ring]
    aromatic = "aromatic ring" if all(atom.GetIsAromatic() for atom in atoms) else "ring"
    others = sorted({atom.GetSymbol() for atom in atoms} - {"C"})
    beside = f" with {', '.join(others)}" if others else ""
    return f"{aromatic} of {len(ring)}{beside}"


def _functional(mol: Any) -> Iterator[VertexGroup]:
    """Functional groups, the largest first; none that lies inside another."""
    kept: list[set[int]] = []
    for name, pattern in FUNCTIONAL_GROUPS.items():
        for match in mol.GetSubstructMatches(_query(pattern)):
            if not any(set(match) <= other for other in kept):
                kept.append(set(match))
                yield VertexGroup(name, np.unique(match))


def _rest(mol: Any, taken: set[int]) -> Iterator[VertexGroup]:
    """Connected parts of the atoms that are in no ring and no functional group."""
    left = np.setdiff1d(np.arange(mol.GetNumAtoms()), list(taken))
    bonds = sp.csr_array(_chem().GetAdjacencyMatrix(mol))
    for part in connected_pieces(bonds, left):
        yield VertexGroup(_chain_name(mol, part.tolist()), part)


def _chain_name(mol: Any, part: list[int]) -> str:
    symbols = [mol.GetAtomWithIdx(v).GetSymbol() for v in part]
    if len(set(symbols)) > 1:
        return f"chain of {len(part)} atoms"
    return f"chain of {len(part)} {symbols[0]}" if len(part) > 1 else f"single {symbols[0]}"


# ---------------------------------------------------------------------- RDKit


def _pattern_and_name(smarts: str) -> tuple[str, str]:
    pattern, *name = smarts.split(maxsplit=1) or [""]
    return pattern, " ".join(name).strip()


@cache
def _query(smarts: str) -> Any:
    pattern, _ = _pattern_and_name(smarts)
    with require("rdkit.rdBase", "chem", "Groups of atoms").BlockLogs():
        query = _chem().MolFromSmarts(pattern) if pattern else None
    if query is None:
        raise ValueError(f"`smarts`: {smarts[:60]!r} cannot be parsed as a SMARTS")
    return query


def _chem() -> Any:
    return require("rdkit.Chem", "chem", "Groups of atoms")
