# SPDX-License-Identifier: Apache-2.0
"""penstock-lab analyse and sizes: fidelity, estimates from samples, and small runs."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from py_tools import encoded, need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
from penstock.lab import LabError, _cli, program  # noqa: E402
from penstock.lab.experiment import report  # noqa: E402
from penstock.lab.images import estimate, fidelity, population, sampling, sizes  # noqa: E402
from penstock.lab.images.population import Item  # noqa: E402
from penstock.lab.images.sampling import Drawn  # noqa: E402


def picture(seed, width=64, height=48):
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos") / "photos"
    (root / "a").mkdir(parents=True)
    for i in range(30):
        data = encoded(picture(i, 40 + 3 * i + 300 * (i % 7 == 0), 60), "JPEG", quality=60 + i)
        (root / "a" / f"{i:02}.jpg").write_bytes(data)
    (root / "a" / "notes.txt").write_text("no image")
    return root


# ---- fidelity -----------------------------------------------------------------------------------

def test_psnr():
    a = np.zeros((4, 4, 3), np.uint8)
    assert fidelity.psnr(fidelity.mse(a, a)) == math.inf
    assert fidelity.psnr(fidelity.mse(a, a + 5)) == pytest.approx(10 * math.log10(255**2 / 25))
    with pytest.raises(LabError, match="expected one shape"):
        fidelity.mse(a, a[:3])


def slow_ssim(a, b):
    """The definition, window by window."""
    x, y = (np.asarray(p, float) @ np.array([0.299, 0.587, 0.114]) for p in (a, b))
    at = np.arange(11) - 5
    w = np.exp(-(at[:, None] ** 2 + at[None] ** 2) / (2 * 1.5**2))
    w /= w.sum()
    found = []
    for i in range(x.shape[0] - 10):
        for j in range(x.shape[1] - 10):
            p, q = x[i : i + 11, j : j + 11], y[i : i + 11, j : j + 11]
            mp, mq = (w * p).sum(), (w * q).sum()
            vp, vq = (w * (p - mp) ** 2).sum(), (w * (q - mq) ** 2).sum()
            cov = (w * (p - mp) * (q - mq)).sum()
            found.append((2 * mp * mq + 6.5025) * (2 * cov + 58.5225)
                         / ((mp**2 + mq**2 + 6.5025) * (vp + vq + 58.5225)))
    return np.mean(found)


def test_ssim():
    a = np.asarray(picture(1, 24, 19))
    b = np.clip(a + np.random.default_rng(2).normal(0, 12, a.shape), 0, 255).astype(np.uint8)
    assert fidelity.ssim(a, b) == pytest.approx(slow_ssim(a, b), abs=1e-9)
    assert fidelity.ssim(a, a) == pytest.approx(1)
    assert 0 < fidelity.ssim(a[:5], b[:5]) < 1
    gray = a[..., 0]
    assert fidelity.ssim(gray, gray) == pytest.approx(1)


def test_fidelity_grows_with_quality():
    import io

    whole = np.asarray(picture(3, 80, 60))
    found = []
    for quality in (10, 30, 50, 70, 90):
        data = io.BytesIO(encoded(Image.fromarray(whole), "JPEG", quality=quality))
        other = np.asarray(Image.open(data))
        found.append((fidelity.psnr(fidelity.mse(whole, other)), fidelity.ssim(whole, other)))
    assert found == sorted(found)


# ---- estimates ----------------------------------------------------------------------------------

def made_items(n):
    rng = random.Random(4)
    items = []
    for i in range(n):
        width, height = rng.randint(100, 900), rng.randint(100, 900)
        density, coarse = math.exp(rng.gauss(-0.7, 0.6)), math.exp(rng.gauss(2, 0.5))
        items.append(Item(str(i), int(width * height * density), width, height, coarse))
    return items


def made_sizes(items):
    rng = random.Random(5)
    return {item.key: 0.1 * item.bytes**0.8 * item.coarseness**0.4 * math.exp(rng.gauss(0, 0.2))
            for item in items}


@pytest.mark.parametrize("decoded, most", [(1000, 0.04), (500, 0.12)])
def test_estimates_are_near_and_their_intervals_hold(decoded, most):
    items = made_items(1000)
    stored = made_sizes(items)
    exact = sum(stored.values())
    held = 0
    for seed in range(60):
        part = sampling.evenly(items, decoded, seed)
        drawn = sampling.by_extent(part, 200, seed)
        values = [stored[one.item.key] for one in drawn]
        found = estimate.total(part, drawn, values, 0)
        found = estimate.expanded(found, part, drawn, values, items)
        assert abs(found.value / exact - 1) < most
        held += found.low <= exact <= found.high
    assert held >= 54


def test_large_images_are_drawn_with_a_higher_probability():
    items = [*made_items(300), Item("huge", 10**9, 30000, 30000, 5.0)]
    hits = dict.fromkeys((item.key for item in items), 0)
    for seed in range(300):
        drawn = sampling.by_extent(items, 50, seed)
        assert len({one.item.key for one in drawn}) == len(drawn) == 50
        for one in drawn:
            hits[one.item.key] += 1
    chances = sampling.chances([sampling.extent(item) for item in items], 50)
    assert sum(chances) == pytest.approx(50) and max(chances) == 1 and hits["huge"] == 300
    for item, chance in zip(items, chances):
        assert hits[item.key] / 300 == pytest.approx(chance, abs=0.12)
    assert len(sampling.evenly(items, 40, 1)) == 40 and sampling.evenly(items, 999, 1) == items


def test_small_and_complete_samples():
    items = made_items(50)
    found = [float(item.bytes) for item in items]
    everything = [Drawn(item, 1.0) for item in items]
    assert estimate.total(items, everything, found, 0) == (sum(found),) * 3
    few = sampling.by_extent(items, 5, 0)
    near = estimate.total(items, few, [3.0 * one.item.pixels for one in few], 0)
    assert near.value == pytest.approx(sum(3.0 * item.pixels for item in items))
    assert estimate.total(items, everything[:1], [1.0], 0).high == math.inf
    assert sampling.by_extent(items, 0, 0) == everything


def test_groups_are_estimated_apart():
    items = made_items(400)
    stored = {item.key: item.pixels * (3.0 if int(item.key) % 4 == 0 else 0.2) for item in items}
    drawn = sampling.by_extent(items, 80, 1)
    found = [stored[one.item.key] for one in drawn]
    near = estimate.in_groups(items, drawn, found, 0, lambda item: int(item.key) % 4 == 0)
    assert near.value == pytest.approx(sum(stored.values()), rel=1e-6)
    few = estimate.in_groups(items, drawn[:2], [1.0, 500.0], 0, lambda item: item.key == "399")
    assert few.low < few.value < few.high


def test_detail(tmp_path):
    """Noise has more of it than a smooth image; what cannot be decoded is left out."""
    noise = np.random.default_rng(1).integers(0, 256, (320, 400, 3), np.uint8)
    for name, one in (("noise", Image.fromarray(noise)), ("smooth", picture(1, 400, 320))):
        one.save(tmp_path / f"{name}.png")
        one.save(tmp_path / f"{name}.jpg", quality=95, exif=b"Exif" + bytes(2000))
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "noise.jpg").read_bytes()[:4000])
    source = population.open_source(str(tmp_path))
    found = {item.key: item for item in population.with_detail(source, source.items())}
    assert len(found) == 4 and 2000 < found["noise.jpg"].metadata < 2100
    for kind in ("png", "jpg"):
        low, high = (found[f"{name}.{kind}"].detail for name in ("smooth", "noise"))
        assert low[0] < low[1] and all(a < b for a, b in zip(low, high))


@pytest.mark.parametrize("encoding", ["mix90", "smart90", "raw", "jpeg50"])
def test_raw_images_are_known_in_advance(encoding, photos, tmp_path):
    program.output("pack", photos, "-o", tmp_path / "p.pen", "--on-bad", "skip",
                   *sizes.words(encoding, 0))
    items = {item.key: item for item in population.Folder(photos).items()}
    with penstock.open(tmp_path / "p.pen") as pack:
        for i in range(len(pack)):
            raw = pack.image(i, "image").codec == "raw"
            assert raw == sizes.is_raw(items[pack.key(i)], encoding, 0)


@pytest.mark.parametrize("size, side, expected", [
    ((500, 375), 256, (256, 192)), ((375, 500), 256, (192, 256)), ((100, 50), 256, (100, 50)),
    ((1000, 1), 10, (10, 1)), ((500, 333), 0, (500, 333))])
def test_resized_sizes_are_those_of_pack(size, side, expected, tmp_path):
    assert estimate.resized(Item("a", 1, *size, 1.0), side) == expected
    (tmp_path / "f").mkdir()
    picture(0, *size).save(tmp_path / "f" / "a.png")
    program.output("pack", tmp_path / "f", "-o", tmp_path / "p.pen", *sizes.words("raw", side))
    with penstock.open(tmp_path / "p.pen") as pack:
        image = pack.image(0, "image")
    assert (image.width, image.height) == expected


# ---- sizes --------------------------------------------------------------------------------------

def run_sizes(photos, out, *more):
    words = ["sizes", str(photos), "--out", str(out), "--name", "r", "--fidelity", "4", *more]
    assert _cli.main(words) == 0
    return report.read(out / "sizes" / "r")


def turns(lines):
    return {(line["cell"]["encoding"], line["cell"]["side"]): line for line in lines
            if line["kind"] == "turn"}


def test_a_run(photos, tmp_path, capsys):
    lines = run_sizes(photos, tmp_path, "--exact", "--encodings", "jpeg30,jpeg90,webp50,mix90,"
                      "smart90,raw", "--sides", "32,0")
    found = turns(lines)
    assert len(found) == 12
    for side in (32, 0):
        cells = {name: found[name, side] for name, at in found if at == side}
        assert cells["raw"]["psnr"] is None and cells["raw"]["ssim"] == pytest.approx(1)
        assert cells["jpeg30"]["bytes"] < cells["jpeg90"]["bytes"] < cells["raw"]["bytes"]
        assert cells["jpeg30"]["psnr"] < (cells["jpeg90"]["psnr"] or math.inf)
        assert cells["jpeg30"]["low"] == cells["jpeg30"]["high"] == cells["jpeg30"]["bytes"]
        assert cells["jpeg30"]["bytes"] < cells["mix90"]["bytes"] < cells["raw"]["bytes"]
        assert all(cell["samples"] == 30 for cell in cells.values())
    text = capsys.readouterr().out
    assert "raw, original" in text and "no loss" in text and "Sizes are exact." in text
    assert not (tmp_path / "sizes" / "r" / "packs").exists()
    pytest.importorskip("matplotlib")
    assert "jpeg, 32" in (tmp_path / "sizes" / "r" / "rate-distortion.svg").read_text()


def test_a_sample_and_a_pack(photos, tmp_path):
    pack = tmp_path / "photos.pen"
    program.output("pack", photos, "-o", pack, "--on-bad", "skip")
    for source, out in ((photos, tmp_path / "a"), (pack, tmp_path / "b")):
        more = ("--encodings", "jpeg50", "--sides", "0")
        exact = turns(run_sizes(source, out / "exact", "--exact", *more))["jpeg50", 0]
        near = turns(run_sizes(source, out / "near", "--sample", "24", *more))["jpeg50", 0]
        assert near["samples"] == 24 and near["low"] < near["bytes"] < near["high"]
        assert near["bytes"] == pytest.approx(exact["bytes"], rel=0.1)


def test_a_killed_run_continues(photos, tmp_path):
    words = [sys.executable, "-m", "penstock.lab", "sizes", photos, "--exact", "--encodings",
             "jpeg50,webp80,raw", "--sides", "32,0", "--fidelity", "2", "--out", tmp_path,
             "--name", "r"]
    path = tmp_path / "sizes" / "r" / "report.jsonl"
    child = subprocess.Popen(words, env=program.environment(), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    while child.poll() is None and (not path.exists() or path.read_text().count('"turn"') < 2):
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    before = [line for line in report.read(path.parent) if line["kind"] == "turn"]
    assert 2 <= len(before) < 6
    subprocess.run(words, env=program.environment(), check=True, capture_output=True)
    after = [line for line in report.read(path.parent) if line["kind"] == "turn"]
    assert len(after) == 6 and after[: len(before)] == before
    whole = turns(run_sizes(photos, tmp_path / "whole", "--exact", "--encodings",
                            "jpeg50,webp80,raw", "--sides", "32,0"))
    assert {key: one["bytes"] for key, one in turns(after).items()} == {
        key: one["bytes"] for key, one in whole.items()}


@pytest.mark.parametrize("words, expected", [
    (["sizes"], "expected a folder of images or a pack"),
    (["sizes", "PHOTOS", "--encodings", "jpeg0"], "found 'jpeg0'"),
    (["sizes", "PHOTOS", "--encodings", "avif50"], "found 'avif50'"),
    (["sizes", "PHOTOS", "--sides", "-1"], "sides of 0 or more"),
    (["sizes", "PHOTOS", "--sample", "-1"], "sample: expected at least 0"),
    (["sizes", "nowhere"], "expected a folder of images or a pack"),
    (["sizes", "EMPTY"], "expected images, found none"),
    (["analyse", "nowhere", "--out", "OUT"], "expected a folder of images or a pack"),
    (["analyse", "PHOTOS", "--out", "/dev/null/x"], "cannot write report '/dev/null/x/"),
])
def test_errors(words, expected, photos, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    places = {"PHOTOS": str(photos), "OUT": str(tmp_path / "out"), "EMPTY": str(tmp_path / "empty")}
    words = [places.get(word, word) for word in words]
    if words[0] == "sizes":
        words += ["--out", str(tmp_path)]
    assert _cli.main(words) == 1
    assert expected in capsys.readouterr().err


# ---- analyse ------------------------------------------------------------------------------------

def test_analyse(photos, tmp_path, capsys):
    pack = tmp_path / "photos.pen"
    program.output("pack", photos, "-o", pack, "--on-bad", "skip", "--order", "source")
    made = []
    for source, name in ((photos, "a"), (pack, "b")):
        assert _cli.main(["analyse", str(source), "--out", str(tmp_path / name)]) == 0
        summary = json.loads((tmp_path / name / "summary.json").read_text())
        assert summary["images"] == 30 and summary["pack"] == str(source)
        rows = (tmp_path / name / "images.csv").read_text().splitlines()
        made.append(sorted(rows))
    assert made[0] == made[1]
    assert "| quality" in capsys.readouterr().out
    assert "| green" in (tmp_path / "a" / "summary.md").read_text()
    quality = [int(row.split(",")[9]) for row in made[0] if row.startswith("a/")]
    assert sorted(quality) == list(range(60, 90))
    pytest.importorskip("matplotlib")
    assert (tmp_path / "a" / "quality.svg").read_text().startswith("<?xml")


def test_an_analysis_is_a_run(photos, tmp_path, capsys):
    assert _cli.main(["analyse", str(photos), "--out", str(tmp_path / "a"), "--threads", "1"]) == 0
    head, *lines = report.read(tmp_path / "a")
    assert head["parameters"] == {"rounds": 1, "source": str(photos), "threads": 1}
    assert head["inputs"][0]["samples"] == 31  # the notes, too
    (turn,) = [line for line in lines if line["kind"] == "turn"]
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert turn["summary"] == summary and turn["samples"] == 30
    assert _cli.main(["rerun", str(tmp_path / "a")]) == 0
    again = report.read(tmp_path / "a-2")
    assert again[0]["parameters"] == head["parameters"]
    (other,) = [line["summary"] for line in again if line["kind"] == "turn"]
    assert {**other, "seconds": 0} == {**summary, "seconds": 0}
    assert _cli.main(["report", str(tmp_path / "a"), "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.md").read_text()
    assert "30 images" in text and "| green" in text


def test_analyse_writes_parquet(photos, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    assert _cli.main(["analyse", str(photos), "--out", str(tmp_path)]) == 0
    table = pq.read_table(tmp_path / "images.parquet").to_pylist()
    assert len(table) == 30
    assert {row["quality"] for row in table} == set(range(60, 90))
    assert all(row["progressive"] is False and row["mean_0"] > 0 for row in table)
