"""Small valid files of every format, as the seeds of mutation."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fdgnn import (
    AutoGraphClassifier,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNRegressor,
    Graph,
    GraphBatch,
    GraphClassifier,
    GraphReservoir,
    WLCounts,
    save_model,
)
from fdgnn.datasets import make_motif_graphs

ROWS: list[dict[str, Any]] = [
    {"edge_index": [[0, 1, 2], [1, 2, 0]], "node_feat": [1, 2, 1], "edge_attr": [1, 2, 1], "y": 0},
    {"edge_index": [[0, 1], [1, 2]], "num_nodes": 4, "node_feat": [3, 2, 1, 1], "y": 1},
    {"edge_index": [[], []], "num_nodes": 2, "node_feat": [1, 1], "edge_attr": [], "y": "x"},
]
SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "C/C=C/C", "N[C@@H](C)C(=O)O", "CC(=O)Oc1ccccc1"]
WORDS = tuple(
    word.encode()
    for word in (
        ",", "\n", '"', "'", "[", "]", "{", "}", ":", "null", "NaN", "1e400", "-1", "99999999999",
        "=1", "\x1b[2J", "\0", "C1CC", "é", "<!ENTITY a 'b'>", "&a;", "<node/>", "M  END", "$$$$",
        "M  V30 COUNTS 99999999 0 0 0 0\n",
    )
)  # fmt: skip


def tables() -> dict[str, list[bytes]]:
    """Valid files by suffix."""
    return {
        ".csv": [_csv(ROWS), _smiles_csv()],
        ".jsonl": ["\n".join(map(json.dumps, ROWS)).encode(), _smiles_lines()],
        ".csv.gz": [gzip.compress(_csv(ROWS), mtime=0), gzip.compress(_smiles_csv(), mtime=0)],
        ".smi": ["\n".join(f"{s} m{i}" for i, s in enumerate(SMILES)).encode()],
        ".sdf": [_sdf(), _sdf(v3000=True)],
        ".graphml": [_networks()],
        ".parquet": [_arrow("parquet")],
        ".arrow": [_arrow("file"), _arrow("stream")],
        ".zip": [_tu()],
    }


def _csv(rows: list[dict[str, Any]]) -> bytes:
    columns = ["edge_index", "num_nodes", "node_feat", "edge_attr", "y"]
    lines = [",".join(columns)]
    for row in rows:
        cells = [json.dumps(row[c]) if c in row else "" for c in columns]
        lines.append(",".join('"' + cell.replace('"', '""') + '"' for cell in cells))
    return "\n".join(lines).encode()


def _smiles_csv() -> bytes:
    return ("smiles,y\n" + "\n".join(f"{s},{i % 2}" for i, s in enumerate(SMILES))).encode()


def described() -> bytes:
    """A table with two targets with missing labels, and two descriptors."""
    lines = ["smiles,y,z,mass,kind"]
    for i, one in enumerate(SMILES):
        lines.append(f"{one},{i % 2},{'' if i == 2 else i % 3},{40.5 + i},{'ab'[i % 2]}")
    return "\n".join(lines).encode()


def _smiles_lines() -> bytes:
    return "\n".join(json.dumps({"smiles": s, "y": i % 2}) for i, s in enumerate(SMILES)).encode()


def _sdf(v3000: bool = False) -> bytes:
    from rdkit import Chem

    text = io.StringIO()
    with Chem.SDWriter(text) as writer:
        writer.SetForceV3000(v3000)
        for i, one in enumerate(SMILES[:3]):
            molecule = Chem.MolFromSmiles(one)
            molecule.SetProp("y", str(i % 2))
            writer.write(molecule)
    return text.getvalue().encode()


def _networks() -> bytes:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from([(0, {"label": "C"}), (1, {"label": "N"}), (2, {"label": "C"})])
    graph.add_edges_from([(0, 1, {"weight": 2}), (1, 2, {"weight": 1})])
    text = io.BytesIO()
    nx.write_graphml(graph, text)
    return text.getvalue()


def _arrow(kind: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{**row, "y": str(row["y"])} for row in ROWS]
    names = ("edge_index", "num_nodes", "node_feat", "edge_attr", "y")
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    sink = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, sink)
    else:
        make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with make(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def _tu() -> bytes:
    parts = {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
        "graph_indicator": "1\n1\n1\n2\n2\n",
        "graph_labels": "1\n-1\n",
        "node_labels": "0\n1\n0\n2\n1\n",
        "edge_labels": "0\n0\n1\n1\n0\n0\n",
    }
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, text in parts.items():
            archive.writestr(f"TOY/TOY_{name}.txt", text)
    return sink.getvalue()


@cache
def graphs() -> tuple[list[Graph], Any]:
    """Some graphs and their classes."""
    batch, y = make_motif_graphs(20, random_state=0)
    return [batch[i] for i in range(len(batch))], y


def with_facts(batch: GraphBatch) -> GraphBatch:
    """Return the same graphs with a number and a category."""
    n = len(batch)
    return batch.with_descriptors(
        {"mass": np.arange(n) + 0.5, "kind": ["ab"[i % 2] for i in range(n)]}
    )


@cache
def models() -> dict[str, bytes]:
    """Model files of every kind of model."""
    batch, y = make_motif_graphs(20, random_state=0)
    union = EncoderUnion([("reservoir", GraphReservoir(n_units=5)), ("wl", WLCounts())])
    made: dict[str, Callable[[], Any]] = {
        "paper": lambda: FDGNNClassifier(n_units=6, n_layers=2, random_state=0).fit(batch, y),
        "wl": lambda: GraphClassifier(WLCounts(n_iterations=1), "linear", probability=True).fit(
            batch, y
        ),
        "rbf": lambda: GraphClassifier(WLCounts(n_iterations=1)).fit(batch, y),
        "union": lambda: GraphClassifier(union, random_state=0).fit(batch, y),
        "number": lambda: FDGNNRegressor(n_units=5, intervals=True, random_state=0).fit(
            batch, [float(len(str(c))) + i for i, c in enumerate(y)]
        ),
        "several": lambda: FDGNNClassifier(n_units=5, probability=True, random_state=0).fit(
            batch, [[c, i % 3] for i, c in enumerate(y)]
        ),
        "described": lambda: FDGNNClassifier(n_units=5, random_state=0).fit(with_facts(batch), y),
        "auto": lambda: AutoGraphClassifier(random_state=0).fit(batch, y),
    }
    with TemporaryDirectory() as folder:
        found = {}
        for name, make in made.items():
            path = Path(folder, name)
            save_model(make(), path)
            found[name] = path.read_bytes()
    return found
