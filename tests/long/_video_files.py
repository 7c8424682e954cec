# SPDX-License-Identifier: Apache-2.0
"""Files of other layouts than ffmpeg's usual ones: fragments, offsets, sound between the pictures,
and edit lists. `REFUSED` has those that cannot be kept, with a part of the message."""

import struct

from packet_tools import output

QUIET = ("ffmpeg", "-nostdin", "-y", "-loglevel", "error")
RATE, TICKS = 25, 512  # frames of a second, and ticks of a frame
H264 = ("-c:v", "libx264", "-threads", "1", "-preset", "veryfast", "-pix_fmt", "yuv420p",
        "-video_track_timescale", str(RATE * TICKS), "-x264-params",
        "keyint=12:min-keyint=12:scenecut=0:b-pyramid=normal:b-adapt=0:bframes={0}")
SOUND = ("-f", "lavfi", "-i", "sine=duration=2.4")
LAYOUTS = {  # name: (options before the input, other inputs, options of the file)
    "fragments.mp4": ((), (), ("-movflags", "frag_keyframe+empty_moov")),
    "fragments-short.mp4": ((), SOUND, ("-movflags", "empty_moov", "-frag_duration", "200000")),
    "fragments-base.mp4": ((), (), ("-movflags", "frag_keyframe+default_base_moof")),
    "fragments-cmaf.mp4": ((), (), ("-movflags", "cmaf+frag_keyframe")),
    "fragments-dash.mp4": ((), SOUND, ("-movflags", "dash+delay_moov+frag_every_frame")),
    "start.mp4": ((), SOUND, ("-movflags", "faststart")),
    "negative.mp4": ((), (), ("-movflags", "negative_cts_offsets")),
    "no-list.mp4": ((), (), ("-use_editlist", "0")),
    "late.mp4": (("-itsoffset", "0.5"), SOUND, ()),
    "late-2.mkv": (("-itsoffset", "0.5"), SOUND, ()),
    "phone.mov": (("-itsoffset", "0.2"), SOUND, ("-metadata:s:v:0", "rotate=90")),
    "offset.mkv": ((), SOUND, ("-output_ts_offset", "5")),
    "offset.mp4": ((), SOUND, ("-output_ts_offset", "5")),
    "live.mkv": ((), SOUND, ("-live", "1")),
    "clusters.mkv": ((), SOUND, ("-cluster_time_limit", "200")),
}
# The first frame and the number of frames of each part; None: nothing is shown. Key frames are 0,
# 12, 24, 36, 48.
EDITS = {
    "edited-at-key.mp4": [(24, 36)],
    "edited-between.mp4": [(29, 20)],
    "edited-end.mp4": [(0, 31)],
    "edited-empty.mp4": [(None, 10), (12, 30)],
    "edited-keys.mp4": [(0, 12), (36, 12)],
    "edited-all-keys.mp4": [(0, 24), (24, 36)],
    "edited-parts.mp4": [(0, 7), (29, 9)],
    "edited-again.mp4": [(24, 12), (24, 12)],
    "edited-back.mp4": [(36, 12), (12, 12)],
}
SEVERAL = "expected an edit list of one part, found several"
# Without B-frames; the first two of them are at key frames.
SIMPLE = {
    "edited-simple-keys.mp4": [(0, 12), (36, 12)],
    "edited-simple-all.mp4": [(0, 24), (24, 36)],
    "edited-simple-between.mp4": [(29, 20)],
    "edited-simple-parts.mp4": [(0, 7), (29, 9)],
}
REFUSED = {f"edited-{name}.mp4": SEVERAL for name in (
    "keys", "all-keys", "parts", "again", "back", "simple-keys", "simple-all", "simple-parts")}


def boxes(data, at, end):
    """(kind, start, end) of each."""
    while at < end:
        size, kind = struct.unpack_from(">I4s", data, at)
        yield kind.decode("latin-1"), at, at + size
        at += size


def box(kind, body):
    return struct.pack(">I4s", 8 + len(body), kind.encode()) + body


def edited(data, parts, start):
    """The file with another edit list; `start` is the tick of the first frame. The boxes that grow
    follow the pictures."""

    def copy(at, end):
        out = b""
        for kind, first, last in boxes(data, at, end):
            if kind in ("moov", "trak"):
                out += box(kind, copy(first + 8, last))
            elif kind == "edts":
                out += box(kind, box("elst", edits))
            else:
                out += data[first:last]
        return out

    edits = struct.pack(">II", 0, len(parts))
    for first, n in parts:
        place = -1 if first is None else start + first * TICKS
        edits += struct.pack(">IiI", n * 1000 // RATE, place, 1 << 16)
    return copy(0, len(data))


def write_edited(folder, source, lists):
    data = source.read_bytes()
    (start,) = struct.unpack_from(">i", data, data.index(b"elst") + 16)
    for name, parts in lists.items():
        (folder / name).write_bytes(edited(data, parts, start))
        yield folder / name


def write(folder):
    """The paths of all files."""
    plain, simple = folder / "plain.mp4", folder / "simple.mp4"
    for path, b in ((plain, 3), (simple, 0)):
        output(*QUIET, "-f", "lavfi", "-i", "testsrc2=s=64x48:r=25", "-frames:v", "60",
               *(word.format(b) for word in H264), path)
    paths = [plain, simple, *write_edited(folder, plain, EDITS),
             *write_edited(folder, simple, SIMPLE)]
    for name, (before, more, options) in LAYOUTS.items():
        paths.append(folder / name)
        output(*QUIET, *before, "-i", plain, *more, "-c:v", "copy", "-c:a", "aac", *options,
               paths[-1])
    for name, second in (("edited-cut-key.mp4", "0.96"), ("edited-cut-between.mp4", "1.2")):
        paths.append(folder / name)
        output(*QUIET, "-ss", second, "-i", plain, "-c", "copy", paths[-1])
    return paths
