"""Graphs, batches of graphs, and the conversions into them."""

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.graph import Graph
from fdgnn.schema import InputSchema

__all__ = ["Array", "Floats", "Graph", "GraphBatch", "InputSchema", "Ints"]
