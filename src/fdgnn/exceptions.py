"""Every error and warning the library raises on purpose.

::

    FDGNNError
    ├── GraphError (ValueError)                 a graph that cannot be used as it is
    │   └── UnknownLabelError                    a vertex label that the model does not know
    ├── FeatureError (ValueError)               invalid features of an encoder
    ├── DatasetError
    │   ├── DatasetNotFoundError (LookupError)  no such name, file or folder
    │   ├── DatasetFormatError (ValueError)     the file is there but cannot be right
    │   ├── UnsafeArchiveError                  a zip that leaves its folder or explodes
    │   └── DownloadError (OSError)             the download failed
    ├── StudyError
    │   └── RunMismatchError                    a run directory made with other settings
    ├── ModelFileError (ValueError)             not a model file, or one that is damaged
    │   └── ModelVersionError                   one that this version cannot read
    ├── PlaygroundError (ValueError)            a model or graphs that a page cannot hold or run
    ├── MissingDependencyError (ImportError)    an extra is not installed
    └── KernelError (ImportError)               the compiled kernels are missing, old or wrong

    UserWarning
    └── FDGNNWarning
        ├── ConvergenceWarning                  states of some graphs did not converge
        ├── SaturationWarning                   vertex features so large that states hardly differ
        ├── UnknownLabelWarning                 labels that no training graph has
        ├── OutOfDomainWarning                  graphs about which a model knows nothing
        ├── ClassImbalanceWarning               a class so rare that accuracy is not informative
        ├── InvalidGraphWarning                 graphs of a list that cannot be used
        └── UnusedDataWarning                   something that graphs carry and nobody reads

Each message states what is wrong, in which graph or file, what was found, and what to do.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping


class FDGNNError(Exception):
    """Base of all errors of this library."""


class GraphError(FDGNNError, ValueError):
    """A graph that cannot be used as it is.

    Attributes
    ----------
    reason : str
        What is wrong with the graph, without its position.
    graph : int or None
        The graph's position in the list or batch, where it is known.
    """

    def __init__(self, reason: str, graph: int | None = None) -> None:
        super().__init__(reason, graph)
        self.reason, self.graph = reason, graph

    def __str__(self) -> str:
        return self.reason if self.graph is None else f"graph {self.graph}: {self.reason}"


class UnknownLabelError(GraphError):
    """A vertex label that was not among the labels seen during fit."""


class FeatureError(FDGNNError, ValueError):
    """An encoder gave features that no readout can be trained on."""


class DatasetError(FDGNNError):
    """Base of all errors about files of graphs."""


class DatasetNotFoundError(DatasetError, LookupError):
    """No dataset, file or folder has the given name."""


class DatasetFormatError(DatasetError, ValueError):
    """The files are there, but they are truncated or contradict each other."""


class UnsafeArchiveError(DatasetError):
    """A zip archive with members outside its folder, or that is too large when unpacked."""


class DownloadError(DatasetError, OSError):
    """The download failed, was switched off, or was too large."""


class StudyError(FDGNNError):
    """Base of all errors about run directories."""


class RunMismatchError(StudyError):
    """The run directory holds a run with other settings."""


class ModelFileError(FDGNNError, ValueError):
    """The file is not a model file, or it is truncated, altered or inconsistent."""


class ModelVersionError(ModelFileError):
    """The model file needs a newer version of the library, or another one of NumPy."""


class PlaygroundError(FDGNNError, ValueError):
    """A model that a page cannot run, or that is too large for it."""


class MissingDependencyError(FDGNNError, ImportError):
    """An optional library is not installed."""


class KernelError(FDGNNError, ImportError):
    """The compiled kernels are missing, are older than their sources, or give wrong results."""


class FDGNNWarning(UserWarning):
    """Base of all warnings of this library."""


class ConvergenceWarning(FDGNNWarning):
    """States of some graphs did not converge within `max_iter` iterations."""


class SaturationWarning(FDGNNWarning):
    """Vertex features are so large that the states of a reservoir hardly depend on them."""


class UnknownLabelWarning(FDGNNWarning):
    """Some graphs have labels of vertices or edges that no training graph has."""


class OutOfDomainWarning(FDGNNWarning):
    """Some graphs have nothing in common with the training graphs."""


class ClassImbalanceWarning(FDGNNWarning):
    """A class has so few of the graphs that accuracy is not informative."""


class InvalidGraphWarning(FDGNNWarning):
    """Some graphs of a list cannot be used, and have no answer."""


class UnusedDataWarning(FDGNNWarning):
    """Graphs carry something that is not read."""


_LIBRARIES = ("fdgnn.", "sklearn.", "joblib.", "contextlib")


def frames_of_libraries() -> int:
    """Count the frames between the caller of this function and the user's code.

    It is for the `stacklevel` of warnings, so that they show the line of the user's own code.
    """
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_LIBRARIES):
        frame, count = frame.f_back, count + 1
    return count


def warn_unused(where: str, remedies: Mapping[str, str]) -> None:
    """Warn once of all that is present in some graphs and not used.

    Parameters
    ----------
    where : str
        The file, or the kind of graphs.
    remedies : mapping
        What is present, and the options that use it or leave it out without a warning.
    """
    if remedies:
        found = "; ".join(f"{what} are not used: {remedy}" for what, remedy in remedies.items())
        warnings.warn(f"{where}: {found}", UnusedDataWarning, stacklevel=frames_of_libraries())
