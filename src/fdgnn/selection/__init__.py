"""Hyperparameter search, splits, and nested cross-validation."""
