# SPDX-License-Identifier: Apache-2.0
"""What bench/ makes of its measurements: ratios, winners, tables, and the files it reads."""

import argparse
import os
import pathlib
import sys
import tarfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import in_place  # noqa: E402
import pack_speed  # noqa: E402
import ratio_check  # noqa: E402
import remote_speed  # noqa: E402
import tool_check  # noqa: E402
from common import floors  # noqa: E402
from penstock.lab.loaders import (  # noqa: E402
    environments,
    scenario,
    workers,
)
from remote import cores, kept_tables, tables  # noqa: E402
from remote import turn as remote_turn  # noqa: E402
from sides import decoders, tars  # noqa: E402
from sides.draws import centre, random_box, resized  # noqa: E402

# --- records and tables --------------------------------------------------------------------------


def turn(loader, number, rate, **more):
    return {"kind": "turn", "loader": loader, "round": number, "seconds": 2.0, "samples": 2 * rate,
            "cpu": 4.0, "missing": 0, "again": 0, "strange": 0, **more}


@pytest.fixture
def head():
    return {"kind": "parameters", "machine": {"cpu": "Some CPU", "cores": 2, "memory_gb": 8.0,
                                              "kernel": "6.1", "date": "2026-01-01",
                                              "commit": "abc"},
            "photographs": 1000, "rounds": 3, "seconds": 2.0, "command": "c"}


def rows_of(text, first):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
            if line.startswith(f"| {first} |")]


# --- files ---------------------------------------------------------------------------------------


def test_every_decoder_has_a_loader():
    options = [spec["options"]["decoder"] for spec in scenario.loaders().values()
               if spec["module"] == "decoders"]
    assert set(options) == set(decoders.DECODERS)


