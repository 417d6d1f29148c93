"""Explanations: what each vertex, and each substructure, adds to a score."""

from fdgnn.explanations.substructures import Substructure, substructures
from fdgnn.explanations.vertices import Explanation, explain

__all__ = ["Explanation", "Substructure", "explain", "substructures"]
