# SPDX-License-Identifier: Apache-2.0
"""penstock doctor TRACE and penstock trace merge: on known traces, and on hostile ones."""

import contextlib
import gzip
import io
import json
import os
import re
import typing

import pytest
from cli_tools import run as program
from py_tools import jpeg, need_penstock, run_python, write_pack
from trace_maker import OTHER, RUN, about, head, span, write
from trace_tools import load, names, spans

penstock = need_penstock()
from penstock import _trace_file, _trace_merge, _trace_summary  # noqa: E402


class Done(typing.NamedTuple):
    stdout: str
    stderr: str


def command(*words, code=0):
    """Runs a command in this process, and expects its exit code."""
    module = _trace_merge if words[0] == "trace" else _trace_summary
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            found = module.run([str(word) for word in words])
        except SystemExit as end:  # of argparse
            found = end.code
    assert found == code, err.getvalue()
    return Done(out.getvalue(), err.getvalue())


# ---- figures


def test_figures_of_a_known_run():
    (process,) = _trace_summary.analyse(RUN)
    figures = process.figures
    assert figures["elapsed time"] == pytest.approx(10)
    assert (figures["samples"], figures["batches"]) == (10, 1)
    assert figures["samples/s"] == pytest.approx(1) and figures["MB/s"] == pytest.approx(1)
    assert figures["waiting for data"] == figures["accelerator idle"] == pytest.approx(0.5)
    # Of the one sample that was timed, a fifth was resampling and two fifths were storing.
    assert process.stages == pytest.approx(
        {"request": 0, "read": 1, "verify": 0, "decode": 2, "resample": 1, "store": 2})
    assert process.spans["decode"] == pytest.approx(
        {"n": 10, "p50": 0.5, "p90": 0.5, "p99": 0.5, "max": 0.5})


def test_gpu_utilization_counts_before_spans():
    counters = [{"ph": "C", "pid": 7, "name": "gpu_percent", "ts": (100 + i) * 1e6,
                 "args": {"GPU 0": 10, "GPU 1": 30}} for i in range(10)]
    (process,) = _trace_summary.analyse(RUN + counters)
    assert process.figures["accelerator idle"] == pytest.approx(0.8)


def test_another_loader():
    """It has no spans but those that its user wrote."""
    first, second = _trace_summary.analyse(OTHER)
    assert first.figures["waiting for data"] == first.figures["accelerator idle"] == 0.5
    assert first.figures["batches"] == 1 and "MB/s" not in first.figures
    assert second.figures == pytest.approx({"elapsed time": 1})


@pytest.mark.parametrize("share, expected", [(0.5, 5), (0.9, 9), (0.99, 10), (0, 1), (1, 10)])
def test_percentiles(share, expected):
    assert _trace_summary.percentile(list(range(1, 11)), share) == expected


@pytest.mark.parametrize("seconds, shown", [
    (2e-7, "0.2 µs"), (1.25e-3, "1.25 ms"), (0.5, "500 ms"), (1, "1 s"), (999.4, "999 s"),
    (999.6, "1,000 s"), (123_456.7, "123,457 s")])
def test_times_have_a_unit(seconds, shown):
    assert _trace_summary.time_text(seconds) == shown


# ---- text


def test_the_tables_are_text(tmp_path):
    pack = tmp_path / "a.pen"
    write_pack(penstock, pack, 10, image=jpeg).close()
    known = about("pack", path=str(pack)), about("loader", batch_size=10)
    write(tmp_path / "run.json", [*RUN, *known])
    out = command("doctor", tmp_path / "run.json").stdout
    assert "samples/s" in out and re.search(r"accelerator idle +50\.0%", out)
    assert re.search(r"^ +0 +s0 +0 +decode +500 ms$", out, re.M)
    *tables, advice, measure = out.splitlines()
    assert max(map(len, tables)) <= 80
    assert advice == "To measure the pack with this training step:"
    assert measure == f"  penstock doctor {pack} --batch 10 --consumer 5000"


