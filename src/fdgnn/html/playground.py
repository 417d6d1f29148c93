"""A page in which a model runs: one HTML file, without a server and without an installation.

The page holds a fitted model as its file would, and example graphs. Its scripts compute what
Python computes; docs/how-to/playground.md says how closely, and tests compare.
"""

from __future__ import annotations

import base64
import copy
import gzip
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fdgnn.arrays import Array, Ints
from fdgnn.encoders import (
    Encoder,
    EncoderUnion,
    GraphReservoir,
    MoleculeDescriptors,
    PairCounts,
    WLCounts,
)
from fdgnn.estimators import AutoGraphClassifier, AutoGraphRegressor
from fdgnn.evaluation import paper
from fdgnn.exceptions import FDGNNWarning, GraphError, PlaygroundError
from fdgnn.expansion import RandomExpansion, projection_norm, unscaled_projection
from fdgnn.explanations.attributions import checked_model
from fdgnn.files import check_writable
from fdgnn.fitting import FittedModel
from fdgnn.folds import stratified
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.graphs.molecules import MoleculeReader, is_molecule
from fdgnn.html.data_statistics import elements_of_labels
from fdgnn.html.model_views import check_classes
from fdgnn.html.page import build_page, check_jinja, write_page
from fdgnn.html.words import clipped, plural
from fdgnn.model_files import load_model
from fdgnn.model_files.description import SeedRecord, as_json, describe, estimator_arrays
from fdgnn.records import encode
from fdgnn.schema import InputSchema
from fdgnn.targets import winning_class
from fdgnn.texts import listed

__all__ = ["fit_model", "write"]

LARGEST = 3_000_000  # bytes of a page
MOST_GRAPHS = 600  # of a page
MOST_VERTICES = 15_000  # of all graphs of a page together
_LARGEST_LABEL = 2**53  # whole numbers beyond are not exact in JavaScript
_FOLDS = 10
_TYPES = {"f8", "i4", "i2", "i1", "u8", "u2", "u1"}  # of arrays that the page can read
_ALIGNED = 8  # bytes: typed arrays of JavaScript begin at multiples of their entries' size

Content = dict[str, Any]  # as JSON


