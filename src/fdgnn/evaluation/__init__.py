"""Experiments: the paper's protocol and tables, resumable runs, rivals side by side."""
