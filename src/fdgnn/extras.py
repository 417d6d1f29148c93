"""Optional libraries: imported when they are first needed, by one function."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from fdgnn.exceptions import MissingDependencyError

# The packages of each extra, as pyproject.toml lists them (tests/test_extras.py compares them).
# Messages name these packages and not this project: nobody has registered its name on PyPI, so that
# anyone could publish another package there.
PACKAGES = {
    "demo": ("grakel", "tqdm"),
    "interop": ("networkx",),
    "tables": ("pyarrow", "openpyxl"),
    "chem": ("rdkit",),
    "plot": ("matplotlib", "networkx"),
    "cluster": ("distributed", "fsspec"),
    "report": ("jinja2", "networkx", "vl-convert-python"),
    "compare": ("grakel", "torch-geometric"),
    "serve": ("starlette", "uvicorn"),
}


def require(module: str, extra: str, what: str) -> Any:
    """Import an optional library, or raise an error with installation instructions.

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
    library, home = module.split(".")[0], os.environ.get("HOME")
    try:
        Path.home()
    except RuntimeError:  # some libraries look for one; it does not exist, so nothing is read there
        os.environ["HOME"] = "/nonexistent"
    try:
        import_module(library)
        found: ModuleType = import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} need {library}; {install_advice(extra, library)}"
        ) from error
    finally:
        if home is None:
            os.environ.pop("HOME", None)
    return found


def install_advice(extra: str, library: str | None = None) -> str:
    """Return how to install the packages of an extra, as the end of a message.

    PyTorch belongs to no extra (pyproject.toml says why), so that it is named if it is the missing
    `library`.
    """
    packages = (*(["torch"] if library == "torch" else []), *PACKAGES[extra])
    return f"install the extra {extra!r} with: pip install {' '.join(packages)}"
