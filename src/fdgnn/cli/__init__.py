"""The ``fdgnn`` command: thin; each command imports what it needs when it runs."""

from fdgnn.cli import comparison, evaluation, inspection, own_data, reporting
from fdgnn.cli.app import app, main

__all__ = ["app", "comparison", "evaluation", "inspection", "main", "own_data", "reporting"]
