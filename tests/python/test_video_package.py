# SPDX-License-Identifier: Apache-2.0
"""The decoder of the package penstock-video is used if that is installed. Here, the package is a
directory with a copy of the plug-in of this build."""

import json
import os
import shutil

import pytest
from cli_tools import good
from conftest import is_sanitized
from packet_tools import BUILD, PLUGIN, encode, need_plugin
from py_tools import need_penstock, run_python, write_pack

need_plugin()
penstock = need_penstock()

# Prints whether the package was imported, and the plug-in in use, or the error.
SCRIPT = """
import sys, penstock
pack = penstock.open(sys.argv[1])
print("penstock_video" in sys.modules)
try:
    next(iter(penstock.Loader(pack, 1, output="dlpack",
                              pipeline="decode | clip 2 | center_crop 8 | tensor u8")))
except penstock.UnsupportedError as error:
    print(error)
lines = [line.split() for line in open("/proc/self/maps")]
print(*{line[-1] for line in lines if "libpenstock-video" in line[-1]})
"""


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    (folder / "videos").mkdir()
    encode(folder / "videos" / "a.mp4", "-c:v", "mpeg4", frames=4)
    good("pack", folder / "videos", "--video", "keep", "-o", folder / "kept.pen")
    return folder / "kept.pen"


@pytest.fixture
def package(tmp_path):
    """The path of the plug-in in the package, and the environment in which it is found."""
    folder = tmp_path / "site" / "penstock_video"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        f"PATH = {str(folder / PLUGIN.name)!r}\n")
    shutil.copy(PLUGIN, folder)
    env = {name: v for name, v in os.environ.items() if name != "PENSTOCK_VIDEO_LIBRARY"}
    env["PYTHONPATH"] = os.pathsep.join([str(folder.parent), env["PYTHONPATH"]])
    return folder / PLUGIN.name, env


def use(pack, env):
    done = run_python(SCRIPT, pack, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_found(pack, package):
    plugin, env = package
    assert use(pack, env) == ["True", str(plugin)]


def test_environment_wins(pack, package):
    _, env = package
    assert use(pack, {**env, "PENSTOCK_VIDEO_LIBRARY": str(PLUGIN)}) == ["False", str(PLUGIN)]


def test_library_is_missing(pack, package):
    plugin, env = package
    plugin.unlink()
    _, error, used = use(pack, env)
    assert f"cannot open the video decoder: {plugin}: cannot open shared object file" in error
    assert "'./dev build' make build/video/" in error and used == ""


@pytest.mark.skipif(is_sanitized(BUILD), reason="its dlopen ignores run paths")
def test_directory_of_this_name(pack, package):
    """A package without a path, or none at all: the plug-in of this build."""
    plugin, env = package
    (plugin.parent / "__init__.py").unlink()
    assert use(pack, env) == ["True", str(BUILD / "video" / plugin.name)]
    shutil.rmtree(plugin.parent)
    assert use(pack, env) == ["False", str(BUILD / "video" / plugin.name)]


def test_not_imported_for_images(tmp_path, package):
    write_pack(penstock, tmp_path / "images.pen", 2).close()
    text = SCRIPT.partition("try:")[0]
    done = run_python(text, tmp_path / "images.pen", env=package[1])
    assert done.stdout == "False\n", done.stderr


def test_command(package):
    plugin, env = package
    for exists in (True, False):
        done = run_python("import penstock._cli as c, sys; sys.exit(c.main())", "--version",
                          "--json", env=env)
        assert json.loads(done.stdout)["features"]["video_decoder"] is exists, done.stderr
        plugin.unlink(missing_ok=True)


def test_wrong_paths():
    core = penstock._pack._core
    with pytest.raises(TypeError):
        core.video_use("text")
    for path in (b"", b"x" * 5000):
        with pytest.raises(penstock.InvalidError, match="path of the video decoder: expected 1 to"):
            core.video_use(path)
