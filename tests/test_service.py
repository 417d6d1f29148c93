"""The HTTP service: answers as `predict` gives, errors by row, limits, concurrent clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import numpy as np
import pytest

from fdgnn import AutoGraphClassifier, GraphClassifier, WLCounts, limits, save_model
from fdgnn.datasets import make_motif_graphs, read_graphs

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "c1ccncc1", "CCCC", "CC=O", "OCCO"] * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    graphs, y = make_motif_graphs(40, random_state=0)
    model = AutoGraphClassifier(probability=True, random_state=0).fit(graphs, y)
    save_model(model, folder / "graphs.fdgnn")
    return folder


class Client:
    """A connection that stays open."""

    def __init__(self, port):
        self.connection = HTTPConnection("127.0.0.1", port, timeout=30)

    def __call__(self, method, path, content=None):
        body = content if isinstance(content, bytes | None) else json.dumps(content)
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        body = answer.read()
        is_json = "json" in answer.getheader("content-type")
        return answer.status, json.loads(body) if is_json else body.decode()


@pytest.fixture(scope="module")
def server(folder):
    """Start ``fdgnn serve`` as a user would; return its process and port."""
    command = ["-m", "fdgnn", "serve", "graphs.fdgnn", "--port", "0"]
    environment = os.environ | {"FDGNN_MAX_REQUEST_BYTES": "200000", "FDGNN_MAX_REQUEST_ROWS": "50"}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
    )
    port = None
    for line in process.stderr:
        record = json.loads(line)
        if "running on" in record["message"]:
            port = int(record["message"].split("://127.0.0.1:")[1].split()[0])
            break
    assert port is not None
    yield process, port
    process.terminate()
    process.communicate(timeout=30)


@pytest.fixture
def client(server):
    client = Client(server[1])
    yield client
    client.connection.close()


def row_of(graph):
    row = {"edge_index": graph.edge_index.tolist(), "num_nodes": int(graph.n_vertices)}
    return row | ({} if graph.labels is None else {"node_feat": graph.labels.tolist()})


def rows(n=5, seed=1):
    graphs, _ = make_motif_graphs(n, random_state=seed)
    return graphs, [row_of(graph) for graph in graphs]


def test_answers_are_those_of_the_model(client, folder):
    from fdgnn import load_model

    graphs, content = rows()
    status, answer = client("POST", "/predict", {"graphs": content})
    assert status == 200, answer
    model = load_model(folder / "graphs.fdgnn")
    assert [row["prediction"] for row in answer["predictions"]] == model.predict(graphs).tolist()
    chances = [[row[f"probability_{c}"] for c in model.classes_] for row in answer["predictions"]]
    np.testing.assert_allclose(chances, model.predict_proba(graphs), atol=1e-12)


def test_a_row_that_cannot_be_predicted_has_an_error_in_its_place(client):
    _, content = rows(3)
    content[1] = {"edge_index": [[0, 9], [1, 0]], "num_nodes": 2}
    status, answer = client("POST", "/predict", {"graphs": content})
    good, bad, other = answer["predictions"]
    assert status == 200
    assert "prediction" in good
    assert "prediction" in other
    assert bad["error"]["type"] == "invalid_row"
    assert "edge" in bad["error"]["message"]


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"{", 422, "truncated"),
        (b"[" * 100_000, 422, ""),
        (b"\xff\xfe", 422, ""),
        ({}, 422, "either `smiles` or `graphs`"),
        ({"smiles": ["C"], "graphs": []}, 422, "either"),
        ({"graphs": [{"edge_index": "no"}]}, 422, "Expected `array`"),
        ({"graphs": [], "surprise": 1}, 422, "surprise"),
        ({"graphs": [{"edge_index": [[], []]}], "features": {"a": []}}, 422, "'a' has 0 values"),
        ({"graphs": [{"edge_index": [[], []]}] * 51}, 413, "FDGNN_MAX_REQUEST_ROWS"),
        (b" " * 200_001, 413, "FDGNN_MAX_REQUEST_BYTES"),
    ],
)
def test_a_request_that_cannot_be_answered(client, content, status, words):
    found, answer = client("POST", "/predict", content)
    assert found == status
    assert words in answer["message"]
    assert client("GET", "/health")[0] == 200


def test_no_rows_and_other_paths(client):
    assert client("POST", "/predict", {"graphs": []})[1]["predictions"] == []
    assert client("GET", "/nowhere")[0] == 404
    assert client("GET", "/predict")[0] == 405


def test_metrics_count_requests_and_rows(client):
    before = client("GET", "/metrics")[1]
    client("POST", "/predict", {"graphs": rows(4)[1]})
    after = client("GET", "/metrics")[1]

    def rows_in(text):
        return int(
            next(x for x in text.splitlines() if x.startswith("fdgnn_rows_total")).split()[1]
        )

    assert rows_in(after) == rows_in(before) + 4


def test_the_schema_names_all_that_requests_may_have(client):
    status, schema = client("GET", "/openapi.json")
    assert status == 200
    assert set(schema["paths"]) == {"/predict", "/health", "/metrics"}
    known = schema["components"]["schemas"]
    assert set(known["PredictRequest"]["properties"]) == {"smiles", "graphs", "features"}
    assert set(known["JsonGraph"]["properties"]) == {
        "edge_index", "num_nodes", "node_feat", "edge_attr",
    }  # fmt: skip


def test_eight_clients_get_their_own_answers(server, client):
    _, content = rows(8, seed=3)
    alone = client("POST", "/predict", {"graphs": content})[1]["predictions"]

    def ask(i):
        one = Client(server[1])
        found = [one("POST", "/predict", {"graphs": [content[i]]}) for _ in range(10)]
        one.connection.close()
        return [answer["predictions"][0] for _, answer in found]

    with ThreadPoolExecutor(8) as pool:
        for i, answers in enumerate(pool.map(ask, range(8))):
            assert answers == [alone[i]] * 10


def test_requests_that_have_begun_are_answered_before_the_end(folder):
    command = [sys.executable, "-m", "fdgnn", "serve", "graphs.fdgnn", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "running on" in line:
            port = int(json.loads(line)["message"].split("://127.0.0.1:")[1].split()[0])
            break
    content = {"graphs": rows(1000)[1]}
    client = Client(port)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client, "POST", "/predict", content)
        while not answer.running():
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        status, found = answer.result(timeout=60)
    assert status == 200
    assert len(found["predictions"]) == 1000
    client.connection.close()
    process.communicate(timeout=30)


def test_molecules_with_features(tmp_path):
    pytest.importorskip("rdkit")
    from fdgnn.service import RequestError, Service

    text = "smiles,y,dose\n" + "".join(f"{s},{i % 2},{i}\n" for i, s in enumerate(SMILES))
    (tmp_path / "molecules.csv").write_text(text)
    table = read_graphs(tmp_path / "molecules.csv", target="y", descriptors=["dose"])
    model = GraphClassifier(WLCounts(n_iterations=1)).fit(table.graphs, table.y)
    model.input_schema_ = table.schema
    save_model(model, tmp_path / "molecules.fdgnn")
    service = Service(tmp_path / "molecules.fdgnn")
    body = {"smiles": ["CCO", "no molecule"], "features": {"dose": [1, 2]}}
    good, bad = service.predict(json.dumps(body).encode()).predictions
    assert "prediction" in good
    assert bad["error"]["type"] == "invalid_row"
    with (
        limits.changed(FDGNN_MAX_REQUEST_ROWS=1),
        pytest.raises(RequestError, match="FDGNN_MAX_REQUEST_ROWS"),
    ):
        service.predict(json.dumps(body).encode())


def test_what_serve_refuses(tmp_path):
    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "fdgnn", "serve", *words], capture_output=True, text=True,
            cwd=tmp_path, check=False,
        )  # fmt: skip

    missing = run("missing.fdgnn")
    assert missing.returncode == 1
    assert missing.stderr.startswith("error: ")
    assert "missing.fdgnn" in missing.stderr
    assert run("x.fdgnn", "--port", "70000").returncode == 2
