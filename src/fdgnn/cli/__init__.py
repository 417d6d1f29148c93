"""The ``fdgnn`` command: thin; each command imports what it needs when it runs."""

from fdgnn.cli import evaluation, inspection, own_data
from fdgnn.cli.app import app, main

__all__ = ["app", "evaluation", "inspection", "main", "own_data"]
