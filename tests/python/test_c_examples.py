# SPDX-License-Identifier: Apache-2.0
"""examples/c and the code of docs/how-to/c.md: built by pkg-config or CMake alone against an
installed tree, outside of the source tree, and run."""

import pathlib
import re
import shutil
import subprocess

import pytest
from c_tools import BUILD, HEADERS, ROOT, WARNINGS, install, need_tools, run, sanitizer_options
from cli_tools import good, make_folder

need_tools("cc", "pkg-config", "cmake", "meson")
if any("thread" in option for option in sanitizer_options()):
    pytest.skip("clang's sanitizer is not cc's", allow_module_level=True)

EXAMPLES = sorted((ROOT / "examples" / "c").glob("*.c"))
PAGE = (ROOT / "docs" / "how-to" / "c.md").read_text()


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with photos.pen, and copies of the examples: nothing in it leads to the sources."""
    folder = tmp_path_factory.mktemp("work")
    make_folder(folder / "photos", each=20)
    good("pack", "photos", "-o", "photos.pen", cwd=folder)
    for example in [*EXAMPLES, ROOT / "examples" / "c" / "CMakeLists.txt"]:
        shutil.copy(example, folder)
    return folder


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    return install(tmp_path_factory.mktemp("root"))


def build(source, work, env):
    """As the first lines of the example say, with all warnings."""
    flags = run("pkg-config", "--cflags", "--libs", "penstock", env=env).split()
    assert not any(str(ROOT) in flag for flag in flags)
    run("cc", "-O2", *WARNINGS, *sanitizer_options(), f"{source}.c", "-o", source, *flags, cwd=work,
        env=env)
    return work / source


def test_first_lines_are_the_commands():
    assert len(EXAMPLES) == 4
    for example in EXAMPLES:
        name = example.stem
        assert (f" *     cc -O2 {name}.c -o {name} $(pkg-config --cflags --libs penstock)\n"
                in example.read_text())


def test_load_batches(work, env):
    text = run(build("load_batches", work, env), "photos.pen", "16", cwd=work, env=env)
    assert text == ("image: u8 [16, 224, 224, 3]\nlabel: i64 [16]\n3 batches, 40 samples\n")


def test_read_sample(work, env):
    program = build("read_sample", work, env)
    text = run(program, "photos.pen", "dog/3.jpg", "out", cwd=work, env=env)
    source = (work / "photos" / "dog" / "3.jpg").read_bytes()
    assert "label: 1\n" in text and "wrote out.jpg" in text
    assert (work / "out.jpg").stat().st_size > len(source) // 2
    done = subprocess.run([program, "photos.pen", "no/such.jpg", "out"], cwd=work, env=env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("read_sample: photos.pen: ")


def test_write_pack(work, env):
    program = build("write_pack", work, env)
    files = ["photos/cat/0.jpg", "photos/dog/1.jpg"]
    assert run(program, "two.pen", *files, cwd=work, env=env) == "2 samples\n"
    assert good("verify", "two.pen", cwd=work)
    text = run(build("read_sample", work, env), "two.pen", files[1], "two", cwd=work, env=env)
    assert text.startswith("wrote two.jpg") and f"label: 1\npath: {files[1]}\n" in text


def test_from_s3(s3, work, env, tmp_path):
    program = build("from_s3", work, env)
    near = s3().environment(LD_LIBRARY_PATH=env["LD_LIBRARY_PATH"], XDG_CACHE_HOME=str(tmp_path))
    good("copy", "photos.pen", "s3://packs/photos.pen", cwd=work, env=near)
    fetched = []
    for _ in range(2):
        text = run(program, "s3://packs/photos.pen", tmp_path / "cache", cwd=work, env=near)
        fetched.append(re.fullmatch(
            r"40 samples\n(\d+) bytes fetched, (\d+) cache hits\n", text).groups())
    assert int(fetched[1][0]) < int(fetched[0][0]) and int(fetched[1][1]) > 0


def cmake_files(env):
    return pathlib.Path(env["LD_LIBRARY_PATH"]) / "cmake" / "penstock"


def test_cmake(work, env):
    """As the first lines of CMakeLists.txt say. The programs find the library by themselves."""
    flags = " ".join([*WARNINGS, *sanitizer_options()])
    run("cmake", "-B", "out", f"-DCMAKE_C_FLAGS={flags}", f"-Dpenstock_DIR={cmake_files(env)}",
        cwd=work)
    run("cmake", "--build", "out", cwd=work)
    for example in EXAMPLES:
        assert "[libpenstock.so.0]" in run("readelf", "-d", work / "out" / example.stem)
    text = run(work / "out" / "load_batches", "photos.pen", "16", cwd=work)
    assert text.endswith("3 batches, 40 samples\n")


def test_cmake_version(env, tmp_path):
    """A program that names a release is served by this one alone."""
    (tmp_path / "versions.cmake").write_text(f"""
