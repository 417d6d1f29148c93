"""The untrained part: drawing layers of recurrent units, and running graphs to fixed points."""

from fdgnn.reservoir.engine import Embedding, contractions, embed, first_drive
from fdgnn.reservoir.weights import DeepReservoir, Layer, ReservoirConfig, draw_reservoir

__all__ = [
    "DeepReservoir",
    "Embedding",
    "Layer",
    "ReservoirConfig",
    "contractions",
    "draw_reservoir",
    "embed",
    "first_drive",
]
