# SPDX-License-Identifier: Apache-2.0
"""Packs with videos by the plain writer, written from the page of the format: the plain reader,
the program and the package read them, and all refuse the same damage."""

import csv
import fractions
import json
import random
import shutil
import struct

import penstock
import pytest
from cli_tools import run
from plain_reader import Pack, PackError
from plain_video import HEAD, LEAST, Packet, Table, read, write
from plain_writer import Field, image, write_pack

FIELDS = [Field("video", "clip"), Field("label", "i64"), Field("note", "text")]


def any_video(draw, n=90, gop=12, b=2, container=1, **stream):
    """Packets as an encoder orders them: open GOPs, each P-frame before the b frames that are
    shown before it. The payload is not a video."""
    times, order = [draw.randrange(1, 4) for _ in range(n)], []
    times = [3000 * sum(times[:i]) + 77 for i in range(n)]
    for at in range(0, n, b + 1):
        group = times[at : at + b + 1]
        order += [(group[-1], at % gop == 0), *((time, False) for time in group[:-1])]
    packets, end = [], draw.randrange(99)
    for time, key in order:
        packets.append(Packet(end, draw.randrange(1, 2000), time, key, draw.random() < 0.05))
        end += packets[-1].bytes + draw.choice([0, 0, 0, 30])
    data = draw.randbytes(end + 50)
    given = {"codec": 1, "container": container, "width": 320, "height": 240, "orientation": 6,
             "tick": fractions.Fraction(1, 90000), "extra": b"\1\x64\0\x1f", **stream}
    shown = len(Table(packets).shown)
    return {"data": data, "stream": given, "packets": packets, "n_frames": shown,
            "source_bytes": 2 * len(data)}


def any_samples(seed=1):
    draw = random.Random(seed)
    clips = [any_video(draw), any_video(draw, container=0), [], any_video(draw, n=5, gop=99),
             [image(b"x" * 9, 3, 5, codec="png")]]
    return [(b"%d" % n, {"video": clip, "label": n, "note": b"n"})
            for n, clip in enumerate(clips)]


def make(path, samples=None, **options):
    samples = samples or any_samples()
    write_pack(path, FIELDS, samples, block_samples=2, n_stats=73, columns=True, **options)
    return samples


def test_readers_agree(tmp_path):
    samples = make(tmp_path / "a.pen")
    plain = Pack(tmp_path / "a.pen")
    assert plain.head.must == 16
    assert run("verify", tmp_path / "a.pen").code == 0
    with penstock.Pack(tmp_path / "a.pen") as pack:
        frames, sizes = pack.column("video", "frames"), pack.column("video", "size")
    for n, (_, given) in enumerate(samples):
        clip, found = given["video"], plain.samples[n][1]["video"]
        if isinstance(clip, list):
            assert (len(found), frames[n]) == (len(clip), len(clip))
            continue
        assert found["data"] == clip["data"] and frames[n] == clip["n_frames"] == found["n_frames"]
        assert tuple(sizes[n]) == (240, 320)  # turned by its orientation
        assert found["packets"] == Table(clip["packets"]).packets
    info = json.loads(run("info", "--json", tmp_path / "a.pen").out)
    assert info["videos"] == {"videos": 3, "frames": sum(frames[:4])}


def test_extract_writes_the_file(tmp_path):
    samples = make(tmp_path / "a.pen")
    done = run("extract", tmp_path / "a.pen", "-o", tmp_path / "out")
    assert done.code == 1 and "found a part of a file" in done.err  # sample 1
    for n in (0, 3):
        assert (tmp_path / "out" / f"{n}.mp4").read_bytes() == samples[n][1]["video"]["data"]
    rows = list(csv.DictReader((tmp_path / "out" / "samples.csv").open()))
    assert [(row["label"], row["path"]) for row in rows] == [
        ("0", "0.mp4"), ("2", "2"), ("3", "3.mp4"), ("4", "4")]


