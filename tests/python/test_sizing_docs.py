# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/size-a-node.md: its tables are computed and simulated again. The simulations of this
page and of other pages run.

`python3 tests/python/test_sizing_docs.py` prints the tables."""

import math
import re
import shlex
import sys

import sim_tools
from sim_tools import ROOT, SIMULATOR

PAGE = ROOT / "docs" / "how-to" / "size-a-node.md"

# ImageNet, as the page describes it.
SAMPLES, SAMPLE, BLOCK_SAMPLES, BATCH = 1_281_167, 110_000, 32, 256
TENSORS = BATCH * 224 * 224 * 3
BUFFER = 12_288  # images, the default: 1 GiB of the pack, in 3 * 2^k blocks
CONNECTION = 90e6
MiB = 1 << 20


def simulated(**keys):
    """What the simulator prints, for one rank unless `ranks` is given."""
    return sim_tools.simulated(
        **{"samples": SAMPLES, "sample_bytes": SAMPLE, "ranks": 1, "seconds": 30, **keys})


def in_flight_mean(rate, latency, block=BLOCK_SAMPLES * SAMPLE):
    """Requests in flight, by Little's law: their rate times the duration of one."""
    return rate * SAMPLE / block * (latency + block / CONNECTION)


def memory_of(in_flight, ranks=1, block=BLOCK_SAMPLES * SAMPLE):
    """Memory of a rank in MiB: eight batches, and for its part of the shuffle buffer and the blocks
    in flight a share of what is left."""
    need = 8 * (TENSORS + 16 * BATCH + 8192)
    need += (BUFFER / ranks * (SAMPLE + 1) * 4 / 3 + in_flight * block) * 16 / 7
    return math.ceil(need / (64 * MiB)) * 64


def demand_row(rate):
    """Of the first table, computed."""
    at = (in_flight_mean(rate, ms / 1000) for ms in (20, 100, 200))
    return [f"{rate:,}", f"{rate * SAMPLE * 8 / 1e9:.2f}", *(f"{n:.1f}" for n in at)]


def settings_row(rate):
    """Of the second table: the settings are computed, the last two columns simulated."""
    in_flight = max(64, math.ceil(2 * in_flight_mean(rate, 0.1)))
    memory = memory_of(in_flight)
    found = simulated(step_ms=BATCH / rate * 1000, in_flight=in_flight, memory=f"{memory}MiB")
    training = found["training"]
    return [f"{rate:,}", f"{in_flight}", f"{memory:,}", f"{training['waiting_percent']:.1f}",
            f"{training['first_batch_median_seconds']:.2f}"]


def memory_row(ranks, memory, buffer):
    """Of the third table: what the loader requests with this memory."""
    found = simulated(ranks=ranks, memory=memory, shuffle_buffer=buffer, seconds=1)["order"]
    wanted = found.get("memory_for_entire_blocks_bytes", 0)
    return [f"{ranks}", f"{found['shuffle_buffer']:,}", memory.replace("GiB", " GiB"),
            found["fetch_unit"], f"{found['requests_per_block']:.1f}",
            f"{math.ceil(wanted / MiB):,} MiB" if wanted else "-"]


# Name, vCPUs, Gbit/s.
MACHINES = [
    ("g5.xlarge", 4, 10), ("g5.12xlarge", 48, 40), ("g5.48xlarge", 192, 100),
    ("p4d.24xlarge", 96, 100), ("p5.48xlarge", 192, 100),
]


def rate_of_a_core():
    """Images per second, as the page states it."""
    found = re.search(r"\(([\d,]+) images/s per core with AVX2\)", PAGE.read_text())
    return int(found[1].replace(",", ""))


def machine_row(name, vcpus, gbit):
    """Computed: what the cores decode, what the network delivers, requests for the smaller one."""
    cores, network = vcpus // 2 * rate_of_a_core(), gbit * 1e9 / 8 / SAMPLE
    requests = math.ceil(2 * in_flight_mean(min(cores, network), 0.1))
    return [f"{name}", f"{vcpus}", f"{gbit}", f"{cores:,.0f}", f"{network:,.0f}",
            f"{requests:,}"]


RATES = (500, 1000, 2000, 5000, 10_000, 20_000)
MEMORIES = [(1, "1GiB", BUFFER), (1, "2GiB", BUFFER), (1, "4GiB", BUFFER), (1, "8GiB", BUFFER),
            (1, "2GiB", 3072), (2, "2GiB", BUFFER), (8, "2GiB", BUFFER), (8, "1GiB", BUFFER)]


# The inputs of each table, its rows, and how many of the last columns are simulated.
TABLES = ((RATES, demand_row, 0), (RATES, settings_row, 2), (MEMORIES, memory_row, 0),
          (MACHINES, machine_row, 0))


def tables():
    return [[make(*(given if isinstance(given, tuple) else (given,))) for given in of]
            for of, make, _ in TABLES]


if __name__ == "__main__":
    for printed in tables():
        print(*(f"| {' | '.join(cells)} |" for cells in printed), sep="\n", end="\n\n")
    sys.exit(0)

import pytest  # noqa: E402
from example_tools import run  # noqa: E402

SIMULATIONS = ("how-to/size-a-node.md", "how-to/s3.md", "explanation/simulator.md")


def simulations(page):
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", "").splitlines()]
    return [line for line in lines if line.startswith("build/sim/penstock-sim ")]


@pytest.mark.parametrize("name", SIMULATIONS)
def test_commands_run(name):
    lines = simulations(ROOT / "docs" / name)
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)
        assert run(SIMULATOR, *words[1:], "effort=1")


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_its_tables_are_those_of_the_program():
    """Computed columns to the last digit, simulated ones nearly."""
    lines = PAGE.read_text().splitlines()
    for (_, _, n_simulated), rows in zip(TABLES, tables()):
        for cells in rows:
            n_exact = len(cells) - n_simulated
            (found,) = [cells_of(line) for line in lines
                        if line.startswith("|") and cells_of(line)[:n_exact] == cells[:n_exact]]
            assert len(found) == len(cells)
            for stated, now in zip(found[n_exact:], cells[n_exact:]):
                assert abs(float(stated) - float(now)) < 0.5 + 0.5 * float(now), cells


def test_the_rate_is_the_one_measured():
    """Nearly: it changes with every measurement."""
    text = (ROOT / "docs" / "explanation" / "speed.md").read_text()
    rate = re.search(r"^\| penstock, PENSTOCK_CPU=avx2 \| ([\d,]+) ", text, re.M)[1]
    assert 0.7 < int(rate.replace(",", "")) / 2 / rate_of_a_core() < 1.4