def write(
    output: str | os.PathLike[str],
    model: Any = None,
    graphs: Any = None,
    y: Any = None,
    *,
    target: Any = None,
    ids: Sequence[Any] | None = None,
    smiles: Sequence[str | None] | None = None,
    title: str | None = None,
    dataset: str = "your data",
    code: Sequence[str] | None = None,
) -> Path:
    """Write a page in which a model can be played with: one HTML file that needs no network.

    Parameters
    ----------
    output : path
        The HTML file. It is replaced if it is there.
    model : any model of this library, FDGNNSearchCV or path, optional
        Fitted, or a model file. Without one, a small ensemble is fitted to the graphs.
    graphs : GraphBatch or list of graphs, optional
        Graphs to choose from on the page. At most 600 of them are taken, with 15,000 vertices
        together; of more, a random part.
    y : (n_graphs,), optional
        Their classes. With them the page can train models, too.
    target : str or int, optional
        Of a model of several targets, the one to show.
    ids : sequence, optional
        What the graphs are called; by default their numbers.
    smiles : sequence of str, optional
        The SMILES of graphs that were read from molecules, so that the page knows their atoms. If
        `graphs` is a list of SMILES, they are known.
    title : str, optional
    dataset : str, default="your data"
        What the graphs are called together.
    code : sequence of str, optional
        Lines of Python that give `graphs` and `y`, for the code that the page shows.

    Returns
    -------
    Path
        Where the page is. It has less than three million bytes.

    Raises
    ------
    PlaygroundError
        A page cannot run the model, or cannot hold it.
    MissingDependencyError
        Jinja2 is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from fdgnn import FDGNNClassifier, playground
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = playground.write(f"{folder}/play.html", model, graphs, y)
    ...     page.stat().st_size < 3_000_000
    True
    """
    path = Path(output)
    check_writable(path)
    check_jinja()
    if model is None and (graphs is None or y is None):
        raise PlaygroundError("the playground needs a model, or graphs and classes")
    model = load_model(model) if isinstance(model, str | os.PathLike) else model
    if smiles is None and isinstance(graphs, list | tuple) and all(map(is_molecule, graphs)):
        smiles = [item if isinstance(item, str) else None for item in graphs]
    batch = part = None
    if graphs is not None:
        batch = as_batch(graphs) if model is None else model._check_graphs(graphs)
        for what, each in {"SMILES": smiles, "answers": y, "ids": ids}.items():
            if each is not None and len(each) != len(batch):
                raise GraphError(f"there are {len(each)} {what}, but {len(batch)} graphs")
    if batch is not None and len(batch):
        chosen = chosen_graphs(batch)
        part = batch[chosen]
    model, notes = _one_model(fit_model(batch, y) if model is None else model, target, part)
    for note in notes:
        warnings.warn(note, FDGNNWarning, stacklevel=2)
    content, arrays = _content(model, dataset, notes)
    if batch is not None and part is not None:
        names = elements_of_labels(content["dataset"], batch)
        if names:
            content["names"], content["edge_names"] = names, paper.BONDS.get(dataset, {})
            content["class_names"] = paper.CLASSES.get(dataset, {})
        if content["molecules"] and smiles is None:
            content["molecules"] = False
            notes.append("The SMILES of these molecules are not known, so they are plain graphs.")
        lines = list(code or ("from fdgnn import FDGNNClassifier", "graphs, y = ...  # your own"))
        if len(part) < len(batch):
            notes.append(f"The page holds {len(part)} of the {len(batch)} graphs, drawn at random.")
            lines += [f"some = np.array({chosen.tolist()})", "graphs, y = graphs[some], y[some]"]
        ids = chosen.tolist() if ids is None else [ids[g] for g in chosen]
        known = smiles if content["molecules"] else None
        smiles = None if known is None else [known[g] for g in chosen]
        content["graphs"] = page_graphs(part, ids, smiles, model.input_schema_)
        content["graphs"] |= {"classes": None, "n_all": len(batch)}
        _add_targets(content, model, part, None if y is None else np.asarray(y)[chosen], lines)
    runs = f"{len(model.estimators_)} models, averaged"
    page = build_page(
        "playground",
        packed(content, arrays),
        title=clipped(title or f"Playground: a model of {dataset}", longest=200),
        summary="Change a graph and see the prediction. The model runs in this page "
        f"({runs if len(model.estimators_) > 1 else model.estimators_[0].name}), and nothing "
        "leaves your computer.",
        worker="worker.js",
        training=content["training"] is not None,
    )
    if len(page) > LARGEST:
        raise PlaygroundError(
            f"the page would have {len(page) / 1e6:.1f} MB, more than {LARGEST // 1_000_000}: "
            "the model is too large; fit it to fewer graphs, with readout='linear', or with fewer "
            "WL features (n_features)"
        )
    write_page(path, page, PlaygroundError)
    return path


def _content(model: Any, dataset: str, notes: list[str]) -> tuple[Content, dict[str, Array]]:
    """Return what a page without graphs holds: JSON, and the arrays of the model."""
    # The model as its file would be, with its arrays except those the page can draw again.
    arrays = estimator_arrays(model.estimators_)
    radii, projections = {}, {}
    for i, fitted in enumerate(model.estimators_):
        for place, encoder, expansion in _encoders(fitted, f"{i}."):
            if isinstance(encoder, GraphReservoir):
                radii[f"{place}encoder."] = encoder.reservoir_.radii.tolist()
            drawn = None if expansion is None else _drawn(encoder, expansion)
            if drawn is not None:
                projections[f"{place}projection"] = drawn
                del arrays[f"{place}projection"]
    record = msgspec.Raw(as_json(msgspec.structs.replace(describe(model), domain=None)))
    schema = model.input_schema_
    content: Content = {
        "dataset": clipped(dataset),
        "model": {"record": record, "radii": radii, "projections": projections},
        "graphs": None,
        "training": None,
        "molecules": schema is not None and schema.atoms is not None,  # read by this schema
        "names": {},  # of vertex labels, by their text
        "edge_names": {},
        "class_names": {},
        "notes": notes,
    }
    return content, arrays


