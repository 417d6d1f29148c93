"""A portrait of a model and its data: all facts that a page or a plot shows.

A portrait is made once, where the model and the graphs are. `fdgnn.portrait.records` has its
fields, and ``portrait.json`` is its JSON.
"""

from fdgnn.portrait.making import portrait_of_committee, portrait_of_model, portrait_of_study
from fdgnn.portrait.records import Portrait, read_portrait, write_portrait

__all__ = [
    "Portrait",
    "portrait_of_committee",
    "portrait_of_model",
    "portrait_of_study",
    "read_portrait",
    "write_portrait",
]
