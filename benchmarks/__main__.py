"""``python -m benchmarks``: the engine's table."""

from benchmarks.engine import main

main()
