"""Everything compiled by numba: arrays in, arrays out; no classes, no checks, no randomness."""
