"""Pages that are lists of links: on the site, the pages that they link to are their chapters.

Such a page is plain Markdown, which a forge shows as a list. Here its links are also its `toctree`,
so that there is one list and not two.
"""

from __future__ import annotations

import re
from typing import Any

HUBS = {
    "docs/tutorials/README",
    "docs/how-to/README",
    "docs/reference/README",
    "docs/explanation/README",
    "docs/decisions/README",
    "docs/development",
}
LINK = re.compile(r"^(?:[-*|] ?|\d+\. )+\[[^\]]+\]\(([^)#]+)\.md\)", flags=re.MULTILINE)


def add_toctree(app: Any, name: str, source: list[str]) -> None:
    """Append the first link of each item of a list, or of each row of a table, as a toctree."""
    if name in HUBS:
        chapters = "\n".join(LINK.findall(source[0]))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{chapters}\n```\n"


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", add_toctree)
    return {"parallel_read_safe": True}