def _add_targets(
    content: Content, model: Any, graphs: GraphBatch, y: Array | None, code: list[str]
) -> None:
    """Add the targets of the graphs, and what training needs, to what a page holds."""
    notes = content["notes"]
    if y is None:
        notes.append("The targets are not known here, so the page cannot train models.")
        return
    check_classes(model, y)
    if model.targets_[0].classes is None:
        answers: Array = y.astype(np.float64)
        notes.append("The page trains classifiers; this model is a regression.")
    else:
        classes, answers, sizes = np.unique(y, return_inverse=True, return_counts=True)
        content["graphs"]["classes"] = classes.tolist()
        if sizes.min() < 2 or len(classes) < 2:
            notes.append(
                "The page cannot train models: two classes with at least two graphs each are "
                "needed."
            )
        else:
            n_folds = min(_FOLDS, int(sizes.min()))
            content["training"] = {
                "degree": graphs.average_degree,
                "majority": float(sizes.max() / sizes.sum()),
                "n_folds": n_folds,
                "folds": stratified(answers, n_folds, 0).tolist(),
                "code": code,
            }
    for graph, answer in zip(content["graphs"]["list"], answers.tolist(), strict=True):
        graph["answer"] = answer


# ---------------------------------------------------------------------- models


def fit_model(graphs: Any, y: Any, *, classify: bool = True, seed: int = 0) -> Any:
    """Fit an ensemble whose base models a page can run."""
    candidates: list[Any] = [
        (f"WL, {n} iterations", WLCounts(n_iterations=n, handle_unknown="ignore"), "auto")
        for n in (2, 3)
    ]
    reservoir = GraphReservoir(n_units=300, handle_unknown="ignore")
    candidates.append(("reservoir", reservoir, "linear"))
    if not classify:
        return AutoGraphRegressor(candidates, random_state=seed).fit(graphs, y)
    return AutoGraphClassifier(candidates, probability=True, random_state=seed).fit(graphs, y)


def _one_model(model: Any, target: Any, graphs: GraphBatch | None) -> tuple[Any, list[str]]:
    """Return the model of a page, and notes for the reader.

    That is the best one of a search, and one of several targets. Of an ensemble it has the base
    models that a page can run: reservoirs, WL features and pairs.

    Raises
    ------
    PlaygroundError
        A page cannot run the model; the message has the reason.
    """
    model = checked_model(model)
    if len(model.targets_) > 1:
        if target is None:
            names = ", ".join(repr(each.name) for each in model.targets_[:10])
            raise PlaygroundError(f"the model has several targets; choose one by `target`: {names}")
        model = model.for_target(target)
    scale = model.targets_[0].transform
    notes = [f"Numbers on this page are {scale} of the target."] if scale else []
    lacking = {each.name: _lacking(each) for each in model.estimators_}
    able = [each for each in model.estimators_ if not lacking[each.name]]
    if len(able) == len(model.estimators_):
        return model, notes
    why = "; ".join(f"{name!r} reads {listed(what)}" for name, what in lacking.items() if what)
    if not able:
        raise PlaygroundError(
            "a page can run reservoirs, WL features and pairs of vertices, but not this model: "
            f"{why}; fit one with candidates='wl' (--model wl) or encoder='reservoir', and without "
            "descriptors"
        )
    shown = copy.copy(model)
    shown.estimators_ = able
    of_rdkit = " RDKit computes these, and does not run in a page." * any(
        {*what} & {*_OF_RDKIT} for what in lacking.values()
    )
    note = (
        f"This page averages {len(able)} of the model's "
        f"{plural(len(model.estimators_), 'base model')}, because it cannot run the others: {why}."
        f"{of_rdkit} Scores and probabilities are not those of the whole model"
    )
    return shown, [*notes, f"{note}{_difference(model, shown, graphs)}."]


