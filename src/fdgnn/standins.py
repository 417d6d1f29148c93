"""Libraries are imported without those of their parts that are slow and not used here.

Some libraries import others for a function that models do not call, and that takes longer than
all the rest. While they are imported, a stand-in is in the place of such a part. It imports the
real one when it is asked for anything. Afterwards it is gone, and the real one is imported when
needed. Of a package that imports much for its other modules, one module can be imported `alone`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


class _StandIn(ModuleType):
    """A module that becomes the real one when somebody asks for what is in it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system's questions
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:  # later it is asked by those who still know it
            _remove_all()
        return getattr(import_module(self.__name__), name)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Keep modules from being imported meanwhile, but for those that are there already.

    A module inside of another one must come after it, and the outermost must be loaded or among
    the names.
    """
    for name in names:
        if name not in sys.modules:
            sys.modules[name] = _StandIn(name)
            _set_in_parent(name, sys.modules[name])
    try:
        yield
    finally:
        _remove_all()


def alone(package: str, name: str) -> ModuleType:
    """Import one module of a package without all that the package itself imports.

    It is the module that others get who import the package later. Where the package has no module
    of this name, which is its own business, the package is given.
    """
    whole = f"{package}.{name}"
    if whole not in sys.modules:
        found = find_spec(package)
        folders = None if found is None else found.submodule_search_locations
        spec = PathFinder.find_spec(whole, folders)
        if spec is None or spec.loader is None:
            return import_module(package)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.setdefault(whole, module)  # others never see half of it
    return import_module(whole)  # which waits, if another thread is at it


def _remove_all() -> None:
    standing = [name for name, module in sys.modules.items() if isinstance(module, _StandIn)]
    for name in standing:
        del sys.modules[name]
        parent, _, own = name.rpartition(".")
        if isinstance(vars(sys.modules.get(parent, sys)).get(own), _StandIn):
            delattr(sys.modules[parent], own)


def _set_in_parent(name: str, module: ModuleType) -> None:
    parent, _, own = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], own, module)
