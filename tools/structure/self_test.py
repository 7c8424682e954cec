# SPDX-License-Identifier: Apache-2.0
"""Small trees with and without something wrong, for check_structure.py --self-test."""

import os
import tempfile

from structure import documents, layers
from structure.picture import PICTURE, svg
from structure.source import Tree

FUNCTION = "int {name}(void)\n{{\n    return {body};\n}}\n"


def function(name, calls=""):
    return FUNCTION.format(name=name, body=calls + "()" if calls else "0")


GOOD = {
    "includes of the own folder, of lower ones, and of the public headers": {
        "src/base/a.c": '#include "base/a.h"\n#include <stdio.h>\n',
        "src/pack/format/b.c": '#include "pack/format/b.h"\n#include "io/s.h"\n',
        "src/pack/reader/b.c": '#include "pack/format/b.h"\n#include <penstock/pack.h>\n',
        "src/ingest/job/c.c": '#include "ops/run/o.h"\n  #  include "codec/jpeg/j.h"\n',
        "cli/d.c": '#include "d.h"\n#include <penstock/pack.h>\n',
        "sim/e.c": '#include "sim/e.h"\n#include "load/plan/p.h"\n',
        "sim/e.h": "",
    },
    "the header for the program and the Python package": {
        "src/tools.h": "#include <penstock/loader.h>\n",
        "src/load/a.c": '#include "base/mem.h"\n#include "tools.h"\n',
        "cli/e.c": '#include "tools.h"\n', "python/core/f.c": '#include "tools.h"\n',
    },
    "a comment, a text, a member, and a name that only ends like a system call": {
        "src/base/b.c": '/* malloc( */ x("free("); p->open(1); pen__free(p);\n',
    },
    "the system interface, and a reason": {
        "src/base/sys.c": "void f(void) { free(p); }\n",
        "src/codec/jpeg/e.c": "free(p); /* system: libjpeg's own memory */\n",
    },
    "a header of its own, and what the files of a folder share": {
        "src/io/a.c": '#include "io/a.h"\n#include "io/a_impl.h"\n',
        "src/io/a_impl.h": '#include "io/a.h"\n',
        "src/io/a.h": "",
    },
    "calls that go down, and a static function of the same name": {
        "src/io/a.c": function("pen__a", "pen__b") + "static " + function("same"),
        "src/io/b.c": function("pen__b", "same") + "static " + function("same"),
    },
    "modules that import downwards": {
        "python/penstock/_a.py": "from . import _b\n",
        "python/penstock/_b.py": "import os\n",
    },
    "types without a prefix, and a declaration": {
        "src/io/a.c": "typedef struct Node {\n    int n;\n} Node;\nstruct PenThing;\n",
        "src/io/b.c": "typedef struct Node {\n    int m;\n} Node;\n",
        "src/io/b.h": "typedef struct PenThing PenThing;\n",
        "src/io/c.c": "struct PenThing {\n    int n;\n};\n",
    },
}

