# SPDX-License-Identifier: Apache-2.0
"""penstock-lab train: models, schedules, the loop, and resuming."""

import dataclasses
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time

import penstock
import pytest
from penstock.lab import _cli
from penstock.lab.errors import LabError
from penstock.lab.experiment import report
from penstock.lab.training.schedule import Schedule
from penstock.lab.training.settings import Training

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

from penstock.lab.training import checkpoint, loop, models  # noqa: E402
from penstock.lab.training.meters import correct  # noqa: E402

CLASSES = [f"class{i}" for i in range(7)]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of PyTorch wait for each other for long on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_pack(path, seed, n):
    import io

    draw = numpy.random.default_rng(seed)
    with penstock.Writer(path, {"image": "image", "label": "i64"}, classes=CLASSES) as writer:
        for i in range(n):
            label = i % len(CLASSES)
            pixels = draw.integers(0, 60, (12, 14, 3)) + 25 * label
            pixels[:, :7, 0] //= 2  # not the same when flipped
            file = io.BytesIO()
            Image.fromarray(pixels.astype("u1")).save(file, "png")
            writer.add(image=file.getvalue(), label=label)
    return str(path)


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    counts = {"train": 72, "more": 70, "val": 39, "v2": 21}
    return [make_pack(folder / f"{name}.pen", seed, n)
            for seed, (name, n) in enumerate(counts.items())]


@pytest.fixture
def base(packs):
    return {"train": packs[0], "val": packs[2], "epochs": 2, "size": 8, "batch_size": 16,
            "augment": "none", "device": "cpu", "print_every": 2, "lr": 0.05}


def curve(history):
    """What a training has learned, without times."""
    return [(each["epoch"], *(each[part][name] for part in ("train", "val")
             for name in ("samples", "loss", "top1", "top5"))) for each in history]


def test_models():
    for name, n in (("resnet18", 11_689_512), ("resnet50", 25_557_032)):
        model = models.make(name, 1000, 3)
        assert sum(each.numel() for each in model.parameters()) == n
    small = models.make("small", 10, 1)
    assert small(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert models.make("resnet18", 5, 1)(torch.zeros(2, 1, 40, 40)).shape == (2, 5)


def test_schedules():
    def rates(kind, **more):
        given = {"lr": 1.0, "end_lr": 0.1, "epochs": 10, "warmup": 2, "every": 4, "gamma": 0.5}
        schedule = Schedule(kind=kind, **{**given, **more})
        return [schedule.rate(epoch) for epoch in (0, 1, 2, 6, 10)]

    assert rates("constant") == pytest.approx([0, 0.5, 1, 1, 1])
    assert rates("linear") == pytest.approx([0, 0.5, 1, 0.55, 0.1])
    assert rates("cosine") == pytest.approx([0, 0.5, 1, 0.55, 0.1])
    assert rates("cosine", warmup=0)[1] == pytest.approx(0.1 + 0.45 * (1 + math.cos(math.pi / 10)))
    assert rates("step") == pytest.approx([0, 0.5, 1, 0.5, 0.25])


def test_top5():
    scores = torch.arange(8.0).repeat(4, 1)
    assert correct(scores, torch.tensor([7, 3, 2, 0])) == (1, 2)
    assert correct(scores[:, :3], torch.tensor([2, 1, 0, 0])) == (1, 4)


class Watched:
    """One training, and everything that its parameters can change."""

    def __init__(self, folder, values, monkeypatch):
        self.lines, self.saves = [], 0
        monkeypatch.setattr(checkpoint, "save", self.save)
        trainer = loop.Trainer(Training(**values), folder, self.lines.append)
        self.result = trainer.run()
        self.model, self.threads = trainer.model, trainer.val.stats()["threads"]
        trainer.close()

    def save(self, folder, state):
        self.saves += 1

    def seen(self):
        weight = self.model[0].weight
        places = [line.split("  ")[0] for line in self.lines]
        return (curve(self.result["epochs"]), places, self.saves, self.threads,
                weight.is_contiguous(memory_format=torch.channels_last))


# Each parameter with another value, and what it needs to have an effect.
OTHER = {
    "train": ("more", {}), "val": ("v2", {}), "stages": ("train,more", {"train": ""}),
    "epochs": (3, {}), "model": ("resnet18", {"epochs": 1}), "batch_size": (8, {}),
    "size": (10, {}), "val_resize": (12, {}), "gray": (True, {}), "augment": ("flip", {}),
    "mean": ((0.4,), {}), "std": ((0.2,), {}), "optimizer": ("adamw", {}), "lr": (0.06, {}),
    "end_lr": (0.01, {}), "momentum": (0.8, {}), "nesterov": (True, {}),
    "weight_decay": (0.01, {}), "schedule": ("linear", {}), "warmup": (0.5, {}),
    "step_epochs": (1.0, {"schedule": "step"}), "gamma": (0.5, {"schedule": "step",
                                                                 "step_epochs": 1.0}),
    "label_smoothing": (0.1, {}), "mixup": (0.4, {}), "cutmix": (1.0, {}), "amp": (True, {}),
    "channels_last": (True, {}), "threads": (1, {}), "seed": (1, {}), "print_every": (1, {}),
    "checkpoint_every": (2, {}),
}
ELSEWHERE = {"rounds", "device"}  # see test_command and test_refused


def test_every_parameter_has_an_effect(base, packs, tmp_path, monkeypatch):
    assert {*OTHER, *ELSEWHERE} == {field.name for field in dataclasses.fields(Training)}
    names = {"more": packs[1], "v2": packs[3], "train,more": f"1:{packs[0]},1:{packs[1]}"}
    before, threads = {}, {"threads": 2}
    for i, (name, (value, needs)) in enumerate(OTHER.items()):
        value = names.get(value, value)
        usual = {**base, **threads, **{k: v for k, v in needs.items() if k != "train"}}
        key = json.dumps(needs)
        if key not in before:
            before[key] = Watched(tmp_path / f"a{i}", usual, monkeypatch).seen()
        after = Watched(tmp_path / f"b{i}", {**usual, **needs, name: value}, monkeypatch).seen()
        assert after != before[key], name


def test_soft_targets_are_smoothed_once(base, tmp_path, monkeypatch):
    """With mixup, the pipeline smooths. A network that answers the same for all classes has the
    same loss for any targets that add up to 1."""
    for more in ({}, {"mixup": 0.2}, {"mixup": 0.2, "cutmix": 1.0}):
        trainer = loop.Trainer(Training(**{**base, **more, "label_smoothing": 0.3}),
                               tmp_path / str(len(more)), str)
        image, label = next(iter(trainer.loader))
        if more:
            assert label.min() >= 0.3 / 7 - 1e-6 and torch.allclose(label.sum(1), torch.ones(16))
        trainer.model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 7))
        torch.nn.init.zeros_(trainer.model[1].weight)
        torch.nn.init.zeros_(trainer.model[1].bias)
        trainer._step(image, label, 0.0)
        assert trainer.meter.result()["loss"] == pytest.approx(math.log(7), rel=1e-5)
        trainer.close()


