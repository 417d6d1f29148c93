"""`n_jobs` bounds the threads of BLAS and our own together."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fdgnn import FDGNNClassifier, FDGNNRegressor, FDGNNSearchCV, fitting
from fdgnn.datasets import make_motif_graphs
from fdgnn.threads import one_blas_thread

SMALL = {"n_units": 10, "random_state": 0}


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS cannot have two threads")
        yield


# ---------------------------------------------------------------------- the context


def test_blas_has_one_thread_in_a_context_and_in_those_inside():
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_contexts_of_threads_may_end_in_any_order():
    entered, ends = threading.Barrier(3, timeout=60), (threading.Event(), threading.Event())

    def hold(end):
        with one_blas_thread():
            entered.wait()
            end.wait()

    threads = [threading.Thread(target=hold, args=(end,), daemon=True) for end in ends]
    for thread in threads:
        thread.start()
    entered.wait()
    for thread, end in zip(threads, ends, strict=True):
        assert blas_threads() == {1}
        end.set()
        thread.join()
    assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_forgets_the_limits_of_other_threads():
    entered, done = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread():
            entered.set()
            done.wait()

    other = threading.Thread(target=hold, daemon=True)
    other.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        os._exit(blas_threads() != {2})
    done.set()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---------------------------------------------------------------------- estimators and commands


def test_fits_and_searches_hold_blas_to_one_thread(monkeypatch):
    graphs, y = make_motif_graphs(1600, random_state=0)
    seen, fit = [], fitting.fit_depths

    def watched(*args, **kwargs):
        seen.append(blas_threads())
        return fit(*args, **kwargs)

    monkeypatch.setattr("fdgnn.estimators.base.fit_depths", watched)
    monkeypatch.setattr("fdgnn.selection.search.fit_depths", watched)
    for n_jobs in (None, 2):
        FDGNNClassifier(n_jobs=n_jobs, **SMALL).fit(graphs, y)
        FDGNNRegressor(n_jobs=n_jobs, **SMALL).fit(graphs, y)
    FDGNNSearchCV(FDGNNClassifier(**SMALL), n_configurations=1, random_state=0).fit(graphs, y)
    assert len(seen) >= 5
    assert all(each == {1} for each in seen)
    assert blas_threads() == {2}


def test_results_do_not_depend_on_n_jobs():
    graphs, y = make_motif_graphs(1600, random_state=0)
    one, two = (
        FDGNNClassifier(n_units=50, random_state=0, n_jobs=n_jobs).fit(graphs, y).outputs(graphs)
        for n_jobs in (1, 2)
    )
    assert (one == two).all()


FIT = """
import sys, time
from fdgnn import GraphClassifier
from fdgnn.datasets import make_motif_graphs

graphs, y = make_motif_graphs(2000, random_state=0)
model = GraphClassifier("wl", "rbf", n_jobs=int(sys.argv[1]), random_state=0)
process, thread = time.process_time(), time.thread_time()
model.fit(graphs, y).predict(graphs)
process, thread = time.process_time() - process, time.thread_time() - thread
print(process - thread, thread)
"""


def test_a_fit_with_one_job_keeps_to_its_thread():
    """Seconds of processor time, which do not depend on what else the machine does."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    run = subprocess.run(
        [sys.executable, "-c", FIT, "1"], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr
    others, own = map(float, run.stdout.split())
    assert others < 0.2 * own
