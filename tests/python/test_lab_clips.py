# SPDX-License-Identifier: Apache-2.0
"""penstock-lab clips: tables from times, the set, and a small run of real loaders."""

import ast
import pathlib
import shutil

import pytest
from py_tools import need_penstock

need_penstock()

from penstock.lab import Absent, LabError, _cli, shapes  # noqa: E402
from penstock.lab.clips import files, question, sets, sources, tables, turns  # noqa: E402
from penstock.lab.clips.question import Parameters  # noqa: E402
from penstock.lab.experiment import inputs, parameters, report  # noqa: E402
from penstock.lab.loaders import environments, workers  # noqa: E402
from penstock.lab.verbs import clips as verb  # noqa: E402

WORKER = pathlib.Path(turns.TURN).parent


def head(**more):
    chosen = parameters.to_dict(Parameters(**more))
    return {"kind": "parameters", "parameters": chosen, "date": "2026-11-18T06:00:00Z",
            "machine": {"cpu": "c", "cores": 2, "memory_gb": 4}}


def cell(loader, task="fetch", storage="warm"):
    return {"task": task, "loader": loader, "storage": storage}


def turn(at, number, seconds, **more):
    return {"kind": "turn", "cell": at, "round": number, "seconds": seconds, "cpu": 1.0,
            "first": 0.5, "data": seconds, "samples": 500, "batches": 50, **more}


def record(times, **more):
    """A report of a fetch: {loader: seconds of its turns}."""
    lines = [head(rounds=len(times["penstock"]), **more)]
    for name, seconds in times.items():
        lines.append({"kind": "prepared", "cell": cell(name), "title": name, "versions": {"x": "1"},
                      "check": {"mean": 0.5, "max": 3.0}})
        lines += [turn(cell(name), i, one) for i, one in enumerate(seconds)]
    return lines


def test_a_speedup_is_that_of_the_medians():
    lines = record({"penstock": [1.5, 2.0, 1.5], "jpeg": [6.0, 6.0, 7.5]},
                   aims=("penstock/jpeg>=3.5", "penstock/gulpio2>=2"))
    text = tables.markdown(lines)
    assert "4.00 (3.00-5.00) |" in text and "1.50 (1.50-2.00)" in text and "0.50 (3)" in text
    assert "4.00 (3.00-5.00) |      reached" in text and "not measured" in text
    slower = tables.markdown(record({"penstock": [2.0] * 3, "jpeg": [6.0] * 3},
                                    aims=("penstock/jpeg>=3.5",)))
    assert "3.00 (3.00-3.00) | NOT reached" in slower


def test_no_winner_if_the_spread_is_larger_than_the_difference():
    text = tables.markdown(record({"penstock": [1.0, 2.0, 1.5], "jpeg": [1.6, 1.7, 1.6]}))
    assert "1.07 (0.85-1.60), no winner" in text
    assert "no winner" not in tables.markdown(record({"penstock": [1.0] * 3, "jpeg": [2.0] * 3}))


def test_an_absent_loader_is_named_and_not_compared():
    lines = record({"penstock": [1.0], "jpeg": [6.0]}, aims=("penstock/jpeg>=2",))
    lines.append({"kind": "absent", "cell": cell("jpeg"), "reason": "no wheel"})
    (section,) = tables.sections_of(lines)
    assert list(section.found) == ["penstock"]
    assert "absent: no wheel" in tables.markdown(lines) and "not measured" in tables.markdown(lines)


def test_an_incomplete_run_has_the_rounds_of_all():
    lines = record({"penstock": [1.0, 9.0], "jpeg": [6.0]})
    assert "6.00 (6.00-6.00), no winner" in tables.markdown(lines)


def test_the_share_of_the_time_that_a_step_waits():
    waits = {"seconds": 20.0, "first": 2.0, "data": 10.0}
    assert tables.share(waits) == 0.5 and tables.share(waits, False) == pytest.approx(8 / 18)
    at = cell("penstock", "train")
    lines = [head(), {"kind": "prepared", "cell": at, "title": "penstock"},
             turn(at, 0, 20.0, data=10.0, consumer_ms=200.0)]
    assert "50.0 %" in tables.markdown(lines)


def test_what_a_simulated_disk_counts():
    at = cell("penstock", storage="seeks=6.8ms")
    counts = {"opens": 3, "reads": 560, "seeks": 495, "bytes": 89_000_000}
    lines = [head(), {"kind": "prepared", "cell": at, "title": "penstock"},
             turn(at, 0, 5.0, **counts)]
    text = tables.markdown(lines)
    assert "simulated storage seeks=6.8ms" in text
    assert "|     3 |       560 (1.12) |       495 (0.99) |      89 |" in text


def test_room_is_payload_index_and_slack(tmp_path):
    (tmp_path / "frames" / "a").mkdir(parents=True)
    (tmp_path / "frames" / "a" / "x").write_bytes(b"x" * 5000)
    (tmp_path / "frames" / "y").write_bytes(b"y" * 100)
    found = sets.room(tmp_path, "frames")
    seen = inputs.on_disk(tmp_path / "frames")
    assert (found["payload"], found["files"], seen["bytes"]) == (5100, 2, 5100)
    assert (found["index"], found["slack"]) == (seen["folder_blocks"], seen["blocks"] - 5100)
    at, other = cell("penstock", "size", "local"), cell("jpeg", "size", "local")
    lines = [head()]
    for one, payload in ((at, 5_000_000), (other, 9_000_000)):
        lines += [{"kind": "prepared", "cell": one, "title": "t"},
                  turn(one, 0, 0.1, payload=payload, index=1_000_000, slack=0, files=2)]
    assert "|     5.0 |   1.0 |               0.0 |     6.0 |        0.600 |" in \
        tables.markdown(lines)


