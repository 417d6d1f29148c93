"""Checkpoints of searches: a search that was stopped resumes where it was."""

from __future__ import annotations

import numpy as np
import pytest

from fdgnn import AutoGraphClassifier, FDGNNClassifier, FDGNNSearchCV
from fdgnn.checkpoints import Checkpoints, content_hash, remove_checkpoints
from fdgnn.datasets import make_motif_graphs
from fdgnn.selection import search as searching

GRAPHS, Y = make_motif_graphs(60, random_state=0)
SEARCH = {"n_configurations": 5, "depths": (1, 2), "cv": 3, "outer_cv": 3}
AUTO = AutoGraphClassifier("wl", random_state=0)
KINDS = {
    "configurations": (5, dict(SEARCH)),
    "base models": (5, {"estimator": AUTO, "cv": 3, "outer_cv": 3}),
}


class Stopped(BaseException):
    """As if the process was killed."""


def counted(monkeypatch, module, name, stop_after=None):
    """Count the calls of a function, of which only so many come back."""
    work, calls = getattr(module, name), []

    def call(*given):
        if len(calls) == stop_after:
            raise Stopped
        calls.append(given)
        return work(*given)

    monkeypatch.setattr(module, name, call)
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_resumes_where_it_was_stopped(kind, tmp_path, monkeypatch):
    n, options = KINDS[kind]
    module, name = searching, "_fit_base_model"
    whole = FDGNNSearchCV(**options, random_state=0).fit(GRAPHS, Y)
    work = tmp_path / "parts"
    search = FDGNNSearchCV(**options, random_state=0, work_dir=work)
    with monkeypatch.context() as patch:
        counted(patch, module, name, stop_after=2)
        with pytest.raises(Stopped):
            search.fit(GRAPHS, Y)
    assert len(list(work.iterdir())) == 2
    calls = counted(monkeypatch, module, name)
    search.fit(GRAPHS, Y)
    assert (search.n_resumed_, len(calls)) == (2, n - 2)
    assert search.best_params_ == whole.best_params_
    assert search.nested_score_ == whole.nested_score_
    np.testing.assert_array_equal(search.nested_outputs_, whole.nested_outputs_)
    np.testing.assert_array_equal(search.decision_function(GRAPHS), whole.decision_function(GRAPHS))
    remove_checkpoints(work)
    assert not work.exists()


@pytest.mark.parametrize("change", ["y", "graphs", "cv", "parameter", "seed", "scoring"])
def test_parts_of_another_search_are_not_taken(change, tmp_path):
    options = SEARCH | {"n_configurations": 2, "work_dir": tmp_path, "random_state": 0}
    FDGNNSearchCV(**options).fit(GRAPHS, Y)
    graphs, y = GRAPHS, Y
    if change == "y":
        y = np.roll(Y, 1)
    elif change == "graphs":
        graphs = GRAPHS[::-1]
    elif change == "cv":
        options["cv"] = 4
    elif change == "parameter":
        options["estimator"] = FDGNNClassifier(n_units=20)
    elif change == "seed":
        options["random_state"] = 1
    else:
        options["scoring"] = "roc_auc"
    assert FDGNNSearchCV(**options).fit(graphs, y).n_resumed_ == 0
    assert FDGNNSearchCV(**options).fit(graphs, y).n_resumed_ == 2


def test_a_longer_search_takes_the_configurations_of_a_shorter_one(tmp_path):
    options = SEARCH | {"work_dir": tmp_path, "random_state": 0}
    FDGNNSearchCV(**options | {"n_configurations": 2}).fit(GRAPHS, Y)
    assert FDGNNSearchCV(**options).fit(GRAPHS, Y).n_resumed_ == 2


def test_a_damaged_part_is_made_again(tmp_path):
    options = SEARCH | {"n_configurations": 2, "work_dir": tmp_path, "random_state": 0}
    first = FDGNNSearchCV(**options).fit(GRAPHS, Y)
    part = min(tmp_path.iterdir())
    part.write_bytes(part.read_bytes()[:100])
    again = FDGNNSearchCV(**options).fit(GRAPHS, Y)
    assert again.n_resumed_ == 1
    assert again.best_score_ == first.best_score_


# ---------------------------------------------------------------------- the store


def test_an_entry_is_found_by_its_contents_and_its_key(tmp_path):
    store = Checkpoints(tmp_path, GRAPHS, Y, {"seed": 0})
    store.save("a", {"x": np.arange(3)})
    store.save_record("a", {"score": 0.5})
    np.testing.assert_array_equal(store.load("a")["x"], [0, 1, 2])
    assert store.load_record("a", dict[str, float]) == {"score": 0.5}
    assert store.load("b") is None
    assert Checkpoints(tmp_path, GRAPHS, np.roll(Y, 1), {"seed": 0}).load("a") is None
    assert Checkpoints(tmp_path, GRAPHS, Y, {"seed": 1}).load_record("a", dict[str, float]) is None


def test_damaged_entries_are_absent(tmp_path):
    store = Checkpoints(tmp_path)
    store.save("a", {"x": np.arange(100)})
    store.save_record("a", [1, 2])
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-3])
    assert store.load("a") is None
    assert store.load_record("a", list[int]) is None


def test_records_are_kept_at_a_url():
    fsspec = pytest.importorskip("fsspec")
    store = Checkpoints("memory://checkpoints", "data")
    try:
        assert store.load_record("a", int) is None
        store.save_record("a", 1)
        assert store.load_record("a", int) == 1
        assert Checkpoints("memory://checkpoints", "other").load_record("a", int) is None
    finally:
        fsspec.filesystem("memory").rm("/checkpoints", recursive=True)


def test_without_a_directory_nothing_is_kept():
    store = Checkpoints(None, GRAPHS)
    store.save("a", {"x": np.arange(3)})
    store.save_record("a", 1)
    assert store.load("a") is None
    assert store.load_record("a", int) is None


def test_hashes_differ_where_contents_do():
    values = [1, 1.0, "1", [1], [[1]], [1, 1], np.array([1]), np.array([1.0]), {"a": 1}, {"b": 1}]
    assert len({content_hash(value) for value in values}) == len(values)
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
