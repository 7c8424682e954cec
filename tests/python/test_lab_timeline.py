# SPDX-License-Identifier: Apache-2.0
"""penstock-lab timeline: lanes and pictures of traces of known content.

Colors are turned into what people without one of the three kinds of cones see (the matrices of
Machado, Oliveira and Fernandes, 2009), and then into CIE L*a*b*, where a distance of 2.3 is just
noticeable."""

import collections
import itertools
import xml.etree.ElementTree

import pytest
from penstock.lab import LabError, _cli, timeline
from trace_maker import OTHER, RUN, about, head, span, write

pytest.importorskip("matplotlib")

EYES = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = [[0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505], [0.2126, 0.7152, 0.0722],
          [0.0193 / 1.089, 0.1192 / 1.089, 0.9505 / 1.089]]
LEAST = 10


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def linear(colour):
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [((v + 0.055) / 1.055) ** 2.4 if v > 0.04045 else v / 12.92 for v in values]


def lab(colour, eye):
    x, y, z = (max(v, 0.0) for v in times(TO_XYZ, times(EYES[eye], linear(colour))))
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(a, b):
    return sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5


def seconds_of(lane):
    """Seconds of each kind of span."""
    found = collections.Counter()
    for one in lane.spans:
        found[one.kind] += one.seconds
    return pytest.approx(dict(found), abs=0.03)


def lanes_of(events):
    return {lane.name: lane for lane in timeline.lanes(events)}


def texts(svg):
    return [e.text for e in xml.etree.ElementTree.fromstring(svg).iter(
        "{http://www.w3.org/2000/svg}text")]


# ---- lanes


def test_lanes_of_a_known_run():
    found = timeline.lanes(RUN)
    assert [(lane.name, lane.heading) for lane in found] == [
        ("rank 0 of 2", True), ("MainThread", False), ("decode 0", False), ("read 0", False)]
    by_name = lanes_of(RUN)
    assert seconds_of(by_name["MainThread"]) == {"next": 5, "run_batch": 5}
    assert seconds_of(by_name["decode 0"]) == {"decode": 5}
    assert seconds_of(by_name["read 0"]) == {"read": 1}
    first, second = by_name["MainThread"].spans
    assert (first.start, second.start) == pytest.approx((0, 5))


def test_threads_that_fetch_are_one_lane():
    """It shows when a request was on its way, however many threads waited."""
    events = [*head(), span("next", 100, 10)]
    for i in range(8):
        events += [about("thread_name", tid=10 + i, name=f"fetch {i}"),
                   span("wait_work", 100, 4, 10 + i), span("wait_work", 106, 4, 10 + i)]
    events.append(span("request", 104, 2, 10))
    assert seconds_of(lanes_of(events)["fetch"]) == {"request": 2}


def test_the_gpu_line_has_means():
    """Of thousands of samples, as many points as the eye can tell apart."""
    counters = [{"ph": "C", "pid": 7, "name": "gpu_percent", "ts": (100 + i / 10) * 1e6,
                 "args": {"GPU 0": 100 * (i % 2)}} for i in range(1000)]
    _, gpu, _ = timeline.lanes([*head(), span("next", 100, 100), *counters])
    percents = [percent for _, percent in gpu.line]
    assert 90 <= len(percents) <= 101 and percents == pytest.approx([50] * len(percents), abs=6)


def test_inner_spans_are_counted_once():
    found = lanes_of(OTHER)
    assert seconds_of(found["MainThread"]) == {"next_data": 5, "run_batch": 5}
    assert seconds_of(found["worker 0"]) == {"request": 3, "decode": 1, "get_batch": 1}
    assert seconds_of(found["worker 1"]) == {"get_batch": 1}


def test_a_process_that_ends_at_once():
    """Its only span is at the very end, and takes no time."""
    found = timeline.lanes([*OTHER[:6], span("next_data", 110, 0, pid=9)])
    assert [lane.name for lane in found[-2:]] == ["process 9", "thread 1"]
    assert found[-1].spans == []


def test_a_trace_without_spans():
    with pytest.raises(LabError, match="expected spans, found none"):
        timeline.lanes(head())


# ---- pictures


def test_the_command(tmp_path, capsys):
    path = write(tmp_path / "run.json.gz", [*RUN, span("mine", 111, 1)])
    assert _cli.main(["timeline", str(path)]) == 0
    assert capsys.readouterr().out == f"picture: {tmp_path}/run.svg\n"
    found = texts((tmp_path / "run.svg").read_text())
    assert {"run.json.gz", "rank 0 of 2", "MainThread", "decode 0", "run_batch", "other spans",
            "time (s)"} <= set(found)
    assert _cli.main(["timeline", str(path), "--out", str(tmp_path / "run.png")]) == 0
    assert (tmp_path / "run.png").read_bytes()[:4] == b"\x89PNG"
    assert _cli.main(["timeline", str(path), "--out", str(tmp_path / "run.gif")]) == 1
    assert "ends in .svg or .png" in capsys.readouterr().err
    assert _cli.main(["timeline", str(tmp_path / "none.json")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_texts_of_a_trace_are_no_markup():
    evil = "</svg><script>alert(1)</script>"
    events = [about("process_name", name=evil), about("thread_name", tid=1, name=evil),
              span(evil, 1, 1)]
    svg = timeline.plot(events, evil).svg()
    assert "<script" not in svg and evil in texts(svg)


@pytest.mark.parametrize("eye", EYES)
def test_spans_of_a_lane_differ(eye):
    seen = {name: lab(color, eye) for name, color in timeline.COLORS.items()}
    pairs = {(a, b): distance(seen[a], seen[b]) for a, b in itertools.combinations(seen, 2)}
    assert {pair: d for pair, d in pairs.items() if d < LEAST} == {}


def test_distances():
    """Of colours that some cannot tell apart."""
    assert distance(lab("#000000", "all cones"), lab("#ffffff", "all cones")) == pytest.approx(
        100, abs=1)
    assert distance(lab("#c86400", "no green"), lab("#8c8c00", "no green")) < LEAST < distance(
        lab("#c86400", "all cones"), lab("#8c8c00", "all cones"))
