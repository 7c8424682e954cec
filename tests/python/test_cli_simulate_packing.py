# SPDX-License-Identifier: Apache-2.0
"""`penstock simulate --pack`: a real job makes the requests that it predicts, each of them."""

import collections

import net_stage
import pytest
from bucket_tools import Bucket, serve
from cli_tools import good, image_bytes, make_folder, run

KINDS = ("get_sources", "get", "head", "list", "put", "post", "delete")
NUMBERS = ("simulate", "--pack", "--samples", "1e5", "--sample-bytes", "20000")
TASKS, BLOCK = 3, "4"


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        yield running


NAMES = {"GetObject": "get", "HeadObject": "head", "ListObjectsV2": "list",
         "ListMultipartUploads": "list", "PutObject": "put", "UploadPart": "put",
         "CreateMultipartUpload": "post", "CompleteMultipartUpload": "post",
         "AbortMultipartUpload": "delete", "DeleteObject": "delete"}


def kind_of(line):
    name = NAMES[line["kind"]]
    return "get_sources" if name == "get" and "/src/" in line["what"] else name


def pack(server, top, n):
    """A real job of objects; the requests that it made, and the pack."""
    bucket = Bucket(server, top / "home")
    for i in range(n):  # of the same size: tasks have the same number of samples
        bucket.put(f"src/{i % 2}/{i:03d}.jpg", image_bytes(1))
    source, out = bucket.at("src"), bucket.at("a.pen")
    layout = ("--block-samples", BLOCK, "--shard-bytes", "1")
    server.control(reset=True)
    bucket.good("plan", source, "-o", out, *layout)
    for i in range(TASKS):
        bucket.good("pack", source, "-o", out, *layout, "--task", f"{i}/{TASKS}")
    bucket.good("finalise", out)
    made = collections.Counter(kind_of(line) for line in server.log())
    return made, bucket.good("info", out, "--json").json()


@pytest.mark.parametrize("n", [40, 48])
def test_a_real_job_makes_as_many_requests(server, tmp_path, n):
    """With samples that fill no block, and without."""
    made, info = pack(server, tmp_path, n)
    found = good("simulate", "--pack", "--samples", str(n), "--sample-bytes",
                 "1000", "--block-samples", BLOCK, "--shard-bytes", "1", "--tasks", str(TASKS),
                 "--failures", "0", "--latency-ms", "1", "--latency-p99-ms", "1",
                 "--json").json()
    assert {kind: found["requests"][kind] for kind in KINDS} == {k: made[k] for k in KINDS}
    assert found["job"]["shards"] == info["shards"]
    assert found["nodes_simulated"] == 1


@pytest.mark.parametrize("folders, each", [(3, 335), (24, 100), (1, 1001)])
def test_a_real_plan_makes_as_many_lists(tmp_path, folders, each):
    for k in range(folders):
        folder = tmp_path / "objects" / "data" / "src" / f"{k:03d}" if folders > 1 else (
            tmp_path / "objects" / "data" / "src")
        folder.mkdir(parents=True)
        for i in range(each):
            (folder / f"{i:04d}.jpg").touch()
    with net_stage.S3Server(directory=tmp_path / "objects") as server:
        good("plan", "s3://data/src", "-o", tmp_path / "a.pen", "--block-samples", BLOCK,
             env=server.environment(HOME=str(tmp_path)))
        made = {str(line["query"]) for line in server.log()}  # without those that are repeated
    found = good("simulate", "--pack", "--samples", str(folders * each), "--sample-bytes", "1000",
                 "--block-samples", BLOCK, "--tasks", "1", "--failures", "0",
                 "--source-prefixes", str(folders), "--json").json()
    assert found["requests"]["list"] - 4 == len(made)  # without those of the task and of finalise


def test_the_result_holds_together():
    found = good(*NUMBERS, "--nodes", "10", "--tasks", "100", "--lost", "2", "--json").json()
    assert found["simulated"].startswith("packing of 100,000 samples (1.9 GiB) by 100 tasks on 10 "
                                         "nodes")
    assert found["job"]["runs_of_tasks"] == 102
    assert found["job"]["samples_per_task"] == 1000
    time = found["time"]
    assert time["total_seconds"] == pytest.approx(
        time["plan_seconds"] + time["tasks_seconds"] + time["finalise_seconds"], rel=1e-3)
    assert time["tasks_seconds"] >= 2 * time["one_task_seconds"]
    requests = found["requests"]
    assert 1e5 < requests["get_sources"] < 1.05e5
    assert requests["retries"] > 0
    assert found["requests_per_second_and_prefix"]["limit_of_the_pack"] == 3500
    assert found["constants"]["lost_percent"] == 2
    assert found["speed"]["limited_by"] == "the concurrent requests of a task"


def test_the_same_options_give_the_same_numbers():
    options = (*NUMBERS, "--nodes", "2", "--tasks", "8", "--effort", "1")
    first = good(*options).out
    assert first == good(*options).out
    assert first != good(*options, "--seed", "1").out


def test_sizes_come_from_a_pack(tmp_path):
    make_folder(tmp_path / "in", each=32)
    good("pack", tmp_path / "in", "-o", tmp_path / "a.pen", "--block-samples", "4")
    info = good("info", tmp_path / "a.pen", "--json").json()
    found = good("simulate", "--pack", tmp_path / "a.pen", "--tasks", "2", "--json").json()
    assert found["job"]["samples"] == info["samples"] == 64
    assert found["constants"]["block_samples"] == 4
    assert 0 <= found["job"]["pack_bytes"] - info["bytes"]["pack"] < 64


def test_more_tasks_than_samples_are_refused():
    result = run("simulate", "--pack", "--samples", "10", "--sample-bytes", "9", "--tasks", "11")
    assert result.code == 1
    assert "tasks: expected 1 to 1048576, at most one per sample, found 11" in result.message()
