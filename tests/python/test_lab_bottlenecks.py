# SPDX-License-Identifier: Apache-2.0
"""penstock-lab bottlenecks: cases whose bottleneck is known, and what is said of them."""

import io

import pytest

pillow = pytest.importorskip("PIL.Image")

from penstock.lab import _cli  # noqa: E402
from penstock.lab.errors import LabError  # noqa: E402
from penstock.lab.experiment import report  # noqa: E402
from penstock.lab.loaders import bottlenecks, observe  # noqa: E402


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(64):
        data = io.BytesIO()
        noise = pillow.effect_noise((320, 240 + number), 60).convert("RGB")
        noise.save(data, "JPEG", quality=95)
        (folder / f"{number:02}.jpg").write_bytes(data.getvalue())
    return folder


def test_decoding_is_named(photos, tmp_path, monkeypatch, capsys):
    """One thread decodes and the page cache is warm: penstock names a stage of decoding."""
    (tmp_path / "torch.py").write_text("raise ImportError\n")  # it takes seconds to be imported
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_LAB_HOME", str(tmp_path / "home"))
    assert _cli.main(["bottlenecks", str(photos), "--cases", "decoding", "--loaders", "penstock",
                      "--rounds", "1", "--seconds", "0.2", "--out", str(tmp_path / "out"),
                      "--name", "x"]) == 0
    said = capsys.readouterr().out
    assert "(right)" in said and "processor" in said
    lines = report.read(tmp_path / "out" / "bottlenecks" / "x")
    (turn,) = [line for line in lines if line["kind"] == "turn"]
    assert turn["samples"] % 64 == 0 and bottlenecks.is_right("decoding", turn["bottleneck"])


def lines_of(*said):
    cell = {"loader": "penstock", "case": "slow-disk"}
    head = {"kind": "parameters", "parameters": {
        "loaders": ["penstock", "ffcv"], "cases": ["slow-disk", "training-step"]}}
    turns = [{"kind": "turn", "cell": cell, "round": number, "bottleneck": name}
             for number, name in enumerate(said)]
    absent = {"kind": "absent", "cell": {"loader": "ffcv", "case": "slow-disk"}, "reason": "no C"}
    return [head, *turns, absent]


def test_a_wrong_name_is_shown():
    header, disk, step = bottlenecks.rows(lines_of("read", "decode", "read"))
    assert header == ["case", "setting", "limited by", "penstock", "ffcv"]
    assert disk[2:] == ["disk", "read (WRONG in 1 of 3)", "absent: no C"]
    assert step[1] == "warm, files as they are, 2 threads, simulated steps of 500 ms"
    assert bottlenecks.rows(lines_of("read"))[1][3] == "read (right)"


def test_of_a_remote_pack_the_first_epoch_counts():
    lines = lines_of("decode")
    lines[0]["parameters"]["cases"] = ["store"]
    lines[1]["cell"] = {"loader": "penstock", "case": "store"}
    assert "WRONG" in bottlenecks.rows(lines)[1][3]
    lines.append({**lines[1], "kind": "first", "bottleneck": "fetch"})
    assert bottlenecks.rows(lines)[1][3] == "fetch (right)"


@pytest.mark.parametrize("chosen", [{}, {"source": "x", "cases": ("y",)},
                                    {"source": "x", "loaders": ("y",)}])
def test_wrong_parameters(chosen):
    with pytest.raises(LabError, match="expected"):
        bottlenecks.check(bottlenecks.Parameters(**chosen))


@pytest.mark.parametrize("idle, median, named", [
    (0.01, 0.0, "consumer"), (0.3, 0.004, "consumer"), (0.3, 0.1, "waiting"),
    (0.6, 0.004, "waiting")])
def test_a_late_first_batch_does_not_hide_the_training_step(idle, median, named):
    turn = {"consumer_ms": 200.0, "idle": idle, "waits": [median, 1.0, 1.0], "cpu": 0.0,
            "seconds": 2.0}
    assert observe.limited_by(turn, 2, 0.0, 0.0) == named


def test_a_wait_for_fuse_is_a_wait_for_a_disk(tmp_path):
    (tmp_path / "stat").write_text("1 (a b) S 0\n")
    (tmp_path / "wchan").write_text(observe.FUSE_WAIT)
    assert observe._state(tmp_path) == "D"
    (tmp_path / "wchan").write_text("futex_wait")
    assert observe._state(tmp_path) == "S"
