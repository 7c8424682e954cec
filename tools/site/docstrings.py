# SPDX-License-Identifier: Apache-2.0
"""An extension of Sphinx: docstrings of the package as reStructuredText, signatures with types.

A docstring of the package is text with tables of two columns: names, and what they mean. Signatures
are those of the source, or of the stub ops.pyi for functions that are made at run time."""

import ast
import functools
import inspect
import pathlib
import re

COLUMNS = re.compile(r"^\S.*?\s{2,}(\S)")
# Aliases that are private to the package, and what they stand for.
ALIASES = {
    "_pipeline.Pipeline": "str | Sequence[Op] | Mapping[str, str | Sequence[Op]]",
    "_subset.Subset": "Sequence[int] | Sequence[bool] | range | slice",
    "Preload": "bool | Callable[[int, int], object]",
    "_remote.StorageOptions": "StorageOptions",
}


def marked(text):
    """Inline markup: `name` is code, other marks are plain text."""
    parts = text.split("`")
    plain = [re.sub(r"([*|\\])", r"\\\1", part) for part in parts[::2]]
    plain = [re.sub(r"_(?=\W|$)|(?=://)", r"\\\g<0>", part) for part in plain]
    code = [f"``{part}``" for part in parts[1::2]]
    return "".join(a + b for a, b in zip(plain, [*code, ""]))


def column(block):
    """Where the second column of a table begins; None for other text."""
    starts = [m.start(1) for line in block if (m := COLUMNS.match(line))]
    indents = [len(line) - len(line.lstrip()) for line in block[1:]]
    if any(indents):
        return min(indent for indent in indents if indent)
    return starts[0] if len(starts) == len(block) else None


def table(block, at):
    """A definition list."""
    lines = []
    for line in block:
        if line[:at].isspace():
            lines.append("    " + marked(line.strip()))
            continue
        fits = len(line) <= at or line[at - 1] == " "
        name, text = (line[:at], line[at:]) if fits else (line, "")
        lines += ["", f"``{name.strip()}``"] + ["    " + marked(text)] * bool(text.strip())
    return [*lines, ""]


def restructured(lines):
    """The lines of a docstring as reStructuredText."""
    made = []
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        rows = block.split("\n")
        at = column(rows)
        if all(row.startswith("    ") for row in rows):
            made += ["::", "", *rows, ""]
        elif at:
            made += table(rows, at)
        else:
            made += [*map(marked, rows), ""]
    return made


@functools.cache
def functions(path):
    """{qualified name: ast of the function} of a source file or a stub."""
    tree = ast.parse(pathlib.Path(path).read_text(encoding="utf-8"))
    found = {}
    for owner in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        name = f"{owner.name}." if owner is not tree else ""
        functions_in = [node for node in owner.body if isinstance(node, ast.FunctionDef)]
        found.update((name + node.name, node) for node in functions_in)
    return found


def source_of(thing):
    """The file with its signature."""
    if thing.__module__ == "penstock.ops":
        import penstock.ops

        return pathlib.Path(penstock.ops.__file__).with_suffix(".pyi")
    return inspect.getsourcefile(thing)


def signature(what, thing):
    """(arguments, result) as the source has them, or None."""
    name = f"{thing.__qualname__}.__init__" if what == "class" else thing.__qualname__
    node = functions(source_of(thing)).get(name)
    if node is None:
        return None
    arguments = ast.unparse(node.args)
    if what in ("class", "method"):
        arguments = re.sub(r"^self(, )?", "", arguments)
    arguments = arguments.removesuffix(", **unknown: Any")
    result = ast.unparse(node.returns) if node.returns and what != "class" else ""
    for alias, meaning in ALIASES.items():
        arguments = re.sub(rf"(?<![\w.]){re.escape(alias)}\b", meaning, arguments)
    return f"({arguments})", "" if result == "None" else result


def on_signature(app, what, name, thing, options, given, result):
    if what not in ("class", "function", "method") or not hasattr(thing, "__qualname__"):
        return None
    if what == "class" and given == "()":  # the page hides the arguments of its constructor
        return None
    return signature(what, thing)


def on_docstring(app, what, name, thing, options, lines):
    lines[:] = restructured(lines)


def on_doctree(app, doctree):
    """Enums of C without a name have none in the table of contents either."""
    from sphinx import addnodes  # the tests of this file run without Sphinx

    for node in doctree.findall(addnodes.desc_signature):
        if node.get("_toc_name", "").startswith("@"):
            node["_toc_name"] = ""


def setup(app):
    app.connect("doctree-read", on_doctree, priority=100)
    app.connect("autodoc-process-signature", on_signature)
    app.connect("autodoc-process-docstring", on_docstring)
    return {"parallel_read_safe": True}
