"""Which members of a class the reference has, and what it links to."""

from __future__ import annotations

import inspect
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxRole

import fdgnn

# Methods by which packages call each other. They are what a new encoder implements, so the page of
# `Encoder` has them.
PLUMBING = (
    "Facts", "answer_for", "answers", "arrays", "attribute", "chances", "_check_graphs",
    "check_parameters", "counted", "depth_parameter", "draw", "encode", "expanded_size", "facts",
    "features_of",
    "intervals_of", "learn_from_held_out", "_mean_score", "members", "n_counted",
    "network_features", "penalties", "recipe", "relative_penalty", "restore",
    "sets_of", "share_out_scores", "shared_out", "split", "set_seed",
)  # fmt: skip


def skip(app: Any, what: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn and Python give to a class: it is in their own references."""
    function = member.fget if isinstance(member, property) else member
    home = getattr(inspect.unwrap(function) if callable(function) else function, "__module__", None)
    return True if home is None or not home.startswith("fdgnn") else None


class Name(SphinxRole):
    """What a docstring has in single backticks: a link to a public name, or else code."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Write the text as code, below a reference if it is public."""
        code = nodes.literal(self.rawtext, self.text)
        if self.text not in fdgnn.__all__ or inspect.ismodule(getattr(fdgnn, self.text)):
            return [code], []
        target = {"refdomain": "py", "reftype": "obj", "reftarget": f"fdgnn.{self.text}"}
        return [pending_xref("", code, refdoc=self.env.docname, refexplicit=True, **target)], []


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_role("name", Name())
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
