# SPDX-License-Identifier: Apache-2.0
"""The layers of src/: the table, and the rule that includes point down.

A file includes its own folder, lower layers and <penstock/...>. Folders of one layer do not include
each other. Inside a folder of src/ the same holds for its parts: nested folders, or single files,
written "name.*" (name.c, name.h and name_impl.h). "." stands for all other files of the folder.
What stands on the library (cli, python, examples) includes its own files and <penstock/...>. The
simulator (sim) runs the loader's own code, and includes all of src/ as well. The program and the
Python package also include "tools.h", as the files of src/ do that define what it declares.
"""

import os

from structure.source import includes, unit

# Lowest first: folder, what it holds, its parts from the lowest row to the highest.
LAYERS = (
    (
        ("base", "system interface, memory, errors, checked arithmetic, hashes, threads", (
            ("attr.*", "machine/cpuid.*"), ("spawn", "text"), (".",), ("machine", "program"),
            ("timing",),
        )),
    ),
    (
        ("net", "HTTP, retries, credentials and S3: objects at a URL", (
            ("address", "http"), ("aws", "s3", "retry"), ("credentials",), ("remote",),
        )),
        ("trace", "spans of threads, written to a file while they run", ((".",),)),
    ),
    (
        ("io", "byte ranges to read, files that appear complete, directories and remote prefixes",
         ((".",),)),
        ("codec", "JPEG, PNG and WebP: headers, pixels, tiles, rows of a region; YUV pictures", (
            ("codec.*", "encoded.*", "exif.*"), ("jpeg",), ("jpeg/pixels",),
            ("jpeg/decoder", "jpeg/turbo", "picture", "."), ("jpeg/transcode",), ("region",),
        )),
        ("video", "the decoder plug-in, here or in own processes; decoding packets with it", (
            ("messages.*", "plugin.*"), ("talk.*",), ("child.*",), ("decoder.*",), ("play.*",),
        )),
        ("dsp", "pixel kernels for each processor: resampling, color, storing",
         ((".",), ("augment",))),
        ("cache", "blocks of remote packs on a node's disk, shared by processes", ((".",),)),
    ),
    (
        ("pack", "the format, the reader, writing and preloading of packs", (
            ("format",), ("mapped", "preload/layout.*"), ("reader",), ("write", "preload", "video"),
        )),
        ("ops", "pipelines as text, operations, what is done to one sample", (
            ("language", "sample"), ("operations", "pixels"),
            ("operations/geometry", "operations/policies"), ("pipeline",), ("run",),
        )),
    ),
    (
        ("manage", "copy, verify, extract and gc of packs; pixels of one sample", ((".",),)),
    ),
    (
        ("load", "the loader: order of samples, prefetching, decoding threads, batches", (
            ("epoch", "diagnosis", "remote"), ("fields", "mix"), ("plan",), (".",), ("prefetch",),
            ("read",), ("decode",), ("engine.*",), ("delivery.*", "figures.*"), ("status",),
            ("loader.*",), ("measure",),
        )),
        ("ingest", "making packs: sources, plan, preparing images, the job", (
            ("spill", "tar"), ("source",), ("video",), ("plan",), ("prepare",), ("job",),
        )),
    ),
)
ON_TOP = ("cli", "python", "examples")
SIMULATOR = "sim"
TOOLS, TOOL_USERS = "tools.h", ("src", "cli", "python")


def layer_of(folder):
    """Number of the layer, counted from 1; None for what is not in the table."""
    for number, row in enumerate(LAYERS, 1):
        if folder in (name for name, _, _ in row):
            return number
    return None


def parts_of(folder):
    return next(parts for row in LAYERS for name, _, parts in row if name == folder)


def part_of(path):
    """(name, row) of the part that holds a file of src/, or None."""
    _, top, *rest = path.split("/")
    names = [unit("/".join(rest)) + ".*", "/".join(rest[:-1]) or "."]
    for name in names:
        for row, parts in enumerate(parts_of(top)):
            if name in parts:
                return name, row
    return None


