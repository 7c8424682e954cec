# SPDX-License-Identifier: Apache-2.0
"""Videos written by ffmpeg, their packets as ffprobe lists them, and build/tests/decode_packets,
which decodes packets with src/video."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
from dataclasses import dataclass

import pytest
from cli_tools import without_preload
from conftest import BUILD

# tests/wheel/check_video.py names the plug-in of a wheel.
PLUGIN = pathlib.Path(os.environ.get("PENSTOCK_PLUGIN")
                      or BUILD / "video" / "libpenstock-video.so.0")
DRIVER = BUILD / "tests" / "video" / "decode_packets"
CODECS = {"h264": 1, "hevc": 2, "vp9": 3, "av1": 4, "mpeg4": 5, "mjpeg": 6, "vp8": 7}
WANTED, LEADING = 1, 2


def need_plugin():
    if not PLUGIN.exists():
        pytest.skip("built without the video plug-in", allow_module_level=True)
    if not shutil.which("ffmpeg") or not shutil.which("ffprobe"):
        pytest.skip("no ffmpeg here", allow_module_level=True)


def output(*command):
    return subprocess.run([os.fspath(word) for word in command], check=True, timeout=60,
                          capture_output=True, stdin=subprocess.DEVNULL,
                          env=without_preload()).stdout


def encode(path, *options, size="64x48", frames=40):
    """A video of a moving pattern."""
    output("ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-f", "lavfi", "-i",
           f"testsrc2=s={size}:r=25", "-frames:v", str(frames), *options, path)
    return path


@dataclass
class Packet:
    offset: int
    size: int
    time: int
    key: bool


class Video:
    """A file, its packets in decode order, and its frames as ffmpeg decodes them."""

    def __init__(self, path):
        text = output("ffprobe", "-loglevel", "error", "-select_streams", "v:0", "-show_data",
                      "-show_entries", "packet=pos,size,pts,flags:stream=codec_name,width,height,"
                      "pix_fmt,extradata", "-of", "json", path)
        probe = json.loads(text)
        (self.stream,) = probe["streams"]
        self.path = path
        head = 12 if path.suffix == ".ivf" else 0  # of each packet
        self.packets = [
            Packet(int(p["pos"]) + head, int(p["size"]), int(p["pts"]), "K" in p["flags"])
            for p in probe["packets"]]
        self.times = sorted(packet.time for packet in self.packets)
        dump = self.stream.get("extradata", "").splitlines()
        self.extra = "".join(line[10:50].replace(" ", "") for line in dump if line)

    @functools.cached_property
    def pixels(self):
        """{time: bytes of the planes}."""
        data = output("ffmpeg", "-nostdin", "-loglevel", "error", "-noautorotate", "-i", self.path,
                      "-map", "0:v", "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt",
                      self.stream["pix_fmt"], "-")
        size, rest = divmod(len(data), len(self.times))
        assert not rest
        return {time: data[i * size:(i + 1) * size] for i, time in enumerate(self.times)}

    def start(self, width=None, height=None):
        """Lines that prepare the decoder."""
        stream = self.stream
        return (f"file {self.path}\nstream {CODECS[stream['codec_name']]} "
                f"{width or stream['width']} {height or stream['height']} {self.extra or '-'}")

    def clip(self, wanted):
        """Lines that decode the frames of these times from the key packet before them."""
        keys = [i for i, p in enumerate(self.packets) if p.key and p.time <= min(wanted)]
        first, last = keys[-1], max(i for i, p in enumerate(self.packets) if p.time in wanted)
        lines = [self.start()]
        for p in self.packets[first:last + 1]:
            flags = WANTED * (p.time in wanted)
            flags += LEADING * (p.time < self.packets[first].time)
            lines.append(f"packet {p.offset} {p.size} {p.time} {flags}")
        return [*lines, "drain"]


class Decoded:
    def __init__(self, done, pixels):
        self.lines = done.stdout.decode().splitlines()
        self.stderr = done.stderr.decode()
        self.errors = [line[6:] for line in self.lines if line.startswith("error ")]
        words = [line.split()[1:] for line in self.lines if line.startswith("picture ")]
        self.pictures = [tuple(map(int, numbers)) for numbers in words]
        self.times = [numbers[0] for numbers in self.pictures]
        self.pixels = pixels

    def frames(self):
        """[bytes of the planes]; all pictures have one size."""
        size = len(self.pixels) // max(len(self.pictures), 1)
        return [self.pixels[i * size:(i + 1) * size] for i in range(len(self.pictures))]


def decode(lines, folder, **env):
    """Runs decode_packets; env replaces variables, and None removes one."""
    variables = {**without_preload(), "PENSTOCK_VIDEO_LIBRARY": str(PLUGIN), **env}
    variables = {name: value for name, value in variables.items() if value is not None}
    done = subprocess.run([DRIVER, folder / "pixels"], check=False, timeout=60,
                          input="\n".join(lines).encode(), capture_output=True, env=variables)
    assert done.returncode == 0, done.stderr.decode()
    return Decoded(done, (folder / "pixels").read_bytes())