def test_copy_and_damage(tmp_path):
    samples = make(tmp_path / "a.pen")
    assert run("copy", tmp_path / "a.pen", tmp_path / "b.pen").code == 0
    assert run("verify", tmp_path / "b.pen").code == 0
    (shard,) = [file for file in (tmp_path / "b.pen").glob("*/*.shard")
                if samples[0][1]["video"]["data"] in file.read_bytes()]
    data = bytearray(shard.read_bytes())
    data[data.index(samples[0][1]["video"]["data"]) + 65536 + 5] ^= 1
    shard.write_bytes(data)
    done = run("verify", tmp_path / "b.pen")
    assert done.code == 1 and "block 0, sample 0 (0 of the pack), field 'video'" in done.err
    done = run("extract", tmp_path / "b.pen", "-o", tmp_path / "out")
    assert "checksum" in done.err and not (tmp_path / "out" / "0.mp4").exists()
    with pytest.raises(PackError, match="checksum of the run of a video"):
        Pack(tmp_path / "b.pen")


def test_errors_say_that_it_is_a_video(tmp_path):
    make(tmp_path / "a.pen")
    with penstock.Pack(tmp_path / "a.pen") as pack:
        with pytest.raises(penstock.Error, match="expected frames that are images, found a video"):
            pack.frames(0, "video")


def test_remote_packs_are_read_by_ranges(tmp_path, s3):
    samples, server = make(tmp_path / "a.pen"), s3()
    server.boto3(retries=3).create_bucket(Bucket="videos")
    env = server.environment(HOME=str(tmp_path))
    where, video = "s3://videos/a.pen", samples[3][1]["video"]["data"]
    assert run("copy", tmp_path / "a.pen", where, env=env).code == 0
    before = server.counts()["bytes_out"]
    assert run("extract", where, "-s", "3", "-o", tmp_path / "out", env=env).code == 0
    assert (tmp_path / "out" / "3.mp4").read_bytes() == video
    sent = server.counts()["bytes_out"] - before
    others = sum(len(samples[n][1]["video"]["data"]) for n in (0, 1))
    assert sent < others  # the videos of other samples are not fetched
    server.control(chaos="corrupt=0.3", seed=2)  # a range that does not fit is requested again
    for n in (0, 3):
        done = run("extract", where, "-s", str(n), "-o", tmp_path / f"again{n}", env=env)
        assert done.code == 0, done.err
    assert server.counts()["faults"]["corrupt"] > 0


# ---- broken rules ----

GROUP_AT = HEAD.size + 4 * 2  # of the table below, whose payload has two runs
RULES = {  # offset in the table, format, value: what the library says
    "version": (0, "<H", 2, "unknown version"),
    "codec": (2, "<B", 8, "unknown codec"),
    "container": (3, "<B", 5, "unknown codec or container"),
    "width": (4, "<I", 0, "size or orientation"),
    "height": (8, "<I", 16385, "size or orientation"),
    "orientation": (12, "<B", 0, "size or orientation"),
    "range": (13, "<B", 3, "color range"),
    "depth": (15, "<B", 9, "color range or depth"),
    "tick_num": (16, "<I", 0, "lowest terms"),
    "tick_den": (20, "<I", 0, "lowest terms"),
    "n_packets": (32, "<I", 89, "bytes after|packets"),
    "n_groups": (36, "<I", 4, "groups"),
    "no groups": (36, "<I", 0, "groups"),
    "n_runs": (40, "<I", 1, "checksums"),
    "extra_bytes": (44, "<I", 2**20 + 1, "too short"),
    "first packet": (GROUP_AT, "<I", 1, "does not follow"),
    "first code": (GROUP_AT + 4, "<I", 1, "does not follow"),
    "first offset": (GROUP_AT + 8, "<Q", 2**40, "out of range"),
    "first frames": (GROUP_AT + 24, "<I", 1, "does not follow"),
    "zero": (GROUP_AT + 28, "<I", 1, "not valid"),
    "second packet": (GROUP_AT + 32, "<I", 31, "does not follow"),
    "second code": (GROUP_AT + 36, "<I", 2, "end where|valid|outside"),
    "second time": (GROUP_AT + 48, "<q", -1, "does not follow|belong"),
    "second frames": (GROUP_AT + 56, "<I", 99, "out of range|number of frames"),
}


