# SPDX-License-Identifier: Apache-2.0
"""The site: `./dev site` builds it with Sphinx. tools/site puts its pages together."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "build" / "python"), str(ROOT / "tools" / "site")]

project = "penstock"
author = "the penstock authors"
release = re.search(r'PEN_VERSION "([^"]+)"',
                    (ROOT / "include/penstock/version.h").read_text(encoding="utf-8"))[1]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe", "docstrings"]
root_doc = "index"
smartquotes = False
highlight_language = "text"
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]

breathe_projects = {"penstock": str(ROOT / "build" / "site" / "xml")}
breathe_default_project = "penstock"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False
breathe_show_define_initializer = True
breathe_show_enumvalue_initializer = True

autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
c_maximum_signature_line_length = 80
add_module_names = False

# Every reference must have a target, except types of Python and C themselves, and names of types
# that the docstring explains.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(os|typing|collections|types)\..*"),
    ("py:class", r"penstock\._loader\._Sampler"),
    ("py:class", "Box|OnBad"),
    ("py:class", "Sequence|Mapping|Iterable|Iterator|Callable|Any|Literal|AbstractContextManager"),
    ("c:identifier", r"u?int\d+_t|size_t"),
]

html_theme = "furo"
html_title = f"penstock {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "top_of_page_buttons": [],
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#0f6b64", "color-brand-content": "#0f6b64",
        "color-brand-visited": "#5b4b9a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#5ec4ba", "color-brand-content": "#5ec4ba",
        "color-brand-visited": "#b9a6f5",
    },
}
