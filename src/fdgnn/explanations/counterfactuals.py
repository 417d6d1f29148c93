"""Counterfactuals: the smallest changes of a graph that change its predicted class.

All single changes are tried: a vertex or an edge removed, an edge added, a label changed. Of
molecules these are edits by RDKit, of which only chemically valid molecules in one piece are kept:
atoms removed, added or replaced by other elements, bonds removed, added or of another order. If
none changes the class, the changes that come nearest to it are changed once more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.exceptions import FDGNNWarning, GraphError
from fdgnn.explanations.attributions import chosen_score, scores_of
from fdgnn.explanations.groups import without_edge, without_vertices
from fdgnn.extras import require
from fdgnn.graphs import Graph
from fdgnn.graphs.converters import as_batch

_ROUNDING = 1e-9  # differences of scores that do not count, in units of the largest score
_BEAM = 4  # changed graphs that are changed once more
_MOST_EDITS = 3_000  # of one graph that are tried
_MOST_LABELS = 12  # that a vertex is relabeled to
_ELEMENTS = ("C", "N", "O", "F", "S", "Cl", "Br")
_RINGS = (5, 6)  # atoms of a ring that a new bond closes
_MOST_BONDS = 4  # of an atom that loses one; a hydrogen at a sulfonyl group is valid, not sensible
_LOOKED_AT = 5  # times as many counterfactuals as are returned, so that some are in the domain


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A changed graph, and what the model predicts for it.

    Attributes
    ----------
    changes : tuple of str
        What was changed, in order. Vertices are numbered as they were before each change.
    graph : Graph
    smiles : str or None
        Of the changed molecule.
    prediction : class label or float
    score : float
        The output for the class that the graph had before; of a regression the number.
    effect : float
        By how much the changes raise that score.
    flips : bool
        Whether the predicted class is another one; of a regression always False.
    out_of_domain : str or None
        Why the changed graph is outside the applicability domain, if it is.
    """

    changes: tuple[str, ...]
    graph: Graph
    smiles: str | None
    prediction: Any
    score: float
    effect: float
    flips: bool
    out_of_domain: str | None = None


class _Candidate(NamedTuple):
    """A changed graph before the model has seen it; of molecules an RDKit Mol, and its SMILES."""

    changes: tuple[str, ...]
    thing: Any
    smiles: str | None = None


def counterfactuals(
    model: Any, graphs: Any, *, target: Any = None, n_most: int = 3, max_changes: int = 2
) -> list[list[Counterfactual]]:
    """Find the smallest changes of each graph that change its predicted class.

    Parameters
    ----------
    model : any model of this library, or FDGNNSearchCV
        Fitted.
    graphs : GraphBatch or list of graphs
        Molecules are changed as molecules.
    target : class label, str, int or pair, optional
        The desired class; by default any other class. For multi-target models, the name or index
        of a target, or a pair (target, class).
    n_most : int, default=3
        Maximum number of counterfactuals for each graph.
    max_changes : int, default=2
        Maximum number of changes. More are tried only if fewer do not change the class.

    Returns
    -------
    list of lists of Counterfactual
        For each graph, the counterfactuals with the fewest changes, first those in the
        applicability domain, ordered by certainty. If none changes the class, the nearest ones,
        with `flips` False. In regression, the single changes with the largest effects, in either
        direction.

    Examples
    --------
    >>> from fdgnn import GraphClassifier, counterfactuals
    >>> molecules = ["CCO", "CCCO", "CCCCO", "OCCO", "CCN", "CCCN", "CCCCN", "NCCN"] * 3
    >>> model = GraphClassifier().fit(molecules, (["acid"] * 4 + ["base"] * 4) * 3)
    >>> first = counterfactuals(model, ["CCCO"], n_most=1)[0][0]
    >>> first.changes, first.smiles, first.prediction, first.flips
    (('atom 3: O becomes N',), 'CCCN', 'base', True)
    """
    if n_most < 1 or max_changes < 1:
        raise ValueError("n_most and max_changes are whole numbers, at least 1")
    model, number, _ = chosen_score(model, target)
    batch = model._check_graphs(graphs)
    return [_of_graph(model, graph, number, n_most, max_changes) for graph in batch]


