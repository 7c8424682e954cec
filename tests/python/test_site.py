# SPDX-License-Identifier: Apache-2.0
"""The sources of the site. `./dev site` builds it, which takes longer."""

import os
import re
import sys

from c_tools import HEADERS
from conftest import ROOT
from example_tools import run
from py_tools import need_penstock

penstock = need_penstock()

PENSTOCK = os.environ.get("PENSTOCK") or str(ROOT / "build" / "penstock")
TREE = re.compile(r"^```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)^```$", re.M | re.S)


def make(folder):
    """{page without its suffix: text} of all pages."""
    run(sys.executable, ROOT / "tools" / "site", "pages", folder, PENSTOCK, cwd=ROOT)
    return {str(path.relative_to(folder).with_suffix("")): path.read_text()
            for path in folder.rglob("*.md")}


def test_every_page_is_in_the_sidebar_once(tmp_path):
    source = tmp_path / "source"
    pages = make(source)
    listed = [os.path.normpath(os.path.join(os.path.dirname(page), entry))
              for page, text in pages.items()
              for tree in TREE.findall(text) for entry in tree.split()]
    assert sorted(listed) == sorted(pages.keys() - {"index"})
    assert {f"reference/c-api/{header.stem}" for header in HEADERS} < pages.keys()
    assert "<svg" in pages["explanation/architecture"]
    pictures = re.findall(r"\]\(\.\./(pictures/[^)]+)\)", "".join(pages.values()))
    assert pictures and all((source / picture).suffix == ".webp" for picture in pictures)
    assert all((source / picture).is_file() for picture in pictures)


def test_comments_behind_members_are_shown():
    """Doxygen ignores those that start with /* alone."""
    for header in HEADERS:
        assert not re.search(r"[;,] +/\* ", header.read_text()), header.name


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs" / "site" / "python-api.md").read_text()
    shown = set(re.findall(r"^\.\. auto\w+:: penstock\.(\w+)(?:\(\))?$", text, re.M))
    assert shown == set(penstock.__all__) - {"__version__"}
