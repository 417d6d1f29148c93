"""The HTTP service: answers as `predict` gives, errors by row, limits, concurrent clients."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import chain

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings

from commands import assert_one_clear_line, fdgnn
from fdgnn import AutoGraphClassifier, GraphClassifier, WLCounts, limits, save_model, service
from fdgnn.datasets import make_motif_graphs, read_graphs

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
SECONDS = 120  # much more than is needed, on a busy machine
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
        self.connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def __call__(self, method, path, content=None):
        body = content if isinstance(content, bytes | None) else json.dumps(content)
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        body = answer.read()
        is_json = "json" in answer.getheader("content-type")
        return answer.status, json.loads(body) if is_json else body.decode()


@contextmanager
def serving(folder, workers=1, **environment):
    """Start ``fdgnn serve`` as a user would; yield its process, port and log."""
    command = [sys.executable, "-m", "fdgnn", "serve", "graphs.fdgnn", "--port", "0"]
    command += ["--workers", str(workers)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, cwd=folder, stderr=log, env=os.environ | environment
        )  # fmt: skip
        try:
            yield process, port_of(process, log, workers), log
        finally:
            process.terminate()
            process.wait(SECONDS)


def port_of(process, log, workers):
    """Wait until all workers have started, and return the port of the service."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        found = [record["message"] for record in records_of(log)]
        address = [text for text in found if "running on" in text]
        if address and sum("startup complete" in text for text in found) == workers:
            return int(address[0].split("://127.0.0.1:")[1].split()[0])
        time.sleep(0.05)
    raise AssertionError(records_of(log))


def records_of(log):
    log.seek(0)
    return [json.loads(line) for line in log if line.endswith("\n")]


@pytest.fixture(scope="module")
def server(folder):
    """A service with small limits."""
    small = {"FDGNN_MAX_REQUEST_BYTES": "200000", "FDGNN_MAX_REQUEST_ROWS": "50"}
    with serving(folder, **small) as found:
        yield found


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
        ({"graphs": [], "features": {"a": []}}, 422, "one of the model's features"),
        ({"graphs": [{"edge_index": [[], []]}] * 51}, 413, "FDGNN_MAX_REQUEST_ROWS"),
        ({"graphs": [{"edge_index": [[0], [9998]]}] * 11}, 413, "FDGNN_MAX_REQUEST_SIZE"),
        ({"graphs": [{"edge_index": [[], []], "num_nodes": 50_001}] * 2}, 413, "total size"),
        (b" " * 200_001, 413, "FDGNN_MAX_REQUEST_BYTES"),
    ],
)
def test_a_request_that_cannot_be_answered(client, content, status, words):
    found, answer = client("POST", "/predict", content)
    assert found == status
    assert words in answer["message"]
    assert client("GET", "/health")[0] == 200


@pytest.mark.parametrize("length", ["-1", "", "\xb2", "1e3", "9" * 5000])
def test_a_wrong_content_length_is_rejected(server, length):
    connection = HTTPConnection("127.0.0.1", server[1], timeout=SECONDS)
    connection.putrequest("POST", "/predict")
    connection.putheader("Content-Length", length)
    connection.endheaders()
    assert 400 <= connection.getresponse().status < 500
    connection.close()


def test_a_row_that_is_too_large_has_an_error_in_its_place(client):
    _, content = rows(3)
    content[1] = {"edge_index": [[0], [99_999]]}
    answer = client("POST", "/predict", {"graphs": content})[1]["predictions"]
    assert answer[1]["error"]["type"] == "too_large"
    assert "FDGNN_MAX_REQUEST_SIZE" in answer[1]["error"]["message"]
    assert ["prediction" in row for row in answer] == [True, False, True]


def test_no_rows_and_other_paths(server, client):
    assert client("POST", "/predict", {"graphs": []})[1]["predictions"] == []
    assert client("GET", "/nowhere")[0] == 404
    assert client("GET", "/predict")[0] == 405
    logged = [record for record in records_of(server[2]) if record["message"] == "request"]
    assert [(each["method"], each["path"], each["status"]) for each in logged[-3:]] == [
        ("POST", "/predict", 200),
        ("GET", "/nowhere", 404),
        ("GET", "/predict", 405),
    ]


def count_in(text, sample):
    return int(next(line for line in text.splitlines() if line.startswith(sample)).split()[-1])


def test_metrics_count_requests_and_rows(client):
    before = client("GET", "/metrics")[1]
    client("POST", "/predict", {"graphs": rows(4)[1]})
    after = client("GET", "/metrics")[1]
    assert count_in(after, "fdgnn_rows_total") == count_in(before, "fdgnn_rows_total") + 4


