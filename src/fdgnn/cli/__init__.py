"""The ``fdgnn`` command: thin; each command imports what it needs when it runs."""

from fdgnn.cli import evaluate, fit, inspection, pages, predict
from fdgnn.cli.app import app, main

__all__ = ["app", "evaluate", "fit", "inspection", "main", "pages", "predict"]
