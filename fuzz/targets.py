"""What is tried, and what must hold: an answer that is right, or an error that was made on purpose.

An error that was made on purpose is an `FDGNNError`; for arguments in Python it may be a
`ValueError` or `TypeError` as in scikit-learn.
"""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fdgnn import (
    FDGNNClassifier,
    FDGNNRegressor,
    Graph,
    GraphBatch,
    GraphReservoir,
    as_batch,
    load_model,
    read_graphs,
)
from fdgnn.exceptions import FDGNNError
from fdgnn.reservoir.embedding import contractions, embed
from fuzz import files
from fuzz.mutation import anything, as_json, changed_json, mutated, numbers, of_json, plain
from fuzz.running import Target


def targets() -> list[Target]:
    """All targets."""
    from rdkit import RDLogger

    RDLogger.DisableLog("rdApp.*")
    files.models(), files.graphs()  # made once, for all children
    parsers = [
        Target(f"read{suffix}", mutated(seeds, files.WORDS), partial(_read, suffix))
        for suffix, seeds in files.tables().items()
    ]
    return [
        *parsers,
        Target("rows", as_json(st.lists(_rows(), min_size=1, max_size=4)), _read_rows),
        Target("model", _model_files(), _load),
        Target("as_batch", as_json(st.lists(_fields(), min_size=1, max_size=4)), _batch),
        Target("parameters", as_json(_parameters()), _fit),
        Target("solvers", as_json(_problems()), _solve),
    ]


# ---------------------------------------------------------------------- parsers


def _read(suffix: str, case: bytes) -> None:
    path = Path(f"case{suffix}")
    path.write_bytes(case)
    for target in ("y", None):
        try:
            table = read_graphs(path, target=None if suffix == ".zip" else target)
        except FDGNNError:
            continue
        if table.graphs is not None:
            _is_sound(table.graphs)


def _rows() -> st.SearchStrategy[Any]:
    return st.sampled_from(files.ROWS).flatmap(changed_json) | st.dictionaries(
        st.sampled_from(["edge_index", "num_nodes", "node_feat", "edge_attr", "y", "smiles"]),
        anything, max_size=5,
    )  # fmt: skip


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
        _is_sound(table.graphs)


def _is_sound(batch: GraphBatch) -> None:
    """What kernels rely on."""
    n, m = batch.n_vertices, len(batch.neighbors)
    assert batch.vertex_offsets[0] == 0
    assert batch.vertex_offsets[-1] == n
    assert (np.diff(batch.vertex_offsets) >= 0).all()
    assert len(batch.indptr) == n + 1
    assert batch.indptr[0] == 0
    assert batch.indptr[-1] == m
    assert (np.diff(batch.indptr) >= 0).all()
    graph_of = np.repeat(np.arange(len(batch)), np.diff(batch.vertex_offsets))
    size = np.diff(batch.vertex_offsets)[graph_of]  # of the graph of each vertex
    assert (batch.neighbors >= 0).all()
    assert (batch.neighbors < np.repeat(size, np.diff(batch.indptr))).all()
    for values, size in ((batch.weights, m), (batch.arc_labels, m), (batch.labels, n)):
        assert values is None or len(values) == size
    for real in (batch.weights, batch.features):
        assert real is None or np.isfinite(real).all()


# ---------------------------------------------------------------------- model files


@st.composite
def _model_files(draw: st.DrawFn) -> bytes:
    content = draw(st.sampled_from(list(files.models().values())))
    how = draw(st.sampled_from(["bytes", "description", "description", "arrays", "header"]))
    if how == "bytes":
        return draw(mutated([content]))
    n = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + n]), content[8 + n :]
    envelope = json.loads(header["__metadata__"]["fdgnn"])
    if how == "description":
        envelope["model"] = draw(changed_json(envelope["model"]))
    elif how == "arrays":
        data = draw(mutated([data]))
    else:
        header = draw(changed_json({k: v for k, v in header.items() if k != "__metadata__"}))
        header = header if isinstance(header, dict) else {}
    return _sealed(header, envelope, data)


def _sealed(header: dict[str, Any], envelope: dict[str, Any], data: bytes) -> bytes:
    """A file with the right checksum, so that what is behind it is tried."""
    text = json.dumps({**envelope, "sha256": "0" * 64})
    head = json.dumps({**header, "__metadata__": {"fdgnn": text}}).encode()
    file = len(head).to_bytes(8, "little") + head + data
    return file.replace(b"0" * 64, sha256(file).hexdigest().encode(), 1)


