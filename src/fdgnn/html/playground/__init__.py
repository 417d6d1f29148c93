"""A page in which a model runs: one HTML file, without a server and without an installation.

`models` describes a fitted model as its file would, and `graphs` the example graphs. The scripts
of the page compute what Python computes; docs/how-to/playground.md says how closely.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Ints
from fdgnn.evaluation import paper
from fdgnn.exceptions import GraphError, PlaygroundError
from fdgnn.files import check_writable, write_aside
from fdgnn.folds import stratified
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.graphs.molecules import is_molecule
from fdgnn.html.data_statistics import elements_of_labels
from fdgnn.html.page import build_page, check_jinja
from fdgnn.html.playground.graphs import Content, chosen_graphs, molecule_rules, page_graphs
from fdgnn.html.playground.models import fit_model, one_model, packed, page_model
from fdgnn.html.words import clipped
from fdgnn.model_files import load_model
from fdgnn.targets import first_text

__all__ = ["fit_model", "write"]

LARGEST = 3_000_000  # bytes of a page
_FOLDS = 10


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
        raise PlaygroundError("there is nothing to play with: give a model, or graphs and classes")
    model = load_model(model) if isinstance(model, str | os.PathLike) else model
    if smiles is None and isinstance(graphs, list | tuple) and all(map(is_molecule, graphs)):
        smiles = [item if isinstance(item, str) else None for item in graphs]
    batch = _batch(model, graphs, {"SMILES": smiles, "answers": y, "ids": ids})
    model = one_model(fit_model(batch, y) if model is None else model, target)
    title = title or f"A model of {dataset}, to play with"
    content, arrays = _content(model, batch, y, ids, smiles, dataset, code)
    page = build_page(
        "playground",
        packed(content, arrays),
        title=clipped(title, longest=200),
        summary=_summary(model),
        worker="worker.js",
        training=content["training"] is not None,
    )
    if len(page) > LARGEST:
        raise PlaygroundError(
            f"the page would have {len(page) / 1e6:.1f} MB, more than {LARGEST // 1_000_000}: "
            "the model is too large; fit it to fewer graphs, with readout='linear', or with fewer "
            "WL features (n_features)"
        )
    try:
        with write_aside(path) as file:
            file.write(page)
    except OSError as error:  # its own text names the temporary file beside the page
        raise PlaygroundError(
            f"{path}: the page cannot be written ({error.strerror or error})"
        ) from error
    return path


def _batch(model: Any, graphs: Any, given: Mapping[str, Sequence[Any] | None]) -> GraphBatch | None:
    """Return the graphs as the model reads them; what is given about them has their number."""
    if graphs is None:
        return None
    batch = as_batch(graphs) if model is None else model._check_graphs(graphs)
    for what, each in given.items():
        if each is not None and len(each) != len(batch):
            raise GraphError(f"there are {len(each)} {what}, but {len(batch)} graphs")
    return batch if len(batch) else None


def _content(
    model: Any,
    batch: GraphBatch | None,
    y: Any,
    ids: Sequence[Any] | None,
    smiles: Sequence[str | None] | None,
    dataset: str,
    code: Sequence[str] | None,
) -> tuple[Content, dict[str, Array]]:
    """Collect all that a page holds: JSON, and the arrays of the model."""
    shown, arrays = page_model(model)
    rules = molecule_rules(model.input_schema_)
    names = {} if batch is None else elements_of_labels(dataset, batch)
    content: Content = {
        "dataset": clipped(dataset),
        "model": shown,
        "graphs": None,
        "training": None,
        "molecules": rules,
        "names": names,  # of vertex labels, by their text
        "edge_names": paper.BONDS.get(dataset, {}) if names else {},
        "class_names": paper.CLASSES.get(dataset, {}) if names else {},
        "notes": [],
    }
    if batch is None:
        return content, arrays
    notes, chosen = content["notes"], chosen_graphs(batch)
    part = batch[chosen]
    if rules is not None and smiles is None:
        content["molecules"] = None
        notes.append("The SMILES of these molecules are not known, so they are plain graphs.")
    elif rules is None:
        smiles = None
    some = None if smiles is None else [smiles[g] for g in chosen]
    shown_ids = chosen.tolist() if ids is None else [ids[g] for g in chosen]
    graphs = page_graphs(part, shown_ids, some, model.input_schema_)
    content["graphs"] = graphs | {"n_all": len(batch), "classes": None}
    if len(part) < len(batch):
        notes.append(f"The page holds {len(part)} of the {len(batch)} graphs, drawn at random.")
    if y is not None:
        classes, answers = _answers(model, np.asarray(y)[chosen])
        content["graphs"]["classes"] = classes
        for graph, answer in zip(graphs["list"], answers.tolist(), strict=True):
            graph["answer"] = answer
        if classes is not None:
            content["training"] = _training(part, answers, chosen, len(batch), code)
    if y is None:
        notes.append("The true answers are not known here, so the page cannot train models.")
    elif classes is None:
        notes.append("The page trains classifiers; this model is a regression.")
    elif content["training"] is None:
        notes.append(
            "The page cannot train models: two classes with at least two graphs each are needed."
        )
    return content, arrays


def _summary(model: Any) -> str:
    """Summarize in a sentence what runs in the page."""
    names = [fitted.name for fitted in model.estimators_]
    parts = names[0] if len(names) == 1 else f"{len(names)} models, averaged"
    return (
        f"Change a graph and see what the model says. It runs in this page ({parts}), and nothing "
        "leaves your computer."
    )


def _answers(model: Any, y: Array) -> tuple[list[Any] | None, Array]:
    """Return the classes and their numbers; of a regression the targets themselves."""
    known = model.targets_[0].classes
    if known is None:
        text = first_text(y.tolist())
        if text is not None:
            raise PlaygroundError(
                f"not all answers are numbers, as those of the model are: one is {text!r}; "
                "name another column, or none"
            )
        return None, y.astype(np.float64)
    classes, codes = np.unique(y, return_inverse=True)
    if not set(classes.tolist()) & set(known.tolist()):
        raise PlaygroundError(
            f"no answer is a class of the model: they are {_listed(classes.tolist())}, and it "
            f"knows {_listed(known.tolist())}; name another column, or none"
        )
    return classes.tolist(), codes.astype(np.int32)


def _listed(values: Sequence[Any], most: int = 4) -> str:
    """Name some values."""
    named = ", ".join(map(str, values[:most]))
    return named if len(values) <= most else f"{named} and {len(values) - most} more"


def _training(
    part: GraphBatch, answers: Array, chosen: Ints, n_all: int, code: Sequence[str] | None
) -> Content | None:
    """Return folds and code for training in the page; None if a class is too small for folds."""
    sizes = np.bincount(answers)
    if len(sizes) < 2 or sizes.min() < 2:
        return None
    n_folds = min(_FOLDS, int(sizes.min()))
    lines = list(code or ("from fdgnn import FDGNNClassifier", "graphs, y = ...  # your own"))
    if len(part) < n_all:
        lines += [f"some = np.array({chosen.tolist()})", "graphs, y = graphs[some], y[some]"]
    folds = stratified(answers, n_folds, 0).tolist()
    return {"degree": part.average_degree, "n_folds": n_folds, "folds": folds, "code": lines}
