#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ranks fetch of a pack in an object store, beside what the simulator says.

    ./dev bench ranks [--photos DIR] [--copies N] [--shuffle-buffer N] [--batch N] [--memory M]
                      [--worlds 1,2,3,5,8]

The store is a Ceph gateway on this machine. Each rank is a process, and all of them load one epoch
without decoding. Bytes are the bodies of all responses, with the indexes of blocks and of shards
and the manifest; requests are all that a rank makes. The table is printed and written to
build/bench/ranks-fetch.md.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from common import places, say, simulator
from penstock.lab.loaders import report

sys.path.insert(0, str(places.ROOT / "tests" / "python"))
import net_stage

BUCKET = "ranks-fetch"
RANK = """
import json, sys, penstock
url, batch, buffer, memory, rank, world = sys.argv[1:]
with penstock.Loader(url, int(batch), shuffle=True, shuffle_buffer=int(buffer), memory=memory,
                     pipeline={"label": "tensor"}, rank=int(rank), world_size=int(world),
                     compare_ranks=False, drop_last=True, threads=1, output="numpy") as loader:
    samples = sum(len(batch[0]) for batch in loader)
    stats = loader.stats()
print(json.dumps([samples, stats["requests"], stats["bytes_received"], stats["fetch_unit"],
                  stats["memory_peak_bytes"]]))
"""


def write_pack(files, copies):
    import penstock

    places.PACKS.mkdir(parents=True, exist_ok=True)
    path = places.PACKS / f"ranks-{len(files)}-{copies}.pen"
    if not (path / "manifest").exists():
        images = [file.read_bytes() for file in files]
        with penstock.Writer(path, {"image": "image", "label": "i64"}) as writer:
            for number in range(len(images) * copies):
                writer.add(key=str(number), image=images[number % len(images)], label=number)
    return penstock.open(path)


def upload(store, pack):
    client = store.boto3(retries=5)
    client.create_bucket(Bucket=BUCKET)
    root = pathlib.Path(pack.path)
    for file in root.rglob("*"):
        if file.is_file():
            client.upload_file(str(file), BUCKET, f"photos.pen/{file.relative_to(root)}")


def load(store, options, world):
    """(samples, requests, bytes, unit, most memory) of all ranks."""
    environment = {**os.environ, **store.environment(), "PYTHONPATH": str(places.BUILD / "python")}
    words = [f"s3://{BUCKET}/photos.pen", options.batch, options.shuffle_buffer, options.memory]
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, *map(str, words), str(rank), str(world)],
                              env=environment, stdout=subprocess.PIPE, text=True)
             for rank in range(world)]
    found = [json.loads(rank.communicate()[0]) for rank in ranks]
    samples, requests, received, units, memory = zip(*found)
    return sum(samples), sum(requests), sum(received), units[0], max(memory)


def simulate(pack, options, world):
    return simulator.simulate(simulator.words(
        samples=len(pack), sample_bytes=round(pack.info["payload_bytes"] / len(pack)),
        shuffle_buffer=options.shuffle_buffer, memory=options.memory, nodes=world, ranks=1,
        batch=options.batch, seconds=1, effort=5))["order"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, default=places.default_photos())
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--shuffle-buffer", type=int, default=768)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--worlds", default="1,2,3,5,8")
    options = parser.parse_args()
    pack = write_pack(places.photo_files(options.photos), options.copies)
    each = pack.info["payload_bytes"] / len(pack)
    lines = [["ranks", "a request has", "bytes over data", "simulated", "requests per block",
              "simulated", "most memory of a rank, MiB"]]
    with net_stage.Ceph() as store:
        upload(store, pack)
        for world in map(int, options.worlds.split(",")):
            samples, requests, received, unit, memory = load(store, options, world)
            model = simulate(pack, options, world)
            blocks = samples / pack.info["block_samples"]
            lines.append([str(world), unit, f"{received / (samples * each):.3f}",
                          f"{model['fetched_over_pack']:.3f}", f"{requests / blocks:.2f}",
                          f"{model['requests_per_block']:.2f}", f"{memory >> 20}"])
            say(f"  {' '.join(lines[-1])}")
    text = report.table(lines)
    print(text)
    places.WORK.mkdir(parents=True, exist_ok=True)
    (places.WORK / "ranks-fetch.md").write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
