"""Processes that are forked while threads predict, and threads that predict side by side."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

from fdgnn import FDGNNClassifier
from fdgnn.datasets import make_random_graphs
from fdgnn.records import cached_property

N_FORKS = 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_children_forked_while_threads_predict_can_predict():
    graphs = make_random_graphs(20, random_state=0)
    model = FDGNNClassifier(n_units=10, random_state=0).fit(graphs, np.arange(20) % 2)
    done = threading.Event()

    def predict():
        while not done.is_set():
            model.predict([graphs[0]])  # a new batch, whose properties are computed anew

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        codes = [_exit_code_of_child(model, graphs) for _ in range(N_FORKS)]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * N_FORKS


def _exit_code_of_child(model, graphs, seconds=20.0):
    """Fork a process that predicts; the exit code, or None if it had to be killed."""
    child = os.fork()
    if child == 0:
        try:
            model.predict([graphs[1]])
            os._exit(0)
        finally:
            os._exit(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class _Slow:
    @cached_property
    def value(self):
        started.set()
        release.wait(30)
        return 1


started, release = threading.Event(), threading.Event()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_cached_property_holds_no_lock_that_a_child_inherits():
    started.clear(), release.clear()
    thread = threading.Thread(target=lambda: _Slow().value)
    thread.start()
    started.wait(30)
    child = multiprocessing.get_context("fork").Process(target=_compute)
    child.start()
    child.join(20)
    code = child.exitcode
    child.kill()
    release.set()
    thread.join()
    assert code == 0


def _compute():
    release.set()  # the child's own copy of the event
    assert _Slow().value == 1


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 releases the GIL for each index")
@pytest.mark.parametrize("given", ["list", "index", "batch"])
def test_predictions_of_single_graphs_keep_the_gil(given):
    graphs = make_random_graphs(20, random_state=0)
    model = FDGNNClassifier(n_units=10, random_state=0).fit(graphs, np.arange(20) % 2)
    find = {
        "list": list(graphs).__getitem__,
        "index": graphs.__getitem__,
        "batch": [graphs[[i]] for i in range(20)].__getitem__,
    }[given]

    def predict(i):
        graph = find(i % 20)
        return model.predict(graph if given == "batch" else [graph])

    def compare(i):
        graph = find(i % 20)
        return model.domain_distance(graph if given == "batch" else [graph])

    for answer in (predict, compare):
        answer(0)  # what is computed once is computed
        assert _turns_of_another_thread(lambda f=answer: [f(i) for i in range(300)]) == 0


def _turns_of_another_thread(action):
    """Count how often another thread got the GIL during an action, which nothing takes it from."""
    turns, started, done = [], threading.Event(), threading.Event()

    def take_turns():
        while not done.is_set():
            turns.append(1)
            started.set()
            time.sleep(0)  # gives the GIL back

    thread, interval = threading.Thread(target=take_turns), sys.getswitchinterval()
    sys.setswitchinterval(1000)  # before the thread first waits for the GIL, for so long
    thread.start()
    started.wait(30)
    try:
        before = len(turns)
        action()
        found = len(turns) - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()
    return found
