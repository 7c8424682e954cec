# SPDX-License-Identifier: Apache-2.0
"""Pages that are made from the headers, the examples and the license."""

import re

EXAMPLES = ("examples/python/*.py", "examples/c/*.c", "examples/*.py")
FILE_COMMENT = re.compile(r"^/\*\* @file\n \* (.*?\.)(?=[ \n])", re.M | re.S)
STATUS = re.compile(r'XX\((\w+), (-?\d+), "([^"]+)"\)')


def fence(language, text):
    marks = "````" if "```" in text else "```"
    return f"{marks}{language}\n{text.rstrip()}\n{marks}\n"


def slug(heading):
    """The anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


# ---- examples


def example_files(root):
    return [path for pattern in EXAMPLES for path in sorted(root.glob(pattern))]


def example_targets(root):
    found = {str(path.relative_to(root)): "examples.md#" + slug(path.name)
             for path in example_files(root)}
    return {**found, "examples/python": "examples.md", "examples/c": "examples.md#programs-in-c",
            "examples": "examples.md"}


def example_page(root):
    groups = ("Programs in Python", "Programs in C", "Making data")
    parts = ["# Examples\n\nThese programs are complete. The tests of penstock run them.\n"]
    for title, pattern in zip(groups, EXAMPLES):
        parts.append(f"## {title}\n")
        for path in sorted(root.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            text = text.replace("# SPDX-License-Identifier: Apache-2.0\n", "", 1)
            text = text.replace("/* SPDX-License-Identifier: Apache-2.0 */\n", "", 1)
            language = "python" if path.suffix == ".py" else "c"
            parts += [f"### {path.name}\n", fence(language, text)]
    return "\n".join(parts)


# ---- headers


def headers(root):
    """{name: (first sentence, text)}, the header of all first."""
    found = {}
    paths = sorted((root / "include" / "penstock").glob("*.h"))
    for path in sorted(paths, key=lambda path: path.name != "penstock.h"):
        text = path.read_text(encoding="utf-8")
        sentence = re.sub(r"\s*\n \* ?", " ", FILE_COMMENT.search(text)[1])
        found[path.name] = (sentence, text)
    return found


def header_targets(root):
    found = {name: f"reference/c-api/{name[:-2]}.md" for name in headers(root)}
    return {**{f"include/penstock/{name}": page for name, page in found.items()},
            "include/penstock": "reference/c-api/index.md"}


def status_table(text):
    rows = [f"| `PEN_{name}` | {value} | {what} |" for name, value, what in STATUS.findall(text)]
    return "\n".join(["| Status | Value | Meaning |", "|---|---|---|", *rows]) + "\n"


def header_pages(root):
    found = headers(root)
    rows = [f"| [`penstock/{name}`]({name[:-2]}.md) | {sentence} |"
            for name, (sentence, _) in found.items()]
    tree = "\n".join(name[:-2] for name in found)
    pages = {"reference/c-api/index.md": "\n".join([
        "# C API\n\nA program includes `penstock/penstock.h`, which includes all other headers. "
        "[Use penstock from C](../../how-to/c.md) is the guide.\n",
        "| Header | What it is for |", "|---|---|", *rows,
        f"\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"])}
    for name, (_, text) in found.items():
        parts = [f"({name[:-2]}_8h)=\n# {name}\n"]  # the label of references by doxygen
        if "PEN_STATUS_MAP" in text:
            parts.append(status_table(text))
        parts.append(f"```{{doxygenfile}} {name}\n```\n")
        pages[f"reference/c-api/{name[:-2]}.md"] = "\n".join(parts)
    return pages


# ---- the license


def license_page(root):
    return "# License\n\n" + fence("text", (root / "LICENSE").read_text(encoding="utf-8"))
