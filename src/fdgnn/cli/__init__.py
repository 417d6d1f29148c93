"""The ``fdgnn`` command: thin; each command imports what it needs when it runs."""

from fdgnn.cli import compare, evaluate, fit, inspection, pages, predict
from fdgnn.cli.app import app, main

__all__ = ["app", "compare", "evaluate", "fit", "inspection", "main", "pages", "predict"]
