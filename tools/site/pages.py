# SPDX-License-Identifier: Apache-2.0
"""The sources of the site, put together below build/site/source.

The Markdown of the repository is the source: README.md is the home page, and docs/README.md has the
order of the pages. Pages that exist on the site alone are made from the program's help, the headers
and the examples."""

import html
import pathlib
import re
import shutil

import commands
import generated
import links

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = ROOT / "docs" / "site"
DECISIONS = "docs/explanation/adr/README.md"
RENAMED = {"README.md": "index.md", "docs/README.md": "contents.md", "NEWS.md": "news.md",
           "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md",
           DECISIONS: "explanation/adr/index.md"}
PYTHON_API = "reference/python-api.md"
PROJECT = ("news", "contributing", "security", "license")
# Section of docs/README.md, page, and the row for it: title and what it has. Without the latter the
# row exists, and gets a link.
SITE_ONLY = (
    ("How-to guides", "examples", "Examples", "run complete programs for training and evaluation"),
    ("Reference", "reference/cli", "`penstock help COMMAND`", None),
    ("Reference", "reference/python-api", "Python API", "every class and function, from the code"),
    ("Reference", "reference/c-api/index", "C API", "every function and struct of the headers"),
)
SECTION = re.compile(r"^## ([\w-]+(?: \w+)?)[^\n]*\n(.*?)(?=^## |\Z)", re.M | re.S)
PICTURE = re.compile(r"^!\[([^\]]*)\]\(([^)]+\.svg)\)$", re.M)


def documents():
    """The Markdown files of the site, as paths in the repository."""
    found = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))
             if OWN not in path.parents]
    return [*found, *(name for name in RENAMED if "/" not in name)]


def photos():
    """Pictures that are no drawings, as paths in the repository."""
    return [str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "pictures").glob("*.webp")]


def page_of(file):
    return RENAMED.get(file) or file.removeprefix("docs/")


def targets():
    """{path in the repository: page} for all that a link may point to."""
    pages = {file: page_of(file) for file in documents()}
    pages["LICENSE"] = "license.md"
    pages.update((file, page_of(file)) for file in photos())
    pages["docs/explanation/adr"] = page_of(DECISIONS)
    pages.update(generated.example_targets(ROOT))
    pages.update(generated.header_targets(ROOT))
    return pages


def sections(contents):
    """[(name, [page])] of the tables in the page of contents. The pages about the project have a
    section of their own."""
    found = []
    for name, body in SECTION.findall(contents):
        pages = [target.removesuffix(".md") for _, target, _ in links.INLINE.findall(body)]
        found.append((name, [page for page in pages if page not in PROJECT]))
    return found


def toctree(caption, pages):
    lines = "\n".join(pages)
    title = f":caption: {caption}\n" if caption else ""
    return f"```{{toctree}}\n{title}:hidden:\n:maxdepth: 1\n\n{lines}\n```\n"


def with_rows(contents):
    """docs/README.md with a row for each page that exists on the site alone."""
    def add(match):
        text, rows = match[0].rstrip("\n"), []
        for name, page, title, what in SITE_ONLY:
            if name == match[1] and what:
                rows.append(f"| [{title}]({page}.md) | {what} |")
            elif name == match[1]:
                text = text.replace(f"| {title} |", f"| [{title}]({page}.md) |")
        return "\n".join([text, *rows]) + "\n\n"

    return SECTION.sub(add, contents)


def inline_pictures(text, folder):
    """Pictures as part of the page, so that their colors follow the theme."""
    def picture(match):
        svg = (folder / match[2]).read_text(encoding="utf-8").strip()
        svg = re.sub(r"<title>.*?</title>", "", svg, count=1)
        label = html.escape(" ".join(match[1].split()))
        svg = svg.replace("<svg ", f'<svg aria-label="{label}" ', 1)
        kind = "chart" if "records/" in match[2] else "picture"
        return f'```{{raw}} html\n<figure class="{kind}">{svg}</figure>\n```'

    return PICTURE.sub(picture, text)


def make_page(file, pages):
    text = (ROOT / file).read_text(encoding="utf-8")
    text = inline_pictures(text, (ROOT / file).parent)
    text = links.rewrite(text, file, page_of(file), pages)
    text = re.sub(r"^```(\w+) \w+$", r"```\1", text, flags=re.M)  # "python s3" is for the tests
    text = re.sub(r"^```csv$", "```text", text, flags=re.M)  # which Sphinx does not know
    if file == "docs/README.md":
        text = with_rows(text)
    if file == DECISIONS:
        listed = [page for _, pages_of_section in sections(text) for page in pages_of_section]
        text += "\n" + toctree("", listed)
    if file == "README.md":
        trees = [toctree(*section) for section in sections(make_page("docs/README.md", pages))]
        text += "\n" + "\n".join([toctree("Start", ["contents"]), *trees,
                                  toctree("Project", PROJECT)])
    return text


def write(out, program):
    """Make all pages below the folder `out`."""
    shutil.rmtree(out, ignore_errors=True)
    pages = targets()
    texts = {page_of(file): make_page(file, pages) for file in documents()}
    texts["license.md"] = generated.license_page(ROOT)
    texts["examples.md"] = generated.example_page(ROOT)
    texts["reference/cli.md"] = commands.page(program)
    texts[PYTHON_API] = links.rewrite(
        (OWN / "python-api.md").read_text(encoding="utf-8"), "docs/site/python-api.md", PYTHON_API,
        pages)
    texts.update(generated.header_pages(ROOT))
    for page, text in texts.items():
        (out / page).parent.mkdir(parents=True, exist_ok=True)
        (out / page).write_text(text, encoding="utf-8")
    for file in photos():
        (out / page_of(file)).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, out / page_of(file))
    return len(texts)
