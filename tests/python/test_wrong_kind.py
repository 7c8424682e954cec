# SPDX-License-Identifier: Apache-2.0
"""Every command with a pack, a folder, an image, a text and nothing in the place of what it wants:
it says so. The table has all commands that take a file."""

import json
import os
import subprocess
import sys

import pytest
from cli_tools import Result, good, image_bytes, make_folder, run
from py_tools import need_penstock

need_penstock()

NO_PACK = "not a pack: expected a directory such as NAME.pen, found a file"
NO_MANIFEST = "not a pack: it has no file 'manifest'; to pack a folder, run: penstock pack"
NO_SIGNS = "not a pack: expected a directory such as NAME.pen, found one without 'manifest'"
NONE = "No such file or directory"
READER = {"folder": NO_MANIFEST, "x.jpg": NO_PACK, "x.txt": NO_PACK,
          "nothing": "nothing: no such file or directory"}
SOURCE = "expected a folder, a .csv or .tsv list or a .tar file, found something else"
WRITER = {"p.pen": "already a pack; 'penstock info p.pen' describes it", "x.jpg": SOURCE,
          "x.txt": SOURCE, "nothing": "cannot open this source: No such file"}
PLACE = {"folder": NO_SIGNS, "x.jpg": NO_PACK, "x.txt": NO_PACK,
         "nothing": f"nothing: expected the directory of a pack: {NONE}"}
NO_CACHE = "cannot use as a cache: expected a directory, found a file"
TABLE = {
    "pack SRC -o n.pen": WRITER,
    "index SRC -o n.pen": WRITER,
    "plan SRC -o n.pen": WRITER,
    "pack folder --classes-from SRC -o n.pen": READER,
    "finalise SRC": {**PLACE, "p.pen": "p.pen: the pack already exists"},
    "gc SRC": PLACE,
    "info SRC": READER,
    "verify SRC": READER,
    "extract SRC -o out": READER,
    "copy SRC n.pen": READER,
    "doctor SRC": READER,
    "cache SRC": {"p.pen": "p.pen: not a cache: it has no file penstock-cache",
                  "folder": "folder: not a cache: it has no file penstock-cache",
                  "x.jpg": NO_CACHE, "x.txt": NO_CACHE, "nothing": NONE},
}
OTHERS = {"top", "ops"}  # take no file
NO_TRACE = "expected a file that penstock.trace wrote, found a directory"
TRACE = {"p.pen": f"trace 'p.pen': {NO_TRACE}", "folder": f"trace 'folder': {NO_TRACE}",
         "x.jpg": "expected Chrome trace events as JSON, found other data",
         "x.txt": "expected Chrome trace events as JSON, found other data",
         "nothing": f"trace 'nothing': cannot open: {NONE}"}
FORMAT = "unknown format; expected one of mds, litdata,"
OF_PYTHON = {
    "trace merge SRC -o n.json": TRACE,
    "convert SRC -o n.pen": {"p.pen": FORMAT, "folder": FORMAT, "x.jpg": FORMAT, "x.txt": FORMAT,
                             "nothing": "nothing: no such file or directory"},
    "extract SRC -o out --to webdataset": READER,
}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    here = tmp_path_factory.mktemp("kinds")
    make_folder(here / "folder")
    good("pack", here / "folder", "-o", here / "p.pen")
    (here / "x.jpg").write_bytes(image_bytes(1))
    (here / "x.txt").write_text("some text\n")
    return here


def check(result, said, here, before):
    assert result.code == 1, (result.code, result.err)
    assert said in result.message() and "Errno" not in result.err
    assert sorted(os.listdir(here)) == before


def test_the_table_has_every_command():
    names = {command["name"] for command in json.loads(good("help", "--json").out)["commands"]}
    assert names == {command.split()[0] for command in TABLE} | OTHERS


@pytest.mark.parametrize("command", TABLE)
def test_a_command_says_what_it_wants(here, command):
    before = sorted(os.listdir(here))
    for kind, said in TABLE[command].items():
        check(run(*command.replace("SRC", kind).split(), cwd=here), said, here, before)


@pytest.mark.parametrize("command", OF_PYTHON)
def test_a_command_of_python_says_what_it_wants(here, command):
    before = sorted(os.listdir(here))
    for kind, said in OF_PYTHON[command].items():
        words = command.replace("SRC", kind).split()
        done = subprocess.run([sys.executable, "-m", "penstock", *words], cwd=here, timeout=120,
                              capture_output=True, check=False)
        check(Result(done), said, here, before)
