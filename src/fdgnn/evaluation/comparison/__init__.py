"""FDGNN beside its rivals: the same folds, the same nested selection, the same clock.

::

    DIR/compare.json           the rows, written again after each contestant
    DIR/rivals/NAME.jsonl      what a contestant has finished: parts of its selection, then folds
    DIR/rivals/NAME.json       how its last turn ended, and within which limits
    DIR/rivals/NAME.log        what its process said

These files are beside those of an evaluation (`fdgnn.evaluation.rundir`): its networks are FDGNN's
selection. Each contestant runs in a process of its own. If one runs out of time or memory, or
crashes, the others go on.
"""

from fdgnn.evaluation.comparison.runner import compare, compare_study
from fdgnn.evaluation.record import Limits
from fdgnn.evaluation.records import ComparisonRow, Search

__all__ = ["ComparisonRow", "Limits", "Search", "compare", "compare_study"]
