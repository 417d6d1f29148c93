"""Optional libraries: imported when they are first needed, by one function."""

from __future__ import annotations

from importlib import import_module
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
        import_module(library)
        found: ModuleType = import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} need {library}; install it with: pip install 'fdgnn[{extra}]'"
        ) from error
    except RuntimeError as error:  # some look for the user's home when they are imported
        raise MissingDependencyError(
            f"{what} need {library}, which cannot be imported here ({error}); if the user has no "
            "home, set the environment variable HOME to a directory"
        ) from error
    return found
