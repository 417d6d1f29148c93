"""From a file of graphs to a model, and from a model to a file of predictions."""
