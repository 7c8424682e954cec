# SPDX-License-Identifier: Apache-2.0
"""Messages about inputs, packs and options that advise an action; see test_advice.py."""

import gzip
import io
import os
import shutil
import subprocess
import tarfile

import pytest
from advice_tools import Desk, follow, nothing, png_16
from cli_tools import good, image_bytes, make_folder, picture, run, write_list
from py_tools import need_penstock, png

penstock = need_penstock()
JPEG = image_bytes(1)


def tar_of(desk, *names, data=JPEG):
    with tarfile.open(desk.top / "a.tar", "w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            body = b"3" if name.endswith(".cls") else data
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return desk.pack(source=desk.top / "a.tar")


def tar(desk, *args):
    subprocess.run(["tar", "-cf", desk.top / "a.tar", *args], check=True)
    return desk.pack(source=desk.top / "a.tar")


def gnu_tar(desk, *options):
    if not (desk.top / "t").exists():
        (desk.top / "t").mkdir()
        (desk.top / "t" / "a.jpg").write_bytes(JPEG)
        (desk.top / "t" / "b.jpg").symlink_to("a.jpg")
        os.link(desk.top / "t" / "a.jpg", desk.top / "t" / "c.jpg")
    return tar(desk, *options, "-C", desk.top / "t", ".")


def sparse_tar(desk, *options):
    (desk.top / "t").mkdir(exist_ok=True)
    with open(desk.top / "t" / "a.bin", "wb") as file:
        file.truncate(1 << 20)
    (desk.top / "t" / "a.jpg").write_bytes(JPEG)
    return tar(desk, *options, "-C", desk.top / "t", "a.jpg", "a.bin")


def file(desk, data, name="cat/x.jpg"):
    (desk.folder / name).write_bytes(data)
    return desk.pack()


def animation():
    out = io.BytesIO()
    picture(1).save(out, "WEBP", save_all=True, append_images=[picture(2)])
    return out.getvalue()


def packed_twice(desk):
    desk.gzipped()
    twice = desk.top / "b.tar.gz"
    twice.write_bytes(gzip.compress((desk.top / "a.tar.gz").read_bytes()))
    return desk.pack(source=twice)


def first(desk, *more):
    good(*desk.pack(*more))
    return desk.out


def appending(desk):
    make_folder(desk.top / "new")
    return ("pack", desk.top / "new", "-o", first(desk), "--append")


def appended_otherwise(desk):
    make_folder(desk.top / "other" / "in", ("cow", "dog"))
    good("pack", desk.top / "other" / "in", "-o", desk.top / "other.pen")
    return (*appending(desk), "--classes-from", desk.top / "other.pen")


def work_elsewhere(desk):
    (desk.top / "elsewhere").mkdir()
    desk.out.mkdir()
    (desk.out / ".work").symlink_to(desk.top / "elsewhere")
    return desk.pack()


def strange_work(desk):
    failed_at(desk, "a.pen")
    (desk.out / ".work" / "notes").mkdir()
    return ("gc", desk.out)


def lossless():
    return JPEG.replace(b"\xff\xc0", b"\xff\xc3", 1)


def listed(desk, text, *more, out="a.pen"):
    data = text if isinstance(text, bytes) else text.encode()
    (desk.top / "l.csv").write_bytes(data)
    return desk.pack(*more, source=desk.top / "l.csv", out=desk.top / out)


def outside(desk, *more, path="../in/cat/0.jpg"):
    (desk.top / "lists").mkdir(exist_ok=True)
    write_list(desk.top / "lists" / "l.csv", ["path"], [[path]])
    return desk.pack(*more, source=desk.top / "lists" / "l.csv")


def with_classes(desk, labels, classes=None, *more):
    """A list with these labels, and a file of classes beside it."""
    if classes:
        (desk.top / "l.classes.csv").write_text(classes)
    rows = [f"in/cat/{i}.jpg,{label}" for i, label in enumerate(labels)]
    return listed(desk, "\n".join(["path,label", *rows]) + "\n", *more)


def copied(desk, name="b.pen"):
    return ("copy", desk.out, desk.top / name)


def two_packs(desk):
    first(desk)
    good(*desk.pack(out=desk.top / "b.pen"), "--seed", "9")
    return copied(desk)


def failed_at(desk, name):
    """An interrupted run of pack at that name."""
    (desk.folder / "dog" / "z.jpg").write_bytes(b"this is no picture")
    assert run(*desk.pack(out=desk.top / name)).code == 1
    (desk.folder / "dog" / "z.jpg").unlink()


def all_tasks(desk):
    desk.tasks_begun()
    good(*desk.task(1))
    return desk.out / ".work" / "task-0-of-2"


def damaged_task(desk):
    (all_tasks(desk) / "done").write_bytes(b"x")
    return ("finalise", desk.out)


def lost_shard(desk):
    before = set(desk.out.glob("??/*.shard"))
    desk.tasks_begun()
    for shard in set(desk.out.glob("??/*.shard")) - before:
        shard.unlink()
    good(*desk.task(1))
    return ("finalise", desk.out)


def task_of_an_older_plan(desk):
    desk.changed_after_the_plan()
    good("plan", *desk.pack()[1:])
    good(*desk.task(1))
    return ("finalise", desk.out)


def open_writer(desk):
    desk.writer = penstock.Writer(desk.out, {"image": "image"})
    return desk.pack()


def planned_otherwise(desk):
    good("plan", *desk.pack()[1:])
    return (*desk.task(1), "--fraction", "0.5")


INPUTS = {
    "convert it": (lambda d: file(d, image_bytes(1, "GIF")), "convert or remove it",
                   lambda d: file(d, JPEG), Desk.pack),
    "remove the GIF": (lambda d: file(d, image_bytes(1, "GIF")), "convert or remove it",
                       lambda d: (d.folder / "cat" / "x.jpg").unlink(), Desk.pack),
    "convert a lossless one": (lambda d: file(d, lossless()), "convert it first",
                               lambda d: file(d, JPEG), Desk.pack),
    "a link to nothing": (
        lambda d: (d.folder / "cat" / "x.jpg").symlink_to("none") or d.pack(),
        "found a symbolic link to nothing; remove it",
        lambda d: (d.folder / "cat" / "x.jpg").unlink(), Desk.pack),
    "skip a link to nothing": (
        lambda d: (d.folder / "cat" / "x.jpg").symlink_to("none") or d.pack(),
        "or skip broken inputs with --on-bad skip", nothing,
        lambda d: d.pack("--on-bad", "skip")),
    "16 bits": (lambda d: file(d, png_16()),
                "with --sixteen-bit reduce, after 'penstock gc' if a run was interrupted",
                lambda d: good("gc", d.out),
                lambda d: d.pack("--sixteen-bit", "reduce")),
    "root": (outside, "write paths relative to the folder of --root", nothing,
             lambda d: outside(d, "--root", d.top, path="in/cat/0.jpg")),
    "root of absolute paths": (lambda d: outside(d, path=d.folder / "cat" / "0.jpg"),
                               "the folder of --root", nothing,
                               lambda d: outside(d, "--root", d.top,
                                                 path=d.folder / "cat" / "0.jpg")),
    "allow outside": (outside, "or pass --allow-outside", nothing,
                      lambda d: outside(d, "--allow-outside")),
    "an animation": (lambda d: file(d, animation()), "split it into frames first",
                     lambda d: file(d, image_bytes(1, "WEBP")), Desk.pack),
    "packed twice": (packed_twice, "found one compressed twice; unpack it",
                     lambda d: tar_of(d, "0.jpg"),
                     lambda d: d.pack(source=d.top / "a.tar")),
    "a quote twice": (lambda d: listed(d, 'path,note\nin/cat/0.jpg,"a "b" c"\n'),
                      "write a quote inside a quoted cell twice", nothing,
                      lambda d: listed(d, 'path,note\nin/cat/0.jpg,"a ""b"" c"\n')),
    "UTF-8": (lambda d: listed(d, "path,note\nin/cat/0.jpg,ü\n".encode("latin-1")),
              "save the list as UTF-8", nothing,
              lambda d: listed(d, "path,note\nin/cat/0.jpg,ü\n")),
    "rename a column": (lambda d: listed(d, "path,image\nin/cat/0.jpg,1\n"),
                        "rename one of the two", nothing,
                        lambda d: listed(d, "path,other\nin/cat/0.jpg,1\n")),
    "name the second part": (lambda d: tar_of(d, "a.jpg", "a.png"), "name it KEY.OTHER.", nothing,
                             lambda d: tar_of(d, "a.jpg", "a.other.png")),
    "rename a member": (lambda d: tar_of(d, "a"), "rename it or leave it out of the tar", nothing,
                        lambda d: tar_of(d, "a.jpg")),
    "leave a member out": (lambda d: tar_of(d, "a", "b.jpg"),
                           "rename it or leave it out of the tar", nothing,
                           lambda d: tar_of(d, "b.jpg")),
    "unpack the tar": (Desk.gzipped, "or unpack it", lambda d: tar_of(d, "0.jpg"),
                       lambda d: d.pack(source=d.top / "a.tar")),
    "dereference": (gnu_tar, "make the tar with --dereference --hard-dereference", nothing,
                    lambda d: gnu_tar(d, "--dereference", "--hard-dereference")),
    "without --sparse": (lambda d: sparse_tar(d, "--sparse"), "make the tar without --sparse",
                         nothing, sparse_tar),
    "a label of another kind": (lambda d: tar_of(d, "a.jpg", "a.cls", "a.label.txt"),
                                "rename those", nothing,
                                lambda d: tar_of(d, "a.jpg", "a.cls", "a.note.txt")),
    "the names in braces": (lambda d: (make_folder(d.top / "ab"),
                                       d.pack(source=d.top / "a{b,{c,d}}"))[1],
                            "write the names out", nothing, lambda d: d.pack(source=d.top / "ab")),
    "all labels integers": (lambda d: with_classes(d, ["1", "x"]),
                            "write all labels as integers, or all as names", nothing,
                            lambda d: with_classes(d, ["1", "2"])),
    "all labels names": (lambda d: with_classes(d, ["1", "x"]), "or all as names", nothing,
                         lambda d: with_classes(d, ["y", "x"])),
    "names for integers": (lambda d: with_classes(d, ["1", "x"]),
                           "integers get names from a file LIST.classes.csv", nothing,
                           lambda d: with_classes(d, ["0", "1"], "label,class\n0,a\n1,b\n")),
    "the number of the class": (lambda d: with_classes(d, ["a", "b"], "label,class\n0,a\n1,b\n"),
                                "write the number of the class, or remove that file", nothing,
                                lambda d: with_classes(d, ["0", "1"])),
    "without the file of classes": (
        lambda d: with_classes(d, ["a", "b"], "label,class\n0,a\n1,b\n"), "or remove that file",
        lambda d: (d.top / "l.classes.csv").unlink(), lambda d: with_classes(d, ["a", "b"])),
    "fix the file of classes": (lambda d: with_classes(d, ["0", "1"], "label,name\n0,a\n1,b\n"),
                                 "fix or remove this file: it names the classes", nothing,
                                 lambda d: with_classes(d, ["0", "1"], "label,class\n0,a\n1,b\n")),
    "remove the file of classes": (lambda d: with_classes(d, ["0", "1"], "label,name\n0,a\n1,b\n"),
                                   "fix or remove this file: it names the classes",
                                   lambda d: (d.top / "l.classes.csv").unlink(),
                                   lambda d: with_classes(d, ["0", "1"])),
    "no labels for classes": (
        lambda d: listed(d, "path\nin/cat/0.jpg\n", "--classes-from", first(d), out="b.pen"),
        "found none; leave --classes-from out", nothing,
        lambda d: d.pack(source=d.top / "l.csv", out=d.top / "b.pen")),
    "from Python": (
        lambda d: (d.top / "a.parquet").write_bytes(b"PAR1 and more") and d.pack(
            source=d.top / "a.parquet"),
        "write it from Python: penstock.write(\"NAME.pen\", samples(), schema)",
        lambda d: penstock.write(d.out, ({"image": png(i)} for i in range(2)), {"image": "image"}),
        lambda d: ("verify", d.out)),
    "info of a pack": (lambda d: d.pack(source=first(d), out=d.top / "b.pen"),
                       "describes it", nothing, lambda d: ("info", d.out)),
    "extract and pack": (lambda d: d.pack(source=first(d), out=d.top / "b.pen"),
                         "writes its files so that you can pack them again",
                         lambda d: good("extract", d.out, "-o", d.top / "x"),
                         lambda d: d.pack(source=d.top / "x" / "samples.csv", out=d.top / "b.pen")),
}
PACKS = {
    "block samples": (lambda d: (*appending(d), "--block-samples", "3"),
                      "leave --block-samples out", nothing,
                      lambda d: ("pack", d.top / "new", "-o", d.out, "--append")),
    "classes of the pack": (appended_otherwise,
                            "keeps its own classes: leave --classes-from out",
                            nothing,
                            lambda d: ("pack", d.top / "new", "-o", d.out, "--append")),
    "a link in a pack": (work_elsewhere, "does not follow it to write or remove files: move it",
                         lambda d: (d.out / ".work").unlink(), Desk.pack),
    "what is not ours": (strange_work, "nothing was removed: move it away",
                         lambda d: (d.out / ".work" / "notes").rename(d.top / "notes"),
                         lambda d: ("gc", d.out)),
    "a damaged task": (damaged_task, "damaged; run that task again",
                       lambda d: good(*d.task(0)), lambda d: ("finalise", d.out)),
    "a shard that is gone": (lost_shard, "is missing; run that task again",
                             lambda d: good(*d.task(0)), lambda d: ("finalise", d.out)),
    "a task of an older plan": (task_of_an_older_plan,
                                "was run with an older plan",
                                lambda d: good(*d.task(0)), lambda d: ("finalise", d.out)),
    "a plan of other settings": (planned_otherwise, "run 'penstock plan' again",
                                 lambda d: good("plan", *d.pack()[1:], "--fraction", "0.5"),
                                 lambda d: (*d.task(1), "--fraction", "0.5")),
    "append in one run": (lambda d: appending(d) and (*d.task(0), "--append"), "append in one run",
                          nothing,
                          lambda d: ("pack", d.top / "new", "-o", d.out, "--append")),
    "a name that is no file": (lambda d: d.out.write_text("x") and d.pack(),
                               "choose another name", nothing,
                               lambda d: d.pack(out=d.top / "b.pen")),
    "wait for it": (open_writer, "another process is writing here; wait until it ends",
                    lambda d: d.writer.close(), Desk.pack),
    "copy: another name": (two_packs, "another pack already exists here; choose another name",
                           nothing, lambda d: copied(d, "c.pen")),
    "copy: remove that one": (two_packs, "or remove that pack",
                              lambda d: shutil.rmtree(d.top / "b.pen"), copied),
    "copy: run it again": (lambda d: first(d) and failed_at(d, "b.pen") or copied(d),
                           "exists here; run that command again", nothing,
                           lambda d: d.pack(out=d.top / "b.pen")),
    "copy: gc": (lambda d: first(d) and failed_at(d, "b.pen") or copied(d),
                 "or discard it with 'penstock gc ",
                 lambda d: good("gc", d.top / "b.pen"), copied),
    "an unfinished pack: run it again": (
        lambda d: failed_at(d, "a.pen") or ("info", d.out),
        "the pack is not finished; run the same 'penstock pack' again", nothing, Desk.pack),
    "an unfinished pack: finalise": (
        lambda d: d.tasks_begun() or ("info", d.out), "or 'penstock finalise' after the last task",
        lambda d: good(*d.task(1)), lambda d: ("finalise", d.out)),
    "extract elsewhere": (
        lambda d: first(d) and good("extract", d.out, "-o", d.top / "x")
        and ("extract", d.out, "-o", d.top / "x"),
        "which was not changed; extract to another directory", nothing,
        lambda d: ("extract", d.out, "-o", d.top / "y")),
    "keys": (lambda d: first(d) and ("extract", d.out, "-o", d.top / "x", "-k", "none"),
             "no sample has this key; 'penstock info --samples' lists the keys", nothing,
             lambda d: ("extract", d.out, "-o", d.top / "x", "-k",
                        good("info", d.out, "--samples").out.splitlines()[1].split("\t")[1])),
    "one split": (lambda d: ("pack", make_folder(d.top / "s", ("train", "val")), "-o", d.out,
                             "--classes-from", d.top / "none.pen"),
                  "to pack one split: penstock pack ", nothing,
                  lambda d: ("pack", d.top / "s" / "train", "-o", d.top / "train.pen")),
}
OPTIONS = {
    "help explains it": (lambda d: d.pack("--qualty", "3"), "--help' explains it", nothing,
                         lambda d: ("pack", "--help")),
    "help s3 explains it": (lambda d: ("info", d.out, "--endpoint-url", "x"),
                            "'penstock help s3' explains it", nothing,
                            lambda d: ("help", "s3")),
    "help lists what it has": (lambda d: ("info", d.out, "--block-samples", "3"),
                               "--help' lists its options", nothing, lambda d: ("info", "--help")),
    "help lists what there is": (lambda d: d.pack("--zzzzzz"), "--help' lists the options",
                                 nothing, lambda d: ("pack", "--help")),
    "a value with a hyphen": (lambda d: ("pack", d.folder, "-o", "--append"),
                              "if that is the value, write --", nothing,
                              lambda d: ("pack", d.folder, f"--out={d.out}")),
    "an option of another mode": (lambda d: d.pack("--quality", "80"),
                                  "leave it out or change the mode", nothing,
                                  lambda d: (*d.other()[:4], "--mode", "encode", "--quality",
                                             "80")),
    "quality of mix": (lambda d: (*d.other()[:4], "--mode", "mix", "--quality", "80"),
                       "add --max-side or --short-side, or leave --", nothing,
                       lambda d: (*d.other()[:4], "--mode", "mix", "--quality", "80",
                                  "--max-side", "20")),
    "--max-bad": (lambda d: d.pack("--max-bad", "1"), "add --on-bad skip or leave it out", nothing,
                  lambda d: d.pack("--max-bad", "1", "--on-bad", "skip")),
    "--cache-bytes": (lambda d: ("doctor", first(d), "--cache-bytes", "1GiB"),
                      "--cache-bytes needs a cache; add --cache DIR", nothing,
                      lambda d: ("doctor", d.out, "--cache-bytes", "1GiB", "--cache", d.top / "c",
                                 "--seconds", "1", "--batch", "2")),
    "did you mean": (lambda d: ("inof",), "did you mean info?", nothing,
                     lambda d: ("info", first(d))),
    "operations": (lambda d: ("ops", "decode | zzzzz"), "'penstock ops' lists all operations",
                   nothing, lambda d: ("ops",)),
    "commands": (lambda d: ("zzzzz",), "'penstock --help' lists all", nothing,
                 lambda d: ("--help",)),
    "the command first": (lambda d: ("--json", "info"), "'penstock --help' lists the commands",
                          nothing, lambda d: ("--help",)),
}


TABLES = {**INPUTS, **PACKS, **OPTIONS}


@pytest.mark.parametrize("row", TABLES)
def test_the_advice_works(tmp_path, row):
    follow(Desk(tmp_path), TABLES[row])


def test_a_sample_that_cannot_be_listed(tmp_path):
    """verify names the place."""
    desk = Desk(tmp_path)
    shard = next(iter(first(desk).glob("??/*.shard")))
    data = bytearray(shard.read_bytes())
    data[64:256] = bytes(192)
    shard.write_bytes(data)
    assert "could not be listed; run 'penstock verify'" in run("info", desk.out, "--samples").err
    assert shard.name in run("verify", desk.out).err


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    if not shutil.which("ffmpeg"):
        pytest.skip("ffmpeg: not installed")
    from test_cli_videos import make_video

    root = tmp_path_factory.mktemp("videos")
    make_video(root / "wave" / "0.mp4")
    return root


def test_modes_of_videos(videos, tmp_path):
    command = ("pack", videos, "-o", tmp_path / "v.pen", "--mode")
    assert "leave --no-index out" in run(*command, "keep", "--no-index").err
    for mode in ("keep", "encode", "raw", "mix", "smart"):
        good(*command[:3], tmp_path / f"{mode}.pen", "--mode", mode)


def test_a_program_for_videos(videos, tmp_path):
    """None is found; then a script; then the program itself."""
    command = ("pack", videos, "-o", tmp_path / "v.pen")
    result = run(*command, env={**os.environ, "PATH": "/nowhere"})
    assert "install the package ffmpeg" in result.err
    program = shutil.which("ffmpeg")
    script = tmp_path / "bin" / "ffmpeg"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    result = run(*command, env={**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}"})
    assert "put the folder of the binary first in PATH" in result.err
    before = f"{os.path.dirname(program)}:{script.parent}:{os.environ['PATH']}"
    good(*command, env={**os.environ, "PATH": before})
