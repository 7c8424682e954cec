# SPDX-License-Identifier: Apache-2.0
"""Inputs of every kind, and what users do to them between two runs.

A set of inputs is a dictionary: key -> (class, seed, size), written to disk as a folder, a list, a
tar, folders of frames, videos, videos that are kept, or a gulp directory. A change is made to the
dictionary; then only those files are written that differ, as a user would.
"""

import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tarfile
import zlib

KINDS = ("folder", "list", "tar", "frames", "videos", "kept", "gulp")
CHANGES = ("edited", "added", "removed", "mended", "replaced", "renamed", "relabelled")
CLASSES = ("cat", "dog")


def png(seed, size=12):
    """Not compressed, so that all pictures of a size have the same number of bytes."""
    rows = b"".join(b"\0" + bytes((seed * 37 + x * 5 + y * 11) % 256 for x in range(3 * size))
                    for y in range(size))

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 0))
            + chunk(b"IEND", b""))


class Item:
    """One sample. `size` is of the pictures; 0: broken."""

    def __init__(self, label, seed, size=12):
        self.label, self.seed, self.size = label, seed, size

    def picture(self, frame=0):
        return png(self.seed + 100 * frame, self.size) if self.size else b"this is no picture"


def first_items(n):
    return {f"k{i:02}": Item(CLASSES[i % 2], i) for i in range(n)}


def change(items, what, at):
    """The items after a change of number `at`."""
    items = {key: Item(i.label, i.seed, i.size) for key, i in items.items()}
    key = sorted(items)[at]
    item = items[key]
    if what == "edited":
        item.seed, item.size = item.seed + 50, 20
    elif what == "replaced":
        item.seed += 50
    elif what == "mended":
        item.size = 12
    elif what == "added":
        items["zz-new"] = Item("eel", 77)
    elif what == "removed":
        del items[key]
    elif what == "renamed":
        items[f"{key}-other"] = items.pop(key)
    elif what == "relabelled":
        item.label = CLASSES[1 - CLASSES.index(item.label)]
    return items


# ---- videos --------------------------------------------------------------------------------------

VIDEO_BYTES = 30000


def video(item, cache):
    """Of one size, by an empty box at the end."""
    path = cache / f"{item.seed}-{item.size}.mp4"
    if not path.exists():
        source = f"testsrc=size=64x48:rate=4:duration=1,hue=h={item.seed * 20}"
        subprocess.run(
            ["ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-f", "lavfi", "-i", source,
             "-c:v", "mpeg4", "-threads", "1", str(path)], check=True)
        data = path.read_bytes()
        total = VIDEO_BYTES + (item.size - 12) * 100
        left = total - len(data)
        path.write_bytes(data + struct.pack(">I4s", left, b"free") + bytes(left - 8))
    return path.read_bytes()


# ---- on disk -------------------------------------------------------------------------------------

def files(kind, items, cache):
    """The files that the items are, by path."""
    out = {}
    if kind == "folder":
        for key, item in items.items():
            out[f"{item.label}/{key}.png"] = item.picture()
    elif kind == "list":
        rows = ["path,label"]
        for key, item in sorted(items.items()):
            out[f"files/{key}.png"] = item.picture()
            rows.append(f"files/{key}.png,{item.label}")
        out["list.csv"] = "\n".join(rows).encode() + b"\n"
    elif kind == "frames":
        for key, item in items.items():
            for frame in range(2):
                out[f"{item.label}/{key}/{frame}.png"] = item.picture(frame)
    elif kind in ("videos", "kept"):
        for key, item in items.items():
            out[f"{item.label}/{key}.mp4"] = (
                video(item, cache) if item.size else b"this is no video")
    elif kind == "tar":
        for half in (0, 1):
            tar = io.BytesIO()
            with tarfile.open(fileobj=tar, mode="w") as archive:
                for key, item in sorted(items.items())[half * len(items) // 2:
                                                       (half + 1) * len(items) // 2]:
                    label = str(("cat", "dog", "eel").index(item.label)).encode()
                    for suffix, data in (("png", item.picture()), ("cls", label)):
                        member = tarfile.TarInfo(f"{key}.{suffix}")
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))
            out[f"{half}.tar"] = tar.getvalue()
    elif kind == "gulp":
        data, meta = b"", {}
        for key, item in sorted(items.items()):
            frames = []
            for frame in range(2):
                picture = item.picture(frame)
                fill = -len(picture) % 4
                frames.append([len(data), fill, len(picture) + fill])
                data += picture + bytes(fill)
            meta[key] = {"frame_info": frames, "meta_data": [{"label": item.label}]}
        out["data_0.gulp"] = data
        out["meta_0.gmeta"] = json.dumps(meta).encode()
    return out


def write(top, wanted, keep_times):
    """Makes the directory hold these files; those that are right already are not touched."""
    top = pathlib.Path(top)
    here = {str(p.relative_to(top)) for p in top.rglob("*") if p.is_file()}
    for name in here - wanted.keys():
        (top / name).unlink()
    for name, data in wanted.items():
        path = top / name
        if name in here and path.read_bytes() == data:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.stat() if keep_times and name in here else None
        new = path.with_name(path.name + ".new~")
        new.write_bytes(data)
        if before:
            assert before.st_size == len(data), name
            os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.replace(new, path)
    for folder in sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


class Inputs:
    """A source of one kind on disk."""

    def __init__(self, kind, top, cache):
        self.kind, self.top, self.cache = kind, pathlib.Path(top), cache

    def put(self, items, keep_times=False):
        self.top.mkdir(parents=True, exist_ok=True)
        write(self.top, files(self.kind, items, self.cache), keep_times)

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)

    def arguments(self):
        """For the program."""
        if self.kind == "list":
            return [self.top / "list.csv"]
        if self.kind == "tar":
            return [self.top / "0.tar", self.top / "1.tar"]
        return [self.top, "--kind", "frames"] if self.kind == "frames" else [self.top]

    def options(self, order):
        more = {"frames": ["--fps", "4"], "gulp": ["--fps", "4"], "kept": ["--video", "keep"]}
        return ["--order", order, "--block-samples", "2", "--shard-bytes", "1",
                *more.get(self.kind, [])]
