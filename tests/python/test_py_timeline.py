# SPDX-License-Identifier: Apache-2.0
"""penstock trace merge and penstock timeline: on traces of known content, and on hostile ones."""

import contextlib
import gzip
import io
import json
import os
import re
import sys
import typing
import xml.etree.ElementTree

import pytest
from cli_tools import run as program
from py_tools import jpeg, need_penstock, run_python, write_pack
from trace_tools import load, names, spans

penstock = need_penstock()
from penstock import (  # noqa: E402
    _timeline,
    _timeline_page,
    _timeline_picture,
    _timeline_svg,
    _trace_commands,
    _trace_file,
    _trace_merge,
)


class Done(typing.NamedTuple):
    stdout: str
    stderr: str


def command(*words, code=0):
    """Runs a command in this process, and expects its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            found = _trace_commands.run([str(word) for word in words])
        except SystemExit as end:  # of argparse
            found = end.code
    assert found == code, err.getvalue()
    return Done(out.getvalue(), err.getvalue())


def span(name, begin, seconds, tid=1, pid=7, **args):
    """Times in seconds."""
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": begin * 1e6,
            "dur": seconds * 1e6, "args": args}


def about(name, /, pid=7, tid=0, **args):
    return {"ph": "M", "pid": pid, "tid": tid, "name": name, "args": args}


def head(rank=0, pid=7, unix_us=1_000_000_000):
    return [about("process_name", pid, name=f"rank {rank} of 2"),
            about("penstock", pid, rank=rank, world=2, unix_minus_monotonic_us=unix_us)]


def write(path, events, closed=True):
    text = "[\n" + ",\n".join(map(json.dumps, events)) + ("\n]\n" if closed else ",\n{\"ph\":\"X")
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


# A run of 10 s: the first half waits for data, the second half trains.
RUN = [
    *head(),
    about("thread_name", tid=1, name="MainThread"),
    about("thread_name", tid=2, name="decode 0"),
    about("thread_name", tid=3, name="read 0"),
    span("next_data", 100, 5), span("next", 100, 5, batch=0, epoch=0),
    span("run_batch", 105, 5),
    *(span("decode", 100 + i, 0.5, 2, sample=i, batch=0, epoch=0) for i in range(10)),
    span("resample", 100.1, 0.1, 2, sample=0, batch=0, epoch=0, one_in=31),
    span("store", 100.2, 0.2, 2, sample=0, batch=0, epoch=0, one_in=31),
    *(span("read", 100 + i / 10, 0.1, 3, sample=i, batch=0, epoch=0, bytes=10**6)
      for i in range(10)),
]


def svg(events, **options):
    return _timeline_svg.svg(_timeline_picture.draw(_timeline.analyse(events), **options))


def colours(events, lane):
    """Seconds of each colour in a lane of the picture of 10 s."""
    root = xml.etree.ElementTree.fromstring(svg(events))
    (label,) = [e for e in root.iter() if e.text == lane]
    found = {}
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        parts = re.findall(r"M[\d.]+ ([\d.]+)h([\d.]+)v16", path.get("d"))
        if float(parts[0][0]) == float(label.get("y")) - 12:
            found[path.get("fill")] = sum(float(width) for _, width in parts) / 100
    return pytest.approx(found, abs=0.03)


# ---- figures


def test_figures_of_a_known_run():
    timeline = _timeline.analyse(RUN)
    (process,) = timeline.processes
    assert timeline.seconds == pytest.approx(10)
    figures = process.figures
    assert (figures["samples"], figures["batches"]) == (10, 1)
    assert figures["samples/s"] == pytest.approx(1) and figures["MB/s"] == pytest.approx(1)
    assert figures["waiting for data"] == figures["accelerator idle"] == pytest.approx(0.5)
    # Of the one sample that was timed, a fifth was resampling and two fifths were storing.
    assert process.stages == pytest.approx(
        {"request": 0, "read": 1, "verify": 0, "decode": 2, "resample": 1, "store": 2})
    assert process.spans["decode"] == pytest.approx(
        {"n": 10, "p50": 0.5, "p90": 0.5, "p99": 0.5, "max": 0.5})
    assert [lane.name for lane in process.lanes] == ["MainThread", "decode 0", "read 0"]
    assert sum(process.busy) / len(process.busy) == pytest.approx(0.5)


def test_columns_hold_all_of_the_time():
    (process,) = _timeline.analyse(RUN).processes
    for lane in process.lanes:
        total = sum(sum(column.values()) for column in lane.columns)
        assert total == pytest.approx({"MainThread": 15, "decode 0": 5, "read 0": 1}[lane.name])


def test_threads_that_fetch_are_one_lane():
    """It shows when a request was on its way, however many threads waited."""
    events = [*head(), span("next", 100, 10)]
    for i in range(8):
        events += [about("thread_name", tid=10 + i, name=f"fetch {i}"),
                   span("wait_work", 100, 4, 10 + i), span("wait_work", 106, 4, 10 + i)]
    events.append(span("request", 104, 2, 10))
    assert colours(events, "fetch") == {_timeline_picture.COLOURS["request"]: 2}


def test_gpu_utilization_counts_before_spans():
    counters = [{"ph": "C", "pid": 7, "name": "gpu_percent", "ts": (100 + i) * 1e6,
                 "args": {"GPU 0": 20}} for i in range(10)]
    (process,) = _timeline.analyse(RUN + counters).processes
    assert process.figures["accelerator idle"] == pytest.approx(0.8)
    assert "GPU utilization" in svg(RUN + counters)


def test_the_gpu_line_has_means():
    """Of thousands of samples, as many points as the eye can tell apart."""
    counters = [{"ph": "C", "pid": 7, "name": "gpu_percent", "ts": (100 + i / 10) * 1e6,
                 "args": {"GPU 0": 100 * (i % 2)}} for i in range(1000)]
    root = xml.etree.ElementTree.fromstring(svg([*head(), span("next", 100, 100), *counters]))
    (line,) = [e for e in root.iter() if e.get("stroke") == "#d55e00"]
    heights = [float(point.split(",")[1]) for point in line.get("points").split()]
    assert 90 <= len(heights) <= 101 and heights == pytest.approx([60] * len(heights), abs=6)


# The same run with another loader, whose worker is a process that joined the trace.
OTHER = [
    *head(),
    about("thread_name", tid=1, name="MainThread"),
    about("thread_name", tid=2, name="worker 0"),
    span("next_data", 100, 5), span("run_batch", 105, 5), span("forward", 105, 4.9),
    span("validate", 110, 0), span("get_batch", 100, 5, 2), span("request", 100, 3, 2),
    span("decode", 103, 1, 2), about("thread_name", tid=3, name="worker 1", pid=8),
    span("get_batch", 101, 1, 3, pid=8),
]


def test_another_loader():
    """It has no spans but those that its user wrote."""
    first, second = _timeline.analyse(OTHER).processes
    assert first.figures["waiting for data"] == first.figures["accelerator idle"] == 0.5
    assert first.figures["batches"] == 1 and "MB/s" not in first.figures
    assert sum(first.busy) / len(first.busy) == pytest.approx(0.5)
    assert second.figures == pytest.approx({"elapsed time": 1}) and second.busy == []
    assert (second.columns.start, second.columns.stop) == (80, 160)
    assert svg(OTHER).count(">utilization<") == 1


def test_a_process_that_ends_at_once():
    """Its only span is at the very end, and takes no time."""
    _, last = _timeline.analyse([*OTHER[:6], span("next_data", 110, 0, pid=9)]).processes
    assert last.columns == range(799, 800)
    picture = _timeline_picture.draw(_timeline.analyse([*OTHER, span("next_data", 110, 0, pid=9)]))
    lines = [shape for shape in picture.shapes if isinstance(shape, _timeline_picture.Line)]
    assert all(line.points for line in lines)


def test_inner_spans_are_counted_once():
    picture = _timeline_picture.COLOURS
    assert colours(OTHER, "MainThread") == {picture["next_data"]: 5, picture["run_batch"]: 5}
    assert colours(OTHER, "worker 0") == {
        picture["request"]: 3, picture["decode"]: 1, picture["get_batch"]: 1}
    assert colours(RUN, "MainThread") == {picture["next"]: 5, picture["run_batch"]: 5}
    assert "other spans" not in svg(OTHER)


@pytest.mark.parametrize("share, expected", [(0.5, 5), (0.9, 9), (0.99, 10), (0, 1), (1, 10)])
def test_percentiles(share, expected):
    assert _timeline.percentile(list(range(1, 11)), share) == expected


@pytest.mark.parametrize("most", [5, 12])
@pytest.mark.parametrize("seconds", [1e-5, 0.003, 0.617, 1, 9.9, 10, 3600, 1e6])
def test_ticks_are_few_and_round(seconds, most):
    found = _timeline_picture.ticks(seconds, most)
    assert 2 <= len(found) <= most + 1 and found[-1] <= seconds * 1.001
    assert all(len(f"{at:g}") <= 6 for at in found)


@pytest.mark.parametrize("seconds, shown", [
    (2e-7, "0.2 µs"), (1.25e-3, "1.25 ms"), (0.5, "500 ms"), (1, "1 s"), (999.4, "999 s"),
    (999.6, "1,000 s"), (123_456.7, "123,457 s")])
def test_times_have_a_unit(seconds, shown):
    assert _timeline_page.time_text(seconds) == shown


# ---- pictures


def test_the_page_is_one_valid_file(tmp_path):
    write(tmp_path / "run.json.gz", RUN)
    command("timeline", tmp_path / "run.json.gz", "-o", tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert not re.search(r"(?:src|href)=|@import|url\(", page)
    picture = re.search(r"<svg.*</svg>", page, re.S)[0]
    root = xml.etree.ElementTree.fromstring(picture)
    command("timeline", tmp_path / "run.json.gz", "-o", tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text().strip() == picture
    # Nothing lies outside of the picture, and no two labels of lanes overlap.
    width, height = map(float, root.get("viewBox").split()[2:])
    labels = []
    for element in root.iter():
        x, y = element.get("x"), element.get("y")
        if x and y:
            end = float(x) + float((element.get("width") or "0").rstrip("%"))
            assert 0 <= float(x) <= end <= width and 0 <= float(y) <= height
        if element.get("text-anchor") == "end":
            labels.append(float(y))
    assert len(labels) == 4 and min(b - a for a, b in zip(labels, labels[1:], strict=False)) > 14
    stalls = [e for e in root.iter() if e.get("fill") == "#f9dfcc"]
    assert [float(e.get("width")) for e in stalls] == pytest.approx([500, 12], rel=0.02)


@pytest.mark.parametrize("wide", [_timeline_picture.WIDTH, 600])
def test_the_legend_stays_inside(wide):
    """With all names that there are."""
    names = [*_timeline_picture.COLOURS, "mine"]
    root = xml.etree.ElementTree.fromstring(
        svg([*head(), *(span(name, i, 1) for i, name in enumerate(names))], width=wide))
    width, height = map(float, root.get("viewBox").split()[2:])
    texts = [e for e in root.iter("{http://www.w3.org/2000/svg}text")
             if e.text in (*names, "other spans")]
    assert len(texts) == len(names)
    for e in texts:
        assert float(e.get("x")) + 7.2 * len(e.text) < width and float(e.get("y")) < height - 10
    rows = {e.get("y") for e in texts}
    for y in rows:
        row = [e for e in texts if e.get("y") == y]
        assert all(float(b.get("x")) - float(a.get("x")) > 7.2 * len(a.text) + 16
                   for a, b in zip(row, row[1:], strict=False))
    assert len(rows) == (2 if wide > 1000 else 3) and width == wide


def test_png_without_matplotlib(tmp_path, monkeypatch):
    """With it, `./dev perfetto` draws PNG files."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = write(tmp_path / "run.json", RUN)
    done = command("timeline", path, "-o", tmp_path / "run.png", code=1)
    assert "run.png: PNG needs matplotlib" in done.stderr and "\n" not in done.stderr.strip()
    assert not (tmp_path / "run.png").exists()


