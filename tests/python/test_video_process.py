# SPDX-License-Identifier: Apache-2.0
"""Kept videos decoded in processes (PENSTOCK_VIDEO=process): pictures and errors are those of the
decoder in the process of the loader, and no process is left."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import BUILD, is_sanitized
from packet_tools import PLUGIN, decode, need_plugin, output
from py_tools import need_penstock

if is_sanitized(BUILD):
    pytest.skip("what is confined has no sanitizer, and cannot open a plug-in that has one",
                allow_module_level=True)
need_plugin()
os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
penstock = need_penstock()
np = pytest.importorskip("numpy")
import test_video_kept as kept  # noqa: E402: needs the plug-in
from test_video_decode import CASES, random_clips, videos  # noqa: E402, F401: a fixture

ops = penstock.ops
PROGRAM = PLUGIN.parent / "penstock-video-decoder"
PIPELINE = [ops.decode(), ops.clip(4, 2, 1), ops.center_crop(40)]


def children():
    """Numbers of the processes that decode for this one."""
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = file.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue  # it has ended
        if name.startswith("penstock-video") and int(rest.split()[1]) == os.getpid():
            found.append(int(file.parent.name))
    return found


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    return kept.Kept(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setenv("PENSTOCK_VIDEO", "process")
    assert children() == []
    yield
    wait_until(lambda: children() == [])


def loader(packs, **settings):
    settings = {"threads": 2, "order": "sequential", "output": "numpy", **settings}
    return penstock.Loader(packs.kept, 1, pipeline=PIPELINE, **settings)


def clips(packs, **settings):
    with loader(packs, **settings) as batches:
        return [np.array(batch.video) for batch in batches]


@pytest.mark.parametrize("case", CASES)
def test_pictures_and_errors_are_those_of_inline(case, videos, tmp_path):  # noqa: F811
    video = videos(case)
    lines = [line for clip in [video.times, *random_clips(video, 1, 4)]
             for line in video.clip(set(clip))]
    for seed in range(1, 6):
        lines += [f"damage {seed}", *video.clip(set(video.times[seed:seed + 12])), "damage 0"]
    lines += video.clip(set(video.times[:3]))
    inline, process = (decode(lines, tmp_path, PENSTOCK_VIDEO=mode)
                       for mode in ("inline", "process"))
    assert process.lines == inline.lines
    assert process.pixels == inline.pixels
    assert (process.stderr, inline.times[-3:]) == ("", video.times[:3])


def test_loaders(packs, in_process):
    expected = clips_inline(packs)
    with loader(packs) as batches:
        got = [np.array(batch.video) for batch in batches]
        assert 1 <= len(children()) <= 2
    assert all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))
    assert len(expected) == len(packs.paths)


def clips_inline(packs):
    mode = os.environ.pop("PENSTOCK_VIDEO")
    try:
        return clips(packs)
    finally:
        os.environ["PENSTOCK_VIDEO"] = mode


def test_single_samples(packs, in_process):
    expected = clips_inline(packs)
    data = penstock.Dataset(packs.kept, pipeline=PIPELINE, output="numpy")
    for i, clip in enumerate(expected):
        assert np.array_equal(data[i].video, clip[0])
    assert len(children()) == 1
    # From a thread that ends: its process ends with it, and the next thread starts another one.
    for _ in range(3):
        thread = threading.Thread(target=data.__getitem__, args=(0,))
        thread.start()
        thread.join()
    assert np.array_equal(data[1].video, expected[1][0])
    pixels = packs.kept[0]["video"][:3].decode()
    del data
    wait_until(lambda: children() == [])
    assert pixels.shape == (3, 48, 64, 3)


def test_a_process_that_is_killed_between_clips_is_replaced(packs, in_process):
    expected = clips_inline(packs)
    data = penstock.Dataset(packs.kept, pipeline=PIPELINE, output="numpy")
    assert np.array_equal(data[0].video, expected[0][0])
    (first,) = children()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: "Z" in pathlib.Path(f"/proc/{first}/stat").read_text().rsplit(")", 1)[1])
    assert np.array_equal(data[0].video, expected[0][0])
    assert children() != [first]


def test_a_fork_leaves_the_process_alone(packs, in_process):
    expected = clips_inline(packs)
    data = penstock.Dataset(packs.kept, pipeline=PIPELINE, output="numpy")
    assert np.array_equal(data[0].video, expected[0][0])
    before = children()
    number = os.fork()
    if number == 0:
        del data
        gc.collect()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 7
    assert np.array_equal(data[1].video, expected[1][0])
    assert children() == before


def test_descriptors_are_closed(packs, in_process):
    def files():
        return len(os.listdir("/proc/self/fd"))

    clips(packs)
    before = files()
    for _ in range(5):
        clips(packs)
    assert files() <= before


def test_other_modes_are_refused(packs, monkeypatch):
    monkeypatch.setenv("PENSTOCK_VIDEO", "thread")
    with pytest.raises(penstock.InvalidError,
                       match="PENSTOCK_VIDEO: expected inline or process, found 'thread'"):
        clips(packs)
    for same in ("", "inline"):
        monkeypatch.setenv("PENSTOCK_VIDEO", same)
        assert len(clips(packs)) == len(packs.paths)
        assert children() == []


# ---- processes that do not decode


SCRIPT = """
import penstock, sys
from penstock import ops
pipeline = [ops.decode(), ops.clip(4, 1, 9), ops.center_crop(8)]
settings = dict(pipeline=pipeline, order="sequential", output="numpy", threads=1)
for i in range(6):
    try:
        (batch,) = penstock.Loader(sys.argv[1], 1, subset=[i], **settings)
        print(batch.video.shape, batch.video.min(), batch.video.max())
    except penstock.Error as error:
        print(type(error).__name__, error)