def test_validation_counts_each_sample_once(base, tmp_path, packs):
    trainer = loop.Trainer(Training(**{**base, "amp": True}), tmp_path, str)
    found = trainer.validate(trainer.val)
    assert found == {**trainer.validate(trainer.val), **{k: found[k] for k in found
                     if "second" in k or k == "data_share"}}
    trainer.model.eval()
    want = 0
    for image, label, info in trainer.val:
        with torch.no_grad(), trainer._autocast():
            best = trainer.model(image).argmax(1)
        want += int((best == label)[info.valid].sum())
    assert found["samples"] == 39 and found["top1"] == pytest.approx(100 * want / 39)
    trainer.close()


@pytest.mark.parametrize("stop", [3, 9, 12])  # in an epoch, at its end, in the second stage
def test_stopped_and_resumed(base, packs, tmp_path, monkeypatch, stop):
    values = {**base, "train": "", "stages": f"1:{packs[0]},2:{packs[1]}", "augment": "crop",
              "mixup": 0.3, "checkpoint_every": 1, "batch_size": 8, "amp": True}
    whole = loop.Trainer(Training(**values), tmp_path / "whole", str)
    want = whole.run()
    whole.close()

    first = loop.Trainer(Training(**values), tmp_path / "cut", str)
    steps, step = itertools.count(), first._step
    monkeypatch.setattr(first, "_step", lambda *args: step(*args) if next(steps) < stop
                        else os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        first.run()
        time.sleep(1)
    first.close()
    again = loop.Trainer(Training(**values), tmp_path / "cut", str)
    found = again.run()
    again.close()
    assert found["resumed"] and not want["resumed"]
    assert curve(found["epochs"]) == curve(want["epochs"])
    for a, b in zip(again.model.state_dict().values(), whole.model.state_dict().values()):
        assert torch.equal(a, b)


def flags(values):
    words = []
    for name, value in values.items():
        words += [value] if name == "train" else ["--" + name.replace("_", "-"), str(value)]
    return words


def test_command(base, tmp_path, capsys):
    words = ["train", *flags(base), "--rounds", "2", "--out", str(tmp_path), "--name", "a"]
    assert _cli.main(words) == 0
    said = capsys.readouterr().out
    assert "Epoch [0][2/4]  Time " in said and "Data " in said and "(39 samples)" in said
    assert "| small |" in said and "±" in said
    head, *lines = report.read(tmp_path / "train" / "a")
    assert head["parameters"]["gamma"] == 0.1 and head["inputs"][1]["samples"] == 39
    turns = [line for line in lines if line["kind"] == "turn"]
    assert [turn["seed"] for turn in turns] == [0, 1] and turns[0]["samples"] == 128
    assert turns[0]["seconds"] >= turns[0]["data_seconds"] > 0
    assert curve(turns[0]["epochs"]) != curve(turns[1]["epochs"])


def test_killed_and_resumed(base, tmp_path, capsys):
    """kill -9 in the middle of an epoch; the same command continues, with the same result."""
    words = ["train", *flags({**base, "epochs": 20, "checkpoint_every": 1}), "--out", str(tmp_path),
             "--name", "cut"]
    path = os.pathsep.join(sys.path)
    child = subprocess.Popen([sys.executable, "-m", "penstock.lab", *words],
                             env={**os.environ, "PYTHONPATH": path,
                                  "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE)
    for _ in range(7):
        child.stdout.readline()
    child.kill()
    child.communicate()
    folder = tmp_path / "train"
    assert len(report.read(folder / "cut")) < 4
    assert _cli.main(words) == 0
    words[-1] = "whole"
    assert _cli.main(words) == 0
    turns = [[line for line in report.read(folder / name) if line["kind"] == "turn"]
             for name in ("cut", "whole")]
    assert [len(found) for found in turns] == [1, 1]
    assert turns[0][0]["resumed"] and not turns[1][0]["resumed"]
    assert curve(turns[0][0]["epochs"]) == curve(turns[1][0]["epochs"])


def test_refused(base, packs, tmp_path):
    for change, text in (
        ({"val": ""}, "expected TRAIN or --stages, and --val"),
        ({"stages": "1:a.pen"}, "expected TRAIN or --stages"),
        ({"train": "", "stages": "1:a,b"}, "stages: expected EPOCHS:PACK,EPOCHS:PACK, found 'b'"),
        ({"train": "", "stages": "0:a"}, "stages: expected"),
        ({"epochs": 0}, "epochs: expected more than 0"),
        ({"warmup": -1.0}, "warmup: expected 0 or more"),
        ({"schedule": "none"}, "schedule: expected one of constant, cosine"),
        ({"nesterov": True, "optimizer": "adamw"}, "nesterov: expected optimizer sgd"),
        ({"mean": (0.1, 0.2)}, "mean: expected 1 or 3 numbers, found 2"),
        ({"mixup": 0.1, "batch_size": 7}, "batch_size: expected an even number"),
        ({"batch_size": 300}, "fewer than a batch of 300"),
    ):
        with pytest.raises(LabError) as error:
            loop.Trainer(Training(**{**base, **change}), tmp_path, str)
        assert text in str(error.value)
    if not torch.cuda.is_available():
        with pytest.raises(LabError, match="finds no CUDA device; use --device cpu"):
            loop.Trainer(Training(**{**base, "device": "cuda"}), tmp_path, str)


def test_refused_packs_and_checkpoints(base, packs, tmp_path):
    penstock.write(tmp_path / "none.pen", [{"x": 1}], {"x": "i64"})
    penstock.write(tmp_path / "two.pen", [{"label": 1}], {"label": "i64"}, classes=["a", "b"])
    for name, text in (("none", "has no field 'label'"), ("two", "different classes")):
        with pytest.raises(LabError, match=text):
            loop.Trainer(Training(**{**base, "val": str(tmp_path / f"{name}.pen")}), tmp_path, str)
    trainer = loop.Trainer(Training(**{**base, "epochs": 1}), tmp_path / "run", str)
    trainer.run()
    trainer.close()
    with pytest.raises(LabError, match="is of another training"):
        loop.Trainer(Training(**base), tmp_path / "run", str)
    (tmp_path / "run" / checkpoint.NAME).write_bytes(b"PK nothing")
    with pytest.raises(LabError, match="cannot read checkpoint"):
        loop.Trainer(Training(**{**base, "epochs": 1}), tmp_path / "run", str)


def test_what_cannot_be_trained_leaves_no_run(packs, base, tmp_path, capsys):
    words = ["train", "--val", base["val"], "--out", str(tmp_path), "--name", "x"]
    for more, says in (((base["train"], "--batch-size", "300"), "fewer than a batch of 300"),
                       ((str(tmp_path),), "expected a pack. Make one: penstock pack")):
        assert _cli.main([*words, *more]) == 1
        assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert _cli.main(["accuracy"]) == 1
    assert "penstock-lab accuracy photos/train --val" in capsys.readouterr().err
