#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of many machines, simulated, as one table; and the model beside a real run.

    ./dev bench simulate [--nodes 1,8,64,512,1000] [--effort S] [-- OPTIONS OF penstock simulate]
    ./dev bench simulate check --rate R --first S [--within 0.15] -- PACK OPTIONS...
    ./dev bench simulate check --record build/bench/remote-far.jsonl [--within 0.15] [-- OPTIONS]

The table is for a pack of 10^9 samples of 110,000 bytes, 32 in a block, unless the options say
otherwise. Nothing of it is measured: the constants stand below it. Writes simulate.jsonl and
simulate.md in build/bench.

`check` takes what a real run measured: samples per second (R) and seconds to the first batch (S).
The options are those of `penstock simulate` for the same job, with latency, bandwidth and
milliseconds for a batch as they were measured there. With --record all of it comes from a run of
`./dev bench remote far`: milliseconds for a batch from the rate of the local disk, bandwidth from
what curl drew, the delay from the scenario; what the local disk's first batch takes beyond its
decoding (the process, the loader's threads) is added to the simulated one. Exit code 1: further
apart than --within.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from compare import places, report

PACK = ["--samples", "1e9", "--sample-bytes", "110000", "--block-samples", "32"]
HEAD = ("nodes", "followed", "s", "fetched / pack", "first batch, median / last rank (s)",
        "waiting (%), worst rank", "longest wait (s)", "Gbit/s of a node, mean / peak",
        "requests/s of a prefix, mean / peak", "of the manifest, peak", "told to slow down (%)",
        "requests of an epoch", "dollars")


def simulate(options):
    command = [str(places.BUILD / "penstock"), "simulate", *map(str, options), "--json"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(done.returncode)
    return json.loads(done.stdout)


def short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def row(record):
    training, rates = record["training"], record["requests_per_second_and_prefix"]
    requests, nodes = record["requests_simulated"], record["nodes"]
    followed = record["nodes_followed"]
    slowed = 100 * requests["told_to_slow_down"] / max(requests["made"], 1)
    return (
        f"{nodes:,}", "all" if followed == nodes else f"{followed:,}", short(record["seconds"]),
        f"{record['order']['fetched_over_pack']:.4f}",
        f"{training['first_batch_median']:.2f} / {training['first_batch_last_rank']:.2f}",
        f"{training['waiting']:.1f}, {training['waiting_of_the_worst_rank']:.1f}",
        f"{training['longest_wait']:.2f}",
        f"{short(record['node']['read'])} / {short(record['node']['read_in_the_busiest_second'])}",
        f"{short(rates['mean'])} / {short(rates['busiest'])}",
        short(rates["busiest_of_the_manifest"]), f"{slowed:.2f}",
        f"{record['cost_of_an_epoch']['requests'] / 1e6:.1f} M",
        f"{record['cost_of_an_epoch']['dollars']:.2f}",
    )


def table(records):
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(row(record)) + " |" for record in records]
    constants = ", ".join(f"{name.replace('_', ' ')} {value}"
                          for name, value in records[0]["constants"].items())
    first = records[0]
    lines += ["", f"Simulated. {first['order']['samples']:,} samples, "
              f"{first['order']['samples_per_block']} in a block, "
              f"{first['order']['pack_bytes'] / 1e12:.1f} TB. Constants: {constants}; limit of a "
              f"prefix {first['requests_per_second_and_prefix']['limit']} requests/s; "
              f"{first['cost_of_an_epoch']['dollars_per_million']} dollars for a million GETs."]
    return "\n".join(lines) + "\n"


def run_table(args):
    records = []
    for nodes in args.nodes.split(","):
        options = args.options if "--samples" in args.options else [*PACK, *args.options]
        records.append(simulate([*options, "--nodes", nodes, "--effort", args.effort]))
        print("| " + " | ".join(row(records[-1])) + " |", flush=True)
    report.write(places.WORK / "simulate.jsonl", [{"machine": places.machine()}, *records])
    text = table(records)
    (places.WORK / "simulate.md").write_text(text, encoding="utf-8")
    print("\n" + text)
    return 0


def from_record(path):
    """What a run of `./dev bench remote far` measured: options, rate, first batch, set-up."""
    lines = report.read(pathlib.Path(path))
    setting, blocks = lines[0]["scenario"], next(x for x in lines if x["kind"] == "blocks")

    def turns(name):
        found = [x for x in lines if x["kind"] == "turn" and x["loader"] == name]
        return (statistics.median(x["samples"] / x["seconds"] for x in found),
                statistics.median(x["first_seconds"] for x in found))

    local, s3 = turns("penstock-local"), turns("penstock-s3")
    curl = statistics.median(x["bytes"] / x["seconds"] for x in lines if x["kind"] == "bandwidth")
    decode = setting["batch"] / local[0]
    options = ["--samples", lines[0]["photographs"] * setting["copies"],
               "--sample-bytes", round(blocks["mean_bytes"] / blocks["samples"]),
               "--block-samples", blocks["samples"], "--nodes", 1, "--ranks", 1,
               "--batch", setting["batch"], "--step-ms", 0, "--decode-ms", round(decode * 1e3, 3),
               "--latency-ms", setting["delay_ms"], "--latency-p99-ms", setting["delay_ms"] + 2,
               "--connect-ms", 1, "--connection-mb", 0, "--node-gbit", round(curl * 8 / 1e9, 4),
               "--prefix-rate", 0, "--failures", 0]
    return options, s3[0], s3[1], max(local[1] - decode, 0)


def run_check(args):
    options, rate, first, setup = args.options, args.rate, args.first, 0
    if args.record:
        options, rate, first, setup = from_record(args.record)
        options += args.options
        print("penstock simulate " + " ".join(map(str, options)))
    record = simulate(options)
    found = record["training"]
    far = False
    for what, unit, simulated, measured in (
            ("samples per second", "", found["samples_per_second"], rate),
            ("first batch", " s", found["first_batch_median"] + setup, first)):
        ratio = simulated / measured
        far = far or abs(ratio - 1) > args.within
        print(f"{what}: simulated {simulated:.4g}{unit}, measured {measured:.4g}{unit}, "
              f"ratio {ratio:.3f}")
    print(f"the model is {'further than' if far else 'within'} {args.within:.0%}"
          f" {'from' if far else 'of'} the real run")
    return 1 if far else 0


def main():
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("table", "check"), default="table")
    parser.add_argument("--nodes", default="1,8,64,512,1000")
    parser.add_argument("--effort", type=float, default=60)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--first", type=float)
    parser.add_argument("--record")
    parser.add_argument("--within", type=float, default=0.15)
    args = parser.parse_args(given[:cut])
    args.options = given[cut + 1:]
    if args.what == "table":
        return run_table(args)
    if not args.record and not (args.rate and args.first):
        parser.error("check needs --rate and --first of a real run, or its --record")
    return run_check(args)


if __name__ == "__main__":
    sys.exit(main())
