# SPDX-License-Identifier: Apache-2.0
"""Programs built with the headers of an older or a newer release, run with this library.

tests/abi/use_all.c is built with the headers of today, with shorter structs as an older release
would have had, and with longer ones. All print the same; settings that the library does not know
are refused. The program has the address sanitizer, whatever the library was built with.
"""

import ctypes
import re

import pytest
from c_tools import (
    BUILD,
    HEADERS,
    ROOT,
    compile_c,
    members,
    need_tools,
    run,
    sanitizer_options,
    sized,
    structs,
)
from cli_tools import good, make_folder

need_tools("gcc")
if any("thread" in option for option in sanitizer_options()):
    pytest.skip("a program has one sanitizer", allow_module_level=True)

PAGE = (ROOT / "docs" / "reference" / "c-abi.md").read_text()
LAYOUT = (ROOT / "tests" / "abi" / "layout.txt").read_text()
# How many declarations an older release lacks; the others lack two.
FEWER = {"PenCacheSettings": 1, "PenGcResult": 1, "PenBadSample": 1}
ADDED = "    uint64_t added_number;\n    const char *added_pointer;\n"


def change_headers(folder, change):
    """A copy of the headers; change(name, body) is the body of each struct that may grow."""
    (folder / "penstock").mkdir(parents=True)
    for header in HEADERS:
        text = header.read_text()
        for name in sized():
            text = re.sub(
                rf"(^typedef struct {name} \{{)(.*?)(^\}} {name};)",
                lambda m, name=name: m[1] + change(name, m[2]) + m[3],
                text, flags=re.M | re.S)
        (folder / "penstock" / header.name).write_text(text)
    return folder


def shorter(name, body):
    lines = structs()[name]
    return "\n    " + ";\n    ".join(lines[: -FEWER.get(name, 2)]) + ";\n"


def longer(name, body):
    return body + ADDED


def build(folder, name, headers, *options):
    return compile_c(folder / name, ROOT / "tests" / "abi" / "use_all.c", "-I", headers, "-L",
                     BUILD / "src", "-lpenstock", "-fsanitize=address", *options)


def use(program, folder):
    images = folder / "images"
    if not images.exists():
        make_folder(images)
    return run(program, folder, images, env={
        "LD_LIBRARY_PATH": str(BUILD / "src"),
        "ASAN_OPTIONS": "detect_leaks=0",  # of the dynamic linker, where the library has none
        "HOME": str(folder),
    })


def sizes(headers, folder):
    """{struct: bytes} of those that may grow, with these headers."""
    rows = [f'    printf("{name} %zu\\n", sizeof({name}));' for name in sized()]
    (folder / "sizes.c").write_text("#include <stdio.h>\n#include <penstock/penstock.h>\n"
                                    "int main(void)\n{\n" + "\n".join(rows) + "\n}\n")
    run("gcc", "-I", headers, "-o", folder / "sizes", folder / "sizes.c")
    pairs = [line.split() for line in run(folder / "sizes").splitlines()]
    return {name: int(size) for name, size in pairs}


@pytest.fixture(scope="module")
def today(tmp_path_factory):
    """What the program prints with the headers of this library; and the folder it used."""
    folder = tmp_path_factory.mktemp("today")
    return use(build(folder, "today", ROOT / "include"), folder), folder


def test_program_uses_everything(today):
    text, _ = today
    assert text.count(": 0\n") == len(re.findall(r"^\w+: ", text, re.M)), text
    assert "  sum 780\n" in text and "  valid 8\n" in text
    source = (ROOT / "tests" / "abi" / "use_all.c").read_text()
    # By the library, or between it and a plug-in; the program has only pointers.
    owned = {"PenPackInfo", "PenIngestProgress", "PenCodedPacket", "PenVideoDecoderConfig",
             "PenVideoPicture", "PenVideoPlugin"}
    assert [name for name in sized() if name not in source and name not in owned] == []


@pytest.mark.parametrize("change", [shorter, longer])
def test_program_of_another_release(change, today, tmp_path):
    text, _ = today
    headers = change_headers(tmp_path / "include", change)
    own = sizes(ROOT / "include", tmp_path)
    for name, size in sizes(headers, tmp_path).items():
        assert size < own[name] if change is shorter else size > own[name], name
    assert use(build(tmp_path, "program", headers), tmp_path) == text


