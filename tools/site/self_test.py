# SPDX-License-Identifier: Apache-2.0
"""Small inputs with and without something wrong, for `python3 tools/site self-test`."""

import pathlib
import tempfile
import xml.etree.ElementTree as ElementTree

import check_html
import commands
import comments
import contrast
import docstrings
import links

HEAD = '<html lang="en"><meta name="viewport" content="x"><h1 id="a">A</h1>'
PAGES = {
    "": 0,
    '<a href="#a">x</a><a href="b.html#b">x</a><a href="https://example.org/x">x</a>': 0,
    '<a href="#b">x</a>': 1,
    '<a href="b.html#a">x</a>': 1,
    '<a href="c.html">x</a>': 1,
    '<a href="https://example">x</a>': 1,
    '<a href="ftp://example.org">x</a>': 1,
    '<a href="https://host[:port]">x</a>': 1,
    '<img src="b.html" alt="b">': 0,
    '<img src="b.html">': 1,
    '<img src="c.png" alt="c">': 1,
    '<svg role="img"></svg>': 1,
    '<script src="https://example.org/x.js"></script>': 1,
    '<link rel="stylesheet" href="//example.org/x.css">': 1,
    "<h1>B</h1>": 1,
}
MOVED = {
    "[a](docs/a.md#x)": "[a](a.md#x)",
    "[a](LICENSE) [b](https://example.org) [c](#x)":
        "[a](license.md) [b](https://example.org) [c](#x)",
    "```\n[a](nowhere.md)\n```": "```\n[a](nowhere.md)\n```",
    "[1]: docs/a.md": "[1]: a.md",
    "[`e`](examples/e.py)": "[`e`](examples.md#epy)",
}
TARGETS = {"docs/a.md": "a.md", "LICENSE": "license.md", "examples/e.py": "examples.md#epy"}
COMMAND_TEXTS = {
    "a_b | c": r"a\_b \| c",
    "see 'penstock help s3' and --no-sign": "see `penstock help s3` and `--no-sign`",
    "one\ntwo": "one<br>two",
}
DOCSTRING = """Load *all* of http://x_ .

size   how
       many
ratios of what
a_long_name
       its text

    code
"""
RESTRUCTURED = """Load \\*all\\* of http\\://x\\_ .


``size``
    how
    many

``ratios``
    of what

``a_long_name``
    its text

::

    code
"""


def page_failures():
    for body, expected in PAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.html").write_text(HEAD + body)
            (root / "b.html").write_text(HEAD.replace('"a"', '"b"'))
            found = list(check_html.findings(root))
        if len(found) != expected:
            yield f"{body}: expected {expected} findings, found {found}"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "a.css").write_text("p { background: url('https://example.org/a.png') }")
        found = list(check_html.findings(root))
    if len(found) != 2:
        yield f"a style sheet without pages: expected 2 findings, found {found}"


def link_failures():
    for text, expected in MOVED.items():
        made = links.rewrite(text, "README.md", "index.md", TARGETS)
        if made != expected:
            yield f"{text}: expected {expected}, found {made}"
    try:
        links.rewrite("[a](nowhere.md)", "README.md", "index.md", TARGETS)
        yield "a link to nowhere: expected an error"
    except links.LinkError:
        pass


def contrast_failures():
    if round(contrast.ratio([0, 0, 0], [1, 1, 1]), 2) != 21:
        yield "black on white: expected 21"
    sheet = "body{--a:#767676;--b:var(--a)}body[data-theme=dark]{--a:#000}"
    known = contrast.variables([sheet])
    values = [contrast.value("--b", known[theme]) for theme in contrast.THEMES]
    if values != ["#767676", "#000"]:
        yield f"variables: expected a color for each theme, found {values}"
    for color, expected in (("#767676", 0), ("#777777", 1)):
        rules = f".highlight {{ background: #fff }} .highlight .k {{ color: {color} }}"
        if len(list(contrast.code_findings(rules))) != expected:
            yield f"code in {color}: expected {expected} findings"


def docstring_failures():
    made = "\n".join(docstrings.restructured(DOCSTRING.split("\n"))).strip()
    if made != RESTRUCTURED.strip():
        yield f"docstring: expected {RESTRUCTURED!r}, found {made!r}"


def command_failures():
    for text, expected in COMMAND_TEXTS.items():
        if commands.plain(text) != expected:
            yield f"{text}: expected {expected}, found {commands.plain(text)}"
    option = {"name": "mode", "letter": "m", "argument": "M", "default": "a", "choices": ["a", "b"],
              "required": False, "repeatable": False, "text": "how to"}
    expected = "| `-m, --mode M` | how to (`a`, `b`; default: a) |"
    if commands.option_row(option) != expected:
        yield f"an option: expected {expected}, found {commands.option_row(option)}"


def comment_failures():
    member = ('<memberdef kind="variable"><briefdescription/><detaileddescription>{}'
              '</detaileddescription><location line="{}"/></memberdef>')
    parts = [member.format("", 1), member.format("<para>both</para>", 1), member.format("", 2)]
    tree = ElementTree.fromstring(f"<x><sectiondef>{''.join(parts)}</sectiondef></x>")
    comments.share(tree)
    found = [comments.text(one) for one in tree.iter("memberdef")]
    if found != ["both", "both", ""]:
        yield f"comments: expected one for both members of a line, found {found}"
    for address, expected in (("https://", 1), ("https://host", 1), ("https://example.org", 0)):
        tree = ElementTree.fromstring(f'<x><ulink url="{address}">a</ulink></x>')
        if comments.unlink(tree) != expected or len(tree.findall("ulink")) == expected:
            yield f"comments: {address}: expected {expected} links to change"


def run():
    failures = [*page_failures(), *link_failures(), *contrast_failures(), *docstring_failures(),
                *comment_failures(), *command_failures()]
    n_cases = len(PAGES) + 1 + len(MOVED) + 1 + 9 + len(COMMAND_TEXTS) + 1
    print(*failures, sep="\n", end="\n" if failures else "")
    print(f"{n_cases - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0