_OF_RDKIT = ("descriptors of molecules", "pharmacophore types of atoms")


def _lacking(fitted: FittedModel) -> list[str]:
    """Return what a fitted model reads that a page cannot compute."""
    found = ["graph-level features"] * (fitted.descriptors is not None)
    for _, encoder, _ in _encoders(fitted, ""):
        if getattr(encoder, "vertices", "") == "pharmacophore":
            found.append(_OF_RDKIT[1])
        elif getattr(encoder, "vertices", "") == "labels" and encoder.graph_kind_.n_label_columns:
            found.append("labels beside features")
        elif isinstance(encoder, MoleculeDescriptors):
            found.append(_OF_RDKIT[0])
        elif type(encoder) not in (GraphReservoir, PairCounts, WLCounts):
            found.append(f"features of {type(encoder).__name__}")
    return list(dict.fromkeys(found))


def _difference(model: Any, shown: Any, graphs: GraphBatch | None) -> str:
    """Describe the difference between the base models of a page and the whole model."""
    if graphs is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FDGNNWarning)
        whole, part = model.outputs(graphs), shown.outputs(graphs)
    mean = f"{np.abs(whole - part).mean():.2g}"
    if model.targets_[0].classes is None:
        return f": for the {plural(len(graphs), 'graph')} here, they differ by {mean} on average"
    same = np.mean(winning_class(whole) == winning_class(part))
    return (
        f": for the {plural(len(graphs), 'graph')} here, scores differ by {mean} on average, and "
        f"the predicted class is the same for {100 * same:.0f} %"
    )


def _encoders(fitted: FittedModel, place: str) -> list[tuple[str, Encoder, RandomExpansion | None]]:
    """Return the encoders of a fitted model with their expansions, and where their arrays are."""
    if isinstance(fitted.encoder, EncoderUnion):
        return [
            (f"{place}encoder.{b}.", block.encoder, block.expansion)
            for b, block in enumerate(fitted.encoder.blocks_)
        ]
    return [(place, fitted.encoder, fitted.expansion)]


def _drawn(encoder: Encoder, expansion: RandomExpansion) -> dict[str, Any] | None:
    """Describe how a projection was drawn; None where the seed is unknown, or not the one."""
    seed = getattr(encoder, "seed_", None)
    if seed is None:
        return None
    P, n_features = expansion.projection_.shape
    W_phi = unscaled_projection(seed, n_features, P)
    norm = projection_norm(W_phi)
    if not np.array_equal(W_phi / norm, expansion.projection_):
        return None
    words = SeedRecord.of(seed)  # numbers of 32 bits
    drawn = {"entropy": words.entropy, "key": words.spawn_key}
    return drawn | {"rows": P, "columns": n_features, "norm": norm}


