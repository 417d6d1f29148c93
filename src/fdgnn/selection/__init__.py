"""Choosing hyper-parameters: folds, scores of networks, and `FDGNNSearchCV`."""