def test_the_schema_names_all_that_requests_may_have(client):
    status, schema = client("GET", "/openapi.json")
    assert status == 200
    assert set(schema["paths"]) == {"/predict", "/health", "/metrics"}
    known = schema["components"]["schemas"]
    assert set(known["PredictRequest"]["properties"]) == {"smiles", "graphs", "features"}
    assert set(known["JsonGraph"]["properties"]) == {
        "edge_index", "num_nodes", "node_feat", "edge_attr",
    }  # fmt: skip


def ask_at_once(port, content, times=10):
    """Ask for each graph several times, each by a client of its own; return lists of answers."""

    def ask(graph):
        client = Client(port)
        found = [client("POST", "/predict", {"graphs": [graph]}) for _ in range(times)]
        client.connection.close()
        return [answer["predictions"][0] for _, answer in found]

    with ThreadPoolExecutor(len(content)) as pool:
        return list(pool.map(ask, content))


def test_eight_clients_get_their_own_answers(server, client):
    _, content = rows(8, seed=3)
    alone = client("POST", "/predict", {"graphs": content})[1]["predictions"]
    for one, answers in zip(alone, ask_at_once(server[1], content), strict=True):
        assert answers == [one] * 10


def in_progress(port):
    """Ask one of the workers whether it is predicting."""
    client = Client(port)
    text = client("GET", "/metrics")[1]
    client.connection.close()
    return "fdgnn_requests_in_progress 1" in text


@pytest.mark.parametrize("workers", [1, 2])
def test_requests_that_have_begun_are_answered_before_the_end(folder, workers):
    with serving(folder, workers) as (process, port, _):
        family = psutil.Process(process.pid).children(recursive=True)
        client = Client(port)
        assert client("GET", "/health")[0] == 200  # connected, and the worker is ready
        content = {"graphs": rows(1000)[1]}
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client, "POST", "/predict", content)
            while not in_progress(port):
                assert not answer.done()
            process.send_signal(signal.SIGTERM)
            status, found = answer.result(SECONDS)
        client.connection.close()
        assert status == 200
        assert len(found["predictions"]) == 1000
        process.wait(SECONDS)
    assert psutil.wait_procs(family, SECONDS)[1] == []


def test_workers_share_the_requests_and_do_not_outlive_a_killed_service(folder):
    with serving(folder, 2) as (process, port, log):
        family = psutil.Process(process.pid).children(recursive=True)
        end = time.monotonic() + SECONDS
        answering, n_rows = set(), 0
        while len(answering) < 2:
            assert time.monotonic() < end
            n_rows += sum(map(len, ask_at_once(port, rows(8, seed=3)[1])))
            answering = {r["process"] for r in records_of(log) if r["message"] == "request"}
        client = Client(port)
        text = client("GET", "/metrics")[1]  # of one worker, but with the counts of both
        client.connection.close()
        assert count_in(text, "fdgnn_rows_total") == n_rows
        assert count_in(text, 'fdgnn_request_seconds_bucket{le="+Inf"}') == n_rows
        process.kill()
    assert psutil.wait_procs(family, SECONDS)[1] == []


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.UnusedDataWarning")  # of random edges
@pytest.mark.parametrize("path", ["/predict", "/health", "/metrics"])
def test_requests_made_from_the_schema_are_answered_as_it_says(path, folder):
    """In this process, so that a failure shows its cause; limits of the search keep it short."""
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis import checks

    from fdgnn.service import Service, create_app

    app = create_app(Service(folder / "graphs.fdgnn"))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operation = schema[path]["POST" if path == "/predict" else "GET"]
    answered = set()

    def check(case):
        response = case.call()
        answered.add(response.status_code)
        case.validate_response(response, checks=[
            checks.not_a_server_error, checks.status_code_conformance,
            checks.content_type_conformance, checks.response_schema_conformance,
            checks.negative_data_rejection, checks.unsupported_method,
        ])  # fmt: skip

    modes = schemathesis.GenerationMode
    for mode in modes if path == "/predict" else [modes.POSITIVE]:
        strategy = operation.as_strategy(generation_mode=mode)
        few = settings(max_examples=50, suppress_health_check=list(HealthCheck))
        few(given(case=strategy)(check))()
    assert answered == ({200, 422} if path == "/predict" else {200})


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

    def predict(*smiles, **features):
        body = json.dumps({"smiles": smiles, "features": features}).encode()
        return list(chain.from_iterable(service.predict(body)))

    good, bad, long = predict("CCO", "no molecule", "C" * 1001, dose=[1, 2, 3])
    assert "prediction" in good
    assert bad["error"].type == "invalid_row"
    assert long["error"].type == "too_large"
    assert "FDGNN_MAX_REQUEST_SMILES" in long["error"].message
    with limits.changed(FDGNN_MAX_REQUEST_ROWS=1), pytest.raises(RequestError, match="REQUEST_ROW"):
        predict("CCO", "CC", dose=[1, 2])
    with pytest.raises(RequestError, match="total size is 100001"):
        predict(*["C" * 1000] * 100, "C", dose=[0] * 101)
    with pytest.raises(RequestError, match="'other' has 1 values; expected 1 values of one"):
        predict("CCO", dose=[1], other=[1])


