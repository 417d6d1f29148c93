"""Fuzz targets: what is tested, and what must hold: a correct result, or a deliberate error.

A deliberate error is an `FDGNNError`; for arguments in Python it may also be a
`ValueError` or `TypeError`, as in scikit-learn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np

from fdgnn import (
    AutoGraphClassifier,
    FDGNNClassifier,
    FDGNNRegressor,
    Graph,
    GraphBatch,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
    as_batch,
    load_model,
    read_graphs,
)
from fdgnn.datasets import arrow
from fdgnn.exceptions import FDGNNError
from fdgnn.reservoir import contractions, embed
from fdgnn.texts import cut, guarded, parse_json, printable, unguarded
from fuzz import files, objects, own_files
from fuzz.checks import is_sound
from fuzz.mutation import (
    anything,
    as_json,
    changed_json,
    mutated,
    number,
    of_json,
    plain,
    some_of,
    text,
)
from fuzz.readers import start_shared_reader
from fuzz.running import Target


def targets() -> list[Target]:
    """Return all targets."""
    from rdkit import RDLogger

    RDLogger.DisableLog("rdApp.*")
    files.models(), files.graphs()  # made once, for all children
    arrow.start_reader = start_shared_reader
    parsers = [
        Target(f"read{suffix}", mutated(seeds, files.WORDS), partial(_read, suffix))
        for suffix, seeds in files.tables().items()
    ]
    return [
        *parsers,
        Target("rows", as_json(some_of(_row)), _read_rows),
        Target("described", mutated([files.described()], files.WORDS), _read_described),
        Target("model", _model_file, _load),
        Target("as_batch", as_json(some_of(_fields)), _batch),
        Target("parameters", as_json(_parameters), _fit),
        Target("solvers", as_json(_problem), _solve),
        Target("texts", as_json(some_of(text)), _show),
        *objects.targets(),
        *own_files.targets(),
    ]


# ---------------------------------------------------------------------- parsers


def _read(suffix: str, case: bytes) -> None:
    path = Path(f"case{suffix}")
    path.write_bytes(case)
    named = suffix != ".zip" and crc32(case) % 2  # half of the cases name the target
    try:
        table = read_graphs(path, target="y" if named else None)
    except FDGNNError:
        return
    if table.graphs is not None:
        is_sound(table.graphs)


def _row(rng: Random) -> Any:
    if rng.random() < 0.7:
        return changed_json(rng, rng.choice(files.ROWS))
    names = ("edge_index", "num_nodes", "node_feat", "edge_attr", "y", "smiles")
    return {rng.choice(names): anything(rng) for _ in range(rng.randint(0, 5))}


def _read_rows(case: bytes) -> None:
    rows = of_json(case)
    good = files.ROWS[0]
    text = "\n".join(map(json.dumps, [good, *(rows if isinstance(rows, list) else [rows]), good]))
    Path("case.jsonl").write_text(text)
    try:
        table = read_graphs("case.jsonl")
    except FDGNNError:
        return
    if table.graphs is not None:
        is_sound(table.graphs)


def _read_described(case: bytes) -> None:
    """Read several targets and descriptors, some of them categories."""
    Path("case.csv").write_bytes(case)
    try:
        table = read_graphs(
            "case.csv", target=["y", "z"], descriptors=["mass", "kind"], categories=["kind"]
        )
    except FDGNNError:
        return
    if table.graphs is not None:
        is_sound(table.graphs)


# ---------------------------------------------------------------------- model files


def _model_file(rng: Random) -> bytes:
    content = rng.choice(list(files.models().values()))
    how = rng.choice(("bytes", "description", "description", "arrays", "header"))
    if how == "bytes":
        return mutated([content])(rng)
    n = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + n]), content[8 + n :]
    envelope = json.loads(header["__metadata__"]["fdgnn"])
    if how == "description":
        envelope["model"] = changed_json(rng, envelope["model"])
    elif how == "arrays":
        data = mutated([data])(rng)
    else:
        header = changed_json(rng, {k: v for k, v in header.items() if k != "__metadata__"})
        header = header if isinstance(header, dict) else {}
    return _sealed(header, envelope, data)


def _sealed(header: dict[str, Any], envelope: dict[str, Any], data: bytes) -> bytes:
    """Return a file with a valid checksum, to test the code behind it."""
    text = json.dumps({**envelope, "sha256": "0" * 64})
    head = json.dumps({**header, "__metadata__": {"fdgnn": text}}).encode()
    file = len(head).to_bytes(8, "little") + head + data
    return file.replace(b"0" * 64, sha256(file).hexdigest().encode(), 1)


def _load(case: bytes) -> None:
    path = Path("case.fdgnn")
    path.write_bytes(case)
    try:
        model = load_model(path)
        graphs = as_batch(files.graphs()[0][:3])
        graphs = graphs if model._descriptors is None else files.with_facts(graphs)
        answers = np.asarray(model.predict(graphs))
    except FDGNNError:
        return
    assert len(answers) == 3
    if answers.dtype.kind == "f":
        assert not np.isnan(answers).any()


# ---------------------------------------------------------------------- Python objects


_VALID = (
    {"edge_index": [[0, 1, 2], [1, 2, 0]], "n_vertices": 3, "labels": ["C", "N", "C"]},
    {"edge_index": [[0, 1], [1, 2]], "weights": [1.0, 0.5], "features": [[1.0], [2.0], [0.0]]},
    {"edge_index": [[0], [1]], "edge_labels": [3], "directed": True, "labels": [1, 2]},
)


def _fields(rng: Random) -> Any:
    return changed_json(rng, rng.choice(_VALID)) if rng.random() < 0.7 else anything(rng)


def _batch(case: bytes) -> None:
    known = {"edge_index", "n_vertices", "labels", "features", "weights", "directed", "edge_labels"}
    items = [
        Graph(**one) if isinstance(one, dict) and "edge_index" in one and set(one) <= known else one
        for one in of_json(case)
    ]
    try:
        batch = as_batch(items)
    except (FDGNNError, TypeError, ValueError):
        return
    is_sound(batch)


# ---------------------------------------------------------------------- parameters


_SMALL: dict[str, Any] = {"n_units": 5, "random_state": 0}
_MODELS: dict[str, Callable[[], Any]] = {
    "paper, classes": lambda: FDGNNClassifier(**_SMALL),
    "paper, numbers": lambda: FDGNNRegressor(**_SMALL),
    "composed, classes": lambda: GraphClassifier(GraphReservoir(n_units=5), random_state=0),
    "composed, numbers": lambda: GraphRegressor(WLCounts(n_iterations=1)),
    "auto, classes": lambda: AutoGraphClassifier([("wl", WLCounts(n_iterations=1), "linear")]),
}
_CHOICES = (
    "auto", "wl", "union", "reservoir", "all", "linear", "rbf", "cv", "balanced", "f1", "roc_auc",
)  # fmt: skip


def _value(rng: Random) -> Any:
    kind = rng.random()
    if kind < 0.3:
        return plain(rng)
    if kind < 0.5:
        return rng.choice(_CHOICES)
    if kind < 0.7:
        return rng.random()
    return [number(rng) for _ in range(rng.randint(0, 3))] if kind < 0.85 else anything(rng)


def _parameters(rng: Random) -> Any:
    name = rng.choice(list(_MODELS))
    names = sorted(_MODELS[name]().get_params())
    return name, {rng.choice(names): _value(rng) for _ in range(rng.randint(1, 2))}


def _fit(case: bytes) -> None:
    name, given = of_json(case)
    if name not in _MODELS:  # while a case is made smaller
        return
    graphs, y = files.graphs()
    model = _MODELS[name]()
    target = y if name.endswith("classes") else np.arange(len(y), dtype=float)
    try:
        model.set_params(**given)
    except (AttributeError, TypeError, ValueError):  # as scikit-learn does
        return
    try:
        model.fit(graphs, target)
        answers = np.asarray(model.predict(graphs[:3]))
    except (FDGNNError, TypeError, ValueError):
        return
    assert answers.dtype.kind != "f" or np.isfinite(answers).all()


# ---------------------------------------------------------------------- solvers

_TOL = 1e-9
_NEAR = 1e-4  # of the pooled states, for each vertex: wrong answers are far beyond it
_UNSTEADY = 0.95  # beyond, a graph is compared after a few steps only: errors grow with each


_WEIGHTS = (1.0, 1.0, 0.5, -1.0, 2.0, 1e-3, 1e3, 1e20, 1e-20)


def _problem(rng: Random) -> dict[str, Any]:
    weighted, graphs = rng.random() < 0.5, []
    for _ in range(rng.randint(1, 4)):
        n = rng.randint(1, 7)
        pairs = {(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randint(0, 14))}
        arcs = sorted((u, v) for u, v in pairs if (v, u) not in pairs or u <= v)
        weights = [rng.choice(_WEIGHTS) if rng.random() < 0.5 else rng.uniform(-3, 3) for _ in arcs]
        graphs.append({"n": n, "arcs": arcs, "weights": weights if weighted else None})
    return {
        "graphs": graphs,
        "directed": rng.random() < 0.5,
        "units": rng.randint(1, 9),
        "layers": rng.randint(1, 3),
        "connections": rng.choice((1, 1, 2, 3)),
        "rho": rng.choice((0.1, 0.5, 0.9, 0.99, 1.5)),
        "bias": rng.choice((0.0, 1e-8, 1e-6, 1.0, 1.0)),
        "seed": rng.randint(0, 1000),
        "steps": rng.randint(1, 4),
    }


def _solve(case: bytes) -> None:
    """Check both solvers against a plain loop."""
    told = of_json(case)
    graphs = [
        Graph(
            np.array(one["arcs"], dtype=np.int64).reshape(-1, 2).T, one["n"],
            weights=None if one["weights"] is None else np.array(one["weights"], dtype=float),
            directed=told["directed"],
        )
        for one in told["graphs"]
    ]  # fmt: skip
    encoder = GraphReservoir(
        n_units=told["units"], n_layers=told["layers"],
        n_connections=min(told["connections"], told["units"]),
        effective_spectral_radius=told["rho"], bias_scaling=told["bias"],
        random_state=told["seed"],
    )  # fmt: skip
    try:
        batch = as_batch(graphs)
        reservoir = encoder.fit(batch).reservoir_
    except FDGNNError:
        return
    few = embed(batch, reservoir, tol=0.0, max_iter=told["steps"], solver="paper").pooled
    end = embed(batch, reservoir, tol=_TOL, max_iter=3000, solver="auto").pooled
    steady = (contractions(reservoir, batch) < _UNSTEADY).all(axis=0)
    for i in range(len(batch)):
        matrix = _adjacency(batch, i)
        _near_to(few[:, i], _plain_loop(matrix, encoder.layers_, told["steps"]), len(matrix))
        if steady[i]:
            _near_to(end[:, i], _plain_loop(matrix, encoder.layers_, 3000), len(matrix))


def _adjacency(batch: GraphBatch, i: int) -> Any:
    """Return A (n, n), from sources to targets."""
    first, last = batch.vertex_offsets[i], batch.vertex_offsets[i + 1]
    matrix = np.zeros((last - first, last - first))
    for v in range(first, last):
        for a in range(batch.indptr[v], batch.indptr[v + 1]):
            weight = 1.0 if batch.weights is None else batch.weights[a]
            matrix[v - first, batch.neighbors[a]] = weight
    return matrix


def _plain_loop(matrix: Any, layers: Any, steps: int) -> Any:
    """Return pooled states of each layer by a literal eq. 2."""
    U, pooled = np.ones((len(matrix), 1)), []
    for layer in layers:
        inputs = U @ layer.input_weights.toarray().T + layer.bias
        recurrent, X = layer.recurrent_weights.toarray().T, np.zeros(inputs.shape)
        for _ in range(steps):
            before, X = X, np.tanh(inputs + matrix @ X @ recurrent)
            if np.abs(X - before).max() < 1e-14:
                break
        U = X
        pooled.append(X.sum(axis=0))
    return np.array(pooled)


def _near_to(found: Any, expected: Any, n: int) -> None:
    np.testing.assert_allclose(found, expected, atol=_NEAR * n)


# ---------------------------------------------------------------------- texts


def _show(case: bytes) -> None:
    """Check that text is safe on terminals and in spreadsheets, and is read back unchanged."""
    for one in of_json(case):
        assert printable(one).isprintable()
        assert unguarded(guarded(one)) == one
        assert guarded(one)[:1] not in ("=", "@", "\t", "\r")
        assert len(cut(one, 5)) <= len(one)
        json.dumps(parse_json(json.dumps(one)), ensure_ascii=False).encode()
