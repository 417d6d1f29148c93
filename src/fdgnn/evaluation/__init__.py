"""Experiments: the paper's protocol and tables, resumable runs, baselines side by side."""
