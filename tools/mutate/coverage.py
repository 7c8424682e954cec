# SPDX-License-Identifier: Apache-2.0
"""Which tests run which lines: a build with gcov's counters, and every fast test once.

Of unit programs it knows the lines, of pytest's tests the functions. The record is map.json."""

import concurrent.futures
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import gcov_files

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HOME = ROOT / "build" / "mutate"
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
LONG_UNIT, LONG_PYTEST = 120, 60  # s; longer tests are not run for a mutant
UNIT_LIMIT = 300
PYTEST_LIMIT = 1800
# Tests of the documents, the servers, the benchmarks and other packages: near to no line.
NOT_NEAR = (
    "bench_",
    "remote_same",
    "net_stage",
    "py_docs",
    "py_examples",
    "py_lightning",
    "py_torch",
    "py_distributed",
    "s3_docs",
    "training_docs",
)
SOURCES = ("src/", "cli/", "python/")

DUMP = """
void __gcov_dump(void);
void __gcov_reset(void);
__attribute__((visibility("default"))) void mutate_dump(void);
void mutate_dump(void)
{
    __gcov_dump();
    __gcov_reset();
}
"""


def export(commit, folder):
    """The tree of a commit, as files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", commit], stdout=subprocess.PIPE)
    subprocess.run(["tar", "x", "-C", str(folder)], stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        sys.exit(f"mutate: git archive {commit} failed")


def configure(tree, build, *options):
    run = subprocess.run(
        [
            "meson",
            "setup",
            str(build),
            str(tree),
            "-Dbuildtype=plain",
            "-Doptimization=0",
            "-Db_ndebug=true",
            *options,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        sys.exit(f"mutate: meson setup {build}:\n{run.stdout[-3000:]}")


def build_with_counters(commit):
    tree, build = HOME / "cov" / "tree", HOME / "cov" / "build"
    if (build / "done").exists() and (build / "done").read_text() == commit:
        return
    shutil.rmtree(build, ignore_errors=True)
    export(commit, tree)
    with open(tree / "python/core/py_module.c", "a") as file:
        file.write(DUMP)
    configure(tree, build, "-Db_coverage=true")
    log = HOME / "cov" / "ninja.log"
    with open(log, "w") as file:
        if subprocess.run(["ninja", "-C", str(build)], stdout=file, check=False).returncode != 0:
            sys.exit(f"mutate: the build with counters failed: {log}")
    (build / "done").write_text(commit)


def test_environment(build):
    env = dict(
        os.environ,
        PENSTOCK_BUILD=str(build),
        PENSTOCK=str(build / "penstock"),
        PYTHONDONTWRITEBYTECODE="1",
    )
    env.pop("PYTHONPATH", None)
    return env


def lines_run(folder, build):
    """{source: lines run} of the counters below a folder, by gcov."""
    built = pathlib.Path(str(folder) + str(build))
    names = []
    for path in built.rglob("*.gcda"):
        note = build / path.relative_to(built).with_suffix(".gcno")
        if note.exists() and gcov_files.functions_run(path.read_bytes()):
            path.with_suffix(".gcno").symlink_to(note)
            names.append(str(path))
    found = {}
    out = tempfile.mkdtemp(prefix="mutate-gcov-")
    for i in range(0, len(names), 100):
        subprocess.run(
            ["gcov", "-j", *names[i : i + 100]], cwd=out, capture_output=True, check=True
        )
    for path in pathlib.Path(out).glob("*.gcov.json.gz"):
        for file in json.loads(gzip.open(path).read())["files"]:
            source = file["file"].removeprefix("../tree/")
            if source.startswith(SOURCES):
                run = (line["line_number"] for line in file["lines"] if line["count"])
                found.setdefault(source, set()).update(run)
    shutil.rmtree(out)
    return {source: sorted(run) for source, run in found.items()}


def cover_unit(program, build, out):
    """One unit program: its seconds and its lines; nothing when it fails."""
    record = out / f"{program.name}.json"
    if record.exists():
        return
    folder = tempfile.mkdtemp(prefix="mutate-unit-", dir="/dev/shm")
    env = dict(test_environment(build), GCOV_PREFIX=folder)
    start = time.monotonic()
    try:
        code = subprocess.run(
            [str(program)],
            env=env,
            cwd=HOME / "cov" / "tree",
            timeout=UNIT_LIMIT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        code = -1
    seconds = time.monotonic() - start
    lines = lines_run(folder, build) if code == 0 else {}
    shutil.rmtree(folder)
    name = str(program.relative_to(build))
    record.write_text(
        json.dumps(
            {"test": name, "seconds": round(seconds, 2), "failed": code != 0, "lines": lines}
        )
    )


def cover_pytest(file, build, out):
    """One file of pytest: a line for each test in its .jsonl."""
    base = out / file.stem
    if base.with_suffix(".done").exists():
        return
    base.with_suffix(".jsonl").unlink(missing_ok=True)
    env = dict(test_environment(build), MUTATE_OUT=str(base), PYTHONPATH=str(HERE))
    with open(base.with_suffix(".log"), "w") as log:
        try:
            subprocess.run(
                [
                    str(PYTHON),
                    "-m",
                    "pytest",
                    "-q",
                    "-p",
                    "pytest_cover",
                    "-p",
                    "no:cacheprovider",
                    str(file),
                ],
                env=env,
                cwd=HOME / "cov" / "tree",
                timeout=PYTEST_LIMIT,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            log.write("ran out of time\n")
    base.with_suffix(".done").touch()


def function_table(build):
    """{object: {ident: (source, first line, last line)}} of the whole build."""
    table = {}
    for note in build.rglob("*.gcno"):
        functions = {
            ident: (source.removeprefix("../tree/"), first, last)
            for ident, (source, first, last) in gcov_files.functions_of(note.read_bytes()).items()
        }
        table[str(note.with_suffix(".gcda")).lstrip("/")] = functions
    return table


def add_pytest(map_, record, table):
    name = record["test"]
    if record["seconds"] <= LONG_PYTEST:
        map_["tests"][name] = record["seconds"]
    spans = set()
    for object_, idents in record["functions"].items():
        spans.update(table.get(object_, {}).get(ident) for ident in idents)
    for span in spans - {None}:
        source, first, last = span
        if source.startswith(SOURCES):
            map_["functions"].setdefault(source, {}).setdefault(f"{first}-{last}", []).append(name)
    for file, line in record["lines"]:
        map_["lines"].setdefault(f"python/penstock/{file}", {}).setdefault(str(line), []).append(
            name
        )


def make_map(commit, out, build):
    map_ = {"commit": commit, "tests": {}, "lines": {}, "functions": {}, "covered": {}}
    for path in sorted(out.glob("*.json")):
        record = json.loads(path.read_text())
        if record["failed"]:
            continue
        if record["seconds"] <= LONG_UNIT:
            map_["tests"][record["test"]] = record["seconds"]
        for source, lines in record["lines"].items():
            for line in lines:
                map_["lines"].setdefault(source, {}).setdefault(str(line), []).append(
                    record["test"]
                )
    table = function_table(build)
    for path in sorted(out.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if not record["failed"]:
                add_pytest(map_, record, table)
    covered = {source: set(map(int, lines)) for source, lines in map_["lines"].items()}
    for path in out.glob("*.lines"):
        for source, lines in json.loads(path.read_text()).items():
            covered.setdefault(source, set()).update(lines)
    map_["covered"] = {source: sorted(lines) for source, lines in sorted(covered.items())}
    return map_


def add_lines_of_pytest(out, build):
    for base in out.glob("*.done"):
        folder = base.with_suffix("")
        if folder.is_dir() and not base.with_suffix(".lines").exists():
            base.with_suffix(".lines").write_text(json.dumps(lines_run(folder, build)))


def cover(commit, jobs):
    """The map of a commit, made unless it is there."""
    path = HOME / "map.json"
    if path.exists() and json.loads(path.read_text())["commit"] == commit:
        return json.loads(path.read_text())
    build_with_counters(commit)
    build, tree = HOME / "cov" / "build", HOME / "cov" / "tree"
    out = HOME / "cov" / f"out-{commit[:12]}"
    out.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        work = [
            pool.submit(cover_unit, build / "tests" / kind / file.stem, build, out)
            for kind, glob in (("unit", "test_*.c"), ("kernels", "check_*.c"))
            for file in sorted((tree / "tests" / kind).glob(glob))
        ]
        work += [
            pool.submit(cover_pytest, file.relative_to(tree), build, out)
            for file in sorted((tree / "tests" / "python").glob("test_*.py"))
            if not file.stem.removeprefix("test_").startswith(NOT_NEAR)
        ]
        for item in work:
            item.result()
    add_lines_of_pytest(out, build)
    map_ = make_map(commit, out, build)
    path.write_text(json.dumps(map_))
    return map_
