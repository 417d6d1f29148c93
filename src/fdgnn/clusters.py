"""Clients of Dask clusters: of one that runs somewhere, or of one that is started for the while."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import joblib

from fdgnn.context import Context
from fdgnn.exceptions import StudyError
from fdgnn.extras import require

LOCAL = "local"  # in place of an address: processes of this machine
SECONDS_TO_ANSWER = 10  # for a scheduler, and for its first worker


@contextmanager
def connected(address: str, context: Context, *, n_workers: int = 0) -> Iterator[Any]:
    """Return a client of a cluster with so many workers; raise StudyError if none answers.

    Without a number it need not have any yet: some clusters start workers when there is work.
    """
    distributed = require("distributed", "cluster", "clusters")
    with ExitStack() as closing:
        try:
            given: Any = address
            if address == LOCAL:
                n = joblib.effective_n_jobs(context.n_jobs or -1)
                given = distributed.LocalCluster(
                    n_workers=n,
                    threads_per_worker=1,
                    silence_logs=logging.CRITICAL,  # a worker that is stopped tells it at length
                    dashboard_address=":0",  # any free port: another cluster may have the usual one
                )
                closing.callback(given.close)
            client = distributed.Client(given, timeout=SECONDS_TO_ANSWER)
            closing.callback(client.close)
            if n_workers:
                client.wait_for_workers(n_workers, timeout=SECONDS_TO_ANSWER)
        except (OSError, ValueError, TimeoutError, TypeError) as error:  # the last: no TLS here
            what = "scheduler with workers" if n_workers else "scheduler"
            raise StudyError(f"no Dask {what} answers at {address} ({error})") from error
        yield client