def test_unknown_settings_are_refused(today, tmp_path):
    _, folder = today
    headers = change_headers(tmp_path / "include", longer)
    text = use(build(tmp_path, "program", headers, "-DADDED"), folder)
    lines = re.findall(r"^(\w+): (-?\d+) ?(.*)$", text, re.M)
    assert {call for call, *_ in lines} == {
        "writer", "open", "loader", "stages", "verify", "analyse", "copy", "gc", "files", "cache",
        "preload", "plan", "run", "task", "trace", "facts",
        "diagnose", "decode", "decode_batch"}
    for call, status, message in lines:
        assert status == "-10", (call, message)
        assert re.fullmatch(
            r"settings of \d+ bytes: expected 0 beyond byte \d+, found \d+ at byte \d+: the "
            r"program sets a member that penstock [\d.]+ does not have; install the version that "
            r"the program was built with, or leave the member at its default", message), call


def layout(tmp_path):
    """A line for every member of every struct: its name, its offset and its size in bytes."""
    rows = []
    for name, lines in structs().items():
        for line in lines:
            rows += [f'    ROW({name}, {member});' for member in members(line)]
        rows.append(f'    printf("{name} %zu\\n", sizeof({name}));')
    (tmp_path / "layout.c").write_text(
        "#include <stdio.h>\n#include <penstock/penstock.h>\n"
        '#define ROW(s, m) printf(#s "." #m " %zu %zu\\n", offsetof(s, m), sizeof(((s *)0)->m))\n'
        "int main(void)\n{\n" + "\n".join(rows) + "\n    return 0;\n}\n")
    run("gcc", "-I", ROOT / "include", "-o", tmp_path / "layout", tmp_path / "layout.c")
    return run(tmp_path / "layout")


def test_members_stay_where_they_are(tmp_path):
    """tests/abi/layout.txt has the members that programs rely on. New ones are added to it, with
    the size of their struct; no other line changes."""
    found = layout(tmp_path)
    assert found == LAYOUT


def test_no_struct_ends_in_padding(tmp_path):
    """A member that a later release adds begins where the struct ends today."""
    last = {}
    for line in layout(tmp_path).splitlines():
        name, *numbers = line.split()
        if "." in name:
            last[name.split(".")[0]] = sum(map(int, numbers))
        elif name in sized():
            assert last[name] == int(numbers[0]), name


def column(head, number):
    table = PAGE[PAGE.index(head):].split("\n\n")[0]
    cells = [line.split("|")[number] for line in table.splitlines()[2:]]
    return [name for cell in cells for name in re.findall(r"`(Pen\w+)`", cell)]


def test_page_names_every_struct():
    grow, fixed = column("| struct that may grow |", 1), column("| struct of fixed size |", 1)
    assert sorted(grow) == sorted(sized())
    assert sorted(grow + fixed) == sorted(structs())


def test_soname_and_versions():
    text = run("readelf", "-d", BUILD / "src" / "libpenstock.so")
    (abi,) = re.findall(r"#define PEN_ABI_VERSION (\d+)",
                        (ROOT / "include" / "penstock" / "version.h").read_text())
    assert re.findall(r"soname: \[(.*)\]", text) == [f"libpenstock.so.{abi}"]
    lines = run("nm", "-D", "--defined-only", BUILD / "src" / "libpenstock.so").splitlines()
    names = [line.split()[-1] for line in lines]
    assert names.pop(names.index("PENSTOCK_1"))
    assert names and all(re.fullmatch(r"pen_[a-z]\w*@@PENSTOCK_1", name) for name in names)


@pytest.mark.skipif(bool(sanitizer_options()), reason="Python has no sanitizer")
def test_binding_of_the_page(tmp_path):
    make_folder(tmp_path / "images")
    good("pack", "images", "-o", "a.pen", cwd=tmp_path)
    library, pack = ctypes.CDLL(BUILD / "src" / "libpenstock.so"), ctypes.c_void_p()
    path = str(tmp_path / "a.pen").encode()
    assert library.pen_pack_open(path, ctypes.byref(pack), None) == 0
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    scope = {"library": library, "pack": pack}
    exec(compile(block, "c-abi.md", "exec"), scope)
    assert scope["stats"].struct_size == ctypes.sizeof(scope["stats"]) == 24
    library.pen_pack_close(ctypes.byref(pack))
