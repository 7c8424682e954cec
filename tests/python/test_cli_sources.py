# SPDX-License-Identifier: Apache-2.0
"""What pack says of its sources: classes, splits, and what it cannot pack."""

import os
import struct
import zlib

import penstock
import pytest
from cli_tools import good, image_bytes, make_folder, run, write_list

# ---- classes in the report -----------------------------------------------------------------------


def test_the_report_has_the_classes(tmp_path):
    make_folder(tmp_path / "photos", ("cat", "dog", "owl"), 1)
    record = good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen", "--json").json()
    assert record["class_count"] == 3
    assert record["first_classes"] == ["cat", "dog", "owl"]
    text = good("pack", tmp_path / "photos", "-o", tmp_path / "q.pen").out
    assert "class count         3\n" in text
    assert "first classes       cat, dog, owl\n" in text


def test_of_many_classes_the_first_and_of_long_names_the_beginning(tmp_path):
    names = ["0" + "ä" * 40, *(f"{i}" for i in range(1, 10))]
    make_folder(tmp_path / "photos", names, 1)
    record = good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen", "--json").json()
    assert record["class_count"] == 10
    assert record["first_classes"] == ["0" + "ä" * 29 + "...", *names[1:8]]


def test_without_classes_the_count_is_zero(tmp_path):
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "a.jpg").write_bytes(image_bytes(1))
    record = good("pack", tmp_path / "flat", "-o", tmp_path / "p.pen", "--json").json()
    assert record["class_count"] == 0
    assert "first_classes" not in record


def test_plan_tasks_finalise_and_append_have_the_classes(tmp_path):
    photos, pack = tmp_path / "photos", tmp_path / "p.pen"
    make_folder(photos, ("cat", "dog"), 4)
    for command in (("plan", photos, "-o", pack), ("pack", photos, "-o", pack, "--task", "0/1"),
                    ("finalise", pack), ("pack", photos, "-o", pack, "--append")):
        record = good(*command, "--json").json()
        assert (record["class_count"], record["first_classes"]) == (2, ["cat", "dog"]), command


# ---- splits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("splits", "said"), [
    (("train", "val"), "train and val"),
    (("Train",), "Train"),
    (("test", "train", "validation"), "test, train and validation"),
    (("dev", "test", "train", "valid"), "dev, test, train, ..."),
])
def test_splits_in_place_of_classes_are_told(tmp_path, splits, said):
    make_folder(tmp_path / "data", splits, 2)
    result = good("pack", "data", "-o", "p.pen", cwd=tmp_path)
    first = sorted(splits)[0]
    assert result.message() == (
        f"warning: the only folders in data are {said}, which look like splits and become the "
        f"classes; to pack one split: penstock pack data/{first} -o {first}.pen")
    # The advice works.
    done = good("pack", f"data/{first}", "-o", f"{first}.pen", cwd=tmp_path)
    assert done.err == ""


@pytest.mark.parametrize("classes", [("train", "bus"), ("car", "bus"), ("training-shoes",)])
def test_other_folders_are_classes(tmp_path, classes):
    make_folder(tmp_path / "data", classes, 2)
    assert good("pack", tmp_path / "data", "-o", tmp_path / "p.pen").err == ""


# ---- what cannot be packed -----------------------------------------------------------------------


def test_a_pack_is_no_source(tmp_path):
    make_folder(tmp_path / "photos")
    good("pack", "photos", "-o", "p.pen", cwd=tmp_path)
    result = run("pack", "p.pen", "-o", "q.pen", cwd=tmp_path)
    assert result.code == 1
    assert result.message() == (
        "p.pen: already a pack; 'penstock info p.pen' describes it, 'penstock extract "
        "p.pen -o DIR' writes its files so that you can pack them again")
    assert not (tmp_path / "q.pen").exists()
    good("extract", "p.pen", "-o", "DIR", cwd=tmp_path)
    good("pack", "DIR/samples.csv", "-o", "q.pen", cwd=tmp_path)


def test_a_folder_with_another_manifest_is_packed(tmp_path):
    make_folder(tmp_path / "photos")
    os.rename(tmp_path / "photos" / "cat", tmp_path / "photos" / "manifest")
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen")


@pytest.mark.parametrize("name", ["a.parquet", "b.jsonl", "c.JSON", "d.h5"])
def test_tables_are_packed_from_python(tmp_path, name):
    (tmp_path / name).write_bytes(b"PAR1")
    result = run("pack", name, "-o", "p.pen", cwd=tmp_path)
    suffix = name[1:].lower()
    assert result.code == 1
    assert result.message() == (
        f"{name}: expected a folder, a .csv or .tsv list or a .tar file, found a {suffix} file; "
        'write it from Python: penstock.write("NAME.pen", samples(), schema) with a generator of '
        "its rows (docs/reference/python.md, Write)")