def a_table():
    draw = random.Random(5)
    video = any_video(draw, n=90, gop=12)
    video["data"] = video["data"][:70000].ljust(70000, b"\0")
    video["packets"] = [p._replace(offset=7 * n, bytes=7, hidden=False)
                        for n, p in enumerate(video["packets"])]
    video["n_frames"] = len(Table(video["packets"]).shown)
    return video


@pytest.mark.parametrize("rule", RULES)
def test_a_broken_rule_under_right_checksums(tmp_path, rule):
    at, code, value, says = RULES[rule]
    video = a_table()
    table, _ = write(video["stream"], video["packets"], video["data"], lambda run, number: 0)
    tail = table[HEAD.size + 8 :]  # what does not depend on the place

    def edit(part, data, shard, block):
        if part == "index" and tail in data:
            struct.pack_into(code, data, data.index(tail) - HEAD.size - 8 + at, value)

    samples = [(b"0", {"video": video, "label": 0, "note": b""})]
    make(tmp_path / "right.pen", samples)
    assert run("verify", tmp_path / "right.pen").code == 0
    make(tmp_path / "a.pen", samples, edit=edit)
    done = run("verify", tmp_path / "a.pen")
    assert done.code == 1 and any(text in done.err for text in says.split("|")), done.err
    with pytest.raises(PackError):
        Pack(tmp_path / "a.pen")


def test_video_without_its_bit(tmp_path):
    def edit(part, data, shard, block):
        if part in ("manifest", "header"):
            data[0] &= ~16

    make(tmp_path / "a.pen", edit=edit)
    done = run("verify", tmp_path / "a.pen")
    assert done.code == 1 and "video in a pack without videos" in done.err
    with pytest.raises(PackError, match="features & 16"):
        Pack(tmp_path / "a.pen")


def test_source_bytes(tmp_path):
    def edit(part, data, shard, block):
        if part == "index" and block == 0:
            struct.pack_into("<Q", data, 2 * 16 + 40, 5)  # after two keys, of the first clip

    make(tmp_path / "a.pen", edit=edit)
    done = run("verify", tmp_path / "a.pen")
    assert done.code == 1 and "video of another size than its file" in done.err
    with pytest.raises(PackError, match="source_bytes"):
        Pack(tmp_path / "a.pen")


# ---- real videos ----

def test_table_of_a_real_video(tmp_path):
    if not shutil.which("ffmpeg") or not shutil.which("ffprobe"):
        pytest.skip("no ffmpeg here")
    from packet_tools import Video, encode

    path = encode(tmp_path / "v.mp4", "-c:v", "mpeg4", "-bf", "2", "-g", "10", frames=100)
    video = Video(path)
    packets = [Packet(p.offset, p.size, p.time, p.key, False) for p in video.packets]
    stream = {"codec": 5, "container": 1, "width": 64, "height": 48, "orientation": 1,
              "tick": fractions.Fraction(1, 12800), "extra": bytes.fromhex(video.extra)}
    clip = {"data": path.read_bytes(), "stream": stream, "packets": packets, "n_frames": 100}
    make(tmp_path / "a.pen", [(b"v", {"video": clip, "label": 1, "note": b""})])
    assert run("verify", tmp_path / "a.pen").code == 0
    found = Pack(tmp_path / "a.pen").samples[0][1]["video"]
    assert (found["tick_num"], found["tick_den"]) == (1, 25)
    assert found["times"] == list(range(100))
    assert run("extract", tmp_path / "a.pen", "-o", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "v.mp4").read_bytes() == path.read_bytes()


def test_groups_have_32_packets():
    draw = random.Random(3)
    packets = any_video(draw, n=200, gop=12, b=0)["packets"]
    table = Table([p._replace(hidden=False) for p in packets])
    assert LEAST == 32 and table.groups == [0, 36, 72, 108, 144, 180]
    data, shown = write({"codec": 1, "container": 0, "width": 1, "height": 1,
                         "tick": fractions.Fraction(1)}, packets, bytes(500000), lambda *_: 0)

    def need(ok, what):
        assert ok, what

    assert read(need, data, 500000, shown)["n_groups"] == 6
