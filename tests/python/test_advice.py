# SPDX-License-Identifier: Apache-2.0
"""Messages that advise an action: each advice is followed, and has to work.

A row of the table: what is done wrong, what the message says, what the user then does, and the
command that works after it.
"""

import contextlib
import tarfile

import net_stage
import pytest
from cli_tools import good, image_bytes, make_folder, run, write_list
from py_tools import need_penstock, png

penstock = need_penstock()
SMALL = ("--block-samples", "2", "--shard-bytes", "1", "--order", "source", "--mode", "keep")


class Desk:
    """A directory with a folder of pictures in it, and the command that packs it."""

    def __init__(self, top):
        self.top, self.folder, self.out = top, make_folder(top / "in"), top / "a.pen"

    def pack(self, *more, source=None, out=None):
        return ("pack", source or self.folder, "-o", out or self.out, *SMALL, *more)

    def task(self, i, n=2):
        return self.pack("--task", f"{i}/{n}")

    def broken(self):
        """One input is broken, and the run has failed at it."""
        (self.folder / "dog" / "z.jpg").write_bytes(b"this is no picture")
        return self.pack()

    def failed(self):
        run(*self.broken())
        return self.tiled()

    def tiled(self):
        return ("pack", self.folder, "-o", self.out, "--mode", "tile")

    def gzipped(self):
        with tarfile.open(self.top / "a.tar.gz", "w:gz") as tar:
            tar.add(self.folder / "cat" / "0.jpg", "0.jpg")
        return ("pack", self.top / "a.tar.gz", "-o", self.out)

    def stray(self):
        (self.folder / "stray.jpg").write_bytes(image_bytes(1))
        return self.pack()

    def headless(self):
        (self.top / "l.csv").write_text("in/cat/0.jpg,x,1\nnone.jpg,y,2\n")
        return self.pack(source=self.top / "l.csv")

    def with_header(self):
        (self.top / "l.csv").write_text("path,label,n\nin/cat/0.jpg,x,1\nin/dog/0.jpg,y,2\n")

    def tasks_begun(self):
        good("plan", *self.pack()[1:])
        good(*self.task(0))

    def changed_after_the_plan(self):
        self.tasks_begun()
        (self.folder / "dog" / "1.jpg").write_bytes(image_bytes(77))
        return self.task(1)

    def plan_again(self):
        good("plan", *self.pack()[1:])
        good(*self.task(0))
        good(*self.task(1))


def nothing(desk):
    pass


