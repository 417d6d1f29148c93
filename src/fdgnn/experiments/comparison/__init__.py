"""FDGNN beside its rivals: the same folds, the same nested selection, the same clock.

::

    DIR/compare.json           the rows, written anew after each contestant
    DIR/rivals/NAME.jsonl      what a contestant has finished: parts of its selection, then folds
    DIR/rivals/NAME.json       how its last turn ended, and within which limits
    DIR/rivals/NAME.log        what its process said

beside the files of `fdgnn evaluate` (`fdgnn.experiments.rundir`), whose networks are FDGNN's
selection. Each contestant runs in a process of its own, which may run out of time or memory, or
crash, without harm to the others.
"""

from fdgnn.experiments.comparison.contest import Search
from fdgnn.experiments.comparison.runner import Limits, compare, compare_study

__all__ = ["Limits", "Search", "compare", "compare_study"]
