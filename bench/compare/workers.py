# SPDX-License-Identifier: Apache-2.0
"""Worker processes from the outside: commands, deadlines, processor time and memory."""

import json
import os
import pathlib
import select
import signal
import subprocess
import threading
import time

from compare import environments
from compare.places import BENCH

TICK = os.sysconf("SC_CLK_TCK")
PREPARE_SECONDS, TURN_SECONDS = 3600, 900


def stat_of(pid):
    """(parent, processor seconds with those of children that ended), or None: it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / TICK


def tree(pid):
    """{pid: processor seconds} of a process and all below it."""
    stats = {int(name): stat_of(name) for name in os.listdir("/proc") if name.isdigit()}
    stats = {key: value for key, value in stats.items() if value}
    inside, grew = {pid} & stats.keys(), True
    while grew:
        more = {p for p, (parent, _) in stats.items() if parent in inside} - inside
        inside, grew = inside | more, bool(more)
    return {p: stats[p][1] for p in inside}


def memory_of(pid):
    """Bytes of a process's own: anonymous and shared memory by its share of them, no file pages."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0
    rows = dict(line.split(":", 1) for line in text.splitlines()[1:] if ":" in line)
    return sum(int(rows[key].split()[0]) for key in ("Pss_Anon", "Pss_Shmem") if key in rows) * 1024


class MemoryWatch:
    """The highest memory of a tree while the block runs. It costs time: not for what is counted."""

    def __init__(self, pid, every=0.05):
        self.pid, self.every, self.peak = pid, every, 0
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.end.wait(self.every):
            self.peak = max(self.peak, sum(memory_of(pid) for pid in tree(self.pid)))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()


def end_session(process):
    """Ends a process that leads a session, and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def result_of(answer, log):
    if not answer.pop("ok"):
        raise environments.Absent(f"{answer['error']} (log: {log})")
    return answer


def ask_once(command, task, seconds, log, env=None):
    """The answer of a process of its own to one task; what it started ends with it."""
    with open(log, "wb") as file:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=file, env=env, start_new_session=True, text=True)
    try:
        text, _ = child.communicate(json.dumps(task), timeout=seconds)
    except subprocess.TimeoutExpired:
        raise environments.Absent(f"no answer in {seconds} s (log: {log})") from None
    finally:
        end_session(child)
    if not text:
        raise environments.Absent(f"its process ended with {child.returncode} (log: {log})")
    return result_of(json.loads(text), log)


class Worker:
    """One loader's process; with another folder than loaders, that of another kind of module."""

    def __init__(self, name, spec, python, log, folder="loaders"):
        self.name, self.spec, self.log = name, spec, log
        variables = {**os.environ, **spec["variables"], "PYTHONUNBUFFERED": "1"}
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [python, BENCH / folder / "serve.py", spec["module"]], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=file, env=variables, start_new_session=True)

    def line(self, deadline):
        stdout = self.process.stdout
        if not select.select([stdout], [], [], max(0, deadline - time.monotonic()))[0]:
            raise environments.Absent(f"no answer in time (log: {self.log})")
        line = stdout.readline()
        if not line:
            code = self.process.wait()
            raise environments.Absent(f"its process ended with {code} (log: {self.log})")
        return json.loads(line)

    def ask(self, seconds, **command):
        try:
            self.process.stdin.write((json.dumps(command) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its end is told below
        return result_of(self.line(time.monotonic() + seconds), self.log)

    def prepare(self, task):
        return self.ask(PREPARE_SECONDS, do="prepare", task=task)

    def turn(self, **parameters):
        before = tree(self.process.pid)
        answer = self.ask(TURN_SECONDS, do="turn", **parameters)
        after = tree(self.process.pid)
        answer["cpu"] = sum(after.values()) - sum(before.values())
        return answer

    def check(self, reference):
        try:
            return self.ask(TURN_SECONDS, do="check", reference=str(reference))
        except environments.Absent as why:
            return {"error": str(why)}

    def stop(self):
        end_session(self.process)
        self.process.stdin.close()
        self.process.stdout.close()
