#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulate multi-node jobs, as two tables; and compare the model with a real run.

    ./dev bench simulate [--nodes 1,8,64,512,1000] [--effort S] [-- KEY=VALUE...]
    ./dev bench simulate check --rate R --first S [--within 0.15] -- KEY=VALUE...
    ./dev bench simulate check --record build/bench/remote-latency.jsonl [--within 0.15]
                               [-- KEY=VALUE...]
    ./dev bench simulate worlds [--batches 32,64,256] [-- KEY=VALUE...]

KEY=VALUE are arguments of the simulator: build/sim/penstock-sim --help lists them.

By default the pack has 10^9 samples of 110,000 bytes, 32 in a block. All values are simulated; the
constants follow the tables. Writes simulate.jsonl and simulate.md in build/bench.

`check` compares with a real run: R samples per second, and S seconds to the first batch. Describe
the same job, with the latency, bandwidth and milliseconds per batch that were measured there.
--record reads all of them from `./dev bench remote latency`: milliseconds per batch from the rate
of the local disk, bandwidth from curl, latency from the scenario. The first batch from the local
disk also takes time to start the process and its threads; this time is added to the simulated one.
Exit code 1: the results differ by more than --within.

`worlds` prints how often the samples of a pack are fetched, and how many requests each of its
blocks takes, by the number of ranks and the batch size. Without KEY=VALUE the pack has 245,760
samples of 110,000 bytes, and a shuffle buffer of 12,288 samples.
"""

import argparse
import json
import pathlib
import statistics
import sys

from common import places
from common.simulator import run, simulate, words
from penstock.lab.loaders import report

PACK = words(samples="1e9", sample_bytes=110000, block_samples=32)
TRAINING = ("nodes", "simulated nodes", "first batch, median / last rank (s)",
            "waiting, mean / worst rank (%)", "longest wait (s)", "fetched / pack")
STORE = ("nodes", "Gbit/s per node, mean / peak", "requests/s per prefix, mean / peak",
         "requests/s for the manifest, peak", "throttled (%)", "requests per epoch (millions)")


def short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def training_row(record):
    training, followed = record["training"], record["nodes_simulated"]
    return (
        f"{record['nodes']:,}", "all" if followed == record["nodes"] else f"{followed:,}",
        f"{training['first_batch_median_seconds']:.2f} / "
        f"{training['first_batch_last_rank_seconds']:.2f}",
        f"{training['waiting_percent']:.1f} / {training['waiting_worst_rank_percent']:.1f}",
        f"{training['longest_wait_seconds']:.2f}", f"{record['order']['fetched_over_pack']:.4f}",
    )


def store_row(record):
    rates, node = record["requests_per_second_and_prefix"], record["bandwidth_of_a_node"]
    requests = record["requests_simulated"]
    throttled = 100 * requests["throttled"] / max(requests["made"], 1)
    return (
        f"{record['nodes']:,}",
        f"{short(node['mean_gbit_per_second'])} / {short(node['busiest_second_gbit_per_second'])}",
        f"{short(rates['mean'])} / {short(rates['busiest'])}",
        short(rates["busiest_for_the_manifest"]), f"{throttled:.2f}",
        f"{record['cost_per_epoch']['requests'] / 1e6:.1f}",
    )


def lines_of(head, row, records):
    lines = [head, ["---:"] * len(head), *map(row, records)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def summary(first):
    constants = ", ".join(f"{name.replace('_', ' ')} {value}"
                          for name, value in first["constants"].items())
    return (f"Simulated, the first {short(first['seconds'])} s of an epoch. "
            f"{first['order']['samples']:,} samples, {first['order']['samples_per_block']} per "
            f"block, {first['order']['shards']:,} shards, "
            f"{first['order']['pack_bytes'] / 1e12:.1f} TB. Constants: {constants}; at most "
            f"{first['requests_per_second_and_prefix']['limit']} requests/s per prefix; "
            f"${first['cost_per_epoch']['dollars_per_million_requests']} per million GET "
            "requests.\n")


def table(records):
    return "\n".join((lines_of(TRAINING, training_row, records),
                      lines_of(STORE, store_row, records), summary(records[0])))


def run_table(args):
    records = []
    for nodes in args.nodes.split(","):
        given = [*PACK, *words(nodes=nodes, effort=args.effort), *args.options]
        records.append(simulate(given))
        print("| " + " | ".join(training_row(records[-1])) + " |", flush=True)
    report.write(places.WORK / "simulate.jsonl", [{"machine": places.machine()}, *records])
    text = table(records)
    (places.WORK / "simulate.md").write_text(text, encoding="utf-8")
    print("\n" + text)
    return 0


def from_record(path):
    """What a run of `./dev bench remote latency` measured: the job, rate, first batch, set-up."""
    lines = report.read(pathlib.Path(path))
    setting, blocks = lines[0]["scenario"], next(x for x in lines if x["kind"] == "blocks")

    def turns(name):
        found = [x for x in lines if x["kind"] == "turn" and x["loader"] == name]
        return (statistics.median(x["samples"] / x["seconds"] for x in found),
                statistics.median(x["first_seconds"] for x in found))

    local, s3 = turns("penstock-local"), turns("penstock-s3")
    curl = statistics.median(x["bytes"] / x["seconds"] for x in lines if x["kind"] == "bandwidth")
    decode = setting["batch"] / local[0]
    job = words(samples=lines[0]["photographs"] * setting["copies"],
                sample_bytes=round(blocks["mean_bytes"] / blocks["samples"]),
                block_samples=blocks["samples"], nodes=1, ranks=1, batch=setting["batch"],
                step_ms=0, decode_ms=round(decode * 1e3, 3), latency_ms=setting["delay_ms"],
                latency_p99_ms=setting["delay_ms"] + 2, connect_ms=1, connection_mb=0,
                node_gbit=round(curl * 8 / 1e9, 4), prefix_rate=0, failures=0)
    return job, s3[0], s3[1], max(local[1] - decode, 0)


def run_check(args):
    options, rate, first, setup = args.options, args.rate, args.first, 0
    if args.record:
        options, rate, first, setup = from_record(args.record)
        options += args.options
        print("penstock-sim " + " ".join(options))
    record = simulate(options)
    found = record["training"]
    far = False
    for what, unit, simulated, measured in (
            ("samples per second", "", found["samples_per_second"], rate),
            ("first batch", " s", found["first_batch_median_seconds"] + setup, first)):
        ratio = simulated / measured
        far = far or abs(ratio - 1) > args.within
        print(f"{what}: simulated {simulated:.4g}{unit}, measured {measured:.4g}{unit}, "
              f"ratio {ratio:.3f}")
    print(f"the model is {'further than' if far else 'within'} {args.within:.0%}"
          f" {'from' if far else 'of'} the real run")
    return 1 if far else 0


WORLDS = (1, 2, 3, 5, 7, 8, 12, 24, 25, 48, 63, 64, 96, 100, 256, 384, 512, 768, 1000, 1024)
SMALL = words(samples=245760, sample_bytes=110000, shuffle_buffer=12288)


def fetched(options, world, batch):
    """Unit of a request, bytes / bytes of the samples, requests / blocks. "-": no global batch."""
    done = run([*options, *words(nodes=world, ranks=1, batch=batch, seconds=1, effort=1)])
    if "at least one batch of samples for each rank" in done.stderr:
        return "-"
    if done.returncode:
        raise SystemExit(done.stderr)
    order = json.loads(done.stdout)["order"]
    return (f"{order['fetch_unit']} {order['fetched_over_pack']:.3f} "
            f"{order['requests_per_block']:.2f}")


def run_worlds(args):
    options = args.options or SMALL
    batches = args.batches.split(",")
    print(lines_of(("ranks", *(f"batches of {batch}" for batch in batches)), lambda row: row, ()),
          end="")
    for world in WORLDS:
        row = (f"{world:,}", *(fetched(options, world, batch) for batch in batches))
        print(f"| {' | '.join(row)} |", flush=True)
    return 0


def main():
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("table", "check", "worlds"), default="table")
    parser.add_argument("--nodes", default="1,8,64,512,1000")
    parser.add_argument("--batches", default="32,64,256")
    parser.add_argument("--effort", type=float, default=60)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--first", type=float)
    parser.add_argument("--record")
    parser.add_argument("--within", type=float, default=0.15)
    args = parser.parse_args(given[:cut])
    args.options = given[cut + 1:]
    if args.what == "table":
        return run_table(args)
    if args.what == "worlds":
        return run_worlds(args)
    if not args.record and not (args.rate and args.first):
        parser.error("check needs --rate and --first of a real run, or its --record")
    return run_check(args)


if __name__ == "__main__":
    sys.exit(main())
