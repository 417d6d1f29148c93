"""Properties that are computed once, without a lock.

On Python 3.11, `functools.cached_property` holds one lock for each property of a class. A process
that is forked while another thread holds it waits forever. Python 3.12 removed the lock; for 3.11
this does the same. Two threads may then compute a value at the same time, and one of the two equal
values is kept.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - it replaces functools' own
        """A property that is computed once for each instance."""

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


__all__ = ["cached_property"]
