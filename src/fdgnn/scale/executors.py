"""What is asked of whoever does the work: this machine (`local`), or a Dask cluster (`cluster`).

An executor knows blocks of parts by *handles*. It can read and encode them, add up a step over all
of their parts, and collect what a function says of each part. What is asked is the same for both,
and so is the answer, but for the order of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from fdgnn.datasets.rows import Reject
from fdgnn.encoders import Encoder
from fdgnn.linear.blocks import SamplePart, Step, Totals, added
from fdgnn.scale.coding import Coding
from fdgnn.scale.parts import (
    Block,
    ParsedPart,
    Parts,
    PartTargets,
    Report,
    encode_block,
    load_answers,
    load_encoded,
    load_parsed,
    load_rejects,
)
from fdgnn.scale.shards import ShardRequest
from fdgnn.threads import one_blas_thread

Result = TypeVar("Result")
Found = TypeVar("Found")


class Loader(Protocol):
    """How a part is brought into the form that a step takes."""

    kept: ClassVar[bool]  # whether loaded parts are kept in memory, as far as there is some

    def load(self, part: Any) -> Any:
        """Load a part from its file, or take it as it is; a loaded part stays as it is."""


@dataclass(frozen=True)
class AsSamples:
    """Encoded parts, with targets and folds as the solver takes them."""

    coding: Coding
    kept: ClassVar[bool] = True

    def load(self, part: Any) -> SamplePart:
        """Load an encoded part."""
        if isinstance(part, SamplePart):
            return part
        return self.coding.samples(load_encoded(part) if isinstance(part, Path) else part)


@dataclass(frozen=True)
class AsGraphs:
    """Parts as they were read: graphs take more memory than what is made of them."""

    kept: ClassVar[bool] = False

    def load(self, part: Any) -> ParsedPart:
        """Load a part."""
        return load_parsed(part) if isinstance(part, Path) else part


@dataclass(frozen=True)
class AsTargets:
    """What is known of parts beside the graphs."""

    kept: ClassVar[bool] = False

    def load(self, part: Any) -> PartTargets:
        """Load the targets of a part."""
        return load_answers(part) if isinstance(part, Path) else part.answers


@dataclass(frozen=True)
class AsRejects:
    """Rejected rows of parts."""

    kept: ClassVar[bool] = False

    def load(self, part: Any) -> tuple[Reject, ...]:
        """Load the rejected rows of a part."""
        rejects: tuple[Reject, ...] = load_rejects(part) if isinstance(part, Path) else part.rejects
        return rejects


Tell = Callable[[int, int], None]  # is called with steps that are done, and systems left
# What is done in one place with what was collected there, by so many threads.
Work = Callable[[Sequence[Found], int | None, Tell], Result]


class Watch(Protocol):
    """Somebody who is told how far reading is."""

    def block(self, report: Report) -> None:
        """Hear what is said of a block that was read."""

    def rows(self, n_rows: int) -> None:
        """Hear how many rows were read until now."""


class Executor(Protocol):
    """Somebody who does the work."""

    solver_bytes: int | None  # memory of this process for a solver, beside parts

    @property
    def n_workers(self) -> int:
        """How many do the work."""

    @property
    def n_places(self) -> int:
        """In how many places something can be done that cannot be cut into parts."""

    def parse(self, asked: ShardRequest, blocks: Sequence[Block], watch: Watch) -> list[Any]:
        """Read blocks; gives their handles."""

    def encode(self, handles: Sequence[Any], encoder: Encoder, name: str) -> list[Any]:
        """Encode blocks by an encoder with sparse features; gives their handles."""

    def total(self, step: Any, handles: Sequence[Any], loader: Loader) -> Totals:
        """Add up a step over all parts."""

    def gather(
        self, function: Callable[[Any], Result], handles: Sequence[Any], loader: Loader
    ) -> list[Result]:
        """Collect what a function says of each part, in their order."""

    def whole(
        self,
        function: Callable[[Any], Found],
        handles: Sequence[Any],
        loader: Loader,
        works: Sequence[Work[Found, Result]],
        tell: Tell,
    ) -> list[Result]:
        """Collect what a function says of each part, and do each work with all of that."""


@dataclass(frozen=True)
class ExecutedPasses:
    """Parts of an executor, as a solver knows them."""

    executor: Executor
    handles: Sequence[Any]
    loader: Loader
    n_columns: int

    def total(self, step: Step) -> Totals:
        """Go over all parts, and add up what the step says."""
        return self.executor.total(step, self.handles, self.loader)

    def gather(self, function: Callable[[SamplePart], Result]) -> list[Result]:
        """Collect what a function says of each part."""
        return self.executor.gather(function, self.handles, self.loader)


@dataclass(frozen=True, eq=False)
class TrainingParts:
    """Blocks of graphs, who works on them, and how their targets are coded."""

    executor: Executor
    handles: Sequence[Any]
    coding: Coding


# ---------------------------------------------------------------------- one block


def encode_parts(encoder: Encoder, folder: Path | None, name: str, parts: Parts) -> Parts:
    """Encode a block, as a function of its parts alone."""
    with one_blas_thread():
        return encode_block(parts, encoder, folder, name)


def bytes_of_arrays(part: Sequence[Any]) -> int:
    """Memory of the arrays of a part."""
    return sum(getattr(array, "nbytes", 0) for array in part)


def loaded_of(loader: Loader, parts: Parts) -> Parts:
    """Load the parts of one block."""
    return Parts([loader.load(part) for part in (*parts.held, *parts.files)])


def total_of(step: Any, loader: Loader, parts: Parts) -> Totals:
    """Add up the parts of one block."""
    with one_blas_thread():
        return added(step, map(loader.load, [*parts.held, *parts.files]))


def gathered_of(function: Callable[[Any], Result], loader: Loader, parts: Parts) -> list[Result]:
    """Collect what a function says of each part of one block."""
    with one_blas_thread():
        return [function(loader.load(part)) for part in (*parts.held, *parts.files)]