def _of_graph(
    model: Any, graph: Graph, wanted: int | None, n_most: int, max_changes: int
) -> list[Counterfactual]:
    classify = model.targets_[0].classes is not None
    start = scores_of(model, [graph])[0]
    own = int(start.argmax()) if classify else 0
    if wanted == own and classify:
        return []
    edit: Callable[[_Candidate], Iterator[_Candidate]]
    if graph.smiles is None:
        first, edit = _Candidate((), graph), partial(_edited_graphs, model)
    else:
        mol = _chem().MolFromSmiles(graph.smiles.text)
        first, edit = _Candidate((), mol, _chem().MolToSmiles(mol)), _edited_molecules
    level, seen = [first], {first.smiles}
    found: list[tuple[float, Counterfactual]] = []
    for _ in range(max_changes if classify else 1):
        edits = []
        for each in level:  # up to a limit, and of equal molecules the first
            new = (one for one in edit(each) if one.smiles is None or one.smiles not in seen)
            for one in islice(new, _MOST_EDITS):
                seen.add(one.smiles)
                edits.append(one)
        made = _predicted(model, graph, edits, start, own, wanted)
        found = sorted(found + [pair[:2] for pair in made], key=lambda pair: pair[0])
        if any(one.flips for _, one in found):
            break
        level = [one for _, _, one in sorted(made, key=lambda each: each[0])[:_BEAM]]
    flipping = [one for _, one in found if one.flips]
    best = (flipping or [one for _, one in found])[: _LOOKED_AT * n_most]
    if not best:
        return []
    why = model.out_of_domain([one.graph for one in best])
    best = [replace(one, out_of_domain=why.get(i)) for i, one in enumerate(best)]
    return sorted(best, key=lambda one: one.out_of_domain is not None)[:n_most]


def _predicted(
    model: Any, graph: Graph, edits: list[_Candidate], start: Floats, own: int, wanted: int | None
) -> list[tuple[float, Counterfactual, _Candidate]]:
    """Return changed graphs that are valid for the model, each with its margin; lower is better.

    The predicted class has changed only if its score is larger by more than rounding errors.
    """
    classes = model.targets_[0].classes
    with warnings.catch_warnings():  # the graph as a whole has been warned about
        warnings.simplefilter("ignore", FDGNNWarning)
        valid = model.valid_graphs([_as_graph(each, graph, model) for each in edits])
    scores = scores_of(model, valid.graphs)
    rounding = _ROUNDING * float(np.abs([*start, *scores.ravel()]).max())
    made: list[tuple[float, Counterfactual, _Candidate]] = []
    for row, changed, each in zip(valid.rows.tolist(), valid.graphs, scores, strict=True):
        score, effect = float(each[own]), float(each[own] - start[own])
        winner = own if each.max() <= each[own] + rounding else int(each.argmax())
        if classes is None:
            prediction, margin, flips = score, -abs(effect), False
        else:
            prediction = classes[winner : winner + 1].tolist()[0]
            strongest = np.delete(each, own).max() if wanted is None else each[wanted]
            margin = score - float(strongest)
            flips = winner != own if wanted is None else winner == wanted
        smiles = changed.smiles and changed.smiles.text
        one = Counterfactual(edits[row].changes, changed, smiles, prediction, score, effect, flips)
        made.append((margin, one, edits[row]))
    return made


def _as_graph(one: _Candidate, graph: Graph, model: Any) -> Any:
    """Return a changed molecule as a graph with the descriptors of the first one."""
    if one.smiles is None or graph.descriptors is None:
        return one.smiles or one.thing
    try:
        return replace(as_batch([one.smiles], like=model)[0], descriptors=graph.descriptors)
    except GraphError:  # the model's schema rejects it, which the caller finds again
        return one.smiles


# ---------------------------------------------------------------------- graphs


def _edited_graphs(model: Any, start: _Candidate) -> Iterator[_Candidate]:
    """Yield a graph after each single change."""
    graph: Graph = start.thing

    def changed(words: str, other: Graph) -> _Candidate:
        return _Candidate((*start.changes, words), other)

    n, arcs = int(graph.n_vertices or 0), np.asarray(graph.edge_index)
    for v in range(n if n > 1 else 0):
        yield changed(f"vertex {v} removed", without_vertices(graph, np.array([v])))
    edges = {(int(u), int(v)) for u, v in arcs.T if graph.directed or u <= v}
    for u, v in sorted(edges):
        yield changed(f"edge {u}-{v} removed", without_edge(graph, u, v))
    if graph.labels is not None:
        # The labels of the training graphs; if there are many, only those of the graph.
        known = [getattr(fitted.encoder, "vocabulary_", None) for fitted in model.estimators_]
        vocabulary = next((list(each) for each in known if each is not None), [])
        if len(vocabulary) > _MOST_LABELS:
            own = dict.fromkeys(graph.labels.tolist())
            vocabulary = [label for label in own if label in set(vocabulary)]
        for v, old in enumerate(graph.labels.tolist()):
            for new in vocabulary:
                if new != old:
                    labels = graph.labels.copy()
                    labels[v] = new
                    words = f"vertex {v}: label {old} becomes {new}"
                    yield changed(words, replace(graph, labels=labels))
    for u in range(n):
        for v in range(n if graph.directed else u):
            if u != v and not {(u, v), (v, u)} & edges:
                yield changed(f"edge {v}-{u} added", _with_edge(graph, v, u))


