# SPDX-License-Identifier: Apache-2.0
"""`penstock pack --codec webp` and `--mode smart`: what is stored, that every run stores the same,
and that every reader reads it."""

import pathlib

import pytest
from cli_tools import good, run
from py_tools import encoded, need_penstock

penstock = need_penstock()
np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

# Width, height and kind. The pixels of two of them take at most 64 KiB.
PICTURES = {
    "photo.png": (200, 150, "RGB"), "gray.png": (300, 220, "L"), "square.png": (148, 147, "RGB"),
    "tiny.png": (9, 7, "RGB"), "clear.png": (150, 150, "RGBA"),
}  # fmt: skip


def picture(width, height, mode="RGB", seed=0):
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (5, 5, len(Image.new(mode, (1, 1)).getbands())),
                                         np.uint8).squeeze(), mode)
    return small.resize((width, height), Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("src") / "images"
    (root / "a").mkdir(parents=True)
    for name, size in PICTURES.items():
        (root / "a" / name).write_bytes(encoded(picture(*size), "PNG"))
    (root / "a" / "coarse.jpg").write_bytes(encoded(picture(200, 160), "JPEG", quality=40))
    (root / "a" / "fine.jpg").write_bytes(encoded(picture(200, 160), "JPEG", quality=98))
    return root


def stored(path):
    """{name: how it is stored}"""
    pack = penstock.open(path)
    images = {pack.key(i): pack.image(i, "image") for i in range(len(pack))}
    return {key.removeprefix("a/"): f"{image.codec} {image.how} {image.channels}"
            for key, image in images.items()}


def counts(*command):
    rows = good(*command, "--json").json()["images"]
    return {f"{row['codec']} {row['how']}": row["images"] for row in rows}


def tree(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in pathlib.Path(top).rglob("*")
            if p.is_file()}


WEBP = ("--mode", "encode", "--codec", "webp", "--quality", "80")
SMART = ("--mode", "smart", "--quality", "80")
SMART_WEBP = (*SMART, "--codec", "webp", "--max-side", "140", "--smart-threshold", "30KB")


def test_webp_is_what_libwebp_makes(folder, tmp_path):
    assert counts("pack", folder, "-o", tmp_path / "p.pen", *WEBP) == {
        "jpeg kept, quality": 1, "png encoded": 1, "webp encoded": 5}
    assert stored(tmp_path / "p.pen") == {
        "photo.png": "webp encoded 3", "gray.png": "webp encoded 3", "tiny.png": "webp encoded 3",
        "square.png": "webp encoded 3", "fine.jpg": "webp encoded 3",
        "clear.png": "png encoded 4", "coarse.jpg": "jpeg kept, quality 3",
    }  # fmt: skip
    pack = penstock.open(tmp_path / "p.pen")
    for name in ("photo.png", "square.png", "tiny.png"):
        data = pack.extract(pack.index(f"a/{name}"), "image")
        assert data == encoded(picture(*PICTURES[name]), "WEBP", quality=80)
    good("verify", "--decode", tmp_path / "p.pen")


def test_smart_stores_small_images_raw(folder, tmp_path):
    assert counts("pack", folder, "-o", tmp_path / "p.pen", *SMART) == {
        "jpeg encoded": 3, "jpeg kept, quality": 1, "png encoded": 1, "raw raw": 2}
    how = stored(tmp_path / "p.pen")
    assert {name for name, text in how.items() if text.startswith("raw")} == {
        "square.png", "tiny.png"}
    text = good("pack", folder, "-o", tmp_path / "q.pen", *SMART_WEBP).out
    assert "webp" in text and "raw" in text
    assert stored(tmp_path / "q.pen") == {
        "photo.png": "webp encoded 3", "gray.png": "raw raw 1", "square.png": "webp encoded 3",
        "tiny.png": "raw raw 3", "clear.png": "png encoded 4", "coarse.jpg": "webp encoded 3",
        "fine.jpg": "webp encoded 3",
    }  # fmt: skip


@pytest.mark.parametrize("options", [WEBP, SMART, SMART_WEBP])
def test_every_run_gives_the_same_bytes(folder, tmp_path, options):
    """For any number of threads, and in tasks."""
    small = ("--block-samples", "2", "--shard-bytes", "1")
    good("pack", folder, "-o", tmp_path / "a.pen", *options, *small, "--threads", "1")
    good("pack", folder, "-o", tmp_path / "b.pen", *options, *small, "--threads", "4")
    assert tree(tmp_path / "a.pen") == tree(tmp_path / "b.pen")
    for i in range(2):
        good("pack", folder, "-o", tmp_path / "t.pen", *options, *small, "--task", f"{i}/2")
    good("finalise", tmp_path / "t.pen")
    packs = [penstock.open(tmp_path / name) for name in ("a.pen", "t.pen")]
    one, other = ({pack.key(i): pack.extract(i, "image") for i in range(len(pack))}
                  for pack in packs)
    assert one == other


@pytest.mark.parametrize("options", [WEBP, SMART_WEBP])
def test_damage_is_found_and_a_run_resumes(folder, tmp_path, options):
    source = tmp_path / "in"
    (source / "a").mkdir(parents=True)
    for file in (folder / "a").iterdir():
        (source / "a" / file.name).write_bytes(file.read_bytes())
    whole = encoded(picture(160, 150), "WEBP", quality=99)
    (source / "a" / "z.webp").write_bytes(whole[:-100])
    command = ("pack", source, "-o", tmp_path / "a.pen", *options, "--order", "source",
               "--block-samples", "2", "--shard-bytes", "1")
    assert "a/z.webp: webp: truncated" in run(*command).message()
    record = good(*command[:3], tmp_path / "skip.pen", *command[4:], "--on-bad", "skip",
                  "--json").json()
    assert record["broken_inputs_left_out"] == 1
    (source / "a" / "z.webp").write_bytes(whole)
    assert good(*command, "--json").json()["resumed"] > 0
    good(*command[:3], tmp_path / "fresh.pen", *command[4:])
    assert tree(tmp_path / "a.pen") == tree(tmp_path / "fresh.pen")


def test_a_side_that_webp_cannot_have(tmp_path):
    (tmp_path / "a").mkdir()
    Image.new("RGB", (16384, 1)).save(tmp_path / "a" / "wide.png")
    command = ("pack", tmp_path / "a", "-o", tmp_path / "p.pen", *WEBP)
    assert ("webp: a side may have at most 16383 pixels, but the image has 16384 x 1; choose a "
            "smaller --max-side, or --codec jpeg") in run(*command).message()
    good(*command[:3], tmp_path / "q.pen", *command[4:], "--max-side", "16383")


def test_python_writes_the_same(folder, tmp_path):
    good("pack", folder, "-o", tmp_path / "a.pen", *SMART_WEBP)
    settings = dict(mode="smart", quality=80, codec="webp", max_side=140, smart_threshold="30KB")
    with penstock.Writer(tmp_path / "b.pen", {"image": "image"}, **settings) as writer:
        for file in (folder / "a").iterdir():
            writer.add(f"a/{file.name}", image=file.read_bytes())
    assert stored(tmp_path / "a.pen") == stored(tmp_path / "b.pen")
    with pytest.raises(penstock.InvalidError, match="codec: expected one of jpeg, webp"):
        penstock.Writer(tmp_path / "c.pen", {"image": "image"}, codec="avif")


def load(pack):
    text = "image: decode rgb | resize 32,32 | tensor u8 nhwc"
    one = penstock.Dataset(pack, text, output="numpy")
    batches = penstock.Loader(pack, len(pack), pipeline=text, order="sequential", threads=2,
                              output="numpy")
    images = np.concatenate([batch.image for batch in batches])
    assert all(np.array_equal(one[i].image, image) for i, image in enumerate(images))
    return images


@pytest.mark.parametrize("options", [WEBP, SMART, SMART_WEBP])
def test_every_reader_gives_the_pixels_of_the_files(folder, tmp_path, options):
    good("pack", folder, "-o", tmp_path / "p.pen", *options)
    pack = penstock.open(tmp_path / "p.pen")
    files = [{"image": pack.extract(i, "image")} for i in range(len(pack))]
    kinds = {data["image"][:4] for data in files}
    assert kinds > {b"RIFF"} if "webp" in options else kinds == {b"\x89PNG", b"\xff\xd8\xff\xe0"}
    penstock.write(tmp_path / "files.pen", files, {"image": "image"})
    assert np.array_equal(load(pack), load(penstock.open(tmp_path / "files.pen")))