def test_the_tables_are_text(tmp_path):
    pack = tmp_path / "a.pen"
    write_pack(penstock, pack, 10, image=jpeg).close()
    write(tmp_path / "run.json", [*RUN, about("pack", path=str(pack))])
    out = command("timeline", tmp_path / "run.json").stdout
    assert "samples/s" in out and re.search(r"accelerator idle +50\.0%", out)
    assert re.search(r"^ +0 +s0 +0 +decode +500 ms$", out, re.M)
    assert max(map(len, out.splitlines())) <= 80


def test_empty_tables_are_left_out(tmp_path):
    path = write(tmp_path / "run.json", [span("next_data", 1, 1), span("run_batch", 2, 1)])
    out = command("timeline", path).stdout
    assert "Spans\n" in out and "Slowest" not in out and "Time of all threads" not in out


def test_texts_of_a_trace_are_no_markup(tmp_path):
    evil = "</svg><script>alert(1)</script>"
    write(tmp_path / "run.json", [about("process_name", name=evil),
                                  about("thread_name", tid=1, name=evil), span(evil, 1, 1)])
    command("timeline", tmp_path / "run.json", "-o", tmp_path / "run.html")
    assert "<script" not in (tmp_path / "run.html").read_text()


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
    for words in (["timeline", tmp_path / "run.json"],
                  ["trace", "merge", tmp_path / "run.json", "-o", tmp_path / "out.json"]):
        done = command(*words, code=1)
        assert message in done.stderr and done.stderr.startswith("penstock: trace ")
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_mistakes_in_the_command(tmp_path):
    assert "ends in .html, .svg or .png" in command("timeline", "x", "-o", "run", code=2).stderr
    assert "No such file" in command("timeline", tmp_path / "none.json", code=1).stderr
    path = write(tmp_path / "run.json", RUN)
    assert "choose another name" in command("trace", "merge", path, "-o", path, code=1).stderr
    assert json.loads(path.read_text())
    assert "expected 'penstock trace merge'" in command("trace", "split", code=2).stderr
    assert _trace_commands.run(["pack"]) is None


def test_the_program_has_both_commands(tmp_path):
    """As it is installed with the package; the words that are not Python's go to the C program."""
    path = write(tmp_path / "run.json", RUN)
    done = run_python("from penstock._cli import main; raise SystemExit(main())", "timeline", path)
    assert done.returncode == 0 and "samples/s" in done.stdout
    done = run_python("from penstock._cli import main; raise SystemExit(main())", "ops")
    assert done.returncode == 0 and "decode" in done.stdout


@pytest.mark.parametrize("word", ["timeline", "trace", "ray"])
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
    assert len(_timeline.analyse(events).processes) == 2


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
