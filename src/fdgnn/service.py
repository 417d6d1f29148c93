"""An HTTP service around a model file: ``fdgnn serve``.

======  ==================  ============================================================
POST    ``/predict``        predictions of SMILES or graphs, one object for each row
GET     ``/health``         whether the model is loaded, and which it is
GET     ``/metrics``        counts and seconds of all worker processes, for Prometheus
GET     ``/openapi.json``   the schema of all this
======  ==================  ============================================================

Requests and answers are `msgspec` structs: they are checked while they are decoded, and the schema
is made from them. A row that cannot be predicted has an ``error`` in its place and does not disturb
the others. Threads predict some rows at a time: other requests are answered meanwhile, and nothing
more is predicted if the client disconnects or the service stops.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import joblib
import msgspec
import numpy as np
import psutil
from msgspec import UNSET, Meta, Struct, UnsetType

from fdgnn import limits
from fdgnn._version import __version__
from fdgnn.arrays import Floats
from fdgnn.datasets import iter_graphs
from fdgnn.exceptions import FDGNNError
from fdgnn.extras import require
from fdgnn.prediction.predictor import PredictedRows, Predictor, load_predictor
from fdgnn.texts import printable
from fdgnn.workers import watch_parent

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

logger = logging.getLogger("fdgnn.service")

MODEL_VARIABLE = "FDGNN_SERVICE_MODEL"  # by which workers find the model, with their options
_SECONDS_TO_SEND = 10  # the body of a request
_SECONDS_TO_END = 20  # for running requests when the service stops
_CHUNK_SIZE = 50  # rows that are predicted before the connection is checked again
_MOST_DECODED = 8  # requests; others wait as bytes
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the histogram of requests
_STATUSES = (200, 404, 405, 408, 413, 422, 499, 500)
_METRICS = {  # the samples of each family, in Prometheus' terms
    ("fdgnn_requests_total", "counter"): [f'{{status="{s}"}}' for s in _STATUSES],
    ("fdgnn_rows_total", "counter"): [""],
    ("fdgnn_invalid_rows_total", "counter"): [""],
    ("fdgnn_requests_in_progress", "gauge"): [""],
    ("fdgnn_request_seconds", "histogram"): [
        *[f'_bucket{{le="{s:g}"}}' for s in _SECONDS], '_bucket{le="+Inf"}', "_sum", "_count",
    ],
}  # fmt: skip
_SAMPLES = [name + end for (name, _), ends in _METRICS.items() for end in ends]

Value = str | float | int | bool | None
Labels = list[int | float | str | list[float]]


class JsonGraph(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A graph, with the fields of a row of a graph table (docs/reference/file-formats.md)."""

    edge_index: list[list[int]]
    num_nodes: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    node_feat: Labels | UnsetType = UNSET
    edge_attr: Labels | UnsetType = UNSET


class PredictRequest(Struct, forbid_unknown_fields=True):
    """A request for predictions: SMILES or graphs, with graph-level features if any."""

    smiles: list[str] | UnsetType = UNSET
    graphs: list[JsonGraph] | UnsetType = UNSET
    features: dict[str, list[Value]] | UnsetType = UNSET


class RowError(Struct):
    """Why a row cannot be predicted."""

    type: Literal["invalid_row", "too_large"]
    message: str


Answer = dict[str, Value | RowError]


class PredictResponse(Struct):
    """An object for each row, in the order of the request: its columns, or an error."""

    predictions: list[Answer]
    model: str


class Health(Struct):
    """The state of the service."""

    status: Literal["ok"]
    model: str
    fdgnn: str


class Problem(Struct):
    """Why a request as a whole is rejected."""

    type: Literal[
        "invalid_request", "timeout", "too_large", "too_many_rows", "not_found", "internal"
    ]
    message: str


class RequestError(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status: int, type: str, message: str) -> None:
        super().__init__(message)
        self.status, self.type = status, type


