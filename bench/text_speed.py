#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What captions and keys in batches cost, against images alone.

    build/venv/bin/python bench/text_speed.py [--quick] [--photos DIR]

Each photograph gets a caption of 20 to 200 bytes. The rates are those of `penstock doctor` with two
threads; in each round all cases take turns, and a ratio is the median of those of the rounds. The
pack stays in build/bench/packs. Writes build/bench/text.jsonl and text.md.
"""

import argparse
import json
import statistics
import subprocess
import sys

from common import places, say
from common.run import Run, penstock
from penstock.lab.loaders import report

FULL, QUICK = {"packs": 1000}, {"packs": 100}
IMAGE = "image: decode | random_resized_crop 224 | hflip | tensor u8; label: tensor"
CASES = {"image": IMAGE, "and caption": f"{IMAGE}; caption: text 256",
         "and caption, key": f"{IMAGE}; caption: text 256; id: key 64"}
WORDS = "a photograph of something small and red in front of a large window at night".split()


def caption(number):
    return " ".join(WORDS[(number * 7 + i) % len(WORDS)] for i in range(4 + number % 31))[:200]


def captioned(run, count):
    pack = run.packs.folder / f"captions-{count}.pen"
    if (pack / "manifest").exists():
        return pack
    say(f"  packing {count} photographs with captions")
    schema = {"image": "image", "label": "i64", "caption": "text"}
    with penstock.Writer(pack, schema) as writer:
        for i in range(count):
            data = run.files[i % len(run.files)].read_bytes()
            writer.add(image=data, label=i % 10, caption=caption(i))
    return pack


def rate(pack, pipeline, options):
    command = [places.BUILD / "penstock", "doctor", pack, "--threads", 2, "--batch", 64,
               "--seconds", options.seconds, "--pipeline", pipeline, "--json"]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["samples_per_second"]


def measured(pack, options):
    rounds = []
    for number in range(options.rounds):
        names = list(CASES) if number % 2 else list(CASES)[::-1]
        rounds.append({name: rate(pack, CASES[name], options) for name in names})
        say(f"  round {number + 1} of {options.rounds}")
    return rounds


def table(rounds):
    lines = [["fields", "samples/s", "of images alone"]]
    for name in CASES:
        ratios = sorted(row[name] / row["image"] for row in rounds)
        lines.append([name, f"{statistics.median(row[name] for row in rounds):,.0f}",
                      f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}-{ratios[-1]:.3f})"])
    return report.table(lines)


def main():
    run = Run(argparse.ArgumentParser(description=__doc__), FULL, QUICK)
    rounds = measured(captioned(run, run.sizes["packs"]), run.options)
    run.write("text", [{"kind": "text", **row} for row in rounds], table(rounds),
              "RandomResizedCrop 224 + flip, u8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
