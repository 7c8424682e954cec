# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments of runs that write packs into an object store, and of copies.

After each kill there is the old pack or the new one, whole, or none where there was none; the same
command run again gives the bytes of an uninterrupted run; gc leaves no upload and no object that
the pack does not name.
"""

import pathlib
import random
import shutil
import subprocess
import sys
import time

import _program as program
from _program import Sweep, scaled

sys.path.insert(0, str(program.ROOT / "tests" / "python"))
import net_stage

BUCKET = "packs"


def clean(tree):
    """Without directories, which object stores do not have."""
    return {name: data for name, data in (tree or {}).items() if data is not None}


class Store:
    """The bucket, seen by another client than the one that is killed."""

    def __init__(self, server, home):
        self.client = server.boto3(retries=5)
        self.env = server.environment(HOME=str(home))

    def names(self, pack):
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{pack}/")
        return [o["Key"] for page in pages for o in page.get("Contents", ())]

    def tree(self, pack):
        return {
            name[len(pack) + 1:]: self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
            for name in self.names(pack)
        }

    def fill(self, pack, tree):
        for name in self.names(pack):
            self.client.delete_object(Bucket=BUCKET, Key=name)
        for name, data in tree.items():
            self.client.put_object(Bucket=BUCKET, Key=f"{pack}/{name}", Body=data)

    def uploads(self):
        return self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])

    def run(self, *args):
        return program.run(*args, env=self.env)


class Case:
    """A command that makes the pack `name` out of `before`; `after` is what it has to be."""

    def __init__(self, store, name, pack, before, after, *command):
        self.store, self.name, self.pack = store, name, pack
        self.before, self.after, self.command = clean(before), clean(after), command
        self.out = f"s3://{BUCKET}/{pack}"

    def reset(self):
        self.store.fill(self.pack, self.before)
        code, text = self.store.run("gc", self.out)
        if code != 0:
            sys.exit(f"cannot go on: gc: {text}")

    def found(self):
        return self.store.tree(self.pack)

    def check_gc(self, complain):
        """Before the run goes on, or after it."""
        code, text = self.store.run("gc", self.out)
        found = self.found()
        if code != 0:
            complain(f"gc: {text}")
        if self.store.uploads():
            complain("gc leaves uploads")
        for known in (self.after, self.before, {}):
            if found.get("manifest") == known.get("manifest"):
                # An append may have written the last shard of the old pack anew.
                wrong = [n for n in found if n not in known]
                if wrong:
                    complain(f"gc leaves {wrong[0]}")
                break

    def check_state(self, complain):
        found = self.found().get("manifest")
        if found not in (self.before.get("manifest"), self.after["manifest"]):
            complain("neither the old pack nor the new")
        elif found:
            code, text = self.store.run("verify", self.out)
            if code != 0:
                complain(f"verify: {text}")

    def check_again(self, complain):
        code, text = self.store.run(*self.command)
        if code == 1 and "the pack already exists" in text:
            code, text = self.store.run("gc", self.out)
        if code != 0:
            complain(f"run again: {text}")
        self.check_gc(complain)
        wrong = program.difference(self.after, self.found())
        if wrong:
            complain(f"run again: {wrong}")


class FromStore(Case):
    """A copy out of the store, into a directory."""

    def __init__(self, store, name, out, after, *command):
        super().__init__(store, name, "", {}, after, *command)
        self.out = str(out)

    def reset(self):
        shutil.rmtree(self.out, ignore_errors=True)

    def found(self):
        found = program.tree(self.out)
        return {n: d for n, d in clean(found).items() if not n.startswith(".work/")}

    def check_gc(self, complain):
        if not pathlib.Path(self.out).exists():
            return
        super().check_gc(complain)
        if pathlib.Path(self.out, ".work").exists():
            complain("gc leaves .work")


def timed(case):
    case.reset()
    begin = time.monotonic()
    code, text = case.store.run(*case.command)
    if code != 0:
        sys.exit(f"cannot go on: {case.name}: {text}")
    return time.monotonic() - begin


def kill_after(case, seconds):
    process = subprocess.Popen(
        [program.BIN, *map(str, case.command)], env=case.store.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    process.kill()
    return process.wait() == -9


def sweep_times(case, n, dice):
    sweep = Sweep(f"kill -9 at random times of {case.name}")
    begin = time.monotonic()
    length = timed(case)
    late = 0
    while sweep.n < n and late <= n + 100:
        case.reset()
        seconds = dice.random() * length
        if not kill_after(case, seconds):
            late += 1
            continue
        sweep.n += 1

        def complain(text, when=seconds):
            sweep.complain(f"after {when * 1000:.1f} ms: {text}")

        case.check_state(complain)
        if dice.random() < 0.3:
            case.check_gc(complain)  # the run starts anew then
        case.check_again(complain)
    if sweep.n < n:
        sweep.complain("the program ends before it can be killed")
    sweep.end(f"{sweep.n} kills in runs of {length * 1000:.0f} ms ({late} came too late), "
              f"{time.monotonic() - begin:.1f} s")


def main():
    dice = random.Random(6)
    small = ("--threads", "2", "--block-samples", "3", "--shard-bytes", "6000")
    with program.scratch() as scratch, net_stage.S3Server(buckets=[BUCKET]) as server:
        top = pathlib.Path(scratch)
        store = Store(server, top / "home")
        for name, n in (("few", 7), ("many", 60)):
            program.make_inputs("folder", top / name, 0, n)
        start, grown, fresh = top / "start.pen", top / "grown.pen", top / "fresh.pen"
        program.must("pack", top / "few", "-o", start, *small)
        shutil.copytree(start, grown)
        program.must("pack", top / "many", "-o", grown, "--append", *small)
        program.must("gc", grown)
        program.must("pack", top / "many", "-o", fresh, *small)
        start, grown, new = program.tree(start), program.tree(grown), program.tree(fresh)
        store.fill("source.pen", clean(new))

        def at(name):
            return f"s3://{BUCKET}/{name}"

        cases = [
            (Case(store, "a pack into a bucket", "a.pen", {}, new,
                  "pack", top / "many", "-o", at("a.pen"), *small), scaled(40, 2)),
            (Case(store, "an append in a bucket", "b.pen", start, grown,
                  "pack", top / "many", "-o", at("b.pen"), "--append", *small), scaled(20, 1)),
            (Case(store, "a copy into a bucket", "c.pen", {}, new,
                  "copy", fresh, at("c.pen")), scaled(25, 1)),
            (FromStore(store, "a copy out of a bucket", top / "d.pen", new,
                       "copy", at("source.pen"), top / "d.pen"), scaled(15, 1)),
        ]
        for case, n in cases:
            sweep_times(case, n, dice)
    return Sweep.total()


if __name__ == "__main__":
    sys.exit(main())