def test_what_serve_rejects(tmp_path):
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


def scope_of(path, method="POST"):
    return {
        "type": "http", "method": method, "path": path, "headers": [], "query_string": b"",
    }  # fmt: skip


async def call(app, path, messages, method="POST"):
    """Call an application in this process; return what it sends."""
    messages, sent = list(messages), []

    async def receive():
        if not messages:
            await asyncio.sleep(SECONDS)
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    await app(scope_of(path, method), receive, send)
    return sent


def run(coroutine):
    with ThreadPoolExecutor() as pool:  # a browser test of the same process has an event loop here
        return pool.submit(asyncio.run, coroutine).result()


@pytest.fixture
def answering(folder, monkeypatch):
    """A service that counts its calls of `predict`, which wait until they may go on."""
    found = service.Service(folder / "graphs.fdgnn")
    found.n_calls, found.begun, found.may_go_on = 0, threading.Event(), threading.Event()
    of_chunk = type(found.predictor).predict

    def predict(predictor, table):
        found.n_calls += 1
        found.begun.set()
        assert found.may_go_on.wait(SECONDS)
        return of_chunk(predictor, table)

    monkeypatch.setattr(type(found.predictor), "predict", predict)
    return found


def body_of(n_rows):
    content = json.dumps({"graphs": rows(n_rows)[1]}).encode()
    return {"type": "http.request", "body": content, "more_body": False}


@pytest.mark.parametrize(("then", "status"), [([], 408), ([{"type": "http.disconnect"}], 499)])
def test_a_body_that_does_not_end_is_not_waited_for(folder, monkeypatch, then, status):
    monkeypatch.setattr(service, "_SECONDS_TO_SEND", 0.05)
    failures = []
    monkeypatch.setattr(service.logger, "exception", failures.append)
    answering = service.Service(folder / "graphs.fdgnn", None)
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, *then]
    sent = run(call(service.create_app(answering), "/predict", messages))
    assert sent[0]["status"] == status
    assert "fdgnn_requests_in_progress 0" in answering.metrics.text()
    assert f'{{status="{status}"}} 1' in answering.metrics.text()
    assert failures == []


def test_nothing_more_is_predicted_for_a_client_that_disconnects(answering):
    answering.may_go_on.set()
    messages = [body_of(100), {"type": "http.disconnect"}]
    sent = run(call(service.create_app(answering), "/predict", messages))
    assert sent[0]["status"] == 499
    assert answering.n_calls == 0


def test_other_requests_are_answered_while_rows_are_predicted(answering):
    async def check():
        app = service.create_app(answering)
        large = asyncio.create_task(call(app, "/predict", [body_of(100)]))
        await asyncio.to_thread(answering.begun.wait, SECONDS)
        assert (await call(app, "/health", [], "GET"))[0]["status"] == 200
        assert "in_progress 1" in (await call(app, "/metrics", [], "GET"))[1]["body"].decode()
        answering.may_go_on.set()
        assert len(json.loads((await large)[1]["body"])["predictions"]) == 100

    run(check())
    assert answering.n_calls == 2


def test_a_request_ends_with_its_chunk_if_the_service_stops(answering):
    """After the seconds that running requests have, uvicorn cancels them."""

    async def check():
        app = service.create_app(answering)
        large = asyncio.create_task(call(app, "/predict", [body_of(100)]))
        await asyncio.to_thread(answering.begun.wait, SECONDS)
        large.cancel()
        answering.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await large

    run(check())
    assert answering.n_calls == 1
    assert "fdgnn_requests_in_progress 0" in answering.metrics.text()


def test_an_empty_host_is_not_all_addresses(folder):
    found = fdgnn("serve", folder / "graphs.fdgnn", "--host", "")
    assert_one_clear_line(found, "--host is empty")


def test_an_address_that_is_taken_is_an_error(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = fdgnn("serve", folder / "graphs.fdgnn", "--port", port)
    assert_one_clear_line(run, f"cannot listen on 127.0.0.1:{port}", "--port")
