"""Optional libraries: imported when they are first needed, by one function."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from fdgnn.exceptions import MissingDependencyError


def require(module: str, extra: str, what: str) -> Any:
    """Import an optional library, or raise an error that says how to install it.

    Parameters
    ----------
    module : str
        The module to import, for instance ``"pyarrow.parquet"``.
    extra : str
        The extra of this package that installs it.
    what : str
        What needs the library, as the beginning of a sentence: ``"Parquet files"``.

    Raises
    ------
    MissingDependencyError
        The library is not installed, or cannot be imported.
    """
    library = module.split(".")[0]
    try:
        with _some_home():
            import_module(library)
            found: ModuleType = import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} need {library}; install it with: pip install 'fdgnn[{extra}]'"
        ) from error
    return found


@contextmanager
def _some_home() -> Iterator[None]:
    """Let libraries that look for the user's home find one, where there is none.

    Vega-Altair does when it is imported, for example data that nobody asked for. The directory
    does not exist, so that nothing is read from it.
    """
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/nonexistent"
        try:
            yield
        finally:
            del os.environ["HOME"]
    else:
        yield
