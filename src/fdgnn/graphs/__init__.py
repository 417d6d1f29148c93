"""Graphs, batches of graphs, and the conversions into them."""

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.graphs.batch import Graph, GraphBatch

__all__ = ["Array", "Floats", "Graph", "GraphBatch", "Ints"]