class Metrics:
    """Counts of requests and rows, for Prometheus.

    Each of several workers counts in a file of its own in `folder`, and any of them reports the
    sums. The counts of a worker remain when it ends.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder, n = folder, len(_SAMPLES)
        self._own: Floats = np.zeros(n)
        if folder is not None:
            self._own = np.memmap(Path(folder, f"{os.getpid()}"), np.float64, "w+", shape=n)

    def add(self, sample: str, amount: float = 1) -> None:
        """Increase one of the counts of this process."""
        self._own[_SAMPLES.index(sample)] += amount

    def observe(self, seconds: float, status: int) -> None:
        """Count a request."""
        self.add(f'fdgnn_requests_total{{status="{status}"}}')
        for bound in _SECONDS:
            self.add(f'fdgnn_request_seconds_bucket{{le="{bound:g}"}}', seconds <= bound)
        self.add('fdgnn_request_seconds_bucket{le="+Inf"}')
        self.add("fdgnn_request_seconds_sum", seconds)
        self.add("fdgnn_request_seconds_count")

    def text(self) -> str:
        """Return the counts of all workers in the text format of Prometheus."""
        totals = self._own.copy()
        for path in [] if self.folder is None else Path(self.folder).iterdir():
            pid = int(path.name)
            if pid != os.getpid() and path.stat().st_size:  # not one that starts at this moment
                counts = np.array(np.memmap(path, np.float64, "r"))
                if not psutil.pid_exists(pid):
                    counts[_SAMPLES.index("fdgnn_requests_in_progress")] = 0
                totals += counts
        count_of = dict(zip(_SAMPLES, totals.tolist(), strict=True))
        lines = []
        for (name, kind), ends in _METRICS.items():
            lines.append(f"# TYPE {name} {kind}")
            lines += [f"{name}{end} {count_of[name + end]:.15g}" for end in ends]
        return "\n".join(lines) + "\n"


class Service:
    """A model that answers requests, and its metrics.

    Parameters
    ----------
    path : path
        The model file.
    coverage : float, optional
        Of conformal prediction sets or intervals, as in ``fdgnn predict``.
    folder : path, optional
        Folder of the metrics of several workers.
    """

    def __init__(
        self, path: str | os.PathLike[str], coverage: float | None = None, folder: str | None = None
    ) -> None:
        self.name = Path(path).name
        self.predictor = Predictor(load_predictor(path), coverage)
        self.predictor.model.set_params(n_jobs=1)
        self.metrics = Metrics(folder)

    def predict(self, body: bytes) -> Iterator[list[Answer]]:
        """Yield predictions for the JSON of a `PredictRequest`, some rows at a time.

        Raises
        ------
        RequestError
            The body is not such a request, is too large, or does not fit the model.
        """
        try:
            request = msgspec.json.decode(body, type=PredictRequest)
        except (ValueError, RecursionError) as error:
            raise RequestError(422, "invalid_request", str(error)) from None
        rows, too_large = self._rows_of(request)
        if not rows:
            return
        lines = io.StringIO("".join(json.dumps(row) + "\n" for row in rows))
        vars(lines)["name"] = "the request"  # in messages
        del request, rows  # their memory, while rows are predicted
        try:
            for table in iter_graphs(
                lines, like=self.predictor.model, format="jsonl", chunk_size=_CHUNK_SIZE
            ):
                yield _answers(self.predictor.predict(table), table.start, too_large)
        except (FDGNNError, ValueError) as error:
            raise RequestError(422, "invalid_request", printable(str(error))) from None

    def _rows_of(self, request: PredictRequest) -> tuple[list[dict[str, Any]], dict[int, str]]:
        """Return the rows of a table of JSON lines, and reasons why some of them are too large.

        The latter are empty in the table, so that they need no work.
        """
        if (request.smiles is UNSET) == (request.graphs is UNSET):
            raise RequestError(422, "invalid_request", "give either `smiles` or `graphs`")
        rows: list[dict[str, Any]]
        empty: dict[str, Any]
        if isinstance(request.smiles, UnsetType):
            rows, empty = msgspec.to_builtins(request.graphs), {"edge_index": [[], []]}
            limit = limits.MAX_REQUEST_SIZE
        else:
            rows, empty = [{"smiles": each} for each in request.smiles], {"smiles": ""}
            limit = limits.MAX_REQUEST_SMILES
        if limits.MAX_REQUEST_ROWS.is_below(len(rows)):
            what = f"{len(rows)} rows; {limits.MAX_REQUEST_ROWS.in_words}"
            raise RequestError(413, "too_many_rows", what)
        sizes = enumerate(map(_size_of, rows))
        too_large = {i: f"size is {n}; {limit.in_words}" for i, n in sizes if limit.is_below(n)}
        for i in too_large:
            rows[i] = empty.copy()
        total = sum(map(_size_of, rows))
        if limits.MAX_REQUEST_SIZE.is_below(total):
            what = f"the total size is {total}; {limits.MAX_REQUEST_SIZE.in_words}"
            raise RequestError(413, "too_large", what)
        schema = self.predictor.model.input_schema_
        known = () if schema is None else (*schema.descriptors, schema.id_column)
        for name, values in ({} if request.features is UNSET else request.features).items():
            if name not in known or len(values) != len(rows):
                what = f"features: {name[:100]!r} has {len(values)} values; expected {len(rows)} "
                what += "values of one of the model's features"
                raise RequestError(422, "invalid_request", what)
            for row, value in zip(rows, values, strict=True):
                row.setdefault(name, value)
        return rows, too_large


def _size_of(row: dict[str, Any]) -> int:
    """Return the number of characters of a SMILES, or of vertices and edges of a graph."""
    if "smiles" in row:
        return len(row["smiles"])
    last: int = max(chain.from_iterable(row["edge_index"]), default=-1)
    n_vertices: int = max(row.get("num_nodes", 0), last + 1)
    return n_vertices + sum(map(len, row["edge_index"])) // 2


def _answers(found: PredictedRows, start: int, too_large: dict[int, str]) -> list[Answer]:
    """Return an object for each row of a table whose first row is `start`."""
    names = [name for name in found.columns if name not in ("row", "error")]
    columns = [found.columns[name] for name in names]
    answers: list[Answer] = [
        dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)
    ]
    for reject in found.rejects:
        error = RowError("invalid_row", printable(reject.reason))
        if reject.row in too_large:
            error = RowError("too_large", too_large[reject.row])
        answers[reject.row - start] = {"error": error}
    return answers


# ---------------------------------------------------------------------- HTTP


def create_app(service: Service | None = None) -> Starlette:
    """Return the ASGI application; without a service, of the model that the environment names."""
    require("starlette", "serve", "HTTP services")
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect
    from starlette.responses import Response
    from starlette.routing import Route

    if service is None:
        watch_parent()
        service = Service(*json.loads(os.environ[MODEL_VARIABLE]))
    answering: Service = service
    counted = service.metrics
    decoded = asyncio.Semaphore(_MOST_DECODED)
    threads = asyncio.Semaphore(joblib.cpu_count())

    def answer(content: Any, status: int = 200, headers: Any = None) -> Response:
        body = msgspec.json.encode(content)
        return Response(body, status, headers, media_type="application/json")

    async def predict(request: Request) -> Response:
        body = await _body(request)
        chunks, found = answering.predict(body), list[Answer]()
        async with decoded:
            while True:
                if await request.is_disconnected():
                    raise ClientDisconnect
                async with threads:
                    chunk = await run_in_threadpool(next, chunks, None)
                if chunk is None:
                    break
                found += chunk
        counted.add("fdgnn_rows_total", len(found))
        counted.add("fdgnn_invalid_rows_total", sum("error" in row for row in found))
        return answer(PredictResponse(found, answering.name))

    async def health(_: Request) -> Response:
        return answer(Health("ok", answering.name, __version__))

    async def metrics(_: Request) -> Response:
        return Response(counted.text(), media_type="text/plain; version=0.0.4")

    async def openapi(_: Request) -> Response:
        return answer(openapi_schema())

    def observed(handler: Callable[..., Any]) -> Callable[..., Any]:
        async def handle(request: Request, *error: Exception) -> Response:
            start = time.perf_counter()
            counted.add("fdgnn_requests_in_progress")
            try:
                response: Response = await handler(request, *error)
            except RequestError as problem:
                response = answer(Problem(problem.type, str(problem)), problem.status)  # type: ignore[arg-type]
            except ClientDisconnect:
                response = Response(status_code=499)  # nobody reads it; for the log and metrics
            except Exception:
                logger.exception("request failed")
                response = answer(Problem("internal", "the request failed; see the log"), 500)
            finally:
                counted.add("fdgnn_requests_in_progress", -1)
            seconds, status = time.perf_counter() - start, response.status_code
            counted.observe(seconds, status)
            facts = {"method": request.method, "path": request.url.path, "status": status}
            logger.info("request", extra={"facts": facts | {"ms": round(1e3 * seconds, 2)}})
            return response

        return handle

    routes = [
        Route("/predict", observed(predict), methods=["POST"]),
        Route("/health", observed(health)),
        Route("/metrics", metrics),
        Route("/openapi.json", openapi),
    ]

    async def not_found(request: Request, error: Any) -> Response:
        problem = Problem("not_found", f"{request.method} {request.url.path}: {error.detail}")
        return answer(problem, error.status_code, error.headers)

    handlers: Any = {404: observed(not_found), 405: observed(not_found)}
    return Starlette(routes=routes, exception_handlers=handlers)


async def _body(request: Request) -> bytes:
    """Read the body of a request up to the limit of its size."""
    chunks, size = [], 0
    try:
        async with asyncio.timeout(_SECONDS_TO_SEND):
            async for chunk in request.stream():
                size += len(chunk)
                if limits.MAX_REQUEST_BYTES.is_below(size):
                    raise RequestError(413, "too_large", limits.MAX_REQUEST_BYTES.in_words)
                chunks.append(chunk)
    except TimeoutError as error:
        message = f"the request was not sent within {_SECONDS_TO_SEND} s"
        raise RequestError(408, "timeout", message) from error
    return b"".join(chunks)


def openapi_schema() -> dict[str, Any]:
    """Return the OpenAPI schema of the service."""
    structs = (PredictRequest, PredictResponse, Health, Problem)
    schemas, components = msgspec.json.schema_components(
        structs, ref_template="#/components/schemas/{name}"
    )
    request, response, health, problem = (
        {"content": {"application/json": {"schema": schema}}} for schema in schemas
    )

    def of(words: str, content: dict[str, Any]) -> dict[str, Any]:
        return {"description": words} | content

    text = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    rejected = {str(s): of(words, problem) for s, words in _REJECTED.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "fdgnn", "version": __version__},
        "paths": {
            "/predict": {
                "post": {
                    "operationId": "predict",
                    "summary": "Predict SMILES or graphs",
                    "requestBody": {"required": True} | request,
                    "responses": {"200": of("Predictions, row by row", response)} | rejected,
                }
            },
            "/health": {"get": {"responses": {"200": of("The model is loaded", health)}}},
            "/metrics": {"get": {"responses": {"200": of("Counts for Prometheus", text)}}},
        },
        "components": {"schemas": components},
    }


_REJECTED = {
    408: "The body was not sent in time",
    413: "Too many bytes, rows, vertices, edges or characters",
    422: "Not a request that the model can take",
    500: "The service failed",
}


def _check_address(host: str, port: int) -> None:
    """Raise ValueError if nothing can listen there; uvicorn would only write a line of the log."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another `host` or `port`"
        ) from None


