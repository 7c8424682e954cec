# SPDX-License-Identifier: Apache-2.0
"""One mutant: build it in a copy of the tree, run the nearest tests, restore the copy."""

import filecmp
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess

from coverage import HOME, PYTHON, configure, export, test_environment

CORE = "python/penstock/_core.abi3.so"
UNIT_SECONDS, UNIT_COUNT = 60, 12  # of the nearest unit programs, as measured for the map
PYTEST_SECONDS, PYTEST_COUNT = 40, 150
BUILD_LIMIT = 600  # s


def limit_of(seconds):
    """A test that takes longer than this has been stopped by the mutant."""
    return 20 + 8 * seconds


class Worker:
    """A copy of the tree with a build directory; one mutant at a time."""

    def __init__(self, number, commit):
        self.tree, self.build = HOME / f"w{number}" / "tree", HOME / f"w{number}" / "build"
        update(self.tree, commit)
        if not (self.build / "build.ninja").exists():
            configure(self.tree, self.build)
        package = self.tree / "python" / "penstock"
        names = sorted(p.name for p in package.iterdir() if p.name != "meson.build")
        copies = [f"python/penstock/{name}" for name in names]
        done = self.ninja(["penstock", CORE, "src/libpenstock_all.a", *copies])
        if done.returncode != 0:
            raise SystemExit(
                f"mutate: the original does not build in {self.build}:\n{done.stdout[-3000:]}"
            )

    def ninja(self, targets):
        return subprocess.run(
            ["ninja", "-C", str(self.build), "-j1", *targets],
            capture_output=True,
            text=True,
            timeout=BUILD_LIMIT,
            check=False,
        )

    def run(self, command, seconds):
        """Why a test noticed the mutant, or None."""
        process = subprocess.Popen(
            command,
            cwd=self.tree,
            env=test_environment(self.build),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_of(seconds))
        except subprocess.TimeoutExpired:
            return "ran out of time"
        finally:
            end_group(process)
        if process.returncode in (0, 77):
            return None
        failed = [
            line for line in output.splitlines() if re.match(r"FAILED|ERROR|\S+\.[ch]:\d+: ", line)
        ]
        return (failed or [f"exit {process.returncode}"])[0][:200]

    def run_unit(self, tests):
        """(verdict, why, the tests that noticed)"""
        if tests and self.ninja([name for name, _ in tests]).returncode != 0:
            return "does not build", None, []
        for name, seconds in tests:
            why = self.run([str(self.build / name)], seconds)
            if why:
                return "killed", f"{name}: {why}", [(name, seconds)]
        return "survived", None, []

    def run_pytest(self, tests):
        if tests and self.ninja(["penstock", CORE]).returncode != 0:
            return "does not build", None, []
        command = [str(PYTHON), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        names = [name for name, _ in tests]
        why = self.run(command + names, sum(s for _, s in tests)) if tests else None
        if not why:
            return "survived", None, []
        noticed = [
            test for test in tests if why.startswith(("FAILED " + test[0], "ERROR " + test[0]))
        ]
        return "killed", why, noticed or tests

    def fails_too(self, noticed):
        """Whether tests that noticed a mutant fail without it as well: then they say nothing."""
        if "::" in noticed[0][0]:
            return self.run_pytest(noticed)[0] != "survived"
        return self.run_unit(noticed)[0] != "survived"

    def code_of(self, source):
        """Hashes of what -O2 makes of a source; one for each program that it is part of."""
        commands = json.loads((self.build / "compile_commands.json").read_text())
        place = str(self.tree / source)
        return [
            code_hash(c, self.build)
            for c in commands
            if os.path.normpath(self.build / c["file"]) == place
        ]

    def trial(self, mutant, tests):
        """(verdict, by what) of one mutant. Only a test that passes without it can kill it."""
        for _ in range(4):
            verdict, by, noticed = self.try_once(mutant, tests)
            if verdict != "killed" or not self.fails_too(noticed):
                break
            tests = {kind: [t for t in tests[kind] if t not in noticed] for kind in tests}
        return verdict, by

    def try_once(self, mutant, tests):
        path = self.tree / mutant["file"]
        original = path.read_text()
        lines = original.split("\n")
        lines[mutant["line"] - 1] = mutant["new"]
        mutated = "\n".join(lines)
        is_c = path.suffix == ".c"
        try:
            path.write_text(mutated)
            self.copy_python(mutant["file"])
            found = self.run_unit(tests["unit"])
            if found[0] == "survived":
                found = self.run_pytest(tests["pytest"])
            if found[0] == "survived" and is_c:
                mine = self.code_of(mutant["file"])
        finally:
            path.write_text(original)
            self.copy_python(mutant["file"])
        if found[0] == "survived" and is_c and mine == self.code_of(mutant["file"]):
            found = ("same code", None, [])
        return found

    def copy_python(self, source):
        if source.endswith(".py"):
            shutil.copyfile(self.tree / source, self.build / source)


def end_group(process):
    """Ends what a test left behind: it has a session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    if process.stdout:
        process.stdout.close()


def code_hash(command, build):
    """The hash of the object that a compile command makes with -O2."""
    words = shlex.split(command["command"])
    out = HOME / f"object-{os.getpid()}-{hashlib.sha1(str(build).encode()).hexdigest()[:8]}.o"
    words[words.index("-o") + 1] = str(out)
    words = ["-O2" if w == "-O0" else w for w in words]
    run = subprocess.run(words, cwd=command["directory"], capture_output=True, check=False)
    if run.returncode != 0:
        return None
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    out.unlink()
    return digest


def update(tree, commit):
    """Makes a tree that of a commit; files that stay the same keep their time."""
    fresh = pathlib.Path(str(tree) + ".new")
    export(commit, fresh)
    for path in fresh.rglob("*"):
        old = tree / path.relative_to(fresh)
        if path.is_symlink():
            continue
        if path.is_dir():
            old.mkdir(parents=True, exist_ok=True)
        elif not old.exists() or not filecmp.cmp(path, old, shallow=False):
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, old)
    for old in tree.rglob("*"):
        if (
            old.is_file()
            and "__pycache__" not in old.parts
            and not (fresh / old.relative_to(tree)).exists()
        ):
            old.unlink()
    shutil.rmtree(fresh)
