"""Training on a real Dask cluster of two worker processes, one of which is killed."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from commands import fdgnn
from fdgnn.clusters import connected
from fdgnn.exceptions import StudyError
from fdgnn.scale.cluster import Cluster
from fdgnn.scale.parts import Parts
from fdgnn.scale.shards import ShardRequest, find_shards
from fdgnn.scale.training import read_shards, train_on_shards
from test_scale import QUIET, _small, colors, in_memory, read, shards  # noqa: F401

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


class Killing(Cluster):
    """A cluster that loses a worker in the middle of the work."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.n_passes = 0

    def total(self, step, handles, loader):
        self.n_passes += 1
        if self.n_passes == 8:
            os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)
        return super().total(step, handles, loader)


def test_the_same_model_though_a_worker_is_killed(client, shards, tmp_path):  # noqa: F811
    here, local = read(shards, tmp_path / "w")
    wanted = train_on_shards(colors(alpha=1.0), here, ("y",), local, QUIET).model
    executor = Killing(client, None, QUIET)
    url = f"file://{shards}/*"
    found = read_shards(find_shards(url), ShardRequest({"target": "y"}, n_rows=15), executor, QUIET)
    assert found.survey.labels == here.survey.labels
    model = train_on_shards(colors(alpha=1.0), found, ("y",), executor, QUIET).model
    assert executor.n_passes > 8
    graphs, _ = in_memory()
    scores = wanted.decision_function(graphs)
    np.testing.assert_allclose(
        model.decision_function(graphs), scores, atol=1e-6 * (scores.max() - scores.min())
    )


@pytest.mark.parametrize("together", [1, 64_000_000])
def test_blocks_that_lie_together_keep_their_order(client, monkeypatch, together):
    monkeypatch.setattr("fdgnn.scale.cluster._TOGETHER", together)
    blocks = [Parts([np.array([number, number + 0.5])]) for number in range(9)]
    handles = [client.submit(lambda block: block, each, pure=False) for each in blocks]
    cluster = Cluster(client, None, QUIET)
    found = cluster.gather(np.sum, handles, AsTheyAre())
    assert found == [2 * number + 0.5 for number in range(9)]
    (total,) = cluster.total(SumOfAll(), handles, AsTheyAre())
    assert total == sum(found)


@dataclass(frozen=True)
class AsTheyAre:
    kept: ClassVar[bool] = True

    def load(self, part):
        return part


class SumOfAll:
    def begin(self):
        return (np.zeros(1),)

    def add(self, totals, part):
        totals[0][0] += part.sum()


def test_few_graphs_choose_as_on_one_machine(client, shards, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("fdgnn.scale.coding.MANY", 50)
    here, local = read(shards, tmp_path / "w")
    wanted = train_on_shards(colors(), here, ("y",), local, QUIET)
    executor = Cluster(client, None, QUIET)
    asked = ShardRequest({"target": "y"}, n_rows=15)
    there = read_shards(find_shards(str(shards)), asked, executor, QUIET)
    found = train_on_shards(colors(), there, ("y",), executor, QUIET)
    assert found.alphas == wanted.alphas
    graphs, _ = in_memory()
    scores = wanted.model.decision_function(graphs)
    np.testing.assert_allclose(found.model.decision_function(graphs), scores, atol=1e-6)


def test_errors_of_workers_are_those_of_this_machine(client, shards, tmp_path):  # noqa: F811
    (shards / "d.jsonl").write_text('{"smiles": "CCO", "y": 1}\n')
    with pytest.raises(ValueError, match=r"d\.jsonl.*edge_index"):
        read_shards(
            find_shards(str(shards)), ShardRequest({"target": "y"}, n_rows=15),
            Cluster(client, tmp_path / "w", QUIET), QUIET,
        )  # fmt: skip
    (shards / "d.jsonl").unlink()
    again = read_shards(
        find_shards(str(shards)), ShardRequest({"target": "y"}, n_rows=15),
        Cluster(client, tmp_path / "w", QUIET), QUIET,
    )  # fmt: skip
    assert again.n_new < 9


def test_an_address_nobody_answers_at(monkeypatch):
    monkeypatch.setattr("fdgnn.clusters.SECONDS_TO_ANSWER", 0.5)
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


def test_a_model_that_is_not_trained_out_of_core_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,y\nC,1\n")
    run = fdgnn("fit", tmp_path / "*.csv", "--target", "y", "-o", tmp_path / "m.fdgnn",
                "--model", "union")  # fmt: skip
    assert run.returncode == 1
    assert "cannot be trained out of core" in run.stderr
    assert not (tmp_path / "m.fdgnn.work").exists()
