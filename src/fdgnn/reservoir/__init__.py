"""The untrained part: drawing layers of recurrent units, and running graphs to fixed points."""

from fdgnn.reservoir.network import (
    Connections,
    DeepReservoir,
    Embedding,
    Layer,
    ReservoirConfig,
    average_degree,
    contractions,
    draw_reservoir,
    embed,
    first_drive,
    n_inputs,
)

__all__ = [
    "Connections",
    "DeepReservoir",
    "Embedding",
    "Layer",
    "ReservoirConfig",
    "average_degree",
    "contractions",
    "draw_reservoir",
    "embed",
    "first_drive",
    "n_inputs",
]
