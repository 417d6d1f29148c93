"""How `make docs` builds the site: Sphinx reads the Markdown of the whole checkout, from its root.

The source folder is the root, so that a link such as ``../results/README.md`` leads to the same
page on the site as on a forge. Nothing is fetched, neither to build the site nor to read it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from members import PLUMBING

from fdgnn import __version__

project = "fdgnn"
copyright = "the fdgnn developers, BSD-3-Clause"
release = version = __version__
root_doc = "docs/index"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "commands",
    "hubs",
    "members",
    "playground_page",
]

include_patterns = [
    "docs/**", "results/**", "SECURITY.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "RELEASING.md",
    "CHANGELOG.md",
]  # fmt: skip
exclude_patterns = ["docs/_*", "results/beyond/template.md", ".*", "site", "src", "tests"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# An absolute path, since autosummary looks for others below the root.
templates_path = [str(Path(__file__).parent / "_templates")]

# Markdown as forges render it; anchors of headings are those of forges, too.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# What is not found is an error. Types in docstrings are words, not references.
nitpicky = True
nitpick_ignore = [("py:class", "fdgnn.records.Record")]  # the base of `Encoder.Facts`, not public
autodoc_typehints = "none"
default_role = "name"  # of `members`: in a docstring, `name` is a link if it is a public one
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autosummary_context = {"plumbing": PLUMBING}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Prompts and printed lines stay behind when an example is copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "fdgnn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]  # index.html at the top of the site, which leads to the front page
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "fdgnn"},
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
}
html_sidebars = {"docs/index": [], "docs/gallery": []}
html_context = {"default_mode": "auto"}
