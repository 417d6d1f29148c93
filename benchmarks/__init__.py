"""Benchmarks: speed, accuracy, and interpretations of the paper."""
