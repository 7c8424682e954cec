#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an image costs as things grow: threads, packs, batches, image sides; one table.

    build/venv/bin/python bench/growth.py [--quick] [--photos DIR] [--rounds N] [PART...]

threads  1 and 2
packs    10^3, 10^4, 10^5 photographs (links to the same ones) and 10^6 thumbnails
batches  1 to 2,048
sides    160 to 4,000 pixels: shrunk photographs, and photographs side by side

Every figure is the median of rounds of `penstock bench`; the rows of a part take turns. The packs
stay in build/bench/growth-*: some 15 GB in full. Writes build/bench/growth.jsonl and growth.md.
"""

import argparse
import hashlib
import importlib
import io
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from common import places, say
from pack_speed import link_all
from penstock.lab.loaders import report
from PIL import Image

TRAIN = "decode | random_resized_crop 224 | hflip | tensor u8"
THUMBNAILS = "decode | random_resized_crop 56 | hflip | tensor u8"
FULL = {"packs": (1000, 10_000, 100_000), "thumbnails": 1_000_000, "side_images": 200,
        "batches": (1, 2, 4, 16, 64, 256, 1024, 2048),
        "sides": (160, 256, 400, 500, 640, 1000, 1600, 2500, 4000)}
QUICK = {"packs": (100, 1000), "thumbnails": 5000, "side_images": 12,
         "batches": (1, 16, 256), "sides": (160, 500, 2000)}
THUMBNAIL_SIDE = 64


def package():
    if str(places.BUILD / "python") not in sys.path:
        sys.path.insert(0, str(places.BUILD / "python"))
    return importlib.import_module("penstock")


def program(*arguments):
    command = [str(places.BUILD / "penstock"), *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


# --- packs ---------------------------------------------------------------------------------------


class Packs:
    def __init__(self, photos, sizes):
        self.photos, self.sizes = photos, sizes
        self.files = places.photo_files(photos)
        key = hashlib.sha256(str(photos.resolve()).encode()).hexdigest()[:8]
        self.folder = places.WORK / f"growth-{key}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def packed(self, name, make_input):
        """A pack made of what make_input leaves in its folder."""
        pack = self.folder / f"{name}.pen"
        if not (pack / "manifest").exists():
            say(f"  packing {name}")
            program("pack", make_input(), "-o", pack)
        return pack

    def links(self, count):
        """`count` photographs, or the nearest number of whole rounds through them."""
        folder = self.folder / f"links-{count}"
        if count >= len(self.files):
            link_all(self.photos, folder, max(1, count // len(self.files)))
            return folder
        for file in places.photo_files(self.photos, count):
            (folder / file.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / file.parent.name / file.name)
        return folder

    def of_count(self, count):
        return self.packed(f"photos-{count}", lambda: self.links(count))

    def thumbnails(self, count):
        """Written one by one through the package: as many files would take longer than all else."""
        pack = self.folder / f"thumbnails-{count}.pen"
        if (pack / "manifest").exists():
            return pack
        say(f"  packing {count} thumbnails")
        images = [thumbnail(file) for file in self.files[:1000]]
        schema = {"image": "image", "label": "i64"}
        with package().Writer(pack, schema, block_samples=1024) as writer:
            for i in range(count):
                writer.add(image=images[i % len(images)], label=i % 1000)
        return pack

    def of_side(self, side):
        def make():
            folder = self.folder / f"side-{side}"
            for number in range(self.sizes["side_images"]):
                file = folder / f"c{number % 4}" / f"{number:04}.jpg"
                file.parent.mkdir(parents=True, exist_ok=True)
                picture(self.files, number, side).save(file, quality=92)
            return folder

        return self.packed(f"side-{side}-{self.sizes['side_images']}", make)


def open_rgb(file):
    with Image.open(file) as image:
        return image.convert("RGB")


def thumbnail(file):
    image, out = open_rgb(file), io.BytesIO()
    image.resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE)).save(out, "JPEG", quality=85)
    return out.getvalue()


def picture(files, number, side):
    """4:3, `side` wide: one photograph shrunk, or as many as are needed side by side."""
    height = side * 3 // 4
    image = open_rgb(files[number % len(files)])
    if image.width >= side and image.height >= height:
        return image.resize((side, height))
    out, x, y, n = Image.new("RGB", (side, height)), 0, 0, number
    while y < height:
        row = 10**9
        while x < side:
            part = open_rgb(files[n % len(files)])
            out.paste(part, (x, y))
            x, row, n = x + part.width, min(row, part.height), n + 1
        x, y = 0, y + row
    return out


# --- measuring -----------------------------------------------------------------------------------


def bench(pack, seconds, threads=2, batch=256, pipeline=TRAIN):
    for shard in pack.rglob("*.shard"):  # into the page cache, whatever was measured before
        with open(shard, "rb") as file:
            while file.read(1 << 22):
                pass
    text = program("bench", pack, "--threads", threads, "--batch", batch, "--seconds", seconds,
                   "--pipeline", pipeline, "--json")
    return {**json.loads(text), "from_nothing": from_nothing(pack, threads, batch, pipeline)}


def from_nothing(pack, threads, batch, pipeline):
    """Seconds from opening the pack to its first batch."""
    penstock, began = package(), time.perf_counter()
    with penstock.Loader(penstock.open(pack), batch, shuffle=True, pipeline=pipeline,
                         threads=threads, output="numpy") as loader:
        next(iter(loader))
        return time.perf_counter() - began


def middle(rows, *path):
    values = []
    for row in rows:
        for key in path:
            row = row[key]
        values.append(row)
    return statistics.median(values)


def measured(part, cases, options):
    """[{...}] for cases [(name, pack, settings)], which take turns."""
    found = {name: [] for name, _, _ in cases}
    for number in range(options.rounds):
        for name, pack, settings in cases:
            found[name].append(bench(pack, options.seconds, **settings))
        say(f"  {part}: round {number + 1} of {options.rounds}")
    rows = []
    for name, runs in found.items():
        rates = [run["samples_per_second"] for run in runs]
        rows.append({
            "kind": "growth", "part": part, "what": name, "rate": statistics.median(rates),
            "low": min(rates), "high": max(rates),
            "cpu_us": middle(runs, "cpu_seconds_per_1000_samples") * 1000,
            "first_batch": middle(runs, "from_nothing"),
            "p99_ms": middle(runs, "wait_for_a_batch", "p99_ms"),
            "loader_mb": middle(runs, "loader_memory_reserved_bytes") / 1e6,
            "bottleneck": runs[-1]["bottleneck"]})
    return rows


def parts(packs, sizes):
    """{part: its cases}; a pack is made when its part is asked for."""
    middle_pack = sizes["packs"][min(1, len(sizes["packs"]) - 1)]
    return {
        "threads": lambda: [(f"{n} threads" if n > 1 else "1 thread", packs.of_count(middle_pack),
                             {"threads": n}) for n in (1, 2)],
        "packs": lambda: [
            *[(f"{n:,} photographs", packs.of_count(n), {}) for n in sizes["packs"]],
            (f"{sizes['thumbnails']:,} thumbnails", packs.thumbnails(sizes["thumbnails"]),
             {"pipeline": THUMBNAILS})],
        "batches": lambda: [(f"batch {n:,}", packs.of_count(middle_pack), {"batch": n})
                            for n in sizes["batches"]],
        "sides": lambda: [(f"side {n:,}", packs.of_side(n), {"batch": sizes["side_images"]})
                          for n in sizes["sides"]],
    }


def table(rows):
    lines = [["", "images/s (min-max)", "us per image", "CPU us per image", "open to first batch s",
              "p99 wait ms", "loader MB", "bottleneck"]]
    for row in rows:
        lines.append([row["what"], f"{row['rate']:,.0f} ({row['low']:,.0f}-{row['high']:,.0f})",
                      f"{1e6 / row['rate']:.0f}", f"{row['cpu_us']:.0f}",
                      f"{row['first_batch']:.3f}", f"{row['p99_ms']:.1f}",
                      f"{row['loader_mb']:.0f}", row["bottleneck"]])
    return report.table(lines)


def aims(rows):
    """Lines on what growth is to hold to."""
    rate = {(row["part"], row["what"]): row["rate"] for row in rows}
    lines, threads = [], [value for (part, _), value in rate.items() if part == "threads"]
    if len(threads) == 2:
        lines.append(f"two threads give {threads[1] / threads[0]:.2f} of one (aim: 1.9)")
    photos = [value for (part, what), value in rate.items() if part == "packs" and "photo" in what]
    if len(photos) > 1:
        lines.append(f"the largest pack of photographs gives {photos[-1] / photos[0]:.3f} of the "
                     "smallest (aim: within 5 %)")
    for row in rows:
        if "thumbnails" in row["what"]:
            lines.append(f"first batch of {row['what']} after {row['first_batch']:.3f} s "
                         "(aim: 0.3)")
    return lines


class Run:
    """A run of this program, large_images.py or views_speed.py: its options, packs, and what it
    writes."""

    def __init__(self, parser, full, quick):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
        parser.add_argument("--quick", action="store_true", help="small counts, one short round")
        parser.add_argument("--rounds", type=int)
        parser.add_argument("--seconds", type=int)
        self.options = options = parser.parse_args()
        options.rounds = options.rounds or (1 if options.quick else 5)
        options.seconds = options.seconds or (1 if options.quick else 5)
        self.sizes = quick if options.quick else full
        self.packs = Packs(options.photos, self.sizes)
        if not self.packs.files:
            sys.exit(f"no photographs in {options.photos}: give a folder of classes with --photos")
        self.machine = places.machine()

    def write(self, name, rows, text, what="RandomResizedCrop 224 + flip, u8"):
        options = self.options
        head = {"kind": "parameters", "machine": self.machine, "sizes": self.sizes,
                "rounds": options.rounds, "seconds": options.seconds,
                "photos": len(self.packs.files)}
        report.write(places.WORK / f"{name}.jsonl", [head, *rows])
        text = (f"{report.machine_text(self.machine)}; medians of {options.rounds} rounds of "
                f"{options.seconds} s, {what}\n\n{text}\n")
        (places.WORK / f"{name}.md").write_text(text, encoding="utf-8")
        say("\n" + text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART",
                        choices=["threads", "packs", "batches", "sides", []])
    run, rows = Run(parser, FULL, QUICK), []
    for name, cases in parts(run.packs, run.sizes).items():
        if not run.options.parts or name in run.options.parts:
            rows += measured(name, cases(), run.options)
    run.write("growth", rows, table(rows) + "".join(f"\n- {line}" for line in aims(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