def test_tars_hold_all_files_in_order(tmp_path):
    files = []
    for i in range(7):
        files.append(tmp_path / f"{i}.jpg")
        files[-1].write_bytes(b"image %d" % i)
    made = tars.write_tars(tmp_path / "tars", files, 3)
    found = []
    for path in made:
        with tarfile.open(path) as tar:
            found.append({m.name: tar.extractfile(m).read() for m in tar.getmembers()})
    assert [len(members) // 2 for members in found] == [3, 3, 1]
    assert found[2] == {"00000006.jpg": b"image 6", "00000006.cls": b"6"}
    files[0].unlink()
    assert tars.write_tars(tmp_path / "tars", files, 3) == made  # not made again


def test_a_table_of_indexing():
    rounds = [{"cat": {"seconds": 0.5}, "penstock index": {"seconds": s, "pack_bytes": 30_000_000},
               "first batch, WebDataset": {"absent": "no wheel"}} for s in (1.0, 2.0, 4.0)]
    text = in_place.table(argparse.Namespace(bytes=1_000_000_000), rounds)
    assert rows_of(text, "penstock index") == [
        ["penstock index", "2.00 (1.00-4.00)", "500", "0.25", "3.0"]]
    assert rows_of(text, "first batch, WebDataset")[0][1] == "absent: no wheel"


def test_versions_are_pinned():
    free = {"tqdm", "setuptools", "wheel", "--no-deps"}  # nothing measured depends on them
    for spec in environments.specs().values():
        assert all("==" in part or part in free for step in spec["steps"] for part in step)


def test_floors_name_loaders_and_reasons():
    for row in floors.rows("floor"):
        assert {row["of"], row["against"]} <= scenario.loaders().keys()
        assert row["reason"] and row["drawn"] > 0 and row["photos"] > 0


FLOOR_ROW = {"of": "penstock", "against": "ffcv", "drawn": 4.0, "reason": "because"}


def test_a_ratio_under_its_floor_is_measured_again_and_counts(capsys):
    """The floor is 0.7 of what was reached; only rows that were under it are measured again."""
    rows, asked = [FLOOR_ROW, {**FLOOR_ROW, "drawn": 4.6}, {**FLOOR_ROW, "against": "dali"}], []
    results = {"ffcv": {"ratio": 3.1, "low": 3.0, "high": 3.2}, "dali": None}

    def measure(rows):
        asked.append(len(rows))
        return [results[row["against"]] for row in rows]

    assert floors.check(rows, measure) == 2 and asked == [3, 2]
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "penstock against ffcv: 3.10 (3.00-3.20), floor 2.80"
    assert out[1].endswith("floor 3.22  UNDER THE FLOOR: because") and "not measured" in out[2]


def test_a_ratio_that_is_low_once_does_not_count():
    low, high = ({"ratio": r, "low": r, "high": r} for r in (2.7, 2.9))
    answers = iter([[low], [high]])
    assert floors.check([FLOOR_ROW], lambda _: next(answers)) == 0


def test_calibrate_prints_what_was_reached_and_the_floor(capsys):
    floors.calibrate([FLOOR_ROW], lambda _: [{"ratio": 5.0, "low": 4.0, "high": 6.0}])
    assert capsys.readouterr().out == (
        "penstock against ffcv: 5.00 (4.00-6.00), so drawn = 5.00 (is 4.00), floor 3.50\n")


def test_floors_of_tools_are_all_measured():
    rows = floors.rows("tool")
    assert [row["name"] for row in rows] == list(tool_check.KINDS)
    assert all(row["of"] and row["against"] and row["reason"] and row["drawn"] > 0 for row in rows)


def test_a_record_of_pack_speed():
    row = {"sides": ["verify", "cat > /dev/null"], "what": "MB/s", "amount": 2233.4, "ours": 7872.1,
           "theirs": 7355.0, "ratio": 1.07, "spread": [0.96, 1.366], "needed": 0.5}
    assert pack_speed.table([row]).splitlines()[2] == (
        "| `verify`, 2,233 MB | 7,872 MB/s | `cat > /dev/null`: 7,355 | 1.07 (0.96-1.37) | 0.5 |")


def test_a_comparison_of_tools(tmp_path, monkeypatch):
    """Smaller than in CI: that both sides run, not how fast they are."""
    monkeypatch.setattr(tool_check, "PHOTOS", 4)
    for name in ("keep", "verify"):
        result = tool_check.measure_one(name, 2, tmp_path)
        assert result["rounds"] == 2 and 0.001 < result["ratio"] < 1000
    assert not list(tmp_path.iterdir())


def test_other_pixels_and_lost_samples_count():
    good = {"check": {"mean": 0.0, "max": 0}, "exactly_once": "yes"}
    others = {"check": {"error": "none"}, "exactly_once": "1 again"}  # ffcv's are its own
    assert ratio_check.strange({"penstock": good, "ffcv": others}) == 0
    for key, value in (("check", {"error": "none"}), ("check", {"mean": 0.01}),
                       ("exactly_once", "1 missing")):
        assert ratio_check.strange({"penstock": {**good, key: value}}) == 1


# --- small things --------------------------------------------------------------------------------


def test_boxes_lie_in_the_image():
    for width, height in ((500, 375), (30, 900), (1, 1), (900, 30)):
        for _ in range(200):
            x, y, w, h = random_box(width, height)
            assert x >= 0 and y >= 0 and 1 <= w <= width - x and 1 <= h <= height - y


def test_where_resize_and_centre_crop_cut():
    assert resized(500, 375, 256) == (341, 256) and resized(375, 500, 256) == (256, 341)
    assert centre(341, 256, 224) == (58, 16)


def test_a_process_is_in_its_own_tree():
    mine = workers.tree(os.getpid())
    assert os.getpid() in mine and mine[os.getpid()] > 0
    assert workers.memory_of(os.getpid()) > 1e6


# --- from a store --------------------------------------------------------------------------------


@pytest.fixture
def far_lines(head):
    options = argparse.Namespace(copies=None, loaders="penstock-local,penstock-s3,dataloader-pool")
    setting = remote_speed.scenario("latency", options)
    head = {**head, "name": "remote-latency", "scenario": setting}
    out = [head, {"kind": "blocks", "count": 10, "samples": 32, "mean_bytes": 4e6},
           {"kind": "absent", "loader": "dataloader-pool", "reason": "no wheel"}]
    for name in ("penstock-local", "penstock-s3"):
        out.append({"kind": "prepared", "loader": name, "title": name.upper(),
                    "versions": {name: "1.2"}, "stored_mb": 2000.0})
    for number, rate in enumerate((1900, 2000, 2100)):
        out.append({"kind": "bandwidth", "round": number, "bytes": 4e8, "seconds": 1.0, "cpu": 0.1})
        for name, share in (("penstock-local", 1.0), ("penstock-s3", 0.96)):
            out.append(turn(name, number, rate * share, first_seconds=0.7, first_blocks=20,
                            threads={"pen-decode": 1.9}, servers={"gateway": 0.54}))
    return out


def test_the_table_of_a_far_store(far_lines):
    text = tables.latency_markdown(far_lines)
    (local,), (far,) = rows_of(text, "PENSTOCK-LOCAL"), rows_of(text, "PENSTOCK-S3")
    assert local[1:4] == ["2,000 (1,900-2,100)", "0.96 (0.96-0.96)", "faster"]
    assert far[1:3] == ["1,920 (1,824-2,016)", "-"] and far[4] == "0.70 (0.70-0.70)"
    assert rows_of(text, "penstock-s3")[0][-1] == "reached"
    assert "are 0.75 s: reached" in text  # 5 x 110 ms, 80 MB of 400 MB/s
    assert "400 MB/s (400-400): 3,200 images/s" in text
    assert "pen-decode 0.95 | gateway 0.20" in text
    assert rows_of(text, "dataloader-pool")[0][1] == "absent: no wheel"


def test_rounds_that_differ_much_are_doubtful(far_lines):
    assert "Doubtful" not in tables.latency_markdown(far_lines)
    loaded = {**far_lines[0]["machine"], "load_before": 7.5}
    assert "load of the machine was 7.5" in tables.latency_markdown(
        [{**far_lines[0], "machine": loaded}, *far_lines[1:]])
    far_lines[-1]["samples"] /= 2
    assert "rounds differ by a factor of 2.0" in tables.latency_markdown(far_lines)


def test_a_first_batch_that_comes_late_is_told(far_lines):
    for line in far_lines:
        if line["kind"] == "turn":
            line["first_seconds"] = 0.76
    assert "are 0.75 s: NOT reached" in tables.latency_markdown(far_lines)
    found, _ = tables.results(far_lines)
    row = {"of": "penstock-s3", "first_seconds": 0.75, "reason": "because"}
    assert remote_speed.late([row], found) == 1
    assert remote_speed.late([{**row, "first_seconds": 0.8}], found) == 0


def test_bytes_and_processor_time_against_curl(far_lines):
    options = argparse.Namespace(copies=None, loaders=None)
    head = {**far_lines[0], "scenario": remote_speed.scenario("raw", options)}
    rows = {"penstock": (1.0, 0.5), "curl": (0.9, 0.25), "boto3": (2.0, 1.0)}
    lines = [head] + [{"kind": "turn", "loader": name, "round": 0, "bytes": 1e9, "seconds": seconds,
                       "cpu": cpu} for name, (seconds, cpu) in rows.items()]
    rate, cpu = remote_speed.tables.raw_verdicts(head, tables.raw_results(lines))
    assert (round(rate[1]["ratio"], 2), rate[3], cpu[1]["ratio"], cpu[3]) == (0.9, True, 2.0, False)
    assert rows_of(tables.raw_markdown(lines), "curl")[0][1] == "1,111 (1,111-1,111)"


@pytest.fixture
def kept_lines(far_lines):
    options = argparse.Namespace(copies=None, loaders=None)
    head = {**far_lines[0], "scenario": remote_speed.scenario("cache", options)}
    out = [head]
    nothing = {"opening_bytes": 0, "network_bytes": 0, "hits": None, "private_bytes": 4e8}
    for name, share, more in (
            ("penstock-local", 1.0, {}),
            ("penstock-cache", 0.96, {"opening_bytes": 9000, "hits": 1.0, "private_bytes": 5e8}),
            ("penstock-half", 0.9, {"network_bytes": 1e9, "hits": 0.5})):
        out.append({"kind": "prepared", "loader": name, "title": name.upper(),
                    "versions": {name: "1.2"}, "stored_mb": 2000.0})
        more = {**nothing, **more, "first_seconds": 0.5, "threads": {"pen-decode": 1.6},
                "servers": {}, "whole": True}
        out += [turn(name, number, rate * share, **more)
                for number, rate in enumerate((1900, 2000, 2100))]
    return out


def test_the_table_of_a_cache(kept_lines):
    text = kept_tables.markdown(kept_lines)
    wanted, epoch, traffic, _ = rows_of(text, "penstock-cache")
    _, half, _ = rows_of(text, "penstock-half")
    assert epoch[1:] == ["4,000", "1.00 (1.00-1.00)", "0.80 (0.80-0.80)", "2,400"]
    assert wanted[-2:] == ["0.96 (0.96-0.96)", "reached"]
    assert traffic[1:] == ["0.0 (0.0-0.0)", "0.009", "1.000 (1.000-1.000)", "500.0 (500.0-500.0)",
                           "100.0 (100.0-100.0)"]
    assert half[1:4] == ["1,000.0 (1,000.0-1,000.0)", "0.000", "0.500 (0.500-0.500)"]
    assert "NOT" not in text and all(row[-1] for row in kept_tables.verdicts(kept_lines))


def test_one_round_with_bytes_over_the_network_or_too_few_hits_is_told(kept_lines):
    for name, figure, value in (("penstock-cache", "network_bytes", 1),
                                ("penstock-half", "hits", 0.48), ("penstock-half", "hits", None)):
        lines = [{**line, figure: value} if line["kind"] == "turn" and line["loader"] == name and
                 (line["round"] == 1 or value is None) else line for line in kept_lines]
        missed = [row[0] for row in kept_tables.verdicts(lines) if not row[-1]]
        assert missed == [f"{name}: {figure}"]
        assert kept_tables.markdown(lines).count("NOT reached") == 1


def test_memory_that_a_process_adds_is_a_share_of_the_pack(kept_lines):
    fact = {"of": "penstock-cache", "figure": "added_share", "at_most": 0.01}
    kept_lines[0]["scenario"]["facts"] = [fact, {**fact, "at_most": 0.06}]
    assert [row[1::2] for row in kept_tables.verdicts(kept_lines)] == [(0.05, False), (0.05, True)]


def test_loaders_of_a_store_have_modules_and_environments():
    known = remote_speed.loaders()
    for name in ("latency", "check", "cache", "preload"):
        setting = remote_speed.scenario(name, argparse.Namespace(copies=None, loaders=None))
        assert set(setting["loaders"]) <= known.keys() and setting["base"] in setting["loaders"]
    for spec in known.values():
        assert (ROOT / "bench" / "remote" / "sides" / f"{spec['module']}.py").exists()
        assert spec.get("environment") in {None, *environments.specs()}
    for row in floors.rows("remote"):
        assert {row["of"], row["against"]} <= known.keys()
        assert row["reason"] and row["drawn"] > 0 and row["first_seconds"] > 0


def test_a_turn_counts_from_the_first_batch_on_and_ends_with_whole_groups():
    class Module:
        @staticmethod
        def batches(_task):
            for number in range(9):
                yield range(number * 10, number * 10 + 10)

    task = {"seconds": 0.0, "group": 4, "samples": 90}
    found = remote_turn.take_turn(Module, task)
    assert (found["samples"], found["batches"], found["whole"]) == (40, 4, False)
    assert found["first_ids"] == list(range(10)) and found["missing"] == found["again"] == 0
    found = remote_turn.take_turn(Module, {**task, "seconds": 60.0})
    assert (found["samples"], found["whole"], found["missing"]) == (80, True, 0)


def test_threads_are_found_by_their_names():
    allowed, stop = os.sched_getaffinity(0), threading.Event()

    def wait():
        pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("pen-test")
        stop.wait(60)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        assert cores.pin_named(os.getpid(), "pen-test", min(allowed)) == 1
        assert os.sched_getaffinity(thread.native_id) == {min(allowed)}
        assert os.sched_getaffinity(0) == allowed
        assert cores.pin_named(os.getpid(), "nobody", 0, seconds=0.01) == 0
        assert "pen-test" in cores.seconds_of(os.getpid())
    finally:
        stop.set()
        thread.join()
