"""Hyperparameter search, splits, and what nested cross-validation says."""