BAD = {
    "an include of a higher folder": {"src/base/a.c": '#include "io/source.h"\n'},
    "an include of a folder beside it": {"src/io/b.c": '#include "codec/jpeg/jpeg.h"\n'},
    "an include of a higher nested folder": {"src/pack/format/c.c": '#include "pack/reader/r.h"\n'},
    "an include of a nested folder beside it": {"src/net/http/d.c": '#include "net/address/a.h"\n'},
    "a nested folder without a layer": {"src/net/new/d.c": '#include "net/address/a.h"\n'},
    "a folder without a layer": {"src/new/g.c": '#include "base/mem.h"\n'},
    "dots": {"src/codec/jpeg/e.c": '#include "../base/mem.h"\n'},
    "an include that does not begin at src": {"src/codec/jpeg/f.c": '#include "jpeg.h"\n'},
    "angle brackets": {"src/pack/format/h.c": "#include <io/source.h>\n"},
    "the program includes the library": {"cli/i.c": '#include "base/mem.h"\n'},
    "an example includes the library": {"examples/j.c": '#include "../src/base/mem.h"\n'},
    "the library includes the simulator": {
        "src/load/j.c": '#include "sim/e.h"\n', "sim/e.h": "",
    },
    "the simulator includes the program": {"sim/j.c": '#include "cli/d.h"\n'},
    "a circle of includes in the simulator": {
        "sim/a.c": '#include "sim/b.h"\n', "sim/a.h": "",
        "sim/b.c": '#include "sim/a.h"\n', "sim/b.h": "",
    },
    "an example includes the header for the program": {
        "src/tools.h": "", "examples/k.c": '#include "tools.h"\n',
    },
    "a system call": {"src/io/k.c": "int f(void) { return close(3); }\n"},
    "memory": {"src/io/l.c": "void *p = malloc(3);\n"},
    "the environment": {"src/io/m.c": 'x = getenv("HOME");\n'},
    "a circle of includes": {
        "src/io/a.c": '#include "io/b.h"\n', "src/io/a.h": "",
        "src/io/b.c": '#include "io/a.h"\n', "src/io/b.h": "",
    },
    "a circle of calls over three files": {
        "src/io/a.c": function("pen__a", "pen__b"),
        "src/io/b.c": function("pen__b", "pen__c"),
        "src/io/c.c": function("pen__c", "pen__a"),
    },
    "a circle of calls in the program": {
        "cli/a.c": function("cli_a", "cli_b"), "cli/b.c": function("cli_b", "cli_a"),
    },
    "a circle of imports, one of them in a function": {
        "python/penstock/_a.py": "from . import _b\n",
        "python/penstock/_b.py": "def f():\n    from ._a import x\n    return x\n",
    },
    "a struct defined twice": {
        "include/penstock/a.h": "typedef struct PenThing {\n    int n;\n} PenThing;\n",
        "src/io/a.c": "struct PenThing {\n    int n;\n};\n",
    },
    "a type of a function defined twice": {
        "src/io/a.h": "typedef int (*PenEach)(void *ctx);\n",
        "src/io/b.h": "typedef int (*PenEach)(void *ctx);\n",
    },
    "too many files in a folder": {f"src/io/f{i}.c": "" for i in range(31)},
}


def make_tree(root, files):
    for path, text in files.items():
        os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as f:
            f.write(text)


def tree_failures(check_tree):
    for trees, expected in ((GOOD, 0), (BAD, 1)):
        for name, files in trees.items():
            with tempfile.TemporaryDirectory() as root:
                make_tree(root, files)
                found = check_tree(root)
            if len(found) != expected:
                yield f"{name}: expected {expected} findings, found {found}"


def document_failures():
    """A table as it should be, one without a folder, and none; a picture that is out of date."""
    lines = layers.table().splitlines(keepends=True)
    texts = {
        documents.BEGIN + layers.table() + documents.END: 0,
        documents.BEGIN + "".join(lines[:-1]) + documents.END: 1,
        "": 1,
    }
    for text, expected in texts.items():
        with tempfile.TemporaryDirectory() as root:
            make_tree(root, {**dict.fromkeys(documents.DOCUMENTS, text), PICTURE: svg()})
            found = list(documents.findings(root))
        if len(found) != expected * len(documents.DOCUMENTS):
            yield f"documents: expected {expected} findings each, found {found}"
    with tempfile.TemporaryDirectory() as root:
        good = dict.fromkeys(documents.DOCUMENTS, next(iter(texts)))
        make_tree(root, {**good, PICTURE: "<svg/>"})
        found = list(documents.findings(root))
    if len(found) != 1:
        yield f"documents: expected one finding about the picture, found {found}"


def folder_failures():
    with tempfile.TemporaryDirectory() as root:
        found = list(layers.missing_folders(Tree(root, ("src",), (".c",))))
    if not found:
        yield "an empty tree: expected folders of the table to be missing"


def self_test(check_tree):
    failed = [*tree_failures(check_tree), *document_failures(), *folder_failures()]
    for line in failed:
        print(line)
    n = len(GOOD) + len(BAD) + 4
    print(f"{n - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0
