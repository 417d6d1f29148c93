"""Training on graphs that do not fit in memory (docs/how-to/out-of-core.md)."""
