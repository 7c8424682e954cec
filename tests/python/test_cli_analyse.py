# SPDX-License-Identifier: Apache-2.0
"""`penstock info --analyse`: what it finds in images whose properties are known."""

import csv
import io
import shutil
import subprocess

import pytest
from cli_tools import good, run, usage_error
from py_tools import encoded, need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")


def picture(seed=0, width=32, height=24, channels=3):
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (height, width, channels), np.uint8).squeeze())


def write(path, files, **settings):
    """A pack of these files, {key: bytes}."""
    with penstock.Writer(path, {"image": "image"}, **settings) as writer:
        for key, data in files.items():
            writer.add(key, image=data)
    return path


def analyse(pack, folder, *options):
    """The summary, and {key: row} of the CSV."""
    path = folder / "images.csv"
    record = good("info", pack, "--analyse", "--csv", path, "--json", *options).json()
    with open(path, newline="") as file:
        return record, {row["key"]: row for row in csv.DictReader(file)}


def test_qualities(tmp_path):
    """All of the IJG's, gray and color."""
    files = {f"{kind} {q}": encoded(picture().convert(kind), "JPEG", quality=q)
             for kind in ("L", "RGB") for q in range(1, 101)}
    record, rows = analyse(write(tmp_path / "p.pen", files), tmp_path)
    assert {key: int(row["quality"]) for key, row in rows.items()} == {
        key: int(key.split()[1]) for key in files}
    assert record["distributions"][0] == {
        "of": "quality", "images": 200, "min": 1, "p05": 5.95, "p25": 25.75, "median": 50.5,
        "p75": 75.25, "p95": 95.05, "max": 100, "mean": 50.5}
    bins = [row for row in record["histograms"] if row["of"] == "quality"]
    assert sum(row["images"] for row in bins) == 200 and len(bins) <= 21
    assert all(row["to"] - row["from"] == 5 for row in bins)


def odd_tables():
    """Files whose tables are not the IJG's: other values, one table for all, four of them."""
    rng = np.random.default_rng(1)
    for i in range(60):
        scale = 10 ** rng.uniform(-2, 0.7)
        tables = [np.clip(np.arange(1, 65) * scale * (t + 1) + rng.integers(0, 3, 64), 1,
                          255).astype(int).tolist() for t in range((1, 2, 2, 3, 4)[i % 5])]
        yield encoded(picture(i), "JPEG", qtables=tables, subsampling=0)


@pytest.mark.skipif(not shutil.which("identify"), reason="ImageMagick is not installed")
def test_qualities_are_those_of_imagemagick(tmp_path):
    """It prints 92 where it has no estimate."""
    files = {f"{i}.jpg": data for i, data in enumerate(odd_tables())}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    _, rows = analyse(write(tmp_path / "p.pen", files), tmp_path)
    command = ["identify", "-format", "%Q\n", *(tmp_path / name for name in files)]
    expected = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert [rows[name]["quality"] or "92" for name in files] == expected
    assert {"", "92"} < {rows[name]["quality"] for name in files}


def test_files_of_all_kinds(tmp_path):
    image = picture(2, 40, 30)
    files = {
        "444": encoded(image, "JPEG", quality=90, subsampling=0),
        "422": encoded(image, "JPEG", quality=90, subsampling=1),
        "420": encoded(image, "JPEG", quality=90, subsampling=2, progressive=True),
        "gray, \"quoted\"": encoded(image.convert("L"), "JPEG", quality=90),
        "cmyk": encoded(image.convert("CMYK"), "JPEG", quality=90),
        "png": encoded(image), "clear": encoded(image.convert("RGBA")),
        "webp": encoded(image, "WEBP", lossless=True),
    }  # fmt: skip
    record, rows = analyse(write(tmp_path / "p.pen", files), tmp_path)
    found = {key: (row["codec"], row["quality"], row["sampling"], row["progressive"],
                   row["channels"]) for key, row in rows.items()}
    assert found == {
        "444": ("jpeg", "90", "4:4:4", "0", "3"), "422": ("jpeg", "90", "4:2:2", "0", "3"),
        "420": ("jpeg", "90", "4:2:0", "1", "3"), "cmyk": ("jpeg", "90", "other", "0", "3"),
        "gray, \"quoted\"": ("jpeg", "90", "gray", "0", "1"), "png": ("png", "", "", "", "3"),
        "clear": ("png", "", "", "", "4"), "webp": ("webp", "", "", "", "3"),
    }  # fmt: skip
    assert record["images"] == 8 and record["progressive"] == 1 and record["problems"] == 0
    assert {row["codec"]: row["images"] for row in record["codecs"]} == {
        "jpeg": 5, "png": 2, "webp": 1}
    assert sum(row["images"] for row in record["sampling"]) == 5
    for key, row in rows.items():
        assert (row["width"], row["height"], row["frame"]) == ("40", "30", "0")
        assert int(row["bytes"]) == len(files[key])
        assert float(row["bytes_per_pixel"]) == pytest.approx(len(files[key]) / 1200, rel=1e-5)


