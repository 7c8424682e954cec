# SPDX-License-Identifier: Apache-2.0
"""Public headers: each compiles alone as C11 and C++17 without warnings, and all are installed."""

import re

import pytest
from c_tools import HEADERS, ROOT, WARNINGS, need_tools, run

need_tools("gcc", "g++")


@pytest.mark.parametrize("header", [header.name for header in HEADERS])
@pytest.mark.parametrize("compiler", [("gcc", "c11", "c"), ("g++", "c++17", "cc")],
                         ids=["c11", "c++17"])
def test_compiles_alone(compiler, header, tmp_path):
    program, standard, suffix = compiler
    source = tmp_path / f"one.{suffix}"
    source.write_text(f"#include <penstock/{header}>\n")
    run(program, f"-std={standard}", *WARNINGS, "-Wshadow", "-Wconversion", "-fsyntax-only",
        "-I", ROOT / "include", source)


def test_cpp_calls_c_functions(tmp_path):
    """Without extern "C" the name of the function would be another one."""
    source = tmp_path / "call.cc"
    source.write_text("#include <penstock/penstock.h>\n"
                      "void f(PenLoaderSettings *s) { pen_loader_settings_init(s); }\n")
    run("g++", "-std=c++17", *WARNINGS, "-c", "-I", ROOT / "include", source, cwd=tmp_path)
    assert "U pen_loader_settings_init\n" in run("nm", tmp_path / "call.o")


def test_all_are_installed_and_included():
    names = {header.name for header in HEADERS}
    listed = set(re.findall(r"'include/penstock/(\w+\.h)'", (ROOT / "meson.build").read_text()))
    umbrella = (ROOT / "include" / "penstock" / "penstock.h").read_text()
    included = set(re.findall(r"^#include <penstock/(\w+\.h)>$", umbrella, re.M))
    assert listed == names
    assert included == names - {"penstock.h"}
