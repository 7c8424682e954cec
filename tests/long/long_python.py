# SPDX-License-Identifier: Apache-2.0
"""Python and the loader's threads: waiting, fork, Ctrl-C, the interpreter's end, leaks.

Each scene (_python_scenes.py) is played in a process of its own. Storage that does not answer is
made by stalling_read.c. PENSTOCK_SCALE=full plays 1,000 forks, 200 interrupts, 20 times 14 exits
and 10,000 lives of a loader; anything else a few of each.
"""

import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from _package import BUILD, ROOT, Tests, encoded, painted, penstock, scaled

SCENES = ROOT / "tests" / "long" / "_python_scenes.py"
STALLING = BUILD / "tests" / "long" / "libstalling_read.so"
TIME_LIMIT = 60
# A single time may be long where the machine does other things. What waits for storage that does
# not answer takes longer than that, and what has become slow is so in each of several runs.
LATE = 10
N = 64
TRACE = "Traceback (most recent call last):"


def environment(stall, work):
    """`stall`: a part of the paths of files that may stop answering."""
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    if os.environ.get("PENSTOCK_PYTHON") != "installed":
        env["PYTHONPATH"] = str(BUILD / "python")
    env.pop("PYTHONFAULTHANDLER", None)
    if stall:
        env.update(LD_PRELOAD=str(STALLING), STALL_NAME=stall, STALL_WHILE=f"{work}/stall")
    return env


class Complaints(list):
    """What went wrong in a row of cases; the others are tried all the same."""

    def try_case(self, call, *args):
        try:
            return call(*args)
        except AssertionError as error:
            self.append(str(error))
            return None

    def check(self):
        assert not self, f"{len(self)} complaints: " + "; ".join(self[:8])


class Process:
    """A scene, or another command, under way."""

    def __init__(self, work, *command, stall=None, stdin=None):
        if not os.path.exists(str(command[0])):
            command = (sys.executable, SCENES, *command)
        self.what = " ".join(str(word).rsplit("/", 1)[-1] for word in command[1:])
        if stall and os.path.exists(f"{work}/stall"):
            os.unlink(f"{work}/stall")
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(word) for word in command], env=environment(stall, work), cwd=work,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        self.stdin = stdin
        self.said = b""

    def wait_ready(self):
        line = self.process.stdout.readline()
        assert line == b"ready\n", f"{self.what}: {line!r}, {self.end()}"

    def end(self, limit=TIME_LIMIT):
        """(exit code, standard output, standard error, when it ended)."""
        hangs = False
        try:
            out, _ = self.process.communicate(self.stdin, timeout=limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            hangs, (out, _) = True, self.process.communicate()
        when = time.monotonic()
        self.errors.seek(0)
        text = self.errors.read().decode("utf-8", "replace")
        self.errors.close()
        assert not hangs, f"{self.what}: hangs; {out.decode()!r}, {text!r}"
        return self.process.returncode, out.decode(), text, when


def play(work, *command, stall=None, limit=TIME_LIMIT):
    """What a scene says, as a dict of its lines' first words to the rest."""
    process = Process(work, *command, stall=stall)
    code, out, text, _ = process.end(limit)
    assert code == 0 and text == "", f"{process.what}: exit {code}, {text}"
    return dict(line.split(" ", 1) for line in out.splitlines())


# ---- packs


def write(path, images, **settings):
    schema = {"image": "image", "label": "i64"}
    with penstock.Writer(path, schema, block_samples=8, **settings) as writer:
        for i, image in enumerate(images):
            writer.add(key=f"s{i}", image=image, label=i % 3)
    return path


def damage(path, sample):
    with penstock.open(path) as pack:
        data = pack[sample]["image"]
    shard = next(path.glob("*/*.shard"))
    content = bytearray(shard.read_bytes())
    content[bytes(content).find(data) + 50] ^= 1
    shard.write_bytes(content)
    return path


class Packs:
    def __init__(self, work):
        rng = np.random.default_rng(1)
        images = [encoded(painted(rng, 40, 32)) for _ in range(N)]
        large = encoded(painted(rng, 1600, 1200), "JPEG", quality=90)
        self.work = work
        self.small = write(work / "small.pen", images)
        self.damaged = damage(write(work / "damaged.pen", images), 11)
        self.slow = write(work / "slow.pen", [large] * 16)
        self.folder = work / "folder"
        self.folder.mkdir()
        for i in range(400):
            (self.folder / f"{i}.jpg").write_bytes(large)


# ---- waiting


def waits_end_in_time(packs):
    rounds = scaled(5, 1)
    said = play(packs.work, "waits", packs.small, rounds, stall=".shard")
    worst = float(said["worst"])
    assert worst <= LATE, f"{worst} s for a timeout of 1 s"
    return f"{3 * rounds} waits with a timeout of 1 s, the longest {worst:.2f} s"


def passes_are_kept_apart(packs):
    play(packs.work, "begins_anew", packs.small, stall=".shard")
    return "3 passes begun while another was waited for"


def closing_ends_in_time(packs):
    said = play(packs.work, "closes", packs.small, stall=".shard")
    best, worst = float(said["best"]), float(said["worst"])
    assert best <= 3 and worst <= LATE, said
    return f"3 loaders whose storage does not answer closed, the longest {worst:.2f} s"


def threads_run_while_one_waits(packs):
    said = play(packs.work, "counts_on", packs.small, packs.slow, stall=".shard")
    stalled, decoding = int(said["stalled"]), int(said["decoding"])
    assert stalled >= 30 and decoding >= 30, said  # one or none if they do not run
    return f"{stalled} turns in 1 s of stalled storage, {decoding} a second of decoding"


def holding_all_is_an_error(packs):
    said = play(packs.work, "holds", packs.small, scaled(20, 2))
    assert float(said["worst"]) <= 10.0 and int(said["batches"]) > 64, said
    return f"{said['batches']} batches of 16 MiB held, then the error after {said['worst']} s"


def threads_share_a_pass(packs):
    passes = scaled(500, 20)
    said = play(packs.work, "shares", packs.small, passes)
    return f"{passes} passes, {said['took']} batches to the threads"


def errors_can_be_pickled(packs):
    return f"{play(packs.work, 'pickles', packs.small, packs.damaged)['errors']} errors"


# ---- fork


def forks_are_safe(packs):
    n = scaled(1000, 32)
    said = play(packs.work, "forks", packs.small, n, limit=60 + n)
    assert said["bad"] == "0", said
    return f"{n} forks"


def packs_travel(packs):
    n = scaled(30, 4)
    play(packs.work, "starts", packs.small, n, limit=60 + n)
    return f"3 ways to start processes, {n} packs each"


# ---- Ctrl-C


def command_is_interrupted(packs, rng, turn):
    """`penstock pack`, as Python's command and as the program."""
    command = (sys.executable, "-m", "penstock")
    if turn % 2 and os.path.exists(BUILD / "penstock"):
        command = (BUILD / "penstock",)
    out = packs.work / f"packed-{turn}.pen"
    code, tries = 0, 3
    while code == 0 and tries:  # it was faster
        tries -= 1
        shutil.rmtree(out, ignore_errors=True)
        process = Process(packs.work, *command, "pack", packs.folder, "-o", out)
        while not out.exists() and process.process.poll() is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.5))
        sent = time.monotonic()
        process.process.send_signal(signal.SIGINT)
        code, _, text, when = process.end()
    assert code == 130 and "interrupted; " in text and TRACE not in text, f"pack: {code}, {text!r}"
    assert not (out / "manifest").exists() and when - sent <= LATE, f"pack: {when - sent:.2f} s"
    shutil.rmtree(out, ignore_errors=True)
    return 0.0, when - sent


