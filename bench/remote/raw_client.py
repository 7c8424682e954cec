#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that reads all blocks of a pack: raw_client.py penstock|boto3 TASK.json ANSWER.json

What comes before the requests that count is not counted: imports, and of penstock one pass in which
the memory for blocks is used for the first time, as a run does once and not in every epoch.
"""

import concurrent.futures
import json
import pathlib
import resource
import sys
import time


def penstock_reads(task):
    """Labels alone: to read them, an entire block of a remote pack is fetched and checked."""
    sys.path.insert(0, f"{task['build']}/python")
    import numpy  # noqa: F401
    import penstock

    loader = penstock.Loader(task["address"], 256, pipeline={"label": "tensor i64"},
                             order="shuffle", output="numpy", threads=1)

    def one_pass():
        return sum(len(batch[0]) for batch in loader)

    one_pass()
    return lambda: sum(one_pass() for _ in range(task["passes"]))


def boto3_reads(task):
    import boto3
    import botocore.config

    config = botocore.config.Config(max_pool_connections=task["at_once"])
    client = boto3.session.Session().client("s3", config=config)

    def one(block):
        key, offset, length = block
        what = client.get_object(Bucket=task["bucket"], Key=key,
                                 Range=f"bytes={offset}-{offset + length - 1}")
        return len(what["Body"].read())

    def read():
        with concurrent.futures.ThreadPoolExecutor(task["at_once"]) as pool:
            return sum(pool.map(one, task["blocks"] * task["passes"]))

    return read


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    name, task, answer = sys.argv[1:]
    task = json.loads(pathlib.Path(task).read_text(encoding="utf-8"))
    read = {"penstock": penstock_reads, "boto3": boto3_reads}[name](task)
    began, before = time.perf_counter(), cpu()
    count = read()
    found = {"seconds": time.perf_counter() - began, "cpu": cpu() - before, "count": count}
    pathlib.Path(answer).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
