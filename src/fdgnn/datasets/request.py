"""What a user asks of `read_graphs`, checked, and joined with a model's reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from fdgnn.graphs.reading import ArcUse, Atoms, Reading, Vertex

VertexChoice = Vertex | Literal["auto"]
ArcLabels = ArcUse | Literal["auto"]

CHOICES = {
    "vertex": ("auto", *get_args(Vertex)),
    "arc_labels": ("auto", *get_args(ArcUse)),
    "atoms": (None, *get_args(Atoms)),
}
UNDECIDED = (None, "auto", ())


@dataclass(frozen=True)
class ReadRequest:
    """The arguments of `read_graphs` that say what to read; `like` is a `Reading`."""

    target: str | None = None
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

    @property
    def attributes(self) -> list[str] | None:
        """The attributes of vertices to read, if they are given."""
        names = self.vertex_attributes
        return None if names is None else [names] if isinstance(names, str) else list(names)

    def checked(self) -> ReadRequest:
        """Check the arguments, and replace what is undecided by what `like` says."""
        for name, allowed in CHOICES.items():
            check_choice(name, getattr(self, name), allowed)
        if self.like is None:
            return self
        self._check_agreement(self.like)
        return self._read_like(self.like)

    def _check_agreement(self, known: Reading) -> None:
        asked = {
            name: getattr(self, name)
            for name in ("vertex", "arc_labels", "atoms", "directed", "edge_attribute")
        } | {"vertex_attributes": tuple(self.attributes or ())}
        for name, value in asked.items():
            if value not in UNDECIDED and value != getattr(known, name):
                raise ValueError(
                    f"`{name}` is {value!r}, but the model's training data was read with "
                    f"{getattr(known, name)!r}; leave `{name}` out"
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
            directed=known.directed if known.direction_given else None,
            **names,
        )


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise ValueError if an argument has none of the allowed values."""
    if value not in allowed:
        names = ", ".join(str(choice) for choice in allowed if choice is not None)
        raise ValueError(f"{name}={value!r}: expected one of {names}")


def reading_of(like: Any) -> Reading | None:
    """Find the reading of a fitted model; a `Reading` is one already.

    A model that was fitted on graphs from no file has none.
    """
    if like is None or isinstance(like, Reading):
        return like
    like = getattr(like, "best_estimator_", like)  # of a search
    if not hasattr(like, "reading_"):
        raise ValueError(
            f"like is a {type(like).__name__} without a reading; give a fitted model or a Reading"
        )
    found = like.reading_
    if not isinstance(found, Reading | None):
        raise ValueError(f"the model's reading_ is a {type(found).__name__}, expected a Reading")
    return found
