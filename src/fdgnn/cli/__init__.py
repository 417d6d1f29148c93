"""The ``fdgnn`` command: thin; each command imports what it needs when it runs."""

from fdgnn.cli import (
    comparison,
    evaluation,
    fitting,
    inspection,
    installation,
    playing,
    prediction,
    reporting,
    serving,
)
from fdgnn.cli.app import app, main

__all__ = [
    "app",
    "comparison",
    "evaluation",
    "fitting",
    "inspection",
    "installation",
    "main",
    "playing",
    "prediction",
    "reporting",
    "serving",
]
