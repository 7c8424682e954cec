# SPDX-License-Identifier: Apache-2.0
"""Packing with --progressive convert: baseline files with the pixels of their sources."""

import io
import subprocess

import numpy
import pytest
from cli_tools import good, run, usage_error
from PIL import Image, ImageOps
from plain_reader import Pack as PlainPack
from py_tools import need_penstock
from test_indexed import jpeg
from test_pack_index import SIZE, check_files, converted, crops, hows, must_of, reasons, store

penstock = need_penstock()
CONVERT = ("--mode", "keep", "--progressive", "convert")


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def scanned(data, script, tmp_path):
    """The same coefficients in the scans of the script."""
    (tmp_path / "script").write_text(script, encoding="ascii")
    command = ["jpegtran", "-copy", "all", "-scans", str(tmp_path / "script")]
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout


def several_scans(tmp_path):
    """Files that are converted, by key."""
    out = io.BytesIO()
    Image.open(io.BytesIO(jpeg(SIZE, 5))).convert("L").save(out, "JPEG", progressive=True)
    return {
        "420.jpg": jpeg(SIZE, 1, subsampling=2, quality=90, progressive=True, exif=exif(6),
                        icc_profile=b"a profile", comment=b"a comment"),
        "422.jpg": jpeg(SIZE, 2, subsampling=1, quality=80, progressive=True),
        "444.jpg": jpeg(SIZE, 3, subsampling=0, quality=70, progressive=True, exif=exif(3)),
        "grey.jpg": out.getvalue(),
        "marked.jpg": jpeg(SIZE, 4, progressive=True, restart_marker_blocks=3),
        "scans.jpg": scanned(jpeg(SIZE, 6), "0;\n1;\n2;\n", tmp_path),
        "trailer.jpg": jpeg(SIZE, 7, progressive=True) + b"trailer",
    }


def pixels(data):
    return numpy.array(Image.open(io.BytesIO(data)))


def same_picture(data, source):
    """A baseline file with the pixels and the metadata of its source."""
    one, two = (Image.open(io.BytesIO(file)) for file in (data, source))
    kept = all(one.info.get(name) == two.info.get(name) for name in ("icc_profile", "comment"))
    return (data != source and "progressive" not in one.info and one.mode == two.mode and kept
            and dict(one.getexif()) == dict(two.getexif())
            and numpy.array_equal(numpy.array(one), numpy.array(two)))


def test_converted_files_have_the_same_pixels(tmp_path):
    files, pack = several_scans(tmp_path), tmp_path / "a.pen"
    folder = store(tmp_path / "in", files)
    account = good("pack", folder, "-o", pack, *CONVERT, "--threads", "1", "--json").json()
    assert hows(account) == {("jpeg", "converted"): len(files)}
    assert account["without_index"] == []
    assert must_of(pack) == 2
    good("verify", "--decode", pack)
    info = good("info", pack, "--json").json()
    assert hows(info) == hows(account)
    assert info["settings"]["progressive"] == "convert"
    good("extract", pack, "-o", tmp_path / "out")
    for name, data in files.items():
        assert same_picture((tmp_path / "out" / name).read_bytes(), data), name
    stored = {key.decode(): values["image"] for key, values in PlainPack(pack).samples}
    for name, data in files.items():
        assert stored[name]["how"] == 7 and stored[name]["source_bytes"] == len(data)
        assert numpy.array_equal(pixels(stored[name]["data"]), pixels(data)), name
    assert {stored["420.jpg"]["orientation"], stored["444.jpg"]["orientation"]} == {6, 3}
    other = good("pack", folder, "-o", tmp_path / "b.pen", *CONVERT, "--threads", "3", "--json")
    assert other.json()["id"] == account["id"]


def test_crops_are_those_of_the_source(tmp_path):
    files, pack = several_scans(tmp_path), tmp_path / "a.pen"
    good("pack", store(tmp_path / "in", files), "-o", pack, *CONVERT)
    keys = [key.decode() for key, _ in PlainPack(pack).samples]
    for name, found in zip(keys, crops(pack, len(files))):
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(files[name])))
        picture = numpy.array(upright.convert("RGB"))
        top, left = (round((side - 40) / 2) for side in picture.shape[:2])
        assert numpy.array_equal(found, picture[top : top + 40, left : left + 40]), name


def test_other_files_are_kept(tmp_path):
    """The reason is what keeps a file from being converted."""
    files = {
        "cmyk.jpg": converted("CMYK", progressive=True),
        "rgb.jpg": jpeg(SIZE, 1, keep_rgb=True, progressive=True),
        "small.jpg": jpeg((60, 8), 2, progressive=True),
        "baseline.jpg": jpeg(SIZE, 3),
        "png.png": converted("RGB", kind="PNG"),
    }
    pack = tmp_path / "a.pen"
    account = good("pack", store(tmp_path / "in", files), "-o", pack, *CONVERT, "--json").json()
    assert hows(account) == {("jpeg", "kept"): 3, ("jpeg", "kept, indexed"): 1, ("png", "kept"): 1}
    assert reasons(account) == {"CMYK": 1, "not YCbCr": 1, "small": 1}
    check_files(pack, files, tmp_path)


