# SPDX-License-Identifier: Apache-2.0
"""The examples, run as their first lines say. Skipped without torch; one needs lightning too."""

import ast
import importlib.util
import os
import pathlib
import re
import sys
import urllib.request

import pytest
import ray_tools
from elastic_tools import complaints, history, read_runs
from example_tools import EXAMPLES, ROOT, need, python, torchrun
from py_tools import need_penstock

penstock = need_penstock()
need("torch", "numpy", "PIL")
pytestmark = pytest.mark.slow  # each of them imports torch anew

N = 120
LINE = re.compile(
    r"Epoch \[(\d+)\]\[(\d+)/(\d+)\]  Time \d+\.\d{3} \(\d+\.\d{3}\)  "
    r"Data \d+\.\d{3} \(\d+\.\d{3}\)  Loss (\d+\.\d{4})  Prec@1 (\d+\.\d{2})"
)
FOUR_LINES = [(0, 10, 15), (0, 15, 15), (1, 10, 15), (1, 15, 15)]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with photos, and photos.pen made of them."""
    folder = tmp_path_factory.mktemp("work")
    python(ROOT / "examples" / "make_photos.py", "photos", str(N), cwd=folder)
    python("-m", "penstock", "pack", "photos", "-o", "photos.pen", cwd=folder)
    return folder


def lines(text):
    """[(epoch, batch, batches)] and [(loss, precision)] of the lines with figures."""
    found = [line for line in text.splitlines() if line.startswith("Epoch")]
    assert all(LINE.fullmatch(line) for line in found), text
    rows = [LINE.fullmatch(line).groups() for line in found]
    places = [(int(epoch), int(i), int(n)) for epoch, i, n, _, _ in rows]
    return places, [(float(loss), float(precision)) for *_, loss, precision in rows]


@pytest.fixture(scope="module")
def trained(work):
    """The figures of train.py, which leaves model.pt."""
    script = EXAMPLES / "train.py"
    places, figures = lines(
        python(script, "photos.pen", "--batch-size", "8", "--save", "model.pt", cwd=work)
    )
    assert places == FOUR_LINES
    return figures


def assert_same(figures, others):
    """As far as the order of sums allows."""
    assert len(figures) == len(others)
    for (loss, precision), (other_loss, other_precision) in zip(figures, others):
        assert abs(loss - other_loss) < 0.003 and abs(precision - other_precision) < 1.3


def test_train(trained):
    losses = [loss for loss, _ in trained]
    assert 0.7 < losses[-1] < losses[0] < 1.3


def test_train_clips(work):
    """Which way the ball goes is in no single frame."""
    python(ROOT / "examples" / "make_clips.py", "clips.pen", "200", cwd=work)
    out = python(EXAMPLES / "train_clips.py", "clips.pen", "--batch-size", "8", "--epochs", "4",
                 cwd=work)
    places, figures = lines(out)
    assert places == [(epoch, i, 20) for epoch in range(4) for i in (10, 20)]
    assert figures[-1][0] < figures[0][0]
    found = re.findall(r"Evaluation  Prec@1 (\d+\.\d\d)  \((\d+) of 40\)", out)
    assert len(found) == 4 and float(found[-1][0]) > 60, out


def test_train_s3(s3, work):
    """Stopped in an epoch, and gone on with by a state that lies in no file of ours."""
    script = EXAMPLES / "train_s3.py"
    env = s3().environment()
    python("-m", "penstock", "pack", "photos", "-o", "s3://packs/photos.pen", cwd=work, **env)
    args = [script, "s3://packs/photos.pen", "--batch-size", "8", "--save", "s3.pt"]
    lines(python(*args, "--epochs", "1", cwd=work, **env))
    places, figures = lines(python(*args, cwd=work, **env))
    assert places == FOUR_LINES[2:] and 0.7 < figures[-1][0] < 1.3


def test_train_dataloader(work):
    script = EXAMPLES / "train_dataloader.py"
    places, figures = lines(python(script, "photos", "--batch-size", "8", cwd=work))
    assert places == FOUR_LINES and 0.7 < figures[-1][0] < 1.3


def test_only_the_loader_differs():
    """The loop, word for word, is that of the script with DataLoader."""
    functions = [
        {
            node.name: ast.dump(node)
            for node in ast.parse((EXAMPLES / name).read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        for name in ("train.py", "train_dataloader.py")
    ]
    assert functions[0]["train_epoch"] == functions[1]["train_epoch"]
    assert functions[0]["make_loader"] != functions[1]["make_loader"]


def test_train_ddp(work, trained):
    """Two ranks with half the batch each make the same steps as one."""
    out = torchrun(2, EXAMPLES / "train_ddp.py", "photos.pen", "--batch-size", "4", cwd=work)
    places, figures = lines(out)
    assert places == FOUR_LINES
    assert_same(figures, trained)


def test_resume(work):
    """Interrupted in the middle of an epoch, gone on with on two ranks."""
    args = [EXAMPLES / "resume.py", "photos.pen", "--batch-size", "8", "--save-every", "5"]
    places, _ = lines(python(*args, "--stop-after", "12", cwd=work))
    assert places == [(0, 10, 15)]
    out = torchrun(2, *args, cwd=work)
    assert "Resumed at epoch 0, sample 80 of 120" in out
    assert lines(out)[0] == FOUR_LINES[1:]


def test_train_elastic(work):
    """Started again after the end, it has nothing left to do."""
    args = [EXAMPLES / "train_elastic.py", "photos.pen", "--batch-size", "8"]
    out = torchrun(2, *args, cwd=work)
    assert out.startswith("2 ranks, epoch 0, sample 0\n") and lines(out)[0] == FOUR_LINES
    assert torchrun(1, *args, cwd=work) == "1 ranks, epoch 1, sample 120\n"


@pytest.mark.skipif(
    not importlib.util.find_spec("accelerate"), reason="accelerate is not installed"
)
def test_train_accelerate(work):
    args = [EXAMPLES / "train_accelerate.py", "photos.pen", "--batch-size", "8"]
    places, figures = lines(torchrun(1, *args, cwd=work))
    assert places == FOUR_LINES and 0.7 < figures[-1][0] < 1.3


@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="jax is not installed")
def test_train_jax(work):
    """On two devices, as on one."""
    args = [EXAMPLES / "train_jax.py", "photos.pen", "--batch-size", "8"]
    found = []
    for n in (1, 2):
        out = python(*args, cwd=work, JAX_PLATFORMS="cpu",
                     XLA_FLAGS=f"--xla_force_host_platform_device_count={n}")
        assert f"Trained on {n} devices: cpu:0" in out
        places, figures = lines(out)
        assert places == FOUR_LINES and figures[-1][0] < figures[0][0]
        found.append(figures)
    assert_same(*found)


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="ray is not installed")
def test_train_ray(work, tmp_path):
    """Every epoch has every sample once. long_elastic.py also kills workers."""
    args = [EXAMPLES / "train_ray.py", "photos.pen", "--batch-size", "8", "--workers", "1", "2"]
    log = tmp_path / "log"
    log.mkdir()
    python(*args, "--storage", tmp_path, "--sample-log", log, cwd=work, seconds=300,
           **ray_tools.SETTINGS)
    assert complaints(history(read_runs(log)), N, 2) == []


def pythonpath(first):
    return os.pathsep.join([str(first), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_numpy_only(work, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch here')\n")
    script = EXAMPLES / "numpy_only.py"
    out = python(script, "photos.pen", "--batch-size", "8", cwd=work,
                 PYTHONPATH=pythonpath(tmp_path))
    places, figures = lines(out)
    assert places == FOUR_LINES and figures[-1][0] < figures[0][0]


@pytest.mark.skipif(
    not importlib.util.find_spec("lightning"), reason="lightning is not installed"
)
def test_lightning_module(work, trained):
    """Interrupted and gone on with, it learns what train.py learns."""
    args = [EXAMPLES / "lightning_module.py", "photos.pen", "--batch-size", "8"]
    assert lines(python(*args, "--max-steps", "8", cwd=work)) == ([], [])
    out = python(*args, "--resume", "checkpoints/last.ckpt", cwd=work)
    places, figures = lines(out)
    assert places == FOUR_LINES
    assert_same(figures[2:], trained[2:])


def test_evaluate(work, trained):
    """The last batches are not full: exactly 120 count on one, two and three ranks."""
    args = [EXAMPLES / "evaluate.py", "photos.pen", "--batch-size", "32", "--model", "model.pt"]
    out = python(*args, cwd=work)
    found = re.fullmatch(r"Loss \d\.\d{4}  Prec@1 (\d+\.\d\d)  \((\d+) of 120\)\n", out)
    assert found and float(found[1]) == round(100 * int(found[2]) / N, 2), out
    for ranks in (2, 3):
        assert torchrun(ranks, *args, cwd=work, seconds=400) == out


def test_show_augmentations(work):
    """Nearly all operations, at each strength, give another picture."""
    np, image = pytest.importorskip("numpy"), pytest.importorskip("PIL.Image")
    script = EXAMPLES / "show_augmentations.py"
    out = python(script, "-", "sheet.png", cwd=work)
    found = re.fullmatch(r"(\d+) operations in sheet\.png\n", out)
    sheet = np.asarray(image.open(work / "sheet.png"))
    tiles = {sheet[y : y + 80, x : x + 80].tobytes()
             for y in range(20, len(sheet), 108) for x0 in range(8, sheet.shape[1], 264)
             for x in range(x0, x0 + 252, 84)}
    assert len(tiles) > 2.7 * int(found[1]), out



def test_export_metrics(work):
    """It serves what loader.metrics() returns."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        serve = importlib.import_module("export_metrics").serve
    finally:
        sys.path.remove(str(EXAMPLES))
    with penstock.Loader(work / "photos.pen", 8, output="numpy") as loader:
        next(iter(loader))
        server = serve(loader, 0)
        address = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            text = answer.read().decode()
        server.shutdown()
    assert "penstock_batches_total" in text and text.endswith("# EOF\n")
    out = python(EXAMPLES / "export_metrics.py", "photos.pen", "--port", "0", cwd=work)
    assert out.startswith("240 samples; metrics were on port ")


def test_every_example_is_here():
    """And tells in its first lines how it is run."""
    here = pathlib.Path(__file__)
    text = here.read_text() + here.with_name("test_py_recipes.py").read_text()
    tested = set(re.findall(r'EXAMPLES / "(\w+\.py)"', text))
    scripts = {path.name for path in EXAMPLES.glob("*.py")} - {"common.py"}
    assert scripts == tested
    for name in scripts:
        doc = ast.get_docstring(ast.parse((EXAMPLES / name).read_text()))
        how = rf"    (python3|torchrun .*) examples/python/{name} (s3://packs/)?(photos|clips|shapes)"
        assert re.search(how, doc), name
