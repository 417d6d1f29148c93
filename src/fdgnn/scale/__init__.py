"""Training on graphs that do not fit in memory, by this machine or by a cluster (docs/how-to/out-of-core.md)."""
