"""Fuzzing: ``make fuzz SECONDS=600``, or ``python -m fuzz``.

`targets` defines what is tested and what must hold; `mutation` generates cases with
`random.Random`; `running` runs them in child processes with limits of time and memory, and counts
the outcomes. Cases that failed are kept in ``tests/cases``, and the tests run them again.
"""
