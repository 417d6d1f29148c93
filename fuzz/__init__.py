"""A search for input that hurts: ``make fuzz SECONDS=600``, or ``python -m fuzz``.

`targets` says what is tried and what must hold; `mutation` makes the cases, with `random.Random`;
`running` runs them in child processes with limits of time and memory and counts what happened.
Cases that were found are kept in ``tests/cases``, and the tests run them again.
"""
