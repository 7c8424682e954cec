# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/training-from-s3.md: its code and commands run against a scripted server, its
tables are computed and simulated anew.

`python3 tests/python/test_training_docs.py` prints the tables."""

import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorials" / "training-from-s3.md"
PENSTOCK = os.environ.get("PENSTOCK") or str(ROOT / "build" / "penstock")

# ImageNet: what the page says of it.
SAMPLES, SAMPLE, BLOCK_SAMPLES, BATCH = 1_281_167, 110_000, 32, 256
TENSORS = BATCH * 224 * 224 * 3
CONNECTION = 90e6
MiB = 1 << 20


def simulated(**options):
    """The JSON of `penstock simulate` for one rank, unless more is said."""
    given = {"samples": SAMPLES, "sample_bytes": SAMPLE, "ranks": 1, "seconds": 30, **options}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    done = subprocess.run([PENSTOCK, "simulate", "--json", *words], capture_output=True, text=True,
                          check=True, timeout=100)
    return json.loads(done.stdout)


def under_way(rate, latency, block=BLOCK_SAMPLES * SAMPLE):
    """Requests at once, by Little's law: their rate times how long one takes."""
    return rate * SAMPLE / block * (latency + block / CONNECTION)


def memory_of(requests, block=BLOCK_SAMPLES * SAMPLE):
    """What a rank needs, in MiB: six times the blocks under way, the window and batches."""
    need = ((6 * requests + 2) * block + 4 * TENSORS) / (1 / 2 - 1 / 16)
    return math.ceil(need / (64 * MiB)) * 64


def rank_row(rate):
    """Of the first table: computed, and the last two columns simulated."""
    at = [under_way(rate, ms / 1000) for ms in (20, 100, 200)]
    in_flight, memory = max(8, math.ceil(2 * at[1])), memory_of(at[1])
    found = simulated(step_ms=BATCH / rate * 1000, in_flight=in_flight, memory=f"{memory}MiB")
    training = found["training"]
    return [f"{rate:,}", f"{rate * SAMPLE * 8 / 1e9:.2f}", *(f"{n:.1f}" for n in at),
            f"{in_flight}", f"{memory:,}", f"{training['waiting']:.1f}",
            f"{training['first_batch_median']:.2f}"]


def memory_row(memory, block_samples):
    """Of the second table: what is chosen from the memory."""
    found = simulated(memory=memory, block_samples=block_samples, seconds=2)
    order, room = found["order"], found["memory_of_a_rank"]["room_for_them"]
    lanes, window = order["lanes"], order["blocks_per_window"]
    return [memory.replace("GiB", " GiB").replace("MiB", " MiB"), f"{block_samples}",
            f"{block_samples * SAMPLE / 1e6:.2f}", f"{lanes} × {window}",
            f"{lanes * window * block_samples:,}", f"{room / 1e6:,.0f}",
            f"{room / SAMPLE / 2000:.1f}",
            f"{order['blocks_fetched_per_epoch'] + order['shards'] + 1:,}"]


# Name, vCPUs, Gbit/s, instructions.
MACHINES = [
    ("g5.xlarge", 4, 10, "AVX2"), ("g5.12xlarge", 48, 40, "AVX2"),
    ("g5.48xlarge", 192, 100, "AVX2"), ("p4d.24xlarge", 96, 100, "AVX-512"),
    ("p5.48xlarge", 192, 100, "AVX2"),
]


def rates_of_a_core():
    """Images per second, as the page says them."""
    found = re.search(r"\(([\d,]+) for a core with AVX-512, ([\d,]+) with AVX2\)", PAGE.read_text())
    return dict(zip(("AVX-512", "AVX2"), (int(rate.replace(",", "")) for rate in found.groups())))


def machine_row(name, vcpus, gbit, kind):
    """Computed: what the cores decode, what the network brings, the smaller of the two."""
    cores, network = vcpus // 2 * rates_of_a_core()[kind], gbit * 1e9 / 8 / SAMPLE
    least = min(cores, network)
    binds = "cores" if least == cores else "network"
    return [f"{name}", f"{vcpus}, {kind}", f"{gbit}", f"{cores:,.0f}", f"{network:,.0f}", binds,
            f"{least * SAMPLE * 8 / 1e9:.1f}", f"{math.ceil(2 * under_way(least, 0.1)):,}"]


RATES = (500, 1000, 2000, 5000, 10_000, 20_000)
MEMORIES = [("512MiB", 32), ("1GiB", 32), ("2GiB", 8), ("2GiB", 32), ("2GiB", 128), ("4GiB", 32),
            ("8GiB", 32)]


TABLES = ((RATES, rank_row), (MEMORIES, memory_row), (MACHINES, machine_row))


def tables():
    return [[make(*(given if isinstance(given, tuple) else (given,))) for given in of]
            for of, make in TABLES]


if __name__ == "__main__":
    for printed in tables():
        print(*(f"| {' | '.join(cells)} |" for cells in printed), sep="\n", end="\n\n")
    sys.exit(0)

import net_stage  # noqa: E402
import pytest  # noqa: E402
from example_tools import need, python, run  # noqa: E402
from py_tools import need_penstock  # noqa: E402

penstock = need_penstock()
need("torch", "numpy", "boto3", "PIL")


@pytest.fixture
def photos(monkeypatch, tmp_path):
    """A directory with photos, and a server for packs of them."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "work"))
    python(ROOT / "examples" / "make_photos.py", "photos", "64", cwd=tmp_path)
    with net_stage.S3Server(["packs"]) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        yield tmp_path


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


@pytest.mark.slow
def test_what_is_on_the_page_runs(photos, monkeypatch, capsys):
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 7
    for line in lines:
        words = shlex.split(line, comments=True)
        assert words[0] == "penstock"
        short = ["--seconds", "1"] if words[1] == "bench" else []
        assert run(PENSTOCK, *words[1:], *short, cwd=photos)
    monkeypatch.chdir(photos)
    (block,) = blocks("python")
    scope = {}
    exec(compile(block, str(PAGE), "exec"), scope)
    scope["loader"].close()
    told = capsys.readouterr().out
    assert re.match(r"128 samples, waited \d.*; [1-9]\d* requests, .* \d+ blocks", told), told


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_its_tables_are_those_of_the_program():
    """What is computed to the last digit, what is simulated nearly."""
    lines = PAGE.read_text().splitlines()
    for (of, _), rows in zip(TABLES, tables()):
        for cells in rows:
            close = 2 if of is RATES else 0
            exact = cells[: len(cells) - close]
            (found,) = [cells_of(line) for line in lines
                        if line.startswith("|") and cells_of(line)[: len(exact)] == exact]
            assert len(found) == len(cells)
            for told, now in zip(found[len(exact):], cells[len(exact):]):
                assert abs(float(told) - float(now)) < 2 + 0.5 * float(now), cells


def test_rates_are_those_measured():
    """Nearly: they change with every measurement."""
    text = (ROOT / "docs" / "explanation" / "speed.md").read_text()
    for name, kind in (("penstock", "AVX-512"), ("penstock, PENSTOCK_CPU=avx2", "AVX2")):
        rate = re.search(rf"^\| {name} \| ([\d,]+) ", text, re.M)[1].replace(",", "")
        assert 0.7 < int(rate) / 2 / rates_of_a_core()[kind] < 1.4


def test_links_exist():
    text = PAGE.read_text()
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        other = PAGE.parent / target
        assert other.exists(), target
        heads = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-")
                 for head in re.findall(r"^## (.+)$", other.read_text(), re.M)}
        assert not anchor or anchor in heads, (target, anchor)
