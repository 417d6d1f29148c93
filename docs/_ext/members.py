"""Which members of a class the reference has: ours, without those that only other rooms call."""

from __future__ import annotations

import inspect
from typing import Any

# Methods by which the rooms of the library talk to each other; of an encoder of one's own they are
# the protocol, and so the page of `Encoder` has them.
PLUMBING = (
    "Facts", "answer_for", "answers", "arrays", "attribute", "chances", "check_graphs",
    "check_parameters", "counted", "depth_parameter", "draw", "encode", "expanded_size", "facts",
    "intervals_of", "learn_from_held_out", "mean_score", "members", "n_counted",
    "network_features", "no_features", "penalties", "recipe", "relative_penalty", "restore",
    "sets_of", "share_out_scores", "shared_out", "split", "take_seed",
)  # fmt: skip


def skip(app: Any, what: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn and Python give to a class: it is in their own references."""
    function = member.fget if isinstance(member, property) else member
    home = getattr(inspect.unwrap(function) if callable(function) else function, "__module__", None)
    return True if home is None or not home.startswith("fdgnn") else None


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