def test_a_folder_is_no_pack_and_how_it_becomes_one(tmp_path):
    make_folder(tmp_path / "photos")
    for verb in (("info", "photos"), ("verify", "photos"), ("extract", "photos", "-o", "x")):
        result = run(*verb, cwd=tmp_path)
        assert result.code == 1
        assert result.message() == (
            "photos: not a pack: it has no file 'manifest'; to pack a folder, run: "
            "penstock pack FOLDER -o NAME.pen")
    good("pack", "photos", "-o", "NAME.pen", cwd=tmp_path)


def test_a_file_is_no_pack(tmp_path):
    write_list(tmp_path / "a.csv", ["path"], [["x"]])
    assert run("info", "a.csv", cwd=tmp_path).message() == (
        "a.csv: not a pack: expected a directory such as NAME.pen, found a file")


def test_a_gif_is_to_be_converted_or_removed_once(tmp_path):
    make_folder(tmp_path / "photos")
    (tmp_path / "photos" / "cat" / "x.gif").write_bytes(b"GIF89a" + bytes(50))
    result = run("pack", "photos", "-o", "p.pen", cwd=tmp_path)
    assert result.message() == (
        "photos/cat/x.gif: image: expected a jpeg, png or webp file, found a GIF: convert or "
        "remove it, or skip broken inputs with --on-bad skip (codec/image)")
    good("pack", "photos", "-o", "q.pen", "--on-bad", "skip", cwd=tmp_path)


# ---- 16 bits a channel ---------------------------------------------------------------------------


def png_16(colour, width=5, height=4):
    """A PNG of 16 bits a channel; colour 0 is grey, 2 RGB. The upper byte of every value is 7."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = (b"\0" + b"\x07\xab" * width * (1, 0, 3)[colour]) * height
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


SIXTEEN = ("image: expected 8 bits per channel, found a 16-bit PNG, of which the loader keeps "
           "only the upper 8; accept that with --sixteen-bit reduce, after 'penstock gc' if a run "
           "was interrupted "
           '(Python: sixteen_bit="reduce"), or store the file in a field of type bytes')


@pytest.mark.parametrize("mode", ["keep", "encode", "raw", "mix", "smart"])
@pytest.mark.parametrize("colour", [0, 2])
def test_16_bits_are_not_halved_silently(tmp_path, mode, colour):
    make_folder(tmp_path / "photos")
    (tmp_path / "photos" / "cat" / "deep.png").write_bytes(png_16(colour))
    command = ("pack", "photos", "-o", "p.pen", "--mode", mode)
    result = run(*command, cwd=tmp_path)
    assert result.code == 1
    assert result.message() == f"photos/cat/deep.png: {SIXTEEN}"
    record = good(*command[:3], "skip.pen", *command[4:], "--on-bad", "skip", "--json",
                  cwd=tmp_path).json()
    assert record["broken_inputs_left_out"] == 1
    good(*command[:3], "all.pen", *command[4:], "--sixteen-bit", "reduce", cwd=tmp_path)
    pack = penstock.open(tmp_path / "all.pen")
    assert pack.image(pack.index("cat/deep.png"), "image").width == 5
    settings = good("info", "all.pen", "--json", cwd=tmp_path).json()["settings"]
    assert settings["sixteen_bit"] == "reduce"
    assert "sixteen_bit" not in good("info", "skip.pen", "--json", cwd=tmp_path).json()["settings"]


def test_frames_of_16_bits_too(tmp_path):
    (tmp_path / "set" / "wave" / "a").mkdir(parents=True)
    for i in range(2):
        (tmp_path / "set" / "wave" / "a" / f"{i}.png").write_bytes(png_16(0))
    command = ("pack", "set", "-o", "p.pen", "--kind", "frames")
    assert SIXTEEN in run(*command, cwd=tmp_path).message()
    good(*command, "--sixteen-bit", "reduce", cwd=tmp_path)


def test_python_writes_no_16_bits_unasked(tmp_path):
    with penstock.Writer(tmp_path / "p.pen", {"image": "image", "file": "bytes"}) as writer:
        with pytest.raises(penstock.UnsupportedError, match="expected 8 bits per channel"):
            writer.add("a", image=png_16(2), file=b"")
        writer.add("b", image=image_bytes(1), file=png_16(2))  # as the message says
    assert len(penstock.open(tmp_path / "p.pen")) == 1
    penstock.write(tmp_path / "q.pen", [{"image": png_16(0)}], {"image": "image"},
                   sixteen_bit="reduce")
    loader = penstock.Loader(tmp_path / "q.pen", 1, output="numpy",
                             pipeline="image: decode | center_crop 4 | tensor u8")
    assert (next(iter(loader)).image == 7).all()
    with pytest.raises(penstock.InvalidError, match="sixteen_bit"):
        penstock.Writer(tmp_path / "r.pen", {"image": "image"}, sixteen_bit="keep")