def scene_is_interrupted(packs, rng, name, turn):
    path = packs.slow if name in ("int_decoding", "int_closing") else packs.small
    stall = {"int_stalled": ".shard", "int_beginning": ".shard", "int_opening_stalled": "manifest"}
    process = Process(packs.work, name, path, turn, stall=stall.get(name))
    process.wait_ready()
    time.sleep(rng.uniform(0, 0.4))
    sent = time.monotonic()
    process.process.send_signal(signal.SIGINT)
    code, out, text, when = process.end(30)
    what = f"{name} {turn}: {text!r}"
    found = re.fullmatch(r"interrupted (\d+\.\d+)\n", out)
    assert found, f"{what}: said {out!r}, exit {code}"
    heard = float(found[1]) - sent
    assert when - sent <= LATE, f"{what}: heard after {heard:.2f}, ended after {when - sent:.2f} s"
    assert code == -signal.SIGINT, f"{what}: exit {code}"
    assert text.startswith(TRACE) and text.endswith("KeyboardInterrupt\n"), what
    assert "ignored" not in text, what
    assert not os.path.exists(f"{path}-{turn}/manifest"), f"{what}: a pack was published"
    return heard, when - sent


def interrupts_are_heard(packs):
    names = ("int_stalled", "int_beginning", "int_decoding", "int_opening", "int_opening_stalled",
             "int_closing", "int_writing", "int_between", "command")
    rng, n, times, bad = random.Random(16), scaled(200, 27), {}, Complaints()
    for turn, name in enumerate(itertools.islice(itertools.cycle(names), n)):
        if name == "command":
            spent = bad.try_case(command_is_interrupted, packs, rng, turn // len(names))
        else:
            spent = bad.try_case(scene_is_interrupted, packs, rng, name, turn // len(names))
        if spent:
            times.setdefault(name, []).append(spent)
    bad.check()
    for name, spent in times.items():
        heard, ended = map(min, zip(*spent))
        assert heard <= 1 and ended <= 2, f"{name}: heard {heard:.2f} s, ended {ended:.2f} s after"
    heard, ended = map(max, zip(*itertools.chain(*times.values())))
    return f"{n} moments in {len(names)} states, heard within {heard:.2f} s, over in {ended:.2f} s"


# ---- the end of the interpreter

PYTEST = """
import time, pytest, penstock
loader = penstock.Loader({path!r}, 8, pipeline="decode | center_crop 16 | tensor u8",
                         output="dlpack", threads=2)

@pytest.fixture(scope="session")
def batches():
    yield iter(loader)

def test_loader(batches):
    assert next(batches) is not None
    print()
    print("ending", time.monotonic())
"""
CONSOLE = """
import penstock, time
loader = penstock.Loader({path!r}, 8, output="dlpack", threads=2, pipeline="label: tensor")
it = iter(loader)
b = next(it)
c = print() or print("ending", time.monotonic())
"""


def console(packs):
    code = "import code; code.interact(banner='', exitmsg='', local={})"
    text = CONSOLE.format(path=str(packs.small)).lstrip()
    return Process(packs.work, sys.executable, "-c", code, stdin=text.encode())


def in_pytest(packs):
    file = packs.work / "test_scene.py"
    file.write_text(PYTEST.format(path=str(packs.small)))
    return Process(packs.work, sys.executable, "-m", "pytest", "-q", "-s", "-p",
                   "no:cacheprovider", "-c", "/dev/null", "--rootdir", packs.work, file)


def exit_scene(packs, name):
    path = packs.slow if name == "exit_daemon_decoding" else packs.small
    return Process(packs.work, name, path, stall=".shard" if name == "exit_stalled" else None)


def check_exit(process, code, pattern=""):
    found, out, text, when = process.end(30)
    said = re.findall(r"^(?:>>> )*ending (\d+\.\d+)$", out, re.M)
    what = f"{process.what}: exit {found}, {text!r}"
    assert found == code and said, f"{what}, {out!r}"
    assert re.fullmatch(pattern, text.strip(), re.S), what
    spent = when - float(said[-1])
    assert spent <= LATE, f"{what}: ends after {spent:.2f} s"
    return spent


def exits_are_clean(packs):
    exits = {
        "exit_normal": (0,),
        "exit_exception": (1, re.escape(TRACE) + ".*\nValueError: on purpose"),
        "exit_sys_exit": (3,),
        "exit_global": (0,),
        "exit_cycle": (0,),
        "exit_daemon_thread": (0,),
        "exit_daemon_decoding": (0,),
        "exit_signal": (-signal.SIGTERM,),
        "exit_at_once": (5,),
        "exit_subprocess": (0,),
        "exit_order": (0,),
        "exit_stalled": (0,),
        "pytest": (0,),
        "console": (0,),
    }
    others = {"pytest": in_pytest, "console": console}
    times, worst, bad = scaled(20, 2), {}, Complaints()
    for name, expected in exits.items():
        spent = []
        for _ in range(times):
            process = others[name](packs) if name in others else exit_scene(packs, name)
            spent.append(bad.try_case(check_exit, process, *expected) or 0.0)
        worst[name] = max(spent)
        if min(spent) > 2:
            bad.append(f"{name}: ends after {min(spent):.2f} s or more")
    bad.check()
    assert not list(packs.work.glob("core*")), "a core was written"
    slowest = max(worst, key=worst.get)
    return f"{times} times {len(exits)} exits, the longest {worst[slowest]:.2f} s ({slowest})"


# ---- leaks


def nothing_is_left_behind(packs):
    n = scaled(10000, 300)
    said = play(packs.work, "lives", packs.small, packs.damaged, n, limit=60 + n // 10)
    files, threads, shared, memory = (
        int(said[name]) for name in ("files", "threads", "shared", "memory")
    )
    assert (files, threads, shared) == (0, 0, 0) and memory <= 2**20, said
    return f"{n} loaders: 0 files, 0 threads, {memory / 1024:.0f} KiB after the first 100"


def main():
    tests = Tests("python")
    with tempfile.TemporaryDirectory(prefix="penstock-long-") as work:
        packs = Packs(pathlib.Path(work))
        tests.run("errors can be pickled", errors_can_be_pickled, packs)
        tests.run("threads share a pass", threads_share_a_pass, packs)
        tests.run("holding all batches is an error", holding_all_is_an_error, packs)
        tests.run("waits end in time", waits_end_in_time, packs)
        tests.run("passes are kept apart", passes_are_kept_apart, packs)
        tests.run("closing ends in time", closing_ends_in_time, packs)
        tests.run("threads run while one waits", threads_run_while_one_waits, packs)
        tests.run("forks are safe", forks_are_safe, packs)
        tests.run("packs travel to other processes", packs_travel, packs)
        tests.run("interrupts are heard", interrupts_are_heard, packs)
        tests.run("exits are clean", exits_are_clean, packs)
        tests.run("nothing is left behind", nothing_is_left_behind, packs)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
