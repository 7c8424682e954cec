# SPDX-License-Identifier: Apache-2.0
"""The package as a whole: what importing costs, the command, the types."""

import compileall
import importlib.util
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from py_tools import need_penstock, run_python, write_pack

penstock = need_penstock()

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "tests" / "python" / "typed_example.py"
SANITIZED = "san.so" in os.environ.get("LD_PRELOAD", "")


def command(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "penstock", *map(str, args)], capture_output=True, text=True,
        timeout=60, check=False, **options,
    )


def test_import_brings_neither_numpy_nor_torch():
    done = run_python(
        "import sys, threading\n"
        "from penstock import Loader\n"
        "unwanted = {'numpy', 'torch', 'inspect', 'json', 'ctypes', 'datetime'}\n"
        "print(sorted(unwanted & set(sys.modules)))\n"
        "print(threading.active_count())"
    )
    assert done.stdout == "[]\n1\n", done.stderr


@pytest.mark.alone
@pytest.mark.skipif(SANITIZED, reason="sanitizers take their time")
def test_import_takes_about_as_long_as_that_of_asyncio(tmp_path):
    """docs/how-to/release.md has the times. If the machine is busy here, both take longer."""
    # As installed: with its modules compiled, which some machines forbid by default.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    times = {"from penstock import Loader": [], "import asyncio": []}
    for _ in range(9):
        for statement, found in times.items():
            code = f"import time; start = time.process_time(); {statement}\n"
            code += "print(time.process_time() - start)"
            found.append(float(run_python(code, env=environment).stdout))
    own, other = (min(found) for found in times.values())
    assert own < 1.5 * other, times


def child_seconds():
    """Of the processor: on an idle machine that is the time of the clock."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.alone
@pytest.mark.skipif(SANITIZED, reason="sanitizers take their time")
def test_command_starts_in_under_60_ms(tmp_path):
    """As installed: compiled, and started by a script such as pip writes."""
    package = pathlib.Path(penstock.__file__).parent
    shutil.copytree(package, tmp_path / "penstock", ignore=shutil.ignore_patterns("*.p", "*.a"))
    assert compileall.compile_dir(tmp_path / "penstock", quiet=1)
    script = tmp_path / "script.py"
    script.write_text("import sys\nfrom penstock._cli import main\nsys.exit(main())\n")
    times = []
    for _ in range(15):
        before = child_seconds()
        subprocess.run([sys.executable, script, "--help"], stdout=subprocess.DEVNULL, timeout=60,
                       check=True, env={**os.environ, "PYTHONPATH": ""})
        times.append(child_seconds() - before)
    assert min(times) < 0.06, times


def test_command_loads_only_what_it_needs():
    done = run_python("import sys, penstock._cli\n"
                      "print([m for m in ('typing', 'datetime', 'penstock._loader') "
                      "if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_names_are_found_without_a_use_before():
    for code in ("import penstock; penstock.Loader", "from penstock import Loader, open",
                 "from penstock import *; Loader, write, __version__",
                 "import penstock; assert {'Loader', '__version__'} <= set(dir(penstock))",
                 "from penstock import ops; ops.decode()", "import penstock.ops"):
        done = run_python(code)
        assert done.returncode == 0, (code, done.stderr)
    wrong = run_python("import penstock; penstock.Lodaer")
    assert "module 'penstock' has no attribute 'Lodaer'" in wrong.stderr


def test_command_is_the_program(tmp_path):
    write_pack(penstock, tmp_path / "a.pen", 3)
    done = command("info", tmp_path / "a.pen")
    assert done.returncode == 0 and "a.pen" in done.stdout, done.stderr
    assert command("--version").stdout == f"penstock {penstock.__version__}\n"
    wrong = command("inof", tmp_path / "a.pen")
    assert wrong.returncode == 2 and "did you mean info" in wrong.stderr


def test_command_packs(tmp_path):
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    from py_tools import jpeg

    for i in range(4):
        (tmp_path / "photos" / "cat" / f"{i}.jpg").write_bytes(jpeg(i))
    done = command("pack", tmp_path / "photos", "-o", tmp_path / "photos.pen")
    assert done.returncode == 0, done.stderr
    assert penstock.open(tmp_path / "photos.pen").classes == ["cat"]


def test_command_ends_quietly_when_nobody_reads(tmp_path):
    """A pipe that was closed ends it as it ends any program, without a traceback."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "penstock", "--help"], stdout=closed, stderr=subprocess.PIPE,
            timeout=60, check=False,
        )
    assert done.stderr == b"" and done.returncode == -signal.SIGPIPE


def test_all_names_exist():
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None


def run_mypy(*args):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, *map(str, args)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=170,
        env={**os.environ, "PYTHONPATH": ""},
    )
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")
@pytest.mark.skipif(SANITIZED, reason="mypy is not what is tested")
def test_types():
    assert "Success" in run_mypy("python/penstock", EXAMPLE)
    wrong = "import penstock\npenstock.ops.tensor('float')\nx: int = penstock.open('a')\n"
    assert run_mypy("-c", wrong).count("error:") == 2
