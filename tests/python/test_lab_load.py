# SPDX-License-Identifier: Apache-2.0
"""penstock-lab load with real loaders and generated images: what is measured and reported."""

import json
import os
import pathlib

import numpy as np
import pytest

PIL = pytest.importorskip("PIL.Image")

from penstock.lab import _cli, shapes  # noqa: E402
from penstock.lab.experiment import report  # noqa: E402
from penstock.lab.loaders import environments, observe, question, scenario, workers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTALLED = os.environ.get("PENSTOCK_LAB_HOME", str(ROOT / "build" / "peers"))
SIZES = ((120, 90), (90, 120), (128, 96), (100, 100))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """24 smooth pictures in two folders."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(3)
    for number in range(24):
        small = rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)
        picture = PIL.fromarray(small).resize(SIZES[number % 4], PIL.Resampling.BICUBIC)
        place = folder / "ab"[number % 2]
        place.mkdir(exist_ok=True)
        picture.save(place / f"{number:02}.jpg", quality=90)
    return folder


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """No environment is installed in it. Without torch, which takes seconds to be imported."""
    without = tmp_path_factory.mktemp("without")
    (without / "torch.py").write_text("raise ImportError\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_LAB_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("PYTHONPATH", str(without))
        yield


def load(photos, out, *words):
    """The lines of a report."""
    done = _cli.main(["load", str(photos), "--out", str(out), "--name", "x", "--size", "32",
                      "--short", "36", "--batch", "8", "--rounds", "2", "--seconds", "0", *words])
    assert done == 0
    return report.read(out / "load" / "x")


def of(lines, kind, loader):
    return [line for line in lines if line["kind"] == kind and line["cell"]["loader"] == loader]


def test_two_loaders_take_turns_and_are_checked(photos, tmp_path, capsys):
    lines = load(photos, tmp_path, "--loaders", "penstock,synthetic,dali", "--consumer", "1")
    turns = [line for line in lines if line["kind"] == "turn"]
    assert [line["cell"]["loader"] for line in turns] == ["penstock", "synthetic"] * 2
    for turn in turns:
        assert turn["samples"] == 24 and turn["batches"] == 3
        assert (turn["missing"], turn["again"], turn["strange"]) == (0, 0, 0)
        assert 0 <= turn["idle"] <= 1 and turn["seconds"] > 0.003
    (prepared,) = of(lines, "prepared", "penstock")
    assert prepared["check"]["images"] == 4 and prepared["check"]["mean"] <= 0.05
    assert of(lines, "first", "penstock")[0]["memory_mb"] > 0
    assert "not installed; run penstock-lab setup dali" in of(lines, "absent", "dali")[0]["reason"]
    assert turns[0]["bottleneck"] and "bottleneck_by" not in turns[0]
    assert turns[1]["bottleneck_by"] == "/proc"
    out = capsys.readouterr().out
    assert "| penstock |" in out and "| dali | absent: not installed" in out


def test_a_loader_of_this_environment_needs_no_other_one(photos, tmp_path, monkeypatch):
    if not workers.is_here(["torch"]):
        pytest.skip("needs torch")
    monkeypatch.delenv("PYTHONPATH")
    lines = load(photos, tmp_path, "--loaders", "dataloader-pil", "--threads", "1", "--rounds", "1")
    (turn,) = of(lines, "turn", "dataloader-pil")
    assert turn["samples"] == 24 and turn["missing"] == 0
    assert of(lines, "prepared", "dataloader-pil")[0]["check"]["max"] <= 2


def test_formats_and_a_cold_page_cache(photos, tmp_path):
    lines = load(photos, tmp_path, "--loaders", "penstock", "--formats", "jpeg50,raw", "--sides",
                 "64", "--storage", "cold", "--rounds", "1")
    stored = {line["cell"]["format"]: line["stored_mb"] for line in lines
              if line["kind"] == "prepared"}
    assert 0 < stored["jpeg50"] < stored["raw"]
    assert all(line["passes"] == 1 for line in lines if line["kind"] == "turn")


def test_a_pack_is_read_as_it_is(photos, tmp_path):
    from penstock.lab import program

    pack = tmp_path / "photos.pen"
    program.output("pack", photos, "-o", pack)
    lines = load(pack, tmp_path, "--loaders", "penstock,synthetic", "--rounds", "1")
    assert lines[0]["inputs"][0]["samples"] == 24
    (turn,) = of(lines, "turn", "penstock")
    assert turn["samples"] == 24 and turn["missing"] == turn["strange"] == 0
    assert of(lines, "prepared", "penstock")[0]["check"]["mean"] <= 0.05


@pytest.mark.parametrize(("words", "says"), [
    ([], "expected a folder of images or a pack, found none"),
    (["nowhere"], "there is no such pack, folder or file"),
    (["EMPTY"], "no images in"),
    (["EMPTY", "--storage", "store=9ms+cold"], "expected a store alone, found 'store=9ms+cold'"),
    (["EMPTY", "--scenario", "none"], "no scenario 'none'; expected one of"),
    (["EMPTY", "--scenario", "train", "--config", "x"], "expected --scenario or --config"),
])
def test_what_cannot_be_loaded_is_answered(words, says, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    words = [str(tmp_path / "empty") if word == "EMPTY" else word for word in words]
    assert _cli.main(["load", *words, "--out", str(tmp_path)]) == 1
    assert says in capsys.readouterr().err


def test_an_unknown_environment_is_answered(capsys):
    assert _cli.main(["setup", "nobody"]) == 1
    assert "no environment 'nobody'; expected one of dataloader," in capsys.readouterr().err


def test_loaders_are_listed(capsys):
    assert _cli.main(["loaders"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in [*scenario.loaders(), *scenario.names()])


def test_a_failed_environment_is_absent_with_its_reason(monkeypatch):
    spec = {"steps": [["--no-index", "penstock-lab-nothing==1.0"]], "imports": []}
    monkeypatch.setattr(environments, "specs", lambda: {"nothing": spec})

    def broken(folder, spec, log):
        raise environments.Absent("No matching distribution")

    monkeypatch.setattr(environments, "build_environment", broken)
    assert environments.setup("nothing") == "No matching distribution"
    monkeypatch.setattr(environments, "build_environment", lambda *_: pytest.fail("tried again"))
    assert environments.setup("nothing") == "No matching distribution"
    with pytest.raises(environments.Absent, match="No matching distribution"):
        environments.python_of("nothing")


def test_a_worker_that_dies_is_absent(tmp_path):
    spec = {**scenario.loaders()["synthetic"], "module": "nothing_of_that_name"}
    worker = workers.Worker("x", spec, workers.python_for(spec), tmp_path / "log")
    try:
        with pytest.raises(environments.Absent, match="its process ended with exit code 1"):
            worker.prepare({})
    finally:
        worker.stop()
    assert "nothing_of_that_name" in (tmp_path / "log").read_text()


def test_how_a_process_ended():
    assert workers.how_it_ended(3) == "its process ended with exit code 3"
    assert workers.how_it_ended(-9).endswith("by SIGKILL: Linux does this when memory is short")
    assert workers.how_it_ended(-11) == "its process was ended by SIGSEGV"


def test_what_proc_shows_names_the_bottleneck():
    turn = {"seconds": 2.0, "cpu": 0.2, "idle": 1.0, "consumer_ms": 0}
    assert observe.limited_by({**turn, "cpu": 1.9}, 1, 0.0, 0.9) == "CPU"
    assert observe.limited_by(turn, 1, 0.9, 0.0) == "CPU"
    assert observe.limited_by(turn, 1, 0.0, 0.9) == "disk"
    assert observe.limited_by(turn, 1, 0.0, 0.0) == "waiting"
    assert observe.limited_by({**turn, "consumer_ms": 5, "idle": 0.01, "waits": [0.0]}, 1,
                              0.0, 0.9) == "consumer"


def test_a_loader_that_uses_one_of_its_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4))
    turn = {"seconds": 2.0, "cpu": 2.0, "idle": 1.0}
    assert observe.limited_by(turn, 2, 0.0, 0.0) == "one core"


def test_energy_is_absent_or_grows(monkeypatch, tmp_path):
    monkeypatch.setattr(observe, "RAPL", tmp_path)
    assert observe.energy_joules() is None
    for zone, value in (("intel-rapl:0", "2500000"), ("intel-rapl:1", "500000")):
        (tmp_path / zone).mkdir()
        (tmp_path / zone / "energy_uj").write_text(value + "\n")
    assert observe.energy_joules() == 3.0
    with observe.Watch(os.getpid()) as watch:
        (tmp_path / "intel-rapl:0" / "energy_uj").write_text("4500000\n")
    assert watch.joules == 2.0 and watch.read >= 0


def test_the_worker_needs_no_penstock():
    """In the environments of other loaders there is none."""
    folder = pathlib.Path(environments.WORKER)
    for file in [folder / "serve.py", folder / "answers.py", folder / "processes.py",
                 *(folder / "sides").glob("*.py")]:
        own = file.name.startswith("penstock") or file.name == "decoders.py"
        text = file.read_text(encoding="utf-8")
        assert own or "import penstock" not in text and "from penstock" not in text, file


def test_the_report_is_json(photos, tmp_path):
    load(photos, tmp_path, "--loaders", "synthetic", "--rounds", "1")
    text = (tmp_path / "load" / "x" / "report.jsonl").read_text()
    assert all(json.loads(line)["kind"] for line in text.splitlines())


# --- from a simulated object store


def test_penstock_reads_every_epoch_from_the_store(photos, tmp_path):
    lines = load(photos, tmp_path, "--loaders", "penstock,jpeg-whole", "--storage", "store=40ms",
                 "--rounds", "1")
    for turn in of(lines, "turn", "penstock"):
        assert (turn["samples"], turn["missing"], turn["again"]) == (24, 0, 0)
        assert turn["seconds"] > 0.08  # opens the pack, and does not have its blocks in memory
    assert of(lines, "prepared", "penstock")[0]["check"]["mean"] <= 0.05
    assert "reads local files" in of(lines, "absent", "jpeg-whole")[0]["reason"]


def test_boto3_needs_a_store(photos, tmp_path):
    lines = load(photos, tmp_path, "--loaders", "dataloader-boto3", "--rounds", "1")
    assert "reads from an object store" in of(lines, "absent", "dataloader-boto3")[0]["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dataloader-boto3-16", "webdataset", "mosaic", "litdata"])
def test_other_loaders_read_from_the_store(photos, tmp_path, monkeypatch, name):
    """In the environment of this test, or in one that `penstock-lab setup` has made for ./dev."""
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setenv("PENSTOCK_LAB_HOME", INSTALLED)
    try:
        workers.python_for(scenario.loaders()[name])
    except environments.Absent as why:
        pytest.skip(str(why))
    lines = load(photos, tmp_path, "--loaders", name, "--storage", "store=40ms", "--work",
                 str(tmp_path / "work"))
    for turn in of(lines, "turn", name):
        assert (turn["samples"], turn["missing"], turn["again"]) == (24, 0, 0)
        assert turn["seconds"] > 0.04
    (prepared,) = of(lines, "prepared", name)
    assert prepared["check"]["max"] <= 2
    assert bool(prepared["notes"]) == (name in ("mosaic", "litdata"))
    assert not list(tmp_path.glob("work/sets/*/cache-*"))


def test_a_store_has_an_address_for_each_file(tmp_path):
    place = shapes.StorePlace(tmp_path, 9, [])
    files = [str(tmp_path / "a" / "1.jpg"), str(tmp_path / "b" / "2.jpg")]
    task = question.moved({"pack": ""}, place, files, "", tmp_path)
    assert task == {"addresses": ["s3://lab/a/1.jpg", "s3://lab/b/2.jpg"], "pack": ""}
