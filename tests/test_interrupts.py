"""Long kernels can be interrupted: by Ctrl-C in the main thread, by a flag in others."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from fdgnn import Graph, GraphReservoir, WLCounts, as_batch, kernels
from fdgnn.graphs import colors
from fdgnn.linear.products import Columns, products_with
from fdgnn.reservoir import embed

# All of it would go on for days. What is deaf is ended by the time limit of the test.
ENDLESS = """
import signal, time
import numpy as np
from fdgnn import GraphReservoir, kernels
from fdgnn.datasets import make_random_graphs
from fdgnn.workers import Workers
from fdgnn.reservoir import embed

graphs = make_random_graphs(20, n_vertices=(50, 60), random_state=0)
encoder = GraphReservoir(n_units=50, effective_spectral_radius=3.0, random_state=0).fit(graphs)
rows = np.arange(0, 501, 50), np.tile(np.arange(50, dtype=np.int32), 10), np.empty(0)
places, group = np.arange(50, dtype=np.int32), np.zeros(50, dtype=np.int32)
ONE = np.ones((10, 1))

def products(strip):
    sums = np.zeros((50, 50))
    while True:
        kernels.add_normal_products(*rows, places, ONE, group, np.ones((50, 50)), sums)

def pooled(solver):
    return lambda n: embed(
        graphs, encoder.reservoir_, solver=solver, n_jobs=n, tol=0.0, max_iter=2**31 - 1
    )

def passes(n):
    list(Workers(n_threads=n).over(products, range(2)))

signal.signal(signal.SIGALRM, signal.default_int_handler)
for work in (pooled("paper"), pooled("auto"), passes):
    for n_jobs in (1, 2):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        start = time.process_time()
        try:
            work(n_jobs)
        except KeyboardInterrupt:
            print((time.process_time() - start) / n_jobs, flush=True)
"""


def test_an_interrupt_ends_endless_work_within_a_second():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ENDLESS],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    seconds = [float(each) for each in run.stdout.split()]
    assert len(seconds) == 6
    assert max(seconds) < 1


def ring(n):
    """A graph of n vertices, each with a feature of its own and arcs to ten others."""
    sources = np.repeat(np.arange(n), 10)
    targets = (sources + np.tile(np.arange(1, 11), n)) % n
    return Graph(np.stack([sources, targets]), n, features=np.arange(n, dtype=float)[:, None] / n)


@pytest.fixture(scope="module")
def large():
    """Graphs with more arcs than a kernel handles between two looks."""
    graphs = as_batch([ring(150_000)])
    assert graphs.spectral_radii > 1  # all that is kept with the graphs is there
    assert graphs.quotients.arrays.sizes.shape == (150_000,)
    return graphs


def reservoir(graphs, radius):
    encoder = GraphReservoir(n_units=5, effective_spectral_radius=radius, random_state=0)
    return encoder.fit(graphs).reservoir_


def structure(graphs):
    return graphs.vertex_offsets, graphs.indptr, graphs.neighbors


ONES = np.ones((200, 200))
WORK = {
    "solve_graphs": lambda g: embed(g, reservoir(g, 0.5), tol=1e-3, max_iter=5),
    "solve_graphs, by steps": lambda g: embed(g, reservoir(g, 5.0), tol=1e-3, max_iter=5),
    "iterate_layers": lambda g: embed(g, reservoir(g, 0.5), tol=1e-3, max_iter=5, solver="paper"),
    "refine_labels": lambda g: colors.refine(g.structure, g.first_colors),
    "build_quotients": lambda g: colors.quotients(g.structure, g.coloring),
    "spectral_radii": lambda g: kernels.spectral_radii(*g.structure),
    "wl_labels": lambda g: WLCounts(n_iterations=2).fit_transform(g),
    "merge_arcs": lambda g: as_batch([ring(150_000)]),
    "count_triangles": lambda g: kernels.count_triangles(
        0, 1, *structure(g), np.zeros(g.n_vertices, dtype=np.int64)
    ),
    "add_row_products": lambda g: products_with(ONES, Columns.of(ONES)),
    "add_normal_products": lambda g: add_normal_products(),
    "parse_rows": lambda g: kernels.parse_rows(
        np.frombuffer(b"\n".join([b"1"] * 300_000), dtype=np.uint8),
        np.zeros((1, 300_000), dtype=np.int64),
    ),
}  # fmt: skip


def add_normal_products(n=1_000):
    X = sp.random_array((n, 50), density=1.0, format="csr", dtype=np.float64)
    D, w = np.ones((50, 50)), np.ones((n, 1))
    group, places = np.zeros(50, dtype=np.int32), np.arange(50, dtype=np.int32)
    rows = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, places
    kernels.add_normal_products(*rows, w, group, D, np.zeros((50, 50)))


def interrupted_thread():
    flag = kernels.InterruptFlag()
    flag.set()
    return ThreadPoolExecutor(1, initializer=flag.watch)


@pytest.mark.parametrize("name", WORK)
def test_an_interrupted_thread_ends(large, name):
    """Which kernels count their work: each of them does more than the work between two looks."""
    with interrupted_thread() as pool, pytest.raises(RuntimeError, match="was interrupted"):
        pool.submit(WORK[name], large).result()


def test_all_work_on_one_graph_is_counted():
    """Both passes over its arcs, of which neither alone is as much as lies between two looks."""
    graphs = as_batch([ring(60_000)])
    assert 2**20 < len(graphs.neighbors) + graphs.n_vertices < 2**21
    assert len(graphs.coloring) > 0  # it is there before the thread is
    with interrupted_thread() as pool, pytest.raises(RuntimeError, match="was interrupted"):
        pool.submit(WORK["build_quotients"], graphs).result()


def test_a_flag_interrupts_only_threads_that_watch_it(large):
    with interrupted_thread() as pool:
        ending = pool.submit(WORK["spectral_radii"], large)
        assert WORK["spectral_radii"](large) > 1
        assert isinstance(ending.exception(), RuntimeError)


# The main thread waits for a lock, as pools do for their workers, and the system hands the signal
# to another thread. Without a signal of its own, the main thread would wait forever.
ELSEWHERE = """
import signal, sys, threading, time
from fdgnn.cli.app import _interruptible

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs in background
idle = threading.Thread(target=time.sleep, args=(600,), daemon=True)
idle.start()

def deliver():
    time.sleep(0.3)  # until the main thread waits
    signal.pthread_kill(idle.ident, getattr(signal, sys.argv[1]))

lock = threading.Lock()
lock.acquire()
with _interruptible():
    threading.Thread(target=deliver, daemon=True).start()
    try:
        lock.acquire()
    except KeyboardInterrupt as error:
        print(type(error).__name__, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals there have no threads")
@pytest.mark.parametrize(
    ("name", "raised"), [("SIGINT", "KeyboardInterrupt"), ("SIGTERM", "_Terminated")]
)
def test_a_signal_that_another_thread_gets_reaches_the_main_thread(name, raised):
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, name], capture_output=True, text=True, timeout=60
    )
    assert (run.stdout, run.returncode) == (f"{raised}\n", 0), run.stderr