foreach(PACKAGE_FIND_VERSION 0.0.9 0.1.0 0.1.1)
  unset(PACKAGE_VERSION_EXACT)
  include({cmake_files(env)}/penstockConfigVersion.cmake)
  message(STATUS "${{PACKAGE_VERSION}} ${{PACKAGE_VERSION_COMPATIBLE}} ${{PACKAGE_VERSION_EXACT}}")
endforeach()
""")
    assert run("cmake", "-P", tmp_path / "versions.cmake").splitlines() == [
        "-- 0.1.0 FALSE ", "-- 0.1.0 TRUE TRUE", "-- 0.1.0 FALSE "]


def stand_in(flags, folder):
    """Empty libraries in place of those that shared libraries need, such as libcurl, when the
    packages to link with them are not installed. What penstock itself needs is not among them."""
    own = {"-lpenstock", "-lm", "-ljansson", "-lcurl", "-lcrypto", "-lexpat", "-ljpeg", "-lspng",
           "-lwebp", "-larchive"}
    assert own <= set(flags)
    for flag in {flag for flag in flags if flag.startswith("-l")} - own:
        names = [f"lib{flag[2:]}.{suffix}" for suffix in ("so", "a")]
        if all(run("cc", f"-print-file-name={name}").strip() == name for name in names):
            run("ar", "rcs", folder / names[1])
    return f"-L{folder}"


def test_static_library(work, env, tmp_path):
    """Without the shared library, `pkg-config --static` names all that the program needs."""
    libraries, kept = pathlib.Path(env["LD_LIBRARY_PATH"]), tmp_path / "kept"
    kept.mkdir()
    for file in libraries.glob("libpenstock.so*"):
        shutil.move(file, kept)
    try:
        flags = run("pkg-config", "--static", "--cflags", "--libs", "penstock", env=env).split()
        run("cc", *sanitizer_options(), "load_batches.c", "-o", "static", *flags,
            stand_in(flags, tmp_path), cwd=work, env=env)
    finally:
        for file in kept.iterdir():
            shutil.move(file, libraries)
    assert "libpenstock" not in run("readelf", "-d", work / "static")
    text = run(work / "static", "photos.pen", "16", cwd=work, env=env)
    assert text.endswith("3 batches, 40 samples\n")


def test_code_of_the_guide(work, env):
    """Its first program is complete; the other blocks are parts of functions."""
    first, *others = re.findall(r"^```c\n(.*?)^```$", PAGE, re.M | re.S)
    (work / "first.c").write_text(first)
    assert run(build("first", work, env), cwd=work, env=env).splitlines()[-1] == "40 samples"
    head = ("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
            "#include <penstock/penstock.h>\n")
    for i, block in enumerate(others):
        (work / f"part{i}.c").write_text(f"{head}int part(void);\nint part(void)\n{{\n"
                                         f"{block}\nreturn 0;\n}}\n")
        flags = run("pkg-config", "--cflags", "penstock", env=env).split()
        run("cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"part{i}.c", *flags, cwd=work)
    assert len(others) >= 4


def test_installed_files(env):
    """What is installed is what the guide lists."""
    text = run("pkg-config", "--variable=prefix", "penstock", env=env).strip()
    names = {path.name for path in pathlib.Path(text).rglob("*") if not path.is_dir()}
    completions = [] if sanitizer_options() else ["_penstock", "penstock.fish"]
    plugin = [path.name for path in (BUILD / "video").glob("*.so.0")]  # where libavcodec is
    plugin += ["penstock-video-decoder"] if plugin else []
    assert {"libpenstock.so", "libpenstock.so.0", "libpenstock.a", "penstock.pc", "penstock",
            "penstockConfig.cmake", "penstockConfigVersion.cmake", *completions, *plugin,
            *(header.name for header in HEADERS)} == names
