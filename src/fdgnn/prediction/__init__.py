"""Predictions and explanations of a table of graphs, written to files."""
