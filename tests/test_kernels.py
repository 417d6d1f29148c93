"""The compiled kernels: which engine runs, arguments of the wrong type."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import fdgnn
from fdgnn import installation, kernels
from fdgnn.datasets import make_random_graphs
from fdgnn.exceptions import KernelError

SCRIPT = """
import sys
import numpy as np
from fdgnn import WLCounts, GraphReservoir, kernels
from fdgnn.datasets import make_random_graphs
graphs = make_random_graphs(40, n_vertices=(1, 60), random_state=1)
parts = [kernels.ENGINE]
for options in ({}, {"n_connections": 3, "effective_spectral_radius": 1.5}, {"solver": "paper"}):
    encoder = GraphReservoir(n_units=20, n_layers=2, random_state=0, **options)
    parts.append(encoder.fit_transform(graphs))
parts.append(WLCounts(n_iterations=2, n_features=64).fit_transform(graphs).toarray())
np.savez(sys.argv[1], *parts)
"""


def run(engine, *arguments):
    environment = os.environ | ({} if engine is None else {"FDGNN_ENGINE": engine})
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_all_engines_give_the_same_bits(tmp_path):
    found = {}
    for name in kernels.runnable_engines():
        done = run(name, "-c", SCRIPT, str(tmp_path / f"{name}.npz"))
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / f"{name}.npz") as arrays:
            engine, *found[name] = [arrays[f"arr_{i}"] for i in range(5)]
        assert engine == name
    for results in found.values():
        for ours, theirs in zip(results, found["plain"], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_an_engine_that_was_not_compiled_is_not_taken(monkeypatch):
    monkeypatch.setattr(kernels, "_is_compiled", lambda name: False)
    assert kernels.runnable_engines() == ("plain",)


def test_an_engine_that_is_missing_is_told_by_the_check_of_every_engine(monkeypatch):
    monkeypatch.setattr(kernels, "_wide_engines", lambda: ["avx2", "avx512"])
    monkeypatch.setattr(kernels, "_is_compiled", lambda name: name != "avx512")
    with pytest.raises(KernelError, match="'avx512', which this processor could run, is not"):
        fdgnn.compile_kernels()
    monkeypatch.setenv("FDGNN_ENGINE", "avx512")
    with pytest.raises(KernelError, match="FDGNN_ENGINE is 'avx512', which is not compiled"):
        kernels._chosen()


def test_numpys_integers_are_numbers_of_rounds():
    graphs = make_random_graphs(5, random_state=0)
    expected, found = (
        fdgnn.WLCounts(n_iterations=n, vertices="degree", histograms=False).fit_transform(graphs)
        for n in (2, np.int32(2))
    )
    assert (expected != found).nnz == 0


def test_the_best_engine_is_taken_and_an_unknown_one_is_told():
    assert kernels.runnable_engines()[0] == "plain"
    best = run(None, "-m", "fdgnn", "--version").stdout.splitlines()[1]
    assert best == (
        f"kernels: engine {kernels.ENGINE!r} of {', '.join(kernels.runnable_engines())}; they work "
        "on this machine"
    )
    asked = run("plain", "-m", "fdgnn", "--version")
    assert "engine 'plain' of plain" in asked.stdout
    told = run("best", "-m", "fdgnn", "--version")
    assert told.returncode == 1
    assert told.stderr.startswith("error: FDGNN_ENGINE is 'best'; this machine can run plain")


def test_the_check_tries_every_engine(monkeypatch):
    runs = fdgnn.compile_kernels()
    assert runs == kernels.runnable_engines()
    assert kernels.ENGINE in runs

    class Wrong:
        def tanh_sum(self, d, w, s, x):
            x[:] = 0.25

    monkeypatch.setattr(kernels, "engine_module", lambda name: Wrong())
    with pytest.raises(KernelError, match="the engine 'plain' is wrong on this machine"):
        installation._try_engine("plain")


def test_missing_kernels_are_told():
    with pytest.raises(KernelError, match=r"not compiled .*needs a C\+\+ compiler"):
        kernels._compiled("_kernels_of_another_machine")


@pytest.mark.parametrize("engine", kernels.runnable_engines())
def test_tanh_of_double_precision_is_exact_to_some_bits(engine):
    small, large = np.logspace(-300, 0, 2_000), np.linspace(0, 30, 20_001)
    x = np.concatenate([small, large, [1e300, np.inf]])
    x = np.stack([x, -x])
    found = x.copy()
    kernels.engine_module(engine).tanh_all(found)
    np.testing.assert_allclose(found, np.tanh(x), rtol=2e-15, atol=0)
    nothing = np.full((1, 5), np.nan)
    kernels.engine_module(engine).tanh_all(nothing)
    assert np.isnan(nothing).all()


@pytest.mark.skipif("asan" not in os.environ.get("LD_PRELOAD", ""), reason="for make sanitize")
def test_sanitized_kernels_check_bounds():
    script = "import numpy as np; from fdgnn.kernels import mix_rows; U = np.uint64; "
    script += "mix_rows(np.zeros((5, 2), U), np.zeros(3, U))"
    done = run("plain", "-c", script)
    assert done.returncode < 0  # aborted
    assert "kernel: index 3 is out of bounds for size 3" in done.stderr


def test_arrays_of_another_type_are_refused_not_converted():
    """A converted copy would receive the results, and be thrown away."""
    colors = np.zeros(3, dtype=np.int64)
    with pytest.raises(TypeError):
        kernels.mix_all(colors)
    with pytest.raises(TypeError):
        kernels.mix_all(np.zeros((4, 3), dtype=np.uint64)[:, 1])
    frozen = np.zeros(3, dtype=np.uint64)
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        kernels.mix_all(frozen)
    structure = make_random_graphs(3, random_state=0).structure
    wrong = structure._replace(neighbors=structure.neighbors.astype(np.int64))
    with pytest.raises(TypeError, match="neighbors: of the wrong type"):
        kernels.refine_labels(wrong, frozen[:0], colors.view(np.uint64), 0)