def packed(content: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """Return content and arrays as gzip in base64; `unpack` in scripts/graphs.js reads it."""
    places, parts, start = {}, [], 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        if kind not in _TYPES:
            raise TypeError(f"array {name}: the page cannot read {array.dtype}")
        places[name] = {"type": kind, "shape": list(array.shape), "start": start}
        parts += [raw, bytes(-len(raw) % _ALIGNED)]
        start += len(raw) + len(parts[-1])
    header = encode({"content": content, "arrays": places})
    header += b" " * (-(len(header) + _ALIGNED) % _ALIGNED)
    size = np.array([len(header), 0], dtype="<u4").tobytes()
    return base64.b64encode(gzip.compress(b"".join([size, header, *parts]), 9, mtime=0)).decode()


# ---------------------------------------------------------------------- graphs


def chosen_graphs(graphs: GraphBatch) -> Ints:
    """Return the positions of the graphs that a page holds: all, or a random part of them."""
    sizes = np.diff(graphs.vertex_offsets)
    order = np.arange(len(graphs))
    if len(graphs) > MOST_GRAPHS or sizes.sum() > MOST_VERTICES:
        order = np.random.default_rng(0).permutation(len(graphs))
    fits = (np.cumsum(sizes[order]) <= MOST_VERTICES)[:MOST_GRAPHS]
    chosen = np.sort(order[: len(fits)][fits])
    if len(chosen) == 0:
        raise PlaygroundError(
            f"the graphs are too large for a page, which holds {MOST_VERTICES} vertices"
        )
    return chosen


def page_graphs(
    graphs: GraphBatch,
    ids: Sequence[Any],
    smiles: Sequence[str | None] | None = None,
    schema: InputSchema | None = None,
) -> Content:
    """Describe the graphs of a page: what they have in common, and each of them.

    With SMILES, which `schema` says how to read, they have atoms and bonds. Each undirected edge
    is listed once.
    """
    found = []
    for g, graph in enumerate(graphs):
        sources, targets = graph.edge_index
        once = np.ones(len(sources), dtype=bool) if graph.directed else sources <= targets
        one = {
            "id": clipped(ids[g]),
            "n": graph.n_vertices,
            "edges": graph.edge_index[:, once].T.tolist(),
            "labels": None if graph.labels is None else graph.labels.tolist(),
            "edge_labels": None if graph.edge_labels is None else graph.edge_labels[once].tolist(),
            "weights": None if graph.weights is None else graph.weights[once].tolist(),
            "features": None if graph.features is None else graph.features.ravel().tolist(),
        }
        if smiles is not None and schema is not None:
            one |= _atoms(MoleculeReader.of(schema), smiles[g], graph)
        found.append(one)
    return {
        "directed": graphs.directed,
        "labels": _values(graphs.label_values),
        "edge_labels": _values(graphs.edge_label_values),
        "n_features": None if graphs.features is None else int(graphs.features.shape[1]),
        "weighted": graphs.weights is not None,
        "list": found,
    }


def _values(values: Array | None) -> list[Any] | None:
    if values is None:
        return None
    if values.dtype.kind in "iu" and np.abs(values.astype(np.float64)).max() >= _LARGEST_LABEL:
        raise PlaygroundError("the graphs have labels beyond 2^53, which a page cannot hold")
    found: list[Any] = values.tolist()
    return found


# ---------------------------------------------------------------------- molecules


def _atoms(reader: MoleculeReader, smiles: str | None, graph: Graph) -> Content:
    """Describe the atoms and bonds of a molecule; 1 is about the length of a bond, y downward."""
    from rdkit.Chem import rdDepictor

    if smiles is None:
        raise PlaygroundError("a molecule comes without its SMILES; give one for each graph")
    try:
        mol = reader.molecule(smiles)
    except GraphError as error:
        raise PlaygroundError(f"a SMILES cannot be read: {error.reason}") from None
    if mol.GetNumAtoms() != graph.n_vertices:
        raise PlaygroundError(
            f"the SMILES {smiles[:60]!r} has {mol.GetNumAtoms()} atoms, but its graph has "
            f"{graph.n_vertices} vertices"
        )
    rdDepictor.Compute2DCoords(mol)
    places = np.array(mol.GetConformer().GetPositions())[:, :2] * [1 / 1.5, -1 / 1.5]
    return {
        "places": np.clip(places - places.mean(axis=0), -32, 32).round(3).tolist(),
        "atoms": [
            {
                "element": atom.GetSymbol(),
                "charge": atom.GetFormalCharge(),
                "hydrogens": atom.GetTotalNumHs(),
                "aromatic": atom.GetIsAromatic(),
            }
            for atom in mol.GetAtoms()
        ],
        "bonds": [
            [b.GetBeginAtomIdx(), b.GetEndAtomIdx(), b.GetBondTypeAsDouble()]
            for b in mol.GetBonds()
        ],
    }
