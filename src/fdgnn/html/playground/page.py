"""From content to one HTML file in which the model runs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from fdgnn.arrays import Array
from fdgnn.exceptions import PlaygroundError
from fdgnn.html.page import base_style, early_script, joined_script, markup, policy, templates
from fdgnn.html.playground.packing import packed
from fdgnn.html.playground.records import PageContent

LARGEST = 3_000_000  # bytes of a page
_HERE = Path(__file__).parent.parent / "templates"
_WORKER = "worker-src blob:; "  # the page's own script runs in a worker, too


def render(content: PageContent, arrays: Mapping[str, Array], summary: str) -> bytes:
    """Give the page.

    Raises
    ------
    PlaygroundError
        It would be larger than a page may be.
    """
    scripts = {"early": early_script(), "page": joined_script("playground.js")}
    html: str = (
        templates()
        .get_template("playground.html.j2")
        .render(
            title=content.title,
            summary=summary,
            version=content.version,
            training=content.training is not None,
            policy=policy(scripts.values(), _WORKER),
            style=markup(base_style() + _style()),
            data=packed(content, arrays),
            worker=markup(joined_script("worker.js")),
            scripts={name: markup(text) for name, text in scripts.items()},
        )
    )
    page = html.encode("utf-8", errors="replace")
    if len(page) > LARGEST:
        raise PlaygroundError(
            f"the page would have {len(page) / 1e6:.1f} MB, more than {LARGEST // 1_000_000}: "
            "the model is too large; fit it to fewer graphs, with readout='linear', or with fewer "
            "WL features (n_features)"
        )
    return page


@functools.cache
def _style() -> str:
    return (_HERE / "playground.css").read_text(encoding="utf-8")