def test_what_is_missing_is_left_out(tmp_path):
    path = write(tmp_path / "run.json", [span("next_data", 1, 1), span("run_batch", 2, 1)])
    out = command("doctor", path).stdout
    assert "Spans\n" in out and "Slowest" not in out and "Time of all threads" not in out
    assert "To measure" not in out  # there is no pack


# ---- reading


def test_a_trace_of_a_killed_process(tmp_path):
    path = write(tmp_path / "run.json", RUN, closed=False)
    assert len(_trace_file.read(path).events) == len(RUN)
    whole = gzip.compress(path.read_bytes())
    (tmp_path / "cut.json.gz").write_bytes(whole[:-12])
    assert len(_trace_file.read(tmp_path / "cut.json.gz").events) >= len(RUN) - 3
    command("trace", "merge", tmp_path / "cut.json.gz", "-o", tmp_path / "mended.json.gz")
    assert names(load(tmp_path / "mended.json.gz"))["penstock_merged"] == 1


@pytest.mark.parametrize("data, message", [
    (b"", "expected Chrome trace events"),
    (b"hello", "expected Chrome trace events"),
    (b"{}", "expected Chrome trace events"),
    (b"[\n]\n", "found none"),
    (b"[" * 100_000, "expected Chrome trace events"),
    (b"\x1f\x8b\x08" + b"\xff" * 40, "gzip"),
    (b'[\n{"ph":"X","ts":"1","dur":1,"name":"x"},\n{"ph":"X","ts":1e999,"dur":1},\n[]\n]',
     "found none"),
    (b'{"traceEvents":[{"ph":"X","ts":1,"dur":1,"name":"x","args":[]}]}', "found none"),
    (b'{"traceEvents":[{"ph":"X","ts":1,"dur":1,"name":"x","args":{"sample":{}}}]}', "found none"),
])
def test_hostile_files(tmp_path, data, message):
    (tmp_path / "run.json").write_bytes(data)
    for words in (["doctor", tmp_path / "run.json"],
                  ["trace", "merge", tmp_path / "run.json", "-o", tmp_path / "out.json"]):
        done = command(*words, code=1)
        assert message in done.stderr and done.stderr.startswith("penstock: trace ")
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_mistakes_in_the_command(tmp_path):
    assert "No such file" in command("doctor", tmp_path / "none.json", code=1).stderr
    path = write(tmp_path / "run.json", RUN)
    assert "choose another name" in command("trace", "merge", path, "-o", path, code=1).stderr
    assert json.loads(path.read_text())
    assert "expected 'penstock trace merge'" in command("trace", "split", code=2).stderr


def test_the_program_has_both_commands(tmp_path):
    """As it is installed with the package; the words that are not Python's go to the C program."""
    path = write(tmp_path / "run.json", RUN)
    main = "from penstock._cli import main; raise SystemExit(main())"
    done = run_python(main, "doctor", path)
    assert done.returncode == 0 and "samples/s" in done.stdout
    done = run_python(main, "trace", "merge", path, "-o", tmp_path / "all.json")
    assert done.returncode == 0 and "events of 1 traces" in done.stdout
    done = run_python(main, "ops")
    assert done.returncode == 0 and "decode" in done.stdout
    done = run_python(main, "doctor", path, "--batch", "3")
    assert done.returncode == 1 and "a trace takes no options" in done.stderr


@pytest.mark.parametrize("word", ["trace", "ray"])
def test_the_program_without_python_names_the_package(word):
    done = program(word, "run.json")
    assert done.code == 2 and done.message() == (
        f"{word} is a command of the Python package; run 'python3 -m penstock {word}'")


# ---- merging