def _load(case: bytes) -> None:
    path = Path("case.fdgnn")
    path.write_bytes(case)
    try:
        model = load_model(path)
        graphs = files.graphs()[0][:3]
        answers = np.asarray(model.predict(graphs))
    except FDGNNError:
        return
    assert len(answers) == 3
    if answers.dtype.kind == "f":
        assert not np.isnan(answers).any()


# ---------------------------------------------------------------------- Python objects


def _fields() -> st.SearchStrategy[Any]:
    valid = st.sampled_from([
        {"edge_index": [[0, 1, 2], [1, 2, 0]], "n_vertices": 3, "labels": ["C", "N", "C"]},
        {"edge_index": [[0, 1], [1, 2]], "weights": [1.0, 0.5], "features": [[1.0], [2.0], [0.0]]},
        {"edge_index": [[0], [1]], "arc_labels": [3], "directed": True, "labels": [1, 2]},
    ])  # fmt: skip
    return valid.flatmap(changed_json) | anything


def _batch(case: bytes) -> None:
    known = {"edge_index", "n_vertices", "labels", "features", "weights", "directed", "arc_labels"}
    items = [
        Graph(**one) if isinstance(one, dict) and "edge_index" in one and set(one) <= known else one
        for one in of_json(case)
    ]
    try:
        batch = as_batch(items)
    except (FDGNNError, TypeError, ValueError):
        return
    _is_sound(batch)


# ---------------------------------------------------------------------- parameters


def _parameters() -> st.SearchStrategy[Any]:
    names = sorted(FDGNNClassifier().get_params(deep=False))
    values = plain | anything | st.sampled_from(
        ["auto", "colors", "both", "reservoir", "paper", "linear", "gaussian", "balanced", "f1"]
    ) | st.floats(0, 1) | st.lists(numbers, max_size=3)  # fmt: skip
    some = st.dictionaries(st.sampled_from(names), values, min_size=1, max_size=2)
    return st.tuples(st.sampled_from(["classes", "numbers"]), some)


def _fit(case: bytes) -> None:
    task, given = of_json(case)
    graphs, y = files.graphs()
    kind = FDGNNClassifier if task == "classes" else FDGNNRegressor
    model = kind(n_units=5, random_state=0)
    given = {name: value for name, value in given.items() if name in model.get_params(deep=False)}
    target = y if task == "classes" else np.arange(len(y), dtype=float)
    try:
        model.set_params(**given).fit(graphs, target)
        answers = np.asarray(model.predict(graphs[:3]))
    except (FDGNNError, TypeError, ValueError):
        return
    assert answers.dtype.kind != "f" or np.isfinite(answers).all()


# ---------------------------------------------------------------------- solvers

_TOL = 1e-9
_NEAR = 1e-4  # of the pooled states, for each vertex: wrong answers are far beyond it
_UNSTEADY = 0.95  # beyond, a graph is compared after a few steps only: errors grow with each


@st.composite
def _problems(draw: st.DrawFn) -> dict[str, Any]:
    weight = st.sampled_from([1.0, 1.0, 0.5, -1.0, 2.0, 1e-3, 1e3, 1e20, 1e-20]) | st.floats(-3, 3)
    weighted = draw(st.booleans())
    graphs = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 7))
        vertex = st.integers(0, n - 1)
        arcs = draw(st.lists(st.tuples(vertex, vertex), max_size=14, unique=True))
        arcs = [(u, v) for u, v in arcs if (v, u) not in arcs or u <= v]
        weights = [draw(weight) for _ in arcs] if weighted else None
        graphs.append({"n": n, "arcs": arcs, "weights": weights})
    return {
        "graphs": graphs,
        "directed": draw(st.booleans()),
        "units": draw(st.integers(1, 9)),
        "layers": draw(st.integers(1, 3)),
        "connections": draw(st.sampled_from([1, 1, 2, 3])),
        "rho": draw(st.sampled_from([0.1, 0.5, 0.9, 1.5])),
        "seed": draw(st.integers(0, 1000)),
        "steps": draw(st.integers(1, 4)),
    }


def _solve(case: bytes) -> None:
    """Both solvers give what a plain loop gives."""
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
        effective_spectral_radius=told["rho"], random_state=told["seed"],
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
    """A (n, n): what arrives at each vertex, from where."""
    first, last = batch.vertex_offsets[i], batch.vertex_offsets[i + 1]
    matrix = np.zeros((last - first, last - first))
    for v in range(first, last):
        for a in range(batch.indptr[v], batch.indptr[v + 1]):
            weight = 1.0 if batch.weights is None else batch.weights[a]
            matrix[v - first, batch.neighbors[a]] = weight
    return matrix


def _plain_loop(matrix: Any, layers: Any, steps: int) -> Any:
    """Pooled states of each layer, by eq. 2 as it is written."""
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
