"""What a user asks of `read_graphs`, checked, and joined with a model's reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from fdgnn.graphs.reading import (
    ArcUse,
    Atoms,
    Reading,
    Standardize,
    Vertex,
    check_choice,
)

VertexChoice = Vertex | Literal["auto"]
ArcLabels = ArcUse | Literal["auto"]

CHOICES = {
    "vertex": ("auto", *get_args(Vertex)),
    "arc_labels": ("auto", *get_args(ArcUse)),
    "atoms": (None, *get_args(Atoms)),
    "standardize": (None, *get_args(Standardize)),
    "stereo": (None, False, True),
}
UNDECIDED = (None, "auto", ())


@dataclass(frozen=True)
class ReadRequest:
    """The arguments of `read_graphs` that say what to read; `like` is a `Reading`."""

    target: str | Sequence[str] | None = None  # a list of names: several targets
    numeric: bool = False
    id_column: str | None = None
    smiles_column: str | None = None
    vertex: VertexChoice = "auto"
    vertex_attributes: str | Sequence[str] | None = None
    edge_attribute: str | None = None
    arc_labels: ArcLabels = "auto"
    atoms: Atoms | None = None
    directed: bool | None = None
    like: Reading | None = None
    columns: tuple[str, ...] = ()
    standardize: Standardize | None = None
    stereo: bool | None = None
    descriptors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # descriptors that are categories, whatever they look like

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of all targets."""
        if self.target is None:
            return ()
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)

    @property
    def has_several(self) -> bool:
        """Whether targets are columns of a table, some of whose values may be missing."""
        return self.target is not None and not isinstance(self.target, str)

    @property
    def described_by(self) -> tuple[str, ...]:
        """All columns that are descriptors."""
        if self.like is not None:
            return tuple(name for name, _ in self.like.descriptors)
        return tuple(dict.fromkeys((*self.descriptors, *self.categories)))

    @property
    def attributes(self) -> list[str] | None:
        """The attributes of vertices to read, if they are given."""
        names = self.vertex_attributes
        return None if names is None else [names] if isinstance(names, str) else list(names)

    def checked(self) -> ReadRequest:
        """Check the arguments, and replace what is undecided by what `like` says."""
        for name, allowed in CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        twice = [name for i, name in enumerate(self.targets) if name in self.targets[:i]]
        if twice:
            raise ValueError(f"`target` names {twice[0]!r} twice; name each column once")
        both = [name for name in self.targets if name in self.described_by]
        if both:
            raise ValueError(
                f"{both[0]!r} is a target and one of the `descriptors`; a model that knows the "
                "answer learns nothing"
            )
        if self.like is None:
            return self
        self._check_agreement(self.like)
        return self._read_like(self.like)

    def _check_agreement(self, known: Reading) -> None:
        names = (
            "vertex", "arc_labels", "atoms", "directed", "edge_attribute", "standardize", "stereo",
        )  # fmt: skip
        asked = {name: getattr(self, name) for name in names} | {
            "vertex_attributes": tuple(self.attributes or ())
        }
        for name, value in asked.items():
            if value not in UNDECIDED and value != getattr(known, name):
                raise ValueError(
                    f"`{name}` is {value!r}, but the model's training data was read with "
                    f"{getattr(known, name)!r}; leave `{name}` out"
                )
        unknown = {*self.descriptors, *self.categories} - set(self.described_by)
        if unknown:
            raise ValueError(
                f"`descriptors` has {min(unknown)!r}, which the model was not fitted with; leave "
                "`descriptors` out: the model knows its own"
            )
        if self.smiles_column is not None and known.source != "molecules":
            raise ValueError(
                f"`smiles_column` is {self.smiles_column!r}, but the model's training data was "
                "not read from SMILES; leave `smiles_column` out"
            )

    def _read_like(self, known: Reading) -> ReadRequest:
        # The names of columns and attributes are those of one source; another one has its own.
        names: dict[str, Any] = {}
        if known.source == "networks":
            names = {
                "vertex_attributes": known.vertex_attributes,
                "edge_attribute": known.edge_attribute,
            }
        return replace(
            self,
            vertex=known.vertex,
            arc_labels=known.arc_labels,
            atoms=known.atoms,
            standardize=known.standardize,
            stereo=known.stereo,
            directed=known.directed if known.direction_given else None,
            **names,
        )