def test_pixels(tmp_path):
    """Means and deviations are NumPy's. A gray image counts in all channels."""
    images = [picture(3, 50, 20), picture(4, 9, 7), picture(5, 31, 17, 1)]
    files = {str(i): encoded(image) for i, image in enumerate(images)}
    for mode in ("keep", "raw"):
        record, rows = analyse(write(tmp_path / f"{mode}.pen", files, mode=mode), tmp_path)
        for i, image in enumerate(images):
            flat = np.asarray(image).reshape(image.height * image.width, -1)
            for c in range(flat.shape[1]):
                assert float(rows[str(i)][f"mean_{c}"]) == pytest.approx(flat[:, c].mean(), 1e-5)
                assert float(rows[str(i)][f"deviation_{c}"]) == pytest.approx(flat[:, c].std(),
                                                                              1e-5)
        assert rows["2"]["mean_1"] == rows["2"]["deviation_2"] == ""
        every = np.concatenate([np.asarray(image.convert("RGB")).reshape(-1, 3)
                                for image in images])
        for c, name in enumerate(("red", "green", "blue")):
            row = record["channels"][c]
            assert row["channel"] == name
            assert row["mean"] == pytest.approx(every[:, c].mean(), 1e-5)
            assert row["deviation"] == pytest.approx(every[:, c].std(), 1e-5)


def test_clips_count_by_frame_and_masks_do_not(tmp_path):
    schema = {"clip": "clip", "mask": "mask", "photo": "image"}
    with penstock.Writer(tmp_path / "p.pen", schema) as writer:
        frames = [encoded(picture(i), "JPEG", quality=80) for i in range(3)]
        writer.add("a", clip=frames, mask=encoded(picture(7, channels=1)), photo=None)
        writer.add("b", clip=[], mask=encoded(picture(8, channels=1)), photo=frames[0])
    path = tmp_path / "images.csv"
    record = good("info", tmp_path / "p.pen", "--analyse", "--csv", path, "--json").json()
    assert (record["samples"], record["images"]) == (2, 4)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [(row["key"], row["field"], row["frame"]) for row in rows] == [
        ("a", "clip", "0"), ("a", "clip", "1"), ("a", "clip", "2"), ("b", "photo", "0")]


def test_rows_have_the_order_of_the_samples(tmp_path):
    """For any number of threads; the first blocks take the longest."""
    files = {f"{i:03}": encoded(picture(i, 8 + (60 - i) * 5, 40), "JPEG") for i in range(60)}
    pack = write(tmp_path / "p.pen", files, block_samples=4)
    texts = []
    for threads in (1, 2, 7):
        _, rows = analyse(pack, tmp_path, "--threads", str(threads))
        assert list(rows) == list(files)
        texts.append((tmp_path / "images.csv").read_bytes())
    assert texts[0] == texts[1] == texts[2]


def test_damaged_images_are_problems(tmp_path):
    """The scan of one is cut, of which storing without an index takes no notice."""
    files = {str(i): encoded(picture(i, 64, 64), "JPEG", quality=95) for i in range(4)}
    whole = files["2"]
    files["2"] = whole[: len(whole) // 2] + whole[-2:]
    pack = write(tmp_path / "p.pen", files, index=False)
    result = run("info", pack, "--analyse", "--csv", tmp_path / "a.csv", "--json")
    record = result.json()
    assert result.code == 1
    assert (record["images"], record["problems"]) == (3, 1)
    assert record["found"][0]["sample"] == 2
    assert "sample 2, field 'image', frame 0: jpeg: " in record["found"][0]["message"]
    assert record["found"][0]["message"] in result.err
    assert (tmp_path / "a.csv").read_text().count("\n") == 1 + 3
    shard = next((tmp_path / "p.pen").rglob("*.shard"))
    data = bytearray(shard.read_bytes())
    at = data.index(files["3"][-40:])
    data[at] ^= 1
    shard.write_bytes(data)
    assert run("info", pack, "--analyse", "--json").json()["problems"] == 2


def test_text_has_tables(tmp_path):
    pack = write(tmp_path / "p.pen", {"a": encoded(picture(), "JPEG", quality=71)})
    text = good("info", pack, "--analyse").out
    for part in ("  quality               1     71 ", "  4:2:0          1", "  green ",
                 "  quality    71  72       1"):
        assert part in text, text
    empty = write(tmp_path / "e.pen", {"a": None})
    assert good("info", empty, "--analyse", "--json").json()["images"] == 0


def test_usage(tmp_path):
    pack = write(tmp_path / "p.pen", {"a": encoded(picture())})
    assert "--csv needs --analyse; add --analyse" in usage_error("info", pack, "--csv", "x")
    assert "--threads needs --analyse" in usage_error("info", pack, "--threads", "2")
    assert "--analyse and --samples cannot be" in usage_error("info", pack, "--analyse",
                                                              "--samples")
    result = run("info", pack, "--analyse", "--csv", tmp_path / "no" / "a.csv")
    assert result.code == 1 and "a.csv: cannot create the file" in result.message()
    result = run("info", pack, "--analyse", "--csv", "/dev/full")
    assert result.code == 1 and "/dev/full: cannot write the file" in result.message()