def test_every_loader_has_a_module_and_an_environment():
    known = environments.specs()
    for name, spec in turns.loaders().items():
        assert (WORKER / "readers" / f"{spec['module']}.py").exists(), name
        assert spec["environment"] is None or spec["environment"] in known, name


def test_the_worker_needs_no_penstock():
    """Its modules run where penstock is not installed."""
    for file in [WORKER / "turn.py", *(WORKER / "readers").glob("*.py")]:
        names = {alias.name for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                 if isinstance(node, ast.Import) for alias in node.names}
        assert "penstock" not in names or file.name == "penstock.py"


@pytest.mark.parametrize("words", [
    ["fly"], ["--loaders", "tape"], ["--aims", "penstock>3"], ["--storage", "store=9ms"],
    ["--clips", "0"], ["--fetched", "5"], ["--fetched", "3000"], ["--epoch", "3000"],
    ["--epoch", "5"], ["--consumer", "-1"], ["--storage", "tape"], ["--videos", "nowhere"]])
def test_wrong_arguments(words, tmp_path, capsys):
    assert _cli.main(["clips", *words, "--out", str(tmp_path)]) == 1
    assert words[-1] == "nowhere" or "expected" in capsys.readouterr().err


def test_loaders_with_few_clips_are_absent_from_larger_tasks(tmp_path, monkeypatch):
    monkeypatch.setattr(sets.Set, "make", lambda _: None)
    made = sets.Set("", tmp_path, 8, 4)
    with pytest.raises(Absent, match="choose --fetched 8"):
        made.need("videos", False, 8)
    sets.Set("", tmp_path, 8, 8).need("videos", False, 8)  # as advised
    larger = sets.Set("", tmp_path, 8, 8)
    monkeypatch.setattr(larger, "make", lambda: None)
    larger.need("videos", False, 8)
    made.need("videos", False, 4)
    made.need("frames", True, 8)
    made.folder.mkdir(parents=True)
    files.write_list(made.folder, [("7", "a"), ("5", "b"), ("9", "a")])
    assert [path.name for path in made.paths("frames", 2)] == ["list.csv", "7", "5"]
    assert [path.name for path in made.paths("gulp", 2)] == ["list.csv", "gulp"]


def test_sets_of_other_videos_have_other_folders(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.mp4").write_bytes(b"x")
    folders = {sets.Set(source, tmp_path, 8, count).folder
               for source in ("", str(tmp_path / "a")) for count in (4, 8)}
    assert len(folders) == 4
    (tmp_path / "b").mkdir()
    with pytest.raises(LabError, match="no videos in"):
        sources.sources(str(tmp_path / "b"), tmp_path)


def test_groups_are_tasks_on_storages(tmp_path):
    chosen = Parameters(tasks=("size", "train"), storage=("warm", "seeks=1ms"), work=str(tmp_path),
                        loaders=("penstock", "jpeg"))
    groups = question.Clips(chosen, tmp_path).groups()
    assert [[tuple(one.values()) for one in group] for group in groups] == [
        [(task, name, storage) for name in ("penstock", "jpeg")]
        for task, storage in (("size", "local"), ("train", "warm"), ("train", "seeks=1ms"))]


# ---- real loaders


def run(tmp_path, *words):
    code = _cli.main(["clips", *words, "--clips", "6", "--fetched", "4", "--batch", "2",
                      "--workers", "1", "--rounds", "1", "--work", str(tmp_path / "work"), "--out",
                      str(tmp_path), "--name", "x"])
    assert code == 0
    return report.read(tmp_path / "clips" / "x")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="clips are cut by ffmpeg")
@pytest.mark.skipif(not workers.is_here(["torch", "PIL", "numpy"]), reason="needs torch")
def test_a_run_with_loaders_of_this_machine(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_LAB_HOME", str(tmp_path / "home"))
    try:
        with shapes.Seeks(1).apply([tmp_path], measure=False):
            storage = "seeks=1ms"
    except Absent:
        storage = "warm"
    lines = run(tmp_path, "size", "fetch", "train", "--loaders", "penstock,jpeg,decord",
                "--storage", storage, "--consumer", "1")
    text = capsys.readouterr().out
    assert "absent: not installed" in text and "stored for the first 4 clips only" in text
    found = {tuple(line["cell"].values()): line for line in lines if line["kind"] == "turn"}
    assert found["fetch", "penstock", storage]["samples"] == 4
    assert found["train", "jpeg", storage]["samples"] == 6
    assert found["size", "jpeg", "local"]["files"] == 6 * 37
    if storage != "warm":
        assert found["fetch", "jpeg", storage]["opens"] == 4 * turns.FRAMES + 1
        assert found["fetch", "penstock", storage]["seeks"] < 4 * turns.FRAMES
    off = {line["cell"]["loader"]: line["check"] for line in lines
           if line["kind"] == "prepared" and line["cell"]["task"] == "fetch"}
    assert off["penstock"]["mean"] < 0.5 and off["jpeg"]["max"] == 0
    assert len(verb.page(lines)) > 6