def part_rule(path, target):
    """The rule that an include inside one folder of src/ breaks, or None."""
    own, other = part_of(path), part_of(target)
    for part, of in ((own, path), (other, target)):
        if part is None:
            return f"{os.path.dirname(of)} is not in the table of tools/structure/layers.py"
    if own[0] == other[0] or other[1] < own[1]:
        return None
    where = "beside it" if own[1] == other[1] else "above it"
    return f"{other[0]} is {where} ({own[0]})"


def src_rule(path, target):
    own, folder = path.split("/")[1], target.split("/")[0]
    if "/" not in target:
        return 'includes are written from src/: "folder/file.h"'
    if layer_of(own) is None:
        return None if path.count("/") == 1 else f"src/{own} has no layer; add it to the table"
    if layer_of(folder) is None:
        return f"{folder} is not a folder of src/ with a layer"
    if folder == own:
        return part_rule(path, "src/" + target)
    if layer_of(folder) < layer_of(own):
        return None
    where = "beside it" if layer_of(folder) == layer_of(own) else "above it"
    return f"{folder} (layer {layer_of(folder)}) is {where} ({own}, layer {layer_of(own)})"


def include_rule(tree, path, target, angled):
    """The rule that an include breaks, or None."""
    top = path.split("/")[0]
    if target.startswith(".") or "/../" in target:
        return "includes are written from src/, without dots"
    if angled:
        if target.startswith("penstock/") or layer_of(target.split("/")[0]) is None:
            return None
        return "angle brackets are for the system and penstock/"
    if target == TOOLS and f"src/{TOOLS}" in tree.texts:
        return None if top in TOOL_USERS else f"{top} uses <penstock/...> alone"
    if top == "src":
        return src_rule(path, target)
    if top == SIMULATOR:
        known = target in tree.texts or layer_of(target.split("/")[0])
        return None if known else "sim uses its own files, src/ and <penstock/...> alone"
    if "/" in target and f"{top}/{target}" not in tree.texts:
        return f"{top} uses its own files and <penstock/...> alone"
    return None


def findings(tree):
    for path in tree.paths():
        if not path.startswith(("src/", *(f"{top}/" for top in (*ON_TOP, SIMULATOR)))):
            continue
        for number, target, angled in includes(tree.texts[path]):
            rule = include_rule(tree, path, target, angled)
            if rule:
                yield f"{path}:{number}: include of {target}: {rule}"


def missing_folders(tree):
    """Folders of the table that the tree does not have."""
    folders = {os.path.dirname(path) for path in tree.paths("src/")}
    for row in LAYERS:
        for name, _, parts in row:
            for part in (part for parts_row in parts for part in parts_row):
                path = f"src/{name}/{part}"
                folder = os.path.dirname(path) if path[-1] in ".*" else path
                if folder not in folders:
                    yield f"tools/structure/layers.py: there is no {folder}"


def table():
    """The table as the docs have it, highest layer first."""
    lines = ["| Layer | Folder | Holds | Parts, lowest first |", "|---|---|---|---|"]
    lines.append(f"| {len(LAYERS) + 1} | {', '.join(f'`{top}`' for top in ON_TOP)} "
                 "| the program, the Python package, examples: use only `include/penstock`; "
                 "the first two also `src/tools.h` | |")
    lines.append(f"| {len(LAYERS) + 1} | `{SIMULATOR}` "
                 "| a training job of many nodes on a simulated network: a program that also uses "
                 "`src` | |")
    for number in range(len(LAYERS), 0, -1):
        for name, text, parts in LAYERS[number - 1]:
            rows = [", ".join(f"`{part}`" for part in row if part != ".") for row in parts]
            order = " < ".join(row for row in rows if row)
            lines.append(f"| {number} | `src/{name}` | {text} | {order} |")
    return "\n".join(line.replace("|  |", "| |") for line in lines) + "\n"
