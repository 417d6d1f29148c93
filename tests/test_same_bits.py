"""Fits are bitwise reproducible: with other threads of ours and of BLAS, in another process.

docs/explanation/performance.md says where bits may differ, and by how much.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from fdgnn import (
    AutoGraphClassifier,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNRegressor,
    GraphClassifier,
    GraphReservoir,
    WLCounts,
    load_model,
    save_model,
)
from fdgnn.datasets import make_motif_graphs

SCRIPT = """
import hashlib, json, sys, warnings
import numpy as np
from fdgnn import *
from fdgnn.datasets import make_motif_graphs

union = EncoderUnion([("reservoir", GraphReservoir(n_units=20)), ("wl", WLCounts())])
warnings.simplefilter("ignore")
n_jobs, folder = int(sys.argv[1]), sys.argv[2]
graphs, y = make_motif_graphs(120, random_state=1)
new, _ = make_motif_graphs(50, random_state=2)
models = {
    "paper": FDGNNClassifier(n_units=40, n_layers=3, probability=True),
    "wl": GraphClassifier("wl"),
    "linear": GraphClassifier("wl", "linear"),
    "union": GraphClassifier(union),
    "auto": AutoGraphClassifier(),
    "number": FDGNNRegressor(n_units=30, intervals=True),
}
found = {}
for name, model in models.items():
    target = y if name != "number" else np.arange(120.0) % 7
    path = f"{folder}/{name}.fdgnn"
    save_model(model.set_params(random_state=0, n_jobs=n_jobs).fit(graphs, target), path)
    loaded = load_model(path)
    outputs = loaded.outputs(new)
    content = open(path, "rb").read()
    found[name] = [hashlib.sha256(each).hexdigest() for each in (content, outputs.tobytes())]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Hashes of model files and outputs, with so many threads of BLAS and of our own."""
    found = []
    for blas, jobs in ((1, 1), (2, 2), (4, 3)):
        folder = tmp_path_factory.mktemp("bits")
        threads = {"OPENBLAS_NUM_THREADS": str(blas), "OMP_NUM_THREADS": str(blas)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(jobs), str(folder)],
            env=os.environ | threads, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.append(json.loads(done.stdout))
    return found


@pytest.mark.parametrize("name", ["paper", "wl", "linear", "union", "auto", "number"])
def test_files_and_outputs_have_the_same_bits(runs, name):
    first, *others = (run[name] for run in runs)
    assert all(other == first for other in others)


UNION = EncoderUnion([("reservoir", GraphReservoir(n_units=20)), ("wl", WLCounts())])
KINDS = {
    "paper": FDGNNClassifier(n_units=50, random_state=0),
    "wl": GraphClassifier("wl", random_state=0),
    "union": GraphClassifier(UNION, random_state=0),
    "auto": AutoGraphClassifier(random_state=0),
    "number": FDGNNRegressor(n_units=50, random_state=0),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_place_in_a_batch_changes_nothing_but_rounding(name, tmp_path):
    graphs, y = make_motif_graphs(80, random_state=3)
    model = KINDS[name].fit(graphs, np.arange(80.0) if name == "number" else y)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    together = loaded.outputs(graphs)
    order = np.random.default_rng(0).permutation(80)
    mixed = loaded.outputs(graphs[order])
    alone = np.vstack([loaded.outputs(graphs[[i]]) for i in range(20)])
    most = 1e-12 * np.abs(together).max()
    assert np.abs(mixed - together[order]).max() <= most
    assert np.abs(alone - together[:20]).max() <= most
    np.testing.assert_array_equal(loaded.outputs(graphs), model.outputs(graphs))
    for network in loaded.estimators_:  # states and counts
        features, others = (network.encoder.encode(g).features[0] for g in (graphs, graphs[order]))
        assert not np.abs(features[order] - others).max()


@pytest.mark.parametrize("name", ["paper", "wl", "union", "number"])
def test_the_order_of_training_graphs_changes_nothing_but_rounding(name):
    graphs, y = make_motif_graphs(80, random_state=3)
    y = np.arange(80.0) if name == "number" else y
    order = np.random.default_rng(0).permutation(80)
    first = KINDS[name].fit(graphs, y)
    alphas, outputs = [n.alpha for n in first.estimators_], first.outputs(graphs)
    second = clone(KINDS[name]).fit(graphs[order], y[order])
    assert [n.alpha for n in second.estimators_] == alphas  # or the next sentence is about nothing
    assert np.abs(second.outputs(graphs) - outputs).max() <= 1e-10 * np.abs(outputs).max()
