# SPDX-License-Identifier: Apache-2.0
"""penstock-video as its users get it: tests/wheel/check_video.py WHEEL --penstock WHEEL --sources F

Both wheels go into a new environment, where videos of all codecs are packed and decoded. Their
pixels are those of the plug-in in build/video, which uses the system's FFmpeg, also while
torchcodec and PyAV decode in the same process; --beside names directories in which these are
installed. With PENSTOCK_VIDEO=process they are the same, too, and the process is confined. The
tests of the plug-in and of its program run with those of the wheel.

Ends with "N passed, M failed"."""

import argparse
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import check_wheel
from check_wheel import ROOT, check, results, run

BUILT = ROOT / "build/video/libpenstock-video.so.0"
TESTS = tuple(f"tests/python/test_video_{name}.py" for name in ("decode", "kept", "process"))
X264 = ("-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "12")
VIDEOS = {
    "h264.mp4": X264,
    "hevc.mp4": ("-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-x265-params",
                 "log-level=none:keyint=12"),
    "vp8.mkv": ("-c:v", "libvpx", "-pix_fmt", "yuv420p", "-g", "12", "-cpu-used", "8"),
    "vp9.mkv": ("-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-g", "12", "-cpu-used", "8"),
    "av1.mkv": ("-c:v", "libsvtav1", "-pix_fmt", "yuv420p", "-g", "12", "-preset", "12"),
    "mpeg4.mp4": ("-c:v", "mpeg4", "-pix_fmt", "yuv420p", "-g", "12", "-bf", "2"),
    "mjpeg.mkv": ("-c:v", "mjpeg", "-pix_fmt", "yuvj420p"),
}
FRAMES = 36
# All frames of each video, and clips at random places.
DECODE = """
import hashlib, penstock

def digests(path):
    found, pack = {}, penstock.open(path)
    for i in range(len(pack)):
        digest = hashlib.sha256()
        for seed, clip in enumerate(("clip FRAMES 1 0", "clip 5 2", "clip 5 2")):
            pipeline = f"decode | {clip} | center_crop 96 | tensor u8"
            loader = penstock.Loader(pack, 1, subset=[i], seed=seed, shuffle=True, threads=1,
                                     output="dlpack", pipeline=pipeline)
            for batch in loader:
                digest.update(memoryview(batch.video))
        found[pack.key(i)] = digest.hexdigest()
    return found

def mapped(name):
    lines = [line.split() for line in open("/proc/self/maps")]
    return sorted({line[-1] for line in lines if len(line) > 5 and name in line[-1]})
""".replace("FRAMES", str(FRAMES))
PRINT = """
import json, sys
print(json.dumps({"found": digests(sys.argv[1]), "plugins": mapped("libpenstock-video"),
                  "others": mapped("libavcodec")}))
"""
# What a process that decodes may do, while it exists.
CONFINED = """
import json, pathlib, penstock, sys

pipeline = "decode | clip 2 1 0 | center_crop 96 | tensor u8"
with penstock.Loader(sys.argv[1], 1, threads=1, output="dlpack", pipeline=pipeline) as loader:
    next(iter(loader))
    threads = pathlib.Path("/proc/self/task").iterdir()
    (number,) = [n for thread in threads for n in (thread / "children").read_text().split()]
    child = pathlib.Path("/proc", number)
    lines = [line.split(":\\t", 1) for line in (child / "status").read_text().splitlines()]
    found = {"status": {line[0]: line[1] for line in lines if len(line) == 2},
             "limits": (child / "limits").read_text(), "program": str((child / "exe").readlink()),
             "maps": (child / "maps").read_text(), "environment": (child / "environ").read_text(),
             "files": [str(file.readlink()) for file in (child / "fd").iterdir()]}
print(json.dumps(found))
"""
REFUSED = """
import json, penstock, sys

try:
    digests(sys.argv[1])
except penstock.UnsupportedError as error:
    print(json.dumps(str(error)))
"""
# What others decode; torchcodec's frames are those of the system's FFmpeg, PyAV's of its own.
OTHERS = """
import hashlib

def of_av(path):
    import av
    digest = hashlib.sha256()
    with av.open(path) as container:
        for frame in container.decode(video=0):
            digest.update(memoryview(frame.to_ndarray()))
    return digest.hexdigest()

def of_torchcodec(path):
    from torchcodec.decoders import VideoDecoder
    return hashlib.sha256(memoryview(VideoDecoder(path)[:].contiguous().numpy())).hexdigest()
"""
NAMES = f"NAMES = {list(VIDEOS)}\n"
ALONE = """
import json, sys
print(json.dumps({n: globals()[sys.argv[2]](f"{sys.argv[1]}/{n}") for n in NAMES}))
"""
# In this order, then all at once.
TOGETHER = """
import concurrent.futures, json, sys
videos, pack, order = sys.argv[1], sys.argv[2], sys.argv[3:]
uses = {"ours": lambda: digests(pack),
        "av": lambda: {n: of_av(f"{videos}/{n}") for n in NAMES},
        "torchcodec": lambda: {n: of_torchcodec(f"{videos}/{n}") for n in NAMES}}
found = [(name, uses[name]()) for name in order]
with concurrent.futures.ThreadPoolExecutor(6) as pool:
    names = [*uses, *uses]
    found += zip(names, pool.map(lambda name: uses[name](), names))
print(json.dumps({"found": found, "plugins": mapped("libpenstock-video"),
                  "others": mapped("libavcodec")}))
"""
ORDERS = (("ours", "av", "torchcodec", "ours"), ("av", "torchcodec", "ours", "av", "torchcodec"),
          ("torchcodec", "ours", "torchcodec"))


class Stage:
    """The environment with both wheels, the videos, and a pack of them."""

    def __init__(self, folder, options):
        self.folder, self.videos, self.pack = folder, folder / "videos", folder / "kept.pen"
        self.python, self.site = check_wheel.install(options.penstock.resolve(), folder, None, None)
        run(*self.python, "-m", "pip", "install", "-q", "--no-deps", "--no-index",
            options.wheel.resolve(), seconds=300)
        self.plugin = self.site / "penstock_video/libpenstock-video.so.0"
        self.program = self.plugin.with_name("penstock-video-decoder")
        # Behind its own.
        (self.site / "beside.pth").write_text("".join(f"{place}\n" for place in options.beside))
        self.write()

    def write(self):
        self.videos.mkdir()
        for name, options in VIDEOS.items():
            run("ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
                "testsrc2=s=320x240:r=25", "-frames:v", str(FRAMES), *options, self.videos / name)
        run(*self.python, "-m", "penstock", "pack", self.videos, "--video", "keep", "-o", self.pack,
            env=self.environment())

    def environment(self, **more):
        lacking = ("PENSTOCK_VIDEO", "PENSTOCK_VIDEO_LIBRARY", "PYTHONPATH")
        found = {name: value for name, value in os.environ.items() if name not in lacking}
        return {**found, "PYTHONNOUSERSITE": "1", "OMP_NUM_THREADS": "1", **more}

    def run(self, text, *arguments, **env):
        return json.loads(run(*self.python, "-c", text, *arguments, env=self.environment(**env),
                              seconds=600))

    def decode(self, **env):
        return self.run(DECODE + PRINT, self.pack, **env)


def system_pixels(stage):
    """As this build decodes them with the system's FFmpeg."""
    env = stage.environment(PYTHONPATH=str(ROOT / "build/python"),
                            PENSTOCK_VIDEO_LIBRARY=str(BUILT))
    found = json.loads(run(sys.executable, "-c", DECODE + PRINT, stage.pack, env=env))
    assert found["plugins"] == [str(BUILT)] and found["others"], found
    return found["found"]


# --- what is in it -------------------------------------------------------------------------------


def needs_only_glibc(binary):
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", binary)))
    strange = {name for name in needed if not check_wheel.SYSTEM.fullmatch(name)}
    assert not strange, strange
    return " ".join(sorted(needed))


def one_name_leaves(plugin):
    shown = run("nm", "-D", "--defined-only", plugin)
    assert [line.split()[-1] for line in shown.splitlines()] == ["pen_video_plugin"], shown[:500]


def is_executable(stage, wheel):
    """In the wheel, which is where installers find the mode, and when it is installed."""
    name = str(stage.program.relative_to(stage.site))
    with zipfile.ZipFile(wheel) as z:
        assert z.getinfo(name).external_attr >> 16 == 0o100755
    assert os.access(stage.program, os.X_OK)
    return f"{stage.program.stat().st_size:,} bytes"


def sources_are_complete(archive):
    """The wheel is built from it; here is what readers look for."""
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    wanted = {"PKG-INFO", "README.md", "LICENSE", "build.sh", "bundled/ffmpeg.txt",
              "bundled/dav1d.txt", "sources/ffmpeg/libavcodec/h264dec.c",
              "sources/ffmpeg/debian/changelog", "sources/dav1d/src/lib.c", "video/plugin.c",
              "video/process/decoder_process.c", "src/video/messages.h"}
    assert wanted <= names, wanted - names
    return f"{len(names)} files, {archive.stat().st_size:,} bytes"


def check_contents(stage, options):
    wheel = options.wheel
    check("every file is in RECORD", check_wheel.record_holds, wheel)
    check("metadata", check_wheel.metadata_is_complete, wheel)
    check("licences", check_wheel.licences_are_there, wheel, "penstock-video")
    check("bill of materials", check_wheel.bill_of_materials, wheel, "penstock-video")
    check("platform by auditwheel", check_wheel.fits_its_platform, wheel)
    for binary in (stage.plugin, stage.program):
        check(f"hardening of {binary.name}", check_wheel.is_hardened, binary)
        check(f"{binary.name} needs nothing but glibc", needs_only_glibc, binary)
    check("penstock-video-decoder is executable", is_executable, stage, wheel)
    check("exports pen_video_plugin alone", one_name_leaves, stage.plugin)
    check("source archive", sources_are_complete, options.sources)


# --- what it does --------------------------------------------------------------------------------


def same_pixels(stage, expected, **env):
    found = stage.decode(**env)
    assert found["plugins"] == [str(stage.plugin)] and not found["others"], found
    assert sorted(expected) == sorted(VIDEOS)
    differ = [key for key in expected if found["found"][key] != expected[key]]
    assert not differ, differ
    return f"{len(expected)} videos"


def command_finds_it(stage):
    said = run(*stage.python, "-m", "penstock", "--version", "--json", env=stage.environment())
    assert json.loads(said)["features"]["video_decoder"] is True, said


def environment_wins(stage, expected):
    found = stage.decode(PENSTOCK_VIDEO_LIBRARY=str(BUILT))
    assert found["plugins"] == [str(BUILT)] and found["found"] == expected, found


def is_confined(stage):
    """As tests/python/test_video_process.py finds it, here with the files of the wheels."""
    found = stage.run(CONFINED, stage.pack, PENSTOCK_VIDEO="process", AWS_SECRET_ACCESS_KEY="abc")
    status = found["status"]
    assert (status["Seccomp"], status["NoNewPrivs"], status["Threads"]) == ("2", "1", "1"), status
    assert int(status["CapEff"], 16) in (0, 1 << 2), status  # none, or to read all files
    assert f"Max address space         {768 << 20}" in found["limits"], found["limits"]
    assert "Max file size             0 " in found["limits"], found["limits"]
    assert found["program"] == str(stage.program), found["program"]
    assert f" {stage.plugin}\n" in found["maps"] and "libavcodec" not in found["maps"]
    assert "AWS" not in found["environment"], found["environment"]
    kinds = sorted(re.sub(r":.*| .*", "", file) for file in found["files"])
    assert kinds == ["/memfd", "pipe", "socket", "socket"], found["files"]
    return f"{len(found['files'])} open files, none of a disk"


def refused(stage):
    return stage.run(DECODE + REFUSED, stage.pack, PENSTOCK_VIDEO="process")


def program_is_missing(stage, expected):
    """The decoder in the process of the loader does not need it."""
    away = stage.folder / "away"
    stage.program.rename(away)
    try:
        said = refused(stage)
        assert stage.decode()["found"] == expected
    finally:
        away.rename(stage.program)
    assert (f"{stage.program}: cannot run the video decoder (No such file or directory). Install "
            "it beside its library, or set PENSTOCK_VIDEO=inline") in said, said


def program_is_not_executable(stage, expected):
    """The message says what to do, which is then done."""
    stage.program.chmod(0o644)
    try:
        said = refused(stage)
    finally:
        stage.program.chmod(0o755)
    assert (f"{stage.program}: cannot run the video decoder (Permission denied). Make it "
            "executable") in said, said
    same_pixels(stage, expected, PENSTOCK_VIDEO="process")


def passes_tests_of_the_plugin(stage):
    env = stage.environment(PENSTOCK_PLUGIN=str(stage.plugin))
    said = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, env=env,
               seconds=900)
    return re.search(r"\[100%\]", said)[0]