# What is done -> message -> what the user does -> what then works.
TABLE = {
    "mend it": (Desk.broken, "mend or remove it",
                lambda d: (d.folder / "dog" / "z.jpg").write_bytes(image_bytes(1)), Desk.pack),
    "remove it": (Desk.broken, "mend or remove it",
                  lambda d: (d.folder / "dog" / "z.jpg").unlink(), Desk.pack),
    "leave it out": (Desk.broken, "leave out what is broken with --on-bad skip", nothing,
                     lambda d: d.pack("--on-bad", "skip")),
    "another name": (lambda d: good(*d.pack()) and d.pack(), "choose another name", nothing,
                     lambda d: d.pack(out=d.top / "b.pen")),
    "append instead": (lambda d: good(*d.pack()) and d.pack(), "or --append to add to it", nothing,
                       lambda d: ("pack", d.folder, "-o", d.out, "--append")),
    "leave out --append": (lambda d: d.pack("--append"), "leave out --append to make one", nothing,
                           Desk.pack),
    "a name in .pen": (lambda d: d.pack(out=d.top / "a"), "a.pen", nothing, Desk.pack),
    "run that one again": (Desk.failed, "run that one again",
                           lambda d: (d.folder / "dog" / "z.jpg").unlink(), Desk.pack),
    "give it up": (Desk.failed, "or 'penstock gc", lambda d: [
        (d.folder / "dog" / "z.jpg").unlink(), good("gc", d.out)],
        Desk.tiled),
    "a folder for the stray": (Desk.stray, "move the one away or into a folder",
                               lambda d: (d.folder / "stray.jpg").rename(
                                   d.folder / "cat" / "stray.jpg"), Desk.pack),
    "the stray away": (Desk.stray, "move the one away",
                       lambda d: (d.folder / "stray.jpg").unlink(), Desk.pack),
    "a list of the files": (Desk.stray, "give a list of the files", lambda d: write_list(
        d.top / "l.csv", ["path", "label"], [["in/stray.jpg", "x"], ["in/cat/0.jpg", "y"]]),
        lambda d: d.pack(source=d.top / "l.csv")),
    "--order source": (Desk.gzipped, "add --order source", nothing,
                       lambda d: (*d.gzipped(), "--order", "source")),
    "a header": (Desk.headless, "add a line such as path,label", Desk.with_header,
                 lambda d: d.pack(source=d.top / "l.csv")),
    "one kind after the other": (
        lambda d: (*d.pack(), write_list(d.top / "l.csv", ["path", "label"],
                                         [["in/cat/0.jpg", "cat"]])),
        "pack them one after the other with --append", lambda d: good(*d.pack()),
        lambda d: ("pack", d.top / "l.csv", "-o", d.out, "--append")),
    "run the tasks first": (lambda d: good("plan", *d.pack()[1:]) and ("finalise", d.out),
                            "run 'penstock pack --task I/N' for each first",
                            lambda d: [good(*d.task(0)), good(*d.task(1))],
                            lambda d: ("finalise", d.out)),
    "run that task first": (lambda d: d.tasks_begun() or ("finalise", d.out),
                            "run 'penstock pack --task 1/2' first", lambda d: good(*d.task(1)),
                            lambda d: ("finalise", d.out)),
    "that number of tasks": (lambda d: d.tasks_begun() or d.task(1, 3), "use that number", nothing,
                             lambda d: d.task(1)),
    "gc and start again": (lambda d: d.tasks_begun() or d.task(1, 3), "'penstock gc",
                           lambda d: good("gc", d.out), lambda d: d.task(1, 3)),
    "plan again": (Desk.changed_after_the_plan, "run 'penstock plan' again, then every task",
                   Desk.plan_again, lambda d: ("finalise", d.out)),
}


@pytest.mark.parametrize("row", TABLE)
def test_the_advice_works(tmp_path, row):
    wrong, message, action, then = TABLE[row]
    desk = Desk(tmp_path)
    result = run(*wrong(desk))
    assert result.code in (1, 2), result.err
    assert message in result.err
    action(desk)
    good(*then(desk))


def test_a_writer_is_told_to_choose_another_name(tmp_path):
    desk = Desk(tmp_path)
    good(*desk.pack())
    with pytest.raises(penstock.Error, match="choose another name"), \
            contextlib.closing(penstock.Writer(desk.out, {"image": "image"})):
        pass
    with penstock.Writer(tmp_path / "b.pen", {"image": "image"}) as writer:
        writer.add(key="s", image=png(1, 12, 10))
    good("verify", tmp_path / "b.pen")


def test_tasks_into_a_store(tmp_path):
    """Pack into a directory, finalise, copy."""
    desk = Desk(tmp_path)
    with net_stage.S3Server(buckets=["packs"]) as server:
        env = server.environment(HOME=str(tmp_path))
        result = run(*desk.pack("--task", "0/2", out="s3://packs/a.pen"), env=env)
        assert result.code == 1
        assert "pack into one, 'penstock finalise' it, and 'penstock copy' the pack" in result.err
        desk.plan_again()
        good("finalise", desk.out)
        good("copy", desk.out, "s3://packs/a.pen", env=env)
        good("verify", "s3://packs/a.pen", env=env)


def test_no_directory_for_the_work(tmp_path):
    desk = Desk(tmp_path)
    with net_stage.S3Server(buckets=["packs"]) as server:
        env = server.environment(HOME="", XDG_CACHE_HOME="")
        command = desk.pack(out="s3://packs/a.pen")
        result = run(*command, env=env)
        assert result.code == 1 and "give one with --work" in result.err
        good(*command, "--work", tmp_path / "work", env=env)