def test_a_broken_file_is_broken(tmp_path):
    data = jpeg(SIZE, 1, progressive=True)
    folder = store(tmp_path / "in", {"a.jpg": data[: len(data) // 2]})
    result = run("pack", folder, "-o", tmp_path / "a.pen", *CONVERT)
    assert result.code == 1 and "a.jpg" in result.err


def test_tasks_share_the_setting(tmp_path):
    """A run with another setting does not continue what was planned."""
    files = several_scans(tmp_path)
    folder, pack = store(tmp_path / "in", files), tmp_path / "a.pen"
    good("plan", folder, "-o", pack, *CONVERT, "--block-samples", "2")
    command = ("pack", folder, "-o", pack, "--mode", "keep", "--block-samples", "2")
    good(*command, "--progressive", "convert", "--task", "0/2")
    for more in ((), ("--progressive", "keep")):
        for last in (("--task", "1/2"), ()):
            message = run(*command, *more, *last).message()
            assert "an interrupted run with other sources or settings exists here" in message
    good(*command, "--progressive", "convert", "--task", "1/2")
    account = good("finalise", pack, "--json").json()
    assert hows(account) == {("jpeg", "converted"): len(files)}
    good("verify", "--decode", pack)


def test_an_append_may_convert(tmp_path):
    files = several_scans(tmp_path)
    names = sorted(files)
    pack = tmp_path / "a.pen"
    first = store(tmp_path / "1", {name: files[name] for name in names[:3]})
    second = store(tmp_path / "2", {name: files[name] for name in names[3:]})
    good("pack", first, "-o", pack, "--mode", "keep", "--block-samples", "2")
    account = good("pack", second, "-o", pack, "--append", *CONVERT, "--json").json()
    assert hows(account) == {("jpeg", "kept"): 3, ("jpeg", "converted"): len(names) - 3}
    good("verify", "--decode", pack)
    third = store(tmp_path / "3", {"more.jpg": jpeg(SIZE, 30, progressive=True)})
    account = good("pack", third, "-o", pack, "--append", "--mode", "keep", "--json").json()
    assert hows(account) == {("jpeg", "kept"): 4, ("jpeg", "converted"): len(names) - 3}
    stored = {key.decode(): values["image"] for key, values in PlainPack(pack).samples}
    for name in names:
        assert numpy.array_equal(pixels(stored[name]["data"]), pixels(files[name])), name


def test_frames_of_clips_are_converted(tmp_path):
    frames = [jpeg(SIZE, n, progressive=n % 2 == 0) for n in range(3)]
    (tmp_path / "in").mkdir()
    store(tmp_path / "in" / "clip", {f"{n}.jpg": data for n, data in enumerate(frames)})
    pack = tmp_path / "a.pen"
    account = good("pack", tmp_path / "in", "-o", pack, "--kind", "frames", *CONVERT,
                   "--json").json()
    assert hows(account) == {("jpeg", "kept, indexed"): 1, ("jpeg", "converted"): 2}
    with penstock.open(pack) as opened:
        found = numpy.asarray(opened[0]["video"][:])
    for frame, data in zip(found, frames):
        assert numpy.array_equal(frame, pixels(data))


@pytest.mark.parametrize("progressive", ["keep", "convert"])
def test_a_writer_converts(tmp_path, progressive):
    data, mask = jpeg(SIZE, 1, progressive=True), converted("L", progressive=True)
    schema, pack = {"image": "image", "mask": "mask"}, tmp_path / "a.pen"
    penstock.write(pack, [{"image": data, "mask": mask}], schema, mode="keep",
                   progressive=progressive)
    ((_, values),) = PlainPack(pack).samples
    assert (values["image"]["data"] == data) == (progressive == "keep")
    assert numpy.array_equal(pixels(values["image"]["data"]), pixels(data))
    with penstock.open(pack) as opened:
        how = {name: opened.image(0, name).how for name in schema}
    assert how == {"image": "converted" if progressive == "convert" else "kept", "mask": "kept"}


def test_where_it_applies(tmp_path):
    inputs = ("pack", tmp_path, "-o", tmp_path / "a.pen", "--progressive", "convert")
    assert "applies to --mode keep" in usage_error(*inputs, "--mode", "encode")
    message = run(*inputs, "--mode", "keep", "--no-index").message()
    assert "expected the mode keep with an entry index, found no_index" in message
    with pytest.raises(penstock.InvalidError, match="another mode"):
        penstock.Writer(tmp_path / "b.pen", {"image": "image"}, mode="encode",
                        progressive="convert")
    with pytest.raises(ValueError, match="progressive"):
        penstock.Writer(tmp_path / "c.pen", {"image": "image"}, progressive="baseline")
