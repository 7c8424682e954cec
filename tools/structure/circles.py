# SPDX-License-Identifier: Apache-2.0
"""Circles: files that include, call or import each other, directly or through others.

An include in x.c, x.h or x_impl.h counts for the three of them. A call is every use of the name of
a function that another file defines.
"""

import ast
import os
import re

from structure.source import blank, definitions, includes, unit

WORD = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")


def include_graph(tree):
    graph = {}
    for path, text in tree.texts.items():
        if not path.endswith((".c", ".h")):
            continue
        top = path.split("/")[0]
        for _, target, angled in includes(text):
            for base in (os.path.dirname(path), top, ""):
                found = os.path.normpath(os.path.join(base, target))
                if not angled and found in tree.texts and unit(found) != unit(path):
                    graph.setdefault(unit(path), set()).add(unit(found))
    return graph


def call_graph(tree, top):
    """Of one program or library: names of functions are unique in it."""
    homes, own = {}, {}
    for path in tree.paths(top + "/"):
        for name, is_shared in definitions(tree.texts[path]) if path.endswith(".c") else ():
            own.setdefault(path, set()).add(name)
            if is_shared:
                homes[name] = unit(path)
    graph = {}
    for path, names in own.items():
        used = set(WORD.findall(blank(tree.texts[path]))) - names
        graph[unit(path)] = {homes[name] for name in used if name in homes} - {unit(path)}
    return graph


def imported(path, text):
    """Modules of its own package that a Python file imports, anywhere in it."""
    folder = os.path.dirname(path)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from (f"{folder}/{name}.py" for name in names)


def import_graph(tree):
    paths = [path for path in tree.texts if path.endswith(".py")]
    return {path: set(imported(path, tree.texts[path])) & set(paths) - {path} for path in paths}


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for other in graph.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def circles(graph):
    """Sorted lists of files, each of which reaches all others of its list."""
    reach = {name: reachable(graph, name) for name in graph}
    found = set()
    for name in graph:
        if name in reach[name]:
            found.add(tuple(sorted(n for n in reach[name] if name in reach.get(n, ()))))
    return sorted(found)


def all_circles(tree, tops):
    """(kind, files, edges between them) of each circle of the tree."""
    graphs = [("include", include_graph(tree)), ("import", import_graph(tree))]
    graphs += [("call", call_graph(tree, top)) for top in tops]
    for kind, graph in graphs:
        for files in circles(graph):
            edges = [f"{a} -> {b}" for a in files for b in sorted(graph[a] & set(files))]
            yield kind, files, edges
