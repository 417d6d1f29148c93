"""Explanations: what each vertex, each group of vertices and each substructure adds to a score."""

from fdgnn.explanations.attributions import Explanation, explain, has_attributions
from fdgnn.explanations.counterfactuals import Counterfactual, counterfactuals
from fdgnn.explanations.groups import ExplainedGroup, VertexGroup, connected_parts, molecule_groups
from fdgnn.explanations.substructures import Substructure, substructures

__all__ = [
    "Counterfactual",
    "ExplainedGroup",
    "Explanation",
    "Substructure",
    "VertexGroup",
    "connected_parts",
    "counterfactuals",
    "explain",
    "has_attributions",
    "molecule_groups",
    "substructures",
]
