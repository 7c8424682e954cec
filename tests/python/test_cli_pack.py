# SPDX-License-Identifier: Apache-2.0
"""pack, plan, finalise and gc: what they print and how they end."""

import json
import os
import resource
import signal
import subprocess
import time

import pytest
from cli_tools import PENSTOCK, good, image_bytes, make_folder, run, samples
from pty_tools import Screen, drawn, on_terminal


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "photos")


def pack_bytes(pack):
    return sum(p.stat().st_size for p in pack.rglob("*") if p.is_file())


def test_account_adds_up(folder, tmp_path):
    pack = tmp_path / "p.pen"
    account = good("pack", folder, "-o", pack, "--json").json()
    sizes = account["bytes"]
    sources = [p for p in folder.rglob("*") if p.is_file()]
    assert account["pack"] == str(pack)
    assert account["samples"] == len(sources) == 8
    assert {(i["codec"], i["how"]): i["images"] for i in account["images"]} == {
        ("jpeg", "kept"): 6, ("png", "kept"): 2}
    assert sizes["source"] == sum(p.stat().st_size for p in sources)
    assert sizes["source_on_disk"] == sum(p.stat().st_blocks * 512 for p in sources)
    assert sizes["pack"] == pack_bytes(pack)
    parts = ("payload", "index", "metadata", "tables")
    assert all(sizes[p] >= 0 for p in parts)
    assert sum(sizes[p] for p in parts) == sizes["pack"]
    assert sizes["pack"] + sizes["slack"] == sizes["pack_on_disk"]
    assert account["pack_to_source"] == pytest.approx(sizes["pack"] / sizes["source"], rel=1e-5)
    assert account["blocks"] == -(-account["samples"] // account["samples_per_block"])
    assert account["id"] == good("info", pack, "--json").json()["id"]


def test_account_as_text_has_the_same_figures(folder, tmp_path):
    text = good("pack", folder, "-o", tmp_path / "a.pen", "--threads", "1").out
    account = good("pack", folder, "-o", tmp_path / "b.pen", "--json").json()
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert account["id"] in lines["id"]
    assert lines["samples"][-1] == "8"
    assert f"{account['bytes']['pack']:,}" in text
    assert "  jpeg   kept       6\n" in text
    assert "resumed" not in text  # what is 0 is not worth a line


def test_quiet_when_no_terminal(folder, tmp_path):
    assert good("pack", folder, "-o", tmp_path / "p.pen").err == ""


def test_existing_pack_says_what_to_do(folder, tmp_path):
    pack = tmp_path / "p.pen"
    good("pack", folder, "-o", pack)
    before = good("info", pack, "--json").json()
    result = run("pack", folder, "-o", pack)
    assert result.code == 1
    assert "--append" in result.message() or "append" in result.message()
    assert good("info", pack, "--json").json() == before


def test_failure_with_json_is_an_object_too(tmp_path):
    result = run("pack", tmp_path / "nothing", "-o", tmp_path / "p.pen", "--json")
    assert result.code == 1
    error = result.json()["error"]
    assert error["status"] == "E_NOT_FOUND"
    assert error["message"] == result.message()


def test_append_counts_what_is_known(folder, tmp_path):
    pack = tmp_path / "p.pen"
    good("pack", folder, "-o", pack)
    (folder / "cat" / "new.jpg").write_bytes(image_bytes(7))
    account = good("pack", folder, "-o", pack, "--append", "--json").json()
    assert (account["samples"], account["added"], account["already_in_pack"]) == (9, 1, 8)
    assert "cat/new.jpg" in samples(pack)


def test_sizes_with_units_reach_the_settings(folder, tmp_path):
    for n, (text, value) in enumerate([
        ("1048576", 1 << 20), ("1MiB", 1 << 20), ("3M", 3 << 20), ("2GiB", 2 << 30),
        ("2g", 2 << 30), ("4KB", 4000), ("1kib", 1024), ("1TiB", 1 << 40), ("77B", 77),
        ("5MB", 5000000), ("2GB", 2 * 10**9), ("3tb", 3 * 10**12), ("2T", 2 << 40), ("9k", 9 << 10),
    ]):
        pack = tmp_path / f"{n}.pen"
        good("pack", folder, "-o", pack, f"--shard-bytes={text}")
        assert good("info", pack, "--json").json()["settings"]["shard_bytes"] == value


@pytest.mark.parametrize("options, settings", [
    (("--seed", "18446744073709551615"), {"seed": 18446744073709551615}),
    (("--fraction=0.5",), {"fraction": 0.5}),
    (("--no-index", "--check", "decode"), {"mode": "keep", "check_decode": 1}),
    (("--mode", "encode", "--quality", "31"), {"mode": "encode", "quality": 31}),
    (("--mode", "raw", "--short-side", "20"), {"mode": "raw", "short_side": 20, "max_side": 0}),
    (("--mode=mix", "--raw-share", "0.75", "--max-side=9", "--quality", "31"),
     {"mode": "mix", "raw_share": 0.75, "max_side": 9, "quality": 31}),
    (("--mode=smart", "--codec", "webp", "--smart-threshold=2KiB"),
     {"mode": "smart", "codec": "webp", "smart_threshold": 2048}),
    (("--order", "source", "--on-bad", "skip"), {"order": "source"}),
    (("--block-samples", "3"), {"block_samples": 3}),
    ((), {"mode": "keep", "quality": 90, "raw_share": 0.25, "check_decode": 0, "seed": 0,
          "order": "shuffled", "fraction": 1, "shard_bytes": 512 << 20,
          "block_samples": 0, "max_side": 0, "short_side": 0}),
])
def test_options_reach_the_settings(folder, tmp_path, options, settings):
    good("pack", folder, "-o", tmp_path / "p.pen", *options)
    found = good("info", tmp_path / "p.pen", "--json").json()["settings"]
    assert {name: found[name] for name in settings} == settings


def test_classes_from_another_pack(folder, tmp_path):
    good("pack", folder, "-o", tmp_path / "train.pen")
    make_folder(tmp_path / "val", classes=("dog",))
    good("pack", tmp_path / "val", "-o", tmp_path / "val.pen", "--classes-from",
         tmp_path / "train.pen")
    assert samples(tmp_path / "val.pen")["dog/0.jpg"]["fields"]["label"] == {
        "value": 1, "class": "dog"}
    make_folder(tmp_path / "other", classes=("emu",))
    result = run("pack", tmp_path / "other", "-o", tmp_path / "o.pen", "--classes-from",
                 tmp_path / "train.pen")
    assert result.code == 1
    assert "emu" in result.message()


def test_many_sources(tmp_path):
    for i in range(40):
        (tmp_path / f"in{i:02}" / "one").mkdir(parents=True)
        (tmp_path / f"in{i:02}" / "one" / f"{i}.jpg").write_bytes(image_bytes(i))
    good("pack", *(tmp_path / f"in{i:02}" for i in range(40)), "-o", tmp_path / "a.pen")
    good("pack", tmp_path / "in{00..39}", "-o", tmp_path / "b.pen")
    assert len(samples(tmp_path / "a.pen")) == 40
    assert samples(tmp_path / "a.pen") == samples(tmp_path / "b.pen")


def test_trailing_slash_of_the_name_is_dropped(folder, tmp_path):
    assert good("pack", folder, "-o", f"{tmp_path}/p.pen//", "--json").json()["pack"] == (
        f"{tmp_path}/p.pen")


def test_broken_input_stops_or_is_reported(folder, tmp_path):
    (folder / "cat" / "bad.jpg").write_bytes(image_bytes(1)[:200])
    result = run("pack", folder, "-o", tmp_path / "a.pen")
    assert result.code == 1
    assert "bad.jpg" in result.message()
    assert "--on-bad skip" in result.message()
    report = tmp_path / "r.jsonl"
    result = good("pack", folder, "-o", tmp_path / "b.pen", "--on-bad", "skip",
                  "--bad-report", report, "--json")
    assert result.json()["broken_inputs_left_out"] == 1
    assert result.json()["bad_report"] == str(report)
    assert str(report) in result.message()
    assert "bad.jpg" in json.dumps([json.loads(x) for x in report.read_text().splitlines()])
    good("pack", folder, "-o", tmp_path / "c.pen", "--on-bad", "skip")
    assert (tmp_path / "c.pen-bad.jsonl").exists()
    assert run("pack", folder, "-o", tmp_path / "d.pen", "--on-bad", "skip",
               "--max-bad", "0").code == 1


def test_only_broken_inputs_name_their_list(tmp_path):
    (tmp_path / "in" / "cat").mkdir(parents=True)
    (tmp_path / "in" / "cat" / "a.jpg").write_bytes(image_bytes(1, "GIF"))
    result = run("pack", tmp_path / "in", "-o", tmp_path / "a.pen", "--on-bad", "skip")
    assert result.code == 1
    assert f"see the list of broken inputs in {tmp_path}/a.pen-bad.jsonl" in result.message()
    assert "found a GIF" in (tmp_path / "a.pen-bad.jsonl").read_text()


def test_plan_tasks_and_finalise(folder, tmp_path):
    pack = tmp_path / "p.pen"
    plan = good("plan", folder, "-o", pack, "--block-samples", "2", "--json")
    assert plan.json()["samples"] == 8
    assert "--task" in plan.message()
    for i in range(3):
        early = run("finalise", pack)
        assert early.code == 1, "not all tasks have ended"
        assert ("no task has been run" in early.message()) == (i == 0)
        task = good("pack", folder, "-o", pack, "--block-samples", "2", "--task", f"{i}/3")
        assert f"penstock finalise {pack}" in task.message()
    done = good("finalise", pack, "--json").json()
    assert done["samples"] == 8
    assert done["id"] == good("info", pack, "--json").json()["id"]
    good("verify", pack, "--decode")


def test_broken_inputs_of_tasks_are_listed_by_finalise(folder, tmp_path):
    pack = tmp_path / "p.pen"
    (folder / "cat" / "bad.jpg").write_bytes(image_bytes(1)[:200])
    for i in range(2):
        good("pack", folder, "-o", pack, "--on-bad", "skip", "--task", f"{i}/2")
    done = good("finalise", f"{pack}/", "--json")
    report = tmp_path / "p.pen-bad.jsonl"
    assert (done.json()["broken_inputs_left_out"], done.json()["bad_report"]) == (1, str(report))
    assert str(report) in done.message()
    assert "bad.jpg" in report.read_text()


def test_gc_says_what_it_removed(folder, tmp_path):
    pack = tmp_path / "p.pen"
    good("pack", folder, "-o", pack)
    (pack / ".work").mkdir(exist_ok=True)
    assert good("gc", pack).out.endswith(" files removed (0 B)\n")
    assert good("gc", pack, "--json").json() == {
        "schema": 1, "pack": str(pack), "files": 0, "bytes": 0}
    good("verify", pack)


BIG = 300
SLOW = ("--mode", "raw", "--max-side", "200", "--threads", "1")


def big_folder(tmp_path):
    """Enough work to be stopped in the middle of it, with SLOW: two seconds."""
    data = image_bytes(3, width=1200, height=900)
    (tmp_path / "big" / "one").mkdir(parents=True)
    for i in range(BIG):
        (tmp_path / "big" / "one" / f"{i:04}.jpg").write_bytes(data)
    return tmp_path / "big"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_says_how_to_go_on_and_resumes(tmp_path, number):
    source, pack = big_folder(tmp_path), tmp_path / "p.pen"
    command = [PENSTOCK, "pack", source, "-o", pack, *SLOW, "--block-samples", "8",
               "--shard-bytes", "1MiB"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(6000):
        time.sleep(0.01)
        if len(list(pack.rglob("*.shard"))) >= 2 or process.poll() is not None:
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == b""
    assert b"run the same command again to resume" in err
    assert err.count(b"\n") == 1
    assert not (pack / "manifest").exists()
    again = good(*command[1:], "--json")
    account = again.json()
    assert account["samples"] == BIG
    assert 0 < account["resumed"] < BIG
    assert f"resumed: {account['resumed']} of {BIG} samples" in again.message()
    good("verify", pack)


def test_progress_line_on_a_terminal(tmp_path):
    source, pack = big_folder(tmp_path), tmp_path / "p.pen"
    text = on_terminal("pack", source, "-o", pack, *SLOW, NO_COLOR="1")
    bars = [line for line in drawn(text) if line.startswith("pack  [")]
    assert any(f" of {BIG}  " in s and " %" in s and " samples/s  " in s and " MB/s  " in s
               and s.endswith(" s left") for s in bars), bars
    assert max(map(len, bars)) <= 79
    assert Screen(text).lines()[0].startswith("pack  "), "cleared at the end"
    assert "[" not in Screen(text).lines()[0]


def test_the_report_of_broken_inputs_has_their_exact_names(tmp_path):
    names = ["é.jpg".encode(), b"\xe9.jpg", b"good.jpg"]
    (tmp_path / "src" / "c").mkdir(parents=True)
    for name in names:
        (tmp_path / "src" / "c" / os.fsdecode(name)).write_bytes(b"broken")
    (tmp_path / "src" / "c" / "good.jpg").write_bytes(image_bytes(1))
    good("pack", tmp_path / "src", "-o", tmp_path / "p.pen", "--on-bad", "skip")
    lines = (tmp_path / "p.pen-bad.jsonl").read_text(encoding="utf-8").splitlines()
    bad = {line["key"]: line for line in map(json.loads, lines)}
    assert set(bad) == {"c/é.jpg"} and len(lines) == 2
    found = [json.loads(line).get("key_hex") for line in lines]
    assert sorted(found, key=str) == [b"c/\xe9.jpg".hex(), None]


@pytest.mark.parametrize("verb", ["pack", "extract", "copy"])
def test_a_limit_of_file_sizes_is_an_error_that_names_the_file(tmp_path, verb):
    source = make_folder(tmp_path / "src")
    (source / "cat" / "large.jpg").write_bytes(image_bytes(1, width=600, height=600))
    good("pack", source, "-o", tmp_path / "p.pen")
    out = tmp_path / "out.pen"
    args = {
        "pack": ("pack", source, "-o", out),
        "extract": ("extract", tmp_path / "p.pen", "-o", out),
        "copy": ("copy", tmp_path / "p.pen", out),
    }[verb]
    done = subprocess.run(
        [PENSTOCK, *args],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done
    assert "ulimit -f" in done.stderr and str(out) in done.stderr
    if verb != "extract":
        good(*args)
        good("verify", out)
