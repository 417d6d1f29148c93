"""The untrained part: drawing layers of recurrent units, and running graphs to fixed points."""

from fdgnn.reservoir.engine import Embedding, contractions, embed, first_drive
from fdgnn.reservoir.weights import (
    Connections,
    DeepReservoir,
    Layer,
    ReservoirConfig,
    draw_reservoir,
    n_inputs,
)

__all__ = [
    "Connections",
    "DeepReservoir",
    "Embedding",
    "Layer",
    "ReservoirConfig",
    "contractions",
    "draw_reservoir",
    "embed",
    "first_drive",
    "n_inputs",
]