def test_ranks_share_one_clock(tmp_path):
    """Both have the same number of process, on two machines whose clocks began at other times."""
    a = write(tmp_path / "a.json", [*head(0, unix_us=5_000_000), span("next", 10, 1),
                                    {"ph": "b", "pid": 7, "tid": 1, "name": "get_batch", "id": 1,
                                     "cat": "batch", "ts": 10e6}])
    b = write(tmp_path / "b.json.gz", [*head(1, unix_us=2_000_000), span("next", 14, 1),
                                       {"ph": "b", "pid": 7, "tid": 1, "name": "get_batch",
                                        "id": 1, "cat": "batch", "ts": 14e6}])
    out = command("trace", "merge", b, a, "-o", tmp_path / "all.json.gz").stdout
    assert out == f"{tmp_path}/all.json.gz: 9 events of 2 traces\n"
    events = load(tmp_path / "all.json.gz")
    ranks = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(ranks.values()) == ["rank 0 of 2", "rank 1 of 2"]
    assert {ranks[e["pid"]]: e["ts"] for e in spans(events, "next")} == {
        "rank 0 of 2": 0, "rank 1 of 2": 1_000_000}
    assert len({e["id"] for e in events if e["ph"] == "b"}) == 2
    assert len(_trace_summary.analyse(events)) == 2


def test_merging_keeps_nanoseconds(tmp_path):
    """Perfetto leaves out spans that overlap: one must end where the next one begins."""
    times = [25_866_976_789_736 + i * 2_345_679 for i in range(100)]
    follow = [{"ph": "X", "pid": 7, "tid": 1, "name": "read", "ts": a / 1000, "dur": (b - a) / 1000}
              for a, b in zip(times, times[1:], strict=False)]
    path = write(tmp_path / "a.json", [*head(unix_us=1_794_799_120_159_940), *follow])
    found = spans(_trace_merge.merged([_trace_file.read(path)]), "read")
    assert [round((e["ts"] - found[0]["ts"]) * 1000) for e in found] == [
        at - times[0] for at in times[:-1]]


def test_a_profile_of_torch_joins_its_process(tmp_path):
    """Its times count from a base in nanoseconds since 1970; it names processes by text, too."""
    a = write(tmp_path / "a.json", [*head(0, unix_us=5_000_000), span("next", 10, 1)])
    profile = tmp_path / "torch.json"
    profile.write_text(json.dumps({"baseTimeNanoseconds": 4 * 10**9, "traceEvents": [
        span("aten::mm", 12, 1), {**span("PyTorch Profiler", 11, 3), "pid": "Spans",
                                  "tid": "PyTorch Profiler"}]}))
    events = _trace_merge.merged([_trace_file.read(profile), _trace_file.read(a)])
    (mine,), (theirs,) = spans(events, "next"), spans(events, "aten::mm")
    assert (mine["pid"], mine["ts"]) == (7, 0) and (theirs["pid"], theirs["ts"]) == (7, 1_000_000)
    (other,) = spans(events, "PyTorch Profiler")
    assert isinstance(other["pid"], int) and other["pid"] != 7


@pytest.mark.slow  # the profiler takes many seconds to start
def test_a_real_profile_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile

    with penstock.trace(tmp_path / "run.json", samples_per_second=0):
        with profile(activities=[ProfilerActivity.CPU]) as found, penstock.span("run_batch"):
            torch.ones(8, 8) @ torch.ones(8, 8)
    found.export_chrome_trace(str(tmp_path / "torch.json"))
    events = _trace_merge.merged(
        [_trace_file.read(tmp_path / name) for name in ("run.json", "torch.json")])
    (outer,), (inner, *_) = spans(events, "run_batch"), spans(events, "aten::matmul")
    assert outer["pid"] == inner["pid"] == os.getpid() and outer["tid"] == inner["tid"]
    assert outer["ts"] - 2000 < inner["ts"] < outer["ts"] + outer["dur"] + 2000


def test_files_without_a_clock_are_refused(tmp_path):
    a = write(tmp_path / "a.json", [*head(), span("next", 1, 1)])
    b = write(tmp_path / "b.json", [span("x", 1, 1)])
    assert "expected the time of its clock" in command(
        "trace", "merge", a, b, "-o", tmp_path / "c.json", code=1).stderr