with penstock.Loader(sys.argv[1], 1, on_bad="substitute", **settings) as loader:
    print(sum(len(batch.video) for batch in loader), len(loader.bad_samples()))
"""


def beside(folder, plugin, program=PROGRAM):
    """A copy of a plug-in with a program beside it."""
    for path in filter(None, (plugin, program)):
        name = PROGRAM.name if path == program else path.name
        (folder / name).write_bytes(path.read_bytes())
        (folder / name).chmod(0o755)
    return folder / plugin.name


def lines_of_script(packs, library, script=SCRIPT):
    env = {**os.environ, "PENSTOCK_VIDEO": "process", "PENSTOCK_VIDEO_LIBRARY": str(library)}
    done = subprocess.run([sys.executable, "-c", script, packs.folder / "kept.pen"], env=env,
                          capture_output=True, text=True, check=True, timeout=150)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_crash_is_the_error_of_one_sample(packs, tmp_path):
    """And names the first frame that was wanted."""
    lines = lines_of_script(packs, beside(tmp_path, next(BUILD.glob("tests/video/*odd_plugin.so"))))
    fine, full_range = "(1, 4, 8, 8, 3) 130 130", "(1, 4, 8, 8, 3) 128 128"
    no_reply = "video decoder process: expected a reply, found that "
    for i, (start, end) in {
            1: ("b-hevc.mp4", no_reply + "it crashed (signal 6)"),
            2: ("c-vp9.mkv", "video decoder process: expected it to take at most 768 MiB, found "
                             "that it needs more"),
            4: ("e-mpeg4.mp4", no_reply + "it ended with code 4: a message of a library")}.items():
        assert lines[i].startswith(f"DecodeError sample {i} '{start}': frame 9 at 0.36"), lines[i]
        assert lines[i].endswith(end)
        lines[i] = fine
    assert lines[:6] == [*[fine] * 5, full_range]  # the file of f-mjpeg.mkv states it
    assert lines[6] == f"{len(packs.paths)} 4"  # i-colors.mkv is MPEG-4, too


HANGING = """
import penstock, sys, threading
from penstock import ops
settings = dict(pipeline=[ops.decode(), ops.clip(4, 1, 9), ops.center_crop(8)], output="numpy")
lines = {}
def report(name, call):
    try:
        lines[name] = call()
    except penstock.DecodeTimeoutError as error:
        lines[name] = error
loader = penstock.Loader(sys.argv[1], 1, on_bad="substitute", order="sequential", threads=1,
                         **settings)
data = penstock.Dataset(sys.argv[1], **settings)
calls = {"loader": lambda: [len(batch.video) for batch in loader], "dataset": lambda: data[1]}
threads = [threading.Thread(target=report, args=item) for item in calls.items()]
for thread in threads: thread.start()
for thread in threads: thread.join()
for name in calls: print(name, lines[name])
print(len(loader.bad_samples()))
"""


@pytest.mark.slow  # it waits for the time limit
def test_a_hang_is_an_error_that_nothing_replaces(packs, tmp_path):
    library = beside(tmp_path, next(BUILD.glob("tests/video/*hanging_plugin.so")))
    lines = lines_of_script(packs, library, HANGING)
    for name, line in zip(("loader", "dataset"), lines, strict=False):
        assert line.startswith(f"{name} sample 1 'b-hevc.mp4': frame 9 at 0.36"), line
        assert "expected a reply within 60 s, found none; stopped" in line
    assert lines[2] == "0"


def test_without_the_program(tmp_path):
    library = beside(tmp_path, PLUGIN, None)
    (error,) = decode(["stream 5 64 48 -"], tmp_path, PENSTOCK_VIDEO="process",
                      PENSTOCK_VIDEO_LIBRARY=str(library)).errors
    assert error == (f"-10 {tmp_path / PROGRAM.name}: cannot run the video decoder (No such file "
                     "or directory). Install it beside its library, or set PENSTOCK_VIDEO=inline "
                     "if you trust the videos")


def test_the_program_runs_only_for_penstock():
    done = subprocess.run([PROGRAM], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "penstock-video-decoder is started by penstock\n"


def test_it_is_confined(packs, in_process):
    data = penstock.Dataset(packs.kept, pipeline=PIPELINE, output="numpy")
    data[0]
    (number,) = children()
    text = pathlib.Path(f"/proc/{number}/status").read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert (status["Seccomp"], status["NoNewPrivs"], status["Threads"]) == ("2", "1", "1")
    limits = output("cat", f"/proc/{number}/limits").decode()
    assert f"Max address space         {768 << 20}" in limits
    environment = pathlib.Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
    assert {word.split(b"=")[0] for word in environment} <= {
        b"", b"LC_ALL", b"MALLOC_ARENA_MAX", b"AV_LOG_FORCE_NOCOLOR", b"LD_LIBRARY_PATH"}