def serve(
    path: str | os.PathLike[str], *, host: str, port: int, n_workers: int, coverage: float | None
) -> None:
    """Serve a model until SIGINT or SIGTERM; requests that have begun are answered first."""
    if not host:
        raise ValueError("`host` is empty; name an address, such as 127.0.0.1")
    uvicorn = require("uvicorn", "serve", "HTTP services")
    service = Service(path, coverage)  # an error comes here, before there are processes
    _check_address(host, port)
    app: Any = create_app(service) if n_workers == 1 else "fdgnn.service:create_app"
    with nullcontext() if n_workers == 1 else tempfile.TemporaryDirectory() as folder:
        own = [os.fspath(Path(path).resolve()), coverage, folder]
        os.environ[MODEL_VARIABLE] = json.dumps(own)
        uvicorn.run(
            app, factory=n_workers > 1, host=host, port=port, workers=n_workers,
            log_config=_LOGGING, access_log=False, timeout_graceful_shutdown=_SECONDS_TO_END,
            limit_concurrency=1000,
            timeout_worker_healthcheck=60,  # loading a model on a busy machine takes long
        )  # fmt: skip


class JsonLines(logging.Formatter):
    """A JSON object for each record of the log."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": JsonLines}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": "INFO", "propagate": False}
        for name in ("uvicorn", "uvicorn.error", "fdgnn")
    },
}