def others_alone(stage):
    """{module: {video: digest}} in a process without penstock's decoder."""
    return {name: stage.run(OTHERS + NAMES + ALONE, stage.videos, f"of_{name}")
            for name in ("av", "torchcodec")}


def together(stage, order, expected):
    said = stage.run(DECODE + OTHERS + NAMES + TOGETHER, stage.videos, stage.pack, *order)
    assert said["plugins"] == [str(stage.plugin)], said["plugins"]
    differ = [(name, key) for name, found in said["found"] for key in expected[name]
              if found[key] != expected[name][key]]
    assert not differ, differ
    assert len(said["found"]) == len(order) + 6
    assert len(said["others"]) >= 2, said["others"]  # PyAV's and the system's
    return f"beside {len(said['others'])} other copies of libavcodec"


def has_module(stage, name):
    done = subprocess.run([*stage.python, "-c", f"import {name}"], capture_output=True,
                          env=stage.environment(), timeout=300, check=False)
    return done.returncode == 0


def check_use(stage, expected):
    check("pixels of the system's FFmpeg", same_pixels, stage, expected)
    check("the command finds it", command_finds_it, stage)
    check("PENSTOCK_VIDEO_LIBRARY takes precedence", environment_wins, stage, expected)
    check("tests of the plug-in", passes_tests_of_the_plugin, stage)


