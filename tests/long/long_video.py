# SPDX-License-Identifier: Apache-2.0
"""Videos that are damaged, and an ffmpeg that is killed while it works.

A damaged video is packed as what can be read of it, or is left out by name; nothing crashes or
hangs, no process stays behind, and what was packed can be read. After kills of ffmpeg the pack is
that of an undisturbed run, at once or when the same command is run again.
"""

import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import _program as program
from _program import Sweep, scaled

SECONDS = 20  # what one video may take
BATCH = 20
KINDS = {
    "h264.mp4": ("-c:v", "libx264", "-bf", "2"),
    "mpeg4.avi": ("-c:v", "mpeg4", "-q:v", "4"),
    "vp8.webm": ("-c:v", "libvpx", "-b:v", "300k"),
    "h264.ts": ("-c:v", "libx264", "-g", "5"),
    "mpeg2.mpg": ("-c:v", "mpeg2video"),
    "mjpeg.mov": ("-c:v", "mjpeg", "-pix_fmt", "yuvj420p"),
    "vp9.mkv": ("-c:v", "libvpx-vp9", "-b:v", "200k", "-deadline", "realtime"),
}


def make_video(path, *options, size="96x64", seconds=1, seed=0):
    source = f"testsrc=size={size}:rate=15:duration={seconds},hue=h={seed * 17}"
    subprocess.run(
        ["ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", source, "-pix_fmt",
         "yuv420p", *options, path], check=True)


def damaged(data, dice):
    data = bytearray(data)
    how = dice.choice(("flip", "flip", "cut", "zero", "swap", "insert", "number", "head"))
    if how == "cut":
        return bytes(data[: dice.randrange(len(data))])
    at = dice.randrange(len(data))
    if how == "flip":
        for _ in range(dice.choice((1, 3, 30))):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif how == "head":
        for _ in range(8):
            data[dice.randrange(min(200, len(data)))] = dice.choice((0, 1, 127, 128, 255))
    elif how == "zero":
        n = dice.randrange(1, 2000)
        data[at : at + n] = bytes(len(data[at : at + n]))
    elif how == "swap":
        n, other = dice.randrange(1, 1000), dice.randrange(len(data))
        data[at : at + n], data[other : other + n] = data[other : other + n], data[at : at + n]
    elif how == "insert":
        data[at:at] = dice.randbytes(dice.randrange(1, 500))
    else:
        data[at : at + 4] = dice.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0\0\0\1"))
    return bytes(data)


def processes_of(place):
    """Numbers of the ffmpeg processes that were given a file below this place."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"ffmpeg") and any(str(place).encode() in word for word in words):
            found.append(int(folder.name))
    return found


def check_batch(sweep, folder, out, names):
    """Packs a folder of damaged videos and a good one."""
    begin = time.monotonic()
    code, text = program.run(
        "pack", folder, "-o", out, "--kind", "videos", "--on-bad", "skip", "--max-bad", len(names),
        "--video-seconds", SECONDS, "--threads", 2, limit=SECONDS * len(names))
    seconds = time.monotonic() - begin
    if code != 0:
        sweep.complain(f"exit {code}: {text}")
        return 0, seconds
    report = pathlib.Path(f"{out}-bad.jsonl")
    bad = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    for entry in bad:
        if entry["key"] not in names or entry["key"] not in entry["why"]:
            sweep.complain(f"not named: {entry}")
    info = json.loads(subprocess.run([program.BIN, "info", out, "--json"], capture_output=True,
                                     check=True).stdout)
    if info["samples"] + len(bad) != len(names) + 1:
        sweep.complain(f"{info['samples']} packed and {len(bad)} broken of {len(names) + 1}")
    code, text = program.run("verify", out, "--decode")
    if code != 0:
        sweep.complain(f"verify: {text}")
    if processes_of(folder):
        sweep.complain("an ffmpeg is left behind")
    return len(bad), seconds


def sweep_damage(top, n, dice):
    sweep = Sweep("damaged videos")
    good = {}
    for name, options in KINDS.items():
        path = pathlib.Path(top) / name
        make_video(path, *options)
        good[name] = path.read_bytes()
    bad, longest = 0, 0.0
    while sweep.n < n:
        folder = pathlib.Path(top) / "damaged"
        folder.mkdir()
        names = []
        for i in range(min(BATCH, n - sweep.n)):
            kind = dice.choice(sorted(good))
            names.append(f"{sweep.n + i:05d}-{kind}")
            (folder / names[-1]).write_bytes(damaged(good[kind], dice))
        (folder / "good.mp4").write_bytes(good["h264.mp4"])
        out = f"{top}/damaged.pen"
        broken, seconds = check_batch(sweep, folder, out, names)
        bad += broken
        longest = max(longest, seconds / len(names))
        sweep.n += len(names)
        shutil.rmtree(folder)
        shutil.rmtree(out, ignore_errors=True)
        pathlib.Path(f"{out}-bad.jsonl").unlink(missing_ok=True)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if memory > 4096:
        sweep.complain(f"a process took {memory:.0f} MiB")
    sweep.end(f"{sweep.n} videos, {bad} left out as broken, at most {memory:.0f} MiB in a process, "
              f"{longest:.2f} s each in the slowest batch")


class Killer(threading.Thread):
    """Kills one ffmpeg that works below a place, some time after it was first seen."""

    def __init__(self, place, wait, number):
        super().__init__(daemon=True)
        self.place, self.wait, self.number, self.done = place, wait, number, False
        self.hits = 0

    def run(self):
        while not self.done and not self.hits:
            for process in processes_of(self.place):
                time.sleep(self.wait)
                try:
                    os.kill(process, self.number)
                    self.hits += 1
                except ProcessLookupError:
                    pass
                break
            time.sleep(0.002)


def sweep_kills(top, n, dice):
    sweep = Sweep("kills of ffmpeg")
    folder = pathlib.Path(top) / "clips"
    folder.mkdir()
    for i in range(4):
        make_video(folder / f"{i}.mp4", "-c:v", "libx264", size="320x240", seconds=2, seed=i)
    command = ("pack", folder, "-o", f"{top}/k.pen", "--threads", 2, "--block-samples", 1,
               "--shard-bytes", "50KiB")
    program.must(*command)
    right = program.tree(f"{top}/k.pen")
    again = late = 0
    while sweep.n < n and late < n + 100:
        shutil.rmtree(f"{top}/k.pen")
        number = dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
        killer = Killer(folder, dice.random() * 0.1, number)
        killer.start()
        code, text = program.run(*command)
        killer.done = True
        killer.join()
        if code != 0 and "by another process" in text:
            again += 1
            code, text = program.run(*command)
        if code != 0:
            sweep.complain(f"exit {code}: {text}")
            continue
        sweep.n += killer.hits
        late += not killer.hits
        wrong = program.difference(right, program.tree(f"{top}/k.pen"))
        if wrong:
            sweep.complain(f"signal {number}: {wrong}")
    if sweep.n < n:
        sweep.complain("ffmpeg ends before it can be killed")
    sweep.end(f"{sweep.n} kills, {late} came too late, {again} runs had to be run again")


def main():
    if not shutil.which("ffmpeg"):
        sys.exit("long_video.py: needs ffmpeg")
    dice = random.Random(8)
    with program.scratch() as top:
        sweep_damage(top, scaled(500, 20), dice)
        sweep_kills(top, scaled(200, 4), dice)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
