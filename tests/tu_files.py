"""Small datasets in TU format, to be written, damaged and packed by tests."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

# A triangle with a tail and a labeled edge; one arc twice, one edge one way only, one loop.
TEXTS = {
    "A": "1, 2\n2, 1\n2,3\n3 , 2\n1,3\n3,1\n3,4\n4,4\n1, 2\n5,  6\n6,  5\n",
    "graph_indicator": "1\n1\n1\n1\n2\n2\n",
    "graph_labels": "-1\n1\n",
    "node_labels": "7\n7\n3\n12\n3\n3\n",
    "node_attributes": "0.5, -1\n  1e3,2\n0,0\n0,0\n0,1\n1,0\n",
}


def write_folder(folder: Path, name: str = "TOY", **texts: str | None) -> Path:
    """Write the dataset, with some files replaced, or left out if None."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in (TEXTS | texts).items():
        if text is not None:
            (folder / f"{name}_{kind}.txt").write_bytes(text.encode())
    return folder


def write_zip(path: Path, name: str = "TOY", **texts: str | None) -> Path:
    """Write the dataset as a zip of a folder, as the official site has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for kind, text in (TEXTS | texts).items():
            if text is not None:
                archive.writestr(f"{name}/{name}_{kind}.txt", text)
    return path


def write_batch(folder: Path, graphs, y) -> Path:
    """Write a batch with numbers as labels as a TU folder of the folder's name."""
    folder.mkdir(parents=True)
    A = graphs.adjacency().tocoo()
    arcs = np.stack([A.coords[0] + 1, A.coords[1] + 1], axis=1)
    tables = {
        "A": arcs,
        "graph_indicator": graphs.graph_of_vertex + 1,
        "graph_labels": y,
        "node_labels": graphs.labels,
    }
    for kind, table in tables.items():
        if table is not None:
            np.savetxt(folder / f"{folder.name}_{kind}.txt", table, fmt="%d", delimiter=", ")
    return folder
