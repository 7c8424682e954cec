# SPDX-License-Identifier: Apache-2.0
"""What bench/remote/idle.py makes of traces: figures, a table and a picture of two loaders."""

import json
import sys
import xml.etree.ElementTree

import pytest
from example_tools import ROOT
from py_tools import need_penstock

need_penstock()
sys.path.insert(0, str(ROOT / "bench"))
from remote import idle  # noqa: E402


def span(name, begin, seconds, pid=7):
    return {"ph": "X", "pid": pid, "tid": pid, "name": name, "ts": begin * 1e6,
            "dur": seconds * 1e6}


def write(path, *events):
    path.write_text("[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n")
    return path


@pytest.fixture
def slow(tmp_path):
    """A step of 1 s for each batch, which a worker takes 4 s to bring."""
    main = write(tmp_path / "a.json", span("next_data", 50, 4), span("run_batch", 54, 1),
                 span("next_data", 55, 3), span("run_batch", 58, 1))
    worker = write(tmp_path / "w.json", span("get_batch", 50, 4, 8), span("request", 50, 3, 8),
                   span("get_batch", 54, 9, 8))
    return list(idle.cut(idle.events_of(main, [worker])))


def test_figures(slow):
    assert idle.figures_of(slow) == pytest.approx(
        {"seconds": 9, "idle": 7 / 9, "first": 4, "longest": 4})
    # The worker is a thread of the process, and what it did after the last step is left out.
    assert {e["pid"] for e in slow} == {7}
    assert max(e["ts"] + e["dur"] for e in slow if e["ph"] == "X") == pytest.approx(9e6)


def test_table_and_picture(slow):
    known = {"a": {"title": "slow"}, "b": {"title": "other"}}
    figure = {**idle.figures_of(slow), "samples": 90}
    turns = {"a": [(figure, slow), ({**figure, "idle": 0.5, "samples": 180}, slow)],
             "b": [(figure, slow)]}
    head, first, second = idle.rows_of(turns, known, "a store")
    assert "a store" in head[0] and len(head) == len(first) == len(second) == 5
    assert first[:3] == ["slow", "63.9 (50.0-77.8)", "15 (10-20)"]
    root = xml.etree.ElementTree.fromstring(idle.picture_of(turns, known))
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "slow: accelerator idle 77.8% of the time" in texts
    assert texts.count("worker 0") == 2 and "run_batch" in texts
