"""Training on a real Dask cluster of two worker processes, one of which is killed."""

from __future__ import annotations

import os
import signal

import pytest

from commands import fdgnn
from fdgnn.context import connected
from fdgnn.exceptions import StudyError
from fdgnn.workers import Workers
from test_scale import (  # noqa: F401
    QUIET,
    _small,
    alphas,
    colors,
    in_memory,
    read,
    shards,
    take_for_many,
    trained,
)

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of distributed's own
    pytest.mark.xdist_group("dask"),
]


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with distributed.Client(cluster) as client:
        yield client
    cluster.close()


def of_cluster(client, shards, work, model):  # noqa: F811
    return trained(shards, work, model, workers=Workers(client=client))


def test_the_same_model_though_a_worker_is_killed(client, shards, tmp_path, monkeypatch):  # noqa: F811
    wanted = trained(shards, tmp_path / "w", colors(alpha=1.0))
    passes, over = [], Workers.over

    def killing(self, function, items):
        passes.append(1)
        if len(passes) == 8:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return over(self, function, items)

    monkeypatch.setattr(Workers, "over", killing)
    found = of_cluster(client, f"file://{shards}/*", tmp_path / "c", colors(alpha=1.0))
    assert len(passes) > 8
    graphs, _ = in_memory()
    assert (found.decision_function(graphs) == wanted.decision_function(graphs)).all()


def test_alpha_is_chosen_as_on_one_machine(client, shards, tmp_path, monkeypatch):  # noqa: F811
    take_for_many(monkeypatch, 50)
    wanted = trained(shards, tmp_path / "w", colors())
    found = of_cluster(client, shards, tmp_path / "c", colors())
    assert alphas(found) == alphas(wanted)
    graphs, _ = in_memory()
    assert (found.decision_function(graphs) == wanted.decision_function(graphs)).all()


def test_errors_of_workers_are_those_of_this_machine(client, shards, tmp_path):  # noqa: F811
    workers = Workers(client=client)
    (shards / "d.jsonl").write_text('{"smiles": "CCO", "y": 1}\n')
    with pytest.raises(ValueError, match=r"d\.jsonl.*edge_index"):
        read(shards, tmp_path / "w", workers=workers)
    (shards / "d.jsonl").unlink()
    assert read(shards, tmp_path / "w", workers=workers).n_new < 9


def test_a_directory_that_workers_do_not_see_is_told(client, shards, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(client, "run", lambda function: {"one": True, "other": False})
    with pytest.raises(StudyError, match="give one that they share by `work_dir`"):
        read(shards, tmp_path / "w", workers=Workers(client=client))


def test_an_address_nobody_answers_at(monkeypatch):
    monkeypatch.setattr("fdgnn.context.SECONDS_TO_ANSWER", 0.5)
    with (
        pytest.raises(StudyError, match=r"answers at tcp://127.0.0.1:9"),
        connected("tcp://127.0.0.1:9", QUIET),
    ):
        pass


def test_one_line_and_an_exit_code(tmp_path):
    run = fdgnn("fit", tmp_path / "*.csv", "--target", "y", "-o", tmp_path / "m.fdgnn")
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "no file has such a name" in run.stderr


def test_a_model_that_is_not_trained_out_of_core_is_rejected_before_anything_is_read(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,y\nC,1\n")
    run = fdgnn("fit", tmp_path / "*.csv", "--target", "y", "-o", tmp_path / "m.fdgnn",
                "--model", "union")  # fmt: skip
    assert run.returncode == 1
    assert "cannot be trained out of core" in run.stderr
    assert not (tmp_path / "m.fdgnn.work").exists()
