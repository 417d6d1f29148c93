"""An HTTP service around a model file: ``fdgnn serve``.

======  ==================  ============================================================
POST    ``/predict``        predictions of SMILES or graphs, one object for each row
GET     ``/health``         whether the model is loaded, and which it is
GET     ``/metrics``        counts and seconds of the answering process, for Prometheus
GET     ``/openapi.json``   the schema of all this
======  ==================  ============================================================

Requests and answers are `msgspec` structs: they are checked while they are decoded, and the schema
is made from them. A row that cannot be predicted has an ``error`` in its place and does not disturb
the others. Predictions run in threads of their own, so that a large request does not delay
``/health``.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from fdgnn import limits
from fdgnn._version import __version__
from fdgnn.datasets import read_graphs
from fdgnn.exceptions import FDGNNError
from fdgnn.extras import require
from fdgnn.prediction.predictor import Predictor, load_predictor
from fdgnn.texts import printable
from fdgnn.workers import watch_parent

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

logger = logging.getLogger("fdgnn.service")

MODEL_VARIABLE = "FDGNN_SERVICE_MODEL"  # by which workers find the model, with their options
_SECONDS_TO_SEND = 10  # the body of a request
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the histogram of requests

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

    type: Literal["invalid_row"]
    message: str


class PredictResponse(Struct):
    """An object for each row, in the order of the request: its columns, or an error."""

    predictions: list[dict[str, Value | RowError]]
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


class Service:
    """A model that answers requests, and what it counts.

    Counts are changed by the thread of the event loop alone, predictions made by others.

    Parameters
    ----------
    path : path
        The model file.
    coverage : float, optional
        Of conformal prediction sets or intervals, as in ``fdgnn predict``.
    """

    def __init__(self, path: str | os.PathLike[str], coverage: float | None = None) -> None:
        self.name = Path(path).name
        self.predictor = Predictor(load_predictor(path), coverage)
        self.predictor.model.set_params(n_jobs=1)
        self.counts: Counter[str] = Counter()
        self.in_progress = 0
        self.seconds: Counter[float] = Counter()
        self.total_seconds = 0.0

    def predict(self, body: bytes) -> PredictResponse:
        """Return predictions for the JSON of a `PredictRequest`.

        Raises
        ------
        RequestError
            The body is not such a request, or does not fit the model.
        """
        try:
            request = msgspec.json.decode(body, type=PredictRequest)
        except (ValueError, RecursionError) as error:
            raise RequestError(422, "invalid_request", str(error)) from None
        rows = _rows_of(request)
        if limits.MAX_REQUEST_ROWS.is_below(len(rows)):
            what = f"{len(rows)} rows; {limits.MAX_REQUEST_ROWS.in_words}"
            raise RequestError(413, "too_many_rows", what)
        if not rows:
            return PredictResponse([], self.name)
        lines = io.StringIO("".join(json.dumps(row) + "\n" for row in rows))
        vars(lines)["name"] = "the request"  # in messages
        try:
            table = read_graphs(lines, like=self.predictor.model, format="jsonl")
            found = self.predictor.predict(table)
        except (FDGNNError, ValueError) as error:
            raise RequestError(422, "invalid_request", printable(str(error))) from None
        names = [name for name in found.columns if name not in ("row", "error")]
        columns = [found.columns[name] for name in names]
        answers: list[dict[str, Any]] = [
            dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)
        ]
        for reject in found.rejects:
            answers[reject.row] = {"error": RowError("invalid_row", printable(reject.reason))}
        return PredictResponse(answers, self.name)

    def observe(self, seconds: float, status: int) -> None:
        """Count a request."""
        self.counts[f"status {status}"] += 1
        self.total_seconds += seconds
        for bound in _SECONDS:
            self.seconds[bound] += seconds <= bound

    def metrics(self) -> str:
        """Return the counts in the text format of Prometheus."""
        statuses = {k.split()[1]: n for k, n in self.counts.items() if k.startswith("status")}
        n_requests = sum(statuses.values())
        lines = ["# TYPE fdgnn_requests_total counter"]
        lines += [f'fdgnn_requests_total{{status="{s}"}} {n}' for s, n in sorted(statuses.items())]
        for name in ("rows", "invalid_rows"):
            lines += [f"# TYPE fdgnn_{name}_total counter"]
            lines += [f"fdgnn_{name}_total {self.counts[name]}"]
        lines += ["# TYPE fdgnn_requests_in_progress gauge"]
        lines += [f"fdgnn_requests_in_progress {self.in_progress}"]
        lines += ["# TYPE fdgnn_request_seconds histogram"]
        bounds = [*((f"{b:g}", self.seconds[b]) for b in _SECONDS), ("+Inf", n_requests)]
        lines += [f'fdgnn_request_seconds_bucket{{le="{b}"}} {n}' for b, n in bounds]
        lines += [f"fdgnn_request_seconds_sum {self.total_seconds:.6f}"]
        lines += [f"fdgnn_request_seconds_count {n_requests}"]
        return "\n".join(lines) + "\n"


def _rows_of(request: PredictRequest) -> list[dict[str, Any]]:
    """Return the rows of a request as those of a table of JSON lines."""
    if (request.smiles is UNSET) == (request.graphs is UNSET):
        raise RequestError(422, "invalid_request", "give either `smiles` or `graphs`")
    if not isinstance(request.smiles, UnsetType):
        rows: list[dict[str, Any]] = [{"smiles": each} for each in request.smiles]
    else:
        rows = [msgspec.to_builtins(graph) for graph in request.graphs]  # type: ignore[union-attr]
    for name, values in ({} if request.features is UNSET else request.features).items():
        if len(values) != len(rows):
            what = f"features: {name!r} has {len(values)} values, but there are {len(rows)} rows"
            raise RequestError(422, "invalid_request", what)
        for row, value in zip(rows, values, strict=True):
            row.setdefault(name, value)
    return rows


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
        path, coverage = json.loads(os.environ[MODEL_VARIABLE])
        service = Service(path, coverage)
    answering: Service = service

    def answer(content: Any, status: int = 200, headers: Any = None) -> Response:
        body = msgspec.json.encode(content)
        return Response(body, status, headers, media_type="application/json")

    async def predict(request: Request) -> Response:
        body = await _body(request)
        found = await run_in_threadpool(answering.predict, body)
        answering.counts["rows"] += len(found.predictions)
        answering.counts["invalid_rows"] += sum("error" in row for row in found.predictions)
        return answer(found)

    async def health(_: Request) -> Response:
        return answer(Health("ok", answering.name, __version__))

    async def metrics(_: Request) -> Response:
        return Response(answering.metrics(), media_type="text/plain; version=0.0.4")

    async def openapi(_: Request) -> Response:
        return answer(openapi_schema())

    def observed(handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            start = time.perf_counter()
            answering.in_progress += 1
            try:
                response: Response = await handler(request)
            except RequestError as error:
                response = answer(Problem(error.type, str(error)), error.status)  # type: ignore[arg-type]
            except ClientDisconnect:
                response = Response(status_code=499)  # nobody reads it; for the log and metrics
            except Exception:
                logger.exception("request failed")
                response = answer(Problem("internal", "the request failed; see the log"), 500)
            finally:
                answering.in_progress -= 1
            seconds = time.perf_counter() - start
            answering.observe(seconds, response.status_code)
            facts = {"path": request.url.path, "status": response.status_code}
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

    handlers: Any = {404: not_found, 405: not_found}
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
    413: "Too many bytes or rows",
    422: "Not a request that the model can take",
    500: "The service failed",
}


def serve(
    path: str | os.PathLike[str], *, host: str, port: int, n_workers: int, coverage: float | None
) -> None:
    """Serve a model until SIGINT or SIGTERM; requests that have begun are answered first."""
    if not host:
        raise ValueError("`host` is empty; name an address, such as 127.0.0.1")
    uvicorn = require("uvicorn", "serve", "HTTP services")
    service = Service(path, coverage)  # an error comes here, before there are processes
    os.environ[MODEL_VARIABLE] = json.dumps([os.fspath(Path(path).resolve()), coverage])
    app: Any = create_app(service) if n_workers == 1 else "fdgnn.service:create_app"
    uvicorn.run(
        app, factory=n_workers > 1, host=host, port=port, workers=n_workers, log_config=_LOGGING,
        access_log=False, timeout_graceful_shutdown=30, limit_concurrency=1000,
        timeout_worker_healthcheck=60,  # a worker that loads a model on a busy machine answers late
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