def _with_edge(graph: Graph, u: int, v: int) -> Graph:
    """Add an edge, with the commonest label and the mean weight of the others."""
    pairs = [(u, v)] if graph.directed else [(u, v), (v, u)]
    arcs = np.concatenate([np.asarray(graph.edge_index), np.array(pairs).T], axis=1)
    weights, labels = graph.weights, graph.edge_labels
    if weights is not None:
        own = float(np.mean(weights)) if len(weights) else 1.0
        weights = np.append(weights, [own] * len(pairs))
    if labels is not None and len(labels):
        values, counts = np.unique(labels, return_counts=True)
        labels = np.append(labels, [values[counts.argmax()]] * len(pairs))
    return replace(graph, edge_index=arcs, weights=weights, edge_labels=labels)


# ---------------------------------------------------------------------- molecules


def _chem() -> Any:
    return require("rdkit.Chem", "chem", "Counterfactuals of molecules")


def _edited_molecules(start: _Candidate) -> Iterator[_Candidate]:
    """Yield a molecule after each single change that leaves a valid, connected molecule."""
    Chem = _chem()
    with require("rdkit.rdBase", "chem", "Counterfactuals of molecules").BlockLogs():
        pieces = len(Chem.GetMolFrags(start.thing))
        for words, edited in _molecule_edits(Chem, start.thing):
            try:
                mol = edited.GetMol()
                for atom in mol.GetAtoms():  # valences are counted anew
                    atom.SetNoImplicit(False)
                Chem.SanitizeMol(mol)
                smiles = Chem.MolToSmiles(mol)
                valid = Chem.MolFromSmiles(smiles) is not None
            except (ValueError, RuntimeError):
                continue
            if valid and mol.GetNumAtoms() and len(Chem.GetMolFrags(mol)) <= pieces:
                yield _Candidate((*start.changes, words), mol, smiles)


def _molecule_edits(Chem: Any, mol: Any) -> Iterator[tuple[str, Any]]:
    """Yield molecules after each single change, in words, whether they are valid or not."""
    types = Chem.BondType
    orders = {"single": types.SINGLE, "double": types.DOUBLE, "triple": types.TRIPLE}
    atoms = list(mol.GetAtoms())
    for atom in atoms:
        v, old = atom.GetIdx(), atom.GetSymbol()
        edited = Chem.RWMol(mol)
        edited.RemoveAtom(v)
        yield f"atom {v} ({old}) removed", edited
        for new in _ELEMENTS:
            if new != old and not (new == "S" and atom.GetDegree() > 2):
                edited = Chem.RWMol(mol)
                own = edited.GetAtomWithIdx(v)
                own.SetAtomicNum(Chem.GetPeriodicTable().GetAtomicNumber(new))
                own.SetFormalCharge(0)
                own.SetNumExplicitHs(0)
                yield f"atom {v}: {old} becomes {new}", edited
        for new in _ELEMENTS if atom.GetTotalNumHs() else ():
            edited = Chem.RWMol(mol)
            edited.AddBond(v, edited.AddAtom(Chem.Atom(new)), types.SINGLE)
            edited.GetAtomWithIdx(v).SetNumExplicitHs(0)
            yield f"{new} added at atom {v} ({old})", edited
    for bond in mol.GetBonds():
        ends = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        place = f"{ends[0]}-{ends[1]}"
        if all(atoms[v].GetTotalValence() <= _MOST_BONDS for v in ends):
            edited = Chem.RWMol(mol)
            edited.RemoveBond(*ends)
            yield f"bond {place} removed", edited
        for name, order in orders.items():
            if bond.GetBondType() != order and not bond.GetIsAromatic():
                edited = Chem.RWMol(mol)
                edited.GetBondBetweenAtoms(*ends).SetBondType(order)
                yield f"bond {place} becomes {name}", edited
    distances = Chem.GetDistanceMatrix(mol)
    for u, v in np.argwhere(np.isin(distances, [size - 1 for size in _RINGS])).tolist():
        if u < v and atoms[u].GetTotalNumHs() and atoms[v].GetTotalNumHs():
            edited = Chem.RWMol(mol)
            edited.AddBond(u, v, types.SINGLE)
            yield f"bond {u}-{v} added", edited
