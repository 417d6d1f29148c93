"""Training on graphs that do not fit in memory, by this machine or by a cluster (docs/scale.md)."""
