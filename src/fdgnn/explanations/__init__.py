"""Explanations: what each vertex, each group of vertices and each substructure adds to a score."""

from fdgnn.explanations.fragments import molecule_groups
from fdgnn.explanations.groups import ExplainedGroup, VertexGroup, connected_parts
from fdgnn.explanations.substructures import Substructure, substructures
from fdgnn.explanations.vertices import Explanation, explain

__all__ = [
    "ExplainedGroup",
    "Explanation",
    "Substructure",
    "VertexGroup",
    "connected_parts",
    "explain",
    "molecule_groups",
    "substructures",
]