def check_process(stage, expected):
    in_process = functools.partial(same_pixels, PENSTOCK_VIDEO="process")
    check("the same pixels in a process", in_process, stage, expected)
    check("the process is confined", is_confined, stage)
    check("penstock-video-decoder is missing", program_is_missing, stage, expected)
    check("penstock-video-decoder is not executable", program_is_not_executable, stage, expected)


def check_others(stage, expected):
    lacking = [name for name in ("av", "torchcodec.decoders") if not has_module(stage, name)]
    if lacking:
        print(f"left out: beside {', '.join(lacking)}: not installed")
        return
    alone = {"ours": expected, **others_alone(stage)}
    for order in ORDERS:
        check(f"{', '.join(order)}, then in threads", together, stage, order, alone)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("wheel", type=pathlib.Path)
    p.add_argument("--penstock", type=pathlib.Path, required=True, help="the wheel of penstock")
    p.add_argument("--sources", type=pathlib.Path, required=True, help="the source archive")
    p.add_argument("--beside", action="append", default=[], help="site-packages with av, torch")
    options = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-video-") as folder:
        stage = Stage(pathlib.Path(folder), options)
        expected = system_pixels(stage)
        check_contents(stage, options)
        check_use(stage, expected)
        check_process(stage, expected)
        check_others(stage, expected)
    print(f"{results['passed']} passed, {results['failed']} failed")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
